"""Nodes: taints, addresses, what they declare, and their policy of preemption for resizes (SC-130, SC-133)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.api import quantity
from elbowroom.api.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from elbowroom.api.names import cidr, label_value, qualified_name
from elbowroom.apiserver.kinds.base import Resource, with_status
from elbowroom.apiserver.pod_validation import is_integer_resource
from elbowroom.apiserver.strategy import Context, Document, Strategy

_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_FEATURE = re.compile(r"[A-Z][A-Za-z0-9]*(/[A-Za-z][A-Za-z0-9]*)*")
_NO_CIDR = "2001:db8::/64)"
"""How the finding of what is no subnet at all ends."""
POLICY_ENTRIES_MAX = 20
PREEMPTION_GATE = "InPlacePodVerticalScalingSchedulerPreemption"


class NodeStrategy(Strategy):
    kind, plural, singular, short_names, namespaced = "Node", "nodes", "node", ("no",), False

    def default(self, document: Document) -> None:
        status, spec = document.setdefault("status", {}), document.setdefault("spec", {})
        if "allocatable" not in status and "capacity" in status:
            status["allocatable"] = dict(status["capacity"])
        if spec.get("podCIDR") and (not spec.get("podCIDRs") or spec["podCIDRs"][0] != spec["podCIDR"]):
            spec["podCIDRs"] = [spec["podCIDR"]]  # where they differ, the old field counts
        elif spec.get("podCIDRs") and not spec.get("podCIDR"):
            spec["podCIDR"] = spec["podCIDRs"][0]

    def prepare_create(self, context: Context, new: Document) -> None:
        new["spec"].pop("configSource", None)
        _drop_policy(context, new["spec"], {})

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return _node_errors(new) + _cidr_errors(new["spec"].get("podCIDRs", [])) + _node_status_errors(new)

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
        if before.get("externalID", "") != after.get("externalID", ""):
            found.append(forbidden("spec.externalID", "may not be updated"))
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
    return found + _policy_errors(spec.get("podPreemptionPolicy", {}).get("disableResizePreemption", []))


def _cidr_errors(cidrs: Sequence[str]) -> list[FieldError]:
    """Only a node that is made has its subnets judged; later they can only be given, once."""
    where = "spec.podCIDRs"
    found = [invalid(f"{where}[{index}]", one, why) for index, one in enumerate(cidrs) for why in cidr(one)]
    if len(cidrs) < 2 or any(error.body.endswith(_NO_CIDR) for error in found):
        return found
    families = [":" in one for one in cidrs]
    if len(cidrs) > 2 or families[0] == families[1]:
        found.append(invalid(where, cidrs, "may specify no more than one CIDR for each IP family"))
    return found


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


def _node_status_errors(node: Document, old: Mapping[str, Any] | None = None) -> list[FieldError]:
    """``old``: the stored node, where there is one; upstream judges some things only of new ones, and some only later."""
    found: list[FieldError] = []
    status = node["status"]
    for part in ("capacity", "allocatable"):
        for name, amount in status.get(part, {}).items():
            value = quantity.parse(amount)
            if value.nanos < 0:
                found.append(invalid(f"status.{part}.{name}", amount, "must be greater than or equal to 0"))
            if is_integer_resource(name) and value.nanos % 10**9:
                found.append(invalid(f"status.{part}.{name}", amount, "must be an integer"))
    swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    if swap is not None and swap <= 0 and old is None:
        found.append(invalid("metadata.nodeSwapStatus.capacity", swap, "must be greater than zero"))
    addresses = [(one.get("type", ""), one.get("address", "")) for one in status.get("addresses") or [] if old is not None]
    for index, (kind, address) in enumerate(addresses):
        if (kind, address) in addresses[:index]:
            shown = {"Address": address, "Type": kind}
            found.append(duplicate(f"status.addresses[{index}]", shown))
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
        with_status(strategy, lambda context, new, old: _node_status_errors(new, old)),
        fields={"spec.unschedulable": lambda document: "true" if document.get("spec", {}).get("unschedulable") else "false"},
    )
