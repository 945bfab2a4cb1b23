"""Where a cluster's processes come from.

The fleet says which machines share a process and which have one of their own; a placement makes a process of that: a fork of the
zygote on this machine (``Forks``), or an actor of Ray somewhere (``elbowroom.deploy.actors``). Machines are the same in both, and
so are the bytes between them.
"""

import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Protocol

from elbowroom.deploy.topology import Topology
from elbowroom.host.actor import Place
from elbowroom.host.keys import Keys
from elbowroom.host.spec import HostSpec, MachineSpec
from elbowroom.host.zygote import Zygote, ZygoteError


class Placement(Protocol):
    """What a supervisor needs of it. Used on one loop; ``exits`` tells of each spawned process once."""

    is_local: bool
    """Processes are on this machine: signals reach them, and their files are here."""
    keys: Keys | None
    """The members' keys, if processes speak over tcp."""

    async def start(self) -> str:
        """Be ready to spawn; the address to bind the control channel at."""
        ...

    def housed(self, spec: MachineSpec, identity: str) -> MachineSpec:
        """The machine with addresses and paths as they are here; ``identity`` tells its Node from others of the same name."""
        ...

    async def spawn(self, spec: HostSpec) -> int:
        """Start a process that runs ``spec``; its pid, or 0 if it ended before it began."""
        ...

    def signal(self, process: str, pid: int, number: int) -> bool:
        """Send the process a signal; False if that one cannot be sent there."""
        ...

    def place(self, process: str) -> Place | None:
        """Where the process lives, unless it is here."""
        ...

    def forget(self, spec: MachineSpec) -> None:
        """Remove what a machine that is gone for good kept on disk."""
        ...

    def exits(self) -> AsyncIterator[tuple[str, str]]:
        """Each process that ends, and how, in words."""
        ...

    async def stop(self) -> None:
        """End whatever still runs."""
        ...


class Forks:
    """Processes of this machine, forked by a zygote."""

    is_local = True
    keys: Keys | None = None

    def __init__(self, topology: Topology, preload: Sequence[str], import_path: Sequence[str]) -> None:
        self._topology, self._preload, self._import_path = topology, preload, import_path
        self._pids: dict[int, str] = {}
        self._zygote: Zygote | None = None

    async def start(self) -> str:
        self._zygote = await Zygote.start(self._preload, path=self._import_path)
        return self._topology.control_address

    def housed(self, spec: MachineSpec, identity: str) -> MachineSpec:
        return spec

    async def spawn(self, spec: HostSpec) -> int:
        assert self._zygote is not None, "it was started"
        pid = await self._zygote.spawn(spec)
        self._pids[pid] = spec.process
        return pid

    def signal(self, process: str, pid: int, number: int) -> bool:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        return True

    def place(self, process: str) -> Place | None:
        return None

    def forget(self, spec: MachineSpec) -> None:
        self._topology.forget(spec)

    async def exits(self) -> AsyncIterator[tuple[str, str]]:
        assert self._zygote is not None, "it was started"
        async for exited in self._zygote.exits():
            process = self._pids.pop(exited.pid, None)
            if process is not None:
                yield process, _ending(exited.status)
        raise ZygoteError("the zygote is gone")

    async def stop(self) -> None:
        if self._zygote is not None:
            await self._zygote.stop()


def _ending(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"ended with exit code {status}"
    return f"was killed by {signal.Signals(-status).name}"
