"""What is worked out by a short cut is what the long way gives, whatever the input."""

import random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cluster import START, node, pod
from scheduler_worlds import filters_for, info_of, node_of, plugins_of

from elbowroom.api import resources
from elbowroom.api.objects import PodDisruptionBudget
from elbowroom.api.resources import Resources
from elbowroom.scheduler import cycle, preemption
from elbowroom.scheduler.cache import Cache, Snapshot
from elbowroom.scheduler.columns import Columns
from elbowroom.scheduler.figures import EXACT_MAX
from elbowroom.scheduler.framework import Framework
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.nominator import Nominator
from elbowroom.scheduler.plugins import ScoringStrategy
from elbowroom.scheduler.plugins.resources import BalancedAllocation, Fit
from elbowroom.scheduler.preemption import Plan, World, budget_of, dry_run, victims_on

LISTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/chips", "ephemeral-storage"]), st.sampled_from(["0", "100m", "1", "3", "2Gi"])
)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """Pods with statuses that tell anything or nothing of their containers, some of them with a resize that is Infeasible."""

    def container(name: str) -> dict[str, Any]:
        return {"name": name, "image": "pause", "resources": {"requests": draw(LISTS)}}

    spec: dict[str, Any] = {"containers": [container("main"), container("beside")][: draw(st.integers(1, 2))]}
    status: dict[str, Any] = {"phase": "Running"}
    if draw(st.booleans()):
        spec["nodeName"] = "n1"
    if draw(st.booleans()):
        spec["initContainers"] = [{**container("first"), **draw(st.sampled_from([{}, {"restartPolicy": "Always"}]))}]
    if draw(st.booleans()):
        spec["overhead"] = {"cpu": "10m"}
    if draw(st.booleans()):
        spec["resources"] = {"requests": {"cpu": "5"}}
    for field in ("allocatedResources", "resources"):
        if draw(st.booleans()):
            status[field] = draw(LISTS) if field == "allocatedResources" else {"requests": draw(LISTS)}
    if draw(st.booleans()):
        status["containerStatuses"] = [{"name": "main", "allocatedResources": draw(LISTS), "resources": {"requests": draw(LISTS)}}]
    if draw(st.booleans()):
        status["initContainerStatuses"] = [{"name": "first", "allocatedResources": draw(LISTS)}]
    reason = draw(st.sampled_from(["", "Deferred", "Infeasible"]))
    if reason:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": spec, "status": status}


@settings(max_examples=100, deadline=None)
@given(pods())
def test_a_pod_counts_with_its_effective_requests_however_they_are_found(document: dict[str, Any]) -> None:
    info = info_of(document)
    assert info.non_zero == resources.non_zero_requests(info.pod)
    if info.pod.spec.node_name:
        assert info.requests == resources.effective_requests(info.pod)
    else:
        assert info.requests == info.want == resources.spec_requests(info.pod)


# ---------------------------------------------------------------- the vectorised twin

NAMES = ["cpu", "memory", "ephemeral-storage", "example.com/chips", "example.com/unknown"]
FIGURES = st.one_of(
    st.integers(0, 8),
    st.integers(0, 2**40),
    st.sampled_from([EXACT_MAX - 1, EXACT_MAX, EXACT_MAX + 1, 2**60, 2**63 - 1, 2**63, 2**70]),
)
LESS_THAN_NOTHING = st.sampled_from([-1, -(2**40), -EXACT_MAX, -(2**64)])
VECTORS = st.dictionaries(st.sampled_from(NAMES), FIGURES)
SHAPES = [((0, 0), (100, 10)), ((0, 10), (100, 0)), ((20, 0), (50, 7), (51, 3), (80, 10)), ((100, 0),)]


@st.composite
def tallies(draw: st.DrawFn) -> NodeInfo:
    """A node with any figures: overfull, of no size, or larger than a float holds."""
    held = NodeInfo(draw(st.sampled_from("abcdef")))
    held.allocatable = draw(VECTORS)
    held.allowed_pods = draw(FIGURES)
    held.requested = draw(VECTORS)
    held.non_zero = draw(VECTORS)
    if draw(st.booleans()):
        held.requested["cpu"] = draw(LESS_THAN_NOTHING)
    if draw(st.booleans()):
        filler = info_of(pod("filler"))
        held.pods = {str(number): filler for number in range(draw(st.integers(0, 9)))}
    return held


