"""What a refused plain update would have changed, as a unified diff: the tail of RC-58's message.

Upstream prints its internal Go structs there, all fields included; ours prints the documents, which is what the user wrote.
"""

import difflib
from collections.abc import Mapping
from typing import Any

import msgspec

_LINES_MAX = 2000
"""Longer specs get no diff: comparing is quadratic in the worst case, and nobody reads it."""


def spec_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The hunks, each line ended by a newline; empty if the specs are too long to compare."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > _LINES_MAX:
        return ""
    hunks = list(difflib.unified_diff(before, after, n=3, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in hunks)


def _lines(spec: Mapping[str, Any]) -> list[str]:
    encoded = msgspec.json.encode(spec, order="deterministic")
    return msgspec.json.format(encoded, indent=1).decode().splitlines()
