"""KubeSchedulerConfiguration, as far as it means something here: upstream's field names, defaults and rules of merging.

A plugin is enabled everywhere by ``multiPoint`` and at single extension points beside it. Upstream's order at a point is kept:
first what is enabled there *and* by ``multiPoint``, then the rest of ``multiPoint``, then the rest of the point. Plugins of volumes
may be named, which are not emulated; they never have anything to say. Unlike upstream, what keeps a resize on its node cannot be
disabled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

ALL = "*"
DEFAULT_SCHEDULER = "default-scheduler"
API_VERSION = "kubescheduler.config.k8s.io/v1"

_FILTERS = ("preFilter", "filter")
_SCORES = ("preScore", "score")
POINTS_OF: Mapping[str, tuple[str, ...]] = {
    "SchedulingGates": ("preEnqueue",),
    "PrioritySort": ("queueSort",),
    "NodeUnschedulable": ("filter",),
    "NodeName": _FILTERS,
    "DeferredPodScheduling": (*_FILTERS, "permit"),
    "TaintToleration": ("filter", *_SCORES),
    "NodeAffinity": (*_FILTERS, *_SCORES),
    "NodePorts": _FILTERS,
    "NodeResourcesFit": (*_FILTERS, *_SCORES),
    "VolumeRestrictions": _FILTERS,
    "NodeVolumeLimits": _FILTERS,
    "VolumeBinding": (*_FILTERS, *_SCORES, "reserve", "preBind"),
    "VolumeZone": _FILTERS,
    "PodTopologySpread": (*_FILTERS, *_SCORES),
    "InterPodAffinity": (*_FILTERS, *_SCORES),
    "DefaultPreemption": ("preEnqueue", "postFilter"),
    "NodeResourcesBalancedAllocation": _SCORES,
    "ImageLocality": ("score",),
    "DefaultBinder": ("bind",),
    "NodeDeclaredFeatures": _FILTERS,
}
"""The plugins in the order in which they are enabled by default, and where each of them takes part."""
WEIGHTS = {"TaintToleration": 3, "NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2}
"""Those that do not weigh 1 by default (SC-59)."""


INDISPENSABLE = (("filter", "NodeName"), ("filter", "DeferredPodScheduling"), ("permit", "DeferredPodScheduling"))
"""Without these a resize would be placed on some node."""


class SchedulerConfigError(ValueError):
    """The configuration makes no sense; the message begins with the path."""


class _Shape(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    pass


class PluginName(_Shape, frozen=True):
    name: str
    weight: int = 0


class PluginSet(_Shape, frozen=True):
    enabled: tuple[PluginName, ...] = ()
    disabled: tuple[PluginName, ...] = ()


class Plugins(_Shape, frozen=True):
    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()


class ResourceWeight(_Shape, frozen=True):
    name: str
    weight: int = 1


class ShapePoint(_Shape, frozen=True):
    utilization: int
    score: int


class RequestedToCapacityRatio(_Shape, frozen=True):
    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategyArgs(_Shape, frozen=True):
    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = (ResourceWeight("cpu"), ResourceWeight("memory"))
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(_Shape, frozen=True):
    api_version: str = API_VERSION
    kind: str = "NodeResourcesFitArgs"
    scoring_strategy: ScoringStrategyArgs = ScoringStrategyArgs()


class DefaultPreemptionArgs(_Shape, frozen=True):
    api_version: str = API_VERSION
    kind: str = "DefaultPreemptionArgs"
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class PluginConfig(_Shape, frozen=True):
    name: str
    args: dict[str, Any] = {}


class ProfileShape(_Shape, frozen=True):
    scheduler_name: str = DEFAULT_SCHEDULER
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class KubeSchedulerConfiguration(_Shape, frozen=True):
    api_version: str = API_VERSION
    kind: str = "KubeSchedulerConfiguration"
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[ProfileShape, ...] = (ProfileShape(),)


@dataclass(frozen=True, slots=True)
class SchedulerProfile:
    """One scheduler of the process, told apart by ``schedulerName``. ``at`` maps a point to its plugins in order, with weights."""

    name: str
    at: Mapping[str, tuple[tuple[str, int], ...]]
    percentage: int = 0
    fit: ScoringStrategyArgs = field(default_factory=ScoringStrategyArgs)
    preemption: DefaultPreemptionArgs = field(default_factory=DefaultPreemptionArgs)


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """The configuration, merged with the defaults."""

    profiles: tuple[SchedulerProfile, ...]
    initial_backoff_seconds: int = 1
    max_backoff_seconds: int = 10


def parse(document: Mapping[str, Any]) -> SchedulerConfig:
    """The configuration in a document; ``SchedulerConfigError`` names the field."""
    try:
        shape = msgspec.convert(document, KubeSchedulerConfiguration)
    except msgspec.ValidationError as why:
        message, _, path = str(why).partition(" - at `$")
        raise SchedulerConfigError(f"{path.rstrip('`').lstrip('.') or 'config'}: {message}") from why
    _check(shape.api_version == API_VERSION, "apiVersion", f"must be {API_VERSION}")
    _check(shape.kind == "KubeSchedulerConfiguration", "kind", "must be KubeSchedulerConfiguration")
    _check(shape.pod_initial_backoff_seconds > 0, "podInitialBackoffSeconds", "must be greater than 0")
    _check(
        shape.pod_max_backoff_seconds >= shape.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds",
        "must be greater than or equal to podInitialBackoffSeconds",
    )
    _percentage(shape.percentage_of_nodes_to_score, "percentageOfNodesToScore")
    _check(bool(shape.profiles), "profiles", "there must be one")
    profiles = tuple(_profile(each, shape, f"profiles[{number}]") for number, each in enumerate(shape.profiles))
    names = [profile.name for profile in profiles]
    for number, name in enumerate(names):
        _check(name not in names[:number], f"profiles[{number}].schedulerName", f"{name} is there already")
    return SchedulerConfig(profiles, shape.pod_initial_backoff_seconds, shape.pod_max_backoff_seconds)


def _profile(shape: ProfileShape, whole: KubeSchedulerConfiguration, path: str) -> SchedulerProfile:
    _check(bool(shape.scheduler_name), f"{path}.schedulerName", "is missing")
    percentage = whole.percentage_of_nodes_to_score
    if shape.percentage_of_nodes_to_score is not None:
        percentage = shape.percentage_of_nodes_to_score
        _percentage(percentage, f"{path}.percentageOfNodesToScore")
    fit, preemption = _arguments(shape.plugin_config, f"{path}.pluginConfig")
    return SchedulerProfile(shape.scheduler_name, _merged(shape.plugins, f"{path}.plugins"), percentage, fit, preemption)


def _merged(plugins: Plugins, path: str) -> dict[str, tuple[tuple[str, int], ...]]:
    """Which plugins take part at which point."""
    sets = {_camel(name): getattr(plugins, name) for name in Plugins.__struct_fields__}
    for point, chosen in sets.items():
        _check_set(chosen, point, f"{path}.{point}")
    everywhere = _everywhere(sets.pop("multiPoint"))
    merged = {point: _at(point, chosen, everywhere) for point, chosen in sets.items()}
    _check(len(merged["queueSort"]) == 1, f"{path}.queueSort", "there must be exactly one plugin")
    _check(bool(merged["bind"]), f"{path}.bind", "there must be a plugin")
    for point, name in INDISPENSABLE:
        _check(name in dict(merged[point]), f"{path}.{point}", f"{name} cannot be disabled")
    return merged


def _everywhere(chosen: PluginSet) -> dict[str, int]:
    """The plugins of ``multiPoint`` with their weights: the defaults, less what is disabled, with the others replaced or added."""
    off = {each.name for each in chosen.disabled}
    found = {} if ALL in off else {name: WEIGHTS.get(name, 1) for name in POINTS_OF if name not in off}
    for each in chosen.enabled:
        found[each.name] = each.weight or WEIGHTS.get(each.name, 1)
    return found


def _at(point: str, chosen: PluginSet, everywhere: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    off = {each.name for each in chosen.disabled}
    here = {each.name: each.weight for each in chosen.enabled}
    general = {name: w for name, w in everywhere.items() if point in POINTS_OF[name] and ALL not in off and name not in off}
    both = [(name, weight or everywhere[name]) for name, weight in here.items() if name in everywhere]
    rest = [(name, weight) for name, weight in general.items() if name not in here]
    only = [(name, weight or WEIGHTS.get(name, 1)) for name, weight in here.items() if name not in everywhere]
    return (*both, *rest, *only)


def _check_set(chosen: PluginSet, point: str, path: str) -> None:
    seen: set[str] = set()
    for number, each in enumerate(chosen.enabled):
        where = f"{path}.enabled[{number}]"
        _check(each.name in POINTS_OF, where, f"there is no plugin {each.name!r}")
        _check(point == "multiPoint" or point in POINTS_OF[each.name], where, f"{each.name} takes no part in {point}")
        _check(each.name not in seen, where, f"{each.name} is enabled twice")
        _check(0 <= each.weight <= 2**31 - 1, where, f"weight {each.weight} makes no sense")
        seen.add(each.name)
    for number, each in enumerate(chosen.disabled):
        known = each.name == ALL or each.name in POINTS_OF
        _check(known, f"{path}.disabled[{number}]", f"there is no plugin {each.name!r}")


def _arguments(configs: Sequence[PluginConfig], path: str) -> tuple[ScoringStrategyArgs, DefaultPreemptionArgs]:
    strategy, preemption = ScoringStrategyArgs(), DefaultPreemptionArgs()
    seen: set[str] = set()
    for number, each in enumerate(configs):
        where = f"{path}[{number}]"
        _check(each.name not in seen, where, f"{each.name} is configured twice")
        seen.add(each.name)
        try:
            match each.name:
                case "NodeResourcesFit":
                    strategy = msgspec.convert(each.args, NodeResourcesFitArgs).scoring_strategy
                    _check_strategy(strategy, f"{where}.args.scoringStrategy")
                case "DefaultPreemption":
                    preemption = msgspec.convert(each.args, DefaultPreemptionArgs)
                    _check_preemption(preemption, f"{where}.args")
                case _:
                    raise SchedulerConfigError(f"{where}.name: {each.name} has no arguments here")
        except msgspec.ValidationError as why:
            raise SchedulerConfigError(f"{where}.args: {why}") from why
    return strategy, preemption


def _check_strategy(strategy: ScoringStrategyArgs, path: str) -> None:
    for number, each in enumerate(strategy.resources):
        _check(1 <= each.weight <= 100, f"{path}.resources[{number}].weight", f"{each.weight} is not between 1 and 100")
    if strategy.type != "RequestedToCapacityRatio":
        return
    shape = strategy.requested_to_capacity_ratio.shape if strategy.requested_to_capacity_ratio is not None else ()
    where = f"{path}.requestedToCapacityRatio.shape"
    _check(bool(shape), where, "at least one point must be specified")
    for number, point in enumerate(shape):
        _check(0 <= point.utilization <= 100, f"{where}[{number}].utilization", "must be between 0 and 100")
        _check(0 <= point.score <= 10, f"{where}[{number}].score", "must be between 0 and 10")
        rises = number == 0 or shape[number - 1].utilization < point.utilization
        _check(rises, f"{where}[{number}].utilization", "must be greater than the one before")


def _check_preemption(args: DefaultPreemptionArgs, path: str) -> None:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    _check(0 <= percentage <= 100, f"{path}.minCandidateNodesPercentage", "must be between 0 and 100")
    _check(absolute >= 0, f"{path}.minCandidateNodesAbsolute", "must not be negative")
    _check(percentage + absolute > 0, path, "both cannot be zero")


def _percentage(value: int, path: str) -> None:
    _check(0 <= value <= 100, path, f"{value} is not between 0 and 100")


def _check(holds: bool, path: str, message: str) -> None:
    if not holds:
        raise SchedulerConfigError(f"{path}: {message}")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
