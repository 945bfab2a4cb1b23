"""Lines over time as the parts of an inline SVG: pure numbers in, coordinates and labels out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640, 200
POINTS_MAX = 400
"""A line of more is thinned: no screen shows them."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Tick:
    """A label on an axis and where it is, in pixels."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """``path`` is the ``d`` of an SVG path; ``last`` is the value at its end."""

    name: str
    path: str
    last: str


@dataclass(frozen=True, slots=True)
class Plot:
    title: str
    unit: str
    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    begun: float | None
    """Where the storm began."""


def plot(title: str, unit: str, series: Mapping[str, Points], begun: float | None = None) -> Plot | None:
    """A picture of the series (name -> (seconds, value)); None if there is nothing to show. The axes begin at 0."""
    shown = {name: _thinned(points) for name, points in series.items() if points}
    if not shown:
        return None
    right = max(x for points in shown.values() for x, _ in points) or 1.0
    top = _round_above(max(y for points in shown.values() for _, y in points))

    def x_of(seconds: float) -> float:
        return round(WIDTH * seconds / right, 1)

    def y_of(value: float) -> float:
        return round(HEIGHT - HEIGHT * value / top, 1)

    lines = tuple(
        Line(name, "M" + " L".join(f"{x_of(x)} {y_of(y)}" for x, y in points), number(points[-1][1]))
        for name, points in shown.items()
    )
    across = tuple(Tick(x_of(at), f"{number(at)} s") for at in _steps(right))
    up = tuple(Tick(y_of(at), number(at)) for at in _steps(top))
    return Plot(title, unit, lines, across, up, None if begun is None or begun > right else x_of(begun))


def number(value: float) -> str:
    """A number for people: three figures at most where it is small."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 10 else f"{value:.1f}".rstrip("0").rstrip(".")


def rates(points: Points, window: float = 1.0) -> list[tuple[float, float]]:
    """How fast a count rose: between each point and the last one at least ``window`` before it."""
    found: list[tuple[float, float]] = []
    before = 0
    for at, count in points:
        while before + 1 < len(points) and at - points[before + 1][0] >= window:
            before += 1
        then, there = points[before]
        if at - then >= window:
            found.append((at, max(0.0, (count - there) / (at - then))))
    return found


def percentiles(points: Points, share: float, window: float) -> list[tuple[float, float]]:
    """For each window of time in which something happened, the value that ``share`` of the values did not exceed, at its end."""
    buckets: dict[int, list[float]] = {}
    for at, value in points:
        buckets.setdefault(int(at // window), []).append(value)
    found = []
    for bucket, values in sorted(buckets.items()):
        ordered = sorted(values)
        found.append(((bucket + 1) * window, ordered[min(len(ordered) - 1, int(share * len(ordered)))]))
    return found


def _thinned(points: Points) -> Points:
    step = -(-len(points) // POINTS_MAX)
    return points if step <= 1 else [*points[::step], points[-1]]


def _round_above(value: float) -> float:
    """1, 2 or 5 times a power of ten that is no less than ``value``."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power < value:
        power *= 10
    while power / 10 >= value:
        power /= 10
    return next(power * part for part in (0.1, 0.2, 0.5, 1.0) if power * part >= value * (1 - 1e-9))


def _steps(top: float) -> list[float]:
    step = _round_above(top / 5)
    return [round(step * part, 9) for part in range(int(top / step + 1e-9) + 1)]
