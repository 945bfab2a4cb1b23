"""A pod sandbox with its containers as a value, and how it changes: by calls, by time, and by memory.

A record is all that there is of a sandbox: it is stored whole, so a runtime that was killed finds its containers as a shim
would have kept them, timers included (they are told as instants). Every function takes a record and gives the next one with
the facts of the change; none of them looks at anything else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.machine import Instant, Note, seconds
from elbowroom.runtime.cgroups import UNLIMITED, Cgroup, Hierarchy, Refused
from elbowroom.runtime.workload import Behaviour, behaviour_of
from elbowroom.wire.cri import (
    ContainerEvent,
    ContainerState,
    ContainerStats,
    CreateContainer,
    LinuxResources,
    PodStats,
    RunPodSandbox,
    SandboxState,
)

SIGKILLED = 137


class ContainerRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A container; instants are ns since the epoch, 0 = not (yet)."""

    container: str
    name: str
    attempt: int
    image: str
    created_at: int
    resources: LinuxResources
    """As asked for, which is what CRI reports."""
    group: Cgroup
    """As the kernel has it."""
    is_init: bool = False
    state: str = "created"
    starts_at: int = 0
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    reason: str = ""
    term_at: int = 0
    """SIGTERM was sent."""
    kill_at: int = 0
    """SIGKILL will be."""
    failures: int = 0
    """Resource updates that its workload has let fail."""
    oom_score_adj: int = 0
    """Of its processes, for as long as they live: no update reaches them."""


class SandboxRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    sandbox: str
    uid: str
    name: str
    namespace: str
    created_at: int
    pod: Cgroup
    workload: str = ""
    ready: bool = True
    containers: tuple[ContainerRecord, ...] = ()

    def container(self, wanted: str) -> ContainerRecord | None:
        return next((c for c in self.containers if c.container == wanted), None)

    def behaviour(self, container: ContainerRecord) -> Behaviour:
        return behaviour_of(self.workload, container.name, is_init=container.is_init)

    def usage(self, container: ContainerRecord) -> int:
        """The memory that a container uses now, in bytes; what it may, it has swapped out."""
        if container.state != "running":
            return 0
        own, swap = container.group.memory, container.group.swap
        wanted = self.behaviour(container).memory_usage(own if own != UNLIMITED else self.pod.memory)
        beyond = wanted - own if own != UNLIMITED else 0
        return own if beyond > 0 and (swap == UNLIMITED or beyond <= swap) else wanted

    def badness(self, container: ContainerRecord) -> int:
        """How much the OOM killer of the pod's group would like to take it; the highest goes. It must run."""
        return self.usage(container) + container.oom_score_adj * self.pod.memory // 1000

    @property
    def pod_usage(self) -> int:
        return sum(self.usage(c) for c in self.containers)

    @property
    def pod_path(self) -> str:
        return f"kubepods/pod{self.uid}"


@dataclass(frozen=True, slots=True)
class Turn:
    """The record after a change, and what happened on the way. If ``refused``, the change was not made."""

    record: SandboxRecord
    notes: tuple[Note, ...] = ()
    events: tuple[ContainerEvent, ...] = ()
    refused: Refused | None = None

    def then(self, later: "Turn") -> "Turn":
        """This change and the one that followed it."""
        return Turn(later.record, self.notes + later.notes, self.events + later.events, later.refused)


def _facts(record: SandboxRecord, container: ContainerRecord, **more: Any) -> dict[str, Any]:
    return {
        "pod": f"{record.namespace}/{record.name}",
        "uid": record.uid,
        "container": container.container,
        "name": container.name,
        **more,
    }


def config(resources: LinuxResources) -> dict[str, Any]:
    """Resources as a history record's ``cfg``: the fields that are set."""
    return dict(msgspec.to_builtins(resources))


def _replaced(record: SandboxRecord, container: ContainerRecord) -> SandboxRecord:
    return msgspec.structs.replace(
        record, containers=tuple(container if c.container == container.container else c for c in record.containers)
    )


