"""A seeded world: machines on a virtual clock, a simulated bus and simulated disks, in one thread.

The order of everything comes from the seed, so a run can be replayed to the byte, and another seed is another race. Between
two events no time passes; a step takes none. The effects of a step are carried out one by one, and the world can end the
process before any of them.
"""

import hashlib
import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from elbowroom.machine import (
    Effect,
    FolderRead,
    Input,
    Instant,
    Machine,
    Note,
    PeerConnected,
    Persist,
    Received,
    Send,
    SetTimer,
    Step,
    TimerFired,
    WatchFolder,
    Work,
    WorkDone,
    seconds,
)
from elbowroom.machine.records import ENVELOPE, Author, record
from elbowroom.machine.steps import matches
from elbowroom.sim.client import Client
from elbowroom.sim.disk import SimDisk
from elbowroom.sim.network import WAITING_MAX, Connection, Disturbance, Network
from elbowroom.wire import MalformedError, Message, decode, encode

Factory = Callable[[Mapping[str, Any], random.Random], Machine]

BEGINNING = Instant(1_767_225_600_000_000_000)
"""2026-01-01T00:00:00Z."""
RESTART_SECONDS = 0.1
NEMESIS = "nemesis"
_FULL = 1 << 30
"""More writes than any run makes."""
_OWN = frozenset(ENVELOPE)


@dataclass(slots=True)
class _Process:
    """One machine and what the world keeps of it over its lives."""

    name: str
    factory: Factory
    config: dict[str, Any]
    dials: tuple[str, ...]
    disk: SimDisk
    work: Callable[[Any], Any] | None
    sync_seconds: tuple[float, float]
    skew: int = 0
    jump: int = 0
    """How far this life's clock was moved, beside its skew."""
    sync_fails: bool = False
    """The next write is handed over, and its fsync fails."""
    mortal: bool = True
    life: int = 0
    """Rises at each start and each death: what was scheduled for an older life does not happen."""
    machine: Machine | None = None
    author: Author | None = None
    seq: int = 0
    paused: bool = False
    writing: bool = False
    inbox: deque[Input] = field(default_factory=deque)
    pending: deque[Effect] = field(default_factory=deque)
    timers: dict[str, Instant] = field(default_factory=dict)
    watched: set[str] = field(default_factory=set)
    """Folders that this life asked to hear of."""
    late: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    """Peers that dial this one, were found gone and not heard of since."""


@dataclass(slots=True)
class _Failpoint:
    name: str
    label: str
    left: int
    action: str
    restart_after: float | None
    planned: bool = False


