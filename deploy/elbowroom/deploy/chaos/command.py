"""The commands ``elbowroom chaos ...``."""

import re
import time
from pathlib import Path

from elbowroom.deploy import page
from elbowroom.deploy.chaos import conductor, scenario, show
from elbowroom.deploy.chaos.state import Outcome
from elbowroom.deploy.errors import UserError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """``90``, ``90s``, ``1.5m`` or ``1h`` in seconds; ``UserError`` for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if found is None or float(found[1]) <= 0:
        raise UserError(f"--duration {text!r} is no span; write 60s or 5m")
    return float(found[1]) * _UNITS[found[2]]


def run(
    name_or_file: str, seed: int, duration: str | None, *, name: str, keep: bool, html: Path | None, profile: str | None = None
) -> bool:
    """One run; True if it went well."""
    wanted = scenario.load(name_or_file).under(profile)
    span = None if duration is None else seconds(duration)
    outcome = _run(wanted, seed, span, name=name, keep=keep)
    print(show.verdict(wanted.metadata.name, outcome))
    if html is not None:
        try:
            page.write(outcome.recorded, outcome.report, html)
        except OSError as why:
            raise UserError(f"--html {html}: {why.strerror}") from why
    return outcome.went_well


def _run(wanted: scenario.Scenario, seed: int, span: float | None, *, name: str = "", keep: bool = False) -> Outcome:
    with show.View(wanted.metadata.name) as view:
        return conductor.run(wanted, seed, span, name=name, keep=keep, show=view)


def listing() -> str:
    """The built-in scenarios, each with what it is about."""
    loaded = [scenario.load(name) for name in scenario.names()]
    width = max(len(one.metadata.name) for one in loaded)
    return "\n".join(f"{one.metadata.name.ljust(width)}  {' '.join(one.spec.about.split())}" for one in loaded)


def marathon(minutes: float, kills: int, first_seed: int, only: list[str], profile: str | None = None) -> bool:
    """Scenario after scenario until the time is over or so many processes were killed; True if all went well."""
    names = only or scenario.names()
    loaded = [scenario.load(name).under(profile) for name in names]
    end = time.monotonic() + minutes * 60
    died = runs = writes = records = 0
    seed = first_seed
    while time.monotonic() < end and died < kills:
        for wanted in loaded:
            left = end - time.monotonic()
            if left <= 0 or died >= kills:
                break
            outcome = _run(wanted, seed, min(wanted.spec.duration, max(left, 5.0)))
            runs, died, writes = runs + 1, died + outcome.kills, writes + outcome.state.counts.acknowledged
            records += len(outcome.recorded.records)
            print(
                f"{show.verdict(wanted.metadata.name, outcome)}\nso far: {runs} runs, {died} processes died, {writes} writes",
                flush=True,
            )
            if not outcome.went_well:
                return False
        seed += 1
    print(
        f"{runs} runs, {died} processes died, {writes} acknowledged writes, {records} records: nothing lost, every invariant held"
    )
    return True
