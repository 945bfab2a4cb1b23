"""DefaultPreemption's part in the queue: a pod whose victims are still being told to go is not tried again (SC-10, SC-118).

Upstream's plugin waits for deletions, so that the queue looks at the gate again. Here whoever carries out the preemption opens the
gate itself (``SchedulingQueue.reopen``), and no deletion costs a look at those behind it.

How victims are chosen is in ``elbowroom.scheduler.preemption``, how they are told in ``elbowroom.scheduler.actuation``.
"""

from elbowroom.scheduler.framework import Code, Plugin, Status
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
