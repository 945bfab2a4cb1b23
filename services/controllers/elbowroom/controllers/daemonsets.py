"""DaemonSets: one pod on each node that the template's pod could run on.

The pod of a node is bound to it by a node affinity on the node's name, for the scheduler to place; it tolerates what upstream's
do. A change of the template replaces pods while at most ``maxUnavailable`` of them are not available; or, with ``maxSurge``, puts
new ones beside so many old ones, which go once theirs is available.
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
    pairs: list[Pair] = []
    rolls = daemon.spec.update_strategy.type == "RollingUpdate"
    surges = rolls and _most(daemon, "max_surge", 1) > 0
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
            delete += broken
            keepers += alive[:1]
            if surges:
                pair = Pair.of(name, runs, alive, revision)
                pairs.append(pair)
                delete += [pod for pod in alive if pod not in (pair.old, pair.new)]
            else:
                delete += alive[1:]
    available = [pod for pod in keepers if is_available(pod, daemon.spec.min_ready_seconds, now)]
    if surges:
        beside, over = _surged(daemon, pairs, now, desired)
        create += beside
        delete += over
    elif rolls:
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


def _most(daemon: DaemonSet, name: str, desired: int) -> int:
    """``max_unavailable`` or ``max_surge`` of so many pods, rounded up; 0 where nothing sound is said."""
    rolling = daemon.spec.update_strategy.rolling_update
    try:
        return scaled(getattr(rolling, name) if rolling is not None else 0, desired, up=True)
    except ValueError:
        return 0


def _outdated(daemon: DaemonSet, keepers: Sequence[Pod], available: Sequence[Pod], revision: str, desired: int) -> list[Pod]:
    """Pods of another revision that may go now: those that are not available at once, others as far as may be away."""
    most = max(1, _most(daemon, "max_unavailable", desired))
    old = [pod for pod in keepers if pod.metadata.labels.get(REVISION_LABEL) != revision]
    away = [pod for pod in old if pod not in available]
    room = max(0, most - (desired - len(available)))
    return [*away, *[pod for pod in old if pod in available][:room]]


@dataclass(frozen=True, slots=True)
class Pair:
    """What a node has while new pods are put beside old ones: of each kind the oldest."""

    node: str
    runs: bool
    """A pod should be made for it."""
    old: Pod | None
    new: Pod | None

    @classmethod
    def of(cls, node: str, runs: bool, alive: Sequence[Pod], revision: str) -> "Pair":
        """``alive``: the oldest first."""
        new = [pod for pod in alive if pod.metadata.labels.get(REVISION_LABEL) == revision]
        old = [pod for pod in alive if pod not in new]
        return cls(node, runs, old[0] if old else None, new[0] if new else None)


def _surged(daemon: DaemonSet, pairs: Sequence[Pair], now: Instant, desired: int) -> tuple[list[str], list[Pod]]:
    """Nodes that get a new pod beside their old one, and old pods that go. An old pod that is not available is replaced at once,
    whatever ``maxSurge`` says; one that does its work goes once the new one does, or, where no pod should be any more, once enough
    others do."""

    def works(pod: Pod | None) -> bool:
        return pod is not None and is_available(pod, daemon.spec.min_ready_seconds, now)

    over: list[Pod] = []
    at_once: list[str] = []
    candidates: list[str] = []
    leaving: list[Pod] = []
    surging = 0
    for pair in pairs:
        if pair.old is None:
            continue
        if pair.new is not None:
            if works(pair.new) or not is_ready(pair.old):
                over.append(pair.old)
            else:
                surging += 1
        elif not pair.runs:
            (leaving if works(pair.old) else over).append(pair.old)
        else:
            (candidates if works(pair.old) else at_once).append(pair.node)
    working = sum(works(pair.old if pair.old is not None else pair.new) for pair in pairs)
    over += leaving[: max(0, working - desired)]
    return [*at_once, *candidates[: max(0, _most(daemon, "max_surge", desired) - surging)]], over


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
