"""What is served, and how clients find it: resources, their verbs and subresources, and the discovery documents.

One table says what there is; the aggregated documents (which kubectl asks first), the older ones, ``/version`` and the routing of
URLs all come from it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_STATUS = ("get", "patch", "update")

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION_MINOR = "37"
GIT_VERSION = f"v1.{VERSION_MINOR}.0+elbowroom"


@dataclass(frozen=True, slots=True)
class Subresource:
    """``pods/resize``. ``group`` and ``version`` are those of its kind where they differ from the resource's."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """A collection that the API server has."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL
    subresources: tuple[Subresource, ...] = ()
    singular_name: str = ""
    list_kind: str = ""
    definition: Mapping[str, Any] | None = field(default=None, compare=False)
    """What the CustomResourceDefinition says of this version, of a custom kind."""

    @property
    def singular(self) -> str:
        return self.singular_name or self.kind.lower()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """``pods``, ``replicasets.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def subresource(self, name: str) -> Subresource | None:
        return next((s for s in self.subresources if s.name == name), None)


def _status(kind: str) -> Subresource:
    return Subresource("status", kind, _STATUS)


_SCALE = Subresource("scale", "Scale", _STATUS, "autoscaling", "v1")
_REVIEW = ("create",)

RESOURCES: tuple[Resource, ...] = (
    Resource("bindings", "Binding", verbs=_REVIEW),
    Resource("configmaps", "ConfigMap", short_names=("cm",)),
    Resource("endpoints", "Endpoints", short_names=("ep",)),
    Resource("events", "Event", short_names=("ev",)),
    Resource("limitranges", "LimitRange", short_names=("limits",)),
    Resource(
        "namespaces",
        "Namespace",
        namespaced=False,
        short_names=("ns",),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        subresources=(Subresource("finalize", "Namespace", ("update",)), _status("Namespace")),
    ),
    Resource(
        "nodes",
        "Node",
        namespaced=False,
        short_names=("no",),
        subresources=(Subresource("proxy", "NodeProxyOptions", ("get",)), _status("Node")),
    ),
    Resource(
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        short_names=("pvc",),
        subresources=(_status("PersistentVolumeClaim"),),
    ),
    Resource(
        "persistentvolumes",
        "PersistentVolume",
        namespaced=False,
        short_names=("pv",),
        subresources=(_status("PersistentVolume"),),
    ),
    Resource(
        "pods",
        "Pod",
        short_names=("po",),
        categories=("all",),
        subresources=(
            Subresource("binding", "Binding", ("create",)),
            Subresource("ephemeralcontainers", "Pod", _STATUS),
            Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
            Subresource("log", "Pod", ("get",)),
            Subresource("resize", "Pod", _STATUS),
            _status("Pod"),
        ),
    ),
    Resource("podtemplates", "PodTemplate"),
    Resource("resourcequotas", "ResourceQuota", short_names=("quota",), subresources=(_status("ResourceQuota"),)),
    Resource("secrets", "Secret"),
    Resource(
        "serviceaccounts",
        "ServiceAccount",
        short_names=("sa",),
        subresources=(Subresource("token", "TokenRequest", ("create",), "authentication.k8s.io", "v1"),),
    ),
    Resource("services", "Service", short_names=("svc",), categories=("all",), subresources=(_status("Service"),)),
    Resource("controllerrevisions", "ControllerRevision", "apps"),
    Resource("daemonsets", "DaemonSet", "apps", short_names=("ds",), categories=("all",), subresources=(_status("DaemonSet"),)),
    Resource(
        "deployments",
        "Deployment",
        "apps",
        short_names=("deploy",),
        categories=("all",),
        subresources=(_SCALE, _status("Deployment")),
    ),
    Resource(
        "replicasets", "ReplicaSet", "apps", short_names=("rs",), categories=("all",), subresources=(_SCALE, _status("ReplicaSet"))
    ),
    Resource(
        "statefulsets",
        "StatefulSet",
        "apps",
        short_names=("sts",),
        categories=("all",),
        subresources=(_SCALE, _status("StatefulSet")),
    ),
    Resource(
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "apiextensions.k8s.io",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=(_status("CustomResourceDefinition"),),
    ),
    Resource("selfsubjectreviews", "SelfSubjectReview", "authentication.k8s.io", namespaced=False, verbs=_REVIEW),
    Resource("tokenreviews", "TokenReview", "authentication.k8s.io", namespaced=False, verbs=_REVIEW),
    Resource("localsubjectaccessreviews", "LocalSubjectAccessReview", "authorization.k8s.io", verbs=_REVIEW),
    Resource("selfsubjectaccessreviews", "SelfSubjectAccessReview", "authorization.k8s.io", namespaced=False, verbs=_REVIEW),
    Resource("selfsubjectrulesreviews", "SelfSubjectRulesReview", "authorization.k8s.io", namespaced=False, verbs=_REVIEW),
    Resource("subjectaccessreviews", "SubjectAccessReview", "authorization.k8s.io", namespaced=False, verbs=_REVIEW),
    Resource(
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "autoscaling",
        "v2",
        short_names=("hpa",),
        categories=("all",),
        subresources=(_status("HorizontalPodAutoscaler"),),
    ),
    Resource(
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "autoscaling",
        short_names=("hpa",),
        categories=("all",),
        subresources=(_status("HorizontalPodAutoscaler"),),
    ),
    Resource("cronjobs", "CronJob", "batch", short_names=("cj",), categories=("all",), subresources=(_status("CronJob"),)),
    Resource("jobs", "Job", "batch", categories=("all",), subresources=(_status("Job"),)),
    Resource("leases", "Lease", "coordination.k8s.io"),
    Resource("endpointslices", "EndpointSlice", "discovery.k8s.io"),
    Resource("events", "Event", "events.k8s.io", short_names=("ev",)),
    Resource("ingressclasses", "IngressClass", "networking.k8s.io", namespaced=False),
    Resource("ingresses", "Ingress", "networking.k8s.io", short_names=("ing",), subresources=(_status("Ingress"),)),
    Resource("networkpolicies", "NetworkPolicy", "networking.k8s.io", short_names=("netpol",)),
    Resource(
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        "policy",
        short_names=("pdb",),
        subresources=(_status("PodDisruptionBudget"),),
    ),
    Resource("clusterrolebindings", "ClusterRoleBinding", "rbac.authorization.k8s.io", namespaced=False),
    Resource("clusterroles", "ClusterRole", "rbac.authorization.k8s.io", namespaced=False),
    Resource("rolebindings", "RoleBinding", "rbac.authorization.k8s.io"),
    Resource("roles", "Role", "rbac.authorization.k8s.io"),
    Resource("priorityclasses", "PriorityClass", "scheduling.k8s.io", namespaced=False, short_names=("pc",)),
    Resource("storageclasses", "StorageClass", "storage.k8s.io", namespaced=False, short_names=("sc",)),
)

GATED: Mapping[str, tuple[Resource, ...]] = {
    "GenericWorkload": (
        Resource("podgroups", "PodGroup", "scheduling.k8s.io", "v1beta1", subresources=(_status("PodGroup"),)),
        Resource("workloads", "Workload", "scheduling.k8s.io", "v1beta1"),
    )
}
"""What is served besides, by the gate that has to be on."""


def built_in(gates: Collection[str]) -> "tuple[Resource, ...]":
    """What is served whatever is in the store, with these gates on."""
    return (*RESOURCES, *(resource for gate, those in GATED.items() if gate in gates for resource in those))


# ---------------------------------------------------------------- documents


def version() -> dict[str, str]:
    """``/version``."""
    return {
        "major": "1",
        "minor": VERSION_MINOR,
        "emulationMajor": "1",
        "emulationMinor": VERSION_MINOR,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(int(VERSION_MINOR) - 1),
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "cpython",
        "platform": "linux/amd64",
    }


def api_versions(address: str) -> dict[str, Any]:
    """``/api``; ``address`` is where clients reach the server (``127.0.0.1:6443``)."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _group(name: str, versions: Sequence[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{v}", "version": v} for v in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _response_kind(resource: Resource, kind: str) -> dict[str, str]:
    """Upstream says group and version of custom kinds only."""
    if resource.definition is None:
        return {"group": "", "version": "", "kind": kind}
    return {"group": resource.group, "version": resource.version, "kind": kind}


