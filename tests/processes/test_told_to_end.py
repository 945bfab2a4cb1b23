"""Commands that have a cluster of their own take it down when they are told to end, and leave nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("heeded_signals")]


def processes_of(scratch: Path) -> list[str]:
    """The command lines of processes whose environment names the folder; those of a cluster inherit it."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and os.fsencode(scratch) in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it ended meanwhile, or is another's
    return found


@pytest.mark.parametrize(
    ("number", "command", "under_way"),
    [
        (signal.SIGTERM, ("demo", "deferred"), "  1."),
        (signal.SIGTERM, ("up", "--detach", "--nodes", "1"), "API server"),
        (signal.SIGINT, ("up", "--detach", "--nodes", "1"), "API server"),
        (signal.SIGHUP, ("up", "--detach", "--nodes", "1"), "API server"),
    ],
)
def test_a_command_that_is_told_to_end_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals, command: tuple[str, ...], under_way: str
) -> None:
    home, scratch = tmp_path / "home", tmp_path / "tmp"
    scratch.mkdir()
    environment = {**os.environ, "ELBOWROOM_HOME": str(home), "TMPDIR": str(scratch)}
    environment.pop("XDG_RUNTIME_DIR", None)
    arguments = [sys.executable, "-m", "elbowroom.deploy.main", *command]
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as started:
        assert started.stdout is not None
        assert any(line.startswith(under_way) for line in started.stdout), "it ended by itself"
        started.send_signal(number)
        started.stdout.read()
        ended = started.wait(30)
    assert ended == 128 + number
    assert (processes_of(scratch), list(scratch.iterdir())) == ([], [])


def test_a_bench_that_is_told_to_end_while_its_cluster_comes_up_leaves_nothing_behind(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "elbowroom.deploy.main", "bench", "--only", "get-pod"]
    with subprocess.Popen(arguments, env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.DEVNULL) as started:
        while not any(tmp_path.glob("elbowroom-bench-*/bench/state.json")):
            assert started.poll() is None, "it ended by itself"
            os.sched_yield()
        started.send_signal(signal.SIGINT)
        assert started.wait(30) == 130
    assert (processes_of(tmp_path), list(tmp_path.iterdir())) == ([], [])
