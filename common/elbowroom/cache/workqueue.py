"""Keys to look at: each once, however often it was added, and later where it failed."""

import heapq

from elbowroom.cache.backoff import Backoff
from elbowroom.machine import Instant


class WorkQueue:
    """A queue of keys without doubles, with delays; the owner sets one timer at ``due()``.

    ``add`` makes a key ready, ``fail`` makes it ready after its back-off, ``ready`` hands out all keys that are due in the
    order in which they became so. A key handed out may be added again at once.
    """

    def __init__(self, initial: float = 0.05, cap: float = 30.0) -> None:
        self._ready: dict[str, None] = {}
        self._later: dict[str, Instant] = {}
        self._heap: list[tuple[Instant, str]] = []
        self._backoff = Backoff(initial, cap)

    def add(self, key: str) -> None:
        """Look at ``key`` as soon as possible."""
        self._later.pop(key, None)
        self._ready[key] = None

    def add_at(self, key: str, at: Instant) -> None:
        """Look at ``key`` at ``at``, or earlier if it is due earlier anyway."""
        if key not in self._ready and at < self._later.get(key, at + 1):
            self._later[key] = at
            heapq.heappush(self._heap, (at, key))

    def fail(self, now: Instant, key: str) -> None:
        """``key`` did not work out: look again after its back-off."""
        self.add_at(key, Instant(now + self._backoff.next(key)))

    def done(self, key: str) -> None:
        """``key`` worked out: its back-off starts anew."""
        self._backoff.reset(key)

    def ready(self, now: Instant) -> list[str]:
        """Take all keys that are due."""
        if not self._ready and (not self._heap or self._heap[0][0] > now):
            return []
        while self._heap and self._heap[0][0] <= now:
            at, key = heapq.heappop(self._heap)
            if self._later.get(key) == at:
                del self._later[key]
                self._ready[key] = None
        keys = list(self._ready)
        self._ready.clear()
        return keys

    def due(self) -> Instant | None:
        """When the next delayed key becomes ready; None if none is delayed."""
        while self._heap and self._later.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
