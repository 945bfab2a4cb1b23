"""The words that processes exchange, and their bytes.

One envelope for all: unary calls with a deadline and a status code that says whether the thing *certainly did not*
happen, and server streams with credit, sequence numbers and the previous revision. Documents (Kubernetes objects) travel
inside as the JSON bytes in which the store keeps them: encoded once per revision, never again for a thousand watchers.
"""

from elbowroom.wire.api import ApiRequest, ApiResponse, Impersonation
from elbowroom.wire.codec import MalformedError, decode, decode_value, encode, encode_value
from elbowroom.wire.messages import (
    Call,
    Code,
    Message,
    Reply,
    StreamBookmark,
    StreamCancel,
    StreamCredit,
    StreamEnd,
    StreamEvent,
)

__all__ = [
    "ApiRequest",
    "ApiResponse",
    "Call",
    "Code",
    "Impersonation",
    "MalformedError",
    "Message",
    "Reply",
    "StreamBookmark",
    "StreamCancel",
    "StreamCredit",
    "StreamEnd",
    "StreamEvent",
    "decode",
    "decode_value",
    "encode",
    "encode_value",
]
