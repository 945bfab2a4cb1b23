"""Whether a cluster is well again after chaos: every pod has what it was asked to have, or truly cannot."""

from collections.abc import Iterable, Mapping
from typing import Any

from elbowroom.api import quantity, resources
from elbowroom.api.objects import Pod
from elbowroom.deploy.explore.cluster import is_settled

RESOURCES = ("cpu", "memory")


def unsettled(pods: Iterable[Pod], allocatable: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A line for each pod that is not well; ``allocatable`` is exact amounts by node."""
    alive = [pod for pod in pods if not pod.is_terminal]
    found: list[str] = []
    for pod in alive:
        if not is_settled(pod):
            found.append(_described(pod))
        elif pod.spec.node_name and (pending := pod.condition("PodResizePending")) is not None:
            room = allocatable.get(pod.spec.node_name, {})
            wanted = resources.spec_requests(pod)
            used = _used(pod, alive)
            if pending.reason == "Infeasible":
                is_true = any(wanted[r] > room.get(r, 0) for r in RESOURCES)
            else:
                is_true = any(used[r] + wanted[r] > room.get(r, 0) for r in RESOURCES)
            if not is_true:
                found.append(f"{_described(pod)}: {pending.reason}, although it fits")
    return found


def _used(pod: Pod, alive: Iterable[Pod]) -> dict[str, int]:
    others = [other for other in alive if other.spec.node_name == pod.spec.node_name and other is not pod]
    return {r: sum(resources.allocated_requests(other)[r] for other in others) for r in RESOURCES}


def allocatable_of(nodes: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Exact allocatable amounts by node."""
    found: dict[str, dict[str, int]] = {}
    for node in nodes:
        said = node["status"].get("allocatable", {})
        found[node["metadata"]["name"]] = {
            "cpu": quantity.milli_of(said.get("cpu", "0")),
            "memory": quantity.value_of(said.get("memory", "0")),
        }
    return found


def _described(pod: Pod) -> str:
    conditions = ", ".join(f"{c.type} {c.reason}" for c in pod.status.conditions if c.type.startswith("PodResize"))
    return (
        f"{pod.key} on {pod.spec.node_name or '-'} is {'ending' if pod.is_terminating else pod.status.phase}: desired"
        f" {resources.spec_requests(pod)}, allocated {resources.allocated_requests(pod)}, actual {resources.actual_requests(pod)}"
        f"{f' ({conditions})' if conditions else ''}"
    )
