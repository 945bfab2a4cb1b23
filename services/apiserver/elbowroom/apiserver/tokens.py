"""Tokens of service accounts: what TokenRequest asks for, what a token says, and when it no longer counts.

Here claims are made and judged; who has the key signs and reads them (``drivers.tokens``), by the tasks ``Sign`` and ``Read``.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.clock import as_time
from elbowroom.api.fielderrors import FieldError, invalid
from elbowroom.apiserver import authorizer, intake, metadata, schema, statuses
from elbowroom.apiserver.identity import AUTHENTICATED, BadTokenError, Identity
from elbowroom.apiserver.impersonation import NODE_NAME, account_of, groups_of_account
from elbowroom.apiserver.rbac import quoted
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.store import Store
from elbowroom.machine import Instant
from elbowroom.wire import ApiRequest, ApiResponse

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""Who issues the tokens, and the audience of those that are for the API server itself."""
GROUP = "authentication.k8s.io"
SECONDS = 3600
SECONDS_MIN = 600
SECONDS_MAX = 1 << 32
WARNED_SECONDS = 3607
"""So long the tokens live that pods are given; upstream lets them count a year longer, and only counts who uses them so."""
EXTENDED_SECONDS = 365 * 24 * 3600
LEEWAY_SECONDS = 60
_POD_NAME, _POD_UID = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"
_NODE_UID = "authentication.kubernetes.io/node-uid"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_INVALIDATED = "service account token has been invalidated"

RESOURCES = ("serviceaccounts", "tokenreviews")
"""What may be asked of here."""

Node = Mapping[str, Any]
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sign:
    """A task for ``Work``: the token with these claims. The outcome is its text, or an exception."""

    claims: Node


@dataclass(frozen=True, slots=True)
class Read:
    """A task for ``Work``: whose token is it, for these audiences? The outcome: ``(Identity, audiences)`` or ``BadTokenError``."""

    token: str
    audiences: tuple[str, ...]


# ---------------------------------------------------------------- asking for one


def is_request(request: ApiRequest) -> bool:
    """Is it a TokenRequest?"""
    return request.resource == "serviceaccounts" and request.subresource == "token" and not request.group


def requested(now: Instant, request: ApiRequest, store: Store, rng: random.Random) -> tuple[Document, Node, tuple[str, ...]]:
    """The TokenRequest without its token, the claims of that, and warnings; 4xx in upstream's words if there is to be none."""
    if request.verb != "create":
        raise statuses.method_not_allowed()
    field = schema.find(GROUP, "v1", "TokenRequest")
    assert field is not None
    options = intake.write_options(request, "CreateOptions")
    asked, warnings = intake.decoded_body(request, field, GROUP, "v1", "TokenRequest", options)
    meta, spec = asked.setdefault("metadata", {}), asked.setdefault("spec", {})
    for name, here, what in (("name", request.name, "name"), ("namespace", request.namespace, "namespace")):
        if meta.get(name) and meta[name] != here:
            why = f"must match the service account {what} if specified"
            raise statuses.invalid(GROUP, "TokenRequest", request.name, [invalid(f"metadata.{name}", meta[name], why)])
    found = store.get("serviceaccounts", request.namespace, request.name)
    if found is None:
        raise statuses.not_found("", "serviceaccounts", request.name)
    uid = found.document["metadata"]["uid"]
    if meta.get("uid") and meta["uid"] != uid:
        why = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account ({uid})"
        raise statuses.conflict(GROUP, "TokenRequest", request.name, why)
    lifetime = spec.get("expirationSeconds")
    lifetime = SECONDS if lifetime is None else lifetime
    errors = _lifetime_errors(lifetime)
    if errors:
        raise statuses.invalid(GROUP, "TokenRequest", "", errors)
    reference = spec.get("boundObjectRef")
    audiences = list(spec.get("audiences") or [ISSUER])
    if request.user.startswith(authorizer.NODE_PREFIX) and authorizer.NODES in request.groups:
        _check_nodes(request, reference, audiences, store)
    bound = {} if reference is None else _bound(request, reference, store)
    claims = _claims(now, request, uid, audiences, lifetime, bound, rng)
    spec |= {"audiences": audiences, "expirationSeconds": lifetime, "boundObjectRef": reference}
    meta |= {"name": request.name, "namespace": request.namespace, "uid": uid, "creationTimestamp": as_time(now)}
    ends = as_time(Instant(now + lifetime * 1_000_000_000))
    document = {
        "kind": "TokenRequest",
        "apiVersion": f"{GROUP}/v1",
        "metadata": meta,
        "spec": spec,
        "status": {"token": "", "expirationTimestamp": ends},
    }
    return document, claims, tuple(warnings)


