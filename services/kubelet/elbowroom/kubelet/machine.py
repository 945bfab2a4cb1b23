"""Routing: what is heard goes to the decision modules, what they decide becomes effects.

A life begins with the checkpoints (R1), waits until it knows its Node, its pods (R2) and what the runtime runs, takes the pods back
in the order of their creation with what they were allocated (R3), queues the resizes that wait (R4), and only then judges anything.
"""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elbowroom.api.gates import Profile
from elbowroom.api.objects import Node
from elbowroom.cache import Reflector
from elbowroom.kubelet import alarms, boot, events, keeper, rounds, shutdown
from elbowroom.kubelet.alarms import Alarms
from elbowroom.kubelet.checkpoint import ACTUATED, ALLOCATED, Checkpoint
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.deadlines import Deadlines
from elbowroom.kubelet.doorkeeper import Doorkeeper
from elbowroom.kubelet.events import Events
from elbowroom.kubelet.feed import RuntimeFeed
from elbowroom.kubelet.intake import Intake, PodDocument
from elbowroom.kubelet.inventory import Inventory
from elbowroom.kubelet.machinestate import MachineState
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.managers.settings import Settings
from elbowroom.kubelet.metrics import Metrics
from elbowroom.kubelet.nodewatch import NodeWatch
from elbowroom.kubelet.podstatuses import PodStatuses
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.proxy import Proxy
from elbowroom.kubelet.resizes import PERIODIC, Resizes
from elbowroom.kubelet.roster import Roster
from elbowroom.kubelet.rounds import CpuRounds
from elbowroom.kubelet.staticpods import StaticPods
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import (
    Effect,
    FolderRead,
    Input,
    Instant,
    Machine,
    PeerConnected,
    Received,
    SetTimer,
    Step,
    TimerFired,
)
from elbowroom.rpc import Calls, Finished
from elbowroom.wire import Call

RETRY = "kubelet/resizes"


def build(config: Mapping[str, Any], rng: random.Random) -> Machine:
    """A node's kubelet.

    ``config``: ``node`` (the Node's name; its runtime is the peer ``runtime/NODE``), ``profile`` (``Profile.as_config()``),
    ``epoch``, ``name``. All else it reads from its Node's annotations. A checkpoint that can't be trusted raises
    ``CorruptCheckpoint`` from ``start``.
    """
    made = config.get("profile")
    profile = Profile.from_config(made) if isinstance(made, Mapping) else Profile("lab")
    return Kubelet(str(config["node"]), profile, int(config.get("epoch", 0)), rng, boot=str(config.get("boot", "")))


