"""Put known bugs back, one at a time, and see that the tests notice.

``python tests/mutants/run_mutants.py [all|catalogue|lines|table|regions|survivors] [-k WORD]``; the last three write what
docs/teeth.md shows. A run that was broken off goes on where it was, as long as no source has changed; ``--afresh`` begins anew.

Exit 0 if every mutant was caught (or, of lines, is argued in the list of survivors), 1 if one survived, 2 if one could not be made.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from catalogue import CATALOGUE, share
from line_mutations import mutations
from line_trials import Chosen, chosen, gone, try_lines
from mutating import LostTarget, Mutant, source_tree
from regions import REGIONS
from reports import REPORTS
from survivors import SURVIVORS
from trials import ROOT, Bench, Ran, Trial, at_bench, is_of, seconds_of, unmutated
from verdicts import ARGUED, CAUGHT, ERROR, SURVIVED, Kept, Verdict, digest

KEPT = ROOT / ".pytest_cache" / "mutants" / "verdicts.jsonl"


def lost(mutant: Mutant) -> str:
    """Why it cannot be made, or proves nothing; empty if it can be tried."""
    if not mutant.caught_by:
        return "no test is to catch it"
    try:
        for module, rewrite in mutant.rewrites().items():
            rewrite(source_tree(ROOT, module))
    except LostTarget as why:
        return str(why)
    return ""


def try_mutants(bench: Bench, mutants: Sequence[Mutant], jobs: int, kept: Kept) -> Iterator[Verdict]:
    """The verdicts on the mutants, each when it is reached. Where the unmutated code is not green, nothing is proved."""
    yield from (kept[mutant.name] for mutant in mutants if mutant.name in kept)
    left = [mutant for mutant in mutants if mutant.name not in kept]
    yield from (Verdict(mutant.name, ERROR, why) for mutant in left if (why := lost(mutant)))
    able = [mutant for mutant in left if not lost(mutant)]
    named = list(dict.fromkeys(test for mutant in able for test in mutant.caught_by))
    usual: dict[str, float] = {}
    why_not: dict[str, str] = {}
    for ran in unmutated(bench, bench.of(named), jobs):
        usual.update(ran.passed)
        why_not.update(dict.fromkeys(ran.trial.tests, ran.error))
    trials: list[Trial] = []
    for mutant in able:
        unproved = [test for test in mutant.caught_by if not bench.of([test]) or not usual.keys() >= set(bench.of([test]))]
        if unproved:
            why = "; ".join(dict.fromkeys(why_not.get(node, "") for node in bench.of(unproved))) or "it fails or is not there"
            yield Verdict(mutant.name, ERROR, f"without the mutant {unproved[0]} is not green: {why}")
            continue
        for test in mutant.caught_by:
            nodes = tuple(sorted(bench.of([test]), key=lambda node: usual[node]))
            trials.append(Trial(mutant.name, nodes, mutant.rewrites(), seconds_of(max(usual[node] for node in nodes))))
    by_name = {mutant.name: mutant for mutant in able}
    found: dict[str, list[Ran]] = {}
    for ran in bench.run(trials, jobs):
        mutant, rans = by_name[ran.trial.name], found.setdefault(ran.trial.name, [])
        rans.append(ran)
        if len(rans) == len(mutant.caught_by):
            yield judge(mutant, rans)


def judge(mutant: Mutant, rans: Sequence[Ran]) -> Verdict:
    """Every test that is to catch it must have failed; and nothing else may have gone wrong."""
    seconds = sum(ran.seconds for ran in rans)
    errors = [ran.error for ran in rans if ran.error and not ran.red]
    if errors:
        return Verdict(mutant.name, ERROR, errors[0], seconds)
    green = [test for test in mutant.caught_by if not any(ran.red for ran in rans if is_of(test, ran.trial.tests[0]))]
    if green:
        return Verdict(mutant.name, SURVIVED, f"still green: {', '.join(green)}", seconds)
    return Verdict(mutant.name, CAUGHT, "", seconds, ", ".join(mutant.caught_by))


def table() -> str:
    """The catalogue as docs/teeth.md shows it."""
    lines = ["| report | source | what breaks | mutant | turns red |", "| --- | --- | --- | --- | --- |"]
    for mutant in CATALOGUE:
        tests = "<br>".join(f"`{test}`" for test in mutant.caught_by)
        lines.append(f"| {mutant.report} | {REPORTS[mutant.report][0] or '–'} | {mutant.breaks} | `{mutant.name}` | {tests} |")
    return "\n".join(lines)


def regions_table() -> str:
    """The rules whose lines are mutated as docs/teeth.md shows them."""
    lines = ["| rule | functions | mutations |", "| --- | --- | --- |"]
    for rule in dict.fromkeys(region.rule for region in REGIONS):
        regions = [region for region in REGIONS if region.rule == rule]
        names = [target.removeprefix("elbowroom.").replace(":", ".") for region in regions for target in region.targets]
        count = sum(len(mutations(region)) for region in regions)
        lines.append(f"| {rule} | {', '.join(f'`{name}`' for name in names)} | {count} |")
    return "\n".join(lines)


def survivors_table() -> str:
    """The single-line mutations that nobody can tell from the code, and why, as docs/teeth.md shows them."""
    lines = ["| mutation | why nobody can tell |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| `{name.removeprefix('elbowroom.')}` | {why} |" for name, why in SURVIVORS.items())])


TABLES = {"table": table, "regions": regions_table, "survivors": survivors_table}


def told(verdict: Verdict) -> str:
    more = f"\n    {verdict.why}" if verdict.why else ""
    return f"{verdict.outcome:9} {verdict.seconds:5.1f} s  {verdict.name}{more}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(mutants: Sequence[Mutant], lines: Chosen, jobs: int, kept: Kept) -> tuple[list[Verdict], Mapping[str, float]]:
    """All verdicts, told as they come; and the seconds of the clock that each part took."""
    verdicts: list[Verdict] = []
    took: dict[str, float] = {}

    def heard(some: Iterator[Verdict]) -> None:
        for verdict in some:
            if verdict.name not in kept:
                _say(told(verdict))
                kept.add(verdict)
            verdicts.append(verdict)

    def work(bench: Bench) -> None:
        for part, some in (
            ("catalogue", try_mutants(bench, mutants, jobs, kept)),
            ("lines", try_lines(bench, lines, jobs, kept)),
        ):
            began = time.monotonic()
            heard(some)
            took[part] = time.monotonic() - began

    began = time.monotonic()
    modules = dict.fromkeys([*(test.partition("::")[0] for mutant in mutants for test in mutant.caught_by), *lines.modules])
    if not at_bench(list(modules), work):
        verdicts.append(Verdict("the tests", ERROR, "cannot be collected"))
    return verdicts, {"all": time.monotonic() - began, **took}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Put known bugs back, one at a time, and see that the tests notice.")
    parser.add_argument("what", nargs="?", choices=("all", "catalogue", "lines", *TABLES), default="all")
    parser.add_argument("-k", dest="word", default="", help="only those with that word in their name, rule or report")
    parser.add_argument("--share", action="store_true", help="of the catalogue, one quick mutant for each report")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="write the verdicts there")
    parser.add_argument("--afresh", action="store_true", help="forget what an earlier run found")
    given = parser.parse_args(arguments)
    if given.what in TABLES:
        _say(TABLES[given.what]())
        return 0
    all_of_them = () if given.what == "lines" else share() if given.share else CATALOGUE
    mutants = [mutant for mutant in all_of_them if given.word in f"{mutant.report} {mutant.name}"]
    lines = Chosen((), ()) if given.what == "catalogue" else chosen(given.word)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # nothing is left in /tmp
    folders = [ROOT / name for name in ("common", "services", "deploy", "tests")]
    kept = Kept(None if given.share else KEPT, digest(folders), afresh=given.afresh)
    verdicts, took = run(mutants, lines, given.jobs, kept)
    if lines.mutations and not given.word:
        for verdict in gone(lines):
            _say(told(verdict))
            verdicts.append(verdict)
    counts = Counter(verdict.outcome for verdict in verdicts)
    _say(", ".join(f"{counts[outcome]} {outcome}" for outcome in (CAUGHT, ARGUED, SURVIVED, ERROR)))
    processor = sum(verdict.seconds for verdict in verdicts)
    _say(f"{took['all']:.0f} s by the clock; the mutants' tests used {processor:.0f} s of a processor")
    for verdict in verdicts:
        if verdict.outcome in (SURVIVED, ERROR):
            _say(told(verdict))
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1))
    return 2 if counts[ERROR] else 1 if counts[SURVIVED] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
