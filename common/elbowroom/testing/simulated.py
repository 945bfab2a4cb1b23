"""For tests: when a pod's layers agree."""

from elbowroom.deploy.explore.cluster import SimulatedCluster, is_settled

__all__ = ["SimulatedCluster", "is_settled"]
