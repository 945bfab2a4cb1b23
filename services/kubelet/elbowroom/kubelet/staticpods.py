"""The node's own pods and their mirrors.

A static pod is run whatever the API server says. Its mirror, a pod of the same name with the static pod's hash in an annotation,
only shows it there: deleting the mirror stops nothing, it is made anew; a mirror of an older version is replaced, and one of a pod
that is no more goes once the containers have ended. A mirror's status is the static pod's, as others see it.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec.structs import replace

from elbowroom.api.objects import Node, ObjectMeta, Pod, PodStatus
from elbowroom.cache import Backoff
from elbowroom.kubelet import manifests
from elbowroom.kubelet.alarms import Alarms
from elbowroom.kubelet.manifests import API_SOURCE, CONFIG_MIRROR, CONFIG_SOURCE, Manifests, StaticPod
from elbowroom.kubelet.publisher import FINAL
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Effect, FolderRead, Instant, Note, WatchFolder, Work, as_micro_time, seconds
from elbowroom.rpc import Calls, Finished, create, delete

LOOK_SECONDS = 5.0


class Services(Protocol):
    """What the static pods need of their kubelet."""

    alarms: Alarms

    @property
    def node(self) -> Node: ...
    def emit(self, *effects: Effect) -> None: ...
    def run_static(self, now: Instant, pod: Pod, target: str, seen: dict[str, Any]) -> PodWorker: ...
    def change_static(self, now: Instant, worker: PodWorker, new: Pod, seen: dict[str, Any] | None) -> None: ...
    def end_static(self, now: Instant, worker: PodWorker) -> None: ...
    def leaves(self, key_or_uid: str) -> bool: ...
    def retarget(self, worker: PodWorker, target: str) -> None: ...


class Mirror:
    """A mirror as the API server has it. ``seen`` is its status as it came."""

    def __init__(self, metadata: ObjectMeta, status: PodStatus, seen: dict[str, Any]) -> None:
        self.metadata, self.status, self.seen = metadata, status, seen


def is_mirror(metadata: ObjectMeta) -> bool:
    """Does that pod of the API server only show one of a node's own?"""
    return CONFIG_MIRROR in metadata.annotations


def from_api(metadata: ObjectMeta) -> ObjectMeta:
    """Of a pod of the API server that says it is the node's own: it is not, and has none of its rights."""
    if metadata.annotations.get(CONFIG_SOURCE, API_SOURCE) == API_SOURCE or is_mirror(metadata):
        return metadata
    return replace(metadata, annotations={**metadata.annotations, CONFIG_SOURCE: API_SOURCE})


