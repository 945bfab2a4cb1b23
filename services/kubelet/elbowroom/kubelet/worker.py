"""One pod's driver: it asks what comes next, makes one runtime call, and goes on from the answer.

A *chain* is a sequence of such calls, as upstream's SyncPod is. Its start evaluates the resize conditions and publishes the
status; what happens inside is published only when the runtime was looked at again after its end. So a resize that fits is two
status patches: in progress, and done. One call is in flight at a time, so a late one can't overwrite a newer; whatever ends with
an unknown outcome is looked at before anything else is done.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

import msgspec

from elbowroom.api.objects import Container, Pod, ResourceRequirements
from elbowroom.api.resources import Resources, effective_requests, maximum, spec_requests
from elbowroom.kubelet import actuation, lifecycle
from elbowroom.kubelet.actuation import latest
from elbowroom.kubelet.allocation import summary, with_allocation
from elbowroom.kubelet.checkpoint import Checkpoint, PodResources
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.lifecycle import CrashBackoff
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.metrics import Metrics, operation_type
from elbowroom.kubelet.pinning import Pinner
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.resizer import CALL_SECONDS, LONG_CALL_SECONDS, Done, Failed, Resizer, rpc_error
from elbowroom.kubelet.status.shown import Eviction, ResizeCondition, Shown
from elbowroom.machine import Effect, Instant, Note, parse_time, seconds
from elbowroom.rpc import Finished
from elbowroom.wire import Code, MalformedError, decode_value
from elbowroom.wire.cri import (
    ContainerId,
    ContainerState,
    CreateContainer,
    RunPodSandbox,
    RuntimeState,
    SandboxId,
    SandboxState,
    StopContainer,
    UpdateWorkload,
)

WORKLOAD = "elbowroom.dev/workload"
LONG_CALLS = ("StartContainer", "UpdateContainerResources")
SUSPECT_SECONDS = 1.0
"""So long after the event that tells of its success an answer is believed lost."""
GRACE_SECONDS_MIN = 2.0
"""Even a container whose pod has no grace gets SIGTERM and this long, as upstream's do."""
STOP_MARGIN_SECONDS = 2.0
SANDBOX_RETRY_SECONDS = 1.0
ASK_AGAIN_SECONDS = 5.0


class Services(Protocol):
    """What a worker needs of its kubelet."""

    config: KubeletConfig
    allocated: Checkpoint
    actuated: Checkpoint
    metrics: Metrics
    managers: Managers
    scaling: Scaling
    notify_first: bool

    def emit(self, *effects: Effect) -> None: ...
    def jitter(self) -> float: ...
    def ask(self, now: Instant, worker: "PodWorker", method: str, body: Any, timeout: float) -> None: ...
    def tell(self, now: Instant, method: str, body: Any) -> None: ...
    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...
    def pull(self, now: Instant, pod: Pod, container: Container) -> None: ...
    def publish(self, now: Instant, worker: "PodWorker") -> None: ...
    def wake(self, worker: "PodWorker", at: Instant) -> None: ...
    def is_held(self, worker: "PodWorker") -> bool: ...
    def save_managers(self, cause: str) -> None: ...
    def sandboxes(self) -> Iterable[tuple[str, SandboxState | None]]: ...
    def make_way(self, now: Instant, uids: Iterable[str]) -> None: ...
    def moved(self, now: Instant) -> None: ...
    def over(self, now: Instant, worker: "PodWorker") -> None: ...


@dataclass(frozen=True, slots=True)
class _Call:
    """The call in flight: what it is, and what its answer means."""

    method: str
    body: Any
    container: str
    done: Done
    failed: Failed
    until: Instant
    """When the kubelet gives up; until then an unanswered call is asked again."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The pod is to end. ``by`` is when its deletion says so; None: so many seconds after each container is told."""

    grace_seconds: float
    by: Instant | None = None

    def left(self, now: Instant) -> float:
        """Seconds that a container told now has."""
        if self.by is None:
            return self.grace_seconds
        return max(0.0, min(self.grace_seconds, (self.by - now) / 1e9))


