"""Views of documents in the API server: decoded documents have the right types, so a conversion cannot fail."""

from collections.abc import Mapping
from typing import Any

import msgspec

from elbowroom.api.objects import Pod

_decoder = msgspec.json.Decoder(Pod)


def pod_view(document: Mapping[str, Any]) -> Pod:
    """The parts of a pod document that decisions read. Through JSON, since views hold some parts as raw JSON."""
    return read_pod(msgspec.json.encode(document))


def read_pod(raw: bytes) -> Pod:
    """The same of one that is encoded."""
    return _decoder.decode(raw)
