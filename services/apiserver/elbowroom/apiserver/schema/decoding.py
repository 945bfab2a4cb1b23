"""From a JSON-shaped value to the document that upstream would store.

The document goes through the type and comes out as Go would write it: unknown fields are gone, quantities and times
canonical, zero values left out where Go leaves them out and there where Go writes them (``resources: {}``). So documents that
mean the same are equal.

Two sets of words exist for a wrong type: those of JSON bodies and, ``restored``, those of a strategic merge patch, which upstream
restores from an unstructured map (in the order of the type's fields instead of the document's).
"""

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import repeat
from operator import is_
from typing import Any, NamedTuple

from elbowroom.api import quantity
from elbowroom.apiserver.schema.bodies import Literal
from elbowroom.apiserver.schema.fields import (
    ANY,
    ARRAY,
    BOOL,
    BYTES,
    FLOAT,
    INT32,
    INT64,
    INT_OR_STRING,
    MAP,
    MICRO_TIME,
    QUANTITY,
    STRING,
    STRUCT,
    TIME,
    Field,
    Struct,
)

_UNKNOWN_MAX = 100


class Decoded(NamedTuple):
    """``document`` is new (None if ``error``); ``unknown`` holds paths such as ``spec.containers[0].nope``."""

    document: Any
    unknown: list[str]
    error: str | None


class _WrongError(ValueError):
    """A value that cannot be decoded at all: upstream stops there."""


_Where = tuple[Any, str | int] | None
"""The way down, as links from the innermost step outwards; rendered only when there is something to say."""


class _Pass:
    __slots__ = ("first", "prefix", "restored", "unknown")

    def __init__(self, prefix: str, restored: bool) -> None:
        self.prefix = prefix
        self.restored = restored
        self.unknown: list[str] = []
        self.first: str | None = None


def decode(field: Field, document: Any, path: str = "", *, restored: bool = False, known: dict[str, Any] | None = None) -> Decoded:
    """``document`` as ``field`` would keep it. ``path`` goes before the paths in ``unknown``.

    Parts that ``document`` shares with ``known``, which was decoded before, are taken as they are.
    """
    run = _Pass(path, restored)
    if type(document) is not dict:
        if document is None:
            document = {}
        else:
            return Decoded(None, [], f"json: cannot unmarshal {_json_type(document)} into Go value of type {field.go}")
    assert field.struct is not None, "only whole structs are decoded"
    own: Decoded | None = field.struct.decode(document)
    if own is not None:
        return Decoded(own.document, [f"{path}{where}" for where in own.unknown], own.error)
    try:
        found = _struct(run, field.struct, document, None, known or _NOTHING)
    except _WrongError as why:
        return Decoded(None, run.unknown, str(why))
    if run.first is not None:
        return Decoded(None, run.unknown, run.first)
    if restored:
        run.unknown.sort()
    return Decoded(found, run.unknown, None)


_NOTHING: dict[str, Any] = {}


def _struct(
    run: _Pass, struct: Struct, document: dict[str, Any], where: _Where, known: dict[str, Any] = _NOTHING
) -> dict[str, Any]:
    fields = struct.fields
    found: dict[str, Any] = {}
    for name in _in_type_order(struct, document) if run.restored and len(document) > 1 else document:
        value = document[name]
        if known and known.get(name, _ABSENT) is value:
            found[name] = value
            continue
        field = fields.get(name)
        if field is None:
            if len(run.unknown) < _UNKNOWN_MAX:
                run.unknown.append(_path(run, where, name))
            continue
        kind = field.kind
        if kind == STRING:
            if type(value) is str:
                if value or not field.drops_zero:
                    found[name] = value
            elif value is not None:
                _mismatch(run, field, value, struct, where, name)
            continue
        if value is None:
            continue
        if kind == BOOL and type(value) is bool:
            if value or not field.drops_zero:
                found[name] = value
        elif kind == TIME:
            found[name] = _time(value, _TIME_LAYOUT)
        elif kind in _INTEGERS and type(value) is int and -(1 << 31) <= value < 1 << 31:
            if value or not field.drops_zero:
                found[name] = value
        elif kind == STRUCT:
            if type(value) is dict:
                assert field.struct is not None
                before = known.get(name)
                inner = _struct(run, field.struct, value, (where, name), before if type(before) is dict else _NOTHING)
                if inner or not field.drops_zero:
                    found[name] = inner
            else:
                _mismatch(run, field, value, struct, where, name)
        else:
            result = _value(run, field, value, struct, where, name, known.get(name))
            if result is not None and (result or not field.drops_zero):
                found[name] = result
    for name, field in struct.always:
        if name not in found:
            found[name] = zero(field)
    return found


