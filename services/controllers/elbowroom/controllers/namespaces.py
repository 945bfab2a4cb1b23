"""The end of a namespace: all that lives in it is deleted, and when nothing is left its finalizer goes.

A look lists every kind; what it finds is deleted, and the namespace's conditions tell what remains. Repeated every second until
nothing does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom import rpc
from elbowroom.api.clock import as_time
from elbowroom.api.objects import Object
from elbowroom.cache import Change
from elbowroom.controllers.kit import DEFINITIONS, NOTHING, Ask, Controller, Outcome, Plan, Told, built
from elbowroom.controllers.views import Condition, Namespace
from elbowroom.machine import Instant, seconds
from elbowroom.wire import ApiRequest

CONTENT = (
    "cronjobs.batch",
    "jobs.batch",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicasets.apps",
    "controllerrevisions.apps",
    "horizontalpodautoscalers.autoscaling",
    "pods",
    "poddisruptionbudgets.policy",
    "resourcequotas",
    "limitranges",
    "configmaps",
    "secrets",
    "services",
    "serviceaccounts",
    "persistentvolumeclaims",
    "podtemplates",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "ingresses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
    "leases.coordination.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "events",
)
"""Namespaced kinds, owners before what they own so that nothing grows again."""
BY_GATE = {"podgroups.scheduling.k8s.io": "v1beta1", "workloads.scheduling.k8s.io": "v1beta1"}
"""Namespaced kinds that are served only where a gate is on, each with its version."""

LOOK_AGAIN = seconds(1)
FINALIZER = "kubernetes"


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    remaining_item_count: int = 0


class _List(msgspec.Struct):
    items: list[Object] = []
    metadata: _Metadata = _Metadata()


@dataclass(slots=True)
class _Census:
    """What lists of one look have shown so far."""

    counts: dict[str, int] = field(default_factory=dict)
    finalizers: dict[str, int] = field(default_factory=dict)
    failed: bool = False
    missing: int = 0


def conditions_of(counts: Mapping[str, int], finalizers: Mapping[str, int], now: Instant) -> list[Condition]:
    """What a namespace that is being deleted says of its content."""
    names = {
        resource: resource if "." in resource else f"{resource}." for resource in counts
    }  # group after the dot, empty for core
    remain = ", ".join(f"{names[resource]} has {count} resource instances" for resource, count in sorted(counts.items()))
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))

    def told(kind: str, bad: bool, reason: tuple[str, str], message: tuple[str, str]) -> Condition:
        pick = 0 if bad else 1
        return Condition(
            type=kind,
            status="True" if bad else "False",
            reason=reason[pick],
            message=message[pick],
            last_transition_time=as_time(now),
        )

    return [
        told(
            "NamespaceDeletionDiscoveryFailure", False, ("", "ResourcesDiscovered"), ("", "All resources successfully discovered")
        ),
        told(
            "NamespaceDeletionGroupVersionParsingFailure",
            False,
            ("", "ParsedGroupVersions"),
            ("", "All legacy kube types successfully parsed"),
        ),
        told(
            "NamespaceDeletionContentFailure",
            False,
            ("", "ContentDeleted"),
            ("", "All content successfully deleted, may be waiting on finalization"),
        ),
        told(
            "NamespaceContentRemaining",
            bool(remain),
            ("SomeResourcesRemain", "ContentRemoved"),
            (f"Some resources are remaining: {remain}", "All content successfully removed"),
        ),
        told(
            "NamespaceFinalizersRemaining",
            bool(held),
            ("SomeFinalizersRemain", "ContentHasNoFinalizers"),
            (f"Some content in the namespace has finalizers remaining: {held}", "All content-preserving finalizers finished"),
        ),
    ]


def updated(old: Sequence[Condition], new: Sequence[Condition]) -> list[Condition]:
    """``new``, each as it stood if it says the same, and with its old transition time if its status is the same."""
    found: list[Condition] = []
    for condition in new:
        before = next((c for c in old if c.type == condition.type), None)
        if before is not None and before.status == condition.status:
            condition = msgspec.structs.replace(condition, last_transition_time=before.last_transition_time)
        found.append(condition)
    kept = [c for c in old if all(c.type != n.type for n in new)]
    return [*kept, *found]


class Namespaces(Controller):
    """Keys: names of namespaces."""

    name = "namespaces"
    reads = ("namespaces", DEFINITIONS)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._census: dict[str, _Census] = {}
        self._look_at: dict[str, Instant] = {}

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "namespaces":
            if change.new is not None and change.new.metadata.deletion_timestamp is not None:
                yield change.key
            else:
                self._census.pop(change.key, None)
                self._look_at.pop(change.key, None)

    def reconcile(self, now: Instant, key: str) -> Plan:
        namespace = self.shared.namespaces.get(key)
        if namespace is None or namespace.metadata.deletion_timestamp is None or FINALIZER not in namespace.spec.finalizers:
            return NOTHING
        look_at = self._look_at.get(key, now)
        if look_at > now:
            return Plan(again_at=look_at)
        census = self._census.pop(key, None)
        customs = self._customs()
        if census is None or census.failed or census.missing:
            self._census[key] = _Census(missing=len(CONTENT) + len(customs))
            asked = [Ask(rpc.listing(resource, namespace=key), ("list", resource)) for resource in CONTENT]
            for resource, version in customs.items():
                request = msgspec.structs.replace(rpc.listing(resource, namespace=key), version=version)
                asked.append(Ask(request, ("list", resource)))
            return Plan(tuple(asked))
        conditions = updated(namespace.status.conditions, conditions_of(census.counts, census.finalizers, now))
        asks = [Ask(_deletion(resource, key)) for resource in CONTENT if resource in census.counts]
        asks += [Ask(_deletion(resource, key, version)) for resource, version in customs.items() if resource in census.counts]
        if conditions != namespace.status.conditions:
            asks.append(_status(namespace, conditions))
        if census.counts:
            self._look_at[key] = Instant(now + LOOK_AGAIN)
            return Plan(tuple(asks), again_at=self._look_at[key])
        if asks:
            self._census[key] = census  # say that nothing is left, then let it go
            return Plan(tuple(asks))
        return Plan((_finalize(namespace),))

    def _customs(self) -> dict[str, str]:
        """Kinds in namespaces that may be served or not, each with a version to ask for."""
        definitions = self.shared.reflectors[DEFINITIONS].store
        return BY_GATE | {name: one.version for name, one in sorted(definitions.items()) if one.version and one.is_namespaced}

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        census = self._census.get(key)
        if ask.tag is None or census is None:
            return ()
        _, resource = ask.tag
        census.missing -= 1
        if outcome.ok:
            try:
                found = msgspec.json.decode(outcome.response.body, type=_List)
            except msgspec.MsgspecError:
                found = _List()
                census.failed = True
            count = len(found.items) + found.metadata.remaining_item_count
            if count:
                census.counts[resource] = count
            for item in found.items:
                for finalizer in item.metadata.finalizers:
                    census.finalizers[finalizer] = census.finalizers.get(finalizer, 0) + 1
        elif outcome.status not in (404, 405):  # a kind that is not served has no content
            census.failed = True
        if census.missing == 0:
            self.queue.add_at(key, Instant(now + LOOK_AGAIN)) if census.failed else self.queue.add(key)
        return ()


def _deletion(resource: str, namespace: str, version: str = "v1") -> ApiRequest:
    plural, _, group = resource.partition(".")
    options = msgspec.json.encode({"propagationPolicy": "Background"})
    return ApiRequest("deletecollection", plural, group, version, namespace=namespace, body=options)


def _status(namespace: Namespace, conditions: Sequence[Condition]) -> Ask:
    body = {
        "metadata": {"resourceVersion": namespace.metadata.resource_version, "uid": namespace.metadata.uid},
        "status": {"conditions": [built(c) for c in conditions]},
    }
    return Ask(rpc.patch("namespaces", namespace.metadata.name, body, subresource="status", kind=rpc.MERGE_PATCH))


def _finalize(namespace: Namespace) -> Ask:
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace.metadata.name,
            "uid": namespace.metadata.uid,
            "resourceVersion": namespace.metadata.resource_version,
        },
        "spec": {"finalizers": [f for f in namespace.spec.finalizers if f != FINALIZER]},
    }
    return Ask(rpc.update("namespaces", namespace.metadata.name, body, subresource="finalize"))
