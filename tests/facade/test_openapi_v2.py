"""``/openapi/v2``: the same kinds in Swagger's words, and as gnostic's message."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml

from elbowroom.apiserver import discovery, openapi, openapi_v2
from elbowroom.apiserver.definitions.customs import catalog

SCHEMA = yaml.safe_load("""
type: object
required: [spec]
properties:
  spec:
    type: object
    description: What is wanted.
    required: [size, mode]
    properties:
      size: {type: integer, format: int32, minimum: 1, default: 3}
      mode: {type: string, enum: [Fast, Slow], nullable: true}
      port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
      extra: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: string}}}
      names: {type: array, maxItems: 3, items: {type: string, pattern: '^a'}}
      labels: {type: object, additionalProperties: {type: string}}
""")
NAMES = {"plural": "tabs", "singular": "tab", "kind": "Tab", "listKind": "TabList"}
DEFINITION = {
    "metadata": {"name": "tabs.x.io"},
    "spec": {
        "group": "x.io",
        "scope": "Namespaced",
        "names": NAMES,
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
    "status": {"acceptedNames": NAMES, "conditions": [{"type": "Established", "status": "True"}]},
}
CATALOG = catalog([DEFINITION])


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return openapi_v2.document(catalog=CATALOG)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_all_groups_stand_in_one_document_whose_references_lead_somewhere(described: dict[str, Any]) -> None:
    named = {f"#/definitions/{name}" for name in described["definitions"]}
    assert set(references(described)) <= named
    for group, version in CATALOG.group_versions():
        whole = openapi.document(group, version, catalog=CATALOG)
        assert whole is not None and set(whole["paths"]) <= set(described["paths"]), (group, version)
    kinds = {
        (one["group"], one["version"], one["kind"])
        for definition in described["definitions"].values()
        for one in definition.get("x-kubernetes-group-version-kind", ())
    }
    resources = [r for r in discovery.RESOURCES if "list" in r.verbs]
    assert {(r.group, r.version, r.kind) for r in resources} <= kinds


def test_a_field_is_told_of_as_swagger_can(described: dict[str, Any]) -> None:
    pod = described["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]
    assert pod["spec"] == {"description": "What is wanted.", "$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}
    probe = described["definitions"]["io.k8s.api.core.v1.HTTPGetAction"]["properties"]["port"]
    assert (probe["type"], probe["format"]) == ("string", "int-or-string")
    patch = described["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "fieldValidation" in [one["name"] for one in patch["parameters"]]
    body = patch["parameters"][0]
    assert (body["in"], body["name"], body["required"]) == ("body", "body", True)
    assert "application/strategic-merge-patch+json" in patch["consumes"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    parameters = described["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["parameters"]
    assert [(one["name"], one["in"], one["type"]) for one in parameters] == [
        ("namespace", "path", "string"),
        ("name", "path", "string"),
    ]


def test_a_custom_kind_loses_what_swagger_cannot_say(described: dict[str, Any]) -> None:
    spec = described["definitions"]["io.x.v1.Tab"]["properties"]["spec"]
    assert spec["required"] == ["size"], "what may be null cannot be required"
    fields = spec["properties"]
    assert fields["mode"] == {"enum": ["Fast", "Slow"]}
    assert fields["port"] == {"x-kubernetes-int-or-string": True}
    assert fields["extra"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert fields["names"] == SCHEMA["properties"]["spec"]["properties"]["names"]
    item = described["paths"]["/apis/x.io/v1/namespaces/{namespace}/tabs/{name}"]
    assert sorted(item) == ["delete", "get", "parameters", "patch", "put"]
    assert "application/strategic-merge-patch+json" not in item["patch"]["consumes"]


# ---------------------------------------------------------------- as protobuf

Message = dict[int, list[Any]]


def read(data: bytes) -> Message:
    """The fields of a message, as far as its wire format tells."""
    found: Message = {}
    at = 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(data):
        tag = varint()
        match tag & 7:
            case 0:
                value: Any = varint()
            case 1:
                value, at = data[at : at + 8], at + 8
            case _:
                size = varint()
                value, at = data[at : at + size], at + size
        found.setdefault(tag >> 3, []).append(value)
    assert at == len(data)
    return found


def named(messages: list[bytes]) -> dict[str, Message]:
    entries = [read(one) for one in messages]
    return {entry[1][0].decode(): read(entry[2][0]) if 2 in entry else {} for entry in entries}


def test_the_message_says_what_the_document_says(described: dict[str, Any]) -> None:
    whole = read(openapi_v2.protobuf(described))
    assert whole[1] == [b"2.0"]
    paths = named(read(whole[8][0])[2])
    assert set(paths) == set(described["paths"])
    definitions = named(read(whole[9][0])[1])
    assert set(definitions) == set(described["definitions"])
    spec = named(read(definitions["io.x.v1.Tab"][25][0])[1])["spec"]
    assert (spec[4], spec[19], read(spec[22][0])[1]) == ([b"What is wanted."], [b"size"], [b"object"])
    fields = named(read(spec[25][0])[1])
    assert (fields["size"][2], read(fields["size"][5][0])[2]) == ([b"int32"], [b"3\n"])
    assert [read(one)[2][0] for one in fields["mode"][20]] == [b'"Fast"\n', b'"Slow"\n']
    names = fields["names"]
    assert (names[14], read(read(names[23][0])[1][0])[13]) == ([3], [b"^a"])
    assert read(read(read(fields["labels"][21][0])[1][0])[22][0])[1] == [b"string"]
    extensions = named(fields["extra"][31])
    assert extensions["x-kubernetes-preserve-unknown-fields"][2] == [b"true\n"]


def test_an_operation_says_whether_the_server_validates_fields(described: dict[str, Any]) -> None:
    """kubectl looks for the parameter on the patch of a kind, in the message, where it does not use v3."""
    paths = named(read(read(openapi_v2.protobuf(described))[8][0])[2])
    patch = read(paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"][8][0])
    parameters = [read(read(one)[1][0]) for one in patch[8]]
    assert [read(one[1][0])[2] for one in parameters if 1 in one] == [[b"body"]]
    query = [read(read(one[2][0])[3][0]) for one in parameters if 2 in one]
    assert [one[4][0].decode() for one in query] == ["dryRun", "fieldManager", "fieldValidation", "force"]
    kind = named(patch[13])["x-kubernetes-group-version-kind"]
    assert msgspec.json.decode(kind[2][0]) == {"group": "apps", "version": "v1", "kind": "Deployment"}
