"""Custom kinds: what a definition is refused for, and what is served by it."""

import copy
from typing import Any

import msgspec
import pytest
import yaml
from apiserver_world import Answer, World

from elbowroom.api.gates import profile_of
from elbowroom.rpc import APPLY_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from elbowroom.wire import ApiRequest, Code, StreamEnd

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
CRONTABS = "crontabs.stable.example.com"

DEFINITION = yaml.safe_load(r"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [cronSpec]
            properties:
              cronSpec: {type: string, pattern: '^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$'}
              image: {type: string, default: busybox}
              replicas: {type: integer, minimum: 1, maximum: 10, default: 1}
              mode: {type: string, enum: [Fast, Slow]}
              port: {x-kubernetes-int-or-string: true}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
              labels: {type: object, additionalProperties: {type: string}}
              parts:
                type: array
                maxItems: 3
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, size: {type: integer}}}
          status: {type: object, properties: {replicas: {type: integer}, labelSelector: {type: string}}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.labelSelector}
    selectableFields: [{jsonPath: .spec.mode}]
""")


def a_definition(**spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(DEFINITION)
    made["spec"] |= spec
    return made


def with_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return a_definition(versions=[{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}])


def a_crontab(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": name},
        "spec": {"cronSpec": "* * * * */5", **spec},
    }


@pytest.fixture
def world() -> World:
    made = World()
    assert made.create(CRDS, DEFINITION).status == 201
    return made


def ask(world: World, verb: str, name: str = "", body: Any = None, **more: Any) -> Answer:
    encoded = b"" if body is None else msgspec.json.encode(body)
    given = {"version": "v1", "namespace": "default", "content_type": "application/json", "user_agent": "test", **more}
    return world.ask(ApiRequest(verb, "crontabs", "stable.example.com", name=name, body=encoded, **given))


def condition(world: World, name: str, kind: str) -> tuple[str, str, str]:
    conditions = world.get(CRDS, name).body["status"]["conditions"]
    return next((c["status"], c["reason"], c["message"]) for c in conditions if c["type"] == kind)


# ---------------------------------------------------------------- definitions


def test_a_definition_is_accepted_and_established(world: World) -> None:
    assert condition(world, CRONTABS, "NamesAccepted") == ("True", "NoConflicts", "no conflicts found")
    told = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    assert condition(world, CRONTABS, "Established") == told
    status = world.get(CRDS, CRONTABS).body["status"]
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"] == {
        "plural": "crontabs",
        "singular": "crontab",
        "shortNames": ["ct"],
        "kind": "CronTab",
        "listKind": "CronTabList",
        "categories": ["all"],
    }


def test_a_name_that_is_taken_is_not_accepted_until_it_is_free(world: World) -> None:
    other = a_definition(names={"plural": "tabs", "kind": "Tab", "shortNames": ["ct"]})
    other["metadata"]["name"] = "tabs.stable.example.com"
    world.create(CRDS, other)
    assert condition(world, "tabs.stable.example.com", "NamesAccepted") == (
        "False",
        "ShortNamesConflict",
        '"ct" is already in use',
    )
    assert condition(world, "tabs.stable.example.com", "Established")[:2] == ("False", "NotAccepted")
    assert world.list("tabs.stable.example.com").status == 404
    world.delete(CRDS, CRONTABS)
    assert condition(world, "tabs.stable.example.com", "Established")[:2] == ("True", "InitialNamesAccepted")
    assert world.list("tabs.stable.example.com").status == 200


OBJECT = {"type": "object"}
AT = "spec.versions[0].schema.openAPIV3Schema"


@pytest.mark.parametrize(
    ("definition", "cause"),
    [
        (
            a_definition(group="example.com"),
            'metadata.name: Invalid value: "crontabs.stable.example.com": must be spec.names.plural+"."',
        ),
        (a_definition(group="example"), 'spec.group: Invalid value: "example": should be a domain with at least one dot'),
        (a_definition(scope="World"), 'spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"'),
        (a_definition(names={"plural": "crontabs"}), "spec.names.kind: Required value"),
        (a_definition(versions=[{"name": "v1", "served": True, "storage": True}]), f"{AT}: Required value"),
        (
            a_definition(versions=[{"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": OBJECT}}]),
            "must have exactly one version marked as storage version",
        ),
        (with_schema({}), f"{AT}.type: Required value: must not be empty at the root"),
        (with_schema({"type": "array", "items": OBJECT}), f'{AT}.type: Invalid value: "array": must be object at the root'),
        (
            with_schema({**OBJECT, "properties": {"spec": {}}}),
            f"{AT}.properties[spec].type: Required value: must not be empty for specified object fields",
        ),
        (
            with_schema({**OBJECT, "properties": {"a": {"type": "array", "items": {}}}}),
            f"{AT}.properties[a].items.type: Required value: must not be empty for specified array items",
        ),
        (
            with_schema({**OBJECT, "properties": {"a": {"type": "array"}}}),
            f"{AT}.properties[a].items: Required value: must be specified",
        ),
        (
            with_schema({**OBJECT, "properties": {"a": {"type": "text"}}}),
            f'{AT}.properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", '
            '"number", "object", "string"',
        ),
        (
            with_schema({**OBJECT, "properties": {"a": {"type": "integer", "anyOf": [{"type": "integer"}]}}}),
            f"{AT}.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            with_schema({**OBJECT, "properties": {"a": {"type": "integer", "default": "one"}}}),
            f'{AT}.properties[a].default: Invalid value: "string":  in body must be of type integer: "string"',
        ),
        (
            with_schema({**OBJECT, "properties": {"a": {**OBJECT, "uniqueItems": True}}}),
            f"{AT}.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity "
            "becomes quadratic",
        ),
        (
            with_schema({**OBJECT, "properties": {"metadata": {**OBJECT, "properties": {"labels": OBJECT}}}}),
            f"{AT}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is "
            "implicitly specified",
        ),
        (
            with_schema({**OBJECT, "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map", "items": OBJECT}}}),
            f"{AT}.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
    ],
)
def test_what_a_definition_is_refused_for(definition: dict[str, Any], cause: str) -> None:
    answer = World().create(CRDS, definition)
    assert answer.status == 422
    assert cause in answer.message


def test_scope_and_kind_of_an_established_definition_stay(world: World) -> None:
    answer = world.patch(CRDS, CRONTABS, {"spec": {"scope": "Cluster"}}, kind=MERGE_PATCH)
    assert answer.status == 422
    assert 'spec.scope: Invalid value: "Cluster": field is immutable' in answer.message


def test_a_version_that_has_stored_objects_stays(world: World) -> None:
    versions = [{**DEFINITION["spec"]["versions"][0], "storage": True}]
    answer = world.patch(CRDS, CRONTABS, {"spec": {"versions": versions}}, kind=MERGE_PATCH)
    assert 'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions' in answer.message


# ---------------------------------------------------------------- objects


def test_an_object_gets_defaults_and_loses_what_nobody_knows(world: World) -> None:
    answer = ask(world, "create", body={**a_crontab(color="red", extra={"any": [1]}), "more": 1})
    assert answer.status == 201
    assert answer.warnings == ('unknown field "more"', 'unknown field "spec.color"')
    spec = {"cronSpec": "* * * * */5", "extra": {"any": [1]}, "image": "busybox", "replicas": 1}
    assert answer.body["spec"] == spec
    assert answer.body["metadata"]["generation"] == 1
    assert ask(world, "get", "a").body == answer.body


def test_unknown_fields_are_refused_by_strict_validation(world: World) -> None:
    answer = ask(world, "create", body=a_crontab(color="red"), query={"fieldValidation": "Strict"})
    assert answer.status == 400
    assert answer.message.endswith('strict decoding error: unknown field "spec.color"')


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"cronSpec": "now"}, 'spec.cronSpec: Invalid value: "now": spec.cronSpec in body should match \'^'),
        ({"replicas": 15}, "spec.replicas: Invalid value: 15: spec.replicas in body should be less than or equal to 10"),
        ({"replicas": 0}, "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1"),
        ({"replicas": "2"}, 'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"'),
        ({"mode": "Odd"}, 'spec.mode: Unsupported value: "Odd": supported values: "Fast", "Slow"'),
        ({"port": True}, 'spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"'),
        ({"labels": {"a": 1}}, 'spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"'),
        ({"parts": [{"size": 1}]}, "spec.parts[0].name: Required value"),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, 'spec.parts[1]: Duplicate value: {"name":"a"}'),
        ({"parts": [{"name": n} for n in "abcd"]}, "spec.parts: Too many: 4: must have at most 3 items"),
    ],
)
def test_what_an_object_is_refused_for(world: World, spec: dict[str, Any], cause: str) -> None:
    answer = ask(world, "create", body=a_crontab(**spec))
    assert answer.status == 422
    assert answer.message.startswith('CronTab.stable.example.com "a" is invalid: ')
    assert cause in answer.message


def test_a_value_that_was_wrong_before_may_stay(world: World) -> None:
    ask(world, "create", body=a_crontab(replicas=9))
    definition = world.get(CRDS, CRONTABS).body
    definition["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"]["maximum"] = 5
    assert world.update(CRDS, CRONTABS, definition).status == 200
    merge = {"content_type": MERGE_PATCH}
    assert ask(world, "patch", "a", {"spec": {"image": "x"}}, **merge).status == 200
    assert ask(world, "patch", "a", {"spec": {"replicas": 8}}, **merge).status == 422


def test_whole_numbers_are_integers_however_they_are_written(world: World) -> None:
    body = msgspec.json.encode(a_crontab()).replace(b'"cronSpec"', b'"replicas":2.0,"cronSpec"')
    request = ApiRequest("create", "crontabs", "stable.example.com", namespace="default", body=body)
    assert world.ask(request).body["spec"]["replicas"] == 2


def test_an_object_must_say_what_it_is(world: World) -> None:
    answer = ask(world, "create", body={**a_crontab(), "kind": ""})
    assert (answer.status, answer.message[:28]) == (400, "Object 'Kind' is missing in ")
    answer = ask(world, "create", body={**a_crontab(), "apiVersion": "v2"})
    why = "the API version in the data (v2) does not match the expected API version (stable.example.com/v1)"
    assert (answer.status, answer.message) == (400, why)


def test_the_status_is_written_through_its_subresource_only(world: World) -> None:
    created = ask(world, "create", body={**a_crontab(), "status": {"replicas": 3}})
    assert "status" not in created.body
    whole = {**created.body, "status": {"replicas": 3, "more": 1}, "spec": {"cronSpec": "x"}}
    answer = ask(world, "update", "a", whole, subresource="status")
    assert answer.status == 200
    assert answer.body["status"] == {"replicas": 3}
    assert answer.body["spec"] == created.body["spec"]
    assert answer.body["metadata"]["generation"] == 1
    assert ask(world, "patch", "a", {"spec": {"image": "x"}}, content_type=MERGE_PATCH).body["metadata"]["generation"] == 2
    assert ask(world, "get", "a").body["status"] == {"replicas": 3}
    wrong = ask(world, "patch", "a", {"status": {"replicas": "x"}}, subresource="status", content_type=MERGE_PATCH)
    assert 'status.replicas: Invalid value: "string": replicas in body must be of type integer: "string"' in wrong.message


def test_the_scale_of_an_object(world: World) -> None:
    ask(world, "create", body=a_crontab(replicas=2))
    ask(world, "patch", "a", {"status": {"replicas": 1, "labelSelector": "a=b"}}, subresource="status", content_type=MERGE_PATCH)
    scale = ask(world, "get", "a", subresource="scale").body
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1, "selector": "a=b"})
    answer = ask(world, "patch", "a", {"spec": {"replicas": 5}}, subresource="scale", content_type=MERGE_PATCH)
    assert answer.body["spec"] == {"replicas": 5}
    assert ask(world, "get", "a").body["spec"]["replicas"] == 5
    assert ask(world, "patch", "a", {"spec": {"replicas": 50}}, subresource="scale", content_type=MERGE_PATCH).status == 422


def test_a_strategic_merge_patch_is_not_supported(world: World) -> None:
    ask(world, "create", body=a_crontab())
    answer = ask(world, "patch", "a", {"spec": {}}, content_type=STRATEGIC_PATCH)
    assert answer.status == 415
    assert answer.message.endswith("application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")


def test_an_update_names_the_revision_it_is_based_on(world: World) -> None:
    ask(world, "create", body=a_crontab())
    answer = ask(world, "update", "a", a_crontab())
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer.message


def test_apply_merges_lists_by_their_keys_and_finds_conflicts(world: World) -> None:
    def apply(manager: str, spec: dict[str, Any], **query: str) -> Answer:
        body = {**a_crontab(), "spec": spec}
        more = {"fieldManager": manager, **query}
        return ask(world, "patch", "a", body, content_type=APPLY_PATCH, query=more)

    assert apply("one", {"cronSpec": "* * * * *", "parts": [{"name": "x", "size": 1}], "extra": {"a": {"b": 1}}}).status == 201
    both = apply("two", {"parts": [{"name": "y", "size": 2}], "extra": {"a": {"c": 2}}})
    assert both.body["spec"]["parts"] == [{"name": "x", "size": 1}, {"name": "y", "size": 2}]
    assert both.body["spec"]["extra"] == {"a": {"b": 1, "c": 2}}
    refused = apply("two", {"parts": [{"name": "x", "size": 5}]})
    assert refused.message == 'Apply failed with 1 conflict: conflict with "one": .spec.parts[name="x"].size'
    assert apply("two", {"parts": [{"name": "x", "size": 5}]}, force="true").body["spec"]["parts"] == [{"name": "x", "size": 5}]
    nobody = apply("two", {"color": "red"})
    assert nobody.message.endswith(".spec.color: field not declared in schema")


def test_selectable_fields_and_others(world: World) -> None:
    for name, mode in (("a", "Fast"), ("b", "Slow")):
        ask(world, "create", body=a_crontab(name, mode=mode))
    found = ask(world, "list", query={"fieldSelector": "spec.mode=Slow"})
    assert found.body["kind"] == "CronTabList"
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["b"]
    assert ask(world, "list", query={"fieldSelector": "spec.image=x"}).status == 400


def test_every_version_shows_the_object_as_its_own(world: World) -> None:
    ask(world, "create", body={**a_crontab("b"), "apiVersion": "stable.example.com/v1beta1"}, version="v1beta1")
    stream = world.watch(CRONTABS, "default")
    older = ask(world, "get", "b", version="v1beta1").body
    newer = ask(world, "get", "b").body
    assert (older["apiVersion"], newer["apiVersion"]) == ("stable.example.com/v1beta1", "stable.example.com/v1")
    assert newer["spec"]["replicas"] == 1, "what is stored has the defaults of the version for storage"
    assert older["spec"] == newer["spec"]
    assert msgspec.json.decode(stream.events[0].object)["apiVersion"] == "stable.example.com/v1"
    items = ask(world, "list", version="v1beta1").body["items"]
    assert [item["metadata"]["name"] for item in items] == ["b"]
    assert ask(world, "get", "b", version="v2").status == 404


def test_what_was_stored_under_an_older_definition_is_shown_by_the_present_one(world: World) -> None:
    ask(world, "create", body=a_crontab(mode="Fast"))
    definition = world.get(CRDS, CRONTABS).body
    version = definition["spec"]["versions"][1]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del fields["mode"], version["selectableFields"]
    fields["zone"] = {"type": "string", "default": "here"}
    world.update(CRDS, CRONTABS, definition)
    assert ask(world, "get", "a").body["spec"] == {"cronSpec": "* * * * */5", "image": "busybox", "replicas": 1, "zone": "here"}


# ---------------------------------------------------------------- the end


def test_a_definition_that_says_something_else_ends_the_watches_of_its_kind_and_no_others(world: World) -> None:
    stream, beside = world.watch(CRONTABS, "default"), world.watch("configmaps", "default")
    definition = world.get(CRDS, CRONTABS).body
    definition["metadata"]["labels"] = {"a": "b"}
    assert world.update(CRDS, CRONTABS, definition).status == 200
    assert not [message for message in stream.messages if isinstance(message, StreamEnd)], "it serves what it served"
    definition = world.get(CRDS, CRONTABS).body
    definition["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["description"] = "new"
    assert world.update(CRDS, CRONTABS, definition).status == 200
    assert stream.messages[-1] == StreamEnd(stream.id, Code.OK)
    assert not [message for message in beside.messages if isinstance(message, StreamEnd)]


def test_deleting_a_definition_deletes_its_objects(world: World) -> None:
    ask(world, "create", body=a_crontab())
    stream = world.watch(CRONTABS, "default")
    assert world.delete(CRDS, CRONTABS).status == 200
    assert stream.told == [("ADDED", "a"), ("DELETED", "a")]
    assert stream.messages[-1] == StreamEnd(stream.id, Code.OK), "and that was the last word"
    assert world.get(CRDS, CRONTABS).status == 404
    assert ask(world, "list").status == 404
    world.create(CRDS, DEFINITION)
    assert ask(world, "list").body["items"] == []


def test_a_definition_waits_for_objects_that_somebody_holds(world: World) -> None:
    held = a_crontab()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    ask(world, "create", body=held)
    answer = world.delete(CRDS, CRONTABS)
    assert answer.body["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert condition(world, CRONTABS, "Terminating")[0] == "True"
    refused = ask(world, "create", body=a_crontab("b"))
    assert (refused.status, refused.message) == (
        403,
        'crontabs.stable.example.com "b" is forbidden: create not allowed while custom resource definition is terminating',
    )
    assert ask(world, "get", "a").body["metadata"]["deletionTimestamp"]
    assert ask(world, "patch", "a", {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH).status == 200
    assert ask(world, "get", "a").status == 404
    assert world.get(CRDS, CRONTABS).status == 404


def test_custom_kinds_outlive_the_process() -> None:
    world = World()
    world.create(CRDS, DEFINITION)
    ask(world, "create", body=a_crontab())
    again = World(disk=world.disk)
    assert ask(again, "get", "a").body == ask(world, "get", "a").body
    assert ask(again, "create", body=a_crontab("b")).status == 201


def test_a_definition_is_settled_by_the_next_life_if_one_died_in_between() -> None:
    world = World()
    before = set(world.disk)
    world.create(CRDS, DEFINITION)
    written = sorted(set(world.disk) - before)
    assert len(written) == 2, "the definition, and what was found of it"
    del world.disk[written[1]]
    again = World(disk=world.disk)
    assert condition(again, CRONTABS, "Established")[0] == "True"


def test_the_same_kinds_are_served_in_every_profile() -> None:
    for profile in ("lab", "v1.37"):
        world = World(profile=profile)
        assert profile_of(profile).name
        assert world.create(CRDS, DEFINITION).status == 201
        assert ask(world, "create", body=a_crontab()).status == 201
