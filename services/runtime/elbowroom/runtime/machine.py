"""Routing: calls to sandboxes, sandboxes to effects.

A changing call is carried out in this order: ``T1``, what is about to happen, the record durable, ``T2``, what happened, the reply,
``T3``, the events. So a runtime that dies anywhere comes back with a state that it had told nobody or everybody of, and the
kubelet, who repeats what was not answered, gets the same result.

Of what a kubelet asks about one sandbox only the newest counts. A change that arrives after something newer is refused, and who
asks for ``PodState`` gives up what it asked for before: an update that is still under way never comes into force. So a kubelet
that does not know how a call ended need only look, and nothing that it has not seen comes up later. (A CRI server does as much:
its calls end with the connection and the deadline of their client. Here frames can be late too.)
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom.machine import (
    Effect,
    Input,
    Instant,
    Machine,
    Note,
    Persist,
    Received,
    Send,
    SetTimer,
    Step,
    TimerFired,
    seconds,
)
from elbowroom.runtime import feed, pods
from elbowroom.runtime.cgroups import Hierarchy
from elbowroom.runtime.pods import ContainerRecord, SandboxRecord, Turn
from elbowroom.runtime.workload import is_workload
from elbowroom.wire import (
    Call,
    Code,
    MalformedError,
    Message,
    Reply,
    StreamCancel,
    StreamCredit,
    decode_value,
    encode_value,
)
from elbowroom.wire.cri import (
    ContainerId,
    CreateContainer,
    LinuxResources,
    RunPodSandbox,
    RuntimeState,
    SandboxId,
    SetPodCgroup,
    StopContainer,
    UpdateContainerResources,
    UpdatePodSandboxResources,
    UpdateWorkload,
)

T1, T2, T3 = Step("T1 received"), Step("T2 applied"), Step("T3 replied")
CALLERS = "callers"


def build(config: Mapping[str, Any], rng: random.Random) -> Machine:
    """A node's runtime.

    ``config``: ``cgroup_version`` (1 or 2, default 2) and ``cgroup_driver`` (``cgroupfs``, the default, or ``systemd``). ``name``,
    ``node``, ``epoch`` and ``profile`` change nothing here.
    """
    return Runtime(Hierarchy(int(config.get("cgroup_version", 2)), str(config.get("cgroup_driver", "cgroupfs"))))


class _Callers(msgspec.Struct, frozen=True):
    epochs: dict[str, int]


class _About(msgspec.Struct, frozen=True):
    """Of a request's body: what it is about."""

    sandbox: str = ""
    container: str = ""


@dataclass(frozen=True, slots=True)
class _Caller:
    source: str
    id: int
    epoch: int

    @property
    def asked(self) -> tuple[int, int]:
        """The order in which its calls were made: a later life counts on from where it likes."""
        return self.epoch, self.id


@dataclass(slots=True)
class _Update:
    """An update that takes its ``resizeSeconds``; whoever asks for the same meanwhile waits for the same end."""

    due: Instant
    container: str
    resources: LinuxResources
    callers: list[_Caller] = field(default_factory=list)


