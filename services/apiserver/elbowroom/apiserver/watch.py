"""Watches: a cursor over the log for each reader, who says how much he can take.

A watch that keeps up gets each change when it is made; one whose reader grants no room stops where it is and later reads on from
the log. So a stuck reader costs nothing but its place, and loses it (OUT_OF_RANGE, HTTP's 410) once compaction passes the cursor.
An index by node, name and resource finds the few watches that a change concerns: a pod's status wakes one kubelet, not all.

Bookmarks tell that nothing was lost: 200 ms after the last event, then every 5 s. All watches share one timer.
"""

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from elbowroom.api.fielderrors import FieldError, forbidden, not_supported
from elbowroom.apiserver import intake, statuses
from elbowroom.apiserver.gotext import is_true
from elbowroom.apiserver.kinds.base import Resource
from elbowroom.apiserver.listing import NODE_FIELD, Filter, copy_of, data_of, filter_of, node_of, snapshot
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.store import Change, CompactedError, Record, Store
from elbowroom.machine import Effect, Instant, Send, SetTimer, on_beat, seconds
from elbowroom.wire import ApiRequest, Code, StreamBookmark, StreamEnd, StreamEvent

TIMER = "watch/bookmarks"
SETTLED = seconds(0.2)
IDLE = seconds(5.0)
IDLE_BEAT = seconds(0.1)
CREDIT_MAX = 1 << 20
WATCHES_PER_PEER_MAX = 1024


class _Watch:
    """One reader's place. ``behind``: the revision after which it has not been told; None while it keeps up."""

    __slots__ = (
        "behind",
        "bookmarks",
        "credit",
        "due",
        "ends",
        "filter",
        "id",
        "index",
        "initial",
        "marks_end",
        "previous",
        "queued",
        "sequence",
        "shown",
        "source",
        "start",
    )

    def __init__(self, source: str, number: int, wanted: Filter, credit: int, bookmarks: bool) -> None:
        self.source, self.id, self.filter, self.credit, self.bookmarks = source, number, wanted, credit, bookmarks
        self.index = _index_of(wanted)
        self.sequence = 0
        self.previous = 0
        self.start = 0
        self.behind: int | None = None
        self.initial: list[Record] | None = None
        self.shown = 0
        self.marks_end = False
        self.due: Instant | None = None
        self.queued: Instant | None = None
        self.ends: Instant | None = None


_IndexKey = tuple[str, str, str]


def _index_of(wanted: Filter) -> _IndexKey:
    resource = wanted.row.strategy.resource
    for name in (NODE_FIELD, "metadata.name"):
        value = wanted.fields.exact(name)
        if value is not None and (name != NODE_FIELD or resource == "pods"):
            return resource, name, value
    return resource, "", ""


def _is_kept(key: _IndexKey) -> bool:
    """Are the revisions kept that concern watches of this index? Not for each object that ever was, but for nodes' and whole
    resources'."""
    resource, field, _ = key
    return field in ("", NODE_FIELD) or resource == "nodes"


