"""What all controllers are made of: keys to look at, a plan for each, and the shared copy of the cluster.

A controller never waits. ``notice`` says which of its keys a change concerns; ``reconcile`` looks at one key and plans requests.
The machine sends them, one round a key at a time, and lets the key alone until the copy shows what the round wrote: so no decision
is ever made on a state older than the controller's own last write, which is what upstream's expectations are for.

Requests are repeatable: creations bear names, updates and deletions the revision or uid that they are meant for. A
request whose outcome is unknown is sent again as it was; it cannot happen twice.
"""

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom.api.clock import parse_time
from elbowroom.api.events import reference
from elbowroom.api.objects import Lease, Node, ObjectMeta, OwnerReference, Pod
from elbowroom.api.quotas import ResourceQuota
from elbowroom.api.selectors import matches
from elbowroom.cache import Change, Reflector, WorkQueue
from elbowroom.controllers.views import (
    Budget,
    ControllerRevision,
    CronJob,
    DaemonSet,
    Definition,
    Deployment,
    Event,
    Job,
    Metadata,
    Namespace,
    ReplicaSet,
    StatefulSet,
)
from elbowroom.machine import Instant
from elbowroom.wire import ApiRequest, ApiResponse

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
READS: Mapping[str, type[Any]] = {
    "pods": Pod,
    "nodes": Node,
    "leases.coordination.k8s.io": Lease,
    "replicasets.apps": ReplicaSet,
    "deployments.apps": Deployment,
    "poddisruptionbudgets.policy": Budget,
    "resourcequotas": ResourceQuota,
    "namespaces": Namespace,
    "configmaps": Metadata,
    "limitranges": Metadata,
    "serviceaccounts": Metadata,
    "services": Metadata,
    "roles.rbac.authorization.k8s.io": Metadata,
    "rolebindings.rbac.authorization.k8s.io": Metadata,
    "events": Event,
    "statefulsets.apps": StatefulSet,
    "daemonsets.apps": DaemonSet,
    "controllerrevisions.apps": ControllerRevision,
    "jobs.batch": Job,
    "cronjobs.batch": CronJob,
    "persistentvolumeclaims": Metadata,
    "secrets": Metadata,
    "podtemplates": Metadata,
    "endpoints": Metadata,
    "endpointslices.discovery.k8s.io": Metadata,
    "ingresses.networking.k8s.io": Metadata,
    "networkpolicies.networking.k8s.io": Metadata,
    "horizontalpodautoscalers.autoscaling": Metadata,
    "clusterroles.rbac.authorization.k8s.io": Metadata,
    "clusterrolebindings.rbac.authorization.k8s.io": Metadata,
    "priorityclasses.scheduling.k8s.io": Metadata,
    "storageclasses.storage.k8s.io": Metadata,
    "ingressclasses.networking.k8s.io": Metadata,
    "persistentvolumes": Metadata,
    DEFINITIONS: Definition,
}
"""The collections that controllers read, and the views they read them as."""

KINDS: Mapping[tuple[str, str], str] = {
    ("v1", "Pod"): "pods",
    ("v1", "Node"): "nodes",
    ("v1", "ConfigMap"): "configmaps",
    ("v1", "Namespace"): "namespaces",
    ("v1", "ResourceQuota"): "resourcequotas",
    ("apps/v1", "ReplicaSet"): "replicasets.apps",
    ("apps/v1", "Deployment"): "deployments.apps",
    ("policy/v1", "PodDisruptionBudget"): "poddisruptionbudgets.policy",
    ("coordination.k8s.io/v1", "Lease"): "leases.coordination.k8s.io",
    ("apps/v1", "StatefulSet"): "statefulsets.apps",
    ("apps/v1", "DaemonSet"): "daemonsets.apps",
    ("apps/v1", "ControllerRevision"): "controllerrevisions.apps",
    ("batch/v1", "Job"): "jobs.batch",
    ("batch/v1", "CronJob"): "cronjobs.batch",
    ("v1", "PersistentVolumeClaim"): "persistentvolumeclaims",
    ("v1", "Secret"): "secrets",
    ("v1", "Service"): "services",
    ("v1", "ServiceAccount"): "serviceaccounts",
    ("v1", "LimitRange"): "limitranges",
    ("v1", "Endpoints"): "endpoints",
    ("v1", "PodTemplate"): "podtemplates",
    ("discovery.k8s.io/v1", "EndpointSlice"): "endpointslices.discovery.k8s.io",
    ("networking.k8s.io/v1", "Ingress"): "ingresses.networking.k8s.io",
    ("networking.k8s.io/v1", "NetworkPolicy"): "networkpolicies.networking.k8s.io",
    ("autoscaling/v2", "HorizontalPodAutoscaler"): "horizontalpodautoscalers.autoscaling",
    ("autoscaling/v1", "HorizontalPodAutoscaler"): "horizontalpodautoscalers.autoscaling",
    ("rbac.authorization.k8s.io/v1", "Role"): "roles.rbac.authorization.k8s.io",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "rolebindings.rbac.authorization.k8s.io",
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): "clusterroles.rbac.authorization.k8s.io",
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): "clusterrolebindings.rbac.authorization.k8s.io",
    ("scheduling.k8s.io/v1", "PriorityClass"): "priorityclasses.scheduling.k8s.io",
    ("storage.k8s.io/v1", "StorageClass"): "storageclasses.storage.k8s.io",
    ("networking.k8s.io/v1", "IngressClass"): "ingressclasses.networking.k8s.io",
    ("v1", "PersistentVolume"): "persistentvolumes",
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): DEFINITIONS,
}
CLUSTER_SCOPED = frozenset(
    {
        "nodes",
        "namespaces",
        "persistentvolumes",
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "priorityclasses.scheduling.k8s.io",
        "storageclasses.storage.k8s.io",
        "ingressclasses.networking.k8s.io",
        DEFINITIONS,
    }
)

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


