"""How each figure is taken: from outside, over HTTPS, on a cluster brought up for it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from elbowroom.client import Context, context_of
from elbowroom.deploy.bench.clusters import Other, Running
from elbowroom.deploy.bench.decision import cpu_decisions_per_second, pass_seconds
from elbowroom.deploy.bench.figures import Figure, percentile
from elbowroom.deploy.bench.http import Connection
from elbowroom.deploy.bench.limits import children, fdatasyncs_per_second, pss_mib, zmq_round_trip_ms
from elbowroom.deploy.bench.loading import generated
from elbowroom.deploy.errors import UserError

PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
PATIENCE_SECONDS = 60.0

PEER_READY_SECONDS = 4.0
PEER_PODS_PER_SECOND = 70.0
PEER_RESIZES_PER_SECOND = 147.0
PEER_RESIZE_MS, PEER_RESIZE_P99_MS = 25.0, 50.0
PEER_NODE_MIB = 97.0 + 70.0
PEER_APISERVER_MIB = 330.0


# ---------------------------------------------------------------- nodes


def nodes_ready(count: int) -> list[Figure]:
    """Time until all nodes are Ready, from the command's start; and what the processes weigh then."""
    with Running(nodes=count) as cluster:
        pids = children(cluster.supervisor_pid)
        everything = sum(map(pss_mib, pids))
        components = cluster.status()["components"]
        apiserver = next(pss_mib(c["pid"]) for c in components if c["name"] == "apiserver")
        of_nodes = sum(pss_mib(c["pid"]) for c in components if c["kind"] in ("kubelet", "runtime"))
        figures = [
            Figure(
                f"nodes-ready-{count}",
                f"{count} nodes Ready ({2 * count} node processes)",
                cluster.seconds_to_ready,
                "s",
                PEER_READY_SECONDS if count == 10 else None,
            ),
            Figure(
                f"memory-node-{count}",
                f"a node (kubelet and runtime) of {count}, PSS",
                of_nodes / count,
                "MiB",
                PEER_NODE_MIB if count == 10 else None,
                details={"all processes MiB": everything},
            ),
        ]
        if count == 10:
            figures.append(Figure("memory-apiserver", "the API server, PSS", apiserver, "MiB", PEER_APISERVER_MIB))
        return figures


# ---------------------------------------------------------------- pods


