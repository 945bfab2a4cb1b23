"""What the API server is told of each pod: a status made from all that is known of it, and handed to the publisher."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import structs

from elbowroom.api.gates import Profile
from elbowroom.api.objects import Node, Pod
from elbowroom.kubelet import actuation, admission
from elbowroom.kubelet import node as node_documents
from elbowroom.kubelet.alarms import Alarms
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.publisher import FINAL, Publisher
from elbowroom.kubelet.roster import Roster
from elbowroom.kubelet.status.document import document, rejected
from elbowroom.kubelet.status.patches import owned_types
from elbowroom.kubelet.status.shown import Shown
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Effect, Instant
from elbowroom.rpc import Calls, Finished

HOST_IP = "127.0.0.1"


class Services(Protocol):
    """What the statuses need of their kubelet."""

    node_name: str
    profile: Profile
    config: KubeletConfig
    alarms: Alarms
    roster: Roster
    scaling: Scaling

    @property
    def node(self) -> Node: ...
    def emit(self, *effects: Effect) -> None: ...


class PodStatuses:
    """Its alarms are of the kind ``status`` and name pods by uid; contexts of its calls are the publisher's."""

    def __init__(self, kubelet: Services, calls: Calls) -> None:
        self._kubelet = kubelet
        self._publisher = Publisher(calls, lambda uid, at: kubelet.alarms.put("status", uid, at))

    # ------------------------------------------------------------ being told

    def begin(self, worker: PodWorker, target: str, seen: dict[str, Any]) -> None:
        """A pod is taken; ``target`` is its uid in the API (empty: it is not there), ``seen`` its status there."""
        self._publisher.add(worker.pod.metadata.namespace, worker.pod.metadata.name, worker.uid, target)
        self.observe(worker, seen)

    def observe(self, worker: PodWorker, seen: dict[str, Any]) -> bool:
        """The API server has this status of it; True if that may be our own doing, of which we are told soon."""
        return self._publisher.observe(worker.uid, seen, _revision(worker.pod))

    def retarget(self, worker: PodWorker, target: str) -> None:
        """Its mirror is another one now, or there is none."""
        self._publisher.retarget(worker.uid, target)

    def forget(self, worker: PodWorker) -> None:
        """The API server has it no more."""
        self._publisher.forget(worker.uid)

    def finished(self, now: Instant, end: Finished) -> None:
        """One of its calls ended."""
        self._kubelet.emit(*self._publisher.finished(now, end))
        worker = self._kubelet.roster.workers.get(end.context[1])
        if worker is not None and self._publisher.owed(worker.uid):
            self.publish(now, worker)

    def retry(self, now: Instant, uid: str) -> None:
        """Send again what failed."""
        self._kubelet.emit(*self._publisher.retry(now, uid))

    # ------------------------------------------------------------ telling

    def publish(self, now: Instant, worker: PodWorker) -> None:
        """Bring the API server to what is so of the pod, if it is not; when all is over and told, let the pod go."""
        publication = self._publisher.get(worker.uid)
        if publication is None:
            return
        owned = owned_types(
            preemption_disabled=self._kubelet.profile.policy_by_condition,
            evicted=worker.eviction is not None and worker.eviction.disrupted,
        )
        remove = worker.pod.is_terminating and worker.over
        if worker.refused is not None:
            wanted: dict[str, Any] | None = rejected(worker.pod, now, *worker.refused)
        elif (publication.seen.get("phase") in FINAL and not _runs_again(worker)) or not worker.admitted:
            wanted = None  # the last word was spoken
        else:
            wanted = _document(self._shown(now, worker, publication.seen), worker)
        self._kubelet.emit(*self._publisher.say(now, worker.uid, wanted, owned, remove=remove))

    def preemption_disabled(self, node: Node | None) -> str:
        """The node's name, if it forbids preemption for resizes and that is to be told by a condition; else empty."""
        profile = self._kubelet.profile
        by_condition = profile.policy_by_condition and profile.resize_preemption
        if not by_condition or node is None or not node.resize_preemption_disabled:
            return ""
        return self._kubelet.node_name

    def _shown(self, now: Instant, worker: PodWorker, previous: Mapping[str, Any]) -> Shown:
        kubelet = self._kubelet
        if worker.shown_sandbox is not None and not worker.ip:
            known = str(previous.get("podIP") or "")
            worker.ip = known or (HOST_IP if worker.pod.spec.host_network else self._free_ip())
        return Shown(
            now=now,
            pod=worker.pod,
            allocated=worker.allocated_pod,
            actuated=worker.shown_actuated,
            sandbox=worker.shown_sandbox,
            previous=previous,
            started=worker.started,
            ip=worker.ip,
            host_ip=HOST_IP,
            pending=worker.pending,
            in_progress=worker.in_progress,
            preemption_disabled=self.preemption_disabled(kubelet.node),
            held=kubelet.scaling.held(worker.uid),
            unbound=worker.pinned,
            waiting=dict(worker.waiting),
            unstarted=actuation.unstarted(worker.pod, worker.shown_sandbox, now),
            over=worker.over,
            eviction=worker.eviction,
            resize_word=worker.resize_word if kubelet.profile.publishes_resize_status else "",
            pod_level=kubelet.config.on("InPlacePodLevelResourcesVerticalScaling"),
        )

    def _free_ip(self) -> str:
        roster = self._kubelet.roster
        taken = {w.ip for w in roster.everybody() if w.ip}
        taken |= {w.pod.status.pod_ip for w in roster.workers.values() if w.pod.status.pod_ip}
        return node_documents.pod_ip(self._kubelet.node_name, taken)


def _document(shown: Shown, worker: PodWorker) -> dict[str, Any]:
    """The status, made anew only if what it is made from has changed: one step often asks for it three times."""
    if worker.told is None or structs.replace(worker.told[0], now=shown.now) != shown:
        worker.told = (shown, document(shown))
    return worker.told[1]


def _runs_again(worker: PodWorker) -> bool:
    """A static pod runs once more though its mirror shows the end of an earlier life."""
    return admission.is_static(worker.pod) and not worker.over


def _revision(pod: Pod) -> int:
    text = pod.metadata.resource_version
    return int(text) if text.isdecimal() else 0
