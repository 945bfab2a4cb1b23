"""Which pods belong together, if a pod says nothing of its own about spreading (SC-78)?

Those that the Services of its namespace select together with it, and those of its ReplicaSet. (Upstream asks
ReplicationControllers and StatefulSets as well, which are not served here.)
"""

from collections.abc import Mapping

import msgspec

from elbowroom.api.objects import LabelSelector, ObjectMeta, Pod
from elbowroom.api.selectors import Requirement, Selector, of_view
from elbowroom.cache import Change


class ServiceSpec(msgspec.Struct, frozen=True):
    selector: dict[str, str] = {}


class Service(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicaSetSpec(msgspec.Struct, frozen=True):
    selector: LabelSelector | None = None


class ReplicaSet(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()


class Belonging:
    """``replica_sets``: by ``namespace/name``, as last seen. Show every change of a Service to ``on_service``."""

    def __init__(self, replica_sets: Mapping[str, ReplicaSet]) -> None:
        self._replica_sets = replica_sets
        self._services: dict[str, dict[str, Service]] = {}

    def on_service(self, change: Change[Service]) -> None:
        namespace = change.key.partition("/")[0]
        services = self._services.setdefault(namespace, {})
        services.pop(change.key, None)
        if change.new is not None and change.new.spec.selector:
            services[change.key] = change.new
        if not services:
            del self._services[namespace]

    def selector(self, pod: Pod) -> Selector:
        """What selects the pods that belong to this one; empty if it belongs to nobody."""
        labels = pod.metadata.labels
        wanted: dict[str, str] = {}
        for service in self._services.get(pod.metadata.namespace, {}).values():
            if all(labels.get(key) == value for key, value in service.spec.selector.items()):
                wanted |= service.spec.selector
        requirements = [Requirement(key, "=", (value,)) for key, value in sorted(wanted.items())]
        owner = next((each for each in pod.metadata.owner_references if each.controller), None)
        if owner is not None and (owner.api_version, owner.kind) == ("apps/v1", "ReplicaSet"):
            held = self._replica_sets.get(f"{pod.metadata.namespace}/{owner.name}")
            if held is not None:
                of_set = of_view(held.spec.selector)
                requirements += of_set.requirements
        return Selector(tuple(requirements))
