"""What upstream refuses in the security contexts of a pod and its containers, and in what goes with an operating system."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from elbowroom.api import names
from elbowroom.api.fielderrors import (
    FieldError,
    duplicate,
    each,
    forbidden,
    invalid,
    invalid_struct,
    not_supported,
    required,
    too_long,
)
from elbowroom.apiserver import localpaths
from elbowroom.apiserver.internals import internal

Errors = list[FieldError]
Node = Mapping[str, Any]

_ID_MAX = 2**31 - 1
_ID_RANGE = f"must be between 0 and {_ID_MAX}, inclusive"
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PATH_MAX = 4095
_SYSCTL_MAX = 253
_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}$"
_IPC_SYSCTLS = (
    *("kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm"),
    *("kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg"),
)
_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_NOT_ON_LINUX = "windows options cannot be set for a linux pod"
_POD_FIELDS_OF_LINUX = (
    *("securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID", "hostIPC"),
    *("securityContext.seccompProfile", "securityContext.fsGroup", "securityContext.fsGroupChangePolicy"),
    *("securityContext.sysctls", "shareProcessNamespace", "securityContext.runAsUser", "securityContext.runAsGroup"),
    *("securityContext.supplementalGroups", "securityContext.supplementalGroupsPolicy", "securityContext.seLinuxChangePolicy"),
)
_CONTAINER_FIELDS_OF_LINUX = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged"),
    *("allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"),
)


def containers_of(spec: Node, path: str) -> Iterator[tuple[str, Node]]:
    """All containers of a PodSpec, in upstream's order, each with its path."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or []):
            yield f"{path}.{field}[{index}]", container


def validate_id(number: int | None, path: str) -> Errors:
    """The id of a user or a group, which may be absent."""
    return [] if number is None or 0 <= number <= _ID_MAX else [invalid(path, number, _ID_RANGE)]


