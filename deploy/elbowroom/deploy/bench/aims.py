"""What elbowroom aims at on two processors, row by row as docs/performance.md has it: each figure beside its aim.

Clusters one after the other, so that all rows are of one run: ten nodes for the API server, 2,000 for pods and memory, 1,000 with
10,000 pods for resizes, and 100 beside 5,000 for what grows with the size. The load comes over HTTPS from one process, which takes
processor time from what it measures.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import uvloop

from elbowroom.client import BusClient, context_of
from elbowroom.deploy.bench import preempting, serving
from elbowroom.deploy.bench.clusters import Running
from elbowroom.deploy.bench.figures import Figure, percentile
from elbowroom.deploy.bench.gauge import Gauge
from elbowroom.deploy.bench.http import Connection
from elbowroom.deploy.bench.limits import zmq_fan_out_per_second
from elbowroom.deploy.bench.preempting import HIGH, LOW, PATCH, PODS, Wish, asked, fill, pod_on
from elbowroom.deploy.bench.watching import Pods, watching
from elbowroom.deploy.errors import UserError
from elbowroom.rpc import create, delete

DENSE = ("--kubelets-per-process", "1000")
PATIENCE_SECONDS = 600.0
WRITERS = 16
AIM = "aim"
QUIET_SECONDS, LEASE_SECONDS = 1.0, 10.0


def _aimed(name: str, what: str, value: float, unit: str, aim: float, *, more: bool = False, **details: float) -> Figure:
    told = {each.replace("_", " "): amount for each, amount in details.items()}
    return Figure(name, what, value, unit, more_is_better=more, limit=aim, limit_is=AIM, details=told)


# ---------------------------------------------------------------- the API server


async def api(cluster: Running, seconds: float = 4.0, readers: int = 100) -> list[Figure]:
    """Durable patches, write to watch, and fan-out, with nothing else going on."""
    patches = await _http_patches(cluster, seconds)
    (to_watch,) = await serving.write_to_watch(cluster)
    bus_patches, bus_to_watch = await serving.on_the_bus(cluster, WRITERS, seconds)
    rows = bus_patches.limit or 0.0
    return [
        _aimed(
            "aim-http-patches", f"durable patches over HTTP, {WRITERS} writers", patches, "/s", 2_500, more=True, raw_SQLite=rows
        ),
        _aimed(
            "aim-bus-patches", f"the same on the bus, {WRITERS} writers", bus_patches.value, "/s", 5_000, more=True, raw_SQLite=rows
        ),
        _aimed(
            "aim-bus-watch", "write to watch on the bus, p50", bus_to_watch.value, "ms", 1, p99_ms=bus_to_watch.details["p99 ms"]
        ),
        _aimed("aim-http-watch", "write to watch over HTTP, p50", to_watch.value, "ms", 3, p99_ms=to_watch.details["p99 ms"]),
        await _fan_out(cluster, readers),
    ]


async def _http_patches(cluster: Running, seconds: float) -> float:
    async with serving.pending_pods(cluster, WRITERS) as (lanes, names):
        until, began = time.perf_counter() + seconds, time.perf_counter()

        async def one(lane: Connection, name: str) -> int:
            done = 0
            while time.perf_counter() < until:
                body = {"metadata": {"annotations": {"bench": str(done)}}}
                await asked(lane, "PATCH", f"{PODS}/{name}", body, serving.MERGE)
                done += 1
            return done

        count = sum(await asyncio.gather(*(one(lane, name) for lane, name in zip(lanes, names, strict=True))))
        return count / (time.perf_counter() - began)


async def _fan_out(cluster: Running, readers: int, events: int = 500) -> Figure:
    """What waits is told to all readers (``aim``), and what comes is told as it comes."""
    raw = zmq_fan_out_per_second(cluster.scratch, readers)
    waiting = readers * events / await _told(cluster, readers, events, credit=0)
    coming = readers * events / await _told(cluster, readers, events, credit=events)
    what = f"fan-out to {readers} watches on the bus"
    return _aimed("aim-fan-out", what, waiting, "events/s", 200_000, more=True, as_written=coming, raw_ZeroMQ=raw)


async def _told(cluster: Running, readers: int, events: int, credit: int) -> float:
    """Seconds until each reader had so many events: after they were all written (no credit), or while they are."""
    async with BusClient("", cluster.bus) as client:
        made = await client.document(create("pods", serving.pending_pod("fan-out"), namespace="default"))
        command = [sys.executable, "-m", "elbowroom.deploy.bench.readers", cluster.bus, made["metadata"]["resourceVersion"]]
        command += ["fan-out", str(readers), str(events), str(credit)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stdout is not None
            await _line(process.stdout.readline, "ready")
            began = time.perf_counter()
            numbers = iter(range(events))

            async def write() -> None:
                for number in numbers:
                    await client.document(serving.annotated("fan-out", number))

            await asyncio.gather(*(write() for _ in range(WRITERS)))
            if not credit:
                began = time.perf_counter()
                process.stdin.write(b"go\n")
                process.stdin.flush()
            await _line(process.stdout.readline, "done")
            took = time.perf_counter() - began
            process.stdin.close()
        await client.document(delete("pods", "fan-out", namespace="default"))
    return took


async def _line(read: Callable[[], bytes], wanted: str) -> None:
    heard = await asyncio.wait_for(asyncio.to_thread(read), PATIENCE_SECONDS)
    if heard.strip() != wanted.encode():
        raise UserError(f"the bench failed: the readers said {heard!r} instead of {wanted}")


# ---------------------------------------------------------------- pods


def pods(nodes: int = 2_000, count: int = 3_000) -> list[Figure]:
    """Pods created over HTTPS until all run, bound by the scheduler, and what the whole cluster weighs then."""
    with Running(nodes, *DENSE) as cluster:
        return uvloop.run(_running(cluster, nodes, count))


async def _running(cluster: Running, nodes: int, count: int) -> list[Figure]:
    gauge, context = Gauge(cluster.supervisor_pid), context_of(cluster.kubeconfig)
    idle = gauge.weigh()
    lanes = [await Connection.open(context) for _ in range(WRITERS)]
    made = [serving.pending_pod(f"pod-{number}") for number in range(count)]
    for manifest in made:
        del manifest["spec"]["schedulerName"]
    async with watching(context) as seen:
        began = time.perf_counter()
        await fill(lanes, made, seen, PATIENCE_SECONDS)
        took = time.perf_counter() - began
    full = gauge.weigh()
    _close(lanes)
    spent = {f"{kind}, CPU ms a pod": 1000 * (full.cpu[kind] - idle.cpu.get(kind, 0.0)) / count for kind in full.cpu}
    all_idle, all_full = sum(idle.memory.values()), sum(full.memory.values())
    return [
        _aimed(f"aim-ready-{nodes}", f"{nodes:,} nodes Ready", nodes / cluster.seconds_to_ready, "nodes/s", 1_000, more=True),
        _aimed("aim-pods", f"pods created to Running, {nodes:,} nodes", count / took, "/s", 1_000, more=True, **spent),
        _aimed(
            "aim-memory",
            f"memory of everything, {nodes:,} nodes and {count:,} pods",
            all_full,
            "MiB",
            400,
            idle_MiB=all_idle,
            KiB_a_pod=1024 * (all_full - all_idle) / count,
        ),
    ]


# ---------------------------------------------------------------- resizes


def resizes(
    nodes: int = 1_000, pods_a_node: int = 10, paced: int = 1_000, stormed: int = 3_000, growing: int = 300
) -> list[Figure]:
    """On one cluster of full nodes: resizes for which there is room, paced and as fast as they go, then such as need a victim."""
    with Running(nodes, *DENSE, "--node-memory", f"{pods_a_node}Gi") as cluster:
        return uvloop.run(_resized(cluster, nodes, pods_a_node, paced, stormed, growing))


async def _resized(cluster: Running, nodes: int, pods_a_node: int, paced: int, stormed: int, growing: int) -> list[Figure]:
    context = context_of(cluster.kubeconfig)
    lanes = [await Connection.open(context) for _ in range(64)]
    for name, value in ((HIGH, 1000), (LOW, 1)):
        await asked(lanes[0], "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    wished = [Wish(1 + at * nodes // growing, 1) for at in range(growing)]
    high = [pod_on(wish.name, wish.node, HIGH, "1Gi") for wish in wished]
    chosen = {wish.node for wish in wished}
    low = [
        pod_on(f"low-{node}-{number}", node, LOW, "1Gi")
        for number in range(pods_a_node)
        for node in range(1, nodes + 1)
        if number or node not in chosen
    ]
    names = [manifest["metadata"]["name"] for manifest in low]
    async with watching(context) as seen:
        await fill(lanes[:WRITERS], [*high, *low], seen, PATIENCE_SECONDS)
        await _quiet(lanes[0], nodes)
        slow = await _paced(lanes, names[:paced], seen, 200.0)
        began = time.perf_counter()
        quick = await _each(lanes, names[-stormed:], seen)
        rate = len(quick) / (time.perf_counter() - began)
        first, rest = wished[: -(-growing // 8)], wished[-(-growing // 8) :]
        alone = [await preempting.episode(lanes[0], wish, seen, PATIENCE_SECONDS) for wish in first]
        spent, began = cluster.cpu_seconds(), time.perf_counter()
        storm = await preempting.at_once(lanes[:WRITERS], rest, seen, PATIENCE_SECONDS)
        took, after = time.perf_counter() - began, cluster.cpu_seconds()
        taken = len(high) + len(low) - len(seen.now)
    _close(lanes)
    cost = {f"{kind}, CPU ms an episode": 1000 * (after[kind] - spent.get(kind, 0.0)) / len(rest) for kind in after}
    at = f"{nodes:,} nodes, {len(high) + len(low):,} pods"
    victims: dict[str, float] = {"victims needed": growing, "victims taken": taken, "p50 ms": percentile(storm, 0.5)}
    return [
        _aimed("aim-resizes", f"resizes accepted and in force, {at}", rate, "/s", 1_500, more=True, p50_ms=percentile(quick, 0.5)),
        _aimed("aim-resize-p50", f"PATCH to in force at 200 a second, {at}, p50", percentile(slow, 0.5), "ms", 20),
        _aimed("aim-resize-p99", "the same, p99", percentile(slow, 0.99), "ms", 100),
        _aimed("aim-preemption", f"resizes that need a victim, {at}", len(rest) / took, "/s", 300, more=True, **victims, **cost),
        _aimed("aim-preemption-p50", "PATCH to in force by preemption, one by one, p50", percentile(alone, 0.5), "ms", 100),
    ]


async def _quiet(lane: Connection, nodes: int) -> None:
    """Until little more is written than the nodes' Leases: what the pods' start has left to say is said."""
    before, at = await _revision(lane), time.perf_counter()
    while True:
        await asyncio.sleep(QUIET_SECONDS)  # the span that is looked at
        after, now = await _revision(lane), time.perf_counter()
        if (after - before) / (now - at) <= 2 * nodes / LEASE_SECONDS:
            return
        before, at = after, now


async def _revision(lane: Connection) -> int:
    return int(msgspec.json.decode((await lane.request("GET", f"{PODS}?limit=1"))[1])["metadata"]["resourceVersion"])


async def _paced(lanes: Sequence[Connection], names: Sequence[str], seen: Pods, rate: float) -> list[float]:
    began = time.perf_counter()

    async def one(lane: int) -> list[float]:
        times = []
        for number in range(lane, len(names), len(lanes)):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            times.append(await _resize(lanes[lane], names[number], seen, "11m"))
        return times

    return [took for each in await asyncio.gather(*(one(lane) for lane in range(len(lanes)))) for took in each]


async def _each(lanes: Sequence[Connection], names: Sequence[str], seen: Pods) -> list[float]:
    waiting = iter(names)

    async def one(lane: Connection) -> list[float]:
        return [await _resize(lane, name, seen, "12m") for name in waiting]

    return [took for each in await asyncio.gather(*(one(lane) for lane in lanes)) for took in each]


async def _resize(lane: Connection, name: str, seen: Pods, cpu: str) -> float:
    body: dict[str, Any] = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
    began = time.perf_counter()
    await asked(lane, "PATCH", f"{PODS}/{name}/resize", body, PATCH)
    done = await seen.until(name, lambda pod: pod is not None and pod.actual("cpu") == cpu, PATIENCE_SECONDS)
    return 1000 * (done - began)


# ---------------------------------------------------------------- growth


def growth(small: int = 100, large: int = 5_000, episodes: int = 120) -> list[Figure]:
    """What a resize that needs victims costs all processes together, with so many nodes and with fifty times as many."""
    few, many = (_cost(nodes, episodes) for nodes in (small, large))
    what = f"CPU of an episode of preemption, {large:,} nodes instead of {small:,}"
    times = many[1] / few[1]
    return [
        _aimed(f"aim-ready-{large}", f"{large:,} nodes Ready", many[0], "s", large / 500),
        _aimed(
            "aim-growth", what, times, "times", 1.5, more=False, **{f"{small:,} nodes, ms": few[1], f"{large:,} nodes, ms": many[1]}
        ),
    ]


def _cost(nodes: int, episodes: int) -> tuple[float, float]:
    """Seconds until the nodes were Ready, and CPU ms an episode."""
    options = (*DENSE, "--node-memory", f"{preempting.NODE_GI}Gi")
    with Running(nodes, *options) as cluster:
        storm = uvloop.run(preempting.measured(cluster, nodes, preempting.wishes(nodes, episodes), 10))[1]
        return cluster.seconds_to_ready, sum(spent for what, spent in storm.details.items() if "CPU ms" in what)


def _close(lanes: Sequence[Connection]) -> None:
    for lane in lanes:
        lane.close()
