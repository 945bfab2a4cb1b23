"""KubeSchedulerConfiguration, as far as it means something here: upstream's field names, defaults and rules of merging.

A plugin is enabled everywhere by ``multiPoint`` and at single extension points beside it. Upstream's order at a point is kept:
first what is enabled there *and* by ``multiPoint``, then the rest of ``multiPoint``, then the rest of the point. Plugins of volumes
may be named, which are not emulated; they never have anything to say. Unlike upstream, what keeps a resize on its node cannot be
disabled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from elbowroom.api.names import qualified_name
from elbowroom.api.objects import NodeAffinity, NodeSelectorTerm, TopologySpreadConstraint

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
    "GangScheduling": ("preEnqueue", "permit"),
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


class _Args(_Shape, frozen=True):
    api_version: str = API_VERSION
    kind: str = ""
    """Of the arguments; if it is given, it must be the plugin's."""


class NodeResourcesFitArgs(_Args, frozen=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategyArgs = ScoringStrategyArgs()


class BalancedAllocationArgs(_Args, frozen=True):
    resources: tuple[ResourceWeight, ...] = (ResourceWeight("cpu"), ResourceWeight("memory"))


class DefaultPreemptionArgs(_Args, frozen=True):
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class InterPodAffinityArgs(_Args, frozen=True):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class PodTopologySpreadArgs(_Args, frozen=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"

    @property
    def constraints(self) -> tuple[TopologySpreadConstraint, ...] | None:
        """The constraints of pods without any; None: upstream's."""
        return None if self.defaulting_type == "System" else self.default_constraints


class NodeAffinityArgs(_Args, frozen=True):
    added_affinity: NodeAffinity | None = None


class Arguments(_Shape, frozen=True):
    """What is configured of the plugins that take arguments."""

    fit: NodeResourcesFitArgs = NodeResourcesFitArgs()
    balanced: BalancedAllocationArgs = BalancedAllocationArgs()
    preemption: DefaultPreemptionArgs = DefaultPreemptionArgs()
    interpod: InterPodAffinityArgs = InterPodAffinityArgs()
    spread: PodTopologySpreadArgs = PodTopologySpreadArgs()
    affinity: NodeAffinityArgs = NodeAffinityArgs()


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
    parallelism: int = 16
    """Checked and else of no effect: nodes are looked at one by one."""
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
    arguments: Arguments = field(default_factory=Arguments)


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
    _check(shape.parallelism > 0, "parallelism", "should be an integer value greater than zero")
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
    arguments = _arguments(shape.plugin_config, f"{path}.pluginConfig")
    return SchedulerProfile(shape.scheduler_name, _merged(shape.plugins, f"{path}.plugins"), percentage, arguments)


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


def _arguments(configs: Sequence[PluginConfig], path: str) -> Arguments:
    found: dict[str, Any] = {}
    for number, each in enumerate(configs):
        where = f"{path}[{number}]"
        if each.name not in _ARGUMENTS:
            raise SchedulerConfigError(f"{where}.name: {each.name} has no arguments here")
        name, shape, check = _ARGUMENTS[each.name]
        _check(name not in found, where, f"{each.name} is configured twice")
        try:
            args = msgspec.convert(each.args, shape)
        except msgspec.ValidationError as why:
            raise SchedulerConfigError(f"{where}.args: {why}") from why
        _check(args.api_version == API_VERSION, f"{where}.args.apiVersion", f"must be {API_VERSION}")
        _check(args.kind in ("", f"{each.name}Args"), f"{where}.args.kind", f"must be {each.name}Args")
        check(args, f"{where}.args")
        found[name] = args
    return Arguments(**found)


def _check_fit(args: NodeResourcesFitArgs, path: str) -> None:
    for number, name in enumerate(args.ignored_resources):
        _check(not qualified_name(name), f"{path}.ignoredResources[{number}]", f"{name!r} is no name of a resource")
    for number, name in enumerate(args.ignored_resource_groups):
        where = f"{path}.ignoredResourceGroups[{number}]"
        _check("/" not in name, where, "resource group name can't contain '/'")
        _check(not qualified_name(name), where, f"{name!r} is no name of a group")
    _check_strategy(args.scoring_strategy, f"{path}.scoringStrategy")


def _check_balanced(args: BalancedAllocationArgs, path: str) -> None:
    names = [each.name for each in args.resources]
    for number, each in enumerate(args.resources):
        where = f"{path}.resources[{number}]"
        _check(each.name not in names[:number], f"{where}.name", f"{each.name} is there already")
        _check(each.weight == 1, f"{where}.weight", "must be 1")


def _check_interpod(args: InterPodAffinityArgs, path: str) -> None:
    _check(0 <= args.hard_pod_affinity_weight <= 100, f"{path}.hardPodAffinityWeight", "not in valid range [0, 100]")


def _check_spread(args: PodTopologySpreadArgs, path: str) -> None:
    listed = args.default_constraints
    _check(args.constraints is not None or not listed, f"{path}.defaultingType", "when .defaultConstraints are not empty")
    for number, each in enumerate(listed):
        where = f"{path}.defaultConstraints[{number}]"
        _check(each.max_skew > 0, f"{where}.maxSkew", "not in valid range (0, inf)")
        _check(bool(each.topology_key), f"{where}.topologyKey", "can not be empty")
        _check(not qualified_name(each.topology_key), f"{where}.topologyKey", f"{each.topology_key!r} is no key of a label")
        known = each.when_unsatisfiable in ("DoNotSchedule", "ScheduleAnyway")
        _check(known, f"{where}.whenUnsatisfiable", "must be DoNotSchedule or ScheduleAnyway")
        text = "constraint must not define a selector, as they deduced for each pod"
        _check(each.label_selector is None, f"{where}.labelSelector", text)
        twin = any((o.topology_key, o.when_unsatisfiable) == (each.topology_key, each.when_unsatisfiable) for o in listed[:number])
        _check(not twin, where, f"{{{each.topology_key}, {each.when_unsatisfiable}}} is there already")


def _check_affinity(args: NodeAffinityArgs, path: str) -> None:
    added = args.added_affinity
    terms: list[tuple[str, NodeSelectorTerm]] = []
    if added is not None and added.required is not None:
        where = f"{path}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        _check(bool(added.required.node_selector_terms), where, "there must be one")
        terms += [(f"{where}[{number}]", term) for number, term in enumerate(added.required.node_selector_terms)]
    if added is not None:
        where = f"{path}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        terms += [(f"{where}[{number}].preference", each.preference) for number, each in enumerate(added.preferred)]
    for where, term in terms:
        for number, expression in enumerate(term.match_expressions):
            _check(expression.operator in _OPERATORS, f"{where}.matchExpressions[{number}].operator", "is no operator")
        for number, expression in enumerate(term.match_fields):
            known = expression.key == "metadata.name" and expression.operator in ("In", "NotIn")
            _check(known, f"{where}.matchFields[{number}]", "only metadata.name is known, In or NotIn")


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def _check_strategy(strategy: ScoringStrategyArgs, path: str) -> None:
    for number, each in enumerate(strategy.resources):
        _check(1 <= each.weight <= 100, f"{path}.resources[{number}].weight", f"{each.weight} is not between 1 and 100")
    if strategy.type != "RequestedToCapacityRatio":
        text = "must be nil when type is not RequestedToCapacityRatio"
        _check(strategy.requested_to_capacity_ratio is None, f"{path}.requestedToCapacityRatio", text)
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


_ARGUMENTS: Mapping[str, tuple[str, type[Any], Callable[[Any, str], None]]] = {
    "NodeResourcesFit": ("fit", NodeResourcesFitArgs, _check_fit),
    "NodeResourcesBalancedAllocation": ("balanced", BalancedAllocationArgs, _check_balanced),
    "DefaultPreemption": ("preemption", DefaultPreemptionArgs, _check_preemption),
    "InterPodAffinity": ("interpod", InterPodAffinityArgs, _check_interpod),
    "PodTopologySpread": ("spread", PodTopologySpreadArgs, _check_spread),
    "NodeAffinity": ("affinity", NodeAffinityArgs, _check_affinity),
}
"""Of each plugin with arguments: its field in ``Arguments``, their shape, and what must be true of them."""


def _percentage(value: int, path: str) -> None:
    _check(0 <= value <= 100, path, f"{value} is not between 0 and 100")


def _check(holds: bool, path: str, message: str) -> None:
    if not holds:
        raise SchedulerConfigError(f"{path}: {message}")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
