"""Who has to go so that a pod, or a resize, has room (SC-102 to SC-115)?

All of it is a pure function of a snapshot: pods are taken from copies of nodes and put back one by one, the most important first,
as long as the preemptor still fits. Whoever cannot be put back is a victim. The search is greedy on purpose: it keeps the most
important pods, not the most pods. How victims are told is in ``elbowroom.scheduler.actuation``.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elbowroom.api.objects import PodDisruptionBudget
from elbowroom.api.selectors import Selector, of_view
from elbowroom.machine import Instant
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.diagnosis import Diagnosis
from elbowroom.scheduler.framework import Code, Filters, Status
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.nominator import Nominator
from elbowroom.scheduler.podgroups import PodGroups, Unit, group_key, violating_units
from elbowroom.scheduler.podinfo import PodInfo, is_deferred

PLUGIN = "DefaultPreemption"
MIN_CANDIDATES_PERCENT = 10
MIN_CANDIDATES = 100
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
    nodes = diagnosis.resolvable()
    found, refusals = dry_run(info, nodes, filters, world, rng, candidates)
    if not found:
        told = Diagnosis(diagnosis.nodes, {**dict.fromkeys(diagnosis.refusals, _NOT_HELPFUL), **refusals})
        told.absent = _NOT_HELPFUL
        return NoPlan(f"preemption: {told.message()}", clears_nomination=True)
    chosen = best(found, world.now)
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


def dry_run(
    info: PodInfo,
    nodes: Sequence[str],
    filters: Filters,
    world: World,
    rng: random.Random,
    candidates: tuple[int, int] = (MIN_CANDIDATES_PERCENT, MIN_CANDIDATES),
) -> tuple[list[Candidate], dict[str, Status]]:
    """Try nodes from a random one on, until enough candidates are found and one of them breaks no budget (SC-107)."""
    if not nodes:
        return [], {}
    percent, absolute = candidates
    enough = min(len(nodes), max(absolute, len(nodes) * percent // 100))
    offset = rng.randrange(len(nodes))
    found: list[Candidate] = []
    refusals: dict[str, Status] = {}
    harmless = False
    for index in range(len(nodes)):
        node = world.snapshot.get(nodes[(offset + index) % len(nodes)])
        if node is None:
            continue
        result = _remembered_victims(info, node, filters, world)
        if isinstance(result, Status):
            refusals[node.name] = result
            continue
        found.append(result)
        harmless = harmless or result.violations == 0
        if len(found) >= enough and harmless:
            break
    return found, refusals


def _remembered_victims(info: PodInfo, node: NodeInfo, filters: Filters, world: World) -> Candidate | Status:
    """``victims_on``, found out once for all equal preemptors until the node changes, if nothing but the node matters: no budget,
    no group, no promise, and no pod that counts as starting only now.
    """
    if filters.question is None or world.budgets or world.groups is not None or world.nominator.on(node.name):
        return victims_on(info, node, filters, world)
    key = ("victims", filters.question, info.priority)
    found: Candidate | Status | None = node.memo.get(key)
    if found is None:
        found = victims_on(info, node, filters, world)
        if all(other.start is not None for other in node.pods.values()):
            node.memo[key] = found
    return found


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
    emptied, tried = node.copy(), filters.copy()
    for other in potential:
        tried.without_pod(emptied, other)
    nominated = world.nominator.on(node.name)
    status = check_with_nominated(info, emptied, tried, nominated)
    if status is not None:
        return status
    victims: list[PodInfo] = []
    violations = 0
    first = [other for other in potential if other.uid in protected]
    for other in [*first, *(other for other in potential if other.uid not in protected)] if first else potential:
        tried.with_pod(emptied, other)
        if check_with_nominated(info, emptied, tried, nominated) is not None:
            tried.without_pod(emptied, other)
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
    emptied, tried = node.copy(), filters.copy()
    for unit in lower:
        for other in unit.here:
            tried.without_pod(emptied, other)
    nominated = world.nominator.on(node.name)
    status = check_with_nominated(info, emptied, tried, nominated)
    if status is not None:
        return _BUDGETS if world.strict_budgets else status
    gone: list[Unit] = []
    for unit in [*protected, *(unit for unit in lower if unit not in protected)]:
        for other in unit.here:
            tried.with_pod(emptied, other)
        if check_with_nominated(info, emptied, tried, nominated) is not None:
            for other in unit.here:
                tried.without_pod(emptied, other)
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


def check_with_nominated(info: PodInfo, node: NodeInfo, filters: Filters, nominated: Sequence[PodInfo]) -> Status | None:
    """Does the pod fit beside the pods promised this node that are as important, and also without them (SC-37)?"""
    if not nominated:
        return filters.check(node)
    promised = [other for other in nominated if other.priority >= info.priority and other.uid != info.uid]
    promised = [other for other in promised if other.uid not in node.pods]
    if promised:
        fuller, tried = node.copy(), filters.copy()
        for other in promised:
            tried.with_pod(fuller, other)
        status = tried.check(fuller)
        if status is not None:
            return status
    return filters.check(node)


def best(candidates: Sequence[Candidate], now: int) -> Candidate:
    """The node to preempt on (SC-114)."""
    return min(candidates, key=lambda candidate: _cost(candidate, now))


def _cost(candidate: Candidate, now: int) -> tuple[int, int, int, int, int]:
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
