"""YAML as Go's loader (go.yaml.in/yaml/v2 under sigs.k8s.io/yaml) reads it: its values, its limits and its words.

libyaml makes the events: Go's loader was made from it by hand. What a plain word means is Go's choice: ``y`` and ``off`` are
booleans, ``0o17`` and ``1e3`` numbers, ``12:30`` and a date strings.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import yaml
from yaml.reader import ReaderError
from yaml.scanner import ScannerError

from elbowroom.apiserver.schema.bodies import DEPTH_MAX, Literal, MalformedBodyError, Parsed

BYTES_MAX = 256 * 1024
NODES_MAX = 200_000
"""Values that aliases may multiply a document to; upstream's bound is four million, and a ratio."""

_TAGS = "tag:yaml.org,2002:"
_STR, _BINARY, _NULL, _FLOAT, _INT, _BOOL = (_TAGS + name for name in ("str", "binary", "null", "float", "int", "bool"))
_TIMESTAMP, _MERGE = _TAGS + "timestamp", _TAGS + "merge"
_RESOLVABLE = ("", _STR, _BOOL, _INT, _FLOAT, _NULL, _TIMESTAMP)
_WORDS: Mapping[str, tuple[str, Any]] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], (_BOOL, True)),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], (_BOOL, False)),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], (_NULL, None)),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], (_FLOAT, float("nan"))),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], (_FLOAT, float("inf"))),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], (_FLOAT, float("-inf"))),
}
_FIRST = frozenset("+-0123456789yYnNtTfFoO~.")
_INTEGER = re.compile(r"([-+]?)(?:0[bB]([01]+)|0[oO]([0-7]+)|0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))", re.ASCII)
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})"
    r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?)?",
    re.ASCII,
)


class _Node(NamedTuple):
    """``value`` is the text of a scalar, the children of a sequence, those of a mapping in turn, or the alias' node."""

    kind: str
    line: int
    tag: str
    plain: bool
    value: Any


def parse_yaml(body: bytes) -> Parsed:
    """The first document in a YAML body, JSON-shaped; ``MalformedBodyError`` if it is none or too big."""
    if len(body) > BYTES_MAX:
        raise MalformedBodyError(f"yaml: the body is larger than {BYTES_MAX} bytes")
    try:
        root = _Composer(body).root()
    except yaml.MarkedYAMLError as why:
        raise MalformedBodyError(f"yaml: {_where(why)}{why.problem}") from why
    except ReaderError as why:
        raise MalformedBodyError(f"yaml: {why.reason}") from why
    except yaml.YAMLError as why:
        raise MalformedBodyError(f"yaml: {why}") from why
    if root is None:
        return Parsed(None, [])
    decoder = _Decoder()
    value = _json(decoder.decode(root))
    lines = "".join(f"\n  {line}" for line in decoder.repeated)
    return Parsed(value, [], f"yaml: unmarshal errors:{lines}" if lines else "")


def _where(why: yaml.MarkedYAMLError) -> str:
    """Go's loader counts from 1 what its scanner finds, and the rest from 0, which it does not show."""
    line = why.problem_mark.line if why.problem_mark is not None else 0
    if line:
        line += isinstance(why, ScannerError)
    elif why.context_mark is not None:
        line = why.context_mark.line
    return f"line {line}: " if line else ""


def _failed(text: str) -> MalformedBodyError:
    return MalformedBodyError(f"yaml: {text}")


# ---------------------------------------------------------------- nodes


class _Composer:
    """The nodes of a document, each alias still an alias."""

    def __init__(self, body: bytes) -> None:
        self._events: Iterator[yaml.Event] = iter(yaml.parse(body, yaml.CSafeLoader))
        self._anchors: dict[str, list[_Node]] = {}

    def root(self) -> _Node | None:
        """That of the first document; what comes after it counts for nothing, and is not read."""
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                node = self._node(next(self._events), 0)
                next(self._events)
                return node
        return None

    def _node(self, event: Any, depth: int) -> _Node:
        if depth > DEPTH_MAX:
            raise MalformedBodyError("exceeded max depth")
        line, anchor = event.start_mark.line, event.anchor
        if isinstance(event, yaml.AliasEvent):
            if anchor not in self._anchors:
                raise _failed(f"unknown anchor '{anchor}' referenced")
            return _Node("alias", line, "", False, (anchor, self._anchors[anchor]))
        place: list[_Node] = []
        if anchor is not None:
            self._anchors[anchor] = place
        tag = event.tag or ""
        if isinstance(event, yaml.ScalarEvent):
            node = _Node("scalar", line, tag, event.implicit[0], event.value)
        else:
            children: list[_Node] = []
            kind = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
            while not isinstance(inner := next(self._events), yaml.CollectionEndEvent):
                children.append(self._node(inner, depth + 1))
            node = _Node(kind, line, tag, False, children)
        place.append(node)
        return node


# ---------------------------------------------------------------- values


