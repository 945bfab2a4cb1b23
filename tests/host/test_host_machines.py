"""What a host promises its machines: effects in order, writes before what follows them, timers, drivers, lives."""

import asyncio
import time

import pytest
from hosts import Ear, do, on_a_loop, state, until
from probes import EchoDriver, GatedDisk

from elbowroom.host import history
from elbowroom.host.disks import FilesDisk
from elbowroom.host.process import Host
from elbowroom.host.spec import (
    AddMachine,
    Arm,
    BreakDisk,
    DiskSpec,
    DriverSpec,
    Ended,
    Fired,
    HostSpec,
    MachineSpec,
    PauseMachine,
    Ready,
    RemoveMachine,
    RestartMachine,
    ResumeMachine,
    Shutdown,
    Started,
)
from elbowroom.wire import Code


def gated(ear: Ear, name: str = "a", **fields: object) -> MachineSpec:
    return ear.machine(name, disk=DiskSpec("probes:GatedDisk", f"{ear.folder}/{name}"), **fields)


def gate_of(ear: Ear, name: str = "a") -> GatedDisk:
    return GatedDisk.made[f"{ear.folder}/{name}"]


async def begun(disk: GatedDisk) -> None:
    assert await asyncio.to_thread(disk.begun.acquire, timeout=10)


@on_a_loop
async def test_nothing_that_follows_a_write_is_seen_before_it_is_durable(ear: Ear) -> None:
    await ear.host(gated(ear))
    client, disk = await ear.client("a"), gate_of(ear)
    first = asyncio.ensure_future(do(client, ["persist", "x", "1"], ["note", "after.x"]))
    await begun(disk)
    second = await asyncio.wait({asyncio.ensure_future(client.call("state", timeout=0.1))})
    assert second[0].pop().result().code is Code.DEADLINE_EXCEEDED, "an answer must not overtake the write before it"
    assert not first.done()
    assert "after.x" not in ear.kinds("a")
    disk.gate.set()
    assert (await first)["disk"] == {"x": b"1"}
    assert disk.kept == {"x": b"1"}


@on_a_loop
async def test_writes_that_wait_are_committed_together_and_answered_in_order(ear: Ear) -> None:
    await ear.host(gated(ear))
    client, disk = await ear.client("a"), gate_of(ear)
    answered: list[int] = []

    async def write(number: int) -> None:
        await do(client, ["persist", f"k{number}", "v"])
        answered.append(number)

    writes = [asyncio.ensure_future(write(0))]
    await begun(disk)
    writes += [asyncio.ensure_future(write(number)) for number in range(1, 151)]
    while True:  # the machine is stepped while the disk is busy
        probe = await client.call("state", timeout=0.05)
        if probe.code is Code.DEADLINE_EXCEEDED:
            break
    disk.gate.set()
    await asyncio.gather(*writes)
    assert answered == list(range(151))
    assert [len(group) for group in disk.groups] == [1, 64, 64, 22]


@on_a_loop
async def test_what_announces_a_write_is_in_the_history_before_the_write_is_on_the_disk(ear: Ear) -> None:
    await ear.host(gated(ear))
    client, disk = await ear.client("a"), gate_of(ear)
    first = asyncio.ensure_future(do(client, ["note", "begun.x"], ["persist", "x", "1"], ["note", "after.x"]))
    await begun(disk)
    assert ear.kinds("a")[-1] == "begun.x"
    second = asyncio.ensure_future(
        do(client, ["persist", "y", "1"], ["note", "after.y"], ["note", "begun.z"], ["persist", "z", "1"])
    )
    while (await client.call("state", timeout=0.05)).code is not Code.DEADLINE_EXCEEDED:
        pass  # the machine is stepped while the disk is busy
    disk.gate.set()
    await asyncio.gather(first, second)
    assert disk.groups == [["x"], ["y", "z"]]
    assert ear.kinds("a")[-4:] == ["begun.x", "after.x", "begun.z", "after.y"]


