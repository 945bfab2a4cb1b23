"""The store: revisions, the log as the truth, snapshots, compaction."""

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.apiserver.store import CompactedError, Store, StoreError
from elbowroom.machine import Persist

Disk = dict[str, bytes]


def a_document(name: str, value: Any = 0, namespace: str = "ns") -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace}, "data": {"v": str(value)}}


def persist(disk: Disk, *writes: Persist | None) -> None:
    for write in writes:
        if write is None:
            continue
        if write.value is None:
            disk.pop(write.key, None)
        else:
            disk[write.key] = write.value


def put(store: Store, disk: Disk, name: str, value: Any = 0, namespace: str = "ns") -> int:
    done = store.put("configmaps", namespace, name, a_document(name, value, namespace))
    if done is not None:
        persist(disk, done[1])
    return store.revision


def delete(store: Store, disk: Disk, name: str, namespace: str = "ns") -> None:
    persist(disk, store.delete("configmaps", namespace, name)[1])


def values(records: Any) -> dict[str, str]:
    return {record.key: record.document["data"]["v"] for record in records}


def restarted(disk: Disk) -> Store:
    store = Store()
    store.replay(disk)
    return store


def test_each_write_gets_the_next_revision_and_bears_it() -> None:
    store = Store()
    put(store, {}, "a")
    put(store, {}, "b")
    record = store.get("configmaps", "ns", "b")
    assert record is not None
    assert (store.revision, record.revision, record.document["metadata"]["resourceVersion"]) == (2, 2, "2")
    assert record.copy() == record.document


def test_a_write_that_changes_nothing_makes_no_revision() -> None:
    store, disk = Store(), {}
    put(store, disk, "a", 1)
    again = a_document("a", 1)
    again["metadata"]["resourceVersion"] = "77"
    assert store.put("configmaps", "ns", "a", again) is None
    assert (store.revision, len(disk)) == (1, 1)


def test_lists_are_in_the_order_of_keys_and_stop_at_the_namespace() -> None:
    store = Store()
    for namespace, name in (("a-b", "x"), ("a", "z"), ("a", "b"), ("b", "a")):
        put(store, {}, name, namespace=namespace)
    assert [record.key for record in store.objects("configmaps")] == ["a-b/x", "a/b", "a/z", "b/a"]
    assert [record.key for record in store.objects("configmaps", "a")] == ["a/b", "a/z"]


def test_an_index_finds_objects_by_their_word_wherever_it_moves() -> None:
    store = Store({"configmaps": lambda document: str(document["data"]["v"])})
    put(store, {}, "a", "red")
    put(store, {}, "b", "red")
    put(store, {}, "a", "blue")
    assert [record.name for record in store.having("configmaps", "red")] == ["b"]
    assert [record.name for record in store.having("configmaps", "blue")] == ["a"]
    store.delete("configmaps", "ns", "a")
    assert store.having("configmaps", "blue") == []


def test_a_deletion_keeps_the_last_state_at_its_own_revision() -> None:
    store = Store()
    put(store, {}, "a", 1)
    change, _ = store.delete("configmaps", "ns", "a")
    assert change.deleted and change.record.document["metadata"]["resourceVersion"] == "2"
    assert change.record.document["data"] == {"v": "1"}


def test_the_past_above_the_floor_can_be_listed_and_below_it_not() -> None:
    store, disk = Store(), {}
    put(store, disk, "a", 1)
    put(store, disk, "b", 1)
    put(store, disk, "a", 2)
    delete(store, disk, "b")
    put(store, disk, "c", 1)
    assert values(store.list_at("configmaps", "ns", 2)) == {"ns/a": "1", "ns/b": "1"}
    assert values(store.list_at("configmaps", "ns", 3)) == {"ns/a": "2", "ns/b": "1"}
    assert values(store.list_at("configmaps", "ns", 4)) == {"ns/a": "2"}
    store.compact(3)
    assert values(store.list_at("configmaps", "ns", 3)) == {"ns/a": "2", "ns/b": "1"}
    with pytest.raises(CompactedError):
        store.list_at("configmaps", "ns", 2)
    with pytest.raises(CompactedError):
        list(store.changes(2))


