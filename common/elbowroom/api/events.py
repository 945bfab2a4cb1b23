"""Event documents as upstream's two recorders write them.

The kubelet's are core/v1 with ``source`` and ``count``; the scheduler's are events.k8s.io ones that core/v1 shows without
either (as a real v1.36 shows them). Each call makes a document for ``events`` in ``namespace_of(regarding)``.
"""

import random
from collections.abc import Mapping
from typing import Any

from elbowroom.api.clock import as_micro_time, as_time


def reference(kind: str, metadata: Any, *, api_version: str = "v1", field_path: str = "") -> dict[str, str]:
    """An ObjectReference to the object with that ``ObjectMeta``."""
    found = {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata.name,
        "namespace": metadata.namespace,
        "resourceVersion": metadata.resource_version,
        "uid": metadata.uid,
        "fieldPath": field_path,
    }
    return {key: value for key, value in found.items() if value}


NAME_NS = 1 << 16
"""Events whose times differ by so much are in order by their names."""


def namespace_of(regarding: Mapping[str, str]) -> str:
    """Where an event about that object lives: the object's namespace, or ``default`` for cluster-scoped ones."""
    return regarding.get("namespace") or "default"


def _name(now: int, rng: random.Random, regarding: Mapping[str, str]) -> str:
    """Upstream's names end in the time in ns, so that lists, which go by name, tell events in order: those of one second have no
    other. The last digits are chance here: two recorders may write at the same time of an emulated clock."""
    return f"{regarding['name']}.{now // NAME_NS:012x}{rng.randrange(NAME_NS):04x}"


def core_event(
    now: int,
    rng: random.Random,
    regarding: Mapping[str, str],
    kind: str,
    reason: str,
    message: str,
    component: str,
    host: str = "",
) -> dict[str, Any]:
    """A kubelet's or controller's event: ``kind`` is Normal or Warning."""
    source = {"component": component, **({"host": host} if host else {})}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": _name(now, rng, regarding), "namespace": namespace_of(regarding)},
        "involvedObject": dict(regarding),
        "reason": reason,
        "message": message,
        "source": source,
        "firstTimestamp": as_time(now),
        "lastTimestamp": as_time(now),
        "count": 1,
        "type": kind,
        "eventTime": None,
        "reportingComponent": component,
        "reportingInstance": host,
    }


def new_event(
    now: int,
    rng: random.Random,
    regarding: Mapping[str, str],
    kind: str,
    reason: str,
    action: str,
    message: str,
    component: str,
    related: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A scheduler's event: eventTime and action, neither source nor count."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": _name(now, rng, regarding), "namespace": namespace_of(regarding)},
        "involvedObject": dict(regarding),
        "reason": reason,
        "message": message,
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": kind,
        "eventTime": as_micro_time(now),
        "action": action,
        **({"related": dict(related)} if related else {}),
        "reportingComponent": component,
        "reportingInstance": component,
    }
