"""Pods of a node's own in a whole cluster, with the real API server, while processes die."""

from typing import Any

import msgspec
import pytest

from elbowroom.deploy.explore.cluster import SimulatedCluster
from elbowroom.history.records import History
from elbowroom.history.report import judge
from elbowroom.rpc import delete

NODE, MIRROR = "node-1", "default/web-node-1"
PATH = "/etc/kubernetes/manifests"
HASH = "kubernetes.io/config.hash"


def a_manifest(cpu: str) -> bytes:
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    spec = {"priorityClassName": "system-node-critical", "terminationGracePeriodSeconds": 1, "containers": [container]}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})


def a_cluster(seed: int, cpu: str = "500m") -> SimulatedCluster:
    cluster = SimulatedCluster(seed)
    cluster.add_node(NODE, annotations={"elbowroom.dev/kubelet-config": msgspec.json.encode({"staticPodPath": PATH}).decode()})
    cluster.world.put_files(f"kubelet/{NODE}", PATH, {"web.yaml": a_manifest(cpu)})
    return cluster


def mirror(cluster: SimulatedCluster) -> Any:
    return cluster.pods.store.get(MIRROR)


def runs(cluster: SimulatedCluster, cpu: str, other_than: str = "") -> bool:
    pod = mirror(cluster)
    if pod is None or pod.uid == other_than or pod.status.phase != "Running" or pod.is_terminating:
        return False
    return [s.allocated_resources for s in pod.status.container_statuses] == [{"cpu": cpu, "memory": "64Mi"}]


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_static_pod_and_its_mirror_outlive_whoever_dies(seed: int) -> None:
    cluster = a_cluster(seed)
    world = cluster.world
    cluster.until("the pod runs and is mirrored", lambda: runs(cluster, "500m"))
    first = mirror(cluster)
    assert first.spec.priority == 2_000_001_000 and first.metadata.owner_references[0].name == NODE
    for victim in (f"kubelet/{NODE}", "apiserver", f"runtime/{NODE}"):
        uid = mirror(cluster).uid
        cluster.ask(delete("pods", "web-node-1", namespace="default"), allowed=(404,))
        world.crash(victim)
        cluster.until(f"the mirror is back though {victim} died", lambda uid=uid: runs(cluster, "500m", uid))  # type: ignore[misc]
    assert mirror(cluster).metadata.annotations[HASH] == first.metadata.annotations[HASH]
    assert mirror(cluster).status.container_statuses[0].container_id == first.status.container_statuses[0].container_id
    world.put_files(f"kubelet/{NODE}", PATH, {"web.yaml": a_manifest("1"), "bad.yaml": b"{"})
    world.crash(f"kubelet/{NODE}")
    cluster.until("the changed pod runs", lambda: runs(cluster, "1"))
    assert mirror(cluster).metadata.annotations[HASH] != first.metadata.annotations[HASH]
    world.put_files(f"kubelet/{NODE}", PATH, {})
    cluster.until("the pod and its mirror are gone", lambda: mirror(cluster) is None)
    world.run_for(2)
    world.close()
    failures = judge(History.of(world.history)).failures
    assert not failures, failures[:3]


def test_the_scheduler_counts_a_static_pod_and_a_seed_replays_it() -> None:
    hashes = []
    for _ in range(2):
        cluster = a_cluster(7, cpu="3")
        cluster.until("the pod runs", lambda: runs(cluster, "3"))  # noqa: B023
        cluster.add_pod("other", "", "64Mi", cpu="2")
        cluster.world.run_for(5)
        assert cluster.pod("other").spec.node_name == "", "there is no room beside the static pod"
        cluster.world.close()
        hashes.append(cluster.world.history_hash())
    assert hashes[0] == hashes[1]
