"""Does the pod fit into what the node has left, and where would it fit best (SC-62 to SC-64, SC-71 to SC-74, SC-90 to SC-93)?"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING

from elbowroom.api import resources
from elbowroom.api.objects import Node
from elbowroom.api.resources import Resources
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.clusterevents import ASSIGNED_POD, NODE, TARGET_POD, Action, shrank_of
from elbowroom.scheduler.figures import FIRST_RESOURCE, RESOURCES_MAX, TOO_MANY_PODS, UNRESOLVABLE, is_exact
from elbowroom.scheduler.framework import SCORE_MAX, Code, Interest, NodeFilter, Plugin, Prepared, Scorer, Status
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podinfo import PodInfo, is_deferred

if TYPE_CHECKING:
    from elbowroom.scheduler.columns import Column, Columns, Rows

_ORDER = {"cpu": 0, "memory": 1, "ephemeral-storage": 2}


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How NodeResourcesFit ranks nodes: ``LeastAllocated``, ``MostAllocated`` or ``RequestedToCapacityRatio``.

    ``shape`` belongs to the last: (utilisation 0..100, score 0..10), rising in utilisation.
    """

    kind: str = "LeastAllocated"
    weights: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})
    shape: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Ignored:
    """Extended resources, and groups of them (what stands before the ``/``), that some other scheduler looks after."""

    names: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def without(self, want: Resources) -> Resources:
        if not self.names and not self.groups:
            return want
        return {name: amount for name, amount in want.items() if not self._ignores(name)}

    def _ignores(self, name: str) -> bool:
        group, slash, _ = name.partition("/")
        is_extended = bool(slash) and not group.endswith("kubernetes.io")
        return is_extended and (name in self.names or group in self.groups)


class _Shapes:
    """Pods that ask for the same are the same to a node: one key each for what was found out about them (``NodeInfo.memo``)."""

    REMEMBERED_MAX = 1024

    def __init__(self) -> None:
        self._keys: dict[tuple[tuple[str, int], ...], object] = {}

    def key(self, *vectors: Resources) -> object:
        shape = tuple(each for vector in vectors for each in vector.items())
        found = self._keys.get(shape)
        if found is None:
            if len(self._keys) >= self.REMEMBERED_MAX:
                self._keys.clear()
            found = self._keys[shape] = object()
        return found


class Fit(Plugin):
    name = "NodeResourcesFit"
    weight = 1
    for_resizes = True

    def __init__(self, strategy: ScoringStrategy, *, aligned_with_kubelet: bool = False, ignored: Ignored | None = None) -> None:
        self._strategy = strategy
        self._ignored = ignored or Ignored()
        self._aligned = aligned_with_kubelet
        self._filtered, self._scored = _Shapes(), _Shapes()

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        if info.pod.spec.node_name and is_deferred(info.pod):
            return Prepared(_ResizeFits(info, self._aligned))
        want = self._ignored.without(info.want)
        return Prepared(_Fits(want, self._filtered.key(want)))

    def pre_score(self, info: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Scorer | None:
        key = self._scored.key(info.want, info.non_zero)
        match self._strategy.kind:
            case "MostAllocated":
                return _MostAllocated(info, self._strategy, key)
            case "RequestedToCapacityRatio":
                return _CapacityRatio(info, self._strategy, key)
            case _:
                return _LeastAllocated(info, self._strategy, key)

    def waits_for(self, info: PodInfo) -> Hashable | None:
        return tuple(sorted(info.want.items()))

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(ASSIGNED_POD, Action.DELETE, _pod_gone),
            Interest(ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, _pod_shrank),
            Interest(TARGET_POD, Action.UPDATE_POD_SCALE_DOWN),
            Interest(TARGET_POD, Action.UPDATE_POD_SCALE_UP, _own_resize_changed),
            Interest(NODE, Action.ADD, _node_came),
            Interest(NODE, Action.UPDATE_NODE_ALLOCATABLE, _node_grew),
        )


# ---------------------------------------------------------------- hints


def _elsewhere(waiting: PodInfo, node_name: str) -> bool:
    """An assigned pod waits for room on its own node alone (SC-28)."""
    return bool(waiting.pod.spec.node_name) and node_name != waiting.pod.spec.node_name


