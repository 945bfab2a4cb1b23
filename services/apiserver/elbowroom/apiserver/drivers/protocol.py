"""uvicorn's HTTP protocol with the patience of a server that strangers can reach.

uvicorn bounds the idle time between requests; here a connection must also have sent its first byte, and a request its headers, in
time, and headers are bounded. How many connections there may be is the door's business (``connections``).

A request that comes whole in one read is held until the read is over, and then offered to the short way (``short``); only what that
does not take becomes a task of uvicorn's. Timers are set for what does not come, not for what has come already.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Protocol

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from elbowroom.apiserver import statuses
from elbowroom.apiserver.drivers.request import Request
from elbowroom.apiserver.identity import ANONYMOUS, Identity, of_subject

HEADER_SECONDS = 5.0
FIRST_BYTE_SECONDS = 60.0
HEADER_BYTES_MAX = 64 * 1024


class Told(Protocol):
    """Who wants to know what becomes of connections."""

    def made(self, connection: "PatientProtocol") -> None: ...

    def proven(self, connection: "PatientProtocol") -> None: ...

    def lost(self, connection: "PatientProtocol") -> None: ...


TakeShort = Callable[[Request, bytes], bool]
"""Takes a request with its whole body, or not: then nothing has happened."""


class _Event:
    def set(self) -> None:
        """Nobody waits."""


class _Cycle:
    """A request on the short way, as uvicorn looks at it: those that follow wait until its response is complete."""

    __slots__ = ("body", "disconnected", "keep_alive", "more_body", "response_complete")

    message_event = _Event()

    def __init__(self) -> None:
        self.body = b""
        self.more_body = self.response_complete = self.disconnected = False
        self.keep_alive = True


class PatientProtocol(HttpToolsProtocol):
    """One connection. A request finds it in its scope as ``state["connection"]``, and there the client's certificate."""

    def __init__(self, config: Config, server_state: ServerState, told: "Told", short: TakeShort | None = None) -> None:
        super().__init__(config, server_state, {"connection": self})
        self._told, self._short = told, short
        self._held: list[bytes] | None = None
        """The parts of the body of a request that is held."""
        self._is_whole = False
        self._path = self._query = b""
        self._answering: _Cycle | None = None
        self._quiet_since: float | None = None
        """When the last answer was complete, unless something has come since."""
        self.certificate: Identity | None = None
        self.is_proven = False
        self.said: bytes | None = None
        self.told_by = ANONYMOUS
        self._deadline: asyncio.TimerHandle | None = None
        self._header_bytes = self._read_bytes = 0
        """What came in reads that began among headers, and what this read brought."""
        self._in_headers = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("peercert")
        if peer:
            self.certificate = of_subject(peer.get("subject", ()))
        self._told.made(self)
        self._give(FIRST_BYTE_SECONDS)

    def prove(self) -> None:
        """A request of this connection came from somebody whom the cluster knows."""
        self.is_proven = True
        self._told.proven(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._give(None)
        self._held = None
        self._told.lost(self)
        super().connection_lost(exc)
        self._quiet_since = None
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def data_received(self, data: bytes) -> None:
        self._read_bytes = len(data)
        if self._in_headers:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._in_headers and self._header_bytes > HEADER_BYTES_MAX and not self.transport.is_closing():
            self.send_400_response("The headers are too large.")
        if self._held is not None:
            self._release(self._is_whole)
        if self._in_headers and self._deadline is None and not self.transport.is_closing():
            self._give(HEADER_SECONDS)

    # ------------------------------------------------------------ holding what may go the short way

    def _release(self, is_whole: bool) -> None:
        """The read is over, or another request follows: the one that is held goes its way."""
        parts, self._held = self._held, None
        if parts is None or self.transport.is_closing():
            return
        if is_whole and self._goes_short(parts):
            return
        self._begin_long()
        self.cycle.keep_alive = True  # else it would not have been held
        for part in parts:
            super().on_body(part)
        if self._is_whole:
            super().on_message_complete()

    def _begin_long(self) -> None:
        """Let uvicorn have the request, whose head is known."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += headers
        super().on_headers_complete()

    def _goes_short(self, parts: list[bytes]) -> bool:
        assert self._short is not None and self.parser is not None, "else nothing is held"
        if self.flow.write_paused:
            return False
        method = self.parser.get_method().decode("ascii")
        request = Request(method, self._path, self._query, self.headers, self)
        before = self.cycle
        self.cycle = self._answering = _Cycle()  # type: ignore[assignment]
        if self._short(request, b"".join(parts)):
            return True
        self.cycle = before
        return False

    def answer(self, raw: bytes, *, close: bool) -> None:
        """The answer to the request that went the short way; nothing, if its client went meanwhile."""
        cycle = self._answering
        assert cycle is not None, "only one who was asked answers"
        if cycle.disconnected or self.transport.is_closing():
            return
        self.transport.write(raw)
        cycle.response_complete = True
        if close or not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    @property
    def takes_more(self) -> bool:
        return not self.flow.write_paused

    def write_chunk(self, data: bytes) -> None:
        """A chunk as uvicorn would write it, of the response that is under way."""
        if not self.transport.is_closing():
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _may_be_short(self) -> bool:
        parser, cycle = self.parser, self.cycle
        assert parser is not None, "it asks"
        return (
            self._short is not None
            and (cycle is None or cycle.response_complete)
            and not self.pipeline
            and not self.expect_100_continue
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
        )

    def on_message_begin(self) -> None:
        if self._held is not None:
            self._release(False)
        self._in_headers, self._header_bytes = True, 0
        self._give(None)
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_headers_complete(self) -> None:
        assert self.parser is not None, "it is telling this"
        if self.parser.get_http_version() not in ("1.0", "1.1"):
            raise ValueError("a version of HTTP that is not spoken here")  # which the parser makes a refusal
        may_be_large = self._header_bytes + self._read_bytes > HEADER_BYTES_MAX  # much of it may be a body
        if may_be_large and sum(len(name) + len(value) for name, value in self.headers) > HEADER_BYTES_MAX:
            raise ValueError("the headers are too large")
        self._in_headers = False
        self._is_whole = False
        if self._may_be_short():
            url = httptools.parse_url(self.url)  # raises, for the parser to refuse, what is no URL
            self._path, self._query = url.path, url.query or b""
            self._path.decode("ascii")
            self._held = []
            return
        self._begin_long()

    def on_body(self, body: bytes) -> None:
        if self._held is not None:
            self._held.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_whole = True
        if self._held is None:
            super().on_message_complete()

    # ------------------------------------------------------------ patience

    def on_response_complete(self) -> None:
        """What waited goes on; else the connection may be idle for a while."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._quiet_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _unset_keepalive_if_required(self) -> None:
        self._quiet_since = None

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it was idle all the time: the timer of a busy one is not set anew for each request."""
        self.timeout_keep_alive_task = None
        if self._quiet_since is None:
            return  # it is set again once there is an answer
        left = self._quiet_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            self._close()

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; a method that nobody knows is refused as one that is not allowed."""
        if not isinstance(sys.exc_info()[1], httptools.HttpParserInvalidMethodError):
            super().send_400_response(msg)
            return
        body = statuses.method_not_allowed().body()
        head = "HTTP/1.1 405 Method Not Allowed\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()

    def _give(self, seconds: float | None) -> None:
        """Close the connection unless it moves on within ``seconds``; None: no hurry."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._close)
