"""The field tree: what each field of each kind is called, holds, and how patches merge it."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from elbowroom.apiserver.schema.table import KINDS, STRINGS, TYPES

STRING, INT32, INT64, BOOL, FLOAT, QUANTITY, INT_OR_STRING, TIME, MICRO_TIME, BYTES, ANY, STRUCT, ARRAY, MAP = range(14)

_SCALARS = {
    "string": STRING,
    "int32": INT32,
    "int": INT64,
    "int64": INT64,
    "bool": BOOL,
    "float64": FLOAT,
    "quantity": QUANTITY,
    "intorstring": INT_OR_STRING,
    "time": TIME,
    "microtime": MICRO_TIME,
    "bytes": BYTES,
    "any": ANY,
}
_GO = {
    "quantity": "resource.Quantity",
    "intorstring": "intstr.IntOrString",
    "time": "v1.Time",
    "microtime": "v1.MicroTime",
    "bytes": "[]uint8",
    "any": "interface {}",
}


class Struct:
    """A Go struct: its fields by name, in upstream's order."""

    __slots__ = ("always", "atomic", "fields", "go", "name", "order")

    def __init__(self, name: str, atomic: bool) -> None:
        self.name = name
        self.go = name.rpartition(".")[2]
        """The name in upstream's messages."""
        self.atomic = atomic
        self.fields: dict[str, Field] = {}
        self.order: dict[str, int] = {}
        """The place of each field among them."""
        self.always: tuple[tuple[str, Field], ...] = ()
        """Fields that are written even when they are zero."""

    def __repr__(self) -> str:
        return f"<Struct {self.name}>"

    def decode(self, document: dict[str, Any]) -> Any:
        """A document as this struct keeps it, of a struct that has no Go type to go by (custom kinds); None for all others."""
        return None


class Field:
    """One field, list element or map value.

    ``kind`` is one of the constants above; ``item`` describes the elements of an ARRAY or the values of a MAP, ``struct`` the
    type of a STRUCT. ``strategy`` (``merge``, ``merge,retainKeys``, ``replace`` or empty) and ``key`` rule strategic merge
    patches; ``list_type`` (``map``, ``set``, ``atomic``; an empty one means atomic) and ``list_keys`` rule apply.
    """

    __slots__ = (
        "deduces",
        "default",
        "drops_zero",
        "element",
        "go",
        "is_granular",
        "is_resource_list",
        "item",
        "key",
        "kind",
        "list_keys",
        "list_type",
        "name",
        "null_zero",
        "number",
        "required",
        "strategy",
        "struct",
    )

    def __init__(self, name: str, kind: int, go: str) -> None:
        self.name = name
        self.element = f"f:{name}"
        """What it is called in a set of fields."""
        self.number: tuple[int, ...] = (0,)
        """The field's number in protobuf, behind those of the messages that JSON does not show."""
        self.kind = kind
        self.go = go
        self.item: Field | None = None
        self.struct: Struct | None = None
        self.default: Any = None
        """What a missing key of a list's element counts as."""
        self.deduces = False
        """Nobody described what stands here: an object has parts, anything else is one value."""
        self.is_granular = False
        """Has each part of its value its own manager? An atomic one has one manager as a whole."""
        self.is_resource_list = False
        self.drops_zero = False
        self.null_zero = False
        self.required = False
        self.strategy = ""
        self.key = ""
        self.list_type = ""
        self.list_keys: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Field {self.name} {self.go}>"

    @property
    def fields(self) -> Mapping[str, "Field"]:
        """The fields of the struct that it holds, directly or as list elements or map values; else none."""
        at: Field | None = self
        while at is not None:
            if at.struct is not None:
                return at.struct.fields
            at = at.item
        return {}


