"""Which machines a cluster is made of, and where each listens, dials and writes."""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elbowroom.host.shared import INSIDE, TRUNK
from elbowroom.host.spec import DiskSpec, DriverSpec, MachineSpec
from elbowroom.kubelet.config import KUBELET_CONFIG, MACHINE

CONTROL_PLANE = ("apiserver", "scheduler", "controllers")
EMULATED = ("elbowroom.dev/node", "emulated")
_NODE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def is_node_name(name: str) -> bool:
    """May ``name`` stand in a path? (The API server lets no other name in; the data directory is worth a second look.)"""
    return bool(_NODE.fullmatch(name)) and ".." not in name


def hardware_of(annotations: Mapping[str, str]) -> dict[str, Any]:
    """What a runtime must know of its node's annotations; what the kubelet will refuse is left out."""
    found: dict[str, Any] = {}
    for key, option, name, kind in (
        (MACHINE, "cgroupVersion", "cgroup_version", int),
        (KUBELET_CONFIG, "cgroupDriver", "cgroup_driver", str),
    ):
        try:
            value = json.loads(annotations.get(key) or "{}")[option]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(value, kind) and value in (1, 2, "cgroupfs", "systemd"):
            found[name] = value
    return found


def metrics_url(server: str, component: str) -> str | None:
    """Where a component's metrics can be read, if it has any."""
    kind, _, node = component.partition("/")
    match kind:
        case "apiserver":
            return f"{server}/metrics"
        case "scheduler":
            return f"{server}/elbowroom/scheduler/metrics"
        case "kubelet":
            return f"{server}/api/v1/nodes/{node}/proxy/metrics"
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Topology:
    """The machines of one cluster. ``profile`` is ``Profile.as_config()``."""

    sockets: Path
    data: Path
    profile: dict[str, Any]
    store: str
    kubelets_per_process: int = 1
    scheduler: dict[str, Any] = field(default_factory=dict)
    """A KubeSchedulerConfiguration."""

    def apiserver(self, facade: dict[str, Any]) -> MachineSpec:
        """The API server, with its store and its HTTP facade."""
        durable = DiskSpec("elbowroom.apiserver.drivers.sqlite:SqliteDisk", str(self.data / "apiserver.db"))
        return MachineSpec(
            "apiserver",
            "elbowroom.apiserver.machine:build",
            {"profile": self.profile, "store": self.store, **({"audit": True} if "audit" in facade else {})},
            bind=self._address("apiserver"),
            disk=durable if self.store == "sqlite" else DiskSpec("memory"),
            drivers=[DriverSpec("elbowroom.apiserver.drivers.facade:build", facade)],
        )

    def service(self, name: str) -> MachineSpec:
        """The scheduler or the controllers: all they know is in the API server."""
        config = {"profile": self.profile, **({"config": self.scheduler} if name == "scheduler" else {})}
        return MachineSpec(name, f"elbowroom.{name}.machine:build", config, dial={"apiserver": self._address("apiserver")})

    def runtime(self, node: str, hardware: Mapping[str, Any] | None = None) -> MachineSpec:
        """A node's runtime; ``hardware`` is what its annotations say of its cgroups."""
        return MachineSpec(
            f"runtime/{node}",
            "elbowroom.runtime.machine:build",
            {"profile": self.profile, "node": node, **(hardware or {})},
            bind=self._runtime_address(node),
            disk=DiskSpec("boot", str(self._node_data(node) / "runtime")),
        )

    def kubelet(self, node: str) -> MachineSpec:
        return MachineSpec(
            f"kubelet/{node}",
            "elbowroom.kubelet.machine:build",
            {"profile": self.profile, "node": node},
            dial={
                "apiserver": f"{TRUNK if self.shares_connections else ''}{self._address('apiserver')}",
                f"runtime/{node}": self._runtime_address(node),
            },
            disk=DiskSpec("files", str(self._node_data(node) / "kubelet")),
            drivers=[DriverSpec("elbowroom.host.folders:build", {"base": str(self._node_data(node))})],
        )

    @property
    def shares_connections(self) -> bool:
        """Do the machines of a process share its sockets? Thousands could not have their own."""
        return self.kubelets_per_process > 1

    @property
    def apiserver_address(self) -> str:
        return self._address("apiserver")

    @property
    def control_address(self) -> str:
        return self._address("processes")

    def forget(self, spec: MachineSpec) -> None:
        """Remove what a node's machine kept on disk."""
        if spec.disk.kind in ("boot", "files") and spec.disk.path:
            path = Path(spec.disk.path)
            shutil.rmtree(path, ignore_errors=True)
            if path.parent.is_dir() and not any(path.parent.iterdir()):
                path.parent.rmdir()

    def forget_all_nodes(self) -> None:
        """The store keeps nothing over its end, so the nodes' disks speak of pods that nobody knows any more."""
        shutil.rmtree(self._nodes, ignore_errors=True)

    @property
    def _nodes(self) -> Path:
        """Apart for a store in memory, so that one on disk finds its nodes as it left them."""
        return self.data / ("nodes" if self.store == "sqlite" else "volatile-nodes")

    def _node_data(self, node: str) -> Path:
        return self._nodes / node

    def _address(self, name: str) -> str:
        return f"ipc://{self.sockets}/{name}.sock"

    def _runtime_address(self, node: str) -> str:
        if self.shares_connections:
            return f"{INSIDE}//runtime/{node}"
        # A node's name may have 253 characters, a socket's path 107.
        return self._address(f"runtime-{hashlib.blake2s(node.encode(), digest_size=8).hexdigest()}")


class Packing:
    """Which shared process a node's kubelet and runtime go to: the first with room, kept for as long as the node exists.

    Both go to the same: they speak to each other more than to anybody else, and inside a process that takes no socket.
    """

    def __init__(self, per_process: int, *, together: bool = False) -> None:
        """``together``: also the one kubelet of a process has its runtime there."""
        self._per_process, self._together = per_process, together
        self._place: dict[str, int] = {}
        self._taken: dict[int, int] = {}
        """How many nodes each process has."""

    def processes(self, node: str) -> tuple[str, str]:
        """The names of the processes of the node's kubelet and runtime."""
        if self._per_process == 1 and not self._together:
            return f"kubelet/{node}", f"runtime/{node}"
        if node not in self._place:
            number = next(n for n in range(1, len(self._taken) + 2) if self._taken.get(n, 0) < self._per_process)
            self._place[node] = number
            self._taken[number] = self._taken.get(number, 0) + 1
        name = f"nodes-{self._place[node]}"
        return name, name

    def leave(self, node: str) -> None:
        """The node is gone."""
        number = self._place.pop(node, None)
        if number is not None:
            self._taken[number] -= 1
