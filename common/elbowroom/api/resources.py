"""Resource vectors, and how much a pod counts for.

A vector is a dict from resource name to a whole number: millicores for ``cpu``, base units (bytes, pieces) for all else. An absent
name is not the same as zero in a pod (it says "no request") but is the same when vectors are compared.

A pod that is being resized has several truths at once: what its spec wants, what its kubelet allocated, what its runtime has. The
scheduler counts the largest of the three *sums* (not the sum of the largest: two containers that move in opposite directions do
not need both peaks at once), and without the spec's once the kubelet called it Infeasible (SC-43 to SC-50).
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from elbowroom.api.objects import Container, ContainerStatus, Pod, ResourceList, ResourceRequirements
from elbowroom.api.quantity import BINARY_SI, Quantity, format_bytes, format_milli, format_value, milli_of, parse, value_of

Resources = dict[str, int]
Amounts = dict[str, Quantity]
"""A vector that keeps exact quantities and how they were written: for replies that quote them."""
Figure = TypeVar("Figure")

NON_ZERO_CPU_MILLI = 100
NON_ZERO_MEMORY_BYTES = 200 * 1024 * 1024
_NON_ZERO: Amounts = {
    "cpu": Quantity(NON_ZERO_CPU_MILLI * 10**6),
    "memory": Quantity(NON_ZERO_MEMORY_BYTES * 10**9, BINARY_SI),
}
_NO_RESOURCES = ResourceRequirements()
_ZERO = Quantity(0)

# ---------------------------------------------------------------- vectors


def amount(name: str, text: str) -> int:
    """A quantity of resource ``name`` in the vector's unit."""
    return milli_of(text) if name == "cpu" else value_of(text)


def of(resource_list: Mapping[str, str] | None) -> Resources:
    """The vector of a ResourceList."""
    return {name: amount(name, text) for name, text in resource_list.items()} if resource_list else {}


def amounts(resource_list: Mapping[str, str] | None) -> Amounts:
    """The exact quantities of a ResourceList."""
    return {name: parse(text) for name, text in resource_list.items()} if resource_list else {}


def counted(exact: Amounts) -> Resources:
    """Exact quantities in the vector's units, rounded up."""
    return {name: quantity.milli if name == "cpu" else quantity.value for name, quantity in exact.items()}


def resource_list(vector: Mapping[str, int]) -> ResourceList:
    """The ResourceList of a vector: the inverse of ``of``, canonical."""
    return {name: _text(name, value) for name, value in vector.items()}


def _text(name: str, value: int) -> str:
    if name == "cpu":
        return format_milli(value)
    return format_bytes(value) if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-") else format_value(value)


def add(*vectors: Mapping[str, int]) -> Resources:
    """The sum, name by name."""
    total: Resources = {}
    for vector in vectors:
        for name, value in vector.items():
            total[name] = total.get(name, 0) + value
    return total


def subtract(vector: Mapping[str, int], less: Mapping[str, int]) -> Resources:
    """``vector`` without ``less``, name by name; may become negative."""
    return {name: vector.get(name, 0) - less.get(name, 0) for name in [*vector, *(n for n in less if n not in vector)]}


def maximum(*vectors: Mapping[str, int]) -> Resources:
    """The largest value of each name."""
    largest: Resources = {}
    for vector in vectors:
        for name, value in vector.items():
            if name not in largest or value > largest[name]:
                largest[name] = value
    return largest


def lacking(request: Mapping[str, int], free: Mapping[str, int]) -> list[str]:
    """The names of which ``request`` wants more than there is; cpu and memory first, then by name. Zero is always there."""
    return sorted(
        (name for name, value in request.items() if value > 0 and value > free.get(name, 0)),
        key=lambda name: (name != "cpu", name != "memory", name),
    )


