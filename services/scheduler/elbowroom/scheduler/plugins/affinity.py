"""Node affinity and nodeSelector (SC-68, SC-76)."""

import re
from collections.abc import Mapping, Sequence

from elbowroom.api.objects import Node, NodeSelectorTerm, Pod, PreferredSchedulingTerm, SelectorRequirement
from elbowroom.api.objects import NodeAffinity as Affinity
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.clusterevents import NODE, Action
from elbowroom.scheduler.framework import Code, Interest, NodeFilter, Plugin, Prepared, Scorer, Status, normalised
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podinfo import PodInfo

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def matches(requirement: SelectorRequirement, values: Mapping[str, str]) -> bool:
    """Does one expression hold of labels or fields?"""
    held = values.get(requirement.key)
    match requirement.operator:
        case "In":
            return held is not None and held in requirement.values
        case "NotIn":
            return held is None or held not in requirement.values
        case "Exists":
            return held is not None
        case "DoesNotExist":
            return held is None
        case "Gt" | "Lt":
            wanted = requirement.values[0] if len(requirement.values) == 1 else ""
            if held is None or not _INTEGER.fullmatch(held) or not _INTEGER.fullmatch(wanted):
                return False
            return int(held) > int(wanted) if requirement.operator == "Gt" else int(held) < int(wanted)
        case _:
            return False


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """All expressions of a term hold; a term without any matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(matches(each, node.metadata.labels) for each in term.match_expressions) and all(
        matches(each, {"metadata.name": node.name}) for each in term.match_fields
    )


def required_terms(pod: Pod) -> list[NodeSelectorTerm] | None:
    """The terms of which one must match; None where there is no such condition."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity.required.node_selector_terms if affinity and affinity.required else None


def node_suits(pod: Pod, node: Node) -> bool:
    """Do nodeSelector and required node affinity accept the node?"""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    terms = required_terms(pod)
    return terms is None or any(term_matches(term, node) for term in terms)


class NodeAffinity(Plugin):
    name = "NodeAffinity"
    weight = 2
    CONFLICT = Status(Code.UNRESOLVABLE, ("pod affinity terms conflict",), name)

    def __init__(self, added: Affinity | None = None) -> None:
        """``added``: what the scheduler's configuration asks of every pod's node, on top of what the pod does."""
        self._enforced = added.required.node_selector_terms if added is not None and added.required is not None else None
        self._preferred = added.preferred if added is not None else []

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        terms = required_terms(info.pod)
        if not info.pod.spec.node_selector and terms is None and self._enforced is None:
            return None
        named = _named(terms)
        if named is not None and not named:
            return Prepared(refusal=self.CONFLICT)
        return Prepared(_Suits(info.pod, self._enforced), named)

    def pre_score(self, info: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Scorer | None:
        affinity = info.pod.spec.affinity.node_affinity if info.pod.spec.affinity else None
        wishes = [*(affinity.preferred if affinity else ()), *self._preferred]
        return _Preferred(wishes) if wishes else None

    def interests(self) -> Sequence[Interest]:
        return tuple(Interest(NODE, action, self._became_suitable) for action in (Action.ADD, Action.UPDATE_NODE_LABEL))

    def _became_suitable(self, waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
        if new is None or not enforced_by(self._enforced, new) or not node_suits(waiting.pod, new):
            return False
        return old is None or not enforced_by(self._enforced, old) or not node_suits(waiting.pod, old)


def enforced_by(terms: Sequence[NodeSelectorTerm] | None, node: Node) -> bool:
    """Does the node match one of the terms, if there are any?"""
    return terms is None or any(term_matches(term, node) for term in terms)


def _named(terms: list[NodeSelectorTerm] | None) -> frozenset[str] | None:
    """The only nodes that can match, where every term gives their names."""
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        given = [set(each.values) for each in term.match_fields if each.key == "metadata.name" and each.operator == "In"]
        if not given:
            return None
        names |= set.intersection(*given)
    return frozenset(names)


class _Suits(NodeFilter):
    REFUSED = Status(Code.UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",), NodeAffinity.name)
    ENFORCED = Status(Code.UNRESOLVABLE, ("node(s) didn't match scheduler-enforced node affinity",), NodeAffinity.name)

    def __init__(self, pod: Pod, enforced: Sequence[NodeSelectorTerm] | None) -> None:
        self._pod = pod
        self._enforced = enforced

    def check(self, node: NodeInfo) -> Status | None:
        assert node.node is not None, "a snapshot holds real nodes only"
        if not enforced_by(self._enforced, node.node):
            return self.ENFORCED
        return None if node_suits(self._pod, node.node) else self.REFUSED


class _Preferred(Scorer):
    def __init__(self, terms: list[PreferredSchedulingTerm]) -> None:
        self._terms = terms

    def score(self, node: NodeInfo) -> int:
        assert node.node is not None, "a snapshot holds real nodes only"
        return sum(each.weight for each in self._terms if term_matches(each.preference, node.node))

    def normalised(self, nodes: Sequence[NodeInfo], scores: list[int]) -> list[int]:
        return normalised(scores)
