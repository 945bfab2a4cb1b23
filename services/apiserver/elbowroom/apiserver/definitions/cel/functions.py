"""What the functions of ``library`` do. Each raises ``CelError`` where cel-go has an error instead of a value."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, urlsplit

from elbowroom.api import quantity
from elbowroom.api.names import dns1035_label, dns1123_label, dns1123_subdomain, label_value, qualified_name
from elbowroom.api.quantity import Quantity, QuantityError
from elbowroom.apiserver.definitions import values
from elbowroom.apiserver.definitions.cel.operators import (
    NONE,
    CelError,
    Optional,
    Span,
    Time,
    added,
    amount,
    as_text,
    calendar,
    compared,
    contains,
    equal,
    is_number,
    moment,
    no_overload,
    span_of,
    time_of,
    type_name,
    unsigned,
    whole,
)
from elbowroom.apiserver.definitions.cel.syntax import UInt
from elbowroom.apiserver.definitions.patterns import compiled

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class TypeName:
    """What ``type(x)`` gives."""

    name: str


@dataclass(frozen=True, slots=True)
class Named:
    """A format by name (``format.dns1123Label()``)."""

    name: str


# ---------------------------------------------------------------- conversions


def as_int(value: Any) -> int:
    match value:
        case bool():
            raise no_overload()
        case int():
            return value
        case UInt(number):
            return whole(number)
        case float():
            if not -(2.0**63) < value < 2.0**63:
                raise CelError("integer overflow")
            return int(value)
        case Time(ns) | Span(ns):
            return ns // 10**9
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,20}", value):
        return whole(int(value))
    raise CelError(f'strconv.ParseInt: parsing "{value}": invalid syntax')


def as_uint(value: Any) -> UInt:
    if isinstance(value, UInt):
        return value
    if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,20}", value):
        raise CelError(f'strconv.ParseUint: parsing "{value}": invalid syntax')
    if isinstance(value, float) and not 0 <= value < 2.0**64:
        raise CelError("unsigned integer overflow")
    return unsigned(int(value))


def as_double(value: Any) -> float:
    if not isinstance(value, str):
        return float(amount(value))
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?|[+-]?(Inf|Infinity)|NaN", value):
        raise CelError(f'strconv.ParseFloat: parsing "{value}": invalid syntax')
    return float(value)


def as_bool(value: Any) -> bool:
    if value is True or value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value is False or value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise CelError(f'strconv.ParseBool: parsing "{value}": invalid syntax')


def as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def as_duration(value: str | Span) -> Span:
    found = value if isinstance(value, Span) else span_of(value)
    if found is None:
        raise CelError(f'time: invalid duration "{value}"')
    return found


def as_timestamp(value: str | Time) -> Time:
    found = value if isinstance(value, Time) else time_of(value)
    if found is None:
        raise CelError(f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    return found


# ---------------------------------------------------------------- texts


def _place(text: Sequence[Any], start: int) -> None:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")


def index_of(text: str, wanted: str, start: int = 0) -> int:
    if wanted == "":
        return start
    _place(text, start)
    return text.find(wanted, start)


def last_index_of(text: str, wanted: str, end: int | None = None) -> int:
    if wanted == "":
        return len(text) if end is None else end
    if end is not None:
        _place(text, end)
    return text.rfind(wanted, 0, len(text) if end is None else end + len(wanted))


def char_at(text: str, place: int) -> str:
    _place(text, place)
    return text[place : place + 1]


def substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= last <= len(text):
        raise CelError(f"index out of range: {last}")
    if start > last:
        raise CelError(f"invalid substring range. start: {start}, end: {last}")
    return text[start:last]


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if limit == 1:
        return [text]
    if separator == "":
        parts = list(text)
        return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def replaced(text: str, old: str, new: str, limit: int = -1) -> str:
    if len(text) * max(1, len(new)) > 10_000_000:
        raise CelError("the result is too long")
    return text.replace(old, new, limit)


ASCII_LOWER = {code: code + 32 for code in range(65, 91)}
ASCII_UPPER = {code: code - 32 for code in range(97, 123)}


def formatted(text: str, arguments: list[Any]) -> str:
    made: list[str] = []
    left = list(arguments)
    last = 0
    for found in re.finditer(r"%(%|(?:\.(\d{1,2}))?([a-zA-Z]))", text):
        made.append(text[last : found.start()])
        last = found.end()
        if found[1] == "%":
            made.append("%")
            continue
        if not left:
            raise CelError(f"index {len(arguments)} out of range")
        made.append(_one_formatted(found[3], left.pop(0), int(found[2] or 6)))
    return "".join(made) + text[last:]


def _one_formatted(clause: str, value: Any, digits: int) -> str:
    number = amount(value) if is_number(value) else None
    match clause:
        case "s":
            return _shown(value)
        case "d" if isinstance(number, int):
            return str(number)
        case "f" if number is not None:
            return f"{number:.{digits}f}"
        case "e" if number is not None:
            return f"{number:.{digits}e}"
        case "x" | "X" | "o" | "b" if isinstance(number, int):
            return format(number, clause)
        case "x" | "X" if isinstance(value, str | bytes):
            shown = (value.encode() if isinstance(value, str) else value).hex()
            return shown if clause == "x" else shown.upper()
    raise CelError(f"error during formatting: %{clause} of {type_name(value)}")


def _shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case list():
            return "[" + ", ".join(map(_shown, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{_shown(key)}: {_shown(value[key])}" for key in sorted(value, key=str)) + "}"
        case TypeName(name):
            return name
    return as_text(value)


@lru_cache(maxsize=256)
def pattern(text: str) -> re.Pattern[str]:
    """A pattern of Go's; ``CelError`` if it is none."""
    try:
        return compiled(text)
    except (re.error, OverflowError, ValueError, RecursionError) as why:
        raise CelError(f"error parsing regexp: {why}") from None


