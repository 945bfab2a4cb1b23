"""StatefulSets: pods with numbers, made in order and replaced from the highest number down.

``OrderedReady`` does one thing at a time and waits for each pod to be available; ``Parallel`` waits for nobody when it scales.
A change of the template makes a revision; pods below ``partition`` keep the one before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from elbowroom import rpc
from elbowroom.api.objects import Pod
from elbowroom.cache import Change
from elbowroom.controllers.kit import NOTHING, Ask, Controller, Outcome, Plan, Told, available_at, built, is_ready, refer
from elbowroom.controllers.views import ControllerRevision, StatefulSet, StatefulSetStatus
from elbowroom.controllers.workload import (
    REVISION_LABEL,
    Owner,
    Revisions,
    creation,
    deletion,
    ownership,
    pod_of,
    revisions_of,
    status_patch,
    template_of,
)
from elbowroom.machine import Instant

COMPONENT = "statefulset-controller"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


# ---------------------------------------------------------------- decisions


def ordinal_of(name: str, of: str) -> int | None:
    """The number of a pod of the set called ``of``; None if it is none of its pods."""
    digits = name.removeprefix(f"{of}-")
    return int(digits) if digits != name and digits.isascii() and digits.isdigit() and str(int(digits)) == digits else None


def is_available(pod: Pod, min_ready_seconds: int, now: Instant) -> bool:
    at = available_at(pod, min_ready_seconds)
    return pod.status.phase == "Running" and not pod.is_terminating and at is not None and at <= now


def partition_of(stateful: StatefulSet) -> int:
    """The first number that is to have the new template."""
    rolling = stateful.spec.update_strategy.rolling_update
    return stateful.spec.ordinals.start + (0 if rolling is None else rolling.partition)


@dataclass(frozen=True, slots=True)
class Steps:
    """What to do now: numbers to create, and pods to delete."""

    create: tuple[int, ...] = ()
    delete: tuple[Pod, ...] = ()


def next_steps(stateful: StatefulSet, pods: Sequence[Pod], update: str, now: Instant) -> Steps:
    """``update`` is the name of the revision that pods from the partition on should have."""
    spec, name = stateful.spec, stateful.metadata.name
    by_ordinal = {ordinal: pod for pod in pods if (ordinal := ordinal_of(pod.metadata.name, name)) is not None}
    wanted = range(spec.ordinals.start, spec.ordinals.start + spec.replicas)
    ordered = spec.pod_management_policy != "Parallel"
    create: list[int] = []
    delete: list[Pod] = []
    for ordinal in wanted:
        pod = by_ordinal.get(ordinal)
        if pod is None:
            create.append(ordinal)
        elif pod.is_terminal and not pod.is_terminating:
            delete.append(pod)
        elif is_available(pod, spec.min_ready_seconds, now) or not ordered:
            continue
        if ordered:
            return Steps(tuple(create), tuple(delete))  # one after the other; this one is not there yet
    if create or delete:
        return Steps(tuple(create), tuple(delete))
    condemned = [by_ordinal[ordinal] for ordinal in sorted(by_ordinal, reverse=True) if ordinal not in wanted]
    if condemned:
        if not ordered:
            return Steps(delete=tuple(pod for pod in condemned if not pod.is_terminating))
        return Steps() if condemned[0].is_terminating else Steps(delete=(condemned[0],))
    if spec.update_strategy.type != "RollingUpdate":
        return Steps()
    for ordinal in reversed(wanted):
        if ordinal < partition_of(stateful):
            break
        pod = by_ordinal[ordinal]
        if pod.metadata.labels.get(REVISION_LABEL) != update and not pod.is_terminating:
            return Steps(delete=(pod,))
        if not is_available(pod, spec.min_ready_seconds, now):
            break
    return Steps()


def status_of(stateful: StatefulSet, pods: Sequence[Pod], update: str, now: Instant) -> StatefulSetStatus:
    """The status that the pods make. The update is over when all pods have it and are ready."""
    spec, had = stateful.spec, stateful.status
    current = had.current_revision or update
    live = [pod for pod in pods if not pod.is_terminal or pod.is_terminating]
    staying = [pod for pod in live if not pod.is_terminating]
    ready = sum(is_ready(pod) for pod in staying)
    updated = sum(pod.metadata.labels.get(REVISION_LABEL) == update for pod in staying)
    at_current = sum(pod.metadata.labels.get(REVISION_LABEL) == current for pod in staying)
    if spec.update_strategy.type == "RollingUpdate" and updated == ready == len(live) == spec.replicas:
        current, at_current = update, updated
    return StatefulSetStatus(
        observed_generation=stateful.metadata.generation,
        replicas=len(live),
        ready_replicas=ready,
        current_replicas=at_current,
        updated_replicas=updated,
        available_replicas=sum(is_available(pod, spec.min_ready_seconds, now) for pod in staying),
        current_revision=current,
        update_revision=update,
        collision_count=had.collision_count if had.collision_count is not None else 0,
        conditions=had.conditions,
    )


def claim_name(template: dict[str, Any], pod: str) -> str:
    return f"{(template.get('metadata') or {}).get('name', '')}-{pod}"


def pod_document(stateful: StatefulSet, ordinal: int, revision: ControllerRevision) -> dict[str, Any]:
    """The pod of that number at that revision."""
    name = f"{stateful.metadata.name}-{ordinal}"
    labels = {NAME_LABEL: name, INDEX_LABEL: str(ordinal), REVISION_LABEL: revision.metadata.name}
    document = pod_of(owner_of(stateful), template_of(revision), name, labels)
    spec = document["spec"]
    spec["hostname"] = name
    if stateful.spec.service_name:
        spec["subdomain"] = stateful.spec.service_name
    claims = {
        (claim.get("metadata") or {}).get("name", ""): claim_name(claim, name) for claim in stateful.spec.volume_claim_templates
    }
    if claims:
        others = [volume for volume in spec.get("volumes") or () if volume.get("name") not in claims]
        mine = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
        spec["volumes"] = [*mine, *others]
    return document


def claim_documents(stateful: StatefulSet, ordinal: int) -> list[dict[str, Any]]:
    """The volume claims of the pod of that number; they outlive it."""
    pod = f"{stateful.metadata.name}-{ordinal}"
    found = []
    for claim in stateful.spec.volume_claim_templates:
        labels = {**((claim.get("metadata") or {}).get("labels") or {}), **stateful.spec.selector.match_labels}
        metadata = {"name": claim_name(claim, pod), "namespace": stateful.metadata.namespace, "labels": labels}
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim.get("spec") or {}})
    return found


def owner_of(stateful: StatefulSet) -> Owner:
    return Owner("apps/v1", "StatefulSet", stateful.metadata)


# ---------------------------------------------------------------- the loop


class StatefulSets(Controller):
    """Keys: ``NAMESPACE/NAME``."""

    name = "statefulsets"
    reads = ("statefulsets.apps", "pods", "controllerrevisions.apps", "persistentvolumeclaims")

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "statefulsets.apps":
            yield change.key
        elif resource in ("pods", "controllerrevisions.apps"):
            for one in (change.old, change.new):
                if one is not None:
                    yield from self.shared.owners(one.metadata, "StatefulSet", "statefulsets.apps")

    def reconcile(self, now: Instant, key: str) -> Plan:
        stateful: StatefulSet | None = self.shared.reflectors["statefulsets.apps"].store.get(key)
        if stateful is None:
            return NOTHING
        metadata = stateful.metadata
        mine = [pod for pod in self.shared.pods_in(metadata.namespace) if ordinal_of(pod.metadata.name, metadata.name) is not None]
        pods, asks = ownership(owner_of(stateful), stateful.spec.selector, mine)
        live = [pod.metadata.labels.get(REVISION_LABEL, "") for pod in pods]
        live += [stateful.status.current_revision, stateful.status.update_revision]
        known = self.shared.in_namespace("controllerrevisions.apps", metadata.namespace)
        revisions = revisions_of(owner_of(stateful), stateful.spec.template, known, live, stateful.spec.revision_history_limit)
        if metadata.deletion_timestamp is not None:
            return NOTHING
        asks += revisions.asks
        if revisions.update is None or asks:
            return Plan(tuple(asks))
        update = revisions.update.metadata.name
        status = status_of(stateful, pods, update, now)
        for ordinal in (steps := next_steps(stateful, pods, update, now)).create:
            asks += self._creation(stateful, ordinal, revisions)
        asks += [deletion(pod) for pod in steps.delete]
        if status != stateful.status:
            asks.append(_status(stateful, status))
        return Plan(tuple(asks), again_at=_next_available(stateful, pods, now))

    def _creation(self, stateful: StatefulSet, ordinal: int, revisions: Revisions) -> list[Ask]:
        """The pod's claims if they are missing, then the pod."""
        claims = self.shared.reflectors["persistentvolumeclaims"].store
        missing = [
            one
            for one in claim_documents(stateful, ordinal)
            if f"{one['metadata']['namespace']}/{one['metadata']['name']}" not in claims
        ]
        if missing:
            return [Ask(rpc.create("persistentvolumeclaims", one, namespace=one["metadata"]["namespace"])) for one in missing]
        assert revisions.update is not None, "it was made before"
        revision = revisions.update
        rolling = stateful.spec.update_strategy.type == "RollingUpdate"
        if stateful.status.current_revision and (not rolling or ordinal < partition_of(stateful)):
            revision = revisions.named(stateful.status.current_revision) or revision
        return [creation(pod_document(stateful, ordinal, revision))]

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        stateful: StatefulSet | None = self.shared.reflectors["statefulsets.apps"].store.get(key)
        if ask.tag is None or stateful is None:
            return
        verb, pod = ask.tag
        about = {**refer("StatefulSet", stateful.metadata), "apiVersion": "apps/v1"}
        what = f"{verb} Pod {pod} in StatefulSet {stateful.metadata.name}"
        if outcome.ok:
            yield Told(about, "Normal", f"Successful{verb.capitalize()}", f"{what} successful", COMPONENT)
        elif outcome.status not in (404, 409):
            yield Told(about, "Warning", f"Failed{verb.capitalize()}", f"{what} failed error: {outcome.message}", COMPONENT)


def _next_available(stateful: StatefulSet, pods: Sequence[Pod], now: Instant) -> Instant | None:
    times = [available_at(pod, stateful.spec.min_ready_seconds) for pod in pods]
    return min((Instant(at) for at in times if at is not None and at > now), default=None)


def _status(stateful: StatefulSet, status: StatefulSetStatus) -> Ask:
    zero: dict[str, Any] = dict.fromkeys(("readyReplicas", "currentReplicas", "updatedReplicas"))
    always = {"replicas": status.replicas, "availableReplicas": status.available_replicas, "collisionCount": status.collision_count}
    return status_patch("statefulsets.apps", stateful.metadata, {**zero, **built(status), **always})
