"""Events, leases, config maps and service accounts."""

from collections.abc import Callable, Mapping
from typing import Any

from elbowroom.api.fielderrors import FieldError, forbidden, invalid, too_long
from elbowroom.api.names import data_key
from elbowroom.apiserver.kinds.base import Resource, field_at
from elbowroom.apiserver.kinds.checks import nonnegative
from elbowroom.apiserver.strategy import Context, Document, Strategy


def _event_source(document: Mapping[str, Any]) -> str:
    return str(document.get("source", {}).get("component", "") or document.get("reportingComponent", ""))


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
            found += [invalid(f"{part}[{key}]", key, finding) for finding in data_key(key)]
    found += [invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in data if key in binary]
    size = sum(len(value.encode()) for value in data.values()) + sum(len(value) * 3 // 4 for value in binary.values())
    if size > CONFIG_BYTES_MAX:
        found.append(too_long("", CONFIG_BYTES_MAX))
    return found


class ServiceAccountStrategy(Strategy):
    kind, plural, singular, short_names = "ServiceAccount", "serviceaccounts", "serviceaccount", ("sa",)


def rows() -> list[Resource]:
    """The rows of these kinds."""
    return [
        Resource(EventStrategy(), fields=EVENT_FIELDS, name_rule="path"),
        Resource(LeaseStrategy()),
        Resource(ConfigMapStrategy()),
        Resource(ServiceAccountStrategy(), returns_deleted=True),
    ]
