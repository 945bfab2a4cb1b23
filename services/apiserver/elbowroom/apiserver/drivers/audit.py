"""The audit log as a file of JSON lines, private, and begun anew when it has become large (one older part is kept)."""

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

BYTES_MAX = 64 * 1024 * 1024

_encode = msgspec.json.Encoder().encode
_ESCAPES = {text.encode(): f"\\u{ord(text):04x}".encode() for text in "\x85\u2028\u2029"}
"""What JSON may have in a string and some readers take for the end of a line."""
_LINE_ENDS = re.compile(b"|".join(_ESCAPES))


class Log(Protocol):
    """Where events go: the seam for other places than a file."""

    def write(self, event: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class FileLog(Log):
    """Appends to ``path``; lines of one turn of the loop are written at once. A full disk costs lines, not requests."""

    def __init__(self, path: Path, bytes_max: int = BYTES_MAX) -> None:
        self._path, self._max = path, bytes_max
        self._lines: list[bytes] = []
        self._file = self._opened()
        self._size = os.fstat(self._file).st_size

    def write(self, event: Mapping[str, Any]) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._flush)
        self._lines.append(_LINE_ENDS.sub(lambda found: _ESCAPES[found[0]], _encode(event)) + b"\n")

    def close(self) -> None:
        self._flush()
        os.close(self._file)

    def _opened(self) -> int:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _flush(self) -> None:
        data, self._lines = b"".join(self._lines), []
        if not data:
            return
        try:
            self._size += os.write(self._file, data)
            if self._size >= self._max:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
                os.close(self._file)
                self._file, self._size = self._opened(), 0
        except OSError:
            return
