"""Single-line mutations of the rules that everything hangs on: each small change must turn one of the region's fast tests red.

The engine knows nothing of the rules: it turns comparisons and sums round, exchanges ``and`` and ``or``, ``min`` and ``max``, moves
whole numbers by one, takes away calls, returns and ``not``, and changes places in what is done in order. A survivor is either
argued in docs/teeth.md (and in ``SURVIVORS`` by its name here) or a hole in the tests.
"""

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mutating import LostTarget, Rewrite, scope_of, source_tree
from survivors import SURVIVORS
from trials import ROOT, TIMED_OUT, Trial, run, unmutated


@dataclass(frozen=True, slots=True)
class Region:
    """Functions that make up one rule, and the fast tests of it."""

    rule: str
    targets: tuple[str, ...]
    tests: tuple[str, ...]


_KUBELET = ("kubelet/test_kubelet_passes.py", "kubelet/test_kubelet_reports.py", "kubelet/test_kubelet_machine.py")
_FIT = (
    "kubelet/test_kubelet_fit.py",
    *(
        f"kubelet/test_kubelet_decisions.py::test_{name}"
        for name in (
            "a_resize_is_judged_by_room",
            "in_v137_more_than_the_node_has_is_deferred",
            "what_a_node_can_never_do_is_infeasible",
            "only_requests_make_a_resize_an_increase",
            "a_critical_pod_evicts_where_the_kubelet_may",
        )
    ),
)

REGIONS = (
    Region(
        "the maximum rule",
        tuple(
            f"elbowroom.api.resources:{name}"
            for name in (
                "maximum",
                "_largest",
                "_effective_requests",
                "_status_requests",
                "_aggregate",
                "_allocated_or_nothing",
                "_allocated",
                "_actual_or_nothing",
                "_actual",
            )
        ),
        ("api/test_api_maximum.py", "api/test_api_resources.py"),
    ),
    Region(
        "the fit rule",
        (
            "elbowroom.kubelet.admission:Lack.amount",
            "elbowroom.kubelet.admission:lacks",
            "elbowroom.kubelet.admission:Crowd.without",
            "elbowroom.kubelet.allocation:judge",
            "elbowroom.kubelet.allocation:infeasible",
            "elbowroom.kubelet.allocation:_above_allocatable",
            "elbowroom.kubelet.allocation:increases",
        ),
        _FIT,
    ),
    Region(
        "the fit rule",
        (
            "elbowroom.scheduler.plugins.resources:_Fits.beside",
            "elbowroom.scheduler.plugins.resources:_ResizeFits.check",
            "elbowroom.scheduler.plugins.resources:_ResizeFits._requested",
        ),
        (
            "scheduler/test_scheduler_rules.py",
            "scheduler/test_scheduler_reports.py",
            "scheduler/test_scheduler_plugins.py",
            "scheduler/test_scheduler_victims.py",
            "scheduler/test_scheduler_paths.py",
        ),
    ),
    Region(
        "the reprieve loop",
        (
            "elbowroom.scheduler.preemption:_reprieve",
            "elbowroom.scheduler.preemption:importance",
            "elbowroom.scheduler.preemption:violating",
            "elbowroom.scheduler.preemption:_makes_room",
            "elbowroom.scheduler.preemption:cost",
        ),
        (
            "scheduler/test_scheduler_rules.py",
            "scheduler/test_scheduler_choice.py::test_how_many_nodes_are_tried",
            "scheduler/test_scheduler_reports.py",
            "scheduler/test_scheduler_victims.py",
            "scheduler/test_scheduler_paths.py",
        ),
    ),
    Region(
        "the order of commits",
        ("elbowroom.apiserver.machine:ApiServer._made", "elbowroom.apiserver.machine:ApiServer._raise_floor"),
        ("apiserver/test_machine.py", "apiserver/test_apiserver_reports.py", "apiserver/test_watch.py"),
    ),
    Region(
        "the order of commits",
        (
            "elbowroom.kubelet.checkpoint:Checkpoint.save",
            "elbowroom.kubelet.resizes:Resizes._grant",
            "elbowroom.kubelet.resizer:Resizer._updated",
        ),
        (*_KUBELET, "kubelet/test_preview_machine.py"),
    ),
    Region(
        "the retry triggers",
        (
            "elbowroom.kubelet.resizes:Resizes.attempt_all",
            "elbowroom.kubelet.resizes:Resizes.wished",
            "elbowroom.kubelet.resizes:Resizes.node_changed",
            "elbowroom.kubelet.resizes:shrinks",
        ),
        _KUBELET,
    ),
    Region(
        "the retry triggers",
        (
            "elbowroom.scheduler.plugins.resources:_pod_gone",
            "elbowroom.scheduler.plugins.resources:_pod_shrank",
            "elbowroom.scheduler.plugins.resources:_fits_empty",
            "elbowroom.scheduler.plugins.resources:_node_grew",
            "elbowroom.scheduler.plugins.deferred:DeferredPodScheduling._neighbour_changed",
        ),
        (
            "scheduler/test_scheduler_rules.py",
            "scheduler/test_scheduler_queue.py",
            "scheduler/test_scheduler_reports.py",
            "scheduler/test_scheduler_paths.py",
        ),
    ),
)

