"""ResourceQuota: a write that would take more than a quota has left is refused, one that fits is charged at once (RC-52).

The charge is what the write adds, never negative. Upstream charges ``status.used`` and leaves it to the quota controller to count
anew; since that controller's copies may lag, ours also counts what is stored and takes the larger, so that the sum of what was
accepted never passes ``hard``. The raised ``status.used`` is committed with the write (``Context.also_write``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api import quotas
from elbowroom.api.objects import Pod
from elbowroom.api.quantity import Quantity
from elbowroom.api.quotas import ResourceQuota
from elbowroom.api.resources import Amounts, amounts
from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.podviews import pod_view
from elbowroom.apiserver.strategy import Context, Document

QUOTAS = "resourcequotas"
_NOT_COUNTED = ("events", "events.events.k8s.io", "bindings")
_ZERO = Quantity(0)


class QuotaPlugin(Plugin):
    name = "ResourceQuota"

    def __init__(self) -> None:
        self._measured: dict[str, dict[str, _Measured]] = {}

    def validate(self, context: Context, attributes: Attributes) -> Refusal | None:
        if not attributes.namespace or attributes.new is None or attributes.resource in _NOT_COUNTED:
            return None
        is_pod = attributes.resource == "pods"
        if not (_handles_pod(attributes) if is_pod else attributes.operation == "CREATE" and not attributes.subresource):
            return None
        found = sorted(context.reader.list(QUOTAS, attributes.namespace), key=lambda document: str(document["metadata"]["name"]))
        if not found:
            return None
        pending = [(document, msgspec.convert(document, ResourceQuota)) for document in found]
        return self._judge_pod(context, attributes, pending) if is_pod else self._judge_object(context, attributes, pending)

    def _judge_object(
        self, context: Context, attributes: Attributes, found: list[tuple[Document, ResourceQuota]]
    ) -> Refusal | None:
        names = quotas.count_names(attributes.resource)
        concerned = [
            (document, quota)
            for document, quota in found
            if not quota.spec.scopes and quota.spec.scope_selector is None and any(name in quota.status.hard for name in names)
        ]
        charges: list[tuple[Document, Amounts]] = []
        for document, quota in concerned:
            wanted = [name for name in names if name in quota.status.hard]
            charge = dict.fromkeys(wanted, quotas.ONE)
            stored = Quantity(sum(1 for _ in context.reader.list(attributes.resource, attributes.namespace)) * 10**9)
            refusal = _unknown(quota, wanted) or _exceeded(quota, charge, dict.fromkeys(wanted, stored), charges, document)
            if refusal is not None:
                return refusal
        _write(context, charges)
        return None

    def _judge_pod(self, context: Context, attributes: Attributes, found: list[tuple[Document, ResourceQuota]]) -> Refusal | None:
        assert attributes.new is not None
        pod = pod_view(attributes.new)
        concerned = [
            (document, quota) for document, quota in found if quotas.pod_names(quota.status.hard) and quotas.selects(quota, pod)
        ]
        if not concerned:
            return None
        for _, quota in concerned:
            names = quotas.pod_names(quota.status.hard)
            unsaid = quotas.unsaid(pod, names)
            if unsaid:
                return Refusal(f"failed quota: {quota.metadata.name}: {unsaid}")
            refusal = _unknown(quota, names)
            if refusal is not None:
                return refusal
        usage = quotas.usage(pod, context.now)
        negative = sorted(name for name, value in usage.items() if value < _ZERO)
        if negative:
            return Refusal(f"quota usage is negative for resource(s): {','.join(negative)}")
        before = pod_view(attributes.old) if attributes.operation == "UPDATE" and attributes.old is not None else None
        old_usage = quotas.usage(before, context.now) if before is not None else {}
        charges: list[tuple[Document, Amounts]] = []
        for document, quota in concerned:
            charged_before = old_usage if before is not None and quotas.selects(quota, before) else {}
            charge = {
                name: usage[name] - charged_before.get(name, _ZERO)
                for name in quota.status.hard
                if name in usage and usage[name] > charged_before.get(name, _ZERO)
            }
            if not charge:
                continue
            refusal = _exceeded(quota, charge, self._stored(context, attributes.namespace, quota, charge), charges, document)
            if refusal is not None:
                return refusal
        _write(context, charges)
        return None

    def _stored(self, context: Context, namespace: str, quota: ResourceQuota, names: Iterable[str]) -> Amounts:
        """What the stored pods are charged by now. A pod is measured once a revision, not once a write."""
        known, measured = self._measured.get(namespace, {}), dict[str, _Measured]()
        for document in context.reader.list("pods", namespace):
            uid, revision = document["metadata"]["uid"], document["metadata"]["resourceVersion"]
            held = known.get(uid)
            if held is None or held.revision != revision:
                pod = pod_view(document)
                held = _Measured(revision, pod, quotas.charge(pod))
            measured[uid] = held
        self._measured[namespace] = measured
        charges = [one.charge(context.now) for one in measured.values() if quotas.selects(quota, one.pod)]
        return {name: Quantity(sum(charge[name].nanos for charge in charges if name in charge)) for name in names}


@dataclass(frozen=True, slots=True)
class _Measured:
    """A stored pod at one of its revisions, and what it is charged while it counts."""

    revision: str
    pod: Pod
    full: Amounts

    def charge(self, now: int) -> Amounts:
        return self.full if quotas.is_charged(self.pod, now) else quotas.OBJECT


def _handles_pod(attributes: Attributes) -> bool:
    if attributes.operation == "CREATE":
        return not attributes.subresource
    if attributes.operation != "UPDATE" or attributes.old is None or attributes.new is None:
        return False
    if attributes.subresource == "resize":
        return True
    # A plain update matters when it moves the pod from one scope to the other.
    return not attributes.subresource and _has_deadline(attributes.new) != _has_deadline(attributes.old)


def _has_deadline(pod: Mapping[str, Any]) -> bool:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return seconds is not None and seconds >= 0


def _unknown(quota: ResourceQuota, names: list[str]) -> Refusal | None:
    if all(name in quota.status.used for name in names):
        return None
    return Refusal(f"status unknown for quota: {quota.metadata.name}, resources: {','.join(sorted(names))}")


def _exceeded(
    quota: ResourceQuota, charge: Amounts, stored: Amounts, charges: list[tuple[Document, Amounts]], document: Document
) -> Refusal | None:
    """A refusal, or None and what ``used`` becomes added to ``charges``."""
    hard, told = amounts(quota.status.hard), amounts(quota.status.used)
    used = {name: max(value, stored.get(name, _ZERO)) for name, value in told.items()}
    after = {name: used.get(name, _ZERO) + value for name, value in charge.items()}
    over = sorted(name for name in charge if after[name] > hard[name])
    if over:
        parts = [",".join(f"{name}={vector.get(name, _ZERO).canonical()}" for name in over) for vector in (charge, used, hard)]
        return Refusal(f"exceeded quota: {quota.metadata.name}, requested: {parts[0]}, used: {parts[1]}, limited: {parts[2]}")
    charges.append((document, {**told, **after}))
    return None


def _write(context: Context, charges: list[tuple[Document, Amounts]]) -> None:
    if context.dry_run:
        return
    for document, used in charges:
        status = {**document.get("status", {}), "used": {name: value.canonical() for name, value in used.items()}}
        metadata = document["metadata"]
        context.also_write.append((QUOTAS, metadata["namespace"], metadata["name"], {**document, "status": status}))
