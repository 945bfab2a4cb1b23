"""How a node's resource managers are configured."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from elbowroom.kubelet.managers.static import StaticPolicy
from elbowroom.kubelet.managers.topology import Topology


@dataclass(frozen=True, slots=True)
class Settings:
    """One node's: both managers' policies, and the topology manager's."""

    topology: Topology = field(default_factory=lambda: Topology.regular(cores_per_numa=4))
    cpu: StaticPolicy | None = None
    """The static CPU policy; None: the policy ``none``."""
    memory: Mapping[int, Mapping[str, int]] | None = None
    """By NUMA node what of each kind of memory is reserved for the system; None: the memory policy ``None``."""
    topology_policy: str = "none"
    scope: str = "container"
    pod_level: bool = False
    """The gate PodLevelResourceManagers."""
    keeps_originals: bool = False
    """What a container is first given is remembered, so that it can be resized (XC-40)."""

    @property
    def manages(self) -> bool:
        """Does any pod of this node get anything of its own?"""
        return self.cpu is not None or self.memory is not None
