"""Expressions as trees.

The grammar is CEL's; macros (``has``, ``all`` and the like) are calls here, which the checker and the evaluation know by name.
``CelSyntaxError`` says what is wrong and where, in the words of cel-go as far as those are about the user's text.
"""

import re
from dataclasses import dataclass
from typing import Any

DEPTH_MAX = 50
TREE_DEPTH_MAX = 150
"""Bounds of what the recursion over an expression and its tree costs."""
SOURCE_MAX = 100_000


class CelSyntaxError(Exception):
    """The text is no expression. ``offset`` is where that shows."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset, self.message = offset, message


@dataclass(frozen=True, slots=True)
class UInt:
    """An unsigned number, which is another type than a signed one."""

    value: int


@dataclass(frozen=True, slots=True)
class Literal:
    at: int
    value: Any
    """None, bool, int, ``UInt``, float, str or bytes."""


@dataclass(frozen=True, slots=True)
class Ident:
    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """``a.b``, or ``a.?b``."""

    at: int
    operand: "Expression"
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """``a[b]``, or ``a[?b]``."""

    at: int
    operand: "Expression"
    key: "Expression"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, an operator (``_+_``, ``_?_:_``, ``!_``, ``-_``, ``@in``) or a macro; ``target`` for ``a.f(b)``.

    ``_&&_`` and ``_||_`` have as many arguments as were chained.
    """

    at: int
    function: str
    target: "Expression | None"
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Items:
    """``[a, ?b]``; ``optional`` has the places of those that may be absent."""

    at: int
    items: "tuple[Expression, ...]"
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class Entries:
    """``{a: b, ?c: d}``."""

    at: int
    entries: "tuple[tuple[Expression, Expression], ...]"
    optional: frozenset[int]


Expression = Literal | Ident | Select | Index | Call | Items | Entries

# ---------------------------------------------------------------- words

_WORDS = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
  | (?P<string>(?:[rR]?[bB]|[bB]?[rR])?
      (?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^\\"\n\r])*"|'(?:\\.|[^\\'\n\r])*'))
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|\d+)
  | (?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", **{sign: sign for sign in "\\?\"'`"}}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
RESERVED = frozenset(
    "as break const continue else for function if import let loop package namespace return var void while".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class _Word:
    kind: str
    text: str
    at: int


def _words(source: str) -> list[_Word]:
    found: list[_Word] = []
    at = 0
    while at < len(source):
        match = _WORDS.match(source, at)
        if match is None:
            raise CelSyntaxError(at, f"Syntax error: token recognition error at: '{source[at]}'")
        if match.lastgroup != "space":
            found.append(_Word(str(match.lastgroup), match[0], at))
        at = match.end()
    return [*found, _Word("end", "<EOF>", len(source))]


def _string(word: _Word) -> str | bytes:
    text, is_raw, is_bytes = word.text, False, False
    while text[0] in "rRbB":
        is_raw, is_bytes = is_raw or text[0] in "rR", is_bytes or text[0] in "bB"
        text = text[1:]
    quotes = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    text = text[quotes:-quotes]
    if is_raw:
        return text.encode() if is_bytes else text
    parts: list[bytes] = []
    last = 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[last : match.start()].encode("utf-8", "surrogatepass"))
        last, code = match.end(), match[1]
        number = -1
        if code[0] in "xXuU" and len(code) > 1:
            number = int(code[1:], 16)
        elif len(code) == 3:
            number = int(code, 8)
        if number < 0:
            if code not in _ESCAPES:
                raise CelSyntaxError(word.at, f"Syntax error: token recognition error at: '{word.text}'")
            parts.append(_ESCAPES[code].encode())
        elif is_bytes and code[0] not in "uU":
            parts.append(bytes((number & 255,)))
        elif 0xD800 <= number < 0xE000 or number > 0x10FFFF:
            raise CelSyntaxError(word.at, "invalid unicode code point")
        else:
            parts.append(chr(number).encode())
    parts.append(text[last:].encode("utf-8", "surrogatepass"))
    whole = b"".join(parts)
    return whole if is_bytes else whole.decode("utf-8", "replace")


# ---------------------------------------------------------------- reading

_BINARY = (("||",), ("&&",), ("<", "<=", ">", ">=", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))
_MACROS = {("all", 2), ("exists", 2), ("exists_one", 2), ("existsOne", 2), ("map", 2), ("map", 3), ("filter", 2)}
_MACROS |= {("all", 3), ("exists", 3), ("existsOne", 3), ("optMap", 2), ("optFlatMap", 2)}


