"""The roles and bindings that a cluster has from the start, as upstream's bootstrap policy states them.

Left out are those about what is not emulated: certificates, volumes, the proxy, DNS, heapster. ``pods/resize`` is in none of them
but by a wildcard (RC-22).
"""

from collections.abc import Iterable
from typing import Any

from elbowroom.apiserver.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP, aggregated

Document = dict[str, Any]

_READ = "get list watch"
_WRITE = "create delete deletecollection patch update"
_READ_WRITE = f"{_READ} {_WRITE}"
_META = {
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    "annotations": {f"{GROUP.replace('k8s.io', 'kubernetes.io')}/autoupdate": "true"},
}
_PODS = "pods pods/attach pods/exec pods/portforward pods/proxy"
_STATUS = (
    "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status"
)
_OBJECTS = "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale serviceaccounts services"
_WORKLOADS = "daemonsets deployments deployments/scale replicasets replicasets/scale"


def _rule(verbs: str, groups: str, resources: str, names: str = "") -> Document:
    """``groups`` are comma separated, since that of the core has no name."""
    rule: Document = {"verbs": sorted(verbs.split()), "apiGroups": groups.split(","), "resources": sorted(resources.split())}
    return {**rule, "resourceNames": names.split()} if names else rule


def _paths(verbs: str, urls: str) -> Document:
    return {"verbs": verbs.split(), "nonResourceURLs": sorted(urls.split())}


_EVENTS = _rule("create patch update", ",events.k8s.io", "events")

