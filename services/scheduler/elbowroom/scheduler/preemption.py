"""Who has to go so that a pod, or a resize, has room (SC-102 to SC-115)?

All of it is a pure function of a snapshot: pods are taken from copies of nodes and put back one by one, the most important first,
as long as the preemptor still fits. Whoever cannot be put back is a victim. The search is greedy on purpose: it keeps the most
important pods, not the most pods. How victims are told is in ``elbowroom.scheduler.actuation``.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from elbowroom.api.objects import PodDisruptionBudget
from elbowroom.api.selectors import Selector, of_view
from elbowroom.machine import Instant
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.diagnosis import Diagnosis
from elbowroom.scheduler.framework import Filters
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.nominator import Nominator
from elbowroom.scheduler.podgroups import PodGroups, Unit, group_key, violating_units
from elbowroom.scheduler.podinfo import PodInfo, is_deferred
from elbowroom.scheduler.refusals import Refusals
from elbowroom.scheduler.rehearsal import stage_for
from elbowroom.scheduler.status import Code, Status

if TYPE_CHECKING:
    from elbowroom.scheduler.columns import Column

PLUGIN = "DefaultPreemption"
MIN_CANDIDATES_PERCENT = 10
MIN_CANDIDATES = 100
TWIN_FROM_NODES = 100
"""From so many nodes on the search over columns is used."""
_NO_VICTIMS = Status(Code.UNRESOLVABLE, ("No preemption victims found for incoming pod",), PLUGIN)
_NOT_HELPFUL = Status(Code.UNRESOLVABLE, ("Preemption is not helpful for scheduling",), PLUGIN)
_BUDGETS = Status(Code.UNRESOLVABLE, ("No preemption victims found that no disruption budget protects",), PLUGIN)


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget, ready to be asked (SC-112)."""

    key: str
    namespace: str
    selector: Selector
    allowed: int
    disrupted: frozenset[str]

    def covers(self, info: PodInfo) -> bool:
        """An empty selector covers nothing here, and a pod without labels is covered by nothing: upstream's surprise."""
        meta = info.pod.metadata
        if meta.namespace != self.namespace or not meta.labels or self.selector.is_empty:
            return False
        return self.selector.matches(meta.labels)


def budget_of(view: PodDisruptionBudget) -> Budget:
    return Budget(
        view.metadata.key,
        view.metadata.namespace,
        of_view(view.spec.selector),
        view.status.disruptions_allowed,
        frozenset(view.status.disrupted_pods),
    )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node and the pods that would have to go, the most important first."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int
    """How many of them break a budget."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Preempt these. ``inputs`` is what the choice was made from, for who wants to check it."""

    candidate: Candidate
    inputs: Mapping[str, Any] = field(default_factory=dict)
    was_tried: bool = True


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Nobody can be preempted; ``message`` says why. ``clears_nomination``: a promise made earlier is void (SC-111).

    ``was_tried`` is false where the profile has no preemption at all.
    """

    message: str
    clears_nomination: bool
    was_tried: bool = True


@dataclass(frozen=True, slots=True)
class World:
    """What a preemption is decided from, besides the pod."""

    snapshot: Snapshot
    nominator: Nominator
    budgets: Sequence[Budget]
    now: Instant
    strict_budgets: bool = False
    tracking: str = "none"
    """What keeps a deferred pod from a second round while its victims end (profiles row 8)."""
    aligned: bool = False
    """Does a resize count its neighbours as their kubelet does (profiles row 9)?"""
    groups: PodGroups | None = None
    """Where the gate GenericWorkload is on: who goes together."""
    remembered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """For tracking ``memory``: the victims (uids) of a pod's last round."""


