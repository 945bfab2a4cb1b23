"""Faults of real processes for want of what the machine gives: processors and open files."""

import os
import resource
import signal
import subprocess
import sys
import threading
from contextlib import suppress

from elbowroom.deploy.chaos.background import Background
from elbowroom.deploy.chaos.ground import Ground, NotDoneError

SLICE_SECONDS = 0.04


class Slowness(Background):
    """A component runs only a ``share`` of the time, in slices, until ``end``. Of a life that comes meanwhile, too."""

    def __init__(self, ground: Ground, component: str, share: float) -> None:
        self._ground, self._component, self._share = ground, component, share
        self.slices = 0
        super().__init__(self._work)

    def _work(self, over: threading.Event) -> None:
        while not over.is_set():
            pid = self._ground.components().get(self._component, {}).get("pid")
            for _ in range(10):  # before it is asked for again
                if not pid or not self._idle(pid, over) or over.wait(SLICE_SECONDS * self._share):
                    over.wait(SLICE_SECONDS)
                    break

    def _idle(self, pid: int, over: threading.Event) -> bool:
        """Stand still for a while; False if it is gone."""
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return False
        try:
            over.wait(SLICE_SECONDS * (1 - self._share))
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.slices += 1
        return True


class Hogs:
    """So many processes that do nothing but work, until ``end``."""

    def __init__(self, count: int) -> None:
        command = [sys.executable, "-S", "-c", "while True: pass"]
        self._processes = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for _ in range(count)]

    def end(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()


class FewFiles:
    """A component's process may open only so many files ``more`` than it has, until ``end``. Its next life may open all again."""

    def __init__(self, ground: Ground, component: str, more: int) -> None:
        self._pid = ground.components()[component]["pid"]
        if not self._pid:
            raise NotDoneError(f"{component} has no process now")
        try:
            self.limit = 1 + max(int(name) for name in os.listdir(f"/proc/{self._pid}/fd")) + more
            self._before = resource.prlimit(self._pid, resource.RLIMIT_NOFILE)
            resource.prlimit(self._pid, resource.RLIMIT_NOFILE, (self.limit, self._before[1]))
        except OSError as why:
            raise NotDoneError(f"{component} is gone: {why}") from why

    def end(self) -> None:
        with suppress(OSError):  # it has ended
            resource.prlimit(self._pid, resource.RLIMIT_NOFILE, self._before)
