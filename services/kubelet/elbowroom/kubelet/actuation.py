"""Allocated to actuated: which runtime calls carry out a resize, and in which order (RC-100 to RC-122).

Memory first, then cpu. For each: the pod's cgroup grows before its containers do, containers that shrink come before those that
grow, and the pod's cgroup shrinks last, so no container's limit is ever above its pod's. The plan is a value; a driver walks
through it one call at a time and throws the rest away when a newer allocation has come meanwhile: what was done is recorded
container by container, so a new plan goes on from there.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from msgspec import Struct, structs

from elbowroom.api.objects import Container, Pod, ResourceList, ResourceRequirements
from elbowroom.api.quantity import format_bytes, format_milli, milli_of, value_of
from elbowroom.api.resources import kept_with_spec, of, qos_class, spec_limits, spec_requests
from elbowroom.kubelet.allocation import restarts_for
from elbowroom.kubelet.checkpoint import PodResources
from elbowroom.machine import Instant, seconds
from elbowroom.wire.cri import ContainerState, LinuxResources, PodStats, SandboxState

PERIOD = 100_000
SHARES_MIN, SHARES_MAX = 2, 262_144
QUOTA_MIN = 1_000
UNLIMITED = -1

RETRY_RUNTIME_SECONDS = 1.0
RETRY_CHECK_SECONDS, RETRY_JITTER = 10.0, 0.5

# ---------------------------------------------------------------- conversions


def shares_of(milli: int) -> int:
    """RC-120: cpu.shares of a request."""
    return SHARES_MIN if milli == 0 else min(SHARES_MAX, max(SHARES_MIN, milli * 1024 // 1000))


def quota_of(milli: int) -> int:
    """RC-121: the CFS quota of a limit, in µs of a period; 0 without one."""
    return 0 if milli == 0 else max(QUOTA_MIN, milli * PERIOD // 1000)


def request_of(shares: int) -> int:
    """RC-122: the request in milli that shares stand for."""
    return 0 if shares < SHARES_MIN else -(-shares * 1000 // 1024)


def limit_of(resources: LinuxResources) -> int | None:
    """RC-122: the limit in milli that a quota stands for; None without one."""
    period = resources.cpu_period or PERIOD
    return (resources.cpu_quota * 1000 // period or None) if resources.cpu_quota > 0 else None


# ---------------------------------------------------------------- amounts


class Amounts(Struct, frozen=True):
    """What a container is to have: cpu in milli, memory in bytes, 0 = unset. A limit it lacks is its pod's (PL-26)."""

    cpu_request: int = 0
    cpu_limit: int = 0
    memory_request: int = 0
    memory_limit: int = 0
    unbound: bool = False
    """It has CPUs of its own, and so no quota (XC-20, RM-21)."""

    def linux(self) -> LinuxResources:
        """As the runtime is told (RC-115)."""
        quota = UNLIMITED if self.unbound else quota_of(self.cpu_limit)
        return LinuxResources(shares_of(self.cpu_request), quota, PERIOD, self.memory_limit)

    def record(self) -> ResourceRequirements:
        """As actuated is recorded after an update: with explicit zeros (RC-89)."""
        return ResourceRequirements(
            requests={"cpu": format_milli(self.cpu_request), "memory": format_bytes(self.memory_request)},
            limits={"cpu": format_milli(self.cpu_limit), "memory": format_bytes(self.memory_limit)},
        )


def amounts(resources: ResourceRequirements | None, level: ResourceRequirements | None, *, unbound: bool = False) -> Amounts:
    """The amounts of a container with these resources in a pod with these pod-level ones."""
    requests, limits = (resources.requests, resources.limits) if resources is not None else (_NONE, _NONE)
    inherited = level.limits if level is not None else _NONE
    cpu, memory = limits.get("cpu") or inherited.get("cpu"), limits.get("memory") or inherited.get("memory")
    cpu_request, memory_request = requests.get("cpu"), requests.get("memory")
    return Amounts(
        milli_of(cpu_request) if cpu_request else 0,
        milli_of(cpu) if cpu else 0,
        value_of(memory_request) if memory_request else 0,
        value_of(memory) if memory else 0,
        unbound,
    )


_NONE: ResourceList = {}


