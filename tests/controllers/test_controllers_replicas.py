"""Replica sets and deployments."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from controllers_cluster import Cluster, Document, Refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.controllers import rollout
from elbowroom.controllers.replicasets import doomed_first
from elbowroom.controllers.views import Deployment, DeploymentSpec, ReplicaSet
from elbowroom.machine import Instant, seconds
from elbowroom.wire import ApiRequest

NOW = Instant(1_790_000_000_000_000_000)
LABELS = {"app": "web"}


def a_replica_set(cluster: Cluster, replicas: int, **spec: Any) -> Document:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "pause"}]}}
    body = {
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template, **spec},
    }
    return cluster.api.create("replicasets.apps", body, "ns")


def a_deployment(cluster: Cluster, replicas: int, *, image: str = "pause:1", **spec: Any) -> Document:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    body = {
        "metadata": {"name": "web", "annotations": {"team": "a"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": a_template(image),
            "strategy": rolling,
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            **spec,
        },
    }
    return cluster.api.create("deployments.apps", body, "ns")


def a_template(image: str) -> Document:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}}


def images(cluster: Cluster) -> list[str]:
    return sorted(p["spec"]["containers"][0]["image"] for p in cluster.pods())


def condition(document: Document, kind: str) -> tuple[str, str, str]:
    found = next(c for c in document["status"]["conditions"] if c["type"] == kind)
    return found["status"], found["reason"], found.get("message", "")


# ---------------------------------------------------------------- replica sets


def test_a_replica_set_makes_its_pods_and_says_so() -> None:
    cluster = Cluster("replicasets")
    owner = a_replica_set(cluster, 3)
    cluster.settle()
    pods = cluster.pods(**LABELS)
    assert len(pods) == 3
    assert all(p["metadata"]["generateName"] == "web-" and p["metadata"]["name"].startswith("web-") for p in pods)
    assert pods[0]["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert sorted(cluster.events("SuccessfulCreate")) == sorted(f"Created pod: {p['metadata']['name']}" for p in pods)
    cluster.run_pods()
    status = cluster.get("replicasets.apps", "web")["status"]
    counts = {"replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3, "observedGeneration": 1}
    assert status == {**counts, "terminatingReplicas": 0}


@pytest.mark.parametrize("lost", ["lost_replies", "lost_requests"])
@pytest.mark.parametrize("how_many", [1, 2, 5])
def test_a_creation_of_unknown_outcome_is_not_doubled(lost: str, how_many: int) -> None:
    cluster = Cluster("replicasets")
    setattr(cluster, lost, how_many)
    a_replica_set(cluster, 5)
    cluster.wait(120)
    assert len(cluster.of("pods")) == 5
    assert len(cluster.events("SuccessfulCreate")) == 5


def test_nothing_is_made_twice_while_the_copy_does_not_show_it() -> None:
    cluster = Cluster("deployments", "replicasets")
    cluster.slow_streams = True
    deployment = a_deployment(cluster, 10)
    rolled_out(cluster, deployment)
    cluster.api.change("deployments.apps", "ns/web", {"spec": {"template": a_template("pause:2")}})
    rolled_out(cluster, deployment)
    created = [r for r in cluster.api.log if r.verb == "create" and r.resource in ("pods", "replicasets")]
    assert len(created) == 22


def test_a_broken_connection_doubles_nothing() -> None:
    cluster = Cluster("replicasets")
    a_replica_set(cluster, 8)
    for _ in range(6):
        with suppress(AssertionError):
            cluster.settle(3)  # it does not come to rest before the connection breaks
        cluster.reconnect()
    cluster.wait(60)
    assert len(cluster.of("pods")) == 8


def test_controllers_that_die_amid_creation_go_on_where_they_were() -> None:
    cluster = Cluster("replicasets")
    a_replica_set(cluster, 7)
    cluster.settle()
    for key in list(cluster.api.of("pods"))[:3]:
        cluster.api.delete("pods", key)
    cluster.begin(seed=2)
    cluster.settle()
    assert len(cluster.of("pods")) == 7


def test_an_ended_pod_is_replaced_and_a_terminating_one_is_no_replica() -> None:
    cluster = Cluster("replicasets")
    a_replica_set(cluster, 2)
    cluster.settle()
    cluster.run_pods()
    first, second = list(cluster.api.of("pods"))
    cluster.api.change("pods", first, {"status": {"phase": "Failed"}})
    cluster.api.delete("pods", second)
    cluster.settle()
    assert len(cluster.pods()) == 2
    status = cluster.get("replicasets.apps", "web")["status"]
    assert status["replicas"] == 2 and status["terminatingReplicas"] == 1


def test_too_many_pods_go_the_unready_first() -> None:
    cluster = Cluster("replicasets")
    a_replica_set(cluster, 3)
    cluster.settle()
    cluster.run_pods()
    sick = cluster.pods()[1]["metadata"]
    cluster.api.change("pods", f"ns/{sick['name']}", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    cluster.api.change("replicasets.apps", "ns/web", {"spec": {"replicas": 2}})
    cluster.wait(1)
    assert "deletionTimestamp" in cluster.get("pods", sick["name"])["metadata"]
    assert len(cluster.pods()) == 2
    assert cluster.events("SuccessfulDelete") == [f"Deleted pod: {sick['name']}"]


def test_fitting_orphans_are_adopted_and_strangers_let_go() -> None:
    cluster = Cluster("replicasets")
    owner = a_replica_set(cluster, 2)
    cluster.pod("orphan", labels=LABELS)
    cluster.settle()
    assert len(cluster.pods(**LABELS)) == 2
    assert cluster.get("pods", "orphan")["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    cluster.api.change("pods", "ns/orphan", {"metadata": {"labels": {"app": None}}})
    cluster.settle()
    assert cluster.get("pods", "orphan")["metadata"]["ownerReferences"] == []
    assert len(cluster.pods(**LABELS)) == 2


def test_a_full_quota_is_told_and_not_asked_for_every_pod() -> None:
    cluster = Cluster("replicasets")

    def full(request: ApiRequest) -> None:
        if request.verb == "create" and request.resource == "pods" and len(cluster.of("pods")) >= 2:
            raise Refusal(403, "Forbidden", 'pods "web-x" is forbidden: exceeded quota: q')

    cluster.api.refuse = full
    a_replica_set(cluster, 100)
    cluster.settle()
    assert len([r for r in cluster.api.log if r.verb == "create" and r.resource == "pods"]) < 8
    cluster.wait(1)
    assert condition(cluster.get("replicasets.apps", "web"), "ReplicaFailure") == (
        "True",
        "FailedCreate",
        'pods "web-x" is forbidden: exceeded quota: q',
    )
    assert cluster.events("FailedCreate") == ['Error creating: pods "web-x" is forbidden: exceeded quota: q']
    cluster.api.refuse = lambda request: None
    cluster.wait(300)
    assert len(cluster.pods()) == 100
    assert "conditions" not in cluster.get("replicasets.apps", "web")["status"]


def test_a_pod_is_available_once_it_was_ready_for_long_enough() -> None:
    cluster = Cluster("replicasets")
    a_replica_set(cluster, 1, minReadySeconds=10)
    cluster.settle()
    cluster.run_pods()
    assert cluster.get("replicasets.apps", "web")["status"]["availableReplicas"] == 0
    cluster.wait(11)
    assert cluster.get("replicasets.apps", "web")["status"]["availableReplicas"] == 1


def doomed(name: str, **facts: Any) -> Pod:
    ready = facts.get("ready", 3600)
    conditions = [] if ready is None else [{"type": "Ready", "status": "True", "lastTransitionTime": as_time(NOW - seconds(ready))}]
    return _pod(
        {
            "metadata": {
                "name": name,
                "uid": name,
                "creationTimestamp": as_time(NOW - seconds(facts.get("age", 7200))),
                "annotations": {"controller.kubernetes.io/pod-deletion-cost": facts.get("cost", "0")},
            },
            "spec": {"nodeName": facts.get("node", "n1")},
            "status": {
                "phase": facts.get("phase", "Running"),
                "conditions": conditions,
                "containerStatuses": [{"name": "c", "restartCount": facts.get("restarts", 0)}],
            },
        }
    )


def _pod(document: Document) -> Pod:
    return msgspec.convert(document, Pod)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"node": ""}, {}),
        ({"phase": "Pending", "ready": None}, {"ready": None}),
        ({"phase": "Pending", "ready": None}, {"phase": "Unknown", "ready": None}),
        ({"ready": None, "cost": "5"}, {}),
        ({"cost": "-1"}, {}),
        ({"cost": "1", "node": "n2"}, {"cost": "2", "node": "crowded"}),
        ({"node": "crowded"}, {"node": "n2", "ready": 10}),
        ({"ready": 10}, {"restarts": 3}),
        ({"restarts": 3}, {}),
        ({"age": 4000}, {"age": 90_000}),
    ],
)
def test_the_order_in_which_pods_go(first: dict[str, Any], second: dict[str, Any]) -> None:
    pods = [doomed("b", **second), doomed("a", **first)]
    assert [p.metadata.name for p in doomed_first(pods, {"crowded": 5}, NOW)] == ["a", "b"]


# ---------------------------------------------------------------- deployments


def test_a_deployment_comes_up_and_tells_each_step() -> None:
    cluster = Cluster("deployments", "replicasets")
    a_deployment(cluster, 2)
    cluster.settle()
    [replica_set] = cluster.of("replicasets.apps")
    name = replica_set["metadata"]["name"]
    digest = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert name == f"web-{digest}"
    assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": digest}
    assert all(p["metadata"]["labels"]["pod-template-hash"] == digest for p in cluster.pods())
    assert replica_set["metadata"]["annotations"] == {
        "team": "a",
        "deployment.kubernetes.io/revision": "1",
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
    }
    deployment = cluster.get("deployments.apps", "web")
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert deployment["metadata"]["generation"] == 1
    assert condition(deployment, "Available") == (
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability.",
    )
    assert condition(deployment, "Progressing") == ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    assert cluster.events("ScalingReplicaSet") == [f"Scaled up replica set {name} from 0 to 2"]
    cluster.run_pods()
    deployment = cluster.get("deployments.apps", "web")
    assert condition(deployment, "Available") == ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    assert condition(deployment, "Progressing") == (
        "True",
        "NewReplicaSetAvailable",
        f'ReplicaSet "{name}" has successfully progressed.',
    )
    del deployment["status"]["conditions"]
    assert deployment["status"] == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
    }


def rolled_out(cluster: Cluster, deployment: Document, *, watch: Any = None) -> None:
    for _ in range(40):
        cluster.settle()
        if watch is not None:
            watch()
        cluster.run_pods()
        cluster.wait(0.5)
        status = cluster.get("deployments.apps", "web").get("status", {})
        wanted = cluster.get("deployments.apps", "web")
        if (
            status.get("observedGeneration") == wanted["metadata"]["generation"]
            and status.get("updatedReplicas")
            == status.get("replicas")
            == status.get("availableReplicas")
            == wanted["spec"]["replicas"]
            and not any("deletionTimestamp" in p["metadata"] for p in cluster.of("pods"))
        ):
            return
    raise AssertionError(f"no end of the rollout: {cluster.get('deployments.apps', 'web')}")


@pytest.mark.parametrize(("surge", "unavailable"), [("25%", "25%"), (1, 0), (0, 1), ("100%", 0), (0, 0)])
@pytest.mark.parametrize("replicas", [1, 3, 8])
def test_a_rolling_update_keeps_to_its_bounds(surge: Any, unavailable: Any, replicas: int) -> None:
    cluster = Cluster("deployments", "replicasets")
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    deployment = a_deployment(cluster, replicas, strategy=strategy)
    rolled_out(cluster, deployment)
    view = Deployment(spec=_spec(replicas, surge, unavailable))
    most, least = replicas + rollout.max_surge(view), replicas - rollout.max_unavailable(view)
    seen: list[int] = []

    def bounds() -> None:
        alive = cluster.pods()
        seen.append(len(alive))
        assert len(alive) <= most
        assert sum(1 for p in alive if p["status"]["phase"] == "Running") >= least

    cluster.api.change("deployments.apps", "ns/web", {"spec": {"template": a_template("pause:2")}})
    rolled_out(cluster, deployment, watch=bounds)
    assert images(cluster) == ["pause:2"] * replicas
    assert seen
    new, old = sorted(cluster.of("replicasets.apps"), key=lambda r: -r["spec"]["replicas"])
    assert (new["metadata"]["annotations"]["deployment.kubernetes.io/revision"], old["spec"]["replicas"]) == ("2", 0)


def _spec(replicas: int, surge: Any, unavailable: Any) -> Any:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    return msgspec.convert({"replicas": replicas, "strategy": rolling}, DeploymentSpec)


def test_going_back_to_an_old_template_takes_its_replica_set_and_a_new_revision() -> None:
    cluster = Cluster("deployments", "replicasets")
    deployment = a_deployment(cluster, 2)
    rolled_out(cluster, deployment)
    for image in ("pause:2", "pause:1"):
        cluster.api.change("deployments.apps", "ns/web", {"spec": {"template": a_template(image)}})
        rolled_out(cluster, deployment)
    assert len(cluster.of("replicasets.apps")) == 2
    current = next(r for r in cluster.of("replicasets.apps") if r["spec"]["replicas"])
    annotations = current["metadata"]["annotations"]
    assert annotations["deployment.kubernetes.io/revision"] == "3"
    assert annotations["deployment.kubernetes.io/revision-history"] == "1"
    assert cluster.get("deployments.apps", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


def test_recreate_waits_for_the_last_old_pod_to_be_gone() -> None:
    cluster = Cluster("deployments", "replicasets")
    deployment = a_deployment(cluster, 3, strategy={"type": "Recreate"})
    rolled_out(cluster, deployment)
    cluster.api.change("deployments.apps", "ns/web", {"spec": {"template": a_template("pause:2")}})
    cluster.settle()
    assert images(cluster) == [] and len(cluster.of("pods")) == 3
    cluster.run_pods()
    assert images(cluster) == ["pause:2"] * 3


def test_a_paused_deployment_is_scaled_but_not_rolled() -> None:
    cluster = Cluster("deployments", "replicasets")
    deployment = a_deployment(cluster, 2)
    rolled_out(cluster, deployment)
    cluster.api.change("deployments.apps", "ns/web", {"spec": {"paused": True, "replicas": 4, "template": a_template("pause:2")}})
    cluster.settle()
    assert images(cluster) == ["pause:1"] * 4
    assert condition(cluster.get("deployments.apps", "web"), "Progressing") == (
        "Unknown",
        "DeploymentPaused",
        "Deployment is paused",
    )
    cluster.api.change("deployments.apps", "ns/web", {"spec": {"paused": False}})
    rolled_out(cluster, deployment)
    assert images(cluster) == ["pause:2"] * 4


def test_a_rollout_that_stands_still_times_out() -> None:
    cluster = Cluster("deployments", "replicasets")
    a_deployment(cluster, 1, progressDeadlineSeconds=30)
    cluster.settle()
    name = cluster.of("replicasets.apps")[0]["metadata"]["name"]
    cluster.wait(29)
    assert condition(cluster.get("deployments.apps", "web"), "Progressing")[1] == "ReplicaSetUpdated"
    cluster.wait(3)
    text = f'ReplicaSet "{name}" has timed out progressing.'
    assert condition(cluster.get("deployments.apps", "web"), "Progressing") == ("False", "ProgressDeadlineExceeded", text)


def test_only_so_many_old_replica_sets_are_kept() -> None:
    cluster = Cluster("deployments", "replicasets")
    deployment = a_deployment(cluster, 1, revisionHistoryLimit=2)
    rolled_out(cluster, deployment)
    for number in range(2, 7):
        cluster.api.change("deployments.apps", "ns/web", {"spec": {"template": a_template(f"pause:{number}")}})
        rolled_out(cluster, deployment)
        cluster.wait(1)
    kept = sorted(r["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for r in cluster.of("replicasets.apps"))
    assert kept == ["4", "5", "6"]


def test_the_rollback_annotation_takes_the_old_template() -> None:
    cluster = Cluster("deployments", "replicasets")
    deployment = a_deployment(cluster, 1)
    rolled_out(cluster, deployment)
    cluster.api.change("deployments.apps", "ns/web", {"spec": {"template": a_template("pause:2")}})
    rolled_out(cluster, deployment)
    cluster.api.change("deployments.apps", "ns/web", {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "0"}}})
    rolled_out(cluster, deployment)
    assert images(cluster) == ["pause:1"]
    assert "deprecated.deployment.rollback.to" not in cluster.get("deployments.apps", "web")["metadata"]["annotations"]
    assert cluster.events("DeploymentRollback") == ['Rolled back deployment "web" to revision 1']


def test_a_deployment_takes_up_a_fitting_replica_set_without_owner() -> None:
    cluster = Cluster("deployments", "replicasets")
    replica_set = a_replica_set(cluster, 2)
    cluster.api.change("replicasets.apps", "ns/web", {"metadata": {"labels": LABELS}, "spec": {"template": a_template("pause:1")}})
    deployment = a_deployment(cluster, 2)
    rolled_out(cluster, deployment)
    [adopted] = cluster.of("replicasets.apps")
    assert adopted["metadata"]["uid"] == replica_set["metadata"]["uid"]
    assert adopted["metadata"]["ownerReferences"][0]["kind"] == "Deployment"


def test_a_failing_replica_set_shows_in_its_deployment() -> None:
    cluster = Cluster("deployments", "replicasets")

    def full(request: ApiRequest) -> None:
        if request.verb == "create" and request.resource == "pods":
            raise Refusal(403, "Forbidden", "exceeded quota")

    cluster.api.refuse = full
    a_deployment(cluster, 1)
    cluster.wait(1)
    assert condition(cluster.get("deployments.apps", "web"), "ReplicaFailure") == ("True", "FailedCreate", "exceeded quota")


def a_set(name: str, replicas: int, available: int, age: int, maximum: int | None = None) -> ReplicaSet:
    annotations = {} if maximum is None else {rollout.MAXIMUM: str(maximum)}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": name,
                "creationTimestamp": as_time(NOW - seconds(age)),
                "annotations": annotations,
            },
            "spec": {"replicas": replicas},
            "status": {"replicas": replicas, "availableReplicas": available},
        },
        ReplicaSet,
    )


@pytest.mark.parametrize(
    ("replicas", "sizes", "expected"),
    [
        (12, (10, 0), (12, 0)),
        (15, (8, 5), (11, 7)),  # 18 allowed; of 13 with a maximum of 13
        (5, (8, 5), (5, 3)),
        (0, (8, 5), (0, 0)),
    ],
)
def test_scaling_amid_a_rollout_is_proportional(replicas: int, sizes: tuple[int, int], expected: tuple[int, int]) -> None:
    deployment = Deployment(spec=_spec(replicas, 3 if replicas else 1, 2))
    old, new = a_set("old", sizes[0], sizes[0], 100, 13), a_set("new", sizes[1], 0, 10, 13)
    steps = {s.replica_set.metadata.name: s.replicas for s in rollout.scaling_steps(deployment, new, [old])}
    assert (steps.get("old", sizes[0]), steps.get("new", sizes[1])) == expected


@pytest.mark.parametrize(
    ("old", "new", "steps"),
    [
        ((10, 10), (0, 0), {"new": 3}),
        ((10, 10), (3, 0), {"old": 8}),
        ((8, 8), (3, 0), {"new": 5}),
        ((8, 7), (5, 0), {}),  # one old pod is sick, but removing it would not help the new ones
        ((8, 8), (5, 2), {"old": 6}),
        ((8, 4), (5, 4), {"old": 4}),  # the four sick ones
        ((2, 2), (10, 10), {"old": 0}),
        ((3, 3), (12, 9), {"new": 10}),
    ],
)
def test_the_steps_of_a_rolling_update(old: tuple[int, int], new: tuple[int, int], steps: dict[str, int]) -> None:
    deployment = Deployment(spec=_spec(10, 3, 2))
    found = rollout.rolling_steps(deployment, a_set("new", *new, 1), [a_set("old", *old, 100)])
    assert {step.replica_set.metadata.name: step.replicas for step in found} == steps


@settings(max_examples=300)
@given(
    replicas=st.integers(1, 30),
    surge=st.one_of(st.integers(0, 10), st.sampled_from(["10%", "25%", "100%"])),
    unavailable=st.one_of(st.integers(0, 10), st.sampled_from(["10%", "25%", "100%"])),
    old=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=3),
    new=st.tuples(st.integers(0, 30), st.integers(0, 30)),
)
def test_no_rolling_step_breaks_a_bound_that_held(
    replicas: int, surge: Any, unavailable: Any, old: list[tuple[int, int]], new: tuple[int, int]
) -> None:
    deployment = Deployment(spec=_spec(replicas, surge, unavailable))
    others = [a_set(f"old-{n}", size, min(size, ready), 1000 - n) for n, (size, ready) in enumerate(old)]
    newest = a_set("new", new[0], min(new), 1)
    steps = {s.replica_set.metadata.name: s.replicas for s in rollout.rolling_steps(deployment, newest, others)}
    before = [*others, newest]
    sizes = {r.metadata.name: steps.get(r.metadata.name, r.spec.replicas) for r in before}
    assert all(size >= 0 for size in sizes.values())
    most = replicas + rollout.max_surge(deployment)
    assert sum(sizes.values()) <= max(most, rollout.total(before))
    least = replicas - rollout.max_unavailable(deployment)
    available = sum(r.status.available_replicas for r in before)
    left = sum(min(sizes[r.metadata.name], r.status.available_replicas) for r in before if r is not newest)
    left += newest.status.available_replicas if sizes["new"] >= newest.spec.replicas else min(sizes["new"], new[1])
    if newest.spec.replicas <= replicas:
        assert left >= min(least, available)


def test_two_templates_have_two_hashes_and_order_does_not_matter() -> None:
    one, two = a_template("pause:1"), a_template("pause:2")
    turned = {"spec": one["spec"], "metadata": one["metadata"]}
    assert rollout.template_hash(one, None) == rollout.template_hash(turned, None) != rollout.template_hash(two, None)
    assert rollout.template_hash(one, 1) != rollout.template_hash(one, None)
