"""How a run goes, while it goes: a small table that is drawn anew on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from elbowroom.deploy.bench.figures import shown
from elbowroom.deploy.scale.drive import Run, Sample

LINE_SECONDS = 2.0
PHASES = {"pods": "pods are made", "resizes": "a storm of resizes"}


class View:
    """A context. ``tell`` takes the supervisor's events (it is what ``launch.start`` shows), ``show`` a run under way."""

    stays = False

    def __init__(self, plan_nodes: int) -> None:
        self._nodes = plan_nodes
        self._live: Any = None
        self._last = ("", 0.0)
        self.seconds_to_ready = 0.0

    def __enter__(self) -> "View":
        if sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(transient=True, refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def tell(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"event": "nodes", "ready": ready}:
                self._draw("nodes come up", {"nodes Ready": f"{ready:,} of {self._nodes:,}"})
            case {"event": "ready", "seconds": seconds}:
                self.seconds_to_ready = float(seconds)
                self.say(f"{self._nodes:,} nodes Ready after {seconds:.1f} s")
            case {"event": "note", "text": text}:
                print(text, file=sys.stderr, flush=True)

    def show(self, phase: str, run: Run) -> None:
        if run.samples:
            self._draw(PHASES.get(phase, phase), _facts(run, run.samples[-1]))

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._live is not None:
            self._live.console.print(text, highlight=False)
        else:
            print(text, flush=True)
        self._last = ("", 0.0)

    def _draw(self, phase: str, facts: Mapping[str, str]) -> None:
        if self._live is not None:
            from rich.table import Table

            drawn = Table(title=phase, show_header=False, box=None, title_justify="left", title_style="bold")
            for name, value in facts.items():
                drawn.add_row(name, value)
            self._live.update(drawn)
            return
        now = time.monotonic()
        if phase != self._last[0] or now - self._last[1] >= LINE_SECONDS:
            self._last = (phase, now)
            print(f"{phase}: {', '.join(f'{name} {value}' for name, value in facts.items())}", flush=True)


def _facts(run: Run, last: Sample) -> dict[str, str]:
    plan = run.plan
    total = 2 * plan.growing if plan.pods >= 2 * plan.growing else plan.pods
    return {
        "made": f"{last.made:,} of {plan.pods:,}",
        "bound": f"{last.bound:,}",
        "running": f"{last.running:,}",
        "resized": f"{last.in_force:,} of at most {total:,}",
        "wait for room": f"{last.deferred:,}",
        "scheduler's queues": " ".join(f"{name} {count}" for name, count in last.queues.items() if count) or "empty",
        "memory": f"{shown(sum(last.weight.memory.values()))} MiB",
    }
