"""``x-kubernetes-validations``: rules in CEL that objects of custom kinds must keep, in upstream's words.

Rules are compiled when the definition is read. A definition whose rules do not compile is refused. What a rule costs is counted
while it runs, and bounded for each rule and for each object; upstream also estimates the cost beforehand, and refuses definitions
that could become too expensive: that is not done here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom.api.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from elbowroom.apiserver.definitions.cel.check import check
from elbowroom.apiserver.definitions.cel.evaluation import CostError, Run
from elbowroom.apiserver.definitions.cel.library import of_field
from elbowroom.apiserver.definitions.cel.operators import NONE, CelError, Optional, equal
from elbowroom.apiserver.definitions.cel.syntax import CelSyntaxError, Expression, located, names, parse
from elbowroom.apiserver.definitions.cel.types import Type, of_schema, optional

Schema = Mapping[str, Any]
Errors = list[FieldError]

RULES = "x-kubernetes-validations"
RULE_COST_MAX = 1_000_000
OBJECT_COST_MAX = 1_000_000
"""Upstream's ten times that would take this process ten seconds."""
MESSAGE_BYTES_MAX = 5 * 1024
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
NOWHERE = "<nil>"
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
BLOCKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
)
_BLOCKING = (*("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"),)
_EMPTY: Schema = {}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that was compiled, or why it could not be."""

    said: Schema
    tree: Expression | None = None
    message: Expression | None = None
    trouble: str = ""
    message_trouble: str = ""
    uses_old: bool = False

    @property
    def text(self) -> str:
        """What errors call the rule."""
        return str(self.said.get("message") or self.said.get("rule", "")).strip()

    @property
    def optional_old(self) -> bool:
        return bool(self.said.get("optionalOldSelf"))


@dataclass(frozen=True, slots=True)
class Node:
    """The rules of a schema and of what is inside of it; only where there are any."""

    schema: Schema
    is_root: bool
    rules: tuple[Rule, ...]
    items: "Node | None" = None
    more: "Node | None" = None
    properties: "Mapping[str, Node]" = field(default_factory=dict)
    all_of: "tuple[Node, ...]" = ()


# ---------------------------------------------------------------- compiling


def _compiled(source: str, variables: Mapping[str, Type], result: str, why: str) -> tuple[Expression | None, str]:
    """The tree, or the trouble with it."""
    try:
        tree = parse(source)
    except CelSyntaxError as error:
        return None, f"{why}: {located(source, error.offset, error.message)}"
    found, issues = check(tree, variables)
    if issues:
        return None, f"{why}: " + "\n".join(located(source, issue.at, issue.message) for issue in issues)
    return (tree, "") if found.name in (result, "dyn") else (tree, "!")


def rule_of(said: Schema, of: Type) -> Rule:
    """A rule about values of a type."""
    source = said.get("rule", "")
    if not source.strip():
        return Rule(said)
    variables = {"self": of, "oldSelf": optional(of) if said.get("optionalOldSelf") else of}
    tree, trouble = _compiled(source, variables, "bool", "compilation failed")
    if trouble == "!":
        trouble = "cel expression must evaluate to a bool"
    message, message_trouble = None, ""
    if said.get("messageExpression") and not trouble:
        message, message_trouble = _compiled(said["messageExpression"], variables, "string", "messageExpression compilation failed")
        if message_trouble == "!":
            message_trouble = "messageExpression must evaluate to a string"
    return Rule(said, tree, message, trouble, message_trouble, tree is not None and "oldSelf" in names(tree))


def node_of(schema: Schema, *, is_root: bool = False, spine: Schema | None = None) -> Node | None:
    """The rules of a schema, compiled; None if it has none. ``spine`` says what values are where ``schema`` is in its allOf."""
    spine = schema if spine is None else spine
    is_root = is_root or bool(spine.get("x-kubernetes-embedded-resource"))
    of = of_schema(spine, is_root=is_root)
    rules = tuple(rule_of(said, of) for said in schema.get(RULES) or ())
    items = more = None
    if schema.get("items") is not None and spine.get("items") is not None:
        items = node_of(schema["items"], spine=spine["items"])
    if isinstance(schema.get("additionalProperties"), dict) and isinstance(spine.get("additionalProperties"), dict):
        more = node_of(schema["additionalProperties"], spine=spine["additionalProperties"])
    known = spine.get("properties") or _EMPTY
    properties = {
        name: found
        for name, inner in (schema.get("properties") or _EMPTY).items()
        if name in known and (found := node_of(inner, spine=known[name])) is not None
    }
    parts = [node_of(part, is_root=is_root, spine=spine) for part in schema.get("allOf") or ()]
    all_of = tuple(part for part in parts if part is not None)
    if not rules and items is None and more is None and not properties and not all_of:
        return None
    return Node(spine, is_root, rules, items, more, properties, all_of)


# ---------------------------------------------------------------- definitions

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:\\.|[^'\\])+)'\]")


def steps_of(path: str) -> list[str] | None:
    """The steps of ``.a['b'].c``; None if it is no such path."""
    found, at = [], 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        found.append(step[1] if step[1] is not None else re.sub(r"\\(.)", r"\1", step[2]))
        at = step.end()
    return found


def _path(schema: Schema, steps: Sequence[str]) -> str | None:
    """The path as errors show it; None if it leads nowhere."""
    text = ""
    for step in steps:
        properties, more = schema.get("properties"), schema.get("additionalProperties")
        if properties:
            if step not in properties:
                return None
            text, schema = f"{text}.{step}" if text else step, properties[step]
        elif isinstance(more, dict):
            text, schema = f"{text}[{step}]", more
        else:
            return None
    return text or None


def statement_errors(schema: Schema, at: str) -> Errors:
    """What is wrong with the rules of one schema before anybody looks into the expressions."""
    found: Errors = []
    for index, said in enumerate(schema.get(RULES) or ()):
        here, rule, message = f"{at}.{RULES}[{index}]", said.get("rule", "").strip(), said.get("message", "")
        if not rule:
            found.append(required(f"{here}.rule", "rule is not specified"))
        elif message and not message.strip():
            found.append(invalid(f"{here}.message", message, "must be non-empty if specified"))
        elif "\n" in message.strip():
            found.append(invalid(f"{here}.message", message, "must not contain line breaks"))
        elif "\n" in rule and not message.strip():
            found.append(required(f"{here}.message", "message must be specified if rule contains line breaks"))
        if said.get("messageExpression") and not said["messageExpression"].strip():
            found.append(required(f"{here}.messageExpression", "messageExpression must be non-empty if specified"))
        if said.get("reason") is not None and said["reason"] not in REASONS:
            found.append(not_supported(f"{here}.reason", said["reason"], REASONS))
        path = said.get("fieldPath", "")
        if path and not path.strip():
            found.append(invalid(f"{here}.fieldPath", path, "must be non-empty if specified"))
        if "\n" in path:
            found.append(invalid(f"{here}.fieldPath", path, "must not contain line breaks"))
        steps = steps_of(path)
        if path and (steps is None or _path(schema, steps) is None):
            found.append(invalid(f"{here}.fieldPath", path, "must be a valid path"))
    return found


def definition_errors(schema: Schema, at: str) -> Errors:
    """What is wrong with the expressions of a schema that is otherwise valid."""
    return list(_definition_errors(schema, at, is_root=True, spine=schema, uncorrelatable=""))


def _definition_errors(schema: Schema, at: str, *, is_root: bool, spine: Schema, uncorrelatable: str) -> Iterator[FieldError]:
    is_root = is_root or bool(spine.get("x-kubernetes-embedded-resource"))
    of = of_schema(spine, is_root=is_root)
    for name, inner in (schema.get("properties") or _EMPTY).items():
        known = (spine.get("properties") or _EMPTY).get(name)
        if known is not None:
            here = f"{at}.properties[{name}]"
            yield from _definition_errors(inner, here, is_root=False, spine=known, uncorrelatable=uncorrelatable)
    more, known_more = schema.get("additionalProperties"), spine.get("additionalProperties")
    if isinstance(more, dict) and isinstance(known_more, dict):
        here = f"{at}.additionalProperties"
        yield from _definition_errors(more, here, is_root=False, spine=known_more, uncorrelatable=uncorrelatable)
    if schema.get("items") is not None and spine.get("items") is not None:
        lost = uncorrelatable or ("" if spine.get("x-kubernetes-list-type") == "map" else at)
        here = f"{at}.items"
        yield from _definition_errors(schema["items"], here, is_root=False, spine=spine["items"], uncorrelatable=lost)
    for index, part in enumerate(schema.get("allOf") or ()):
        yield from _definition_errors(part, f"{at}.allOf[{index}]", is_root=is_root, spine=spine, uncorrelatable=uncorrelatable)
    for index, said in enumerate(schema.get(RULES) or ()):
        rule, here = rule_of(said, of), f"{at}.{RULES}[{index}]"
        if rule.trouble:
            yield FieldError(f"{here}.rule", "FieldValueInvalid", f"Invalid value: {_shown(said)}: {rule.trouble}")
        if rule.message_trouble:
            text = f"Invalid value: {_shown(said)}: {rule.message_trouble}"
            yield FieldError(f"{here}.messageExpression", "FieldValueInvalid", text)
        if rule.uses_old and uncorrelatable:
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
            yield invalid(f"{here}.rule", said["rule"], text)
        elif not rule.uses_old and said.get("optionalOldSelf") is not None:
            yield invalid(f"{here}.optionalOldSelf", said["optionalOldSelf"], "may not be set if oldSelf is not used in rule")


def _shown(said: Schema) -> str:
    """A rule as upstream prints its struct."""
    names_of = ("Rule", "Message", "MessageExpression", "Reason", "FieldPath", "OptionalOldSelf")
    texts = ("Rule", "Message", "MessageExpression", "FieldPath")
    shown = {name: said.get(name[0].lower() + name[1:], "" if name in texts else None) for name in names_of}
    return msgspec.json.encode(shown).decode()


# ---------------------------------------------------------------- objects

_ABSENT = object()


def blocked(errors: Sequence[FieldError]) -> FieldError | None:
    """Says that rules are not looked at, since what is wrong already would confuse them."""
    return invalid(NOWHERE, None, BLOCKED) if any(error.kind in _BLOCKING for error in errors) else None


def errors(node: Node, new: Any, old: Any = None, *, warnings: list[str] | None = None) -> Errors:
    """The rules that an object breaks. What was broken before in a part that did not change is only warned of (ratcheting)."""
    run = _Validation([] if warnings is None else warnings)
    run.check(node, "", new, old, _ABSENT if old is None else old, new)
    return run.found


class _Stop(Exception):
    """No further rules are looked at."""


class _Validation:
    def __init__(self, warnings: list[str]) -> None:
        self.found: Errors = []
        self._warnings = warnings
        self._budget = OBJECT_COST_MAX

    def check(self, node: Node, path: str, new: Any, old: Any, before: Any, after: Any) -> None:
        """``old`` is what transition rules see as former; ``before`` and ``after`` are the nearest parts of both objects that
        belong together."""
        try:
            self._check(node, path, new, old, before, after)
        except _Stop:
            return

    def _check(self, node: Node, path: str, new: Any, old: Any, before: Any, after: Any) -> None:
        if new is None:
            return
        self._rules(node, path, new, old, before, after)
        for part in node.all_of:
            self._check(part, path, new, old, before, after)
        if isinstance(new, list) and node.items is not None:
            former = _by_keys(node.schema, old)
            for index, item in enumerate(new):
                known = former.get(_keys(node.schema, item), _ABSENT) if former else _ABSENT
                inside = (before, after) if known is _ABSENT else (known, item)
                self._check(node.items, f"{path}[{index}]", item, None if known is _ABSENT else known, *inside)
        elif isinstance(new, dict):
            for name, inner in new.items():
                known = old.get(name, _ABSENT) if isinstance(old, dict) else _ABSENT
                inside = (before, after) if known is _ABSENT and before is not _ABSENT and old is None else (known, inner)
                value = None if known is _ABSENT else known
                if node.more is not None and name not in node.properties:
                    self._check(node.more, f"{path}[{name}]", inner, value, *inside)
                if name in node.properties:
                    self._check(node.properties[name], f"{path}.{name}" if path else name, inner, value, *inside)

    def _rules(self, node: Node, path: str, new: Any, old: Any, before: Any, after: Any) -> None:
        if not node.rules:
            return
        where, kind = path or NOWHERE, str(node.schema.get("type", ""))
        value = of_field(new, node.schema)
        former = None if old is None else of_field(old, node.schema)
        for rule in node.rules:
            if rule.trouble:
                self.found.append(invalid(where, kind, f"rule compile error: {rule.trouble}"))
                continue
            if rule.tree is None or (rule.uses_old and old is None and not rule.optional_old):
                continue
            scope = {"self": value}
            if rule.optional_old:
                scope["oldSelf"] = NONE if old is None else Optional(former)
            elif old is not None:
                scope["oldSelf"] = former
            if self._holds(rule, scope, where, kind):
                continue
            error = self._broken(rule, node, scope, path, new)
            if not rule.uses_old and before is not _ABSENT and equal(before, after):
                self._warnings.append(str(error))
            else:
                self.found.append(error)

    def _holds(self, rule: Rule, scope: Mapping[str, Any], where: str, kind: str) -> bool:
        assert rule.tree is not None, "it was compiled"
        run, trouble, holds = Run(RULE_COST_MAX), None, False
        try:
            holds = run.value(rule.tree, scope) is True
        except CelError as why:
            trouble = why
        self._pay(run.cost, where, kind)
        if trouble is None:
            return holds
        text = str(trouble)
        if isinstance(trouble, CostError):
            said = f"'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.text}"
        elif text.startswith("no such overload"):
            said = f"'{text}': call arguments did not match a supported operator, function or macro signature for rule: {rule.text}"
        else:
            said = f"{text} evaluating rule: {rule.text}"
        self.found.append(invalid(where, kind, said))
        if isinstance(trouble, CostError):
            raise _Stop
        return True  # what is wrong is said

    def _pay(self, cost: int, where: str, kind: str) -> None:
        self._budget -= cost
        if self._budget < 0:
            self.found.append(invalid(where, kind, OUT_OF_BUDGET))
            raise _Stop

    def _broken(self, rule: Rule, node: Node, scope: Mapping[str, Any], path: str, new: Any) -> FieldError:
        steps = steps_of(rule.said.get("fieldPath", ""))
        more = _path(node.schema, steps) if steps else None
        where = ".".join(part for part in (path, more) if part) or NOWHERE
        said = self._message(rule, scope) if rule.message is not None else ""
        if not said:
            said = rule.text if rule.said.get("message") else f"failed rule: {rule.text}"
        whole = node.schema.get("type") in ("object", "array")
        match rule.said.get("reason"):
            case "FieldValueForbidden":
                return forbidden(where, said)
            case "FieldValueRequired":
                return required(where, said)
            case "FieldValueDuplicate":
                return FieldError(where, "FieldValueDuplicate", "Duplicate value") if whole else duplicate(where, new)
        return FieldError(where, "FieldValueInvalid", f"Invalid value: {said}") if whole else invalid(where, new, said)

    def _message(self, rule: Rule, scope: Mapping[str, Any]) -> str:
        """What the rule's own expression says; empty if it says nothing that could be shown."""
        assert rule.message is not None, "the caller looked"
        run, said = Run(min(RULE_COST_MAX, self._budget)), None
        with suppress(CelError):
            said = run.value(rule.message, scope)
        self._budget -= min(run.cost, self._budget)
        text = said.strip() if isinstance(said, str) else ""
        return "" if "\n" in text or len(text.encode()) > MESSAGE_BYTES_MAX else text


def _keys(schema: Schema, item: Any) -> str:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    return msgspec.json.encode([item.get(key) for key in keys]).decode() if isinstance(item, dict) else ""


def _by_keys(schema: Schema, old: Any) -> dict[str, Any]:
    """The former elements of a list of type ``map`` by their keys; empty for other lists."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return {}
    return {_keys(schema, item): item for item in old}
