"""The Kubernetes API over HTTPS: a driver that turns REST into the calls that the bus carries.

There is one registry and one set of semantics. A request becomes an ``ApiRequest`` from the peer ``http/N`` and waits for the
``Reply``; a watch becomes a stream whose credit grows as its lines are written, so a stuck reader holds only itself. What is
the same for every registry is answered here: TLS, who asks and how often, discovery, OpenAPI, Tables, YAML, health. The keys are
here too, so tokens are signed and read here for the machine.

The event loop, and the thread, are the host's. uvicorn's protocol does HTTP/1.1 (measured against five others: 33 us a GET).
"""

import asyncio
import errno
import gzip
import hashlib
import itertools
import math
import random
import re
import socket
import ssl
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from email.utils import formatdate
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
import yaml
from uvicorn.server import ServerState

from elbowroom.apiserver import audit, discovery, negotiation, openapi, schema, statuses, tables, tokens, warningtexts
from elbowroom.apiserver.drivers.audit import FileLog, Log
from elbowroom.apiserver.drivers.certificates import make_credentials, tokens_of_file
from elbowroom.apiserver.drivers.connections import Door
from elbowroom.apiserver.drivers.customs import Customs
from elbowroom.apiserver.drivers.protocol import PatientProtocol
from elbowroom.apiserver.drivers.tokens import TokenKey
from elbowroom.apiserver.fairness import BYTES_A_REQUEST, Buckets, level_of
from elbowroom.apiserver.identity import ANONYMOUS, MASTERS, Authenticator, BadTokenError, Identity, is_open
from elbowroom.apiserver.impersonation import asked_for
from elbowroom.apiserver.negotiation import JSON, PLAIN, PROTOBUF, YAML, Form
from elbowroom.apiserver.routing import Document, Target, route
from elbowroom.apiserver.statuses import ApiError
from elbowroom.machine import Input, Instant, Received, Send, Work, WorkDone
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Code,
    Impersonation,
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
TEXT = "text/plain; charset=utf-8"
BODY_BYTES_MAX = 3 * 1024 * 1024
BODY_SECONDS = 30.0
BODIES_BYTES_MAX = 64 * 1024 * 1024
"""How much of bodies that are not whole yet is held in all."""
DISCARD_BYTES_MAX = 16 * 1024 * 1024
DISCARD_SECONDS = 2.0
ANSWER_SECONDS = 60.0
KEEP_ALIVE_SECONDS = 90
WATCH_SECONDS = (1800, 3600)
"""How long a watch lasts whose client names no ``timeoutSeconds``: somewhere between, so that not all end at once."""
WATCH_CREDIT = 256
WATCHES_MAX = 512
"""How many watches one user may have open, unless it is exempt from such limits (``fairness``)."""
WRITE_BYTES = 256 * 1024
"""About so much is handed to a connection at once; then a slow reader is waited for."""
ACCEPTED_SECONDS = 0.5
"""How long a watch waits for its first word before it says 200; a refusal comes sooner."""
BOOKMARK_SECONDS = 10.0
GZIP_BYTES_MIN = 128 * 1024
PATCH_TYPES = frozenset(
    f"application/{kind}" for kind in ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
)

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
SendMessage = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def build(config: Mapping[str, Any]) -> "Facade":
    """The facade as a ``seams.Driver``.

    ``config``: ``host`` (127.0.0.1), ``port`` (0: a free one), ``credentials`` (the directory of ``make_credentials``), ``tokens``
    (more identities: ``{"token", "user", "groups"}``), ``timeScale`` and ``origin`` (as in ``host.spec.HostSpec``, for ages),
    ``previews`` (are the fields of the lab profile described?), ``audit`` (``{"level", "path"}``; absent: no log). ``start`` tells
    ``{"port"}``, and raises ``OSError`` with a clear line if the port is taken.
    """
    return Facade(config)


