"""A cluster in a container, for testcontainers (extra ``containers``): ``with ElbowroomContainer() as container: ...``.

The image is that of deploy/Containerfile (``make image``).
"""

import io
import json
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import yaml
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from elbowroom.history.files import load
from elbowroom.history.records import History
from elbowroom.testing.cluster import Api, Document
from elbowroom.testing.workspace import Workspace

IMAGE = "elbowroom:latest"
PORT = 6443
HOME = "/var/lib/elbowroom/default"
START_SECONDS = 60


class ElbowroomContainer(DockerContainer):
    """A container that is started once all nodes are Ready. ``up`` are options of ``elbowroom up``.

    The API is at a published port of the engine's host; with ``host_network`` the container shares the host's network and serves at
    a free port of 127.0.0.1 (for engines without a bridge). ``kubeconfig`` is a file beside the test; ``cluster`` can be broken and
    judged; ``workspace`` has the pytest fixture's helpers.
    """

    def __init__(
        self, image: str = IMAGE, *, up: Sequence[str] = ("--nodes", "2"), host_network: bool = False, **options: Any
    ) -> None:
        super().__init__(image, **options)
        self._host_network = host_network
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._cluster: ContainedCluster | None = None
        if host_network:
            self.with_kwargs(network_mode="host")
            self.with_command(["up", *up])
        else:
            self.with_exposed_ports(PORT)
            self.with_command(["up", "--all-addresses", "--port", str(PORT), *up])
        ready = LogMessageWaitStrategy(r"nodes Ready after").with_startup_timeout(START_SECONDS).with_poll_interval(0.1)
        self.waiting_for(ready)

    def start(self) -> Self:
        super().start()
        self._folder = tempfile.TemporaryDirectory(prefix="elbowroom-container-")
        kubeconfig = Path(self._folder.name) / "kubeconfig"
        config = yaml.safe_load(self.read(f"{HOME}/kubeconfig"))
        if not self._host_network:
            server = f"https://{self.get_container_host_ip()}:{self.get_exposed_port(PORT)}"
            config = served_at(config, server)
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(yaml.safe_dump(config))
        self._cluster = ContainedCluster(self, kubeconfig)
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
        super().stop(force, delete_volume)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @property
    def cluster(self) -> "ContainedCluster":
        """The cluster; AssertionError unless the container is started."""
        assert self._cluster is not None, "the container is not started"
        return self._cluster

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig, which leads there from here."""
        return self.cluster.kubeconfig

    def workspace(self, namespace: str) -> Workspace:
        """A namespace with the helpers of docs/testing.md: a context."""
        return Workspace(self.cluster, namespace)

    def elbowroom(self, *arguments: str) -> str:
        """What an elbowroom command printed in the container; AssertionError unless it exited with 0."""
        done = self.exec(["elbowroom", *arguments])
        told = (done.output or b"").decode()
        assert done.exit_code == 0, f"elbowroom {' '.join(arguments)}: exit {done.exit_code}\n{told}"
        return told

    def read(self, path: str) -> str:
        """A file's text."""
        done = self.exec(["cat", path])
        assert done.exit_code == 0, f"{path}: {(done.output or b'').decode()}"
        return (done.output or b"").decode()

    def copy_out(self, path: str, folder: Path) -> None:
        """A folder of the container, as it is now, under ``folder``."""
        chunks, _ = self.get_wrapped_container().get_archive(path)
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            archive.extractall(folder, filter="data")


class ContainedCluster(Api):
    """The cluster in a container: what a ``Workspace`` asks of it."""

    def __init__(self, container: ElbowroomContainer, kubeconfig: Path) -> None:
        super().__init__(kubeconfig)
        self._container = container

    def kill(self, component: str, *, signal: str = "KILL", at: str | None = None, hits: int = 1, stay_dead: bool = False) -> None:
        """``elbowroom kill`` in the container."""
        where = [] if at is None else ["--at", at, "--hits", str(hits)]
        self._container.elbowroom("kill", component, "--signal", signal, *where, *(["--stay-dead"] if stay_dead else []))

    def status(self) -> Document:
        """What ``elbowroom status -o json`` prints there."""
        found: Document = json.loads(self._container.elbowroom("status", "-o", "json"))
        return found

    def restarts(self, component: str) -> int:
        return int(next(c["restarts"] for c in self.status()["components"] if c["name"] == component))

    def history(self) -> History:
        """All that was recorded so far."""
        with tempfile.TemporaryDirectory(prefix="elbowroom-history-") as folder:
            self._container.copy_out(f"{HOME}/history", Path(folder))
            return load(folder)


def served_at(kubeconfig: Document, server: str) -> Document:
    """The same kubeconfig for a server that is reached at another address."""
    clusters = [{**entry, "cluster": {**entry["cluster"], "server": server}} for entry in kubeconfig["clusters"]]
    return {**kubeconfig, "clusters": clusters}
