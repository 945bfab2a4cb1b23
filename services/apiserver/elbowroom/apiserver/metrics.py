"""What ``/metrics`` of the API server shows: upstream's names, pure counting."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from elbowroom.apiserver.store import Store
from elbowroom.apiserver.watch import Watches
from elbowroom.wire import ApiRequest

KEYS_MAX = 1000
"""How many kinds of requests are told apart: what nobody serves is made up by clients."""

_Key = tuple[str, str, str, str, str, int]


class ApiMetrics:
    """Counts of one incarnation, and gauges read from the store when asked."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, store: Store, watches: Watches) -> None:
        self._registry = CollectorRegistry()
        self._counts: dict[_Key, int] = {}
        self._registry.register(_Requests(self._counts))
        self._registry.register(_Gauges(store, watches))

    def count(self, request: ApiRequest, code: int) -> None:
        """A request was answered."""
        key = (request.verb, request.group, request.version, request.resource, request.subresource, code)
        known = self._counts.get(key)
        if known is None and code in (404, 405) and len(self._counts) >= KEYS_MAX:
            key = ("OTHER", "", "", "", "", code)
            known = self._counts.get(key)
        self._counts[key] = 1 if known is None else known + 1

    def text(self) -> bytes:
        """The exposition."""
        lines = generate_latest(self._registry).split(b"\n")
        return b"\n".join(line for line in lines if b"_created" not in line)


class _Requests(Collector):
    def __init__(self, counts: Mapping[_Key, int]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        requests = CounterMetricFamily(
            "apiserver_request",
            "Counter of apiserver requests broken out for each verb, group, version, resource, subresource and HTTP code.",
            labels=("verb", "group", "version", "resource", "subresource", "code"),
        )
        for (verb, *rest, code), count in self._counts.items():
            requests.add_metric((verb.upper(), *rest, str(code)), count)
        yield requests


class _Gauges(Collector):
    def __init__(self, store: Store, watches: Watches) -> None:
        self._store, self._watches = store, watches

    def collect(self) -> Iterable[Metric]:
        objects = GaugeMetricFamily(
            "apiserver_storage_objects", "Number of stored objects at the time of last check split by kind.", labels=["resource"]
        )
        for resource in self._store.resources():
            objects.add_metric([resource], self._store.count(resource))
        yield objects
        yield GaugeMetricFamily("elbowroom_apiserver_watches", "Open watches.", value=len(self._watches))
        yield GaugeMetricFamily("elbowroom_apiserver_revision", "The newest revision.", value=self._store.revision)
        yield GaugeMetricFamily(
            "elbowroom_apiserver_compaction_floor", "The oldest revision that can be read.", value=self._store.floor
        )
