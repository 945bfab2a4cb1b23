"""The machine is being shut down: pods are ended by bands of priority, the least important first, and nothing new is let in.

As upstream, a kubelet without a shutdown grace period takes no notice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from elbowroom.api.objects import Node, Pod
from elbowroom.kubelet.config import KUBELET_CONFIG, ConfigError, duration
from elbowroom.kubelet.machinestate import MachineState
from elbowroom.kubelet.status.shown import Eviction
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Effect, Instant, Note, SetTimer, seconds

TIMER = "kubelet/shutdown"
TERMINATED_MESSAGE = "Pod was terminated in response to imminent node shutdown."
TERMINATED = Eviction("Terminated", TERMINATED_MESSAGE, fails=True, disruption=TERMINATED_MESSAGE)
CRITICAL = 2_000_000_000


# ---------------------------------------------------------------- configuration


@dataclass(frozen=True, slots=True)
class Band:
    """Pods of this priority and above, up to the next band's, have so many seconds."""

    priority: int
    grace_seconds: int


def bands_of(annotations: Mapping[str, str]) -> tuple[Band, ...]:
    """The bands of a kubelet's configuration, the least important first; none: no grace. ``ConfigError`` as upstream."""
    given = msgspec.json.decode(annotations.get(KUBELET_CONFIG) or "{}")
    whole = duration(str(given.get("shutdownGracePeriod") or "0"))
    critical = duration(str(given.get("shutdownGracePeriodCriticalPods") or "0"))
    listed = given.get("shutdownGracePeriodByPodPriority") or []
    if critical > whole:
        raise ConfigError(
            f"invalid configuration: shutdownGracePeriodCriticalPods {_go(given, 'shutdownGracePeriodCriticalPods')} must be <= "
            f"shutdownGracePeriod {_go(given, 'shutdownGracePeriod')}"
        )
    for name, amount in (("shutdownGracePeriod", whole), ("shutdownGracePeriodCriticalPods", critical)):
        if amount < 0 or 0 < amount < seconds(1):
            raise ConfigError(f"invalid configuration: {name} {_go(given, name)} must be either zero or otherwise >= 1 sec")
    if listed and (whole or critical):
        raise ConfigError(
            "invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"
        )
    if listed:
        return tuple(sorted((_band(entry) for entry in _entries(listed)), key=lambda band: band.priority))
    if not whole:
        return ()
    return (Band(0, (whole - critical) // seconds(1)), Band(CRITICAL, critical // seconds(1)))


def _go(given: Mapping[str, Any], name: str) -> str:
    return "{" + str(given.get(name) or "0s") + "}"


def _entries(listed: Any) -> list[Any]:
    if not isinstance(listed, list):
        raise ConfigError("shutdownGracePeriodByPodPriority: a list is expected")
    return listed


def _band(entry: Any) -> Band:
    values = (entry.get("priority"), entry.get("shutdownGracePeriodSeconds")) if isinstance(entry, dict) else (None, None)
    priority, grace = values
    if not isinstance(priority, int) or not isinstance(grace, int) or grace < 0:
        raise ConfigError("shutdownGracePeriodByPodPriority: each entry needs priority and shutdownGracePeriodSeconds")
    return Band(priority, grace)


def banded(bands: Sequence[Band], pods: Iterable[Pod]) -> list[tuple[Band, list[Pod]]]:
    """Which pods belong to which band; a pod below all bands belongs to the lowest."""
    found: list[tuple[Band, list[Pod]]] = [(band, []) for band in bands]
    for pod in pods:
        at = max((n for n, band in enumerate(bands) if band.priority <= pod.priority), default=0)
        found[at][1].append(pod)
    return found


# ---------------------------------------------------------------- the course of it


class Services(Protocol):
    """What a shutdown needs of its kubelet."""

    workers: dict[str, PodWorker]

    @property
    def node(self) -> Node: ...
    def emit(self, *effects: Effect) -> None: ...
    def tell_of_node(self, now: Instant, regarding: Mapping[str, str], kind: str, reason: str, message: str) -> None: ...


class Shutdown:
    """See the module. ``under_way``: the machine goes down, so nothing is admitted (RC-73)."""

    def __init__(self, kubelet: Services) -> None:
        self._kubelet = kubelet
        self.bands: tuple[Band, ...] = ()
        self.under_way = False
        self._left: list[tuple[Band, list[Pod]]] = []
        self._waits_for: set[str] = set()

    def looked(self, now: Instant, state: MachineState) -> bool:
        """The machine is in that state; True if a shutdown was cancelled, so that there is room for pods again."""
        wanted = state.shutting_down and bool(self.bands)
        if wanted == self.under_way:
            return False
        self.under_way = wanted
        words = "event" if wanted else "cancellation"
        node = self._kubelet.node
        regarding = {"kind": "Node", "name": node.name, "uid": node.name}  # upstream names it where a uid would stand
        self._kubelet.tell_of_node(now, regarding, "Normal", "NodeShutdown", f"Shutdown manager detected shutdown {words}")
        self._kubelet.emit(Note("kl.shutdown", {"node": node.name, "under_way": wanted}))
        if not wanted:
            self._left, self._waits_for = [], set()
            self._kubelet.emit(SetTimer(TIMER, None))
            return True
        self._left = banded(self.bands, [worker.pod for worker in self._kubelet.workers.values() if worker.active])
        self.next_band(now)
        return False

    def ended(self, now: Instant, uid: str) -> None:
        """That pod's containers have ended."""
        if uid in self._waits_for:
            self._waits_for.discard(uid)
            if not self._waits_for:
                self.next_band(now)

    def next_band(self, now: Instant) -> None:
        """End the next pods that there are; those of the band before have ended, or their time is over."""
        self._waits_for = set()
        while self._left and not self._waits_for:
            band, pods = self._left.pop(0)
            ending = [worker for pod in pods if (worker := self._kubelet.workers.get(pod.uid)) is not None and not worker.over]
            self._waits_for = {worker.uid for worker in ending}
            if ending:
                self._kubelet.emit(SetTimer(TIMER, Instant(now + seconds(band.grace_seconds))))
            for worker in ending:
                grace = min(band.grace_seconds, worker.pod.spec.termination_grace_period_seconds)
                worker.end(float(grace), TERMINATED)
                worker.sync(now)
        if not self._waits_for:
            self._kubelet.emit(SetTimer(TIMER, None))
