"""How the API server answers: reads, lists, watches, durable writes, over HTTP and on the bus, each beside what the raw thing does.

All of it but the bus works on any API server (``--against``): the pods ask for a scheduler that is not there, so they stay pending.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.api.objects import Pod
from elbowroom.client import BusClient, context_of
from elbowroom.deploy.bench.clusters import Other, Running
from elbowroom.deploy.bench.figures import Figure, percentile
from elbowroom.deploy.bench.http import Connection
from elbowroom.deploy.bench.limits import pss_mib, sqlite_rows_per_second, zmq_fan_out_per_second, zmq_round_trip_ms
from elbowroom.deploy.errors import UserError
from elbowroom.rpc import MERGE_PATCH, create, delete, patch

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
CONNECTIONS = 16
PATIENCE_SECONDS = 60.0
SELECTOR = "bench=serving"


def pending_pod(name: str) -> dict[str, Any]:
    """A pod that nobody schedules."""
    requests = {"cpu": "10m", "memory": "8Mi"}
    containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}]
    spec = {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0, "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"bench": "serving"}}, "spec": spec}


# ---------------------------------------------------------------- reads


async def get_pod(cluster: Running | Other, requests: int = 1000) -> list[Figure]:
    """GET of a pod, one after the other on one connection."""
    async with pending_pods(cluster, 1) as (lanes, names):
        times, size = [], 0
        for _ in range(requests):
            took, raw = await _timed(lanes[0], "GET", f"{PODS}/{names[0]}")
            times.append(took)
            size = len(raw)
    raw_ms = await _bare_ms(size, requests)
    return [
        Figure(
            "get-pod-p50",
            "GET of a pod, one by one, p50",
            percentile(times, 0.5),
            "ms",
            limit=raw_ms,
            limit_is="uvicorn with bytes that lie ready, without TLS",
            details={"p99 ms": percentile(times, 0.99), "bytes": float(size)},
        )
    ]


async def list_pods(cluster: Running | Other, count: int = 5000, lists: int = 20) -> list[Figure]:
    """LIST of many pods, and of them in pages of 500."""
    async with pending_pods(cluster, count) as (lanes, _):
        times, size = [], 0
        for _ in range(lists):
            took, raw = await _timed(lanes[0], "GET", PODS)
            times.append(took)
            size = len(raw)
        began, token, pages = time.perf_counter(), "", 0
        while pages == 0 or token:
            _, raw = await _timed(lanes[0], "GET", f"{PODS}?limit=500{f'&continue={token}' if token else ''}")
            token = msgspec.json.decode(raw)["metadata"].get("continue", "")
            pages += 1
        paged = 1000 * (time.perf_counter() - began)
    return [
        Figure(
            f"list-{count}",
            f"LIST of {count:,} pods, p50",
            percentile(times, 0.5),
            "ms",
            limit=await _bare_ms(size, lists),
            limit_is="uvicorn with as many bytes that lie ready, without TLS",
            details={"p99 ms": percentile(times, 0.99), "MB": size / 1e6, "in pages of 500 ms": paged},
        )
    ]


# ---------------------------------------------------------------- watches


async def write_to_watch(cluster: Running | Other, trials: int = 300) -> list[Figure]:
    """A PATCH sent until a watch of all pods tells of it, over HTTP; nothing else going on."""
    async with pending_pods(cluster, 1) as (lanes, names), _watchers(cluster, [""]) as watchers:
        times = [await _told(lanes[0], names[0], number, watchers) for number in range(trials)]
    return [
        Figure(
            "write-to-watch-p50",
            "PATCH sent to event of a watch, over HTTP, p50",
            percentile(times, 0.5),
            "ms",
            limit=1000 / sqlite_rows_per_second(cluster.scratch, 1),
            limit_is="one durable row of raw SQLite",
            details={"p99 ms": percentile(times, 0.99)},
        )
    ]


async def fan_out(cluster: Running | Other, readers: int = 100, trials: int = 50) -> list[Figure]:
    """A PATCH sent until the last of many watches of all pods has told of it; the client decodes nothing but revisions."""
    async with pending_pods(cluster, 1) as (lanes, names), _watchers(cluster, [""] * readers) as watchers:
        times = [await _told(lanes[0], names[0], number, watchers) for number in range(trials)]
    return [
        Figure(
            f"fan-out-{readers}",
            f"PATCH sent until {readers} watches over HTTP told of it, p50",
            percentile(times, 0.5),
            "ms",
            limit=1000 * readers / zmq_fan_out_per_second(cluster.scratch, readers),
            limit_is=f"raw ZeroMQ to {readers} readers",
            details={"p99 ms": percentile(times, 0.99), "events/s": 1000 * readers / percentile(times, 0.5)},
        )
    ]


async def many_watchers(cluster: Running | Other, readers: int = 500, rate: int = 200, seconds: float = 5.0) -> list[Figure]:
    """Many watches, each of a pod of its own, while so many changes a second are made: how late each is told."""
    selectors = [f"&fieldSelector=metadata.name%3D{_name(number)}" for number in range(readers)]
    async with pending_pods(cluster, readers) as (lanes, names), AsyncExitStack() as stack:
        light = _api_server_kib(cluster)
        watchers = await stack.enter_async_context(_watchers(cluster, selectors))
        began = time.perf_counter()

        async def one(lane: int) -> list[float]:
            times = []
            for number in range(lane, int(rate * seconds), len(lanes)):
                await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
                place = number % readers
                times.append(await _told(lanes[lane], names[place], number, [watchers[place]]))
            return times

        times = [took for each in await asyncio.gather(*(one(lane) for lane in range(len(lanes)))) for took in each]
        took = time.perf_counter() - began
        heard = sum(watcher.events for watcher in watchers)
        weight = {} if light is None else {"API server's KiB a watch": ((_api_server_kib(cluster) or light) - light) / readers}
    return [
        Figure(
            f"watchers-{readers}",
            f"PATCH sent to event, {readers} watches of a pod each, {rate} changes/s asked for, p50",
            percentile(times, 0.5),
            "ms",
            details={
                "p99 ms": percentile(times, 0.99),
                "changes/s": len(times) / took,
                "missed": float(len(times) - heard),
                **weight,
            },
        )
    ]


def _api_server_kib(cluster: Running | Other) -> float | None:
    """What a cluster of ours has its API server weigh; None of another's, of which that is not known."""
    return 1024 * pss_mib(cluster.pid("apiserver")) if isinstance(cluster, Running) else None


