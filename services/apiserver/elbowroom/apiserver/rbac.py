"""RBAC: what somebody may do is what the roles allow that are bound to them; nothing is ever forbidden by a rule.

``Rbac`` reads roles and bindings as they are stored at that moment. The rules of an aggregated ClusterRole are those of the roles
that it selects; upstream's controller writes them into it a moment later, here a decision looks for them itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from elbowroom.api.objects import LabelSelector
from elbowroom.api.selectors import of_view
from elbowroom.apiserver.strategy import Reader
from elbowroom.wire import ApiRequest

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"roles.{GROUP}", f"clusterroles.{GROUP}"
ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS = f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}"
KINDS = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
DECISIONS_MAX = 4096
"""How many verdicts are remembered."""
ALL = "*"

Rule = Mapping[str, Any]
"""A PolicyRule: ``verbs``, ``apiGroups``, ``resources``, ``resourceNames``, ``nonResourceURLs``; an absent list is empty."""
Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Is it allowed, and what RBAC says about it: the binding that allows it, or bindings that could not be read."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule that somebody has, and by which binding; or, without a rule, why a binding could not be read."""

    rule: Rule | None
    source: str = ""
    trouble: str = ""


class Changing(Protocol):
    """Tells whether something changed."""

    def changed(self, resource: str) -> int: ...


class Judge(Protocol):
    """Decides by roles and bindings: ``Rbac``, or ``Decisions`` for who is asked often."""

    def decide(self, request: ApiRequest) -> Verdict: ...


class Rbac:
    """Rules over the stored roles and bindings."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def decide(self, request: ApiRequest) -> Verdict:
        """May the request's user do that?"""
        troubles: list[str] = []
        for grant in self.grants(request.user, request.groups, request.namespace):
            if grant.rule is None:
                troubles.append(grant.trouble)
            elif allows(grant.rule, request):
                return Verdict(True, f"RBAC: allowed by {grant.source}")
        return Verdict(False, f"RBAC: {aggregate(troubles)}" if troubles else "")

    def decide_path(self, user: str, groups: Sequence[str], verb: str, path: str) -> Verdict:
        """May somebody do ``verb`` (``get``) with a path outside of resources?"""
        for grant in self.grants(user, groups, ""):
            if grant.rule is not None and _has(grant.rule, "verbs", verb) and _allows_path(grant.rule, path):
                return Verdict(True, f"RBAC: allowed by {grant.source}")
        return Verdict(False)

    def grants(self, user: str, groups: Sequence[str], namespace: str) -> Iterator[Grant]:
        """All rules of somebody in a namespace, those for the whole cluster first."""
        for binding in _by_name(self._reader.list(CLUSTER_ROLE_BINDINGS)):
            yield from self._granted(binding, "ClusterRoleBinding", user, groups, "")
        if namespace:
            for binding in _by_name(self._reader.list(ROLE_BINDINGS, namespace)):
                yield from self._granted(binding, "RoleBinding", user, groups, namespace)

    def _granted(self, binding: Node, kind: str, user: str, groups: Sequence[str], namespace: str) -> Iterator[Grant]:
        subject = next((one for one in binding.get("subjects") or [] if _is(one, user, groups, namespace)), None)
        if subject is None:
            return
        reference = binding.get("roleRef") or {}
        rules = self.rules_of(reference, namespace)
        if isinstance(rules, str):
            yield Grant(None, trouble=rules)
            return
        name = binding["metadata"]["name"]
        shown = f"{name}/{namespace}" if namespace else name
        source = f'{kind} "{shown}" of {reference["kind"]} "{reference["name"]}" to {_described(subject, namespace)}'
        for rule in rules:
            yield Grant(rule, source)

    def rules_of(self, reference: Node, namespace: str) -> Sequence[Rule] | str:
        """The rules of the role that a binding in ``namespace`` refers to; or why there are none, in upstream's words."""
        kind, name = reference.get("kind", ""), reference.get("name", "")
        match kind:
            case "Role":
                role = self._reader.get(ROLES, namespace, name)
                return f'role.{GROUP} "{name}" not found' if role is None else role.get("rules") or []
            case "ClusterRole":
                role = self._reader.get(CLUSTER_ROLES, "", name)
                if role is None:
                    return f'clusterrole.{GROUP} "{name}" not found'
                return (
                    aggregated(role, self._reader.list(CLUSTER_ROLES)) if role.get("aggregationRule") else role.get("rules") or []
                )
            case _:
                return f'unsupported role reference kind: "{kind}"'


class Decisions:
    """What ``Rbac.decide`` says, remembered: it reads the roles and bindings anew only once one of them has changed."""

    def __init__(self, store: Changing, reader: Reader) -> None:
        self._store, self._rbac = store, Rbac(reader)
        self._known: dict[tuple[Any, ...], Verdict] = {}
        self._as_of: tuple[int, ...] = ()

    def decide(self, request: ApiRequest) -> Verdict:
        as_of = tuple(map(self._store.changed, KINDS))
        if as_of != self._as_of or len(self._known) >= DECISIONS_MAX:
            self._as_of, self._known = as_of, {}
        said = (request.user, request.groups, request.verb, request.group, request.resource, request.subresource)
        key = (*said, request.namespace, request.name)
        verdict = self._known.get(key)
        if verdict is None:
            verdict = self._known[key] = self._rbac.decide(request)
        return verdict


