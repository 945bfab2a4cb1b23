"""Routing: what is heard goes to the decision modules, what they decide becomes effects.

A life begins with the checkpoints (R1), waits until it knows its Node, its pods (R2) and what the runtime runs, takes the pods back
in the order of their creation with what they were allocated (R3), queues the resizes that wait (R4), and only then judges anything.
"""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

import msgspec

from elbowroom.api.events import reference
from elbowroom.api.gates import RESIZE_PREEMPTION, Profile
from elbowroom.api.objects import Container, Node, ObjectMeta, Pod, PodSpec, PodStatus, Struct
from elbowroom.api.resources import Resources, add, of, qos_class, spec_requests
from elbowroom.cache import Change, Reflector, WorkQueue
from elbowroom.kubelet import admission, node, status
from elbowroom.kubelet.admission import Neighbour
from elbowroom.kubelet.allocation import (
    Deferred,
    Evict,
    Granted,
    Infeasible,
    Rules,
    Verdict,
    desired,
    increases,
    judge,
    requested_operations,
    same,
    summary,
)
from elbowroom.kubelet.checkpoint import ACTUATED, ALLOCATED, Checkpoint, PodResources
from elbowroom.kubelet.config import ConfigError, KubeletConfig, parse
from elbowroom.kubelet.feed import RuntimeFeed
from elbowroom.kubelet.metrics import CONTENT_TYPE, Metrics, priority_bucket
from elbowroom.kubelet.pending import PendingQueue, Rank
from elbowroom.kubelet.publisher import FINAL, Publisher
from elbowroom.kubelet.recorder import Recorder
from elbowroom.kubelet.status import Eviction, ResizeCondition
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import (
    Effect,
    Input,
    Instant,
    Machine,
    Note,
    PeerConnected,
    Received,
    Send,
    SetTimer,
    Step,
    TimerFired,
    parse_time,
    seconds,
)
from elbowroom.rpc import MERGE_PATCH, Calls, Finished, create, patch
from elbowroom.wire import Call, Code, MalformedError, Reply, decode_value, encode_value
from elbowroom.wire.cri import ContainerEvent, LinuxResources, RuntimeState, SandboxId, SandboxState

WORK, RETRY, LEASE, NODE, EVENTS = "kubelet/work", "kubelet/resizes", "kubelet/lease", "kubelet/node", "kubelet/events"
API_RETRY_SECONDS, EVENT_RETRY_SECONDS = 1.0, 10.0
RELIST_LEASES = 6
"""Every so many renewals of the Lease the runtime is listed, in case it forgot to tell."""
RUNTIME_DOWN_SECONDS = 30.0
SAME_STATUS_SECONDS = 10.0

PODS_ADDED, PODS_REMOVED, POD_UPDATED = "pods_added", "pods_removed", "pod_updated"
POD_RESIZED, POD_TERMINATED, PERIODIC = "pod_resized", "pod_terminated", "periodic_retry"


def build(config: Mapping[str, Any], rng: random.Random) -> Machine:
    """A node's kubelet.

    ``config``: ``node`` (the Node's name; its runtime is the peer ``runtime/NODE``), ``profile`` (``Profile.as_config()``),
    ``epoch``, ``name``. All else it reads from its Node's annotations. A checkpoint that can't be trusted raises
    ``CorruptCheckpoint`` from ``start``.
    """
    made = config.get("profile")
    profile = Profile.from_config(made) if isinstance(made, Mapping) else Profile("lab")
    return Kubelet(str(config["node"]), profile, int(config.get("epoch", 0)), rng)


