"""How one kind looks in several versions or groups: what is stored once is shown in the form that a request names."""

from typing import Protocol

from elbowroom.apiserver.store import Record
from elbowroom.apiserver.strategy import Document


class Face(Protocol):
    """Between the form that is stored and one that is shown."""

    def document(self, record: Record) -> Document:
        """The object as it is shown; the caller's own."""
        ...

    def data(self, record: Record) -> bytes:
        """The same as bytes, which begin with kind and apiVersion."""
        ...

    def stored(self, document: Document) -> Document:
        """A document that was shown as it is stored."""
        ...
