"""``elbowroom logs``: what a component has decided (its Notes) and written to standard error."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from elbowroom.deploy.errors import UserError
from elbowroom.deploy.home import Home


def file_of(home: Home, process: str) -> Path:
    """The log of a process."""
    return home.logs / f"{process.replace('/', '_')}.log"


def show(home: Home, component: str, *, follow: bool) -> None:
    """Print the component's log; with ``follow`` until interrupted."""
    for line in _lines(home, component, follow=follow):
        sys.stdout.write(line)
        sys.stdout.flush()


def _lines(home: Home, component: str, *, follow: bool) -> Iterator[str]:
    own = file_of(home, component)
    if own.exists():
        yield from _read([own], follow=follow)
        return
    # A machine that shares its process: its lines bear its name as their second word.
    shared = sorted(home.logs.glob("nodes-*.log")) if "/" in component else []
    found = False
    for line in _read(shared, follow=False):
        if line.split(" ", 2)[1:2] == [component]:
            found = True
            yield line
    if not found:
        known = sorted(log.stem.replace("_", "/", 1) for log in home.logs.glob("*.log"))
        if not known:
            home.control()  # says that there is no such cluster, and which there are
        raise UserError(f"no log of {component!r}; there is one of: {', '.join(known) or 'nothing'}")
    if follow:
        for line in _read(shared, follow=True, from_end=True):
            if line.split(" ", 2)[1:2] == [component]:
                yield line


def _read(files: list[Path], *, follow: bool, from_end: bool = False) -> Iterator[str]:
    opened = [path.open(encoding="utf-8", errors="replace") for path in files]
    try:
        for file in opened:
            if from_end:
                file.seek(0, 2)
        while True:
            quiet = True
            for file in opened:
                while line := file.readline():
                    quiet = False
                    yield line
            if not follow:
                return
            if quiet:
                time.sleep(0.1)
    finally:
        for file in opened:
            file.close()
