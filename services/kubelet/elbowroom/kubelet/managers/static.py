"""The static CPU policy: who is given CPUs of their own, and which (XC-2 to XC-9, XC-14, XC-17, RM-3, RM-7).

Pure: a policy is a value made of the machine, the reserved CPUs and the options; its decisions take a ``CPUState`` and give a new
one, or say why not. What it keeps of CPUs that init containers leave behind is an argument (``reusable``).
"""

import itertools
from dataclasses import dataclass, field

from elbowroom.api.objects import Container, Pod, ResourceRequirements
from elbowroom.api.resources import of, qos_class
from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet
from elbowroom.kubelet.managers.hints import Hint
from elbowroom.kubelet.managers.options import StaticOptions
from elbowroom.kubelet.managers.packing import Shortage, take_by_topology
from elbowroom.kubelet.managers.state import CPUState, StateError
from elbowroom.kubelet.managers.topology import Topology

SMT_ALIGNMENT = "SMTAlignmentError"


@dataclass(frozen=True, slots=True)
class Granted:
    """The CPUs, and the state in which they are given."""

    state: CPUState
    cpus: CPUSet


@dataclass(frozen=True, slots=True)
class Refused:
    """Not possible. ``reason`` is that of the failed admission; empty where upstream has no own name for it."""

    message: str
    reason: str = ""


