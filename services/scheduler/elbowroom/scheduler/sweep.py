"""The search for nodes where a pod fits, over columns: for clusters that are too large to ask node by node.

The filters before the resources' look at a node alone as a rule, so their verdicts are remembered; the resources' twin judges a
window of nodes at once; those behind it (inter-pod affinity, spreading) are asked for the nodes that are left. The answer is the
one that asking each filter of each node in turn would give, refusals and their order included.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.columns import PASSES, UNKNOWN, Column, Flags, Known
from elbowroom.scheduler.figures import ASK
from elbowroom.scheduler.framework import Code, Filters, NodeFilter, Status
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.nominator import Nominator
from elbowroom.scheduler.podinfo import PodInfo
from elbowroom.scheduler.refusals import Refusals
from elbowroom.scheduler.rehearsal import check_with_nominated

WINDOW = 512


class SweptRefusals(Refusals):
    """Refusals by row: each is one of a few statuses, under its number."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._rows: list[Column] = []
        self._numbers: list[Column] = []
        self._statuses: list[Status] = []
        self._number_of: dict[Status, int] = {}
        self._counted: list[tuple[Status, int]] = []

    def number(self, status: Status) -> int:
        number = self._number_of.get(status)
        if number is None:
            number = self._number_of[status] = len(self._statuses)
            self._statuses.append(status)
        return number

    def take(self, rows: Column, numbers: Column) -> None:
        """These nodes, asked after those before, say what is under these numbers."""
        self._rows.append(rows)
        self._numbers.append(numbers)
        self._counted = []

    def __len__(self) -> int:
        return sum(map(len, self._rows))

    def items(self) -> list[tuple[str, Status]]:
        names = self._snapshot.names
        return [
            (names[row], self._statuses[number])
            for rows, numbers in zip(self._rows, self._numbers, strict=True)
            for row, number in zip(rows.tolist(), numbers.tolist(), strict=True)
        ]

    def get(self, node: str) -> Status | None:
        row = self._snapshot.row(node)
        for rows, numbers in zip(self._rows, self._numbers, strict=True):
            (places,) = (rows == row).nonzero()
            if len(places):
                return self._statuses[int(numbers[places[0]])]
        return None

    def counted(self) -> list[tuple[Status, int]]:
        if not self._counted and self._numbers:
            numbers = np.concatenate(self._numbers)
            counts = np.bincount(numbers, minlength=len(self._statuses)).tolist()
            first = {number: int((numbers == number).argmax()) for number, count in enumerate(counts) if count}
            self._counted = [(self._statuses[number], counts[number]) for number in sorted(first, key=first.__getitem__)]
        return self._counted

    def rows(self, code: Code, snapshot: Snapshot) -> "Sequence[int] | Column":
        if not self._rows:
            return []
        wanted = np.array([status.code is code for status in self._statuses], np.bool_)
        found: Column = np.concatenate(self._rows)[wanted[np.concatenate(self._numbers)]]
        return found


