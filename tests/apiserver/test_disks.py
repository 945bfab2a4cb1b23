"""The API server's disks: what they keep, and what they refuse to touch."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from elbowroom.apiserver.drivers.memory import MemoryDisk
from elbowroom.apiserver.drivers.sqlite import WAL_BYTES_KEPT, SqliteDisk
from elbowroom.apiserver.store import StoreError
from elbowroom.machine import Persist
from elbowroom.machine.steps import unheard

ROW = "log/00000000000000000007"


def test_what_was_committed_is_there_after_it_was_opened_again(tmp_path: Path) -> None:
    disk = SqliteDisk(tmp_path / "store.db")
    steps: list[str] = []
    disk.commit([Persist(ROW, b"row", ("A6",)), Persist("floor", b"3"), Persist("gone", b"x")], steps.append)
    disk.commit([Persist("gone", None), Persist("log/00000000000000000001", b"one")], steps.append)
    disk.commit([Persist("log/00000000000000000001", None)], steps.append)
    disk.close()
    again = SqliteDisk(tmp_path / "store.db")
    assert again.load() == {ROW: b"row", "floor": b"3"}
    assert steps == ["A6"]
    again.close()


def test_writes_are_durable_before_the_file_is_closed(tmp_path: Path) -> None:
    writer = SqliteDisk(tmp_path / "store.db")
    writer.commit([Persist(ROW, b"row")], lambda _: None)
    reader = SqliteDisk(tmp_path / "store.db")
    assert reader.load() == {ROW: b"row"}
    assert writer._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert writer._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    reader.close()
    writer.close()


def test_a_group_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    disk = SqliteDisk(tmp_path / "store.db")
    with pytest.raises(OSError, match="cannot write"):
        disk.commit([Persist(ROW, b"row"), Persist("bad", object())], lambda _: None)  # type: ignore[arg-type]
    disk.close()
    again = SqliteDisk(tmp_path / "store.db")
    assert again.load() == {}
    again.close()


def test_a_disk_whose_group_failed_keeps_what_was_there_and_takes_the_next(tmp_path: Path) -> None:
    disk = SqliteDisk(tmp_path / "store.db")
    disk.commit([Persist(ROW, b"row"), Persist("floor", b"1")], lambda _: None)
    with pytest.raises(OSError, match="cannot write"):
        disk.commit([Persist("floor", b"2"), Persist("bad", object())], lambda _: None)  # type: ignore[arg-type]
    disk.commit([Persist("gone", b"x")], lambda _: None)
    assert disk.load() == {ROW: b"row", "floor": b"1", "gone": b"x"}
    disk.close()


def test_rows_of_the_log_alone_are_one_statement_and_all_else_a_transaction(tmp_path: Path) -> None:
    disk = SqliteDisk(tmp_path / "store.db")
    said: list[str] = []
    disk._db.set_trace_callback(lambda statement: said.append(statement.split()[0]))
    disk.commit([Persist(f"log/{number:020d}", b"%d" % number) for number in range(1, 5)], lambda _: None)
    assert said == ["INSERT"]
    said.clear()
    disk.commit([Persist(ROW, b"row", ("A6",)), Persist("log/00000000000000000009", b"row", ("A6",))], unheard)
    assert said == ["INSERT"], "nobody stops at a step that is unheard"
    for writes in (
        [Persist("floor", b"1")],
        [Persist(ROW, None)],
        [Persist(ROW, b"row", ("A6",))],
    ):
        said.clear()
        disk.commit(writes, lambda _: None)
        assert (said[0], said[-1]) == ("BEGIN", "COMMIT")
    disk.close()


def test_idling_folds_the_log_into_the_file_and_keeps_some_room_for_the_next(tmp_path: Path) -> None:
    disk = SqliteDisk(tmp_path / "store.db")
    row = b"x" * 100_000
    disk.commit([Persist(ROW, row)], lambda _: None)
    room = (tmp_path / "store.db-wal").stat().st_size
    disk.idle()
    shutil.copy(tmp_path / "store.db", tmp_path / "alone.db")
    alone = SqliteDisk(tmp_path / "alone.db")
    assert alone.load() == {ROW: row}
    alone.close()
    disk.commit([Persist(ROW, b"y")], lambda _: None)
    assert (tmp_path / "store.db-wal").stat().st_size == room > 100_000, "it is written over"
    for number in range(2 * WAL_BYTES_KEPT // len(row)):
        disk.commit([Persist(f"log/{number:020d}", row)], lambda _: None)
    disk.idle()
    disk.commit([Persist(ROW, b"z")], lambda _: None)
    assert (tmp_path / "store.db-wal").stat().st_size <= WAL_BYTES_KEPT
    disk.close()


def test_a_group_is_one_transaction_whatever_is_in_it(tmp_path: Path) -> None:
    disk = SqliteDisk(tmp_path / "store.db")
    rows = [Persist(f"log/{number:020d}", b"%d" % number) for number in range(1, 65)]
    disk.commit(rows, lambda _: None)
    disk.commit([*rows[:3], Persist("floor", b"2"), Persist(rows[0].key, None)], lambda _: None)
    disk.commit([Persist("floor", b"3"), Persist("gone", b""), Persist("gone", None)], lambda _: None)
    assert disk.load() == {"floor": b"3", **{row.key: row.value for row in rows[1:]}}
    disk.close()


def test_a_file_of_another_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE other_things (a)")
        db.execute("PRAGMA user_version=99")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="schema version 99"):
        SqliteDisk(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["store.db"]


def test_a_file_that_is_no_database_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"not a database, by no means" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="restore it from a copy"):
        SqliteDisk(path)
    assert path.read_bytes() == before


def test_the_memory_disk_keeps_nothing_but_tells_the_steps() -> None:
    disk, steps = MemoryDisk(), list[str]()
    disk.commit([Persist("k", b"v", ("K4",))], steps.append)
    assert (disk.load(), steps) == ({}, ["K4"])
