"""Priority classes."""

from collections.abc import Mapping
from typing import Any

from elbowroom.api.fielderrors import FieldError, forbidden, not_supported
from elbowroom.apiserver.kinds.base import Resource
from elbowroom.apiserver.kinds.checks import same
from elbowroom.apiserver.strategy import Context, Document, Strategy

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


def row() -> Resource:
    """The row of priority classes."""
    return Resource(PriorityClassStrategy())