# ---------------------------------------------------------------- the engine


@dataclass(frozen=True, slots=True)
class Mutation:
    """The ``number``-th mutation of a target, told as a line of code before and after."""

    target: str
    number: int
    was: str
    now: str

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
        lines: dict[str, int] = {}
        for number, (node, field, at, new) in enumerate(_places(scope)):
            was, now = _told(node, field, at, new)
            count = lines[f"{was} => {now}"] = lines.get(f"{was} => {now}", 0) + 1
            found.append(Mutation(target, number, was if count == 1 else f"{was} (place {count})", now))
    return found


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
    for node in ast.walk(scope):
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


# ---------------------------------------------------------------- trying them

Line = tuple[str, str, str, float]
"""Name, outcome, why, seconds: a ``Verdict``."""


def try_lines(word: str, jobs: int) -> Iterator[Line]:
    """Try every mutation whose rule or name has that word in it; each is told when it is done."""
    chosen = [(region, each) for region in REGIONS for each in mutations(region) if word in f"{region.rule} {each.name}"]
    tests = list(dict.fromkeys(test for region, _ in chosen for test in region.tests))
    for ran in unmutated(tests, jobs):
        if ran.error or ran.failed:
            yield ran.trial.name, "error", f"without a mutation: {ran.error or ran.failed[0]}", ran.seconds
            return
    trials = [
        Trial(each.name, region.tests, {each.target.partition(":")[0]: each.rewrite()}, stops=True) for region, each in chosen
    ]
    for ran in run(trials, jobs):
        yield _judged(ran.trial.name, ran.error, bool(ran.failed), ran.seconds)
    yield from _gone([each.name for _, each in chosen], word)


def _judged(name: str, error: str, failed: bool, seconds: float) -> Line:
    if failed or error == TIMED_OUT:
        why = "is listed as a survivor and is caught: take it off the list" if name in SURVIVORS else ""
        return name, "error" if why else "caught", why, seconds
    if error:
        # A module that cannot be imported any more is noticed by everybody.
        return name, "caught" if "cannot be collected" in error else "error", error, seconds
    return name, "caught" if name in SURVIVORS else "survived", SURVIVORS.get(name, "no test minds"), seconds


def _gone(names: Sequence[str], word: str) -> list[Line]:
    """Survivors on the list that no mutation bears any more."""
    known = set(names)
    return [
        (name, "error", "is listed as a survivor and is no mutation", 0.0) for name in SURVIVORS if not word and name not in known
    ]
