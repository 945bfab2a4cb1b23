"""ZeroMQ sockets on an event loop, raw: four times the rate of ``zmq.asyncio``.

A socket's FD is edge-triggered: it tells that libzmq has commands to process, which any call on the socket may do instead.
So the reader drains until EAGAIN and looks at EVENTS afterwards, and after sending the socket is looked at again, once in a
turn of the loop. Messages are sent and received by the calls that pyzmq has underneath its own: a quarter of the cost.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from elbowroom.host.keys import Keys, secure
from elbowroom.wire.codec import FRAME_BYTES_MAX

HIGH_WATER = 1024
BACKLOG_MAX = 8192
TRUNK_BACKLOG_MAX = 16 * BACKLOG_MAX
RETRY_SECONDS = 0.01
_BATCH = 64
_NOW, _MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)
_EVENTS, _RCVMORE = int(zmq.EVENTS), int(zmq.RCVMORE)


class Sent(Enum):
    """What became of a message."""

    PASSED = "passed"
    """On its way, or waiting in order for a reader that is slow."""
    AWAY = "the peer is not connected"
    FULL = "the peer does not read"


def configure(socket: "zmq.Socket[bytes]", address: str) -> None:
    """Bounds for every socket, set on purpose."""
    socket.linger = 0
    socket.setsockopt(zmq.SNDHWM, HIGH_WATER)
    socket.setsockopt(zmq.RCVHWM, HIGH_WATER)
    socket.setsockopt(zmq.MAXMSGSIZE, FRAME_BYTES_MAX)
    socket.setsockopt(zmq.RECONNECT_IVL, 20)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
    if address.startswith("tcp://"):
        # On one machine the kernel tells of a dead peer at once; between machines only silence does.
        socket.setsockopt(zmq.HEARTBEAT_IVL, 5_000)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 15_000)
        socket.setsockopt(zmq.HEARTBEAT_TTL, 15_000)


class Pump:
    """Moves the messages of one socket: ``received(frames)`` for each that arrives while ``open``; ``send`` never blocks."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, socket: "zmq.Socket[bytes]", received: Callable[[list[bytes]], None]
    ) -> None:
        self._loop, self.socket, self._received = loop, socket, received
        bare: Any = super(zmq.Socket, socket)
        self._send, self._recv, self._get = bare.send, bare.recv, bare.get
        self._backlog: dict[bytes, deque[list[bytes]]] = {}
        self._scheduled = False
        self._looking = False
        self._retrying: asyncio.TimerHandle | None = None
        self.open = True
        self._file = int(socket.getsockopt(zmq.FD))
        loop.add_reader(self._file, self._ready)
        loop.call_soon(self._ready)

    def send(self, frames: list[bytes], peer: bytes = b"", backlog_max: int = BACKLOG_MAX) -> Sent:
        """Hand over a message for ``peer``; in order, with a bounded backlog where the pipe is full."""
        if not self._looking:
            self._looking = True
            self._loop.call_soon(self._look)
        backlog = self._backlog.get(peer)
        if backlog is None:
            outcome = self._try(frames)
            if outcome is not Sent.FULL:
                return outcome
            backlog = self._backlog[peer] = deque()
        if len(backlog) >= backlog_max:
            return Sent.FULL
        backlog.append(frames)
        return Sent.PASSED

    def forget(self) -> None:
        """Drop what waits for slow readers."""
        self._backlog.clear()

    def resume(self) -> None:
        """Take messages again, after ``open`` was False."""
        self.open = True
        self._schedule()

    def drain(self) -> None:
        """Take all that has arrived, now."""
        while self.open and not self.socket.closed:
            try:
                frames = self._message()
            except zmq.Again:
                return
            self._received(frames)

    def close(self, linger_ms: int = 0) -> None:
        if self._retrying is not None:
            self._retrying.cancel()
        if not self.socket.closed:
            self._loop.remove_reader(self._file)
            self.socket.close(linger=linger_ms)

    def _message(self) -> list[bytes]:
        frames: list[bytes] = [self._recv(_NOW)]
        while self._get(_RCVMORE):
            frames.append(self._recv(_NOW))
        return frames

    def _try(self, frames: list[bytes]) -> Sent:
        try:
            for frame in frames[:-1]:
                self._send(frame, _MORE)
            self._send(frames[-1], _NOW)
        except zmq.Again:
            return Sent.FULL
        except zmq.ZMQError as why:
            if why.errno == errno.EHOSTUNREACH:
                return Sent.AWAY
            raise
        return Sent.PASSED

    def _ready(self) -> None:
        self._scheduled = False
        try:
            for _ in range(_BATCH):
                if self.socket.closed or not self.open:
                    break
                try:
                    frames = self._message()
                except zmq.Again:
                    break
                self._received(frames)
        finally:
            self._look()

    def _look(self) -> None:
        """Whatever libzmq has to say: the call processes its commands, so that the FD is quiet until there are new ones."""
        self._looking = False
        if self.socket.closed:
            return
        events = int(self._get(_EVENTS))
        if self._backlog:
            self._retry()
            events = int(self._get(_EVENTS))
        if events & zmq.POLLIN and self.open:
            self._schedule()

    def _retry(self) -> None:
        for peer in list(self._backlog):
            backlog = self._backlog[peer]
            while backlog and self._try(backlog[0]) is not Sent.FULL:
                backlog.popleft()
            if not backlog:
                del self._backlog[peer]
        if self._retrying is not None:
            self._retrying.cancel()
            self._retrying = None
        if self._backlog:
            # A send to one peer may swallow the sign that another one's pipe has room again.
            self._retrying = self._loop.call_later(RETRY_SECONDS, self._look)

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._ready)


