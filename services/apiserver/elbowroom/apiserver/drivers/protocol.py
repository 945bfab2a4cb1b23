"""uvicorn's HTTP protocol with the patience of a server that strangers can reach.

uvicorn bounds the idle time between requests; here a connection must also have sent its first byte, and a request its headers, in
time, and headers are bounded. How many connections there may be is the door's business (``connections``).
"""

import asyncio
import sys
from typing import Protocol

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from elbowroom.apiserver import statuses
from elbowroom.apiserver.identity import Identity, of_subject

HEADER_SECONDS = 5.0
FIRST_BYTE_SECONDS = 60.0
HEADER_BYTES_MAX = 64 * 1024


class Told(Protocol):
    """Who wants to know what becomes of connections."""

    def made(self, connection: "PatientProtocol") -> None: ...

    def proven(self, connection: "PatientProtocol") -> None: ...

    def lost(self, connection: "PatientProtocol") -> None: ...


class PatientProtocol(HttpToolsProtocol):
    """One connection. A request finds it in its scope as ``state["connection"]``, and there the client's certificate."""

    def __init__(self, config: Config, server_state: ServerState, told: "Told") -> None:
        super().__init__(config, server_state, {"connection": self})
        self._told = told
        self.certificate: Identity | None = None
        self.is_proven = False
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
        self._told.lost(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._read_bytes = len(data)
        if self._in_headers:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._in_headers and self._header_bytes > HEADER_BYTES_MAX and not self.transport.is_closing():
            self.send_400_response("The headers are too large.")

    def on_message_begin(self) -> None:
        self._in_headers, self._header_bytes = True, 0
        self._give(HEADER_SECONDS)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        assert self.parser is not None, "it is telling this"
        if self.parser.get_http_version() not in ("1.0", "1.1"):
            raise ValueError("a version of HTTP that is not spoken here")  # which the parser makes a refusal
        may_be_large = self._header_bytes + self._read_bytes > HEADER_BYTES_MAX  # much of it may be a body
        if may_be_large and sum(len(name) + len(value) for name, value in self.headers) > HEADER_BYTES_MAX:
            raise ValueError("the headers are too large")
        self._in_headers = False
        self._give(None)
        super().on_headers_complete()

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
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.timeout_keep_alive_handler)
