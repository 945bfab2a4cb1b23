"""The scheduler is frozen, thawed and killed while resizes need room: they get it, at the price that they had to have."""

import json
import re
from pathlib import Path
from typing import Any

from elbowroom.api import resources
from elbowroom.api.objects import Pod
from elbowroom.deploy.explore.cluster import is_settled
from elbowroom.testing.cluster import Cluster, running, until

GI = 1 << 30
JUDGED = [f"I-{number:02}" for number in (6, *range(22, 34))]
LOW = ["batch-1", "batch-2", "batch-3"]


def test_a_scheduler_that_is_frozen_or_killed_takes_no_more_than_it_must(tmp_path: Path) -> None:
    with running(tmp_path, "--nodes", "1", "--node-memory", "4Gi") as cluster:
        _populate(cluster)

        cluster.elbowroom("kill", "scheduler", "--signal", "STOP")
        _resize(cluster, "2Gi")
        until("the kubelet waits for room", lambda: _pending(cluster) == "Deferred")
        _add_pod(cluster, "late", "low", "256Mi")
        until("another pod waits, too", lambda: "late" in cluster.pods())
        assert not _ending(cluster), "nobody chooses victims while the scheduler is frozen"
        cluster.elbowroom("kill", "scheduler", "--signal", "CONT")
        until("2Gi are in force", lambda: _in_force(cluster, 2), state=cluster.state)
        assert _left(cluster) == ["batch-1", "batch-2"], "the youngest had to go, and no more"
        assert not cluster.pods()["late"].spec.node_name, "the room that a resize asks for is no one else's"

        _resize(cluster, "3Gi")
        until("a victim is ending", lambda: _ending(cluster) == ["batch-2"])
        restarts = cluster.restarts("scheduler")
        cluster.elbowroom("kill", "scheduler")
        until("the scheduler is back", lambda: cluster.restarts("scheduler") == restarts + 1)
        until("3Gi are in force", lambda: _in_force(cluster, 3), state=cluster.state)
        assert _left(cluster) == ["batch-1"], "its successor told nobody else to go"

        history = cluster.status()["history"]
        cluster.elbowroom("down")
        report = cluster.elbowroom("check", history)
    looked_at = {found[1]: int(found[2]) for found in re.finditer(r"(I-\d+) +held +(\d+) looked at", report)}
    assert set(JUDGED) <= set(looked_at), report
    assert all(looked_at[each] for each in ("I-06", "I-22", "I-23", "I-24", "I-25", "I-28", "I-31", "I-33")), report


def _populate(cluster: Cluster) -> None:
    """A node of 4Gi full of four pods, of which three may have to go; each of them takes three seconds to end."""
    for name, value in (("high", 1000), ("low", 10)):
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        cluster.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    for name in ("web", *LOW):
        _add_pod(cluster, name, "high" if name == "web" else "low", "1Gi")
        begun = until(f"{name} runs", lambda name=name: _started(cluster, name))  # type: ignore[misc]
        until("a second has passed", lambda begun=begun: _seconds(cluster) > begun)  # type: ignore[misc]


def _add_pod(cluster: Cluster, name: str, priority: str, memory: str) -> None:
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "100m", "memory": memory}}}
    meta = {"name": name, "annotations": {"elbowroom.dev/workload": json.dumps({"c": {"stopSeconds": None}})}}
    spec = {"priorityClassName": priority, "terminationGracePeriodSeconds": 3, "containers": [container]}
    cluster.ask("POST", "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def _seconds(cluster: Cluster) -> str:
    """The API server's clock in whole seconds: pods whose start times are the same are equally important."""
    review = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clock"}}
    made: dict[str, Any] = cluster.ask("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", review)
    stamp: str = made["metadata"]["creationTimestamp"]
    return stamp


def _started(cluster: Cluster, name: str) -> str | None:
    pod = cluster.pods()[name]
    return pod.status.start_time if pod.status.phase == "Running" else None


def _resize(cluster: Cluster, memory: str) -> None:
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": memory}}}]}}
    cluster.ask("PATCH", "/api/v1/namespaces/default/pods/web/resize", body, kind="application/strategic-merge-patch+json")


def _pending(cluster: Cluster) -> str:
    pending = cluster.pods()["web"].condition("PodResizePending")
    return pending.reason if pending is not None else ""


def _in_force(cluster: Cluster, memory_gi: int) -> Pod | None:
    pod = cluster.pods()["web"]
    return pod if is_settled(pod) and resources.actual_requests(pod)["memory"] == memory_gi * GI else None


def _ending(cluster: Cluster) -> list[str]:
    return sorted(name for name, pod in cluster.pods().items() if pod.is_terminating)


def _left(cluster: Cluster) -> list[str]:
    return sorted(name for name, pod in cluster.pods().items() if name in LOW and not pod.is_terminating)
