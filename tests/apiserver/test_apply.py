"""Server-side apply: merging, conflicts, what goes, who manages it then."""

from typing import Any

import msgspec
import pytest
from apiserver_world import Answer, World, a_pod

from elbowroom.apiserver import apply, schema
from elbowroom.apiserver.managed import APPLY, Manager
from elbowroom.rpc import APPLY_PATCH, requests
from elbowroom.wire import ApiRequest


def pods() -> schema.Field:
    found = schema.find("", "v1", "Pod")
    assert found is not None
    return found


POD = pods()
_C = 'k:{"name":"c"}'

# ---------------------------------------------------------------- merging


def merged(live: Any, config: Any, last: Any = None) -> Any:
    manager = Manager("me", APPLY, "v1")
    entries = [] if last is None else [manager.entry(last, "2027-01-01T00:00:00Z")]
    done = apply.applied(POD, {"metadata": {}, **live}, config, entries, manager, ignored=(), force=True, time="")
    return {name: value for name, value in done.document.items() if name != "metadata"}


def containers(*names: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name} for name in names]}}


ONE = {"cpu": "1"}
WITH_IMAGE = {"name": "c", "image": "i"}


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        ({"spec": {"a": 1, "nodeName": "n"}}, {"spec": {"nodeName": "m"}}, {"spec": {"a": 1, "nodeName": "m"}}),
        ({"spec": {"nodeSelector": {"a": "1"}}}, {"spec": {"nodeSelector": {"b": "1"}}}, {"spec": {"nodeSelector": {"b": "1"}}}),
        ({"spec": {"overhead": ONE}}, {"spec": {"overhead": {"memory": "1"}}}, {"spec": {"overhead": {**ONE, "memory": "1"}}}),
        ({"spec": {"overhead": ONE}}, {"spec": {"overhead": None}}, {"spec": {"overhead": ONE}}),
        (containers("a", "b", "c"), containers("b"), containers("a", "b", "c")),
        (containers("a", "b"), containers("b", "a"), containers("b", "a")),
        (containers("a", "c"), containers("a", "b", "c"), containers("a", "b", "c")),
        (containers("a", "x", "b"), containers("b", "a"), containers("x", "b", "a")),
        (containers("a"), containers("b"), containers("a", "b")),
        ({"spec": {"containers": [WITH_IMAGE]}}, containers("c"), {"spec": {"containers": [WITH_IMAGE]}}),
    ],
)  # fmt: skip
def test_a_configuration_is_merged_by_the_types_of_its_lists(live: Any, config: Any, result: Any) -> None:
    assert merged(live, config) == result


def test_what_a_manager_no_longer_says_goes_and_takes_empty_wholes_along() -> None:
    live = {"spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}, {"name": "d"}], "overhead": {"cpu": "1"}}}
    last = {
        "f:spec": {
            "f:containers": {_C: {".": {}, "f:name": {}}, 'k:{"name":"d"}': {".": {}, "f:name": {}}},
            "f:overhead": {"f:cpu": {}},
        }
    }
    assert merged(live, containers("c"), last) == {"spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}


# ---------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"spec": {"containers": [{"name": "c", "image": "i"}]}}, ""),
        ({"spec": {"containers": None, "priority": 1}}, ""),
        ({"metadata": "x"}, ".metadata: expected map, got &{x}"),
        ({"spec": {"containers": "x"}}, ".spec.containers: expected list, got &{x}"),
        ({"spec": {"nope": 1}}, ".spec.nope: field not declared in schema"),
        ({"spec": {"priority": "x"}}, ".spec.priority: expected numeric (int or float), got string"),
        ({"spec": {"hostPID": "x"}}, ".spec.hostPID: expected boolean, got &{x}"),
        ({"spec": {"overhead": {"cpu": {"a": 1}}}}, ".spec.overhead.cpu: expected any scalar, got &{map[a:1]}"),
        ({"a": 1, "b": 2}, "errors:\n  .a: field not declared in schema\n  .b: field not declared in schema"),
        ({"spec": {"containers": [{"name": "c"}, {"name": "c"}]}}, '.spec.containers: duplicate entries for key [name="c"]'),
        ({"spec": {"containers": [{"image": "i"}, {}]}}, '.spec.containers: duplicate entries for key [name=""]'),
        ({"spec": {"containers": [None]}}, ".spec.containers: element 0: associative list with keys may not have a null element"),
        (
            {"metadata": {"finalizers": [{}]}},
            ".metadata.finalizers: element 0: associative list without keys has an element that's a map type",
        ),
    ],
)
def test_a_configuration_of_wrong_types_is_told_in_upstreams_words(config: Any, words: str) -> None:
    assert apply.errors(POD, config) == words


