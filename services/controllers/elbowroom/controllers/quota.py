"""ResourceQuota: what is used, counted anew when a pod's charge changes.

The API server charges ``status.used`` as it admits; this loop corrects it, mostly downwards (RC-167). A pod that was just
charged may not be in the copy yet, so a quota whose status changed a moment ago is not lowered before that moment is over.
"""

from collections.abc import Iterable
from typing import Any

from elbowroom import rpc
from elbowroom.api import quotas
from elbowroom.api.objects import Pod
from elbowroom.api.quantity import parse
from elbowroom.api.quotas import ResourceQuota
from elbowroom.cache import Change
from elbowroom.controllers.kit import NOTHING, Ask, Controller, Plan, instant
from elbowroom.machine import Instant, seconds

SETTLED = seconds(0.5)
_COUNTED = (
    *("configmaps", "limitranges", "resourcequotas", "serviceaccounts", "services"),
    *("replicasets.apps", "deployments.apps", "poddisruptionbudgets.policy", "leases.coordination.k8s.io"),
    *("roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"),
    *("statefulsets.apps", "daemonsets.apps", "controllerrevisions.apps", "jobs.batch", "cronjobs.batch"),
    *("secrets", "persistentvolumeclaims", "podtemplates", "endpoints", "endpointslices.discovery.k8s.io"),
    *("ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io", "horizontalpodautoscalers.autoscaling"),
)
"""All namespaced kinds but pods, which are charged otherwise, events, which nobody counts, and custom ones."""


def charge_ends_at(pod: Pod) -> int | None:
    """When a terminating pod ceases to be charged though it is still there."""
    deleted, grace = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    if deleted is None or grace is None or pod.is_terminal:
        return None
    return instant(deleted) + grace * 1_000_000_000 + 1


def is_lowered(old: dict[str, str], new: dict[str, str]) -> bool:
    """Is any amount smaller than before?"""
    return any(name in new and parse(new[name]) < parse(amount) for name, amount in old.items())


class Quotas(Controller):
    """Keys: ``NAMESPACE/NAME``."""

    name = "quota"
    reads = ("pods", *_COUNTED)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._seen_at: dict[str, Instant] = {}

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "resourcequotas":
            if change.new is None:
                self._seen_at.pop(change.key, None)
            else:
                self._seen_at[change.key] = now
                yield change.key
            return
        if resource not in self.reads:
            return
        namespace = change.key.partition("/")[0]
        concerned = [q for q in self.shared.quotas.values() if q.metadata.namespace == namespace]
        if concerned and self._matters(now, resource, change):
            yield from (quota.metadata.key for quota in concerned)

    def _matters(self, now: Instant, resource: str, change: Change[Any]) -> bool:
        if change.old is None or change.new is None or resource != "pods":
            return change.old is None or change.new is None
        old, new = change.old, change.new
        if old.metadata.deletion_timestamp != new.metadata.deletion_timestamp:
            return True
        return quotas.usage(old, now) != quotas.usage(new, now)

    def reconcile(self, now: Instant, key: str) -> Plan:
        quota = self.shared.quotas.get(key)
        if quota is None or quota.metadata.deletion_timestamp is not None:
            return NOTHING
        namespace = quota.metadata.namespace
        pods = self.shared.pods_in(namespace)
        counts = {r: len(self.shared.in_namespace(r, namespace)) for r in _COUNTED if self._names(quota, r)}
        used = quotas.used(quota, pods, counts, now)
        ends = [at for at in (charge_ends_at(pod) for pod in pods) if at is not None and at > now]
        again = Instant(min(ends)) if ends else None
        if quota.status.hard == quota.spec.hard and quota.status.used == used:
            return Plan(again_at=again)
        settled = Instant(self._seen_at.get(key, now) + SETTLED)
        if settled > now and is_lowered(quota.status.used, used):
            return Plan(again_at=settled)
        return Plan((_status(quota, used),), again_at=again)

    def _names(self, quota: ResourceQuota, resource: str) -> bool:
        return any(quotas.counted_resource(name) == resource for name in quota.spec.hard)


def _status(quota: ResourceQuota, used: dict[str, str]) -> Ask:
    gone: dict[str, None] = {name: None for name in [*quota.status.hard, *quota.status.used] if name not in quota.spec.hard}
    body = {
        "metadata": {"resourceVersion": quota.metadata.resource_version, "uid": quota.metadata.uid},
        "status": {"hard": {**gone, **quota.spec.hard}, "used": {**gone, **used}},
    }
    request = rpc.patch(
        "resourcequotas",
        quota.metadata.name,
        body,
        namespace=quota.metadata.namespace,
        subresource="status",
        kind=rpc.MERGE_PATCH,
    )
    return Ask(request)
