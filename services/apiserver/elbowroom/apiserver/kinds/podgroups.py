"""Workloads and PodGroups (``scheduling.k8s.io/v1beta1``): pods that belong together, served where the gate GenericWorkload is on.

What hangs on gates that are not known here (composite groups, topology, resource claims, a group's own preemptionPolicy) is refused
or dropped as upstream does with those gates off.
"""

from collections.abc import Mapping
from typing import Any

from elbowroom.api.fielderrors import FieldError, duplicate, forbidden, invalid, required
from elbowroom.api.names import dns1123_label, dns1123_subdomain
from elbowroom.apiserver.kinds.base import Resource, with_status
from elbowroom.apiserver.kinds.priorities import HIGHEST_USER_PRIORITY
from elbowroom.apiserver.strategy import Context, Document, Strategy

GATE = "GenericWorkload"
TEMPLATES_MAX = 8
Node = Mapping[str, Any]
Errors = list[FieldError]


class WorkloadStrategy(Strategy):
    group, version, kind, plural, singular = "scheduling.k8s.io", "v1beta1", "Workload", "workloads", "workload"
    has_generation = True

    def prepare_create(self, context: Context, new: Document) -> None:
        for template in new["spec"].get("podGroupTemplates") or ():
            template.pop("resourceClaims", None)

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        self.prepare_create(context, new)

    def validate_create(self, context: Context, new: Document) -> Errors:
        spec = new["spec"]
        found = _controller_errors(spec.get("controllerRef"))
        templates = spec.get("podGroupTemplates") or []
        if len(templates) > TEMPLATES_MAX:
            return [*found, _too_many("spec.podGroupTemplates", len(templates), TEMPLATES_MAX)]
        names: list[str] = []
        for number, template in enumerate(templates):
            where = f"spec.podGroupTemplates[{number}]"
            name = template.get("name", "")
            found += _short_name_errors(name, f"{where}.name")
            if name in names:
                found.append(duplicate(where, {"name": name}))
            names.append(name)
            found += _common_errors(template, where)
        if spec.get("compositePodGroupTemplates"):
            found.append(_off("spec.compositePodGroupTemplates"))
        elif not templates:
            text = "must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"
            found.append(invalid("spec", "", text))
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        found = _unchanged(new["spec"], old["spec"], "spec", ("controllerRef",))
        before = {template["name"]: template for template in old["spec"].get("podGroupTemplates") or ()}
        after = {template.get("name", ""): template for template in new["spec"].get("podGroupTemplates") or ()}
        for number, name in enumerate(after):
            where = f"spec.podGroupTemplates[{number}]"
            if name not in before:
                found.append(forbidden(where, "item may not be added"))
            else:
                found += _update_errors(after[name], before[name], where)
        gone = [name for name in before if name not in after]
        found += [forbidden("spec.podGroupTemplates", "item may not be removed") for _ in gone]
        return found + self.validate_create(context, new)


class PodGroupStrategy(Strategy):
    group, version, kind, plural, singular = "scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups", "podgroup"
    has_generation = True

    def default(self, document: Document) -> None:
        document.setdefault("spec", {}).setdefault("disruptionMode", {"single": {}})

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {}
        new["spec"].pop("resourceClaims", None)

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        new["status"] = old.get("status", {})
        new["spec"].pop("resourceClaims", None)

    def validate_create(self, context: Context, new: Document) -> Errors:
        spec = new["spec"]
        found: Errors = []
        reference = spec.get("workloadRef")
        if reference is not None:
            found += _long_name_errors(reference.get("workloadName", ""), "spec.workloadRef.workloadName", is_required=True)
            found += _short_name_errors(reference.get("templateName", ""), "spec.workloadRef.templateName")
        if spec.get("parentCompositePodGroupName") is not None:
            found.append(_off("spec.parentCompositePodGroupName"))
        return found + _common_errors(spec, "spec")

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        found = _unchanged(new["spec"], old["spec"], "spec", ("workloadRef",))
        return found + _update_errors(new["spec"], old["spec"], "spec") + self.validate_create(context, new)


