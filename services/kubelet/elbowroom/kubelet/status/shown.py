"""All that a pod's status is made from, and the two conditions and the ends that the kubelet gives it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from elbowroom.api.objects import Pod
from elbowroom.kubelet.checkpoint import PodResources
from elbowroom.machine import Instant, as_time
from elbowroom.wire.cri import SandboxState


class ResizeCondition(Struct, frozen=True):
    """PodResizePending or PodResizeInProgress, which are either there and True or not there at all (RC-130)."""

    reason: str
    message: str
    generation: int
    since: Instant
    probed: Instant

    def document(self, kind: str) -> dict[str, Any]:
        """The condition as the API has it."""
        found: dict[str, Any] = {
            "type": kind,
            "observedGeneration": self.generation or None,
            "status": "True",
            "lastProbeTime": as_time(self.probed),
            "lastTransitionTime": as_time(self.since),
        }
        return with_words(found, self.reason, self.message)


@dataclass(frozen=True, slots=True)
class Eviction:
    """The kubelet itself ends the pod: what its status says if that made it fail."""

    reason: str
    message: str
    fails: bool = False
    """It has failed even if its containers end well."""
    disruption: str = ""
    """The message of the condition DisruptionTarget; empty: it gets none."""

    @property
    def disrupted(self) -> bool:
        """Does the pod get the condition DisruptionTarget?"""
        return bool(self.disruption)


class Shown(Struct, frozen=True):
    """All that a status is made from."""

    now: Instant
    pod: Pod
    """As the API server has it."""
    allocated: Pod
    """The same with its allocated resources."""
    actuated: PodResources
    sandbox: SandboxState | None
    previous: Mapping[str, Any]
    """The status that the API server has."""
    started: Instant
    """When the kubelet first saw the pod."""
    ip: str = ""
    host_ip: str = "127.0.0.1"
    pending: ResizeCondition | None = None
    in_progress: ResizeCondition | None = None
    preemption_disabled: str = ""
    """The node that disables resize preemption, if that is to be published (row 3)."""
    held: Mapping[str, int] = {}
    """How many CPUs containers have that are about to leave some: until then that is what is shown (SD-7)."""
    unbound: frozenset[str] = frozenset()
    """Containers with CPUs of their own: there is no quota to be read, so their limit is what was allocated (XC-20)."""
    waiting: Mapping[str, tuple[str, str]] = {}
    """Reason and message of containers that wait to be started again."""
    unstarted: tuple[str, ...] = ()
    """Running containers whose startup probe has not succeeded yet."""
    over: bool = False
    """Nothing of it runs any more, for good."""
    eviction: Eviction | None = None
    resize_word: str = ""
    """Row 13: where the resize stands, on each container; empty: not published."""
    pod_level: bool = True
    """The gate InPlacePodLevelResourcesVerticalScaling."""


def with_words(found: dict[str, Any], reason: str, message: str) -> dict[str, Any]:
    """``found`` with its reason and message, as far as there are any."""
    if reason:
        found["reason"] = reason
    if message:
        found["message"] = message
    return found
