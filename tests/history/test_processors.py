"""The account of a machine's processors: a right one holds, and each way to be wrong is noticed."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from elbowroom.history.processors import processors, processors_are_accounted_for
from elbowroom.history.records import History

GUARANTEED = {"kind": "commit", "node": "", "uid": "a", "obj": {"qos": "Guaranteed"}}


def an_account(**facts: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "all": "0-7",
        "reserved": "0,4",
        "strict": False,
        "default": "0,4,7",
        "entries": {"a": {"c": "1,5"}, "b": {"x": "2", "y": "6"}},
        "pods": {"b": "2-3,6"},
        "originals": {"a": {"c": "1"}},
    }
    return {"kind": "kl.cpus", "node": "n1", **given, **facts}


def placed(uid: str, name: str, cpus: str, kind: str = "rt.cpuset") -> dict[str, Any]:
    facts = {"cpus": cpus} if kind == "rt.cpuset" else {"cfg": {"cpuset_cpus": cpus}}
    return {"kind": kind, "node": "n1", "uid": uid, "name": name, "container": f"{uid}/{name}", **facts}


GOOD = [
    GUARANTEED,
    an_account(default="0-7", entries={}, pods={}, originals={}),
    placed("s", "c", "0-7", "rt.create"),
    an_account(),
    placed("a", "c", "1,5", "rt.create"),
    placed("s", "c", "0,4,7"),
    placed("b", "y", "6"),
    an_account(strict=True, default="7"),
]


def broken(records: list[dict[str, Any]]) -> list[str]:
    made = [{"seq": at, "mono_ns": at, "wall": "", "proc": "p", "inc": 1, **record} for at, record in enumerate(records)]
    return [violation.message for violation in processors_are_accounted_for(History.of(made))]


def test_a_right_account_holds() -> None:
    assert broken(GOOD) == []


def account(**facts: Any) -> Callable[[list[dict[str, Any]]], None]:
    return lambda records: records[3].update(facts)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (account(entries={"a": {"c": "1,5"}, "b": {"x": "1"}}, pods={"b": "1-3,6"}), "share processors [1]"),
        (account(default="0,4-5,7"), "[5] are a pod's own and shared"),
        (account(entries={"a": {"c": "0-1,5"}, "b": {"x": "2"}}, default="4,7"), "[0] are a pod's own and shared or reserved"),
        (account(default="0,4"), "[7] are lost"),
        (account(default="0,4,7-8"), "[8] are lost, or not there"),
        (account(entries={"a": {"c": "1,5"}, "b": {"x": "2", "y": "7"}}, default="0,4"), "beside their pod's set"),
        (account(originals={"a": {"c": "2"}}), "began with 2 and has 1,5"),
        (account(strict=True), "strictly reserved and shared"),
        (lambda records: records[0]["obj"].update(qos="Burstable"), "is Burstable"),
        (lambda records: records[4]["cfg"].update(cpuset_cpus="2,6"), "put on 2,6"),
        (lambda records: records[4]["cfg"].update(cpuset_cpus="0-7"), "put on 0-7"),
        (lambda records: records[5].update(cpus="0-6"), "put on 0-6"),
    ],
)
def test_a_wrong_account_is_noticed(change: Callable[[list[dict[str, Any]]], None], words: str) -> None:
    records = deepcopy(GOOD)
    change(records)
    assert any(words in message for message in broken(records)), broken(records)


def test_a_list_of_processors_is_read_as_linux_writes_it() -> None:
    assert processors("0-2,7") == {0, 1, 2, 7}
    assert processors("") == frozenset()