@on_a_loop
async def test_what_is_noted_of_a_group_of_writes_goes_into_the_history_as_one(ear: Ear) -> None:
    await ear.host(gated(ear))
    client, disk = await ear.client("a"), gate_of(ear)
    first = asyncio.ensure_future(do(client, ["persist", "x", "1"]))
    await begun(disk)
    others = [asyncio.ensure_future(do(client, ["persist", name, "1"], ["note", f"after.{name}"])) for name in "abc"]
    while (await client.call("state", timeout=0.05)).code is not Code.DEADLINE_EXCEEDED:
        pass  # the machine is stepped while the disk is busy
    written: list[bytes] = []
    with pytest.MonkeyPatch.context() as change:
        write = history._write

        def writing(file: int, data: bytes) -> bool:
            written.append(data)
            return write(file, data)

        change.setattr(history, "_write", writing)
        disk.gate.set()
        await asyncio.gather(first, *others)
    assert [data.count(b"after.") for data in written if b"after." in data] == [3]
    assert ear.kinds("a")[-3:] == ["after.a", "after.b", "after.c"]


@on_a_loop
async def test_while_a_failpoint_is_armed_no_write_is_moved_ahead(ear: Ear) -> None:
    await ear.host(gated(ear))
    client, disk = await ear.client("a"), gate_of(ear)
    await ear.arm("host0", Arm("a", "K99"))
    disk.gate.set()
    await do(client, ["persist", "x", "1"], ["persist", "y", "1"], ["step", "K1"], ["persist", "z", "1"])
    assert disk.groups == [["x", "y"], ["z"]]


@on_a_loop
async def test_a_disk_that_fails_ends_the_process_and_what_waited_is_never_said(ear: Ear) -> None:
    host = await ear.host(gated(ear))
    client, disk = await ear.client("a"), gate_of(ear)
    disk.fail = True
    disk.gate.set()
    asked = asyncio.ensure_future(client.call("do", {"effects": [["persist", "x", "1"]]}, timeout=0.3))
    ended = await ear.hear_kind(Ended)
    assert ended.why.startswith("failed: OSError")
    assert (await asked).code is not Code.OK
    with pytest.raises(OSError, match="no space left"):
        await ear.end(host)
    assert ear.kinds("a")[-1] == "failed"


@on_a_loop
async def test_a_disk_that_can_tidy_up_is_told_when_it_is_idle(ear: Ear) -> None:
    await ear.host(gated(ear))
    client, disk = await ear.client("a"), gate_of(ear)
    disk.gate.set()
    await do(client, ["persist", "x", "1"])
    assert not disk.idled.is_set()
    assert await asyncio.to_thread(disk.idled.wait, 5)


@on_a_loop
async def test_a_restarted_machine_has_its_disk_a_new_epoch_and_no_old_timers(ear: Ear) -> None:
    await ear.host(ear.machine("a"), ear.machine("b"))
    client = await ear.client("a")
    before = await do(client, ["persist", "x", "1"], ["timer", "t", 0.05], ["timer", "u", 60])
    ear.tell("host0", RestartMachine("a"))
    ended = await ear.hear_kind(Ended)
    assert ended == Ended("a", "restarted")
    ready = await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == "a", times=2)
    after = await state(client)
    assert after["disk"] == {"x": b"1"}
    assert after["epoch"] == ready.epoch > before["epoch"]
    await do(client, ["timer", "late", 0.1])
    await until(lambda: _has(client, "timer late"))
    assert (await state(client))["news"] == ["timer late"]
    assert len(ear.history("a")) == 2
    assert "end" not in ear.kinds("a", 0), "it was killed, not ended"
    assert ear.history("a")[0][-1]["kind"] == "fault.begin"


@pytest.mark.parametrize(("how", "kept"), [("full", {}), ("fsync", {"x": b"1"})])
def test_a_disk_that_chaos_breaks_fails_as_a_real_one_does(how: str, kept: dict[str, bytes]) -> None:
    @on_a_loop
    async def story(ear: Ear) -> None:
        disk = DiskSpec("files", str(ear.folder / "disk"))
        host = await ear.host(ear.machine("a", disk=disk))
        client = await ear.client("a")
        assert await state(client)
        ear.tell("host0", BreakDisk("a", how))
        await until(lambda: _broken(ear))
        doing = asyncio.ensure_future(do(client, ["persist", "x", "1"]))
        assert (await ear.hear_kind(Ended)).why.startswith("failed: OSError")
        doing.cancel()
        with pytest.raises(OSError, match=r"No space left|Input/output error"):
            await ear.end(host)
        assert ear.kinds("a")[-2:] == ["fault.begin", "failed"]
        assert FilesDisk(disk.path).load() == kept

    story()


