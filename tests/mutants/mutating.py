"""Mutants: known bugs, put back into the code for as long as one process lives.

A mutant is data: which piece of code it changes, found by its shape and not by its place, and into what. The module's source is
rewritten and compiled, and the functions that come out otherwise get the code of their changed twins: whoever took such a function
from the module by name has the changed one, nothing is imported again, and nothing is written to disk. Where the piece is not there
(any more), or there twice, the mutant is an error: it proves nothing.
"""

import ast
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

BODY = "..."
"""As ``was``: the whole body of the target."""
Rewrite = Callable[[ast.Module], ast.Module]


class LostTarget(Exception):
    """There is not exactly one piece of code of that shape where the mutant seeks it."""


@dataclass(frozen=True, slots=True)
class Change:
    """In ``target`` (``module:Class.method``), put ``now`` where ``was`` stands: an expression, or statements (none: nothing)."""

    target: str
    was: str
    now: str

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    def applied(self, tree: ast.Module) -> ast.Module:
        """The module with the change; ``LostTarget`` if it can't be made."""
        scope = scope_of(tree, self.target)
        if self.was == BODY:
            assert isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef), "only functions have a body to replace"
            scope.body = _statements(self.now)
            return ast.fix_missing_locations(tree)
        sought, given = _statements(self.was), _statements(self.now)
        was, now = _expression(sought), _expression(given)
        if was is not None and now is not None:
            found = _Expressions(was, now)
            found.visit(scope)
            count = found.count
        else:
            count = _replace_statements(scope, sought, given)
        if count != 1:
            raise LostTarget(f"{self.target} has {count} times, not once: {self.was}")
        return ast.fix_missing_locations(tree)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A public bug in our code. ``report`` is its number, ``breaks`` what goes wrong; every test of ``caught_by`` turns red."""

    name: str
    report: str
    breaks: str
    changes: tuple[Change, ...]
    caught_by: tuple[str, ...]
    """``area/test_module.py::test_name``, below ``tests``."""
    slow: bool = False
    """Too slow for every day: only ``make mutants`` tries it."""

    def rewrites(self) -> dict[str, Rewrite]:
        """How each module is rewritten."""
        found: dict[str, Rewrite] = {}
        for module in dict.fromkeys(change.module for change in self.changes):
            found[module] = _chained([change for change in self.changes if change.module == module])
        return found


def _chained(changes: Sequence[Change]) -> Rewrite:
    def rewrite(tree: ast.Module) -> ast.Module:
        for change in changes:
            tree = change.applied(tree)
        return tree

    return rewrite


# ---------------------------------------------------------------- finding and replacing


def scope_of(tree: ast.Module, target: str) -> ast.AST:
    """The class or function that ``module:Outer.inner`` names; the module itself if nothing follows the colon."""
    scope: ast.AST = tree
    for name in filter(None, target.partition(":")[2].split(".")):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        named = [node for node in _inside(scope) if isinstance(node, kinds) and node.name == name]
        if len(named) != 1:
            raise LostTarget(f"{target}: {name} is there {len(named)} times")
        scope = named[0]
    return scope


def _inside(scope: ast.AST) -> list[ast.AST]:
    """What is defined in the scope, not in a scope inside it."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(scope):
        found.append(child)
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found += _inside(child)
    return found


def _statements(text: str) -> list[ast.stmt]:
    # In a function, or a return would be no statement.
    lines = "\n".join(f"    {line}" for line in (text or "pass").splitlines())
    function = ast.parse(f"def f():\n{lines}").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function.body


def _expression(statements: Sequence[ast.stmt]) -> ast.expr | None:
    """The expression, if it is nothing else."""
    only = statements[0] if len(statements) == 1 else None
    return only.value if isinstance(only, ast.Expr) else None


def _shape(node: ast.AST) -> str:
    return ast.dump(node)


class _Expressions(ast.NodeTransformer):
    def __init__(self, was: ast.expr, now: ast.expr) -> None:
        self._was, self._now = _shape(was), now
        self.count = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and _shape(node) == self._was:
            self.count += 1
            return self._now
        return super().generic_visit(node)

    visit_Constant = generic_visit  # or the transformer warns of a name of old


def _replace_statements(scope: ast.AST, was: Sequence[ast.stmt], now: list[ast.stmt]) -> int:
    count = 0
    sought = [_shape(statement) for statement in was]
    for node in ast.walk(scope):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if not isinstance(body, list):
                continue
            for at in range(len(body) - len(sought) + 1):
                if [_shape(statement) for statement in body[at : at + len(sought)]] == sought:
                    body[at : at + len(sought)] = now
                    count += 1
    return count


# ---------------------------------------------------------------- exchanging


def exchange(root: Path, rewrites: Mapping[str, Rewrite]) -> None:
    """Give the functions of these modules the code that they have when the source is rewritten.

    ``LostTarget`` if something else changes, like a module's constant: it may be in use already.
    """
    for module, rewrite in rewrites.items():
        path = source_path(root, module)
        before, after = (_code(tree, path) for tree in (source_tree(root, module), rewrite(source_tree(root, module))))
        functions = dict(_functions(importlib.import_module(module)))
        for name, code in _changed(before, after):
            if name not in functions:
                raise LostTarget(f"{module}:{name} is no function whose code can be exchanged")
            functions[name].__code__ = code


def _code(tree: ast.Module, path: Path) -> CodeType:
    return compile(tree, path, "exec", dont_inherit=True)


def _changed(before: CodeType, after: CodeType) -> Iterator[tuple[str, CodeType]]:
    """The functions whose code differs, by their qualified names; of one inside another the outer one."""
    if (before.co_code, before.co_names, _plain(before)) != (after.co_code, after.co_names, _plain(after)):
        raise LostTarget(f"{before.co_qualname} does something else when it is imported")
    for one, other in zip(_inner(before), _inner(after), strict=True):
        if one == other:
            continue
        if one.co_flags & _OPTIMIZED:
            yield other.co_qualname, other
        else:
            yield from _changed(one, other)


_OPTIMIZED = 1
"""Of code's flags: it is a function's, and neither a module's nor a class's."""


def _plain(code: CodeType) -> list[str]:
    return [repr(constant) for constant in code.co_consts if not isinstance(constant, CodeType)]


def _inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _functions(scope: ModuleType | type) -> Iterator[tuple[str, FunctionType]]:
    """What is defined in the module, by its qualified name: functions, methods, and what properties and caches wrap."""
    module = scope.__name__ if isinstance(scope, ModuleType) else scope.__module__
    for value in vars(scope).values():
        if isinstance(value, type) and value.__module__ == module and value is not scope:
            yield from _functions(value)
        for wrapped in (value, *(getattr(value, name, None) for name in ("fget", "fset", "func", "__func__", "__wrapped__"))):
            if isinstance(wrapped, FunctionType) and wrapped.__module__ == module:
                yield wrapped.__code__.co_qualname, wrapped


def source_tree(root: Path, module: str) -> ast.Module:
    """The module's syntax, from the source roots of the checkout at ``root``."""
    return ast.parse(source_path(root, module).read_bytes())


def source_path(root: Path, module: str) -> Path:
    """Where the module's source is; ``LostTarget`` if there is none."""
    below = Path(*module.split(".")).with_suffix(".py")
    for source_root in (root / "common", root / "deploy", *sorted((root / "services").iterdir())):
        if (source_root / below).is_file():
            return source_root / below
    raise LostTarget(f"there is no module {module}")
