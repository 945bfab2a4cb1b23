"""What goes wrong when: the faults of a run, drawn from its seed before it begins.

On real processes a seed fixes the plan, not what comes of it: which write a kill meets is up to the machine. (The simulated world
repeats that, too.)
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from elbowroom.deploy.chaos.scenario import Body, Fault


@dataclass(frozen=True, slots=True)
class Drawn:
    """One fault of a plan: it begins ``at`` seconds after the first and lasts ``span``. ``chance`` seeds what else is drawn for it
    when it begins: the component, say, among those that there are then."""

    number: int
    at: float
    span: float
    chance: int
    fault: Fault


def draw(body: Body, seed: int, duration: float) -> list[Drawn]:
    """The plan, by time. Each kind of fault has its own stream of chance, so that leaving one out does not move the others; none
    lasts beyond ``duration``. Of each kind there is at least one."""
    found: list[tuple[float, float, int, Fault]] = []
    for place, fault in enumerate(body.faults):
        rng = random.Random(f"{seed}/{place}/{fault.kind}")
        at = min(rng.expovariate(1 / fault.every), duration / 2)
        while at < duration:
            low, high = getattr(fault, "span", (0.0, 0.0))
            found.append((at, min(rng.uniform(low, high), duration - at), rng.getrandbits(32), fault))
            at += rng.expovariate(1 / fault.every)
    found.sort(key=lambda one: one[:3])
    return [Drawn(number, at, span, chance, fault) for number, (at, span, chance, fault) in enumerate(found, 1)]


def counts(plan: Sequence[Drawn]) -> dict[str, int]:
    """How many faults of each kind are planned."""
    made: dict[str, int] = {}
    for drawn in plan:
        made[drawn.fault.kind] = made.get(drawn.fault.kind, 0) + 1
    return made
