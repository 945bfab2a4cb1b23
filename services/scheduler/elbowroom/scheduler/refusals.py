"""What the nodes that were asked said to a pod, in the order in which they were asked."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.status import Code, Status

if TYPE_CHECKING:
    from elbowroom.scheduler.columns import Column


class Refusals:
    """One refusal a node. Thousands of nodes say the same few things as a rule, so they are counted, not listed, where that will
    do; ``elbowroom.scheduler.sweep`` has a kind that never lists them.
    """

    def __init__(self, by_node: dict[str, Status] | None = None) -> None:
        self.by_node: dict[str, Status] = {} if by_node is None else by_node
        """To be filled by whoever asks node by node."""

    def __len__(self) -> int:
        return len(self.by_node)

    def items(self) -> list[tuple[str, Status]]:
        return list(self.by_node.items())

    def get(self, node: str) -> Status | None:
        return self.by_node.get(node)

    def counted(self) -> list[tuple[Status, int]]:
        """Each refusal and how many nodes say so, those first that were heard first."""
        said = list(self.by_node.values())
        objects = {id(status): status for status in said}
        counts: Counter[Status] = Counter()
        for which, count in Counter(map(id, said)).items():
            counts[objects[which]] += count
        return list(counts.items())

    def rows(self, code: Code, snapshot: Snapshot) -> "Sequence[int] | Column":
        """Where in the snapshot the nodes are that refuse with this code."""
        found = (snapshot.row(node) for node, status in self.by_node.items() if status.code is code)
        return [row for row in found if row is not None]