class _Reader:
    def __init__(self, source: str) -> None:
        self._words = _words(source)
        self._place = 0
        self._depth = 0

    @property
    def _word(self) -> _Word:
        return self._words[self._place]

    def _next(self) -> _Word:
        word = self._word
        self._place += 1
        return word

    def _is(self, text: str) -> bool:
        word = self._word
        return word.text == text and word.kind in ("sign", "name")

    def _take(self, text: str) -> bool:
        if self._is(text):
            self._place += 1
            return True
        return False

    def _expect(self, text: str) -> _Word:
        if not self._is(text):
            self._unexpected(f"'{text}'")
        return self._next()

    def _unexpected(self, wanted: str) -> None:
        word = self._word
        raise CelSyntaxError(word.at, f"Syntax error: mismatched input '{word.text}' expecting {wanted}")

    def whole(self) -> Expression:
        found = self.expression()
        if self._word.kind != "end":
            self._unexpected("<EOF>")
        return found

    def expression(self) -> Expression:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise CelSyntaxError(self._word.at, f"expression recursion limit exceeded: {DEPTH_MAX}")
        condition = self._binary(0)
        if self._is("?"):
            at = self._next().at
            then = self._binary(0)
            self._expect(":")
            condition = Call(at, "_?_:_", None, (condition, then, self.expression()))
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Expression:
        if level == len(_BINARY):
            return self._unary()
        left = self._binary(level + 1)
        if level < 2 and self._is(_BINARY[level][0]):
            sign = self._word
            parts = [left]
            while self._take(sign.text):
                parts.append(self._binary(level + 1))
            return Call(sign.at, f"_{sign.text}_", None, tuple(parts))
        while any(self._is(sign) for sign in _BINARY[level]):
            word = self._next()
            name = "@in" if word.text == "in" else f"_{word.text}_"
            left = Call(word.at, name, None, (left, self._binary(level + 1)))
        return left

    def _unary(self) -> Expression:
        signs: list[_Word] = []
        while self._is("!") or self._is("-"):
            signs.append(self._next())
        literal = self._word
        if signs and signs[-1].text == "-" and literal.kind in ("int", "float"):
            signs.pop()
            self._next()
            found = self._member(_number(literal, negative=True))
        else:
            found = self._member(self._primary())
        if len(signs) > DEPTH_MAX:
            raise CelSyntaxError(signs[0].at, f"expression recursion limit exceeded: {DEPTH_MAX}")
        for sign in reversed(signs):
            found = Call(sign.at, f"{sign.text}_", None, (found,))
        return found

    def _member(self, found: Expression) -> Expression:
        while True:
            if self._is("."):
                at = self._next().at
                optional = self._take("?")
                name = self._name()
                if not optional and self._is("("):
                    at = self._next().at
                    found = self._call(at, name, found, self._arguments(")"))
                else:
                    found = Select(at, found, name, optional)
            elif self._is("["):
                at = self._next().at
                optional = self._take("?")
                key = self.expression()
                self._expect("]")
                found = Index(at, found, key, optional)
            else:
                return found

    def _name(self) -> str:
        word = self._word
        if word.kind != "name" or word.text in RESERVED or word.text in ("in", "true", "false", "null"):
            if word.kind == "name":
                raise CelSyntaxError(word.at, f"Syntax error: no viable alternative at input '.{word.text}'")
            self._unexpected("IDENTIFIER")
        return self._next().text

    def _call(self, at: int, name: str, target: Expression | None, arguments: tuple[Expression, ...]) -> Expression:
        if target is None and name == "has":
            if len(arguments) != 1 or not isinstance(arguments[0], Select) or arguments[0].optional:
                raise CelSyntaxError(arguments[0].at if arguments else at, "invalid argument to has() macro")
        elif target is not None and (name, len(arguments)) in _MACROS:
            variables = arguments[: 2 if (name, len(arguments)) in (("all", 3), ("exists", 3), ("existsOne", 3)) else 1]
            for variable in variables:
                if not isinstance(variable, Ident):
                    raise CelSyntaxError(variable.at, "argument must be a simple name")
        return Call(at, name, target, arguments)

    def _arguments(self, end: str) -> tuple[Expression, ...]:
        found: list[Expression] = []
        while not self._take(end):
            found.append(self.expression())
            if not self._is(end):
                self._expect(",")
        return tuple(found)

    def _primary(self) -> Expression:
        word = self._word
        match word.kind:
            case "int" | "uint" | "float":
                return _number(self._next())
            case "string":
                return Literal(word.at, _string(self._next()))
            case "name" if word.text in ("true", "false", "null"):
                return Literal(self._next().at, {"true": True, "false": False, "null": None}[word.text])
            case "name" if word.text not in RESERVED and word.text != "in":
                return self._named(self._next())
            case "name" if word.text in RESERVED:
                raise CelSyntaxError(word.at, f"reserved identifier: {word.text}")
        if self._take("."):
            return self._named(self._next())
        if self._take("("):
            inside = self.expression()
            self._expect(")")
            return inside
        if self._take("["):
            return self._list(word.at)
        if self._take("{"):
            return self._map(word.at)
        message = f"Syntax error: mismatched input '{word.text}' expecting"
        raise CelSyntaxError(word.at, f"{message} {{'[', '{{', '(', '.', '-', '!', 'true', 'false', 'null', {_LITERALS}}}")

    def _named(self, word: _Word) -> Expression:
        if self._is("("):
            at = self._next().at
            return self._call(at, word.text, None, self._arguments(")"))
        return Ident(word.at, word.text)

    def _list(self, at: int) -> Expression:
        items: list[Expression] = []
        optional: list[int] = []
        while not self._take("]"):
            if self._take("?"):
                optional.append(len(items))
            items.append(self.expression())
            if not self._is("]"):
                self._expect(",")
        return Items(at, tuple(items), frozenset(optional))

    def _map(self, at: int) -> Expression:
        entries: list[tuple[Expression, Expression]] = []
        optional: list[int] = []
        while not self._take("}"):
            if self._take("?"):
                optional.append(len(entries))
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression()))
            if not self._is("}"):
                self._expect(",")
        return Entries(at, tuple(entries), frozenset(optional))


