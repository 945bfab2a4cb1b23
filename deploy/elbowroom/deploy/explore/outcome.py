"""What became of a story."""

from dataclasses import dataclass

from elbowroom.history.report import Report
from elbowroom.sim.world import World


@dataclass(frozen=True, slots=True)
class Outcome:
    """The world in which it came to its end, the verdict on its history, and the number that runs of the story are counted by."""

    world: World
    report: Report
    number: int
