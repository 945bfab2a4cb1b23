"""Label and field selectors: as text (``app=web,tier!=db,zone in (a,b),!old``), as a view, and what they match.

The grammar and the words of its errors are upstream's (apimachinery labels and fields).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from elbowroom.api.names import label_value, qualified_name
from elbowroom.api.objects import LabelSelector, SelectorRequirement

TEXT_MAX = 64 * 1024


class SelectorError(ValueError):
    """A selector that cannot be understood; ``str()`` is upstream's message."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition. ``operator``: in, notin, =, ==, !=, exists, !, gt, lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        held = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return held is not None and held in self.values
            case "notin" | "!=":
                return held is None or held not in self.values
            case "exists":
                return held is not None
            case "!":
                return held is None
            case _:
                mine, other = _integer(held), _integer(self.values[0])
                if mine is None or other is None:
                    return False
                return mine > other if self.operator == "gt" else mine < other


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements hold. ``EVERYTHING`` has none; ``NOTHING`` matches no labels at all."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def is_empty(self) -> bool:
        """Does it leave nothing out?"""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None


# ---------------------------------------------------------------- views

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


def of_view(selector: LabelSelector | None) -> Selector:
    """The selector of a LabelSelector: absent selects nothing, empty everything. An unknown operator selects nothing."""
    if selector is None:
        return NOTHING
    found = [Requirement(key, "=", (value,)) for key, value in selector.match_labels.items()]
    for expression in selector.match_expressions:
        if not _well_formed(expression):
            return NOTHING
        found.append(Requirement(expression.key, _OPERATORS[expression.operator], tuple(expression.values)))
    return Selector(tuple(found))


def _well_formed(expression: SelectorRequirement) -> bool:
    match expression.operator:
        case "In" | "NotIn":
            return bool(expression.values)
        case "Exists" | "DoesNotExist":
            return not expression.values
        case "Gt" | "Lt":
            return len(expression.values) == 1
        case _:
            return False


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Does a LabelSelector select these labels?"""
    return of_view(selector).matches(labels)


# ---------------------------------------------------------------- label selectors as text

_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^ \t\r\n=!(),<>]+)|(?P<end>$))")
_BINARY = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}
_EXPECTED = "in, notin, =, ==, !=, gt, lt"


class _Parser:
    """Reads tokens; the empty text is the end. Words ``in`` and ``notin`` are operators only where one may stand."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, bool]] = []
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None or found.group("end") is not None:
                break
            self._tokens.append((found.group("symbol") or found.group("word"), found.group("word") is not None))
            position = found.end()
        self._tokens.append(("", False))
        self._at = 0

    def peek(self) -> tuple[str, bool]:
        return self._tokens[min(self._at, len(self._tokens) - 1)]

    def take(self) -> tuple[str, bool]:
        found = self.peek()
        self._at += 1
        return found

    def selector(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            text, is_word = self.peek()
            if not text:
                return found
            if not is_word and text != "!":
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except SelectorError as why:
                raise SelectorError(f"unable to parse requirement: {why}") from why
            text, _ = self.take()
            if not text:
                return found
            if text != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            text, is_word = self.peek()
            if not is_word and text != "!":
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key, is_word = self.take()
        absent = key == "!" and not is_word
        if absent:
            key, is_word = self.take()
        if not is_word:
            raise SelectorError(f"found '{key}', expected: identifier")
        if findings := qualified_name(key):
            raise SelectorError(f'<nil>: Invalid value: "{key}": {"; ".join(findings)}')
        if self.peek()[0] in ("", ",") or absent:
            return Requirement(key, "!" if absent else "exists")
        text, _ = self.take()
        if text not in _BINARY:
            raise SelectorError(f"found '{text}', expected: {_EXPECTED}")
        operator = _BINARY[text]
        values = self._values() if operator in ("in", "notin") else (self._value(),)
        return _checked(key, operator, values)

    def _value(self) -> str:
        text, is_word = self.peek()
        if text in ("", ",") and not is_word:
            return ""
        self.take()
        if not is_word:
            raise SelectorError(f"found '{text}', expected: identifier")
        return text

    def _values(self) -> tuple[str, ...]:
        text, _ = self.take()
        if text != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        found: dict[str, None] = {}
        text, is_word = self.peek()
        if text == ")":
            self.take()
            return ("",)
        if not is_word and text != ",":
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        while True:
            text, is_word = self.take()
            if is_word:
                found[text] = None
                text, _ = self.take()
                if text == ")":
                    return tuple(sorted(found))
                if text != ",":
                    raise SelectorError(f"found '{text}', expected: ',' or ')'")
                if self.peek()[0] not in (")", ","):
                    continue
            elif text != ",":
                raise SelectorError(f"found '{text}', expected: ',', or identifier")
            found[""] = None
            if self.peek()[0] == ")":
                self.take()
                return tuple(sorted(found))


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if operator in ("gt", "lt") and _integer(values[0]) is None:
        raise SelectorError(f"values[0]: Invalid value: \"{values[0]}\": for 'Gt', 'Lt' operators, the value must be an integer")
    for index, value in enumerate(values):
        if findings := label_value(value):
            raise SelectorError(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(findings)}')
    return Requirement(key, operator, values)


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> Selector:
    """The selector that a ``labelSelector`` query says; ``SelectorError`` with upstream's words."""
    if len(text) > TEXT_MAX:
        raise SelectorError("selector too long")
    return Selector(tuple(_Parser(text).selector()))


# ---------------------------------------------------------------- field selectors


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All of ``field = value`` and ``field != value`` hold; terms are (field, wanted equal?, value)."""

    terms: tuple[tuple[str, bool, str], ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.terms

    def fields(self) -> list[str]:
        """The fields that it looks at, so that a kind can refuse those it does not know."""
        return [name for name, _, _ in self.terms]

    def matches(self, read: Callable[[str], str]) -> bool:
        """``read`` gives the object's value of a field, the empty string where it has none."""
        return all((read(name) == value) is equal for name, equal, value in self.terms)

    def exact(self, name: str) -> str | None:
        """The one value that ``name`` must have, if the selector says so."""
        return next((value for field, equal, value in self.terms if field == name and equal), None)


@lru_cache(maxsize=1024)
def parse_fields(text: str) -> FieldSelector:
    """The selector that a ``fieldSelector`` query says; ``SelectorError`` with upstream's words."""
    if len(text) > TEXT_MAX:
        raise SelectorError("selector too long")
    terms = []
    for part in re.findall(r"(?:[^\\,]|\\.|\\$)+", text, re.DOTALL):
        found = re.match(r"((?:[^\\=!]|\\.|!(?!=))*)(!=|==|=)(.*)", part, re.DOTALL)
        if found is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append((found.group(1), found.group(2) != "!=", _unescaped(found.group(3))))
    return FieldSelector(tuple(terms))


def _unescaped(value: str) -> str:
    if "\\" not in value and "," not in value and "=" not in value:
        return value
    plain, rest = "", value
    while rest:
        head, rest = rest[0], rest[1:]
        if head == "\\":
            if rest[:1] not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{rest[:1]}")
            head, rest = rest[0], rest[1:]
        elif head in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {head}")
        plain += head
    return plain
