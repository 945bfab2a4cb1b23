"""Who may do what.

Administrators (``system:masters``) may do everything. A kubelet may read its own Node, its pods and what they refer to
(``node_rights``), write the status of its own Node and of the pods bound to it, mirror its own pods, keep its Lease, tell events;
it never touches another node's objects. What it may say in them is for the admission plugin NodeRestriction. The scheduler and the
controllers have broad rights that no role can take from them. Beyond that, and for everybody else, roles and bindings decide
(``rbac``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from elbowroom.api.objects import ObjectMeta, PodSpec
from elbowroom.apiserver import node_rights, statuses
from elbowroom.apiserver.rbac import Judge, Rbac
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.store import Store, StoreReader
from elbowroom.wire import ApiRequest

MASTERS = "system:masters"
NODES = "system:nodes"
NODE_PREFIX = "system:node:"
SCHEDULER = "system:kube-scheduler"
CONTROLLERS = "system:kube-controller-manager"
ADMIN = "elbowroom-admin"
AUTHENTICATED = "system:authenticated"

_READS = ("get", "list", "watch")

_SCHEDULER_RIGHTS = frozenset(
    (verb, what)
    for verbs, whats in (
        (("create", "patch", "update"), ("events", "events.events.k8s.io")),
        (("create",), ("pods/binding", "bindings")),
        (("patch", "update"), ("pods/status",)),
        (("delete",), ("pods",)),
        (("get", "create", "update", "patch"), ("leases.coordination.k8s.io",)),
    )
    for verb in verbs
    for what in whats
)


def identity_of_peer(peer: str) -> tuple[str, tuple[str, ...]]:
    """The user and groups that a peer of the bus is."""
    kind, _, name = peer.partition("/")
    match kind:
        case "kubelet":
            return NODE_PREFIX + name, (NODES, AUTHENTICATED)
        case "scheduler":
            return SCHEDULER, (AUTHENTICATED,)
        case "controllers":
            return CONTROLLERS, (AUTHENTICATED,)
        case "supervisor" | "client":
            return ADMIN, (MASTERS, AUTHENTICATED)
        case _:
            return "system:anonymous", ("system:unauthenticated",)


_PROGRAMS = {SCHEDULER: "kube-scheduler", CONTROLLERS: "kube-controller-manager", ADMIN: "elbowroom"}


def program_of(user: str) -> str:
    """What a user of the bus calls itself as a manager of fields; empty for people."""
    return "kubelet" if user.startswith(NODE_PREFIX) else _PROGRAMS.get(user, "")


@dataclass(frozen=True, slots=True)
class Judgement:
    """May it pass? ``reason`` is what RBAC says of it; ``refusal`` the whole answer, where it is another than ``cannot``."""

    allowed: bool
    reason: str = ""
    refusal: ApiError | None = None


_ALLOWED = Judgement(True)


def check(request: ApiRequest, store: Store, roles: Judge | None = None) -> Judgement:
    """Let the request pass or raise 403 with upstream's words."""
    judgement = judge(request, store, roles)
    if not judgement.allowed:
        raise judgement.refusal or cannot(request, judgement.reason)
    return judgement


def judge(request: ApiRequest, store: Store, roles: Judge | None = None) -> Judgement:
    """May the request's user do that? Everything that allows it is asked before roles and bindings are, of which ``roles`` may
    remember what they say."""
    if MASTERS in request.groups:
        return _ALLOWED
    what = f"{request.resource}.{request.group}" if request.group else request.resource
    what = f"{what}/{request.subresource}" if request.subresource else what
    why: str | None = None
    if NODES in request.groups and request.user.startswith(NODE_PREFIX):
        node = request.user.removeprefix(NODE_PREFIX)
        known = _node_judgement(request, node, what, store)
        if known is not None:
            return known
        why = node_rights.judged(request, node, store)
        if why == "":
            return _ALLOWED
    elif _is_a_components(request, what):
        return _ALLOWED
    verdict = (roles or Rbac(StoreReader(store))).decide(request)
    if verdict.allowed or not why:
        return Judgement(verdict.allowed, verdict.reason)
    return Judgement(False, ", ".join(filter(None, (why, verdict.reason))))


