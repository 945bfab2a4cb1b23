"""What a Deployment should do next, as values: which replica sets to make, scale and forget, and what to say of it.

Everything here is a pure function of the Deployment, its replica sets and its pods. Numbers and texts are upstream's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.controllers.kit import controller_of, instant, owner_reference, scaled
from elbowroom.controllers.views import Condition, Deployment, DeploymentStatus, ReplicaSet
from elbowroom.machine import Instant

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
NOT_COPIED = frozenset(
    {"kubectl.kubernetes.io/last-applied-configuration", REVISION, REVISION_HISTORY, DESIRED, MAXIMUM, ROLLBACK_TO}
)
NO_DEADLINE = 2147483647
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


# ---------------------------------------------------------------- templates and revisions


def template_hash(template: dict[str, Any], collisions: int | None) -> str:
    """The hash that names a replica set: FNV-1a over the template (not upstream's bytes), in letters that spell nothing."""
    data = msgspec.json.encode(template, order="deterministic") + (str(collisions).encode() if collisions else b"")
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(value))


def plain_template(template: dict[str, Any]) -> dict[str, Any]:
    """The template without the hash label, for comparison."""
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    kept = {k: v for k, v in metadata.items() if k not in ("labels", "creationTimestamp") and v}
    return {**template, "metadata": {**kept, **({"labels": labels} if labels else {})}}


def by_age(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Oldest first."""
    return sorted(replica_sets, key=lambda r: (r.metadata.creation_timestamp or "", r.metadata.name))


def new_replica_set(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """The oldest one that has the Deployment's template."""
    wanted = plain_template(deployment.spec.template)
    return next((r for r in by_age(replica_sets) if plain_template(r.spec.template) == wanted), None)


def revision_of(replica_set: ReplicaSet) -> int:
    try:
        return int(replica_set.metadata.annotations.get(REVISION, "0"))
    except ValueError:
        return 0


def annotations_for(
    deployment: Deployment, replica_set: ReplicaSet | None, revision: int, replicas: int | None = None
) -> dict[str, str]:
    """The annotations that the new replica set bears: the Deployment's own, its revision and its place in the rollout."""
    old = dict(replica_set.metadata.annotations) if replica_set is not None else {}
    found = {**old, **{k: v for k, v in deployment.metadata.annotations.items() if k not in NOT_COPIED}}
    held = revision_of(replica_set) if replica_set is not None else 0
    if held < revision:
        found[REVISION] = str(revision)
        if held:
            history = [part for part in found.get(REVISION_HISTORY, "").split(",") if part]
            found[REVISION_HISTORY] = ",".join([*history, str(held)])
    wanted = deployment.spec.replicas if replicas is None else replicas
    found[DESIRED] = str(wanted)
    found[MAXIMUM] = str(wanted + max_surge(deployment))
    return found


def replica_set_document(deployment: Deployment, replica_sets: Sequence[ReplicaSet], revision: int) -> dict[str, Any]:
    """The replica set that a new template needs."""
    template = deployment.spec.template
    digest = template_hash(template, deployment.status.collision_count)
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), HASH_LABEL: digest}
    selector: dict[str, Any] = msgspec.to_builtins(deployment.spec.selector)
    selector = {**selector, "matchLabels": {**selector.get("matchLabels", {}), HASH_LABEL: digest}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{deployment.metadata.name}-{digest}",
            "namespace": deployment.metadata.namespace,
            "labels": labels,
            "annotations": annotations_for(deployment, None, revision),
            "ownerReferences": [owner_reference("apps/v1", "Deployment", deployment.metadata)],
        },
        "spec": {
            "replicas": new_replicas(deployment, replica_sets, 0),
            "minReadySeconds": deployment.spec.min_ready_seconds,
            "selector": selector,
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        },
    }


# ---------------------------------------------------------------- numbers


def is_rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == "RollingUpdate"


