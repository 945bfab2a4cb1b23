"""A set of CPUs: a value that prints as Linux does (``0-3,8``) and whose operations cost one machine instruction a word."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

CPU_MAX = 65_535


class CPUSetError(ValueError):
    """The text is no list of CPUs."""


@dataclass(frozen=True, slots=True)
class CPUSet:
    """CPUs by number; iterates in ascending order. ``bits`` has bit c set for CPU c."""

    bits: int = 0

    @classmethod
    def of(cls, *cpus: int) -> "CPUSet":
        """The set of these CPUs."""
        return cls.from_iterable(cpus)

    @classmethod
    def from_iterable(cls, cpus: Iterable[int]) -> "CPUSet":
        """The set of the CPUs of ``cpus``."""
        bits = 0
        for cpu in cpus:
            bits |= 1 << cpu
        return cls(bits)

    @classmethod
    def parse(cls, text: str) -> "CPUSet":
        """The set that a Linux list names; ``CPUSetError`` in Go's words if it is none."""
        bits = 0
        for part in text.split(",") if text else []:
            low, dash, high = part.partition("-")
            first = _number(low)
            last = _number(high) if dash else first
            if last < first:
                raise CPUSetError(f"invalid range {part!r} ({last} < {first})")
            bits |= (1 << last + 1) - (1 << first)
        return cls(bits)

    def __or__(self, other: "CPUSet") -> "CPUSet":
        return CPUSet(self.bits | other.bits)

    def __and__(self, other: "CPUSet") -> "CPUSet":
        return CPUSet(self.bits & other.bits)

    def __sub__(self, other: "CPUSet") -> "CPUSet":
        return CPUSet(self.bits & ~other.bits)

    def __le__(self, other: "CPUSet") -> bool:
        """Is every CPU of this set in the other?"""
        return not self.bits & ~other.bits

    def __contains__(self, cpu: int) -> bool:
        return bool(self.bits >> cpu & 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __iter__(self) -> Iterator[int]:
        return ids_of(self.bits)

    def __str__(self) -> str:
        parts: list[str] = []
        rest = self.bits
        while rest:
            first = (rest & -rest).bit_length() - 1
            run = rest >> first
            length = (~run & (run + 1)).bit_length() - 1
            parts.append(str(first) if length == 1 else f"{first}-{first + length - 1}")
            rest &= ~((1 << first + length) - 1)
        return ",".join(parts)


NOBODY = CPUSet()
"""The empty set."""


def ids_of(bits: int) -> Iterator[int]:
    """The numbers of the bits that are set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 6 or int(text) > CPU_MAX:
        raise CPUSetError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)
