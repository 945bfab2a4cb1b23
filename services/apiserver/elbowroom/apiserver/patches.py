"""The three patches that carry changes: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

All work on parsed JSON; the first changes the document it is given, which the caller owns. Where upstream's libraries deviate
from the RFCs, so do these: a JSON patch path need not begin with a slash (its first segment is dropped unseen), negative indices
count from the end, a missing ``value`` is null; a merge patch drops nulls inside the values that it adds. Strategic merge is
Kubernetes' own: lists of maps are merged by the key that the type declares, and directives (``$patch``, ``$setElementOrder/…``,
``$deleteFromPrimitiveList/…``, ``$retainKeys``) say what a merge cannot.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from elbowroom.apiserver.gotext import go_text, go_type
from elbowroom.apiserver.schema import Field

OPERATIONS_MAX = 10_000
COPIED_BYTES_MAX = 3 * 1024 * 1024
"""How much the ``copy`` operations of one JSON patch may add up to (the API server's limit of a request's size)."""


class PatchError(Exception):
    """The patch does not apply. ``code`` is the HTTP status; 422 is answered without details, as upstream does."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


# ---------------------------------------------------------------- JSON patch


def json_patch(document: Any, operations: Any) -> Any:
    """The document after all operations, or ``PatchError``: 400 for no patch, 413 for too many, 422 if one does not apply."""
    if operations is None:
        return document
    if not isinstance(operations, list):
        raise PatchError(
            400,
            f"error decoding patch: json: cannot unmarshal {_json_kind(operations)} into Go value of type []handlers.jsonPatchOp",
        )
    for operation in operations:
        _check_operation(operation)
    if len(operations) > OPERATIONS_MAX:
        raise PatchError(413, f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(operations)}")
    holder = {"": document}
    budget = [COPIED_BYTES_MAX]
    for operation in operations:
        _apply_operation(holder, operation or {}, budget)
    return holder[""]


def _check_operation(operation: Any) -> None:
    if operation is None:
        return
    if not isinstance(operation, dict):
        raise PatchError(
            400, f"error decoding patch: json: cannot unmarshal {_json_kind(operation)} into Go value of type handlers.jsonPatchOp"
        )
    for member in ("op", "from", "path"):
        value = operation.get(member)
        if value is not None and not isinstance(value, str):
            what = f"{_json_kind(value)} into Go struct field jsonPatchOp.{member} of type string"
            raise PatchError(400, f"error decoding patch: json: cannot unmarshal {what}")


def _apply_operation(holder: dict[str, Any], operation: dict[str, Any], budget: list[int]) -> None:
    path, value = operation.get("path"), operation.get("value")
    match operation.get("op"):
        case "add":
            _add(holder, path, value)
        case "remove":
            _remove(holder, path)
        case "replace":
            if path == "":
                if not isinstance(value, dict | list):
                    raise _inapplicable(f"replace operation value must be object or array: {go_text(value)}")
                holder[""] = value
                return
            container, key = _container(holder, path)
            _set(container, key, value)  # of an object's absent member too, unlike RFC 6902
        case "move":
            container, key = _container(holder, operation.get("from"))
            moved = _get(container, key)
            _remove(holder, operation.get("from"))
            _add(holder, path, moved)
        case "copy":
            container, key = _container(holder, operation.get("from"))
            # By way of its bytes, whose number is limited: a patch may ask for many megabytes of copies.
            copied = msgspec.json.encode(container.get(key) if isinstance(container, dict) else _get(container, key))
            budget[0] -= len(copied)
            if budget[0] < 0:
                raise _inapplicable("the accumulated size increase of copy operations exceeds the limit")
            _add(holder, path, msgspec.json.decode(copied))
        case "test":
            _test(holder, path, value)
        case other:
            raise _inapplicable(f"Unexpected kind: {other}")


def _inapplicable(why: str) -> PatchError:
    return PatchError(422, why)


def _container(holder: dict[str, Any], path: Any) -> tuple[Any, str]:
    """The object or array that the last segment of ``path`` stands in, and that segment."""
    segments = path.split("/") if isinstance(path, str) else []
    if len(segments) < 2:
        raise _inapplicable(f"doc is missing path: {path}")
    at = holder[""]
    for segment in segments[1:-1]:
        at = _get(at, _decoded(segment))
        if not isinstance(at, dict | list):
            raise _inapplicable(f"doc is missing path: {path}")
    return at, _decoded(segments[-1])


def _decoded(segment: str) -> str:
    return segment.replace("~1", "/").replace("~0", "~")


def _index(key: str, size: int) -> int:
    try:
        index = int(key)
    except ValueError as why:
        raise _inapplicable(f"invalid array index {key!r}") from why
    if not -size <= index < size:
        raise _inapplicable(f"Unable to access invalid index: {index}")
    return index % size


