"""Semantic equality of documents: what upstream's ``apiequality.Semantic.DeepEqual`` holds for the same.

Decoded documents are canonical already, except that absent and empty are the same, and that quantities of one value may have kept
different texts (``1`` and ``01``).
"""

from typing import Any

from elbowroom.api.quantity import QuantityError, parse

_QUANTITIES = ("requests", "limits", "overhead", "capacity", "allocatable", "hard", "used")
_EMPTY: tuple[Any, ...] = (None, "", [], {})


def same(one: Any, other: Any, *, quantities: bool = False) -> bool:
    """Do both mean the same? RC-7: no new generation then."""
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        if quantities:
            return one.keys() == other.keys() and all(_same_quantity(one[name], other[name]) for name in one)
        # Most members are equal, and telling so is the interpreter's own work.
        for name, value in one.items():
            theirs = other.get(name)
            if value != theirs and not same(value, theirs, quantities=name in _QUANTITIES):
                return False
        return all(name in one or theirs in _EMPTY for name, theirs in other.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one in _EMPTY and other in _EMPTY


def _same_quantity(one: Any, other: Any) -> bool:
    try:
        return one == other or parse(one) == parse(other)
    except (QuantityError, TypeError):
        return False
