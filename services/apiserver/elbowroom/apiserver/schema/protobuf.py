"""Bodies in Kubernetes' protobuf, as JSON-shaped values.

kubectl sends them for what it makes itself (``create namespace``, ``create quota``, ``auth can-i``). The field numbers are in the
table; a message comes out as the JSON document that says the same, and goes through ``decode`` like any other. Nothing is ever
answered in protobuf.
"""

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from elbowroom.apiserver.schema.bodies import DEPTH_MAX, MalformedBodyError
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
    find,
)

MAGIC = b"k8s\0"
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Numbers = dict[int, Any]
"""Field number -> Field, or the numbers of a message that JSON shows in its parent."""


def parse_protobuf(body: bytes) -> dict[str, Any]:
    """The document in ``body``; ``MalformedBodyError`` if it is none, or of a kind that nobody knows here."""
    if body[:4] != MAGIC:
        raise MalformedBodyError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version = kind = ""
    raw = b""
    for number, value in _fields(body[4:]):
        if number == 1 and isinstance(value, bytes):
            names = {inner: _text(text) for inner, text in _fields(value)}
            api_version, kind = names.get(1, ""), names.get(2, "")
        elif number == 2 and isinstance(value, bytes):
            raw = value
        elif number == 3 and value:
            raise MalformedBodyError("a protobuf body with an encoding of its own")
    group, _, version = api_version.rpartition("/")
    field = find(group, version, kind)
    if field is None or field.struct is None:
        raise MalformedBodyError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **_message(field.struct, raw, 0)}


@cache
def _numbers(of: Struct) -> _Numbers:
    found: _Numbers = {}
    for field in of.fields.values():
        at = found
        *outer, last = field.number
        for number in outer:
            at = at.setdefault(number, {})
        at[last] = field
    return found


def _message(of: Struct, raw: bytes, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    _into(found, _numbers(of), raw, depth)
    return found


def _into(found: dict[str, Any], numbers: _Numbers, raw: bytes, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise MalformedBodyError("exceeded max depth")
    for number, value in _fields(raw):
        known = numbers.get(number)
        if isinstance(known, dict):
            _into(found, known, _bytes(value), depth + 1)
        elif known is None:
            continue  # a newer client's field
        elif known.kind == ARRAY:
            found.setdefault(known.name, []).append(_value(known.item, value, depth))
        elif known.kind == MAP:
            key, inner = _entry(known.item, _bytes(value), depth)
            found.setdefault(known.name, {})[key] = inner
        else:
            found[known.name] = _value(known, value, depth)


def _entry(item: Field, raw: bytes, depth: int) -> tuple[str, Any]:
    key, value = "", None
    for number, part in _fields(raw):
        if number == 1:
            key = _text(part)
        elif item.kind == ARRAY:  # a list in a map is a message with the list in it
            assert item.item is not None
            value = [_value(item.item, element, depth) for _, element in _fields(_bytes(part))]
        else:
            value = _value(item, part, depth)
    return key, value


def _value(field: Field, value: Any, depth: int) -> Any:
    match field.kind:
        case k if k == STRING:
            return _text(value)
        case k if k in (INT32, INT64):
            return _signed(value)
        case k if k == BOOL:
            return bool(_signed(value))
        case k if k == FLOAT:
            return struct.unpack("<d", value)[0] if isinstance(value, bytes) and len(value) == 8 else 0.0
        case k if k == QUANTITY:
            return next((_text(text) for number, text in _fields(_bytes(value)) if number == 1), "0")
        case k if k in (TIME, MICRO_TIME):
            return _time(_bytes(value), k == MICRO_TIME)
        case k if k == INT_OR_STRING:
            parts = dict(_fields(_bytes(value)))
            return _text(parts.get(3, b"")) if parts.get(1, 0) else _signed(parts.get(2, 0))
        case k if k == BYTES:
            return base64.b64encode(_bytes(value)).decode()
        case k if k == STRUCT:
            assert field.struct is not None
            return _message(field.struct, _bytes(value), depth + 1)
        case k:
            assert k == ANY, k
            raise MalformedBodyError(f"the field {field.name} is not accepted in protobuf")


def _time(raw: bytes, micro: bool) -> str | None:
    parts = dict(_fields(raw))
    if not parts:
        return None
    try:
        moment = _EPOCH + timedelta(seconds=_signed(parts.get(1, 0)), microseconds=_signed(parts.get(2, 0)) // 1000)
    except OverflowError as why:
        raise MalformedBodyError("a time beyond the year 9999") from why
    return f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}" if micro else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


# ---------------------------------------------------------------- wire format


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value): an unsigned integer for a varint, else bytes."""
    at, end = 0, len(raw)
    while at < end:
        tag, at = _varint(raw, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(raw, at)
            yield number, value
            continue
        if kind == _LENGTH:
            size, at = _varint(raw, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise MalformedBodyError(f"proto: illegal wireType {kind}")
        if size > end - at:
            raise MalformedBodyError("unexpected EOF")
        yield number, raw[at : at + size]
        at += size


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(raw):
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise MalformedBodyError("proto: integer overflow")
    raise MalformedBodyError("unexpected EOF")


def _signed(value: Any) -> int:
    if not isinstance(value, int):
        raise MalformedBodyError("proto: wrong wireType for an integer")
    return value - (1 << 64) if value >= 1 << 63 else value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise MalformedBodyError("proto: wrong wireType for a message")
    return value


def _text(value: Any) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as why:
        raise MalformedBodyError("proto: a string that is no UTF-8") from why
