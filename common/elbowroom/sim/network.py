"""The simulated bus: connections from dialers to listeners, frames in order on each, and what may go wrong with them."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from elbowroom.machine import Instant, seconds

WAITING_MAX = 1024


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What happens to single frames from peers that match ``source`` to peers that match ``target`` (``kubelet/*``): each field is
    a probability. A delayed frame holds up those behind it, a reordered one is overtaken by them; a corrupt one has a flipped
    bit, which the transport's own checks notice (CURVE authenticates each frame, and nothing flips bits within a machine)."""

    source: str = "*"
    target: str = "*"
    drop: float = 0.0
    duplicate: float = 0.0
    delay: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    delay_seconds: float = 0.5

    def concerns(self, source: str, target: str) -> bool:
        return fnmatchcase(source, self.source) and fnmatchcase(target, self.target)


@dataclass(slots=True)
class Connection:
    """From ``dialer`` to ``listener``. ``number`` rises whenever it breaks; frames of an older number are lost, save for those that
    the kernel had already (``tail``: to whom, which number, until when)."""

    dialer: str
    listener: str
    up: bool = False
    connecting: bool = False
    was_up: bool = False
    """In this life of the dialer."""
    number: int = 0
    waiting: list[bytes] = field(default_factory=list)
    """Sent before the first connection."""
    last: dict[str, Instant] = field(default_factory=dict)
    tail: tuple[str, int, Instant] | None = None

    def other(self, peer: str) -> str:
        return self.listener if peer == self.dialer else self.dialer

    def carries(self, target: str, number: int, now: Instant) -> bool:
        """Does a frame of that number still reach ``target``?"""
        if number == self.number:
            return self.up
        return self.tail is not None and self.tail[:2] == (target, number) and now <= self.tail[2]


class Network:
    """All connections, and how long frames take: between ``latency`` seconds, by chance, FIFO on each connection and direction."""

    def __init__(self, seed: int, latency: tuple[float, float]) -> None:
        self._seed = seed
        self.latency = latency
        self._connections: dict[tuple[str, str], Connection] = {}
        self._chance: dict[tuple[str, str], random.Random] = {}
        self._cut: dict[tuple[str, str], int] = {}
        self._silent: dict[tuple[str, str], int] = {}
        self.disturbances: list[Disturbance] = []

    def dial(self, dialer: str, listener: str) -> Connection:
        """The connection for a dialer's new life."""
        connection = self._connections.setdefault((dialer, listener), Connection(dialer, listener))
        connection.was_up = False
        connection.waiting.clear()
        return connection

    def from_dialer(self, dialer: str, listener: str) -> Connection | None:
        return self._connections.get((dialer, listener))

    def of(self, peer: str) -> Iterator[Connection]:
        """All connections with ``peer`` at one end, in a fixed order."""
        for connection in self._connections.values():
            if peer in (connection.dialer, connection.listener):
                yield connection

    def all(self) -> list[Connection]:
        return list(self._connections.values())

    def chance(self, source: str, target: str) -> random.Random:
        """The link's own randomness, so that what happens on one does not shift what happens on others."""
        made = self._chance.get((source, target))
        if made is None:
            made = self._chance[source, target] = random.Random(f"{self._seed}/link/{source}>{target}")
        return made

    def span(self, chance: random.Random) -> int:
        low, high = self.latency
        return seconds(low + (high - low) * chance.random())

    # ------------------------------------------------------------ whole links

    def block(self, a: str, b: str, by: int) -> None:
        """Count the cuts of a link up (1) or down (-1)."""
        _count(self._cut, _pair(a, b), by)

    def blocked(self, a: str, b: str) -> bool:
        return _pair(a, b) in self._cut

    def silence(self, source: str, target: str, by: int) -> None:
        """The same for one direction of a partition, which swallows frames without a sign."""
        _count(self._silent, (source, target), by)

    def silent(self, source: str, target: str) -> bool:
        return (source, target) in self._silent

    def break_up(self, connection: Connection, now: Instant, dying: str = "") -> None:
        """The connection is over. Of what ``dying`` had sent, a part has left its machine and arrives."""
        if not connection.up:
            connection.connecting = False
            return
        connection.tail = None
        if dying:
            chance = self.chance(dying, connection.other(dying))
            until = Instant(now + round(seconds(self.latency[1]) * chance.random()))
            connection.tail = (connection.other(dying), connection.number, until)
        connection.number += 1
        connection.up = connection.connecting = False

    # ------------------------------------------------------------ frames

    def transmit(
        self,
        connection: Connection,
        now: Instant,
        source: str,
        frame: bytes,
        deliver: Callable[[Instant, bytes, bool], None],
        tell: Callable[[str], None],
    ) -> None:
        """Let ``deliver(at, frame, sound)`` be called for each copy that arrives; ``tell`` hears what went wrong."""
        target = connection.other(source)
        if self.silent(source, target):
            tell("drop")
            return
        chance = self.chance(source, target)
        at = Instant(max(now + self.span(chance), connection.last.get(target, 0) + 1))
        holds_up = True
        copies = 1
        sound = True
        for fault in self.disturbances:
            if not fault.concerns(source, target):
                continue
            if chance.random() < fault.drop:
                tell("drop")
                return
            if chance.random() < fault.corrupt:
                tell("corrupt")
                sound = False
                where = chance.randrange(len(frame))
                frame = frame[:where] + bytes([frame[where] ^ (1 << chance.randrange(8))]) + frame[where + 1 :]
            if chance.random() < fault.delay:
                tell("delay")
                at = Instant(at + round(seconds(fault.delay_seconds) * chance.random()))
            if chance.random() < fault.reorder:
                tell("reorder")
                at = Instant(at + round(seconds(fault.delay_seconds) * chance.random()))
                holds_up = False
            if chance.random() < fault.duplicate:
                tell("dup")
                copies += 1
        for copy in range(copies):
            deliver(Instant(at + copy), frame, sound)
        if holds_up:
            connection.last[target] = Instant(at + copies - 1)


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)


def _count(counts: dict[tuple[str, str], int], key: tuple[str, str], by: int) -> None:
    left = counts.get(key, 0) + by
    if left > 0:
        counts[key] = left
    else:
        counts.pop(key, None)
