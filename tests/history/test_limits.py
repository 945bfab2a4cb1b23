"""LimitRanges and the values that change (I-47)."""

from typing import Any

import pytest
from test_promises import Records, a_commit, a_pod, history_of

from elbowroom.history.limits import changes_keep_to_limit_ranges


def given(requests: dict[str, str], limits: dict[str, str] | None = None) -> dict[str, Any]:
    return {"requests": requests, "limits": limits or {}}


ONE = given({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"})


def resized(limit: dict[str, Any], was: dict[str, Any], now: dict[str, Any], **facts: Any) -> Records:
    """A pod that was there before its namespace's LimitRange, and is resized under it."""
    return [
        a_commit("pods/ns/a", "admin", a_pod(containers=was), "create"),
        a_commit("limitranges/ns/l", "admin", {"generation": 0, "ranges": [limit]}, "create"),
        a_commit("pods/ns/a", "admin", a_pod(2, containers=now, **facts), sub="resize"),
    ]


def violations(records: Records) -> list[str]:
    return [violation.message for violation in changes_keep_to_limit_ranges(history_of(records))]


def of_each_container(**bounds: dict[str, str]) -> dict[str, Any]:
    return {"type": "Container", **bounds}


def of_the_pod(**bounds: dict[str, str]) -> dict[str, Any]:
    return {"type": "Pod", **bounds}


TWO = given({"cpu": "2", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"})
BURSTS = given({"cpu": "1", "memory": "1Gi"}, {"cpu": "4", "memory": "1Gi"})

BROKEN = [
    (of_each_container(max={"cpu": "1999m"}), {"c": ONE}, {"c": TWO}, 2),
    (of_each_container(min={"cpu": "1001m"}), {"c": TWO}, {"c": ONE}, 2),
    (of_each_container(maxLimitRequestRatio={"cpu": "3"}), {"c": ONE}, {"c": BURSTS}, 1),
    (of_each_container(max={"cpu": "1500m"}), {"c": ONE, "d": ONE}, {"c": ONE, "d": TWO}, 2),
    (of_the_pod(max={"cpu": "2500m"}), {"c": ONE, "d": ONE}, {"c": ONE, "d": TWO}, 2),
    (of_the_pod(min={"memory": "3Gi"}), {"c": ONE, "d": ONE}, {"c": ONE, "d": given({"cpu": "1", "memory": "2Gi"})}, 0),
    (of_the_pod(min={"memory": "4Gi"}), {"c": ONE, "d": ONE}, {"c": ONE, "d": given({"cpu": "1", "memory": "2Gi"})}, 1),
    (of_each_container(max={"cpu": "2"}), {"c": ONE}, {"c": TWO}, 0),
    (of_each_container(min={"cpu": "1"}), {"c": TWO}, {"c": ONE}, 0),
    (of_each_container(maxLimitRequestRatio={"cpu": "4"}), {"c": ONE}, {"c": BURSTS}, 0),
    (of_each_container(min={"memory": "2Gi"}), {"c": ONE}, {"c": TWO}, 0),
    (of_each_container(max={"cpu": "100m"}), {"c": ONE, "d": ONE}, {"c": ONE, "d": given({"cpu": "50m"})}, 0),
    (of_each_container(max={"cpu": "1"}), {"c": ONE}, {"c": given({"cpu": "12E"}, {"cpu": "12E"})}, 0),
    (of_each_container(default={"cpu": "1"}, defaultRequest={"cpu": "1"}), {"c": ONE}, {"c": TWO}, 0),
    ({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, {"c": ONE}, {"c": TWO}, 0),
]


@pytest.mark.parametrize(("limit", "was", "now", "count"), BROKEN)
def test_of_a_resize_only_what_it_changes_is_judged(limit: Any, was: Any, now: Any, count: int) -> None:
    assert len(violations(resized(limit, was, now))) == count


def test_a_violation_says_what_was_set_and_what_is_allowed() -> None:
    assert violations(resized(of_each_container(max={"cpu": "1500m"}), {"c": ONE}, {"c": TWO}))[0] == (
        "pods/ns/a: container c's cpu requests are 2000, beyond the max 1500m of limitranges/ns/l"
    )


def test_bounds_of_a_pod_are_not_held_against_one_that_has_more_than_containers() -> None:
    assert violations(resized(of_the_pod(max={"cpu": "1"}), {"c": ONE}, {"c": TWO}, plain=False)) == []


def test_a_range_that_is_gone_or_another_namespaces_binds_nobody() -> None:
    limit = of_each_container(max={"cpu": "1"})
    gone = resized(limit, {"c": ONE}, {"c": TWO})
    gone.insert(2, a_commit("limitranges/ns/l", "admin", {"generation": 0, "ranges": [limit]}, "delete") | {"gone": True})
    other = resized(limit, {"c": ONE}, {"c": TWO})
    other[1]["key"] = "limitranges/elsewhere/l"
    assert violations(gone) == violations(other) == []


def test_a_pod_that_is_being_deleted_may_be_resized_beyond_it() -> None:
    records = resized(of_each_container(max={"cpu": "1"}), {"c": ONE}, {"c": TWO})
    records[0]["obj"]["deleting"] = True
    assert violations(records) == []


def test_a_new_pod_keeps_to_it_and_one_of_before_the_history_is_left_alone() -> None:
    limit = a_commit("limitranges/ns/l", "admin", {"generation": 0, "ranges": [of_each_container(max={"cpu": "500m"})]}, "create")
    assert len(violations([dict(limit), a_commit("pods/ns/a", "admin", a_pod(), "create")])) == 2
    assert violations([dict(limit), a_commit("pods/ns/a", "admin", a_pod(), "patch", "status")]) == []
