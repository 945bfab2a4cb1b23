"""The scheduler's machine: inputs to decision modules, decisions to effects.

Nothing is persisted. A new incarnation reads pods, nodes and budgets anew; deferred resizes queue themselves when they are first
seen (SC-20), victims that are ending need no second call (SC-117), and a binding that reached the API server shows in the pod.
"""

import itertools
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, assert_never

import msgspec

from elbowroom.api.gates import Profile
from elbowroom.api.objects import Namespace, Node, Pod, PodDisruptionBudget
from elbowroom.api.quantity import QuantityError
from elbowroom.api.selectors import Selector
from elbowroom.cache import Change, Reflector
from elbowroom.machine import Effect, Input, Instant, Machine, Note, Received, Send, SetTimer, Step, TimerFired
from elbowroom.rpc import Calls, Finished
from elbowroom.scheduler.actuation import Actuator, Ended, VictimCall
from elbowroom.scheduler.belonging import Belonging, ReplicaSet, Service
from elbowroom.scheduler.binding import BindCall
from elbowroom.scheduler.cache import Cache, Snapshot
from elbowroom.scheduler.clusterevents import (
    ASSIGNED_POD,
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    POD_GROUP_ADD,
    POD_GROUP_UPDATE,
    UNSCHEDULED_POD_ADD,
    ClusterEvent,
    node_events,
    pod_events,
)
from elbowroom.scheduler.config import parse
from elbowroom.scheduler.cycle import Cycle, Decision, Failed, NoNodes, NotPermitted, Parked, Placed, Unschedulable
from elbowroom.scheduler.framework import Framework, Plugin
from elbowroom.scheduler.metrics import Metrics
from elbowroom.scheduler.nominator import Nominator
from elbowroom.scheduler.placing import Placing
from elbowroom.scheduler.plugins import framework_of
from elbowroom.scheduler.podgroups import PodGroup, PodGroups, group_key
from elbowroom.scheduler.podinfo import PodInfo, is_deferred, is_preemption_disabled
from elbowroom.scheduler.podstatus import StatusCall, StatusWriter, not_scheduled, status_patch
from elbowroom.scheduler.preemption import Budget, Plan, World, budget_of
from elbowroom.scheduler.queue import POD_ADD, QueuedPod, SchedulingQueue
from elbowroom.scheduler.recorder import Recorder
from elbowroom.wire import Call, Code, MalformedError, Reply, decode_value, encode_value

GO, FLUSH, LOOK = "sched/go", "sched/flush", "sched/look"
CYCLES_PER_STEP = 32
SUCCESS = "Success"
NANOSECONDS = 1_000_000_000


class _ProxyRequest(msgspec.Struct):
    path: str = ""
    query: dict[str, str] = {}