async def _broken(ear: Ear) -> bool:
    return "fault.begin" in ear.kinds("a")


async def _has(client: object, news: str) -> bool:
    return news in (await state(client))["news"]  # type: ignore[arg-type]


@on_a_loop
async def test_the_first_life_takes_its_epoch_from_the_config(ear: Ear) -> None:
    await ear.host(ear.machine("a", config={"epoch": 7}))
    assert (await ear.hear_kind(Ready)).epoch == 7
    assert (await state(await ear.client("a")))["epoch"] == 7
    assert ear.folder.joinpath("history", "a.7.jsonl").exists()


@on_a_loop
async def test_timers_fire_once_in_order_unless_replaced_or_cancelled(ear: Ear) -> None:
    await ear.host(ear.machine("a"))
    client = await ear.client("a")
    await do(client, ["timer", "c", 0.09], ["timer", "b", 0.06], ["timer", "a", 0.03], ["timer", "x", 0.01], ["timer", "x", None])
    await do(client, ["timer", "b", 0.12])
    await until(lambda: _has(client, "timer b"))
    assert (await state(client))["news"] == ["timer a", "timer c", "timer b"]


@on_a_loop
async def test_emulated_time_runs_faster_by_the_scale_from_the_common_origin(ear: Ear) -> None:
    origin = 1_700_000_000_000_000_000
    await ear.host(ear.machine("a"), time_scale=50.0, origin=origin)
    await ear.host(ear.machine("b"), time_scale=50.0, origin=origin)
    a, b = await ear.client("a"), await ear.client("b")
    begin = time.monotonic()
    first, other = (await do(a))["now"], (await do(b))["now"]
    assert 0 <= other - first <= (time.monotonic() - begin) * 50 * 1e9
    await do(a, ["timer@", "t", 2.0])
    await until(lambda: _any_news(a))
    assert time.monotonic() - begin < 1.0
    fired = next(one for one in ear.history("a")[0] if one["kind"] == "probe.timer")
    assert fired["late_ns"] >= 0


async def _any_news(client: object) -> bool:
    return bool((await state(client))["news"])  # type: ignore[arg-type]


@on_a_loop
async def test_drivers_get_their_messages_and_work_may_answer_at_once_and_tell_facts(ear: Ear) -> None:
    await ear.host(ear.machine("a", drivers=[DriverSpec("probes:EchoDriver", {"port": 6443})]))
    assert (await ear.hear_kind(Ready)).facts == {"port": 6443}
    client = await ear.client("a")
    await do(client, ["call", "http/1", 1], ["drive", "w"], ["call", "http/2", 2])
    assert (await state(client))["news"] == ["reply 1 http/1", "work w driven task", "reply 2 http/2"]


@on_a_loop
async def test_a_peer_that_takes_a_drivers_name_is_not_heard(ear: Ear) -> None:
    from elbowroom.client import BusClient

    await ear.host(ear.machine("a", drivers=[DriverSpec("probes:EchoDriver", {"port": 1})]))
    async with BusClient("http/7", ear.address("a"), peer="a") as stranger:
        assert (await stranger.call("state", timeout=0.2)).code is Code.DEADLINE_EXCEEDED
    await state(await ear.client("a"))
    dropped = [one for one in ear.history("a")[0] if one["kind"] == "bus.drop"]
    assert [(one["peer"], one["why"]) for one in dropped] == [("http/7", "the name belongs to a driver")]


@on_a_loop
async def test_callable_work_runs_on_a_thread_and_its_error_is_its_outcome(ear: Ear) -> None:
    await ear.host(ear.machine("a"))
    client = await ear.client("a")
    await do(client, ["work", "w"])
    await until(lambda: _has(client, "work w W"))
    await do(client, ["fail", "f"])
    await until(lambda: _has(client, "work f integer division or modulo by zero"))