def first_match(text: str, wanted: str) -> str:
    found = pattern(wanted).search(text)
    return found[0] if found is not None else ""


def all_matches(text: str, wanted: str, limit: int = -1) -> list[str]:
    found = [one[0] for one in pattern(wanted).finditer(text)]
    return found if limit < 0 else found[:limit]


# ---------------------------------------------------------------- lists


def is_sorted(items: list[Any]) -> bool:
    return all(compared(a, b) <= 0 for a, b in itertools.pairwise(items))


def total(items: list[Any]) -> Any:
    total: Any = None
    for item in items:
        total = item if total is None else added(total, item)
    return 0 if total is None else total


def best(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def best(items: list[Any]) -> Any:
        if not items:
            raise CelError(f"{name} called on empty list")
        found = items[0]
        for item in items[1:]:
            if compared(item, found) * sign > 0:
                found = item
        return found

    return best


def place_of(items: list[Any], wanted: Any) -> int:
    return next((place for place, item in enumerate(items) if equal(item, wanted)), -1)


def last_place_of(items: list[Any], wanted: Any) -> int:
    return next((place for place in range(len(items) - 1, -1, -1) if equal(items[place], wanted)), -1)


def sliced(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def flattened(items: list[Any], depth: int = 1) -> list[Any]:
    made: list[Any] = []
    for item in items:
        made += flattened(item, depth - 1) if isinstance(item, list) and depth > 0 else [item]
    return made


def distinct(items: list[Any]) -> list[Any]:
    made: list[Any] = []
    for item in items:
        if not contains(made, item):
            made.append(item)
    return made


def in_order(items: list[Any]) -> list[Any]:
    made: list[Any] = []
    for item in items:
        place = next((at for at, one in enumerate(made) if compared(one, item) > 0), len(made))
        made.insert(place, item)
    return made


def equivalent(left: list[Any], right: list[Any]) -> bool:
    return all(contains(right, one) for one in left) and all(contains(left, one) for one in right)


# ---------------------------------------------------------------- quantities, addresses, URLs, formats


def as_quantity(text: str) -> Quantity:
    try:
        return quantity.parse(text)
    except QuantityError as why:
        raise CelError(str(why)) from None


def parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except CelError:
            return False
        return True

    return check


def as_integer(amount_of: Quantity) -> int:
    if amount_of.nanos % 10**9:
        raise CelError("cannot convert value to integer")
    return whole(amount_of.nanos // 10**9)


def as_ip(text: str) -> Address:
    try:
        found = ip_address(text)
    except ValueError:
        raise CelError(f'IP Address "{text}" parse error during conversion from string: not an address') from None
    if isinstance(found, IPv6Address) and (found.ipv4_mapped is not None or found.scope_id is not None):
        kind = "IPv4-mapped IPv6 address is" if found.ipv4_mapped is not None else "IPv6 addresses with zones are"
        raise CelError(f'IP Address "{text}" parse error during conversion from string: {kind} not allowed')
    return found


def _cidr(text: str) -> tuple[Address, Network]:
    address, _, length = text.partition("/")
    if not re.fullmatch("0|[1-9][0-9]{0,2}", length):
        raise CelError(f'network address parse error during conversion from string: "{text}"')
    try:
        return as_ip(address), ip_network(text, strict=False)
    except ValueError:
        raise CelError(f'network address parse error during conversion from string: "{text}"') from None


@dataclass(frozen=True, slots=True)
class Cidr:
    """A network, as the address with which it was written."""

    address: Address
    network: Network


def as_cidr(text: str) -> Cidr:
    return Cidr(*_cidr(text))


def contains_network(mine: Cidr, other: Cidr) -> bool:
    return mine.network.version == other.network.version and mine.network.supernet_of(other.network)  # type: ignore[arg-type]


def is_global(address: Address) -> bool:
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)


def as_url(text: str) -> SplitResult:
    try:
        found = urlsplit(text)
        _ = found.port
    except ValueError:
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid') from None
    if not (found.scheme and re.fullmatch("[a-zA-Z][a-zA-Z0-9+.-]*", found.scheme)) and not text.startswith("/"):
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    if re.search(r"[\x00-\x20\x7f]", text):
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid control character in URL')
    return found


def host(url: SplitResult) -> str:
    return url.netloc.rpartition("@")[2]


def hostname(url: SplitResult) -> str:
    whole = host(url)
    return whole[1:].partition("]")[0] if whole.startswith("[") else whole.partition(":")[0]


def port(url: SplitResult) -> str:
    return host(url).rpartition("]")[2].partition(":")[2] if "[" in host(url) else host(url).partition(":")[2]


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The check of what may stand before a generated name."""
    return lambda text: check(f"{text[:-1]}a" if text.endswith("-") else text)


NAMES: Mapping[str, Callable[[str], list[str]]] = {
    "dns1123Label": dns1123_label,
    "dns1123Subdomain": dns1123_subdomain,
    "dns1035Label": dns1035_label,
    "qualifiedName": qualified_name,
    "labelValue": label_value,
    "dns1123LabelPrefix": _prefix(dns1123_label),
    "dns1123SubdomainPrefix": _prefix(dns1123_subdomain),
    "dns1035LabelPrefix": _prefix(dns1035_label),
    "uri": lambda text: [] if parses(as_url)(text) else ["invalid URI"],
    "uuid": lambda text: [] if values.FORMATS["uuid"](text) else ["does not match the UUID format"],
    "byte": lambda text: [] if values.FORMATS["byte"](text) else ["invalid base64"],
    "date": lambda text: [] if values.FORMATS["date"](text) else ["invalid date"],
    "datetime": lambda text: [] if values.FORMATS["datetime"](text) else ["invalid datetime"],
}


def named(name: str) -> Optional:
    return Optional(Named(name)) if name in NAMES else NONE


def validated(form: Named, text: str) -> Optional:
    found = NAMES[form.name](text)
    return Optional(found) if found else NONE


# ---------------------------------------------------------------- times


def _zoned(time: Time, zone: str = "UTC") -> Time:
    found = re.fullmatch(r"([+-]?)(\d\d):(\d\d)", zone)
    if found is not None:
        return moment(time.ns + (-1 if found[1] == "-" else 1) * (int(found[2]) * 60 + int(found[3])) * 60 * 10**9)
    if zone in ("UTC", "Etc/UTC", "GMT", ""):
        return time
    raise CelError(f"unknown time zone {zone}")


def part_of_time(read: Callable[[Any], int]) -> Callable[..., int]:
    return lambda time, *zone: read(calendar(_zoned(time, *zone)))


def is_link_local_multicast(address: Address) -> bool:
    return address in ip_network("224.0.0.0/24") if isinstance(address, IPv4Address) else address in ip_network("ff02::/16")


def value_of(one: Optional) -> Any:
    if not one.is_there:
        raise CelError("optional.none() dereference")
    return one.value


TIME_PARTS: Mapping[str, Callable[[Any], int]] = {
    "getFullYear": lambda at: at.year,
    "getMonth": lambda at: at.month - 1,
    "getDate": lambda at: at.day,
    "getDayOfMonth": lambda at: at.day - 1,
    "getDayOfWeek": lambda at: at.isoweekday() % 7,
    "getDayOfYear": lambda at: at.timetuple().tm_yday - 1,
    "getHours": lambda at: at.hour,
    "getMinutes": lambda at: at.minute,
    "getSeconds": lambda at: at.second,
    "getMilliseconds": lambda at: at.microsecond // 1000,
}
SPAN_PARTS = {"getHours": 3600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9, "getMilliseconds": 10**6}


def whole_units(unit: int, one: Span) -> int:
    """How many whole units of so many nanoseconds a duration has."""
    return abs(one.ns) // unit * (-1 if one.ns < 0 else 1)
