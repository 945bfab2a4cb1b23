"""Who manages which field: ``metadata.managedFields``, kept as upstream keeps it.

A set of fields is the tree that FieldsV1 is: ``f:NAME`` for a field or a map's key, ``k:{"name":"c"}`` and ``v:"x"`` for the
elements of lists; an empty node is a member, one with children if it has ``.``. Every write is compared with what stood: who
changes or adds a field manages it from then on, and nobody manages what is gone. Writes that apply are in ``apply.py``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from elbowroom.apiserver.schema import ARRAY, MAP, STRUCT, Field, zero
from elbowroom.apiserver.strategy import Document

Fields = dict[str, Any]
Entry = Mapping[str, Any]

APPLY, UPDATE = "Apply", "Update"
ANCIENT = "ancient-changes"
UPDATERS_MAX = 10
"""How many managers that update are told apart; the oldest share one entry."""
MANAGER_LENGTH_MAX = 128
_IDENTITY = frozenset(
    ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion")
)
"""What nobody manages in metadata."""
_KEY_DEFAULTS = {"protocol": "TCP"}

_json = msgspec.json.Encoder(enc_hook=float).encode  # numbers that remember how they were written


class _Absent:
    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()
"""What stands at a path where nothing stands; null is something."""


# ---------------------------------------------------------------- elements


class MissingKeyError(Exception):
    """A list's element lacks an optional key of its list; ``str()`` is the key's name."""


def element_of(field: Field, item: Any) -> str:
    """How an element of a granular list is called; ``MissingKeyError``."""
    if field.list_type == "set":
        return f"v:{_json(item).decode()}"
    if len(field.list_keys) == 1 and type(item) is dict:
        (key,) = field.list_keys
        value = item.get(key)
        if type(value) is str and len(value) <= _REMEMBERED_MAX:
            return _element_by(key, value)
    keys = {}
    for key in sorted(field.list_keys):
        value = item.get(key) if isinstance(item, dict) else None
        if value is None:
            value = _KEY_DEFAULTS.get(key, field.fields[key].default)
            if value is None:
                inner = field.fields[key]
                if not inner.required:
                    raise MissingKeyError(key)
                value = zero(inner)  # Go has nothing that says "missing"
        keys[key] = value
    return f"k:{_json(keys).decode()}"


_REMEMBERED_MAX = 256
"""How long texts may be to be remembered: clients send others, too."""


@lru_cache(maxsize=4096)
def _element_by(key: str, value: str) -> str:
    return f"k:{_json({key: value}).decode()}"


def splits(field: Field, *values: Any) -> bool:
    """Have the parts of these values their own managers?"""
    return field.is_granular and not (field.deduces and any(value and not isinstance(value, dict) for value in values))


def parts(field: Field, value: Any) -> dict[str, tuple[Field, Any]]:
    """The parts of a granular value by their elements, each with its field; what has no name or no type is left out."""
    if not value:
        return {}
    if field.kind == STRUCT:
        known = field.fields
        return {known[name].element: (known[name], inner) for name, inner in value.items() if name in known}
    assert field.item is not None
    if field.kind == MAP:
        return {f"f:{name}": (field.item, inner) for name, inner in value.items()}
    found: dict[str, tuple[Field, Any]] = {}
    for item in value:
        try:
            found.setdefault(element_of(field, item), (field.item, item))
        except MissingKeyError:
            continue
    return found


def path_text(elements: Iterable[str]) -> str:
    """``.spec.containers[name="c"].image``."""
    return "".join(_element_text(element) for element in elements)


def _element_text(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "v:":
        return f"[={rest}]"
    if kind == "i:":
        return f"[{rest}]"
    keys = msgspec.json.decode(rest)
    return f"[{','.join(f'{key}={_json(value).decode()}' for key, value in keys.items())}]"


# ---------------------------------------------------------------- sets


def is_member(node: Fields) -> bool:
    return not node or "." in node


def _made(member: bool, children: Fields) -> Fields | None:
    """A node; None if it would be no member and have no children."""
    if member:
        return {".": {}, **children} if children else {}
    return children or None


def _children(node: Fields) -> Iterator[tuple[str, Fields]]:
    return ((element, inner) for element, inner in node.items() if element != ".")


def union(one: Fields, other: Fields) -> Fields:
    """All of both, in order if they are; ``one`` itself if the other adds nothing."""
    found = one
    is_longer = False
    for element, theirs in other.items():
        if element == ".":
            continue
        mine = found.get(element)
        if mine is None:
            together, is_longer = theirs, True
        elif mine or theirs:
            below = union(mine, theirs)
            together = mine if below is mine and is_member(mine) >= is_member(theirs) else _node(mine, theirs, below)
        else:
            continue
        if together is not mine:
            if found is one:
                found = dict(one)
            found[element] = together
    return {element: found[element] for element in sorted(found)} if is_longer else found


def _node(one: Fields, other: Fields, below: Fields) -> Fields:
    made = _made(is_member(one) or is_member(other), {element: node for element, node in below.items() if element != "."})
    assert made is not None, "both had something"
    return made


def difference(one: Fields, other: Fields) -> Fields:
    """What is in ``one`` and not in ``other``, in the order of ``one``; ``one`` itself if they share nothing."""
    found = one
    for element, theirs in other.items():
        mine = one.get(element)
        if mine is None or element == ".":
            continue
        below = difference(mine, theirs) if mine and theirs else mine
        if below is mine and not (is_member(mine) and is_member(theirs)):
            continue
        member = is_member(mine) and not is_member(theirs)
        left = _made(member, {element: node for element, node in below.items() if element != "."})
        if found is one:
            found = dict(one)
        if left is None:
            del found[element]
        else:
            found[element] = left
    return found


def intersection(one: Fields, other: Fields) -> Fields:
    found: Fields = {}
    for element, mine in _children(one):
        theirs = other.get(element)
        if theirs is not None:
            both = _made(is_member(mine) and is_member(theirs), intersection(mine, theirs))
            if both is not None:
                found[element] = both
    return found


def members(fields: Fields) -> Iterator[tuple[str, ...]]:
    """The paths in a set, in order."""
    for element, node in sorted(_children(fields)):
        if is_member(node):
            yield (element,)
        for path in members(node):
            yield (element, *path)


def in_order(fields: Fields) -> Fields:
    """The same set, written in upstream's order."""
    return {element: in_order(node) if (node := fields[element]) else node for element in sorted(fields)}