class _RefusedError(Exception):
    """A call that changes nothing, and its answer."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Runtime:
    """See ``build``."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._sandboxes: dict[str, SandboxRecord] = {}
        self._owners: dict[str, str] = {}
        """Container -> its sandbox."""
        self._starting: dict[str, list[_Caller]] = {}
        self._updates: dict[str, list[_Update]] = {}
        """Sandbox -> its updates under way, by the time at which they are due."""
        self._timers: dict[str, Instant | None] = {}
        self._epochs: dict[str, int] = {}
        self._newest: dict[str, dict[str, tuple[int, int]]] = {}
        """Sandbox -> of each peer, the newest that it asked about it."""
        self._feed = feed.Feed()
        self._methods: dict[str, Callable[[Instant, _Caller, bytes], list[Effect]]] = {
            "RunPodSandbox": self._run,
            "StopPodSandbox": self._stop_sandbox,
            "RemovePodSandbox": self._remove_sandbox,
            "CreateContainer": self._create,
            "StartContainer": self._start,
            "StopContainer": self._stop,
            "RemoveContainer": self._remove,
            "UpdateContainerResources": self._update,
            "UpdatePodSandboxResources": self._update_sandbox,
            "UpdateWorkload": self._workload,
            "SetPodCgroup": self._pod_cgroup,
        }
        self._questions: dict[str, Callable[[_Caller, bytes], list[Effect]]] = {
            "ListAll": self._list,
            "PodState": self._pod_state,
            "PodStats": self._stats,
        }

    # ------------------------------------------------------------ life

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        records = [decode_value(raw, SandboxRecord) for key, raw in disk.items() if key.startswith("sandbox/")]
        if CALLERS in disk:
            self._epochs = dict(decode_value(disk[CALLERS], _Callers).epochs)
        effects: list[Effect] = [Note("rt.started", {"sandboxes": len(records)})]
        for record in sorted(records, key=lambda r: (r.created_at, r.sandbox)):
            self._keep(record)
            effects += self._commit(now, record, pods.advance(record, now))
        return effects

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        match happened:
            case Received(source, message):
                return self._received(now, source, message)
            case TimerFired(feed.TIMER):
                return self._feed.on_timer(now)
            case TimerFired(name):
                return self._due(now, name)
            case _:
                return ()

    def _received(self, now: Instant, source: str, message: Message) -> list[Effect]:
        match message:
            case Call(method="events") as call:
                return self._feed.open(now, source, call)
            case Call() as call:
                return self._called(now, source, call)
            case StreamCredit(stream, amount):
                return self._feed.grant(source, stream, amount)
            case StreamCancel(stream):
                self._feed.cancel(source, stream)
        return []

    def _called(self, now: Instant, source: str, call: Call) -> list[Effect]:
        caller = _Caller(source, call.id, call.epoch)
        try:
            if call.method in self._questions:
                return self._questions[call.method](caller, call.body)
            if call.method not in self._methods:
                return [_refusal(caller, Code.UNIMPLEMENTED, f"unknown method {call.method}")]
            if call.deadline and call.deadline < now:
                # It may be older than what was asked since; nobody waits for it.
                return [_refusal(caller, Code.DEADLINE_EXCEEDED, "the call came after its deadline")]
            if 0 < call.epoch < self._epochs.get(source, 0):
                words = f"incarnation {self._epochs[source]} of {source} has spoken; {call.epoch} is over"
                return [_refusal(caller, Code.FAILED_PRECONDITION, words)]
            if self._is_late(caller, decode_value(call.body, _About)):
                return [_refusal(caller, Code.FAILED_PRECONDITION, f"{source} has asked for something newer since")]
            return [*self._fence(caller), T1, *self._changed(now, caller, call)]
        except MalformedError as why:
            return [_refusal(caller, Code.INVALID_ARGUMENT, f"{call.method}: {why}")]

    def _changed(self, now: Instant, caller: _Caller, call: Call) -> list[Effect]:
        try:
            return self._methods[call.method](now, caller, call.body)
        except MalformedError as why:
            return [_refusal(caller, Code.INVALID_ARGUMENT, f"{call.method}: {why}"), T3]
        except _RefusedError as why:
            return [_refusal(caller, why.code, why.message), T3]

    def _fence(self, caller: _Caller) -> list[Effect]:
        """Of two incarnations of a caller the later one counts, for ever; what the earlier one asked for is given up."""
        if caller.epoch <= self._epochs.get(caller.source, 0):
            return []
        self._epochs[caller.source] = caller.epoch
        given_up = [effect for sandbox in list(self._updates) for effect in self._give_up(sandbox, caller, lives_only=True)]
        return [Persist(CALLERS, encode_value(_Callers(self._epochs))), *given_up]

    def _is_late(self, caller: _Caller, about: _About) -> bool:
        """Has its caller asked for something newer about the same sandbox? (A repeated frame is not newer than itself.)"""
        sandbox = about.sandbox or self._owners.get(about.container, "")
        if sandbox not in self._sandboxes:
            return False
        newest = self._newest.setdefault(sandbox, {})
        if caller.asked < newest.get(caller.source, caller.asked):
            return True
        newest[caller.source] = caller.asked
        return False

    def _give_up(self, sandbox: str, caller: _Caller, *, lives_only: bool = False) -> list[Effect]:
        """Let the updates under way that ``caller`` has asked for before (``lives_only``: in an earlier life) never be."""

        def is_over(asker: _Caller) -> bool:
            before = asker.epoch < caller.epoch if lives_only else asker.asked < caller.asked
            return asker.source == caller.source and before

        under_way, record = self._updates.get(sandbox, []), self._sandboxes[sandbox]
        over = [update for update in under_way if all(is_over(asker) for asker in update.callers)]
        effects: list[Effect] = []
        for update in over:
            under_way.remove(update)
            if (container := record.container(update.container)) is not None:
                facts = _update_facts(record, container, update.resources)
                effects.append(Note("rt.update.end", {**facts, "ok": False, "error": "given up by who asked for it"}))
            effects += [_refusal(asker, Code.CANCELLED, "given up") for asker in update.callers]
        if over and not under_way:
            del self._updates[sandbox]
        return [*effects, *self._arm(record)] if over else []

    # ------------------------------------------------------------ sandboxes

    def _run(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        request = decode_value(body, RunPodSandbox)
        answer = encode_value(SandboxId(request.sandbox))
        known = self._sandboxes.get(request.sandbox)
        if known is not None:
            if not known.ready:
                raise _RefusedError(Code.ALREADY_EXISTS, f'sandbox "{request.sandbox}" was stopped')
            return [_answer(caller, answer), T3]
        turn = pods.run(request, self._hierarchy, now)
        if turn.refused is not None:
            raise _RefusedError(Code.UNKNOWN, f"failed to create sandbox: {turn.refused.message}")
        warnings = _workload_notes(request.workload, turn.record)
        return [*warnings, *self._answered(now, None, turn, caller, answer)]

    def _stop_sandbox(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        record = self._sandboxes.get(decode_value(body, SandboxId).sandbox)
        if record is None or not record.ready:
            return [_answer(caller), T3]
        return self._answered(now, record, pods.stop_all(record, now), caller)

    def _remove_sandbox(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        record = self._sandboxes.get(decode_value(body, SandboxId).sandbox)
        if record is None:
            return [_answer(caller), T3]
        stopped = pods.stop_all(record, now)
        effects: list[Effect] = [*stopped.notes, Persist(_key(record.sandbox), None), T2, _answer(caller), T3]
        effects += self._abandoned(stopped.record, "the sandbox was removed")
        for container in record.containers:
            self._owners.pop(container.container, None)
        del self._sandboxes[record.sandbox]
        self._newest.pop(record.sandbox, None)
        if self._timers.pop(record.sandbox, None) is not None:
            effects.append(SetTimer(_key(record.sandbox), None))
        return [*effects, *self._feed.tell(now, stopped.events)]

    def _update_sandbox(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        self._sandbox(decode_value(body, UpdatePodSandboxResources).sandbox)
        return [_answer(caller), T3]

    def _pod_cgroup(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        request = decode_value(body, SetPodCgroup)
        record = self._sandbox(request.sandbox)
        turn = pods.set_pod(record, request.resources, self._hierarchy, now)
        if turn.refused is not None:
            raise _RefusedError(Code.UNKNOWN, turn.refused.message)
        return self._answered(now, record, turn, caller)

    def _workload(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        request = decode_value(body, UpdateWorkload)
        record = self._sandbox(request.sandbox)
        warnings = _workload_notes(request.workload, record)
        return [*warnings, *self._answered(now, record, pods.set_workload(record, request.workload, now), caller)]

    # ------------------------------------------------------------ containers

    def _create(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        request = decode_value(body, CreateContainer)
        record = self._sandbox(request.sandbox)
        answer = encode_value(ContainerId(request.container))
        owner = self._owners.get(request.container)
        if owner == request.sandbox:
            return [_answer(caller, answer), T3]
        if owner is not None:
            raise _RefusedError(Code.ALREADY_EXISTS, f'container "{request.container}" belongs to sandbox "{owner}"')
        if not record.ready:
            raise _RefusedError(Code.FAILED_PRECONDITION, f'sandbox "{request.sandbox}" is not running')
        turn = pods.create(record, request, self._hierarchy, now)
        if turn.refused is not None:
            raise _RefusedError(Code.UNKNOWN, f"failed to create containerd task: {turn.refused.message}")
        return self._answered(now, record, turn, caller, answer)

    def _start(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        record, container = self._container(decode_value(body, ContainerId).container)
        if container.state != "created":
            return [_answer(caller), T3]
        self._starting.setdefault(container.container, []).append(caller)
        # The reply is sent by ``_commit``, as soon as the container runs.
        return self._commit(now, record, pods.begin_start(record, container, now))

    def _stop(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        request = decode_value(body, StopContainer)
        record, container = self._find(request.container)
        if record is None or container is None:
            return [_answer(caller), T3]
        return self._answered(now, record, pods.begin_stop(record, container, request.timeout_seconds, now), caller)

    def _remove(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        record, container = self._find(decode_value(body, ContainerId).container)
        if record is None or container is None:
            return [_answer(caller), T3]
        effects = self._answered(now, record, pods.remove(record, container, now), caller)
        self._owners.pop(container.container, None)
        return effects

    def _update(self, now: Instant, caller: _Caller, body: bytes) -> list[Effect]:
        request = decode_value(body, UpdateContainerResources)
        record, container = self._container(request.container)
        under_way = self._updates.setdefault(record.sandbox, [])
        same = [u for u in under_way if u.container == request.container]
        if same and same[-1].resources == request.resources:
            same[-1].callers.append(caller)
            return []
        wait = 0 if request.resources.places_only else seconds(record.behaviour(container).resize_seconds)
        after = same[-1].due if same else now
        under_way.append(_Update(Instant(after + wait), request.container, request.resources, [caller]))
        under_way.sort(key=lambda u: u.due)
        facts = _update_facts(record, container, request.resources)
        begin = Note("rt.update.begin", {**facts, "usage": record.usage(container)})
        return [begin, *self._pass(now, record.sandbox)]

    # ------------------------------------------------------------ questions

    def _list(self, caller: _Caller, body: bytes) -> list[Effect]:
        # What a new life finds here is not changed by an earlier one any more.
        fenced = self._fence(caller)
        return [*fenced, _answer(caller, encode_value(RuntimeState(tuple(pods.state_of(r) for r in self._sandboxes.values()))))]

    def _pod_state(self, caller: _Caller, body: bytes) -> list[Effect]:
        record = self._sandboxes.get(decode_value(body, SandboxId).sandbox)
        if record is None:
            return [_answer(caller, encode_value(RuntimeState(())))]
        given_up = [] if self._is_late(caller, _About(record.sandbox)) else self._give_up(record.sandbox, caller)
        return [*given_up, _answer(caller, encode_value(RuntimeState((pods.state_of(record),))))]

    def _stats(self, caller: _Caller, body: bytes) -> list[Effect]:
        wanted = decode_value(body, SandboxId).sandbox
        record = self._sandboxes.get(wanted)
        if record is None:
            return [_refusal(caller, Code.NOT_FOUND, f'sandbox "{wanted}" not found')]
        stats, notes = pods.stats_of(record)
        return [*notes, _answer(caller, encode_value(stats))]

    # ------------------------------------------------------------ time

    def _due(self, now: Instant, timer: str) -> list[Effect]:
        sandbox = timer.removeprefix("sandbox/")
        self._timers.pop(sandbox, None)
        return self._pass(now, sandbox) if sandbox in self._sandboxes else []

    def _pass(self, now: Instant, sandbox: str) -> list[Effect]:
        """Let the sandbox's time pass up to ``now``: its own dues and its updates, in their order."""
        effects: list[Effect] = []
        under_way = self._updates.get(sandbox, [])
        while under_way and under_way[0].due <= now:
            update = under_way.pop(0)
            effects += self._lapse(now, sandbox, update.due)
            effects += self._apply(now, sandbox, update)
        effects += self._lapse(now, sandbox, now)
        if not self._updates.get(sandbox):
            self._updates.pop(sandbox, None)
        return [*effects, *self._arm(self._sandboxes[sandbox])]

    def _lapse(self, now: Instant, sandbox: str, until: Instant) -> list[Effect]:
        record = self._sandboxes[sandbox]
        return self._commit(now, record, pods.advance(record, until))

    def _apply(self, now: Instant, sandbox: str, update: _Update) -> list[Effect]:
        record = self._sandboxes[sandbox]
        container = record.container(update.container)
        if container is None:
            return [_refusal(c, Code.NOT_FOUND, f'container "{update.container}" not found') for c in update.callers]
        turn = pods.update(record, container, update.resources, self._hierarchy, now)
        facts = _update_facts(record, container, update.resources)
        kept = self._stored(record, turn.record)
        if turn.refused is not None:
            end = Note("rt.update.end", {**facts, "ok": False, "error": turn.refused.message})
            return [*kept, T2, end, *(_refusal(c, Code.UNKNOWN, turn.refused.message) for c in update.callers), T3]
        end = Note("rt.update.end", {**facts, "ok": True})
        answers = [_answer(c) for c in update.callers]
        return [*kept, T2, end, *turn.notes, *answers, T3, *self._feed.tell(now, turn.events)]

    # ------------------------------------------------------------ keeping and answering

    def _answered(self, now: Instant, before: SandboxRecord | None, turn: Turn, caller: _Caller, body: bytes = b"") -> list[Effect]:
        """Make a changing call's turn durable, then answer it."""
        kept = self._stored(before, turn.record)
        told = self._told(now, turn)
        return [*kept, T2, *turn.notes, _answer(caller, body), T3, *told, *self._arm(turn.record)]

    def _commit(self, now: Instant, before: SandboxRecord, turn: Turn) -> list[Effect]:
        """Make durable what time did, and tell who waits for it."""
        return [*self._stored(before, turn.record), *turn.notes, *self._told(now, turn), *self._arm(turn.record)]

    def _stored(self, before: SandboxRecord | None, after: SandboxRecord) -> list[Effect]:
        self._keep(after)
        return [] if after == before else [Persist(_key(after.sandbox), encode_value(after))]

    def _keep(self, record: SandboxRecord) -> None:
        self._sandboxes[record.sandbox] = record
        for container in record.containers:
            self._owners[container.container] = record.sandbox

    def _told(self, now: Instant, turn: Turn) -> list[Effect]:
        """Replies to starts that are over, and the events."""
        effects: list[Effect] = []
        for container in turn.record.containers:
            if container.state == "created" or container.container not in self._starting:
                continue
            for caller in self._starting.pop(container.container):
                if container.started_at:
                    effects += [T2, _answer(caller), T3]
                else:
                    words = f'container "{container.container}" was stopped before it ran'
                    effects.append(_refusal(caller, Code.FAILED_PRECONDITION, words))
        return [*effects, *self._feed.tell(now, turn.events)]

    def _abandoned(self, record: SandboxRecord, why: str) -> list[Effect]:
        """Answers to calls that wait for a sandbox that is gone."""
        callers = [c for u in self._updates.pop(record.sandbox, []) for c in u.callers]
        for container in record.containers:
            callers += self._starting.pop(container.container, [])
        return [_refusal(c, Code.NOT_FOUND, why) for c in callers]

    def _arm(self, record: SandboxRecord) -> list[Effect]:
        under_way = self._updates.get(record.sandbox)
        times = [t for t in (pods.due(record), under_way[0].due if under_way else None) if t is not None]
        wanted = min(times, default=None)
        if self._timers.get(record.sandbox) == wanted:
            return []
        self._timers[record.sandbox] = wanted
        return [SetTimer(_key(record.sandbox), wanted)]

    # ------------------------------------------------------------ finding

    def _sandbox(self, wanted: str) -> SandboxRecord:
        record = self._sandboxes.get(wanted)
        if record is None:
            raise _RefusedError(Code.NOT_FOUND, f'sandbox "{wanted}" not found')
        return record

    def _find(self, wanted: str) -> tuple[SandboxRecord | None, ContainerRecord | None]:
        record = self._sandboxes.get(self._owners.get(wanted, ""))
        return record, None if record is None else record.container(wanted)

    def _container(self, wanted: str) -> tuple[SandboxRecord, ContainerRecord]:
        record, container = self._find(wanted)
        if record is None or container is None:
            raise _RefusedError(Code.NOT_FOUND, f'container "{wanted}" not found')
        return record, container


def _key(sandbox: str) -> str:
    return f"sandbox/{sandbox}"


def _answer(caller: _Caller, body: bytes = b"") -> Send:
    return Send(caller.source, Reply(caller.id, Code.OK, body))


def _refusal(caller: _Caller, code: Code, message: str) -> Send:
    return Send(caller.source, Reply(caller.id, code, b"", message))


def _update_facts(record: SandboxRecord, container: ContainerRecord, resources: LinuxResources) -> dict[str, Any]:
    return {
        "pod": f"{record.namespace}/{record.name}",
        "uid": record.uid,
        "container": container.container,
        "name": container.name,
        "cfg": pods.config(resources),
    }


def _workload_notes(workload: str, record: SandboxRecord) -> list[Note]:
    if is_workload(workload):
        return []
    return [Note("rt.workload.malformed", {"pod": f"{record.namespace}/{record.name}", "uid": record.uid, "text": workload[:200]})]
