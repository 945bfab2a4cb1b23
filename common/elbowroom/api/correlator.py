"""Which events are told at all: similar ones become one, repeated ones a count, and a flood is held back.

client-go's correlator with its defaults, for one source of core/v1 events. Of an object 25 events may be told at once and one more
every five minutes; the tenth within ten minutes that differs from others only in its message, and those behind it, are told as one
``(combined from similar events): ...``. What is held back is counted all the same.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

BURST = 25
REFILL_NS = 300 * 1_000_000_000
SIMILAR_MAX = 10
SIMILAR_NS = 600 * 1_000_000_000
REMEMBERED = 4096
COMBINED = "(combined from similar events): "

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The values of the keys used last."""

    def __init__(self, room: int = REMEMBERED) -> None:
        self._room = room
        self._kept: OrderedDict[str, Value] = OrderedDict()

    def get(self, key: str) -> Value | None:
        """Using it counts."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key]

    def put(self, key: str, value: Value) -> Value:
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._room:
            self._kept.popitem(last=False)
        return value

    def values(self) -> list[Value]:
        """The oldest first."""
        return list(self._kept.values())


@dataclass(slots=True)
class _Similar:
    last: int
    messages: tuple[str, ...] = ()
    """Hardly ever more than one."""


@dataclass(slots=True)
class _Allowance:
    left: float
    at: int


@dataclass(frozen=True, slots=True)
class Correlated:
    """What to tell: events with the same ``key`` are one, counted. Nothing, this time, if ``held_back``."""

    key: str
    message: str
    held_back: bool


class Correlator:
    """See the module."""

    def __init__(self) -> None:
        self._similar: Recent[_Similar] = Recent()
        self._allowances: Recent[_Allowance] = Recent()

    def correlate(self, now: int, regarding: Mapping[str, str], kind: str, reason: str, message: str) -> Correlated:
        """An event happened: is it told, and as what?"""
        about = "\x00".join(regarding.get(part, "") for part in ("kind", "namespace", "name", "uid", "apiVersion"))
        alike = "\x00".join((about, kind, reason))
        similar = self._similar.get(alike)
        if similar is None or now - similar.last > SIMILAR_NS:
            similar = self._similar.put(alike, _Similar(now))
        similar.last = now
        if message not in similar.messages:
            similar.messages = (*similar.messages, message)
        if len(similar.messages) < SIMILAR_MAX:
            key = "\x00".join((alike, regarding.get("fieldPath", ""), message))
            return Correlated(key, message, not self._is_allowed(now, about))
        similar.messages = similar.messages[:-1]  # upstream drops any of them
        return Correlated(alike, COMBINED + message, not self._is_allowed(now, about))

    def _is_allowed(self, now: int, about: str) -> bool:
        allowance = self._allowances.get(about) or self._allowances.put(about, _Allowance(BURST, now))
        allowance.left = min(BURST, allowance.left + (now - allowance.at) / REFILL_NS)
        allowance.at = now
        if allowance.left < 1:
            return False
        allowance.left -= 1
        return True