def fields_of(field: Field, value: Any) -> Fields:
    """The set of what a granular value says itself."""
    found: Fields = {}
    is_list = field.kind == ARRAY
    for element, (inner, said) in parts(field, value).items():
        if not splits(inner, said) or said is None or said == {}:
            found[element] = {}
            continue
        node = _made(is_list, fields_of(inner, said))
        if node is not None:
            found[element] = node
    return found


# ---------------------------------------------------------------- comparison


class Comparison(NamedTuple):
    """What differs: fields that are new or have another value, and those that are gone."""

    changed: Fields
    removed: Fields


def compare(field: Field, old: Mapping[str, Any], new: Mapping[str, Any], ignored: tuple[str, ...] = ()) -> Comparison:
    """Compare two documents of a kind, without what nobody manages and without the top-level fields ``ignored``."""
    changed: Fields = {}
    removed: Fields = {}
    more: Fields = {}
    less: Fields = {}
    _compare_named(field, old, new, _apart(ignored), changed, removed)
    _compare_named(field.fields["metadata"], old.get("metadata") or {}, new.get("metadata") or {}, _IDENTITY, more, less)
    if more:
        changed["f:metadata"] = more
    if less:
        removed["f:metadata"] = less
    return Comparison(changed, removed)


@cache
def _apart(ignored: tuple[str, ...]) -> frozenset[str]:
    return frozenset(("kind", "apiVersion", "metadata", *ignored))


