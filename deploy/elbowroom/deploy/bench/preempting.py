"""Resizes that need victims, on clusters of many full nodes: the benchmark of docs/resize-preemption-benchmark.md, end to end.

Every node is full of pods of low priority. On some there is one of high priority as well, which is resized so that one or two of
its neighbours must go. An episode is from the PATCH sent until a watch shows the resize in force.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import uvloop

from elbowroom.client import context_of
from elbowroom.deploy.bench.clusters import Running
from elbowroom.deploy.bench.figures import Figure, percentile
from elbowroom.deploy.bench.http import Connection
from elbowroom.deploy.bench.limits import fdatasyncs_per_second, zmq_round_trip_ms
from elbowroom.deploy.bench.watching import Pods, watching
from elbowroom.deploy.errors import UserError

PODS = "/api/v1/namespaces/default/pods"
PATCH = "application/strategic-merge-patch+json"
HIGH, LOW = "bench-high", "bench-low"
NODE_GI, NEIGHBOURS = 4, 3
EPISODES, ALONE, LANES, CONNECTIONS = 200, 40, 16, 8
PATIENCE_SECONDS, PATIENCE_SECONDS_A_POD = 60.0, 0.1


@dataclass(frozen=True, slots=True)
class Wish:
    """The pod of high priority on a node, and for how many victims' room it will ask."""

    node: int
    victims: int

    @property
    def name(self) -> str:
        return f"high-{self.node}"

    @property
    def memory(self) -> str:
        return f"{1 + self.victims}Gi"

    @property
    def neighbours(self) -> list[str]:
        return [f"low-{self.node}-{number}" for number in range(NEIGHBOURS)]


