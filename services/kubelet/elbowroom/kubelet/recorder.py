"""Events: each is posted once, one that repeats is counted instead, and a flood is held back as upstream's is (RC-150)."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from elbowroom.api.correlator import Correlator, Recent
from elbowroom.api.events import NAME_NS, core_event, namespace_of
from elbowroom.machine import Effect, Instant, as_time
from elbowroom.rpc import STRATEGIC_PATCH, Calls, Finished, create, patch

KEPT = 1024
TRIES = 12
TIMEOUT_SECONDS = 10.0


@dataclass(slots=True)
class _Known:
    key: str
    document: dict[str, Any]
    last: Instant
    count: int = 0
    posted: bool = False
    in_flight: bool = False
    wanted: int = 0
    """The count that is to be told: of the last one that was not held back."""
    told: int = 0
    """The count that the API server knows."""
    tries: int = 0


@dataclass(slots=True)
class Recorder:
    """Posts events through ``calls`` with contexts ``("event", key)``; show their ends to ``finished``."""

    calls: Calls
    rng: random.Random
    host: str
    _known: Recent[_Known] = field(default_factory=lambda: Recent(KEPT))
    _correlator: Correlator = field(default_factory=Correlator)
    _named: int = 0
    """The time in the last event's name."""

    def record(self, now: Instant, regarding: Mapping[str, str], kind: str, reason: str, message: str) -> list[Effect]:
        """Post the event, count one more of it, or hold it back."""
        event = self._correlator.correlate(now, regarding, kind, reason, message)
        known = self._known.get(event.key)
        if known is None:
            self._named = max(now, self._named + NAME_NS)  # events of one step are told in their order
            made = core_event(self._named, self.rng, regarding, kind, reason, event.message, "kubelet", self.host)
            known = self._known.put(event.key, _Known(event.key, made, now))
        known.count += 1
        known.last = now
        known.document["message"] = event.message
        if event.held_back:
            return []
        known.wanted = known.count
        return self._send(now, known)

    def _send(self, now: Instant, known: _Known) -> list[Effect]:
        if known.in_flight or known.told == known.wanted:
            return []
        known.in_flight = True
        document = known.document
        namespace = namespace_of(document["involvedObject"])
        context = ("event", known.key, known.wanted)
        if known.posted:
            body = {"count": known.wanted, "lastTimestamp": as_time(known.last), "message": document["message"]}
            request = patch("events", document["metadata"]["name"], body, namespace=namespace, kind=STRATEGIC_PATCH)
        else:
            body = {**document, "count": known.wanted, "lastTimestamp": as_time(known.last)}
            request = create("events", body, namespace=namespace)
        return self.calls.api(now, request, context=context, timeout=TIMEOUT_SECONDS)

    def finished(self, now: Instant, end: Finished) -> tuple[list[Effect], bool]:
        """What follows from the end of one of our calls; True if it should be tried again later, by ``retry``."""
        _, key, count = end.context
        known = self._known.get(key)
        if known is None:
            return [], False
        known.in_flight = False
        status = end.api().status
        if 200 <= status < 300 or status == 409:
            known.posted, known.told, known.tries = True, count, 0
            return self._send(now, known), False
        if status == 404 and known.posted:
            known.posted = False
            return self._send(now, known), False
        known.tries += 1
        if (0 < status < 500 and status != 429) or known.tries >= TRIES:
            known.told = known.wanted  # it is refused, or nobody listens: upstream drops it too
            return [], False
        return [], True

    def retry(self, now: Instant) -> list[Effect]:
        """Send again what failed."""
        return [effect for known in self._known.values() for effect in self._send(now, known)]
