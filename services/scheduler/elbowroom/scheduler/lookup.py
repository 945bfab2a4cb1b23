"""What plugins may ask of the scheduler's copies beyond the snapshot."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from elbowroom.api.objects import Node, Pod
from elbowroom.api.selectors import Selector
from elbowroom.scheduler.podgroups import PodGroup


class Lookup(Protocol):
    def node(self, name: str) -> Node | None:
        """The Node as last seen."""
        ...

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace; none if it is not known."""
        ...

    def belonging(self, pod: Pod) -> Selector:
        """What selects the pods that belong to this one; empty if it belongs to nobody."""
        ...

    def pod_group(self, key: str) -> PodGroup | None:
        """The PodGroup ``namespace/name``, where the gate is on and it is there."""
        ...

    def members(self, key: str) -> Sequence[str]:
        """The uids of its pods that are there."""
        ...

    def placed(self, key: str) -> int:
        """How many of them have a node, bound or not."""
        ...

    def is_preempting(self, uid: str) -> bool:
        """Is the pod's own preemption still being carried out (SC-118)?"""
        ...
