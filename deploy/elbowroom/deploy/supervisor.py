"""The process that brings a cluster up, keeps it up and takes it down.

It has a placement make a process for each component, and lets ``Fleet`` decide what to do about whatever happens: reports of the
processes over a ROUTER, deaths told by the placement, Nodes that come and go in the API, and what people ask for over the control
socket. It holds nothing that another life could not find out again.

Where processes are on several machines it also tells those that dial somebody where that one listens, whenever it does so anew; and
whoever speaks to it over the line of a life that is over is told to end.
"""

import asyncio
import builtins
import itertools
import json
import os
import re
import secrets
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import uvloop
import zmq

from elbowroom.api.objects import Node
from elbowroom.apiserver.drivers.certificates import make_credentials, write_kubeconfig
from elbowroom.client import BusClient
from elbowroom.deploy import log
from elbowroom.deploy.control import LINE_BYTES_MAX
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.fleet import Action, Fleet, Forget, Signal, Spawn, State, Tell
from elbowroom.deploy.home import Home, make_sockets, remove_sockets
from elbowroom.deploy.home import State as HomeState
from elbowroom.deploy.placement import Forks, Placement
from elbowroom.deploy.planning import Plan, is_free, kept_nodes
from elbowroom.deploy.topology import CONTROL_PLANE, EMULATED, Packing, hardware_of, is_node_name, metrics_url
from elbowroom.host.clock import Clock
from elbowroom.host.gatekeeper import Gatekeeper
from elbowroom.host.shared import TRUNK
from elbowroom.host.sockets import Listener, Sent
from elbowroom.host.spec import (
    AddMachine,
    Arm,
    Armed,
    BreakDisk,
    Ended,
    Fired,
    HostSpec,
    MachineSpec,
    Order,
    PauseMachine,
    PeerMoved,
    Ready,
    RestartMachine,
    ResumeMachine,
    Shutdown,
    Started,
    StepClock,
    decode_report,
    encode,
)
from elbowroom.machine import parse_time
from elbowroom.machine.steps import STEPS, is_passed_at_start, is_step
from elbowroom.rpc import create

READY_SECONDS, READY_SECONDS_A_NODE = 60.0, 0.1
COUNTED_EVERY_SECONDS = 0.05
"""How often it is told, at most, how many nodes are Ready."""
TRIES = 3
"""How often a component may fail to begin, while the cluster comes up, before all is given up."""
STOP_SECONDS = 4.0
SIGNAL_SECONDS = 10.0
FENCE_SECONDS = 0.5
FENCED_MAX = 1000
HISTORIES_KEPT = 10
NODES_GIVE_WAY = 5
"""How nice a node's processes are. Nodes are many and here share the processors of the control plane, which real ones do not: where
those are short they fall behind and catch up, newest first, while the API server and its clients go on."""

NEXT_TRY_SECONDS = 0.1
CREATED_ABREAST = 256
"""Nodes that are being created at a time."""

Report = Callable[[dict[str, Any]], None]

_IN_PLACE_OF: Mapping[signal.Signals, Callable[[str], Order]] = {
    signal.SIGSTOP: PauseMachine,
    signal.SIGCONT: ResumeMachine,
    signal.SIGTERM: RestartMachine,
}
"""What a process is told that no signal reaches."""


def run(plan: Plan, tell: Report) -> str:
    """Bring the cluster up and keep it until SIGINT, SIGTERM or ``down``; what went wrong, or "".

    ``tell`` is given each step on the way: ``serving``, ``nodes``, ``ready``, ``note``.
    """
    lock = _lock(plan.home)
    if lock is None:
        return f"cluster {plan.home.name!r} is up already"
    with lock:
        if plan.home.clean_up_after_death():
            tell({"event": "note", "text": f"cluster {plan.home.name}: its last supervisor was killed; cleaned up what it left"})
        sockets, port = make_sockets(), plan.port
        try:
            port = port or _usual_port(plan.home)
            plan.home.write_state(HomeState(os.getpid(), str(sockets), port))
            return uvloop.run(Supervisor(plan, tell, sockets, port).run())
        except UserError as why:
            return str(why)
        finally:
            remove_sockets(str(sockets))
            plan.home.write_state(HomeState(port=port))


