"""A node may create mirrors of its own pods, and no other pod (upstream's NodeRestriction)."""

from typing import Any

import pytest
from apiserver_world import World, a_node, a_pod

from elbowroom.rpc import requests

MIRROR = {"kubernetes.io/config.mirror": "abc"}


def a_mirror(world: World, notes: dict[str, str] = MIRROR, node: str = "n1", owners: Any = ({},)) -> dict[str, Any]:
    uid = world.get("nodes", "n1").body["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
    pod: dict[str, Any] = a_pod("web-n1")
    pod["metadata"] |= {"annotations": notes, "ownerReferences": [{**owner, **changes} for changes in owners]}
    pod["spec"]["nodeName"] = node
    return pod


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"notes": {}}, 'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods'),
        ({"node": "n2"}, 'node "n1" can only create pods with spec.nodeName set to itself'),
        ({"owners": ()}, 'node "n1" can only create pods with an owner reference set to itself'),
        ({"owners": ({"name": "n2"},)}, 'node "n1" can only create pods with an owner reference set to itself'),
        ({"owners": ({}, {})}, 'node "n1" can only create pods with a single owner reference set to itself'),
        ({"owners": ({"controller": False},)}, 'node "n1" can only create pods with a controller owner reference set to itself'),
        ({"owners": ({"blockOwnerDeletion": True},)}, 'node "n1" must not set blockOwnerDeletion on an owner reference'),
        ({"owners": ({"uid": "x"},)}, "node n1 UID mismatch: expected x got "),
    ],
)
def test_a_node_creates_mirrors_of_its_own_pods_alone(changes: dict[str, Any], words: str) -> None:
    world = World()
    world.create("nodes", a_node("n1"))
    answer = world.ask(requests.create("pods", a_mirror(world, **changes), namespace="default"), "kubelet/n1")
    if not words:
        assert answer.status == 201 and answer.body["metadata"]["uid"] != ""
    else:
        assert answer.status == 403 and f'pods "web-n1" is forbidden: {words}' in answer.body["message"]


def test_a_body_that_is_no_pod_is_refused() -> None:
    world = World()
    assert world.ask(requests.create("pods", b"[", namespace="default"), "kubelet/n1").status == 403
