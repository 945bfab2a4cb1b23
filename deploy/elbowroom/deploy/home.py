"""Where a cluster lives on disk, and whether it is alive.

``$ELBOWROOM_HOME/NAME`` (0700) holds the kubeconfig, the data, logs and histories, and ``state.json``, which says where the
supervisor listens. The supervisor holds a lock on ``lock`` for as long as it lives, so a process id that another program got
meanwhile deceives nobody. Sockets live in a directory of their own under a short path, since the path of an ipc socket may
have at most 107 bytes.
"""

import fcntl
import json
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from elbowroom.deploy.errors import UserError

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
IPC_PATH_BYTES_MAX = 107
_LONGEST_SOCKET = "runtime-0123456789abcdef.sock"


@dataclass(frozen=True, slots=True)
class State:
    """What a running (or dead) supervisor left word of. ``port`` is kept when it ends, so the next life serves at the same one."""

    pid: int = 0
    sockets: str = ""
    port: int = 0


class Home:
    """The directory of one cluster."""

    def __init__(self, name: str, root: Path | None = None) -> None:
        if not _NAME.fullmatch(name):
            raise UserError(f"{name!r} cannot name a cluster: lower-case letters, digits and '-', at most 40")
        self.name = name
        self.path = (root or root_of_homes()) / name

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def histories(self) -> Path:
        return self.path / "history"

    @property
    def default_data(self) -> Path:
        return self.path / "data"

    def make(self) -> None:
        """Create the directory and those in it, for the owner's eyes only."""
        try:
            for directory in (self.path, self.logs, self.histories):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
        except OSError as why:
            hint = "set ELBOWROOM_HOME to a directory that you may write"
            raise UserError(f"{why.filename or self.path}: {why.strerror}; {hint}") from why

    def state(self) -> State:
        """What was last written; an empty one if nothing readable is there."""
        try:
            return State(**json.loads((self.path / "state.json").read_text()))
        except (OSError, ValueError, TypeError):
            return State()

    def write_state(self, state: State) -> None:
        temporary = self.path / "state.json.new"
        temporary.write_text(json.dumps(asdict(state)))
        temporary.replace(self.path / "state.json")

    def lock(self) -> IO[str] | None:
        """The lock that says "alive", held until the file is closed; None while another process has it.

        It is a POSIX lock: a forked child does not inherit it, so children that outlive their supervisor do not look like one. (It
        is also lost when the holder closes any other handle of that file, so a supervisor never asks whether it is running.)
        """
        file = (self.path / "lock").open("a")
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
        return file

    def is_running(self) -> bool:
        """Does a supervisor live here?"""
        if not (self.path / "lock").exists():
            return False
        lock = self.lock()
        if lock is None:
            return True
        lock.close()
        return False

    def control(self) -> Path:
        """The supervisor's control socket; ``UserError`` if no cluster of that name runs."""
        if not self.is_running():
            others = [home.name for home in running(self.path.parent)]
            hint = f"running: {', '.join(others)}; choose with --name" if others else "start one with: elbowroom up --detach"
            raise UserError(f"no cluster {self.name!r} is running ({hint})")
        return Path(self.state().sockets) / "control.sock"

    def clean_up_after_death(self) -> bool:
        """Remove what a supervisor that was killed left behind; True if there was anything. The caller holds the lock."""
        state = self.state()
        if not state.pid:
            return False
        remove_sockets(state.sockets)
        self.write_state(State(port=state.port))
        return True


def root_of_homes() -> Path:
    """``$ELBOWROOM_HOME``, or ``~/.elbowroom``."""
    configured = os.environ.get("ELBOWROOM_HOME")
    return Path(configured).absolute() if configured else Path.home() / ".elbowroom"


def running(root: Path) -> list[Home]:
    """The clusters under ``root`` that are alive."""
    try:
        names = sorted(entry.name for entry in root.iterdir() if _NAME.fullmatch(entry.name))
    except OSError:
        return []
    return [home for home in (Home(name, root) for name in names) if home.is_running()]


def make_sockets() -> Path:
    """A fresh 0700 directory whose sockets' paths are short enough for ipc."""
    for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):
        if not base or not os.access(base, os.W_OK | os.X_OK):
            continue
        if len(os.fsencode(os.path.join(base, "elbowroom-12345678", _LONGEST_SOCKET))) > IPC_PATH_BYTES_MAX:
            continue
        return Path(tempfile.mkdtemp(prefix="elbowroom-", dir=base))
    raise UserError("no writable directory with a short path for sockets; set TMPDIR to one")


def remove_sockets(path: str) -> None:
    """Remove such a directory, and nothing that is none."""
    if path and os.path.basename(path).startswith("elbowroom-"):
        with suppress(OSError):
            shutil.rmtree(path)
