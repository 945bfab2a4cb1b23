"""The three patches, with upstream's deviations from the RFCs."""

import copy
from typing import Any

import jsonpatch
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.apiserver import patches, schema
from elbowroom.apiserver.gotext import go_text
from elbowroom.apiserver.patches import OPERATIONS_MAX, PatchError, json_patch, merge_patch, strategic_patch

POD = schema.find("", "v1", "Pod")


def applied(document: Any, *operations: Any) -> Any:
    return json_patch(copy.deepcopy(document), list(operations))


def op(kind: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": kind, "path": path, **more}


# ---------------------------------------------------------------- JSON patch

JSON_CASES: list[tuple[Any, list[Any], Any]] = [
    ({"a": 1}, [op("add", "/b", value=2)], {"a": 1, "b": 2}),
    ({"a": [1, 3]}, [op("add", "/a/1", value=2)], {"a": [1, 2, 3]}),
    ({"a": [1]}, [op("add", "/a/-", value=2)], {"a": [1, 2]}),
    ({"a": [1, 2]}, [op("remove", "/a/-1")], {"a": [1]}),
    ({"a": 1}, [op("replace", "/b", value=2)], {"a": 1, "b": 2}),  # unlike RFC 6902
    ({"a": {"b": 1}}, [op("move", "/c", **{"from": "/a/b"})], {"a": {}, "c": 1}),
    ({"a": {"b": [1]}}, [op("copy", "/c", **{"from": "/a"}), op("add", "/c/b/-", value=2)], {"a": {"b": [1]}, "c": {"b": [1, 2]}}),
    ({"a/b": 1, "m~n": 2}, [op("remove", "/a~1b"), op("remove", "/m~0n")], {}),
    ({"a": 1}, [op("test", "/a", value=1), op("test", "/zz")], {"a": 1}),
    ({"a": 1}, [op("add", "spec/x", value=1)], {"a": 1, "x": 1}),  # what stands before the first slash is not looked at
    ({"a": 1}, [op("replace", "", value={})], {}),
    ({"a": 1}, [op("add", "/b")], {"a": 1, "b": None}),
]


@pytest.mark.parametrize(("document", "operations", "wanted"), JSON_CASES)
def test_a_json_patch_does_what_its_operations_say(document: Any, operations: list[Any], wanted: Any) -> None:
    assert applied(document, *operations) == wanted


@pytest.mark.parametrize(
    "operation",
    [
        op("test", "/a", value=2),
        op("test", "/a", value=1.0),
        op("test", "/a", value=True),
        op("remove", "/b"),
        op("remove", ""),
        op("add", "/a/b", value=1),
        op("add", "/l/9", value=1),
        op("add", "/l/x", value=1),
        op("replace", "", value="text"),
        op("move", "/c", **{"from": "/b"}),
        op("frob", "/a"),
        None,
        {"path": "/a"},
    ],
)
def test_an_operation_that_does_not_apply_is_422(operation: Any) -> None:
    with pytest.raises(PatchError) as refused:
        applied({"a": 1, "l": []}, operation)
    assert refused.value.code == 422


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        ({"a": 1}, 400, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ([1], 400, "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([{"op": 5}], 400, "cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        ([op("test", "/a", value=1)] * (OPERATIONS_MAX + 1), 413, "maximum operations in a JSON patch is 10000, got 10001"),
    ],
)
def test_what_is_no_json_patch_is_refused_in_upstreams_words(patch: Any, code: int, words: str) -> None:
    with pytest.raises(PatchError) as refused:
        json_patch({"a": 1}, patch)
    assert refused.value.code == code and words in refused.value.message


def test_copies_cannot_grow_a_document_without_bound() -> None:
    double = [op("copy", "/a/-", **{"from": "/a"})] * 40
    with pytest.raises(PatchError, match="exceeds the limit"):
        json_patch({"a": ["x" * 1000]}, double)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=1), JSON, max_size=3),
    st.dictionaries(st.text("abc", min_size=1, max_size=1), JSON, max_size=3),
)
def test_the_difference_of_two_documents_leads_from_one_to_the_other(one: Any, other: Any) -> None:
    operations = jsonpatch.make_patch(one, other).patch
    assert json_patch(copy.deepcopy(one), operations) == other


# ---------------------------------------------------------------- merge patch