def _get(container: Any, key: str) -> Any:
    if isinstance(container, list):
        return container[_index(key, len(container))]
    if key not in container:
        raise _inapplicable(f"unable to get nonexistent key: {key}")
    return container[key]


def _set(container: Any, key: str, value: Any) -> None:
    if isinstance(container, list):
        container[_index(key, len(container))] = value
    else:
        container[key] = value


def _add(holder: dict[str, Any], path: Any, value: Any) -> None:
    container, key = _container(holder, path)
    if not isinstance(container, list):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(key, len(container) + 1), value)


def _remove(holder: dict[str, Any], path: Any) -> None:
    container, key = _container(holder, path)
    if isinstance(container, list):
        del container[_index(key, len(container))]
    elif key not in container:
        raise _inapplicable(f"Unable to remove nonexistent key: {key}")
    else:
        del container[key]


def _test(holder: dict[str, Any], path: Any, value: Any) -> None:
    if path == "":
        found = holder[""]
    else:
        container, key = _container(holder, path)
        found = container.get(key) if isinstance(container, dict) else _get(container, key)
    if not _same(found, value):
        raise _inapplicable(f"testing value {path} failed")


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON values: ``1``, ``1.0`` and ``true`` are three different ones."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _json_kind(value: Any) -> str:
    """What Go's decoder calls a JSON value."""
    if isinstance(value, bool):
        return "bool"
    return {dict: "object", list: "array", str: "string", int: "number", float: "number"}.get(type(value), "null")


# ---------------------------------------------------------------- merge patch


def merge_patch(document: Any, patch: Any) -> Any:
    """The document after a merge patch; ``PatchError`` 400 if the patch is no object.

    The document itself is left as it is, and what the patch does not touch is shared with it.
    """
    if not isinstance(patch, dict):
        if patch is None:
            return document
        raise PatchError(
            400, f"error decoding patch: json: cannot unmarshal {_json_kind(patch)} into Go value of type map[string]interface {{}}"
        )
    return _merged_members(document, patch)


def _merged_members(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
            continue
        held = merged.get(key)
        if isinstance(held, dict) and isinstance(value, dict):
            merged[key] = _merged_members(held, value)
        else:
            merged[key] = _without_nulls(value)
    return merged


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(member) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(member) for member in value if member is not None]
    return value


# ---------------------------------------------------------------- strategic merge patch

_PATCH, _RETAIN_KEYS = "$patch", "$retainKeys"
_SET_ORDER, _DELETE_PRIMITIVES = "$setElementOrder", "$deleteFromPrimitiveList"


def strategic_patch(document: dict[str, Any], patch: dict[str, Any], field: Field) -> dict[str, Any]:
    """The document, whose kind is ``field``, after a strategic merge patch, which is used up.

    The document itself is left as it is, and what the patch does not touch is shared with it.

    ``PatchError``: 400 for a malformed directive, 422 for lists of lists, 500 (upstream's choice) for all else, a list element
    without its merge key for one.
    """
    return _merge_map(document, patch, field)


def _merge_map(original: dict[str, Any], patch: dict[str, Any], field: Field | None) -> dict[str, Any]:
    if _PATCH in patch:
        match patch[_PATCH]:
            case "replace":
                return {key: value for key, value in patch.items() if key != _PATCH}
            case "delete":
                return {}
            case other:
                raise PatchError(500, f"unknown patch type: {go_text(other)} in map: {go_text(patch)}")
    original = dict(original)
    directives = [key for key in patch if key[:1] == "$"]
    if directives:
        patch = dict(patch)
        if _RETAIN_KEYS in patch:
            _retain_keys(original, patch)
        for key in directives:
            if key.startswith(_SET_ORDER):
                _merge_in_order(original, patch, key, field)
    for key, value in patch.items():
        is_deletion = key.startswith(_DELETE_PRIMITIVES)
        if is_deletion:
            prefix, slash, key = key.partition("/")
            if not slash or prefix != _DELETE_PRIMITIVES:
                raise PatchError(400, "invalid patch format of primitive list")
        held: Any = original.get(key)
        if held is not None and type(held) is type(value):
            if isinstance(value, dict):
                value = _merge_map(held, value, _member(field, key))
            elif isinstance(value, list):
                member = _member(field, key)
                value = _merge_list(held, value, member, is_deletion) if is_deletion or _merges(member) else value
            original[key] = value
        elif value is None:
            original.pop(key, None)
        elif not is_deletion:
            _take(original, key, value)
    return original


def _member(field: Field | None, key: str) -> Field | None:
    return None if field is None else field.fields.get(key)


