"""DefaultPreemption's part in the queue: a pod whose victims are still being told to go is not tried again (SC-10, SC-118).

How victims are chosen is in ``elbowroom.scheduler.preemption``, how they are told in ``elbowroom.scheduler.actuation``.
"""

from collections.abc import Sequence

from elbowroom.scheduler.clusterevents import ASSIGNED_POD, Action
from elbowroom.scheduler.framework import Code, Interest, Plugin, Status
from elbowroom.scheduler.lookup import Lookup
from elbowroom.scheduler.podinfo import PodInfo


class DefaultPreemption(Plugin):
    name = "DefaultPreemption"
    for_resizes = True

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def pre_enqueue(self, info: PodInfo) -> Status | None:
        if self._lookup.is_preempting(info.uid):
            return Status(Code.UNRESOLVABLE, ("waiting for the preemption for this pod to be finished",), self.name)
        return None

    def interests(self) -> Sequence[Interest]:
        """A pod behind this gate hears of deletions; whether one helps is for those to say who rejected the pod."""
        return (Interest(ASSIGNED_POD, Action.DELETE, lambda waiting, old, new: False),)
