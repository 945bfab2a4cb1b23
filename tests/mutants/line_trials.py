"""Trying the single-line mutations: each against those fast tests of its rule that come to the changed statement, the quick first.

Which do is seen by running them once with a mark at every statement. What no test comes to survives.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from line_mutations import Mutation, Region, mutations, watched
from regions import REGIONS
from survivors import SURVIVORS
from trials import Bench, Ran, Trial, seconds_of, unmutated
from verdicts import ARGUED, CAUGHT, ERROR, SURVIVED, Kept, Verdict


@dataclass(frozen=True, slots=True)
class Chosen:
    """The mutations to try, and the modules whose tests are needed."""

    regions: tuple[Region, ...]
    mutations: tuple[tuple[Region, Mutation], ...]

    @property
    def modules(self) -> list[str]:
        return list(dict.fromkeys(module for region, _ in self.mutations for module in region.tests))


def chosen(word: str) -> Chosen:
    """All whose rule or name has that word in it."""
    found = [(region, each) for region in REGIONS for each in mutations(region) if word in f"{region.rule} {each.name}"]
    return Chosen(tuple(dict.fromkeys(region for region, _ in found)), tuple(found))


def try_lines(bench: Bench, some: Chosen, jobs: int, kept: Kept) -> Iterator[Verdict]:
    """The verdict on each mutation when it is reached; those that are ``kept`` are not tried again."""
    yield from (kept[each.name] for _, each in some.mutations if each.name in kept)
    left = [(region, each) for region, each in some.mutations if each.name not in kept]
    if not left:
        return
    regions = list(dict.fromkeys(region for region, _ in left))
    tests = bench.of(dict.fromkeys(module for region in regions for module in region.tests))
    usual: dict[str, float] = {}
    reached: dict[str, frozenset[str]] = {}
    for ran in unmutated(bench, tests, jobs, watched(regions)):
        if ran.error or ran.failed:
            yield Verdict(ran.trial.name, ERROR, f"without a mutation: {ran.error or ran.failed[0]}", ran.seconds)
            return
        usual.update(ran.passed)
        reached.update(ran.reached)
    trials = [_trial(each, [test for test in bench.of(region.tests) if test in usual], usual, reached) for region, each in left]
    for ran in bench.run([trial for trial in trials if trial.tests], jobs):
        yield _judged(ran)
    for trial in trials:
        if not trial.tests:
            yield _judged(Ran(trial))


def _trial(mutation: Mutation, tests: Sequence[str], usual: Mapping[str, float], reached: Mapping[str, frozenset[str]]) -> Trial:
    """A skipped test is none of ``usual``."""
    reaching = sorted((test for test in tests if mutation.mark in reached[test]), key=lambda test: usual[test])
    slowest = max((usual[test] for test in reaching), default=0.0)
    rewrites = {mutation.target.partition(":")[0]: mutation.rewrite()}
    return Trial(mutation.name, tuple(reaching), rewrites, seconds_of(slowest))


def _judged(ran: Ran) -> Verdict:
    name = ran.trial.name
    if ran.red:
        if name in SURVIVORS:
            return Verdict(name, ERROR, f"is listed as a survivor and is caught by {ran.red}: take it off the list", ran.seconds)
        return Verdict(name, CAUGHT, "", ran.seconds, ran.red)
    if ran.error:
        return Verdict(name, ERROR, ran.error, ran.seconds)
    if name in SURVIVORS:
        return Verdict(name, ARGUED, "", ran.seconds)
    return Verdict(name, SURVIVED, f"none of {len(ran.passed)} tests minds" if ran.passed else "no test comes there", ran.seconds)


def gone(some: Chosen) -> list[Verdict]:
    """Survivors on the list that no mutation bears any more."""
    known = {each.name for _, each in some.mutations}
    return [Verdict(name, ERROR, "is listed as a survivor and is no mutation") for name in SURVIVORS if name not in known]
