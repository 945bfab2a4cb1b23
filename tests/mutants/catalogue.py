"""All mutants, by the reports that they are drawn from."""

from catalogue_apiserver import APISERVER
from catalogue_kubelet import KUBELET
from catalogue_races import RACES
from catalogue_scheduler import SCHEDULER
from mutating import Mutant

CATALOGUE: tuple[Mutant, ...] = tuple(
    sorted((*KUBELET, *APISERVER, *SCHEDULER, *RACES), key=lambda mutant: (mutant.report, mutant.name))
)


def share() -> list[Mutant]:
    """A part for every day: the first quick mutant of each report."""
    first: dict[str, Mutant] = {}
    for mutant in CATALOGUE:
        if not mutant.slow:
            first.setdefault(mutant.report, mutant)
    return list(first.values())
