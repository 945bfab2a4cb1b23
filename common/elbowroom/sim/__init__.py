"""The simulated host: machines on a virtual clock, with a bus and disks that a seed lets fail."""

from elbowroom.sim.client import Client, Pending
from elbowroom.sim.disk import SimDisk
from elbowroom.sim.network import Disturbance
from elbowroom.sim.world import BEGINNING, World

__all__ = ["BEGINNING", "Client", "Disturbance", "Pending", "SimDisk", "World"]