def _fenceposts(deployment: Deployment) -> tuple[int, int]:
    """maxSurge (percent rounded up) and maxUnavailable (rounded down); not both can be zero."""
    rolling = deployment.spec.strategy.rolling_update
    if rolling is None:
        return 0, 0
    try:
        surge = scaled(rolling.max_surge, deployment.spec.replicas, up=True)
        unavailable = scaled(rolling.max_unavailable, deployment.spec.replicas, up=False)
    except ValueError:
        return 0, 1
    return surge, 1 if surge == 0 and unavailable == 0 else unavailable


def max_surge(deployment: Deployment) -> int:
    return _fenceposts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Deployment) -> int:
    if not is_rolling(deployment) or deployment.spec.replicas == 0:
        return 0
    return min(_fenceposts(deployment)[1], deployment.spec.replicas)


def total(replica_sets: Iterable[ReplicaSet]) -> int:
    return sum(r.spec.replicas for r in replica_sets)


def new_replicas(deployment: Deployment, others: Sequence[ReplicaSet], current: int) -> int:
    """How many replicas the new set may have now that ``others`` have theirs and it has ``current``."""
    if not is_rolling(deployment):
        return deployment.spec.replicas
    room = deployment.spec.replicas + max_surge(deployment) - total(others) - current
    if room <= 0:
        return current
    return current + min(room, max(0, deployment.spec.replicas - current))


