"""The whole question of victims on one node against an oracle that tries every set: both policies of fitting, both of budgets.

The oracle knows nothing of the scheduler's code: it counts documents (SC-43, SC-53, SC-62, SC-90 to SC-93) and takes the first set
in the documented order (SC-108 to SC-112). ``test_scheduler_victims`` has the smaller questions, which are easier to read.
"""

import itertools
import random
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cluster import DEFERRED, budget, node, pod
from scheduler_worlds import info_of, plugins_of, world_of

from elbowroom.api.gates import profile_of
from elbowroom.scheduler.cycle import Cycle, Decision, Parked, Placed, Unschedulable
from elbowroom.scheduler.framework import Framework
from elbowroom.scheduler.preemption import NoPlan, Plan

HIGH = 5
RESOURCES = ("cpu", "memory")
UNIT = {"cpu": 100, "memory": 1 << 30}
STARTS = ("", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z")
Amounts = dict[str, int]
Document = dict[str, Any]

amounts = st.fixed_dictionaries({"cpu": st.integers(0, 4), "memory": st.integers(0, 3)})


def requests(units: Amounts) -> dict[str, str]:
    return {"cpu": f"{100 * units['cpu']}m", "memory": f"{units['memory']}Gi"}


@st.composite
def neighbours(draw: st.DrawFn, index: int) -> dict[str, Any]:
    desired = draw(amounts)
    has = {name: min(desired[name], draw(st.integers(0, 3))) for name in RESOURCES} if draw(st.booleans()) else desired
    return {
        "name": f"p{index}",
        "desired": desired,
        "has": has,
        "priority": draw(st.integers(HIGH - 3, HIGH + 1)),
        "start": draw(st.sampled_from(STARTS)),
        "pot": draw(st.sampled_from(["", "", "a", "b"])),
    }


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    """A node, who wants room on it, who is there, who is promised room, and what guards whom."""
    there = [draw(neighbours(index)) for index in range(draw(st.integers(0, 11)))]
    is_resize = draw(st.booleans())
    wants = draw(amounts.filter(lambda each: any(each.values())))
    return {
        "size": {"cpu": draw(st.integers(1, 16)), "memory": draw(st.integers(1, 12))},
        "slots": draw(st.one_of(st.just(110), st.integers(2, 13))),
        "is_resize": is_resize,
        "wants": wants,
        "has": {name: min(wants[name], 1) for name in RESOURCES},
        "there": there,
        "promised": [(draw(amounts), draw(st.integers(HIGH - 1, HIGH + 1))) for _ in range(draw(st.integers(0, 2)))],
        "budgets": {
            pot: (draw(st.integers(0, 2)), draw(st.sampled_from(["", "p0", "p1", "p2"])))
            for pot in draw(st.lists(st.sampled_from("ab"), unique=True))
        },
        "aligned": draw(st.booleans()),
        "strict": draw(st.booleans()),
    }


def document(name: str, desired: Amounts, has: Amounts, deferred: bool, **more: Any) -> Document:
    """A pod on the node; its kubelet reports ``has`` as allocated and as actual."""
    told = {"name": "c", "allocatedResources": requests(has), "resources": {"requests": requests(has)}}
    conditions = [DEFERRED] if deferred else []
    status = {"containerStatuses": [told], "conditions": conditions}
    return pod(name, node="n1", requests=requests(desired), status=status, conditions=conditions, **more)


def decided(question: dict[str, Any]) -> Decision:
    there = [
        document(
            each["name"],
            each["desired"],
            each["has"],
            each["desired"] != each["has"],
            priority=each["priority"],
            started=each["start"],
            labels={"pot": each["pot"]} if each["pot"] else {},
        )
        for each in question["there"]
    ]
    size = requests(question["size"])
    if question["is_resize"]:
        preemptor = document("high", question["wants"], question["has"], True, priority=HIGH)
        there.insert(0, preemptor)
    else:
        preemptor = pod("high", requests=requests(question["wants"]), priority=HIGH)
    budgets = [budget(pot, {"pot": pot}, allowed, [gone] if gone else []) for pot, (allowed, gone) in question["budgets"].items()]
    world = world_of(
        [node("n1", cpu=size["cpu"], memory=size["memory"], pods=str(question["slots"]))],
        there,
        budgets,
        strict_budgets=question["strict"],
        aligned=question["aligned"],
    )
    for index, (units, priority) in enumerate(question["promised"]):
        world.nominator.nominate(info_of(pod(f"promised{index}", requests=requests(units), priority=priority)), "n1")
    profile = replace(profile_of("lab"), resize_fit="kubeletAligned" if question["aligned"] else "maxDesired")
    return Cycle(Framework.of(plugins_of(profile)), random.Random(0)).attempt(info_of(preemptor), world)


# ---------------------------------------------------------------- the oracle


def fits(question: dict[str, Any], kept: list[dict[str, Any]]) -> bool:
    respected = [units for units, priority in question["promised"] if priority >= HIGH]
    return _fits(question, kept, []) and (not respected or _fits(question, kept, respected))


def _fits(question: dict[str, Any], kept: list[dict[str, Any]], promised: list[Amounts]) -> bool:
    counts_as_kubelet = question["aligned"] and question["is_resize"]
    # A resizing pod is counted on its node and once more as the one that comes (SC-93).
    if len(kept) + len(promised) + question["is_resize"] + 1 > question["slots"]:
        return False
    for name in RESOURCES:
        if question["wants"][name] == 0:
            continue
        used = sum(each["has"][name] if counts_as_kubelet else max(each["desired"][name], each["has"][name]) for each in kept)
        used += sum(units[name] for units in promised)
        if used + question["wants"][name] > question["size"][name]:
            return False
    return True


def comes_back(question: dict[str, Any]) -> list[dict[str, Any]]:
    """Those who may stay, in the order in which they are asked to."""
    lower = [each for each in question["there"] if each["priority"] < HIGH]
    lower.sort(key=lambda each: (-each["priority"], each["start"] or "9999"))
    left = {pot: allowed for pot, (allowed, _) in question["budgets"].items()}
    guarded, free = [], []
    for each in lower:
        pot = each["pot"]
        if pot in left and question["budgets"][pot][1] != each["name"]:
            left[pot] -= 1
            (guarded if left[pot] < 0 else free).append(each)
        else:
            free.append(each)
    question["guarded"] = {each["name"] for each in guarded}
    return free if question["strict"] else guarded + free


def oracle(question: dict[str, Any]) -> set[str] | None:
    """Whom the first fitting set in the documented order lets go; None if preemption is of no use."""
    if any(question["wants"][name] > question["size"][name] for name in RESOURCES):
        return None
    candidates = comes_back(question)
    named = {each["name"] for each in candidates}
    fixed = [each for each in question["there"] if each["name"] not in named]
    if not [each for each in question["there"] if each["priority"] < HIGH]:
        return None
    for kept in itertools.product((True, False), repeat=len(candidates)):
        staying = [each for each, stays in zip(candidates, kept, strict=True) if stays]
        if fits(question, fixed + staying):
            return named - {each["name"] for each in staying}
    return None


# ---------------------------------------------------------------- the laws


@settings(max_examples=250, deadline=None)
@given(questions())
def test_the_decision_is_the_oracles(question: dict[str, Any]) -> None:
    decision = decided(question)
    if fits(question, question["there"]):
        assert isinstance(decision, Parked if question["is_resize"] else Placed)
        return
    assert isinstance(decision, Unschedulable)
    expected = oracle(question)
    if expected is None:
        assert isinstance(decision.preemption, NoPlan)
        return
    assert isinstance(decision.preemption, Plan)
    assert {victim.pod.metadata.name for victim in decision.preemption.candidate.victims} == expected
    broken = 0 if question["strict"] else len(expected & question["guarded"])
    assert decision.preemption.candidate.violations == broken


@settings(max_examples=150, deadline=None)
@given(questions())
def test_counting_as_the_kubelet_does_never_costs_more(question: dict[str, Any]) -> None:
    """Where both make room, the aligned scheduler keeps at least those whom the other one keeps first."""
    question = {**question, "is_resize": True, "strict": False}
    spared = {}
    for aligned in (False, True):
        decision = decided({**question, "aligned": aligned})
        if isinstance(decision, Parked):
            spared[aligned] = 0
        elif isinstance(decision, Unschedulable) and isinstance(decision.preemption, Plan):
            victims = decision.preemption.candidate.victims
            order = [each["name"] for each in comes_back(question)]
            gone = {victim.pod.metadata.name for victim in victims}
            spared[aligned] = next(len(order) - index for index, name in enumerate(order) if name in gone)
        else:
            assert not (aligned and False in spared), "what makes room under maxDesired makes it when less is counted"
            return
    assert spared.get(True, 0) <= spared.get(False, len(question["there"]) + 1)


@settings(max_examples=150, deadline=None)
@given(questions())
def test_a_budget_is_broken_only_if_all_others_together_do_not_make_the_room(question: dict[str, Any]) -> None:
    decision = decided({**question, "strict": False})
    if not isinstance(decision, Unschedulable) or not isinstance(decision.preemption, Plan):
        return
    comes_back(question)
    hit = {victim.pod.metadata.name for victim in decision.preemption.candidate.victims} & question["guarded"]
    staying = [each for each in question["there"] if each["priority"] >= HIGH or each["name"] in question["guarded"]]
    assert not hit or not fits(question, staying)
