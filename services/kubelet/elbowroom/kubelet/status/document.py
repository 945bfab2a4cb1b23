"""The status document: what the kubelet says of a pod, its containers and its resources (RC-11 to RC-13, RC-134 to RC-147)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

from msgspec.structs import replace

from elbowroom.api.objects import Container, Pod, ResourceList, ResourceRequirements
from elbowroom.api.quantity import format_bytes, format_milli
from elbowroom.api.resources import of, resource_list, spec_limits, spec_requests
from elbowroom.kubelet.actuation import amounts, containers_of, latest, limit_of, pod_config, quota_of, request_of, shares_of
from elbowroom.kubelet.status.conditions import conditions, phase_of
from elbowroom.kubelet.status.shown import Shown
from elbowroom.machine import Instant, as_time
from elbowroom.wire.cri import ContainerState, LinuxResources

CONTAINER_PREFIX = "elbowroom://"

_UNKNOWN = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
    "startedAt": None,
    "finishedAt": None,
}


# ---------------------------------------------------------------- the document


def document(s: Shown) -> dict[str, Any]:
    """The status as the kubelet wants it."""
    states = latest(s.sandbox)
    statuses = [_container(s, c, states.get(c.name), is_init=False) for c in s.pod.spec.containers]
    init_statuses = [_container(s, c, states.get(c.name), is_init=True) for c in s.pod.spec.init_containers]
    phase = phase_of(s.pod, statuses, init_statuses, s.over)
    if phase == "Pending" and s.previous.get("phase") == "Running":
        phase = "Running"  # it lost its sandbox; phases don't go back
    if s.over and s.eviction is not None and s.eviction.fails:
        phase = "Failed"
    doc: dict[str, Any] = {
        "observedGeneration": s.pod.metadata.generation or None,
        "phase": phase,
        "hostIP": s.host_ip,
        "hostIPs": [{"ip": s.host_ip}],
        "startTime": s.previous.get("startTime") or as_time(s.started),
        "containerStatuses": statuses,
        "initContainerStatuses": init_statuses or None,
        "reason": None,
        "message": None,
    }
    if s.eviction is not None and phase == "Failed":
        doc["reason"], doc["message"] = s.eviction.reason, s.eviction.message
    if s.ip and s.sandbox is not None:
        doc["podIP"], doc["podIPs"] = s.ip, [{"ip": s.ip}]
    if s.pod_level:
        doc |= _pod_level(s, phase, statuses, init_statuses)
    doc["conditions"] = conditions(s, phase, statuses, init_statuses)
    return doc


def rejected(pod: Pod, now: Instant, reason: str, message: str) -> dict[str, Any]:
    """The status of a pod that may not be here (RC-94)."""
    return {
        "observedGeneration": pod.metadata.generation or None,
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": pod.status.start_time or as_time(now),
    }


# ---------------------------------------------------------------- containers


def _container(s: Shown, container: Container, state: ContainerState | None, *, is_init: bool) -> dict[str, Any]:
    ordinary_init = is_init and not container.is_sidecar
    found: dict[str, Any] = {
        "name": container.name,
        "state": _state(s, container, state, is_init),
        "lastState": _last(s, container, state),
    }
    running = state is not None and state.state == "running" and container.name not in s.unstarted
    completed = state is not None and state.state == "exited" and state.exit_code == 0
    found["ready"] = completed if ordinary_init else running
    if state is None:
        before = _previous(s, container.name)
        found |= {"restartCount": int(before.get("restartCount", 0)), "image": container.image, "imageID": "", "started": False}
        return found
    found |= {
        "restartCount": state.attempt,
        "image": state.image,
        "imageID": state.image,
        "containerID": CONTAINER_PREFIX + state.container,
        "started": running,
    }
    allocated = next(c for c in containers_of(s.allocated) if c.name == container.name).resources
    if allocated.requests:
        found["allocatedResources"] = dict(allocated.requests)
    found["resources"] = _actual(s, state, allocated)
    if s.resize_word:
        found["resizeStatus"] = s.resize_word
    return found


def _previous(s: Shown, name: str) -> Mapping[str, Any]:
    for kind in ("containerStatuses", "initContainerStatuses"):
        for status in s.previous.get(kind) or ():
            if status.get("name") == name:
                found: Mapping[str, Any] = status
                return found
    return {}


def _state(s: Shown, container: Container, state: ContainerState | None, is_init: bool) -> dict[str, Any]:
    if state is not None and state.state == "running":
        return {"running": {"startedAt": as_time(Instant(state.started_at))}}
    if container.name in s.waiting and not s.over:
        reason, message = s.waiting[container.name]
        return {"waiting": {"reason": reason, "message": message}}
    if state is not None and state.state == "exited":
        return {"terminated": _terminated(state)}
    if s.over:
        return {"terminated": _UNKNOWN}
    if is_init or not s.pod.spec.init_containers or _initialised(s):
        return {"waiting": {"reason": _first_wait(s, container)}}
    return {"waiting": {"reason": "PodInitializing"}}


def _first_wait(s: Shown, container: Container) -> str:
    """With init containers, everything that waits waits for the initialisation."""
    return "PodInitializing" if s.pod.spec.init_containers else "ContainerCreating"


def _initialised(s: Shown) -> bool:
    states = latest(s.sandbox)
    return any(c.name in states for c in s.pod.spec.containers)


def _last(s: Shown, container: Container, state: ContainerState | None) -> dict[str, Any]:
    if state is None:
        return dict(_previous(s, container.name).get("lastState") or {})
    if state.state == "exited" and container.name in s.waiting and not s.over:
        return {"terminated": _terminated(state)}
    older = [c for c in (s.sandbox.containers if s.sandbox else ()) if c.name == state.name and c.attempt < state.attempt]
    before = max(older, key=lambda c: c.attempt, default=None)
    if before is not None and before.state == "exited":
        return {"terminated": _terminated(before)}
    told = _previous(s, container.name)
    return dict(told.get("lastState") or {}) if before is None and state.attempt else {}


def _terminated(state: ContainerState) -> dict[str, Any]:
    return {
        "exitCode": state.exit_code,
        "reason": state.reason or ("Completed" if state.exit_code == 0 else "Error"),
        "startedAt": as_time(Instant(state.started_at)) if state.started_at else None,
        "finishedAt": as_time(Instant(state.finished_at)) if state.finished_at else None,
        "containerID": CONTAINER_PREFIX + state.container,
    }


def _actual(s: Shown, state: ContainerState, allocated: ResourceRequirements) -> dict[str, Any]:
    """RC-140 to RC-146: the allocation, overlaid by what the runtime says, in maps that exist."""
    requests, limits = dict(allocated.requests), dict(allocated.limits)
    if state.state == "running":
        told = _previous(s, state.name)
        same_instance = told.get("containerID") == CONTAINER_PREFIX + state.container and "running" in (told.get("state") or {})
        before = (told.get("resources") or {}) if same_instance else {}
        told_now = _told(state.resources, s.actuated.of(state.name) or ResourceRequirements())
        if limits:
            known = before.get("limits") or {}
            _overlay_limits(limits, told_now, {**known, "cpu": limits["cpu"]} if state.name in s.unbound else known)
        if requests:
            _overlay_requests(requests, told_now, before.get("requests") or {})
        if state.name in s.held:
            requests["cpu"] = limits["cpu"] = str(s.held[state.name])
    found: dict[str, Any] = {}
    if limits:
        found["limits"] = limits
    if requests:
        found["requests"] = requests
    return found


@dataclass(frozen=True, slots=True)
class _Told:
    """What the runtime says of a container, cpu in milli, memory in bytes; None where it says nothing."""

    cpu_request: int | None
    cpu_limit: int | None
    memory_limit: int | None
    memory_request: str | None
    """As it was actuated: runtimes do not tell it (RC-144)."""


def _told(runtime: LinuxResources, actuated: ResourceRequirements) -> _Told:
    """Of a runtime that says nothing at all it is believed that it has what it was given (RC-145)."""
    memory = actuated.requests.get("memory") if of(actuated.requests).get("memory", 0) else None
    if runtime == LinuxResources():
        known = amounts(actuated, None)
        return _Told(known.cpu_request, known.cpu_limit, known.memory_limit, memory)
    shares, limit = runtime.cpu_shares, runtime.memory_limit_bytes
    return _Told(request_of(shares) if shares else None, limit_of(runtime), limit if limit > 0 else None, memory)


def _overlay_limits(limits: ResourceList, told: _Told, before: ResourceList) -> None:
    if told.cpu_limit is None:
        _keep(limits, before, "cpu")
    elif told.cpu_limit > 10 or of(limits).get("cpu", 0) > 10:
        limits["cpu"] = format_milli(told.cpu_limit)
    if told.memory_limit is not None:
        limits["memory"] = format_bytes(told.memory_limit)
    else:
        _keep(limits, before, "memory")


def _overlay_requests(requests: ResourceList, told: _Told, before: ResourceList) -> None:
    if told.cpu_request is None:
        _keep(requests, before, "cpu")
    elif told.cpu_request > 2 or of(requests).get("cpu", 0) > 2:
        requests["cpu"] = format_milli(told.cpu_request)
    if "memory" in requests and told.memory_request is not None:
        requests["memory"] = told.memory_request


def _keep(target: ResourceList, before: ResourceList, name: str) -> None:
    if name in before:
        target[name] = before[name]


# ---------------------------------------------------------------- the pod as a whole


def _pod_level(s: Shown, phase: str, statuses: Sequence[Mapping[str, Any]], inits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """RC-13, PL-44 to PL-49."""
    requests, limits = resource_list(spec_requests(s.allocated)), resource_list(spec_limits(s.allocated))
    found: dict[str, Any] = {"allocatedResources": dict(requests) or None}
    if phase == "Running" and s.sandbox is not None and (requests or limits):
        _overlay_pod(s, requests, limits)
    found["resources"] = {k: v for k, v in (("limits", limits), ("requests", requests)) if v}
    return found


def _overlay_pod(s: Shown, requests: ResourceList, limits: ResourceList) -> None:
    assert s.sandbox is not None, "only a pod with a sandbox is overlaid"
    cgroup, target = s.sandbox.pod_cgroup, pod_config(s.allocated)
    before = s.previous.get("resources") or {}
    if s.unbound and "cpu" in limits:
        before = {**before, "limits": {**(before.get("limits") or {}), "cpu": limits["cpu"]}}
    if "cpu" in requests:
        requests["cpu"] = _shown_request(requests["cpu"], cgroup.cpu_shares, (before.get("requests") or {}).get("cpu"))
    if "cpu" in limits and target.quota is not None:
        quota = limit_of(cgroup)
        if quota is None:
            _keep(limits, before.get("limits") or {}, "cpu")
        elif quota_of(of(limits)["cpu"]) != cgroup.cpu_quota:
            limits["cpu"] = format_milli(quota)
    if "memory" in limits and target.memory is not None:
        if cgroup.memory_limit_bytes > 0:
            if of(limits)["memory"] // 4096 != cgroup.memory_limit_bytes // 4096:
                limits["memory"] = format_bytes(cgroup.memory_limit_bytes)
        else:
            _keep(limits, before.get("limits") or {}, "memory")
    # What containers have not left yet counts, though the cgroup's weight has fallen: the scheduler goes by the pod as a whole.
    extra = sum(1000 * count - _allocated_cpu(s, name) for name, count in s.held.items())
    for part in (requests, limits) if extra else ():
        if "cpu" in part:
            part["cpu"] = format_milli(of(part)["cpu"] + extra)
    if "memory" in requests:
        actual = _actual_memory(s)
        if actual != of(requests)["memory"]:
            requests["memory"] = format_bytes(actual)


def _allocated_cpu(s: Shown, name: str) -> int:
    """In milli."""
    return next((of(c.resources.requests).get("cpu", 0) for c in containers_of(s.allocated) if c.name == name), 0)


def _shown_request(allocated: str, shares: int, before: str | None) -> str:
    """PL-48: the allocated quantity, or the one shown before, if the cgroup's value stands for it (cgroup v2 keeps shares less
    finely); else what the cgroup says."""
    for known in (allocated, before):
        if known is not None and _stands_for(shares, of({"cpu": known})["cpu"]):
            return known
    return format_milli(request_of(shares))


def _stands_for(shares: int, milli: int) -> bool:
    exact = shares_of(milli)
    weight = 1 + (exact - 2) * 9999 // 262142
    return shares in (exact, 2 + (weight - 1) * 262142 // 9999)


def _actual_memory(s: Shown) -> int:
    """A memory request is in no cgroup: it is what was actuated."""
    layers, states, allocated = s.actuated, latest(s.sandbox), s.allocated.spec

    def given(container: Container) -> Container:
        known = layers.of(container.name) if container.name in states else None
        if known is None or states[container.name].state != "running":
            return container
        merged = _merged(container.resources, known)
        return container if merged is container.resources else replace(container, resources=merged)

    level = allocated.resources
    if level is not None and layers.level is not None:
        level = layers.level
    containers, inits = [given(c) for c in allocated.containers], [given(c) for c in allocated.init_containers]
    unchanged = all(map(is_, (*containers, *inits), (*allocated.containers, *allocated.init_containers)))
    if unchanged and level == allocated.resources:
        return spec_requests(s.allocated).get("memory", 0)
    spec = replace(allocated, containers=containers, init_containers=inits, resources=level)
    return spec_requests(replace(s.allocated, spec=spec)).get("memory", 0)


def _merged(allocated: ResourceRequirements, actuated: ResourceRequirements) -> ResourceRequirements:
    memory = actuated.requests.get("memory")
    if memory is None or allocated.requests.get("memory") in (None, memory):
        return allocated
    return ResourceRequirements(requests={**allocated.requests, "memory": memory}, limits=allocated.limits)