class World:
    """A cluster's machines under one seed.

    ``history`` holds the records of all lives in order (docs/histories.md, both clocks virtual), ``history_hash`` tells two
    runs apart. ``events`` counts what happened, ``effects`` the effects that mortals carried out, and ``steps`` the labels passed,
    by machine and label: what systematic tests enumerate. ``latency`` bounds a frame's way in seconds.
    """

    def __init__(self, seed: int, *, run: str = "sim", latency: tuple[float, float] = (0.000_1, 0.002)) -> None:
        self.seed = seed
        self._run = run
        self._order = random.Random(f"{seed}/order")
        self._sync = random.Random(f"{seed}/sync")
        self._events: list[tuple[Instant, float, int, Callable[[], None]]] = []
        self._count = 0
        self._processes: dict[str, _Process] = {}
        self._failpoints: list[_Failpoint] = []
        self._deaths: dict[int, float | None] = {}
        self._folders: dict[tuple[str, str], dict[str, bytes | None]] = {}
        self._checks: list[Callable[[], None]] = []
        self._heal_checks: list[Callable[[], None]] = []
        self._nemesis_seq = 0
        self._client: Client | None = None
        self.network = Network(seed, latency)
        self.now: Instant = BEGINNING
        self.history: list[dict[str, Any]] = []
        self.effects = 0
        self.events = 0
        self.steps: dict[tuple[str, str], int] = {}

    # ------------------------------------------------------------ machines

    def add(
        self,
        name: str,
        factory: Factory,
        config: Mapping[str, Any] | None = None,
        *,
        dials: Sequence[str] = (),
        work: Callable[[Any], Any] | None = None,
        sync_seconds: tuple[float, float] = (0.000_1, 0.002),
        skew: float = 0.0,
        start: bool = True,
        mortal: bool = True,
    ) -> None:
        """Put a machine into the world and start it. ``dials`` are the peers that it connects to, ``work`` does what its ``Work``
        effects ask for if the task is not callable itself, ``sync_seconds`` bounds how long a ``Persist`` takes, ``skew`` is how
        far its clock is ahead. One that is not ``mortal`` (a test's own client) is spared by ``die_before``."""
        assert name not in self._processes, f"there is a {name} already"
        disk = SimDisk(random.Random(f"{self.seed}/disk/{name}"))
        process = _Process(name, factory, dict(config or {}), tuple(dials), disk, work, sync_seconds, seconds(skew), mortal=mortal)
        self._processes[name] = process
        if start:
            self.restart(name)

    def remove(self, name: str) -> None:
        """Take a machine out of the world, in order: its history gets its ``end``."""
        process = self._processes[name]
        if process.machine is not None:
            self._note(process, "end", {})
            self._die(process)
        del self._processes[name]

    def names(self) -> list[str]:
        return list(self._processes)

    def machine(self, name: str) -> Any:
        """The live instance, for a test to look into; None while the process is dead."""
        return self._processes[name].machine

    def disk(self, name: str) -> SimDisk:
        """The machine's disk, which outlives it."""
        return self._processes[name].disk

    def alive(self, name: str) -> bool:
        process = self._processes.get(name)
        return process is not None and process.machine is not None

    def put_files(self, name: str, path: str, files: Mapping[str, bytes | None]) -> None:
        """Let the folder ``path`` of a machine hold these files from now on; who watches it hears of it a moment later."""
        self._folders[name, path] = dict(sorted(files.items()))
        self._tell_folder(self._processes[name], path)

    @property
    def client(self) -> Client:
        """A client of the API server, made at first use."""
        if self._client is None:
            self._client = Client(self, "client/1")
        return self._client

    # ------------------------------------------------------------ time

    def step(self) -> bool:
        """Let the next event happen; False if there is none."""
        if not self._events:
            return False
        at, _, _, action = heapq.heappop(self._events)
        self.now = max(self.now, at)
        self.events += 1
        action()
        for check in self._checks:
            check()
        return True

    def run_until(self, predicate: Callable[[], bool], timeout: float = 60.0) -> bool:
        """Let time pass until ``predicate`` holds; False if it does not within ``timeout`` virtual seconds."""
        end = self.now + seconds(timeout)
        while not predicate():
            if not self._events or self._events[0][0] > end:
                self.now = Instant(max(self.now, end))
                return False
            self.step()
        return True

    def run_for(self, span: float) -> None:
        """Let so many virtual seconds pass."""
        self.run_until(lambda: False, span)

    def at(self, moment: Instant, action: Callable[[], None]) -> None:
        """Do something at a moment; what falls on the same one comes in an order that the seed decides."""
        self._count += 1
        heapq.heappush(self._events, (Instant(max(moment, self.now)), self._order.random(), self._count, action))

    def after(self, span: float, action: Callable[[], None]) -> None:
        self.at(Instant(self.now + seconds(span)), action)

    def always(self, check: Callable[[], None]) -> None:
        """Call ``check`` after every event; it raises what it finds."""
        self._checks.append(check)

    def at_heal(self, check: Callable[[], None]) -> None:
        """Call ``check`` whenever a fault has ended; it raises what it finds."""
        self._heal_checks.append(check)

    def close(self) -> None:
        """End all machines in order, so that the history is one of a run that ended well."""
        for process in self._processes.values():
            if process.machine is not None:
                self._note(process, "end", {})
                self._die(process)
        self._events.clear()

    # ------------------------------------------------------------ faults

    def crash(self, name: str, restart_after: float | None = RESTART_SECONDS) -> None:
        """kill -9 now, and start again after so many seconds (None: stay dead)."""
        self._crash(self._processes[name], restart_after, {})

    def _crash(self, process: _Process, restart_after: float | None, facts: Mapping[str, Any]) -> None:
        if process.machine is None:
            return
        self._fault("begin", "crash", {"machine": process.name, **facts})
        self._die(process)
        if restart_after is not None:
            self.after(restart_after, lambda: self._revive(process))

    def restart(self, name: str) -> None:
        """Start a machine that is dead, from what its disk has."""
        process = self._processes[name]
        if process.machine is not None:
            return
        process.life += 1
        before = process.author.inc if process.author is not None else 0
        epoch = process.config.get("epoch", 0) if not before else 0
        epoch = epoch or max(self.now, before + 1)
        process.author, process.seq = Author(self._run, self.seed, name, epoch), 0
        rng = random.Random(f"{self.seed}/{name}/{epoch}")
        machine = process.factory({**process.config, "name": name, "epoch": epoch}, rng)
        process.machine = machine
        for peer in process.dials:
            self.network.dial(name, peer)
        for connection in self.network.of(name):
            self._connect(connection)
        self._take(process, machine.start(self._time(process), process.disk.load()))
        self._pump(process)

    def kill_at(
        self,
        name: str,
        label: str,
        *,
        hits: int = 1,
        action: str = "kill",
        restart_after: float | None = RESTART_SECONDS,
        planned: bool = False,
    ) -> None:
        """At the ``hits``-th time that ``name`` passes step ``label`` (``K4``): ``kill`` it, ``stop`` it (for ``restart_after``),
        let it wait (``delay:SECONDS``), or let its ``disk`` fail in the write that is under way or else the next. One that is
        ``planned`` must come for the run to count, and outlives ``calm``."""
        self._failpoints.append(_Failpoint(name, label, hits, action, restart_after, planned))
        if planned:
            fault = {"kill": "crash", "stop": "pause"}.get(action, action.partition(":")[0])
            self._fault("planned", fault, {"machine": name, "label": label})

    def die_before(self, number: int, restart_after: float | None = RESTART_SECONDS) -> None:
        """Kill the process that is about to carry out the world's ``number``-th effect (from 1) before it does."""
        self._deaths[number] = restart_after

    def pause(self, name: str, span: float | None = None) -> None:
        """SIGSTOP; SIGCONT after so many seconds."""
        self._pause(self._processes[name], span, {})

    def _pause(self, process: _Process, span: float | None, facts: Mapping[str, Any]) -> None:
        if process.machine is None or process.paused:
            return
        self._fault("begin", "pause", {"machine": process.name, **facts})
        process.paused = True
        life = process.life
        if span is not None:
            self.after(span, lambda: self.resume(process.name) if process.life == life else None)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        process = self._processes[name]
        if process.machine is None or not process.paused:
            return
        self._fault("end", "pause", {"machine": name})
        process.paused = False
        late, process.late = process.late, []
        for timer in late:
            if timer not in process.timers:
                process.timers[timer] = self._time(process)
                self._ring(process, timer, self._time(process))
        for connection in self.network.of(name):
            self._connect(connection)
        self._pump(process)
        self._drain(process)

    def cut(self, a: str, b: str, span: float | None = None) -> None:
        """Break the link of two peers: both sides notice, and connect again after so many seconds (None: until ``mend``)."""
        self._fault("begin", "cut", {"a": a, "b": b})
        self.network.block(a, b, 1)
        self._break_links(a, b)
        if span is not None:
            self.after(span, lambda: self.mend(a, b))

    def mend(self, a: str, b: str) -> None:
        """Undo one ``cut``."""
        if self.network.blocked(a, b):
            self.network.block(a, b, -1)
            self._fault("end", "cut", {"a": a, "b": b})
            self._connect_links(a, b)

    def isolate(self, name: str, span: float | None = None) -> None:
        """Cut every link of a peer."""
        for other in sorted({connection.other(name) for connection in self.network.of(name)}):
            self.cut(name, other, span)

    def partition(self, a: str, b: str, span: float, *, one_way: bool = False) -> None:
        """Swallow all frames from ``a`` to ``b`` (and back), without a sign to either, for so many seconds. Then the connection,
        whose stream has a hole, breaks and is made anew."""
        ways = [(a, b)] if one_way else [(a, b), (b, a)]
        self._fault("begin", "partition", {"a": a, "b": b, "one_way": one_way})
        for way in ways:
            self.network.silence(*way, 1)

        def heal() -> None:
            for way in ways:
                self.network.silence(*way, -1)
            self._fault("end", "partition", {"a": a, "b": b, "one_way": one_way})
            self._break_links(a, b)
            self._connect_links(a, b)

        self.after(span, heal)

    def disturb(self, disturbance: Disturbance, span: float | None = None) -> None:
        """Let single frames go wrong, for so many seconds (None: until ``calm``)."""
        args = msgspec.to_builtins(disturbance)
        self._fault("begin", "disturb", args)
        self.network.disturbances.append(disturbance)

        def end() -> None:
            if disturbance in self.network.disturbances:
                self.network.disturbances.remove(disturbance)
                self._fault("end", "disturb", args)

        if span is not None:
            self.after(span, end)

    def fill_disk(self, name: str, span: float) -> None:
        """Let every write to a machine's disk fail for so many seconds. Who writes dies, starts again and finds it still full."""
        disk = self._processes[name].disk
        self._fault("begin", "disk full", {"machine": name})
        disk.failing = _FULL

        def heal() -> None:
            disk.failing = 0
            self._fault("end", "disk full", {"machine": name})

        self.after(span, heal)

    def fail_sync(self, name: str) -> None:
        """Let the fsync of a machine's next write fail, which it does not survive; what was handed over is there or not."""
        self._processes[name].sync_fails = True

    def step_clock(self, name: str, by: float, span: float | None = None) -> None:
        """Let the clock of a machine jump by so many seconds, and back again after ``span``. Another life has the right time."""
        process = self._processes[name]
        life = process.life
        self._fault("begin", "clock step", {"machine": name, "seconds": by})
        self._jump(process, seconds(by))

        def heal() -> None:
            if process.life == life:
                self._jump(process, -seconds(by))
            self._fault("end", "clock step", {"machine": name, "seconds": by})

        if span is not None:
            self.after(span, heal)

    def _jump(self, process: _Process, by: int) -> None:
        process.jump += by
        for timer, at in process.timers.items():
            self._ring(process, timer, at)

    def calm(self) -> None:
        """End every fault: links whole, frames safe, disks sound, nobody paused or dead, nothing armed but what was planned."""
        self._failpoints = [point for point in self._failpoints if point.planned]
        for process in self._processes.values():
            process.disk.failing, process.sync_fails = 0, False
        self._deaths.clear()
        self.network.disturbances.clear()
        for connection in self.network.all():
            while self.network.blocked(connection.dialer, connection.listener):
                self.mend(connection.dialer, connection.listener)
        for name, process in self._processes.items():
            if process.machine is None:
                self._revive(process)
            self.resume(name)

    # ------------------------------------------------------------ for peers made of code (clients)

    def act(self, name: str, effects: Sequence[Effect]) -> None:
        """Carry out effects on behalf of a machine, as if it had just been stepped."""
        process = self._processes[name]
        self._take(process, effects)
        self._pump(process)

    # ------------------------------------------------------------ history

    def history_hash(self) -> str:
        """A digest of all records but their ``run``: equal for equal seeds and code."""
        digest = hashlib.sha256()
        encode_record = msgspec.json.Encoder(order="deterministic").encode
        for one in self.history:
            digest.update(encode_record({name: value for name, value in one.items() if name != "run"}))
        return digest.hexdigest()

    def notes(self, kind: str) -> list[dict[str, Any]]:
        """The records whose kind matches a pattern (``kl.*``), in order."""
        return [one for one in self.history if fnmatchcase(one["kind"], kind)]

    def _note(self, process: _Process, kind: str, fields: Mapping[str, Any]) -> None:
        if not _OWN.isdisjoint(fields):
            clash = next(name for name in fields if name in _OWN)
            raise AssertionError(f"{process.name}: the note {kind} has a field {clash}, which belongs to the record itself")
        assert process.author is not None, "a machine notes something only after its start"
        process.seq += 1
        made = record(process.author, process.seq, self.now, self.now, kind, msgspec.to_builtins(dict(fields)))
        self.history.append(made)

    def _fault(self, edge: str, name: str, args: Mapping[str, Any]) -> None:
        self._nemesis_seq += 1
        author = Author(self._run, self.seed, NEMESIS, 0)
        fields = {"name": name, "args": dict(args)}
        self.history.append(record(author, self._nemesis_seq, self.now, self.now, f"fault.{edge}", fields))
        if edge == "end":
            for check in self._heal_checks:
                check()

    # ------------------------------------------------------------ lives

    def _time(self, process: _Process) -> Instant:
        return Instant(self.now + process.skew + process.jump)

    def _die(self, process: _Process) -> None:
        process.life += 1
        process.machine = None
        process.paused = process.writing = process.sync_fails = False
        process.jump = 0
        process.inbox.clear()
        process.pending.clear()
        process.timers.clear()
        process.watched.clear()
        process.late.clear()
        process.lost.clear()
        process.disk.crash()
        for connection in self.network.of(process.name):
            self.network.break_up(connection, self.now, dying=process.name)

    def _revive(self, process: _Process) -> None:
        if process.machine is None and self._processes.get(process.name) is process:
            self._fault("end", "crash", {"machine": process.name})
            self.restart(process.name)

    # ------------------------------------------------------------ inputs

    def _feed(self, process: _Process, happened: Input) -> None:
        if process.paused:
            process.inbox.append(happened)
            return
        assert process.machine is not None, "the dead are told nothing"
        self._take(process, process.machine.step(self._time(process), happened))
        self._pump(process)

    def _drain(self, process: _Process) -> None:
        while process.inbox and process.machine is not None and not process.paused:
            self._feed(process, process.inbox.popleft())

    def _take(self, process: _Process, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SetTimer):
                if effect.at is None:
                    process.timers.pop(effect.name, None)
                elif process.timers.get(effect.name) != effect.at:
                    process.timers[effect.name] = effect.at
                    self._ring(process, effect.name, effect.at)
            else:
                process.pending.append(effect)

    def _ring(self, process: _Process, name: str, at: Instant) -> None:
        life = process.life

        def fire() -> None:
            if process.life != life or process.timers.get(name) != at or self._time(process) < at:
                return  # of a clock that was put back meanwhile the timer was set anew
            del process.timers[name]
            if process.paused:
                process.late.append(name)
            else:
                self._feed(process, TimerFired(name))

        self.at(Instant(at - process.skew - process.jump), fire)

    # ------------------------------------------------------------ effects

    def _pump(self, process: _Process) -> None:
        while process.pending and process.machine is not None and not (process.writing or process.paused):
            if process.mortal:
                self.effects += 1
                if self.effects in self._deaths:
                    self._crash(process, self._deaths.pop(self.effects), {"effect": self.effects})
                    return
            self._carry_out(process, process.pending.popleft())

    def _carry_out(self, process: _Process, effect: Effect) -> None:
        match effect:
            case Send(target, message):
                self._send(process, target, message)
            case Note(name, fields):
                self._note(process, name, fields)
            case Step(label):
                self._pass(process, label)
            case Persist():
                self._write(process, effect)
            case Work(_, WatchFolder(path)):
                process.watched.add(path)
                self._tell_folder(process, path)
            case Work(token, task):
                outcome = self._work(process, task)
                life = process.life
                span = self._sync.uniform(*process.sync_seconds)
                self.after(span, lambda: self._feed(process, WorkDone(token, outcome)) if process.life == life else None)
            case _:
                raise AssertionError(f"{effect!r} is no effect that is carried out here")

    def _tell_folder(self, process: _Process, path: str) -> None:
        if path not in process.watched:
            return
        life = process.life

        def tell() -> None:
            if process.life == life:
                self._feed(process, FolderRead(path, dict(self._folders.get((process.name, path), {}))))

        self.after(self._sync.uniform(*process.sync_seconds), tell)

    def _work(self, process: _Process, task: Any) -> Any:
        work = process.work
        if not callable(task):
            assert work is not None, f"{process.name}: nobody does the work {task!r}"
            return work(task)
        try:
            return task()
        except Exception as why:
            return why

    def _write(self, process: _Process, write: Persist) -> None:
        try:
            process.disk.begin(write)
        except OSError as why:
            self._crash(process, RESTART_SECONDS, {"why": str(why)})
            return
        process.writing = True
        life = process.life
        part = seconds(self._sync.uniform(*process.sync_seconds)) // (len(write.labels) + 1)

        def goes_on(labels: tuple[str, ...]) -> None:
            if process.life != life:
                return
            if labels:
                process.disk.reached()
                waits = self._pass(process, labels[0])
                self.at(Instant(self.now + part + waits), lambda: goes_on(labels[1:]))
                return
            if process.sync_fails:
                self._crash(process, RESTART_SECONDS, {"why": "an fsync failed"})
                return
            process.disk.finish()
            process.writing = False
            self._pump(process)

        self.at(Instant(self.now + part), lambda: goes_on(write.labels))

    def _pass(self, process: _Process, label: str) -> int:
        """The process passes a step. The time (ns) that a write under way has to wait for it."""
        self.steps[process.name, label] = self.steps.get((process.name, label), 0) + 1
        self._note(process, "step", {"label": label})
        for point in self._failpoints:
            if point.name != process.name or not matches(point.label, label):
                continue
            point.left -= 1
            if point.left == 0:
                self._failpoints.remove(point)
                return self._fire(process, point)
        return 0

    def _fire(self, process: _Process, point: _Failpoint) -> int:
        facts = {"label": point.label}
        if point.action == "kill":
            self._crash(process, point.restart_after, facts)
        elif point.action == "stop":
            self._pause(process, point.restart_after, facts)
        elif point.action == "disk":
            self._fault("begin", "disk", {"machine": process.name, **facts})
            self._fault("end", "disk", {"machine": process.name})
            if process.writing:
                self._crash(process, point.restart_after, {"why": "a write failed half-way"})
            else:
                process.disk.failing += 1
        else:
            self._fault("begin", "delay", {"machine": process.name, **facts})
            span = seconds(float(point.action.removeprefix("delay:")))
            self.at(Instant(self.now + span), lambda: self._fault("end", "delay", {"machine": process.name}))
            if process.writing:
                return span
            process.writing = True
            life = process.life

            def goes_on() -> None:
                if process.life == life:
                    process.writing = False
                    self._pump(process)

            self.at(Instant(self.now + span), goes_on)
        return 0

    # ------------------------------------------------------------ the bus

    def _send(self, process: _Process, target: str, message: Message) -> None:
        frame = encode(message)
        name = process.name
        if target in process.dials:
            connection = self.network.from_dialer(name, target)
            assert connection is not None, "a dialer's connections are made when it starts"
            if not connection.up and not connection.was_up and len(connection.waiting) < WAITING_MAX:
                connection.waiting.append(frame)
                return
        else:
            connection = self.network.from_dialer(target, name)
        if connection is None or not connection.up:
            if target not in process.lost:
                process.lost.add(target)
                self._note(process, "bus.drop", {"peer": target, "why": "the peer is not connected"})
                if target not in process.dials:
                    self._feed(process, PeerConnected(target))
            return
        self._transmit(connection, name, frame)

    def _transmit(self, connection: Connection, source: str, frame: bytes) -> None:
        target = connection.other(source)
        number = connection.number

        def deliver(at: Instant, copy: bytes, sound: bool) -> None:
            self.at(at, lambda: self._arrive(connection, number, source, target, copy, sound))

        def tell(what: str) -> None:
            self._note(self._processes[source], f"bus.{what}", {"peer": target})

        self.network.transmit(connection, self.now, source, frame, deliver, tell)

    def _arrive(self, connection: Connection, number: int, source: str, target: str, frame: bytes, sound: bool) -> None:
        process = self._processes.get(target)
        if process is None or process.machine is None or not connection.carries(target, number, self.now):
            return
        try:
            message = decode(frame)
        except MalformedError as why:
            self._note(process, "bus.drop", {"peer": source, "why": str(why)})
            return
        if not sound:
            self._note(process, "bus.drop", {"peer": source, "why": "a bit was flipped on the way"})
            return
        process.lost.discard(source)
        self._feed(process, Received(source, message))

    def _connect(self, connection: Connection) -> None:
        """Begin to connect if nothing is in the way; it takes a moment, and what is on its way from before arrives first."""
        ends = [self._processes.get(name) for name in (connection.dialer, connection.listener)]
        if connection.up or connection.connecting or self.network.blocked(connection.dialer, connection.listener):
            return
        if any(end is None or end.machine is None or end.paused for end in ends):
            return
        connection.connecting = True
        lives = [end.life for end in ends if end is not None]
        chance = self.network.chance(connection.dialer, connection.listener)
        ready = Instant(self.now + seconds(0.001 + 0.02 * chance.random()))
        if connection.tail is not None:
            ready = Instant(max(ready, connection.tail[2] + 1))

        def done() -> None:
            if lives == [end.life for end in ends if end is not None] and connection.connecting:
                connection.connecting = False
                self._connected(connection)

        self.at(ready, done)

    def _connected(self, connection: Connection) -> None:
        connection.up, connection.tail = True, None
        again, connection.was_up = connection.was_up, True
        waiting, connection.waiting = connection.waiting, []
        for frame in waiting:
            self._transmit(connection, connection.dialer, frame)
        if again:
            self._feed(self._processes[connection.dialer], PeerConnected(connection.listener))

    def _links(self, a: str, b: str) -> list[Connection]:
        found = (self.network.from_dialer(a, b), self.network.from_dialer(b, a))
        return [connection for connection in found if connection is not None]

    def _break_links(self, a: str, b: str) -> None:
        for connection in self._links(a, b):
            self.network.break_up(connection, self.now)

    def _connect_links(self, a: str, b: str) -> None:
        for connection in self._links(a, b):
            self._connect(connection)
