"""What a supervisor is to bring up, after checking that it can be."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from elbowroom.deploy import actors, config
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.home import Home
from elbowroom.deploy.topology import Topology
from elbowroom.host.zygote import SERVICES


@dataclass(frozen=True, slots=True)
class Plan:
    """What a supervisor is to bring up. ``topology`` may put other machines in the services' places (tests do)."""

    home: Home
    cluster: config.Cluster
    data: Path
    port: int
    topology: Callable[..., Topology] = Topology
    preload: Sequence[str] = SERVICES
    import_path: Sequence[str] = ()
    host: str = "127.0.0.1"
    """The address that Kubernetes' API is served at."""


def plan(home: Home, cluster: config.Cluster, data_dir: Path | None = None, port: int = 0, host: str = "127.0.0.1") -> Plan:
    """The plan, after checking that it can be carried out as things are."""
    if home.is_running():
        raise UserError(f"cluster {home.name!r} is up already; 'elbowroom down --name {home.name}' first, or choose another --name")
    if cluster.spec.placement == "ray":
        actors.check_installed()
    home.make()
    data = (data_dir or home.default_data).absolute()
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as why:
        raise UserError(f"--data-dir {data}: {why.strerror}") from why
    if port and not is_free(port, host):
        raise UserError(f"port {port} is in use; choose another with --port, or leave it out")
    return Plan(home, cluster, data, port, host=host)


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Can that port of this machine be listened at?"""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True
