"""LimitRanger: defaults for what containers leave open, and bounds for what they say (RC-51).

It looks at new pods and at /resize, never at plain updates, whose resources cannot change. Bounds of type Pod apply to the pod's
effective requests and limits without overhead; those of type PersistentVolumeClaim have nothing to apply to here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.api import resources
from elbowroom.api.quantity import INT64_MAX, ZERO, Quantity, parse
from elbowroom.api.resources import Amounts
from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.podviews import pod_view
from elbowroom.apiserver.strategy import Context, Document

ANNOTATION = "kubernetes.io/limit-ranger"
_MILLI_VALUE_MAX = INT64_MAX // 1000


class LimitRanger(Plugin):
    name = "LimitRanger"
    concerns = ("pods",)

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
    asked, allowed, enforced = _readings(request, limit, bound)
    if asked < enforced:
        return f"{said}, but request is {request}"
    return f"{said}, but limit is {limit}" if limit is not None and allowed < enforced else ""


def _maximum(name: str, kind: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    said = f"maximum {name} usage per {kind} is {bound}"
    if limit is None:
        return f"{said}.  No limit is specified"
    asked, allowed, enforced = _readings(request, limit, bound)
    if allowed > enforced:
        return f"{said}, but limit is {limit}"
    return f"{said}, but request is {request}" if request is not None and asked > enforced else ""


def _ratio(name: str, kind: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    said = f"{name} max limit to request ratio per {kind} is {bound}"
    asked, allowed, _ = _readings(request, limit, bound)
    if not asked:
        return f"{said}, but no request is specified or request is 0"
    if not allowed:
        return f"{said}, but no limit is specified or limit is 0"
    ratio = allowed / asked
    fine = bound.value_or_zero <= _MILLI_VALUE_MAX
    exceeds = ratio * 1000 > bound.milli_or_zero if fine else ratio > bound.value_or_zero
    return f"{said}, but provided ratio is {ratio:f}" if exceeds else ""


def _readings(request: Quantity | None, limit: Quantity | None, bound: Quantity) -> tuple[int, int, int]:
    """Request, limit and bound as upstream compares them: in thousandths where they are small enough, else in whole units.

    They are 64-bit numbers: what is too large for one reads 0, so that a limit of ``12E`` is below each minimum.
    """
    all_three = (request or ZERO, limit or ZERO, bound)
    whole = [quantity.value_or_zero for quantity in all_three]
    fine = max(whole) <= _MILLI_VALUE_MAX
    asked, allowed, enforced = [quantity.milli_or_zero for quantity in all_three] if fine else whole
    return asked, allowed, enforced
