"""Who is in the queue (SC-18 to SC-35), and races of resizes, victims, nodes and the scheduler's own end (SC-139 to SC-146)."""

from dataclasses import replace

import pytest
from scheduler_cluster import DEFERRED, INFEASIBLE, START, Cluster, Document, deferred, node, pod
from scheduler_worlds import filters_for, info_of, plugins_of, snapshot_of

from elbowroom.api.gates import profile_of
from elbowroom.machine import Instant, seconds
from elbowroom.scheduler.queue import SchedulingQueue

PROFILES = ("lab", "v1.37")


def where(cluster: Cluster, name: str) -> str:
    return cluster.scheduler._queue.where(f"uid-{name}")


def crowded(profile: str = "lab", *, grown: str = "200m") -> Cluster:
    """A full node: two low ones of 100m, and a high one of 100m that wants ``grown``."""
    cluster = Cluster(profile).nodes(node("n1", cpu="300m"), node("n2", cpu="300m"))
    cluster.pods(*(pod(f"low{n}", node="n1", cpu="100m", started=f"2026-01-01T00:00:0{n}Z") for n in range(2)))
    return cluster.pods(deferred("high", "n1", grown, "100m", 1000)).settle()


# ---------------------------------------------------------------- who is in the queue


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("why", "conditions", "queued"),
    [
        ("deferred", [DEFERRED], True),
        ("deferred, whatever the status says", [{**DEFERRED, "status": "False"}], True),
        ("infeasible", [INFEASIBLE], False),
        ("the first condition decides", [INFEASIBLE, DEFERRED], False),
        ("the first condition decides again", [DEFERRED, INFEASIBLE], True),
        ("another reason", [{**DEFERRED, "reason": "deferred"}], False),
        ("none", [], False),
    ],
)
def test_whose_resize_is_deferred(profile: str, why: str, conditions: list[Document], queued: bool) -> None:
    cluster = Cluster(profile).nodes(node("n1", cpu="100m"))
    waits = pod("waits", node="n1", cpu="200m", allocated="100m", conditions=conditions)
    assert bool(where(cluster.pods(waits).settle(), "waits")) is queued, "at the first sight of it"
    other = Cluster(profile).nodes(node("n1", cpu="100m")).pods(pod("waits", node="n1", cpu="100m", allocated="100m")).settle()
    assert where(other, "waits") == ""
    assert bool(where(other.pods(waits).settle(), "waits")) is queued, "by an update"


def test_the_pods_of_other_schedulers_are_theirs() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m")).pods(pod("low", node="n1", cpu="200m"))
    cluster.pods(deferred("foreign", "n1", "300m", "100m", 1000, schedulerName="other")).later(60)
    assert (where(cluster, "foreign"), cluster.deleted()) == ("", [])


def test_a_resize_comes_into_the_queue_as_any_pod_does() -> None:
    cluster = crowded()
    assert [fields["cause"] for fields in cluster.noted("sch.enqueue")] == ["UnscheduledPodAdd"]
    told = cluster.metrics()
    assert told['scheduler_queue_incoming_pods_total{event="UnscheduledPodAdd",queue="active"}'] == 1


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("why", "document"),
    [
        ("nobody is less important", deferred("waits", "n1", "200m", "100m", -1)),
        ("its class never preempts", deferred("waits", "n1", "200m", "100m", 1000, preemptionPolicy="Never")),
        ("it wants more than the node", deferred("waits", "n1", "2", "100m", 1000)),
    ],
)
def test_a_resize_that_cannot_be_helped_stays_queued(profile: str, why: str, document: Document) -> None:
    cluster = Cluster(profile).nodes(node("n1", cpu="200m")).pods(pod("other", node="n1", cpu="100m", priority=5), document)
    cluster.later(400)
    assert (where(cluster, "waits"), cluster.deleted()) == ("unschedulable", [])
    assert cluster.attempts("waits") == 2, "once at first, and once by the flush of five minutes"


def test_a_resize_whose_policy_forbids_it_stays_queued_in_v137_and_leaves_in_lab() -> None:
    cluster = Cluster("v1.37").nodes(node("n1", cpu="300m", disabled=["me"]))
    cluster.pods(pod("low", node="n1", cpu="200m"), deferred("high", "n1", "300m", "100m", 1000)).settle()
    assert where(cluster, "high") == "unschedulable"
    assert cluster.noted("sch.park")[-1]["cause"] == "DeferredPodScheduling,NodeName"


