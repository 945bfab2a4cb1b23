"""One pod's resize step: walks through a plan, one runtime call at a time (RC-105 to RC-113).

A plan that was made for an allocation is thrown away when a newer one has come. A failure throws it away too and sets when to try
again.
"""

from collections.abc import Callable
from typing import Any, Protocol, assert_never

import msgspec

from elbowroom.api.objects import Container, Pod, ResourceRequirements
from elbowroom.kubelet import actuation
from elbowroom.kubelet.actuation import NotifySandbox, Operation, PodConfig, RecordLevel, UpdateContainer, WritePod
from elbowroom.kubelet.allocation import summary
from elbowroom.kubelet.checkpoint import Checkpoint, PodResources
from elbowroom.kubelet.metrics import Metrics
from elbowroom.kubelet.status.shown import ResizeCondition
from elbowroom.machine import Effect, Instant, Note, Step, seconds
from elbowroom.wire import Code, MalformedError, decode_value
from elbowroom.wire.cri import (
    ContainerState,
    LinuxResources,
    PodStats,
    SandboxId,
    SandboxState,
    SetPodCgroup,
    UpdateContainerResources,
    UpdatePodSandboxResources,
)

Done = Callable[[Instant, bytes], None]
Failed = Callable[[Instant, Code, str], None]

CALL_SECONDS = 5.0
LONG_CALL_SECONDS = 120.0
"""Starting and updating take as long as a workload says; upstream's runtimeRequestTimeout."""


class Services(Protocol):
    """What the step needs of its kubelet."""

    actuated: Checkpoint
    metrics: Metrics
    notify_first: bool

    def emit(self, *effects: Effect) -> None: ...
    def jitter(self) -> float: ...
    def tell(self, now: Instant, method: str, body: Any) -> None: ...
    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...