class _Answer:
    """Waits for one Reply."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def take(self, message: Any) -> None:
        if isinstance(message, Reply) and not self.future.done():
            self.future.set_result(message)


class _Stream:
    """What came of a watch and is not written yet; bounded by the credit."""

    __slots__ = ("closed", "end", "events", "wake")

    def __init__(self) -> None:
        self.events: deque[StreamEvent | StreamBookmark] = deque()
        self.end: StreamEnd | Reply | None = None
        self.closed = False
        self.wake = asyncio.Event()

    def take(self, message: Any) -> None:
        if isinstance(message, StreamEvent | StreamBookmark):
            self.events.append(message)
        elif isinstance(message, StreamEnd | Reply):
            self.end = message
        self.wake.set()

    def close(self) -> None:
        """The client went, its time is over, or the server stops."""
        self.closed = True
        self.wake.set()


class _Request:
    """One HTTP request and the way to answer it."""

    __slots__ = (
        "accept",
        "asked",
        "audit_id",
        "encoding",
        "headers",
        "impersonate",
        "method",
        "notes",
        "path",
        "query",
        "receive",
        "scope",
        "send",
        "status",
        "told",
        "user_agent",
        "who",
    )

    def __init__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("ascii")
        self.query: str = scope["query_string"].decode("ascii", "replace")
        self.headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
        self.scope, self.receive, self.send = scope, receive, send
        self.who = ANONYMOUS
        self.impersonate: Impersonation | None = None
        # What an audit log is told.
        self.asked: ApiRequest | None = None
        self.status, self.told = 0, b""
        self.notes: Mapping[str, str] = {}
        self.audit_id = ""
        self.accept = ",".join(v.decode("latin-1") for k, v in scope["headers"] if k == b"accept")
        self.encoding = self.headers.get(b"accept-encoding", b"")
        self.user_agent = self.headers.get(b"user-agent", b"").decode("latin-1")[:512]


class Facade:
    """See the module."""

    prefix = PREFIX

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._host: str = config.get("host", "127.0.0.1")
        self._port: int = config.get("port", 0)
        credentials = make_credentials(Path(config["credentials"]))
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._tls.load_cert_chain(credentials.server_certificate, credentials.server_key)
        self._tls.set_alpn_protocols(["http/1.1"])
        # A client may show a certificate; one of another authority ends the handshake.
        self._tls.load_verify_locations(credentials.ca_certificate)
        self._tls.verify_mode = ssl.CERT_OPTIONAL
        self._key = TokenKey(credentials.account_key)
        more = tokens_of_file(Path(config["credentials"]) / "tokens.csv")
        self._authenticator = Authenticator([*credentials.identities, *config.get("tokens", ()), *more], self._read)
        self._buckets = Buckets()
        self._watching: dict[str, int] = {}
        self._bodies = 0
        wanted = config.get("audit") or {}
        self._level: str = wanted.get("level", "None")
        self._log: Log | None = None if self._level == "None" else FileLog(Path(wanted["path"]))
        self._scale: float = config.get("timeScale", 1.0)
        self._origin: int = config.get("origin", 0) or time.time_ns()
        self._previews: bool = config.get("previews", False)
        self._numbers = itertools.count(1)
        self._open: dict[str, _Answer | _Stream | Customs] = {}
        self._post: Callable[[Input], None] = lambda happened: None
        self._door: Door | None = None
        self._state = ServerState()
        self._documents: dict[tuple[str, bool], tuple[bytes, str]] = {}
        self._customs = Customs(self._post_soon, self._documents.clear)
        self._date = (0, b"")

    # ------------------------------------------------------------ driver

    async def start(self, post: Callable[[Input], None]) -> Mapping[str, Any]:
        """Listen; afterwards requests come in through ``post``."""
        self._post = post
        listener = _bound(self._host, self._port)
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            proxy_headers=False,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        config.load()
        self._door = Door(listener, self._tls, lambda door: PatientProtocol(config, self._state, door))
        self._door.open()
        self._open[self._customs.peer] = self._customs
        self._customs.open()
        return {"port": self._port}

    def _post_soon(self, happened: Input, seconds: float = 0.0) -> None:
        """What a delivery makes the facade say is said when the machine's step is over."""
        asyncio.get_running_loop().call_later(seconds, lambda: self._post(happened) if self._door is not None else None)

    def deliver(self, effect: Send) -> None:
        """An answer of the machine's; one that nobody waits for any more is dropped."""
        waiting = self._open.get(effect.target)
        if waiting is not None:
            waiting.take(effect.message)

    def buffered(self, peer: str) -> int:
        """How many messages of ``peer``'s watch wait to be written."""
        waiting = self._open.get(peer)
        return len(waiting.events) if isinstance(waiting, _Stream) else 0

    def work(self, effect: Work) -> None:
        """Sign or read a token, or put a line into the audit log."""
        outcome: Any
        try:
            match effect.task:
                case tokens.Sign(claims):
                    outcome = self._key.sign(claims)
                case tokens.Read(token, audiences):
                    outcome = self._reviewed(token, audiences)
                case audit.Fact() as fact:
                    if self._log is not None:
                        self._log.write(audit.event(self._level, audit.of_fact(fact, _number())))
                    return
                case task:
                    raise AssertionError(f"the facade has no work like {task!r}")
        except BadTokenError as why:
            outcome = why
        asyncio.get_running_loop().call_soon(self._post, WorkDone(effect.token, outcome))

    def _read(self, token: str) -> Identity:
        return self._key.read(token, self._now())[0]

    def _reviewed(self, token: str, audiences: tuple[str, ...]) -> tuple[Identity, tuple[str, ...]]:
        known = self._authenticator.known(token)
        return self._key.read(token, self._now(), audiences) if known is None else (known, audiences)

    async def stop(self) -> None:
        """Refuse new connections, end the watches, let answers go out, close."""
        if self._door is None:
            return
        self._door.close()
        for waiting in list(self._open.values()):
            if isinstance(waiting, _Stream):
                waiting.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=1.0)
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        self._door = None
        if self._log is not None:
            self._log.close()

    def _now(self) -> Instant:
        return Instant(self._origin + round((time.time_ns() - self._origin) * self._scale))

    # ------------------------------------------------------------ requests

    async def _app(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        assert scope["type"] == "http", "neither lifespan nor websockets are configured"
        request = _Request(scope, receive, send)
        received = self._now() if self._log is not None else Instant(0)
        try:
            self._admit(request)
            found = route(request.method, request.path, request.query, self._customs.catalog)
            if isinstance(found, Target):
                await self._resource(request, found)
            else:
                await self._document(request, found)
        except ApiError as refusal:
            await self._respond(
                request,
                refusal.code,
                refusal.body() + b"\n",
                retry_after=refusal.retry_after,
                close=refusal.code in (408, 413),
            )
        finally:
            if self._log is not None:
                self._audit(request, received)

    def _admit(self, request: _Request) -> None:
        """Find out who asks and as whom, and refuse who asks too often; probes of health are let through."""
        now = time.monotonic()
        connection: PatientProtocol = request.scope["state"]["connection"]
        try:
            who = self._authenticator.identify(request.headers.get(b"authorization", b"").decode("latin-1"), connection.certificate)
        except ApiError:
            self._take(now, ANONYMOUS)
            raise
        request.who = who
        if not who.is_master and not is_open((), request.path):
            self._take(now, who)
        if not connection.is_proven and who is not ANONYMOUS:
            connection.prove()
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in request.scope["headers"]
            if name.startswith(b"impersonate-")
        ]
        request.impersonate = asked_for(headers) if headers else None

    def _take(self, now: float, who: Identity) -> None:
        wait = self._buckets.wait(now, who)
        if wait:
            raise _too_many(math.ceil(wait))

    def _audit(self, request: _Request, received: Instant) -> None:
        assert self._log is not None
        who, asked = request.who, request.asked
        client = request.scope.get("client")
        query = f"?{request.query}" if request.query else ""
        entry = audit.Entry(
            request.audit_id or _number(),
            request.path + query,
            request.method.lower() if asked is None else asked.verb,
            received,
            self._now(),
            request.status,
            audit.user_of(who.user, who.groups, who.uid, who.extra),
            request.impersonate,
            (client[0],) if client else (),
            request.user_agent,
            asked,
            audit.status_of(request.told) if request.status >= 400 else {},
            request.notes,
        )
        self._log.write(audit.event(self._level, entry))

    async def _resource(self, request: _Request, target: Target) -> None:
        who = request.who
        form = negotiation.negotiate(request.accept)
        content_type = request.headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        if form is None:
            if target.verb == "patch" and content_type not in PATCH_TYPES:
                raise statuses.unsupported_patch_type()
            if target.subresource is None or target.subresource.name not in ("proxy", "log"):
                raise negotiation.refusal(request.accept, watchable=target.is_collection and target.verb in ("list", "watch"))
            form = PLAIN
        body = await self._body(request) if request.method != "GET" else b""
        if body:
            self._buckets.charge(time.monotonic(), who, len(body), "yaml" if content_type.endswith("yaml") else "json")
        if content_type == PROTOBUF and target.verb != "patch" and body:
            content_type, body = JSON, _from_protobuf(body)
        query = {**target.query, "path": target.rest} if target.rest else target.query
        asked = ApiRequest(
            verb=target.verb,
            resource=target.resource.plural,
            group=target.resource.group,
            version=target.resource.version,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource.name if target.subresource is not None else "",
            query=query,
            content_type=content_type or JSON,
            body=body,
            user=who.user,
            groups=who.groups,
            user_agent=request.user_agent or "unknown",
            uid=who.uid,
            extra=dict(who.extra),
            impersonate=request.impersonate,
        )
        request.asked = asked
        if target.verb == "watch":
            await self._watch(request, asked, target, form)
            return
        response = await self._ask(asked)
        if target.subresource is not None and target.subresource.name not in ("status", "scale"):
            form = Form(form.media_type)
        request.notes = response.annotations
        if len(response.body) >= BYTES_A_REQUEST["answer"]:
            self._buckets.charge(time.monotonic(), who, len(response.body))
        await self._answer(request, response, form, target.query)

    async def _ask(self, asked: ApiRequest) -> ApiResponse:
        """The registry's answer."""
        number = next(self._numbers)
        peer = f"{PREFIX}{number}"
        waiting = self._open[peer] = _Answer()
        try:
            self._post(Received(peer, Call(number, "api", encode_value(asked))))
            if waiting.future.done():
                reply = waiting.future.result()
            else:
                async with asyncio.timeout(ANSWER_SECONDS):
                    reply = await waiting.future
        except TimeoutError as why:
            message = "the server was unable to return a response in the time allotted, but may still be processing the request"
            raise ApiError(504, "Timeout", message, {}) from why
        finally:
            del self._open[peer]
        if reply.code is not Code.OK:
            raise _unanswered(reply.code, reply.message)
        try:
            return decode_value(reply.body, ApiResponse)
        except MalformedError as why:
            raise _unanswered(Code.INTERNAL, str(why)) from why

    async def _answer(self, request: _Request, response: ApiResponse, form: Form, query: Mapping[str, str]) -> None:
        body, content_type = response.body, response.content_type
        if content_type == JSON:
            if form.shape and response.status < 300:
                body = self._shaped(body, form, query.get("includeObject", "Metadata"))
            if form.media_type == YAML:
                body, content_type = _as_yaml(body), YAML
            elif _is_pretty(query, request.user_agent):
                body = msgspec.json.format(body, indent=2) + b"\n"
            else:
                body += b"\n"
        await self._respond(
            request, response.status, body, content_type, warnings=response.warnings, retry_after=response.retry_after
        )

    def _shaped(self, body: bytes, form: Form, include_object: str) -> bytes:
        whole = _decode(body)
        if not isinstance(whole, dict) or whole.get("kind") == "Status":
            return body
        if form.shape == "Table":
            if include_object not in ("", "None", "Metadata", "Object"):
                raise _bad_include_object(include_object)
            shaped = tables.table(
                self._now(), whole, include_object=include_object or "Metadata", definition=self._customs.definition_of(whole)
            )
        elif "items" in whole and str(whole.get("kind")).endswith("List"):
            shaped = tables.partial_list(whole)
        else:
            shaped = tables.partial(whole)
        shaped["apiVersion"] = f"meta.k8s.io/{form.version}"
        return _encode(shaped)

    async def _body(self, request: _Request) -> bytes:
        length = request.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > BODY_BYTES_MAX:
            await _discard(request.receive)
            raise _too_large()
        if request.headers.get(b"content-encoding", b"identity") not in (b"identity", b""):
            raise ApiError(415, "UnsupportedMediaType", "compressed request bodies are not accepted", {})
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise ApiError(400, "BadRequest", "the client went before the body was whole")
                    part: bytes = message.get("body", b"")
                    size += len(part)
                    self._bodies += len(part)
                    if self._bodies > BODIES_BYTES_MAX:
                        raise _too_many(1)
                    if size > BODY_BYTES_MAX:
                        await _discard(request.receive)
                        raise _too_large()
                    parts.append(part)
                    if not message.get("more_body"):
                        return b"".join(parts) if len(parts) > 1 else part
        except TimeoutError as why:
            raise ApiError(408, "Timeout", "the body of the request did not come in time", {}) from why
        finally:
            self._bodies -= size

    async def _respond(
        self,
        request: _Request,
        status: int,
        body: bytes,
        content_type: str = JSON,
        *,
        warnings: Sequence[str] = (),
        retry_after: int = 0,
        close: bool = False,
    ) -> None:
        headers = self._headers(request, content_type)
        request.status, request.told = status, body
        if len(body) >= GZIP_BYTES_MIN and b"gzip" in request.encoding:
            body = gzip.compress(body, 1)
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        headers.append((b"content-length", str(len(body)).encode()))
        headers += [(b"warning", _warning(text)) for text in warningtexts.told(warnings)]
        if retry_after:
            headers.append((b"retry-after", str(retry_after).encode()))
        if close:
            headers.append((b"connection", b"close"))
        await request.send({"type": "http.response.start", "status": status, "headers": headers})
        await request.send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else body})

    def _headers(self, request: _Request, content_type: str) -> Headers:
        request.audit_id = _number()
        second = int(time.time())
        if self._date[0] != second:
            self._date = (second, formatdate(second, usegmt=True).encode())
        return [
            (b"audit-id", request.audit_id.encode()),
            (b"cache-control", b"no-cache, private"),
            (b"content-type", content_type.encode("latin-1")),
            (b"date", self._date[1]),
        ]

    # ------------------------------------------------------------ watches

    async def _watch(self, request: _Request, asked: ApiRequest, target: Target, form: Form) -> None:
        user = asked.user
        if level_of(user, asked.groups) is not None and self._watching.get(user, 0) >= WATCHES_MAX:
            raise _too_many(1)
        self._watching[user] = self._watching.get(user, 0) + 1
        try:
            await self._watched(request, asked, target, form)
        finally:
            self._watching[user] -= 1
            if not self._watching[user]:
                del self._watching[user]

    async def _watched(self, request: _Request, asked: ApiRequest, target: Target, form: Form) -> None:
        number = next(self._numbers)
        peer = f"{PREFIX}{number}"
        lines = _Lines(self, asked, target, form)
        loop = asyncio.get_running_loop()
        stream = _Stream()
        self._open[peer] = stream
        gone = loop.create_task(_until_gone(request.receive, stream))
        lasts = loop.call_later(_watch_seconds(asked.query), stream.close)
        try:
            self._post(Received(peer, Call(number, "watch", encode_value(asked), credit=WATCH_CREDIT)))
            if not stream.events and stream.end is None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(stream.wake.wait(), ACCEPTED_SECONDS)
            if stream.end is not None and not stream.events:
                refusal = _end_status(stream.end)
                if refusal is not None and refusal.get("code", 500) != 410:
                    await self._respond(request, refusal.get("code", 500), _encode(refusal) + b"\n")
                    return
            headers = self._headers(request, f"{JSON};stream=watch" if "stream=watch" in request.accept else JSON)
            request.status = 200
            await request.send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._write_stream(request, peer, number, stream, lines)
        finally:
            lasts.cancel()
            gone.cancel()
            del self._open[peer]
            if stream.end is None:
                self._post(Received(peer, StreamCancel(number)))

    async def _write_stream(self, request: _Request, peer: str, number: int, stream: _Stream, lines: "_Lines") -> None:
        while True:
            stream.wake.clear()
            parts: list[bytes] = []
            taken = size = 0
            while stream.events and size < WRITE_BYTES:
                event = stream.events.popleft()
                taken += isinstance(event, StreamEvent)
                parts.append(lines.of(event))
                size += len(parts[-1])
            is_over = not stream.events and (stream.end is not None or stream.closed)
            if is_over:
                parts.append(lines.last(stream.end))
            # The headers go out with the first body, even an empty one; this waits while the reader is slow.
            await request.send({"type": "http.response.body", "body": b"".join(parts), "more_body": not is_over})
            if is_over:
                return
            if taken:
                self._post(Received(peer, StreamCredit(number, taken)))
            if not stream.wake.is_set() and not stream.events:
                await stream.wake.wait()

    # ------------------------------------------------------------ everything else

    async def _document(self, request: _Request, asked: Document) -> None:
        await self._check_path(request, asked.path)
        match asked.path.strip("/").split("/"):
            case [("healthz" | "livez" | "readyz"), *_] as parts:
                await self._health(request, asked, parts)
            case ["metrics"]:
                _check_is_get(request)
                await self._metrics(request, "")
            case ["elbowroom", component, "metrics"]:
                _check_is_get(request)
                await self._metrics(request, component)
            case ["openapi", "v2"]:
                _check_is_get(request)
                is_protobuf = "proto-openapi" in request.accept
                body = openapi.V2_PROTOBUF if is_protobuf else _encode(openapi.V2)
                await self._respond(request, 200, body, openapi.V2_PROTOBUF_TYPE if is_protobuf else JSON)
            case parts:
                found = self._described(request, parts if parts != [""] else [])
                if found is None:
                    await self._respond(request, 404, b"404 page not found\n", TEXT)
                    return
                _check_is_get(request)
                body, content_type = found
                if content_type == JSON and _is_pretty(asked.query, request.user_agent):
                    body = msgspec.json.format(body, indent=2)
                await self._respond(request, 200, body, content_type)

    def _described(self, request: _Request, parts: list[str]) -> tuple[bytes, str] | None:
        """A discovery or OpenAPI document as bytes, made once; None if there is none at that path."""
        is_aggregated = parts in (["api"], ["apis"]) and negotiation.wants(request.accept, discovery.AGGREGATED)
        key = ("/".join(parts), is_aggregated)
        found = self._documents.get(key)
        if found is None:
            document = self._describe(parts, is_aggregated)
            if document is None:
                return None
            found = (_encode(document) + b"\n", discovery.AGGREGATED if is_aggregated else JSON)
            self._documents[key] = found
        return found

    def _describe(self, parts: list[str], is_aggregated: bool) -> dict[str, Any] | None:
        catalog = self._customs.catalog
        match parts:
            case []:
                return catalog.root_paths(["/elbowroom/scheduler/metrics"])
            case ["version"]:
                return dict(discovery.version())
            case ["api" | "apis" as root] if is_aggregated:
                return catalog.aggregated(core=root == "api")
            case ["api"]:
                return discovery.api_versions(f"{self._host}:{self._port}")
            case ["apis"]:
                return catalog.api_group_list()
            case ["api", version]:
                return catalog.api_resource_list("", version)
            case ["apis", group]:
                return catalog.api_group(group)
            case ["apis", group, version]:
                return catalog.api_resource_list(group, version)
            case ["openapi", "v3"]:
                return openapi.index(self._openapi_hash, catalog)
            case ["openapi", "v3", "api", version]:
                return openapi.document("", version, previews=self._previews, catalog=catalog)
            case ["openapi", "v3", "apis", group, version]:
                return openapi.document(group, version, previews=self._previews, catalog=catalog)
            case _:
                return None

    def _openapi_hash(self, group: str, version: str) -> str:
        described = openapi.document(group, version, previews=self._previews, catalog=self._customs.catalog)
        return hashlib.sha256(_encode(described)).hexdigest().upper()

    async def _health(self, request: _Request, asked: Document, parts: list[str]) -> None:
        if len(parts) > 1 and parts[1:] not in (["ping"], ["registry"]):
            await self._respond(request, 404, b"404 page not found\n", TEXT)
            return
        checks = ["ping"] if parts[0] == "livez" else ["ping", "registry"]
        if len(parts) > 1:
            checks = [parts[1]]
        failed = []
        if "registry" in checks:
            probe = ApiRequest("list", "namespaces", query={"limit": "1"}, user="system:apiserver", groups=(MASTERS,))
            try:
                if (await self._ask(probe)).status != 200:
                    failed.append("registry")
            except ApiError:
                failed.append("registry")
        if not failed and "verbose" not in asked.query:
            await self._respond(request, 200, b"ok", TEXT)
            return
        lines = [f"[-]{name} failed: reason withheld" if name in failed else f"[+]{name} ok" for name in checks]
        lines.append(f"{parts[0]} check {'failed' if failed else 'passed'}")
        await self._respond(request, 500 if failed else 200, "\n".join(lines).encode() + b"\n", TEXT)

    async def _metrics(self, request: _Request, component: str) -> None:
        await self._answer(request, await self._ask(_own(request, "get", "metrics", name=component)), PLAIN, {})

    async def _check_path(self, request: _Request, path: str) -> None:
        """Refuse, with 403, a path outside of resources that its user may not see. Where roles decide, the machine is asked; of
        metrics it is asked anyway."""
        who = request.who
        if _METRICS.fullmatch(path) or (is_open(who.groups, path) and request.impersonate is None and not who.uid):
            return
        answer = await self._ask(_own(request, request.method.lower(), "paths", query={"path": path}))
        if answer.status != 200:
            status = audit.status_of(answer.body)
            raise ApiError(answer.status, status.get("reason", ""), status.get("message", ""), status.get("details"))


