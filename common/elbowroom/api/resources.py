"""Resource vectors, and how much a pod counts for.

A vector is a dict from resource name to a whole number: millicores for ``cpu``, base units (bytes, pieces) for all else. An absent
name is not the same as zero in a pod (it says "no request") but is the same when vectors are compared.

A pod that is being resized has several truths at once: what its spec wants, what its kubelet allocated, what its runtime has. The
scheduler counts the largest of the three *sums* (not the sum of the largest: two containers that move in opposite directions do
not need both peaks at once), and without the spec's once the kubelet called it Infeasible (SC-43 to SC-50).
"""

from collections.abc import Callable, Iterable, Mapping

from elbowroom.api.objects import Container, ContainerStatus, Pod, ResourceList, ResourceRequirements
from elbowroom.api.quantity import Quantity, format_bytes, format_milli, format_value, parse

Resources = dict[str, int]

NON_ZERO_CPU_MILLI = 100
NON_ZERO_MEMORY_BYTES = 200 * 1024 * 1024
_NON_ZERO: Resources = {"cpu": NON_ZERO_CPU_MILLI, "memory": NON_ZERO_MEMORY_BYTES}
_NO_RESOURCES = ResourceRequirements()

# ---------------------------------------------------------------- vectors


def amount(name: str, text: str) -> int:
    """A quantity of resource ``name`` in the vector's unit."""
    found = parse(text)
    return found.milli if name == "cpu" else found.value


def of(resource_list: Mapping[str, str] | None) -> Resources:
    """The vector of a ResourceList."""
    return {name: amount(name, text) for name, text in resource_list.items()} if resource_list else {}


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
    return _with_overhead(pod, _override(_aggregate(pod, _spec_requests), pod, _pod_level_requests(pod)))


def spec_container_requests(pod: Pod) -> Resources:
    """What the spec's containers ask for together; neither pod-level requests nor overhead."""
    return _aggregate(pod, _spec_requests)


def spec_container_limits(pod: Pod) -> Resources:
    """The limits of the spec's containers together; neither pod-level limits nor overhead."""
    return _aggregate(pod, _spec_limits)


def spec_limits(pod: Pod) -> Resources:
    """The spec's limits; overhead is added to those that are not zero."""
    level = pod.spec.resources.limits if pod.spec.resources is not None else {}
    return _limits_with_overhead(pod, _override(_aggregate(pod, _spec_limits), pod, of(level)))


def allocated_requests(pod: Pod, *, pod_level_status: bool = True) -> Resources:
    """What the kubelet allocated, as the status says; where it says nothing, the spec (nothing if Infeasible). With overhead."""
    allocated, _ = _status_requests(pod, pod_level_status)
    level = _pod_level_requests(pod)
    if pod_level_status and pod.status.allocated_resources:
        level = {**({} if is_infeasible(pod) else level), **_without_overhead(pod, of(pod.status.allocated_resources))}
    return _with_overhead(pod, _override(allocated, pod, level))


def actual_requests(pod: Pod, *, pod_level_status: bool = True) -> Resources:
    """What the runtime has, as the status says; else the allocated, else the spec (nothing if Infeasible). With overhead."""
    _, actual = _status_requests(pod, pod_level_status)
    level = _pod_level_requests(pod)
    if pod_level_status and pod.status.resources is not None:
        level = {**({} if is_infeasible(pod) else level), **_without_overhead(pod, of(pod.status.resources.requests))}
    return _with_overhead(pod, _override(actual, pod, level))


def effective_requests(pod: Pod, *, pod_level_status: bool = True) -> Resources:
    """What the pod counts for on its node, in the scheduler and in quotas: SC-43 to SC-50.

    ``pod_level_status`` is the gate InPlacePodLevelResourcesVerticalScaling: trust the status of the pod as a whole.
    """
    return _effective_requests(pod, pod_level_status, {})


def non_zero_requests(pod: Pod, *, pod_level_status: bool = True) -> Resources:
    """SC-51: the same for scoring, each container without a cpu or memory request counting 100m or 200Mi."""
    return _effective_requests(pod, pod_level_status, _NON_ZERO)


def _effective_requests(pod: Pod, pod_level_status: bool, missing: Resources) -> Resources:
    infeasible = is_infeasible(pod)
    allocated, actual = _status_requests(pod, pod_level_status, missing)
    wanted: Resources = {} if infeasible else _aggregate(pod, _spec_requests, missing)
    level = _pod_level_requests(pod)
    if level and pod_level_status:
        told = [pod.status.resources.requests] if pod.status.resources is not None else []
        told += [pod.status.allocated_resources] if pod.status.allocated_resources else []
        if told:
            level = maximum({} if infeasible else level, *(_without_overhead(pod, of(one)) for one in told))
    return _with_overhead(pod, _override(maximum(wanted, actual, allocated), pod, level))