class StaticPods:
    """See the module. Contexts of its calls: ``("mirror", key, what)``; what is ``create`` or ``delete``. Its alarms are ``mirror``
    and a key."""

    def __init__(self, kubelet: Services, calls: Calls) -> None:
        self._kubelet, self._calls = kubelet, calls
        self._path = ""
        self._found: Manifests | None = None
        self._runs: dict[str, StaticPod] = {}
        self.workers: dict[str, PodWorker] = {}
        """By ``namespace/name``, which a pod of the API server may bear too."""
        self._mirrors: dict[str, Mirror] = {}
        self._asked: set[str] = set()
        """Keys for which a call is under way."""
        self._backoff = Backoff(0.2, 10.0)

    @property
    def ready(self) -> bool:
        """Is it known which there are?"""
        return not self._path or self._found is not None

    def watch(self, path: str) -> None:
        """The manifests are in that folder; empty: there are none."""
        self._path = path
        if path:
            self._kubelet.emit(Work("manifests", WatchFolder(path)))

    # ------------------------------------------------------------ manifests

    def read(self, now: Instant, news: FolderRead) -> None:
        """The folder holds something else now."""
        if news.path != self._path:
            return
        known = dict(self._found.refused) if self._found is not None else {}
        self._found = manifests.read(news.path, news.files, self._kubelet.node.name, as_micro_time(now))
        for file, why in self._found.refused:
            if known.get(file) != why:
                self._kubelet.emit(Note("kl.manifest.refused", {"file": file, "why": why}))

    def apply(self, now: Instant) -> None:
        """End what the folder does not hold any more, and run what it does."""
        wanted = self._found.pods if self._found is not None else {}
        for key, static in list(self._runs.items()):
            if self._runs.get(key) is static and (key not in wanted or wanted[key].pod.uid != static.pod.uid):
                del self._runs[key]
                self._kubelet.end_static(now, self.workers.pop(key))
        for key, static in wanted.items():
            running = self._runs.get(key)
            if running is None:
                self._begin(now, static)
            elif running.pod.spec != static.pod.spec:  # with a uid of its own
                self._runs[key] = static
                worker = self.workers[key]
                self._kubelet.change_static(now, worker, replace(static.pod, status=worker.pod.status), None)
        self.reconcile_all(now)

    def _begin(self, now: Instant, static: StaticPod) -> None:
        """A pod with the uid of one that still ends waits for that."""
        if self._kubelet.leaves(static.pod.uid):
            return
        self._runs[static.key] = static
        mirror = self._mirror_of(static)
        pod = static.pod if mirror is None else replace(static.pod, status=_status(mirror.status, over=False))
        target, seen = ("", {}) if mirror is None else (mirror.metadata.uid, mirror.seen)
        self.workers[static.key] = self._kubelet.run_static(now, pod, target, seen)

    # ------------------------------------------------------------ mirrors

    def seen(self, now: Instant, metadata: ObjectMeta, status: PodStatus, seen: dict[str, Any]) -> None:
        """The API server has this mirror."""
        before, mirror = self._mirrors.get(metadata.key), Mirror(metadata, status, seen)
        self._mirrors[metadata.key] = mirror
        self._asked.discard(metadata.key)
        static, worker = self._runs.get(metadata.key), self.workers.get(metadata.key)
        if static is not None and worker is not None and static.is_mirrored_by(metadata.annotations):
            if before is None or before.metadata.uid != metadata.uid:
                self._kubelet.retarget(worker, metadata.uid)
            shown = replace(static.pod, metadata=_at_revision(static.pod, metadata), status=_status(status, over=worker.over))
            self._kubelet.change_static(now, worker, shown, seen)
        self.reconcile(now, metadata.key)

    def known(self, mirrors: Iterable[tuple[ObjectMeta, PodStatus, dict[str, Any]]]) -> None:
        """The mirrors that the API server has as this life begins."""
        self._mirrors = {metadata.key: Mirror(metadata, status, seen) for metadata, status, seen in mirrors}

    def gone(self, now: Instant, key: str) -> bool:
        """The API server has the pod no more; False if it was no mirror."""
        if self._mirrors.pop(key, None) is None:
            return False
        self._asked.discard(key)
        worker = self.workers.get(key)
        if worker is not None:
            self._kubelet.retarget(worker, "")
        self.reconcile(now, key)
        return True

    def reconcile_all(self, now: Instant) -> None:
        """``reconcile`` each mirror that there is or should be."""
        for key in [*self._runs, *(key for key in self._mirrors if key not in self._runs)]:
            self.reconcile(now, key)

    def reconcile(self, now: Instant, key: str) -> None:
        """Make the mirror that lacks; remove one that is going, or of another version, or of a pod that has ended."""
        static, mirror = self._runs.get(key), self._mirrors.get(key)
        if key in self._asked or not self.ready:
            return
        if mirror is None:
            if static is not None:
                document = manifests.mirror_of(static, self._kubelet.node)
                self._ask(now, key, "create", create("pods", document, namespace=static.pod.metadata.namespace))
            return
        wrong = static is None or mirror.metadata.deletion_timestamp or not static.is_mirrored_by(mirror.metadata.annotations)
        if wrong and not (static is None and self._kubelet.leaves(key)):
            meta = mirror.metadata
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta.uid}}
            self._ask(now, key, "delete", delete("pods", meta.name, namespace=meta.namespace, options=options))

    def _ask(self, now: Instant, key: str, what: str, request: Any) -> None:
        self._asked.add(key)
        self._kubelet.emit(*self._calls.api(now, request, context=("mirror", key, what)))

    def finished(self, now: Instant, key: str, what: str, end: Finished) -> None:
        """One of its calls ended; what it did is told by the watch, and only then, or after a while, is there a next one."""
        answer = end.api()
        if 200 <= answer.status < 300:
            self._backoff.reset(key)
            self._kubelet.alarms.put("mirror", key, Instant(now + seconds(LOOK_SECONDS)))
            return
        why = answer.body[:300].decode(errors="replace")
        self._kubelet.emit(Note("kl.api.failed", {"what": f"{what} mirror", "pod": key, "status": answer.status, "why": why}))
        self._kubelet.alarms.put("mirror", key, Instant(now + self._backoff.next(key)))

    def look_again(self, now: Instant, key: str) -> None:
        """Some time after a call that failed, or of which the watch has not told."""
        self._asked.discard(key)
        self.reconcile(now, key)

    def _mirror_of(self, static: StaticPod) -> Mirror | None:
        found = self._mirrors.get(static.key)
        return found if found is not None and static.is_mirrored_by(found.metadata.annotations) else None


def _at_revision(pod: Pod, mirror: ObjectMeta) -> ObjectMeta:
    return replace(pod.metadata, resource_version=mirror.resource_version)


def _status(status: PodStatus, *, over: bool) -> PodStatus:
    """What a mirror shows of a static pod; the end of an earlier life of it is not this one's."""
    return status if over or status.phase not in FINAL else replace(status, phase="Pending", reason="", message="")
