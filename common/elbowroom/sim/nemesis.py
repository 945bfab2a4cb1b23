"""What goes wrong in a run, as a plan: a list of faults that a seed makes, that can be replayed, and of which some can be left
out to find those that matter."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from elbowroom.machine.steps import is_step
from elbowroom.sim.network import Disturbance
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


@dataclass(frozen=True, slots=True)
class AtStep:
    """The ``hits``-th time from then on that a peer passes a step, it is killed, stopped, delayed, or its disk fails; it comes back
    after ``span`` seconds (``World.kill_at``)."""

    at: float
    span: float
    peer: str
    label: str
    hits: int
    action: str


Fault = Crash | Pause | Cut | Partition | Isolate | Disturb | AtStep
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


def armed(seed: int, peers: Sequence[str], *, duration: float, count: int) -> list[Fault]:
    """``count`` faults that wait for a labelled step, drawn from all that such a peer may pass."""
    rng = random.Random(f"{seed}/armed")
    faults: list[Fault] = []
    while len(faults) < count:
        peer = rng.choice(peers)
        labels = steps_of(peer.partition("/")[0])
        action = rng.choice(("kill", "kill", "kill", "stop", f"delay:{rng.choice((0.05, 0.5, 3))}", "disk"))
        span, at, hits = rng.choice((0.0, 0.1, 0.5, 5.0)), rng.uniform(0.0, duration), rng.choice((1, 1, 1, 2, 3, 8))
        if labels:
            faults.append(AtStep(at, span, peer, rng.choice(labels), hits, action))
    return sorted(faults, key=lambda fault: fault.at)


def steps_of(kind: str) -> list[str]:
    """The labels of a kind of component, of those with a number the first three."""
    letters, numbers = ("A", "B", "C", "S", "K", "R", "T"), range(1, 18)
    plain = [f"{letter}{number}" for letter in letters for number in numbers]
    return [label for one in plain for label in (one, *(f"{one}.{at}" for at in (1, 2, 3))) if is_step(kind, label)]


def unleash(world: World, faults: Sequence[Fault]) -> None:
    """Let the faults happen, counted from now. Call ``world.calm()`` when it is time to heal."""
    for fault in faults:
        world.after(fault.at, lambda fault=fault: _begin(world, fault))  # type: ignore[misc]


def _begin(world: World, fault: Fault) -> None:
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
        case AtStep(_, span, peer, label, hits, action):
            world.kill_at(peer, label, hits=hits, action=action, restart_after=span)
        case _:
            assert_never(fault)
