"""Pod disruption budgets: how many of its pods are healthy, and how many evictions it allows now.

The API server enters each eviction that it grants in ``disruptedPods``; until the deletion shows (two minutes at most) the
pod counts as gone. Also sets back a DisruptionTarget condition that came to nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from elbowroom import rpc
from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.api.selectors import matches
from elbowroom.cache import Change
from elbowroom.controllers.kit import (
    NOTHING,
    Ask,
    Controller,
    Plan,
    Told,
    built,
    controller_of,
    instant,
    is_ready,
    merged_conditions,
    refer,
    scaled,
)
from elbowroom.controllers.views import Budget, BudgetStatus, Condition
from elbowroom.machine import Instant, seconds

DELETION_TIMEOUT = seconds(120)
STALE_CONDITION = seconds(120)
COMPONENT = "controllermanager"


@dataclass(frozen=True, slots=True)
class Scale:
    """A controller of pods and how many it should have."""

    uid: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A budget's new counts. ``overdue`` are pods that were to be deleted and were not, ``recheck_at`` when the next will be."""

    status: BudgetStatus
    recheck_at: Instant | None = None
    overdue: tuple[str, ...] = ()
    unmanaged: tuple[str, ...] = ()


def expected(budget: Budget, pods: Sequence[Pod], scale_of: Callable[[Pod], Scale | None]) -> tuple[int, int, tuple[str, ...]]:
    """Expected pods, healthy ones wanted, and the names of pods nobody manages. ``ValueError`` if it cannot be told."""
    spec = budget.spec
    if spec.max_unavailable is None and isinstance(spec.min_available, int):
        return len(pods), spec.min_available, ()
    if spec.max_unavailable is None and spec.min_available is None:
        return 0, 0, ()
    scales: dict[str, int] = {}
    unmanaged: list[str] = []
    for pod in pods:
        if controller_of(pod.metadata) is None:
            unmanaged.append(pod.metadata.name)
            continue
        scale = scale_of(pod)
        if scale is None:
            raise ValueError(f'found no controllers for pod "{pod.metadata.name}"')
        scales[scale.uid] = scale.replicas
    count = sum(scales.values())
    if spec.max_unavailable is not None:
        return count, max(0, count - scaled(spec.max_unavailable, count, up=True)), tuple(unmanaged)
    return count, scaled(spec.min_available, count, up=True), tuple(unmanaged)


def judge(budget: Budget, pods: Sequence[Pod], scale_of: Callable[[Pod], Scale | None], now: Instant) -> Judged:
    """The status that the budget should have. If its expectation cannot be told, it allows nothing (SyncFailed)."""
    try:
        count, desired, unmanaged = expected(budget, pods, scale_of)
    except ValueError as why:
        condition = _condition(budget, "False", "SyncFailed", str(why), budget.status.observed_generation, now)
        return Judged(
            _replaced(budget.status, disruptions_allowed=0, conditions=merged_conditions(budget.status.conditions, condition))
        )
    disrupted: dict[str, str] = {}
    overdue: list[str] = []
    rechecks: list[int] = []
    for pod in pods:
        since = budget.status.disrupted_pods.get(pod.metadata.name)
        if pod.is_terminating or since is None:
            continue
        due = instant(since) + DELETION_TIMEOUT
        if due <= now:
            overdue.append(pod.metadata.name)
        else:
            rechecks.append(due)
            disrupted[pod.metadata.name] = since
    healthy = sum(1 for pod in pods if not pod.is_terminating and pod.metadata.name not in disrupted and is_ready(pod))
    allowed = max(0, healthy - desired) if count > 0 else 0
    reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
    condition = _condition(budget, "True" if allowed > 0 else "False", reason, "", budget.metadata.generation, now)
    status = BudgetStatus(
        observed_generation=budget.metadata.generation,
        disrupted_pods=disrupted,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=count,
        conditions=merged_conditions(budget.status.conditions, condition),
    )
    return Judged(status, Instant(min(rechecks)) if rechecks else None, tuple(overdue), unmanaged)


def _replaced(status: BudgetStatus, **values: Any) -> BudgetStatus:
    return BudgetStatus(**{**{f: getattr(status, f) for f in status.__struct_fields__}, **values})


def _condition(budget: Budget, status: str, reason: str, message: str, generation: int, now: Instant) -> Condition:
    old = next((c for c in budget.status.conditions if c.type == "DisruptionAllowed"), None)
    kept = old is not None and old.status == status and old.last_transition_time is not None
    return Condition(
        type="DisruptionAllowed",
        status=status,
        reason=reason,
        message=message,
        observed_generation=generation,
        last_transition_time=old.last_transition_time if kept and old is not None else as_time(now),
    )


def status_patch(budget: Budget, status: BudgetStatus) -> dict[str, Any]:
    """The merge patch that makes ``status`` the budget's."""
    disrupted: dict[str, str | None] = {name: None for name in budget.status.disrupted_pods if name not in status.disrupted_pods}
    disrupted.update(status.disrupted_pods)
    return {
        "metadata": {"resourceVersion": budget.metadata.resource_version, "uid": budget.metadata.uid},
        "status": {
            "observedGeneration": status.observed_generation,
            "disruptionsAllowed": status.disruptions_allowed,
            "currentHealthy": status.current_healthy,
            "desiredHealthy": status.desired_healthy,
            "expectedPods": status.expected_pods,
            **({"disruptedPods": disrupted} if disrupted else {}),
            "conditions": [{"message": "", **built(c)} for c in status.conditions],
        },
    }


