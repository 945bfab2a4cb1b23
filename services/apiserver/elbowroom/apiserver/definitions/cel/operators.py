"""Values while a rule runs, how they are compared, and what operators make of them.

Numbers of any kind compare by their amount, and everything else with its own kind only; whole numbers have 64 bits. ``CelError`` is
an outcome: ``&&`` and ``||`` absorb it where the other side decides.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any
from urllib.parse import SplitResult

from elbowroom.api.quantity import Quantity
from elbowroom.apiserver.definitions.cel.syntax import UInt
from elbowroom.apiserver.gotext import go_text


class CelError(Exception):
    """The expression has no value, for this reason."""


@dataclass(frozen=True, slots=True)
class Time:
    """A moment, in nanoseconds since 1970."""

    ns: int


@dataclass(frozen=True, slots=True)
class Span:
    """A duration, in nanoseconds."""

    ns: int


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent."""

    value: Any = None
    is_there: bool = True


NONE = Optional(None, False)


class SetList(list[Any]):
    """A list of type ``set``: the order does not count."""


class MapList(list[Any]):
    """A list of type ``map``: its elements are known by their keys, the order does not count."""

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys


def type_name(value: Any) -> str:
    """A value's type as cel-go calls it."""
    match value:
        case None:
            return "null_type"
        case bool():
            return "bool"
        case int():
            return "int"
        case UInt():
            return "uint"
        case float():
            return "double"
        case str():
            return "string"
        case bytes():
            return "bytes"
        case list():
            return "list"
        case dict():
            return "map"
        case Time():
            return "google.protobuf.Timestamp"
        case Span():
            return "google.protobuf.Duration"
        case Optional():
            return "optional_type"
        case Quantity():
            return "kubernetes.Quantity"
        case SplitResult():
            return "kubernetes.URL"
        case IPv4Address() | IPv6Address():
            return "net.IP"
        case IPv4Network() | IPv6Network():
            return "net.CIDR"
        case _:
            return "type"


def no_overload() -> CelError:
    return CelError("no such overload")


# ---------------------------------------------------------------- numbers

_INT = (-(1 << 63), (1 << 63) - 1)
_UINT = (0, (1 << 64) - 1)
_TIME = (-62_135_596_800 * 10**9, 253_402_300_799 * 10**9 + 999_999_999)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | UInt) and not isinstance(value, bool)


def amount(value: Any) -> int | float:
    """A number's amount."""
    return value.value if isinstance(value, UInt) else value


def whole(value: int) -> int:
    """A signed number of 64 bits."""
    if not _INT[0] <= value <= _INT[1]:
        raise CelError("integer overflow")
    return value


def unsigned(value: int) -> UInt:
    """An unsigned number of 64 bits."""
    if not _UINT[0] <= value <= _UINT[1]:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def moment(ns: int) -> Time:
    """A time between the years 1 and 9999."""
    if not _TIME[0] <= ns <= _TIME[1]:
        raise CelError("timestamp overflow")
    return Time(ns)


def span(ns: int) -> Span:
    """A duration of 64 bits."""
    if not _INT[0] <= ns <= _INT[1]:
        raise CelError("duration overflow")
    return Span(ns)


# ---------------------------------------------------------------- comparing


def equal(left: Any, right: Any) -> bool:
    """Are two values the same?"""
    if is_number(left) and is_number(right):
        return amount(left) == amount(right)
    if isinstance(left, list) and isinstance(right, list):
        if isinstance(left, SetList | MapList):
            return (
                len(left) == len(right) and all(contains(right, one) for one in left) and all(contains(left, one) for one in right)
            )
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(key in right and equal(value, right[key]) for key, value in left.items())
    if isinstance(left, Optional) and isinstance(right, Optional):
        return left.is_there == right.is_there and (not left.is_there or equal(left.value, right.value))
    return type(left) is type(right) and bool(left == right)


def contains(values: list[Any], wanted: Any) -> bool:
    return any(equal(wanted, one) for one in values)


def compared(left: Any, right: Any) -> int:
    """-1, 0 or 1; ``CelError`` for what has no order."""
    a: Any
    b: Any
    if is_number(left) and is_number(right):
        a, b = amount(left), amount(right)
        if (isinstance(a, float) and math.isnan(a)) or (isinstance(b, float) and math.isnan(b)):
            raise CelError("NaN values cannot be ordered")
    elif type(left) is type(right) and isinstance(left, str | bytes | bool):
        a, b = left, right
    elif type(left) is type(right) and isinstance(left, Time | Span):
        a, b = left.ns, right.ns
    else:
        raise no_overload()
    return int(a > b) - int(a < b)


# ---------------------------------------------------------------- arithmetic


def added(left: Any, right: Any) -> Any:
    match left, right:
        case (bool(), _) | (_, bool()):
            raise no_overload()
        case int(), int():
            return whole(left + right)
        case UInt(), UInt():
            return unsigned(left.value + right.value)
        case float(), float():
            return left + right
        case str(), str():
            return left + right
        case bytes(), bytes():
            return left + right
        case list(), list():
            return _joined(left, right)
        case Time(), Span():
            return moment(left.ns + right.ns)
        case Span(), Time():
            return moment(left.ns + right.ns)
        case Span(), Span():
            return span(left.ns + right.ns)
    raise no_overload()


