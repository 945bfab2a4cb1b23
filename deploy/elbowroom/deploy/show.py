"""What people see: progress while a cluster comes up, and its status as a table."""

import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any


class Progress:
    """How a cluster comes up: a bar on a terminal, plain lines elsewhere (``quiet``: nothing but the notes)."""

    def __init__(self, name: str, *, quiet: bool = False) -> None:
        self._name, self._quiet = name, quiet
        self.stays = False
        """The command does not return when all is Ready."""
        self._bar: Any = None
        self._task: Any = None
        self._nodes = (-1, -1)

    def __enter__(self) -> "Progress":
        if not self._quiet and sys.stdout.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(f"cluster {self._name}: control plane", total=None)
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    def tell(self, event: Mapping[str, Any]) -> None:
        """Show one of the supervisor's events."""
        match event:
            case {"event": "serving", "server": server}:
                self._line(f"API server: {server}")
            case {"event": "nodes", "ready": ready, "total": total}:
                self._on_nodes(ready, total)
            case {"event": "ready", "kubeconfig": kubeconfig, "nodes": nodes, "seconds": seconds}:
                self._stop()
                if not self._quiet:
                    print(f"cluster {self._name}: {nodes} nodes Ready after {seconds:.1f} s")
                    print(f"kubeconfig: {kubeconfig}")
                    if self.stays:
                        print("Ctrl-C takes it down.")
                    sys.stdout.flush()
            case {"event": "note", "text": text}:
                print(text, file=sys.stderr, flush=True)

    def _on_nodes(self, ready: int, total: int) -> None:
        if (ready, total) == self._nodes:
            return
        self._nodes = (ready, total)
        if self._bar is not None:
            self._bar.update(self._task, description=f"cluster {self._name}: nodes Ready", completed=ready, total=max(total, 1))
        elif total <= 10 or ready == total or ready % max(1, total // 10) == 0:
            self._line(f"nodes Ready: {ready}/{total}")

    def _line(self, text: str) -> None:
        if self._bar is None and not self._quiet:
            print(text, flush=True)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def status_text(status: Mapping[str, Any]) -> str:
    """``status`` for people."""
    components = status["components"]
    rows = [["COMPONENT", "STATE", "PID", "RESTARTS"]]
    rows += [[c["name"], c["state"], str(c["pid"] or "-"), str(c["restarts"])] for c in components]
    if any("place" in c for c in components):
        rows[0] += ["RAY NODE", "IP"]
        for row, place in zip(rows[1:], (c["place"] or {} for c in components), strict=True):
            row += [place.get("node", "-")[:12], place.get("ip", "-")]
    nodes = status["nodes"]
    return "\n".join(
        [
            f"cluster     {status['name']}: {nodes['ready']} of {nodes['total']} nodes Ready",
            f"server      {status['server']}",
            f"kubeconfig  {status['kubeconfig']}",
            f"history     {status['history']}",
            "",
            table(rows),
        ]
    )


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