class Owner(Protocol):
    """What the step needs of its pod's worker."""

    pod: Pod
    sandbox: SandboxState | None
    in_progress: ResizeCondition | None

    @property
    def uid(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def layer(self) -> PodResources | None: ...
    @property
    def actuated(self) -> PodResources: ...
    @property
    def allocated_pod(self) -> Pod: ...
    @property
    def unbound(self) -> frozenset[str]: ...
    @property
    def busy(self) -> bool: ...
    def ask(self, now: Instant, method: str, body: Any, done: Done, failed: Failed, timeout: float = CALL_SECONDS) -> None: ...
    def touch(self) -> None: ...
    def doubt(self) -> None: ...
    def state_of(self, container: str) -> ContainerState | None: ...
    def put_state(self, state: ContainerState) -> None: ...
    def record(self, name: str, resources: ResourceRequirements, cause: str) -> None: ...
    def tuned(self, linux: LinuxResources, container: Container) -> LinuxResources: ...


class Resizer:
    """``retry_at`` is when a failed step may be tried again."""

    __slots__ = (
        "_began",
        "_for",
        "_kubelet",
        "_operations",
        "_owner",
        "_written",
        "retry_at",
    )

    def __init__(self, kubelet: Services, owner: Owner) -> None:
        self._kubelet, self._owner = kubelet, owner
        self._operations: tuple[Operation, ...] = ()
        self._for: PodResources | None = None
        self._began: Instant | None = None
        self._written: PodConfig | None = None
        self.retry_at = Instant(0)

    @property
    def under_way(self) -> bool:
        """Is there a plan that is not done?"""
        return bool(self._operations)

    def made(self, config: PodConfig) -> None:
        """The pod's cgroup was made with this configuration."""
        self._written = config

    def at_once(self) -> None:
        """Something changed: a failed step need not wait any longer."""
        self.retry_at = Instant(0)

    def is_unsettled(self, now: Instant) -> bool:
        """Is there anything that a step would change?"""
        owner = self._owner
        if owner.sandbox is None or not owner.sandbox.ready or owner.layer is None:
            return False
        pod, actuated = owner.allocated_pod, owner.actuated
        sandbox = actuation.resizable(pod, owner.sandbox, now) or owner.sandbox
        states = actuation.latest(sandbox)
        for container in actuation.containers_of(pod):
            state = states.get(container.name)
            if state is not None and state.state == "running" and actuation.changed(container, pod, actuated):
                return True
        return not self._cgroup_is_settled(pod, sandbox) or actuation.in_progress(pod, actuated, sandbox)

    def _cgroup_is_settled(self, pod: Pod, sandbox: SandboxState) -> bool:
        current = self._written or actuation.read_back(sandbox.pod_cgroup)
        return actuation.settled(actuation.cgroup_of(pod, self._owner.unbound), current)

    def is_due(self, now: Instant) -> bool:
        """Is there something that a step would change, and no need to wait for it?"""
        return now >= self.retry_at and self.is_unsettled(now)

    def drop(self) -> None:
        """Throw the plan away."""
        self._operations = ()
        self._for = None

    def go_on(self, now: Instant) -> bool:
        """Make the plan, or take its next operation; True if what follows need not wait."""
        if self._for is not None and self._for is not self._owner.layer:
            self.drop()  # a newer allocation counts now
        if not self._operations:
            self._plan(now)
        else:
            self._operate(now, self._operations[0])
        return not self._owner.busy

    # ------------------------------------------------------------ the plan

    def _plan(self, now: Instant) -> None:
        owner = self._owner
        assert owner.sandbox is not None, "only what runs is resized"
        pod = owner.allocated_pod
        sandbox = actuation.resizable(pod, owner.sandbox, now) or owner.sandbox
        current = self._written or actuation.read_back(owner.sandbox.pod_cgroup)
        made = actuation.plan(pod, owner.actuated, sandbox, current, notify_first=self._kubelet.notify_first, unbound=owner.unbound)
        self._operations = made.operations
        self._for, self._began = owner.layer, now
        if not made.operations:
            # The kernel keeps it otherwise than it was asked to; asking again would change nothing.
            self._written = actuation.cgroup_of(pod, owner.unbound)
            self.drop()
        elif made.check is not None:
            self._check(now, made.check, owner.sandbox.sandbox)

    def _check(self, now: Instant, check: actuation.MemoryCheck, sandbox: str) -> None:
        meta = self._owner.pod.metadata
        no_usage = f'unable to read memory usage for pod "{meta.name}_{meta.namespace}({meta.uid})"'

        def sampled(now: Instant, body: bytes) -> None:
            try:
                error = check.error(decode_value(body, PodStats))
            except MalformedError:
                error = no_usage
            if error:
                self._fail(now, error, check=True)

        def unknown(now: Instant, code: Code, message: str) -> None:
            self._fail(now, no_usage, check=True)

        self._owner.ask(now, "PodStats", SandboxId(sandbox), sampled, unknown)

    # ------------------------------------------------------------ operations

    def _operate(self, now: Instant, operation: Operation) -> None:
        owner, kubelet = self._owner, self._kubelet
        assert owner.sandbox is not None, "only what runs is resized"
        sandbox = owner.sandbox.sandbox
        match operation:
            case WritePod():
                kubelet.emit(Step(operation.label))
                request = SetPodCgroup(sandbox, operation.resources)
                owner.ask(now, "SetPodCgroup", request, self._pod_written(operation), self._write_failed(operation, sandbox))
            case NotifySandbox():
                body = self._pod_resources(sandbox, operation.resources)
                owner.ask(now, "UpdatePodSandboxResources", body, self._next, self._notify_failed(operation, sandbox))
            case UpdateContainer():
                kubelet.emit(Step(operation.labels[0]))
                update = UpdateContainerResources(operation.container, self._linux(operation))
                done, failed = self._updated(operation, update.resources), self._update_failed(operation)
                owner.ask(now, "UpdateContainerResources", update, done, failed, LONG_CALL_SECONDS)
            case RecordLevel():
                kubelet.actuated.put_level(owner.uid, operation.after(owner.actuated.level))
                kubelet.emit(*kubelet.actuated.save(), Step("K15 actuated record durable"))
                self._next(now, b"")
            case _:
                assert_never(operation)

    def _pod_resources(self, sandbox: str, resources: LinuxResources) -> UpdatePodSandboxResources:
        return UpdatePodSandboxResources(sandbox, actuation.overhead_of(self._owner.allocated_pod), resources)

    def _next(self, now: Instant, body: bytes) -> None:
        """The first operation is done."""
        self._operations = self._operations[1:]
        self._owner.touch()
        if not self._operations:
            self._observe(now, success=True)

    def _pod_written(self, operation: WritePod) -> Done:
        def done(now: Instant, body: bytes) -> None:
            self._written = operation.after
            self._next(now, body)

        return done

    def _write_failed(self, operation: WritePod, sandbox: str) -> Failed:
        def failed(now: Instant, code: Code, message: str) -> None:
            self._written = None
            self._owner.doubt()
            if operation.undo is not None:
                self._kubelet.tell(now, "UpdatePodSandboxResources", self._pod_resources(sandbox, operation.undo))
            self._fail(now, f"failed to set cgroup config of the pod (resource={operation.resource}): {message}")

        return failed

    def _notify_failed(self, operation: NotifySandbox, sandbox: str) -> Failed:
        def failed(now: Instant, code: Code, message: str) -> None:
            unimplemented = code is Code.UNIMPLEMENTED or (code is Code.UNKNOWN and "not implemented" in message)
            if operation.blocking and not unimplemented:
                self._fail(
                    now,
                    f"failed to notify runtime for UpdatePodSandboxResources (resource={operation.resource}); resize rejected: "
                    f'updatePodSandboxResources failed for sanboxID "{sandbox}": {rpc_error(code, message)}',
                )
                return
            self._kubelet.emit(Note("kl.sandbox.untold", {"pod": self._owner.key, "uid": self._owner.uid, "why": message}))
            self._next(now, b"")

        return failed

    def _linux(self, operation: UpdateContainer) -> LinuxResources:
        """All that the runtime is told of the container in this step (RC-115)."""
        owner, amounts = self._owner, operation.amounts
        container = next(c for c in actuation.containers_of(owner.allocated_pod) if c.name == operation.name)
        return owner.tuned(amounts.linux(), msgspec.structs.replace(container, resources=amounts.record()))

    def _updated(self, operation: UpdateContainer, told: LinuxResources) -> Done:
        def done(now: Instant, body: bytes) -> None:
            owner, kubelet = self._owner, self._kubelet
            kubelet.emit(Step(operation.labels[1]))
            owner.record(operation.name, operation.amounts.record(), "update")
            kubelet.emit(*kubelet.actuated.save(), Step("K15 actuated record durable"))
            state = owner.state_of(operation.container)
            if state is not None:
                owner.put_state(msgspec.structs.replace(state, resources=state.resources.updated(told)))
            self._next(now, body)

        return done

    def _update_failed(self, operation: UpdateContainer) -> Failed:
        def failed(now: Instant, code: Code, message: str) -> None:
            self._kubelet.emit(Step(operation.labels[1]))
            if code is Code.NOT_FOUND:
                self._owner.doubt()
            self._fail(now, rpc_error(code, message))

        return failed

    # ------------------------------------------------------------ failure

    def _fail(self, now: Instant, text: str, *, check: bool = False) -> None:
        """RC-113: the condition says why; the next attempt is soon after the runtime failed, later after the check did."""
        owner = self._owner
        superseded = self._for is not owner.layer
        self.drop()
        self._observe(now, success=False)
        owner.touch()
        if superseded:
            return
        wait = actuation.RETRY_CHECK_SECONDS * (1 + actuation.RETRY_JITTER * self._kubelet.jitter()) if check else 0
        self.retry_at = Instant(now + seconds(wait or actuation.RETRY_RUNTIME_SECONDS))
        generation = owner.pod.metadata.generation
        before = owner.in_progress or ResizeCondition("", "", generation, now, now)
        if (before.reason, before.message) != ("Error", text):
            since = before.since if before.reason == "Error" else now
            owner.in_progress = ResizeCondition("Error", text, before.generation, since, now)
            message = f"Pod resize error: {summary(owner.allocated_pod, before.generation, text)}"
            self._kubelet.event(now, owner.pod, "Warning", "ResizeError", message)
        facts = {"pod": owner.key, "uid": owner.uid, "gen": before.generation, "why": text}
        self._kubelet.emit(Note("kl.resize.failed", facts))

    def _observe(self, now: Instant, *, success: bool) -> None:
        if self._began is not None:
            label = "true" if success else "false"
            self._kubelet.metrics.duration.observe((now - self._began) / 1e6, label)
        self._began = None


_CAMEL = {code: "".join(word.capitalize() for word in code.name.split("_")) for code in Code}


def rpc_error(code: Code, message: str) -> str:
    """As gRPC words an error."""
    return f"rpc error: code = {_CAMEL[code]} desc = {message}"
