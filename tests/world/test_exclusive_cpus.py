"""A node that gives processors away, in the simulated world: whoever dies when, none is lost and none given twice."""

import random
from typing import Any

import pytest

from elbowroom.api.gates import profile_of
from elbowroom.deploy.explore.cluster import SimulatedCluster
from elbowroom.history.processors import processors
from elbowroom.rpc import create, delete
from elbowroom.sim import nemesis

NODE = "node-1"
NOTES = {
    "elbowroom.dev/machine": '{"sockets":2,"numaNodesPerSocket":1,"coresPerNuma":4,"threadsPerCore":2}',
    "elbowroom.dev/kubelet-config": (
        '{"cpuManagerPolicy":"static","reservedSystemCPUs":"0,8","cpuManagerReconcilePeriod":"1s",'
        '"topologyManagerPolicy":"best-effort","topologyManagerScope":"pod"}'
    ),
}
PEERS = ("apiserver", f"kubelet/{NODE}", f"runtime/{NODE}")
LINKS = ((f"kubelet/{NODE}", "apiserver"), (f"kubelet/{NODE}", f"runtime/{NODE}"))
WITHIN = 300.0


def a_container(name: str, cpu: str, *, bound: bool = True) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "64Mi"}
    resources = {"requests": amounts, "limits": amounts} if bound else {"requests": amounts}
    return {"name": name, "image": "registry.k8s.io/pause:3.10", "resources": resources}


def a_pod(name: str, *containers: dict[str, Any], level: str = "") -> dict[str, Any]:
    amounts = {"cpu": level, "memory": "1Gi"}
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 1, "containers": list(containers)}
    if level:
        spec["resources"] = {"requests": amounts, "limits": amounts}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def some_pod(rng: random.Random, name: str) -> dict[str, Any]:
    """One that has processors of its own, shares, or has a set for its containers."""
    match rng.choice(("own", "own", "two", "fraction", "burstable", "whole")):
        case "own":
            return a_pod(name, a_container("c", str(rng.randint(1, 4))))
        case "two":
            return a_pod(name, a_container("c", "1"), a_container("d", "1500m"))
        case "fraction":
            return a_pod(name, a_container("c", "500m"))
        case "burstable":
            return a_pod(name, a_container("c", "200m", bound=False))
        case _:
            return a_pod(name, a_container("c", "2"), {"name": "d", "image": "registry.k8s.io/pause:3.10"}, level="4")


def told(seed: int, faults: bool, profile: str) -> SimulatedCluster:
    """Pods come and go while processes die; then all is quiet, and the pods that are left run."""
    rng = random.Random(f"{seed}/exclusive")
    cluster = SimulatedCluster(seed, profile_of(profile))
    cluster.add_node(NODE, cpu="16", memory="8Gi", annotations=NOTES)
    if faults:
        nemesis.unleash(cluster.world, nemesis.plan(seed, list(PEERS), list(LINKS), duration=8.0, count=6))
    alive: list[str] = []
    for number in range(10):
        if alive and rng.random() < 0.4:
            gone = alive.pop(rng.randrange(len(alive)))
            cluster.ask(delete("pods", gone, namespace="default"), allowed=(404,))
        name = f"pod-{number}"
        cluster.ask(create("pods", some_pod(rng, name), namespace="default"))
        alive.append(name)
        cluster.world.run_for(rng.choice((0.0, 0.2, 1.0)))
    cluster.world.calm()
    cluster.until("whoever was placed runs or has failed", lambda: all(is_decided(cluster, name) for name in alive), WITHIN)
    cluster.world.run_for(15.0)
    return cluster


def is_decided(cluster: SimulatedCluster, name: str) -> bool:
    pod = cluster.pods.store.get(f"default/{name}")
    return pod is not None and (not pod.spec.node_name or pod.is_terminal or pod.status.phase == "Running")


@pytest.mark.parametrize("profile", ["lab", "v1.37"])
@pytest.mark.parametrize(("first", "faults"), [(1, False), (11, True)])
def test_no_processor_is_lost_or_given_twice(first: int, faults: bool, profile: str) -> None:
    given = compared = 0
    for seed in range(first, first + 4):
        cluster = told(seed, faults, profile)
        report = cluster.verdict()
        assert not report.failures, f"seed {seed}: {report.failures[0].message}"
        account = [record for record in cluster.world.history if record["kind"] == "kl.cpus"]
        given += sum(len(record["entries"]) for record in account)
        shared = account[-1]["default"]
        for pod in cluster.pods.store.values():
            if pod.status.phase == "Running" and pod.spec.node_name:
                for container in pod.spec.containers:
                    entry = account[-1]["entries"].get(pod.uid, {})
                    where = [r for r in placements(cluster) if (r["uid"], r["name"]) == (pod.uid, container.name)][-1]
                    assert processors(text_of(where)) == processors(entry.get(container.name, shared)), f"seed {seed}: {pod.key}"
                    compared += 1
    assert given > 20 and compared > 10, "too little was given away"


def placements(cluster: SimulatedCluster) -> list[Any]:
    return [record for record in cluster.world.history if record["kind"] in ("rt.create", "rt.cpuset")]


def text_of(record: Any) -> str:
    return str(record["cpus"] if record["kind"] == "rt.cpuset" else record["cfg"]["cpuset_cpus"])
