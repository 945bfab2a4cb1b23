"""The audit log's events: who did what, whether they might, and how it ended (audit.k8s.io/v1, stage ResponseComplete).

An HTTP request is told by the facade, which alone knows its path and address; what comes over the bus by the machine, as a task.
Bodies are told at the level Request only, and never those that hold tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom.api.clock import as_micro_time
from elbowroom.apiserver.authorizer import Judgement
from elbowroom.machine import Instant
from elbowroom.wire import ApiRequest, ApiResponse, Impersonation

LEVELS = ("None", "Metadata", "Request")
_DECISION, _REASON = "authorization.k8s.io/decision", "authorization.k8s.io/reason"
_SECRET = (("serviceaccounts", "token"), ("tokenreviews", ""), ("secrets", ""))


@dataclass(frozen=True, slots=True)
class Fact:
    """A task for ``Work``: what a peer of the bus asked and was answered."""

    peer: str
    request: ApiRequest
    response: ApiResponse
    at: Instant


@dataclass(slots=True)
class Entry:
    """What is known of a request when it has ended. ``request`` is None for a path outside of resources."""

    id: str
    uri: str
    verb: str
    received: Instant
    completed: Instant
    status: int
    user: Mapping[str, Any]
    impersonated: Impersonation | None = None
    addresses: tuple[str, ...] = ()
    agent: str = ""
    request: ApiRequest | None = None
    refusal: Mapping[str, Any] = field(default_factory=dict)
    """The Status that was answered, if it was one."""
    annotations: Mapping[str, str] = field(default_factory=dict)


def told(response: ApiResponse, judgement: Judgement | None) -> ApiResponse:
    """An answer with what the log says about the decision; no judgement: it was refused before any, or by one."""
    allowed = judgement is not None and judgement.allowed
    notes = {_DECISION: "allow" if allowed else "forbid"}
    if judgement is not None:
        notes[_REASON] = judgement.reason
    return msgspec.structs.replace(response, annotations=notes)


def user_of(
    user: str, groups: tuple[str, ...], uid: str = "", extra: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, Any]:
    """A UserInfo."""
    told: dict[str, Any] = {"username": user}
    if uid:
        told["uid"] = uid
    told["groups"] = list(groups)
    if extra:
        told["extra"] = {key: list(values) for key, values in extra.items()}
    return told


def event(level: str, entry: Entry) -> dict[str, Any]:
    """The Event."""
    document: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": level,
        "auditID": entry.id,
        "stage": "ResponseComplete",
        "requestURI": entry.uri,
        "verb": entry.verb,
        "user": entry.user,
    }
    acting = entry.impersonated
    if acting is not None:
        document["impersonatedUser"] = user_of(acting.user, acting.groups, acting.uid, acting.extra)
    if entry.addresses:
        document["sourceIPs"] = list(entry.addresses)
    if entry.agent:
        document["userAgent"] = entry.agent
    request = entry.request
    if request is not None:
        document["objectRef"] = _reference(request)
    status: dict[str, Any] = {"metadata": {}}
    for name in ("status", "message", "reason", "details"):
        if entry.refusal.get(name):
            status[name] = entry.refusal[name]
    document["responseStatus"] = {**status, "code": entry.status}
    if level == "Request" and request is not None and request.body and (request.resource, request.subresource) not in _SECRET:
        body = _body(request)
        if body is not None:
            document["requestObject"] = body
    document["requestReceivedTimestamp"] = as_micro_time(entry.received)
    document["stageTimestamp"] = as_micro_time(entry.completed)
    if entry.annotations:
        document["annotations"] = dict(entry.annotations)
    return document


def of_fact(fact: Fact, number: str) -> Entry:
    """What a peer of the bus did."""
    request = fact.request
    refusal: Mapping[str, Any] = {}
    if fact.response.status >= 400:
        refusal = status_of(fact.response.body)
    return Entry(
        number,
        _uri(request),
        request.verb,
        fact.at,
        fact.at,
        fact.response.status,
        user_of(request.user, request.groups),
        agent=request.user_agent or fact.peer,
        request=request,
        refusal=refusal,
        annotations=fact.response.annotations,
    )


def status_of(body: bytes) -> Mapping[str, Any]:
    """The Status in an answer's body; empty if there is none."""
    try:
        found = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return {}
    return found if isinstance(found, dict) and found.get("kind") == "Status" else {}


def _reference(request: ApiRequest) -> dict[str, str]:
    facts = {
        "resource": request.resource,
        "namespace": request.namespace,
        "name": request.name,
        "apiGroup": request.group,
        "apiVersion": request.version,
        "subresource": request.subresource,
    }
    return {name: value for name, value in facts.items() if value}


def _uri(request: ApiRequest) -> str:
    parts = ["apis", request.group, request.version] if request.group else ["api", request.version]
    if request.namespace:
        parts += ["namespaces", request.namespace]
    parts += [part for part in (request.resource, request.name, request.subresource) if part]
    return "/" + "/".join(parts)


def _body(request: ApiRequest) -> Any:
    try:
        return msgspec.json.decode(request.body)
    except (msgspec.MsgspecError, RecursionError):
        return None