def preempt(
    info: PodInfo,
    diagnosis: Diagnosis,
    filters: Filters,
    world: World,
    rng: random.Random,
    candidates: tuple[int, int] = (MIN_CANDIDATES_PERCENT, MIN_CANDIDATES),
) -> Plan | NoPlan:
    """Whom to preempt for a pod that fits nowhere (or a resize that does not fit)."""
    why_not = ineligible(info, diagnosis, world)
    if why_not:
        return NoPlan(f"preemption: {why_not}", clears_nomination=False)
    chosen, refusals = choose(info, diagnosis.resolvable(world.snapshot), filters, world, rng, candidates)
    if chosen is None:
        told = Diagnosis(diagnosis.nodes, refusals, absent=_NOT_HELPFUL)
        return NoPlan(f"preemption: {told.message()}", clears_nomination=True)
    named = [*filters.plugins, *(["PodGroups"] if world.groups is not None and any(map(group_key, chosen.victims)) else [])]
    return Plan(chosen, {**oracle_inputs(info, chosen.node, world), "filters": named})


def ineligible(info: PodInfo, diagnosis: Diagnosis, world: World) -> str:
    """Why the pod may not preempt now; empty if it may (SC-103, SC-104)."""
    pod = info.pod
    if world.groups is not None and group_key(info) and not pod.spec.node_name:
        # A resize is tried by itself, whatever group its pod belongs to (SC-25, SC-125).
        return "not eligible due to workload aware preemption enabled"
    if pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    awaited = pod.status.nominated_node_name or world.nominator.node_of(info.uid)
    if pod.spec.node_name and is_deferred(pod) and world.tracking in ("specNodeName", "memory"):
        awaited = pod.spec.node_name
    if not awaited:
        return ""
    status = diagnosis.of(awaited)
    if status is not None and status.code is Code.UNRESOLVABLE:
        return ""
    node = world.snapshot.get(awaited)
    if node is not None and any(_makes_room(other, info, world) for other in node.pods.values()):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def _makes_room(other: PodInfo, preemptor: PodInfo, world: World) -> bool:
    if other.priority >= preemptor.priority or not other.pod.is_terminating:
        return False
    if world.tracking == "memory" and preemptor.pod.spec.node_name:
        return other.uid in world.remembered.get(preemptor.uid, frozenset())
    condition = other.pod.condition("DisruptionTarget")
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"