# ---------------------------------------------------------------- what is valid


def _common_errors(spec: Node, where: str) -> Errors:
    """What a group and a template of one have in common."""
    policy = spec.get("schedulingPolicy") or {}
    found = _one_of(policy, ("basic", "gang"), f"{where}.schedulingPolicy")
    gang = policy.get("gang")
    if gang is not None:
        at, count = f"{where}.schedulingPolicy.gang.minCount", gang.get("minCount", 0)
        if count == 0:
            found.append(required(at))
        elif count < 1:
            found.append(invalid(at, count, "must be greater than or equal to 1"))
    if spec.get("schedulingConstraints") is not None:
        found.append(_off(f"{where}.schedulingConstraints"))
    if spec.get("disruptionMode") is not None:
        found += _one_of(spec["disruptionMode"], ("single", "all"), f"{where}.disruptionMode")
    found += _long_name_errors(spec.get("priorityClassName") or "", f"{where}.priorityClassName")
    priority = spec.get("priority")
    if priority is not None and priority > HIGHEST_USER_PRIORITY:
        found.append(invalid(f"{where}.priority", priority, f"must be less than or equal to {HIGHEST_USER_PRIORITY}"))
    if spec.get("preemptionPolicy") is not None:
        found.append(_off(f"{where}.preemptionPolicy"))
    return found


def _update_errors(new: Node, old: Node, where: str) -> Errors:
    """Only how many pods make a gang may change."""
    found = _unchanged(new, old, where, ("disruptionMode", "priorityClassName", "priority"))
    before, after = ((spec.get("schedulingPolicy") or {}) for spec in (old, new))
    found += _unchanged(after, before, f"{where}.schedulingPolicy", ("basic",))
    if after.get("gang") is not None and before.get("gang") is None:
        found.append(invalid(f"{where}.schedulingPolicy.gang", None, "field cannot be set once created"))
    if after.get("gang") is None and before.get("gang") is not None:
        found.append(invalid(f"{where}.schedulingPolicy.gang", None, "field cannot be cleared once set"))
    return found


def _off(where: str) -> FieldError:
    """The field hangs on a gate that is off."""
    return FieldError(where, "FieldValueForbidden", "Forbidden")


def _too_many(where: str, count: int, most: int) -> FieldError:
    return FieldError(where, "FieldValueTooMany", f"Too many: {count}: must have at most {most} items")


def _one_of(members: Node, names: tuple[str, ...], where: str) -> Errors:
    given = [name for name in names if members.get(name) is not None]
    every = ", ".join(f"`{name}`" for name in names)
    if len(given) > 1:
        return [invalid(where, "{" + ", ".join(given) + "}", f"must specify exactly one of: {every}")]
    return [] if given else [invalid(where, "", f"must specify one of: {every}")]


def _unchanged(new: Node, old: Node, where: str, names: tuple[str, ...]) -> Errors:
    return [invalid(f"{where}.{name}", None, "field is immutable") for name in names if new.get(name) != old.get(name)]


def _controller_errors(reference: Node | None) -> Errors:
    if reference is None:
        return []
    found = _long_name_errors(reference.get("apiGroup") or "", "spec.controllerRef.apiGroup")
    return found + [required(f"spec.controllerRef.{name}") for name in ("kind", "name") if not reference.get(name)]


def _short_name_errors(name: str, where: str) -> Errors:
    return [invalid(where, name, why) for why in dns1123_label(name)] if name else [required(where)]


def _long_name_errors(name: str, where: str, *, is_required: bool = False) -> Errors:
    if not name:
        return [required(where)] if is_required else []
    return [invalid(where, name, why) for why in dns1123_subdomain(name)]


def rows() -> tuple[Resource, ...]:
    """The rows of both kinds."""
    groups = PodGroupStrategy()
    return Resource(WorkloadStrategy()), Resource(groups, with_status(groups))
