"""How fast pods are bound in the whole: a client, the API server, the bus and the scheduler as the processes that users run.

The nodes are objects without a kubelet, as in upstream's own scheduler_perf, and the controllers are away, which would find that
nobody answers for these nodes. Two rates are taken: pods that come as fast as a client creates them, and a backlog that the
scheduler finds when it comes. Times are the clock's; what a pod costs is the processes' own CPU time.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from elbowroom.client import context_of
from elbowroom.deploy.bench.clusters import Running
from elbowroom.deploy.bench.figures import Figure
from elbowroom.deploy.bench.http import Connection
from elbowroom.deploy.bench.limits import fdatasyncs_per_second, zmq_round_trip_ms
from elbowroom.deploy.errors import UserError

PODS = "/api/v1/namespaces/default/pods"
CONNECTIONS = 8
PATIENCE_SECONDS = 300.0
CREATED, BACKLOG = 1_000, 1_000
QUOTED = {5_000: {"upstream's floor, 1.36": 270.0, "upstream's floor, newer": 680.0}}
"""Pods a second that upstream's scheduler_perf wants of 5,000 nodes, as upstream states them."""


def of_size(nodes: int, created: int = CREATED, backlog: int = BACKLOG) -> list[Figure]:
    """Both rates with so many nodes, and the machine's limits in the same run."""
    with Running(nodes=0) as cluster:
        return uvloop.run(_measured(cluster, nodes, created, backlog))


async def _measured(cluster: Running, nodes: int, created: int, backlog: int) -> list[Figure]:
    limits = {
        "fdatasyncs/s": fdatasyncs_per_second(cluster.scratch),
        "raw ZeroMQ round trips/s": 1000 / zmq_round_trip_ms(cluster.scratch),
    }
    cluster.signal("controllers", "KILL", stay_dead=True)
    lanes = [await Connection.open(context_of(cluster.kubeconfig)) for _ in range(CONNECTIONS)]
    await _on_all(lanes, [_node_made(number) for number in range(nodes)])
    watch = await _Bound.open(cluster.kubeconfig, lanes[0])

    cpu = _CpuTime(cluster)
    began = time.perf_counter()
    await _on_all(lanes, [_pod_made(f"created-{number}") for number in range(created)])
    creating = time.perf_counter() - began
    took = await watch.all(created) - began
    spent = cpu.milliseconds_each(created)

    cluster.signal("scheduler", "STOP")
    await _on_all(lanes, [_pod_made(f"backlog-{number}") for number in range(backlog)])
    began = time.perf_counter()
    cluster.signal("scheduler", "CONT")
    drained = await watch.all(created + backlog) - began

    bound = await _count_bound(lanes[0])
    watch.close()
    for lane in lanes:
        lane.close()
    if bound != created + backlog:
        raise UserError(f"the bench failed: {bound} of {created + backlog} pods are bound")
    return [
        Figure(
            f"bound-{nodes}",
            f"pods created and bound, {nodes:,} nodes, end to end",
            created / took,
            "pods/s",
            more_is_better=True,
            limit=limits["fdatasyncs/s"],
            limit_is="fdatasync, one by one (writes share one)",
            details={"bound": float(created), "created/s": created / creating, **spent, **limits, **QUOTED.get(nodes, {})},
        ),
        Figure(
            f"backlog-{nodes}",
            f"pods of a backlog bound, {nodes:,} nodes, end to end",
            backlog / drained,
            "pods/s",
            more_is_better=True,
            limit=limits["raw ZeroMQ round trips/s"],
            limit_is="raw ZeroMQ round trips, one by one (bindings overlap)",
            details={"bound": float(backlog), **QUOTED.get(nodes, {})},
        ),
    ]


Request = Callable[[Connection], Awaitable[None]]


async def _on_all(lanes: Sequence[Connection], requests: Sequence[Request]) -> None:
    """Make the requests, as many at a time as there are connections."""

    async def one(lane: Connection, mine: Sequence[Request]) -> None:
        for request in mine:
            await request(lane)

    await asyncio.gather(*(one(lane, requests[number :: len(lanes)]) for number, lane in enumerate(lanes)))


async def _asked(lane: Connection, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
    status, raw = await lane.request(method, path, body, kind)
    if status >= 300:
        raise UserError(f"the bench failed: {method} {path}: {status} {raw.decode(errors='replace')[:300]}")
    return msgspec.json.decode(raw)


def _node_made(number: int) -> Request:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    name = f"node-{number}"
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }

    async def make(lane: Connection) -> None:
        await _asked(lane, "POST", "/api/v1/nodes", node)
        # A new node bears a taint until a controller has seen it Ready; ours are away.
        await _asked(lane, "PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, "application/merge-patch+json")

    return make


def _pod_made(name: str) -> Request:
    requests = {"cpu": "100m", "memory": "64Mi"}
    containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}

    async def make(lane: Connection) -> None:
        await _asked(lane, "POST", PODS, pod)

    return make


async def _count_bound(lane: Connection) -> int:
    return sum(1 for item in (await _asked(lane, "GET", PODS))["items"] if item["spec"].get("nodeName"))


class _Bound:
    """A watch that counts the pods with a node."""

    def __init__(self, connection: Connection, path: str) -> None:
        self._connection = connection
        self._names: set[str] = set()
        self._awaited = 0
        self._reached = asyncio.Event()
        self._reading = asyncio.create_task(self._read(path))

    @classmethod
    async def open(cls, kubeconfig: Path, lane: Connection) -> "_Bound":
        revision = (await _asked(lane, "GET", f"{PODS}?limit=1"))["metadata"]["resourceVersion"]
        return cls(await Connection.open(context_of(kubeconfig)), f"{PODS}?watch=1&resourceVersion={revision}")

    async def all(self, count: int) -> float:
        """When so many had a node."""
        self._awaited = count
        if len(self._names) < count:
            self._reached.clear()
            reached = asyncio.create_task(self._reached.wait())
            await asyncio.wait({reached, self._reading}, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            reached.cancel()
        if len(self._names) < count:
            raise UserError(f"the bench failed: {len(self._names)} of {count} pods were seen bound in {PATIENCE_SECONDS:.0f} s")
        return time.perf_counter()

    def close(self) -> None:
        self._reading.cancel()
        self._connection.close()

    async def _read(self, path: str) -> None:
        async for _, document in self._connection.watch(path):
            if document["spec"].get("nodeName"):
                self._names.add(document["metadata"]["name"])
                if len(self._names) >= self._awaited:
                    self._reached.set()


class _CpuTime:
    """What the control plane's processes spent since now."""

    def __init__(self, cluster: Running) -> None:
        pids = {each["name"]: each["pid"] for each in cluster.status()["components"]}
        self._pids = {"API server": pids["apiserver"], "scheduler": pids["scheduler"]}
        self._before = dict(self._read())

    def milliseconds_each(self, count: int) -> dict[str, float]:
        return {f"{name}, CPU ms a pod": 1000 * (spent - self._before[name]) / count for name, spent in self._read()}

    def _read(self) -> Iterator[tuple[str, float]]:
        ticks = os.sysconf("SC_CLK_TCK")
        for name, pid in self._pids.items():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            yield name, (int(fields[11]) + int(fields[12])) / ticks
