"""Where nothing fails, no resize of profile lab ever needs a timer: neither the queue's flush of five minutes nor the kubelet's."""

import pytest

from elbowroom.deploy.explore.run import Run, outcome
from elbowroom.history.records import History
from elbowroom.history.report import judge

SEEDS = {"preemption": range(1, 5), "resize-storm": (19, 23, 26, 27)}
"""In these storms resizes have to wait, and some of them for victims."""
PERIODIC = "periodic_retry"


def history_of(scenario: str, seed: int) -> History:
    return History.of(outcome(Run(seed, scenario=scenario)).world.history)


@pytest.mark.parametrize("scenario", SEEDS)
def test_no_resize_waits_for_a_timer(scenario: str) -> None:
    plans = granted = parked = 0
    for seed in SEEDS[scenario]:
        history = history_of(scenario, seed)
        assert history.count("fault.begin") == 0, "this is about runs without faults"
        report = judge(history)
        assert not [each for each in report.failures if each.invariant in ("I-28", "I-11")], f"seed {seed}: {report.failures[:3]}"
        flushed = history.count(
            "sch.wake", lambda record: record["cause"] == "UnschedulableTimeout" and bool(record.get("pod_node"))
        )
        by_timer = history.count("kl.alloc", lambda record: record["cause"] == PERIODIC)
        assert (flushed, by_timer) == (0, 0), f"seed {seed}"
        plans += history.count("sch.plan", lambda record: record["resize"])
        parked += history.count("sch.park", lambda record: bool(record.get("pod_node")))
        granted += history.count("kl.judge", lambda record: record["verdict"] == "Granted")
    assert granted and plans and parked, "too little happened"