class _Lines:
    """Stream messages as the lines of one watch."""

    def __init__(self, facade: Facade, asked: ApiRequest, target: Target, form: Form) -> None:
        self._now = facade._now
        self._kind, self._api_version = target.resource.kind, target.resource.api_version
        self._definition = target.resource.definition
        self._form = form
        self._include_object = asked.query.get("includeObject", "") or "Metadata"
        if self._include_object not in ("None", "Metadata", "Object"):
            raise _bad_include_object(self._include_object)
        self._bookmarks = asked.query.get("allowWatchBookmarks") in ("true", "1")
        self._with_columns = True
        self._marked = 0
        self._next_mark = time.monotonic() + BOOKMARK_SECONDS
        self._revision = 0

    def of(self, event: StreamEvent | StreamBookmark) -> bytes:
        """The line of an event; empty for a bookmark that the client need not see."""
        self._revision = max(self._revision, event.revision)
        if isinstance(event, StreamBookmark):
            due = event.initial_end or (event.revision > self._marked and time.monotonic() >= self._next_mark)
            return self._bookmark(event.revision, event.initial_end) if self._bookmarks and due else b""
        described = event.object if not self._form.shape else _encode(self._shaped(_decode(event.object)))
        return b'{"type":"' + event.change.encode() + b'","object":' + described + b"}\n"

    def last(self, end: StreamEnd | Reply | None) -> bytes:
        """What is said at the end: why, or, when the watch's time is over, where to go on from."""
        if end is not None:
            refusal = _end_status(end)
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


