"""Lists: selectors, versions, pages that are one snapshot."""

from typing import Any

import pytest
from apiserver_world import World, a_node, a_pod


def a_world() -> World:
    world = World()
    for number in range(5):
        meta = {"name": f"c{number}", "labels": {"n": str(number), "app": "ab"[number % 2]}}
        world.create("configmaps", {"metadata": meta, "data": {"i": str(number)}}, "default")
    return world


def names(answer: Any) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


def test_items_of_a_list_do_not_repeat_their_kind() -> None:
    answer = a_world().list("configmaps", "default")
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert all("kind" not in item and item["data"] for item in answer.body["items"])
    assert answer.body["metadata"] == {"resourceVersion": "11"} and answer.revision == 11


def test_an_empty_collection_is_an_empty_list() -> None:
    assert World().list("leases.coordination.k8s.io").body == {
        "kind": "LeaseList",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"resourceVersion": "6"},
        "items": [],
    }


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"labelSelector": "app=a"}, ["c0", "c2", "c4"]),
        ({"labelSelector": "app!=a,n notin (3)"}, ["c1"]),
        ({"labelSelector": "n>2"}, ["c3", "c4"]),
        ({"fieldSelector": "metadata.name=c3"}, ["c3"]),
        ({"fieldSelector": "metadata.name!=c3,metadata.namespace=default", "labelSelector": "app=b"}, ["c1"]),
        ({"fieldSelector": "metadata.name=none"}, []),
    ],
)
def test_selectors_select(query: dict[str, str], wanted: list[str]) -> None:
    assert names(a_world().list("configmaps", "default", **query)) == wanted


def test_pods_are_found_by_their_fields() -> None:
    world = World()
    world.create("nodes", a_node())
    world.create("pods", a_pod("a", node="n1"), "default")
    world.create("pods", a_pod("b", node="n2"), "default")
    world.create("pods", a_pod("c"), "default")
    for selector, wanted in (
        ("spec.nodeName=n1", ["a"]),
        ("spec.nodeName=", ["c"]),
        ("spec.nodeName!=n1,status.phase=Pending", ["b", "c"]),
        ("spec.nodeName=n2,metadata.namespace=other", []),
    ):
        assert names(world.list("pods", fieldSelector=selector)) == wanted


REFUSED: list[tuple[str, dict[str, str], int, str]] = [
    ("pods", {"fieldSelector": "spec.nope=1"}, 400, "field label not supported: spec.nope"),
    (
        "configmaps",
        {"fieldSelector": "data.i=1"},
        400,
        '"data.i" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ),
    ("pods", {"labelSelector": "a b"}, 400, "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    (
        "pods",
        {"resourceVersion": "abc"},
        400,
        'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
    ),
    ("pods", {"resourceVersion": "999"}, 504, "Timeout: Too large resource version: 999, current: 11"),
    ("pods", {"continue": "bad"}, 400, "invalid continue token: continue key is not valid: "),
    ("pods", {"continue": "x"}, 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"),
    ("pods", {"continue": "ab!d"}, 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 2"),
    (
        "pods",
        {"continue": "e30"},
        400,
        "invalid continue token: continue key is not valid: server does not recognize this encoded version ",
    ),
    (
        "pods",
        {"continue": "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"},
        400,
        "invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
    ),
    (
        "pods",
        {"continue": "x", "resourceVersion": "1", "resourceVersionMatch": "Exact"},
        422,
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
    ),
    ("pods", {"resourceVersion": "x", "resourceVersionMatch": "y"}, 422, 'resourceVersionMatch: Unsupported value: "y"'),
    ("pods", {"sendInitialEvents": ""}, 422, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
    ("pods", {"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    ("pods", {"resourceVersionMatch": "x", "resourceVersion": "1"}, 422, 'supported values: "Exact", "NotOlderThan", ""'),
    ("pods", {"resourceVersionMatch": "Exact"}, 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
]


@pytest.mark.parametrize(("resource", "query", "code", "words"), REFUSED)
def test_a_list_that_cannot_be_is_refused_in_upstreams_words(resource: str, query: dict[str, str], code: int, words: str) -> None:
    answer = a_world().list(resource, "default", **query)
    assert answer.status == code and words in answer.message


def test_a_future_version_says_when_to_come_again() -> None:
    answer = a_world().list("pods", resourceVersion="999")
    assert answer.body["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }


def test_the_pages_of_a_list_are_one_snapshot() -> None:
    world = a_world()
    first = world.list("configmaps", "default", limit="2")
    assert names(first) == ["c0", "c1"] and first.body["metadata"]["remainingItemCount"] == 3
    world.delete("configmaps", "c2", "default")
    world.create("configmaps", {"metadata": {"name": "c10"}}, "default")
    world.patch("configmaps", "c3", {"data": {"i": "new"}}, namespace="default")
    second = world.list("configmaps", "default", limit="2", **{"continue": first.body["metadata"]["continue"]})
    third = world.list("configmaps", "default", limit="2", **{"continue": second.body["metadata"]["continue"]})
    assert (names(second), names(third)) == (["c2", "c3"], ["c4"])
    assert second.body["items"][1]["data"] == {"i": "3"}
    assert {page.body["metadata"]["resourceVersion"] for page in (first, second, third)} == {"11"}
    assert "continue" not in third.body["metadata"]
    assert names(world.list("configmaps", "default")) == ["c0", "c1", "c10", "c3", "c4"]


def test_with_a_selector_nobody_counts_the_rest() -> None:
    meta = a_world().list("configmaps", "default", limit="1", labelSelector="app=a").body["metadata"]
    assert "continue" in meta and "remainingItemCount" not in meta


def test_an_exact_version_is_read_as_it_was() -> None:
    world = a_world()
    world.delete("configmaps", "c0", "default")
    assert names(world.list("configmaps", "default", resourceVersion="8", resourceVersionMatch="Exact")) == ["c0", "c1"]
    assert "c0" not in names(world.list("configmaps", "default", resourceVersion="8", resourceVersionMatch="NotOlderThan"))


def test_any_version_is_answered_whole() -> None:
    assert len(names(a_world().list("configmaps", "default", resourceVersion="0", limit="1"))) == 5


def test_what_compaction_has_passed_is_410() -> None:
    world = World(compaction_seconds=10)
    for number in range(4):
        world.create("configmaps", {"metadata": {"name": f"c{number}"}}, "default")
    page = world.list("configmaps", "default", limit="2").body["metadata"]["continue"]
    world.wait(11)
    for number in range(4):
        world.patch("configmaps", f"c{number}", {"data": {"k": "v"}}, namespace="default")
    world.wait(20)
    old = world.list("configmaps", "default", resourceVersion="9", resourceVersionMatch="Exact")
    assert (old.status, old.body["reason"], old.message) == (
        410,
        "Expired",
        "The resourceVersion for the provided list is too old.",
    )
    expired = world.list("configmaps", "default", limit="2", **{"continue": page})
    assert expired.status == 410 and expired.message.startswith("The provided continue parameter is too old")
    rest = world.list("configmaps", "default", **{"continue": expired.body["metadata"]["continue"]})
    assert names(rest) == ["c2", "c3"]
