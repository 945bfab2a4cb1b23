"""What becomes of a pod that has a node: it waits for leave if a plugin said so, is bound, or gives its node back (SC-54, SC-60).

All of it goes on beside the scheduling of other pods, which see the node's room as taken from the first moment.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, assert_never

from elbowroom.api.objects import Pod
from elbowroom.machine import Effect, Instant, Note
from elbowroom.rpc import Calls, Finished
from elbowroom.scheduler.binding import CONFIRM_SECONDS, BindCall, Binder, Bound, NotBound, Outcome, Unconfirmed
from elbowroom.scheduler.cache import Cache
from elbowroom.scheduler.clusterevents import ASSIGNED_POD_DELETE, ClusterEvent
from elbowroom.scheduler.diagnosis import refused_at
from elbowroom.scheduler.lookup import Lookup
from elbowroom.scheduler.metrics import Metrics
from elbowroom.scheduler.nominator import Nominator
from elbowroom.scheduler.plugins.gang import GangScheduling
from elbowroom.scheduler.podgroups import group_key
from elbowroom.scheduler.podstatus import StatusWriter, status_patch
from elbowroom.scheduler.queue import QueuedPod, SchedulingQueue
from elbowroom.scheduler.recorder import Recorder
from elbowroom.scheduler.status import Code, Status, Wait
from elbowroom.scheduler.waiting import WaitingPod, WaitingPods, go_duration

NANOSECONDS = 1_000_000_000
SUCCESS = "Success"


class Failure(Protocol):
    """An attempt led to nothing: who said no, the reason and the message of the condition, and the nomination to write."""

    def __call__(
        self, now: Instant, entry: QueuedPod, rejected_by: Sequence[str], reason: str, message: str, nomination: str | None
    ) -> list[Effect]: ...


class Placing:
    """The pods that wait and those that are being bound. ``seen`` gives a pod by its key as the informer shows it; ``moved`` tells
    the queue of an event; ``tells_early``: is a node written as nominated where binding will take a while (SC-61)?
    """

    def __init__(
        self,
        calls: Calls,
        statuses: StatusWriter,
        cache: Cache,
        queue: SchedulingQueue,
        nominator: Nominator,
        metrics: Metrics,
        recorder: Recorder,
        lookup: Lookup,
        seen: Callable[[str], Pod | None],
        failed: Failure,
        moved: Callable[[Instant, ClusterEvent, object, object], None],
        *,
        tells_early: bool,
    ) -> None:
        self._statuses, self._cache, self._queue, self._nominator = statuses, cache, queue, nominator
        self._metrics, self._recorder, self._lookup, self._seen = metrics, recorder, lookup, seen
        self._failed, self._moved, self._tells_early = failed, moved, tells_early
        self._waiting = WaitingPods()
        self._binder = Binder(calls, seen, statuses.writes)

    def __len__(self) -> int:
        return len(self._binder) + len(self._waiting)

    def begin(self, now: Instant, entry: QueuedPod, node: str, waits: tuple[Wait, ...], facts: Mapping[str, Any]) -> list[Effect]:
        """The pod gets the node, and is bound at once if nobody lets it wait; ``facts`` go into the history."""
        info = entry.info.at(node)
        held = self._cache.node(node)
        if held is not None:
            facts = {**facts, "allocatable": held.allocatable, "requested": dict(held.requested)}
        self._cache.assume(info)
        self._nominator.remove(info.uid)
        facts = {"want": info.want, **facts}
        if waits:
            return self._await(now, WaitingPod(entry, info, node, now, waits, facts))
        effects = self._binder.begin(now, entry, info, node, facts)
        # If it was the last of its gang to find a node, the others go with it.
        for uid in self._lookup.members(group_key(info)) if self._waiting else ():
            pod = self._waiting.allow(uid, GangScheduling.name)
            if pod is not None:
                self._metrics.permitted(SUCCESS, (now - pod.since) / NANOSECONDS)
                effects += self._binder.begin(now, pod.entry, pod.info, pod.node, pod.facts)
        return effects

    def gone(self, uid: str) -> None:
        """The pod was seen to go, or to be somewhere: it waits no more."""
        self._waiting.take(uid)

    def call_off(self, now: Instant, uid: str) -> list[Effect] | None:
        """A pod that waits is preempted: it gives its node back and is tried again (SC-122). None if it does not wait."""
        pod = self._waiting.take(uid)
        return None if pod is None else self._give_back(now, pod, Code.ERROR, (), "waiting on permit for pod: preempted")

    def due(self) -> Instant | None:
        """When ``on_time`` has something to do next."""
        return min((moment for moment in (self._binder.due(), self._waiting.due()) if moment is not None), default=None)

    def on_time(self, now: Instant) -> list[Effect]:
        """Look into bindings whose outcome is not known, and take back the nodes of those who waited too long."""
        effects, outcomes = self._binder.on_time(now)
        effects += self._ended(now, outcomes)
        for pod, wait in self._waiting.expired(now):
            text = f"rejected due to timeout after waiting {go_duration(wait.seconds)} at plugin {wait.plugin}"
            status = Status(Code.UNSCHEDULABLE, (text,), wait.plugin)
            effects += self._give_back(now, pod, status.code, [wait.plugin], refused_at(pod.node, status).message())
        return effects

    def on_reply(self, now: Instant, call: BindCall, finished: Finished) -> list[Effect]:
        """A call that binds ended."""
        effects, outcomes = self._binder.on_reply(now, call, finished)
        return effects + self._ended(now, outcomes)

    def written(self, now: Instant, uid: str) -> list[Effect]:
        """A write of that pod's status ended."""
        return self._binder.written(now, uid)

    # ---- inside

    def _await(self, now: Instant, pod: WaitingPod) -> list[Effect]:
        """The rest of its gang is tried meanwhile."""
        self._waiting.add(pod)
        info, names = pod.info, [wait.plugin for wait in pod.waits]
        effects: list[Effect] = [Note("sch.wait", {"pod": info.key, "uid": info.uid, "node": pod.node, "plugins": names})]
        live = self._seen(info.key)
        if live is not None and live.uid == info.uid and self._tells_early:
            effects += self._statuses.write(now, live, status_patch(live, None, pod.node))
        for uid in self._lookup.members(group_key(info)):
            if self._cache.pod(uid) is None:
                self._queue.activate(now, uid)
        return effects

    def _give_back(self, now: Instant, pod: WaitingPod, code: Code, rejected_by: Sequence[str], message: str) -> list[Effect]:
        profile, waited = pod.info.pod.spec.scheduler_name, (now - pod.since) / NANOSECONDS
        self._metrics.permitted(code.value, waited)
        self._metrics.extension_point("Unreserve", SUCCESS, profile)
        self._metrics.attempt("unschedulable" if rejected_by else "error", profile, waited)
        forgotten = self._cache.forget(pod.info.uid)
        effects = self._failed(now, pod.entry, rejected_by, "Unschedulable" if rejected_by else "SchedulerError", message, "")
        if forgotten:
            self._moved(now, ASSIGNED_POD_DELETE, pod.info, None)
        return effects

    def _ended(self, now: Instant, outcomes: Sequence[Outcome]) -> list[Effect]:
        effects: list[Effect] = []
        for outcome in outcomes:
            binding = outcome.binding
            entry, info = binding.entry, binding.info
            profile, took = info.pod.spec.scheduler_name, (now - binding.started) / NANOSECONDS
            match outcome:
                case Bound():
                    self._queue.done(info.uid)
                    for point in ("PreBind", "Bind", "PostBind"):
                        self._metrics.extension_point(point, SUCCESS, profile)
                    self._metrics.attempt("scheduled", profile, took)
                    waited = (now - (entry.first_tried or now)) / NANOSECONDS
                    self._metrics.scheduled(entry.attempts, waited, entry.flushed)
                    text = f"Successfully assigned {info.key} to {binding.node}"
                    effects += self._recorder.tell(now, entry.info.pod, "Normal", "Scheduled", "Binding", text)
                case Unconfirmed():
                    self._queue.done(info.uid)
                    self._cache.expect_by(info.uid, Instant(now + round(CONFIRM_SECONDS * NANOSECONDS)))
                case NotBound(_, message, gone):
                    for point, ended in (("PreBind", SUCCESS), ("Bind", "Error"), ("Unreserve", SUCCESS)):
                        self._metrics.extension_point(point, ended, profile)
                    self._metrics.attempt("error", profile, took)
                    if self._cache.forget(info.uid):
                        self._moved(now, ASSIGNED_POD_DELETE, info, None)
                    if gone:
                        self._queue.done(info.uid)
                    else:
                        text = f'binding rejected: running Bind plugin "DefaultBinder": {message}'
                        effects += self._failed(now, entry, (), "SchedulerError", text, "")
                case _:
                    assert_never(outcome)
        return effects
