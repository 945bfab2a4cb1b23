"""Sets of fields, what a write changes, and the entries that say who manages what."""

from typing import Any

import pytest
from apiserver_world import START, World, a_node, a_pod, requests_of
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.apiserver import managed, schema
from elbowroom.apiserver.managed import (
    Comparison,
    Manager,
    compare,
    difference,
    fields_of,
    held,
    in_order,
    intersection,
    members,
    union,
)
from elbowroom.machine import Instant
from elbowroom.rpc import MERGE_PATCH, requests


def pods() -> schema.Field:
    found = schema.find("", "v1", "Pod")
    assert found is not None
    return found


POD = pods()

# ---------------------------------------------------------------- sets

_ELEMENTS = ("f:a", "f:b", 'k:{"name":"c"}', 'v:"x"')
PATHS = st.frozensets(st.lists(st.sampled_from(_ELEMENTS), min_size=1, max_size=3).map(tuple), max_size=8)


def as_fields(paths: frozenset[tuple[str, ...]]) -> managed.Fields:
    """The set that has exactly these members."""
    found: managed.Fields = {}
    for path in paths:
        at = found
        for element in path:
            at = at.setdefault(element, {})
        at["."] = {}
    return _without_lone_marks(found)


def _without_lone_marks(node: managed.Fields) -> managed.Fields:
    return {
        element: {} if set(inner) == {"."} else _without_lone_marks(inner) if element != "." else {}
        for element, inner in node.items()
    }


def as_paths(fields: managed.Fields) -> frozenset[tuple[str, ...]]:
    return frozenset(members(fields))


@given(PATHS, PATHS)
def test_sets_of_fields_are_sets_of_paths(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> None:
    left, right = as_fields(one), as_fields(other)
    assert as_paths(left) == one
    assert as_paths(union(left, right)) == one | other
    assert as_paths(difference(left, right)) == one - other
    assert as_paths(intersection(left, right)) == one & other
    assert (left, right) == (as_fields(one), as_fields(other)), "neither is changed"
    assert union(left, right) == as_fields(one | other) and difference(left, right) == as_fields(one - other)


def test_a_set_is_written_in_order() -> None:
    assert list(in_order({"f:b": {"f:z": {}, ".": {}}, "f:a": {}})) == ["f:a", "f:b"]
    assert list(in_order({"f:b": {"f:z": {}, ".": {}}})["f:b"]) == [".", "f:z"]


def test_paths_are_shown_as_upstream_shows_them() -> None:
    path = ("f:spec", 'k:{"containerPort":80,"protocol":"TCP"}', 'v:"x"', "i:3")
    assert managed.path_text(path) == '.spec[containerPort=80,protocol="TCP"][="x"][3]'


# ---------------------------------------------------------------- what a value says, what a write changes


def test_a_value_says_its_leaves_and_the_elements_of_its_lists() -> None:
    said = {
        "metadata": {"labels": {"x": "y"}, "annotations": {}, "finalizers": ["a/b"]},
        "spec": {"nodeSelector": {"a": "b"}, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "volumes": []},
    }
    assert fields_of(POD, said) == {
        "f:metadata": {"f:labels": {"f:x": {}}, "f:annotations": {}, "f:finalizers": {'v:"a/b"': {}}},
        "f:spec": {
            "f:nodeSelector": {},
            "f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:resources": {"f:requests": {"f:cpu": {}}}}},
        },
    }


_C = 'k:{"name":"c"}'


