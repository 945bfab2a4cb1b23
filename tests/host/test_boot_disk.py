"""A log of what a kernel would keep: what ends it, what it forgets, and that it does not grow for ever."""

import os
from pathlib import Path

import pytest

from elbowroom.host import bootdisk
from elbowroom.host.bootdisk import NAME, ROOM_BYTES, BootDisk
from elbowroom.machine import Persist


def nothing(label: str) -> None: ...


def written(path: Path, *writes: Persist, boot: bytes = b"one") -> Path:
    disk = BootDisk(str(path), boot)
    disk.load()
    for write in writes:
        disk.commit([write], nothing)
    disk.close()
    return path / NAME


def test_what_was_written_outlives_the_process_and_not_the_boot(tmp_path: Path) -> None:
    written(tmp_path, Persist("a", b"1"), Persist("b", b"2"), Persist("a", None))
    assert BootDisk(str(tmp_path), b"one").load() == {"b": b"2"}
    assert BootDisk(str(tmp_path), b"two").load() == {}
    assert BootDisk(str(tmp_path), b"one").load() == {}, "what the other boot forgot does not come back"


def test_this_machine_tells_one_boot_from_another_or_nothing_is_forgotten(tmp_path: Path) -> None:
    assert bootdisk.boot_id() == bootdisk.boot_id()
    written(tmp_path, Persist("a", b"1"), boot=bootdisk.boot_id())
    assert BootDisk(str(tmp_path)).load() == {"a": b"1"}


@pytest.mark.parametrize("left", range(1, 20))
def test_a_frame_that_a_dying_process_did_not_finish_never_was(tmp_path: Path, left: int) -> None:
    log = written(tmp_path, Persist("a", b"1"))
    whole = log.stat().st_size
    written(tmp_path, Persist("b", b"2345678"))
    assert log.stat().st_size > whole + left
    os.truncate(log, whole + left)
    assert BootDisk(str(tmp_path), b"one").load() == {"a": b"1"}
    written(tmp_path, Persist("c", b"3"))
    assert BootDisk(str(tmp_path), b"one").load() == {"a": b"1", "c": b"3"}


def test_a_damaged_frame_ends_the_log(tmp_path: Path) -> None:
    log = written(tmp_path, Persist("a", b"1"), Persist("b", b"2"), Persist("c", b"3"))
    raw = bytearray(log.read_bytes())
    raw[-1] ^= 1
    log.write_bytes(raw)
    assert BootDisk(str(tmp_path), b"one").load() == {"a": b"1", "b": b"2"}


def test_a_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    value = b"x" * 4096
    log = written(tmp_path, *(Persist(f"key-{number % 3}", value) for number in range(200)))
    assert log.stat().st_size < ROOM_BYTES + 8 * 3 * len(value)
    assert BootDisk(str(tmp_path), b"one").load() == dict.fromkeys(("key-0", "key-1", "key-2"), value)


def test_where_boots_look_alike_each_commit_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    written(tmp_path / "told", Persist("a", b"1"))
    assert not synced
    written(tmp_path / "untold", Persist("a", b"1"), boot=b"")
    assert len(synced) == 1, "the first commit is the new log"


def test_a_disk_that_failed_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = BootDisk(str(tmp_path), b"one")
    disk.load()
    disk.commit([Persist("a", b"1")], nothing)

    def full(file: int, data: bytes) -> int:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="no space"):
            disk.commit([Persist("b", b"2")], nothing)
    with pytest.raises(OSError, match="earlier write failed"):
        disk.commit([Persist("b", b"2")], nothing)
    assert BootDisk(str(tmp_path), b"one").load() == {"a": b"1"}
