"""A directory of files: in which order it touches the file system, and what a failure leaves."""

import ctypes
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.host import disks
from elbowroom.host.disks import FilesDisk, SystemFiles, file_name, key_of
from elbowroom.machine import Persist


class Recording(SystemFiles):
    """The real calls, recorded; the call named ``fails`` raises."""

    def __init__(self, fails: str = "") -> None:
        super().__init__()
        self.calls: list[str] = []
        self.fails = fails

    def _call(self, what: str, path: str) -> None:
        self.calls.append(f"{what} {Path(path).name}")
        if self.calls[-1] == self.fails:
            self.fails = ""
            raise OSError(28, "no space left on device")

    def write(self, path: str, value: bytes) -> None:
        self._call("write", path)
        super().write(path, value)

    def sync(self, path: str) -> None:
        self._call("sync", path)
        super().sync(path)

    def rename(self, source: str, target: str) -> None:
        self._call("rename", source)
        super().rename(source, target)


def nothing(label: str) -> None: ...


def test_a_file_is_replaced_by_writing_syncing_renaming_and_syncing_the_directory(tmp_path: Path) -> None:
    files = Recording()
    FilesDisk(str(tmp_path / "d"), files).commit([Persist("a", b"1")], nothing)
    assert files.calls == ["write a~", "sync a~", "rename a~", "sync d"]


def test_a_group_without_labels_syncs_the_directory_once(tmp_path: Path) -> None:
    files = Recording()
    FilesDisk(str(tmp_path / "d"), files).commit([Persist("a", b"1"), Persist("b", b"2"), Persist("c", None)], nothing)
    assert files.calls.count("sync d") == 1
    assert files.calls[-1] == "sync d"


def test_each_label_is_told_right_after_its_call(tmp_path: Path) -> None:
    files = Recording()
    FilesDisk(str(tmp_path / "d"), files).commit([Persist("a", b"1", ("K4", "K5", "K6", "K7"))], files.calls.append)
    assert files.calls == ["write a~", "K4", "sync a~", "K5", "rename a~", "K6", "sync d", "K7"]


def test_the_file_that_was_replaced_is_written_over_next_time(tmp_path: Path) -> None:
    disk = FilesDisk(str(tmp_path))
    found = []
    for value in (b"one", b"two, which is longer", b"3", b"four"):
        disk.commit([Persist("a", value)], nothing)
        assert (tmp_path / "a").read_bytes() == value
        found.append((tmp_path / "a").stat().st_ino)
    assert (found[0], found[1]) == (found[2], found[3])
    disk.commit([Persist("a", None)], nothing)
    assert list(tmp_path.iterdir()) == []


def test_what_the_disk_may_still_take_for_the_value_is_not_written_over(tmp_path: Path) -> None:
    files = Recording()
    disk = FilesDisk(str(tmp_path / "d"), files)
    disk.commit([Persist("a", b"0")], nothing)
    files.calls.clear()
    disk.commit([Persist("a", b"1"), Persist("b", b"1"), Persist("a", b"2")], nothing)
    swapped = ["write a~", "sync a~", "rename a~"]
    assert files.calls == [*swapped, "write b~", "sync b~", "rename b~", "sync d", *swapped, "sync d"]


def test_one_sync_of_the_directory_is_enough_for_all_that_came_before_it(tmp_path: Path) -> None:
    files = Recording()
    disk = FilesDisk(str(tmp_path / "d"), files)
    disk.commit([Persist(key, b"1") for key in "abab"], nothing)
    assert [call for call in files.calls if call in ("rename b~", "sync d", "rename a~")] == [
        *("rename a~", "rename b~", "sync d"),
        *("rename a~", "rename b~", "sync d"),
    ]
    files.calls.clear()
    disk.commit([Persist("a", b"2", ("K4", "K5", "K6", "K7")), Persist("a", b"3")], nothing)
    assert files.calls.count("sync d") == 2


