"""What ``elbowroom explore`` prints."""

import shlex
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from elbowroom.deploy.explore import run as runs
from elbowroom.sim.nemesis import steps_of

SHOWN_MAX = 10
SO_FAR_SECONDS = 60.0
"""Between two lines that say how far it is."""
KINDS = ("apiserver", "scheduler", "kubelet", "runtime")


def replay(run: runs.Run) -> bool:
    """One run again, with the verdict on its history, or the story of its failure."""
    try:
        made = runs.outcome(run)
    except AssertionError:
        _failed(runs.make(run))
        return False
    print(made.report.text())
    world = made.world
    print(f"{_named(run)}: {made.number} {runs.scenario_of(run.scenario, run.duration).counts}, history {world.history_hash()}")
    return made.report.verdict == "valid"


def shrink(run: runs.Run) -> bool:
    """Leave out of a failing plan what it fails without; True if it does not fail."""
    small, ended = runs.shrunk(run)
    if not ended.failure:
        print(f"{_named(run)} does not fail")
        return True
    parts = runs.story_of(small).parts
    print(f"{len(parts)} of {len(runs.story_of(run).parts)} parts of the plan are enough (--keep {_numbers(small.kept or ())}):")
    for part in parts:
        print(f"    {part}")
    _failed(ended)
    return False


def explore(wanted: Sequence[runs.Run], what: str, *, jobs: int, minutes: float | None, failures: Path | None = None) -> bool:
    """Many runs of one scenario; True if all went well. Each failure is appended to the file ``failures`` when it comes, so that
    it is there if the rest is not waited for."""
    began = said = time.monotonic()
    numbers: Counter[int] = Counter()
    faults: Counter[str] = Counter()
    passed: Counter[tuple[str, str]] = Counter()
    struck: set[tuple[str, str]] = set()
    failed = done = events = effects = 0
    busy = 0.0
    for ended in runs.all_of(wanted, jobs, minutes):
        done += 1
        numbers[ended.number] += 1
        faults.update(ended.faults)
        passed.update(ended.passed)
        struck |= ended.struck
        events, effects, busy = events + ended.events, effects + ended.effects, busy + ended.seconds
        if ended.failure:
            failed += 1
            if failures is not None:
                with failures.open("a", encoding="utf-8") as file:
                    file.write(_told(ended) + "\n")
            if failed <= SHOWN_MAX:
                _failed(ended)
        if time.monotonic() - said >= SO_FAR_SECONDS:
            said = time.monotonic()
            print(f"so far {done} of {len(wanted)} {what}: {failed} failed", flush=True)
    spread = ", ".join(f"{number} in {times}" for number, times in sorted(numbers.items()))
    counts = runs.scenario_of(wanted[0].scenario, wanted[0].duration).counts if wanted else "numbers"
    print(f"{done} {what}: {failed} failed; {counts}: {spread}; {time.monotonic() - began:.1f} s")
    if done:
        rates = f"{effects / max(busy, 1e-9):,.0f} steps/s and {events / max(busy, 1e-9):,.0f} events/s a core"
        print(f"{effects:,} steps of machines in {events:,} events: {rates}")
        print("faults: " + (", ".join(f"{name} {times}" for name, times in sorted(faults.items())) or "none"))
        _coverage(passed, struck)
    return not failed


def _coverage(passed: Counter[tuple[str, str]], struck: set[tuple[str, str]]) -> None:
    for kind in KINDS:
        there = [label for label in steps_of(kind) if passed[kind, label]]
        hit = [label for label in there if (kind, label) in struck]
        never = [label for label in steps_of(kind) if not passed[kind, label] and "." not in label]
        never_told = f"; never passed: {', '.join(never)}" if never else ""
        print(f"steps of {kind}: {len(there)} passed, {len(hit)} of them with a fault there{never_told}")


def _failed(ended: runs.Ended) -> None:
    print(_told(ended), flush=True)


def _told(ended: runs.Ended) -> str:
    lines = (f"{_named(ended.run)}: {ended.failure}", f"again: {again(ended.run)}", *(f"    {line}" for line in ended.story))
    return "\n".join(lines)


def again(run: runs.Run) -> str:
    """The command that makes the same run."""
    words = ["elbowroom", "explore", run.scenario, "--replay", str(run.seed)]
    words += ["--profile", run.profile] if run.profile is not None else []
    words += ["--duration", f"{run.duration:g}s"] if run.duration is not None else []
    words += ["--death", str(run.die_before)] if run.die_before else []
    words += [word for point in run.points for word in ("--at", str(point))]
    words += ["--quiet"] if not (run.hostile or run.points or run.die_before) else []
    words += ["--keep", _numbers(run.kept)] if run.kept is not None else []
    return shlex.join(words)


def _named(run: runs.Run) -> str:
    profile = run.profile or (runs.DESIGN if run.scenario in runs.SCENARIOS else "")
    parts = [f"seed {run.seed}", *([profile] if profile else [])]
    parts += [f"--duration {run.duration:g}s"] if run.duration is not None else []
    parts += [f"death before effect {run.die_before}"] if run.die_before else []
    parts += [f"--at {point}" for point in run.points]
    parts += [f"--keep {_numbers(run.kept)}"] if run.kept is not None else []
    return ", ".join(parts)


def _numbers(kept: Sequence[int]) -> str:
    return ",".join(map(str, kept)) or "none"
