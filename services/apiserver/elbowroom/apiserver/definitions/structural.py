"""Structural schemas: what is pruned, what stands by default, and the field tree that applies and comparisons need.

A schema is the document in ``openAPIV3Schema``. Objects of custom kinds have no Go type: what the schema does not name is dropped
(unless ``x-kubernetes-preserve-unknown-fields`` keeps it), types are for ``values`` to judge.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elbowroom.apiserver import schema as trees
from elbowroom.apiserver.schema import Decoded, Field, Struct
from elbowroom.apiserver.strategy import Document

Schema = Mapping[str, Any]

META_FIELDS = ("kind", "apiVersion", "metadata")
PRESERVES = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
UNKNOWN_MAX = 100
_EMPTY: Schema = {}


def _config_map() -> Field:
    found = trees.find("", "v1", "ConfigMap")
    assert found is not None, "any kind with metadata would do"
    return found


_METADATA = _config_map().fields["metadata"]


def child(schema: Schema | None, name: str) -> Schema | None:
    """The schema of a property; None where anything may stand, or nothing."""
    if schema is None:
        return None
    found = (schema.get("properties") or _EMPTY).get(name)
    if found is None:
        found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else None


def plain(value: Any) -> Any:
    """A copy whose numbers are as Go has them after JSON: whole ones are integers."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float):
        number = float(value)
        return int(number) if number.is_integer() and math.fabs(number) < 1e15 else number
    return value


# ---------------------------------------------------------------- pruning


def prune(document: Document, schema: Schema) -> list[str]:
    """Drop, in place, what the schema of a kind does not name; the paths of what went, in order."""
    found: list[str] = []
    _prune(document, schema, "", found, is_root=True)
    return sorted(found)[:UNKNOWN_MAX]


def _prune(value: Any, schema: Schema | None, path: str, found: list[str], *, is_root: bool = False) -> None:
    if schema is not None and schema.get(PRESERVES):
        _keep(value, schema, path, found, is_root=is_root)
    elif isinstance(value, list):
        items = None if schema is None else schema.get("items")
        for index, item in enumerate(value):
            _prune(item, items, f"{path}[{index}]", found)
    elif isinstance(value, dict):
        for name in list(value):
            if (is_root or (schema is not None and schema.get(EMBEDDED))) and name in META_FIELDS:
                continue
            here = f"{path}.{name}" if path else name
            if schema is not None and name in (schema.get("properties") or _EMPTY):
                _prune(value[name], schema["properties"][name], here, found)
            elif schema is not None and schema.get("additionalProperties"):
                more = schema["additionalProperties"]
                _prune(value[name], more if isinstance(more, dict) else None, here, found)
            else:
                found.append(here)
                del value[name]


def _keep(value: Any, schema: Schema, path: str, found: list[str], *, is_root: bool = False) -> None:
    """Unknown names stay; what is named is pruned inside."""
    if isinstance(value, list):
        items = schema.get("items")
        for index, item in enumerate(value):
            if items is not None:
                _keep(item, items, f"{path}[{index}]", found)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if (is_root or schema.get(EMBEDDED)) and name in META_FIELDS:
                continue
            here = f"{path}.{name}" if path else name
            if name in (schema.get("properties") or _EMPTY):
                _prune(inner, schema["properties"][name], here, found)
            elif isinstance(schema.get("additionalProperties"), dict):
                _prune(inner, schema["additionalProperties"], here, found)


# ---------------------------------------------------------------- defaults


def default(document: Document, schema: Schema) -> None:
    """Put in, in place, what stands by default; nulls that may not be null go, or give way to the default."""
    _drop_nulls(document, schema)
    _default(document, schema)


def _drop_nulls(value: Any, schema: Schema | None) -> None:
    if isinstance(value, dict):
        for name in list(value):
            inner = child(schema, name)
            if value[name] is None and inner is not None and not inner.get("nullable") and inner.get("default") is None:
                del value[name]
            else:
                _drop_nulls(value[name], inner)
    elif isinstance(value, list):
        for item in value:
            _drop_nulls(item, None if schema is None else schema.get("items"))


def _default(value: Any, schema: Schema | None) -> None:
    if schema is None:
        return
    if isinstance(value, dict):
        for name, inner in (schema.get("properties") or _EMPTY).items():
            given = inner.get("default")
            if given is not None and (name not in value or (value[name] is None and not inner.get("nullable"))):
                value[name] = plain(given)
        for name in value:
            _default(value[name], child(schema, name))
    elif isinstance(value, list):
        items = schema.get("items")
        for index, item in enumerate(value):
            if item is None and items is not None and not items.get("nullable") and items.get("default") is not None:
                value[index] = plain(items["default"])
            _default(value[index], items)


