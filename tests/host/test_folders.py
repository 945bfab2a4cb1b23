"""The driver that watches folders, on a real one."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from elbowroom.host import folders
from elbowroom.machine import FolderRead, Input, WatchFolder, Work


class Inbox:
    """What the driver posts; ``heard`` waits for the next."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Input] = asyncio.Queue()

    async def heard(self) -> dict[str, Any]:
        news = await asyncio.wait_for(self.queue.get(), 10)
        assert isinstance(news, FolderRead)
        return dict(news.files)


def put(path: Path, text: str) -> None:
    """As who wants certainty does it: whole, by a rename."""
    made = path.parent.parent / "being-written"
    made.write_text(text)
    made.rename(path)


def test_a_folder_is_told_at_once_and_whenever_it_changes(tmp_path: Path) -> None:
    uvloop.run(changes(tmp_path))


async def changes(tmp_path: Path) -> None:
    driver, ear = folders.build({"base": str(tmp_path)}), Inbox()
    driver.work(Work("x", WatchFolder("manifests")))
    await driver.start(ear.queue.put_nowait)
    assert await ear.heard() == {}
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    put(manifests / "b", "two")
    put(manifests / ".hidden", "no")
    (manifests / "sub").mkdir()
    assert await ear.heard() == {"b": b"two"}
    put(manifests / "a", "one")
    assert list(await ear.heard()) == ["a", "b"]
    put(manifests / "b", "2!!")
    assert (await ear.heard())["b"] == b"2!!"
    (manifests / "a").unlink()
    assert list(await ear.heard()) == ["b"]
    await driver.stop()


def test_each_life_is_told_anew_and_an_absolute_path_is_taken_as_it_is(tmp_path: Path) -> None:
    uvloop.run(lives(tmp_path))


async def lives(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    put(tmp_path / "m" / "a", "one")
    for _ in range(2):
        driver, ear = folders.build({"base": "/nowhere"}), Inbox()
        await driver.start(ear.queue.put_nowait)
        driver.work(Work("x", WatchFolder(str(tmp_path / "m"))))
        assert await ear.heard() == {"a": b"one"}
        await driver.stop()


def test_a_path_that_is_a_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("one")
    assert {name: file.content for name, file in folders.look(tmp_path / "pod.yaml", {}).items()} == {"pod.yaml": b"one"}


def test_what_has_not_changed_is_not_read_again_and_too_large_a_file_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("one")
    first = folders.look(tmp_path, {})
    read: list[str] = []
    original: Callable[[Path], bytes] = Path.read_bytes

    def noted(path: Path) -> bytes:
        read.append(path.name)
        return original(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    assert folders.look(tmp_path, first) == first and read == []
    with (tmp_path / "big").open("wb") as big:
        os.truncate(big.fileno(), folders.FILE_BYTES_MAX + 1)
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    found = folders.look(tmp_path, first)
    assert {name: file.content for name, file in found.items()} == {"a": b"one", "big": None} and read == []


def test_other_work_is_nobodys(tmp_path: Path) -> None:
    driver = folders.build({"base": str(tmp_path)})
    with pytest.raises(ValueError, match="no driver"):
        driver.work(Work("x", "a song"))
