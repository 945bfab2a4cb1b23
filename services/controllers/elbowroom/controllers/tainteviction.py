"""Eviction by NoExecute taints: a pod that does not tolerate its node's goes at once, one that does for a time goes after that."""

from collections.abc import Iterable, Sequence
from typing import Any

from elbowroom import rpc
from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod, Taint, Toleration
from elbowroom.cache import Change
from elbowroom.controllers.kit import NOTHING, Ask, Controller, Plan, Told, instant, refer
from elbowroom.machine import Instant, seconds

COMPONENT = "taint-eviction-controller"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Does it cover the taint?"""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Lt" | "Gt":
            try:
                mine, other = int(toleration.value), int(taint.value)
            except ValueError:
                return False
            return other < mine if toleration.operator == "Lt" else other > mine
        case _:
            return bool(toleration.key) and toleration.value == taint.value


def stay_seconds(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> float | None:
    """How long a pod may stay with these NoExecute taints: 0 not at all, None for ever."""
    shortest: float | None = None
    for taint in taints:
        fitting = [t for t in tolerations if tolerates(t, taint)]
        if not fitting:
            return 0.0
        for toleration in fitting:
            if toleration.toleration_seconds is not None:
                limit = float(max(0, toleration.toleration_seconds))
                shortest = limit if shortest is None else min(shortest, limit)
    return shortest


class TaintEviction(Controller):
    """Keys: ``NAMESPACE/NAME`` of pods."""

    name = "tainteviction"
    reads = ("nodes", "pods")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._since: dict[str, Instant] = {}
        """Pod -> when its stay on a tainted node began to be counted."""

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "pods":
            if change.new is None:
                self._since.pop(change.key, None)
            elif change.new.spec.node_name:
                yield change.key
        elif resource == "nodes" and change.new is not None:
            old = _no_execute(change.old.spec.taints) if change.old is not None else []
            if old != _no_execute(change.new.spec.taints):
                yield from (pod.key for pod in self.shared.pods_on(change.key))

    def reconcile(self, now: Instant, key: str) -> Plan:
        pod = self.shared.pods.get(key)
        node = self.shared.nodes.get(pod.spec.node_name) if pod is not None else None
        taints = _no_execute(node.spec.taints) if node is not None else []
        if pod is None or pod.is_terminating or not taints:
            began = self._since.pop(key, None)
            if began is not None and pod is not None and not pod.is_terminating:
                return Plan(events=(_told(pod, f"Cancelling deletion of Pod {pod.key}"),))
            return NOTHING
        stay = stay_seconds(pod.spec.tolerations, taints)
        if stay is None:
            self._since.pop(key, None)
            return NOTHING
        began = self._since.setdefault(key, _began(taints, now))
        due = Instant(began + seconds(stay))
        if due > now:
            return Plan(again_at=due)
        return _evict(pod, now)


def _no_execute(taints: Iterable[Taint]) -> list[Taint]:
    return [taint for taint in taints if taint.effect == "NoExecute"]


def _began(taints: Iterable[Taint], now: Instant) -> Instant:
    """A taint that says when it was added counts from then, so that a restart of this controller gives no second term."""
    times = [instant(taint.time_added) or now for taint in taints]
    return Instant(min(now, max(times)))


def _told(pod: Pod, message: str) -> Told:
    return Told(refer("Pod", pod.metadata), "Normal", "TaintManagerEviction", message, COMPONENT)


def _evict(pod: Pod, now: Instant) -> Plan:
    """First the condition that says why, then the deletion."""
    condition = pod.condition("DisruptionTarget")
    if (condition is None or condition.status != "True") and not pod.is_terminal:
        new = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": as_time(now),
        }
        body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [new]}}
        patch = rpc.patch("pods", pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status")
        return Plan((Ask(patch),), (_told(pod, f"Marking for deletion Pod {pod.key}"),))
    delete = rpc.delete("pods", pod.metadata.name, namespace=pod.metadata.namespace, options={"preconditions": {"uid": pod.uid}})
    return Plan((Ask(delete),))
