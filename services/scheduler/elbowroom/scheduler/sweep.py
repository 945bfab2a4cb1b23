"""The search for nodes where a pod fits, over columns: for clusters that are too large to ask node by node.

The filters before the resources' look at a node alone as a rule, so their verdicts are remembered; the resources' twin judges a
window of nodes at once; those behind it (inter-pod affinity, spreading) are asked for the nodes that are left. The answer is the
one that asking each filter of each node in turn would give, refusals and their order included.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.columns import PASSES, REFUSES, UNKNOWN, Column, Flags, Verdicts
from elbowroom.scheduler.figures import ASK
from elbowroom.scheduler.framework import Filters, NodeFilter, Status
from elbowroom.scheduler.nodeinfo import NodeInfo

WINDOW = 512


def sweep(
    parts: tuple[Filters, NodeFilter, Filters],
    snapshot: Snapshot,
    start: int,
    enough: int,
    refusals: dict[str, Status],
    promised: Mapping[int, Callable[[], Status | None]],
) -> Column:
    """The rows of the nodes that pass, from row ``start`` on and around, until there are ``enough``; refusals before the last of
    them come into ``refusals``. ``promised``: the rows of nodes that others are nominated to, and how those are judged.
    """
    before, fit, behind = parts
    columns, nodes, names = snapshot.columns, snapshot.nodes, snapshot.names
    known = columns.verdicts(before.question) if before.question is not None else None
    found: list[Column] = []
    left = enough
    for begin, end in _windows(start, len(nodes), max(WINDOW, enough)):
        window = slice(begin, end)
        codes = fit.codes(columns, window)
        for offset in (codes == ASK).nonzero()[0].tolist():
            codes[offset] = 0 if fit.check(nodes[begin + offset]) is None else ASK
        passes: Flags = codes == 0
        if known is not None:
            passes &= _learnt(known, before, nodes, begin, end)
        elif not before.is_empty:
            passes &= np.fromiter((before.check(node) is None for node in nodes[window]), np.bool_, end - begin)
        if not behind.is_empty:
            for offset in passes.nonzero()[0].tolist():
                passes[offset] = behind.check(nodes[begin + offset]) is None
        judged: dict[int, Status | None] = {}
        for row in promised:
            if begin <= row < end:
                judged[row - begin] = status = promised[row]()
                passes[row - begin] = status is None
        hits = passes.nonzero()[0][:left]
        found.append(hits + begin)
        left -= len(hits)
        done = left == 0
        reasons = codes.tolist()
        cleared = (known[window] == PASSES).tolist() if known is not None else [before.is_empty] * len(reasons)
        told: dict[int, Status | None] = {}
        for offset in (~passes[: hits[-1]] if done else ~passes).nonzero()[0].tolist():
            code = reasons[offset]
            if code > 0 and cleared[offset] and not judged:  # nearly all of a full cluster: no look at the node itself
                if code not in told:
                    told[code] = fit.refusal(nodes[begin + offset], code)
                status = told[code]
            elif offset in judged:
                status = judged[offset]
            else:
                node = nodes[begin + offset]
                status = None if cleared[offset] else before.check(node)
                if status is None:
                    status = fit.refusal(node, code) if code else behind.check(node)
            assert status is not None, "a node that does not pass is refused by somebody"
            refusals[names[begin + offset]] = status
        if done:
            break
    return np.concatenate(found)


def _windows(start: int, total: int, size: int) -> Iterator[tuple[int, int]]:
    """All rows once, from ``start`` on, in pieces."""
    for first, last in ((start, total), (0, start)):
        for begin in range(first, last, size):
            yield begin, min(begin + size, last)


def _learnt(known: Verdicts, filters: Filters, nodes: list[NodeInfo], begin: int, end: int) -> Flags:
    """Which of these nodes the filters let pass; they are asked about those that are not known yet."""
    state = known[begin:end]
    for offset in (state == UNKNOWN).nonzero()[0].tolist():
        state[offset] = PASSES if filters.check(nodes[begin + offset]) is None else REFUSES
    passing: Flags = state == PASSES
    return passing
