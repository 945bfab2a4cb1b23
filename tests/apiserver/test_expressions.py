"""Rules of custom kinds (``x-kubernetes-validations``): what definitions and objects are refused for."""

import copy
from typing import Any

import msgspec
import pytest
import yaml
from apiserver_world import Answer, World

from elbowroom.rpc import MERGE_PATCH
from elbowroom.wire import ApiRequest

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
AT = "spec.versions[0].schema.openAPIV3Schema"

SCHEMA = yaml.safe_load("""
type: object
x-kubernetes-validations:
- {rule: "self.metadata.name != 'forbidden'", message: this name is taken}
properties:
  spec:
    type: object
    x-kubernetes-validations:
    - rule: self.minimum <= self.maximum
      messageExpression: "'%d is more than %d'.format([self.minimum, self.maximum])"
      fieldPath: .minimum
    - {rule: "!has(self.mode) || self.mode != 'Bad'", reason: FieldValueForbidden, message: no such mode}
    - {rule: self.maximum < 1000}
    properties:
      minimum: {type: integer, default: 1}
      maximum: {type: integer, default: 10}
      mode: {type: string}
      kind:
        type: string
        x-kubernetes-validations: [{rule: self == oldSelf, message: kind is immutable}]
      labels:
        type: object
        additionalProperties:
          type: string
          x-kubernetes-validations: [{rule: self.size() < 5}]
      parts:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name]
          x-kubernetes-validations:
          - {rule: self.size >= oldSelf.size, message: parts do not shrink}
          - {rule: self.size != 13, message: not thirteen}
          properties: {name: {type: string}, size: {type: integer, default: 0}}
      grows:
        type: integer
        x-kubernetes-validations: [{rule: oldSelf.hasValue() || self == 0, optionalOldSelf: true, message: begins with 0}]
  status:
    type: object
    properties: {seen: {type: integer}}
    x-kubernetes-validations: [{rule: "!has(self.seen) || self.seen >= 0"}]
""")


def a_definition(schema: dict[str, Any]) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": copy.deepcopy(schema)},
        "subresources": {"status": {}},
    }
    spec = {"group": "x.io", "scope": "Namespaced", "names": {"plural": "tabs", "kind": "Tab"}, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "tabs.x.io"},
        "spec": spec,
    }


@pytest.fixture
def world() -> World:
    made = World()
    answer = made.create(CRDS, a_definition(SCHEMA))
    assert answer.status == 201, answer.message
    return made


