"""How fast the scheduler is by itself: the machine, fed by hand with what an API server would say; nothing but its steps is timed.

Decoding the events that it follows is part of a step, a bus and a store are not. Times are the processor's, so that a busy machine
does not blur them.
"""

import gc
import math
import random
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.gates import RESIZE_PREEMPTION, profile_of
from elbowroom.api.objects import Node, Pod
from elbowroom.deploy.bench.figures import Figure, percentile
from elbowroom.host.process import COLLECTED_AFTER
from elbowroom.machine import Effect, Input, Instant, Received, Send, TimerFired, seconds
from elbowroom.scheduler.cache import Cache
from elbowroom.scheduler.machine import FLUSH, GO, build
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Message,
    Reply,
    StreamBookmark,
    StreamEvent,
    decode_value,
    encode_value,
)

SIZES = (100, 1_000, 5_000)
PODS_A_NODE = 30
FIRST, BOUND, CYCLES, PREEMPTORS = 20, 2_000, 500, 1_000
START = Instant(1_800_000_000_000_000_000)
FLOORS = {5_000: 680.0}
"""Pods a second that upstream's own test of 5,000 nodes must reach, its API server included (270 in 1.36)."""
PREEMPTION_FLOORS = {5_000: 570.0}
"""The same for pods that preempt three of a node's four, asynchronously (160 in 1.36)."""
FLOOR = "upstream's own floor, end to end, as quoted"


def in_process() -> list[Figure]:
    """What ``of_size`` tells of each size, and how costs grow with it."""
    figures = {size: of_size(size, BOUND, CYCLES, min(size, PREEMPTORS)) for size in SIZES}
    return [figure for size in SIZES for figure in figures[size]] + growth(figures)


