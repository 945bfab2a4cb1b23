"""A long history is judged as a short one is: valid where all went well, broken where one record of its end is wrong."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.deploy.bench.long_run import Recorded, recorded, stretched
from elbowroom.history.linearizability import WINDOW, Operation, is_linearizable
from elbowroom.history.records import History
from elbowroom.history.report import judge

Records = list[dict[str, Any]]


@pytest.fixture(scope="module")
def made() -> Recorded:
    return recorded()


def several_rounds(made: Recorded) -> Records:
    return [dict(record) for record in stretched(made, 2 * made.operations)]


def test_repeated_rounds_are_one_valid_run(made: Recorded) -> None:
    records = several_rounds(made)
    report = judge(History(tuple(records)))
    assert report.verdict == "valid", report.text()
    assert sum(record["kind"] == "api.ok" for record in records) >= 2 * made.operations
    assert [record["mono_ns"] for record in records] == sorted(record["mono_ns"] for record in records)
    names = [(record["proc"], record["inc"], record["seq"]) for record in records]
    assert len(set(names)) == len(names)


def test_each_round_has_its_guest_and_its_victim(made: Recorded) -> None:
    told = [record for record in several_rounds(made) if record["kind"] == "sch.delete"]
    assert len({record["uid"] for record in told}) == len(told) == 3, "one round came before"


def last(records: Records, kind: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
    return [record for record in records if record["kind"] == kind and where(record)][-1]


def a_read_is_stale(records: Records) -> None:
    last(records, "api.ok", lambda record: not record["write"])["rev"] -= 400


def a_read_is_of_the_future(records: Records) -> None:
    commits = [record["rev"] for record in records if record["kind"] == "commit"]
    last(records, "api.ok", lambda record: not record["write"])["rev"] = commits[-1]


def a_limit_is_nobodys(records: Records) -> None:
    found = last(records, "rt.update.begin", lambda record: "memory_limit_bytes" in record["cfg"])
    found["cfg"] = {**found["cfg"], "memory_limit_bytes": 12345}


def something_else_is_actuated(records: Records) -> None:
    last(records, "kl.actuated")["containers"] = {"c": {"requests": {"cpu": "77m", "memory": "77Mi"}}}


def something_else_is_allocated(records: Records) -> None:
    last(records, "kl.alloc")["containers"] = {"c": {"requests": {"cpu": "77m", "memory": "77Mi"}}}


def too_much_is_allocated(records: Records) -> None:
    found = last(records, "kl.alloc")
    found["vector"] = {**found["vector"], "cpu": found["allocatable"]["cpu"]}


def an_event_is_lost(records: Records) -> None:
    of_the_kubelet = [record for record in records if record["kind"] == "watch.event" and record["proc"] == "kubelet/node-1"]
    records.remove(of_the_kubelet[-2])


@pytest.mark.parametrize(
    ("invariant", "change"),
    [
        ("I-36", a_read_is_stale),
        ("I-36", a_read_is_of_the_future),
        ("I-05", a_limit_is_nobodys),
        ("I-03", something_else_is_actuated),
        ("I-04", something_else_is_allocated),
        ("I-01", too_much_is_allocated),
        ("I-39", an_event_is_lost),
    ],
)
def test_one_wrong_record_at_the_end_is_found(invariant: str, change: Callable[[Records], None], made: Recorded) -> None:
    records = several_rounds(made)
    change(records)
    assert invariant in {violation.invariant for violation in judge(History(tuple(records))).failures}


OPERATIONS = st.lists(
    st.builds(
        lambda begun, took, revision, writes: Operation(begun, begun + took, revision, writes),
        st.integers(0, 8),
        st.integers(0, 6),
        st.integers(1, 5),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@given(OPERATIONS)
def test_the_order_of_revisions_is_the_only_one(operations: list[Operation]) -> None:
    """So many operations that they are not searched are judged as few are: here the same ones beside reads of the last word."""
    newest = max(operation.revision for operation in operations) + 1
    later = Operation(100, 101, newest, writes=True)
    reads = [Operation(200 + at, 200 + at, newest, writes=False) for at in range(WINDOW)]
    assert is_linearizable([*operations, later, *reads]) is is_linearizable(operations)


def test_a_knot_of_any_size_is_judged() -> None:
    """Clients that never pause leave no moment in which nothing is under way; thousands of operations are one knot then."""
    writes = [Operation(2 * at, 2 * at + 3, at + 1, writes=True) for at in range(3_000)]
    reads = [Operation(2 * at, 2 * at + 5, at + 1, writes=False) for at in range(3_000)]
    assert is_linearizable([*writes, *reads])
    assert not is_linearizable([*writes, *reads, Operation(5_000, 5_001, 3, writes=False)])