def tab(name: str = "a", status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = {"apiVersion": "x.io/v1", "kind": "Tab", "metadata": {"name": name}, "spec": spec}
    return made if status is None else {**made, "status": status}


def ask(world: World, verb: str, name: str = "", body: Any = None, **more: Any) -> Answer:
    encoded = b"" if body is None else msgspec.json.encode(body)
    given = {"version": "v1", "namespace": "default", "content_type": "application/json", "user_agent": "test", **more}
    return world.ask(ApiRequest(verb, "tabs", "x.io", name=name, body=encoded, **given))


def patch(world: World, spec: dict[str, Any], name: str = "a") -> Answer:
    return ask(world, "patch", name, {"spec": spec}, content_type=MERGE_PATCH)


def causes(answer: Answer) -> list[tuple[str, str, str]]:
    assert answer.status == 422, answer.body
    return [(one["field"], one["reason"], one["message"]) for one in answer.body["details"]["causes"]]


INVALID, FORBIDDEN = "FieldValueInvalid", "FieldValueForbidden"


@pytest.mark.parametrize(
    ("document", "wanted"),
    [
        (tab("forbidden"), [("<nil>", INVALID, "Invalid value: this name is taken")]),
        (tab(minimum=11), [("spec.minimum", INVALID, "Invalid value: 11 is more than 10")]),
        (tab(mode="Bad"), [("spec", FORBIDDEN, "Forbidden: no such mode")]),
        (tab(maximum=1000), [("spec", INVALID, "Invalid value: failed rule: self.maximum < 1000")]),
        (
            tab(labels={"a": "long enough"}),
            [("spec.labels[a]", INVALID, 'Invalid value: "long enough": failed rule: self.size() < 5')],
        ),
        (tab(parts=[{"name": "x"}, {"name": "y", "size": 13}]), [("spec.parts[1]", INVALID, "Invalid value: not thirteen")]),
        (tab(grows=2), [("spec.grows", INVALID, "Invalid value: 2: begins with 0")]),
        (
            tab(minimum="x", mode="Bad"),
            [
                (
                    "spec.minimum",
                    "FieldValueTypeInvalid",
                    'Invalid value: "string": spec.minimum in body must be of type integer: "string"',
                ),
                (
                    "<nil>",
                    INVALID,
                    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
                    "existing errors to complete validation",
                ),
            ],
        ),
    ],
)
def test_what_an_object_is_refused_for(world: World, document: dict[str, Any], wanted: list[tuple[str, str, str]]) -> None:
    assert causes(ask(world, "create", body=document)) == wanted


def test_an_object_that_keeps_the_rules_is_taken(world: World) -> None:
    answer = ask(world, "create", body=tab(mode="Good", kind="x", parts=[{"name": "x", "size": 3}], labels={"a": "b"}, grows=0))
    assert answer.status == 201 and answer.body["spec"]["maximum"] == 10


def test_a_rule_about_the_former_value_holds_from_the_first_change_on(world: World) -> None:
    assert (
        ask(world, "create", body=tab(kind="x", grows=0, parts=[{"name": "x", "size": 3}, {"name": "y", "size": 1}])).status == 201
    )
    assert causes(patch(world, {"kind": "y"})) == [("spec.kind", INVALID, 'Invalid value: "y": kind is immutable')]
    assert patch(world, {"grows": 4}).status == 200, "it had a former value"
    turned = [{"name": "y", "size": 1}, {"name": "x", "size": 2}]
    assert causes(patch(world, {"parts": turned})) == [("spec.parts[1]", INVALID, "Invalid value: parts do not shrink")]
    assert patch(world, {"parts": [{"name": "new", "size": 0}, {"name": "x", "size": 4}]}).status == 200
    assert patch(world, {"kind": None}).status == 200, "what is gone is asked nothing"
    assert patch(world, {"kind": "z"}).status == 200


def test_what_was_broken_before_and_did_not_change_is_only_warned_of(world: World) -> None:
    assert ask(world, "create", body=tab(parts=[{"name": "x", "size": 1}], labels={"a": "abc"})).status == 201
    definition = world.get(CRDS, "tabs.x.io").body
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    spec["parts"]["items"]["x-kubernetes-validations"] = [{"rule": "self.size > 5", "message": "too small"}]
    spec["labels"]["additionalProperties"]["x-kubernetes-validations"] = [{"rule": "self.size() < 2"}]
    assert world.update(CRDS, "tabs.x.io", definition).status == 200
    answer = patch(world, {"mode": "Good"})
    assert answer.status == 200
    assert sorted(answer.warnings) == [
        'spec.labels[a]: Invalid value: "abc": failed rule: self.size() < 2',
        "spec.parts[0]: Invalid value: too small",
    ]
    assert causes(patch(world, {"labels": {"a": "def"}})) == [
        ("spec.labels[a]", INVALID, 'Invalid value: "def": failed rule: self.size() < 2')
    ]
    assert causes(patch(world, {"parts": [{"name": "y", "size": 1}]})) == [("spec.parts[0]", INVALID, "Invalid value: too small")]


def test_a_status_keeps_the_rules_too(world: World) -> None:
    assert ask(world, "create", body=tab()).status == 201
    body = {"status": {"seen": -1}}
    refused = ask(world, "patch", "a", body, subresource="status", content_type=MERGE_PATCH)
    assert causes(refused) == [("status", INVALID, "Invalid value: failed rule: !has(self.seen) || self.seen >= 0")]
    assert ask(world, "patch", "a", {"status": {"seen": 1}}, subresource="status", content_type=MERGE_PATCH).status == 200


def test_a_rule_that_costs_too_much_ends_the_look_at_all_of_them(world: World) -> None:
    schema = copy.deepcopy(SCHEMA)
    fields = schema["properties"]["spec"]["properties"]
    numbers = {"type": "array", "items": {"type": "integer"}}
    fields["numbers"] = {
        **numbers,
        "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"}, {"rule": "false"}],
    }
    definition = world.get(CRDS, "tabs.x.io").body
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    assert world.update(CRDS, "tabs.x.io", definition).status == 200
    ((where, _, message),) = causes(ask(world, "create", body=tab(numbers=list(range(500)))))
    assert where == "spec.numbers"
    assert (
        message
        == 'Invalid value: "array": validation failed due to running out of cost budget, no further validation rules will be run'
    )
    assert [one[0] for one in causes(ask(world, "create", body=tab(numbers=[1, 2])))] == ["spec.numbers"], "the last rule alone"


