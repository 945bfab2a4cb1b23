"""Gangs, and what it is to wait for leave to be bound (SC-61, SC-122)."""

import random
from typing import Any

import pytest
from scheduler_cluster import Cluster, node, pod
from scheduler_worlds import Nobody, info_of, plugins_of, world_of

from elbowroom.api.gates import profile_of
from elbowroom.scheduler.cycle import Cycle, Failed, NotPermitted
from elbowroom.scheduler.framework import Framework, Plugin
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.plugins.gang import GangScheduling
from elbowroom.scheduler.podinfo import PodInfo
from elbowroom.scheduler.status import Code, Status
from elbowroom.scheduler.waiting import go_duration

Document = dict[str, Any]
MEMBER: Document = {"schedulingGroup": {"podGroupName": "team"}}


def gang(minimum: int = 2, name: str = "team") -> Document:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "disruptionMode": {"single": {}}, "priority": 0}
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}


def cluster_of(*nodes: Document, gates: bool = True, more: dict[str, bool] | None = None) -> Cluster:
    chosen = {"GenericWorkload": gates, "GangScheduling": gates, **(more or {})}
    return Cluster(profile_of("v1.37", chosen)).nodes(*(nodes or (node("n1", cpu="1"), node("n2", cpu="1"))))


def member(name: str, cpu: str = "600m", **more: Any) -> Document:
    return pod(name, cpu=cpu, **MEMBER, **more)


def bindings(cluster: Cluster) -> int:
    return sum(1 for request in cluster.requests if request.subresource == "binding")


def test_a_pod_of_a_gang_is_not_tried_before_its_group_is_there() -> None:
    cluster = cluster_of().pods(member("a")).settle()
    assert cluster.attempts("a") == 0 and cluster.metrics()['scheduler_pending_pods{queue="gated"}'] == 1
    cluster.put("podgroups", gang(minimum=1))
    cluster.settle()
    assert cluster.node_of("a")


def test_a_pod_of_a_gang_is_not_tried_before_enough_of_it_are_there() -> None:
    cluster = cluster_of()
    cluster.put("podgroups", gang())
    cluster.pods(member("a")).settle()
    assert cluster.attempts("a") == 0
    cluster.pods(member("b")).settle()
    assert cluster.node_of("a") and cluster.node_of("b")


def test_a_smaller_number_lets_in_who_is_there() -> None:
    cluster = cluster_of()
    cluster.put("podgroups", gang())
    cluster.pods(member("a")).settle()
    cluster.put("podgroups", gang(minimum=1))
    cluster.settle()
    assert cluster.node_of("a")


def test_without_the_gates_pods_go_one_by_one() -> None:
    cluster = cluster_of(gates=False).pods(member("a")).settle()
    assert cluster.node_of("a")


def test_none_is_bound_before_there_is_room_for_enough() -> None:
    cluster = cluster_of(node("n1", cpu="1"))
    cluster.put("podgroups", gang())
    cluster.pods(member("a"), member("b")).settle()
    assert bindings(cluster) == 0
    (waiting,) = cluster.noted("sch.wait")
    assert waiting["node"] == "n1" and waiting["plugins"] == ["GangScheduling"]
    assert cluster.pod(waiting["pod"].partition("/")[2])["status"]["nominatedNodeName"] == "n1", "told before it is bound"
    assert cluster.metrics()['scheduler_cache_size{type="assumed_pods"}'] == 1
    cluster.nodes(node("n2", cpu="1")).later(2)
    assert {cluster.node_of("a"), cluster.node_of("b")} == {"n1", "n2"}
    assert cluster.metrics()['scheduler_permit_wait_duration_seconds_count{result="Success"}'] == 1


def test_without_its_gate_nothing_is_told_before() -> None:
    cluster = cluster_of(node("n1", cpu="1"), more={"NominatedNodeNameForExpectation": False})
    cluster.put("podgroups", gang())
    cluster.pods(member("a"), member("b")).settle()
    waiting = cluster.noted("sch.wait")[0]["pod"].partition("/")[2]
    assert "nominatedNodeName" not in cluster.pod(waiting)["status"]