def _changed(record: SandboxRecord, container: ContainerRecord, **values: Any) -> SandboxRecord:
    return _replaced(record, msgspec.structs.replace(container, **values))


def _event(record: SandboxRecord, container: str, kind: str) -> ContainerEvent:
    return ContainerEvent(record.sandbox, container, kind)


# ---------------------------------------------------------------- calls


def run(request: RunPodSandbox, hierarchy: Hierarchy, now: Instant) -> Turn:
    """A new sandbox with its pod cgroup."""
    blank = SandboxRecord(request.sandbox, request.uid, request.name, request.namespace, now, Cgroup(), request.workload)
    pod = hierarchy.write(Cgroup(), request.pod_cgroup, path=blank.pod_path)
    if isinstance(pod, Refused):
        return Turn(blank, refused=pod)
    record = msgspec.structs.replace(blank, pod=pod)
    return Turn(record, (_pod_limit(record),))


def create(record: SandboxRecord, request: CreateContainer, hierarchy: Hierarchy, now: Instant) -> Turn:
    """A container that is ready to start, its cgroup made."""
    path = f"{record.pod_path}/{request.container}"
    group = hierarchy.write(Cgroup(), request.resources, path=path, parent=record.pod)
    if isinstance(group, Refused):
        return Turn(record, refused=group)
    container = ContainerRecord(
        request.container,
        request.name,
        request.attempt,
        request.image,
        now,
        request.resources,
        group,
        request.is_init,
        oom_score_adj=request.resources.oom_score_adj,
    )
    after = msgspec.structs.replace(record, containers=(*record.containers, container))
    cfg = config(request.resources)
    if request.memory_request_bytes:
        cfg["memory_request_bytes"] = request.memory_request_bytes
    created = Note("rt.create", _facts(record, container, attempt=request.attempt, image=request.image, cfg=cfg))
    return Turn(after, (created, _limit(after, container)), (_event(record, container.container, "created"),))


def begin_start(record: SandboxRecord, container: ContainerRecord, now: Instant) -> Turn:
    """Start a created container; it runs when its ``startSeconds`` are over."""
    if container.state != "created" or container.starts_at:
        return Turn(record)
    starts_at = now + seconds(record.behaviour(container).start_seconds)
    return advance(_changed(record, container, starts_at=starts_at), now)


def begin_stop(record: SandboxRecord, container: ContainerRecord, timeout: float, now: Instant) -> Turn:
    """SIGTERM now and SIGKILL after ``timeout`` seconds, or earlier if an earlier stop said so."""
    if container.state == "created":
        return _exited(record, container, now, SIGKILLED, "Error")
    if container.state != "running":
        return Turn(record)
    kill_at = now + seconds(max(0.0, timeout))
    if container.kill_at:
        kill_at = min(kill_at, container.kill_at)
    if timeout <= 0:
        return _exited(record, container, now, SIGKILLED, "Error")
    return advance(_changed(record, container, term_at=container.term_at or now, kill_at=kill_at), now)


def stop_all(record: SandboxRecord, now: Instant) -> Turn:
    """Kill what runs; the sandbox is not ready any more."""
    turn = Turn(record)
    for container in record.containers:
        if container.state != "exited":
            turn = turn.then(_exited(turn.record, container, now, SIGKILLED, "Error"))
    return turn.then(Turn(msgspec.structs.replace(turn.record, ready=False)))


def remove(record: SandboxRecord, container: ContainerRecord, now: Instant) -> Turn:
    """Forget a container, killing it first if need be."""
    turn = Turn(record)
    if container.state != "exited":
        turn = _exited(record, container, now, SIGKILLED, "Error")
    kept = tuple(c for c in turn.record.containers if c.container != container.container)
    return turn.then(Turn(msgspec.structs.replace(turn.record, containers=kept)))