def test_what_rejected_a_resize_is_the_filter_and_the_one_that_kept_it_on_its_node() -> None:
    cluster = crowded()
    assert cluster.noted("sch.park")[0]["cause"] == "NodeResourcesFit,NodeName"
    cluster.nodes(node("n3", cpu="100m")).later(20)
    assert cluster.attempts("high") == 1, "a node that comes is nothing to a resize elsewhere (SC-28, SC-33)"
    assert cluster.deleted() == ["low1"]


def test_a_pod_of_no_node_of_its_own_has_no_resize() -> None:
    """Nonsense of somebody who writes statuses by hand."""
    cluster = Cluster().nodes(node("n1", cpu="300m")).pods(pod("odd", cpu="100m", conditions=[DEFERRED])).settle()
    assert cluster.node_of("odd") == "n1"


@pytest.mark.parametrize(
    ("on", "reasons"),
    [("n1", ("node had resize preemption disabled",)), ("n2", ("node(s) didn't match the requested node name",))],
)
def test_what_is_said_of_nodes_to_a_resize(on: str, reasons: tuple[str, ...]) -> None:
    document = deferred("high", "n1", "200m", "100m", 1000)
    snapshot = snapshot_of([node("n1", disabled=["me"]), node("n2")], [document])
    found = snapshot.get(on)
    assert found is not None
    status = filters_for(document, snapshot, plugins_of(profile_of("v1.37", {"SchedulerPreemptionForPodResize": True}))).check(
        found
    )
    assert status is not None and status.reasons == reasons


# ---------------------------------------------------------------- races


def test_a_victim_keeps_its_room_until_it_is_gone() -> None:
    cluster = crowded().later(60)
    assert cluster.deleted() == ["low1"]
    cluster.pods(pod("new", cpu="300m", nodeSelector={"kubernetes.io/hostname": "n1"}), pod("small", cpu="1m", priority=9))
    cluster.later(5)
    assert cluster.node_of("new") == ""
    assert cluster.node_of("small") == "n2", "on n1 it would take what the resize asks for"
    cluster.gone("low1")
    cluster.settle()
    assert cluster.noted("sch.park")[-1]["cause"] in ("DeferredPodScheduling", "NodeResourcesFit,NodeAffinity")
    assert where(cluster, "high") == "unschedulable"


def test_a_bigger_wish_while_it_waits_needs_more_victims() -> None:
    cluster = crowded()
    assert cluster.deleted() == ["low1"]
    cluster.pods(deferred("high", "n1", "300m", "100m", 1000)).later(20)
    assert sorted(cluster.deleted()) == ["low0", "low1"]


def test_a_wish_that_is_taken_back_brings_nobody_back_and_takes_nobody_more() -> None:
    cluster = crowded()
    cluster.pods(pod("high", node="n1", cpu="100m", allocated="100m", priority=1000)).settle()
    assert where(cluster, "high") == ""
    cluster.gone("low1")
    cluster.later(60)
    assert cluster.deleted() == ["low1"]


@pytest.mark.parametrize("how", ["deleted", "no longer deferred"])
def test_a_preemptor_that_leaves_while_its_victims_are_told(how: str) -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.pods(*(pod(f"low{n}", node="n1", cpu="100m", started=f"2026-01-01T00:00:0{n}Z") for n in range(2)))
    cluster.hold = lambda request: request.verb == "delete"
    cluster.pods(deferred("high", "n1", "300m", "100m", 1000)).settle()
    if how == "deleted":
        cluster.gone("high")
    else:
        cluster.pods(pod("high", node="n1", cpu="100m", allocated="100m", priority=1000))
    cluster.settle().release()
    cluster.later(60)
    assert where(cluster, "high") == ""
    assert sorted(cluster.deleted()) == ["low0", "low1"], "what was decided is carried out, and not taken back"
    assert len(cluster.scheduler._actuator) == 0


def test_a_resize_of_a_node_that_is_gone_preempts_nobody() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"), node("n2", cpu="300m"))
    cluster.pods(pod("low", node="n1", cpu="200m", priority=5), pod("far", node="n2", cpu="300m"))
    cluster.remove("nodes", "n1")
    cluster.pods(deferred("high", "n1", "300m", "100m", 1000)).later(30)
    assert cluster.deleted() == []
    assert where(cluster, "high") == "unschedulable"
    cluster.nodes(node("n1", cpu="300m")).later(30)
    assert cluster.deleted() == ["low"]


