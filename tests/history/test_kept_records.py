"""A history's records: found by kind, kept small, worked on once."""

import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from elbowroom.history.records import PART_MAX, SHAPES_MAX, History, Pool

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=2), v, max_size=9), max_leaves=20
)


def told(value: Any) -> Any:
    """The value with the types of all that it is made of: 1, 1.0 and True are equal, and are told apart."""
    if isinstance(value, dict):
        return {name: told(one) for name, one in value.items()}
    if isinstance(value, list):
        return [told(one) for one in value]
    return (type(value).__name__, value)


@given(st.lists(st.dictionaries(st.text(max_size=2), VALUES, max_size=9), max_size=4))
def test_what_is_kept_small_is_the_same(records: list[dict[str, Any]]) -> None:
    pool = Pool()
    kept = [pool.record(record) for record in records]
    assert [told(record) for record in kept] == [told(record) for record in records]
    assert [list(record) for record in kept] == [list(record) for record in records], "in the same order"


def test_equal_parts_are_one_and_names_take_no_room() -> None:
    pool = Pool()
    one, other = (
        pool.record({"kind": "".join(("com", "mit")), **{f"fact {n}": n for n in range(12)}, "limits": {"cpu": ["".join("1m")]}})
        for _ in range(2)
    )
    assert one["kind"] is other["kind"] and one["limits"] is other["limits"]
    assert sys.getsizeof(one) < 0.7 * sys.getsizeof(dict(one))


def test_equal_texts_of_parts_that_differ_are_one() -> None:
    pool = Pool()
    many = {f"fact {n}": "".join(("some", "where")) for n in range(PART_MAX + 1)}
    made = pool.record({"a": {**many, "b": 1}, "b": {**many, "b": 2}})
    assert made["a"] != made["b"] and made["a"]["fact 0"] is made["b"]["fact 1"]


def test_more_shapes_than_there_is_place_for_are_kept_as_they_are() -> None:
    pool = Pool()
    for number in range(SHAPES_MAX + 10):
        record = {"kind": "x", f"fact {number}": number}
        assert pool.record(record) == record


def test_records_are_found_by_kind_and_by_how_their_kind_begins() -> None:
    records = tuple({"kind": kind, "at": at} for at, kind in enumerate(("a.x", "b", "a.y", "a.x", "ab")))
    history = History(records)
    assert [record["at"] for record in history.kinds("a.x", "b")] == [0, 1, 3]
    assert [record["at"] for record in history.kinds("a.")] == [0, 2, 3]
    assert not list(history.kinds("c", "c."))
    assert (history.count("a.x"), history.count("c"), history.count("a.x", lambda record: record["at"] > 0)) == (2, 0, 1)
    assert history.counts() == {"a.x": 2, "b": 1, "a.y": 1, "ab": 1}


def test_lives_are_told_by_their_first_record() -> None:
    records = tuple(
        {"kind": "x", "proc": proc, "inc": inc, "seq": seq}
        for seq, (proc, inc) in enumerate((("a", 1), ("b", 1), ("a", 1), ("a", 2)))
    )
    assert {life: record["seq"] for life, record in History(records).lives().items()} == {("a", 1): 0, ("b", 1): 1, ("a", 2): 3}


def test_what_was_worked_out_once_is_remembered() -> None:
    history, made = History(()), list[int]()
    assert [history.remembered("it", lambda: made.append(1) or len(made)) for _ in range(2)] == [1, 1]
