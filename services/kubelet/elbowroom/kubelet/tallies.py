"""Counters and histograms that cost a dict each until somebody reads them.

Thousands of kubelets in a process count all the time and are asked for it hardly ever; one of the library's counters takes two
kilobytes and a lock, and half a millisecond goes into those that a node's first pod touches.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Protocol

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Registry(Protocol):
    """Where they are found when they are read."""

    def register(self, collector: Collector) -> None: ...


class Count(Collector):
    """Counts by the values of ``labels``; without labels it begins with 0."""

    def __init__(self, name: str, text: str, labels: Sequence[str] = (), *, registry: Registry) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._values: dict[tuple[str, ...], int] = {} if labels else {(): 0}
        registry.register(self)

    def inc(self, *labels: str) -> None:
        """One more."""
        self._values[labels] = self._values.get(labels, 0) + 1

    def collect(self) -> Iterator[Metric]:
        """As the library has it."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, value in self._values.items():
            family.add_metric(labels, float(value))
        yield family


class Spread(Collector):
    """Observed values in buckets, by the values of ``labels``."""

    def __init__(self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float], registry: Registry) -> None:
        self._name, self._text, self._labels, self._buckets = name, text, labels, tuple(buckets)
        self._seen: dict[tuple[str, ...], tuple[list[int], float]] = {}
        if not labels:
            self._seen[()] = self._nothing
        registry.register(self)

    @property
    def _nothing(self) -> tuple[list[int], float]:
        return [0] * (len(self._buckets) + 1), 0.0

    def observe(self, value: float, *labels: str) -> None:
        """One more value."""
        counts, total = self._seen.get(labels) or self._nothing
        counts[bisect_left(self._buckets, value)] += 1
        self._seen[labels] = counts, total + value

    def collect(self) -> Iterator[Metric]:
        """As the library has it."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        for labels, (counts, total) in self._seen.items():
            reached, rows = 0, []
            for bound, count in zip((*self._buckets, float("inf")), counts, strict=True):
                reached += count
                rows.append((floatToGoString(bound), float(reached)))  # type: ignore[no-untyped-call]
            family.add_metric(labels, rows, total)
        yield family
