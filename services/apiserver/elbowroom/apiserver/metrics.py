"""What ``/metrics`` of the API server shows: upstream's names, pure counting."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from elbowroom.apiserver.store import Store
from elbowroom.apiserver.watch import Watches
from elbowroom.wire import ApiRequest


class ApiMetrics:
    """Counts of one incarnation, and gauges read from the store when asked."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, store: Store, watches: Watches) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "apiserver_request",
            "Counter of apiserver requests broken out for each verb, group, version, resource, subresource and HTTP code.",
            ("verb", "group", "version", "resource", "subresource", "code"),
            registry=self._registry,
        )
        self._children: dict[tuple[str, str, str, str, str, int], Counter] = {}
        self._registry.register(_Gauges(store, watches))

    def count(self, request: ApiRequest, code: int) -> None:
        """A request was answered."""
        key = (request.verb, request.group, request.version, request.resource, request.subresource, code)
        child = self._children.get(key)
        if child is None:
            known = code not in (404, 405) or len(self._children) < 1000
            labels = (request.verb.upper(), *key[1:5], str(code)) if known else ("OTHER", "", "", "", "", str(code))
            child = self._requests.labels(*labels)
            if known:
                self._children[key] = child
        child.inc()

    def text(self) -> bytes:
        """The exposition."""
        lines = generate_latest(self._registry).split(b"\n")
        return b"\n".join(line for line in lines if b"_created" not in line)


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
