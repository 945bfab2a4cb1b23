"""Spreads pods over domains such as zones and hosts (SC-70, SC-78).

Left out: the default constraints that upstream gives to pods of Services and ReplicaSets.
"""

from collections import Counter
from collections.abc import Sequence
from math import log

from elbowroom.api.objects import Node, TopologySpreadConstraint
from elbowroom.api.selectors import Requirement, Selector, of_view
from elbowroom.scheduler.cache import NodeInfo, Snapshot
from elbowroom.scheduler.clusterevents import ASSIGNED_POD, NODE, TARGET_POD, Action
from elbowroom.scheduler.framework import SCORE_MAX, Code, Interest, NodeFilter, Plugin, Prepared, Scorer, Status
from elbowroom.scheduler.plugins.affinity import node_suits
from elbowroom.scheduler.plugins.nodes import is_tolerated
from elbowroom.scheduler.podinfo import PodInfo

Domain = tuple[int, str]
"""The number of a constraint and a node's value of its key: constraints may share a key and not a selector."""


class Constraint:
    """One topology spread constraint of a pod."""

    __slots__ = ("_checks_affinity", "_checks_taints", "_owner", "_selector", "key", "max_skew", "min_domains", "self_match")

    def __init__(self, view: TopologySpreadConstraint, owner: PodInfo) -> None:
        labels = owner.pod.metadata.labels
        selector = of_view(view.label_selector)
        own = tuple(Requirement(key, "=", (labels[key],)) for key in view.match_label_keys if key in labels)
        self._selector = selector if selector.nothing else Selector((*selector.requirements, *own))
        self._owner = owner
        self._checks_affinity = view.node_affinity_policy != "Ignore"
        self._checks_taints = view.node_taints_policy == "Honor"
        self.key = view.topology_key
        self.max_skew = view.max_skew
        self.min_domains = view.min_domains or 1
        self.self_match = int(self.counts(owner))

    def selects(self, other: PodInfo) -> bool:
        """Is it a pod of the group?"""
        meta = other.pod.metadata
        return meta.namespace == self._owner.pod.metadata.namespace and self._selector.matches(meta.labels)

    def counts(self, other: PodInfo) -> bool:
        """Does it count in its domain? One that is ending does no longer."""
        return not other.pod.is_terminating and self.selects(other)

    def admits(self, node: Node) -> bool:
        """Does the node belong to the domains that are compared?"""
        pod = self._owner.pod
        if self._checks_affinity and not node_suits(pod, node):
            return False
        return not self._checks_taints or all(
            is_tolerated(taint, pod.spec.tolerations) for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")
        )


def _constraints(info: PodInfo, when: str) -> list[Constraint]:
    views = info.pod.spec.topology_spread_constraints
    return [Constraint(view, info) for view in views if view.when_unsatisfiable == when]


class PodTopologySpread(Plugin):
    name = "PodTopologySpread"
    weight = 2

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        constraints = _constraints(info, "DoNotSchedule")
        if not constraints:
            return None
        counts: Counter[Domain] = Counter()
        for node in snapshot.nodes:
            _count(constraints, node, counts)
        return Prepared(_Spread(constraints, counts))

    def pre_score(self, info: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Scorer | None:
        constraints = _constraints(info, "ScheduleAnyway")
        if not constraints:
            return None
        counts: Counter[Domain] = Counter()
        for node in snapshot.nodes:
            _count(constraints, node, counts)
        return _Evenness(constraints, counts, nodes)

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(ASSIGNED_POD, Action.ADD, _pod_matters),
            Interest(ASSIGNED_POD, Action.DELETE, _pod_matters),
            Interest(ASSIGNED_POD, Action.UPDATE_POD_LABEL, _pod_matters),
            Interest(TARGET_POD, Action.UPDATE_POD_LABEL),
            Interest(NODE, Action.ADD, _node_matters),
            Interest(NODE, Action.DELETE, _node_matters),
            Interest(NODE, Action.UPDATE_NODE_LABEL, _node_matters),
            Interest(NODE, Action.UPDATE_NODE_TAINT),
        )


def _has_keys(constraints: Sequence[Constraint], node: Node) -> bool:
    return all(constraint.key in node.metadata.labels for constraint in constraints)


def _count(constraints: Sequence[Constraint], node: NodeInfo, counts: Counter[Domain]) -> None:
    """Add the node's domains, and its pods to them."""
    if node.node is None or not _has_keys(constraints, node.node):
        return
    for index, constraint in enumerate(constraints):
        if constraint.admits(node.node):
            counts[index, node.node.metadata.labels[constraint.key]] += sum(
                1 for pod in node.pods.values() if constraint.counts(pod)
            )


def _pod_matters(waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    constraints = _constraints(waiting, "DoNotSchedule")
    return any(constraint.selects(pod) for constraint in constraints for pod in (old, new) if pod is not None)


def _node_matters(waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
    constraints = _constraints(waiting, "DoNotSchedule")
    return any(_has_keys(constraints, node) for node in (old, new) if node is not None)


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
    def __init__(self, constraints: list[Constraint], counts: Counter[Domain], nodes: Sequence[NodeInfo]) -> None:
        self._constraints = constraints
        self._counts = counts
        sizes: dict[int, dict[str, None]] = {index: {} for index in range(len(constraints))}
        for node in nodes:
            if node.node is not None and _has_keys(constraints, node.node):
                for index, constraint in enumerate(constraints):
                    sizes[index][node.node.metadata.labels[constraint.key]] = None
        self._weights = [log(len(sizes[index]) + 2) for index in range(len(constraints))]

    def _ignored(self, node: NodeInfo) -> bool:
        return node.node is None or not _has_keys(self._constraints, node.node)

    def score(self, node: NodeInfo) -> int:
        if self._ignored(node):
            return 0
        assert node.node is not None
        total = 0.0
        for index, constraint in enumerate(self._constraints):
            count = self._counts[index, node.node.metadata.labels[constraint.key]]
            total += count * self._weights[index] + (constraint.max_skew - 1)
        return round(total)

    def normalised(self, nodes: Sequence[NodeInfo], scores: list[int]) -> list[int]:
        told = [score for node, score in zip(nodes, scores, strict=True) if not self._ignored(node)]
        lowest, highest = min(told, default=0), max(told, default=0)
        return [
            0 if self._ignored(node) else SCORE_MAX if highest == 0 else SCORE_MAX * (highest + lowest - score) // highest
            for node, score in zip(nodes, scores, strict=True)
        ]
