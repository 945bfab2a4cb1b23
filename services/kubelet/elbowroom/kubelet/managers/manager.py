"""A kubelet's CPU, memory and topology managers together: what an admitted pod is given, and what is given back.

An attempt works on values and is thrown away if anything is refused, so a rejected pod leaves nothing behind. What is given
outlives the kubelet in two files (``state``, ``memory``), which ``save`` makes durable before a container may be created with it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from prometheus_client import CollectorRegistry

from elbowroom.api.objects import Container, Pod
from elbowroom.kubelet.admission import Refusal
from elbowroom.kubelet.checkpoint import fnv
from elbowroom.kubelet.managers import memory, partition, state
from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet
from elbowroom.kubelet.managers.hints import Hint, Hints, merge
from elbowroom.kubelet.managers.memory import MemoryState, NoMemory, Reusable, StaticMemory
from elbowroom.kubelet.managers.metrics import ManagerMetrics, Tally
from elbowroom.kubelet.managers.packing import Shortage
from elbowroom.kubelet.managers.partition import containers_of
from elbowroom.kubelet.managers.state import CPUState, StateError
from elbowroom.kubelet.managers.static import Granted, Refused, StaticPolicy, guaranteed_cpus, level_set, pod_guaranteed_cpus
from elbowroom.kubelet.managers.topology import Topology
from elbowroom.machine import Effect, Note, Persist

T = TypeVar("T")

EMPTY_POOL = "EmptyPodSharedPoolError"
TOPOLOGY_AFFINITY = "TopologyAffinityError"
NO_LOCALITY = "Resources cannot be allocated with Topology locality"
_NO_POD_LOCALITY = "Pod Scope pod with pod-level resources failed admission {}"


@dataclass(frozen=True, slots=True)
class Settings:
    """How a node's managers are configured."""

    topology: Topology = field(default_factory=lambda: Topology.regular(cores_per_numa=4))
    cpu: StaticPolicy | None = None
    """The static CPU policy; None: the policy ``none``."""
    memory: Mapping[int, Mapping[str, int]] | None = None
    """By NUMA node what of each kind of memory is reserved for the system; None: the memory policy ``None``."""
    topology_policy: str = "none"
    scope: str = "container"
    pod_level: bool = False
    """The gate PodLevelResourceManagers."""
    keeps_originals: bool = False
    """What a container is first given is remembered, so that it can be resized (XC-40)."""

    @property
    def manages(self) -> bool:
        """Does any pod of this node get anything of its own?"""
        return self.cpu is not None or self.memory is not None


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

    def _attempt(self, pod: Pod) -> "_Attempt":
        attempt = self._prepared(pod)
        if self.settings.manages:
            attempt.run()
        return attempt

    def _prepared(self, pod: Pod) -> "_Attempt":
        return _Attempt(
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


# ---------------------------------------------------------------- an admission


class _Attempt:
    """The topology manager's admission of one pod, on values of its own."""

    def __init__(
        self,
        settings: Settings,
        policy: StaticMemory | None,
        pod: Pod,
        cpus: CPUState,
        held: MemoryState,
        reusable: CPUSet,
        reusable_memory: Reusable,
    ) -> None:
        self._settings, self._policy, self._pod = settings, policy, pod
        self.cpus, self.memory = cpus, held
        self.reusable, self.reusable_memory = reusable, reusable_memory
        self.refusal: Refusal | None = None
        self.tallies: list[Tally] = [("topology_requests", ())]
        level = level_set(pod)
        self._whole = level and settings.pod_level
        self._ignored = level and not settings.pod_level
        """Pod-level resources without the gate: nothing is given (RM-1)."""

    def run(self) -> None:
        if self._settings.topology_policy == "none":
            self._containers(lambda container: Hint(None, False))
        elif self._settings.scope == "container":
            self._containers(self._container_hint)
        else:
            self._pod_scope()
        if self.refusal is not None:
            self.tallies.append(("topology_errors", ()))

    # ------------------------------------------------------------ scopes

    def _containers(self, hint_of: Callable[[Container], Hint | None]) -> None:
        for container in containers_of(self._pod):
            hint = hint_of(container)
            if hint is not None:
                self._give(container, hint)
            if self.refusal is not None:
                return

    def _container_hint(self, container: Container) -> Hint | None:
        return self._merged("container", [self._cpu_hints(container), self.memory_hints(container)])

    def _pod_scope(self) -> None:
        hint = self._merged("pod", [self._pod_cpu_hints(), self.pod_memory_hints()])
        if hint is None:
            return
        if not self._whole:
            self._containers(lambda container: hint)
            return
        self._give_pod_cpus(hint)
        if self.refusal is None:
            self._give_pod_memory(hint)

    def _merged(self, scope: str, providers: list[Hints]) -> Hint | None:
        policy = self._settings.topology_policy
        merged = merge(policy, self._settings.topology.numas, providers)
        if policy == "single-numa-node":
            self.tallies.append(("aligned" if merged.admitted else "misaligned", (scope, "numa_node")))
        if merged.admitted:
            return merged.hint
        words = NO_LOCALITY
        if self._whole:
            words = _NO_POD_LOCALITY.format(
                "under pod-scope topology manager" if scope == "pod" else "with a container-level topology manager"
            )
        self.refusal = Refusal(TOPOLOGY_AFFINITY, words)
        return None

    def _unexpected(self, message: str) -> None:
        self.refusal = Refusal("UnexpectedAdmissionError", f"Allocate failed due to {message}, which is unexpected")

    def _refuse(self, refused: Refused) -> None:
        if refused.reason:
            self.refusal = Refusal(refused.reason, refused.message)
        else:
            self._unexpected(refused.message)

    # ------------------------------------------------------------ hints

    def _cpu_hints(self, container: Container) -> Hints:
        policy = self._settings.cpu
        wanted = guaranteed_cpus(self._pod, container, pod_level_managers=self._settings.pod_level)
        if policy is None or not wanted or self._ignored:
            return None
        own = self.cpus.of(self._pod.uid, container.name)
        if own is None:
            return {"cpu": policy.hints(policy.available(self.cpus), self.reusable, wanted)}
        return {"cpu": policy.hints(own, NOBODY, wanted) if len(own) == wanted else []}

    def _pod_cpu_hints(self) -> Hints:
        policy, pod = self._settings.cpu, self._pod
        wanted = pod_guaranteed_cpus(pod, pod_level_managers=self._settings.pod_level)
        if policy is None or not wanted or self._ignored:
            return None
        if self._whole:
            if partition.cpu_pool_error(pod):
                return {"cpu": []}
            known = self.cpus.pods.get(pod.uid)
            if known is not None:
                return {"cpu": policy.hints(known, NOBODY, wanted) if len(known) == wanted else []}
            return {"cpu": policy.hints(policy.available(self.cpus), NOBODY, wanted)}
        assigned = NOBODY
        for container in containers_of(pod):
            own = self.cpus.of(pod.uid, container.name)
            if own is not None:
                if len(own) != guaranteed_cpus(pod, container, pod_level_managers=self._settings.pod_level):
                    return {"cpu": []}
                assigned |= own
        if len(assigned) == wanted:
            return {"cpu": policy.hints(assigned, NOBODY, wanted)}
        return {"cpu": policy.hints(policy.available(self.cpus), self.reusable | assigned, wanted)}

    def memory_hints(self, container: Container) -> Hints:
        policy, pod = self._policy, self._pod
        if policy is None or self._ignored or not partition.is_guaranteed(pod):
            return None
        wanted = partition.container_memory(pod, container, pod_level_managers=self._settings.pod_level)
        known = self.memory.of(pod.uid, container.name)
        if known is not None:
            return policy.regenerated(known, wanted)
        return policy.hints(self.memory, wanted, self.reusable_memory) if wanted else None

    def pod_memory_hints(self) -> Hints:
        policy, pod = self._policy, self._pod
        if policy is None or self._ignored or not partition.is_guaranteed(pod):
            return None
        wanted = partition.pod_memory(pod, pod_level_managers=self._settings.pod_level)
        if self._whole and partition.memory_pool_error(pod):
            return {name: [] for name in wanted}
        if not wanted:
            return None
        if pod.uid in self.memory.pods:
            return policy.regenerated(self.memory.pods[pod.uid], wanted)
        for container in containers_of(pod):
            known = self.memory.of(pod.uid, container.name)
            if known is not None:
                return policy.regenerated(known, wanted)
        return policy.hints(self.memory, wanted, self.reusable_memory)

    # ------------------------------------------------------------ one container

    def _give(self, container: Container, hint: Hint) -> None:
        self._give_cpus(container, hint)
        if self.refusal is None:
            self._give_memory(container, hint)

    def _give_cpus(self, container: Container, hint: Hint) -> None:
        policy, uid = self._settings.cpu, self._pod.uid
        wanted = guaranteed_cpus(self._pod, container, pod_level_managers=self._settings.pod_level)
        if policy is None or not wanted or self._ignored:
            return
        self.tallies.append(("cpu_requests", ()))
        known = self.cpus.of(uid, container.name)
        decided = policy.allocate(self.cpus, uid, container.name, wanted, hint.affinity, self.reusable)
        whole_cores = policy.options.full_pcpus_only
        if isinstance(decided, Refused):
            self.tallies += [("cpu_errors", ()), ("allocation_errors", ("cpu", "node"))]
            if whole_cores:
                self.tallies.append(("misaligned", ("container", "physical_cpu")))
            self._refuse(decided)
            return
        self.cpus = decided.state
        if whole_cores:
            self.tallies.append(("aligned", ("container", "physical_cpu")))
        if known is None:
            self._tally_cpus(decided)
            self.tallies += [("allocations", ("cpu", "node")), ("assignments", ("cpu", "node_exclusive"))]
            if self._settings.keeps_originals:
                self.cpus = self.cpus.with_original(uid, container.name, decided.cpus)
        ordinary_init = container in self._pod.spec.init_containers and not container.is_sidecar
        self.reusable = self.reusable | decided.cpus if ordinary_init else self.reusable - decided.cpus

    def _tally_cpus(self, decided: Granted) -> None:
        if self._settings.topology.aligned_to_uncore(decided.cpus):
            self.tallies.append(("aligned", ("container", "uncore_cache")))

    def _give_memory(self, container: Container, hint: Hint) -> None:
        policy, pod = self._policy, self._pod
        if policy is None or self._ignored or not partition.is_guaranteed(pod):
            return
        wanted = partition.container_memory(pod, container, pod_level_managers=self._settings.pod_level)
        if not wanted:
            return
        self.tallies.append(("memory_requests", ()))
        known = self.memory.of(pod.uid, container.name)
        inits = [c for c in pod.spec.init_containers if not c.is_sidecar]
        before = None if container in inits else [c.name for c in inits]
        if container.is_sidecar:
            before = [c.name for c in pod.spec.init_containers[: pod.spec.init_containers.index(container)] if not c.is_sidecar]
        decided = policy.allocate(self.memory, pod.uid, container.name, wanted, hint, self.reusable_memory, init=before)
        if isinstance(decided, NoMemory):
            self.tallies += [("memory_errors", ()), ("allocation_errors", ("memory", "node"))]
            self._unexpected(decided.message)
            return
        self.memory, self.reusable_memory = decided.state, decided.reusable
        if known is None:
            self.tallies += [("allocations", ("memory", "node"))] * len(wanted)
            self.tallies.append(("assignments", ("memory", "node_exclusive")))

    # ------------------------------------------------------------ a pod as a whole

    def _give_pod_cpus(self, hint: Hint) -> None:
        policy, pod = self._settings.cpu, self._pod
        wanted = pod_guaranteed_cpus(pod, pod_level_managers=True)
        if policy is None or not wanted or pod.uid in self.cpus.pods:
            return
        refused = self._pod_cpus_refused(policy, wanted, hint)
        if refused is not None:
            self.tallies += [("cpu_errors", ()), ("allocation_errors", ("cpu", "pod"))]
            self.refusal = refused

    def _pod_cpus_refused(self, policy: StaticPolicy, wanted: int, hint: Hint) -> Refusal | None:
        pod = self._pod
        empty = partition.cpu_pool_error(pod)
        if empty:
            return Refusal(EMPTY_POOL, empty)
        misaligned = policy.misaligned(self.cpus, wanted)
        if misaligned is not None:
            return Refusal(misaligned.reason, misaligned.message)
        found = policy.select(policy.available(self.cpus), wanted, hint.affinity)
        parts = found if isinstance(found, Shortage) else partition.cpu_parts(policy, pod, found)
        if isinstance(found, Shortage) or isinstance(parts, Shortage):
            short = found if isinstance(found, Shortage) else parts
            assert isinstance(short, Shortage), "one of them is"
            return Refusal("UnexpectedAdmissionError", f"Allocate failed due to {short.message}, which is unexpected")
        self.cpus = self.cpus.with_default(self.cpus.default - found).with_pod(pod.uid, found)
        self._tally_cpus(Granted(self.cpus, found))
        for container in containers_of(pod):
            self.cpus = self.cpus.with_entry(pod.uid, container.name, parts[container.name])
            own = guaranteed_cpus(pod, container, pod_level_managers=True)
            if own:
                self.tallies.append(("cpu_requests", ()))
            kind = "pod_exclusive" if own else "pod_shared"
            self.tallies += [("allocations", ("cpu", "pod")), ("assignments", ("cpu", kind))]
        return None

    def _give_pod_memory(self, hint: Hint) -> None:
        policy, pod = self._policy, self._pod
        if policy is None or not partition.is_guaranteed(pod) or pod.uid in self.memory.pods:
            return
        wanted = partition.pod_memory(pod, pod_level_managers=True)
        if not wanted:
            return
        self.tallies.append(("memory_requests", ()))
        empty = partition.memory_pool_error(pod)
        found = NoMemory(empty) if empty else policy.place(self.memory, wanted, hint)
        if isinstance(found, NoMemory):
            self.tallies += [("memory_errors", ()), ("allocation_errors", ("memory", "pod"))]
            if empty:
                self.refusal = Refusal(EMPTY_POOL, empty)
            else:
                self._unexpected(found.message)
            return
        self.memory = policy.with_pod(self.memory, pod.uid, found, wanted, partition.memory_parts(pod))
        for container in containers_of(pod):
            own = partition.container_memory(pod, container, pod_level_managers=True)
            kind = "pod_exclusive" if own else "pod_shared"
            self.tallies += [("allocations", ("memory", "pod")), ("assignments", ("memory", kind))]
