"""What a kubelet may read: upstream's node authorizer, which lets it see its own node, its pods, and what those refer to."""

from collections.abc import Iterator, Mapping
from typing import Any

from elbowroom.apiserver.store import Store
from elbowroom.wire import ApiRequest

LEASES = "kube-node-lease"
_READS = ("get", "list", "watch")
_LEASE_VERBS = ("get", "create", "update", "patch", "delete")

Node = Mapping[str, Any]


def judged(request: ApiRequest, node: str, store: Store) -> str | None:
    """Empty: the node may do that; a text: why it may not, if nobody else lets it; None: it is nothing that is decided here."""
    verb = request.verb
    match f"{request.resource}.{request.group}" if request.group else request.resource:
        case "leases.coordination.k8s.io" if not request.subresource:
            return _lease(request, node)
        case "serviceaccounts":
            return _service_account(request, node, store)
        case "pods" if verb in _READS and not request.subresource:
            return _pods(request, node, store)
        case "nodes" if verb in _READS and not request.subresource:
            return _nodes(request, node)
        case "configmaps" | "secrets":
            if verb not in _READS:
                return "can only read resources of this type"
            if not request.namespace:
                return "can only read namespaced object of this type"
            return _related(request.resource, request.namespace, _name(request), node, store)
        case "services" | "runtimeclasses.node.k8s.io" if verb in _READS and not request.subresource:
            return ""
        case "events" | "events.events.k8s.io" if verb in ("create", "patch", "update") and not request.subresource:
            return ""
        case _:
            return None


def _lease(request: ApiRequest, node: str) -> str:
    if request.verb not in _LEASE_VERBS:
        return "can only get, create, update, patch, or delete a node lease"
    if request.namespace != LEASES:
        return f'can only access leases in the "{LEASES}" system namespace'
    if request.verb != "create" and request.name != node:
        return "can only access node lease with the same name as the requesting node"
    return ""


def _service_account(request: ApiRequest, node: str, store: Store) -> str:
    if request.verb == "get" and not request.subresource:
        return _related("serviceaccounts", request.namespace, request.name, node, store)
    if request.verb != "create" or not request.name:
        return "can only create tokens for individual service accounts"
    if request.subresource != "token":
        return "can only create token subresource of serviceaccount"
    return _related("serviceaccounts", request.namespace, request.name, node, store)


def _pods(request: ApiRequest, node: str, store: Store) -> str:
    if request.verb == "get":
        return _own_pod(request.namespace, request.name, node, store)
    if _selected(request, "spec.nodeName") == node:
        return ""
    name = _name(request)
    return _own_pod(request.namespace, name, node, store) if name else "can only list/watch pods with spec.nodeName field selector"


def _own_pod(namespace: str, name: str, node: str, store: Store) -> str:
    found = store.get("pods", namespace, name)
    return "" if found is not None and found.document["spec"].get("nodeName") == node else _unrelated(node)


def _nodes(request: ApiRequest, node: str) -> str:
    name = _name(request)
    if name == node:
        return ""
    if not name:
        return f"node '{node}' cannot read all nodes, only its own Node object"
    return f"node '{node}' cannot read '{name}', only its own Node object"


def _related(resource: str, namespace: str, name: str, node: str, store: Store) -> str:
    """Does a pod of the node refer to the object?"""
    if not name:
        return "No Object name found"
    for pod in store.having("pods", node):
        if pod.namespace == namespace and (resource, name) in _references(pod.document["spec"]):
            return ""
    return _unrelated(node)


def _unrelated(node: str) -> str:
    return f"no relationship found between node '{node}' and this object"


def _references(spec: Node) -> Iterator[tuple[str, str]]:
    """(resource, name) of the objects in its namespace that a pod needs."""
    yield "serviceaccounts", spec.get("serviceAccountName") or "default"
    for secret in spec.get("imagePullSecrets") or ():
        yield "secrets", secret.get("name", "")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            for source in container.get("envFrom") or ():
                yield from _named(source, "configMapRef", "secretRef")
            for variable in container.get("env") or ():
                yield from _named(variable.get("valueFrom") or {}, "configMapKeyRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        yield from _mounted(volume)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _named(source, "configMap", "secret")


def _named(source: Node, config_map: str, secret: str) -> Iterator[tuple[str, str]]:
    for field, resource in ((config_map, "configmaps"), (secret, "secrets")):
        if source.get(field):
            yield resource, source[field].get("name", "")


def _mounted(volume: Node) -> Iterator[tuple[str, str]]:
    if volume.get("configMap"):
        yield "configmaps", volume["configMap"].get("name", "")
    if volume.get("secret"):
        yield "secrets", volume["secret"].get("secretName", "")


def _name(request: ApiRequest) -> str:
    """The one object that a request is about; a collection may be narrowed to it."""
    return request.name or _selected(request, "metadata.name")


def _selected(request: ApiRequest, field: str) -> str:
    """The value that a field selector asks of a field, if it asks for one."""
    for part in request.query.get("fieldSelector", "").split(","):
        name, sign, value = part.partition("=")
        if sign and name.strip() == field:
            return value.removeprefix("=").strip()
    return ""
