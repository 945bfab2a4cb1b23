"""Containers that end again and again: each waits longer before it is started once more, and the pod tells what it waits for."""

from typing import Protocol

import msgspec

from elbowroom.api.objects import Container, Pod
from elbowroom.kubelet import actuation, lifecycle
from elbowroom.kubelet.actuation import latest
from elbowroom.kubelet.lifecycle import CrashBackoff
from elbowroom.machine import Instant
from elbowroom.wire.cri import SandboxState

REASON = "CrashLoopBackOff"


class Services(Protocol):
    """What is needed of the kubelet."""

    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...


class Owner(Protocol):
    """What is needed of the pod's worker."""

    pod: Pod
    sandbox: SandboxState | None
    over: bool

    @property
    def allocated_pod(self) -> Pod: ...
    @property
    def ending(self) -> bool: ...


class CrashLoop:
    """One pod's. ``waiting`` has reason and message of containers that wait to be started, by name."""

    __slots__ = (
        "_backoff",
        "_kubelet",
        "_owner",
        "waiting",
    )

    def __init__(self, kubelet: Services, owner: Owner) -> None:
        self._kubelet, self._owner = kubelet, owner
        self.waiting: dict[str, tuple[str, str]] = {}
        self._backoff: dict[str, CrashBackoff] = {}

    def restarted(self, now: Instant, container: Container) -> None:
        """It is started once more: next time it waits longer."""
        self._backoff[container.name] = lifecycle.counted(self._backoff.get(container.name), _key(container), now)

    def runs(self, container: Container) -> None:
        """It waits no longer."""
        self.waiting.pop(container.name, None)

    def delayed(self, now: Instant) -> dict[str, Instant]:
        """By name, until when containers that have ended are not to be started."""
        if not self._backoff:
            return {}
        states = latest(self._owner.sandbox)
        found = {}
        for container in actuation.containers_of(self._owner.allocated_pod):
            state = states.get(container.name)
            if state is None or state.state != "exited":
                continue
            at = lifecycle.delay_until(self._backoff.get(container.name), _key(container), state)
            if at is not None and at > now:
                found[container.name] = at
        return found

    def tell(self, now: Instant) -> None:
        """Containers in crash back-off say so."""
        owner, waiting = self._owner, self.waiting
        if not (waiting or self._backoff):
            return
        delayed = {} if owner.ending or owner.over else self.delayed(now)
        states = latest(owner.sandbox)
        for name in list(waiting):
            if waiting[name][0] == REASON and name not in delayed:
                del waiting[name]
        for container in actuation.containers_of(owner.allocated_pod):
            state = states.get(container.name)
            if container.name not in delayed or state is None:
                continue
            if not container.is_sidecar and not lifecycle.may_restart(owner.pod, state):
                continue
            meta = owner.pod.metadata
            where = f"{meta.name}_{meta.namespace}({meta.uid})"
            wait = _go_duration(self._backoff[container.name].wait_ns)
            words = f"back-off {wait} restarting failed container={container.name} pod={where}"
            if waiting.get(container.name) != (REASON, words):
                waiting[container.name] = (REASON, words)
                told = f"Back-off restarting failed container {container.name} in pod {where}"
                self._kubelet.event(now, owner.pod, "Warning", "BackOff", told, container)


def _key(container: Container) -> str:
    return f"{container.image}|{msgspec.json.encode(container.resources, order='sorted').decode()}"


def _go_duration(ns: int) -> str:
    """``10s``, ``1m20s``, ``5m0s``: as Go prints a duration of whole seconds."""
    whole = ns // 1_000_000_000
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60}s"
