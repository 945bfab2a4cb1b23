"""Whatever happens in a cluster, these hold once it is at rest."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cluster import Cluster, deferred, node, pod
from scheduler_worlds import info_of

from elbowroom.scheduler.podinfo import is_deferred
from elbowroom.scheduler.recorder import truncated
from elbowroom.wire import ApiRequest, ApiResponse, Code

NODES = ("n1", "n2")
NAMES = tuple("abcdef")

moves = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(NAMES), st.integers(1, 4), st.integers(0, 3)),
    st.tuples(st.just("resize"), st.sampled_from(NAMES), st.integers(1, 4)),
    st.tuples(st.just("grant"), st.sampled_from(NAMES)),
    st.tuples(st.just("end"), st.sampled_from(NAMES)),
    st.tuples(st.just("reap")),
    st.tuples(st.just("wait"), st.sampled_from([0.3, 1.5, 11.0])),
    st.tuples(st.just("node"), st.sampled_from(NODES), st.integers(2, 6)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("reconnect")),
)


class Unreliable:
    """Some answers are lost, some requests refused for now."""

    def __init__(self, draws: list[int]) -> None:
        self.draws = draws

    def __call__(self, request: ApiRequest) -> Code | ApiResponse | None:
        match self.draws.pop() if self.draws else 9:
            case 0:
                return Code.UNAVAILABLE
            case 1:
                return ApiResponse(503)
            case _:
                return None


def play(cluster: Cluster, move: tuple[Any, ...]) -> None:
    match move:
        case ("create", name, cpu, priority) if f"default/{name}" not in cluster.documents["pods"]:
            cluster.pods(pod(name, cpu=f"{cpu}", priority=priority))
        case ("resize", name, cpu) if cluster.documents["pods"].get(f"default/{name}", {"spec": {}})["spec"].get("nodeName"):
            held = cluster.pod(name)
            granted = held["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            if "containerStatuses" in held["status"]:
                granted = held["status"]["containerStatuses"][0]["allocatedResources"]["cpu"]
            wished = deferred(name, held["spec"]["nodeName"], f"{cpu}", granted, held["spec"]["priority"])
            if "deletionTimestamp" not in held["metadata"]:
                cluster.pods(wished)
        case ("grant", name) if f"default/{name}" in cluster.documents["pods"]:
            held = cluster.pod(name)
            if held["spec"].get("nodeName") and "deletionTimestamp" not in held["metadata"]:
                cpu = held["spec"]["containers"][0]["resources"]["requests"]["cpu"]
                cluster.pods(pod(name, node=held["spec"]["nodeName"], cpu=cpu, allocated=cpu, priority=held["spec"]["priority"]))
        case ("end", name) if f"default/{name}" in cluster.documents["pods"]:
            cluster.gone(name)
        case ("reap",):
            for document in list(cluster.documents["pods"].values()):
                if "deletionTimestamp" in document["metadata"]:
                    cluster.gone(document["metadata"]["name"])
        case ("wait", amount):
            cluster.later(amount)
        case ("node", name, cpu):
            cluster.nodes(node(name, cpu=f"{cpu}"))
        case ("restart",):
            cluster.restart()
        case ("reconnect",):
            cluster.reconnect()
    cluster.settle()


@settings(max_examples=120, deadline=None)
@given(st.lists(moves, max_size=30), st.lists(st.integers(0, 9), max_size=40), st.integers(0, 3))
def test_at_rest_the_scheduler_knows_what_the_api_server_knows(
    history: list[tuple[Any, ...]], faults: list[int], seed: int
) -> None:
    cluster = Cluster(seed=seed).nodes(node("n1"), node("n2"))
    cluster.judge = Unreliable(faults)
    for move in history:
        play(cluster, move)
    cluster.judge = lambda request: None
    cluster.later(60)
    counted = {
        (name, uid): info.requests
        for name in NODES
        if (tally := cluster.scheduler._cache.node(name)) is not None
        for uid, info in tally.pods.items()
    }
    stored = {
        (document["spec"]["nodeName"], document["metadata"]["uid"]): info_of(document).requests
        for document in cluster.documents["pods"].values()
        if document["spec"].get("nodeName")
    }
    assert counted == stored
    for document in cluster.documents["pods"].values():
        info = info_of(document)
        where = cluster.scheduler._queue.where(info.uid)
        if info.pod.spec.node_name and not is_deferred(info.pod):
            assert where == ""
        elif not info.pod.is_terminating:
            assert where in ("active", "backoff", "unschedulable")
    assert len(cluster.scheduler._actuator) == len(cluster.scheduler._placing) == cluster.scheduler._cache.assumed_count == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(moves, max_size=25), st.lists(st.integers(0, 9), max_size=40), st.integers(0, 3))
def test_no_pod_is_bound_beyond_what_the_node_has(history: list[tuple[Any, ...]], faults: list[int], seed: int) -> None:
    cluster = Cluster(seed=seed).nodes(node("n1"), node("n2"))
    cluster.judge = Unreliable(faults)
    history = [move for move in history if move[0] not in ("node", "resize")]
    for move in history:
        play(cluster, move)
        for name in NODES:
            used = [
                info_of(each).requests["cpu"] for each in cluster.documents["pods"].values() if each["spec"].get("nodeName") == name
            ]
            assert sum(used) <= 4000


@settings(max_examples=40, deadline=None)
@given(st.lists(moves, max_size=25), st.integers(0, 3))
def test_one_seed_makes_one_run(history: list[tuple[Any, ...]], seed: int) -> None:
    runs = []
    for _ in range(2):
        cluster = Cluster(seed=seed).nodes(node("n1"), node("n2"))
        for move in history:
            play(cluster, move)
        runs.append((cluster.notes, cluster.requests, cluster.steps))
    assert runs[0] == runs[1]


def test_a_message_is_cut_at_1024_bytes() -> None:
    assert truncated("x" * 1024) == "x" * 1024
    cut = truncated("é" * 1024)
    assert len(cut.encode()) <= 1024 and cut.endswith("é ...")


def test_a_pod_that_is_ending_is_not_tried() -> None:
    ending = deferred("ending", "n1", "4", "1", 9)
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = Cluster().nodes(node("n1", cpu="2")).pods(pod("low", node="n1", cpu="1"), ending).settle()
    assert cluster.told("ending", "FailedScheduling") == ["skip schedule deleting pod: default/ending"]
    assert cluster.deleted() == []
