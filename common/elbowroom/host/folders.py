"""The driver that watches folders: a machine asks by ``Work(_, WatchFolder(path))`` and is told by ``FolderRead``.

It looks every quarter of a second, by names, sizes and times, and reads what has changed. A change counts once two looks agree, so
a file that is being written is told when it is whole, more or less: who wants certainty moves it into place.
"""

import asyncio
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from elbowroom.host.seams import Driver
from elbowroom.machine import FolderRead, Input, Send, WatchFolder, Work

LOOK_SECONDS = 0.25
FILE_BYTES_MAX = 10 << 20
"""A larger file is told as None."""


class File(NamedTuple):
    """A file as it was at one look."""

    mark: tuple[int, int, int]
    """Time of change, size and inode: while they stay, so does what is in it."""
    content: bytes | None


def build(config: Mapping[str, Any]) -> Driver:
    """``config``: ``base``, the directory from which relative paths are taken."""
    return FolderDriver(Path(str(config.get("base") or ".")))


def look(path: Path, known: Mapping[str, File]) -> dict[str, File]:
    """What is in the folder (or the one file) now; what has not changed since ``known`` is not read again."""
    found: dict[str, File] = {}
    with suppress(OSError):
        if path.is_dir():
            for name in sorted(os.listdir(path)):
                if not name.startswith("."):
                    _look_at(found, name, path / name, known)
        else:
            _look_at(found, path.name, path, known)
    return found


def _look_at(found: dict[str, File], name: str, file: Path, known: Mapping[str, File]) -> None:
    try:
        seen = file.stat()
        if not stat.S_ISREG(seen.st_mode):
            return
        mark = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
        before = known.get(name)
        if before is not None and before.mark == mark:
            found[name] = before
        else:
            found[name] = File(mark, file.read_bytes() if seen.st_size <= FILE_BYTES_MAX else None)
    except FileNotFoundError:
        return
    except OSError:
        found[name] = File((0, 0, 0), None)


class FolderDriver:
    """See the module; ``Send`` effects are none of its business."""

    prefix = "folder/"

    def __init__(self, base: Path) -> None:
        self._base = base
        self._post: Callable[[Input], None] | None = None
        self._asked: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, post: Callable[[Input], None]) -> Mapping[str, Any]:
        self._post = post
        for path in self._asked:
            self._begin(path)
        return {}

    def deliver(self, effect: Send) -> None:
        """A folder takes no messages."""

    def work(self, effect: Work) -> None:
        if not isinstance(effect.task, WatchFolder):
            raise ValueError(f"no driver for the work {effect.token!r}")
        self._asked.append(effect.task.path)
        if self._post is not None:
            self._begin(effect.task.path)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, path: str) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(self._watch(path)))

    async def _watch(self, path: str) -> None:
        loop = asyncio.get_running_loop()
        told: dict[str, File] | None = None
        seen: dict[str, File] = {}
        while self._post is not None:
            now = await loop.run_in_executor(None, look, self._base / path, seen)
            if told is None or (now == seen and now != told):
                told = now
                self._post(FolderRead(path, {name: file.content for name, file in now.items()}))
            seen = now
            await asyncio.sleep(LOOK_SECONDS)
