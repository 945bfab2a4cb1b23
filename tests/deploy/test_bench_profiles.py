"""Profiles of a bench's processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from elbowroom.deploy.bench.profiles import SUMMARY, Profiles, busiest, recordings
from elbowroom.deploy.errors import UserError

PROGRAM = """
def works_hard():
    while True:
        pass
print("at work", flush=True)
works_hard()
"""


@pytest.fixture
def busy() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "at work\n"
        yield process.pid
        process.kill()


def spent(pid: int) -> float:
    """Its processor time in seconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_the_busiest_function_comes_first_with_its_own_share_and_that_with_all_it_calls() -> None:
    told = busiest("fig-1-apiserver", "main;a 3\nmain;a;b 5\nmain;a;a 2\n")
    assert told.splitlines() == [
        "fig-1-apiserver: seen 10 times, 100 times a second",
        "  50.0 %  100.0 %  a",
        "  50.0 %   50.0 %  b",
    ]


def test_of_a_process_that_only_waited_there_is_nothing_to_tell() -> None:
    assert busiest("idle", "") == "idle: seen 0 times, 100 times a second\n"


def test_clusters_are_looked_at_only_while_a_figure_is_taken_of_which_profiles_are_wanted(tmp_path: Path) -> None:
    assert recordings() is None
    with Profiles.into(tmp_path).of("some-figure"):
        assert recordings() is not None
    assert recordings() is None


def test_what_a_process_does_is_saved_and_who_is_gone_is_told(tmp_path: Path, busy: int) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with Profiles.into(tmp_path / "new").of("some-figure"):
        found = recordings()
        assert found is not None
        recording = found.begin({"apiserver": busy, "kubelet/node-1": gone.pid})
        enough = spent(busy) + 0.2
        while spent(busy) < enough:
            os.sched_yield()
        recording.end()
    stacks = tmp_path / "new" / "some-figure-1-apiserver.folded"
    summary = (tmp_path / "new" / SUMMARY).read_text()
    if "Permission denied" in summary or "not permitted" in summary:
        pytest.skip("no process may look at another one here")
    assert "works_hard" in stacks.read_text()
    assert "works_hard" in summary
    assert "some-figure-1-kubelet-node-1: there is none; py-spy said: " in summary


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"--profiles .*file"):
        Profiles.into(tmp_path / "file")
