"""ReplicaSets: as many pods as wanted, each with an owner.

Pods are created in batches that double while all goes well (1, 2, 4, ...), so that a full quota is not asked a hundred times.
Each pod's name is drawn here, not by the API server: a creation whose reply was lost is sent again and cannot double.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elbowroom import rpc
from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.api.selectors import of_view
from elbowroom.cache import Change
from elbowroom.controllers.kit import (
    NOTHING,
    Ask,
    Controller,
    Outcome,
    Plan,
    Told,
    available_at,
    built,
    controller_of,
    instant,
    is_active,
    is_ready,
    owner_reference,
    refer,
    with_suffix,
)
from elbowroom.controllers.views import Condition, ReplicaSet, ReplicaSetStatus
from elbowroom.machine import Instant

BURST = 500
COMPONENT = "replicaset-controller"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


# ---------------------------------------------------------------- decisions


def pod_document(replica_set: ReplicaSet, rng: random.Random) -> dict[str, Any]:
    """The pod that the template makes."""
    template = replica_set.spec.template
    said = template.get("metadata") or {}
    prefix = f"{replica_set.metadata.name}-"
    kept = {key: said[key] for key in ("labels", "annotations", "finalizers") if said.get(key)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": with_suffix(prefix, rng),
            "generateName": prefix,
            "namespace": replica_set.metadata.namespace,
            **kept,
            "ownerReferences": [owner_reference("apps/v1", "ReplicaSet", replica_set.metadata)],
        },
        "spec": template.get("spec") or {},
    }


def _log_age(since: int, now: Instant) -> int:
    """Ages that differ by less than a factor of two count as equal, so that not always the youngest goes."""
    return int(math.log2(max(1, (now - since) // 1_000_000_000))) if since else -1


def doomed_first(pods: Sequence[Pod], rank: Mapping[str, int], now: Instant) -> list[Pod]:
    """The order in which pods go when there are too many.

    Unassigned first; then pending, unknown, running; not ready; cheaper by the deletion cost annotation; more siblings on the
    same node (``rank``, by node name); ready for a shorter time; restarted more often; younger.
    """

    def key(pod: Pod) -> tuple[Any, ...]:
        ready = pod.condition("Ready")
        restarts = max((c.restart_count for c in pod.status.container_statuses), default=0)
        return (
            bool(pod.spec.node_name),
            {"Pending": 0, "Unknown": 1, "Running": 2}.get(pod.status.phase, 0),
            is_ready(pod),
            _deletion_cost(pod),
            -rank.get(pod.spec.node_name, 0),
            _log_age(instant(ready.last_transition_time) if ready is not None and ready.status == "True" else 0, now),
            -restarts,
            _log_age(instant(pod.metadata.creation_timestamp), now),
            pod.uid,
        )

    return sorted(pods, key=key)


def _deletion_cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0


def status_of(replica_set: ReplicaSet, pods: Sequence[Pod], now: Instant, failure: Condition | None) -> ReplicaSetStatus:
    """The status that the pods it owns make."""
    active = [pod for pod in pods if is_active(pod)]
    labels = (replica_set.spec.template.get("metadata") or {}).get("labels") or {}
    available = [a for a in (available_at(p, replica_set.spec.min_ready_seconds) for p in active) if a is not None]
    others = [c for c in replica_set.status.conditions if c.type != "ReplicaFailure"]
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(1 for p in active if all(p.metadata.labels.get(k) == v for k, v in labels.items())),
        ready_replicas=sum(1 for p in active if is_ready(p)),
        available_replicas=sum(1 for at in available if at <= now),
        terminating_replicas=sum(1 for p in pods if p.is_terminating and not p.is_terminal),
        observed_generation=replica_set.metadata.generation,
        conditions=[*others, *([failure] if failure is not None else [])],
    )


def next_available(replica_set: ReplicaSet, pods: Sequence[Pod], now: Instant) -> Instant | None:
    """When the next ready pod will have been so for ``minReadySeconds``."""
    times = [available_at(pod, replica_set.spec.min_ready_seconds) for pod in pods if is_active(pod)]
    return min((Instant(at) for at in times if at is not None and at > now), default=None)


def claim(replica_set: ReplicaSet, pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod], list[Pod]]:
    """Of the namespace's pods: those it owns, those it must let go, and those it may take."""
    owned: list[Pod] = []
    released: list[Pod] = []
    adopted: list[Pod] = []
    selector = of_view(replica_set.spec.selector)
    for pod in pods:
        owner = controller_of(pod.metadata)
        fits = selector.matches(pod.metadata.labels)
        if owner is not None:
            if owner.uid == replica_set.metadata.uid:
                (owned if fits else released).append(pod)
        elif fits and is_active(pod) and replica_set.metadata.deletion_timestamp is None:
            adopted.append(pod)
    return owned, [p for p in released if replica_set.metadata.deletion_timestamp is None], adopted


# ---------------------------------------------------------------- the loop