def _pod_gone(waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    return old is not None and not _elsewhere(waiting, old.pod.spec.node_name or old.pod.status.nominated_node_name)


def _pod_shrank(waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if old is None or new is None or _elsewhere(waiting, new.pod.spec.node_name):
        return False
    return shrank_of(waiting.want, old.requests, new.requests)


def _own_resize_changed(waiting: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    """Another desire is another question (SC-29); an unassigned pod that grew still does not fit (SC-17)."""
    return bool(waiting.pod.spec.node_name)


def _fits_empty(waiting: PodInfo, node: Node) -> bool:
    allocatable = resources.of(node.status.allocatable)
    return allocatable.get("pods", 0) >= 1 and not resources.lacking(waiting.want, allocatable)


def _node_came(waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
    return new is not None and not _elsewhere(waiting, new.name) and _fits_empty(waiting, new)


def _node_grew(waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
    if old is None or new is None or _elsewhere(waiting, new.name) or not _fits_empty(waiting, new):
        return False
    before, after = resources.of(old.status.allocatable), resources.of(new.status.allocatable)
    wanted = {**waiting.want, "pods": 1}
    return any(after.get(name, 0) > before.get(name, 0) for name, amount in wanted.items() if amount > 0)


# ---------------------------------------------------------------- filters


@lru_cache(maxsize=512)
def _refused(short: tuple[str, ...], resolvable: bool) -> Status:
    reasons = tuple(name if name == "Too many pods" else f"Insufficient {name}" for name in short)
    return Status(Code.UNSCHEDULABLE if resolvable else Code.UNRESOLVABLE, reasons, Fit.name)


def _ordered(want: Resources) -> list[tuple[str, int]]:
    return sorted(
        ((name, amount) for name, amount in want.items() if amount > 0), key=lambda each: (_ORDER.get(each[0], 3), each[0])
    )


class _Fits(NodeFilter):
    """SC-62: every resource that falls short is named; equality fits."""

    def __init__(self, want: Resources, key: object) -> None:
        self._want = _ordered(want)
        self.key = key
        self.has_twin = len(want) <= RESOURCES_MAX and is_exact(want.values())
        self._of_code: dict[int, Status] = {}

    def codes(self, columns: "Columns", rows: "Rows") -> "Column":
        return columns.shortfalls(rows, self._want)

    def refusal(self, node: NodeInfo, code: int) -> Status | None:
        if code < 0:
            return self.check(node)
        if code not in self._of_code:
            short = ["Too many pods"] if code >> TOO_MANY_PODS & 1 else []
            short += [name for bit, (name, _) in enumerate(self._want, FIRST_RESOURCE) if code >> bit & 1]
            self._of_code[code] = _refused(tuple(short), not code >> UNRESOLVABLE & 1)
        return self._of_code[code]

    def check(self, node: NodeInfo) -> Status | None:
        return self.beside(node, len(node.pods), node.requested)

    def beside(self, node: NodeInfo, pods: int, requested: Resources) -> Status | None:
        short: list[str] = []
        resolvable = True
        if pods + 1 > node.allowed_pods:
            short.append("Too many pods")
        allocatable = node.allocatable
        for name, amount in self._want:
            total = allocatable.get(name, 0)
            if amount > total - requested.get(name, 0):
                short.append(name)
                if amount > total:
                    resolvable = False
        return _refused(tuple(short), resolvable) if short else None


class _ResizeFits(NodeFilter):
    """SC-90: what the resize adds to what the pod counts with already, beside all others.

    The node's sum holds the desire as a rule, so the question is whether the whole node fits with every pending desire (SC-91).
    The slot check counts the pod although it is there already: upstream's quirk (SC-93). With ``aligned`` (profiles row 9) the
    others count as the kubelet counts them, max(allocated, actual).
    """

    def __init__(self, info: PodInfo, aligned: bool) -> None:
        self._info = info
        self._want = _ordered(info.want)
        self._aligned = aligned

    def check(self, node: NodeInfo) -> Status | None:
        own = node.pods.get(self._info.uid)
        have = own.requests if own is not None else {}
        requested = self._requested(node)
        short: list[str] = []
        resolvable = True
        if len(node.pods) + 1 > node.allowed_pods:
            short.append("Too many pods")
        for name, amount in self._want:
            total = node.allocatable.get(name, 0)
            if max(0, amount - have.get(name, 0)) > total - requested.get(name, 0):
                short.append(name)
            if amount > total:
                resolvable = False
        return _refused(tuple(short), resolvable) if short else None

    def _requested(self, node: NodeInfo) -> Resources:
        if not self._aligned:
            return node.requested
        return resources.add(*(info.requests if info.uid == self._info.uid else info.held() for info in node.pods.values()))


# ---------------------------------------------------------------- scores


class _Remembering(Scorer):
    """Scores a node once for all pods that ask for the same, until it changes."""

    def __init__(self, key: object) -> None:
        self._key = key

    def score(self, node: NodeInfo) -> int:
        memo = node.memo
        found: int | None = memo.get(self._key)
        if found is None:
            found = memo[self._key] = self._score(node)
        return found

    def scores(self, nodes: Sequence[NodeInfo]) -> list[int]:
        key, score = self._key, self.score
        return [memo[key] if key in (memo := node.memo) else score(node) for node in nodes]

    def column(self, nodes: Sequence[NodeInfo], columns: "Columns", rows: "Rows") -> "Column | None":
        if not self._is_exact():
            return None
        scores = self._column(columns, rows)
        exact = columns.exact[rows]
        if not exact.all():
            for index in (~exact).nonzero()[0].tolist():
                scores[index] = self._score(nodes[index])
        return scores

    def _score(self, node: NodeInfo) -> int:
        raise NotImplementedError

    def _column(self, columns: "Columns", rows: "Rows") -> "Column":
        """The twin of ``_score`` for nodes whose figures are exact."""
        raise NotImplementedError

    def _is_exact(self) -> bool:
        """Are the pod's own figures?"""
        raise NotImplementedError


class _Allocation(_Remembering):
    """What would be requested of each weighted resource, and what there is."""

    def __init__(self, info: PodInfo, strategy: ScoringStrategy, key: object) -> None:
        super().__init__(key)
        self._strategy = strategy
        self._want = info.want
        # A scalar counts only if the pod asks for it; cpu and memory by the tally that gives a missing request a size (SC-51).
        self._resources = [
            (name, weight, info.non_zero.get(name, 0))
            for name, weight in strategy.weights.items()
            if name in ("cpu", "memory") or info.want.get(name, 0) > 0
        ]

    def _is_exact(self) -> bool:
        return is_exact(wanted for _, _, wanted in self._resources)

    def _each(self, node: NodeInfo) -> list[tuple[int, int, int]]:
        """(weight, requested, capacity) of each resource that the node has."""
        found = []
        for name, weight, wanted in self._resources:
            capacity = node.allocatable.get(name, 0)
            if capacity > 0:
                found.append((weight, node.non_zero.get(name, 0) + wanted, capacity))
        return found


class _LeastAllocated(_Allocation):
    def _score(self, node: NodeInfo) -> int:
        total = weights = 0
        for weight, requested, capacity in self._each(node):
            weights += weight
            if requested <= capacity:
                total += weight * ((capacity - requested) * SCORE_MAX // capacity)
        return total // weights if weights else 0

    def _column(self, columns: "Columns", rows: "Rows") -> "Column":
        return columns.least_allocated(rows, self._resources)


class _MostAllocated(_Allocation):
    def _score(self, node: NodeInfo) -> int:
        total = weights = 0
        for weight, requested, capacity in self._each(node):
            weights += weight
            total += weight * (min(requested, capacity) * SCORE_MAX // capacity)
        return total // weights if weights else 0

    def _column(self, columns: "Columns", rows: "Rows") -> "Column":
        return columns.most_allocated(rows, self._resources)


class _CapacityRatio(_Allocation):
    def _score(self, node: NodeInfo) -> int:
        total = weights = 0
        for name, weight, wanted in self._resources:
            capacity = node.allocatable.get(name, 0)
            requested = node.non_zero.get(name, 0) + wanted
            utilisation = 100 if capacity <= 0 or requested > capacity else requested * 100 // capacity
            score = _on_shape(self._strategy.shape, utilisation)
            if score > 0:
                total += weight * score
                weights += weight
        return (2 * total + weights) // (2 * weights) if weights else 0

    def _column(self, columns: "Columns", rows: "Rows") -> "Column":
        of_percent = [_on_shape(self._strategy.shape, utilisation) for utilisation in range(101)]
        return columns.capacity_ratio(rows, self._resources, of_percent)


def _on_shape(shape: Sequence[tuple[int, int]], utilisation: int) -> int:
    """The score (0..100) of a utilisation, piecewise linear; integer division truncates towards zero as upstream's does."""
    points = [(at, 10 * score) for at, score in shape]
    for index, (at, score) in enumerate(points):
        if utilisation <= at:
            if index == 0:
                return score
            before, start = points[index - 1]
            return start + int((score - start) * (utilisation - before) / (at - before))
    return points[-1][1] if points else 0


class BalancedAllocation(Plugin):
    """Prefers nodes where the pod evens out the use of resources (SC-74), by true requests."""

    name = "NodeResourcesBalancedAllocation"
    weight = 1

    def __init__(self, names: Sequence[str] = ("cpu", "memory")) -> None:
        self._names = names
        self._scored = _Shapes()

    def pre_score(self, info: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Scorer | None:
        if not any(info.want.get(name, 0) > 0 for name in self._names):
            return None
        # A scalar counts only if the pod asks for it.
        names = [name for name in self._names if name in _ORDER or info.want.get(name, 0) > 0]
        return _Balance(names, info.want, self._scored.key(info.want))


class _Balance(_Remembering):
    def __init__(self, names: Sequence[str], want: Resources, key: object) -> None:
        super().__init__(key)
        self._want = [(name, want.get(name, 0)) for name in names]

    def _score(self, node: NodeInfo) -> int:
        after: list[float] = []
        before: list[float] = []
        for name, wanted in self._want:
            capacity = node.allocatable.get(name, 0)
            if capacity > 0:
                used = node.requested.get(name, 0)
                before.append(min(1.0, used / capacity))
                after.append(min(1.0, (used + wanted) / capacity))
        return 50 + (50 + _balance(after) - _balance(before)) // 2

    def _column(self, columns: "Columns", rows: "Rows") -> "Column":
        return columns.balanced(rows, self._want)

    def _is_exact(self) -> bool:
        return is_exact(wanted for _, wanted in self._want)


def _balance(fractions: Sequence[float]) -> int:
    if len(fractions) == 2:
        deviation = abs(fractions[0] - fractions[1]) / 2
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        deviation = sqrt(sum((fraction - mean) ** 2 for fraction in fractions) / len(fractions))
    else:
        deviation = 0.0
    return int((1 - deviation) * SCORE_MAX)
