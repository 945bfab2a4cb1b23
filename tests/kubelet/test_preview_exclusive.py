"""Resizing exclusive CPUs, as KEP-5554 describes it: what is kept, gained, given up, refused."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.kubelet.managers.cpuset import CPUSet
from elbowroom.kubelet.managers.options import StaticOptions
from elbowroom.kubelet.managers.state import CPUState
from elbowroom.kubelet.managers.static import Granted, Refused, StaticPolicy
from elbowroom.kubelet.managers.topology import Topology
from elbowroom.kubelet.previews.exclusive import Alignment, Ask, Barred, HeldBack, Resized, held_back, resized

T1 = StaticPolicy(Topology.regular(cores_per_numa=4, threads_per_core=2), CPUSet.of(0, 4))
T2 = StaticPolicy(Topology.regular(sockets=2, cores_per_numa=4, threads_per_core=2), CPUSet.of(0, 8))
T4 = StaticPolicy(Topology.regular(cores_per_numa=16), CPUSet.of(0))


def admitted(
    policy: StaticPolicy, state: CPUState, uid: str, count: int, container: str = "c", affinity: int | None = None
) -> CPUState:
    """The state with one more container, which has what it was first given."""
    made = policy.allocate(state, uid, container, count, affinity)
    assert isinstance(made, Granted)
    return made.state.with_original(uid, container, made.cpus)


def node(policy: StaticPolicy, **pods: int) -> CPUState:
    """Pods of one container, created in this order."""
    state = policy.initial
    for uid, count in pods.items():
        state = admitted(policy, state, uid, count)
    return state


def ask(count: int, had: int | None = None, container: str = "c") -> Ask:
    had = count if had is None else had
    return Ask(container, count, had, str(count), str(had))


def to(policy: StaticPolicy, state: CPUState, count: int, uid: str = "p", topology: str = "none") -> CPUState:
    """The state after a resize that must be possible."""
    own = state.of(uid, "c")
    assert own is not None
    found = resized(policy, state, uid, [ask(count, len(own))], Alignment(topology))
    assert isinstance(found, Resized), found
    return found.state


def barred(policy: StaticPolicy, state: CPUState, asks: Sequence[Ask], topology: str = "none", uid: str = "p") -> Barred:
    found = resized(policy, state, uid, asks, Alignment(topology))
    assert isinstance(found, Barred), found
    return found


def cpus(state: CPUState, uid: str = "p", container: str = "c") -> str:
    return str(state.of(uid, container))


# ---------------------------------------------------------------- which CPUs


@pytest.mark.parametrize(
    ("policy", "first", "steps"),
    [
        (T4, 2, [(4, "1-4"), (8, "1-8"), (12, "1-12"), (6, "1-6"), (2, "1-2")]),
        (T1, 2, [(4, "1-2,5-6"), (6, "1-3,5-7"), (3, "1-2,5"), (2, "1,5")]),
        (T1, 1, [(2, "1,5"), (3, "1-2,5")]),
        (T2, 2, [(8, "1-4,9-12"), (2, "1,9")]),
    ],
)
def test_a_set_grows_from_what_it_has_and_shrinks_to_what_it_first_had(
    policy: StaticPolicy, first: int, steps: list[tuple[int, str]]
) -> None:
    state = node(policy, p=first)
    for count, expected in steps:
        state = to(policy, state, count)
        assert cpus(state) == expected
    assert state.default | state.assigned == policy.topology.all


def test_a_half_owned_core_is_completed_first() -> None:
    state = node(T1, p=1)
    assert cpus(state) == "1"
    assert cpus(to(T1, state, 2)) == "1,5"


def test_a_grown_set_differs_from_a_fresh_one_of_the_same_size() -> None:
    assert cpus(node(T2, p=8)) == "4-7,12-15"
    assert cpus(to(T2, node(T2, p=2), 8)) == "1-4,9-12"


def test_what_spilled_to_another_node_is_given_up_first() -> None:
    state = node(T2, p=2, b=4)
    state = to(T2, state, 6, topology="best-effort")
    assert cpus(state) == "1,4-5,9,12-13"
    state = to(T2, state, 4, topology="best-effort")
    assert cpus(state) == "1,4,9,12"
    assert cpus(to(T2, state, 2, topology="best-effort")) == "1,9"


def test_containers_are_served_in_spec_order_on_what_is_free_at_their_turn() -> None:
    state = admitted(T4, admitted(T4, T4.initial, "p", 2, "c1"), "p", 2, "c2")
    found = resized(T4, state, "p", [ask(2, 2, "c1"), ask(4, 2, "c2")], Alignment())
    assert isinstance(found, Resized) and cpus(found.state, container="c2") == "3-6"
    found = resized(T4, found.state, "p", [ask(4, 2, "c1"), ask(2, 4, "c2")], Alignment())
    assert isinstance(found, Resized)
    assert (cpus(found.state, container="c1"), cpus(found.state, container="c2")) == ("1-2,7-8", "3-4")
    assert [change.container for change in found.changes] == ["c1", "c2"]


def test_asking_for_as_much_as_there_is_changes_nothing() -> None:
    state = node(T1, p=2)
    assert resized(T1, state, "p", [ask(2)], Alignment("single-numa-node")) == Resized(state)


def test_the_order_of_growth_need_not_be_undone() -> None:
    state = node(T4, p=4)
    for count in (8, 12, 6):
        state = to(T4, state, count)
    assert cpus(state) == "1-6"


# ---------------------------------------------------------------- what is refused


def test_less_than_the_first_set_is_never_given() -> None:
    found = barred(T1, node(T1, p=4), [ask(3, 4)])
    assert found.message == (
        "prohibitedCPUAllocation Error: Skip resize, Not allowed to reduce container exclusively allocated pool below promised, "
        "(requested CPUs = 3, allocated CPUs = 4, promised CPUs = 4, guaranteed CPUs = 3)"
    )


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            Ask("c", 0, 2, "1500m", "2"),
            "inconsistentCPUAllocation Error: Not allowed to move a container from exclusively allocated pool to shared pool, "
            "(requested CPUs = 1500m, allocated CPUs = 2)",
        ),
        (
            Ask("c", 2, 0, "2", "1500m"),
            "inconsistentCPUAllocation Error: Not allowed to move a container from shared pool to exclusively allocated pool, "
            "(requested CPUs = 2, allocated CPUs = 1500m)",
        ),
    ],
)
def test_nobody_changes_between_the_pools(wanted: Ask, message: str) -> None:
    assert barred(T1, node(T1, p=2), [wanted]).message == message


def test_a_shared_container_may_ask_for_another_fraction() -> None:
    state = node(T1, p=2)
    assert resized(T1, state, "q", [Ask("c", 0, 0, "1700m", "1500m")], Alignment()) == Resized(state)


def test_a_container_of_which_no_first_set_is_known_keeps_its_size() -> None:
    made = T1.allocate(T1.initial, "p", "c", 2)
    assert isinstance(made, Granted)
    assert barred(T1, made.state, [ask(4, 2)]).error == "getOriginalCPUSet"


def test_an_init_container_that_has_ended_hinders_nobody() -> None:
    state = node(T1, p=2)
    gone = Ask("init", 4, 2, "4", "2", passing=True)
    found = resized(T1, state, "p", [gone, ask(4, 2)], Alignment())
    assert isinstance(found, Resized) and cpus(found.state) == "1-2,5-6"


def test_too_few_free_cpus_bar_the_resize_and_move_nothing() -> None:
    found = barred(T1, node(T1, p=4, b=2), [ask(5, 4)])
    assert found.message == ("resizeAllocateCPUs Error: not enough cpus available to satisfy request: requested=5, available=4")


def test_one_container_that_cannot_be_served_bars_all() -> None:
    state = admitted(T1, admitted(T1, T1.initial, "p", 2, "c1"), "p", 2, "c2")
    assert barred(T1, state, [ask(4, 2, "c1"), ask(4, 2, "c2")]).error == "resizeAllocateCPUs"


@pytest.mark.parametrize("count", [3, 5])
def test_whole_cores_are_asked_of_a_resize_too(count: int) -> None:
    whole = StaticPolicy(T1.topology, T1.reserved, StaticOptions(full_pcpus_only=True))
    state = node(whole, p=2)
    assert f"requested {count} cpus not multiple cpus per core = 2" in barred(whole, state, [ask(count, 2)]).message
    assert cpus(to(whole, state, 6)) == "1-3,5-7"


def test_a_strict_reservation_stays_out_of_the_shared_pool() -> None:
    strict = StaticPolicy(T1.topology, T1.reserved, StaticOptions(strict_cpu_reservation=True))
    assert str(to(strict, node(strict, p=2), 4).default) == "3,7"


# ---------------------------------------------------------------- where


@pytest.mark.parametrize(("topology", "count"), [("single-numa-node", 10), ("restricted", 4)])
def test_a_strict_policy_refuses_to_spill(topology: str, count: int) -> None:
    state = node(T2, p=2, b=4)
    assert barred(T2, state, [ask(count, 2)], topology).message == (
        "resizeAllocateCPUs Error: Resources cannot be allocated with Topology locality"
    )


def test_best_effort_spills_to_another_node() -> None:
    assert cpus(to(T2, node(T2, p=2, b=4), 4, topology="best-effort")) == "1,4,9,12"


def test_one_node_is_enough_while_it_lasts() -> None:
    machine = StaticPolicy(
        Topology.regular(sockets=2, cores_per_numa=3, threads_per_core=2), CPUSet.of(5, 11), StaticOptions(full_pcpus_only=True)
    )
    state = admitted(machine, machine.initial, "p", 2, affinity=0b01)
    for count, expected in ((4, "0-1,6-7"), (6, "0-2,6-8")):
        state = to(machine, state, count, topology="single-numa-node")
        assert cpus(state) == expected
    assert barred(machine, state, [ask(8, 6)], "single-numa-node").error == "resizeAllocateCPUs"
    state = to(machine, state, 4, topology="single-numa-node")
    assert cpus(state) == "0-1,6-7"
    assert barred(machine, state, [ask(1, 4)], "single-numa-node").error == "prohibitedCPUAllocation"
    assert cpus(to(machine, state, 2, topology="single-numa-node")) == "0,6"


def test_a_shrunk_set_may_leave_the_nodes_that_growth_added() -> None:
    state = to(T2, node(T2, p=2, b=4), 4, topology="best-effort")
    assert cpus(to(T2, state, 2, topology="restricted")) == "1,9"


def test_in_scope_pod_one_decision_holds_for_all_containers() -> None:
    state = admitted(T2, admitted(T2, T2.initial, "p", 2, "c1"), "p", 2, "c2")
    per_pod = Alignment("single-numa-node", per_pod=True)
    found = resized(T2, state, "p", [ask(4, 2, "c1"), ask(2, 2, "c2")], per_pod)
    assert isinstance(found, Resized)
    assert T2.topology.numas_of(found.state.assigned) == 1
    assert isinstance(resized(T2, state, "p", [ask(4, 2, "c1"), ask(4, 2, "c2")], per_pod), Barred)


# ---------------------------------------------------------------- a released kubelet


def test_a_released_kubelet_grants_and_leaves_the_cpus_alone() -> None:
    assert held_back(T1, node(T1, p=2), "p", [ask(4, 2)], "best-effort") is None


@pytest.mark.parametrize("topology", ["restricted", "single-numa-node"])
def test_a_strict_topology_policy_holds_it_back(topology: str) -> None:
    expected = HeldBack("TopologyAffinityError", "Resources cannot be allocated with Topology locality")
    assert held_back(T1, node(T1, p=2), "p", [ask(4, 2)], topology) == expected
    assert held_back(T1, node(T1, p=2), "p", [ask(2, 2)], topology) is None


def test_and_so_does_the_wish_for_whole_cores() -> None:
    whole = StaticPolicy(T1.topology, T1.reserved, StaticOptions(full_pcpus_only=True))
    found = held_back(whole, node(whole, p=2), "p", [ask(3, 2)], "none")
    assert found is not None and found.reason == "SMTAlignmentError"


# ---------------------------------------------------------------- laws

MACHINES = [
    Topology.regular(cores_per_numa=4, threads_per_core=2),
    Topology.regular(sockets=2, cores_per_numa=4, threads_per_core=2),
    Topology.regular(sockets=2, numa_nodes_per_socket=2, cores_per_numa=2, threads_per_core=2),
    Topology.regular(cores_per_numa=8),
]
OPTIONS = [
    StaticOptions(),
    StaticOptions(full_pcpus_only=True),
    StaticOptions(strict_cpu_reservation=True),
    StaticOptions(distribute_cpus_across_numa=True),
    StaticOptions(align_by_socket=True),
    StaticOptions(distribute_cpus_across_cores=True),
    StaticOptions(prefer_align_cpus_by_uncorecache=True),
]
policies = st.builds(
    lambda topology, options: StaticPolicy(topology, CPUSet.of(0, len(topology.all) // 2), options),
    st.sampled_from(MACHINES),
    st.sampled_from(OPTIONS),
)
moves = st.lists(
    st.tuples(st.sampled_from(["resize", "create", "delete"]), st.sampled_from("abc"), st.integers(1, 8)), min_size=1, max_size=14
)


def check(policy: StaticPolicy, state: CPUState, firsts: Mapping[str, CPUSet]) -> None:
    """Sets are disjoint, hold their first sets, and nothing is lost."""
    seen, total = CPUSet(), 0
    for uid, containers in state.entries.items():
        for own in containers.values():
            total += len(own)
            seen |= own
            assert firsts[uid] <= own
    assert total == len(seen), "nobody shares an exclusive CPU"
    assert not seen & state.default and not seen & policy.reserved
    assert seen | state.default == policy.initial.default


@given(policies, moves, st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]))
@settings(deadline=None)
def test_sets_stay_disjoint_keep_what_was_promised_and_lose_nothing(
    policy: StaticPolicy, story: list[tuple[str, str, int]], topology: str
) -> None:
    state, firsts = policy.initial, dict[str, CPUSet]()
    for move, uid, count in story:
        own = state.of(uid, "c")
        if move == "delete":
            state = policy.released(state, uid, "c")
            assert state.original(uid, "c") is None
        elif move == "create" and own is None:
            made = policy.allocate(state, uid, "c", count)
            if isinstance(made, Refused):
                continue
            firsts[uid] = made.cpus
            state = made.state.with_original(uid, "c", made.cpus)
        elif move == "resize" and own is not None:
            found = resized(policy, state, uid, [ask(count, len(own))], Alignment(topology))
            if isinstance(found, Barred):
                if count < len(firsts[uid]):
                    assert found.error == "prohibitedCPUAllocation"
                continue
            after = found.state.of(uid, "c")
            assert after is not None and len(after) == count
            assert own <= after if count >= len(own) else after <= own
            state = found.state
        check(policy, state, firsts)


@given(policies, st.integers(1, 4), st.integers(1, 8))
@settings(deadline=None)
def test_there_and_back_again_is_the_first_set(policy: StaticPolicy, first: int, grown: int) -> None:
    made = policy.allocate(policy.initial, "p", "c", first)
    if isinstance(made, Refused):
        return
    state = made.state.with_original("p", "c", made.cpus)
    found = resized(policy, state, "p", [ask(max(first, grown), first)], Alignment())
    if isinstance(found, Barred):
        return
    back = resized(policy, found.state, "p", [ask(first, max(first, grown))], Alignment())
    assert isinstance(back, Resized) and back.state == state
