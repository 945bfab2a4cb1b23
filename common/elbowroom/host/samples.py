"""What a process weighs, looked at now and then, so that a history can be judged by it (I-50).

A process in which nothing happens is not woken for it: who writes into its history anyway asks whether a look is due.
"""

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

EVERY_SECONDS = 5.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Look:
    """One that has begun. What was called for ``due`` (the loop's time) and comes later is late: for so long as the loop's own
    thread has had other things to do since then, at least."""

    due: float
    span: float
    spent: float
    files_max: int

    def facts(self, now: float) -> dict[str, Any]:
        """``rss_bytes``, ``files`` that are open of the ``files_max`` that the process began with, and ``late_ms``: so long the
        loop itself kept others waiting. A process that was stopped, or had no processor, is late without its doing, and that is
        not counted; neither is one guilty of having many files open that is allowed few since it has them."""
        spent = time.thread_time() - self.spent - self.span  # as much of it as may have been before
        late = max(0.0, min(now - self.due, spent))
        return {
            "rss_bytes": _resident(),
            "files": len(os.listdir("/proc/self/fd")),
            "files_max": self.files_max,
            "late_ms": round(1000 * late, 3),
        }


class Samples:
    """One for each process. ``now`` is the loop's time."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last = now()
        self._files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def begin(self, span: float) -> Look | None:
        """Something was just called for in ``span`` seconds: the look that is to be ended then, if one is due."""
        now = self._now()
        if now - self._last < EVERY_SECONDS:
            return None
        self._last = now
        return Look(now + span, span, time.thread_time(), self._files_max)


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES
