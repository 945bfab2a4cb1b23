"""Static pods: what the files of the manifest folder say, in upstream's reading of them.

One file holds one pod, as YAML or JSON. It gets v1's defaults where the kubelet looks, a name that ends with the node's, a uid that
is a hash of what was written (unless it brings one), and the annotations that tell a static pod. What upstream refuses is refused
in its words; the rest of what a pod may say is judged by the API server when it is shown the mirror.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from elbowroom.api import names
from elbowroom.api.fielderrors import FieldError, duplicate, invalid, not_supported, required
from elbowroom.api.objects import Node, Pod
from elbowroom.api.quantity import QuantityError
from elbowroom.api.resources import container_request_amounts, of

CONFIG_HASH, CONFIG_MIRROR = "kubernetes.io/config.hash", "kubernetes.io/config.mirror"
CONFIG_SOURCE, CONFIG_SEEN = "kubernetes.io/config.source", "kubernetes.io/config.seen"
FILE_SOURCE, API_SOURCE = "file", "api"

VALUES_MAX, DEPTH_MAX = 100_000, 100
"""A manifest has some hundreds of values; YAML's aliases can make millions of a few lines."""
PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""The classes that every cluster has: a kubelet knows them without asking."""


class ManifestError(ValueError):
    """A file that is no pod; ``str()`` is upstream's text."""


@dataclass(frozen=True, slots=True)
class StaticPod:
    """A pod of the node's own. ``document`` is what a mirror of it is made from."""

    pod: Pod
    document: dict[str, Any] = field(compare=False)

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def hash(self) -> str:
        """What tells it from another version of itself."""
        return self.pod.metadata.annotations[CONFIG_HASH]

    def is_mirrored_by(self, mirror: Mapping[str, str]) -> bool:
        """Is a pod with these annotations its mirror, and not one of an older version?"""
        return mirror.get(CONFIG_MIRROR) == self.hash


@dataclass(frozen=True, slots=True)
class Manifests:
    """What a folder holds: pods by ``namespace/name`` in the order of their files, and what was refused, by file."""

    pods: dict[str, StaticPod] = field(default_factory=dict)
    refused: tuple[tuple[str, str], ...] = ()


def read(path: str, files: Mapping[str, bytes | None], node: str, seen: str) -> Manifests:
    """The pods in the files of folder ``path``; ``seen`` is the time of day. Of two with one name the first counts."""
    pods: dict[str, StaticPod] = {}
    refused = []
    for name, content in files.items():
        file = f"{path.rstrip('/')}/{name}"
        try:
            found = _parse(file, content, node, seen)
            if found.key in pods:
                what = f"{found.pod.metadata.name}_{found.pod.metadata.namespace}({found.pod.uid})"
                named = found.pod.metadata.name
                raise ManifestError(f'Error validating pod {what} from file due to duplicate pod name "{named}", ignoring')
            if any(found.pod.uid == other.pod.uid for other in pods.values()):
                raise ManifestError(f"another manifest has the uid {found.pod.uid}, ignoring")
            pods[found.key] = found
        except ManifestError as why:
            refused.append((file, str(why)))
    return Manifests(pods, tuple(refused))