class ReplicaSets(Controller):
    """Keys: ``NAMESPACE/NAME``."""

    name = "replicasets"
    reads = ("replicasets.apps", "pods")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._batch: dict[str, int] = {}
        self._failures: dict[str, tuple[str, str]] = {}
        """Key -> reason and message of what last went wrong with its pods."""

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "replicasets.apps":
            yield change.key
            if change.new is None:
                self._batch.pop(change.key, None)
                self._failures.pop(change.key, None)
        elif resource == "pods":
            for pod in (change.old, change.new):
                if pod is not None:
                    yield from self._owners(pod)

    def _owners(self, pod: Pod) -> Iterable[str]:
        return self.shared.owners(pod.metadata, "ReplicaSet", "replicasets.apps")

    def reconcile(self, now: Instant, key: str) -> Plan:
        replica_set = self.shared.replica_sets.get(key)
        if replica_set is None:
            return NOTHING
        owned, released, adopted = claim(replica_set, self.shared.pods_in(replica_set.metadata.namespace))
        asks = [_ownership(replica_set, pod, adopt=False) for pod in released]
        asks += [_ownership(replica_set, pod, adopt=True) for pod in adopted]
        if not asks and replica_set.metadata.deletion_timestamp is None:
            asks += self._scale(replica_set, [p for p in owned if is_active(p)], now)
        failure = self._failure(now, replica_set)
        status = status_of(replica_set, owned, now, failure)
        if status != replica_set.status and not adopted:
            asks.append(_status(replica_set, status))
        return Plan(tuple(asks), again_at=next_available(replica_set, owned, now))

    def _scale(self, replica_set: ReplicaSet, active: Sequence[Pod], now: Instant) -> list[Ask]:
        key = replica_set.metadata.key
        missing = replica_set.spec.replicas - len(active)
        if missing > 0:
            batch = min(missing, self._batch.get(key, 1), BURST)
            documents = [pod_document(replica_set, self.rng) for _ in range(batch)]
            return [
                Ask(
                    rpc.create("pods", document, namespace=replica_set.metadata.namespace), ("create", document["metadata"]["name"])
                )
                for document in documents
            ]
        self._batch.pop(key, None)
        if missing == 0:
            self._failures.pop(key, None)
            return []
        doomed = doomed_first(active, self._rank(replica_set), now)[: min(-missing, BURST)]
        return [
            Ask(
                rpc.delete("pods", p.metadata.name, namespace=p.metadata.namespace, options={"preconditions": {"uid": p.uid}}),
                ("delete", p.metadata.name),
            )
            for p in doomed
        ]

    def _rank(self, replica_set: ReplicaSet) -> dict[str, int]:
        """How many active pods of this set and of its siblings (of one Deployment) are on each node."""
        owner = controller_of(replica_set.metadata)
        family = {replica_set.metadata.uid}
        if owner is not None:
            for other in self.shared.in_namespace("replicasets.apps", replica_set.metadata.namespace):
                above = controller_of(other.metadata)
                if above is not None and above.uid == owner.uid:
                    family.add(other.metadata.uid)
        rank: dict[str, int] = {}
        for pod in self.shared.pods_in(replica_set.metadata.namespace):
            above = controller_of(pod.metadata)
            if above is not None and above.uid in family and is_active(pod):
                rank[pod.spec.node_name] = rank.get(pod.spec.node_name, 0) + 1
        return rank

    def _failure(self, now: Instant, replica_set: ReplicaSet) -> Condition | None:
        failed = self._failures.get(replica_set.metadata.key)
        if failed is None:
            return None
        old = next((c for c in replica_set.status.conditions if c.type == "ReplicaFailure"), None)
        if old is not None and old.reason == failed[0]:
            return old  # upstream keeps the first message of a reason
        return Condition(
            type="ReplicaFailure", status="True", reason=failed[0], message=failed[1], last_transition_time=as_time(now)
        )

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        replica_set = self.shared.replica_sets.get(key)
        if ask.tag is None or replica_set is None:
            return
        verb, pod = ask.tag
        about = refer("ReplicaSet", replica_set.metadata)
        if verb == "create":
            if outcome.ok:
                self._batch[key] = self._batch.get(key, 1) + 1
                yield Told(about, "Normal", "SuccessfulCreate", f"Created pod: {pod}", COMPONENT)
                return
            self._batch[key] = 1
            self._failures[key] = ("FailedCreate", outcome.message)
            if "because it is being terminated" not in outcome.message:
                yield Told(about, "Warning", "FailedCreate", f"Error creating: {outcome.message}", COMPONENT)
        elif outcome.ok:
            yield Told(about, "Normal", "SuccessfulDelete", f"Deleted pod: {pod}", COMPONENT)
        elif outcome.status not in (404, 409):
            self._failures[key] = ("FailedDelete", outcome.message)
            yield Told(about, "Warning", "FailedDelete", f"Error deleting: {outcome.message}", COMPONENT)


def _ownership(replica_set: ReplicaSet, pod: Pod, *, adopt: bool) -> Ask:
    uid = replica_set.metadata.uid
    entry = owner_reference("apps/v1", "ReplicaSet", replica_set.metadata) if adopt else {"$patch": "delete", "uid": uid}
    body = {"metadata": {"uid": pod.uid, "ownerReferences": [entry]}}
    return Ask(rpc.patch("pods", pod.metadata.name, body, namespace=pod.metadata.namespace))


def _status(replica_set: ReplicaSet, status: ReplicaSetStatus) -> Ask:
    zero = {"readyReplicas": 0, "availableReplicas": 0, "fullyLabeledReplicas": 0}
    body = {
        "metadata": {"resourceVersion": replica_set.metadata.resource_version, "uid": replica_set.metadata.uid},
        "status": {**zero, "replicas": 0, "conditions": None, **built(status)},
    }
    request = rpc.patch(
        "replicasets.apps",
        replica_set.metadata.name,
        body,
        namespace=replica_set.metadata.namespace,
        subresource="status",
        kind=rpc.MERGE_PATCH,
    )
    return Ask(request)