def stale_at(pod: Pod) -> int | None:
    """When a DisruptionTarget condition of a pod that nobody deleted ends to mean anything."""
    condition = pod.condition("DisruptionTarget")
    if condition is None or condition.status != "True" or pod.is_terminating or pod.is_terminal:
        return None
    if condition.reason == "TerminationByKubelet":
        return None
    return instant(condition.last_transition_time) + STALE_CONDITION


class Disruption(Controller):
    """Keys: ``budget/NAMESPACE/NAME`` and, for stale conditions, ``pod/NAMESPACE/NAME``."""

    name = "disruption"
    reads = ("poddisruptionbudgets.policy", "pods", "replicasets.apps", "deployments.apps")

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "poddisruptionbudgets.policy":
            yield f"budget/{change.key}"
        elif resource == "pods":
            yield from self._concerned(change)
            if change.new is not None and change.new.condition("DisruptionTarget") is not None:
                yield f"pod/{change.key}"
        elif resource in ("replicasets.apps", "deployments.apps"):
            old, new = change.old, change.new
            if new is not None and (old is None or old.spec.replicas != new.spec.replicas):
                for budget in self.shared.budgets.values():
                    if budget.metadata.namespace == new.metadata.namespace:
                        yield f"budget/{budget.metadata.key}"

    def _concerned(self, change: Change[Pod]) -> Iterable[str]:
        pods = [pod for pod in (change.old, change.new) if pod is not None]
        for budget in self.shared.budgets.values():
            if budget.metadata.namespace == pods[0].metadata.namespace and any(
                matches(budget.spec.selector, pod.metadata.labels) for pod in pods
            ):
                yield f"budget/{budget.metadata.key}"

    def reconcile(self, now: Instant, key: str) -> Plan:
        kind, _, name = key.partition("/")
        return self._budget(now, name) if kind == "budget" else self._pod(now, name)

    def _budget(self, now: Instant, key: str) -> Plan:
        budget = self.shared.budgets.get(key)
        if budget is None:
            return NOTHING
        pods = [p for p in self.shared.pods_in(budget.metadata.namespace) if matches(budget.spec.selector, p.metadata.labels)]
        judged = judge(budget, pods, self._scale_of, now)
        if judged.status == budget.status:
            return Plan(again_at=judged.recheck_at)
        patch = status_patch(budget, judged.status)
        request = rpc.patch(
            "poddisruptionbudgets.policy",
            budget.metadata.name,
            patch,
            namespace=budget.metadata.namespace,
            subresource="status",
            kind=rpc.MERGE_PATCH,
        )
        return Plan((Ask(request),), tuple(self._events(budget, judged, pods)), judged.recheck_at)

    def _events(self, budget: Budget, judged: Judged, pods: Sequence[Pod]) -> Iterable[Told]:
        about = refer("PodDisruptionBudget", budget.metadata)
        if not pods:
            yield Told(about, "Normal", "NoPods", "No matching pods found", COMPONENT)
        failed = next((c for c in judged.status.conditions if c.reason == "SyncFailed"), None)
        if failed is not None:
            text = f"Failed to calculate the number of expected pods: {failed.message}"
            yield Told(about, "Warning", "CalculateExpectedPodCountFailed", text, COMPONENT)
        if judged.unmanaged:
            text = (
                "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status of the PDB cannot "
                "be calculated correctly, which may result in undefined behavior. To account for these pods please set "
                '".spec.minAvailable" field of the PDB to an integer value.'
            )
            yield Told(about, "Warning", "UnmanagedPods", text, COMPONENT)
        for pod in pods:
            if pod.metadata.name in judged.overdue:
                place = budget.metadata.namespace
                text = f"Pod was expected by PDB {place}/{budget.metadata.name} to be deleted but it wasn't"
                yield Told(refer("Pod", pod.metadata), "Warning", "NotDeleted", text, COMPONENT)

    def _scale_of(self, pod: Pod) -> Scale | None:
        """The scale of what manages the pod: its Deployment's if its ReplicaSet has one."""
        owner = controller_of(pod.metadata)
        if owner is None or owner.kind != "ReplicaSet":
            return None
        replica_set = self.shared.replica_sets.get(f"{pod.metadata.namespace}/{owner.name}")
        if replica_set is None or replica_set.metadata.uid != owner.uid:
            return None
        above = controller_of(replica_set.metadata)
        if above is None or above.kind != "Deployment":
            return Scale(replica_set.metadata.uid, replica_set.spec.replicas)
        deployment = self.shared.deployments.get(f"{pod.metadata.namespace}/{above.name}")
        if deployment is None or deployment.metadata.uid != above.uid:
            return None
        return Scale(deployment.metadata.uid, deployment.spec.replicas)

    def _pod(self, now: Instant, key: str) -> Plan:
        pod = self.shared.pods.get(key)
        at = stale_at(pod) if pod is not None else None
        if pod is None or at is None:
            return NOTHING
        if at > now:
            return Plan(again_at=Instant(at))
        condition = {
            "type": "DisruptionTarget",
            "status": "False",
            "reason": None,
            "message": None,
            "lastTransitionTime": as_time(now),
        }
        body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        request = rpc.patch("pods", pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status")
        return Plan((Ask(request),))
