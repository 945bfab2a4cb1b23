"""Which processes there should be, and what to do about those that are not; no I/O.

A *machine* (``apiserver``, ``kubelet/node-1``) is wanted or not; a *process* holds one machine or, for nodes packed together,
several. ``reconcile`` compares the two and says what to do; whatever happened meanwhile is told before. A machine's
``identity`` (its Node's uid) tells a Node from one of the same name that was deleted: what the former left on disk is
forgotten before the latter starts.

A process that dies is started again: the first time after 0.1 s, then after 1, 2, 4, 8 and at most 10 s, anew once it has been
ready for 10 s. A death that somebody asked for (``elbowroom kill``) does not count as a failure.
"""

import itertools
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from elbowroom.host.spec import (
    AddMachine,
    MachineSpec,
    Order,
    PauseMachine,
    RemoveMachine,
    RestartMachine,
    ResumeMachine,
    Shutdown,
)

BACKOFF_SECONDS = (0.1, 1.0, 2.0, 4.0, 8.0, 10.0)
HEALTHY_SECONDS = 10.0
STOP_SECONDS = 2.0


class State(StrEnum):
    """How a component fares, as ``status`` shows it."""

    STARTING = "starting"
    RUNNING = "running"
    FROZEN = "frozen"
    RESTARTING = "restarting"
    DEAD = "dead"
    STOPPING = "stopping"


