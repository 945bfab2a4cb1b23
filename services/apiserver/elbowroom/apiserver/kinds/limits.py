"""Limit ranges and quotas."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elbowroom.api import quantity
from elbowroom.api.fielderrors import FieldError, duplicate, forbidden, invalid, invalid_struct, required
from elbowroom.api.names import qualified_name
from elbowroom.apiserver.kinds.base import Resource, with_status
from elbowroom.apiserver.pod_validation import (
    container_resource_name_errors,
    is_integer_resource,
    may_be_overcommitted,
    resource_name_errors,
)
from elbowroom.apiserver.strategy import Context, Document, Strategy

_CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_COMPUTE = tuple(f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _CONTAINER_RESOURCES)
_COUNTED = (
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims"),
    *("services.nodeports", "services.loadbalancers"),
)
_STANDARD_QUOTA = (*_COMPUTE, *_COUNTED, "requests.storage")
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")


class LimitRangeStrategy(Strategy):
    kind, plural, singular, short_names = "LimitRange", "limitranges", "limitrange", ("limits",)

    def default(self, document: Document) -> None:
        for item in document.get("spec", {}).get("limits") or ():
            if item.get("type") == "Container":
                limit = {**item.get("max", {}), **item.get("default", {})}
                request = {**item.get("min", {}), **limit, **item.get("defaultRequest", {})}
                for name, amounts in (("default", limit), ("defaultRequest", request)):
                    if amounts:
                        item[name] = amounts

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return _limit_range_errors(new)

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return _limit_range_errors(new)


def _limit_range_errors(limit_range: Document) -> list[FieldError]:
    found: list[FieldError] = []
    taken: set[str] = set()
    for index, item in enumerate(limit_range.get("spec", {}).get("limits") or ()):
        at, kind = f"spec.limits[{index}]", item.get("type", "")
        findings = qualified_name(kind)
        found += [invalid(f"{at}.type", kind, finding) for finding in findings]
        if not findings and "/" not in kind and kind not in _LIMIT_TYPES:
            found.append(invalid(f"{at}.type", kind, "must be a standard limit type or fully qualified"))
        if kind in taken:
            found.append(duplicate(f"{at}.type", kind))
        taken.add(kind)
        found += _limit_errors(item, kind, at)
    return found


def _limit_errors(item: Mapping[str, Any], kind: str, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    parts: dict[str, dict[str, str]] = {}
    for part in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        amounts = item.get(part, {})
        if part in ("default", "defaultRequest") and kind == "Pod" and amounts:
            found.append(forbidden(f"{at}.{part}", "may not be specified when `type` is 'Pod'"))
            continue
        parts[part] = amounts
        check = container_resource_name_errors if kind in ("Pod", "Container") else resource_name_errors
        for name in amounts:
            found += check(name, f"{at}.{part}[{name}]")
    if kind == "PersistentVolumeClaim" and "storage" not in item.get("min", {}) and "storage" not in item.get("max", {}):
        text = "either minimum or maximum storage value is required, but neither was provided"
        found.append(required(f"{at}.limits", text))
    for name in dict.fromkeys(name for amounts in parts.values() for name in amounts):
        found += _bounds_errors({part: amounts[name] for part, amounts in parts.items() if name in amounts}, name, at)
    return found


_ORDERS = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)


def _bounds_errors(amounts: Mapping[str, str], name: str, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    parsed = {part: quantity.parse(text) for part, text in amounts.items()}
    for low, high, part, text in _ORDERS:
        if low in parsed and high in parsed and parsed[low] > parsed[high]:
            shown = amounts["min"] if low == "min" and part != "defaultRequest" else amounts[part]
            found.append(invalid(f"{at}.{part}[{name}]", shown, text.format(amounts[low], amounts[high])))
    if "maxLimitRequestRatio" in parsed:
        where, ratio = f"{at}.maxLimitRequestRatio[{name}]", amounts["maxLimitRequestRatio"]
        if parsed["maxLimitRequestRatio"] < quantity.parse("1"):
            found.append(invalid(where, ratio, f"ratio {ratio} is less than 1"))
        if "min" in parsed and "max" in parsed and parsed["min"].milli > 0:
            largest = parsed["max"].milli / parsed["min"].milli
            if parsed["maxLimitRequestRatio"].milli / 1000 > largest:
                found.append(invalid(where, ratio, f"ratio {ratio} is greater than max/min = {largest:f}"))
    if not may_be_overcommitted(name):
        both = "default" in parsed and "defaultRequest" in parsed
        if both and parsed["default"] != parsed["defaultRequest"]:
            text = f"default value {amounts['default']} must equal to defaultRequest value {amounts['defaultRequest']} in {name}"
            found.append(invalid(f"{at}.defaultRequest[{name}]", amounts["defaultRequest"], text))
    return found


class QuotaStrategy(Strategy):
    kind, plural, singular, short_names = "ResourceQuota", "resourcequotas", "resourcequota", ("quota",)

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {}

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return _quota_errors(new.get("spec", {}))

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["status"] = old.get("status", {})

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        found = _quota_errors(new.get("spec", {}))
        scopes, before = new.get("spec", {}).get("scopes", []), old.get("spec", {}).get("scopes", [])
        if sorted(scopes) != sorted(before):
            found.append(invalid("spec.scopes", scopes, "field is immutable"))
        return found


def _quota_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    found: list[FieldError] = []
    hard = spec.get("hard", {})
    for name, amount in hard.items():
        found += quota_amount_errors(name, amount, f"spec.hard[{name}]")
    found += _scope_errors(spec.get("scopes", []), hard)
    return found + _selector_errors(spec.get("scopeSelector", {}), spec.get("scopes"), hard)


def _is_hugepages(name: str) -> bool:
    return name.removeprefix("requests.").startswith("hugepages-")


def quota_amount_errors(name: str, amount: str, where: str) -> list[FieldError]:
    """What is wrong with one amount of a quota."""
    found = resource_name_errors(name, where)
    if "/" not in name and name not in _STANDARD_QUOTA and not _is_hugepages(name):
        found.append(invalid(where, name, "must be a standard resource for quotas"))
    parsed = quantity.parse(amount)
    if parsed.nanos < 0:
        found.append(invalid(where, amount, "must be greater than or equal to 0"))
    if is_integer_resource(name) and parsed.milli % 1000:
        found.append(invalid(where, amount, "must be an integer"))
    return found


_POD_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
_SCOPES = (*_POD_SCOPES, "PriorityClass", "VolumeAttributesClass")
_POD_COMPUTE = tuple(f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory"))
_CLAIMS = ("persistentvolumeclaims", "requests.storage")
_CONFLICTS = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_EXISTS_ONLY = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def _covers(scope: str, name: str) -> bool:
    """Can a quota of that scope count that resource? Of other resources than the standard ones nobody asks."""
    if scope not in _SCOPES or not (name in _STANDARD_QUOTA or _is_hugepages(name)):
        return True
    if scope == "VolumeAttributesClass":
        return name in _CLAIMS
    return name == "pods" or (scope != "BestEffort" and name in _POD_COMPUTE)


def _conflicts(scopes: Sequence[str]) -> int:
    return sum(one in scopes and other in scopes for one, other in _CONFLICTS)


def _scope_errors(scopes: Sequence[str], hard: Iterable[str]) -> list[FieldError]:
    found: list[FieldError] = []
    for scope in scopes:
        if scope not in _SCOPES:
            found.append(invalid("spec.scopes", list(scopes), "unsupported scope"))
        if not all(_covers(scope, name) for name in hard):
            found.append(invalid("spec.scopes", list(scopes), "unsupported scope applied to resource"))
    return found + [invalid("spec.scopes", list(scopes), "conflicting scopes")] * _conflicts(scopes)


def _selector_errors(selector: Mapping[str, Any], scopes: Sequence[str] | None, hard: Iterable[str]) -> list[FieldError]:
    at = "spec.scopeSelector.matchExpressions"
    found: list[FieldError] = []
    expressions = selector.get("matchExpressions", ())
    for expression in expressions:
        scope, operator, values = expression.get("scopeName", ""), expression.get("operator", ""), expression.get("values", [])
        if scope not in _SCOPES:
            found.append(invalid(f"{at}.scopeName", scope, "unsupported scope"))
        if not all(_covers(scope, name) for name in hard):
            fields = ("scopeName", "operator", "values")
            shown = [{name[:1].upper() + name[1:]: one.get(name) for name in fields} for one in expressions]
            found.append(invalid_struct(at, {"MatchExpressions": shown}, "unsupported scope applied to resource"))
        if scope in _POD_SCOPES and operator != "Exists":
            found.append(invalid(f"{at}.operator", operator, _EXISTS_ONLY))
        if operator in ("In", "NotIn") and not values:
            text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            found.append(required(f"{at}.values", text))
        elif operator in ("Exists", "DoesNotExist") and values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            found.append(invalid(f"{at}.values", values, text))
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            found.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
    clashes = _conflicts([expression.get("scopeName", "") for expression in expressions])
    return found + [invalid(at, list(scopes) if scopes else None, "conflicting scopes")] * clashes


def _quota_status_errors(context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
    found: list[FieldError] = []
    for part in ("hard", "used"):
        for name, amount in new.get("status", {}).get(part, {}).items():
            found += quota_amount_errors(name, amount, f"status.{part}[{name}]")
    return found


def rows() -> list[Resource]:
    """The rows of these kinds."""
    quota = QuotaStrategy()
    return [Resource(LimitRangeStrategy()), Resource(quota, with_status(quota, _quota_status_errors), returns_deleted=True)]
