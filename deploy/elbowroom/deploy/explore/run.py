"""Many seeds, or a death before each single effect: what fails is told with what replays it."""

import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from elbowroom.api.gates import Profile, profile_of
from elbowroom.deploy.explore.preemption import Outcome, preemption

VICTIMS = 2
"""What the story needs; in a hostile run more may go (SC-139, SC-140), in a run without faults never."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run to make: a seed, and the effect before which a process dies (0: none)."""

    seed: int
    die_before: int = 0
    hostile: bool = False
    profile: str = "lab"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. ``failure`` is empty if the story came to its end and every invariant held."""

    run: Run
    failure: str
    effects: int = 0
    victims: int = 0
    history: str = ""
    """The digest of its history: the same for the same seed and code."""


def profile_for(name: str) -> Profile:
    """The profile, with resize preemption on: without it there is no story."""
    return profile_of(name, {"InPlacePodVerticalScalingSchedulerPreemption": True})


def outcome(run: Run) -> Outcome:
    """Make the run; AssertionError if its story does not end."""
    return preemption(run.seed, hostile=run.hostile, die_before=run.die_before, profile=profile_for(run.profile))


def make(run: Run) -> Ended:
    """Make the run and judge it; whatever it raises is its failure."""
    try:
        made = outcome(run)
    except Exception as why:
        return Ended(run, f"{type(why).__name__}: {why}")
    broken = "; ".join(f"{violation.invariant}: {violation.message}" for violation in made.report.failures[:3])
    if not broken and made.victims < VICTIMS:
        broken = f"{made.victims} victims make no room"
    if not broken and not run.hostile and made.victims > VICTIMS:
        broken = f"{made.victims} victims where {VICTIMS} were needed"
    return Ended(run, broken, made.world.effects, made.victims, made.world.history_hash())


def seeds(first: int, count: int, profile: str) -> list[Run]:
    """Hostile runs of so many seeds."""
    return [Run(seed, hostile=True, profile=profile) for seed in range(first, first + count)]


def systematic(seed: int, profile: str) -> list[Run]:
    """A death before each effect that the run without faults carries out."""
    made = make(Run(seed, profile=profile))
    return [Run(seed, die_before=number, profile=profile) for number in range(1, made.effects + 1)]


def all_of(runs: Iterable[Run], jobs: int, minutes: float | None = None) -> Iterator[Ended]:
    """Make the runs, ``jobs`` at a time (0: one a processor), until they or the minutes are over."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    with ProcessPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for ended in pool.map(make, runs, chunksize=8):
            yield ended
            if end is not None and time.monotonic() >= end:
                pool.shutdown(cancel_futures=True)
                return
