"""The scheduler's metrics under upstream's names (SC-147), and in profile lab one of our own documents' (profiles row 14).

A machine sees no time pass within a step, so durations of what begins and ends in one step count as zero; durations that span
calls (attempts that bind, preemptions) are those of the machine's clock. Left out is what nothing here does: batches of equal
pods, asynchronous API calls, resource claims, groups scheduled as one. What later releases add for resizes (SC-149) does not exist.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import generate_latest

disable_created_metrics()  # type: ignore[no-untyped-call]


def _exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(first * factor**exponent for exponent in range(count))


_LATENCY = _exponential(0.001, 2, 15)
_SLI = _exponential(0.01, 2, 20)
_POINT = _exponential(0.0001, 2, 12)
_PLUGIN = _exponential(0.00001, 1.5, 20)
_VICTIMS = _exponential(1, 2, 7)
SAMPLED = 10
"""One attempt of so many tells how long its plugins took, as upstream's tenth."""


_Series = TypeVar("_Series", Counter, Histogram)


class _Labelled(Generic[_Series]):
    """A metric whose series are kept at hand by their labels: to look one up in the metric takes longer than to count in it."""

    def __init__(self, metric: _Series) -> None:
        self._metric: _Series = metric
        self._children: dict[tuple[str, ...], _Series] = {}

    def labels(self, *labels: str) -> _Series:
        child = self._children.get(labels)
        if child is None:
            child = self._children[labels] = self._metric.labels(*labels)
        return child