@pytest.mark.parametrize(
    ("document", "patch", "wanted"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {"a": [1, None, {"b": None}]}, {"a": [1, {}]}),
        ({"a": 1}, None, {"a": 1}),
    ],
)
def test_a_merge_patch_merges_objects_and_replaces_all_else(document: Any, patch: Any, wanted: Any) -> None:
    assert merge_patch(copy.deepcopy(document), patch) == wanted


def test_a_merge_patch_that_is_no_object_is_400() -> None:
    with pytest.raises(PatchError, match="cannot unmarshal array into Go value of type map") as refused:
        merge_patch({}, [1])
    assert refused.value.code == 400


# ---------------------------------------------------------------- strategic merge patch


def a_pod() -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "finalizers": ["x", "y"], "labels": {"k": "v"}},
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "args": ["1"]},
                {"name": "d", "image": "j"},
            ],
            "tolerations": [{"key": "t"}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    }


def strategic(patch: dict[str, Any]) -> dict[str, Any]:
    assert POD is not None
    return strategic_patch(a_pod(), patch, POD)


def containers(patch: list[Any], **more: Any) -> list[Any]:
    return strategic({"spec": {"containers": patch, **more}})["spec"]["containers"]


def test_lists_with_a_merge_key_are_merged_by_it() -> None:
    merged = containers([{"name": "c", "image": "new", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}])
    assert [c["name"] for c in merged] == ["c", "d"]
    assert merged[0]["image"] == "new" and merged[1] == {"name": "d", "image": "j"}
    assert {e["name"]: e["value"] for e in merged[0]["env"]} == {"A": "1", "B": "3", "C": "4"}


def test_lists_without_one_are_replaced() -> None:
    patched = strategic({"spec": {"tolerations": [{"key": "u"}], "containers": [{"name": "c", "args": ["2", "3"]}]}})
    assert patched["spec"]["tolerations"] == [{"key": "u"}]
    assert patched["spec"]["containers"][0]["args"] == ["2", "3"]


def test_primitive_lists_that_merge_become_a_union() -> None:
    assert strategic({"metadata": {"finalizers": ["z", "x"]}})["metadata"]["finalizers"] == ["z", "x", "y"]


def test_null_deletes() -> None:
    patched = strategic({"metadata": {"labels": {"k": None}}, "spec": {"containers": [{"name": "c", "env": None}]}})
    assert patched["metadata"]["labels"] == {} and "env" not in patched["spec"]["containers"][0]


def test_a_new_element_stands_before_those_the_patch_does_not_name() -> None:
    assert [c["name"] for c in containers([{"name": "z"}])] == ["z", "c", "d"]


DIRECTIVES: list[tuple[dict[str, Any], list[str]]] = [
    ({"containers": [{"name": "c", "$patch": "delete"}]}, ["d"]),
    ({"containers": [{"$patch": "replace"}, {"name": "z"}]}, ["z"]),
    ({"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}]}, ["d", "c"]),
    (
        {"$setElementOrder/containers": [{"name": "d"}, {"name": "z"}, {"name": "c"}], "containers": [{"name": "z"}]},
        ["d", "z", "c"],
    ),
    ({"$retainKeys": ["containers"]}, ["c", "d"]),
]


@pytest.mark.parametrize(("patch", "names"), DIRECTIVES)
def test_directives_say_what_a_merge_cannot(patch: dict[str, Any], names: list[str]) -> None:
    spec = strategic({"spec": patch})["spec"]
    assert [c["name"] for c in spec["containers"]] == names
    assert not [key for key in spec if key.startswith("$")]
    assert ("volumes" in spec) is ("$retainKeys" not in patch)


_conditions = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from("ABCDE")},
        optional={"status": st.sampled_from(["True", "False", None]), "$patch": st.just("delete")},
    ),
    max_size=4,
)


@given(
    _conditions.map(lambda items: [{k: v for k, v in item.items() if k != "$patch"} for item in items]),
    _conditions,
    st.lists(st.sampled_from("ABCDE"), max_size=6).map(lambda names: [{"type": name} for name in names]),
)
def test_an_order_for_all_elements_is_kept_as_one_for_some_would_be(held: Any, wanted: Any, order: Any) -> None:
    def outcome() -> Any:
        assert POD is not None
        patch = {"status": {"conditions": copy.deepcopy(wanted), "$setElementOrder/conditions": order}}
        try:
            return strategic_patch({"status": {"conditions": copy.deepcopy(held)}}, patch, POD)
        except PatchError as why:
            return why.code, why.message

    with pytest.MonkeyPatch.context() as patching:
        quick = outcome()
        patching.setattr(patches, "_merged_in_order", lambda *_: None)
        assert quick == outcome()


