"""The scheduler's metrics under upstream's names (SC-147), and in profile lab one of our own documents' (profiles row 14).

A machine sees no time pass within a step, so durations of what begins and ends in one step count as zero; durations that span
calls (attempts that bind, preemptions) are those of the machine's clock.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import generate_latest

disable_created_metrics()  # type: ignore[no-untyped-call]

_LATENCY = tuple(0.001 * 2**exponent for exponent in range(15))
_SLI = tuple(0.01 * 2**exponent for exponent in range(20))
_VICTIMS = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """One scheduler's series."""

    def __init__(self, *, publishes_preemptions: bool) -> None:
        self.registry = CollectorRegistry()
        self._rejecting: dict[tuple[str, str], int] = {}
        """Who ever held pods back: told as 0 once nobody is."""

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"scheduler_{name}", text, labels, registry=self.registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"scheduler_{name}", text, labels, registry=self.registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"scheduler_{name}", text, labels, buckets=buckets, registry=self.registry)

        self._attempts = counter("schedule_attempts_total", "Number of attempts to schedule pods.", "result", "profile")
        self._attempt_seconds = histogram(
            "scheduling_attempt_duration_seconds", "Scheduling attempt latency in seconds.", _LATENCY, "result", "profile"
        )
        self._algorithm_seconds = histogram(
            "scheduling_algorithm_duration_seconds", "Scheduling algorithm latency in seconds.", _LATENCY
        )
        self._preemption_attempts = counter("preemption_attempts_total", "Total preemption attempts in the cluster till now.")
        self._victims = histogram("preemption_victims", "Number of selected preemption victims.", _VICTIMS)
        self._pending = gauge("pending_pods", "Number of pending pods, by the queue type.", "queue")
        self._incoming = counter(
            "queue_incoming_pods_total", "Number of pods added to scheduling queues by event and queue type.", "queue", "event"
        )
        self._unschedulable = gauge(
            "unschedulable_pods", "The number of unschedulable pods broken down by plugin name.", "plugin", "profile"
        )
        self._evaluations = counter(
            "plugin_evaluation_total", "Number of attempts to schedule pods by each plugin.", "plugin", "extension_point", "profile"
        )
        self._extension_seconds = histogram(
            "framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            tuple(0.0001 * 2**exponent for exponent in range(12)),
            "extension_point",
            "status",
            "profile",
        )
        self._sli_seconds = histogram(
            "pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue.",
            _SLI,
            "attempts",
        )
        self._scheduling_attempts = histogram(
            "pod_scheduling_attempts", "Number of attempts to successfully schedule a pod.", (1, 2, 4, 8, 16)
        )
        self._after_flush = counter(
            "pod_scheduled_after_flush_total", "Number of pods scheduled after being flushed from unschedulablePods."
        )
        self._in_flight = gauge("inflight_events", "Number of events currently tracked in the scheduling queue.")
        self._cache = gauge("cache_size", "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", "type")
        self._goroutines = gauge(
            "goroutines", "Number of running goroutines split by the work they do such as binding.", "operation"
        )
        self._preemption_seconds = histogram(
            "preemption_goroutines_duration_seconds",
            "Duration in seconds for running goroutines for the preemption.",
            _SLI,
            "result",
        )
        self._preemption_rounds = counter(
            "preemption_goroutines_execution_total", "Number of preemption goroutines executed.", "result"
        )
        self._event_seconds = histogram("event_handling_duration_seconds", "Event handling latency in seconds.", _LATENCY, "event")
        self._permit_seconds = histogram("permit_wait_duration_seconds", "Duration of waiting on permit.", _LATENCY, "result")
        self._preemptions = (
            counter("preemptions_total", "Preemptions by what they were for.", "operation") if publishes_preemptions else None
        )

    def attempt(self, result: str, profile: str, seconds: float = 0.0) -> None:
        """An attempt ended: scheduled, unschedulable or error."""
        self._attempts.labels(result, profile).inc()
        self._attempt_seconds.labels(result, profile).observe(seconds)

    def algorithm(self) -> None:
        self._algorithm_seconds.observe(0)

    def extension_point(self, name: str, status: str, profile: str) -> None:
        self._extension_seconds.labels(name, status, profile).observe(0)

    def evaluation(self, plugin: str, extension_point: str, profile: str) -> None:
        self._evaluations.labels(plugin, extension_point, profile).inc()

    def scheduled(self, attempts: int, seconds: float, after_flush: bool) -> None:
        """A pod was bound, so long after its first attempt."""
        self._scheduling_attempts.observe(attempts)
        self._sli_seconds.labels(str(attempts) if attempts < 16 else "16+").observe(seconds)
        if after_flush:
            self._after_flush.inc()

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

    def incoming(self, queue: str, event: str) -> None:
        self._incoming.labels(queue, event).inc()

    def handled(self, event: str) -> None:
        self._event_seconds.labels(event).observe(0)

    def permit_refused(self) -> None:
        self._permit_seconds.labels("unschedulable").observe(0)

    def expose(
        self,
        pending: dict[str, int],
        rejections: dict[tuple[str, str], int],
        sizes: dict[str, int],
        in_flight: int,
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
        self._in_flight.set(in_flight)
        return bytes(generate_latest(self.registry))
