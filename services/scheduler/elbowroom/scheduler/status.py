"""What a plugin says to a pod that it refuses, or lets wait."""

from dataclasses import dataclass
from enum import Enum


class Code(Enum):
    """Why something was refused."""

    UNSCHEDULABLE = "Unschedulable"
    """Preemption might help."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Preemption cannot help (U&U)."""
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Status:
    """A refusal: by which plugin, and why. Success is None."""

    code: Code
    reasons: tuple[str, ...]
    plugin: str = ""

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


@dataclass(frozen=True, slots=True)
class Wait:
    """The pod has a node and must wait before it is bound there: for which plugin, and for how long at most."""

    plugin: str
    seconds: float
