"""Namespaces: their finalizers, their phase, their end."""

from collections.abc import Mapping
from typing import Any

from elbowroom.api.fielderrors import FieldError, invalid
from elbowroom.api.names import qualified_name
from elbowroom.apiserver.kinds.base import Resource, StatusStrategy, field_at
from elbowroom.apiserver.metadata import NO_FINALIZER, STANDARD_FINALIZERS
from elbowroom.apiserver.strategy import Context, Document, Strategy

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


def row() -> Resource:
    """The row of namespaces."""
    strategy = NamespaceStrategy()
    return Resource(
        strategy,
        {"status": StatusStrategy(strategy, _namespace_status_errors), "finalize": FinalizeStrategy()},
        name_rule="label",
        fields={"status.phase": field_at("status", "phase")},
    )
