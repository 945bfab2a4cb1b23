"""Files that tell a container of its pod: Downward API volumes, alone or as a part of projected ones.

What a container reads is made when it is read, from the pod as the API server has it: upstream's volume manager renders from that
spec, not from the allocation, so a file can be ahead of a resize that waits. The one resource that is not in the spec is
``assigned.cpuset`` (KEP-6122, design A; SD-12), which the caller knows.
"""

import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from elbowroom.api.objects import Container, Pod, ResourceList
from elbowroom.api.quantity import Quantity, QuantityError, parse

ASSIGNED_CPUSET = "assigned.cpuset"

Item = Mapping[str, Any]

_ONE = Quantity(10**9)
_FROM_NODE = ("cpu", "memory", "ephemeral-storage")
_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def read(pod: Pod, container: str, path: str, allocatable: ResourceList, assigned: Callable[[str], str]) -> str | None:
    """The content of the file at the absolute ``path`` in the container; None if there is no such file.

    ``assigned`` gives the text for ``assigned.cpuset`` of a container of the pod.
    """
    found = next((c for c in [*pod.spec.containers, *pod.spec.init_containers] if c.name == container), None)
    if found is None:
        return None
    wanted = posixpath.normpath("/" + path.lstrip("/"))
    volumes = {str(volume.get("name")): volume for volume in pod.spec.volumes}
    # The innermost mount hides what is below it.
    for mount in sorted(found.volume_mounts, key=lambda m: -len(posixpath.normpath(str(m.get("mountPath"))))):
        at = posixpath.normpath("/" + str(mount.get("mountPath", "")).lstrip("/"))
        below = posixpath.relpath(wanted, at)
        if below == ".." or below.startswith("../"):
            continue
        inside = posixpath.normpath(posixpath.join(str(mount.get("subPath") or ""), below))
        item = _items(volumes.get(str(mount.get("name")), {})).get(inside)
        return None if item is None else _content(pod, item, allocatable, assigned)
    return None


def _items(volume: Mapping[str, Any]) -> dict[str, Item]:
    """The items of a volume by their paths in it; of two at one path the later one counts."""
    return {posixpath.normpath(str(item.get("path", ""))): item for item in _each(volume)}


def _each(volume: Mapping[str, Any]) -> Iterator[Item]:
    for source in [volume, *((volume.get("projected") or {}).get("sources") or [])]:
        yield from (source.get("downwardAPI") or {}).get("items") or []


def _content(pod: Pod, item: Item, allocatable: ResourceList, assigned: Callable[[str], str]) -> str:
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        return _field(pod, str(field.get("fieldPath", "")))
    if resource is None:
        return ""
    name = str(resource.get("containerName", ""))
    if resource.get("resource") == ASSIGNED_CPUSET:
        return assigned(name)
    container = next((c for c in [*pod.spec.containers, *pod.spec.init_containers] if c.name == name), None)
    return "" if container is None else _resource(container, resource, allocatable)


# ---------------------------------------------------------------- fields


def _field(pod: Pod, path: str) -> str:
    meta = pod.metadata
    maps = {"metadata.labels": meta.labels, "metadata.annotations": meta.annotations}
    if path in maps:
        return "\n".join(f"{key}={quoted(value)}" for key, value in sorted(maps[path].items()))
    name, bracket, key = path.partition("['")
    if bracket and key.endswith("']") and name in maps:
        return maps[name].get(key.removesuffix("']"), "")
    return {"metadata.name": meta.name, "metadata.namespace": meta.namespace, "metadata.uid": meta.uid}.get(path, "")


def quoted(text: str) -> str:
    """As Go's strconv.Quote."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# ---------------------------------------------------------------- resources


def _resource(container: Container, reference: Mapping[str, Any], allocatable: ResourceList) -> str:
    """In units of the divisor, rounded up. A limit that the container lacks is what the node can give."""
    part, _, name = str(reference.get("resource", "")).partition(".")
    own = container.resources.limits if part == "limits" else container.resources.requests
    value = _parsed(own.get(name, "0"))
    if part == "limits" and not value and name in _FROM_NODE:
        value = _parsed(allocatable.get(name, "0"))
    divisor = _parsed(str(reference.get("divisor") or "0")) or _ONE
    amount, unit = (value.milli, divisor.milli) if name == "cpu" else (value.value, divisor.value)
    return str(-(-amount // unit))


def _parsed(text: str) -> Quantity:
    try:
        return parse(text)
    except QuantityError:
        return Quantity(0)
