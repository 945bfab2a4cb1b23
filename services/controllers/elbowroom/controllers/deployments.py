"""Deployments: the replica set of the current template up, those of older ones down, step by step.

Each look does one kind of thing: claim replica sets, mend annotations, create the new set, scale, forget old ones, and only when
none of that is to be done, tell the status. The next look comes when the copy shows the change.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from elbowroom import rpc
from elbowroom.api.objects import ObjectMeta
from elbowroom.api.selectors import matches, of_view
from elbowroom.cache import Change
from elbowroom.controllers import rollout
from elbowroom.controllers.kit import (
    NOTHING,
    Ask,
    Controller,
    Outcome,
    Plan,
    Told,
    built,
    controller_of,
    owner_reference,
    refer,
)
from elbowroom.controllers.rollout import Resize
from elbowroom.controllers.views import Condition, Deployment, DeploymentStatus, ReplicaSet
from elbowroom.machine import Instant, seconds

COMPONENT = "deployment-controller"


class Deployments(Controller):
    """Keys: ``NAMESPACE/NAME``."""

    name = "deployments"
    reads = ("deployments.apps", "replicasets.apps", "pods")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._made: dict[str, str] = {}
        """Key -> the new replica set that this life has created for it."""
        self._collided: dict[str, int] = {}
        """Key -> the collision count that is to be written."""

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "deployments.apps":
            yield change.key
            if change.new is None:
                self._made.pop(change.key, None)
                self._collided.pop(change.key, None)
        elif resource == "replicasets.apps":
            for replica_set in (change.old, change.new):
                if replica_set is not None:
                    yield from self._owners(replica_set)
        elif resource == "pods" and (change.new is None or change.new.is_terminal):
            # Recreate waits for the end of old pods.
            metadata: ObjectMeta = (change.new if change.new is not None else change.old).metadata  # type: ignore[union-attr]
            owner = controller_of(metadata)
            if owner is not None and owner.kind == "ReplicaSet":
                replica_set = self.shared.replica_sets.get(f"{metadata.namespace}/{owner.name}")
                if replica_set is not None:
                    yield from self._owners(replica_set)

    def _owners(self, replica_set: ReplicaSet) -> Iterable[str]:
        return self.shared.owners(replica_set.metadata, "Deployment", "deployments.apps")

    # ------------------------------------------------------------ decisions

    def reconcile(self, now: Instant, key: str) -> Plan:
        deployment = self.shared.deployments.get(key)
        if deployment is None:
            return NOTHING
        if of_view(deployment.spec.selector).is_empty:
            text = "This deployment is selecting all pods. A non-empty selector is required."
            about = refer("Deployment", deployment.metadata)
            status = DeploymentStatus(observed_generation=deployment.metadata.generation)
            if deployment.status.observed_generation == deployment.metadata.generation:
                return NOTHING
            return Plan((_status(deployment, status),), (Told(about, "Warning", "SelectingAll", text, COMPONENT),))
        owned, claims = self._claims(deployment)
        if claims:
            return Plan(tuple(claims))
        new = rollout.new_replica_set(deployment, owned)
        old = [r for r in owned if new is None or r.metadata.uid != new.metadata.uid]
        if deployment.metadata.deletion_timestamp is not None:
            return self._tell(deployment, rollout.counted(deployment, new, owned, now))
        paused = rollout.paused_conditions(deployment, now)
        if paused is not None:
            return Plan((_status(deployment, _with(deployment.status, paused)),))
        collisions = self._collided.get(key, 0)
        if collisions > (deployment.status.collision_count or 0):
            return Plan((_status(deployment, _collided(deployment.status, collisions)),))
        if rollout.ROLLBACK_TO in deployment.metadata.annotations and not deployment.spec.paused:
            return self._rollback(deployment, owned)
        if deployment.spec.paused or rollout.is_scaling(deployment, owned):
            return self._scaled(now, deployment, new, old)
        return self._rolled(now, deployment, new, old)

    def _claims(self, deployment: Deployment) -> tuple[list[ReplicaSet], list[Ask]]:
        owned: list[ReplicaSet] = []
        asks: list[Ask] = []
        alive = deployment.metadata.deletion_timestamp is None
        for replica_set in self.shared.in_namespace("replicasets.apps", deployment.metadata.namespace):
            owner = controller_of(replica_set.metadata)
            fits = matches(deployment.spec.selector, replica_set.metadata.labels)
            if owner is not None:
                if owner.uid == deployment.metadata.uid and fits:
                    owned.append(replica_set)
                elif owner.uid == deployment.metadata.uid and alive:
                    asks.append(_ownership(deployment, replica_set, adopt=False))
            elif fits and alive and replica_set.metadata.deletion_timestamp is None:
                asks.append(_ownership(deployment, replica_set, adopt=True))
        return owned, asks

    def _annotated(self, now: Instant, deployment: Deployment, new: ReplicaSet, revision: int) -> list[Ask]:
        """What the new replica set and the Deployment must be told of each other."""
        asks: list[Ask] = []
        annotations = rollout.annotations_for(deployment, new, revision)
        spec = {}
        if new.spec.min_ready_seconds != deployment.spec.min_ready_seconds:
            spec = {"minReadySeconds": deployment.spec.min_ready_seconds}
        if annotations != new.metadata.annotations or spec:
            asks.append(_replica_set_patch(new, annotations, spec))
        told = annotations.get(rollout.REVISION, "")
        status = _with(deployment.status, self._first_conditions(now, deployment, new))
        if deployment.metadata.annotations.get(rollout.REVISION) != told or status != deployment.status:
            # By the status subresource, since a change of annotations is a new generation everywhere else.
            asks.append(_status(deployment, status, {rollout.REVISION: told}))
        return asks

    def _scaled(self, now: Instant, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> Plan:
        everyone = [*old, *([new] if new is not None else [])]
        steps = {s.replica_set.metadata.uid: s for s in rollout.scaling_steps(deployment, new, old)}
        asks = [
            self._resize(deployment, steps.get(r.metadata.uid, Resize(r, r.spec.replicas)))
            for r in everyone
            if _needs(deployment, r, steps.get(r.metadata.uid))
        ]
        if asks:
            return Plan(tuple(asks))
        if deployment.spec.paused and (forgotten := self._forget(deployment, old)):
            return Plan(tuple(forgotten))
        return self._tell(deployment, rollout.counted(deployment, new, everyone, now))

    def _rolled(self, now: Instant, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> Plan:
        everyone = [*old, *([new] if new is not None else [])]
        revision = max((rollout.revision_of(r) for r in old), default=0) + 1
        if not rollout.is_rolling(deployment):
            down = [Resize(r, 0) for r in rollout.active(old)]
            if down:
                return Plan(tuple(self._resize(deployment, step) for step in down))
            pods = self.shared.pods_in(deployment.metadata.namespace)
            if rollout.old_pods_run(new, everyone, pods):
                return self._tell(deployment, rollout.rollout_status(deployment, new, everyone, now))
        if new is None:
            document = rollout.replica_set_document(deployment, old, revision)
            request = rpc.create("replicasets.apps", document, namespace=deployment.metadata.namespace)
            return Plan((Ask(request, ("create", document["metadata"]["name"], document["spec"]["replicas"])),))
        if asks := self._annotated(now, deployment, new, revision):
            return Plan(tuple(asks))
        if rollout.is_rolling(deployment):
            steps = rollout.rolling_steps(deployment, new, old)
        else:
            steps = [Resize(new, deployment.spec.replicas)] if new.spec.replicas != deployment.spec.replicas else []
        if steps:
            return Plan(tuple(self._resize(deployment, step) for step in steps))
        status = rollout.rollout_status(deployment, new, everyone, now)
        if rollout.is_complete(deployment, deployment.status) and (forgotten := self._forget(deployment, old)):
            return Plan(tuple(forgotten))
        return self._tell(deployment, status)

    def _first_conditions(self, now: Instant, deployment: Deployment, new: ReplicaSet) -> list[Condition]:
        """That there is a new replica set: created by us, or found."""
        conditions = deployment.status.conditions
        if not rollout.has_deadline(deployment):
            return conditions
        name, key = new.metadata.name, deployment.metadata.key
        told = deployment.status.condition("Progressing")
        if self._made.get(key) == name and (told is None or f'"{name}"' not in told.message):
            text = f'Created new replica set "{name}"'
            return rollout.condition_set(conditions, rollout.condition("Progressing", "True", "NewReplicaSetCreated", text, now))
        self._made.pop(key, None)
        if told is None:
            text = f'Found new replica set "{name}"'
            return rollout.condition_set(conditions, rollout.condition("Progressing", "True", "FoundNewReplicaSet", text, now))
        return conditions

    def _resize(self, deployment: Deployment, step: Resize) -> Ask:
        replica_set = step.replica_set
        wanted = deployment.spec.replicas
        annotations = {rollout.DESIRED: str(wanted), rollout.MAXIMUM: str(wanted + rollout.max_surge(deployment))}
        spec = {"replicas": step.replicas} if step.replicas != replica_set.spec.replicas else {}
        ask = _replica_set_patch(replica_set, annotations, spec)
        tag = ("scale", replica_set.metadata.name, replica_set.spec.replicas, step.replicas) if spec else None
        return Ask(ask.request, tag)

    def _forget(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> list[Ask]:
        return [
            Ask(
                rpc.delete(
                    "replicasets.apps",
                    r.metadata.name,
                    namespace=r.metadata.namespace,
                    options={"preconditions": {"uid": r.metadata.uid}},
                )
            )
            for r in rollout.outdated(deployment, old)
        ]

    def _rollback(self, deployment: Deployment, owned: Sequence[ReplicaSet]) -> Plan:
        """``deprecated.deployment.rollback.to``: take the template of that revision (0: the one before)."""
        about = refer("Deployment", deployment.metadata)
        said = deployment.metadata.annotations[rollout.ROLLBACK_TO]
        revisions = sorted((rollout.revision_of(r) for r in owned), reverse=True)
        wanted = int(said) if said.isdigit() else 0
        if wanted == 0:
            wanted = revisions[1] if len(revisions) > 1 else 0
        target = next((r for r in owned if wanted and rollout.revision_of(r) == wanted), None)
        spec: dict[str, Any] = {}
        if target is None:
            words = "Unable to find last revision." if wanted == 0 else "Unable to find the revision to rollback to."
            told = Told(about, "Warning", "DeploymentRollbackRevisionNotFound", words, COMPONENT)
        else:
            template = rollout.plain_template(target.spec.template)
            if template == rollout.plain_template(deployment.spec.template):
                words = f'The rollback revision contains the same template as current deployment "{deployment.metadata.name}"'
                told = Told(about, "Warning", "DeploymentRollbackTemplateUnchanged", words, COMPONENT)
            else:
                spec = {"spec": {"template": template}}
                words = f'Rolled back deployment "{deployment.metadata.name}" to revision {wanted}'
                told = Told(about, "Normal", "DeploymentRollback", words, COMPONENT)
        pointer = rollout.ROLLBACK_TO.replace("~", "~0").replace("/", "~1")
        steps: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": deployment.metadata.resource_version},
            {"op": "remove", "path": f"/metadata/annotations/{pointer}"},
        ]
        if spec:
            steps.append({"op": "replace", "path": "/spec/template", "value": spec["spec"]["template"]})
        request = rpc.patch(
            "deployments.apps", deployment.metadata.name, steps, namespace=deployment.metadata.namespace, kind=rpc.JSON_PATCH
        )
        return Plan((Ask(request),), (told,))

    def _tell(self, deployment: Deployment, status: DeploymentStatus) -> Plan:
        due = rollout.deadline_of(deployment, status)
        again = None if due is None else Instant(due + seconds(1))
        if status == deployment.status:
            return Plan(again_at=again)
        return Plan((_status(deployment, status),), again_at=again)

    # ------------------------------------------------------------ answers

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        deployment = self.shared.deployments.get(key)
        if ask.tag is None or deployment is None:
            return
        about = refer("Deployment", deployment.metadata)
        match ask.tag:
            case ("create", name, replicas):
                if outcome.ok:
                    self._made[key] = name
                    if replicas:
                        text = f"Scaled up replica set {name} from 0 to {replicas}"
                        yield Told(about, "Normal", "ScalingReplicaSet", text, COMPONENT)
                elif outcome.reason == "AlreadyExists":
                    # Somebody's replica set of another template has our hash (or ours, and the copy will show it).
                    known = self.shared.replica_sets.get(f"{deployment.metadata.namespace}/{name}")
                    if known is not None:
                        self._collided[key] = (deployment.status.collision_count or 0) + 1
                else:
                    text = f'Failed to create new replica set "{name}": {outcome.message}'
                    yield Told(about, "Warning", "ReplicaSetCreateError", text, COMPONENT)
            case ("scale", name, before, after) if outcome.ok:
                direction = "up" if after > before else "down"
                text = f"Scaled {direction} replica set {name} from {before} to {after}"
                yield Told(about, "Normal", "ScalingReplicaSet", text, COMPONENT)


# ---------------------------------------------------------------- requests


def _needs(deployment: Deployment, replica_set: ReplicaSet, step: Resize | None) -> bool:
    """Scaling: a size to change, or an active set that has not been told how many are wanted."""
    if step is not None and step.replicas != replica_set.spec.replicas:
        return True
    told = replica_set.metadata.annotations.get(rollout.DESIRED)
    return replica_set.spec.replicas > 0 and told != str(deployment.spec.replicas)


def _with(status: DeploymentStatus, conditions: Sequence[Condition]) -> DeploymentStatus:
    return DeploymentStatus(**{**{f: getattr(status, f) for f in status.__struct_fields__}, "conditions": list(conditions)})


def _collided(status: DeploymentStatus, count: int) -> DeploymentStatus:
    return DeploymentStatus(**{**{f: getattr(status, f) for f in status.__struct_fields__}, "collision_count": count})


def _ownership(deployment: Deployment, replica_set: ReplicaSet, *, adopt: bool) -> Ask:
    entry: dict[str, Any] = {"$patch": "delete", "uid": deployment.metadata.uid}
    if adopt:
        entry = owner_reference("apps/v1", "Deployment", deployment.metadata)
    body = {"metadata": {"uid": replica_set.metadata.uid, "ownerReferences": [entry]}}
    return Ask(rpc.patch("replicasets.apps", replica_set.metadata.name, body, namespace=replica_set.metadata.namespace))


def _replica_set_patch(replica_set: ReplicaSet, annotations: dict[str, str], spec: dict[str, Any]) -> Ask:
    changed = {k: v for k, v in annotations.items() if replica_set.metadata.annotations.get(k) != v}
    body: dict[str, Any] = {
        "metadata": {"resourceVersion": replica_set.metadata.resource_version, **({"annotations": changed} if changed else {})}
    }
    if spec:
        body["spec"] = spec
    request = rpc.patch(
        "replicasets.apps", replica_set.metadata.name, body, namespace=replica_set.metadata.namespace, kind=rpc.MERGE_PATCH
    )
    return Ask(request)


def _status(deployment: Deployment, status: DeploymentStatus, annotations: dict[str, str] | None = None) -> Ask:
    numbers = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    said: dict[str, Any] = built(status)
    body = {
        "metadata": {
            "resourceVersion": deployment.metadata.resource_version,
            "uid": deployment.metadata.uid,
            **({"annotations": annotations} if annotations else {}),
        },
        "status": {**dict.fromkeys(numbers), "terminatingReplicas": status.terminating_replicas, "conditions": None, **said},
    }
    request = rpc.patch(
        "deployments.apps",
        deployment.metadata.name,
        body,
        namespace=deployment.metadata.namespace,
        subresource="status",
        kind=rpc.MERGE_PATCH,
    )
    return Ask(request)
