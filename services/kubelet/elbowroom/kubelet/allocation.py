"""Is a resize granted? Desired to allocated (RC-60 to RC-79), as pure decisions.

All containers of a pod and its own resources are decided as one unit. The pod counts with what it *wants* (its spec), the others
with the largest of what they were allocated and what their status still shows, never with what they wish for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.objects import Container, Node, Pod, ResourceRequirements
from elbowroom.api.resources import Resources, kept_with_spec, of, qos_class, spec_requests
from elbowroom.kubelet.admission import (
    AT_EASE,
    Crowd,
    NoVictims,
    Refusal,
    is_critical,
    nobody_objects,
    refusal,
    unexpected,
    victims,
)
from elbowroom.kubelet.checkpoint import PodResources
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.machinestate import MachineState

# ---------------------------------------------------------------- layers


def desired(pod: Pod, config: KubeletConfig) -> PodResources:
    """What the spec asks for, of every container that can be resized and of the pod."""
    inits, level = config.on("InPlacePodVerticalScalingInitContainers"), config.on("InPlacePodLevelResourcesVerticalScaling")
    known = _known_layers(pod)
    layer = known.get((inits, level))
    if layer is None:
        counted = [*(c for c in pod.spec.init_containers if inits or c.is_sidecar), *pod.spec.containers]
        resources = {c.name: c.resources for c in counted}
        layer = known[inits, level] = PodResources(containers=resources, level=pod.spec.resources if level else None)
    return layer


@kept_with_spec
def _known_layers(pod: Pod) -> dict[tuple[bool, bool], PodResources]:
    """What its spec asks for by the two gates that count, as far as it was asked: pods of a template share it."""
    return {}


def with_allocation(pod: Pod, allocated: PodResources, config: KubeletConfig) -> Pod:
    """The pod as the kubelet runs it: its spec overwritten by what it was allocated (RC-4); ``pod`` itself if they are equal."""
    if same(desired(pod, config), allocated):
        return pod

    def given(containers: list[Container]) -> list[Container]:
        return [msgspec.structs.replace(c, resources=allocated.of(c.name) or c.resources) for c in containers]

    level = allocated.level if config.on("InPlacePodLevelResourcesVerticalScaling") else pod.spec.resources
    spec = msgspec.structs.replace(
        pod.spec, containers=given(pod.spec.containers), init_containers=given(pod.spec.init_containers), resources=level
    )
    return msgspec.structs.replace(pod, spec=spec)


def same(one: PodResources, other: PodResources) -> bool:
    """Do both mean the same amounts? Notation and absent maps are no difference; an absent container is one."""
    if one is other:
        return True
    mine, its = one.containers or {}, other.containers or {}
    return mine.keys() == its.keys() and all(_same(mine[name], its[name]) for name in mine) and _same(one.level, other.level)


def _same(one: ResourceRequirements | None, other: ResourceRequirements | None) -> bool:
    if one == other:
        return True
    one, other = one or ResourceRequirements(), other or ResourceRequirements()
    return of(one.requests) == of(other.requests) and of(one.limits) == of(other.limits)


def increases(wanted: Pod, allocated: Pod) -> bool:
    """RC-62: does it want more cpu or memory than it has, by the requests of the pod as a whole?"""
    new, old = spec_requests(wanted), spec_requests(allocated)
    return any(new.get(name, 0) > old.get(name, 0) for name in ("cpu", "memory"))


# ---------------------------------------------------------------- verdicts


@dataclass(frozen=True, slots=True)
class Granted:
    """It may be allocated, now."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Not now. ``cause`` is the refusing handler's reason (``OutOfcpu``), for the event."""

    cause: str
    message: str


@dataclass(frozen=True, slots=True)
class Infeasible:
    """Never, as things stand on this node. ``detail`` is the metric's label."""

    message: str
    detail: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Once these pods are gone (RC-78)."""

    victims: tuple[Pod, ...]


Verdict = Granted | Deferred | Infeasible | Evict

NO_SWAP = "In-place resize of containers with swap is not supported."
NO_POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling is disabled"
STATIC_CPU = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
STATIC_MEMORY = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'


@dataclass(frozen=True, slots=True)
class Rules:
    """What a verdict depends on besides the pods."""

    node: Node
    config: KubeletConfig
    infeasible_above_allocatable: bool = True
    """Row 2 of the profiles: the kubelet says it, since the API server does not."""
    evicts_for_resize: bool = False
    """Row 10: a critical pod's resize pushes others out."""
    state: MachineState = AT_EASE
    managers: Callable[[Pod], Refusal | None] = nobody_objects
    """What the resource managers say to the pod as it wants to be; they change nothing (XC-31, RM-29)."""


def judge(wanted: Pod, allocated: Pod, others: Crowd, rules: Rules) -> Verdict:
    """Decide the resize from ``allocated`` to ``wanted``. ``others`` are the node's active pods without this one."""
    impossible = infeasible(wanted, allocated, rules)
    if impossible is not None:
        return impossible
    refused = refusal(wanted, spec_requests(wanted), others, rules.node, state=rules.state, managers=rules.managers)
    if refused is None:
        return Granted()
    if refused.lacks and rules.evicts_for_resize and is_critical(wanted):
        chosen = victims(wanted, others, refused.lacks)
        if isinstance(chosen, NoVictims):
            refused = unexpected(chosen)
            return Deferred(refused.reason, refused.message)
        return Evict(tuple(chosen))
    return Deferred(refused.reason, refused.message)


