"""Make ``schema/table.py`` anew from the Go types of Kubernetes.

    python tools/field_table.py GO_SOURCES [--check]

GO_SOURCES is a directory with the checkouts ``k8s.io/api`` (its groups: ``core/v1`` and so on), ``apimachinery`` and, as
``apiextensions/v1``, the types of the apiextensions-apiserver. The types say what JSON does not: which zero values are written,
how patches and applies merge a list, and the numbers of protobuf. Nothing is fetched: the sources are whatever release is checked
out there. ``KINDS`` and the fields that the Go types have not (number 0) are read from the table as it stands, so a new kind is a
word in ``KINDS`` and a run of this. ``--check`` says what would change, and fails if anything would.
"""

import argparse
import ast
import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TABLE = Path(__file__).parent.parent / "services/apiserver/elbowroom/apiserver/schema/table.py"
LINE_LENGTH = 124

SCALARS = {
    **{name: name for name in ("string", "bool", "int32", "int64", "float64")},
    "int": "int64",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intorstring",
    "metav1.Time": "time",
    "Time": "time",
    "metav1.MicroTime": "microtime",
    "MicroTime": "microtime",
    "[]byte": "bytes",
    "runtime.RawExtension": "any",
    "runtime.Object": "any",
    "FieldsV1": "any",
    "metav1.FieldsV1": "any",
    "JSON": "any",
    "JSONSchemaPropsOrArray": "JSONSchemaProps",
    "JSONSchemaPropsOrBool": "any",
    "JSONSchemaPropsOrStringArray": "any",
    "types.UID": "types.UID",
}
"""What a Go type is in the table, where it is no struct of ours."""
NULLS = frozenset(("LimitRangeSpec.limits",))
"""Lists that a client sees as null where Go has none; the others are not written then (nobody can leave them empty)."""
OUTSIDE = {"metav1": "meta", "v1": "core", "apiv1": "core", "corev1": "core"}
"""Where the qualifiers of imported types lead to."""
EMBEDDED_ALIASES = frozenset(("ResourceList",))
STRUCTS = frozenset(("quantity", "intorstring", "time", "microtime"))
"""Scalars that are structs in Go, which ``omitempty`` never leaves out."""
ALL: frozenset[str] = frozenset(("*",))
META_MORE = "0 kind string-", "0 apiVersion string-"


@dataclass
class Struct:
    """A Go struct: its fields as lines of the table; ``inlined`` ones are named by their type."""

    name: str
    package: str
    atomic: bool = False
    fields: list["GoField"] = field(default_factory=list)


@dataclass
class GoField:
    number: str
    name: str
    go: str
    marks: str
    more: list[str]
    inline: bool = False
    omits_zero: bool = False


class Sources:
    """All type declarations below a directory, by package and name."""

    def __init__(self, root: Path) -> None:
        self.structs: dict[tuple[str, str], Struct] = {}
        self.aliases: dict[tuple[str, str], str] = {}
        for path in sorted(root.glob("**/*types*.go")):
            if path.name.endswith("_test.go") or "generated" in path.name or path.name == "types_proto.go":
                continue
            folder = path.parent.relative_to(root)
            package = "meta" if folder.parts[0] == "apimachinery" else str(folder)
            if package == "meta" and folder.name != "v1":
                continue
            self._read(package, path.read_text())

    def _read(self, package: str, text: str) -> None:
        comment: list[str] = []
        lines = iter(text.split("\n"))
        for line in lines:
            stripped = line.strip()
            if stripped.startswith("//"):
                comment.append(stripped[2:].strip())
                continue
            found = re.match(r"(?:type\s+)?(\w+)\s+struct\s*\{(\})?", stripped) if stripped.startswith("type ") else None
            if found is not None:
                struct = Struct(found[1], package, any(one == "+structType=atomic" for one in comment))
                self.structs[package, found[1]] = struct
                if not found[2]:
                    struct.fields += fields_of(lines)
            elif (alias := re.match(r"type\s+(\w+)\s+(=\s*)?([\w.\[\]*]+)$", stripped)) is not None:
                self.aliases[package, alias[1]] = alias[3]
            if stripped:
                comment = []


def fields_of(lines: Iterator[str]) -> Iterator[GoField]:
    """The fields up to the brace that ends the struct."""
    comment: list[str] = []
    for line in lines:
        stripped = line.strip()
        if stripped == "}":
            return
        if stripped.startswith("//"):
            comment.append(stripped[2:].strip())
            continue
        found = re.match(r"(?:(\w+)\s+)?([\w.\[\]*]+)\s+`(.*)`", stripped)
        if found is not None:
            made = field_of(found[1] or "", found[2], found[3], comment)
            if made is not None:
                yield made
        if stripped:
            comment = []


