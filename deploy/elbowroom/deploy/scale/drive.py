"""Doing it: pods are made over some connections until all run, then some lanes resize one pod after another; meanwhile samples."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from elbowroom.client import Context
from elbowroom.deploy.bench.gauge import Gauge, Weight, queues
from elbowroom.deploy.bench.http import Connection
from elbowroom.deploy.bench.watching import Pods, Seen, watching
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.scale.plan import GROWN, PATCH, PRIORITIES, RESIZED, Plan, resize

PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CONNECTIONS = 32
AHEAD = 8192
"""Pods that are made and do not run yet, at most: more of them would wait for nothing but their turn."""
SAMPLE_SECONDS, SAMPLED_SHARE = 0.5, 0.1
"""How often a sample is taken, unless weighing takes more than this share of a processor: the kernel looks at each page."""
PATIENCE_SECONDS, PATIENCE_SECONDS_A_POD = 60.0, 0.1
GROWS, RESIZES = "grow, with preemption where the node is full", "resize within the node's room"


@dataclass(frozen=True, slots=True)
class Sample:
    """The cluster at a moment, ``at`` seconds after the first pod was asked for."""

    at: float
    made: int
    bound: int
    running: int
    deferred: int
    in_force: int
    changes: int
    """Events of the watch so far."""
    weight: Weight
    queues: dict[str, int]


@dataclass(frozen=True, slots=True)
class Episode:
    """A resize: asked for at ``at``, acknowledged and in force so many seconds later."""

    what: str
    at: float
    acknowledged: float
    in_force: float


@dataclass(slots=True)
class Run:
    """What was measured. Times are seconds."""

    plan: Plan
    ready: float = 0.0
    """From the command's start until all nodes were Ready."""
    idle: Weight = field(default_factory=Weight)
    """With all nodes Ready and no pod."""
    full: Weight = field(default_factory=Weight)
    """With all pods running."""
    after: Weight = field(default_factory=Weight)
    running: float = 0.0
    """From the first pod asked for until all ran."""
    storm_began: float = 0.0
    storm: float = 0.0
    victims: int = 0
    samples: list[Sample] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)


Show = Callable[[str, Run], None]


async def drive(run: Run, context: Context, gauge: Gauge, lanes: int, show: Show) -> None:
    """Fill ``run``. ``UserError`` if something is refused, or does not happen in time."""
    patience = PATIENCE_SECONDS + PATIENCE_SECONDS_A_POD * run.plan.pods
    run.idle = gauge.weigh()
    connections = [await Connection.open(context) for _ in range(max(CONNECTIONS, lanes))]
    for name, value in PRIORITIES.items():
        await asked(connections[0], "POST", CLASSES, {"metadata": {"name": name}, "value": value})
    async with watching(context) as pods:
        sampler = _Sampler(run, pods, gauge, await Connection.open(context), show)
        async with sampler:
            await _fill(run, connections[:CONNECTIONS], pods, sampler, patience)
            run.full = gauge.weigh()
            await _storm(run, connections[:lanes], pods, sampler, patience)
        run.victims = run.plan.pods - len(pods.now)
        run.after = gauge.weigh()
    for connection in connections:
        connection.close()


async def _fill(run: Run, connections: Sequence[Connection], pods: Pods, sampler: "_Sampler", patience: float) -> None:
    sampler.phase = "pods"
    began = sampler.began

    async def make(connection: Connection, manifests: Iterator[dict[str, Any]]) -> None:
        ahead: deque[str] = deque()
        for manifest in manifests:
            if len(ahead) >= AHEAD // len(connections):
                await pods.until(ahead.popleft(), lambda pod: pod is not None and pod.is_running, patience)
            await asked(connection, "POST", PODS, manifest)
            ahead.append(manifest["metadata"]["name"])
            sampler.made += 1

    # Those that are to grow have their nodes to themselves first: a scheduler is free to put the others anywhere.
    for manifests, names in ((run.plan.growers(), run.plan.high), (run.plan.others(), run.plan.low)):
        await asyncio.gather(*(make(connection, manifests) for connection in connections))
        run.running = await pods.all_until(names, lambda pod: pod is not None and pod.is_running, patience) - began


async def _storm(run: Run, connections: Sequence[Connection], pods: Pods, sampler: "_Sampler", patience: float) -> None:
    sampler.phase = "resizes"
    run.storm_began = time.perf_counter() - sampler.began
    others = iter(run.plan.low)

    async def one(connection: Connection, what: str, name: str, resource: str, amount: str) -> None:
        at = time.perf_counter()
        status, raw = await connection.request("PATCH", f"{PODS}/{name}/resize", resize(**{resource: amount}), PATCH)
        acknowledged = time.perf_counter()
        if status == 404 and what == RESIZES:
            return  # it was somebody's victim
        if status != 200:
            raise UserError(f"the resize of {name} was refused: {status} {raw.decode(errors='replace')[:300]}")

        def is_over(pod: Seen | None) -> bool:
            return pod is None or pod.actual(resource) == amount

        done = await pods.until(name, is_over, patience)
        if name in pods.now:
            sampler.in_force += 1
            run.episodes.append(Episode(what, at - sampler.began, acknowledged - at, done - at))
        elif what == GROWS:
            raise UserError(f"{name} was to grow and is gone")

    async def lane(number: int) -> None:
        connection = connections[number]
        for name in run.plan.high[number :: len(connections)]:
            await one(connection, GROWS, name, "memory", GROWN)
            other = next(others, None)
            if other is not None:
                await one(connection, RESIZES, other, "cpu", RESIZED)

    await asyncio.gather(*(lane(number) for number in range(len(connections))))
    run.storm = time.perf_counter() - sampler.began - run.storm_began


async def asked(connection: Connection, method: str, path: str, body: Any = None) -> None:
    """A request that is to succeed."""
    status, raw = await connection.request(method, path, body)
    if status >= 300:
        raise UserError(f"{method} {path}: {status} {raw.decode(errors='replace')[:300]}")


class _Sampler:
    """A context in which samples are taken. Weighing is read off the loop: the kernel walks the page tables for it."""

    def __init__(self, run: Run, pods: Pods, gauge: Gauge, connection: Connection, show: Show) -> None:
        self._run, self._pods, self._gauge, self._connection, self._show = run, pods, gauge, connection, show
        self.began = time.perf_counter()
        self.made = self.in_force = 0
        self.phase = ""

    async def __aenter__(self) -> None:
        self._ended = asyncio.Event()
        self._sampling: Awaitable[None] = asyncio.create_task(self._go_on())

    async def __aexit__(self, *why: object) -> None:
        self._ended.set()
        await self._sampling
        self._connection.close()

    async def _go_on(self) -> None:
        while True:
            over = self._ended.is_set()
            spent = await self._sample()
            self._show(self.phase, self._run)
            if over:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), max(SAMPLE_SECONDS, spent / SAMPLED_SHARE))

    async def _sample(self) -> float:
        """The processor's seconds that weighing took."""
        at = time.perf_counter() - self.began
        pods = self._pods
        weight, spent = await asyncio.get_running_loop().run_in_executor(None, self._weighed)
        status, raw = await self._connection.request("GET", "/elbowroom/scheduler/metrics")
        found = queues(raw.decode().splitlines()) if status == 200 else {}
        self._run.samples.append(
            Sample(at, self.made, pods.bound, pods.running, pods.deferred, self.in_force, pods.changes, weight, found)
        )
        return spent

    def _weighed(self) -> tuple[Weight, float]:
        began = time.thread_time()
        weight = self._gauge.weigh()
        return weight, time.thread_time() - began
