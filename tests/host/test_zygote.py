"""Real processes: forked from the zygote, killed, stopped, ended in order, and never orphaned."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hosts import Ear, do, on_a_loop, state, until

from elbowroom.client import BusClient
from elbowroom.host.spec import Arm, DiskSpec, Fired, HostSpec, MachineSpec, Ready, Started
from elbowroom.host.zygote import Zygote, ZygoteError

HERE = str(Path(__file__).parent)
pytestmark = pytest.mark.processes


class Nursery:
    """A zygote and how its children ended."""

    def __init__(self, zygote: Zygote) -> None:
        self.zygote = zygote
        self.ended: dict[int, int] = {}
        self._task = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        async for exited in self.zygote.exits():
            self.ended[exited.pid] = exited.status

    async def end_of(self, pid: int) -> int:
        async def look() -> bool:
            await asyncio.sleep(0)
            return pid in self.ended

        await until(look)
        return self.ended[pid]

    async def __aenter__(self) -> "Nursery":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.zygote.stop()
        await self._task


async def a_nursery() -> Nursery:
    return Nursery(await Zygote.start((), path=[HERE]))


async def process(ear: Ear, nursery: Nursery, name: str, **fields: object) -> tuple[int, BusClient]:
    """A process with one machine, ready, and a client of it."""
    machine = ear.machine(name, **fields)
    pid = await nursery.zygote.spawn(ear.spec(f"p-{name}", machine, log=f"{ear.folder}/log"))
    await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == name)
    return pid, await ear.client(name)


def state_of(pid: int) -> str:
    """The process's state in /proc: R, S, T (stopped), Z; "" if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return ""


async def until_state(pid: int, wanted: str) -> None:
    """Wait for a state; "" is dead."""

    async def look() -> bool:
        await asyncio.sleep(0)
        return state_of(pid) in ([wanted] if wanted else ["", "Z"])  # an orphan's corpse is the init process's affair

    await until(look)


@on_a_loop
async def test_a_process_is_forked_runs_its_machine_and_ends_in_order_on_sigterm(ear: Ear) -> None:
    async with await a_nursery() as nursery:
        pid, client = await process(ear, nursery, "a")
        assert Path(f"/proc/{pid}/comm").read_text() == "p-a\n", "its name in ps and top"
        assert await ear.hear_kind(Started) == Started("p-a", pid)
        assert pid != os.getpid()
        assert os.getsid(pid) == pid
        await do(client, ["note", "hello"])
        os.kill(pid, signal.SIGTERM)
        assert await nursery.end_of(pid) == 0
        assert ear.kinds("a") == ["probe.start", "hello", "end"]
        assert not ear.folder.joinpath("a").exists()
        log = ear.folder.joinpath("log").read_text().splitlines()
        assert [line.split()[1:3] for line in log] == [["a", "probe.start"], ["a", "hello"], ["a", "end"]]


@on_a_loop
async def test_a_process_whose_log_has_no_room_ends_in_order_when_its_machine_raises(ear: Ear) -> None:
    async with await a_nursery() as nursery:
        pid = await nursery.zygote.spawn(ear.spec("p-a", ear.machine("a"), log="/dev/full"))
        await ear.hear_kind(Ready)
        await (await ear.client("a")).call("raise", timeout=0.1)
        assert await nursery.end_of(pid) == 1
        assert ear.history("a")[0][-1]["why"] == "RuntimeError: told to raise"


@on_a_loop
async def test_fifty_processes_are_ready_within_seconds(ear: Ear) -> None:
    async with await a_nursery() as nursery:
        begin = time.monotonic()
        specs = [ear.spec(f"p{number}", ear.machine(f"m{number}")) for number in range(50)]
        pids = await asyncio.gather(*(nursery.zygote.spawn(spec) for spec in specs))
        await ear.hear_kind(Ready, 50)
        assert time.monotonic() - begin < 10
        assert len(set(pids)) == 50
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert {await nursery.end_of(pid) for pid in pids} == {-signal.SIGKILL}


@pytest.mark.parametrize(("label", "survives"), [("K4", False), ("K6", True), ("K7", True)])
def test_a_kill_at_a_step_leaves_the_disk_as_it_was_there(label: str, survives: bool) -> None:
    @on_a_loop
    async def test(ear: Ear) -> None:
        disk = DiskSpec("files", f"{ear.folder}/disk")
        async with await a_nursery() as nursery:
            pid, client = await process(ear, nursery, "a", disk=disk)
            await do(client, ["persist", "x", "old"])
            await ear.arm("p-a", Arm("a", label))
            asked = [["persist", "x", "new", "K4 written", "K5 synced", "K6 renamed", "K7 durable"], ["note", "never"]]
            await client.call("do", {"effects": asked}, timeout=0.1)
            assert await nursery.end_of(pid) == -signal.SIGKILL
            assert await ear.hear_kind(Fired) == Fired("a", label)
            last = ear.history("a")[0][-1]
            assert (last["kind"], last["name"], last["args"]["label"]) == ("fault.begin", "kill", label)
            await nursery.zygote.spawn(ear.spec("p-a", ear.machine("a", disk=disk)))
            await ear.hear_kind(Ready, 2)
            assert (await state(client))["disk"] == {"x": b"new" if survives else b"old"}

    test()


