"""A heap of keyed items, from whose middle items can be taken."""

import heapq
from typing import Generic, TypeVar

Item = TypeVar("Item")


class KeyedHeap(Generic[Item]):
    """Items under their keys, smallest rank first. A rank is a tuple of numbers; equal ranks come in the order of arrival."""

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[int, ...], int, str]] = []
        self._items: dict[str, tuple[int, Item]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def push(self, key: str, rank: tuple[int, ...], item: Item) -> None:
        """Add an item, or give it another rank."""
        self._count += 1
        self._items[key] = (self._count, item)
        heapq.heappush(self._heap, (rank, self._count, key))

    def get(self, key: str) -> Item | None:
        found = self._items.get(key)
        return found[1] if found is not None else None

    def remove(self, key: str) -> Item | None:
        """Take that item out; None if it is not there."""
        found = self._items.pop(key, None)
        return found[1] if found is not None else None

    def first_rank(self) -> tuple[int, ...] | None:
        """The rank of the item that ``pop`` would take."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def pop(self) -> Item:
        """Take the first item; there must be one."""
        self._drop_stale()
        _, _, key = heapq.heappop(self._heap)
        return self._items.pop(key)[1]

    def items(self) -> list[Item]:
        """All items, in no particular but a fixed order."""
        return [item for _, item in self._items.values()]

    def _drop_stale(self) -> None:
        while self._heap:
            _, number, key = self._heap[0]
            found = self._items.get(key)
            if found is not None and found[0] == number:
                return
            heapq.heappop(self._heap)
