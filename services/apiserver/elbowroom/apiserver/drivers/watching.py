"""Watches over HTTP: the messages of a stream as lines, written as fast as the client reads and no faster."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from elbowroom.apiserver import statuses, tables
from elbowroom.apiserver.drivers.answers import Answers, bad_include_object
from elbowroom.apiserver.drivers.exchange import Exchange, Stream, end_status
from elbowroom.apiserver.drivers.request import Receive, Request
from elbowroom.apiserver.fairness import level_of
from elbowroom.apiserver.negotiation import JSON, Form
from elbowroom.apiserver.routing import Target
from elbowroom.machine import Instant
from elbowroom.wire import ApiRequest, Reply, StreamBookmark, StreamEnd, StreamEvent

WATCH_SECONDS = (1800, 3600)
"""How long a watch lasts whose client names no ``timeoutSeconds``: somewhere between, so that not all end at once."""
WATCHES_MAX = 512
"""How many watches one user may have open, unless it is exempt from such limits (``fairness``)."""
WRITE_BYTES = 256 * 1024
"""About so much is handed to a connection at once; then a slow reader is waited for."""
ACCEPTED_SECONDS = 0.5
"""How long a watch waits for its first word before it says 200; a refusal comes sooner."""
BOOKMARK_SECONDS = 10.0

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Watching:
    """Serves them. ``now`` is for ages."""

    def __init__(self, exchange: Exchange, answers: Answers, now: Callable[[], Instant]) -> None:
        self._exchange, self._answers, self._now = exchange, answers, now
        self._told = _Told()
        self._open: dict[str, int] = {}
        """How many each user has open."""

    async def serve(self, request: Request, asked: ApiRequest, target: Target, form: Form) -> None:
        user = asked.user
        if level_of(user, asked.groups) is not None and self._open.get(user, 0) >= WATCHES_MAX:
            raise statuses.too_often(1)
        self._open[user] = self._open.get(user, 0) + 1
        try:
            await self._watched(request, asked, target, form)
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]

    async def _watched(self, request: Request, asked: ApiRequest, target: Target, form: Form) -> None:
        lines = _Lines(self._told, self._now, asked, target, form)
        loop = asyncio.get_running_loop()
        stream = self._exchange.watch(asked)
        gone = loop.create_task(_until_gone(request.receive, stream))
        lasts = loop.call_later(_watch_seconds(asked.query), stream.close)
        try:
            if not stream.events and stream.end is None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(stream.wake.wait(), ACCEPTED_SECONDS)
            if stream.end is not None and not stream.events:
                refusal = end_status(stream.end)
                if refusal is not None and refusal.get("code", 500) != 410:
                    await self._answers.respond(request, refusal.get("code", 500), _encode(refusal) + b"\n")
                    return
            headers = self._answers.headers(request, f"{JSON};stream=watch" if "stream=watch" in request.accept else JSON)
            request.status = 200
            await request.send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._write(request, stream, lines)
        finally:
            lasts.cancel()
            gone.cancel()
            stream.flush = None
            self._exchange.leave(stream)

    async def _write(self, request: Request, stream: Stream, lines: "_Lines") -> None:
        """Write until the watch is over. A reader that keeps up is served by ``flush``, straight from what the machine tells."""

        def flush() -> None:
            if not request.connection.takes_more:
                stream.flush = None
                stream.wake.set()
                return
            data, taken = _taken(stream, lines)
            if data:
                request.connection.write_chunk(data)
            if stream.events:
                stream.flush = None
                stream.wake.set()
            if taken:
                self._exchange.grant(stream, taken)

        while True:
            stream.wake.clear()
            stream.flush = None
            data, taken = _taken(stream, lines)
            is_over = not stream.events and (stream.end is not None or stream.closed)
            if is_over:
                data += lines.last(stream.end)
            # The headers go out with the first body, even an empty one; this waits while the reader is slow.
            await request.send({"type": "http.response.body", "body": data, "more_body": not is_over})
            if is_over:
                return
            if taken:
                self._exchange.grant(stream, taken)
            if not stream.wake.is_set() and not stream.events:
                stream.flush = flush if lines.are_plain else None
                await stream.wake.wait()


def _taken(stream: Stream, lines: "_Lines") -> tuple[bytes, int]:
    """The lines of what came, up to so much at once, and how many events are among it."""
    parts: list[bytes] = []
    taken = size = 0
    while stream.events and size < WRITE_BYTES:
        event = stream.events.popleft()
        taken += isinstance(event, StreamEvent)
        parts.append(lines.of(event))
        size += len(parts[-1])
    return b"".join(parts) if len(parts) != 1 else parts[0], taken


def _line(event: StreamEvent, described: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (event.change.encode(), described)


class _Told:
    """The line that was written last: all watches of a kind are told the same, one after the other."""

    def __init__(self) -> None:
        self._object, self._change, self._line = b"", "", b""

    def line(self, event: StreamEvent) -> bytes:
        if event.object is not self._object or event.change != self._change:
            self._object, self._change, self._line = event.object, event.change, _line(event, event.object)
        return self._line


class _Lines:
    """Stream messages as the lines of one watch."""

    def __init__(self, told: _Told, now: Callable[[], Instant], asked: ApiRequest, target: Target, form: Form) -> None:
        self._told, self._now = told, now
        self.are_plain = not form.shape
        """Are the objects written as they came? That cannot fail."""
        self._kind, self._api_version = target.resource.kind, target.resource.api_version
        self._definition = target.resource.definition
        self._form = form
        self._include_object = asked.query.get("includeObject", "") or "Metadata"
        if self._include_object not in ("None", "Metadata", "Object"):
            raise bad_include_object(self._include_object)
        self._bookmarks = asked.query.get("allowWatchBookmarks") in ("true", "1")
        self._with_columns = True
        self._marked = 0
        self._next_mark = time.monotonic() + BOOKMARK_SECONDS
        self._revision = 0

    def of(self, event: StreamEvent | StreamBookmark) -> bytes:
        """The line of an event; empty for a bookmark that the client need not see."""
        if event.revision > self._revision:
            self._revision = event.revision
        if isinstance(event, StreamBookmark):
            due = event.initial_end or (event.revision > self._marked and time.monotonic() >= self._next_mark)
            return self._bookmark(event.revision, event.initial_end) if self._bookmarks and due else b""
        if not self._form.shape:
            return self._told.line(event)
        return _line(event, _encode(self._shaped(_decode(event.object))))

    def last(self, end: StreamEnd | Reply | None) -> bytes:
        """What is said at the end: why, or, when the watch's time is over, where to go on from."""
        if end is not None:
            refusal = end_status(end)
            return b"" if refusal is None else b'{"type":"ERROR","object":' + _encode(refusal) + b"}\n"
        return self._bookmark(self._revision, False) if self._bookmarks and self._revision > self._marked else b""

    def _bookmark(self, revision: int, initial_end: bool) -> bytes:
        self._marked, self._next_mark = revision, time.monotonic() + BOOKMARK_SECONDS
        meta: dict[str, Any] = {"resourceVersion": str(revision)}
        if initial_end:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        document: dict[str, Any] = {"kind": self._kind, "apiVersion": self._api_version, "metadata": meta}
        if self._form.shape == "Table":
            document = tables.bookmark(document)
        elif self._form.shape == "Partial":
            document = tables.partial(document)
        return b'{"type":"BOOKMARK","object":' + _encode(document) + b"}\n"

    def _shaped(self, document: dict[str, Any]) -> dict[str, Any]:
        document.setdefault("kind", self._kind)
        document.setdefault("apiVersion", self._api_version)
        if self._form.shape == "Partial":
            shaped = tables.partial(document)
        else:
            shaped = tables.table(
                self._now(),
                document,
                include_object=self._include_object,
                with_columns=self._with_columns,
                definition=self._definition,
            )
            self._with_columns = False
        shaped["apiVersion"] = f"meta.k8s.io/{self._form.version}"
        return shaped


async def _until_gone(receive: Receive, stream: Stream) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.close()


def _watch_seconds(query: Mapping[str, str]) -> float:
    text = query.get("timeoutSeconds", "")
    return float(text) if text.isdigit() and int(text) > 0 and len(text) < 10 else random.uniform(*WATCH_SECONDS)
