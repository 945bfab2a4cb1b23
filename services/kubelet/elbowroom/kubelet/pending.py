"""Which pending resize is tried first?

Those that ask for no more than they have, since nothing hinders them; then by priority, Guaranteed before all else, and the
longest wait. A resize that does not fit does not block those behind it, and the order is made anew only when one is pushed (RC-60
to RC-64).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from elbowroom.machine import Instant


@dataclass(frozen=True, slots=True)
class Rank:
    """What the order goes by."""

    increases: bool
    priority: int
    guaranteed: bool
    waiting_since: Instant | None
    """When its PodResizePending condition last changed; None without one: behind all that have one."""

    @property
    def key(self) -> tuple[object, ...]:
        if not self.increases:
            return (False,)
        return (True, -self.priority, not self.guaranteed, self.waiting_since is None, self.waiting_since or 0)


class PendingQueue:
    """Pod uids whose resize waits for a verdict that grants it."""

    def __init__(self) -> None:
        self._uids: list[str] = []

    def __len__(self) -> int:
        return len(self._uids)

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._uids))

    def push(self, uid: str, rank: Callable[[str], Rank | None]) -> None:
        """Add ``uid`` and order the whole queue; a pod without a rank has vanished. One that waits already stays where it is."""
        self.push_all([uid], rank)

    def push_all(self, uids: Iterable[str], rank: Callable[[str], Rank | None]) -> None:
        """As if each were pushed after the other: the order goes by ranks, and among equals by who came first."""
        known = set(self._uids)
        new = [uid for uid in uids if uid not in known]
        if not new:
            return
        ranked = [(found.key, waiting) for waiting in [*self._uids, *new] if (found := rank(waiting)) is not None]
        self._uids = [waiting for _, waiting in sorted(ranked, key=lambda pair: pair[0])]

    def keep(self, uids: Iterable[str]) -> None:
        """What a pass leaves, in its order."""
        kept = set(uids)
        self._uids = [uid for uid in self._uids if uid in kept]

    def remove(self, uid: str) -> None:
        """It waits no longer, if it did."""
        if uid in self._uids:
            self._uids.remove(uid)