_ABSENT = object()
_INTEGERS = (INT32, INT64)


def _in_type_order(struct: Struct, document: dict[str, Any]) -> list[str]:
    try:
        return sorted(document, key=struct.order.__getitem__)
    except KeyError:  # nobody knows one of them
        known = [name for name in struct.fields if name in document]
        return known + [name for name in document if name not in struct.fields]


def _value(run: _Pass, field: Field, value: Any, struct: Struct, where: _Where, name: str | int, known: Any = None) -> Any:
    """What field (or element) ``name`` holds, which is not null; None if it was refused. ``known`` is what it held before."""
    kind = field.kind
    if kind == ARRAY:
        if type(value) is not list:
            return _mismatch(run, field, value, struct, where, name)
        assert field.item is not None
        item = field.item
        if item.kind == STRUCT:
            assert item.struct is not None
            inside, here = item.struct, (where, name)
            elements: list[Any] = []
            before = known if type(known) is list else []
            for index, element in enumerate(value):
                if before and any(map(is_, before, repeat(element))):
                    elements.append(element)
                elif type(element) is dict:
                    # A merge patch leaves most elements where they were.
                    same_place = before[index] if index < len(before) else None
                    old = same_place if type(same_place) is dict else _NOTHING
                    elements.append(_struct(run, inside, element, (here, index), old))
                elif element is None:
                    elements.append(zero(item))
                else:
                    _mismatch(run, item, element, struct, where, name)
            return elements
        return [zero(item) if element is None else _value(run, item, element, struct, where, name) for element in value]
    if kind == MAP:
        if type(value) is not dict:
            return _mismatch(run, field, value, struct, where, name)
        assert field.item is not None
        item = field.item
        if item.kind == STRING:
            result: dict[str, Any] = {}
            for key, text in value.items():
                if type(text) is str:
                    result[key] = text
                elif text is None:
                    result[key] = ""
                else:
                    _mismatch(run, item, text, struct, where, name)
            return result
        if field.is_resource_list:
            return {key: _resource(amount) for key, amount in value.items()}
        if item.kind == STRUCT:
            return {
                key: _struct(run, item.struct, inner, ((where, name), key))
                if type(inner) is dict and item.struct is not None
                else (zero(item) if inner is None else _mismatch(run, item, inner, struct, where, name))
                for key, inner in value.items()
            }
        return {key: zero(item) if inner is None else _value(run, item, inner, struct, where, name) for key, inner in value.items()}
    if kind == STRING:
        return value if type(value) is str else _mismatch(run, field, value, struct, where, name)
    if kind in (INT32, INT64):
        if type(value) is int:
            bits = 31 if kind == INT32 else 63
            if -(1 << bits) <= value < 1 << bits:
                return value
            if run.restored:
                return (value + (1 << bits)) % (2 << bits) - (1 << bits)
        elif run.restored and isinstance(value, float):
            if value == int(value):
                return int(value)
            raise _WrongError(f"cannot convert float64 to {field.go}")
        return _mismatch(run, field, value, struct, where, name)
    if kind == BOOL:
        return value if type(value) is bool else _mismatch(run, field, value, struct, where, name)
    if kind == QUANTITY:
        return _quantity(value)
    if kind == TIME:
        return _time(value, _TIME_LAYOUT)
    if kind == MICRO_TIME:
        return _time(value, _MICRO_LAYOUT)
    if kind == INT_OR_STRING:
        return _int_or_string(value)
    if kind == FLOAT:
        return (
            value
            if isinstance(value, int | float) and type(value) is not bool
            else _mismatch(run, field, value, struct, where, name)
        )
    if kind == BYTES:
        return _base64(run, field, value, struct, where, name)
    if kind == STRUCT:
        return _mismatch(run, field, value, struct, where, name)
    assert kind == ANY, kind
    return value


