"""Want of processors and files, done to processes of the test's own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from elbowroom.deploy.chaos import strain
from elbowroom.deploy.chaos.ground import NotDoneError

PROGRAM = """
import sys
for line in sys.stdin:
    kept = []
    try:
        while len(kept) < 50:
            kept.append(open("/dev/null"))
    except OSError:
        pass
    count = len(kept)
    kept.clear()
    print(count, flush=True)
"""


class OneComponent:
    """Of a ground what is needed here: one component, which is a process that says how many files it can open."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", PROGRAM]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.files()

    def components(self) -> dict[str, dict[str, Any]]:
        return {"it": {"pid": self.process.pid if self.process.poll() is None else 0}}

    def files(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def state(self) -> str:
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0]


@pytest.fixture
def ground() -> Iterator[Any]:
    made = OneComponent()
    yield made
    made.process.kill()
    made.process.communicate()


def test_who_may_open_few_files_opens_few_until_it_may_again(ground: Any) -> None:
    few = strain.FewFiles(ground, "it", 2)
    assert ground.files() == 2
    few.end()
    assert ground.files() == 50


def test_who_has_no_process_cannot_be_strained(ground: Any) -> None:
    ground.process.kill()
    ground.process.wait()
    with pytest.raises(NotDoneError):
        strain.FewFiles(ground, "it", 2)


def test_who_is_slow_stands_still_again_and_again_and_runs_afterwards(ground: Any) -> None:
    slowness = strain.Slowness(ground, "it", 0.1)
    while slowness.slices < 3:
        os.sched_yield()
    slowness.end()
    assert ground.state() in "RS" and ground.files() == 50


def test_who_is_gone_while_it_is_slow_is_let_go(ground: Any) -> None:
    slowness = strain.Slowness(ground, "it", 0.5)
    ground.process.kill()
    ground.process.wait()
    slowness.end()


def test_hogs_work_until_they_are_ended() -> None:
    hogs = strain.Hogs(2)
    pids = [process.pid for process in hogs._processes]
    assert all(os.path.exists(f"/proc/{pid}") for pid in pids)
    hogs.end()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
