"""How each fault of a chaos scenario is done to the simulated world; ``deploy.chaos.faults`` does the same to real processes."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from random import Random
from typing import Any, assert_never

import msgspec

from elbowroom.api import quantity
from elbowroom.api.objects import Pod
from elbowroom.deploy.chaos import scenario as kinds
from elbowroom.deploy.chaos.plan import Drawn
from elbowroom.deploy.chaos.workload import NAMESPACE, Ask, Doing, Wait, behaving, rule
from elbowroom.deploy.explore.actors import Actors
from elbowroom.machine.steps import is_passed_at_start, is_step
from elbowroom.rpc import create, get, patch
from elbowroom.rpc.requests import delete, listing
from elbowroom.sim.client import Client
from elbowroom.sim.network import Disturbance
from elbowroom.sim.world import RESTART_SECONDS, World
from elbowroom.wire import ApiResponse

STRANGE = {
    "secondScheduler": "two peers of one name",
    "hog": "processors",
    "fewFiles": "open files",
    "hostile": "HTTP",
}
SLICE_SECONDS = 0.04
"""Of a component's time, while it is slow."""
"""Faults that the simulated world cannot have, and what it lacks for them."""


@dataclass(slots=True)
class Trouble:
    """The nemesis of one run. ``fired`` and ``missed`` count by kind what had an effect, and what had none."""

    world: World
    actors: Actors
    fired: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    _late: list[tuple[str, Callable[[], bool]]] = field(default_factory=list)
    _clients: int = 0

    def begin(self, drawn: Drawn) -> None:
        """The fault comes now, and ends by itself. Where nothing and nobody is there for it, it is missed."""
        if self.actors.over:
            return
        try:
            self._begin(drawn, Random(drawn.chance))
        except _NobodyThereError:
            self.missed[drawn.fault.kind] += 1

    def count(self) -> None:
        """At the end: which of those that waited for their moment had one?"""
        for kind, came in self._late:
            (self.fired if came() else self.missed)[kind] += 1
        self._late.clear()

    def _begin(self, drawn: Drawn, rng: Random) -> None:
        world, fault, span = self.world, drawn.fault, drawn.span
        match fault:
            case kinds.Kill():
                return self._kill(fault, rng)
            case kinds.PowerCut():
                for name in self._machines(["*"]):
                    world.crash(name, RESTART_SECONDS)
            case kinds.Stop():
                world.pause(self._pick(fault.of, rng), span)
            case kinds.Cut():
                world.cut(*self._link(fault.between, rng), span)
            case kinds.Partition():
                world.partition(*self._link(fault.between, rng), span, one_way=fault.one_way)
            case kinds.Isolate():
                for link in self._links_of(self._pick(fault.of, rng)):
                    world.cut(*link, span)
            case kinds.Swizzle():
                for link in self._links_of(self._pick(fault.of, rng)):
                    first, last = rng.uniform(0, span / 2), rng.uniform(span / 2, span)
                    world.after(first, partial(world.cut, link[0], link[1], last - first))
            case kinds.Disturb():
                world.disturb(Disturbance(**fault.model_dump(exclude={"kind", "every", "span"})), span)
            case kinds.DiskFull():
                return self._full_disk(self._pick(fault.of, rng), span)
            case kinds.FailedFsync():
                machine = self._pick(fault.of, rng)
                world.fail_sync(machine)
                return self._if_it_comes(fault.kind, "crash", {"machine": machine, "why": "an fsync failed"})
            case kinds.ClockStep():
                world.step_clock(self._pick(fault.of, rng), rng.uniform(*fault.seconds), span)
            case kinds.RuntimeErrors():
                return self._act(fault.kind, _behaving(fault.pods, {"resizeError": float(fault.times)}, span, rng))
            case kinds.SlowRuntime():
                return self._act(fault.kind, _behaving(fault.pods, {"resizeSeconds": fault.seconds}, span, rng))
            case kinds.NodeLoss():
                node = self._node(fault.nodes, rng)
                for kind in ("kubelet", "runtime"):
                    world.crash(f"{kind}/{node}", span)
            case kinds.Allocatable():
                return self._act(fault.kind, _shrinking(self._node(fault.nodes, rng), rng.uniform(*fault.share), span))
            case kinds.SlowReaders():
                for name in self._watchers(fault.watches):
                    world.pause(name, span)
                    world.after(span, lambda name=name: world.remove(name))  # type: ignore[misc]
            case kinds.Herd():
                names = self._watchers(fault.watchers)
                world.after(1.0, lambda: world.crash("apiserver", RESTART_SECONDS))
                for name in names:
                    world.after(3.0, lambda name=name: world.remove(name))  # type: ignore[misc]
            case kinds.Slow():
                machine, idle = self._pick(fault.of, rng), SLICE_SECONDS * (1 - fault.share)
                for number in range(int(span / SLICE_SECONDS)):
                    world.after(number * SLICE_SECONDS, partial(self._stand_still, machine, idle))
            case kinds.Usage():
                return self._act(fault.kind, _behaving(fault.pods, {"memoryUsage": rng.choice(fault.memory)}, span, rng))
            case kinds.Rules():
                return self._act(fault.kind, _ruling(*rule(fault, f"rule-{drawn.number}", rng), span))
            case kinds.SecondScheduler() | kinds.Hog() | kinds.FewFiles() | kinds.Hostile():
                raise AssertionError("is refused before the story begins")
            case _:
                assert_never(fault)
        self.fired[fault.kind] += 1

    # ------------------------------------------------------------ who and where

    def _machines(self, patterns: list[str]) -> list[str]:
        """Those that are alive, the clients apart."""
        alive = [name for name in self.world.names() if self.world.alive(name) and not name.startswith("client/")]
        found = sorted(name for name in alive if any(fnmatchcase(name, pattern) for pattern in patterns))
        if not found:
            raise _NobodyThereError
        return found

    def _pick(self, patterns: list[str], rng: Random) -> str:
        return rng.choice(self._machines(patterns))

    def _node(self, pattern: str, rng: Random) -> str:
        return rng.choice([name.partition("/")[2] for name in self._machines([f"kubelet/{pattern}"])])

    def _links_of(self, peer: str) -> list[tuple[str, str]]:
        found = [(connection.dialer, connection.listener) for connection in self.world.network.of(peer)]
        return sorted(link for link in found if not link[0].startswith("client/"))

    def _link(self, between: tuple[str, str], rng: Random) -> tuple[str, str]:
        """One whose ends match, the first pattern's first."""
        found = sorted(
            (one, other)
            for link in {(c.dialer, c.listener) for c in self.world.network.all() if not c.dialer.startswith("client/")}
            for one, other in (link, link[::-1])
            if fnmatchcase(one, between[0]) and fnmatchcase(other, between[1])
        )
        if not found:
            raise _NobodyThereError
        return rng.choice(found)

    # ------------------------------------------------------------ single faults

    def _kill(self, fault: kinds.Kill, rng: Random) -> None:
        machine = self._pick(fault.of, rng)
        down = rng.uniform(*fault.down) or RESTART_SECONDS
        if not fault.at:
            self.world.crash(machine, down)
            self.fired[fault.kind] += 1
            return
        kind = machine.partition("/")[0]
        label = rng.choice([label for label in fault.at if is_step(kind, label)] or fault.at)
        self.world.kill_at(machine, label, hits=rng.randint(*fault.hits), restart_after=down)
        if is_passed_at_start(label):
            self.world.crash(machine, RESTART_SECONDS)  # to die again when it starts
        self._if_it_comes(fault.kind, "crash", {"machine": machine, "label": label})

    def _stand_still(self, machine: str, span: float) -> None:
        if machine in self.world.names() and not self.actors.over:
            self.world.pause(machine, span)

    def _full_disk(self, machine: str, span: float) -> None:
        before = len(self.world.history)
        self.world.fill_disk(machine, span)
        self._late.append(("diskFull", lambda: self._came("crash", {"machine": machine}, before)))

    def _if_it_comes(self, kind: str, name: str, args: dict[str, str]) -> None:
        before = len(self.world.history)
        self._late.append((kind, lambda: self._came(name, args, before)))

    def _came(self, name: str, args: dict[str, str], since: int) -> bool:
        records = self.world.history[since:]
        return any(r["kind"] == "fault.begin" and r["name"] == name and args.items() <= r["args"].items() for r in records)

    def _act(self, kind: str, doing: Doing) -> None:
        self.actors.begin(self._client(), self._counted(kind, doing), goes_on=True)

    def _counted(self, kind: str, doing: Doing) -> Doing:
        try:
            yield from doing
            self.fired[kind] += 1
        except _NobodyThereError:
            self.missed[kind] += 1

    def _client(self) -> Client:
        self._clients += 1
        return Client(self.world, f"client/nemesis-{self._clients}")

    def _watchers(self, count: int) -> list[str]:
        """So many clients that watch all pods."""
        names = []
        for _ in range(count):
            self._client().mirror("pods", Pod, namespace=NAMESPACE)
            names.append(f"client/nemesis-{self._clients}")
        return names


