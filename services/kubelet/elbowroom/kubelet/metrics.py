"""The kubelet's metrics, by upstream's names (RC-154, RC-155, SC-150), and our own for dashboards (profiles, row 14)."""

from collections.abc import Iterable, Mapping

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

RESIZE_MS = (10, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000)
DEFERRED_SECONDS = (5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 300, 600, 1200, 1800, 3600)


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


class Metrics:
    """One kubelet's. Gauges are set when somebody reads them."""

    def __init__(self, *, resize_status: bool) -> None:
        self.registry = r = CollectorRegistry()
        self.requested = Counter(
            "kubelet_container_requested_resizes_total",
            "[ALPHA] Number of requested resizes, counted at the container level. Different resources on the same container are "
            "counted separately. The 'requirement' label refers to 'memory' or 'limits'; the 'operation' label can be one of "
            "'add', 'remove', 'increase' or 'decrease'.",
            ("resource", "requirement", "operation"),
            registry=r,
        )
        self.duration = Histogram(
            "kubelet_pod_resize_duration_milliseconds",
            "[ALPHA] Duration in milliseconds to actuate a pod resize",
            ("success",),
            buckets=RESIZE_MS,
            registry=r,
        )
        self.pending = Gauge(
            "kubelet_pod_pending_resizes", "[ALPHA] Number of pending resizes for pods.", ("reason", "priority_bucket"), registry=r
        )
        self.infeasible = Counter(
            "kubelet_pod_infeasible_resizes_total", "[ALPHA] Number of infeasible resizes for pods.", ("reason_detail",), registry=r
        )
        self.in_progress = Gauge("kubelet_pod_in_progress_resizes", "[ALPHA] Number of in-progress resizes for pods.", registry=r)
        self.accepted = Counter(
            "kubelet_pod_deferred_accepted_resizes_total",
            "[ALPHA] Cumulative number of resizes that were accepted after being deferred.",
            ("retry_trigger",),
            registry=r,
        )
        self.deferred = Histogram(
            "kubelet_pod_deferred_resize_duration_seconds",
            "[ALPHA] Duration in seconds that a pod resize was deferred.",
            ("resolution", "priority_bucket"),
            buckets=DEFERRED_SECONDS,
            registry=r,
        )
        self.operations = Counter(
            "kubelet_runtime_operations_total",
            "[ALPHA] Cumulative number of runtime operations by operation type.",
            ("operation_type",),
            registry=r,
        )
        self.operation_errors = Counter(
            "kubelet_runtime_operations_errors_total",
            "[ALPHA] Cumulative number of runtime operation errors by operation type.",
            ("operation_type",),
            registry=r,
        )
        self.preemptions = Counter(
            "kubelet_preemptions",
            "[ALPHA] Cumulative number of pod preemptions by preemption resource",
            ("preemption_signal",),
            registry=r,
        )
        self.running_pods = Gauge("kubelet_running_pods", "[ALPHA] Number of pods that have a running pod sandbox", registry=r)
        self.running_containers = Gauge(
            "kubelet_running_containers", "[ALPHA] Number of containers currently running", ("container_state",), registry=r
        )
        self._status = (
            Gauge(
                "kube_pod_container_status_resize_status",
                "The status of a container's last resize.",
                ("namespace", "pod", "container", "resize_status"),
                registry=r,
            )
            if resize_status
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
