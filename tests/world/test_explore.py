"""The explorer itself: one seed is one history, faults strike where they were planned, and a failure is told and made smaller."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from elbowroom.deploy.explore import show
from elbowroom.deploy.explore.run import Ended, Point, Run, make, pairs, points_of, shrunk, story_of, systematic
from elbowroom.deploy.explore.told import LINES_MAX
from elbowroom.history import report
from elbowroom.history.records import History, Violation
from elbowroom.sim.nemesis import AtStep, steps_of

SCENARIOS = ("preemption", "resize-storm")


def fine(ended: Ended) -> None:
    assert not ended.failure, "\n".join((f"{ended.run}: {ended.failure}", *ended.story))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_one_seed_is_one_history(scenario: str) -> None:
    first, second = make(Run(5, hostile=True, scenario=scenario)), make(Run(5, hostile=True, scenario=scenario))
    fine(first)
    assert first.history == second.history
    assert first.history != make(Run(6, hostile=True, scenario=scenario)).history


def hashing(seed: str) -> dict[str, str]:
    return {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}


def test_another_interpreter_with_another_hash_seed_tells_the_same_history() -> None:
    program = "from elbowroom.deploy.explore.run import Run, make; print(make(Run(5, hostile=True)).history)"
    told = subprocess.run([sys.executable, "-c", program], env=hashing("1"), capture_output=True, check=True, text=True)
    assert told.stdout.strip() == make(Run(5, hostile=True)).history


@pytest.mark.parametrize("profile", ["lab", "v1.37"])
@pytest.mark.parametrize(("scenario", "one_in"), [("preemption", 53), ("resize-storm", 173)])
def test_a_fault_at_a_labelled_step_is_survived(scenario: str, one_in: int, profile: str) -> None:
    """``--systematic`` makes them all; here are some, each another label and another fault."""
    runs = systematic(1, profile, scenario)
    assert len(runs) > 200
    for run in runs[7::one_in]:
        ended = make(run)
        fine(ended)
        assert sum(ended.faults.values()), "a fault came"


def test_pairs_of_faults_are_survived() -> None:
    runs = pairs(1, 6, "lab", "preemption")
    assert len({run.points for run in runs}) == 6 and all(len(run.points) == 2 for run in runs)
    for run in runs:
        ended = make(run)
        fine(ended)
        assert sum(ended.faults.values()) >= 2, "both faults came"


def test_each_step_is_met_by_each_kind_of_fault() -> None:
    points = points_of(1, "lab", "preemption")
    kinds = {(point.peer, point.label): set[str]() for point in points}
    for point in points:
        kinds[point.peer, point.label].add(point.action.partition(":")[0])
    assert all(met == {"kill", "stop", "delay", "disk"} for met in kinds.values())
    assert {("kubelet/node-1", "K4"), ("apiserver", "A7"), ("scheduler", "S5"), ("runtime/node-1", "T2")} <= set(kinds)


@pytest.mark.parametrize("text", ["kubelet/node-1@K10.1#2:kill", "apiserver@A6#1:delay:0.5", "runtime/node-2@T2#3:disk"])
def test_a_point_is_read_as_it_is_written(text: str) -> None:
    assert str(Point.of(text)) == text


@pytest.mark.parametrize("text", ["", "K4", "kubelet/node-1@K4", "kubelet/node-1@K4#1:explode", "kubelet/node-1@K4#one:kill"])
def test_what_is_no_point_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"PEER@LABEL|invalid literal"):
        Point.of(text)


def test_a_fault_that_never_comes_makes_a_run_unknown() -> None:
    ended = make(Run(1, points=(Point("kubelet/node-1", "K13.3", "kill"),)))
    assert ended.failure.startswith("unknown: a planned fault never came")


def test_faults_wait_at_every_label_in_the_end() -> None:
    labels = {
        part.label
        for seed in range(200)
        for part in story_of(Run(seed, hostile=True)).parts
        if isinstance(part, AtStep) and part.peer.startswith("kubelet/")
    }
    assert labels == set(steps_of("kubelet"))


# ---------------------------------------------------------------- failures


def no_pauses(history: History) -> Iterator[Violation]:
    """I-11: a made-up rule, so that something is broken: the scheduler is never paused."""
    for record in history.kinds("fault.begin"):
        if record["name"] == "pause" and record["args"]["machine"] == "scheduler":
            yield Violation("I-11", "the scheduler was paused", (record,))


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(report, "INVARIANTS", {**report.INVARIANTS, "I-11": no_pauses})
    runs = (Run(seed, hostile=True) for seed in range(1, 200))
    return next(run for run in runs if make(run).invariant == "I-11")


def test_a_failing_plan_is_made_so_small_that_each_part_of_it_is_needed(failing: Run) -> None:
    small, ended = shrunk(failing)
    assert ended.invariant == "I-11" and small.kept is not None
    assert 1 <= len(small.kept) < len(story_of(failing).parts) / 2
    for part in small.kept:
        assert make(replace(small, kept=tuple(other for other in small.kept if other != part))).invariant != "I-11"


def test_a_failure_is_told_with_its_seed_its_invariant_and_what_led_to_it(failing: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert not show.explore([failing], "seeds", jobs=1, minutes=None)
    assert not show.replay(failing)
    ended = make(failing)
    assert 3 < len(ended.story) <= LINES_MAX
    assert [line for line in ended.story if line.startswith(">") and "fault.begin name=pause" in line]
    told = capsys.readouterr().out
    assert f"seed {failing.seed}, lab: I-11: the scheduler was paused" in told and "steps/s" in told
    assert "steps of kubelet:" in told


def test_failures_are_kept_when_they_come(failing: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "failures"
    for _ in range(2):
        show.explore([failing], "seeds", jobs=1, minutes=None, failures=kept)
    told = kept.read_text()
    assert told.count(f"again: elbowroom explore preemption --replay {failing.seed}\n") == 2
    assert told[: len(told) // 2] in capsys.readouterr().out, "it is what is printed, too"


def asked_for(monkeypatch: pytest.MonkeyPatch, command: str) -> Run:
    """The run that a command line makes."""
    made: list[Run] = []
    monkeypatch.setattr(show, "replay", lambda run: made.append(run) or True)
    from elbowroom.deploy.main import app

    app(shlex.split(command)[1:], standalone_mode=False)
    return made[0]


@pytest.mark.parametrize(
    "run",
    [
        Run(7, hostile=True),
        Run(7, profile="v1.37"),
        Run(3, die_before=12, profile="lab", scenario="resize-storm"),
        Run(1, points=(Point("kubelet/node-1", "K10.1", "delay:0.5", 2), Point("apiserver", "A6", "disk"))),
        Run(5, hostile=True, scenario="chaos/preemption", kept=(0, 3), duration=2.5),
        Run(5, hostile=True, scenario="chaos/preemption", kept=(), duration=2.0),
    ],
)
def test_a_failure_says_what_command_makes_it_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_for(monkeypatch, show.again(run)) == run


def test_how_far_it_is_is_said_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(show, "SO_FAR_SECONDS", 0.0)
    show.explore([Run(1)], "seeds", jobs=1, minutes=None)
    assert "so far 1 of 1 seeds: 0 failed" in capsys.readouterr().out


def test_what_does_not_fail_cannot_be_made_smaller(capsys: pytest.CaptureFixture[str]) -> None:
    assert show.shrink(Run(1))
    assert "does not fail" in capsys.readouterr().out


def test_the_command_line_replays_a_fault_at_a_step() -> None:
    command = shutil.which("elbowroom", path=str(sys.executable).rpartition("/")[0]) or "elbowroom"
    done = subprocess.run(
        [command, "explore", "preemption", "--replay", "1", "--at", "kubelet/node-1@K4#2:kill"],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "seed 1, lab, --at kubelet/node-1@K4#2:kill: 2 victims" in done.stdout
