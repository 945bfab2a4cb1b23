"""Single-line mutations: each small change of a rule's code must turn one of the rule's fast tests red.

The engine knows nothing of the rules (``regions``): it turns comparisons and sums round, exchanges ``and`` and ``or``, ``min`` and
``max``, moves whole numbers by one, takes away calls, returns and ``not``, and changes places in what is done in order. What it
changes is what a function does; the defaults of its parameters stay.
"""

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mutating import LostTarget, Rewrite, scope_of, source_tree
from trials import ROOT


@dataclass(frozen=True, slots=True)
class Region:
    """Functions that make up one rule, and the modules of its fast tests."""

    rule: str
    targets: tuple[str, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mutation:
    """The ``number``-th mutation of a target, told as a line of code before and after."""

    target: str
    number: int
    was: str
    now: str
    mark: str
    """What ``watched`` code tells when it comes to the statement that is changed."""

    @property
    def name(self) -> str:
        """Which does not depend on where the line stands."""
        return f"{self.target}: {self.was} => {self.now}"

    def rewrite(self) -> Rewrite:
        def applied(tree: ast.Module) -> ast.Module:
            scope = scope_of(tree, self.target)
            for number, (node, field, at, new) in enumerate(_places(scope)):
                if number == self.number:
                    _put(node, field, at, new)
                    return ast.fix_missing_locations(tree)
            raise LostTarget(f"{self.target} has no mutation {self.number}")

        return applied


_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SUM: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_EXTREME = {"min": "max", "max": "min", "any": "all", "all": "any"}

Place = tuple[ast.AST, str, int | None, object]
"""Of a node, the field (and the index in it) and what to put there."""


def mutations(region: Region) -> list[Mutation]:
    """All mutations of a region, in the order of the code."""
    found = []
    for target in region.targets:
        scope = scope_of(source_tree(ROOT, target.partition(":")[0]), target)
        parents = {child: node for node in ast.walk(scope) for child in ast.iter_child_nodes(node)}
        marks = {statement: f"{target} {number}" for number, statement in enumerate(_statements(scope))}
        lines: dict[str, int] = {}
        for number, (node, field, at, new) in enumerate(_places(scope)):
            was, now = _told(node, field, at, new)
            count = lines[f"{was} => {now}"] = lines.get(f"{was} => {now}", 0) + 1
            within = getattr(node, field)[at] if at is not None else node
            changed = within if isinstance(within, ast.stmt) else node  # an operator is one object for the whole tree
            while changed not in marks:
                changed = parents[changed]
            found.append(Mutation(target, number, was if count == 1 else f"{was} (place {count})", now, marks[changed]))
    return found


def _statements(scope: ast.AST) -> list[ast.stmt]:
    return [node for node in ast.walk(scope) if isinstance(node, ast.stmt) and node is not scope]


def watched(regions: Sequence[Region]) -> dict[str, Rewrite]:
    """The regions' modules so rewritten that each statement of their functions first calls ``trials.reached`` with its mark."""
    targets = dict.fromkeys(target for region in regions for target in region.targets)
    modules = dict.fromkeys(target.partition(":")[0] for target in targets)
    return {module: _watching([target for target in targets if target.partition(":")[0] == module]) for module in modules}


def _watching(targets: Sequence[str]) -> Rewrite:
    def rewrite(tree: ast.Module) -> ast.Module:
        for target in targets:
            scope = scope_of(tree, target)
            marks = {statement: f"{target} {number}" for number, statement in enumerate(_statements(scope))}
            for node in [scope, *marks]:
                for block in _blocks(node):
                    block[:] = [each for statement in block for each in (_call(marks[statement]), statement)]
        return ast.fix_missing_locations(tree)

    return rewrite


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements right below the node."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, ast.ExceptHandler | ast.match_case):
                    yield each.body


def _call(mark: str) -> ast.stmt:
    return ast.parse(f"__import__('trials').reached({mark!r})").body[0]


def _told(node: ast.AST, field: str, at: int | None, new: object) -> tuple[str, str]:
    """The node before and after, each in a line."""
    changed = copy.deepcopy(node)
    _put(changed, field, at, copy.deepcopy(new))
    if at is not None and isinstance(getattr(node, field)[at], ast.stmt):
        old = getattr(node, field)[at]
        if isinstance(new, list):
            return _line(old), f"(after) {_line(new[0])}"
        return _line(old), _line(new)
    return _line(node), _line(changed)


def _line(node: object) -> str:
    assert isinstance(node, ast.AST)
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    return text.splitlines()[0] if not isinstance(node, ast.expr) else " ".join(text.split())


def _put(node: ast.AST, field: str, at: int | None, new: object) -> None:
    if at is None:
        setattr(node, field, new)
    elif isinstance(new, list):
        getattr(node, field)[at : at + len(new)] = new
    else:
        getattr(node, field)[at] = new


def _places(scope: ast.AST) -> Iterator[Place]:
    parameters = {inner for node in ast.walk(scope) if isinstance(node, ast.arguments) for inner in ast.walk(node)}
    for node in ast.walk(scope):
        if node in parameters:
            continue
        match node:
            case ast.Compare(ops=ops):
                for at, op in enumerate(ops):
                    yield node, "ops", at, _COMPARE[type(op)]()
            case ast.BinOp(op=op) if type(op) in _SUM and not _is_text(node):
                yield node, "op", None, _SUM[type(op)]()
            case ast.AugAssign(op=op) if type(op) in _SUM:
                yield node, "op", None, _SUM[type(op)]()
            case ast.BoolOp(op=op):
                yield node, "op", None, ast.Or() if isinstance(op, ast.And) else ast.And()
            case ast.Call(func=ast.Name(id=name)) if name in _EXTREME:
                yield node, "func", None, ast.Name(_EXTREME[name], ast.Load())
            case ast.Constant(value=bool() as value):
                yield node, "value", None, not value
            case ast.Constant(value=int() as value):
                yield node, "value", None, value + 1
        yield from _negations(node)
        yield from _removals(node)
        yield from _exchanges(node)


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.Constant | ast.JoinedStr) and not _is_number(side) for side in (node.left, node.right))


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _negations(node: ast.AST) -> Iterator[Place]:
    """A condition of one word is turned round; so is what is negated."""
    if isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
        yield node, "test", None, ast.UnaryOp(ast.Not(), node.test)
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not | ast.USub):
            yield node, field, None, value.operand
        elif isinstance(value, list):
            for at, item in enumerate(value):
                if isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.Not | ast.USub):
                    yield node, field, at, item.operand


