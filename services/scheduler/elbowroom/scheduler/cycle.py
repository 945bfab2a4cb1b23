"""One attempt to place a pod, or to see whether a resize fits: from the snapshot to a decision (SC-54 to SC-58, SC-84 to SC-99).

A decision is a value; ``elbowroom.scheduler.machine`` carries it out.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.config import POINTS_OF
from elbowroom.scheduler.diagnosis import NO_NODES, Diagnosis, not_satisfied, refused_at
from elbowroom.scheduler.framework import Filters, Framework, NodeFilter, Scorer, prepare_filters
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podinfo import PodInfo, is_deferred
from elbowroom.scheduler.preemption import NoPlan, Plan, World, preempt
from elbowroom.scheduler.rehearsal import check_with_nominated
from elbowroom.scheduler.status import Code, Status, Wait

if TYPE_CHECKING:
    from elbowroom.scheduler.columns import Column

TWIN_FROM_NODES = 100
"""From here on the resources' vectorised twin is faster than asking node by node, for a pod unlike the one before."""
TWIN_ALWAYS_FROM_NODES = 2000
"""Up to here what the nodes remember of the last pod is faster, if this one asks for the same and nobody is nominated; beyond, it
is too scattered."""
MIN_FEASIBLE_NODES = 100
MIN_FEASIBLE_PERCENT = 5
NO_CLAIMS = "no new claims to deallocate"
"""What upstream's DynamicResources says of a pod without claims before preemption has its say."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Bind the pod to that node, once those have let it go for whom it must wait. ``was_scored``: it was the best of several."""

    node: str
    was_scored: bool = False
    waits: tuple[Wait, ...] = ()


@dataclass(frozen=True, slots=True)
class NotPermitted:
    """The chosen node was refused at the last."""

    status: Status
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class Parked:
    """A resize fits; its kubelet will carry it out, we only wait."""

    status: Status


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """No node would do. ``preemption`` says what is done about it."""

    diagnosis: Diagnosis
    preemption: Plan | NoPlan

    @property
    def message(self) -> str:
        if isinstance(self.preemption, Plan):
            return self.diagnosis.message()
        said = self.preemption.message
        return self.diagnosis.message(f"{NO_CLAIMS}, {said}" if said else NO_CLAIMS)


