"""The envelope: calls and streams."""

from enum import IntEnum

import msgspec


class Code(IntEnum):
    """gRPC's status codes, by its numbers."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16

    @property
    def definite(self) -> bool:
        """True when the thing asked for certainly did not and will not happen (or, for OK, certainly did)."""
        return self not in _INDEFINITE


_INDEFINITE = frozenset({Code.CANCELLED, Code.UNKNOWN, Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE, Code.INTERNAL, Code.DATA_LOSS})


class Call(msgspec.Struct, frozen=True, array_like=True, tag="c"):
    """Ask a peer for something. ``id`` is the caller's own; the answer is one ``Reply`` or, for a stream, events and an end."""

    id: int
    method: str
    body: bytes = b""
    deadline: int = 0
    """When the caller stops caring (ns since the epoch); 0: never."""
    epoch: int = 0
    """The caller's incarnation; a peer may refuse calls of an older one."""
    credit: int = 0
    """For a stream: how many events the caller can take before granting more."""


class Reply(msgspec.Struct, frozen=True, array_like=True, tag="r"):
    """The answer to a call."""

    id: int
    code: Code = Code.OK
    body: bytes = b""
    message: str = ""


class StreamEvent(msgspec.Struct, frozen=True, array_like=True, tag="e"):
    """One change (ADDED, MODIFIED, DELETED) of an object. ``object`` is the document as JSON bytes.

    ``sequence`` counts the events of this stream from 1; ``previous`` is the revision of the stream's event (or bookmark)
    before this one, so a reader knows that nothing is missing between.
    """

    id: int
    sequence: int
    revision: int
    previous: int
    change: str
    object: bytes


class StreamBookmark(msgspec.Struct, frozen=True, array_like=True, tag="b"):
    """All events up to ``revision`` have been sent, ``sequence`` of them; it reveals a lost tail."""

    id: int
    sequence: int
    revision: int
    initial_end: bool = False
    """The bookmark that ends the initial events (``k8s.io/initial-events-end``)."""


class StreamEnd(msgspec.Struct, frozen=True, array_like=True, tag="x"):
    """The server ended the stream; OUT_OF_RANGE is 410 Gone: list again. ``body`` may hold a Status as JSON."""

    id: int
    code: Code
    body: bytes = b""
    message: str = ""


class StreamCredit(msgspec.Struct, frozen=True, array_like=True, tag="g"):
    """The reader grants room for so many more events."""

    id: int
    amount: int


class StreamCancel(msgspec.Struct, frozen=True, array_like=True, tag="q"):
    """The caller no longer wants the call or stream; nothing answers."""

    id: int


Message = Call | Reply | StreamEvent | StreamBookmark | StreamEnd | StreamCredit | StreamCancel
