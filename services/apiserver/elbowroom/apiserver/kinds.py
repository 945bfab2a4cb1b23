"""The kinds beside pods: what a creator may say, what stands by default, what is valid.

A ``Resource`` is a row of the registry: a strategy, its subresources, and what the generic code must know of it.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom.api import quantity
from elbowroom.api.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from elbowroom.api.gates import Profile
from elbowroom.api.names import label_value, qualified_name
from elbowroom.api.objects import LabelSelector
from elbowroom.api.selectors import of_view
from elbowroom.apiserver import schema
from elbowroom.apiserver.faces import Face
from elbowroom.apiserver.metadata import NO_FINALIZER, STANDARD_FINALIZERS
from elbowroom.apiserver.pod_defaults import default_pod_spec
from elbowroom.apiserver.pod_validation import validate_pod_spec
from elbowroom.apiserver.services import ServiceStrategy
from elbowroom.apiserver.strategy import Context, Document, Strategy

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """JSON paths: the replicas that are wanted and that are there, and a selector as text (or empty)."""

    spec_replicas: str
    status_replicas: str
    selector: str


@dataclass(frozen=True, slots=True)
class Resource:
    """What the registry serves under one plural."""

    strategy: Strategy
    subresources: Mapping[str, Strategy] = field(default_factory=dict)
    """Those that read and write the object itself (``status``, ``resize``, ``finalize``)."""
    name_rule: str = "subdomain"
    """What a name may look like: ``label``, ``subdomain`` or ``path`` (metadata.py)."""
    returns_deleted: bool = False
    """A deletion answers with the object instead of a Status."""
    graceful: bool = False
    """A deletion leaves time to whoever runs the object (pods)."""
    fields: Mapping[str, Callable[[Mapping[str, Any]], str]] = field(default_factory=dict)
    """Field selectors beyond name and namespace."""
    scales: bool = False
    """Has the subresource ``scale``."""
    scale_paths: ScalePaths | None = None
    """Where a custom kind has what its ``scale`` shows."""
    field: schema.Field | None = None
    """The field tree, where it is not the one of the kind's name in the table."""
    face: Face | None = None
    """How it is shown, where that is not how it is stored."""
    is_custom: bool = False
    """Is it of a kind that a CustomResourceDefinition defines?"""
    is_terminating: bool = False
    """Is the kind on its way out, so that nothing new of it may be created?"""


def same(new: Any, old: Any, where: str) -> list[FieldError]:
    """``field is immutable`` unless both are equal."""
    return [] if new == old else [invalid(where, new, "field is immutable")]


def nonnegative(value: int | None, where: str) -> list[FieldError]:
    return [invalid(where, value, "must be greater than or equal to 0")] if value is not None and value < 0 else []


