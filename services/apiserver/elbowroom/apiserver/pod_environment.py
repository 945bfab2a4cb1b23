"""What upstream refuses in the environment of a pod's containers, in its words."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.api import names
from elbowroom.api.fielderrors import FieldError, each, invalid, not_found, required
from elbowroom.apiserver import downward, localpaths
from elbowroom.apiserver.pod_security import containers_of

Errors = list[FieldError]
Node = Mapping[str, Any]

_NAME = re.compile(r"[ -<>-~]+")
_NAME_FINDING = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_TWO_SOURCES = "may not have more than one field specified at a time"


def _variable_name(path: str, name: str) -> Errors:
    return [] if _NAME.fullmatch(name) else [invalid(path, name, _NAME_FINDING)]


def validate_env(variables: Sequence[Node] | None, path: str) -> Errors:
    """A container's ``env``."""
    errors: Errors = []
    for at, variable in each(path, variables):
        name = variable.get("name", "")
        errors += _variable_name(f"{at}.name", name) if name else [required(f"{at}.name")]
        if variable.get("valueFrom") is not None:
            errors += _source(variable, f"{at}.valueFrom")
    return errors


def _source(variable: Node, path: str) -> Errors:
    source = variable["valueFrom"]
    said = [kind for kind in _SOURCES if source.get(kind) is not None]
    errors: Errors = []
    for kind in said:
        reference, at = source[kind], f"{path}.{kind}"
        if kind == "fieldRef":
            errors += downward.validate_field(reference, at)
        elif kind == "resourceFieldRef":
            errors += downward.validate_resource(reference, at)
        elif kind == "fileKeyRef":
            errors += _file_key(reference, at)
        else:
            errors += _key(reference, at)
    if not said:
        errors.append(invalid(path, "", _NO_SOURCE))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(said) > 1:
        errors.append(invalid(path, "", _TWO_SOURCES))
    return errors


def _key(reference: Node, path: str) -> Errors:
    name, key = reference.get("name", ""), reference.get("key", "")
    errors = [invalid(f"{path}.name", name, why) for why in names.dns1123_subdomain(name)]
    if not key:
        return [*errors, required(f"{path}.key")]
    return errors + [invalid(f"{path}.key", key, why) for why in names.data_key(key)]


def _file_key(reference: Node, path: str) -> Errors:
    key, volume, target = (reference.get(field, "") for field in ("key", "volumeName", "path"))
    errors = _variable_name(f"{path}.key", key) if key else [required(f"{path}.key")]
    if not volume:
        errors.append(required(f"{path}.volumeName"))
    else:
        errors += [invalid(f"{path}.volumeName", volume, why) for why in names.dns1123_label(volume)]
    return errors + (localpaths.without_backsteps(target, f"{path}.path") if target else [required(f"{path}.path")])


def validate_env_from(sources: Sequence[Node] | None, path: str) -> Errors:
    """A container's ``envFrom``; that there is no source, or more than one, upstream says of the whole list."""
    errors: Errors = []
    for at, source in each(path, sources):
        if source.get("prefix"):
            errors += _variable_name(f"{at}.prefix", source["prefix"])
        said = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in said:
            name, where = source[kind].get("name", ""), f"{at}.{kind}.name"
            errors += [invalid(where, name, why) for why in names.generated_name(name)] if name else [required(where)]
        if not said:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(said) > 1:
            errors.append(invalid(path, "", _TWO_SOURCES))
    return errors


def validate_file_volumes(spec: Node, path: str) -> Errors:
    """A file that a variable is read from lies in an ``emptyDir`` of the pod."""
    volumes = {volume.get("name", ""): volume for volume in spec.get("volumes") or []}
    errors: Errors = []
    for where, container in containers_of(spec, path):
        for at, variable in each(f"{where}.env", container.get("env")):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name, field = reference.get("volumeName", ""), f"{at}.valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                errors.append(not_found(field, name))
            elif volumes[name].get("emptyDir") is None:
                errors.append(invalid(field, name, "referenced volume must be of type emptyDir"))
    return errors
