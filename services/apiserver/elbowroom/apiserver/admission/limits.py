"""LimitRanger: defaults for what containers leave open, and bounds for what they say (RC-51).

It looks at new pods and at /resize, never at plain updates, whose resources cannot change. Bounds of type Pod apply to the pod's
effective requests and limits without overhead; those of type PersistentVolumeClaim have nothing to apply to here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.api import resources
from elbowroom.api.quantity import Quantity, parse
from elbowroom.api.resources import Amounts
from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.podviews import pod_view
from elbowroom.apiserver.strategy import Context, Document

ANNOTATION = "kubernetes.io/limit-ranger"


class LimitRanger(Plugin):
    name = "LimitRanger"

    def admit(self, context: Context, attributes: Attributes) -> Refusal | None:
        if _concerns(attributes):
            assert attributes.new is not None
            for limit_range in _ranges(context, attributes):
                _fill(attributes.new, limit_range)
        return None

    def validate(self, context: Context, attributes: Attributes) -> Refusal | None:
        if not _concerns(attributes):
            return None
        assert attributes.new is not None
        for limit_range in _ranges(context, attributes):
            findings = list(dict.fromkeys(_findings(attributes.new, limit_range)))
            if findings:
                return Refusal(findings[0] if len(findings) == 1 else f"[{', '.join(findings)}]")
        return None


def _concerns(attributes: Attributes) -> bool:
    if attributes.resource != "pods" or attributes.new is None:
        return False
    created = attributes.operation == "CREATE" and not attributes.subresource
    resized = attributes.operation == "UPDATE" and attributes.subresource == "resize"
    deleted = attributes.old is not None and attributes.old["metadata"].get("deletionTimestamp") is not None
    return (created or resized) and not deleted


def _ranges(context: Context, attributes: Attributes) -> Sequence[Mapping[str, Any]]:
    found = context.reader.list("limitranges", attributes.namespace)
    return sorted(found, key=lambda document: str(document["metadata"]["name"]))


def _limits(limit_range: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return limit_range.get("spec", {}).get("limits") or []


# ---------------------------------------------------------------- defaults


def _fill(pod: Document, limit_range: Mapping[str, Any]) -> None:
    defaults: dict[str, dict[str, str]] = {"limits": {}, "requests": {}}
    for limit in _limits(limit_range):
        if limit.get("type") == "Container":
            defaults["limits"] |= limit.get("default") or {}
            defaults["requests"] |= limit.get("defaultRequest") or {}
    told = []
    for field, kind in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or []:
            # Upstream tells of requests first.
            for which, word in (("requests", "request"), ("limits", "limit")):
                added = _add_missing(container, which, defaults[which])
                if added:
                    told.append(f"{', '.join(added)} {word} for {kind} {container.get('name', '')}")
    if told:
        annotations = dict(pod["metadata"].get("annotations") or {})
        annotations[ANNOTATION] = "LimitRanger plugin set: " + "; ".join(told)
        pod["metadata"]["annotations"] = annotations


def _add_missing(container: Document, which: str, defaults: Mapping[str, str]) -> list[str]:
    own = (container.get("resources") or {}).get(which) or {}
    missing = {name: text for name, text in defaults.items() if name not in own}
    if missing:
        container["resources"] = {**(container.get("resources") or {}), which: {**own, **missing}}
    return sorted(missing)


# ---------------------------------------------------------------- bounds


def _findings(pod: Mapping[str, Any], limit_range: Mapping[str, Any]) -> list[str]:
    found = []
    for limit in _limits(limit_range):
        if limit.get("type") == "Container":
            for container in [*(pod["spec"].get("containers") or []), *(pod["spec"].get("initContainers") or [])]:
                own = container.get("resources") or {}
                found += _checked(limit, resources.amounts(own.get("requests")), resources.amounts(own.get("limits")))
        elif limit.get("type") == "Pod":
            view = pod_view(pod)
            found += _checked(limit, resources.spec_request_amounts(view), resources.spec_limit_amounts(view))
    return found


def _checked(limit: Mapping[str, Any], requests: Amounts, limits: Amounts) -> list[str]:
    kind = limit["type"]
    found = []
    for field, check in (("min", _minimum), ("max", _maximum), ("maxLimitRequestRatio", _ratio)):
        for name, text in sorted((limit.get(field) or {}).items()):
            finding = check(name, kind, parse(text), requests.get(name), limits.get(name))
            if finding:
                found.append(finding)
    return found


def _minimum(name: str, kind: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    said = f"minimum {name} usage per {kind} is {bound}"
    if request is None:
        return f"{said}.  No request is specified"
    if request < bound:
        return f"{said}, but request is {request}"
    return f"{said}, but limit is {limit}" if limit is not None and limit < bound else ""


def _maximum(name: str, kind: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    said = f"maximum {name} usage per {kind} is {bound}"
    if limit is None:
        return f"{said}.  No limit is specified"
    if limit > bound:
        return f"{said}, but limit is {limit}"
    return f"{said}, but request is {request}" if request is not None and request > bound else ""


def _ratio(name: str, kind: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    said = f"{name} max limit to request ratio per {kind} is {bound}"
    if not request:
        return f"{said}, but no request is specified or request is 0"
    if not limit:
        return f"{said}, but no limit is specified or limit is 0"
    if limit.nanos * 10**9 <= bound.nanos * request.nanos:
        return ""
    millionths = (limit.nanos * 2_000_000 + request.nanos) // (2 * request.nanos)
    return f"{said}, but provided ratio is {millionths // 10**6}.{millionths % 10**6:06d}"
