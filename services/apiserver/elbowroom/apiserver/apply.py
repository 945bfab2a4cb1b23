"""Server-side apply: one manager says all that it cares for; the rest stays, and what it no longer says goes.

The configuration is merged into the object by the types of its lists. What the manager said before and says no more is removed,
unless another manager has it too. Fields that others manage and that would get another value are conflicts, unless forced.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.apiserver.gotext import go_text, go_type
from elbowroom.apiserver.managed import (
    ABSENT,
    UPDATE,
    Comparison,
    Entry,
    Fields,
    Manager,
    MissingKeyError,
    compare,
    difference,
    element_of,
    fields_of,
    in_order,
    intersection,
    is_member,
    members,
    parts,
    path_text,
    replaced,
    splits,
)
from elbowroom.apiserver.schema import (
    ARRAY,
    BOOL,
    BYTES,
    FLOAT,
    INT32,
    INT64,
    INT_OR_STRING,
    MAP,
    MICRO_TIME,
    QUANTITY,
    STRING,
    STRUCT,
    TIME,
    Field,
)
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.strategy import Document

_UNMANAGED: Fields = {
    "f:kind": {},
    "f:apiVersion": {},
    "f:metadata": {
        ".": {},
        **{
            f"f:{name}": {}
            for name in (
                *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields"),
                "resourceVersion",
            )
        },
    },
}


@dataclass(frozen=True, slots=True)
class Applied:
    """The object as it should be, still to be decoded, and who manages what then."""

    document: Document
    entries: Sequence[Entry]


def applied(
    field: Field,
    live: Mapping[str, Any],
    config: Mapping[str, Any],
    entries: Sequence[Entry],
    manager: Manager,
    *,
    ignored: tuple[str, ...],
    force: bool,
    time: str,
) -> Applied:
    """Apply ``config``, which ``errors`` finds nothing wrong with, to ``live``; ``ApiError`` 409 for conflicts.

    ``ignored`` are top-level fields that a write of this (sub)resource cannot change.
    """
    own = next((entry for entry in entries if manager.owns(entry)), None)
    others = [entry for entry in entries if entry is not own]
    mine = difference(fields_of(field, config), _UNMANAGED)
    for name in ignored:
        mine.pop(f"f:{name}", None)
    merged = _merged(field, live, config)
    if own is not None:
        merged = _pruned(field, merged, own["fieldsV1"], [mine, *(entry["fieldsV1"] for entry in others)])
    found = compare(field, live, merged, ignored)
    conflicts = [(entry, both) for entry in others if (both := intersection(entry["fieldsV1"], found.changed))]
    if conflicts and not force:
        raise _conflict(conflicts)
    return Applied(merged, replaced(_without(others, found), _own(own, manager, mine, found, time)))


def _own(own: Entry | None, manager: Manager, fields: Fields, found: Comparison, time: str) -> Document | None:
    if not fields:
        return None
    if own is not None and not found.changed and not found.removed and own["fieldsV1"] == fields:
        return dict(own)
    return manager.entry(in_order(fields), time)


def _without(others: Sequence[Entry], found: Comparison) -> Iterator[Entry]:
    """The other managers without what they lose."""
    for entry in others:
        left = difference(difference(entry["fieldsV1"], found.changed), found.removed)
        if left:
            yield entry if left == entry["fieldsV1"] else {**entry, "fieldsV1": left}


# ---------------------------------------------------------------- conflicts


def _conflict(conflicts: Sequence[tuple[Entry, Fields]]) -> ApiError:
    told = [
        (_shown(entry), path_text(path))
        for entry, fields in sorted(conflicts, key=lambda pair: _identifier(pair[0]))
        for path in members(fields)
    ]
    causes = [{"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path} for who, path in told]
    if len(told) == 1:
        message = f"Apply failed with 1 conflict: conflict with {told[0][0]}: {told[0][1]}"
    else:
        lines: list[str] = []
        for who in dict.fromkeys(who for who, _ in told):
            lines += [f"conflicts with {who}:", *(f"- {path}" for other, path in told if other == who)]
        message = f"Apply failed with {len(told)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", message, {"causes": causes})


def _identifier(entry: Entry) -> bytes:
    """Upstream sorts managers by such a JSON text."""
    named = {name: entry[name] for name in ("manager", "operation", "apiVersion", "subresource") if entry.get(name)}
    if entry["operation"] != UPDATE:
        named.pop("apiVersion", None)
    return msgspec.json.encode(named)


def _shown(entry: Entry) -> str:
    text = f'"{entry["manager"]}"'
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    return f"{text} using {entry['apiVersion']}" if entry["operation"] == UPDATE else text


# ---------------------------------------------------------------- merging


def _merged(field: Field, live: Any, config: Any) -> Any:
    if not (live or config) or not splits(field, live, config):
        return config
    if config is None:
        return live
    if not live:
        return config
    if field.kind == ARRAY:
        return _merged_list(field, live, config)
    found = dict(live)
    for name, value in config.items():
        inner = field.fields.get(name) if field.kind == STRUCT else field.item
        if inner is not None and name in live:
            value = _merged(inner, live[name], value)
        found[name] = value
    return found


def _merged_list(field: Field, live: list[Any], config: list[Any]) -> list[Any]:
    """The elements of both: those of ``config`` in its order, those that only ``live`` has between the same neighbours."""
    assert field.item is not None
    stood = [(element_of(field, item), item) for item in live]
    wanted = [(element_of(field, item), item) for item in config]
    before, after = dict(reversed(stood)), dict(wanted)
    shared = iter([element for element, _ in wanted if element in before])
    awaited = next(shared, None)
    merged: list[Any] = []
    taken: set[str] = set()
    left = right = 0
    while left < len(stood) or right < len(wanted):
        if left < len(stood):
            element, item = stood[left]
            if right < len(wanted) and element == wanted[right][0]:
                merged.append(_merged(field.item, before[element], after[element]))
                taken.add(element)
                left, right = left + 1, right + 1
                if awaited == element:
                    awaited = next(shared, None)
                continue
            if right < len(wanted) and element in after and awaited is not None and awaited != element:
                left += 1  # its turn comes where the configuration has it
                continue
            if element not in after:
                merged.append(item)
                left += 1
                continue
            if element in taken:
                left += 1
        if right < len(wanted):
            element, item = wanted[right]
            merged.append(_merged(field.item, before[element], item) if element in before else item)
            taken.add(element)
            right += 1
            if awaited == element:
                awaited = next(shared, None)
    return merged


def _pruned(field: Field, value: Any, last: Fields, owners: Sequence[Fields]) -> Any:
    """``value`` without what ``last`` has and no owner wants; a whole that loses all of its parts goes too."""
    declares = field.kind == STRUCT
    gone: set[str] = set()
    changed: dict[str, Any] = {}
    for element, (inner, part) in parts(field, value).items():
        had = last.get(element)
        if had is None:
            continue
        wanted = [owner[element] for owner in owners if element in owner]
        if (declares or is_member(had)) and not any(declares or is_member(node) for node in wanted):
            gone.add(element)
        elif part and splits(inner, part):
            left = _pruned(inner, part, had, wanted)
            if left is ABSENT:
                gone.add(element)
            elif left is not part:
                changed[element] = left
    if not gone and not changed:
        return value
    if field.kind == ARRAY:
        kept = [(element_of(field, item), item) for item in value]
        items = [changed.get(element, item) for element, item in kept if element not in gone]
        return items or ABSENT
    found = {name: changed.get(f"f:{name}", inner) for name, inner in value.items() if f"f:{name}" not in gone}
    return found or ABSENT


# ---------------------------------------------------------------- typing


def errors(field: Field, config: Mapping[str, Any]) -> str:
    """What is wrong with the types in a configuration, in upstream's words; empty if nothing is."""
    found = list(_errors(field, config, ()))
    if len(found) < 2:
        return "".join(found)
    return "errors:\n" + "\n".join(f"  {one}" for one in found)


