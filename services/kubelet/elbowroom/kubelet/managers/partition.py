"""How a pod's own CPUs and memory are shared out among its containers (RM-10 to RM-18, RM-26).

A pod with pod-level resources gets one set as a whole. In the order of the spec, sidecars with CPUs of their own keep theirs for
good; ordinary init containers run before the others and leave theirs again; app containers take from what the sidecars leave; the
rest is the pod's shared pool, for everybody else.
"""

from collections.abc import Mapping

from elbowroom.api.objects import Container, Pod
from elbowroom.api.resources import of, qos_class
from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet
from elbowroom.kubelet.managers.memory import Sizes
from elbowroom.kubelet.managers.packing import Shortage, take_by_topology
from elbowroom.kubelet.managers.static import StaticPolicy, guaranteed_cpus, level_set, pod_guaranteed_cpus, self_guaranteed


def containers_of(pod: Pod) -> list[Container]:
    """Init containers, then regular ones."""
    return [*pod.spec.init_containers, *pod.spec.containers]


def cpu_parts(policy: StaticPolicy, pod: Pod, whole: CPUSet) -> dict[str, CPUSet] | Shortage:
    """RM-12: the part of each container, by name. Parts are picked in the packing order, without a hint (RM-13)."""
    parts: dict[str, CPUSet] = {}
    sidecars = NOBODY
    for container in pod.spec.init_containers:
        wanted = guaranteed_cpus(pod, container, pod_level_managers=True)
        if not wanted:
            if not container.is_sidecar:
                parts[container.name] = whole - sidecars
            continue
        found = take_by_topology(policy.topology, whole - sidecars, wanted, policy.options)
        if isinstance(found, Shortage):
            return found
        parts[container.name] = found
        if container.is_sidecar:
            sidecars |= found
    left = whole - sidecars
    for container in pod.spec.containers:
        wanted = guaranteed_cpus(pod, container, pod_level_managers=True)
        if wanted:
            found = take_by_topology(policy.topology, left, wanted, policy.options)
            if isinstance(found, Shortage):
                return found
            parts[container.name] = found
            left -= found
    return {container.name: parts.get(container.name, left) for container in containers_of(pod)}


def cpu_pool_error(pod: Pod) -> str:
    """RM-14: why the pod's CPUs can't be shared out; empty if they can."""
    total = pod_guaranteed_cpus(pod, pod_level_managers=True)
    taken, shares = 0, False
    for container in pod.spec.init_containers:
        wanted = guaranteed_cpus(pod, container, pod_level_managers=True)
        if container.is_sidecar:
            taken, shares = taken + wanted, shares or not wanted
        elif not wanted and taken >= total:
            return "pod rejected, pod has shared init containers but no cpus available for them"
        elif wanted > total - taken:
            return (
                f"pod rejected, largest exclusive init container requests {wanted} cpus, but only {max(0, total - taken)} available"
            )
    for container in pod.spec.containers:
        wanted = guaranteed_cpus(pod, container, pod_level_managers=True)
        taken, shares = taken + wanted, shares or not wanted
    if shares and taken >= total:
        return "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers"
    return ""


# ---------------------------------------------------------------- memory


def _memory(requests: Mapping[str, int]) -> dict[str, int]:
    return {name: size for name, size in sorted(requests.items()) if name == "memory" or name.startswith("hugepages-")}


def container_memory(pod: Pod, container: Container, *, pod_level_managers: bool) -> Sizes:
    """What memory of its own the container is to have; empty if it is to share."""
    if pod_level_managers and level_set(pod) and not self_guaranteed(container.resources):
        return {}
    return _memory(of(container.resources.requests))


def pod_memory(pod: Pod, *, pod_level_managers: bool) -> Sizes:
    """What memory the pod as a whole is to have; without pod-level resources, the most that its containers need at once."""
    if pod_level_managers and level_set(pod):
        assert pod.spec.resources is not None, "pod-level resources are set"
        return {name: size for name, size in _memory(of(pod.spec.resources.requests)).items() if size > 0}
    init: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in pod.spec.init_containers:
        for name, size in container_memory(pod, container, pod_level_managers=pod_level_managers).items():
            if container.is_sidecar:
                sidecars[name] = sidecars.get(name, 0) + size
            else:
                init[name] = max(init.get(name, 0), sidecars.get(name, 0) + size)
    apps: dict[str, int] = {}
    for container in pod.spec.containers:
        for name, size in container_memory(pod, container, pod_level_managers=pod_level_managers).items():
            apps[name] = apps.get(name, 0) + size
    return {name: max(init.get(name, 0), size + sidecars.get(name, 0)) for name, size in apps.items()}


def memory_parts(pod: Pod) -> dict[str, Sizes]:
    """The part of each container in the pod's memory, by name."""
    total, parts = pod_memory(pod, pod_level_managers=True), dict[str, Sizes]()
    left = dict(total)
    for container in pod.spec.init_containers:
        own = container_memory(pod, container, pod_level_managers=True)
        if own:
            parts[container.name] = own
        elif not container.is_sidecar:
            parts[container.name] = dict(left)
        if own and container.is_sidecar:
            left = {name: size - own.get(name, 0) for name, size in left.items()}
    for container in pod.spec.containers:
        own = container_memory(pod, container, pod_level_managers=True)
        if own:
            parts[container.name] = own
            left = {name: size - own.get(name, 0) for name, size in left.items()}
    return {container.name: parts.get(container.name, left) for container in containers_of(pod)}


def memory_pool_error(pod: Pod) -> str:
    """RM-14: why the pod's memory can't be shared out; empty if it can."""
    total, taken, shares = pod_memory(pod, pod_level_managers=True), dict[str, int](), False

    def count(container: Container) -> bool:
        own = container_memory(pod, container, pod_level_managers=True)
        for name, size in own.items():
            taken[name] = taken.get(name, 0) + size
        return not own

    for container in pod.spec.init_containers:
        if container.is_sidecar:
            shares = count(container) or shares
        elif not container_memory(pod, container, pod_level_managers=True):
            for name, size in total.items():
                if taken.get(name, 0) >= size:
                    return f"pod rejected, pod has shared init containers but no {name} available for them"
    for container in pod.spec.containers:
        shares = count(container) or shares
    for name, size in total.items():
        if shares and taken.get(name, 0) >= size:
            return (
                f"pod rejected, sum of exclusive container {name} requests equals pod budget, "
                "leaving no memory for shared containers"
            )
    return ""


def is_guaranteed(pod: Pod) -> bool:
    return qos_class(pod) == "Guaranteed"
