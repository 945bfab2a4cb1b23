"""``events``: container events for whoever listens, with credit, sequence numbers and bookmarks.

An event only says which sandbox to look at, so while a listener has no credit left its events wait one a container, and a
listener that reads nothing costs no more than that. A bookmark 0.2 s after the last event reveals a lost tail; after that one every
5 s shows that the stream lives. Each caller has one stream: its next one replaces it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from elbowroom.machine import Effect, Instant, Send, SetTimer, on_beat, seconds
from elbowroom.wire import Call, StreamBookmark, StreamEvent
from elbowroom.wire.cri import ContainerEvent

TIMER = "events/bookmark"
TAIL_SECONDS, ALIVE_SECONDS = 0.2, 5.0
ALIVE_BEAT = seconds(0.25)


@dataclass(slots=True)
class _Listener:
    id: int
    credit: int
    sequence: int = 0
    revision: int = 0
    waiting: dict[tuple[str, str], ContainerEvent] = field(default_factory=dict)


class Feed:
    """The open event streams of a runtime."""

    def __init__(self) -> None:
        self._listeners: dict[str, _Listener] = {}
        self._revision = 0
        self._armed: Instant | None = None

    def open(self, now: Instant, source: str, call: Call) -> list[Effect]:
        """Serve ``call``'s stream to ``source`` from now on."""
        self._revision = max(self._revision, now)
        self._listeners[source] = _Listener(call.id, max(0, call.credit), revision=self._revision)
        opened = Send(source, StreamBookmark(call.id, 0, self._revision, initial_end=True))
        return [opened, *self._arm(on_beat(now + seconds(ALIVE_SECONDS), ALIVE_BEAT))]

    def grant(self, source: str, stream: int, amount: int) -> list[Effect]:
        """``source`` can take ``amount`` more events."""
        listener = self._listeners.get(source)
        if listener is None or listener.id != stream:
            return []
        listener.credit += max(0, amount)
        return self._flush(source, listener)

    def cancel(self, source: str, stream: int) -> None:
        listener = self._listeners.get(source)
        if listener is not None and listener.id == stream:
            del self._listeners[source]

    def tell(self, now: Instant, events: Iterable[ContainerEvent]) -> list[Effect]:
        """Tell everybody."""
        told = list(events)
        if not told or not self._listeners:
            return []
        effects: list[Effect] = []
        for source, listener in self._listeners.items():
            for event in told:
                listener.waiting[event.sandbox, event.container] = event
            effects += self._flush(source, listener)
        return [*effects, *self._arm(Instant(now + seconds(TAIL_SECONDS)))]

    def on_timer(self, now: Instant) -> list[Effect]:
        """Send the bookmarks that are due."""
        self._armed = None
        marks: list[Effect] = [Send(s, StreamBookmark(x.id, x.sequence, x.revision)) for s, x in self._listeners.items()]
        return [*marks, *(self._arm(on_beat(now + seconds(ALIVE_SECONDS), ALIVE_BEAT)) if marks else [])]

    def _flush(self, source: str, listener: _Listener) -> list[Effect]:
        effects: list[Effect] = []
        while listener.credit > 0 and listener.waiting:
            event = listener.waiting.pop(next(iter(listener.waiting)))
            self._revision += 1
            listener.credit -= 1
            listener.sequence += 1
            raw = msgspec.json.encode(event)
            message = StreamEvent(listener.id, listener.sequence, self._revision, listener.revision, "MODIFIED", raw)
            effects.append(Send(source, message))
            listener.revision = self._revision
        return effects

    def _arm(self, at: Instant) -> list[Effect]:
        if self._armed is not None and self._armed <= at:
            return []
        self._armed = at
        return [SetTimer(TIMER, at)]
