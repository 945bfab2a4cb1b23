"""Budgets, quotas, owners, namespaces and events."""

from typing import Any

import msgspec
import pytest
from controllers_cluster import Cluster, Document, Refusal
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.controllers.disruption import Scale, expected, judge
from elbowroom.controllers.kit import scaled
from elbowroom.controllers.namespaces import CONTENT
from elbowroom.controllers.views import Budget
from elbowroom.machine import Instant
from elbowroom.wire import ApiRequest

NOW = Instant(1_790_000_000_000_000_000)
LABELS = {"app": "web"}


# ---------------------------------------------------------------- budgets


def a_budget(cluster: Cluster, name: str = "keep", **spec: Any) -> Document:
    body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": LABELS}, **spec}}
    return cluster.api.create("poddisruptionbudgets.policy", body, "ns")


def numbers(cluster: Cluster, name: str = "keep") -> tuple[int, int, int, int]:
    """Expected, healthy, wanted, allowed."""
    status = cluster.get("poddisruptionbudgets.policy", name)["status"]
    return status["expectedPods"], status["currentHealthy"], status["desiredHealthy"], status["disruptionsAllowed"]


def test_a_budget_counts_the_healthy() -> None:
    cluster = Cluster("disruption")
    a_budget(cluster, minAvailable=1)
    for name, ready in (("a", True), ("b", True), ("c", False)):
        cluster.pod(name, "n1", ready=ready, labels=LABELS)
    cluster.pod("other", "n1", ready=True)
    cluster.wait(1)
    assert numbers(cluster) == (3, 2, 1, 1)
    [told] = cluster.get("poddisruptionbudgets.policy", "keep")["status"]["conditions"]
    assert (told["type"], told["status"], told["reason"], told["message"], told["observedGeneration"]) == (
        "DisruptionAllowed",
        "True",
        "SufficientPods",
        "",
        1,
    )
    cluster.api.delete("pods", "ns/a", {"gracePeriodSeconds": 0})
    cluster.wait(1)
    assert numbers(cluster) == (2, 1, 1, 0)
    [told] = cluster.get("poddisruptionbudgets.policy", "keep")["status"]["conditions"]
    assert (told["status"], told["reason"]) == ("False", "InsufficientPods")


def test_a_granted_eviction_counts_as_gone_for_two_minutes() -> None:
    cluster = Cluster("disruption")
    a_budget(cluster, minAvailable=1)
    cluster.pod("a", "n1", ready=True, labels=LABELS)
    cluster.pod("b", "n1", ready=True, labels=LABELS)
    cluster.wait(1)
    granted = {"status": {"disruptionsAllowed": 0, "disruptedPods": {"a": as_time(cluster.now)}}}
    cluster.api.change("poddisruptionbudgets.policy", "ns/keep", granted)
    cluster.wait(100)
    assert numbers(cluster) == (2, 1, 1, 0)
    cluster.wait(25)
    assert numbers(cluster) == (2, 2, 1, 1)
    assert cluster.get("poddisruptionbudgets.policy", "keep")["status"].get("disruptedPods", {}) == {}
    assert cluster.events("NotDeleted") == ["Pod was expected by PDB ns/keep to be deleted but it wasn't"]


def test_a_deleted_pod_leaves_the_disrupted_ones() -> None:
    cluster = Cluster("disruption")
    a_budget(cluster, minAvailable=1)
    cluster.pod("a", "n1", ready=True, labels=LABELS)
    cluster.pod("b", "n1", ready=True, labels=LABELS)
    cluster.wait(1)
    cluster.api.change("poddisruptionbudgets.policy", "ns/keep", {"status": {"disruptedPods": {"a": as_time(cluster.now)}}})
    cluster.api.delete("pods", "ns/a")
    cluster.wait(1)
    assert cluster.get("poddisruptionbudgets.policy", "keep")["status"].get("disruptedPods", {}) == {}


