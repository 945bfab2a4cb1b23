"""What is found out about a node is remembered until it changes, and never makes a difference; the bench measures what it says."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cluster import node, pod
from scheduler_worlds import filters_for, info_of, node_of, plugins_of, snapshot_of

from elbowroom.deploy.bench import scheduling
from elbowroom.deploy.bench.figures import Figure
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.framework import Plugin
from elbowroom.scheduler.nodeinfo import NodeInfo

SHAPES = st.fixed_dictionaries({"cpu": st.sampled_from(["0", "100m", "1", "3"]), "memory": st.sampled_from(["0", "100Mi", "2Gi"])})
TOLERATIONS = st.sampled_from(
    [[], [{"key": "k", "operator": "Exists"}], [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]]
)
TAINTS = st.sampled_from([[], [{"key": "k", "effect": "NoSchedule"}]])
CHANGES = st.one_of(
    st.tuples(st.just("ask"), SHAPES, TOLERATIONS),
    st.tuples(st.just("add"), SHAPES, TOLERATIONS),
    st.tuples(st.just("remove"), st.integers(0, 5)),
    st.tuples(st.just("node"), st.sampled_from(["1", "4"]), TAINTS, st.booleans()),
)


def answers(plugins: list[Plugin], asked: Any, held: NodeInfo, snapshot: Snapshot) -> list[Any]:
    found: list[Any] = [filters_for(asked, snapshot, plugins).check(held)]
    for plugin in plugins:
        scorer = plugin.pre_score(info_of(asked), [held], snapshot) if plugin.weight else None
        if scorer is not None:
            assert scorer.scores([held]) == [scorer.score(held)]
            found.append((plugin.name, scorer.score(held)))
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(CHANGES, max_size=25))
def test_a_remembered_answer_is_the_one_that_would_be_found(changes: list[Any]) -> None:
    plugins = plugins_of()
    held = NodeInfo("n1")
    held.set_node(node_of(node("n1")), {"cpu": 4000, "memory": 8 << 30, "pods": 3})
    snapshot = snapshot_of([node("n1")])
    for number, change in enumerate(changes):
        match change:
            case ("ask", shape, tolerations):
                asked = pod("asking", tolerations=tolerations, **shape)
                for _ in range(2):
                    assert answers(plugins, asked, held, snapshot) == answers(plugins_of(), asked, held.copy(), snapshot)
            case ("add", shape, _):
                held.add(info_of(pod(f"p{number % 6}", node="n1", **shape))) if f"uid-p{number % 6}" not in held.pods else None
            case ("remove", which):
                held.remove(f"uid-p{which}")
            case ("node", cpu, taints, cordoned):
                held.set_node(
                    node_of(node("n1", cpu=cpu, taints=taints, unschedulable=cordoned)),
                    {"cpu": int(cpu) * 1000, "memory": 8 << 30, "pods": 3},
                )


def test_the_bench_binds_every_pod_and_finds_victims_for_every_one_that_needs_them() -> None:
    figures = scheduling.of_size(nodes=20, bound=40, cycles=5, preemptors=4)
    assert [figure.name for figure in figures] == ["in-process-20", "differing-20", "resize-cycles-20", "preempting-20"]
    assert all(figure.value > 0 for figure in figures)
    binding, _, _, preempting = figures
    assert binding.details["pods"] == 20 * 28 + scheduling.FIRST + 40
    assert preempting.details["victims"] == 3 * 4


def test_the_bench_tells_how_costs_grow() -> None:
    few, many = [Figure("bound-10", "pods bound, 10 nodes", 400, "/s")], [Figure("bound-1000", "pods bound", 100, "/s")]
    (figure,) = scheduling.growth({10: few, 1000: many})
    assert (figure.name, figure.value) == ("growth-bound", 2.0)  # four times dearer over two tenfolds
    assert figure.what.endswith("pods bound")


def test_a_pod_in_the_cache_needs_less_than_three_kibibytes() -> None:
    (figure,) = scheduling.memory()
    assert 0 < figure.value < 3