def _compare_named(
    field: Field, old: Mapping[str, Any], new: Mapping[str, Any], ignored: frozenset[str], changed: Fields, removed: Fields
) -> None:
    """Put the nodes of what differs between two structs, or maps, into ``changed`` and ``removed``."""
    known, item = (field.fields, None) if field.kind == STRUCT else (_NO_FIELDS, field.item)
    for name, value in new.items():
        was = old.get(name, ABSENT)
        if was is value or was == value or name in ignored:
            continue
        inner = item or known.get(name)
        if inner is None:
            continue
        element = inner.element if item is None else f"f:{name}"
        if not inner.is_granular:
            changed[element] = _WHOLE
        elif was is ABSENT and not (
            inner.required and inner.kind == ARRAY
        ):  # Go writes a list that must be there as null before it is
            changed[element] = _added(inner, value)
        else:
            _put(element, *_compare(inner, None if was is ABSENT else was, value), changed, removed)
    if old.keys() <= new.keys():
        return
    for name, value in old.items():
        if name in new or name in ignored:
            continue
        inner = item or known.get(name)
        if inner is not None:
            _put(f"f:{name}", *_compare(inner, value, ABSENT), changed, removed)


def _added(field: Field, value: Any) -> Fields:
    """The node of what stands where nothing stood."""
    if not value or not splits(field, value):
        return _WHOLE
    found: Fields = {".": _WHOLE}
    if field.kind == STRUCT:
        known = field.fields
        for name, part in value.items():
            inner = known.get(name)
            if inner is not None:
                found[inner.element] = _added(inner, part) if inner.is_granular else _WHOLE
    else:
        for element, (inner, part) in parts(field, value).items():
            found[element] = _added(inner, part) if inner.is_granular else _WHOLE
    return found if len(found) > 1 else _WHOLE


def _compare(field: Field, old: Any, new: Any) -> tuple[Fields | None, Fields | None]:
    """The nodes of what changed and of what is gone at a place where ``old``, which was there, and ``new`` differ."""
    if not (old or new) or not splits(field, old, new):
        return (None, _WHOLE) if new is ABSENT else (_WHOLE, None)
    changed: Fields = {}
    removed: Fields = {}
    if field.kind != ARRAY:
        _compare_named(field, old or {}, new or {}, _NOTHING, changed, removed)
    elif (places := _differing(field, old, new)) is not None:
        assert field.item is not None, "a list has elements"
        for place in places:
            _put(element_of(field, new[place]), *_compare(field.item, old[place], new[place]), changed, removed)
    else:
        before, after = parts(field, old), parts(field, new)
        for element, (inner, was) in before.items():
            value = after[element][1] if element in after else ABSENT
            if was is not value and was != value:
                _put(element, *_compare(inner, was, value), changed, removed)
        for element, (inner, value) in after.items():
            if element not in before:
                changed[element] = _added(inner, value)
    return changed or None, _made(new is ABSENT, removed)


def _differing(field: Field, old: Any, new: Any) -> list[int] | None:
    """Where two lists of the same elements in the same order differ, which most do; None for any others."""
    if not old or not new or len(old) != len(new) or field.list_type != "map":
        return None
    found: list[int] = []
    for place, (was, value) in enumerate(zip(old, new, strict=True)):
        if was != value:
            for key in field.list_keys:
                if was.get(key, ABSENT) != value.get(key):
                    return None
            found.append(place)
    return found


_NOTHING: frozenset[str] = frozenset()
_NO_FIELDS: Mapping[str, Field] = {}
_WHOLE: Fields = {}
"""The node of what has no parts, which nobody changes."""


def _put(element: str, more: Fields | None, less: Fields | None, changed: Fields, removed: Fields) -> None:
    if more is not None:
        changed[element] = more
    if less is not None:
        removed[element] = less


# ---------------------------------------------------------------- entries


