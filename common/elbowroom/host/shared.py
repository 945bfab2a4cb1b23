"""What machines of one process share instead of having sockets of their own.

A dialled peer costs three sockets, five files and some forty kilobytes on each side, which thousands of kubelets in a process
cannot each have for the API server and for their runtime. So they share a *trunk*, one DEALER for all that dial an address, whose
messages bear the machine's name; and machines of the same process reach each other (``inproc:``) as *neighbours*, without sockets.

Each machine still has its own bounds, is held and let go by itself, and is told of each connection that was replaced.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

import zmq

from elbowroom.host.keys import Keys
from elbowroom.host.sockets import BACKLOG_MAX, HIGH_WATER, Dialer, Sent
from elbowroom.wire import Message

TRUNK = "trunk+"
"""Before the address of a peer that is dialled over the process's trunk."""
INSIDE = "inproc:"
"""Addresses of neighbours."""


class Link(Protocol):
    """A machine's way to a peer that it dials; ``Dialer`` is one."""

    @property
    def open(self) -> bool: ...
    def hold(self) -> None: ...
    def resume(self) -> None: ...
    def close(self, linger_ms: int = 0) -> None: ...


class Door(Protocol):
    """Where a machine is dialled; ``Listener`` is one."""

    address: str

    @property
    def open(self) -> bool: ...
    def hold(self) -> None: ...
    def resume(self) -> None: ...
    def close(self, linger_ms: int = 0) -> None: ...


class Inlet:
    """What arrives for one machine, in order: handed over in a turn of the loop of its own, kept (to a bound) while it is held."""

    __slots__ = ("_loop", "_scheduled", "_waiting", "open")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Callable[[], None]] | None = []
        self._scheduled = False
        self.open = True

    def post(self, deliver: Callable[[], None]) -> Sent:
        if self._waiting is None:
            return Sent.AWAY
        if len(self._waiting) >= HIGH_WATER + BACKLOG_MAX:
            return Sent.FULL
        self._waiting.append(deliver)
        self._schedule()
        return Sent.PASSED

    def hold(self) -> None:
        self.open = False

    def resume(self) -> None:
        self.open = True
        self._schedule()

    def close(self) -> None:
        self._waiting = None

    def _schedule(self) -> None:
        if self.open and not self._scheduled and self._waiting:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        if not (self._waiting and self.open):
            return
        batch, self._waiting = self._waiting, []
        done = 0
        try:
            while done < len(batch) and self.open and self._waiting is not None:
                done += 1
                batch[done - 1]()
        finally:
            if done < len(batch) and self._waiting is not None:
                self._waiting[:0] = batch[done:]
            self._schedule()


# ---------------------------------------------------------------- one connection for many machines


class Trunk:
    """The connection of a process to ``address``, for all of its machines that dial it (``lane``).

    Messages are sent as ``[machine, frame]`` under the routing id ``process``; a ``Listener`` answers in kind.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: "zmq.Context[zmq.Socket[bytes]]",
        process: str,
        address: str,
        keys: Keys | None = None,
    ) -> None:
        self._loop = loop
        self._lanes: dict[bytes, Lane] = {}
        self._dialer = Dialer(
            loop, context, process, address, lambda _: None, self._on_reconnected, frames=self._on_frames, keys=keys
        )

    def lane(self, machine: str, received: Callable[[bytes], None], reconnected: Callable[[], None]) -> "Lane":
        """The machine's own end, in place of one that an earlier life had."""
        made = self._lanes[machine.encode()] = Lane(self, machine.encode(), Inlet(self._loop), received, reconnected)
        return made

    def send(self, machine: bytes, frame: bytes) -> Sent:
        return self._dialer.send_frames([machine, frame])

    def redial(self, address: str) -> None:
        """The peer listens at ``address`` now: connect there."""
        if address != self._dialer.address:
            self._dialer.redial(address)

    def leave(self, lane: "Lane") -> None:
        if self._lanes.get(lane.machine) is lane:
            del self._lanes[lane.machine]

    def close(self, linger_ms: int = 0) -> None:
        self._dialer.close(linger_ms)

    def _on_frames(self, frames: list[bytes]) -> None:
        lane = self._lanes.get(frames[0]) if len(frames) == 2 else None
        if lane is not None:
            lane.arrived(frames[1])

    def _on_reconnected(self) -> None:
        for lane in list(self._lanes.values()):
            lane.reconnected()


class Lane:
    """One machine's end of a trunk."""

    __slots__ = ("_inlet", "_received", "_reconnected", "_trunk", "machine")

    def __init__(
        self, trunk: Trunk, machine: bytes, inlet: Inlet, received: Callable[[bytes], None], reconnected: Callable[[], None]
    ) -> None:
        self._trunk, self.machine, self._inlet = trunk, machine, inlet
        self._received, self._reconnected = received, reconnected

    @property
    def open(self) -> bool:
        return self._inlet.open

    def arrived(self, frame: bytes) -> None:
        self._inlet.post(partial(self._received, frame))  # beyond the bound it is lost, as in a full pipe

    def reconnected(self) -> None:
        self._inlet.post(self._reconnected)

    def send(self, frame: bytes) -> Sent:
        return self._trunk.send(self.machine, frame)

    def hold(self) -> None:
        self._inlet.hold()

    def resume(self) -> None:
        self._inlet.resume()

    def close(self, linger_ms: int = 0) -> None:
        self._inlet.close()
        self._trunk.leave(self)


