"""``/openapi/v2``: all groups in one Swagger 2.0 document, made of the OpenAPI v3 ones.

Swagger says less: nothing is null in it, and no value may be one thing or the other. So, as upstream, schemas of custom kinds lose
``anyOf`` and its kind, a field that may be null or that keeps unknown ones tells nothing of what is inside, and references have no
neighbours but a description. ``protobuf`` is the same document as gnostic's ``openapi.v2.Document``, for which client-go asks.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from elbowroom.apiserver import discovery, openapi
from elbowroom.apiserver.discovery import Catalog

Node = Mapping[str, Any]
PROTOBUF_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_METHODS = ("get", "put", "post", "delete", "patch")
_JUNCTORS = ("anyOf", "oneOf", "not", "allOf")
_KEEPS = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"


def document(*, previews: bool = False, catalog: Catalog = discovery.BUILT_IN) -> dict[str, Any]:
    """The whole of what is served."""
    paths: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for group, version in catalog.group_versions():
        described = openapi.document(group, version, previews=previews, catalog=catalog)
        assert described is not None, "the catalog lists it"
        paths |= {path: _item(entry) for path, entry in described["paths"].items()}
        for name, schema in described["components"]["schemas"].items():
            made = _schema(schema)
            known = definitions.get(name)
            if known is not None:  # one type in several groups: kinds are told of where they are served
                gvk = "x-kubernetes-group-version-kind"
                made[gvk] = [*known.get(gvk, ()), *(one for one in made.get(gvk, ()) if one not in known.get(gvk, ()))]
                made = made if made[gvk] else known
            definitions[name] = made
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": discovery.GIT_VERSION},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def _item(entry: Node) -> dict[str, Any]:
    made: dict[str, Any] = {method: _operation(entry[method]) for method in _METHODS if method in entry}
    if entry.get("parameters"):
        made["parameters"] = [_parameter(one) for one in entry["parameters"]]
    return made


def _parameter(parameter: Node) -> dict[str, Any]:
    rest = {name: value for name, value in parameter.items() if name != "schema"}
    return {**rest, **parameter["schema"]}


def _operation(operation: Node) -> dict[str, Any]:
    made = {name: value for name, value in operation.items() if name.startswith("x-")}
    parameters = [_parameter(one) for one in operation.get("parameters", ())]
    body = operation.get("requestBody")
    if body is not None:
        made["consumes"] = list(body["content"])
        schema = _schema(next(iter(body["content"].values()))["schema"])
        parameters.insert(0, {"name": "body", "in": "body", "required": True, "schema": schema})
    if parameters:
        made["parameters"] = parameters
    made["produces"] = ["application/json", "application/yaml"]
    made["responses"] = {
        status: {"description": told["description"], "schema": _schema(told["content"]["application/json"]["schema"])}
        for status, told in operation["responses"].items()
    }
    return made


def _schema(schema: Node) -> dict[str, Any]:
    if "$ref" in schema:
        return {"$ref": schema["$ref"].replace("#/components/schemas/", "#/definitions/")}
    if len(schema.get("allOf") or ()) == 1 and "$ref" in schema["allOf"][0]:
        made = _schema(schema["allOf"][0])
        return {"description": schema["description"], **made} if "description" in schema else made
    if schema.get("format") == "int-or-string":
        return {**{name: value for name, value in schema.items() if name != "oneOf"}, "type": "string"}
    left_out = (*_JUNCTORS, "nullable")
    if schema.get("nullable") or schema.get(_KEEPS):
        left_out = (*left_out, "items", "properties", "additionalProperties", *(("type",) if schema.get("nullable") else ()))
    made = {name: value for name, value in schema.items() if name not in left_out}
    for name in ("items", "additionalProperties"):
        if isinstance(made.get(name), dict):
            made[name] = _schema(made[name])
    if "properties" in made:
        made["properties"] = {name: _schema(inner) for name, inner in schema["properties"].items()}
        optional = [name for name, inner in schema["properties"].items() if inner.get("nullable")]
        if made.get("required"):
            made["required"] = [name for name in made["required"] if name not in optional]
    return made


# ---------------------------------------------------------------- protobuf


def protobuf(described: Node) -> bytes:
    """The document as an ``openapi.v2.Document``."""
    info = described["info"]
    paths = b"".join(_message(2, _text(1, path) + _message(2, _proto_item(item))) for path, item in described["paths"].items())
    definitions = b"".join(_named(1, name, _proto_schema(one)) for name, one in described["definitions"].items())
    return b"".join(
        (
            _text(1, described["swagger"]),
            _message(2, _text(1, info["title"]) + _text(2, info["version"])),
            _message(8, paths),
            _message(9, definitions),
        )
    )


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode()) if text else b""


def _texts(number: int, texts: Iterable[str]) -> bytes:
    return b"".join(_message(number, text.encode()) for text in texts)


def _flag(number: int, value: Any) -> bytes:
    return _varint(number << 3) + b"\x01" if value else b""


def _count(number: int, value: int | None) -> bytes:
    return _varint(number << 3) + _varint(value & (1 << 64) - 1) if value else b""


def _number(number: int, value: float | None) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value) if value else b""


def _named(number: int, name: str, content: bytes) -> bytes:
    """An entry of a map, of which gnostic makes a message of name and value."""
    return _message(number, _text(1, name) + _message(2, content))


def _any(value: Any) -> bytes:
    """A value as YAML, which JSON is."""
    return _text(2, msgspec.json.encode(value).decode() + "\n")


def _extensions(number: int, node: Node) -> bytes:
    return b"".join(_named(number, name, _any(value)) for name, value in node.items() if name.startswith("x-"))


def _proto_item(item: Node) -> bytes:
    numbers = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
    made = b"".join(_message(numbers[method], _proto_operation(item[method])) for method in _METHODS if method in item)
    return made + b"".join(_message(9, _proto_parameter(one)) for one in item.get("parameters", ()))


def _proto_operation(operation: Node) -> bytes:
    responses = b""
    for status, told in operation["responses"].items():
        response = _text(1, told["description"]) + _message(2, _message(1, _proto_schema(told["schema"])))
        responses += _named(1, status, _message(1, response))
    return b"".join(
        (
            _texts(6, operation["produces"]),
            _texts(7, operation.get("consumes", ())),
            *(_message(8, _proto_parameter(one)) for one in operation.get("parameters", ())),
            _message(9, responses),
            _extensions(13, operation),
        )
    )


def _proto_parameter(one: Node) -> bytes:
    """A ``ParametersItem``."""
    if one["in"] == "body":
        body = (
            _text(2, one["name"]) + _text(3, one["in"]) + _flag(4, one.get("required")) + _message(5, _proto_schema(one["schema"]))
        )
        return _message(1, _message(1, body))
    head = _flag(1, one.get("required")) + _text(2, one["in"]) + _text(4, one["name"])
    if one["in"] == "path":
        return _message(1, _message(2, _message(4, head + _text(5, one["type"]) + _flag(19, one.get("uniqueItems")))))
    return _message(1, _message(2, _message(3, head + _text(6, one["type"]) + _flag(20, one.get("uniqueItems")))))


def _proto_schema(schema: Node) -> bytes:
    more, kind = schema.get("additionalProperties"), schema.get("type")
    parts = [_text(1, schema.get("$ref", "")), _text(2, schema.get("format", ""))]
    parts += [_text(3, schema.get("title", "")), _text(4, schema.get("description", ""))]
    if schema.get("default") is not None:
        parts.append(_message(5, _any(schema["default"])))
    for number, name in ((6, "multipleOf"), (7, "maximum"), (9, "minimum")):
        parts.append(_number(number, schema.get(name)))
    for number, name in ((8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems")):
        parts.append(_flag(number, schema.get(name)))
    for number, name in ((11, "maxLength"), (12, "minLength"), (14, "maxItems"), (15, "minItems"), (17, "maxProperties")):
        parts.append(_count(number, schema.get(name)))
    parts += [_count(18, schema.get("minProperties")), _text(13, schema.get("pattern", ""))]
    parts += [_texts(19, schema.get("required") or ()), *(_message(20, _any(one)) for one in schema.get("enum") or ())]
    if more is not None:
        parts.append(_message(21, _message(1, _proto_schema(more)) if isinstance(more, dict) else _flag(2, more)))
    if kind:
        parts.append(_message(22, _text(1, kind)))
    if schema.get("items") is not None:
        parts.append(_message(23, _message(1, _proto_schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_message(25, b"".join(_named(1, name, _proto_schema(one)) for name, one in schema["properties"].items())))
    return b"".join(parts) + _extensions(31, schema)
