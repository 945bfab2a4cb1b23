"""The topology manager's admission of one pod, on values of its own.

It is thrown away if anything is refused, so a rejected pod leaves nothing behind.
"""

from collections.abc import Callable

from elbowroom.api.objects import Container, Pod
from elbowroom.kubelet.admission import Refusal
from elbowroom.kubelet.managers import partition
from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet
from elbowroom.kubelet.managers.hints import Hint, Hints, merge
from elbowroom.kubelet.managers.memory import MemoryState, NoMemory, Reusable, StaticMemory
from elbowroom.kubelet.managers.metrics import Tally
from elbowroom.kubelet.managers.packing import Shortage
from elbowroom.kubelet.managers.partition import containers_of
from elbowroom.kubelet.managers.settings import Settings
from elbowroom.kubelet.managers.state import CPUState
from elbowroom.kubelet.managers.static import Granted, Refused, StaticPolicy, guaranteed_cpus, level_set, pod_guaranteed_cpus

EMPTY_POOL = "EmptyPodSharedPoolError"
TOPOLOGY_AFFINITY = "TopologyAffinityError"
NO_LOCALITY = "Resources cannot be allocated with Topology locality"
_NO_POD_LOCALITY = "Pod Scope pod with pod-level resources failed admission {}"


class Attempt:
    """One pod's. ``run`` it, then ``refusal`` says why not, or ``cpus``, ``memory`` and what may be reused are what is given."""

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
        """Ask for everything that the pod is to have, in the order of its containers."""
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
        """Where the container's memory could be."""
        policy, pod = self._policy, self._pod
        if policy is None or self._ignored or not partition.is_guaranteed(pod):
            return None
        wanted = partition.container_memory(pod, container, pod_level_managers=self._settings.pod_level)
        known = self.memory.of(pod.uid, container.name)
        if known is not None:
            return policy.regenerated(known, wanted)
        return policy.hints(self.memory, wanted, self.reusable_memory) if wanted else None

    def pod_memory_hints(self) -> Hints:
        """Where the memory of the pod as a whole could be."""
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
