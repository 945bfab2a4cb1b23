"""Put known bugs back, one at a time, and see that the tests notice.

``python tests/mutants/run_mutants.py [all|catalogue|lines|table] [-k WORD]``; ``table`` writes the catalogue for docs/teeth.md.

Exit 0 if every mutant was caught, 1 if one survived (or, of lines, one that the list of survivors does not argue), 2 if one could
not be made.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from catalogue import CATALOGUE, share
from mutating import LostTarget, Mutant, source_tree
from reports import REPORTS
from trials import ROOT, Ran, Trial, run, unmutated

CAUGHT, SURVIVED, ERROR = "caught", "survived", "error"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant; ``why`` says more of one that was not caught."""

    name: str
    outcome: str
    why: str = ""
    seconds: float = 0.0


def judge(mutant: Mutant, ran: Ran) -> Verdict:
    """Every test that is to catch it must have failed; and nothing else may have gone wrong."""
    if ran.error:
        return Verdict(mutant.name, ERROR, ran.error, ran.seconds)
    green = [test for test in mutant.caught_by if not ran.red(test)]
    if green:
        return Verdict(mutant.name, SURVIVED, f"still green: {', '.join(green)}", ran.seconds)
    return Verdict(mutant.name, CAUGHT, "", ran.seconds)


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


def try_all(mutants: Sequence[Mutant], jobs: int) -> Iterator[Verdict]:
    """The verdicts on the mutants, each when it is reached. Where the unmutated code is not green, nothing is proved."""
    verdicts = {mutant.name: Verdict(mutant.name, ERROR, why) for mutant in mutants if (why := lost(mutant))}
    able = [mutant for mutant in mutants if mutant.name not in verdicts]
    tests = [test for mutant in able for test in mutant.caught_by]
    for ran in unmutated(tests, jobs):
        for mutant in able:
            for test in mutant.caught_by:
                if test in ran.trial.tests and not ran.green(test):
                    verdicts[mutant.name] = Verdict(mutant.name, ERROR, f"without the mutant {test} is not green: {ran.error}")
    by_name = {mutant.name: mutant for mutant in able if mutant.name not in verdicts}
    yield from verdicts.values()
    for ran in run([Trial(name, mutant.caught_by, mutant.rewrites()) for name, mutant in by_name.items()], jobs):
        yield judge(by_name[ran.trial.name], ran)


def table() -> str:
    """The catalogue as docs/teeth.md shows it."""
    lines = ["| report | source | what breaks | mutant | turns red |", "| --- | --- | --- | --- | --- |"]
    for mutant in CATALOGUE:
        tests = "<br>".join(f"`{test}`" for test in mutant.caught_by)
        lines.append(f"| {mutant.report} | {REPORTS[mutant.report][0] or '–'} | {mutant.breaks} | `{mutant.name}` | {tests} |")
    return "\n".join(lines)


def told(verdict: Verdict) -> str:
    return f"{verdict.outcome:9} {verdict.seconds:5.1f} s  {verdict.name}" + (f"\n    {verdict.why}" if verdict.why else "")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Put known bugs back, one at a time, and see that the tests notice.")
    parser.add_argument("what", nargs="?", choices=("all", "catalogue", "lines", "table"), default="all")
    parser.add_argument("-k", dest="word", default="", help="only those with that word in their name or report")
    parser.add_argument("--share", action="store_true", help="of the catalogue, one quick mutant for each report")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the verdicts there")
    chosen = parser.parse_args(arguments)
    if chosen.what == "table":
        _say(table())
        return 0
    verdicts: list[Verdict] = []
    if chosen.what in ("all", "catalogue"):
        all_of_them = share() if chosen.share else CATALOGUE
        mutants = [mutant for mutant in all_of_them if chosen.word in f"{mutant.report} {mutant.name}"]
        for verdict in try_all(mutants, chosen.jobs):
            verdicts.append(verdict)
            _say(told(verdict))
    if chosen.what in ("all", "lines"):
        from line_mutations import try_lines

        for line in try_lines(chosen.word, chosen.jobs):
            verdicts.append(Verdict(*line))
            _say(told(verdicts[-1]))
    counts = {outcome: sum(verdict.outcome == outcome for verdict in verdicts) for outcome in (CAUGHT, SURVIVED, ERROR)}
    _say(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1))
    return 2 if counts[ERROR] else 1 if counts[SURVIVED] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
