"""Kubernetes quantities, exactly: ``500m``, ``0.25Gi``, ``1e3``.

A quantity is an integer number of nanos and the family of suffixes in which it was written. Nothing here is ever a float, and no
text makes it slow: length and exponent are checked before any power is computed (``1e3000000`` is nine characters).

Upstream's surprises that we follow, since they show in replies: a text without digits is zero (``Mi``, ``+``, ``.``); a number
that is already in canonical form keeps its text, even ``+1`` and ``01``; finer than nano rounds away from zero; a binary number is
capped at 2^63-1, a decimal one is not; and whatever is stored in a resource list is first rounded up to milli (``canonicalise``).
Where upstream's 64-bit accessors overflow, ours (``milli``, ``value``) stop at 2^63-1, so that a huge request never fits anywhere;
``milli_or_zero`` and ``value_or_zero`` are for messages and checks in which upstream's answer shows.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

INT64_MAX = 2**63 - 1
LENGTH_MAX = 64
"""No number needs more characters; longer texts are refused before they are looked at."""
EXPONENT_MAX = 1000
"""Decimal exponents above this are refused; those far below nano round to one nano."""

DECIMAL_SI = "DecimalSI"
DECIMAL_EXPONENT = "DecimalExponent"
BINARY_SI = "BinarySI"

_NANO_DIGITS = 9
_NANOS = 10**_NANO_DIGITS
_MILLI_NANOS = 10**6
_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SUFFIX_WRONG = "unable to parse quantity's suffix"
_SHAPE = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: "", **{exponent // 10: suffix for suffix, exponent in _BINARY.items()}}
_FAST_DIGITS = 18
_GO_SPACE = " \t\n\v\f\r\x85\xa0"


class QuantityError(ValueError):
    """A text that is no quantity; ``str()`` is upstream's message."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount. Equal, ordered and hashed by amount: ``1`` is ``1000m``."""

    nanos: int
    format: str = DECIMAL_SI
    text: str = field(default="", repr=False)
    """The text as written, where upstream would keep it."""

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded up; at most 2^63-1."""
        return _capped(-(-self.nanos // _MILLI_NANOS))

    @property
    def value(self) -> int:
        """The amount in whole units, rounded up; at most 2^63-1."""
        return _capped(-(-self.nanos // _NANOS))

    @property
    def milli_or_zero(self) -> int:
        """What upstream's ``MilliValue`` gives: 0 where 64 bits do not suffice.

        That holds for what upstream keeps as an integer and a power of ten (``100E``). What it keeps as a big number (more than 18
        digits, sums of far apart powers) it cuts off in a way that Go's library calls undefined; that is 0 here as well.
        """
        return _or_zero(-(-self.nanos // _MILLI_NANOS))

    @property
    def value_or_zero(self) -> int:
        """What upstream's ``Value`` gives, likewise."""
        return _or_zero(-(-self.nanos // _NANOS))

    def rounded_up(self) -> "Quantity":
        """The amount rounded away from zero to milli, as resource lists are stored."""
        whole, rest = divmod(abs(self.nanos), _MILLI_NANOS)
        if not rest:
            return self
        nanos = (whole + 1) * _MILLI_NANOS
        return Quantity(nanos if self.nanos > 0 else -nanos, self.format)

    def canonical(self) -> str:
        """Upstream's canonical text: the largest suffix of the family that loses nothing and leaves no fraction."""
        if self.text:
            return self.text
        if not self.nanos:
            return "0"
        whole, fraction = divmod(self.nanos, _NANOS)
        if self.format == BINARY_SI and abs(self.nanos) >= 1024 * _NANOS and not fraction:
            power = 0
            while power < 6 and not whole % 1024:
                whole //= 1024
                power += 1
            return f"{whole}{_BINARY_SUFFIX[power]}"
        mantissa, exponent = self.nanos, -_NANO_DIGITS
        while not mantissa % 1000:
            mantissa //= 1000
            exponent += 3
        if self.format != DECIMAL_EXPONENT and exponent in _DECIMAL_SUFFIX:
            return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)

    def __str__(self) -> str:
        return self.canonical()

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: "Quantity") -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: "Quantity") -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: "Quantity") -> bool:
        return self.nanos >= other.nanos

    def __add__(self, other: "Quantity") -> "Quantity":
        """The sum, in this one's family of suffixes; zero takes the other's."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        """The difference, in this one's family of suffixes; zero takes the other's."""
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)


ZERO = Quantity(0)


@lru_cache(maxsize=16384)
def parse(text: str) -> Quantity:
    """The quantity that ``text`` says; ``QuantityError`` with upstream's words if it says none. Takes microseconds at most."""
    text = text.strip(_GO_SPACE)
    if not text or len(text) > LENGTH_MAX:
        raise QuantityError(_FORMAT_WRONG)
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise QuantityError(_FORMAT_WRONG)
    sign, whole, fraction, suffix = shape.groups()
    whole, fraction = whole or "0", fraction or ""
    digits = whole + fraction
    mantissa = int(digits)
    if suffix in _BINARY:
        return _binary(sign, mantissa, whole, fraction, _BINARY[suffix], text)
    format, exponent = (DECIMAL_SI, _DECIMAL[suffix]) if suffix in _DECIMAL else (DECIMAL_EXPONENT, _exponent(suffix))
    scale = exponent - len(fraction)
    nanos = _scaled(mantissa, scale + _NANO_DIGITS)
    fast = len(digits) <= _FAST_DIGITS and scale >= -_NANO_DIGITS
    kept = text if (fast and not scale % 3 and not digits.endswith("000") and digits[0] != "0") or text == "0" else ""
    return Quantity(-nanos if sign == "-" else nanos, format, kept)


