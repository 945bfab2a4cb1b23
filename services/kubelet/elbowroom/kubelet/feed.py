"""The runtime's container events: a stream that is opened again, and the runtime listed, wherever something may be missing."""

from collections.abc import Iterator, Sequence

import msgspec

from elbowroom.cache import Backoff
from elbowroom.machine import Effect, Input, Instant, Note, PeerConnected, Received, Send, SetTimer, TimerFired, on_beat, seconds
from elbowroom.wire import Call, Reply, StreamBookmark, StreamCancel, StreamCredit, StreamEnd, StreamEvent
from elbowroom.wire.cri import ContainerEvent

CREDIT = 256
SILENCE_SECONDS = 15.0
SILENCE_BEAT = seconds(0.5)
TIMER = "runtime/events"


class RuntimeFeed:
    """Show it every input. ``handle`` gives effects, the events, and whether all must be looked at again."""

    def __init__(self, runtime: str, ids: Iterator[int], epoch: int) -> None:
        self._runtime, self._ids, self._epoch = runtime, ids, epoch
        self._id = 0
        self._sequence = 0
        self._spent = 0
        self._heard = Instant(0)
        self._backoff = Backoff(0.1, 5.0)

    def open(self, now: Instant) -> list[Effect]:
        """Open the stream anew."""
        effects: list[Effect] = [Send(self._runtime, StreamCancel(self._id))] if self._id else []
        self._id = next(self._ids)
        self._sequence = self._spent = 0
        self._heard = now
        effects.append(Send(self._runtime, Call(self._id, "events", epoch=self._epoch, credit=CREDIT)))
        effects.append(SetTimer(TIMER, on_beat(now + seconds(SILENCE_SECONDS), SILENCE_BEAT)))
        return effects

    def handle(self, now: Instant, happened: Input) -> tuple[Sequence[Effect], Sequence[ContainerEvent], bool]:
        """What follows from an input: effects, events in their order, and whether some were missed."""
        if type(happened) is Received and getattr(happened.message, "id", 0) != self._id:
            return (), (), False  # of another stream, or a call's
        match happened:
            case Received(_, StreamEvent(id=self._id) as event):
                if event.sequence <= self._sequence:
                    return (), (), False
                if event.sequence != self._sequence + 1:
                    return self._broken(now, f"event {event.sequence} after {self._sequence}"), (), True
                return self._taken(now, event)
            case Received(_, StreamBookmark(id=self._id) as mark):
                if mark.sequence > self._sequence:
                    return self._broken(now, f"{mark.sequence} events were sent, {self._sequence} came"), (), True
                self._heard = now
                self._backoff.reset("open")
                return (), (), False
            case Received(_, StreamEnd(id=self._id) as end):
                return self._broken(now, f"{end.code.name}: {end.message}"), (), True
            case Received(_, Reply(id=self._id) as reply):
                return self._broken(now, f"{reply.code.name}: {reply.message}"), (), True
            case TimerFired(name) if name == TIMER:
                return self._on_timer(now)
            case PeerConnected(self._runtime):
                return self.open(now), (), True
            case _:
                return (), (), False

    def _taken(self, now: Instant, event: StreamEvent) -> tuple[list[Effect], Sequence[ContainerEvent], bool]:
        self._heard = now
        self._sequence = event.sequence
        effects: list[Effect] = []
        self._spent += 1
        if self._spent >= CREDIT // 2:
            effects.append(Send(self._runtime, StreamCredit(self._id, self._spent)))
            self._spent = 0
        try:
            return effects, (msgspec.json.decode(event.object, type=ContainerEvent),), False
        except msgspec.MsgspecError:
            return effects, (), True

    def _on_timer(self, now: Instant) -> tuple[list[Effect], Sequence[ContainerEvent], bool]:
        ends = on_beat(self._heard + seconds(SILENCE_SECONDS), SILENCE_BEAT)
        if self._id and now < ends:
            return [SetTimer(TIMER, ends)], (), False
        return self.open(now), (), True

    def _broken(self, now: Instant, why: str) -> list[Effect]:
        cancel = Send(self._runtime, StreamCancel(self._id))
        self._id = 0
        again = Instant(now + self._backoff.next("open"))
        return [cancel, Note("watch.broken", {"watch": "runtime", "why": why}), SetTimer(TIMER, again)]
