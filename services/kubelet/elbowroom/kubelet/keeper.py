"""Keeps the Node object and its Lease as they should be."""

import random
from collections.abc import Mapping
from typing import Any, Protocol

from elbowroom.api.objects import Node
from elbowroom.kubelet import node as documents
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.machinestate import MachineState
from elbowroom.machine import Effect, Instant, Note, SetTimer, on_beat, seconds
from elbowroom.rpc import MERGE_PATCH, Calls, Finished, create, patch

LEASE, NODE = "kubelet/lease", "kubelet/node"
"""Its timers."""
RETRY_SECONDS = 1.0
SAME_STATUS_SECONDS = 10.0
"""What was just written and is not there all the same is not written again at once."""


class Services(Protocol):
    """What the keeper needs of its kubelet."""

    config: KubeletConfig
    machine_state: MachineState

    @property
    def node(self) -> Node: ...
    def emit(self, *effects: Effect) -> None: ...
    def not_ready(self, now: Instant) -> str: ...


class NodeKeeper:
    """Contexts of its calls: ``("node", what)``; what is ``status``, ``labels``, ``renew`` or ``lease``."""

    def __init__(self, kubelet: Services, calls: Calls, rng: random.Random) -> None:
        self._kubelet, self._calls, self._rng = kubelet, calls, rng
        self._in_flight = False
        self._dirty = False
        self._said: tuple[Any, Instant] | None = None
        self._has_lease = False
        self._heartbeat_at = Instant(0)

    def update(self, now: Instant) -> None:
        """Write what of the Node is not as it should be, and a heartbeat when it is due."""
        if self._in_flight:
            self._dirty = True
            return
        node = self._kubelet.node
        missing = documents.missing_labels(node)
        if missing:
            self._patch(now, "labels", {"metadata": {"labels": missing}})
        heartbeat = now >= self._heartbeat_at
        kubelet = self._kubelet
        pressure = kubelet.machine_state.pressure
        wanted = documents.status(now, node, kubelet.config, kubelet.not_ready(now), heartbeat=heartbeat, pressure=pressure)
        if not wanted:
            return
        told = _without_times(wanted)
        if not heartbeat and self._said is not None and self._said[0] == told:
            again = Instant(self._said[1] + seconds(SAME_STATUS_SECONDS))
            if now < again:
                self._kubelet.emit(SetTimer(NODE, again))
                return
        self._in_flight, self._dirty = True, False
        self._said = (told, now)
        self._heartbeat_at = Instant(now + seconds(documents.STATUS_SECONDS))
        self._kubelet.emit(SetTimer(NODE, self._heartbeat_at))
        self._patch(now, "status", {"status": wanted}, "status")

    def renew(self, now: Instant) -> None:
        """Renew the Lease, and set the timer for the next time. A Node that was never heard of has none yet, so it is made."""
        wait = seconds(documents.RENEW_SECONDS * (1 + 0.04 * self._rng.random()))
        self._kubelet.emit(SetTimer(LEASE, on_beat(now + wait, seconds(documents.RENEW_BEAT_SECONDS))))
        if self._has_lease or self._kubelet.node.condition("Ready") is not None:
            self._patch_lease(now)
        else:
            self._make_lease(now)

    def _patch_lease(self, now: Instant) -> None:
        body = documents.renewal(now, self._kubelet.node.name)
        request = patch(
            "leases.coordination.k8s.io",
            self._kubelet.node.name,
            body,
            namespace=documents.LEASE_NAMESPACE,
            kind=MERGE_PATCH,
        )
        self._kubelet.emit(*self._calls.api(now, request, context=("node", "renew")))

    def _make_lease(self, now: Instant) -> None:
        made = documents.lease(now, self._kubelet.node)
        request = create("leases.coordination.k8s.io", made, namespace=documents.LEASE_NAMESPACE)
        self._kubelet.emit(*self._calls.api(now, request, context=("node", "lease")))

    def finished(self, now: Instant, what: str, end: Finished) -> None:
        """One of its calls ended."""
        answer = end.api()
        if what == "renew" and answer.status == 404:
            self._make_lease(now)
        elif what == "lease":
            self._has_lease = self._has_lease or answer.status in (201, 409)
            if answer.status == 409:
                self._patch_lease(now)
        if what != "status":
            return
        self._in_flight = False
        if not 200 <= answer.status < 300 and answer.status != 404:
            self._said = None
            self._heartbeat_at = now
            why = answer.body[:300].decode(errors="replace")
            self._kubelet.emit(Note("kl.api.failed", {"what": "node", "status": answer.status, "why": why}))
            self._kubelet.emit(SetTimer(NODE, Instant(now + seconds(RETRY_SECONDS))))
        elif self._dirty:
            self.update(now)

    def _patch(self, now: Instant, what: str, body: Mapping[str, Any], subresource: str = "") -> None:
        request = patch("nodes", self._kubelet.node.name, body, subresource=subresource)
        self._kubelet.emit(*self._calls.api(now, request, context=("node", what)))


def _without_times(wanted: Mapping[str, Any]) -> Any:
    conditions = [{k: v for k, v in c.items() if not k.endswith("Time")} for c in wanted.get("conditions", ())]
    return {**wanted, "conditions": conditions}