class _Registry:
    """All structs and kinds; ``previews`` says whether fields beyond v1.37 are there."""

    def __init__(self, previews: bool) -> None:
        self._previews = previews
        self._strings = frozenset(STRINGS.split())
        self._lines: dict[str, tuple[bool, list[str]]] = {}
        lines: list[str] = []
        for line in TYPES.strip("\n").split("\n"):
            if line[0] == " ":
                lines.append(line)
            else:
                name, _, flag = line.partition(" ")
                lines = []
                self._lines[name] = (flag == "atomic", lines)
        self._structs: dict[str, Struct] = {}
        self.kinds: dict[tuple[str, str, str], str] = {}
        version = ("", "")
        for line in KINDS.strip("\n").split("\n"):
            if line[0] != " ":
                head, _, line = line.partition(": ")
                group, _, rest = head.rpartition("/")
                version = ("" if group == "core" else group, rest)
            for word in line.split():
                kind, _, struct = word.partition("=")
                self.kinds[version[0], version[1], kind] = struct or kind

    def struct(self, name: str) -> Struct:
        """The struct of that name; its fields are built when first asked for."""
        found = self._structs.get(name)
        if found is None:
            atomic, lines = self._lines[name]
            found = self._structs[name] = Struct(name, atomic)
            always = []
            for line in lines:
                words = line.split()
                if "preview" in words and not self._previews:
                    continue
                field, filled = self._field(words)
                found.fields[field.name] = field
                if filled:
                    always.append((field.name, field))
            found.always = tuple(always)
            found.order = {name: place for place, name in enumerate(found.fields)}
        return found

    def _field(self, words: Sequence[str]) -> tuple[Field, bool]:
        name, text = words[1], words[2]
        required = text.endswith("!")
        text = text.rstrip("!")
        mark = text[-1] if text[-1] in "-+~" else ""
        field = self.typed(name, text.rstrip("-+~"))
        field.number = tuple(map(int, words[0].split(".")))
        field.required = required
        field.drops_zero = mark == "-"
        field.null_zero = mark == "~" or field.kind in (TIME, MICRO_TIME)
        for word in words[3:]:
            if word.startswith("patch="):
                field.strategy, _, field.key = word[6:].partition(":")
            elif word.startswith("map="):
                field.list_type, field.list_keys = "map", tuple(word[4:].split(","))
            elif word in ("set", "atomic"):
                field.list_type = word
        if field.kind != STRUCT:
            field.is_granular = (field.kind == MAP and field.list_type != "atomic") or field.list_type in ("map", "set")
        elif field.list_type == "atomic":
            field.is_granular = False
        return field, mark in ("+", "~")

    def typed(self, name: str, text: str) -> Field:
        """A field of the type that ``text`` names."""
        if text.startswith("[]"):
            item = self.typed(name, text[2:])
            field = Field(name, ARRAY, f"[]{item.go}")
            field.item = item
        elif text.startswith("{}"):
            item = self.typed(name, text[2:])
            field = Field(name, MAP, f"map[string]{item.go}")
            field.item, field.is_granular = item, True
        elif text == "ResourceList":
            field = Field(name, MAP, "v1.ResourceList")
            field.item = self.typed(name, "quantity")
            field.is_resource_list = field.is_granular = True
        elif text in _SCALARS:
            field = Field(name, _SCALARS[text], _GO.get(text, text))
        elif text in self._strings:
            field = Field(name, STRING, text if "." in text else f"v1.{text}")
        else:
            field = Field(name, STRUCT, f"v1.{text.rpartition('.')[2]}")
            field.struct = self.struct(text)
            field.is_granular = not field.struct.atomic
        return field


@cache
def _registry(previews: bool) -> _Registry:
    return _Registry(previews)


@cache
def find(group: str, version: str, kind: str, *, previews: bool = False) -> Field | None:
    """The tree of a kind, or None if it is none of ours. ``group`` is empty for core.

    ``previews`` adds the fields of designs that v1.37 has not: ``spec.scaleDownGracePeriodSeconds`` of a pod and
    ``resizeStatus`` of a container's status.
    """
    registry = _registry(previews)
    if kind.endswith("List") and (item := find(group, version, kind[:-4], previews=previews)) is not None:
        return _list_of(registry, kind, item)
    struct = registry.kinds.get((group, version, kind))
    if struct is None and kind in ("DeleteOptions", "Status"):
        struct = kind  # every group has these
    return None if struct is None else registry.typed(kind, struct)


def _list_of(registry: _Registry, kind: str, item: Field) -> Field:
    whole = Struct(kind, atomic=False)
    for words in ("0 kind string-", "0 apiVersion string-", "1 metadata ListMeta+"):
        made, _ = registry._field(words.split())
        whole.fields[made.name] = made
    items = Field("items", ARRAY, f"[]{item.go}")
    items.item, items.required = item, True
    whole.fields["items"] = items
    whole.order = {name: place for place, name in enumerate(whole.fields)}
    field = Field(kind, STRUCT, f"v1.{kind}")
    field.struct = whole
    return field


def served_kinds() -> list[tuple[str, str, str]]:
    """(group, version, kind) of all kinds that ``find`` knows."""
    return list(_registry(False).kinds)


def merge_key(field: Field, name: str) -> tuple[str, str]:
    """How a strategic merge patch treats field ``name`` of what ``field`` holds: (strategy, merge key).

    The strategy is ``merge``, ``merge,retainKeys``, ``retainKeys`` or ``replace`` (also for what nobody knows).
    """
    child = field.fields.get(name)
    if child is None or not child.strategy:
        return "replace", ""
    return child.strategy, child.key
