"""Pods that are to end by a time of their own: ``activeDeadlineSeconds`` after they began."""

from typing import Protocol

from elbowroom.api.objects import Container, Pod
from elbowroom.kubelet.alarms import Alarms
from elbowroom.kubelet.status.shown import Eviction
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Instant, parse_time, seconds

EXCEEDED = Eviction("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", fails=True)


class Services(Protocol):
    """What the deadlines need of their kubelet."""

    alarms: Alarms
    workers: dict[str, PodWorker]

    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...


class Deadlines:
    """Its alarms are of the kind ``deadline`` and name pods by uid."""

    def __init__(self, kubelet: Services) -> None:
        self._kubelet = kubelet

    def watch(self, worker: PodWorker) -> None:
        """The pod has a deadline, another one, or began at another time than was known."""
        if not worker.over and (due := _due(worker)) is not None:
            self._kubelet.alarms.put("deadline", worker.uid, due)

    def check(self, now: Instant, uid: str) -> None:
        """Its alarm has come: end the pod if its time is over."""
        worker = self._kubelet.workers.get(uid)
        if worker is None or worker.over or worker.ending or (due := _due(worker)) is None:
            return
        if now < due:
            self._kubelet.alarms.put("deadline", uid, due)
            return
        self._kubelet.event(now, worker.pod, "Normal", EXCEEDED.reason, EXCEEDED.message)
        worker.end(float(worker.pod.spec.termination_grace_period_seconds), EXCEEDED)
        worker.sync(now)


def _due(worker: PodWorker) -> Instant | None:
    limit, start = worker.pod.spec.active_deadline_seconds, worker.pod.status.start_time
    if limit is None:
        return None
    return Instant((parse_time(start) if start else worker.started) + seconds(limit))
