"""Tiny machines in the places of the real services, so that the supervisor is tested alone: an API server that keeps Nodes and
calls a Node Ready when its kubelet says hello, and services that say hello or nothing.

What a machine is told to do is in its environment's place, its config: ``fail`` (cannot begin).
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from elbowroom.deploy.topology import Topology
from elbowroom.host.spec import DriverSpec, MachineSpec
from elbowroom.machine import Effect, Input, Instant, Note, Persist, Received, Send, Step, as_time
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Code,
    Reply,
    StreamBookmark,
    StreamCancel,
    StreamEnd,
    StreamEvent,
    decode_value,
    encode_value,
)


class TinyApiServer:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._nodes: dict[str, dict[str, Any]] = {}
        self._revision = 0
        self._watches: dict[tuple[str, int], int] = {}

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        if self._config.get("fail"):
            raise RuntimeError(self._config["fail"])
        self._nodes = msgspec.json.decode(disk.get("nodes", b"{}"))
        self._revision = len(self._nodes)
        return []

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        match happened:
            case Received(source, Call(number, "api", body)):
                return self._on_request(source, number, decode_value(body, ApiRequest))
            case Received(source, Call(number, "watch", body)):
                if int(decode_value(body, ApiRequest).query.get("resourceVersion") or 0) > self._revision:
                    return [Send(source, StreamEnd(number, Code.OUT_OF_RANGE))]
                return self._on_watch(source, number)
            case Received(source, Call(number, "hello")):
                effects = self._on_hello(now, source.partition("/")[2]) if source.startswith("kubelet/") else []
                return [*effects, Send(source, Reply(number))]
            case Received(source, StreamCancel(number)):
                self._watches.pop((source, number), None)
        return []

    def _on_request(self, source: str, number: int, request: ApiRequest) -> list[Effect]:
        effects: list[Effect] = []
        if request.verb == "create":
            node = msgspec.json.decode(request.body)
            name = node["metadata"]["name"]
            answer = ApiResponse(409 if name in self._nodes else 201, b'{"message": "exists"}')
            if name not in self._nodes:
                node["metadata"]["uid"] = f"uid-{self._revision}"
                effects += self._changed("ADDED", node)
        else:
            effects += self._changed("DELETED", self._nodes[request.name])
            answer = ApiResponse(200, b"{}")
        return [*effects, Send(source, Reply(number, body=encode_value(answer)))]

    def _on_watch(self, source: str, number: int) -> list[Effect]:
        effects: list[Effect] = []
        for sequence, node in enumerate(self._nodes.values(), 1):
            event = StreamEvent(number, sequence, self._revision, 0, "ADDED", msgspec.json.encode(node))
            effects.append(Send(source, event))
        self._watches[source, number] = len(self._nodes)
        return [*effects, Send(source, StreamBookmark(number, len(self._nodes), self._revision, initial_end=True))]

    def _on_hello(self, now: Instant, name: str) -> list[Effect]:
        node = self._nodes.get(name)
        if node is None:
            return []
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": as_time(now)}
        node = {**node, "status": {**node.get("status", {}), "conditions": [ready]}}
        return self._changed("MODIFIED", node)

    def _changed(self, change: str, node: dict[str, Any]) -> list[Effect]:
        previous, self._revision = self._revision, self._revision + 1
        node["metadata"]["resourceVersion"] = str(self._revision)
        if change == "DELETED":
            self._nodes.pop(node["metadata"]["name"])
        else:
            self._nodes[node["metadata"]["name"]] = node
        effects: list[Effect] = [Persist("nodes", msgspec.json.encode(self._nodes))]
        for (source, number), sequence in list(self._watches.items()):
            self._watches[source, number] = sequence + 1
            event = StreamEvent(number, sequence + 1, self._revision, previous, change, msgspec.json.encode(node))
            effects.append(Send(source, event))
        return effects


class TinyService:
    """Says hello to whom it dials and answers whoever calls; its disk counts its lives."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        if self._config.get("fail"):
            raise RuntimeError(self._config["fail"])
        lives = int(disk.get("lives", b"0")) + 1
        hello: list[Effect] = []
        if self._config["name"].startswith("kubelet/"):
            hello = [Step("R1"), Step("T1"), Send("apiserver", Call(1, "hello"))]
        return [Note("tiny.alive", {"lives": lives}), Persist("lives", str(lives).encode()), *hello]

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        match happened:
            case Received(source, Call(number)):
                return [Step("T2 answering"), Send(source, Reply(number))]
        return []


def api_server(config: Mapping[str, Any], rng: random.Random) -> TinyApiServer:
    return TinyApiServer(config)


def service(config: Mapping[str, Any], rng: random.Random) -> TinyService:
    return TinyService(config)


class Facts:
    """A driver that only tells facts."""

    prefix = "http/"

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts

    async def start(self, post: Any) -> Mapping[str, Any]:
        return self._facts

    def deliver(self, effect: Send) -> None: ...

    def work(self, effect: Any) -> None: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TinyTopology(Topology):
    """The real places and addresses, with tiny machines in them. ``fail`` names those that cannot begin, and why."""

    fail: Mapping[str, str] = field(default_factory=dict)

    def _tiny(self, spec: MachineSpec, drivers: list[DriverSpec]) -> MachineSpec:
        factory = f"tiny:{'api_server' if spec.name == 'apiserver' else 'service'}"
        config = {"fail": self.fail.get(spec.name, "")}
        disk = spec.disk
        if disk.kind not in ("memory", "boot", "files"):
            disk = msgspec.structs.replace(disk, kind="files")
        return msgspec.structs.replace(spec, factory=factory, config=config, drivers=drivers, disk=disk)

    def apiserver(self, facade: dict[str, Any]) -> MachineSpec:
        return self._tiny(Topology.apiserver(self, facade), [DriverSpec("tiny:Facts", {"port": facade["port"]})])

    def service(self, name: str) -> MachineSpec:
        return self._tiny(Topology.service(self, name), [])

    def runtime(self, node: str, hardware: Mapping[str, Any] | None = None) -> MachineSpec:
        return self._tiny(Topology.runtime(self, node), [])

    def kubelet(self, node: str) -> MachineSpec:
        return self._tiny(Topology.kubelet(self, node), [])


def topology_that_fails(fail: Mapping[str, str]) -> Callable[..., Topology]:
    """A tiny topology in which these machines cannot begin."""
    return partial(TinyTopology, fail=fail)
