"""The relay in the middle of a link: not noticed while nothing is wrong, and wrong in just the way that was ordered."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
import zmq

from elbowroom.deploy.chaos.relay import Relay
from elbowroom.host.sockets import Dialer, Listener, Sent

PATIENCE_SECONDS = 10.0


class Bench:
    """A listener and dialers on the test's loop, with a relay between them."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.get_running_loop()
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.front, self.back = f"ipc://{folder}/front", f"ipc://{folder}/back"
        self.relay = Relay(self.loop, seed=1)
        self.heard: list[bytes] = []
        self.answers: list[bytes] = []
        self.reconnected = 0
        self._open: list[Any] = []
        self.listen()
        self.relay.link("a", "b", self.front, self.back)

    def listen(self) -> None:
        self.listener = Listener(self.loop, self.context, self.back, lambda peer, frame: self.heard.append(frame))
        self._open.append(self.listener)

    def dial(self) -> Dialer:
        def again() -> None:
            self.reconnected += 1

        dialer = Dialer(self.loop, self.context, "a", self.front, self.answers.append, again)
        self._open.append(dialer)
        return dialer

    async def until(self, fact: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not fact():
                await asyncio.sleep(0)

    async def through(self, dialer: Dialer, frame: bytes) -> None:
        """Say it again and again until it is heard: what is sent while the link is down is lost, as always."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while frame not in self.heard:
                dialer.send(frame)
                await asyncio.sleep(0.001)
        dialer.send(b"last")
        await self.until(lambda: self.heard[-1:] == [b"last"])

    def close(self) -> None:
        for end in self._open:
            end.close()
        self.relay.close()
        self.context.term()


def on_a_bench(test: Callable[[Bench], Awaitable[None]]) -> Callable[[], None]:
    def wrapped() -> None:
        async def run() -> None:
            with tempfile.TemporaryDirectory(prefix="eb") as folder:
                bench = Bench(Path(folder))
                try:
                    await test(bench)
                finally:
                    bench.close()

        uvloop.run(run())

    wrapped.__name__ = test.__name__
    return wrapped


@on_a_bench
async def test_frames_pass_both_ways_in_order(bench: Bench) -> None:
    dialer = bench.dial()
    sent = [str(number).encode() for number in range(500)]
    for frame in sent:
        assert dialer.send(frame) is Sent.PASSED
    await bench.until(lambda: len(bench.heard) == 500)
    assert bench.heard == sent
    for frame in sent:
        bench.listener.send("a", frame)
    await bench.until(lambda: len(bench.answers) == 500)
    assert bench.answers == sent


@on_a_bench
async def test_a_dialer_learns_of_the_listeners_death_and_return(bench: Bench) -> None:
    dialer = bench.dial()
    await bench.through(dialer, b"before")
    bench.listener.close()
    await bench.until(lambda: dialer.send(b"lost") is Sent.AWAY)
    bench.listen()
    await bench.until(lambda: bench.reconnected == 1)
    await bench.through(dialer, b"after")


@on_a_bench
async def test_a_listener_learns_of_the_dialers_death_and_hears_its_next_life(bench: Bench) -> None:
    first = bench.dial()
    await bench.through(first, b"first")
    first.close()
    await bench.until(lambda: bench.listener.send("a", b"to nobody") is Sent.AWAY)
    second = bench.dial()
    await bench.through(second, b"second")
    assert bench.listener.send("a", b"to somebody") is Sent.PASSED
    await bench.until(lambda: b"to somebody" in bench.answers)


@on_a_bench
async def test_both_sides_know_of_a_cut_and_of_its_end(bench: Bench) -> None:
    dialer = bench.dial()
    await bench.through(dialer, b"before")
    bench.relay.begin("1", {"kind": "cut", "a": "b", "b": "a"})
    await bench.until(lambda: dialer.send(b"lost") is Sent.AWAY)
    await bench.until(lambda: bench.listener.send("a", b"lost") is Sent.AWAY)
    assert bench.relay.heal("1") == {"cut": 1}
    await bench.until(lambda: bench.reconnected == 1)
    await bench.through(dialer, b"after")


@on_a_bench
async def test_nobody_knows_of_a_partition(bench: Bench) -> None:
    dialer = bench.dial()
    await bench.through(dialer, b"before")
    bench.relay.begin("1", {"kind": "partition", "a": "a", "b": "b", "oneWay": True})
    for _ in range(20):
        assert dialer.send(b"swallowed") is Sent.PASSED
    bench.listener.send("a", b"the other way is open")
    await bench.until(lambda: b"the other way is open" in bench.answers)
    hits = 0
    async with asyncio.timeout(PATIENCE_SECONDS):
        while hits < 20:
            hits += bench.relay._hits.pop("drop", 0)
            await asyncio.sleep(0)
    bench.relay.heal("1")
    await bench.through(dialer, b"after")
    assert b"swallowed" not in bench.heard
    assert bench.reconnected == 0


@pytest.mark.parametrize(
    ("fields", "comes"),
    [
        pytest.param({"drop": 1.0}, [], id="drop"),
        pytest.param({"corrupt": 1.0}, [], id="corrupt"),
        pytest.param({"duplicate": 1.0}, [b"x", b"x"], id="duplicate"),
        pytest.param({"delay": 1.0, "delay_seconds": 0.02}, [b"x"], id="delay"),
        pytest.param({"source": "c"}, [b"x"], id="of somebody else"),
    ],
)
def test_single_frames_go_wrong_as_ordered(fields: dict[str, Any], comes: list[bytes]) -> None:
    @on_a_bench
    async def story(bench: Bench) -> None:
        dialer = bench.dial()
        await bench.through(dialer, b"before")
        bench.heard.clear()
        bench.relay.begin("1", {"kind": "disturb", "fields": fields})
        dialer.send(b"x")
        await bench.until(lambda: len(bench.heard) >= len(comes))
        hits: dict[str, int] = {}
        if not comes:
            await bench.until(lambda: bool(bench.relay._hits))
        hits = bench.relay.heal("1")
        dialer.send(b"end")
        await bench.until(lambda: bench.heard[-1:] == [b"end"])
        assert bench.heard == [*comes, b"end"]
        assert sum(hits.values()) == (0 if "source" in fields else 1)

    story()


@on_a_bench
async def test_a_fault_of_a_link_that_is_not_there_is_refused(bench: Bench) -> None:
    with pytest.raises(ValueError, match="no link between a and c"):
        bench.relay.begin("1", {"kind": "cut", "a": "a", "b": "c"})
    with pytest.raises(TypeError):
        bench.relay.begin("1", {"kind": "disturb", "fields": {"explode": 1.0}})