def update(record: SandboxRecord, container: ContainerRecord, wanted: LinuxResources, hierarchy: Hierarchy, now: Instant) -> Turn:
    """Apply an update of resources now, unless the workload or the kernel refuses it. What has exited keeps only the record; a mere
    change of place is no resize, and no workload refuses it."""
    failures = 0 if wanted.places_only else record.behaviour(container).resize_failures
    if failures is None or container.failures < failures:
        after = _changed(record, container, failures=container.failures + 1)
        words = f'the runtime refuses to update container "{container.container}"'
        return Turn(after, refused=Refused("EIO", words))
    resources = container.resources.updated(wanted)
    if container.state == "exited":
        return Turn(_changed(record, container, resources=resources))
    group = hierarchy.write(
        container.group,
        wanted,
        path=f"{record.pod_path}/{container.container}",
        usage=record.usage(container),
        parent=record.pod,
    )
    if isinstance(group, Refused):
        return Turn(record, refused=group)
    after = _changed(record, container, resources=resources, group=group)
    return Turn(record, events=(_event(record, container.container, "updated"),)).then(settle(record, after, now))


def set_pod(record: SandboxRecord, wanted: LinuxResources, hierarchy: Hierarchy, now: Instant) -> Turn:
    """The kubelet writes the pod's own cgroup."""
    children = [c.group for c in record.containers if c.state != "exited"]
    pod = hierarchy.write(record.pod, wanted, path=record.pod_path, usage=record.pod_usage, children=children)
    if isinstance(pod, Refused):
        return Turn(record, refused=pod)
    return settle(record, msgspec.structs.replace(record, pod=pod), now)


def set_workload(record: SandboxRecord, workload: str, now: Instant) -> Turn:
    """The containers behave otherwise from now on; a changed ``resizeError`` counts anew."""
    after = msgspec.structs.replace(record, workload=workload)
    for container in record.containers:
        if record.behaviour(container).resize_failures != after.behaviour(container).resize_failures:
            after = _changed(after, container, failures=0)
    settled = settle(record, after, now)
    return settled.then(advance(settled.record, now, since=now))


# ---------------------------------------------------------------- time


@dataclass(frozen=True, slots=True)
class _Due:
    at: int
    what: str
    container: ContainerRecord


def _dues(record: SandboxRecord) -> Iterator[_Due]:
    for container in record.containers:
        if container.state == "created" and container.starts_at:
            yield _Due(container.starts_at, "start", container)
        if container.state != "running":
            continue
        behaviour = record.behaviour(container)
        if behaviour.exit_after_seconds is not None:
            yield _Due(container.started_at + seconds(behaviour.exit_after_seconds), "exit", container)
        if container.term_at and behaviour.stop_seconds is not None:
            yield _Due(container.term_at + seconds(behaviour.stop_seconds), "stop", container)
        if container.kill_at:
            yield _Due(container.kill_at, "kill", container)


def due(record: SandboxRecord) -> Instant | None:
    """When time will next change something here."""
    return min((Instant(d.at) for d in _dues(record)), default=None)


def advance(record: SandboxRecord, now: Instant, *, since: Instant = Instant(0)) -> Turn:
    """What time has done up to ``now``, in its order; each thing bears the instant at which it was due, or ``since`` if later."""
    turn = Turn(record)
    while True:
        first = min(_dues(turn.record), key=lambda d: d.at, default=None)
        if first is None or first.at > now:
            return turn
        turn = turn.then(_passed(turn.record, first, Instant(max(first.at, since))))


def _passed(record: SandboxRecord, first: _Due, at: Instant) -> Turn:
    container = first.container
    match first.what:
        case "start":
            after = _changed(record, container, state="running", started_at=at)
            started = Turn(record, events=(_event(record, container.container, "started"),))
            return started.then(settle(record, after, at))
        case "exit":
            code = record.behaviour(container).exit_code
        case "stop":
            code = 0
        case _:
            code = SIGKILLED
    return _exited(record, container, at, code, "Completed" if code == 0 else "Error")


def _exited(record: SandboxRecord, container: ContainerRecord, at: Instant, code: int, reason: str) -> Turn:
    after = _changed(record, container, state="exited", finished_at=at, exit_code=code, reason=reason)
    stopped = bool(container.term_at) or (code == SIGKILLED and reason == "Error")
    facts = _facts(
        record, container, code=code, reason=reason, ran=bool(container.started_at), stopped=stopped, told=container.term_at
    )
    note = Note("rt.exit", facts)
    return Turn(after, (note,), (_event(record, container.container, "exited"),))


