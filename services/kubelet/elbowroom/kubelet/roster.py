"""Which pods are on the node: those that it is to run, and those that are to be no more but have not ended yet."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from elbowroom.kubelet.worker import PodWorker
from elbowroom.wire.cri import SandboxState


class Roster:
    """Pods by uid, by name and by sandbox. ``workers`` are those that are to run, by uid, in the order in which they were taken."""

    def __init__(self) -> None:
        self.workers: dict[str, PodWorker] = {}
        self.by_key: dict[str, PodWorker] = {}
        """By NAMESPACE/NAME: those of the API server, whose names the node's own pods may bear too."""
        self._leaving: dict[str, PodWorker] = {}
        self._by_sandbox: dict[str, PodWorker] = {}

    def everybody(self) -> Sequence[PodWorker]:
        """Those that go after those that stay."""
        return [*self.workers.values(), *self._leaving.values()]

    def get(self, uid: str) -> PodWorker | None:
        """Of everybody the one with that uid."""
        return self.workers.get(uid) or self._leaving.get(uid)

    def sort(self, rank: Callable[[PodWorker], Any]) -> None:
        """Put those that are to run in order."""
        ordered = {worker.uid: worker for worker in sorted(self.workers.values(), key=rank)}
        self.workers.clear()
        self.workers.update(ordered)

    # ------------------------------------------------------------ going

    def dismiss(self, worker: PodWorker) -> None:
        """It is to be no more, and goes until it is ``gone``."""
        del self.workers[worker.uid]
        if self.by_key.get(worker.key) is worker:
            del self.by_key[worker.key]
        self._leaving[worker.uid] = worker

    def gone(self, worker: PodWorker) -> None:
        """Nothing of it runs any more."""
        self._leaving.pop(worker.uid, None)
        self._by_sandbox = {sandbox: other for sandbox, other in self._by_sandbox.items() if other is not worker}

    def leaves(self, key_or_uid: str) -> bool:
        """Does something of such a pod still run, though it is to be no more?"""
        return any(key_or_uid in (worker.uid, worker.key) for worker in self._leaving.values())

    def is_held(self, worker: PodWorker) -> bool:
        """Does an earlier pod of that name still run here?"""
        return any(other.key == worker.key and other.uid != worker.uid and other.runs for other in self._leaving.values())

    # ------------------------------------------------------------ sandboxes

    def place(self, worker: PodWorker) -> None:
        """Remember which sandbox it has by now."""
        if worker.sandbox is not None:
            self._by_sandbox[worker.sandbox.sandbox] = worker

    def forget(self, sandbox: str) -> None:
        """That sandbox is nobody's."""
        self._by_sandbox.pop(sandbox, None)

    def owner(self, sandbox: str) -> PodWorker | None:
        """Whose sandbox it is, or was."""
        return self._by_sandbox.get(sandbox)

    def sandboxes(self) -> Iterator[tuple[str, SandboxState | None]]:
        """What the runtime has of each pod, by uid, as far as is known."""
        return ((worker.uid, worker.sandbox) for worker in self.everybody())