def test_percentages_are_of_the_deployment_and_rounded_up() -> None:
    cluster = Cluster("disruption", "deployments", "replicasets")
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c"}]}}
    spec = {"replicas": 7, "selector": {"matchLabels": LABELS}, "template": template, "strategy": {"type": "Recreate"}}
    cluster.api.create("deployments.apps", {"metadata": {"name": "web"}, "spec": spec}, "ns")
    a_budget(cluster, "share", minAvailable="50%")
    a_budget(cluster, "loss", maxUnavailable="30%")
    cluster.settle()
    cluster.run_pods()
    cluster.wait(1)
    assert numbers(cluster, "share") == (7, 7, 4, 3)
    assert numbers(cluster, "loss") == (7, 7, 4, 3)
    cluster.api.change("deployments.apps", "ns/web", {"spec": {"replicas": 3}})
    cluster.wait(1)
    cluster.run_pods()
    cluster.wait(1)
    assert numbers(cluster, "share") == (3, 3, 2, 1)


def test_a_budget_that_cannot_be_reckoned_allows_nothing_and_says_why() -> None:
    cluster = Cluster("disruption")
    a_budget(cluster, maxUnavailable=1)
    pod = cluster.pod("a", "n1", ready=True, labels=LABELS)
    owner = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "u", "controller": True}
    cluster.api.change("pods", "ns/a", {"metadata": {"ownerReferences": [owner]}})
    cluster.wait(1)
    status = cluster.get("poddisruptionbudgets.policy", "keep")["status"]
    [told] = status["conditions"]
    assert status["disruptionsAllowed"] == 0
    assert (told["status"], told["reason"], told["message"]) == ("False", "SyncFailed", 'found no controllers for pod "a"')
    assert pod["metadata"]["name"] == "a"


def test_a_disruption_that_never_came_is_set_back() -> None:
    cluster = Cluster("disruption")
    cluster.pod("a", "n1", ready=True)
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "lastTransitionTime": as_time(cluster.now),
    }
    cluster.api.change("pods", "ns/a", {"status": {"conditions": [target]}})
    cluster.wait(119)
    assert cluster.get("pods", "a")["status"]["conditions"][0]["status"] == "True"
    cluster.wait(2)
    assert cluster.get("pods", "a")["status"]["conditions"][0]["status"] == "False"


