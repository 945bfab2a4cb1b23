"""Objects of custom kinds against their schema, in the words of upstream's OpenAPI validator.

It says a thing where it finds it and goes on, so one bad value may have several findings; what a combination (``anyOf`` and its
kind) finds wrong has no field of its own, which upstream shows as ``<nil>``.
"""

import base64
import binascii
import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from elbowroom.api.fielderrors import FieldError, duplicate, invalid, not_supported, required, too_long
from elbowroom.apiserver.definitions.patterns import compiled
from elbowroom.apiserver.gotext import go_text

Schema = Mapping[str, Any]
NOWHERE = "<nil>"
_TYPES = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}


def type_of(value: Any) -> str:
    """The JSON type of a value."""
    return "null" if value is None else _TYPES[type(value)]


def types_of(schema: Schema) -> tuple[str, ...]:
    """What a value may be; empty: anything."""
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def errors(schema: Schema, value: Any, path: str = "", prefix: str = "") -> list[FieldError]:
    """All that is wrong with ``value``. ``prefix`` goes before the fields' paths (and not into the texts)."""
    run = _Run(prefix)
    run.check(schema, value, path)
    return run.found


class _Run:
    __slots__ = ("found", "prefix")

    def __init__(self, prefix: str) -> None:
        self.found: list[FieldError] = []
        self.prefix = prefix

    def _field(self, path: str) -> str:
        return ".".join(part for part in (self.prefix, path.removeprefix(".")) if part) or NOWHERE

    def _say(self, path: str, value: Any, text: str) -> None:
        self.found.append(invalid(self._field(path), value, f"{path} in body {text}"))

    def _nowhere(self, path: str, text: str) -> None:
        self.found.append(invalid(self.prefix or NOWHERE, "", f'"{path}" {text}'))

    def check(self, schema: Schema, value: Any, path: str) -> None:
        self._type(schema, value, path)
        if value is not None:
            self._combined(schema, value, path)
            match value:
                case str():
                    self._string(schema, value, path)
                case bool():
                    pass
                case int() | float():
                    self._number(schema, value, path)
                case list():
                    self._list(schema, value, path)
        self._enum(schema, value, path)
        if isinstance(value, dict):
            self._object(schema, value, path)

    def _type(self, schema: Schema, value: Any, path: str) -> None:
        types = types_of(schema)
        kind = type_of(value)
        if not types or kind in types or (value is None and schema.get("nullable")):
            return
        if isinstance(value, float) and "integer" in types and value.is_integer():
            return
        if kind == "integer" and "number" in types:
            return
        if schema.get("format") and kind in ("string", "array") and not {"number", "integer"} & set(types):
            return
        text = f'{path} in body must be of type {",".join(types)}: "{kind}"'
        self.found.append(FieldError(self._field(path), "FieldValueTypeInvalid", f'Invalid value: "{kind}": {text}'))

    def _string(self, schema: Schema, value: str, path: str) -> None:
        most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
        if most is not None and len(value) > most:
            self.found.append(too_long(self._field(path), most))
        if least is not None and len(value) < least:
            self._say(path, value, f"should be at least {least} chars long")
        if pattern and compiled(pattern).search(value) is None:
            self._say(path, value, f"should match '{pattern}'")
        form = str(schema.get("format", "")).replace("-", "")
        if form in FORMATS and "string" in types_of(schema) and not FORMATS[form](value):
            kind = f'must be of type {schema["format"]}: "{value}"'
            self.found.append(
                FieldError(self._field(path), "FieldValueTypeInvalid", f'Invalid value: "{value}": {path} in body {kind}')
            )

    def _number(self, schema: Schema, value: float, path: str) -> None:
        factor, most, least = schema.get("multipleOf"), schema.get("maximum"), schema.get("minimum")
        if factor and not _divides(factor, value):
            self._say(path, value, f"should be a multiple of {go_text(factor)}")
        if most is not None:
            exclusive = bool(schema.get("exclusiveMaximum"))
            if value > most or (exclusive and value == most):
                self._say(path, value, f"should be less than {'' if exclusive else 'or equal to '}{_limit(most)}")
        if least is not None:
            exclusive = bool(schema.get("exclusiveMinimum"))
            if value < least or (exclusive and value == least):
                self._say(path, value, f"should be greater than {'' if exclusive else 'or equal to '}{_limit(least)}")
        if schema.get("type") == "integer" and schema.get("format") == "int32" and not -(1 << 31) <= value < 1 << 31:
            self.found.append(
                invalid(self.prefix or NOWHERE, "", f"Checked value must be of type integer with format int32 in {path}")
            )

    def _list(self, schema: Schema, value: list[Any], path: str) -> None:
        items = schema.get("items")
        if items:
            for index, item in enumerate(value):
                self.check(items, item, f"{path}[{index}]")
        least, most = schema.get("minItems"), schema.get("maxItems")
        if least is not None and len(value) < least:
            self._say(path, len(value), f"should have at least {least} items")
        if most is not None and len(value) > most:
            self.found.append(too_many(self._field(path), len(value), most))

    def _enum(self, schema: Schema, value: Any, path: str) -> None:
        allowed = schema.get("enum")
        if allowed and not any(type(one) is type(value) and one == value for one in allowed) and value is not None:
            shown = [one if isinstance(one, str) else go_text(one) for one in allowed]
            self.found.append(not_supported(self._field(path), value, shown))

    def _object(self, schema: Schema, value: dict[str, Any], path: str) -> None:
        least, most = schema.get("minProperties"), schema.get("maxProperties")
        if least is not None and len(value) < least:
            self._say(path, len(value), f"should have at least {least} properties")
        if most is not None and len(value) > most:
            self.found.append(too_many(self._field(path), len(value), most))
        named, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, inner in value.items():
            if name in named:
                continue
            if more is False:
                text = f"{path}.{name} in body is a forbidden property"
                self.found.append(invalid(self._field(path), name, text))
            elif isinstance(more, dict):
                self.check(more, inner, f"{path}.{name}")
        for name, inner in named.items():
            if name in value:
                self.check(inner, value[name], f"{path}.{name}" if path else name)
        for name in schema.get("required") or ():
            if name not in value:
                self.found.append(required(self._field(f"{path}.{name}")))

    # ------------------------------------------------------------ combinations

    def _combined(self, schema: Schema, value: Any, path: str) -> None:
        if any_of := schema.get("anyOf"):
            tried = [errors(one, value, path, self.prefix) for one in any_of]
            if all(tried):
                self._nowhere(path, "must validate at least one schema (anyOf)")
                self.found += _fewest(tried)
        if one_of := schema.get("oneOf"):
            tried = [errors(one, value, path, self.prefix) for one in one_of]
            count = sum(not found for found in tried)
            if count != 1:
                said = "Found none valid" if count == 0 else f"Found {count} valid alternatives"
                self._nowhere(path, f"must validate one and only one schema (oneOf). {said}")
                if count == 0:
                    self.found += _fewest(tried)
        if all_of := schema.get("allOf"):
            tried = [errors(one, value, path, self.prefix) for one in all_of]
            for found in tried:
                self.found += found
            if any(tried):
                self._nowhere(path, f"must validate all the schemas (allOf){'. None validated' if all(tried) else ''}")
        if schema.get("not") is not None and not errors(schema["not"], value, path, self.prefix):
            self._nowhere(path, "must not validate the schema (not)")