def effective_limits(pod: Pod, *, pod_level_status: bool = True) -> Resources:
    """RC-165: the larger of the spec's and the actual limits; the actual ones alone if Infeasible."""
    infeasible = is_infeasible(pod)
    reported = pod.status.resources.limits if pod_level_status and pod.status.resources is not None else {}
    actual = of(reported) or _aggregate(pod, _actual_limits_or_nothing if infeasible else _actual_limits)
    wanted: Resources = {} if infeasible else _aggregate(pod, _spec_limits)
    level = of(pod.spec.resources.limits) if pod.spec.resources is not None else {}
    if level and reported:
        level = maximum({} if infeasible else level, of(reported))
    total = maximum(wanted, actual)
    names = pod.spec.resources.limits if pod.spec.resources is not None else {}
    total.update({name: value for name, value in level.items() if name in names and is_pod_level_resource(name)})
    return _limits_with_overhead(pod, total)


def _status_requests(pod: Pod, pod_level_status: bool, missing: Resources | None = None) -> tuple[Resources, Resources]:
    """The allocated and the actual sum: the pod's own figures where it has both (SC-49), else its containers'."""
    status = pod.status
    if pod_level_status and status.allocated_resources and status.resources is not None and status.resources.requests:
        allocated, actual = of(status.allocated_resources), of(status.resources.requests)
        return _without_overhead(pod, allocated), _without_overhead(pod, actual)
    if is_infeasible(pod):
        choices: tuple[_Choice, _Choice] = (_allocated_or_nothing, _actual_or_nothing)
    else:
        choices = (_allocated, _actual)
    return _aggregate(pod, choices[0], missing or {}), _aggregate(pod, choices[1], missing or {})


def _aggregate(pod: Pod, choose: _Choice, missing: Resources | None = None) -> Resources:
    """SC-47: the containers and sidecars together, or the hungriest moment of the initialisation if that is more."""
    statuses: dict[str, ContainerStatus] = {}
    for status in [*pod.status.container_statuses, *pod.status.init_container_statuses]:
        statuses.setdefault(status.name, status)

    def requested(container: Container) -> Resources:
        return {**(missing or {}), **of(choose(container, statuses.get(container.name)))}

    total = add(*(requested(container) for container in pod.spec.containers))
    sidecars: Resources = {}
    initialising: Resources = {}
    for container in pod.spec.init_containers:
        own = requested(container)
        if container.is_sidecar:
            total = add(total, own)
            sidecars = add(sidecars, own)
            initialising = maximum(initialising, sidecars)
        else:
            initialising = maximum(initialising, add(sidecars, own))
    return maximum(total, initialising)


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


def _pod_level_requests(pod: Pod) -> Resources:
    return of(pod.spec.resources.requests) if pod.spec.resources is not None else {}


def _override(total: Resources, pod: Pod, level: Resources) -> Resources:
    """Pod-level values replace what the containers add up to, for each resource that the pod's own requests or limits name."""
    own = pod.spec.resources or _NO_RESOURCES
    return {**total, **{n: v for n, v in level.items() if is_pod_level_resource(n) and (n in own.requests or n in own.limits)}}


def _with_overhead(pod: Pod, total: Resources) -> Resources:
    return add(total, of(pod.spec.overhead)) if pod.spec.overhead else total


def _without_overhead(pod: Pod, total: Resources) -> Resources:
    """The pod's status counts its overhead in; ours adds it last, once (SC-50)."""
    overhead = of(pod.spec.overhead)
    return {name: max(0, value - overhead.get(name, 0)) for name, value in total.items()}


def _limits_with_overhead(pod: Pod, total: Resources) -> Resources:
    overhead = of(pod.spec.overhead)
    return {name: value + overhead.get(name, 0) if value else value for name, value in total.items()}


# ---------------------------------------------------------------- quality of service


def qos_class(pod: Pod) -> str:
    """Guaranteed, Burstable or BestEffort, from the spec alone (RC-34): zero counts as absent, only cpu and memory count."""
    level = pod.spec.resources
    if level is not None and has_pod_level_resources(pod):
        each = [level]
        limited = not level.limits or len(_counted(level.limits)) == 2
    else:
        each = [container.resources for container in [*pod.spec.init_containers, *pod.spec.containers]]
        limited = all(len(_counted(resources.limits)) == 2 for resources in each)
    requests = _total(_counted(resources.requests) for resources in each)
    limits = _total(_counted(resources.limits) for resources in each)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if limited and requests == limits else "Burstable"


def _counted(resource_list: ResourceList) -> dict[str, Quantity]:
    found = {name: parse(text) for name, text in resource_list.items() if name in ("cpu", "memory")}
    return {name: quantity for name, quantity in found.items() if quantity.nanos > 0}


def _total(lists: Iterable[dict[str, Quantity]]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for quantities in lists:
        for name, quantity in quantities.items():
            total[name] = total[name] + quantity if name in total else quantity
    return total
