"""The delay of a scale down: who keeps what until when, in both designs of KEP-6122."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.kubelet.managers.cpuset import CPUSet
from elbowroom.kubelet.managers.state import CPUState, Leaving, decode, encode
from elbowroom.kubelet.managers.static import Granted, Refused, StaticPolicy
from elbowroom.kubelet.managers.topology import Topology
from elbowroom.kubelet.previews.delay import Scaled, Terms, assigned, completed, is_leaving, recovered, scaled
from elbowroom.kubelet.previews.exclusive import Alignment, Ask, Barred
from elbowroom.machine import Instant, seconds

POLICY = StaticPolicy(Topology.regular(cores_per_numa=4, threads_per_core=2), CPUSet.of(0, 4))
T0 = Instant(1_000_000_000_000)
A = Terms(seconds(6))
B = Terms(seconds(6), boot="boot-1")
AT_ONCE = Terms()


def at(when: float) -> Instant:
    return Instant(T0 + seconds(when))


def ask(count: int, container: str = "c") -> Ask:
    return Ask(container, count, count, str(count), str(count))


def node(first: int = 2, now_has: int | None = None) -> CPUState:
    """A pod ``p`` that was created with ``first`` CPUs and has grown."""
    made = POLICY.allocate(POLICY.initial, "p", "c", first)
    assert isinstance(made, Granted)
    state = made.state.with_original("p", "c", made.cpus)
    return to(state, now_has or first).state


def to(state: CPUState, count: int, when: float = 0, terms: Terms = A) -> Scaled:
    found = scaled(POLICY, state, "p", [ask(count)], Alignment(), at(when), terms)
    assert isinstance(found, Scaled), found
    return found


def tick(state: CPUState, when: float) -> CPUState:
    return completed(state, at(when))[0]


def cpus(state: CPUState) -> tuple[str, str]:
    """What the container has, and what it is told."""
    return str(state.of("p", "c")), str(assigned(state, "p", "c"))


# ---------------------------------------------------------------- the table of states


def test_a_shrink_is_told_at_once_and_carried_out_after_the_delay() -> None:
    found = to(node(2, 4), 2)
    assert [change.container for change in found.delayed] == ["c"] and not found.changed
    state = found.state
    assert cpus(state) == ("1-2,5-6", "1,5") and str(state.default) == "0,3-4,7"
    assert tick(state, 5.9) == state
    state, done = completed(state, at(6))
    assert cpus(state) == ("1,5", "1,5") and str(state.default) == "0,2-4,6-7" and not is_leaving(state, "p")
    assert [(uid, str(change.before), str(change.after)) for uid, change in done] == [("p", "1-2,5-6", "1,5")]


def test_without_a_delay_a_shrink_is_in_force_at_once() -> None:
    found = to(node(2, 4), 2, terms=AT_ONCE)
    assert cpus(found.state) == ("1,5", "1,5") and not found.delayed


def test_growth_is_never_delayed() -> None:
    assert cpus(to(node(2), 4).state) == ("1-2,5-6", "1-2,5-6")


def test_growing_back_to_what_it_still_has_calls_the_shrink_off() -> None:
    state = to(to(node(2, 4), 2).state, 4, when=2).state
    assert cpus(state) == ("1-2,5-6", "1-2,5-6") and not is_leaving(state, "p")
    assert tick(state, 60) == state


def test_growing_beyond_it_calls_it_off_too() -> None:
    state = to(to(node(2, 4), 2).state, 6, when=2).state
    assert cpus(state) == ("1-3,5-7", "1-3,5-7") and not is_leaving(state, "p")


def test_growing_back_by_a_part_is_still_a_shrink_and_waits_anew() -> None:
    state = to(to(node(2, 6), 2).state, 4, when=4).state
    assert cpus(state) == ("1-3,5-7", "1-2,5-6")
    assert tick(state, 9.9) == state
    assert cpus(tick(state, 10)) == ("1-2,5-6", "1-2,5-6")


def test_a_second_shrink_waits_anew() -> None:
    state = to(to(node(2, 6), 4).state, 2, when=5).state
    assert cpus(tick(state, 10.9)) == ("1-3,5-7", "1,5")
    assert cpus(tick(state, 11)) == ("1,5", "1,5")


def test_what_is_refused_leaves_the_shrink_before_it_under_way() -> None:
    state = to(node(2, 4), 2).state
    refused = scaled(POLICY, state, "p", [ask(1)], Alignment(), at(1), A)
    assert isinstance(refused, Barred) and refused.error == "prohibitedCPUAllocation"
    assert cpus(tick(state, 6)) == ("1,5", "1,5")


def test_nobody_else_gets_what_is_still_held() -> None:
    state = to(node(2, 4), 2).state
    assert isinstance(POLICY.allocate(state, "q", "c", 4), Refused)
    assert isinstance(POLICY.allocate(tick(state, 6), "q", "c", 4), Granted)


def test_not_even_a_sibling_of_the_same_resize() -> None:
    state = POLICY.initial
    for name in ("a", "b"):
        made = POLICY.allocate(state, "p", name, 2)
        assert isinstance(made, Granted)
        state = made.state.with_original("p", name, made.cpus)
    grown = scaled(POLICY, state, "p", [ask(4, "a"), ask(2, "b")], Alignment(), T0, A)
    assert isinstance(grown, Scaled)
    swapped = scaled(POLICY, grown.state, "p", [ask(2, "a"), ask(4, "b")], Alignment(), T0, A)
    assert isinstance(swapped, Barred) and swapped.error == "resizeAllocateCPUs"
    assert isinstance(scaled(POLICY, grown.state, "p", [ask(2, "a"), ask(4, "b")], Alignment(), T0, AT_ONCE), Scaled)


def test_who_ends_meanwhile_waits_no_longer() -> None:
    state = POLICY.released(to(node(2, 4), 2).state, "p", "c")
    assert state == POLICY.initial
    assert tick(state, 60) == state


def test_a_container_without_cpus_of_its_own_is_told_of_none() -> None:
    assert assigned(POLICY.initial, "p", "c") is None


# ---------------------------------------------------------------- restarts


def restart(state: CPUState, count: int, when: float, terms: Terms) -> CPUState:
    """The kubelet ends, and starts again: what its file says, made to fit what the pod was allocated."""
    read = decode(encode(state, "static"), "static")
    return recovered(POLICY, read, "p", [ask(count)], Alignment(), at(when), terms).state


def test_design_a_forgets_the_delay_and_begins_it_anew() -> None:
    state = restart(to(node(2, 4), 2).state, 2, 5, A)
    assert cpus(state) == ("1-2,5-6", "1,5")
    assert cpus(tick(state, 10.9)) == ("1-2,5-6", "1,5")
    assert cpus(tick(state, 11)) == ("1,5", "1,5")


def test_design_b_goes_on_where_it_was() -> None:
    state = restart(to(node(2, 4), 2, terms=B).state, 2, 5, B)
    assert cpus(tick(state, 5.9)) == ("1-2,5-6", "1,5")
    assert cpus(tick(state, 6)) == ("1,5", "1,5")


def test_design_b_completes_what_was_due_meanwhile() -> None:
    assert cpus(tick(restart(to(node(2, 4), 2, terms=B).state, 2, 60, B), 60)) == ("1,5", "1,5")


def test_design_b_trusts_no_time_of_another_boot() -> None:
    state = restart(to(node(2, 4), 2, terms=B).state, 2, 60, Terms(seconds(6), boot="boot-2"))
    assert cpus(tick(state, 65.9)) == ("1-2,5-6", "1,5")
    assert cpus(tick(state, 66)) == ("1,5", "1,5")


@pytest.mark.parametrize(("count", "expected"), [(4, ("1-2,5-6", "1-2,5-6")), (3, ("1-2,5-6", "1-2,5"))])
def test_design_b_goes_by_the_allocation_where_that_has_changed(count: int, expected: tuple[str, str]) -> None:
    state = restart(to(node(2, 4), 2, terms=B).state, count, 60, B)
    assert cpus(state) == expected
    assert is_leaving(state, "p") == (count == 3)


def test_a_promise_made_by_a_preview_that_is_gone_is_dropped() -> None:
    state = restart(to(node(2, 4), 2, terms=B).state, 2, 1, AT_ONCE)
    assert cpus(state) == ("1,5", "1,5") and not is_leaving(state, "p")


def test_a_life_that_died_between_its_two_files_is_mended_either_way() -> None:
    assert cpus(restart(node(2, 4), 2, 0, AT_ONCE)) == ("1,5", "1,5")
    assert cpus(restart(node(2), 4, 0, AT_ONCE)) == ("1-2,5-6", "1-2,5-6")


def test_what_cannot_be_mended_stays() -> None:
    state = node(2)
    assert restart(state, 1, 0, A) == decode(encode(state, "static"), "static")


def test_only_a_promise_with_a_boot_is_written_down() -> None:
    assert b"preAssignments" not in encode(to(node(2, 4), 2, terms=A).state, "static")
    raw = encode(to(node(2, 4), 2, terms=B).state, "static")
    assert decode(raw, "static").leaving == {"p": {"c": Leaving(CPUSet.of(1, 5), at(6), "boot-1")}}


# ---------------------------------------------------------------- laws

stories = st.lists(
    st.tuples(st.sampled_from(["resize", "create", "delete", "tick", "restart"]), st.sampled_from("ab"), st.integers(1, 6)),
    min_size=1,
    max_size=16,
)


@given(stories, st.sampled_from([A, B, AT_ONCE]))
@settings(deadline=None)
def test_nothing_is_lost_and_nobody_is_given_what_another_still_has(story: Sequence[tuple[str, str, int]], terms: Terms) -> None:
    state, firsts, allocated, now = POLICY.initial, dict[str, CPUSet](), dict[str, int](), T0
    for move, uid, count in story:
        now = Instant(now + seconds(count))
        own = state.of(uid, "c")
        match move:
            case "tick":
                state = completed(state, now)[0]
            case "restart":
                state = decode(encode(state, "static"), "static")
                for each, wanted in allocated.items():
                    state = recovered(POLICY, state, each, [ask(wanted)], Alignment(), now, terms).state
            case "delete" if own is not None:
                state = POLICY.released(state, uid, "c")
                del allocated[uid], firsts[uid]
            case "create" if own is None:
                made = POLICY.allocate(state, uid, "c", count)
                if isinstance(made, Granted):
                    state = made.state.with_original(uid, "c", made.cpus)
                    firsts[uid], allocated[uid] = made.cpus, count
            case "resize" if own is not None:
                found = scaled(POLICY, state, uid, [ask(count)], Alignment(), now, terms)
                if isinstance(found, Scaled):
                    state, allocated[uid] = found.state, count
        held = [one for entry in state.entries.values() for one in entry.values()]
        assert sum(map(len, held)) == len(state.assigned) and not state.assigned & state.default
        assert state.assigned | state.default == POLICY.topology.all
        for each, wanted in allocated.items():
            has, told = state.of(each, "c"), assigned(state, each, "c")
            assert has is not None and told is not None
            assert firsts[each] <= told <= has and len(told) == wanted
            assert is_leaving(state, each) == (told != has)
    state = completed(state, Instant(now + seconds(60)))[0]
    assert {uid: len(entry["c"]) for uid, entry in state.entries.items()} == allocated
