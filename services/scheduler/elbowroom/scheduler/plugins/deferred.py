"""DeferredPodScheduling: a resize that waits for room is tried like a pod, but never placed (SC-88, SC-95).

Where it does not fit, preemption is asked for like for any pod. Where it fits, ``permit`` refuses it: placing it is not ours, its
kubelet will carry it out, and until then it is parked.

Who reads the node's policy depends on the profile: ``v1.37`` reads the Node here, ``lab`` goes by the pod's condition, which keeps
the pod out of the queue altogether (profiles row 3).
"""

from collections.abc import Sequence

from elbowroom.api.gates import Profile
from elbowroom.api.objects import Node
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.clusterevents import ASSIGNED_POD, NODE, TARGET_POD, Action
from elbowroom.scheduler.framework import Code, Interest, NodeFilter, Plugin, Prepared, Status
from elbowroom.scheduler.lookup import Lookup
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podinfo import PodInfo, is_deferred


class DeferredPodScheduling(Plugin):
    name = "DeferredPodScheduling"
    for_resizes = True
    FITS = Status(Code.UNRESOLVABLE, ("pod resize fits, waiting for Kubelet actuation",), name)

    def __init__(self, profile: Profile, lookup: Lookup) -> None:
        self._reads_node = not profile.policy_by_condition
        self._lookup = lookup

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        if not _is_resize(info):
            return None
        return Prepared(_OwnNode(info.pod.spec.node_name, self._reads_node))

    def permit(self, info: PodInfo, node: NodeInfo) -> Status | None:
        return self.FITS if _is_resize(info) else None

    def interests(self) -> Sequence[Interest]:
        """A parked pod is looked at again whenever the room on its node changes.

        The documents ask for a neighbour's growth (SC-34); what else takes room away (a pod bound past us, a smaller node) is no
        different. Where the policy holds the pod back, only the policy matters (SC-30).
        """
        return (
            Interest(NODE, Action.UPDATE_NODE_PREEMPTION_POLICY, self._policy_lifted),
            Interest(NODE, Action.ADD, self._own_node_came),
            Interest(NODE, Action.UPDATE_NODE_ALLOCATABLE, self._own_node_resized),
            Interest(ASSIGNED_POD, Action.ADD, self._neighbour_changed),
            Interest(ASSIGNED_POD, Action.DELETE, self._neighbour_changed),
            Interest(ASSIGNED_POD, Action.UPDATE_POD_SCALE_UP, self._neighbour_changed),
            Interest(ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, self._neighbour_changed),
            Interest(TARGET_POD, Action.UPDATE_POD_SCALE_UP, self._itself_changed),
            Interest(TARGET_POD, Action.UPDATE_POD_SCALE_DOWN, self._itself_changed),
        )

    def _held_back(self, node: Node | None) -> bool:
        return self._reads_node and node is not None and node.resize_preemption_disabled

    def _policy_lifted(self, waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
        if old is None or new is None or new.name != waiting.pod.spec.node_name:
            return False
        return self._held_back(old) and not self._held_back(new)

    def _own_node_came(self, waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
        return new is not None and new.name == waiting.pod.spec.node_name and not self._held_back(new)

    def _own_node_resized(self, waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
        return self._own_node_came(waiting, old, new)

    def _neighbour_changed(self, waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        changed = new or old
        own = waiting.pod.spec.node_name
        if changed is None or changed.uid == waiting.uid or changed.pod.spec.node_name != own:
            return False
        return not self._held_back(self._lookup.node(own))

    def _itself_changed(self, waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        return not self._held_back(self._lookup.node(waiting.pod.spec.node_name))


def _is_resize(info: PodInfo) -> bool:
    return bool(info.pod.spec.node_name) and is_deferred(info.pod)


class _OwnNode(NodeFilter):
    OTHER = Status(Code.UNRESOLVABLE, ("pod assigned to different node",), DeferredPodScheduling.name)
    GONE = Status(Code.ERROR, ("node not found",), DeferredPodScheduling.name)
    DISABLED = Status(Code.UNRESOLVABLE, ("node had resize preemption disabled",), DeferredPodScheduling.name)

    def __init__(self, own: str, reads_node: bool) -> None:
        self._own = own
        self._reads_node = reads_node

    def check(self, node: NodeInfo) -> Status | None:
        if node.node is None:
            return self.GONE
        if node.name != self._own:
            return self.OTHER
        return self.DISABLED if self._reads_node and node.node.resize_preemption_disabled else None
