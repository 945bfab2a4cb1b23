"""The functions that rules may call: CEL's own, its string, list and set extensions, and Kubernetes' (quantities, addresses, URLs,
named formats). Missing of what v1.37 knows: ``semver``, ``authorizer`` (which no custom kind has), and time zones by name.

A function is a line of ``_SIGNATURES``: a signature, what carries it out, and what it costs. In signatures ``A`` and ``B``
stand for any one type each.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import msgspec

from elbowroom.api.quantity import Quantity
from elbowroom.apiserver.definitions.cel import functions, types
from elbowroom.apiserver.definitions.cel.operators import (
    NONE,
    MapList,
    Optional,
    SetList,
    Span,
    Time,
    as_text,
    contains,
    moment,
    span_of,
    time_of,
    type_name,
)
from elbowroom.apiserver.definitions.cel.types import Type


@dataclass(frozen=True, slots=True)
class Function:
    """One overload. ``parameters`` begin with the target of a member."""

    name: str
    is_member: bool
    parameters: tuple[Type, ...]
    result: Type
    run: Callable[..., Any]
    cost: Callable[[Sequence[Any]], int]


# ---------------------------------------------------------------- what calls cost


def size_of(value: Any) -> int:
    """How large a value is, for costs."""
    return len(value) if isinstance(value, str | bytes | list | dict) else 1


def _one(arguments: Sequence[Any]) -> int:
    return 1


def _text(arguments: Sequence[Any]) -> int:
    return 1 + size_of(arguments[0]) // 10


def _texts(arguments: Sequence[Any]) -> int:
    return 1 + sum(size_of(one) for one in arguments) // 5


def _each(arguments: Sequence[Any]) -> int:
    return 1 + sum(1 + size_of(one) // 10 for one in arguments[0]) if isinstance(arguments[0], list) else _text(arguments)


def _square(arguments: Sequence[Any]) -> int:
    return 1 + size_of(arguments[0]) * max(1, size_of(arguments[-1]))


def _regex(arguments: Sequence[Any]) -> int:
    return (1 + (1 + size_of(arguments[0])) // 10) * (1 + size_of(arguments[1]) // 4)


# ---------------------------------------------------------------- the table

_SIGNATURES: list[tuple[str, Callable[..., Any], Callable[[Sequence[Any]], int]]] = [
    *((f"size({kind}) -> int", len, _one) for kind in ("string", "bytes", "list(A)", "map(A, B)")),
    *((f"{kind}.size() -> int", len, _one) for kind in ("string", "bytes", "list(A)", "map(A, B)")),
    *((f"int({kind}) -> int", functions.as_int, _one) for kind in ("int", "uint", "double", "string", "timestamp", "duration")),
    *((f"uint({kind}) -> uint", functions.as_uint, _one) for kind in ("uint", "int", "double", "string")),
    *((f"double({kind}) -> double", functions.as_double, _one) for kind in ("double", "int", "uint", "string")),
    *(
        (f"string({kind}) -> string", as_text, _text)
        for kind in ("string", "bool", "int", "uint", "double", "bytes", "timestamp", "duration", "url", "ip")
    ),
    ("string(cidr) -> string", lambda one: f"{one.address}/{one.network.prefixlen}", _one),
    *((f"bool({kind}) -> bool", functions.as_bool, _one) for kind in ("bool", "string")),
    *((f"bytes({kind}) -> bytes", functions.as_bytes, _text) for kind in ("bytes", "string")),
    *((f"duration({kind}) -> duration", functions.as_duration, _one) for kind in ("duration", "string")),
    *((f"timestamp({kind}) -> timestamp", functions.as_timestamp, _one) for kind in ("timestamp", "string")),
    ("timestamp(int) -> timestamp", lambda seconds: moment(seconds * 10**9), _one),
    ("dyn(A) -> dyn", lambda one: one, _one),
    ("type(A) -> type", lambda one: functions.TypeName(type_name(one)), _one),
    ("string.contains(string) -> bool", lambda text, part: part in text, _texts),
    ("string.startsWith(string) -> bool", str.startswith, _text),
    ("string.endsWith(string) -> bool", str.endswith, _text),
    ("string.matches(string) -> bool", lambda text, wanted: functions.pattern(wanted).search(text) is not None, _regex),
    ("matches(string, string) -> bool", lambda text, wanted: functions.pattern(wanted).search(text) is not None, _regex),
    ("string.find(string) -> string", functions.first_match, _regex),
    ("string.findAll(string) -> list(string)", functions.all_matches, _regex),
    ("string.findAll(string, int) -> list(string)", functions.all_matches, _regex),
    ("string.charAt(int) -> string", functions.char_at, _one),
    ("string.indexOf(string) -> int", functions.index_of, _texts),
    ("string.indexOf(string, int) -> int", functions.index_of, _texts),
    ("string.lastIndexOf(string) -> int", functions.last_index_of, _texts),
    ("string.lastIndexOf(string, int) -> int", functions.last_index_of, _texts),
    ("string.lowerAscii() -> string", lambda text: text.translate(functions.ASCII_LOWER), _text),
    ("string.upperAscii() -> string", lambda text: text.translate(functions.ASCII_UPPER), _text),
    ("string.replace(string, string) -> string", functions.replaced, _texts),
    ("string.replace(string, string, int) -> string", functions.replaced, _texts),
    ("string.split(string) -> list(string)", functions.split, _texts),
    ("string.split(string, int) -> list(string)", functions.split, _texts),
    ("string.substring(int) -> string", functions.substring, _text),
    ("string.substring(int, int) -> string", functions.substring, _text),
    ("string.trim() -> string", str.strip, _text),
    ("string.format(list(dyn)) -> string", functions.formatted, _texts),
    ("strings.quote(string) -> string", lambda text: msgspec.json.encode(text).decode(), _text),
    ("list(string).join() -> string", "".join, _each),
    ("list(string).join(string) -> string", lambda items, between: between.join(items), _each),
    ("list(A).isSorted() -> bool", functions.is_sorted, _each),
    ("list(A).sum() -> A", functions.total, _each),
    ("list(A).min() -> A", functions.best("min", -1), _each),
    ("list(A).max() -> A", functions.best("max", 1), _each),
    ("list(A).indexOf(A) -> int", functions.place_of, _each),
    ("list(A).lastIndexOf(A) -> int", functions.last_place_of, _each),
    ("list(A).slice(int, int) -> list(A)", functions.sliced, _each),
    ("list(A).flatten() -> list(dyn)", functions.flattened, _each),
    ("list(A).flatten(int) -> list(dyn)", functions.flattened, _each),
    ("list(A).distinct() -> list(A)", functions.distinct, lambda given: 1 + len(given[0]) ** 2),
    ("list(A).sort() -> list(A)", functions.in_order, lambda given: 1 + len(given[0]) ** 2),
    ("list(A).reverse() -> list(A)", lambda items: list(reversed(items)), _each),
    ("lists.range(int) -> list(int)", lambda count: list(range(count)), lambda given: max(1, given[0])),
    ("sets.contains(list(A), list(A)) -> bool", lambda items, wanted: all(contains(items, one) for one in wanted), _square),
    ("sets.equivalent(list(A), list(A)) -> bool", functions.equivalent, _square),
    ("sets.intersects(list(A), list(A)) -> bool", lambda items, wanted: any(contains(items, one) for one in wanted), _square),
    ("quantity(string) -> quantity", functions.as_quantity, _text),
    ("isQuantity(string) -> bool", functions.parses(functions.as_quantity), _text),
    ("quantity.sign() -> int", lambda one: (one.nanos > 0) - (one.nanos < 0), _one),
    ("quantity.isInteger() -> bool", lambda one: one.nanos % 10**9 == 0 and abs(one.nanos) < 10**9 << 63, _one),
    ("quantity.asInteger() -> int", functions.as_integer, _one),
    ("quantity.asApproximateFloat() -> double", lambda one: one.nanos / 10**9, _one),
    ("quantity.isGreaterThan(quantity) -> bool", lambda one, other: one > other, _one),
    ("quantity.isLessThan(quantity) -> bool", lambda one, other: one < other, _one),
    ("quantity.compareTo(quantity) -> int", lambda one, other: (one > other) - (one < other), _one),
    ("quantity.add(quantity) -> quantity", lambda one, other: one + other, _one),
    ("quantity.add(int) -> quantity", lambda one, more: one + Quantity(more * 10**9), _one),
    ("quantity.sub(quantity) -> quantity", lambda one, other: one - other, _one),
    ("quantity.sub(int) -> quantity", lambda one, less: one - Quantity(less * 10**9), _one),
    ("url(string) -> url", functions.as_url, _text),
    ("isURL(string) -> bool", functions.parses(functions.as_url), _text),
    ("url.getScheme() -> string", lambda one: one.scheme, _one),
    ("url.getHost() -> string", functions.host, _one),
    ("url.getHostname() -> string", functions.hostname, _one),
    ("url.getPort() -> string", functions.port, _one),
    ("url.getEscapedPath() -> string", lambda one: one.path, _one),
    ("url.getQuery() -> map(string, list(string))", lambda one: parse_qs(one.query, keep_blank_values=True), _one),
    ("ip(string) -> ip", functions.as_ip, _text),
    ("isIP(string) -> bool", functions.parses(functions.as_ip), _text),
    ("ip.isCanonical(string) -> bool", lambda text: str(functions.as_ip(text)) == text, _text),
    ("ip.family() -> int", lambda one: one.version, _one),
    ("ip.isUnspecified() -> bool", lambda one: one.is_unspecified, _one),
    ("ip.isLoopback() -> bool", lambda one: one.is_loopback, _one),
    ("ip.isLinkLocalUnicast() -> bool", lambda one: one.is_link_local, _one),
    ("ip.isLinkLocalMulticast() -> bool", lambda one: one.is_multicast and functions.is_link_local_multicast(one), _one),
    ("ip.isGlobalUnicast() -> bool", functions.is_global, _one),
    ("cidr(string) -> cidr", functions.as_cidr, _text),
    ("isCIDR(string) -> bool", functions.parses(functions.as_cidr), _text),
    ("cidr.ip() -> ip", lambda one: one.address, _one),
    ("cidr.prefixLength() -> int", lambda one: one.network.prefixlen, _one),
    ("cidr.masked() -> cidr", lambda one: functions.Cidr(one.network.network_address, one.network), _one),
    ("cidr.containsIP(ip) -> bool", lambda one, other: other in one.network, _one),
    ("cidr.containsIP(string) -> bool", lambda one, other: functions.as_ip(other) in one.network, _text),
    ("cidr.containsCIDR(cidr) -> bool", functions.contains_network, _one),
    ("cidr.containsCIDR(string) -> bool", lambda one, other: functions.contains_network(one, functions.as_cidr(other)), _text),
    *((f"format.{name}() -> format", partial(functions.Named, name), _one) for name in functions.NAMES),
    ("format.named(string) -> optional(format)", functions.named, _one),
    ("format.validate(string) -> optional(list(string))", functions.validated, _texts),
    ("optional.none() -> optional(A)", lambda: NONE, _one),
    ("optional.of(A) -> optional(A)", Optional, _one),
    ("optional.ofNonZeroValue(A) -> optional(A)", lambda one: Optional(one) if one or isinstance(one, Time) else NONE, _one),
    ("optional(A).hasValue() -> bool", lambda one: one.is_there, _one),
    ("optional(A).value() -> A", lambda one: functions.value_of(one), _one),
    ("optional(A).orValue(A) -> A", lambda one, otherwise: one.value if one.is_there else otherwise, _one),
    ("optional(A).or(optional(A)) -> optional(A)", lambda one, other: one if one.is_there else other, _one),
    *(
        (f"timestamp.{name}({zone}) -> int", functions.part_of_time(read), _one)
        for name, read in functions.TIME_PARTS.items()
        for zone in ("", "string")
    ),
    *((f"duration.{name}() -> int", partial(functions.whole_units, unit), _one) for name, unit in functions.SPAN_PARTS.items()),
]


# ---------------------------------------------------------------- signatures

_SHORT = {
    "quantity": types.QUANTITY,
    "url": types.URL,
    "ip": types.IP,
    "cidr": types.CIDR,
    "format": Type("kubernetes.NamedFormat"),
}
_SPACES = ("strings", "lists", "sets", "optional", "format", "ip")
"""What functions are named with that have no target: ``sets.contains(a, b)``."""


def _split_types(text: str) -> list[str]:
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append(text[start:place].strip())
            start = place + 1
    return [one for one in (*found, text[start:].strip()) if one]


def read_type(text: str) -> Type:
    name, has_parts, parts = text.partition("(")
    if has_parts:
        name = {"optional": "optional_type"}.get(name, name)
        return Type(name, tuple(read_type(one) for one in _split_types(parts[:-1])))
    return _SHORT.get(name) or Type(name)


def _read(signature: str, run: Callable[..., Any], cost: Callable[[Sequence[Any]], int]) -> Function:
    head, _, result = signature.partition(" -> ")
    opened, depth = len(head) - 1, 1
    while depth:
        opened -= 1
        depth += (head[opened] == ")") - (head[opened] == "(")
    called, parameters = head[:opened], tuple(read_type(one) for one in _split_types(head[opened + 1 : -1]))
    target, _, name = called.rpartition(".")
    if target and (target not in _SPACES or called in _MEMBERS_OF_SPACES):
        return Function(name, True, (read_type(target), *parameters), read_type(result), run, cost)
    return Function(called, False, parameters, read_type(result), run, cost)


_MEMBERS_OF_SPACES = frozenset(
    {"ip.family", "ip.isUnspecified", "ip.isLoopback", "ip.isLinkLocalUnicast", "ip.isLinkLocalMulticast", "ip.isGlobalUnicast"}
    | {"format.validate"}
)


def _table() -> dict[tuple[str, bool], list[Function]]:
    made: dict[tuple[str, bool], list[Function]] = {}
    for line in _SIGNATURES:
        function = _read(*line)
        made.setdefault((function.name, function.is_member), []).append(function)
    return made


FUNCTIONS: Mapping[tuple[str, bool], Sequence[Function]] = _table()
"""By name and whether it has a target."""


def fits(wanted: Type, value: Any) -> bool:
    """Is a value of such a type, as far as it shows?"""
    match wanted.name:
        case "A" | "B" | "dyn":
            return True
        case "list":
            return isinstance(value, list)
        case "map":
            return isinstance(value, dict)
        case "optional_type":
            return isinstance(value, Optional)
        case "timestamp":
            return isinstance(value, Time)
        case "duration":
            return isinstance(value, Span)
        case "net.CIDR":
            return isinstance(value, functions.Cidr)
        case "kubernetes.NamedFormat":
            return isinstance(value, functions.Named)
        case name:
            return type_name(value) == name
    raise AssertionError("every case returns")


# ---------------------------------------------------------------- values of objects


def of_field(value: Any, schema: Mapping[str, Any] | None) -> Any:
    """A JSON value as rules see it: times, durations and bytes for texts of those formats, lists that know their type."""
    if schema is None or value is None:
        return value
    match value:
        case str() if schema.get("type") == "string":
            return _of_text(value, schema.get("format", ""))
        case bool():
            return value
        case int() if schema.get("type") == "number":
            return float(value)
        case list():
            items = schema.get("items")
            made = [of_field(item, items) for item in value]
            match schema.get("x-kubernetes-list-type"):
                case "set":
                    return SetList(made)
                case "map":
                    return MapList(made, tuple(schema.get("x-kubernetes-list-map-keys") or ()))
            return made
        case dict():
            named, more = schema.get("properties") or {}, schema.get("additionalProperties")
            otherwise = more if isinstance(more, dict) else None
            return {name: of_field(inner, named.get(name, otherwise)) for name, inner in value.items()}
    return value


def _of_text(value: str, form: str) -> Any:
    match form:
        case "byte":
            try:
                return base64.b64decode(value, validate=True)
            except ValueError:
                return value
        case "date":
            return time_of(value, date_only=True) or value
        case "date-time":
            return time_of(value) or value
        case "duration":
            return span_of(value) or value
    return value
