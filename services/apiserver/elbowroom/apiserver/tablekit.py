"""What all Table rows are made of: times, names, selectors, in upstream's short forms."""

from collections.abc import Mapping
from typing import Any

from elbowroom.api.clock import parse_time
from elbowroom.machine import Instant

Document = Mapping[str, Any]
Cells = list[Any]

NONE = "<none>"
UNKNOWN = "<unknown>"

# ---------------------------------------------------------------- time


def human_duration(nanoseconds: int) -> str:
    """A span as upstream shortens it: ``119s``, ``2m``, ``9m59s``, ``3h12m``, ``2d3h``, ``5y``."""
    seconds = nanoseconds // 1_000_000_000 if nanoseconds >= 0 else -(-nanoseconds // 1_000_000_000)
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, unit: str, small: int, subunit: str) -> str:
    return f"{large}{unit}{small}{subunit}" if small else f"{large}{unit}"


def instant(timestamp: Any) -> int | None:
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        return parse_time(timestamp)
    except ValueError:
        return None


def since(now: Instant, timestamp: Any) -> str:
    at = instant(timestamp)
    return UNKNOWN if at is None else human_duration(now - at)


def age(now: Instant, document: Document) -> str:
    return since(now, document.get("metadata", {}).get("creationTimestamp"))


def name_of(document: Document) -> str:
    found: str = document.get("metadata", {}).get("name", "")
    return found


def part(document: Document, key: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = document.get(key) or {}
    return found


def containers(document: Document) -> tuple[str, str]:
    listed = part(part(document, "spec").get("template") or {}, "spec").get("containers") or ()
    return ",".join(c.get("name", "") for c in listed), ",".join(c.get("image", "") for c in listed)


def format_selector(selector: Any) -> str:
    """A LabelSelector in one line: ``app=web,tier in (a,b)``."""
    if not isinstance(selector, Mapping):
        return NONE
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for requirement in selector.get("matchExpressions") or ():
        key, values = requirement.get("key", ""), ",".join(sorted(requirement.get("values") or ()))
        match requirement.get("operator"):
            case "In":
                terms.append(f"{key} in ({values})")
            case "NotIn":
                terms.append(f"{key} notin ({values})")
            case "Exists":
                terms.append(key)
            case "DoesNotExist":
                terms.append(f"!{key}")
    return ",".join(sorted(terms)) or NONE


def span(now: Instant, start: Any, end: Any) -> str:
    """How long something has gone on, or went on; empty before it began."""
    began, ended = instant(start), instant(end)
    return "" if began is None else human_duration((now if ended is None else ended) - began)
