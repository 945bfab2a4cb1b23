"""Routing: the shared copy tells the controllers which keys to look at; their plans become requests, and answers end rounds.

A key has one round at a time. When all its requests have ended it rests until the copy includes what they wrote, then it is
looked at again if anything changed meanwhile; a refused request brings it back after a back-off.
"""

import itertools
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom import rpc
from elbowroom.cache import Change, Reflector, WorkQueue
from elbowroom.controllers.accounts import ServiceAccounts
from elbowroom.controllers.cronjobs import CronJobs
from elbowroom.controllers.daemonsets import DaemonSets
from elbowroom.controllers.deployments import Deployments
from elbowroom.controllers.disruption import Disruption
from elbowroom.controllers.expiry import Expiry
from elbowroom.controllers.garbage import Garbage
from elbowroom.controllers.jobs import Jobs
from elbowroom.controllers.kit import DEFINITIONS, READS, Ask, Controller, Outcome, Plan, Shared, outcome_of
from elbowroom.controllers.namespaces import Namespaces
from elbowroom.controllers.nodelifecycle import NodeLifecycle
from elbowroom.controllers.podgc import PodGc
from elbowroom.controllers.quota import Quotas
from elbowroom.controllers.recorder import Recorder
from elbowroom.controllers.replicasets import ReplicaSets
from elbowroom.controllers.statefulsets import StatefulSets
from elbowroom.controllers.tainteviction import TaintEviction
from elbowroom.controllers.views import Definition, Metadata
from elbowroom.machine import Effect, Input, Instant, Machine, Note, PeerConnected, Received, SetTimer, TimerFired, seconds
from elbowroom.rpc import Calls, Finished
from elbowroom.wire import ApiRequest, ApiResponse

KINDS: tuple[type[Controller], ...] = (
    Disruption,
    ReplicaSets,
    Deployments,
    NodeLifecycle,
    TaintEviction,
    PodGc,
    Namespaces,
    Garbage,
    Quotas,
    Expiry,
    ServiceAccounts,
    StatefulSets,
    DaemonSets,
    Jobs,
    CronJobs,
)
TIMER = "controllers/due"
IN_FLIGHT_MAX = 256
UNCLEAR_STATUSES = frozenset({500, 502, 503, 504})
UNCLEAR_MAX = 5
EVENT_TRIES = 4
REST_SECONDS_MAX = 300.0
AGAIN_MIN = seconds(0.01)


def build(config: Mapping[str, Any], rng: random.Random) -> Machine:
    """All controllers.

    ``config``: ``epoch``; ``controllers``, the names of those to run (default all): disruption, replicasets, deployments,
    nodelifecycle, tainteviction, podgc, namespaces, garbage, quota, expiry, serviceaccounts, statefulsets,
    daemonsets, jobs, cronjobs. ``profile`` changes nothing here.
    """
    return Controllers(int(config.get("epoch", 0)), rng, config.get("controllers"))


@dataclass(slots=True)
class _Request:
    """An Ask under way; ``controller`` is -1 for events."""

    controller: int
    key: str
    ask: Ask
    unclear: int = 0
    """How often its outcome was not to be known."""
    looked: bool = False
    """It found that it had been carried out before, and asks for the revision."""


@dataclass(slots=True)
class _Round:
    open: int
    failed: bool = False
    again: bool = False
    written: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Rest:
    """A key waits until the copy includes these revisions, five minutes at most.

    A copy whose revision fell below what it was (``had``) is one of another store, which knows nothing of what was written.
    """

    written: Mapping[str, int]
    had: Mapping[str, int]
    until: Instant
    retries: bool = False
    """The queue brings the key back, after its back-off."""