# ---------------------------------------------------------------- what to do


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start the process with these machines."""

    process: str
    machines: tuple[MachineSpec, ...]


@dataclass(frozen=True, slots=True)
class Tell:
    """Send an order to the process."""

    process: str
    order: Order


@dataclass(frozen=True, slots=True)
class Signal:
    """Send a signal to the process."""

    process: str
    pid: int
    signal: int


@dataclass(frozen=True, slots=True)
class Forget:
    """Remove what the machine kept on disk: its Node is gone."""

    machine: str
    spec: MachineSpec


Action = Spawn | Tell | Signal | Forget


# ---------------------------------------------------------------- what is there


@dataclass(slots=True)
class Component:
    """A machine that is wanted, and what became of it."""

    spec: MachineSpec
    kind: str
    process: str
    identity: str
    wish: int
    """Which wish it is: one that was withdrawn and made again is another, even for the same Node."""
    restarts: int = 0
    ready: bool = False
    epoch: int = 0
    frozen: bool = False
    stay_dead: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    last_end: str = ""

    @property
    def name(self) -> str:
        return self.spec.name


@dataclass(slots=True)
class _Inside:
    """A machine that a process holds for a ``wish``; ``leaving`` once it was told to drop it."""

    wish: int
    spec: MachineSpec
    leaving: bool = False


@dataclass(slots=True)
class _Process:
    name: str
    inside: dict[str, _Inside] = field(default_factory=dict)
    unready: set[str] = field(default_factory=set)
    """Those inside that have not begun yet."""
    spawned: bool = False
    pid: int = 0
    hears: bool = False
    """It has said that it started, so orders reach it."""
    frozen: bool = False
    kill_at: float | None = None
    stopping: bool = False
    expected: bool = False
    """Its coming death was asked for."""
    armed: dict[str, bool] = field(default_factory=dict)
    """The failpoints that stand in it, machine -> does it stay dead?"""
    failures: int = 0
    not_before: float = 0.0
    healthy_since: float | None = None


class Fleet:
    """The components of a cluster and the processes that hold them. Times are seconds on any clock that never goes back."""

    def __init__(self) -> None:
        self.components: dict[str, Component] = {}
        self._processes: dict[str, _Process] = {}
        self._of: dict[str, dict[str, Component]] = {}
        """Process -> its components."""
        self._changed: dict[str, None] = {}
        """Processes about which something is new, so that thousands of machines need not be looked at for one."""
        self._forget: dict[str, MachineSpec] = {}
        self._wishes = itertools.count(1)

    # ------------------------------------------------------------ what is wanted

    def want(self, spec: MachineSpec, *, kind: str, process: str, identity: str = "") -> None:
        """There should be this machine, in that process. Told again with the same identity it changes nothing."""
        known = self.components.get(spec.name)
        if known is not None and known.identity == identity:
            return
        if known is not None:
            self.unwant(spec.name, forget=True)
        made = self.components[spec.name] = Component(spec, kind, process, identity, next(self._wishes))
        self._of.setdefault(process, {})[spec.name] = made
        self._processes.setdefault(process, _Process(process))
        self._changed[process] = None

    def unwant(self, machine: str, *, forget: bool = False) -> None:
        """There should not be this machine; with ``forget`` its disk goes when it has ended."""
        component = self.components.pop(machine, None)
        if component is None:
            return
        del self._of[component.process][machine]
        self._changed[component.process] = None
        if forget:
            self._forget[machine] = component.spec

    # ------------------------------------------------------------ what happened

    def forked(self, process: str, pid: int) -> None:
        """The process exists."""
        if (found := self._processes.get(process)) is not None and found.spawned:
            found.pid = pid
            self._changed[process] = None

    def started(self, process: str) -> None:
        """The process can be told things."""
        if (found := self._processes.get(process)) is not None and found.spawned:
            found.hears = True
            self._changed[process] = None

    def ready(self, now: float, machine: str, epoch: int, facts: dict[str, Any]) -> None:
        """A machine has begun a life."""
        component = self.components.get(machine)
        if component is None:
            return
        process = self._processes[component.process]
        inside = process.inside.get(machine)
        if inside is None or inside.wish != component.wish:
            return  # the word of a life that is over
        component.ready, component.epoch, component.facts = True, epoch, dict(facts)
        process.unready.discard(machine)
        if process.healthy_since is None and not process.unready:
            process.healthy_since = now

    def ended(self, machine: str, why: str) -> None:
        """A machine's life is over, its process may go on."""
        process = next((p for p in self._processes.values() if machine in p.inside), None)
        if process is None:
            return
        component = self.components.get(machine)
        inside = process.inside[machine]
        if component is not None and component.wish == inside.wish:
            component.last_end, component.ready, component.frozen = why, False, False
            process.unready.add(machine)
            if why == "restarted" or (why.startswith("failed") and component.process != machine):
                component.restarts += 1  # inside the process; else the process ends, and is started again
        self._changed[process.name] = None
        if why == "removed":
            del process.inside[machine]
            process.unready.discard(machine)
            self._left(machine)

    def exited(self, now: float, process: str, how: str) -> None:
        """The process is gone; ``how`` says in words what ended it."""
        found = self._processes.get(process)
        if found is None:
            return
        asked = found.expected or found.stopping or bool(found.armed)
        if found.healthy_since is not None and now - found.healthy_since >= HEALTHY_SECONDS:
            found.failures = 0
        wait = BACKOFF_SECONDS[0 if asked else min(found.failures, len(BACKOFF_SECONDS) - 1)]
        found.failures += 0 if asked else 1
        found.not_before = now if found.stopping else now + wait
        self._changed[process] = None
        for name, inside in found.inside.items():
            self._left(name)
            component = self.components.get(name)
            if component is None or component.wish != inside.wish:
                continue
            component.ready, component.frozen = False, False
            component.last_end = component.last_end if component.last_end.startswith("failed") else how
            component.restarts += 1
            component.stay_dead = component.stay_dead or found.armed.get(name, False)
        found.inside.clear()
        found.unready.clear()
        found.armed.clear()
        found.spawned, found.pid, found.hears = False, 0, False
        found.frozen, found.stopping, found.expected = False, False, False
        found.kill_at, found.healthy_since = None, None

    def _left(self, machine: str) -> None:
        """A machine is gone from a process: one of its name may have waited for that elsewhere."""
        if (waiting := self.components.get(machine)) is not None:
            self._changed[waiting.process] = None

    # ------------------------------------------------------------ what to do

    def reconcile(self, now: float) -> list[Action]:
        """Everything that is to be done now; ``due`` says when to ask again."""
        actions: list[Action] = []
        changed, self._changed = self._changed, {}
        for process in list(self._processes.values()):
            if process.spawned and process.name not in changed and (process.kill_at is None or now < process.kill_at):
                continue
            wanted = [c for c in self._of.get(process.name, {}).values() if not c.stay_dead]
            if process.spawned:
                actions += self._tend(now, process, wanted)
            elif wanted and now >= process.not_before:
                free = [c for c in wanted if not self._lingers(c)]
                if free:
                    actions += self._forgotten()
                    process.spawned = True
                    process.inside = {c.name: _Inside(c.wish, c.spec) for c in free}
                    process.unready = set(process.inside)
                    actions.append(Spawn(process.name, tuple(c.spec for c in free)))
            elif not wanted and not self._of.get(process.name):
                del self._processes[process.name]
                self._of.pop(process.name, None)
        return [*actions, *self._forgotten()]

    def due(self) -> float | None:
        """When ``reconcile`` may have more to do although nothing happened."""
        times = [p.kill_at for p in self._processes.values() if p.kill_at is not None]
        away = [p for p in self._processes.values() if not p.spawned]
        times += [p.not_before for p in away if any(not c.stay_dead for c in self._of.get(p.name, {}).values())]
        return min(times, default=None)

    def _tend(self, now: float, process: _Process, wanted: Sequence[Component]) -> list[Action]:
        by_name = {c.name: c for c in wanted}
        if process.stopping:
            if process.kill_at is not None and now >= process.kill_at and process.pid:
                process.kill_at = None
                return [Signal(process.name, process.pid, signal.SIGKILL)]
            return []
        unwanted = [name for name, inside in process.inside.items() if not _is_same(by_name.get(name), inside)]
        if not process.pid:
            return []  # being forked
        if process.inside and len(unwanted) == len(process.inside):
            process.stopping = True
            if process.frozen or not process.hears:
                return [Signal(process.name, process.pid, signal.SIGKILL)]
            process.kill_at = now + STOP_SECONDS
            return [Tell(process.name, Shutdown())]
        if not process.hears:
            return []
        actions: list[Action] = []
        for name in unwanted:
            if not process.inside[name].leaving:
                process.inside[name].leaving = True
                actions.append(Tell(process.name, RemoveMachine(name)))
        for component in wanted:
            if component.name not in process.inside and not self._lingers(component):
                actions += self._forgotten()
                process.inside[component.name] = _Inside(component.wish, component.spec)
                process.unready.add(component.name)
                actions.append(Tell(process.name, AddMachine(component.spec)))
        return actions

    def _lingers(self, component: Component) -> bool:
        """Does a machine of that name still live in some process, as a former identity or elsewhere?"""
        return any(component.name in p.inside for p in self._processes.values())

    def _forgotten(self) -> list[Action]:
        if not self._forget:
            return []
        inside = {name for p in self._processes.values() for name in p.inside}
        over = [name for name in self._forget if name not in inside]
        return [Forget(name, self._forget.pop(name)) for name in over]

    # ------------------------------------------------------------ what people ask for

    def arm(self, machine: str, *, stay_dead: bool) -> str:
        """A failpoint is about to stand in ``machine``; the name of its process."""
        component = self.components[machine]
        self._processes[component.process].armed[machine] = stay_dead
        return component.process

    def inside(self, process: str) -> list[str]:
        """The machines that the process holds."""
        found = self._processes.get(process)
        return list(found.inside) if found is not None else []

    def hearing(self) -> list[str]:
        """The processes that can be told things."""
        return [p.name for p in self._processes.values() if p.hears]

    def kill(self, machine: str, number: int, *, stay_dead: bool) -> list[Action]:
        """What sends that signal to ``machine``; a machine that shares its process feels it alone."""
        component = self.components[machine]
        process = self._processes[component.process]
        self._changed[component.process] = None
        if number == signal.SIGCONT and component.stay_dead:
            component.stay_dead = False
            return []
        component.stay_dead = component.stay_dead or (stay_dead and number in (signal.SIGKILL, signal.SIGTERM))
        if self.is_shared(machine):
            return self._kill_inside(component, number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            process.expected = True
        else:
            process.frozen = component.frozen = number == signal.SIGSTOP
        if component.stay_dead:
            process.stopping = True
        return [Signal(process.name, process.pid, number)]

    def _kill_inside(self, component: Component, number: int) -> list[Action]:
        match number:
            case signal.SIGSTOP:
                component.frozen = True
                order: Order = PauseMachine(component.name)
            case signal.SIGCONT:
                component.frozen = False
                order = ResumeMachine(component.name)
            case _ if component.stay_dead:
                return []  # reconcile removes it
            case _:
                order = RestartMachine(component.name)
        return [Tell(component.process, order)]

    # ------------------------------------------------------------ questions

    def is_shared(self, machine: str) -> bool:
        """Is its process one that holds several machines?"""
        return self.components[machine].process != machine

    def pid(self, machine: str) -> int:
        """Its process's id; 0 while it has none."""
        process = self._processes.get(self.components[machine].process)
        return process.pid if process is not None and machine in process.inside else 0

    def holds(self, machine: str) -> bool:
        """Does some process hold a life of that machine?"""
        return any(machine in p.inside for p in self._processes.values())

    def state(self, machine: str) -> State:
        """How the component fares."""
        component = self.components[machine]
        process = self._processes[component.process]
        if machine not in process.inside:
            return State.DEAD if component.stay_dead else State.RESTARTING if component.restarts else State.STARTING
        if process.stopping:
            return State.STOPPING
        if component.frozen or process.frozen:
            return State.FROZEN
        return State.RUNNING if component.ready else State.STARTING

    def processes(self) -> dict[str, int]:
        """The processes that exist or are being started, and their ids (0: not known yet)."""
        return {p.name: p.pid for p in self._processes.values() if p.spawned}


def _is_same(component: Component | None, inside: _Inside) -> bool:
    return component is not None and component.wish == inside.wish
