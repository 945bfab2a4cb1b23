"""``elbowroom chaos`` as people use it: a short run on a cluster of its own, another on the one it left, and words for mistakes."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from elbowroom.testing.cluster import BIN, Ran

SHORT = """\
apiVersion: elbowroom.dev/v1alpha1
kind: Chaos
metadata: {name: short}
spec:
  about: a kubelet dies in the middle of its resizes
  duration: 3
  cluster:
    nodes: [{count: 1, capacity: {cpu: "4", memory: 4Gi}}]
  pods:
    - {name: web, count: 2, priority: high, cpu: 250m, memory: 512Mi}
  users:
    - {does: resize, pods: "web-*", clients: 2, memory: [256Mi, 512Mi, 768Mi], pause: [0.0, 0.1]}
  faults:
    - {kind: kill, of: ["kubelet/*"], at: [K3, K6, K9, K15, K16], hits: 1, every: 1}
  expect: {writes: 2, allocations: 2, fired: 0.1}
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home"
    elbowroom(tmp_path / "home", "down", "--name", "chaos-short")


def elbowroom(home: Path, *arguments: str) -> Ran:
    env = {**os.environ, "ELBOWROOM_HOME": str(home)}
    return subprocess.run([str(BIN / "elbowroom"), *arguments], env=env, capture_output=True, text=True, timeout=110)


@pytest.mark.timeout(240)
def test_a_short_run_goes_well_and_another_on_the_cluster_that_it_left(home: Path, tmp_path: Path) -> None:
    scenario, page = tmp_path / "short.yaml", tmp_path / "run.html"
    scenario.write_text(SHORT)
    first = elbowroom(home, "chaos", "run", str(scenario), "--keep", "--html", str(page))
    assert first.returncode == 0, first.stdout + first.stderr
    assert "every invariant holds" in first.stdout and "faults: kill" in first.stdout
    assert page.read_text().startswith("<!doctype html>") and "kubelet/node-1" in page.read_text()
    again = elbowroom(home, "chaos", "run", str(scenario), "--seed", "2", "--duration", "2s", "--name", "chaos-short")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "short, seed 2: " in again.stdout and "every invariant holds" in again.stdout


MISTAKES = [
    (("run", "nonsense"), "no scenario 'nonsense'"),
    (("run", "preemption", "--duration", "soon"), "no span"),
    (("run", "preemption", "--name", "nobody"), "nobody"),
    (("run", "bad-bus", "--name", "nobody"), "the links of a running cluster cannot be broken"),
    (("run", "{}/unknown-field.yaml"), "there is no such field"),
    (("run", "{}/no-yaml.yaml"), "not YAML"),
    (("run", "{}/missing.yaml"), "No such file"),
    (("marathon", "--only", "nonsense"), "no scenario 'nonsense'"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=[" ".join(each[0]) for each in MISTAKES])
def test_a_mistake_is_told_in_one_line(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "unknown-field.yaml").write_text(SHORT.replace("  about:", "  abuot: x\n  about:"))
    (tmp_path / "no-yaml.yaml").write_text("a: [")
    done = elbowroom(tmp_path / "home", "chaos", *(argument.format(tmp_path) for argument in arguments))
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
