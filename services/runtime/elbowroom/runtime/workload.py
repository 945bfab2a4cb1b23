"""How a container behaves: what ``elbowroom.dev/workload`` says about it, over the pause image's habits.

Pause starts at once, uses next to nothing and ends with code 0 when it is asked to. An ordinary init container ends at once
by itself. What the annotation says beyond that is told below, field by field; a value of the wrong form counts as not said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from elbowroom.api import quantity

IDLE_MEMORY = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One container's behaviour; times in seconds."""

    memory_bytes: int = IDLE_MEMORY
    memory_fraction: float | None = None
    """Of the memory limit; it counts instead of ``memory_bytes`` where there is a limit."""
    cpu_milli: int = 1
    start_seconds: float = 0.0
    stop_seconds: float | None = 0.0
    """From SIGTERM to the end; None ignores SIGTERM."""
    exit_after_seconds: float | None = None
    exit_code: int = 0
    resize_seconds: float = 0.0
    resize_failures: int | None = 0
    """How many resource updates fail at first; None: all."""

    def memory_usage(self, limit: int) -> int:
        """Bytes used under a memory limit (-1: none)."""
        if self.memory_fraction is not None and limit >= 0:
            return int(limit * self.memory_fraction)
        return self.memory_bytes


def behaviour_of(workload: str, container: str, *, is_init: bool) -> Behaviour:
    """What the annotation ``workload`` (JSON, container name -> fields) makes of that container."""
    said = _said(workload, container)
    found = Behaviour(exit_after_seconds=0.0 if is_init else None)
    match said.get("memoryUsage"):
        case str(text) if text.endswith("%"):
            fraction = _number(text[:-1])
            found = replace(found, memory_fraction=None if fraction is None else fraction / 100)
        case str() | int() | float() as amount:
            found = replace(found, memory_bytes=_quantity(amount, quantity.value_of, IDLE_MEMORY))
    if "cpuUsage" in said:
        found = replace(found, cpu_milli=_quantity(said["cpuUsage"], quantity.milli_of, found.cpu_milli))
    if (start := _number(said.get("startSeconds"))) is not None:
        found = replace(found, start_seconds=start)
    if "stopSeconds" in said:
        found = replace(found, stop_seconds=_number(said["stopSeconds"]))
    if "exitAfterSeconds" in said:
        found = replace(found, exit_after_seconds=_number(said["exitAfterSeconds"]))
    if (code := _number(said.get("exitCode"))) is not None:
        found = replace(found, exit_code=int(code) & 255)
    if (resize := _number(said.get("resizeSeconds"))) is not None:
        found = replace(found, resize_seconds=resize)
    if said.get("resizeError") == "always":
        found = replace(found, resize_failures=None)
    elif (count := _number(said.get("resizeError"))) is not None:
        found = replace(found, resize_failures=int(count))
    return found


def is_workload(text: str) -> bool:
    """Is it empty or a JSON object of objects?"""
    if not text:
        return True
    try:
        msgspec.json.decode(text.encode(), type=dict[str, dict[str, Any]])
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _said(workload: str, container: str) -> Mapping[str, Any]:
    if not workload or not is_workload(workload):
        return {}
    said: dict[str, dict[str, Any]] = msgspec.json.decode(workload.encode())
    return said.get(container, {})


def _number(value: Any) -> float | None:
    """A number that is not negative, or None."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number < 1e9 else None


def _quantity(value: Any, read: Any, otherwise: int) -> int:
    try:
        return max(0, int(read(str(value))))
    except (ValueError, OverflowError):
        return otherwise
