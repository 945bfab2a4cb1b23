"""A host process: one loop, one ZeroMQ context, the machines of a ``HostSpec``, and the line to the supervisor."""

import asyncio
import ctypes
import gc
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import uvloop
import zmq

from elbowroom.cache import Backoff
from elbowroom.host import spec as control
from elbowroom.host.clock import Clock, Timers
from elbowroom.host.failpoints import Failpoints, delay_seconds
from elbowroom.host.gatekeeper import Gatekeeper
from elbowroom.host.history import History
from elbowroom.host.incarnation import Incarnation, KilledError, Store
from elbowroom.host.keys import Keys, secure
from elbowroom.host.samples import Samples
from elbowroom.host.shared import TRUNK, Neighbours, Trunk
from elbowroom.host.sockets import Pump, configure
from elbowroom.host.spec import Arm, HostSpec, MachineSpec
from elbowroom.machine import seconds
from elbowroom.machine.records import Author

_LAST_WORDS_MS = 500
_TRUNK_LINGER_MS = 50
ANY = "tcp://*:"
"""How an address begins that is one of the process's interface."""
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
SWITCH_SECONDS = 0.0005
"""How long the loop may keep the interpreter from a thread that wants it: a disk's thread does after each fsync. With Python's five
milliseconds a commit takes 5.3 ms where the loop is busy, with these 0.75; the disk itself needs 0.2."""

WRITERS = 8
"""Threads that write files at most. Where a disk takes its time, so many machines' commits are under way at once, and the kernel
makes durable together what is asked for together: three to four times as many a second as by two threads, each a sixth cheaper."""

COLLECTED_AFTER = (10_000, 20, 50)
"""Nearly all that a machine makes is freed by itself: the collector, called every 700 objects, took a twentieth of the time."""


