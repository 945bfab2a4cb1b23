"""Many seeds, or one fault at each labelled step: what fails is told with what replays it."""

import gc
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice

from elbowroom.api.gates import Profile, profile_of
from elbowroom.deploy.explore.chaos import Chaos, chaos
from elbowroom.deploy.explore.cluster import SimulatedCluster
from elbowroom.deploy.explore.outcome import Outcome, Story
from elbowroom.deploy.explore.preemption import preemption
from elbowroom.deploy.explore.storm import storm
from elbowroom.deploy.explore.told import told
from elbowroom.deploy.workers import workers
from elbowroom.sim.world import World

COLLECT_EVERY = 8
"""Worlds between two collections of garbage: each leaves some megabytes behind, and a collection looks at all of the program."""
BACK_AFTER = 0.1
"""Who was killed or stopped at a step is back after so many seconds."""
DESIGN = "lab"
ACTIONS = ("kill", "stop", "delay:0.5", "disk")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A story for each seed. ``counts`` names the number of its outcome."""

    plan: Callable[..., Story]
    counts: str


SCENARIOS: Mapping[str, Scenario] = {
    "preemption": Scenario(preemption, "victims"),
    "resize-storm": Scenario(storm, "allocated resizes"),
}


@lru_cache(maxsize=64)
def scenario_of(name: str, duration: float | None = None, profile: str | None = None) -> Scenario:
    """A story, or a chaos scenario: a built-in one (``chaos/NAME`` where a story has that name) or a file's."""
    return SCENARIOS.get(name) or Scenario(chaos(name, duration, profile), "acknowledged writes")


@dataclass(frozen=True, slots=True)
class Point:
    """A fault at a step: the ``hits``-th time that ``peer`` passes ``label`` it is killed, stopped, delayed, or its disk fails."""

    peer: str
    label: str
    action: str
    hits: int = 1

    def __str__(self) -> str:
        return f"{self.peer}@{self.label}#{self.hits}:{self.action}"

    @staticmethod
    def of(text: str) -> "Point":
        """The inverse of ``str``; ValueError if it is none."""
        peer, _, rest = text.partition("@")
        label, _, rest = rest.rpartition("#")
        hits, _, action = rest.partition(":")
        is_one = peer and label and hits.isdecimal() and action.partition(":")[0] in ("kill", "stop", "delay", "disk")
        if not is_one:
            raise ValueError(f"{text!r} is no PEER@LABEL#HITS:ACTION, as kubelet/node-1@K4#1:kill (or stop, delay, disk)")
        return Point(peer, label, action, int(hits))


@dataclass(frozen=True, slots=True)
class Run:
    """One run to make: a seed, faults at steps, the effect before which a process dies (0: none), and which parts of the plan are
    kept (None: all)."""

    seed: int
    die_before: int = 0
    hostile: bool = False
    profile: str | None = None
    """None: the design's, or what the file of a chaos scenario says."""
    scenario: str = "preemption"
    points: tuple[Point, ...] = ()
    kept: tuple[int, ...] | None = None
    duration: float | None = None
    """Of a chaos scenario, in virtual seconds; None: as its file says."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. ``failure`` is empty if the story came to its end, every invariant held and every planned fault came."""

    run: Run
    failure: str
    effects: int = 0
    number: int = 0
    """What its scenario counts."""
    history: str = ""
    """The digest of its history: the same for the same seed and code."""
    events: int = 0
    seconds: float = 0.0
    story: tuple[str, ...] = ()
    """Of a failure, in at most 40 lines."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """How many of each name came."""
    passed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Labels by kind of component, and how often they were passed."""
    struck: frozenset[tuple[str, str]] = frozenset()
    """Labels by kind of component at which a fault came."""

    @property
    def invariant(self) -> str:
        """What is broken: the id, or what kind of failure it is."""
        return self.failure.partition(":")[0]


def profile_for(name: str | None) -> Profile:
    """The profile, with resize preemption on: without it there is no story."""
    return profile_of(name or DESIGN, {"InPlacePodVerticalScalingSchedulerPreemption": True})


def story_of(run: Run) -> Story:
    """The story that the run tells, without what is left out."""
    story = scenario_of(run.scenario, run.duration, run.profile).plan(run.seed, profile_for(run.profile), hostile=run.hostile)
    return story if run.kept is None else story.keeping([story.parts[at] for at in run.kept])


def _prepared(run: Run, story: Story) -> SimulatedCluster:
    def arm(world: World) -> None:
        if run.die_before:
            world.die_before(run.die_before)
        for point in run.points:
            # Of a pair one may be in the way of the other.
            planned = len(run.points) == 1
            world.kill_at(point.peer, point.label, hits=point.hits, action=point.action, restart_after=BACK_AFTER, planned=planned)

    cluster = SimulatedCluster(run.seed, story.profile, arm, story.configs if isinstance(story, Chaos) else None)
    cluster.stays_safe()
    return cluster


def outcome(run: Run) -> Outcome:
    """Make the run; AssertionError if its story does not end."""
    story = story_of(run)
    cluster = _prepared(run, story)
    number = story.tell(cluster, undisturbed=not run.die_before and not run.points)
    return Outcome(cluster, cluster.verdict(), number)