@on_a_loop
async def test_a_stop_at_a_step_stops_the_process_until_sigcont(ear: Ear) -> None:
    async with await a_nursery() as nursery:
        pid, client = await process(ear, nursery, "a")
        await ear.arm("p-a", Arm("a", "K1", hits=2, action="stop"))
        await do(client, ["step", "K1 seen"])
        asked = asyncio.ensure_future(do(client, ["note", "before"], ["step", "K1 seen"], ["note", "behind"]))
        await ear.hear_kind(Fired)
        await until_state(pid, "T")
        assert ear.kinds("a")[-2:] == ["before", "fault.begin"]
        os.kill(pid, signal.SIGCONT)
        await asked
        assert ear.kinds("a")[-1] == "behind"


@on_a_loop
async def test_what_was_seen_outside_is_in_the_history_of_a_killed_process(ear: Ear) -> None:
    async with await a_nursery() as nursery:
        pid, client = await process(ear, nursery, "a")
        for number in range(20):
            await do(client, ["note", f"said.{number}"])
        os.kill(pid, signal.SIGKILL)
        await nursery.end_of(pid)
        assert ear.kinds("a") == ["probe.start", *(f"said.{number}" for number in range(20))]
        assert [one["seq"] for one in ear.history("a")[0]] == list(range(1, 22))


@on_a_loop
async def test_a_machine_that_raises_leaves_its_traceback_in_the_log_and_exit_code_1(ear: Ear) -> None:
    async with await a_nursery() as nursery:
        pid, client = await process(ear, nursery, "a")
        await client.call("raise", timeout=0.1)
        assert await nursery.end_of(pid) == 1
        log = ear.folder.joinpath("log").read_text()
        assert "RuntimeError: told to raise" in log
        assert "probes.py" in log
        assert ear.kinds("a")[-1] == "failed"


@on_a_loop
async def test_a_machine_that_cannot_be_built_ends_its_process(ear: Ear) -> None:
    async with await a_nursery() as nursery:
        spec = ear.spec("p", MachineSpec("bad", "probes:broken"), log=f"{ear.folder}/log")
        assert await nursery.end_of(await nursery.zygote.spawn(spec)) == 1
        assert "cannot be built" in ear.folder.joinpath("log").read_text()


@on_a_loop
async def test_children_die_with_the_zygote_and_their_owner_hears_of_it(ear: Ear) -> None:
    nursery = await a_nursery()
    pid, _ = await process(ear, nursery, "a")
    nursery.zygote._process.kill()
    await until_state(pid, "")
    await nursery._task  # the stream of exits is over
    with pytest.raises((ZygoteError, OSError)):
        await nursery.zygote.spawn(HostSpec("p", []))
    await nursery.zygote.stop()


OWNER = """
import asyncio, sys
from elbowroom.host.spec import HostSpec, MachineSpec
from elbowroom.host.zygote import Zygote

async def main():
    zygote = await Zygote.start((), path=[sys.argv[1]])
    pid = await zygote.spawn(HostSpec("p", [MachineSpec("m", "probes:build")]))
    print(zygote._process.pid, pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@on_a_loop
async def test_nothing_outlives_an_owner_that_is_killed(ear: Ear) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, HERE], stdout=subprocess.PIPE, text=True)
    with owner:
        assert owner.stdout is not None
        pids = [int(word) for word in (await asyncio.to_thread(owner.stdout.readline)).split()]
        assert len(pids) == 2
        owner.kill()
        for pid in pids:
            await until_state(pid, "")


@on_a_loop
async def test_a_spec_larger_than_a_socket_buffer_arrives(ear: Ear) -> None:
    async with await a_nursery() as nursery:
        machines = [ear.machine(f"m{number}", config={"padding": "x" * 2000}, bind="") for number in range(300)]
        pid = await nursery.zygote.spawn(ear.spec("p", *machines, log=f"{ear.folder}/log"))
        await ear.hear_kind(Ready, 300)
        os.kill(pid, signal.SIGTERM)
        assert await nursery.end_of(pid) == 0
