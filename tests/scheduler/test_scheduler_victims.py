"""The choice of victims, against an oracle that tries every subset."""

import itertools
import random
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cluster import START, budget, deferred, node, pod
from scheduler_worlds import filters_for, info_of, plugins_of, snapshot_of, world_of

from elbowroom.scheduler.cycle import Cycle, Decision, Parked, Unschedulable
from elbowroom.scheduler.framework import Framework
from elbowroom.scheduler.preemption import Candidate, NoPlan, Plan, best, victims_on, violating

HIGH = 5
POTS = ("a", "b")


@st.composite
def crowds(draw: st.DrawFn) -> dict[str, Any]:
    """A node, a deferred pod on it and up to nine neighbours, some guarded by budgets."""
    neighbours = []
    for index in range(draw(st.integers(0, 9))):
        neighbours.append(
            pod(
                f"p{index}",
                node="n1",
                cpu=f"{draw(st.integers(0, 4)) * 100}m",
                memory=f"{draw(st.integers(0, 3))}Gi",
                priority=draw(st.integers(HIGH - 4, HIGH + 1)),
                labels=draw(st.sampled_from([{}, {"pot": "a"}, {"pot": "b"}])),
                started=draw(st.sampled_from(["", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"])),
            )
        )
    wanted = draw(st.integers(1, 10)) * 100
    budgets = [
        budget(pot, {"pot": pot}, draw(st.integers(0, 2)), draw(st.lists(st.sampled_from([f"p{n}" for n in range(4)]), max_size=1)))
        for pot in draw(st.lists(st.sampled_from(POTS), unique=True))
    ]
    return {
        "node": node("n1", cpu=f"{draw(st.integers(1, 16)) * 100}m", memory=f"{draw(st.integers(1, 12))}Gi"),
        "preemptor": deferred("high", "n1", f"{wanted}m", "100m", HIGH),
        "neighbours": neighbours,
        "budgets": budgets,
    }


def decided(crowd: dict[str, Any], **more: Any) -> Decision:
    """The scheduler's decision about the deferred pod."""
    world = world_of([crowd["node"]], [crowd["preemptor"], *crowd["neighbours"]], crowd["budgets"], **more)
    return Cycle(Framework.of(plugins_of()), random.Random(0)).attempt(info_of(crowd["preemptor"]), world)


def cpu(document: dict[str, Any]) -> int:
    return int(document["spec"]["containers"][0]["resources"]["requests"].get("cpu", "0m").rstrip("m"))


def memory(document: dict[str, Any]) -> int:
    return int(document["spec"]["containers"][0]["resources"]["requests"].get("memory", "0Gi").removesuffix("Gi"))


def fits(crowd: dict[str, Any], kept: list[dict[str, Any]]) -> bool:
    """Only resources that the preemptor asks for count: cpu alone."""
    capacity = int(crowd["node"]["status"]["allocatable"]["cpu"].rstrip("m"))
    return cpu(crowd["preemptor"]) + sum(cpu(each) for each in kept) <= capacity


def order(crowd: dict[str, Any]) -> list[dict[str, Any]]:
    """Those who may come back, in the order in which they may: SC-110, SC-110a, SC-112, written down a second time."""

    def importance(document: dict[str, Any]) -> tuple[int, str]:
        return (-document["spec"]["priority"], document["status"].get("startTime", "9999"))

    lower = sorted((each for each in crowd["neighbours"] if each["spec"]["priority"] < HIGH), key=importance)
    left = {each["metadata"]["name"]: each["status"]["disruptionsAllowed"] for each in crowd["budgets"]}
    exempt = {each["metadata"]["name"]: each["status"]["disruptedPods"] for each in crowd["budgets"]}
    guarded, free = [], []
    for each in lower:
        pot = each["metadata"]["labels"].get("pot")
        if pot in left and each["metadata"]["name"] not in exempt[pot]:
            left[pot] -= 1
            (guarded if left[pot] < 0 else free).append(each)
        else:
            free.append(each)
    return guarded + free


def oracle(crowd: dict[str, Any]) -> set[str] | None:
    """Of all subsets that leave room, the one that keeps the first who can be kept, then the next, and so on; None if none does."""
    candidates = order(crowd)
    fixed = [each for each in crowd["neighbours"] if each["spec"]["priority"] >= HIGH]
    best_kept: tuple[bool, ...] | None = None
    for kept in itertools.product((True, False), repeat=len(candidates)):
        staying = fixed + [each for each, stays in zip(candidates, kept, strict=True) if stays]
        if fits(crowd, staying) and (best_kept is None or kept > best_kept):
            best_kept = kept
    if best_kept is None:
        return None
    return {each["metadata"]["name"] for each, stays in zip(candidates, best_kept, strict=True) if not stays}


def names(decision: Unschedulable) -> set[str]:
    assert isinstance(decision.preemption, Plan)
    return {victim.pod.metadata.name for victim in decision.preemption.candidate.victims}


@settings(max_examples=400, deadline=None)
@given(crowds())
def test_the_victims_are_those_of_the_oracle(crowd: dict[str, Any]) -> None:
    decision = decided(crowd)
    if fits(crowd, crowd["neighbours"]):
        assert isinstance(decision, Parked)
        return
    assert isinstance(decision, Unschedulable)
    expected = oracle(crowd)
    if expected is None:
        assert isinstance(decision.preemption, NoPlan)
    else:
        assert names(decision) == expected


@settings(max_examples=200, deadline=None)
@given(crowds())
def test_victims_are_lower_neighbours_and_none_is_needless(crowd: dict[str, Any]) -> None:
    decision = decided(crowd)
    if not isinstance(decision, Unschedulable) or not isinstance(decision.preemption, Plan):
        return
    victims = names(decision)
    by_name = {each["metadata"]["name"]: each for each in crowd["neighbours"]}
    assert victims and victims <= set(by_name)
    assert all(by_name[name]["spec"]["priority"] < HIGH for name in victims)
    kept = [each for name, each in by_name.items() if name not in victims]
    assert fits(crowd, kept)
    assert not any(fits(crowd, [*kept, by_name[name]]) for name in victims)


@settings(max_examples=200, deadline=None)
@given(crowds())
def test_a_strict_policy_breaks_no_budget(crowd: dict[str, Any]) -> None:
    decision = decided(crowd, strict_budgets=True)
    if not isinstance(decision, Unschedulable) or not isinstance(decision.preemption, Plan):
        return
    by_name = {each["metadata"]["name"]: each for each in crowd["neighbours"]}
    for each in crowd["budgets"]:
        pot = each["metadata"]["name"]
        hit = [
            n
            for n in names(decision)
            if by_name[n]["metadata"]["labels"].get("pot") == pot and n not in each["status"]["disruptedPods"]
        ]
        assert len(hit) <= each["status"]["disruptionsAllowed"]


@settings(max_examples=100, deadline=None)
@given(crowds())
def test_the_dry_run_leaves_the_snapshot_as_it_was(crowd: dict[str, Any]) -> None:
    world = world_of([crowd["node"]], [crowd["preemptor"], *crowd["neighbours"]], crowd["budgets"])
    Cycle(Framework.of(plugins_of()), random.Random(0)).attempt(info_of(crowd["preemptor"]), world)
    fresh = snapshot_of([crowd["node"]], [crowd["preemptor"], *crowd["neighbours"]])
    (before,), (after,) = fresh.nodes, world.snapshot.nodes
    assert (before.requested, list(before.pods)) == (after.requested, list(after.pods))


def test_a_small_old_pod_stays_and_a_big_young_one_goes() -> None:
    pods = [
        pod("small-old", node="n1", cpu="100m", started="2026-01-01T00:00:01Z"),
        pod("big-young", node="n1", cpu="300m", started="2026-01-01T00:00:09Z"),
        deferred("high", "n1", "200m", "100m", HIGH),
    ]
    world = world_of([node("n1", cpu="500m")], pods)
    found = victims_on(info_of(pods[-1]), world.snapshot.nodes[0], filters_for(pods[-1], world.snapshot), world)
    assert isinstance(found, Candidate) and [victim.key for victim in found.victims] == ["default/big-young"]


def test_terminating_victims_are_chosen_again() -> None:
    ending = pod("ending", node="n1", cpu="200m")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pods = [ending, deferred("high", "n1", "300m", "100m", HIGH)]
    for tracking, expected in (("none", Plan), ("specNodeName", Plan), ("memory", Plan)):
        world = world_of([node("n1", cpu="300m")], pods, tracking=tracking)
        decision = Cycle(Framework.of(plugins_of()), random.Random(0)).attempt(info_of(pods[1]), world)
        assert isinstance(decision, Unschedulable) and isinstance(decision.preemption, expected)


def test_tracking_waits_for_victims_of_its_own() -> None:
    told = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ending = pod("ending", node="n1", cpu="100m", conditions=[told], started="2026-01-01T00:00:09Z")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pods = [ending, pod("old", node="n1", cpu="200m", started="2026-01-01T00:00:01Z"), deferred("high", "n1", "300m", "100m", HIGH)]
    for tracking, waits in (("none", False), ("specNodeName", True), ("memory", True)):
        world = world_of([node("n1", cpu="300m")], pods, tracking=tracking, remembered={"uid-high": frozenset({"uid-ending"})})
        decision = Cycle(Framework.of(plugins_of()), random.Random(0)).attempt(info_of(pods[2]), world)
        assert isinstance(decision, Unschedulable)
        assert isinstance(decision.preemption, NoPlan) is waits


def test_desires_of_others_count_unless_the_fit_is_aligned_with_the_kubelet() -> None:
    from elbowroom.api.gates import profile_of

    lows = [deferred(f"low{n}", "n1", "200m", "50m", 1) for n in range(3)]
    high = deferred("high", "n1", "100m", "50m", HIGH)
    world = world_of([node("n1", cpu="200m")], [high, *lows])
    for fit, victims in (("maxDesired", 3), ("kubeletAligned", 1)):
        plugins = plugins_of(replace(profile_of("lab"), resize_fit=fit))
        decision = Cycle(Framework.of(plugins), random.Random(0)).attempt(info_of(high), world)
        assert isinstance(decision, Unschedulable)
        assert len(names(decision)) == victims


def victim(name: str, priority: int, started: int = 0) -> Any:
    return info_of(pod(name, node="n", cpu="1m", priority=priority, started=f"2026-01-01T00:00:{started:02}Z"))


def test_the_cheapest_node_is_chosen_step_by_step() -> None:
    table = [
        ("fewest broken budgets", (0, [9, 9]), (1, [1])),
        ("the lowest top victim", (0, [3, 3, 3]), (0, [4])),
        ("the smallest sum", (0, [5, -100]), (0, [5, 1])),
        ("negative priorities don't make many victims cheap", (0, [5, -100]), (0, [5, -100, -100])),
        ("the fewest victims", (0, [5]), (0, [5, -(2**31)])),
    ]
    for why, cheap, dear in table:
        candidates = [
            Candidate(
                name, tuple(victim(f"{name}{n}", priority) for n, priority in enumerate(sorted(priorities, reverse=True))), broken
            )
            for name, (broken, priorities) in (("dear", dear), ("cheap", cheap))
        ]
        assert best(candidates, START).node == "cheap", why


def test_only_the_age_of_the_top_victims_breaks_the_tie() -> None:
    old = Candidate("old", (victim("a", 5, 1), victim("b", 1, 50)), 0)
    young = Candidate("young", (victim("c", 5, 2), victim("d", 1, 0)), 0)
    assert best([old, young], START).node == "young"


def test_a_budget_with_an_empty_selector_and_pods_without_labels_protect_nobody() -> None:
    world = world_of([], [], [budget("all", {}, 0), budget("some", {"a": "b"}, 0)])
    bare = info_of(pod("bare", node="n1"))
    other = info_of(pod("other", node="n1", labels={"x": "y"}))
    covered = info_of(pod("covered", node="n1", labels={"a": "b"}))
    assert violating([bare, other, covered], world.budgets) == frozenset({"uid-covered"})