def pod(**container: Any) -> dict[str, Any]:
    return {"metadata": {"uid": "1"}, "spec": {"containers": [{"name": "c", **container}]}, "status": {}}


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        (pod(), pod(), {}, {}),
        (pod(), {**pod(), "metadata": {"uid": "2", "name": "b", "resourceVersion": "7"}}, {}, {}),
        (pod(image="a"), pod(image="b"), {"f:image": {}}, {}),
        (pod(image="a"), pod(), {}, {"f:image": {}}),
        (pod(), pod(resources={"limits": {"cpu": "1"}}), {"f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}}}}, {}),
        (pod(resources={}), pod(resources={"limits": {"cpu": "1"}}), {"f:resources": {"f:limits": {".": {}, "f:cpu": {}}}}, {}),
        (pod(resources={"limits": {"cpu": "1", "a/b": "1"}}), pod(resources={"limits": {"cpu": "2"}}),
         {"f:resources": {"f:limits": {"f:cpu": {}}}}, {"f:resources": {"f:limits": {"f:a/b": {}}}}),
        (pod(ports=[{"containerPort": 1}]), pod(ports=[{"containerPort": 2, "protocol": "TCP"}]),
         {"f:ports": {'k:{"containerPort":2,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}}}},
         {"f:ports": {'k:{"containerPort":1,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}}),
        (pod(command=["a"]), pod(command=["a", "b"]), {"f:command": {}}, {}),
    ],
)  # fmt: skip
def test_a_write_is_known_by_what_it_changes_and_removes(old: Any, new: Any, changed: Any, removed: Any) -> None:
    def whole(node: managed.Fields) -> managed.Fields:
        return {"f:spec": {"f:containers": {_C: node}}} if node else {}

    assert compare(POD, old, new) == Comparison(whole(changed), whole(removed))


def test_containers_in_another_order_are_the_same_containers() -> None:
    two = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    swapped = [{"name": "b", "image": "j"}, {"name": "a", "image": "i"}]
    found = compare(POD, {"spec": {"containers": two}}, {"spec": {"containers": swapped}})
    assert found == Comparison({"f:spec": {"f:containers": {'k:{"name":"b"}': {"f:image": {}}}}}, {})


# ---------------------------------------------------------------- entries


_pods = st.fixed_dictionaries(
    {},
    optional={
        "image": st.sampled_from("xy"),
        "resources": st.dictionaries(
            st.sampled_from(["limits", "requests"]), st.dictionaries(st.sampled_from(["memory", "cpu"]), st.just("1"))
        ),
        "ports": st.lists(st.sampled_from([2, 1]).map(lambda port: {"containerPort": port}), max_size=2),
    },
).map(lambda container: pod(**container))


@given(st.lists(st.tuples(st.sampled_from(["b", "a"]), _pods), min_size=1, max_size=5))
def test_entries_stay_in_order_whoever_writes(writes: list[tuple[str, dict[str, Any]]]) -> None:
    entries: Any = ()
    before: Any = {}
    for name, document in writes:
        entries = managed.updated(entries, compare(POD, before, document), Manager(name, managed.UPDATE, "v1"), T1)
        before = document
    for entry in entries:
        assert str(entry["fieldsV1"]) == str(managed.in_order(entry["fieldsV1"]))


def test_entries_that_a_client_says_are_put_in_order() -> None:
    said = [{**ME.entry({"f:b": {}, "f:a": {}}, T1)}]
    assert list(managed.held(said, ())[0]["fieldsV1"]) == ["f:a", "f:b"]


ME = Manager("me", managed.UPDATE, "v1")
T1, T2 = "2027-01-01T00:00:00Z", "2027-01-01T00:00:09Z"


def test_a_field_has_the_manager_that_changed_it_last() -> None:
    entries = managed.updated((), Comparison({"f:data": {".": {}, "f:a": {}, "f:b": {}}}, {}), ME, T1)
    other = Manager("other", managed.UPDATE, "v1")
    after = managed.updated(entries, Comparison({"f:data": {"f:a": {}}}, {}), other, T2)
    assert [(entry["manager"], entry["time"], entry["fieldsV1"]) for entry in after] == [
        ("me", T1, {"f:data": {".": {}, "f:b": {}}}),
        ("other", T2, {"f:data": {"f:a": {}}}),
    ]


def test_an_update_that_changes_nothing_leaves_the_entries_and_their_times() -> None:
    entries = managed.updated((), Comparison({"f:data": {}}, {}), ME, T1)
    assert managed.updated(entries, Comparison({}, {}), ME, T2) is entries


def test_nobody_manages_what_is_gone_and_who_manages_nothing_has_no_entry() -> None:
    entries = managed.updated((), Comparison({"f:data": {"f:a": {}}}, {}), ME, T1)
    assert managed.updated(entries, Comparison({}, {"f:data": {"f:a": {}}}), Manager("x", managed.UPDATE, "v1"), T2) == []


def test_the_oldest_of_many_updaters_share_an_entry() -> None:
    entries: Any = ()
    for number in range(13):
        manager = Manager(f"m{number:02}", managed.UPDATE, "v1")
        entries = managed.updated(
            entries, Comparison({"f:data": {f"f:{number:02}": {}}}, {}), manager, f"2027-01-01T00:00:{number:02}Z"
        )
    assert len(entries) == managed.UPDATERS_MAX
    assert entries[0]["manager"] == managed.ANCIENT
    assert entries[0]["fieldsV1"] == {"f:data": {f"f:{number:02}": {} for number in range(4)}}


_STORED = ({"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}},)


@pytest.mark.parametrize(
    ("said", "base"),
    [
        (None, _STORED),
        ([], _STORED),
        ([{}], ()),
        ([{**_STORED[0], "manager": "b"}], [{**_STORED[0], "manager": "b"}]),
        ([{**_STORED[0], "operation": "Guess"}], _STORED),
        ([{**_STORED[0], "fieldsV1": {"data": {}}}], _STORED),
        ([{**_STORED[0], "fieldsV1": {"k:{": {}}}], _STORED),
        ([{**_STORED[0], "fieldsV1": {"f:data": 1}}], _STORED),
    ],
)
def test_an_update_may_bring_entries_along_if_they_make_sense(said: Any, base: Any) -> None:
    assert held(said, _STORED) == base


# ---------------------------------------------------------------- in the registry


def entries_of(document: dict[str, Any]) -> list[tuple[str, str, str, Any]]:
    return [
        (entry["manager"], entry["operation"], entry.get("subresource", ""), entry["fieldsV1"])
        for entry in document["metadata"].get("managedFields", ())
    ]


def test_a_creation_and_a_resize_are_managed_by_who_asked() -> None:
    world = World()
    world.create("nodes", a_node())
    made = world.create("pods", a_pod(), "default").body
    [(manager, operation, subresource, fields)] = entries_of(made)
    assert (manager, operation, subresource) == ("elbowroom", "Update", "")
    assert fields["f:spec"]["f:containers"][_C]["f:resources"] == {
        ".": {},
        "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}},
    }
    assert "f:status" not in fields and "." not in fields["f:spec"]["f:containers"]
    world.now = Instant(START + 5_000_000_000)
    resized = world.patch("pods", "a", requests_of("200m"), namespace="default", subresource="resize").body
    first, second = entries_of(resized)
    assert first[3]["f:spec"]["f:containers"][_C]["f:resources"]["f:requests"] == {".": {}, "f:memory": {}}
    taken = {"f:spec": {"f:containers": {_C: {"f:resources": {"f:requests": {"f:cpu": {}}}}}}}
    assert second == ("elbowroom", "Update", "resize", taken)


def test_a_resize_manages_even_what_it_cannot_change() -> None:
    """RC-26: upstream notes what the request changed before it is put back."""
    world = World()
    world.create("pods", a_pod(), "default")
    body = {"metadata": {"labels": {"x": "y"}}, "spec": requests_of("200m")["spec"]}
    after = world.patch("pods", "a", body, namespace="default", subresource="resize").body
    assert "labels" not in after["metadata"]
    assert entries_of(after)[1][3]["f:metadata"] == {"f:labels": {".": {}, "f:x": {}}}


def test_a_manager_is_named_by_the_request_or_by_its_program() -> None:
    assert managed.manager_name("said", "kubectl/v1.37 (linux)") == "said"
    assert managed.manager_name("", "kubectl/v1.37 (linux)") == "kubectl"
    assert managed.manager_name("", "") == "unknown"
    world = World()
    world.create("nodes", a_node())
    world.create("pods", a_pod(node="n1"), "default")
    status = requests.patch("pods", "a", {"status": {"phase": "Running"}}, namespace="default", subresource="status")
    assert entries_of(world.ask(status, "kubelet/n1").body)[1][:3] == ("kubelet", "Update", "status")


def test_a_patch_can_let_all_managers_go() -> None:
    world = World()
    world.create("configmaps", {"metadata": {"name": "m"}, "data": {"k": "1"}}, "default")
    after = world.patch("configmaps", "m", {"metadata": {"managedFields": [{}]}}, namespace="default", kind=MERGE_PATCH).body
    assert "managedFields" not in after["metadata"]