class Kubelet:
    """See ``build``. The public attributes are what its parts use of it and of one another: each says in its ``Services`` which."""

    def __init__(self, name: str, profile: Profile, epoch: int, rng: random.Random, *, boot: str = "") -> None:
        self._rng = rng
        self._runtime = f"runtime/{name}"
        # An answer to an earlier life's call may still come: no two lives number their calls alike.
        ids: Iterator[int] = itertools.count((rng.getrandbits(40) << 20) + 1)
        self._calls = Calls(epoch=epoch, ids=ids)
        of_node = {"fieldSelector": f"spec.nodeName={name}"}
        self._pods = Reflector("pods", PodDocument, query=of_node, epoch=epoch, ids=ids)
        self._nodes = Reflector("nodes", Node, query={"fieldSelector": f"metadata.name={name}"}, epoch=epoch, ids=ids)
        self._feed = RuntimeFeed(self._runtime, ids, epoch)
        self._out: list[Effect] = []
        self._retry_armed: Instant | None = None

        # ---- what is known
        self.node_name, self.profile = name, profile
        self.known_node: Node | None = None
        self.config = KubeletConfig(gates=profile.gates)
        self.notify_first = profile.sandbox_update_blocks
        self.machine_state = MachineState()
        """What of the machine's state is heeded: from the boot on, and of a shutdown if there is grace for one."""
        self.booted = False
        """Pods are taken and judged: the Node, the pods, the manifests and the runtime are known."""
        self.allocated = Checkpoint(ALLOCATED)
        self.actuated = Checkpoint(ACTUATED)
        self.metrics = Metrics(resize_status=profile.publishes_resize_status)
        self.managers = Managers(Settings())
        self.alarms = Alarms()
        self.roster = Roster()
        self.workers = self.roster.workers

        # ---- its parts
        self.events = Events(self, self._calls, rng, name)
        self.keeper = keeper.NodeKeeper(self, self._calls, rng)
        self.scaling = Scaling(self, self.metrics.registry, boot)
        self.resizes = Resizes(self)
        self.rounds = CpuRounds(self)
        self.statuses = PodStatuses(self, self._calls)
        self.doorkeeper = Doorkeeper(self)
        self.deadlines = Deadlines(self)
        self.shutdown = shutdown.Shutdown(self)
        self.static = StaticPods(self, self._calls)
        self.intake = Intake(self, lambda pod, now: PodWorker(self, pod, now))
        self.inventory = Inventory(self, self._calls, self._runtime)
        self.node_watch = NodeWatch(self)
        self._proxy = Proxy(self, self._calls, self._runtime)

        # ---- what they do for one another, under the names by which they ask for it
        self.event, self.pull, self.tell_of_node = self.events.of_pod, self.events.pulled, self.events.of_object
        self.is_held, self.leaves, self.sandboxes = self.roster.is_held, self.roster.leaves, self.roster.sandboxes
        self.save_managers, self.make_way, self.moved = self.rounds.save, self.rounds.make_way, self.rounds.moved
        self.publish, self.retarget = self.statuses.publish, self.statuses.retarget
        self.evict, self.over, self.not_ready = self.doorkeeper.evict, self.intake.over, self.node_watch.not_ready
        self.run_static, self.change_static, self.end_static = self.intake.run_static, self.intake.change, self.intake.remove

    # ------------------------------------------------------------ life

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        self._out = []
        self.node_watch.start(disk)
        self.allocated = Checkpoint.loaded(ALLOCATED, disk, ("K4", "K5", "K6", "K7"))
        self.actuated = Checkpoint.loaded(ACTUATED, disk)
        self.emit(Step("R1 checkpoint read"), self.allocated.loaded_note(), self.actuated.loaded_note())
        self.emit(*self._pods.open(now), *self._nodes.open(now), *self._feed.open(now))
        self.inventory.ask(now)
        return self._taken(now)

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        self._out = []
        of_pods, pods = self._pods.handle(now, happened)
        of_nodes, nodes = self._nodes.handle(now, happened)
        of_feed, told, lost = self._feed.handle(now, happened)
        of_calls, ends = self._calls.finished(now, happened)
        self._out += (*of_pods, *of_nodes, *of_feed, *of_calls)
        for end in ends:
            self._on_end(now, end)
        found = self._nodes.store.get(self.node_name)
        if nodes and found is not None:  # once it is gone its objects go, and soon this process
            self.node_watch.changed(now, found)
        if self.booted:
            for change in pods:
                self.intake.told(now, change)
            for event in told:
                self.inventory.heard(now, event)
        if lost:
            self.inventory.ask(now)
        match happened:
            case Received(source, Call() as call):
                self._proxy.asked(now, source, call)
            case TimerFired(name):
                self._on_timer(now, name)
            case PeerConnected(peer):
                self._on_connected(now, peer)
            case FolderRead():
                self.static.read(now, happened)
                if self.booted:
                    self.static.apply(now)
        if not self.booted and self._knows_all:
            self.booted = True
            boot.begin(now, self, list(self._pods.store.values()))
        return self._taken(now)

    @property
    def _knows_all(self) -> bool:
        """Is all known that a life needs to begin?"""
        return self.node_watch.configured and self._pods.synced and self.static.ready and self.inventory.known

    def _taken(self, now: Instant) -> list[Effect]:
        """The effects of this step, with the timers that they leave."""
        self.emit(*self.alarms.timer(now))
        if self.booted:
            self.emit(*self.rounds.timer(now))
        retry = self.resizes.retry_at if self.booted and len(self.resizes) else None
        if retry != self._retry_armed:
            self._retry_armed = retry
            self.emit(SetTimer(RETRY, None if retry is None else max(retry, now)))
        out, self._out = self._out, []
        return out

    # ------------------------------------------------------------ who is meant

    def _on_timer(self, now: Instant, name: str) -> None:
        match name:
            case alarms.TIMER:
                for kind, whose in self.alarms.taken(now):
                    self._on_alarm(now, kind, whose)
            case _ if name == RETRY:
                self._retry_armed = None
                self.resizes.attempt_all(now, PERIODIC)
            case shutdown.TIMER:
                self.shutdown.next_band(now)
            case keeper.LEASE:
                self.node_watch.renew(now)
            case keeper.NODE:
                self.keeper.update(now)
            case rounds.TIMER:
                self.rounds.come(now)
            case events.TIMER:
                self.events.alarm(now)

    def _on_alarm(self, now: Instant, kind: str, whose: str) -> None:
        match kind:
            case "status":
                self.statuses.retry(now, whose)
            case "mirror":
                self.static.look_again(now, whose)
            case "deadline":
                self.deadlines.check(now, whose)
            case _:
                if (worker := self.roster.get(whose)) is not None:
                    worker.alarm(now)

    def _on_connected(self, now: Instant, peer: str) -> None:
        if peer == self._runtime:
            for worker in self.roster.everybody():
                worker.reconnected(now)
        elif peer == "apiserver":
            for uid in list(self.workers):
                self.statuses.retry(now, uid)
            self.events.retry(now)
            if self.booted:
                self.keeper.update(now)

    def _on_end(self, now: Instant, end: Finished) -> None:
        """One of our calls ended."""
        match end.context:
            case ("rt", uid, token):
                if end.code.definite:
                    self.inventory.heard_at = now
                worker = self.roster.get(uid)
                if worker is not None and worker.busy and worker.token == token:
                    worker.finished(now, end)
                    self.roster.place(worker)
            case ("status" | "remove", _):
                self.statuses.finished(now, end)
            case ("event", *_):
                self.events.finished(now, end)
            case ("list",):
                self.inventory.listed(now, end)
            case ("cgroups", source, number):
                self._proxy.listed(str(source), int(number), end)
            case ("mirror", key, what):
                self.static.finished(now, str(key), str(what), end)
            case ("node", what):
                self.keeper.finished(now, str(what), end)

    # ------------------------------------------------------------ services

    @property
    def node(self) -> Node:
        """The Node; known once the kubelet is at work."""
        assert self.known_node is not None, "nothing is decided before the Node is known"
        return self.known_node

    def emit(self, *effects: Effect) -> None:
        """Effects of this step, behind those that there are."""
        self._out.extend(effects)

    def jitter(self) -> float:
        """From 0 up to 1, by chance."""
        return self._rng.random()

    def wake(self, worker: PodWorker, at: Instant) -> None:
        """Let the worker go on at that time."""
        self.alarms.put("pod", worker.uid, at)

    def ask(self, now: Instant, worker: PodWorker, method: str, body: Any, timeout: float) -> None:
        """The worker's call to the runtime; its end is the worker's."""
        context = ("rt", worker.uid, worker.token)
        self.emit(*self._calls.begin(now, self._runtime, method, body, context=context, timeout=timeout))

    def tell(self, now: Instant, method: str, body: Any) -> None:
        """A call to the runtime whose end nobody waits for."""
        self.emit(*self._calls.begin(now, self._runtime, method, body, context=("told", method)))
