"""The kubelet's metrics, by upstream's names (RC-154, RC-155, SC-150), and our own for dashboards (profiles, row 14)."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, Metric, generate_latest
from prometheus_client.registry import Collector

from elbowroom.kubelet.tallies import Count, Spread

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

RESIZE_MS = (10, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000)
DEFERRED_SECONDS = (5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 300, 600, 1200, 1800, 3600)
REJECTIONS = frozenset(
    {
        "AppArmor",
        "Evicted",
        "InitContainerRestartPolicyForbidden",
        "InvalidNodeInfo",
        "NodeShutdown",
        "OutOfcpu",
        "OutOfephemeral-storage",
        "OutOfmemory",
        "OutOfpods",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SupplementalGroupsPolicyNotSupported",
        "SysctlForbidden",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType",
        "UnknownReason",
    }
)
"""Reasons of a rejection that are counted by their name."""


def priority_bucket(priority: int) -> str:
    """SC-150."""
    if priority >= 2_000_000_000:
        return "system-critical"
    if priority >= 100_000:
        return "high"
    if priority >= 1:
        return "medium"
    if priority == 0:
        return "normal"
    return "low" if priority > -1000 else "very-low"


def rejection(reason: str) -> str:
    """The label for a rejection: there are only so many, since a reason may be made of any name."""
    if reason in REJECTIONS:
        return reason
    return "OutOfExtendedResources" if reason.startswith("OutOf") else "Other"


class LateRegistry(CollectorRegistry):
    """Costs nothing until something is registered, and no more than its place in a list if that is a tally."""

    def __init__(self) -> None:
        self._is_made = False
        self._tallies: tuple[Collector, ...] = ()

    def register(self, collector: Collector) -> None:
        if isinstance(collector, Count | Spread):
            self._tallies = (*self._tallies, collector)
            return
        if not self._is_made:
            super().__init__()
            self._is_made = True
        super().register(collector)

    def collect(self) -> Iterator[Metric]:
        for tally in self._tallies:
            yield from tally.collect()
        if self._is_made:
            yield from super().collect()


def complete(metrics: object) -> None:
    """Make those of somebody's metrics that were not touched yet: they are exposed all the same."""
    for name, made in vars(type(metrics)).items():
        if isinstance(made, cached_property):
            getattr(metrics, name)