def _removals(node: ast.AST) -> Iterator[Place]:
    """Calls for their effect, ends of loops and early returns are left out."""
    for field in ("body", "orelse"):
        body = getattr(node, field, None)
        if not isinstance(body, list):
            continue
        for at, statement in enumerate(body):
            match statement:
                case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
                    pass  # nothing comes there, as the type checkers prove
                case ast.Expr(value=ast.Call()) | ast.Continue() | ast.Break() | ast.Return(value=None) | ast.Delete():
                    yield node, field, at, ast.Pass()
                case ast.Return() if not isinstance(node, ast.FunctionDef):
                    yield node, field, at, ast.Pass()
                case ast.Assign() if not isinstance(statement.targets[0], ast.Name | ast.Tuple):
                    yield node, field, at, ast.Pass()


def _exchanges(node: ast.AST) -> Iterator[Place]:
    """What is done in order, calls and the effects in a list, is done the other way round."""
    for field in ("body", "orelse"):
        body = getattr(node, field, None)
        if isinstance(body, list):
            for at in range(len(body) - 1):
                if _acts(body[at]) and _acts(body[at + 1]):
                    yield node, field, at, [body[at + 1], body[at]]
    if isinstance(node, ast.List) and len(node.elts) > 1 and isinstance(node.ctx, ast.Load):
        for at in range(len(node.elts) - 1):
            yield node, "elts", at, [node.elts[at + 1], node.elts[at]]


def _acts(statement: ast.stmt) -> bool:
    """Is it a call for its effect, or does it add effects?"""
    match statement:
        case ast.Expr(value=ast.Call()) | ast.AugAssign(op=ast.Add()) | ast.For():
            return True
        case ast.Assign(targets=[ast.Attribute()]):
            return True
    return False
