"""What the history is told of a write: enough for the checkers, and no more."""

from collections.abc import Mapping
from typing import Any

from elbowroom.apiserver.store import Change
from elbowroom.machine import Note


def commit_note(change: Change, verb: str, subresource: str, user: str, base: int) -> Note:
    """The ``commit`` record of a change. ``base`` is the revision that the writer named, 0 if none."""
    record, old = change.record, change.old
    document = record.document
    fields: dict[str, Any] = {
        "rev": change.revision,
        "key": f"{record.resource}/{record.key}",
        "resource": record.resource,
        "uid": document["metadata"].get("uid", ""),
        "verb": verb,
        "sub": subresource,
        "user": user,
        "base": base,
        "gone": change.deleted,
    }
    if record.resource == "pods":
        fields["obj"] = _pod(document)
        fields["old_node"] = "" if old is None else old.document["spec"].get("nodeName", "")
    else:
        fields["obj"] = {"generation": document["metadata"].get("generation", 0), **_of_kind(record.resource, document)}
    return Note("commit", fields)


def _of_kind(resource: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Of an event whom and what it tells and how often; of a quota what it allows, unless it is for some pods only; of a LimitRange
    its bounds."""
    if resource == "events":
        about = document.get("involvedObject") or {}
        series = document.get("series") or {}
        times = max(document.get("count") or 1, series.get("count") or 1)
        return {"about": about.get("uid", ""), "reason": document.get("reason", ""), "count": times}
    if resource == "resourcequotas":
        spec = document.get("spec") or {}
        scoped = spec.get("scopes") or spec.get("scopeSelector")
        return {"hard": {} if scoped else spec.get("hard") or {}}
    if resource == "limitranges":
        return {"ranges": (document.get("spec") or {}).get("limits") or []}
    return {}


_RESIZE = ("PodResizePending", "PodResizeInProgress")
_HELD_BACK = "PodResizePreemptionDisabled"
_NONE: Mapping[str, Any] = {}


def _pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    """What of a pod the checkers need. ``figures`` are what its kubelet reports, ``level`` what it reports of the pod as a whole,
    ``ids`` its containers' restarts and ids, ``since`` when resize conditions came, ``asked`` its own resources, ``ending`` the
    init containers that end; ``plain``: the spec has nothing but containers that counts."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    conditions = {c.get("type"): c for c in reversed(status.get("conditions", ()))}  # the first of each type
    resize = [c for c in status.get("conditions", ()) if c.get("type") in _RESIZE]
    pending = conditions.get("PodResizePending", _NONE)
    return {
        "generation": meta.get("generation", 0),
        "node": spec.get("nodeName", ""),
        "phase": status.get("phase", ""),
        "nominated": status.get("nominatedNodeName", ""),
        "scheduled": conditions.get("PodScheduled", _NONE).get("status", ""),
        "deleting": meta.get("deletionTimestamp") is not None,
        "grace": meta.get("deletionGracePeriodSeconds"),
        "pending": pending.get("reason", ""),
        "held_back": _HELD_BACK in conditions
        and any(c.get("type") == _HELD_BACK and c.get("status") == "True" for c in status.get("conditions", ())),
        "plain": not (spec.get("initContainers") or spec.get("resources") or spec.get("overhead")),
        "figures": {
            c["name"]: {"allocated": c.get("allocatedResources"), "actual": (c.get("resources") or {}).get("requests")}
            for c in status.get("containerStatuses", ())
        },
        "level": {"allocated": status.get("allocatedResources"), "actual": (status.get("resources") or {}).get("requests")},
        "qos": status.get("qosClass", ""),
        "resize": {c["type"]: (c.get("reason", ""), c.get("observedGeneration", 0)) for c in resize},
        "since": {c["type"]: c.get("lastTransitionTime", "") for c in resize},
        "ids": {
            c["name"]: (c.get("restartCount", 0), c.get("containerID", ""))
            for c in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
        },
        "asked": spec.get("resources"),
        "ending": [c["name"] for c in spec.get("initContainers", ()) if c.get("restartPolicy") != "Always"],
        "containers": {c["name"]: c.get("resources", {}) for c in (*spec.get("initContainers", ()), *spec.get("containers", ()))},
    }