class Metrics:
    """One scheduler's series."""

    def __init__(self, *, publishes_preemptions: bool, queueing_hints: bool = True, async_preemption: bool = True) -> None:
        self.registry = CollectorRegistry()
        self._rejecting: dict[tuple[str, str], int] = {}
        """Who ever held pods back: told as 0 once nobody is."""
        self._kept: dict[str, int] = {}
        """The events that were ever kept for pods in flight, likewise."""
        self._count = 0

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"scheduler_{name}", text, labels, registry=self.registry)

        def gauge(name: str, text: str, *labels: str, exists: bool = True) -> Gauge:
            return Gauge(f"scheduler_{name}", text, labels, registry=self.registry if exists else None)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str, exists: bool = True) -> Histogram:
            return Histogram(f"scheduler_{name}", text, labels, buckets=buckets, registry=self.registry if exists else None)

        self._attempts = _Labelled(
            counter(
                "schedule_attempts_total",
                "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, "
                "while 'error' means an internal scheduler problem.",
                "result",
                "profile",
            )
        )
        self._attempt_seconds = _Labelled(
            histogram(
                "scheduling_attempt_duration_seconds",
                "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
                _LATENCY,
                "result",
                "profile",
            )
        )
        self._algorithm_seconds = histogram(
            "scheduling_algorithm_duration_seconds", "Scheduling algorithm latency in seconds", _LATENCY
        )
        self._preemption_attempts = counter("preemption_attempts_total", "Total preemption attempts in the cluster till now")
        self._victims = histogram("preemption_victims", "Number of selected preemption victims", _VICTIMS)
        self._pending = gauge(
            "pending_pods",
            "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of pods "
            "in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler attempted to schedule and "
            "failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule because they are "
            "gated.",
            "queue",
        )
        self._incoming = _Labelled(
            counter(
                "queue_incoming_pods_total", "Number of pods added to scheduling queues by event and queue type.", "queue", "event"
            )
        )
        self._unschedulable = gauge(
            "unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all plugins that "
            "caused it to not schedule and so this metric have meaning only when broken down by plugin.",
            "plugin",
            "profile",
        )
        self._evaluations = _Labelled(
            counter(
                "plugin_evaluation_total",
                "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, Filter, "
                "PreScore, and Score).",
                "plugin",
                "extension_point",
                "profile",
            )
        )
        self._plugin_seconds = _Labelled(
            histogram(
                "plugin_execution_duration_seconds",
                "Duration for running a plugin at a specific extension point.",
                _PLUGIN,
                "plugin",
                "extension_point",
                "status",
            )
        )
        self._hint_seconds = _Labelled(
            histogram(
                "queueing_hint_execution_duration_seconds",
                "Duration for running a queueing hint function of a plugin.",
                _PLUGIN,
                "plugin",
                "event",
                "hint",
                exists=queueing_hints,
            )
        )
        self._extension_seconds = _Labelled(
            histogram(
                "framework_extension_point_duration_seconds",
                "Latency for running all plugins of a specific extension point.",
                _POINT,
                "extension_point",
                "status",
                "profile",
            )
        )
        self._sli_seconds = _Labelled(
            histogram(
                "pod_scheduling_sli_duration_seconds",
                "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve "
                "multiple scheduling attempts.",
                _SLI,
                "attempts",
            )
        )
        self._scheduling_attempts = histogram(
            "pod_scheduling_attempts", "Number of attempts to successfully schedule a pod.", _exponential(1, 2, 5)
        )
        self._after_flush = counter(
            "pod_scheduled_after_flush_total",
            "Number of pods that were successfully scheduled after being flushed from unschedulablePods due to timeout. This "
            "metric helps detect potential queueing hint misconfigurations or event handling issues.",
        )
        self._in_flight = gauge(
            "inflight_events",
            "Number of events currently tracked in the scheduling queue.",
            "event",
            exists=queueing_hints,
        )
        self._cache = gauge("cache_size", "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", "type")
        self._goroutines = gauge(
            "goroutines", "Number of running goroutines split by the work they do such as binding.", "operation"
        )
        self._preemption_seconds = histogram(
            "preemption_goroutines_duration_seconds",
            "Duration in seconds for running goroutines for the preemption.",
            _SLI,
            "result",
            exists=async_preemption,
        )
        self._preemption_rounds = Counter(
            "scheduler_preemption_goroutines_execution_total",
            "Number of preemption goroutines executed.",
            ("result",),
            registry=self.registry if async_preemption else None,
        )
        self._event_seconds = _Labelled(
            histogram("event_handling_duration_seconds", "Event handling latency in seconds.", _POINT, "event")
        )
        self._permit_seconds = histogram("permit_wait_duration_seconds", "Duration of waiting on permit.", _LATENCY, "result")
        self._preemptions = (
            counter("preemptions_total", "Preemptions by what they were for.", "operation") if publishes_preemptions else None
        )

    # ---- attempts

    def begin_attempt(self) -> None:
        """A pod is tried: the plugins that are told of next are its."""
        self._count += 1

    def attempt(self, result: str, profile: str, seconds: float = 0.0) -> None:
        """An attempt ended: scheduled, unschedulable or error."""
        self._attempts.labels(result, profile).inc()
        self._attempt_seconds.labels(result, profile).observe(seconds)

    def algorithm(self) -> None:
        """A node was looked for, in vain or not."""
        self._algorithm_seconds.observe(0)

    def extension_point(self, name: str, status: str, profile: str) -> None:
        self._extension_seconds.labels(name, status, profile).observe(0)

    def evaluation(self, plugin: str, extension_point: str, status: str, count: int, profile: str) -> None:
        """The plugin was asked so often in this attempt, with that answer (``Success``, or a refusal's code)."""
        self._evaluations.labels(plugin, extension_point, profile).inc(count)
        if self._count % SAMPLED == 1:
            self._plugin_seconds.labels(plugin, extension_point, status).observe(0)

    def scheduled(self, attempts: int, seconds: float, after_flush: bool) -> None:
        """A pod was bound, so long after its first attempt."""
        self._scheduling_attempts.observe(attempts)
        self._sli_seconds.labels(str(attempts) if attempts < 16 else "16+").observe(seconds)
        if after_flush:
            self._after_flush.inc()

    # ---- preemption

    def preemption(self) -> None:
        """Preemption was asked for, whatever came of it."""
        self._preemption_attempts.inc()

    def preempting(self, victims: int, is_resize: bool) -> None:
        """Victims are told to go."""
        self._victims.observe(victims)
        if self._preemptions is not None:
            self._preemptions.labels("in_place_resize" if is_resize else "pod").inc()

    def preempted(self, ok: bool, seconds: float) -> None:
        """A round of preemption ended."""
        result = "success" if ok else "error"
        self._preemption_seconds.labels(result).observe(seconds)
        self._preemption_rounds.labels(result).inc()

    # ---- the queue

    def incoming(self, queue: str, event: str) -> None:
        self._incoming.labels(queue, event).inc()

    def hinted(self, plugin: str, event: str, answer: str) -> None:
        self._hint_seconds.labels(plugin, event, answer).observe(0)

    def handled(self, event: str) -> None:
        self._event_seconds.labels(event).observe(0)

    def permitted(self, result: str, seconds: float) -> None:
        """A pod that had to wait for its permit got it, or was refused: ``Success`` or a refusal's code."""
        self._permit_seconds.labels(result).observe(seconds)

    def expose(
        self,
        pending: dict[str, int],
        rejections: dict[tuple[str, str], int],
        sizes: dict[str, int],
        in_flight: Mapping[str, int],
        running: dict[str, int],
    ) -> bytes:
        """The series as text; what is a level rather than a count is told now."""
        for queue, count in pending.items():
            self._pending.labels(queue).set(count)
        self._rejecting.update(rejections)
        for plugin, profile in self._rejecting:
            self._unschedulable.labels(plugin, profile).set(rejections.get((plugin, profile), 0))
        for kind, count in sizes.items():
            self._cache.labels(kind).set(count)
        for operation, count in running.items():
            self._goroutines.labels(operation).set(count)
        self._kept.update(in_flight)
        for event in self._kept:
            self._in_flight.labels(event).set(in_flight.get(event, 0))
        return bytes(generate_latest(self.registry))
