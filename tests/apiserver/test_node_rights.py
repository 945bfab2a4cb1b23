"""A kubelet touches its own node, its pods and its Lease, over the bus or over HTTP; all else is refused in upstream's words."""

from typing import Any

import msgspec
import pytest
from apiserver_world import Answer, World, a_node, a_pod, requests_of

from elbowroom.rpc import MERGE_PATCH, requests
from elbowroom.wire import ApiRequest

LEASE, LEASES = "leases.coordination.k8s.io", "kube-node-lease"


def a_world() -> World:
    """n1 has pod ``a``, which reads the config map ``mine``; n2 has pod ``b``."""
    world = World(policy=True)
    for name in ("n1", "n2"):
        world.create("nodes", a_node(name))
        world.create(LEASE, {"metadata": {"name": name}}, LEASES)
    world.create("pods", a_pod("a", node="n1", volumes=[{"name": "v", "configMap": {"name": "mine"}}]), "default")
    world.create("pods", a_pod("b", node="n2"), "default")
    for name in ("mine", "other"):
        world.create("configmaps", {"metadata": {"name": name}}, "default")
    for name in ("default", "robot"):
        world.create("serviceaccounts", {"metadata": {"name": name}}, "default")
    return world


def over_the_bus(world: World, request: ApiRequest) -> Answer:
    return world.ask(request, "kubelet/n1")


def over_http(world: World, request: ApiRequest) -> Answer:
    groups = ("system:nodes", "system:authenticated")
    return world.ask(msgspec.structs.replace(request, user="system:node:n1", groups=groups), "http/1")


def pod(verb: str, name: str, **more: Any) -> ApiRequest:
    return ApiRequest(verb, "pods", namespace="default", name=name, **more)


def listing(resource: str, namespace: str = "", **query: str) -> ApiRequest:
    return requests.listing(resource, namespace=namespace, query=query)


def node_patch(name: str, body: Any, subresource: str = "") -> ApiRequest:
    return requests.patch("nodes", name, body, subresource=subresource, kind=MERGE_PATCH)


def status(name: str, body: Any) -> ApiRequest:
    return requests.patch("pods", name, body, namespace="default", subresource="status", kind=MERGE_PATCH)


def token(account: str, **spec: Any) -> ApiRequest:
    return requests.create("serviceaccounts", {"spec": spec}, namespace="default", name=account, subresource="token")


def eviction(name: str) -> ApiRequest:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return requests.create("pods", body, namespace="default", name=name, subresource="eviction")


ALLOWED = {
    "its own pods": listing("pods", fieldSelector="spec.nodeName=n1"),
    "its own pods, among other conditions": listing("pods", fieldSelector="status.phase!=Failed,spec.nodeName==n1"),
    "a pod of its own": pod("get", "a"),
    "one of its pods by a list": listing("pods", "default", fieldSelector="metadata.name=a"),
    "its Node": requests.get("nodes", "n1"),
    "its Node by a list": listing("nodes", fieldSelector="metadata.name=n1"),
    "its Lease": requests.get(LEASE, "n1", namespace=LEASES),
    "a config map that a pod of its own reads": requests.get("configmaps", "mine", namespace="default"),
    "the account of a pod of its own": requests.get("serviceaccounts", "default", namespace="default"),
    "services": listing("services"),
    "a label of its own": node_patch("n1", {"metadata": {"labels": {"kubernetes.io/hostname": "x", "example.com/a": "b"}}}),
    "a label in the kubelet's namespace": node_patch("n1", {"metadata": {"labels": {"a.node.kubernetes.io/x": "y"}}}),
    "the status of its Node": node_patch("n1", {"status": {"phase": "Running"}}, "status"),
    "the status of its pod": status("a", {"status": {"phase": "Running"}}),
    "the eviction of its pod": eviction("a"),
    "the end of its pod": requests.delete("pods", "a", namespace="default"),
}

UNRELATED = "no relationship found between node 'n1' and this object"
SELECTOR = "can only list/watch pods with spec.nodeName field selector"


def no(what: str, verb: str, resource: str, why: str = "", where: str = "default", group: str = "") -> str:
    """A refusal of the node authorizer, which may say why."""
    scope = f'in the namespace "{where}"' if where else "at the cluster scope"
    tail = f": {why}" if why else ""
    return f'{what} is forbidden: User "system:node:n1" cannot {verb} resource "{resource}" in API group "{group}" {scope}{tail}'


