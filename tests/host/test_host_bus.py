"""The bus between hosts: order, bounds, broken connections, strangers."""

import asyncio
from collections.abc import Callable

import pytest
import zmq
from hosts import Ear, do, on_a_loop, state, until

from elbowroom.host.sockets import BACKLOG_MAX, HIGH_WATER, Dialer, Listener, Sent
from elbowroom.host.spec import Ended, Ready, RestartMachine
from elbowroom.wire import Code
from elbowroom.wire.codec import FRAME_BYTES_MAX


class Line:
    """A listener and a dialer, and what each heard."""

    def __init__(self, address: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.address = address
        self.heard: list[bytes] = []
        self.back: list[bytes] = []
        self.reconnects = 0
        self.listen()
        self.dialer = Dialer(self.loop, self.context, "client/1", address, self.back.append, self._again)

    def listen(self) -> None:
        self.listener = Listener(self.loop, self.context, self.address, lambda peer, frame: self.heard.append(frame))

    def _again(self) -> None:
        self.reconnects += 1

    async def until(self, predicate: Callable[[], bool]) -> None:
        async def look() -> bool:
            await asyncio.sleep(0)
            return predicate()

        await until(look)

    def close(self) -> None:
        self.dialer.close()
        self.listener.close()
        self.context.term()


async def say(line: Line, text: bytes) -> None:
    line.dialer.send(text)
    await line.until(lambda: text in line.heard)


@on_a_loop
async def test_a_peer_that_does_not_read_gets_everything_in_order_later_up_to_a_bound(ear: Ear) -> None:
    line = Line(ear.address("x"))
    await say(line, b"hello")
    line.dialer.hold()
    payload = b"x" * 20_000
    sent = 0
    while line.listener.send("client/1", sent.to_bytes(4, "big") + payload) is Sent.PASSED:
        sent += 1
        assert sent < 100_000
        if sent % 500 == 0:
            await asyncio.sleep(0)
    assert sent > BACKLOG_MAX + HIGH_WATER
    line.dialer.resume()
    await line.until(lambda: len(line.back) == sent)
    assert [int.from_bytes(frame[:4], "big") for frame in line.back] == list(range(sent))
    assert line.listener.send("client/1", b"again") is Sent.PASSED
    line.close()


@on_a_loop
async def test_a_slow_peer_does_not_hold_up_another(ear: Ear) -> None:
    line = Line(ear.address("x"))
    await say(line, b"hello")
    other: list[bytes] = []
    quick = Dialer(line.loop, line.context, "client/2", line.address, other.append, lambda: None)
    quick.send(b"hello too")
    await line.until(lambda: b"hello too" in line.heard)
    line.dialer.hold()
    while line.listener.send("client/1", b"x" * 20_000) is Sent.PASSED:
        pass
    assert line.listener.send("client/2", b"for you") is Sent.PASSED
    await line.until(lambda: other == [b"for you"])
    quick.close()
    line.close()


@on_a_loop
async def test_a_peer_that_is_not_there_is_away(ear: Ear) -> None:
    line = Line(ear.address("x"))
    await say(line, b"hello")
    assert line.listener.send("client/9", b"?") is Sent.AWAY
    line.dialer.close()
    await line.until(lambda: line.listener.send("client/1", b"?") is Sent.AWAY)
    line.close()


@on_a_loop
async def test_what_is_sent_into_a_broken_connection_is_lost_and_the_new_one_is_told(ear: Ear) -> None:
    line = Line(ear.address("x"))
    await say(line, b"hello")
    line.listener.close()
    await line.until(lambda: line.dialer.send(b"lost") is Sent.AWAY)
    line.heard.clear()
    line.listen()
    await line.until(lambda: line.reconnects == 1)
    await say(line, b"new")
    assert line.heard[-1] == b"new"
    line.close()


@on_a_loop
async def test_what_is_sent_before_the_first_connection_waits_for_it(ear: Ear) -> None:
    line = Line(ear.address("x"))
    heard: list[bytes] = []
    early = Dialer(line.loop, line.context, "client/2", ear.address("later"), lambda frame: None, line._again)
    for number in range(10):
        early.send(bytes([number]))
    late = Listener(line.loop, line.context, ear.address("later"), lambda peer, frame: heard.append(frame))
    await line.until(lambda: len(heard) == 10)
    assert heard == [bytes([number]) for number in range(10)]
    assert line.reconnects == 0
    early.close()
    late.close()
    line.close()


@on_a_loop
async def test_a_second_peer_of_a_name_takes_over(ear: Ear) -> None:
    line = Line(ear.address("x"))
    await say(line, b"hello")
    other: list[bytes] = []
    with zmq.Context() as context:
        second = Dialer(line.loop, context, "client/1", line.address, other.append, lambda: None)
        second.send(b"it is me")
        await line.until(lambda: b"it is me" in line.heard)
        line.listener.send("client/1", b"who?")
        await line.until(lambda: other == [b"who?"])
        second.close()
    line.close()


@on_a_loop
async def test_a_nameless_peer_and_an_oversized_frame_are_not_heard(ear: Ear) -> None:
    line = Line(ear.address("x"))
    with zmq.Context() as context, context.socket(zmq.DEALER) as stranger, context.socket(zmq.DEALER) as big:
        stranger.linger = big.linger = 0
        stranger.connect(line.address)
        stranger.send(b"nameless")
        big.setsockopt(zmq.ROUTING_ID, b"client/big")
        big.connect(line.address)
        big.send(b"x" * (FRAME_BYTES_MAX + 1))
        await say(line, b"hello")
        await say(line, b"still here")
    assert line.heard == [b"hello", b"still here"]
    line.close()


@on_a_loop
async def test_what_arrives_while_one_side_only_sends_is_not_forgotten(ear: Ear) -> None:
    line = Line(ear.address("x"))
    await say(line, b"hello")
    for round in range(300):
        for _ in range(7):
            line.listener.send("client/1", b"order")
            line.dialer.send(b"report")
        if round % 10 == 0:
            await asyncio.sleep(0)
    await line.until(lambda: line.heard.count(b"report") == line.back.count(b"order") == 2100)
    line.close()


@on_a_loop
async def test_an_address_that_cannot_be_bound_says_so(ear: Ear) -> None:
    with zmq.Context() as context, pytest.raises(zmq.ZMQError):
        Listener(asyncio.get_running_loop(), context, f"ipc://{ear.folder}/no/such/folder", lambda peer, frame: None)


@pytest.mark.parametrize("scheme", ["ipc", "inproc"])
def test_machines_of_one_process_speak_like_others_and_hear_of_each_others_restarts(scheme: str) -> None:
    @on_a_loop
    async def test(ear: Ear) -> None:
        door = ear.address("inside") if scheme == "ipc" else "inproc://inside"
        await ear.host(ear.machine("b", bind=door), ear.machine("a", dial={"b": door}))
        client = await ear.client("a")
        await do(client, ["call", "b", 1])
        await until(lambda: _news(client, ["reply 1 b"]))
        ear.tell("host0", RestartMachine("b"))
        await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == "b", times=2)
        await until(lambda: _news(client, ["reply 1 b", "connected b"]))
        await do(client, ["call", "b", 2])
        await until(lambda: _news(client, ["reply 1 b", "connected b", "reply 2 b"]))

    test()