# ---------------------------------------------------------------- memory


def settle(before: SandboxRecord, after: SandboxRecord, now: Instant) -> Turn:
    """After limits or behaviour changed: what is told of it, and whom the OOM killer takes.

    A container above its own limit dies; as long as the pod is above its own, so does the one of its containers that is worst by
    usage and ``oom_score_adj``.
    """
    turn = Turn(after, tuple(_differences(before, after)))
    for container in after.containers:
        if 0 <= container.group.memory < after.usage(container):
            turn = turn.then(_exited(turn.record, container, now, SIGKILLED, "OOMKilled"))
    while 0 <= turn.record.pod.memory < turn.record.pod_usage:
        record = turn.record
        worst = max((c for c in record.containers if record.usage(c)), key=record.badness)
        turn = turn.then(_exited(record, worst, now, SIGKILLED, "OOMKilled"))
    return turn


def _differences(before: SandboxRecord, after: SandboxRecord) -> Iterator[Note]:
    if before.pod != after.pod:
        yield _pod_limit(after)
    for container in after.containers:
        old = before.container(container.container)
        if old is None or old.group != container.group:
            yield _limit(after, container)
        if old is not None and old.group.cpuset != container.group.cpuset:
            yield Note("rt.cpuset", _facts(after, container, cpus=container.group.cpuset))
        used = after.usage(container)
        if (0 if old is None else before.usage(old)) != used:
            yield Note("rt.usage", _facts(after, container, bytes=used, sampled=False))


def _limits(group: Cgroup) -> dict[str, int | None]:
    """CPU in milli, memory in bytes; None is no limit."""
    cpu = None if group.quota < 0 else group.quota * 1000 // group.period
    return {"cpu": cpu, "memory": None if group.memory < 0 else group.memory}


def _pod_limit(record: SandboxRecord) -> Note:
    facts = {"pod": f"{record.namespace}/{record.name}", "uid": record.uid, "limit": _limits(record.pod)}
    return Note("rt.cgroup", {**facts, "shares": record.pod.shares})


def _limit(record: SandboxRecord, container: ContainerRecord) -> Note:
    return Note("rt.cgroup", _facts(record, container, limit=_limits(container.group), shares=container.group.shares))


# ---------------------------------------------------------------- as CRI shows it


def state_of(record: SandboxRecord) -> SandboxState:
    """The sandbox as ``ListAll`` and ``PodState`` tell it."""
    return SandboxState(
        record.sandbox,
        record.uid,
        record.name,
        record.namespace,
        record.ready,
        record.created_at,
        record.pod.as_resources(),
        tuple(
            ContainerState(
                c.container,
                record.sandbox,
                c.name,
                c.attempt,
                c.image,
                c.state,
                c.resources,
                created_at=c.created_at,
                started_at=c.started_at,
                finished_at=c.finished_at,
                exit_code=c.exit_code,
                reason=c.reason,
                cgroup=c.group.as_resources(),
            )
            for c in record.containers
        ),
    )


def stats_of(record: SandboxRecord) -> tuple[PodStats, tuple[Note, ...]]:
    """A sample of the usage of what runs, and the note that tells it."""
    running = [c for c in record.containers if c.state == "running"]
    sampled = tuple(ContainerStats(c.name, record.usage(c), _cpu_usage(record, c)) for c in running)
    notes = tuple(
        Note("rt.usage", _facts(record, c, bytes=s.memory_usage_bytes, sampled=True)) for c, s in zip(running, sampled, strict=True)
    )
    return PodStats(sum(s.memory_usage_bytes for s in sampled), sampled), notes


def _cpu_usage(record: SandboxRecord, container: ContainerRecord) -> int:
    allowed = [g.bandwidth for g in (container.group, record.pod) if g.bandwidth is not None]
    return min([record.behaviour(container).cpu_milli, *(int(cpus * 1000) for cpus in allowed)])
