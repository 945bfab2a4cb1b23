"""Does an expression make sense? Its type, or what is wrong with it in cel-go's words.

As in CEL, what is ``dyn`` agrees with everything, and is looked at again when the rule runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from elbowroom.apiserver.definitions.cel.library import FUNCTIONS, Function, read_type
from elbowroom.apiserver.definitions.cel.syntax import (
    Call,
    Entries,
    Expression,
    Ident,
    Index,
    Items,
    Literal,
    Select,
    UInt,
)
from elbowroom.apiserver.definitions.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    TYPE,
    UINT,
    Type,
    listed,
    mapped,
    of_schema,
    optional,
)

TYPE_NAMES = ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type")
"""What stands for a type where no variable bears the name."""
LOOPS = {"all": 2, "exists": 2, "exists_one": 2, "existsOne": 2, "filter": 2, "map": 2}
"""Macros that go over a list or the keys of a map, and how many arguments they have."""
_LITERALS: Mapping[type, Type] = {bool: BOOL, int: INT, UInt: UINT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL}
_ORDERED = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NUMBERS = ("int", "uint", "double")
_A = Type("A")


@dataclass(frozen=True, slots=True)
class Issue:
    """Something wrong, and where."""

    at: int
    message: str


def _operator(*lines: str) -> tuple[tuple[tuple[Type, ...], Type], ...]:
    """Overloads, as ``int int int``: the operands and the result."""
    return tuple((tuple(read_type(word) for word in line.split()[:-1]), read_type(line.split()[-1])) for line in lines)


_ARITHMETIC = ("int int int", "uint uint uint", "double double double")
_OPERATORS = {
    "_+_": _operator(
        *_ARITHMETIC,
        *("string string string", "bytes bytes bytes", "list(A) list(A) list(A)"),
        *("timestamp duration timestamp", "duration timestamp timestamp", "duration duration duration"),
    ),
    "_-_": _operator(*_ARITHMETIC, "timestamp timestamp duration", "timestamp duration timestamp", "duration duration duration"),
    "_*_": _operator(*_ARITHMETIC),
    "_/_": _operator(*_ARITHMETIC),
    "_%_": _operator("int int int", "uint uint uint"),
    "-_": _operator("int int", "double double"),
    "!_": _operator("bool bool"),
    "_==_": _operator("A A bool"),
    "_!=_": _operator("A A bool"),
    **{
        f"_{sign}_": _operator(
            *(f"{kind} {kind} bool" for kind in _ORDERED),
            *(f"{one} {other} bool" for one in _NUMBERS for other in _NUMBERS if one != other),
        )
        for sign in ("<", "<=", ">", ">=")
    },
    "@in": ((((_A, listed(_A))), BOOL), ((_A, mapped(_A, Type("B"))), BOOL)),
}


def agree(wanted: Type, given: Type, bound: dict[str, Type]) -> bool:
    """Can a ``given`` stand where a ``wanted`` is, whose type parameters are ``bound`` so far?"""
    if wanted.name in ("A", "B"):
        known = bound.get(wanted.name)
        if known is None or known.name == "dyn":
            bound[wanted.name] = given
            return True
        return agree(known, given, bound)
    if "dyn" in (wanted.name, given.name):
        return True
    if given.name == "null" or wanted.name == "null":
        other = wanted if given.name == "null" else given
        return other.name in ("null", "object", "timestamp", "duration", "optional_type")
    if wanted.name != given.name or len(wanted.of) != len(given.of):
        return False
    if wanted.name == "object" and wanted.fields is not None and given.fields is not None:
        return sorted(wanted.fields) == sorted(given.fields)
    return all(agree(one, other, bound) for one, other in zip(wanted.of, given.of, strict=True))


def replaced(wanted: Type, bound: Mapping[str, Type]) -> Type:
    """A result, with what its parameters turned out to be."""
    if wanted.name in ("A", "B"):
        return bound.get(wanted.name, DYN)
    return (
        Type(wanted.name, tuple(replaced(one, bound) for one in wanted.of), wanted.fields, wanted.schema) if wanted.of else wanted
    )


def namespaced(call: Call, variables: Mapping[str, object]) -> str | None:
    """The whole name of a function with a namespace, such as ``sets.contains``; None if its target is a value."""
    if isinstance(call.target, Ident) and call.target.name not in variables:
        name = f"{call.target.name}.{call.function}"
        return name if (name, False) in FUNCTIONS else None
    return None


def check(tree: Expression, variables: Mapping[str, Type]) -> tuple[Type, list[Issue]]:
    """The type of an expression, and what is wrong with it."""
    checker = _Checker()
    return checker.type_of(tree, variables), checker.issues


class _Checker:
    def __init__(self) -> None:
        self.issues: list[Issue] = []

    def _wrong(self, at: int, message: str) -> Type:
        self.issues.append(Issue(at, message))
        return DYN

    def _undeclared(self, at: int, name: str) -> Type:
        return self._wrong(at, f"undeclared reference to '{name}' (in container '')")

    def _no_overload(self, at: int, name: str, given: Sequence[Type], target: Type | None = None) -> Type:
        shown = f"({', '.join(map(str, given))})"
        if target is not None:
            shown = f"{target}.{shown}"
        return self._wrong(at, f"found no matching overload for '{name}' applied to '{shown}'")

    def type_of(self, tree: Expression, variables: Mapping[str, Type]) -> Type:
        match tree:
            case Literal(_, value):
                return _LITERALS[type(value)]
            case Ident(at, name):
                if name in variables:
                    return variables[name]
                return TYPE if name in TYPE_NAMES else self._undeclared(at, name)
            case Select(at, operand, field, is_optional):
                found = self._field(at, self.type_of(operand, variables), field)
                return optional(found) if is_optional and found.name != "optional_type" else found
            case Index():
                return self._index(tree, variables)
            case Call():
                return self._call(tree, variables)
            case Items(items=items, optional=maybe):
                given = [self._item(one, place in maybe, variables) for place, one in enumerate(items)]
                return listed(self._common([one.at for one in items], given))
            case Entries(entries=entries, optional=maybe):
                keys = [self.type_of(key, variables) for key, _ in entries]
                given = [self._item(value, place in maybe, variables) for place, (_, value) in enumerate(entries)]
                key_type = self._common([key.at for key, _ in entries], keys)
                return mapped(key_type, self._common([value.at for _, value in entries], given))

    def _item(self, tree: Expression, is_optional: bool, variables: Mapping[str, Type]) -> Type:
        found = self.type_of(tree, variables)
        if is_optional and found.name not in ("optional_type", "dyn"):
            return self._wrong(tree.at, f"expected type 'optional_type(A)' but found '{found}'")
        return found.of[0] if is_optional and found.of else found

    def _common(self, places: Sequence[int], given: Sequence[Type]) -> Type:
        """The one type of all elements of a list, or of a map."""
        first = next((one for one in given if one.name != "dyn"), DYN)
        for at, one in zip(places, given, strict=True):
            if not agree(first, one, {}):
                return self._wrong(at, f"expected type '{first}' but found '{one}'")
        return first

    def _field(self, at: int, of: Type, name: str) -> Type:
        match of.name:
            case "dyn":
                return DYN
            case "object" if of.fields is not None:
                if name not in of.fields:
                    return self._wrong(at, f"undefined field '{name}'")
                return of_schema(of.fields[name])
            case "map":
                return of.of[1]
            case "optional_type":
                return optional(self._field(at, of.of[0], name))
        return self._wrong(at, f"type '{of}' does not support field selection")

    def _index(self, tree: Index, variables: Mapping[str, Type]) -> Type:
        of, key = self.type_of(tree.operand, variables), self.type_of(tree.key, variables)
        inside = of.of[0] if of.name == "optional_type" else of
        found = DYN
        if inside.name == "list" and key.name in ("int", "dyn"):
            found = inside.of[0]
        elif inside.name == "map" and agree(inside.of[0], key, {}):
            found = inside.of[1]
        elif inside.name != "dyn":
            return self._no_overload(tree.at, "_[?_]" if tree.optional else "_[_]", (of, key))
        return optional(found) if tree.optional or of.name == "optional_type" else found

    # ------------------------------------------------------------ calls

    def _call(self, call: Call, variables: Mapping[str, Type]) -> Type:
        name, arguments = call.function, call.arguments
        if call.target is None and name == "has":
            self.type_of(arguments[0], variables)
            return BOOL
        if call.target is not None:
            made = self._macro(call, call.target, variables)
            if made is not None:
                return made
            space = namespaced(call, variables)
            if space is not None:
                given = [self.type_of(one, variables) for one in arguments]
                return self._overload(call.at, space, FUNCTIONS[space, False], given, None)
        target = None if call.target is None else self.type_of(call.target, variables)
        given = [self.type_of(one, variables) for one in arguments]
        if name in _OPERATORS:
            for operands, result in _OPERATORS[name]:
                bound: dict[str, Type] = {}
                if all(agree(wanted, one, bound) for wanted, one in zip(operands, given, strict=True)):
                    return replaced(result, bound)
            return self._no_overload(call.at, name, given)
        match name:
            case "_&&_" | "_||_":
                if all(one.name in ("bool", "dyn") for one in given):
                    return BOOL
                return self._no_overload(call.at, name, given)
            case "_?_:_":
                if given[0].name in ("bool", "dyn") and agree(given[1], given[2], {}):
                    return given[2] if given[1].name in ("dyn", "null") else given[1]
                return self._no_overload(call.at, name, given)
        functions = FUNCTIONS.get((name, target is not None))
        if functions is None:
            return DYN if any(one.at == call.at for one in self.issues) else self._undeclared(call.at, name)
        return self._overload(call.at, name, functions, given, target)

    def _overload(self, at: int, name: str, functions: Sequence[Function], given: Sequence[Type], target: Type | None) -> Type:
        whole = [*(() if target is None else (target,)), *given]
        results: list[Type] = []
        for function in functions:
            bound: dict[str, Type] = {}
            fitting = len(function.parameters) == len(whole)
            if fitting and all(agree(wanted, one, bound) for wanted, one in zip(function.parameters, whole, strict=True)):
                results.append(replaced(function.result, bound))
        if not results:
            return self._no_overload(at, name, given, target)
        return results[0] if all(str(one) == str(results[0]) for one in results) else DYN

    def _macro(self, call: Call, target: Expression, variables: Mapping[str, Type]) -> Type | None:
        """The type of a macro; None if the call is of something else."""
        name, arguments = call.function, call.arguments
        if name in ("optMap", "optFlatMap") and len(arguments) == 2:
            of = self.type_of(target, variables)
            inner = self.type_of(arguments[1], {**variables, _name(arguments[0]): of.of[0] if of.of else DYN})
            return inner if name == "optFlatMap" else optional(inner)
        two = len(arguments) == 3 and name in ("all", "exists", "existsOne")
        if not two and not (name in LOOPS and len(arguments) == LOOPS[name]) and not (name == "map" and len(arguments) == 3):
            return None
        of = self.type_of(target, variables)
        if of.name not in ("list", "map", "dyn"):
            text = f"expression of type '{of}' cannot be range of a comprehension (must be list, map, or dynamic)"
            return self._wrong(target.at, text)
        key, value = (INT, of.of[0]) if of.name == "list" else of.of if of.name == "map" else (DYN, DYN)
        if two:
            inside = {**variables, _name(arguments[0]): key, _name(arguments[1]): value}
        else:
            inside = {**variables, _name(arguments[0]): value if of.name == "list" else key}
        *conditions, last = (self.type_of(one, inside) for one in arguments[2 if two else 1 :])
        if name == "map":
            self._bools(arguments[1:-1], conditions)
            return listed(last)
        self._bools(arguments[-1:], [last])
        if name == "filter":
            return of if of.name == "list" else listed(key)
        return BOOL

    def _bools(self, trees: Sequence[Expression], given: Sequence[Type]) -> None:
        for tree, one in zip(trees, given, strict=True):
            if one.name not in ("bool", "dyn"):
                self._wrong(tree.at, f"expected type 'bool' but found '{one}'")


def _name(tree: Expression) -> str:
    assert isinstance(tree, Ident), "the syntax made sure of it"
    return tree.name