def wishes(nodes: int, episodes: int) -> list[Wish]:
    """One a node, spread over all of them; in turn for one victim and for two."""
    count = min(nodes, episodes)
    return [Wish(1 + at * nodes // count, 1 + at % 2) for at in range(count)]


def manifests(nodes: int, wished: Sequence[Wish]) -> list[dict[str, Any]]:
    """The pods that fill the nodes. They are bound when they are made: filling is no part of the benchmark."""
    by_node = {wish.node: wish for wish in wished}
    made = []
    for node in range(1, nodes + 1):
        wish = by_node.get(node)
        if wish is None:
            made.append(pod_on(f"fill-{node}", node, LOW, f"{NODE_GI}Gi"))
        else:
            made += [pod_on(wish.name, node, HIGH, "1Gi"), *(pod_on(name, node, LOW, "1Gi") for name in wish.neighbours)]
    return made


def of_size(nodes: int, episodes: int = EPISODES, alone: int = ALONE) -> list[Figure]:
    """The figures with so many nodes: ``alone`` episodes one after the other, then the rest, sixteen at a time."""
    options = ("--kubelets-per-process", "1000", "--node-memory", f"{NODE_GI}Gi")
    with Running(nodes, *options) as cluster:
        return uvloop.run(measured(cluster, nodes, wishes(nodes, episodes), alone))


async def measured(cluster: Running, nodes: int, wished: list[Wish], alone: int) -> list[Figure]:
    """Both phases on a cluster of empty nodes."""
    round_trip, syncs = zmq_round_trip_ms(cluster.scratch), fdatasyncs_per_second(cluster.scratch)
    context = context_of(cluster.kubeconfig)
    lanes = [await Connection.open(context) for _ in range(LANES)]
    for name, value in ((HIGH, 1000), (LOW, 1)):
        await asked(lanes[0], "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    async with watching(context) as pods:
        made = manifests(nodes, wished)
        patience = PATIENCE_SECONDS + PATIENCE_SECONDS_A_POD * len(made)
        await fill(lanes[:CONNECTIONS], made, pods, patience)
        first, rest = wished[: min(alone, len(wished) // 2)], wished[min(alone, len(wished) // 2) :]
        slow = [await episode(lanes[0], wish, pods, patience) for wish in first]
        spent, began = cluster.cpu_seconds(), time.perf_counter()
        quick = await at_once(lanes, rest, pods, patience)
        took, after = time.perf_counter() - began, cluster.cpu_seconds()
        taken = sum(name not in pods.now for wish in wished for name in wish.neighbours)
    for lane in lanes:
        lane.close()
    needed = sum(wish.victims for wish in wished)
    cost = {f"{kind}, CPU ms an episode": 1000 * (after[kind] - spent[kind]) / len(rest) for kind in after}
    return [
        Figure(
            f"preemption-alone-{nodes}",
            f"PATCH to in force by preemption, one by one, {nodes:,} full nodes, p50",
            percentile(slow, 0.5),
            "ms",
            limit=round_trip,
            limit_is="one round trip of raw ZeroMQ",
            details={"p99 ms": percentile(slow, 0.99), "episodes": float(len(slow))},
        ),
        Figure(
            f"preemption-storm-{nodes}",
            f"resizes that need victims, {LANES} at once, {nodes:,} full nodes",
            len(rest) / took,
            "episodes/s",
            more_is_better=True,
            limit=syncs,
            limit_is="fdatasync, one by one (an episode makes about ten durable writes, which share one)",
            details={
                "p50 ms": percentile(quick, 0.5),
                "p99 ms": percentile(quick, 0.99),
                "episodes": float(len(rest)),
                "victims needed": float(needed),
                "victims taken": float(taken),
                **cost,
            },
        ),
    ]


async def fill(lanes: Sequence[Connection], made: Sequence[dict[str, Any]], pods: Pods, patience: float) -> None:
    """Create the pods; returns once all run."""

    async def one(lane: int) -> None:
        for manifest in made[lane :: len(lanes)]:
            await asked(lanes[lane], "POST", PODS, manifest)

    await asyncio.gather(*(one(lane) for lane in range(len(lanes))))
    names = [manifest["metadata"]["name"] for manifest in made]
    await pods.all_until(names, lambda pod: pod is not None and pod.is_running, patience)


async def filled(lanes: Sequence[Connection], nodes: int, pods: Pods) -> None:
    """Fill so many nodes with a pod each; returns once all run."""
    await asked(lanes[0], "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": LOW}, "value": 1})
    await fill(lanes, manifests(nodes, []), pods, PATIENCE_SECONDS + PATIENCE_SECONDS_A_POD * nodes)


async def at_once(lanes: Sequence[Connection], rest: Sequence[Wish], pods: Pods, patience: float) -> list[float]:
    """An episode for each, as many at a time as there are connections."""

    async def one(lane: int) -> list[float]:
        return [await episode(lanes[lane], wish, pods, patience) for wish in rest[lane :: len(lanes)]]

    return [took for each in await asyncio.gather(*(one(lane) for lane in range(len(lanes)))) for took in each]


async def episode(lane: Connection, wish: Wish, pods: Pods, patience: float) -> float:
    """Milliseconds from the PATCH sent until a watch shows what it asked for."""
    body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"memory": wish.memory}}}]}}
    began = time.perf_counter()
    await asked(lane, "PATCH", f"{PODS}/{wish.name}/resize", body, PATCH)
    done = await pods.until(wish.name, lambda pod: pod is not None and pod.actual("memory") == wish.memory, patience)
    return 1000 * (done - began)


async def asked(lane: Connection, method: str, path: str, body: Any, kind: str = "application/json") -> None:
    """A request that is to succeed."""
    status, raw = await lane.request(method, path, body, kind)
    if status >= 300:
        raise UserError(f"the bench failed: {method} {path}: {status} {raw.decode(errors='replace')[:300]}")


def pod_on(name: str, node: int, priority: str, memory: str) -> dict[str, Any]:
    """A pod that is bound when it is made."""
    requests = {"cpu": "10m", "memory": memory}
    containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}]
    spec = {
        "nodeName": f"node-{node}",
        "priorityClassName": priority,
        "terminationGracePeriodSeconds": 0,
        "containers": containers,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