class _NobodyThereError(Exception):
    """There is nothing and nobody now to whom it could happen."""


def _ruling(resource: str, document: dict[str, Any], span: float) -> Doing:
    """A rule comes, and goes."""
    name = document["metadata"]["name"]
    yield Ask(create(resource, document, namespace=NAMESPACE), (409,))
    yield Wait(span)
    yield Ask(delete(resource, name, namespace=NAMESPACE), (404,))


def _behaving(pattern: str, behaviour: dict[str, float | str], span: float, rng: Random) -> Doing:
    """The runtime treats a pod's containers otherwise for a while."""
    pods = _document((yield Ask(listing("pods", namespace=NAMESPACE))))["items"]
    matching = [pod for pod in pods if fnmatchcase(pod["metadata"]["name"], pattern)]
    if not matching:
        raise _NobodyThereError
    name = rng.choice(sorted(pod["metadata"]["name"] for pod in matching))
    for begins in (True, False):
        while True:
            answer = yield Ask(get("pods", name, namespace=NAMESPACE), (404,))
            if answer is None or answer.status == 404:
                return  # the pod is gone
            pod = _document(answer)
            meta = {"resourceVersion": pod["metadata"]["resourceVersion"]}  # or another fault's change would be lost
            body = {"metadata": {**meta, "annotations": behaving(pod, behaviour, begins=begins)}}
            answer = yield Ask(patch("pods", name, body, namespace=NAMESPACE), (404, 409))
            if answer is None or answer.status != 409:
                break
        yield Wait(span)


def _shrinking(node: str, share: float, span: float) -> Doing:
    """A node has less to give away for a while."""
    capacity = _document((yield Ask(get("nodes", node))))["status"]["capacity"]
    less = {
        "cpu": f"{int(quantity.milli_of(capacity['cpu']) * share)}m",
        "memory": str(int(quantity.value_of(capacity["memory"]) * share)),
    }
    for allocatable in (less, {name: capacity[name] for name in less}):
        yield Ask(patch("nodes", node, {"status": {"allocatable": allocatable}}, subresource="status"))
        yield Wait(span)


def _document(answer: ApiResponse | None) -> dict[str, Any]:
    assert answer is not None, "a request was made"
    return dict(msgspec.json.decode(answer.body))
