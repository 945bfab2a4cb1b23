"""Why no node would do, in the words that users read (SC-80)."""

from collections import Counter
from dataclasses import dataclass, field

from elbowroom.scheduler.framework import Code, Status

NO_NODES = "no nodes available to schedule pods"


@dataclass(slots=True)
class Diagnosis:
    """The refusal of each node that was asked, and of those that were not worth asking."""

    nodes: int
    """How many nodes there are."""
    refusals: dict[str, Status] = field(default_factory=dict)
    absent: Status | None = None
    """What is said of every other node."""

    @property
    def rejected_by(self) -> list[str]:
        """The plugins that refused, each once, in order (SC-32)."""
        names = list(dict.fromkeys(status.plugin for status in self.refusals.values() if status.code is not Code.ERROR))
        if self.absent is not None:
            names += self.absent.plugin.split(",")
        return list(dict.fromkeys(name for name in names if name))

    def of(self, node: str) -> Status | None:
        return self.refusals.get(node, self.absent)

    def resolvable(self) -> list[str]:
        """The nodes where preemption might help (SC-106)."""
        return [node for node, status in self.refusals.items() if status.code is Code.UNSCHEDULABLE]

    def message(self, addition: str = "") -> str:
        """``0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: ...``"""
        reasons: Counter[str] = Counter()
        for together, count in Counter(status.reasons for status in self.refusals.values()).items():
            for reason in together:
                reasons[reason] += count
        others = self.nodes - len(self.refusals)
        if self.absent is not None and others > 0:
            reasons.update({reason: others for reason in self.absent.reasons})
        text = f"0/{self.nodes} nodes are available:"
        if reasons:
            text += " " + ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items())) + "."
        return f"{text} {addition}" if addition else text


def not_satisfied(plugins: tuple[str, ...]) -> Status:
    """What is said of nodes that plugins ruled out before any was asked (SC-86)."""
    return Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]",), ",".join(plugins))