# ---------------------------------------------------------------- the bus


async def on_the_bus(cluster: Running, writers: int = 16, seconds: float = 3.0, trials: int = 300) -> list[Figure]:
    """Durable patches by so many writers on the bus, and a write until a reader there hears of it."""
    names = [f"bus-{number}" for number in range(writers)]
    async with BusClient("", cluster.bus) as client:
        for name in names:
            await client.document(create("pods", pending_pod(name), namespace="default"))
        until, count = time.perf_counter() + seconds, 0

        async def write(name: str) -> int:
            done = 0
            while time.perf_counter() < until:
                await client.document(annotated(name, done))
                done += 1
            return done

        count = sum(await asyncio.gather(*(write(name) for name in names)))
        times = await _bus_latency(client, names[0], trials)
        for name in names:
            await client.document(delete("pods", name, namespace="default"))
    return [
        Figure(
            "bus-patches",
            f"durable patches, {writers} writers on the bus",
            count / seconds,
            "/s",
            more_is_better=True,
            limit=sqlite_rows_per_second(cluster.scratch, writers),
            limit_is=f"raw SQLite, {writers} rows to a commit",
        ),
        Figure(
            "bus-write-to-watch-p50",
            "write to event of a stream, on the bus, p50",
            percentile(times, 0.5),
            "ms",
            limit=zmq_round_trip_ms(cluster.scratch),
            limit_is="one round trip of raw ZeroMQ",
            details={"p99 ms": percentile(times, 0.99)},
        ),
    ]


async def _bus_latency(client: BusClient, name: str, trials: int) -> list[float]:
    times: list[float] = []
    changes = client.watch("pods", Pod, namespace="default", query={"fieldSelector": f"metadata.name={name}"})
    await anext(changes)
    for number in range(trials):
        began = time.perf_counter()
        writing = asyncio.ensure_future(client.document(annotated(name, f"w{number}")))
        await anext(changes)
        times.append(1000 * (time.perf_counter() - began))
        await writing
    await changes.aclose()  # type: ignore[attr-defined]
    return times


def annotated(name: str, value: object) -> Any:
    """The request that writes ``value`` into a pod's annotation."""
    body = {"metadata": {"annotations": {"bench": str(value)}}}
    return patch("pods", name, body, namespace="default", kind=MERGE_PATCH)


def decoding(times: int = 20_000) -> list[Figure]:
    """How fast a pod's document becomes a view, from the JSON that travels, beside msgpack."""
    document = pending_pod("codec")
    text, packed = msgspec.json.encode(document), msgspec.msgpack.encode(document)
    from_text, from_packed = (
        _each_second(msgspec.json.Decoder(Pod).decode, text, times),
        _each_second(msgspec.msgpack.Decoder(Pod).decode, packed, times),
    )
    return [
        Figure(
            "decode-pod",
            "a pod's JSON decoded into a view",
            from_text,
            "/s",
            more_is_better=True,
            limit=from_packed,
            limit_is="the same as msgpack",
        )
    ]


