"""A recorded run: the Notes of every incarnation of every process, in one order.

A history is a list of records, each ``{run, seed, proc, node, inc, seq, mono_ns, wall, kind, ...facts}``. ``mono_ns`` is the
monotonic clock of one machine, so it orders records of different processes there; within one incarnation ``seq`` decides.
docs/histories.md lists the kinds and their facts.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

Record = Mapping[str, Any]
T = TypeVar("T")
SHAPES_MAX = 2_000
PART_MAX = 6


@dataclass(frozen=True, slots=True)
class History:
    """All records of a run in order. ``damaged`` counts lines that could not be read (a process died while writing)."""

    records: tuple[Record, ...]
    damaged: int = 0
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What readers have worked out of the records once and use again."""
    _places: "dict[str, array[int]]" = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        places: dict[str, array[int]] = {}
        for place, record in enumerate(self.records):
            kind = record["kind"]
            if kind not in places:
                places[kind] = array("I")
            places[kind].append(place)
        object.__setattr__(self, "_places", places)

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
        places: Iterable[int] = found[0] if len(found) == 1 else sorted(place for at in found for place in at)
        return map(self.records.__getitem__, places)

    def count(self, kind: str, where: Callable[[Record], bool] | None = None) -> int:
        """How many records of that kind there are."""
        if where is None:
            return len(self._places.get(kind, ()))
        return sum(1 for record in self.kinds(kind) if where(record))

    def remembered(self, what: str, make: Callable[[], T]) -> T:
        """What ``make`` works out of the records, the first time that it is asked for."""
        if what not in self.memo:
            self.memo[what] = make()
        made: T = self.memo[what]
        return made

    def lives(self) -> Mapping[tuple[str, int], Record]:
        """The lives of processes, by name and epoch, each with the first record of it."""
        return self.remembered("lives", self._lives)

    def _lives(self) -> dict[tuple[str, int], Record]:
        first: dict[tuple[str, int], Record] = {}
        for record in self.records:
            life = (record.get("proc", ""), record.get("inc", 0))
            if life not in first:
                first[life] = record
        return first

    def counts(self) -> dict[str, int]:
        """How many there are of each kind."""
        return {kind: len(places) for kind, places in self._places.items()}


class Pool:
    """Keeps records small: equal texts and equal parts are one, and records with the same fields share the table of their names.

    A dict has its own table of names, unless it is that of an instance: those of a class share one. So a million
    answered requests take half as much, and less where they were read from files, in which no two texts are one.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._shapes: dict[tuple[str, ...], Callable[[], dict[str, Any]]] = {}
        self._parts: dict[Any, Any] = {}

    def record(self, told: Record) -> Record:
        """The same record. What it is made of must not be changed any more."""
        made = self._small(told)
        if "wall" in made and made["wall"] == made.get("mono_ns"):  # where both clocks are virtual
            made["wall"] = made["mono_ns"]
        return made

    def _small(self, told: Record) -> dict[str, Any]:
        names = tuple(told)
        made = (self._shapes.get(names) or self._shape(names))()
        for name, value in told.items():
            made[name] = value if type(value) is int or name == "op" else self._one(value)
        return made

    def _shape(self, names: tuple[str, ...]) -> Callable[[], dict[str, Any]]:
        """What makes a dict for those names."""
        if len(self._shapes) >= SHAPES_MAX:
            return dict
        made = partial(_dict_of, type("Shape", (), {}))
        self._shapes[names] = made
        return made

    def _one(self, value: Any) -> Any:
        """The one value that stands for all that are equal to it."""
        if type(value) is str:
            return self._texts.setdefault(value, value)
        if type(value) is dict and len(value) > PART_MAX:
            return self._small(value)  # there will hardly be another such
        if type(value) is dict:
            found = {self._one(name): self._one(one) for name, one in value.items()}
            return self._parts.setdefault((dict, *found, *map(_mark, found.values())), found)
        if type(value) is list or type(value) is tuple:
            ones = [self._one(one) for one in value]
            return self._parts.setdefault((type(value), *map(_mark, ones)), type(value)(ones))
        return value


def _dict_of(shape: type) -> dict[str, Any]:
    made: dict[str, Any] = object.__new__(shape).__dict__
    return made


def _mark(value: Any) -> Any:
    """What tells two values apart that stand for all that are equal to them."""
    return value if type(value) is int or type(value) is str else (type(value).__name__, id(value))


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold, and the shortest evidence: the records that show it."""

    invariant: str
    message: str
    evidence: tuple[Record, ...] = ()