def asking(want: Resources, non_zero: Resources) -> Any:
    info = info_of(pod("asking"))
    info.want, info.non_zero = want, non_zero
    return info


@settings(max_examples=150, deadline=None)
@given(st.lists(tallies(), min_size=1, max_size=6), VECTORS, st.booleans())
def test_the_twin_of_the_resource_filter_says_what_the_plain_one_says(nodes: list[NodeInfo], want: Resources, part: bool) -> None:
    prepared = Fit(ScoringStrategy()).pre_filter(asking(want, want), Snapshot())
    assert prepared is not None and prepared.filter is not None
    plain = prepared.filter
    if not plain.has_twin:
        assert max(want.values()) > EXACT_MAX
        return
    rows = slice(len(nodes) // 2 if part else 0, len(nodes))
    codes = plain.codes(Columns(nodes), rows).tolist()
    assert [plain.refusal(held, code) if code else None for held, code in zip(nodes[rows], codes, strict=True)] == [
        plain.check(held) for held in nodes[rows]
    ]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(tallies(), min_size=1, max_size=6),
    VECTORS,
    VECTORS,
    st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio", "Balanced"]),
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 100), min_size=1),
    st.sampled_from(SHAPES),
)
def test_the_twin_of_a_resource_score_gives_what_the_plain_one_gives(
    nodes: list[NodeInfo], want: Resources, non_zero: Resources, kind: str, weights: dict[str, int], shape: Any
) -> None:
    plugin = BalancedAllocation() if kind == "Balanced" else Fit(ScoringStrategy(kind, weights, shape))
    scorer = plugin.pre_score(asking(want, non_zero), nodes, Snapshot())
    if scorer is None:
        assert not want.get("cpu") and not want.get("memory")
        return
    rows = np.arange(len(nodes))
    column = scorer.column(nodes, Columns(nodes), rows)
    for held in nodes:
        held.memo.clear()
    if column is None:
        assert max([*want.values(), *non_zero.values()]) > EXACT_MAX
    else:
        assert column.tolist() == scorer.scores(nodes)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), tallies()), max_size=12), VECTORS)
def test_columns_that_follow_changes_are_those_made_anew(changes: list[tuple[int, NodeInfo]], want: Resources) -> None:
    nodes = [NodeInfo(str(number)) for number in range(4)]
    followed = Columns(nodes)
    asked = followed.known("question").state
    asked[:] = 1
    for row, held in changes:
        nodes[row] = held
        followed.set(row, held)
    anew, wanted, rows = Columns(nodes), list(want.items()), slice(0, 4)
    assert followed.exact.tolist() == anew.exact.tolist()
    if all(amount <= EXACT_MAX for amount in want.values()):
        assert followed.shortfalls(rows, wanted).tolist() == anew.shortfalls(rows, wanted).tolist()
    assert [int(state) for state in asked] == [0 if any(row == each for each, _ in changes) else 1 for row in range(4)]


CPUS = st.sampled_from(["", "100m", "1", "2", "9"])
TAINTS = st.sampled_from([[], [], [{"key": "k", "effect": "NoSchedule"}], [{"key": "k", "effect": "PreferNoSchedule"}]])
NEAR = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
WISHES: list[dict[str, Any]] = [
    {},
    {"nodeSelector": {"zone": "z1"}},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR]}}},
    {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR]}}},
    {"topologySpreadConstraints": [{**NEAR, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
    {"tolerations": [{"key": "k", "operator": "Exists"}]},
]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["1", "4"]), TAINTS, st.booleans(), st.sampled_from(["z1", "z2"])), min_size=1, max_size=9),
    st.lists(st.tuples(CPUS, st.integers(0, 1), st.sampled_from(WISHES), st.integers(0, 8)), min_size=1, max_size=12),
    st.integers(0, 3),
)
def test_a_cycle_decides_the_same_with_the_twin_and_without(nodes: list[Any], pods: list[Any], seed: int) -> None:
    decided = []
    with pytest.MonkeyPatch.context() as patched:
        for twin_from in (0, 1_000_000):
            patched.setattr(cycle, "TWIN_FROM_NODES", twin_from)
            patched.setattr(cycle, "TWIN_ALWAYS_FROM_NODES", twin_from)
            patched.setattr(preemption, "TWIN_FROM_NODES", twin_from)
            decided.append(_played(nodes, pods, seed))
    assert decided[0] == decided[1]


