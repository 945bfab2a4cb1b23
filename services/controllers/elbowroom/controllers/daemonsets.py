"""DaemonSets: one pod on each node that the template's pod could run on.

The pod of a node is bound to it by a node affinity on the node's name, for the scheduler to place; it tolerates what upstream's
do. A change of the template replaces pods while at most ``maxUnavailable`` of them are not available.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.objects import Node, NodeSelectorTerm, Pod, PodSpec, Toleration
from elbowroom.api.selectors import Requirement
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
    is_ready,
    refer,
    scaled,
    with_suffix,
)
from elbowroom.controllers.statefulsets import is_available
from elbowroom.controllers.tainteviction import tolerates
from elbowroom.controllers.views import DaemonSet, DaemonSetStatus
from elbowroom.controllers.workload import (
    REVISION_LABEL,
    Owner,
    creation,
    deletion,
    ownership,
    pod_of,
    revisions_of,
    status_patch,
)
from elbowroom.machine import Instant

COMPONENT = "daemonset-controller"
BURST = 250
NAME_FIELD = "metadata.name"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")
_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


# ---------------------------------------------------------------- decisions


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {NAME_FIELD: node.metadata.name}
    return all(
        Requirement(one.key, _OPERATORS.get(one.operator, ""), tuple(one.values)).matches(of)
        for ones, of in ((term.match_expressions, node.metadata.labels), (term.match_fields, fields))
        for one in ones
    )


def fits_node(spec: PodSpec, node: Node) -> bool:
    """Do the template's node name, selector and required affinity allow this node?"""
    if spec.node_name and spec.node_name != node.metadata.name:
        return False
    if any(node.metadata.labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return True
    return any(_term_matches(term, node) for term in affinity.required.node_selector_terms)


def should_run(spec: PodSpec, tolerations: Sequence[Toleration], node: Node) -> tuple[bool, bool]:
    """(should a pod be made for this node, may one that is there stay)."""
    if not fits_node(spec, node):
        return False, False
    hard = [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
    untolerated = [taint for taint in hard if not any(tolerates(one, taint) for one in tolerations)]
    return not untolerated, not any(taint.effect == "NoExecute" for taint in untolerated)


def tolerations_of(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The template's, and those that every such pod has."""
    found: list[dict[str, Any]] = list(spec.get("tolerations") or ())
    for key, effect in (*_TOLERATED, *((_NETWORK,) if spec.get("hostNetwork") else ())):
        one = {"key": key, "operator": "Exists", "effect": effect}
        if one not in found:
            found.append(one)
    return found


def node_of(pod: Pod) -> str:
    """The node that a pod is on, or is meant for."""
    if pod.spec.node_name or pod.spec.affinity is None or pod.spec.affinity.node_affinity is None:
        return pod.spec.node_name
    required = pod.spec.affinity.node_affinity.required
    for term in [] if required is None else required.node_selector_terms:
        for one in term.match_fields:
            if one.key == NAME_FIELD and one.operator == "In" and len(one.values) == 1:
                return one.values[0]
    return ""


@dataclass(frozen=True, slots=True)
class Decided:
    """Nodes that lack a pod, pods that are to go, and of those the ones that failed."""

    create: tuple[str, ...]
    delete: tuple[Pod, ...]
    failed: tuple[Pod, ...]
    status: DaemonSetStatus


def decide(daemon: DaemonSet, nodes: Iterable[Node], pods: Sequence[Pod], revision: str, now: Instant) -> Decided:
    """What to do about the pods of a set, and its status."""
    raw = {**(daemon.spec.template.get("spec") or {})}
    raw["tolerations"] = tolerations_of(raw)
    spec = msgspec.convert(raw, PodSpec)
    by_node: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=lambda p: (p.metadata.creation_timestamp or "", p.metadata.name)):
        by_node.setdefault(node_of(pod), []).append(pod)
    create: list[str] = []
    delete: list[Pod] = []
    failed: list[Pod] = []
    keepers: list[Pod] = []
    desired = current = misplaced = 0
    for node in sorted(nodes, key=lambda one: one.metadata.name):
        name = node.metadata.name
        there = by_node.get(name, [])
        runs, stays = should_run(spec, spec.tolerations, node)
        desired += runs
        current += runs and bool(there)
        misplaced += not runs and bool(there)
        broken = [pod for pod in there if pod.status.phase == "Failed" and not pod.is_terminating]
        alive = [pod for pod in there if pod not in broken and not pod.is_terminating]
        if runs and not there:
            create.append(name)
        elif not stays:
            delete += [pod for pod in there if not pod.is_terminating]
        elif runs or alive:
            failed += broken
            delete += [*broken, *alive[1:]]
            keepers += alive[:1]
    available = [pod for pod in keepers if is_available(pod, daemon.spec.min_ready_seconds, now)]
    if daemon.spec.update_strategy.type == "RollingUpdate":
        delete += _outdated(daemon, keepers, available, revision, desired)
    status = DaemonSetStatus(
        current_number_scheduled=current,
        number_misscheduled=misplaced,
        desired_number_scheduled=desired,
        number_ready=sum(is_ready(pod) for pod in keepers),
        observed_generation=daemon.metadata.generation,
        updated_number_scheduled=sum(pod.metadata.labels.get(REVISION_LABEL) == revision for pod in keepers),
        number_available=len(available),
        number_unavailable=max(0, desired - len(available)),
        collision_count=daemon.status.collision_count,
    )
    return Decided(tuple(create), tuple(delete), tuple(failed), status)


def _outdated(daemon: DaemonSet, keepers: Sequence[Pod], available: Sequence[Pod], revision: str, desired: int) -> list[Pod]:
    """Pods of another revision that may go now: those that are not available at once, others as far as may be away."""
    rolling = daemon.spec.update_strategy.rolling_update
    try:
        most = max(1, scaled(rolling.max_unavailable if rolling is not None else 1, desired, up=True))
    except ValueError:
        most = 1
    old = [pod for pod in keepers if pod.metadata.labels.get(REVISION_LABEL) != revision]
    away = [pod for pod in old if pod not in available]
    room = max(0, most - (desired - len(available)))
    return [*away, *[pod for pod in old if pod in available][:room]]


def pod_document(daemon: DaemonSet, node: str, revision: str, name: str) -> dict[str, Any]:
    """The pod for a node."""
    labels = {REVISION_LABEL: revision, "pod-template-generation": str(daemon.metadata.generation)}
    document = pod_of(owner_of(daemon), daemon.spec.template, name, labels)
    document["metadata"]["generateName"] = f"{daemon.metadata.name}-"
    spec = document["spec"]
    spec["tolerations"] = tolerations_of(spec)
    affinity = dict(spec.get("affinity") or {})
    inner = dict(affinity.get("nodeAffinity") or {})
    field = {"key": NAME_FIELD, "operator": "In", "values": [node]}
    inner["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    spec["affinity"] = {**affinity, "nodeAffinity": inner}
    return document


def owner_of(daemon: DaemonSet) -> Owner:
    return Owner("apps/v1", "DaemonSet", daemon.metadata)


# ---------------------------------------------------------------- the loop


class DaemonSets(Controller):
    """Keys: ``NAMESPACE/NAME``."""

    name = "daemonsets"
    reads = ("daemonsets.apps", "pods", "nodes", "controllerrevisions.apps")

    @property
    def _sets(self) -> Mapping[str, DaemonSet]:
        return self.shared.reflectors["daemonsets.apps"].store

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "daemonsets.apps":
            yield change.key
        elif resource == "nodes":
            if change.old is None or change.new is None or _placement(change.old) != _placement(change.new):
                yield from list(self._sets)
        elif resource in ("pods", "controllerrevisions.apps"):
            for one in (change.old, change.new):
                if one is not None:
                    yield from self.shared.owners(one.metadata, "DaemonSet", "daemonsets.apps")

    def reconcile(self, now: Instant, key: str) -> Plan:
        daemon = self._sets.get(key)
        if daemon is None or daemon.metadata.deletion_timestamp is not None:
            return NOTHING
        namespace = daemon.metadata.namespace
        pods, asks = ownership(owner_of(daemon), daemon.spec.selector, self.shared.pods_in(namespace))
        live = [pod.metadata.labels.get(REVISION_LABEL, "") for pod in pods]
        known = self.shared.in_namespace("controllerrevisions.apps", namespace)
        revisions = revisions_of(owner_of(daemon), daemon.spec.template, known, live, daemon.spec.revision_history_limit)
        asks += revisions.asks
        if revisions.update is None or asks:
            return Plan(tuple(asks))
        revision = revisions.update.metadata.name
        decided = decide(daemon, self.shared.nodes.values(), pods, revision, now)
        prefix = f"{daemon.metadata.name}-"
        asks += [creation(pod_document(daemon, node, revision, with_suffix(prefix, self.rng))) for node in decided.create[:BURST]]
        asks += [deletion(pod) for pod in decided.delete[:BURST]]
        if decided.status != daemon.status:
            asks.append(status_patch("daemonsets.apps", daemon.metadata, _shown(decided.status)))
        about = {**refer("DaemonSet", daemon.metadata), "apiVersion": "apps/v1"}
        events = tuple(Told(about, "Warning", "FailedDaemonPod", _failed(pod), COMPONENT) for pod in decided.failed)
        times = [available_at(pod, daemon.spec.min_ready_seconds) for pod in pods]
        again = min((Instant(at) for at in times if at is not None and at > now), default=None)
        return Plan(tuple(asks), events, again)

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        daemon = self._sets.get(key)
        if ask.tag is None or daemon is None:
            return
        verb, pod = ask.tag
        about = {**refer("DaemonSet", daemon.metadata), "apiVersion": "apps/v1"}
        done, doing = {"create": ("Created", "creating"), "delete": ("Deleted", "deleting")}[verb]
        if outcome.ok:
            yield Told(about, "Normal", f"Successful{verb.capitalize()}", f"{done} pod: {pod}", COMPONENT)
        elif outcome.status not in (404, 409):
            yield Told(about, "Warning", f"Failed{verb.capitalize()}", f"Error {doing}: {outcome.message}", COMPONENT)


def _failed(pod: Pod) -> str:
    place = f"{pod.metadata.namespace}/{pod.metadata.name} on node {node_of(pod)}"
    return f"Found failed daemon pod {place}, will try to kill it"


def _placement(node: Node) -> Any:
    return node.metadata.labels, node.spec.taints


def _shown(status: DaemonSetStatus) -> dict[str, Any]:
    always = {
        "currentNumberScheduled": status.current_number_scheduled,
        "numberMisscheduled": status.number_misscheduled,
        "desiredNumberScheduled": status.desired_number_scheduled,
        "numberReady": status.number_ready,
    }
    gone: dict[str, Any] = dict.fromkeys(("updatedNumberScheduled", "numberAvailable", "numberUnavailable"))
    return {**gone, **built(status), **always}
