"""When a pod is tried, and in which order."""

from typing import Any

import pytest
from scheduler_cluster import START, node, pod
from scheduler_worlds import Nobody, info_of, node_of

from elbowroom.machine import Instant, seconds
from elbowroom.scheduler.clusterevents import ASSIGNED_POD, ASSIGNED_POD_DELETE, NODE, NODE_ADD, Action, event
from elbowroom.scheduler.framework import Code, Interest, Plugin, Status
from elbowroom.scheduler.plugins import DefaultPreemption, ScoringStrategy
from elbowroom.scheduler.plugins.resources import Fit
from elbowroom.scheduler.queue import SchedulingQueue


class Picky(Plugin):
    """Waits for deletions of pods whose names begin with ``good``, and for any node."""

    name = "Picky"
    closed = False

    def pre_enqueue(self, info: Any) -> Status | None:
        return Status(Code.UNRESOLVABLE, ("closed",), self.name) if self.closed else None

    def interests(self) -> list[Interest]:
        return [
            Interest(ASSIGNED_POD, Action.DELETE, lambda waiting, old, new: old.pod.metadata.name.startswith("good")),
            Interest(NODE, Action.ADD),
        ]


def at(amount: float) -> Instant:
    return Instant(START + seconds(amount))


def queue_of(*names: str, **more: Any) -> SchedulingQueue:
    queue = SchedulingQueue([Picky()], **more)
    for name in names:
        queue.add(START, info_of(pod(name)))
    return queue


def fail(queue: SchedulingQueue, now: Instant, *, error: bool = False) -> str:
    entry = queue.pop(now)
    queue.park(now, entry, [] if error else ["Picky"])
    return entry.info.pod.metadata.name


def test_the_higher_priority_comes_first_and_then_who_waits_longer() -> None:
    queue = SchedulingQueue([])
    for amount, name, priority in ((0, "low", 1), (1, "high-late", 9), (0.5, "high-early", 9), (0, "negative", -1)):
        queue.add(at(amount), info_of(pod(name, priority=priority)))
    popped = [queue.pop(at(2)).info.pod.metadata.name for _ in range(4)]
    assert popped == ["high-early", "high-late", "low", "negative"]