def _by_name(documents: Iterable[Node]) -> list[Node]:
    return sorted(documents, key=lambda document: str(document["metadata"]["name"]))


def aggregate(troubles: Sequence[str]) -> str:
    """Several errors as Go's aggregate prints them."""
    once = list(dict.fromkeys(troubles))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def aggregated(role: Node, roles: Iterable[Node]) -> list[Rule]:
    """The rules of the roles that an aggregated ClusterRole selects, each once, in the order of the roles' names."""
    stored = _by_name(roles)
    found: list[Rule] = []
    known = {role["metadata"]["name"]}

    def collect(wanted: Node) -> None:
        for selector in wanted["aggregationRule"].get("clusterRoleSelectors") or []:
            matcher = of_view(msgspec.convert(selector, LabelSelector))
            for one in stored:
                if matcher.matches(one["metadata"].get("labels") or {}) and one["metadata"]["name"] not in known:
                    known.add(one["metadata"]["name"])
                    if one.get("aggregationRule"):
                        collect(one)
                    found.extend(
                        rule for rule in (() if one.get("aggregationRule") else one.get("rules") or ()) if rule not in found
                    )

    collect(role)
    return found


# ---------------------------------------------------------------- rules


def allows(rule: Rule, request: ApiRequest) -> bool:
    """Does the rule let such a request for a resource pass?"""
    return (
        _has(rule, "verbs", request.verb)
        and _has(rule, "apiGroups", request.group)
        and _names(rule, request.resource, request.subresource)
        and (not rule.get("resourceNames") or request.name in rule["resourceNames"])
    )


def _has(rule: Rule, field: str, value: str) -> bool:
    said = rule.get(field) or ()
    return ALL in said or value in said


def _names(rule: Rule, resource: str, subresource: str) -> bool:
    """``pods``, ``pods/resize``, ``*/resize``; a right to ``pods`` is none to ``pods/resize``, nor the other way round (RC-22)."""
    said = rule.get("resources") or ()
    if subresource:
        return ALL in said or f"{resource}/{subresource}" in said or f"*/{subresource}" in said
    return ALL in said or resource in said


def _allows_path(rule: Rule, path: str) -> bool:
    return any(path_covers(said, path) for said in rule.get("nonResourceURLs") or ())


def path_covers(said: str, path: str) -> bool:
    """Is ``path`` (which may be a pattern itself) covered by the pattern ``said``: itself, or a prefix before ``*``?"""
    return said == path or (said.endswith("*") and path.startswith(said.rstrip("*")))


def uncovered(own: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What of ``wanted`` no rule of ``own`` covers, taken apart into rules with one verb, group, resource and name each."""
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(mine, part) for mine in own)]


def _parts(rule: Rule) -> Iterator[Rule]:
    names: Sequence[str] = rule.get("resourceNames") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                yield from ({**part, "resourceNames": [name]} for name in names) if names else (part,)
    for url in rule.get("nonResourceURLs") or ():
        for verb in rule.get("verbs") or ():
            yield {"nonResourceURLs": [url], "verbs": [verb]}


def _covers(own: Rule, part: Rule) -> bool:
    if not _has(own, "verbs", part["verbs"][0]):
        return False
    if "nonResourceURLs" in part:
        return _allows_path(own, part["nonResourceURLs"][0])
    resource, _, subresource = part["resources"][0].partition("/")
    names = own.get("resourceNames") or ()
    return (
        _has(own, "apiGroups", part["apiGroups"][0])
        and _names(own, resource, subresource)
        and (not names or ("resourceNames" in part and part["resourceNames"][0] in names))
    )


def compact(parts: Iterable[Rule]) -> list[str]:
    """Parts of rules as upstream shows them, those that differ by verb alone as one, in order."""
    merged: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for part in parts:
        fields = ("apiGroups", "resources", "nonResourceURLs", "resourceNames")
        key = tuple(part[field][0] if field in part else "\0" for field in fields)
        if "nonResourceURLs" in part:
            key = (*key, part["verbs"][0])  # upstream keeps these apart
        whole = merged.setdefault(key, {field: list(part[field]) for field in fields if field in part} | {"verbs": []})
        whole["verbs"] += part["verbs"]
    return sorted(dict.fromkeys(map(_shown, merged.values())))


_SHOWN = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


def _shown(rule: Rule) -> str:
    parts = [f"{_SHOWN[field]}:[{' '.join(map(quoted, rule[field]))}]" for field in _SHOWN if rule.get(field)]
    return "{" + ", ".join(parts) + "}"


def quoted(text: str) -> str:
    """``%q``, for texts without control characters."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# ---------------------------------------------------------------- subjects


def _is(subject: Node, user: str, groups: Sequence[str], namespace: str) -> bool:
    name = subject.get("name", "")
    match subject.get("kind", ""):
        case "User":
            return bool(user == name)
        case "Group":
            return name in groups
        case "ServiceAccount":
            where = subject.get("namespace") or namespace
            return bool(where) and user == f"system:serviceaccount:{where}:{name}"
        case _:
            return False


def _described(subject: Node, namespace: str) -> str:
    name, kind = subject.get("name", ""), subject.get("kind", "")
    return f'{kind} "{name}/{subject.get("namespace") or namespace}"' if kind == "ServiceAccount" else f'{kind} "{name}"'