def _each_second(decode: Callable[[bytes], object], raw: bytes, times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        decode(raw)
    return times / (time.process_time() - began)


# ---------------------------------------------------------------- props


def _name(number: int) -> str:
    return f"serving-{number}"


@asynccontextmanager
async def pending_pods(cluster: Running | Other, count: int) -> AsyncIterator[tuple[list[Connection], list[str]]]:
    """So many pods, and connections; they are gone afterwards."""
    context = context_of(cluster.kubeconfig)
    lanes = [await Connection.open(context) for _ in range(CONNECTIONS)]
    names = [_name(number) for number in range(count)]

    async def make(lane: int) -> None:
        for name in names[lane :: len(lanes)]:
            await _timed(lanes[lane], "POST", PODS, pending_pod(name))

    await asyncio.gather(*(make(lane) for lane in range(len(lanes))))
    try:
        yield lanes, names
    finally:
        await _timed(lanes[0], "DELETE", f"{PODS}?labelSelector={SELECTOR.replace('=', '%3D')}")
        for lane in lanes:
            lane.close()


class _Watcher:
    """One watch over HTTP, and which values of the annotation it has told of."""

    def __init__(self) -> None:
        self.events = 0
        self._waiting: dict[bytes, asyncio.Event] = {}

    def expect(self, value: bytes) -> asyncio.Event:
        """Set once an event tells of ``value``."""
        return self._waiting.setdefault(value, asyncio.Event())

    async def read(self, connection: Connection, path: str) -> None:
        async for line in connection.lines(path):
            start = line.find(b'"bench":"v') + len(b'"bench":"')
            value = line[start : line.find(b'"', start)]
            if (waiting := self._waiting.pop(value, None)) is not None:
                self.events += 1
                waiting.set()


@asynccontextmanager
async def _watchers(cluster: Running | Other, selectors: Sequence[str]) -> AsyncIterator[list[_Watcher]]:
    """A watch of the pods for each selector, from now on."""
    context = context_of(cluster.kubeconfig)
    asking = await Connection.open(context)
    _, raw = await _timed(asking, "GET", f"{PODS}?limit=1")
    asking.close()
    revision = msgspec.json.decode(raw)["metadata"]["resourceVersion"]
    async with AsyncExitStack() as stack:
        watchers = []
        for selector in selectors:
            connection, watcher = await Connection.open(context), _Watcher()
            stack.callback(connection.close)
            reading = asyncio.create_task(watcher.read(connection, f"{PODS}?watch=1&resourceVersion={revision}{selector}"))
            stack.callback(reading.cancel)
            watchers.append(watcher)
        yield watchers


async def _told(lane: Connection, name: str, number: int, watchers: Sequence[_Watcher]) -> float:
    """Milliseconds from a PATCH sent until all of these watchers told of it."""
    value = f"v{number}"
    expected = [watcher.expect(value.encode()) for watcher in watchers]
    began = time.perf_counter()
    writing = asyncio.ensure_future(_timed(lane, "PATCH", f"{PODS}/{name}", {"metadata": {"annotations": {"bench": value}}}, MERGE))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            for event in expected:
                await event.wait()
    except TimeoutError as why:
        raise UserError(f"the bench failed: a watch missed a change for {PATIENCE_SECONDS:.0f} s") from why
    took = 1000 * (time.perf_counter() - began)
    await writing
    return took


async def _timed(lane: Connection, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[float, bytes]:
    """A request that is to succeed: its milliseconds, and the answer."""
    began = time.perf_counter()
    status, raw = await lane.request(method, path, body, kind)
    took = 1000 * (time.perf_counter() - began)
    if status >= 300:
        raise UserError(f"the bench failed: {method} {path}: {status} {raw.decode(errors='replace')[:300]}")
    return took, raw


async def _bare_ms(size: int, requests: int) -> float:
    """The median of requests to a server that does nothing, for as many bytes."""
    command = [sys.executable, "-m", "elbowroom.deploy.bench.bare"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()) as process:
        assert process.stdout is not None and process.stdin is not None
        port = int(await asyncio.to_thread(process.stdout.readline))
        reader, writer = await _retried(lambda: asyncio.open_connection("127.0.0.1", port, limit=1 << 24))
        lane = Connection(reader, writer, f"Host: 127.0.0.1:{port}\r\n")
        times = [(await _timed(lane, "GET", f"/{size}"))[0] for _ in range(min(requests, 300))]
        lane.close()
        process.stdin.close()
    return percentile(times, 0.5)


async def _retried(
    connect: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]],
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The server has bound its port when it says so, and listens a moment later."""
    for _ in range(200):
        try:
            return await connect()
        except ConnectionRefusedError:
            await asyncio.sleep(0.02)
    raise UserError("the bench failed: the bare server does not listen")
