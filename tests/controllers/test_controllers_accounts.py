"""Service accounts: each namespace has one called ``default``."""

from controllers_cluster import Cluster


def accounts(cluster: Cluster) -> list[str]:
    return sorted(f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in cluster.of("serviceaccounts"))


def test_a_new_namespace_is_given_a_service_account() -> None:
    cluster = Cluster("serviceaccounts")
    for name in ("a", "b"):
        cluster.api.create("namespaces", {"metadata": {"name": name}})
    cluster.wait(1)
    assert accounts(cluster) == ["a/default", "b/default"]


def test_one_that_is_deleted_is_made_again_and_others_are_left_alone() -> None:
    cluster = Cluster("serviceaccounts")
    cluster.api.create("namespaces", {"metadata": {"name": "a"}})
    cluster.api.create("serviceaccounts", {"metadata": {"name": "robot"}}, "a")
    cluster.wait(1)
    for name in ("default", "robot"):
        cluster.api.delete("serviceaccounts", f"a/{name}")
    cluster.wait(1)
    assert accounts(cluster) == ["a/default"]


def test_a_namespace_on_its_way_out_is_given_none() -> None:
    cluster = Cluster("serviceaccounts")
    cluster.api.create("namespaces", {"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}})
    cluster.wait(1)
    cluster.api.delete("namespaces", "a")
    cluster.api.delete("serviceaccounts", "a/default")
    cluster.wait(1)
    assert accounts(cluster) == []
