"""What a user sees of a resize, step by step: the answer, what a watch tells, the events, and ``describe``.

The expected values are those of a real server of that release (profile ``v1.37``), with a real kubelet.
"""

import json
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest

from elbowroom.rpc import STRATEGIC_PATCH
from elbowroom.testing.cluster import Cluster, running, until

pytestmark = pytest.mark.kubectl

PODS = "/api/v1/namespaces/default/pods"
PAUSE = "registry.k8s.io/pause:3.10"
STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
READY = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    options = ("--nodes", "1", "--node-cpu", "2", "--node-memory", "4Gi", "--profile", "v1.37")
    with running(tmp_path_factory.mktemp("stories"), *options) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def empty(cluster: Cluster) -> Iterator[None]:
    """The next story finds the nodes empty."""
    yield
    cluster.kubectl("delete", "pods", "--all", "--now")


class Story:
    """A pod, from the moment it runs."""

    def __init__(self, cluster: Cluster, name: str, resources: dict[str, Any], node: str = "node-1", **spec: Any) -> None:
        self.cluster, self.name = cluster, name
        self.path = f"{PODS}/{name}"
        container = {"name": "c", "image": PAUSE, "resources": resources}
        hostname = {"kubernetes.io/hostname": node}
        whole = {"containers": [container], "nodeSelector": hostname, "terminationGracePeriodSeconds": 0, **spec}
        cluster.ask("POST", PODS, {"metadata": {"name": name}, "spec": whole})
        self.ran = int(until(f"{name} runs", self._running)["metadata"]["resourceVersion"])

    def _running(self) -> dict[str, Any] | None:
        pod = self.cluster.ask("GET", self.path)
        statuses = pod["status"].get("containerStatuses", [{}])
        settled = statuses[0].get("ready") and pod["status"].get("resources") is not None
        return pod if settled else None

    def resize(self, **resources: Any) -> dict[str, Any]:
        """The answer."""
        body = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
        return self.cluster.ask("PATCH", f"{self.path}/resize", body, kind=STRATEGIC_PATCH)

    def until_condition(self, reason: str) -> None:
        until(f"{self.name} is {reason}", lambda: reason in [c.get("reason") for c in self._conditions()])

    def until_done(self, cpu: str) -> None:
        def done() -> bool:
            pod = self.cluster.ask("GET", self.path)
            has = pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"]
            return has == cpu and not any(c["type"].startswith("PodResize") for c in pod["status"]["conditions"])

        until(f"{self.name} has {cpu}", done)

    def _conditions(self) -> list[dict[str, Any]]:
        return list(self.cluster.ask("GET", self.path)["status"]["conditions"])

    def told(self) -> list[tuple[Any, ...]]:
        """What a watch was told since the pod ran: generation, observed generation, cpu desired, allocated, actual, and the
        resize conditions."""
        query = f"?watch=1&fieldSelector=metadata.name={self.name}&resourceVersion={self.ran}&timeoutSeconds=1"
        lines = self.cluster.kubectl("get", "--raw", PODS + query).splitlines()
        return [shape(event["object"]) for event in map(json.loads, lines) if event["type"] == "MODIFIED"]

    def events(self) -> list[tuple[str, str, str]]:
        """Type, reason and message of the kubelet's events about the resize."""
        found = self.cluster.ask("GET", f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={self.name}")["items"]
        own = [event for event in found if event["reason"].startswith("Resize")]
        assert all(event["source"]["component"] == event["reportingComponent"] == "kubelet" for event in own)
        assert all(event["involvedObject"]["kind"] == "Pod" and "fieldPath" not in event["involvedObject"] for event in own)
        own.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [(event["type"], event["reason"], event["message"]) for event in own]

    def described(self) -> tuple[list[str], dict[str, str]]:
        """Of ``kubectl describe``: the conditions' lines, and the events' messages by reason."""
        lines = self.cluster.kubectl("describe", "pod", self.name).splitlines()
        conditions = takewhile(lambda line: line.startswith(" "), lines[lines.index("Conditions:") + 2 :])
        told = [line.split(None, 4) for line in lines[lines.index("Events:") + 3 :]]
        return [" ".join(line.split()) for line in conditions], {line[1]: line[-1] for line in told}


def shape(pod: dict[str, Any]) -> tuple[Any, ...]:
    status = pod["status"]["containerStatuses"][0]
    conditions = [
        tuple(condition.get(name) for name in ("type", "observedGeneration", "status", "reason", "message"))
        for condition in pod["status"]["conditions"]
        if condition["type"].startswith("PodResize")
    ]
    return (
        pod["metadata"]["generation"],
        pod["status"]["observedGeneration"],
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"],
        status["allocatedResources"]["cpu"],
        status["resources"]["requests"]["cpu"],
        conditions,
    )


def payload(generation: int, error: str = "", **resources: Any) -> str:
    """The JSON in an event's message."""
    whole: dict[str, Any] = {"containers": [{"name": "c", "resources": resources}], "generation": generation}
    return json.dumps({**whole, **({"error": error} if error else {})}, separators=(",", ":"))


def test_a_resize_that_fits_is_seen_allocated_then_in_force(cluster: Cluster) -> None:
    limits = {"cpu": "1", "memory": "512Mi"}
    story = Story(cluster, "fits", {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": limits})
    answer = story.resize(requests={"cpu": "800m"})
    assert shape(answer) == (2, 1, "800m", "500m", "500m", [])
    story.until_done("800m")
    progress = ("PodResizeInProgress", 2, "True", None, None)
    assert story.told() == [
        (2, 1, "800m", "500m", "500m", []),
        (2, 2, "800m", "800m", "500m", [progress]),
        (2, 2, "800m", "800m", "800m", []),
    ]
    whole = payload(2, limits=limits, requests={"cpu": "800m", "memory": "256Mi"})
    assert story.events() == [
        ("Normal", "ResizeStarted", f"Pod resize started: {whole}"),
        ("Normal", "ResizeCompleted", f"Pod resize completed: {whole}"),
    ]
    conditions, events = story.described()
    assert conditions == [f"{name} True" for name in READY]
    assert events["ResizeCompleted"] == f"Pod resize completed: {whole}"


def test_a_resize_without_room_waits_and_goes_on_when_another_shrinks(cluster: Cluster) -> None:
    waiting = Story(cluster, "waits", {"requests": {"cpu": "800m", "memory": "256Mi"}})
    other = Story(cluster, "shrinks", {"requests": {"cpu": "800m", "memory": "256Mi"}})
    assert shape(waiting.resize(requests={"cpu": "1500m"})) == (2, 1, "1500m", "800m", "800m", [])
    waiting.until_condition("Deferred")
    why = "Node didn't have enough resource: cpu, requested: 1500, used: 800, capacity: 2000"
    pending = ("PodResizePending", 2, "True", "Deferred", why)
    before = [(2, 1, "1500m", "800m", "800m", []), (2, 2, "1500m", "800m", "800m", [pending])]
    assert waiting.told() == before
    wanted = {"cpu": "1500m", "memory": "256Mi"}
    deferred = ("Warning", "ResizeDeferred", f"Pod resize OutOfcpu: {payload(2, why, requests=wanted)}")
    assert waiting.events() == [deferred]
    conditions, events = waiting.described()
    assert conditions == [f"{name} True" for name in ("PodResizePending", *READY)]
    assert events["ResizeDeferred"] == deferred[2]

    other.resize(requests={"cpu": "300m"})
    waiting.until_done("1500m")
    assert waiting.told() == [
        *before,
        (2, 2, "1500m", "1500m", "800m", [("PodResizeInProgress", 2, "True", None, None)]),
        (2, 2, "1500m", "1500m", "1500m", []),
    ]
    whole = payload(2, requests=wanted)
    assert waiting.events() == [
        deferred,
        ("Normal", "ResizeStarted", f"Pod resize started: {whole}"),
        ("Normal", "ResizeCompleted", f"Pod resize completed: {whole}"),
    ]


def test_a_resize_that_its_node_never_does_is_infeasible(cluster: Cluster) -> None:
    capacity = {"cpu": "3", "memory": "4Gi", "pods": "110"}
    annotations = {"elbowroom.dev/node": "emulated", "elbowroom.dev/kubelet-config": json.dumps(STATIC)}
    node = {"metadata": {"name": "pinned", "annotations": annotations}, "status": {"capacity": capacity, "allocatable": capacity}}
    cluster.ask("POST", "/api/v1/nodes", node)
    cluster.kubectl("wait", "node/pinned", "--for=condition=Ready", "--timeout=20s")
    one = {"cpu": "1", "memory": "256Mi"}
    story = Story(cluster, "never", {"requests": one, "limits": one}, node="pinned")
    two = {"cpu": "2", "memory": "256Mi"}
    assert shape(story.resize(requests=two, limits=two)) == (2, 1, "2", "1", "1", [])
    story.until_condition("Infeasible")
    why = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
    pending = ("PodResizePending", 2, "True", "Infeasible", why)
    assert story.told() == [(2, 1, "2", "1", "1", []), (2, 2, "2", "1", "1", [pending])]
    said = f"Pod resize Infeasible: {payload(2, why, limits=two, requests=two)}"
    assert story.events() == [("Warning", "ResizeInfeasible", said)]
    conditions, events = story.described()
    assert conditions == [f"{name} True" for name in ("PodResizePending", *READY)]
    assert events["ResizeInfeasible"] == said

    story.resize(requests=one, limits=one)
    until("the wish is withdrawn", lambda: not any(c["type"] == "PodResizePending" for c in story._conditions()))
    assert story.told()[-1] == (3, 3, "1", "1", "1", [])
    assert story.events() == [("Warning", "ResizeInfeasible", said)]
