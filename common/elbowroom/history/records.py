"""A recorded run: the Notes of every incarnation of every process, in one order.

A history is a list of records, each ``{run, seed, proc, node, inc, seq, mono_ns, wall, kind, ...facts}``. ``mono_ns`` is the
monotonic clock of one machine, so it orders records of different processes there; within one incarnation ``seq`` decides.
docs/histories.md lists the kinds and their facts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class History:
    """All records of a run in order. ``damaged`` counts lines that could not be read (a process died while writing)."""

    records: tuple[Record, ...]
    damaged: int = 0
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What readers have worked out of the records once and use again."""
    _places: dict[str, list[int]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, record in enumerate(self.records):
            places[record["kind"]].append(place)
        object.__setattr__(self, "_places", dict(places))

    @staticmethod
    def of(records: Iterable[Record], damaged: int = 0) -> "History":
        """Put records into one order: by time, and within an incarnation by ``seq``."""
        ordered = sorted(records, key=lambda r: (r.get("mono_ns", 0), r.get("proc", ""), r.get("inc", 0), r.get("seq", 0)))
        return History(tuple(ordered), damaged)

    def kinds(self, *wanted: str) -> Iterator[Record]:
        """The records of these kinds, in order; a name that ends in a dot stands for all that begin so."""
        exact = {kind for kind in wanted if not kind.endswith(".")}
        starts = tuple(kind for kind in wanted if kind.endswith("."))
        found = [at for kind, at in self._places.items() if kind in exact or (starts and kind.startswith(starts))]
        places = found[0] if len(found) == 1 else sorted(place for at in found for place in at)
        return iter([self.records[place] for place in places])

    def count(self, kind: str, where: Callable[[Record], bool] = lambda _: True) -> int:
        """How many records of that kind there are."""
        return sum(1 for record in self.kinds(kind) if where(record))


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold, and the shortest evidence: the records that show it."""

    invariant: str
    message: str
    evidence: tuple[Record, ...] = ()