def pod(
    name: str, node: str = "", *, cpu: str = "100m", memory: str = "64Mi", priority: str = "", grace: int = 0
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": grace,
        "containers": [
            {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        ],
    }
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    if priority:
        spec["priorityClassName"] = priority
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


class Bench:
    """Connections to one cluster, and a watch of its pods."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def connect(self) -> None:
        self.http = await Connection.open(self._context)

    async def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> dict[str, Any]:
        """A request that is to succeed."""
        status, raw = await self.http.request(method, path, body, kind)
        if status >= 300:
            raise UserError(f"the bench failed: {method} {path}: {status} {raw.decode(errors='replace')[:300]}")
        document: dict[str, Any] = msgspec.json.decode(raw)
        return document

    async def resize(self, name: str, **resources: str) -> float:
        """Ask for a resize; when the PATCH was sent."""
        body = {"spec": {"containers": [{"name": "main", "resources": {"requests": resources}}]}}
        began = time.perf_counter()
        await self.ask("PATCH", f"{PODS}/{name}/resize", body, STRATEGIC)
        return began

    @asynccontextmanager
    async def watching(self) -> AsyncIterator["Seen"]:
        """All pods' changes from now on."""
        revision = (await self.ask("GET", f"{PODS}?limit=1"))["metadata"]["resourceVersion"]
        connection = await Connection.open(self._context)
        seen = Seen()
        reading = asyncio.create_task(seen.read(connection, f"{PODS}?watch=1&resourceVersion={revision}"))
        try:
            yield seen
        finally:
            reading.cancel()
            connection.close()

    async def run_pods(self, manifests: list[dict[str, Any]], seen: "Seen", connections: int = 1) -> None:
        """Create pods over so many connections; returns once all run."""
        lanes = [await Connection.open(self._context) for _ in range(connections)]

        async def one(lane: int) -> None:
            for manifest in manifests[lane::connections]:
                status, raw = await lanes[lane].request("POST", PODS, manifest)
                if status != 201:
                    raise UserError(f"the bench failed: creating a pod: {status} {raw.decode(errors='replace')[:300]}")

        await asyncio.gather(*(one(lane) for lane in range(connections)))
        names = {manifest["metadata"]["name"] for manifest in manifests}
        await seen.until(lambda pods: all(is_running(pods.get(name)) for name in names))
        for lane in lanes:
            lane.close()


class Seen:
    """The pods as a watch shows them, and when each change came."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self._news = asyncio.Condition()
        self._failure: BaseException | None = None

    async def read(self, connection: Connection, path: str) -> None:
        try:
            async for kind, document in connection.watch(path):
                name = document["metadata"]["name"]
                async with self._news:
                    if kind == "DELETED":
                        self.pods.pop(name, None)
                    else:
                        self.pods[name] = document
                    self._news.notify_all()
        except Exception as why:
            async with self._news:
                self._failure = why
                self._news.notify_all()

    async def until(self, fact: Callable[[dict[str, dict[str, Any]]], bool]) -> float:
        """When ``fact`` came to hold."""

        def settled() -> bool:
            return self._failure is not None or fact(self.pods)

        async with self._news:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._news.wait_for(settled)
            except TimeoutError as why:
                raise UserError(f"the bench failed: nothing more came within {PATIENCE_SECONDS:.0f} s") from why
        if self._failure is not None:
            raise UserError(f"the bench failed: the watch broke: {self._failure}")
        return time.perf_counter()


def is_running(document: dict[str, Any] | None) -> bool:
    return document is not None and document.get("status", {}).get("phase") == "Running"


def actual(document: dict[str, Any] | None, resource: str) -> str | None:
    """What ``main`` has of a resource, by its status."""
    statuses = (document or {}).get("status", {}).get("containerStatuses", [])
    found = (statuses[0].get("resources") or {}).get("requests", {}).get(resource) if statuses else None
    return None if found is None else str(found)


def is_deferred(document: dict[str, Any] | None) -> bool:
    conditions = (document or {}).get("status", {}).get("conditions", [])
    return any(c["type"] == "PodResizePending" and c.get("reason") == "Deferred" for c in conditions)


# ---------------------------------------------------------------- figures about pods


async def resize_latency(cluster: Running | Other, trials: int = 200) -> list[Figure]:
    """PATCH of resize sent, until a watch shows the container's new resources; nothing else going on."""
    bench = await _bench(cluster)
    round_trip = zmq_round_trip_ms(cluster.scratch)
    async with bench.watching() as seen:
        await bench.run_pods([pod("latency")], seen)
        times = []
        for number in range(trials):
            cpu = f"{101 + number % 2}m"
            began = await bench.resize("latency", cpu=cpu)
            times.append(1000 * (await seen.until(lambda pods, cpu=cpu: actual(pods.get("latency"), "cpu") == cpu) - began))  # type: ignore[misc]
    await bench.ask("DELETE", f"{PODS}/latency")
    limit = {"limit": round_trip, "limit_is": "one round trip of raw ZeroMQ"}
    return [
        Figure("resize-p50", "PATCH resize to status.resources, p50", percentile(times, 0.5), "ms", PEER_RESIZE_MS, **limit),  # type: ignore[arg-type]
        Figure("resize-p99", "PATCH resize to status.resources, p99", percentile(times, 0.99), "ms", PEER_RESIZE_P99_MS),
    ]


async def preemption_latency(cluster: Running, trials: int = 30) -> list[Figure]:
    """A resize seen Deferred, until it is in force because a pod without grace was evicted for it."""
    bench = await _bench(cluster)
    for name, value in (("bench-high", 1000), ("bench-low", 1)):
        await bench.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    waits, totals = [], []
    async with bench.watching() as seen:
        await bench.run_pods([pod("vip", "node-1", memory="1Gi", priority="bench-high")], seen)
        for number in range(trials):
            await bench.run_pods([pod(f"victim-{number}", "node-1", memory="12Gi", priority="bench-low")], seen)
            began = await bench.resize("vip", memory="8Gi")
            deferred = await seen.until(lambda pods: is_deferred(pods.get("vip")) or actual(pods.get("vip"), "memory") == "8Gi")
            done = await seen.until(lambda pods: actual(pods.get("vip"), "memory") == "8Gi")
            waits.append(1000 * (done - deferred))
            totals.append(1000 * (done - began))
            await bench.resize("vip", memory="1Gi")
            await seen.until(lambda pods: actual(pods.get("vip"), "memory") == "1Gi" and list(pods) == ["vip"])
    await bench.ask("DELETE", f"{PODS}/vip")
    details = {"PATCH to in force, p50 ms": percentile(totals, 0.5)}
    return [
        Figure("preemption-p50", "Deferred to in force by preemption, p50", percentile(waits, 0.5), "ms", details=details),
        Figure("preemption-p99", "Deferred to in force by preemption, p99", percentile(waits, 0.99), "ms"),
    ]


async def resize_rate(cluster: Running | Other, clients: int = 16, seconds: float = 5.0) -> list[Figure]:
    """Resize patches acknowledged (durably) a second, 16 clients in processes of their own, the nodes at work on them meanwhile."""
    bench = await _bench(cluster)
    fdatasyncs = fdatasyncs_per_second(cluster.scratch)
    names = [f"load-{number}" for number in range(clients)]
    async with bench.watching() as seen:
        await bench.run_pods([pod(name) for name in names], seen, connections=4)
    load = generated(cluster.kubeconfig, "resize", names, seconds=seconds)
    for name in names:
        await bench.ask("DELETE", f"{PODS}/{name}")
    return [
        Figure(
            "resize-rate",
            f"resize patches acknowledged, {clients} HTTPS clients",
            load.rate,
            "/s",
            PEER_RESIZES_PER_SECOND,
            more_is_better=True,
            limit=fdatasyncs,
            limit_is="fdatasync, one by one (writes share one)",
            details={"p50 ms": percentile(load.times, 0.5), "p99 ms": percentile(load.times, 0.99)},
        )
    ]


async def pod_rate(cluster: Running | Other, count: int = 300) -> list[Figure]:
    """Pods a second from the first create until all are seen Running, on ten nodes."""
    bench = await _bench(cluster)
    names = [f"pod-{number}" for number in range(count)]
    async with bench.watching() as seen:
        began = time.perf_counter()
        await bench.run_pods([pod(name, cpu="10m", memory="8Mi") for name in names], seen, connections=8)
        took = time.perf_counter() - began
    for name in names:
        await bench.ask("DELETE", f"{PODS}/{name}")
    return [
        Figure(
            "pod-rate",
            f"{count} pods created and Running",
            count / took,
            "/s",
            PEER_PODS_PER_SECOND,
            more_is_better=True,
        )
    ]


GROWTH = (10, 100, 1000)
PASS_MS = 50.0


def decision_time(running: int = 250, pending: int = 100) -> list[Figure]:
    """How long a kubelet takes to judge one pending resize when 100 of its 250 pods wait, and a whole pass as more of them wait."""
    each = [1000 * took / pending for took in pass_seconds(running, pending, passes=20)]
    what = f"a kubelet judges a pending resize ({running} pods, {pending} pending)"
    judged = Figure("decision", what, percentile(each, 0.5), "ms", details={"worst pass ms": max(each) * pending})
    return [judged, *(_pass_time(count) for count in GROWTH)]


def _pass_time(pending: int) -> Figure:
    took = [1000 * seconds for seconds in pass_seconds(max(250, pending), pending, passes=20 if pending < 1000 else 5)]
    what = f"a pass over {pending} pending resizes"
    limit, limit_is = (PASS_MS, "what a pass over 100 may take") if pending == 100 else (None, "")
    return Figure(
        f"pass-{pending}", what, percentile(took, 0.5), "ms", limit=limit, limit_is=limit_is, details={"worst ms": max(took)}
    )


def cpu_decisions(decisions: int = 3000) -> list[Figure]:
    """How fast exclusive CPUs are chosen on a machine with 128 of them."""
    packed, spread = (cpu_decisions_per_second(decisions, distributed=distributed) for distributed in (False, True))
    what = "the static CPU policy gives or takes back CPUs (2 sockets, 128 CPUs)"
    return [Figure("cpu-decisions", what, packed, "/s", more_is_better=True, details={"across NUMA /s": spread})]


async def _bench(cluster: Running | Other) -> Bench:
    bench = Bench(context_of(cluster.kubeconfig))
    await bench.connect()
    return bench
