"""What a user sees of the scheduler, end to end before a small API server."""

from dataclasses import replace

import pytest
from scheduler_cluster import DEFERRED, DISABLED, INFEASIBLE, Cluster, budget, deferred, node, pod

from elbowroom.api.gates import profile_of


def test_a_pod_is_bound_and_told_so() -> None:
    cluster = Cluster().nodes(node("n1")).pods(pod("a", cpu="1")).settle()
    assert cluster.node_of("a") == "n1"
    assert cluster.told("a", "Scheduled") == ["Successfully assigned default/a to n1"]
    assert [step for step in cluster.steps if step != "S1"] == ["S2", "S3", "S4", "S11", "S12"]


def test_a_deferred_resize_evicts_the_one_lower_pod_in_its_way() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    ready = {"type": "Ready", "status": "True"}
    cluster.pods(
        pod("victim", node="n1", cpu="200m", priority=100, conditions=[ready]), deferred("high", "n1", "300m", "100m", 10000)
    ).settle()
    assert cluster.deleted() == ["victim"]
    assert [each["type"] for each in cluster.pod("victim")["status"]["conditions"]] == ["Ready", "DisruptionTarget"]
    condition = cluster.condition("victim", "DisruptionTarget")
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "True",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert cluster.told("victim", "Preempted") == ["Preempted by pod uid-high on node n1"]
    assert cluster.told("high", "FailedScheduling") == []
    assert "nominatedNodeName" not in cluster.pod("high")["status"]
    assert cluster.condition("high", "PodScheduled") == {}


def test_the_deletes_of_a_preemption_take_two_steps_of_the_machine() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m")).pods(pod("victim", node="n1", cpu="200m")).settle()
    cluster.pods(deferred("high", "n1", "300m", "100m", 10000))
    cluster.steps_of_the_machine(3)  # the pod is seen; its revision with the condition is seen, or the reply that it was written
    assert cluster.deleted() == ["victim"]


def test_a_resize_that_fits_is_parked_and_nothing_is_written() -> None:
    cluster = Cluster().nodes(node("n1", cpu="500m"))
    cluster.pods(pod("other", node="n1", cpu="100m"), deferred("parked", "n1", "300m", "100m", 10000)).settle()
    assert cluster.requests == []
    assert cluster.noted("sch.park")[0]["cause"] == "DeferredPodScheduling"
    assert cluster.attempts("parked") == 1


def test_a_parked_pod_is_counted_once_and_with_its_desire() -> None:
    cluster = Cluster().nodes(node("n1", cpu="500m"))
    cluster.pods(pod("other", node="n1", cpu="100m"), deferred("parked", "n1", "300m", "100m", 10000)).settle()
    cluster.pods(pod("first", cpu="100m")).settle().pods(pod("second", cpu="100m")).settle()
    assert cluster.node_of("first") == "n1"
    assert cluster.node_of("second") == ""
    assert cluster.condition("second", "PodScheduled")["message"] == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    assert cluster.told("second", "FailedScheduling") == [cluster.condition("second", "PodScheduled")["message"]]


def test_an_infeasible_desire_is_not_counted() -> None:
    cluster = Cluster().nodes(node("n1", cpu="500m"))
    cluster.pods(pod("wish", node="n1", cpu="500m", allocated="100m", conditions=[INFEASIBLE])).settle()
    cluster.pods(pod("new", cpu="400m")).settle()
    assert cluster.node_of("new") == "n1"


def test_the_gate_off_means_no_queue_for_resizes() -> None:
    cluster = Cluster(profile_of("v1.37")).nodes(node("n1", cpu="300m"))
    cluster.pods(pod("low", node="n1", cpu="200m"), deferred("high", "n1", "300m", "100m", 10000)).settle()
    assert cluster.requests == [] and cluster.noted("sch.enqueue") == []


def test_v137_reads_the_policy_of_the_node_and_wakes_when_it_is_lifted() -> None:
    cluster = Cluster("v1.37").nodes(node("n1", cpu="300m", disabled=["me"]))
    cluster.pods(pod("low", node="n1", cpu="200m"), deferred("high", "n1", "300m", "100m", 10000)).settle()
    assert cluster.deleted() == []
    cluster.put("nodes", node("n1", cpu="300m", disabled=["me", "you"]))
    cluster.put("nodes", node("n2", cpu="100m", disabled=["me"]))
    cluster.put("nodes", node("n2", cpu="100m", disabled=[]))
    cluster.settle()
    cluster.later(60)
    assert cluster.deleted() == []
    cluster.put("nodes", node("n1", cpu="300m", disabled=[]))
    cluster.settle()
    assert cluster.deleted() == ["low"]


