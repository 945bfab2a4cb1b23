"""A node on which it is tried out who has to go (SC-37, SC-109): pods are taken and put back, and nothing really changes."""

from collections.abc import Sequence
from typing import Protocol

from elbowroom.scheduler.framework import Filters, NodeFilter
from elbowroom.scheduler.nodeinfo import NodeInfo, count
from elbowroom.scheduler.podinfo import PodInfo
from elbowroom.scheduler.status import Status


class Stage(Protocol):
    """A node in rehearsal for one incoming pod."""

    def take(self, other: PodInfo) -> None:
        """That pod of the node goes."""
        ...

    def put(self, other: PodInfo) -> None:
        """It is back."""
        ...

    def check(self) -> Status | None:
        """Why the incoming pod does not fit now, beside the pods that are promised the node and without them."""
        ...


def stage_for(info: PodInfo, node: NodeInfo, filters: Filters, nominated: Sequence[PodInfo]) -> Stage:
    """A stage for the node as it is."""
    by_sums = filters.by_sums()
    if by_sums is not None:
        return _Sums(info, node, by_sums, nominated)
    return _Copy(info, node, filters, nominated)


class _Copy:
    """A copy of the node and of what the filters know of it: for filters that look at single pods."""

    def __init__(self, info: PodInfo, node: NodeInfo, filters: Filters, nominated: Sequence[PodInfo]) -> None:
        self._info, self._node, self._filters, self._nominated = info, node.copy(), filters.copy(), nominated

    def take(self, other: PodInfo) -> None:
        self._filters.without_pod(self._node, other)

    def put(self, other: PodInfo) -> None:
        self._filters.with_pod(self._node, other)

    def check(self) -> Status | None:
        return check_with_nominated(self._info, self._node, self._filters, self._nominated)


class _Sums:
    """The sums alone: for filters that look at the Node, or at what its pods request together, which is nearly every pod's case.

    Who fits beside more pods fits beside less, so that nothing needs to be asked without the promised ones.
    """

    def __init__(
        self, info: PodInfo, node: NodeInfo, parts: tuple[Filters, NodeFilter, Filters], nominated: Sequence[PodInfo]
    ) -> None:
        before, self._fit, behind = parts
        self._node = node
        self._before, self._behind = before.check(node), behind.check(node)
        self._pods, self._requested = len(node.pods), dict(node.requested)
        for other in promised_to(info, node, nominated):
            self.put(other)

    def take(self, other: PodInfo) -> None:
        self._pods -= 1
        count(self._requested, other.requests, -1)

    def put(self, other: PodInfo) -> None:
        self._pods += 1
        count(self._requested, other.requests, 1)

    def check(self) -> Status | None:
        return self._before or self._fit.beside(self._node, self._pods, self._requested) or self._behind


def promised_to(info: PodInfo, node: NodeInfo, nominated: Sequence[PodInfo]) -> list[PodInfo]:
    """Those nominated to the node who come before the pod, and are not there yet."""
    return [
        other for other in nominated if other.priority >= info.priority and other.uid != info.uid and other.uid not in node.pods
    ]


def check_with_nominated(info: PodInfo, node: NodeInfo, filters: Filters, nominated: Sequence[PodInfo]) -> Status | None:
    """Does the pod fit beside the pods promised this node that are as important, and also without them (SC-37)?"""
    promised = promised_to(info, node, nominated) if nominated else []
    if promised:
        fuller, tried = node.copy(), filters.copy()
        for other in promised:
            tried.with_pod(fuller, other)
        status = tried.check(fuller)
        if status is not None:
            return status
    return filters.check(node)
