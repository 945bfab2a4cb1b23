"""What upstream refuses in a pod's spec, in its words; for pods and for the pod specs of templates.

Volumes, environments, security contexts and annotations have modules of their own. Of the volumes of single vendors only that they
say what they must is judged.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from elbowroom.api import names, resources
from elbowroom.api.fielderrors import (
    FieldError,
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
    too_many,
)
from elbowroom.api.quantity import Quantity, parse
from elbowroom.apiserver import downward, pod_environment, pod_security, pod_volumes
from elbowroom.apiserver.pod_annotations import validate_annotations
from elbowroom.apiserver.podviews import pod_view

Errors = list[FieldError]
Node = Mapping[str, Any]

INT32_MAX = 2**31 - 1
_RANGE_1 = f"must be between 1 and {INT32_MAX}, inclusive"
_RANGE_0 = f"must be between 0 and {INT32_MAX}, inclusive"
_PORT_RANGE = "must be between 1 and 65535, inclusive"
_NOT_NEGATIVE = "must be greater than or equal to 0"
_NOT_POSITIVE = "must be greater than zero"
_POINTERS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "restartPolicy")
"""Fields of a container that say something even when they are empty."""
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"
_RULES_MAX, _CODES_MAX = 20, 255
_NAMESERVERS_MAX, _SEARCHES_MAX, _SEARCH_CHARACTERS_MAX = 3, 32, 2048
_HOST_NAME_MAX = 64
_WHITESPACE = "must not have leading or trailing whitespace"
_EPHEMERAL_FIELDS = (
    *("name", "image", "command", "args", "workingDir", "envFrom", "env", "volumeMounts", "volumeDevices"),
    *("stdin", "stdinOnce", "tty"),
    *("terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "securityContext", "targetContainerName"),
)


def _one_of(path: str, value: Any, known: Sequence[str]) -> Errors:
    if not value:
        return [required(path)]
    return [] if value in known else [not_supported(path, value, known)]


def _named(path: str, value: str, check: Callable[[str], list[str]]) -> Errors:
    return [invalid(path, value, finding) for finding in check(value)]


def validate_pod(pod: Node, old: Node | None = None, *, assigned: bool = False) -> Errors:
    """All errors of the spec of a pod that is created or, with ``old``, updated. Metadata is the registry's business.

    ``assigned``: volumes may ask for ``assigned.cpuset``; those of a stored pod that does so always may.
    """
    spec = pod["spec"]
    stored = old["spec"] if old is not None else None
    assigned = assigned or (stored is not None and downward.asks_for_assigned(stored))
    return [] if is_known_sound(spec, stored, assigned=assigned) else _pod_errors(spec, stored, assigned)


def _pod_errors(spec: Node, stored: Node | None, assigned: bool) -> Errors:
    errors = validate_pod_spec(spec, "spec", old=stored, assigned=assigned)
    if not spec.get("serviceAccountName"):
        errors += [
            forbidden(f"{at}.serviceAccountToken", "must not be specified when serviceAccountName is not set")
            for where, volume in each("spec.volumes", spec.get("volumes"))
            for at, source in each(f"{where}.projected.sources", (volume.get("projected") or {}).get("sources"))
            if source.get("serviceAccountToken") is not None
        ]
    for field in ("containers", "initContainers"):
        for path, container in each(f"spec.{field}", spec.get(field)):
            errors += _padded_image(path, container)
    return errors


def _padded_image(path: str, container: Node) -> Errors:
    image = container.get("image", "")
    return [] if image == image.strip() else [invalid(f"{path}.image", image, _WHITESPACE)]


# ---------------------------------------------------------------- what was found sound before

_KNOWN_BYTES_MAX = 4096
"""Larger specs are judged each time: what is remembered must not become large."""
_RESIZED = ("containers", "initContainers")
_encode = msgspec.json.Encoder(enc_hook=float).encode  # numbers that remember how they were written
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def is_known_sound(spec: Node, stored: Node | None, *, assigned: bool) -> bool:
    """Has such a spec no errors? False, too, for one of which it would have to be found out in full.

    Of pods that are made alike, and of one that is resized, only the node and the containers' resources differ; these are judged by
    themselves, and the rest is remembered. Only resources of the pod and claims bind them together, so with those all is judged.
    """
    if spec.get("resources") is not None or (stored is not None and _forgives(stored)):
        return False
    rest = dict(spec)
    rest.pop("nodeName", None)
    for field in _RESIZED:
        if not spec.get(field):
            continue
        bare = rest[field] = []
        for container in spec[field]:
            if "resources" not in container:
                bare.append(container)
                continue
            bare.append({name: value for name, value in container.items() if name != "resources"})
            own = container["resources"]
            if own and (own.get("claims") or not _known(_has_sound_amounts, _encode(own))):
                return False
    node = spec.get("nodeName")
    return (not node or not names.dns1123_subdomain(node)) and _known(_is_sound, _encode(rest), assigned)


def _known(judge: Callable[..., bool], raw: bytes, *more: bool) -> bool:
    return len(raw) <= _KNOWN_BYTES_MAX and judge(raw, *more)


@lru_cache(1024)
def _is_sound(raw: bytes, assigned: bool) -> bool:
    return not _pod_errors(_decode(raw), None, assigned)


@lru_cache(1024)
def _has_sound_amounts(raw: bytes) -> bool:
    return not _requirements(_decode(raw), "", container_resource_name_errors)


def validate_created_pod(pod: Node, *, assigned: bool = False) -> Errors:
    """``validate_pod`` and what holds at creation only."""
    errors = validate_annotations(pod) + validate_pod(pod, assigned=assigned)
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def validate_pod_spec(spec: Node, path: str, old: Node | None = None, *, assigned: bool = False) -> Errors:
    """All errors of a defaulted PodSpec at ``path``; ``old`` is the stored one, whose sins are forgiven."""
    volumes, errors = pod_volumes.validate_volumes(spec.get("volumes"), f"{path}.volumes", assigned=assigned)
    errors += _resource_claims(spec.get("resourceClaims"), f"{path}.resourceClaims")
    errors += _containers(spec, f"{path}.containers", volumes)
    errors += _init_containers(spec, f"{path}.initContainers", volumes, old)
    errors += _ephemeral_containers(spec, f"{path}.ephemeralContainers", volumes)
    errors += _pod_level_resources(spec, path)
    errors += _host_network_ports(spec, path)
    errors += _one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), ("Always", "OnFailure", "Never"))
    policies = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    errors += _one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), policies)
    errors += _labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    errors += pod_security.validate_pod_context(spec, f"{path}.securityContext")
    errors += _affinity(spec.get("affinity") or {}, f"{path}.affinity")
    errors += _dns_config(spec, f"{path}.dnsConfig")
    for at, gate in each(f"{path}.readinessGates", spec.get("readinessGates")):
        errors += _named(f"{at}.conditionType", gate.get("conditionType", ""), names.qualified_name)
    errors += _scheduling_gates(spec.get("schedulingGates"), f"{path}.schedulingGates")
    errors += _spread(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    errors += pod_security.validate_host_users(spec, path) + _host_name(spec, path)
    for field, check in (
        ("serviceAccountName", names.dns1123_subdomain),
        ("nodeName", names.dns1123_subdomain),
        ("hostname", names.dns1123_label),
        ("subdomain", names.dns1123_label),
        ("priorityClassName", names.dns1123_subdomain),
        ("runtimeClassName", names.dns1123_subdomain),
    ):
        if spec.get(field):
            errors += _named(f"{path}.{field}", spec[field], check)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= INT32_MAX:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, _RANGE_1))
    errors += validate_tolerations(spec.get("tolerations"), f"{path}.tolerations")
    errors += _host_aliases(spec.get("hostAliases"), f"{path}.hostAliases")
    if spec.get("preemptionPolicy") is not None:
        errors += _one_of(f"{path}.preemptionPolicy", spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"))
    if spec.get("overhead"):
        errors += _requirements({"limits": spec["overhead"]}, f"{path}.overhead", container_resource_name_errors)
    errors += pod_security.validate_os(spec, path)
    group = spec.get("schedulingGroup")
    if group is not None and group.get("podGroupName") is None:
        errors.append(invalid(f"{path}.schedulingGroup.podGroupName", None, "must specify one of: `podGroupName`"))
    elif group is not None:
        errors += _named(f"{path}.schedulingGroup.podGroupName", group["podGroupName"], names.dns1123_subdomain)
    return errors + pod_environment.validate_file_volumes(spec, path)


# ---------------------------------------------------------------- containers


def _containers(spec: Node, path: str, volumes: Mapping[str, Node]) -> Errors:
    containers = spec.get("containers")
    if not containers:
        return [required(path)]
    errors: Errors = []
    seen: set[str] = set()
    for at, container in each(path, containers):
        errors += _container(spec, container, at, volumes)
        errors += _unique(at, container, seen)
        errors += _lifecycle_and_probes(spec, container, at)
        errors += _restart_policy(container, at)
    return errors + _host_port_conflicts(containers, path)


def _init_containers(spec: Node, path: str, volumes: Mapping[str, Node], old: Node | None) -> Errors:
    errors: Errors = []
    seen = {container.get("name", "") for container in spec.get("containers") or []}
    forgiven = old is not None and _forgives(old)
    for at, container in each(path, spec.get("initContainers")):
        errors += _container(spec, container, at, volumes)
        errors += _restart_policy(container, at)
        errors += _unique(at, container, seen)
        errors += _host_port_conflicts([container], path)
        if container.get("restartPolicy") == "Always":
            errors += _lifecycle_and_probes(spec, container, at)
            continue
        for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(field) is not None:
                errors.append(forbidden(f"{at}.{field}", "may not be set for init containers without restartPolicy=Always"))
        if not forgiven:
            for entry, policy in each(f"{at}.resizePolicy", container.get("resizePolicy")):
                if policy.get("restartPolicy") == "RestartContainer":
                    why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                    errors.append(invalid(f"{entry}.restartPolicy", "RestartContainer", why))
    return errors


def _forgives(old: Node) -> bool:
    """May the pod go on with what newer servers refuse?"""
    return any(map(_restarts_on_resize, old.get("initContainers") or []))


def _restarts_on_resize(container: Node) -> bool:
    """An ordinary init container with a policy that newer servers refuse (RC-45)."""
    policies = container.get("resizePolicy") or []
    return container.get("restartPolicy") != "Always" and any(p.get("restartPolicy") == "RestartContainer" for p in policies)


def _ephemeral_containers(spec: Node, path: str, volumes: Mapping[str, Node]) -> Errors:
    errors: Errors = []
    others = {c.get("name", "") for field in ("containers", "initContainers") for c in spec.get(field) or []}
    seen = set(others)
    for at, container in each(path, spec.get("ephemeralContainers")):
        errors += _container(spec, container, at, volumes) + _padded_image(at, container)
        errors += _unique(at, container, seen)
        target = container.get("targetContainerName")
        if target and target not in others:
            errors.append(not_found(f"{at}.targetContainerName", target))
        for field, value in container.items():
            if field not in _EPHEMERAL_FIELDS and (value or (field in _POINTERS and value is not None)):
                errors.append(forbidden(f"{at}.{field}", _NOT_EPHEMERAL))
        for where, mount in each(f"{at}.volumeMounts", container.get("volumeMounts")):
            errors += [forbidden(f"{where}.{field}", _NOT_EPHEMERAL) for field in ("subPath", "subPathExpr") if mount.get(field)]
    return errors


def _unique(path: str, container: Node, seen: set[str]) -> Errors:
    name = container.get("name", "")
    if name in seen:
        return [duplicate(f"{path}.name", name)]
    if name:
        seen.add(name)
    return []


def _container(spec: Node, container: Node, path: str, volumes: Mapping[str, Node]) -> Errors:
    errors: Errors = []
    name = container.get("name")
    if not name:
        errors.append(required(f"{path}.name"))
    else:
        errors += _named(f"{path}.name", name, names.dns1123_label)
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    messages = ("File", "FallbackToLogsOnError")
    errors += _one_of(f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy"), messages)
    errors += _ports(container.get("ports"), f"{path}.ports")
    errors += pod_environment.validate_env(container.get("env"), f"{path}.env")
    errors += pod_environment.validate_env_from(container.get("envFrom"), f"{path}.envFrom")
    errors += pod_volumes.validate_mounts(container, f"{path}.volumeMounts", volumes)
    errors += pod_volumes.validate_devices(container, f"{path}.volumeDevices", volumes)
    errors += _one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), ("Always", "IfNotPresent", "Never"))
    claims = [claim.get("name", "") for claim in spec.get("resourceClaims") or []]
    errors += _requirements(container.get("resources") or {}, f"{path}.resources", container_resource_name_errors, claims)
    errors += _resize_policy(container.get("resizePolicy"), f"{path}.resizePolicy", spec.get("restartPolicy"))
    return errors + pod_security.validate_container_context(spec, container, f"{path}.securityContext")


def _restart_policy(container: Node, path: str) -> Errors:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    known = ("Always", "Never", "OnFailure")
    errors: Errors = []
    if policy is None and rules:
        errors.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
    elif policy is not None and policy not in known:
        errors.append(not_supported(f"{path}.restartPolicy", policy, known))
    if len(rules) > _RULES_MAX:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), _RULES_MAX))
    for at, rule in each(f"{path}.restartPolicyRules", rules):
        actions = ("Restart", "RestartAllContainers")
        if rule.get("action") not in actions:
            errors.append(not_supported(f"{at}.action", rule.get("action", ""), actions))
        codes = rule.get("exitCodes")
        if codes is None:
            errors.append(required(f"{at}.exitCodes", "must be specified"))
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            errors.append(not_supported(f"{at}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn")))
        if len(codes.get("values") or []) > _CODES_MAX:
            errors.append(too_many(f"{at}.exitCodes.values", len(codes["values"]), _CODES_MAX))
    return errors


def _resize_policy(policies: Sequence[Node] | None, path: str, pod_policy: str | None) -> Errors:
    """RC-45."""
    errors: Errors = []
    seen: set[str] = set()
    for at, policy in each(path, policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
        errors += _one_of(path, name, ("cpu", "memory"))
        errors += _one_of(path, restart, ("NotRequired", "RestartContainer"))
        if pod_policy == "Never" and restart != "NotRequired":
            errors.append(invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
    return errors


def _port_number(path: str, number: int) -> Errors:
    return [] if 1 <= number <= 65535 else [invalid(path, number, _PORT_RANGE)]


def _ports(ports: Sequence[Node] | None, path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for at, port in each(path, ports):
        name = port.get("name")
        if name:
            found = _named(f"{at}.name", name, names.port_name)
            errors += found or ([duplicate(f"{at}.name", name)] if name in seen else [])
            seen.add(name)
        if not port.get("containerPort"):
            errors.append(required(f"{at}.containerPort"))
        else:
            errors += _port_number(f"{at}.containerPort", port["containerPort"])
        if port.get("hostPort"):
            errors += _port_number(f"{at}.hostPort", port["hostPort"])
        errors += _one_of(f"{at}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP"))
    return errors


def _host_port_conflicts(containers: Sequence[Node], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for at, container in each(path, containers):
        for where, port in each(f"{at}.ports", container.get("ports")):
            if port.get("hostPort"):
                used = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if used in seen:
                    errors.append(duplicate(f"{where}.hostPort", used))
                seen.add(used)
    return errors


def _host_network_ports(spec: Node, path: str) -> Errors:
    if not spec.get("hostNetwork"):
        return []
    errors: Errors = []
    for at, container in each(f"{path}.containers", spec.get("containers")):
        for where, port in each(f"{at}.ports", container.get("ports")):
            if port.get("hostPort") != port.get("containerPort"):
                errors.append(
                    invalid(f"{where}.hostPort", port.get("hostPort"), "must match `containerPort` when `hostNetwork` is true")
                )
    return errors


# ---------------------------------------------------------------- lifecycle and probes


def _lifecycle_and_probes(spec: Node, container: Node, path: str) -> Errors:
    errors: Errors = []
    grace = spec.get("terminationGracePeriodSeconds")
    lifecycle = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            errors += _handler(lifecycle[name], f"{path}.lifecycle.{name}", grace)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        at = f"{path}.{name}"
        errors += _handler(probe, at, grace)
        for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
            if probe.get(field, 0) < 0:
                errors.append(invalid(f"{at}.{field}", probe[field], _NOT_NEGATIVE))
        own = probe.get("terminationGracePeriodSeconds")
        if own is not None and own <= 0:
            errors.append(invalid(f"{at}.terminationGracePeriodSeconds", own, "must be greater than 0"))
        if name == "readinessProbe":
            if own is not None:
                errors.append(invalid(f"{at}.terminationGracePeriodSeconds", own, "must not be set for readinessProbes"))
        elif probe.get("successThreshold", 1) != 1:
            errors.append(invalid(f"{at}.successThreshold", probe["successThreshold"], "must be 1"))
    return errors


def _handler(handler: Node, path: str, grace: int | None) -> Errors:
    errors: Errors = []
    chosen = [kind for kind in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if handler.get(kind) is not None]
    if not chosen:
        return [required(path, "must specify a handler type")]
    action, at = handler[chosen[0]], f"{path}.{chosen[0]}"
    if chosen[0] == "exec" and not action.get("command"):
        errors.append(required(f"{at}.command"))
    elif chosen[0] in ("httpGet", "tcpSocket", "grpc"):
        errors += _port_or_name(f"{at}.port", action.get("port", 0))
        if chosen[0] == "httpGet" and action.get("scheme") not in ("HTTP", "HTTPS"):
            errors.append(not_supported(f"{at}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
        for header in action.get("httpHeaders") or []:
            errors += _named(f"{at}.httpHeaders", header.get("name", ""), names.header_name)
    elif chosen[0] == "sleep" and grace is not None and not 0 <= action.get("seconds", 0) <= grace:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        errors.append(invalid(at, action.get("seconds", 0), why))
    return errors + [forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in chosen[1:]]


def _port_or_name(path: str, port: int | str) -> Errors:
    return _port_number(path, port) if isinstance(port, int) else _named(path, port, names.port_name)


# ---------------------------------------------------------------- resources

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_INTEGERS = (
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims"),
    *("services.nodeports", "services.loadbalancers"),
)
_STANDARD = (
    *(*_COMPUTE, "storage", "requests.storage"),
    *(f"requests.{name}" for name in _COMPUTE),
    *(f"limits.{name}" for name in _COMPUTE),
    *_INTEGERS,
)


def _is_hugepages(name: str) -> bool:
    return name.startswith("hugepages-")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    return not _is_native(name) and not name.startswith("requests.") and not names.qualified_name(f"requests.{name}")


def may_be_overcommitted(name: str) -> bool:
    """May its limit be more than what is requested of it?"""
    return _is_native(name) and not _is_hugepages(name)


def is_integer_resource(name: str) -> bool:
    """Is there no half of it?"""
    return name in _INTEGERS or _is_extended(name)


def resource_name_errors(name: str, path: str) -> Errors:
    """What is wrong with the name of any resource."""
    errors = _named(path, name, names.qualified_name)
    if not errors and "/" not in name and name not in _STANDARD and not name.removeprefix("requests.").startswith("hugepages-"):
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    return errors


def container_resource_name_errors(name: str, path: str) -> Errors:
    """What is wrong with the name of a resource that a container asks for."""
    errors = resource_name_errors(name, path)
    if "/" not in name:
        if name not in _COMPUTE and not _is_hugepages(name):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not _is_native(name) and not _is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def _pod_resource_name(name: str, path: str) -> Errors:
    errors = resource_name_errors(name, path)
    if not errors and not resources.is_pod_level_resource(name):
        errors.append(not_supported(path, name, ("cpu", "hugepages-", "memory")))
    return errors


def _amount(name: str, quantity: Quantity, path: str) -> Errors:
    errors: Errors = []
    if quantity.nanos < 0:
        errors.append(invalid(path, quantity.canonical(), _NOT_NEGATIVE))
    if is_integer_resource(name) and quantity.nanos % 10**9:
        errors.append(invalid(path, quantity.canonical(), "must be an integer"))
    if _is_hugepages(name):
        try:
            page = parse(name.removeprefix("hugepages-"))
        except ValueError:
            page = Quantity(0)
        if not page or quantity.nanos % page.nanos:
            errors.append(invalid(path, quantity.canonical(), f"{quantity} is not positive integer multiple of {name}"))
    return errors


def _requirements(own: Node, path: str, check_name: Callable[[str, str], Errors], claims: Sequence[str] = ()) -> Errors:
    """RC-31: names, amounts, and requests within limits."""
    errors: Errors = []
    limits, requests = resources.amounts(own.get("limits")), resources.amounts(own.get("requests"))
    for field, vector in (("limits", limits), ("requests", requests)):
        for name in sorted(vector):
            quantity, at = vector[name], f"{path}.{field}[{name}]"
            errors += check_name(name, at) + _amount(name, quantity, at)
            if field == "limits":
                continue
            limit, overcommits = limits.get(name), may_be_overcommitted(name)
            if limit is None:
                if not overcommits:
                    errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
            elif not overcommits and quantity != limit:
                errors.append(invalid(f"{path}.requests", quantity.canonical(), f"must be equal to {name} limit of {limit}"))
            elif quantity > limit:
                why = f"must be less than or equal to {name} limit of {limit}"
                errors.append(invalid(f"{path}.requests", quantity.canonical(), why))
    said = {*limits, *requests}
    if any(map(_is_hugepages, said)) and not said & {"cpu", "memory"}:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    return errors + _claims(own.get("claims"), f"{path}.claims", claims)


def _claims(used: Sequence[Node] | None, path: str, known: Sequence[str]) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for at, claim in each(path, used):
        name = claim.get("name", "")
        if not name:
            errors.append(required(f"{at}.name"))
            continue
        key = f"{name}/{claim['request']}" if claim.get("request") else name
        if key in seen:
            errors.append(duplicate(at, key))
        seen.add(key)
        if name not in known:
            where = f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.append(not_found(at, name, f"must be one of the names in pod.spec.resourceClaims{where}"))
    return errors


def _pod_level_resources(spec: Node, path: str) -> Errors:
    level = spec.get("resources")
    if level is None:
        return []
    at = f"{path}.resources"
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(at, "may not be set for a windows pod")]
    errors: Errors = []
    if level.get("claims"):
        errors.append(forbidden(f"{at}.claims", "claims may not be set for Resources at pod-level"))
    claims = [claim.get("name", "") for claim in spec.get("resourceClaims") or []]
    errors += _requirements(level, at, _pod_resource_name, claims)
    requests, limits = resources.amounts(level.get("requests")), resources.amounts(level.get("limits"))
    view = pod_view({"spec": spec})
    for name, together in sorted(resources.container_request_amounts(view).items()):
        if name in requests and together > requests[name]:
            why = f"must be greater than or equal to aggregate container requests of {together}"
            errors.append(invalid(f"{at}.requests[{name}]", requests[name].canonical(), why))
    for name, together in sorted(resources.container_limit_amounts(view).items()):
        if _is_hugepages(name) and name in limits and together > limits[name]:
            why = f"must be greater than or equal to aggregate container limits of {together}"
            errors.append(invalid(f"{at}.limits[{name}]", limits[name].canonical(), why))
    for where, container in each(f"{at}.containers", spec.get("containers")):
        for name, limit in sorted(resources.amounts((container.get("resources") or {}).get("limits")).items()):
            if name in limits and limit > limits[name]:
                why = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(invalid(f"{where}[{name}].limits", limit.canonical(), why))
    return errors


# ---------------------------------------------------------------- where it may run


def _labels(path: str, labels: Mapping[str, str] | None) -> Errors:
    errors: Errors = []
    for key, value in (labels or {}).items():
        errors += _named(path, key, names.qualified_name) + _named(path, value, names.label_value)
    return errors


def _selector_requirement(expression: Node, path: str, known: Sequence[str], *, values_checked: bool = True) -> Errors:
    errors: Errors = []
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator not in known:
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif operator in ("In", "NotIn") and not values:
        errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist") and values:
        errors.append(forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    elif operator in ("Gt", "Lt") and len(values) != 1:
        errors.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    errors += _named(f"{path}.key", expression.get("key", ""), names.qualified_name)
    if values_checked:
        for at, value in each(f"{path}.values", values):
            errors += _named(at, value, names.label_value)
    return errors


def validate_label_selector(selector: Node | None, path: str) -> Errors:
    """Errors of a LabelSelector."""
    if selector is None:
        return []
    errors = _labels(f"{path}.matchLabels", selector.get("matchLabels"))
    for at, expression in each(f"{path}.matchExpressions", selector.get("matchExpressions")):
        errors += _selector_requirement(expression, at, ("In", "NotIn", "Exists", "DoesNotExist"))
    return errors


def _node_term(term: Node, path: str, *, values_checked: bool) -> Errors:
    errors: Errors = []
    known = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    for at, expression in each(f"{path}.matchExpressions", term.get("matchExpressions")):
        errors += _selector_requirement(expression, at, known, values_checked=values_checked)
    for at, field in each(f"{path}.matchFields", term.get("matchFields")):
        if field.get("operator") not in ("In", "NotIn"):
            errors.append(invalid(f"{at}.operator", field.get("operator", ""), "not a valid selector operator"))
        elif len(field.get("values") or []) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            errors.append(required(f"{at}.values", why))
        if field.get("key") != "metadata.name":
            errors.append(invalid(f"{at}.key", field.get("key", ""), "not a valid field selector key"))
            continue
        for where, value in each(f"{at}.values", field.get("values")):
            errors += _named(where, value, names.dns1123_subdomain)
    return errors


def _affinity(affinity: Node, path: str) -> Errors:
    errors: Errors = []
    node = affinity.get("nodeAffinity") or {}
    at = f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    needed = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if needed is not None:
        terms = needed.get("nodeSelectorTerms")
        if not terms:
            errors.append(required(f"{at}.nodeSelectorTerms", "must have at least one node selector term"))
        for where, term in each(f"{at}.nodeSelectorTerms", terms):
            errors += _node_term(term, where, values_checked=True)
    preferred = node.get("preferredDuringSchedulingIgnoredDuringExecution")
    for where, term in each(f"{path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", preferred):
        errors += _weight(term, where)
        errors += _node_term(term.get("preference") or {}, f"{where}.preference", values_checked=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        own = affinity.get(kind) or {}
        for where, term in each(
            f"{path}.{kind}.requiredDuringSchedulingIgnoredDuringExecution",
            own.get("requiredDuringSchedulingIgnoredDuringExecution"),
        ):
            errors += _pod_term(term, where)
        for where, term in each(
            f"{path}.{kind}.preferredDuringSchedulingIgnoredDuringExecution",
            own.get("preferredDuringSchedulingIgnoredDuringExecution"),
        ):
            errors += _weight(term, where)
            errors += _pod_term(term.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")
    return errors


def _weight(term: Node, path: str) -> Errors:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_term(term: Node, path: str) -> Errors:
    errors = validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    errors += validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or []:
        errors += _named(f"{path}.namespace", name, names.dns1123_label)
    errors += _matched_keys(term, path)
    key = term.get("topologyKey", "")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + _named(f"{path}.topologyKey", key, names.qualified_name)


def _spread(constraints: Sequence[Node] | None, path: str) -> Errors:
    errors: Errors = []
    kinds = [(one.get("topologyKey", ""), one.get("whenUnsatisfiable", "")) for one in constraints or []]
    for index, (at, constraint) in enumerate(each(path, constraints)):
        if constraint.get("maxSkew", 0) <= 0:
            errors.append(invalid(f"{at}.maxSkew", constraint.get("maxSkew", 0), _NOT_POSITIVE))
        key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        if not key:
            errors.append(required(f"{at}.topologyKey", "can not be empty"))
        known = ("DoNotSchedule", "ScheduleAnyway")
        if action not in known:
            errors.append(not_supported(f"{at}.whenUnsatisfiable", action, known))
        if (key, action) in kinds[index + 1 :]:
            errors.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        least = constraint.get("minDomains")
        if least is not None:
            if least <= 0:
                errors.append(invalid(f"{at}.minDomains", least, _NOT_POSITIVE))
            if action != "DoNotSchedule":
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(invalid(f"{at}.minDomains", least, why))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(field) is not None and constraint[field] not in ("Honor", "Ignore"):
                errors.append(not_supported(f"{at}.{field}", constraint[field], ("Honor", "Ignore")))
        errors += _matched_keys(constraint, at)
        errors += validate_label_selector(constraint.get("labelSelector"), f"{at}.labelSelector")
    return errors


def _matched_keys(term: Node, path: str) -> Errors:
    """Keys whose values are taken from the pod itself."""
    errors: Errors = []
    selector = term.get("labelSelector")
    matched, mismatched = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            errors.append(forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set"))
            continue
        for at, key in each(f"{path}.{field}", keys):
            errors += _named(at, key, names.qualified_name)
    said = set((selector or {}).get("matchLabels") or {})
    for expression in (selector or {}).get("matchExpressions") or []:
        key = expression.get("key", "")
        if key in matched and key in said:
            last = len(matched) - 1 - matched[::-1].index(key)
            errors.append(invalid(f"{path}[{last}]", key, "exists in both matchLabelKeys and labelSelector"))
        said.add(key)
    for at, key in each(f"{path}.matchLabelKeys", matched):
        if key in mismatched:
            errors.append(invalid(at, key, "exists in both matchLabelKeys and mismatchLabelKeys"))
    return errors


def _scheduling_gates(gates: Sequence[Node] | None, path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for at, gate in each(path, gates):
        name = gate.get("name", "")
        errors += _named(at, name, names.qualified_name)
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
    return errors


def _dns_config(spec: Node, path: str) -> Errors:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            return [required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")]
    errors: Errors = []
    servers, searches = (config or {}).get("nameservers") or [], (config or {}).get("searches") or []
    if len(servers) > _NAMESERVERS_MAX:
        errors.append(invalid(f"{path}.nameservers", servers, f"must not have more than {_NAMESERVERS_MAX} nameservers"))
    for at, server in each(f"{path}.nameservers", servers):
        errors += _named(at, server, names.ip_address)
    if len(searches) > _SEARCHES_MAX:
        errors.append(invalid(f"{path}.searches", searches, f"must not have more than {_SEARCHES_MAX} search paths"))
    if len(" ".join(searches)) > _SEARCH_CHARACTERS_MAX:
        why = f"must not have more than {_SEARCH_CHARACTERS_MAX} characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, why))
    for at, search in each(f"{path}.searches", searches):
        if search != ".":
            errors += _named(at, search.removesuffix("."), names.search_domain)
    for at, option in each(f"{path}.options", (config or {}).get("options")):
        if not option.get("name"):
            errors.append(required(at, "must not be empty"))
    return errors


def _host_aliases(aliases: Sequence[Node] | None, path: str) -> Errors:
    errors: Errors = []
    for at, alias in each(path, aliases):
        errors += _named(f"{at}.ip", alias.get("ip", ""), names.ip_address)
        for where, name in each(f"{at}.hostnames", alias.get("hostnames")):
            errors += _named(where, name, names.dns1123_subdomain)
    return errors


def _host_name(spec: Node, path: str) -> Errors:
    """A host name that replaces the usual one."""
    name, at = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if name is None:
        return []
    errors: Errors = []
    if spec.get("setHostnameAsFQDN"):
        errors.append(forbidden(at, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(forbidden(at, "may not be specified when hostNetwork is true"))
    if len(name.encode()) > _HOST_NAME_MAX:
        errors.append(too_long(at, _HOST_NAME_MAX))
    return errors + _named(at, name, names.dns1123_subdomain)


def _resource_claims(claims: Sequence[Node] | None, path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for at, claim in each(path, claims):
        name, existing, template = claim.get("name", ""), claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {"Name": name, "ResourceClaimName": existing, "ResourceClaimTemplateName": template}
        if not name:
            errors.append(required(f"{at}.name"))
        elif name in seen:
            errors.append(duplicate(f"{at}.name", name))
        else:
            errors += _named(f"{at}.name", name, names.dns1123_label)
        seen.add(name)
        if existing is not None and template is not None:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(at, shown, why))
        if existing is None and template is None:
            errors.append(invalid(at, shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
        for field, value in (("resourceClaimName", existing), ("resourceClaimTemplateName", template)):
            if value is not None:
                errors += _named(f"{at}.{field}", value, names.dns1123_subdomain)
    return errors


def validate_tolerations(tolerations: Sequence[Node] | None, path: str) -> Errors:
    """Errors of a list of tolerations."""
    errors: Errors = []
    for at, toleration in each(path, tolerations):
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            errors += _named(f"{at}.key", key, names.qualified_name)
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{at}.operator", operator, why))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            errors.append(invalid(f"{at}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
        if operator in ("", "Equal"):
            findings = names.label_value(value)
            if findings:
                errors.append(invalid(f"{at}.operator", value, ";".join(findings)))
        elif operator == "Exists":
            if value:
                errors.append(invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'"))
        else:
            errors.append(not_supported(f"{at}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            errors.append(not_supported(f"{at}.effect", effect, ("NoSchedule", "PreferNoSchedule", "NoExecute")))
    return errors
