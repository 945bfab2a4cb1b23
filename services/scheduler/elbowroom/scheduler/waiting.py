"""Pods that have a node and wait for leave to be bound there (a Permit plugin said so): neither queued nor bound, but counted.

Each waits until every plugin that asked for it has let it go, or the first one's patience ends.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from elbowroom.machine import Instant, seconds
from elbowroom.scheduler.podinfo import PodInfo
from elbowroom.scheduler.queue import QueuedPod
from elbowroom.scheduler.status import Wait


@dataclass(slots=True)
class WaitingPod:
    """``info`` is the pod as if it were on its node already; ``facts`` are told when it is bound."""

    entry: QueuedPod
    info: PodInfo
    node: str
    since: Instant
    waits: tuple[Wait, ...]
    facts: Mapping[str, Any]
    until: dict[str, Instant] = field(init=False)
    """When each plugin's patience ends."""

    def __post_init__(self) -> None:
        self.until = {wait.plugin: Instant(self.since + seconds(wait.seconds)) for wait in self.waits}


class WaitingPods:
    """By uid."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def add(self, pod: WaitingPod) -> None:
        self._pods[pod.info.uid] = pod

    def take(self, uid: str) -> WaitingPod | None:
        """The pod waits no more, for whatever reason; None if it did not."""
        return self._pods.pop(uid, None)

    def allow(self, uid: str, plugin: str) -> WaitingPod | None:
        """That plugin lets the pod go; the pod, if that was the last one it waited for."""
        pod = self._pods.get(uid)
        if pod is None:
            return None
        pod.until.pop(plugin, None)
        return self.take(uid) if not pod.until else None

    def due(self) -> Instant | None:
        """When somebody's patience ends next."""
        return min((moment for pod in self._pods.values() for moment in pod.until.values()), default=None)

    def expired(self, now: Instant) -> Iterator[tuple[WaitingPod, Wait]]:
        """Those who waited too long, with the wait that ended; they wait no more."""
        for pod in list(self._pods.values()):
            over = [wait for wait in pod.waits if wait.plugin in pod.until and pod.until[wait.plugin] <= now]
            if over:
                del self._pods[pod.info.uid]
                yield pod, over[0]


def go_duration(amount: float) -> str:
    """As Go writes a duration of whole seconds: ``5m0s``, ``30s``, ``1h0m0s``."""
    hours, rest = divmod(round(amount), 3600)
    minutes, left = divmod(rest, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{left}s"
