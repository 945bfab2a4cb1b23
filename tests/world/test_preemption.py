"""The whole cluster in the simulated world: the resize by preemption under faults and under a death before each effect.

``elbowroom explore preemption --seeds 1000`` and ``--deaths`` make the same runs in full; here is a part of them, and each
seed that ever failed.
"""

import pytest

from elbowroom.deploy.explore.cluster import links, peers
from elbowroom.deploy.explore.preemption import FAULTS, FAULTY_SECONDS, NODE, Preemption
from elbowroom.deploy.explore.run import Ended, Run, deaths, make, profile_for
from elbowroom.sim import nemesis

FAILED_ONCE = {
    9: "the last call to the runtime was lost and waited for two minutes",
    119: "a kubelet came back to allocations of pods that were gone",
    137: "the same, for an update",
    304: "the end of the state of a busy watch was lost for ever",
}
AS_DRAWN_NOW = {
    303518: "the run was called settled while the controllers were dead (I-53)",
    304649: "a word that was late on its way called a pod unscheduled that was bound (I-30)",
}


def fine(ended: Ended) -> None:
    assert not ended.failure, f"{ended.run}: {ended.failure}"


def test_without_faults_exactly_the_victims_needed_go() -> None:
    ended = make(Run(1))
    fine(ended)
    assert ended.number == 2


@pytest.mark.parametrize("profile", ["lab", "v1.37"])
@pytest.mark.parametrize("block", range(3))
def test_the_story_comes_to_its_end_under_faults(block: int, profile: str) -> None:
    for seed in range(1 + 10 * block, 11 + 10 * block):
        fine(make(Run(seed, hostile=True, profile=profile)))


@pytest.mark.parametrize("seed", FAILED_ONCE, ids=[f"{seed}: {why}" for seed, why in FAILED_ONCE.items()])
def test_a_seed_that_failed_holds(seed: int) -> None:
    """With the faults that were drawn then."""
    drawn = nemesis.plan(seed, peers([NODE]), links([NODE]), duration=FAULTY_SECONDS, count=FAULTS)
    fine(make(Run(seed, hostile=True), Preemption(profile_for("lab"), tuple(drawn))))


@pytest.mark.parametrize("seed", AS_DRAWN_NOW, ids=[f"{seed}: {why}" for seed, why in AS_DRAWN_NOW.items()])
def test_a_seed_that_failed_since_then_holds(seed: int) -> None:
    fine(make(Run(seed, hostile=True, profile="lab")))


@pytest.mark.parametrize("part", range(10))
def test_a_process_may_die_before_each_effect(part: int) -> None:
    runs = deaths(1, "lab")
    assert len(runs) > 1000, "the story has become shorter than this test believes"
    for run in runs[part * 17 :: 170]:
        fine(make(run))


@pytest.mark.parametrize("number", [1145, 1281], ids=lambda n: f"{n}: between the mark and the removal of a pod without grace")
def test_a_death_that_failed_holds(number: int) -> None:
    fine(make(Run(1, die_before=number)))