def test_lab_goes_by_the_condition_alone() -> None:
    cluster = Cluster("lab").nodes(node("n1", cpu="300m", disabled=["me"]))
    held = pod("high", node="n1", cpu="300m", allocated="100m", priority=10000, conditions=[DEFERRED, DISABLED])
    cluster.pods(pod("low", node="n1", cpu="200m"), held).settle()
    assert cluster.noted("sch.enqueue") == []
    cluster.pods(deferred("high", "n1", "300m", "100m", 10000)).settle()
    assert cluster.deleted() == ["low"]


def test_lab_takes_a_pod_out_of_the_queue_when_the_condition_appears() -> None:
    cluster = Cluster("lab").nodes(node("n1", cpu="300m"))
    cluster.pods(pod("top", node="n1", cpu="200m", priority=99999), deferred("high", "n1", "300m", "100m", 10000)).settle()
    held = pod("high", node="n1", cpu="300m", allocated="100m", priority=10000, conditions=[DEFERRED, DISABLED])
    cluster.pods(held).settle()
    cluster.gone("top")
    cluster.settle()
    assert [fields["cause"] for fields in cluster.noted("sch.dequeue")] == ["no longer deferred"]
    assert cluster.attempts("high") == 1


@pytest.mark.parametrize(
    ("what", "wakes"),
    [
        ("a neighbour goes", True),
        ("a neighbour shrinks", True),
        ("the node grows", True),
        ("its own desire shrinks", True),
        ("its own desire grows", True),
        ("a pod elsewhere goes", False),
        ("a pod elsewhere shrinks", False),
        ("another node grows", False),
        ("a neighbour's label changes", False),
        ("its own label changes", False),
    ],
)
def test_only_what_matters_on_its_node_wakes_a_deferred_pod(what: str, wakes: bool) -> None:
    cluster = Cluster().nodes(node("n1", cpu="400m"), node("n2", cpu="400m"))
    cluster.pods(
        pod("near", node="n1", cpu="300m", priority=1000, allocated="300m"),
        pod("far", node="n2", cpu="300m", priority=1000, allocated="300m"),
        deferred("waits", "n1", "300m", "100m", 100),
    ).later(30)
    assert cluster.attempts("waits") == 1
    match what:
        case "a neighbour goes":
            cluster.gone("near")
        case "a neighbour shrinks":
            cluster.pods(pod("near", node="n1", cpu="250m", priority=1000, allocated="250m"))
        case "the node grows":
            cluster.nodes(node("n1", cpu="500m"))
        case "its own desire shrinks":
            cluster.pods(deferred("waits", "n1", "250m", "100m", 100))
        case "its own desire grows":
            cluster.pods(deferred("waits", "n1", "350m", "100m", 100))
        case "a pod elsewhere goes":
            cluster.gone("far")
        case "a pod elsewhere shrinks":
            cluster.pods(pod("far", node="n2", cpu="250m", priority=1000, allocated="250m"))
        case "another node grows":
            cluster.nodes(node("n2", cpu="500m"))
        case "a neighbour's label changes":
            cluster.pods(pod("near", node="n1", cpu="300m", priority=1000, allocated="300m", labels={"a": "b"}))
        case "its own label changes":
            cluster.pods(deferred("waits", "n1", "300m", "100m", 100, labels={"a": "b"}))
    cluster.settle()
    assert cluster.attempts("waits") == (2 if wakes else 1)


def test_a_desire_that_shrinks_while_the_kubelet_holds_on_frees_nothing_yet() -> None:
    cluster = Cluster().nodes(node("n1", cpu="400m"))
    cluster.pods(pod("near", node="n1", cpu="300m", priority=1000, allocated="300m"), deferred("waits", "n1", "300m", "100m", 100))
    cluster.settle().pods(pod("near", node="n1", cpu="100m", priority=1000, allocated="300m")).settle()
    assert cluster.attempts("waits") == 1
    cluster.pods(pod("near", node="n1", cpu="100m", priority=1000, allocated="100m")).settle()
    assert cluster.attempts("waits") == 2


@pytest.mark.parametrize("how", ["a neighbour's desire grows", "a pod is bound past the scheduler", "the node shrinks"])
def test_a_parked_pod_is_woken_when_its_room_is_taken(how: str) -> None:
    cluster = Cluster().nodes(node("n1", cpu="400m"))
    cluster.pods(
        pod("other", node="n1", cpu="100m", priority=20000, allocated="100m"),
        pod("victim", node="n1", cpu="100m", priority=1),
        deferred("parked", "n1", "200m", "100m", 100),
    ).settle()
    assert cluster.deleted() == []
    match how:
        case "a neighbour's desire grows":
            cluster.pods(pod("other", node="n1", cpu="200m", priority=20000, allocated="100m"))
        case "a pod is bound past the scheduler":
            cluster.pods(pod("intruder", node="n1", cpu="100m", priority=20000))
        case _:
            cluster.nodes(node("n1", cpu="300m"))
    cluster.settle()
    assert cluster.deleted() == ["victim"]