def label_selector_errors(selector: Mapping[str, Any], where: str) -> list[FieldError]:
    """What is wrong with a LabelSelector."""
    found: list[FieldError] = []
    for key, value in selector.get("matchLabels", {}).items():
        found += [invalid(f"{where}.matchLabels", key, finding) for finding in qualified_name(key)]
        found += [invalid(f"{where}.matchLabels", value, finding) for finding in label_value(value)]
    for index, expression in enumerate(selector.get("matchExpressions", ())):
        at = f"{where}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values", ())
        if operator in ("In", "NotIn"):
            if not values:
                found.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                found.append(forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
        else:
            found.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
        key = expression.get("key", "")
        found += [invalid(f"{at}.key", key, finding) for finding in qualified_name(key)]
        for number, value in enumerate(values):
            found += [invalid(f"{at}.values[{number}]", value, finding) for finding in label_value(value)]
    return found


def selector_of(selector: Mapping[str, Any]) -> Any:
    """A LabelSelector document as a selector that matches labels."""
    return of_view(msgspec.convert(selector, LabelSelector))


class StatusStrategy(Strategy):
    """The status subresource of a kind: only status may change, and labels, annotations and the like with it."""

    def __init__(
        self, of: Strategy, errors: Callable[[Context, Document, Mapping[str, Any]], list[FieldError]] | None = None
    ) -> None:
        self._of, self._errors = of, errors
        for name in ("group", "version", "kind", "plural", "singular", "namespaced", "has_generation", "unconditional_update"):
            setattr(self, name, getattr(of, name))

    def default(self, document: Document) -> None:
        self._of.default(document)

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        _restore(new, old, "spec")

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return [] if self._errors is None else self._errors(context, new, old)

    def spec_changed(self, new: Document, old: Mapping[str, Any]) -> bool:
        return False


def _restore(new: Document, old: Mapping[str, Any], name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


# ---------------------------------------------------------------- namespaces

NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    kind, plural, singular, short_names, namespaced = "Namespace", "namespaces", "namespace", ("ns",), False

    def default(self, document: Document) -> None:
        metadata = document["metadata"]
        if metadata.get("name"):
            metadata.setdefault("labels", {})[NAME_LABEL] = metadata["name"]

    def prepare_create(self, context: Context, new: Document) -> None:
        self.default(new)  # a generated name is known only now
        finalizers = new.setdefault("spec", {}).setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        new["status"] = {"phase": "Active"}

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return _namespace_finalizer_errors(new)

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["spec"], new["status"] = old["spec"], old["status"]

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return _namespace_finalizer_errors(new)


def _namespace_finalizer_errors(namespace: Document) -> list[FieldError]:
    found: list[FieldError] = []
    for name in namespace.get("spec", {}).get("finalizers", ()):
        found += [invalid("spec.finalizers", name, finding) for finding in qualified_name(name)]
        if "/" not in name and name not in STANDARD_FINALIZERS:
            found.append(invalid("spec.finalizers", name, NO_FINALIZER))
    return found


def _namespace_status_errors(context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
    phase = new.get("status", {}).get("phase", "")
    if new["metadata"].get("deletionTimestamp") is None:
        return [] if phase == "Active" else [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
    return (
        []
        if phase == "Terminating"
        else [invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
    )


class FinalizeStrategy(Strategy):
    """``namespaces/finalize``: only ``spec.finalizers`` changes; without any left, a namespace that is being deleted goes."""

    kind, plural, singular, namespaced = "Namespace", "namespaces", "namespace", False

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["status"] = old["status"]

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return _namespace_finalizer_errors(new)


# ---------------------------------------------------------------- nodes

_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_FEATURE = re.compile(r"[A-Z][A-Za-z0-9]*(/[A-Za-z][A-Za-z0-9]*)*")
POLICY_ENTRIES_MAX = 20
PREEMPTION_GATE = "InPlacePodVerticalScalingSchedulerPreemption"


class NodeStrategy(Strategy):
    kind, plural, singular, short_names, namespaced = "Node", "nodes", "node", ("no",), False

    def default(self, document: Document) -> None:
        status, spec = document.setdefault("status", {}), document.setdefault("spec", {})
        if "allocatable" not in status and "capacity" in status:
            status["allocatable"] = dict(status["capacity"])
        if spec.get("podCIDR") and not spec.get("podCIDRs"):
            spec["podCIDRs"] = [spec["podCIDR"]]
        elif spec.get("podCIDRs") and not spec.get("podCIDR"):
            spec["podCIDR"] = spec["podCIDRs"][0]

    def prepare_create(self, context: Context, new: Document) -> None:
        new["spec"].pop("configSource", None)
        _drop_policy(context, new["spec"], {})

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return _node_errors(new) + _node_status_errors(new)

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["status"] = old["status"]
        if "configSource" not in old["spec"]:
            new["spec"].pop("configSource", None)
        _drop_policy(context, new["spec"], old["spec"])

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        found = _node_errors(new)
        before, after = old["spec"], new["spec"]
        if before.get("podCIDRs") and before["podCIDRs"] != after.get("podCIDRs"):
            found.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
        if before.get("providerID") and before["providerID"] != after.get("providerID"):
            found.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
        return found


def _drop_policy(context: Context, spec: Document, old: Mapping[str, Any]) -> None:
    """SC-133: with the gate off the policy is dropped, unless the stored node has one."""
    if not context.profile.on(PREEMPTION_GATE) and "podPreemptionPolicy" not in old:
        spec.pop("podPreemptionPolicy", None)


def _node_errors(node: Document) -> list[FieldError]:
    spec = node["spec"]
    found: list[FieldError] = []
    taken: set[tuple[str, str]] = set()
    for index, taint in enumerate(spec.get("taints", ())):
        at, key, value, effect = f"metadata.taints[{index}]", taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        found += [invalid(f"{at}.key", key, finding) for finding in qualified_name(key)]
        if value and (findings := label_value(value)):
            found.append(invalid(f"{at}.value", value, ";".join(findings)))
        if effect not in _TAINT_EFFECTS:
            found.append(not_supported(f"{at}.effect", effect, _TAINT_EFFECTS) if effect else required(f"{at}.effect"))
        if (key, effect) in taken:
            added = msgspec.json.encode(taint.get("timeAdded")).decode()
            shown = f'{{"Key":"{key}","Value":"{value}","Effect":"{effect}","TimeAdded":{added}}}'
            text = f"Duplicate value: {shown}: taints must be unique by key and effect pair"
            found.append(FieldError(at, "FieldValueDuplicate", text))
        taken.add((key, effect))
    cidrs = spec.get("podCIDRs", [])
    for index, cidr in enumerate(cidrs):
        if not _is_cidr(cidr):
            found.append(
                invalid(f"spec.podCIDRs[{index}]", cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
            )
    if len(cidrs) > 2:
        found.append(invalid("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family"))
    return found + _policy_errors(spec.get("podPreemptionPolicy", {}).get("disableResizePreemption", []))


def _policy_errors(owners: Sequence[str]) -> list[FieldError]:
    """SC-130: a set of at most 20 label-key-shaped names."""
    where = "spec.podPreemptionPolicy.disableResizePreemption"
    found: list[FieldError] = []
    if len(owners) > POLICY_ENTRIES_MAX:
        text = f"Too many: {len(owners)}: must have at most {POLICY_ENTRIES_MAX} items"
        found.append(FieldError(where, "FieldValueTooMany", text))
    for index, owner in enumerate(owners):
        found += [invalid(f"{where}[{index}]", owner, finding) for finding in qualified_name(owner)]
        if owner in owners[:index]:
            found.append(duplicate(f"{where}[{index}]", owner))
    return found


def _is_cidr(text: str) -> bool:
    try:
        return "/" in text and bool(ipaddress.ip_network(text, strict=False))
    except ValueError:
        return False


def _node_status_errors(node: Document) -> list[FieldError]:
    found: list[FieldError] = []
    status = node["status"]
    for part in ("capacity", "allocatable"):
        for name, amount in status.get(part, {}).items():
            if quantity.parse(amount).nanos < 0:
                found.append(invalid(f"status.{part}.{name}", amount, "must be greater than or equal to 0"))
    features = status.get("declaredFeatures", [])
    for index, feature in enumerate(features):
        if not _FEATURE.fullmatch(feature):
            text = (
                f'invalid feature name "{feature}": must start with an UpperCamelCase segment, with subsequent segments separated '
                "by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            )
            found.append(invalid(f"status.declaredFeatures[{index}]", feature, text))
        if index and features[index - 1] == feature:
            found.append(duplicate(f"status.declaredFeatures[{index}]", feature))
        elif index and features[index - 1] > feature:
            found.append(invalid(f"status.declaredFeatures[{index}]", feature, "list must be sorted alphabetically"))
    return found


# ---------------------------------------------------------------- priority classes

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {
    "system-node-critical": (2_000_001_000, "Used for system critical pods that must not be moved from their current node."),
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
}


class PriorityClassStrategy(Strategy):
    group, kind, plural, singular = "scheduling.k8s.io", "PriorityClass", "priorityclasses", "priorityclass"
    short_names, namespaced, has_generation = ("pc",), False, True

    def default(self, document: Document) -> None:
        if not document.get("preemptionPolicy"):
            document["preemptionPolicy"] = "PreemptLowerPriority"

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        found: list[FieldError] = []
        name, value = new["metadata"].get("name", ""), new.get("value", 0)
        if name.startswith("system-"):
            known = SYSTEM_CLASSES.get(name)
            if known is None:
                why = f"{name} is not a known system priority class"
            elif value != known[0]:
                why = f"value of {name} PriorityClass must be {known[0]}"
            elif new.get("globalDefault"):
                why = f"globalDefault of {name} PriorityClass must be false"
            else:
                why = ""
            if why:
                text = f"priority class names with 'system-' prefix are reserved for system use only. error: {why}"
                found.append(forbidden("metadata.name", text))
        elif value > HIGHEST_USER_PRIORITY:
            found.append(forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"))
        policy = new["preemptionPolicy"]
        if policy not in ("PreemptLowerPriority", "Never"):
            found.append(not_supported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never")))
        return found

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        found: list[FieldError] = []
        if new.get("value", 0) != old.get("value", 0):
            found.append(forbidden("value", "may not be changed in an update."))
        return found + same(new["preemptionPolicy"], old.get("preemptionPolicy"), "preemptionPolicy")

    def spec_changed(self, new: Document, old: Mapping[str, Any]) -> bool:
        return False


# ---------------------------------------------------------------- budgets


class BudgetStrategy(Strategy):
    group, kind, plural, singular = "policy", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget"
    short_names, has_generation = ("pdb",), True
    unconditional_update = False

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = _no_disruptions()

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return _budget_errors(new["spec"])

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["status"] = old["status"]

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return _budget_errors(new["spec"])


def _no_disruptions() -> Document:
    return {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def _budget_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    found: list[FieldError] = []
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        text = msgspec.json.encode(shown).decode()
        found.append(
            FieldError("spec", "FieldValueInvalid", f"Invalid value: {text}: minAvailable and maxUnavailable cannot be both set")
        )
    for name, amount in (("minAvailable", least), ("maxUnavailable", most)):
        if amount is not None:
            found += count_or_percent_errors(amount, f"spec.{name}")
    if "selector" in spec:
        found += label_selector_errors(spec["selector"], "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("IfHealthyBudget", "AlwaysAllow"):
        found.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget")))
    return found


_NO_PERCENT = (
    "a valid percent string must be a numeric value followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is "
    "'[0-9]+%')"
)


def count_or_percent_errors(amount: int | str, where: str) -> list[FieldError]:
    """A number of pods, or a share of them of at most all."""
    if isinstance(amount, int):
        return nonnegative(amount, where)
    if not re.fullmatch("[0-9]+%", amount):
        return [invalid(where, amount, _NO_PERCENT)]
    return [invalid(where, amount, "must not be greater than 100%")] if int(amount[:-1]) > 100 else []


def _budget_status_errors(context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
    status = new.get("status", {})
    found: list[FieldError] = []
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        found += nonnegative(status.get(name, 0), f"status.{name}")
    return found


# ---------------------------------------------------------------- limit ranges and quotas

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


# ---------------------------------------------------------------- events, leases, config maps, service accounts


class EventStrategy(Strategy):
    kind, plural, singular, short_names = "Event", "events", "event", ("ev",)

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        about = new.get("involvedObject", {}).get("namespace", "")
        namespace = new["metadata"].get("namespace", "")
        if namespace != (about or "default") and not (not about and namespace == "kube-system"):
            text = (
                "does not match event.namespace"
                if about
                else "involvedObject.namespace is required if event.namespace is not default"
            )
            return [invalid("involvedObject.namespace", about, text)]
        return []


class LeaseStrategy(Strategy):
    group, kind, plural, singular = "coordination.k8s.io", "Lease", "leases", "lease"
    unconditional_update = False

    def prepare_create(self, context: Context, new: Document) -> None:
        _drop_election(new)

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return _lease_errors(new)

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        _drop_election(new)

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return _lease_errors(new)


def _drop_election(lease: Document) -> None:
    """Gate CoordinatedLeaderElection is off."""
    for name in ("strategy", "preferredHolder"):
        lease.get("spec", {}).pop(name, None)


def _lease_errors(lease: Document) -> list[FieldError]:
    spec = lease.get("spec", {})
    found: list[FieldError] = []
    lasts = spec.get("leaseDurationSeconds")
    if lasts is not None and lasts <= 0:
        found.append(invalid("spec.leaseDurationSeconds", lasts, "must be greater than 0"))
    return found + nonnegative(spec.get("leaseTransitions"), "spec.leaseTransitions")


_CONFIG_KEY = re.compile("[-._a-zA-Z0-9]+")
CONFIG_BYTES_MAX = 1024 * 1024


class ConfigMapStrategy(Strategy):
    kind, plural, singular, short_names = "ConfigMap", "configmaps", "configmap", ("cm",)

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return _config_errors(new)

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        found: list[FieldError] = []
        if old.get("immutable"):
            text = "field is immutable when `immutable` is set"
            if not new.get("immutable"):
                found.append(forbidden("immutable", text))
            found += [forbidden(part, text) for part in ("data", "binaryData") if new.get(part, {}) != old.get(part, {})]
        return found + _config_errors(new)

    def spec_changed(self, new: Document, old: Mapping[str, Any]) -> bool:
        return False


def _config_errors(config: Document) -> list[FieldError]:
    found: list[FieldError] = []
    data, binary = config.get("data", {}), config.get("binaryData", {})
    for part, entries in (("data", data), ("binaryData", binary)):
        for key in entries:
            found += [invalid(f"{part}[{key}]", key, finding) for finding in config_key_findings(key)]
    found += [invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in data if key in binary]
    size = sum(len(value.encode()) for value in data.values()) + sum(len(value) * 3 // 4 for value in binary.values())
    if size > CONFIG_BYTES_MAX:
        found.append(too_long("", CONFIG_BYTES_MAX))
    return found


def config_key_findings(key: str) -> list[str]:
    found = [] if len(key) <= 253 else ["must be no more than 253 characters"]
    if not _CONFIG_KEY.fullmatch(key):
        found.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
            "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key in (".", ".."):
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return found


class ServiceAccountStrategy(Strategy):
    kind, plural, singular, short_names = "ServiceAccount", "serviceaccounts", "serviceaccount", ("sa",)


# ---------------------------------------------------------------- replica sets and deployments


def template_errors(profile: Profile, spec: Mapping[str, Any], what: str = "deployment") -> list[FieldError]:
    """The selector, and that the template bears the labels it asks for."""
    found: list[FieldError] = []
    selector = spec.get("selector")
    labels = spec.get("template", {}).get("metadata", {}).get("labels", {})
    if selector is None:
        found.append(required("spec.selector"))
    else:
        found += label_selector_errors(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            found.append(invalid("spec.selector", selector, f"empty selector is invalid for {what}"))
        elif not found and not selector_of(selector).matches(labels):
            found.append(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
    template = spec.get("template", {})
    labelled = template.get("metadata", {}).get("labels", {})
    for key, value in labelled.items():
        found += [invalid("spec.template.labels", key, finding) for finding in qualified_name(key)]
        found += [invalid("spec.template.labels", value, finding) for finding in label_value(value)]
    pod = template.get("spec", {})
    found += validate_pod_spec(pod, "spec.template.spec", assigned=profile.knows_assigned_resources)
    if pod.get("restartPolicy", "Always") != "Always":
        found.append(not_supported("spec.template.spec.restartPolicy", pod["restartPolicy"], ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        found.append(forbidden("spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds in ReplicaSet is not Supported"))
    return found


class Templated(Strategy):
    """What replica sets, deployments, stateful sets and daemon sets share."""

    group, categories, has_generation = "apps", ("all",), True

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        template = spec.setdefault("template", {})
        template.setdefault("metadata", {})
        default_pod_spec(template.setdefault("spec", {}))

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["status"] = old["status"]


class ReplicaSetStrategy(Templated):
    kind, plural, singular, short_names = "ReplicaSet", "replicasets", "replicaset", ("rs",)

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {"replicas": 0}

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        spec = new["spec"]
        return (
            nonnegative(spec.get("replicas"), "spec.replicas")
            + nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
            + template_errors(context.profile, spec)
        )

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return self.validate_create(context, new) + same(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")


class DeploymentStrategy(Templated):
    kind, plural, singular, short_names = "Deployment", "deployments", "deployment", ("deploy",)

    def default(self, document: Document) -> None:
        super().default(document)
        spec = document["spec"]
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {}

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        spec = new["spec"]
        found: list[FieldError] = []
        for name in ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
            found += nonnegative(spec.get(name), f"spec.{name}")
        if spec["progressDeadlineSeconds"] <= spec.get("minReadySeconds", 0):
            text = "must be greater than minReadySeconds"
            found.append(invalid("spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"], text))
        return found + _rollout_errors(spec["strategy"]) + template_errors(context.profile, spec)

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return self.validate_create(context, new) + same(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")

    def spec_changed(self, new: Document, old: Mapping[str, Any]) -> bool:
        return bool(new["spec"] != old["spec"] or new["metadata"].get("annotations") != old["metadata"].get("annotations"))


def _rollout_errors(strategy: Mapping[str, Any]) -> list[FieldError]:
    at = "spec.strategy"
    rolling = strategy.get("rollingUpdate")
    match strategy["type"]:
        case "Recreate":
            text = "may not be specified when strategy `type` is 'Recreate'"
            return [forbidden(f"{at}.rollingUpdate", text)] if rolling is not None else []
        case "RollingUpdate":
            found: list[FieldError] = []
            assert rolling is not None, "defaulted"
            for name in ("maxUnavailable", "maxSurge"):
                if not isinstance(rolling[name], int) and name == "maxSurge" and re.fullmatch("[0-9]+%", rolling[name]):
                    continue
                found += count_or_percent_errors(rolling[name], f"{at}.rollingUpdate.{name}")
            if all(str(rolling[name]).rstrip("%") == "0" for name in ("maxUnavailable", "maxSurge")):
                text = "may not be 0 when `maxSurge` is 0"
                found.append(invalid(f"{at}.rollingUpdate.maxUnavailable", rolling["maxUnavailable"], text))
            return found
        case other:
            return [not_supported(f"{at}.type", other, ("Recreate", "RollingUpdate"))]


def _scaled_status_errors(context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
    status = new.get("status", {})
    found: list[FieldError] = []
    for name in (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "unavailableReplicas",
    ):
        found += nonnegative(status.get(name), f"status.{name}")
    total = status.get("replicas", 0)
    for name in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
        if status.get(name, 0) > total:
            found.append(invalid(f"status.{name}", status[name], "cannot be greater than status.replicas"))
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        found.append(invalid("status.availableReplicas", status["availableReplicas"], "cannot be greater than readyReplicas"))
    return found


# ---------------------------------------------------------------- the table


def field_at(*path: str) -> Callable[[Mapping[str, Any]], str]:
    """A field selector's value: what stands at ``path``, the empty string for nothing."""

    def read(document: Mapping[str, Any]) -> str:
        found: Any = document
        for step in path:
            found = found.get(step)
            if found is None:
                return ""
        if isinstance(found, bool):
            return "true" if found else "false"
        return str(found)

    return read


def _event_source(document: Mapping[str, Any]) -> str:
    return str(document.get("source", {}).get("component", "") or document.get("reportingComponent", ""))


def _host_network(document: Mapping[str, Any]) -> str:
    return "true" if document.get("spec", {}).get("hostNetwork") else "false"


POD_FIELDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "spec.nodeName": field_at("spec", "nodeName"),
    "spec.restartPolicy": field_at("spec", "restartPolicy"),
    "spec.schedulerName": field_at("spec", "schedulerName"),
    "spec.serviceAccountName": field_at("spec", "serviceAccountName"),
    "spec.hostNetwork": _host_network,
    "status.phase": field_at("status", "phase"),
    "status.podIP": field_at("status", "podIP"),
    "status.podIPs": field_at("status", "podIP"),
    "status.nominatedNodeName": field_at("status", "nominatedNodeName"),
}

EVENT_FIELDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    **{
        f"involvedObject.{name}": field_at("involvedObject", name)
        for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
    "reason": field_at("reason"),
    "reportingComponent": field_at("reportingComponent"),
    "source": _event_source,
    "type": field_at("type"),
}


def _with_status(
    strategy: Strategy, errors: Callable[[Context, Document, Mapping[str, Any]], list[FieldError]] | None = None
) -> dict[str, Strategy]:
    return {"status": StatusStrategy(strategy, errors)}


def resources(pods: Resource) -> dict[str, Resource]:
    """All that is served, by resource (``pods``, ``replicasets.apps``). ``pods`` is the row of pods."""
    namespace, node, budget, quota = NamespaceStrategy(), NodeStrategy(), BudgetStrategy(), QuotaStrategy()
    replica_set, deployment, service = ReplicaSetStrategy(), DeploymentStrategy(), ServiceStrategy()
    rows = [
        pods,
        Resource(
            namespace,
            {"status": StatusStrategy(namespace, _namespace_status_errors), "finalize": FinalizeStrategy()},
            name_rule="label",
            fields={"status.phase": field_at("status", "phase")},
        ),
        Resource(
            node,
            _with_status(node, lambda context, new, old: _node_status_errors(new)),
            fields={"spec.unschedulable": lambda document: "true" if document.get("spec", {}).get("unschedulable") else "false"},
        ),
        Resource(PriorityClassStrategy()),
        Resource(budget, _with_status(budget, _budget_status_errors), name_rule="path"),
        Resource(LimitRangeStrategy()),
        Resource(quota, _with_status(quota, _quota_status_errors), returns_deleted=True),
        Resource(EventStrategy(), fields=EVENT_FIELDS, name_rule="path"),
        Resource(LeaseStrategy()),
        Resource(ConfigMapStrategy()),
        Resource(ServiceAccountStrategy(), returns_deleted=True),
        Resource(service, _with_status(service), name_rule="label", returns_deleted=True),
        Resource(
            replica_set,
            _with_status(replica_set, _scaled_status_errors),
            fields={"status.replicas": lambda document: str(document.get("status", {}).get("replicas", 0))},
            scales=True,
        ),
        Resource(deployment, _with_status(deployment, _scaled_status_errors), scales=True),
    ]
    return {row.strategy.resource: row for row in rows}


# ---------------------------------------------------------------- what stands from the start

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


KUBERNETES: Document = {
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "type": "ClusterIP",
        "clusterIP": "10.96.0.1",
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
    },
}
"""The service by which pods of a real cluster reach the API server."""


def boot_objects() -> list[tuple[str, Document]]:
    """What a fresh cluster has: (resource, document) in the order of creation."""
    made: list[tuple[str, Document]] = [("namespaces", {"metadata": {"name": name}}) for name in NAMESPACES]
    for name, (value, description) in SYSTEM_CLASSES.items():
        document = {
            "metadata": {"name": name},
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        made.append(("priorityclasses.scheduling.k8s.io", document))
    return made
