"""Spreads pods over domains such as zones and hosts (SC-70, SC-78).

A pod without constraints of its own has default ones, if it belongs to a Service or a ReplicaSet: upstream's (a wish, no
condition), or a list from the configuration. Upstream's are the only ones that tolerate nodes without the label, as many clusters
have no zones.
"""

from collections import Counter
from collections.abc import Sequence
from math import floor, log

from elbowroom.api.objects import Node, TopologySpreadConstraint
from elbowroom.api.selectors import Requirement, Selector, of_view
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.clusterevents import ASSIGNED_POD, NODE, TARGET_POD, Action
from elbowroom.scheduler.framework import SCORE_MAX, Code, Interest, NodeFilter, Plugin, Prepared, Scorer, Status
from elbowroom.scheduler.lookup import Lookup
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.plugins.affinity import node_suits
from elbowroom.scheduler.plugins.nodes import is_tolerated
from elbowroom.scheduler.podinfo import PodInfo

Domain = tuple[int, str]
"""The number of a constraint and a node's value of its key: constraints may share a key and not a selector."""


class Constraint:
    """One topology spread constraint of a pod."""

    __slots__ = ("_checks_affinity", "_checks_taints", "_owner", "_selector", "key", "max_skew", "min_domains", "self_match")

    def __init__(self, view: TopologySpreadConstraint, owner: PodInfo, belonging: Selector | None = None) -> None:
        """``belonging``: whom a default constraint selects."""
        labels = owner.pod.metadata.labels
        selector = belonging if belonging is not None else of_view(view.label_selector)
        own = tuple(Requirement(key, "=", (labels[key],)) for key in view.match_label_keys if key in labels)
        self._selector = selector if selector.nothing else Selector((*selector.requirements, *own))
        self._owner = owner
        self._checks_affinity = view.node_affinity_policy != "Ignore"
        self._checks_taints = view.node_taints_policy == "Honor"
        self.key = view.topology_key
        self.max_skew = view.max_skew
        self.min_domains = view.min_domains or 1
        self.self_match = int(self.selects(owner))

    @property
    def honours_taints(self) -> bool:
        return self._checks_taints

    def selects(self, other: PodInfo) -> bool:
        """Is it a pod of the group?"""
        meta = other.pod.metadata
        return meta.namespace == self._owner.pod.metadata.namespace and self._selector.matches(meta.labels)

    def counts(self, other: PodInfo) -> bool:
        """Does it count in its domain? Not while it is ending, and nobody does where the selector is empty (upstream's rule)."""
        return not self._selector.is_empty and not other.pod.is_terminating and self.selects(other)

    def count_on(self, node: NodeInfo) -> int:
        """How many pods of the group are on the node."""
        return sum(1 for pod in node.pods.values() if self.counts(pod))

    def admits(self, node: Node) -> bool:
        """Does the node belong to the domains that are compared?"""
        pod = self._owner.pod
        if self._checks_affinity and not node_suits(pod, node):
            return False
        return not self._checks_taints or all(
            is_tolerated(taint, pod.spec.tolerations) for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")
        )


HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),
)