# ---------------------------------------------------------------- plans


@dataclass(frozen=True, slots=True)
class Told:
    """An Event to record. ``regarding`` is an ObjectReference."""

    regarding: Mapping[str, str]
    kind: str
    reason: str
    message: str
    component: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of a round; ``tag`` is for the controller that reads its answer."""

    request: ApiRequest
    tag: Any = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about a key: requests (side by side), events, and when to look again in any case."""

    asks: tuple[Ask, ...] = ()
    events: tuple[Told, ...] = ()
    again_at: Instant | None = None


NOTHING = Plan()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a request ended: certainly done, or certainly not."""

    ok: bool
    status: int
    reason: str
    message: str
    response: ApiResponse


class _Status(msgspec.Struct):
    reason: str = ""
    message: str = ""


def outcome_of(response: ApiResponse) -> Outcome:
    """A definite answer, with its Status read if it is a refusal."""
    if 200 <= response.status < 300:
        return Outcome(True, response.status, "", "", response)
    try:
        status = msgspec.json.decode(response.body, type=_Status)
    except (msgspec.MsgspecError, RecursionError):
        status = _Status(message=f"status {response.status}")
    return Outcome(False, response.status, status.reason, status.message, response)


class Controller:
    """A control loop. ``reads`` names the collections without which it decides nothing."""

    name: str = ""
    reads: tuple[str, ...] = ()

    def __init__(self, shared: "Shared", rng: random.Random) -> None:
        self.shared, self.rng = shared, rng
        self.queue = WorkQueue()

    def begin(self, now: Instant) -> None:
        """All that it reads is there."""

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        """The keys that a change concerns; it may come before ``begin``."""
        return ()

    def reconcile(self, now: Instant, key: str) -> Plan:
        """What to do about ``key``."""
        raise NotImplementedError

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        """A request of ``key``'s round ended; events about it."""
        return ()

    def reconnected(self, now: Instant) -> None:
        """The API server was away for a while."""


# ---------------------------------------------------------------- the shared copy


