"""The same machines on a real host and in the simulated world, behind one face."""

import asyncio
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import uvloop

from elbowroom.host.process import Host
from elbowroom.host.spec import AddMachine, DiskSpec, HostSpec, MachineSpec, RestartMachine
from elbowroom.machine import Effect, Input, Instant, Note, PeerConnected, Persist, Received, Send, SetTimer, TimerFired, seconds
from elbowroom.sim import World
from elbowroom.wire import Call, Reply

Records = list[dict[str, Any]]


class Talker:
    """Sends ``count`` numbered calls to ``peer``, one every ``every`` seconds (all at once if 0), and notes each answer. Its timers
    are ``set`` as configured. It notes every input's time."""

    def __init__(self, config: Mapping[str, Any], rng: random.Random) -> None:
        self.peer, self.count, self.every = config["peer"], config.get("count", 0), config.get("every", 0.0)
        self.timers: dict[str, float | None] = config.get("timers", {})
        self.then: dict[str, float | None] = config.get("then", {})
        self.sent = 0

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        timers = [SetTimer(name, Instant(now + seconds(span or 0))) for name, span in self.timers.items()]
        return [Note("talker.start", {"at": now}), *timers, *self._talk(now)]

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        seen = Note("talker.input", {"at": now})
        match happened:
            case TimerFired("talk"):
                return [seen, *self._talk(now)]
            case TimerFired(name):
                again = self.then if name == "first" else {}
                changed = [SetTimer(n, None if span is None else Instant(now + seconds(span))) for n, span in again.items()]
                return [seen, Note("talker.timer", {"name": name, "at": now}), *changed]
            case Received(source, Reply(id)):
                return [seen, Note("talker.answer", {"id": id, "source": source})]
            case PeerConnected(peer):
                return [seen, Note("talker.connected", {"peer": peer})]
        return [seen]

    def _talk(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        while self.sent < self.count:
            self.sent += 1
            effects.append(Send(self.peer, Call(self.sent, "count")))
            if self.every:
                effects.append(SetTimer("talk", Instant(now + seconds(self.every))))
                break
        return effects


class Counter:
    """Counts calls on its disk, and answers each once its count is durable."""

    def __init__(self, config: Mapping[str, Any], rng: random.Random) -> None:
        self.count = 0
        self.stray = config.get("stray", "")

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        self.count = int(disk.get("count", b"0"))
        return [Note("counter.start", {"count": self.count})]

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        match happened:
            case Received(source, Call(id)):
                self.count += 1
                effects: list[Effect] = [Persist("count", str(self.count).encode()), Note("counter.call", {"id": id})]
                if self.stray:
                    effects.append(Send(self.stray, Call(id, "anybody there?")))
                return [*effects, Send(source, Reply(id))]
            case PeerConnected(peer):
                return [Note("counter.gone", {"peer": peer})]
        return []


class Rig(Protocol):
    """Machines, and what they noted."""

    def add(self, name: str, kind: type, config: Mapping[str, Any], dials: Sequence[str] = ()) -> None: ...
    def restart(self, name: str) -> None: ...
    def until(self, predicate: Callable[[Records], bool]) -> Records: ...
    def close(self) -> None: ...


class Simulated:
    """Virtual time."""

    def __init__(self) -> None:
        self._world = World(5)

    def add(self, name: str, kind: type, config: Mapping[str, Any], dials: Sequence[str] = ()) -> None:
        self._world.add(name, kind, config, dials=dials)

    def restart(self, name: str) -> None:
        self._world.crash(name, 0.05)

    def until(self, predicate: Callable[[Records], bool]) -> Records:
        assert self._world.run_until(lambda: predicate(self._world.history), 10.0)
        return self._world.history

    def close(self) -> None:
        self._world.close()


class Real:
    """One host with sockets, files and threads."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="eb")
        self._path = Path(self._folder.name)
        self._loop = uvloop.new_event_loop()
        self._host = Host(HostSpec("p", [], history=str(self._path / "history")), self._loop)
        self._serving = self._loop.create_task(self._host.serve())

    def add(self, name: str, kind: type, config: Mapping[str, Any], dials: Sequence[str] = ()) -> None:
        spec = MachineSpec(
            name,
            f"rigs:{kind.__name__}",
            dict(config),
            bind=self._address(name),
            dial={peer: self._address(peer) for peer in dials},
            disk=DiskSpec("files", str(self._path / "disk" / name)),
        )
        self._host.obey(AddMachine(spec))

    def restart(self, name: str) -> None:
        self._host.obey(RestartMachine(name))

    def until(self, predicate: Callable[[Records], bool]) -> Records:
        async def look() -> Records:
            while not predicate(records := self._records()):
                await asyncio.sleep(0)
            return records

        return self._loop.run_until_complete(asyncio.wait_for(look(), 10.0))

    def close(self) -> None:
        self._host.shut_down()
        self._loop.run_until_complete(self._serving)
        self._loop.close()
        self._folder.cleanup()

    def _address(self, name: str) -> str:
        return f"ipc://{self._path}/{name}"

    def _records(self) -> Records:
        lines = [line for file in (self._path / "history").glob("*.jsonl") for line in file.read_bytes().splitlines()]
        return sorted((msgspec.json.decode(line) for line in lines), key=lambda one: (one["mono_ns"], one["seq"]))
