"""How a story is told: numbered steps, each with what was seen; on a terminal in colour, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from elbowroom.deploy.show import table


class UnmetError(Exception):
    """A step did not happen; says what was seen instead."""


class Teller:
    """Tells steps. ``step`` is a context: what it says happened is told at its end, or why it did not."""

    def __init__(self) -> None:
        self._number = 0
        self._console: Any = None
        if sys.stdout.isatty():
            from rich.console import Console

            self._console = Console(highlight=False)

    def title(self, text: str) -> None:
        self._print(text, "bold")

    @contextmanager
    def step(self, text: str) -> Iterator[list[str]]:
        """A step of the story; append to the list what was seen."""
        self._number += 1
        seen: list[str] = []
        began = time.monotonic()
        try:
            yield seen
        except UnmetError as why:
            self._print(f"{self._number:3}. {text}", "bold")
            self._print(f"     NOT SO: {why}", "red")
            raise
        self._print(f"{self._number:3}. {text}", "bold", f"({time.monotonic() - began:.2f} s)")
        for line in seen:
            self._print(f"     {line}", "green")

    def rows(self, rows: Sequence[Sequence[str]], style: Callable[[str], str] | None = None) -> None:
        """A table, its first row the heading; ``style`` says how a cell is shown on a terminal."""
        if self._console is None:
            for line in table(rows).splitlines():
                self._print(f"     {line}", "")
            return
        from rich.table import Table
        from rich.text import Text

        drawn = Table(*rows[0], header_style="bold cyan", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for row in rows[1:]:
            drawn.add_row(*(Text(cell, style=style(cell) if style is not None else "") for cell in row))
        from rich.padding import Padding

        self._console.print(Padding(drawn, (0, 0, 0, 5)))

    def end(self, text: str, *, well: bool) -> None:
        self._print(text, "bold green" if well else "bold red")

    def _print(self, text: str, style: str, aside: str = "") -> None:
        if self._console is None:
            print(f"{text} {aside}".rstrip(), flush=True)
            return
        from rich.text import Text

        line = Text(text, style=style)
        if aside:
            line.append(f" {aside}", style="dim")
        self._console.print(line)
