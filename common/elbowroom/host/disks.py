"""Disks for ``Persist`` effects: memory, and a directory of files replaced atomically."""

import ctypes
import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from elbowroom.machine import Persist

_libc = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class MemoryDisk:
    """Keeps what is written as long as the object lives."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load(self) -> dict[str, bytes]:
        return dict(self._kept)

    def commit(self, writes: Sequence[Persist], step: Callable[[str], None]) -> None:
        for write in writes:
            for label in write.labels:
                step(label)
            if write.value is None:
                self._kept.pop(write.key, None)
            else:
                self._kept[write.key] = write.value

    def close(self) -> None:
        """Keeps its content: a machine's next incarnation loads it."""


class Files(Protocol):
    """The calls on the file system that ``FilesDisk`` makes, so that tests can let them fail."""

    def write(self, path: str, value: bytes) -> None: ...
    def sync(self, path: str) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def close(self) -> None: ...


class SystemFiles:
    """The operating system's. What was written stays open until it is synced, a directory that was synced until ``close``.

    A file that is replaced changes places with the new one and is written over when it is replaced again: its blocks are there
    already, so of the two journal commits that a new file costs, only the directory's is left.
    """

    def __init__(self) -> None:
        self._written: tuple[str, int] | None = None
        self._folders: dict[str, int] = {}
        self._exchanges = True

    def write(self, path: str, value: bytes) -> None:
        self._end_writing()
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._written = (path, file)
        if os.fstat(file).st_size > len(value):
            os.ftruncate(file, len(value))
        while value:
            value = value[os.write(file, value) :]

    def sync(self, path: str) -> None:
        """Make durable the file just written, or a directory."""
        if self._written is not None and self._written[0] == path:
            os.fdatasync(self._written[1])
            self._end_writing()
            return
        if path not in self._folders:
            self._folders[path] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fsync(self._folders[path])

    def rename(self, source: str, target: str) -> None:
        """``target`` is what ``source`` was; ``source`` may be what ``target`` was."""
        if not (self._exchanges and self._exchange(source, target)):
            os.replace(source, target)

    def _exchange(self, source: str, target: str) -> bool:
        try:
            if _libc.renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE) == 0:
                return True
        except AttributeError:
            self._exchanges = False
        else:
            # Without a target there is nothing to keep; all else is a system or file system that does not know how.
            self._exchanges = ctypes.get_errno() == errno.ENOENT
        return False

    def close(self) -> None:
        self._end_writing()
        while self._folders:
            os.close(self._folders.popitem()[1])

    def _end_writing(self) -> None:
        if self._written is not None:
            file, self._written = self._written[1], None
            os.close(file)

    def remove(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)


_PLAIN = re.compile(r"[a-z0-9_.-]")
_TEMPORARY = "~"


@lru_cache(1024)
def file_name(key: str) -> str:
    """A file name for a key: letters, digits, ``_``, ``-`` and inner dots stay, all else (capitals too) becomes ``%xx``; it is
    never empty, hidden or a path. ``ValueError`` for keys that are too long for a file name."""
    name = "".join(
        char if _PLAIN.fullmatch(char) and not (char == "." and at == 0) else "".join(f"%{byte:02x}" for byte in char.encode())
        for at, char in enumerate(key)
    )
    if not name or len(name) > 240:
        raise ValueError(f"a key of {len(key)} characters makes no file name: {key[:40]!r}")
    return name


def key_of(name: str) -> str:
    """The inverse of ``file_name``."""
    return re.sub(rb"%([0-9a-f]{2})", lambda found: bytes.fromhex(found[1].decode()), name.encode()).decode()


class FilesDisk:
    """One file a key, in the directory ``path`` (made if absent).

    A value is written to a temporary file, synced, put in the old one's place and the directory synced; ``Persist.labels`` name the
    points after each of the four. What an earlier life left half written is removed on load. After a failed commit the disk
    refuses further ones: what a failed fsync left behind nobody knows.
    """

    def __init__(self, path: str, files: Files | None = None) -> None:
        self._folder = str(path)
        self._files = files or SystemFiles()
        self._broken = False
        os.makedirs(self._folder, mode=0o700, exist_ok=True)

    def load(self) -> dict[str, bytes]:
        kept: dict[str, bytes] = {}
        with os.scandir(self._folder) as found:
            files = sorted(found, key=lambda file: file.name)
        for file in files:
            if file.name.endswith(_TEMPORARY):
                os.unlink(file.path)
            elif file.is_file():
                kept[key_of(file.name)] = Path(file.path).read_bytes()
        return kept

    def commit(self, writes: Sequence[Persist], step: Callable[[str], None]) -> None:
        if self._broken:
            raise OSError(f"{self._folder}: an earlier write failed")
        self._broken = True
        last, folder = len(writes) - 1, self._folder
        moved: set[str] = set()
        for at, write in enumerate(writes):
            labels = iter(write.labels)
            target = f"{folder}/{file_name(write.key)}"
            temporary = target + _TEMPORARY
            if target in moved:
                # What is now the temporary file is still the old value's, as far as the disk knows.
                self._files.sync(folder)
                moved.clear()
            if write.value is None:
                self._files.remove(target)
                self._files.remove(temporary)
            else:
                self._files.write(temporary, write.value)
                _tell(step, labels)
                self._files.sync(temporary)
                _tell(step, labels)
                self._files.rename(temporary, target)
                _tell(step, labels)
                moved.add(target)
            if at == last or write.labels:
                self._files.sync(folder)  # one for the group, unless somebody wants to stop right behind it
                moved.clear()
            for label in labels:
                step(label)
        self._broken = False

    def close(self) -> None:
        """Let go of the directory."""
        self._files.close()


def _tell(step: Callable[[str], None], labels: Iterator[str]) -> None:
    label = next(labels, None)
    if label is not None:
        step(label)
