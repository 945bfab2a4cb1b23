"""What the scheduler writes into a pod's status (SC-82, SC-120)."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.machine import Effect, Instant
from elbowroom.rpc import Calls, patch
from elbowroom.wire import ApiRequest


def not_scheduled(now: Instant, pod: Pod, reason: str, message: str) -> dict[str, Any] | None:
    """The PodScheduled=False condition; None if the pod says so already."""
    known = pod.condition("PodScheduled")
    generation = pod.metadata.generation
    if known is not None and (known.status, known.reason, known.message, known.observed_generation) == (
        "False",
        reason,
        message,
        generation,
    ):
        return None
    stays = known is not None and known.status == "False"
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastProbeTime": None,
        "lastTransitionTime": known.last_transition_time if known is not None and stays else as_time(now),
    }


def with_condition(pod: Pod, condition: dict[str, Any]) -> dict[str, Any]:
    """The part of a strategic merge patch that sets one condition; a new one stands last, as upstream's patches say."""
    kinds = dict.fromkeys([*(each.type for each in pod.status.conditions), condition["type"]])
    return {"$setElementOrder/conditions": [{"type": kind} for kind in kinds], "conditions": [condition]}


def status_patch(pod: Pod, condition: dict[str, Any] | None, nomination: str | None) -> ApiRequest | None:
    """The PATCH that says it; None if nothing changes. ``nomination`` None leaves the nominated node as it is."""
    status: dict[str, Any] = {}
    if condition is not None:
        status.update(with_condition(pod, condition))
    if nomination is not None and nomination != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nomination or None
    if not status:
        return None
    body = {"metadata": {"uid": pod.uid}, "status": status}
    return patch("pods", pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status")


@dataclass(frozen=True, slots=True)
class StatusCall:
    """The context of a call that writes a status."""

    uid: str


class StatusWriter:
    """The writes of pods' statuses that are under way: nobody is bound before what was said of it is written, as upstream has one
    call of a pod under way at a time (SchedulerAsyncAPICalls). Else a word that was late on its way would call a pod unscheduled
    that is bound."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._open: Counter[str] = Counter()

    def write(self, now: Instant, pod: Pod, request: ApiRequest | None) -> list[Effect]:
        """Write it; nothing to write takes no call."""
        if request is None:
            return []
        self._open[pod.uid] += 1
        return self._calls.api(now, request, context=StatusCall(pod.uid))

    def ended(self, call: StatusCall) -> None:
        """One of the calls ended, however it did."""
        self._open[call.uid] -= 1
        if not self._open[call.uid]:
            del self._open[call.uid]

    def writes(self, uid: str) -> bool:
        """Is something of this pod under way?"""
        return uid in self._open
