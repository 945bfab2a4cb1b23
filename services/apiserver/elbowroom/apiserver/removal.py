"""What a deletion does to an object: nothing yet, a mark, or its end.

Pods end in two steps: the API server marks them with a time, whoever runs them stops them and deletes them for good. Pods that
nobody runs (unscheduled or ended ones) and a grace of 0 end at once. A later deletion may shorten the time, never lengthen it.
Finalizers keep any object, marked, until their owners have taken them away.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elbowroom.api.clock import as_time, parse_time
from elbowroom.apiserver.intake import DeleteOptions
from elbowroom.apiserver.strategy import Document
from elbowroom.machine import Instant, seconds


@dataclass(frozen=True, slots=True)
class Removal:
    """``marked`` is the object as it is written first (None: not written), ``ends`` whether it is removed then."""

    marked: Document | None
    ends: bool


ALREADY = Removal(None, False)
"""It is on its way; this deletion changes nothing."""


def decide(document: Document, options: DeleteOptions, now: Instant, *, graceful: bool) -> Removal:
    """What deleting ``document`` (a copy of the caller's, which may be changed) means."""
    metadata = document["metadata"]
    before = dict(metadata)
    marks = False
    if graceful:
        marked = _mark_gracefully(document, metadata, options, now)
        if marked is None:
            return ALREADY
        marks = marked
    _keep_finalizers(metadata, options)
    if metadata.get("finalizers"):
        if not marks:
            metadata["deletionGracePeriodSeconds"] = 0
            metadata.setdefault("deletionTimestamp", as_time(now))
            if "deletionTimestamp" not in before and metadata.get("generation"):
                metadata["generation"] += 1
        return Removal(document if metadata != before else None, False)
    if not marks:
        return Removal(document if metadata != before else None, True)
    return Removal(document, metadata["deletionGracePeriodSeconds"] <= 0)


def _mark_gracefully(document: Mapping[str, Any], metadata: Document, options: DeleteOptions, now: Instant) -> bool | None:
    """Did the mark change? None: the object has a mark that stays as it is."""
    deleted_at, had = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if deleted_at is None:
        grace = _grace(document, options)
        metadata["deletionTimestamp"] = as_time(now + seconds(grace))
        metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            metadata["generation"] += 1
        return True
    if had is None or had <= 0:
        return False  # marked by a life that died before it had removed the object: this deletion ends it
    if options.grace_seconds is None or options.grace_seconds >= had:
        return None
    grace = max(options.grace_seconds, 0) if options.grace_seconds != -1 else 1
    metadata["deletionTimestamp"] = as_time(parse_time(deleted_at) + seconds(grace - had))
    metadata["deletionGracePeriodSeconds"] = grace
    return True


def _grace(pod: Mapping[str, Any], options: DeleteOptions) -> int:
    spec, phase = pod.get("spec", {}), pod.get("status", {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    grace = options.grace_seconds if options.grace_seconds is not None else spec.get("terminationGracePeriodSeconds", 0)
    return 1 if grace < 0 else int(grace)


_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"


def _keep_finalizers(metadata: Document, options: DeleteOptions) -> None:
    """The garbage collector's finalizers as the options want them; where they say nothing, those that are there stay."""
    wanted: str | None
    match options.propagation:
        case "Orphan":
            wanted = _ORPHAN
        case "Foreground":
            wanted = _FOREGROUND
        case "Background":
            wanted = None
        case _ if options.orphan is not None:
            wanted = _ORPHAN if options.orphan else None
        case _:
            return
    kept = [name for name in metadata.get("finalizers", ()) if name not in (_ORPHAN, _FOREGROUND) or name == wanted]
    if wanted is not None and wanted not in kept:
        kept.append(wanted)
    if kept:
        metadata["finalizers"] = kept
    else:
        metadata.pop("finalizers", None)


def ends_by_update(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Does this update take the last thing away that kept a deleted object?"""
    metadata = old["metadata"]
    if new["metadata"].get("finalizers") or metadata.get("deletionTimestamp") is None:
        return False
    if new.get("kind") == "Namespace" and new.get("spec", {}).get("finalizers"):
        return False
    return (metadata.get("deletionGracePeriodSeconds") or 0) == 0