@pytest.mark.parametrize(
    ("spec", "pods", "scale", "result"),
    [
        ({"minAvailable": 2}, 3, 9, (3, 2)),
        ({"minAvailable": "34%"}, 3, 3, (3, 2)),
        ({"maxUnavailable": 1}, 2, 5, (5, 4)),
        ({"maxUnavailable": "34%"}, 2, 5, (5, 3)),
        ({"maxUnavailable": 9}, 2, 5, (5, 0)),
        ({"maxUnavailable": "100%"}, 0, 5, (0, 0)),
    ],
)
def test_what_a_budget_expects(spec: dict[str, Any], pods: int, scale: int, result: tuple[int, int]) -> None:
    owner = {"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    budget = msgspec.convert({"spec": spec}, Budget)
    many = [msgspec.convert({"metadata": {"name": f"p{i}", "ownerReferences": [owner]}}, Pod) for i in range(pods)]
    assert expected(budget, many, lambda pod: Scale("r", scale))[:2] == result


@given(
    st.one_of(st.integers(0, 9), st.integers(0, 100).map(lambda n: f"{n}%")),
    st.booleans(),
    st.lists(st.booleans(), max_size=8),
)
def test_evicting_all_that_is_allowed_leaves_enough(bound: int | str, is_min: bool, ready: list[bool]) -> None:
    owner = {"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    pods = [
        msgspec.convert(
            {
                "metadata": {"name": f"p{i}", "ownerReferences": [owner]},
                "status": {"conditions": [{"type": "Ready", "status": "True" if up else "False"}]},
            },
            Pod,
        )
        for i, up in enumerate(ready)
    ]
    budget = msgspec.convert({"spec": {"minAvailable" if is_min else "maxUnavailable": bound}}, Budget)
    status = judge(budget, pods, lambda pod: Scale("r", len(pods)), NOW).status
    assert 0 <= status.disruptions_allowed <= sum(ready)
    if status.disruptions_allowed:
        least = scaled(bound, len(pods), up=True) if is_min else len(pods) - scaled(bound, len(pods), up=True)
        assert sum(ready) - status.disruptions_allowed >= least


# ---------------------------------------------------------------- quotas


def used(cluster: Cluster) -> dict[str, str]:
    return dict(cluster.get("resourcequotas", "q")["status"]["used"])


def test_a_quota_counts_what_is_there_and_what_comes_and_goes() -> None:
    cluster = Cluster("quota")
    spec = {"hard": {"pods": "5", "requests.cpu": "4", "configmaps": "3", "count/deployments.apps": "1"}}
    cluster.api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": spec}, "ns")
    cluster.api.create("configmaps", {"metadata": {"name": "m"}}, "ns")
    cluster.settle()
    assert used(cluster) == {"pods": "0", "requests.cpu": "0", "configmaps": "1", "count/deployments.apps": "0"}
    cluster.pod("a", containers=[{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}])
    cluster.settle()
    assert used(cluster) == {"pods": "1", "requests.cpu": "1500m", "configmaps": "1", "count/deployments.apps": "0"}
    cluster.api.delete("pods", "ns/a")
    cluster.wait(1)
    assert used(cluster)["requests.cpu"] == "0"


@pytest.mark.parametrize("resource", [kind for kind in CONTENT if kind not in ("events", "pods", "resourcequotas", "secrets")])
def test_a_quota_counts_every_kind_of_object(resource: str) -> None:
    cluster = Cluster("quota")
    cluster.api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {f"count/{resource}": "3"}}}, "ns")
    for name in ("a", "b"):
        cluster.api.create(resource, {"metadata": {"name": name}}, "ns")
    cluster.settle()
    assert used(cluster) == {f"count/{resource}": "2"}
    cluster.api.delete(resource, "ns/a")
    cluster.wait(1)
    assert used(cluster) == {f"count/{resource}": "1"}


def test_a_shrunk_pod_gives_back_once_its_status_shows_it() -> None:
    cluster = Cluster("quota")
    spec = {"hard": {"requests.cpu": "4"}}
    cluster.api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": spec}, "ns")
    cluster.pod("a", "n1", ready=True, containers=[{"name": "c", "resources": {"requests": {"cpu": "3"}}}])
    actual = {"name": "c", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}}
    cluster.api.change("pods", "ns/a", {"status": {"containerStatuses": [actual]}})
    cluster.wait(1)
    small = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    cluster.api.change("pods", "ns/a", {"spec": {"containers": [small]}})
    cluster.wait(1)
    assert used(cluster) == {"requests.cpu": "3"}
    cluster.api.change("pods", "ns/a", {"status": {"containerStatuses": [{**small, "allocatedResources": {"cpu": "1"}}]}})
    cluster.wait(1)
    assert used(cluster) == {"requests.cpu": "1"}


def test_a_quota_just_charged_is_not_lowered_before_its_pod_shows() -> None:
    cluster = Cluster("quota")
    cluster.api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "4"}}}, "ns")
    cluster.wait(5)
    cluster.api.change("resourcequotas", "ns/q", {"status": {"used": {"pods": "1"}}})
    cluster.wait(0.3)
    assert used(cluster) == {"pods": "1"}
    cluster.pod("a")
    cluster.wait(5)
    assert used(cluster) == {"pods": "1"}
    assert len([r for r in cluster.api.log if r.resource == "resourcequotas" and r.verb == "patch"]) == 1


def test_a_pod_whose_grace_is_over_is_not_charged() -> None:
    cluster = Cluster("quota")
    cluster.api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "4"}}}, "ns")
    cluster.pod("a", "n1", ready=True, terminationGracePeriodSeconds=10)
    cluster.settle()
    cluster.api.delete("pods", "ns/a")
    cluster.wait(15)
    assert used(cluster) == {"pods": "1"}
    cluster.wait(10)
    assert used(cluster) == {"pods": "0"}