def choose(
    info: PodInfo,
    rows: "Sequence[int] | Column",
    filters: Filters,
    world: World,
    rng: random.Random,
    candidates: tuple[int, int] = (MIN_CANDIDATES_PERCENT, MIN_CANDIDATES),
) -> tuple[Candidate | None, Refusals]:
    """The best of the nodes in these rows of the snapshot, or why all are of no use. Nodes are tried from a random one on, until
    enough candidates are found and one of them breaks no budget (SC-107).
    """
    if not len(rows):
        return None, Refusals()
    percent, absolute = candidates
    enough = min(len(rows), max(absolute, len(rows) * percent // 100))
    offset = rng.randrange(len(rows))
    if len(rows) >= TWIN_FROM_NODES and filters.by_sums() is not None and not world.budgets and world.groups is None:
        return _chosen_by_columns(info, rows, filters, world, offset, enough)
    found, refusals = dry_run(info, rows, filters, world, offset, enough)
    return (best(found, world.now) if found else None), refusals


def dry_run(
    info: PodInfo, rows: "Sequence[int] | Column", filters: Filters, world: World, offset: int, enough: int
) -> tuple[list[Candidate], Refusals]:
    """Try the nodes in these rows, from the one at ``offset`` on and around."""
    found: list[Candidate] = []
    refusals = Refusals()
    harmless = False
    for index in range(len(rows)):
        node = world.snapshot.nodes[rows[(offset + index) % len(rows)]]
        result, _ = _remembered_victims(info, node, filters, world)
        if isinstance(result, Status):
            refusals.by_node[node.name] = result
            continue
        found.append(result)
        harmless = harmless or result.violations == 0
        if len(found) >= enough and harmless:
            break
    return found, refusals


def _chosen_by_columns(
    info: PodInfo, rows: "Sequence[int] | Column", filters: Filters, world: World, offset: int, enough: int
) -> tuple[Candidate | None, Refusals]:
    from elbowroom.scheduler.candidates import search
    from elbowroom.scheduler.columns import UNKNOWN

    snapshot, nominator = world.snapshot, world.nominator
    found: dict[int, Candidate] = {}

    def tried(row: int) -> tuple[tuple[int, int, int, int, int] | Status, bool]:
        result, lasts = _remembered_victims(info, snapshot.nodes[row], filters, world)
        if isinstance(result, Status):
            return result, lasts
        found[row] = result
        return cost(result, world.now), lasts

    known = snapshot.columns.known(("victims", filters.question, info.priority))
    known.follow(nominator, snapshot.row)
    own = snapshot.row(nominator.node_of(info.uid))
    if own is not None:
        known.state[own] = UNKNOWN
    chosen, refusals = search(rows, offset, enough, known, tried, snapshot)
    if chosen is None:
        return None, refusals
    if chosen in found:
        return found[chosen], refusals
    result, _ = _remembered_victims(info, snapshot.nodes[chosen], filters, world)
    assert isinstance(result, Candidate), "what is remembered of a node holds until the node changes"
    return result, refusals


def _remembered_victims(info: PodInfo, node: NodeInfo, filters: Filters, world: World) -> tuple[Candidate | Status, bool]:
    """``victims_on``, found out once for all equal preemptors until the node or its promises change, if nothing else matters: no
    budget, no group, no promise to this one, and no pod that counts as starting only now. With it, whether it is remembered.
    """
    nominator = world.nominator
    if filters.question is None or world.budgets or world.groups is not None or nominator.node_of(info.uid) == node.name:
        return victims_on(info, node, filters, world), False
    key = ("victims", filters.question, info.priority, nominator.version(node.name))
    found: Candidate | Status | None = node.memo.get(key)
    if found is not None:
        return found, True
    found = victims_on(info, node, filters, world)
    lasts = all(other.start is not None for other in node.pods.values())
    if lasts:
        node.memo[key] = found
    return found, lasts


def victims_on(info: PodInfo, node: NodeInfo, filters: Filters, world: World) -> Candidate | Status:
    """The victims on one node, or why preemption there is of no use."""
    if world.groups is not None and any(group_key(other) for other in node.pods.values()):
        return _units_on(info, node, filters, world, world.groups)
    potential = [other for other in node.pods.values() if other.priority < info.priority]
    if not potential:
        return _NO_VICTIMS
    potential.sort(key=lambda other: importance(other, world.now))
    protected = violating(potential, world.budgets)
    if world.strict_budgets and protected:
        # What stands outside every budget's reach has to do, whatever the cost in priority.
        free = [other for other in potential if other.uid not in protected]
        result = _reprieve(info, node, filters, world, free, frozenset())
        return _BUDGETS if isinstance(result, Status) else result
    return _reprieve(info, node, filters, world, potential, protected)


def _reprieve(
    info: PodInfo,
    node: NodeInfo,
    filters: Filters,
    world: World,
    potential: Sequence[PodInfo],
    protected: frozenset[str],
) -> Candidate | Status:
    """SC-109, SC-110a: all go, and as many as possible come back, those whose budget would break first."""
    stage = stage_for(info, node, filters, world.nominator.on(node.name))
    for other in potential:
        stage.take(other)
    status = stage.check()
    if status is not None:
        return status
    victims: list[PodInfo] = []
    violations = 0
    first = [other for other in potential if other.uid in protected]
    for other in [*first, *(other for other in potential if other.uid not in protected)] if first else potential:
        stage.put(other)
        if stage.check() is not None:
            stage.take(other)
            victims.append(other)
            violations += other.uid in protected
    if violations:
        victims.sort(key=lambda other: importance(other, world.now))
    return Candidate(node.name, tuple(victims), violations)


def _units_on(info: PodInfo, node: NodeInfo, filters: Filters, world: World, groups: PodGroups) -> Candidate | Status:
    """The same where pods may take others along. Of a group that has to go all members go, those on other nodes, too (SC-129)."""
    lower = [unit for unit in groups.units(world.snapshot, node.pods.values()) if unit.priority < info.priority]
    if not lower:
        return _NO_VICTIMS
    lower.sort(key=lambda unit: unit.importance(world.now))
    protected = violating_units(lower, lambda pods: violating(pods, world.budgets))
    if world.strict_budgets and protected:
        lower, protected = [unit for unit in lower if unit not in protected], []
    stage = stage_for(info, node, filters, world.nominator.on(node.name))
    for unit in lower:
        for other in unit.here:
            stage.take(other)
    status = stage.check()
    if status is not None:
        return _BUDGETS if world.strict_budgets else status
    gone: list[Unit] = []
    for unit in [*protected, *(unit for unit in lower if unit not in protected)]:
        for other in unit.here:
            stage.put(other)
        if stage.check() is not None:
            for other in unit.here:
                stage.take(other)
            gone.append(unit)
    gone.sort(key=lambda unit: unit.importance(world.now))
    return Candidate(node.name, tuple(other for unit in gone for other in unit.pods), sum(unit in protected for unit in gone))


def importance(info: PodInfo, now: int) -> tuple[int, int]:
    """Smaller is more important: higher priority first, then who started earlier (SC-110)."""
    return (-info.priority, info.started(now))


def violating(ordered: Sequence[PodInfo], budgets: Iterable[Budget]) -> frozenset[str]:
    """The pods whose going would break a budget if all of these went in this order (SC-112)."""
    left = [(budget, [budget.allowed]) for budget in budgets]
    broken: list[str] = []
    for info in ordered:
        breaks = False
        for budget, allowed in left:
            if not budget.covers(info) or info.pod.metadata.name in budget.disrupted:
                continue
            allowed[0] -= 1
            breaks = breaks or allowed[0] < 0
        if breaks:
            broken.append(info.uid)
    return frozenset(broken)


def best(candidates: Sequence[Candidate], now: int) -> Candidate:
    """The node to preempt on (SC-114)."""
    return min(candidates, key=lambda candidate: cost(candidate, now))


def cost(candidate: Candidate, now: int) -> tuple[int, int, int, int, int]:
    """What preempting there costs: the less, the better, one criterion after the other."""
    victims = candidate.victims
    if not victims:
        return (candidate.violations, -(2**31), 0, 0, 0)
    top = victims[0].priority
    earliest = min(victim.started(now) for victim in victims if victim.priority == top)
    return (candidate.violations, top, sum(victim.priority + 2**31 for victim in victims), len(victims), -earliest)


def oracle_inputs(info: PodInfo, node_name: str, world: World) -> dict[str, Any]:
    """What the choice of victims on a node was made from, as plain values: who reads the history can choose again.

    Where inter-pod affinity or ports kept the pod out, sums alone don't tell.
    """
    node = world.snapshot.get(node_name)
    assert node is not None, "victims are sought on nodes of the snapshot"
    pods = list(node.pods.values())
    own = node.pods.get(info.uid)
    aligned = world.aligned and bool(info.pod.spec.node_name)
    return {
        "now": world.now,
        "allocatable": dict(node.allocatable),
        "want": dict(info.want),
        "have": dict(own.requests) if own is not None else {},
        "pods": [
            {
                "uid": other.uid,
                "name": other.key,
                "priority": other.priority,
                "start_time": other.started(world.now),
                "rev": other.pod.metadata.resource_version,
                "requests": dict(other.requests),
                "counted": dict(other.held() if aligned and other.uid != info.uid else other.requests),
                "terminating": other.pod.is_terminating,
            }
            for other in pods
        ],
        "strict": world.strict_budgets,
        "budgets": [
            {
                "name": budget.key,
                "disruptions_allowed": budget.allowed,
                "disrupted_pods": sorted(budget.disrupted),
                "covers": [other.uid for other in pods if budget.covers(other)],
            }
            for budget in world.budgets
            if any(budget.covers(other) for other in pods)
        ],
        "nominated": [
            {"uid": other.uid, "priority": other.priority, "requests": dict(other.want)} for other in world.nominator.on(node_name)
        ],
    }