def test_who_waits_too_long_gives_its_node_back() -> None:
    cluster = cluster_of(node("n1", cpu="1"))
    cluster.put("podgroups", gang())
    cluster.pods(member("a"), member("b")).settle()
    waiting = cluster.noted("sch.wait")[0]["pod"].partition("/")[2]
    cluster.later(301)
    said = "0/1 nodes are available: 1 rejected due to timeout after waiting 5m0s at plugin GangScheduling."
    assert said in cluster.told(waiting, "FailedScheduling")
    assert cluster.metrics()['scheduler_permit_wait_duration_seconds_count{result="Unschedulable"}'] == 1
    assert bindings(cluster) == 0
    assert len(cluster.noted("sch.wait")) > 1, "it is tried again"


def test_a_waiting_pod_that_is_preempted_loses_its_node_and_nothing_else() -> None:
    cluster = cluster_of(node("n1", cpu="1"))
    cluster.put("podgroups", gang())
    cluster.pods(member("a"), member("b")).settle()
    waiting = cluster.noted("sch.wait")[0]["pod"].partition("/")[2]
    cluster.pods(pod("high", cpu="1", priority=1000)).later(3)
    assert cluster.deleted() == [] and cluster.node_of("high") == "n1"
    assert cluster.told(waiting, "Preempted") == ["Preempted by pod uid-high on node n1 (in kube-scheduler memory)."]
    assert "waiting on permit for pod: preempted" in cluster.told(waiting, "FailedScheduling")
    conditions = [each["type"] for each in cluster.pod(waiting)["status"]["conditions"]]
    assert "DisruptionTarget" not in conditions
    assert "nominatedNodeName" not in cluster.pod(waiting)["status"]


@pytest.mark.parametrize("bound", [False, True], ids=["it is deleted", "somebody else binds it"])
def test_who_goes_while_it_waits_is_not_bound(bound: bool) -> None:
    cluster = cluster_of(node("n1", cpu="1"))
    cluster.put("podgroups", gang())
    cluster.pods(member("a"), member("b")).settle()
    waiting = cluster.noted("sch.wait")[0]["pod"].partition("/")[2]
    if bound:
        cluster.change(waiting, lambda document: document["spec"].update(nodeName="n1"))
    else:
        cluster.gone(waiting)
    cluster.nodes(node("n2", cpu="1")).later(400)
    assert bindings(cluster) == (1 if bound else 0), "of the other one, whose gang is whole only if the first is there"


def test_a_member_whose_group_vanished_meanwhile_fails() -> None:
    info = info_of(member("a"))
    said = GangScheduling(Nobody()).permit(info, NodeInfo("n1"))
    text = 'failed to get podGroup default/team: podgroup.scheduling.k8s.io "team" not found'
    assert said == Status(Code.ERROR, (text,), "GangScheduling")
    assert GangScheduling(Nobody()).permit(info.at("n1"), NodeInfo("n1")) is None, "a resize is a matter of its pod alone"


class Refusing(Plugin):
    """Has something against every node at the last."""

    name = "Refusing"

    def __init__(self, code: Code) -> None:
        self._said = Status(code, ("not this one",), self.name)

    def permit(self, info: PodInfo, node: NodeInfo) -> Status:
        return self._said


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (Code.UNSCHEDULABLE, "0/1 nodes are available: 1 not this one."),
        (Code.ERROR, 'running Permit plugin "Refusing": not this one'),
    ],
)
def test_who_is_refused_at_the_last_is_told_so(code: Code, expected: str) -> None:
    world = world_of([node("n1"), node("n2")], [])
    decision = Cycle(Framework.of([*plugins_of(), Refusing(code)]), random.Random(1)).attempt(info_of(pod("a")), world)
    assert isinstance(decision, NotPermitted | Failed)
    assert (decision.diagnosis.message() if isinstance(decision, NotPermitted) else decision.message) == expected


@pytest.mark.parametrize(
    ("seconds", "text"), [(300, "5m0s"), (30, "30s"), (90, "1m30s"), (3600, "1h0m0s"), (3725, "1h2m5s"), (0, "0s")]
)
def test_durations_are_written_as_go_does(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text