def test_the_room_that_another_resize_got_is_made_again() -> None:
    """A evicted B, and C, which is more important, grew into the room: A has to make room once more (SC-142)."""
    cluster = Cluster().nodes(node("n1", cpu="400m"))
    cluster.pods(
        pod("b", node="n1", cpu="100m", started="2026-01-01T00:00:05Z"),
        pod("d", node="n1", cpu="100m", started="2026-01-01T00:00:01Z"),
        pod("c", node="n1", cpu="100m", allocated="100m", priority=2000),
        deferred("a", "n1", "200m", "100m", 1000),
    ).settle()
    assert cluster.deleted() == ["b"]
    cluster.gone("b")
    cluster.pods(pod("c", node="n1", cpu="200m", allocated="200m", priority=2000)).later(20)
    assert cluster.deleted() == ["b", "d"]
    cluster.gone("d")
    cluster.later(20)
    assert cluster.noted("sch.park")[-1]["cause"] == "DeferredPodScheduling"
    assert where(cluster, "a") == "unschedulable"


def test_policies_do_not_recall_what_was_told() -> None:
    cluster = crowded("v1.37")
    cluster.put("nodes", node("n1", cpu="300m", disabled=["me"]))
    cluster.settle()
    cluster.gone("low1")
    cluster.later(30)
    assert cluster.deleted() == ["low1"]


def test_a_successor_chooses_the_same_and_makes_no_call_for_who_is_ending() -> None:
    cluster = crowded()
    before = len(cluster.requests)
    cluster.restart().later(30)
    assert cluster.deleted() == ["low1"]
    assert [each for each in cluster.requests[before:] if each.resource == "pods"] == []


def test_a_victim_that_was_marked_and_not_deleted_is_deleted_by_the_successor() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m")).pods(pod("low", node="n1", cpu="200m"))
    cluster.hold = lambda request: request.verb == "delete"
    cluster.pods(deferred("high", "n1", "300m", "100m", 1000)).settle()
    assert cluster.condition("low", "DisruptionTarget")["status"] == "True"
    cluster.hold = lambda request: False
    cluster.restart().settle()
    verbs = [each.verb for each in cluster.requests if each.resource == "pods"]
    assert verbs == ["patch", "delete"], "the condition is there already"


def test_only_an_ending_pod_that_the_scheduler_ended_holds_a_nominated_pod_back() -> None:
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    preempted = {**evicted, "reason": "PreemptionByScheduler"}
    for conditions, waits in (([], False), ([evicted], False), ([preempted], True)):
        cluster = Cluster().nodes(node("n1", cpu="400m"))
        ending = pod("ending", node="n1", cpu="100m", conditions=conditions, started="2026-01-01T00:00:01Z")
        ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        cluster.pods(ending, pod("low", node="n1", cpu="300m", started="2026-01-01T00:00:02Z"))
        waiting = pod("new", cpu="400m", priority=9, status={"nominatedNodeName": "n1"})
        cluster.pods(waiting).settle()
        assert (cluster.deleted() == []) is waits


def test_a_condition_is_written_once_for_what_is_said_again() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1")).pods(pod("big", cpu="2")).settle()
    cluster.nodes(node("n2", cpu="1")).later(3)
    cluster.remove("nodes", "n2")
    cluster.nodes(node("n1", cpu="1", pods="111")).later(400)
    assert cluster.attempts("big") == 2
    assert len([each for each in cluster.requests if (each.verb, each.name) == ("patch", "big")]) == 1


# ---------------------------------------------------------------- numbers


def test_error_backoff_ends_by_the_clock_alone() -> None:
    queue = SchedulingQueue([])
    queue.add(START, info_of(pod("a")))
    queue.park(START, queue.pop(START), [])
    for moment, ready in ((0.9, False), (1.9, False), (2.0, True)):
        queue.flush(Instant(START + seconds(moment)))
        assert queue.has_ready() is ready, moment


def test_a_pod_behind_gates_says_which() -> None:
    (gates,) = [each for each in plugins_of(replace(profile_of("lab"))) if each.name == "SchedulingGates"]
    status = gates.pre_enqueue(info_of(pod("a", schedulingGates=[{"name": "one"}, {"name": "two"}])))
    assert status is not None and status.message == "waiting for scheduling gates: [one two]"
    (preemption,) = [each for each in plugins_of() if each.name == "DefaultPreemption"]
    assert preemption.pre_enqueue(info_of(pod("a"))) is None
