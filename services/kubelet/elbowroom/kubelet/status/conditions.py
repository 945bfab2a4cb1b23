"""A pod's phase and its conditions, from what is said of its containers (RC-130 to RC-133)."""

from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.api.objects import Pod
from elbowroom.kubelet.status.shown import Shown, with_words
from elbowroom.machine import as_time

PENDING, IN_PROGRESS, PREEMPTION_DISABLED = "PodResizePending", "PodResizeInProgress", "PodResizePreemptionDisabled"
READY_TO_START, INITIALIZED, READY, CONTAINERS_READY = "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"
SCHEDULED, DISRUPTED = "PodScheduled", "DisruptionTarget"


# ---------------------------------------------------------------- phase


def phase_of(pod: Pod, statuses: Sequence[Mapping[str, Any]], inits: Sequence[Mapping[str, Any]], over: bool) -> str:
    """The phase of a pod with these statuses of containers; ``over``: nothing of it runs any more, for good."""
    pending, failed_init = _initialisation(pod, inits)
    if failed_init and pod.spec.restart_policy == "Never":
        return "Failed"
    running = waiting = stopped = succeeded = 0
    for status in statuses:
        state = status["state"]
        if "running" in state:
            running += 1
        elif "terminated" in state:
            stopped += 1
            succeeded += state["terminated"]["exitCode"] == 0
        elif "terminated" in status["lastState"]:
            stopped += 1
        else:
            waiting += 1
    if pending and not (running or stopped):
        return "Failed" if over else "Pending"
    if waiting:
        return "Failed" if over else "Pending"
    if running:
        return "Running"
    if over:
        return "Succeeded" if stopped == succeeded else "Failed"
    return "Running"  # between two starts; the last word is spoken once nothing runs any more


def _initialisation(pod: Pod, inits: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """How many init containers are still due, and how many have failed."""
    pending = failed = 0
    for container, status in zip(pod.spec.init_containers, inits, strict=True):
        state, last = status["state"], status["lastState"]
        if container.is_sidecar:
            pending += "waiting" in state and "terminated" not in last
        elif "terminated" in state:
            failed += state["terminated"]["exitCode"] != 0
        elif "waiting" in state and "terminated" in last:
            failed += last["terminated"]["exitCode"] != 0
        else:
            pending += 1
    return pending, failed


# ---------------------------------------------------------------- conditions


def conditions(
    s: Shown, phase: str, statuses: Sequence[Mapping[str, Any]], inits: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The conditions that the kubelet sees to; the times of those that have not changed are the ones that were told."""
    found: list[dict[str, Any]] = []
    terminal = phase in ("Succeeded", "Failed")
    if s.eviction is not None and s.eviction.disrupted and terminal:
        found.append(_condition(s, DISRUPTED, True, "TerminationByKubelet", s.eviction.disruption))
    if not terminal:
        if s.pending is not None:
            found.append(s.pending.document(PENDING))
        if s.in_progress is not None:
            found.append(s.in_progress.document(IN_PROGRESS))
        if s.preemption_disabled and s.pending is not None and s.pending.reason == "Deferred":
            message = f"Preemption for in-place pod resize is disabled on node '{s.preemption_disabled}' by preemption policy."
            found.append(_condition(s, PREEMPTION_DISABLED, True, "PreemptionDisabledByNodePolicy", message))
    ready_to_start = s.sandbox is not None and s.sandbox.ready and not terminal
    found.append(_condition(s, READY_TO_START, ready_to_start))
    found.append(_initialized(s, phase, statuses, inits))
    ready, reason, message = _containers_ready(s, phase, statuses, inits)
    found.append(_condition(s, READY, ready, reason, message))
    found.append(_condition(s, CONTAINERS_READY, ready, reason, message))
    found.append(_condition(s, SCHEDULED, True))
    return found


def _condition(s: Shown, kind: str, holds: bool, reason: str = "", message: str = "") -> dict[str, Any]:
    status = "True" if holds else "False"
    before = next((c for c in s.previous.get("conditions") or () if c.get("type") == kind), None)
    since = before.get("lastTransitionTime") if before is not None and before.get("status") == status else None
    found: dict[str, Any] = {
        "type": kind,
        "observedGeneration": s.pod.metadata.generation or None,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": since or as_time(s.now),
    }
    return with_words(found, reason, message)


def _initialized(s: Shown, phase: str, statuses: Sequence[Mapping[str, Any]], inits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if phase == "Succeeded":
        return _condition(s, INITIALIZED, True, "PodCompleted")
    begun = any("running" in status["state"] or "terminated" in status["state"] or status["lastState"] for status in statuses)
    undone = [status["name"] for status in inits if not status["ready"]]
    if begun or not undone:
        return _condition(s, INITIALIZED, True)
    words = f"containers with incomplete status: [{' '.join(undone)}]"
    return _condition(s, INITIALIZED, False, "ContainersNotInitialized", words)


def _containers_ready(
    s: Shown, phase: str, statuses: Sequence[Mapping[str, Any]], inits: Sequence[Mapping[str, Any]]
) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return False, "PodCompleted", ""
    if phase == "Failed":
        return False, "PodFailed", ""
    sidecars = {c.name for c in s.pod.spec.init_containers if c.is_sidecar}
    counted = [status for status in inits if status["name"] in sidecars] + list(statuses)
    unready = [status["name"] for status in counted if not status["ready"]]
    if not unready:
        return True, "", ""
    return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