@on_a_loop
async def test_an_orderly_end_carries_out_what_was_decided_and_writes_an_end(ear: Ear) -> None:
    EchoDriver.stopped = 0
    host = await ear.host(gated(ear, drivers=[DriverSpec("probes:EchoDriver", {"port": 1})]))
    client, disk = await ear.client("a"), gate_of(ear)
    asked = asyncio.ensure_future(do(client, ["persist", "x", "1"]))
    await begun(disk)
    ear.tell("host0", Shutdown())
    await until(lambda: _stopped())
    disk.gate.set()
    assert (await asked)["disk"] == {"x": b"1"}
    await ear.end(host)
    assert ear.kinds("a")[-1] == "end"
    assert await ear.hear_kind(Ended) == Ended("a", "stopped")
    assert not ear.folder.joinpath("a").exists(), "the socket's file is removed"


async def _stopped() -> bool:
    await asyncio.sleep(0)
    return EchoDriver.stopped == 1


@on_a_loop
async def test_a_machine_that_raises_ends_its_own_process(ear: Ear) -> None:
    host = await ear.host(ear.machine("a"))
    client = await ear.client("a")
    asked = asyncio.ensure_future(client.call("raise", timeout=0.2))
    assert (await ear.hear_kind(Ended)).why == "failed: RuntimeError('told to raise')"
    with pytest.raises(RuntimeError, match="told to raise"):
        await ear.end(host)
    assert (await asked).code is not Code.OK


@on_a_loop
async def test_a_machine_that_raises_in_a_shared_process_is_started_again_alone(ear: Ear) -> None:
    await ear.host(ear.machine("a"), ear.machine("b"))
    a, b = await ear.client("a"), await ear.client("b")
    epochs = [(await state(one))["epoch"] for one in (a, b)]
    await a.call("raise", timeout=0.1)
    assert (await ear.hear_kind(Ended)).why == "failed: RuntimeError('told to raise')"
    await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == "a", times=2)
    assert (await state(a))["epoch"] > epochs[0]
    assert (await state(b))["epoch"] == epochs[1]


@on_a_loop
async def test_machines_come_and_go_in_a_shared_process(ear: Ear) -> None:
    host = await ear.host()
    await ear.hear_kind(Started)
    ear.tell("host0", AddMachine(ear.machine("a")))
    ear.tell("host0", AddMachine(MachineSpec("bad", "probes:broken")))
    await ear.hear_kind(Ready)
    client = await ear.client("a")
    await do(client, ["persist", "x", "1"])
    ear.tell("host0", RemoveMachine("a"))
    await ear.hear(lambda _, report: report == Ended("a", "removed"))
    assert ear.kinds("a")[-1] == "end"
    assert (
        await ear.hear(lambda _, r: isinstance(r, Ended) and r.machine == "bad")
    ).why == "failed: RuntimeError('cannot be built')"
    ear.tell("host0", RemoveMachine("bad"))
    await ear.hear(lambda _, report: report == Ended("bad", "removed"))
    await ear.end(host)


@on_a_loop
async def test_a_paused_machine_does_nothing_until_it_is_resumed(ear: Ear) -> None:
    host = await ear.host(ear.machine("a"), ear.machine("b"))
    client = await ear.client("a")
    await do(client, ["timer", "t", 0.05])
    ear.tell("host0", PauseMachine("a"))
    await state(await ear.client("b"))
    asked = asyncio.ensure_future(client.call("state", timeout=5))
    probe = await client.call("state", timeout=0.2)
    assert probe.code is Code.DEADLINE_EXCEEDED
    assert not asked.done()
    ear.tell("host0", ResumeMachine("a"))
    await asked
    await until(lambda: _has(client, "timer t"))
    assert (await state(client))["news"] == ["timer t"]
    faults = [(one["kind"], one["name"]) for one in ear.history("a")[0] if one["kind"].startswith("fault.")]
    assert faults == [("fault.begin", "pause"), ("fault.end", "pause")]
    await ear.end(host)


@on_a_loop
async def test_a_delay_holds_up_the_machines_effects_and_is_reported(ear: Ear) -> None:
    await ear.host(ear.machine("a"))
    client = await ear.client("a")
    await ear.arm("host0", Arm("a", "K2", hits=2, action="delay:0.3"))
    begin = time.monotonic()
    await do(client, ["step", "K2 queued"], ["step", "K21"])
    assert time.monotonic() - begin < 0.25
    await do(client, ["step", "K2 queued"])
    assert time.monotonic() - begin >= 0.3
    assert await ear.hear_kind(Fired) == Fired("a", "K2")
    fault = next(one for one in ear.history("a")[0] if one["kind"] == "fault.begin")
    assert (fault["name"], fault["args"]["label"]) == ("delay", "K2")


