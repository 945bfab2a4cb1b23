"""The process in the middle of the bus: each link of a cluster runs through it, so that links can be cut and frames go wrong.

A link's dialer connects to ``front`` instead of the listener's own address; the relay dials that, ``back``, under the dialer's
name. Neither side notices: ``front`` is open only while the listener is alive, and the listener sees the dialer only while that is
connected, so deaths and returns show on both sides as they would without a relay. What happens to frames is decided by the
simulated world's ``Network``, so ``drop`` or ``reorder`` mean the same in both.

Orders come as JSON lines over a Unix socket (``ask`` of ``deploy.control``): ``link`` adds one, ``begin`` and ``heal`` a fault.
"""

import asyncio
import heapq
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop
import zmq
from zmq.utils.monitor import parse_monitor_message

from elbowroom.deploy.control import LINE_BYTES_MAX
from elbowroom.host.process import die_with_parent, name_process, raise_file_limit
from elbowroom.host.sockets import Listener, Pump, configure
from elbowroom.machine import Instant
from elbowroom.sim.network import Disturbance, Network

SLACK_NS = 500_000
"""What is due so soon is due now."""

Context = zmq.Context["zmq.Socket[bytes]"]


class _Monitored:
    """A DEALER that dials ``address`` and tells when it is connected and when no more."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, context: Context, address: str, name: str, heard: Callable[[bytes], None]
    ) -> None:
        socket = context.socket(zmq.DEALER)
        configure(socket, address)
        if name:
            socket.setsockopt(zmq.ROUTING_ID, name.encode())
        self.up: Callable[[], None] = lambda: None
        self.down: Callable[[], None] = lambda: None
        monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        self._monitor = Pump(loop, monitor, self._on_event)
        self.pump = Pump(loop, socket, lambda frames: heard(frames[-1]))
        socket.connect(address)

    def _on_event(self, frames: list[bytes]) -> None:
        if parse_monitor_message(frames)["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.up()
        else:
            self.down()

    def close(self) -> None:
        if not self.pump.socket.closed:
            self.pump.socket.disable_monitor()
            self._monitor.close()
            self.pump.close()


class Link:
    """One dialer's way to one listener."""

    def __init__(self, relay: "Relay", dialer: str, listener: str, front: str, back: str) -> None:
        self._relay, self.dialer, self.listener = relay, dialer, listener
        self._front_address, self._back_address = front, back
        self._connection = relay.network.dial(dialer, listener)
        self._front: Listener | None = None
        self._front_monitor: Pump | None = None
        self._back: _Monitored | None = None
        self._probe: _Monitored | None = None
        self._under_way: list[tuple[Instant, int, int, bytes, Callable[[bytes], None]]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._life = 0
        """Rises whenever the link breaks: what was under way then does not arrive."""
        self.open()

    def open(self) -> None:
        """Let the dialer in as soon as the listener is there."""
        if self._probe is None and not self._relay.network.blocked(self.dialer, self.listener):
            self._probe = _Monitored(self._relay.loop, self._relay.context, self._back_address, "", lambda _: None)
            self._probe.up, self._probe.down = self._open_front, self._listener_died

    def cut(self) -> None:
        """Down, and both sides know."""
        self._listener_died()
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    close = cut

    def _open_front(self) -> None:
        if self._front is not None:
            return
        loop = self._relay.loop
        self._front = Listener(loop, self._relay.context, self._front_address, self._from_dialer)
        socket = self._front.pump.socket
        self._front_monitor = Pump(
            loop, socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED), self._on_front
        )

    def _listener_died(self) -> None:
        self._close_back()
        if self._front is not None and self._front_monitor is not None:
            self._front.pump.socket.disable_monitor()
            self._front_monitor.close()
            self._front.close()
        self._front = self._front_monitor = None

    def _on_front(self, frames: list[bytes]) -> None:
        if parse_monitor_message(frames)["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._open_back()
        else:
            self._close_back()

    def _open_back(self) -> None:
        if self._back is None:
            self._back = _Monitored(self._relay.loop, self._relay.context, self._back_address, self.dialer, self._from_listener)
            self._back.down = self._listener_died

    def _close_back(self) -> None:
        self._life += 1
        self._connection.last.clear()
        if self._back is not None:
            self._back.close()
            self._back = None

    def _from_dialer(self, peer: str, frame: bytes) -> None:
        if self._front_monitor is not None:
            self._front_monitor.drain()  # the frame may be of a new life of the dialer
        if peer == self.dialer:
            self._open_back()
            self._carry(self.dialer, frame, self._to_listener)

    def _from_listener(self, frame: bytes) -> None:
        self._carry(self.listener, frame, self._to_dialer)

    def _carry(self, source: str, frame: bytes, hand_over: Callable[[bytes], None]) -> None:
        life = self._life

        def deliver(at: Instant, copy: bytes, sound: bool) -> None:
            if sound:  # a transport that checks what it carries drops the others
                heapq.heappush(self._under_way, (at, next(self._order), life, copy, hand_over))

        self._relay.network.transmit(self._connection, self._relay.now(), source, frame, deliver, self._relay.hit)
        self._arrive()

    def _arrive(self) -> None:
        """Hand over what is due, in the order of arrival, and come back for the rest."""
        now = self._relay.now() + SLACK_NS
        while self._under_way and self._under_way[0][0] <= now:
            _, _, life, frame, hand_over = heapq.heappop(self._under_way)
            if life == self._life:
                hand_over(frame)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._under_way:
            wait = (self._under_way[0][0] - now + SLACK_NS) / 1e9
            self._timer = self._relay.loop.call_later(max(wait, 0.001), self._arrive)

    def _to_listener(self, frame: bytes) -> None:
        if self._back is not None:
            self._back.pump.send([frame])

    def _to_dialer(self, frame: bytes) -> None:
        if self._front is not None:
            self._front.send(self.dialer, frame)


class Relay:
    """All links of a cluster and the faults on them. ``begin`` raises ``ValueError`` for an order that makes no sense."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seed: int) -> None:
        self.loop = loop
        self.context: Context = zmq.Context()
        self.context.set(zmq.MAX_SOCKETS, 16_000)
        self.network = Network(seed, (0.0, 0.0))
        self.links: dict[tuple[str, str], Link] = {}
        self._faults: dict[str, Callable[[], None]] = {}
        self._hits: Counter[str] = Counter()

    def now(self) -> Instant:
        return Instant(time.monotonic_ns())

    def hit(self, what: str) -> None:
        """A frame went wrong in that way."""
        self._hits[what] += 1

    def link(self, dialer: str, listener: str, front: str, back: str) -> None:
        """There is this link; told again it changes nothing."""
        if (dialer, listener) not in self.links:
            self.links[dialer, listener] = Link(self, dialer, listener, front, back)

    def begin(self, number: str, fault: Mapping[str, Any]) -> None:
        """A fault begins: ``cut`` and ``partition`` between ``a`` and ``b``, ``isolate`` of ``peer``, ``swizzle`` of ``peer`` over
        ``seconds``, or ``disturb`` with the fields of a Disturbance."""
        match fault:
            case {"kind": "cut", "a": str(a), "b": str(b)}:
                self._faults[number] = self._cut([self._between(a, b)])
            case {"kind": "isolate", "peer": str(peer)}:
                self._faults[number] = self._cut(self._of(peer))
            case {"kind": "swizzle", "peer": str(peer), "seconds": float(span), "seed": int(seed)}:
                self._faults[number] = self._swizzle(self._of(peer), span, random.Random(seed))
            case {"kind": "partition", "a": str(a), "b": str(b), "oneWay": bool(one_way)}:
                self._between(a, b)
                ways = [(a, b)] if one_way else [(a, b), (b, a)]
                self._silence(ways, 1)
                self._faults[number] = lambda: self._silence(ways, -1)
            case {"kind": "disturb", "fields": dict(fields)}:
                made = Disturbance(**fields)
                self.network.disturbances.append(made)
                self._faults[number] = lambda: self.network.disturbances.remove(made)
            case _:
                raise ValueError(f"no fault of links: {fault}")

    def heal(self, number: str) -> dict[str, int]:
        """The fault is over; how many frames went wrong since the last one ended, by how."""
        mend = self._faults.pop(number, None)
        if mend is not None:
            mend()
        hits, self._hits = dict(self._hits), Counter()
        return hits

    def close(self) -> None:
        for link in self.links.values():
            link.close()
        self.context.term()

    def _between(self, a: str, b: str) -> Link:
        found = self.links.get((a, b)) or self.links.get((b, a))
        if found is None:
            raise ValueError(f"no link between {a} and {b}")
        return found

    def _of(self, peer: str) -> list[Link]:
        return [link for ends, link in sorted(self.links.items()) if peer in ends]

    def _cut(self, links: list[Link]) -> Callable[[], None]:
        def set_all(by: int) -> None:
            for link in links:
                self._block(link, by)

        set_all(1)
        return lambda: set_all(-1)

    def _block(self, link: Link, by: int) -> None:
        self.network.block(link.dialer, link.listener, by)
        if by > 0:
            self.hit("cut")
            link.cut()
        else:
            link.open()

    def _swizzle(self, links: list[Link], span: float, rng: random.Random) -> Callable[[], None]:
        """Cut the links one by one over the span; mend them in another order when it is healed."""
        cut: list[Link] = []

        def one(link: Link) -> None:
            cut.append(link)
            self._block(link, 1)

        order = rng.sample(links, len(links))
        handles = [self.loop.call_later(span * place / max(1, len(order)), one, link) for place, link in enumerate(order)]

        def mend() -> None:
            for handle in handles:
                handle.cancel()
            for link in rng.sample(cut, len(cut)):
                self._block(link, -1)

        return mend

    def _silence(self, ways: list[tuple[str, str]], by: int) -> None:
        for source, target in ways:
            self.network.silence(source, target, by)


async def _serve(path: str, seed: int) -> None:
    relay = Relay(asyncio.get_running_loop(), seed)

    def obey(order: Mapping[str, Any]) -> Any:
        match order:
            case {"do": "link", "dialer": str(a), "listener": str(b), "front": str(front), "back": str(back)}:
                relay.link(a, b, front, back)
                return True
            case {"do": "links"}:
                return [list(ends) for ends in sorted(relay.links)]
            case {"do": "begin", "id": str(number), "fault": dict(fault)}:
                relay.begin(number, fault)
                return True
            case {"do": "heal", "id": str(number)}:
                return relay.heal(number)
            case _:
                raise ValueError(f"the relay does not know the order {order}")

    async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.LimitOverrunError):
            try:
                answer: dict[str, Any] = {"ok": obey(json.loads(await reader.readline()))}
            except (ValueError, TypeError, zmq.ZMQError) as why:
                answer = {"error": f"{why}"}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(on_client, path, limit=LINE_BYTES_MAX)
    print("ready", flush=True)
    try:
        line = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(line), sys.stdin)
        await line.read()  # whoever started the relay holds the other end: when that is gone, so is the relay
    finally:
        server.close()
        relay.close()
        Path(path).unlink(missing_ok=True)


if __name__ == "__main__":
    die_with_parent()
    name_process("relay")
    raise_file_limit()
    uvloop.run(_serve(sys.argv[1], int(sys.argv[2])))