def field_of(name: str, go: str, tags: str, comment: Sequence[str]) -> GoField | None:
    """One field, or None if JSON has it not."""
    said = dict(re.findall(r'(\w+):"([^"]*)"', tags))
    json_name, *options = said.get("json", "").split(",")
    if json_name == "-" or "json" not in said:
        return None
    number = said.get("protobuf", ",0").split(",")[1]
    if "inline" in options or (not name and not json_name):
        return GoField(number, name, go.lstrip("*"), "", [], inline=True)
    drops = "omitempty" in options or "omitzero" in options
    pointer = go.startswith("*")
    plain = go.lstrip("*")
    marks = {one.split("=")[0]: one for one in comment if one.startswith("+")}
    is_list = plain.startswith(("[]", "map[")) and plain != "[]byte"
    mark = ""
    if pointer:
        mark = "" if drops else "~"
    elif is_list:
        mark = "-" if drops else ""
    else:
        mark = "-" if drops else "+"
    required = "+required" in marks or ("+optional" not in marks and not drops)
    more = []
    if said.get("patchStrategy"):
        key = said.get("patchMergeKey", "")
        more.append(f"patch={said['patchStrategy']}" + (f":{key}" if key else ""))
    kind = marks.get("+listType", marks.get("+mapType", marks.get("+structType", ""))).partition("=")[2]
    keys = [one.partition("=")[2] for one in comment if one.startswith("+listMapKey=")]
    if kind == "map" and keys:
        more.append(f"map={','.join(keys)}")
    elif kind in ("set", "atomic"):
        more.append(kind)
    return GoField(number, json_name, plain, mark + ("!" if required else ""), more, omits_zero="omitzero" in options)


class Maker:
    """Collects the structs that kinds need, each under a name of its own."""

    def __init__(self, sources: Sources, kinds: Mapping[str, tuple[str, str]], twice: frozenset[str] = frozenset()) -> None:
        """``twice``: the names of structs that more than one package has; theirs bear the package's."""
        self._sources, self._twice = sources, twice
        self._names: dict[tuple[str, str], str] = {place: name for name, place in kinds.items()}
        self.made: dict[str, tuple[bool, list[str]]] = {}
        self.strings: dict[str, None] = {}
        for name, place in kinds.items():
            self._make(name, place)

    def _make(self, name: str, place: tuple[str, str]) -> None:
        if name in self.made:
            return
        struct = self._sources.structs[place]
        lines: list[str] = []
        self.made[name] = (struct.atomic, lines)
        lines += self._lines(struct, "")

    def _lines(self, struct: Struct, prefix: str) -> Iterator[str]:
        for one in struct.fields:
            number = f"{prefix}{one.number}"
            if one.inline:
                where = self._find(struct.package, one.go)
                assert where is not None, f"{struct.name} embeds {one.go}, which is not there"
                inner = self._sources.structs[where]
                yield from META_MORE if inner.name == "TypeMeta" else self._lines(inner, f"{number}.")
                continue
            text = self._type(struct.package, one.go)
            marks = one.marks
            if f"{struct.name}.{one.name}" in NULLS:
                marks = f"~{marks}"
            if self._is_list(struct.package, one.go) and marks.startswith("+"):
                marks = marks[1:]
            elif marks.startswith("-") and not one.omits_zero and self._is_struct(struct.package, one.go):
                marks = f"+{marks[1:]}"  # Go has no empty struct to leave out
            yield " ".join((number, one.name, text + marks, *one.more))

    def _find(self, package: str, go: str) -> tuple[str, str] | None:
        qualifier, _, name = go.rpartition(".")
        folder = OUTSIDE.get(qualifier) or re.sub(r"^([a-z]+)(v\d\w*)$", r"\1/\2", qualifier) or package
        for known in (folder, f"{folder}/v1"):
            if (known, name) in self._sources.structs or (known, name) in self._sources.aliases:
                return known, name
        return None

    def _is_list(self, package: str, go: str) -> bool:
        place = self._find(package, go)
        return place in self._sources.aliases and self._sources.aliases[place].startswith(("[]", "map["))

    def _is_struct(self, package: str, go: str) -> bool:
        place = self._find(package, go)
        return SCALARS[go] in STRUCTS if go in SCALARS else place in self._sources.structs

    def _type(self, package: str, go: str) -> str:
        if go in SCALARS:
            found = SCALARS[go]
            if found != "JSONSchemaProps":
                if found == "types.UID":
                    self.strings[found] = None
                return found
        if go.startswith("*"):
            return self._type(package, go[1:])
        if go.startswith("[]"):
            return f"[]{self._type(package, go[2:])}"
        if go.startswith("map["):
            return f"{{}}{self._type(package, go.partition(']')[2])}"
        place = self._find(package, SCALARS.get(go, go))
        assert place is not None, f"nobody declares {go} (in {package})"
        if place in self._sources.structs:
            name = self._name(place)
            self._make(name, place)
            return name
        alias = self._sources.aliases[place]
        if place[1] in EMBEDDED_ALIASES:
            return place[1]
        if alias == "string":
            self.strings[place[1]] = None
            return place[1]
        return self._type(place[0], alias)

    def _name(self, place: tuple[str, str]) -> str:
        known = self._names.get(place)
        if known is None:
            group = place[0].partition("/")[0] + place[0].partition("/")[2].removeprefix("v1")
            known = f"{group}.{place[1]}" if place[1] in self._twice else "/".join(place) if self._twice is ALL else place[1]
            self._names[place] = known
        return known

    @classmethod
    def of(cls, sources: Sources, kinds: Mapping[str, tuple[str, str]]) -> "Maker":
        """With names that tell apart what is called the same in two packages."""
        places = list(cls(sources, kinds, ALL)._names)
        names = [name for _, name in places]
        return cls(sources, kinds, frozenset(name for name in names if names.count(name) > 1))