def test_a_name_that_the_quota_no_longer_has_leaves_its_status() -> None:
    cluster = Cluster("quota")
    cluster.api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "4", "requests.cpu": "1"}}}, "ns")
    cluster.wait(1)
    cluster.api.change("resourcequotas", "ns/q", {"spec": {"hard": {"requests.cpu": None, "pods": "9"}}})
    cluster.wait(1)
    status = cluster.get("resourcequotas", "q")["status"]
    assert status == {"hard": {"pods": "9"}, "used": {"pods": "0"}}


# ---------------------------------------------------------------- owners


def owned(cluster: Cluster, resource: str, name: str, *owners: Document, block: bool = True) -> Document:
    references = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment" if o["spec"].get("strategy") else "ReplicaSet",
            "name": o["metadata"]["name"],
            "uid": o["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for o in owners
    ]
    document = {"metadata": {"name": name, "ownerReferences": references}, "spec": {}}
    return cluster.api.create(resource, document, "ns")


def a_family(cluster: Cluster) -> tuple[Document, Document, Document]:
    deployment = cluster.api.create(
        "deployments.apps", {"metadata": {"name": "d"}, "spec": {"strategy": {"type": "Recreate"}}}, "ns"
    )
    replica_set = owned(cluster, "replicasets.apps", "r", deployment)
    pod = owned(cluster, "pods", "p", replica_set)
    cluster.settle()
    return deployment, replica_set, pod


def test_what_a_deleted_owner_leaves_is_deleted() -> None:
    cluster = Cluster("garbage")
    a_family(cluster)
    cluster.api.delete("deployments.apps", "ns/d")
    cluster.wait(2)
    assert cluster.of("replicasets.apps") == [] and cluster.of("pods") == []


def test_a_dependent_with_another_owner_stays_without_the_name_of_the_gone_one() -> None:
    cluster = Cluster("garbage")
    one = cluster.api.create("replicasets.apps", {"metadata": {"name": "one"}, "spec": {}}, "ns")
    two = cluster.api.create("replicasets.apps", {"metadata": {"name": "two"}, "spec": {}}, "ns")
    owned(cluster, "pods", "p", one, two)
    cluster.api.delete("replicasets.apps", "ns/one")
    cluster.wait(2)
    assert [o["name"] for o in cluster.get("pods", "p")["metadata"]["ownerReferences"]] == ["two"]


def test_an_owner_of_the_same_name_is_another_one() -> None:
    cluster = Cluster("garbage")
    old = cluster.api.create("replicasets.apps", {"metadata": {"name": "r"}, "spec": {}}, "ns")
    owned(cluster, "pods", "p", old)
    cluster.api.delete("replicasets.apps", "ns/r")
    cluster.api.create("replicasets.apps", {"metadata": {"name": "r"}, "spec": {}}, "ns")
    cluster.wait(2)
    assert cluster.of("pods") == []


def test_an_owner_that_the_copy_does_not_show_yet_is_looked_for_before_anything_is_deleted() -> None:
    cluster = Cluster("garbage")
    replica_set = cluster.api.create("replicasets.apps", {"metadata": {"name": "r"}, "spec": {}}, "ns")
    late = [e for e in cluster.api.out if getattr(e, "id", None) == _stream(cluster, "replicasets.apps")]
    cluster.api.out = [e for e in cluster.api.out if e not in late]
    held = list(cluster.api.streams)
    cluster.api.streams = [s for s in held if s.resource != "replicasets.apps"]
    owned(cluster, "pods", "p", replica_set)
    cluster.settle()
    cluster.api.out += late
    cluster.api.streams = held
    cluster.wait(5)
    assert [p["metadata"]["name"] for p in cluster.of("pods")] == ["p"]


def _stream(cluster: Cluster, resource: str) -> int:
    return next(s.id for s in cluster.api.streams if s.resource == resource)