def mirror_of(static: StaticPod, node: Node) -> dict[str, Any]:
    """The pod that stands for it in the API: the same, with the hash that it mirrors, and the Node as its owner."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.metadata.uid, "controller": True}
    meta = {name: value for name, value in static.document["metadata"].items() if name != "uid"}
    meta["annotations"] = {**meta["annotations"], CONFIG_MIRROR: static.hash}
    return {**static.document, "metadata": {**meta, "ownerReferences": [owner]}}


# ---------------------------------------------------------------- one file


def _parse(file: str, content: bytes | None, node: str, seen: str) -> StaticPod:
    if content is None:
        raise ManifestError(f"{file}: it can't be read, or is too large")
    document = _decoded(file, content)
    meta = dict(document.get("metadata") or {})
    if not meta.get("name"):
        raise ManifestError("invalid pod: name is needed for the pod")
    uid = str(meta.get("uid") or _digest(document, node, file))
    name = f"{meta['name']}-{node.lower()}"
    namespace = meta.get("namespace") or "default"
    notes = {**(meta.get("annotations") or {}), CONFIG_HASH: uid, CONFIG_SEEN: seen, CONFIG_SOURCE: FILE_SOURCE}
    spec = _defaulted({**(document.get("spec") or {}), "nodeName": node})
    whole = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "name": name, "namespace": namespace, "uid": uid, "annotations": notes},
        "spec": spec,
    }
    try:
        pod = msgspec.convert(whole, Pod)
    except (msgspec.ValidationError, RecursionError) as why:
        raise ManifestError(f"{file}: couldn't parse as pod({why}), please check config file") from why
    problems = _problems(pod)
    if problems:
        raise ManifestError(f"invalid pod: [{' '.join(str(problem) for problem in problems)}]")
    reference = _api_reference(spec)
    if reference:
        raise ManifestError(f"static pods may not reference {reference}")
    spec = _with_level(spec, pod)
    return StaticPod(msgspec.convert({**whole, "spec": spec}, Pod), {**whole, "spec": spec})


class _Loader(yaml.CSafeLoader):
    """Plain data only: a date stays the string that it is in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _decoded(file: str, content: bytes) -> dict[str, Any]:
    try:
        json = content.lstrip().startswith(b"{")
        found = msgspec.json.decode(content) if json else next(yaml.load_all(content, _Loader), None)
        value = _Plain().of(found, 0)
        kind = (value.get("apiVersion"), value.get("kind")) if isinstance(value, dict) else (None, None)
    except (ValueError, yaml.YAMLError, RecursionError) as why:
        raise ManifestError(f"{file}: couldn't parse as pod({why}), please check config file") from why
    if kind != ("v1", "Pod"):
        words = f"no kind {kind[1]!r} is registered for version {kind[0]!r}" if kind[1] else "Object 'Kind' is missing"
        raise ManifestError(f"{file}: couldn't parse as pod({words}), please check config file")
    for part in ("metadata", "spec"):
        if not isinstance(value.get(part) or {}, dict):
            raise ManifestError(f"{file}: couldn't parse as pod({part} is no object), please check config file")
    return dict(value)


class _Plain:
    """Values as JSON has them, and no more of them than a manifest may have."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, value: Any, depth: int) -> Any:
        self._count += 1
        if depth > DEPTH_MAX or self._count > VALUES_MAX:
            raise ValueError("too deep or too large")
        if isinstance(value, dict):
            return {self._key(key): self.of(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.of(inner, depth + 1) for inner in value]
        if value is None or isinstance(value, str | bool | int | float):
            return value
        raise ValueError("a value that JSON has no word for")

    def _key(self, key: Any) -> str:
        if isinstance(key, str | int | float):
            return str(key).lower() if isinstance(key, bool) else str(key)
        raise ValueError("a key that is no string")


def _digest(document: Mapping[str, Any], node: str, file: str) -> str:
    """128 bits of what the pod is, where it runs, and which file says so."""
    digest = hashlib.blake2s(msgspec.json.encode(document, order="deterministic"), digest_size=16)
    digest.update(f"host:{node}file:{file}".encode())
    return digest.hexdigest()


# ---------------------------------------------------------------- defaults


def _defaulted(spec: dict[str, Any]) -> dict[str, Any]:
    """With requests where there are only limits (RC-29), the well-known priorities, and the toleration of static pods."""
    for part in ("containers", "initContainers"):
        containers = spec.get(part)
        if isinstance(containers, list):
            spec[part] = [_with_pull_policy(_with_requests(container)) for container in containers]
    if spec.get("priority") is None and spec.get("priorityClassName") in PRIORITIES:
        spec["priority"] = PRIORITIES[spec["priorityClassName"]]
    everything = {"operator": "Exists", "effect": "NoExecute"}
    tolerations = spec.get("tolerations") or []
    if isinstance(tolerations, list) and everything not in tolerations:
        spec["tolerations"] = [*tolerations, everything]
    return spec


def _with_requests(container: Any) -> Any:
    resources = container.get("resources") if isinstance(container, dict) else None
    if not isinstance(resources, dict):
        return container
    given = {part: resources.get(part) or {} for part in ("requests", "limits")}
    if not all(isinstance(amounts, dict) for amounts in given.values()):
        return container
    texts = {part: _texts(amounts) for part, amounts in given.items() if amounts}
    if "limits" in texts:
        texts["requests"] = {**texts["limits"], **texts.get("requests", {})}
    return {**container, "resources": {**resources, **texts}}


def _with_pull_policy(container: Any) -> Any:
    if not isinstance(container, dict) or container.get("imagePullPolicy"):
        return container
    _, _, tag = str(container.get("image", "")).rpartition("/")[2].partition(":")
    return {**container, "imagePullPolicy": "IfNotPresent" if tag not in ("", "latest") else "Always"}


def _texts(amounts: Mapping[str, Any]) -> dict[str, Any]:
    """A quantity may be written as a number."""
    return {
        name: str(amount) if isinstance(amount, int | float) and amount is not True else amount for name, amount in amounts.items()
    }


def _with_level(spec: dict[str, Any], pod: Pod) -> dict[str, Any]:
    """The pod's own requests, where it has limits of its own: from its containers, else from the limits."""
    level = pod.spec.resources
    if level is None or not level.limits:
        return spec
    requests = dict(level.requests)
    for name, amount in container_request_amounts(pod).items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, amount.canonical())
    for name, text in level.limits.items():
        requests.setdefault(name, text)
    return {**spec, "resources": {"limits": dict(level.limits), "requests": requests}}


