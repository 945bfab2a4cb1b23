"""What goes wrong in a run, as a plan: a list of faults that a seed makes, that can be replayed, and of which some can be left
out to find those that matter."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from elbowroom.sim.network import Disturbance

if TYPE_CHECKING:
    from elbowroom.sim.world import World


@dataclass(frozen=True, slots=True)
class Crash:
    """kill -9, and a start ``span`` seconds later."""

    at: float
    span: float
    peer: str


@dataclass(frozen=True, slots=True)
class Pause:
    """SIGSTOP for ``span`` seconds."""

    at: float
    span: float
    peer: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A link is down, and both sides know."""

    at: float
    span: float
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Partition:
    """A link swallows frames, and nobody knows."""

    at: float
    span: float
    a: str
    b: str
    one_way: bool = False


@dataclass(frozen=True, slots=True)
class Isolate:
    """Every link of a peer is cut."""

    at: float
    span: float
    peer: str


@dataclass(frozen=True, slots=True)
class Disturb:
    """Single frames go wrong."""

    at: float
    span: float
    disturbance: Disturbance


Fault = Crash | Pause | Cut | Partition | Isolate | Disturb
KINDS = ("crash", "pause", "cut", "partition", "isolate", "disturb", "swizzle")


def plan(
    seed: int, peers: Sequence[str], links: Sequence[tuple[str, str]], *, duration: float, count: int, kinds: Sequence[str] = KINDS
) -> list[Fault]:
    """``count`` random faults within ``duration`` seconds, in the order of their begin. ``peers`` may crash, pause and lose all
    their links, ``links`` may break. ``swizzle`` cuts a peer's links one by one and mends them in another order."""
    rng = random.Random(f"{seed}/nemesis")
    faults: list[Fault] = []
    for _ in range(count):
        at = rng.uniform(0.0, duration)
        span = min(rng.expovariate(1 / 2.0), duration - at)
        peer, (a, b) = rng.choice(peers), rng.choice(links)
        match rng.choice(kinds):
            case "crash":
                faults.append(Crash(at, rng.choice((0.0, 0.1, 0.5, 5.0)), peer))
            case "pause":
                faults.append(Pause(at, span, peer))
            case "cut":
                faults.append(Cut(at, span, a, b))
            case "partition":
                faults.append(Partition(at, span, a, b, one_way=rng.random() < 0.5))
            case "isolate":
                faults.append(Isolate(at, span, peer))
            case "disturb":
                rates = [rng.choice((0.0, 0.01, 0.1)) for _ in range(5)]
                faults.append(Disturb(at, span, Disturbance(a, b, *rates)))
            case "swizzle":
                for link in (link for link in links if peer in link):
                    begin = rng.uniform(at, at + span / 2)
                    faults.append(Cut(begin, rng.uniform(span / 2, span), *link))
            case unknown:
                raise ValueError(f"unknown kind of fault {unknown!r}: {', '.join(KINDS)}")
    return sorted(faults, key=lambda fault: fault.at)


def unleash(world: "World", faults: Sequence[Fault]) -> None:
    """Let the faults happen, counted from now. Call ``world.calm()`` when it is time to heal."""
    for fault in faults:
        world.after(fault.at, lambda fault=fault: _begin(world, fault))  # type: ignore[misc]


def _begin(world: "World", fault: Fault) -> None:
    match fault:
        case Crash(_, span, peer):
            world.crash(peer, span)
        case Pause(_, span, peer):
            world.pause(peer, span)
        case Cut(_, span, a, b):
            world.cut(a, b, span)
        case Partition(_, span, a, b, one_way):
            world.partition(a, b, span, one_way=one_way)
        case Isolate(_, span, peer):
            world.isolate(peer, span)
        case Disturb(_, span, disturbance):
            world.disturb(disturbance, span)
        case _:
            assert_never(fault)
