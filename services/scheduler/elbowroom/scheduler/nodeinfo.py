"""A node with the pods that are counted on it."""

from collections.abc import Iterator
from typing import Any

from elbowroom.api.objects import Node
from elbowroom.api.resources import Resources
from elbowroom.scheduler.podinfo import PodInfo, Port


class NodeInfo:
    """A node with the pods counted on it. ``requested`` is the truth, ``non_zero`` a tally for scores (SC-51)."""

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "generation",
        "memo",
        "name",
        "node",
        "non_zero",
        "pods",
        "requested",
        "with_affinity",
        "with_anti_affinity",
        "with_ports",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.allocatable: Resources = {}
        self.allowed_pods = 0
        self.pods: dict[str, PodInfo] = {}
        self.requested: Resources = {}
        self.non_zero: Resources = {"cpu": 0, "memory": 0}
        self.with_affinity: dict[str, PodInfo] = {}
        self.with_anti_affinity: dict[str, PodInfo] = {}
        """Only pods whose anti-affinity is required."""
        self.with_ports: dict[str, PodInfo] = {}
        self.generation = 0
        self.memo: dict[object, Any] = {}
        """What plugins found out about the node as it is; forgotten when it changes."""

    def set_node(self, node: Node | None, allocatable: Resources) -> None:
        self.memo.clear()
        self.node = node
        self.allocatable = allocatable
        self.allowed_pods = allocatable.get("pods", 0)

    def add(self, info: PodInfo) -> None:
        """Count a pod that is not counted here yet."""
        self.memo.clear()
        self.pods[info.uid] = info
        count(self.requested, info.requests, 1)
        count(self.non_zero, info.non_zero, 1)
        if info.has_affinity:
            self.with_affinity[info.uid] = info
            if info.anti_affinity_terms:
                self.with_anti_affinity[info.uid] = info
        if info.ports:
            self.with_ports[info.uid] = info

    def remove(self, uid: str) -> None:
        """Stop counting a pod; nothing happens if it is not here."""
        info = self.pods.pop(uid, None)
        if info is None:
            return
        self.memo.clear()
        count(self.requested, info.requests, -1)
        count(self.non_zero, info.non_zero, -1)
        if info.has_affinity:
            self.with_affinity.pop(uid, None)
            self.with_anti_affinity.pop(uid, None)
        if info.ports:
            self.with_ports.pop(uid, None)

    def ports_in_use(self) -> Iterator[Port]:
        for info in self.with_ports.values():
            yield from info.ports

    def copy(self) -> "NodeInfo":
        twin = NodeInfo(self.name)
        twin.node = self.node
        twin.allocatable = self.allocatable
        twin.allowed_pods = self.allowed_pods
        twin.pods = dict(self.pods)
        twin.requested = dict(self.requested)
        twin.non_zero = dict(self.non_zero)
        twin.with_affinity = dict(self.with_affinity)
        twin.with_anti_affinity = dict(self.with_anti_affinity)
        twin.with_ports = dict(self.with_ports)
        twin.generation = self.generation
        return twin


def count(total: Resources, amounts: Resources, sign: int) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + sign * amount
