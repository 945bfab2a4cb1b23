"""What the scheduler believes of the nodes and the pods on them, and the still picture of it that a cycle works with.

The cache follows the informers and the scheduler's own decisions: a pod for which a binding is under way is *assumed*, so that the
next cycle sees its room taken. Sums are kept incrementally, and ``Snapshot.refresh`` copies only what changed since its last one,
so the cost of a cycle does not grow with the pods that stay where they are.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from elbowroom.api import resources
from elbowroom.api.objects import Node, Pod
from elbowroom.machine import Instant
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podinfo import PodInfo

if TYPE_CHECKING:  # a snapshot makes its columns only once it is large enough, and small clusters never load NumPy
    from elbowroom.scheduler.columns import Columns


class Cache:
    """All assigned pods under their uids (SC-38), terminating ones too, and all nodes.

    A node's name may have pods before the Node is seen, or after it is gone; such a node is in no snapshot.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        """In the order of their last change, oldest first."""
        self._order: dict[str, None] = {}
        """The names of real nodes, in the order in which they came."""
        self._pods: dict[str, PodInfo] = {}
        """Each counts on the node that its spec names."""
        self._assumed: dict[str, None] = {}
        self._expiring: dict[str, Instant] = {}
        self._generation = 0
        self.membership = 0
        """Rises when a node comes or goes."""

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def node_names(self) -> list[str]:
        return list(self._order)

    @property
    def assumed_count(self) -> int:
        return len(self._assumed)

    def node(self, name: str) -> NodeInfo | None:
        """The live tally of a node; only to look at."""
        return self._nodes.get(name)

    def pod(self, uid: str) -> PodInfo | None:
        return self._pods.get(uid)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def set_node(self, node: Node) -> None:
        """A Node came or changed."""
        allocatable = resources.of(node.status.allocatable)
        if node.name not in self._order:
            self._order[node.name] = None
            self.membership += 1
        self._touched(node.name).set_node(node, allocatable)

    def remove_node(self, name: str) -> None:
        """The Node is gone; its pods are counted until they go, too."""
        if self._order.pop(name, ...) is ...:
            return
        self.membership += 1
        self._touched(name).set_node(None, {})
        self._sweep(name)

    def set_pod(self, pod: Pod) -> PodInfo:
        """An assigned pod was seen: it is counted (anew), and an assumption confirmed, or corrected if it went elsewhere."""
        info = PodInfo(pod)
        self.remove_pod(pod.uid)
        self._count(info)
        return info

    def remove_pod(self, uid: str) -> PodInfo | None:
        """The pod is gone (or has ended): it holds no room any more."""
        info = self._pods.get(uid)
        if info is not None:
            self._uncount(info)
        return info

    def assume(self, info: PodInfo) -> None:
        """Count a pod that is about to be bound to the node that ``info`` names (``PodInfo.at``)."""
        assert info.uid not in self._pods, f"pod {info.uid}({info.key}) is in the cache, so can't be assumed"
        self._count(info)
        self._assumed[info.uid] = None

    def forget(self, uid: str) -> bool:
        """Take back an assumption; False if there is none, since the pod was seen assigned or went away meanwhile."""
        if uid not in self._assumed:
            return False
        self._uncount(self._pods[uid])
        return True

    def expect_by(self, uid: str, at: Instant) -> None:
        """An assumption that the informer does not confirm until ``at`` is given up by ``expired``."""
        if self.is_assumed(uid):
            self._expiring[uid] = at

    def expired(self, now: Instant) -> list[PodInfo]:
        """Forget the assumptions that were due, and tell of whom."""
        due = [self._pods[uid] for uid, at in self._expiring.items() if at <= now]
        for info in due:
            self._uncount(info)
        return due

    def expiry(self) -> Instant | None:
        """When the next assumption is to be given up."""
        return min(self._expiring.values(), default=None)

    def changed_since(self, generation: int) -> Iterator[NodeInfo]:
        """The nodes touched after ``generation``, latest first."""
        for name in reversed(self._nodes):
            info = self._nodes[name]
            if info.generation <= generation:
                return
            yield info

    @property
    def generation(self) -> int:
        return self._generation

    def _count(self, info: PodInfo) -> None:
        self._pods[info.uid] = info
        self._touched(info.pod.spec.node_name).add(info)

    def _uncount(self, info: PodInfo) -> None:
        del self._pods[info.uid]
        self._assumed.pop(info.uid, None)
        self._expiring.pop(info.uid, None)
        name = info.pod.spec.node_name
        self._touched(name).remove(info.uid)
        self._sweep(name)

    def _touched(self, name: str) -> NodeInfo:
        info = self._nodes.pop(name, None) or NodeInfo(name)
        self._generation += 1
        info.generation = self._generation
        self._nodes[name] = info
        return info

    def _sweep(self, name: str) -> None:
        info = self._nodes[name]
        if info.node is None and not info.pods:
            del self._nodes[name]