def _joined(left: list[Any], right: list[Any]) -> list[Any]:
    if isinstance(left, SetList):
        return SetList([*left, *(one for one in right if not contains(left, one))])
    if isinstance(left, MapList):
        made, places = list(left), [[one.get(key) for key in left.keys] for one in left]
        for one in right:
            here = [one.get(key) for key in left.keys]
            if here in places:
                made[places.index(here)] = one
            else:
                made.append(one)
                places.append(here)
        return MapList(made, left.keys)
    return [*left, *right]


def subtracted(left: Any, right: Any) -> Any:
    match left, right:
        case (bool(), _) | (_, bool()):
            raise no_overload()
        case int(), int():
            return whole(left - right)
        case UInt(), UInt():
            return unsigned(left.value - right.value)
        case float(), float():
            return left - right
        case Time(), Time():
            return span(left.ns - right.ns)
        case Time(), Span():
            return moment(left.ns - right.ns)
        case Span(), Span():
            return span(left.ns - right.ns)
    raise no_overload()


def multiplied(left: Any, right: Any) -> Any:
    match left, right:
        case (bool(), _) | (_, bool()):
            raise no_overload()
        case int(), int():
            return whole(left * right)
        case UInt(), UInt():
            return unsigned(left.value * right.value)
        case float(), float():
            return left * right
    raise no_overload()


def _quotient(left: int, right: int) -> int:
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def divided(left: Any, right: Any) -> Any:
    match left, right:
        case (bool(), _) | (_, bool()):
            raise no_overload()
        case int(), int():
            if not right:
                raise CelError("division by zero")
            return whole(_quotient(left, right))
        case UInt(), UInt():
            if not right.value:
                raise CelError("division by zero")
            return UInt(left.value // right.value)
        case float(), float():
            if right:
                return left / right
            return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
    raise no_overload()


def remainder(left: Any, right: Any) -> Any:
    match left, right:
        case (bool(), _) | (_, bool()):
            raise no_overload()
        case int(), int():
            if not right:
                raise CelError("modulus by zero")
            return left - right * _quotient(left, right)
        case UInt(), UInt():
            if not right.value:
                raise CelError("modulus by zero")
            return UInt(left.value % right.value)
    raise no_overload()


def negated(value: Any) -> Any:
    if isinstance(value, bool):
        raise no_overload()
    if isinstance(value, int):
        return whole(-value)
    if isinstance(value, float):
        return -value
    raise no_overload()


# ---------------------------------------------------------------- times and durations as text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d))?")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def time_of(text: str, *, date_only: bool = False) -> Time | None:
    """An RFC 3339 time, or a date; None if it is none."""
    found = _STAMP.fullmatch(text)
    if found is None or (found[4] is None) != date_only:
        return None
    try:
        day = datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=UTC)
        if date_only:
            return Time((day - _EPOCH) // timedelta(microseconds=1) * 1000)
        at = day.replace(hour=int(found[4]), minute=int(found[5]), second=int(found[6]))
    except ValueError:
        return None
    ns = (at - _EPOCH) // timedelta(seconds=1) * 10**9 + int((found[7] or "0").ljust(9, "0"))
    if found[8] not in "Zz":
        ns -= (1 if found[8][0] == "+" else -1) * (int(found[8][1:3]) * 60 + int(found[8][4:6])) * 60 * 10**9
    return Time(ns)


def span_of(text: str) -> Span | None:
    """A duration as Go writes one (``1h30m``); None if it is none."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return Span(0)
    parts = _PART.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest or len(rest) > 64:
        return None
    ns = sum(Fraction(number if number[-1] != "." else number[:-1]) * _UNITS[unit] for number, unit in parts)
    return Span(sign * int(ns)) if ns < 1 << 63 else None


def calendar(time: Time) -> datetime:
    """A moment as a date, in UTC."""
    return _EPOCH + timedelta(microseconds=time.ns // 1000)


def as_text(value: Any) -> str:
    """What ``string(value)`` gives."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return go_text(value)
        case UInt():
            return str(value.value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
        case Time():
            shown = calendar(value).strftime("%Y-%m-%dT%H:%M:%S").zfill(19)
            fraction = f"{value.ns % 10**9:09d}".rstrip("0")
            return f"{shown}{'.' + fraction if fraction else ''}Z"
        case Span():
            fraction = f"{abs(value.ns) % 10**9:09d}".rstrip("0")
            sign = "-" if value.ns < 0 else ""
            return f"{sign}{abs(value.ns) // 10**9}{'.' + fraction if fraction else ''}s"
        case SplitResult():
            return value.geturl()
        case IPv4Address() | IPv6Address() | IPv4Network() | IPv6Network():
            return str(value)
    raise no_overload()
