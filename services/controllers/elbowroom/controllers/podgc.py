"""Pods that nobody will end any more: on nodes that are gone, terminating where no kubelet is, and too many that are over.

It looks every 20 s, the first time as it begins, as upstream's does: what it would end stays until then. Between looks it only goes
on with what it has begun. A missing node is believed 40 s after a look that missed it, and after one at the API server itself. Pods
are first marked Failed, so that whoever waits for their end learns of it, and then deleted without grace.
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

LOOKS_EVERY = seconds(20)
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
        self._ending: set[str] = set()
        """Pods that an end has been asked for."""
        self._ended = 0
        self._began: Instant | None = None

    def begin(self, now: Instant) -> None:
        self._began = now
        for node in self.shared.pods_by_node:
            self.queue.add(f"node/{node}")
        self.queue.add("ended")

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "nodes":
            yield from self._notice_node(now, change)
        elif resource == "pods":
            yield from self._notice_pod(now, change)

    def _notice_node(self, now: Instant, change: Change[Any]) -> Iterable[str]:
        if change.key in self._missing:
            yield f"node/{change.key}"
        self._look_later(now, f"node/{change.key}")
        if change.new is not None:
            for pod in self.shared.pods_on(change.key):
                if pod.is_terminating:
                    self._look_later(now, f"pod/{pod.key}")

    def _notice_pod(self, now: Instant, change: Change[Any]) -> Iterable[str]:
        was = change.old is not None and change.old.is_terminal
        now_is = change.new is not None and change.new.is_terminal
        self._ended += now_is - was
        if self._ended > TERMINATED_MAX:
            self._look_later(now, "ended")
        if change.new is None:
            self._ending.discard(change.key)
            return
        if change.new.is_terminating:
            if change.key in self._ending:
                yield f"pod/{change.key}"
            self._look_later(now, f"pod/{change.key}")
        node = change.new.spec.node_name
        if node and node not in self.shared.nodes:
            if node in self._gone:
                yield f"node/{node}"
            self._look_later(now, f"node/{node}")

    def _look_later(self, now: Instant, key: str) -> None:
        """At the next of the looks; before the first one nothing is looked at anyway."""
        if self._began is None:
            self.queue.add(key)
        else:
            self.queue.add_at(key, Instant(now + LOOKS_EVERY - (now - self._began) % LOOKS_EVERY))

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
            self._ending.add(key)
            return Plan((_end(pod, now, None),))
        node = self.shared.nodes.get(pod.spec.node_name)
        if node is not None and ready_of(node) != "True" and any(t.key == OUT_OF_SERVICE for t in node.spec.taints):
            self._ending.add(key)
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