# ---------------------------------------------------------------- what is refused


def _problems(pod: Pod) -> list[FieldError]:
    found: list[FieldError] = []
    found += [invalid("metadata.name", pod.metadata.name, why) for why in names.dns1123_subdomain(pod.metadata.name)]
    found += [invalid("metadata.namespace", pod.metadata.namespace, why) for why in names.dns1123_label(pod.metadata.namespace)]
    if not pod.spec.containers:
        found.append(required("spec.containers"))
    seen: set[str] = set()
    for part, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
        for index, container in enumerate(containers):
            path = f"spec.{part}[{index}]"
            if not container.name:
                found.append(required(f"{path}.name"))
            elif container.name in seen:
                found.append(duplicate(f"{path}.name", container.name))
            else:
                found += [invalid(f"{path}.name", container.name, why) for why in names.dns1123_label(container.name)]
            seen.add(container.name)
            if not container.image:
                found.append(required(f"{path}.image"))
            found += _resource_problems(f"{path}.resources", container.resources.requests, container.resources.limits)
    if pod.spec.resources is not None:
        found += _resource_problems("spec.resources", pod.spec.resources.requests, pod.spec.resources.limits)
    if pod.spec.restart_policy not in ("Always", "OnFailure", "Never"):
        found.append(not_supported("spec.restartPolicy", pod.spec.restart_policy, ("Always", "Never", "OnFailure")))
    return found


def _resource_problems(path: str, requests: Mapping[str, str], limits: Mapping[str, str]) -> list[FieldError]:
    found: list[FieldError] = []
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            try:
                if of({name: text})[name] < 0:
                    found.append(invalid(f"{path}.{part}[{name}]", text, "must be greater than or equal to 0"))
            except QuantityError as why:
                found.append(invalid(f"{path}.{part}[{name}]", text, str(why)))
    if found:
        return found
    allowed, asked = of(limits), of(requests)
    for name in requests:
        if name in allowed and asked[name] > allowed[name]:
            words = f"must be less than or equal to {name} limit of {limits[name]}"
            found.append(invalid(f"{path}.requests", requests[name], words))
    return found


_VOLUMES = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTED = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def _api_reference(spec: Mapping[str, Any]) -> str:
    """What of the API the pod refers to: a static pod may have to run before there is one. Empty if nothing."""
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        sources = [entry.get("valueFrom") for entry in _objects(container.get("env"))] + list(_objects(container.get("envFrom")))
        for source in _objects(sources):
            if "secretKeyRef" in source or "secretRef" in source:
                return "secrets"
            if "configMapKeyRef" in source or "configMapRef" in source:
                return "configmaps"
    if spec.get("imagePullSecrets"):
        return "secrets"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in _objects(spec.get("volumes")):
        for kind, words in _VOLUMES.items():
            if volume.get(kind) is not None:
                return words
        projected = volume.get("projected")
        for source in _objects(projected.get("sources") if isinstance(projected, dict) else None):
            for kind, words in _PROJECTED.items():
                if source.get(kind) is not None:
                    return words
    return ""


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    return (entry for entry in (value if isinstance(value, list) else []) if isinstance(entry, dict))
