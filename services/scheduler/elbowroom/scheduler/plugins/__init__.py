"""The plugins, in upstream's order and with upstream's weights (SC-59)."""

from elbowroom.api.gates import Profile
from elbowroom.scheduler.framework import Plugin
from elbowroom.scheduler.lookup import Lookup
from elbowroom.scheduler.plugins.affinity import NodeAffinity
from elbowroom.scheduler.plugins.deferred import DeferredPodScheduling
from elbowroom.scheduler.plugins.images import ImageLocality
from elbowroom.scheduler.plugins.interpod import InterPodAffinity
from elbowroom.scheduler.plugins.nodes import NodeName, NodePorts, NodeUnschedulable, TaintToleration
from elbowroom.scheduler.plugins.preempting import DefaultPreemption
from elbowroom.scheduler.plugins.resources import BalancedAllocation, Fit, ScoringStrategy
from elbowroom.scheduler.plugins.schedulinggates import SchedulingGates
from elbowroom.scheduler.plugins.spread import PodTopologySpread

__all__ = ["DefaultPreemption", "ScoringStrategy", "default_plugins"]


def default_plugins(profile: Profile, lookup: Lookup, strategy: ScoringStrategy | None = None) -> list[Plugin]:
    """All plugins of a scheduler; ``lookup`` lets them see what no snapshot holds."""
    plugins: list[Plugin] = [
        SchedulingGates(),
        NodeUnschedulable(),
        NodeName(profile.resize_preemption),
        # Before NodeResourcesFit, so that it is the recorded rejector where the policy forbids preemption (SC-89).
        *([DeferredPodScheduling(profile, lookup)] if profile.resize_preemption else []),
        TaintToleration(),
        NodeAffinity(),
        NodePorts(),
        Fit(strategy or ScoringStrategy(), aligned_with_kubelet=profile.resize_fit == "kubeletAligned"),
        PodTopologySpread(),
        InterPodAffinity(lookup),
        DefaultPreemption(lookup),
        BalancedAllocation(),
        ImageLocality(),
    ]
    return plugins
