"""The pending resizes of a node: when they are tried, and what is done about each verdict (RC-60 to RC-79)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, assert_never

import msgspec

from elbowroom.api.gates import RESIZE_PREEMPTION, Profile
from elbowroom.api.objects import Container, Node, Pod
from elbowroom.api.resources import Resources, of, qos_class, spec_requests
from elbowroom.kubelet import admission, sysctls
from elbowroom.kubelet.admission import Crowd, Lack, Neighbour
from elbowroom.kubelet.allocation import (
    Deferred,
    Evict,
    Granted,
    Infeasible,
    Rules,
    Verdict,
    desired,
    increases,
    infeasible,
    judge,
    requested_operations,
    same,
    summary,
)
from elbowroom.kubelet.checkpoint import Checkpoint, PodResources
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.machinestate import MachineState
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.metrics import Metrics, priority_bucket
from elbowroom.kubelet.pending import PendingQueue, Rank
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.status.shown import ResizeCondition
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Effect, Instant, Note, Step

PODS_ADDED, PODS_REMOVED, POD_UPDATED = "pods_added", "pods_removed", "pod_updated"
POD_RESIZED, POD_TERMINATED, PERIODIC = "pod_resized", "pod_terminated", "periodic_retry"
NODE_UPDATED = "node_updated"
"""Ours: upstream lets a resize that waits for a larger node wait for the timer; counted as the timer's."""


class Services(Protocol):
    """What the resizes need of their kubelet."""

    profile: Profile
    config: KubeletConfig
    machine_state: MachineState
    allocated: Checkpoint
    metrics: Metrics
    managers: Managers
    scaling: Scaling
    workers: dict[str, PodWorker]

    @property
    def node(self) -> Node: ...
    def emit(self, *effects: Effect) -> None: ...
    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...
    def publish(self, now: Instant, worker: PodWorker) -> None: ...
    def evict(self, now: Instant, chosen: Sequence[Pod], lacks: Sequence[Lack]) -> None: ...


