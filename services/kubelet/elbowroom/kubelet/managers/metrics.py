"""The managers' metrics, by upstream's names (RM-34)."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

Tally = tuple[str, tuple[str, ...]]
"""One more of a counter, by its attribute below, with these labels."""


class ManagerMetrics:
    """One kubelet's. ``pod_level``: the gate PodLevelResourceManagers, without which its three don't exist."""

    def __init__(self, registry: CollectorRegistry, *, pod_level: bool) -> None:
        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(name, f"[ALPHA] {text}", labels, registry=registry)

        self.cpu_requests = counter(
            "kubelet_cpu_manager_pinning_requests_total", "The number of cpu core allocations which required pinning."
        )
        self.cpu_errors = counter(
            "kubelet_cpu_manager_pinning_errors_total", "The number of cpu core allocations which required pinning failed."
        )
        self.memory_requests = counter(
            "kubelet_memory_manager_pinning_requests_total", "The number of memory pages allocations which required pinning."
        )
        self.memory_errors = counter(
            "kubelet_memory_manager_pinning_errors_total",
            "The number of memory pages allocations which required pinning that failed.",
        )
        self.topology_requests = counter(
            "kubelet_topology_manager_admission_requests_total",
            "The number of admission requests where resources have to be aligned.",
        )
        self.topology_errors = counter(
            "kubelet_topology_manager_admission_errors_total",
            "The number of admission request failures where resources could not be aligned.",
        )
        self.duration = Histogram(
            "kubelet_topology_manager_admission_duration_ms",
            "[ALPHA] Duration in milliseconds to serve a pod admission request.",
            buckets=[0.05 * 2**n for n in range(15)],
            registry=registry,
        )
        # Counters upstream, without the suffix that this library would add.
        self.aligned = Gauge(
            "kubelet_container_aligned_compute_resources_count",
            "[ALPHA] Cumulative number of aligned compute resources allocated to containers by alignment type.",
            ("scope", "boundary"),
            registry=registry,
        )
        self.misaligned = Gauge(
            "kubelet_container_aligned_compute_resources_failure_count",
            "[ALPHA] Cumulative number of failures to allocate aligned compute resources to containers by alignment type.",
            ("scope", "boundary"),
            registry=registry,
        )
        self.shared_pool = Gauge(
            "kubelet_cpu_manager_shared_pool_size_millicores",
            "[ALPHA] The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.",
            registry=registry,
        )
        self.exclusive = Gauge(
            "kubelet_cpu_manager_exclusive_cpu_allocation_count",
            "[ALPHA] The total number of CPUs exclusively allocated to containers running on this node",
            registry=registry,
        )
        self.per_numa = Gauge(
            "kubelet_cpu_manager_allocation_per_numa",
            "[ALPHA] Number of CPUs allocated per NUMA node",
            ("numa_node",),
            registry=registry,
        )
        self.allocations = self.allocation_errors = self.assignments = None
        if pod_level:
            self.allocations = counter(
                "resource_manager_allocations_total",
                "Number of exclusive resource allocations performed by a resource manager.",
                ("resource_name", "source"),
            )
            self.allocation_errors = counter(
                "resource_manager_allocation_errors_total",
                "Number of errors encountered during exclusive resource allocation.",
                ("resource_name", "source"),
            )
            # A counter upstream, without the suffix that this library would add.
            self.assignments = Gauge(
                "resource_manager_container_assignments",
                "[ALPHA] Number of containers with a specific type of resource assignment.",
                ("resource_name", "assignment_type"),
                registry=registry,
            )
        for scope, boundary in (("container", "physical_cpu"), ("container", "numa_node"), ("pod", "numa_node")):
            self.aligned.labels(scope, boundary).set(0)
            self.misaligned.labels(scope, boundary).set(0)
        self.aligned.labels("container", "uncore_cache").set(0)

    def count(self, tallies: Iterable[Tally]) -> None:
        """Count what happened."""
        for name, labels in tallies:
            metric = getattr(self, name)
            if metric is not None:
                (metric.labels(*labels) if labels else metric).inc()
