"""Pods that have been promised a node, though they are not on it yet (SC-36).

Only pods without a node of their own are here, so a deferred resize never is.
"""

from collections.abc import Sequence

from elbowroom.api.objects import Pod
from elbowroom.scheduler.podinfo import PodInfo


class Nominator:
    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._pods: dict[str, dict[str, PodInfo]] = {}

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

    def nominate(self, info: PodInfo, node: str) -> None:
        """Promise the node; an empty one takes the promise back."""
        self.remove(info.uid)
        if node and not info.pod.spec.node_name:
            self._node_of[info.uid] = node
            self._pods.setdefault(node, {})[info.uid] = info

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
            if not self._pods[node]:
                del self._pods[node]