def told(state: ContainerState, known: Amounts) -> Amounts | None:
    """What the runtime was last told of a container, where that is not what we ``know`` to have told it; None where it is.

    A kubelet that died between a call and recording its success, or whose call outlived it, finds out here. The memory request
    is told to nobody.
    """
    resources, expected = state.resources, known.linux()
    quota = max(0, expected.cpu_quota)
    same_limits = (max(0, resources.cpu_quota), max(0, resources.memory_limit_bytes)) == (quota, known.memory_limit)
    if same_limits and resources.cpu_shares in (0, expected.cpu_shares):
        return None
    request = known.cpu_request if resources.cpu_shares in (0, expected.cpu_shares) else request_of(resources.cpu_shares)
    limit = known.cpu_limit if max(0, resources.cpu_quota) == quota else limit_of(resources) or 0
    return Amounts(request, limit, known.memory_request, max(0, resources.memory_limit_bytes), known.unbound)


def changed_resources(wanted: Amounts, current: Amounts) -> tuple[str, ...]:
    """Of which resources the request or the limit differs; memory first."""
    if wanted == current:
        return ()
    memory = (wanted.memory_request, wanted.memory_limit) != (current.memory_request, current.memory_limit)
    cpu = (wanted.cpu_request, wanted.cpu_limit) != (current.cpu_request, current.cpu_limit)
    return (*(("memory",) if memory else ()), *(("cpu",) if cpu else ()))


class PodConfig(Struct, frozen=True):
    """The pod's own cgroup; a limit that is None is left alone (RC-108)."""

    shares: int
    quota: int | None = None
    memory: int | None = None

    def linux(self) -> LinuxResources:
        """As the cgroup is first made: what is left alone is unlimited."""
        return LinuxResources(self.shares, self.quota or UNLIMITED, PERIOD, self.memory or UNLIMITED)


@kept_with_spec
def pod_config(pod: Pod) -> PodConfig:
    """What the cgroup of the pod, with its allocated resources, is to have (PL-24)."""
    requests, limits = spec_requests(pod), spec_limits(pod)
    level = of(pod.spec.resources.limits) if pod.spec.resources is not None else {}
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    guaranteed = qos_class(pod) == "Guaranteed"

    def limited(name: str) -> bool:
        return guaranteed or level.get(name, 0) > 0 or all(of(c.resources.limits).get(name, 0) for c in containers)

    return PodConfig(
        shares=shares_of(requests.get("cpu", 0)),
        quota=quota_of(limits.get("cpu", 0)) or None if limited("cpu") else None,
        memory=limits.get("memory", 0) or None if limited("memory") else None,
    )


def cgroup_of(pod: Pod, unbound: Collection[str]) -> PodConfig:
    """``pod_config``, without a CPU quota if one of the containers is ``unbound`` (XC-20)."""
    return structs.replace(pod_config(pod), quota=UNLIMITED) if unbound else pod_config(pod)


def read_back(resources: LinuxResources) -> PodConfig:
    """The pod's cgroup as it is; unlimited reads as -1, so adding a limit counts as growth (RC-108)."""
    return PodConfig(
        resources.cpu_shares or SHARES_MIN, resources.cpu_quota or UNLIMITED, resources.memory_limit_bytes or UNLIMITED
    )


