"""A disk for what a kernel would keep: it outlives the process that writes, and is forgotten when the machine boots.

So nothing has to reach the platter: a commit is one ``write`` to the end of a log, 10 us instead of the millisecond that replacing
a file costs, fsync or not (ext4 writes a renamed file's blocks at once). Where the system does not tell one boot from another,
each commit is fsynced and nothing is forgotten.
"""

import functools
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from elbowroom.machine import Persist

NAME = "kept.log"
ROOM_BYTES = 1 << 18
"""A log is written anew when it has grown by so much, and to four times what it must hold."""

_HEAD = struct.Struct(">II")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_decoder = msgspec.msgpack.Decoder(tuple[str, bytes | None])


@functools.cache  # a process does not outlive a boot
def boot_id() -> bytes:
    """Another one after each boot; empty where the system does not tell."""
    try:
        return _BOOT_ID.read_bytes().strip()
    except OSError:
        return b""


class BootDisk:
    """A log in the directory ``path`` (both made by the first commit): the boot's id, then frames of length, CRC-32, and key and
    value as msgpack.

    A frame that is not whole ends the log: the process died while it wrote it. After a failed commit the disk refuses further ones.
    """

    def __init__(self, path: str, boot: bytes | None = None) -> None:
        self._path = Path(path)
        self._boot = boot_id() if boot is None else boot
        self._kept: dict[str, bytes] = {}
        self._file: int | None = None
        self._size = 0
        self._limit = 0
        self._broken = False

    def load(self) -> dict[str, bytes]:
        try:
            raw = (self._path / NAME).read_bytes()
        except FileNotFoundError:
            return {}
        self._kept = self._read(raw)
        self._rewrite()
        return dict(self._kept)

    def commit(self, writes: Sequence[Persist], step: Callable[[str], None]) -> None:
        if self._broken:
            raise OSError(f"{self._path}: an earlier write failed")
        self._broken = True
        frames = []
        for write in writes:
            for label in write.labels:
                step(label)
            frames.append(_frame(write.key, write.value))
            if write.value is None:
                self._kept.pop(write.key, None)
            else:
                self._kept[write.key] = write.value
        if self._file is None or self._size > self._limit:
            self._rewrite()
        else:
            self._size += _append(self._file, b"".join(frames), sync=not self._boot)
        self._broken = False

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self, raw: bytes) -> dict[str, bytes]:
        head = self._head()
        kept: dict[str, bytes] = {}
        at = len(head)
        while raw.startswith(head) and at + _HEAD.size <= len(raw):
            length, crc = _HEAD.unpack_from(raw, at)
            body = raw[at + _HEAD.size : at + _HEAD.size + length]
            if len(body) < length or zlib.crc32(body) != crc:
                break
            key, value = _decoder.decode(body)
            if value is None:
                kept.pop(key, None)
            else:
                kept[key] = value
            at += _HEAD.size + length
        return kept

    def _rewrite(self) -> None:
        """Put a log of what is kept in the place of the one before."""
        self.close()
        self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self._path / f"{NAME}~"
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            frames = b"".join(_frame(key, value) for key, value in self._kept.items())
            self._size = _append(file, self._head() + frames, sync=not self._boot)
            self._limit = 4 * self._size + ROOM_BYTES
            new.replace(self._path / NAME)
        except OSError:
            os.close(file)
            raise
        self._file = file

    def _head(self) -> bytes:
        return b"elbowroom kept 1 " + self._boot + b"\n"


def _frame(key: str, value: bytes | None) -> bytes:
    body = msgspec.msgpack.encode((key, value))
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def _append(file: int, data: bytes, *, sync: bool) -> int:
    left = data
    while left:
        left = left[os.write(file, left) :]
    if sync:
        os.fsync(file)
    return len(data)
