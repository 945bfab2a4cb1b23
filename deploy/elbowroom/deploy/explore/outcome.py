"""What a story is, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from elbowroom.api.gates import Profile
from elbowroom.deploy.explore.cluster import SimulatedCluster
from elbowroom.history.report import Report
from elbowroom.sim.world import World


class Story(Protocol):
    """A story with its plan, made from a seed. ``parts`` of the plan can be left out; what is left is told in the same way."""

    @property
    def profile(self) -> Profile: ...
    @property
    def parts(self) -> Sequence[Any]: ...
    def keeping(self, parts: Sequence[Any]) -> "Story": ...

    def tell(self, cluster: SimulatedCluster, *, undisturbed: bool) -> int:
        """Let it happen; AssertionError, with the state, if it does not come to its end. ``undisturbed``: nothing was armed from
        outside either. The number is what runs of the story are counted by."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """The cluster in which it came to its end, the verdict on its history, and the number that runs of the story are counted by."""

    cluster: SimulatedCluster
    report: Report
    number: int

    @property
    def world(self) -> World:
        return self.cluster.world
