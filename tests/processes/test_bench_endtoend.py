"""The bench of pods bound end to end counts what really happened."""

from elbowroom.deploy.bench import endtoend


def test_all_pods_of_the_end_to_end_bench_are_bound_in_real_processes() -> None:
    created, backlog = endtoend.of_size(nodes=3, created=12, backlog=7)
    assert (created.name, backlog.name) == ("bound-3", "backlog-3")
    assert (created.details["bound"], backlog.details["bound"]) == (12, 7)
    assert created.value > 0 and backlog.value > 0
    assert created.limit == created.details["fdatasyncs/s"] and created.limit > 0