def active(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    return [r for r in replica_sets if r.spec.replicas > 0]


@dataclass(frozen=True, slots=True)
class Resize:
    """Give a replica set so many replicas."""

    replica_set: ReplicaSet
    replicas: int


def rolling_steps(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Resize]:
    """The next step of a rolling update: the new set up if it may, else the old ones down as far as availability allows."""
    wanted = deployment.spec.replicas
    if new.spec.replicas > wanted:
        return [Resize(new, wanted)]
    grown = new_replicas(deployment, old, new.spec.replicas)
    if grown != new.spec.replicas:
        return [Resize(new, grown)]
    return _old_down(deployment, new, old)


def _old_down(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Resize]:
    held = active(old)
    if not held:
        return []
    least = deployment.spec.replicas - max_unavailable(deployment)
    not_yet = new.spec.replicas - new.status.available_replicas
    spare = total(held) + new.spec.replicas - least - not_yet
    if spare <= 0:
        return []
    sizes = {r.metadata.uid: r.spec.replicas for r in held}
    # First what does not work anyway, so that it cannot hold the rollout up.
    cleaned = 0
    for replica_set in by_age(held):
        sick = replica_set.spec.replicas - replica_set.status.available_replicas
        down = min(spare - cleaned, sick)
        if down > 0:
            sizes[replica_set.metadata.uid] -= down
            cleaned += down
    available = new.status.available_replicas + sum(r.status.available_replicas for r in held)
    room = available - least
    for replica_set in by_age(held):
        down = min(sizes[replica_set.metadata.uid], room)
        if down > 0:
            sizes[replica_set.metadata.uid] -= down
            room -= down
    return [Resize(r, sizes[r.metadata.uid]) for r in by_age(held) if sizes[r.metadata.uid] != r.spec.replicas]


def is_scaling(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> bool:
    """Was the Deployment scaled since its active replica sets were told how many it wants?"""
    for replica_set in active(replica_sets):
        told = replica_set.metadata.annotations.get(DESIRED)
        if told is not None and told.isdigit() and int(told) != deployment.spec.replicas:
            return True
    return False


def scaling_steps(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Resize]:
    """Scale without hastening a rollout: one set alone takes it all, several get their proportion."""
    wanted = deployment.spec.replicas
    everyone = [*old, *([new] if new is not None else [])]
    held = active(everyone)
    if len(held) <= 1:
        newest = by_age(old)[-1] if old else None
        only = held[0] if held else (new if new is not None else newest)
        return [Resize(only, wanted)] if only is not None and only.spec.replicas != wanted else []
    if new is not None and _is_saturated(deployment, new):
        return [Resize(r, 0) for r in active(old)]
    if not is_rolling(deployment):
        return []
    return _proportional(deployment, held)


def _is_saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    try:
        told = int(new.metadata.annotations.get(DESIRED, ""))
    except ValueError:
        return False
    wanted = deployment.spec.replicas
    return new.spec.replicas == wanted and told == wanted and new.status.available_replicas == wanted


def _proportional(deployment: Deployment, held: Sequence[ReplicaSet]) -> list[Resize]:
    allowed = deployment.spec.replicas + max_surge(deployment) if deployment.spec.replicas > 0 else 0
    add = allowed - total(held)
    # The larger first; of equals the newer when growing, the older when shrinking.
    ages = by_age(held)
    order = sorted(ages, key=lambda r: (-r.spec.replicas, -ages.index(r) if add > 0 else ages.index(r)))
    sizes: list[int] = []
    added = 0
    for replica_set in order:
        share = _share(deployment, replica_set, add, added) if add else 0
        sizes.append(replica_set.spec.replicas + share)
        added += share
    if add and sizes:
        sizes[0] = max(0, sizes[0] + add - added)  # what rounding left over
    return [Resize(r, size) for r, size in zip(order, sizes, strict=True)]


def _share(deployment: Deployment, replica_set: ReplicaSet, add: int, added: int) -> int:
    left = add - added
    if replica_set.spec.replicas == 0 or left == 0:
        return 0
    told = replica_set.metadata.annotations.get(MAXIMUM, "")
    before = int(told) if told.isdigit() and int(told) > 0 else deployment.status.replicas
    if before == 0:
        return 0
    size = deployment.spec.replicas + max_surge(deployment)
    fraction = 0 if deployment.spec.replicas == 0 else int(replica_set.spec.replicas * size / before + 0.5)
    share = fraction - replica_set.spec.replicas
    return min(share, left) if add > 0 else max(share, left)


def old_pods_run(new: ReplicaSet | None, replica_sets: Sequence[ReplicaSet], pods: Iterable[Pod]) -> bool:
    """Recreate: is any pod of an older replica set not over yet?"""
    old = {r.metadata.uid for r in replica_sets if new is None or r.metadata.uid != new.metadata.uid}
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is not None and owner.uid in old and not pod.is_terminal:
            return True
    return False


def outdated(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Old replica sets beyond ``revisionHistoryLimit``; only those that hold nothing."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit == NO_DEADLINE:
        return []
    alive = sorted((r for r in old if r.metadata.deletion_timestamp is None), key=lambda r: (revision_of(r), r.metadata.name))
    surplus = alive[: max(0, len(alive) - limit)]
    return [
        r
        for r in surplus
        if r.status.replicas == 0 and r.spec.replicas == 0 and r.metadata.generation <= r.status.observed_generation
    ]


# ---------------------------------------------------------------- status


def condition_set(conditions: Sequence[Condition], new: Condition) -> list[Condition]:
    """Conditions with ``new``: unchanged if its status and reason are, its transition time kept if its status is."""
    old = next((c for c in conditions if c.type == new.type), None)
    if old is not None and (old.status, old.reason) == (new.status, new.reason):
        return list(conditions)
    if old is not None and old.status == new.status:
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return [*(c for c in conditions if c.type != new.type), new]


def condition(kind: str, status: str, reason: str, message: str, now: Instant) -> Condition:
    at = as_time(now)
    return Condition(type=kind, status=status, reason=reason, message=message, last_update_time=at, last_transition_time=at)


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, NO_DEADLINE)


def counted(deployment: Deployment, new: ReplicaSet | None, replica_sets: Sequence[ReplicaSet], now: Instant) -> DeploymentStatus:
    """The numbers, and whether it is available; other conditions as they stand."""
    replicas = sum(r.status.replicas for r in replica_sets)
    available = sum(r.status.available_replicas for r in replica_sets)
    if available >= deployment.spec.replicas - max_unavailable(deployment):
        told = condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    else:
        told = condition("Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now)
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=replicas,
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(r.status.ready_replicas for r in replica_sets),
        available_replicas=available,
        unavailable_replicas=max(0, total(replica_sets) - available),
        terminating_replicas=sum(r.status.terminating_replicas or 0 for r in replica_sets),
        collision_count=deployment.status.collision_count,
        conditions=condition_set(deployment.status.conditions, told),
    )


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    wanted = deployment.spec.replicas
    return (
        status.updated_replicas == status.replicas == status.available_replicas == wanted
        and status.observed_generation >= deployment.metadata.generation
    )


def _has_progressed(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def deadline_of(deployment: Deployment, status: DeploymentStatus) -> Instant | None:
    """When the rollout will have made no progress for too long; None if that does not apply (any more)."""
    told = status.condition("Progressing")
    if not has_deadline(deployment) or told is None or told.reason in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None
    if told.status == "Unknown":
        return None
    return Instant(instant(told.last_update_time) + (deployment.spec.progress_deadline_seconds or 0) * 1_000_000_000)


def rollout_status(
    deployment: Deployment, new: ReplicaSet | None, replica_sets: Sequence[ReplicaSet], now: Instant
) -> DeploymentStatus:
    """The numbers, and how the rollout goes."""
    status = counted(deployment, new, replica_sets, now)
    conditions = status.conditions
    what = f'ReplicaSet "{new.metadata.name}"' if new is not None else f'Deployment "{deployment.metadata.name}"'
    told = deployment.status.condition("Progressing")
    if not has_deadline(deployment):
        conditions = [c for c in conditions if c.type != "Progressing"]
    elif not (status.replicas == status.updated_replicas and told is not None and told.reason == "NewReplicaSetAvailable"):
        due = deadline_of(deployment, deployment.status)
        if is_complete(deployment, status):
            text = f"{what} has successfully progressed."
            conditions = condition_set(conditions, condition("Progressing", "True", "NewReplicaSetAvailable", text, now))
        elif _has_progressed(deployment.status, status):
            fresh = condition("Progressing", "True", "ReplicaSetUpdated", f"{what} is progressing.", now)
            if told is not None and told.status == "True":
                fresh = msgspec.structs.replace(fresh, last_transition_time=told.last_transition_time)
            conditions = [*(c for c in conditions if c.type != "Progressing"), fresh]
        elif due is not None and due < now:
            text = f"{what} has timed out progressing."
            conditions = condition_set(conditions, condition("Progressing", "False", "ProgressDeadlineExceeded", text, now))
    return msgspec.structs.replace(status, conditions=with_failure(conditions, new, replica_sets))


def with_failure(conditions: Sequence[Condition], new: ReplicaSet | None, replica_sets: Sequence[ReplicaSet]) -> list[Condition]:
    """A replica set's ReplicaFailure becomes the Deployment's, the new set's before the others'."""
    for replica_set in [*([new] if new is not None else []), *replica_sets]:
        for failure in replica_set.status.conditions:
            if failure.type == "ReplicaFailure":
                moved = msgspec.structs.replace(failure, last_update_time=failure.last_transition_time)
                return condition_set(conditions, moved)
    return [c for c in conditions if c.type != "ReplicaFailure"]


def paused_conditions(deployment: Deployment, now: Instant) -> list[Condition] | None:
    """The conditions after a pause or a resumption that they do not tell of yet; None if they need no change."""
    told = deployment.status.condition("Progressing")
    if not has_deadline(deployment) or (told is not None and told.reason == "ProgressDeadlineExceeded"):
        return None
    is_told = told is not None and told.reason == "DeploymentPaused"
    if deployment.spec.paused and not is_told:
        new = condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now)
    elif not deployment.spec.paused and is_told:
        new = condition("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed", now)
    else:
        return None
    return condition_set(deployment.status.conditions, new)
