"""A pod with scheduling gates is not tried until the last one is gone (SC-9)."""

from collections.abc import Sequence

from elbowroom.scheduler.clusterevents import TARGET_POD, Action
from elbowroom.scheduler.framework import Code, Interest, Plugin, Status
from elbowroom.scheduler.podinfo import PodInfo


class SchedulingGates(Plugin):
    name = "SchedulingGates"

    def pre_enqueue(self, info: PodInfo) -> Status | None:
        gates = info.pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return Status(Code.UNRESOLVABLE, (f"waiting for scheduling gates: [{names}]",), self.name)

    def interests(self) -> Sequence[Interest]:
        return (Interest(TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),)
