"""The page's axis of time: quiet stretches shortened, so that milliseconds and minutes fit one picture."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import log2

PER_DOUBLING = 9.0
"""Pixels that a gap between two moments gets for each doubling of its milliseconds."""
NARROWEST = 1.5
TICK_EVERY = 110.0
MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """Where a moment lies. The distance of two noted moments is the logarithm of the time: order is kept, length is not."""

    moments: tuple[int, ...]
    places: tuple[float, ...]

    @staticmethod
    def over(moments: Iterable[int]) -> "Axis":
        """An axis on which each of these moments (ns) has a place of its own. ``ValueError`` if there is none."""
        known = sorted(set(moments))
        if not known:
            raise ValueError("an axis needs a moment")
        places, x = [0.0], 0.0
        for before, after in pairwise(known):
            x += max(NARROWEST, PER_DOUBLING * log2(1 + (after - before) / MS))
            places.append(round(x, 1))
        return Axis(tuple(known), tuple(places))

    @property
    def width(self) -> float:
        return self.places[-1]

    @property
    def begin(self) -> int:
        return self.moments[0]

    @property
    def end(self) -> int:
        return self.moments[-1]

    def x(self, moment: int) -> float:
        """Pixels from the left; a moment outside is at the edge."""
        right = bisect_right(self.moments, moment)
        if right == 0:
            return 0.0
        if right == len(self.moments):
            return self.width
        before, after = self.moments[right - 1], self.moments[right]
        share = (moment - before) / (after - before)
        return round(self.places[right - 1] + share * (self.places[right] - self.places[right - 1]), 1)

    def since(self, moment: int) -> str:
        """How long after the beginning, in seconds with milliseconds: ``+1.250``."""
        return f"+{(moment - self.begin) / 1e9:.3f}"

    def ticks(self) -> tuple[Tick, ...]:
        """Noted moments to write the time at, none closer to the last than a label is wide."""
        chosen: list[Tick] = []
        for moment, place in zip(self.moments, self.places, strict=True):
            if not chosen or place - chosen[-1].x >= TICK_EVERY:
                chosen.append(Tick(place, self.since(moment)))
        return tuple(chosen)
