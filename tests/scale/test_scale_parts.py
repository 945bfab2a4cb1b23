"""The parts of ``elbowroom scale`` that need no cluster."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.deploy import config
from elbowroom.deploy.bench.gauge import kind_of, queues
from elbowroom.deploy.bench.watching import Pods, Seen
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.main import app
from elbowroom.deploy.scale import command, judging
from elbowroom.deploy.scale.plan import GROWN, HIGH, plan
from elbowroom.deploy.scale.plot import HEIGHT, WIDTH, number, percentiles, plot, rates

GI = 1 << 30


# ---------------------------------------------------------------- the plan


@given(st.integers(1, 300), st.integers(1, 3000))
def test_all_pods_have_room_and_each_that_grows_can_by_one_victim(nodes: int, pods: int) -> None:
    if pods > 100 * nodes:
        with pytest.raises(UserError, match="a node takes 100 at most"):
            plan(nodes, pods)
        return
    made = plan(nodes, pods)
    manifests = [*made.growers(), *made.others()]
    assert len(manifests) == len({manifest["metadata"]["name"] for manifest in manifests}) == pods
    assert pods <= made.room * nodes, "there is room for all"
    required = [m["spec"]["affinity"]["nodeAffinity"] for m in manifests[: made.growing]]
    terms = [each["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]["matchFields"][0] for each in required]
    assert all(term["key"] == "metadata.name" for term in terms)
    alone = [term["values"][0] for term in terms]
    assert len(set(alone)) == made.growing >= 1, "no two that grow share a node"
    assert {m["spec"]["priorityClassName"] for m in manifests[: made.growing]} == {HIGH}
    assert made.room >= int(GROWN.removesuffix("Gi")), "one that grows fits on a node by itself"


def test_a_plan_is_a_cluster_that_can_be_brought_up() -> None:
    spec = config.overlay(config.Cluster(), plan(20, 60).cluster(500, 0.1)).spec
    assert (spec.kubelets_per_process, spec.time_scale) == (500, 0.1)
    assert (spec.nodes[0].count, spec.nodes[0].capacity["memory"]) == (20, "3Gi")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((2, 201, None), "--pods 201: a node takes 100 at most, so 2 nodes take 200"),
        ((2, 10, 3), "--resizes 3: at most one a node and a pod, 2 here"),
        ((5, 2, 3), "--resizes 3: at most one a node and a pod, 2 here"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_before_anything_starts(arguments: tuple[int, int, int | None], why: str) -> None:
    with pytest.raises(UserError) as caught:
        plan(*arguments)
    assert str(caught.value) == why


def test_a_report_that_cannot_be_written_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file or directory"):
        command.run(1, 2, None, 1, 2, 1.0, tmp_path / "absent" / "report.html")


def test_the_command_is_there() -> None:
    assert "scale" in {made.callback.__name__ for made in app.registered_commands if made.callback is not None}


# ---------------------------------------------------------------- the watch


def seen(name: str, phase: str = "", node: str = "", memory: str = "", reason: str = "") -> Seen:
    document = {
        "metadata": {"name": name},
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "conditions": [{"type": "PodResizePending", "reason": reason}] if reason else [],
            "containerStatuses": [{"resources": {"requests": {"memory": memory}}}] if memory else None,
        },
    }
    return msgspec.convert(document, Seen)


def test_pods_are_counted_as_they_come_change_and_go() -> None:
    pods = Pods()
    pods.heard("ADDED", seen("a"))
    pods.heard("MODIFIED", seen("a", node="n"))
    pods.heard("MODIFIED", seen("a", "Running", "n", "1Gi"))
    pods.heard("MODIFIED", seen("a", "Running", "n", "1Gi", "Deferred"))
    pods.heard("ADDED", seen("b"))
    assert (pods.bound, pods.running, pods.deferred, pods.changes) == (1, 1, 1, 5)
    pods.heard("MODIFIED", seen("a", "Running", "n", "2Gi"))
    assert (pods.running, pods.deferred, pods.now["a"].actual("memory")) == (1, 0, "2Gi")
    pods.heard("DELETED", seen("a"))
    assert (pods.bound, pods.running, list(pods.now)) == (0, 0, ["b"])


def test_who_waits_for_a_pod_is_told_when_it_is_so_and_who_waits_too_long_is_told_that() -> None:
    async def test() -> None:
        pods = Pods()
        runs = asyncio.create_task(pods.until("a", lambda pod: pod is not None and pod.is_running, 5))
        gone = asyncio.create_task(pods.until("a", lambda pod: pod is None, 5))
        await asyncio.sleep(0)
        assert gone.done() or await gone, "it is not there yet"
        pods.heard("ADDED", seen("a"))
        pods.heard("MODIFIED", seen("b", "Running"))
        await asyncio.sleep(0)
        assert not runs.done()
        pods.heard("MODIFIED", seen("a", "Running"))
        await runs
        with pytest.raises(UserError, match="pod c did not get there within 0 s: it is not there; of 2 pods 0 are bound, 2 run"):
            await pods.until("c", lambda pod: pod is not None, 0)
        pods.heard("MODIFIED", seen("a", "Running", "n", "1Gi", "Deferred"))
        with pytest.raises(UserError, match="it is Running, n, its resize waits for room; of 2 pods 1 are bound, 2 run, 1 wait"):
            await pods.until("a", lambda pod: pod is None, 0)

    asyncio.run(test())


def test_who_waits_for_many_pods_is_told_when_the_last_is_so() -> None:
    async def test() -> None:
        pods = Pods()
        pods.heard("ADDED", seen("b", "Running", "n"))
        all_run = asyncio.create_task(pods.all_until("abc", lambda pod: pod is not None and pod.is_running, 5))
        for name in "ac":
            await asyncio.sleep(0)
            assert not all_run.done()
            pods.heard("ADDED", seen(name, "Running", "n"))
            last = time.perf_counter()
        assert abs(await all_run - last) < 1
        with pytest.raises(UserError, match="pod d did not get there within 0 s: it is not there"):
            await pods.all_until("abcd", lambda pod: pod is not None, 0)

    asyncio.run(test())


# ---------------------------------------------------------------- the gauge


def test_the_schedulers_queues_are_read_from_its_metrics() -> None:
    lines = [
        "# TYPE scheduler_pending_pods gauge",
        'scheduler_pending_pods{queue="active"} 3.0',
        'scheduler_pending_pods{queue="unschedulable"} 0.0',
        'scheduler_schedule_attempts_total{result="scheduled"} 7.0',
    ]
    assert queues(lines) == {"active": 3, "unschedulable": 0}


@pytest.mark.parametrize(
    ("process", "kind"),
    [
        ("apiserver", "API server"),
        ("scheduler", "scheduler"),
        ("nodes-12", "nodes"),
        ("kubelet/node-1", "nodes"),
        ("python3", "supervisor"),
    ],
)
def test_a_process_counts_with_its_kind(process: str, kind: str) -> None:
    assert kind_of(process) == kind


# ---------------------------------------------------------------- the pictures


@given(
    st.lists(
        st.tuples(st.floats(0, 1e5, allow_subnormal=False), st.floats(0, 1e9, allow_subnormal=False)), min_size=1, max_size=900
    )
)
def test_a_line_stays_inside_its_picture(points: list[tuple[float, float]]) -> None:
    drawn = plot("t", "u", {"a": sorted(points)})
    assert drawn is not None
    for pair in drawn.lines[0].path[1:].split(" L"):
        x, y = map(float, pair.split())
        assert 0 <= x <= WIDTH and 0 <= y <= HEIGHT
    assert len(drawn.lines[0].path.split(" L")) <= 402
    assert drawn.across[0].at == 0 and drawn.up[0].at == HEIGHT, "both axes begin at nothing"
    assert 2 <= len(drawn.up) <= 11


def test_nothing_is_no_picture_and_a_storm_beyond_it_is_not_marked() -> None:
    assert plot("t", "u", {"a": []}) is None
    drawn = plot("t", "u", {"a": [(0.0, 0.0), (2.0, 4.0)]}, begun=1.0)
    assert drawn is not None and drawn.begun == WIDTH / 2
    assert (drawn.lines[0].path, drawn.lines[0].last) == (f"M0.0 {HEIGHT}.0 L{WIDTH}.0 {HEIGHT * 0.2:.1f}", "4")
    late = plot("t", "u", {"a": [(0.0, 0.0), (2.0, 4.0)]}, begun=3.0)
    assert late is not None and late.begun is None


def test_a_rate_is_what_came_in_the_last_second() -> None:
    assert rates([(0.0, 0), (0.5, 5), (1.0, 10), (1.5, 30), (2.5, 30)]) == [(1.0, 10.0), (1.5, 25.0), (2.5, 0.0)]


def test_percentiles_are_of_windows_in_which_something_happened() -> None:
    points = [(0.1, 1.0), (0.2, 3.0), (0.9, 2.0), (2.1, 7.0)]
    assert percentiles(points, 0.5, 1.0) == [(1.0, 2.0), (3.0, 7.0)]
    assert percentiles(points, 0.99, 1.0) == [(1.0, 3.0), (3.0, 7.0)]


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (0.25, "0.25"), (5.0, "5"), (12.5, "12.5"), (2000.0, "2,000")])
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


# ---------------------------------------------------------------- the verdict


def test_a_sample_is_of_its_nodes_their_pods_and_what_concerns_no_pod(tmp_path: Path) -> None:
    def write(name: str, *records: Mapping[str, object]) -> None:
        lines = [
            msgspec.json.encode({"proc": name, "inc": 1, "seq": at, "mono_ns": at, "rev": at, **record})
            for at, record in enumerate(records)
        ]
        (tmp_path / f"{name}.1.jsonl").write_bytes(b"\n".join([*lines, b""]))

    def commit(pod: str, node: str) -> dict[str, object]:
        return {"kind": "commit", "resource": "pods", "key": f"pods/default/{pod}", "uid": f"u-{pod}", "obj": {"node": node}}

    write(
        "apiserver",
        commit("a", ""),
        commit("a", "node-1"),
        commit("b", "node-2"),
        commit("waits", ""),
        {"kind": "commit", "resource": "nodes", "key": "nodes/node-2", "obj": {}},
        {"kind": "commit", "resource": "events", "key": "events/default/b.1", "obj": {"about": "u-b"}},
    )
    write("scheduler", {"kind": "sch.bind", "pod": "default/a"}, {"kind": "sch.bind", "pod": "default/b"})
    write("controllers", *({"kind": "watch.event", "key": "events/default/x", "rev": rev} for rev in (4, 5)))
    write("kubelet_node-1", {"kind": "kl.alloc", "pod": "default/a"})
    write("kubelet_node-2", {"kind": "kl.alloc", "pod": "default/b"})
    history = judging.sampled(sorted(tmp_path.glob("*.jsonl")), {"node-1"})
    told = [(record["proc"], record.get("key") or record.get("pod")) for record in history.records]
    assert sorted(told) == [
        ("apiserver", "nodes/node-2"),
        ("apiserver", "pods/default/a"),
        ("apiserver", "pods/default/a"),
        ("apiserver", "pods/default/waits"),
        ("controllers", "events/default/x"),
        ("kubelet_node-1", "default/a"),
        ("scheduler", "default/a"),
    ]
