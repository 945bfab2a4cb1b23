"""Storms of resizes in the simulated world: where they end is decided by the last desires alone, and every invariant holds.

``elbowroom explore resize-storm --seeds 10000`` makes the same runs in full; here is a part of them.
"""

from collections import Counter

import pytest

from elbowroom.deploy.explore.run import Ended, Point, Run, make, outcome
from elbowroom.deploy.explore.run import profile_for as profile
from elbowroom.deploy.explore.storm_plan import NODE_CPU, NODE_MEMORY, plan

SCENARIO = "resize-storm"
PROFILES = ("lab", "v1.37")


def fine(ended: Ended) -> None:
    assert not ended.failure, f"{ended.run}: {ended.failure}"


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("block", range(2))
def test_a_quiet_storm_ends_where_its_last_word_says(block: int, name: str) -> None:
    resizes = 0
    for seed in range(1 + 5 * block, 6 + 5 * block):
        ended = make(Run(seed, profile=name, scenario=SCENARIO))
        fine(ended)
        resizes += ended.number
    assert resizes > 10, "too little happened"


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("block", range(2))
def test_a_storm_with_faults_ends_there_too(block: int, name: str) -> None:
    faults: Counter[str] = Counter()
    resizes = 0
    for seed in range(101 + 5 * block, 106 + 5 * block):
        ended = make(Run(seed, hostile=True, profile=name, scenario=SCENARIO))
        fine(ended)
        faults.update(ended.faults)
        resizes += ended.number
    assert resizes > 10 and faults.total() > 10 and len(faults) > 2, f"too little happened: {resizes} resizes, {faults}"


def test_a_resize_that_was_infeasible_on_a_small_node_is_granted_when_it_grows() -> None:
    """Seed 9 ends with the node's growth, which no timer and no other pod's resize tells of."""
    ended = outcome(Run(9, scenario=SCENARIO))
    allocations = [record for record in ended.world.history if record["kind"] == "kl.alloc"]
    assert "node_updated" in [record["cause"] for record in allocations]
    fine(make(Run(9, scenario=SCENARIO)))


@pytest.mark.parametrize("point", ["K14.4#2:kill", "K14.4#2:disk", "K13.4#2:disk"])
def test_what_a_dying_kubelet_could_not_write_down_is_written_by_the_next(point: str) -> None:
    """Storm 2: the runtime had carried out an update whose record was lost, so the next life has nothing more to tell it."""
    fine(make(Run(2, profile="v1.37", scenario=SCENARIO, points=(Point.of(f"kubelet/node-1@{point}"),))))


def test_an_update_under_way_when_its_kubelet_was_cut_off_does_not_land_above_the_pod() -> None:
    """Storm 70039: it came into force after a newer allocation had lowered the pod's cgroup (I-15)."""
    fine(make(Run(70039, hostile=True, profile="lab", scenario=SCENARIO)))


def test_a_round_is_remembered_while_the_nodes_policy_holds_its_resize_back() -> None:
    """Storm 233429: preemption was forbidden and allowed again while the victims ended, and a second round was chosen (I-25)."""
    fine(make(Run(233429, hostile=True, profile="lab", scenario=SCENARIO)))


def test_an_allocation_replaces_the_condition_of_the_one_that_a_kubelet_came_back_with() -> None:
    """Storm 239311: both bear the generation that the pod had by then, and the newer one its own time (RC-132, I-19)."""
    fine(make(Run(239311, hostile=True, profile="v1.37", scenario=SCENARIO)))


def test_a_sandbox_that_may_have_been_made_before_is_told_what_its_programs_do_now() -> None:
    """Storm 311204: its runtime died with the answer, and the behaviour had changed when it was asked for again."""
    fine(make(Run(311204, hostile=True, profile="lab", scenario=SCENARIO)))


def test_a_limit_range_that_a_storm_draws_is_kept_to() -> None:
    """Storm 142: the history tells of it, and of requests that it refuses."""
    made = outcome(Run(142, hostile=True, profile="v1.37", scenario=SCENARIO))
    drawn = plan(142, hostile=True, profile=profile("v1.37")).limits
    told = [record for record in made.world.notes("commit") if record["resource"] == "limitranges"]
    assert [drawn] == [{k: v for k, v in told[0]["obj"]["ranges"][0].items() if k in (drawn or {})}] and told[-1]["gone"]
    assert made.report.looked_at["I-47"] and not made.report.failures


@pytest.mark.parametrize("name", PROFILES)
def test_what_is_wanted_at_last_fits(name: str) -> None:
    sizes = 0
    for seed in range(200):
        made = plan(seed, hostile=True, profile=profile(name))
        for node in made.nodes:
            met = [pod for pod in made.pods if pod.node == node and pod.can_be_met]
            sizes += sum(len(pod.last) for pod in met)
            asked = [sum(size.request[at] for pod in met for size in pod.last) for at in (0, 1)]
            assert asked[0] <= NODE_CPU and asked[1] <= NODE_MEMORY, seed
    assert sizes > 200, "most plans have somebody whose wish is met"
