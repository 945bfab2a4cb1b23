"""What upstream refuses in a pod's volumes and in how containers mount them, in its words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elbowroom.api import names
from elbowroom.api.fielderrors import FieldError, duplicate, each, forbidden, invalid, not_found, not_supported, required, too_long
from elbowroom.api.quantity import parse
from elbowroom.apiserver import downward, localpaths

Errors = list[FieldError]
Node = Mapping[str, Any]

_REQUIRED: Mapping[str, Sequence[str]] = {
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "configMap": ("name",),
    "flexVolume": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "gitRepo": ("repository",),
    "glusterfs": ("endpoints", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "secret": ("secretName",),
    "storageos": ("volumeName",),
    "vsphereVolume": ("volumePath",),
}
"""What must not be empty in the sources of which nothing more than that is judged, or nothing before it."""
_ORDER = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi", "glusterfs"),
    *("flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc", "flexVolume", "configMap"),
    *("azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO"),
    *("csi", "ephemeral", "image"),
)
"""In which order upstream looks at the sources: the first one counts, each further one is one too many."""
_HOST_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")
_TOKEN_SECONDS_MIN, _TOKEN_SECONDS_MAX = 600, 1 << 32
_DRIVER_MAX = 63


def validate_volumes(volumes: Sequence[Node] | None, path: str, *, assigned: bool) -> tuple[dict[str, Node], Errors]:
    """The sound volumes by name, and the errors of the others. ``assigned``: may files tell of ``assigned.cpuset``?"""
    errors: Errors = []
    sound: dict[str, Node] = {}
    for at, volume in each(path, volumes):
        name = volume.get("name", "")
        found = _source(volume, at, assigned)
        found += [invalid(f"{at}.name", name, why) for why in names.dns1123_label(name)] if name else [required(f"{at}.name")]
        if name in sound:
            found.append(duplicate(f"{at}.name", name))
        if not found:
            sound[name] = volume
        errors += found
    return sound, errors


def _source(volume: Node, path: str, assigned: bool) -> Errors:
    kinds = [kind for kind in _ORDER if volume.get(kind) is not None]
    if not kinds:
        return [required(path, "must specify a volume type")]
    kind, *more = kinds
    source, at = volume[kind], f"{path}.{kind}"
    if kind == "downwardAPI":
        errors = downward.validate_volume(source, at, assigned=assigned)
    elif kind == "projected":
        errors = _projected(source, at, assigned)
    else:
        errors = [required(f"{at}.{field}") for field in _REQUIRED.get(kind, ()) if not source.get(field)]
        judge = _JUDGES.get(kind)
        errors += judge(source, at) if judge is not None else []
    return errors + [forbidden(f"{path}.{one}", "may not specify more than 1 volume type") for one in more]


def _empty(source: Node, path: str) -> Errors:
    limit = source.get("sizeLimit")
    if limit is None or parse(str(limit)).nanos >= 0:
        return []
    return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]


def _host_path(source: Node, path: str) -> Errors:
    target, kind = source.get("path", ""), source.get("type", "")
    if not target:
        return [required(f"{path}.path")]
    errors = localpaths.without_backsteps(target, f"{path}.path")
    return errors + ([] if kind in _HOST_PATHS else [not_supported(f"{path}.type", kind, _HOST_PATHS)])


def _git(source: Node, path: str) -> Errors:
    return localpaths.descending(source.get("directory", ""), f"{path}.directory")


def _nfs(source: Node, path: str) -> Errors:
    target = source.get("path", "")
    return [] if target.startswith("/") else [invalid(f"{path}.path", target, "must be an absolute path")]


def _files(source: Node, path: str) -> Errors:
    """A config map's or a secret's: the mode, and which key becomes which file."""
    errors = localpaths.file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    for at, item in each(f"{path}.items", source.get("items")):
        errors += _key_to_path(item, at)
    return errors


def _key_to_path(item: Node, path: str) -> Errors:
    errors = [] if item.get("key") else [required(f"{path}.key")]
    errors += localpaths.required_file(item.get("path", ""), f"{path}.path")
    return errors + localpaths.file_mode(item.get("mode"), f"{path}.mode")


def _csi(source: Node, path: str) -> Errors:
    driver, secret = source.get("driver", ""), source.get("nodePublishSecretRef")
    if not driver:
        errors = [required(f"{path}.driver")]
    else:
        errors = [too_long(f"{path}.driver", _DRIVER_MAX)] if len(driver.encode()) > _DRIVER_MAX else []
        errors += [invalid(f"{path}.driver", driver, why) for why in names.dns1123_subdomain(driver.lower())]
    if secret is not None:
        name = secret.get("name", "")
        if not name:
            errors.append(required(f"{path}.nodePublishSecretRef.name"))
        else:
            errors += [invalid(f"{path}.name", name, why) for why in names.dns1123_subdomain(name)]
    return errors


def _ephemeral(source: Node, path: str) -> Errors:
    at = f"{path}.volumeClaimTemplate"
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(at)]
    spec = template.get("spec") or {}
    errors = [] if spec.get("accessModes") else [required(f"{at}.spec.accessModes", "at least 1 access mode is required")]
    amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if amount is None:
        errors.append(required(f"{at}.spec.resources[storage]"))
    elif parse(str(amount)).nanos <= 0:
        shown = parse(str(amount)).canonical()
        errors.append(invalid(f"{at}.spec.resources[storage]", shown, "must be greater than zero"))
    return errors


def _image(source: Node, path: str) -> Errors:
    errors = [] if source.get("reference") else [required(f"{path}.reference")]
    policy, known = source.get("pullPolicy", ""), ("Always", "IfNotPresent", "Never")
    if policy and policy not in known:
        errors.append(not_supported(f"{path}.pullPolicy", policy, known))
    return errors


_JUDGES: Mapping[str, Callable[[Node, str], Errors]] = {
    "configMap": _files,
    "csi": _csi,
    "emptyDir": _empty,
    "ephemeral": _ephemeral,
    "gitRepo": _git,
    "hostPath": _host_path,
    "image": _image,
    "nfs": _nfs,
    "secret": _files,
}


def _projected(source: Node, path: str, assigned: bool) -> Errors:
    errors = localpaths.file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for at, part in each(f"{path}.sources", source.get("sources")):
        for kind in ("secret", "configMap"):
            if part.get(kind) is None:
                continue
            name = part[kind].get("name", "")
            if not name:
                errors.append(required(f"{at}.{kind}.name"))
            for where, item in each(f"{at}.{kind}.items", part[kind].get("items")):
                errors += _key_to_path(item, where) + _taken(item.get("path", ""), taken, path, name)
        if part.get("downwardAPI") is not None:
            errors += downward.validate_volume(part["downwardAPI"], f"{at}.downwardAPI", assigned=assigned)
            for item in part["downwardAPI"].get("items") or []:
                errors += _taken(item.get("path", ""), taken, path, item.get("path", ""))
        if part.get("serviceAccountToken") is not None:
            errors += _token(part["serviceAccountToken"], f"{at}.serviceAccountToken", path)
        if sum(value is not None for value in part.values()) > 1:
            errors.append(forbidden(at, "may not specify more than 1 volume type per source"))
    return errors


def _taken(target: str, taken: set[str], path: str, shown: str) -> Errors:
    """Two sources of one volume may not bring the same file."""
    if target and target in taken:
        return [invalid(path, shown, "conflicting duplicate paths")]
    taken.add(target)
    return []


def _token(token: Node, path: str, volume: str) -> Errors:
    errors: Errors = []
    seconds, at = token.get("expirationSeconds", 0), f"{path}.expirationSeconds"
    if seconds < _TOKEN_SECONDS_MIN:
        errors.append(invalid(at, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _TOKEN_SECONDS_MAX:
        errors.append(invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"))
    return errors + localpaths.required_file(token.get("path", ""), f"{volume}.path")


# ---------------------------------------------------------------- what a container does with them


def validate_mounts(container: Node, path: str, volumes: Mapping[str, Node]) -> Errors:
    """A container's ``volumeMounts``; some of upstream's paths do not tell which mount is meant."""
    errors: Errors = []
    devices: Sequence[Node] = container.get("volumeDevices") or []
    device_names, device_paths = {one.get("name", "") for one in devices}, {one.get("devicePath", "") for one in devices}
    seen: set[str] = set()
    for at, mount in each(path, container.get("volumeMounts")):
        name, where = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{at}.name"))
        if name not in volumes:
            errors.append(not_found(f"{at}.name", name))
        if not where:
            errors.append(required(f"{at}.mountPath"))
        if where in seen:
            errors.append(invalid(f"{at}.mountPath", where, "must be unique"))
        seen.add(where)
        if name in device_names:
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeDevices"))
        if where in device_paths:
            errors.append(invalid(f"{at}.mountPath", where, "must not already exist as a path in volumeDevices"))
        below, template = mount.get("subPath", ""), mount.get("subPathExpr", "")
        errors += localpaths.descending(below, f"{path}.subPath")
        if below and template:
            errors.append(invalid(f"{at}.subPathExpr", template, "subPathExpr and subPath are mutually exclusive"))
        errors += localpaths.descending(template, f"{path}.subPathExpr")
        errors += _propagation(container, mount, f"{path}.mountPropagation")
        errors += _recursion(mount, f"{path}.recursiveReadOnly")
    return errors


def _propagation(container: Node, mount: Node, path: str) -> Errors:
    wanted = mount.get("mountPropagation")
    if wanted is None:
        return []
    if wanted not in _PROPAGATIONS:
        return [not_supported(path, wanted, _PROPAGATIONS)]
    if wanted == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        return [forbidden(path, "Bidirectional mount propagation is available only to privileged containers")]
    return []


def _recursion(mount: Node, path: str) -> Errors:
    wanted = mount.get("recursiveReadOnly")
    if wanted in (None, "Disabled"):
        return []
    if wanted not in _RECURSIVE:
        return [not_supported(path, wanted, _RECURSIVE)]
    errors = [] if mount.get("readOnly") else [forbidden(path, "may only be specified when readOnly is true")]
    if mount.get("mountPropagation", "None") != "None":
        errors.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))
    return errors


def validate_devices(container: Node, path: str, volumes: Mapping[str, Node]) -> Errors:
    """A container's ``volumeDevices``: claims that it wants as block devices."""
    errors: Errors = []
    mounts: Sequence[Node] = container.get("volumeMounts") or []
    mount_names, mount_paths = {one.get("name", "") for one in mounts}, {one.get("mountPath", "") for one in mounts}
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for at, device in each(path, container.get("volumeDevices")):
        name, where = device.get("name", ""), device.get("devicePath", "")
        volume = volumes.get(name)
        if not name:
            errors.append(required(f"{at}.name"))
        if name in seen_names:
            errors.append(invalid(f"{at}.name", name, "must be unique"))
        if volume is None:
            errors.append(not_found(f"{at}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{at}.name", name, why))
        if not where:
            errors.append(required(f"{at}.devicePath"))
        if where in seen_paths:
            errors.append(invalid(f"{at}.devicePath", where, "must be unique"))
        if ".." in where.split("/"):
            errors.append(invalid(f"{at}.devicePath", where, "can not contain backsteps ('..')"))
        else:
            seen_paths.add(where)
        if name in mount_names:
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeMounts"))
        if where in mount_paths:
            errors.append(invalid(f"{at}.devicePath", where, "must not already exist as a path in volumeMounts"))
        if name:
            seen_names.add(name)
    return errors
