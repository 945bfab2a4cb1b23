"""A life begins: the pods of the one before are taken back with what they were allocated (RC-90 to RC-92)."""

from collections.abc import Iterable
from typing import Protocol

from elbowroom.api.gates import Profile
from elbowroom.kubelet.checkpoint import Checkpoint
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.doorkeeper import Doorkeeper
from elbowroom.kubelet.intake import Intake, PodDocument
from elbowroom.kubelet.inventory import Inventory
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.nodewatch import NodeWatch
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.resizes import PODS_ADDED, Resizes
from elbowroom.kubelet.roster import Roster
from elbowroom.kubelet.rounds import CpuRounds
from elbowroom.kubelet.status.conditions import IN_PROGRESS, PENDING
from elbowroom.kubelet.status.shown import ResizeCondition
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Effect, Instant, Note, Step


class Services(Protocol):
    """What the beginning of a life needs of its kubelet."""

    node_name: str
    profile: Profile
    config: KubeletConfig
    allocated: Checkpoint
    actuated: Checkpoint
    managers: Managers
    scaling: Scaling
    roster: Roster
    intake: Intake
    inventory: Inventory
    doorkeeper: Doorkeeper
    resizes: Resizes
    rounds: CpuRounds
    node_watch: NodeWatch

    def emit(self, *effects: Effect) -> None: ...


def begin(now: Instant, kubelet: Services, documents: Iterable[PodDocument]) -> None:
    """Take up the work. ``documents`` are the pods that the API server has; the Node, the manifests and the runtime are known.

    Pods are admitted again in the order of their creation, what waits is queued, and only then anything is judged.
    """
    roster, resizes = kubelet.roster, kubelet.resizes
    kubelet.emit(Step("R2 list done"))
    resizes.retry_at = Instant(now + kubelet.config.retry_first_ns)
    _take_all(now, kubelet, documents)
    _forget_the_gone(kubelet)
    kubelet.inventory.adopt(now)
    _readmit_all(now, kubelet)
    kubelet.emit(*kubelet.allocated.save(), Step("R3 re-admitted"))
    for worker in roster.workers.values():
        if worker.active and worker.layer is not None:  # one that was deleted before it got anything has nothing
            resizes.note_allocation(worker, "admitted")
        if worker.active:
            _back_fill(now, worker, waits=not resizes.is_allocated(worker))
    resizes.push_all(w for w in roster.workers.values() if w.active and not resizes.is_allocated(w))
    kubelet.emit(Step("R4 pending queue built"))
    kubelet.node_watch.begin(now)
    if kubelet.profile.pending_pass_at_start and len(resizes):
        resizes.attempt_all(now, PODS_ADDED)
    for worker in list(roster.workers.values()):
        kubelet.intake.go_on(now, worker)
    kubelet.node_watch.look_at_machine(now)


def _take_all(now: Instant, kubelet: Services, documents: Iterable[PodDocument]) -> None:
    kubelet.intake.take_all(now, documents)

    def rank(worker: PodWorker) -> tuple[bool, str, str]:
        # By creation, the node's own first; but what ran here before is not pushed out by what came in the meantime.
        meta = worker.pod.metadata
        return meta.uid not in kubelet.allocated.entries, meta.creation_timestamp or "", meta.name

    kubelet.roster.sort(rank)


def _forget_the_gone(kubelet: Services) -> None:
    """Pods of an earlier life that the API server has no more hold nothing (RC-90)."""
    workers = kubelet.roster.workers
    for uid in [uid for uid in kubelet.allocated.entries if uid not in workers]:
        kubelet.emit(Note("pod.end", {"pod": "", "uid": uid, "node": kubelet.node_name, "phase": "Unknown"}))
        kubelet.allocated.forget(uid)
    for uid in [uid for uid in kubelet.actuated.entries if uid not in workers]:
        kubelet.actuated.forget(uid)


def _readmit_all(now: Instant, kubelet: Services) -> None:
    """Pods have what the managers gave them, as far as it still fits, and give back what is not theirs any more."""
    workers, managers = kubelet.roster.workers, kubelet.managers
    managers.keep_only(worker.uid for worker in workers.values() if not worker.pod.is_terminal)
    alive = [w for w in workers.values() if w.layer is not None and not (w.pod.is_terminal or w.pod.is_terminating)]
    kubelet.scaling.recover(now, [worker.allocated_pod for worker in alive])
    for worker in list(workers.values()):
        _readmit(now, kubelet.doorkeeper, worker)
    managers.keep_only(worker.uid for worker in workers.values() if worker.active)
    kubelet.rounds.save("re-admitted")
    kubelet.rounds.look()


def _readmit(now: Instant, doorkeeper: Doorkeeper, worker: PodWorker) -> None:
    """RC-91: with what it was allocated; nobody's pending wish counts."""
    if worker.pod.is_terminal:
        worker.admitted = True
        worker.counts_for_nothing = True
        if worker.sandbox is None or not worker.sandbox.ready:
            worker.over = True
        else:
            worker.end(float(worker.pod.spec.termination_grace_period_seconds))
    elif worker.pod.is_terminating:
        worker.admitted = True
        if worker.sandbox is None or not worker.sandbox.ready:
            worker.over = True  # as an earlier life saw, which may have given away what the pod had (RC-72)
            doorkeeper.let_go(worker, worker.pod.status.phase or "Unknown")
    else:
        doorkeeper.admit(now, worker, boot=True)


def _back_fill(now: Instant, worker: PodWorker, *, waits: bool) -> None:
    """RC-92: the conditions as the API server has them, their times begun anew."""
    # A life that died between the grant and telling of it left a condition that is not true any more.
    worker.pending = _known_condition(now, worker, PENDING) if waits else None
    worker.in_progress = _known_condition(now, worker, IN_PROGRESS)


def _known_condition(now: Instant, worker: PodWorker, kind: str) -> ResizeCondition | None:
    known = worker.pod.condition(kind)
    return None if known is None else ResizeCondition(known.reason, known.message, known.observed_generation, now, now)
