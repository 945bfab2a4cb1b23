"""One life of a machine in a process: inputs in, effects carried out in order, writes in groups."""

import asyncio
import errno
import importlib
import os
import random
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

import zmq

from elbowroom.host.bootdisk import BootDisk, boot_id
from elbowroom.host.clock import Clock, Timers
from elbowroom.host.disks import FilesDisk, MemoryDisk
from elbowroom.host.failpoints import Failpoints
from elbowroom.host.history import FLUSH_SECONDS, History
from elbowroom.host.keys import Keys
from elbowroom.host.samples import Look, Samples
from elbowroom.host.seams import Disk, Driver, IdleDisk
from elbowroom.host.shared import INSIDE, TRUNK, Door, Lane, Link, Neighbours, Trunk
from elbowroom.host.sockets import Dialer, Listener, Sent
from elbowroom.host.spec import Arm, DiskSpec, MachineSpec
from elbowroom.machine import (
    Effect,
    Input,
    Machine,
    Note,
    PeerConnected,
    Persist,
    Received,
    Send,
    SetTimer,
    Step,
    TimerFired,
    Work,
    WorkDone,
)
from elbowroom.machine.steps import unheard
from elbowroom.wire import MalformedError, Message, decode, encode

GROUP_MAX = 64
"""Writes that are committed together at most."""
DRIVER_STOP_SECONDS = 3.0
IDLE_SECONDS = 1.0
"""So long after the last write a disk is told that it is idle."""
PENDING_MAX = 20_000
"""Effects that wait for the disk before the machine's sockets are read no further."""


def load_object(name: str) -> Any:
    """The object at ``module:name``."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


class KilledError(Exception):
    """Chaos ended this life at a step; the process goes on."""


class Process(Protocol):
    """What an incarnation needs of the process it lives in."""

    loop: asyncio.AbstractEventLoop
    context: "zmq.Context[zmq.Socket[bytes]]"
    clock: Clock
    timers: Timers
    failpoints: Failpoints
    files_pool: ThreadPoolExecutor
    neighbours: Neighbours
    samples: Samples

    @property
    def keys(self) -> Keys | None: ...

    def trunk(self, peer: str, address: str) -> Trunk:
        """The connection to ``peer``, at ``address``, that the process's machines share."""
        ...

    def history_of(self, machine: str, epoch: int) -> History: ...

    def fire(self, order: Arm, incarnation: "Incarnation") -> float:
        """Carry out a failpoint's action: the real seconds to wait if it was a delay, ``KilledError`` if only this life ends. Any
        thread may call."""
        ...

    def failed(self, incarnation: "Incarnation", why: BaseException) -> None:
        """The machine raised, or its disk failed: this life is over."""
        ...


