"""What chaos acts on: a running cluster, by its supervisor, its relay and its API, and the record of what was done to it."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Any

from elbowroom.client import HttpClient
from elbowroom.deploy import control
from elbowroom.deploy.chaos.links import RelayProcess
from elbowroom.deploy.errors import UserError
from elbowroom.host.clock import Clock
from elbowroom.host.history import History
from elbowroom.host.spec import MachineSpec
from elbowroom.machine.records import Author

NAMESPACE = "default"
LOOK_AGAIN_SECONDS = 0.01
PATIENCE_SECONDS = 30.0
PASSING = ("no process now", "cannot be reached")
"""What the supervisor says of a component that is about to come back."""


class NotDoneError(Exception):
    """What was to be done could not be, within the time that it had."""


@dataclass
class Ground:
    """One cluster under chaos. ``over`` is set when users and nemesis are to stop. Any thread may call."""

    control: Path
    kubeconfig: Path
    history: Path
    seed: int
    relay: RelayProcess | None = None
    scheduler: MachineSpec | None = None
    """How its scheduler is started, if that is known."""
    over: threading.Event = field(default_factory=threading.Event)
    changing: threading.Lock = field(default_factory=threading.Lock)
    """Held while an object is read and written again."""
    _local: threading.local = field(default_factory=threading.local)
    _clients: list[HttpClient] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._nemesis = History(str(self.history), Author(self.history.name, self.seed, "nemesis", time.time_ns()), Clock())

    def close(self) -> None:
        """End the nemesis' record and all connections."""
        self._nemesis.note("end", {})
        self._nemesis.close()
        for client in self._clients:
            client.close()

    # ------------------------------------------------------------ the record

    def note(self, edge: str, name: str, args: Mapping[str, Any]) -> None:
        """A fault begins or ends (``edge``)."""
        self._nemesis.note(f"fault.{edge}", {"name": name, "args": dict(args)})
        self._nemesis.flush()

    # ------------------------------------------------------------ components

    def components(self) -> dict[str, dict[str, Any]]:
        """All components by name, as ``elbowroom status`` tells."""
        status = control.ask(self.control, {"do": "status"})["ok"]
        return {component["name"]: component for component in status["components"]}

    def order(self, request: Mapping[str, Any]) -> None:
        """Ask the supervisor; again, for a while, where the component has no process at the moment."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                control.ask(self.control, request)
                return
            except UserError as why:
                if not any(word in str(why) for word in PASSING) or time.monotonic() > deadline:
                    raise NotDoneError(str(why)) from why
                time.sleep(LOOK_AGAIN_SECONDS)

    def kill(self, component: str, signal: str = "KILL", *, at: str | None = None, hits: int = 1, stay_dead: bool = False) -> None:
        """``elbowroom kill``."""
        self.order({"do": "kill", "component": component, "signal": signal, "at": at, "hits": hits, "stayDead": stay_dead})

    def pick(self, patterns: list[str], rng: Random) -> str:
        """A component whose name matches; ``NotDoneError`` if none does."""
        names = sorted(name for name in self.components() if any(fnmatchcase(name, pattern) for pattern in patterns))
        if not names:
            raise NotDoneError(f"no component matches {patterns}")
        return rng.choice(names)

    # ------------------------------------------------------------ the API

    @property
    def http(self) -> HttpClient:
        """This thread's connection."""
        made: HttpClient | None = getattr(self._local, "http", None)
        if made is None:
            made = self._local.http = HttpClient(self.kubeconfig, timeout=10.0)
            self._clients.append(made)
        return made

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> dict[str, Any]:
        """One request until it certainly happened; ``{}`` where what was to be made is there, or what was to go is gone."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        why = ""
        while time.monotonic() < deadline:
            try:
                answer = self.http.request(method, path, body, content_type=kind)
            except OSError as failure:
                why = str(failure)
            else:
                if (method, answer.status) in (("POST", 409), ("DELETE", 404)):
                    return {}
                if answer.status < 300:
                    return dict(answer.document)
                why = f"{answer.status} {answer.document.get('message', '')}"
                if answer.status not in (409, 429, 500, 503, 504):
                    break
            time.sleep(LOOK_AGAIN_SECONDS)
        raise NotDoneError(f"{method} {path}: {why}")

    def until(self, what: str, look: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        """Return when ``look()``; ``NotDoneError`` with ``what`` if that takes longer."""
        deadline = time.monotonic() + seconds
        while not look():
            if time.monotonic() > deadline:
                raise NotDoneError(f"not within {seconds:.0f} s: {what}")
            time.sleep(LOOK_AGAIN_SECONDS)


def pods_path(name: str = "", subresource: str = "") -> str:
    """The path of the pods of chaos' namespace, or of one."""
    return "/".join(part for part in (f"/api/v1/namespaces/{NAMESPACE}/pods", name, subresource) if part)
