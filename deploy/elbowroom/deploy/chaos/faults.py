"""How each fault of a plan is done to real processes, and undone.

``begin`` returns what heals the fault, and who suffered it. A fault that could not take effect (its component was dead all the
time, its step was never reached) says so with ``NotDoneError`` or by ``Begun.fired``; nothing is counted that did not happen.
"""

import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from random import Random
from typing import Any
from urllib.parse import urlsplit

from elbowroom.api import quantity
from elbowroom.client import context_of
from elbowroom.deploy.chaos import scenario as kinds
from elbowroom.deploy.chaos import strain, workload
from elbowroom.deploy.chaos.background import Background
from elbowroom.deploy.chaos.ground import NAMESPACE, Ground, NotDoneError, pods_path
from elbowroom.deploy.chaos.hostile import HostileClient
from elbowroom.deploy.chaos.plan import Drawn
from elbowroom.deploy.chaos.second import SecondProcess
from elbowroom.deploy.errors import UserError
from elbowroom.machine.steps import is_passed_at_start, is_step

REACHED_SECONDS = 5.0
"""How long a failpoint may stand before it counts as never reached."""
ALL_COMMITS = 1_000_000


@dataclass
class Begun:
    """A fault under way. ``heal`` ends it; ``fired`` is then whether it had any effect."""

    name: str
    args: dict[str, Any]
    heal: Callable[[], None] = field(default=lambda: None)
    fired: bool = True


def begin(ground: Ground, drawn: Drawn) -> Begun:
    """Do it. ``NotDoneError`` if it cannot be done at the moment."""
    rng, fault = Random(drawn.chance), drawn.fault
    match fault:
        case kinds.Kill():
            return _kill(ground, fault, rng)
        case kinds.PowerCut():
            return _power_cut(ground)
        case kinds.Stop():
            return _stop(ground, ground.pick(fault.of, rng))
        case kinds.Cut() | kinds.Partition() | kinds.Isolate() | kinds.Swizzle() | kinds.Disturb():
            return _on_links(ground, drawn, rng)
        case kinds.DiskFull():
            return _disk_full(ground, ground.pick(fault.of, rng))
        case kinds.FailedFsync():
            return _failed_fsync(ground, ground.pick(fault.of, rng))
        case kinds.ClockStep():
            return _clock_step(ground, ground.pick(fault.of, rng), rng.uniform(*fault.seconds))
        case kinds.RuntimeErrors():
            return _workload(ground, fault.pods, {"resizeError": fault.times}, rng, "runtime errors")
        case kinds.SlowRuntime():
            return _workload(ground, fault.pods, {"resizeSeconds": fault.seconds}, rng, "slow runtime")
        case kinds.NodeLoss():
            return _node_loss(ground, _node(ground, fault.nodes, rng))
        case kinds.Allocatable():
            return _allocatable(ground, _node(ground, fault.nodes, rng), rng.uniform(*fault.share))
        case kinds.SlowReaders():
            return _slow_readers(ground, fault.watches)
        case kinds.Herd():
            return _herd(ground, fault.watchers)
        case kinds.Slow():
            return _slow(ground, ground.pick(fault.of, rng), fault.share)
        case kinds.Usage():
            return _workload(ground, fault.pods, {"memoryUsage": rng.choice(fault.memory)}, rng, "usage")
        case kinds.Rules():
            return _rules(ground, *workload.rule(fault, f"rule-{drawn.number}", rng))
        case kinds.Hog():
            return Begun("hog", {"processes": fault.processes}, strain.Hogs(fault.processes).end)
        case kinds.FewFiles():
            component = ground.pick(fault.of, rng)
            few = strain.FewFiles(ground, component, fault.more)
            return Begun("few files", {"machine": component, "files": few.limit}, few.end)
        case kinds.Hostile():
            return _hostile(ground, rng)
        case kinds.SecondScheduler():
            return _second_scheduler(ground)


# ------------------------------------------------------------ processes


def _kill(ground: Ground, fault: kinds.Kill, rng: Random) -> Begun:
    component = ground.pick(fault.of, rng)
    down = rng.uniform(*fault.down)
    before = ground.components()[component]["restarts"]

    deaths = 1

    def is_over() -> bool:
        return component not in ground.components() or _died(ground, component, before + deaths - 1)

    args: dict[str, Any] = {"machine": component}
    begun = Begun("kill", args)
    if fault.at:
        kind = component.partition("/")[0]
        label = rng.choice([label for label in fault.at if is_step(kind, label)] or fault.at)
        deaths += is_passed_at_start(label)  # it dies, so that it dies again when it starts
        args |= {"label": label, "hits": rng.randint(*fault.hits)}
        ground.kill(component, at=label, hits=args["hits"], stay_dead=down > 0)
        begun.fired = _until(ground, is_over)
    else:
        ground.kill(component, stay_dead=down > 0)
    if down > 0 and begun.fired:
        args["down"] = round(down, 3)
        time.sleep(down)  # the fault itself: it is dead for so long
        ground.kill(component, "CONT")
    return begun


def _power_cut(ground: Ground) -> Begun:
    """Every process by its id, as fast as one can, so that none is started again before the last is dead. After one cut it waits
    until there is power again."""
    _until(ground, lambda: all(component["pid"] for component in ground.components().values()))
    pids = [component["pid"] for component in ground.components().values() if component["pid"]]
    for pid in dict.fromkeys(pids):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return Begun("power cut", {"processes": len(pids)}, fired=bool(pids))


def _stop(ground: Ground, component: str) -> Begun:
    ground.kill(component, "STOP")

    def heal() -> None:
        with suppress(NotDoneError):  # somebody killed it meanwhile, which thaws, too
            ground.kill(component, "CONT")

    return Begun("pause", {"machine": component}, heal)


def _slow(ground: Ground, component: str, share: float) -> Begun:
    slowness = strain.Slowness(ground, component, share)
    begun = Begun("slow", {"machine": component, "share": share})

    def heal() -> None:
        slowness.end()
        begun.fired = slowness.slices > 0

    begun.heal = heal
    return begun


def _second_scheduler(ground: Ground) -> Begun:
    """The API server listens to the younger of the two only; the elder is put right by a restart."""
    if ground.scheduler is None:
        raise NotDoneError("how the cluster's scheduler is configured is not known")
    second = SecondProcess(ground.scheduler, str(ground.history), ground.history.name, ground.seed)

    def heal() -> None:
        second.end()
        ground.kill("scheduler")

    return Begun("second scheduler", {"machine": "scheduler"}, heal)


def _node_loss(ground: Ground, node: str) -> Begun:
    machines = [f"kubelet/{node}", f"runtime/{node}"]
    for machine in machines:
        ground.kill(machine, stay_dead=True)

    def heal() -> None:
        for machine in machines:
            with suppress(NotDoneError):
                ground.kill(machine, "CONT")

    return Begun("node loss", {"node": node}, heal)


def _failed_fsync(ground: Ground, component: str) -> Begun:
    before = _break_disk(ground, component, "fsync", 1)
    begun = Begun("disk fsync", {"machine": component})
    begun.fired = _until(ground, lambda: _died(ground, component, before))
    return begun


def _disk_full(ground: Ground, component: str) -> Begun:
    """A process whose disk fails ends and is started again, and finds it full again, until it is healed."""
    before = _break_disk(ground, component, "full", ALL_COMMITS)
    begun = Begun("disk full", {"machine": component})

    def stay_full(over: threading.Event) -> None:
        life = before
        while not over.wait(0.02):
            now = ground.components().get(component, {}).get("restarts", life)
            if now > life:
                life = now
                with suppress(NotDoneError):
                    _break_disk(ground, component, "full", ALL_COMMITS)

    staying = Background(stay_full)

    def heal() -> None:
        staying.end()
        begun.fired = _died(ground, component, before)
        with suppress(NotDoneError):
            ground.kill(component)  # a broken disk mends with the next life

    begun.heal = heal
    return begun


def _break_disk(ground: Ground, component: str, how: str, commits: int) -> int:
    """Let its next commits fail; how often it had been started again before."""
    before: int = ground.components()[component]["restarts"]
    ground.order({"do": "break disk", "component": component, "how": how, "commits": commits})
    return before


def _died(ground: Ground, component: str, before: int) -> bool:
    found = ground.components().get(component)
    return found is not None and found["restarts"] > before


def _until(ground: Ground, fact: Callable[[], bool]) -> bool:
    """Does it come true soon?"""
    try:
        ground.until("it has an effect", fact, REACHED_SECONDS)
    except NotDoneError:
        return False
    return True


def _clock_step(ground: Ground, component: str, span: float) -> Begun:
    ground.order({"do": "step clock", "component": component, "seconds": span})
    life = ground.components()[component]["pid"]

    def heal() -> None:
        found = ground.components().get(component)
        if found is not None and found["pid"] == life:  # another life has the right time
            with suppress(NotDoneError):
                ground.order({"do": "step clock", "component": component, "seconds": -span})

    return Begun("clock step", {"machine": component, "seconds": round(span, 3)}, heal)


# ------------------------------------------------------------ links


def _on_links(ground: Ground, drawn: Drawn, rng: Random) -> Begun:
    if ground.relay is None:
        raise NotDoneError("the cluster's links do not run through a relay")
    name, order, args = _link_order(ground, drawn, rng)
    relay, number = ground.relay, str(drawn.number)
    try:
        relay.begin(number, order)
    except UserError as why:
        raise NotDoneError(str(why)) from why
    begun = Begun(name, args)

    def heal() -> None:
        hits = relay.heal(number)
        begun.fired = drawn.fault.kind in ("cut", "isolate", "swizzle") or bool(hits)
        begun.args["frames"] = sum(hits.values())

    begun.heal = heal
    return begun


def _link_order(ground: Ground, drawn: Drawn, rng: Random) -> tuple[str, dict[str, Any], dict[str, Any]]:
    fault = drawn.fault
    match fault:
        case kinds.Isolate():
            peer = ground.pick(fault.of, rng)
            return "isolate", {"kind": "isolate", "peer": peer}, {"machine": peer}
        case kinds.Swizzle():
            peer = ground.pick(fault.of, rng)
            order = {"kind": "swizzle", "peer": peer, "seconds": drawn.span / 2, "seed": rng.getrandbits(32)}
            return "swizzle", order, {"machine": peer}
        case kinds.Cut() | kinds.Partition():
            a, b = _link(ground, fault.between, rng)
            ends = {"a": a, "b": b}
            order = {"kind": fault.kind, **ends}
            if isinstance(fault, kinds.Partition):
                return fault.kind, {**order, "oneWay": fault.one_way}, ends
            return fault.kind, order, ends
        case kinds.Disturb():
            fields = fault.model_dump(exclude={"kind", "every", "span"}, exclude_defaults=True)
            return "disturb", {"kind": "disturb", "fields": fields}, fields
        case _:
            raise AssertionError(f"{fault.kind} is no fault of links")


def _link(ground: Ground, between: tuple[str, str], rng: Random) -> tuple[str, str]:
    """A link whose ends match, the first pattern's first."""
    assert ground.relay is not None
    found: list[tuple[str, str]] = []
    for a, b in ground.relay.links():
        for one, other in ((a, b), (b, a)):
            if fnmatchcase(one, between[0]) and fnmatchcase(other, between[1]):
                found.append((one, other))
    if not found:
        raise NotDoneError(f"no link between {between[0]} and {between[1]}")
    return rng.choice(sorted(found))


# ------------------------------------------------------------ by the API


def _node(ground: Ground, pattern: str, rng: Random) -> str:
    names = [name.partition("/")[2] for name in sorted(ground.components()) if name.startswith("kubelet/")]
    matching = [name for name in names if fnmatchcase(name, pattern)]
    if not matching:
        raise NotDoneError(f"no emulated node matches {pattern}")
    return rng.choice(matching)


