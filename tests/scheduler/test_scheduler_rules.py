"""The rules that the scheduler hangs on, each asked alone: what fits, what a node must gain, who makes room, what it costs."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from elbowroom.api.gates import profile_of
from elbowroom.api.objects import Node
from elbowroom.scheduler import preemption
from elbowroom.scheduler.plugins import deferred, resources
from elbowroom.scheduler.preemption import Candidate

GI = 1 << 30


def node(allocatable: dict[str, int], requested: dict[str, int], *, pods: dict[str, Any] | None = None, slots: int = 10) -> Any:
    return SimpleNamespace(allocatable=allocatable, requested=requested, pods=pods or {}, allowed_pods=slots)


def refused(status: Any) -> tuple[str, ...]:
    return () if status is None else tuple(status.reasons)


FITS = [
    ("exactly all of an empty node", {"cpu": 1000}, {"cpu": 1000}, {}, ()),
    ("one more than is left", {"cpu": 1000}, {"cpu": 1000}, {"cpu": 1}, ("Insufficient cpu",)),
    ("the smallest part of what the node does not have", {"example.com/x": 1}, {"cpu": 1000}, {}, ("Insufficient example.com/x",)),
    ("nothing, which a node that gave too much has, too", {"cpu": 0}, {"cpu": 1000}, {"cpu": 2000}, ()),
    (
        "nothing of what it asks for, the great resources told first and the others by name",
        {"b.com/x": 1, "a.com/x": 2, "ephemeral-storage": 1, "memory": 1, "cpu": 1},
        {},
        {},
        tuple(f"Insufficient {name}" for name in ("cpu", "memory", "ephemeral-storage", "a.com/x", "b.com/x")),
    ),
]


@pytest.mark.parametrize(("what", "want", "allocatable", "requested", "reasons"), FITS, ids=[each[0] for each in FITS])
def test_a_pod_fits_into_what_is_left(
    what: str, want: dict[str, int], allocatable: dict[str, int], requested: dict[str, int], reasons: tuple[str, ...]
) -> None:
    assert refused(resources._Fits(want, object()).check(node(allocatable, requested))) == reasons
    # A resize of a pod that the node does not count yet asks the same.
    waiting = SimpleNamespace(uid="u", want=want)
    assert refused(resources._ResizeFits(waiting, aligned=False).check(node(allocatable, requested))) == reasons  # type: ignore[arg-type]


RESIZES = [
    ("grows into the rest", 1000, 3000, 3000, 1000, ()),
    ("grows beyond the rest", 1000, 3000, 2500, 1000, ("Insufficient cpu",)),
    ("does not grow on a full node", 1000, 1000, 1000, 1000, ()),
    ("shrinks on a full node", 2000, 1000, 2000, 2000, ()),
    ("does not grow on a node that gave too much", 1000, 1000, 1000, 1001, ("Insufficient cpu",)),
]


@pytest.mark.parametrize(("what", "have", "want", "total", "requested", "reasons"), RESIZES, ids=[each[0] for each in RESIZES])
def test_a_resize_asks_for_what_it_adds(
    what: str, have: int, want: int, total: int, requested: int, reasons: tuple[str, ...]
) -> None:
    waiting: Any = SimpleNamespace(uid="u", want={"cpu": want})
    there = node({"cpu": total}, {"cpu": requested}, pods={"u": SimpleNamespace(requests={"cpu": have})})
    assert refused(resources._ResizeFits(waiting, aligned=False).check(there)) == reasons


def a_node(**allocatable: str) -> Node:
    return msgspec.convert({"metadata": {"name": "n1"}, "status": {"allocatable": allocatable}}, Node)


def waiting_for(**want: int) -> Any:
    return SimpleNamespace(uid="u", want=want, pod=SimpleNamespace(spec=SimpleNamespace(node_name="")))


EMPTY = [
    ("room for one pod", {"cpu": "1", "pods": "1"}, True),
    ("no place for pods", {"cpu": "1"}, False),
    ("too little", {"cpu": "500m", "pods": "10"}, False),
]


@pytest.mark.parametrize(("what", "allocatable", "fits"), EMPTY, ids=[each[0] for each in EMPTY])
def test_an_empty_node_has_room_for_a_pod(what: str, allocatable: dict[str, str], fits: bool) -> None:
    assert resources._fits_empty(waiting_for(cpu=1000), a_node(**allocatable)) is fits


GROWN = [
    ("nothing grew", {"cpu": "2", "pods": "5"}, {"cpu": "2", "pods": "5"}, False),
    ("what it asks for grew", {"cpu": "1", "pods": "5"}, {"cpu": "2", "pods": "5"}, True),
    ("only the places for pods grew", {"cpu": "2", "pods": "1"}, {"cpu": "2", "pods": "2"}, True),
    (
        "only what it asks nothing of grew",
        {"cpu": "2", "memory": "1", "pods": "5"},
        {"cpu": "2", "memory": "2", "pods": "5"},
        False,
    ),
    ("the node has something new", {"cpu": "2"}, {"cpu": "2", "pods": "1"}, True),
]


@pytest.mark.parametrize(("what", "old", "new", "wakes"), GROWN, ids=[each[0] for each in GROWN])
def test_a_node_wakes_who_asks_for_what_grew(what: str, old: dict[str, str], new: dict[str, str], wakes: bool) -> None:
    assert resources._node_grew(waiting_for(cpu=1000, memory=0), a_node(**old), a_node(**new)) is wakes


def info(uid: str, priority: int = 0, *, on: str = "n1", ending: bool = False, reason: str = "", started: int = 0) -> Any:
    mark = SimpleNamespace(status="True", reason=reason) if reason else None
    pod = SimpleNamespace(spec=SimpleNamespace(node_name=on), is_terminating=ending, condition=lambda _: mark)
    return SimpleNamespace(uid=uid, priority=priority, pod=pod, started=lambda now: started)


OURS = "PreemptionByScheduler"
ROOM = [
    ("a victim of ours that ends", info("v", 1, ending=True, reason=OURS), "none", True),
    ("one that ends for another reason", info("v", 1, ending=True, reason="DeletionByTaintManager"), "none", False),
    ("one that ends and is not marked", info("v", 1, ending=True), "none", False),
    ("a marked one that does not end yet", info("v", 1, reason=OURS), "none", False),
    ("an equal one", info("v", 5, ending=True, reason=OURS), "none", False),
    ("a more important one", info("v", 9, ending=True, reason=OURS), "none", False),
    ("one that is remembered", info("v", 1, ending=True), "memory", True),
    ("a marked one that is not remembered", info("w", 1, ending=True, reason=OURS), "memory", False),
    ("a remembered one that is equal", info("v", 5, ending=True), "memory", False),
    ("a remembered one that does not end", info("v", 1), "memory", False),
]


@pytest.mark.parametrize(("what", "other", "tracking", "makes"), ROOM, ids=[each[0] for each in ROOM])
def test_whose_end_is_waited_for(what: str, other: Any, tracking: str, makes: bool) -> None:
    world: Any = SimpleNamespace(tracking=tracking, remembered={"p": frozenset({"v"})})
    assert preemption._makes_room(other, info("p", 5), world) is makes


def test_memory_is_of_resizes_and_a_pod_without_a_node_goes_by_marks() -> None:
    world: Any = SimpleNamespace(tracking="memory", remembered={"p": frozenset({"v"})})
    assert not preemption._makes_room(info("v", 1, ending=True), info("p", 5, on=""), world)
    assert preemption._makes_room(info("w", 1, ending=True, reason=OURS), info("p", 5, on=""), world)


def test_what_a_choice_costs() -> None:
    """Violations, the most important victim, the sum, the number, and how late the first of the most important began."""
    victims = (info("a", 10, started=5), info("b", 10, started=3), info("c", 4, started=1))
    assert preemption.cost(Candidate("n1", victims, 2), 0) == (2, 10, 24 + 3 * 2**31, 3, -3)
    assert preemption.cost(Candidate("n1", (), 1), 0) == (1, -(2**31), 0, 0, 0)


NEIGHBOURS = [
    ("a neighbour", info("other"), True),
    ("a pod elsewhere", info("other", on="n2"), False),
    ("the pod itself", info("u"), False),
    ("nobody", None, False),
]


@pytest.mark.parametrize(("what", "changed", "wakes"), NEIGHBOURS, ids=[each[0] for each in NEIGHBOURS])
def test_a_deferred_pod_is_woken_by_its_neighbours_alone(what: str, changed: Any, wakes: bool) -> None:
    plugin = deferred.DeferredPodScheduling(profile_of("lab"), SimpleNamespace(node=lambda name: None))  # type: ignore[arg-type]
    assert plugin._neighbour_changed(info("u"), None, changed) is wakes
    assert plugin._neighbour_changed(info("u"), changed, None) is wakes


@pytest.mark.parametrize(("profile", "disabled", "wakes"), [("v1.37", True, False), ("v1.37", False, True), ("lab", True, True)])
def test_where_the_nodes_policy_holds_a_resize_back_nothing_wakes_it(profile: str, disabled: bool, wakes: bool) -> None:
    """In the lab the pod's condition does, and keeps it out of the queue."""
    own = SimpleNamespace(name="n1", resize_preemption_disabled=disabled)
    lookup: Any = SimpleNamespace(node=lambda name: own if name == "n1" else None)
    plugin = deferred.DeferredPodScheduling(profile_of(profile), lookup)
    before, after = info("u"), info("u")
    assert plugin._itself_changed(after, before, after) is wakes
    assert plugin._neighbour_changed(after, None, info("other")) is wakes
    assert plugin._own_node_came(after, None, own) is wakes  # type: ignore[arg-type]
    assert plugin._own_node_resized(after, own, own) is wakes  # type: ignore[arg-type]
