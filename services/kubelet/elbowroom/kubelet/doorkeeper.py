"""Lets pods in, turns them away, and pushes others out for a critical one, which waits until they have ended."""

from collections.abc import Sequence
from typing import Protocol

from elbowroom.api.objects import Container, Node, Pod
from elbowroom.api.resources import spec_requests
from elbowroom.kubelet import admission, sysctls
from elbowroom.kubelet.allocation import desired
from elbowroom.kubelet.checkpoint import Checkpoint
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.machinestate import MachineState
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.metrics import Metrics, rejection
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.resizes import Resizes
from elbowroom.kubelet.roster import Roster
from elbowroom.kubelet.status.shown import Eviction
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Effect, Instant, Note

PREEMPTED = Eviction("Preempting", admission.PREEMPTED, disruption=admission.PREEMPTED_CONDITION)


class Services(Protocol):
    """What the doorkeeper needs of its kubelet."""

    node_name: str
    config: KubeletConfig
    machine_state: MachineState
    allocated: Checkpoint
    metrics: Metrics
    managers: Managers
    scaling: Scaling
    resizes: Resizes
    roster: Roster

    @property
    def node(self) -> Node: ...
    def emit(self, *effects: Effect) -> None: ...
    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...
    def publish(self, now: Instant, worker: PodWorker) -> None: ...
    def save_managers(self, cause: str) -> None: ...


class Doorkeeper:
    """See the module; who may come in is decided by ``admission``."""

    def __init__(self, kubelet: Services) -> None:
        self._kubelet = kubelet
        self._waiting: dict[str, PodWorker] = {}
        """Critical pods that wait for their victims' end."""

    # ------------------------------------------------------------ in

    def admit(self, now: Instant, worker: PodWorker, *, boot: bool = False) -> None:
        """May the pod be here? Then it gets what it asks for, or keeps what it had."""
        kubelet, pod = self._kubelet, worker.allocated_pod
        known = boot and worker.layer is not None
        others = kubelet.resizes.crowd(allocated_only=known).without(worker.uid)
        ran = known and kubelet.config.on("NotEvictPodOnKubeletRestart") and worker.sandbox is not None
        state = kubelet.machine_state

        def managers(pod: Pod) -> admission.Refusal | None:
            return sysctls.refusal(pod, kubelet.config.sysctls) or kubelet.scaling.admit(pod)

        refused = admission.refusal(pod, spec_requests(pod), others, kubelet.node, restarted=ran, state=state, managers=managers)
        if refused is not None and refused.lacks and admission.is_critical(pod):
            chosen = admission.victims(pod, others, refused.lacks)
            if not isinstance(chosen, admission.NoVictims):
                self._waiting[worker.uid] = worker
                self.evict(now, chosen, refused.lacks)
                return
            refused = admission.unexpected(chosen)
        self._waiting.pop(worker.uid, None)
        if refused is not None:
            self._reject(now, worker, refused)
            return
        worker.admitted = True
        if worker.layer is None:
            kubelet.allocated.put(worker.uid, desired(worker.pod, kubelet.config))
        if not boot:
            kubelet.save_managers("admitted")
            kubelet.emit(*kubelet.allocated.save())
            kubelet.resizes.note_allocation(worker, "admitted")
            worker.sync(now)
            kubelet.roster.place(worker)

    def waits(self, worker: PodWorker) -> bool:
        """Does it wait for its victims' end?"""
        return worker.uid in self._waiting

    def admit_waiting(self, now: Instant) -> None:
        """Somebody has ended, perhaps a victim: try again for who waits."""
        for waiting in list(self._waiting.values()):
            self.admit(now, waiting)

    # ------------------------------------------------------------ out

    def _reject(self, now: Instant, worker: PodWorker, refused: admission.Refusal) -> None:
        """It fails; what runs of it from an earlier life is ended."""
        kubelet = self._kubelet
        worker.refused = (refused.reason, refused.message)
        worker.over = worker.sandbox is None
        kubelet.event(now, worker.pod, "Warning", refused.reason, refused.message)
        kubelet.metrics.rejections.inc(rejection(refused.reason))
        facts = {"pod": worker.key, "uid": worker.uid, "reason": refused.reason, "message": refused.message}
        kubelet.emit(Note("kl.reject", facts))
        kubelet.managers.release(worker.uid)
        if worker.layer is not None:
            self.let_go(worker, "Failed")
            kubelet.allocated.forget(worker.uid)
        if not worker.over:
            worker.end(float(worker.pod.spec.termination_grace_period_seconds))
        kubelet.publish(now, worker)

    def evict(self, now: Instant, chosen: Sequence[Pod], lacks: Sequence[admission.Lack]) -> None:
        """End the victims of a critical pod for which ``lacks`` is missing."""
        kubelet = self._kubelet
        for pod in chosen:
            victim = kubelet.roster.workers[pod.uid]
            if victim.eviction is not None:
                continue
            kubelet.event(now, victim.pod, "Warning", PREEMPTED.reason, PREEMPTED.message)
            kubelet.metrics.preemptions.inc(lacks[0].resource if lacks else "")
            kubelet.emit(Note("kl.preempt", {"pod": victim.key, "uid": victim.uid}))
            victim.end(float(victim.pod.spec.termination_grace_period_seconds), PREEMPTED)
            victim.sync(now)

    def let_go(self, worker: PodWorker, phase: str) -> None:
        """The pod counts for nothing any more: what the managers gave it is free."""
        self._kubelet.managers.release(worker.uid)
        self._kubelet.save_managers("released")
        if worker.layer is not None and not worker.counts_for_nothing:
            worker.counts_for_nothing = True
            facts = {"pod": worker.key, "uid": worker.uid, "node": self._kubelet.node_name, "phase": phase}
            self._kubelet.emit(Note("pod.end", facts))

    def forget(self, worker: PodWorker) -> None:
        """It waits no longer: the API server has it no more."""
        self._waiting.pop(worker.uid, None)
