"""Errors about fields, in upstream's words: what a 422 Status lists as causes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class FieldError:
    """One finding about one field. Built by the functions below; ``str()`` is upstream's text."""

    field: str
    kind: str
    """The cause's reason: FieldValueInvalid, FieldValueForbidden, ..."""
    body: str
    """The cause's message: ``Invalid value: "2": must be ...``."""

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return msgspec.json.encode(value, order="sorted").decode()


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}")


def invalid_as_a_whole(field: str, detail: str) -> FieldError:
    """``invalid`` without the value."""
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {detail}")


def invalid_struct(field: str, struct: Any, detail: str) -> FieldError:
    """``invalid`` of a struct of upstream's, whose fields are shown in their order."""
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {msgspec.json.encode(struct).decode()}: {detail}")


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {detail}")


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}")


def not_found(field: str, value: Any, detail: str = "") -> FieldError:
    return FieldError(field, "FieldValueNotFound", f"Not found: {_shown(value)}" + (f": {detail}" if detail else ""))


def not_supported(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    """``supported`` is shown in the order given: upstream sorts where it holds a set, and only there."""
    known = ", ".join(_shown(s) for s in supported)
    return FieldError(field, "FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {known}")


def too_long(field: str, limit: int) -> FieldError:
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many(field: str, count: int, limit: int) -> FieldError:
    items = "item" if limit == 1 else "items"
    return FieldError(field, "FieldValueTooMany", f"Too many: {count}: must have at most {limit} {items}")


def each(path: str, items: Sequence[Any] | None) -> Iterator[tuple[str, Any]]:
    """The items of a list, which may be absent, each with its own path."""
    for index, item in enumerate(items or []):
        yield f"{path}[{index}]", item