def test_maps_can_be_replaced_or_emptied() -> None:
    assert strategic({"metadata": {"labels": {"$patch": "replace", "n": "m"}}})["metadata"]["labels"] == {"n": "m"}
    assert strategic({"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"] == {}


def test_elements_of_a_primitive_list_can_be_deleted() -> None:
    assert strategic({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}})["metadata"]["finalizers"] == ["y"]


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        ({"containers": [{"image": "x"}]}, 500, "map: map[image:x] does not contain declared merge key: name"),
        ({"containers": [1]}, 500, "list element types are not identical: [[map["),
        ({"containers": [[1]]}, 422, "lists of lists are not supported"),
        ({"$setElementOrder/containers": 5}, 500, "expected a []interface {}, but received a int64"),
        ({"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "d"}]}, 500, "The order in patch list:"),
        ({"$retainKeys": 5}, 400, "invalid patch format of retainKeys"),
        ({"$retainKeys": ["a"], "containers": [{"name": "c"}]}, 400, "invalid patch format of retainKeys"),
        ({"$patch": "frob"}, 500, "unknown patch type: frob in map: map[$patch:frob]"),
        ({"$deleteFromPrimitiveListX": [1]}, 400, "invalid patch format of primitive list"),
    ],
)
def test_a_malformed_directive_is_refused_in_upstreams_words(patch: dict[str, Any], code: int, words: str) -> None:
    with pytest.raises(PatchError) as refused:
        strategic({"spec": patch})
    assert refused.value.code == code and words in refused.value.message


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz") | st.none(), max_size=3))
def test_on_plain_maps_the_two_merges_agree(patch: dict[str, Any]) -> None:
    assert strategic({"metadata": {"labels": patch}}) == merge_patch(a_pod(), {"metadata": {"labels": patch}})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, "x", None], "a": True}, "map[a:true b:[1 x <nil>]]"),
        (1.5, "1.5"),
        (2.0, "2"),
        (1e21, "1e+21"),
        (1e-7, "1e-07"),
        ({}, "map[]"),
    ],
)
def test_values_are_shown_as_go_shows_them(value: Any, text: str) -> None:
    assert go_text(value) == text


# ---------------------------------------------------------------- what a patch does not touch

STORED: dict[str, Any] = schema.decode(
    POD,  # type: ignore[arg-type]
    {
        "metadata": {"name": "p", "labels": {"a": "1", "b": "2"}, "finalizers": ["x/y", "x/z"]},
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
                {"name": "d", "image": "j", "ports": [{"containerPort": 80}]},
            ],
            "tolerations": [{"key": "k"}],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]},
    },
).document
ODD = st.sampled_from([None, 1, 1.0, True, "1", "1000m", [], {}, {"nope": 1}])
CONTAINER = st.fixed_dictionaries(
    {"name": st.sampled_from(["c", "d", "e"])},
    optional={
        "image": ODD,
        "resources": st.fixed_dictionaries({}, optional={"requests": st.fixed_dictionaries({"cpu": ODD}) | ODD}),
    },
)
CONDITION = st.fixed_dictionaries(
    {"type": st.sampled_from(["Ready", "Other"]), "status": ODD}, optional={"$patch": st.just("delete")}
)
POD_PATCH = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"labels": st.dictionaries(st.sampled_from("abc"), ODD), "nope": ODD}),
        "spec": st.fixed_dictionaries({}, optional={"containers": st.lists(CONTAINER, max_size=3), "hostNetwork": ODD}),
        "status": st.fixed_dictionaries({}, optional={"conditions": st.lists(CONDITION, max_size=3), "phase": ODD}),
    },
)


@given(POD_PATCH)
def test_what_a_strategic_patch_leaves_alone_need_not_be_decoded_again(patch: dict[str, Any]) -> None:
    assert POD is not None
    document = copy.deepcopy(STORED)
    try:
        patched = strategic_patch(document, copy.deepcopy(patch), POD)
    except PatchError:
        return
    finally:
        assert document == STORED, "the document stays as it is"
    quick, slow = (schema.decode(POD, patched, restored=True, known=known) for known in (document, None))
    assert quick[1:] == slow[1:]
    assert msgspec.json.encode(quick.document, order="sorted") == msgspec.json.encode(slow.document, order="sorted"), (
        "1 is not True"
    )