def zero(field: Field) -> Any:
    """A fresh zero value of the field, as Go writes it."""
    kind = field.kind
    if field.null_zero:
        return None
    if kind == STRUCT:
        assert field.struct is not None
        return {name: zero(inner) for name, inner in field.struct.always}
    if kind == ARRAY:
        return []
    if kind == MAP:
        return {}
    return _ZEROS[kind]


_ZEROS = {
    STRING: "",
    INT32: 0,
    INT64: 0,
    BOOL: False,
    FLOAT: 0.0,
    QUANTITY: "0",
    INT_OR_STRING: 0,
    TIME: None,
    MICRO_TIME: None,
    BYTES: "",
    ANY: None,
}

# ---------------------------------------------------------------- scalars with a syntax


def _resource(value: Any) -> str:
    if type(value) is str:
        try:
            return quantity.canonicalise(value)
        except quantity.QuantityError as why:
            raise _WrongError(str(why)) from why
    return "0" if value is None else _resource(_raw(value))


def _quantity(value: Any) -> str:
    try:
        return quantity.parse(value if type(value) is str else _raw(value)).canonical()
    except quantity.QuantityError as why:
        raise _WrongError(str(why)) from why


def _raw(value: Any) -> str:
    """The JSON text of something that is no string, as far as a quantity could be made of it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, int | float):
        return str(value)
    return "[]" if isinstance(value, list) else "{}"


def _int_or_string(value: Any) -> Any:
    if type(value) is str:
        return value
    if type(value) is int and -(1 << 31) <= value < 1 << 31:
        return value
    raise _WrongError(f"json: cannot unmarshal {_json_type(value, wanted_int=True)} into Go value of type int32")


_TIME_LENGTH_MAX = 64
"""How long a time may be to be remembered: its fraction may be of any length."""
_TIME_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_WHOLE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_STEPS = (
    (re.compile(r"\d{4}", re.ASCII), "2006"),
    (re.compile("-"), "-"),
    (re.compile(r"\d\d", re.ASCII), "01"),
    (re.compile("-"), "-"),
    (re.compile(r"\d\d", re.ASCII), "02"),
    (re.compile("T"), "T"),
    (re.compile(r"\d\d", re.ASCII), "15"),
    (re.compile(":"), ":"),
    (re.compile(r"\d\d", re.ASCII), "04"),
    (re.compile(":"), ":"),
    (re.compile(r"\d\d", re.ASCII), "05"),
    (re.compile(r"(?:[.,]\d+)?", re.ASCII), ""),
    (re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII), "Z07:00"),
)
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _time(value: Any, layout: str) -> str:
    if type(value) is not str:
        raise _WrongError(f"json: cannot unmarshal {_json_type(value)} into Go value of type string")
    try:
        return (_canonical_time if len(value) <= _TIME_LENGTH_MAX else _canonical_time.__wrapped__)(value, layout)
    except ValueError as why:
        raise _WrongError(f'parsing time "{value}"{why}') from why


@lru_cache(maxsize=4096)
def _canonical_time(text: str, layout: str) -> str:
    micro = layout is _MICRO_LAYOUT or layout == _MICRO_LAYOUT
    parts: list[str] = []
    at = 0
    for pattern, word in _STEPS:
        if micro and word == "":
            pattern, word = _MICROS, ".000000"
        match = pattern.match(text, at)
        if match is None:
            raise ValueError(f' as "{layout}": cannot parse "{text[at:]}" as "{word}"')
        if word in ("2006", "01", "02", "15", "04", "05", "", ".000000", "Z07:00"):
            parts.append(match[0])
        at = match.end()
    if at < len(text):
        raise ValueError(f': extra text: "{text[at:]}"')
    year, month, day, hour, minute, second, fraction, zone = parts
    numbers = (int(year), int(month), int(day), int(hour), int(minute), int(second))
    _check_ranges(*numbers)
    if zone == "Z":
        return f"{text[:19]}{'.' + fraction[1:7] if micro else ''}Z"
    return _in_utc(numbers, fraction if micro else "", zone)


_MICROS = re.compile(r"[.,]\d{6}\d*", re.ASCII)


def _check_ranges(year: int, month: int, day: int, hour: int, minute: int, second: int) -> None:
    if not 1 <= month <= 12:
        raise ValueError(": month out of range")
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _MONTH_DAYS[month - 1] or (month == 2 and day == 29 and not leap):
        raise ValueError(": day out of range")
    for amount, limit, what in ((hour, 24, "hour"), (minute, 60, "minute"), (second, 60, "second")):
        if amount >= limit:
            raise ValueError(f": {what} out of range")


def _in_utc(numbers: tuple[int, ...], fraction: str, zone: str) -> str:
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    try:
        moment = datetime(*numbers, tzinfo=UTC) - (offset if zone[0] == "+" else -offset)  # type: ignore[misc,arg-type]
    except (ValueError, OverflowError) as why:
        raise ValueError(": year out of range") from why
    return f"{moment:%Y-%m-%dT%H:%M:%S}{'.' + fraction[1:7] if fraction else ''}Z"


def _base64(run: _Pass, field: Field, value: Any, struct: Struct, where: _Where, name: str | int) -> Any:
    if type(value) is not str:
        return _mismatch(run, field, value, struct, where, name)
    plain = value.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError) as why:
        odd = re.search(r"[^A-Za-z0-9+/]", plain)
        at = odd.start() if odd is not None else len(plain) // 4 * 4
        raise _WrongError(f"illegal base64 data at input byte {at}") from why
    return plain


# ---------------------------------------------------------------- words


def _path(run: _Pass, where: _Where, name: str | int) -> str:
    steps: list[str] = []
    at: _Where = (where, name)
    while at is not None:
        at, step = at
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    text = run.prefix + "".join(reversed(steps))
    return text if run.prefix else text[1:]


def _mismatch(run: _Pass, field: Field, value: Any, struct: Struct, where: _Where, name: str | int) -> Any:
    """Note that ``value`` is of no type that ``field`` takes."""
    if run.restored:
        raise _WrongError(_restoring(field, value))
    if run.first is None:
        steps = [str(name)] if isinstance(name, str) else []
        at = where
        while at is not None:
            at, step = at
            if isinstance(step, str):
                steps.append(step)
        dotted = ".".join(reversed(steps))
        what = _json_type(value, wanted_int=field.kind in (INT32, INT64))
        run.first = f"json: cannot unmarshal {what} into Go struct field {struct.go}.{dotted} of type {field.go}"
    return None


def _restoring(field: Field, value: Any) -> str:
    go = {str: "string", bool: "bool", int: "int64", dict: "map", list: "slice"}.get(type(value), "float64")
    if field.kind == STRUCT:
        return f"cannot restore struct from: {go}"
    if field.kind in (ARRAY, BYTES):
        return f"cannot restore slice from {go}"
    if field.kind == MAP:
        return f"cannot restore map from {go}"
    base = {STRING: "string", BOOL: "bool", INT32: "int32", INT64: "int64"}.get(field.kind, field.go)
    if field.kind == STRING and type(value) is int:
        return f"cannot convert int64 to {field.go}"  # Go can make a string of an integer, only not here
    return f"unrecognized type: {base}"


def _json_type(value: Any, *, wanted_int: bool = False) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    if isinstance(value, dict):
        return "object"
    if value is None:
        return "null"
    return f"number {_raw(value)}" if wanted_int else "number"