class Supervisor:
    """One life of a cluster."""

    def __init__(self, plan: Plan, tell: Report, sockets: Path, port: int) -> None:
        spec = plan.cluster.spec
        self._plan, self._home, self._tell = plan, plan.home, tell
        self._sockets, self._port = sockets, port
        self._topology = plan.topology(
            sockets,
            plan.data,
            dict(plan.cluster.profile().as_config()),
            spec.apiserver.store,
            spec.kubelets_per_process,
            spec.scheduler.config,
        )
        self._run_id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"
        self._placement = self._placement_of(plan)
        self._packing = Packing(spec.kubelets_per_process, together=not self._placement.is_local)
        self._fleet = Fleet()
        self._lines: dict[str, str] = {}
        """Each process's line of its present life."""
        self._lives = itertools.count(1)
        self._over: dict[str, None] = {}
        """Lines of lives that ended without being told to, in order: some may still be alive where nobody can see."""
        self._addresses: dict[str, str] = {}
        """Where machines listen."""
        self._epochs: dict[str, int] = {}
        self._history = self._home.histories / self._run_id
        self._scale, self._origin = spec.time_scale, _origin(plan.data, spec.time_scale, spec.apiserver.store)
        self._began = time.monotonic()
        self._clock = Clock(self._scale, self._origin)
        self._born = self._clock.now()
        self._nodes: dict[str, Node] = {}
        self._emulated: dict[str, None] = {}
        self._said_ready: dict[str, None] = {}
        """Of the emulated nodes those that are Ready by the word of a kubelet of this life."""
        self._wanted = {manifest["metadata"]["name"] for manifest in plan.cluster.manifests()}
        self._count_from = 0.0
        self._armed: set[tuple[str, str]] = set()
        self._at_start: dict[str, list[Arm]] = {}
        """Failpoints that wait for a machine's next life."""
        self._problem = ""
        self._is_up = False
        self._stopping = False
        self._bus: BusClient | None = None
        self._watching: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def _server(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    # ------------------------------------------------------------ a life

    async def run(self) -> str:
        """Up, until told to stop, and down again; what went wrong, or ""."""
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._stop)
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        keys = self._placement.keys
        gatekeeper = Gatekeeper(self._loop, context, keys) if keys is not None else None
        try:
            address = await self._placement.start()
            self._processes = Listener(self._loop, context, address, self._on_report, keys)
            server = await asyncio.start_unix_server(self._on_client, str(self._sockets / "control.sock"), limit=LINE_BYTES_MAX)
            try:
                self._in_background(self._watch_exits())
                if not self._placement.is_local:
                    self._in_background(self._fence())
                await self._come_up()
                await self._until(lambda: self._stopping)
                return self._problem
            finally:
                server.close()
                await self._go_down()
                self._processes.close()
        finally:
            await self._placement.stop()
            if gatekeeper is not None:
                gatekeeper.close()
            context.term()

    def _placement_of(self, plan: Plan) -> Placement:
        ray = plan.cluster.spec.ray
        if plan.cluster.spec.placement == "ray":
            from elbowroom.deploy.actors import Actors

            return Actors(ray.address, plan.data / "ray" / self._run_id, ray.cpus_per_process, plan.import_path)
        return Forks(self._topology, plan.preload, plan.import_path)

    async def _come_up(self) -> None:
        _forget_old(self._home)
        if self._plan.cluster.spec.apiserver.store == "memory":
            self._topology.forget_all_nodes()
        housed = self._placement.housed
        self._fleet.want(housed(self._topology.apiserver(self._facade()), ""), kind="apiserver", process="apiserver")
        for name in ("scheduler", "controllers"):
            self._fleet.want(housed(self._topology.service(name), ""), kind=name, process=name)
        self._look()
        await self._until(lambda: self._fleet.components["apiserver"].ready, READY_SECONDS, "the API server does not come up")
        if self._stopping:
            return
        credentials = make_credentials(self._plan.data / "pki")
        write_kubeconfig(self._home.kubeconfig, credentials, self._server, name=self._home.name)
        self._tell({"event": "serving", "server": self._server})
        address = self._topology.apiserver_address if self._placement.is_local else self._addresses["apiserver"]
        self._bus = BusClient("supervisor", address, clock=self._clock, keys=self._placement.keys)
        await self._bus.start()
        self._watching = self._in_background(self._watch_nodes(self._bus))
        await self._create_nodes(self._bus)
        patience = READY_SECONDS + READY_SECONDS_A_NODE * len(self._wanted)
        await self._until(self._all_ready, patience, "not all nodes became Ready")
        if not self._stopping:
            self._is_up = True
            if self._plan.asks_for_nodes and (kept := kept_nodes(self._plan.cluster.manifests(), self._nodes)):
                begin_anew = f"for a new one choose another --name, or remove {self._plan.data} while it is down"
                self._tell({"event": "note", "text": f"cluster {self._home.name} goes on from its data: {kept}; {begin_anew}"})
            ready = {
                "event": "ready",
                "kubeconfig": str(self._home.kubeconfig),
                "nodes": len(self._nodes),
                "seconds": time.monotonic() - self._began,
            }
            self._tell(ready)

    async def _go_down(self) -> None:
        self._stopping = True
        if self._watching is not None:
            self._watching.cancel()
        if self._bus is not None:
            await self._bus.close()
        for stage in (lambda name: name != "apiserver", lambda name: True):
            for name in [name for name in self._fleet.components if stage(name)]:
                self._fleet.unwant(name)
            self._look()
            with suppress(UserError):
                await self._until(lambda stage=stage: not any(map(stage, self._fleet.processes())), STOP_SECONDS, "hangs")  # type: ignore[misc]
        if self._timer is not None:
            self._timer.cancel()

    # ------------------------------------------------------------ nodes

    async def _create_nodes(self, bus: BusClient) -> None:
        abreast = asyncio.Semaphore(CREATED_ABREAST)

        async def one(manifest: dict[str, Any]) -> None:
            async with abreast:
                answer = await bus.api(create("nodes", manifest))
            if answer.status not in (201, 409):
                raise UserError(f"node {manifest['metadata']['name']}: {_message(answer.body)}")

        await asyncio.gather(*(one(manifest) for manifest in self._plan.cluster.manifests()))

    async def _create_nodes_anew(self, bus: BusClient) -> None:
        """A store in memory ended with its process: the cluster begins as it came up, with its Nodes and nothing else."""
        while not self._stopping and self._fleet.components["apiserver"].ready:
            try:
                await self._create_nodes(bus)
                return
            except UserError:  # it has ended again, or cannot be reached yet
                await asyncio.sleep(NEXT_TRY_SECONDS)

    async def _watch_nodes(self, bus: BusClient) -> None:
        async for change in bus.watch("nodes", Node):
            self._note_node(change.key, change.new)
            self._place(change.key)
            self._happened()

    def _note_node(self, name: str, node: Node | None) -> None:
        for known in (self._nodes, self._emulated, self._said_ready):
            known.pop(name, None)
        if node is not None:
            self._nodes[name] = node
            if _is_emulated(node):
                self._emulated[name] = None
                if _says_ready(node, self._born):
                    self._said_ready[name] = None

    def _place(self, name: str) -> None:
        """There should be a kubelet and a runtime for an emulated Node, and for no other."""
        node = self._nodes.get(name)
        machines = (f"kubelet/{name}", f"runtime/{name}")
        known = self._fleet.components.get(machines[0])
        is_emulated = node is not None and _is_emulated(node)
        if node is not None and is_emulated and known is not None and known.identity == node.metadata.uid:
            return  # a heartbeat, as nearly always
        if node is None or not is_emulated or not is_node_name(name):
            for machine in machines:
                self._fleet.unwant(machine, forget=True)
            self._packing.leave(name)
        else:
            processes = self._packing.processes(name)
            specs = (self._topology.kubelet(name), self._topology.runtime(name, hardware_of(node.metadata.annotations)))
            for spec, process in zip(reversed(specs), reversed(processes), strict=True):
                uid = node.metadata.uid
                self._fleet.want(self._placement.housed(spec, uid), kind=spec.name.partition("/")[0], process=process, identity=uid)
        self._look()

    def _is_ready(self, node: Node) -> bool:
        """It says so, and its kubelet, if it has one, has not ended since."""
        kubelet = self._fleet.components.get(f"kubelet/{node.name}")
        return _says_ready(node) if kubelet is None else node.name in self._said_ready and kubelet.ready

    def _all_ready(self) -> bool:
        now = time.monotonic()
        if now < self._count_from:
            self._loop.call_at(self._loop.time() + self._count_from - now, self._happened)
            return False
        self._count_from = now + COUNTED_EVERY_SECONDS
        self._tell({"event": "nodes", "ready": len(self._said_ready), "total": max(len(self._wanted), len(self._emulated))})
        if len(self._said_ready) < len(self._wanted) or not self._wanted <= set(self._nodes):
            return False  # nearly always so, while thousands come up: nobody is looked at one by one
        mine = [node for name, node in self._nodes.items() if f"kubelet/{name}" in self._fleet.components]
        return all(map(self._is_ready, mine)) and all(c.ready for c in self._fleet.components.values())

    # ------------------------------------------------------------ processes

    def _facade(self) -> dict[str, Any]:
        level = self._plan.cluster.spec.apiserver.audit
        log = {} if level == "None" else {"audit": {"level": level, "path": str(self._home.logs / "audit.log")}}
        return {
            **log,
            "host": self._plan.host,
            "port": self._port,
            "credentials": str(self._plan.data / "pki"),
            "timeScale": self._scale,
            "origin": self._origin,
            "previews": self._plan.cluster.spec.profile == "lab",
            "gates": [gate for gate, is_on in self._plan.cluster.spec.feature_gates.items() if is_on],
        }

    def _look(self) -> None:
        """Compare what is wanted with what is there, soon and once."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._reconcile)

    def _reconcile(self) -> None:
        self._scheduled = False
        for action in self._fleet.reconcile(time.monotonic()):
            self._do(action)
        if self._timer is not None:
            self._timer.cancel()
        due = self._fleet.due()
        self._timer = self._loop.call_later(max(0.0, due - time.monotonic()), self._reconcile) if due is not None else None
        self._happened()

    def _do(self, action: Action) -> None:
        match action:
            case Spawn(process, machines):
                self._lines[process] = f"{process}#{next(self._lives)}"
                spec = HostSpec(
                    process,
                    [self._informed(machine) for machine in machines],
                    control=self._processes.address,
                    history=str(self._history),
                    run=self._run_id,
                    seed=secrets.randbits(63),
                    time_scale=self._scale,
                    origin=self._origin,
                    log=str(log.file_of(self._home, process)),
                    nice=0 if process in CONTROL_PLANE else NODES_GIVE_WAY,
                    line=self._lines[process],
                    armed=[order for machine in machines for order in self._at_start.pop(machine.name, ())],
                )
                for order in spec.armed:
                    self._fleet.arm(order.machine, stay_dead=False)
                self._in_background(self._spawn(spec))
            case Tell(process, AddMachine(machine)):
                self._send(process, AddMachine(self._informed(machine)))
            case Tell(process, order):
                self._send(process, order)
            case Signal(process, pid, number):
                if not self._placement.signal(process, pid, number):
                    instead = _IN_PLACE_OF[signal.Signals(number)]
                    for name in self._fleet.inside(process):
                        self._send(process, instead(name))
            case Forget(_, spec):
                self._placement.forget(spec)

    def _send(self, process: str, order: Order) -> Sent:
        return self._processes.send(self._lines.get(process, process), encode(order))

    def _on_report(self, line: str, frame: bytes) -> None:
        try:
            report = decode_report(frame)
        except msgspec.MsgspecError:
            return
        line = line.removesuffix("!")  # last words come over a line of their own
        if self._lines.get(line.partition("#")[0]) != line:
            self._over[line] = None
            return
        match report:
            case Started(name, _):
                self._fleet.started(name)
                for peer, address in self._addresses.items():
                    self._send(name, PeerMoved(peer, address))
            case Ready(machine, epoch, facts, address):
                self._epochs[machine] = max(epoch, self._epochs.get(machine, 0))
                self._fleet.ready(time.monotonic(), machine, epoch, facts)
                if not self._placement.is_local and address:
                    self._moved(machine, address)
                if machine == "apiserver" and self._bus is not None and self._plan.cluster.spec.apiserver.store == "memory":
                    self._in_background(self._create_nodes_anew(self._bus))
            case Ended(machine, why):
                self._fleet.ended(machine, why)
                if why.startswith("failed"):
                    self._on_failure(machine, why)
            case Armed(machine, label):
                self._armed.add((machine, label))
            case Fired():
                pass  # the death that follows says it all
        self._look()

    def _informed(self, spec: MachineSpec) -> MachineSpec:
        """The machine with what it must be told where processes are on several machines: where those listen that it dials, and an
        epoch above that of any earlier life, whatever that one's clock said."""
        if self._placement.is_local:
            return spec
        dial = {
            peer: f"{address}{self._addresses.get(peer, '')}" if address in ("", TRUNK) else address
            for peer, address in spec.dial.items()
        }
        epoch = self._epochs[spec.name] = max(time.time_ns(), self._epochs.get(spec.name, 0) + 1)
        return msgspec.structs.replace(spec, dial=dial, config={**spec.config, "epoch": epoch})

    def _moved(self, machine: str, address: str) -> None:
        """A machine listens somewhere: tell whoever dials it."""
        if address.startswith("tcp://") and self._addresses.get(machine) != address:
            self._addresses[machine] = address
            for process in self._fleet.hearing():
                self._send(process, PeerMoved(machine, address))
            if self._bus is not None and machine == "apiserver":
                self._bus.redial(address)

    async def _fence(self) -> None:
        """Tell lives that are over to end, as soon as they can hear it: one may have outlived its machine's raylet."""
        while True:
            await asyncio.sleep(FENCE_SECONDS)
            for line in list(self._over):
                if self._processes.send(line, encode(Shutdown())) is Sent.PASSED or len(self._over) > FENCED_MAX:
                    del self._over[line]

    async def _spawn(self, spec: HostSpec) -> None:
        pid = await self._placement.spawn(spec)
        if pid:
            self._fleet.forked(spec.process, pid)
            self._look()

    async def _watch_exits(self) -> None:
        async for process, how in self._placement.exits():
            line = self._lines.pop(process, None)
            if line is not None and not self._placement.is_local:
                self._over[line] = None
            self._fleet.exited(time.monotonic(), process, how)
            self._look_for_hopeless()
            self._look()

    def _on_failure(self, machine: str, why: str) -> None:
        """A machine could not begin, or failed."""
        print(f"{machine}: {why}", file=sys.stderr, flush=True)
        component = self._fleet.components.get(machine)
        if machine == "apiserver" and component is not None and not component.epoch:
            self._give_up(machine, why)  # its store will not be another at the next try

    def _look_for_hopeless(self) -> None:
        """Who has never begun and died some times since will not begin at the next try either."""
        for component in self._fleet.components.values():
            if not self._is_up and not component.epoch and component.restarts >= TRIES:
                self._give_up(component.name, component.last_end)

    def _give_up(self, machine: str, why: str) -> None:
        """While the cluster comes up, that is the end of it, and its reason what people need."""
        if not self._is_up and not self._stopping:
            self._problem = f"{machine} cannot start: {_reason(why)}; its log is {log.file_of(self._home, machine)}"
            self._stop()

    # ------------------------------------------------------------ people

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.LimitOverrunError, ValueError):
            try:
                request = json.loads(await reader.readline())
                answer: dict[str, Any] = {"ok": await self._answer(request)}
            except UserError as why:
                answer = {"error": str(why)}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def _answer(self, request: Mapping[str, Any]) -> Any:
        match request:
            case {"do": "status"}:
                return self._status()
            case {"do": "down"}:
                self._stop()
                return True
            case {"do": "kill", "component": str(name), "signal": str(word), "at": at, "hits": int(hits), "stayDead": bool(stay)}:
                await self._kill(name, signal.Signals[f"SIG{word}"], at, hits, stay_dead=stay)
                return True
            case {"do": "break disk", "component": str(name), "how": "full" | "fsync" as how, "commits": int(commits)}:
                self._order(name, BreakDisk(name, how, commits))
                return True
            case {"do": "step clock", "component": str(name), "seconds": float(seconds)}:
                self._order(name, StepClock(seconds))
                return True
            case _:
                raise UserError("the supervisor does not know that request; is it of another version?")

    def _status(self) -> dict[str, Any]:
        fleet = self._fleet
        order = {name: place for place, name in enumerate(CONTROL_PLANE)}
        names = sorted(fleet.components, key=lambda name: (order.get(name, len(order)), name.partition("/")[0], name))
        return {
            "name": self._home.name,
            "kubeconfig": str(self._home.kubeconfig),
            "server": self._server,
            "dashboard": None,
            "history": str(self._history),
            "components": [
                {
                    "name": name,
                    "kind": fleet.components[name].kind,
                    "pid": fleet.pid(name) or None,
                    "state": fleet.state(name).value,
                    "restarts": fleet.components[name].restarts,
                    "metrics": metrics_url(self._server, name),
                    **self._where(name),
                }
                for name in names
            ],
            "nodes": {"total": len(self._nodes), "ready": sum(map(self._is_ready, self._nodes.values()))},
        }

    def _where(self, name: str) -> dict[str, Any]:
        """The machine on which a component's process lives, where that need not be this one."""
        if self._placement.is_local:
            return {}
        place = self._placement.place(self._fleet.components[name].process) if self._fleet.pid(name) else None
        return {"place": {"node": place.node, "ip": place.ip} if place is not None else None}

    async def _kill(self, name: str, number: signal.Signals, at: str | None, hits: int, *, stay_dead: bool) -> None:
        fleet = self._fleet
        component = fleet.components.get(name)
        if component is None:
            raise UserError(f"no component {name!r}; there is: {', '.join(sorted(fleet.components))}")
        if not fleet.pid(name) and not (component.stay_dead and number == signal.SIGCONT):
            raise UserError(f"{name} has no process now (it is {fleet.state(name)})")
        if at is not None:
            await self._arm(name, number, at, hits, stay_dead=stay_dead)
            return
        if number == signal.SIGTERM and component.frozen:
            raise UserError(f"{name} is frozen and would not hear SIGTERM; thaw it first, or use --signal KILL")
        pid, restarts, shared = fleet.pid(name), component.restarts, fleet.is_shared(name)
        for action in fleet.kill(name, number, stay_dead=stay_dead):
            self._do(action)
        self._look()
        if number in (signal.SIGKILL, signal.SIGTERM):

            def is_over() -> bool:
                return component.restarts > restarts or not fleet.holds(name) or (not shared and fleet.pid(name) != pid)

            await self._until(is_over, SIGNAL_SECONDS, f"{name} did not end")
        elif not shared and pid and self._placement.is_local:
            await self._until_stopped(pid, number == signal.SIGSTOP)

    def _order(self, name: str, order: Order) -> None:
        """Tell a component's process."""
        if name not in self._fleet.components or not self._fleet.pid(name):
            raise UserError(f"{name} has no process now")
        if self._send(self._fleet.components[name].process, order) is not Sent.PASSED:
            raise UserError(f"{name} cannot be reached")

    async def _arm(self, name: str, number: signal.Signals, label: str, hits: int, *, stay_dead: bool) -> None:
        action = {signal.SIGKILL: "kill", signal.SIGSTOP: "stop"}.get(number)
        if action is None:
            raise UserError("--at goes with --signal KILL or STOP")
        kind = name.partition("/")[0]
        if not is_step(kind, label):
            raise UserError(f"{name} never passes a step {label!r}; it has {STEPS[kind] or 'none'}")
        if is_passed_at_start(label) and not self._fleet.is_shared(name):
            self._at_start.setdefault(name, []).append(Arm(name, label, hits, action))
            await self._kill(name, signal.SIGKILL, None, 1, stay_dead=False)
            return
        self._armed.discard((name, label))
        process = self._fleet.arm(name, stay_dead=stay_dead) if action == "kill" else self._fleet.components[name].process
        if self._send(process, Arm(name, label, hits, action)) is not Sent.PASSED:
            raise UserError(f"{name} cannot be reached")
        await self._until(lambda: (name, label) in self._armed, SIGNAL_SECONDS, f"{name} did not take the failpoint {label}")
        if is_passed_at_start(label):
            await self._kill(name, signal.SIGKILL, None, 1, stay_dead=False)

    async def _until_stopped(self, pid: int, stopped: bool) -> None:
        deadline = time.monotonic() + SIGNAL_SECONDS
        while _is_stopped(pid) is not stopped and time.monotonic() < deadline:
            await asyncio.sleep(0.002)

    # ------------------------------------------------------------ waiting

    def _stop(self) -> None:
        self._stopping = True
        self._happened()

    def _happened(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _until(self, fact: Callable[[], bool], seconds: float | None = None, otherwise: str = "") -> None:
        """Return when ``fact`` holds (or, while coming up, when all is to stop); ``UserError`` says what did not happen."""
        try:
            async with asyncio.timeout(seconds):
                going_down = self._stopping
                while not fact() and self._stopping == going_down:
                    await self._news.wait()
        except TimeoutError as why:
            raise UserError(f"{otherwise} within {seconds:.0f} s{self._hint()}") from why

    def _hint(self) -> str:
        """Who is not well, for a message."""
        ill = [c for c in self._fleet.components.values() if not c.ready and self._fleet.state(c.name) is not State.FROZEN]
        reasons = [f"{c.name} {c.last_end or 'has not started'}" for c in ill]
        late = [f"{name} is not Ready" for name, node in sorted(self._nodes.items()) if not self._is_ready(node)]
        first = (reasons + late)[:3]
        return f" ({'; '.join(first)}; see 'elbowroom logs', {self._home.logs})" if first else ""

    def _in_background(self, work: Awaitable[None]) -> asyncio.Task[None]:
        async def guarded() -> None:
            try:
                await work
            except Exception as why:  # nobody awaits it, and without it there is no cluster
                if not self._stopping:
                    traceback.print_exc()
                    self._problem = f"the supervisor failed: {why}"
                    self._stop()

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _is_emulated(node: Node) -> bool:
    """Is it to have a kubelet and a runtime of ours?"""
    return node.metadata.annotations.get(EMULATED[0]) == EMULATED[1]


def _says_ready(node: Node, since: int = 0) -> bool:
    """Is it Ready, by a word of ``since`` or later? A store that outlived its cluster still says that all was well."""
    ready = node.condition("Ready")
    if ready is None or ready.status != "True" or not ready.last_heartbeat_time:
        return False
    return not since or parse_time(ready.last_heartbeat_time) + 999_999_999 >= since


def _lock(home: Home) -> Any:
    """The home's lock; somebody who only looks whether it is taken may hold it for a moment."""
    deadline = time.monotonic() + 0.3
    while (lock := home.lock()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return lock


def _usual_port(home: Home) -> int:
    """The port of the last life if it is free, else another; below the range from which the kernel takes ports for clients."""
    last = home.state().port
    if last and is_free(last):
        return last
    for _ in range(100):
        port = 10_000 + secrets.randbelow(20_000)
        if is_free(port):
            return port
    raise UserError("no free port found; choose one with --port")


def _origin(data: Path, scale: float, store: str) -> int:
    """When emulated time began to run at ``scale``: the same in every life of the data, so that it never goes back."""
    path = data / "time.json"
    if store == "sqlite" and path.exists():
        kept = json.loads(path.read_text())
        if kept["scale"] == scale:
            return int(kept["origin"])
        if kept["scale"] != 1.0:
            made = f"{kept['scale']:g}"
            raise UserError(
                f"{data} was made with --time-scale {made}, without which its clock would go back; or use another --data-dir"
            )
    origin = time.time_ns()
    path.write_text(json.dumps({"scale": scale, "origin": origin}))
    return origin


def _forget_old(home: Home) -> None:
    """Logs are of one life; of histories the last few are kept."""
    import shutil

    for file in home.logs.glob("*.log"):
        if file.name != "supervisor.log":
            file.unlink(missing_ok=True)
    for old in sorted(home.histories.iterdir())[: -HISTORIES_KEPT + 1]:
        shutil.rmtree(old, ignore_errors=True)


def _reason(why: str) -> str:
    """The words of the failure that a host reports as ``failed: SomeError('words')``; a built-in error's name is one of them."""
    found = re.fullmatch(r"failed: (\w+)\((['\"])(.*)\2\)", why, re.DOTALL)
    if found is None:
        return why.removeprefix("failed: ")
    return f"{found[1]}: {found[3]}" if hasattr(builtins, found[1]) else found[3]


def _is_stopped(pid: int) -> bool | None:
    """Is the process stopped by a signal? None if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return None


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body).get("message", ""))
    except ValueError:
        return body.decode(errors="replace")
