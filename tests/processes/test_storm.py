"""A storm of resizes while every component is killed in turn: nothing acknowledged is lost, and everything settles."""

import json
import random
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from elbowroom.api import quantity, resources
from elbowroom.api.objects import Pod
from elbowroom.deploy.explore.cluster import is_settled
from elbowroom.rpc import patch
from elbowroom.testing.cluster import Cluster, running, until

SEED = 20261129
WRITES = 200
CLIENTS = 4
VICTIMS = ("kubelet/node-1", "runtime/node-2", "scheduler", "controllers", "apiserver")
KILLS_EACH = 2
PODS = [f"p-{number}" for number in range(9)]
CPUS = ("100m", "250m", "500m", "800m", "1200m")
MEMORIES = ("256Mi", "512Mi", "1Gi", "1536Mi", "2Gi", "6Gi")
"""The last one is more than a node has."""


@dataclass(frozen=True)
class Written:
    """An acknowledged resize."""

    revision: int
    pod: str
    requests: dict[str, str]


@dataclass
class Storm:
    """What the clients and the nemesis share."""

    cluster: Cluster
    written: list[Written] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    over: bool = False
    failures: list[BaseException] = field(default_factory=list)

    def resize_at_random(self, number: int) -> None:
        """One client: resize after resize, each repeated until it is acknowledged."""
        rng, client = random.Random(f"{SEED}/{number}"), self.cluster.witness(f"storm-{number}")
        try:
            while not (self.over and len(self.written) >= WRITES):
                name = rng.choice(PODS)
                requests = {"cpu": rng.choice(CPUS), "memory": rng.choice(MEMORIES)}
                body = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
                request = patch("pods", name, body, namespace="default", subresource="resize")

                def revision(request: Any = request) -> int:
                    answer = client.send(request)
                    assert answer.status in (0, 200, 409, 429, 500, 503, 504), f"{answer.status} {answer.body!r}"
                    return answer.revision if answer.status == 200 else 0

                found = until(f"a resize of {name} is acknowledged", revision)
                self.written.append(Written(found, name, requests))
        finally:
            client.close()

    def kill_in_turn(self) -> None:
        """The nemesis: each component KILLS_EACH times, each time when so many writes have been acknowledged as the seed drew."""
        rng = random.Random(f"{SEED}/nemesis")
        turns = list(VICTIMS) * KILLS_EACH
        rng.shuffle(turns)
        moments = sorted(rng.sample(range(5, WRITES), len(turns)))
        for component, moment in zip(turns, moments, strict=True):
            until(f"{moment} writes", lambda moment=moment: len(self.written) >= moment or self.failures)  # type: ignore[misc]
            self.cluster.await_running(component)
            self.cluster.elbowroom("kill", component)
            self.killed.append(component)
        self.over = True

    def run(self) -> None:
        def guarded(work: Callable[[], None]) -> None:
            try:
                work()
            except BaseException as why:
                self.failures.append(why)
                self.over = True

        works = [lambda number=number: self.resize_at_random(number) for number in range(CLIENTS)]  # type: ignore[misc]
        threads = [threading.Thread(target=guarded, args=(work,)) for work in (*works, self.kill_in_turn)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for failure in self.failures:
            raise failure


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storm]:
    """The storm is over, and everything has had the time to settle."""
    with running(tmp_path_factory.mktemp("storm"), "--nodes", "3", "--node-memory", "4Gi") as cluster:
        _populate(cluster)
        storm = Storm(cluster)
        storm.run()
        yield storm


def _populate(cluster: Cluster) -> None:
    """Three pods a node that are resized, and a ReplicaSet of small ones that may have to make room."""
    for name, value in (("high", 1000), ("low", 10)):
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        cluster.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    for number, name in enumerate(PODS):
        spec = {"nodeSelector": {"kubernetes.io/hostname": f"node-{number % 3 + 1}"}, **_spec("high", "512Mi")}
        cluster.ask(
            "POST", "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        )
    labels = {"app": "batch"}
    replicas = {"replicas": 6, "selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": _spec("low", "512Mi")}
    body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "batch"},
        "spec": {**replicas, "template": template},
    }
    cluster.ask("POST", "/apis/apps/v1/namespaces/default/replicasets", body)
    until("all pods run", lambda: len(_running(cluster)) == len(PODS) + 6)


def _spec(priority: str, memory: str) -> dict[str, Any]:
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "250m", "memory": memory}}}
    return {"priorityClassName": priority, "terminationGracePeriodSeconds": 1, "containers": [container]}


def _running(cluster: Cluster) -> list[Pod]:
    return [pod for pod in cluster.pods().values() if pod.status.phase == "Running"]


def test_enough_happened_and_every_fault_fired(storm: Storm) -> None:
    assert len(storm.written) >= WRITES
    assert sorted(storm.killed) == sorted(VICTIMS * KILLS_EACH)
    status = json.loads(storm.cluster.elbowroom("status", "-o", "json"))
    restarts = {component["name"]: component["restarts"] for component in status["components"]}
    assert restarts == {name: storm.killed.count(name) for name in restarts}


def test_every_acknowledged_write_is_in_the_api(storm: Storm) -> None:
    last = {written.pod: written for written in sorted(storm.written, key=lambda written: written.revision)}
    now = storm.cluster.pods()
    assert {name: resources.spec_requests(now[name]) for name in PODS} == {
        name: _parsed(last[name].requests) if name in last else _parsed({"cpu": "250m", "memory": "512Mi"}) for name in PODS
    }


def _parsed(requests: dict[str, str]) -> dict[str, int]:
    return {"cpu": quantity.milli_of(requests["cpu"]), "memory": quantity.value_of(requests["memory"])}


def test_everything_settles(storm: Storm) -> None:
    pods = until("all pods have settled", lambda: _all_if_settled(storm.cluster), within=30.0, state=storm.cluster.state)
    assert set(PODS) <= set(pods)
    assert all(status.restart_count == 0 for name in PODS for status in pods[name].status.container_statuses)


def _all_if_settled(cluster: Cluster) -> dict[str, Pod] | None:
    pods = {name: pod for name, pod in cluster.pods().items() if not pod.is_terminal}
    return pods if all(is_settled(pod) and _waits_truly(pod, pods) for pod in pods.values()) else None


def _waits_truly(pod: Pod, pods: dict[str, Pod]) -> bool:
    """If its resize is pending: does it really not fit now, or never?"""
    pending, wanted = pod.condition("PodResizePending"), resources.spec_requests(pod)
    if pending is None:
        return True
    if pending.reason == "Infeasible":
        return wanted["memory"] > 4 << 30
    others = [p for p in pods.values() if p.spec.node_name == pod.spec.node_name and p is not pod]
    used = {resource: sum(resources.allocated_requests(p)[resource] for p in others) for resource in wanted}
    return used["cpu"] + wanted["cpu"] > 4000 or used["memory"] + wanted["memory"] > 4 << 30


def test_the_history_holds(storm: Storm) -> None:
    history = storm.cluster.status()["history"]
    storm.cluster.elbowroom("down")
    report = storm.cluster.elbowroom("check", history)
    assert "BROKEN" not in report
    looked_at = re.search(r"I-34 +held +(\d+) looked at", report)
    assert looked_at is not None and int(looked_at[1]) >= WRITES
    assert len(list(Path(history).glob("apiserver.*.jsonl"))) == KILLS_EACH + 1
    assert f"{len(VICTIMS) * KILLS_EACH} of" in report  # only those that were killed have no end