@on_a_loop
async def test_a_failpoint_may_stand_before_a_machine_starts(ear: Ear) -> None:
    await ear.host(ear.machine("a"), armed=[Arm("a", "K2", action="delay:0.2")])
    client = await ear.client("a")
    begin = time.monotonic()
    await do(client, ["step", "K2 queued"])
    assert time.monotonic() - begin >= 0.2
    assert await ear.hear_kind(Fired) == Fired("a", "K2")


@pytest.mark.parametrize("kind", ["memory", "boot", "files"])
def test_a_kill_at_a_step_of_a_shared_process_ends_that_life_there(kind: str) -> None:
    @on_a_loop
    async def test(ear: Ear) -> None:
        await ear.host(ear.machine("a", disk=DiskSpec(kind, f"{ear.folder}/disk")), ear.machine("b"))
        client = await ear.client("a")
        await do(client, ["persist", "x", "old"])
        await ear.arm("host0", Arm("a", "K5", action="kill"))
        await client.call("do", {"effects": [["persist", "x", "new", "K4", "K5", "K6", "K7"], ["note", "never"]]}, timeout=0.2)
        await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == "a", times=2)
        assert (await state(client))["disk"] == {"x": b"old"}
        assert "never" not in ear.kinds("a", 0)
        assert ear.kinds("a", 0)[-1] == "fault.begin"
        assert await ear.hear_kind(Fired) == Fired("a", "K5")

    test()


@on_a_loop
async def test_a_stop_at_a_step_of_a_shared_process_pauses_the_machine_there(ear: Ear) -> None:
    await ear.host(ear.machine("a"), ear.machine("b"))
    client = await ear.client("a")
    await ear.arm("host0", Arm("a", "K1", action="stop"))
    asked = asyncio.ensure_future(do(client, ["note", "before"], ["step", "K1"], ["note", "behind"]))
    await ear.hear_kind(Fired)
    assert (await client.call("state", timeout=0.1)).code is Code.DEADLINE_EXCEEDED
    assert "before" in ear.kinds("a")
    assert "behind" not in ear.kinds("a")
    ear.tell("host0", ResumeMachine("a"))
    await asked
    assert "behind" in ear.kinds("a")


@on_a_loop
async def test_what_others_may_have_seen_is_in_the_history(ear: Ear) -> None:
    await ear.host(ear.machine("a"))
    client = await ear.client("a")
    await do(client, ["note", "said"])
    record = ear.history("a")[0][-1]
    assert record["kind"] == "said"
    assert {"run", "seed", "proc", "node", "inc", "seq", "mono_ns", "wall", "kind"} <= set(record)


@on_a_loop
async def test_what_nobody_could_see_is_in_the_history_a_moment_later(ear: Ear) -> None:
    await ear.host(ear.machine("a"))
    client = await ear.client("a")
    await do(client, ["timer", "t", 0.01])
    begin = time.monotonic()
    await until(lambda: _recorded(ear, "probe.timer"))
    assert time.monotonic() - begin < 1.0


async def _recorded(ear: Ear, kind: str) -> bool:
    await asyncio.sleep(0)
    return kind in ear.kinds("a")


@on_a_loop
async def test_an_order_that_makes_no_sense_changes_nothing(ear: Ear) -> None:
    await ear.host(ear.machine("a"))
    for order in (
        Arm("a", "K1", action="explode"),
        Arm("a", "K1", hits=0),
        Arm("a", "K1", action="delay:-1"),
        PauseMachine("nobody"),
    ):
        ear.tell("host0", order)
    await ear.arm("host0", Arm("a", "K2", hits=99))
    await do(await ear.client("a"), ["step", "K1"])


def test_machines_of_one_profile_keep_it_once() -> None:
    async def test() -> None:
        host = Host(HostSpec("nodes", []), asyncio.get_running_loop())
        told = [MachineSpec(f"m{number}", "a:b", {"profile": {"gates": {"A": True}}, "node": f"n{number}"}) for number in range(2)]
        one, other = map(host._frugal, told)
        assert [one, other] == told
        assert one.config["profile"] is other.config["profile"] and one.config["profile"] is not told[1].config["profile"]
        host.shut_down()
        await host.serve()

    asyncio.run(test())
