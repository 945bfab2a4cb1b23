"""How victims are told to go: in which order, with which words, and who is not told (SC-116 to SC-122)."""

from scheduler_cluster import START, Cluster, Verdict, deferred, node, pod

from elbowroom.machine import Instant, seconds
from elbowroom.wire import ApiRequest, ApiResponse

TOLD = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "default-scheduler: preempting to accommodate a higher priority pod",
}


def full(*names: str, cpu: str = "100m") -> Cluster:
    """A node that is full of these pods of 100m and a high one of 100m, and nothing under way."""
    cluster = Cluster().nodes(node("n1", cpu=f"{100 * len(names) + 100}m"))
    started = (f"2026-01-01T00:00:{number:02}Z" for number in range(len(names)))
    cluster.pods(*(pod(name, node="n1", cpu=cpu, started=when) for name, when in zip(names, started, strict=True)))
    return cluster.settle()


def ask(cluster: Cluster, cpu: str) -> Cluster:
    return cluster.pods(deferred("high", "n1", cpu, "100m", 10000)).settle()


def verbs(cluster: Cluster) -> list[tuple[str, str]]:
    return [(each.verb, each.name) for each in cluster.requests if each.resource == "pods"]


def test_a_victim_is_marked_and_then_deleted_without_options() -> None:
    cluster = ask(full("low"), "200m")
    assert verbs(cluster) == [("patch", "low"), ("delete", "low")]
    (deletion,) = [each for each in cluster.requests if each.verb == "delete"]
    assert (
        deletion.body in (b"", b"{}") and "gracePeriodSeconds" not in deletion.query and "preconditions" not in str(deletion.body)
    )
    condition = cluster.condition("low", "DisruptionTarget")
    assert {key: condition[key] for key in TOLD} == TOLD
    assert condition["observedGeneration"] == 1
    (event,) = [each for each in cluster.events if each["reason"] == "Preempted"]
    assert (event["type"], event["action"]) == ("Normal", "Preempting")
    assert (event["involvedObject"]["name"], event["related"]["name"]) == ("low", "high")
    assert event["message"] == "Preempted by pod uid-high on node n1"


def test_a_victim_that_bears_the_condition_is_only_deleted() -> None:
    cluster = Cluster().nodes(node("n1", cpu="200m")).pods(pod("low", node="n1", cpu="100m", conditions=[TOLD])).settle()
    assert verbs(ask(cluster, "200m")) == [("delete", "low")]


