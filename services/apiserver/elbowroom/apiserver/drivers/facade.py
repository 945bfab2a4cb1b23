"""The Kubernetes API over HTTPS: a driver that turns REST into the calls that the bus carries.

There is one registry and one set of semantics. A request becomes an ``ApiRequest`` from the peer ``http/N`` and waits for the
``Reply``; a watch becomes a stream whose credit grows as its lines are written, so a stuck reader holds only itself. What is
the same for every registry is answered here: TLS, who asks and how often, discovery, OpenAPI, Tables, YAML, health. The keys are
here too, so tokens are signed and read here for the machine.

The event loop, and the thread, are the host's. uvicorn's protocol does HTTP/1.1 (measured against five others: 33 us a GET).
"""

import asyncio
import errno
import hmac
import math
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from uvicorn.server import ServerState

from elbowroom.apiserver import audit, negotiation, schema, statuses, tokens
from elbowroom.apiserver.drivers.answers import Answers, number
from elbowroom.apiserver.drivers.audit import FileLog, Log
from elbowroom.apiserver.drivers.bodies import Bodies
from elbowroom.apiserver.drivers.certificates import make_credentials, tokens_of_file
from elbowroom.apiserver.drivers.connections import Door
from elbowroom.apiserver.drivers.customs import Customs
from elbowroom.apiserver.drivers.documents import Documents
from elbowroom.apiserver.drivers.exchange import PREFIX, Exchange
from elbowroom.apiserver.drivers.protocol import PatientProtocol
from elbowroom.apiserver.drivers.request import Receive, Request, Scope, SendMessage, of_scope
from elbowroom.apiserver.drivers.short import ShortWay, content_type_of
from elbowroom.apiserver.drivers.tokens import TokenKey
from elbowroom.apiserver.drivers.watching import Watching
from elbowroom.apiserver.fairness import BYTES_A_REQUEST, Buckets
from elbowroom.apiserver.identity import ANONYMOUS, Authenticator, BadTokenError, Identity, is_open
from elbowroom.apiserver.impersonation import asked_for
from elbowroom.apiserver.negotiation import JSON, PLAIN, PROTOBUF, Form
from elbowroom.apiserver.routing import Target, route
from elbowroom.apiserver.statuses import ApiError
from elbowroom.machine import Input, Instant, Send, Work, WorkDone
from elbowroom.wire import ApiRequest, ApiResponse

KEEP_ALIVE_SECONDS = 90
PATCH_TYPES = frozenset(
    f"application/{kind}" for kind in ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
)

_encode = msgspec.json.Encoder().encode