class PodWorker:
    """See the module. The machine feeds it; everything public is read by the machine."""

    def __init__(self, kubelet: Services, pod: Pod, now: Instant) -> None:
        self._kubelet = kubelet
        self.pod = pod
        self.admitted = False
        self.refused: tuple[str, str] | None = None
        """Reason and message of a rejected pod."""
        self.gone = False
        """The API server has no such pod any more."""
        self.over = False
        """Its containers have ended for good."""
        self.counts_for_nothing = False
        """It has been told that the pod ended."""
        self.sandbox: SandboxState | None = None
        self.ip = ""
        self.started = now
        self.pending: ResizeCondition | None = None
        self.in_progress: ResizeCondition | None = None
        self.resized = False
        self.eviction: Eviction | None = None
        self.waiting: dict[str, tuple[str, str]] = {}
        self.shown_sandbox: SandboxState | None = None
        self.shown_actuated = PodResources()
        self.told: tuple[Shown, dict[str, Any]] | None = None
        """What its last status was made from, and that status."""
        self.workload = pod.metadata.annotations.get(WORKLOAD, "")
        self._sandbox_workload: str | None = None
        self._ending: Ending | None = None
        self._call: _Call | None = None
        self.token = 0
        """Of the call in flight; an answer to an earlier one interests nobody."""
        self._suspect_at: Instant | None = None
        self._again = False
        self._stale = False
        self._touched = False
        self._chain = False
        self._stopping: dict[str, Instant] = {}
        self._killed: set[str] = set()
        self._updates: dict[str, int] = {}
        """Updates of containers that were answered and whose events are to come."""
        self._backoff: dict[str, CrashBackoff] = {}
        self._sandbox_attempt = 0
        self._sandbox_doubted = False
        """A sandbox was asked for, and nobody knows whether it was made."""
        self._resizer = Resizer(kubelet, self)
        self._rest_until = Instant(0)
        self._pinner = Pinner(kubelet, self, lambda: self._stopping)
        self._starts_later = False
        """A container is to be made once others have left its CPUs."""
        self._counts: tuple[Pod, PodResources | None, Resources] | None = None
        self._allocated: tuple[Pod, PodResources | None, Pod] | None = None

    # ------------------------------------------------------------ views

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def active(self) -> bool:
        """It holds its allocation: admitted, and not known to have ended (RC-72)."""
        return self.admitted and not self.gone and not self.over and not self.pod.is_terminal

    @property
    def layer(self) -> PodResources | None:
        """What it was allocated."""
        return self._kubelet.allocated.get(self.uid)

    @property
    def actuated(self) -> PodResources:
        return self._kubelet.actuated.get(self.uid) or PodResources()

    @property
    def allocated_pod(self) -> Pod:
        """The pod with its allocated resources."""
        layer = self.layer
        if self._allocated is None or self._allocated[0] is not self.pod or self._allocated[1] is not layer:
            made = self.pod if layer is None else with_allocation(self.pod, layer, self._kubelet.config)
            self._allocated = (self.pod, layer, made)
        return self._allocated[2]

    @property
    def counts(self) -> Resources:
        """What the pod counts for among its neighbours: the largest of its allocation and what its status shows."""
        layer = self.layer
        if self._counts is None or self._counts[0] is not self.pod or self._counts[1] is not layer:
            level = self._kubelet.config.on("InPlacePodLevelResourcesVerticalScaling")
            pod = self.allocated_pod
            # The status may still call the last resize infeasible, and so leave out the spec: here that is the allocation.
            counts = maximum(spec_requests(pod), effective_requests(pod, pod_level_status=level))
            self._counts = (self.pod, layer, counts)
        return self._counts[2]

    @property
    def unbound(self) -> frozenset[str]:
        """Its containers that have CPUs of their own, and so no CPU quota."""
        return self._kubelet.managers.unbound(self.allocated_pod)

    @property
    def runs(self) -> bool:
        """Does the runtime have a container of it that has not ended?"""
        return self.sandbox is not None and any(c.state != "exited" for c in self.sandbox.containers)

    @property
    def busy(self) -> bool:
        return self._call is not None

    # ------------------------------------------------------------ being told

    def update(self, now: Instant, pod: Pod) -> None:
        """The API server's pod changed; look at it anew."""
        old, self.pod = self.pod, pod
        self.workload = pod.metadata.annotations.get(WORKLOAD, "")
        if old.spec is not pod.spec or old.metadata.annotations != pod.metadata.annotations:
            self._resizer.at_once()
        if pod.is_terminating and not self.gone:
            self._end_by_deletion(now)

    def _end_by_deletion(self, now: Instant) -> None:
        meta = self.pod.metadata
        grace = meta.deletion_grace_period_seconds
        if grace is None:
            grace = self.pod.spec.termination_grace_period_seconds
        # deletionTimestamp has whole seconds, rounded down.
        by = Instant(parse_time(meta.deletion_timestamp) + seconds(1)) if meta.deletion_timestamp and grace else None
        ending = Ending(float(max(0, grace)), by)
        self._end(ending)

    def end(self, grace_seconds: float, eviction: Eviction | None = None) -> None:
        """End the pod on the kubelet's own account."""
        self._end(Ending(grace_seconds))
        self.eviction = self.eviction or eviction

    def _end(self, ending: Ending) -> None:
        """The shortest grace counts; who was given a longer one is told again."""
        if self._ending is not None and ending.grace_seconds >= self._ending.grace_seconds:
            return
        self._ending = ending
        self._stopping.clear()
        if self._call is not None and self._call.method in LONG_CALLS:
            self._abandon_call()

    def _abandon_call(self) -> None:
        """Wait no longer for the call in flight; what it did must be looked at."""
        self._call = None
        self._suspect_at = None
        self._resizer.drop()
        self._stale = True

    @property
    def ending(self) -> bool:
        return self._ending is not None

    def adopt(self, sandbox: SandboxState | None) -> None:
        """The runtime has this of the pod."""
        self.sandbox = sandbox
        self._stale = False
        self._touched = False
        if self.shown_sandbox is None:
            self.shown_sandbox, self.shown_actuated = sandbox, self.actuated
        if sandbox is not None:
            self._sandbox_attempt = _attempt_of(sandbox.sandbox)
            self._correct(sandbox)
            alive = {c.container for c in sandbox.containers if c.state != "exited"}
            self._stopping = {container: at for container, at in self._stopping.items() if container in alive}

    def _correct(self, sandbox: SandboxState) -> None:
        """Actuated is what the runtime was last told, even where an answer was lost; that it was found is written down, too, for
        nothing may follow that would write it."""
        if self._call is not None or self.layer is None:
            return
        layer, level = self.actuated, self.allocated_pod.spec.resources
        for state in latest(sandbox).values():
            recorded = layer.of(state.name)
            if state.state != "running" or recorded is None:
                continue
            found = actuation.told(state, actuation.amounts(recorded, layer.level or level, unbound=state.name in self.unbound))
            if found is not None:
                self.record(state.name, found.record(), "found")
                self._kubelet.emit(*self._kubelet.actuated.save())

    def granted(self, now: Instant) -> None:
        """It was allocated something else."""
        self._resizer.at_once()
        self.sync(now)

    @property
    def resize_word(self) -> str:
        """Where its resize stands, in a word; empty if there was none."""
        if self.pending is not None:
            return self.pending.reason
        if self.in_progress is not None:
            return "InProgress"
        return "Succeeded" if self.resized else ""

    def look(self, now: Instant) -> None:
        """Something happened to a container: look at the runtime before going on."""
        self._stale = True
        self._resizer.at_once()
        self.sync(now)

    def heard(self, now: Instant, kind: str, container: str) -> None:
        """The runtime told of a container: ``created``, ``started``, ``updated`` or ``exited``."""
        state = self.state_of(container)
        if kind == "exited":
            if state is None or state.state != "exited":
                self.look(now)
        elif kind == "updated" and self._updates.get(container):
            self._updates[container] -= 1
        elif self._call is not None:
            if self._call.container == container and self._call.method in LONG_CALLS and kind != "created":
                self._suspect_at = Instant(now + seconds(SUSPECT_SECONDS))
                self._kubelet.wake(self, self._suspect_at)
        elif kind == "updated":
            self.look(now)  # an earlier life's, or one whose answer was lost
        elif state is None or (kind == "started" and state.state == "created"):
            self.look(now)

    def reconnected(self, now: Instant) -> None:
        """The runtime's connection was replaced: look at what it has, at once."""
        self._rest_until = Instant(0)
        if self.sandbox is not None:
            self.look(now)

    def finished(self, now: Instant, end: Finished) -> None:
        """The call in flight ended."""
        call, self._call = self._call, None
        self._suspect_at = None
        assert call is not None, "an answer belongs to the call in flight"
        if end.code is Code.DEADLINE_EXCEEDED and now < call.until:
            # Lost on the way, or the runtime takes its time: it joins a call to the one under way.
            self._call = call
            self._kubelet.ask(now, self, call.method, call.body, ASK_AGAIN_SECONDS)
            return
        if end.code is Code.OK:
            call.done(now, end.body)
            if call.method == "UpdateContainerResources":
                self._updates[call.container] = self._updates.get(call.container, 0) + 1
        else:
            if not end.code.definite:
                self._stale = True
            self._kubelet.metrics.operation_errors.labels(operation_type(call.method)).inc()
            call.failed(now, end.code, end.message)
        self.sync(now)

    # ------------------------------------------------------------ the chain

    def sync(self, now: Instant) -> None:
        """Go on, as far as it goes without waiting."""
        if self._call is not None:
            self._again = True
            return
        if not (self.admitted or self.gone or self.refused):
            return
        if now < self._rest_until:
            self._kubelet.wake(self, self._rest_until)
            return
        if self._stale and self.sandbox is not None:
            self._refresh(now)
            return
        self._stale = False
        if not self._chain and not self.gone:
            self._begin(now)
        while self._call is None and now >= self._rest_until and self._advance(now):
            pass

    @property
    def _midway(self) -> bool:
        """A container was told to stop and others wait for it: not the time to tell of it."""
        return self._ending is None and bool(self._stopping)

    def _begin(self, now: Instant) -> None:
        """The start of a chain: are resizes done or under way (RC-132, RC-133)? Then tell the API server."""
        self._chain = True
        self._again = False
        self._judge_progress(now)
        if self._about_to_end:
            return  # the next word is the last
        self.shown_sandbox, self.shown_actuated = self.sandbox, self.actuated
        self._note_waiting(now)
        self._kubelet.publish(now, self)

    @property
    def _about_to_end(self) -> bool:
        """Nothing runs any more and nothing will: only the sandbox is still to be stopped."""
        if self.over or self.sandbox is None or self.runs or not self.sandbox.containers:
            return False
        return self._ending is not None or lifecycle.is_over(self.pod, latest(self.sandbox))

    def _judge_progress(self, now: Instant) -> None:
        if self.layer is None or self.over:
            return
        pod = self.allocated_pod
        held = self._kubelet.scaling.holds_back(self.uid, self.sandbox, under_way=self.in_progress is not None)
        going_on = held or actuation.in_progress(pod, self.actuated, self.sandbox)
        if going_on and self.in_progress is None:
            self.in_progress = ResizeCondition("", "", pod.metadata.generation, now, now)
        elif not going_on and self.in_progress is not None and not self._midway:
            generation = self.in_progress.generation
            self.in_progress, self.resized = None, True
            message = f"Pod resize completed: {summary(pod, generation)}"
            self._kubelet.event(now, self.pod, "Normal", "ResizeCompleted", message)
            self._kubelet.emit(Note("kl.resized", {"pod": self.key, "uid": self.uid, "gen": generation}))

    def _advance(self, now: Instant) -> bool:
        """One step; True if another may follow at once."""
        if self.gone:
            return self._leave(now)
        if self._wants_workload():
            self._tell_workload(now)
            return False
        if self._pinner.due and self._may_resize and self._pinner.move(now):
            return False
        situation = self._situation(now)
        if self._ending is not None:
            action = lifecycle.next_end(situation, "Stopping container {}")
        else:
            action = lifecycle.next_action(situation)
        match action:
            case lifecycle.RunSandbox():
                self._run_sandbox(now)
            case lifecycle.StartContainer():
                if not action.created and self._must_wait(now, action.container.name):
                    return False
                self._start(now, action)
            case lifecycle.StopContainer(state, message):
                self._stop(now, state, message)
            case lifecycle.RemoveContainer(state):
                self._remove(now, state)
            case lifecycle.Resize():
                return self._resizer.go_on(now)
            case lifecycle.StopSandbox(sandbox):
                self._stop_sandbox(now, sandbox)
            case lifecycle.Wait(until):
                return self._rest(now, until)
            case lifecycle.Ended():
                return self._ended(now)
            case _:
                assert_never(action)
        return self._call is None

    def _situation(self, now: Instant) -> lifecycle.Situation:
        pod = self.allocated_pod
        due = self._may_resize and self._resizer.is_due(now)
        known = {s.name: s.restart_count for s in [*self.pod.status.container_statuses, *self.pod.status.init_container_statuses]}
        ran = {s.name for s in [*self.pod.status.container_statuses, *self.pod.status.init_container_statuses] if s.container_id}
        return lifecycle.Situation(
            now=now,
            pod=pod,
            sandbox=self.sandbox,
            stopping=self._stopping,
            restarts=actuation.to_restart(pod, self.actuated, actuation.resizable(pod, self.sandbox, now)) if due else (),
            not_before=self._delayed(now),
            started_before={name: count for name, count in known.items() if name in ran},
            resize=self._resizer.under_way or due,
            held=self._kubelet.is_held(self),
        )

    @property
    def _may_resize(self) -> bool:
        return self._ending is None and not self.over

    def _rest(self, now: Instant, until: Instant | None) -> bool:
        """Nothing to do: look at the runtime once more if something was done, else wait."""
        if self._touched and not self._midway:
            self._refresh(now)
            return False
        if self._again and not self._midway:
            self._begin(now)
            return True
        retry_at = self._resizer.retry_at
        retry = retry_at if retry_at > now and self._may_resize and self._resizer.is_unsettled(now) else None
        wakes = [at for at in (until, retry, self._stop_limit(), self._next_start(now)) if at is not None]
        if not self._midway:
            self._chain = False
        if wakes:
            self._kubelet.wake(self, max(min(wakes), now))
        return False

    def _next_start(self, now: Instant) -> Instant | None:
        """When the next startup probe succeeds: what waits for that goes on, and it is told."""
        states = latest(self.sandbox)
        starts = (actuation.starts_at(c, states.get(c.name)) for c in actuation.containers_of(self.pod) if c.startup_probe)
        return min((at for at in starts if at > now), default=None)

    def _ended(self, now: Instant) -> bool:
        if self._touched and self.sandbox is not None:
            self._refresh(now)
            return False
        if not self.over:
            self.over = True
            self.in_progress = self.pending = None
            self._kubelet.over(now, self)
            self._begin(now)
        self._chain = False
        return False

    def _stop_limit(self) -> Instant | None:
        """When to look, should the end of a stopping container not be told."""
        if not self._stopping:
            return None
        grace = self._ending.grace_seconds if self._ending else float(self.pod.spec.termination_grace_period_seconds)
        return Instant(max(self._stopping.values()) + seconds(max(GRACE_SECONDS_MIN, grace) + STOP_MARGIN_SECONDS))

    def alarm(self, now: Instant) -> None:
        """The time that the worker asked for has come."""
        if self._suspect_at is not None and now >= self._suspect_at:
            self._abandon_call()
        limit = self._stop_limit()
        if limit is not None and now >= limit:
            self._stale = True
            self._stopping = dict.fromkeys(self._stopping, now)
        self.sync(now)

    # ------------------------------------------------------------ calls

    def ask(
        self,
        now: Instant,
        method: str,
        body: Any,
        done: Done,
        failed: Failed,
        timeout: float = CALL_SECONDS,
    ) -> None:
        """Make the call that is then in flight; ``done`` and ``failed`` take its answer."""
        self.token += 1
        container = getattr(body, "container", "")
        until = Instant(now + seconds(timeout))
        self._call = _Call(method, body, container if isinstance(container, str) else "", done, failed, until)
        self._kubelet.metrics.operations.labels(operation_type(method)).inc()
        self._kubelet.ask(now, self, method, body, min(timeout, ASK_AGAIN_SECONDS))

    def _retry_later(self, now: Instant, code: Code, message: str) -> None:
        self._rest_until = Instant(now + seconds(SANDBOX_RETRY_SECONDS))
        self._kubelet.emit(Note("kl.runtime.failed", {"pod": self.key, "uid": self.uid, "code": code.name, "message": message}))
        self._kubelet.wake(self, self._rest_until)

    def _refresh(self, now: Instant) -> None:
        assert self.sandbox is not None, "there is something to look at"
        self.ask(now, "PodState", SandboxId(self.sandbox.sandbox), self._refreshed, self._retry_later)

    def _refreshed(self, now: Instant, body: bytes) -> None:
        try:
            found = decode_value(body, RuntimeState).sandboxes
        except MalformedError as why:
            self._retry_later(now, Code.INTERNAL, str(why))
            return
        midway = self._midway
        self.adopt(found[0] if found else None)
        if not midway:
            self._chain = False  # a new chain begins with the fresh view

    def _run_sandbox(self, now: Instant) -> None:
        pod = self.allocated_pod
        old = self.sandbox
        attempt = self._sandbox_attempt if old is None else max(self._sandbox_attempt, _attempt_of(old.sandbox) + 1)
        name = f"{pod.metadata.name}_{pod.metadata.namespace}_{self.uid}_{attempt}"
        config = actuation.cgroup_of(pod, self.unbound)
        request = RunPodSandbox(name, self.uid, pod.metadata.name, pod.metadata.namespace, self.workload, config.linux())

        def done(now: Instant, body: bytes) -> None:
            self.sandbox = SandboxState(name, self.uid, pod.metadata.name, pod.metadata.namespace, True, now, request.pod_cgroup)
            if self._sandbox_doubted:
                self._stale = True  # an earlier request may have made it, for what was allocated then
            else:
                self._resizer.made(config)
            self._sandbox_doubted = False
            self._sandbox_workload = request.workload
            self._stopping.clear()
            self._touched = True
            if old is not None:
                self._kubelet.tell(now, "RemovePodSandbox", SandboxId(old.sandbox))

        def failed(now: Instant, code: Code, message: str) -> None:
            self._sandbox_doubted = self._sandbox_doubted or not code.definite
            if code is Code.ALREADY_EXISTS:
                self._sandbox_attempt = attempt + 1
            why = f"Failed to create pod sandbox: {rpc_error(code, message)}"
            self._kubelet.event(now, self.pod, "Warning", "FailedCreatePodSandBox", why)
            self._retry_later(now, code, message)

        self.ask(now, "RunPodSandbox", request, done, failed)

    def _start(self, now: Instant, action: lifecycle.StartContainer) -> None:
        assert self.sandbox is not None, "a container starts in a sandbox"
        container, sandbox = action.container, self.sandbox.sandbox
        name = f"{sandbox}_{container.name}_{action.attempt}"
        if action.created:
            self._run(now, container, name)
            return
        self._kubelet.pull(now, self.pod, container)
        key = self._backoff_key(container)
        if action.attempt:
            self._backoff[container.name] = lifecycle.counted(self._backoff.get(container.name), key, now)
        level, unbound = self.allocated_pod.spec.resources, container.name in self.unbound
        wanted = actuation.amounts(container.resources, level, unbound=unbound)
        linux = msgspec.structs.replace(
            wanted.linux(),
            cpuset_cpus=self._kubelet.managers.cpuset(self.uid, container.name),
            cpuset_mems=self._kubelet.managers.mems(self.uid, container.name),
        )
        # Recorded before the container exists (RC-89), durable before the runtime is asked.
        self.record(container.name, container.resources, "create")
        if self.actuated.level is None and self.allocated_pod.spec.resources is not None:
            self._kubelet.actuated.put_level(self.uid, self.allocated_pod.spec.resources)
        self._kubelet.emit(*self._kubelet.actuated.save())
        request = CreateContainer(
            name, sandbox, container.name, action.attempt, container.image, linux, wanted.memory_request, action.is_init
        )

        def done(now: Instant, body: bytes) -> None:
            made = ContainerState(name, sandbox, container.name, action.attempt, container.image, "created", request.resources, now)
            self.put_state(made)
            self._kubelet.event(now, self.pod, "Normal", "Created", "Container created", container)

        self.ask(now, "CreateContainer", request, done, self._start_failed(container, "CreateContainerError"))

    def _run(self, now: Instant, container: Container, name: str) -> None:
        self._kubelet.managers.started(self.pod, container.name)
        self._kubelet.save_managers("started")

        def done(now: Instant, body: bytes) -> None:
            state = self.state_of(name)
            if state is not None:
                self.put_state(msgspec.structs.replace(state, state="running", started_at=now))
            self.waiting.pop(container.name, None)
            self._kubelet.event(now, self.pod, "Normal", "Started", "Container started", container)

        failed = self._start_failed(container, "RunContainerError")
        self.ask(now, "StartContainer", ContainerId(name), done, failed, LONG_CALL_SECONDS)

    def _start_failed(self, container: Container, reason: str) -> Failed:
        def failed(now: Instant, code: Code, message: str) -> None:
            self._stale = True
            if self._ending is None:
                self.waiting[container.name] = (reason, message)
                self._kubelet.event(now, self.pod, "Warning", "Failed", f"Error: {message}", container)
            self._retry_later(now, code, message)

        return failed

    def _stop(self, now: Instant, state: ContainerState, message: str) -> None:
        pod = self.pod
        container = next((c for c in actuation.containers_of(pod) if c.name == state.name), None)
        if state.container not in self._killed:
            self._killed.add(state.container)
            self._kubelet.event(now, pod, "Normal", "Killing", message, container)
        grace = self._ending.left(now) if self._ending else float(pod.spec.termination_grace_period_seconds)
        grace = max(GRACE_SECONDS_MIN, grace)

        def done(now: Instant, body: bytes) -> None:
            self._stopping[state.container] = now

        self.ask(now, "StopContainer", StopContainer(state.container, grace), done, self._retry_later)

    def _remove(self, now: Instant, state: ContainerState) -> None:
        def done(now: Instant, body: bytes) -> None:
            if self.sandbox is not None:
                kept = tuple(c for c in self.sandbox.containers if c.container != state.container)
                self.sandbox = msgspec.structs.replace(self.sandbox, containers=kept)

        self.ask(now, "RemoveContainer", ContainerId(state.container), done, self._retry_later)

    def _stop_sandbox(self, now: Instant, sandbox: str) -> None:
        def done(now: Instant, body: bytes) -> None:
            if self.sandbox is not None:
                self.sandbox = msgspec.structs.replace(self.sandbox, ready=False)

        self.ask(now, "StopPodSandbox", SandboxId(sandbox), done, self._retry_later)

    def repin(self, now: Instant) -> bool:
        """Bring the running containers to the CPUs that they are to have (XC-6). True if there is something to do, or it is not
        known yet: then it is to be asked again."""
        if self._ending is not None or self.over or self.refused is not None:
            return False
        if self.busy:
            return True
        moves = self._pinner.look()
        if moves:
            self.sync(now)
        return moves or self.busy or self._pinner.hindered

    @property
    def waits_for_cpus(self) -> bool:
        """Is it to go on once others have left CPUs that it was given?"""
        return self._starts_later or (self.runs and self._pinner.hindered)

    def _must_wait(self, now: Instant, container: str) -> bool:
        """May the container not be made yet, since somebody still runs on its CPUs? Then they are moved at once."""
        blockers = self._kubelet.scaling.blockers(self.uid, container)
        self._starts_later = bool(blockers)
        if blockers:
            self._kubelet.make_way(now, blockers)
            self._kubelet.wake(self, Instant(now + seconds(SANDBOX_RETRY_SECONDS)))
        return self._starts_later

    def _wants_workload(self) -> bool:
        ready = self.sandbox is not None and self.sandbox.ready
        return ready and not self.over and self._sandbox_workload != self.workload

    def _tell_workload(self, now: Instant) -> None:
        assert self.sandbox is not None, "only a sandbox has a workload"
        workload = self.workload

        def done(now: Instant, body: bytes) -> None:
            self._sandbox_workload = workload

        self.ask(now, "UpdateWorkload", UpdateWorkload(self.sandbox.sandbox, workload), done, self._retry_later)

    def touch(self) -> None:
        """Something was done to what the runtime has: it is looked at before anything is told."""
        self._touched = True

    def doubt(self) -> None:
        """What the runtime has is not certain: look before going on."""
        self._stale = True

    def state_of(self, container: str) -> ContainerState | None:
        containers = self.sandbox.containers if self.sandbox is not None else ()
        return next((c for c in containers if c.container == container), None)

    def put_state(self, state: ContainerState) -> None:
        assert self.sandbox is not None, "a container is in a sandbox"
        kept = tuple(c for c in self.sandbox.containers if c.container != state.container)
        self.sandbox = msgspec.structs.replace(self.sandbox, containers=(*kept, state))
        self._touched = True

    def record(self, name: str, resources: ResourceRequirements, cause: str) -> None:
        """Actuated is what was handed to the runtime."""
        self._kubelet.actuated.put_container(self.uid, name, resources)
        allocated = next((c.resources for c in actuation.containers_of(self.allocated_pod) if c.name == name), resources)
        own = msgspec.to_builtins(actuation.own_values(resources, allocated))
        facts = {"pod": self.key, "uid": self.uid, "containers": {name: own}, "cause": cause}
        self._kubelet.emit(Note("kl.actuated", facts))

    # ------------------------------------------------------------ crashes

    def _backoff_key(self, container: Container) -> str:
        return f"{container.image}|{msgspec.json.encode(container.resources, order='sorted').decode()}"

    def _delayed(self, now: Instant) -> dict[str, Instant]:
        states = latest(self.sandbox)
        found = {}
        for container in actuation.containers_of(self.allocated_pod):
            state = states.get(container.name)
            if state is None or state.state != "exited":
                continue
            at = lifecycle.delay_until(self._backoff.get(container.name), self._backoff_key(container), state)
            if at is not None and at > now:
                found[container.name] = at
        return found

    def _note_waiting(self, now: Instant) -> None:
        """Containers in crash back-off say so."""
        delayed = {} if self._ending is not None or self.over else self._delayed(now)
        states = latest(self.sandbox)
        for name in list(self.waiting):
            if self.waiting[name][0] == "CrashLoopBackOff" and name not in delayed:
                del self.waiting[name]
        for container in actuation.containers_of(self.allocated_pod):
            state = states.get(container.name)
            if container.name not in delayed or state is None:
                continue
            if not container.is_sidecar and not lifecycle.may_restart(self.pod, state):
                continue
            entry = self._backoff[container.name]
            meta = self.pod.metadata
            where = f"pod={meta.name}_{meta.namespace}({meta.uid})"
            wait = _go_duration(entry.wait_ns)
            words = f"back-off {wait} restarting failed container={container.name} {where}"
            if self.waiting.get(container.name) != ("CrashLoopBackOff", words):
                self.waiting[container.name] = ("CrashLoopBackOff", words)
                told = f"Back-off restarting failed container {container.name} in pod {meta.name}_{meta.namespace}({meta.uid})"
                self._kubelet.event(now, self.pod, "Warning", "BackOff", told, container)

    # ------------------------------------------------------------ leaving

    def leave(self, now: Instant) -> None:
        """The API server's pod is gone: end what is left of it, with the grace that it has, and forget it."""
        self.gone = True
        if self._ending is None:
            self._end(Ending(float(max(0, self.pod.spec.termination_grace_period_seconds))))
        self.sync(now)

    def _leave(self, now: Instant) -> bool:
        if self.sandbox is None:
            self.over = True
            self._kubelet.over(now, self)
            return False
        grace = self._ending.left(now) if self._ending else 0.0
        if self.runs and grace > 0:
            action = lifecycle.next_end(self._situation(now), "Stopping container {}")
            if isinstance(action, lifecycle.StopContainer):
                self._stop(now, action.state, action.message)
                return self._call is None
            if isinstance(action, lifecycle.Wait):
                limit = self._stop_limit()
                if limit is not None:
                    self._kubelet.wake(self, max(limit, now))
                return False
        for state in self.sandbox.containers:
            if state.state == "running" and state.container not in self._killed:
                self._killed.add(state.container)
                container = next((c for c in actuation.containers_of(self.pod) if c.name == state.name), None)
                self._kubelet.event(now, self.pod, "Normal", "Killing", f"Stopping container {state.name}", container)

        def done(now: Instant, body: bytes) -> None:
            self.sandbox = None

        self.ask(now, "RemovePodSandbox", SandboxId(self.sandbox.sandbox), done, self._retry_later)
        return False


def _attempt_of(sandbox: str) -> int:
    _, _, last = sandbox.rpartition("_")
    return int(last) if last.isdecimal() else 0


def _go_duration(ns: int) -> str:
    """``10s``, ``1m20s``, ``5m0s``: as Go prints a duration of whole seconds."""
    whole = ns // 1_000_000_000
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60}s"
