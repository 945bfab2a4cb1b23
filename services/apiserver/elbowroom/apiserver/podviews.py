"""Views of documents in the API server: decoded documents have the right types, so a conversion cannot fail."""

from collections.abc import Mapping
from typing import Any

import msgspec

from elbowroom.api.objects import Pod

_decoder = msgspec.json.Decoder(Pod)


def pod_view(document: Mapping[str, Any]) -> Pod:
    """The parts of a pod document that decisions read. Through JSON, since views hold some parts as raw JSON."""
    return _decoder.decode(msgspec.json.encode(document))
