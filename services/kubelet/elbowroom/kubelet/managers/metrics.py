"""The managers' metrics, by upstream's names (RM-34)."""

from collections.abc import Iterable
from functools import cached_property

from prometheus_client import CollectorRegistry, Gauge

from elbowroom.kubelet.tallies import Count, Spread

Tally = tuple[str, tuple[str, ...]]
"""One more of a counter, by its attribute below, with these labels."""


_BOUNDARIES = (("container", "physical_cpu"), ("container", "numa_node"), ("pod", "numa_node"))


class ManagerMetrics:
    """One kubelet's, each made when it is first touched (``kubelet.metrics.complete``).

    ``pod_level``: the gate PodLevelResourceManagers, without which its three don't exist.
    """

    def __init__(self, registry: CollectorRegistry, *, pod_level: bool) -> None:
        self._registry, self._pod_level = registry, pod_level

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Count:
        return Count(name, f"[ALPHA] {text}", labels, registry=self._registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, f"[ALPHA] {text}", labels, registry=self._registry)

    @cached_property
    def cpu_requests(self) -> Count:
        return self._counter(
            "kubelet_cpu_manager_pinning_requests_total", "The number of cpu core allocations which required pinning."
        )

    @cached_property
    def cpu_errors(self) -> Count:
        return self._counter(
            "kubelet_cpu_manager_pinning_errors_total", "The number of cpu core allocations which required pinning failed."
        )

    @cached_property
    def memory_requests(self) -> Count:
        return self._counter(
            "kubelet_memory_manager_pinning_requests_total", "The number of memory pages allocations which required pinning."
        )

    @cached_property
    def memory_errors(self) -> Count:
        return self._counter(
            "kubelet_memory_manager_pinning_errors_total",
            "The number of memory pages allocations which required pinning that failed.",
        )

    @cached_property
    def topology_requests(self) -> Count:
        return self._counter(
            "kubelet_topology_manager_admission_requests_total",
            "The number of admission requests where resources have to be aligned.",
        )

    @cached_property
    def topology_errors(self) -> Count:
        return self._counter(
            "kubelet_topology_manager_admission_errors_total",
            "The number of admission request failures where resources could not be aligned.",
        )

    @cached_property
    def duration(self) -> Spread:
        return Spread(
            "kubelet_topology_manager_admission_duration_ms",
            "[ALPHA] Duration in milliseconds to serve a pod admission request.",
            buckets=[0.05 * 2**n for n in range(15)],
            registry=self._registry,
        )

    # Some are counters upstream, without the suffix that this library would add.

    @cached_property
    def aligned(self) -> Gauge:
        made = self._gauge(
            "kubelet_container_aligned_compute_resources_count",
            "Cumulative number of aligned compute resources allocated to containers by alignment type.",
            ("scope", "boundary"),
        )
        for scope, boundary in (*_BOUNDARIES, ("container", "uncore_cache")):
            made.labels(scope, boundary).set(0)
        return made

    @cached_property
    def misaligned(self) -> Gauge:
        made = self._gauge(
            "kubelet_container_aligned_compute_resources_failure_count",
            "Cumulative number of failures to allocate aligned compute resources to containers by alignment type.",
            ("scope", "boundary"),
        )
        for scope, boundary in _BOUNDARIES:
            made.labels(scope, boundary).set(0)
        return made

    @cached_property
    def shared_pool(self) -> Gauge:
        return self._gauge(
            "kubelet_cpu_manager_shared_pool_size_millicores",
            "The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.",
        )

    @cached_property
    def exclusive(self) -> Gauge:
        return self._gauge(
            "kubelet_cpu_manager_exclusive_cpu_allocation_count",
            "The total number of CPUs exclusively allocated to containers running on this node",
        )

    @cached_property
    def per_numa(self) -> Gauge:
        return self._gauge("kubelet_cpu_manager_allocation_per_numa", "Number of CPUs allocated per NUMA node", ("numa_node",))

    @cached_property
    def allocations(self) -> Count | None:
        if not self._pod_level:
            return None
        return self._counter(
            "resource_manager_allocations_total",
            "Number of exclusive resource allocations performed by a resource manager.",
            ("resource_name", "source"),
        )

    @cached_property
    def allocation_errors(self) -> Count | None:
        if not self._pod_level:
            return None
        return self._counter(
            "resource_manager_allocation_errors_total",
            "Number of errors encountered during exclusive resource allocation.",
            ("resource_name", "source"),
        )

    @cached_property
    def assignments(self) -> Gauge | None:
        if not self._pod_level:
            return None
        return self._gauge(
            "resource_manager_container_assignments",
            "Number of containers with a specific type of resource assignment.",
            ("resource_name", "assignment_type"),
        )

    def count(self, tallies: Iterable[Tally]) -> None:
        """Count what happened."""
        for name, labels in tallies:
            metric = getattr(self, name)
            if isinstance(metric, Count):
                metric.inc(*labels)
            elif metric is not None:
                (metric.labels(*labels) if labels else metric).inc()