class Store:
    """A machine's disk, which outlives its incarnations, and the thread that writes to it.

    Memory and what outlives the process only commit at once on the loop. Files share the process's writers: the hop to a thread
    costs a tenth of the two fsyncs, which would hold up every machine of the process. Any other disk gets one thread for its whole
    life, on which it is also made.
    """

    def __init__(self, spec: DiskSpec, files_pool: ThreadPoolExecutor) -> None:
        self._own: ThreadPoolExecutor | None = None
        self.writer: ThreadPoolExecutor | None = None
        self._make: Callable[[], Disk]
        if spec.kind == "memory":
            self._make = MemoryDisk
        elif spec.kind == "boot":
            self._make = lambda: BootDisk(spec.path)
        elif spec.kind == "files":
            self._make = lambda: FilesDisk(spec.path)
            self.writer = files_pool
        else:
            self._make = lambda: load_object(spec.kind)(spec.path)
            self.writer = self._own = ThreadPoolExecutor(1, "disk")
        self.disk: Disk | None = None
        self.tidies = False
        """Is there something to do when it is idle?"""
        self._broken: tuple[str, int] | None = None

    async def load(self, loop: asyncio.AbstractEventLoop) -> dict[str, bytes]:
        """Open if need be, and read all."""

        def load() -> dict[str, bytes]:
            if self.disk is None:
                self.disk = self._make()
                self.tidies = callable(getattr(self.disk, "idle", None))  # an IdleDisk; isinstance would look at each method
            return self.disk.load()

        # A node's few small files are read before a thread would have been woken for them.
        return load() if self._own is None else await loop.run_in_executor(self._own, load)

    def break_next(self, how: str, commits: int) -> None:
        """Let that many commits fail: ``full`` or ``fsync``, as ``BreakDisk`` says. ``ValueError`` for another word."""
        if how not in ("full", "fsync") or commits < 1:
            raise ValueError(f"a disk is full or fails to fsync, at least once; not {how!r}, {commits} times")
        self._broken = (how, commits)

    def commit(self, writes: Sequence[Persist], step: Callable[[str], None]) -> None:
        """The disk's ``commit``, unless chaos has broken the disk. On the writer's thread, if there is one."""
        assert self.disk is not None, "the disk was loaded before the machine started"
        if self._broken is None:
            self.disk.commit(writes, step)
            return
        how, left = self._broken
        self._broken = (how, left - 1) if left > 1 else None
        if how == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.disk.commit(writes, step)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def reopen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what a process of its own would have lost: a write may have been broken off half-way. Memory stays."""
        if self.disk is None or isinstance(self.disk, MemoryDisk):
            return
        if self.writer is None:
            self.disk.close()
        else:
            await loop.run_in_executor(self.writer, self.disk.close)
        self.disk = None

    async def close(self, loop: asyncio.AbstractEventLoop) -> None:
        await self.reopen(loop)
        if self._own is not None:
            self._own.shutdown()


class Incarnation:
    """A machine's life from ``start`` to ``stop`` or failure.

    Effects go through one queue, in order. Where a ``Persist`` comes up, the writes that wait behind it are committed with it,
    while the machine goes on being stepped: moving a write ahead of a ``Send``, ``Note`` or ``Step`` looks to everybody else like a
    death just before that effect. A ``Note`` right before a ``Persist`` announces it and is moved with it, so the history knows
    of whatever may be on the disk. While a failpoint is armed nothing is moved. ``SetTimer`` holds at once, for timers die with
    the process anyway.
    """

    def __init__(self, process: Process, spec: MachineSpec, epoch: int, store: Store, seed: int) -> None:
        self.spec, self.epoch = spec, epoch
        self._process, self._store = process, store
        self._loop, self._clock = process.loop, process.clock
        self._history = process.history_of(spec.name, epoch)
        self._seed = f"{seed}/{spec.name}/{epoch}"
        self._machine: Machine | None = None
        self._inbox: deque[Input] = deque()
        self._pending: deque[Effect] = deque()
        self._dialers: dict[str, Link] = {}
        self._ways: dict[str, Callable[[Message], Sent]] = {}
        """How a message goes to a peer that is dialled."""
        self._listener: Door | None = None
        self._answer: Callable[[str, Message], Sent] = lambda peer, message: Sent.AWAY
        """How a message goes to a peer that dials this machine."""
        self._drivers: list[tuple[str, Driver]] = []
        self._started: list[Driver] = []
        self._late: list[str] = []
        self._lost: set[str] = set()
        self._flush_due = False
        self._look: Look | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._stepping = False
        self._pumping = False
        self._committed: list[Note] = []
        """What is to be recorded once the commit under way is done."""
        self._waiting: asyncio.Future[None] | None = None
        """The commit or delay that the queue waits for."""
        self.paused = False
        self.alive = True

    # ------------------------------------------------------------ life

    async def start(self) -> dict[str, Any]:
        """Open the sockets, read the disk, start the machine and its drivers; the drivers' facts."""
        kept = await self._store.load(self._loop)
        spec = self.spec
        config = {**spec.config, "name": spec.name, "epoch": self.epoch, "boot": boot_id().decode(errors="replace")}
        machine: Machine = load_object(spec.factory)(config, random.Random(self._seed))
        self._machine = machine
        if spec.bind.startswith(INSIDE):
            self._listener = door = self._process.neighbours.listen(spec.bind, self._on_peer_message)
            self._answer = door.send
        elif spec.bind:
            listener = Listener(self._loop, self._process.context, spec.bind, self._on_peer, self._process.keys)
            self._listener, self._answer = listener, lambda peer, message: listener.send(peer, encode(message))
        for peer, address in spec.dial.items():
            self._dial(peer, address)
        self._drivers = [(made.prefix, made) for made in (load_object(d.factory)(d.config) for d in spec.drivers)]
        self._take(machine.start(self._clock.now(), kept))
        self._pump()
        facts: dict[str, Any] = {}
        for _, driver in self._drivers:
            self._started.append(driver)
            facts.update(await driver.start(self.feed))
        return facts

    async def stop(self) -> None:
        """End in order: drivers first, then what waits is carried out, and the history ends with ``end``."""
        await self._stop_drivers()
        self.paused = False
        self._pump()
        while self.alive and self._waiting is not None:
            await asyncio.wait([self._waiting])
            await asyncio.sleep(0)  # the queue goes on first
        if self.alive:
            self._history.note("end", {})
        await self.abandon(linger_ms=50)

    async def abandon(self, linger_ms: int = 0) -> None:
        """End as if killed: what waits is forgotten. Only the write under way is waited for, since its thread cannot be stopped."""
        self.alive = False
        self._process.timers.drop(self)
        if self._idle is not None:
            self._idle.cancel()
        self._pending.clear()
        self._inbox.clear()
        await self._stop_drivers()
        if isinstance(self._waiting, asyncio.Task):
            self._waiting.cancel()  # a delay
        elif self._waiting is not None:
            await asyncio.wait([self._waiting])
        for dialer in self._dialers.values():
            dialer.close(linger_ms)
        if self._listener is not None:
            self._listener.close(linger_ms)
        self._history.close()

    async def _stop_drivers(self) -> None:
        while self._started:
            driver = self._started.pop()
            try:
                await asyncio.wait_for(driver.stop(), DRIVER_STOP_SECONDS)
            except Exception:
                traceback.print_exc()  # the machine's end must not fail on it

    def pause(self) -> None:
        """Take no input, fire no timer, carry out no effect (but the write under way)."""
        self.paused = True
        for dialer in self._dialers.values():
            dialer.hold()
        if self._listener is not None:
            self._listener.hold()

    def resume(self) -> None:
        """Go on; timers that came due meanwhile fire now."""
        self.paused = False
        late, self._late = self._late, []
        now = self._clock.now()
        for name in late:
            self._process.timers.set(self, name, now, self._on_timer)
        self._read_on()
        self._run_inbox()
        self._pump()

    def note(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Record a fact about this life, on the host's behalf, for good. Any thread may call."""
        self._history.note(kind, fields)
        self._history.flush()

    @property
    def address(self) -> str:
        """Where it listens; "" if nowhere."""
        return self._listener.address if self._listener is not None else ""

    def redial(self, peer: str, address: str) -> None:
        """``peer`` listens at ``address`` now; a trunk to it is told apart."""
        dialer = self._dialers.get(peer)
        if isinstance(dialer, Dialer):
            dialer.redial(address)

    # ------------------------------------------------------------ inputs

    def feed(self, happened: Input) -> None:
        """Tell the machine; drivers call it too, also from within ``deliver``."""
        self._inbox.append(happened)
        self._run_inbox()

    def _run_inbox(self) -> None:
        assert self._machine is not None, "a machine is told something only after it was made"
        while self._inbox and self.alive and not (self._stepping or self.paused):
            happened = self._inbox.popleft()
            self._stepping = True
            try:
                self._take(self._machine.step(self._clock.now(), happened))
            except Exception as why:
                self.fail(why)
            finally:
                self._stepping = False
            self._pump()

    def _take(self, effects: Sequence[Effect]) -> None:
        armed, pending = self._process.failpoints.waits_for(self.spec.name), self._pending
        for effect in effects:
            if isinstance(effect, SetTimer):
                self._process.timers.set(self, effect.name, effect.at, self._on_timer)
            elif armed or not isinstance(effect, Step) or (pending and isinstance(pending[-1], Note)):
                # A step for which nobody waits is left out, but where it parts a note from a write that the note does not announce.
                pending.append(effect)

    def _dial(self, peer: str, address: str) -> None:
        name, process = self.spec.name, self._process

        def received(frame: bytes) -> None:
            self._on_frame(peer, frame)

        def reconnected() -> None:
            self.feed(PeerConnected(peer))

        if address.startswith(INSIDE):
            link = process.neighbours.dial(name, address, partial(self._on_message, peer), reconnected)
            self._dialers[peer], self._ways[peer] = link, link.send
            return
        over: Lane | Dialer
        if address.startswith(TRUNK):
            over = process.trunk(peer, address.removeprefix(TRUNK)).lane(name, received, reconnected)
        else:
            over = Dialer(self._loop, process.context, name, address, received, reconnected, keys=process.keys)
        self._dialers[peer], self._ways[peer] = over, lambda message: over.send(encode(message))

    def _on_peer(self, peer: str, frame: bytes) -> None:
        if self._may_speak(peer):
            self._on_frame(peer, frame)

    def _on_peer_message(self, peer: str, message: Message) -> None:
        if self._may_speak(peer):
            self._on_message(peer, message)

    def _may_speak(self, peer: str) -> bool:
        if any(peer.startswith(prefix) for prefix, _ in self._drivers):
            self._lose(peer, "the name belongs to a driver")
            return False
        return True

    def _on_frame(self, peer: str, frame: bytes) -> None:
        try:
            message = decode(frame)
        except MalformedError as why:
            self._lose(peer, str(why))
            return
        self._on_message(peer, message)

    def _on_message(self, peer: str, message: Message) -> None:
        self._lost.discard(peer)
        self.feed(Received(peer, message))

    def _on_timer(self, name: str) -> None:
        if self.paused:
            self._late.append(name)
        elif self.alive:
            self.feed(TimerFired(name))

    # ------------------------------------------------------------ effects

    def _pump(self) -> None:
        if self._pumping or not self.alive:
            return
        self._pumping = True
        try:
            pending = self._pending
            if self._waiting is None and not self.paused:
                self._note_committed()
            while pending and self._waiting is None and not self.paused:
                if isinstance(pending[0], Persist):
                    self._commit(self._group())
                else:
                    self._carry_out(pending.popleft())
        except Exception as why:
            self.fail(why)
        finally:
            self._pumping = False
        if self.alive and len(self._pending) > PENDING_MAX:
            self._read_no_further()

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Send):  # not matched, since a pattern takes three times as long
            if self._history.waiting:
                self._history.flush()  # what others may have seen must be in the history
            self._send(effect.target, effect)
        elif isinstance(effect, Note):
            self._history.note(effect.name, effect.fields)
            if not self._flush_due:
                self._flush_soon()
        elif isinstance(effect, Step):
            seconds = self._at_step(effect.label)
            if seconds:
                self._wait(self._loop.create_task(asyncio.sleep(seconds)))
        elif isinstance(effect, Work):
            self._work(effect.token, effect.task, effect)
        else:
            raise AssertionError(f"{effect!r} is no effect that is carried out here")

    def _send(self, target: str, effect: Send) -> None:
        for prefix, driver in self._drivers:
            if target.startswith(prefix):
                driver.deliver(effect)
                return
        way = self._ways.get(target)
        outcome = self._answer(target, effect.message) if way is None else way(effect.message)
        if outcome is not Sent.PASSED and self._lose(target, outcome.value) and outcome is Sent.AWAY and way is None:
            self.feed(PeerConnected(target))

    def _lose(self, peer: str, why: str) -> bool:
        """A message is lost; recorded (and True) once until one comes from that peer again."""
        if peer in self._lost:
            return False
        self._lost.add(peer)
        self._history.note("bus.drop", {"peer": peer, "why": why})
        self._flush_soon()
        return True

    def _work(self, token: str, task: Any, effect: Work) -> None:
        if not callable(task):
            if not self._drivers:
                raise ValueError(f"no driver for the work {token!r}")
            self._drivers[0][1].work(effect)
            return

        def done(ended: "asyncio.Future[Any]") -> None:
            if self.alive:
                self.feed(WorkDone(token, ended.exception() or ended.result()))

        self._loop.run_in_executor(None, task).add_done_callback(done)

    def _group(self) -> list[Persist]:
        """Take the writes to commit next out of the queue, and say what announces them.

        What is noted behind them is recorded when they are durable, all at once and before any of it is sent: one look at the
        history file for a group, not one for each answer.
        """
        strictly = self._process.failpoints.waits_for(self.spec.name)
        group: list[Persist] = []
        passed: list[Effect] = []
        pending = self._pending
        before: Effect | None = None
        while pending and len(group) < GROUP_MAX:
            effect = pending[0]
            if isinstance(effect, Persist):
                if isinstance(before, Note):
                    passed.pop()
                    self._carry_out(before)
                group.append(effect)
            elif strictly or isinstance(effect, Work):
                break
            else:
                passed.append(effect)
            before = pending.popleft()
        if not strictly:
            self._committed = [effect for effect in passed if isinstance(effect, Note)]
            passed = [effect for effect in passed if not isinstance(effect, Note)]
        pending.extendleft(reversed(passed))
        return group

    def _note_committed(self) -> None:
        notes, self._committed = self._committed, []
        for note in notes:
            self._carry_out(note)

    def _commit(self, group: list[Persist]) -> None:
        disk, writer = self._store.disk, self._store.writer
        assert disk is not None, "the disk was loaded before the machine started"
        if self._history.waiting:
            self._history.flush()  # nothing may be on the disk that was not announced
        step = self._at_step_on_writer if self._process.failpoints.waits_for(self.spec.name) else unheard
        if writer is None:
            self._store.commit(group, step)
            self._note_committed()
        else:
            self._wait(self._loop.run_in_executor(writer, self._store.commit, group, step))
            if self._store.tidies:
                if self._idle is not None:
                    self._idle.cancel()
                self._idle = self._loop.call_later(IDLE_SECONDS, self._tidy, disk, writer)

    def _tidy(self, disk: Disk, writer: ThreadPoolExecutor) -> None:
        assert isinstance(disk, IdleDisk), "only such a one is tidied"

        def done(tidied: "asyncio.Future[None]") -> None:
            if tidied.exception() is not None and self.alive:
                self.note("disk.untidy", {"why": str(tidied.exception())})

        self._idle = None
        self._loop.run_in_executor(writer, disk.idle).add_done_callback(done)

    def _wait(self, until: "asyncio.Future[None]") -> None:
        self._waiting = until
        until.add_done_callback(self._go_on)

    def _go_on(self, done: "asyncio.Future[None]") -> None:
        self._waiting = None
        if not self.alive or done.cancelled():
            return
        failure = done.exception()
        if failure is not None:
            self.fail(failure)
            return
        self._pump()
        if not self.paused and len(self._pending) <= PENDING_MAX:
            self._read_on()

    def _at_step(self, label: str) -> float:
        order = self._process.failpoints.hit(self.spec.name, label)
        return 0.0 if order is None else self._process.fire(order, self)

    def _at_step_on_writer(self, label: str) -> None:
        seconds = self._at_step(label)
        if seconds:
            time.sleep(seconds)

    def _read_no_further(self) -> None:
        for dialer in self._dialers.values():
            dialer.hold()
        if self._listener is not None:
            self._listener.hold()

    def _read_on(self) -> None:
        for dialer in self._dialers.values():
            if not dialer.open:
                dialer.resume()
        if self._listener is not None and not self._listener.open:
            self._listener.resume()

    def _flush_soon(self) -> None:
        if self._history.waiting and not self._flush_due:
            self._flush_due = True
            self._look = self._process.samples.begin(FLUSH_SECONDS)
            self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        look, self._look = self._look, None
        if look is not None and self.alive:
            waiting = {"inputs": len(self._inbox), "effects": len(self._pending)}
            self._history.note("host.sample", {**look.facts(self._loop.time()), **waiting})
        self._history.flush()

    def fail(self, why: BaseException) -> None:
        """This life is over: record it and tell the process."""
        if self.alive:
            self.alive = False
            if not isinstance(why, KilledError):
                self.note("failed", {"why": f"{type(why).__name__}: {why}"})
            self._process.failed(self, why)
