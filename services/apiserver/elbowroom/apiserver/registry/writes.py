"""The changes that one request makes."""

from collections.abc import Sequence
from dataclasses import dataclass

from elbowroom.apiserver.store import Change, Record, Store
from elbowroom.apiserver.strategy import Document
from elbowroom.machine import Persist
from elbowroom.wire import ApiResponse


@dataclass(frozen=True, slots=True)
class Served:
    """An answer, the changes that the request made (in the order of their revisions), and how to make them durable."""

    response: ApiResponse
    changes: Sequence[Change] = ()
    writes: Sequence[Persist] = ()
    base: int = 0
    """The revision that an update named as the one it is based on; 0 if it named none."""


class Write:
    """The changes of one request."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.changes: list[Change] = []
        self.writes: list[Persist] = []
        self.base = 0

    def put(self, resource: str, namespace: str, name: str, document: Document) -> Record:
        """The record that stands afterwards: the new one, or the old one if nothing differs."""
        done = self._store.put(resource, namespace, name, document)
        if done is None:
            record = self._store.get(resource, namespace, name)
            assert record is not None, "what equals the new document stands"
            return record
        return self._note(*done)

    def delete(self, resource: str, namespace: str, name: str) -> Record:
        return self._note(*self._store.delete(resource, namespace, name))

    def _note(self, change: Change, persist: Persist) -> Record:
        self.changes.append(change)
        self.writes.append(persist)
        return change.record