def _lifetime_errors(lifetime: int) -> list[FieldError]:
    where = "spec.expirationSeconds"
    if lifetime < SECONDS_MIN:
        return [invalid(where, lifetime, "may not specify a duration less than 10 minutes")]
    if lifetime > SECONDS_MAX:
        return [invalid(where, lifetime, "may not specify a duration larger than 2^32 seconds")]
    return []


def _bound(request: ApiRequest, reference: Node, store: Store) -> Node:
    """The claims about what the token is bound to."""
    kind, name = reference.get("kind", ""), reference.get("name", "")
    group, _, version = reference.get("apiVersion", "").rpartition("/")
    resource = {"Pod": "pods", "Node": "nodes"}.get(kind) if not group else None
    if resource is None:
        raise statuses.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = store.get(resource, request.namespace if kind == "Pod" else "", name)
    if found is None:
        raise statuses.not_found("", resource, name)
    uid = found.document["metadata"]["uid"]
    claims: dict[str, Any] = {kind.lower(): {"name": name, "uid": uid}}
    if kind == "Pod":
        if _account_of_pod(found.document) != request.name:
            why = f"cannot bind token for serviceaccount {quoted(request.name)} to pod running with different serviceaccount name."
            raise statuses.bad_request(why)
        node = found.document["spec"].get("nodeName")
        if node:
            known = store.get("nodes", "", node)
            claims["node"] = {"name": node, **({"uid": known.document["metadata"]["uid"]} if known is not None else {})}
    said = reference.get("uid")
    if said and said != uid:
        raise statuses.conflict("", kind, name, _other_uid(said))
    return claims


def _account_of_pod(pod: Node) -> str:
    """A pod that names no service account runs as ``default``; upstream's admission writes that into it."""
    return str(pod["spec"].get("serviceAccountName") or "default")