# ---------------------------------------------------------------- small things


_METRICS = re.compile(r"(/elbowroom/[^/]+)?/metrics")


def _own(request: _Request, verb: str, what: str, *, name: str = "", query: dict[str, str] | None = None) -> ApiRequest:
    """A question to the machine about something outside of resources."""
    who = request.who
    return ApiRequest(
        verb,
        what,
        "elbowroom",
        name=name,
        query=query or {},
        user=who.user,
        groups=who.groups,
        uid=who.uid,
        extra=dict(who.extra),
        impersonate=request.impersonate,
    )


def _number() -> str:
    """An id for a request, as upstream's audit ids are."""
    return str(uuid.UUID(int=random.getrandbits(128), version=4))


def _check_is_get(request: _Request) -> None:
    if request.method != "GET":
        raise statuses.method_not_allowed()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as why:
        listener.close()
        text = (
            f"port {port} of {host} is in use"
            if why.errno == errno.EADDRINUSE
            else f"cannot listen at {host}:{port}: {why.strerror}"
        )
        raise OSError(text) from why
    listener.setblocking(False)
    return listener


async def _discard(receive: Receive) -> None:
    """Take what a client goes on sending, for a while: who is cut off while writing never reads the answer."""
    left = DISCARD_BYTES_MAX
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return


