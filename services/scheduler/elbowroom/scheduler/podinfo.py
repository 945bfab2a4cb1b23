"""A pod as the scheduler reads it, worked out once per revision."""

from collections.abc import Sequence

from msgspec.structs import replace

from elbowroom.api import resources
from elbowroom.api.clock import parse_time
from elbowroom.api.objects import Container, Pod, PodAffinityTerm, PodCondition, WeightedPodAffinityTerm
from elbowroom.api.resources import Resources

RESIZE_PREEMPTION_DISABLED = "PodResizePreemptionDisabled"
Port = tuple[str, str, int]
"""Protocol, host address (``0.0.0.0`` for any) and host port."""


class PodInfo:
    """A pod with its requests: ``want`` is asked for in its spec, ``requests`` is what it counts with on its node (SC-43).

    Immutable by agreement: a new revision of the pod is a new ``PodInfo``.
    """

    __slots__ = (
        "affinity_terms",
        "anti_affinity_terms",
        "has_affinity",
        "key",
        "non_zero",
        "pod",
        "ports",
        "preferred_affinity",
        "preferred_anti_affinity",
        "priority",
        "requests",
        "start",
        "uid",
        "want",
    )

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.uid = pod.uid
        self.key = pod.key
        self.priority = pod.priority
        self.want: Resources = resources.spec_requests(pod)
        # Without a node, or a word about resources in the status, there is nothing else to count.
        told = _tells_of_resources(pod)
        self.requests: Resources = resources.effective_requests(pod) if pod.spec.node_name and told else self.want
        self.non_zero: Resources = resources.non_zero_requests(pod) if told or not _names_both(pod) else self.want
        self.ports: tuple[Port, ...] = _ports_of(pod.spec.containers) + _ports_of(
            [container for container in pod.spec.init_containers if container.is_sidecar]
        )
        affinity = pod.spec.affinity
        near = affinity.pod_affinity if affinity else None
        apart = affinity.pod_anti_affinity if affinity else None
        self.affinity_terms: Sequence[PodAffinityTerm] = near.required if near else ()
        self.anti_affinity_terms: Sequence[PodAffinityTerm] = apart.required if apart else ()
        self.preferred_affinity: Sequence[WeightedPodAffinityTerm] = near.preferred if near else ()
        self.preferred_anti_affinity: Sequence[WeightedPodAffinityTerm] = apart.preferred if apart else ()
        self.has_affinity = bool(
            self.affinity_terms or self.anti_affinity_terms or self.preferred_affinity or self.preferred_anti_affinity
        )
        """Does any other pod matter to it, as a wish or as a condition?"""
        self.start = _start_of(pod)
        """``status.startTime`` in nanoseconds, if it has started."""

    def at(self, node: str) -> "PodInfo":
        """The same pod as if it were on that node already."""
        twin = object.__new__(PodInfo)
        for name in PodInfo.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.pod = replace(self.pod, spec=replace(self.pod.spec, node_name=node))
        return twin

    def held(self) -> Resources:
        """What the kubelet counts another pod with: max(allocated, actual), without its desire (SC-53)."""
        return resources.maximum(resources.allocated_requests(self.pod), resources.actual_requests(self.pod))

    def started(self, now: int) -> int:
        """When it started; a pod that has not starts now (SC-110)."""
        return now if self.start is None else self.start


def _tells_of_resources(pod: Pod) -> bool:
    """Does the status add anything to what the spec asks for (SC-44 to SC-49)?"""
    status = pod.status
    return bool(
        status.container_statuses
        or status.init_container_statuses
        or status.allocated_resources
        or status.resources is not None
        or resources.is_infeasible(pod)  # then the spec's wish does not count (SC-45)
    )


def _names_both(pod: Pod) -> bool:
    """Does every container ask for cpu and memory, so that none gets a size for scores (SC-51)?"""
    return all(
        "cpu" in container.resources.requests and "memory" in container.resources.requests
        for container in (*pod.spec.containers, *pod.spec.init_containers)
    )


def _start_of(pod: Pod) -> int | None:
    if pod.status.start_time is None:
        return None
    try:
        return parse_time(pod.status.start_time)
    except ValueError:
        return None  # nonsense of somebody who writes statuses by hand


def is_deferred(pod: Pod) -> bool:
    """Its first ``PodResizePending`` says Deferred, whatever the condition's status (SC-18)."""
    return resources.is_deferred(pod)


def is_preemption_disabled(pod: Pod) -> bool:
    """Profile lab: its kubelet told that its node's policy forbids preemption for its resize (profiles row 3)."""
    condition: PodCondition | None = pod.condition(RESIZE_PREEMPTION_DISABLED)
    return condition is not None and condition.status == "True"


def _ports_of(containers: list[Container]) -> tuple[Port, ...]:
    return tuple(
        (port.protocol or "TCP", port.host_ip or "0.0.0.0", port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )
