"""A figure and what it is held against.

The peer is a real Kubernetes control plane (API server, etcd, scheduler, controller manager) with ten real kubelets over a fake
runtime, on two busy cores of the same kind of machine.
"""

from dataclasses import dataclass, field

PEER = "a real control plane with ten real kubelets over a fake runtime, 2 busy cores"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result. ``peer`` and ``limit`` are in the same unit; ``limit_is`` says what the limit is."""

    name: str
    what: str
    value: float
    unit: str
    peer: float | None = None
    more_is_better: bool = False
    limit: float | None = None
    limit_is: str = ""
    details: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """How many times better than the peer (below 1: worse)."""
        if self.peer is None or not self.value or not self.peer:
            return None
        return self.value / self.peer if self.more_is_better else self.peer / self.value


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def shown(amount: float | None, unit: str = "") -> str:
    """A number as people read it: three figures."""
    if amount is None:
        return "-"
    digits = 0 if abs(amount) >= 100 else 1 if abs(amount) >= 10 else 2 if abs(amount) >= 0.1 else 4
    return f"{amount:,.{digits}f}{' ' + unit if unit else ''}"
