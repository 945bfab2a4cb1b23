"""What a supervisor is to bring up, after checking that it can be."""

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elbowroom.api import quantity
from elbowroom.api.objects import Node
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
    asks_for_nodes: bool = False
    """Somebody said which nodes there are to be."""


def plan(home: Home, cluster: config.Cluster, data_dir: Path | None = None, port: int = 0, host: str = "127.0.0.1") -> Plan:
    """The plan, after checking that it can be carried out as things are."""
    if home.is_running():
        raise UserError(f"cluster {home.name!r} is up already; 'elbowroom down --name {home.name}' first, or choose another --name")
    if cluster.spec.placement == "ray":
        actors.check_installed()
    if port and not is_free(port, host):
        raise UserError(f"port {port} is in use; choose another with --port, or leave it out")
    if data_dir is None:
        home.make()
    data = (data_dir or home.default_data).absolute()
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as why:
        raise UserError(f"--data-dir {data}: {why.strerror}") from why
    home.make()
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


def kept_nodes(wanted: Sequence[Mapping[str, Any]], found: Mapping[str, Node]) -> str:
    """In which nodes a cluster is another than the manifests ask for, since it was there before; empty if in none."""
    asked = {manifest["metadata"]["name"]: manifest["status"]["capacity"] for manifest in wanted}
    other = [name for name, capacity in asked.items() if name in found and not _is_as_asked(found[name], capacity)]
    extra = sorted(found.keys() - asked.keys())
    parts = []
    if other:
        parts.append(f"{_some(other)} {'has' if len(other) == 1 else 'have'} the CPUs and memory of before")
    if extra:
        parts.append(f"{_some(extra)} {'is' if len(extra) == 1 else 'are'} there too")
    return ", ".join(parts)


def _is_as_asked(node: Node, capacity: Mapping[str, str]) -> bool:
    has = node.status.capacity
    return all(quantity.parse(has.get(name, "0")) == quantity.parse(capacity[name]) for name in ("cpu", "memory"))


def _some(names: Sequence[str]) -> str:
    rest = len(names) - 3
    return ", ".join(names[:3]) + (f" and {rest} more" if rest > 0 else "")
