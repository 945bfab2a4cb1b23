"""Machines for the tests of hosts and of the simulated world: they do what they are told over the bus, and count it."""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.machine import (
    Effect,
    Input,
    Instant,
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
    seconds,
)
from elbowroom.wire import Call, Reply, decode_value, encode_value


class Script(msgspec.Struct):
    """What a call makes an ``Actor`` do: each entry is ``[effect, argument...]``."""

    effects: list[list[Any]]


class Actor:
    """Carries out the effects that a call lists, then replies with what it knows: its epoch, disk and the news it had."""

    def __init__(self, config: Mapping[str, Any], rng: random.Random) -> None:
        self.name, self.epoch = config["name"], config["epoch"]
        self.disk: dict[str, bytes] = {}
        self.news: list[str] = []
        self.reply_to: tuple[str, int] | None = None

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        self.disk = dict(disk)
        return [Note("probe.start", {"disk": sorted(disk)})]

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        match happened:
            case Received(source, Call(id, "do", body)):
                script = decode_value(body, Script)
                effects = [made for entry in script.effects for made in self._effects(now, entry)]
                state = {"epoch": self.epoch, "disk": self.disk, "news": self.news, "now": now}
                return [*effects, Send(source, Reply(id, body=encode_value(state)))]
            case Received(source, Call(id, "state")):
                return [Send(source, Reply(id, body=encode_value({"epoch": self.epoch, "disk": self.disk, "news": self.news})))]
            case Received(source, Call(id, "raise")):
                raise RuntimeError("told to raise")
            case Received(source, Call(id, "echo", body)):
                return [Send(source, Reply(id, body=body))]
            case Received(source, Reply(id, _, body)):
                self.news.append(f"reply {id} {source}")
            case TimerFired(name):
                self.news.append(f"timer {name}")
                return [Note("probe.timer", {"name": name, "late_ns": now - int(name.partition("@")[2] or now)})]
            case PeerConnected(peer):
                self.news.append(f"connected {peer}")
                return [Note("probe.connected", {"peer": peer})]
            case WorkDone(token, outcome):
                self.news.append(f"work {token} {outcome}")
        return []

    def _effects(self, now: Instant, entry: list[Any]) -> list[Effect]:
        match entry:
            case ["persist", key, value, *labels]:
                raw = None if value is None else value.encode()
                if raw is None:
                    self.disk.pop(key, None)
                else:
                    self.disk[key] = raw
                return [Persist(key, raw, tuple(labels))]
            case ["note", name]:
                return [Note(name, {})]
            case ["step", label]:
                return [Step(label)]
            case ["timer", name, after]:
                return [SetTimer(name, None if after is None else Instant(now + seconds(after)))]
            case ["timer@", name, after]:
                at = Instant(now + seconds(after))
                return [SetTimer(f"{name}@{at}", at)]
            case ["call", target, id]:
                return [Send(target, Call(id, "state"))]
            case ["work", token]:
                return [Work(token, lambda: token.upper())]
            case ["drive", token]:
                return [Work(token, "task")]
            case ["fail", token]:
                return [Work(token, lambda: 1 // 0)]
        raise ValueError(entry)


def build(config: Mapping[str, Any], rng: random.Random) -> Actor:
    return Actor(config, rng)


class GatedDisk:
    """A disk whose commits wait until the test lets them pass; it remembers the groups."""

    made: "dict[str, GatedDisk]" = {}

    def __init__(self, path: str) -> None:
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.groups: list[list[str]] = []
        self.kept: dict[str, bytes] = {}
        self.fail = False
        self.idled = threading.Event()
        self.made[path] = self

    def load(self) -> dict[str, bytes]:
        return dict(self.kept)

    def commit(self, writes: Sequence[Persist], step: Callable[[str], None]) -> None:
        self.groups.append([write.key for write in writes])
        self.begun.release()
        self.gate.wait(10)
        if self.fail:
            raise OSError(28, "no space left on device")
        self.kept.update({write.key: write.value or b"" for write in writes})

    def idle(self) -> None:
        self.idled.set()

    def close(self) -> None: ...


class EchoDriver:
    """Answers each message to ``http/...`` at once, from within ``deliver``, and does work."""

    prefix = "http/"
    stopped = 0

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    async def start(self, post: Callable[[Input], None]) -> Mapping[str, Any]:
        self.post = post
        return {"port": self.config["port"]}

    def deliver(self, effect: Send) -> None:
        assert isinstance(effect.message, Call)
        self.post(Received(effect.target, Reply(effect.message.id, body=b"driver")))

    def work(self, effect: Work) -> None:
        self.post(WorkDone(effect.token, f"driven {effect.task}"))

    async def stop(self) -> None:
        EchoDriver.stopped += 1


def broken(config: Mapping[str, Any], rng: random.Random) -> Actor:
    raise RuntimeError("cannot be built")