class Snapshot:
    """The nodes as they were at one moment; the cycle's whole world (SC-42)."""

    def __init__(self) -> None:
        self.nodes: list[NodeInfo] = []
        self.names: list[str] = []
        """Those of ``nodes``, together in memory: thousands are told apart without a look into each node."""
        self._by_name: dict[str, int] = {}
        self._generation = 0
        self._membership = -1
        self._with_affinity: dict[str, None] = {}
        self._with_anti_affinity: dict[str, None] = {}
        self.soft_taints = 0
        """How many nodes bear a PreferNoSchedule taint."""
        self._soft: dict[str, None] = {}
        self._with_images: dict[str, None] = {}
        self._columns: Columns | None = None

    def refresh(self, cache: Cache) -> None:
        """Take over what changed in the cache since the last time."""
        changed = [info.copy() for info in cache.changed_since(self._generation)]
        self._generation = cache.generation
        if self._membership != cache.membership:
            kept = {info.name: info for info in self.nodes}
            kept.update((info.name, info) for info in changed)
            self.names = cache.node_names
            self.nodes = [kept[name] for name in self.names]
            self._by_name = {info.name: index for index, info in enumerate(self.nodes)}
            self._membership = cache.membership
            self._columns = None
        else:
            for info in changed:
                index = self._by_name.get(info.name)
                if index is not None:
                    self.nodes[index] = info
                    if self._columns is not None:
                        self._columns.set(index, info)
        for info in reversed(changed):
            real = info.name in self._by_name
            _mark(self._with_affinity, info.name, real and bool(info.with_affinity))
            _mark(self._with_anti_affinity, info.name, real and bool(info.with_anti_affinity))
            soft = info.node is not None and any(taint.effect == "PreferNoSchedule" for taint in info.node.spec.taints)
            _mark(self._soft, info.name, real and soft)
            _mark(self._with_images, info.name, real and info.node is not None and bool(info.node.status.images))
        self.soft_taints = len(self._soft)

    def row(self, name: str) -> int | None:
        """Where in ``nodes`` that one is."""
        return self._by_name.get(name)

    def get(self, name: str) -> NodeInfo | None:
        index = self._by_name.get(name)
        return self.nodes[index] if index is not None else None

    @property
    def columns(self) -> "Columns":
        """The nodes' figures as columns, in the order of ``nodes``."""
        if self._columns is None:
            from elbowroom.scheduler.columns import Columns

            self._columns = Columns(self.nodes)
        return self._columns

    @property
    def with_images(self) -> list[NodeInfo]:
        """The nodes that tell of images."""
        return [self.nodes[self._by_name[name]] for name in self._with_images]

    @property
    def with_affinity(self) -> list[NodeInfo]:
        """The nodes with pods that have affinities or anti-affinities."""
        return [self.nodes[self._by_name[name]] for name in self._with_affinity]

    @property
    def with_anti_affinity(self) -> list[NodeInfo]:
        """The nodes with pods that have required anti-affinities."""
        return [self.nodes[self._by_name[name]] for name in self._with_anti_affinity]


def _mark(names: dict[str, None], name: str, wanted: bool) -> None:
    if wanted:
        names[name] = None
    else:
        names.pop(name, None)