# ---------------------------------------------------------------- the field tree


class _Open(dict[str, Field]):
    """The fields of an object that keeps unknown ones: every name has a field."""

    def get(self, name: str, otherwise: Any = None) -> Any:
        return dict.get(self, name) or DEDUCED

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Field:
        return DEDUCED


def _deduced() -> Field:
    found = Field("", trees.MAP, "interface {}")
    found.item, found.is_granular, found.deduces = found, True, True
    return found


DEDUCED = _deduced()
"""What nobody described: objects have parts that are managed one by one, anything else is one value."""


class CustomStruct(Struct):
    """The root of a custom kind's tree; it decodes by its schema."""

    __slots__ = ("schema",)

    def __init__(self, kind: str, schema: Schema) -> None:
        super().__init__(kind, atomic=False)
        self.schema = schema
        self.always = (("metadata", _METADATA),)

    def decode(self, document: Document) -> Decoded:
        """A pruned copy, its metadata through the type."""
        meta = document.get("metadata")
        decoded = trees.decode(_METADATA, {} if meta is None else meta, "metadata")
        if decoded.error is not None:
            return Decoded(None, [], decoded.error)
        made = plain({name: value for name, value in document.items() if name != "metadata"})
        unknown = [*decoded.unknown, *prune(made, self.schema)]
        return Decoded({**made, "metadata": decoded.document}, sorted(unknown), None)


def tree(kind: str, schema: Schema) -> Field:
    """The field tree of a custom kind."""
    struct = CustomStruct(kind, schema)
    described = _struct_fields(schema)
    struct.fields = _Open() if schema.get(PRESERVES) else {}
    for field in (Field("kind", trees.STRING, "string"), Field("apiVersion", trees.STRING, "string"), _METADATA):
        struct.fields[field.name] = field
    for name, field in described:
        if name not in META_FIELDS:
            struct.fields[name] = field
    root = Field(kind, trees.STRUCT, kind)
    root.struct, root.is_granular = struct, True
    return root


def _struct_fields(schema: Schema) -> Iterator[tuple[str, Field]]:
    required = schema.get("required") or ()
    for name, inner in (schema.get("properties") or _EMPTY).items():
        field = _field(name, inner)
        field.required = name in required
        yield name, field


_SCALARS = {
    "string": (trees.STRING, "string"),
    "integer": (trees.INT64, "int64"),
    "number": (trees.FLOAT, "float64"),
    "boolean": (trees.BOOL, "bool"),
}


def _field(name: str, schema: Schema) -> Field:
    kind = schema.get("type", "")
    if schema.get(INT_OR_STRING):
        return Field(name, trees.INT_OR_STRING, "intstr.IntOrString")
    if kind in _SCALARS:
        made = Field(name, *_SCALARS[kind])
    elif kind == "array":
        made = _list(name, schema)
    elif kind == "object":
        made = _object(name, schema)
    else:
        made = _any(name)
    made.default = schema.get("default")
    return made


def _any(name: str) -> Field:
    made = Field(name, trees.MAP, "interface {}")
    made.item, made.is_granular, made.deduces = DEDUCED, True, True
    return made


def _list(name: str, schema: Schema) -> Field:
    item = _field("", schema.get("items") or _EMPTY)
    made = Field(name, trees.ARRAY, f"[]{item.go}")
    made.item, made.list_type = item, schema.get("x-kubernetes-list-type") or ""
    keys: Sequence[str] = schema.get("x-kubernetes-list-map-keys") or ()
    made.list_keys = tuple(keys)
    made.is_granular = made.list_type in ("map", "set")
    return made


def _object(name: str, schema: Schema) -> Field:
    more = schema.get("additionalProperties")
    if schema.get("properties") or schema.get(EMBEDDED) or not (more or schema.get(PRESERVES)):
        made = Field(name, trees.STRUCT, "map[string]interface {}")
        struct = made.struct = Struct("", atomic=False)
        struct.fields = _Open() if schema.get(PRESERVES) else {}
        struct.fields.update(_struct_fields(schema))
        if schema.get(EMBEDDED):
            struct.fields["metadata"] = _METADATA
            for word in ("kind", "apiVersion"):
                struct.fields.setdefault(word, Field(word, trees.STRING, "string"))
    elif isinstance(more, dict):
        made = Field(name, trees.MAP, "map[string]interface {}")
        made.item = _field("", more)
    else:
        made = _any(name)
        made.deduces = False
    made.is_granular = schema.get("x-kubernetes-map-type") != "atomic"
    made.list_type = "atomic" if not made.is_granular else ""
    return made
