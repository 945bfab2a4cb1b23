"""The bus between hosts: order, bounds, broken connections, strangers."""

import asyncio
from collections.abc import Callable

import pytest
import zmq
from hosts import Ear, do, on_a_loop, state, until

from elbowroom.host.shared import Lane, Neighbours, Trunk
from elbowroom.host.sockets import BACKLOG_MAX, HIGH_WATER, Dialer, Listener, Sent
from elbowroom.host.spec import Ended, PauseMachine, Ready, RestartMachine, ResumeMachine
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


@pytest.mark.parametrize("scheme", ["ipc", "inproc", "trunk"])
def test_machines_of_one_process_speak_like_others_and_hear_of_each_others_restarts(scheme: str) -> None:
    @on_a_loop
    async def test(ear: Ear) -> None:
        door = "inproc://inside" if scheme == "inproc" else ear.address("inside")
        dialled = f"trunk+{door}" if scheme == "trunk" else door
        await ear.host(ear.machine("b", bind=door), ear.machine("a", dial={"b": dialled}))
        client = await ear.client("a")
        await do(client, ["call", "b", 1])
        await until(lambda: _news(client, ["reply 1 b"]))
        ear.tell("host0", RestartMachine("b"))
        await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == "b", times=2)
        await until(lambda: _news(client, ["reply 1 b", "connected b"]))
        await do(client, ["call", "b", 2])
        await until(lambda: _news(client, ["reply 1 b", "connected b", "reply 2 b"]))

    test()


@pytest.mark.parametrize("scheme", ["inproc", "trunk"])
def test_one_who_shares_a_connection_and_is_paused_misses_nothing_and_holds_up_nobody(scheme: str) -> None:
    @on_a_loop
    async def test(ear: Ear) -> None:
        door = "inproc://inside" if scheme == "inproc" else ear.address("b")
        dialled = f"trunk+{door}" if scheme == "trunk" else door
        await ear.host(ear.machine("b", bind=door), ear.machine("a1", dial={"b": dialled}), ear.machine("a2", dial={"b": dialled}))
        first, second = await ear.client("a1"), await ear.client("a2")
        await do(first, ["call", "b", 1])
        await until(lambda: _news(first, ["reply 1 b"]))
        ear.tell("host0", PauseMachine("b"))
        await until(lambda: _recorded(ear, "b", "fault.begin"))
        await do(first, ["call", "b", 2])
        await do(second, ["call", "b", 3])
        ear.tell("host0", PauseMachine("a1"))
        await until(lambda: _recorded(ear, "a1", "fault.begin"))
        ear.tell("host0", ResumeMachine("b"))
        await until(lambda: _news(second, ["reply 3 b"]))
        ear.tell("host0", ResumeMachine("a1"))
        await until(lambda: _news(first, ["reply 1 b", "reply 2 b"]))

    test()


async def _recorded(ear: Ear, machine: str, kind: str) -> bool:
    await asyncio.sleep(0)
    return kind in ear.kinds(machine)


