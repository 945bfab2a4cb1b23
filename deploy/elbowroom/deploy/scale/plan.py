"""What a run of ``scale`` does: how many nodes of which size, which pods, and which of them are resized.

Each pod asks for a gibibyte, and a node has room for its share of the pods, rounded up (two at least). So nodes are nearly full:
a resize of a pod of high priority to two gibibytes needs a victim where the node is full, and none where it is not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from elbowroom.deploy.errors import UserError

HIGH, LOW = "scale-high", "scale-low"
PRIORITIES = {HIGH: 1000, LOW: 1}
GROWN, RESIZED = "2Gi", "20m"
PODS_A_NODE_MAX = 100
PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class Plan:
    """``growing`` pods of high priority, one a node, ask for a second gibibyte; as many others for CPU that is there."""

    nodes: int
    pods: int
    growing: int

    @property
    def room(self) -> int:
        """For how many pods a node has room."""
        return max(2, -(-self.pods // self.nodes))

    @property
    def high(self) -> list[str]:
        return [f"high-{number}" for number in range(1, self.growing + 1)]

    @property
    def low(self) -> list[str]:
        return [f"low-{number}" for number in range(1, self.pods - self.growing + 1)]

    def cluster(self, per_process: int, time_scale: float = 1.0) -> Mapping[str, Any]:
        """The part of cluster.yaml under ``spec``."""
        capacity = {"cpu": "16", "memory": f"{self.room}Gi", "pods": "110"}
        nodes = [{"count": self.nodes, "capacity": capacity}]
        return {"kubeletsPerProcess": per_process, "timeScale": time_scale, "nodes": nodes}

    def growers(self) -> Iterator[dict[str, Any]]:
        """The pods that are to grow, each on a node of its own. They are made first."""
        return (_pod(name, HIGH, f"node-{at}") for at, name in enumerate(self.high, 1))

    def others(self) -> Iterator[dict[str, Any]]:
        """The pods that are made then, one by one as they are asked for: of hundreds of thousands not all at once."""
        return (_pod(name, LOW) for name in self.low)


def plan(nodes: int, pods: int, growing: int | None = None) -> Plan:
    """The plan for so many; by default a third of the pods grows, at most one a node. ``UserError`` if it makes no sense."""
    if pods > nodes * PODS_A_NODE_MAX:
        raise UserError(f"--pods {pods}: a node takes {PODS_A_NODE_MAX} at most, so {nodes} nodes take {nodes * PODS_A_NODE_MAX}")
    if growing is None:
        growing = max(1, min(nodes, pods // 3))
    if growing > min(nodes, pods):
        raise UserError(f"--resizes {growing}: at most one a node and a pod, {min(nodes, pods)} here")
    return Plan(nodes, pods, growing)


def _pod(name: str, priority: str, node: str = "") -> dict[str, Any]:
    requests = {"cpu": "10m", "memory": "1Gi"}
    containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}]
    spec: dict[str, Any] = {"priorityClassName": priority, "terminationGracePeriodSeconds": 0, "containers": containers}
    if node:
        # As a DaemonSet binds its pods to nodes: a scheduler need not look at any other.
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def resize(**requests: str) -> dict[str, Any]:
    """The body of a resize."""
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}