def test_all_victims_but_the_last_go_first_and_the_last_after_them() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    olds = [pod(f"v{n}", node="n1", cpu="50m", started=f"2026-01-01T00:00:0{n}Z") for n in range(4)]
    cluster.hold = lambda request: request.verb == "delete" and request.name != "v3"
    cluster.pods(*olds, deferred("high", "n1", "300m", "100m", 10000)).settle()
    assert cluster.condition("v3", "DisruptionTarget") == {}
    assert all(cluster.condition(name, "DisruptionTarget") for name in ("v0", "v1", "v2"))
    cluster.release()
    cluster.settle()
    assert cluster.deleted() == ["v0", "v1", "v2", "v3"]
    cluster.gone("v0", "v1", "v2", "v3")
    cluster.settle()
    assert cluster.noted("sch.park")[-1]["cause"] == "DeferredPodScheduling"


def test_the_preemptor_is_gated_while_its_victims_are_told() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.pods(*(pod(f"v{n}", node="n1", cpu="100m", started=f"2026-01-01T00:00:0{n}Z") for n in range(2)))
    cluster.hold = lambda request: request.verb == "delete"
    cluster.pods(deferred("high", "n1", "300m", "100m", 10000), pod("bystander", node="n1", cpu="0", priority=5)).settle()
    cluster.gone("bystander")
    cluster.later(5)
    assert cluster.attempts("high") == 1
    assert cluster.metrics()['scheduler_pending_pods{queue="gated"}'] == 1
    cluster.release()
    cluster.settle()
    assert cluster.deleted() == ["v0", "v1"]


def test_an_ordinary_preemptor_is_nominated_and_bound_when_the_victim_is_gone() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1")).pods(pod("low", node="n1", cpu="1"), pod("high", cpu="1", priority=10)).settle()
    assert cluster.pod("high")["status"]["nominatedNodeName"] == "n1"
    assert cluster.told("high", "FailedScheduling") == ["0/1 nodes are available: 1 Insufficient cpu."]
    cluster.pods(pod("late", cpu="500m", priority=5)).settle()
    cluster.gone("low")
    cluster.settle()
    assert (cluster.node_of("high"), cluster.node_of("late")) == ("n1", "")


def test_a_preemptor_waits_for_the_victim_on_its_nominated_node() -> None:
    cluster = Cluster().nodes(node("n1", cpu="500m"))
    cluster.pods(pod("victim", node="n1", cpu="400m", priority=1), pod("side", node="n1", cpu="50m", priority=99)).settle()
    cluster.pods(pod("new", cpu="400m", priority=50)).settle()
    cluster.gone("side")
    cluster.later(3)
    assert any(
        "preemption: not eligible due to a terminating pod on the nominated node." in each
        for each in cluster.told("new", "FailedScheduling")
    )
    assert cluster.deleted() == ["victim"]


def test_never_means_never_and_the_nomination_stays() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1"))
    cluster.pods(pod("low", node="n1", cpu="1"), pod("never", cpu="1", priority=10, preemptionPolicy="Never")).settle()
    assert cluster.deleted() == []
    assert cluster.condition("never", "PodScheduled")["message"].endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_a_lower_nomination_is_taken_back() -> None:
    cluster = Cluster().nodes(node("n1", cpu="4"))
    cluster.pods(*(pod(f"low-{n}", node="n1", cpu="1") for n in range(4)), pod("medium", cpu="3", priority=10)).settle()
    assert cluster.pod("medium")["status"]["nominatedNodeName"] == "n1"
    cluster.pods(pod("high", cpu="4", priority=20)).settle()
    assert cluster.pod("high")["status"]["nominatedNodeName"] == "n1"
    assert "nominatedNodeName" not in cluster.pod("medium")["status"]
    cluster.gone(*(f"low-{n}" for n in range(4)))
    cluster.later(15)
    assert (cluster.node_of("high"), cluster.node_of("medium")) == ("n1", "")


def test_the_room_of_a_deleted_preemptor_is_given_back() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1")).pods(pod("low", node="n1", cpu="1"), pod("high", cpu="1", priority=10)).settle()
    cluster.pods(pod("z", cpu="1")).settle()
    cluster.gone("low")
    cluster.remove("pods", "default/high") if "default/high" in cluster.documents["pods"] else None
    cluster.later(15)
    assert cluster.node_of("z") == "n1"


