"""Events, without flooding the API server: what repeats itself is one event with a count.

Two events are the same if they say the same of the same revision of the same object; the second makes the first one a series, the
following ones are only counted, as upstream's recorder does.
"""

import random
from collections.abc import Mapping, Sequence

from elbowroom.api.clock import as_micro_time
from elbowroom.api.events import namespace_of, new_event, reference
from elbowroom.api.objects import Pod
from elbowroom.machine import Effect, Instant, seconds
from elbowroom.rpc import STRATEGIC_PATCH, Calls, create, patch

SERIES_SECONDS = 6 * 60
REMEMBERED_MAX = 4096
MESSAGE_BYTES_MAX = 1024


def truncated(message: str, limit: int = MESSAGE_BYTES_MAX) -> str:
    """The message in at most ``limit`` bytes, ending in `` ...`` if something was cut off (SC-81)."""
    raw = message.encode()
    if len(raw) <= limit:
        return message
    return raw[: limit - len(" ...")].decode(errors="ignore") + " ..."


class Recorder:
    """Writes events about pods; a lost one is not written again."""

    def __init__(self, calls: Calls, rng: random.Random) -> None:
        self._calls = calls
        self._rng = rng
        self._series: dict[tuple[str, ...], tuple[str, Instant, int]] = {}

    def tell(
        self, now: Instant, regarding: Pod, kind: str, reason: str, action: str, message: str, related: Pod | None = None
    ) -> Sequence[Effect]:
        """Effects that record the event, in the name of the profile that schedules the pod it is about (or the related one)."""
        component = (related or regarding).spec.scheduler_name
        about = reference("Pod", regarding.metadata)
        other = reference("Pod", related.metadata) if related is not None else None
        key = _key(about, kind, reason, action, message, other)
        known = self._series.pop(key, None)
        if known is not None and now - known[1] < seconds(SERIES_SECONDS):
            name, _, count = known
            self._series[key] = (name, now, count + 1)
            if count > 1:
                return ()
            series = {"series": {"count": 2, "lastObservedTime": as_micro_time(now)}}
            request = patch("events", name, series, namespace=namespace_of(about), kind=STRATEGIC_PATCH)
            return self._calls.api(now, request, context=None)
        document = new_event(now, self._rng, about, kind, reason, action, truncated(message), component, other)
        self._series[key] = (document["metadata"]["name"], now, 1)
        while len(self._series) > REMEMBERED_MAX:
            del self._series[next(iter(self._series))]
        return self._calls.api(now, create("events", document, namespace=namespace_of(about)), context=None)


def _key(
    about: Mapping[str, str], kind: str, reason: str, action: str, message: str, other: Mapping[str, str] | None
) -> tuple[str, ...]:
    return (*about.values(), kind, reason, action, message, other["uid"] if other else "")
