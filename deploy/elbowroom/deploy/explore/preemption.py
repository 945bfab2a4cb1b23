"""The story of a resize by preemption, told in the simulated world under whatever faults a seed draws."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from elbowroom.api import resources
from elbowroom.api.gates import Profile
from elbowroom.deploy.explore.cluster import SimulatedCluster, is_settled, links, peers
from elbowroom.sim import nemesis

LOW, HIGH = 10, 1000
FAULTS, FAULTY_SECONDS = 8, 12.0
NEAR_FAULTS, NEAR_SECONDS, ARMED = 4, (0.2, 0.5, 3.0), (0, 4, 8)
"""How many faults a hostile run gets within how many virtual seconds; and, since the story may take less than one, how many more
within a short while, and how many that wait for a step."""
GRACE = (0, 0, 1, 3)
NODE = "node-1"
NAMES = ("batch-1", "batch-2", "batch-3")
VICTIMS = 2
"""What the story needs; in a hostile run more may go (SC-139, SC-140), in a run without faults never."""
WITHIN = 300.0
"""The longest call of a kubelet to its runtime lasts two minutes, and may be lost twice."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """A full node of 4Gi; the pod of high priority is resized from 1Gi to 3Gi, so two of three low ones must go."""

    profile: Profile
    parts: tuple[nemesis.Fault, ...] = ()
    grace: int = 0

    def keeping(self, parts: Sequence[nemesis.Fault]) -> "Preemption":
        return replace(self, parts=tuple(parts))

    def tell(self, cluster: SimulatedCluster, *, undisturbed: bool) -> int:
        """The number is that of the victims."""
        cluster.add_priority("low", LOW)
        cluster.add_priority("high", HIGH)
        cluster.add_node(NODE)
        nemesis.unleash(cluster.world, self.parts)
        cluster.add_pod("web", "high", "1Gi")
        for name in NAMES:
            cluster.add_pod(name, "low", "1Gi", grace=self.grace)
        cluster.until("all four pods run", lambda: cluster.running("web", *NAMES), within=WITHIN)
        cluster.resize("web", memory="3Gi")
        cluster.until("the resize is in force", lambda: _in_force(cluster), within=WITHIN)
        cluster.world.calm()
        cluster.until("everything has settled", cluster.settled, within=WITHIN)
        left = [pod for pod in cluster.pods.store.values() if pod.metadata.name in NAMES and not pod.is_terminal]
        victims = len(NAMES) - len(left)
        assert victims >= VICTIMS, f"{victims} victims make no room"
        assert self.parts or not undisturbed or victims == VICTIMS, f"{victims} victims where {VICTIMS} were needed"
        return victims


def preemption(seed: int, profile: Profile, *, hostile: bool) -> Preemption:
    """``hostile`` draws crashes, pauses, cuts, partitions, a bad bus, faults at steps and the victims' grace from the seed."""
    if not hostile:
        return Preemption(profile)
    rng, who, ways = random.Random(f"{seed}/mix"), peers([NODE]), links([NODE])
    far = nemesis.plan(seed, who, ways, duration=FAULTY_SECONDS, count=FAULTS)
    near = nemesis.plan(-seed, who, ways, duration=rng.choice(NEAR_SECONDS), count=NEAR_FAULTS)
    armed = nemesis.armed(seed, who, duration=rng.choice(NEAR_SECONDS), count=rng.choice(ARMED))
    return Preemption(profile, (*far, *near, *armed), rng.choice(GRACE))


def _in_force(cluster: SimulatedCluster) -> bool:
    web = cluster.pods.store.get("default/web")
    return web is not None and is_settled(web) and resources.actual_requests(web)["memory"] == 3 << 30
