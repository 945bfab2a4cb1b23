"""Many seeds, or a death before each single effect: what fails is told with what replays it."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from elbowroom.api.gates import Profile, profile_of
from elbowroom.deploy.explore.outcome import Outcome
from elbowroom.deploy.explore.preemption import preemption
from elbowroom.deploy.explore.storm import storm


@dataclass(frozen=True, slots=True)
class Scenario:
    """A story that can be told once for each seed: ``tell(seed, hostile=, die_before=, profile=)`` raises AssertionError if it does
    not come to its end. ``counts`` names its outcome's number."""

    tell: Callable[..., Outcome]
    counts: str


SCENARIOS: Mapping[str, Scenario] = {
    "preemption": Scenario(preemption, "victims"),
    "resize-storm": Scenario(storm, "allocated resizes"),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run to make: a seed, and the effect before which a process dies (0: none)."""

    seed: int
    die_before: int = 0
    hostile: bool = False
    profile: str = "lab"
    scenario: str = "preemption"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. ``failure`` is empty if the story came to its end and every invariant held."""

    run: Run
    failure: str
    effects: int = 0
    number: int = 0
    """What its scenario counts."""
    history: str = ""
    """The digest of its history: the same for the same seed and code."""


def profile_for(name: str) -> Profile:
    """The profile, with resize preemption on: without it there is no story."""
    return profile_of(name, {"InPlacePodVerticalScalingSchedulerPreemption": True})


def outcome(run: Run) -> Outcome:
    """Make the run; AssertionError if its story does not end."""
    tell = SCENARIOS[run.scenario].tell
    return tell(run.seed, hostile=run.hostile, die_before=run.die_before, profile=profile_for(run.profile))


def make(run: Run) -> Ended:
    """Make the run and judge it; whatever it raises is its failure."""
    try:
        made = outcome(run)
    except Exception as why:
        return Ended(run, f"{type(why).__name__}: {why}")
    broken = "; ".join(f"{violation.invariant}: {violation.message}" for violation in made.report.failures[:3])
    return Ended(run, broken, made.world.effects, made.number, made.world.history_hash())


def seeds(first: int, count: int, profile: str, scenario: str = "preemption") -> list[Run]:
    """Hostile runs of so many seeds."""
    return [Run(seed, hostile=True, profile=profile, scenario=scenario) for seed in range(first, first + count)]


def systematic(seed: int, profile: str, scenario: str = "preemption") -> list[Run]:
    """A death before each effect that the run without faults carries out."""
    made = make(Run(seed, profile=profile, scenario=scenario))
    return [Run(seed, die_before=number, profile=profile, scenario=scenario) for number in range(1, made.effects + 1)]


def all_of(runs: Iterable[Run], jobs: int, minutes: float | None = None) -> Iterator[Ended]:
    """Make the runs, ``jobs`` at a time (0: one a processor), until they or the minutes are over."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    with ProcessPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for ended in pool.map(make, runs, chunksize=8):
            yield ended
            if end is not None and time.monotonic() >= end:
                pool.shutdown(cancel_futures=True)
                return
