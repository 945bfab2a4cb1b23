"""A client of the API server inside a world, for scenarios: it asks, and time passes until the answer is there."""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec

from elbowroom.cache import Reflector
from elbowroom.machine import Effect, Input, Instant, Machine
from elbowroom.rpc import Calls
from elbowroom.rpc.operations import ended, invoked
from elbowroom.wire import ApiRequest, ApiResponse

View = TypeVar("View")


class Surroundings(Protocol):
    """What a client needs of the world that it is in (``elbowroom.sim.World``)."""

    now: Instant

    def add(
        self,
        name: str,
        factory: Callable[[Mapping[str, Any], random.Random], Machine],
        /,
        *,
        dials: Sequence[str],
        mortal: bool,
    ) -> None: ...
    def act(self, name: str, effects: Sequence[Effect], /) -> None: ...
    def run_until(self, predicate: Callable[[], bool], timeout: float, /) -> bool: ...


@dataclass(slots=True)
class Pending:
    """A request under way. ``response`` is None until it ended; its status is 0 if nobody knows what became of it."""

    op: str
    request: ApiRequest
    response: ApiResponse | None = None

    def document(self) -> Any:
        """The answer's JSON body."""
        assert self.response is not None, f"{self.request.verb} {self.request.resource} has no answer yet"
        return msgspec.json.decode(self.response.body) if self.response.body else None


@dataclass(slots=True)
class _Peer:
    """The client's machine."""

    ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    calls: Calls = field(init=False)
    mirrors: list[Reflector[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.calls = Calls(ids=self.ids)

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        return ()

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        effects, finished = self.calls.finished(now, happened)
        made = list(effects)
        for one in finished:
            pending: Pending = one.context
            pending.response = one.api()
            made.append(ended(pending.op, pending.request, one))
        for mirror in self.mirrors:
            made += mirror.handle(now, happened)[0]
        return made


class Client:
    """A peer named ``client/...`` that speaks to ``target`` and writes ``api.invoke/ok/fail/info`` to the history."""

    def __init__(self, world: Surroundings, name: str, target: str = "apiserver") -> None:
        self._world, self._name, self._target = world, name, target
        self._ops = itertools.count(1)
        self._peer = _Peer()
        world.add(name, self._build, dials=(target,), mortal=False)

    def _build(self, config: Mapping[str, Any], rng: random.Random) -> _Peer:
        return self._peer

    def begin(self, request: ApiRequest, timeout: float = 10.0) -> Pending:
        """Send a request and go on; several can be under way."""
        world = self._world
        pending = Pending(f"{self._name}/{next(self._ops)}", request)
        asked = self._peer.calls.api(world.now, request, context=pending, timeout=timeout, target=self._target)
        world.act(self._name, [invoked(pending.op, request), *asked])
        return pending

    def api(self, request: ApiRequest, timeout: float = 10.0) -> ApiResponse:
        """Send a request and let time pass until it ended."""
        pending = self.begin(request, timeout)
        self._world.run_until(lambda: pending.response is not None, timeout + 1)
        assert pending.response is not None, "a call ends by its deadline at the latest"
        return pending.response

    def document(self, request: ApiRequest, timeout: float = 10.0) -> Any:
        """The JSON body of a request that must succeed; ``AssertionError`` with the server's words if it does not."""
        response = self.api(request, timeout)
        assert 200 <= response.status < 300, (
            f"{request.verb} {request.resource} {request.name}: {response.status} {response.body!r}"
        )
        return msgspec.json.decode(response.body) if response.body else None

    def mirror(
        self, resource: str, view: type[View], *, namespace: str = "", query: dict[str, str] | None = None
    ) -> Reflector[View]:
        """A copy of a collection that follows the server: ``mirror.store["default/web"]``."""
        reflector = Reflector(resource, view, namespace=namespace, query=query, target=self._target, ids=self._peer.ids)
        self._peer.mirrors.append(reflector)
        self._world.act(self._name, reflector.open(self._world.now))
        return reflector