def test_a_value_that_a_rule_did_not_reckon_with_is_told_of(world: World) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    schema["properties"]["spec"]["x-kubernetes-validations"] = [  # type: ignore[index]
        {"rule": "self.size > 3"},
        {"rule": "self.nosuch == 1", "message": "nosuch is 1"},
    ]
    definition = world.get(CRDS, "tabs.x.io").body
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    assert world.update(CRDS, "tabs.x.io", definition).status == 200
    assert [message for _, _, message in causes(ask(world, "create", body=tab(size="x")))] == [
        "Invalid value: \"object\": 'no such overload': call arguments did not match a supported operator, function or macro "
        "signature for rule: self.size > 3",
        'Invalid value: "object": no such key: nosuch evaluating rule: nosuch is 1',
    ]


# ---------------------------------------------------------------- definitions

RULES = f"{AT}.x-kubernetes-validations[0]"


def refused(*rules: dict[str, Any], **schema: Any) -> list[tuple[str, str]]:
    whole = {"type": "object", "x-kubernetes-validations": list(rules), **schema}
    return [(where, message) for where, _, message in causes(World().create(CRDS, a_definition(whole)))]


def shown(rule: str, **more: Any) -> str:
    said = {"Rule": rule, "Message": "", "MessageExpression": "", "Reason": None, "FieldPath": "", "OptionalOldSelf": None, **more}
    return msgspec.json.encode(said).decode()


@pytest.mark.parametrize(
    ("rule", "where", "message"),
    [
        ({"rule": " "}, "rule", "Required value: rule is not specified"),
        ({"rule": "true", "message": " "}, "message", 'Invalid value: " ": must be non-empty if specified'),
        ({"rule": "true", "message": "a\nb"}, "message", 'Invalid value: "a\\nb": must not contain line breaks'),
        ({"rule": "true\n|| false"}, "message", "Required value: message must be specified if rule contains line breaks"),
        (
            {"rule": "true", "messageExpression": " "},
            "messageExpression",
            "Required value: messageExpression must be non-empty if specified",
        ),
        ({"rule": "true", "fieldPath": ".nosuch"}, "fieldPath", 'Invalid value: ".nosuch": must be a valid path'),
        (
            {"rule": "true", "reason": "Odd"},
            "reason",
            'Unsupported value: "Odd": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", '
            '"FieldValueRequired"',
        ),
        (
            {"rule": "self.nosuch"},
            "rule",
            f"Invalid value: {shown('self.nosuch')}: compilation failed: ERROR: <input>:1:5: undefined field 'nosuch'\n"
            " | self.nosuch\n | ....^",
        ),
        ({"rule": "1"}, "rule", f"Invalid value: {shown('1')}: cel expression must evaluate to a bool"),
        (
            {"rule": "true", "messageExpression": "1"},
            "messageExpression",
            f"Invalid value: {shown('true', MessageExpression='1')}: messageExpression must evaluate to a string",
        ),
        (
            {"rule": "true", "optionalOldSelf": True},
            "optionalOldSelf",
            "Invalid value: true: may not be set if oldSelf is not used in rule",
        ),
    ],
)
def test_what_a_rule_is_refused_for(rule: dict[str, Any], where: str, message: str) -> None:
    assert refused(rule) == [(f"{RULES}.{where}", message)]


def test_a_former_value_is_not_asked_for_where_there_is_none_to_be_found() -> None:
    items = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    names = {"type": "array", "items": items}
    found = refused(properties={"spec": {"type": "object", "properties": {"names": names}}})
    within = f"{AT}.properties[spec].properties[names]"
    text = f'Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within {within}'
    assert found == [(f"{within}.items.x-kubernetes-validations[0].rule", text)]


def test_expressions_are_not_looked_into_while_the_schema_itself_is_wrong() -> None:
    found = refused({"rule": "self.nosuch"}, properties={"a": {"type": "odd"}})
    assert [where for where, _ in found] == [f"{AT}.properties[a].type"]