def _played(nodes: list[Any], pods: list[Any], seed: int) -> list[Any]:
    """The decisions about some pods, one after the other; who has to preempt is nominated and stays in front of the node."""
    cache, snapshot, nominator = Cache(), Snapshot(), Nominator()
    attempts = cycle.Cycle(Framework.of(plugins_of(), percentage=50), random.Random(seed))
    for number, (cpu, taints, cordoned, zone) in enumerate(nodes):
        labels = {"zone": zone, "kubernetes.io/hostname": f"n{number}"}
        cache.set_node(node_of(node(f"n{number}", cpu=cpu, taints=taints, unschedulable=cordoned, labels=labels)))
    found: list[Any] = []
    for number, (cpu, priority, wishes, change) in enumerate(pods):
        started = f"2026-01-01T00:00:0{change}Z" if change % 2 else ""
        info = info_of(pod(f"p{number}", cpu=cpu, priority=priority, labels={"app": "a"}, started=started, **wishes))
        snapshot.refresh(cache)
        decision = attempts.attempt(info, World(snapshot, nominator, [], START))
        match decision:
            case cycle.Placed():
                found.append(decision)
                cache.assume(info.at(decision.node))
            case cycle.Unschedulable(diagnosis, preemption):
                found += [diagnosis.refusals.items(), decision.message]
                if isinstance(preemption, Plan):
                    found += [preemption.candidate.node, [victim.uid for victim in preemption.candidate.victims]]
                    nominator.nominate(info, preemption.candidate.node)
            case _:
                found.append(decision)
        if change < len(nodes):
            changed = node(f"n{change}", cpu="2", unschedulable=nodes[change][2], labels={"zone": "z1"})
            cache.set_node(node_of(changed))
    return found


MOVES = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from(["100m", "2", "3"]), st.integers(0, 3)),
    st.tuples(st.just("put"), st.sampled_from("abcd"), st.sampled_from(["500m", "1", "2"]), st.integers(0, 2), st.integers(0, 3)),
    st.tuples(st.just("take"), st.sampled_from("abcd")),
    st.tuples(st.just("promise"), st.sampled_from(["1", "2"]), st.integers(0, 3)),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(MOVES, max_size=30), st.booleans())
def test_remembered_victims_are_those_that_would_be_chosen(moves: list[Any], has_budget: bool) -> None:
    cache, snapshot, nominator = Cache(), Snapshot(), Nominator()
    budget = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "a"}}}}
    cache.set_node(node_of(node("n1", cpu="4")))
    for move in moves:
        snapshot.refresh(cache)
        match move:
            case ("ask", cpu, priority):
                document = pod("asking", cpu=cpu, priority=priority)
                filters = filters_for(document, snapshot)
                budgets = [budget_of(msgspec.convert(budget, PodDisruptionBudget))] if has_budget else []
                world = World(snapshot, nominator, budgets, START)
                for _ in range(2):
                    found, refused = dry_run(info_of(document), [0], filters, world, 0, 1)
                    plainly = victims_on(info_of(document), snapshot.nodes[0], filters, world)
                    assert [*found, *(status for _, status in refused.items())] == [plainly]
            case ("put", name, cpu, priority, started):
                at = f"2026-01-01T00:00:0{started}Z" if started else ""
                held = pod(name, node="n1", cpu=cpu, priority=priority, started=at, labels={"app": "a"})
                cache.set_pod(info_of(held).pod)
            case ("take", name):
                cache.remove_pod(f"uid-{name}")
            case ("promise", cpu, priority):
                nominator.nominate(info_of(pod("promised", cpu=cpu, priority=priority)), "n1" if priority else "")
