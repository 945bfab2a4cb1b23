"""PodGroups: who goes together, who preempts nobody, and that a resize is a matter of its pod alone (SC-25, SC-110, SC-125,
SC-129)."""

from typing import Any

import pytest
from scheduler_cluster import Cluster, budget, deferred, node, pod

from elbowroom.api.gates import profile_of

Document = dict[str, Any]
MEMBER: Document = {"schedulingGroup": {"podGroupName": "team"}}


def group(name: str = "team", mode: str = "all", priority: int = 0) -> Document:
    spec = {"schedulingPolicy": {"basic": {}}, "priority": priority, **({"disruptionMode": {mode: {}}} if mode else {})}
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}


def cluster_of(profile: str = "v1.37", gate: bool = True) -> Cluster:
    gates = {"GenericWorkload": gate, "InPlacePodVerticalScalingSchedulerPreemption": True}
    return Cluster(profile_of(profile, gates)).nodes(node("n1", cpu="300m"), node("n2", cpu="300m"))


def team(**more: Any) -> list[Document]:
    """One member on each node."""
    return [pod(f"team-{n}", node=f"n{n}", cpu="100m", **MEMBER, **more) for n in (1, 2)]


@pytest.mark.parametrize(
    ("mode", "gate", "victims"),
    [("all", True, ["team-1", "team-2"]), ("single", True, ["team-1"]), ("", True, ["team-1"]), ("all", False, ["team-1"])],
)
def test_with_mode_all_every_member_goes_on_whatever_node(mode: str, gate: bool, victims: list[str]) -> None:
    cluster = cluster_of(gate=gate)
    cluster.put("podgroups", group(mode=mode))
    cluster.pods(*team(), deferred("high", "n1", "300m", "100m", 1000)).settle()
    assert sorted(cluster.deleted()) == victims
    assert set(cluster.told("team-1", "Preempted")) == {"Preempted by pod uid-high on node n1"}


def test_pods_of_a_group_that_is_not_there_go_one_by_one() -> None:
    cluster = cluster_of().pods(*team(), deferred("high", "n1", "300m", "100m", 1000)).settle()
    assert cluster.deleted() == ["team-1"]


def test_no_member_goes_where_the_group_or_any_member_is_as_important() -> None:
    for priority, member in ((1000, 0), (0, 1000)):
        cluster = cluster_of()
        cluster.put("podgroups", group(priority=priority))
        first, second = team()
        second["spec"]["priority"] = member
        cluster.pods(first, second, deferred("high", "n1", "300m", "100m", 1000)).settle()
        assert cluster.deleted() == []


def test_a_single_pod_goes_before_a_group_of_its_priority() -> None:
    cluster = cluster_of()
    cluster.put("podgroups", group())
    cluster.pods(*team(started="2026-01-01T00:00:09Z"), pod("single", node="n1", cpu="100m", started="2026-01-01T00:00:01Z"))
    cluster.pods(deferred("high", "n1", "200m", "100m", 1000)).settle()
    assert cluster.deleted() == ["single"], "though it has run for longer"


def test_the_smaller_of_two_groups_goes() -> None:
    cluster = cluster_of()
    cluster.put("podgroups", group())
    cluster.put("podgroups", group("pair"))
    lone: Document = {"schedulingGroup": {"podGroupName": "pair"}}
    cluster.pods(*team(), pod("pair-1", node="n1", cpu="100m", started="2026-01-01T00:00:01Z", **lone))
    cluster.pods(deferred("high", "n1", "200m", "100m", 1000)).settle()
    assert cluster.deleted() == ["pair-1"]


def test_a_budget_of_a_far_member_protects_the_whole_group() -> None:
    cluster = cluster_of()
    cluster.put("podgroups", group())
    cluster.put("poddisruptionbudgets", budget("guard", {"far": "yes"}, 0))
    first, second = team()
    second["metadata"]["labels"] = {"far": "yes"}
    cluster.pods(first, second, pod("single", node="n1", cpu="100m", priority=5), deferred("high", "n1", "200m", "100m", 1000))
    cluster.settle()
    assert cluster.deleted() == ["single"], "of higher priority, but under no budget"


def test_a_pod_of_a_group_preempts_nobody_for_its_placement() -> None:
    for gate, deleted in ((True, []), (False, ["low"])):
        cluster = cluster_of(gate=gate).pods(pod("low", node="n1", cpu="300m"), pod("other", node="n2", cpu="300m", priority=99))
        cluster.pods(pod("new", cpu="200m", priority=50, **MEMBER)).settle()
        assert cluster.deleted() == deleted
        if gate:
            assert cluster.condition("new", "PodScheduled")["message"].endswith(
                "preemption: not eligible due to workload aware preemption enabled"
            )


def test_a_deferred_resize_of_a_member_preempts_like_any_other() -> None:
    cluster = cluster_of()
    cluster.put("podgroups", group("own"))
    member = deferred("high", "n1", "300m", "100m", 1000, schedulingGroup={"podGroupName": "own"})
    cluster.pods(pod("low", node="n1", cpu="200m"), member).settle()
    assert cluster.deleted() == ["low"]


def test_the_history_says_who_was_taken_along() -> None:
    cluster = cluster_of()
    cluster.put("podgroups", group())
    cluster.pods(*team(), deferred("high", "n1", "300m", "100m", 1000)).settle()
    (plan,) = cluster.noted("sch.plan")
    assert [(each["pod"], each["node"], each["group"]) for each in plan["victims"]] == [
        ("default/team-1", "n1", "default/team"),
        ("default/team-2", "n2", "default/team"),
    ]


def test_a_server_that_knows_no_groups_keeps_nobody_waiting() -> None:
    cluster = Cluster(profile_of("v1.37", {"GenericWorkload": True}), unserved=("podgroups",)).nodes(node("n1"))
    cluster.pods(pod("new", cpu="100m", **MEMBER)).later(3)
    assert cluster.node_of("new") == "n1"
