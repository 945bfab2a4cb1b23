"""Trying out who has to go: what a stage holds after each move, beside whom a pod must fit, and groups under budgets."""

from typing import Any

import pytest
from scheduler_cluster import budget, node, pod
from scheduler_worlds import filters_for, info_of, world_of

from elbowroom.scheduler.podgroups import PodGroups
from elbowroom.scheduler.preemption import Candidate, victims_on
from elbowroom.scheduler.rehearsal import Stage, _Copy, _Sums, promised_to
from elbowroom.scheduler.status import Status

Document = dict[str, Any]
NEW = pod("new", cpu="300m", priority=5)


def stage_of(kind: str, there: Document, pods: list[Document], promised: list[Document]) -> Stage:
    """Of the kind that filters which look at single pods need, or of the kind for all others."""
    world = world_of([there], pods)
    info, filters, found = info_of(NEW), filters_for(NEW, world.snapshot), world.snapshot.get("n1")
    assert found is not None
    nominated = [info_of(each) for each in promised]
    if kind == "copy":
        return _Copy(info, found, filters, nominated)
    parts = filters.by_sums()
    assert parts is not None, "nothing here looks at single pods"
    return _Sums(info, found, parts, nominated)


def reasons(stage: Stage) -> tuple[str, ...]:
    status = stage.check()
    return () if status is None else tuple(status.reasons)


KINDS = pytest.mark.parametrize("kind", ["copy", "sums"])


@KINDS
def test_who_goes_leaves_a_place_and_some_room_and_takes_both_back(kind: str) -> None:
    pods = [pod(name, node="n1", cpu="400m") for name in "ab"]
    stage = stage_of(kind, node("n1", cpu="1", pods="2"), pods, [])
    a, b = (info_of(each) for each in pods)
    full = ("Too many pods", "Insufficient cpu")
    assert reasons(stage) == full
    for other in (a, b, a):
        stage.take(other)
        assert reasons(stage) == ()
        stage.put(other)
        assert reasons(stage) == full
    stage.take(a)
    stage.take(b)
    stage.put(a)
    assert reasons(stage) == ()
    stage.put(b)
    assert reasons(stage) == full


PROMISED = [
    ("to an equal one", [pod("p", cpu="400m", priority=5)], ("Insufficient cpu",)),
    ("to a more important one", [pod("p", cpu="400m", priority=9)], ("Insufficient cpu",)),
    ("to a lesser one", [pod("p", cpu="400m", priority=4)], ()),
    ("to itself", [NEW], ()),
    ("to one that is there already", [pod("a", node="n1", cpu="400m", priority=9)], ()),
    ("to one that is small enough", [pod("p", cpu="300m", priority=9)], ()),
    ("to two", [pod(name, cpu="200m", priority=9) for name in "pq"], ("Insufficient cpu",)),
]


@KINDS
@pytest.mark.parametrize(("what", "promised", "refusal"), PROMISED, ids=[each[0] for each in PROMISED])
def test_a_pod_has_to_fit_beside_what_is_promised(kind: str, what: str, promised: list[Document], refusal: tuple[str, ...]) -> None:
    stage = stage_of(kind, node("n1", cpu="1"), [pod("a", node="n1", cpu="400m")], promised)
    assert reasons(stage) == refusal
    stage.take(info_of(pod("a", node="n1", cpu="400m")))
    assert reasons(stage) == (), "then there is room for both"


def test_promises_to_lesser_ones_to_itself_and_to_who_is_there_count_for_nothing() -> None:
    world = world_of([node("n1")], [pod("there", node="n1", priority=9)])
    found = world.snapshot.get("n1")
    assert found is not None
    nominated = [
        info_of(each)
        for each in (pod("more", priority=6), pod("equal", priority=5), pod("less", priority=4), NEW, pod("there", priority=9))
    ]
    assert [each.pod.metadata.name for each in promised_to(info_of(NEW), found, nominated)] == ["more", "equal"]


def test_what_a_pods_status_says_of_the_pod_alone_is_counted() -> None:
    """Nothing else in the status speaks of resources."""
    document = pod("a", node="n1", cpu="500m", status={"resources": {"requests": {"cpu": "2"}}})
    document["spec"]["resources"] = {"requests": {"cpu": "1"}}
    info = info_of(document)
    assert (info.want, info.requests) == ({"cpu": 1000}, {"cpu": 2000})


# ---------------------------------------------------------------- units


MEMBER: Document = {"schedulingGroup": {"podGroupName": "team"}}


def choice(*pods: Document, cpu: str = "600m", budgets: tuple[Document, ...] = (), strict: bool = False) -> Candidate | Status:
    """Who goes from a node of one CPU where somebody names a group, so that units are tried and not pods."""
    wanted = pod("new", cpu=cpu, priority=50)
    world = world_of([node("n1", cpu="1")], pods, budgets, groups=PodGroups({}), strict_budgets=strict)
    found = world.snapshot.get("n1")
    assert found is not None
    return victims_on(info_of(wanted), found, filters_for(wanted, world.snapshot), world)


def names(candidate: Candidate | Status) -> list[str]:
    assert isinstance(candidate, Candidate), candidate
    return [victim.pod.metadata.name for victim in candidate.victims]


GUARDED = {"guarded": "yes"}
GUARD = (budget("guard", GUARDED, 0),)


def test_who_cannot_come_back_makes_room_for_who_can() -> None:
    big, small = pod("big", node="n1", cpu="500m", priority=3, **MEMBER), pod("small", node="n1", cpu="300m", priority=2)
    assert names(choice(big, small)) == ["big"]


def test_where_nobody_is_less_important_there_is_no_victim() -> None:
    status = choice(pod("equal", node="n1", cpu="900m", priority=50, **MEMBER))
    assert isinstance(status, Status) and status.reasons == ("No preemption victims found for incoming pod",)


def test_the_protected_come_back_first_and_victims_are_told_by_importance() -> None:
    lesser = pod("lesser", node="n1", cpu="500m", priority=1, labels=GUARDED)
    greater = pod("greater", node="n1", cpu="500m", priority=3, **MEMBER)
    spared = choice(lesser, greater, cpu="500m", budgets=GUARD)
    assert names(spared) == ["greater"] and isinstance(spared, Candidate) and spared.violations == 0
    both = choice(lesser, greater, cpu="1", budgets=GUARD)
    assert names(both) == ["greater", "lesser"] and isinstance(both, Candidate) and both.violations == 1


def test_a_strict_budget_keeps_whom_it_protects() -> None:
    guarded = pod("guarded", node="n1", cpu="500m", priority=1, labels=GUARDED)
    free = pod("free", node="n1", cpu="500m", priority=3, **MEMBER)
    assert names(choice(guarded, free, cpu="500m", budgets=GUARD, strict=True)) == ["free"]
    status = choice(guarded, free, cpu="600m", budgets=GUARD, strict=True)
    assert isinstance(status, Status)
    assert status.reasons == ("No preemption victims found that no disruption budget protects",)
    assert names(choice(guarded, free, cpu="600m", budgets=GUARD)) == ["free", "guarded"]