def sweep(
    parts: tuple[Filters, NodeFilter, Filters],
    snapshot: Snapshot,
    start: int,
    enough: int,
    promises: "Promises",
) -> tuple[Column, SweptRefusals]:
    """The rows of the nodes that pass, from row ``start`` on and around, until there are ``enough``; and the refusals before the
    last of them. ``promises`` judge the nodes that others are nominated to.
    """
    before, fit, behind = parts
    columns, nodes = snapshot.columns, snapshot.nodes
    known = columns.known(before.question) if before.question is not None else None
    found: list[Column] = []
    refusals = SweptRefusals(snapshot)
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
        theirs = promises.known.promised[window]
        passes &= ~theirs
        if not behind.is_empty:
            for offset in passes.nonzero()[0].tolist():
                passes[offset] = behind.check(nodes[begin + offset]) is None
        judged = promises.states(begin, end)
        passes |= theirs & (judged == PASSES)
        hits = passes.nonzero()[0][:left]
        found.append(hits + begin)
        left -= len(hits)
        done = left == 0
        (refused,) = (~passes[: hits[-1]] if done else ~passes).nonzero()
        numbers = np.full(len(refused), -1, np.int64)
        mine = theirs[refused]
        _number_alike(numbers, np.where(mine, judged[refused], UNKNOWN), promises.known, refusals)
        if known is None:
            cleared = ~mine & (codes[refused] > 0) & before.is_empty
        else:
            state = np.where(mine, UNKNOWN, known.state[window][refused])
            _number_alike(numbers, state, known, refusals)
            cleared = (state == PASSES) & (codes[refused] > 0)
        short = codes[refused]
        for code in _distinct(short[cleared]):
            alike = cleared & (short == code)
            status = fit.refusal(nodes[begin + int(refused[alike.argmax()])], code)
            assert status is not None, "a code says what is short"
            numbers[alike] = refusals.number(status)
        for place in (numbers < 0).nonzero()[0].tolist():
            offset = int(refused[place])
            status = _refusal(nodes[begin + offset], int(codes[offset]), before, fit, behind)
            assert status is not None, "a node that does not pass is refused by somebody"
            numbers[place] = refusals.number(status)
        refusals.take(refused + begin, numbers)
        if done:
            break
    promises.close()
    return np.concatenate(found), refusals


class Promises:
    """How nodes are judged that others are nominated to: found out once for pods that are alike, until the node or what is promised
    on it changes; each time for the pod that is itself nominated there, and for pods whose filters look at more than the node.
    """

    def __init__(self, info: PodInfo, filters: Filters, snapshot: Snapshot, nominator: Nominator) -> None:
        self._info, self._filters, self._nominator, self._nodes = info, filters, nominator, snapshot.nodes
        columns = snapshot.columns
        lasts = filters.question is not None
        self.known = columns.known(("promised", filters.question, info.priority)) if lasts else columns.known_once()
        self.known.follow(nominator, snapshot.row)
        self._own = snapshot.row(nominator.node_of(info.uid))
        self.close()

    def states(self, begin: int, end: int) -> Column:
        """What is known of these nodes, as far as they are promised."""
        known = self.known
        for offset in (known.promised[begin:end] & (known.state[begin:end] == UNKNOWN)).nonzero()[0].tolist():
            node = self._nodes[begin + offset]
            status = check_with_nominated(self._info, node, self._filters, self._nominator.on(node.name))
            known.learn(begin + offset, status)
        return known.state[begin:end]

    def close(self) -> None:
        """Forget what was found out for this pod alone."""
        if self._own is not None:
            self.known.state[self._own] = UNKNOWN


def _number_alike(numbers: Column, state: Column, known: Known, refusals: SweptRefusals) -> None:
    """The numbers of refusals that are known already."""
    for value in _distinct(state[state > PASSES]):
        numbers[state == value] = refusals.number(known.refusal(value))


def _distinct(column: Column) -> list[int]:
    """What stands there, each once; a single thing as a rule."""
    if not len(column):
        return []
    if (column == column[0]).all():
        return [int(column[0])]
    found: list[int] = np.unique(column).tolist()
    return found


def _refusal(node: NodeInfo, code: int, before: Filters, fit: NodeFilter, behind: Filters) -> Status | None:
    status = before.check(node)
    if status is None:
        status = fit.refusal(node, code) if code else behind.check(node)
    return status


def _windows(start: int, total: int, size: int) -> Iterator[tuple[int, int]]:
    """All rows once, from ``start`` on, in pieces that grow: whoever finds nothing in the first looks through nearly all."""
    for first, last in ((start, total), (0, start)):
        while first < last:
            end = min(first + size, last)
            yield first, end
            first, size = end, 2 * size


def _learnt(known: Known, filters: Filters, nodes: list[NodeInfo], begin: int, end: int) -> Flags:
    """Which of these nodes the filters let pass; they are asked about those that are not known yet."""
    for offset in (known.state[begin:end] == UNKNOWN).nonzero()[0].tolist():
        known.learn(begin + offset, filters.check(nodes[begin + offset]))
    passing: Flags = known.state[begin:end] == PASSES
    return passing
