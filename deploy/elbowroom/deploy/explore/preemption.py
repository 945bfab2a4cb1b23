"""The story of a resize by preemption, told in the simulated world under whatever faults a seed draws."""

from elbowroom.api import resources
from elbowroom.api.gates import Profile
from elbowroom.deploy.explore.cluster import SimulatedCluster, is_settled
from elbowroom.deploy.explore.outcome import Outcome
from elbowroom.sim.nemesis import plan, unleash

LOW, HIGH = 10, 1000
FAULTS, FAULTY_SECONDS = 8, 12.0
"""How many faults a hostile run gets, and within how many virtual seconds."""


VICTIMS = 2
"""What the story needs; in a hostile run more may go (SC-139, SC-140), in a run without faults never."""


def preemption(seed: int, *, hostile: bool = False, die_before: int = 0, profile: Profile | None = None) -> Outcome:
    """A full node of 4Gi; the pod of high priority is resized from 1Gi to 3Gi, so two of three low ones must go.

    ``hostile`` draws crashes, pauses, cuts, partitions and a bad bus from the seed; ``die_before`` kills the process that is about
    to carry out the world's effect of that number. Raises AssertionError, with the state, if the story does not come to its end.
    """
    cluster = SimulatedCluster(seed, profile)
    world = cluster.world
    if die_before:
        world.die_before(die_before)
    cluster.add_priority("low", LOW)
    cluster.add_priority("high", HIGH)
    cluster.add_node("node-1")
    if hostile:
        unleash(world, plan(seed, cluster.peers(), cluster.links(), duration=FAULTY_SECONDS, count=FAULTS))
    low = ("batch-1", "batch-2", "batch-3")
    cluster.add_pod("web", "high", "1Gi")
    for name in low:
        cluster.add_pod(name, "low", "1Gi")
    cluster.until("all four pods run", lambda: cluster.running("web", *low), within=180.0)
    cluster.resize("web", memory="3Gi")
    cluster.until("the resize is in force", lambda: _in_force(cluster), within=180.0)
    world.calm()
    cluster.until("everything has settled", cluster.settled, within=180.0)
    left = [pod for pod in cluster.pods.store.values() if pod.metadata.name in low and not pod.is_terminal]
    victims = len(low) - len(left)
    assert victims >= VICTIMS, f"{victims} victims make no room"
    assert hostile or victims == VICTIMS, f"{victims} victims where {VICTIMS} were needed"
    return Outcome(world, cluster.verdict(), victims)


def _in_force(cluster: SimulatedCluster) -> bool:
    web = cluster.pods.store.get("default/web")
    return web is not None and is_settled(web) and resources.actual_requests(web)["memory"] == 3 << 30