def _aggregated_resource(resource: Resource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind}
                if sub.version
                else _response_kind(resource, sub.kind),
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources
        ]
    return entry


@dataclass(frozen=True)
class Catalog:
    """What is served, and the documents that tell of it."""

    resources: tuple[Resource, ...]

    @cached_property
    def _by_path(self) -> Mapping[tuple[str, str, str], Resource]:
        return {(r.group, r.version, r.plural): r for r in self.resources}

    @cached_property
    def _by_version(self) -> Mapping[tuple[str, str], list[Resource]]:
        found: dict[tuple[str, str], list[Resource]] = {}
        for resource in self.resources:
            found.setdefault((resource.group, resource.version), []).append(resource)
        return found

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource of that name, if it is served."""
        return self._by_path.get((group, version, plural))

    def group_versions(self) -> list[tuple[str, str]]:
        """(group, version) of all that is served, core first."""
        return list(self._by_version)

    def of(self, group: str, version: str) -> list[Resource]:
        """The resources of one version of a group."""
        return self._by_version.get((group, version), [])

    def _versions(self, name: str) -> list[str]:
        return [v for g, v in self.group_versions() if g == name]

    def api_group_list(self) -> dict[str, Any]:
        """``/apis``."""
        names = list(dict.fromkeys(g for g, _ in self.group_versions() if g))
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name, self._versions(name)) for name in names]}

    def api_group(self, name: str) -> dict[str, Any] | None:
        """``/apis/GROUP``."""
        versions = self._versions(name) if name else ()
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None

    def api_resource_list(self, group: str, version: str) -> dict[str, Any] | None:
        """``/api/v1`` and ``/apis/GROUP/VERSION``."""
        resources = self.of(group, version)
        if not resources:
            return None
        listed: list[dict[str, Any]] = []
        for resource in resources:
            entry: dict[str, Any] = {
                "name": resource.plural,
                "singularName": resource.singular,
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": list(resource.verbs),
            }
            if resource.short_names:
                entry["shortNames"] = list(resource.short_names)
            if resource.categories:
                entry["categories"] = list(resource.categories)
            listed.append(entry)
            for sub in resource.subresources:
                entry = {"name": f"{resource.plural}/{sub.name}", "singularName": "", "namespaced": resource.namespaced}
                if sub.version:
                    entry |= {"group": sub.group, "version": sub.version}
                listed.append(entry | {"kind": sub.kind, "verbs": list(sub.verbs)})
        whole = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": resources[0].api_version, "resources": listed}
        if not group:
            del whole["apiVersion"]  # upstream leaves it out for the core group
        return whole

    def aggregated(self, core: bool) -> dict[str, Any]:
        """``/api`` (``core``) or ``/apis`` for a client that accepts ``AGGREGATED``."""
        names = [""] if core else [g for g in dict.fromkeys(g for g, _ in self.group_versions()) if g]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [
                {
                    "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
                    "versions": [
                        {
                            "version": version,
                            "resources": [_aggregated_resource(r) for r in self.of(name, version)],
                            "freshness": "Current",
                        }
                        for version in self._versions(name)
                    ],
                }
                for name in names
            ],
        }

    def root_paths(self, more: Iterable[str] = ()) -> dict[str, Any]:
        """``/``."""
        paths = ["/api", "/api/v1", "/apis"]
        for group, version in self.group_versions():
            if group:
                paths += [f"/apis/{group}", f"/apis/{group}/{version}"]
        return {"paths": sorted({*paths, "/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version", *more})}


BUILT_IN = Catalog(RESOURCES)
"""What is served whatever is in the store."""
find = BUILT_IN.find
group_versions = BUILT_IN.group_versions
api_group_list = BUILT_IN.api_group_list
api_group = BUILT_IN.api_group
api_resource_list = BUILT_IN.api_resource_list
aggregated = BUILT_IN.aggregated
root_paths = BUILT_IN.root_paths