def make(run: Run, story: Story | None = None) -> Ended:
    """Make the run, or tell that story in its place, and judge it; whatever it raises is its failure."""
    began = time.process_time()
    story = story or story_of(run)
    cluster = _prepared(run, story)
    world = cluster.world
    number = 0
    lines: tuple[str, ...] = ()
    try:
        number = story.tell(cluster, undisturbed=not run.die_before and not run.points)
        report = cluster.verdict()
        problems = [f"{violation.invariant}: {violation.message}" for violation in report.failures[:3]]
        problems += [f"{invariant}: its checker fell over: {why}" for invariant, why in report.crashed.items()]
        failure = "; ".join(problems or [f"unknown: {what}" for what in report.lacking])
        if failure:
            lines = told(world.history, report.failures)
    except Exception as why:
        failure = str(why) if str(why)[:2] == "I-" else f"{type(why).__name__}: {why}"
        lines = told(world.history, ())
    passed: Counter[tuple[str, str]] = Counter()
    for (peer, label), times in world.steps.items():
        passed[peer.partition("/")[0], label.partition(" ")[0]] += times
    begun = world.notes("fault.begin")
    struck = {(r["args"]["machine"].partition("/")[0], r["args"]["label"]) for r in begun if "label" in r["args"]}
    return Ended(
        run,
        failure,
        world.effects,
        number,
        world.history_hash(),
        world.events,
        time.process_time() - began,
        lines,
        Counter(r["name"] for r in begun),
        passed,
        frozenset(struck),
    )


def seeds(first: int, count: int, profile: str | None, scenario: str = "preemption", duration: float | None = None) -> list[Run]:
    """Hostile runs of so many seeds."""
    return [Run(seed, hostile=True, profile=profile, scenario=scenario, duration=duration) for seed in range(first, first + count)]


def deaths(seed: int, profile: str | None, scenario: str = "preemption", duration: float | None = None) -> list[Run]:
    """A death before each effect that the run without faults carries out."""
    quiet = Run(seed, profile=profile, scenario=scenario, duration=duration)
    return [replace(quiet, die_before=number) for number in range(1, make(quiet).effects + 1)]


def points_of(seed: int, profile: str | None, scenario: str, duration: float | None = None) -> list[Point]:
    """Every labelled step that a run without faults passes, the first time and the last, with each kind of fault."""
    run = Run(seed, profile=profile, scenario=scenario, duration=duration)
    story = story_of(run)
    cluster = _prepared(run, story)
    story.tell(cluster, undisturbed=True)
    spots = [
        (peer, label.partition(" ")[0], hits)
        for (peer, label), times in sorted(cluster.world.steps.items())
        if not peer.startswith("client/")
        for hits in sorted({1, times})
    ]
    return [Point(peer, label, action, hits) for peer, label, hits in spots for action in ACTIONS]


def systematic(seed: int, profile: str | None, scenario: str = "preemption", duration: float | None = None) -> list[Run]:
    """Each of ``points_of``, once."""
    run = Run(seed, profile=profile, scenario=scenario, duration=duration)
    return [replace(run, points=(point,)) for point in points_of(seed, profile, scenario, duration)]


def pairs(seed: int, count: int, profile: str | None, scenario: str = "preemption", duration: float | None = None) -> list[Run]:
    """So many pairs of them, drawn from the seed."""
    points, rng = points_of(seed, profile, scenario, duration), random.Random(f"{seed}/pairs")
    drawn = [tuple(rng.sample(points, 2)) for _ in range(count)]
    return [Run(seed, profile=profile, scenario=scenario, points=pair, duration=duration) for pair in drawn]


def shrunk(run: Run) -> tuple[Run, Ended]:
    """The smallest plan found that still breaks the same thing: parts are left out, many at a time and then one by one."""
    ended = make(run)
    kept = list(range(len(story_of(run).parts))) if run.kept is None else list(run.kept)
    size = max(1, len(kept) // 2)
    while ended.failure:
        at, smaller = 0, False
        while at < len(kept):
            attempt = [*kept[:at], *kept[at + size :]]
            tried = make(replace(run, kept=tuple(attempt)))
            if tried.failure and tried.invariant == ended.invariant:
                kept, ended, smaller = attempt, tried, True
            else:
                at += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2)
    return replace(run, kept=tuple(kept)), ended


def _tidily(runs: Sequence[Run]) -> list[Ended]:
    ended = [make(run) for run in runs]
    gc.collect()
    return ended


def all_of(runs: Iterable[Run], jobs: int, minutes: float | None = None) -> Iterator[Ended]:
    """Make the runs, ``jobs`` at a time (0: one a processor), until they or the minutes are over."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    with workers(jobs or os.cpu_count() or 1, _without_garbage) as pool:
        for some in pool.map(_tidily, _chunks(runs)):
            yield from some
            if end is not None and time.monotonic() >= end:
                pool.shutdown(cancel_futures=True)
                return


def _without_garbage() -> None:
    gc.freeze()
    gc.disable()


def _chunks(runs: Iterable[Run]) -> Iterator[list[Run]]:
    rest = iter(runs)
    while chunk := list(islice(rest, COLLECT_EVERY)):
        yield chunk