async def _news(client: object, wanted: list[str]) -> bool:
    return (await state(client))["news"] == wanted  # type: ignore[arg-type]


@on_a_loop
async def test_nonsense_on_the_bus_is_recorded_once_and_harms_nobody(ear: Ear) -> None:
    await ear.host(ear.machine("a"))
    with zmq.Context() as context, context.socket(zmq.DEALER) as peer:
        peer.linger = 0
        peer.setsockopt(zmq.ROUTING_ID, b"client/odd")
        peer.connect(ear.address("a"))
        for frame in (b"", b"\xc1", b"\x93\xa1z\x01\x02", b"\x91" * 5000):
            peer.send(frame)
        client = await ear.client("a")
        await until(lambda: _dropped(ear))
        assert (await client.call("state")).code is Code.OK
    assert [one["peer"] for one in ear.history("a")[0] if one["kind"] == "bus.drop"] == ["client/odd"]


async def _dropped(ear: Ear) -> bool:
    await asyncio.sleep(0)
    return "bus.drop" in ear.kinds("a")


@on_a_loop
async def test_a_machine_behind_its_disk_reads_no_further_and_loses_nothing(ear: Ear) -> None:
    from probes import GatedDisk

    from elbowroom.host import incarnation
    from elbowroom.host.spec import DiskSpec

    await ear.host(ear.machine("a", disk=DiskSpec("probes:GatedDisk", f"{ear.folder}/gate")))
    client, disk = await ear.client("a"), GatedDisk.made[f"{ear.folder}/gate"]
    effects = [["note", "x"]] * 500
    asked = [asyncio.ensure_future(do(client, ["persist", "k", "v"], *effects, timeout=20)) for _ in range(120)]
    assert await asyncio.to_thread(disk.begun.acquire, timeout=10)
    probe = await client.call("state", timeout=0.3)
    assert probe.code is Code.DEADLINE_EXCEEDED
    host = ear._serving[0][0]
    waiting = len(host._running["a"]._pending)
    assert incarnation.PENDING_MAX < waiting < incarnation.PENDING_MAX + 1000 < 120 * 500
    disk.gate.set()
    await asyncio.gather(*asked)
    assert not [report for _, report in ear.reports if isinstance(report, Ended)]
