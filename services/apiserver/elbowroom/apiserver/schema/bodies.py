"""Request bodies: bytes to JSON-shaped values, bounded and in upstream's words.

A body that is written as briefly as it can be, as programs write them, is read by msgspec: if what it holds is written as the very
same bytes again, nothing stood twice and no number was anything else than it seems. For all others Python's scanner does the work,
which takes five times as long; what it lets pass and Kubernetes does not (NaN, endless numbers, lone surrogates, deep nesting,
fields given twice) is looked for around it. Only a body that is refused is read once more, by a walk through Go's scanner states,
for the words that upstream has for the fault.
"""

import json
import re
from typing import Any, NamedTuple

import msgspec

DEPTH_MAX = 100
"""Levels of nesting; a manifest has about ten."""
NUMBER_LENGTH_MAX = 64
BRIEF_BYTES_MAX = 64 * 1024
"""Above this it is not tried whether a body is written briefly: to find that it is not costs as much as what it would save."""
DUPLICATES_MAX = 100


class MalformedBodyError(ValueError):
    """A body that is no JSON (or YAML); ``str()`` is upstream's text."""


class Literal(float):
    """A number with a fraction or an exponent that remembers how it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "Literal":
        made = super().__new__(cls, text)
        made.text = text
        return made


class Parsed(NamedTuple):
    """A body's value, and the paths of fields that stand twice in one object (the last one counts), or what YAML's loader says of
    them, all in one."""

    value: Any
    duplicates: list[str]
    repeated: str = ""

    @property
    def warnings(self) -> list[str]:
        """``duplicate field "metadata.name"`` for each."""
        said = [self.repeated] if self.repeated else []
        return said + [f'duplicate field "{path}"' for path in self.duplicates]


class _Pairs(list[tuple[str, Any]]):
    """An object as its pairs, to see what stands twice."""


class _TwiceError(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _TwiceError
    return found


def _integer(text: str) -> int | float:
    if len(text) > NUMBER_LENGTH_MAX:
        raise MalformedBodyError(f"json: a number of {len(text)} characters is too long")
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else Literal(text)


def _fraction(text: str) -> Literal:
    if len(text) > NUMBER_LENGTH_MAX:
        raise MalformedBodyError(f"json: a number of {len(text)} characters is too long")
    number = Literal(text)
    if number in (float("inf"), float("-inf")):
        raise MalformedBodyError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return number


def _constant(text: str) -> Any:
    raise ValueError(text)


_brief_decoder = msgspec.json.Decoder(float_hook=_fraction)
_brief_encoder = msgspec.json.Encoder(enc_hook=float)  # numbers that remember how they were written
_as_digits = bytes.maketrans(b"123456789", b"000000000")
_LONG = b"0" * 19
"""As many digits as a number has that may be beyond 64 bits."""
_decoder = json.JSONDecoder(object_pairs_hook=_once, parse_int=_integer, parse_float=_fraction, parse_constant=_constant)
_pairs_decoder = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=_integer, parse_float=_fraction, parse_constant=_constant)
_surrogate = re.compile(r"\\u[dD][89a-fA-F]")
_token = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{\]}]', re.DOTALL)


def _may_be_brief(body: bytes) -> bool:
    """Is it short, neither deep nor with a number beyond 64 bits?"""
    return (
        len(body) <= BRIEF_BYTES_MAX
        and body.count(b"{") + body.count(b"[") <= DEPTH_MAX
        and _LONG not in body.translate(_as_digits)
    )


def parse_json(body: bytes) -> Parsed:
    """The value in ``body``; ``MalformedBodyError`` for anything that is no strict JSON or goes beyond the bounds."""
    if (
        len(body) <= BRIEF_BYTES_MAX
        and _LONG not in body.translate(_as_digits)
        and body.count(b"{") + body.count(b"[") <= DEPTH_MAX
    ):
        try:
            value = _brief_decoder.decode(body)
            if _brief_encoder.encode(value) == body:
                return Parsed(value, [])
        except (ValueError, RecursionError):
            pass  # below it is said what is wrong
    try:
        text = body.decode()
    except UnicodeDecodeError as why:
        raise MalformedBodyError(_fault(body) or "invalid UTF-8 in the body") from why
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX and _depth(text) > DEPTH_MAX:
        raise MalformedBodyError("exceeded max depth")
    try:
        value = _decoder.decode(text)
        duplicates: list[str] = []
    except _TwiceError:
        value, duplicates = _doubled(_pairs_decoder.decode(text))
    except (ValueError, RecursionError) as why:
        raise MalformedBodyError(_fault(body) or str(why)) from why
    if b"\\u" in body and _surrogate.search(text) is not None:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as why:
            raise MalformedBodyError("invalid surrogate pair in a string") from why
    return Parsed(value, duplicates)


def _doubled(value: Any) -> tuple[Any, list[str]]:
    found: dict[str, None] = {}

    def walk(value: Any, path: str) -> Any:
        if isinstance(value, _Pairs):
            result: dict[str, Any] = {}
            for name, inner in value:
                here = f"{path}.{name}" if path else name
                if name in result:
                    found.setdefault(here)
                result[name] = walk(inner, here)
            return result
        if isinstance(value, list):
            return [walk(inner, f"{path}[{index}]") for index, inner in enumerate(value)]
        return value

    plain = walk(value, "")
    return plain, list(found)[:DUPLICATES_MAX]


def _depth(text: str) -> int:
    deepest = depth = 0
    for token in _token.finditer(text):
        mark = token[0]
        if mark in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "}]":
            depth -= 1
    return deepest


# ---------------------------------------------------------------- Go's words

_SPACES, _PLAIN, _DIGITS = re.compile(r"[ \t\r\n]*"), re.compile(r'[^"\\\x00-\x1f]*'), re.compile(r"[0-9]*")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_ESCAPES = dict(zip("\a\b\f\n\r\t\v\\", (r"\a", r"\b", r"\f", r"\n", r"\r", r"\t", r"\v", r"\\"), strict=True))


def _quoted(char: str) -> str:
    if char == "'":
        return r"'\''"
    if char == '"':
        return "'\"'"
    if char in _ESCAPES:
        return f"'{_ESCAPES[char]}'"
    if char.isprintable():
        return f"'{char}'"
    return f"'\\x{ord(char):02x}'" if char < "\x80" else f"'\\u{ord(char):04x}'"


class _FaultError(Exception):
    pass


class _Scanner:
    """Reads as Go's encoding/json does, byte by byte and with a space where the body ends, up to the first fault. Depth is bounded
    before."""

    def __init__(self, body: bytes) -> None:
        self._text = body.decode("latin-1") + " "
        self._at = 0

    def check(self) -> None:
        self._value()
        self._skip()
        if self._at < len(self._text):
            self._fail("after top-level value")

    def _skip(self) -> None:
        self._pass(_SPACES)

    def _pass(self, run: re.Pattern[str]) -> None:
        """Go on to the end of such a run of characters, which may be megabytes long."""
        found = run.match(self._text, self._at)
        assert found is not None, "a run may be empty"
        self._at = found.end()

    def _peek(self) -> str:
        if self._at >= len(self._text):
            raise _FaultError("unexpected end of JSON input")
        return self._text[self._at]

    def _fail(self, context: str) -> None:
        raise _FaultError(f"invalid character {_quoted(self._peek())} {context}")

    def _value(self) -> None:
        self._skip()
        char = self._peek()
        if char == "{":
            self._object()
        elif char == "[":
            self._array()
        elif char == '"':
            self._string()
        elif char == "-" or char in "0123456789":
            self._number()
        elif char in _LITERALS:
            word = _LITERALS[char]
            for expected in word:
                if self._peek() != expected:
                    self._fail(f"in literal {word} (expecting {_quoted(expected)})")
                self._at += 1
        else:
            self._fail("looking for beginning of value")

    def _object(self) -> None:
        self._at += 1
        self._skip()
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            self._skip()
            if self._peek() != '"':
                self._fail("looking for beginning of object key string")
            self._string()
            self._skip()
            if self._peek() != ":":
                self._fail("after object key")
            self._at += 1
            self._value()
            self._skip()
            char = self._peek()
            if char not in ",}":
                self._fail("after object key:value pair")
            self._at += 1
            if char == "}":
                return

    def _array(self) -> None:
        self._at += 1
        self._skip()
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            self._value()
            self._skip()
            char = self._peek()
            if char not in ",]":
                self._fail("after array element")
            self._at += 1
            if char == "]":
                return

    def _string(self) -> None:
        self._at += 1
        while True:
            self._pass(_PLAIN)
            char = self._peek()
            if char == '"':
                break
            if char < " ":
                self._fail("in string literal")
            self._at += 1
            if char == "\\":
                escape = self._peek()
                if escape not in 'bfnrt\\/"u':
                    self._fail("in string escape code")
                self._at += 1
                if escape == "u":
                    for _ in range(4):
                        if self._peek() not in "0123456789abcdefABCDEF":
                            self._fail("in \\u hexadecimal character escape")
                        self._at += 1
        self._at += 1

    def _digits(self, context: str) -> None:
        if self._peek() not in "0123456789":
            self._fail(context)
        self._pass(_DIGITS)

    def _number(self) -> None:
        if self._text[self._at] == "-":
            self._at += 1
        if self._peek() == "0":
            self._at += 1
        else:
            self._digits("in numeric literal")
        if self._text[self._at : self._at + 1] == ".":
            self._at += 1
            self._digits("after decimal point in numeric literal")
        if self._text[self._at : self._at + 1] in ("e", "E"):
            self._at += 1
            if self._peek() in "+-":
                self._at += 1
            self._digits("in exponent of numeric literal")


def _fault(body: bytes) -> str:
    """What Go's scanner says of ``body``; empty if it finds nothing."""
    try:
        _Scanner(body).check()
    except _FaultError as why:
        return str(why)
    except RecursionError:
        return "exceeded max depth"
    return ""


def unrecognised(kind: str, why: str, body: bytes) -> str:
    """Upstream's message for a body that names no kind: with the begin of the body, in hex unless it looks like JSON."""
    if not body:
        shown = "<empty>"
    elif body[:1] == b"{":
        shown = body[:30].decode(errors="replace") + (" ..." if len(body) > 30 else "")
    else:
        shown = body[:30].hex() + (" ..." if len(body) > 30 else "")
    return f"the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