def restricted(what: str, why: str) -> str:
    """A refusal of NodeRestriction."""
    return f"{what} is forbidden: {why}"


def bound_to(name: str, **more: Any) -> dict[str, Any]:
    return {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name, **more}}


OWNER = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}
TAINT = {"key": "k", "effect": "NoSchedule"}
COORDINATION, RBAC = "coordination.k8s.io", "rbac.authorization.k8s.io"
REFUSED: dict[str, tuple[ApiRequest, str]] = {
    "all pods": (listing("pods"), no("pods", "list", "pods", SELECTOR, "")),
    "the pods of another node": (
        listing("pods", fieldSelector="spec.nodeName=n2"),
        no("pods", "list", "pods", SELECTOR, ""),
    ),
    "all pods but its own": (
        listing("pods", fieldSelector="spec.nodeName!=n1"),
        no("pods", "list", "pods", SELECTOR, ""),
    ),
    "a pod of another node": (pod("get", "b"), no('pods "b"', "get", "pods", UNRELATED)),
    "a pod that is not": (pod("get", "none"), no('pods "none"', "get", "pods", UNRELATED)),
    "all nodes": (
        listing("nodes"),
        no("nodes", "list", "nodes", "node 'n1' cannot read all nodes, only its own Node object", ""),
    ),
    "a look at another node": (
        requests.get("nodes", "n2"),
        no('nodes "n2"', "get", "nodes", "node 'n1' cannot read 'n2', only its own Node object", ""),
    ),
    "the end of its Node": (requests.delete("nodes", "n1"), no('nodes "n1"', "delete", "nodes", "", "")),
    "another node's status": (
        node_patch("n2", {"status": {}}, "status"),
        restricted('nodes "n2"', 'node "n1" is not allowed to modify node "n2"'),
    ),
    "another node's spec": (
        node_patch("n2", {"spec": {"unschedulable": True}}),
        restricted('nodes "n2"', 'node "n1" is not allowed to modify node "n2"'),
    ),
    "a Node of another name": (
        requests.create("nodes", a_node("n3")),
        restricted('nodes "n3"', 'node "n1" is not allowed to modify node "n3"'),
    ),
    "its taints": (
        node_patch("n1", {"spec": {"taints": [TAINT]}}),
        restricted('nodes "n1"', 'node "n1" is not allowed to modify taints'),
    ),
    "its owners": (
        node_patch("n1", {"metadata": {"ownerReferences": [OWNER]}}),
        restricted('nodes "n1"', 'node "n1" is not allowed to modify ownerReferences'),
    ),
    "labels that others decide by": (
        node_patch("n1", {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b", "kubernetes.io/role": "x"}}}),
        restricted('nodes "n1"', "is not allowed to modify labels: kubernetes.io/role, node-restriction.kubernetes.io/a"),
    ),
    "a label through its status": (
        node_patch("n1", {"metadata": {"labels": {"x.k8s.io/a": "b"}}}, "status"),
        restricted('nodes "n1"', "is not allowed to modify labels: x.k8s.io/a"),
    ),
    "another node's Lease": (
        requests.patch(LEASE, "n2", {"spec": {}}, namespace=LEASES, kind=MERGE_PATCH),
        no(
            f'{LEASE} "n2"',
            "patch",
            "leases",
            "can only access node lease with the same name as the requesting node",
            LEASES,
            COORDINATION,
        ),
    ),
    "a Lease of another name": (
        requests.create(LEASE, {"metadata": {"name": "n3"}}, namespace=LEASES),
        restricted(f'{LEASE} "n3"', "can only access node lease with the same name as the requesting node"),
    ),
    "a Lease elsewhere": (
        requests.create(LEASE, {"metadata": {"name": "n1"}}, namespace="default"),
        no(LEASE, "create", "leases", f'can only access leases in the "{LEASES}" system namespace', "default", COORDINATION),
    ),
    "all Leases": (
        listing(LEASE, LEASES),
        no(LEASE, "list", "leases", "can only get, create, update, patch, or delete a node lease", LEASES, COORDINATION),
    ),
    "the status of another node's pod": (
        status("b", {"status": {"phase": "Failed"}}),
        restricted('pods "b"', 'node "n1" can only update pod status for pods with spec.nodeName set to itself'),
    ),
    "labels of its pod": (
        status("a", {"metadata": {"labels": {"app": "bank"}}}),
        restricted('pods "a"', 'node "n1" cannot update labels through pod status'),
    ),
    "the eviction of another node's pod": (
        eviction("b"),
        restricted('pods "b"', "node n1 can only evict pods with spec.nodeName set to itself"),
    ),
    "the end of another node's pod": (
        requests.delete("pods", "b", namespace="default"),
        restricted('pods "b"', 'node "n1" can only delete pods with spec.nodeName set to itself'),
    ),
    "the end of all pods": (
        ApiRequest("deletecollection", "pods", namespace="default"),
        no("pods", "deletecollection", "pods"),
    ),
    "the spec of its pod": (
        requests.patch("pods", "a", {"metadata": {"annotations": {"x": "y"}}}, namespace="default"),
        no('pods "a"', "patch", "pods"),
    ),
    "a resize of its pod": (
        requests.patch("pods", "a", requests_of("200m"), namespace="default", subresource="resize"),
        no('pods "a"', "patch", "pods/resize"),
    ),
    "a binding": (
        requests.create("pods", {"target": {"name": "n1"}}, namespace="default", name="a", subresource="binding"),
        no('pods "a"', "create", "pods/binding"),
    ),
    "a config map that none of its pods reads": (
        requests.get("configmaps", "other", namespace="default"),
        no('configmaps "other"', "get", "configmaps", UNRELATED),
    ),
    "all config maps of a namespace": (
        listing("configmaps", "default"),
        no("configmaps", "list", "configmaps", "No Object name found"),
    ),
    "the writing of a config map": (
        requests.patch("configmaps", "mine", {"data": {}}, namespace="default", kind=MERGE_PATCH),
        no('configmaps "mine"', "patch", "configmaps", "can only read resources of this type"),
    ),
    "a token of an account that none of its pods has": (
        token("robot"),
        no('serviceaccounts "robot"', "create", "serviceaccounts/token", UNRELATED),
    ),
    "a token bound to no pod": (
        token("default"),
        restricted('serviceaccounts "default"', "node requested token not bound to a pod"),
    ),
    "a token bound to a pod of unknown uid": (
        token("default", **bound_to("a")),
        restricted('serviceaccounts "default"', "node requested token with a pod binding without a uid"),
    ),
    "a token for another audience": (
        token("default", audiences=["vault"], **bound_to("a", uid="@a")),
        restricted(
            'serviceaccounts "default"',
            'audience "vault" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience',
        ),
    ),
    "a token for another node's pod": (
        token("default", **bound_to("b", uid="@b")),
        restricted('serviceaccounts "default"', "node requested token bound to a pod scheduled on a different node"),
    ),
    "roles": (listing(f"roles.{RBAC}", "default"), no(f"roles.{RBAC}", "list", "roles", group=RBAC)),
}


@pytest.mark.parametrize("what", list(ALLOWED))
def test_a_kubelet_may_have(what: str) -> None:
    for over in (over_the_bus, over_http):
        answer = over(a_world(), ALLOWED[what])
        assert answer.status < 300, answer.body


def _with_uids(world: World, request: ApiRequest) -> ApiRequest:
    body = request.body
    for name in ("a", "b"):
        uid = world.get("pods", name, namespace="default").body["metadata"]["uid"]
        body = body.replace(f'"@{name}"'.encode(), f'"{uid}"'.encode())
    return msgspec.structs.replace(request, body=body)


@pytest.mark.parametrize("what", list(REFUSED))
def test_a_kubelet_may_not_have(what: str) -> None:
    request, words = REFUSED[what]
    for over in (over_the_bus, over_http):
        world = a_world()
        before = dict(world.disk)
        answer = over(world, _with_uids(world, request))
        assert (answer.status, answer.message) == (403, words)
        assert world.disk == before


def test_a_kubelet_watches_its_own_pods_alone() -> None:
    world = a_world()
    own = world.watch("pods", peer="kubelet/n1", fieldSelector="spec.nodeName=n1")
    others = world.watch("pods", peer="kubelet/n1", fieldSelector="spec.nodeName=n2")
    assert own.end is None and others.end is not None
