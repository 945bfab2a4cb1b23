"""Lists: the pages of one are one state of the store."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping

from elbowroom.history.reading import Invariant, commits, forgets
from elbowroom.history.records import History, Record, Violation


def pages_are_one_state(history: History) -> Iterator[Violation]:
    """I-42: all pages of a list are of the first one's revision, and together they tell the store at that revision: each object
    once, in order, and none left out.

    A list that goes on from a token of an expired one (410) begins a state of its own, where that left off.
    """
    if history.count("wal.recovered", forgets) > 1:
        return  # revisions of a store that forgets are used again
    pages = [record for record in history.kinds("api.ok") if "items" in record]
    if not pages:
        return
    states = _States(history)
    gave: dict[tuple[str, int, str], Record] = {}
    for page in pages:
        before = gave.get((page["proc"], page["inc"], page["after"]))
        if page["more"]:
            gave[page["proc"], page["inc"], page["more"]] = page
        if page["after"] and before is None:
            continue  # where it was to go on, nobody told this client
        if before is not None and before["rev"] != page["rev"]:
            yield Violation("I-42", f"a list goes on at {page['rev']}, having begun at {before['rev']}", (before, page))
            continue
        start = before["items"][-1][0] if before is not None and before["items"] else ""
        wanted = [item for item in states.at(page) if item[0] > start]
        told = [tuple(item) for item in page["items"]]
        if told != wanted[: len(told)] or (not page["more"] and len(told) < len(wanted)):
            odd = next((one for one in wanted if one not in told), None) or next(one for one in told if one not in wanted)
            yield Violation("I-42", f"a list at {page['rev']} is not what was there: {odd[0]} at {odd[1]}", (page,))


class _States:
    """What there was of each resource at any revision."""

    def __init__(self, history: History) -> None:
        self._of: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
        for record in commits(history):
            resource, _, key = record["key"].partition("/")
            self._of[resource][key].append(record)

    def at(self, page: Record) -> list[tuple[str, int]]:
        """What a list of that collection is to tell at that revision: keys and revisions, by key."""
        resource, namespace, _ = page["key"].split("/")
        found = []
        for key, writes in self._of[resource].items():
            if namespace and key.partition("/")[0] != namespace:
                continue
            place = bisect_right(writes, page["rev"], key=_revision)
            if place and not writes[place - 1].get("gone"):
                found.append((key, _revision(writes[place - 1])))
        return sorted(found)


def _revision(record: Record) -> int:
    return int(record["rev"])


INVARIANTS: Mapping[str, Invariant] = {"I-42": pages_are_one_state}
LOOKED_AT: Mapping[str, tuple[str, ...]] = {"I-42": ("api.ok",)}
