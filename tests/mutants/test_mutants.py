"""The tests have teeth: known bugs, put back one at a time, turn them red.

``make mutants`` tries all; here is a quick one for each report.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from catalogue import CATALOGUE, share
from line_mutations import mutations
from mutating import Mutant
from regions import REGIONS
from reports import REPORTS
from run_mutants import lost, regions_table, survivors_table, table
from survivors import SURVIVORS
from trials import ROOT

SHARE = share()
PAGE = ROOT / "docs" / "teeth.md"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What a process of its own, which has nothing of elbowroom imported, found out about each mutant of the share."""
    told = tmp_path_factory.mktemp("mutants") / "verdicts.json"
    runner = Path(__file__).with_name("run_mutants.py")
    ended = subprocess.run(
        [sys.executable, runner, "catalogue", "--share", "--json", told], capture_output=True, text=True, timeout=2400
    )
    assert told.exists(), ended.stderr
    return {verdict["name"]: verdict for verdict in json.loads(told.read_text())}


@pytest.mark.timeout(2460)
@pytest.mark.parametrize("mutant", SHARE, ids=[f"{mutant.report} {mutant.name}" for mutant in SHARE])
def test_a_known_bug_turns_its_tests_red(mutant: Mutant, verdicts: dict[str, dict[str, str]]) -> None:
    verdict = verdicts[mutant.name]
    assert verdict["outcome"] == "caught", f"{mutant.breaks}: {verdict['why']}"


@pytest.mark.parametrize("mutant", CATALOGUE, ids=lambda mutant: mutant.name)
def test_what_a_mutant_changes_is_there(mutant: Mutant) -> None:
    assert not lost(mutant), "whoever changed that code says here what the bug looks like now"


def test_no_two_mutants_bear_one_name() -> None:
    assert len({mutant.name for mutant in CATALOGUE}) == len(CATALOGUE)


def test_every_report_has_a_mutant_and_every_mutant_a_report() -> None:
    assert {mutant.report for mutant in CATALOGUE} == set(REPORTS)


def test_every_survivor_on_the_list_is_a_mutation_of_the_code() -> None:
    names = {each.name for region in REGIONS for each in mutations(region)}
    assert [name for name in SURVIVORS if name not in names] == []


@pytest.mark.parametrize(("what", "made"), [("table", table), ("regions", regions_table), ("survivors", survivors_table)])
def test_the_page_lists_what_there_is(what: str, made: Callable[[], str]) -> None:
    assert made() in PAGE.read_text(), f"`python tests/mutants/run_mutants.py {what}` writes it"