def settled(target: PodConfig, current: PodConfig) -> bool:
    """Does the cgroup have what it should? Memory is kept in whole pages."""
    return (
        current.shares == target.shares
        and (target.quota is None or current.quota == target.quota)
        and (target.memory is None or current.memory is None or current.memory // 4096 == target.memory // 4096)
    )


# ---------------------------------------------------------------- what is to be done


def containers_of(pod: Pod) -> list[Container]:
    """All that can be resized, in spec order: init containers, then regular ones."""
    return [*pod.spec.init_containers, *pod.spec.containers]


def latest(sandbox: SandboxState | None) -> dict[str, ContainerState]:
    """The newest instance of each container, by name."""
    found: dict[str, ContainerState] = {}
    for state in sandbox.containers if sandbox is not None else ():
        if state.name not in found or state.attempt >= found[state.name].attempt:
            found[state.name] = state
    return found


def _running(pod: Pod, states: Mapping[str, ContainerState]) -> list[Container]:
    return [c for c in containers_of(pod) if c.name in states and states[c.name].state == "running"]


def starts_at(container: Container, state: ContainerState | None) -> Instant:
    """When a running container counts as started: here a startup probe succeeds at its first try."""
    if state is None or state.state != "running" or not container.startup_probe:
        return Instant(0)
    delay = container.startup_probe.get("initialDelaySeconds")
    return Instant(state.started_at + seconds(delay if isinstance(delay, int) and delay > 0 else 0))


@kept_with_spec
def with_startup_probe(pod: Pod) -> tuple[Container, ...]:
    """Its containers that have a startup probe, in spec order."""
    return tuple(c for c in containers_of(pod) if c.startup_probe)


def unstarted(pod: Pod, sandbox: SandboxState | None, now: Instant) -> tuple[str, ...]:
    """The running containers whose startup probe has not succeeded yet."""
    probed = with_startup_probe(pod)
    states = latest(sandbox) if probed else {}
    return tuple(c.name for c in probed if starts_at(c, states.get(c.name)) > now)


def resizable(pod: Pod, sandbox: SandboxState | None, now: Instant) -> SandboxState | None:
    """The sandbox without the sidecars that have not started: a resize leaves them alone until they have (RC-103a)."""
    slow = unstarted(pod, sandbox, now)
    waiting = [name for name in slow if all(c.name != name for c in pod.spec.containers)] if slow else []
    if sandbox is None or not waiting:
        return sandbox
    return structs.replace(sandbox, containers=tuple(c for c in sandbox.containers if c.name not in waiting))


def to_restart(pod: Pod, actuated: PodResources, sandbox: SandboxState | None) -> tuple[str, ...]:
    """RC-101: the running containers of which a changed resource asks for a restart."""
    if not may_restart(pod):
        return ()
    states = latest(sandbox)
    return tuple(c.name for c in _running(pod, states) if any(restarts_for(c, resource) for resource in changed(c, pod, actuated)))


@kept_with_spec
def may_restart(pod: Pod) -> bool:
    """Does any of its containers ask for a restart when one of its resources changes?"""
    return any(policy.restart_policy == "RestartContainer" for c in containers_of(pod) for policy in c.resize_policy)


def changed(container: Container, pod: Pod, actuated: PodResources) -> tuple[str, ...]:
    """Of which resources the container, with its allocation, was not given what it should have."""
    wanted = amounts(container.resources, pod.spec.resources)
    return changed_resources(wanted, amounts(actuated.of(container.name), actuated.level))


def in_progress(pod: Pod, actuated: PodResources, sandbox: SandboxState | None) -> bool:
    """RC-132, RC-133: does a running container, or the pod itself, lack what was allocated?

    Ordinary init containers do not count (RC-134), nor does what is not running: it will be created with the allocation.
    """
    states = latest(sandbox)
    counted = [c for c in _running(pod, states) if c.is_sidecar or c in pod.spec.containers]
    if any(changed(c, pod, actuated) for c in counted):
        return True
    return bool(counted) and _level_differs(pod, actuated)


def _level_differs(pod: Pod, actuated: PodResources) -> bool:
    mine, done = pod.spec.resources or ResourceRequirements(), actuated.level or ResourceRequirements()
    return _cpu_and_memory(mine) != _cpu_and_memory(done)


def _cpu_and_memory(resources: ResourceRequirements) -> list[dict[str, int]]:
    return [{n: v for n, v in of(part).items() if v and n in ("cpu", "memory")} for part in (resources.requests, resources.limits)]


class WritePod(Struct, frozen=True):
    """Write the pod's cgroup. ``after`` is the configuration that then holds."""

    resource: str
    resources: LinuxResources
    grows: bool
    after: PodConfig
    undo: LinuxResources | None = None
    """What the runtime, told already, is to be told if the write fails (RC-109)."""

    @property
    def label(self) -> str:
        return "K9 pod cgroup up" if self.grows else "K12 pod cgroup down"


class NotifySandbox(Struct, frozen=True):
    """Tell the runtime of the pod's resources; if ``blocking``, a refusal ends the resize (RC-109)."""

    resource: str
    resources: LinuxResources
    blocking: bool


class UpdateContainer(Struct, frozen=True):
    """Update one container under one resource; ``amounts`` is what it then has."""

    container: str
    name: str
    resource: str
    decreases: bool
    amounts: Amounts
    position: int
    """Among the plan's updates, from 1: the i of the steps K10.i to K14.i."""

    @property
    def labels(self) -> tuple[str, str]:
        """Of the step when it is sent, and when it is answered."""
        sent, answered = ("K10", "K11") if self.decreases else ("K13", "K14")
        return f"{sent}.{self.position}", f"{answered}.{self.position}"


class RecordLevel(Struct, frozen=True):
    """The pod's own amounts of one resource are in force."""

    resource: str
    level: ResourceRequirements

    def after(self, before: ResourceRequirements | None) -> ResourceRequirements:
        """What was recorded ``before``, with them: like upstream, zero where the pod says nothing beside other resources."""
        known = before or ResourceRequirements()

        def put(part: ResourceList, new: ResourceList) -> ResourceList:
            return {**part, self.resource: new.get(self.resource, "0")} if new else part

        return ResourceRequirements(requests=put(known.requests, self.level.requests), limits=put(known.limits, self.level.limits))


Operation = WritePod | NotifySandbox | UpdateContainer | RecordLevel


@dataclass(frozen=True, slots=True)
class MemoryCheck:
    """RC-112: limits that fall or are new, and must be above what is used; the pod's first."""

    pod_limit: int | None
    container_limits: tuple[tuple[str, int], ...]

    def error(self, stats: PodStats) -> str:
        """What hinders the resize; empty if nothing does. (The container's message shows the pod's usage: upstream's quirk.)"""
        used = stats.memory_usage_bytes
        usage = {container.name: container.memory_usage_bytes for container in stats.containers}
        found = []
        if self.pod_limit is not None and used >= self.pod_limit:
            found.append(f"attempting to set pod memory limit ({self.pod_limit}) below current usage ({used})")
        for name, limit in self.container_limits:
            if name not in usage:
                found.append(f'missing container "{name}" memory usage')
            elif usage[name] >= limit:
                found.append(f'attempting to set container "{name}" memory limit ({limit}) below current usage ({used})')
        if not found:
            return ""
        return "cannot decrease memory limits: " + (found[0] if len(found) == 1 else f"[{', '.join(found)}]")


@dataclass(frozen=True, slots=True)
class Plan:
    """The operations of a resize in their order, and the check before them."""

    operations: tuple[Operation, ...] = ()
    check: MemoryCheck | None = None


def plan(
    pod: Pod,
    actuated: PodResources,
    sandbox: SandboxState,
    current: PodConfig,
    *,
    notify_first: bool,
    unbound: Collection[str] = (),
) -> Plan:
    """How to bring the running containers of ``pod`` (with its allocated resources) and its cgroup to what was allocated.

    ``actuated`` is what each container was last given, ``current`` what the pod's cgroup has. ``notify_first`` is row 4 of the
    profiles, ``unbound`` are the containers without a CPU quota. Containers that a change restarts are not updated; nor is what
    does not run.
    """
    states = latest(sandbox)
    restarting = to_restart(pod, actuated, sandbox)
    wanted = {c.name: amounts(c.resources, pod.spec.resources, unbound=c.name in unbound) for c in containers_of(pod)}
    now = {name: amounts(actuated.of(name), actuated.level, unbound=name in unbound) for name in wanted}
    running = [c for c in _running(pod, states) if c.name not in restarting]
    visited = [c for c in reversed(running) if c not in pod.spec.containers] + [c for c in running if c in pod.spec.containers]
    target = cgroup_of(pod, unbound)
    step = _Cgroup(pod, target, current, notify_first)
    operations: list[Operation] = []
    checked: list[tuple[str, int]] = []
    position = 0
    for resource in ("memory", "cpu"):
        operations += step.write(resource, grows=True)
        for c, decreases in _ordered(visited, wanted, now, resource):
            after = _partly(wanted[c.name], now[c.name], resource)
            if resource == "memory" and after.memory_limit and not 0 < now[c.name].memory_limit <= after.memory_limit:
                checked.append((c.name, after.memory_limit))
            now[c.name] = after
            position += 1
            operations.append(UpdateContainer(states[c.name].container, c.name, resource, decreases, after, position))
        operations += step.write(resource, grows=False)
        if pod.spec.resources is not None and _level_differs(pod, actuated):
            operations.append(RecordLevel(resource, pod.spec.resources))
    pod_shrinks = target.memory is not None and current.memory is not None and target.memory < current.memory
    pod_limit = target.memory if pod_shrinks else None
    check = MemoryCheck(pod_limit, tuple(checked)) if pod_limit is not None or checked else None
    return Plan(tuple(operations), check)


def _ordered(
    visited: Iterable[Container], wanted: Mapping[str, Amounts], now: Mapping[str, Amounts], resource: str
) -> list[tuple[Container, bool]]:
    """RC-107: each increase is appended, each decrease put in front; the limit's direction counts if the limit changes."""
    queue: list[tuple[Container, bool]] = []
    for container in visited:
        new, old = wanted[container.name], now[container.name]
        if resource == "memory":
            pairs = ((new.memory_limit, old.memory_limit), (new.memory_request, old.memory_request))
        else:
            pairs = ((new.cpu_limit, old.cpu_limit), (new.cpu_request, old.cpu_request))
        differing = next(((a, b) for a, b in pairs if a != b), None)
        if differing is None:
            continue
        if differing[0] > differing[1]:
            queue.append((container, False))
        else:
            queue.insert(0, (container, True))
    return queue


def _partly(new: Amounts, old: Amounts, resource: str) -> Amounts:
    if resource == "memory":
        return structs.replace(old, memory_request=new.memory_request, memory_limit=new.memory_limit)
    return structs.replace(old, cpu_request=new.cpu_request, cpu_limit=new.cpu_limit)


class _Cgroup:
    """The pod's cgroup on its way from ``current`` to ``target``."""

    def __init__(self, pod: Pod, target: PodConfig, current: PodConfig, notify_first: bool) -> None:
        self._target, self._held, self._notify_first = target, current, notify_first
        self._overhead = of(pod.spec.overhead)

    def write(self, resource: str, *, grows: bool) -> list[Operation]:
        """The limit grows before the request and falls after it, each in a write of its own. (No memory request is written.)"""
        held, target = self._held, self._target
        if resource == "memory":
            if target.memory is None or not _moves(held.memory, target.memory, grows):
                return []
            return self._written(resource, LinuxResources(memory_limit_bytes=target.memory), grows, memory=target.memory)
        writes: list[tuple[LinuxResources, dict[str, int]]] = []
        if target.quota is not None and _moves(held.quota, target.quota, grows):
            writes.append((LinuxResources(0, target.quota, PERIOD), {"quota": target.quota}))
        if _moves(held.shares, target.shares, grows):
            writes.append((LinuxResources(target.shares), {"shares": target.shares}))
        in_order = writes if grows else writes[::-1]
        return [done for resources, values in in_order for done in self._written(resource, resources, grows, **values)]

    def _written(self, resource: str, resources: LinuxResources, grows: bool, **values: int) -> list[Operation]:
        held, after = self._held, structs.replace(self._held, **values)
        self._held = after
        undo = self.less_overhead(held) if self._notify_first else None
        write = WritePod(resource, resources, grows, after, undo)
        notify = NotifySandbox(resource, self.less_overhead(after), blocking=self._notify_first)
        return [notify, write] if self._notify_first else [write, notify]

    def less_overhead(self, held: PodConfig) -> LinuxResources:
        return less_overhead(held, self._overhead)


def _moves(held: int | None, target: int, grows: bool) -> bool:
    return held is None or (target > held if grows else target < held)


def less_overhead(held: PodConfig, overhead: Mapping[str, int]) -> LinuxResources:
    """RC-116: the pod's resources without its overhead."""
    cpu, memory = overhead.get("cpu", 0), overhead.get("memory", 0)
    quota = held.quota if held.quota is None or held.quota < 0 else max(QUOTA_MIN, held.quota - cpu * PERIOD // 1000)
    limit = held.memory if held.memory is None or held.memory < 0 else max(0, held.memory - memory)
    shares = shares_of(max(0, request_of(held.shares) - cpu)) if cpu else held.shares
    return LinuxResources(shares, quota or 0, PERIOD, limit or 0)


def overhead_of(pod: Pod) -> LinuxResources:
    """RC-116: the pod's overhead, request = limit."""
    overhead = of(pod.spec.overhead)
    cpu = overhead.get("cpu", 0)
    return LinuxResources(shares_of(cpu), quota_of(cpu), PERIOD, overhead.get("memory", 0)) if overhead else LinuxResources()


def own_values(recorded: ResourceRequirements, allocated: ResourceRequirements) -> ResourceRequirements:
    """Of what was recorded as actuated, what the container's own allocation names (not what it inherits, nor zeros)."""

    def named(part: dict[str, str], of_which: dict[str, str]) -> dict[str, str]:
        return {name: text for name, text in part.items() if name in of_which}

    return ResourceRequirements(
        requests=named(recorded.requests, allocated.requests), limits=named(recorded.limits, allocated.limits)
    )
