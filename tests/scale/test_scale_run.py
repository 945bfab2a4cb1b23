"""A small run of ``elbowroom scale`` on real processes."""

from dataclasses import replace
from pathlib import Path

import pytest

from elbowroom.deploy.home import Home
from elbowroom.deploy.scale import judging, report
from elbowroom.deploy.scale.command import NAME, driven
from elbowroom.deploy.scale.drive import GROWS, RESIZES
from elbowroom.deploy.scale.plan import plan

pytestmark = pytest.mark.processes


def test_a_small_run_makes_room_for_all_that_grow_and_is_judged_whole_or_by_a_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(NAME, tmp_path)
    run, history = driven(plan(20, 60), 8, 50, home)
    assert not home.is_running()
    assert sum(episode.what == GROWS for episode in run.episodes) == 20
    assert sum(episode.what == RESIZES for episode in run.episodes) > 0
    assert run.victims == 20, "all nodes are full, so each needs one, and none takes more"
    last = run.samples[-1]
    assert (last.made, last.running, last.in_force) == (60, 40, len(run.episodes))
    told = capsys.readouterr().out
    assert "20 nodes Ready" in told and "a storm of resizes" in told

    whole = judging.judged(history, 20)
    assert whole.report.verdict == "valid", whole.report.text()
    assert whole.is_whole and "the whole history" in whole.sentence
    part = judging.judged(history, 20, whole_bytes_max=round(whole.megabytes * 1e6 / 4))
    assert part.report.verdict == "valid", part.report.text()
    assert 0 < part.nodes < 20 and part.report.records < whole.report.records
    assert f"a sample, {part.nodes} of 20 nodes" in part.sentence

    page = report.html(replace(run), part, (0.5, 0.4, 0.3))
    assert page.count("<svg width=") >= 7 and "What happened on other nodes was not looked at" in page
    for alien in ("http:", "https:", "<script", "src="):
        assert alien not in page
    assert "resizes in force" in report.text(run, whole)
