"""A queue of keys: each once, later where it failed."""

from hypothesis import given
from hypothesis import strategies as st

from elbowroom.cache import Backoff, WorkQueue
from elbowroom.machine import Instant, seconds

NOW = Instant(5_000_000_000)


def at(span: float) -> Instant:
    return Instant(NOW + seconds(span))


def test_a_key_added_twice_is_handed_out_once_in_the_order_of_its_first_adding() -> None:
    queue = WorkQueue()
    for key in ("b", "a", "b"):
        queue.add(key)
    assert queue.ready(NOW) == ["b", "a"]
    assert queue.ready(NOW) == []


def test_a_delayed_key_comes_when_due_and_at_the_earliest_of_its_times() -> None:
    queue = WorkQueue()
    queue.add_at("x", at(5))
    queue.add_at("x", at(2))
    queue.add_at("x", at(9))
    assert queue.due() == at(2)
    assert queue.ready(at(1.9)) == []
    assert queue.ready(at(2)) == ["x"]
    assert queue.due() is None
    assert queue.ready(at(10)) == []


def test_adding_makes_a_delayed_key_ready_now_and_only_now() -> None:
    queue = WorkQueue()
    queue.add_at("x", at(5))
    queue.add("x")
    assert queue.due() is None
    assert queue.ready(NOW) == ["x"]
    assert queue.ready(at(6)) == []


def test_delayed_keys_become_ready_in_the_order_of_their_times() -> None:
    queue = WorkQueue()
    for key, span in (("c", 3), ("a", 1), ("b", 2)):
        queue.add_at(key, at(span))
    assert queue.ready(at(9)) == ["a", "b", "c"]


def test_failures_wait_twice_as_long_each_time_until_one_works() -> None:
    queue = WorkQueue(initial=1.0, cap=3.0)
    for wait in (1.0, 2.0, 3.0, 3.0):
        queue.fail(NOW, "x")
        assert queue.due() == at(wait)
        assert queue.ready(at(wait)) == ["x"]
    queue.done("x")
    queue.fail(NOW, "x")
    assert queue.due() == at(1.0)


def test_back_off_never_overflows() -> None:
    backoff = Backoff(0.1, 10.0)
    waits = [backoff.next("k") for _ in range(2000)]
    assert waits[0] == seconds(0.1)
    assert set(waits[100:]) == {seconds(10.0)}
    assert backoff.failures("k") == 2000
    assert backoff.failures("other") == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 20))), max_size=30), st.integers(0, 20))
def test_no_key_is_lost_or_early_or_twice(adds: list[tuple[str, int | None]], until: int) -> None:
    queue = WorkQueue()
    for key, span in adds:
        if span is None:
            queue.add(key)
        else:
            queue.add_at(key, at(span))
    earliest = {key: min(NOW if span is None else at(span) for k, span in adds if k == key) for key, _ in adds}
    handed = queue.ready(at(until))
    assert sorted(handed) == sorted(key for key, due in earliest.items() if due <= at(until))
    left = [due for due in earliest.values() if due > at(until)]
    assert queue.due() == min(left, default=None)
