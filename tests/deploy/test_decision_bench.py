"""What a kubelet's pass over its pending resizes costs, and how that grows."""

import time

from elbowroom.deploy.bench.decision import pass_seconds


def test_a_pass_over_a_hundred_pending_resizes_takes_less_than_50_ms() -> None:
    assert min(pass_seconds(running=250, pending=100, passes=10, clock=time.process_time)) < 0.05


def test_a_pass_grows_with_the_number_of_pending_resizes_and_no_faster() -> None:
    """Ten times as many, on as many pods: a cost that grew with pods times resizes would be a hundred times as large."""
    small, large = (
        min(pass_seconds(running=max(pending, 100), pending=pending, passes=5, clock=time.process_time)) for pending in (100, 1000)
    )
    assert large < 30 * small
