"""What upstream warns of when a pod is created: what it takes, and what will not do what was meant."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from elbowroom.api import names
from elbowroom.api.fielderrors import each
from elbowroom.api.quantity import parse
from elbowroom.apiserver.pod_defaults import is_fractional
from elbowroom.apiserver.pod_security import containers_of

Node = Mapping[str, Any]

REMEMBERED_BYTES_MAX = 4096
"""What is said of larger pods is found out each time: what is remembered must not become large."""
_encode = msgspec.json.Encoder(enc_hook=float).encode  # numbers that remember how they were written
_decode = msgspec.json.Decoder(tuple[dict[str, Any], dict[str, Any]]).decode

_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
_NO_SELECTOR = "a null labelSelector results in matching no pod"


def warnings_of(pod: Node) -> list[str]:
    """All warnings of a pod that is created, in upstream's order."""
    found = []
    findings = names.dns1123_label(pod["metadata"].get("name", ""))
    if findings:
        found.append(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(findings)}]"
        )
    raw = _encode((pod["spec"], pod["metadata"].get("annotations") or {}))
    return [*found, *(_remembered(raw) if len(raw) <= REMEMBERED_BYTES_MAX else _spoken(raw))]


@lru_cache(maxsize=1024)
def _remembered(raw: bytes) -> tuple[str, ...]:
    """Pods that are made alike are warned of alike."""
    return tuple(_spoken(raw))


def _spoken(raw: bytes) -> list[str]:
    """What a spec and annotations deserve."""
    spec, annotations = _decode(raw)
    found = _placement(spec)
    found += [f"metadata.annotations[{name}]: {text}" for name, text in _ANNOTATIONS.items() if name in annotations]
    for at, volume in each("spec.volumes", spec.get("volumes")):
        found += [
            f"{at}.{'storageOS' if kind == 'storageos' else kind}: {text}" for kind, text in _VOLUMES.items() if kind in volume
        ]
    found += [warning for volume in spec.get("volumes") or [] for warning in _overlaps(volume)]
    found += _repeated(spec.get("hostAliases"), "spec.hostAliases", "ip")
    secrets = spec.get("imagePullSecrets")
    found += _repeated(secrets, "spec.imagePullSecrets", "name")
    found += [f'{at}.name: invalid empty name ""' for at, one in each("spec.imagePullSecrets", secrets) if not one.get("name")]
    found += _fractions({"overhead": spec.get("overhead")}, "spec", ("overhead",))
    found += _containers(spec, annotations)
    found += _ports(spec)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        found.append("spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1")
    return found + _pod_affinities(spec)


