"""Custom kinds in the garbage collector: owners and owned, from the moment that they are served."""

from typing import Any

import msgspec
from controllers_cluster import Cluster

from elbowroom.rpc import MERGE_PATCH

Document = dict[str, Any]
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def define(cluster: Cluster, plural: str, kind: str, *versions: str, scope: str = "Namespaced") -> Document:
    spec = {
        "group": "x.io",
        "scope": scope,
        "names": {"plural": plural, "kind": kind},
        "versions": [{"name": version, "served": True} for version in versions or ("v1",)],
    }
    status = {"conditions": [{"type": "Established", "status": "True"}]}
    made = cluster.api.create(DEFINITIONS, {"metadata": {"name": f"{plural}.x.io"}, "spec": spec, "status": status})
    cluster.settle()
    return made


def refer(kind: str, owner: Document, version: str = "x.io/v1", **more: Any) -> Document:
    metadata = owner["metadata"]
    return {"apiVersion": version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], **more}


def make(cluster: Cluster, resource: str, name: str, *above: Document, namespace: str = "ns") -> Document:
    return cluster.api.create(resource, {"metadata": {"name": name, "ownerReferences": list(above)}}, namespace)


def names(cluster: Cluster, resource: str) -> list[str]:
    return sorted(one["metadata"]["name"] for one in cluster.of(resource))


def test_what_a_custom_object_owns_goes_after_it() -> None:
    cluster = Cluster("garbage")
    define(cluster, "tabs", "Tab", "v1beta1")
    owner = make(cluster, "tabs.x.io", "t")
    reference = refer("Tab", owner, "x.io/v1beta1")
    make(cluster, "configmaps", "mine", reference)
    make(cluster, "configmaps", "other", {**reference, "apiVersion": "y.io/v1"})
    cluster.wait(100)
    assert names(cluster, "configmaps") == ["mine", "other"]
    assert [request for request in cluster.api.log if request.resource == "tabs"] == [], "the copy shows the owner"
    cluster.api.delete("tabs.x.io", "ns/t")
    cluster.wait(2)
    assert names(cluster, "configmaps") == ["other"], "nobody defined a Tab of y.io"
    assert {request.version for request in cluster.api.log if request.resource == "tabs"} == {"v1beta1"}


def test_a_custom_object_goes_after_its_owner_and_its_own_after_it() -> None:
    cluster = Cluster("garbage")
    define(cluster, "tabs", "Tab")
    define(cluster, "leaves", "Leaf")
    top = cluster.api.create("deployments.apps", {"metadata": {"name": "d"}, "spec": {"strategy": {"type": "Recreate"}}}, "ns")
    tab = make(cluster, "tabs.x.io", "t", refer("Deployment", top, "apps/v1"))
    make(cluster, "leaves.x.io", "l", refer("Tab", tab))
    cluster.wait(2)
    assert names(cluster, "leaves.x.io") == ["l"]
    cluster.api.delete("deployments.apps", "ns/d")
    cluster.wait(2)
    assert cluster.of("tabs.x.io") == cluster.of("leaves.x.io") == []


def test_a_custom_owner_that_is_deleted_in_the_foreground_goes_last() -> None:
    cluster = Cluster("garbage")
    define(cluster, "tabs", "Tab")
    owner = make(cluster, "tabs.x.io", "t")
    make(cluster, "tabs.x.io", "inner", refer("Tab", owner, blockOwnerDeletion=True))
    make(cluster, "configmaps", "c", refer("Tab", owner, blockOwnerDeletion=True))
    cluster.wait(2)
    cluster.api.delete("tabs.x.io", "ns/t", {"propagationPolicy": "Foreground"})
    cluster.wait(2)
    assert cluster.of("tabs.x.io") == cluster.of("configmaps") == []
    assert [document["metadata"]["name"] for _, _, change, document in cluster.api.history if change == "DELETED"][-1] == "t"


def test_custom_orphans_forget_their_owner_by_a_patch_that_custom_kinds_know() -> None:
    cluster = Cluster("garbage")
    define(cluster, "tabs", "Tab")
    gone, kept = make(cluster, "tabs.x.io", "gone"), make(cluster, "tabs.x.io", "kept")
    make(cluster, "tabs.x.io", "both", refer("Tab", gone), refer("Tab", kept, controller=True))
    make(cluster, "tabs.x.io", "one", refer("Tab", gone))
    cluster.wait(2)
    cluster.api.delete("tabs.x.io", "ns/gone", {"propagationPolicy": "Orphan"})
    cluster.wait(2)
    assert names(cluster, "tabs.x.io") == ["both", "kept", "one"]
    assert cluster.get("tabs.x.io", "both")["metadata"]["ownerReferences"] == [refer("Tab", kept, controller=True)]
    assert "ownerReferences" not in cluster.get("tabs.x.io", "one")["metadata"]
    patches = [request for request in cluster.api.log if request.verb == "patch"]
    assert {request.content_type for request in patches} == {MERGE_PATCH}
    assert all("resourceVersion" in msgspec.json.decode(request.body)["metadata"] for request in patches)


def test_a_cluster_wide_object_is_left_alone_by_an_owner_inside_a_namespace() -> None:
    """It could be in any; upstream keeps such an object, and says that its reference is invalid."""
    cluster = Cluster("garbage")
    define(cluster, "tabs", "Tab")
    define(cluster, "worlds", "World", scope="Cluster")
    tab, world = make(cluster, "tabs.x.io", "t"), make(cluster, "worlds.x.io", "w", namespace="")
    make(cluster, "worlds.x.io", "strange", refer("Tab", tab), namespace="")
    make(cluster, "worlds.x.io", "inner", refer("World", world), namespace="")
    make(cluster, "configmaps", "c", refer("World", world))
    cluster.api.delete("tabs.x.io", "ns/t")
    cluster.wait(2)
    assert names(cluster, "worlds.x.io") == ["inner", "strange", "w"]
    cluster.api.delete("worlds.x.io", "w")
    cluster.wait(2)
    assert names(cluster, "worlds.x.io") == ["strange"] and cluster.of("configmaps") == []


def test_a_kind_is_read_in_a_version_that_is_served_and_forgotten_with_its_definition() -> None:
    cluster = Cluster("garbage")
    define(cluster, "tabs", "Tab", "v1", "v2")
    owner = make(cluster, "tabs.x.io", "t")
    make(cluster, "configmaps", "c", refer("Tab", owner))
    cluster.wait(2)
    versions = [{"name": "v1", "served": False}, {"name": "v2", "served": True}]
    cluster.api.change(DEFINITIONS, "tabs.x.io", {"spec": {"versions": versions}})
    cluster.wait(40)
    assert names(cluster, "configmaps") == ["c"], "what is read anew was never gone"
    cluster.api.delete(DEFINITIONS, "tabs.x.io")
    cluster.wait(2)
    assert names(cluster, "configmaps") == ["c"], "an owner of a kind that nobody serves is not judged"
    cluster.api.delete("tabs.x.io", "ns/t")
    define(cluster, "tabs", "Tab", "v2")
    cluster.api.change("configmaps", "ns/c", {"data": {"a": "b"}})
    cluster.wait(40)
    assert cluster.of("configmaps") == []
