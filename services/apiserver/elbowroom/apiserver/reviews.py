"""Questions about rights and identity: ``kubectl auth can-i``, ``can-i --list``, ``whoami``. Answered at once, never stored."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.api.fielderrors import FieldError, invalid
from elbowroom.apiserver import authorizer, intake, schema, statuses
from elbowroom.apiserver.rbac import Rbac, aggregate
from elbowroom.apiserver.store import Store, StoreReader
from elbowroom.wire import ApiRequest, ApiResponse

AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
KINDS = {
    (AUTHORIZATION, "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    (AUTHORIZATION, "subjectaccessreviews"): "SubjectAccessReview",
    (AUTHORIZATION, "localsubjectaccessreviews"): "LocalSubjectAccessReview",
    (AUTHORIZATION, "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
    (AUTHENTICATION, "selfsubjectreviews"): "SelfSubjectReview",
}

Node = Mapping[str, Any]


def is_review(request: ApiRequest) -> bool:
    """Is it a question of one of these kinds?"""
    return (request.group, request.resource) in KINDS


def answer(request: ApiRequest, store: Store) -> ApiResponse:
    """The review with its status."""
    if request.verb != "create":
        raise statuses.method_not_allowed()
    kind = KINDS[request.group, request.resource]
    field = schema.find(request.group, "v1", kind)
    assert field is not None, f"{kind} has no field tree"
    options = intake.write_options(request, "CreateOptions")
    review, warnings = intake.decoded_body(request, field, request.group, "v1", kind, options)
    spec: dict[str, Any] = review.get("spec") or {}
    metadata = {"namespace": request.namespace} if request.namespace else {}
    document: dict[str, Any] = {"kind": kind, "apiVersion": f"{request.group}/v1", "metadata": metadata}
    match kind:
        case "SelfSubjectReview":
            told = {"uid": request.uid} if request.uid else {}
            more = {"extra": {key: list(values) for key, values in request.extra.items()}} if request.extra else {}
            document["status"] = {"userInfo": {"username": request.user, **told, "groups": list(request.groups), **more}}
        case "SelfSubjectRulesReview":
            document |= {"spec": {}, "status": _rules(request, spec.get("namespace", ""), store)}
        case _:
            _check(kind, request, spec)
            user, groups = request.user, request.groups
            if kind != "SelfSubjectAccessReview":
                user, groups = spec.get("user", ""), tuple(spec.get("groups") or ())
            document |= {"spec": spec, "status": _access(user, groups, spec, store)}
    return ApiResponse(201, msgspec.json.encode(document), tuple(warnings))


def _check(kind: str, request: ApiRequest, spec: Node) -> None:
    """Raise 422 for a question that asks about nothing, about two things, or about nobody."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    found: list[FieldError] = []
    if resource is not None and path is not None:
        found.append(invalid("spec.nonResourceAttributes", path, "cannot be specified in combination with resourceAttributes"))
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        found.append(invalid("spec.resourceAttributes", None, why))
    if kind != "SelfSubjectAccessReview" and not spec.get("user") and not spec.get("groups"):
        found.append(invalid("spec.user", spec.get("user", ""), "at least one of user or group must be specified"))
    if kind == "LocalSubjectAccessReview":
        if resource is not None and resource.get("namespace", "") != request.namespace:
            where = "spec.resourceAttributes.namespace"
            found.append(invalid(where, resource.get("namespace", ""), "must match metadata.namespace"))
        if path is not None:
            found.append(invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request"))
    if found:
        raise statuses.invalid(AUTHORIZATION, kind, "", found)


def _access(user: str, groups: tuple[str, ...], spec: Node, store: Store) -> Node:
    wanted = spec.get("resourceAttributes")
    if wanted is None:
        asked = spec["nonResourceAttributes"]
        judgement = authorizer.judge_path(user, groups, asked.get("verb", ""), asked.get("path", ""), store)
    else:
        request = ApiRequest(
            wanted.get("verb", ""),
            wanted.get("resource", ""),
            wanted.get("group", ""),
            namespace=wanted.get("namespace", ""),
            name=wanted.get("name", ""),
            subresource=wanted.get("subresource", ""),
            user=user,
            groups=groups,
        )
        judgement = authorizer.judge(request, store)
    return {"allowed": judgement.allowed, **({"reason": judgement.reason} if judgement.reason else {})}


def _rules(request: ApiRequest, namespace: str, store: Store) -> Node:
    if not namespace:
        raise statuses.bad_request("no namespace on request")
    resources: list[Node] = []
    paths: list[Node] = []
    is_node = authorizer.NODES in request.groups
    troubles = ["node authorizer does not support user rule resolution"] if is_node else []
    for grant in Rbac(StoreReader(store)).grants(request.user, request.groups, namespace):
        if grant.rule is None:
            troubles.append(grant.trouble)
            continue
        if grant.rule.get("resources"):
            resources.append(_of(grant.rule, ("verbs", "apiGroups", "resources", "resourceNames")))
        if grant.rule.get("nonResourceURLs"):
            paths.append(_of(grant.rule, ("verbs", "nonResourceURLs")))
    told = {"evaluationError": aggregate(troubles)} if troubles else {}
    return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": is_node, **told}


def _of(rule: Node, fields: Sequence[str]) -> Node:
    return {field: rule[field] for field in fields if rule.get(field)}