def _is_a_components(request: ApiRequest, what: str) -> bool:
    """Is it something that the scheduler or the controllers do, by whatever roles there are?"""
    if request.user == SCHEDULER:
        return request.verb in _READS or (request.verb, what) in _SCHEDULER_RIGHTS
    return request.user == CONTROLLERS and what not in ("pods/resize", "nodes/proxy")


def judge_path(user: str, groups: Sequence[str], verb: str, path: str, store: Store) -> Judgement:
    """May somebody do that with a path outside of resources?"""
    if MASTERS in groups:
        return _ALLOWED
    verdict = Rbac(StoreReader(store)).decide_path(user, groups, verb, path)
    return Judgement(verdict.allowed, verdict.reason)


def _node_judgement(request: ApiRequest, node: str, what: str, store: Store) -> Judgement | None:
    """What NodeRestriction says before the object is looked at, whoever else allows it; None if that is nothing."""
    verb = request.verb
    refusal: ApiError | None = None
    match what:
        case "nodes" | "nodes/status" if verb in ("create", "update", "patch"):
            name = request.name or node
            if name != node:
                refusal = statuses.forbidden("", "nodes", name, f'node "{node}" is not allowed to modify node "{name}"')
        case "pods" if verb == "create":
            refusal = _mirror_refusal(request, node, store)
        case "pods" | "pods/status" | "pods/eviction" if (verb, what) in _NODE_POD_RIGHTS:
            pod = store.get("pods", request.namespace, request.name)
            if pod is not None and pod.document["spec"].get("nodeName") != node:
                act = {"pods": "delete pods", "pods/eviction": "evict pods"}.get(what, "update pod status for pods")
                who = f"node {node}" if what == "pods/eviction" else f'node "{node}"'
                why = f"{who} can only {act} with spec.nodeName set to itself"
                refusal = statuses.forbidden("", "pods", request.name, why)
        case _:
            return None
    return _ALLOWED if refusal is None else Judgement(False, refusal=refusal)


_NODE_POD_RIGHTS = frozenset((("delete", "pods"), ("update", "pods/status"), ("patch", "pods/status"), ("create", "pods/eviction")))


class _Mirror(msgspec.Struct):
    """What a node's right to create a pod hangs on."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


def _mirror_refusal(request: ApiRequest, node: str, store: Store) -> ApiError | None:
    """A node may create mirrors of its own pods, and no other pod."""
    try:
        pod = msgspec.json.decode(request.body, type=_Mirror)
    except msgspec.MsgspecError:
        return cannot(request)
    owners = pod.metadata.owner_references
    found = store.get("nodes", "", node)
    uid = "" if found is None else found.document["metadata"].get("uid", "")
    if "kubernetes.io/config.mirror" not in pod.metadata.annotations:
        why = f'pod does not have "kubernetes.io/config.mirror" annotation, node "{node}" can only create mirror pods'
    elif pod.spec.node_name != node:
        why = f'node "{node}" can only create pods with spec.nodeName set to itself'
    elif len(owners) > 1:
        why = f'node "{node}" can only create pods with a single owner reference set to itself'
    elif not owners or (owners[0].api_version, owners[0].kind, owners[0].name) != ("v1", "Node", node):
        why = f'node "{node}" can only create pods with an owner reference set to itself'
    elif not owners[0].controller:
        why = f'node "{node}" can only create pods with a controller owner reference set to itself'
    elif owners[0].block_owner_deletion:
        why = f'node "{node}" must not set blockOwnerDeletion on an owner reference'
    elif owners[0].uid != uid:
        why = f"node {node} UID mismatch: expected {owners[0].uid} got {uid}"
    else:
        return None
    return statuses.forbidden("", "pods", pod.metadata.name, why)


def cannot(request: ApiRequest, reason: str = "") -> ApiError:
    """``User "u" cannot VERB resource "pods/resize" in API group "" in the namespace "n"``, and why if there is more to say."""
    what = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    where = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
    text = f'User "{request.user}" cannot {request.verb} resource "{what}" in API group "{request.group}" {where}'
    return statuses.forbidden(request.group, request.resource, request.name, f"{text}: {reason}" if reason else text)


def cannot_path(user: str, verb: str, path: str, reason: str = "") -> ApiError:
    """``forbidden: User "u" cannot get path "/metrics"``, and why if there is more to say."""
    text = f'forbidden: User "{user}" cannot {verb} path "{path}"'
    return ApiError(403, "Forbidden", f"{text}: {reason}" if reason else text, {})