# ---------------------------------------------------------------- in the registry


def ask(world: World, config: Any, manager: str = "m1", *, resource: str = "configmaps", sub: str = "", **query: str) -> Answer:
    name = config.get("metadata", {}).get("name", "m") if isinstance(config, dict) else "m"
    patch = requests.patch(resource, name, config, namespace="default", kind=APPLY_PATCH, subresource=sub)
    query = {**({"fieldManager": manager} if manager else {}), **query}
    return world.ask(msgspec.structs.replace(patch, query=query))


def a_map(**data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}, "data": data}


def managers(answer: Answer) -> list[tuple[str, str, Any]]:
    return [(entry["manager"], entry["operation"], entry["fieldsV1"]) for entry in answer.body["metadata"]["managedFields"]]


def test_an_apply_creates_what_is_not_there_and_repeating_it_changes_nothing() -> None:
    world = World()
    made = ask(world, a_map(k="1"))
    assert made.status == 201 and managers(made) == [("m1", "Apply", {"f:data": {"f:k": {}}})]
    world.wait(30)
    again = ask(world, a_map(k="1"))
    assert (again.status, again.body) == (200, made.body)


def test_another_managers_field_is_a_conflict_unless_forced() -> None:
    world = World()
    ask(world, a_map(k="1", j="1"))
    refused = ask(world, a_map(k="2"), "m2")
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert refused.message == 'Apply failed with 1 conflict: conflict with "m1": .data.k'
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".data.k"}
    assert refused.body["details"] == {"causes": [cause]}
    both = ask(world, a_map(k="2", j="2"), "m2")
    assert both.message == 'Apply failed with 2 conflicts: conflicts with "m1":\n- .data.j\n- .data.k'
    forced = ask(world, a_map(k="2"), "m2", force="true")
    assert forced.body["data"] == {"k": "2", "j": "1"}
    assert managers(forced) == [("m1", "Apply", {"f:data": {"f:j": {}}}), ("m2", "Apply", {"f:data": {"f:k": {}}})]


def test_managers_may_share_a_field_that_both_want_alike_and_it_stays_while_one_does() -> None:
    world = World()
    ask(world, a_map(k="1"))
    assert ask(world, a_map(k="1"), "m2").status == 200
    after = ask(world, a_map(j="1"), "m1")
    assert after.body["data"] == {"k": "1", "j": "1"}
    gone = ask(world, {name: value for name, value in a_map().items() if name != "data"}, "m2")
    assert gone.body["data"] == {"j": "1"} and managers(gone) == [("m1", "Apply", {"f:data": {"f:j": {}}})]


def test_an_updates_manager_is_told_with_its_version() -> None:
    world = World()
    world.create("configmaps", {"metadata": {"name": "m"}, "data": {"k": "1"}}, "default")
    assert ask(world, a_map(k="2")).message == 'Apply failed with 1 conflict: conflict with "elbowroom" using v1: .data.k'


