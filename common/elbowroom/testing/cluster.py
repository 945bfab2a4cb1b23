"""A cluster of real processes, used as people use it: by the command line, by kubectl and over HTTPS.

``Api`` is what can be done with a kubeconfig alone, wherever the cluster runs. ``running`` brings one up under a home of its own
and takes it down again. Nothing here waits for a time: ``until`` looks again and again for a fact, and says what it saw last if
that does not come.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from elbowroom.api.objects import Pod
from elbowroom.api.resources import actual_requests, allocated_requests, spec_requests
from elbowroom.client import Answer, HttpClient, Witness
from elbowroom.deploy import control
from elbowroom.deploy.home import Home
from elbowroom.history.files import load
from elbowroom.history.records import History

PATIENCE_SECONDS = 20.0
LOOK_AGAIN_SECONDS = 0.02
BIN = Path(sys.executable).parent

Found = TypeVar("Found")
Document = dict[str, Any]
Ran = subprocess.CompletedProcess[str]


def until(
    what: str,
    look: Callable[[], Found | None],
    within: float = PATIENCE_SECONDS,
    state: Callable[[], object] | None = None,
) -> Found:
    """The first answer of ``look`` that is true; AssertionError with ``what`` and the last answer (or ``state()``) after
    ``within`` seconds. A connection that is refused or cut meanwhile is not yet an answer."""
    deadline = time.monotonic() + within
    last: object = None
    while True:
        try:
            found = look()
            if found:
                return found
            last = found
        except OSError as why:
            last = why
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:.0f} s: {what}; last seen: {state() if state else last!r}")
        time.sleep(LOOK_AGAIN_SECONDS)


class Api:
    """The API behind a kubeconfig, which need not exist yet."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._http: HttpClient | None = None

    def client(self) -> HttpClient:
        """A connection of its own; the caller closes it."""
        return HttpClient(self.kubeconfig)

    @property
    def http(self) -> HttpClient:
        """The connection of the test's own thread."""
        if self._http is None:
            self._http = self.client()
        return self._http

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None

    def ask(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> Document:
        """A request until it certainly happened: what was lost is asked again, a doubled create or delete counts as done."""

        def answered() -> Answer | None:
            answer = self.http.request(method, path, body, content_type=kind)
            return None if answer.status in (429, 500, 503, 504) else answer

        answer = until(f"{method} {path} is answered", answered)
        if (method, answer.status) in (("POST", 409), ("DELETE", 404)):
            return {}
        assert answer.status < 300, f"{method} {path}: {answer.status} {answer.document}"
        return dict(answer.document)


class Cluster(Api):
    """A cluster under ``folder`` (HOME and ELBOWROOM_HOME of all that is run), named ``name``. It need not be up."""

    def __init__(self, folder: Path, name: str = "default") -> None:
        self.folder, self.name = folder, name
        self.home = folder / "clusters" / name
        super().__init__(self.home / "kubeconfig")
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "ELBOWROOM_HOME": str(folder / "clusters"),
            "ELBOWROOM_NAME": name,
            "KUBECONFIG": str(self.kubeconfig),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        self.kubectl_binary = os.environ.get("KUBECTL", str(BIN / "kubectl"))
        """Which kubectl: that of the environment variable KUBECTL, or the one installed beside this Python."""

    # ------------------------------------------------------------ commands

    def run(self, *command: str, stdin: str = "", within: float = 60.0, environment: Mapping[str, str] | None = None) -> Ran:
        """Run a command to its end, whatever that is."""
        where = {**self.environment, **(environment or {})}
        return subprocess.run(command, input=stdin, env=where, capture_output=True, text=True, timeout=within, check=False)

    def try_elbowroom(self, *arguments: str) -> Ran:
        return self.run(str(BIN / "elbowroom"), *arguments)

    def elbowroom(self, *arguments: str) -> str:
        """What an elbowroom command printed, which must have exited with 0."""
        return _succeeded(self.try_elbowroom(*arguments))

    def try_kubectl(self, *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> Ran:
        return self.run(self.kubectl_binary, *arguments, stdin=stdin, environment=environment)

    def kubectl(self, *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> str:
        """What a kubectl command printed, which must have exited with 0."""
        return _succeeded(self.try_kubectl(*arguments, stdin=stdin, environment=environment))

    # ------------------------------------------------------------ components

    def status(self) -> Document:
        """What ``elbowroom status -o json`` prints, without the start of a process."""
        answer: Document = self._command({"do": "status"})
        return answer

    def kill(self, component: str, *, signal: str = "KILL", at: str | None = None, hits: int = 1, stay_dead: bool = False) -> None:
        """``elbowroom kill``; UserError if there is no such component or step."""
        request = {"do": "kill", "component": component, "signal": signal, "at": at, "hits": hits, "stayDead": stay_dead}
        self._command(request)

    def _command(self, request: Document) -> Any:
        return control.ask(Home(self.name, self.home.parent).control(), request)["ok"]

    def history(self) -> History:
        """All that was recorded so far."""
        return load(Home(self.name, self.home.parent).histories)

    def components(self) -> dict[str, Document]:
        return {component["name"]: component for component in self.status()["components"]}

    def restarts(self, component: str) -> int:
        return int(self.components()[component]["restarts"])

    def await_running(self, component: str) -> None:
        until(f"{component} runs", lambda: self.components()[component]["state"] == "running")

    # ------------------------------------------------------------ the API

    def pods(self, selector: str = "") -> dict[str, Pod]:
        """The pods of the namespace ``default`` by name, as they are now."""
        query = f"?{urlencode({'labelSelector': selector})}" if selector else ""
        found = self.ask("GET", f"/api/v1/namespaces/default/pods{query}")["items"]
        return {pod.metadata.name: pod for pod in msgspec.convert(found, list[Pod])}

    def state(self) -> str:
        """The pods as they are now, for people who look for the reason of a failure."""
        return "\n".join(described(pod) for pod in self.pods().values())

    def witness(self, name: str) -> Witness:
        """A client whose requests are part of the cluster's history."""
        return Witness(self.kubeconfig, Path(self.status()["history"]), name)


def described(pod: Pod) -> str:
    """One line about where a pod's resources stand."""
    layers = {"desired": spec_requests(pod), "allocated": allocated_requests(pod), "actual": actual_requests(pod)}
    conditions = [f"{c.type}={c.status}/{c.reason} {c.message!r}" for c in pod.status.conditions if c.type.startswith("PodResize")]
    ends = " (terminating)" if pod.is_terminating else ""
    return f"{pod.key}: {pod.status.phase}{ends} on {pod.spec.node_name or '-'}, {layers}, {conditions}"


@contextmanager
def running(folder: Path, *options: str, name: str = "default") -> Iterator[Cluster]:
    """``elbowroom up --detach`` with these options; the cluster is down again afterwards, whatever happened."""
    cluster = Cluster(folder, name)
    try:
        cluster.elbowroom("up", "--detach", *options)
        yield cluster
    finally:
        cluster.close()
        with suppress(subprocess.TimeoutExpired):
            cluster.try_elbowroom("down")


def _succeeded(ran: Ran) -> str:
    assert ran.returncode == 0, f"{' '.join(ran.args)}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout
