"""History files: one JSONL file for each incarnation of a machine, and the log line for people."""

import os
import re
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.host.clock import Clock
from elbowroom.machine import as_micro_time
from elbowroom.machine.records import Author, Lines

FLUSH_SECONDS = 0.1

_LOG_SKIPS = re.compile(r"(api|bus|host|wal)\.|ckpt\.[td]|commit|list|rt\.(cgroup|cpuset|usage)|step|watch\.(e|bo)")
"""Kinds too frequent or too long for people; the history has them."""


def file_name(proc: str, inc: int) -> str:
    """Where an incarnation's records are, inside the history directory: ``kubelet_node-1.1764438085000000000.jsonl``."""
    return f"{proc.replace('/', '_')}.{inc}.jsonl"


class History:
    """The records of one incarnation. Lines gather in memory; ``flush`` hands them to the kernel, so they outlive the process.

    The host flushes before anything becomes visible to others and before a planned death, and else within ``FLUSH_SECONDS``.
    ``directory`` "" writes no history, ``log`` is a file descriptor or None. Any thread may call.
    """

    def __init__(self, directory: str, author: Author, clock: Clock, log: int | None = None) -> None:
        self._author, self._clock = author, clock
        self._lines: list[bytes] = []
        self._log_lines: list[str] = []
        self._lock = threading.Lock()
        self._line = Lines(author).line
        self._seq = 0
        self._missed = 0
        self._log = log
        self._file: int | None = None
        if directory:
            path = Path(directory) / file_name(author.proc, author.inc)
            try:
                self._file = _opened(path)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._file = _opened(path)

    @property
    def waiting(self) -> bool:
        """Do lines wait for ``flush``?"""
        return bool(self._lines or self._log_lines)

    def note(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Record a fact."""
        wall = self._clock.now()
        if self._file is not None:
            with self._lock:
                if self._missed:
                    self._add(wall, "history.gap", {"records": self._missed})
                    self._missed = 0
                self._add(wall, kind, fields)
        if self._log is not None and _LOG_SKIPS.match(kind) is None:
            words = " ".join(f"{name}={_shown(value)}" for name, value in fields.items())
            self._log_lines.append(f"{as_micro_time(wall)} {self._author.proc} {kind} {words}".rstrip())

    def _add(self, wall: int, kind: str, fields: Mapping[str, Any]) -> None:
        self._seq += 1
        self._lines.append(self._line(self._seq, time.monotonic_ns(), wall, kind, fields))

    def flush(self) -> None:
        """Hand the waiting lines to the kernel: one write. What cannot be written (disk full) is missing, and ``history.gap`` says
        so once there is room again: a service does not end for its history."""
        with self._lock:
            if self._lines and self._file is not None:
                lines = b"\n".join([*self._lines, b""])
                if not _write(self._file, lines):
                    self._missed += len(self._lines)
                self._lines.clear()
            if self._log_lines and self._log is not None:
                _write(self._log, "\n".join([*self._log_lines, ""]).encode(errors="replace"))
                self._log_lines.clear()

    def close(self) -> None:
        """Flush and close; nothing may be noted any more."""
        self.flush()
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._log = None


def _shown(value: Any) -> str:
    if isinstance(value, str) and value.isprintable() and " " not in value and value:
        return value
    return msgspec.json.encode(value).decode()


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _write(file: int, data: bytes) -> bool:
    try:
        while data:
            data = data[os.write(file, data) :]
    except OSError:
        return False
    return True
