"""The pods of the node, as the API server and the folder of manifests give them: taken, changed and let go."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from elbowroom.api.objects import Container, ObjectMeta, Pod, PodSpec, PodStatus, Struct
from elbowroom.api.sharing import shared_status
from elbowroom.cache import Change
from elbowroom.kubelet import features, staticpods
from elbowroom.kubelet.allocation import desired, same
from elbowroom.kubelet.checkpoint import Checkpoint
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.deadlines import Deadlines
from elbowroom.kubelet.doorkeeper import Doorkeeper
from elbowroom.kubelet.podstatuses import PodStatuses
from elbowroom.kubelet.resizes import POD_RESIZED, POD_TERMINATED, PODS_REMOVED, Resizes, shrinks
from elbowroom.kubelet.roster import Roster
from elbowroom.kubelet.shutdown import Shutdown
from elbowroom.kubelet.staticpods import StaticPods
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Effect, Instant, Step


class PodDocument(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pod with its status as it came: what the kubelet compares with what it said."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: dict[str, Any] = {}


class Services(Protocol):
    """What the intake needs of its kubelet."""

    config: KubeletConfig
    allocated: Checkpoint
    actuated: Checkpoint
    roster: Roster
    resizes: Resizes
    statuses: PodStatuses
    doorkeeper: Doorkeeper
    deadlines: Deadlines
    static: StaticPods
    shutdown: Shutdown

    def emit(self, *effects: Effect) -> None: ...
    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...


class Intake:
    """``work_on`` makes the worker of a pod."""

    def __init__(self, kubelet: Services, work_on: Callable[[Pod, Instant], PodWorker]) -> None:
        self._kubelet, self._work_on = kubelet, work_on
        self._taking = False
        """A life begins: pods are taken, and admitted later, all in their order."""

    # ------------------------------------------------------------ the API server's

    def take_all(self, now: Instant, documents: Iterable[PodDocument]) -> None:
        """A life begins: take the pods that there are, and admit nobody yet."""
        mirrors = []
        for document in documents:
            if staticpods.is_mirror(document.metadata):
                mirrors.append(_parts(document))
            else:
                self._take(now, document)
        self._kubelet.static.known(mirrors)
        self._taking = True
        self._kubelet.static.apply(now)
        self._taking = False

    def told(self, now: Instant, change: Change[PodDocument]) -> None:
        """The API server tells of a pod."""
        roster, static = self._kubelet.roster, self._kubelet.static
        if change.new is not None and staticpods.is_mirror(change.new.metadata):
            static.seen(now, *_parts(change.new))
            return
        if change.old is not None and staticpods.is_mirror(change.old.metadata):
            static.gone(now, change.key)
        known = roster.by_key.get(change.key)
        if known is not None and (change.new is None or change.new.metadata.uid != known.uid):
            self.remove(now, known)
            known = None
        if change.new is None:
            return
        self._kubelet.emit(Step("K1 pod change seen"))
        if known is None:
            self._add(now, change.new)
        else:
            self.change(now, known, *_pod_of(change.new, known.pod))

    def _take(self, now: Instant, document: PodDocument) -> PodWorker:
        pod, seen = _pod_of(document)
        worker = self._kubelet.roster.by_key[pod.key] = self._begin(now, pod, seen, pod.uid)
        return worker

    def _begin(self, now: Instant, pod: Pod, seen: dict[str, Any], target: str) -> PodWorker:
        worker = self._kubelet.roster.workers[pod.uid] = self._work_on(pod, now)
        self._kubelet.statuses.begin(worker, target, seen)
        return worker

    def _add(self, now: Instant, document: PodDocument) -> None:
        worker = self._take(now, document)
        if worker.pod.is_terminal:
            worker.admitted = worker.over = worker.counts_for_nothing = True
        elif worker.pod.is_terminating:
            worker.admitted = True
        else:
            self._kubelet.doorkeeper.admit(now, worker)
        self.go_on(now, worker)

    # ------------------------------------------------------------ the node's own

    def run_static(self, now: Instant, pod: Pod, target: str, seen: dict[str, Any]) -> PodWorker:
        """Run a pod of the node's own; ``target`` is the uid of its mirror, if there is one."""
        worker = self._begin(now, pod, seen, target)
        if not self._taking:
            self._kubelet.doorkeeper.admit(now, worker)
            self.go_on(now, worker)
        return worker

    # ------------------------------------------------------------ the course of a pod

    def go_on(self, now: Instant, worker: PodWorker) -> None:
        """It was decided whether the pod may be here: do what follows."""
        kubelet = self._kubelet
        worker.update(now, worker.pod)
        kubelet.deadlines.watch(worker)
        if worker.over:
            kubelet.statuses.publish(now, worker)
        else:
            worker.sync(now)
        kubelet.roster.place(worker)

    def change(self, now: Instant, worker: PodWorker, new: Pod, seen: dict[str, Any] | None) -> None:
        """The pod is ``new``; ``seen`` is its status in the API as it came, if that is what is news."""
        kubelet, resizes, old = self._kubelet, self._kubelet.resizes, worker.pod
        counted = worker.counts if worker.active else None
        worker.update(now, new)
        told_soon = seen is not None and kubelet.statuses.observe(worker, seen)
        if kubelet.doorkeeper.waits(worker):
            kubelet.doorkeeper.admit(now, worker)
        moved = old.spec is not new.spec and not same(desired(old, kubelet.config), desired(new, kubelet.config))
        if moved and worker.active:
            resizes.wished(now, worker, old)
        if old.spec is not new.spec and (missing := features.missing_for(old.spec, new.spec, kubelet.config)):
            words = f"Pod requires node features that are not available: {', '.join(missing)}"
            kubelet.event(now, new, "Warning", "FailedNodeDeclaredFeaturesCheck", words)
        if new.is_terminal:
            kubelet.doorkeeper.let_go(worker, new.status.phase)
        if len(resizes):
            if new.is_terminal and not old.is_terminal:
                resizes.attempt_all(now, POD_TERMINATED)
            elif counted is not None and worker.active and shrinks(counted, worker.counts):
                resizes.attempt_all(now, POD_RESIZED)
        if old.spec.active_deadline_seconds != new.spec.active_deadline_seconds or old.status.start_time != new.status.start_time:
            kubelet.deadlines.watch(worker)
        if worker.over:
            kubelet.statuses.publish(now, worker)
        elif old.spec is not new.spec or old.metadata.annotations != new.metadata.annotations or worker.ending:
            worker.sync(now)
            told_soon = False
        if not worker.over and not told_soon:
            kubelet.statuses.publish(now, worker)
        kubelet.roster.place(worker)

    def remove(self, now: Instant, worker: PodWorker) -> None:
        """It is to be no more: it counts for nothing from now on, and ends."""
        kubelet, resizes = self._kubelet, self._kubelet.resizes
        kubelet.roster.dismiss(worker)
        kubelet.doorkeeper.let_go(worker, worker.pod.status.phase or "Unknown")
        resizes.terminated(now, worker)
        kubelet.doorkeeper.forget(worker)
        kubelet.statuses.forget(worker)
        kubelet.allocated.forget(worker.uid)
        kubelet.actuated.forget(worker.uid)
        worker.leave(now)
        kubelet.doorkeeper.admit_waiting(now)
        if len(resizes):
            resizes.attempt_all(now, PODS_REMOVED)

    def over(self, now: Instant, worker: PodWorker) -> None:
        """Nothing of the pod runs any more: who waited for that goes on."""
        kubelet = self._kubelet
        kubelet.doorkeeper.let_go(worker, worker.pod.status.phase or "Unknown")
        if worker.gone:
            kubelet.roster.gone(worker)
            for namesake in (kubelet.roster.by_key.get(worker.key), kubelet.static.workers.get(worker.key)):
                if namesake is not None:
                    namesake.sync(now)
            kubelet.static.apply(now)
            return
        kubelet.resizes.drop(worker)
        kubelet.shutdown.ended(now, worker.uid)
        kubelet.doorkeeper.admit_waiting(now)
        kubelet.resizes.victims_ended(now)


def _pod_of(document: PodDocument, old: Pod | None = None) -> tuple[Pod, dict[str, Any]]:
    """The pod, and its status as it came; an unchanged spec is the old one, to be told apart by identity."""
    spec = old.spec if old is not None and old.spec == document.spec else document.spec
    metadata = staticpods.from_api(document.metadata)
    pod = Pod(metadata=metadata, spec=spec, status=msgspec.convert(document.status, PodStatus))
    shared_status(pod.status)  # the rest was shared when it was decoded
    return pod, document.status


def _parts(document: PodDocument) -> tuple[ObjectMeta, PodStatus, dict[str, Any]]:
    pod, seen = _pod_of(document)
    return pod.metadata, pod.status, seen
