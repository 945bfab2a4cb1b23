"""GangScheduling: of a gang's pods none is bound before ``minCount`` of them have room (gates GenericWorkload and GangScheduling).

A pod of a gang is not tried before that many exist. One that has a node waits there, and lets the others of its gang be tried,
until so many have nodes; then all go. If they do not find any within five minutes, they give their nodes back. (Upstream tries a
gang in one cycle besides, so that two of them do not hold half of what they need each.)
"""

from collections.abc import Sequence

from elbowroom.scheduler.clusterevents import ASSIGNED_POD, POD_GROUP, UNSCHEDULED_POD, Action
from elbowroom.scheduler.framework import Interest, Plugin
from elbowroom.scheduler.lookup import Lookup
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podgroups import PodGroup, group_key
from elbowroom.scheduler.podinfo import PodInfo
from elbowroom.scheduler.status import Code, Status, Wait

PATIENCE_SECONDS = 300.0


class GangScheduling(Plugin):
    name = "GangScheduling"

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def pre_enqueue(self, info: PodInfo) -> Status | None:
        key = group_key(info)
        if not key or info.pod.spec.node_name:
            return None  # a resize is tried by itself (SC-25)
        group = self._lookup.pod_group(key)
        if group is None:
            name = key.partition("/")[2]
            return Status(Code.UNRESOLVABLE, (f'waiting for pods\'s pod group "{name}" to appear in scheduling queue',), self.name)
        if len(self._lookup.members(key)) < group.min_count:
            return Status(Code.UNRESOLVABLE, ("waiting for minCount pods from a gang to appear in scheduling queue",), self.name)
        return None

    def permit(self, info: PodInfo, node: NodeInfo) -> Status | Wait | None:
        key = group_key(info)
        if not key or info.pod.spec.node_name:
            return None
        group = self._lookup.pod_group(key)
        if group is None:
            name = key.partition("/")[2]
            return Status(Code.ERROR, (f'failed to get podGroup {key}: podgroup.scheduling.k8s.io "{name}" not found',), self.name)
        return Wait(self.name, PATIENCE_SECONDS) if self._lookup.placed(key) + 1 < group.min_count else None

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(UNSCHEDULED_POD, Action.ADD, _pod_of_the_group),
            Interest(ASSIGNED_POD, Action.ADD, _pod_of_the_group),
            Interest(POD_GROUP, Action.ADD, _the_group),
            Interest(POD_GROUP, Action.UPDATE, _the_group),
        )


def _pod_of_the_group(waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    return new is not None and group_key(new) == group_key(waiting)


def _the_group(waiting: PodInfo, old: PodGroup | None, new: PodGroup | None) -> bool:
    return new is not None and new.metadata.key == group_key(waiting)