def fits(request: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Is there enough of everything?"""
    return not lacking(request, free)


# ---------------------------------------------------------------- pods


def kept_with_spec(figure: Callable[[Pod], Figure]) -> Callable[[Pod], Figure]:
    """Remember with a pod's spec, which never changes, what follows from it alone: it is asked for a dozen times a change."""
    name = f"{figure.__module__}.{figure.__qualname__}"

    @wraps(figure)
    def kept(pod: Pod) -> Figure:
        known: dict[str, Any] = vars(pod.spec)
        if name not in known:
            known[name] = figure(pod)
        found: Figure = known[name]
        return found

    return kept


_Choice = Callable[[Container, ContainerStatus | None], ResourceList]


def is_deferred(pod: Pod) -> bool:
    """SC-18: the first PodResizePending condition has the reason Deferred, whatever its status."""
    return _pending_reason(pod) == "Deferred"


def is_infeasible(pod: Pod) -> bool:
    """SC-18: the first PodResizePending condition has the reason Infeasible, whatever its status."""
    return _pending_reason(pod) == "Infeasible"


def _pending_reason(pod: Pod) -> str:
    condition = pod.condition("PodResizePending")
    return condition.reason if condition is not None else ""


def is_pod_level_resource(name: str) -> bool:
    """May ``spec.resources`` of a pod name it?"""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def has_pod_level_resources(pod: Pod) -> bool:
    """Are requests or limits set for the pod as a whole?"""
    level = pod.spec.resources
    return level is not None and any(is_pod_level_resource(name) for name in [*level.requests, *level.limits])


def spec_requests(pod: Pod) -> Resources:
    """What the spec asks for, with overhead (SC-47, SC-48)."""
    return dict(_counted_requests(pod))


@kept_with_spec
def _counted_requests(pod: Pod) -> Resources:
    return counted(_with_overhead(pod, spec_request_amounts(pod)))


def spec_limits(pod: Pod) -> Resources:
    """The spec's limits; overhead is added to those that are not zero."""
    return dict(_counted_limits(pod))


@kept_with_spec
def _counted_limits(pod: Pod) -> Resources:
    return counted(_limits_with_overhead(pod, spec_limit_amounts(pod)))


def spec_request_amounts(pod: Pod) -> Amounts:
    """What the spec asks for, without overhead, exactly."""
    return _overridden(_aggregate(pod, _spec_requests), _pod_level(pod).requests)


def spec_limit_amounts(pod: Pod) -> Amounts:
    """The spec's limits, without overhead, exactly."""
    return _overridden(_aggregate(pod, _spec_limits), _pod_level(pod).limits)


def container_request_amounts(pod: Pod) -> Amounts:
    """What the spec's containers ask for together; neither pod-level requests nor overhead."""
    return _aggregate(pod, _spec_requests)


def container_limit_amounts(pod: Pod) -> Amounts:
    """The limits of the spec's containers together; neither pod-level limits nor overhead."""
    return _aggregate(pod, _spec_limits)


def allocated_requests(pod: Pod, *, pod_level_status: bool = True) -> Resources:
    """What the kubelet allocated, as the status says; where it says nothing, the spec (nothing if Infeasible). With overhead."""
    allocated, _ = _status_requests(pod, pod_level_status, {})
    told = pod.status.allocated_resources if pod_level_status else None
    return counted(_with_overhead(pod, _told(pod, allocated, told)))


def actual_requests(pod: Pod, *, pod_level_status: bool = True) -> Resources:
    """What the runtime has, as the status says; else the allocated, else the spec (nothing if Infeasible). With overhead."""
    _, actual = _status_requests(pod, pod_level_status, {})
    told = pod.status.resources.requests if pod_level_status and pod.status.resources is not None else None
    return counted(_with_overhead(pod, _told(pod, actual, told)))


def effective_requests(pod: Pod, *, pod_level_status: bool = True) -> Resources:
    """What the pod counts for on its node, in the scheduler: SC-43 to SC-50.

    ``pod_level_status`` is the gate InPlacePodLevelResourcesVerticalScaling: trust the status of the pod as a whole.
    """
    return counted(_effective_requests(pod, pod_level_status, {}))


def non_zero_requests(pod: Pod, *, pod_level_status: bool = True) -> Resources:
    """SC-51: the same for scoring, each container without a cpu or memory request counting 100m or 200Mi."""
    return counted(_effective_requests(pod, pod_level_status, _NON_ZERO))


def effective_request_amounts(pod: Pod, *, pod_level_status: bool = True) -> Amounts:
    """``effective_requests``, exactly."""
    return _effective_requests(pod, pod_level_status, {})


def _effective_requests(pod: Pod, pod_level_status: bool, missing: Amounts) -> Amounts:
    infeasible = is_infeasible(pod)
    allocated, actual = _status_requests(pod, pod_level_status, missing)
    wanted = {} if infeasible else _aggregate(pod, _spec_requests, missing)
    total = _largest(wanted, actual, allocated)
    level = _pod_level(pod).requests
    if level:
        told = []
        if pod_level_status and pod.status.resources is not None:
            told.append(pod.status.resources.requests)
        if pod_level_status and pod.status.allocated_resources:
            told.append(pod.status.allocated_resources)
        desired = {} if infeasible and told else amounts(level)
        values = _largest(desired, *(_without_overhead(pod, amounts(one)) for one in told))
        total |= {name: value for name, value in values.items() if name in level and is_pod_level_resource(name)}
    return _with_overhead(pod, total)


def effective_limits(pod: Pod, *, pod_level_status: bool = True) -> Resources:
    """RC-165: the larger of the spec's and the actual limits; the actual ones alone if Infeasible."""
    return counted(effective_limit_amounts(pod, pod_level_status=pod_level_status))


def effective_limit_amounts(pod: Pod, *, pod_level_status: bool = True) -> Amounts:
    """``effective_limits``, exactly."""
    infeasible = is_infeasible(pod)
    told = pod.status.resources.limits if pod_level_status and pod.status.resources is not None else {}
    actual = amounts(told) or _aggregate(pod, _actual_limits_or_nothing if infeasible else _actual_limits)
    total = _largest({} if infeasible else _aggregate(pod, _spec_limits), actual)
    level = _pod_level(pod).limits
    if level:
        values = _largest({} if infeasible and told else amounts(level), amounts(told))
        total |= {name: value for name, value in values.items() if name in level and is_pod_level_resource(name)}
    return _limits_with_overhead(pod, total)


def _status_requests(pod: Pod, pod_level_status: bool, missing: Amounts) -> tuple[Amounts, Amounts]:
    """The allocated and the actual sum: the pod's own figures where it has both (SC-49), else its containers'."""
    status = pod.status
    if pod_level_status and status.allocated_resources and status.resources is not None and status.resources.requests:
        allocated, actual = amounts(status.allocated_resources), amounts(status.resources.requests)
        return _without_overhead(pod, allocated), _without_overhead(pod, actual)
    if is_infeasible(pod):
        return _aggregate(pod, _allocated_or_nothing, missing), _aggregate(pod, _actual_or_nothing, missing)
    return _aggregate(pod, _allocated, missing), _aggregate(pod, _actual, missing)


def _told(pod: Pod, total: Amounts, told: ResourceList | None) -> Amounts:
    """``total`` with the pod-level values of one status field, or of the spec where that field says nothing."""
    level = _pod_level(pod).requests
    values = {} if told and is_infeasible(pod) else amounts(level)
    values |= _without_overhead(pod, amounts(told))
    return total | {name: value for name, value in values.items() if name in level and is_pod_level_resource(name)}


def _aggregate(pod: Pod, choose: _Choice, missing: Amounts | None = None) -> Amounts:
    """SC-47: the containers and sidecars together, or the hungriest moment of the initialisation if that is more."""
    statuses: dict[str, ContainerStatus] = {}
    for status in [*pod.status.container_statuses, *pod.status.init_container_statuses]:
        statuses.setdefault(status.name, status)

    def own(container: Container) -> Amounts:
        chosen = amounts(choose(container, statuses.get(container.name)))
        return {**missing, **chosen} if missing else chosen

    total = _sum(*(own(container) for container in pod.spec.containers))
    sidecars: Amounts = {}
    initialising: Amounts = {}
    for container in pod.spec.init_containers:
        if container.is_sidecar:
            total, sidecars = _sum(total, own(container)), _sum(sidecars, own(container))
            initialising = _largest(initialising, sidecars)
        else:
            initialising = _largest(initialising, _sum(own(container), sidecars))
    return _largest(total, initialising)


def _spec_requests(container: Container, status: ContainerStatus | None) -> ResourceList:
    return container.resources.requests


def _spec_limits(container: Container, status: ContainerStatus | None) -> ResourceList:
    return container.resources.limits


def _allocated_or_nothing(container: Container, status: ContainerStatus | None) -> ResourceList:
    return (status.allocated_resources if status is not None else None) or {}


def _allocated(container: Container, status: ContainerStatus | None) -> ResourceList:
    return _allocated_or_nothing(container, status) or container.resources.requests


def _actual_or_nothing(container: Container, status: ContainerStatus | None) -> ResourceList:
    if status is not None and status.resources is not None and status.resources.requests:
        return status.resources.requests
    return _allocated_or_nothing(container, status)


def _actual(container: Container, status: ContainerStatus | None) -> ResourceList:
    return _actual_or_nothing(container, status) or container.resources.requests


def _actual_limits_or_nothing(container: Container, status: ContainerStatus | None) -> ResourceList:
    return status.resources.limits if status is not None and status.resources is not None else {}


def _actual_limits(container: Container, status: ContainerStatus | None) -> ResourceList:
    return _actual_limits_or_nothing(container, status) or container.resources.limits


def _pod_level(pod: Pod) -> ResourceRequirements:
    return pod.spec.resources or _NO_RESOURCES


def _overridden(total: Amounts, level: ResourceList) -> Amounts:
    """SC-48: pod-level values replace what the containers add up to."""
    return total | {name: value for name, value in amounts(level).items() if is_pod_level_resource(name)}


def _sum(*vectors: Amounts) -> Amounts:
    total: Amounts = {}
    for vector in vectors:
        for name, value in vector.items():
            total[name] = total[name] + value if name in total else value
    return total


def _largest(*vectors: Amounts) -> Amounts:
    largest: Amounts = {}
    for vector in vectors:
        for name, value in vector.items():
            if name not in largest or value > largest[name]:
                largest[name] = value
    return largest


def _with_overhead(pod: Pod, total: Amounts) -> Amounts:
    return _sum(total, amounts(pod.spec.overhead)) if pod.spec.overhead else total


def _without_overhead(pod: Pod, total: Amounts) -> Amounts:
    """The pod's status counts its overhead in; ours adds it last, once (SC-50)."""
    overhead = amounts(pod.spec.overhead)
    return {name: max(value - overhead[name], _ZERO) if name in overhead else value for name, value in total.items()}


def _limits_with_overhead(pod: Pod, total: Amounts) -> Amounts:
    overhead = amounts(pod.spec.overhead)
    return {name: value + overhead[name] if value and name in overhead else value for name, value in total.items()}


# ---------------------------------------------------------------- quality of service


@kept_with_spec
def qos_class(pod: Pod) -> str:
    """Guaranteed, Burstable or BestEffort, from the spec alone (RC-34): zero counts as absent, only cpu and memory count.

    Resources of the pod decide alone wherever they say anything (PL-12); an empty block is none (PL-13).
    """
    level = pod.spec.resources
    if level is not None and has_pod_level_resources(pod):
        each = [level]
        limited = not level.limits or len(_positive(level.limits)) == 2
    else:
        each = [container.resources for container in [*pod.spec.init_containers, *pod.spec.containers]]
        limited = all(len(_positive(resources.limits)) == 2 for resources in each)
    requests = _sum(*(_positive(resources.requests) for resources in each))
    limits = _sum(*(_positive(resources.limits) for resources in each))
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if limited and requests == limits else "Burstable"


def _positive(resource_list: ResourceList) -> Amounts:
    found = {name: parse(text) for name, text in resource_list.items() if name in ("cpu", "memory")}
    return {name: quantity for name, quantity in found.items() if quantity.nanos > 0}
