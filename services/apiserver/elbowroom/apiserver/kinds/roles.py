"""Roles and bindings in the registry: what is valid, and that nobody grants more than they have."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elbowroom.api.fielderrors import FieldError, invalid, not_supported, required
from elbowroom.api.names import dns1123_subdomain
from elbowroom.apiserver import metadata, rbac, statuses
from elbowroom.apiserver.admission_base import Attributes
from elbowroom.apiserver.kinds.base import Resource
from elbowroom.apiserver.kinds.checks import label_selector_errors
from elbowroom.apiserver.rbac import GROUP, Rbac, quoted
from elbowroom.apiserver.strategy import Context, Document, Strategy
from elbowroom.wire import ApiRequest

MASTERS = "system:masters"
_BINDINGS = (rbac.ROLE_BINDINGS, rbac.CLUSTER_ROLE_BINDINGS)
_RESOURCES = (rbac.ROLES, rbac.CLUSTER_ROLES, *_BINDINGS)

_EVERYTHING: Sequence[Mapping[str, Any]] = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
)

Errors = list[FieldError]
Node = Mapping[str, Any]


class RoleStrategy(Strategy):
    group, kind, plural, singular = GROUP, "Role", "roles", "role"

    def validate_create(self, context: Context, new: Document) -> Errors:
        return [error for index, rule in enumerate(new.get("rules") or []) for error in self._rule(rule, f"rules[{index}]")]

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return self.validate_create(context, new)

    def _rule(self, rule: Node, path: str) -> Errors:
        found: Errors = []
        if not rule.get("verbs"):
            found.append(required(f"{path}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            if self.namespaced:
                found.append(invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs"))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                why = "rules cannot apply to both regular resources and non-resource URLs"
                found.append(invalid(f"{path}.nonResourceURLs", urls, why))
            return found
        if not rule.get("apiGroups"):
            found.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            found.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
        return found


class ClusterRoleStrategy(RoleStrategy):
    kind, plural, singular, namespaced = "ClusterRole", "clusterroles", "clusterrole", False

    def validate_create(self, context: Context, new: Document) -> Errors:
        found = super().validate_create(context, new)
        rule = new.get("aggregationRule")
        if rule is None:
            return found
        path = "aggregationRule.clusterRoleSelectors"
        if not rule.get("clusterRoleSelectors"):
            found.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
        for index, selector in enumerate(rule.get("clusterRoleSelectors") or []):
            found += label_selector_errors(selector, f"{path}[{index}]")
        return found


class RoleBindingStrategy(Strategy):
    group, kind, plural, singular = GROUP, "RoleBinding", "rolebindings", "rolebinding"
    kinds: tuple[str, ...] = ("Role", "ClusterRole")

    def default(self, document: Document) -> None:
        reference = document.setdefault("roleRef", {})
        reference["apiGroup"] = reference.get("apiGroup") or GROUP
        for subject in document.get("subjects") or []:
            if subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = subject.get("apiGroup") or GROUP

    def validate_create(self, context: Context, new: Document) -> Errors:
        reference = new["roleRef"]
        found: Errors = []
        if reference["apiGroup"] != GROUP:
            found.append(not_supported("roleRef.apiGroup", reference["apiGroup"], (GROUP,)))
        if reference.get("kind", "") not in self.kinds:
            found.append(not_supported("roleRef.kind", reference.get("kind", ""), self.kinds))
        name = reference.get("name", "")
        if not name:
            found.append(required("roleRef.name"))
        else:
            found += [invalid("roleRef.name", name, why) for why in metadata.path_rule(name, False)]
        for index, subject in enumerate(new.get("subjects") or []):
            found += self._subject(subject, f"subjects[{index}]")
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        found = self.validate_create(context, new)
        if new["roleRef"] != old["roleRef"]:
            found.append(invalid("roleRef", new["roleRef"], "cannot change roleRef"))
        return found

    def _subject(self, subject: Node, path: str) -> Errors:
        name, group, kind = subject.get("name", ""), subject.get("apiGroup", ""), subject.get("kind", "")
        found = [] if name else [required(f"{path}.name")]
        match kind:
            case "ServiceAccount":
                if name:
                    found += [invalid(f"{path}.name", name, why) for why in dns1123_subdomain(name)]
                if group:
                    found.append(not_supported(f"{path}.apiGroup", group, ("",)))
                if not self.namespaced and not subject.get("namespace"):
                    found.append(required(f"{path}.namespace"))
            case "User" | "Group":
                if group != GROUP:
                    found.append(not_supported(f"{path}.apiGroup", group, (GROUP,)))
            case _:
                found.append(not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
        return found


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    kind, plural, singular, namespaced = "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding", False
    kinds = ("ClusterRole",)


def rows() -> list[Resource]:
    """What the registry serves of RBAC."""
    kinds = (RoleStrategy(), ClusterRoleStrategy(), RoleBindingStrategy(), ClusterRoleBindingStrategy())
    return [Resource(strategy, name_rule="path") for strategy in kinds]


# ---------------------------------------------------------------- escalation


def check_escalation(context: Context, attributes: Attributes, may: Callable[[ApiRequest], bool]) -> None:
    """Raise 403 if the write grants what its user does not have.

    Who may ``escalate`` roles or ``bind`` that role is let through (``may`` decides), and so are administrators.
    """
    new, old = attributes.new, attributes.old
    if attributes.resource not in _RESOURCES or new is None or MASTERS in context.groups:
        return
    if old is not None and _substance(new) == _substance(old):
        return
    judge, namespace = Rbac(context.reader), attributes.namespace
    plural = attributes.resource.partition(".")[0]
    asked = ApiRequest("escalate", plural, GROUP, namespace=namespace, name=attributes.name)
    wanted: Sequence[Node] | str = new.get("rules") or []
    if attributes.resource in _BINDINGS:
        reference = new.get("roleRef") or {}
        role = {"Role": "roles", "ClusterRole": "clusterroles"}.get(reference.get("kind", ""), "")
        asked = ApiRequest("bind", role, GROUP, namespace=namespace, name=reference.get("name", ""))
        wanted = judge.rules_of(reference, namespace)
    asked = _by(asked, context)
    if asked.resource and may(asked):
        return
    if isinstance(wanted, str):
        raise statuses.not_found(GROUP, asked.resource[:-1], asked.name) if asked.resource else statuses.internal(wanted)
    own, troubles = [], []
    for grant in judge.grants(context.user, context.groups, namespace):
        if grant.rule is None:
            troubles.append(grant.trouble)
        else:
            own.append(grant.rule)
    missing = rbac.compact(rbac.uncovered(own, wanted))
    why = ""
    if missing:
        groups, listed = " ".join(map(quoted, context.groups)), "\n".join(missing)
        why = (
            f"user {quoted(context.user)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{listed}"
        )
        if troubles:
            why += f"; resolution errors: [{rbac.aggregate(troubles)}]"
    elif any(one.get("aggregationRule") for one in (new, old or {})) and rbac.uncovered(own, _EVERYTHING):
        why = "must have cluster-admin privileges to use the aggregationRule"
    if why:
        raise statuses.forbidden(GROUP, plural, attributes.name, why)


def _substance(document: Node) -> Document:
    """A role or binding without what the garbage collector may change, and what is no business of a user's."""
    loose = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
    meta = {field: value for field, value in document["metadata"].items() if field not in loose}
    return {**document, "metadata": meta}


def _by(request: ApiRequest, context: Context) -> ApiRequest:
    return ApiRequest(
        request.verb,
        request.resource,
        request.group,
        namespace=request.namespace,
        name=request.name,
        user=context.user,
        groups=context.groups,
    )
