"""Carrying an expression out, at a bounded cost.

A unit of cost is about a step: a name, a field, a call, an element of a loop; texts count by their length, as upstream's do. Who
runs out of it is stopped.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from elbowroom.apiserver.definitions.cel.check import LOOPS, TYPE_NAMES, namespaced
from elbowroom.apiserver.definitions.cel.functions import TypeName
from elbowroom.apiserver.definitions.cel.library import FUNCTIONS, fits, size_of
from elbowroom.apiserver.definitions.cel.operators import (
    NONE,
    CelError,
    Optional,
    added,
    compared,
    contains,
    divided,
    equal,
    multiplied,
    negated,
    no_overload,
    remainder,
    subtracted,
)
from elbowroom.apiserver.definitions.cel.syntax import Call, Entries, Expression, Ident, Index, Items, Literal, Select
from elbowroom.apiserver.definitions.cel.types import unescaped

Scope = Mapping[str, Any]
_LOOP_COST, _LIST_COST, _MAP_COST = 3, 10, 30


class CostError(CelError):
    """The expression costs more than it may."""


_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "_==_": equal,
    "_!=_": lambda left, right: not equal(left, right),
    "_<_": lambda left, right: compared(left, right) < 0,
    "_<=_": lambda left, right: compared(left, right) <= 0,
    "_>_": lambda left, right: compared(left, right) > 0,
    "_>=_": lambda left, right: compared(left, right) >= 0,
    "_+_": added,
    "_-_": subtracted,
    "_*_": multiplied,
    "_/_": divided,
    "_%_": remainder,
}
_ABSENT = object()


class Run:
    """One evaluation. ``cost`` is what it has come to."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.cost = 0

    def _spend(self, units: int) -> None:
        self.cost += units
        if self.cost > self._limit:
            raise CostError("operation cancelled: actual cost limit exceeded")

    def value(self, tree: Expression, scope: Scope) -> Any:
        """The value of an expression; ``CelError`` if it has none."""
        match tree:
            case Literal(_, value):
                return value
            case Ident(_, name):
                self._spend(1)
                if name in scope:
                    return scope[name]
                if name in TYPE_NAMES:
                    return TypeName(name)
                raise CelError(f"no such attribute(s): {name}")
            case Select(_, operand, field, is_optional):
                self._spend(1)
                return self._selected(self.value(operand, scope), field, is_optional)
            case Index(_, operand, key, is_optional):
                self._spend(1)
                return self._indexed(self.value(operand, scope), self.value(key, scope), is_optional)
            case Items(items=items, optional=maybe):
                self._spend(_LIST_COST)
                return [one for place, item in enumerate(items) for one in self._items(item, place in maybe, scope)]
            case Entries(entries=entries, optional=maybe):
                self._spend(_MAP_COST)
                made: dict[Any, Any] = {}
                for place, (key, value) in enumerate(entries):
                    name = self.value(key, scope)
                    if not isinstance(name, str | int | bool):
                        raise CelError("unsupported key type")
                    for one in self._items(value, place in maybe, scope):
                        made[name] = one
                return made
            case Call():
                return self._called(tree, scope)

    def _items(self, tree: Expression, is_optional: bool, scope: Scope) -> list[Any]:
        value = self.value(tree, scope)
        if not is_optional:
            return [value]
        if not isinstance(value, Optional):
            raise no_overload()
        return [value.value] if value.is_there else []

    # ------------------------------------------------------------ parts of values

    def _selected(self, value: Any, field: str, is_optional: bool) -> Any:
        if isinstance(value, Optional):
            return self._selected(value.value, field, True) if value.is_there else NONE
        if not isinstance(value, dict):
            raise no_overload()
        found = value.get(field, _ABSENT)
        if found is _ABSENT:
            found = value.get(unescaped(field), _ABSENT)
        if is_optional:
            return NONE if found is _ABSENT else Optional(found)
        if found is _ABSENT:
            raise CelError(f"no such key: {field}")
        return found

    def _indexed(self, value: Any, key: Any, is_optional: bool) -> Any:
        if isinstance(value, Optional):
            return self._indexed(value.value, key, True) if value.is_there else NONE
        found: Any = _ABSENT
        if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool):
            found = value[key] if 0 <= key < len(value) else _ABSENT
            why = f"index out of bounds: {key}"
        elif isinstance(value, dict):
            found = next((one for name, one in value.items() if equal(name, key)), _ABSENT) if not isinstance(key, str) else _ABSENT
            found = value.get(key, _ABSENT) if isinstance(key, str) else found
            why = f"no such key: {key}"
        else:
            raise no_overload()
        if is_optional:
            return NONE if found is _ABSENT else Optional(found)
        if found is _ABSENT:
            raise CelError(why)
        return found

    # ------------------------------------------------------------ calls

    def _called(self, call: Call, scope: Scope) -> Any:
        name, arguments = call.function, call.arguments
        binary = _BINARY.get(name)
        if binary is not None:
            left, right = self.value(arguments[0], scope), self.value(arguments[1], scope)
            self._spend(1 + (size_of(left) + size_of(right)) // 10)
            return binary(left, right)
        match name:
            case "_&&_" | "_||_":
                return self._junction(arguments, scope, decides=name == "_||_")
            case "_?_:_":
                self._spend(1)
                condition = self.value(arguments[0], scope)
                if not isinstance(condition, bool):
                    raise no_overload()
                return self.value(arguments[1 if condition else 2], scope)
            case "!_":
                self._spend(1)
                value = self.value(arguments[0], scope)
                if not isinstance(value, bool):
                    raise no_overload()
                return not value
            case "-_":
                self._spend(1)
                return negated(self.value(arguments[0], scope))
            case "@in":
                return self._contained(self.value(arguments[0], scope), self.value(arguments[1], scope))
            case "has" if call.target is None:
                return self._has(arguments[0], scope)
        if call.target is not None:
            space = namespaced(call, scope)
            if space is not None:
                return self._function(space, None, call, scope)
            if _is_macro(call):
                return self._macro(call, call.target, scope)
        return self._function(name, call.target, call, scope)

    def _junction(self, parts: tuple[Expression, ...], scope: Scope, *, decides: bool) -> bool:
        """``&&`` and ``||``: one part may decide, whatever became of those before it."""
        self._spend(1)
        trouble: CelError | None = None
        for part in parts:
            try:
                value = self.value(part, scope)
            except CostError:
                raise
            except CelError as why:
                trouble = trouble or why
                continue
            if not isinstance(value, bool):
                trouble = trouble or no_overload()
            elif value is decides:
                return decides
        if trouble is not None:
            raise trouble
        return not decides

    def _contained(self, wanted: Any, where: Any) -> bool:
        self._spend(1 + (size_of(where) if isinstance(where, list) else 0))
        if isinstance(where, list):
            return contains(where, wanted)
        if isinstance(where, dict):
            return wanted in where if isinstance(wanted, str) else any(equal(name, wanted) for name in where)
        raise no_overload()

    def _has(self, tree: Expression, scope: Scope) -> bool:
        assert isinstance(tree, Select), "the syntax made sure of it"
        value = self.value(tree.operand, scope)
        if isinstance(value, Optional):
            value = value.value if value.is_there else {}
        if not isinstance(value, dict):
            raise no_overload()
        return tree.field in value or unescaped(tree.field) in value

    def _function(self, name: str, target: Expression | None, call: Call, scope: Scope) -> Any:
        given = [self.value(one, scope) for one in (*(() if target is None else (target,)), *call.arguments)]
        for function in FUNCTIONS.get((name, target is not None), ()):
            if len(function.parameters) == len(given) and all(map(fits, function.parameters, given)):
                self._spend(function.cost(given))
                return function.run(*given)
        raise no_overload()

    # ------------------------------------------------------------ macros

    def _macro(self, call: Call, target: Expression, scope: Scope) -> Any:
        name, arguments = call.function, call.arguments
        over = self.value(target, scope)
        if name in ("optMap", "optFlatMap"):
            if not isinstance(over, Optional):
                raise no_overload()
            if not over.is_there:
                return NONE
            made = self.value(arguments[1], {**scope, _name(arguments[0]): over.value})
            return made if name == "optFlatMap" else Optional(made)
        two = len(arguments) == 3 and name != "map"
        if not isinstance(over, list | dict):
            raise no_overload()
        pairs: Iterator[tuple[Any, Any]] = iter(over.items()) if isinstance(over, dict) else iter(enumerate(over))
        if two:
            scopes = ({**scope, _name(arguments[0]): key, _name(arguments[1]): value} for key, value in pairs)
        else:
            items = list(over)
            scopes = ({**scope, _name(arguments[0]): item} for item in items)
        self._spend(_LIST_COST)
        body = arguments[2 if two else 1]
        match name:
            case "all":
                return self._every(body, scopes, decides=False)
            case "exists":
                return self._every(body, scopes, decides=True)
            case "exists_one" | "existsOne":
                return sum(self._true(body, inner) for inner in scopes) == 1
            case "filter":
                return [inner[_name(arguments[0])] for inner in scopes if self._true(body, inner)]
            case _:
                wanted = (inner for inner in scopes if len(arguments) == 2 or self._true(body, inner))
                return [self._stepped(arguments[-1], inner) for inner in wanted]

    def _stepped(self, tree: Expression, scope: Scope) -> Any:
        self._spend(_LOOP_COST)
        return self.value(tree, scope)

    def _true(self, tree: Expression, scope: Scope) -> bool:
        value = self._stepped(tree, scope)
        if not isinstance(value, bool):
            raise no_overload()
        return value

    def _every(self, tree: Expression, scopes: Iterator[Scope], *, decides: bool) -> bool:
        trouble: CelError | None = None
        for inner in scopes:
            try:
                if self._true(tree, inner) is decides:
                    return decides
            except CostError:
                raise
            except CelError as why:
                trouble = trouble or why
        if trouble is not None:
            raise trouble
        return not decides


def _is_macro(call: Call) -> bool:
    name, count = call.function, len(call.arguments)
    if name in ("optMap", "optFlatMap"):
        return count == 2
    return (name in LOOPS and count == LOOPS[name]) or (count == 3 and name in ("map", "all", "exists", "existsOne"))


def _name(tree: Expression) -> str:
    assert isinstance(tree, Ident), "the syntax made sure of it"
    return tree.name
