"""The calling side: open calls, their deadlines, and what each was for.

A machine asks with ``begin`` and shows every input to ``finished``. Each call ends exactly once: by its reply, by its
deadline (DEADLINE_EXCEEDED), or because the connection to the peer was replaced (UNAVAILABLE). The last two are
*indefinite*: the thing may have happened, and who asked must look before asking again.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from elbowroom.machine import Effect, Input, Instant, PeerConnected, Received, Send, SetTimer, TimerFired, seconds
from elbowroom.wire import ApiRequest, ApiResponse, Call, Code, MalformedError, Reply, decode_value, encode_value


class Finished(Struct, frozen=True):
    """A call ended. ``context`` is what the caller gave to ``begin``."""

    context: Any
    code: Code
    body: bytes
    message: str

    def api(self) -> ApiResponse:
        """The API server's answer; a call that got none reads as status 0 (outcome unknown if not ``code.definite``)."""
        if self.code is not Code.OK:
            return ApiResponse(status=0, body=msgspec.json.encode({"message": self.message or self.code.name}))
        try:
            return decode_value(self.body, ApiResponse)
        except MalformedError as why:
            return ApiResponse(status=0, body=msgspec.json.encode({"message": str(why)}))


class _Open(Struct, frozen=True):
    target: str
    deadline: Instant
    context: Any


class Calls:
    """The open calls of one machine. ``ids`` is shared with whoever else numbers calls and streams of that machine."""

    TIMER = "rpc/deadlines"

    def __init__(self, *, epoch: int = 0, ids: Iterator[int] | None = None) -> None:
        self._ids = ids or itertools.count(1)
        self._epoch = epoch
        self._open: dict[int, _Open] = {}
        self._armed: Instant | None = None

    def __len__(self) -> int:
        return len(self._open)

    def begin(
        self, now: Instant, target: str, method: str, body: Any = None, *, context: Any = None, timeout: float = 10.0
    ) -> list[Effect]:
        """Ask ``target``; ``body`` is a Struct or plain value. The end comes from ``finished`` within ``timeout`` seconds."""
        number = next(self._ids)
        deadline = Instant(now + seconds(timeout))
        self._open[number] = _Open(target, deadline, context)
        raw = b"" if body is None else encode_value(body)
        effects: list[Effect] = [Send(target, Call(number, method, raw, deadline, self._epoch))]
        if self._armed is None or deadline < self._armed:
            self._armed = deadline
            effects.append(SetTimer(self.TIMER, deadline))
        return effects

    def api(
        self, now: Instant, request: ApiRequest, *, context: Any = None, timeout: float = 10.0, target: str = "apiserver"
    ) -> list[Effect]:
        """Ask the API server; read the end with ``Finished.api()``."""
        return self.begin(now, target, "api", request, context=context, timeout=timeout)

    def finished(self, now: Instant, happened: Input) -> tuple[Sequence[Effect], Sequence[Finished]]:
        """The calls that ``happened`` ends, and effects of ours (the deadline timer)."""
        if type(happened) is Received and type(happened.message) is not Reply:
            return (), ()
        match happened:
            case Received(source, Reply() as reply):
                call = self._open.get(reply.id)
                if call is None or call.target != source:
                    return (), ()  # ended before, or somebody answers for another
                del self._open[reply.id]
                return (), (Finished(call.context, reply.code, reply.body, reply.message),)
            case TimerFired(self.TIMER):
                return self._expire(now)
            case PeerConnected(peer):
                lost = [number for number, call in self._open.items() if call.target == peer]
                return (), [
                    Finished(self._open.pop(number).context, Code.UNAVAILABLE, b"", f"the connection to {peer} was replaced")
                    for number in lost
                ]
            case _:
                return (), ()

    def forget(self, wanted: Any) -> None:
        """Drop open calls whose context equals ``wanted``: their end no longer interests anyone."""
        for number in [n for n, call in self._open.items() if call.context == wanted]:
            del self._open[number]

    def _expire(self, now: Instant) -> tuple[Sequence[Effect], Sequence[Finished]]:
        due = [number for number, call in self._open.items() if call.deadline <= now]
        ended = [Finished(self._open.pop(number).context, Code.DEADLINE_EXCEEDED, b"", "deadline exceeded") for number in due]
        self._armed = min((call.deadline for call in self._open.values()), default=None)
        return ([SetTimer(self.TIMER, self._armed)] if self._armed is not None else []), ended