class PodDocument(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pod with its status as it came: what the kubelet compares with what it said."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: msgspec.Raw = msgspec.Raw(b"{}")


class Kubelet:
    """See ``build``. The public attributes are what workers use (``worker.Services``)."""

    def __init__(self, name: str, profile: Profile, epoch: int, rng: random.Random) -> None:
        self.node_name, self.profile = name, profile
        self.config = KubeletConfig(gates=profile.gates)
        self.notify_first = profile.sandbox_update_blocks
        self.allocated = Checkpoint(ALLOCATED)
        self.actuated = Checkpoint(ACTUATED)
        self.metrics = Metrics(resize_status=profile.publishes_resize_status)
        self._rng = rng
        self._runtime = f"runtime/{name}"
        ids: Iterator[int] = itertools.count(1)
        self._calls = Calls(epoch=epoch, ids=ids)
        of_node = {"fieldSelector": f"spec.nodeName={name}"}
        self._pods = Reflector("pods", PodDocument, query=of_node, epoch=epoch, ids=ids)
        self._nodes = Reflector("nodes", Node, query={"fieldSelector": f"metadata.name={name}"}, epoch=epoch, ids=ids)
        self._feed = RuntimeFeed(self._runtime, ids, epoch)
        self._recorder = Recorder(self._calls, rng, name)
        self._publisher = Publisher(self._calls, self._retry_status)
        self._out: list[Effect] = []
        self._node: Node | None = None
        self._configured = False
        self._refused_config = ""
        self._listed: dict[str, SandboxState] | None = None
        self._strays: list[str] = []
        self._runtime_heard = Instant(0)
        self._booted = False
        self._workers: dict[str, PodWorker] = {}
        self._by_key: dict[str, PodWorker] = {}
        self._leaving: dict[str, PodWorker] = {}
        self._by_sandbox: dict[str, PodWorker] = {}
        self._queue = PendingQueue()
        self._retry_at = Instant(0)
        self._retry_armed: Instant | None = None
        self._work = WorkQueue()
        self._work_armed: Instant | None = None
        self._waiting_room: dict[str, PodWorker] = {}
        """Critical pods that wait for their victims' end."""
        self._images: set[str] = set()
        self._renewals = 0
        self._node_in_flight = False
        self._node_dirty = False
        self._node_said: tuple[Any, Instant] | None = None
        self._heartbeat_at = Instant(0)
        self._events_waiting = False

    # ------------------------------------------------------------ life

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        self._out = []
        self.allocated = Checkpoint.loaded(ALLOCATED, disk, ("K4", "K5", "K6", "K7"))
        self.actuated = Checkpoint.loaded(ACTUATED, disk)
        self.emit(Step("R1 checkpoint read"), self.allocated.loaded_note(), self.actuated.loaded_note())
        self.emit(*self._pods.open(now), *self._nodes.open(now), *self._feed.open(now))
        self._list_runtime(now)
        return self._taken(now)

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        self._out = []
        effects, pods = self._pods.handle(now, happened)
        self.emit(*effects)
        effects, nodes = self._nodes.handle(now, happened)
        self.emit(*effects)
        effects, events, lost = self._feed.handle(now, happened)
        self.emit(*effects)
        effects, ends = self._calls.finished(now, happened)
        self.emit(*effects)
        for end in ends:
            self._on_end(now, end)
        if nodes:
            self._on_node(now)
        if self._booted:
            for change in pods:
                self._on_pod(now, change)
            for event in events:
                self._on_container(now, event)
        if lost:
            self._list_runtime(now)
        match happened:
            case Received(source, Call() as call):
                self._on_call(now, source, call)
            case TimerFired(name):
                self._on_timer(now, name)
            case PeerConnected(peer):
                self._on_connected(now, peer)
        if not self._booted:
            self._boot(now)
        return self._taken(now)

    def _taken(self, now: Instant) -> list[Effect]:
        """The effects of this step, with the timers that they leave."""
        due = self._work.due()
        if due != self._work_armed:
            self._work_armed = due
            self.emit(SetTimer(WORK, None if due is None else max(due, now)))
        retry = self._retry_at if self._booted and len(self._queue) else None
        if retry != self._retry_armed:
            self._retry_armed = retry
            self.emit(SetTimer(RETRY, None if retry is None else max(retry, now)))
        out, self._out = self._out, []
        return out

    def _on_timer(self, now: Instant, name: str) -> None:
        match name:
            case _ if name == WORK:
                self._work_armed = None
                for key in self._work.ready(now):
                    kind, _, uid = key.partition("/")
                    if kind == "status":
                        self.emit(*self._publisher.retry(now, uid))
                    elif kind == "deadline":
                        self._check_deadline(now, uid)
                    elif (worker := self._workers.get(uid) or self._leaving.get(uid)) is not None:
                        worker.alarm(now)
            case _ if name == RETRY:
                self._retry_armed = None
                self._pass(now, PERIODIC)
            case _ if name == LEASE:
                self._renew(now)
            case _ if name == NODE:
                self._update_node(now)
            case _ if name == EVENTS:
                self._events_waiting = False
                self.emit(*self._recorder.retry(now))

    def _on_connected(self, now: Instant, peer: str) -> None:
        if peer == self._runtime:
            for worker in [*self._workers.values(), *self._leaving.values()]:
                worker.reconnected(now)
        elif peer == "apiserver":
            for uid in list(self._workers):
                self.emit(*self._publisher.retry(now, uid))
            self.emit(*self._recorder.retry(now))
            if self._booted:
                self._update_node(now)

    def _on_end(self, now: Instant, end: Finished) -> None:
        """One of our calls ended."""
        match end.context:
            case ("rt", uid, token):
                worker = self._workers.get(uid) or self._leaving.get(uid)
                self._runtime_heard = now if end.code.definite else self._runtime_heard
                if worker is not None and worker.busy and worker.token == token:
                    worker.finished(now, end)
                    self._index(worker)
            case ("status" | "remove", _):
                self.emit(*self._publisher.finished(now, end))
            case ("event", *_):
                effects, again = self._recorder.finished(now, end)
                self.emit(*effects)
                if again and not self._events_waiting:
                    self._events_waiting = True
                    self.emit(SetTimer(EVENTS, Instant(now + seconds(EVENT_RETRY_SECONDS))))
            case ("list",):
                self._on_list(now, end)
            case ("cgroups", source, number):
                self._answer_cgroups(str(source), int(number), end)
            case ("lease", how):
                self._on_lease(now, str(how), end)
            case ("node",):
                self._on_node_written(now, end)

    # ------------------------------------------------------------ services for workers

    def emit(self, *effects: Effect) -> None:
        self._out.extend(effects)

    def jitter(self) -> float:
        return self._rng.random()

    def ask(self, now: Instant, worker: PodWorker, method: str, body: Any, timeout: float) -> None:
        context = ("rt", worker.uid, worker.token)
        self.emit(*self._calls.begin(now, self._runtime, method, body, context=context, timeout=timeout))

    def remove_sandbox(self, now: Instant, sandbox: str) -> None:
        """Remove a sandbox that belongs to nobody."""
        self._by_sandbox.pop(sandbox, None)
        body = SandboxId(sandbox)
        self.emit(*self._calls.begin(now, self._runtime, "RemovePodSandbox", body, context=("stray", sandbox)))

    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None:
        field = ""
        if container is not None:
            part = "initContainers" if container in pod.spec.init_containers else "containers"
            field = f"spec.{part}{{{container.name}}}"
        self.emit(*self._recorder.record(now, reference("Pod", pod.metadata, field_path=field), kind, reason, message))

    def pull(self, now: Instant, pod: Pod, container: Container) -> None:
        """The image is pulled in no time; the events say what upstream's would."""
        image = container.image
        present = image in self._images and container.image_pull_policy != "Always"
        if present or container.image_pull_policy == "Never":
            message = f'Container image "{image}" already present on machine and can be accessed by the pod'
            self.event(now, pod, "Normal", "Pulled", message, container)
            return
        self._images.add(image)
        self.event(now, pod, "Normal", "Pulling", f'Pulling image "{image}"', container)
        message = f'Successfully pulled image "{image}" in 0s (0s including waiting). Image size: 0 bytes.'
        self.event(now, pod, "Normal", "Pulled", message, container)

    def wake(self, worker: PodWorker, at: Instant) -> None:
        self._work.add_at(f"pod/{worker.uid}", at)

    def is_held(self, worker: PodWorker) -> bool:
        return any(other.key == worker.key and other.uid != worker.uid and other.runs for other in self._leaving.values())

    def over(self, now: Instant, worker: PodWorker) -> None:
        self._pod_ended(worker, worker.pod.status.phase or "Unknown")
        if worker.gone:
            self._leaving.pop(worker.uid, None)
            self._by_sandbox = {sandbox: w for sandbox, w in self._by_sandbox.items() if w is not worker}
            namesake = self._by_key.get(worker.key)
            if namesake is not None:
                namesake.sync(now)
            return
        self._queue.remove(worker.uid)
        for waiting in list(self._waiting_room.values()):
            self._admit(now, waiting)
        if any(self._evicting(uid) for uid in self._queue):
            self._pass(now, POD_TERMINATED)

    def publish(self, now: Instant, worker: PodWorker) -> None:
        publication = self._publisher.get(worker.uid)
        if publication is None:
            return
        owned = status.owned_types(
            preemption_disabled=self.profile.policy_by_condition,
            evicted=worker.eviction is not None and worker.eviction.disrupted,
        )
        remove = worker.pod.is_terminating and worker.over
        if worker.refused is not None:
            wanted: dict[str, Any] | None = status.rejected(worker.pod, now, *worker.refused)
        elif publication.seen.get("phase") in FINAL or not worker.admitted:
            wanted = None  # the last word was spoken
        else:
            wanted = status.document(self._shown(now, worker, publication.seen))
        self.emit(*self._publisher.say(now, worker.uid, wanted, owned, remove=remove))

    def _shown(self, now: Instant, worker: PodWorker, previous: Mapping[str, Any]) -> status.Shown:
        host_ip = "127.0.0.1"
        if worker.shown_sandbox is not None and not worker.ip:
            known = str(previous.get("podIP") or "")
            worker.ip = known or (host_ip if worker.pod.spec.host_network else self._free_ip())
        return status.Shown(
            now=now,
            pod=worker.pod,
            allocated=worker.allocated_pod,
            actuated=worker.shown_actuated,
            sandbox=worker.shown_sandbox,
            previous=previous,
            started=worker.started,
            ip=worker.ip,
            host_ip=host_ip,
            pending=worker.pending,
            in_progress=worker.in_progress,
            preemption_disabled=self._preemption_disabled,
            waiting=worker.waiting,
            over=worker.over,
            eviction=worker.eviction,
            resize_word=worker.resize_word if self.profile.publishes_resize_status else "",
            pod_level=self.config.on("InPlacePodLevelResourcesVerticalScaling"),
        )

    def _free_ip(self) -> str:
        taken = {w.ip for w in [*self._workers.values(), *self._leaving.values()] if w.ip}
        taken |= {w.pod.status.pod_ip for w in self._workers.values() if w.pod.status.pod_ip}
        return node.pod_ip(self.node_name, taken)

    @property
    def _preemption_disabled(self) -> str:
        by_condition = self.profile.policy_by_condition and self.profile.resize_preemption
        if not by_condition or self._node is None or not self._node.resize_preemption_disabled:
            return ""
        return self.node_name

    def _retry_status(self, uid: str, at: Instant) -> None:
        self._work.add_at(f"status/{uid}", at)

    def _pod_ended(self, worker: PodWorker, phase: str) -> None:
        if worker.admitted and not worker.counts_for_nothing:
            worker.counts_for_nothing = True
            self.emit(Note("pod.end", {"pod": worker.key, "uid": worker.uid, "node": self.node_name, "phase": phase}))

    # ------------------------------------------------------------ boot

    def _boot(self, now: Instant) -> None:
        if self._node is None or not self._configured or not self._pods.synced or self._listed is None:
            return
        self.emit(Step("R2 list done"))
        self._booted = True
        self._retry_at = Instant(now + self.config.retry_first_ns)
        documents = sorted(self._pods.store.values(), key=lambda d: (d.metadata.creation_timestamp or "", d.metadata.name))
        for document in documents:
            self._take(now, document)
        listed, self._listed = self._listed, {}
        self._adopt(now, listed)
        for worker in list(self._workers.values()):
            self._readmit(now, worker)
        self.emit(*self.allocated.save(), Step("R3 re-admitted"))
        for worker in self._workers.values():
            self._back_fill(now, worker)
            if worker.active and not same(desired(worker.pod, self.config), worker.layer or PodResources()):
                self._push(worker)
        self.emit(Step("R4 pending queue built"))
        self._update_node(now, heartbeat=True)
        self._renew(now)
        if self.profile.pending_pass_at_start and len(self._queue):
            self._pass(now, PODS_ADDED)
        for worker in list(self._workers.values()):
            self._go_on(now, worker)

    def _adopt(self, now: Instant, listed: Mapping[str, SandboxState]) -> None:
        """Give each pod the sandbox that the runtime has of it; what is nobody's goes."""
        for uid, sandbox in listed.items():
            worker = self._workers.get(uid) or self._leaving.get(uid)
            if worker is None:
                self.remove_sandbox(now, sandbox.sandbox)
            elif not worker.busy:
                worker.adopt(sandbox)
                self._by_sandbox[sandbox.sandbox] = worker
        for stray in self._strays:
            self.remove_sandbox(now, stray)
        self._strays = []

    def _readmit(self, now: Instant, worker: PodWorker) -> None:
        """RC-91: with what it was allocated, in the order of creation; nobody's pending wish counts."""
        if worker.pod.is_terminal:
            worker.admitted = True
            worker.counts_for_nothing = True
            if worker.sandbox is None or not worker.sandbox.ready:
                worker.over = True
            else:
                worker.end(float(worker.pod.spec.termination_grace_period_seconds))
        elif worker.pod.is_terminating:
            worker.admitted = True
        else:
            self._admit(now, worker, boot=True)

    def _back_fill(self, now: Instant, worker: PodWorker) -> None:
        """RC-92: the conditions as the API server has them, their times begun anew."""
        if not worker.active:
            return
        # A life that died between the grant and telling of it left a condition that is not true any more.
        waits = not same(desired(worker.pod, self.config), worker.layer or PodResources())
        worker.pending = self._known_condition(now, worker, status.PENDING) if waits else None
        worker.in_progress = self._known_condition(now, worker, status.IN_PROGRESS)

    def _known_condition(self, now: Instant, worker: PodWorker, kind: str) -> ResizeCondition | None:
        known = worker.pod.condition(kind)
        return None if known is None else ResizeCondition(known.reason, known.message, known.observed_generation, now, now)

    def _go_on(self, now: Instant, worker: PodWorker) -> None:
        worker.update(now, worker.pod)
        self._watch_deadline(now, worker)
        if worker.refused is not None or worker.over:
            self.publish(now, worker)
        else:
            worker.sync(now)
        self._index(worker)

    def _index(self, worker: PodWorker) -> None:
        if worker.sandbox is not None:
            self._by_sandbox[worker.sandbox.sandbox] = worker

    # ------------------------------------------------------------ pods

    def _on_pod(self, now: Instant, change: Change[PodDocument]) -> None:
        known = self._by_key.get(change.key)
        if known is not None and (change.new is None or change.new.metadata.uid != known.uid):
            self._remove(now, known)
            known = None
        if change.new is None:
            return
        self.emit(Step("K1 pod change seen"))
        if known is None:
            self._add(now, change.new)
        else:
            self._update(now, known, change.new)

    def _pod_of(self, document: PodDocument, old: Pod | None = None) -> tuple[Pod, dict[str, Any]]:
        raw = bytes(document.status)
        spec = old.spec if old is not None and old.spec == document.spec else document.spec
        pod = Pod(metadata=document.metadata, spec=spec, status=msgspec.json.decode(raw, type=PodStatus))
        return pod, msgspec.json.decode(raw)

    def _take(self, now: Instant, document: PodDocument) -> PodWorker:
        pod, seen = self._pod_of(document)
        worker = PodWorker(self, pod, now)
        self._workers[worker.uid] = self._by_key[worker.key] = worker
        self._publisher.add(pod.metadata.namespace, pod.metadata.name, worker.uid)
        self._publisher.observe(worker.uid, seen, _revision(pod))
        return worker

    def _add(self, now: Instant, document: PodDocument) -> None:
        worker = self._take(now, document)
        if worker.pod.is_terminal:
            worker.admitted = worker.over = worker.counts_for_nothing = True
        elif worker.pod.is_terminating:
            worker.admitted = True
        else:
            self._admit(now, worker)
        self._go_on(now, worker)

    def _admit(self, now: Instant, worker: PodWorker, *, boot: bool = False) -> None:
        """May the pod be here? Then it gets what it asks for, or keeps what it had."""
        assert self._node is not None, "pods are admitted to a node that is known"
        pod = worker.allocated_pod
        others = self._neighbours(worker)
        ran = boot and self.config.on("NotEvictPodOnKubeletRestart") and worker.layer is not None and worker.sandbox is not None
        refused = admission.refusal(pod, spec_requests(pod), others, self._node, restarted=ran)
        if refused is not None and refused.lacks and admission.is_critical(pod):
            chosen = admission.victims(pod, others, refused.lacks)
            if not isinstance(chosen, admission.NoVictims):
                self._waiting_room[worker.uid] = worker
                self._evict(now, chosen, refused.lacks)
                return
            refused = admission.unexpected(chosen)
        self._waiting_room.pop(worker.uid, None)
        if refused is not None:
            worker.refused, worker.over = (refused.reason, refused.message), True
            self.event(now, pod, "Warning", refused.reason, refused.message)
            facts = {"pod": worker.key, "uid": worker.uid, "reason": refused.reason, "message": refused.message}
            self.emit(Note("kl.reject", facts))
            self.publish(now, worker)
            return
        worker.admitted = True
        if worker.layer is None:
            self.allocated.put(worker.uid, desired(worker.pod, self.config))
        if not boot:
            self.emit(*self.allocated.save())
        self._note_allocation(worker, "admitted")
        if not boot:
            worker.sync(now)
            self._index(worker)

    def _update(self, now: Instant, worker: PodWorker, document: PodDocument) -> None:
        old = worker.pod
        new, seen = self._pod_of(document, old)
        counted = worker.counts if worker.active else None
        worker.update(now, new)
        self._publisher.observe(worker.uid, seen, _revision(new))
        if worker.uid in self._waiting_room:
            self._admit(now, worker)
        if worker.active and not same(desired(old, self.config), desired(new, self.config)):
            for operation in requested_operations(old, new):
                self.metrics.requested.labels(*operation).inc()
            self._on_wish(now, worker)
        if new.is_terminal:
            self._pod_ended(worker, new.status.phase)
        if len(self._queue):
            if new.is_terminal and not old.is_terminal:
                self._pass(now, POD_TERMINATED)
            elif counted is not None and worker.active and _shrinks(counted, worker.counts):
                self._pass(now, POD_RESIZED)
        if old.spec.active_deadline_seconds != new.spec.active_deadline_seconds or old.status.start_time != new.status.start_time:
            self._watch_deadline(now, worker)
        if worker.refused is not None or worker.over:
            self.publish(now, worker)
        elif old.spec is not new.spec or old.metadata.annotations != new.metadata.annotations or worker.ending:
            worker.sync(now)
        if not worker.over:
            self.publish(now, worker)
        self._index(worker)

    def _on_wish(self, now: Instant, worker: PodWorker) -> None:
        """Its desired resources changed."""
        if worker.layer is not None and same(desired(worker.pod, self.config), worker.layer):
            self._clear_pending(now, worker, "reverted")
            self._queue.remove(worker.uid)
            return
        self.emit(Step("K2 queued"))
        self._push(worker)
        self._pass(now, POD_UPDATED)

    def _remove(self, now: Instant, worker: PodWorker) -> None:
        """The API server has it no more."""
        del self._workers[worker.uid]
        if self._by_key.get(worker.key) is worker:
            del self._by_key[worker.key]
        self._pod_ended(worker, worker.pod.status.phase or "Unknown")
        self._observe_deferred(now, worker, "terminated")
        self._queue.remove(worker.uid)
        self._waiting_room.pop(worker.uid, None)
        self._publisher.forget(worker.uid)
        self.allocated.forget(worker.uid)
        self.actuated.forget(worker.uid)
        self._leaving[worker.uid] = worker
        worker.leave(now)
        for waiting in list(self._waiting_room.values()):
            self._admit(now, waiting)
        if len(self._queue):
            self._pass(now, PODS_REMOVED)

    def _neighbours(self, worker: PodWorker) -> list[Neighbour]:
        return [Neighbour(w.allocated_pod, w.counts) for w in self._workers.values() if w is not worker and w.active]

    def _evict(self, now: Instant, chosen: Sequence[Pod], lacks: Sequence[admission.Lack]) -> None:
        for pod in chosen:
            victim = self._workers[pod.uid]
            if victim.eviction is not None:
                continue
            self.event(now, victim.pod, "Warning", "Preempting", admission.PREEMPTED)
            self.metrics.preemptions.labels(lacks[0].resource if lacks else "").inc()
            self.emit(Note("kl.preempt", {"pod": victim.key, "uid": victim.uid}))
            grace = float(victim.pod.spec.termination_grace_period_seconds)
            victim.end(grace, Eviction("Preempting", admission.PREEMPTED, disrupted=True))
            victim.sync(now)

    def _evicting(self, uid: str) -> bool:
        worker = self._workers.get(uid)
        return worker is not None and worker.pending is None

    def _watch_deadline(self, now: Instant, worker: PodWorker) -> None:
        limit = worker.pod.spec.active_deadline_seconds
        if limit is not None and not worker.over:
            start = worker.pod.status.start_time
            began = parse_time(start) if start else worker.started
            self._work.add_at(f"deadline/{worker.uid}", Instant(began + seconds(limit)))

    def _check_deadline(self, now: Instant, uid: str) -> None:
        worker = self._workers.get(uid)
        limit = worker.pod.spec.active_deadline_seconds if worker is not None else None
        if worker is None or limit is None or worker.over or worker.ending:
            return
        start = worker.pod.status.start_time
        due = Instant((parse_time(start) if start else worker.started) + seconds(limit))
        if now < due:
            self._work.add_at(f"deadline/{uid}", due)
            return
        message = "Pod was active on the node longer than the specified deadline"
        self.event(now, worker.pod, "Normal", "DeadlineExceeded", message)
        worker.end(float(worker.pod.spec.termination_grace_period_seconds), Eviction("DeadlineExceeded", message, fails=True))
        worker.sync(now)

    # ------------------------------------------------------------ resizes

    def _push(self, worker: PodWorker) -> None:
        self._queue.push(worker.uid, self._rank)

    def _rank(self, uid: str) -> Rank | None:
        worker = self._workers.get(uid)
        if worker is None or not worker.active:
            return None
        return Rank(
            increases=increases(worker.pod, worker.allocated_pod),
            priority=worker.pod.priority,
            guaranteed=qos_class(worker.pod) == "Guaranteed",
            waiting_since=worker.pending.since if worker.pending is not None else None,
        )

    def _pass(self, now: Instant, trigger: str) -> None:
        """RC-64, RC-65: try every pending resize, in the queue's order."""
        self._retry_at = Instant(now + self.config.retry_ns)
        kept = []
        for uid in self._queue:
            worker = self._workers.get(uid)
            if worker is None or not worker.active or worker.layer is None:
                continue
            if self._try(now, worker, trigger):
                kept.append(uid)
        self._queue.keep(kept)

    def _try(self, now: Instant, worker: PodWorker, trigger: str) -> bool:
        """Judge one resize and act on the verdict; True if it goes on waiting."""
        assert self._node is not None and worker.layer is not None, "only admitted pods are judged"
        wanted, layer = worker.pod, desired(worker.pod, self.config)
        if same(layer, worker.layer):
            self._clear_pending(now, worker, "reverted")
            return False
        others = self._neighbours(worker)
        rules = Rules(
            self._node,
            self.config,
            infeasible_above_allocatable=not self.profile.refuses_above_allocatable,
            evicts_for_resize=not self.config.on(RESIZE_PREEMPTION) and not self._node.resize_preemption_disabled,
        )
        verdict = judge(wanted, worker.allocated_pod, others, rules)
        self._note_verdict(worker, verdict, others, trigger)
        match verdict:
            case Granted():
                self._grant(now, worker, layer, trigger)
                return False
            case Deferred(cause, message):
                self._refuse(now, worker, "Deferred", cause, message)
                return True
            case Infeasible(message, detail):
                self.metrics.infeasible.labels(detail).inc()
                self._refuse(now, worker, "Infeasible", "Infeasible", message)
                return False
            case Evict(victims):
                lacks = admission.lacks(spec_requests(wanted), others, self._node)
                self._evict(now, victims, lacks)
                return True
            case _:
                assert_never(verdict)

    def _grant(self, now: Instant, worker: PodWorker, layer: PodResources, trigger: str) -> None:
        """RC-79: durable first; then the conditions, the event, and the runtime."""
        was_deferred = worker.pending is not None and worker.pending.reason == "Deferred"
        self.allocated.put(worker.uid, layer)
        self.emit(*self.allocated.save(), Step("K8 memory state"))
        self._note_allocation(worker, trigger)
        self._clear_pending(now, worker, "accepted", publish=False)
        if was_deferred:
            self.metrics.accepted.labels(trigger).inc()
        generation = worker.pod.metadata.generation
        worker.in_progress = ResizeCondition("", "", generation, now, now)
        message = f"Pod resize started: {summary(worker.pod, generation)}"
        self.event(now, worker.pod, "Normal", "ResizeStarted", message)
        worker.granted(now)
        self.publish(now, worker)

    def _refuse(self, now: Instant, worker: PodWorker, reason: str, cause: str, message: str) -> None:
        """RC-131, RC-152: the wait counts from when the reason came up, an event tells of what is new."""
        before, generation = worker.pending, worker.pod.metadata.generation
        new = before is None or before.reason != reason
        since = now if before is None or before.reason != reason else before.since
        if new:
            self._observe_deferred(now, worker, "reverted")
        worker.pending = ResizeCondition(reason, message, generation, since, now)
        if new or (before is not None and before.generation != generation):
            told = f"Pod resize {cause}: {summary(worker.pod, generation, message)}"
            self.event(now, worker.pod, "Warning", "ResizeDeferred" if reason == "Deferred" else "ResizeInfeasible", told)
        self.publish(now, worker)

    def _clear_pending(self, now: Instant, worker: PodWorker, resolution: str, *, publish: bool = True) -> None:
        if worker.pending is None:
            return
        self._observe_deferred(now, worker, resolution)
        worker.pending = None
        if publish:
            self.publish(now, worker)

    def _observe_deferred(self, now: Instant, worker: PodWorker, resolution: str) -> None:
        if worker.pending is not None and worker.pending.reason == "Deferred":
            labels = (resolution, priority_bucket(worker.pod.priority))
            self.metrics.deferred.labels(*labels).observe((now - worker.pending.since) / 1e9)

    def _note_verdict(self, worker: PodWorker, verdict: Verdict, others: Sequence[Neighbour], trigger: str) -> None:
        facts = {
            "pod": worker.key,
            "uid": worker.uid,
            "node": self.node_name,
            "gen": worker.pod.metadata.generation,
            "verdict": type(verdict).__name__,
            "used": _cpu_and_memory(add(*(n.counts for n in others))),
            "wanted": _cpu_and_memory(spec_requests(worker.pod)),
            "cause": trigger,
        }
        self.emit(Step("K3 judged"), Note("kl.judge", facts))

    def _note_allocation(self, worker: PodWorker, cause: str) -> None:
        assert self._node is not None and worker.layer is not None, "what was allocated is known"
        facts = {
            "pod": worker.key,
            "uid": worker.uid,
            "node": self.node_name,
            "gen": worker.pod.metadata.generation,
            "vector": _cpu_and_memory(spec_requests(worker.allocated_pod)),
            "containers": {name: msgspec.to_builtins(r) for name, r in (worker.layer.containers or {}).items()},
            "allocatable": _cpu_and_memory(of(self._node.status.allocatable)),
            "cause": cause,
        }
        self.emit(Note("kl.alloc", facts))

    # ------------------------------------------------------------ the runtime

    def _list_runtime(self, now: Instant) -> None:
        self.emit(*self._calls.begin(now, self._runtime, "ListAll", context=("list",)))

    def _on_list(self, now: Instant, end: Finished) -> None:
        if end.code is not Code.OK:
            if not self._booted or now - self._runtime_heard > seconds(RUNTIME_DOWN_SECONDS):
                self._update_node(now)
            self._list_again(now)
            return
        try:
            found = decode_value(end.body, RuntimeState).sandboxes
        except MalformedError as why:
            self.emit(Note("kl.runtime.failed", {"code": "INTERNAL", "message": str(why)}))
            self._list_again(now)
            return
        self._runtime_heard = now
        newest: dict[str, SandboxState] = {}
        for sandbox in sorted(found, key=lambda s: (s.created_at, s.sandbox)):
            if sandbox.uid in newest:
                self._strays.append(newest[sandbox.uid].sandbox)
            newest[sandbox.uid] = sandbox
        if not self._booted:
            self._listed = newest
            return
        self._reconcile(now, newest)

    def _list_again(self, now: Instant) -> None:
        if not self._booted:
            self._list_runtime(now)

    def _reconcile(self, now: Instant, newest: Mapping[str, SandboxState]) -> None:
        """After a gap in the events: look at every pod of which the runtime has something else than we think."""
        busy = {w.uid for w in [*self._workers.values(), *self._leaving.values()] if w.busy}
        self._strays = [s for s in self._strays if s not in self._by_sandbox]
        for uid, sandbox in newest.items():
            worker = self._workers.get(uid) or self._leaving.get(uid)
            if worker is None:
                self.remove_sandbox(now, sandbox.sandbox)
            elif uid not in busy and worker.sandbox != sandbox:
                worker.adopt(sandbox)
                self._index(worker)
                worker.sync(now)
        for worker in [*self._workers.values(), *self._leaving.values()]:
            if worker.uid not in newest and worker.uid not in busy and worker.sandbox is not None:
                worker.look(now)
        for stray in self._strays:
            self.remove_sandbox(now, stray)
        self._strays = []
        self._update_node(now)

    def _on_container(self, now: Instant, event: ContainerEvent) -> None:
        worker = self._by_sandbox.get(event.sandbox)
        if worker is not None and worker.sandbox is not None and worker.sandbox.sandbox == event.sandbox:
            worker.heard(now, event.kind, event.container)

    # ------------------------------------------------------------ the node

    def _on_node(self, now: Instant) -> None:
        found = self._nodes.store.get(self.node_name)
        if found is None:
            return  # its objects go, and soon this process
        disabled = self._preemption_disabled
        self._node = found
        if not self._configured and not self._refused_config:
            try:
                self.config = parse(found.metadata.annotations, self.profile)
                self._configured = True
            except ConfigError as why:
                self._refused_config = str(why)
                self.emit(Note("kl.config.refused", {"node": self.node_name, "why": str(why)}))
        if not self._booted:
            return
        self._update_node(now)
        if disabled != self._preemption_disabled:
            for worker in list(self._workers.values()):
                if worker.pending is not None:
                    self.publish(now, worker)

    def _update_node(self, now: Instant, *, heartbeat: bool = False) -> None:
        """Write what of the Node is not as it should be."""
        if self._node is None or not self._booted:
            return
        if self._node_in_flight:
            self._node_dirty = True
            return
        missing = node.labels(self._node)
        if missing:
            body = {"metadata": {"labels": missing}}
            self.emit(*self._calls.api(now, patch("nodes", self.node_name, body), context=("labels",)))
        heartbeat = heartbeat or now >= self._heartbeat_at
        down = now - self._runtime_heard > seconds(RUNTIME_DOWN_SECONDS) and self._runtime_heard != 0
        why = "container runtime is down" if down and self._busy_with_runtime else ""
        wanted = node.status(now, self._node, self.config, why, heartbeat=heartbeat)
        if not wanted:
            return
        told = _without_times(wanted)
        if not heartbeat and self._node_said is not None and self._node_said[0] == told:
            again = Instant(self._node_said[1] + seconds(SAME_STATUS_SECONDS))
            if now < again:
                self.emit(SetTimer(NODE, again))
                return
        self._node_in_flight, self._node_dirty = True, False
        self._node_said = (told, now)
        self._heartbeat_at = Instant(now + seconds(node.STATUS_SECONDS))
        self.emit(SetTimer(NODE, self._heartbeat_at))
        request = patch("nodes", self.node_name, {"status": wanted}, subresource="status")
        self.emit(*self._calls.api(now, request, context=("node",)))

    @property
    def _busy_with_runtime(self) -> bool:
        """Is an answer of the runtime overdue, rather than nothing asked?"""
        return any(w.busy for w in self._workers.values())

    def _on_node_written(self, now: Instant, end: Finished) -> None:
        self._node_in_flight = False
        code = end.api().status
        if not 200 <= code < 300 and code != 404:
            self._node_said = None
            self.emit(Note("kl.api.failed", {"what": "node", "status": code, "why": end.api().body[:300].decode(errors="replace")}))
            self._heartbeat_at = now
            self.emit(SetTimer(NODE, Instant(now + seconds(API_RETRY_SECONDS))))
        elif self._node_dirty:
            self._update_node(now)

    def _renew(self, now: Instant) -> None:
        if self._node is None or not self._booted:
            return
        request = patch(
            "leases.coordination.k8s.io",
            self.node_name,
            node.renewal(now, self.node_name),
            namespace=node.LEASE_NAMESPACE,
            kind=MERGE_PATCH,
        )
        self.emit(*self._calls.api(now, request, context=("lease", "renew")))
        self.emit(SetTimer(LEASE, Instant(now + seconds(node.RENEW_SECONDS * (1 + 0.04 * self.jitter())))))
        self._renewals += 1
        if self._renewals % RELIST_LEASES == 0 and self._workers:
            self._list_runtime(now)

    def _on_lease(self, now: Instant, how: str, end: Finished) -> None:
        if how == "renew" and end.api().status == 404 and self._node is not None:
            request = create("leases.coordination.k8s.io", node.lease(now, self._node), namespace=node.LEASE_NAMESPACE)
            self.emit(*self._calls.api(now, request, context=("lease", "create")))

    # ------------------------------------------------------------ what others ask

    def _on_call(self, now: Instant, source: str, call: Call) -> None:
        if call.method != "proxy":
            self.emit(Send(source, Reply(call.id, Code.UNIMPLEMENTED, message=f"unknown method {call.method}")))
            return
        try:
            asked = decode_value(call.body, dict)
        except MalformedError as why:
            self.emit(Send(source, Reply(call.id, Code.INVALID_ARGUMENT, message=str(why))))
            return
        match str(asked.get("path", "")).strip("/"):
            case "metrics":
                self._answer(source, call.id, 200, CONTENT_TYPE, self._exposition())
            case "podresources":
                self._answer(source, call.id, 200, "application/json", msgspec.json.encode(self._pod_resources()))
            case "cgroups":
                context = ("cgroups", source, call.id)
                self.emit(*self._calls.begin(now, self._runtime, "ListAll", context=context))
            case "healthz" | "livez" | "readyz":
                self._answer(source, call.id, 200, "text/plain; charset=utf-8", b"ok")
            case path:
                text = f"404 page not found: {path[:100]}\n"
                self._answer(source, call.id, 404, "text/plain; charset=utf-8", text.encode())

    def _answer(self, source: str, number: int, code: int, kind: str, body: bytes) -> None:
        answer = {"status": code, "contentType": kind, "body": body}
        self.emit(Send(source, Reply(number, Code.OK, encode_value(answer))))

    def _exposition(self) -> bytes:
        pending: dict[tuple[str, str], int] = {}
        containers: dict[str, int] = {}
        words: list[tuple[str, str, str, str]] = []
        for worker in self._workers.values():
            if worker.pending is not None:
                labels = (worker.pending.reason.lower(), priority_bucket(worker.pod.priority))
                pending[labels] = pending.get(labels, 0) + 1
            for state in worker.sandbox.containers if worker.sandbox is not None else ():
                containers[state.state] = containers.get(state.state, 0) + 1
            words += self._resize_words(worker)
        in_progress = sum(1 for w in self._workers.values() if w.in_progress is not None)
        running = sum(1 for w in self._workers.values() if w.sandbox is not None and w.sandbox.ready)
        return self.metrics.exposition(pending, in_progress, running, containers, words)

    def _resize_words(self, worker: PodWorker) -> list[tuple[str, str, str, str]]:
        word = worker.resize_word
        meta = worker.pod.metadata
        return [(meta.namespace, meta.name, c.name, word) for c in worker.pod.spec.containers] if word else []

    def _pod_resources(self) -> dict[str, Any]:
        """No CPU and no memory is set apart for anybody on this node."""
        listed = [
            {
                "name": w.pod.metadata.name,
                "namespace": w.pod.metadata.namespace,
                "containers": [
                    {"name": c.name, "cpuIds": [], "memory": []}
                    for c in [*w.pod.spec.init_containers, *w.pod.spec.containers]
                    if c in w.pod.spec.containers or c.is_sidecar
                ],
            }
            for w in self._workers.values()
            if w.active
        ]
        return {"podResources": listed}

    def _answer_cgroups(self, source: str, number: int, end: Finished) -> None:
        if end.code is not Code.OK:
            text = f"the runtime did not answer: {end.message or end.code.name}\n"
            self._answer(source, number, 503, "text/plain; charset=utf-8", text.encode())
            return
        try:
            sandboxes = decode_value(end.body, RuntimeState).sandboxes
        except MalformedError as why:
            self._answer(source, number, 502, "text/plain; charset=utf-8", str(why).encode())
            return
        listed = []
        for sandbox in sandboxes:
            if not sandbox.ready:
                continue
            place = {"pod": sandbox.name, "namespace": sandbox.namespace}
            listed.append({**place, **self._cgroup(sandbox.pod_cgroup)})
            for container in sandbox.containers:
                if container.state != "exited":
                    listed.append({**place, "container": container.name, **self._cgroup(container.cgroup)})
        self._answer(source, number, 200, "application/json", msgspec.json.encode(listed))

    def _cgroup(self, resources: LinuxResources) -> dict[str, Any]:
        shares = resources.cpu_shares or 2
        cpu = (
            {"cpuWeight": 1 + (shares - 2) * 9999 // 262142} if self.config.hardware.cgroup_version == 2 else {"cpuShares": shares}
        )
        return {
            **cpu,
            "cpuQuota": resources.cpu_quota if resources.cpu_quota > 0 else None,
            "cpuPeriod": resources.cpu_period or 100_000,
            "memoryMax": resources.memory_limit_bytes if resources.memory_limit_bytes > 0 else None,
            "cpusetCpus": resources.cpuset_cpus or f"0-{self.config.hardware.cpus - 1}",
        }


def _revision(pod: Pod) -> int:
    text = pod.metadata.resource_version
    return int(text) if text.isdecimal() else 0


def _shrinks(old: Resources, new: Resources) -> bool:
    return any(new.get(name, 0) < old.get(name, 0) for name in ("cpu", "memory"))


def _cpu_and_memory(vector: Mapping[str, int]) -> Resources:
    return {name: vector.get(name, 0) for name in ("cpu", "memory")}


def _without_times(wanted: Mapping[str, Any]) -> Any:
    conditions = [{k: v for k, v in c.items() if not k.endswith("Time")} for c in wanted.get("conditions", ())]
    return {**wanted, "conditions": conditions}