def test_backoff_doubles_to_ten_seconds() -> None:
    queue = queue_of("a")
    now, lengths = START, []
    for _ in range(6):
        entry = queue.pop(now)
        queue.park(now, entry, ["Picky"])
        lengths.append(entry.backoff() // seconds(1))
        queue.activate(now, entry.uid)
    assert lengths == [1, 2, 4, 8, 10, 10]


def test_errors_count_by_themselves_and_a_rejection_resets_them() -> None:
    queue = queue_of("a")
    lengths = []
    for rejected_by in ([], [], ["Picky"], [], []):
        entry = queue.pop(START)
        queue.park(START, entry, rejected_by)
        lengths.append(entry.backoff() // seconds(1))
        queue.activate(START, entry.uid)
    assert lengths == [1, 2, 1, 1, 2]


def test_an_idle_scheduler_takes_a_woken_pod_at_once_but_not_one_that_failed_by_error() -> None:
    queue = queue_of("woken", "broken")
    for _ in range(2):
        entry = queue.pop(START)
        queue.park(START, entry, ["Picky"] if entry.uid == "uid-woken" else [])
    assert (queue.where("uid-woken"), queue.where("uid-broken")) == ("unschedulable", "backoff")
    queue.move(START, NODE_ADD, None, node_of(node("n1")))
    assert queue.where("uid-woken") == "backoff"
    assert queue.has_ready() and queue.pop(START).uid == "uid-woken"
    assert not queue.has_ready()


def test_without_pop_from_backoff_a_woken_pod_waits_its_time() -> None:
    queue = queue_of("a", pops_from_backoff=False)
    fail(queue, START)
    queue.move(START, NODE_ADD, None, node_of(node("n1")))
    assert not queue.has_ready()
    queue.flush(at(1.9))
    assert not queue.has_ready(), "an expiry in the current second still counts as backing off"
    queue.flush(at(2))
    assert queue.pop(at(2)).uid == "uid-a"


def test_pods_whose_backoff_ends_in_one_second_come_by_priority() -> None:
    queue = SchedulingQueue([Picky()])
    for amount, name, priority in ((0.2, "low", 1), (0.8, "high", 9)):
        queue.add(at(amount), info_of(pod(name, priority=priority)))
        fail(queue, at(amount))
    queue.move(at(0.9), NODE_ADD, None, node_of(node("n1")))
    assert [queue.pop(at(0.9)).info.pod.metadata.name for _ in range(2)] == ["high", "low"]


@pytest.mark.parametrize(("gone", "wakes"), [("good-riddance", True), ("irrelevant", False)])
def test_only_the_rejecting_plugin_is_asked(gone: str, wakes: bool) -> None:
    queue = queue_of("a")
    fail(queue, START)
    queue.move(at(20), ASSIGNED_POD_DELETE, info_of(pod(gone, node="n1")), None)
    assert queue.where("uid-a") == ("active" if wakes else "unschedulable")
    queue.move(at(20), event(NODE, Action.UPDATE_NODE_TAINT), node_of(node("n1")), node_of(node("n1")))
    assert queue.where("uid-a") == ("active" if wakes else "unschedulable")


def test_an_event_during_the_attempt_is_not_lost() -> None:
    queue = queue_of("a", "b")
    first, second = queue.pop(START), queue.pop(START)
    queue.move(START, ASSIGNED_POD_DELETE, info_of(pod("irrelevant", node="n1")), None)
    queue.park(START, first, ["Picky"])
    queue.move(START, ASSIGNED_POD_DELETE, info_of(pod("good", node="n1")), None)
    queue.park(START, second, ["Picky"])
    assert (queue.where("uid-a"), queue.where("uid-b")) == ("backoff", "backoff"), "the second event woke both"
    assert queue.events_in_flight() == {}


def test_events_are_kept_only_while_somebody_needs_them() -> None:
    queue = queue_of("a", "b")
    first = queue.pop(START)
    queue.move(START, NODE_ADD, None, node_of(node("n1")))
    second = queue.pop(START)
    queue.move(START, ASSIGNED_POD_DELETE, info_of(pod("other", node="n1")), None)
    assert queue.events_in_flight() == {"PodPopped": 2, "NodeAdd": 1, "AssignedPodDelete": 1}
    queue.park(START, first, ["Picky"])
    assert queue.events_in_flight() == {"PodPopped": 1, "AssignedPodDelete": 1}
    queue.done(second.uid)
    assert queue.events_in_flight() == {}


def test_a_pod_that_is_woken_on_its_way_to_rest_is_counted_where_it_goes() -> None:
    counted: list[tuple[str, str]] = []
    queue = queue_of("a", counted=lambda name, label: counted.append((name, label)))
    entry = queue.pop(START)
    queue.move(START, NODE_ADD, None, node_of(node("n1")))
    queue.park(START, entry, ["Picky"])
    assert counted == [("active", "UnscheduledPodAdd"), ("backoff", "ScheduleAttemptFailure")]


@pytest.mark.parametrize(("pops", "where"), [(True, "unschedulable"), (False, "backoff")])
def test_the_gates_stand_before_the_backoff_too_where_it_may_be_left_early(pops: bool, where: str) -> None:
    picky = Picky()
    queue = SchedulingQueue([picky], pops_from_backoff=pops)
    queue.add(START, info_of(pod("a")))
    entry = queue.pop(START)
    picky.closed = True
    queue.park(START, entry, [])
    assert (queue.where("uid-a"), queue.counts()["gated"]) == (where, int(pops))


def test_who_waited_five_minutes_is_tried_anyway() -> None:
    queue = queue_of("a")
    fail(queue, START)
    tried = None
    for tick in range(0, 400, 30):
        queue.flush(at(tick))
        if tried is None and queue.has_ready():
            tried = tick
    assert tried == 330


def test_a_gated_pod_is_let_in_when_an_event_finds_the_gate_open() -> None:
    picky = Picky()
    queue = SchedulingQueue([picky])
    picky.closed = True
    queue.add(START, info_of(pod("a")))
    assert queue.counts() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    queue.move(START, NODE_ADD, None, node_of(node("n1")))
    assert queue.counts()["gated"] == 1
    picky.closed = False
    queue.reopen(START, "uid-a")
    assert queue.counts()["active"] == 1


class Preempting(Nobody):
    busy = False

    def is_preempting(self, uid: str) -> bool:
        return self.busy


def test_who_preempts_hears_of_nothing_behind_its_gate_until_the_gate_is_opened() -> None:
    lookup = Preempting()
    queue = SchedulingQueue([Fit(ScoringStrategy()), DefaultPreemption(lookup)])
    queue.add(START, info_of(pod("web", node="n1", cpu="1")))
    queue.park(START, queue.pop(START), ["NodeResourcesFit"])
    lookup.busy = True
    queue.move(at(20), ASSIGNED_POD_DELETE, info_of(pod("early", node="n1")))
    assert queue.counts()["gated"] == 1
    queue.reopen(at(20), "uid-web")
    assert queue.counts()["gated"] == 1, "its gate is closed still"
    lookup.busy = False
    queue.move(at(20), ASSIGNED_POD_DELETE, info_of(pod("near", node="n1")))
    assert queue.counts()["gated"] == 1
    queue.reopen(at(20), "uid-web")
    assert queue.counts()["active"] == 1


def test_the_end_of_a_preemption_lets_the_preemptor_in_if_something_knocked_meanwhile() -> None:
    lookup = Preempting()
    queue = SchedulingQueue([Fit(ScoringStrategy()), DefaultPreemption(lookup)])
    queue.add(START, info_of(pod("web", node="n1", cpu="1")))
    queue.park(START, queue.pop(START), ["NodeResourcesFit"])
    lookup.busy = True
    queue.reopen(at(20), "uid-web")
    assert queue.where("uid-web") == "unschedulable", "nothing happened that would help"
    queue.move(at(20), ASSIGNED_POD_DELETE, info_of(pod("first-victim", node="n1")))
    lookup.busy = False
    queue.reopen(at(21), "uid-web")
    assert queue.where("uid-web") == "active"


def test_who_leaves_in_flight_does_not_come_back() -> None:
    queue = queue_of("a")
    entry = queue.pop(START)
    queue.remove("uid-a", "deleted")
    queue.park(START, entry, ["Picky"])
    assert queue.where("uid-a") == "" and not queue.has_ready()


def test_a_pod_is_in_one_store_at_most() -> None:
    queue = queue_of("a")
    queue.add(START, info_of(pod("a")))
    fail(queue, START)
    queue.add(START, info_of(pod("a", labels={"x": "y"})))
    queue.activate(START, "uid-a")
    queue.activate(START, "uid-a")
    assert sum(queue.counts().values()) == 1
    queue.pop(START)
    queue.activate(START, "uid-a")
    assert sum(queue.counts().values()) == 0