class PodTopologySpread(Plugin):
    name = "PodTopologySpread"
    weight = 2

    def __init__(self, lookup: Lookup, defaults: Sequence[TopologySpreadConstraint] | None = None) -> None:
        """``defaults``: for pods without constraints; None: upstream's."""
        self._lookup = lookup
        self._defaults = SYSTEM_DEFAULTS if defaults is None else defaults
        self._is_system = defaults is None

    def _constraints(self, info: PodInfo, when: str) -> list[Constraint]:
        views = info.pod.spec.topology_spread_constraints
        if views:
            return [Constraint(view, info) for view in views if view.when_unsatisfiable == when]
        wanted = [view for view in self._defaults if view.when_unsatisfiable == when]
        belonging = self._lookup.belonging(info.pod) if wanted else None
        if belonging is None or belonging.is_empty:
            return []
        return [Constraint(view, info, belonging) for view in wanted]

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        constraints = self._constraints(info, "DoNotSchedule")
        if not constraints:
            return None
        counts: Counter[Domain] = Counter()
        for node in snapshot.nodes:
            _count(constraints, node, counts)
        return Prepared(_Spread(constraints, counts))

    def pre_score(self, info: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Scorer | None:
        constraints = self._constraints(info, "ScheduleAnyway")
        if not constraints:
            return None
        needs_labels = bool(info.pod.spec.topology_spread_constraints) or not self._is_system
        return _Evenness(constraints, nodes, snapshot, needs_labels)

    def interests(self) -> Sequence[Interest]:
        return (
            *(Interest(ASSIGNED_POD, action, self._pod_matters) for action in (Action.ADD, Action.DELETE, Action.UPDATE_POD_LABEL)),
            Interest(TARGET_POD, Action.UPDATE_POD_LABEL, self._pod_matters),
            Interest(TARGET_POD, Action.UPDATE_POD_TOLERATION, self._tolerates_more),
            *(
                Interest(NODE, action, self._node_matters)
                for action in (Action.ADD, Action.DELETE, Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT)
            ),
        )

    def _pod_matters(self, waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        """Did a pod come into a group, or leave it?"""
        constraints = self._constraints(waiting, "DoNotSchedule")
        if old is None or new is None:
            return any(constraint.selects(pod) for constraint in constraints for pod in (old, new) if pod is not None)
        return any(constraint.selects(old) != constraint.selects(new) for constraint in constraints)

    def _tolerates_more(self, waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        return any(constraint.honours_taints for constraint in self._constraints(waiting, "DoNotSchedule"))

    def _node_matters(self, waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
        """Did a node come into a domain, or leave one, or become another one's?"""
        constraints = self._constraints(waiting, "DoNotSchedule")
        before, after = (node is not None and _has_keys(constraints, node) for node in (old, new))
        if before != after:
            return True
        if old is None or new is None or not after:
            return False
        moved = any(old.metadata.labels[each.key] != new.metadata.labels[each.key] for each in constraints)
        return moved or old.spec.taints != new.spec.taints


def _has_keys(constraints: Sequence[Constraint], node: Node) -> bool:
    return all(constraint.key in node.metadata.labels for constraint in constraints)


def _count(constraints: Sequence[Constraint], node: NodeInfo, counts: Counter[Domain]) -> None:
    """Add the node's domains, and its pods to them."""
    if node.node is None or not _has_keys(constraints, node.node):
        return
    for index, constraint in enumerate(constraints):
        if constraint.admits(node.node):
            counts[index, node.node.metadata.labels[constraint.key]] += constraint.count_on(node)


class _Spread(NodeFilter):
    UNEVEN = Status(Code.UNSCHEDULABLE, ("node(s) didn't match pod topology spread constraints",), PodTopologySpread.name)
    NO_LABEL = Status(
        Code.UNRESOLVABLE,
        ("node(s) didn't match pod topology spread constraints (missing required label)",),
        PodTopologySpread.name,
    )

    def __init__(self, constraints: list[Constraint], counts: Counter[Domain]) -> None:
        self._constraints = constraints
        self._counts = counts

    def check(self, node: NodeInfo) -> Status | None:
        assert node.node is not None, "a snapshot holds real nodes only"
        labels = node.node.metadata.labels
        for index, constraint in enumerate(self._constraints):
            value = labels.get(constraint.key)
            if value is None:
                return self.NO_LABEL
            skew = self._counts[index, value] + constraint.self_match - self._minimum(index)
            if skew > constraint.max_skew:
                return self.UNEVEN
        return None

    def _minimum(self, index: int) -> int:
        domains = [count for (constraint, _), count in self._counts.items() if constraint == index]
        if len(domains) < self._constraints[index].min_domains:
            return 0
        return min(domains, default=0)

    def with_pod(self, node: NodeInfo, added: PodInfo) -> None:
        self._change(node, added, 1)

    def without_pod(self, node: NodeInfo, removed: PodInfo) -> None:
        self._change(node, removed, -1)

    def _change(self, node: NodeInfo, pod: PodInfo, sign: int) -> None:
        if node.node is None or not _has_keys(self._constraints, node.node):
            return
        for index, constraint in enumerate(self._constraints):
            if constraint.counts(pod) and constraint.admits(node.node):
                self._counts[index, node.node.metadata.labels[constraint.key]] += sign

    def copy(self) -> "_Spread":
        return _Spread(self._constraints, self._counts.copy())


class _Evenness(Scorer):
    """The more pods of the group a node's domains have, the worse. Only nodes among which to choose make domains."""

    def __init__(self, constraints: list[Constraint], nodes: Sequence[NodeInfo], snapshot: Snapshot, needs_labels: bool) -> None:
        self._constraints = constraints
        self._needs_labels = needs_labels
        choice = [node for node in nodes if not self._ignored(node)]
        self._domains: list[dict[str, int]] = [
            {} if each.key == HOSTNAME else dict.fromkeys((_value(node, each) for node in choice), 0) for each in constraints
        ]
        """The pods in each domain of each constraint; hosts are counted when they are asked for."""
        self._weights = [
            log(2 + (len(choice) if each.key == HOSTNAME else len(domains)))
            for each, domains in zip(constraints, self._domains, strict=True)
        ]
        wide = [(each, domains) for each, domains in zip(constraints, self._domains, strict=True) if any(domains)]
        for node in snapshot.nodes if wide else ():
            if node.node is None or self._ignored(node):
                continue
            for each, domains in wide:
                value = _value(node, each)
                if value and value in domains and each.admits(node.node):
                    domains[value] += each.count_on(node)

    def _ignored(self, node: NodeInfo) -> bool:
        return node.node is None or (self._needs_labels and not _has_keys(self._constraints, node.node))

    def score(self, node: NodeInfo) -> int:
        if self._ignored(node):
            return 0
        total = 0.0
        for each, domains, weight in zip(self._constraints, self._domains, self._weights, strict=True):
            value = _value(node, each)
            if not value:
                continue
            count = each.count_on(node) if each.key == HOSTNAME else domains[value]
            total += count * weight + (each.max_skew - 1)
        return floor(total + 0.5)

    def normalised(self, nodes: Sequence[NodeInfo], scores: list[int]) -> list[int]:
        told = [score for node, score in zip(nodes, scores, strict=True) if not self._ignored(node)]
        lowest, highest = min(told, default=0), max(told, default=0)
        return [
            0 if self._ignored(node) else SCORE_MAX if highest == 0 else SCORE_MAX * (highest + lowest - score) // highest
            for node, score in zip(nodes, scores, strict=True)
        ]


def _value(node: NodeInfo, constraint: Constraint) -> str:
    """The node's domain; empty if it has none."""
    return node.node.metadata.labels.get(constraint.key, "") if node.node is not None else ""
