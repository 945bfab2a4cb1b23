"""The plugins, in upstream's order and with upstream's weights (SC-59)."""

from elbowroom.api.gates import Profile
from elbowroom.scheduler.config import Arguments, SchedulerProfile, ScoringStrategyArgs
from elbowroom.scheduler.framework import Framework, Plugin
from elbowroom.scheduler.lookup import Lookup
from elbowroom.scheduler.plugins.affinity import NodeAffinity
from elbowroom.scheduler.plugins.deferred import DeferredPodScheduling
from elbowroom.scheduler.plugins.features import NodeDeclaredFeatures
from elbowroom.scheduler.plugins.gang import GangScheduling
from elbowroom.scheduler.plugins.images import ImageLocality
from elbowroom.scheduler.plugins.interpod import InterPodAffinity
from elbowroom.scheduler.plugins.nodes import NodeName, NodePorts, NodeUnschedulable, TaintToleration
from elbowroom.scheduler.plugins.preempting import DefaultPreemption
from elbowroom.scheduler.plugins.resources import BalancedAllocation, Fit, Ignored, ScoringStrategy
from elbowroom.scheduler.plugins.schedulinggates import SchedulingGates
from elbowroom.scheduler.plugins.spread import PodTopologySpread

__all__ = ["DefaultPreemption", "ScoringStrategy", "default_plugins", "framework_of"]


def default_plugins(profile: Profile, lookup: Lookup, arguments: Arguments | None = None) -> list[Plugin]:
    """All plugins of a scheduler; ``lookup`` lets them see what no snapshot holds."""
    args = arguments or Arguments()
    aligned = profile.resize_fit == "kubeletAligned"
    ignored = Ignored(frozenset(args.fit.ignored_resources), frozenset(args.fit.ignored_resource_groups))
    plugins: list[Plugin] = [
        SchedulingGates(),
        NodeUnschedulable(),
        NodeName(profile.resize_preemption),
        # Before NodeResourcesFit, so that it is the recorded rejector where the policy forbids preemption (SC-89).
        *([DeferredPodScheduling(profile, lookup)] if profile.resize_preemption else []),
        TaintToleration(),
        NodeAffinity(args.affinity.added_affinity),
        NodePorts(),
        Fit(_strategy(args.fit.scoring_strategy), aligned_with_kubelet=aligned, ignored=ignored),
        PodTopologySpread(lookup, args.spread.constraints),
        InterPodAffinity(lookup, args.interpod.hard_pod_affinity_weight, args.interpod.ignore_preferred_terms_of_existing_pods),
        DefaultPreemption(lookup),
        BalancedAllocation(tuple(each.name for each in args.balanced.resources)),
        ImageLocality(),
        *([NodeDeclaredFeatures()] if profile.on("NodeDeclaredFeatures") else []),
        *([GangScheduling(lookup)] if profile.on("GangScheduling") and profile.on("GenericWorkload") else []),
    ]
    return plugins


def _strategy(args: ScoringStrategyArgs) -> ScoringStrategy:
    ratio = args.requested_to_capacity_ratio
    return ScoringStrategy(
        args.type,
        {each.name: each.weight for each in args.resources},
        tuple((point.utilization, point.score) for point in ratio.shape) if ratio is not None else (),
    )


def framework_of(profile: Profile, lookup: Lookup, wanted: SchedulerProfile) -> tuple[Framework, list[Plugin]]:
    """The plugins of one profile at their points, and all that take part anywhere."""
    preemption = wanted.arguments.preemption
    known = {plugin.name: plugin for plugin in default_plugins(profile, lookup, wanted.arguments)}

    def at(point: str) -> tuple[Plugin, ...]:
        return tuple(known[name] for name, _ in wanted.at[point] if name in known)

    framework = Framework(
        filters=at("filter"),
        scores=tuple((known[name], weight) for name, weight in wanted.at["score"] if name in known),
        permits=at("permit"),
        pre_enqueues=at("preEnqueue"),
        preempts=any(name == DefaultPreemption.name for name, _ in wanted.at["postFilter"]),
        percentage=wanted.percentage,
        candidates=(preemption.min_candidate_nodes_percentage, preemption.min_candidate_nodes_absolute),
    )
    used = {plugin.name for plugin in (*framework.filters, *framework.permits, *framework.pre_enqueues)}
    return framework, [plugin for plugin in known.values() if plugin.name in used]
