"""Is a resize that was granted under way, or done? (RC-132, RC-133)"""

from typing import Protocol

from msgspec.structs import replace

from elbowroom.api.objects import Container, Pod
from elbowroom.kubelet import actuation
from elbowroom.kubelet.allocation import summary
from elbowroom.kubelet.checkpoint import PodResources
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.status.shown import ResizeCondition
from elbowroom.machine import Effect, Instant, Note
from elbowroom.wire.cri import SandboxState


class Services(Protocol):
    """What is needed of the kubelet."""

    scaling: Scaling

    def emit(self, *effects: Effect) -> None: ...
    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...


class Owner(Protocol):
    """What is needed of the pod's worker."""

    pod: Pod
    sandbox: SandboxState | None
    over: bool
    pending: ResizeCondition | None
    in_progress: ResizeCondition | None

    @property
    def uid(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def layer(self) -> PodResources | None: ...
    @property
    def actuated(self) -> PodResources: ...
    @property
    def allocated_pod(self) -> Pod: ...
    @property
    def midway(self) -> bool: ...


class Progress:
    """One pod's. It sets and removes ``Owner.in_progress``, and tells of what is completed."""

    __slots__ = (
        "_completed",
        "_kubelet",
        "_owner",
    )

    def __init__(self, kubelet: Services, owner: Owner) -> None:
        self._kubelet, self._owner = kubelet, owner
        self._completed = False
        """Some resize was carried out in this life."""

    def judge(self, now: Instant) -> None:
        """Look whether the pod has what it was allocated."""
        kubelet, owner = self._kubelet, self._owner
        if owner.layer is None or owner.over:
            return
        pod = owner.allocated_pod
        held = kubelet.scaling.holds_back(owner.uid, owner.sandbox, under_way=owner.in_progress is not None)
        going_on = held or actuation.in_progress(pod, owner.actuated, owner.sandbox)
        if going_on:
            known = owner.in_progress or ResizeCondition("", "", pod.metadata.generation, now, now)
            owner.in_progress = replace(known, probed=now)
        elif owner.in_progress is not None and not owner.midway:
            generation = owner.in_progress.generation
            owner.in_progress, self._completed = None, True
            message = f"Pod resize completed: {summary(pod, generation)}"
            kubelet.event(now, owner.pod, "Normal", "ResizeCompleted", message)
            kubelet.emit(Note("kl.resized", {"pod": owner.key, "uid": owner.uid, "gen": generation}))

    @property
    def word(self) -> str:
        """Where the resize stands, in a word; empty if there was none."""
        if self._owner.pending is not None:
            return self._owner.pending.reason
        if self._owner.in_progress is not None:
            return "InProgress"
        return "Succeeded" if self._completed else ""
