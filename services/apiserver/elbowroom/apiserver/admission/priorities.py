"""Priority: the priority of a pod or a PodGroup comes from its class and is settled when it is created (SC-126)."""

from collections.abc import Mapping
from typing import Any

from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.strategy import Context, Document

CLASSES = "priorityclasses.scheduling.k8s.io"
POD_GROUPS = "podgroups.scheduling.k8s.io"


class Priority(Plugin):
    name = "Priority"
    concerns = ("pods", POD_GROUPS, CLASSES)

    def admit(self, context: Context, attributes: Attributes) -> Refusal | None:
        if attributes.resource == POD_GROUPS and attributes.operation == "CREATE" and attributes.new is not None:
            return None if attributes.subresource else _settle_group(context, attributes.new["spec"])
        if attributes.resource != "pods" or attributes.subresource or attributes.new is None:
            return None
        if attributes.operation == "CREATE":
            return _settle(context, attributes.new["spec"])
        if attributes.operation == "UPDATE" and attributes.old is not None:
            _keep(attributes.new["spec"], attributes.old["spec"])
        return None

    def validate(self, context: Context, attributes: Attributes) -> Refusal | None:
        if attributes.resource != CLASSES or attributes.subresource or attributes.new is None or attributes.operation == "DELETE":
            return None
        if not attributes.new.get("globalDefault"):
            return None
        default = _default_class(context)
        if default is None or (attributes.operation == "UPDATE" and default["metadata"]["name"] == attributes.name):
            return None
        name = default["metadata"]["name"]
        return Refusal(f"PriorityClass {name} is already marked as default. Only one default can exist")


def _class_of(context: Context, spec: Document) -> Mapping[str, Any] | Refusal | None:
    name = spec.get("priorityClassName")
    found: Mapping[str, Any] | None = context.reader.get(CLASSES, "", name) if name else _default_class(context)
    return Refusal(f"no PriorityClass with name {name} was found") if name and found is None else found


def _settle_group(context: Context, spec: Document) -> Refusal | None:
    found = _class_of(context, spec)
    if isinstance(found, Refusal):
        return found
    priority = found.get("value", 0) if found is not None else 0
    said = spec.get("priority")
    if said is not None and said != priority:
        return Refusal(
            f"priority set in the pod group ({said}) must match the priority computed ({priority}) "
            "based on the priority class set in the spec"
        )
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    spec["priority"] = priority
    return None


def _settle(context: Context, spec: Document) -> Refusal | None:
    found = _class_of(context, spec)
    if isinstance(found, Refusal):
        return found
    priority, policy = 0, "PreemptLowerPriority"
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
        priority, policy = found.get("value", 0), found.get("preemptionPolicy") or "PreemptLowerPriority"
    said = spec.get("priority")
    if said is not None and said != priority:
        return Refusal(
            f"the integer value of priority ({said}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
    said = spec.get("preemptionPolicy")
    if said is not None and said != policy:
        return Refusal(
            f"the string value of PreemptionPolicy ({said}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
    spec["priority"], spec["preemptionPolicy"] = priority, policy
    return None


def _keep(new: Document, old: Mapping[str, Any]) -> None:
    for name in ("priority", "preemptionPolicy"):
        if new.get(name) is None and old.get(name) is not None:
            new[name] = old[name]


def _default_class(context: Context) -> Mapping[str, Any] | None:
    """Of several defaults (two came in at once) the lowest counts."""
    defaults = [document for document in context.reader.list(CLASSES) if document.get("globalDefault")]
    return min(defaults, key=lambda document: (document.get("value", 0), document["metadata"]["name"]), default=None)