async def _until_gone(receive: Receive, stream: _Stream) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.close()


def _watch_seconds(query: Mapping[str, str]) -> float:
    text = query.get("timeoutSeconds", "")
    return float(text) if text.isdigit() and int(text) > 0 and len(text) < 10 else random.uniform(*WATCH_SECONDS)


def _end_status(end: StreamEnd | Reply) -> dict[str, Any] | None:
    """The Status that a stream ended with; None for an ordinary end."""
    if end.body:
        body = end.body
        if isinstance(end, Reply):
            with suppress(MalformedError):
                body = decode_value(end.body, ApiResponse).body
        with suppress(msgspec.MsgspecError):
            status = _decode(body)
            if isinstance(status, dict) and status.get("status") == "Failure":
                return status
    return None if end.code is Code.OK else _unanswered(end.code, end.message).status


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


def _unanswered(code: Code, message: str) -> ApiError:
    """The registry gave no answer that has an HTTP status of its own."""
    status, reason = _HTTP.get(code, (500, "InternalError"))
    return ApiError(status, reason, message or f"the request ended with {code.name}", {})


def _too_many(retry_after: int) -> ApiError:
    """429 in the words of upstream's priority and fairness."""
    details = {"retryAfterSeconds": retry_after}
    return ApiError(429, "TooManyRequests", "Too many requests, please try again later.", details, retry_after=max(1, retry_after))


def _too_large() -> ApiError:
    return statuses.request_too_large(f"Request entity too large: limit is {BODY_BYTES_MAX}")


def _bad_include_object(value: str) -> ApiError:
    return statuses.bad_request(f'unrecognized includeObject value: "{value}"')


def _warning(text: str) -> bytes:
    plain = "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{plain}"'.encode()


def _from_protobuf(body: bytes) -> bytes:
    try:
        return _encode(schema.parse_protobuf(body))
    except schema.MalformedBodyError as why:
        raise statuses.bad_request(str(why)) from why


def _is_pretty(query: Mapping[str, str], user_agent: str) -> bool:
    asked = query.get("pretty")
    if asked is not None:
        return asked not in ("0", "false")
    return user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _as_yaml(body: bytes) -> bytes:
    text: str = yaml.dump(_decode(body), Dumper=_Dumper, allow_unicode=True, default_flow_style=False)
    return text.encode()