def test_in_the_foreground_the_owner_goes_last() -> None:
    cluster = Cluster("garbage")
    a_family(cluster)
    cluster.api.delete("deployments.apps", "ns/d", {"propagationPolicy": "Foreground"})
    cluster.wait(2)
    assert cluster.of("deployments.apps") == cluster.of("replicasets.apps") == cluster.of("pods") == []
    gone = [resource for _, resource, change, _ in cluster.api.history if change == "DELETED"]
    assert gone == ["pods", "replicasets.apps", "deployments.apps"]


def test_orphans_stay_and_forget_their_owner() -> None:
    cluster = Cluster("garbage")
    a_family(cluster)
    cluster.api.delete("deployments.apps", "ns/d", {"propagationPolicy": "Orphan"})
    cluster.wait(2)
    assert cluster.of("deployments.apps") == []
    assert cluster.get("replicasets.apps", "r")["metadata"]["ownerReferences"] == []
    assert len(cluster.of("pods")) == 1


@pytest.mark.parametrize(
    ("version", "kind", "resource"),
    [
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles.rbac.authorization.k8s.io"),
        ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses.scheduling.k8s.io"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions.apiextensions.k8s.io"),
        ("v1", "PersistentVolume", "persistentvolumes"),
    ],
)
def test_what_belongs_to_the_cluster_owns_and_is_owned_too(version: str, kind: str, resource: str) -> None:
    cluster = Cluster("garbage")
    owner = cluster.api.create(resource, {"metadata": {"name": "owner"}}, "")
    reference = {"apiVersion": version, "kind": kind, "name": "owner", "uid": owner["metadata"]["uid"], "blockOwnerDeletion": True}
    for where, name, namespace in ((resource, "same", ""), ("configmaps", "inside", "ns")):
        cluster.api.create(where, {"metadata": {"name": name, "ownerReferences": [reference]}}, namespace)
    cluster.wait(2)
    assert len(cluster.of(resource)) == 2 and len(cluster.of("configmaps")) == 1
    cluster.api.delete(resource, "owner", {"propagationPolicy": "Foreground"})
    cluster.wait(2)
    assert cluster.of(resource) == cluster.of("configmaps") == []
    assert [document["metadata"]["name"] for _, _, change, document in cluster.api.history if change == "DELETED"][-1] == "owner"


def test_the_lease_of_a_deleted_node_goes_with_it() -> None:
    cluster = Cluster("garbage")
    node = cluster.node("n1")
    reference = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node["metadata"]["uid"]}
    lease = {"metadata": {"name": "n1", "ownerReferences": [reference]}}
    cluster.api.create("leases.coordination.k8s.io", lease, "kube-node-lease")
    cluster.wait(1)
    assert len(cluster.of("leases.coordination.k8s.io")) == 1
    cluster.api.delete("nodes", "n1")
    cluster.wait(1)
    assert cluster.of("leases.coordination.k8s.io") == []


# ---------------------------------------------------------------- namespaces