class Shared:
    """Some machines that dial one listener over one trunk, and what each heard."""

    def __init__(self, address: str, *machines: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.address = address
        self.heard: list[tuple[str, bytes]] = []
        self.back: dict[str, list[bytes]] = {machine: [] for machine in machines}
        self.reconnects: list[str] = []
        self.listen()
        self.trunk = Trunk(self.loop, self.context, "host", address)
        self.lanes = {machine: self.lane(machine) for machine in machines}

    def listen(self) -> None:
        self.listener = Listener(self.loop, self.context, self.address, lambda peer, frame: self.heard.append((peer, frame)))

    def lane(self, machine: str) -> Lane:
        return self.trunk.lane(machine, self.back[machine].append, lambda: self.reconnects.append(machine))

    async def until(self, predicate: Callable[[], bool]) -> None:
        async def look() -> bool:
            await asyncio.sleep(0)
            return predicate()

        await until(look)

    def close(self) -> None:
        self.trunk.close()
        self.listener.close()
        self.context.term()


@on_a_loop
async def test_those_behind_a_trunk_are_peers_of_their_own_names_and_one_socket_serves_them(ear: Ear) -> None:
    line = Shared(ear.address("x"), "kubelet/a", "kubelet/b")
    line.lanes["kubelet/a"].send(b"from a")
    line.lanes["kubelet/b"].send(b"from b")
    await line.until(lambda: len(line.heard) == 2)
    assert line.heard == [("kubelet/a", b"from a"), ("kubelet/b", b"from b")]
    assert line.listener.send("kubelet/b", b"to b") is Sent.PASSED
    assert line.listener.send("kubelet/a", b"to a") is Sent.PASSED
    await line.until(lambda: line.back == {"kubelet/a": [b"to a"], "kubelet/b": [b"to b"]})
    assert line.listener.send("kubelet/c", b"who?") is Sent.AWAY
    line.close()


@on_a_loop
async def test_each_behind_a_trunk_hears_that_its_connection_was_replaced(ear: Ear) -> None:
    line = Shared(ear.address("x"), "kubelet/a", "kubelet/b")
    line.lanes["kubelet/a"].send(b"hello")
    await line.until(lambda: len(line.heard) == 1)
    line.listener.close()
    await line.until(lambda: line.lanes["kubelet/b"].send(b"lost") is Sent.AWAY)
    line.listen()
    await line.until(lambda: sorted(line.reconnects) == ["kubelet/a", "kubelet/b"])
    line.lanes["kubelet/b"].send(b"new")
    await line.until(lambda: line.heard[-1:] == [("kubelet/b", b"new")])
    line.trunk.close()
    await line.until(lambda: line.listener.send("kubelet/b", b"?") is Sent.AWAY)
    line.close()


@on_a_loop
async def test_a_later_life_takes_the_lane_and_one_that_leaves_late_does_not_close_it(ear: Ear) -> None:
    line = Shared(ear.address("x"), "kubelet/a")
    former = line.lanes["kubelet/a"]
    latter = line.lane("kubelet/a")
    former.close()
    latter.send(b"hello")
    await line.until(lambda: len(line.heard) == 1)
    line.listener.send("kubelet/a", b"welcome")
    await line.until(lambda: line.back["kubelet/a"] == [b"welcome"])
    line.close()


@on_a_loop
async def test_one_who_leaves_the_trunk_for_a_socket_of_its_own_is_answered_there(ear: Ear) -> None:
    line = Shared(ear.address("x"), "kubelet/a")
    line.lanes["kubelet/a"].send(b"shared")
    await line.until(lambda: len(line.heard) == 1)
    own: list[bytes] = []
    alone = Dialer(line.loop, line.context, "kubelet/a", line.address, own.append, lambda: None)
    alone.send(b"alone")
    await line.until(lambda: len(line.heard) == 2)
    line.listener.send("kubelet/a", b"here")
    await line.until(lambda: own == [b"here"])
    assert line.back["kubelet/a"] == []
    alone.close()
    line.close()


@on_a_loop
async def test_a_neighbour_that_never_was_is_waited_for_and_one_that_left_is_away(ear: Ear) -> None:
    neighbours, heard, back = Neighbours(asyncio.get_running_loop()), list[tuple[str, bytes]](), list[bytes]()
    again: list[str] = []
    link = neighbours.dial("a", "inproc://b", back.append, lambda: again.append("a"))
    assert link.send(b"early") is Sent.PASSED
    door = neighbours.listen("inproc://b", lambda peer, frame: heard.append((peer, frame)))
    with pytest.raises(ValueError, match="in use"):
        neighbours.listen("inproc://b", lambda peer, frame: None)
    assert heard == [], "nobody is called from within another's call"
    await asyncio.sleep(0)
    assert heard == [("a", b"early")]
    assert (door.send("a", b"answer"), door.send("c", b"who?")) == (Sent.PASSED, Sent.AWAY)
    await asyncio.sleep(0)
    assert back == [b"answer"]
    door.close()
    assert link.send(b"lost") is Sent.AWAY
    neighbours.listen("inproc://b", lambda peer, frame: heard.append((peer, frame)))
    await asyncio.sleep(0)
    assert again == ["a"]
    link.close()
    assert link.arrived(b"too late") is Sent.AWAY


@on_a_loop
async def test_a_neighbour_that_reads_nothing_gets_what_came_in_order_up_to_a_bound(ear: Ear) -> None:
    neighbours, heard = Neighbours(asyncio.get_running_loop()), list[bytes]()
    door = neighbours.listen("inproc://b", lambda peer, frame: heard.append(frame))
    link = neighbours.dial("a", "inproc://b", lambda frame: None, lambda: None)
    door.hold()
    sent = 0
    while link.send(sent.to_bytes(4, "big")) is Sent.PASSED:
        sent += 1
    assert sent == HIGH_WATER + BACKLOG_MAX and not heard
    door.resume()
    await asyncio.sleep(0)
    assert heard == [number.to_bytes(4, "big") for number in range(sent)]


@on_a_loop
async def test_one_who_is_held_while_it_is_told_gets_the_rest_later(ear: Ear) -> None:
    neighbours, heard = Neighbours(asyncio.get_running_loop()), list[bytes]()

    def received(peer: str, frame: bytes) -> None:
        heard.append(frame)
        if frame == b"2":
            door.hold()

    door = neighbours.listen("inproc://b", received)
    link = neighbours.dial("a", "inproc://b", lambda frame: None, lambda: None)
    for frame in (b"1", b"2", b"3"):
        link.send(frame)
    await asyncio.sleep(0)
    link.send(b"4")
    await asyncio.sleep(0)
    assert heard == [b"1", b"2"]
    door.resume()
    await asyncio.sleep(0)
    assert heard == [b"1", b"2", b"3", b"4"]


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
