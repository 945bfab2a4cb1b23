"""One pod's sandbox: making it, stopping it, and telling it what emulated programs do."""

from typing import Any, Protocol

import msgspec

from elbowroom.api.objects import Container, Pod
from elbowroom.kubelet import actuation
from elbowroom.kubelet.actuation import PodConfig
from elbowroom.kubelet.resizer import CALL_SECONDS, Done, Failed, rpc_error
from elbowroom.machine import Instant
from elbowroom.wire import Code
from elbowroom.wire.cri import RunPodSandbox, SandboxId, SandboxState, UpdateWorkload

WORKLOAD = "elbowroom.dev/workload"


class Services(Protocol):
    """What is needed of the kubelet."""

    def tell(self, now: Instant, method: str, body: Any) -> None: ...
    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...


class Owner(Protocol):
    """What is needed of the pod's worker."""

    pod: Pod
    sandbox: SandboxState | None
    over: bool

    @property
    def uid(self) -> str: ...
    @property
    def allocated_pod(self) -> Pod: ...
    @property
    def unbound(self) -> frozenset[str]: ...
    def ask(self, now: Instant, method: str, body: Any, done: Done, failed: Failed, timeout: float = CALL_SECONDS) -> None: ...
    def retry_later(self, now: Instant, code: Code, message: str) -> None: ...
    def sandbox_made(self, config: PodConfig, *, doubted: bool) -> None: ...


class PodSandbox:
    """Each of its calls is the one in flight of the pod; ``Owner.sandbox`` is what is known to be there."""

    __slots__ = (
        "_attempt",
        "_doubted",
        "_kubelet",
        "_owner",
        "_told",
    )

    def __init__(self, kubelet: Services, owner: Owner) -> None:
        self._kubelet, self._owner = kubelet, owner
        self._attempt = 0
        self._doubted = False
        """One was asked for, and nobody knows whether it was made."""
        self._told: str | None = None
        """The workload that it has, if that is known."""

    def found(self, sandbox: SandboxState) -> None:
        """The runtime has this one."""
        self._attempt = _attempt_of(sandbox.sandbox)

    def make(self, now: Instant) -> None:
        """Make one; if there was one, it is removed then."""
        owner, pod, old = self._owner, self._owner.allocated_pod, self._owner.sandbox
        attempt = self._attempt if old is None else max(self._attempt, _attempt_of(old.sandbox) + 1)
        meta = pod.metadata
        name = f"{meta.name}_{meta.namespace}_{owner.uid}_{attempt}"
        config = actuation.cgroup_of(pod, owner.unbound)
        request = RunPodSandbox(name, owner.uid, meta.name, meta.namespace, self._workload, config.linux())

        def done(now: Instant, body: bytes) -> None:
            owner.sandbox = SandboxState(name, owner.uid, meta.name, meta.namespace, True, now, request.pod_cgroup)
            owner.sandbox_made(config, doubted=self._doubted)
            self._told = None if self._doubted else request.workload  # what was asked for before may have made it
            self._doubted = False
            if old is not None:
                self._kubelet.tell(now, "RemovePodSandbox", SandboxId(old.sandbox))

        def failed(now: Instant, code: Code, message: str) -> None:
            self._doubted = self._doubted or not code.definite
            if code is Code.ALREADY_EXISTS:
                self._attempt = attempt + 1
            why = f"Failed to create pod sandbox: {rpc_error(code, message)}"
            self._kubelet.event(now, owner.pod, "Warning", "FailedCreatePodSandBox", why)
            owner.retry_later(now, code, message)

        owner.ask(now, "RunPodSandbox", request, done, failed)

    def stop(self, now: Instant, sandbox: str) -> None:
        """Everything in it has ended."""
        owner = self._owner

        def done(now: Instant, body: bytes) -> None:
            if owner.sandbox is not None:
                owner.sandbox = msgspec.structs.replace(owner.sandbox, ready=False)

        owner.ask(now, "StopPodSandbox", SandboxId(sandbox), done, owner.retry_later)

    def remove(self, now: Instant, sandbox: str) -> None:
        """Remove it with all that is in it."""
        owner = self._owner

        def done(now: Instant, body: bytes) -> None:
            owner.sandbox = None

        owner.ask(now, "RemovePodSandbox", SandboxId(sandbox), done, owner.retry_later)

    # ------------------------------------------------------------ what programs do

    @property
    def _workload(self) -> str:
        return self._owner.pod.metadata.annotations.get(WORKLOAD, "")

    @property
    def wants_workload(self) -> bool:
        """Is it to be told what its programs do?"""
        sandbox = self._owner.sandbox
        return sandbox is not None and sandbox.ready and not self._owner.over and self._told != self._workload

    def tell_workload(self, now: Instant) -> None:
        """Tell it what its programs do from now on."""
        assert self._owner.sandbox is not None, "only a sandbox has a workload"
        workload = self._workload

        def done(now: Instant, body: bytes) -> None:
            self._told = workload

        body = UpdateWorkload(self._owner.sandbox.sandbox, workload)
        self._owner.ask(now, "UpdateWorkload", body, done, self._owner.retry_later)


def _attempt_of(sandbox: str) -> int:
    _, _, last = sandbox.rpartition("_")
    return int(last) if last.isdecimal() else 0
