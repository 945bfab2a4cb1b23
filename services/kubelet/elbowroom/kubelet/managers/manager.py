"""A kubelet's CPU, memory and topology managers together: what an admitted pod is given, and what is given back.

What is given outlives the kubelet in two files (``state``, ``memory``), which ``save`` makes durable before a container may be
created with it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry

from elbowroom.api.objects import Pod
from elbowroom.kubelet.admission import Refusal
from elbowroom.kubelet.checkpoint import fnv
from elbowroom.kubelet.managers import memory, partition, state
from elbowroom.kubelet.managers.attempt import Attempt
from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet
from elbowroom.kubelet.managers.hints import Hints
from elbowroom.kubelet.managers.memory import MemoryState, Reusable, StaticMemory
from elbowroom.kubelet.managers.metrics import ManagerMetrics
from elbowroom.kubelet.managers.partition import containers_of
from elbowroom.kubelet.managers.settings import Settings
from elbowroom.kubelet.managers.state import CPUState, StateError
from elbowroom.kubelet.managers.static import guaranteed_cpus
from elbowroom.machine import Effect, Note, Persist

T = TypeVar("T")


class Managers:
    """One kubelet's. ``cpus`` and ``memory`` are what is given now."""

    def __init__(
        self,
        settings: Settings,
        cpus: CPUState = CPUState(),
        held: MemoryState = MemoryState(),
        policy: StaticMemory | None = None,
        metrics: ManagerMetrics | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = metrics
        self.cpus, self.memory = cpus, held
        self._policy = policy
        self._reusable: dict[str, CPUSet] = {}
        self._reusable_memory: dict[str, Reusable] = {}
        self._durable: dict[str, bytes] = {}
        self._saved: tuple[CPUState, MemoryState] | None = None
        self._told: CPUState | None = None

    @classmethod
    def loaded(
        cls, settings: Settings, capacity: Mapping[str, int], disk: Mapping[str, bytes], registry: CollectorRegistry
    ) -> "Managers":
        """As an earlier life left them. ``capacity`` is the node's, ``registry`` is where the metrics go. ``StateError``, in
        upstream's words, if the files are damaged, another policy's or another machine's: then the kubelet does not start."""
        policy = _memory_policy(settings, capacity)
        cpus, held = CPUState(), MemoryState()
        raw = disk.get(state.CPU_STATE)
        if raw is not None:
            cpus = _restored(lambda: state.decode(raw, "static" if settings.cpu else "none"), state.CPU_STATE, "CPU")
        if settings.cpu is not None:
            cpus = settings.cpu.checked(cpus)
        raw_memory = disk.get(memory.MEMORY_STATE)
        if raw_memory is not None:
            held = _restored(lambda: memory.decode(raw_memory, "Static" if policy else "None"), memory.MEMORY_STATE, "memory")
        if policy is not None:
            held = policy.checked(held)
        made = cls(settings, cpus, held, policy, ManagerMetrics(registry, pod_level=settings.pod_level))
        made._durable = {name: disk[name] for name in (state.CPU_STATE, memory.MEMORY_STATE) if name in disk}
        return made

    def save(self, cause: str) -> list[Effect]:
        """Make durable what was given, if it differs from what is, and tell of it."""
        if self._saved is not None and self._saved[0] is self.cpus and self._saved[1] is self.memory:
            return []
        self._saved = (self.cpus, self.memory)
        files = {
            state.CPU_STATE: state.encode(self.cpus, "static" if self.settings.cpu else "none"),
            memory.MEMORY_STATE: memory.encode(self.memory, "Static" if self._policy else "None"),
        }
        effects: list[Effect] = []
        for name, raw in files.items():
            if self._durable.get(name) != raw:
                self._durable[name] = raw
                facts = {"key": name, "sha": f"{fnv(raw):08x}"}
                effects += [Note("ckpt.tmp", facts), Persist(name, raw), Note("ckpt.dirsync", facts)]
        if self.settings.cpu is not None and self._told != self.cpus:
            self._told = self.cpus
            effects.append(self._note(cause))
        return effects

    def loaded_notes(self) -> list[Note]:
        """What this life begins with."""
        return [Note("ckpt.loaded", {"key": name, "sha": f"{fnv(raw):08x}"}) for name, raw in self._durable.items()]

    def _note(self, cause: str) -> Note:
        assert self.settings.cpu is not None, "only the static policy gives CPUs away"
        cpus = self.cpus

        def shown(entries: Mapping[str, Mapping[str, CPUSet]]) -> dict[str, dict[str, str]]:
            return {uid: {name: str(given) for name, given in entry.items()} for uid, entry in entries.items()}

        facts = {
            "cause": cause,
            "all": str(self.settings.topology.all),
            "reserved": str(self.settings.cpu.reserved),
            "strict": self.settings.cpu.options.strict_cpu_reservation,
            "default": str(cpus.default),
            "entries": shown(cpus.entries),
            "pods": {uid: str(given) for uid, given in cpus.pods.items()},
            "originals": shown(cpus.originals),
        }
        return Note("kl.cpus", facts)

    # ------------------------------------------------------------ giving

    def admit(self, pod: Pod) -> Refusal | None:
        """Give the pod what it is to have; None if it has it. What it has already stays."""
        attempt = self._attempt(pod)
        if self.metrics is not None:
            self.metrics.duration.observe(0)
            self.metrics.count(attempt.tallies)
        if attempt.refusal is None:
            self.cpus, self.memory = attempt.cpus, attempt.memory
            # Only the pod that is being admitted takes over what its init containers leave.
            self._reusable, self._reusable_memory = {pod.uid: attempt.reusable}, {pod.uid: attempt.reusable_memory}
        return attempt.refusal

    def objection(self, pod: Pod) -> Refusal | None:
        """Why the managers would refuse to have ``pod`` as it is given here; nothing is changed. For a resize (XC-31, RM-29)."""
        return self._attempt(pod).refusal

    def memory_hints(self, pod: Pod) -> Mapping[str, Hints]:
        """Where the memory that each container of the pod is to have could be; under ``""`` that of the pod as a whole."""
        attempt = self._prepared(pod)
        return {"": attempt.pod_memory_hints(), **{c.name: attempt.memory_hints(c) for c in containers_of(pod)}}

    def _attempt(self, pod: Pod) -> Attempt:
        attempt = self._prepared(pod)
        if self.settings.manages:
            attempt.run()
        return attempt

    def _prepared(self, pod: Pod) -> Attempt:
        return Attempt(
            self.settings,
            self._policy,
            pod,
            self.cpus,
            self.memory,
            self._reusable.get(pod.uid, NOBODY),
            self._reusable_memory.get(pod.uid, {}),
        )

    # ------------------------------------------------------------ giving back

    def release(self, uid: str) -> None:
        """The pod holds nothing any more."""
        for container in list(self.cpus.entries.get(uid, {})):
            if self.settings.cpu is not None:
                self.cpus = self.settings.cpu.released(self.cpus, uid, container)
        for container in list(self.memory.entries.get(uid, {})):
            if self._policy is not None:
                self.memory = self._policy.released(self.memory, uid, container)
        self._reusable.pop(uid, None)
        self._reusable_memory.pop(uid, None)

    def keep_only(self, uids: Iterable[str]) -> None:
        """Of all others what an earlier life gave is given back."""
        kept = set(uids)
        for uid in sorted({*self.cpus.entries, *self.memory.entries} - kept):
            self.release(uid)

    def started(self, pod: Pod, container: str) -> None:
        """A container starts: of the ordinary init containers before it the memory that nobody took over is free again."""
        if self._policy is None:
            return
        for earlier in pod.spec.init_containers:
            if earlier.name == container:
                return
            if not earlier.is_sidecar:
                self.memory = self._policy.released(self.memory, pod.uid, earlier.name)

    # ------------------------------------------------------------ what is given

    def cpuset(self, uid: str, container: str) -> str:
        """Where the container runs, as a Linux list; empty: anywhere."""
        return str(self.cpus.effective(uid, container)) if self.settings.cpu is not None else ""

    def mems(self, uid: str, container: str) -> str:
        """The NUMA nodes that its memory comes from, as a Linux list; empty: any."""
        nodes = {node for block in self.memory.of(uid, container) or () for node in block.numa_affinity}
        return str(CPUSet.from_iterable(nodes))

    def unbound(self, pod: Pod) -> frozenset[str]:
        """RM-21: the containers that have CPUs of their own, and so no CPU quota."""
        entries = self.cpus.entries.get(pod.uid)
        if not entries:
            return frozenset()
        level = pod.uid in self.cpus.pods
        return frozenset(
            c.name
            for c in containers_of(pod)
            if c.name in entries and (not level or guaranteed_cpus(pod, c, pod_level_managers=True))
        )

    def exposed(self, pod: Pod, container: str) -> tuple[list[int], list[dict[str, object]]]:
        """RM-33: the container's own CPUs and memory, as PodResources lists them; nothing of what it shares."""
        own = self.cpus.of(pod.uid, container) if container in self.unbound(pod) else None
        blocks = self.memory.of(pod.uid, container) or ()
        if pod.uid in self.memory.pods:
            mine = next(c for c in containers_of(pod) if c.name == container)
            if not partition.container_memory(pod, mine, pod_level_managers=True):
                blocks = ()
        return list(own or ()), _listed(blocks)

    def exposed_pod(self, uid: str) -> tuple[list[int], list[dict[str, object]]]:
        """The pod's own CPUs and memory, of which its containers have parts."""
        return list(self.cpus.pods.get(uid, NOBODY)), _listed(self.memory.pods.get(uid, ()))

    def gauge(self) -> None:
        """Set the gauges to what is given now."""
        if self.settings.cpu is None or self.metrics is None:
            return
        topology, cpus = self.settings.topology, self.cpus
        given = CPUSet(cpus.assigned.bits | sum_of(cpus.pods.values()).bits)
        self.metrics.shared_pool.set(1000 * len(self.settings.cpu.available(cpus)))
        self.metrics.exclusive.set(len(given))
        for node in topology.numas:
            self.metrics.per_numa.labels(str(node)).set(len(given & topology.in_numas(1 << node)))


def sum_of(sets: Iterable[CPUSet]) -> CPUSet:
    """The union."""
    bits = 0
    for one in sets:
        bits |= one.bits
    return CPUSet(bits)


def _listed(blocks: Iterable[memory.Block]) -> list[dict[str, object]]:
    return [
        {"memoryType": block.type, "size": block.size, "topology": {"nodes": [{"ID": node} for node in block.numa_affinity]}}
        for block in blocks
    ]


def _memory_policy(settings: Settings, capacity: Mapping[str, int]) -> StaticMemory | None:
    """Memory is split evenly over the NUMA nodes; huge pages are taken out of the ordinary memory."""
    if settings.memory is None:
        return None
    nodes = list(settings.topology.numas)
    huge = sorted(name for name in capacity if name.startswith("hugepages-"))
    made: dict[int, dict[str, tuple[int, int]]] = {}
    for node in nodes:
        reserved = settings.memory.get(node, {})
        tables = {name: (capacity[name] // len(nodes), reserved.get(name, 0)) for name in (*huge, "memory") if name in capacity}
        made[node] = tables
    return StaticMemory(made)


def _restored(read: Callable[[], T], file: str, manager: str) -> T:
    try:
        return read()
    except StateError as why:
        raise StateError(
            f"could not restore state from checkpoint: {why.why}, please drain this node and delete the {manager} manager "
            f'checkpoint file "/var/lib/kubelet/{file}" before restarting Kubelet'
        ) from why
