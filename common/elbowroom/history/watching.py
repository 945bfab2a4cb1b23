"""What a reader of a watch may rely on: order, no gap, honest bookmarks, streams that join where they broke, copies that never go
back."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping

from elbowroom.history.reading import Invariant, commits_by_life, forgets
from elbowroom.history.records import History, Record, Violation

_STREAM = ("watch.open", "watch.initial", "watch.event", "watch.bookmark")


def watches_miss_nothing(history: History) -> Iterator[Violation]:
    """I-39: between the revision a stream began at and the last one it told, it told exactly the log's matching writes, in
    order and once."""
    writes: dict[tuple[int, str], _Writes] = defaultdict(_Writes)
    for life, record in commits_by_life(history):
        writes[life, record["resource"]].add(record)
    streams: dict[tuple[str, int, int], list[Record]] = {}
    lives: dict[tuple[str, int, int], int] = {}
    life = 0
    for record in history.kinds("watch.open", "watch.initial", "watch.event", "watch.bookmark", "wal.recovered"):
        if record["kind"] == "wal.recovered":
            life += forgets(record)
            continue
        stream = (record["proc"], record["inc"], record["id"])
        if record["kind"] == "watch.open":
            streams[stream] = [record]
        elif stream in streams:
            streams[stream].append(record)
            lives[stream] = life  # of the store that answers: a stream may be opened before that is there
    for stream, told in streams.items():
        yield from _stream(told, writes[lives.get(stream, 0), told[0]["resource"]])


class _Writes:
    """All writes of a resource by revision; of pods those of each node, too, which is all that a kubelet asks for."""

    def __init__(self) -> None:
        self.all: list[Record] = []
        self._on: dict[str, list[Record]] = defaultdict(list)

    def add(self, commit: Record) -> None:
        self.all.append(commit)
        for node in dict.fromkeys(((commit.get("obj") or {}).get("node"), commit.get("old_node"))):
            if node:
                self._on[node].append(commit)

    def between(self, opened: Record, start: int, last: int) -> list[Record]:
        """Those above ``start`` up to ``last`` that the stream is to tell of."""
        wanted = [term.partition("=")[2] for term in (opened.get("fields") or "").split(",") if term.startswith("spec.nodeName=")]
        among = self._on.get(wanted[0], []) if wanted and wanted[0] else self.all
        first, end = bisect_right(among, start, key=_revision), bisect_right(among, last, key=_revision)
        return [commit for commit in among[first:end] if _matches(opened, commit)]


def _revision(commit: Record) -> int:
    return int(commit["rev"])


def _stream(told: list[Record], writes: _Writes) -> Iterator[Violation]:
    opened = told[0]
    start, last = opened["from"], opened["from"]
    events: list[Record] = []
    for record in told[1:]:
        if record["kind"] == "watch.initial":
            start = last = record["rev"]
        elif record["kind"] == "watch.event":
            if record["rev"] <= last:
                yield Violation("I-39", f"{opened['watch']}: revision {record['rev']} after {last}", (opened, record))
            last = max(last, record["rev"])
            events.append(record)
        else:
            last = max(last, record["rev"])
    if not start:
        return
    seen = {record["rev"] for record in events}
    wanted = writes.between(opened, start, last)
    missing = [c for c in wanted if c["rev"] not in seen]
    if missing:
        yield Violation("I-39", f"{opened['watch']} never heard of revision {missing[0]['rev']}", (opened, missing[0]))
    logged = {c["rev"] for c in wanted}
    invented = [e for e in events if e["rev"] not in logged]
    if invented and writes.all:
        yield Violation(
            "I-39", f"{opened['watch']} heard of revision {invented[0]['rev']}, which is no matching write", (invented[0],)
        )


def _matches(opened: Record, commit: Record) -> bool:
    namespace, fields = opened.get("namespace"), opened.get("fields")
    if namespace and not commit["key"].split("/", 1)[-1].startswith(f"{namespace}/"):
        return False
    for term in fields.split(",") if fields else ():
        name, _, value = term.partition("=")
        if name == "spec.nodeName" and value not in ((commit.get("obj") or {}).get("node"), commit.get("old_node")):
            return False
        if name == "metadata.name" and commit["key"].rsplit("/", 1)[-1] != value:
            return False
    return True


def bookmarks_are_true(history: History) -> Iterator[Violation]:
    """I-40: after a bookmark nothing at or below its revision follows; the state of a stream ends once, before any change, and only
    where the stream began with the state."""
    marks: dict[tuple[str, int, int], Record] = {}
    opened: dict[tuple[str, int, int], Record] = {}
    for record in history.kinds(*_STREAM):
        stream = (record["proc"], record["inc"], record["id"])
        mark = marks.get(stream)
        if record["kind"] == "watch.open":
            opened[stream] = record
            marks.pop(stream, None)
            continue
        start = opened.get(stream)
        if record["kind"] == "watch.initial" and (mark is not None or (start is not None and start["from"])):
            yield Violation("I-40", f"stream {record['id']} of {record['proc']} ends its state again", (mark or record, record))
        if record["kind"] == "watch.event":
            if mark is not None and record["rev"] <= mark["rev"]:
                yield Violation("I-40", f"revision {record['rev']} comes after a bookmark at {mark['rev']}", (mark, record))
            elif mark is None and start is not None and not start["from"]:
                yield Violation("I-40", f"a change of {record['key']} comes before the state ended", (start, record))
        else:
            marks[stream] = record


def streams_join(history: History) -> Iterator[Violation]:
    """I-41: a reader that opens its stream anew goes on from the last revision it was told; it begins with the state again only if
    it never had it whole, was told that its revision is too old, or gave its copy up.

    A store in memory that began anew knows nothing of what was told before.
    """
    last: dict[tuple[str, int, str], int] = {}
    names: dict[tuple[str, int, int], str] = {}
    refused: set[tuple[str, int, str]] = set()
    for record in history.kinds(*_STREAM, "watch.broken", "watch.closed"):
        if record["kind"] == "watch.broken":
            if record["why"].startswith("OUT_OF_RANGE"):
                refused.add((record["proc"], record["inc"], record["watch"]))
            continue
        if record["kind"] == "watch.closed":
            last.pop((record["proc"], record["inc"], record["watch"]), None)
            continue
        stream = (record["proc"], record["inc"], record["id"])
        if record["kind"] == "watch.open":
            names[stream] = record["watch"]
            reader = (record["proc"], record["inc"], record["watch"])
            told = last.get(reader)
            if told is None:
                continue
            if record["from"] and record["from"] != told:
                yield Violation("I-41", f"{record['watch']} goes on from {record['from']}, having heard of {told}", (record,))
            elif not record["from"] and reader not in refused:
                yield Violation("I-41", f"{record['watch']} begins with the state again, and nobody asked it to", (record,))
            if not record["from"]:
                del last[reader]
                refused.discard(reader)
            continue
        if stream not in names:
            continue
        reader = (record["proc"], record["inc"], names[stream])
        if record["kind"] == "watch.initial":
            last[reader] = record["rev"]
        elif reader in last:
            last[reader] = max(last[reader], record["rev"])


def copies_never_go_back(history: History) -> Iterator[Violation]:
    """I-43: a reader hears of an object's revisions in rising order over all its streams, and of nothing between a deletion and the
    next creation."""
    last: dict[tuple[str, int, str, str], Record] = {}
    names: dict[tuple[str, int, int], str] = {}
    lives = 0
    for record in history.kinds("watch.open", "watch.event", "wal.recovered"):
        if record["kind"] == "wal.recovered":
            lives += forgets(record)
            if lives > 1:
                last.clear()
            continue
        stream = (record["proc"], record["inc"], record["id"])
        if record["kind"] == "watch.open":
            names[stream] = record["watch"]
            if not record["from"]:  # the state is told anew, in which an object may have come or gone
                mine = [place for place in last if place[:3] == (record["proc"], record["inc"], record["watch"])]
                for place in mine:
                    del last[place]
            continue
        place = (record["proc"], record["inc"], names.get(stream, ""), record["key"])
        before = last.get(place)
        last[place] = record
        if before is None:
            continue
        if record["rev"] <= before["rev"]:
            yield Violation("I-43", f"{record['key']} at {record['rev']} after {before['rev']}", (before, record))
        if before["type"] == "DELETED" and record["type"] != "ADDED":
            yield Violation("I-43", f"{record['key']} is deleted and then {record['type']}", (before, record))


def gaps_are_noticed(history: History) -> Iterator[Violation]:
    """I-51: of each stream on the bus a reader takes the frames one after the other, as their sender numbered them; once one is
    missing, it hears no more of that stream, but opens another one."""
    last: dict[tuple[str, int, int], int] = {}
    current: dict[tuple[str, int, str], tuple[str, int, int]] = {}
    given_up: dict[tuple[str, int, int], Record] = {}
    for record in history.kinds(*_STREAM, "watch.broken"):
        proc, inc = record["proc"], record["inc"]
        if record["kind"] == "watch.open":
            current[proc, inc, record["watch"]] = (proc, inc, record["id"])
            last[proc, inc, record["id"]] = 0
            continue
        if record["kind"] == "watch.broken":
            stream = current.get((proc, inc, record["watch"]))
            if stream is not None:
                given_up[stream] = record
            continue
        stream, number = (proc, inc, record["id"]), record.get("number")
        if stream not in last or number is None:
            continue
        if stream in given_up:
            yield Violation("I-51", f"{proc} hears more of a stream that it gave up", (given_up[stream], record))
        # The frames of the state are numbered, too, but not told one by one.
        expected = last[stream] + (record["kind"] == "watch.event")
        if record["kind"] != "watch.initial" and number != expected:
            yield Violation("I-51", f"{proc} took frame {number} of a stream after {last[stream]}", (record,))
        last[stream] = number


INVARIANTS: Mapping[str, Invariant] = {
    "I-39": watches_miss_nothing,
    "I-40": bookmarks_are_true,
    "I-41": streams_join,
    "I-43": copies_never_go_back,
    "I-51": gaps_are_noticed,
}
LOOKED_AT: Mapping[str, tuple[str, ...]] = {
    "I-39": ("watch.event",),
    "I-40": ("watch.bookmark", "watch.initial"),
    "I-41": ("watch.open",),
    "I-43": ("watch.event",),
    "I-51": ("watch.event", "watch.bookmark"),
}