class Manager(NamedTuple):
    """Who writes, how, and through what; each has one entry."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    def owns(self, entry: Entry) -> bool:
        return bool(
            entry["manager"] == self.name
            and entry["operation"] == self.operation
            and entry.get("subresource", "") == self.subresource
            and (self.operation == APPLY or entry["apiVersion"] == self.api_version)
        )

    def entry(self, fields: Fields, time: str) -> Document:
        """An entry of this manager; ``fields`` are in order."""
        made: Document = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        if self.subresource:
            made["subresource"] = self.subresource
        return made


def manager_name(said: str, user_agent: str) -> str:
    """The manager that a request names, or else the program that sends it."""
    if said:
        return said
    return _program(user_agent) if len(user_agent) <= _REMEMBERED_MAX else _program.__wrapped__(user_agent)


@lru_cache(maxsize=1024)
def _program(user_agent: str) -> str:
    agent = "".join(character for character in user_agent.partition("/")[0] if character.isprintable())
    return agent[:MANAGER_LENGTH_MAX] or "unknown"


def held(said: Any, stored: Sequence[Entry]) -> Sequence[Entry]:
    """The entries that an update is based on: those it brings along, if it understands them, or else the stored ones.

    A single empty entry lets all go.
    """
    if not said or said == stored:
        return stored
    if said == [{}]:
        return ()
    return [{**entry, "fieldsV1": in_order(entry["fieldsV1"])} for entry in said] if all(map(_is_entry, said)) else stored


def _is_entry(entry: Entry) -> bool:
    return (
        entry.get("operation") in (APPLY, UPDATE)
        and entry.get("fieldsType") == "FieldsV1"
        and bool(entry.get("apiVersion"))
        and "manager" in entry
        and _are_fields(entry.get("fieldsV1"))
    )


def _are_fields(node: Any) -> bool:
    return isinstance(node, dict) and all(_is_element(element) and _are_fields(inner) for element, inner in node.items())


def _is_element(element: str) -> bool:
    if element[:2] not in ("k:", "v:"):
        return element == "." or (element[:2] == "f:" and len(element) > 2)
    try:
        said = msgspec.json.decode(element[2:].encode())
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) or element[0] == "v"


def updated(entries: Sequence[Entry], found: Comparison, manager: Manager, time: str) -> Sequence[Entry]:
    """The entries, whose sets are in order, after an update by ``manager``; the very same ones if it changed nothing that is
    managed."""
    if not found.changed and not found.removed:
        return entries
    changed = in_order(found.changed)
    touched = union(changed, found.removed) if found.removed else changed
    made: list[Entry] = []
    is_new = bool(changed)
    for entry in entries:
        fields = entry["fieldsV1"]
        mine = manager.owns(entry)
        if mine:
            left = union(difference(fields, found.removed), changed)
            is_new = False
        else:
            left = difference(fields, touched)
        if left is fields and not (mine and changed):
            made.append(entry)
        elif left:
            more = {"time": time} if mine and changed else {}
            made.append({**entry, **more, "fieldsV1": left})
    if is_new:
        made.append(manager.entry(changed, time))
    return _sorted(_capped(made)) if len(made) > 1 else made


def _sorted(entries: list[Entry]) -> list[Entry]:
    return sorted(entries, key=_place)


def _place(entry: Entry) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry["manager"],
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def _capped(entries: list[Entry]) -> list[Entry]:
    """At most ``UPDATERS_MAX`` managers that update: the oldest become one, nameless."""
    if len(entries) <= UPDATERS_MAX:
        return entries
    updaters = [entry for entry in entries if entry["operation"] == UPDATE]
    if len(updaters) <= UPDATERS_MAX:
        return entries
    updaters = _sorted(updaters)
    surplus = len(updaters) - UPDATERS_MAX + 1
    old = [entry for entry in updaters[:surplus] if entry["apiVersion"] == updaters[0]["apiVersion"]]
    fields: Fields = {}
    for entry in old:
        fields = union(fields, entry["fieldsV1"])
    bucket = Manager(ANCIENT, UPDATE, old[0]["apiVersion"])
    kept = [entry for entry in entries if entry not in old]
    return [*kept, bucket.entry(fields, old[-1].get("time") or "")]


def replaced(entries: Iterable[Entry], own: Document | None) -> Sequence[Entry]:
    """The entries in order, with ``own``, if there is one."""
    return _sorted([*entries, *([own] if own is not None else [])])
