"""What ``elbowroom explore`` prints."""

import time
from collections import Counter

from elbowroom.deploy.explore import run as runs

SHOWN_MAX = 10


def replay(scenario: str, seed: int, profile: str) -> bool:
    """One seed again, with the verdict on its history."""
    one = runs.Run(seed, hostile=True, profile=profile, scenario=scenario)
    try:
        made = runs.outcome(one)
    except AssertionError as why:
        print(f"seed {seed}: {why}")
        return False
    print(made.report.text())
    print(f"seed {seed}: {made.number} {runs.SCENARIOS[scenario].counts}, history {made.world.history_hash()}")
    return made.report.held


def explore(scenario: str, first: int, count: int, *, jobs: int, minutes: float | None, each_effect: bool, profile: str) -> bool:
    """Many runs; True if all went well."""
    began = time.monotonic()
    wanted = runs.systematic(first, profile, scenario) if each_effect else runs.seeds(first, count, profile, scenario)
    numbers: Counter[int] = Counter()
    failed = done = 0
    for ended in runs.all_of(wanted, jobs, minutes):
        done += 1
        numbers[ended.number] += 1
        if ended.failure:
            failed += 1
            if failed <= SHOWN_MAX:
                what = f"death before effect {ended.run.die_before}" if each_effect else f"seed {ended.run.seed}"
                print(f"{what}: {ended.failure}")
    spread = ", ".join(f"{number} in {times}" for number, times in sorted(numbers.items()))
    kind = "deaths, one before each effect" if each_effect else "seeds with faults"
    print(f"{done} {kind}: {failed} failed; {runs.SCENARIOS[scenario].counts}: {spread}; {time.monotonic() - began:.1f} s")
    return not failed