# ---------------------------------------------------------------- the table as it stands


def stands(text: str) -> tuple[dict[str, tuple[str, str]], dict[str, list[tuple[str, str]]]]:
    """(the kinds: name in the table -> package and struct), (what is added by hand: struct -> the field before and the line)."""
    tree = ast.parse(text)
    names = {
        one.targets[0].id: ast.literal_eval(one.value)
        for one in tree.body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }
    kinds: dict[str, tuple[str, str]] = {}
    package = ""
    for line in names["KINDS"].strip("\n").split("\n"):
        if line[0] != " ":
            head, _, line = line.partition(": ")
            group, _, version = head.rpartition("/")
            package = "meta" if group == "meta.k8s.io" else f"{group.partition('.')[0]}/{version}"
        for word in line.split():
            kind, _, struct = word.partition("=")
            kinds[struct or kind] = (package, kind)
    previews: dict[str, list[tuple[str, str]]] = {}
    struct, before = "", ""
    for line in names["TYPES"].strip("\n").split("\n"):
        if line[0] != " ":
            struct, before = line.partition(" ")[0], ""
            continue
        number, name, *_ = line.split()
        if number == "0" and name not in ("kind", "apiVersion"):
            previews.setdefault(struct, []).append((before, line.strip()))
        before = line.split()[1]
    return kinds, previews


def rendered(text: str, maker: Maker, previews: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """The table's text with new STRINGS and TYPES."""
    lines: list[str] = []
    for name in sorted(maker.made):
        atomic, fields = maker.made[name]
        lines.append(f"{name} atomic" if atomic else name)
        added = list(previews.get(name, ()))
        for one in fields:
            lines.append(f" {one}")
            last = one.split()[1]
            while added and added[0][0] == last:
                _, line = added.pop(0)
                lines.append(f" {line}")
                last = line.split()[1]
        lines += [f" {line}" for _, line in added]
    text = re.sub(r'(TYPES = """\n).*?(\n""")', lambda m: m[1] + "\n".join(lines) + m[2], text, flags=re.DOTALL)
    words = sorted(maker.strings)
    folded = [""]
    for word in words:
        if len(folded[-1]) + len(word) + 1 > LINE_LENGTH:
            folded.append("")
        folded[-1] = f"{folded[-1]} {word}".strip()
    return re.sub(r'(STRINGS = """\n).*?(\n""")', lambda m: m[1] + "\n".join(folded) + m[2], text, flags=re.DOTALL)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Make schema/table.py anew from Go types.")
    parser.add_argument("sources", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    before = options.table.read_text()
    kinds, previews = stands(before)
    after = rendered(before, Maker.of(Sources(options.sources), kinds), previews)
    if options.check:
        sys.stdout.writelines(
            difflib.unified_diff(before.splitlines(True), after.splitlines(True), "as it stands", "as Go has it", n=1)
        )
        return int(before != after)
    options.table.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