def test_an_apply_through_resize_owns_its_request_and_gives_it_back() -> None:
    world = World()
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1"}
    world.create("pods", pod, "default")
    config = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}
    wish = {**config, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m"}}}]}}
    refused = ask(world, wish, resource="pods", sub="resize")
    where = '.spec.containers[name="c"].resources.requests.cpu'
    assert refused.message == f'Apply failed with 1 conflict: conflict with "elbowroom" using v1: {where}'
    forced = ask(world, wish, resource="pods", sub="resize", force="true")
    assert forced.body["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    other = {**config, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "300m"}}}]}}
    told = ask(world, other, "m2", resource="pods", sub="resize").message
    assert told == f'Apply failed with 1 conflict: conflict with "m1" with subresource "resize": {where}'
    back = ask(world, {**config, "spec": {"containers": [{"name": "c"}]}}, resource="pods", sub="resize")
    assert back.body["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"


def test_an_apply_through_status_owns_nothing_of_the_spec() -> None:
    world = World()
    world.create("pods", a_pod(), "default")
    condition = {"type": "Mine", "status": "True"}
    config = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a"},
        "spec": {"priority": 7},
        "status": {"conditions": [condition]},
    }
    done = ask(world, config, resource="pods", sub="status")
    assert [held["type"] for held in done.body["status"]["conditions"]] == ["Mine"] and done.body["spec"]["priority"] == 0
    conditions = {'k:{"type":"Mine"}': {".": {}, "f:status": {}, "f:type": {}}}
    assert managers(done)[0] == ("m1", "Apply", {"f:status": {"f:conditions": conditions}})
    gone = ask(world, {name: value for name, value in config.items() if name != "status"}, resource="pods", sub="status")
    assert "conditions" not in gone.body["status"] and [entry[0] for entry in managers(gone)] == ["elbowroom"]


@pytest.mark.parametrize(
    ("config", "manager", "query", "code", "words"),
    [
        (
            a_map(),
            "",
            {},
            422,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        ),
        ({"kind": "Node", "apiVersion": "v1"}, "m", {}, 400, "invalid object type: /v1, Kind=Node"),
        ({"metadata": {}}, "m", {}, 400, "invalid object type: /, Kind="),
        ([], "m", {}, 400, "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array"),
        (a_map() | {"metadata": {"name": "m", "managedFields": []}}, "m", {}, 400, "metadata.managedFields must be nil"),
        (a_map() | {"x": 1}, "m", {}, 500, "failed to create typed patch object (/m; /v1, Kind=ConfigMap): .x: field not declared"),
        (a_map() | {"metadata": {}}, "m", {}, 400, "name must be provided"),
    ],
)
def test_an_apply_that_cannot_be_is_refused_in_upstreams_words(
    config: Any, manager: str, query: dict[str, str], code: int, words: str
) -> None:
    answer = ask(World(), config, manager, **query)
    assert answer.status == code and words in answer.message


def test_a_configuration_may_be_yaml_and_a_dry_run_leaves_no_trace() -> None:
    world = World()
    before = dict(world.disk)
    body = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: m}\ndata: {k: v}\n"
    patch = ApiRequest("patch", "configmaps", namespace="default", name="m", content_type=APPLY_PATCH, body=body)
    query = {"fieldManager": "m1", "dryRun": "All"}
    answer = world.ask(msgspec.structs.replace(patch, query=query))
    assert (answer.status, answer.body["data"]) == (201, {"k": "v"})
    assert world.disk == before


_TWICE = 'yaml: unmarshal errors:\n  line 1: key "k" already set in map'
_NAMED = b'{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}, '


@pytest.mark.parametrize(
    ("body", "validation", "code", "words"),
    [
        (b"{", "", 400, "error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find expected node content"),
        (b"a: b: c", "", 400, "error decoding YAML: error converting YAML to JSON: yaml: mapping values are not allowed"),
        (b"1", "", 400, "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal number"),
        (_NAMED + b'"data": {"k": "a", "k": "b"}}', "Strict", 400,
         f"error strict decoding YAML: error converting YAML to JSON: {_TWICE}"),
        (_NAMED + b'"data": {"k": "a", "k": "b"}}', "Warn", 201, ""),
        (_NAMED + b'"data": {"k": "a", "k": "b"}, "x": 1}', "Strict", 500, "failed to create typed patch object"),
    ],
)  # fmt: skip
def test_all_that_is_applied_is_yaml_to_upstream(body: bytes, validation: str, code: int, words: str) -> None:
    query = {"fieldManager": "m1"} | ({"fieldValidation": validation} if validation else {})
    patch = ApiRequest("patch", "configmaps", namespace="default", name="m", content_type=APPLY_PATCH, body=body, query=query)
    answer = World().ask(patch)
    assert answer.status == code and (answer.message.startswith(words) if words else answer.body["data"] == {"k": "b"})


def test_keys_that_stand_twice_in_yaml_are_refused_by_strict_decoding_and_never_warned_of() -> None:
    body = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: m}\ndata: {k: a, k: b}\nx: 1\n"
    post = ApiRequest("create", "configmaps", namespace="default", content_type="application/yaml", body=body)
    refused = World().ask(msgspec.structs.replace(post, query={"fieldValidation": "Strict"}))
    told = f'{_TWICE.replace("line 1", "line 4")}, unknown field "x"'
    known = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
    assert (refused.status, refused.message) == (400, known + told)
    assert World().ask(post).body["data"] == {"k": "b"}


def test_a_subresource_of_nothing_cannot_be_applied() -> None:
    config = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}
    assert ask(World(), config, resource="pods", sub="resize").message == 'pods "a" not found'
