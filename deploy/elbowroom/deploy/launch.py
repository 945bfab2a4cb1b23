"""``up`` and ``down``: check what was asked, start the supervisor here or as a daemon, and tell how it goes."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from elbowroom.deploy import config, control, planning, supervisor
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.home import Home
from elbowroom.deploy.planning import Plan
from elbowroom.deploy.show import Progress
from elbowroom.host.log import let_lines_be_lost

DOWN_SECONDS = 15.0
FORCED_SECONDS = 5.0


def node_group(count: int | None, cpu: str | None, memory: str | None) -> list[dict[str, Any]] | None:
    """The nodes that the flags ask for, as cluster.yaml has them; None if no flag was given."""
    if count is None and cpu is None and memory is None:
        return None
    return [{"count": 3 if count is None else count, "capacity": {"cpu": cpu or "4", "memory": memory or "16Gi", "pods": "110"}}]


def gates(text: str) -> dict[str, bool]:
    """``A=true,B=false`` as a mapping."""
    found: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        gate, _, value = part.partition("=")
        if value.lower() not in ("true", "false"):
            raise UserError(f"--feature-gates: {part!r} is not of the form Gate=true or Gate=false")
        found[gate] = value.lower() == "true"
    return found


def up(
    name: str,
    file: Path | None,
    changes: Mapping[str, Any],
    *,
    data_dir: Path | None,
    port: int,
    all_addresses: bool,
    detach: bool,
) -> None:
    """Bring a cluster up; returns once it is Ready (detached) or once it has been taken down again."""
    cluster = config.load(file) if file else config.Cluster()
    if file and "nodes" in changes:
        raise UserError("--nodes, --node-cpu and --node-memory are for a cluster without a file; write them into spec.nodes")
    asks_for_nodes = "nodes" in changes or "nodes" in cluster.spec.model_fields_set
    cluster = config.overlay(cluster, changes)
    home = Home(name or cluster.metadata.name or "default")
    host = "0.0.0.0" if all_addresses else "127.0.0.1"
    wanted = replace(planning.plan(home, cluster, data_dir, port, host), asks_for_nodes=asks_for_nodes)
    start(wanted, detach=detach, show=Progress(home.name))


class Show(Protocol):
    """Who is told how a cluster comes up; ``show.Progress`` is one."""

    stays: bool

    def __enter__(self) -> object: ...
    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None) -> None: ...
    def tell(self, event: Mapping[str, Any]) -> None: ...


def start(wanted: Plan, *, detach: bool, show: Show) -> None:
    """Run the supervisor until it ends, or as a daemon until it says that all is Ready."""
    if detach:
        _start_daemon(wanted, show)
        return
    with show:
        show.stays = True
        failure = supervisor.run(wanted, show.tell)
    if failure:
        raise UserError(failure)
    print(f"cluster {wanted.home.name} is down; its data stays in {wanted.home.path}")


def _start_daemon(wanted: Plan, show: Show) -> None:
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _be_daemon(wanted, reading, writing)
    os.close(writing)
    try:
        with show, os.fdopen(reading, encoding="utf-8") as lines:  # only now: a bar has a thread, and threads and forks don't mix
            for line in lines:
                event = json.loads(line)
                show.tell(event)
                if event["event"] == "ready":
                    return
                if event["event"] == "failed":
                    os.waitpid(child, 0)
                    raise UserError(event["why"])
    except (KeyboardInterrupt, SystemExit):
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
    raise UserError(f"the supervisor ended at once; its log is {wanted.home.logs / 'supervisor.log'}")


def _be_daemon(wanted: Plan, reading: int, writing: int) -> None:
    """In the forked child: cut off from the terminal, be the supervisor, never return."""
    code = 1

    def tell(event: dict[str, Any]) -> None:
        nonlocal writing
        with suppress(OSError):  # who started us need not wait for us
            os.write(writing, json.dumps(event).encode() + b"\n")
        if event["event"] in ("ready", "failed"):
            with suppress(OSError):
                os.close(writing)
            writing = -1  # the number may be another file's by now

    try:
        os.setsid()
        os.close(reading)
        log = os.open(wanted.home.logs / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, nothing), (1, log), (2, log)):
            os.dup2(source, target)
        let_lines_be_lost()
        os.chdir("/")
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        failure = supervisor.run(wanted, tell)
        if failure:
            tell({"event": "failed", "why": failure})
        code = 2 if failure else 0
    except BaseException as why:
        import traceback

        traceback.print_exc()
        said = str(why) or type(why).__name__
        if isinstance(why, OSError) and why.strerror:
            said = f"{why.filename}: {why.strerror}" if why.filename else why.strerror
        tell({"event": "failed", "why": f"the supervisor cannot go on: {said}"})
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def down(home: Home) -> str:
    """Stop the cluster, by force if it does not answer; says what was done."""
    state = home.state()
    if home.is_running():
        with suppress(UserError):
            control.ask(Path(state.sockets) / "control.sock", {"do": "down"}, timeout=DOWN_SECONDS)
            if _wait(lambda: not home.is_running() and _is_gone(state.pid), DOWN_SECONDS):
                return f"cluster {home.name} is down; its data stays in {home.path}"
        if home.is_running():
            return _force_down(home, state.pid)
    if _clean_up(home):
        return f"cluster {home.name}: its supervisor was dead; cleaned up what it left"
    home.control()  # says that it is not running, and what is
    raise UserError(f"cluster {home.name!r} came up meanwhile; try again")


def _clean_up(home: Home) -> bool:
    """Remove what a dead supervisor left; False if there was nothing."""
    lock = home.lock() if home.path.exists() else None
    if lock is None:
        return False
    with lock:
        return home.clean_up_after_death()


def _force_down(home: Home, pid: int) -> str:
    """The supervisor hangs: kill it (the kernel kills its children in turn) and clean up."""
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if not _wait(lambda: not home.is_running(), FORCED_SECONDS):
        raise UserError(f"cluster {home.name!r}: process {pid} cannot be ended; is it in an uninterruptible wait?")
    _clean_up(home)
    return f"cluster {home.name}: its supervisor did not answer and was killed; its data stays in {home.path}"


def _is_gone(pid: int) -> bool:
    """Has the process ended? (Whether its parent has taken note is another matter.)"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _wait(fact: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
