"""A component dies at each step of a resize by preemption: the resize still comes into force, at the price it had to have."""

from collections.abc import Iterator
from typing import Any

import pytest

from elbowroom.api import resources
from elbowroom.api.objects import Pod
from elbowroom.deploy.explore.cluster import is_settled
from elbowroom.testing.cluster import Cluster, running, until

KUBELET = [
    *("K3", "K4", "K5", "K6", "K7", "K8"),  # judged, and the allocation's way to the disk
    *("K9", "K13.1", "K14.1"),  # memory grows: the pod's cgroup, then the container
    *("K10.2", "K11.2", "K12"),  # cpu shrinks: the container, then the pod's cgroup
    *("K15", "K16"),  # recorded, reported
]
RUNTIME = ["T1", "T2", "T3"]
SCHEDULER = ["S5", "S6.1", "S7.1"]
APISERVER = ["A5", "A6", "A7", "A8", "A9", "A10"]
CASES = [
    *[("kubelet", label, 1) for label in KUBELET],
    *[("runtime", label, 1) for label in RUNTIME],
    *[("scheduler", label, 1) for label in SCHEDULER],
    *[("apiserver", label, 3) for label in APISERVER],  # not at the resize itself, but at a write that follows from it
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("failpoints"), "--nodes", "0") as cluster:
        for name, value in (("high", 1000), ("low", 10)):
            body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
            cluster.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
        yield cluster


@pytest.mark.parametrize(("kind", "label", "hits"), CASES, ids=[f"{kind} at {label}" for kind, label, _ in CASES])
def test_a_resize_by_preemption_outlives_a_death_at(cluster: Cluster, kind: str, label: str, hits: int) -> None:
    node = f"{kind[0]}-{label.lower().replace('.', '-')}"
    web, batch = f"{node}-web", [f"{node}-batch-{number}" for number in range(3)]
    component = f"{kind}/{node}" if kind in ("kubelet", "runtime") else kind
    _add_node(cluster, node)
    _add_pod(cluster, web, node, "high", {"cpu": "1", "memory": "1Gi"}, guaranteed=True)
    for name in batch:
        _add_pod(cluster, name, node, "low", {"cpu": "500m", "memory": "1Gi"})
    before = until("all four pods run", lambda: _all_run(cluster, web, *batch))
    restarts = cluster.restarts(component)
    cluster.elbowroom("kill", component, "--at", label, "--hits", str(hits))

    amounts = {"cpu": "800m", "memory": "3Gi"}
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}]}}
    path = f"/api/v1/namespaces/default/pods/{web}/resize"
    cluster.ask("PATCH", path, body, kind="application/strategic-merge-patch+json")

    after = until(f"{web} has what it asked for", lambda: _in_force(cluster, web), state=cluster.state)
    until(f"{component} died at {label}", lambda: cluster.restarts(component) == restarts + 1)
    left = until("the victims are gone", lambda: _if_none_ends(cluster, *batch))
    assert len(left) == 1, "two victims had to go, and no more"
    for pod in (after, *left):
        was = before[pod.metadata.name].status.container_statuses[0]
        now = pod.status.container_statuses[0]
        assert (now.restart_count, now.container_id) == (0, was.container_id)

    for name in (web, *batch):
        cluster.ask("DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0")
    cluster.ask("DELETE", f"/api/v1/nodes/{node}")


def _add_node(cluster: Cluster, name: str) -> None:
    labels, annotations = {"kubernetes.io/hostname": name}, {"elbowroom.dev/node": "emulated"}
    capacity = {"cpu": "4", "memory": "4Gi", "pods": "110"}
    meta = {"name": name, "labels": labels, "annotations": annotations}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"capacity": capacity, "allocatable": capacity}}
    cluster.ask("POST", "/api/v1/nodes", node)


def _add_pod(cluster: Cluster, name: str, node: str, priority: str, requests: dict[str, str], *, guaranteed: bool = False) -> None:
    amounts: dict[str, Any] = {"requests": requests, **({"limits": requests} if guaranteed else {})}
    spec = {
        "priorityClassName": priority,
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": amounts}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    cluster.ask("POST", "/api/v1/namespaces/default/pods", pod)


def _all_run(cluster: Cluster, *names: str) -> dict[str, Pod] | None:
    pods = cluster.pods()
    found = {name: pods[name] for name in names if name in pods and pods[name].status.phase == "Running"}
    return found if len(found) == len(names) else None


def _in_force(cluster: Cluster, name: str) -> Pod | None:
    pod = cluster.pods()[name]
    wanted = {"cpu": 800, "memory": 3 << 30}
    return pod if is_settled(pod) and resources.actual_requests(pod) == wanted == resources.spec_requests(pod) else None


def _if_none_ends(cluster: Cluster, *names: str) -> list[Pod] | None:
    """Those of the pods that are left, once none of them is on its way out."""
    left = [pod for name, pod in cluster.pods().items() if name in names]
    return None if any(pod.is_terminating for pod in left) else left
