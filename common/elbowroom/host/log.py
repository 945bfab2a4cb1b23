"""Standard output and error of a process that writes them to a file: a disk that is full costs lines of the log, and nothing else.

A traceback that cannot be written would be another exception, at the very place that was about to end the process in order.
"""

import io
import sys
from typing import Any


class _Lossy(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def let_lines_be_lost() -> None:
    """From now on what is printed to standard output and error never fails, even where there is no room for it."""
    sys.stdout = _stream(1)
    sys.stderr = _stream(2)


def _stream(file: int) -> io.TextIOWrapper:
    binary = io.BufferedWriter(_Lossy(file, "w", closefd=False))
    return io.TextIOWrapper(binary, encoding="utf-8", errors="backslashreplace", line_buffering=True)
