"""The search for a node to preempt on, over columns: for clusters of many full nodes, and pods that only resources keep out.

Whom a pod would have to preempt on a node, and what that costs, is found out by the plain rule and remembered for equal preemptors
until the node changes. The answer is the one that ``preemption.dry_run`` and ``preemption.best`` would give.
"""

from collections.abc import Callable, Sequence

import numpy as np

from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.columns import PASSES, UNKNOWN, Column, Known
from elbowroom.scheduler.status import Status
from elbowroom.scheduler.sweep import SweptRefusals

WINDOW = 512
Cost = tuple[int, int, int, int, int]
Tried = Callable[[int], tuple[Cost | Status, bool]]
"""What preempting on the node of a row costs, or why it is of no use there; and whether that may be remembered."""


def search(
    rows: Sequence[int] | Column, offset: int, enough: int, known: Known, tried: Tried, snapshot: Snapshot
) -> tuple[int | None, SweptRefusals]:
    """The row of the cheapest among the first ``enough`` of ``rows``, from ``offset`` on and around, where preemption is of use; if
    it is of none anywhere, why.
    """
    order = np.roll(np.asarray(rows, np.int64), -offset)
    passing: list[Column] = []
    fleeting: list[int] = []
    left, size = enough, max(WINDOW, enough)
    for begin in range(0, len(order), size):
        window = order[begin : begin + size]
        for row in window[known.state[window] == UNKNOWN].tolist():
            found, lasts = tried(row)
            known.learn(row, found if isinstance(found, Status) else None)
            if not isinstance(found, Status):
                known.costs[:, row] = found
            if not lasts:
                fleeting.append(row)
        hits = window[known.state[window] == PASSES][:left]
        passing.append(hits)
        left -= len(hits)
        if left == 0:
            break
    candidates = np.concatenate(passing)
    refusals = SweptRefusals(snapshot)
    if not len(candidates):
        states, places = np.unique(known.state[order], return_inverse=True)
        numbers = np.array([refusals.number(known.refusal(state)) for state in states.tolist()], np.int64)
        refusals.take(order, numbers[places])
    chosen = _cheapest(candidates, known) if len(candidates) else None
    known.state[fleeting] = UNKNOWN
    return chosen, refusals


def _cheapest(rows: Column, known: Known) -> int:
    """The first of those that cost least, by one criterion after the other."""
    for costs in known.costs:
        mine = costs[rows]
        rows = rows[mine == mine.min()]
        if len(rows) == 1:
            break
    return int(rows[0])