class Watches:
    """All streams of the API server. Every method gives the effects; ``store`` is read, never changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watches: dict[tuple[str, int], _Watch] = {}
        self._by_index: dict[_IndexKey, dict[tuple[str, int], _Watch]] = {}
        self._by_peer: dict[str, dict[int, _Watch]] = {}
        self._heap: list[tuple[Instant, int, str, int]] = []
        self._pushed = 0
        self._armed: Instant | None = None
        self._changed: dict[_IndexKey, list[int]] = {}
        """The revisions that concerned a resource, a node, or the pods on it: those after ``_known_from`` that are still known."""
        self._known_from: int | None = None

    def __len__(self) -> int:
        return len(self._watches)

    # ------------------------------------------------------------ opening and closing

    def open(self, now: Instant, source: str, number: int, credit: int, row: Resource, request: ApiRequest) -> list[Effect]:
        """Begin a stream: from the state or from a revision, as the query says. ``ApiError`` if it cannot be."""
        is_http = source.startswith("http/")
        query = request.query
        if self._known_from is None:
            self._known_from = self._store.revision
        wanted = filter_of(row, request)
        from_state = is_true(query.get("sendInitialEvents", "0"))
        _check_query(query)
        revision = intake.parse_revision(query["resourceVersion"]) if query.get("resourceVersion") else 0
        if len(self._by_peer.get(source, ())) >= WATCHES_PER_PEER_MAX:
            raise statuses.too_many_requests("too many watches of one client, please try again later", retry_after=1)
        watch = _Watch(
            source, number, wanted, min(credit, CREDIT_MAX), not is_http or is_true(query.get("allowWatchBookmarks", "0"))
        )
        if from_state or not revision:
            if revision > self._store.revision:
                raise statuses.too_large_revision(revision, self._store.revision)
            watch.initial = snapshot(self._store, wanted, self._store.revision)
            watch.marks_end = from_state and watch.bookmarks
            watch.start = watch.behind = self._store.revision
        else:
            if revision > self._store.revision and not is_http:
                raise statuses.too_large_revision(revision, self._store.revision)
            if revision < self._store.floor:
                raise statuses.watch_too_old(revision, self._store.floor)
            watch.start = watch.previous = revision
            watch.behind = min(revision, self._store.revision)
        limit = intake.parse_int(query["timeoutSeconds"]) if query.get("timeoutSeconds") else 0
        if limit > 0:
            watch.ends = Instant(now + seconds(limit))
        effects = self._close((source, number))
        self._watches[source, number] = watch
        self._by_peer.setdefault(source, {})[number] = watch
        self._by_index.setdefault(watch.index, {})[source, number] = watch
        effects += self._advance(now, watch)
        self._schedule(watch, on_beat(now + IDLE, IDLE_BEAT))
        return effects + self._arm()

    def cancel(self, source: str, number: int) -> list[Effect]:
        """The reader no longer wants it."""
        return self._close((source, number))

    def drop_peer(self, source: str) -> list[Effect]:
        """The peer's connection, or the peer itself, is another one now: its streams are over."""
        for number in list(self._by_peer.get(source, ())):
            self._close((source, number))
        return []

    def over(self, resource: str) -> list[Effect]:
        """What a resource was served by is another one now, or gone: its streams end, and their readers ask anew."""
        mine = [watch for watch in self._watches.values() if watch.index[0] == resource]
        return [effect for watch in mine for effect in self._end(watch, Code.OK)]

    def _close(self, key: tuple[str, int]) -> list[Effect]:
        watch = self._watches.pop(key, None)
        if watch is not None:
            del self._by_peer[watch.source][watch.id]
            if not self._by_peer[watch.source]:
                del self._by_peer[watch.source]
            del self._by_index[watch.index][key]
            if not self._by_index[watch.index]:
                del self._by_index[watch.index]
        return []

    def _end(self, watch: _Watch, code: Code, refusal: ApiError | None = None) -> list[Effect]:
        self._close((watch.source, watch.id))
        body, message = (b"", "") if refusal is None else (refusal.body(), refusal.message)
        return [Send(watch.source, StreamEnd(watch.id, code, body, message))]

    # ------------------------------------------------------------ events

    def publish(self, now: Instant, changes: Iterable[Change]) -> list[Effect]:
        """Tell of changes that were just made (and are durable once the effects before these are carried out)."""
        effects: list[Effect] = []
        for change in changes:
            if self._known_from is None:
                self._known_from = change.revision - 1
            keys = self._keys(change)
            for key in keys:
                if _is_kept(key):
                    self._changed.setdefault(key, []).append(change.revision)
            for watch in self._concerned(keys):
                if watch.behind is None:
                    if watch.credit > 0:
                        effects += self._tell(now, watch, change)
                    elif self._concerns(watch, change):
                        watch.behind = change.revision - 1
        return effects + self._arm() if effects else effects

    @staticmethod
    def _keys(change: Change) -> list[_IndexKey]:
        """What watches of this change may be indexed by."""
        record, old = change.record, change.old
        keys = [(record.resource, "", ""), (record.resource, "metadata.name", record.name)]
        if record.resource == "pods":
            node = node_of(record)
            keys.append(("pods", NODE_FIELD, node))
            if old is not None and (before := node_of(old)) != node:
                keys.append(("pods", NODE_FIELD, before))
        return keys

    def _concerned(self, keys: Iterable[_IndexKey]) -> list[_Watch]:
        found: list[_Watch] = []
        for key in keys:
            watches = self._by_index.get(key)
            if watches:
                found += watches.values()
        return found

    def _changes(self, watch: _Watch) -> Iterator[Change]:
        """The changes after those that the watch was told of; where it is known, only those that may concern it.

        A cluster's kubelets that all open their streams anew, after a stall, must not each go through all that has happened: they
        would find the API server silent again, and begin anew for ever.
        """
        behind, known_from = watch.behind, self._known_from
        assert behind is not None, "only a watch that is behind reads on"
        if known_from is None or behind < known_from or not _is_kept(watch.index):
            yield from self._store.changes(behind)
            return
        if behind < self._store.floor:
            raise CompactedError
        revisions = self._changed.get(watch.index, [])
        for revision in revisions[bisect_right(revisions, behind) :]:
            yield self._store.change(revision)

    def _tell(self, now: Instant, watch: _Watch, change: Change) -> list[Effect]:
        """Send the change as the watch sees it, if it sees it."""
        record, old, wanted = change.record, change.old, watch.filter
        if change.revision <= watch.start:
            return []
        was = old is not None and wanted.matches(old)
        is_there = not change.deleted and wanted.matches(record)
        if is_there:
            kind, data = ("MODIFIED" if was else "ADDED"), data_of(wanted.row, record)
        elif was:
            kind = "DELETED"
            data = data_of(wanted.row, record) if change.deleted or old is None else _as_of(wanted.row, old, change.revision)
        else:
            return []
        return self._send(now, watch, kind, change.revision, data)

    def _send(self, now: Instant, watch: _Watch, kind: str, revision: int, data: bytes) -> list[Effect]:
        watch.credit -= 1
        watch.sequence += 1
        message = StreamEvent(watch.id, watch.sequence, revision, watch.previous, kind, data)
        watch.previous = revision
        self._schedule(watch, Instant(now + SETTLED))
        return [Send(watch.source, message)]

    def grant(self, now: Instant, source: str, number: int, amount: int) -> list[Effect]:
        """The reader can take more: read on from where he is."""
        watch = self._watches.get((source, number))
        if watch is None or amount <= 0:
            return []
        watch.credit = min(watch.credit + amount, CREDIT_MAX)
        if watch.behind is None:
            return []
        return self._advance(now, watch) + self._arm()

    def _advance(self, now: Instant, watch: _Watch) -> list[Effect]:
        """Send what the watch is behind with, as far as its credit goes."""
        effects: list[Effect] = []
        if watch.initial is not None:
            while watch.shown < len(watch.initial):
                if watch.credit <= 0:
                    return effects
                record = watch.initial[watch.shown]
                watch.shown += 1
                effects += self._send(now, watch, "ADDED", record.revision, data_of(watch.filter.row, record))
            watch.initial = None
            watch.previous = watch.start
            if watch.marks_end:
                effects.append(Send(watch.source, StreamBookmark(watch.id, watch.sequence, watch.start, True)))
        assert watch.behind is not None
        try:
            for change in self._changes(watch):
                if watch.credit <= 0 and self._concerns(watch, change):
                    return effects
                effects += self._tell(now, watch, change) if change.record.resource == watch.index[0] else []
                watch.behind = change.revision
        except CompactedError:
            return effects + self._end(watch, Code.OUT_OF_RANGE, statuses.watch_too_old(watch.behind, self._store.floor))
        watch.behind = None
        return effects

    def _concerns(self, watch: _Watch, change: Change) -> bool:
        if change.record.resource != watch.index[0] or change.revision <= watch.start:
            return False
        old = change.old
        return (not change.deleted and watch.filter.matches(change.record)) or (old is not None and watch.filter.matches(old))

    def compacted(self) -> list[Effect]:
        """The floor rose: end the watches whose next change is no longer known."""
        floor = self._store.floor
        for key, revisions in list(self._changed.items()):
            del revisions[: bisect_right(revisions, floor)]
            if not revisions:
                del self._changed[key]
        lost = [watch for watch in self._watches.values() if watch.behind is not None and watch.behind < floor]
        effects: list[Effect] = []
        for watch in lost:
            assert watch.behind is not None
            effects += self._end(watch, Code.OUT_OF_RANGE, statuses.watch_too_old(watch.behind, floor))
        return effects

    # ------------------------------------------------------------ bookmarks and time limits

    def _schedule(self, watch: _Watch, at: Instant) -> None:
        """Look at the watch at ``at``, or when its time is (nearly) over if that is sooner."""
        watch.due = at
        self._queue(watch)

    def _queue(self, watch: _Watch) -> None:
        at = watch.due if watch.bookmarks else None
        if watch.ends is not None and (at is None or watch.ends < at):
            at = watch.ends
        if at is None or (watch.queued is not None and watch.queued <= at):
            return  # an earlier look will ask again
        watch.queued = at
        self._pushed += 1
        heapq.heappush(self._heap, (at, self._pushed, watch.source, watch.id))

    def on_timer(self, now: Instant) -> list[Effect]:
        """Send the bookmarks that are due and end the watches whose time is over."""
        self._armed = None
        effects: list[Effect] = []
        while self._heap and self._heap[0][0] <= now:
            at, _, source, number = heapq.heappop(self._heap)
            watch = self._watches.get((source, number))
            if watch is None or watch.queued != at:
                continue
            watch.queued = None
            if watch.ends is not None and now >= watch.ends:
                if watch.bookmarks:
                    effects += self._bookmark(watch)
                effects += self._end(watch, Code.OK)
                continue
            if watch.due is not None and watch.due <= now:
                if watch.bookmarks:
                    effects += self._bookmark(watch)
                watch.due = on_beat(now + IDLE, IDLE_BEAT)
            self._queue(watch)
        return effects + self._arm()

    def _bookmark(self, watch: _Watch) -> list[Effect]:
        if watch.behind is not None:
            return []  # it is owed events, which say more
        revision = max(self._store.revision, watch.start)
        watch.previous = revision
        return [Send(watch.source, StreamBookmark(watch.id, watch.sequence, revision))]

    def _arm(self) -> list[Effect]:
        at = self._heap[0][0] if self._heap else None
        if at is None or (self._armed is not None and self._armed <= at):
            return []
        self._armed = at
        return [SetTimer(TIMER, at)]


def _as_of(row: Resource, old: Record, revision: int) -> bytes:
    """The last state that the watch could see, at the revision at which it went out of sight."""
    document = copy_of(row, old)
    document["metadata"]["resourceVersion"] = str(revision)
    return msgspec.json.encode(document)


def _check_query(query: dict[str, str]) -> None:
    where, match = "resourceVersionMatch", query.get("resourceVersionMatch", "")
    found: list[FieldError] = []
    if "sendInitialEvents" in query and match != "NotOlderThan":
        found.append(forbidden(where, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match:
        if "sendInitialEvents" not in query:
            found.append(forbidden(where, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
        if match != "NotOlderThan":
            found.append(not_supported(where, match, ("NotOlderThan",)))
        if query.get("continue"):
            found.append(forbidden(where, "resourceVersionMatch is forbidden when continue is provided"))
    if found:
        raise statuses.invalid("meta.k8s.io", "ListOptions", "", found)
