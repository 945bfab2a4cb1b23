"""Routing: what is heard goes to the decision modules, what they decide becomes effects.

A life begins with the checkpoints (R1), waits until it knows its Node, its pods (R2) and what the runtime runs, takes the pods back
in the order of their creation with what they were allocated (R3), queues the resizes that wait (R4), and only then judges anything.
"""

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.api.gates import Profile
from elbowroom.api.objects import Node, ObjectMeta, Pod, PodSpec, PodStatus, Struct
from elbowroom.api.resources import of, spec_requests
from elbowroom.cache import Change, Reflector
from elbowroom.kubelet import actuation, admission, alarms, events, keeper, shutdown, staticpods
from elbowroom.kubelet import node as node_documents
from elbowroom.kubelet.alarms import Alarms
from elbowroom.kubelet.allocation import desired, same
from elbowroom.kubelet.checkpoint import ACTUATED, ALLOCATED, Checkpoint
from elbowroom.kubelet.config import ConfigError, KubeletConfig, parse
from elbowroom.kubelet.deadlines import Deadlines
from elbowroom.kubelet.events import Events
from elbowroom.kubelet.feed import RuntimeFeed
from elbowroom.kubelet.machinestate import SHUTTING_DOWN, MachineState, state_of
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.managers.settings import Settings
from elbowroom.kubelet.managers.state import StateError
from elbowroom.kubelet.metrics import Metrics
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.proxy import Proxy
from elbowroom.kubelet.publisher import FINAL, Publisher
from elbowroom.kubelet.resizes import PERIODIC, POD_RESIZED, POD_TERMINATED, PODS_ADDED, PODS_REMOVED, Resizes, shrinks
from elbowroom.kubelet.roster import Roster
from elbowroom.kubelet.staticpods import StaticPods
from elbowroom.kubelet.status.conditions import IN_PROGRESS, PENDING
from elbowroom.kubelet.status.document import document, rejected
from elbowroom.kubelet.status.patches import owned_types
from elbowroom.kubelet.status.shown import Eviction, ResizeCondition, Shown
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import (
    Effect,
    FolderRead,
    Input,
    Instant,
    Machine,
    Note,
    PeerConnected,
    Received,
    SetTimer,
    Step,
    TimerFired,
    seconds,
)
from elbowroom.rpc import Calls, Finished
from elbowroom.wire import Call, Code, MalformedError, decode_value
from elbowroom.wire.cri import ContainerEvent, RuntimeState, SandboxId, SandboxState

RETRY, CPUS = "kubelet/resizes", "kubelet/cpus"
RELIST_LEASES = 6
"""Every so many renewals of the Lease the runtime is listed, in case it forgot to tell."""
RUNTIME_DOWN_SECONDS = 30.0


def build(config: Mapping[str, Any], rng: random.Random) -> Machine:
    """A node's kubelet.

    ``config``: ``node`` (the Node's name; its runtime is the peer ``runtime/NODE``), ``profile`` (``Profile.as_config()``),
    ``epoch``, ``name``. All else it reads from its Node's annotations. A checkpoint that can't be trusted raises
    ``CorruptCheckpoint`` from ``start``.
    """
    made = config.get("profile")
    profile = Profile.from_config(made) if isinstance(made, Mapping) else Profile("lab")
    return Kubelet(str(config["node"]), profile, int(config.get("epoch", 0)), rng, boot=str(config.get("boot", "")))


