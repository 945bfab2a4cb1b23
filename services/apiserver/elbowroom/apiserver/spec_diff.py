"""What a refused update would have changed, as a unified diff: the tail of RC-58's message.

Both sides are upstream's structs (``internals``) as Go's JSON encoder writes them, a space of indentation a level.
"""

import difflib
import json
from collections.abc import Mapping
from typing import Any

from elbowroom.apiserver.internals import internal

_LINES_MAX = 6000
"""Longer specs get no diff: comparing is quadratic in the worst case, and nobody reads it."""
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def spec_diff(old: Mapping[str, Any], new: Mapping[str, Any], struct: str = "PodSpec") -> str:
    """The hunks, each line ended by a newline; empty if the specs are too long to compare."""
    before, after = _lines(old, struct), _lines(new, struct)
    if max(len(before), len(after)) > _LINES_MAX:
        return ""
    hunks = list(difflib.unified_diff(before, after, n=3, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in hunks)


def _lines(document: Mapping[str, Any], struct: str) -> list[str]:
    return json.dumps(internal(struct, document), indent=1, ensure_ascii=False).translate(_ESCAPES).split("\n")
