"""Events: the same one seen again is counted, not repeated."""

import random
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from elbowroom import rpc
from elbowroom.api.clock import as_time
from elbowroom.api.events import core_event
from elbowroom.controllers.kit import Told
from elbowroom.machine import Instant
from elbowroom.wire import ApiRequest

REMEMBERED = 4096


@dataclass(slots=True)
class _Seen:
    name: str
    namespace: str
    count: int


class Recorder:
    """Makes requests of events, and counts those of the last ones that come again."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._seen: OrderedDict[tuple[str, ...], _Seen] = OrderedDict()

    def record(self, now: Instant, told: Told) -> ApiRequest:
        """The request that tells it: a new Event, or a patch of the count of the one that said the same."""
        key = (told.regarding.get("uid", ""), told.regarding.get("name", ""), told.kind, told.reason, told.message, told.component)
        seen = self._seen.pop(key, None)
        if seen is not None:
            seen.count += 1
            self._seen[key] = seen
            patch = {"count": seen.count, "lastTimestamp": as_time(now)}
            return rpc.patch("events", seen.name, patch, namespace=seen.namespace, kind=rpc.MERGE_PATCH)
        event: dict[str, Any] = core_event(
            now, self._rng, dict(told.regarding), told.kind, told.reason, told.message, told.component
        )
        metadata = event["metadata"]
        self._seen[key] = _Seen(metadata["name"], metadata["namespace"], 1)
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return rpc.create("events", event, namespace=metadata["namespace"])

    def forget(self, name: str) -> None:
        """The event of that name is gone: the next like it is a new one."""
        for key in [key for key, seen in self._seen.items() if seen.name == name]:
            del self._seen[key]
