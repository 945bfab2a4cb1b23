"""Pods that have been promised a node, though they are not on it yet (SC-36).

Only pods without a node of their own are here, so a deferred resize never is.
"""

from collections.abc import Iterator, Sequence

from elbowroom.api.objects import Pod
from elbowroom.scheduler.podinfo import PodInfo


class Nominator:
    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._pods: dict[str, dict[str, PodInfo]] = {}
        self._versions: dict[str, int] = {}
        """Of each node that ever was promised to somebody, the last change last."""
        self._changes = 0

    def __bool__(self) -> bool:
        """Is anything promised to anybody?"""
        return bool(self._pods)

    def node_of(self, uid: str) -> str:
        """The node promised to the pod; empty if none."""
        return self._node_of.get(uid, "")

    @property
    def nodes(self) -> list[str]:
        """The nodes that are promised to somebody."""
        return list(self._pods)

    def on(self, node: str) -> Sequence[PodInfo]:
        """The pods nominated to a node."""
        pods = self._pods.get(node)
        return list(pods.values()) if pods else ()

    def version(self, node: str) -> int:
        """A higher one after each change of what is promised on the node."""
        return self._versions.get(node, 0)

    @property
    def changes(self) -> int:
        """The version of the last change."""
        return self._changes

    def changed_since(self, version: int) -> Iterator[str]:
        """The nodes on which something was promised or taken back after that."""
        for node in reversed(self._versions):
            if self._versions[node] <= version:
                return
            yield node

    def nominate(self, info: PodInfo, node: str) -> None:
        """Promise the node; an empty one takes the promise back."""
        self.remove(info.uid)
        if node and not info.pod.spec.node_name:
            self._node_of[info.uid] = node
            self._pods.setdefault(node, {})[info.uid] = info
            self._changed(node)

    def seen(self, info: PodInfo, old: Pod | None) -> None:
        """The informer showed the pod. A promise that is in no version of it yet is our own, and stays."""
        written = info.pod.status.nominated_node_name
        before = old.status.nominated_node_name if old is not None else ""
        node = written if written or before else self.node_of(info.uid)
        self.nominate(info, node)

    def remove(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is not None:
            self._pods[node].pop(uid)
            self._changed(node)
            if not self._pods[node]:
                del self._pods[node]

    def _changed(self, node: str) -> None:
        self._changes += 1
        self._versions.pop(node, None)
        self._versions[node] = self._changes
