"""Node health, eviction by taints, and pods whose node is gone."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from controllers_cluster import BEGIN, Cluster, Document
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.api.clock import as_time, parse_time
from elbowroom.api.objects import Node, NodeCondition, NodeSpec, NodeStatus, ObjectMeta, Taint, Toleration
from elbowroom.controllers import nodelifecycle
from elbowroom.controllers.garbage import Garbage
from elbowroom.controllers.nodelifecycle import eviction_intervals, wanted_taints
from elbowroom.controllers.tainteviction import stay_seconds, tolerates
from elbowroom.machine import Instant, seconds

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
TOLERANT = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in (NOT_READY, UNREACHABLE)]


def taints(node: Document) -> list[str]:
    return sorted(f"{t['key']}:{t['effect']}" for t in node["spec"].get("taints", []))


def condition(document: Document, kind: str) -> tuple[str, str, str]:
    found = next(c for c in document["status"]["conditions"] if c["type"] == kind)
    return found["status"], found.get("reason", ""), found.get("message", "")


def two_nodes(*controllers: str) -> Cluster:
    """n1 and n2 are ready and renew their leases; ``live`` keeps n2 alive."""
    cluster = Cluster("nodelifecycle", *controllers)
    for name in ("n1", "n2"):
        cluster.node(name)
        cluster.renew(name)
    cluster.settle()
    return cluster


def live(cluster: Cluster, amount: float, *names: str) -> None:
    for _ in range(round(amount / 5)):
        cluster.renew(*(names or ("n2",)))
        cluster.wait(5)


# ---------------------------------------------------------------- health


def test_a_node_is_welcomed_and_missed() -> None:
    cluster = two_nodes()
    cluster.wait(6)
    assert "Node n1 event: Registered Node n1 in Controller" in cluster.events("RegisteredNode")
    cluster.api.delete("nodes", "n1")
    cluster.wait(1)
    assert cluster.events("RemovingNode") == ["Node n1 event: Removing Node n1 from Controller"]


def test_a_silent_node_becomes_unknown_after_fifty_seconds_and_its_pods_unready() -> None:
    cluster = two_nodes()
    cluster.pod("a", "n1", ready=True)
    live(cluster, 50)
    assert condition(cluster.get("nodes", "n1"), "Ready")[0] == "True"
    live(cluster, 10)
    node = cluster.get("nodes", "n1")
    assert condition(node, "Ready") == ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    assert condition(node, "MemoryPressure") == ("Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")
    assert taints(node) == [f"{UNREACHABLE}:NoExecute", f"{UNREACHABLE}:NoSchedule"]
    assert all("timeAdded" in t for t in node["spec"]["taints"])
    assert condition(cluster.get("pods", "a"), "Ready")[0] == "False"
    assert cluster.events("NodeNotReady") == ["Node n1 status is now: NodeNotReady", "Node is not ready"]
    assert condition(cluster.get("nodes", "n2"), "Ready")[0] == "True"


def test_a_renewed_lease_keeps_a_node_alive_without_status() -> None:
    cluster = two_nodes()
    live(cluster, 200, "n1", "n2")
    assert condition(cluster.get("nodes", "n1"), "Ready")[0] == "True"


def test_a_node_that_comes_back_loses_its_taints() -> None:
    cluster = two_nodes()
    cluster.api.change("nodes", "n1", {"spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]}})
    live(cluster, 60)
    assert len(taints(cluster.get("nodes", "n1"))) == 3
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": as_time(cluster.now)}
    cluster.api.change("nodes", "n1", {"status": {"conditions": [ready]}})
    cluster.settle()
    assert taints(cluster.get("nodes", "n1")) == ["mine:NoSchedule"]


def test_a_node_that_never_spoke_has_a_minute() -> None:
    cluster = two_nodes()
    cluster.node("n3", ready="")
    live(cluster, 60, "n1", "n2")
    assert cluster.get("nodes", "n3")["status"]["conditions"] == []
    live(cluster, 10, "n1", "n2")
    assert condition(cluster.get("nodes", "n3"), "Ready")[1] == "NodeStatusNeverUpdated"


def test_a_kubelet_that_says_not_ready_is_tainted_so() -> None:
    cluster = two_nodes()
    cluster.api.change("nodes", "n1", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    cluster.settle()
    assert taints(cluster.get("nodes", "n1")) == [f"{NOT_READY}:NoExecute", f"{NOT_READY}:NoSchedule"]


def test_a_pod_bound_to_a_silent_node_is_unready_at_once() -> None:
    cluster = two_nodes()
    live(cluster, 60)
    cluster.pod("late", "n1", ready=True)
    cluster.settle()
    assert condition(cluster.get("pods", "late"), "Ready")[0] == "False"


def test_nobody_is_driven_out_while_no_node_is_healthy() -> None:
    cluster = two_nodes("tainteviction")
    cluster.pod("a", "n1", ready=True)
    cluster.wait(120)
    for name in ("n1", "n2"):
        assert taints(cluster.get("nodes", name)) == [f"{UNREACHABLE}:NoSchedule"]
    assert "deletionTimestamp" not in cluster.get("pods", "a")["metadata"]


def test_silence_proves_nothing_after_the_controllers_were_away() -> None:
    cluster = two_nodes()
    live(cluster, 30, "n1", "n2")
    cluster.now = Instant(cluster.now + seconds(300))  # stopped
    cluster.wait(20)
    assert condition(cluster.get("nodes", "n1"), "Ready")[0] == "True"
    live(cluster, 60)
    assert condition(cluster.get("nodes", "n1"), "Ready")[0] == "Unknown"


def test_silence_proves_nothing_after_the_api_server_was_away() -> None:
    cluster = two_nodes()
    cluster.wait(45)
    cluster.reconnect()
    cluster.wait(20)
    assert condition(cluster.get("nodes", "n1"), "Ready")[0] == "True"


def test_nodes_of_a_zone_are_emptied_one_in_ten_seconds() -> None:
    cluster = Cluster("nodelifecycle")
    names = [f"n{i}" for i in range(9)]
    for name in names:
        cluster.node(name)
    cluster.renew(*names)
    for name in names[:3]:
        cluster.api.change("nodes", name, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    cluster.settle()

    def emptied() -> int:
        return sum(1 for n in names if f"{NOT_READY}:NoExecute" in taints(cluster.get("nodes", n)))

    counts = [emptied()]
    for _ in range(3):
        live(cluster, 10, *names)
        counts.append(emptied())
    assert counts == [1, 2, 3, 3]
    assert all(f"{NOT_READY}:NoSchedule" in taints(cluster.get("nodes", n)) for n in names[:3])


def a_node(name: str = "n", ready: str | None = "True", zone: str = "", unschedulable: bool = False, *held: Taint) -> Node:
    conditions = [] if ready is None else [NodeCondition(type="Ready", status=ready)]
    return Node(
        metadata=ObjectMeta(name=name, labels={"topology.kubernetes.io/zone": zone}),
        spec=NodeSpec(unschedulable=unschedulable, taints=list(held)),
        status=NodeStatus(conditions=conditions),
    )


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        ({"a": [True, False]}, {"a": 10}),
        ({"a": [True, True], "b": [False, False]}, {"a": 10, "b": 10}),
        ({"a": [True, False, False, False]}, {"a": None}),
        ({"a": [True] * 20 + [False] * 40}, {"a": 100}),
    ],
)
def test_how_fast_a_zone_is_emptied(zones: dict[str, list[bool]], expected: dict[str, int | None]) -> None:
    nodes = [(a_node(f"{z}{i}", zone=z), up) for z, states in zones.items() for i, up in enumerate(states)]
    found = eviction_intervals(nodes)
    assert found is not None
    assert {zone.removeprefix("/"): interval and interval // 10**9 for zone, interval in found.items()} == expected


def test_with_no_node_up_nobody_is_driven_out() -> None:
    assert eviction_intervals([(a_node("n1"), False), (a_node("n2", zone="b"), False)]) is None


@given(
    st.sampled_from([None, "True", "False", "Unknown"]),
    st.booleans(),
    st.booleans(),
    st.lists(
        st.builds(
            Taint,
            key=st.sampled_from([NOT_READY, UNREACHABLE, "node.kubernetes.io/unschedulable", "mine"]),
            effect=st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
        ),
        max_size=4,
        unique_by=lambda t: (t.key, t.effect),
    ),
)
def test_taints_are_settled_in_one_step_and_others_stay(ready: str | None, cordoned: bool, evict: bool, held: list[Taint]) -> None:
    once = wanted_taints(a_node("n", ready, "", cordoned, *held), evict=evict, now=BEGIN)
    assert wanted_taints(a_node("n", ready, "", cordoned, *once), evict=evict, now=BEGIN) == once
    assert [t for t in once if t.key == "mine"] == [t for t in held if t.key == "mine"]
    keys = {(t.key, t.effect) for t in once}
    assert ((NOT_READY, "NoSchedule") in keys) == (ready == "False")
    assert ((UNREACHABLE, "NoExecute") in keys) == (ready == "Unknown" and evict)


# ---------------------------------------------------------------- eviction by taints


@pytest.mark.parametrize(
    ("toleration", "taint", "covered"),
    [
        ({"operator": "Exists"}, {"key": "a", "effect": "NoExecute"}, True),
        ({"key": "a", "operator": "Exists"}, {"key": "a", "value": "x", "effect": "NoExecute"}, True),
        ({"key": "a", "value": "x"}, {"key": "a", "value": "x", "effect": "NoExecute"}, True),
        ({"key": "a", "value": "y"}, {"key": "a", "value": "x", "effect": "NoExecute"}, False),
        ({"key": "b", "operator": "Exists"}, {"key": "a", "effect": "NoExecute"}, False),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}, False),
        ({"key": "a", "operator": "Gt", "value": "3"}, {"key": "a", "value": "5", "effect": "NoExecute"}, True),
        ({"key": "a", "operator": "Lt", "value": "3"}, {"key": "a", "value": "5", "effect": "NoExecute"}, False),
    ],
)
def test_what_a_toleration_covers(toleration: dict[str, str], taint: dict[str, str], covered: bool) -> None:
    assert tolerates(Toleration(**toleration), Taint(**taint)) is covered


def test_the_shortest_toleration_counts() -> None:
    a, b = Taint(key="a", effect="NoExecute"), Taint(key="b", effect="NoExecute")

    def exists(key: str, limit: int | None) -> Toleration:
        return Toleration(key=key, operator="Exists", toleration_seconds=limit)

    assert stay_seconds([exists("a", 30), exists("b", 10)], [a, b]) == 10
    assert stay_seconds([exists("a", 30)], [a, b]) == 0
    assert stay_seconds([exists("a", None)], [a]) is None
    assert stay_seconds([], []) is None
    assert stay_seconds([exists("a", -5)], [a]) == 0


def test_an_intolerant_pod_goes_at_once_with_the_reason_in_its_status() -> None:
    cluster = two_nodes("tainteviction")
    cluster.pod("a", "n1", ready=True)
    cluster.pod("b", "n2", ready=True)
    cluster.api.change("nodes", "n1", {"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}})
    cluster.settle()
    gone = cluster.get("pods", "a")
    assert "deletionTimestamp" in gone["metadata"]
    assert condition(gone, "DisruptionTarget") == (
        "True",
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )
    assert cluster.events("TaintManagerEviction") == ["Marking for deletion Pod ns/a"]
    assert "deletionTimestamp" not in cluster.get("pods", "b")["metadata"]


def test_a_pod_may_stay_for_its_toleration_seconds_after_its_node_fell_silent() -> None:
    cluster = two_nodes("tainteviction")
    cluster.pod("a", "n1", ready=True, tolerations=TOLERANT)
    live(cluster, 60)
    added = cluster.get("nodes", "n1")["spec"]["taints"][0]["timeAdded"]
    live(cluster, 285)
    assert "deletionTimestamp" not in cluster.get("pods", "a")["metadata"]
    live(cluster, 20)
    deleted = cluster.get("pods", "a")["metadata"]["deletionTimestamp"]
    assert 300 <= (parse_time(deleted) - parse_time(added)) / 10**9 - 30 <= 302


def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    cluster = two_nodes("tainteviction")
    cluster.pod("a", "n1", ready=True, tolerations=TOLERANT)
    live(cluster, 100)
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": as_time(cluster.now)}
    cluster.api.change("nodes", "n1", {"status": {"conditions": [ready]}})
    live(cluster, 400, "n1", "n2")
    assert "deletionTimestamp" not in cluster.get("pods", "a")["metadata"]
    assert cluster.events("TaintManagerEviction") == ["Cancelling deletion of Pod ns/a"]


# ---------------------------------------------------------------- pods without a node


def test_pods_of_a_deleted_node_fail_and_go_forty_seconds_after_the_look_that_missed_it() -> None:
    cluster = two_nodes("podgc")
    cluster.pod("a", "n1", ready=True)
    cluster.pod("b", "n2", ready=True)
    cluster.settle()
    statuses: list[Any] = []
    cluster.api.refuse = lambda request: (
        statuses.append((request.verb, request.name))
        if request.resource == "pods" and request.name == "a" and request.verb in ("patch", "delete")
        else None
    )
    cluster.api.delete("nodes", "n1")
    cluster.wait(59)
    assert cluster.get("pods", "a")["status"]["phase"] == "Running"
    cluster.wait(2)
    assert [p["metadata"]["name"] for p in cluster.of("pods")] == ["b"]
    assert statuses == [("patch", "a"), ("delete", "a")]
    last = [d for _, r, change, d in cluster.api.history if r == "pods" and change == "DELETED"][-1]
    assert last["status"]["phase"] == "Failed"
    assert condition(last, "DisruptionTarget") == ("True", "DeletionByPodGC", "PodGC: node no longer exists")


def test_a_node_that_returns_in_time_keeps_its_pods() -> None:
    cluster = two_nodes("podgc")
    cluster.pod("a", "n1", ready=True)
    cluster.api.delete("nodes", "n1")
    cluster.wait(30)
    cluster.node("n1")
    cluster.wait(60)
    assert cluster.get("pods", "a")["status"]["phase"] == "Running"


def test_a_node_that_only_the_copy_misses_keeps_its_pods() -> None:
    cluster = two_nodes("podgc")
    cluster.api.deaf.add("nodes")
    cluster.node("n3")
    cluster.pod("a", "n3", ready=True)
    cluster.wait(100)
    assert cluster.get("pods", "a")["status"]["phase"] == "Running"


def test_a_terminating_pod_that_no_node_has_goes_with_the_next_look() -> None:
    cluster = Cluster("podgc")
    cluster.pod("a")
    cluster.settle()
    cluster.wait(5)
    cluster.api.change("pods", "ns/a", {"metadata": {"deletionTimestamp": as_time(cluster.now), "deletionGracePeriodSeconds": 30}})
    cluster.wait(14)
    assert cluster.get("pods", "a")["status"]["phase"] == "Pending"
    cluster.wait(1)
    assert cluster.of("pods") == []


def test_what_is_to_go_when_it_begins_goes_at_once() -> None:
    cluster = Cluster("podgc")
    cluster.pod("a")
    cluster.api.change("pods", "ns/a", {"metadata": {"deletionTimestamp": as_time(cluster.now), "deletionGracePeriodSeconds": 30}})
    cluster.begin(2)
    cluster.settle()
    assert cluster.of("pods") == []


def test_a_terminating_pod_on_a_node_out_of_service_goes() -> None:
    cluster = Cluster("podgc")
    cluster.node("n1", ready="Unknown", taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}])
    cluster.pod("a", "n1", ready=True)
    cluster.api.delete("pods", "ns/a")
    cluster.wait(20)
    assert cluster.of("pods") == []


def asked_for_a_kept_pod(grace_seconds: int) -> list[str]:
    """What podgc asks in a minute for an unscheduled pod that a finalizer keeps."""
    cluster = Cluster("podgc")
    cluster.pod("a")
    marks = {"deletionTimestamp": as_time(cluster.now), "deletionGracePeriodSeconds": grace_seconds, "finalizers": ["a.com/keep"]}
    cluster.api.change("pods", "ns/a", {"metadata": marks})
    cluster.wait(60)
    assert cluster.get("pods", "a")["metadata"]["finalizers"] == ["a.com/keep"]
    return [request.verb for request in cluster.api.log if request.resource == "pods" and request.verb in ("patch", "delete")]


def test_a_deleted_pod_that_a_finalizer_keeps_is_left_to_it() -> None:
    assert asked_for_a_kept_pod(0) == ["patch"]


def test_a_deletion_that_changes_nothing_is_repeated_with_a_back_off_only() -> None:
    asked = asked_for_a_kept_pod(30)  # this API server keeps the grace period as it was
    assert asked[:2] == ["patch", "delete"]
    assert len(asked) < 20


# ---------------------------------------------------------------- what many nodes cost


def test_the_zones_are_counted_once_for_all_that_are_down(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def counting(nodes: Iterable[tuple[Node, bool]]) -> Mapping[str, int | None] | None:
        everyone = list(nodes)
        counted.append(len(everyone))
        return eviction_intervals(everyone)

    monkeypatch.setattr(nodelifecycle, "eviction_intervals", counting)
    cluster = Cluster("nodelifecycle")
    names = [f"n{number}" for number in range(1, 41)]
    for name in names:
        cluster.node(name)
        cluster.renew(name)
    live(cluster, 70, "n1")
    assert all(f"{UNREACHABLE}:NoSchedule" in taints(cluster.get("nodes", name)) for name in names[1:])
    assert 1 <= len(counted) <= 12, "once after each round of the monitor, and not once for each node that is down"


def test_a_renewed_lease_is_no_work_for_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    reconcile = Garbage.reconcile

    def looking(self: Garbage, now: Instant, key: str) -> Any:
        looked_at.append(key)
        return reconcile(self, now, key)

    monkeypatch.setattr(Garbage, "reconcile", looking)
    cluster = Cluster("garbage")
    node = cluster.node("n1")
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node["metadata"]["uid"]}
    cluster.api.create("leases.coordination.k8s.io", {"metadata": {"name": "n1", "ownerReferences": [owner]}}, "kube-node-lease")
    cluster.wait(5)
    assert looked_at == ["leases.coordination.k8s.io kube-node-lease/n1"]
    for second in range(3):
        renewed = {"spec": {"renewTime": as_time(Instant(cluster.now + second))}}
        cluster.api.change("leases.coordination.k8s.io", "kube-node-lease/n1", renewed)
        cluster.wait(5)
    assert len(looked_at) == 1
    cluster.api.delete("nodes", "n1")
    cluster.wait(5)
    assert cluster.of("leases.coordination.k8s.io") == [], "what has no owner any more still goes"
