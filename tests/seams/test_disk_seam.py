"""What every disk promises, the real ones and the simulated one."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elbowroom.apiserver.drivers.sqlite import SqliteDisk
from elbowroom.host.bootdisk import BootDisk
from elbowroom.host.disks import FilesDisk, MemoryDisk
from elbowroom.host.seams import Disk
from elbowroom.machine import Persist
from elbowroom.sim import SimDisk

Reopen = Callable[[], Disk]
"""The disk as the next life finds it."""


def nothing(label: str) -> None: ...


@pytest.fixture(params=["memory", "boot", "files", "sqlite", "simulated"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Reopen:
    kept: dict[str, Disk] = {"memory": MemoryDisk(), "simulated": SimDisk(random.Random(1))}
    made: list[Disk] = []
    makers: dict[str, Callable[[], Disk]] = {
        "boot": lambda: BootDisk(str(tmp_path / "boot")),
        "files": lambda: FilesDisk(str(tmp_path / "files")),
        "sqlite": lambda: SqliteDisk(tmp_path / "store"),
    }

    def open_again() -> Disk:
        if request.param in kept:
            return kept[request.param]
        for before in made:
            before.close()
        made[:] = [makers[request.param]()]
        return made[0]

    return open_again


def test_a_new_disk_is_empty(reopen: Reopen) -> None:
    assert reopen().load() == {}


def test_the_last_write_of_a_key_counts_also_within_a_group(reopen: Reopen) -> None:
    reopen().commit([Persist("a", b"1"), Persist("b", b"2"), Persist("a", b"3")], nothing)
    assert reopen().load() == {"a": b"3", "b": b"2"}


def test_a_removed_key_is_gone_and_removing_what_is_not_there_does_nothing(reopen: Reopen) -> None:
    disk = reopen()
    disk.commit([Persist("a", b"1"), Persist("b", b"")], nothing)
    disk.commit([Persist("a", None), Persist("never", None)], nothing)
    assert reopen().load() == {"b": b""}


def test_labels_are_told_once_each_and_in_order(reopen: Reopen) -> None:
    seen: list[str] = []
    labels = ("K4 temp written", "K5 temp synced", "K6 renamed", "K7 directory synced")
    reopen().commit([Persist("a", b"1", labels), Persist("b", b"2", ("A6",)), Persist("c", None, ("C3", "C4"))], seen.append)
    assert seen == [*labels, "A6", "C3", "C4"]


def test_when_the_first_label_is_told_the_old_value_still_stands(reopen: Reopen) -> None:
    class Dies(Exception):
        pass

    def die(label: str) -> None:
        raise Dies

    reopen().commit([Persist("a", b"old")], nothing)
    disk = reopen()
    with pytest.raises(Dies):
        disk.commit([Persist("a", b"new", ("1", "2", "3", "4"))], die)
    if isinstance(disk, SimDisk):
        disk.crash()
    assert reopen().load() == {"a": b"old"}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), unique=True, max_size=5),
    value=st.binary(),
)
def test_any_text_is_a_key_and_any_bytes_a_value(reopen: Reopen, keys: list[str], value: bytes) -> None:
    disk = reopen()
    disk.commit([Persist(key, None) for key in disk.load()], nothing)
    wanted = {key: value for key in keys if not key.startswith("log/")}
    disk.commit([Persist(key, value) for key in wanted], nothing)
    assert reopen().load() == wanted
