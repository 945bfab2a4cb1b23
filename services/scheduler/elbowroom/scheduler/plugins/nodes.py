"""What a node says of itself: its name, whether it is cordoned, its taints, its ports (SC-65 to SC-67, SC-75)."""

from collections.abc import Hashable, Sequence
from typing import Any

from elbowroom.api.objects import Node, Taint, Toleration
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.clusterevents import ASSIGNED_POD, NODE, TARGET_POD, Action
from elbowroom.scheduler.framework import Code, Interest, NodeFilter, Plugin, Prepared, Scorer, Status, normalised
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podinfo import PodInfo, Port, is_deferred

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An empty effect tolerates every effect, an empty key (with Exists) every key."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def is_tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


class NodeName(Plugin):
    """A deferred resize is a matter of its own node alone (SC-86)."""

    name = "NodeName"
    for_resizes = True

    def __init__(self, resize_preemption: bool) -> None:
        self._resize_preemption = resize_preemption

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        wanted = info.pod.spec.node_name
        if not wanted:
            return None
        own_node_only = self._resize_preemption and is_deferred(info.pod)
        return Prepared(_OnNode(wanted), frozenset((wanted,)) if own_node_only else None)

    def waits_for(self, info: PodInfo) -> Hashable | None:
        return True

    def interests(self) -> Sequence[Interest]:
        """Upstream registers this without a hint. The queue puts it to resizes of that node alone (SC-28, SC-33)."""
        return (Interest(NODE, Action.ADD),)


class _OnNode(NodeFilter):
    REFUSED = Status(Code.UNRESOLVABLE, ("node(s) didn't match the requested node name",), NodeName.name)

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted

    def check(self, node: NodeInfo) -> Status | None:
        return None if node.name == self._wanted else self.REFUSED


class NodeUnschedulable(Plugin):
    name = "NodeUnschedulable"

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        if is_tolerated(UNSCHEDULABLE_TAINT, info.pod.spec.tolerations):
            return None
        return Prepared(_NotCordoned())

    def waits_for(self, info: PodInfo) -> Hashable | None:
        return True

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODE, Action.ADD, _opened),
            Interest(NODE, Action.UPDATE_NODE_TAINT, _opened),
            Interest(TARGET_POD, Action.UPDATE_POD_TOLERATION, _tolerates_cordons),
        )


def _tolerates_cordons(waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    return new is not None and is_tolerated(UNSCHEDULABLE_TAINT, new.pod.spec.tolerations)


def _opened(waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
    if new is None or new.spec.unschedulable:
        return False
    return old is None or old.spec.unschedulable


class _NotCordoned(NodeFilter):
    key = "NodeUnschedulable"
    REFUSED = Status(Code.UNRESOLVABLE, ("node(s) were unschedulable",), NodeUnschedulable.name)

    def check(self, node: NodeInfo) -> Status | None:
        return self.REFUSED if node.node is None or node.node.spec.unschedulable else None


class TaintToleration(Plugin):
    name = "TaintToleration"
    weight = 3

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        return Prepared(_Untainted(info.pod.spec.tolerations))

    def pre_score(self, info: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Scorer | None:
        # Without such taints every node scores the same.
        return _SoftTaints(info.pod.spec.tolerations) if snapshot.soft_taints else None

    def waits_for(self, info: PodInfo) -> Hashable | None:
        return tuple(info.pod.spec.tolerations)

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODE, Action.ADD, _became_tolerable),
            Interest(NODE, Action.UPDATE_NODE_TAINT, _became_tolerable),
            Interest(TARGET_POD, Action.UPDATE_POD_TOLERATION),
        )


def _hard_taint(node: Node, tolerations: Sequence[Toleration]) -> bool:
    return any(taint.effect in ("NoSchedule", "NoExecute") and not is_tolerated(taint, tolerations) for taint in node.spec.taints)


def _became_tolerable(waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
    tolerations = waiting.pod.spec.tolerations
    if new is None or _hard_taint(new, tolerations):
        return False
    return old is None or _hard_taint(old, tolerations)


class _Untainted(NodeFilter):
    REFUSED = Status(Code.UNRESOLVABLE, ("node(s) had untolerated taint(s)",), TaintToleration.name)

    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._tolerations = tolerations
        self.key = (TaintToleration.name, *tolerations)

    def check(self, node: NodeInfo) -> Status | None:
        assert node.node is not None, "a snapshot holds real nodes only"
        if node.node.spec.taints and _hard_taint(node.node, self._tolerations):
            return self.REFUSED
        return None


class _SoftTaints(Scorer):
    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._tolerations = [toleration for toleration in tolerations if toleration.effect in ("", "PreferNoSchedule")]

    def score(self, node: NodeInfo) -> int:
        assert node.node is not None, "a snapshot holds real nodes only"
        return sum(
            1
            for taint in node.node.spec.taints
            if taint.effect == "PreferNoSchedule" and not is_tolerated(taint, self._tolerations)
        )

    def normalised(self, nodes: Sequence[NodeInfo], scores: list[int]) -> list[int]:
        return normalised(scores, reverse=True)


class NodePorts(Plugin):
    name = "NodePorts"

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        return Prepared(_FreePorts(info.ports)) if info.ports else None

    def waits_for(self, info: PodInfo) -> Hashable | None:
        return info.ports

    def interests(self) -> Sequence[Interest]:
        return (Interest(ASSIGNED_POD, Action.DELETE, _freed_port), Interest(NODE, Action.ADD))


def _clash(one: Port, other: Port) -> bool:
    any_address = "0.0.0.0" in (one[1], other[1])
    return one[0] == other[0] and one[2] == other[2] and (any_address or one[1] == other[1])


def _freed_port(waiting: PodInfo, old: Any, new: Any) -> bool:
    return isinstance(old, PodInfo) and any(_clash(one, other) for one in waiting.ports for other in old.ports)


class _FreePorts(NodeFilter):
    REFUSED = Status(Code.UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",), NodePorts.name)

    def __init__(self, wanted: Sequence[Port]) -> None:
        self._wanted = wanted

    def check(self, node: NodeInfo) -> Status | None:
        taken = any(_clash(one, other) for other in node.ports_in_use() for one in self._wanted)
        return self.REFUSED if taken else None
