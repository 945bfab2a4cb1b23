"""What a plugin is: upstream's scheduling framework in small.

A plugin is prepared once for each pod that is tried: ``pre_filter`` and ``pre_score`` look at the pod and answer with an
object that judges nodes, or with None where the plugin has nothing to say about that pod (upstream's Skip). So a pod
without ports, selectors and affinities costs no more than its resources.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from elbowroom.api.resources import Resources
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.clusterevents import Action
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podinfo import PodInfo
from elbowroom.scheduler.status import Code, Status, Wait

if TYPE_CHECKING:
    from elbowroom.scheduler.columns import Column, Columns, Rows

__all__ = ["Code", "Filters", "Framework", "Hint", "Interest", "NodeFilter", "Plugin", "Prepared", "Scorer", "Status"]

SCORE_MAX = 100
REMEMBERED_MAX = 4096
"""How much a node remembers at most (``NodeInfo.memo``)."""


class NodeFilter:
    """A filter plugin prepared for one pod. ``with_pod`` and ``without_pod`` follow a simulated change of a node."""

    key: object = None
    """Equal for pods that this filter cannot tell apart, if it looks at nothing but the node (and, unless it has a twin, at none of
    the pods there); None: ask each time."""

    has_twin = False
    """Can it judge many nodes at once (``codes``), and a node by its sums (``beside``)?"""

    def check(self, node: NodeInfo) -> Status | None:
        """Why the pod cannot run on that node; None if it can."""
        raise NotImplementedError

    def codes(self, columns: "Columns", rows: "Rows") -> "Column":
        """The twin of ``check``: 0 for each node that passes, else what ``refusal`` understands."""
        raise NotImplementedError

    def refusal(self, node: NodeInfo, code: int) -> Status | None:
        """What ``check`` says of a node with that code."""
        raise NotImplementedError

    def beside(self, node: NodeInfo, pods: int, requested: Resources) -> Status | None:
        """What ``check`` would say if so many pods were on the node, and requested that much."""
        raise NotImplementedError

    def with_pod(self, node: NodeInfo, added: PodInfo) -> None:
        """``added`` was put on the node, in simulation."""

    def without_pod(self, node: NodeInfo, removed: PodInfo) -> None:
        """``removed`` was taken from the node, in simulation."""

    def copy(self) -> Self:
        """A copy whose simulated changes are its own; a filter that looks at the node alone needs none."""
        return self


class Scorer:
    """A score plugin prepared for one pod and the nodes where it fits."""

    def score(self, node: NodeInfo) -> int:
        raise NotImplementedError

    def scores(self, nodes: Sequence[NodeInfo]) -> list[int]:
        return [self.score(node) for node in nodes]

    def column(self, nodes: Sequence[NodeInfo], columns: "Columns", rows: "Rows") -> "Column | None":
        """The twin of ``scores``, normalised, for the nodes in these rows; None where there is none for this pod."""
        return None

    def normalised(self, nodes: Sequence[NodeInfo], scores: list[int]) -> list[int]:
        """The scores as 0..100 (SC-71)."""
        return scores


@dataclass(frozen=True, slots=True)
class Prepared:
    """The answer of ``pre_filter``: a filter to ask for each node, and the names of the only nodes worth asking, if limited; or why
    no node needs to be asked at all.
    """

    filter: NodeFilter | None = None
    nodes: frozenset[str] | None = None
    refusal: Status | None = None


Hint = Callable[[PodInfo, Any, Any], bool]
"""Should the waiting pod be tried again, now that the object changed from one view (None: it came) to another (None: it went)?"""


@dataclass(frozen=True, slots=True)
class Interest:
    """A plugin wants to know of ``action`` on ``resource``: a pod that it rejected is woken if ``hint`` says so, or has no hint."""

    resource: str
    action: Action
    hint: Hint | None = None


class Plugin:
    """The base takes no part in anything."""

    name = ""
    weight = 0
    """Of its score; 0: it does not score."""
    for_resizes = False
    """Does it look at deferred resizes at all (SC-84)?"""

    def pre_enqueue(self, info: PodInfo) -> Status | None:
        """Why the pod may not be tried at all for now (SC-8)."""
        return None

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        return None

    def pre_score(self, info: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Scorer | None:
        return None

    def permit(self, info: PodInfo, node: NodeInfo) -> Status | Wait | None:
        """The last word, once a node is chosen: a refusal, or that the pod has to wait before it is bound."""
        return None

    def interests(self) -> Sequence[Interest]:
        """What may make schedulable a pod that this plugin rejected (SC-11)."""
        return ()

    def waits_for(self, info: PodInfo) -> Hashable | None:
        """Equal for pods (of the same node, or of none) of which every hint of this plugin says the same; None: ask about each."""
        return None


@dataclass(frozen=True, slots=True)
class Framework:
    """One profile's plugins by extension point, in order, and what else a cycle must know of it.

    ``candidates``: at least which share (in percent) and how many of the nodes are tried for preemption (SC-107).
    """

    filters: tuple[Plugin, ...]
    scores: tuple[tuple[Plugin, int], ...]
    permits: tuple[Plugin, ...]
    pre_enqueues: tuple[Plugin, ...]
    preempts: bool = True
    percentage: int = 0
    candidates: tuple[int, int] = field(default=(10, 100))

    @staticmethod
    def of(plugins: Sequence[Plugin], percentage: int = 0) -> "Framework":
        """All of them wherever they take part, with their own weights."""
        return Framework(
            tuple(plugins),
            tuple((plugin, plugin.weight) for plugin in plugins if plugin.weight),
            tuple(plugin for plugin in plugins if type(plugin).permit is not Plugin.permit),
            tuple(plugin for plugin in plugins if type(plugin).pre_enqueue is not Plugin.pre_enqueue),
            percentage=percentage,
        )


def normalised(scores: list[int], reverse: bool = False) -> list[int]:
    """Scores scaled so that the largest is 100; ``reverse``: so that the smallest is best (SC-75, SC-76)."""
    highest = max(scores, default=0)
    if highest == 0:
        return [SCORE_MAX if reverse else 0] * len(scores)
    scaled = [SCORE_MAX * score // highest for score in scores]
    return [SCORE_MAX - score for score in scaled] if reverse else scaled


@lru_cache(maxsize=1024)
def _one_key(keys: tuple[object, ...]) -> object:
    """The same object for the same keys: it is looked up at every node, and a tuple would be hashed anew each time."""
    return object()


class Filters:
    """All filters prepared for one pod, in the plugins' order; the first that refuses a node decides (SC-59)."""

    __slots__ = ("_filters", "_key", "_parts", "nodes", "plugins", "refusal", "restricted_by")

    def __init__(
        self,
        filters: list[NodeFilter],
        plugins: tuple[str, ...] = (),
        nodes: frozenset[str] | None = None,
        restricted_by: tuple[str, ...] = (),
    ) -> None:
        self._filters = filters
        keys = tuple(each.key for each in filters)
        self._key = _one_key(keys) if keys and None not in keys else None
        self._parts: tuple[Filters, NodeFilter, Filters] | None = None
        self.plugins = plugins
        """Whose filters they are."""
        self.nodes = nodes
        """The only nodes worth asking; None: all."""
        self.restricted_by = restricted_by
        """The plugins that limited them."""
        self.refusal: Status | None = None
        """Why no node needs to be asked."""

    def check(self, node: NodeInfo) -> Status | None:
        """The first refusal; None if the pod fits. What depends on the node alone is found out once, until the node changes."""
        if self._key is None:
            return self._check(node)
        memo = node.memo
        if self._key in memo:
            found: Status | None = memo[self._key]
            return found
        if len(memo) >= REMEMBERED_MAX:
            memo.clear()  # a node that never changes, in front of pods that all differ
        found = memo[self._key] = self._check(node)
        return found

    def parts(self) -> "tuple[Filters, NodeFilter, Filters] | None":
        """The filters before the one that has a twin, that one, and those behind it; None if there is none."""
        if self._parts is None:
            for index, each in enumerate(self._filters):
                if each.has_twin:
                    self._parts = Filters(self._filters[:index]), each, Filters(self._filters[index + 1 :])
                    break
        return self._parts

    def by_sums(self) -> "tuple[Filters, NodeFilter, Filters] | None":
        """``parts``, if none of them looks at single pods of the node; None if one does."""
        return self.parts() if self._key is not None else None

    @property
    def is_empty(self) -> bool:
        return not self._filters

    @property
    def question(self) -> object:
        """Equal for pods that these filters cannot tell apart, if they look at nothing but the node; None: they look at more."""
        return self._key

    def passing(self, nodes: Sequence[NodeInfo], enough: int, refusals: dict[str, Status]) -> list[NodeInfo]:
        """The nodes where the pod fits, in order, until ``enough`` (0: all) are found; those before that refuse it come into
        ``refusals``. Like ``check`` for each, without a call for what is remembered: this is the scheduler's hottest loop.
        """
        key, check, found = self._key, self.check, list[NodeInfo]()
        left = enough or len(nodes)
        for node in nodes:
            memo = node.memo
            status = memo[key] if key in memo else check(node)
            if status is None:
                found.append(node)
                left -= 1
                if not left:
                    break
            else:
                refusals[node.name] = status
        return found

    def _check(self, node: NodeInfo) -> Status | None:
        for prepared in self._filters:
            status = prepared.check(node)
            if status is not None:
                return status
        return None

    def with_pod(self, node: NodeInfo, added: PodInfo) -> None:
        """Put a pod on the (copied) node, in simulation."""
        node.add(added)
        for prepared in self._filters:
            prepared.with_pod(node, added)

    def without_pod(self, node: NodeInfo, removed: PodInfo) -> None:
        """Take a pod from the (copied) node, in simulation."""
        node.remove(removed.uid)
        for prepared in self._filters:
            prepared.without_pod(node, removed)

    def copy(self) -> "Filters":
        return Filters([prepared.copy() for prepared in self._filters], self.plugins, self.nodes, self.restricted_by)


def prepare_filters(plugins: Sequence[Plugin], info: PodInfo, snapshot: Snapshot, is_resize: bool) -> Filters:
    """Ask each plugin what it makes of the pod; of a deferred resize only those that look at resizes (SC-84)."""
    filters: list[NodeFilter] = []
    nodes: frozenset[str] | None = None
    restricted: list[str] = []
    names: list[str] = []
    for plugin in plugins:
        if is_resize and not plugin.for_resizes:
            continue
        prepared = plugin.pre_filter(info, snapshot)
        if prepared is None:
            continue
        if prepared.refusal is not None:
            refused = Filters([], tuple(names))
            refused.refusal = prepared.refusal
            return refused
        if prepared.filter is not None:
            filters.append(prepared.filter)
            names.append(plugin.name)
        if prepared.nodes is not None:
            nodes = prepared.nodes if nodes is None else nodes & prepared.nodes
            restricted.append(plugin.name)
    return Filters(filters, tuple(names), nodes, tuple(restricted))
