"""The API server as a machine: calls to the registry, streams to the watches, and the order of what follows.

Each write is made durable, then noted, then told to watchers, then answered (steps A1 to A10); the process may die between any two.
Peers of the bus are users by their names; the HTTP facade (peers ``http/N``) says itself who asks. What a key is needed for, tokens
of service accounts, is work that the facade does.
"""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.gates import Profile
from elbowroom.apiserver import audit, authorizer, discovery, identity, impersonation, reviews, statuses, tokens
from elbowroom.apiserver.authorizer import Judgement
from elbowroom.apiserver.definitions.naming import served_anew
from elbowroom.apiserver.facts import commit_note
from elbowroom.apiserver.metrics import ApiMetrics
from elbowroom.apiserver.rbac import Decisions
from elbowroom.apiserver.registry import Registry, Served
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.store import SELDOM_READ, Store, StoreReader
from elbowroom.apiserver.watch import TIMER as BOOKMARKS
from elbowroom.apiserver.watch import Watches
from elbowroom.machine import (
    Effect,
    FolderRead,
    Input,
    Instant,
    Note,
    PeerConnected,
    Received,
    Send,
    SetTimer,
    Step,
    TimerFired,
    Work,
    WorkDone,
    seconds,
)
from elbowroom.rpc import Calls
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Code,
    MalformedError,
    Reply,
    StreamCancel,
    StreamCredit,
    StreamEnd,
    decode_value,
    encode_value,
)

COMPACTION = "compaction"
RECOVERED = "recovered"
TAIL = 256
"""Revisions that a starting API server tells the history again; more than a group of writes has."""
DROPPING = "compaction/drop"
COMPACTION_SECONDS = 300.0
HISTORY_MAX = 50_000
"""How many revisions are kept above the floor, however young they are."""
HISTORY_BYTES_MAX = 64 << 20
"""What the states may weigh that are kept although they stand no more; of too many, and of too heavy ones, the older half goes."""
OBJECTS_A_HISTORY = 100_000
"""For so many objects that stand; with more of them more of the past is kept, in proportion."""
DROPPED_AT_ONCE = 500
PROXY_SECONDS = 10.0
_CODES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.PERMISSION_DENIED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    410: Code.OUT_OF_RANGE,
    422: Code.INVALID_ARGUMENT,
}


_A1, _A2, _A3, _A4, _A5, _A7, _A8, _A9, _A10 = (
    Step("A1"),
    Step("A2"),
    Step("A3"),
    Step("A4"),
    Step("A5"),
    Step("A7"),
    Step("A8"),
    Step("A9"),
    Step("A10"),
)


