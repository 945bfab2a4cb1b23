"""Lost, late and refused calls, and restarts in the middle of things."""

from typing import Any

import pytest
from scheduler_cluster import Cluster, Verdict, deferred, node, pod

from elbowroom.machine import Send
from elbowroom.wire import ApiRequest, ApiResponse, Call, Code, Reply, encode_value


class Once:
    """Gives its verdict on the first request of a kind, and none after."""

    def __init__(self, verdict: Verdict, verb: str, subresource: str = "") -> None:
        self.verdict, self.verb, self.subresource = verdict, verb, subresource
        self.given = 0

    def __call__(self, request: ApiRequest) -> Verdict:
        if self.given or (request.verb, request.subresource) != (self.verb, self.subresource):
            return None
        self.given += 1
        return self.verdict


def requests(cluster: Cluster, verb: str, subresource: str = "") -> int:
    return sum(1 for each in cluster.requests if (each.verb, each.subresource) == (verb, subresource))


def test_a_bind_whose_reply_was_lost_is_not_made_again() -> None:
    cluster = Cluster().nodes(node("n1"))
    cluster.judge = Once(Code.UNAVAILABLE, "create", "binding")
    cluster.pods(pod("a", cpu="1")).later(3)
    assert cluster.node_of("a") == "n1"
    assert requests(cluster, "create", "binding") == 1
    assert cluster.told("a", "Scheduled") == ["Successfully assigned default/a to n1"]


def test_a_bind_that_never_arrived_is_made_again() -> None:
    cluster = Cluster().nodes(node("n1"))
    cluster.judge = Once(ApiResponse(503), "create", "binding")
    cluster.pods(pod("a", cpu="1")).later(3)
    assert cluster.node_of("a") == "n1"
    assert requests(cluster, "create", "binding") == 2


def test_a_refused_bind_gives_the_room_back_and_is_tried_later() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1"))
    cluster.judge = Once(ApiResponse(403, b'{"message": "no"}'), "create", "binding")
    cluster.pods(pod("a", cpu="1")).settle()
    assert cluster.condition("a", "PodScheduled")["reason"] == "SchedulerError"
    assert cluster.told("a", "FailedScheduling") == ['binding rejected: running Bind plugin "DefaultBinder": no']
    assert cluster.metrics()['scheduler_cache_size{type="assumed_pods"}'] == 0
    cluster.later(5)
    assert cluster.node_of("a") == "n1"


def test_a_pod_is_bound_only_when_what_was_said_of_it_is_written() -> None:
    cluster = Cluster().nodes(node("n1", cpu="500m"))
    cluster.hold = lambda request: request.subresource == "status"
    cluster.pods(pod("a", cpu="1"), pod("b", cpu="400m")).settle()
    assert cluster.node_of("b") == "n1", "of which nothing was said"
    cluster.nodes(node("n2", cpu="2")).later(5)
    assert requests(cluster, "create", "binding") == 1, "that of the other pod"
    cluster.release()
    cluster.settle()
    assert cluster.node_of("a") == "n2"


def test_two_pods_do_not_get_the_same_room_while_the_first_is_being_bound() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1"))
    cluster.hold = lambda request: request.subresource == "binding"
    cluster.pods(pod("a", cpu="1"), pod("b", cpu="1")).settle()
    assert cluster.told("b", "FailedScheduling") != []
    cluster.release()
    cluster.settle()
    assert (cluster.node_of("a"), cluster.node_of("b")) == ("n1", "")


def test_a_pod_deleted_while_it_is_bound_leaves_its_room() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1"))
    cluster.hold = lambda request: request.subresource == "binding"
    cluster.pods(pod("a", cpu="1"), pod("b", cpu="1")).settle()
    cluster.gone("a")
    cluster.settle().release()
    cluster.later(5)
    assert cluster.node_of("b") == "n1"


@pytest.mark.parametrize("lost", [("patch", "status"), ("delete", "")])
@pytest.mark.parametrize("arrived", [True, False])
def test_a_lost_reply_about_a_victim_leads_to_one_deletion(lost: tuple[str, str], arrived: bool) -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.judge = Once(Code.UNAVAILABLE if arrived else ApiResponse(503), *lost)
    cluster.pods(pod("victim", node="n1", cpu="100m"), pod("old", node="n1", cpu="100m", started="2026-01-01T00:00:00Z"))
    cluster.pods(deferred("high", "n1", "200m", "100m", 100)).later(5)
    assert cluster.pod("victim")["metadata"].get("deletionTimestamp")
    assert "deletionTimestamp" not in cluster.pod("old")["metadata"]
    assert len(cluster.told("victim", "Preempted")) == 1
    cluster.gone("victim")
    cluster.settle()
    assert cluster.noted("sch.park")[-1]["cause"] == "DeferredPodScheduling"


def test_a_refused_victim_spares_the_last_one_and_the_preemptor_tries_again() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.judge = Once(ApiResponse(403), "delete")
    olds = [pod(f"v{n}", node="n1", cpu="100m", started=f"2026-01-01T00:00:0{n}Z") for n in range(2)]
    cluster.pods(*olds, deferred("high", "n1", "300m", "100m", 100)).settle()
    assert cluster.noted("sch.preempt.failed") != []
    assert cluster.deleted() == ["v0", "v0", "v1"]
    assert cluster.metrics()['scheduler_preemption_goroutines_execution_total{result="error"}'] == 1


