"""What a namespace's LimitRanges say of the values that are set while they are there."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from elbowroom.api import quantity
from elbowroom.history.reading import PARTS, amount_of, commits_by_life
from elbowroom.history.records import History, Record, Violation

LARGEST = (1 << 63) - 1
"""Amounts end there. Upstream reads what is larger as nothing, so nobody judges it."""
TOLERANCE = 1 + 1e-9
"""Of ratios, which are floating-point numbers upstream."""

Amounts = Mapping[str, Mapping[str, str]]
"""``requests`` and ``limits`` as written: resource -> quantity."""


def changes_keep_to_limit_ranges(history: History) -> Iterator[Violation]:
    """I-47: a value that is set anew, with a pod or by a resize, is within the LimitRanges that the pod's namespace has then; what
    stays as it was is not judged, nor is a pod that is being deleted."""
    ranges: dict[str, dict[str, Record]] = defaultdict(dict)
    pods: dict[str, Record] = {}
    last = 0
    for life, record in commits_by_life(history):
        if life != last:
            last = life
            ranges.clear()
            pods.clear()
        facts, namespace = record.get("obj") or {}, record["key"].split("/")[1]
        if record["resource"] == "limitranges":
            if record.get("gone"):
                ranges[namespace].pop(record["key"], None)
            else:
                ranges[namespace][record["key"]] = record
        if record["resource"] != "pods" or "containers" not in facts:
            continue
        before = pods.get(record["uid"])
        pods[record["uid"]] = record
        if before is not None and before["obj"].get("deleting"):
            continue
        if before is None and record["verb"] != "create":
            continue  # it was there before the history began
        for limit_range in ranges[namespace].values():
            was = {} if before is None else before["obj"]["containers"]
            for limit in limit_range["obj"].get("ranges", ()):  # an older history does not tell
                for what in _broken(limit, was, facts):
                    yield Violation("I-47", f"{record['key']}: {what} of {limit_range['key']}", (limit_range, record))


def _broken(limit: Mapping[str, Any], was: Mapping[str, Amounts], facts: Mapping[str, Any]) -> Iterator[str]:
    """What of the changed values is out of bounds, in words."""
    now: Mapping[str, Amounts] = facts["containers"]
    if limit.get("type") == "Container":
        for name, own in now.items():
            for resource in _resources(limit):
                for what in _out_of_bounds(limit, resource, _pair(was.get(name) or {}, resource), _pair(own, resource)):
                    yield f"container {name}'s {what}"
    elif limit.get("type") == "Pod" and facts.get("plain"):  # else more than the sum of its containers counts
        for resource in _resources(limit):
            for what in _out_of_bounds(limit, resource, _sums(was, resource), _sums(now, resource)):
                yield f"the pod's {what}"


def _resources(limit: Mapping[str, Any]) -> list[str]:
    return sorted({resource for bound in ("min", "max", "maxLimitRequestRatio") for resource in limit.get(bound) or ()})


def _pair(own: Amounts, resource: str) -> dict[str, int]:
    """Request and limit of one resource, where they are said."""
    return {part: amount_of(resource, own[part][resource]) for part in PARTS if resource in (own.get(part) or {})}


def _sums(containers: Mapping[str, Amounts], resource: str) -> dict[str, int]:
    """The same of a pod: its limit is the sum if all containers have one."""
    found = [_pair(own, resource) for own in containers.values()]
    return {part: sum(one[part] for one in found) for part in PARTS if found and all(part in one for one in found)}


def _out_of_bounds(limit: Mapping[str, Any], resource: str, was: Mapping[str, int], now: Mapping[str, int]) -> Iterator[str]:
    changed = [part for part in PARTS if part in now and now[part] != was.get(part)]
    if not changed or max(now.values()) >= LARGEST:
        return
    for bound, is_broken in (("min", int.__lt__), ("max", int.__gt__)):
        text = (limit.get(bound) or {}).get(resource)
        if text is not None:
            for part in changed:
                if is_broken(now[part], amount_of(resource, text)):
                    yield f"{resource} {part} are {now[part]}, beyond the {bound} {text}"
    ratio = (limit.get("maxLimitRequestRatio") or {}).get(resource)
    if ratio is None or not all(part in now for part in PARTS):
        return
    if now["limits"] * 1000 > quantity.milli_of(ratio) * now["requests"] * TOLERANCE:
        yield f"{resource} limits are more than {ratio} times its requests"