def _merges(field: Field | None) -> bool:
    """Is the list merged, element by element, rather than replaced?"""
    return field is not None and field.strategy.startswith("merge")


def _take(original: dict[str, Any], key: str, value: Any) -> None:
    """Put in a value that has no counterpart to be merged with: nulls and directives in it are dropped."""
    value, keep = _plain(value)
    if keep:
        original[key] = value
    else:
        original.pop(key, None)


def _plain(value: Any) -> tuple[Any, bool]:
    if isinstance(value, dict):
        if _PATCH in value:
            return None, False
        members = {key: _plain(member) for key, member in value.items() if member is not None}
        return {key: member for key, (member, keep) in members.items() if keep}, True
    if isinstance(value, list):
        return [item for item, keep in map(_plain, value) if keep], True
    return value, True


def _retain_keys(original: dict[str, Any], patch: dict[str, Any]) -> None:
    retained = patch.pop(_RETAIN_KEYS)
    if not isinstance(retained, list):
        raise PatchError(400, "invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith((_DELETE_PRIMITIVES, _SET_ORDER)) and key not in retained:
            raise PatchError(400, "invalid patch format of retainKeys")
    for key in [key for key in original if key not in retained]:
        del original[key]


def _merge_in_order(original: dict[str, Any], patch: dict[str, Any], directive: str, field: Field | None) -> None:
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise PatchError(500, f"expected a []interface {{}}, but received a {go_type(order)}")
    prefix, slash, key = directive.partition("/")
    if not slash or prefix != _SET_ORDER:
        raise PatchError(400, "invalid patch format of setElementOrder list")
    held, wanted = original.get(key), patch.get(key)
    for one, present in ((held, key in original), (wanted, key in patch)):
        if present and not isinstance(one, list):
            raise PatchError(500, f"expected a []interface {{}}, but received a {go_type(one)}")
    member = _member(field, key)
    merge_key = "" if member is None else member.key
    if merge_key and wanted and _merges(member):
        in_order = _merged_in_order(held or [], wanted, order, merge_key, member)
        if in_order is not None:
            original[key] = in_order
            del patch[key]
            return
    _check_order(wanted or [], order, merge_key)
    if held is None and wanted is None:
        return
    before = list(held or [])
    if wanted is None:
        merged = before
    elif held is None:
        merged, _ = _plain(wanted)
    elif _merges(member):
        merged = _merge_list(held, wanted, member, False)
    else:
        merged = wanted
    are_maps = _are_maps(before, wanted or [])
    original[key] = _ordered(merged, order, before, merge_key, are_maps)
    patch.pop(key, None)


def _merged_in_order(held: list[Any], wanted: list[Any], order: list[Any], merge_key: str, field: Field | None) -> list[Any] | None:
    """The elements of both lists in ``order``, where it names all that stand and each has a name of its own; None for the rest:
    it leaves the finer points to those who know them."""
    stood, said, places = _by_name(held, merge_key), _by_name(wanted, merge_key), _by_name(order, merge_key)
    if stood is None or said is None or places is None or not stood.keys() <= places.keys():
        return None
    if list(said) != [name for name in places if name in said] or any(_PATCH in item for item in wanted):
        return None
    merged: list[Any] = []
    for name in places:
        item, one = said.get(name), stood.get(name)
        if item is None:
            if one is not None:
                merged.append(one)
        else:
            merged.append(_plain(item)[0] if one is None else _merge_map(one, item, field))
    return merged


def _by_name(items: list[Any], merge_key: str) -> dict[str, Any] | None:
    """The elements by their names, in order; None unless each is a map with a name that is a text and no other's."""
    found: dict[str, Any] = {}
    for item in items:
        name = item.get(merge_key) if type(item) is dict else None
        if type(name) is not str:
            return None
        found[name] = item
    return found if len(found) == len(items) else None


def _check_order(wanted: list[Any], order: list[Any], merge_key: str) -> None:
    """The elements of a patch must stand in the order that the patch itself asks for."""
    if not wanted or not order:
        return
    kept = [item for item in wanted if not (merge_key and isinstance(item, dict) and item.get(_PATCH) == "delete")]
    at = 0
    for position in order:
        while at < len(kept) and isinstance(kept[at], dict) and _PATCH in kept[at]:
            at += 1
        if at < len(kept) and _merge_value(kept[at], merge_key) == _merge_value(position, merge_key):
            at += 1
    if at < len(kept):
        raise PatchError(
            500, f"The order in patch list:\n{go_text(wanted)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
        )


def _merge_value(item: Any, merge_key: str) -> Any:
    if not merge_key:
        return item
    if not isinstance(item, dict):
        raise PatchError(500, f"expected a map[string]interface {{}}, but received a {go_type(item)}")
    if merge_key not in item:
        raise PatchError(500, f"map: {go_text(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _are_maps(*lists: list[Any]) -> bool:
    """Are the elements maps? All must be of one type, which may not be a list."""
    if any(lists) and all(type(item) is dict for items in lists for item in items):
        return True
    kinds = {go_type(item): item for items in lists for item in items}
    if not kinds:
        raise PatchError(500, "no elements in any of the given slices")
    if any(isinstance(item, list) for item in kinds.values()):
        raise PatchError(422, "lists of lists are not supported")
    if len(kinds) > 1:
        raise PatchError(500, f"list element types are not identical: {go_text(list(lists))}")
    return isinstance(next(iter(kinds.values())), dict)


_NONE = object()


class _Places:
    """The first place of each value in a list. A patch may bring tens of thousands, so none is looked for one by one."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._first: dict[Any, int] = {}
        for place, value in enumerate(values):
            self.add(value, place)

    def add(self, value: Any, place: int) -> None:
        self._first.setdefault(value if type(value) is str else _frozen(value), place)

    def find(self, value: Any) -> int:
        """-1 if it is not there."""
        return self._first.get(value if type(value) is str else _frozen(value), -1)

    def tell_apart(self, count: int) -> bool:
        """Had all of so many elements a value, each another one?"""
        return len(self._first) == count and _NONE not in self._first


def _frozen(value: Any) -> Any:
    """Something to hash that is equal where values are."""
    if isinstance(value, dict):
        return dict, frozenset((key, _frozen(member)) for key, member in value.items())
    if isinstance(value, list):
        return list, tuple(map(_frozen, value))
    return value


def _merge_list(original: list[Any], patch: list[Any], field: Field | None, is_deletion: bool) -> list[Any]:
    if not original and not patch:
        return original
    if not _are_maps(original, patch):
        if is_deletion:
            gone = _Places(patch)
            return [item for item in original if gone.find(item) < 0]
        everything = original + patch
        first = _Places(everything)
        merged = [item for place, item in enumerate(everything) if first.find(item) == place]
        return _ordered(merged, patch, original, "", False)
    merge_key = "" if field is None else field.key
    if not merge_key:
        raise PatchError(500, f"cannot merge lists without merge key for {'' if field is None else field.name}")
    original, patch = _without_directives(original, patch, merge_key)
    merged = list(original)
    places = _Places(held.get(merge_key, _NONE) for held in merged)
    last, in_place = -1, True
    for item in patch:
        wanted = _merge_value(item, merge_key)
        at = places.find(wanted)
        in_place, last = in_place and at > last, at
        if at >= 0:
            merged[at] = _merge_map(merged[at], item, field)
        else:
            places.add(wanted, len(merged))
            merged.append(_plain(item)[0])
    if in_place and places.tell_apart(len(merged)):
        return merged  # elements that were there, in the order in which they were there: nothing moves
    return _ordered(merged, patch, original, merge_key, True)


def _without_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Carry out ``$patch`` elements; what is left of both lists."""
    rest: list[Any] = []
    gone = _Places()
    replaces = False
    for item in patch:
        match item.get(_PATCH) if _PATCH in item else "":
            case "":
                rest.append(item)
            case "delete":
                gone.add(_merge_value(item, merge_key), 0)
            case "replace":
                replaces = True
            case "merge":
                raise PatchError(500, "merging lists cannot yet be specified in the patch")
            case other:
                raise PatchError(500, f"unknown patch type: {go_text(other)} in map: {go_text(item)}")
    kept = [] if replaces else [held for held in original if merge_key not in held or gone.find(held[merge_key]) < 0]
    return kept, rest


def _ordered(merged: list[Any], patch_order: list[Any], server_order: list[Any], merge_key: str, are_maps: bool) -> list[Any]:
    """What the patch speaks of in the patch's order, woven into the rest in the order that the server had."""

    def values(items: list[Any]) -> list[Any]:
        return [_merge_value(item, merge_key) for item in items] if are_maps else items

    def places(found: list[Any], order: list[Any]) -> list[int]:
        return list(map(_Places(order).find, found))

    found = values(merged)
    placed = list(zip(merged, places(found, values(patch_order)), places(found, values(server_order)), strict=True))
    mine = sorted((one for one in placed if one[1] >= 0), key=lambda one: one[1])
    others = sorted((one for one in placed if one[1] < 0), key=lambda one: one[2])
    woven: list[Any] = []
    at = 0
    for item, _, on_server in others:
        while at < len(mine) and not 0 <= on_server < mine[at][2]:
            woven.append(mine[at][0])
            at += 1
        woven.append(item)
    return woven + [one[0] for one in mine[at:]]