def test_a_namespace_takes_all_its_content_with_it() -> None:
    cluster = Cluster("namespaces")
    namespace = {"metadata": {"name": "ns"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    cluster.api.create("namespaces", namespace)
    cluster.api.create("configmaps", {"metadata": {"name": "m"}}, "ns")
    cluster.api.create("configmaps", {"metadata": {"name": "m"}}, "elsewhere")
    cluster.pod("a", "n1", ready=True)
    cluster.settle()
    cluster.api.delete("namespaces", "ns")
    cluster.wait(3)
    namespace = cluster.get("namespaces", "ns")
    remaining = {c["type"]: (c["status"], c["reason"], c["message"]) for c in namespace["status"]["conditions"]}
    assert remaining["NamespaceContentRemaining"] == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: pods. has 1 resource instances",
    )
    assert remaining["NamespaceDeletionContentFailure"][:2] == ("False", "ContentDeleted")
    cluster.run_pods()
    cluster.wait(5)
    assert cluster.of("namespaces") == [] and cluster.of("pods") == []
    assert [m["metadata"]["namespace"] for m in cluster.of("configmaps")] == ["elsewhere"]


def test_a_namespace_that_cannot_be_listed_is_tried_again() -> None:
    cluster = Cluster("namespaces")
    namespace = {"metadata": {"name": "ns"}, "spec": {"finalizers": ["kubernetes"]}}
    cluster.api.create("namespaces", namespace)
    failing = [True]

    def refuse(request: ApiRequest) -> None:
        if request.verb == "list" and failing[0]:
            raise Refusal(403, "Forbidden", "no")

    cluster.api.refuse = refuse
    cluster.api.delete("namespaces", "ns")
    cluster.wait(10)
    assert len(cluster.of("namespaces")) == 1
    failing[0] = False
    cluster.wait(10)
    assert cluster.of("namespaces") == []


# ---------------------------------------------------------------- events


def test_events_live_for_an_hour_after_they_were_last_told() -> None:
    cluster = Cluster("expiry")
    old = {"metadata": {"name": "old"}, "lastTimestamp": as_time(cluster.now)}
    cluster.api.create("events", old, "ns")
    cluster.api.create("events", {"metadata": {"name": "kept"}, "lastTimestamp": as_time(cluster.now)}, "ns")
    cluster.wait(1800)
    cluster.api.change("events", "ns/kept", {"lastTimestamp": as_time(cluster.now)})
    cluster.wait(1801)
    assert [e["metadata"]["name"] for e in cluster.of("events")] == ["kept"]
    cluster.wait(1801)
    assert cluster.of("events") == []


def test_an_event_seen_again_is_counted() -> None:
    cluster = Cluster("disruption")
    a_budget(cluster, minAvailable=1)
    cluster.settle()
    for number in range(2, 4):
        cluster.api.change("poddisruptionbudgets.policy", "ns/keep", {"spec": {"minAvailable": number}})
        cluster.wait(1)
    [event] = [e for e in cluster.of("events") if e["reason"] == "NoPods"]
    assert (event["count"], event["message"], event["source"]) == (3, "No matching pods found", {"component": "controllermanager"})


# ---------------------------------------------------------------- all together


def test_everything_at_once_comes_to_rest_through_a_bad_network() -> None:
    cluster = Cluster()
    cluster.api.create("namespaces", {"metadata": {"name": "ns"}, "spec": {"finalizers": ["kubernetes"]}})
    cluster.node("n1")
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c"}]}}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    spec = {"replicas": 6, "selector": {"matchLabels": LABELS}, "template": template, "strategy": rolling}
    cluster.api.create("deployments.apps", {"metadata": {"name": "web"}, "spec": spec}, "ns")
    cluster.api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "50"}}}, "ns")
    a_budget(cluster, maxUnavailable="50%")
    for round_ in range(12):
        cluster.lost_replies, cluster.lost_requests = round_ % 3, round_ % 2
        cluster.renew("n1")
        cluster.run_pods()
        cluster.wait(15)
        if round_ % 4 == 3:
            cluster.reconnect()
        if round_ == 6:
            cluster.begin(seed=7)
        assert len(cluster.pods()) <= 7
    cluster.lost_replies = cluster.lost_requests = 0
    for _ in range(10):
        cluster.renew("n1")
        cluster.run_pods()
        cluster.wait(15)
    assert len(cluster.of("pods")) == 6
    assert numbers(cluster) == (6, 6, 3, 3)
    assert used(cluster) == {"pods": "6"}
    assert cluster.get("deployments.apps", "web")["status"]["availableReplicas"] == 6
    before = cluster.api.revision
    cluster.wait(30)
    assert cluster.api.revision == before, "and then all is still"
    cluster.api.delete("namespaces", "ns")
    for _ in range(8):
        cluster.wait(5)
        cluster.run_pods()
    assert [r for r in ("pods", "replicasets.apps", "deployments.apps") if cluster.of(r)] == []
    assert cluster.of("namespaces") == []
