"""The stories, told on real clusters."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from elbowroom.deploy.stories import preemption, stage, tell

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Whatever a story leaves behind would lie there."""
    monkeypatch.setenv("ELBOWROOM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(stage, "temporary_root", lambda: tmp_path / "story")
    return tmp_path


@pytest.mark.parametrize(
    ("story", "profile", "told"),
    [
        ("preemption", "lab", "batch-e evicted: DisruptionTarget, reason PreemptionByScheduler"),
        ("preemption", "v1.37", "left on node-1: batch-a, batch-b, vip"),
        ("deferred", "lab", "in force: first big, then small"),
        ("infeasible", "lab", "Event Warning ResizeInfeasible"),
        ("infeasible", "v1.37", '403: pods "greedy" is forbidden'),
        ("node-policy", "lab", "Preemption for in-place pod resize is disabled on node 'node-1' by preemption policy."),
        ("node-policy", "v1.37", "evicted: batch alone"),
        ("chaos", "lab", "2 of 2 nodes Ready"),
        ("numa", "lab", "kept 1,9, gained 4,12"),
        ("numa", "v1.37", "kept 1,9, gained 4,12"),
        ("scale-delay", "lab", "/etc/podinfo/cpus says 1,5, the kernel 1-2,5-6"),
        ("scale-delay", "v1.37", "Event Normal ResizeCompleted"),
    ],
)
def test_a_story_comes_true_and_leaves_nothing(
    story: str, profile: str, told: str, temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tell(story, profile=profile)
    out = capsys.readouterr().out
    assert told in out and "came true" in out
    assert list(temporary.iterdir()) == []


def test_a_story_that_does_not_come_true_says_so_and_keeps_what_shows_why(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = {"InPlacePodVerticalScalingSchedulerPreemption": False}
    monkeypatch.setattr(preemption, "cluster", lambda original=preemption.cluster: {**original(), "featureGates": gate})
    monkeypatch.setattr(stage, "PATIENCE_SECONDS", 2.0)
    assert not tell("preemption")
    out = capsys.readouterr().out
    assert "NOT SO: " in out and "did not come true" in out
    assert (temporary / "story" / "demo-preemption" / "logs" / "scheduler.log").exists()


def test_the_cluster_of_a_story_can_be_kept(temporary: Path) -> None:
    environment = {**os.environ, "ELBOWROOM_HOME": str(temporary / "home")}

    def elbowroom(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "elbowroom.deploy.main", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    try:
        told = elbowroom("demo", "deferred", "--keep")
        assert told.returncode == 0 and "elbowroom down --name demo-deferred" in told.stdout
        assert "1 of 1 nodes Ready" in elbowroom("status", "--name", "demo-deferred").stdout
    finally:
        assert elbowroom("down", "--name", "demo-deferred").returncode == 0
