"""How far a chaos run is, and what became of it."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elbowroom.deploy.chaos import users
from elbowroom.deploy.chaos.plan import Drawn
from elbowroom.history.records import History
from elbowroom.history.report import Report


@dataclass
class State:
    """How far a run is, for whoever shows it. ``faults`` under way, by number; ``fired`` and ``missed`` count by kind."""

    seed: int
    plan: Sequence[Drawn]
    duration: float
    phase: str = "starting"
    began: float = field(default_factory=time.monotonic)
    under_way: dict[int, str] = field(default_factory=dict)
    fired: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    news: list[str] = field(default_factory=list)
    counts: users.Counts = field(default_factory=users.Counts)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, text: str) -> None:
        """Something worth a line."""
        with self.lock:
            self.news.append(text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run. It went well if nothing is wrong: no invariant broken, all settled, and enough happened."""

    state: State
    history: Path
    recorded: History
    report: Report
    kills: int
    seconds: float
    wrong: tuple[str, ...]

    @property
    def went_well(self) -> bool:
        return not self.wrong and self.report.held
