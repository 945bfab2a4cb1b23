"""A client on the bus, for asyncio: the supervisor, chaos workloads and tests are its users."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec
import zmq

from elbowroom.cache import Change, Reflector
from elbowroom.host.clock import Clock, Timers
from elbowroom.host.keys import Keys
from elbowroom.host.sockets import Dialer
from elbowroom.machine import Effect, Input, Note, PeerConnected, Received, Send, SetTimer, TimerFired
from elbowroom.rpc import STRATEGIC_PATCH, Calls, Finished, requests
from elbowroom.rpc.operations import ended, invoked
from elbowroom.wire import ApiRequest, ApiResponse, MalformedError, decode, encode

View = TypeVar("View")
Document = dict[str, Any]


class ApiError(Exception):
    """The API server refused, or nobody knows what became of the request (``status`` 0)."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else message)
        self.status, self.reason, self.message = status, reason, message


class _Watch(Generic[View]):
    """A copy of a collection and its changes that wait to be read; None is the end."""

    def __init__(self, reflector: Reflector[View]) -> None:
        self.reflector = reflector
        self.changes: asyncio.Queue[Change[View] | None] = asyncio.Queue()


class BusClient(AbstractAsyncContextManager["BusClient"]):
    """A peer that dials the API server (or another ``peer``) at ``address``.

    ``name`` decides the user (``supervisor`` and ``client/...`` are administrators); "" takes a random one. ``note`` is told
    ``api.invoke/ok/fail/info``, for a client whose history matters. ``clock`` is the cluster's, if its time is scaled; ``keys``
    are its members', which a tcp address takes. Made and used on one loop; ``start`` it, or use it as a context.
    """

    def __init__(
        self,
        name: str,
        address: str,
        *,
        peer: str = "apiserver",
        clock: Clock | None = None,
        note: Callable[[str, Mapping[str, Any]], None] | None = None,
        keys: Keys | None = None,
    ) -> None:
        self.name = name or f"client/{secrets.token_hex(6)}"
        self._address, self._peer, self._note, self._keys = address, peer, note, keys
        self._clock = clock or Clock()
        self._ids = itertools.count(1)
        self._calls = Calls(ids=self._ids)
        self._watches: dict[str, _Watch[Any]] = {}
        self._dialer: Dialer | None = None

    async def start(self) -> None:
        """Connect, or begin to: what is asked before the server is up waits for it until its deadline."""
        loop = asyncio.get_running_loop()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._timers = Timers(loop, self._clock)
        self._dialer = Dialer(loop, self._context, self.name, self._address, self._on_frame, self._on_reconnected, keys=self._keys)

    def redial(self, address: str) -> None:
        """The server listens at ``address`` now."""
        self._address = address
        if self._dialer is not None:
            self._dialer.redial(address)

    async def close(self) -> None:
        """Disconnect. Requests under way end with an unknown outcome, watches end."""
        if self._dialer is None:
            return
        for watch in self._watches.values():
            self._carry_out(watch.reflector.close())
            watch.changes.put_nowait(None)
        self._watches.clear()
        self._tell(PeerConnected(self._peer))  # no open call will be answered any more
        self._timers.drop(self)
        self._dialer.close(linger_ms=50)
        self._dialer = None
        self._context.term()

    async def __aenter__(self) -> "BusClient":
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    # ------------------------------------------------------------ calls

    async def call(self, method: str, body: Any = None, *, timeout: float = 10.0) -> Finished:
        """One unary call; it ends within ``timeout`` (emulated) seconds."""
        assert self._dialer is not None, "the client was not started, or is closed"
        done: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()
        self._carry_out(self._calls.begin(self._clock.now(), self._peer, method, body, context=done, timeout=timeout))
        try:
            return await done
        finally:
            if done.cancelled():
                self._calls.forget(done)

    async def api(self, request: ApiRequest, *, timeout: float = 10.0) -> ApiResponse:
        """One API request; status 0 says that nobody knows what became of it."""
        op = f"{self.name}/{next(self._ids)}"
        self._carry_out([invoked(op, request)])
        finished = await self.call("api", request, timeout=timeout)
        self._carry_out([ended(op, request, finished)])
        return finished.api()

    async def document(self, request: ApiRequest, *, timeout: float = 10.0) -> Document:
        """The object that a request returns; ``ApiError`` if it does not succeed."""
        response = await self.api(request, timeout=timeout)
        try:
            made = msgspec.json.decode(response.body, type=dict[str, Any]) if response.body else {}
        except msgspec.MsgspecError:
            made = {"message": response.body.decode(errors="replace")}
        if not 200 <= response.status < 300:
            raise ApiError(response.status, str(made.get("reason", "")), str(made.get("message", "")))
        return made

    async def get(self, resource: str, name: str, *, namespace: str = "", subresource: str = "") -> Document:
        return await self.document(requests.get(resource, name, namespace=namespace, subresource=subresource))

    async def list(self, resource: str, *, namespace: str = "", query: Mapping[str, str] | None = None) -> Document:
        return await self.document(requests.listing(resource, namespace=namespace, query=query))

    async def create(self, resource: str, body: Any, *, namespace: str = "", name: str = "", subresource: str = "") -> Document:
        return await self.document(requests.create(resource, body, namespace=namespace, name=name, subresource=subresource))

    async def update(self, resource: str, name: str, body: Any, *, namespace: str = "", subresource: str = "") -> Document:
        return await self.document(requests.update(resource, name, body, namespace=namespace, subresource=subresource))

    async def patch(
        self, resource: str, name: str, body: Any, *, namespace: str = "", subresource: str = "", kind: str = STRATEGIC_PATCH
    ) -> Document:
        asked = requests.patch(resource, name, body, namespace=namespace, subresource=subresource, kind=kind)
        return await self.document(asked)

    async def delete(self, resource: str, name: str, *, namespace: str = "", options: Mapping[str, Any] | None = None) -> Document:
        return await self.document(requests.delete(resource, name, namespace=namespace, options=options))

    # ------------------------------------------------------------ watches

    async def watch(
        self, resource: str, view: type[View], *, namespace: str = "", query: dict[str, str] | None = None
    ) -> AsyncIterator[Change[View]]:
        """Every object that there is, then every change, over reconnects and for as long as it is iterated. ``view`` may be
        ``dict``."""
        name = f"{resource}/{next(self._ids)}"
        watch: _Watch[View] = _Watch(
            Reflector(resource, view, namespace=namespace, query=query, target=self._peer, ids=self._ids, name=name)
        )
        self._watches[name] = watch
        self._carry_out(watch.reflector.open(self._clock.now()))
        try:
            while (change := await watch.changes.get()) is not None:
                yield change
        finally:
            if self._watches.pop(name, None) is not None:
                self._carry_out(watch.reflector.close())

    # ------------------------------------------------------------ inside

    def _on_frame(self, frame: bytes) -> None:
        try:
            message = decode(frame)
        except MalformedError:
            return  # no message of ours; what was asked ends by its deadline
        self._tell(Received(self._peer, message))

    def _on_reconnected(self) -> None:
        self._tell(PeerConnected(self._peer))

    def _on_timer(self, name: str) -> None:
        self._tell(TimerFired(name))

    def _tell(self, happened: Input) -> None:
        now = self._clock.now()
        effects, finished = self._calls.finished(now, happened)
        self._carry_out(effects)
        for one in finished:
            if not one.context.done():
                one.context.set_result(one)
        for watch in list(self._watches.values()):
            effects, changes = watch.reflector.handle(now, happened)
            self._carry_out(effects)
            for change in changes:
                watch.changes.put_nowait(change)

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Note(name, fields):
                    if self._note is not None:
                        self._note(name, fields)
                case Send(_, message):
                    if self._dialer is not None:
                        self._dialer.send(encode(message))
                case SetTimer(name, at):
                    if self._dialer is not None:
                        self._timers.set(self, name, at, self._on_timer)
                case _:
                    raise AssertionError(f"{effect!r} is no effect of calls and streams")