def build(config: Mapping[str, Any]) -> "Facade":
    """The facade as a ``seams.Driver``.

    ``config``: ``host`` (127.0.0.1), ``port`` (0: a free one), ``credentials`` (the directory of ``make_credentials``), ``tokens``
    (more identities: ``{"token", "user", "groups"}``), ``timeScale`` and ``origin`` (as in ``host.spec.HostSpec``, for ages),
    ``previews`` (are the fields of the lab profile described?), ``gates`` (which are on of those that kinds hang on), ``audit``
    (``{"level", "path"}``; absent: no log). ``start`` tells ``{"port"}``, and raises ``OSError`` with a clear line if the port is
    taken.
    """
    return Facade(config)


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
        self._bodies = Bodies()
        wanted = config.get("audit") or {}
        self._level: str = wanted.get("level", "None")
        self._log: Log | None = None if self._level == "None" else FileLog(Path(wanted["path"]))
        self._scale: float = config.get("timeScale", 1.0)
        self._origin: int = config.get("origin", 0) or time.time_ns()
        self._exchange = Exchange()
        self._door: Door | None = None
        self._state = ServerState()
        self._customs = Customs(self._post_soon, lambda: self._documents.forget(), config.get("gates", ()))
        self._answers = Answers(self._now, self._customs.definition_of)
        self._watching = Watching(self._exchange, self._answers, self._now)
        self._short = ShortWay(self._exchange, self._answers, self._admit, self._asked, self._charge)
        self._documents = Documents(self._exchange, self._answers, self._customs, previews=config.get("previews", False))

    # ------------------------------------------------------------ driver

    async def start(self, post: Callable[[Input], None]) -> Mapping[str, Any]:
        """Listen; afterwards requests come in through ``post``."""
        self._exchange.post = post
        listener = _bound(self._host, self._port)
        self._port = listener.getsockname()[1]
        self._documents.address = f"{self._host}:{self._port}"
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
        take = self._take_short if self._log is None else None
        self._door = Door(listener, self._tls, lambda door: PatientProtocol(config, self._state, door, take))
        self._door.open()
        self._exchange.register(self._customs.peer, self._customs)
        self._customs.open()
        return {"port": self._port}

    def _post_soon(self, happened: Input, seconds: float = 0.0) -> None:
        """What a delivery makes the facade say is said when the machine's step is over."""
        asyncio.get_running_loop().call_later(seconds, lambda: self._exchange.post(happened) if self._door is not None else None)

    def deliver(self, effect: Send) -> None:
        """An answer of the machine's; one that nobody waits for any more is dropped."""
        self._exchange.deliver(effect.target, effect.message)

    def buffered(self, peer: str) -> int:
        """How many messages of ``peer``'s watch wait to be written."""
        return self._exchange.buffered(peer)

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
                        self._log.write(audit.event(self._level, audit.of_fact(fact, number())))
                    return
                case task:
                    raise AssertionError(f"the facade has no work like {task!r}")
        except BadTokenError as why:
            outcome = why
        asyncio.get_running_loop().call_soon(self._exchange.post, WorkDone(effect.token, outcome))

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
        self._exchange.close_streams()
        for connection in list(self._state.connections):
            connection.shutdown()
        await self._exchange.settle(1.0)
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
        request = of_scope(scope, receive, send)
        received = self._now() if self._log is not None else Instant(0)
        try:
            self._admit(request)
            found = route(request.method, request.path, request.query, self._customs.catalog)
            if isinstance(found, Target):
                await self._resource(request, found)
            else:
                await self._documents.serve(request, found)
        except ApiError as refusal:
            await self._answers.refuse(request, refusal)
        finally:
            if self._log is not None:
                self._audit(request, received)

    def _take_short(self, request: Request, body: bytes) -> bool:
        """Answer a request that came whole without a task, if it is of the ordinary kind."""
        return self._short.take(request, body, self._customs.catalog)

    def _admit(self, request: Request) -> None:
        """Find out who asks and as whom, and refuse who asks too often; probes of health are let through."""
        now = time.monotonic()
        connection = request.connection
        said = request.headers.get(b"authorization", b"")
        if connection.said is not None and hmac.compare_digest(connection.said, said):
            who = connection.told_by
        else:
            try:
                who = self._authenticator.identify(said.decode("latin-1"), connection.certificate)
            except ApiError:
                self._take(now, ANONYMOUS)
                raise
            if self._authenticator.is_lasting(who):
                connection.said, connection.told_by = said, who
        request.who = who
        if not who.is_master and not is_open((), request.path):
            self._take(now, who)
        if not connection.is_proven and who is not ANONYMOUS:
            connection.prove()
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.given if name.startswith(b"impersonate-")
        ]
        request.impersonate = asked_for(headers) if headers else None

    def _take(self, now: float, who: Identity) -> None:
        wait = self._buckets.wait(now, who)
        if wait:
            raise statuses.too_often(math.ceil(wait))

    def _audit(self, request: Request, received: Instant) -> None:
        assert self._log is not None
        who, asked = request.who, request.asked
        client = request.peer
        query = f"?{request.query}" if request.query else ""
        entry = audit.Entry(
            request.audit_id or number(),
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

    async def _resource(self, request: Request, target: Target) -> None:
        form = negotiation.negotiate(request.accept)
        content_type = content_type_of(request)
        if form is None:
            if target.verb == "patch" and content_type not in PATCH_TYPES:
                raise statuses.unsupported_patch_type()
            if target.subresource is None or target.subresource.name not in ("proxy", "log"):
                raise negotiation.refusal(request.accept, watchable=target.is_collection and target.verb in ("list", "watch"))
            form = PLAIN
        body = await self._bodies.read(request) if request.method != "GET" else b""
        asked = self._asked(request, target, content_type, body)
        if target.verb == "watch":
            await self._watching.serve(request, asked, target, form)
            return
        response = await self._exchange.ask(asked)
        if target.subresource is not None and target.subresource.name not in ("status", "scale"):
            form = Form(form.media_type)
        self._charge(request, response)
        await self._answers.answer(request, response, form, target.query)

    def _charge(self, request: Request, response: ApiResponse) -> None:
        """A large answer counts as several."""
        request.notes = response.annotations
        if len(response.body) >= BYTES_A_REQUEST["answer"]:
            self._buckets.charge(time.monotonic(), request.who, len(response.body))

    def _asked(self, request: Request, target: Target, content_type: str, body: bytes) -> ApiRequest:
        """What the machine is asked."""
        who = request.who
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
        return asked


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


def _from_protobuf(body: bytes) -> bytes:
    try:
        return _encode(schema.parse_protobuf(body))
    except schema.MalformedBodyError as why:
        raise statuses.bad_request(str(why)) from why