class Controllers:
    """See ``build``."""

    def __init__(self, epoch: int, rng: random.Random, wanted: Sequence[str] | None) -> None:
        ids: Iterator[int] = itertools.count(1)
        self._epoch, self._ids = epoch, ids
        self._calls = Calls(epoch=epoch, ids=ids)
        self._reflectors: dict[str, Reflector[Any]] = {
            resource: Reflector(resource, view, epoch=epoch, ids=ids) for resource, view in READS.items()
        }
        self._by_stream: dict[int, str] = {}
        """The copies by the streams that they had when they were last asked."""
        self._shared = Shared(self._reflectors)
        self._controllers = [kind(self._shared, rng) for kind in KINDS if wanted is None or kind.name in wanted]
        self._begun: set[int] = set()
        self._recorder = Recorder(rng)
        self._rounds: dict[tuple[int, str], _Round] = {}
        self._resting: dict[tuple[int, str], _Rest] = {}
        self._numbers = itertools.count(1)
        self._requests: dict[int, _Request] = {}
        self._waiting: deque[int] = deque()
        self._in_flight = 0
        self._last_written: dict[tuple[int, str], dict[str, int]] = {}
        self._later = WorkQueue(0.2, 5.0)
        self._armed: Instant | None = None

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        return [effect for reflector in self._reflectors.values() for effect in reflector.open(now)]

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        effects: list[Effect] = []
        if isinstance(happened, TimerFired) and happened.name == TIMER:
            self._armed = None
        if isinstance(happened, PeerConnected) and happened.peer == "apiserver":
            for controller in self._controllers:
                controller.reconnected(now)
        for resource, reflector in self._addressed(happened):
            more, changes = reflector.handle(now, happened)
            effects += more
            for change in changes:
                self._observe(now, resource, change)
                if resource == DEFINITIONS:
                    effects += self._follow(now, change)
        more, finished = self._calls.finished(now, happened)
        effects += more
        for end in finished:
            effects += self._ended(now, end)
        return [*effects, *self._work(now)]

    def _addressed(self, happened: Input) -> list[tuple[str, Reflector[Any]]]:
        """The copies that may want to hear of it: of a stream's frame one at most, of all else all."""
        if type(happened) is not Received:
            return list(self._reflectors.items())
        stream = getattr(happened.message, "id", 0)
        found = self._reflectors.get(self._by_stream.get(stream, ""))
        if found is None or found.stream != stream:
            self._by_stream = {copy.stream: resource for resource, copy in self._reflectors.items() if copy.stream}
            found = self._reflectors.get(self._by_stream.get(stream, ""))
        return [] if found is None else [(self._by_stream[stream], found)]

    def _observe(self, now: Instant, resource: str, change: Change[Any]) -> None:
        self._shared.observe(resource, change)
        for controller in self._controllers:
            for key in controller.notice(now, resource, change):
                controller.queue.add(key)

    def _follow(self, now: Instant, change: Change[Definition]) -> list[Effect]:
        """Read a custom kind as soon as it is served, in another version once that one is not, and forget one that is gone."""
        name, effects, customs = change.key, list[Effect](), self._shared.customs
        version = "" if change.new is None or name in READS else change.new.version
        if name in customs and customs[name].version != version:
            reflector = self._reflectors.pop(name)
            effects += reflector.close()
            for key, gone in reflector.store.items():
                self._observe(now, name, Change(key, gone, None))
            del customs[name]
        if change.new is not None and version:
            if name not in customs:
                reflector = Reflector(name, Metadata, version=version, epoch=self._epoch, ids=self._ids)
                self._reflectors[name] = reflector
                effects += reflector.open(now)
            customs[name] = change.new
        return effects

    # ------------------------------------------------------------ rounds

    def _work(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        self._wake(now)
        for place, controller in enumerate(self._controllers):
            if place not in self._begun:
                if not all(self._reflectors[resource].synced for resource in controller.reads):
                    continue
                self._begun.add(place)
                controller.begin(now)
            for key in controller.queue.ready(now):
                effects += self._look(now, place, controller, key)
        for number in self._later.ready(now):
            self._waiting.append(int(number))
        effects += self._send(now)
        return [*effects, *self._arm()]

    def _look(self, now: Instant, place: int, controller: Controller, key: str) -> list[Effect]:
        under_way = self._rounds.get((place, key))
        if under_way is not None:
            under_way.again = True
            return []
        rest = self._resting.get((place, key))
        if rest is not None:
            if not self._is_over(now, rest):
                controller.queue.add_at(key, rest.until)
                return []
            del self._resting[place, key]
        plan = controller.reconcile(now, key)
        self._begin(now, place, controller, key, plan)
        return [
            Note("ctl.ask", {"controller": controller.name, "key": key, **_shown(ask.request)})
            for ask in plan.asks
            if ask.request.verb not in ("get", "list")
        ]

    def _begin(self, now: Instant, place: int, controller: Controller, key: str, plan: Plan) -> None:
        for told in plan.events:
            self._enqueue(_Request(-1, "", Ask(self._recorder.record(now, told))))
        for ask in plan.asks:
            self._enqueue(_Request(place, key, ask))
        if plan.asks:
            self._rounds[place, key] = _Round(len(plan.asks))
        else:
            controller.queue.done(key)
            self._last_written.pop((place, key), None)
        if plan.again_at is not None:
            controller.queue.add_at(key, max(plan.again_at, Instant(now + AGAIN_MIN)))

    def _is_over(self, now: Instant, rest: _Rest) -> bool:
        if now >= rest.until:
            return True
        for resource, revision in rest.written.items():
            if resource not in self._reflectors:
                continue  # a custom kind that is no more
            held = self._reflectors[resource].revision
            if held < revision and not 0 < held < rest.had.get(resource, 0):
                return False
        return True

    def _wake(self, now: Instant) -> None:
        for (place, key), rest in list(self._resting.items()):
            if self._is_over(now, rest):
                del self._resting[place, key]
                if not rest.retries:
                    self._controllers[place].queue.add(key)

    def _closed(self, now: Instant, place: int, key: str) -> None:
        """All requests of a key's round have ended."""
        ended = self._rounds.pop((place, key))
        queue = self._controllers[place].queue
        if ended.written and ended.written == self._last_written.get((place, key)):
            ended.failed = True  # it wrote what was there already: the next try may not be at once
        elif ended.written:
            self._last_written[place, key] = ended.written
        if ended.written:
            had = {resource: self._reflectors[resource].revision for resource in ended.written if resource in self._reflectors}
            self._resting[place, key] = _Rest(ended.written, had, Instant(now + seconds(REST_SECONDS_MAX)), ended.failed)
        if ended.failed:
            queue.fail(now, key)
        else:
            queue.done(key)
            if ended.again and not ended.written:
                queue.add(key)

    # ------------------------------------------------------------ requests

    def _enqueue(self, request: _Request) -> None:
        number = next(self._numbers)
        self._requests[number] = request
        self._waiting.append(number)

    def _send(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        while self._waiting and self._in_flight < IN_FLIGHT_MAX:
            number = self._waiting.popleft()
            request = self._requests[number].ask.request
            if self._requests[number].looked:
                request = rpc.get(_resource(request), _name(request), namespace=request.namespace)
            self._in_flight += 1
            effects += self._calls.api(now, request, context=number)
        return effects

    def _ended(self, now: Instant, end: Finished) -> list[Effect]:
        self._in_flight -= 1
        number: int = end.context
        request = self._requests[number]
        response = end.api()
        if self._is_unclear(request, response):
            request.unclear += 1
            self._later.fail(now, str(number))
            return []
        exists = response.status == 409 and request.ask.request.verb == "create" and request.unclear > 0 and not request.looked
        if exists and outcome_of(response).reason == "AlreadyExists" and request.controller >= 0:
            # An earlier try of this very request was carried out: its revision is all that is missing.
            request.looked = True
            self._waiting.append(number)
            return []
        del self._requests[number]
        self._later.done(str(number))
        if request.controller < 0:
            if response.status == 404 and request.ask.request.verb == "patch":
                self._recorder.forget(request.ask.request.name)
            return []
        return self._answered(now, request, response)

    def _is_unclear(self, request: _Request, response: ApiResponse) -> bool:
        if request.controller < 0:
            return (response.status == 0 or response.status in UNCLEAR_STATUSES) and request.unclear < EVENT_TRIES
        return response.status == 0 or (response.status in UNCLEAR_STATUSES and request.unclear < UNCLEAR_MAX)

    def _answered(self, now: Instant, request: _Request, response: ApiResponse) -> list[Effect]:
        controller = self._controllers[request.controller]
        round_ = self._rounds[request.controller, request.key]
        outcome = outcome_of(response)
        asked = request.ask.request
        if request.looked and outcome.status == 404:
            outcome = Outcome(True, 404, "", "", response)  # it was made, and is gone again
        gone = asked.verb == "delete" and outcome.status in (404, 409)
        for told in controller.answered(now, request.key, request.ask, outcome):
            self._enqueue(_Request(-1, "", Ask(self._recorder.record(now, told))))
        effects: list[Effect] = []
        if outcome.ok:
            resource = _resource(asked)
            if asked.verb not in ("get", "list") and response.revision and resource in self._reflectors:
                round_.written[resource] = max(response.revision, round_.written.get(resource, 0))
        elif not gone and asked.verb not in ("get", "list"):
            round_.failed = True
            facts = {"controller": controller.name, "key": request.key, **_shown(asked)}
            effects.append(Note("ctl.refused", {**facts, "status": outcome.status, "message": outcome.message}))
        round_.open -= 1
        if round_.open == 0:
            self._closed(now, request.controller, request.key)
        return effects

    # ------------------------------------------------------------ time

    def _arm(self) -> list[Effect]:
        wanted = self._later.due()
        for place in self._begun:
            due = self._controllers[place].queue.due()
            if due is not None and (wanted is None or due < wanted):
                wanted = due
        if wanted == self._armed:
            return []
        self._armed = wanted
        return [SetTimer(TIMER, wanted)]


def _resource(request: ApiRequest) -> str:
    return f"{request.resource}.{request.group}" if request.group else request.resource


def _name(request: ApiRequest) -> str:
    """The name of what a request creates."""
    if request.name:
        return request.name
    found: Any = _decoded(request.body).get("metadata", {}).get("name", "")
    return str(found)


def _decoded(body: bytes) -> dict[str, Any]:
    found = msgspec.json.decode(body)
    return found if isinstance(found, dict) else {}


def _shown(request: ApiRequest) -> dict[str, str]:
    found = {"verb": request.verb, "resource": _resource(request), "namespace": request.namespace}
    return {**found, "name": _name(request) if request.verb == "create" else request.name, "subresource": request.subresource}
