"""Pods that want to be near others, or apart from them (SC-69, SC-77)."""

from collections import Counter
from collections.abc import Mapping, Sequence

from elbowroom.api import selectors
from elbowroom.api.objects import Node, PodAffinityTerm
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.clusterevents import ASSIGNED_POD, NODE, TARGET_POD, Action
from elbowroom.scheduler.framework import SCORE_MAX, Code, Interest, NodeFilter, Plugin, Prepared, Scorer, Status
from elbowroom.scheduler.lookup import Lookup
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podinfo import PodInfo

Domain = tuple[str, str]
"""A topology key and a node's value of it."""


class Term:
    """An affinity term of one pod, ready to be held against other pods."""

    __slots__ = ("_all_namespaces", "_namespace_selector", "_namespaces", "_selector", "topology_key")

    def __init__(self, term: PodAffinityTerm, owner: PodInfo) -> None:
        self.topology_key = term.topology_key
        self._selector = selectors.of_view(term.label_selector)
        unlimited = term.namespace_selector is not None and not (
            term.namespace_selector.match_labels or term.namespace_selector.match_expressions
        )
        self._all_namespaces = unlimited
        self._namespace_selector = selectors.of_view(term.namespace_selector)
        own = () if term.namespaces or term.namespace_selector is not None else (owner.pod.metadata.namespace,)
        self._namespaces = frozenset((*term.namespaces, *own))

    def matches(self, other: PodInfo, lookup: Lookup) -> bool:
        meta = other.pod.metadata
        if not self._selector.matches(meta.labels):
            return False
        if self._all_namespaces or meta.namespace in self._namespaces:
            return True
        return not self._namespace_selector.nothing and self._namespace_selector.matches(lookup.namespace_labels(meta.namespace))


def _labels(node: NodeInfo) -> Mapping[str, str]:
    return node.node.metadata.labels if node.node is not None else {}