def test_compaction_never_lowers_the_floor_or_passes_the_revision() -> None:
    store, disk = Store(), {}
    put(store, disk, "a")
    assert store.compact(5) is not None and store.floor == 1
    assert store.compact(1) is None and store.compact(0) is None


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), steps=st.integers(1, 60))
def test_any_run_of_writes_and_compactions_survives_a_restart(seed: int, steps: int) -> None:
    """The reopened store equals the old one: state, revision, floor, and every state of the past that could be read."""
    rng = random.Random(seed)
    store, disk = Store(), {}
    past: dict[int, dict[str, str]] = {0: {}}
    for step in range(steps):
        name = rng.choice("abcd")
        match rng.choice(("put", "put", "put", "delete", "compact", "drop")):
            case "put":
                put(store, disk, name, rng.choice((step, 1)))
            case "delete" if store.get("configmaps", "ns", name) is not None:
                delete(store, disk, name)
            case "compact":
                persist(disk, store.compact(rng.randint(0, store.revision)))
            case "drop":
                persist(disk, *store.drop(rng.randint(1, 3)))
        past[store.revision] = values(store.objects("configmaps"))
    reopened = restarted(copy.deepcopy(disk))
    assert (reopened.revision, reopened.floor) == (store.revision, store.floor)
    past_bytes = sum(len(c.old.data) if c.old else 0 for c in store.changes(store.floor))
    past_bytes += sum(len(c.record.data) for c in store.changes(store.floor) if c.deleted)
    assert store.past_bytes == reopened.past_bytes == past_bytes
    assert values(reopened.objects("configmaps")) == values(store.objects("configmaps"))
    for revision in range(store.floor, store.revision + 1):
        assert values(reopened.list_at("configmaps", "", revision)) == past[revision]
    told = [(change.revision, change.record.data, change.old and change.old.revision) for change in reopened.changes(store.floor)]
    assert told == [
        (change.revision, change.record.data, change.old and change.old.revision) for change in store.changes(store.floor)
    ]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), at_most=st.integers(0, 12))
def test_a_death_between_any_two_removals_of_old_rows_loses_nothing(seed: int, at_most: int) -> None:
    rng = random.Random(seed)
    store, disk = Store(), {}
    for step in range(20):
        name = rng.choice("abc")
        if rng.random() < 0.3 and store.get("configmaps", "ns", name) is not None:
            delete(store, disk, name)
        else:
            put(store, disk, name, step)
    persist(disk, store.compact(15), *store.drop(at_most))
    reopened = restarted(disk)
    assert (reopened.revision, reopened.floor) == (20, 15)
    assert values(reopened.objects("configmaps")) == values(store.objects("configmaps"))
    persist(disk, *reopened.drop(1000))
    persist(disk, *store.drop(1000))
    assert values(restarted(disk).objects("configmaps")) == values(store.objects("configmaps"))


def test_a_revision_is_not_reused_when_the_newest_rows_were_dropped() -> None:
    store, disk = Store(), {}
    put(store, disk, "a")
    delete(store, disk, "a")
    persist(disk, store.compact(2), *store.drop(10))
    assert disk == {"floor": b"2"}
    assert put(restarted(disk), disk, "a") == 3


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda disk: disk.update({"log/00000000000000000002": disk["log/00000000000000000002"][:-1] + b"!"}), "checksum"),
        (lambda disk: disk.pop("log/00000000000000000002"), "no row for revision 2"),
        (lambda disk: disk.update({"floor": b"x"}), "floor is unreadable"),
        (lambda disk: disk.update({"log/00000000000000000001": b"x"}), "checksum"),
    ],
)
def test_a_damaged_log_is_refused_in_one_line(harm: Any, words: str) -> None:
    store, disk = Store(), {}
    for value in range(3):
        put(store, disk, "a", value)
    harm(disk)
    with pytest.raises(StoreError, match=words) as told:
        restarted(disk)
    assert "\n" not in str(told.value)