# ---------------------------------------------------------------- machines of one process


class Neighbours:
    """The doors and links of a process's machines that reach each other without sockets. A message is a frozen value, whose parts
    are the bytes that any peer would get: it is handed on as it is.

    What is sent before the first door opened at an address waits for it; later, while there is none, it is lost (AWAY). A door that
    takes another's place is a connection replaced, for all links to it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._doors: dict[str, NeighbourDoor] = {}
        self._links: dict[str, dict[str, NeighbourLink]] = {}
        """Address -> the dialling machines' links."""
        self._early: dict[str, deque[tuple[str, Message]]] = {}
        self._known: set[str] = set()

    def listen(self, address: str, received: Callable[[str, Message], None]) -> "NeighbourDoor":
        """Open the door at ``address``. ``ValueError`` if there is one already."""
        if address in self._doors:
            raise ValueError(f"{address} is in use")
        door = self._doors[address] = NeighbourDoor(self, address, Inlet(self._loop), received)
        if address in self._known:
            for link in list(self._links.get(address, {}).values()):
                link.reconnected()
        self._known.add(address)
        for machine, message in self._early.pop(address, ()):
            door.arrived(machine, message)
        return door

    def dial(
        self, machine: str, address: str, received: Callable[[Message], None], reconnected: Callable[[], None]
    ) -> "NeighbourLink":
        link = NeighbourLink(self, machine, address, Inlet(self._loop), received, reconnected)
        self._links.setdefault(address, {})[machine] = link
        return link

    def to_door(self, machine: str, address: str, message: Message) -> Sent:
        door = self._doors.get(address)
        if door is not None:
            return door.arrived(machine, message)
        if address in self._known:
            return Sent.AWAY
        early = self._early.setdefault(address, deque())
        if len(early) >= BACKLOG_MAX:
            return Sent.FULL
        early.append((machine, message))
        return Sent.PASSED

    def to_link(self, address: str, machine: str, message: Message) -> Sent:
        link = self._links.get(address, {}).get(machine)
        return Sent.AWAY if link is None else link.arrived(message)

    def leave(self, end: "NeighbourDoor | NeighbourLink") -> None:
        if isinstance(end, NeighbourDoor):
            if self._doors.get(end.address) is end:
                del self._doors[end.address]
            return
        links = self._links.get(end.address, {})
        if links.get(end.machine) is end:
            del links[end.machine]
        if not links:
            self._links.pop(end.address, None)


class NeighbourDoor:
    """See ``Neighbours``; what a ``Listener`` is to others."""

    __slots__ = ("_inlet", "_neighbours", "_received", "address")

    def __init__(self, neighbours: Neighbours, address: str, inlet: Inlet, received: Callable[[str, Message], None]) -> None:
        self._neighbours, self.address, self._inlet, self._received = neighbours, address, inlet, received

    @property
    def open(self) -> bool:
        return self._inlet.open

    def arrived(self, machine: str, message: Message) -> Sent:
        return self._inlet.post(partial(self._received, machine, message))

    def send(self, peer: str, message: Message) -> Sent:
        return self._neighbours.to_link(self.address, peer, message)

    def hold(self) -> None:
        self._inlet.hold()

    def resume(self) -> None:
        self._inlet.resume()

    def close(self, linger_ms: int = 0) -> None:
        self._inlet.close()
        self._neighbours.leave(self)


class NeighbourLink:
    """See ``Neighbours``; what a ``Dialer`` is to others."""

    __slots__ = ("_inlet", "_neighbours", "_received", "_reconnected", "address", "machine")

    def __init__(
        self,
        neighbours: Neighbours,
        machine: str,
        address: str,
        inlet: Inlet,
        received: Callable[[Message], None],
        reconnected: Callable[[], None],
    ) -> None:
        self._neighbours, self.machine, self.address, self._inlet = neighbours, machine, address, inlet
        self._received, self._reconnected = received, reconnected

    @property
    def open(self) -> bool:
        return self._inlet.open

    def arrived(self, message: Message) -> Sent:
        return self._inlet.post(partial(self._received, message))

    def reconnected(self) -> None:
        self._inlet.post(self._reconnected)

    def send(self, message: Message) -> Sent:
        return self._neighbours.to_door(self.machine, self.address, message)

    def hold(self) -> None:
        self._inlet.hold()

    def resume(self) -> None:
        self._inlet.resume()

    def close(self, linger_ms: int = 0) -> None:
        self._inlet.close()
        self._neighbours.leave(self)