def _workload(ground: Ground, pattern: str, behaviour: dict[str, Any], rng: Random, name: str) -> Begun:
    pods = ground.ask("GET", pods_path())["items"]
    names = sorted(pod["metadata"]["name"] for pod in pods if fnmatchcase(pod["metadata"]["name"], pattern))
    if not names:
        raise NotDoneError(f"no pod matches {pattern}")
    pod = rng.choice(names)

    def annotate(*, begins: bool) -> None:
        with ground.changing:  # several may change one pod
            found = ground.ask("GET", pods_path(pod))
            body = {"metadata": {"annotations": workload.behaving(found, behaviour, begins=begins)}}
            ground.ask("PATCH", pods_path(pod), body, "application/merge-patch+json")

    annotate(begins=True)

    def heal() -> None:
        with suppress(NotDoneError):  # the pod may be gone
            annotate(begins=False)

    return Begun(name, {"pod": pod, **behaviour}, heal)


def _allocatable(ground: Ground, node: str, share: float) -> Begun:
    path = f"/api/v1/nodes/{node}"
    capacity = ground.ask("GET", path)["status"]["capacity"]

    def patch(allocatable: dict[str, str]) -> None:
        ground.ask("PATCH", f"{path}/status", {"status": {"allocatable": allocatable}}, "application/merge-patch+json")

    less = {
        "cpu": f"{int(quantity.milli_of(capacity['cpu']) * share)}m",
        "memory": str(int(quantity.value_of(capacity["memory"]) * share)),
    }
    patch(less)
    return Begun("allocatable", {"node": node, **less}, lambda: patch({name: capacity[name] for name in less}))


def _rules(ground: Ground, resource: str, document: dict[str, Any]) -> Begun:
    plural, _, group = resource.partition(".")
    path = f"/{f'apis/{group}' if group else 'api'}/v1/namespaces/{NAMESPACE}/{plural}"
    ground.ask("POST", path, document)
    name = document["metadata"]["name"]
    return Begun("rules", {"rule": f"{plural}/{name}"}, lambda: _deleted(ground, f"{path}/{name}"))


def _deleted(ground: Ground, path: str) -> None:
    ground.ask("DELETE", path)


def _hostile(ground: Ground, rng: Random) -> Begun:
    client = HostileClient(ground.kubeconfig, rng)
    begun = Begun("hostile", {})

    def heal() -> None:
        client.end()
        begun.fired, begun.args["requests"] = client.sent > 0, client.sent
        if client.failures:
            raise NotDoneError(f"the API server answered {client.failures[0]}")

    begun.heal = heal
    return begun


def _slow_readers(ground: Ground, count: int) -> Begun:
    open_sockets = [_watch(ground) for _ in range(count)]

    def heal() -> None:
        for one in open_sockets:
            one.close()

    return Begun("slow readers", {"watches": count}, heal)


def _herd(ground: Ground, count: int) -> Begun:
    """Watchers are connected, the API server dies, and all of them come back together."""
    herd = [_watch(ground) for _ in range(count)]
    before = ground.components()["apiserver"]["restarts"]
    ground.kill("apiserver")
    ground.until("the API server is back", lambda: ground.components()["apiserver"]["restarts"] > before)
    again: list[ssl.SSLSocket] = []
    for one in herd:
        one.close()
    for _ in range(count):
        with suppress(NotDoneError):
            again.append(_watch(ground))

    def heal() -> None:
        for one in again:
            one.close()

    return Begun("herd", {"machine": "apiserver", "watchers": len(again)}, heal, fired=len(again) == count)


def _watch(ground: Ground) -> ssl.SSLSocket:
    """A watch of all pods from the beginning, of which nothing will be read, as a bare connection."""
    context = context_of(ground.kubeconfig)
    server = urlsplit(context.server)
    assert context.tls is not None and server.hostname and server.port
    headers = "".join(f"{name}: {value}\r\n" for name, value in context.headers.items())
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    request = f"GET {pods_path()}?{query} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"
    deadline = time.monotonic() + REACHED_SECONDS
    while True:
        try:
            bare = socket.create_connection((server.hostname, server.port), timeout=5)
            made = context.tls.wrap_socket(bare, server_hostname=server.hostname)
            made.sendall(request.encode())
            return made
        except OSError as why:
            if time.monotonic() > deadline:
                raise NotDoneError(f"a watch cannot be opened: {why}") from why
            time.sleep(0.01)
