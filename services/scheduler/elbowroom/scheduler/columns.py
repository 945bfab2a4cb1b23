"""The vectorised twin of the resource filter and scores: the same rules over columns of all nodes' figures.

The readable rules in ``elbowroom.scheduler.plugins.resources`` are the reference; a law says that both agree on all inputs. Figures
are int64 and kept only while they are at most ``EXACT_MAX`` in size: up to there no product below overflows and a float holds a
figure exactly, so that fractions round as they do in Python and in Go. A node with a larger figure (``exact`` is False) is asked by
the plain rule instead, and so is a pod with a larger request.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from elbowroom.scheduler.figures import ASK, EXACT_MAX, FIRST_RESOURCE, UNRESOLVABLE, Wanted, Weighted, is_exact
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.nominator import Nominator
from elbowroom.scheduler.status import Status

Column = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Fractions = npt.NDArray[np.float64]
Rows = slice | npt.NDArray[np.int64]


UNKNOWN, PASSES = 0, 1
"""What is known of a node; a larger number is a refusal's."""
REMEMBERED_MAX = 64
COST_TERMS = 5


class Known:
    """What is known of each node about one question that the node alone answers; forgotten of a node when it changes."""

    def __init__(self, size: int) -> None:
        self.state = np.zeros(size, np.int64)
        self.promised: Flags = np.zeros(size, np.bool_)
        """The nodes that others are nominated to, as of ``follow``."""
        self._promises = 0
        self._refusals: list[Status] = []
        self._numbers: dict[Status, int] = {}
        self._costs: Column | None = None

    def follow(self, nominator: Nominator, row_of: Callable[[str], int | None]) -> None:
        """For questions whose answer depends on who is nominated to a node: forget what changed."""
        for name in nominator.changed_since(self._promises):
            row = row_of(name)
            if row is not None:
                self.state[row] = UNKNOWN
                self.promised[row] = bool(nominator.on(name))
        self._promises = nominator.changes

    def learn(self, row: int, status: Status | None) -> None:
        """The node refuses with that status, or passes."""
        if status is None:
            self.state[row] = PASSES
            return
        number = self._numbers.get(status)
        if number is None:
            self._refusals.append(status)
            number = self._numbers[status] = PASSES + len(self._refusals)
        self.state[row] = number

    def refusal(self, state: int) -> Status:
        return self._refusals[state - PASSES - 1]

    @property
    def costs(self) -> Column:
        """For questions of preemption: what it costs on each node that passes (SC-114), a row for each criterion."""
        if self._costs is None:
            self._costs = np.zeros((COST_TERMS, len(self.state)), np.int64)
        return self._costs