def infeasible(wanted: Pod, allocated: Pod, rules: Rules) -> Infeasible | None:
    """RC-75, RC-76, in upstream's order."""
    config = rules.config
    if config.swap and any(_swapping(wanted, allocated, new, old) for new, old in _pairs(wanted, allocated)):
        return Infeasible(NO_SWAP, "swap_limitation")
    if not config.on("InPlacePodLevelResourcesVerticalScaling") and not _same(wanted.spec.resources, allocated.spec.resources):
        return Infeasible(NO_POD_LEVEL, "plr_feature_gate_off")
    if qos_class(wanted) == "Guaranteed":
        exclusive_cpus = config.on("InPlacePodVerticalScalingExclusiveCPUs")
        if config.static_cpu and not exclusive_cpus and _requests_differ(wanted, allocated, "cpu"):
            return Infeasible(STATIC_CPU, "guaranteed_pod_cpu_manager_static_policy")
        exclusive_memory = config.on("InPlacePodVerticalScalingExclusiveMemory")
        if config.static_memory and not exclusive_memory and _requests_differ(wanted, allocated, "memory"):
            return Infeasible(STATIC_MEMORY, "guaranteed_pod_memory_manager_static_policy")
    if rules.infeasible_above_allocatable:
        return _above_allocatable(spec_requests(wanted), of(rules.node.status.allocatable))
    return None


def _above_allocatable(request: Resources, allocatable: Resources) -> Infeasible | None:
    for name in ("memory", "cpu"):
        if request.get(name, 0) > allocatable.get(name, 0):
            return Infeasible(
                f"Node didn't have enough capacity: {name}, requested: {request[name]}, capacity: {allocatable.get(name, 0)}",
                "insufficient_node_allocatable",
            )
    return None


def _pairs(wanted: Pod, allocated: Pod) -> list[tuple[Container, Container]]:
    old = {c.name: c for c in [*allocated.spec.init_containers, *allocated.spec.containers]}
    return [(c, old[c.name]) for c in [*wanted.spec.init_containers, *wanted.spec.containers] if c.name in old]


def _requests_differ(wanted: Pod, allocated: Pod, name: str) -> bool:
    return any(
        of(new.resources.requests).get(name, 0) != of(old.resources.requests).get(name, 0) for new, old in _pairs(wanted, allocated)
    )


def _swapping(wanted: Pod, allocated: Pod, new: Container, old: Container) -> bool:
    changed = of(new.resources.requests).get("memory", 0) != of(old.resources.requests).get("memory", 0)
    return changed and not restarts_for(new, "memory") and (may_swap(wanted, new) or may_swap(allocated, old))


def may_swap(pod: Pod, container: Container) -> bool:
    """On a node with LimitedSwap: Burstable containers that ask for memory, but not for all of their limit."""
    request, limit = of(container.resources.requests).get("memory", 0), of(container.resources.limits).get("memory", 0)
    return not is_critical(pod) and qos_class(pod) == "Burstable" and request > 0 and request != limit


def restarts_for(container: Container, resource: str) -> bool:
    """Does its resizePolicy ask for a restart when ``resource`` changes (RC-6)?"""
    return any(p.resource_name == resource and p.restart_policy == "RestartContainer" for p in container.resize_policy)


# ---------------------------------------------------------------- what events tell


def summary(pod: Pod, generation: int, error: str = "") -> str:
    """RC-151: the compact JSON that resize events carry, with the resources of ``pod`` as it is given."""
    body: dict[str, Any] = {}
    if pod.spec.init_containers:
        body["initContainers"] = [_described(c) for c in pod.spec.init_containers]
    body["containers"] = [_described(c) for c in pod.spec.containers]
    body["generation"] = generation
    if error:
        body["error"] = error
    return msgspec.json.encode(body).decode()


def _described(container: Container) -> dict[str, Any]:
    parts = {"limits": container.resources.limits, "requests": container.resources.requests}
    resources = {part: dict(sorted(amounts.items())) for part, amounts in parts.items() if amounts}
    return {"name": container.name, "resources": resources}


def requested_operations(old: Pod, new: Pod) -> list[tuple[str, str, str]]:
    """What a spec change asks of each container, as ``(resource, requirement, operation)`` for the metric (RC-154)."""
    operations = []
    for now, before in _pairs(new, old):
        for resource in ("cpu", "memory"):
            for requirement in ("limits", "requests"):
                was = of(getattr(before.resources, requirement)).get(resource, 0)
                wants = of(getattr(now.resources, requirement)).get(resource, 0)
                if was != wants:
                    kind = "add" if not was else "remove" if not wants else "increase" if wants > was else "decrease"
                    operations.append((resource, requirement, kind))
    return operations
