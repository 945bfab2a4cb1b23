"""Limit ranges and quotas."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elbowroom.api import quantity
from elbowroom.api.fielderrors import FieldError, duplicate, forbidden, invalid, required
from elbowroom.api.names import qualified_name
from elbowroom.apiserver.kinds.base import Resource, with_status
from elbowroom.apiserver.strategy import Context, Document, Strategy

_CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_COMPUTE = tuple(f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _CONTAINER_RESOURCES)
_COUNTED = (
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims"),
    *("services.nodeports", "services.loadbalancers"),
)
_STANDARD_QUOTA = (*_COMPUTE, *_COUNTED, "requests.storage")
_STANDARD_RESOURCES = (*_STANDARD_QUOTA, "storage")
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
        found += [invalid(f"{at}.type", kind, finding) for finding in qualified_name(kind)]
        if kind and "/" not in kind and kind not in _LIMIT_TYPES:
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
        for name in amounts:
            found += _limit_name_errors(name, kind, f"{at}.{part}[{name}]")
    if kind == "PersistentVolumeClaim" and "storage" not in item.get("min", {}) and "storage" not in item.get("max", {}):
        text = "either minimum or maximum storage value is required, but neither was provided"
        found.append(required(f"{at}.limits", text))
    for name in dict.fromkeys(name for amounts in parts.values() for name in amounts):
        found += _bounds_errors({part: amounts[name] for part, amounts in parts.items() if name in amounts}, name, at)
    return found


def _limit_name_errors(name: str, kind: str, where: str) -> list[FieldError]:
    found = [invalid(where, name, finding) for finding in qualified_name(name)]
    if "/" in name:
        return found
    if kind == "Container":
        if name not in _CONTAINER_RESOURCES and not name.startswith("hugepages-"):
            found.append(invalid(where, name, "must be a standard resource for containers"))
            if name not in _STANDARD_RESOURCES:
                found.append(invalid(where, name, "must be a standard resource type or fully qualified"))
    elif name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
        found.append(invalid(where, name, "must be a standard resource type or fully qualified"))
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
    if name.startswith("hugepages-") or "/" in name:
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
    for name, amount in spec.get("hard", {}).items():
        found += quota_amount_errors(name, amount, f"spec.hard[{name}]")
    found += _scope_errors(spec.get("scopes", []), spec.get("hard", {}))
    for expression in spec.get("scopeSelector", {}).get("matchExpressions", ()):
        found += _scope_expression_errors(expression)
    return found


def quota_amount_errors(name: str, amount: str, where: str) -> list[FieldError]:
    """What is wrong with one amount of a quota."""
    found = [invalid(where, name, finding) for finding in qualified_name(name)]
    if "/" not in name and name not in _STANDARD_QUOTA and not name.removeprefix("requests.").startswith("hugepages-"):
        found.append(invalid(where, name, "must be a standard resource for quotas"))
    parsed = quantity.parse(amount)
    if parsed.nanos < 0:
        found.append(invalid(where, amount, "must be greater than or equal to 0"))
    if (name in _COUNTED or name.startswith("count/")) and parsed.milli % 1000:
        found.append(invalid(where, amount, "must be an integer"))
    return found


_POD_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
_SCOPES = (*_POD_SCOPES, "PriorityClass", "VolumeAttributesClass")
_COMPUTE_SCOPES = tuple(scope for scope in _SCOPES if scope not in ("BestEffort", "VolumeAttributesClass"))
_EXISTS_ONLY = (
    "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def _scope_errors(scopes: Sequence[str], hard: Iterable[str]) -> list[FieldError]:
    if not scopes:
        return []
    found: list[FieldError] = []
    for scope in scopes:
        if scope not in _SCOPES:
            found.append(invalid("spec.scopes", list(scopes), "unsupported scope"))
            continue
        for name in hard:
            covered = name == "pods" or (scope in _COMPUTE_SCOPES and name in _COMPUTE)
            if name in _STANDARD_QUOTA and not covered:
                found.append(invalid("spec.scopes", list(scopes), "unsupported scope applied to resource"))
    for one, other in (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")):
        if one in scopes and other in scopes:
            found.append(invalid("spec.scopes", list(scopes), "conflicting scopes"))
    return found


def _scope_expression_errors(expression: Mapping[str, Any]) -> list[FieldError]:
    at = "spec.scopeSelector.matchExpressions"
    found: list[FieldError] = []
    scope, operator, values = expression.get("scopeName", ""), expression.get("operator", ""), expression.get("values", [])
    if scope not in _SCOPES:
        found.append(invalid(f"{at}.scopeName", scope, "unsupported scope"))
    if scope in _POD_SCOPES and operator != "Exists":
        found.append(invalid(f"{at}.operator", operator, _EXISTS_ONLY))
    if operator in ("In", "NotIn"):
        if not values:
            found.append(
                required(f"{at}.values", "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
            )
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            found.append(invalid(f"{at}.values", values, text))
    else:
        found.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
    return found


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
