"""Prefers nodes that have the pod's images already (SC-79)."""

from collections.abc import Sequence

from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.framework import SCORE_MAX, Plugin, Scorer
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podinfo import PodInfo

MIB = 1024 * 1024
LEAST_BYTES = 23 * MIB
MOST_BYTES_PER_CONTAINER = 1000 * MIB


class ImageLocality(Plugin):
    name = "ImageLocality"
    weight = 1

    def pre_score(self, info: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Scorer | None:
        containers = [*info.pod.spec.init_containers, *info.pod.spec.containers]
        wanted = [normalised_name(container.image) for container in containers if container.image]
        spread = {image: 0 for image in wanted}
        for node in snapshot.with_images:
            for image in spread:
                spread[image] += _size(node, image) > 0
        if not any(spread.values()):
            return None
        return _Locality(wanted, spread, len(snapshot.nodes), len(containers))


def normalised_name(image: str) -> str:
    """An image without tag means ``latest``."""
    return image if ":" in image.rsplit("/", 1)[-1] or "@" in image else f"{image}:latest"


def _size(node: NodeInfo, image: str) -> int:
    assert node.node is not None, "a snapshot holds real nodes only"
    return next((held.size_bytes for held in node.node.status.images if image in held.names), 0)


class _Locality(Scorer):
    def __init__(self, wanted: list[str], spread: dict[str, int], nodes: int, containers: int) -> None:
        self._wanted, self._spread, self._nodes = wanted, spread, nodes
        self._most = MOST_BYTES_PER_CONTAINER * containers

    def score(self, node: NodeInfo) -> int:
        # An image that many nodes have counts for more, or the first node to have it would get every pod.
        total = sum(int(_size(node, image) * self._spread[image] / self._nodes) for image in self._wanted)
        clipped = min(max(total, LEAST_BYTES), self._most)
        return SCORE_MAX * (clipped - LEAST_BYTES) // (self._most - LEAST_BYTES)
