"""One pod's containers on the CPUs that they are to have: each round of the CPU manager moves those that run elsewhere (XC-6).

One runtime call at a time, like everything that is done for a pod; what fails is tried again in the next round.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

import msgspec

from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.resizer import CALL_SECONDS, Done, Failed
from elbowroom.machine import Effect, Instant, Note
from elbowroom.wire import Code
from elbowroom.wire.cri import ContainerState, LinuxResources, SandboxState, UpdateContainerResources


class Services(Protocol):
    """What is needed of the kubelet."""

    managers: Managers
    scaling: Scaling

    def emit(self, *effects: Effect) -> None: ...
    def make_way(self, now: Instant, uids: Iterable[str]) -> None: ...
    def moved(self, now: Instant) -> None: ...


class Owner(Protocol):
    """What is needed of the pod's worker."""

    sandbox: SandboxState | None

    @property
    def uid(self) -> str: ...
    @property
    def key(self) -> str: ...
    def ask(self, now: Instant, method: str, body: Any, done: Done, failed: Failed, timeout: float = CALL_SECONDS) -> None: ...
    def doubt(self) -> None: ...
    def state_of(self, container: str) -> ContainerState | None: ...
    def put_state(self, state: ContainerState) -> None: ...


class Pinner:
    """``due``: somebody is to be moved. ``stopping`` gives the containers that were told to stop, which stay where they are."""

    __slots__ = (
        "_kubelet",
        "_owner",
        "_stopping",
        "due",
        "holds_up",
    )

    def __init__(self, kubelet: Services, owner: Owner, stopping: Callable[[], Collection[str]]) -> None:
        self._kubelet, self._owner, self._stopping = kubelet, owner, stopping
        self.due = False
        self.holds_up = False
        """A container is to be made once others have left its CPUs."""

    def must_wait(self, now: Instant, container: str) -> bool:
        """May the container not be made yet, since somebody still runs on its CPUs? Then they are moved at once."""
        blockers = self._kubelet.scaling.blockers(self._owner.uid, container)
        self.holds_up = bool(blockers)
        if blockers:
            self._kubelet.make_way(now, blockers)
        return self.holds_up

    @property
    def hindered(self) -> bool:
        """Does somebody run on less than it was given, until others have left the rest?"""
        managers, scaling, uid = self._kubelet.managers, self._kubelet.scaling, self._owner.uid
        return any(managers.cpuset(uid, state.name) != scaling.place(uid, state.name) for state in self._running())

    def look(self) -> bool:
        """Is somebody to be moved? Then they are, from now on."""
        self.due = self._misplaced() is not None
        return self.due

    def move(self, now: Instant) -> bool:
        """Move the next container that is not where it should be; False if there is none."""
        state = self._misplaced()
        self.due = state is not None
        if state is None:
            return False
        owner, moved = self._owner, LinuxResources(cpuset_cpus=self._place(state))

        def done(now: Instant, body: bytes) -> None:
            known = owner.state_of(state.container)
            if known is not None:
                owner.put_state(msgspec.structs.replace(known, resources=known.resources.updated(moved)))
            self._kubelet.moved(now)

        def failed(now: Instant, code: Code, message: str) -> None:
            self.due = False  # the next round tries again
            owner.doubt()
            facts = {"pod": owner.key, "uid": owner.uid, "container": state.container, "why": message}
            self._kubelet.emit(Note("kl.cpus.failed", facts))

        owner.ask(now, "UpdateContainerResources", UpdateContainerResources(state.container, moved), done, failed)
        return True

    def _running(self) -> list[ContainerState]:
        sandbox, stopping = self._owner.sandbox, self._stopping()
        states = sandbox.containers if sandbox is not None and sandbox.ready else ()
        return [state for state in states if state.state == "running" and state.container not in stopping]

    def _misplaced(self) -> ContainerState | None:
        return next((state for state in self._running() if self._place(state)), None)

    def _place(self, state: ContainerState) -> str:
        """Where it is to run, if it does not run there."""
        wanted = self._kubelet.scaling.place(self._owner.uid, state.name)
        return wanted if wanted != state.resources.cpuset_cpus else ""
