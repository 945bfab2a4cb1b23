"""What the runtime has of the node's pods: it is listed, its events are heard, and what is nobody's is removed."""

from collections.abc import Mapping
from typing import Any, Protocol

from elbowroom.kubelet.keeper import NodeKeeper
from elbowroom.kubelet.roster import Roster
from elbowroom.machine import Effect, Instant, Note
from elbowroom.rpc import Calls, Finished
from elbowroom.wire import Code, MalformedError, decode_value
from elbowroom.wire.cri import ContainerEvent, RuntimeState, SandboxId, SandboxState


class Services(Protocol):
    """What the inventory needs of its kubelet."""

    booted: bool
    keeper: NodeKeeper
    roster: Roster

    def emit(self, *effects: Effect) -> None: ...
    def tell(self, now: Instant, method: str, body: Any) -> None: ...


class Inventory:
    """Context of its calls: ``("list",)``. ``heard_at`` is when the runtime last answered anything."""

    def __init__(self, kubelet: Services, calls: Calls, runtime: str) -> None:
        self._kubelet, self._calls, self._runtime = kubelet, calls, runtime
        self._first: Mapping[str, SandboxState] | None = None
        self._strays: list[str] = []
        """Older sandboxes of pods that have a newer one."""
        self.heard_at = Instant(0)

    @property
    def known(self) -> bool:
        """Has the runtime been listed in this life?"""
        return self._first is not None

    # ------------------------------------------------------------ listing

    def ask(self, now: Instant) -> None:
        """List the runtime."""
        self._kubelet.emit(*self._calls.begin(now, self._runtime, "ListAll", context=("list",)))

    def listed(self, now: Instant, end: Finished) -> None:
        """The list came; or it did not, then a kubelet that waits for it asks again."""
        kubelet = self._kubelet
        if end.code is not Code.OK:
            if kubelet.booted:
                kubelet.keeper.update(now)
            self._ask_again(now)
            return
        try:
            found = decode_value(end.body, RuntimeState).sandboxes
        except MalformedError as why:
            kubelet.emit(Note("kl.runtime.failed", {"code": "INTERNAL", "message": str(why)}))
            self._ask_again(now)
            return
        self.heard_at = now
        newest: dict[str, SandboxState] = {}
        for sandbox in sorted(found, key=lambda s: (s.created_at, s.sandbox)):
            if sandbox.uid in newest:
                self._strays.append(newest[sandbox.uid].sandbox)
            newest[sandbox.uid] = sandbox
        if not kubelet.booted:
            self._first = newest
            return
        self._reconcile(now, newest)

    def _ask_again(self, now: Instant) -> None:
        if not self._kubelet.booted:
            self.ask(now)

    def adopt(self, now: Instant) -> None:
        """A life begins: give each pod the sandbox that the runtime has of it; what is nobody's goes."""
        assert self._first is not None, "a life begins when the runtime was listed"
        listed, self._first = self._first, {}
        for uid, sandbox in listed.items():
            worker = self._kubelet.roster.get(uid)
            if worker is None:
                self._remove(now, sandbox.sandbox)
            elif not worker.busy:
                worker.adopt(sandbox)
                self._kubelet.roster.place(worker)
        self._remove_strays(now)

    def _reconcile(self, now: Instant, newest: Mapping[str, SandboxState]) -> None:
        """After a gap in the events: look at every pod of which the runtime has something else than we think."""
        roster = self._kubelet.roster
        busy = {w.uid for w in roster.everybody() if w.busy}
        self._strays = [s for s in self._strays if roster.owner(s) is None]
        for uid, sandbox in newest.items():
            worker = roster.get(uid)
            if worker is None:
                self._remove(now, sandbox.sandbox)
            elif uid not in busy and not worker.in_doubt and worker.sandbox != sandbox:
                worker.adopt(sandbox)
                roster.place(worker)
                worker.sync(now)
        for worker in roster.everybody():
            if worker.uid not in newest and worker.uid not in busy and worker.sandbox is not None:
                worker.look(now)
        self._remove_strays(now)
        self._kubelet.keeper.update(now)

    def _remove_strays(self, now: Instant) -> None:
        for stray in self._strays:
            self._remove(now, stray)
        self._strays = []

    def _remove(self, now: Instant, sandbox: str) -> None:
        """Remove a sandbox that belongs to nobody."""
        self._kubelet.roster.forget(sandbox)
        self._kubelet.tell(now, "RemovePodSandbox", SandboxId(sandbox))

    # ------------------------------------------------------------ events

    def heard(self, now: Instant, event: ContainerEvent) -> None:
        """Something happened to a container; of a sandbox that was replaced nobody wants to know."""
        worker = self._kubelet.roster.owner(event.sandbox)
        if worker is not None and worker.sandbox is not None and worker.sandbox.sandbox == event.sandbox:
            worker.heard(now, event.kind, event.container)