_WHOLE = {STRUCT: (dict, "map"), MAP: (dict, "map"), ARRAY: (list, "list")}


def _errors(field: Field, value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if value is None or field.deduces:
        return
    at = f"{path_text(path)}: " if path else ""
    if field.kind not in _WHOLE:
        why = _scalar_error(field.kind, value)
        if why:
            yield at + why
        return
    kind, name = _WHOLE[field.kind]
    if not isinstance(value, kind):
        yield f"{at}expected {name}, got &{{{go_text(value)}}}"
    elif field.kind == ARRAY:
        yield from _list_errors(field, value, path, at)
    else:
        for key in sorted(value):
            inner = field.fields.get(key) if field.kind == STRUCT else field.item
            here = (*path, f"f:{key}")
            if inner is None:
                yield f"{path_text(here)}: field not declared in schema"
            else:
                yield from _errors(inner, value[key], here)


def _list_errors(field: Field, value: list[Any], path: tuple[str, ...], at: str) -> Iterator[str]:
    assert field.item is not None
    seen: set[str] = set()
    for index, item in enumerate(value):
        if not field.is_granular:
            yield from _errors(field.item, item, (*path, f"i:{index}"))
            continue
        why = _element_error(field, item)
        if why:
            yield f"{at}element {index}: {why}"
            continue
        try:
            element = element_of(field, item)
        except MissingKeyError as key:
            what = f'associative list with keys has an element that omits key field "{key}"'
            yield f"{at}element {index}: {what} (and doesn't have default value)"
            continue
        if element in seen:
            yield f"{at}duplicate entries for key {path_text((element,))}"
        seen.add(element)
        yield from _errors(field.item, item, (*path, element))


def _element_error(field: Field, item: Any) -> str:
    if field.list_type == "map":
        if item is None:
            return "associative list with keys may not have a null element"
        return "" if isinstance(item, dict) else "associative list with keys may not have non-map elements"
    kinds = {type(None): "an explicit null", dict: "a map type", list: "a list type"}
    kind = kinds.get(type(item))
    return f"associative list without keys has an element that's {kind}" if kind else ""


def _scalar_error(kind: int, value: Any) -> str:
    if kind in (STRING, TIME, MICRO_TIME, BYTES) and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{go_text(value)}}}"
    if kind in (INT32, INT64, FLOAT) and (isinstance(value, bool) or not isinstance(value, int | float)):
        return f"expected numeric (int or float), got {go_type(value)}"
    if kind == BOOL and not isinstance(value, bool):
        return f"expected boolean, got &{{{go_text(value)}}}"
    if kind in (QUANTITY, INT_OR_STRING) and isinstance(value, dict | list):
        return f"expected any scalar, got &{{{go_text(value)}}}"
    return ""
