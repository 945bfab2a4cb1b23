"""The command line as a person meets it: exit codes, one line on stderr, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def elbowroom(home: Path, *arguments: str, stdout: Any = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "ELBOWROOM_HOME": str(home)}
    environment.pop("ELBOWROOM_NAME", None)
    return subprocess.run(
        [sys.executable, "-m", "elbowroom.deploy.main", *arguments],
        env=environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["status"], "no cluster 'default' is running (start one with: elbowroom up --detach)"),
        (["status", "--name", "lab"], "no cluster 'lab' is running"),
        (["down"], "no cluster 'default' is running"),
        (["kubeconfig"], "no cluster 'default' is running"),
        (["kill", "kubelet/node-1"], "no cluster 'default' is running"),
        (["kill", "kubelet/node-1", "--signal", "HUP"], "Invalid value for '--signal'"),
        (["kill"], "Missing argument 'component'"),
        (["logs", "scheduler"], "no cluster 'default' is running"),
        (["up", "--nodes", "many"], "Invalid value for '--nodes'"),
        (["up", "--nodes", "-1"], "Invalid value for '--nodes'"),
        (["up", "--node-cpu", "lots"], "spec.nodes[0].capacity.cpu: 'lots' is no quantity"),
        (["up", "--node-memory", "-4Gi"], "spec.nodes[0].capacity.memory: '-4Gi' is less than nothing"),
        (["up", "--feature-gates", "NoSuchGate=true"], "spec.featureGates: unknown feature gate 'NoSuchGate'"),
        (["up", "--feature-gates", "NoSuchGate"], "is not of the form Gate=true"),
        (["up", "--profile", "v1.2"], "Invalid value for '--profile': 'v1.2' is not one of 'lab', 'v1.37'."),
        (["up", "--time-scale", "0"], "spec.timeScale"),
        (["up", "--name", "../evil"], "cannot name a cluster"),
        (["up", "-f", "/does/not/exist.yaml"], "/does/not/exist.yaml: No such file or directory"),
        (["up", "-f", str(ROOT / "examples" / "cluster.yaml"), "--nodes", "2"], "write them into spec.nodes"),
        (["up", "--data-dir", "/proc/nowhere"], "--data-dir /proc/nowhere"),
        (["demo", "fairy-tale"], "Invalid value for"),
        (["check", "/does/not/exist"], "no history at /does/not/exist"),
        (["check", __file__], "lines is a record"),
        (["explore", "preemption", "--replay", "1", "--keep", "a,b"], "--keep a,b: numbers of the plan's parts"),
        (["bench", "--only", "speed"], "--only speed: no such figure"),
        (
            ["explore", "preemption", "--replay", "1", "--at", "kubelet/node-1@K4#1:crash"],
            "kubelet/node-1@K4#1:kill (or stop, delay",
        ),
        (["explore", "preemption", "--failures", "/proc"], "--failures /proc: Is a directory"),
        (["chaos", "run", "kubelet-half-way", "--html", "/does/not/exist.html"], "--html /does/not/exist.html: there is no folder"),
        (["scale", "--html", "/does/not/exist.html"], "--html /does/not/exist.html: there is no folder /does/not"),
        (["bench", "--json", "/does/not/exist.json"], "--json /does/not/exist.json: there is no folder /does/not"),
        (["experiment", "preemption", "--json", "/does/not/exist.json"], "--json /does/not/exist.json: there is no folder"),
        (["check", "/does/not/exist", "--html", "/does/not/exist.html"], "--html /does/not/exist.html: there is no folder"),
        (["fly"], "No such command 'fly'"),
        (["status", "--wings"], "No such option"),
    ],
)
def test_what_cannot_be_carried_out_is_said_in_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = elbowroom(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and done.stderr.startswith("elbowroom: ")
    assert done.stderr.count("\n") == 1 and done.stderr.endswith("\n")


@pytest.mark.parametrize("command", [("chaos", "schema"), ("--version",), ("--help",)])
def test_where_there_is_no_room_for_what_it_says_it_says_so_in_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = elbowroom(tmp_path, *command, stdout=full)
    assert (done.returncode, done.stderr) == (2, "elbowroom: No space left on device\n")


def test_a_refused_command_leaves_nothing_behind(tmp_path: Path) -> None:
    elbowroom(tmp_path, "up", "--node-cpu", "lots")
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_told(tmp_path: Path) -> None:
    done = elbowroom(tmp_path, "--version")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("elbowroom ")


@pytest.mark.parametrize("command", ["up", "down", "status", "kubeconfig", "logs", "kill"])
def test_every_command_about_a_cluster_takes_its_name(tmp_path: Path, command: str) -> None:
    done = elbowroom(tmp_path, command, "--help")
    assert done.returncode == 0 and "--name" in done.stdout and "ELBOWROOM_NAME" in done.stdout


def test_without_arguments_there_is_help(tmp_path: Path) -> None:
    done = elbowroom(tmp_path)
    assert done.returncode == 2 and "status" in done.stdout + done.stderr


def test_a_history_in_which_nothing_happened_proves_nothing(tmp_path: Path) -> None:
    record = '{"run":"r","seed":1,"proc":"kubelet/n","node":"n","inc":1,"seq":1,"mono_ns":1,"wall":1,"kind":"end"}\n'
    (tmp_path / "kubelet_n.1.jsonl").write_text(record)
    done = elbowroom(tmp_path, "check", str(tmp_path))
    assert done.returncode == 1 and "unknown: nothing was written" in done.stdout and "BROKEN" not in done.stdout
