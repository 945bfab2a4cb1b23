"""The door: takes connections in, knows them all, and shows strangers out when it becomes crowded.

A stranger is whoever has not yet made a request as somebody known. Before the TLS handshake is done one costs a file and may cost
a millisecond of the loop at any moment, so there are few of those at a time; when there are too many connections altogether, the
oldest stranger goes first and who is known stays. A few are taken in a turn of the loop, so that a rush holds nobody else up.
"""

import asyncio
import resource
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from elbowroom.apiserver.drivers.protocol import PatientProtocol, Told

CONNECTIONS_MAX = 4096
HANDSHAKES_MAX = 256
"""Connections that have not finished the TLS handshake."""
HANDSHAKE_SECONDS = 10.0
IN_A_TURN = 16
FILES_KEPT = 256
"""File descriptors left to the store, the bus and the logs."""
PAUSE_SECONDS = 0.1
BACKLOG = 1024


def connections_max() -> int:
    """How many connections this process has files for, at most ``CONNECTIONS_MAX``; raises its soft limit if it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + FILES_KEPT
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    return CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else max(16, min(CONNECTIONS_MAX, soft - FILES_KEPT))


class Door(Told):
    """Listens at ``listener`` (bound, non-blocking); ``make`` gives the protocol of a new connection."""

    def __init__(self, listener: socket.socket, tls: ssl.SSLContext, make: Callable[["Door"], PatientProtocol]) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener, self._tls, self._make = listener, tls, make
        self._max = connections_max()
        self._shaking: dict[socket.socket, asyncio.Task[None]] = {}
        """Sockets whose handshake is not done, the oldest first."""
        self._strangers: dict[PatientProtocol, None] = {}
        self._known: dict[PatientProtocol, None] = {}
        self._paused: asyncio.TimerHandle | None = None

    def open(self) -> None:
        self._listener.listen(BACKLOG)
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Take nobody any more; who is inside stays."""
        if self._paused is not None:
            self._paused.cancel()
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()
        for task in self._shaking.values():
            task.cancel()

    def __len__(self) -> int:
        return len(self._shaking) + len(self._strangers) + len(self._known)

    # ------------------------------------------------------------ told by the connections

    def made(self, connection: PatientProtocol) -> None:
        self._strangers[connection] = None

    def proven(self, connection: PatientProtocol) -> None:
        if self._strangers.pop(connection, 0) is None:
            self._known[connection] = None

    def lost(self, connection: PatientProtocol) -> None:
        self._strangers.pop(connection, None)
        self._known.pop(connection, None)

    # ------------------------------------------------------------ taking

    def _accept(self) -> None:
        for _ in range(IN_A_TURN):
            try:
                taken, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no file is left
                self._show_out()
                self._loop.remove_reader(self._listener.fileno())
                self._paused = self._loop.call_later(PAUSE_SECONDS, self._go_on)
                return
            taken.setblocking(False)
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if len(self._shaking) >= HANDSHAKES_MAX:
                self._refuse(next(iter(self._shaking)))
            if len(self) >= self._max and not self._show_out():
                taken.close()
                continue
            self._shaking[taken] = self._loop.create_task(self._welcome(taken))

    def _go_on(self) -> None:
        self._paused = None
        self._loop.add_reader(self._listener.fileno(), self._accept)

    async def _welcome(self, taken: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._make(self), taken, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS, ssl_shutdown_timeout=1
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            taken.close()
        finally:
            self._shaking.pop(taken, None)

    def _show_out(self) -> bool:
        """Let the oldest stranger go; False if there is none."""
        if self._shaking:
            self._refuse(next(iter(self._shaking)))
            return True
        if self._strangers:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()
            return True
        return False

    def _refuse(self, taken: socket.socket) -> None:
        self._shaking.pop(taken).cancel()
