"""Hosts on the test's own loop, a supervisor's ear, and clients: what the tests of this folder stand on."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import uvloop
import zmq
from probes import Script

from elbowroom.client import BusClient
from elbowroom.host.process import Host
from elbowroom.host.sockets import Listener
from elbowroom.host.spec import Arm, Armed, HostSpec, MachineSpec, Order, Ready, Report, decode_report, encode
from elbowroom.wire import Code, decode_value

PATIENCE_SECONDS = 10.0


def on_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[[], None]:
    """Run a coroutine test on uvloop, with an ``Ear`` in a folder of its own."""

    def wrapped() -> None:
        async def run() -> None:
            with tempfile.TemporaryDirectory(prefix="eb") as folder:
                ear = Ear(Path(folder))
                try:
                    await asyncio.wait_for(test(ear), 30)
                finally:
                    await ear.close()

        uvloop.run(run())

    wrapped.__name__ = test.__name__
    return wrapped


class Ear:
    """The supervisor's end of the control channel, and what tests need around it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reports: list[tuple[str, Report]] = []
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._news = asyncio.Event()
        self._listener = Listener(asyncio.get_running_loop(), self._context, self.address("control"), self._heard)
        self._serving: list[tuple[Host, asyncio.Task[None]]] = []
        self._clients: list[BusClient] = []

    def address(self, name: str) -> str:
        return f"ipc://{self.folder}/{name.replace('/', '_')}"

    def machine(self, name: str, **fields: Any) -> MachineSpec:
        return MachineSpec(name, "probes:build", **{"bind": self.address(name), **fields})

    def spec(self, process: str, *machines: MachineSpec, **fields: Any) -> HostSpec:
        return HostSpec(
            process, list(machines), control=self.address("control"), history=str(self.folder / "history"), run="r", **fields
        )

    async def host(self, *machines: MachineSpec, **fields: Any) -> Host:
        """A host on this loop whose machines are ready."""
        spec = self.spec(f"host{len(self._serving)}", *machines, **fields)
        host = Host(spec, asyncio.get_running_loop())
        self._serving.append((host, asyncio.get_running_loop().create_task(host.serve())))
        for machine in machines:
            await self.hear(lambda _, report, name=machine.name: isinstance(report, Ready) and report.machine == name)
        return host

    async def end(self, host: Host) -> None:
        """Shut a host down; raises what its process would die of."""
        task = next(task for one, task in self._serving if one is host)
        self._serving = [(one, task) for one, task in self._serving if one is not host]
        host.shut_down()
        await task

    async def client(self, machine: str) -> BusClient:
        client = BusClient("", self.address(machine), peer=machine)
        await client.start()
        self._clients.append(client)
        return client

    async def hear(self, wanted: Callable[[str, Report], bool], times: int = 1) -> Report:
        """The report that fits (the ``times``-th of them), also if it came already."""

        async def look() -> Report:
            while True:
                found = [report for source, report in self.reports if wanted(source, report)]
                if len(found) >= times:
                    return found[times - 1]
                self._news.clear()
                await self._news.wait()

        return await asyncio.wait_for(look(), PATIENCE_SECONDS)

    async def hear_kind(self, kind: type[Report], times: int = 1) -> Any:
        return await self.hear(lambda _, report: isinstance(report, kind), times)

    def tell(self, process: str, order: Order) -> None:
        self._listener.send(process, encode(order))

    async def arm(self, process: str, order: Arm) -> None:
        self.tell(process, order)
        await self.hear(lambda _, report: report == Armed(order.machine, order.label))

    def history(self, proc: str) -> list[list[dict[str, Any]]]:
        """The records of each incarnation, the oldest first."""
        files = sorted((self.folder / "history").glob(f"{proc.replace('/', '_')}.*.jsonl"))
        return [[msgspec.json.decode(line) for line in file.read_bytes().splitlines()] for file in files]

    def kinds(self, proc: str, life: int = -1) -> list[str]:
        return [one["kind"] for one in self.history(proc)[life]]

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        for host, task in self._serving:
            host.shut_down()
            await asyncio.wait([task])
            task.exception()
        self._listener.close()
        self._context.term()

    def _heard(self, source: str, frame: bytes) -> None:
        self.reports.append((source, decode_report(frame)))
        self._news.set()


async def do(client: BusClient, *effects: list[Any], timeout: float = 5.0) -> dict[str, Any]:
    """Let an ``Actor`` carry out effects; its state when it answered."""
    done = await client.call("do", Script(list(effects)), timeout=timeout)
    assert done.code is Code.OK, done
    return decode_value(done.body, dict)


async def until(predicate: Callable[[], Awaitable[bool]]) -> None:
    """Ask again until it is so, and let the hosts on this loop go on meanwhile."""

    async def look() -> None:
        while not await predicate():
            await asyncio.sleep(0)

    await asyncio.wait_for(look(), PATIENCE_SECONDS)


async def state(client: BusClient) -> dict[str, Any]:
    """What an ``Actor`` knows; asked again if the connection broke under the question."""
    while (done := await client.call("state")).code is Code.UNAVAILABLE:
        pass
    assert done.code is Code.OK, done
    return decode_value(done.body, dict)