class PodDocument(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pod with its status as it came: what the kubelet compares with what it said."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: msgspec.Raw = msgspec.Raw(b"{}")


class Kubelet:
    """See ``build``. The public attributes are what workers use (``worker.Services``)."""

    def __init__(self, name: str, profile: Profile, epoch: int, rng: random.Random, *, boot: str = "") -> None:
        self.node_name, self.profile = name, profile
        self.config = KubeletConfig(gates=profile.gates)
        self.notify_first = profile.sandbox_update_blocks
        self.allocated = Checkpoint(ALLOCATED)
        self.actuated = Checkpoint(ACTUATED)
        self.metrics = Metrics(resize_status=profile.publishes_resize_status)
        self.managers = Managers(Settings())
        self.scaling = Scaling(self, self.metrics.registry, boot)
        self._rng = rng
        self._runtime = f"runtime/{name}"
        # An answer to an earlier life's call may still come: no two lives number their calls alike.
        ids: Iterator[int] = itertools.count((rng.getrandbits(40) << 20) + 1)
        self._calls = Calls(epoch=epoch, ids=ids)
        self.alarms = Alarms()
        self.roster = Roster()
        self.workers = self.roster.workers
        self.is_held, self.leaves, self.sandboxes = self.roster.is_held, self.roster.leaves, self.roster.sandboxes
        self.known_node: Node | None = None
        of_node = {"fieldSelector": f"spec.nodeName={name}"}
        self._pods = Reflector("pods", PodDocument, query=of_node, epoch=epoch, ids=ids)
        self._nodes = Reflector("nodes", Node, query={"fieldSelector": f"metadata.name={name}"}, epoch=epoch, ids=ids)
        self._feed = RuntimeFeed(self._runtime, ids, epoch)
        self._events = Events(self, self._calls, rng, name)
        self.event, self.pull, self.tell_of_node = self._events.of_pod, self._events.pulled, self._events.of_object
        self._keeper = keeper.NodeKeeper(self, self._calls, rng)
        self._resizes = Resizes(self)
        self._publisher = Publisher(self._calls, self._retry_status)
        self._static = StaticPods(self, self._calls)
        self._deadlines = Deadlines(self)
        self._proxy = Proxy(self, self._calls, self._runtime)
        self._shutdown = shutdown.Shutdown(self)
        self.machine_state = MachineState()
        """What of the machine's state is heeded: from the boot on, and of a shutdown if there is grace for one."""
        self._out: list[Effect] = []
        self._configured = False
        self._refused_config = ""
        self._listed: dict[str, SandboxState] | None = None
        self._strays: list[str] = []
        self._runtime_heard = Instant(0)
        self._booted = False
        self._booting = False
        """Pods are taken, and admitted later, all in their order."""
        self._retry_armed: Instant | None = None
        self._waiting_room: dict[str, PodWorker] = {}
        """Critical pods that wait for their victims' end."""
        self._disk: Mapping[str, bytes] = {}
        self._ticks_from = Instant(0)
        self._pins_due = False
        """Where containers run may not be where they should: a round of the CPU manager is to come."""
        self._pins_armed = False
        self._renewals = 0

    # ------------------------------------------------------------ life

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        self._out = []
        self._disk = disk
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
        effects, told, lost = self._feed.handle(now, happened)
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
            for event in told:
                self._on_container(now, event)
        if lost:
            self._list_runtime(now)
        match happened:
            case Received(source, Call() as call):
                self._proxy.asked(now, source, call)
            case TimerFired(name):
                self._on_timer(now, name)
            case PeerConnected(peer):
                self._on_connected(now, peer)
            case FolderRead():
                self._static.read(now, happened)
                if self._booted:
                    self._static.apply(now)
        if not self._booted:
            self._boot(now)
        return self._taken(now)

    def _taken(self, now: Instant) -> list[Effect]:
        """The effects of this step, with the timers that they leave."""
        self.emit(*self.alarms.timer(now))
        if self._pins_due and not self._pins_armed and self._booted:
            self._pins_armed = True
            period = self.config.reconcile_ns
            self.emit(SetTimer(CPUS, Instant(now + period - (now - self._ticks_from) % period)))
        retry = self._resizes.retry_at if self._booted and len(self._resizes) else None
        if retry != self._retry_armed:
            self._retry_armed = retry
            self.emit(SetTimer(RETRY, None if retry is None else max(retry, now)))
        out, self._out = self._out, []
        return out

    def _on_timer(self, now: Instant, name: str) -> None:
        match name:
            case alarms.TIMER:
                for kind, whose in self.alarms.taken(now):
                    self._on_alarm(now, kind, whose)
            case _ if name == RETRY:
                self._retry_armed = None
                self._resizes.attempt_all(now, PERIODIC)
            case shutdown.TIMER:
                self._shutdown.next_band(now)
            case keeper.LEASE:
                self._renew(now)
            case keeper.NODE:
                self._keeper.update(now)
            case _ if name == CPUS:
                self._pins_armed = False
                self._reconcile_cpus(now)
            case events.TIMER:
                self._events.alarm(now)

    def _on_alarm(self, now: Instant, kind: str, whose: str) -> None:
        match kind:
            case "status":
                self.emit(*self._publisher.retry(now, whose))
            case "mirror":
                self._static.look_again(now, whose)
            case "deadline":
                self._deadlines.check(now, whose)
            case _:
                if (worker := self.roster.get(whose)) is not None:
                    worker.alarm(now)

    def _on_connected(self, now: Instant, peer: str) -> None:
        if peer == self._runtime:
            for worker in self.roster.everybody():
                worker.reconnected(now)
        elif peer == "apiserver":
            for uid in list(self.workers):
                self.emit(*self._publisher.retry(now, uid))
            self._events.retry(now)
            if self._booted:
                self._keeper.update(now)

    def _on_end(self, now: Instant, end: Finished) -> None:
        """One of our calls ended."""
        match end.context:
            case ("rt", uid, token):
                worker = self.roster.get(uid)
                self._runtime_heard = now if end.code.definite else self._runtime_heard
                if worker is not None and worker.busy and worker.token == token:
                    worker.finished(now, end)
                    self.roster.place(worker)
            case ("status" | "remove", uid):
                self.emit(*self._publisher.finished(now, end))
                worker = self.workers.get(uid)
                if worker is not None and self._publisher.owed(uid):
                    self.publish(now, worker)
            case ("event", *_):
                self._events.finished(now, end)
            case ("list",):
                self._on_list(now, end)
            case ("cgroups", source, number):
                self._proxy.listed(str(source), int(number), end)
            case ("mirror", key, what):
                self._static.finished(now, str(key), str(what), end)
            case ("node", what):
                self._keeper.finished(now, str(what), end)

    # ------------------------------------------------------------ services for workers

    @property
    def node(self) -> Node:
        """The Node; known once the kubelet is at work."""
        assert self.known_node is not None, "nothing is decided before the Node is known"
        return self.known_node

    def emit(self, *effects: Effect) -> None:
        self._out.extend(effects)

    def jitter(self) -> float:
        return self._rng.random()

    def ask(self, now: Instant, worker: PodWorker, method: str, body: Any, timeout: float) -> None:
        context = ("rt", worker.uid, worker.token)
        self.emit(*self._calls.begin(now, self._runtime, method, body, context=context, timeout=timeout))

    def tell(self, now: Instant, method: str, body: Any) -> None:
        """A call to the runtime whose end nobody waits for."""
        self.emit(*self._calls.begin(now, self._runtime, method, body, context=("told", method)))

    def _remove_stray(self, now: Instant, sandbox: str) -> None:
        """Remove a sandbox that belongs to nobody."""
        self.roster.forget(sandbox)
        self.tell(now, "RemovePodSandbox", SandboxId(sandbox))

    def wake(self, worker: PodWorker, at: Instant) -> None:
        self.alarms.put("pod", worker.uid, at)

    def over(self, now: Instant, worker: PodWorker) -> None:
        self._pod_ended(worker, worker.pod.status.phase or "Unknown")
        if worker.gone:
            self.roster.gone(worker)
            for namesake in (self.roster.by_key.get(worker.key), self._static.workers.get(worker.key)):
                if namesake is not None:
                    namesake.sync(now)
            self._static.apply(now)
            return
        self._resizes.drop(worker)
        self._shutdown.ended(now, worker.uid)
        for waiting in list(self._waiting_room.values()):
            self._admit(now, waiting)
        self._resizes.victims_ended(now)

    def publish(self, now: Instant, worker: PodWorker) -> None:
        publication = self._publisher.get(worker.uid)
        if publication is None:
            return
        owned = owned_types(
            preemption_disabled=self.profile.policy_by_condition,
            evicted=worker.eviction is not None and worker.eviction.disrupted,
        )
        remove = worker.pod.is_terminating and worker.over
        if worker.refused is not None:
            wanted: dict[str, Any] | None = rejected(worker.pod, now, *worker.refused)
        elif (publication.seen.get("phase") in FINAL and not self._runs_again(worker)) or not worker.admitted:
            wanted = None  # the last word was spoken
        else:
            wanted = self._document(self._shown(now, worker, publication.seen), worker)
        self.emit(*self._publisher.say(now, worker.uid, wanted, owned, remove=remove))

    def _document(self, shown: Shown, worker: PodWorker) -> dict[str, Any]:
        """The status, made anew only if what it is made from has changed: one step often asks for it three times."""
        if worker.told is None or worker.told[0] != shown:
            worker.told = (shown, document(shown))
        return worker.told[1]

    def _shown(self, now: Instant, worker: PodWorker, previous: Mapping[str, Any]) -> Shown:
        host_ip = "127.0.0.1"
        if worker.shown_sandbox is not None and not worker.ip:
            known = str(previous.get("podIP") or "")
            worker.ip = known or (host_ip if worker.pod.spec.host_network else self._free_ip())
        return Shown(
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
            held=self.scaling.held(worker.uid),
            unbound=worker.unbound,
            waiting=dict(worker.waiting),
            unstarted=actuation.unstarted(worker.pod, worker.shown_sandbox, now),
            over=worker.over,
            eviction=worker.eviction,
            resize_word=worker.resize_word if self.profile.publishes_resize_status else "",
            pod_level=self.config.on("InPlacePodLevelResourcesVerticalScaling"),
        )

    def _free_ip(self) -> str:
        taken = {w.ip for w in self.roster.everybody() if w.ip}
        taken |= {w.pod.status.pod_ip for w in self.workers.values() if w.pod.status.pod_ip}
        return node_documents.pod_ip(self.node_name, taken)

    @property
    def _preemption_disabled(self) -> str:
        by_condition = self.profile.policy_by_condition and self.profile.resize_preemption
        if not by_condition or self.known_node is None or not self.known_node.resize_preemption_disabled:
            return ""
        return self.node_name

    def _retry_status(self, uid: str, at: Instant) -> None:
        self.alarms.put("status", uid, at)

    def save_managers(self, cause: str) -> None:
        """Make durable what the managers gave; who runs elsewhere than it should is moved in the next round (XC-6)."""
        effects = self.managers.save(cause)
        self.emit(*effects)
        self._pins_due = self._pins_due or (bool(effects) and self.config.managers.cpu is not None)

    def _reconcile_cpus(self, now: Instant) -> None:
        """A round of the CPU manager: delays end, and who runs elsewhere than it should is moved (XC-6, SD-4)."""
        left = [worker for uid in self.scaling.tick(now) if (worker := self.workers.get(uid)) is not None]
        self._pins_due = any([worker.repin(now) for worker in list(self.workers.values())]) or self.scaling.waits
        for worker in left:
            worker.sync(now)
        if left and len(self._resizes):
            self._resizes.attempt_all(now, POD_RESIZED)

    def make_way(self, now: Instant, uids: Iterable[str]) -> None:
        """Move those pods' containers now: somebody waits for the CPUs that they are to leave."""
        for uid in uids:
            if (worker := self.workers.get(uid)) is not None:
                worker.repin(now)

    def moved(self, now: Instant) -> None:
        """A container was moved: who waited for its CPUs goes on."""
        if self.scaling.preview == "none":
            return
        for worker in list(self.workers.values()):
            if worker.waits_for_cpus:
                worker.repin(now)
                worker.sync(now)

    def _pod_ended(self, worker: PodWorker, phase: str) -> None:
        self.managers.release(worker.uid)
        self.save_managers("released")
        if worker.layer is not None and not worker.counts_for_nothing:
            worker.counts_for_nothing = True
            self.emit(Note("pod.end", {"pod": worker.key, "uid": worker.uid, "node": self.node_name, "phase": phase}))

    # ------------------------------------------------------------ boot

    def _boot(self, now: Instant) -> None:
        known = self.known_node is not None and self._configured and self._pods.synced and self._static.ready
        if not known or self._listed is None:
            return
        self.emit(Step("R2 list done"))
        self._booted = True
        self._resizes.retry_at = Instant(now + self.config.retry_first_ns)
        self._take_all(now)
        self._forget_the_gone()
        listed, self._listed = self._listed, {}
        self._adopt(now, listed)
        self.managers.keep_only(worker.uid for worker in self.workers.values() if not worker.pod.is_terminal)
        alive = [w for w in self.workers.values() if w.layer is not None and not (w.pod.is_terminal or w.pod.is_terminating)]
        self.scaling.recover(now, [worker.allocated_pod for worker in alive])
        for worker in list(self.workers.values()):
            self._readmit(now, worker)
        self.managers.keep_only(worker.uid for worker in self.workers.values() if worker.active)
        self.save_managers("re-admitted")
        self._pins_due = self.config.managers.cpu is not None
        self.emit(*self.allocated.save(), Step("R3 re-admitted"))
        for worker in self.workers.values():
            if worker.active and worker.layer is not None:  # one that was deleted before it got anything has nothing
                self._resizes.note_allocation(worker, "admitted")
            self._back_fill(now, worker)
        self._resizes.push_all(w for w in self.workers.values() if w.active and not self._resizes.is_allocated(w))
        self.emit(Step("R4 pending queue built"))
        self._keeper.update(now)
        self._renew(now)
        if self.profile.pending_pass_at_start and len(self._resizes):
            self._resizes.attempt_all(now, PODS_ADDED)
        for worker in list(self.workers.values()):
            self._go_on(now, worker)
        self._look_at_machine(now)

    def _take_all(self, now: Instant) -> None:
        known = list(self._pods.store.values())
        for found in known:
            if not staticpods.is_mirror(found.metadata):
                self._take(now, found)
        self._static.known(self._parts(found) for found in known if staticpods.is_mirror(found.metadata))
        self._booting = True
        self._static.apply(now)
        self._booting = False

        def rank(worker: PodWorker) -> tuple[bool, str, str]:
            # By creation, the node's own first; but what ran here before is not pushed out by what came in the meantime.
            meta = worker.pod.metadata
            return meta.uid not in self.allocated.entries, meta.creation_timestamp or "", meta.name

        self.roster.sort(rank)

    def _forget_the_gone(self) -> None:
        """Pods of an earlier life that the API server has no more hold nothing (RC-90)."""
        for uid in [uid for uid in self.allocated.entries if uid not in self.workers]:
            self.emit(Note("pod.end", {"pod": "", "uid": uid, "node": self.node_name, "phase": "Unknown"}))
            self.allocated.forget(uid)
        for uid in [uid for uid in self.actuated.entries if uid not in self.workers]:
            self.actuated.forget(uid)

    def _adopt(self, now: Instant, listed: Mapping[str, SandboxState]) -> None:
        """Give each pod the sandbox that the runtime has of it; what is nobody's goes."""
        for uid, sandbox in listed.items():
            worker = self.roster.get(uid)
            if worker is None:
                self._remove_stray(now, sandbox.sandbox)
            elif not worker.busy:
                worker.adopt(sandbox)
                self.roster.place(worker)
        for stray in self._strays:
            self._remove_stray(now, stray)
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
            if worker.sandbox is None or not worker.sandbox.ready:
                worker.over = True  # as an earlier life saw, which may have given away what the pod had (RC-72)
                self._pod_ended(worker, worker.pod.status.phase or "Unknown")
        else:
            self._admit(now, worker, boot=True)

    def _back_fill(self, now: Instant, worker: PodWorker) -> None:
        """RC-92: the conditions as the API server has them, their times begun anew."""
        if not worker.active:
            return
        # A life that died between the grant and telling of it left a condition that is not true any more.
        waits = not self._resizes.is_allocated(worker)
        worker.pending = self._known_condition(now, worker, PENDING) if waits else None
        worker.in_progress = self._known_condition(now, worker, IN_PROGRESS)

    def _known_condition(self, now: Instant, worker: PodWorker, kind: str) -> ResizeCondition | None:
        known = worker.pod.condition(kind)
        return None if known is None else ResizeCondition(known.reason, known.message, known.observed_generation, now, now)

    def _go_on(self, now: Instant, worker: PodWorker) -> None:
        worker.update(now, worker.pod)
        self._deadlines.watch(worker)
        if worker.over:
            self.publish(now, worker)
        else:
            worker.sync(now)
        self.roster.place(worker)

    def _look_at_machine(self, now: Instant) -> None:
        """Something may have befallen the machine."""
        before, told = self.machine_state, state_of(self.node)
        cancelled = self._shutdown.looked(now, told)
        self.machine_state = MachineState(self._shutdown.under_way, told.pressure)
        if before != self.machine_state:
            self._keeper.update(now)
        if cancelled or not set(before.pressure) <= set(told.pressure):
            self._resizes.machine_recovered(now)

    # ------------------------------------------------------------ pods

    def _on_pod(self, now: Instant, change: Change[PodDocument]) -> None:
        if change.new is not None and staticpods.is_mirror(change.new.metadata):
            self._static.seen(now, *self._parts(change.new))
            return
        if change.old is not None and staticpods.is_mirror(change.old.metadata):
            self._static.gone(now, change.key)
        known = self.roster.by_key.get(change.key)
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
        metadata = staticpods.from_api(document.metadata)
        pod = Pod(metadata=metadata, spec=spec, status=msgspec.json.decode(raw, type=PodStatus))
        return pod, msgspec.json.decode(raw)

    def _parts(self, document: PodDocument) -> tuple[ObjectMeta, PodStatus, dict[str, Any]]:
        pod, seen = self._pod_of(document)
        return pod.metadata, pod.status, seen

    def _take(self, now: Instant, document: PodDocument) -> PodWorker:
        pod, seen = self._pod_of(document)
        worker = self.roster.by_key[pod.key] = self._work_on(now, pod, seen, pod.uid)
        return worker

    def _work_on(self, now: Instant, pod: Pod, seen: dict[str, Any], target: str) -> PodWorker:
        worker = self.workers[pod.uid] = PodWorker(self, pod, now)
        self._publisher.add(pod.metadata.namespace, pod.metadata.name, worker.uid, target)
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
        pod = worker.allocated_pod
        known = boot and worker.layer is not None
        others = self._resizes.crowd(allocated_only=known).without(worker.uid)
        ran = known and self.config.on("NotEvictPodOnKubeletRestart") and worker.sandbox is not None
        refused = admission.refusal(
            pod, spec_requests(pod), others, self.node, restarted=ran, state=self.machine_state, managers=self.scaling.admit
        )
        if refused is not None and refused.lacks and admission.is_critical(pod):
            chosen = admission.victims(pod, others, refused.lacks)
            if not isinstance(chosen, admission.NoVictims):
                self._waiting_room[worker.uid] = worker
                self.evict(now, chosen, refused.lacks)
                return
            refused = admission.unexpected(chosen)
        self._waiting_room.pop(worker.uid, None)
        if refused is not None:
            self._reject(now, worker, refused)
            return
        worker.admitted = True
        if worker.layer is None:
            self.allocated.put(worker.uid, desired(worker.pod, self.config))
        if not boot:
            self.save_managers("admitted")
            self.emit(*self.allocated.save())
            self._resizes.note_allocation(worker, "admitted")
            worker.sync(now)
            self.roster.place(worker)

    def _reject(self, now: Instant, worker: PodWorker, refused: admission.Refusal) -> None:
        """It fails; what runs of it from an earlier life is ended."""
        worker.refused = (refused.reason, refused.message)
        worker.over = worker.sandbox is None
        self.event(now, worker.pod, "Warning", refused.reason, refused.message)
        facts = {"pod": worker.key, "uid": worker.uid, "reason": refused.reason, "message": refused.message}
        self.emit(Note("kl.reject", facts))
        self.managers.release(worker.uid)
        if worker.layer is not None:
            self._pod_ended(worker, "Failed")
            self.allocated.forget(worker.uid)
        if not worker.over:
            worker.end(float(worker.pod.spec.termination_grace_period_seconds))
        self.publish(now, worker)

    def _update(self, now: Instant, worker: PodWorker, document: PodDocument) -> None:
        self._change(now, worker, *self._pod_of(document, worker.pod))

    def _change(self, now: Instant, worker: PodWorker, new: Pod, seen: dict[str, Any] | None) -> None:
        """The pod is ``new``; ``seen`` is its status in the API as it came, if that is what is news."""
        old = worker.pod
        counted = worker.counts if worker.active else None
        worker.update(now, new)
        told_soon = seen is not None and self._publisher.observe(worker.uid, seen, _revision(new))
        if worker.uid in self._waiting_room:
            self._admit(now, worker)
        if worker.active and not same(desired(old, self.config), desired(new, self.config)):
            self._resizes.wished(now, worker, old)
        if new.is_terminal:
            self._pod_ended(worker, new.status.phase)
        if len(self._resizes):
            if new.is_terminal and not old.is_terminal:
                self._resizes.attempt_all(now, POD_TERMINATED)
            elif counted is not None and worker.active and shrinks(counted, worker.counts):
                self._resizes.attempt_all(now, POD_RESIZED)
        if old.spec.active_deadline_seconds != new.spec.active_deadline_seconds or old.status.start_time != new.status.start_time:
            self._deadlines.watch(worker)
        if worker.over:
            self.publish(now, worker)
        elif old.spec is not new.spec or old.metadata.annotations != new.metadata.annotations or worker.ending:
            worker.sync(now)
            told_soon = False
        if not worker.over and not told_soon:
            self.publish(now, worker)
        self.roster.place(worker)

    def _remove(self, now: Instant, worker: PodWorker) -> None:
        """The API server has it no more."""
        self.roster.dismiss(worker)
        self._pod_ended(worker, worker.pod.status.phase or "Unknown")
        self._resizes.terminated(now, worker)
        self._waiting_room.pop(worker.uid, None)
        self._publisher.forget(worker.uid)
        self.allocated.forget(worker.uid)
        self.actuated.forget(worker.uid)
        worker.leave(now)
        for waiting in list(self._waiting_room.values()):
            self._admit(now, waiting)
        if len(self._resizes):
            self._resizes.attempt_all(now, PODS_REMOVED)

    # ------------------------------------------------------------ static pods

    def run_static(self, now: Instant, pod: Pod, target: str, seen: dict[str, Any]) -> PodWorker:
        """Run a pod of the node's own; ``target`` is the uid of its mirror, if there is one."""
        worker = self._work_on(now, pod, seen, target)
        if not self._booting:
            self._admit(now, worker)
            self._go_on(now, worker)
        return worker

    def change_static(self, now: Instant, worker: PodWorker, pod: Pod, seen: dict[str, Any] | None) -> None:
        self._change(now, worker, pod, seen)

    def end_static(self, now: Instant, worker: PodWorker) -> None:
        self._remove(now, worker)

    def wake_mirror(self, key: str, at: Instant) -> None:
        self.alarms.put("mirror", key, at)

    def retarget(self, worker: PodWorker, target: str) -> None:
        """Its mirror is another one now, or there is none."""
        self._publisher.retarget(worker.uid, target)

    def _runs_again(self, worker: PodWorker) -> bool:
        """A static pod runs once more though its mirror shows the end of an earlier life."""
        return admission.is_static(worker.pod) and not worker.over

    def evict(self, now: Instant, chosen: Sequence[Pod], lacks: Sequence[admission.Lack]) -> None:
        for pod in chosen:
            victim = self.workers[pod.uid]
            if victim.eviction is not None:
                continue
            self.event(now, victim.pod, "Warning", "Preempting", admission.PREEMPTED)
            self.metrics.preemptions.labels(lacks[0].resource if lacks else "").inc()
            self.emit(Note("kl.preempt", {"pod": victim.key, "uid": victim.uid}))
            grace = float(victim.pod.spec.termination_grace_period_seconds)
            victim.end(grace, Eviction("Preempting", admission.PREEMPTED, disruption=admission.PREEMPTED_CONDITION))
            victim.sync(now)

    # ------------------------------------------------------------ the runtime

    def _list_runtime(self, now: Instant) -> None:
        self.emit(*self._calls.begin(now, self._runtime, "ListAll", context=("list",)))

    def _on_list(self, now: Instant, end: Finished) -> None:
        if end.code is not Code.OK:
            if self._booted:
                self._keeper.update(now)
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
        busy = {w.uid for w in self.roster.everybody() if w.busy}
        self._strays = [s for s in self._strays if self.roster.owner(s) is None]
        for uid, sandbox in newest.items():
            worker = self.roster.get(uid)
            if worker is None:
                self._remove_stray(now, sandbox.sandbox)
            elif uid not in busy and worker.sandbox != sandbox:
                worker.adopt(sandbox)
                self.roster.place(worker)
                worker.sync(now)
        for worker in self.roster.everybody():
            if worker.uid not in newest and worker.uid not in busy and worker.sandbox is not None:
                worker.look(now)
        for stray in self._strays:
            self._remove_stray(now, stray)
        self._strays = []
        self._keeper.update(now)

    def _on_container(self, now: Instant, event: ContainerEvent) -> None:
        worker = self.roster.owner(event.sandbox)
        if worker is not None and worker.sandbox is not None and worker.sandbox.sandbox == event.sandbox:
            worker.heard(now, event.kind, event.container)

    # ------------------------------------------------------------ the node

    def _on_node(self, now: Instant) -> None:
        found = self._nodes.store.get(self.node_name)
        if found is None:
            return  # its objects go, and soon this process
        disabled, old = self._preemption_disabled, self.known_node
        self.known_node = found
        if not self._configured and not self._refused_config:
            try:
                self.config = parse(found.metadata.annotations, self.profile, of(found.status.capacity))
                capacity = node_documents.capacity_of(found, self.config)
                self.managers = Managers.loaded(self.config.managers, capacity, self._disk, self.metrics.registry)
                self._shutdown.bands = shutdown.bands_of(found.metadata.annotations)
                self._configured = True
                self._static.watch(self.config.static_pod_path)
                self._disk, self._ticks_from = {}, now
                self.emit(*self.managers.loaded_notes())
                self.save_managers("loaded")
            except (ConfigError, StateError) as why:
                self._refused_config = str(why)
                self.emit(Note("kl.config.refused", {"node": self.node_name, "why": str(why)}))
        if not self._booted:
            return
        self._keeper.update(now)
        self._look_at_machine(now)
        if old is not None:
            self._resizes.node_changed(now, old)
        if disabled != self._preemption_disabled:
            for worker in list(self.workers.values()):
                if worker.pending is not None:
                    self.publish(now, worker)

    def not_ready(self, now: Instant) -> str:
        """Why the node is not ready; empty if it is."""
        if self._shutdown.under_way:
            return SHUTTING_DOWN
        overdue = any(worker.busy for worker in self.workers.values())
        down = overdue and now - self._runtime_heard > seconds(RUNTIME_DOWN_SECONDS)
        return "container runtime is down" if down else ""

    def _renew(self, now: Instant) -> None:
        self._keeper.renew(now)
        self._renewals += 1
        if self._renewals % RELIST_LEASES == 0 and self.workers:
            self._list_runtime(now)


def _revision(pod: Pod) -> int:
    text = pod.metadata.resource_version
    return int(text) if text.isdecimal() else 0
