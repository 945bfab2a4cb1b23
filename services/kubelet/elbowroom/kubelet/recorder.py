"""Events: each is posted once, and one that repeats is counted instead (RC-150)."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from elbowroom.api.events import NAME_NS, core_event, namespace_of
from elbowroom.machine import Effect, Instant, as_time
from elbowroom.rpc import STRATEGIC_PATCH, Calls, Finished, create, patch

KEPT = 1024
TRIES = 12
TIMEOUT_SECONDS = 10.0


@dataclass(slots=True)
class _Known:
    document: dict[str, Any]
    last: Instant
    count: int = 1
    posted: bool = False
    in_flight: bool = False
    told: int = 0
    """The count that the API server knows."""
    tries: int = 0


@dataclass(slots=True)
class Recorder:
    """Posts events through ``calls`` with contexts ``("event", key)``; show their ends to ``finished``."""

    calls: Calls
    rng: random.Random
    host: str
    _known: dict[str, _Known] = field(default_factory=dict)
    _named: int = 0
    """The time in the last event's name."""

    def record(self, now: Instant, regarding: Mapping[str, str], kind: str, reason: str, message: str) -> list[Effect]:
        """Post the event, or count one more of it."""
        key = "|".join((regarding.get("uid", ""), regarding.get("fieldPath", ""), kind, reason, message))
        known = self._known.pop(key, None)
        if known is None:
            self._named = max(now, self._named + NAME_NS)  # events of one step are told in their order
            made = core_event(self._named, self.rng, regarding, kind, reason, message, "kubelet", self.host)
            known = _Known(made, last=now)
        else:
            known.count += 1
            known.last = now
        self._known[key] = known  # the most recent ones are last
        while len(self._known) > KEPT:
            self._known.pop(next(iter(self._known)))
        return self._send(now, key, known)

    def _send(self, now: Instant, key: str, known: _Known) -> list[Effect]:
        if known.in_flight or known.told == known.count:
            return []
        known.in_flight = True
        namespace = namespace_of(known.document["involvedObject"])
        context = ("event", key, known.count)
        if known.posted:
            body = {"count": known.count, "lastTimestamp": as_time(known.last)}
            name = known.document["metadata"]["name"]
            request = patch("events", name, body, namespace=namespace, kind=STRATEGIC_PATCH)
        else:
            body = {**known.document, "count": known.count, "lastTimestamp": as_time(known.last)}
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
            return self._send(now, key, known), False
        if status == 404 and known.posted:
            known.posted = False
            return self._send(now, key, known), False
        known.tries += 1
        if (0 < status < 500 and status != 429) or known.tries >= TRIES:
            known.told = known.count  # it is refused, or nobody listens: upstream drops it too
            return [], False
        return [], True

    def retry(self, now: Instant) -> list[Effect]:
        """Send again what failed."""
        return [effect for key, known in list(self._known.items()) for effect in self._send(now, key, known)]
