"""The verdict on a history: which invariants held, how much there was to judge, and whether the run counts at all."""

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from elbowroom.history import nodes, scheduling
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
    "I-34": ("api.ok",),
    "I-37": ("commit",),
    "I-38": ("commit",),
    "I-39": ("watch.event",),
    **nodes.LOOKED_AT,
    **scheduling.LOOKED_AT,
}


@dataclass(frozen=True, slots=True)
class Report:
    """What ``elbowroom check`` says. ``failures`` is empty when every invariant held."""

    records: int
    failures: tuple[Violation, ...]
    looked_at: dict[str, int]
    warnings: tuple[str, ...] = field(default=())

    @property
    def held(self) -> bool:
        return not self.failures

    def text(self) -> str:
        """The report for a person: one line an invariant, then the evidence of each failure."""
        lines = [f"{self.records} records"]
        broken = Counter(v.invariant for v in self.failures)
        for invariant, check in INVARIANTS.items():
            sentence = " ".join((check.__doc__ or "").split()).partition(": ")[2].partition(". ")[0].rstrip(".")
            verdict = f"BROKEN {broken[invariant]} times" if broken[invariant] else "held"
            lines.append(f"{invariant}  {verdict:16} {self.looked_at[invariant]:8} looked at  {sentence}")
        lines += [f"warning: {warning}" for warning in self.warnings]
        for violation in self.failures[:20]:
            lines.append(f"\n{violation.invariant}: {violation.message}")
            lines += [f"    {msgspec.json.encode(dict(record)).decode()[:600]}" for record in violation.evidence[:4]]
        if len(self.failures) > 20:
            lines.append(f"\nand {len(self.failures) - 20} more")
        return "\n".join(lines)


def judge(history: History) -> Report:
    """Judge a history against every invariant."""
    kinds = Counter(record["kind"] for record in history.records)
    failures = tuple(violation for check in INVARIANTS.values() for violation in check(history))
    warnings: list[str] = []
    if history.damaged:
        warnings.append(f"{history.damaged} lines could not be read (a process died while it wrote)")
    lives = {(r["proc"], r["inc"]) for r in history.records if "proc" in r and "inc" in r}
    ended = {(r["proc"], r["inc"]) for r in history.kinds("end")}
    if lives - ended:
        warnings.append(f"{len(lives - ended)} of {len(lives)} incarnations have no end record: killed, or still running")
    looked_at = {invariant: sum(kinds[kind] for kind in LOOKED_AT[invariant]) for invariant in INVARIANTS}
    return Report(len(history.records), failures, looked_at, tuple(warnings))


def check(path: str) -> Report:
    """Judge the history at ``path``, a directory of JSONL files or one file."""
    return judge(load(path))