class Metrics:
    """One kubelet's. Gauges are set when somebody reads them, and each metric is made when it is first touched: all of them take
    thirty kilobytes, and most kubelets of thousands in a process never are asked."""

    def __init__(self, *, resize_status: bool) -> None:
        self.registry = LateRegistry()
        self._resize_status = resize_status

    @cached_property
    def requested(self) -> Count:
        return Count(
            "kubelet_container_requested_resizes_total",
            "[ALPHA] Number of requested resizes, counted at the container level. Different resources on the same container are "
            "counted separately. The 'requirement' label refers to 'memory' or 'limits'; the 'operation' label can be one of "
            "'add', 'remove', 'increase' or 'decrease'.",
            ("resource", "requirement", "operation"),
            registry=self.registry,
        )

    @cached_property
    def duration(self) -> Spread:
        return Spread(
            "kubelet_pod_resize_duration_milliseconds",
            "[ALPHA] Duration in milliseconds to actuate a pod resize",
            ("success",),
            buckets=RESIZE_MS,
            registry=self.registry,
        )

    @cached_property
    def pending(self) -> Gauge:
        return Gauge(
            "kubelet_pod_pending_resizes",
            "[ALPHA] Number of pending resizes for pods.",
            ("reason", "priority_bucket"),
            registry=self.registry,
        )

    @cached_property
    def infeasible(self) -> Count:
        return Count(
            "kubelet_pod_infeasible_resizes_total",
            "[ALPHA] Number of infeasible resizes for pods.",
            ("reason_detail",),
            registry=self.registry,
        )

    @cached_property
    def in_progress(self) -> Gauge:
        return Gauge("kubelet_pod_in_progress_resizes", "[ALPHA] Number of in-progress resizes for pods.", registry=self.registry)

    @cached_property
    def accepted(self) -> Count:
        return Count(
            "kubelet_pod_deferred_accepted_resizes_total",
            "[ALPHA] Cumulative number of resizes that were accepted after being deferred.",
            ("retry_trigger",),
            registry=self.registry,
        )

    @cached_property
    def deferred(self) -> Spread:
        return Spread(
            "kubelet_pod_deferred_resize_duration_seconds",
            "[ALPHA] Duration in seconds that a pod resize was deferred.",
            ("resolution", "priority_bucket"),
            buckets=DEFERRED_SECONDS,
            registry=self.registry,
        )

    @cached_property
    def operations(self) -> Count:
        return Count(
            "kubelet_runtime_operations_total",
            "[ALPHA] Cumulative number of runtime operations by operation type.",
            ("operation_type",),
            registry=self.registry,
        )

    @cached_property
    def operation_errors(self) -> Count:
        return Count(
            "kubelet_runtime_operations_errors_total",
            "[ALPHA] Cumulative number of runtime operation errors by operation type.",
            ("operation_type",),
            registry=self.registry,
        )

    @cached_property
    def preemptions(self) -> Count:
        return Count(
            "kubelet_preemptions",
            "[ALPHA] Cumulative number of pod preemptions by preemption resource",
            ("preemption_signal",),
            registry=self.registry,
        )

    @cached_property
    def rejections(self) -> Count:
        return Count(
            "kubelet_admission_rejections_total",
            "[ALPHA] Cumulative number pod admission rejections by the Kubelet.",
            ("reason",),
            registry=self.registry,
        )

    @cached_property
    def running_pods(self) -> Gauge:
        return Gauge("kubelet_running_pods", "[ALPHA] Number of pods that have a running pod sandbox", registry=self.registry)

    @cached_property
    def running_containers(self) -> Gauge:
        return Gauge(
            "kubelet_running_containers",
            "[ALPHA] Number of containers currently running",
            ("container_state",),
            registry=self.registry,
        )

    @cached_property
    def _status(self) -> Gauge | None:
        return (
            Gauge(
                "kube_pod_container_status_resize_status",
                "The status of a container's last resize.",
                ("namespace", "pod", "container", "resize_status"),
                registry=self.registry,
            )
            if self._resize_status
            else None
        )

    def exposition(
        self,
        pending: Mapping[tuple[str, str], int],
        in_progress: int,
        pods: int,
        containers: Mapping[str, int],
        statuses: Iterable[tuple[str, str, str, str]],
    ) -> bytes:
        """The text format, with the gauges at these values. ``pending`` is by reason and priority bucket, ``statuses`` are
        (namespace, pod, container, resize status)."""
        complete(self)
        self.pending.clear()
        for labels, count in pending.items():
            self.pending.labels(*labels).set(count)
        self.in_progress.set(in_progress)
        self.running_pods.set(pods)
        self.running_containers.clear()
        for state, count in containers.items():
            self.running_containers.labels(state).set(count)
        if self._status is not None:
            self._status.clear()
            for labels4 in statuses:
                self._status.labels(*labels4).set(1)
        return generate_latest(self.registry)


_OPERATION_TYPES = {
    "RunPodSandbox": "run_podsandbox",
    "StopPodSandbox": "stop_podsandbox",
    "RemovePodSandbox": "remove_podsandbox",
    "CreateContainer": "create_container",
    "StartContainer": "start_container",
    "StopContainer": "stop_container",
    "RemoveContainer": "remove_container",
    "UpdateContainerResources": "update_container",
    "UpdatePodSandboxResources": "update_podsandbox_resources",
    "PodState": "podsandbox_status",
    "PodStats": "podsandbox_stats",
    "ListAll": "list_podsandbox",
    "SetPodCgroup": "set_pod_cgroup",
    "UpdateWorkload": "update_workload",
}


def operation_type(method: str) -> str:
    """The label ``operation_type`` of a runtime call."""
    return _OPERATION_TYPES.get(method, method)
