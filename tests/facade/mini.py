"""One machine on a loop, with a disk in memory: what a host is, in small."""

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any

from elbowroom.api.gates import profile_of
from elbowroom.apiserver.drivers.facade import Facade, build
from elbowroom.apiserver.machine import build as build_machine
from elbowroom.machine import Effect, Input, Instant, Persist, Send, SetTimer, TimerFired, Work


class Mini:
    """The API server's machine with its facade; ``facade`` is started and stopped by the caller."""

    def __init__(self, credentials: str, profile: str = "lab", **facade: Any) -> None:
        config = {"profile": profile_of(profile).as_config(), "epoch": 1, "name": "apiserver", "store": "memory"}
        self.machine = build_machine({**config, "audit": "audit" in facade}, random.Random(1))
        self.facade: Facade = build({"credentials": credentials, "previews": profile == "lab", **facade})
        self._disk: dict[str, bytes] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.sent: list[Send] = []
        """What went to peers that are not there."""

    async def start(self) -> int:
        """The port."""
        self._carry_out(self.machine.start(self._now(), {}))
        facts = await self.facade.start(self.post)
        port: Any = facts["port"]
        assert isinstance(port, int)
        return port

    async def stop(self) -> None:
        await self.facade.stop()
        for handle in self._timers.values():
            handle.cancel()

    def _now(self) -> Instant:
        return Instant(time.time_ns())

    def post(self, happened: Input) -> None:
        self._carry_out(self.machine.step(self._now(), happened))

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(target, _) if target.startswith(self.facade.prefix):
                    self.facade.deliver(effect)
                case Send():
                    self.sent.append(effect)
                case Work():
                    self.facade.work(effect)
                case SetTimer(name, at):
                    self._arm(name, at)
                case Persist(key, value):
                    if value is None:
                        self._disk.pop(key, None)
                    else:
                        self._disk[key] = value

    def _arm(self, name: str, at: Instant | None) -> None:
        if (handle := self._timers.pop(name, None)) is not None:
            handle.cancel()
        if at is not None:
            wait = max(0.0, (at - self._now()) / 1e9)
            self._timers[name] = asyncio.get_running_loop().call_later(wait, self._fire, name)

    def _fire(self, name: str) -> None:
        del self._timers[name]
        self.post(TimerFired(name))
