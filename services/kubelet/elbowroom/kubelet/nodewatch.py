"""What the kubelet's Node says, and what is said of it: the configuration, what befell the machine, its health and its Lease."""

from collections.abc import Mapping
from typing import Protocol

from elbowroom.api.gates import Profile
from elbowroom.api.objects import Node
from elbowroom.api.resources import of
from elbowroom.kubelet import node as node_documents
from elbowroom.kubelet import shutdown
from elbowroom.kubelet.config import ConfigError, KubeletConfig, parse
from elbowroom.kubelet.inventory import Inventory
from elbowroom.kubelet.keeper import NodeKeeper
from elbowroom.kubelet.machinestate import SHUTTING_DOWN, MachineState, state_of
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.managers.state import StateError
from elbowroom.kubelet.metrics import Metrics
from elbowroom.kubelet.podstatuses import PodStatuses
from elbowroom.kubelet.resizes import Resizes
from elbowroom.kubelet.rounds import CpuRounds
from elbowroom.kubelet.staticpods import StaticPods
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Effect, Instant, Note, seconds

RELIST_LEASES = 6
"""Every so many renewals of the Lease the runtime is listed, in case it forgot to tell."""
RUNTIME_DOWN_SECONDS = 30.0


class Services(Protocol):
    """What is needed of the kubelet; the Node, the configuration, the managers and the machine's state are also set there."""

    node_name: str
    profile: Profile
    known_node: Node | None
    config: KubeletConfig
    managers: Managers
    machine_state: MachineState
    booted: bool
    metrics: Metrics
    inventory: Inventory
    keeper: NodeKeeper
    resizes: Resizes
    rounds: CpuRounds
    shutdown: shutdown.Shutdown
    static: StaticPods
    statuses: PodStatuses
    workers: dict[str, PodWorker]

    @property
    def node(self) -> Node: ...
    def emit(self, *effects: Effect) -> None: ...


class NodeWatch:
    """``configured``: the kubelet knows what it is to be like. What its Node says of that later counts for a later life."""

    def __init__(self, kubelet: Services) -> None:
        self._kubelet = kubelet
        self.configured = False
        self._refused = False
        self._disk: Mapping[str, bytes] = {}
        self._renewals = 0

    def start(self, disk: Mapping[str, bytes]) -> None:
        """A life begins with what is on the disk; of it the managers' files are read when it is known which managers there are."""
        self._disk = disk

    def begin(self, now: Instant) -> None:
        """The kubelet is at work: the Node and its Lease are kept as they should be from now on."""
        self._kubelet.keeper.update(now)
        self.renew(now)

    # ------------------------------------------------------------ what the Node says

    def changed(self, now: Instant, found: Node) -> None:
        """The API server tells of the Node."""
        kubelet, old = self._kubelet, self._kubelet.known_node
        disabled = kubelet.statuses.preemption_disabled(old)
        kubelet.known_node = found
        if not self.configured and not self._refused:
            self._configure(now, found)
        if not kubelet.booted:
            return
        kubelet.keeper.update(now)
        self.look_at_machine(now)
        if old is not None:
            kubelet.resizes.node_changed(now, old)
        if disabled != kubelet.statuses.preemption_disabled(found):
            for worker in list(kubelet.workers.values()):
                if worker.pending is not None:
                    kubelet.statuses.publish(now, worker)

    def _configure(self, now: Instant, found: Node) -> None:
        kubelet = self._kubelet
        try:
            kubelet.config = parse(found.metadata.annotations, kubelet.profile, of(found.status.capacity))
            capacity = node_documents.capacity_of(found, kubelet.config)
            kubelet.managers = Managers.loaded(kubelet.config.managers, capacity, self._disk, kubelet.metrics.registry)
            kubelet.shutdown.bands = shutdown.bands_of(found.metadata.annotations)
            self.configured = True
            kubelet.static.watch(kubelet.config.static_pod_path)
            self._disk = {}
            kubelet.rounds.count_from(now)
            kubelet.emit(*kubelet.managers.loaded_notes())
            kubelet.rounds.save("loaded")
        except (ConfigError, StateError) as why:
            self._refused = True
            kubelet.emit(Note("kl.config.refused", {"node": kubelet.node_name, "why": str(why)}))

    def look_at_machine(self, now: Instant) -> None:
        """Something may have befallen the machine."""
        kubelet = self._kubelet
        before, told = kubelet.machine_state, state_of(kubelet.node)
        cancelled = kubelet.shutdown.looked(now, told)
        kubelet.machine_state = MachineState(kubelet.shutdown.under_way, told.pressure)
        if before != kubelet.machine_state:
            kubelet.keeper.update(now)
        if cancelled or not set(before.pressure) <= set(told.pressure):
            kubelet.resizes.machine_recovered(now)

    # ------------------------------------------------------------ what is said of it

    def not_ready(self, now: Instant) -> str:
        """Why the node is not ready; empty if it is."""
        if self._kubelet.shutdown.under_way:
            return SHUTTING_DOWN
        overdue = any(worker.busy for worker in self._kubelet.workers.values())
        down = overdue and now - self._kubelet.inventory.heard_at > seconds(RUNTIME_DOWN_SECONDS)
        return "container runtime is down" if down else ""

    def renew(self, now: Instant) -> None:
        """Renew the Lease; now and then list the runtime."""
        self._kubelet.keeper.renew(now)
        self._renewals += 1
        if self._renewals % RELIST_LEASES == 0 and self._kubelet.workers:
            self._kubelet.inventory.ask(now)
