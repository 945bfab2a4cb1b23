"""What a container is told beside its amounts: whom the kernel kills first, how much may be swapped out, and whether CPU limits are
enforced at all (RC-115, PL-23)."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import structs

from elbowroom.api.objects import Container, Node, Pod
from elbowroom.api.resources import container_request_amounts, counted, of, qos_class
from elbowroom.kubelet.admission import is_critical
from elbowroom.kubelet.allocation import may_swap
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.wire.cri import LinuxResources

GUARANTEED_SCORE, BEST_EFFORT_SCORE = -997, 1000
BURSTABLE_SCORE_MIN = 1000 + GUARANTEED_SCORE
"""A Guaranteed pod that uses all memory scores 10; Burstable ones are to score more."""
NODE_CRITICAL = "system-node-critical"


@dataclass(frozen=True, slots=True)
class Ground:
    """What of the node and its kubelet's configuration counts. ``memory`` and ``swap`` are the machine's, in bytes."""

    memory: int
    swap: int = 0
    cgroup_version: int = 2
    limited_swap: bool = False
    """Burstable containers may swap."""
    cpu_quota: bool = True
    """CPU limits are enforced (``cpuCFSQuota``)."""


def ground(node: Node, config: KubeletConfig) -> Ground:
    """What a node with that configuration gives."""
    hardware = config.hardware
    memory = of(node.status.capacity).get("memory", 0)
    return Ground(memory, hardware.swap_bytes, hardware.cgroup_version, config.swap, config.cpu_quota)


def tuned(linux: LinuxResources, pod: Pod, container: Container, ground: Ground) -> LinuxResources:
    """``linux`` with all that upstream sends beside amounts. ``container`` has the resources that it is told of, ``pod`` those that
    are allocated."""
    request = of(container.resources.requests).get("memory", 0)
    if not ground.cpu_quota:
        linux = structs.replace(linux, cpu_quota=0, cpu_period=0)
    score = oom_score_adj(pod, container.name, request, ground.memory)
    gigantic, huge = hugepage_limits(pod, container)
    linux = structs.replace(linux, oom_score_adj=score, hugepages_1gb_bytes=gigantic, hugepages_2mb_bytes=huge)
    if ground.cgroup_version == 2:
        # The file is there whether or not the machine has swap.
        most = swap_max(request, ground) if ground.limited_swap and may_swap(pod, container) else 0
        return structs.replace(linux, memory_swap_max=str(most))
    # With as much of both as of memory alone there is no swap; without a limit it is ignored.
    return structs.replace(linux, memory_swap_limit_bytes=linux.memory_limit_bytes) if ground.swap else linux


def oom_score_adj(pod: Pod, container: str, request: int, capacity: int) -> int:
    """How readily the kernel is to kill it, from -1000 to 1000: Guaranteed pods last, BestEffort ones first, and of the Burstable
    ones those first that use more than they ask for. ``request`` is its memory request in bytes."""
    if is_critical(pod) and pod.spec.priority_class_name == NODE_CRITICAL:
        return GUARANTEED_SCORE
    match qos_class(pod):
        case "Guaranteed":
            return GUARANTEED_SCORE
        case "BestEffort":
            return BEST_EFFORT_SCORE
    spare = _spare_per_container(pod)
    score = 1000 - 1000 * (request + spare) // max(1, capacity)
    if any(c.name == container and c.is_sidecar for c in pod.spec.init_containers):
        least = min(of(c.resources.requests).get("memory", 0) for c in pod.spec.containers)
        score = min(score, 1000 - 1000 * (least + spare) // max(1, capacity))
    return BEST_EFFORT_SCORE - 1 if score == BEST_EFFORT_SCORE else max(BURSTABLE_SCORE_MIN, score)


def _spare_per_container(pod: Pod) -> int:
    """Of what the pod asks for as a whole, each container's share of what none of them asks for itself."""
    level: Mapping[str, int] = of(pod.spec.resources.requests) if pod.spec.resources is not None else {}
    if not level.get("memory"):
        return 0
    count = len(pod.spec.containers) + len(pod.spec.init_containers)
    return (level["memory"] - counted(container_request_amounts(pod)).get("memory", 0)) // count


def hugepage_limits(pod: Pod, container: Container) -> tuple[int, int]:
    """How much it may have in pages of 1 GiB and of 2 MiB: none unless it, or its pod as a whole, says so."""
    level = of(pod.spec.resources.limits) if pod.spec.resources is not None else {}
    limits = {**level, **of(container.resources.limits)}
    return limits.get("hugepages-1Gi", 0), limits.get("hugepages-2Mi", 0)


def swap_max(request: int, ground: Ground) -> int:
    """A Burstable container's share of the swap: as large as that which it asks for of the memory."""
    return 0 if not 0 < request <= ground.memory else int(request / ground.memory * ground.swap)
