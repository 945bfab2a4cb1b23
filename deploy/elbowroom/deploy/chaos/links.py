"""A cluster whose links run through a relay, and the orders to it."""

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from elbowroom.deploy import control
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.topology import Topology
from elbowroom.host.spec import MachineSpec


@dataclass(frozen=True)
class RelayedTopology(Topology):
    """The services' own, but whoever dials goes through ``relay`` (its control socket), and the API server forgets early, so that
    clients that come back late are told so."""

    relay: str = ""
    apiserver_config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shares_connections(self) -> bool:
        """Where links run through a relay, each is one."""
        return super().shares_connections and not self.relay

    def apiserver(self, facade: dict[str, Any]) -> MachineSpec:
        made = super().apiserver(facade)
        return msgspec.structs.replace(made, config={**made.config, **self.apiserver_config})

    def service(self, name: str) -> MachineSpec:
        return self._through(super().service(name))

    def kubelet(self, node: str) -> MachineSpec:
        return self._through(super().kubelet(node))

    def _through(self, spec: MachineSpec) -> MachineSpec:
        if not self.relay:
            return spec
        return msgspec.structs.replace(spec, dial={peer: self._link(spec.name, peer, back) for peer, back in spec.dial.items()})

    def _link(self, dialer: str, listener: str, back: str) -> str:
        name = hashlib.blake2s(f"{dialer}>{listener}".encode(), digest_size=8).hexdigest()
        front = f"ipc://{self.sockets}/via-{name}.sock"
        control.ask(Path(self.relay), {"do": "link", "dialer": dialer, "listener": listener, "front": front, "back": back})
        return front


class RelayProcess:
    """A relay as a child of this process; a context that ends it. ``begin`` and ``heal`` are its orders."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.path = folder / "relay.sock"
        command = [sys.executable, "-m", "elbowroom.deploy.chaos.relay", str(self.path), str(seed)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != b"ready":
            self._process.kill()
            raise UserError("the relay of the links did not start")

    def __enter__(self) -> "RelayProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate()

    @property
    def pid(self) -> int:
        return self._process.pid

    def links(self) -> list[tuple[str, str]]:
        """Who dials whom."""
        return [(a, b) for a, b in control.ask(self.path, {"do": "links"})["ok"]]

    def begin(self, number: str, fault: Mapping[str, Any]) -> None:
        control.ask(self.path, {"do": "begin", "id": number, "fault": dict(fault)})

    def heal(self, number: str) -> dict[str, int]:
        """End a fault; how many frames went wrong, by how."""
        hits: dict[str, int] = control.ask(self.path, {"do": "heal", "id": number})["ok"]
        return hits