class _Decoder:
    def __init__(self) -> None:
        self.repeated: list[str] = []
        self._count = self._aliased = 0
        self._open: list[int] = []
        """The aliases that are being decoded, by their identity."""

    def decode(self, node: _Node) -> Any:
        self._count += 1
        self._aliased += bool(self._open)
        if self._aliased > 100 and self._count > 1000 and (self._aliased > 0.99 * self._count or self._count > NODES_MAX):
            raise _failed("document contains excessive aliasing")
        match node.kind:
            case "scalar":
                return self._scalar(node)
            case "seq":
                return [self.decode(child) for child in node.value]
            case "map":
                return self._fill({}, node)
        return self._followed(node, self.decode)

    def _followed(self, alias: _Node, decode: Callable[[_Node], Any]) -> Any:
        name, place = alias.value
        if id(alias) in self._open:
            raise _failed(f"anchor '{name}' value contains itself")
        if len(self._open) > DEPTH_MAX:
            raise MalformedBodyError("exceeded max depth")
        self._open.append(id(alias))
        made = decode(place[0])
        self._open.pop()
        return made

    def _scalar(self, node: _Node) -> Any:
        if not node.tag and not node.plain:
            return node.value
        tag, value = _resolved(node.tag, node.value)
        if tag == _BINARY:
            try:
                return base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True).decode(errors="replace")
            except (binascii.Error, ValueError) as why:
                raise _failed("!!binary value contains invalid base64 data") from why
        return value

    def _fill(self, made: dict[Any, Any], node: _Node) -> dict[Any, Any]:
        for name, inner in zip(node.value[::2], node.value[1::2], strict=True):
            if name.kind == "scalar" and name.value == "<<" and (name.plain or name.tag == _MERGE):
                self._merge(made, inner)
                continue
            key = self.decode(name)
            if isinstance(key, dict | list):
                raise _failed(f"invalid map key: {_go(key)}")
            value = self.decode(inner)
            place = (type(key), key)
            if place in made:
                self.repeated.append(f"line {inner.line + 1}: key {_go(key)} already set in map")
            made[place] = value
        return made

    def _merge(self, made: dict[Any, Any], node: _Node) -> None:
        parts = reversed(node.value) if node.kind == "seq" else [node]
        for part in parts:
            target = part.value[1][0] if part.kind == "alias" else part
            if target.kind != "map":
                raise _failed("map merge requires map or sequence of maps as the value")
            if part.kind == "alias":
                self._followed(part, lambda found: self._fill(made, found))
            else:
                self._fill(made, part)


def _resolved(tag: str, text: str) -> tuple[str, Any]:
    """The tag and the value of a scalar."""
    if tag not in _RESOLVABLE:
        return tag, text
    found, value = _guessed(tag, text) if tag != _STR else (_STR, text)
    if tag in ("", found, _STR):
        return found, value
    if tag == _FLOAT and found == _INT:
        return tag, _float(float(value))
    short = [name.replace(_TAGS, "!!") for name in (found, tag)]
    raise _failed(f"cannot decode {short[0]} `{text}` as a {short[1]}")


def _guessed(tag: str, text: str) -> tuple[str, Any]:
    if text and text[0] not in _FIRST:
        return _STR, text
    if text in _WORDS:
        return _WORDS[text]
    if not text or text[0] not in "+-.0123456789":
        return _STR, text
    if text[0] == ".":
        return _fraction(text) or (_STR, text)
    if tag in ("", _TIMESTAMP) and _DATE.fullmatch(text):
        return _TIMESTAMP, text
    bare = text.replace("_", "")
    integer = _INTEGER.fullmatch(bare)
    if integer is not None:
        sign, *digits = integer.groups()
        number = next(int(found, base) for found, base in zip(digits, (2, 8, 16, 8, 10), strict=True) if found is not None)
        number = -number if sign == "-" else number
        if -(1 << 63) <= number < (1 << 63 if sign else 1 << 64):
            return _INT, number
    return _fraction(bare) or (_STR, text)


def _fraction(text: str) -> tuple[str, Any] | None:
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return None if number in (float("inf"), float("-inf")) else (_FLOAT, _float(number))


def _float(number: float) -> int | float:
    """As it stands in JSON: written by Go, and read again."""
    if number != number or number in (float("inf"), float("-inf")):
        return number
    if number != 0 and not 1e-6 <= abs(number) < 1e21:
        digits, _, exponent = repr(number).partition("e")
        return Literal(f"{digits}e{exponent[0]}{exponent[1:].lstrip('0')}")
    text = f"{Decimal(repr(number)):f}".removesuffix(".0")
    return int(text) if -(1 << 63) <= number < 1 << 63 and "." not in text and text != "-0" else Literal(text)


# ---------------------------------------------------------------- JSON


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {_name(key, inner): _json(inner) for (_, key), inner in value.items()}
    if isinstance(value, list):
        return [_json(inner) for inner in value]
    if isinstance(value, float) and not isinstance(value, Literal):
        raise MalformedBodyError(f"json: unsupported value: {_special(value, ('NaN', '+Inf', '-Inf'))}")
    return value


def _special(value: float, words: tuple[str, str, str]) -> str:
    return words[0] if value != value else words[1] if value > 0 else words[2]


def _name(key: Any, value: Any) -> str:
    """A key of an object: numbers and booleans serve as strings."""
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float):
        return key.text if isinstance(key, Literal) else _special(key, (".nan", ".inf", "-.inf"))
    if isinstance(key, str) or (isinstance(key, int) and key < 1 << 63):
        return str(key)
    kind, shown = ("%!s(<nil>)", "<nil>") if key is None else ("uint64", f"{key:#x}")
    raise MalformedBodyError(f"unsupported map key of type: {kind}, key: {shown}, value: {_go(value)}")


def _go(value: Any) -> str:
    """A value as Go's ``%#v`` writes it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_go(inner) if inner is not None else "interface {}(nil)" for inner in value) + "}"
    if isinstance(value, dict):
        pairs = (f"{_go(key)}:{_go(inner) if inner is not None else 'interface {}(nil)'}" for (_, key), inner in value.items())
        return "map[interface {}]interface {}{" + ", ".join(sorted(pairs)) + "}"
    return str(value)
