"""The four layers of a pod's resources, each read where it really is.

Desired is what the spec asks for, allocated what the kubelet has promised, actuated what it last carried out (its own record on
its disk), actual what the runtime reports; and the cgroup is what the emulated kernel was told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.api import quantity


@dataclass(frozen=True, slots=True)
class Layers:
    """One container's memory in bytes, layer by layer; None where a layer says nothing."""

    desired: int | None
    allocated: int | None
    actuated: int | None
    actual: int | None
    cgroup_max: int | None

    def all_are(self, bytes_wanted: int) -> bool:
        """Do all layers agree on that value?"""
        return {self.desired, self.allocated, self.actuated, self.actual, self.cgroup_max} == {bytes_wanted}


def of(pod: Mapping[str, Any], container: str, data: Path, cgroups: list[dict[str, Any]]) -> Layers:
    """The layers of a container of ``pod``. ``data`` is the cluster's data directory, ``cgroups`` the node proxy's answer."""
    spec = _named(pod["spec"]["containers"], container)
    status = _named(pod.get("status", {}).get("containerStatuses", []), container)
    metadata = pod["metadata"]
    written = next(
        (
            cgroup.get("memoryMax")
            for cgroup in cgroups
            if (cgroup.get("namespace"), cgroup.get("pod"), cgroup.get("container"))
            == (metadata["namespace"], metadata["name"], container)
        ),
        None,
    )
    return Layers(
        desired=_memory(spec.get("resources", {}).get("requests")),
        allocated=_memory(status.get("allocatedResources")),
        actuated=_actuated(data, pod, container),
        actual=_memory(status.get("resources", {}).get("requests")),
        cgroup_max=written,
    )


def rows(before: Layers, after: Layers) -> list[tuple[str, str, str, str]]:
    """A table of both, with where each layer was read."""
    found = [
        ("desired", before.desired, after.desired, "spec.containers[].resources"),
        ("allocated", before.allocated, after.allocated, "status.containerStatuses[].allocatedResources"),
        ("actuated", before.actuated, after.actuated, "the kubelet's actuated_pods_state"),
        ("actual", before.actual, after.actual, "status.containerStatuses[].resources"),
        ("memory.max", before.cgroup_max, after.cgroup_max, "the container's cgroup"),
    ]
    return [("layer", "before", "after", "read from")] + [(name, _shown(b), _shown(a), where) for name, b, a, where in found]


def _actuated(data: Path, pod: Mapping[str, Any], container: str) -> int | None:
    path = data / "nodes" / pod["spec"].get("nodeName", "") / "kubelet" / "actuated_pods_state"
    try:
        outer = msgspec.json.decode(path.read_bytes())
        entry = msgspec.json.decode(outer["data"])["entries"][pod["metadata"]["uid"]]
        return _memory(entry["ContainerResources"][container].get("requests"))
    except (OSError, KeyError, msgspec.MsgspecError):
        return None


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next((entry for entry in entries if entry.get("name") == name), {})


def _memory(resources: Mapping[str, str] | None) -> int | None:
    memory = (resources or {}).get("memory")
    return None if memory is None else quantity.value_of(memory)


def _shown(amount: int | None) -> str:
    return "-" if amount is None else quantity.format_bytes(amount)