def validate_container_context(spec: Node, container: Node, path: str) -> Errors:
    """A container's ``securityContext``, at ``path``."""
    context = container.get("securityContext")
    if context is None:
        return []
    errors = [error for field in ("runAsUser", "runAsGroup") for error in validate_id(context.get(field), f"{path}.{field}")]
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            errors.append(not_supported(f"{path}.procMount", mount, ("Default", "Unmasked")))
        if mount == "Unmasked" and spec.get("hostUsers") is not False:
            errors.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    errors += _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        shown = internal("SecurityContext", context)
        if context.get("privileged"):
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid_struct(path, shown, why))
        for capability in (context.get("capabilities") or {}).get("add") or []:
            if capability == "CAP_SYS_ADMIN":
                why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                errors.append(invalid_struct(path, shown, why))
    errors += _windows_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    return errors + _apparmor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def validate_pod_context(spec: Node, path: str) -> Errors:
    """A PodSpec's ``securityContext``, at ``path``."""
    context: Node = spec.get("securityContext") or {}
    errors = [
        error for field in ("fsGroup", "runAsUser", "runAsGroup") for error in validate_id(context.get(field), f"{path}.{field}")
    ]
    for at, group in each(f"{path}.supplementalGroups", context.get("supplementalGroups")):
        errors += validate_id(group, at)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, why))
    errors += _sysctls(spec, context, f"{path}.sysctls")
    errors += _choice(context, "fsGroupChangePolicy", path, ("Always", "OnRootMismatch"))
    errors += _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    errors += _windows_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    errors += _apparmor(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    errors += _choice(context, "supplementalGroupsPolicy", path, ("Merge", "Strict"))
    return errors + _choice(context, "seLinuxChangePolicy", path, ("MountOption", "Recursive"))


def _choice(context: Node, field: str, path: str, known: tuple[str, ...]) -> Errors:
    value = context.get(field)
    return [] if value is None or value in known else [not_supported(f"{path}.{field}", value, known)]


def _seccomp(profile: Node | None, path: str) -> Errors:
    if profile is None:
        return []
    errors = _profile_type(profile, path, "type is required when seccompProfile is set")
    local = profile.get("localhostProfile")
    if profile.get("type") == "Localhost":
        if local is None:
            errors.append(required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            errors += localpaths.descending(local, f"{path}.localhostProfile")
    elif local is not None:
        why = "can only be set when seccomp type is Localhost"
        errors.append(invalid_struct(f"{path}.localhostProfile", internal("SeccompProfile", profile), why))
    return errors


def _profile_type(profile: Node, path: str, why: str) -> Errors:
    kind = profile.get("type", "")
    if not kind:
        return [required(f"{path}.type", why)]
    return [] if kind in _PROFILES else [not_supported(f"{path}.type", kind, _PROFILES)]


def _apparmor(profile: Node | None, path: str) -> Errors:
    if profile is None:
        return []
    local, at = profile.get("localhostProfile"), f"{path}.localhostProfile"
    kind = profile.get("type", "")
    if kind not in _PROFILES:
        return _profile_type(profile, path, "type is required when appArmorProfile is set")
    if kind != "Localhost":
        why = "can only be set when AppArmor type is Localhost"
        return [] if local is None else [invalid(at, local, why)]
    if local is not None and local != local.strip():
        errors = [invalid(at, local, "must not be padded with whitespace")]
    elif not local:
        errors = [required(at, "must be set when AppArmor type is Localhost")]
    else:
        errors = []
    return errors + ([too_long(at, _PATH_MAX)] if len((local or "").encode()) > _PATH_MAX else [])


def _windows_options(options: Node | None, path: str) -> Errors:
    if options is None:
        return []
    errors: Errors = []
    name, credential, user = (options.get(field) for field in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"))
    if name is not None:
        errors += [invalid(f"{path}.gmsaCredentialSpecName", name, why) for why in names.dns1123_subdomain(name)]
    if credential == "":
        errors.append(invalid(f"{path}.gmsaCredentialSpec", "", "gmsaCredentialSpec cannot be an empty string"))
    if user == "":
        errors.append(invalid(f"{path}.runAsUserName", "", "runAsUserName cannot be an empty string"))
    return errors


def _sysctls(spec: Node, context: Node, path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, sysctl in enumerate(context.get("sysctls") or []):
        name, at = sysctl.get("name", ""), f"{path}[{index}].name"
        if not name:
            errors.append(required(at))
        elif len(name) > _SYSCTL_MAX or not re.search(_SYSCTL, name):
            errors.append(invalid(at, name, f"must have at most {_SYSCTL_MAX} characters and match regex {_SYSCTL}"))
        elif name in seen:
            errors.append(duplicate(at, name))
        dotted = _dotted(name)
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.append(invalid(at, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and (dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue.")):
            errors.append(invalid(at, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)
    return errors


def _dotted(sysctl: str) -> str:
    """``net/ipv4/x.y`` is ``net.ipv4.x/y``: the first separator tells which of the two it is."""
    first = re.search(r"[./]", sysctl)
    if first is None or first[0] == ".":
        return sysctl
    return sysctl.translate(str.maketrans("./", "/."))


def validate_host_users(spec: Node, path: str) -> Errors:
    """What goes not with a user namespace of the pod's own."""
    if spec.get("hostUsers") is not False:
        return []
    why = "when `hostUsers` is false"
    fields = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    errors = [forbidden(f"{path}.{shown}", why) for field, shown in fields if spec.get(field)]
    return errors + [forbidden(f"{at}.volumeDevices", why) for at, one in containers_of(spec, path) if one.get("volumeDevices")]


def validate_os(spec: Node, path: str) -> Errors:
    """``spec.os``, and what only the other operating system has."""
    if spec.get("os") is None:
        return []
    name = spec["os"].get("name", "")
    if not name:
        return [required(f"{path}.os.name")]
    if name == "linux":
        at = f"{path}.securityContext.windowsOptions"
        errors = [forbidden(at, _NOT_ON_LINUX)] if _said(spec, "securityContext.windowsOptions") else []
        return errors + [
            forbidden(f"{where}.securityContext.windowsOptions", _NOT_ON_LINUX)
            for where, container in containers_of(spec, path)
            if (container.get("securityContext") or {}).get("windowsOptions") is not None
        ]
    if name != "windows":
        return [not_supported(f"{path}.os", name, ("linux", "windows"))]
    errors = [forbidden(f"{path}.{field}", _NOT_ON_WINDOWS) for field in _POD_FIELDS_OF_LINUX if _said(spec, field)]
    return errors + [
        forbidden(f"{where}.securityContext.{field}", _NOT_ON_WINDOWS)
        for where, container in containers_of(spec, path)
        for field in _CONTAINER_FIELDS_OF_LINUX
        if (container.get("securityContext") or {}).get(field) is not None
    ]


def _said(spec: Node, dotted: str) -> bool:
    parent, _, field = dotted.rpartition(".")
    value = ((spec.get(parent) or {}) if parent else spec).get(field)
    return bool(value) if field in ("hostPID", "hostIPC", "sysctls") else value is not None