class InterPodAffinity(Plugin):
    name = "InterPodAffinity"
    weight = 2

    def __init__(self, lookup: Lookup, hard_weight: int = 1, ignores_wishes: bool = False) -> None:
        """``hard_weight``: of a required affinity of pods that are there. ``ignores_wishes``: those of pods that are there mean
        nothing to a pod that has none."""
        self._lookup = lookup
        self._hard_weight = hard_weight
        self._ignores_wishes = ignores_wishes

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        judge = _Affinity(info, self._lookup)
        for node in snapshot.with_anti_affinity:
            for other in node.with_anti_affinity.values():
                judge.count_theirs(node, other, 1)
        if info.affinity_terms or info.anti_affinity_terms:
            for node in snapshot.nodes:
                for other in node.pods.values():
                    judge.count_mine(node, other, 1)
        return Prepared(judge) if judge.has_work else None

    def pre_score(self, info: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Scorer | None:
        wishes = info.preferred_affinity or info.preferred_anti_affinity
        with_pods = snapshot.nodes if wishes else snapshot.with_affinity
        if not with_pods or (self._ignores_wishes and not wishes):
            return None
        weights: Counter[Domain] = Counter()
        mine = [(Term(each.pod_affinity_term, info), each.weight) for each in info.preferred_affinity]
        mine += [(Term(each.pod_affinity_term, info), -each.weight) for each in info.preferred_anti_affinity]
        for node in with_pods:
            labels = _labels(node)
            for other in (node.pods if wishes else node.with_affinity).values():
                theirs = [(Term(term, other), self._hard_weight) for term in other.affinity_terms if self._hard_weight]
                theirs += [(Term(each.pod_affinity_term, other), each.weight) for each in other.preferred_affinity]
                theirs += [(Term(each.pod_affinity_term, other), -each.weight) for each in other.preferred_anti_affinity]
                matched = [each for each in mine if each[0].matches(other, self._lookup)]
                matched += [each for each in theirs if each[0].matches(info, self._lookup)]
                for term, weight in matched:
                    if term.topology_key in labels:
                        weights[term.topology_key, labels[term.topology_key]] += weight
        return _Nearness(weights) if weights else None

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(ASSIGNED_POD, Action.ADD, self._pod_matters),
            Interest(ASSIGNED_POD, Action.UPDATE_POD_LABEL, self._pod_matters),
            Interest(ASSIGNED_POD, Action.DELETE, self._pod_matters),
            Interest(TARGET_POD, Action.UPDATE_POD_LABEL),
            Interest(NODE, Action.ADD, self._node_matters),
            Interest(NODE, Action.UPDATE_NODE_LABEL, self._node_matters),
        )

    def _pod_matters(self, waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        """Did a friend come, or an enemy go?

        Upstream takes for an enemy only who offends against all terms of anti-affinity, so that a pod may wait for the flush; one
        term is enough here, as it is in the filter.
        """
        near = [Term(term, waiting) for term in waiting.affinity_terms]
        is_friend = new is not None and bool(near) and all(term.matches(new, self._lookup) for term in near)
        if old is None:
            return is_friend
        if new is not None and is_friend and not all(term.matches(old, self._lookup) for term in near):
            return True
        apart = [Term(term, waiting) for term in waiting.anti_affinity_terms]
        if any(term.matches(old, self._lookup) and (new is None or not term.matches(new, self._lookup)) for term in apart):
            return True
        return new is None and any(Term(term, old).matches(waiting, self._lookup) for term in old.anti_affinity_terms)

    def _node_matters(self, waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
        """Did a domain come that friends may be in, or a node leave one that enemies are in?"""
        if new is None:
            return False
        near = [term.topology_key for term in waiting.affinity_terms]
        apart = [term.topology_key for term in waiting.anti_affinity_terms]
        labels = new.metadata.labels
        if not near and not apart:
            return True  # another pod's anti-affinity keeps it out: any node or label may be what it needs
        if old is None:
            return bool(apart) or any(key in labels for key in near)
        before = old.metadata.labels
        return any(key in labels and before.get(key) != labels[key] for key in near) or any(
            key in before and before[key] != labels.get(key) for key in apart
        )


class _Affinity(NodeFilter):
    """Counts, for each domain, the pods that satisfy or forbid."""

    NOT_NEAR = Status(Code.UNRESOLVABLE, ("node(s) didn't match pod affinity rules",), InterPodAffinity.name)
    NOT_APART = Status(Code.UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",), InterPodAffinity.name)
    FORBIDDEN = Status(Code.UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",), InterPodAffinity.name)

    def __init__(self, info: PodInfo, lookup: Lookup) -> None:
        self._info = info
        self._lookup = lookup
        self._near = [Term(term, info) for term in info.affinity_terms]
        self._apart = [Term(term, info) for term in info.anti_affinity_terms]
        self._own_group = bool(self._near) and all(term.matches(info, lookup) for term in self._near)
        self._near_count: Counter[Domain] = Counter()
        self._apart_count: Counter[Domain] = Counter()
        self._forbidden_count: Counter[Domain] = Counter()

    @property
    def has_work(self) -> bool:
        return bool(self._near or self._apart or self._forbidden_count)

    def count_theirs(self, node: NodeInfo, other: PodInfo, sign: int) -> None:
        """Required anti-affinity of a pod that is there, if it means the incoming pod."""
        labels = _labels(node)
        for view in other.anti_affinity_terms:
            if view.topology_key in labels and Term(view, other).matches(self._info, self._lookup):
                self._forbidden_count[view.topology_key, labels[view.topology_key]] += sign

    def count_mine(self, node: NodeInfo, other: PodInfo, sign: int) -> None:
        """A pod that is there, if the incoming pod's terms mean it; for affinity it must match all of them."""
        labels = _labels(node)
        if self._near and all(term.matches(other, self._lookup) for term in self._near):
            for term in self._near:
                if term.topology_key in labels:
                    self._near_count[term.topology_key, labels[term.topology_key]] += sign
        for term in self._apart:
            if term.topology_key in labels and term.matches(other, self._lookup):
                self._apart_count[term.topology_key, labels[term.topology_key]] += sign

    def check(self, node: NodeInfo) -> Status | None:
        labels = _labels(node)
        if self._near and not self._is_near(labels):
            return self.NOT_NEAR
        for term in self._apart:
            key = term.topology_key
            if key in labels and self._apart_count[key, labels[key]] > 0:
                return self.NOT_APART
        if any(count > 0 and labels.get(key) == value for (key, value), count in self._forbidden_count.items()):
            return self.FORBIDDEN
        return None

    def _is_near(self, labels: Mapping[str, str]) -> bool:
        if any(term.topology_key not in labels for term in self._near):
            return False
        if all(self._near_count[term.topology_key, labels[term.topology_key]] > 0 for term in self._near):
            return True
        # The first of a group that wants to be near itself may go anywhere.
        return self._own_group and not any(count > 0 for count in self._near_count.values())

    def with_pod(self, node: NodeInfo, added: PodInfo) -> None:
        self.count_theirs(node, added, 1)
        self.count_mine(node, added, 1)

    def without_pod(self, node: NodeInfo, removed: PodInfo) -> None:
        self.count_theirs(node, removed, -1)
        self.count_mine(node, removed, -1)

    def copy(self) -> "_Affinity":
        twin = _Affinity(self._info, self._lookup)
        twin._near_count = self._near_count.copy()
        twin._apart_count = self._apart_count.copy()
        twin._forbidden_count = self._forbidden_count.copy()
        return twin


class _Nearness(Scorer):
    def __init__(self, weights: Counter[Domain]) -> None:
        self._weights = weights

    def score(self, node: NodeInfo) -> int:
        labels = _labels(node)
        return sum(weight for (key, value), weight in self._weights.items() if labels.get(key) == value)

    def normalised(self, nodes: Sequence[NodeInfo], scores: list[int]) -> list[int]:
        lowest, highest = min(scores), max(scores)
        if lowest == highest:
            return [0] * len(scores)
        return [int(SCORE_MAX * ((score - lowest) / (highest - lowest))) for score in scores]
