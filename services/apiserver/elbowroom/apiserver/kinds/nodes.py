"""Nodes: taints, addresses, what they declare, and their policy of preemption for resizes (SC-130, SC-133)."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.api import quantity
from elbowroom.api.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from elbowroom.api.names import label_value, qualified_name
from elbowroom.apiserver.kinds.base import Resource, with_status
from elbowroom.apiserver.strategy import Context, Document, Strategy

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


def row() -> Resource:
    """The row of nodes."""
    strategy = NodeStrategy()
    return Resource(
        strategy,
        with_status(strategy, lambda context, new, old: _node_status_errors(new)),
        fields={"spec.unschedulable": lambda document: "true" if document.get("spec", {}).get("unschedulable") else "false"},
    )
