"""Is there one order of some operations that agrees with real time and with a single register? (Wing and Gong's search.)"""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

WINDOW = 20
"""Operations in a window, if it can be cut so; the search is exponential in how many of them overlap."""


class Operation(NamedTuple):
    """It began and ended then (ns), and wrote or found this revision of one object."""

    begun: int
    ended: int
    revision: int
    writes: bool


def windows(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Cut them where none is under way, into pieces of at most ``WINDOW`` (or of one knot, if that is larger)."""
    piece: list[Operation] = []
    quiet_at = 0
    for operation in sorted(operations):
        if piece and operation.begun > quiet_at and len(piece) >= WINDOW // 2:
            yield piece
            # The register's last value is handed on: by a write, else nothing is known of it.
            piece = (
                [max((one for one in piece if one.writes), key=attrgetter("revision"))] if any(one.writes for one in piece) else []
            )
        piece.append(operation)
        quiet_at = max(quiet_at, operation.ended)
    if piece:
        yield piece


def agree_by_revision(operations: Sequence[Operation]) -> bool:
    """May they have happened in the order of their revisions, each write before the reads that found it?"""
    written = [operation.revision for operation in operations if operation.writes]
    known = set(written)
    if len(known) < len(written):
        return False
    latest = 0
    for one in sorted(operations, key=lambda one: (one.revision if one.revision in known else 0, not one.writes, one.begun)):
        if one.ended < latest:
            return False
        latest = max(latest, one.begun)
    return True


def is_linearizable(operations: Sequence[Operation]) -> bool:
    """Can they be put into an order in which each takes effect while it is under way, writes rise and reads find the last write?

    What the register held before the first write is unknown: a read may find any revision that is not written later. The order of
    their revisions is tried first: where it will do, there is one. Of more than ``WINDOW`` operations that are knotted together
    it is the only one that comes into question.
    """
    return agree_by_revision(operations) or (len(operations) <= WINDOW and some_order_explains(operations))


def some_order_explains(operations: Sequence[Operation]) -> bool:
    """The same by trying every order."""
    ordered = sorted(operations)
    written = {operation.revision for operation in operations if operation.writes}
    done_before: set[tuple[int, int]] = set()

    def search(left: int, current: int) -> bool:
        if not left:
            return True
        if (left, current) in done_before:
            return False
        done_before.add((left, current))
        mine = [at for at in range(len(ordered)) if left >> at & 1]
        earliest = min(ordered[at].ended for at in mine)
        for at in mine:
            one = ordered[at]
            if one.begun > earliest:
                break
            unknown = current == 0 and one.revision not in written
            fits = one.revision > current if one.writes else (unknown or one.revision == current)
            if fits and search(left & ~(1 << at), one.revision if one.writes else current):
                return True
        return False

    return search((1 << len(ordered)) - 1, 0)