def test_a_victim_that_is_gone_already_is_no_error() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.hold = lambda request: request.verb == "patch"
    cluster.pods(pod("victim", node="n1", cpu="200m"), deferred("high", "n1", "300m", "100m", 100)).settle()
    cluster.gone("victim")
    cluster.settle().release()
    cluster.settle()
    assert cluster.deleted() == []
    assert cluster.noted("sch.park")[-1]["cause"] == "DeferredPodScheduling"


def test_a_namesake_of_the_victim_is_spared() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.judge = Once(ApiResponse(503), "delete")
    cluster.pods(pod("victim", node="n1", cpu="200m"), deferred("high", "n1", "300m", "100m", 100)).settle()
    again = pod("victim", node="n1", cpu="10m", priority=500)
    again["metadata"]["uid"] = "uid-another"
    cluster.gone("victim")
    cluster.pods(again).later(5)
    assert cluster.deleted() == ["victim"]
    assert "deletionTimestamp" not in cluster.pod("victim")["metadata"]


@pytest.mark.parametrize("after", range(12))
def test_a_scheduler_that_dies_anywhere_in_a_preemption_ends_no_one_else(after: int) -> None:
    cluster = Cluster().nodes(node("n1", cpu="400m"))
    olds = [pod(f"v{n}", node="n1", cpu="100m", started=f"2026-01-01T00:00:0{n}Z") for n in range(3)]
    cluster.pods(*olds).settle().pods(deferred("high", "n1", "300m", "100m", 100))
    for _ in range(after):
        if cluster._inbox:
            cluster.steps_of_the_machine(1)
    cluster.restart().later(5)
    ending = [name for name in ("v0", "v1", "v2") if cluster.pod(name)["metadata"].get("deletionTimestamp")]
    assert ending == ["v1", "v2"]


@pytest.mark.parametrize("after", range(6))
def test_a_scheduler_that_dies_anywhere_in_a_binding_binds_once(after: int) -> None:
    cluster = Cluster().nodes(node("n1", cpu="1")).settle().pods(pod("a", cpu="1"), pod("b", cpu="1"))
    for _ in range(after):
        if cluster._inbox:
            cluster.steps_of_the_machine(1)
    cluster.restart().later(15)
    assert [cluster.node_of("a"), cluster.node_of("b")].count("n1") == 1


def test_a_replaced_connection_loses_nothing() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m")).pods(pod("victim", node="n1", cpu="200m")).settle()
    cluster.hold = lambda request: request.verb == "delete"
    cluster.pods(deferred("high", "n1", "300m", "100m", 100)).settle()
    cluster.hold = lambda request: False
    cluster.reconnect()
    cluster.later(5)
    assert cluster.deleted() == ["victim"]
    cluster.gone("victim")
    cluster.pods(pod("new", cpu="1m")).later(5)
    assert cluster.noted("sch.park")[0]["cause"] and cluster.attempts("high") == 2


def test_what_repeats_itself_is_one_event_with_a_count() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1")).pods(pod("full", node="n1", cpu="1"), pod("a", cpu="1"), *others(3)).settle()
    for n in range(3):
        cluster.gone(f"other{n}")
        cluster.later(11)
    told = [each for each in cluster.events if each["reason"] == "FailedScheduling"]
    assert len(told) == 2, "one for the pod as it was created, one for the pod with its condition"
    assert told[1]["series"]["count"] == 2


def others(count: int) -> list[dict[str, Any]]:
    return [pod(f"other{n}", node="n1") for n in range(count)]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (Call(7, "proxy", b"\xc1"), Code.INVALID_ARGUMENT),
        (Call(7, "no-such", b""), Code.UNIMPLEMENTED),
        (Call(7, "proxy", encode_value({"path": "nowhere"})), Code.OK),
    ],
)
def test_nonsense_is_answered(call: Call, code: Code) -> None:
    (effect,) = Cluster().settle().send(call, "http/1")
    assert isinstance(effect, Send) and isinstance(effect.message, Reply)
    assert (effect.target, effect.message.id, effect.message.code) == ("http/1", 7, code)


def test_an_object_with_senseless_quantities_is_passed_over() -> None:
    cluster = Cluster().nodes(node("bad", cpu="a lot"), node("n1")).pods(pod("odd", cpu="some"), pod("a", cpu="1")).settle()
    assert cluster.node_of("a") == "n1"
    assert {fields["object"] for fields in cluster.noted("sch.malformed")} == {"bad", "default/odd"}


def test_metrics_bear_the_names_of_the_release_and_no_later_ones() -> None:
    for profile, own in (("lab", True), ("v1.37", False)):
        cluster = Cluster(profile).nodes(node("n1", cpu="300m"))
        cluster.pods(pod("victim", node="n1", cpu="200m"), deferred("high", "n1", "300m", "100m", 100)).settle()
        samples = cluster.metrics()
        assert samples['scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"}'] == 1
        assert samples["scheduler_preemption_attempts_total"] == 1
        assert samples["scheduler_preemption_victims_sum"] == 1
        assert ('scheduler_preemptions_total{operation="in_place_resize"}' in samples) is own
        assert not any("resize_pods" in name or "AssignedPodResize" in name or "_created" in name for name in samples)


def test_a_gate_that_opens_late_lets_in_whoever_knocked() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.pods(*(pod(f"v{n}", node="n1", cpu="100m", started=f"2026-01-01T00:00:0{n}Z") for n in range(2)))
    cluster.hold = lambda request: request.verb == "delete"
    cluster.pods(deferred("high", "n1", "300m", "100m", 100)).settle()
    cluster.gone("v0", "v1")
    cluster.settle()
    assert cluster.attempts("high") == 1
    cluster.release()
    cluster.settle()
    assert cluster.noted("sch.park")[-1]["cause"] == "DeferredPodScheduling"
