"""The experiment shows what each policy is said to do; docs/policies.md promises it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from elbowroom.deploy.errors import UserError
from elbowroom.deploy.experiment import show
from elbowroom.deploy.experiment.preemption import CASES, CRASHES, TRACKINGS, Case, Run, minimal, played, row_of, rows, tell

SEEDS = range(1, 7)


def told(case: Case) -> list[Run]:
    return [tell(case, seed) for seed in SEEDS]


def test_counting_every_desire_evicts_pods_that_nobody_needed_to_go() -> None:
    assert {(run.victims, run.needless) for run in told(Case("additional", fit="maxDesired"))} == {(3, 2)}
    assert {(run.victims, run.needless) for run in told(Case("additional", fit="kubeletAligned"))} == {(1, 0)}


def test_a_second_look_takes_a_second_round_unless_the_first_is_tracked() -> None:
    needless = {tracking: row_of(case, told(case)).needless for tracking in TRACKINGS if (case := Case("double", tracking))}
    assert needless["none"] > 0
    assert needless["memory"] == needless["nominatedNodeName"] == needless["specNodeName"] == 0


def test_a_tracking_kept_on_the_victims_makes_a_resize_wait_whose_round_was_cut_short() -> None:
    cut_short = {
        tracking: [run.seconds for run in told(Case("double", tracking, crash="S7.1"))] for tracking in ("none", "specNodeName")
    }
    assert any(
        slow is not None and fast is not None and slow > fast + 10
        for slow, fast in zip(cut_short["specNodeName"], cut_short["none"], strict=True)
    )


def test_a_strict_budget_is_never_broken_and_its_resize_waits() -> None:
    assert {(run.victims, run.protected, run.seconds) for run in told(Case("budget", budgets="strict"))} == {(0, 0, None)}
    broken = told(Case("budget", budgets="bestEffort"))
    assert {(run.victims, run.protected) for run in broken} == {(2, 1)}
    assert all(run.seconds is not None for run in broken)


def test_the_fewest_that_make_room_are_counted_by_size() -> None:
    assert minimal(0, [1, 2]) == 0
    assert minimal(3, [1, 2, 3]) == 1
    assert minimal(4, [1, 2, 3]) == 2
    assert minimal(7, [1, 2, 3]) == 3


def test_one_seed_is_one_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    some = (CASES[0], replace(CASES[0], crash="S5"), CASES[-4])
    first, second = (list(rows(3, 2, 2, some)) for _ in range(2))
    assert first == second
    monkeypatch.setattr(show, "rows", lambda *_: iter(first))
    show.preemption(3, 2, 2, show.Path("-"))
    told_rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["policy"], row["crash"], row["runs"]) for row in told_rows] == [
        ("none", None, 2),
        ("none", "S5", 2),
        ("maxDesired", None, 2),
    ]
    show.preemption(3, 2, 2, None)
    assert "maxDesired" in capsys.readouterr().out


def test_a_file_that_cannot_be_written_is_told_before_any_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "rows", lambda *_: pytest.fail("a story was told"))
    with pytest.raises(UserError, match="No such file or directory"):
        show.preemption(1, 1, 1, tmp_path / "nowhere" / "x.json")


@pytest.mark.parametrize("crash", CRASHES)
def test_the_scheduler_dies_where_the_case_says_and_the_resize_comes_into_force(crash: str) -> None:
    run, world = played(Case("double", "none", crash=crash), 3)
    assert len(world.notes("sch.start")) == (2 if crash else 1)
    assert run.seconds is not None and run.minimal <= run.victims <= run.minimal + 1
