"""Pods that nobody will end any more: on nodes that are gone, terminating where no kubelet is, and too many that are over.

A missing node is believed after 40 s and a look at the API server itself. Its pods are first marked Failed, so that whoever waits
for their end learns of it, and then deleted without grace.
"""

from collections.abc import Iterable
from typing import Any

from elbowroom import rpc
from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.cache import Change
from elbowroom.controllers.kit import NOTHING, Ask, Controller, Outcome, Plan, Told
from elbowroom.controllers.nodelifecycle import ready_of
from elbowroom.machine import Instant, seconds

QUARANTINE = seconds(40)
TERMINATED_MAX = 12500
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def surplus(pods: Iterable[Pod], threshold: int) -> list[Pod]:
    """Ended pods beyond the threshold: evicted ones first, then the oldest."""
    ended = [pod for pod in pods if pod.is_terminal]
    if len(ended) <= threshold:
        return []
    ended.sort(key=lambda p: (p.status.reason != "Evicted", p.metadata.creation_timestamp or "", p.metadata.name))
    return ended[: len(ended) - threshold]


class PodGc(Controller):
    """Keys: ``pod/NAMESPACE/NAME``, ``node/NAME`` of nodes that are missed, ``ended``."""

    name = "podgc"
    reads = ("pods", "nodes")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._missing: dict[str, Instant] = {}
        self._gone: set[str] = set()
        """Nodes that the API server said do not exist."""
        self._ended = 0

    def begin(self, now: Instant) -> None:
        for node in self.shared.pods_by_node:
            self.queue.add(f"node/{node}")
        self.queue.add("ended")

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "nodes":
            yield f"node/{change.key}"
            if change.new is not None:
                yield from (f"pod/{pod.key}" for pod in self.shared.pods_on(change.key) if pod.is_terminating)
        elif resource == "pods":
            was = change.old is not None and change.old.is_terminal
            now_is = change.new is not None and change.new.is_terminal
            self._ended += now_is - was
            if self._ended > TERMINATED_MAX:
                yield "ended"
            if change.new is not None:
                if change.new.is_terminating:
                    yield f"pod/{change.key}"
                if change.new.spec.node_name and change.new.spec.node_name not in self.shared.nodes:
                    yield f"node/{change.new.spec.node_name}"

    def reconcile(self, now: Instant, key: str) -> Plan:
        kind, _, name = key.partition("/")
        match kind:
            case "pod":
                return self._pod(now, name)
            case "node":
                return self._node(now, name)
            case _:
                return Plan(tuple(_deletion(pod) for pod in surplus(self.shared.pods.values(), TERMINATED_MAX)))

    def _pod(self, now: Instant, key: str) -> Plan:
        pod = self.shared.pods.get(key)
        if pod is None or not pod.is_terminating:
            return NOTHING
        if _is_deleted(pod):
            return NOTHING
        if not pod.spec.node_name:
            return Plan((_end(pod, now, None),))
        node = self.shared.nodes.get(pod.spec.node_name)
        if node is not None and ready_of(node) != "True" and any(t.key == OUT_OF_SERVICE for t in node.spec.taints):
            return Plan((_end(pod, now, None),))
        return NOTHING

    def _node(self, now: Instant, name: str) -> Plan:
        pods = self.shared.pods_on(name)
        if not name or name in self.shared.nodes or not pods:
            self._missing.pop(name, None)
            self._gone.discard(name)
            return NOTHING
        due = Instant(self._missing.setdefault(name, now) + QUARANTINE)
        if due > now:
            return Plan(again_at=due)
        if name not in self._gone:
            return Plan((Ask(rpc.get("nodes", name), "verify"),))
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": as_time(now),
        }
        return Plan(tuple(_end(pod, now, condition) for pod in pods if not _is_deleted(pod)))

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        if ask.tag == "verify":
            name = key.removeprefix("node/")
            if outcome.status == 404:
                self._gone.add(name)
                self.queue.add(key)
            else:
                self._missing[name] = now
                self.queue.add_at(key, Instant(now + QUARANTINE))
        return ()


def _is_deleted(pod: Pod) -> bool:
    """Has all been done to end it, so that only its finalizers keep it?"""
    metadata = pod.metadata
    return pod.is_terminal and bool(metadata.finalizers) and pod.is_terminating and metadata.deletion_grace_period_seconds == 0


def _end(pod: Pod, now: Instant, condition: dict[str, str] | None) -> Ask:
    """The next step to its end: Failed, then gone."""
    if pod.is_terminal:
        return _deletion(pod)
    status: dict[str, Any] = {"phase": "Failed", **({"conditions": [condition]} if condition is not None else {})}
    body = {"metadata": {"uid": pod.uid}, "status": status}
    return Ask(rpc.patch("pods", pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status"))


def _deletion(pod: Pod) -> Ask:
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
    return Ask(rpc.delete("pods", pod.metadata.name, namespace=pod.metadata.namespace, options=options))