@dataclass(frozen=True)
class StaticPolicy:
    """See the module."""

    topology: Topology
    reserved: CPUSet
    options: StaticOptions = field(default_factory=StaticOptions)

    # ------------------------------------------------------------ pools

    @property
    def initial(self) -> CPUState:
        """A node on which nobody has CPUs of their own."""
        every = self.topology.all
        return CPUState(default=every - self.reserved if self.options.strict_cpu_reservation else every)

    @property
    def allocatable(self) -> CPUSet:
        """All that can ever be given away."""
        return self.topology.all - self.reserved

    def available(self, state: CPUState) -> CPUSet:
        """What can be given away now (XC-5)."""
        return state.default - self.reserved

    def checked(self, state: CPUState) -> CPUState:
        """A state read from a file, if this machine can have it (XC-7); ``StateError`` otherwise."""
        default, reserved = state.default, self.reserved
        if not default:
            if state.entries:
                raise StateError("default cpuset cannot be empty")
            return self.initial
        if self.options.strict_cpu_reservation:
            if reserved & default:
                raise StateError(
                    f'some of strictly reserved cpus: "{reserved & default}" are present in defaultCpuSet: "{default}"'
                )
        elif not reserved <= default:
            raise StateError(f'not all reserved cpus: "{reserved}" are present in defaultCpuSet: "{default}"')
        known = default
        for uid, entry in state.entries.items():
            for name, cpus in entry.items():
                if cpus & default:
                    raise StateError(f'pod: {uid}, container: {name} cpuset: "{cpus}" overlaps with default cpuset "{default}"')
                known |= cpus
        for cpus in state.pods.values():
            known |= cpus
        every = self.initial.default
        if known != every:
            raise StateError(f'current set of available CPUs "{every}" doesn\'t match with CPUs in state "{known}"')
        return state

    # ------------------------------------------------------------ giving

    def select(self, pool: CPUSet, count: int, affinity: int | None = None, keep: CPUSet = NOBODY) -> CPUSet | Shortage:
        """``count`` CPUs: all of ``keep``, the rest from ``pool``, first from the NUMA nodes of ``affinity`` (XC-14, XC-49)."""
        found = keep
        if affinity is not None:
            near = self._near(affinity, pool - keep)
            first = take_by_topology(self.topology, near, min(count, len(keep) + len(near)), self.options, keep)
            if isinstance(first, Shortage):
                return first
            found = first
        rest = take_by_topology(self.topology, pool - found, count - len(found) + len(keep), self.options, keep)
        return rest if isinstance(rest, Shortage) else found | rest

    def allocate(
        self, state: CPUState, uid: str, container: str, count: int, affinity: int | None = None, reusable: CPUSet = NOBODY
    ) -> Granted | Refused:
        """A set of its own for a container. One that it has already stays, whatever its size (XC-30).

        Upstream looks for whole cores first (XC-17), so a kubelet that comes back turns away a container that holds most of them.
        """
        misaligned = self.misaligned(state, count)
        if misaligned is not None:
            return misaligned
        own = state.of(uid, container)
        if own is not None:
            return Granted(state, own)
        found = self.select(self.available(state) | reusable, count, affinity)
        if isinstance(found, Shortage):
            return Refused(found.message)
        return Granted(state.with_default(state.default - found).with_entry(uid, container, found), found)

    def resized(
        self, state: CPUState, uid: str, container: str, count: int, original: CPUSet, affinity: int | None = None
    ) -> Granted | Refused:
        """Another size for a container's set (XC-41, XC-49): a larger one holds all that it has, a smaller one lies within that and
        holds ``original``. The new set is in force at once; what it leaves is shared again."""
        current = state.of(uid, container)
        if current is None:
            return Refused("container has no exclusive CPUs to resize")
        grows = count >= len(current)
        misaligned = self.misaligned(state, count, current)
        if misaligned is not None:
            return misaligned
        if not original <= current:
            return Refused(f"requested CPUs to be retained {original} are not a subset of reusable CPUs {current}")
        pool, keep = (self.available(state), current) if grows else (current, original)
        found = self.select(pool, count, affinity, keep)
        if isinstance(found, Shortage):
            return Refused(found.message)
        default = (state.default | current) - found
        return Granted(state.with_default(default).with_entry(uid, container, found), found)

    def released(self, state: CPUState, uid: str, container: str) -> CPUState:
        """Without the container. What no sibling uses is shared again; a pod's own set is kept until its last container is gone
        (XC-6, XC-8, RM-23)."""
        own = state.of(uid, container)
        if own is None:
            return state
        after = state.without_entry(uid, container)
        whole = state.pods.get(uid)
        if whole is None:
            return after.with_default(state.default | own - state.siblings(uid, container))
        if after.entries.get(uid):
            return after
        return after.without_pod(uid).with_default(state.default | whole)

    def misaligned(self, state: CPUState, count: int, own: CPUSet = NOBODY) -> Refused | None:
        """XC-17: why whole cores can't be given, if that is asked for. ``own`` is what the container has already (XC-55)."""
        if not self.options.full_pcpus_only:
            return None
        threads = self.topology.threads_per_core
        if count % threads:
            return Refused(f"SMT Alignment Error: requested {count} cpus not multiple cpus per core = {threads}", SMT_ALIGNMENT)
        free = len((state.default | own) - self.topology.whole_cores(self.reserved))
        if count > free:
            return Refused(
                f"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = {free}, requested CPUs = {count}, "
                f"CPUs per core = {threads}",
                SMT_ALIGNMENT,
            )
        return None

    def _near(self, affinity: int, cpus: CPUSet) -> CPUSet:
        t = self.topology
        return cpus & (t.in_sockets_of(affinity) if self.options.align_by_socket else t.in_numas(affinity))

    # ------------------------------------------------------------ hints

    def hints(self, available: CPUSet, reusable: CPUSet, count: int) -> list[Hint]:
        """RM-7: the NUMA masks that hold all of ``reusable`` and ``count`` CPUs; the narrowest by capacity are preferred."""
        t = self.topology
        nodes = list(t.numas)
        owned, free = t.numas_of(reusable), available - reusable
        narrowest, found = len(nodes), []
        for size in range(1, len(nodes) + 1):
            for combo in itertools.combinations(nodes, size):
                mask = sum(1 << node for node in combo)
                inside = t.in_numas(mask)
                if size < narrowest and len(inside) >= count:
                    narrowest = size
                if not owned & ~mask and len(reusable) + len(free & inside) >= count:
                    found.append(mask)
        return [Hint(mask, mask.bit_count() == narrowest or self._socket_aligned(mask, narrowest)) for mask in found]

    def _socket_aligned(self, mask: int, narrowest: int) -> bool:
        if not self.options.align_by_socket:
            return False
        per_socket = len(self.topology.numas) // len(self.topology.sockets)
        return per_socket > 0 and len(self.topology.sockets_of_numas(mask)) == -(-narrowest // per_socket)


def reserved_of(topology: Topology, explicit: CPUSet, milli: int, options: StaticOptions) -> CPUSet | Refused:
    """XC-2: the CPUs that nobody is given: those named, or as many as the reservation needs, chosen like any others."""
    if explicit:
        if not explicit <= topology.all:
            return Refused(
                f"[cpumanager] unable to build the reserved physical CPUs from the reserved set: {explicit - topology.all}"
            )
        return explicit
    count = -(-milli // 1000)
    if count == 0:
        return Refused("[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero")
    found = take_by_topology(topology, topology.all, count, options)
    if isinstance(found, Shortage):
        return Refused(f"[cpumanager] unable to reserve the required amount of CPUs (size of  did not equal {count})")
    return found


# ---------------------------------------------------------------- who is asked for


def level_set(pod: Pod) -> bool:
    """Does the pod have pod-level resources (PL-2)?"""
    level = pod.spec.resources
    return level is not None and any(_supported(name) for part in (level.requests, level.limits) for name in part or {})


def _supported(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def self_guaranteed(resources: ResourceRequirements) -> bool:
    """Are the container's own cpu and memory requests set and equal to its limits?"""
    requests, limits = of(resources.requests), of(resources.limits)
    return all(requests.get(name, 0) > 0 and requests.get(name) == limits.get(name) for name in ("cpu", "memory"))


def guaranteed_cpus(pod: Pod, container: Container, *, pod_level_managers: bool) -> int:
    """RM-3, XC-4: how many CPUs of its own the container is to have; 0 if it is to share."""
    if qos_class(pod) != "Guaranteed":
        return 0
    if pod_level_managers and level_set(pod) and not self_guaranteed(container.resources):
        return 0
    return _whole(container.resources)


def pod_guaranteed_cpus(pod: Pod, *, pod_level_managers: bool) -> int:
    """RM-4: how many CPUs the pod as a whole is to have; without pod-level resources, the most that its containers need at once."""
    if pod_level_managers and level_set(pod):
        assert pod.spec.resources is not None, "pod-level resources are set"
        return _whole(pod.spec.resources) if qos_class(pod) == "Guaranteed" else 0
    init = sidecars = 0
    for container in pod.spec.init_containers:
        wanted = guaranteed_cpus(pod, container, pod_level_managers=pod_level_managers)
        if container.is_sidecar:
            sidecars += wanted
        else:
            init = max(init, sidecars + wanted)
    apps = sum(guaranteed_cpus(pod, c, pod_level_managers=pod_level_managers) for c in pod.spec.containers)
    return max(init, apps + sidecars)


def _whole(resources: ResourceRequirements) -> int:
    milli = of(resources.requests).get("cpu", 0)
    return 0 if milli % 1000 else milli // 1000