def _other_uid(said: str) -> str:
    return (
        f"the UID in the bound object reference ({said}) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )


def _check_nodes(request: ApiRequest, reference: Node | None, audiences: list[str], store: Store) -> None:
    """NodeRestriction: a node has tokens for its own pods alone."""
    node = request.user.removeprefix(authorizer.NODE_PREFIX)

    def refused(why: str) -> ApiError:
        return statuses.forbidden("", "serviceaccounts", request.name, why)

    if reference is None or (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod") or not reference.get("name"):
        raise refused("node requested token not bound to a pod")
    if not reference.get("uid"):
        raise refused("node requested token with a pod binding without a uid")
    pod = store.get("pods", request.namespace, reference["name"])
    if pod is None:
        raise statuses.not_found("", "pods", reference["name"])
    if pod.document["metadata"]["uid"] != reference["uid"]:
        raise refused(_other_uid(reference["uid"]))
    if pod.document["spec"].get("nodeName") != node:
        raise refused("node requested token bound to a pod scheduled on a different node")
    if len(audiences) > 1:
        raise refused("node may only request 0 or 1 audiences")
    audience = "" if audiences == [ISSUER] else audiences[0]
    if audience and audience not in _audiences_of(pod.document):
        why = f"{request.user} is not authorized to request tokens for this audience"
        raise refused(f'audience "{audience}" not found in pod spec volume, {why}')


def _audiences_of(pod: Node) -> list[str]:
    return [
        source["serviceAccountToken"].get("audience", "")
        for volume in pod["spec"].get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
        if source.get("serviceAccountToken")
    ]


def _claims(
    now: Instant, request: ApiRequest, uid: str, audiences: list[str], lifetime: int, bound: Node, rng: random.Random
) -> Node:
    began = now // 1_000_000_000
    private: dict[str, Any] = {
        "namespace": request.namespace,
        **bound,
        "serviceaccount": {"name": request.name, "uid": uid},
    }
    ends = began + lifetime
    if "pod" in bound and lifetime == WARNED_SECONDS and audiences == [ISSUER]:
        private["warnafter"], ends = ends, began + EXTENDED_SECONDS
    return {
        "aud": audiences,
        "exp": ends,
        "iat": began,
        "iss": ISSUER,
        "jti": metadata.new_uid(rng),
        "kubernetes.io": private,
        "nbf": began,
        "sub": f"system:serviceaccount:{request.namespace}:{request.name}",
    }


# ---------------------------------------------------------------- what one says


class _Reference(msgspec.Struct):
    name: str = ""
    uid: str = ""


class _Private(msgspec.Struct):
    namespace: str
    serviceaccount: _Reference
    pod: _Reference | None = None
    node: _Reference | None = None


class Claims(msgspec.Struct):
    """The claims of a token of ours."""

    aud: list[str]
    exp: int
    iss: str
    sub: str
    private: _Private = msgspec.field(name="kubernetes.io")
    nbf: int = 0
    iat: int = 0
    jti: str = ""


def check_time(claims: Claims, now: Instant) -> None:
    """Raise ``BadTokenError`` for a token that is not valid at this time."""
    at = now // 1_000_000_000
    if at - LEEWAY_SECONDS > claims.exp:
        raise BadTokenError("service account token has expired")
    if at + LEEWAY_SECONDS < claims.nbf:
        raise BadTokenError("service account token is not valid yet")


def identity_of(claims: Claims) -> Identity:
    """Who bears such a token; ``BadTokenError`` if its parts do not agree."""
    account = claims.private.serviceaccount
    if account_of(claims.sub) != (claims.private.namespace, account.name) or not account.uid:
        raise BadTokenError("invalid bearer token")
    extra: dict[str, tuple[str, ...]] = {}
    if claims.jti:
        extra[_CREDENTIAL] = (f"JTI={claims.jti}",)
    for names, reference in (((NODE_NAME, _NODE_UID), claims.private.node), ((_POD_NAME, _POD_UID), claims.private.pod)):
        if reference is not None:
            extra |= {name: (value,) for name, value in zip(names, (reference.name, reference.uid), strict=True) if value}
    groups = (*groups_of_account(claims.private.namespace), AUTHENTICATED)
    return Identity(claims.sub, groups, account.uid, dict(sorted(extra.items())))


def trouble(user: str, uid: str, extra: Mapping[str, tuple[str, ...]], store: Store) -> str:
    """Why the token of such a user no longer counts: its service account, pod or node is gone; empty if all are there."""
    account = account_of(user)
    if account is None:
        return ""
    namespace, name = account
    found = store.get("serviceaccounts", namespace, name)
    if found is None:
        return f'serviceaccounts "{name}" not found'
    mine = found.document["metadata"]["uid"]
    if mine != uid:
        return f"service account UID ({mine}) does not match claim ({uid})"
    pod, pod_uid = (extra.get(key, ("",))[0] for key in (_POD_NAME, _POD_UID))
    node, node_uid = (extra.get(key, ("",))[0] for key in (NODE_NAME, _NODE_UID))
    if pod:
        return _gone(store, "pod", namespace, pod, pod_uid)
    return _gone(store, "node", "", node, node_uid) if node else ""


def _gone(store: Store, kind: str, namespace: str, name: str, uid: str) -> str:
    found = store.get(f"{kind}s", namespace, name)
    if found is None:
        return _INVALIDATED
    mine = found.document["metadata"]["uid"]
    return "" if mine == uid else f"{kind} UID ({mine}) does not match service account {kind} ref claim ({uid})"


# ---------------------------------------------------------------- asking about one


def is_review(request: ApiRequest) -> bool:
    """Is it a TokenReview?"""
    return request.resource == "tokenreviews" and request.group == GROUP


def reviewed(request: ApiRequest) -> tuple[Document, Read, tuple[str, ...]]:
    """The TokenReview without its status, what is to be read for it, and warnings."""
    if request.verb != "create":
        raise statuses.method_not_allowed()
    field = schema.find(GROUP, "v1", "TokenReview")
    assert field is not None
    options = intake.write_options(request, "CreateOptions")
    review, warnings = intake.decoded_body(request, field, GROUP, "v1", "TokenReview", options)
    spec = review.get("spec") or {}
    if not spec.get("token"):
        raise statuses.bad_request("token is required for TokenReview in authentication")
    document = {"kind": "TokenReview", "apiVersion": f"{GROUP}/v1", "metadata": review.get("metadata") or {}, "spec": spec}
    return document, Read(spec["token"], tuple(spec.get("audiences") or (ISSUER,))), tuple(warnings)


def verdict(outcome: Any, store: Store) -> Document:
    """A TokenReview's status, of what reading the token came to."""
    if isinstance(outcome, tuple):
        who, audiences = outcome
        why = trouble(who.user, who.uid, who.extra, store) if who.uid else ""
        if not why:
            user: Document = {"username": who.user}
            if who.uid:
                user["uid"] = who.uid
            user["groups"] = list(who.groups)
            if who.extra:
                user["extra"] = {key: list(values) for key, values in who.extra.items()}
            return {"authenticated": True, "user": user, "audiences": list(audiences)}
    else:
        why = str(outcome)
    bad = BadTokenError("invalid bearer token")
    return {"user": {}, "error": str(bad) if why == str(bad) else f"[{bad}, {why}]"}


def answered(document: Document, warnings: tuple[str, ...]) -> ApiResponse:
    """A TokenRequest or TokenReview as an answer."""
    return ApiResponse(201, msgspec.json.encode(document), warnings)
