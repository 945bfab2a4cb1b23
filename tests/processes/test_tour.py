"""The tour of the README, run word for word."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from elbowroom.testing.cluster import Cluster, until

ROOT = Path(__file__).resolve().parents[2]
HEADING = "## Five minutes with kubectl"
RESIZE = ["ResizeDeferred", "ResizeStarted", "ResizeCompleted"]


def commands(readme: str) -> list[str]:
    """The commands of the console blocks between the heading and the next one."""
    section = readme.split(f"\n{HEADING}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```console\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines), "a console block of the tour has a line that is no command"
    return [line.removeprefix("$ ") for line in lines]


class Bash:
    """One bash session, as that of whoever follows the tour."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            env=environment,
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, command: str) -> tuple[int, str]:
        """The exit code and what was printed."""
        assert self._shell.stdin is not None and self._shell.stdout is not None
        self._shell.stdin.write(f'{command}\nprintf "\\nEXIT %d\\n" $?\n')
        self._shell.stdin.flush()
        printed = []
        for line in self._shell.stdout:
            if line.startswith("EXIT "):
                return int(line.removeprefix("EXIT ")), "".join(printed).removesuffix("\n")
            printed.append(line)
        raise AssertionError(f"bash ended at: {command}")

    def close(self) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait(timeout=20)


@dataclass(frozen=True)
class Toured:
    """What the commands printed, and which pods there were before and after the resize."""

    printed: dict[str, str]
    before: set[str]
    after: set[str]
    pending: set[str]

    def said(self, start: str) -> str:
        return next(text for command, text in self.printed.items() if command.startswith(start))


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toured]:
    """Every command was run, and each exited with 0."""
    cluster = Cluster(tmp_path_factory.mktemp("tour"))
    cluster.environment.pop("KUBECONFIG")
    bash = Bash(cluster.environment)
    printed: dict[str, str] = {}
    before: set[str] = set()
    after: set[str] = set()
    pending: set[str] = set()

    def batch() -> set[str]:
        return {name for name, pod in cluster.pods("app=batch").items() if not pod.is_terminating}

    try:
        for command in commands((ROOT / "README.md").read_text()):
            if command == "make setup":
                continue  # who runs the tests has done so
            if "3Gi" in command and "patch" in command:
                before = batch()
            code, text = bash.run(command)
            assert code == 0, f"{command}: exit {code}\n{text}"
            printed[command] = text
            if command == "kubectl describe pod web":
                after = until("there are three batch pods again", lambda: b if len(b := batch()) == 3 else None)
                pending = {name for name, pod in cluster.pods("app=batch").items() if pod.status.phase == "Pending"}
        yield Toured(printed, before, after, pending)
    finally:
        bash.close()
        cluster.close()
        cluster.try_elbowroom("down")


def test_web_has_what_it_asked_for_without_a_restart(toured: Toured) -> None:
    assert toured.said("kubectl get pod web -o jsonpath") == "3Gi, 0 restarts"
    assert re.search(r"memory: +3Gi", toured.said("kubectl describe pod web"))


def test_exactly_two_batch_pods_were_victims_and_their_successors_wait(toured: Toured) -> None:
    assert len(toured.before) == 3 and len(toured.before - toured.after) == 2
    assert toured.pending == toured.after - toured.before


def test_the_events_of_web_tell_its_resize(toured: Toured) -> None:
    reasons = [line.split()[2] for line in toured.said("kubectl events").splitlines()[1:]]
    assert [reason for reason in reasons if reason != "Scheduled"] == ["Pulling", "Pulled", "Created", "Started", *RESIZE]


def test_the_history_of_the_tour_holds(toured: Toured) -> None:
    assert "BROKEN" not in toured.said("elbowroom check")
    assert re.search(r"kubelet/node-1 +\w+ +\d+ +1\n", toured.said("elbowroom status"))