@dataclass(slots=True)
class Shared:
    """The reflectors, and pods by what controllers look for them by."""

    reflectors: Mapping[str, Reflector[Any]]
    pods_by_node: dict[str, dict[str, None]] = field(default_factory=dict)
    pods_by_namespace: dict[str, dict[str, None]] = field(default_factory=dict)
    customs: dict[str, Definition] = field(default_factory=dict)
    """The custom kinds of which there is a copy too, by resource."""

    @property
    def pods(self) -> Mapping[str, Pod]:
        return self.reflectors["pods"].store

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self.reflectors["nodes"].store

    @property
    def leases(self) -> Mapping[str, Lease]:
        return self.reflectors["leases.coordination.k8s.io"].store

    @property
    def replica_sets(self) -> Mapping[str, ReplicaSet]:
        return self.reflectors["replicasets.apps"].store

    @property
    def deployments(self) -> Mapping[str, Deployment]:
        return self.reflectors["deployments.apps"].store

    @property
    def budgets(self) -> Mapping[str, Budget]:
        return self.reflectors["poddisruptionbudgets.policy"].store

    @property
    def quotas(self) -> Mapping[str, ResourceQuota]:
        return self.reflectors["resourcequotas"].store

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        return self.reflectors["namespaces"].store

    def observe(self, resource: str, change: Change[Any]) -> None:
        """Keep the indexes."""
        if resource != "pods":
            return
        old, new = change.old, change.new
        if old is not None and new is not None and old.spec.node_name == new.spec.node_name:
            return  # a name's namespace is in its key
        for pod in (old, new):
            if pod is None:
                continue
            for index, place in ((self.pods_by_node, pod.spec.node_name), (self.pods_by_namespace, pod.metadata.namespace)):
                held = index.setdefault(place, {})
                if pod is change.new:
                    held[change.key] = None
                else:
                    held.pop(change.key, None)
                    if not held:
                        del index[place]

    def pods_on(self, node: str) -> list[Pod]:
        return [self.pods[key] for key in self.pods_by_node.get(node, ())]

    def pods_in(self, namespace: str) -> list[Pod]:
        return [self.pods[key] for key in self.pods_by_namespace.get(namespace, ())]

    def in_namespace(self, resource: str, namespace: str) -> list[Any]:
        """The objects of a collection that live in a namespace."""
        return [v for v in self.reflectors[resource].store.values() if v.metadata.namespace == namespace]

    def resource_of(self, api_version: str, kind: str) -> str | None:
        """The collection of a kind, if there is a copy of it."""
        known = KINDS.get((api_version, kind))
        if known is not None:
            return known
        group = api_version.rpartition("/")[0]
        return next((name for name, d in self.customs.items() if (d.spec.group, d.spec.names.kind) == (group, kind)), None)

    def is_namespaced(self, resource: str) -> bool:
        """Do its objects live in namespaces?"""
        custom = self.customs.get(resource)
        return resource not in CLUSTER_SCOPED if custom is None else custom.is_namespaced

    def versioned(self, request: ApiRequest) -> ApiRequest:
        """The request in a version that its resource is served in."""
        custom = self.customs.get(f"{request.resource}.{request.group}")
        return request if custom is None else msgspec.structs.replace(request, version=custom.version)

    def owners(self, owned: ObjectMeta, kind: str, resource: str) -> Iterable[str]:
        """The keys of those in ``resource`` whose business an object is: of its controller, if that is of ``kind``; of all who
        select it, if nobody controls it."""
        owner = controller_of(owned)
        if owner is None:
            candidates = self.in_namespace(resource, owned.namespace)
            yield from (one.metadata.key for one in candidates if matches(one.spec.selector, owned.labels))
        elif owner.kind == kind:
            yield f"{owned.namespace}/{owner.name}"


# ---------------------------------------------------------------- facts about objects


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner that manages it."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)


def owner_reference(api_version: str, kind: str, metadata: ObjectMeta) -> dict[str, Any]:
    """A managing ownerReference to that object."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_ready(pod: Pod) -> bool:
    condition = pod.condition("Ready")
    return condition is not None and condition.status == "True"


def is_active(pod: Pod) -> bool:
    """It counts as a replica: neither ended nor about to."""
    return not pod.is_terminal and not pod.is_terminating


def available_at(pod: Pod, min_ready_seconds: int) -> int | None:
    """When a ready pod counts as available (ns); None while it is not ready."""
    condition = pod.condition("Ready")
    if condition is None or condition.status != "True":
        return None
    if not min_ready_seconds or condition.last_transition_time is None:
        return 0
    return instant(condition.last_transition_time) + min_ready_seconds * 1_000_000_000


def instant(text: str | None) -> int:
    """An API timestamp in ns; 0 for none or nonsense."""
    if text is None:
        return 0
    try:
        return parse_time(text)
    except ValueError:
        return 0


def scaled(value: int | str | None, total: int, *, up: bool) -> int:
    """An int-or-percent of ``total``; ``ValueError`` in upstream's words."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    try:
        if not value.endswith("%"):
            raise ValueError
        percent = int(value[:-1])
    except ValueError:
        raise ValueError(f'invalid value for IntOrString: invalid type: string is not a percentage: "{value}"') from None
    return math.ceil(percent * total / 100) if up else percent * total // 100


def refer(kind: str, metadata: ObjectMeta) -> dict[str, str]:
    """An ObjectReference for an Event."""
    versions = {"ReplicaSet": "apps/v1", "Deployment": "apps/v1", "PodDisruptionBudget": "policy/v1"}
    return reference(kind, metadata, api_version=versions.get(kind, "v1"))


def with_suffix(prefix: str, rng: random.Random) -> str:
    """``prefix`` and five random letters, as the API server completes ``generateName``."""
    return prefix[:58] + "".join(rng.choice(_SUFFIX) for _ in range(5))


def built(view: msgspec.Struct) -> Any:
    """A view as a JSON-shaped value."""
    return msgspec.to_builtins(view)


def merged_conditions(conditions: Iterable[Any], *changed: Any) -> list[Any]:
    """``conditions`` with those of the same types replaced where they stand, new ones at the end."""
    found = list(conditions)
    for condition in changed:
        for place, old in enumerate(found):
            if old.type == condition.type:
                found[place] = condition
                break
        else:
            found.append(condition)
    return found