def test_what_is_synced_is_synced_by_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    for name in ("fdatasync", "fsync"):

        def call(file: int, name: str = name, ask: Callable[[int], None] = getattr(os, name)) -> None:
            ask(file)
            asked.append(f"{name} {Path(os.readlink(f'/proc/self/fd/{file}')).name}")

        monkeypatch.setattr(disks.os, name, call)
    disk = FilesDisk(str(tmp_path / "d"))
    for value in (b"1", b"2"):
        disk.commit([Persist("a", value)], nothing)
    assert asked == ["fdatasync a~", "fsync d"] * 2


def test_a_file_is_its_owners_alone_and_open_no_longer_than_it_is_written(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    disk = FilesDisk(str(tmp_path / "d"))
    disk.commit([Persist("a", b"1")], nothing)
    assert stat.S_IMODE((tmp_path / "d" / "a").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700
    assert len(set(os.listdir("/proc/self/fd")) - before) == 1, "the directory is kept open"
    disk.close()
    files = SystemFiles()
    for name in ("x", "y"):
        files.write(str(tmp_path / name), b"1")
    assert len(set(os.listdir("/proc/self/fd")) - before) == 1, "who writes another has done with the first"
    files.close()


@pytest.mark.parametrize("why", [errno.ENOSYS, errno.EINVAL])
def test_where_files_cannot_change_places_they_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int) -> None:
    asked = []

    class System:
        @staticmethod
        def renameat2(*arguments: object) -> int:
            asked.append(arguments)
            ctypes.set_errno(why)
            return -1

    monkeypatch.setattr(disks, "_libc", System)
    disk = FilesDisk(str(tmp_path))
    for value in (b"1", b"2"):
        disk.commit([Persist("a", value)], nothing)
        assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", value)]
    assert len(asked) == 1, "it is not asked again"


@pytest.mark.parametrize("fails", ["write a~", "sync a~", "rename a~"])
def test_a_failure_before_the_rename_leaves_the_old_value_and_a_disk_that_refuses(tmp_path: Path, fails: str) -> None:
    FilesDisk(str(tmp_path)).commit([Persist("a", b"old")], nothing)
    disk = FilesDisk(str(tmp_path), Recording(fails))
    with pytest.raises(OSError, match="no space"):
        disk.commit([Persist("a", b"new")], nothing)
    with pytest.raises(OSError, match="earlier write failed"):
        disk.commit([Persist("b", b"1")], nothing)
    assert FilesDisk(str(tmp_path)).load() == {"a": b"old"}


def test_a_closed_disk_holds_no_file_open_and_can_be_used_again(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    disk = FilesDisk(str(tmp_path))
    disk.commit([Persist("a", b"1")], nothing)
    disk.close()
    assert len(os.listdir("/proc/self/fd")) == before
    disk.commit([Persist("a", b"2")], nothing)
    disk.close()
    assert FilesDisk(str(tmp_path)).load() == {"a": b"2"}


def test_what_a_dead_process_left_half_written_is_removed(tmp_path: Path) -> None:
    FilesDisk(str(tmp_path)).commit([Persist("a", b"1")], nothing)
    (tmp_path / "a~").write_bytes(b"half")
    assert FilesDisk(str(tmp_path)).load() == {"a": b"1"}
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_file_name_is_no_path_and_gives_the_key_back(key: str) -> None:
    name = file_name(key)
    assert "/" not in name
    assert not name.startswith(".")
    assert not name.endswith("~")
    assert name.isascii()
    assert key_of(name) == key


@given(st.text(max_size=8), st.text(max_size=8))
def test_two_keys_have_two_file_names_even_where_case_does_not_count(one: str, other: str) -> None:
    if one and other and one != other and (one + other).isascii():
        assert file_name(one).lower() != file_name(other).lower()


@pytest.mark.parametrize("key", ["", "x" * 300])
def test_a_key_that_makes_no_file_name_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="makes no file name"):
        file_name(key)