class Listener:
    """A ROUTER bound at ``address``: ``received(peer, frame)`` for each message, ``send`` to a peer by its routing id.

    At a tcp address it takes ``keys``, and the context a ``Gatekeeper``.

    A peer may be one of many behind a trunk (``elbowroom.host.shared``): its messages bear its name, and so do those to it, which
    go the way that its last one came; but what an earlier life still says over its own does not turn the way of a later one.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: "zmq.Context[zmq.Socket[bytes]]",
        address: str,
        received: Callable[[str, bytes], None],
        keys: Keys | None = None,
    ) -> None:
        socket = context.socket(zmq.ROUTER)
        configure(socket, address)
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        try:
            secure(socket, address, keys, listens=True)
            socket.bind(address)
        except (zmq.ZMQError, ValueError):
            socket.close()
            raise
        self.address: str = socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._received = received
        self._behind: dict[str, bytes] = {}
        """Who speaks over a trunk, and over which."""
        self.pump = Pump(loop, socket, self._on_frames)

    @property
    def open(self) -> bool:
        return self.pump.open

    def send(self, peer: str, frame: bytes) -> Sent:
        identity, trunk = peer.encode(), self._behind.get(peer)
        if trunk is None:
            return self.pump.send([identity, frame], identity)
        # A full pipe must not make one of a thousand pay for the others: each has a backlog's worth of its own.
        return self.pump.send([trunk, identity, frame], trunk, TRUNK_BACKLOG_MAX)

    def hold(self) -> None:
        self.pump.open = False

    def resume(self) -> None:
        self.pump.resume()

    def close(self, linger_ms: int = 0) -> None:
        """Close, and remove the file of an ``ipc`` address, which libzmq leaves behind."""
        self.pump.close(linger_ms)
        if self.address.startswith("ipc://"):
            Path(self.address.removeprefix("ipc://")).unlink(missing_ok=True)

    def _on_frames(self, frames: list[bytes]) -> None:
        # A routing id that libzmq made up begins with NUL: a peer without a name, with whom we don't speak.
        if len(frames) not in (2, 3) or frames[0].startswith(b"\0"):
            return
        try:
            peer = frames[-2].decode()
        except UnicodeDecodeError:
            return
        if len(frames) == 3:
            if not _is_older(frames[0], self._behind.get(peer, b"")):
                self._behind[peer] = frames[0]
        elif self._behind:
            self._behind.pop(peer, None)
        self._received(peer, frames[-1])


def _is_older(line: bytes, other: bytes) -> bool:
    """Is it the line (``HostSpec.line``) of an earlier life than the other?"""
    life, other_life = line.rpartition(b"#")[2], other.rpartition(b"#")[2]
    return line != life and other != other_life and life.isdigit() and other_life.isdigit() and int(life) < int(other_life)


class Dialer:
    """A DEALER named ``name``, connected to ``address`` ("": not known yet; what is sent waits until ``redial`` tells).

    ``received(frame)`` for each message; ``reconnected()`` when the connection is up again after it broke, once all that came
    over the old one has been handed over. Messages sent before the first connection wait for it; those sent while a broken
    connection is down are lost (AWAY).
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: "zmq.Context[zmq.Socket[bytes]]",
        name: str,
        address: str,
        received: Callable[[bytes], None],
        reconnected: Callable[[], None],
        *,
        frames: Callable[[list[bytes]], None] | None = None,
        keys: Keys | None = None,
    ) -> None:
        """``frames`` is given whole messages of several frames, instead of ``received`` their last."""
        self._loop, self._context, self._name, self.address = loop, context, name, address
        self._received = frames or (lambda parts: received(parts[-1]))
        self._reconnected = reconnected
        self._keys = keys
        self._was_up = False
        self._down = False
        self._connect()

    @property
    def open(self) -> bool:
        return self.pump.open

    def send(self, frame: bytes) -> Sent:
        return self.send_frames([frame])

    def send_frames(self, frames: list[bytes]) -> Sent:
        return Sent.AWAY if self._down else self.pump.send(frames)

    def redial(self, address: str) -> None:
        """The peer listens at ``address`` now: connect there."""
        if not self.address:
            self._prepare(self.pump.socket, address)
            self.pump.socket.connect(address)
            self.address = address
            return
        was_open = self.open
        self.close()
        self.address = address
        self._was_up = self._down = False
        self._connect()
        if not was_open:
            self.hold()
        self._reconnected()

    def hold(self) -> None:
        """Take neither messages nor news of the connection until ``resume``."""
        self.pump.open = False
        self._monitor.open = False

    def resume(self) -> None:
        self.pump.resume()
        self._monitor.resume()

    def close(self, linger_ms: int = 0) -> None:
        if not self.pump.socket.closed:
            self.pump.socket.disable_monitor()
            self._monitor.close()
            self.pump.close(linger_ms)

    def _connect(self) -> None:
        socket = self._context.socket(zmq.DEALER)
        try:
            self._prepare(socket, self.address)
        except ValueError:
            socket.close()
            raise
        socket.setsockopt(zmq.ROUTING_ID, self._name.encode())
        monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        self._monitor = Pump(self._loop, monitor, self._on_event)
        self.pump = Pump(self._loop, socket, self._received)
        if self.address:
            socket.connect(self.address)

    def _prepare(self, socket: "zmq.Socket[bytes]", address: str) -> None:
        configure(socket, address)
        secure(socket, address, self._keys, listens=False)

    def _on_event(self, frames: list[bytes]) -> None:
        event = parse_monitor_message(frames)["event"]
        if event == zmq.EVENT_DISCONNECTED:
            self._down = True
            self.pump.forget()
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            again, self._was_up, self._down = self._was_up, True, False
            if again:
                self.pump.drain()
                self._reconnected()
