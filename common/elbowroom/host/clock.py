"""Emulated time and timers: one clock and one heap a process."""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, Hashable

from elbowroom.machine import Instant

FIRED_MAX = 64
"""Timers that fire in one turn of the loop at most, as many as messages are read of a socket. Where thousands are late, of a
process that had no processor for a while, what others said meanwhile is heard beside them: else all would find them silent, ask
anew, and have still more to read."""


class Clock:
    """Emulated time: ``scale`` emulated seconds a real one since ``origin``; it never goes back while the process lives.

    Anchored at the wall clock once, then monotonic, so a step of the wall clock does not reach the machines. (Chaos may ``step``
    this one, which is the same to them.)
    """

    def __init__(self, scale: float = 1.0, origin: int = 0) -> None:
        if scale <= 0:
            raise ValueError(f"a time scale of {scale}; it must be positive")
        wall = time.time_ns()
        self._scale = scale
        self._mono = time.monotonic_ns()
        origin = origin or wall
        self._base = origin + round((wall - origin) * scale)

    def now(self) -> Instant:
        elapsed = time.monotonic_ns() - self._mono
        return Instant(self._base + (elapsed if self._scale == 1.0 else round(elapsed * self._scale)))

    def step(self, emulated_ns: int) -> None:
        """Jump, forward or back."""
        self._base += emulated_ns

    def real_seconds(self, emulated_ns: int) -> float:
        """How long an emulated span takes really; 0 for one that has passed."""
        return max(0.0, emulated_ns / self._scale / 1e9)


class Timers:
    """The timers of all owners in a process, by owner and name, on one handle of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop, self._clock = loop, clock
        self._heap: list[tuple[Instant, int, Hashable, str, Callable[[str], None]]] = []
        self._at: dict[Hashable, dict[str, Instant]] = {}
        self._set = 0
        """How many timers are set."""
        self._order = itertools.count()
        self._handle: asyncio.TimerHandle | None = None
        self._armed: Instant | None = None

    def set(self, owner: Hashable, name: str, at: Instant | None, due: Callable[[str], None]) -> None:
        """Call ``due(name)`` at ``at``, instead of an earlier timer of that owner and name; ``None`` only cancels."""
        if at is None:
            self._unset(owner, name)
            return
        of_owner = self._at.setdefault(owner, {})
        before = of_owner.get(name)
        if before == at:
            return
        self._set += before is None
        of_owner[name] = at
        if len(self._heap) > 1024 and len(self._heap) > 4 * self._set:
            self._heap = [entry for entry in self._heap if self._when(entry[2], entry[3]) == entry[0]]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (at, next(self._order), owner, name, due))
        if self._armed is None or at < self._armed:
            self._arm()

    def drop(self, owner: Hashable) -> None:
        """Cancel all timers of ``owner``."""
        self._set -= len(self._at.pop(owner, ()))

    def _when(self, owner: Hashable, name: str) -> Instant | None:
        return self._at.get(owner, {}).get(name)

    def _unset(self, owner: Hashable, name: str) -> None:
        of_owner = self._at.get(owner)
        if of_owner is not None and of_owner.pop(name, None) is not None:
            self._set -= 1
            if not of_owner:
                del self._at[owner]

    def clock_stepped(self) -> None:
        """The clock jumped: what has come due fires now, all else in its time."""
        self._arm()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._armed = self._heap[0][0] if self._heap else None
        self._handle = None
        if self._armed is not None:
            # The loop counts milliseconds: a millisecond more spares waking up too early and again.
            wait = self._clock.real_seconds(self._armed - self._clock.now())
            self._handle = self._loop.call_later(wait + 0.001 if wait else 0, self._fire)

    def _fire(self) -> None:
        self._armed = None
        now = self._clock.now()
        try:
            fired = 0
            while fired < FIRED_MAX and self._heap and self._heap[0][0] <= now:
                at, _, owner, name, due = heapq.heappop(self._heap)
                if self._when(owner, name) == at:
                    fired += 1
                    self._unset(owner, name)
                    due(name)
        finally:
            self._arm()
