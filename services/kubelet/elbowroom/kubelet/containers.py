"""One pod's containers: making, starting, stopping and removing them, each with the pod's one runtime call in flight."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from elbowroom.api.objects import Container, Pod, ResourceRequirements
from elbowroom.kubelet import actuation, lifecycle
from elbowroom.kubelet.checkpoint import Checkpoint, PodResources
from elbowroom.kubelet.crashloop import CrashLoop
from elbowroom.kubelet.ending import Ending
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.resizer import CALL_SECONDS, LONG_CALL_SECONDS, Done, Failed
from elbowroom.machine import Effect, Instant, seconds
from elbowroom.wire import Code
from elbowroom.wire.cri import ContainerId, ContainerState, CreateContainer, LinuxResources, SandboxState, StopContainer

GRACE_SECONDS_MIN = 2.0
"""Even a container whose pod has no grace gets SIGTERM and this long, as upstream's do."""
STOP_MARGIN_SECONDS = 2.0


class Services(Protocol):
    """What is needed of the kubelet."""

    actuated: Checkpoint
    managers: Managers

    def emit(self, *effects: Effect) -> None: ...
    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...
    def pull(self, now: Instant, pod: Pod, container: Container) -> None: ...
    def save_managers(self, cause: str) -> None: ...


class Owner(Protocol):
    """What is needed of the pod's worker."""

    pod: Pod
    sandbox: SandboxState | None

    @property
    def uid(self) -> str: ...
    @property
    def actuated(self) -> PodResources: ...
    @property
    def allocated_pod(self) -> Pod: ...
    @property
    def unbound(self) -> frozenset[str]: ...
    def ask(self, now: Instant, method: str, body: Any, done: Done, failed: Failed, timeout: float = CALL_SECONDS) -> None: ...
    def retry_later(self, now: Instant, code: Code, message: str) -> None: ...
    def doubt(self) -> None: ...
    def state_of(self, container: str) -> ContainerState | None: ...
    def put_state(self, state: ContainerState) -> None: ...
    def record(self, name: str, resources: ResourceRequirements, cause: str) -> None: ...
    def tuned(self, linux: LinuxResources, container: Container) -> LinuxResources: ...


class Containers:
    """``stopping`` are those that were told to stop, by id, and when. ``ending`` gives how the pod is to end, if it is."""

    __slots__ = (
        "_crashes",
        "_ending",
        "_killed",
        "_kubelet",
        "_owner",
        "stopping",
    )

    def __init__(self, kubelet: Services, owner: Owner, crashes: CrashLoop, ending: Callable[[], Ending | None]) -> None:
        self._kubelet, self._owner, self._crashes, self._ending = kubelet, owner, crashes, ending
        self.stopping: dict[str, Instant] = {}
        self._killed: frozenset[str] = frozenset()
        """Those of which it was told that they are stopped."""

    # ------------------------------------------------------------ starting

    def start(self, now: Instant, action: lifecycle.StartContainer) -> None:
        """Make the container, or start one that was made."""
        owner, kubelet = self._owner, self._kubelet
        assert owner.sandbox is not None, "a container starts in a sandbox"
        container, sandbox = action.container, owner.sandbox.sandbox
        name = f"{sandbox}_{container.name}_{action.attempt}"
        if action.created:
            self._run(now, container, name)
            return
        kubelet.pull(now, owner.pod, container)
        if action.attempt:
            self._crashes.restarted(now, container)
        level, unbound = owner.allocated_pod.spec.resources, container.name in owner.unbound
        wanted = actuation.amounts(container.resources, level, unbound=unbound)
        linux = msgspec.structs.replace(
            owner.tuned(wanted.linux(), container),
            cpuset_cpus=kubelet.managers.cpuset(owner.uid, container.name),
            cpuset_mems=kubelet.managers.mems(owner.uid, container.name),
        )
        # Recorded before the container exists (RC-89), durable before the runtime is asked.
        owner.record(container.name, container.resources, "create")
        if owner.actuated.level is None and level is not None:
            kubelet.actuated.put_level(owner.uid, level)
        kubelet.emit(*kubelet.actuated.save())
        request = CreateContainer(
            name, sandbox, container.name, action.attempt, container.image, linux, wanted.memory_request, action.is_init
        )

        def done(now: Instant, body: bytes) -> None:
            made = ContainerState(name, sandbox, container.name, action.attempt, container.image, "created", request.resources, now)
            owner.put_state(made)
            kubelet.event(now, owner.pod, "Normal", "Created", "Container created", container)

        owner.ask(now, "CreateContainer", request, done, self._start_failed(container, "CreateContainerError"))

    def _run(self, now: Instant, container: Container, name: str) -> None:
        owner, kubelet = self._owner, self._kubelet
        kubelet.managers.started(owner.pod, container.name)
        kubelet.save_managers("started")

        def done(now: Instant, body: bytes) -> None:
            state = owner.state_of(name)
            if state is not None:
                owner.put_state(msgspec.structs.replace(state, state="running", started_at=now))
            self._crashes.runs(container)
            kubelet.event(now, owner.pod, "Normal", "Started", "Container started", container)

        failed = self._start_failed(container, "RunContainerError")
        owner.ask(now, "StartContainer", ContainerId(name), done, failed, LONG_CALL_SECONDS)

    def _start_failed(self, container: Container, reason: str) -> Failed:
        def failed(now: Instant, code: Code, message: str) -> None:
            self._owner.doubt()
            if self._ending() is None:
                self._crashes.waiting[container.name] = (reason, message)
                self._kubelet.event(now, self._owner.pod, "Warning", "Failed", f"Error: {message}", container)
            self._owner.retry_later(now, code, message)

        return failed

    # ------------------------------------------------------------ stopping

    def stop(self, now: Instant, state: ContainerState, message: str) -> None:
        """Ask it to end, with the grace that it has; ``message`` is told, once."""
        self.tell_killing(now, state, message)
        ending = self._ending()
        grace = ending.left(now) if ending else float(self._owner.pod.spec.termination_grace_period_seconds)
        grace = max(GRACE_SECONDS_MIN, grace)

        def done(now: Instant, body: bytes) -> None:
            self.stopping[state.container] = now

        self._owner.ask(now, "StopContainer", StopContainer(state.container, grace), done, self._owner.retry_later)

    def tell_killing(self, now: Instant, state: ContainerState, message: str) -> None:
        """It is being ended; told once of each."""
        pod = self._owner.pod
        if state.container not in self._killed:
            self._killed |= {state.container}
            container = next((c for c in actuation.containers_of(pod) if c.name == state.name), None)
            self._kubelet.event(now, pod, "Normal", "Killing", message, container)

    def remove(self, now: Instant, state: ContainerState) -> None:
        """Let the runtime forget an instance that has ended."""
        owner = self._owner

        def done(now: Instant, body: bytes) -> None:
            if owner.sandbox is not None:
                kept = tuple(c for c in owner.sandbox.containers if c.container != state.container)
                owner.sandbox = msgspec.structs.replace(owner.sandbox, containers=kept)

        owner.ask(now, "RemoveContainer", ContainerId(state.container), done, owner.retry_later)

    def found(self, sandbox: SandboxState) -> None:
        """The runtime has these: others stop no more."""
        alive = {c.container for c in sandbox.containers if c.state != "exited"}
        self.stopping = {container: at for container, at in self.stopping.items() if container in alive}

    @property
    def stop_limit(self) -> Instant | None:
        """When to look, should the end of a stopping container not be told."""
        if not self.stopping:
            return None
        ending = self._ending()
        grace = ending.grace_seconds if ending else float(self._owner.pod.spec.termination_grace_period_seconds)
        return Instant(max(self.stopping.values()) + seconds(max(GRACE_SECONDS_MIN, grace) + STOP_MARGIN_SECONDS))

    def look_again(self, now: Instant) -> None:
        """The limit has come and nothing was told: wait as long again."""
        self.stopping = dict.fromkeys(self.stopping, now)