def _placement(spec: Node) -> list[str]:
    found = [f"spec.nodeSelector[{key}]: {_LABELS[key]}" for key in spec.get("nodeSelector") or {} if key in _LABELS]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    at = "spec.affinity.nodeAffinity"
    for where, term in each(f"{at}.{_REQUIRED}.nodeSelectorTerms", (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms")):
        found += _node_term(term, where, values_checked=False)
    for where, term in each(f"{at}.{_PREFERRED}", affinity.get(_PREFERRED)):
        found += _node_term(term.get("preference") or {}, f"{where}.preference", values_checked=True)
    for where, constraint in each("spec.topologySpreadConstraints", spec.get("topologySpreadConstraints")):
        key = constraint.get("topologyKey", "")
        if key in _LABELS:
            found.append(f"{where}.topologyKey: {key} is {_LABELS[key]}")
        if constraint.get("labelSelector") is None:
            found.append(f"{where}.labelSelector: {_NO_SELECTOR}")
    return found


def _node_term(term: Node, path: str, *, values_checked: bool) -> list[str]:
    """Values that no label can have are refused where a term is required, and warned of where it is preferred."""
    found = []
    for at, expression in each(f"{path}.matchExpressions", term.get("matchExpressions")):
        key = expression.get("key", "")
        if key in _LABELS:
            found.append(f"{at}.key: {key} is {_LABELS[key]}")
        if values_checked:
            for where, value in each(f"{at}.values", expression.get("values")):
                found += [f"{where}: {value} is invalid, {why}" for why in names.label_value(value)]
    return found


def _pod_affinities(spec: Node) -> list[str]:
    found = []
    for kind in ("podAffinity", "podAntiAffinity"):
        own, at = (spec.get("affinity") or {}).get(kind) or {}, f"spec.affinity.{kind}"
        for where, term in each(f"{at}.{_REQUIRED}", own.get(_REQUIRED)):
            if term.get("labelSelector") is None:
                found.append(f"{where}.labelSelector: {_NO_SELECTOR}")
        for where, weighted in each(f"{at}.{_PREFERRED}", own.get(_PREFERRED)):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                found.append(f"{where}.podAffinityTerm.labelSelector: {_NO_SELECTOR}")
    return found


def _repeated(items: Sequence[Node] | None, path: str, field: str) -> list[str]:
    found = []
    seen: set[str] = set()
    for at, item in each(path, items):
        value = item.get(field, "")
        if value in seen:
            found.append(f'{at}.{field}: duplicate {field} "{value}"')
        seen.add(value)
    return found


def _overlaps(volume: Node) -> list[str]:
    """Files of one volume that lie in each other's way."""
    name, found = volume.get("name", ""), []
    for kind, shown, naming in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        source = volume.get(kind) or {}
        paths = [(item.get("path", ""), "") for item in source.get("items") or []]
        found += [f'volume "{name}" ({shown} "{source.get(naming, "")}"): overlapping paths: {one}' for one in _collisions(paths)]
    files = [(item.get("path", ""), "") for item in (volume.get("downwardAPI") or {}).get("items") or []]
    found += [f'volume "{name}" (DownwardAPI): overlapping paths: {one}' for one in _collisions(files)]
    paths = []
    for source in (volume.get("projected") or {}).get("sources") or []:
        if not source:
            found.append(f'volume "{name}" (Projected) has no sources provided')
        for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
            said = source.get(kind) or {}
            paths += [(item.get("path", ""), f'{shown} "{said.get("name", "")}"') for item in said.get("items") or []]
        paths += [(item.get("path", ""), "DownwardAPI") for item in (source.get("downwardAPI") or {}).get("items") or []]
        token = source.get("serviceAccountToken")
        paths += [(token.get("path", ""), "ServiceAccountToken")] if token is not None else []
    return found + [f'volume "{name}" (Projected): overlapping paths: {one}' for one in _collisions(paths)]


def _collisions(paths: Sequence[tuple[str, str]]) -> list[str]:
    found = []
    before: list[tuple[str, str]] = []
    for raw, source in paths:
        path = raw.rstrip("/")
        for other, theirs in before:
            if path and other and (f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")):
                found.append(f"{_told(path, source)} with {_told(other, theirs)}")
        before.append((path, source))
    return found


def _told(path: str, source: str) -> str:
    return f'"{path}" ({source})' if source else f'"{path}"'


def _containers(spec: Node, annotations: Mapping[str, str]) -> list[str]:
    found = []
    key = "seccomp.security.alpha.kubernetes.io/pod"
    if key in annotations and not (spec.get("securityContext") or {}).get("seccompProfile"):
        found.append(f"metadata.annotations[{key}]: {_SECCOMP}")
    for at, container in containers_of(spec, "spec"):
        key = f"container.seccomp.security.alpha.kubernetes.io/{container.get('name', '')}"
        if key in annotations and not (container.get("securityContext") or {}).get("seccompProfile"):
            found.append(f"metadata.annotations[{key}]: {_SECCOMP}")
        found += _fractions(container.get("resources") or {}, f"{at}.resources", ("limits", "requests"))
        found += _hidden_variables(container.get("env") or [], f"{at}.env")
    return found


def _fractions(amounts: Node, path: str, fields: Sequence[str]) -> list[str]:
    return [
        f'{path}.{field}[{name}]: fractional byte value "{amounts[field][name]}" is invalid, must be an integer'
        for name in ("memory", "ephemeral-storage")
        for field in fields
        if name in (amounts.get(field) or {}) and is_fractional(parse(amounts[field][name]))
    ]


def _hidden_variables(variables: Sequence[Node], path: str) -> list[str]:
    seen: set[str] = set()
    found = []
    for index, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        if name in seen and ("valueFrom" in variable or value == reference or reference not in value):
            found.append(f'{path}[{index}]: hides previous definition of "{name}", which may be dropped when using apply')
        seen.add(name)
    return found


def _ports(spec: Node) -> list[str]:
    """Ports that say the same twice, or something that cannot be meant."""
    found = []
    taken: dict[tuple[int, str], list[tuple[str, Node]]] = {}
    for where, container in containers_of(spec, "spec"):
        for at, port in each(f"{where}.ports", container.get("ports")):
            address, number = port.get("hostIP", ""), port.get("hostPort", 0)
            if address and not number:
                shown = (
                    f"{{Name:{port.get('name', '')} HostPort:0 ContainerPort:{port.get('containerPort', 0)} "
                    f"Protocol:{port.get('protocol', '')} HostIP:{address}}}"
                )
                found.append(f"{at}: hostIP set without hostPort: {shown}")
            others = taken.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for other, theirs in others:
                their_address, their_number = theirs.get("hostIP", ""), theirs.get("hostPort", 0)
                if (address, number) == (their_address, their_number):
                    found.append(f"{at}: duplicate port definition with {other}")
                elif not number or not their_number:
                    found.append(f"{at}: overlapping port definition with {other}")
                elif number == their_number and bool(address) != bool(their_address):
                    found.append(f"{at}: dangerously ambiguous port definition with {other}")
            others.append((at, port))
    return found + _port_names(spec)


def _port_names(spec: Node) -> list[str]:
    found = []
    first: dict[str, str] = {}
    for where, container in containers_of(spec, "spec"):
        for at, port in each(f"{where}.ports", container.get("ports")):
            name = port.get("name")
            if name and name in first:
                other = first[name]
                chosen = f"services and probes that select ports by name will use {other}"
                found.append(f'{at}: duplicate port name "{name}" with {other}, {chosen}')
            elif name:
                first[name] = at
    return found