@dataclass(frozen=True, slots=True)
class NoNodes:
    """There is no node at all (SC-56)."""

    message: str = NO_NODES


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt itself went wrong; it is made again by the clock."""

    message: str


Decision = Placed | NotPermitted | Parked | Unschedulable | NoNodes | Failed
Evaluated = Callable[[str, str, str, int], None]
"""Told which plugin was asked at which extension point, with which answer, and how often."""
_PREPARING = frozenset(name for name, points in POINTS_OF.items() if "preFilter" in points)


class Cycle:
    """Makes the attempts. It remembers only where the last one stopped looking at nodes, and what it asked of them."""

    def __init__(
        self,
        framework: Framework,
        rng: random.Random,
        evaluated: Evaluated | None = None,
    ) -> None:
        self._framework = framework
        self._evaluated = evaluated or (lambda plugin, extension_point, status, count: None)
        self._rng = rng
        self._next_start = 0
        self._question: object = None
        """What the last pod asked of a node (``Filters.question``)."""

    def attempt(self, info: PodInfo, world: World) -> Decision:
        """Decide about one pod. The snapshot of ``world`` is not changed."""
        snapshot = world.snapshot
        if not snapshot.nodes:
            return NoNodes()
        is_resize = bool(info.pod.spec.node_name) and is_deferred(info.pod)
        filters = prepare_filters(self._framework.filters, info, snapshot, is_resize)
        diagnosis = Diagnosis(len(snapshot.nodes))
        if filters.refusal is not None:
            diagnosis.absent, diagnosis.at_once = filters.refusal, True
        elif filters.nodes is not None:
            diagnosis.absent = not_satisfied(filters.restricted_by)
        feasible = self._feasible(info, filters, world, diagnosis) if filters.refusal is None else []
        self._tell_filters(filters, len(feasible), diagnosis)
        failed = next((status for status, _ in diagnosis.refusals.counted() if status.code is Code.ERROR), None)
        if failed is not None:
            return Failed(f"running {failed.plugin!r} filter plugin: {failed.message}")
        if not feasible:
            if not self._framework.preempts:
                return Unschedulable(diagnosis, NoPlan("", clears_nomination=False, was_tried=False))
            return Unschedulable(diagnosis, preempt(info, diagnosis, filters, world, self._rng, self._framework.candidates))
        node = feasible[0] if len(feasible) == 1 else self._best(info, feasible, snapshot)
        waits: list[Wait] = []
        for plugin in self._framework.permits:
            said = plugin.permit(info, node)
            if isinstance(said, Wait):
                waits.append(said)
            elif said is not None and is_resize:
                return Parked(said)
            elif said is not None and said.code is Code.ERROR:
                return Failed(f'running Permit plugin "{plugin.name}": {said.message}')
            elif said is not None:
                return NotPermitted(said, refused_at(node.name, said))
        return Placed(node.name, len(feasible) > 1, tuple(waits))

    def _tell_filters(self, filters: Filters, feasible: int, diagnosis: Diagnosis) -> None:
        """How often each filter was asked: on each node those up to the one that refused it."""
        refused = Counter[str]()
        first: dict[str, Status] = {}
        """Its first refusal stands for all of a plugin's: there may be thousands."""
        for status, count in diagnosis.refusals.counted():
            refused[status.plugin] += count
            first.setdefault(status.plugin, status)
        left = feasible + len(diagnosis.refusals)
        if filters.refusal is not None:
            self._evaluated(filters.refusal.plugin, "PreFilter", filters.refusal.code.value, 1)
        for name in filters.plugins:
            if name in _PREPARING:
                self._evaluated(name, "PreFilter", "Success", 1)
            if name in refused:
                self._evaluated(name, "Filter", first[name].code.value, refused[name])
                left -= refused[name]
            if left:
                self._evaluated(name, "Filter", "Success", left)

    def _feasible(self, info: PodInfo, filters: Filters, world: World, diagnosis: Diagnosis) -> Sequence[NodeInfo]:
        snapshot, nominator = world.snapshot, world.nominator
        promised = info.pod.status.nominated_node_name or nominator.node_of(info.uid)
        if promised and (filters.nodes is None or promised in filters.nodes):
            node = snapshot.get(promised)
            if node is not None and check_with_nominated(info, node, filters, nominator.on(promised)) is None:
                return [node]
        if filters.nodes is not None:
            return self._passing(
                info, [n for name in sorted(filters.nodes) if (n := snapshot.get(name))], filters, world, diagnosis
            )
        total = len(snapshot.nodes)
        start = self._next_start % total
        enough = feasible_to_find(total, self._framework.percentage)
        asked_before, self._question = filters.question == self._question, filters.question
        remembered = asked_before and self._question is not None and not nominator
        is_large = total >= (TWIN_ALWAYS_FROM_NODES if remembered else TWIN_FROM_NODES)
        if is_large and (parts := filters.parts()) is not None:
            found: Sequence[NodeInfo] = _swept(info, filters, parts, world, start, enough, diagnosis)
        else:
            order = snapshot.nodes[start:] + snapshot.nodes[:start] if start else snapshot.nodes
            found = self._passing(info, order, filters, world, diagnosis, enough)
        self._next_start = (start + len(found) + len(diagnosis.refusals)) % total
        return found

    @staticmethod
    def _passing(
        info: PodInfo, nodes: Sequence[NodeInfo], filters: Filters, world: World, diagnosis: Diagnosis, enough: int = 0
    ) -> list[NodeInfo]:
        nominator, refusals = world.nominator, diagnosis.refusals.by_node
        if not nominator:
            return filters.passing(nodes, enough, refusals)
        found: list[NodeInfo] = []
        for node in nodes:
            promised = nominator.on(node.name)
            status = check_with_nominated(info, node, filters, promised) if promised else filters.check(node)
            if status is not None:
                refusals[node.name] = status
                continue
            found.append(node)
            if len(found) == enough:
                break
        return found

    def _best(self, info: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> NodeInfo:
        scorers: list[tuple[Scorer, int]] = []
        for plugin, weight in self._framework.scores:
            scorer = plugin.pre_score(info, nodes, snapshot)
            if scorer is not None:
                self._evaluated(plugin.name, "PreScore", "Success", 1)
                self._evaluated(plugin.name, "Score", "Success", len(nodes))
                scorers.append((scorer, weight))
        best = _best_rows(scorers, nodes, snapshot) if isinstance(nodes, Swept) else _best_of(scorers, nodes)
        return nodes[self._rng.choice(best)]


def _best_of(scorers: Sequence[tuple[Scorer, int]], nodes: Sequence[NodeInfo]) -> list[int]:
    """Which of the nodes have the highest score, all told."""
    totals = [0] * len(nodes)
    for scorer, weight in scorers:
        scores = scorer.normalised(nodes, scorer.scores(nodes))
        totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
    highest = max(totals)
    return [index for index, total in enumerate(totals) if total == highest]


def _best_rows(scorers: Sequence[tuple[Scorer, int]], nodes: "Swept", snapshot: Snapshot) -> list[int]:
    """``_best_of``, by columns where a scorer has a twin."""
    columns = snapshot.columns
    totals = columns.zeros(nodes.rows)
    for scorer, weight in scorers:
        scores = scorer.column(nodes, columns, nodes.rows)
        if scores is None:
            scores = columns.column_of(scorer.normalised(nodes, scorer.scores(nodes)))
        totals = totals + weight * scores
    best: list[int] = (totals == totals.max()).nonzero()[0].tolist()
    return best


class Swept(Sequence[NodeInfo]):
    """Feasible nodes by their ``rows`` in the snapshot; most of them are never looked at one by one."""

    def __init__(self, nodes: Sequence[NodeInfo], rows: "Column") -> None:
        self._nodes, self.rows = nodes, rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeInfo]: ...
    def __getitem__(self, index: int | slice) -> NodeInfo | Sequence[NodeInfo]:
        return Swept(self._nodes, self.rows[index]) if isinstance(index, slice) else self._nodes[int(self.rows[index])]

    def __iter__(self) -> Iterator[NodeInfo]:
        nodes = self._nodes
        return (nodes[row] for row in self.rows.tolist())


def _swept(
    info: PodInfo,
    filters: Filters,
    parts: tuple[Filters, NodeFilter, Filters],
    world: World,
    start: int,
    enough: int,
    diagnosis: Diagnosis,
) -> Swept:
    """What ``Cycle._passing`` would find, by columns."""
    from elbowroom.scheduler.sweep import Promises, sweep

    snapshot, nominator = world.snapshot, world.nominator
    rows, diagnosis.refusals = sweep(parts, snapshot, start, enough, Promises(info, filters, snapshot, nominator))
    return Swept(snapshot.nodes, rows)


def feasible_to_find(nodes: int, percentage: int = 0) -> int:
    """How many feasible nodes are enough to choose from (SC-57). ``percentage`` 0: by the size of the cluster."""
    if nodes < MIN_FEASIBLE_NODES or percentage >= 100:
        return nodes
    share = percentage or max(MIN_FEASIBLE_PERCENT, 50 - nodes // 125)
    return max(MIN_FEASIBLE_NODES, nodes * share // 100)
