"""The types of expressions, and what a schema makes of a field.

A string with a format may be bytes, a time or a duration; what may be a number or a string, and what keeps unknown fields, is
``dyn``: it is looked at when the rule runs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from elbowroom.apiserver.definitions.cel.syntax import RESERVED

Schema = Mapping[str, Any]
_EMPTY: Schema = {}


@dataclass(frozen=True, slots=True)
class Type:
    """A type by name, with what it is of: ``list(string)``. ``fields`` and ``schema`` are those of an object."""

    name: str
    of: tuple["Type", ...] = ()
    fields: Mapping[str, Schema] | None = field(default=None, compare=False)
    schema: Schema | None = field(default=None, compare=False)

    def __str__(self) -> str:
        name = "google.protobuf." + self.name.capitalize() if self.name in ("timestamp", "duration") else self.name
        return f"{name}({', '.join(map(str, self.of))})" if self.of else name


DYN, NULL, BOOL, INT, UINT = Type("dyn"), Type("null"), Type("bool"), Type("int"), Type("uint")
DOUBLE, STRING, BYTES, TIMESTAMP, DURATION = Type("double"), Type("string"), Type("bytes"), Type("timestamp"), Type("duration")
QUANTITY, URL, IP, CIDR = Type("kubernetes.Quantity"), Type("kubernetes.URL"), Type("net.IP"), Type("net.CIDR")
TYPE = Type("type")


def listed(item: Type) -> Type:
    return Type("list", (item,))


def mapped(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional(of: Type) -> Type:
    return Type("optional_type", (of,))


# ---------------------------------------------------------------- names of fields

_SIGNS = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_WORDS = RESERVED | {"true", "false", "null", "in"}


def escaped(name: str) -> str | None:
    """A property's name as an expression has it; None if it cannot be named."""
    if not name or not re.fullmatch(r"[a-zA-Z0-9_./-]+", name) or name[0] in "0123456789":
        return None
    if name in _WORDS:
        return f"__{name}__"
    return re.sub(r"__|[./-]", lambda found: _SIGNS[found[0]], name)


def unescaped(name: str) -> str:
    """The property that an expression names."""
    if name.startswith("__") and name.endswith("__") and name[2:-2] in _WORDS:
        return name[2:-2]
    for sign, word in (*((s, w) for s, w in _SIGNS.items() if s != "__"), ("__", _SIGNS["__"])):
        name = name.replace(word, sign)
    return name


# ---------------------------------------------------------------- schemas

_META: Schema = {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}
_ROOT: Mapping[str, Schema] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _META}
_FORMATS = {"byte": BYTES, "date": TIMESTAMP, "date-time": TIMESTAMP, "duration": DURATION}


def of_schema(schema: Schema, *, is_root: bool = False) -> Type:
    """The type of what a schema describes; ``is_root``: of a whole resource."""
    is_root = is_root or bool(schema.get("x-kubernetes-embedded-resource"))
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    match schema.get("type"):
        case "string":
            return _FORMATS.get(schema.get("format", ""), STRING)
        case "integer":
            return INT
        case "number":
            return DOUBLE
        case "boolean":
            return BOOL
        case "array":
            return Type("list", (of_schema(schema.get("items") or _EMPTY),), schema=schema)
        case "object":
            more = schema.get("additionalProperties")
            if isinstance(more, dict) and not schema.get("properties"):
                return Type("map", (STRING, of_schema(more)), schema=schema)
            if schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties") and not is_root:
                return DYN
            fields = dict(schema.get("properties") or _EMPTY)
            if is_root:
                fields |= {name: one for name, one in _ROOT.items() if name != "metadata" or "metadata" not in fields}
            by_name = {name: one for key, one in fields.items() if (name := escaped(key)) is not None}
            return Type("object", (), by_name, schema)
        case _:
            return DYN
