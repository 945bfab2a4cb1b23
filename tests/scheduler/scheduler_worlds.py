"""Snapshots and prepared pods from documents, for tests of single decisions."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from scheduler_cluster import START, Document

from elbowroom.api.gates import Profile, profile_of
from elbowroom.api.objects import Node, Pod, PodDisruptionBudget
from elbowroom.api.selectors import Requirement, Selector
from elbowroom.scheduler.cache import Cache, Snapshot
from elbowroom.scheduler.framework import Filters, Plugin, Status, prepare_filters
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.nominator import Nominator
from elbowroom.scheduler.plugins import default_plugins
from elbowroom.scheduler.podgroups import PodGroup
from elbowroom.scheduler.podinfo import PodInfo
from elbowroom.scheduler.preemption import World, budget_of


class Nobody:
    """A lookup that knows nothing but some namespaces' labels, and which labels make pods belong together."""

    def __init__(self, namespaces: Mapping[str, dict[str, str]] | None = None, together: Mapping[str, str] | None = None) -> None:
        self.namespaces = namespaces or {}
        self.together = together or {}

    def node(self, name: str) -> Node | None:
        return None

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        return self.namespaces.get(name, {})

    def belonging(self, pod: Pod) -> Selector:
        return Selector(tuple(Requirement(key, "=", (value,)) for key, value in self.together.items()))

    def pod_group(self, key: str) -> PodGroup | None:
        return None

    def members(self, key: str) -> Sequence[str]:
        return ()

    def placed(self, key: str) -> int:
        return 0

    def is_preempting(self, uid: str) -> bool:
        return False


def info_of(document: Document) -> PodInfo:
    return PodInfo(msgspec.convert(document, Pod))


def node_of(document: Document) -> Node:
    return msgspec.convert(document, Node)


def snapshot_of(nodes: Sequence[Document], pods: Sequence[Document] = ()) -> Snapshot:
    cache = Cache()
    for each in nodes:
        cache.set_node(node_of(each))
    for each in pods:
        cache.set_pod(msgspec.convert(each, Pod))
    snapshot = Snapshot()
    snapshot.refresh(cache)
    return snapshot


def world_of(nodes: Sequence[Document], pods: Sequence[Document] = (), budgets: Sequence[Document] = (), **more: Any) -> World:
    parsed = [budget_of(msgspec.convert(each, PodDisruptionBudget)) for each in budgets]
    return World(snapshot_of(nodes, pods), Nominator(), parsed, START, **more)


def plugins_of(
    profile: Profile | None = None,
    namespaces: Mapping[str, dict[str, str]] | None = None,
    together: Mapping[str, str] | None = None,
) -> list[Plugin]:
    return default_plugins(profile or profile_of("lab"), Nobody(namespaces, together))


def filters_for(document: Document, snapshot: Snapshot, plugins: Sequence[Plugin] | None = None) -> Filters:
    from elbowroom.scheduler.podinfo import is_deferred

    info = info_of(document)
    is_resize = bool(info.pod.spec.node_name) and is_deferred(info.pod)
    return prepare_filters(plugins or plugins_of(), info, snapshot, is_resize)


def refusal(
    document: Document, nodes: Sequence[Document], pods: Sequence[Document] = (), on: str = "n1", **more: Any
) -> Status | None:
    """What the filters say of a pod on one node."""
    snapshot = snapshot_of(nodes, pods)
    found = snapshot.get(on)
    assert found is not None
    return filters_for(document, snapshot, plugins_of(**more)).check(found)


def scores(
    name: str, document: Document, nodes: Sequence[Document], pods: Sequence[Document] = (), **more: Any
) -> list[int] | None:
    """The normalised scores of one plugin, or None if it skips the pod."""
    snapshot = snapshot_of(nodes, pods)
    (plugin,) = [each for each in plugins_of(**more) if each.name == name]
    scorer = plugin.pre_score(info_of(document), snapshot.nodes, snapshot)
    if scorer is None:
        return None
    found: list[NodeInfo] = snapshot.nodes
    return scorer.normalised(found, [scorer.score(each) for each in found])
