"""A host process as an actor of Ray: Ray chooses the machine, starts the process and starts it again; nothing else goes through it.

The actor is made empty. Whoever placed it asks where it is, and has it ``serve`` a ``HostSpec``, whose machines speak over ZeroMQ
like those of any other process. When Ray has started it anew it is empty again, and is told again what to serve.

Relative paths in the spec are taken from a directory of this machine, process and run (``home``), so that actors that follow each
other on a machine find what the former kept, and a copy that lives on elsewhere writes over nobody's files. It is removed when the
actor ends in order.

Ray takes an actor for dead whose raylet is, but its process may live on, and so may one that has ended in order. Neither does for
long: whoever has lost its parent, or has nothing to serve any more, ends after ``ORPHAN_SECONDS``.
"""

import asyncio
import os
import shutil
from contextlib import suppress
from pathlib import Path

import msgspec

from elbowroom.host.process import Host, settle
from elbowroom.host.spec import decode_spec

ORPHAN_SECONDS = 10.0
"""Long enough for whoever asked to have heard the answer."""


class Place(msgspec.Struct, frozen=True):
    """Where an actor lives: Ray's id of the machine, the machine's address, the process there."""

    node: str
    ip: str
    pid: int


class HostActor:
    """One process of a cluster; an asyncio actor, which Ray runs on a loop of its own."""

    def __init__(self) -> None:
        self._host: Host | None = None
        self._serving: asyncio.Task[None] | None = None
        self._parent = os.getppid()
        self._watching: asyncio.Task[None] | None = None

    async def place(self) -> tuple[str, str, int]:
        """The fields of its ``Place``."""
        import ray

        return ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address(), os.getpid()

    async def serve(self, frame: bytes, home: str) -> None:
        """Run the machines of an encoded ``HostSpec`` until they are shut down; raises what the process would die of. Those of an
        earlier call end before."""
        if self._host is not None and self._serving is not None:
            self._host.shut_down()
            with suppress(Exception):
                await self._serving
        spec = decode_spec(frame)
        Path(home).mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chdir(home)
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._end_as_orphan())
            settle(spec.nice)
        if spec.log:
            _write_to(Path(spec.log))
        self._host = Host(spec, asyncio.get_running_loop())
        self._serving = asyncio.ensure_future(self._host.serve())
        await self._serving
        os.chdir("/")
        shutil.rmtree(home, ignore_errors=True)

    async def _end_as_orphan(self) -> None:
        needless = 0
        while needless < 2:
            await asyncio.sleep(ORPHAN_SECONDS)
            is_needed = os.getppid() == self._parent and self._serving is not None and not self._serving.done()
            needless = 0 if is_needed else needless + 1
        os._exit(1)


def _write_to(log: Path) -> None:
    """Let standard output and error go to that file, as a forked process's do."""
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