def build(config: Mapping[str, Any], rng: random.Random) -> "ApiServer":
    """An API server. ``config``: ``profile`` (``Profile.as_config()``), ``name``, ``epoch``; ``store`` (``sqlite`` or ``memory``:
    what the disk is, for the history), ``compaction_seconds``, ``history_max`` and ``history_bytes_max`` (how much of the past
    watches can resume from),
    ``policy`` (are upstream's default roles and bindings made? On unless it says no; without them administrators have to make all),
    ``audit`` (is there an audit log? Off unless it says so; the facade has it).
    """
    return ApiServer(
        Profile.from_config(config["profile"]),
        rng,
        epoch=int(config.get("epoch", 0)),
        durable=config.get("store", "sqlite") != "memory",
        compaction_seconds=float(config.get("compaction_seconds", COMPACTION_SECONDS)),
        history_max=int(config.get("history_max", HISTORY_MAX)),
        history_bytes_max=int(config.get("history_bytes_max", HISTORY_BYTES_MAX)),
        policy=bool(config.get("policy", True)),
        audited=bool(config.get("audit", False)),
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A TokenRequest or TokenReview that lacks what a key tells."""

    source: str
    call: int
    request: ApiRequest
    document: dict[str, Any]
    warnings: tuple[str, ...]


def _node_name(pod: Mapping[str, Any]) -> str:
    return str(pod.get("spec", {}).get("nodeName", ""))


class ApiServer:
    """See the module and ``build``."""

    def __init__(
        self,
        profile: Profile,
        rng: random.Random,
        *,
        epoch: int = 0,
        durable: bool = True,
        compaction_seconds: float = COMPACTION_SECONDS,
        history_max: int = HISTORY_MAX,
        history_bytes_max: int = HISTORY_BYTES_MAX,
        policy: bool = True,
        audited: bool = False,
    ) -> None:
        self._rng = rng
        self._audited = audited
        self._working: dict[str, _Waiting] = {}
        """Who waits for work, by its token."""
        self._works = itertools.count(1)
        self._store = Store({"pods": _node_name})
        self._registry = Registry(self._store, profile, rng)
        self._roles = Decisions(self._store, StoreReader(self._store))
        self._watches = Watches(self._store)
        self._calls = Calls(epoch=epoch)
        self._durable = durable
        self._compaction = seconds(compaction_seconds)
        self._history_max, self._history_bytes_max = history_max, history_bytes_max
        self._policy = policy
        self._last_tick = 0
        self._dropping = False
        self._epochs: dict[str, int] = {}
        self._metrics = ApiMetrics(self._store, self._watches)

    # ------------------------------------------------------------ life

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        """Become what the disk says; ``StoreError`` if it cannot be read."""
        self._store.replay(disk)
        facts = {"revision": self._store.revision, "floor": self._store.floor, "durable": self._durable}
        effects: list[Effect] = [Step("B1"), Step("B2"), Note("wal.recovered", facts)]
        # A life may end between a commit and its record: what the log has at its tail is told again.
        tail = max(self._store.floor, self._store.revision - TAIL)
        effects += [commit_note(change, RECOVERED, "", "", 0) for change in self._store.changes(tail)]
        boot = self._registry.establish(now, policy=self._policy)
        effects += self._made(now, boot, "create", "", "system:apiserver", 0)
        self._last_tick = self._store.revision
        return [*effects, SetTimer(COMPACTION, Instant(now + self._compaction)), Step("B4")]

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        match happened:
            case Received(source, Call() as call):
                return self._on_call(now, source, call)
            case Received(source, StreamCredit(number, amount)):
                return self._watches.grant(now, source, number, amount)
            case Received(source, StreamCancel(number)):
                return self._watches.cancel(source, number)
            case TimerFired(name) if name == BOOKMARKS:
                return self._watches.on_timer(now)
            case TimerFired(name) if name in (COMPACTION, DROPPING):
                return self._compact(now, name)
            case PeerConnected(peer):
                return [*self._watches.drop_peer(peer), *self._relayed(now, happened)]
            case WorkDone(token, outcome) if token in self._working:
                return self._worked(token, outcome)
            case Received() | TimerFired() | WorkDone() | FolderRead():
                return self._relayed(now, happened)

    # ------------------------------------------------------------ calls

    def _on_call(self, now: Instant, source: str, call: Call) -> list[Effect]:
        stale = self._check_epoch(source, call)
        if stale is not None:
            return stale
        replaced = self._replaced(now, source, call)
        return [*replaced, *self._on_valid_call(now, source, call)] if replaced else self._on_valid_call(now, source, call)

    def _on_valid_call(self, now: Instant, source: str, call: Call) -> list[Effect]:
        if call.method not in ("api", "watch"):
            return [Send(source, Reply(call.id, Code.UNIMPLEMENTED, message=f"unknown method {call.method[:64]!r}"))]
        if call.deadline and call.deadline <= now:
            return [
                Send(source, Reply(call.id, Code.DEADLINE_EXCEEDED, message="the deadline was over before the call was looked at"))
            ]
        try:
            request = decode_value(call.body, ApiRequest)
        except MalformedError as why:
            return [Send(source, Reply(call.id, Code.INVALID_ARGUMENT, message=str(why)))]
        if not source.startswith("http/"):
            user, groups = authorizer.identity_of_peer(source)
            request = msgspec.structs.replace(request, user=user, groups=groups, uid="", extra={}, impersonate=None)
        if call.method == "watch":
            return self._on_watch(now, source, call, request)
        return self._on_api(now, source, call, request)

    def _check_epoch(self, source: str, call: Call) -> list[Effect] | None:
        """A peer's older incarnation is refused."""
        if not call.epoch:
            return None
        known = self._epochs.get(source, 0)
        if call.epoch < known:
            why = f"{source} of epoch {call.epoch} was replaced by epoch {known}"
            return [Send(source, Reply(call.id, Code.FAILED_PRECONDITION, message=why))]
        return None

    def _replaced(self, now: Instant, source: str, call: Call) -> list[Effect]:
        """A newer incarnation of a peer calls: the one before, which may have been asked something, answers nobody any more."""
        known = self._epochs.get(source, 0)
        if call.epoch <= known:
            return []
        self._epochs[source] = call.epoch
        self._watches.drop_peer(source)
        return self._relayed(now, PeerConnected(source)) if known else []

    def _on_api(self, now: Instant, source: str, call: Call, request: ApiRequest) -> list[Effect]:
        effects: list[Effect] = [_A1]
        judgement: Judgement | None = None
        try:
            if request.uid or request.impersonate is not None:
                request = self._acting(request)
            if request.group == "elbowroom":
                return self._on_own(now, source, call, request)
            judgement = authorizer.check(request, self._store, self._roles)
            effects.append(_A2)
            if request.resource == "nodes" and request.subresource == "proxy":
                return self._on_proxy(now, source, call, request)
            if request.resource in tokens.RESOURCES and (tokens.is_request(request) or tokens.is_review(request)):
                return self._on_token(now, source, call, request)
            served = self._served(now, request)
        except ApiError as refusal:
            served = Served(refusal.response())
        self._metrics.count(request, served.response.status)
        response = served.response if not self._audited else audit.told(served.response, judgement)
        if served.changes:
            effects += (_A3, _A4)
            effects += self._made(now, served, request.verb, request.subresource, request.user, served.base)
        elif request.verb == "list" and served.response.status == 200:
            query = request.query
            facts = {
                "resource": request.resource,
                "rev": served.response.revision,
                "match": query.get("resourceVersionMatch", ""),
                "continue": bool(query.get("continue")),
            }
            effects.append(Note("list", facts))
        effects.append(Send(source, Reply(call.id, body=encode_value(response))))
        effects.append(_A10)
        if self._audited and not source.startswith("http/"):
            effects.append(Work("audit", audit.Fact(source, request, response, now)))
        return effects

    def _acting(self, request: ApiRequest) -> ApiRequest:
        """The request as that of who acts by it: 401 if a token no longer counts, 403 if its user may not act as another one."""
        if request.uid and tokens.trouble(request.user, request.uid, request.extra, self._store):
            raise identity.unauthorized()
        return impersonation.acting(request, self._judge)

    def _judge(self, request: ApiRequest) -> Judgement:
        if request.group == "elbowroom":
            verb, path = request.verb, _path_of(request)
            return authorizer.judge_path(request.user, request.groups, verb, path, self._store)
        return authorizer.judge(request, self._store, self._roles)

    def _served(self, now: Instant, request: ApiRequest) -> Served:
        if reviews.is_review(request):
            return Served(reviews.answer(request, self._store))
        return self._registry.serve(now, request)

    def _made(self, now: Instant, served: Served, verb: str, subresource: str, user: str, base: int) -> list[Effect]:
        """A write's effects up to its answer: durable, noted, told."""
        effects: list[Effect] = [_A5, *served.writes, _A7]
        for change in served.changes:
            effects.append(commit_note(change, verb, subresource, user, base))
        effects.append(_A8)
        effects += self._watches.publish(now, served.changes)
        for resource in served_anew(served.changes):
            effects += self._watches.over(resource)
        effects.append(_A9)
        for change in served.changes:
            if change.old is not None:
                change.old.release()
            if change.deleted or change.record.resource in SELDOM_READ:
                change.record.release()
        if not self._dropping and self._keeps_too_much():
            kept = self._store.revision - self._store.floor
            effects += self._raise_floor(now, self._store.revision - kept // 2)
        return effects

    def _keeps_too_much(self) -> bool:
        """Is more of the past kept than is allowed? That grows with what there is: else a reader who begins with the state of
        hundreds of thousands of objects finds, when it has read them, that what came since is gone, and begins anew, for ever."""
        store = self._store
        kept = store.revision - store.floor
        if kept <= self._history_max and store.past_bytes <= self._history_bytes_max:
            return False
        share = max(1.0, store.size / OBJECTS_A_HISTORY)
        return kept > share * self._history_max or store.past_bytes > share * self._history_bytes_max

    def _on_watch(self, now: Instant, source: str, call: Call, request: ApiRequest) -> list[Effect]:
        try:
            if request.uid or request.impersonate is not None:
                request = self._acting(request)
            authorizer.check(request, self._store, self._roles)
            row = self._registry.row_of(request)
            effects = self._watches.open(now, source, call.id, call.credit, row, request)
            self._metrics.count(request, 200)
            return effects
        except ApiError as refusal:
            self._metrics.count(request, refusal.code)
            code = _CODES.get(refusal.code, Code.OUT_OF_RANGE if refusal.reason == "Timeout" else Code.INTERNAL)
            return [Send(source, StreamEnd(call.id, code, refusal.body(), refusal.message))]

    # ------------------------------------------------------------ what lies beyond the registry

    def _on_own(self, now: Instant, source: str, call: Call, request: ApiRequest) -> list[Effect]:
        """``/metrics``, ``/elbowroom/scheduler/metrics``, and whether somebody may see another path outside of resources."""
        if request.resource not in ("metrics", "paths") or (request.resource == "metrics" and request.verb != "get"):
            raise statuses.no_such_resource()
        path = _path_of(request)
        is_open = request.resource == "paths" and identity.is_open(request.groups, path)
        judgement = Judgement(True) if is_open else self._judge(request)
        if not judgement.allowed:
            raise authorizer.cannot_path(request.user, request.verb, path, judgement.reason)
        if request.resource == "paths":
            response = ApiResponse(200)
            return [Send(source, Reply(call.id, body=encode_value(response)))]
        if not request.name:
            response = ApiResponse(200, self._metrics.text(), content_type=self._metrics.content_type)
            return [Send(source, Reply(call.id, body=encode_value(response)))]
        if request.name != "scheduler":
            raise statuses.no_such_resource()
        return self._relay(now, source, call, "scheduler", "metrics", request.query)

    def _on_proxy(self, now: Instant, source: str, call: Call, request: ApiRequest) -> list[Effect]:
        """``nodes/NAME/proxy/PATH``: the kubelet answers."""
        known = discovery.find(request.group, request.version, "nodes")
        subresource = None if known is None else known.subresource("proxy")
        if subresource is None or request.verb not in subresource.verbs:
            raise statuses.method_not_allowed()
        if self._store.get("nodes", "", request.name) is None:
            raise statuses.not_found("", "nodes", request.name)
        path = request.query.get("path", "").strip("/")
        query = {name: value for name, value in request.query.items() if name != "path"}
        return self._relay(now, source, call, f"kubelet/{request.name}", path, query)

    def _on_token(self, now: Instant, source: str, call: Call, request: ApiRequest) -> list[Effect]:
        """A TokenRequest or TokenReview: answered when the facade, which has the key, has done its part."""
        task: tokens.Sign | tokens.Read
        if tokens.is_review(request):
            document, task, warnings = tokens.reviewed(request)
        else:
            document, claims, warnings = tokens.requested(now, request, self._store, self._rng)
            task = tokens.Sign(claims)
        name = f"token/{next(self._works)}"
        self._working[name] = _Waiting(source, call.id, request, document, warnings)
        return [_A1, _A2, Work(name, task)]

    def _worked(self, name: str, outcome: Any) -> list[Effect]:
        waiting = self._working.pop(name)
        document = waiting.document
        if tokens.is_review(waiting.request):
            document["status"] = tokens.verdict(outcome, self._store)
            response = tokens.answered(document, waiting.warnings)
        elif isinstance(outcome, str):
            document["status"]["token"] = outcome
            response = tokens.answered(document, waiting.warnings)
        else:
            response = statuses.internal(f"failed to generate token: {outcome}").response()
        self._metrics.count(waiting.request, response.status)
        return [Send(waiting.source, Reply(waiting.call, body=encode_value(response))), _A10]

    def _relay(self, now: Instant, source: str, call: Call, target: str, path: str, query: Mapping[str, str]) -> list[Effect]:
        body = {"path": path, "query": query}
        return self._calls.begin(now, target, "proxy", body, context=(source, call.id, target), timeout=PROXY_SECONDS)

    def _relayed(self, now: Instant, happened: Input) -> list[Effect]:
        """Hand on the answers of kubelets and the scheduler."""
        effects, ended = self._calls.finished(now, happened)
        answers: list[Effect] = list(effects)
        for finished in ended:
            source, number, target = finished.context
            response = _proxied(target, finished.code, finished.body, finished.message)
            answers.append(Send(source, Reply(number, body=encode_value(response))))
        return answers

    # ------------------------------------------------------------ compaction

    def _compact(self, now: Instant, timer: str) -> list[Effect]:
        if timer == COMPACTION:
            floor, self._last_tick = self._last_tick, self._store.revision
            effects: list[Effect] = [SetTimer(COMPACTION, Instant(now + self._compaction))]
            return effects if self._dropping else effects + self._raise_floor(now, floor)
        rows = self._store.drop(DROPPED_AT_ONCE)
        if len(rows) < DROPPED_AT_ONCE:
            self._dropping = False
            return [*rows, Step("C3"), Step("C4")]
        return [*rows, Step("C3"), SetTimer(DROPPING, now)]

    def _raise_floor(self, now: Instant, floor: int) -> list[Effect]:
        """Forget what was before ``floor``: the floor first, then the rows, a few at a time."""
        persist = self._store.compact(floor)
        if persist is None:
            return []
        self._dropping = True
        ended = self._watches.compacted()
        return [Step("C1"), persist, Step("C2"), Note("compacted", {"floor": self._store.floor}), *ended, SetTimer(DROPPING, now)]


def _path_of(request: ApiRequest) -> str:
    """The path outside of resources that the facade asks about."""
    if request.resource == "paths":
        return request.query.get("path", "/")
    return f"/elbowroom/{request.name}/metrics" if request.name else "/metrics"


class _Proxied(msgspec.Struct):
    """What a component answers to ``proxy``."""

    status: int
    contentType: str
    body: bytes


def _proxied(target: str, code: Code, body: bytes, message: str) -> ApiResponse:
    if code is Code.OK:
        try:
            answer = decode_value(body, _Proxied)
            return ApiResponse(answer.status, answer.body, content_type=answer.contentType)
        except MalformedError as why:
            message = str(why)
    refusal = ApiError(503, "ServiceUnavailable", f"error trying to reach service: {target}: {message}")
    return refusal.response()
