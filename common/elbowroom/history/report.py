"""The verdict on a history: which invariants held, how much there was to judge, and whether the run counts at all."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from elbowroom.history import bounds, nodes, paging, pods, progress, scheduling, serving, watching
from elbowroom.history.files import load
from elbowroom.history.invariants import INVARIANTS
from elbowroom.history.records import History, Violation

LOOKED_AT = {
    "I-01": ("kl.alloc",),
    "I-03": ("kl.alloc", "kl.actuated"),
    "I-04": ("kl.alloc",),
    "I-05": ("rt.create", "rt.update.begin"),
    "I-07": ("ckpt.loaded",),
    "I-22": ("sch.plan",),
    "I-23": ("sch.plan",),
    "I-30": ("commit",),
    **nodes.LOOKED_AT,
    **progress.LOOKED_AT,
    **pods.LOOKED_AT,
    **scheduling.LOOKED_AT,
    **serving.LOOKED_AT,
    **watching.LOOKED_AT,
    **paging.LOOKED_AT,
    **bounds.LOOKED_AT,
}


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one invariant: ``word`` is ``held``, ``unknown`` or ``broken`` (so many ``times``); ``sentence`` is what must
    hold."""

    invariant: str
    word: str
    times: int
    looked_at: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Report:
    """What ``elbowroom check`` says. ``failures`` is empty when no invariant was seen broken; ``crashed`` tells of checkers that
    fell over, whose invariants nobody knows about; ``lacking`` says what should have happened for the run to count."""

    records: int
    failures: tuple[Violation, ...]
    looked_at: dict[str, int]
    warnings: tuple[str, ...] = field(default=())
    crashed: Mapping[str, str] = field(default_factory=dict)
    lacking: tuple[str, ...] = field(default=())

    @property
    def held(self) -> bool:
        """Every checker came to its end and found nothing."""
        return not self.failures and not self.crashed

    @property
    def verdict(self) -> str:
        """The worst of all: ``broken``; ``unknown`` if a checker fell over or too little happened; ``valid``."""
        if self.failures:
            return "broken"
        return "unknown" if self.crashed or self.lacking else "valid"

    def lines(self) -> list["Line"]:
        """What became of each invariant."""
        broken = Counter(violation.invariant for violation in self.failures)
        return [
            Line(
                invariant,
                "broken" if broken[invariant] else "unknown" if invariant in self.crashed else "held",
                broken[invariant],
                self.looked_at[invariant],
                " ".join((check.__doc__ or "").split()).partition(": ")[2].partition(". ")[0].rstrip("."),
            )
            for invariant, check in INVARIANTS.items()
        ]

    def text(self) -> str:
        """The report for a person: one line an invariant, then the evidence of each failure."""
        lines = [f"{self.records} records: {self.verdict}"]
        for line in self.lines():
            verdict = f"BROKEN {line.times} times" if line.word == "broken" else line.word
            lines.append(f"{line.invariant}  {verdict:16} {line.looked_at:8} looked at  {line.sentence}")
        lines += [f"unknown: the checker of {invariant} fell over: {why}" for invariant, why in self.crashed.items()]
        lines += [f"unknown: {what}" for what in self.lacking]
        lines += [f"warning: {warning}" for warning in self.warnings]
        for violation in self.failures[:20]:
            lines.append(f"\n{violation.invariant}: {violation.message}")
            lines += [f"    {msgspec.json.encode(dict(record)).decode()[:600]}" for record in violation.evidence[:4]]
        if len(self.failures) > 20:
            lines.append(f"\nand {len(self.failures) - 20} more")
        return "\n".join(lines)


def judge(history: History) -> Report:
    """Judge a history against every invariant."""
    kinds = Counter(history.counts())
    failures: list[Violation] = []
    crashed: dict[str, str] = {}
    for invariant, check in INVARIANTS.items():
        try:
            failures += check(history)
        except Exception as why:  # an old or damaged history may lack what a checker reads
            crashed[invariant] = f"{type(why).__name__}: {why}"
    warnings: list[str] = []
    if history.damaged:
        warnings.append(f"{history.damaged} lines could not be read (a process died while it wrote)")
    lives = {life for life, record in history.lives().items() if "proc" in record and "inc" in record}
    ended = {(r["proc"], r["inc"]) for r in history.kinds("end")}
    if lives - ended:
        warnings.append(f"{len(lives - ended)} of {len(lives)} incarnations have no end record: killed, or still running")
    looked_at = {invariant: sum(kinds[kind] for kind in LOOKED_AT[invariant]) for invariant in INVARIANTS}
    return Report(len(history.records), tuple(failures), looked_at, tuple(warnings), crashed, tuple(_lacking(history)))


def _lacking(history: History) -> Iterator[str]:
    """A run counts only if something was written, a pod was allocated something, and every planned fault came."""
    if not history.count("commit"):
        yield "nothing was written"
    if not history.count("kl.alloc"):
        yield "no pod was allocated anything"
    begun = [(record["name"], record["args"]) for record in history.kinds("fault.begin")]
    for planned in history.kinds("fault.planned"):
        if not any(name == planned["name"] and planned["args"].items() <= args.items() for name, args in begun):
            yield f"a planned fault never came: {planned['name']} {planned['args']}"


def check(path: str) -> Report:
    """Judge the history at ``path``, a directory of JSONL files or one file."""
    return judge(load(path))
