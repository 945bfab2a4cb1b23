"""The JSONPath of printer columns, selectable fields and scales: names, indices, stars, unions and filters of equality.

``.status.conditions[?(@.type=="Ready")].status`` is about as far as definitions go.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.(?P<name>(?:[^.\[\\]|\\.)+)
      | \[(?P<index>-?\d+)\]
      | \[(?P<star>\*)\]
      | \[(?P<quote>['"])(?P<key>(?:[^'"\\]|\\.)*)(?P=quote)\]
      | \[\?\(\s*@(?P<left>[^=!<>\s]*)\s*(?P<op>==|!=)\s*(?P<right>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]
      | \.$""",
    re.VERBOSE,
)


class JsonPathError(ValueError):
    """A path that nobody understands."""


@lru_cache(maxsize=512)
def steps(path: str) -> tuple[dict[str, str], ...]:
    """The steps of a path; ``JsonPathError``."""
    found: list[dict[str, str]] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise JsonPathError(f"unrecognized character in action: {path[at:]!r}")
        found.append({name: text for name, text in match.groupdict().items() if text is not None})
        at = match.end()
    return tuple(found)


def look(document: Any, path: str) -> list[Any]:
    """What stands at ``path``: nothing, one value, or (behind a star or a filter) several."""
    found: list[Any] = [document]
    for step in steps(path):
        found = [inner for value in found for inner in _taken(value, step)]
    return found


def _taken(value: Any, step: dict[str, str]) -> Sequence[Any]:
    if "index" in step:
        place = int(step["index"])
        return [value[place]] if isinstance(value, list) and -len(value) <= place < len(value) else []
    if "star" in step or step.get("name") == "*":
        return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if "op" in step:
        return [item for item in value if _matches(item, step)] if isinstance(value, list) else []
    name = re.sub(r"\\(.)", r"\1", step.get("name", step.get("key", "")))
    if not name:
        return [value]
    return [value[name]] if isinstance(value, dict) and name in value else []


def _matches(item: Any, step: dict[str, str]) -> bool:
    found = look(item, step["left"])
    right = step["right"]
    wanted: Any = right[1:-1] if right[0] in "\"'" else {"true": True, "false": False}.get(right, right)
    equal = any(one == wanted or (not isinstance(one, str | bool) and str(one) == str(wanted)) for one in found)
    return bool(found) and equal == (step["op"] == "==")
