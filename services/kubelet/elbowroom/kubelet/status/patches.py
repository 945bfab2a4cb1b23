"""What brings the API server's status of a pod to the kubelet's: a patch, for a difference that means something (RC-138a)."""

from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.kubelet.status.conditions import (
    CONTAINERS_READY,
    DISRUPTED,
    IN_PROGRESS,
    INITIALIZED,
    PENDING,
    PREEMPTION_DISABLED,
    READY,
    READY_TO_START,
    SCHEDULED,
)

_BY_KUBELET = (PENDING, IN_PROGRESS, READY_TO_START, INITIALIZED, READY, CONTAINERS_READY, SCHEDULED)


def owned_types(*, preemption_disabled: bool, evicted: bool) -> tuple[str, ...]:
    """The conditions that are the kubelet's to write and to remove."""
    extra = (PREEMPTION_DISABLED,) if preemption_disabled else ()
    return (*_BY_KUBELET, *extra, *((DISRUPTED,) if evicted else ()))


def differs(wanted: Mapping[str, Any], known: Mapping[str, Any], owned: Sequence[str]) -> bool:
    """RC-138a: is there a difference that is worth a patch?"""
    for key, value in wanted.items():
        before = known.get(key)
        if before is not None and value == before:
            continue
        if key == "conditions":
            if _meaning(value, owned) != _meaning(before or (), owned):
                return True
        elif (before or None) != (value or None) or (value == {} and key not in known):
            return True
    return False


def _meaning(conditions: Sequence[Mapping[str, Any]], owned: Sequence[str]) -> list[tuple[Any, ...]]:
    return sorted(
        (c["type"], c.get("status"), c.get("reason") or "", c.get("message") or "") for c in conditions if c["type"] in owned
    )


def patch(uid: str, wanted: Mapping[str, Any], known: Mapping[str, Any], owned: Sequence[str]) -> dict[str, Any]:
    """The strategic merge patch from ``known`` to ``wanted`` where the kubelet owns it; the uid guards against a namesake."""
    status: dict[str, Any] = {}
    for key, value in wanted.items():
        if key == "conditions":
            status |= _condition_patch(value, known.get(key) or (), owned)
        elif known.get(key) != value and (value is not None or key in known):
            status[key] = value
    return {"metadata": {"uid": uid}, "status": status}


def joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A patch that does what either does; both are towards the same status."""
    conditions = "conditions"
    made = {**one["status"], **other["status"]}
    if conditions in one["status"] and conditions in other["status"]:
        by_type = {c["type"]: c for c in one["status"][conditions]}
        for condition in other["status"][conditions]:
            by_type[condition["type"]] = {**by_type.get(condition["type"], {}), **condition}
        places = {place["type"]: at for at, place in enumerate(made[f"$setElementOrder/{conditions}"])}
        made[conditions] = sorted(by_type.values(), key=lambda c: places.get(c["type"], len(places)))
    return {**one, "status": made}


def _condition_patch(
    wanted: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]], owned: Sequence[str]
) -> dict[str, Any]:
    before = {c["type"]: c for c in known}
    changed = [dict(c) for c in wanted if not _equal(c, before.get(c["type"]))]
    for condition in changed:
        for word in ("reason", "message"):
            if word not in condition and word in before.get(condition["type"], {}):
                condition[word] = None
    kept = [c["type"] for c in known if c["type"] not in owned]
    names = [c["type"] for c in wanted]
    gone = [{"$patch": "delete", "type": c["type"]} for c in known if c["type"] in owned and c["type"] not in names]
    if not changed and not gone:
        return {}
    order = [{"type": name} for name in [*kept, *names]]
    return {"conditions": [*changed, *gone], "$setElementOrder/conditions": order}


def _equal(wanted: Mapping[str, Any], known: Mapping[str, Any] | None) -> bool:
    return wanted == known or (
        known is not None
        and all((known.get(key) or None) == (value or None) for key, value in wanted.items())
        and not (set(known) & {"reason", "message"} - set(wanted))
    )


def owned_part(status: Mapping[str, Any], keys: Sequence[str], owned: Sequence[str]) -> dict[str, Any]:
    """What of a status the kubelet wrote or would write: to see whether somebody else has been at it."""
    found: dict[str, Any] = {key: status[key] for key in keys if key in status and key != "conditions"}
    found["conditions"] = [c for c in status.get("conditions") or () if c.get("type") in owned]
    return found