def of_size(nodes: int, bound: int, cycles: int, preemptors: int) -> list[Figure]:
    """Pods bound a second with so many nodes of 30 pods, once ``bound`` more are bound: equal ones and ones that all differ;
    cycles a second in which a deferred resize is judged and its victims are chosen and told; pods bound a second that had to
    preempt three pods each, of nodes with four.

    The first pods pay for the first picture of the cluster, every node of it; their time is told apart (``start s``).
    """
    with _collected_as_in_hosts():
        bench = _Bench(nodes, PODS_A_NODE - max(1, bound // nodes))
        start = bench.bind(FIRST)
        binding = bench.bind(bound)
        pods = bench.pods
        took = [bench.resize(number) for number in range(min(nodes, cycles))]
        del bench
        gc.collect()  # so that no full pass over two clusters at once falls into what is timed
        differing = _Bench(nodes, PODS_A_NODE - max(1, bound // nodes))
        differing.bind(FIRST)
        varied = differing.bind(bound, differ=True)
        del differing
        gc.collect()
        crowded = _Bench(nodes, FULL.pods, FULL)
        preempting = crowded.preempt(preemptors)
    return [
        Figure(
            f"in-process-{nodes}",
            f"pods bound, {nodes:,} nodes, in process",
            bound / binding,
            "pods/s",
            more_is_better=True,
            limit=FLOORS.get(nodes),
            limit_is=FLOOR if nodes in FLOORS else "",
            details={"pods": float(pods), "start s": start},
        ),
        Figure(
            f"differing-{nodes}",
            f"pods that all differ bound, {nodes:,} nodes, in process",
            bound / varied,
            "pods/s",
            more_is_better=True,
        ),
        Figure(
            f"resize-cycles-{nodes}",
            f"resize preemption cycles, {nodes:,} nodes",
            len(took) / sum(took),
            "cycles/s",
            more_is_better=True,
            details={"p99 ms": 1e3 * percentile(took, 0.99)},
        ),
        Figure(
            f"preempting-{nodes}",
            f"pods bound that preempt three each, {nodes:,} nodes, in process",
            preemptors / preempting,
            "pods/s",
            more_is_better=True,
            limit=PREEMPTION_FLOORS.get(nodes),
            limit_is=FLOOR if nodes in PREEMPTION_FLOORS else "",
            details={"pods": float(nodes * FULL.pods), "victims": float(crowded.gone)},
        ),
    ]


def growth(figures: dict[int, list[Figure]]) -> list[Figure]:
    """How many times dearer each thing becomes with ten times the nodes, over the range of sizes; 10 would be linear."""
    smallest, largest = min(figures), max(figures)
    tenfolds = math.log10(largest / smallest)
    return [
        Figure(
            f"growth-{few.name.removesuffix(f'-{smallest}')}",
            f"growth of the cost with 10 times the nodes: {few.what.partition(',')[0]}",
            (few.value / many.value) ** (1 / tenfolds),
            "times",
            limit=10.0,
            limit_is="linear",
        )
        for few, many in zip(figures[smallest], figures[largest], strict=True)
    ]


@contextmanager
def _collected_as_in_hosts() -> Iterator[None]:
    """The garbage collector set as the hosts of machines set it."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def memory() -> list[Figure]:
    """What the cache needs for a pod, beside the object that its copy of the API server holds."""
    nodes, pods = 100, 100 * PODS_A_NODE
    views = [msgspec.json.decode(_encoded(_pod(number, f"n{number % nodes}")), type=Pod) for number in range(pods)]
    cache = Cache()
    for number in range(nodes):
        cache.set_node(msgspec.convert(_node(number), Node))
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for view in views:
        cache.set_pod(view)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kibibytes = (after - before) / pods / 1024
    return [Figure("cache-memory", "memory of the cache, a pod", kibibytes, "KiB", limit=3.0, limit_is="the aim")]


@dataclass(frozen=True, slots=True)
class _Shape:
    """What nodes and their pods are like."""

    node_cpu: str
    pod_cpu: str
    pods: int = 0
    preemptor_cpu: str = ""


ROOMY = _Shape("5", "150m")
"""30 pods of 150m and one of high priority leave 350m."""
FULL = _Shape("4", "900m", 4, "3")
"""As in upstream's test of preemption: three of the four have to go."""


class _Bench:
    """A scheduler with so many nodes, each with so many pods of low priority and, where there is room, one of high."""

    def __init__(self, nodes: int, pods_a_node: int, shape: _Shape = ROOMY) -> None:
        config = {"profile": profile_of("lab", {RESIZE_PREEMPTION: True}).as_config(), "name": "scheduler", "epoch": 1}
        self._scheduler = build(config, random.Random(1))
        self._now = START
        self._streams: dict[str, int] = {}
        self._sequence: dict[str, int] = {}
        self._revision = 0
        self._told: set[str] = set()
        """The resources whose state is told: from there on an event names the revision before it."""
        self._answers: list[Message] = []
        self._woken = False
        self._shape = shape
        self._leaving: list[str] = []
        self.pods = self.gone = 0
        for effect in self._scheduler.start(self._now, {}):
            if isinstance(effect, Send) and isinstance(effect.message, Call) and effect.message.method == "watch":
                self._streams[decode_value(effect.message.body, ApiRequest).resource] = effect.message.id
        for name in self._streams:
            self._sequence[name] = 0
        for name in self._streams:
            if name not in ("nodes", "pods"):
                self._all(name, ())
        self._all("nodes", (_node(number, shape.node_cpu) for number in range(nodes)))
        self._all("pods", self._running(nodes, pods_a_node))

    def bind(self, count: int, *, differ: bool = False) -> float:
        """The seconds that it takes to bind so many new pods, until it has seen them bound."""
        took = 0.0
        cpu = self._shape.pod_cpu
        sizes = [f"{104_857_600 + number}" if differ else "100Mi" for number in range(count)]
        arriving = [
            self._event("pods", "ADDED", _pod(self.pods + number, cpu=cpu, memory=size)) for number, size in enumerate(sizes)
        ]
        names = {f"pod-{self.pods + number}": self.pods + number for number in range(count)}
        bound: dict[str, str] = {}
        for event in arriving:
            took += self._step(Received("apiserver", event), bound)
        while len(bound) < count:
            assert self._woken or self._answers, f"{count - len(bound)} pods are not bound"
            took += self._answered(bound)
        took += self._answered(bound)
        for name, node in bound.items():
            document = _pod(names[name], node, cpu=cpu, memory=sizes[names[name] - self.pods])
            took += self._step(Received("apiserver", self._event("pods", "MODIFIED", document)), bound)
        self.pods += count
        return took

    def preempt(self, count: int) -> float:
        """The seconds that it takes to bind so many new pods that preempt, whose victims go as soon as they are told."""
        took = 0.0
        bound: dict[str, str] = {}
        arriving = [
            self._event("pods", "ADDED", _pod(number, priority=1000, cpu=self._shape.preemptor_cpu)) for number in range(count)
        ]
        for event in arriving:
            took += self._step(Received("apiserver", event), bound)
        while len(bound) < count:
            if not self._answers and not self._woken:
                self._now = Instant(self._now + seconds(1))  # those that lost a node to another back off
                took += self._step(TimerFired(FLUSH), bound)
                assert self._answers or self._woken, f"{count - len(bound)} pods preempted and are not bound"
            took += self._answered(bound)
            leaving, self._leaving = self._leaving, []
            for name in leaving:
                gone = self._event("pods", "DELETED", {"metadata": {"name": name, "namespace": "default"}})
                took += self._step(Received("apiserver", gone), bound)
            self.gone += len(leaving)
        return took

    def resize(self, node: int) -> float:
        """The seconds from the news that a resize is deferred until its victims are told."""
        number = node * 1_000_000
        wanted = _pod(number, f"n{node}", priority=1000, cpu="1150m", granted="150m")
        event = self._event("pods", "MODIFIED", wanted)
        asked: dict[str, str] = {}
        took = self._step(Received("apiserver", event), asked)
        assert self._answers, "somebody has to go"
        self._answers.clear()
        return took

    # ---- what an API server would say

    def _running(self, nodes: int, each: int) -> Iterable[dict[str, Any]]:
        for node in range(nodes):
            if self._shape is ROOMY:
                yield _pod(node * 1_000_000, f"n{node}", priority=1000, granted="150m")
            for _ in range(each):
                yield _pod(self.pods, f"n{node}", cpu=self._shape.pod_cpu)
                self.pods += 1

    def _all(self, resource: str, documents: Iterable[dict[str, Any]]) -> None:
        for document in documents:
            self._step(Received("apiserver", self._event(resource, "ADDED", document)), {})
        whole = StreamBookmark(self._streams[resource], self._sequence[resource], self._revision, initial_end=True)
        self._step(Received("apiserver", whole), {})
        self._told.add(resource)

    def _event(self, resource: str, kind: str, document: dict[str, Any]) -> StreamEvent:
        before, self._revision = self._revision, self._revision + 1
        document["metadata"]["resourceVersion"] = str(self._revision)
        self._sequence[resource] += 1
        previous = before if resource in self._told else 0
        stream, sequence = self._streams[resource], self._sequence[resource]
        return StreamEvent(stream, sequence, self._revision, previous, kind, _encoded(document))

    def _answered(self, bound: dict[str, str]) -> float:
        took = 0.0
        answers, self._answers = self._answers, []
        for answer in answers:
            took += self._step(Received("apiserver", answer), bound)
        if self._woken:
            self._woken = False
            took += self._step(TimerFired(GO), bound)
        return took

    def _step(self, happened: Input, bound: dict[str, str]) -> float:
        began = time.process_time()
        effects = self._scheduler.step(self._now, happened)
        took = time.process_time() - began
        for effect in effects:
            self._answer(effect, bound)
        return took

    def _answer(self, effect: Effect, bound: dict[str, str]) -> None:
        if not isinstance(effect, Send) or not isinstance(effect.message, Call):
            self._woken = self._woken or getattr(effect, "name", "") == GO
            return
        request = decode_value(effect.message.body, ApiRequest)
        if request.subresource == "binding":
            bound[request.name] = msgspec.json.decode(request.body)["target"]["name"]
        if request.verb == "delete":
            self._leaving.append(request.name)
        self._answers.append(Reply(effect.message.id, body=encode_value(ApiResponse(201))))


def _encoded(document: dict[str, Any]) -> bytes:
    return msgspec.json.encode(document)


def _node(number: int, cpu: str = ROOMY.node_cpu) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": f"n{number}", "uid": f"node-{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _pod(
    number: int, node: str = "", *, priority: int = 0, cpu: str = "150m", memory: str = "100Mi", granted: str = ""
) -> dict[str, Any]:
    """A pod as it is written; with ``granted`` less than ``cpu`` its resize is deferred."""
    requests = {"cpu": cpu, "memory": memory}
    name = f"{'web' if priority else 'pod'}-{number}"
    status: dict[str, Any] = {"phase": "Running" if node else "Pending"}
    if node:
        status["startTime"] = "2026-01-01T00:00:00Z"
    if granted:
        has = {"cpu": granted, "memory": "100Mi"}
        status["containerStatuses"] = [{"name": "main", "allocatedResources": has, "resources": {"requests": has}}]
    if granted and granted != cpu:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app": "bench"}, "generation": 1},
        "spec": {
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}],
            "priority": priority,
            "schedulerName": "default-scheduler",
            **({"nodeName": node} if node else {}),
        },
        "status": status,
    }