def test_a_victim_that_is_ending_gets_no_call_and_alone_makes_no_round() -> None:
    cluster = full("old", "young")
    cluster.change("young", lambda document: document["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    ask(cluster.settle(), "200m")
    assert verbs(cluster) == []
    assert cluster.metrics()["scheduler_preemption_victims_count"] == 0
    ask(cluster, "300m")
    assert cluster.deleted() == ["old"]
    assert cluster.metrics()["scheduler_preemption_victims_sum"] == 2, "all victims count, those that were ending too"


def test_one_that_is_ending_takes_no_nomination_from_anybody() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1"))
    cluster.pods(pod("low", node="n1", cpu="1"), pod("medium", cpu="1", priority=10)).settle()
    assert cluster.pod("medium")["status"]["nominatedNodeName"] == "n1"
    cluster.pods(pod("high", cpu="1", priority=20)).settle()
    assert cluster.deleted() == ["low"], "it is ending already: nothing to do for the second preemptor"
    assert cluster.pod("medium")["status"]["nominatedNodeName"] == "n1"


def test_a_victim_that_went_by_itself_is_told_nothing() -> None:
    def vanished(verb: str) -> Cluster:
        cluster = full("low")

        def judge(request: ApiRequest) -> Verdict:
            return ApiResponse(404, b"{}") if (request.verb, request.name) == (verb, "low") else None

        cluster.judge = judge
        return ask(cluster, "200m")

    for verb, calls in (("patch", [("patch", "low")]), ("delete", [("patch", "low"), ("delete", "low")])):
        cluster = vanished(verb)
        assert verbs(cluster) == calls
        assert cluster.told("low", "Preempted") == []
        assert cluster.metrics()['scheduler_preemption_goroutines_execution_total{result="success"}'] == 1


def test_the_last_victim_is_spared_and_the_preemptor_tried_at_once_if_another_could_not_be_told() -> None:
    cluster = full("v0", "v1", "v2")

    def refused(request: ApiRequest) -> Verdict:
        return ApiResponse(403, b'{"message": "no"}') if (request.verb, request.name) == ("delete", "v0") else None

    cluster.judge = refused
    cluster.pods(deferred("high", "n1", "400m", "100m", 10000))
    cluster.steps_of_the_machine(6)
    assert "v2" not in cluster.deleted()
    cluster.judge = lambda request: None
    cluster.settle()
    assert cluster.noted("sch.wake")[0]["cause"] == "ForceActivate"
    assert cluster.metrics()['scheduler_preemption_goroutines_execution_total{result="error"}'] == 1
    assert sorted(set(cluster.deleted())) == ["v0", "v1", "v2"]


def test_the_victims_are_told_side_by_side_and_the_least_important_last() -> None:
    cluster = full("v0", "v1", "v2")
    cluster.hold = lambda request: request.verb == "patch"
    ask(cluster, "400m")
    held = [call for call in cluster._held]
    assert len(held) == 2
    cluster.release()
    cluster.settle()
    assert [name for verb, name in verbs(cluster) if verb == "patch"] == ["v0", "v1", "v2"]


def test_the_gate_opens_as_soon_as_the_last_victim_is_seen_to_end() -> None:
    cluster = full("low")
    cluster.hold = lambda request: request.verb == "delete"
    ask(cluster, "200m")
    is_preempting = cluster.scheduler.is_preempting
    assert is_preempting("uid-high")
    cluster.change("low", lambda document: document["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    cluster.settle()
    assert not is_preempting("uid-high"), "though no reply to the deletion has come"
    cluster.gone("low")
    cluster.settle()
    assert cluster.attempts("high") == 2


def test_the_preemptor_itself_and_its_equals_are_never_victims() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.pods(pod("equal", node="n1", cpu="100m", priority=7), pod("above", node="n1", cpu="100m", priority=8))
    cluster.pods(deferred("wants", "n1", "300m", "100m", 7)).later(30)
    assert cluster.deleted() == []
    assert cluster.scheduler._queue.where("uid-wants") == "unschedulable"


def test_of_two_resizes_the_second_sees_what_the_first_asks_for_and_who_is_ending() -> None:
    cluster = Cluster().nodes(node("n1", cpu="500m"))
    lows = [pod(f"low{n}", node="n1", cpu="100m", started=f"2026-01-01T00:00:0{n}Z") for n in range(3)]
    cluster.pods(*lows, deferred("first", "n1", "200m", "100m", 1000), deferred("second", "n1", "200m", "100m", 500)).settle()
    assert sorted(cluster.deleted()) == ["low1", "low2"], "two of three, as the desires together require"
    cluster.gone("low1", "low2")
    cluster.later(30)
    assert sorted(cluster.deleted()) == ["low1", "low2"]
    assert {each["cause"] for each in cluster.noted("sch.park")[-2:]} == {"DeferredPodScheduling"}


def test_a_deferred_neighbour_of_lower_priority_may_have_to_go() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.pods(deferred("low", "n1", "200m", "100m", 1), deferred("high", "n1", "200m", "100m", 10)).settle()
    assert cluster.deleted() == ["low"]


def test_a_higher_new_pod_takes_the_room_of_a_resize_by_preemption_alone() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.pods(pod("low", node="n1", cpu="100m", priority=1), deferred("resizes", "n1", "200m", "100m", 10)).settle()
    assert cluster.noted("sch.park")[-1]["cause"] == "DeferredPodScheduling", "it fits beside low"
    cluster.pods(pod("higher", cpu="100m", priority=11)).settle().pods(pod("equal", cpu="100m", priority=10)).settle()
    assert cluster.node_of("higher") == "" and cluster.deleted() == ["low"]
    cluster.gone("low")
    cluster.later(20)
    assert (cluster.node_of("higher"), cluster.node_of("equal")) == ("n1", "")


def test_what_the_scheduler_wrote_about_a_resize_is_nothing() -> None:
    cluster = ask(full("low"), "200m")
    cluster.gone("low")
    cluster.later(60)
    assert [each for each in cluster.requests if each.name == "high"] == []
    assert [each for each in cluster.events if each["involvedObject"]["name"] == "high"] == []
    assert cluster.now >= Instant(START + seconds(60))