class Host:
    """The machines of one process. ``serve`` returns when it was told to shut down, and raises what a machine of its own process
    raised; a machine that shares the process is started again instead, after a back-off."""

    def __init__(self, spec: HostSpec, loop: asyncio.AbstractEventLoop) -> None:
        self._spec = spec
        self._shared = len(spec.machines) != 1
        self.loop = loop
        self._thread = threading.get_ident()
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        if self._shared:
            self.context.set(zmq.MAX_SOCKETS, 60_000)  # four sockets for each dialled peer; a megabyte for the table
        self.clock = Clock(spec.time_scale, spec.origin)
        self.timers = Timers(loop, self.clock)
        self.failpoints = Failpoints()
        for order in spec.armed:
            self.failpoints.arm(order)
        self.files_pool = ThreadPoolExecutor(WRITERS, "files")
        self.neighbours = Neighbours(loop)
        self.samples = Samples(loop.time)
        self._trunks: dict[str, Trunk] = {}
        self._running: dict[str, Incarnation] = {}
        self._machines: dict[str, MachineSpec] = {}
        self._parts: dict[bytes, dict[str, Any]] = {}
        """Of their configurations: one of each that is equal."""
        self._stores: dict[str, Store] = {}
        self._epochs: dict[str, int] = {}
        self._backoff = Backoff(0.2, 30.0)
        self._jobs: asyncio.Queue[Callable[[], Awaitable[None]] | None] = asyncio.Queue()
        self._death: BaseException | None = None
        self._line = spec.line or spec.process
        self._gatekeeper = Gatekeeper(loop, self.context, spec.keys) if spec.keys is not None else None
        self._control: Pump | None = None
        if spec.control:
            self._control = Pump(loop, self._to_supervisor(self.context, self._line), self._on_order)

    @property
    def keys(self) -> Keys | None:
        return self._spec.keys

    def _to_supervisor(self, context: "zmq.Context[zmq.Socket[bytes]]", name: str) -> "zmq.Socket[bytes]":
        socket = context.socket(zmq.DEALER)
        configure(socket, self._spec.control)
        secure(socket, self._spec.control, self._spec.keys, listens=False)
        socket.setsockopt(zmq.ROUTING_ID, name.encode())
        socket.connect(self._spec.control)
        return socket

    # ------------------------------------------------------------ life

    async def serve(self) -> None:
        """Run until ``shut_down``."""
        self.report(control.Started(self._spec.process, os.getpid()))
        for machine in self._spec.machines:
            self._machines[machine.name] = self._frugal(machine)
            self._later(lambda name=machine.name: self._begin(name))  # type: ignore[misc]
        try:
            while (job := await self._jobs.get()) is not None:
                await job()
                await asyncio.sleep(0)  # a thousand machines may begin one after the other: those that have are heard meanwhile
        finally:
            await self._end()
        if self._death is not None:
            raise self._death

    def shut_down(self) -> None:
        """End in order: what machines have decided is carried out, histories get their ``end``."""
        self._jobs.put_nowait(None)

    async def _end(self) -> None:
        for name, incarnation in list(self._running.items()):
            if incarnation.alive:
                await incarnation.stop()
                self.report(control.Ended(name, "stopped"))
            else:
                await incarnation.abandon()
        for store in self._stores.values():
            try:
                await store.close(self.loop)
            except Exception:
                traceback.print_exc()  # what is durable stays so
        self.files_pool.shutdown()
        for trunk in self._trunks.values():
            trunk.close(linger_ms=_TRUNK_LINGER_MS)
        if self._control is not None:
            self._control.close(linger_ms=_LAST_WORDS_MS)
        if self._gatekeeper is not None:
            self._gatekeeper.close()
        self.context.term()

    def report(self, report: control.Report) -> None:
        """Tell the supervisor, if there is one."""
        if self._control is not None:
            self._control.send([control.encode(report)])

    # ------------------------------------------------------------ machines

    async def _begin(self, name: str) -> None:
        machine = self._machines.get(name)
        if machine is None or name in self._running:
            return
        before = self._epochs.get(name)
        epoch = machine.config.get("epoch", 0) if before is None else 0
        epoch = epoch or max(time.time_ns(), (before or 0) + 1)
        self._epochs[name] = epoch
        if name not in self._stores:
            self._stores[name] = Store(machine.disk, self.files_pool)
        if machine.bind.startswith(ANY):
            machine = msgspec.structs.replace(machine, bind=machine.bind.replace("*", self._spec.interface, 1))
        incarnation = self._running[name] = Incarnation(self, machine, epoch, self._stores[name], self._spec.seed)
        if before is None and self._spec.moved and machine.disk.path and machine in self._spec.machines:
            incarnation.note("disk.new", {"why": "on another machine than before"})
        try:
            facts = await incarnation.start()
        except Exception as why:
            if incarnation.alive:
                incarnation.fail(why)
            return
        if not incarnation.alive:
            return
        self.report(control.Ready(name, epoch, facts, incarnation.address))

    def _frugal(self, machine: MachineSpec) -> MachineSpec:
        """The same with parts of its configuration that others have too: thousands of kubelets are of one profile."""
        config = {
            name: self._parts.setdefault(msgspec.msgpack.encode(value), value) if isinstance(value, dict) else value
            for name, value in machine.config.items()
        }
        return msgspec.structs.replace(machine, factory=sys.intern(machine.factory), config=config)

    async def _restart(self, name: str, why: str) -> None:
        incarnation = self._running.pop(name, None)
        if incarnation is not None:
            await incarnation.abandon()
            await self._stores[name].reopen(self.loop)
            self.report(control.Ended(name, why))
        await self._begin(name)

    async def _remove(self, name: str) -> None:
        self._machines.pop(name, None)
        incarnation = self._running.pop(name, None)
        if incarnation is not None:
            await (incarnation.stop() if incarnation.alive else incarnation.abandon())
            self.report(control.Ended(name, "removed"))
        store = self._stores.pop(name, None)
        if store is not None:
            await store.close(self.loop)

    def failed(self, incarnation: Incarnation, why: BaseException) -> None:
        """A machine raised or its disk failed. If it has the process to itself, the process ends, else the machine starts anew."""
        name = incarnation.spec.name
        if isinstance(why, KilledError):
            self._later(lambda: self._restart_if(incarnation, "restarted"))
            return
        traceback.print_exception(why)
        if not self._shared:
            self._death = why
            self.report(control.Ended(name, f"failed: {why!r}"))
            self.shut_down()
            return
        wait = self._backoff.next(name) / seconds(1)
        self.loop.call_later(wait, self._later, lambda: self._restart_if(incarnation, f"failed: {why!r}"))

    async def _restart_if(self, failed: Incarnation, why: str) -> None:
        if self._running.get(failed.spec.name) is failed:
            await self._restart(failed.spec.name, why)

    def _later(self, job: Callable[[], Awaitable[None]]) -> None:
        self._jobs.put_nowait(job)

    def trunk(self, peer: str, address: str) -> Trunk:
        if peer not in self._trunks:
            self._trunks[peer] = Trunk(self.loop, self.context, self._line, address, self._spec.keys)
        return self._trunks[peer]

    def history_of(self, machine: str, epoch: int) -> History:
        spec = self._spec
        return History(spec.history, Author(spec.run, spec.seed, machine, epoch), self.clock, 2 if spec.log else None)

    # ------------------------------------------------------------ orders

    def _on_order(self, frames: list[bytes]) -> None:
        try:
            self.obey(control.decode_order(frames[-1]))
        except (msgspec.MsgspecError, ValueError):
            traceback.print_exc()  # a supervisor of another version, say: its other orders still hold

    def obey(self, order: control.Order) -> None:
        """Carry out an order of the supervisor. ``ValueError`` if it makes no sense."""
        match order:
            case Arm(machine, label):
                self.failpoints.arm(order)
                self.report(control.Armed(machine, label))
            case control.AddMachine(machine):
                self._shared = True
                self._machines.setdefault(machine.name, self._frugal(machine))
                self._later(lambda: self._begin(machine.name))
            case control.RemoveMachine(name):
                self._later(lambda: self._remove(name))
            case control.RestartMachine(name):
                self._begin_fault(name, "restart")
                self._later(lambda: self._restart(name, "restarted"))
            case control.PauseMachine(name):
                if name in self._running and not self._running[name].paused:
                    self._begin_fault(name, "pause")
                    self._running[name].pause()
            case control.ResumeMachine(name):
                if name in self._running and self._running[name].paused:
                    self._running[name].resume()
                    self._running[name].note("fault.end", {"name": "pause", "args": {"machine": name}})
            case control.BreakDisk(name, how, commits):
                if name in self._stores:
                    self._stores[name].break_next(how, commits)
                    self._begin_fault(name, f"disk {how}")
            case control.StepClock(span):
                self.clock.step(seconds(span))
                self.timers.clock_stepped()
                for incarnation in self._running.values():
                    args = {"machine": incarnation.spec.name, "seconds": span}
                    incarnation.note("fault.begin", {"name": "clock step", "args": args})
                    incarnation.note("fault.end", {"name": "clock step", "args": args})
            case control.PeerMoved(peer, address):
                self._move(peer, address)
            case control.Shutdown():
                self.shut_down()

    def _move(self, peer: str, address: str) -> None:
        for name, machine in self._machines.items():
            before = machine.dial.get(peer)
            if before is not None and before.removeprefix(TRUNK) != address:
                after = TRUNK + address if before.startswith(TRUNK) else address
                self._machines[name] = msgspec.structs.replace(machine, dial={**machine.dial, peer: after})
                if name in self._running:
                    self._running[name].redial(peer, address)
        if peer in self._trunks:
            self._trunks[peer].redial(address)

    def _begin_fault(self, name: str, fault: str) -> None:
        if name in self._running and self._running[name].alive:
            self._running[name].note("fault.begin", {"name": fault, "args": {"machine": name}})

    def fire(self, order: Arm, incarnation: Incarnation) -> float:
        word, _, _ = order.action.partition(":")
        args = {"machine": order.machine, "label": order.label, "hits": order.hits}
        incarnation.note("fault.begin", {"name": word, "args": args})
        fired = control.Fired(order.machine, order.label)
        delay = delay_seconds(order.action)
        if delay is None and not self._shared and (word == "kill" or not self._spec.remote):
            self._last_words(fired)
            os.kill(os.getpid(), signal.SIGKILL if word == "kill" else signal.SIGSTOP)
            return 0.0
        self.loop.call_soon_threadsafe(self.report, fired)
        if delay is not None:
            return self.clock.real_seconds(seconds(delay))
        if word == "kill":
            raise KilledError(order.label)
        if threading.get_ident() == self._thread:
            incarnation.pause()
        else:
            self.loop.call_soon_threadsafe(incarnation.pause)
        return 0.0

    def _last_words(self, report: control.Report) -> None:
        """Tell the supervisor and wait until the kernel has it: the process is about to stop. Any thread may call."""
        if not self._spec.control:
            return
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        socket = self._to_supervisor(context, f"{self._line}!")
        socket.send(control.encode(report))
        socket.close(linger=_LAST_WORDS_MS)
        context.term()


def die_with_parent() -> None:
    """Let the kernel send SIGKILL when the parent's thread that forked this process ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def name_process(name: str) -> None:
    """Be called that in ``top`` and ``ps -o comm``, which show 15 bytes."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15] + b"\0", 0, 0, 0)


def give_way(nice: int) -> None:
    """Leave processors to others where they are short. Linux groups processes by session, as which each of ours runs, and shares
    the time between groups first; so the group is told too."""
    if nice:
        os.nice(nice)
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(nice))


def raise_file_limit() -> None:
    """Allow as many open files as the system lets us: libzmq aborts the process when it gets no descriptor."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def settle(nice: int) -> None:
    """Make this process one that serves machines well."""
    give_way(nice)
    raise_file_limit()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*COLLECTED_AFTER)


def run(spec: HostSpec) -> None:
    """Run the machines of ``spec`` until the supervisor says ``Shutdown`` or SIGTERM or SIGINT comes; raises what a machine raised
    that has the process to itself. The files of its ``ipc`` sockets are gone afterwards."""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        host = Host(spec, loop)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, host.shut_down)
        await host.serve()

    name_process(spec.process)
    settle(spec.nice)
    uvloop.run(serve())
