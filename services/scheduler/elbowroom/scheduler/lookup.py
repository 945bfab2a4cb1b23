"""What plugins may ask of the scheduler's copies beyond the snapshot."""

from collections.abc import Mapping
from typing import Protocol

from elbowroom.api.objects import Node, Pod
from elbowroom.api.selectors import Selector


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

    def is_preempting(self, uid: str) -> bool:
        """Is the pod's own preemption still being carried out (SC-118)?"""
        ...
