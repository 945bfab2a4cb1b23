"""What public bug reports about schedulers say must not happen, each as a fact about ours."""

import json

from scheduler_cluster import Cluster, budget, deferred, node, pod

HIGH, MID, LOW, TOP = 1000, 500, 10, 2000


def test_of_nodes_with_equal_violations_the_one_with_the_lesser_victim_is_chosen() -> None:
    """On n1 a low pod that its budget protects and a high one that none does would go, on n2 a protected one in the middle."""
    cluster = Cluster().nodes(node("n1", cpu="2"), node("n2", cpu="2"))
    cluster.put("poddisruptionbudgets", budget("kept", {"kept": "yes"}, 0))
    cluster.pods(
        pod("high", node="n1", cpu="1", priority=HIGH),
        pod("low", node="n1", cpu="1", priority=LOW, labels={"kept": "yes"}),
        pod("mid", node="n2", cpu="2", priority=MID, labels={"kept": "yes"}),
    ).settle()
    cluster.pods(pod("new", cpu="2", priority=TOP)).settle()
    assert cluster.deleted() == ["mid"]


def test_a_pod_that_its_budget_lists_as_disrupted_takes_nothing_from_it() -> None:
    """The budget allows one more; of two equal pods the younger goes, whichever of them is on its way out already."""
    for disrupted in ("old", "young"):
        cluster = Cluster().nodes(node("n1", cpu="300m"))
        cluster.put("poddisruptionbudgets", budget("loose", {"app": "x"}, 1, disrupted=[disrupted]))
        cluster.pods(
            pod("old", node="n1", cpu="100m", labels={"app": "x"}, started="2026-01-01T00:00:01Z"),
            pod("young", node="n1", cpu="100m", labels={"app": "x"}, started="2026-01-01T00:00:09Z"),
            deferred("high", "n1", "200m", "100m", HIGH),
        ).settle()
        assert cluster.deleted() == ["young"], disrupted
        assert cluster.noted("sch.plan")[0]["violations"] == 0, disrupted


def test_a_victims_mark_is_its_condition_and_nothing_else() -> None:
    """A mark that said more, such as a class, would be refused for victims of which that is not true."""
    cluster = Cluster().nodes(node("n1", cpu="300m"))
    cluster.pods(pod("low", node="n1", cpu="200m", status={"phase": "Running", "qosClass": "Burstable"}))
    cluster.pods(deferred("high", "n1", "300m", "100m", HIGH)).settle()
    (mark,) = [request for request in cluster.requests if request.verb == "patch" and request.name == "low"]
    assert sorted(json.loads(mark.body)["status"]) == ["$setElementOrder/conditions", "conditions"]
    assert cluster.deleted() == ["low"]


def test_a_node_takes_as_many_pods_as_it_says_and_of_what_it_does_not_name_none() -> None:
    cluster = Cluster().nodes(node("n1", pods="2")).pods(pod("a"), pod("b")).settle()
    assert (cluster.node_of("a"), cluster.node_of("b")) == ("n1", "n1")
    cluster.pods(pod("c")).settle()
    assert cluster.node_of("c") == ""
    cluster = Cluster().nodes(node("n1")).pods(pod("d", requests={"example.com/x": "1"})).settle()
    assert cluster.node_of("d") == ""
