"""What the scheduler writes on a pod that it could not place (SC-82)."""

from typing import Any

from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.machine import Instant
from elbowroom.rpc import patch
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


def status_patch(pod: Pod, condition: dict[str, Any] | None, nomination: str | None) -> ApiRequest | None:
    """The PATCH that says it; None if nothing changes. ``nomination`` None leaves the nominated node as it is."""
    status: dict[str, Any] = {}
    if condition is not None:
        status["conditions"] = [condition]
    if nomination is not None and nomination != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nomination or None
    if not status:
        return None
    body = {"metadata": {"uid": pod.uid}, "status": status}
    return patch("pods", pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status")
