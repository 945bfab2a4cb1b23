"""How long to wait after the n-th failure in a row."""

from elbowroom.machine import seconds


class Backoff:
    """Exponential back-off for each key: ``initial`` seconds, doubled at each failure, at most ``cap``."""

    def __init__(self, initial: float, cap: float) -> None:
        self._initial, self._cap = initial, cap
        self._failures: dict[str, int] = {}

    def next(self, key: str) -> int:
        """Count a failure of ``key``; the nanoseconds to wait now."""
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        return seconds(min(self._cap, self._initial * 2.0 ** min(count, 60)))

    def failures(self, key: str) -> int:
        """How often ``key`` failed since it was last reset."""
        return self._failures.get(key, 0)

    def reset(self, key: str) -> None:
        """``key`` succeeded or is gone: the next failure waits ``initial`` again."""
        self._failures.pop(key, None)
