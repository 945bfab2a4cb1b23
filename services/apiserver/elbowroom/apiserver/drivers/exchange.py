"""Calls and streams from the facade to its machine: each is a peer ``http/N`` of its own, so nothing has to be told apart."""

import asyncio
import itertools
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from elbowroom.apiserver.statuses import ApiError
from elbowroom.machine import Input, Received
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Code,
    MalformedError,
    Reply,
    StreamBookmark,
    StreamCancel,
    StreamCredit,
    StreamEnd,
    StreamEvent,
    decode_value,
    encode_value,
)

PREFIX = "http/"
ANSWER_SECONDS = 60.0
WATCH_CREDIT = 256
CREDIT_GRANTED = WATCH_CREDIT // 4
"""Credit is granted in such portions: each is a step of the machine."""


class Waiting(Protocol):
    """Who waits for messages of the machine's."""

    def take(self, message: Any) -> None: ...


class Answer:
    """Waits for one Reply."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def take(self, message: Any) -> None:
        if isinstance(message, Reply) and not self.future.done():
            self.future.set_result(message)


class _Prompt:
    """Does something with the one Reply as soon as it comes, in the midst of the machine's other effects."""

    __slots__ = ("_exchange", "_peer", "_told", "timer")

    def __init__(self, exchange: "Exchange", peer: str, told: Callable[[Reply | None], None]) -> None:
        self._exchange, self._peer, self._told = exchange, peer, told
        self.timer: asyncio.TimerHandle | None = None

    def take(self, message: Any) -> None:
        if isinstance(message, Reply):
            self._end(message)

    def expire(self) -> None:
        self._end(None)

    def _end(self, reply: Reply | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self._exchange.forget(self._peer):
            try:
                self._told(reply)
            except Exception:
                traceback.print_exc()  # the machine, whose effects are carried out here, must not fail on it


class Stream:
    """What came of a watch and is not written yet; bounded by the credit.

    Its writer waits for ``wake``. While it has a ``flush``, that is called instead, in the next turn of the loop, for events.
    """

    __slots__ = ("_exchange", "closed", "end", "events", "flush", "is_due", "number", "owed", "peer", "wake")

    def __init__(self, exchange: "Exchange", number: int) -> None:
        self._exchange = exchange
        self.number, self.peer = number, f"{PREFIX}{number}"
        self.owed = 0
        """How many events were written for which no credit was granted yet."""
        self.flush: Callable[[], None] | None = None
        self.is_due = False
        self.events: deque[StreamEvent | StreamBookmark] = deque()
        self.end: StreamEnd | Reply | None = None
        self.closed = False
        self.wake = asyncio.Event()

    def take(self, message: Any) -> None:
        if isinstance(message, StreamEvent | StreamBookmark):
            self.events.append(message)
            if self.flush is not None:
                if not self.is_due:
                    self._exchange.flush_soon(self)
                return
        elif isinstance(message, StreamEnd | Reply):
            self.end = message
        self.wake.set()

    def close(self) -> None:
        """The client went, its time is over, or the server stops."""
        self.closed = True
        self.wake.set()


class Exchange:
    """What has been asked of the machine and not answered yet."""

    def __init__(self) -> None:
        self.post: Callable[[Input], None] = lambda happened: None
        """How the machine is told."""
        self._numbers = itertools.count(1)
        self._waiting: dict[str, Waiting] = {}
        self._due: list[Stream] = []

    def flush_soon(self, stream: Stream) -> None:
        """Let ``stream`` write what came, once all that is told in this turn of the loop was told."""
        stream.is_due = True
        self._due.append(stream)
        if len(self._due) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        due, self._due = self._due, []
        for stream in due:
            stream.is_due = False
            if stream.flush is not None:
                stream.flush()
            else:
                stream.wake.set()

    def register(self, peer: str, waiting: Waiting) -> None:
        """Let ``waiting`` have what is sent to ``peer``, for good."""
        self._waiting[peer] = waiting

    def deliver(self, peer: str, message: Any) -> None:
        """A message for ``peer``; one that nobody waits for any more is dropped."""
        waiting = self._waiting.get(peer)
        if waiting is not None:
            waiting.take(message)

    def buffered(self, peer: str) -> int:
        """How many messages of ``peer``'s watch wait to be written."""
        waiting = self._waiting.get(peer)
        return len(waiting.events) if isinstance(waiting, Stream) else 0

    def close_streams(self) -> None:
        """End every watch."""
        for waiting in list(self._waiting.values()):
            if isinstance(waiting, Stream):
                waiting.close()

    def forget(self, peer: str) -> bool:
        """Nobody waits as ``peer`` any more; False if nobody did."""
        return self._waiting.pop(peer, None) is not None

    async def settle(self, seconds: float) -> None:
        """Let those who wait for one answer have it, for so long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while any(isinstance(waiting, _Prompt) for waiting in self._waiting.values()) and loop.time() < until:
            await asyncio.sleep(0.01)

    def ask_promptly(self, asked: ApiRequest, told: Callable[[ApiResponse | ApiError], None]) -> None:
        """``told`` what ``ask`` would return or raise, maybe before this returns. It may not raise."""

        def answered(reply: Reply | None) -> None:
            try:
                found: ApiResponse | ApiError = _response(reply)
            except ApiError as why:
                found = why
            told(found)

        number = next(self._numbers)
        peer = f"{PREFIX}{number}"
        waiting = self._waiting[peer] = _Prompt(self, peer, answered)
        self.post(Received(peer, Call(number, "api", encode_value(asked))))
        if peer in self._waiting:
            waiting.timer = asyncio.get_running_loop().call_later(ANSWER_SECONDS, waiting.expire)

    async def ask(self, asked: ApiRequest) -> ApiResponse:
        """The registry's answer."""
        number = next(self._numbers)
        peer = f"{PREFIX}{number}"
        waiting = self._waiting[peer] = Answer()
        try:
            self.post(Received(peer, Call(number, "api", encode_value(asked))))
            if waiting.future.done():
                reply = waiting.future.result()
            else:
                async with asyncio.timeout(ANSWER_SECONDS):
                    reply = await waiting.future
        except TimeoutError:
            return _response(None)
        finally:
            del self._waiting[peer]
        return _response(reply)

    def watch(self, asked: ApiRequest) -> Stream:
        """Begin a watch; whoever does must ``leave`` it."""
        number = next(self._numbers)
        stream = Stream(self, number)
        self._waiting[stream.peer] = stream
        self.post(Received(stream.peer, Call(number, "watch", encode_value(asked), credit=WATCH_CREDIT)))
        return stream

    def grant(self, stream: Stream, events: int) -> None:
        """So many events of a watch are written, so that many more may come."""
        stream.owed += events
        if stream.owed >= CREDIT_GRANTED:
            events, stream.owed = stream.owed, 0
            self.post(Received(stream.peer, StreamCredit(stream.number, events)))

    def leave(self, stream: Stream) -> None:
        """Nobody reads a watch any more."""
        del self._waiting[stream.peer]
        if stream.end is None:
            self.post(Received(stream.peer, StreamCancel(stream.number)))


def _response(reply: Reply | None) -> ApiResponse:
    """What a reply, or none in all the time, says."""
    if reply is None:
        message = "the server was unable to return a response in the time allotted, but may still be processing the request"
        raise ApiError(504, "Timeout", message, {})
    if reply.code is not Code.OK:
        raise unanswered(reply.code, reply.message)
    try:
        return decode_value(reply.body, ApiResponse)
    except MalformedError as why:
        raise unanswered(Code.INTERNAL, str(why)) from why


_HTTP = {
    Code.INVALID_ARGUMENT: (400, "BadRequest"),
    Code.NOT_FOUND: (404, "NotFound"),
    Code.PERMISSION_DENIED: (403, "Forbidden"),
    Code.UNIMPLEMENTED: (405, "MethodNotAllowed"),
    Code.OUT_OF_RANGE: (410, "Expired"),
    Code.RESOURCE_EXHAUSTED: (429, "TooManyRequests"),
    Code.UNAVAILABLE: (503, "ServiceUnavailable"),
    Code.DEADLINE_EXCEEDED: (504, "Timeout"),
}


def unanswered(code: Code, message: str) -> ApiError:
    """The registry gave no answer that has an HTTP status of its own."""
    status, reason = _HTTP.get(code, (500, "InternalError"))
    return ApiError(status, reason, message or f"the request ended with {code.name}", {})


def end_status(end: StreamEnd | Reply) -> dict[str, Any] | None:
    """The Status that a stream ended with; None for an ordinary end."""
    if end.body:
        body = end.body
        if isinstance(end, Reply):
            with suppress(MalformedError):
                body = decode_value(end.body, ApiResponse).body
        with suppress(msgspec.MsgspecError):
            status = msgspec.json.decode(body)
            if isinstance(status, dict) and status.get("status") == "Failure":
                return status
    return None if end.code is Code.OK else unanswered(end.code, end.message).status
