"""tcp addresses: only members of the cluster are heard there, and who dials is told where to."""

import asyncio
from collections.abc import Callable

import pytest
import zmq
from hosts import Ear, do, on_a_loop, state, until

from elbowroom.client import BusClient
from elbowroom.host.gatekeeper import Gatekeeper
from elbowroom.host.keys import Keys, make_keys
from elbowroom.host.process import ANY
from elbowroom.host.shared import TRUNK
from elbowroom.host.sockets import Dialer, Listener
from elbowroom.host.spec import AddMachine, PeerMoved, Ready, RestartMachine

HERE = "tcp://127.0.0.1:*"


class Door:
    """A listener of members at a tcp address, and what it heard."""

    def __init__(self, keys: Keys, *, watched: bool = True) -> None:
        self.loop = asyncio.get_running_loop()
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.gatekeeper = Gatekeeper(self.loop, self.context, keys) if watched else None
        self.heard: list[tuple[str, bytes]] = []
        self.listener = Listener(self.loop, self.context, HERE, lambda peer, frame: self.heard.append((peer, frame)), keys)
        self.dialers: list[Dialer] = []

    def dial(self, name: str, keys: Keys, address: str | None = None) -> Dialer:
        at = self.listener.address if address is None else address
        made = Dialer(self.loop, self.context, name, at, lambda _: None, lambda: None, keys=keys)
        self.dialers.append(made)
        return made

    async def until(self, fact: Callable[[], bool]) -> None:
        async def look() -> bool:
            await asyncio.sleep(0)
            return fact()

        await until(look)

    def close(self) -> None:
        for dialer in self.dialers:
            dialer.close()
        self.listener.close()
        if self.gatekeeper is not None:
            self.gatekeeper.close()
        self.context.term()


def stranger(kind: str, address: str, keys: Keys) -> "tuple[zmq.Context[zmq.Socket[bytes]], zmq.Socket[bytes], zmq.Socket[bytes]]":
    """Somebody who says something to ``address``; what they know of CURVE is ``kind``. Also who hears what becomes of it."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.linger = 0
    socket.setsockopt(zmq.ROUTING_ID, b"kubelet/node-1")
    own_public, own_secret = zmq.curve_keypair()
    if kind == "other keys":
        socket.curve_publickey, socket.curve_secretkey, socket.curve_serverkey = own_public, own_secret, own_public
    elif kind == "the server's public key":
        socket.curve_publickey, socket.curve_secretkey = own_public, own_secret
        socket.curve_serverkey = keys.public.encode()
    failed = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    monitor = socket.get_monitor_socket(failed | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED)
    socket.connect(address)
    socket.send(b"let me in")
    return context, socket, monitor


@pytest.mark.parametrize("kind", ["no keys", "other keys", "the server's public key"])
def test_what_a_stranger_says_never_arrives(kind: str) -> None:
    @on_a_loop
    async def test(ear: Ear) -> None:
        keys = make_keys()
        door = Door(keys)
        context, socket, monitor = stranger(kind, door.listener.address, keys)
        assert await asyncio.to_thread(monitor.poll, 5000), "the listener has turned the stranger away"
        event = int.from_bytes(monitor.recv_multipart()[0][:2], "little")
        assert event != zmq.EVENT_HANDSHAKE_SUCCEEDED
        door.dial("client/1", keys).send(b"hello")
        await door.until(lambda: bool(door.heard))
        assert door.heard == [("client/1", b"hello")]
        socket.disable_monitor()
        monitor.close()
        socket.close()
        context.term()
        door.close()

    test()


@on_a_loop
async def test_without_a_gatekeeper_nobody_is_let_in(ear: Ear) -> None:
    keys = make_keys()
    door = Door(keys, watched=False)
    context, socket, monitor = stranger("the server's public key", door.listener.address, keys)
    assert await asyncio.to_thread(monitor.poll, 5000)
    assert int.from_bytes(monitor.recv_multipart()[0][:2], "little") != zmq.EVENT_HANDSHAKE_SUCCEEDED
    assert not door.heard
    socket.disable_monitor()
    monitor.close()
    socket.close()
    context.term()
    door.close()


@on_a_loop
async def test_a_tcp_address_needs_keys(ear: Ear) -> None:
    loop = asyncio.get_running_loop()
    with zmq.Context() as context:
        with pytest.raises(ValueError, match="needs keys"):
            Listener(loop, context, HERE, lambda peer, frame: None)
        with pytest.raises(ValueError, match="needs keys"):
            Dialer(loop, context, "client/1", "tcp://127.0.0.1:1", lambda frame: None, lambda: None)
        context.destroy(linger=0)


def test_no_words_about_keys_have_the_secret_one() -> None:
    keys = make_keys()
    assert keys.secret not in f"{keys!r} {keys}"
    assert keys.public != keys.secret


@on_a_loop
async def test_what_is_sent_before_the_address_is_known_waits_for_it_in_order(ear: Ear) -> None:
    keys = make_keys()
    door = Door(keys)
    dialer = door.dial("client/1", keys, address="")
    for number in range(10):
        dialer.send(bytes([number]))
    dialer.redial(door.listener.address)
    await door.until(lambda: len(door.heard) == 10)
    assert [frame for _, frame in door.heard] == [bytes([number]) for number in range(10)]
    door.close()


@pytest.mark.parametrize("way", ["", TRUNK], ids=["own socket", "trunk"])
def test_machines_follow_a_listener_that_moves_and_hear_of_it(way: str) -> None:
    @on_a_loop
    async def test(ear: Ear) -> None:
        keys = make_keys()
        await ear.host(ear.machine("b", bind=f"{ANY}*"), keys=keys)
        first = await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == "b")
        assert isinstance(first, Ready) and first.address.startswith("tcp://127.0.0.1:")
        await ear.host(ear.machine("a", dial={"b": way}), keys=keys)
        client = await ear.client("a")
        await do(client, ["call", "b", 1])
        ear.tell("host1", PeerMoved("b", first.address))
        await until(lambda: _news(client, ["reply 1 b"]))
        ear.tell("host0", AddMachine(ear.machine("c")))  # a machine alone would take its process with it
        ear.tell("host0", RestartMachine("b"))
        second = await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == "b", times=2)
        assert isinstance(second, Ready) and second.address != first.address
        ear.tell("host1", PeerMoved("b", second.address))
        await until(lambda: _news(client, ["reply 1 b", "connected b"]))
        await do(client, ["call", "b", 2])
        await until(lambda: _news(client, ["reply 1 b", "connected b", "reply 2 b"]))
        ear.tell("host1", RestartMachine("a"))
        await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == "a", times=2)
        client = await ear.client("a")
        await do(client, ["call", "b", 3])
        await until(lambda: _news(client, ["reply 3 b"]))

    test()


async def _news(client: BusClient, wanted: list[str]) -> bool:
    return (await state(client))["news"] == wanted  # type: ignore[no-any-return]


@on_a_loop
async def test_a_machine_that_moved_says_that_its_disk_is_new_and_a_later_life_there_does_not(ear: Ear) -> None:
    from elbowroom.host.spec import DiskSpec

    disk = DiskSpec("files", f"{ear.folder}/disk")
    await ear.host(ear.machine("a", disk=disk), ear.machine("b"), moved=True)
    ear.tell("host0", RestartMachine("a"))
    await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == "a", times=2)
    assert ["disk.new" in [one["kind"] for one in life] for life in ear.history("a")] == [True, False]
    assert "disk.new" not in ear.kinds("b")