_VIEW = [
    _rule(_READ, "", f"{_OBJECTS} endpoints persistentvolumeclaims/status pods services/status"),
    _rule(_READ, "", _STATUS),
    _rule(_READ, "", "namespaces"),
    _rule(_READ, ",events.k8s.io", "events"),
    _rule(_READ, "discovery.k8s.io", "endpointslices"),
    _rule(
        _READ,
        "apps",
        f"{_WORKLOADS} controllerrevisions daemonsets/status deployments/status replicasets/status statefulsets statefulsets/scale "
        "statefulsets/status",
    ),
    _rule(_READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    _rule(_READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    _rule(
        _READ,
        "extensions",
        f"{_WORKLOADS} daemonsets/status deployments/status ingresses ingresses/status networkpolicies replicasets/status "
        "replicationcontrollers/scale",
    ),
    _rule(_READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    _rule(_READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    _rule(_READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
]

_EDIT = [
    _rule(_READ, "", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    _rule("impersonate", "", "serviceaccounts"),
    _rule(_WRITE, "", _PODS),
    _rule("create", "", "pods/eviction"),
    _rule(_WRITE, "", f"{_OBJECTS} secrets services/proxy"),
    _rule("create", "", "serviceaccounts/token"),
    _rule(_WRITE, ",events.k8s.io", "events"),
    _rule(_WRITE, "apps", f"{_WORKLOADS} deployments/rollback statefulsets statefulsets/scale"),
    _rule(_WRITE, "autoscaling", "horizontalpodautoscalers"),
    _rule(_WRITE, "batch", "cronjobs jobs"),
    _rule(_WRITE, "extensions", f"{_WORKLOADS} deployments/rollback ingresses networkpolicies replicationcontrollers/scale"),
    _rule(_WRITE, "policy", "poddisruptionbudgets"),
    _rule(_WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    _rule(_READ_WRITE, "coordination.k8s.io", "leases"),
    _rule(_WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
]

_ADMIN = [
    _rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    _rule(_READ_WRITE, GROUP, "rolebindings roles"),
]

_NODE = [
    _rule("create", "authentication.k8s.io", "tokenreviews"),
    _rule("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
    _rule(_READ, "", "services"),
    _rule("create get list watch", "", "nodes"),
    _rule("patch update", "", "nodes/status"),
    _rule("patch update", "", "nodes"),
    _EVENTS,
    _rule(_READ, "", "pods"),
    _rule("create delete", "", "pods"),
    _rule("patch update", "", "pods/status"),
    _rule("create", "", "pods/eviction"),
    _rule(_READ, "", "configmaps secrets"),
    _rule("get", "", "persistentvolumeclaims persistentvolumes"),
    _rule("get", "", "endpoints"),
    _rule("create delete get patch update", "coordination.k8s.io", "leases"),
    _rule("create", "", "serviceaccounts/token"),
    _rule(_READ, "node.k8s.io", "runtimeclasses"),
]

_SCHEDULER = [
    _EVENTS,
    _rule("create", "coordination.k8s.io", "leases"),
    _rule("get list update watch", "coordination.k8s.io", "leases", "kube-scheduler"),
    _rule(_READ, "", "nodes"),
    _rule("delete get list watch", "", "pods"),
    _rule("create", "", "bindings pods/binding"),
    _rule("patch update", "", "pods/status"),
    _rule(_READ, "", "replicationcontrollers services"),
    _rule(_READ, "apps,extensions", "replicasets"),
    _rule(_READ, "apps", "statefulsets"),
    _rule(_READ, "policy", "poddisruptionbudgets"),
    _rule(_READ, "", "persistentvolumeclaims persistentvolumes"),
    _rule("create", "authentication.k8s.io", "tokenreviews"),
    _rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    _rule(_READ, "", "namespaces"),
]

_CONTROLLERS = [
    _EVENTS,
    _rule("create", "coordination.k8s.io", "leases"),
    _rule("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
    _rule("create", "", "secrets serviceaccounts"),
    _rule("delete", "", "secrets"),
    _rule("get", "", "configmaps namespaces secrets serviceaccounts"),
    _rule("update", "", "secrets serviceaccounts"),
    _rule("create", "authentication.k8s.io", "tokenreviews"),
    _rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    _rule("list watch", "*", "*"),
    _rule("create", "", "serviceaccounts/token"),
]

_HEALTH = "/healthz /livez /readyz"
_ROLES: dict[str, list[Document]] = {
    "cluster-admin": [_rule("*", "*", "*"), _paths("*", "*")],
    "system:discovery": [_paths("get", f"{_HEALTH} /api /api/* /apis /apis/* /openapi /openapi/* /version /version/")],
    "system:monitoring": [
        _paths("get", f"{_HEALTH} /healthz/* /livez/* /metrics /metrics/slis /readyz/*"),
        _rule("get", "", "nodes/metrics"),
    ],
    "system:basic-user": [
        _rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        _rule("create", "authentication.k8s.io", "selfsubjectreviews"),
    ],
    "system:public-info-viewer": [_paths("get", f"{_HEALTH} /version /version/")],
    "system:node": _NODE,
    "system:node-problem-detector": [_rule("get", "", "nodes"), _rule("patch", "", "nodes/status"), _EVENTS],
    "system:auth-delegator": [
        _rule("create", "authentication.k8s.io", "tokenreviews"),
        _rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    ],
    "system:kube-controller-manager": _CONTROLLERS,
    "system:kubelet-api-admin": [
        _rule(_READ, "", "nodes"),
        _rule("proxy", "", "nodes"),
        _rule("*", "", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
        _rule("*", "", "nodes/configz nodes/healthz nodes/pods"),
    ],
    "system:kube-scheduler": _SCHEDULER,
}

_LADDER = (("view", "edit", _VIEW), ("edit", "admin", _EDIT), ("admin", "", _ADMIN))
"""Aggregated roles, the next one up, and the rules that each adds."""

_BINDINGS = (
    ("cluster-admin", "Group system:masters"),
    ("system:monitoring", "Group system:monitoring"),
    ("system:discovery", "Group system:authenticated"),
    ("system:basic-user", "Group system:authenticated"),
    ("system:public-info-viewer", "Group system:authenticated", "Group system:unauthenticated"),
    ("system:kube-controller-manager", "User system:kube-controller-manager"),
    ("system:kube-scheduler", "User system:kube-scheduler"),
    ("system:node",),
)


def objects() -> list[tuple[str, Document]]:
    """(resource, document) of all default ClusterRoles, then of their bindings."""
    roles = [_role(name, rules) for name, rules in _ROLES.items()]
    rungs = []
    for name, above, rules in _LADDER:
        added = _role(f"system:aggregate-to-{name}", rules, _aggregates_to(name))
        rung = _role(name, [], _aggregates_to(above) if above else {})
        rung["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": _aggregates_to(name)}]}
        roles += [added, rung]
        rungs.append(rung)
    for rung in rungs:
        rung["rules"] = aggregated(rung, roles)
    return [*((CLUSTER_ROLES, role) for role in roles), *((CLUSTER_ROLE_BINDINGS, _binding(*one)) for one in _BINDINGS)]


def _aggregates_to(name: str) -> dict[str, str]:
    return {f"{GROUP}/aggregate-to-{name}": "true"}


def _role(name: str, rules: list[Document], labels: dict[str, str] | None = None) -> Document:
    return {"metadata": {"name": name, **_META, "labels": {**_META["labels"], **(labels or {})}}, "rules": rules}


def _binding(name: str, *subjects: str) -> Document:
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    return {"metadata": {"name": name, **_META}, "subjects": list(_subjects(subjects)), "roleRef": role}


def _subjects(texts: Iterable[str]) -> Iterable[Document]:
    for text in texts:
        kind, _, name = text.partition(" ")
        yield {"kind": kind, "apiGroup": GROUP, "name": name}