_LITERALS = "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"


def _number(word: _Word, *, negative: bool = False) -> Literal:
    sign = -1 if negative else 1
    if word.kind == "float":
        return Literal(word.at, sign * float(word.text))
    text = word.text.rstrip("uU")
    value = sign * (int(text, 16) if text[:2] == "0x" else int(text))
    if word.kind == "uint":
        if value >= 1 << 64:
            raise CelSyntaxError(word.at, "invalid uint literal")
        return Literal(word.at, UInt(value))
    if not -(1 << 63) <= value < 1 << 63:
        raise CelSyntaxError(word.at, "invalid int literal")
    return Literal(word.at, value)


def parse(source: str) -> Expression:
    """The tree of an expression; ``CelSyntaxError``."""
    if len(source) > SOURCE_MAX:
        raise CelSyntaxError(0, f"expression code point size exceeds limit: size: {len(source)}, limit {SOURCE_MAX}")
    tree = _Reader(source).whole()
    level, depth = [tree], 0
    while level:
        level, depth = [part for one in level for part in parts(one)], depth + 1
        if depth > TREE_DEPTH_MAX:
            raise CelSyntaxError(0, f"expression recursion limit exceeded: {TREE_DEPTH_MAX}")
    return tree


def located(source: str, offset: int, message: str) -> str:
    """An error as cel-go shows it, with the line and a caret below the place."""
    line = source.count("\n", 0, offset) + 1
    start = source.rfind("\n", 0, offset) + 1
    text = source[start:].partition("\n")[0]
    column = offset - start
    return f"ERROR: <input>:{line}:{column + 1}: {message}\n | {text}\n | {'.' * column}^"


def parts(tree: Expression) -> tuple[Expression, ...]:
    """What a tree consists of."""
    match tree:
        case Select(operand=operand):
            return (operand,)
        case Index(operand=operand, key=key):
            return operand, key
        case Call(target=target, arguments=arguments):
            return arguments if target is None else (target, *arguments)
        case Items(items=items):
            return items
        case Entries(entries=entries):
            return tuple(part for entry in entries for part in entry)
        case Literal() | Ident():
            return ()


def names(tree: Expression) -> set[str]:
    """All identifiers of a tree."""
    found: set[str] = set()
    left = [tree]
    while left:
        one = left.pop()
        if isinstance(one, Ident):
            found.add(one.name)
        left += parts(one)
    return found
