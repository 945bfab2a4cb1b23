"""Why no node would do, in the words that users read (SC-80)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.refusals import Refusals
from elbowroom.scheduler.status import Code, Status

if TYPE_CHECKING:
    from elbowroom.scheduler.columns import Column

NO_NODES = "no nodes available to schedule pods"


@dataclass(slots=True)
class Diagnosis:
    """The refusal of each node that was asked, and of those that were not worth asking."""

    nodes: int
    """How many nodes there are."""
    refusals: Refusals = field(default_factory=Refusals)
    absent: Status | None = None
    """What is said of every other node."""
    at_once: bool = False
    """Was that said before any node was asked? Then it is told as it is, without a number."""

    @property
    def rejected_by(self) -> list[str]:
        """The plugins that refused, each once, in order (SC-32)."""
        names = [status.plugin for status, _ in self.refusals.counted() if status.code is not Code.ERROR]
        if self.absent is not None:
            names += self.absent.plugin.split(",")
        return list(dict.fromkeys(name for name in names if name))

    def of(self, node: str) -> Status | None:
        return self.refusals.get(node) or self.absent

    def resolvable(self, snapshot: Snapshot) -> "Sequence[int] | Column":
        """Where in the snapshot the nodes are on which preemption might help (SC-106)."""
        return self.refusals.rows(Code.UNSCHEDULABLE, snapshot)

    def message(self, addition: str = "") -> str:
        """``0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: ...``"""
        reasons: Counter[str] = Counter()
        for status, count in self.refusals.counted():
            for reason in status.reasons:
                reasons[reason] += count
        others = self.nodes - len(self.refusals)
        if self.absent is not None and others > 0:
            for reason in self.absent.reasons:
                reasons[reason] += others
        text = f"0/{self.nodes} nodes are available:"
        if self.at_once and self.absent is not None:
            text += f" {self.absent.message}."
        elif reasons:
            text += " " + ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items())) + "."
        return f"{text} {addition}" if addition else text


def refused_at(node: str, status: Status) -> Diagnosis:
    """What is said where the one node that was chosen is refused afterwards: ``0/1 nodes are available: 1 ...``."""
    return Diagnosis(1, Refusals({node: status}))


def not_satisfied(plugins: tuple[str, ...]) -> Status:
    """What is said of nodes that plugins ruled out before any was asked (SC-86)."""
    return Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]",), ",".join(plugins))
