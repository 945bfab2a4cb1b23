"""A machine stepped directly, with small fake peers: what an API server's tests build on."""

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.api.gates import profile_of
from elbowroom.apiserver.machine import build
from elbowroom.machine import Effect, Input, Instant, Note, Persist, Received, Send, SetTimer, Step, TimerFired, seconds
from elbowroom.rpc import requests
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Message,
    Reply,
    StreamBookmark,
    StreamEnd,
    StreamEvent,
    decode_value,
    encode_value,
)

START = Instant(1_800_000_000 * 1_000_000_000)


class Answer:
    """An ``ApiResponse`` with its body parsed."""

    def __init__(self, response: ApiResponse) -> None:
        self.status, self.warnings, self.revision, self.raw = response.status, response.warnings, response.revision, response.body
        self.body: dict[str, Any] = msgspec.json.decode(response.body) if response.body else {}

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class World:
    """One API server with a disk that keeps what is persisted, and virtual time."""

    def __init__(
        self,
        *,
        disk: dict[str, bytes] | None = None,
        profile: str = "v1.37",
        gates: dict[str, bool] | None = None,
        seed: int = 1,
        **config: Any,
    ) -> None:
        self.now = START
        self.disk = disk if disk is not None else {}
        self.timers: dict[str, Instant] = {}
        self.sent: list[Send] = []
        self.effects: list[Effect] = []
        self._ids = itertools.count(1)
        given = {"profile": profile_of(profile, gates or {}).as_config(), "name": "apiserver", "policy": False, **config}
        self.machine = build(given, random.Random(seed))
        self._carry_out(self.machine.start(self.now, dict(self.disk)))

    def step(self, happened: Input) -> Sequence[Effect]:
        effects = self.machine.step(self.now, happened)
        self._carry_out(effects)
        return effects

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        self.effects += effects
        for effect in effects:
            match effect:
                case Send():
                    self.sent.append(effect)
                case SetTimer(name, at):
                    self.timers.pop(name, None)
                    if at is not None:
                        self.timers[name] = at
                case Persist(key, value):
                    if value is None:
                        self.disk.pop(key, None)
                    else:
                        self.disk[key] = value
                case _:
                    assert isinstance(effect, Note | Step)

    def wait(self, amount: float) -> None:
        """Let virtual time pass, firing timers in order."""
        until = Instant(self.now + seconds(amount))
        while self.timers:
            name = min(self.timers, key=lambda n: self.timers[n])
            if self.timers[name] > until:
                break
            self.now = max(self.now, self.timers.pop(name))
            self.step(TimerFired(name))
        self.now = until

    # ------------------------------------------------------------ asking

    def ask(self, request: ApiRequest, peer: str = "client/test", epoch: int = 0) -> Answer:
        return Answer(self.ask_raw(request, peer, epoch))

    def ask_raw(self, request: ApiRequest, peer: str = "client/test", epoch: int = 0) -> ApiResponse:
        """The answer as it is, JSON or not."""
        number = next(self._ids)
        self.step(Received(peer, Call(number, "api", encode_value(request), epoch=epoch)))
        reply = self.received(peer)[-1]
        assert isinstance(reply, Reply) and reply.id == number, reply
        return decode_value(reply.body, ApiResponse)

    def received(self, peer: str) -> list[Message]:
        return [send.message for send in self.sent if send.target == peer]

    def get(self, resource: str, name: str, **more: Any) -> Answer:
        return self.ask(requests.get(resource, name, **more))

    def create(self, resource: str, body: Any, namespace: str = "", peer: str = "client/test") -> Answer:
        return self.ask(requests.create(resource, body, namespace=namespace), peer)

    def patch(self, resource: str, name: str, body: Any, peer: str = "client/test", **more: Any) -> Answer:
        return self.ask(requests.patch(resource, name, body, **more), peer)

    def update(self, resource: str, name: str, body: Any, **more: Any) -> Answer:
        return self.ask(requests.update(resource, name, body, **more))

    def delete(self, resource: str, name: str, namespace: str = "", peer: str = "client/test", **options: Any) -> Answer:
        return self.ask(requests.delete(resource, name, namespace=namespace, options=options or None), peer)

    def list(self, resource: str, namespace: str = "", **query: str) -> Answer:
        return self.ask(requests.listing(resource, namespace=namespace, query=query))

    # ------------------------------------------------------------ watching

    def watch(
        self, resource: str, namespace: str = "", *, peer: str = "client/watcher", credit: int = 1000, **query: str
    ) -> "Stream":
        plural, _, group = resource.partition(".")
        number = next(self._ids)
        masters = ("system:masters",)  # whom the facade names; peers of the bus are known by their names
        request = ApiRequest("watch", plural, group, namespace=namespace, query=query, user="admin", groups=masters)
        self.step(Received(peer, Call(number, "watch", encode_value(request), credit=credit)))
        return Stream(self, peer, number)


class Stream:
    """What one watch was told."""

    def __init__(self, world: World, peer: str, number: int) -> None:
        self.world, self.peer, self.id = world, peer, number

    @property
    def messages(self) -> list[StreamEvent | StreamBookmark | StreamEnd]:
        return [
            message
            for message in self.world.received(self.peer)
            if isinstance(message, StreamEvent | StreamBookmark | StreamEnd) and message.id == self.id
        ]

    @property
    def events(self) -> list[StreamEvent]:
        return [message for message in self.messages if isinstance(message, StreamEvent)]

    @property
    def end(self) -> StreamEnd | None:
        return next((message for message in self.messages if isinstance(message, StreamEnd)), None)

    @property
    def told(self) -> list[tuple[str, str]]:
        """(change, name) of each event."""
        return [(event.change, msgspec.json.decode(event.object)["metadata"]["name"]) for event in self.events]


def a_pod(
    name: str = "a", *, node: str = "", cpu: str = "100m", memory: str = "64Mi", grace: int = 30, **spec: Any
) -> dict[str, Any]:
    """A pod with one container ``c``."""
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": grace, **({"nodeName": node} if node else {}), **spec},
    }


def a_node(name: str = "n1", cpu: str = "4", memory: str = "8Gi") -> dict[str, Any]:
    """A node with room."""
    capacity = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {"metadata": {"name": name}, "status": {"capacity": capacity, "allocatable": capacity}}


def requests_of(cpu: str) -> Mapping[str, Any]:
    """A patch of container ``c``'s cpu request."""
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
