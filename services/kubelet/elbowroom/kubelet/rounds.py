"""The rounds of the CPU manager: what was given is made durable at once, who runs elsewhere is moved when a round comes (XC-6)."""

from collections.abc import Iterable
from typing import Protocol

from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.resizes import POD_RESIZED, Resizes
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Effect, Instant, SetTimer

TIMER = "kubelet/cpus"


class Services(Protocol):
    """What the rounds need of their kubelet."""

    config: KubeletConfig
    managers: Managers
    scaling: Scaling
    resizes: Resizes
    workers: dict[str, PodWorker]

    def emit(self, *effects: Effect) -> None: ...


class CpuRounds:
    """A round comes only if somebody may have to be moved. Its timer is ``TIMER``."""

    def __init__(self, kubelet: Services) -> None:
        self._kubelet = kubelet
        self._from = Instant(0)
        self._due = False
        """Where containers run may not be where they should: a round is to come."""
        self._armed = False

    def count_from(self, now: Instant) -> None:
        """Rounds come whole periods after this."""
        self._from = now

    def look(self) -> None:
        """A life begins: the next round looks at everybody."""
        self._due = self._kubelet.config.managers.cpu is not None

    def save(self, cause: str) -> None:
        """Make durable what the managers gave; who runs elsewhere than it should is moved in the next round."""
        effects = self._kubelet.managers.save(cause)
        self._kubelet.emit(*effects)
        self._due = self._due or (bool(effects) and self._kubelet.config.managers.cpu is not None)

    def timer(self, now: Instant) -> list[SetTimer]:
        """What makes the timer right, if it is not."""
        if not self._due or self._armed:
            return []
        self._armed = True
        period = self._kubelet.config.reconcile_ns
        return [SetTimer(TIMER, Instant(now + period - (now - self._from) % period))]

    def come(self, now: Instant) -> None:
        """The timer fired: delays end, and who runs elsewhere than it should is moved (SD-4)."""
        self._armed = False
        scaling, workers, resizes = self._kubelet.scaling, self._kubelet.workers, self._kubelet.resizes
        left = [worker for uid in scaling.tick(now) if (worker := workers.get(uid)) is not None]
        self._due = any([worker.repin(now) for worker in list(workers.values())]) or scaling.waits
        for worker in left:
            worker.sync(now)
        if left and len(resizes):
            resizes.attempt_all(now, POD_RESIZED)

    def make_way(self, now: Instant, uids: Iterable[str]) -> None:
        """Move those pods' containers now: somebody waits for the CPUs that they are to leave."""
        for uid in uids:
            if (worker := self._kubelet.workers.get(uid)) is not None:
                worker.repin(now)

    def moved(self, now: Instant) -> None:
        """A container was moved: who waited for its CPUs goes on."""
        if self._kubelet.scaling.preview == "none":
            return
        for worker in list(self._kubelet.workers.values()):
            if worker.waits_for_cpus:
                worker.repin(now)
                worker.sync(now)
