"""What ``elbowroom chaos run`` shows: a live view on a terminal, plain lines elsewhere, and the verdict."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from elbowroom.deploy.chaos.background import Background
from elbowroom.deploy.chaos.state import Outcome, State

REFRESH_SECONDS = 0.25
NEWS_SHOWN = 8


@contextmanager
def shown(state: State, show: Callable[[State], None]) -> Iterator[None]:
    """Call ``show(state)`` several times a second from a thread until left."""

    def refresh(over: threading.Event) -> None:
        while not over.wait(REFRESH_SECONDS):
            show(state)
        show(state)

    showing = Background(refresh)
    try:
        yield
    finally:
        showing.end()


class View:
    """A context around a run; call it with the state."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._live: Any = None
        self._told = 0
        self._phase = ""

    def __enter__(self) -> "View":
        if sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(transient=True, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, state: State) -> None:
        if self._live is not None:
            self._live.update(self._table(state))
            return
        if state.phase != self._phase:
            self._phase = state.phase
            print(f"{self._title}: {state.phase}", flush=True)
        with state.lock:
            news, self._told = state.news[self._told :], len(state.news)
        for line in news:
            print(f"  {line}", flush=True)

    def _table(self, state: State) -> Any:
        from rich.table import Table

        with state.lock:
            under_way, news = list(state.under_way.values()), state.news[-NEWS_SHOWN:]
            fired, missed = dict(state.fired), sum(state.missed.values())
        passed = min(time.monotonic() - state.began, state.duration)
        table = Table(title=f"{self._title}, seed {state.seed}: {state.phase}", show_header=False, title_justify="left")
        table.add_row("time", f"{passed:.0f} of {state.duration:.0f} s")
        counts = state.counts
        table.add_row("writes", f"{counts.acknowledged} acknowledged, {counts.unanswered} unanswered, refused {counts.refused}")
        table.add_row("faults", ", ".join(f"{kind} {number}" for kind, number in sorted(fired.items())) or "none yet")
        if missed:
            table.add_row("without effect", str(missed))
        table.add_row("under way", "\n".join(under_way) or "-")
        table.add_row("last", "\n".join(news) or "-")
        return table


def verdict(title: str, outcome: Outcome) -> str:
    """What is printed at the end: figures, then what was wrong, with the seed that repeats the plan."""
    state, counts = outcome.state, outcome.state.counts
    fired = ", ".join(f"{kind} {number}" for kind, number in sorted(state.fired.items())) or "none"
    lines = [
        f"{title}, seed {state.seed}: {counts.acknowledged} writes acknowledged, {counts.unanswered} unanswered,"
        f" {counts.visitors} visitors; {outcome.kills} processes died; faults: {fired}",
        f"{len(outcome.recorded.records)} records, {outcome.seconds:.1f} s in all",
    ]
    lines += [f"wrong: {line}" for line in outcome.wrong]
    lines.append(outcome.report.text() if not outcome.report.held else "every invariant holds")
    if not outcome.went_well:
        lines.append(f"the history is {outcome.history}")
    return "\n".join(lines)