def _fewest(tried: list[list[FieldError]]) -> list[FieldError]:
    return min(tried, key=lambda found: len(found))


def too_many(where: str, actual: int, most: int) -> FieldError:
    """``Too many: 3: must have at most 2 items``."""
    return FieldError(where, "FieldValueTooMany", f"Too many: {actual}: must have at most {most} items")


def _limit(number: float) -> str:
    return go_text(int(number) if isinstance(number, float) and number.is_integer() and abs(number) < 1e15 else number)


def _divides(factor: float, value: float) -> bool:
    quotient = value / factor
    return math.isclose(quotient, round(quotient), rel_tol=1e-12, abs_tol=1e-12)


# ---------------------------------------------------------------- formats


def _parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _like(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text, re.ASCII) is not None


def _network(text: str) -> None:
    if "/" not in text:
        raise ValueError(text)
    ipaddress.ip_network(text, strict=False)


_HEX4 = "[0-9a-fA-F]{4}-?"
_DURATION = r"(\d+(\.\d+)?\s*(ns|us|µs|ms|s|m|h|d|w|nanos?|micros?|millis?|seconds?|minutes?|hours?|days?|weeks?)\s*)+|0"
FORMATS: Mapping[str, Callable[[str], bool]] = {
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": _parses(_network),
    "mac": _like("([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}"),
    "uuid": _like(f"[0-9a-fA-F]{{8}}-?{_HEX4 * 3}[0-9a-fA-F]{{12}}"),
    "hostname": _like(r"([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"),
    "email": _like(r"[^@\s]+@[^@\s]+"),
    "uri": _like(r"[a-zA-Z][a-zA-Z0-9+.-]*:\S+|/\S*"),
    "byte": _parses(lambda text: base64.b64decode(text, validate=True)),
    "date": _parses(lambda text: datetime.strptime(text, "%Y-%m-%d")),  # noqa: DTZ007
    "datetime": _like(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"),
    "duration": _like(f"-?({_DURATION})"),
    "hexcolor": _like("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
}
"""The formats that are checked, without their dashes; unknown ones, and passwords, are any text."""


# ---------------------------------------------------------------- lists that are sets or maps


def list_errors(schema: Schema, value: Any, path: str = "") -> list[FieldError]:
    """Elements that stand twice in lists of type ``set`` and ``map``."""
    found: list[FieldError] = []
    if isinstance(value, dict):
        named, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, inner in value.items():
            if name in named:
                found += list_errors(named[name], inner, f"{path}.{name}" if path else name)
            elif isinstance(more, dict):
                found += list_errors(more, inner, f"{path}[{name}]")
    elif isinstance(value, list):
        kind = schema.get("x-kubernetes-list-type")
        if kind in ("set", "map"):
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            found += _doubles(value, keys if kind == "map" else None, path)
        for index, item in enumerate(value):
            found += list_errors(schema.get("items") or {}, item, f"{path}[{index}]")
    return found


def _doubles(value: list[Any], keys: tuple[str, ...] | list[str] | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: list[Any] = []
    told: list[Any] = []
    for index, item in enumerate(value):
        if keys is not None and item is not None and not isinstance(item, dict):
            return [invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
        what = item if keys is None else {key: (item or {}).get(key) for key in keys}
        if what in seen and what not in told:
            told.append(what)
            found.append(duplicate(f"{path}[{index}]", what))
        seen.append(what)
    return found
