"""The cluster that a figure is taken on: fresh, under a temporary home, gone afterwards."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from elbowroom.deploy import control, launch
from elbowroom.deploy.bench.gauge import Gauge
from elbowroom.deploy.bench.profiles import recordings
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.home import Home


class Other:
    """Somebody else's cluster, of which nothing is known but its API."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.scratch = Path(tempfile.gettempdir())


class Running:
    """A context: a cluster of so many nodes, brought up by the command (with these options too) as a person would."""

    def __init__(self, nodes: int, *options: str) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="elbowroom-bench-"))
        self._home = Home("bench", self.scratch)
        self._nodes, self._options = nodes, options
        self.seconds_to_ready = 0.0
        self._looking = ExitStack()

    def __enter__(self) -> "Running":
        wanted = ["--name", "bench", "--nodes", str(self._nodes), *self._options]
        command = [sys.executable, "-m", "elbowroom.deploy.main", "up", *wanted, "--detach"]
        began = time.perf_counter()
        pipe = subprocess.PIPE
        try:
            with subprocess.Popen(command, env=_environment(self.scratch), stdout=pipe, stderr=pipe, text=True) as up:
                try:
                    _, said = up.communicate()
                finally:
                    up.terminate()
                    up.wait()  # it takes down what it began
            self.seconds_to_ready = time.perf_counter() - began
            if up.returncode:
                raise UserError(f"the bench's cluster does not come up: {said.strip()}")
            self._looking.enter_context(self.looked_at())
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._looking.close()
        finally:
            self._leave()

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """Its processes' profiles are taken meanwhile, if a figure is being taken of which somebody wants them."""
        wanted = recordings()
        recording = wanted.begin(self.processes()) if wanted is not None else None
        try:
            yield
        finally:
            if recording is not None:
                recording.end()

    def _leave(self) -> None:
        if self._home.path.exists() and self._home.is_running():
            launch.down(self._home)
        shutil.rmtree(self.scratch, ignore_errors=True)

    @property
    def kubeconfig(self) -> Path:
        return self._home.kubeconfig

    @property
    def bus(self) -> str:
        """Where the API server listens for peers."""
        return f"ipc://{self._home.state().sockets}/apiserver.sock"

    @property
    def supervisor_pid(self) -> int:
        return self._home.state().pid

    @property
    def history(self) -> Path:
        return Path(self.status()["history"])

    def cpu_seconds(self) -> dict[str, float]:
        """What the cluster's processes have spent since they began, by kind."""
        return {kind: spent for kind, spent in Gauge(self.supervisor_pid).weigh().cpu.items() if spent}

    def pid(self, component: str) -> int:
        """The process that a component is in."""
        return next(int(one["pid"]) for one in self.status()["components"] if one["name"] == component)

    def processes(self) -> dict[str, int]:
        """The id of a process of each kind by what runs in it, such as ``apiserver`` or ``kubelet-runtime``."""
        kinds: dict[int, set[str]] = {self.supervisor_pid: {"supervisor"}}
        for one in self.status()["components"]:
            if one["pid"]:
                kinds.setdefault(int(one["pid"]), set()).add(one["name"].partition("/")[0])
        found: dict[str, int] = {}
        for pid, inside in kinds.items():
            found.setdefault("-".join(sorted(inside)), pid)
        return found

    def signal(self, component: str, signal: str, *, stay_dead: bool = False) -> None:
        """What the command ``kill`` does."""
        request = {"do": "kill", "component": component, "signal": signal, "at": None, "hits": 1, "stayDead": stay_dead}
        control.ask(self._home.control(), request)

    def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = control.ask(self._home.control(), {"do": "status"})["ok"]
        return answer


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "ELBOWROOM_HOME": str(home)}