class Columns:
    """What the nodes of a snapshot have and what is asked of them: one row a node, in the snapshot's order."""

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._size = len(nodes)
        self._zeros = self._new()
        self.slots = self._new()
        """For how many more pods there is room."""
        self.exact: Flags = np.ones(self._size, np.bool_)
        self._allocatable: dict[str, Column] = {}
        self._requested: dict[str, Column] = {}
        self._non_zero: dict[str, Column] = {}
        self._known: dict[object, Known] = {}
        for row, node in enumerate(nodes):
            self.set(row, node)

    def set(self, row: int, node: NodeInfo) -> None:
        """The node of that row is now this one."""
        exact = is_exact((node.allowed_pods,))
        self.slots[row] = node.allowed_pods - len(node.pods) if exact else 0
        for columns, amounts in (
            (self._allocatable, node.allocatable),
            (self._requested, node.requested),
            (self._non_zero, node.non_zero),
        ):
            exact &= self._store(columns, row, amounts)
        self.exact[row] = exact
        for known in self._known.values():
            known.state[row] = UNKNOWN

    def known(self, question: object) -> Known:
        """What was found out about the nodes, to be looked up and added to."""
        found = self._known.get(question)
        if found is None:
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            found = self._known[question] = Known(self._size)
        return found

    def known_once(self) -> Known:
        """The same for a question that is asked once."""
        return Known(self._size)

    @staticmethod
    def column_of(scores: Sequence[int]) -> Column:
        return np.array(scores, np.int64)

    def zeros(self, rows: Rows) -> Column:
        return self._zeros[rows]

    def allocatable(self, name: str, rows: Rows) -> Column:
        return self._allocatable.get(name, self._zeros)[rows]

    def requested(self, name: str, rows: Rows) -> Column:
        return self._requested.get(name, self._zeros)[rows]

    def non_zero(self, name: str, rows: Rows) -> Column:
        return self._non_zero.get(name, self._zeros)[rows]

    def _new(self) -> Column:
        return np.zeros(self._size, np.int64)

    def _store(self, columns: dict[str, Column], row: int, amounts: Mapping[str, int]) -> bool:
        exact = True
        for name, amount in amounts.items():
            if name not in columns:
                columns[name] = self._new()
            if not -EXACT_MAX <= amount <= EXACT_MAX:
                exact, amount = False, 0
            columns[name][row] = amount
        if len(columns) > len(amounts):
            for name, column in columns.items():
                if name not in amounts:
                    column[row] = 0
        return exact

    # ---- the filter

    def shortfalls(self, rows: Rows, wanted: Wanted) -> Column:
        """A code for each node (SC-62): 0 if the pod fits, else a bit for each thing that is short, and ``UNRESOLVABLE`` where the
        whole node would not be enough; ``ASK`` where figures are too large.
        """
        codes = (self.slots[rows] < 1).astype(np.int64)
        for bit, (name, amount) in enumerate(wanted, FIRST_RESOURCE):
            total = self.allocatable(name, rows)
            short = amount > total - self.requested(name, rows)
            if short.any():
                codes |= short.astype(np.int64) << bit
                codes |= (short & (amount > total)).astype(np.int64) << UNRESOLVABLE
        exact = self.exact[rows]
        return codes if exact.all() else np.where(exact, codes, ASK)

    # ---- the scores

    def least_allocated(self, rows: Rows, resources: Weighted) -> Column:
        """SC-71: the share that would be left."""
        return self._weighed(rows, resources, lambda requested, capacity: np.maximum(capacity - requested, 0))

    def most_allocated(self, rows: Rows, resources: Weighted) -> Column:
        """SC-72: the share that would be taken."""
        return self._weighed(rows, resources, np.minimum)

    def _weighed(self, rows: Rows, resources: Weighted, part: Callable[[Column, Column], Column]) -> Column:
        """The weighted mean of ``part`` in percent of the capacity, over the resources that a node has."""
        total = weights = self.zeros(rows)
        for name, weight, wanted in resources:
            capacity = self.allocatable(name, rows)
            has = capacity > 0
            share = part(self.non_zero(name, rows) + wanted, capacity) * 100 // np.maximum(capacity, 1)
            total = total + np.where(has, weight * share, 0)
            weights = weights + np.where(has, weight, 0)
        return total // np.maximum(weights, 1)

    def capacity_ratio(self, rows: Rows, resources: Weighted, of_percent: Sequence[int]) -> Column:
        """SC-73: ``of_percent`` has the score of each utilisation from 0 to 100; a resource without a score does not count."""
        table = np.array(of_percent, np.int64)
        total = weights = self.zeros(rows)
        for name, weight, wanted in resources:
            capacity = self.allocatable(name, rows)
            requested = self.non_zero(name, rows) + wanted
            percent = np.where((capacity <= 0) | (requested > capacity), 100, requested * 100 // np.maximum(capacity, 1))
            score = table[np.maximum(percent, 0)]
            total = total + weight * np.maximum(score, 0)
            weights = weights + np.where(score > 0, weight, 0)
        return (2 * total + weights) // np.maximum(2 * weights, 1)

    def balanced(self, rows: Rows, wanted: Wanted) -> Column:
        """SC-74, for two resources: how much evener their use becomes."""
        before: list[Fractions] = []
        after: list[Fractions] = []
        has: list[Flags] = []
        for name, amount in wanted:
            capacity = self.allocatable(name, rows)
            used = self.requested(name, rows)
            has.append(capacity > 0)
            floor = np.maximum(capacity, 1)
            before.append(np.minimum(1.0, used / floor))
            after.append(np.minimum(1.0, (used + amount) / floor))
        both = has[0] & has[1]
        gain = _balance(after, both) - _balance(before, both)
        return 50 + (50 + gain) // 2


def _balance(fractions: Sequence[Fractions], both: Flags) -> Column:
    deviation = np.where(both, np.abs(fractions[0] - fractions[1]) / 2, 0.0)
    return ((1 - deviation) * 100).astype(np.int64)
