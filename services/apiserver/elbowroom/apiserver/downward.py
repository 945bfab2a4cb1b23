"""What a pod may be told of itself: the references of the Downward API, in environments and in volumes, in upstream's words."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.api import names
from elbowroom.api.fielderrors import FieldError, invalid, not_supported, required
from elbowroom.api.quantity import parse
from elbowroom.apiserver import localpaths

Errors = list[FieldError]
Node = Mapping[str, Any]

ASSIGNED_CPUSET = "assigned.cpuset"
"""KEP-6122, design A: the CPUs that a container has or is about to have. In volumes only."""

_IN_VOLUMES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_IN_ENVIRONMENTS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_KNOWN = frozenset([*_IN_VOLUMES, *_IN_ENVIRONMENTS, "spec.restartPolicy", "spec.schedulerName", "status.phase"])
_RESOURCES = tuple(f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory"))
_HUGEPAGES = ("limits.hugepages-", "requests.hugepages-")
_SIZES = ("1", *(f"1{unit}{kind}" for kind in ("", "i") for unit in ("KMGTPE" if kind else "kMGTPE")))
_SUBSCRIPT = re.compile(r"(?P<path>.+?)\['(?P<key>.*)'\]", re.DOTALL)


def validate_volume(source: Node, path: str, *, assigned: bool) -> Errors:
    """A volume's or a projection's ``downwardAPI``; upstream's paths do not tell which item is meant. ``assigned``: may an item
    ask for ``assigned.cpuset``?"""
    errors = localpaths.file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or []:
        errors += _item(item, path, assigned)
    return errors


def validate_field(reference: Node, path: str) -> Errors:
    """A ``fieldRef`` of an environment variable."""
    return _field(reference, path, _IN_ENVIRONMENTS)


def validate_resource(reference: Node, path: str) -> Errors:
    """A ``resourceFieldRef`` of an environment variable; without a container's name it means its own."""
    return _resource(reference, path, in_volume=False, assigned=False)


def asks_for_assigned(spec: Node) -> bool:
    """Does a volume of that PodSpec ask for ``assigned.cpuset``?"""
    return any(
        (item.get("resourceFieldRef") or {}).get("resource") == ASSIGNED_CPUSET
        for volume in spec.get("volumes") or []
        for source in [volume, *((volume.get("projected") or {}).get("sources") or [])]
        for item in (source.get("downwardAPI") or {}).get("items") or []
    )


def _item(item: Node, path: str, assigned: bool) -> Errors:
    errors = localpaths.required_file(item.get("path", ""), f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        errors += _field(field, f"{path}.fieldRef", _IN_VOLUMES)
        if resource is not None:
            errors.append(invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
    elif resource is not None:
        errors += _resource(resource, f"{path}.resourceFieldRef", in_volume=True, assigned=assigned)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + localpaths.file_mode(item.get("mode"), f"{path}.mode")


def _field(reference: Node, path: str, known: Sequence[str]) -> Errors:
    version, wanted = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    for name, value in (("apiVersion", version), ("fieldPath", wanted)):
        if not value:
            return [required(f"{path}.{name}")]
    found = _SUBSCRIPT.fullmatch(wanted)
    maps = ("metadata.annotations", "metadata.labels")
    finding = ""
    if version != "v1":
        finding = f"unsupported pod version: {version}"
    elif found is not None and found["path"] not in maps:
        finding = f"field label does not support subscript: {wanted}"
    elif found is None and wanted not in _KNOWN and wanted != "spec.host":
        finding = f"field label not supported: {wanted}"
    if finding:
        return [invalid(f"{path}.fieldPath", wanted, f"error converting fieldPath: {finding}")]
    if found is not None:
        key = found["key"].lower() if found["path"] == maps[0] else found["key"]
        return [invalid(path, key, why) for why in names.qualified_name(key)]
    internal = "spec.nodeName" if wanted == "spec.host" else wanted
    return [] if internal in known else [not_supported(f"{path}.fieldPath", internal, sorted(known))]


def _resource(reference: Node, path: str, *, in_volume: bool, assigned: bool) -> Errors:
    errors: Errors = []
    resource = reference.get("resource", "")
    known = [*_RESOURCES, *((ASSIGNED_CPUSET,) if assigned else ())]
    if in_volume and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in known and not resource.startswith(_HUGEPAGES):
        errors.append(not_supported(f"{path}.resource", resource, sorted(known)))
    return errors + _divisor(resource, reference.get("divisor"), f"{path}.divisor")


def _divisor(resource: str, divisor: Any, path: str) -> Errors:
    if divisor is None or parse(str(divisor)).nanos == 0:
        return []
    kind = resource.partition(".")[2]
    allowed, word = _SIZES, {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(kind, "")
    if kind == "cpu":
        allowed, word = ("1m", "1"), "cpu"
    elif kind.startswith("hugepages-"):
        word = "hugepages"
    if not word or resource.partition(".")[0] not in ("limits", "requests") or parse(str(divisor)).canonical() in allowed:
        return []
    values = " and ".join(allowed) if kind == "cpu" else ", ".join(allowed)
    return [invalid(path, resource, f"only divisor's values {values} are supported with the {word} resource")]
