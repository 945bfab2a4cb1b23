"""A fork server: it has imported everything once, so a host process costs a fork instead of a Python start.

The zygote is executed afresh (no thread, loop or ZeroMQ context may exist when it forks), imports ``preload``, freezes the
collector's generations so that its pages stay shared, and forks a child for each spec that comes over its socket. It reaps
them and reports how they ended. It dies with its owner, and its children with it.
"""

import asyncio
import gc
import importlib
import os
import selectors
import signal
import socket
import struct
import sys
import traceback
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import NoReturn

import msgspec

from elbowroom.host.log import let_lines_be_lost
from elbowroom.host.process import die_with_parent, run
from elbowroom.host.spec import HostSpec, decode_spec, encode

SERVICES = (
    "elbowroom.apiserver.machine",
    "elbowroom.apiserver.drivers.facade",
    "elbowroom.apiserver.drivers.sqlite",
    "elbowroom.scheduler.machine",
    "elbowroom.kubelet.machine",
    "elbowroom.runtime.machine",
    "elbowroom.controllers.machine",
)
"""What a cluster's processes run; imported by name, since a host knows no service."""

_LENGTH = struct.Struct("!I")


class Forked(msgspec.Struct, frozen=True, tag=True):
    """A spec was taken: its process, or 0 and why there is none."""

    pid: int
    error: str = ""


class Exited(msgspec.Struct, frozen=True, tag=True):
    """A process ended. ``status`` is its exit code, or minus the signal that killed it."""

    pid: int
    status: int


class ZygoteError(RuntimeError):
    """The zygote could not fork, or is gone."""


_decoder: msgspec.msgpack.Decoder[Forked | Exited] = msgspec.msgpack.Decoder(Forked | Exited)


class Zygote:
    """The owner's side, on an asyncio loop. Make it with ``start``."""

    def __init__(self, connection: socket.socket, process: asyncio.subprocess.Process) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket, self._process = connection, process
        self._buffer = bytearray()
        self._forks: deque[asyncio.Future[int]] = deque()
        self._exits: asyncio.Queue[Exited | None] = asyncio.Queue()
        self._sending = asyncio.Lock()
        self._loop.add_reader(connection, self._read)

    @classmethod
    async def start(cls, preload: Sequence[str] = SERVICES, *, path: Sequence[str] = ()) -> "Zygote":
        """Start the fork server; it is ready on return. ``path``: more directories for imports."""
        ours, theirs = socket.socketpair()
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # no thread before the forks
        if path:
            environment["PYTHONPATH"] = os.pathsep.join([*path, *filter(None, [os.environ.get("PYTHONPATH")])])
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "elbowroom.host.zygote",
                str(theirs.fileno()),
                str(os.getpid()),
                *preload,
                pass_fds=[theirs.fileno()],
                env=environment,
                start_new_session=True,
            )
        ours.setblocking(False)
        zygote = cls(ours, process)
        ready: asyncio.Future[int] = zygote._loop.create_future()
        zygote._forks.append(ready)
        await ready
        return zygote

    async def spawn(self, spec: HostSpec) -> int:
        """Fork a process that runs ``spec``; its pid. ``ZygoteError`` if that cannot be done."""
        forked: asyncio.Future[int] = self._loop.create_future()
        frame = encode(spec)
        async with self._sending:
            self._forks.append(forked)
            await self._loop.sock_sendall(self._socket, _LENGTH.pack(len(frame)) + frame)
        return await forked

    async def exits(self) -> AsyncIterator[Exited]:
        """Each process that ends, as it ends; over when the zygote is gone."""
        while (exited := await self._exits.get()) is not None:
            yield exited

    async def stop(self) -> None:
        """End the zygote, even a frozen one; children that still run are killed by the kernel."""
        self._lost()
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    def _read(self) -> None:
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._lost()
            return
        self._buffer += data
        for frame in _frames(self._buffer):
            match _decoder.decode(frame):
                case Forked(pid, error):
                    waiting = self._forks.popleft()
                    if error:
                        waiting.set_exception(ZygoteError(error))
                    elif not waiting.cancelled():
                        waiting.set_result(pid)
                case Exited() as exited:
                    self._exits.put_nowait(exited)

    def _lost(self) -> None:
        if self._socket.fileno() < 0:
            return
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._exits.put_nowait(None)
        while self._forks:
            waiting = self._forks.popleft()
            if not waiting.done():
                waiting.set_exception(ZygoteError("the zygote is gone"))


def _frames(buffer: bytearray) -> list[bytes]:
    """Take the whole frames out of ``buffer``."""
    found = []
    while len(buffer) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(buffer)
        if len(buffer) < _LENGTH.size + length:
            break
        found.append(bytes(buffer[_LENGTH.size : _LENGTH.size + length]))
        del buffer[: _LENGTH.size + length]
    return found


# ---------------------------------------------------------------- the zygote itself


def _serve(connection: socket.socket) -> None:
    woken, wake = socket.socketpair()
    woken.setblocking(False)
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    buffer = bytearray()
    _tell(connection, Forked(os.getpid()))
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                woken.recv(4096)
                _reap(connection)
            if connection in ready:
                data = connection.recv(1 << 20)
                if not data:
                    return
                buffer += data
                for frame in _frames(buffer):
                    _tell(connection, _fork(frame, (connection, woken, wake)))


def _tell(connection: socket.socket, what: Forked | Exited) -> None:
    frame = msgspec.msgpack.encode(what)
    connection.sendall(_LENGTH.pack(len(frame)) + frame)


def _reap(connection: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _tell(connection, Exited(pid, os.waitstatus_to_exitcode(status)))


def _fork(frame: bytes, ours: Sequence[socket.socket]) -> Forked:
    zygote = os.getpid()
    try:
        spec = decode_spec(frame)
        pid = os.fork()
    except (msgspec.MsgspecError, OSError) as why:
        return Forked(0, str(why))
    if pid == 0:
        _child(spec, ours, zygote)
    return Forked(pid)


def _child(spec: HostSpec, ours: Sequence[socket.socket], zygote: int) -> NoReturn:
    status = 1
    try:
        die_with_parent()
        if os.getppid() != zygote:
            os._exit(1)  # it died before we could ask for that
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in ours:
            one.close()
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        if spec.log:
            log = os.open(spec.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(log)
            let_lines_be_lost()
        os.close(null)
        run(spec)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(arguments: Sequence[str]) -> None:
    """``python -m elbowroom.host.zygote SOCKET OWNER MODULE...``: serve the owner at that inherited socket."""
    file, owner, *preload = arguments
    die_with_parent()
    if os.getppid() != int(owner):
        return  # it died before we could ask for that
    for module in preload:
        try:
            importlib.import_module(module)
        except Exception as why:  # whoever needs it fails with its own traceback, in its own log
            sys.stderr.write(f"zygote: {module} is not preloaded: {why!r}\n")
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(file)) as connection:
        try:
            _serve(connection)
        except ConnectionError:
            return  # the owner is gone


if __name__ == "__main__":
    main(sys.argv[1:])