class Scheduler:
    """One incarnation of the scheduler. See ``build`` for the configuration."""

    def __init__(self, config: Mapping[str, Any], rng: random.Random) -> None:
        self._profile = Profile.from_config(config["profile"])
        epoch = int(config.get("epoch", 0))
        self._config = parse(config.get("config") or {})
        self._names = tuple(profile.name for profile in self._config.profiles)
        ids = itertools.count(1)
        self._calls = Calls(epoch=epoch, ids=ids)
        self._pods = Reflector("pods", Pod, epoch=epoch, ids=ids)
        self._nodes = Reflector("nodes", Node, epoch=epoch, ids=ids)
        self._budgets = Reflector("poddisruptionbudgets.policy", PodDisruptionBudget, epoch=epoch, ids=ids)
        self._namespaces = Reflector("namespaces", Namespace, epoch=epoch, ids=ids)
        self._services = Reflector("services", Service, epoch=epoch, ids=ids)
        self._replica_sets = Reflector("replicasets.apps", ReplicaSet, epoch=epoch, ids=ids)
        self._pod_groups = Reflector("podgroups.scheduling.k8s.io", PodGroup, version="v1beta1", epoch=epoch, ids=ids)
        self._groups = PodGroups(self._pod_groups.store) if self._profile.on("GenericWorkload") else None
        self._belonging = Belonging(self._replica_sets.store)
        self._metrics = Metrics(
            publishes_preemptions=self._profile.publishes_resize_status,
            queueing_hints=self._profile.on("SchedulerQueueingHints"),
            async_preemption=self._profile.on("SchedulerAsyncPreemption"),
        )
        self._cache = Cache()
        self._snapshot = Snapshot()
        self._nominator = Nominator()
        self._recorder = Recorder(self._calls, rng)
        self._actuator = Actuator(self._calls, self._recorder, self._pods.store.get, self._call_off)
        frameworks: dict[str, Framework] = {}
        plugins: dict[str, Sequence[Plugin]] = {}
        for wanted in self._config.profiles:
            frameworks[wanted.name], plugins[wanted.name] = framework_of(self._profile, self, wanted)
        self._queue = SchedulingQueue(
            plugins,
            pops_from_backoff=self._profile.on("SchedulerPopFromBackoffQ"),
            counted=self._metrics.incoming,
            hinted=self._metrics.hinted,
            pre_enqueues=lambda info: frameworks[info.pod.spec.scheduler_name].pre_enqueues,
            backoff_seconds=(self._config.initial_backoff_seconds, self._config.max_backoff_seconds),
        )
        self._statuses = StatusWriter(self._calls)
        self._placing = Placing(
            self._calls,
            self._statuses,
            self._cache,
            self._queue,
            self._nominator,
            self._metrics,
            self._recorder,
            self,
            self._pods.store.get,
            self._failed,
            self._move,
            tells_early=self._profile.on("NominatedNodeNameForExpectation"),
        )
        self._cycles = {
            name: Cycle(framework, rng, partial(self._metrics.evaluation, profile=name)) for name, framework in frameworks.items()
        }
        self._parsed_budgets: list[Budget] | None = None
        self._remembered: dict[str, frozenset[str]] = {}
        """The victims (uids) of each deferred pod's last round."""
        self._outbox: list[Effect] = []
        """What the handling of changes wants sent."""
        self._armed: dict[str, Instant | None] = {}

    @property
    def _reflectors(self) -> tuple[Reflector[Any], ...]:
        groups = (self._pod_groups,) if self._groups is not None else ()
        return (self._namespaces, self._budgets, self._services, self._replica_sets, *groups, self._nodes, self._pods)

    # ---- what plugins may ask (Lookup)

    def node(self, name: str) -> Node | None:
        return self._nodes.store.get(name)

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        namespace = self._namespaces.store.get(name)
        return namespace.metadata.labels if namespace is not None else {}

    def belonging(self, pod: Pod) -> Selector:
        return self._belonging.selector(pod)

    def is_preempting(self, uid: str) -> bool:
        return self._actuator.is_preempting(uid)

    def pod_group(self, key: str) -> PodGroup | None:
        return self._groups.get(key) if self._groups is not None else None

    def members(self, key: str) -> Sequence[str]:
        return self._groups.members(key) if self._groups is not None else ()

    def placed(self, key: str) -> int:
        return sum(self._cache.pod(uid) is not None for uid in self.members(key))

    # ---- the machine

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        effects: list[Effect] = [
            Note(
                "sch.start",
                {
                    "profile": self._profile.name,
                    "resizePreemption": self._profile.resize_preemption,
                    "nominationTracking": self._profile.nomination_tracking,
                    "resizeFit": self._profile.resize_fit,
                    "pdbPolicy": self._profile.pdb_policy,
                },
            )
        ]
        for reflector in self._reflectors:
            effects += reflector.open(now)
        return effects

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        if isinstance(happened, Received) and isinstance(happened.message, Call):
            return [Send(happened.source, self._answer(happened.message))]
        effects: list[Effect] = []
        if isinstance(happened, TimerFired):
            self._armed.pop(happened.name, None)
        effects += self._follow(now, happened)
        of_calls, ended = self._calls.finished(now, happened)
        effects += of_calls
        for finished in ended:
            effects += self._on_finished(now, finished)
        if happened == TimerFired(FLUSH):
            self._queue.flush(now)
        elif happened == TimerFired(LOOK):
            effects += self._look(now)
        effects += self._queue.drain()
        effects += self._run(now, retries=happened == TimerFired(GO))
        sent, self._outbox = self._outbox, []
        return [*effects, *sent, *self._timers(now)]

    def _follow(self, now: Instant, happened: Input) -> list[Effect]:
        """The informers: nodes before pods, so that a pod finds its node."""
        effects: list[Effect] = []
        of_stream, _ = self._namespaces.handle(now, happened)
        effects += of_stream
        of_stream, services = self._services.handle(now, happened)
        effects += of_stream
        for service_change in services:
            self._belonging.on_service(service_change)
        of_stream, _ = self._replica_sets.handle(now, happened)
        effects += of_stream
        if self._groups is not None:
            of_stream, groups = self._pod_groups.handle(now, happened)
            effects += of_stream
            for group in groups:
                if group.new is not None:
                    self._move(now, POD_GROUP_ADD if group.old is None else POD_GROUP_UPDATE, group.old, group.new)
        of_stream, budgets = self._budgets.handle(now, happened)
        effects += of_stream
        if budgets:
            self._parsed_budgets = None
        of_stream, nodes = self._nodes.handle(now, happened)
        effects += of_stream
        of_stream, pods = self._pods.handle(now, happened)
        effects += of_stream
        for node_change in nodes:
            effects += self._guarded(now, node_change, self._on_node)
        for pod_change in pods:
            effects += self._guarded(now, pod_change, self._on_pod)
        return effects

    def _guarded(self, now: Instant, change: Any, handler: Any) -> list[Effect]:
        """An object whose quantities make no sense is passed over: it must not stop the scheduler."""
        try:
            handler(now, change)
        except QuantityError as why:
            return [Note("sch.malformed", {"object": change.key, "why": str(why)})]
        sent, self._outbox = self._outbox, []
        return [Step("S1"), *self._queue.drain(), *sent]

    # ---- nodes

    def _on_node(self, now: Instant, change: Change[Node]) -> None:
        old, new = change.old, change.new
        if new is None:
            self._cache.remove_node(change.key)
            self._move(now, NODE_DELETE, old, None)
            return
        self._cache.set_node(new)
        if old is None:
            self._move(now, NODE_ADD, None, new)
            return
        for event in node_events(old, new):
            self._move(now, event, old, new)

    # ---- pods

    def _on_pod(self, now: Instant, change: Change[Pod]) -> None:
        """A pod that has ended is none any more (SC-38); one that bears another uid is another pod."""
        old = change.old if change.old is not None and not change.old.is_terminal else None
        new = change.new if change.new is not None and not change.new.is_terminal else None
        if self._groups is not None:
            self._groups.seen(old, new)
        if old is not None and (new is None or new.uid != old.uid):
            self._pod_gone(now, old)
            old = None
        if new is None:
            return
        if new.spec.node_name:
            self._assigned(now, old, new)
        elif new.spec.scheduler_name in self._names:
            self._unassigned(now, old, new)

    def _assigned(self, now: Instant, old: Pod | None, new: Pod) -> None:
        """Cache first, queue second (SC-19)."""
        was_assigned = old is not None and bool(old.spec.node_name)
        before = self._cache.pod(new.uid)
        info = self._cache.set_pod(new)
        if not was_assigned:
            self._nominator.remove(new.uid)
            self._placing.gone(new.uid)
            self._queue.remove(new.uid, "assigned")
        if self._is_queued_resize(new):
            self._queue.add(now, info)
        elif was_assigned:
            self._queue.remove(new.uid, "no longer deferred")
            if not is_deferred(new):  # one that its node's policy holds back is still to get the room of its last round
                self._remembered.pop(new.uid, None)
            self._end_nomination(now, new)
        if not was_assigned or before is None:
            self._move(now, ASSIGNED_POD_ADD, None, info)
            return
        self._metrics.handled("AssignedPodUpdate")
        for event in pod_events(ASSIGNED_POD, before, info):
            self._move(now, event, before, info)

    def _end_nomination(self, now: Instant, pod: Pod) -> None:
        """Policy ``nominatedNodeName``: what was written for a resize goes with it."""
        if self._profile.nomination_tracking == "nominatedNodeName" and not is_deferred(pod):
            self._outbox += self._statuses.write(now, pod, status_patch(pod, None, ""))

    def _is_queued_resize(self, pod: Pod) -> bool:
        """Does a deferred resize belong into the queue (SC-18, SC-21, SC-94; profiles row 3)?"""
        if not self._profile.resize_preemption or pod.spec.scheduler_name not in self._names or not is_deferred(pod):
            return False
        return not (self._profile.policy_by_condition and is_preemption_disabled(pod))

    def _unassigned(self, now: Instant, old: Pod | None, new: Pod) -> None:
        if self._cache.is_assumed(new.uid):
            return
        info = PodInfo(new)
        promised = self._nominator.node_of(new.uid)
        self._nominator.seen(info, old)
        if old is None and self._groups is not None and group_key(info):
            self._move(now, UNSCHEDULED_POD_ADD, None, info)
        else:
            self._metrics.handled(POD_ADD if old is None else "UnscheduledPodUpdate")
        if old is None:
            self._queue.add(now, info)
        else:
            self._queue.update(now, info)
        if promised and self._nominator.node_of(new.uid) != promised:
            self._move(now, ASSIGNED_POD_DELETE, info.at(promised), None)

    def _pod_gone(self, now: Instant, old: Pod) -> None:
        if not old.spec.node_name:
            self._metrics.handled("UnscheduledPodDelete")
        self._placing.gone(old.uid)
        self._queue.remove(old.uid, "deleted")
        self._remembered.pop(old.uid, None)
        promised = self._nominator.node_of(old.uid)
        self._nominator.remove(old.uid)
        counted = self._cache.remove_pod(old.uid)
        if counted is not None:
            self._move(now, ASSIGNED_POD_DELETE, counted, None)
        elif promised:
            # Others respected its promise as if it had been there.
            self._move(now, ASSIGNED_POD_DELETE, PodInfo(old).at(promised), None)
        for preemptor in self._actuator.awaiting(old.uid):
            self._queue.reopen(now, preemptor)

    def _move(self, now: Instant, event: ClusterEvent, old: object, new: object) -> None:
        self._metrics.handled(event.label)
        self._queue.move(now, event, old, new)

    # ---- attempts

    def _synced(self) -> bool:
        """Is everything known? A server may not have PodGroups at all: their pods go one by one there."""
        return all(reflector.synced for reflector in self._reflectors if reflector is not self._pod_groups)

    def _run(self, now: Instant, *, retries: bool) -> list[Effect]:
        """Make attempts. Pods that are still backing off are left to a step of their own, which comes after the messages that have
        arrived: a flood of events (all victims of a node go) then makes one attempt of each pod, not one for each event.
        """
        effects: list[Effect] = []
        if not self._queue.has_ready() or not self._synced():
            return effects
        for _ in range(CYCLES_PER_STEP):
            if not (self._queue.has_ready() if retries else self._queue.has_active()):
                break
            entry = self._queue.pop(now)
            effects += self._queue.drain()
            effects += self._try(now, entry)
            effects += self._queue.drain()
        return effects

    def _world(self, now: Instant) -> World:
        if self._parsed_budgets is None:
            self._parsed_budgets = [budget_of(view) for view in self._budgets.store.values()]
        return World(
            self._snapshot,
            self._nominator,
            self._parsed_budgets,
            now,
            strict_budgets=self._profile.pdb_policy == "strict",
            tracking=self._profile.nomination_tracking,
            aligned=self._profile.resize_fit == "kubeletAligned",
            groups=self._groups,
            remembered=self._remembered,
        )

    def _try(self, now: Instant, entry: QueuedPod) -> list[Effect]:
        info = entry.info
        if info.pod.is_terminating:
            self._queue.done(info.uid)
            text = f"skip schedule deleting pod: {info.key}"
            return list(self._recorder.tell(now, info.pod, "Warning", "FailedScheduling", "Scheduling", text))
        if self._cache.is_assumed(info.uid):
            self._queue.done(info.uid)
            return []
        self._snapshot.refresh(self._cache)
        profile = info.pod.spec.scheduler_name
        self._metrics.begin_attempt()
        decision = self._cycles[profile].attempt(info, self._world(now))
        self._tell_points(decision, profile)
        effects: list[Effect] = [Step("S4")]
        match decision:
            case Placed(node, _, waits):
                return effects + self._placing.begin(now, entry, node, waits, {"revision": self._pods.revision})
            case NotPermitted(status, diagnosis):
                self._metrics.attempt("unschedulable", profile)
                return effects + self._failed(now, entry, [status.plugin], "Unschedulable", diagnosis.message(), "")
            case Parked(status):
                self._metrics.attempt("unschedulable", profile)
                self._queue.park(now, entry, [status.plugin])
                return effects
            case Unschedulable():
                return effects + self._unschedulable(now, entry, decision)
            case NoNodes(message):
                self._metrics.attempt("unschedulable", profile)
                return effects + self._failed(now, entry, (), "Unschedulable", message, "")
            case Failed(message):
                self._metrics.attempt("error", profile)
                return effects + self._failed(now, entry, (), "SchedulerError", message, "")
            case _:
                assert_never(decision)

    def _tell_points(self, decision: Decision, profile: str) -> None:
        """The extension points that an attempt went through, and how they ended."""
        self._metrics.algorithm()
        if isinstance(decision, NoNodes):
            return
        points = [("PreFilter", SUCCESS), ("Filter", "Error" if isinstance(decision, Failed) else SUCCESS)]
        if isinstance(decision, Unschedulable) and decision.diagnosis.at_once and decision.diagnosis.absent is not None:
            points = [("PreFilter", decision.diagnosis.absent.code.value)]
        match decision:
            case Placed(_, was_scored, waits):
                scoring = [("PreScore", SUCCESS), ("Score", SUCCESS)] if was_scored else []
                points += [*scoring, ("Reserve", SUCCESS), ("Permit", "Wait" if waits else SUCCESS)]
            case Parked(status) | NotPermitted(status):
                points.append(("Permit", status.code.value))
            case Unschedulable(_, preemption) if preemption.was_tried:
                points.append(("PostFilter", SUCCESS if isinstance(preemption, Plan) else "Unschedulable"))
            case _:
                pass
        for name, status_name in points:
            self._metrics.extension_point(name, status_name, profile)

    def _unschedulable(self, now: Instant, entry: QueuedPod, decision: Unschedulable) -> list[Effect]:
        self._metrics.attempt("unschedulable", entry.info.pod.spec.scheduler_name)
        if decision.preemption.was_tried:
            self._metrics.preemption()
        rejected_by = decision.diagnosis.rejected_by
        effects: list[Effect] = []
        nomination: str | None
        if isinstance(decision.preemption, Plan):
            nomination = decision.preemption.candidate.node
            effects += self._preempt(now, entry.info, decision.preemption)
        else:
            nomination = "" if decision.preemption.clears_nomination else None
        return effects + self._failed(now, entry, rejected_by, "Unschedulable", decision.message, nomination)

    def _preempt(self, now: Instant, info: PodInfo, plan: Plan) -> list[Effect]:
        victims, node = plan.candidate.victims, plan.candidate.node
        is_resize = bool(info.pod.spec.node_name)
        facts = {
            "pod": info.key,
            "uid": info.uid,
            "generation": info.pod.metadata.generation,
            "revision": self._pods.revision,
            "priority": info.priority,
            "preemption_policy": info.pod.spec.preemption_policy or "PreemptLowerPriority",
            "resize": is_resize,
            "node": node,
            "pod_node": info.pod.spec.node_name,
            "policy_disabled": self._forbids_resizes(info, node),
            "victims": [
                {
                    "pod": each.key,
                    "uid": each.uid,
                    "priority": each.priority,
                    "node": each.pod.spec.node_name,
                    **({"group": group_key(each)} if self._groups is not None and group_key(each) else {}),
                }
                for each in victims
            ],
            "violations": plan.candidate.violations,
            "oracle_inputs": plan.inputs,
        }
        effects: list[Effect] = [Note("sch.plan", facts), Step("S5")]
        living = [victim.key for victim in victims if not victim.pod.is_terminating]
        if living:
            self._metrics.preempting(len(victims), is_resize)
            if is_resize:
                said = "Preempting pods for in-place resize"
                effects.append(Note("sch.preempt", {"message": said, "pod": info.key, "node": node, "preemptedPods": living}))
                self._remembered[info.uid] = frozenset(victim.uid for victim in victims)
        lower = [other for other in self._nominator.on(node) if other.priority < info.priority]
        told, ended = self._actuator.begin(now, info, node, victims, lower)
        return effects + told + self._on_ended(now, ended)

    def _call_off(self, now: Instant, uid: str) -> bool:
        """Does that victim only wait to be bound? Then its node is taken back, and that is all (SC-122)."""
        effects = self._placing.call_off(now, uid)
        self._outbox += effects or ()
        return effects is not None

    def _forbids_resizes(self, info: PodInfo, node: str) -> bool:
        """Does the node's policy stand, as this profile reads it?"""
        if self._profile.policy_by_condition:
            return is_preemption_disabled(info.pod)
        held = self._nodes.store.get(node)
        return held is not None and held.resize_preemption_disabled

    def _failed(
        self, now: Instant, entry: QueuedPod, rejected_by: Sequence[str], reason: str, message: str, nomination: str | None
    ) -> list[Effect]:
        """The attempt led to nothing: back into the queue, and tell the user, except about resizes (SC-98, SC-99)."""
        info = entry.info
        live = self._pods.store.get(info.key)
        if live is None or live.uid != info.uid or (live.spec.node_name and not is_deferred(live)):
            self._queue.done(info.uid)
            return []
        if live.spec.node_name:
            self._queue.park(now, entry, rejected_by)
            wanted = nomination if self._profile.nomination_tracking == "nominatedNodeName" else None
            return self._statuses.write(now, live, status_patch(live, None, wanted))
        if nomination is not None:
            self._nominator.nominate(info, nomination)
        self._queue.park(now, entry, rejected_by)
        effects = list(self._recorder.tell(now, live, "Warning", "FailedScheduling", "Scheduling", message))
        return effects + self._statuses.write(now, live, status_patch(live, not_scheduled(now, live, reason, message), nomination))

    # ---- calls and time

    def _on_finished(self, now: Instant, finished: Finished) -> list[Effect]:
        match finished.context:
            case BindCall() as call:
                return self._placing.on_reply(now, call, finished)
            case StatusCall() as call:
                self._statuses.ended(call)
                return self._placing.written(now, call.uid)
            case VictimCall() as call:
                effects, ended = self._actuator.on_reply(now, call, finished)
                return effects + self._on_ended(now, ended)
            case _:
                return []

    def _on_ended(self, now: Instant, ended: Sequence[Ended]) -> list[Effect]:
        """A round of preemption is over: the preemptor's gate opens; after an error it is tried at once (SC-119)."""
        for each in ended:
            self._metrics.preempted(each.ok, (now - each.started) / NANOSECONDS)
            if each.ok:
                self._queue.reopen(now, each.preemptor.uid)
            else:
                self._queue.activate(now, each.preemptor.uid)
        return []

    def _look(self, now: Instant) -> list[Effect]:
        effects = self._placing.on_time(now)
        told, ended = self._actuator.on_time(now)
        effects += told
        effects += self._on_ended(now, ended)
        for info in self._cache.expired(now):
            effects.append(Note("sch.expire", {"pod": info.key, "uid": info.uid}))
            self._move(now, ASSIGNED_POD_DELETE, info, None)
            live = self._pods.store.get(info.key)
            if live is not None and live.uid == info.uid and not live.spec.node_name:
                self._queue.add(now, PodInfo(live))
        return effects

    def _timers(self, now: Instant) -> list[Effect]:
        moments = (self._placing.due(), self._actuator.due(), self._cache.expiry())
        looks = [moment for moment in moments if moment is not None]
        wanted = {
            GO: now if self._queue.has_ready() and self._synced() else None,
            FLUSH: self._queue.due(now),
            LOOK: min(looks, default=None),
        }
        if self._armed.get(GO) is not None and wanted[GO] is not None:
            wanted[GO] = self._armed[GO]
        effects: list[Effect] = []
        for name, at in wanted.items():
            if self._armed.get(name) != at:
                self._armed[name] = at
                effects.append(SetTimer(name, at))
        return effects

    # ---- being asked

    def _answer(self, call: Call) -> Reply:
        if call.method != "proxy":
            return Reply(call.id, Code.UNIMPLEMENTED, message=f"unknown method {call.method!r}")
        try:
            wanted = decode_value(call.body, _ProxyRequest)
        except MalformedError as why:
            return Reply(call.id, Code.INVALID_ARGUMENT, message=str(why))
        status, body = 200, b"ok"
        match wanted.path.strip("/"):
            case "metrics":
                body = self._exposition()
            case "healthz" | "livez":
                pass
            case "readyz":
                status, body = (200, b"ok") if self._synced() else (500, b"informer-sync failed")
            case _:
                status, body = 404, b"404 page not found\n"
        answer = {"status": status, "contentType": "text/plain; version=0.0.4", "body": body}
        return Reply(call.id, body=encode_value(answer))

    def _exposition(self) -> bytes:
        sizes = {"nodes": len(self._cache.node_names), "pods": len(self._cache), "assumed_pods": self._cache.assumed_count}
        running = {"binding": len(self._placing), "DefaultPreemption": len(self._actuator)}
        queue = self._queue
        return self._metrics.expose(queue.counts(), queue.rejections(), sizes, queue.events_in_flight(), running)


def build(config: Mapping[str, Any], rng: random.Random) -> Machine:
    """The scheduler.

    ``config``: ``profile`` (``Profile.as_config()``; its policies are ours, too), ``epoch``, ``name``; optional ``config``, a
    KubeSchedulerConfiguration (``elbowroom.scheduler.config``), which also says whose pods are ours. ``SchedulerConfigError`` if it
    makes no sense.
    """
    return Scheduler(config, rng)