def test_a_restart_while_the_victim_ends_makes_no_second_call() -> None:
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.pods(
        pod("older", node="n1", cpu="100m", started="2026-01-01T00:00:01Z"),
        pod("younger", node="n1", cpu="100m", started="2026-01-01T00:00:09Z"),
        deferred("high", "n1", "200m", "100m", 10000),
    ).settle()
    assert cluster.deleted() == ["younger"]
    cluster.restart().settle()
    assert cluster.deleted() == ["younger"]
    cluster.nodes(node("n1", cpu="200m")).restart().settle()
    assert cluster.deleted() == ["younger", "older"]


def test_a_resize_taken_back_is_forgotten() -> None:
    cluster = Cluster("v1.37").nodes(node("n1", cpu="300m", disabled=["me"]))
    cluster.pods(pod("low", node="n1", cpu="200m"), deferred("high", "n1", "300m", "100m", 10000)).settle()
    cluster.pods(pod("high", node="n1", cpu="100m", allocated="100m", priority=10000)).nodes(node("n1", cpu="300m")).later(60)
    assert cluster.deleted() == []
    assert cluster.scheduler._queue.where("uid-high") == ""


def test_the_pod_limit_counts_the_resizing_pod_twice() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1", pods="2"))
    cluster.pods(deferred("resizing", "n1", "200m", "100m", 100), pod("victim", node="n1", cpu="100m")).settle()
    assert cluster.deleted() == ["victim"]


def test_cordon_and_taints_are_no_matter_to_a_resize() -> None:
    tainted = node("n1", cpu="300m", unschedulable=True, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    cluster = Cluster().nodes(tainted).pods(pod("low", node="n1", cpu="200m"), deferred("high", "n1", "300m", "100m", 100)).settle()
    assert cluster.deleted() == ["low"]


def test_a_budget_orders_victims_and_strict_never_breaks_one() -> None:
    def victims(policy: str, guarded_only: bool) -> list[str]:
        cluster = Cluster(replace(profile_of("lab"), pdb_policy=policy)).nodes(node("n1", cpu="500m"))
        cluster.put("poddisruptionbudgets", budget("guard", {"guarded": "yes"}, 0))
        cluster.pods(pod("guarded", node="n1", cpu="200m", labels={"guarded": "yes"}))
        cluster.pods(pod("free", node="n1", cpu="200m", priority=20000 if guarded_only else 50))
        return cluster.pods(deferred("high", "n1", "300m", "100m", 10000)).settle().deleted()

    assert victims("bestEffort", guarded_only=False) == ["free"]
    assert victims("bestEffort", guarded_only=True) == ["guarded"]
    assert victims("strict", guarded_only=False) == ["free"]
    assert victims("strict", guarded_only=True) == []


def test_no_nodes_is_said_in_its_own_words() -> None:
    cluster = Cluster().pods(pod("a", cpu="1")).settle()
    assert cluster.told("a", "FailedScheduling") == ["no nodes available to schedule pods"]
    cluster.nodes(node("n1")).later(12)
    assert cluster.node_of("a") == "n1"


def test_gates_hold_a_pod_back_without_a_word() -> None:
    cluster = Cluster().nodes(node("n1")).pods(pod("a", cpu="1", schedulingGates=[{"name": "wait"}])).later(30)
    assert cluster.requests == [] and cluster.attempts("a") == 0
    cluster.pods(pod("a", cpu="1")).settle()
    assert cluster.node_of("a") == "n1"


def test_a_pod_that_ended_holds_no_room() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1")).pods(pod("a", node="n1", cpu="1"), pod("b", cpu="1")).settle()
    assert cluster.node_of("b") == ""
    cluster.change("a", lambda document: document["status"].update(phase="Succeeded"))
    cluster.settle()
    assert cluster.node_of("b") == "n1"


@pytest.mark.parametrize("tracking", ["none", "memory", "specNodeName", "nominatedNodeName"])
def test_what_a_second_look_does_while_the_victim_ends_is_a_policy(tracking: str) -> None:
    cluster = Cluster(replace(profile_of("lab"), nomination_tracking=tracking)).nodes(node("n1", cpu="300m"))
    olds = [pod(f"v{n}", node="n1", cpu="100m", started=f"2026-01-01T00:00:0{n}Z") for n in range(2)]
    cluster.pods(*olds, deferred("high", "n1", "200m", "100m", 100)).settle()
    assert cluster.deleted() == ["v1"]
    assert ("nominatedNodeName" in cluster.pod("high")["status"]) is (tracking == "nominatedNodeName")
    cluster.nodes(node("n1", cpu="200m")).nodes(node("n1", cpu="210m")).later(30)
    assert cluster.deleted() == (["v1", "v0"] if tracking == "none" else ["v1"])
    cluster.change("high", lambda document: document["status"].update(conditions=[]))
    cluster.settle()
    assert "nominatedNodeName" not in cluster.pod("high")["status"]