class Resizes:
    """The queue of a kubelet. ``retry_at`` is when the timer tries it again, if nothing else does before."""

    def __init__(self, kubelet: Services) -> None:
        self._kubelet = kubelet
        self._queue = PendingQueue()
        self._passes = 0
        self._ordered = False
        """The queue was just put in order, for the pass that follows."""
        self.retry_at = Instant(0)

    def __len__(self) -> int:
        return len(self._queue)

    # ------------------------------------------------------------ what pods there are

    def crowd(self, *, allocated_only: bool = False) -> Crowd:
        """The active pods of the node, and what they count for; ``allocated_only``: whatever their status shows (RC-91)."""
        active = [worker for worker in self._kubelet.workers.values() if worker.active]
        if allocated_only:
            return Crowd.of(Neighbour(w.allocated_pod, spec_requests(w.allocated_pod)) for w in active)
        return Crowd.of(w.neighbour for w in active)

    def wanted(self, worker: PodWorker) -> PodResources:
        """What its spec asks for."""
        return desired(worker.pod, self._kubelet.config)

    def is_allocated(self, worker: PodWorker) -> bool:
        """Does it have what it asks for?"""
        return worker.layer is not None and same(self.wanted(worker), worker.layer)

    # ------------------------------------------------------------ triggers

    def push(self, worker: PodWorker) -> None:
        """Its resize is to be judged with the next pass."""
        self._queue.push(worker.uid, self._rank)

    def push_all(self, workers: Iterable[PodWorker]) -> None:
        """Those of an earlier life that wait are to be judged with the next pass."""
        self._queue.push_all([worker.uid for worker in workers], self._rank)

    def drop(self, worker: PodWorker) -> None:
        """It waits no longer: it has ended."""
        self._queue.remove(worker.uid)

    def wished(self, now: Instant, worker: PodWorker, old: Pod) -> None:
        """The API server's pod wants other resources than ``old`` did."""
        for operation in requested_operations(old, worker.pod):
            self._kubelet.metrics.requested.inc(*operation)
        if self.is_allocated(worker):
            self.clear(now, worker, "reverted")
            self._queue.remove(worker.uid)
            return
        self._kubelet.emit(Step("K2 queued"))
        self._ordered = worker.uid not in self._queue
        self.push(worker)
        self.attempt_all(now, POD_UPDATED)

    def victims_ended(self, now: Instant) -> None:
        """A pod's containers have ended: a critical pod's resize may have waited for that, with no condition to show."""
        if any(w.pending is None for uid in self._queue if (w := self._kubelet.workers.get(uid)) is not None):
            self.attempt_all(now, POD_TERMINATED)

    def node_changed(self, now: Instant, old: Node) -> None:
        """If the node may be more hospitable: who waits is judged again, and so is who asked for more than it had."""
        kubelet, new = self._kubelet, self._kubelet.node
        grows = shrinks(of(new.status.allocatable), of(old.status.allocatable))
        if not grows and (new.metadata.labels, new.spec.taints) == (old.metadata.labels, old.spec.taints):
            return
        for worker in kubelet.workers.values():
            called_infeasible = worker.pending is not None and worker.pending.reason == "Infeasible"
            if worker.active and called_infeasible and infeasible(worker.pod, worker.allocated_pod, self._rules) is None:
                self.push(worker)
        if len(self._queue):
            self.attempt_all(now, NODE_UPDATED)

    def machine_recovered(self, now: Instant) -> None:
        """What hindered pods for the machine's sake is over."""
        if len(self._queue):
            self.attempt_all(now, NODE_UPDATED)

    def attempt_all(self, now: Instant, trigger: str) -> None:
        """RC-64, RC-65: try every pending resize, in the queue's order; one that fails hinders none behind it."""
        self.retry_at = Instant(now + self._kubelet.config.retry_ns)
        self._passes += 1
        kept: list[str] = []
        crowd: Crowd | None = None
        for uid in self._queue:
            worker = self._kubelet.workers.get(uid)
            if worker is None or not worker.active or worker.layer is None:
                continue
            crowd = crowd or self.crowd()
            verdict = self._attempt(now, worker, crowd, trigger)
            if isinstance(verdict, Deferred | Evict):
                kept.append(uid)
            if isinstance(verdict, Granted | Evict):
                crowd = None
        self._queue.keep(kept)
        self._ordered = False

    @property
    def _rules(self) -> Rules:
        kubelet = self._kubelet
        return Rules(
            kubelet.node,
            kubelet.config,
            infeasible_above_allocatable=not kubelet.profile.refuses_above_allocatable,
            state=kubelet.machine_state,
            managers=lambda pod: sysctls.refusal(pod, kubelet.config.sysctls) or kubelet.scaling.objection(pod),
            evicts_for_resize=not kubelet.config.on(RESIZE_PREEMPTION) and not kubelet.node.resize_preemption_disabled,
        )

    def _rank(self, uid: str) -> Rank | None:
        worker = self._kubelet.workers.get(uid)
        if worker is None or not worker.active:
            return None
        return Rank(
            increases=increases(worker.pod, worker.allocated_pod),
            priority=worker.pod.priority,
            guaranteed=qos_class(worker.pod) == "Guaranteed",
            waiting_since=worker.pending.since if worker.pending is not None else None,
        )

    # ------------------------------------------------------------ one resize

    def _attempt(self, now: Instant, worker: PodWorker, crowd: Crowd, trigger: str) -> Verdict | None:
        """Judge it and act on the verdict; None if it has what it asks for."""
        if self.is_allocated(worker):
            self.clear(now, worker, "reverted")
            return None
        kubelet, pod, others = self._kubelet, worker.pod, crowd.without(worker.uid)
        verdict = judge(pod, worker.allocated_pod, others, self._rules)
        if isinstance(verdict, Granted):
            verdict = kubelet.scaling.verdict(now, pod, worker.allocated_pod) or verdict
        facts = {
            **self._identity(worker),
            "verdict": type(verdict).__name__,
            "used": _cpu_and_memory(others.used),
            "wanted": _cpu_and_memory(spec_requests(pod)),
            "allocatable": _cpu_and_memory(of(kubelet.node.status.allocatable)),
            "cause": trigger,
            "pass": self._passes,
            "rank": rank.key if self._ordered and (rank := self._rank(worker.uid)) is not None else None,
        }
        kubelet.emit(Step("K3 judged"), Note("kl.judge", facts))
        match verdict:
            case Granted():
                self._grant(now, worker, trigger)
            case Deferred(cause, message):
                self._refuse(now, worker, "Deferred", cause, message)
            case Infeasible(message, detail):
                kubelet.metrics.infeasible.inc(detail)
                self._refuse(now, worker, "Infeasible", "Infeasible", message)
            case Evict(victims):
                kubelet.evict(now, victims, admission.lacks(spec_requests(pod), others, kubelet.node))
            case _:
                assert_never(verdict)
        return verdict

    def _grant(self, now: Instant, worker: PodWorker, trigger: str) -> None:
        """RC-79: durable first; then the conditions, the event, and the runtime."""
        kubelet, generation = self._kubelet, worker.pod.metadata.generation
        was_deferred = worker.pending is not None and worker.pending.reason == "Deferred"
        kubelet.scaling.carry_out(now, worker.pod, worker.allocated_pod)
        kubelet.allocated.put(worker.uid, self.wanted(worker))
        kubelet.emit(*kubelet.allocated.save(), Step("K8 memory state"))
        self.note_allocation(worker, trigger)
        self._resolved(now, worker, "accepted")
        worker.pending = None
        if was_deferred:
            # Upstream's timer is what would have found the larger node, and its metric knows no other word for it.
            kubelet.metrics.accepted.inc(PERIODIC if trigger == NODE_UPDATED else trigger)
        worker.in_progress = ResizeCondition("", "", generation, now, now)
        message = f"Pod resize started: {summary(worker.pod, generation)}"
        kubelet.event(now, worker.pod, "Normal", "ResizeStarted", message)
        worker.granted(now)
        kubelet.publish(now, worker)

    def _refuse(self, now: Instant, worker: PodWorker, reason: str, cause: str, message: str) -> None:
        """RC-131, RC-152: the wait counts from when the reason came up; an event tells of what is new."""
        before, generation = worker.pending, worker.pod.metadata.generation
        same_reason = before if before is not None and before.reason == reason else None
        if same_reason is None:
            self._resolved(now, worker, "reverted")
        since = now if same_reason is None else same_reason.since
        worker.pending = ResizeCondition(reason, message, generation, since, now)
        if same_reason is None or same_reason.generation != generation:
            told = f"Pod resize {cause}: {summary(worker.pod, generation, message)}"
            self._kubelet.event(now, worker.pod, "Warning", "ResizeDeferred" if reason == "Deferred" else "ResizeInfeasible", told)
        elif same_reason.message == message:
            return  # only the time of the last probe differs
        self._kubelet.publish(now, worker)

    def clear(self, now: Instant, worker: PodWorker, resolution: str) -> None:
        """It waits no longer, and says so."""
        if worker.pending is None:
            return
        self._resolved(now, worker, resolution)
        worker.pending = None
        self._kubelet.publish(now, worker)

    def terminated(self, now: Instant, worker: PodWorker) -> None:
        """The pod goes while its resize waits."""
        self._resolved(now, worker, "terminated")
        self._queue.remove(worker.uid)

    def _resolved(self, now: Instant, worker: PodWorker, resolution: str) -> None:
        if worker.pending is not None and worker.pending.reason == "Deferred":
            labels = (resolution, priority_bucket(worker.pod.priority))
            self._kubelet.metrics.deferred.observe((now - worker.pending.since) / 1e9, *labels)

    # ------------------------------------------------------------ history

    def note_allocation(self, worker: PodWorker, cause: str) -> None:
        """The history's record of an allocation: after it is durable."""
        assert worker.layer is not None, "what was allocated is known"
        facts = {
            **self._identity(worker),
            "vector": _cpu_and_memory(spec_requests(worker.allocated_pod)),
            "containers": {name: msgspec.to_builtins(r) for name, r in (worker.layer.containers or {}).items()},
            "level": msgspec.to_builtins(worker.layer.level),
            "allocatable": _cpu_and_memory(of(self._kubelet.node.status.allocatable)),
            "cause": cause,
        }
        self._kubelet.emit(Note("kl.alloc", facts))

    def _identity(self, worker: PodWorker) -> dict[str, object]:
        generation = worker.pod.metadata.generation
        return {"pod": worker.key, "uid": worker.uid, "node": self._kubelet.node.name, "gen": generation}


def shrinks(old: Resources, new: Resources) -> bool:
    """Does a pod count for less cpu or memory than before?"""
    return any(new.get(name, 0) < old.get(name, 0) for name in ("cpu", "memory"))


def _cpu_and_memory(vector: Mapping[str, int]) -> Resources:
    return {name: vector.get(name, 0) for name in ("cpu", "memory")}
