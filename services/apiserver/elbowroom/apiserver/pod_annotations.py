"""What upstream refuses in those annotations of a pod that mean something, in its words."""

import re
from collections.abc import Mapping
from typing import Any

from elbowroom.api.fielderrors import FieldError, forbidden, invalid
from elbowroom.apiserver import localpaths
from elbowroom.apiserver.pod_security import containers_of

Errors = list[FieldError]
Node = Mapping[str, Any]

MIRROR = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_COST = re.compile(r"0|-?[1-9][0-9]*|-0+[0-9]*", re.ASCII)
_COST_LIMIT = 2**31
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR_OF = "container.apparmor.security.beta.kubernetes.io/"
_AT = "metadata.annotations"


def validate_annotations(pod: Node) -> Errors:
    """The annotations of a pod that is created or updated."""
    annotations: Mapping[str, str] = _annotations_of(pod)
    spec: Node = pod["spec"]
    errors: Errors = []
    if MIRROR in annotations and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{_AT}[{MIRROR}]", annotations[MIRROR], why))
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_cost(cost):
        errors.append(invalid(f"{_AT}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    for name, value in annotations.items():
        if name == _SECCOMP or name.startswith(_SECCOMP_OF):
            errors += _seccomp(value, f"{_AT}.{name}")
        elif name.startswith(_APPARMOR_OF):
            errors += _apparmor(spec, name, value)
    return errors


def _annotations_of(pod: Node) -> Mapping[str, str]:
    return (pod.get("metadata") or {}).get("annotations") or {}


def _is_cost(text: str) -> bool:
    return _COST.fullmatch(text) is not None and -_COST_LIMIT <= int(text) < _COST_LIMIT


def _seccomp(profile: str, path: str) -> Errors:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith("localhost/"):
        return localpaths.descending(profile.removeprefix("localhost/"), path)
    return [invalid(path, profile, "must be a valid seccomp profile")]


def _apparmor(spec: Node, name: str, profile: str) -> Errors:
    container, path = name.removeprefix(_APPARMOR_OF), f"{_AT}[{name}]"
    known = any(one.get("name") == container for _, one in containers_of(spec, "spec"))
    errors = [] if known else [invalid(path, container, "container not found")]
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith("localhost/"):
        shown = profile.replace("\\", "\\\\").replace('"', '\\"')
        errors.append(invalid(path, profile, f'invalid AppArmor profile name: "{shown}"'))
    return errors


def validate_annotation_updates(new: Node, old: Node) -> Errors:
    """What an update of the pod or of its status may not do to them, and ``validate_annotations``."""
    after: Mapping[str, str] = _annotations_of(new)
    before: Mapping[str, str] = _annotations_of(old)
    errors: Errors = []
    for name, value in before.items():
        if after.get(name) == value:
            continue
        if name.startswith(_APPARMOR_OF):
            errors.append(forbidden(f"{_AT}[{name}]", "may not remove or update AppArmor annotations"))
        if name == MIRROR:
            errors.append(forbidden(f"{_AT}[{name}]", "may not remove or update mirror pod annotation"))
    for name in after:
        if name in before:
            continue
        if name.startswith(_APPARMOR_OF):
            errors.append(forbidden(f"{_AT}[{name}]", "may not add AppArmor annotations"))
        if name == MIRROR:
            errors.append(forbidden(f"{_AT}[{name}]", "may not add mirror pod annotation"))
    return errors + validate_annotations(new)
