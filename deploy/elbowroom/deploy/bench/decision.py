"""How long a kubelet thinks: the machine itself, fed by hand, so that nothing but its decisions is timed."""

import random
import time
from collections.abc import Callable
from typing import Any

import msgspec

from elbowroom.api.gates import profile_of
from elbowroom.api.objects import ResourceRequirements
from elbowroom.kubelet.checkpoint import ALLOCATED, Checkpoint, PodResources
from elbowroom.kubelet.machine import RETRY, build
from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet
from elbowroom.kubelet.managers.options import StaticOptions
from elbowroom.kubelet.managers.static import Granted, StaticPolicy
from elbowroom.kubelet.managers.topology import Topology
from elbowroom.machine import Effect, Instant, Machine, Note, Persist, Received, Send, TimerFired
from elbowroom.wire import ApiRequest, Call, Reply, StreamBookmark, StreamEvent, decode_value, encode_value
from elbowroom.wire.cri import RuntimeState

NODE = "crowded"
GI = 1024**3
NOW = Instant(1_800_000_000_000_000_000)


def pass_seconds(running: int, pending: int, passes: int, clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """The time of each of some passes over the pending resizes, none of which fits, on a node full of pods.

    The kubelet begins with them, as one that was started again does.
    """
    kubelet = build(
        {"profile": profile_of("lab").as_config(), "name": f"kubelet/{NODE}", "node": NODE, "epoch": 1}, random.Random(1)
    )
    streams: dict[str, int] = {}
    runtime_list = 0
    for effect in kubelet.start(NOW, {ALLOCATED: _allocated(running)}):
        match effect:
            case Send("apiserver", Call(number, "watch", body)):
                streams[decode_value(body, ApiRequest).resource] = number
            case Send(_, Call(number, "ListAll")):
                runtime_list = number
    pods = [_pod(number, *(("3Gi", 2) if number < pending else ("1Gi", 1))) for number in range(running)]
    _feed(kubelet, streams["nodes"], [_node(running)])
    _feed(kubelet, streams["pods"], pods)
    kubelet.step(NOW, Received(f"runtime/{NODE}", Reply(runtime_list, body=encode_value(RuntimeState()))))
    took = []
    for _ in range(passes):
        began = clock()
        effects = kubelet.step(NOW, TimerFired(RETRY))
        took.append(clock() - began)
        judged = sum(_is_deferral(effect) for effect in effects)
        assert judged == pending, f"{judged} of {pending} pending resizes were judged Deferred in the pass"
    return took


def _allocated(running: int) -> bytes:
    """The checkpoint of a kubelet that ran these pods before some of them wished for more."""
    kept = Checkpoint(ALLOCATED)
    size = ResourceRequirements(requests={"cpu": "10m", "memory": "1Gi"})
    for number in range(running):
        kept.put(f"uid-{number}", PodResources(containers={"main": size}))
    return next(effect.value for effect in kept.save() if isinstance(effect, Persist) and effect.value is not None)


def _feed(kubelet: Machine, stream: int, documents: list[dict[str, Any]]) -> None:
    for sequence, document in enumerate(documents, 1):
        raw = msgspec.json.encode(document)
        kubelet.step(NOW, Received("apiserver", StreamEvent(stream, sequence, sequence, 0, "ADDED", raw)))
    kubelet.step(NOW, Received("apiserver", StreamBookmark(stream, len(documents), len(documents), initial_end=True)))


def _is_deferral(effect: Effect) -> bool:
    return isinstance(effect, Note) and effect.name == "kl.judge" and effect.fields.get("verdict") == "Deferred"


def _node(gibibytes: int) -> dict[str, Any]:
    amounts = {"cpu": "64", "memory": f"{gibibytes}Gi", "pods": str(gibibytes)}
    return {
        "metadata": {"name": NODE, "uid": "node", "resourceVersion": "1"},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _pod(number: int, memory: str, generation: int) -> dict[str, Any]:
    resources = {"requests": {"cpu": "10m", "memory": memory}}
    return {
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "uid": f"uid-{number}",
            "resourceVersion": str(number + 1),
            "generation": generation,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "pause", "resources": resources}]},
        "status": {"phase": "Running"},
    }


def cpu_decisions_per_second(decisions: int, *, distributed: bool) -> float:
    """How many times a second the static CPU policy chooses CPUs, or takes them back, on a machine of two sockets and 128 CPUs that
    is two thirds full; each grant with its hints, as an admission under a topology policy is."""
    topology = Topology.regular(sockets=2, cores_per_numa=32, threads_per_core=2)
    options = StaticOptions(distribute_cpus_across_numa=distributed)
    policy = StaticPolicy(topology, CPUSet.of(0, 64), options)
    rng, state, held = random.Random(1), policy.initial, list[str]()
    began = time.perf_counter()
    for number in range(decisions):
        available = policy.available(state)
        if len(available) < len(topology.all) // 3:
            state = policy.released(state, held.pop(rng.randrange(len(held))), "c")
            continue
        count = rng.randint(1, 12)
        hint = max(policy.hints(available, NOBODY, count), key=lambda hint: hint.preferred)
        decided = policy.allocate(state, f"pod-{number}", "c", count, hint.affinity)
        assert isinstance(decided, Granted), decided
        state = decided.state
        held.append(f"pod-{number}")
    return decisions / (time.perf_counter() - began)
