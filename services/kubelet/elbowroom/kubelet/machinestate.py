"""What has befallen an emulated machine: the annotation ``elbowroom.dev/machine-state`` of its Node (JSON).

``shuttingDown`` is what logind would announce, its being taken back the cancellation; ``pressure`` lists the conditions that hold:
``MemoryPressure``, ``DiskPressure``, ``PIDPressure``.
"""

from dataclasses import dataclass

import msgspec

from elbowroom.api.objects import Node

MACHINE_STATE = "elbowroom.dev/machine-state"
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
SHUTTING_DOWN = "node is shutting down"


@dataclass(frozen=True, slots=True)
class MachineState:
    """``shutting_down``: nothing is admitted any more. ``pressure``: the conditions that hold, in the order of ``PRESSURES``."""

    shutting_down: bool = False
    pressure: tuple[str, ...] = ()


def state_of(node: Node) -> MachineState:
    """As the annotation tells it; what it tells in another form than it should is not told."""
    try:
        said = msgspec.json.decode(node.metadata.annotations.get(MACHINE_STATE) or "{}")
    except (msgspec.MsgspecError, RecursionError):
        said = {}
    if not isinstance(said, dict):
        said = {}
    pressure = said.get("pressure")
    listed = pressure if isinstance(pressure, list) else []
    return MachineState(said.get("shuttingDown") is True, tuple(kind for kind in PRESSURES if kind in listed))