def _binary(sign: str, mantissa: int, whole: str, fraction: str, exponent: int, text: str) -> Quantity:
    units, rest = divmod((mantissa << exponent) * _NANOS, 10 ** len(fraction))
    nanos = min(units + (1 if rest else 0), INT64_MAX * _NANOS)
    format = DECIMAL_SI if 0 < nanos < _NANOS else BINARY_SI
    # Upstream's fast path has so many digits to spare, and takes numbers that are no multiple of eight for canonical.
    fast = not fraction and 15 - len(whole) - exponent * 3 // 10 - 1 >= 0
    kept = text if fast and mantissa & 7 else ""
    return Quantity(-nanos if sign == "-" else nanos, format, kept)


def _exponent(suffix: str) -> int:
    number = suffix[1:]
    if suffix[:1] not in ("e", "E") or not number.lstrip("+-").isdigit():
        raise QuantityError(_SUFFIX_WRONG)
    exponent = int(number)
    if exponent > EXPONENT_MAX:
        raise QuantityError(_SUFFIX_WRONG)
    return exponent


def _scaled(mantissa: int, shift: int) -> int:
    """``mantissa * 10**shift``, rounded up."""
    if shift >= 0:
        return mantissa * int(10**shift)
    if -shift > LENGTH_MAX:
        return 1 if mantissa else 0
    return -(-mantissa // int(10**-shift))


def _capped(amount: int) -> int:
    return max(-INT64_MAX - 1, min(INT64_MAX, amount))


def _or_zero(amount: int) -> int:
    return amount if -INT64_MAX <= amount <= INT64_MAX else 0


@lru_cache(maxsize=16384)
def canonicalise(text: str) -> str:
    """The text under which a resource list keeps that quantity: rounded up to milli, canonical."""
    return parse(text).rounded_up().canonical()


@lru_cache(maxsize=16384)
def milli_of(text: str) -> int:
    """``parse(text).milli``: what cpu is counted in."""
    return parse(text).milli


@lru_cache(maxsize=16384)
def value_of(text: str) -> int:
    """``parse(text).value``: what everything else is counted in."""
    return parse(text).value


def format_milli(amount: int) -> str:
    """Thousandths as the canonical decimal text: 1500 is ``1500m``, 2000 is ``2``."""
    return Quantity(amount * _MILLI_NANOS).canonical()


def format_bytes(amount: int) -> str:
    """Whole units as the canonical binary text: 268435456 is ``256Mi``."""
    return Quantity(amount * _NANOS, BINARY_SI).canonical()


def format_value(amount: int) -> str:
    """Whole units as the canonical decimal text: 1000 is ``1k``."""
    return Quantity(amount * _NANOS).canonical()
