"""The MVCC store: one global revision, the current state, and the log that is the truth of both.

Every write gets the next revision and one row of the log; the current state is what replaying the rows gives. The rows above
the *floor* are all there, so the state at any revision from the floor on can be read (pages of one list are one snapshot) and a
watch can start there; at or below it only the rows of what still stood at the floor are kept. The store itself does no I/O: it
says which keys to make durable (``Persist``), and whoever answers does so after that.

Keys: ``log/REVISION`` (20 digits), a row; ``floor``, the compaction floor. A row is a CRC-32 and a msgpack array of format
version, resource, namespace, name, whether it is a deletion, and the document as JSON bytes (of a deletion: its last state).
"""

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from elbowroom.apiserver.ordered import Ordered
from elbowroom.apiserver.strategy import Document
from elbowroom.machine import Persist

FORMAT = 1
FLOOR_KEY = "floor"
LOG_PREFIX = "log/"
PARSED_MAX = 1024
"""So many of the states written last stay parsed: parsed they take five times their bytes, and most are never looked into again."""

SELDOM_READ = frozenset(("events", "leases.coordination.k8s.io"))
"""What is written often and looked into seldom: it does not stay parsed, in place of what is looked into again soon."""

_encode_row = msgspec.msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder(enc_hook=float).encode  # numbers that remember how they were written
_decode_json: Callable[[bytes], Document] = msgspec.json.Decoder(dict[str, Any]).decode


class StoreError(Exception):
    """What was persisted is not what a store of this version wrote; the text says what to do."""


class CompactedError(Exception):
    """The revision asked for is below the floor."""


class Record:
    """An object at a revision: its bytes, and the parsed document, made when it is first asked for.

    The bytes are written once and shared by every reply, list and watch event. Nobody changes the document.
    """

    __slots__ = ("_document", "data", "name", "namespace", "resource", "revision")

    def __init__(
        self, resource: str, namespace: str, name: str, revision: int, data: bytes, document: Document | None = None
    ) -> None:
        self.resource, self.namespace, self.name, self.revision, self.data = resource, namespace, name, revision, data
        self._document = document

    @property
    def key(self) -> str:
        """``namespace/name`` or ``name``: the order of lists."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def document(self) -> Document:
        """The parsed document; it is shared and must not be changed."""
        if self._document is None:
            self._document = _decode_json(self.data)
        return self._document

    def copy(self) -> Document:
        """A document of one's own."""
        return _decode_json(self.data)

    def release(self) -> None:
        """Forget the parsed document (it can be made again): superseded states are rarely looked into."""
        self._document = None


class Change(msgspec.Struct, frozen=True, eq=False):
    """One write: what stands now and what stood before. For a deletion ``record`` is the object's last state, with the
    deletion's revision."""

    revision: int
    record: Record
    old: Record | None
    deleted: bool


class _Collection:
    """The objects of one resource, in the order of their keys."""

    __slots__ = ("index", "keys", "records")

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.keys = Ordered()
        self.index: dict[str, dict[str, Record]] = {}


