"""How fast the simulated world is with twenty nodes: at work, and while nothing is asked of it."""

import gc
import random
import time

from elbowroom.deploy.bench.figures import Figure
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.explore.cluster import SimulatedCluster
from elbowroom.rpc import patch
from elbowroom.sim.client import Client, Pending

NODES, PODS, CLIENTS = 20, 40, 4
SIZES = ("256Mi", "512Mi", "1Gi", "2Gi")
RESIZES = 400
IDLE_SECONDS = 300.0
AIM_STEPS, AIM_SECONDS = 20_000.0, 100.0
WITHIN = 120.0


def simulated_world(resizes: int = RESIZES, idle: float = IDLE_SECONDS) -> list[Figure]:
    """Steps that machines take in a second of the processor's, and virtual seconds that pass in one."""
    cluster = SimulatedCluster(1)
    cluster.add_priority("high", 1000)
    for number in range(1, NODES + 1):
        cluster.add_node(f"node-{number}")
    names = [f"web-{number}" for number in range(1, PODS + 1)]
    for name in names:
        cluster.add_pod(name, "high", "512Mi", cpu="250m")
    cluster.until("all pods run", lambda: cluster.running(*names), WITHIN)
    gc.collect()
    gc.disable()
    try:
        steps, spent = _at_work(cluster, names, resizes)
        cluster.until("all is settled", cluster.settled, WITHIN)
        began = time.process_time()
        cluster.world.run_for(idle)
        idled = time.process_time() - began
    finally:
        gc.enable()
    report = cluster.verdict()
    if report.verdict != "valid":
        raise UserError(f"the bench failed: the history is {report.verdict}: {[*report.failures[:1], *report.lacking[:1]]}")
    what = f"{NODES} simulated nodes"
    return [
        Figure("simulated-steps", f"{what} at work, steps a CPU second", steps / spent, "/s", limit=AIM_STEPS, limit_is="aim"),
        Figure("simulated-time", f"{what} idle, virtual a CPU second", idle / idled, "s", limit=AIM_SECONDS, limit_is="aim"),
    ]


def _at_work(cluster: SimulatedCluster, names: list[str], resizes: int) -> tuple[int, float]:
    """Clients resize, each as fast as it is answered: the steps of machines, and CPU seconds."""
    rng, world = random.Random(1), cluster.world
    clients = [Client(world, f"client/{number}") for number in range(2, CLIENTS + 2)]
    under_way: list[Pending] = []
    left = resizes

    def all_done() -> bool:
        nonlocal under_way, left
        under_way = [pending for pending in under_way if pending.response is None]
        while left and len(under_way) < CLIENTS:
            body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": rng.choice(SIZES)}}}]}}
            request = patch("pods", rng.choice(names), body, namespace="default", subresource="resize")
            under_way.append(clients[left % CLIENTS].begin(request))
            left -= 1
        return not under_way

    before, began = world.effects, time.process_time()
    cluster.until("all resizes are answered", all_done, WITHIN)
    return world.effects - before, time.process_time() - began