class Store:
    """See the module. ``indexes`` maps a resource to a function from document to a word by which ``having`` finds objects."""

    def __init__(self, indexes: Mapping[str, Callable[[Mapping[str, Any]], str]] | None = None) -> None:
        self.revision = 0
        self.floor = 0
        self.past_bytes = 0
        """What the states weigh that stand no more, and are kept for watches and lists that begin in the past."""
        self._indexes = dict(indexes or {})
        self._collections: dict[str, _Collection] = {}
        self._ring: list[Change] = []  # the change of revision r is at r - floor - 1
        self._garbage: list[int] = []
        self._parsed: deque[Record] = deque()
        self._changed: dict[str, int] = {}

    # ------------------------------------------------------------ reading

    def get(self, resource: str, namespace: str, name: str) -> Record | None:
        """The object as it stands."""
        collection = self._collections.get(resource)
        return None if collection is None else collection.records.get(f"{namespace}/{name}" if namespace else name)

    def objects(self, resource: str, namespace: str = "") -> list[Record]:
        """All objects of a resource, or of it in one namespace, in the order of their keys."""
        collection = self._collections.get(resource)
        if collection is None:
            return []
        records = collection.records
        return [records[key] for key in self._keys(collection, namespace)]

    def having(self, resource: str, word: str) -> list[Record]:
        """The objects whose index word is ``word``, in the order of their keys."""
        collection = self._collections.get(resource)
        if collection is None:
            return []
        found = collection.index.get(word, {})
        return [found[key] for key in sorted(found)]

    @property
    def size(self) -> int:
        """How many objects stand."""
        return sum(len(collection.records) for collection in self._collections.values())

    def count(self, resource: str) -> int:
        """How many objects of that resource there are."""
        collection = self._collections.get(resource)
        return 0 if collection is None else len(collection.keys)

    def changed(self, resource: str) -> int:
        """The revision at which an object of that resource was written last; 0 if none ever was. What follows from the objects
        of a resource alone may be remembered for as long as this stays the same."""
        return self._changed.get(resource, 0)

    def resources(self) -> list[str]:
        """The resources that have, or had, objects."""
        return sorted(self._collections)

    def list_at(self, resource: str, namespace: str, revision: int) -> list[Record]:
        """The objects as they stood at ``revision``; ``CompactedError`` if that is below the floor."""
        if revision < self.floor:
            raise CompactedError
        if revision >= self.revision:
            return self.objects(resource, namespace)
        before: dict[str, Record | None] = {}
        for change in self.changes(revision):
            record = change.record
            if record.resource == resource and (not namespace or record.namespace == namespace):
                before.setdefault(record.key, change.old)
        found = [record for record in self.objects(resource, namespace) if record.key not in before]
        found += [record for record in before.values() if record is not None]
        return sorted(found, key=lambda record: record.key)

    def changes(self, revision: int) -> Iterator[Change]:
        """The changes after ``revision``, oldest first; ``CompactedError`` if some are no longer known."""
        if revision < self.floor:
            raise CompactedError
        ring, index = self._ring, revision - self.floor
        while index < len(ring):
            yield ring[index]
            index += 1

    def change(self, revision: int) -> Change:
        """The change of that revision; ``CompactedError`` if it is no longer known."""
        if revision <= self.floor:
            raise CompactedError
        return self._ring[revision - self.floor - 1]

    @staticmethod
    def _keys(collection: _Collection, namespace: str) -> Iterable[str]:
        return collection.keys.between(f"{namespace}/", f"{namespace}0") if namespace else collection.keys  # "0" follows "/"

    # ------------------------------------------------------------ writing

    def put(self, resource: str, namespace: str, name: str, document: Document) -> tuple[Change, Persist] | None:
        """Let ``document`` be the object. It gets its ``resourceVersion``; None, and no revision, if nothing else differs."""
        old = self.get(resource, namespace, name)
        metadata = document["metadata"]
        if old is not None:
            metadata["resourceVersion"] = old.document["metadata"]["resourceVersion"]
            if document == old.document:
                return None
        return self._write(resource, namespace, name, document, old, deleted=False)

    def delete(self, resource: str, namespace: str, name: str) -> tuple[Change, Persist]:
        """Remove an object that stands."""
        old = self.get(resource, namespace, name)
        assert old is not None, f"{resource} {namespace}/{name} is to be deleted but does not stand"
        return self._write(resource, namespace, name, old.copy(), old, deleted=True)

    def _write(
        self, resource: str, namespace: str, name: str, document: Document, old: Record | None, *, deleted: bool
    ) -> tuple[Change, Persist]:
        revision = self.revision + 1
        document["metadata"]["resourceVersion"] = str(revision)
        data = _encode_json(document)
        record = Record(resource, namespace, name, revision, data, document)
        if resource not in SELDOM_READ:  # whoever has told of those releases them
            self._parsed.append(record)
            if len(self._parsed) > PARSED_MAX:
                self._parsed.popleft().release()
        change = Change(revision, record, old, deleted)
        row = _encode_row((FORMAT, resource, namespace, name, deleted, data))
        self._apply(change)
        self._ring.append(change)
        self.past_bytes += _past(change)
        return change, Persist(_row_key(revision), zlib.crc32(row).to_bytes(4, "big") + row, ("A6",))

    def _apply(self, change: Change) -> None:
        record, old = change.record, change.old
        self.revision = self._changed[record.resource] = change.revision
        collection = self._collections.get(record.resource)
        if collection is None:
            collection = self._collections[record.resource] = _Collection()
        key, index = record.key, self._indexes.get(record.resource)
        if old is not None and index is not None:
            collection.index[index(old.document)].pop(key, None)
        if change.deleted:
            del collection.records[key]
            collection.keys.remove(key)
            return
        collection.records[key] = record
        if old is None:
            collection.keys.add(key)
        if index is not None:
            collection.index.setdefault(index(record.document), {})[key] = record

    # ------------------------------------------------------------ compaction

    def compact(self, floor: int) -> Persist | None:
        """Raise the floor to ``floor`` (at most the current revision); rows that it makes superfluous go by ``drop``."""
        floor = min(floor, self.revision)
        if floor <= self.floor:
            return None
        passed = self._ring[: floor - self.floor]
        del self._ring[: floor - self.floor]
        for change in passed:
            self.past_bytes -= _past(change)
            if change.old is not None:
                self._garbage.append(change.old.revision)
            if change.deleted:
                self._garbage.append(change.revision)
        self.floor = floor
        return Persist(FLOOR_KEY, b"%d" % floor)

    def drop(self, at_most: int) -> list[Persist]:
        """Removals of up to ``at_most`` superfluous rows; an empty list when none is left."""
        rows = [Persist(_row_key(revision), None) for revision in self._garbage[:at_most]]
        del self._garbage[:at_most]
        return rows

    # ------------------------------------------------------------ boot

    def replay(self, disk: Mapping[str, bytes]) -> None:
        """Become what the rows say; ``StoreError`` if they are damaged or of another format."""
        try:
            self.floor = int(disk.get(FLOOR_KEY, b"0"))
        except ValueError as why:
            raise StoreError("the store's compaction floor is unreadable: restore the data directory from a copy") from why
        rows = sorted(key for key in disk if key.startswith(LOG_PREFIX))
        above = 0
        for key in rows:
            revision = int(key[len(LOG_PREFIX) :])
            resource, namespace, name, deleted, data = _row(key, disk[key])
            record = Record(resource, namespace, name, revision, data)
            old = self.get(resource, namespace, name)
            if deleted and old is None and revision > self.floor:
                raise StoreError(f"the log deletes {resource} {record.key} at {revision}, which does not stand: rows are missing")
            change = Change(revision, record, old, deleted)
            if revision > self.floor:
                above += 1
                if revision != self.floor + above:
                    raise StoreError(
                        f"the log has no row for revision {self.floor + above}: restore the data directory from a copy"
                    )
                self._ring.append(change)
                self.past_bytes += _past(change)
            else:
                if old is not None:
                    self._garbage.append(old.revision)
                if deleted:
                    self._garbage.append(revision)
            if not (deleted and old is None):
                self._apply(change)
            if old is not None:
                old.release()
        self.revision = self.floor + above


def _past(change: Change) -> int:
    """How many bytes stay in memory for this change alone."""
    return (0 if change.old is None else len(change.old.data)) + (len(change.record.data) if change.deleted else 0)


def _row_key(revision: int) -> str:
    return f"{LOG_PREFIX}{revision:020d}"


def _row(key: str, raw: bytes) -> tuple[str, str, str, bool, bytes]:
    body = raw[4:]
    if len(raw) < 5 or zlib.crc32(body) != int.from_bytes(raw[:4], "big"):
        raise StoreError(f"row {key} of the log is damaged (checksum): restore the data directory from a copy")
    row = msgspec.msgpack.decode(body)
    if row[0] != FORMAT:
        raise StoreError(f"row {key} of the log has format {row[0]}, this version reads {FORMAT}: use the version that wrote it")
    _, resource, namespace, name, deleted, data = row
    return resource, namespace, name, deleted, data


class StoreReader:
    """The store as strategies and admission see it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, resource: str, namespace: str, name: str) -> Document | None:
        record = self._store.get(resource, namespace, name)
        return None if record is None else record.document

    def list(self, resource: str, namespace: str = "") -> Iterable[Document]:
        return [record.document for record in self._store.objects(resource, namespace)]
