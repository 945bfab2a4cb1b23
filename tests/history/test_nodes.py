"""Each invariant of a node passes the good run and catches the history made to break it."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from elbowroom.history import nodes
from elbowroom.history.records import History
from elbowroom.history.report import judge

GI = 1 << 30
Records = list[dict[str, Any]]
Change = Callable[[Records], None]


def a_commit(user: str, generation: int, resize: dict[str, Any], sub: str = "status") -> dict[str, Any]:
    obj = {"generation": generation, "node": "n1", "phase": "Running", "qos": "Burstable", "resize": resize, "pending": ""}
    obj |= {"nominated": "", "scheduled": "True", "deleting": False, "figures": {}, "since": {}}
    facts = {
        "key": "pods/ns/a",
        "resource": "pods",
        "uid": "u1",
        "verb": "patch",
        "sub": sub,
        "user": user,
        "base": 0,
        "gone": False,
    }
    return {"kind": "commit", "proc": "apiserver", "node": "", "obj": obj, "old_node": "n1", **facts}


def a_verdict(generation: int, verdict: str, number: int, rank: list[Any], pod: str = "a") -> dict[str, Any]:
    facts = {"pod": f"ns/{pod}", "uid": f"u-{pod}" if pod != "a" else "u1", "gen": generation, "verdict": verdict}
    return {"kind": "kl.judge", "proc": "kubelet/n1", "node": "n1", "pass": number, "rank": rank, "cause": "pod_updated", **facts}


def an_allocation(generation: int, cause: str) -> dict[str, Any]:
    facts = {"pod": "ns/a", "uid": "u1", "gen": generation, "containers": {}, "level": None, "cause": cause}
    return {"kind": "kl.alloc", "proc": "kubelet/n1", "node": "n1", "vector": {}, "allocatable": {}, **facts}


def of_runtime(kind: str, container: str = "x", attempt: int = 0, **facts: Any) -> dict[str, Any]:
    who: dict[str, Any] = {"pod": "ns/a", "uid": "u1", "container": f"a_{container}_{attempt}", "name": container}
    who["attempt"] = attempt
    return {"kind": kind, "proc": "runtime/n1", "node": "n1", **who, **facts}


def a_limit(memory: int, container: str = "x", attempt: int = 0) -> dict[str, Any]:
    return of_runtime("rt.cgroup", container, attempt, limit={"cpu": None, "memory": memory})


def a_pod_limit(memory: int) -> dict[str, Any]:
    limit = {"cpu": None, "memory": memory}
    return {"kind": "rt.cgroup", "proc": "runtime/n1", "node": "n1", "pod": "ns/a", "uid": "u1", "limit": limit}


def a_good_run() -> Records:
    """A pod of two containers is resized: one down and one up, then beyond the node; the kubelet restarts; one container ends."""
    kubelet = "system:node:n1"
    small, large = {"memory_limit_bytes": GI}, {"memory_limit_bytes": 3 * GI}
    return [
        {"kind": "rt.started", "proc": "runtime/n1", "node": "n1", "sandboxes": 0},
        a_commit("admin", 1, {}, sub=""),
        an_allocation(1, "admitted"),
        a_pod_limit(3 * GI),
        of_runtime("rt.create", "x", cfg={}),
        a_limit(2 * GI, "x"),
        of_runtime("rt.create", "y", cfg={}),
        a_limit(GI, "y"),
        a_commit("admin", 2, {}, sub="resize"),
        a_verdict(2, "Granted", 1, [False]),
        a_verdict(5, "Deferred", 1, [True, -10, True, False, 3], pod="b"),
        a_verdict(4, "Deferred", 1, [True, -10, True, False, 7], pod="c"),
        an_allocation(2, "pod_updated"),
        a_commit(kubelet, 2, {"PodResizeInProgress": ("", 2)}),
        of_runtime("rt.usage", "x", bytes=GI // 2, sampled=True),
        a_pod_limit(4 * GI),
        of_runtime("rt.update.begin", "x", cfg=small),
        of_runtime("rt.update.end", "x", cfg=small, ok=True),
        a_limit(GI),
        of_runtime("rt.update.begin", "y", cfg=large),
        of_runtime("rt.update.end", "y", cfg=large, ok=True),
        a_limit(3 * GI, "y"),
        of_runtime("rt.update.begin", "y", cfg=large),
        of_runtime("rt.update.end", "y", cfg=large, ok=True),
        a_commit("admin", 3, {}, sub="resize"),
        a_verdict(3, "Infeasible", 2, [True, 0, True, True, 0]),
        a_commit(kubelet, 3, {"PodResizePending": ("Infeasible", 3)}),
        {"kind": "ckpt.loaded", "proc": "kubelet/n1", "node": "n1", "key": "allocated_pods_state", "sha": "", "inc": 2},
        an_allocation(3, "admitted") | {"inc": 2},
        a_verdict(3, "Infeasible", 1, [True, 0, True, True, 0]) | {"inc": 2},
        of_runtime("rt.exit", "x", code=1, reason="Error"),
        of_runtime("rt.create", "x", attempt=1, cfg=small),
    ]


def history_of(records: Records) -> History:
    for rev, commit in enumerate((r for r in records if r["kind"] == "commit"), 1):
        commit["rev"] = rev
    ticks = count(1)
    return History.of({"run": "r", "seed": 1, "inc": 1, "seq": (t := next(ticks)), "mono_ns": t, "wall": t} | r for r in records)


def nth(records: Records, kind: str, number: int = 0) -> dict[str, Any]:
    return [r for r in records if r["kind"] == kind][number]


def put(kind: str, number: int = 0, **facts: Any) -> Change:
    return lambda records: nth(records, kind, number).update(facts)


def put_object(number: int, **facts: Any) -> Change:
    return lambda records: nth(records, "commit", number)["obj"].update(facts)


def without(kind: str, number: int = 0) -> Change:
    return lambda records: records.remove(nth(records, kind, number))


def judged_before_it_was_taken_back(records: Records) -> None:
    back = nth(records, "kl.alloc", 2)
    records.remove(back)
    records.append(back)


def one_life(records: Records) -> None:
    for record in records:
        record["inc"] = 1


def the_same_again(records: Records) -> None:
    one_life(records)
    at = records.index(nth(records, "rt.update.end", 2))
    records.insert(at, dict(records[at]))


def judged_twice(records: Records) -> None:
    records.append(a_verdict(3, "Deferred", 2, [True, 0, True, True, 0]) | {"inc": 2})


def swapped(records: Records) -> None:
    first, second = nth(records, "kl.judge", 1), nth(records, "kl.judge", 2)
    first["rank"], second["rank"] = second["rank"], first["rank"]


def a_growing_one_behind(records: Records) -> None:
    nth(records, "kl.judge", 0)["rank"] = [True, 0, True, True, 0]


def left_out_of_a_pass(records: Records) -> None:
    waits = a_verdict(4, "Deferred", 1, [True, -10, True, False, 7], pod="c")
    records += [waits | {"pass": 1, "inc": 2}, waits | {"pass": 3, "inc": 2}]


def sampled_for_an_older_allocation(records: Records) -> None:
    sample = nth(records, "rt.usage")
    records.remove(sample)
    records.insert(4, sample)
    nth(records, "kl.alloc", 1)["containers"] = {"x": {"limits": {"memory": "1Gi"}}}


def stopped_for_nothing(records: Records) -> None:
    nth(records, "rt.exit")["stopped"] = True
    for alloc in [r for r in records if r["kind"] == "kl.alloc"]:
        alloc["cause"] = "admitted"


def said_twice_that_it_waits(records: Records) -> None:
    end = nth(records, "commit", 4)
    for record in [r for r in records if r["kind"] in ("ckpt.loaded", "kl.judge") and r.get("inc") == 2]:
        records.remove(record)
    over = a_verdict(3, "Granted", 3, [True, 0, True, True, 0])
    records[records.index(end) :] = [over, end, dict(end), *records[records.index(end) + 1 :]]


def said_twice_that_it_goes_on(records: Records) -> None:
    end = nth(records, "commit", 2)
    over = {"kind": "kl.resized", "proc": "kubelet/n1", "node": "n1", "pod": "ns/a", "uid": "u1", "gen": 2}
    records[records.index(end) :] = [over, end, dict(end), *records[records.index(end) + 1 :]]


def at(moment: str, later: str) -> Change:
    """The same condition, told twice with these times."""

    def change(records: Records) -> None:
        told = nth(records, "commit", 4)
        told["obj"]["since"] = {"PodResizePending": moment}
        again = {**told, "obj": {**told["obj"], "since": {"PodResizePending": later}}}
        records.insert(records.index(told) + 1, again)

    return change


VIOLATIONS: list[tuple[str, str, Change]] = [
    ("I-02", "another node's kubelet writes the status", put("commit", 2, user="system:node:n2")),
    ("I-02", "somebody else says what it was allocated", put_object(3, figures={"x": {"allocated": {"cpu": "1"}}})),
    ("I-13", "one that waits is left out of a pass", left_out_of_a_pass),
    ("I-14", "the look was for an older allocation", sampled_for_an_older_allocation),
    ("I-14", "it used more all the time", put("rt.update.begin", usage=2 * GI)),
    ("I-15", "a pod is lowered before its containers", lambda r: r.insert(r.index(nth(r, "rt.update.begin")), a_pod_limit(2 * GI))),
    ("I-18", "one is made before the last has ended", put("rt.exit", container="ns/a/x/7")),
    ("I-18", "one is stopped though nothing was resized", stopped_for_nothing),
    ("I-19", "a condition outlives what it told of", said_twice_that_it_waits),
    ("I-19", "progress outlives the resize", said_twice_that_it_goes_on),
    ("I-19", "a condition's time goes back", at("2026-01-01T00:00:09Z", "2026-01-01T00:00:08Z")),
    ("I-19", "a condition's time is another, though it is the same", at("2026-01-01T00:00:08Z", "2026-01-01T00:00:09Z")),
    ("I-08", "a running container is made again", without("rt.exit")),
    ("I-08", "a resize is judged before all pods are taken back", judged_before_it_was_taken_back),
    ("I-12", "an infeasible resize is judged again", judged_twice),
    ("I-13", "the younger wait is judged first", swapped),
    ("I-13", "one that grows is judged before a more important one", a_growing_one_behind),
    ("I-14", "a limit is lowered without a sample", without("rt.usage")),
    ("I-14", "a limit is lowered below the usage", put("rt.usage", bytes=GI)),
    ("I-15", "a container grows before its pod does", without("rt.cgroup", 3)),
    ("I-16", "an update is repeated for ever", the_same_again),
    ("I-17", "the class changes", put_object(4, qos="Guaranteed")),
    ("I-18", "a restart is not counted", put("rt.create", 2, attempt=0)),
    ("I-18", "a restart is counted twice", put("rt.create", 2, attempt=2)),
    ("I-19", "a condition tells of a verdict that nobody reached", put_object(4, resize={"PodResizePending": ("Deferred", 3)})),
    ("I-19", "a condition tells of a generation to come", put_object(2, resize={"PodResizeInProgress": ("", 9)})),
]


def broken(records: Records) -> set[str]:
    return {violation.invariant for check in nodes.INVARIANTS.values() for violation in check(history_of(records))}


def test_a_good_run_holds() -> None:
    report = judge(history_of(a_good_run()))
    assert not broken(a_good_run()), report.text()
    assert all(report.looked_at[invariant] for invariant in nodes.INVARIANTS), "every invariant had something to look at"


@pytest.mark.parametrize(("invariant", "why", "change"), VIOLATIONS, ids=[f"{i}: {why}" for i, why, _ in VIOLATIONS])
def test_a_broken_run_is_caught(invariant: str, why: str, change: Change) -> None:
    records = a_good_run()
    change(records)
    assert invariant in broken(records), f"nobody noticed that {why}"


def test_every_invariant_has_a_violating_history() -> None:
    assert {invariant for invariant, _, _ in VIOLATIONS} == set(nodes.INVARIANTS)


def test_what_a_dying_runtime_could_not_tell_is_nobodys_fault() -> None:
    records = a_good_run()
    exit_of_x = nth(records, "rt.exit")
    records[records.index(exit_of_x)] = {"kind": "rt.started", "proc": "runtime/n1", "node": "n1", "sandboxes": 1, "inc": 2}
    nth(records, "rt.create", 2)["attempt"] = 2
    assert not broken(records)


def test_what_became_of_an_update_in_which_the_runtime_died_only_its_next_life_knows() -> None:
    """Storm 238092: the limit was in force already, so that what came then raised it."""
    records = a_good_run()
    records.remove(nth(records, "rt.usage"))
    begun = records.index(nth(records, "rt.update.begin"))
    died = {"kind": "rt.started", "proc": "runtime/n1", "node": "n1", "sandboxes": 1}
    records[begun:begun] = [
        of_runtime("rt.usage", "x", bytes=1, sampled=True),
        of_runtime("rt.update.begin", "x", cfg={"memory_limit_bytes": GI // 2}),
    ]
    records[begun + 2 : begun + 2] = [an_allocation(2, "pod_updated") | {"containers": {"x": {"limits": {"memory": "1Gi"}}}}]
    assert "I-14" in broken(records)
    records[begun + 2 : begun + 2] = [died]
    assert "I-14" not in broken(records)


def test_under_faults_an_update_may_be_repeated() -> None:
    records = a_good_run()
    the_same_again(records)
    records.insert(0, {"kind": "fault.begin", "proc": "nemesis", "node": "", "name": "crash", "args": {}})
    assert "I-16" not in broken(records)


def test_where_no_kubelet_serves_anybody_may_say_what_a_pod_has() -> None:
    records = a_good_run()
    put_object(3, figures={"x": {"allocated": {"cpu": "1"}}})(records)
    assert "I-02" in broken(records)
    assert "I-02" not in broken([record for record in records if record["kind"] != "ckpt.loaded"])


def test_where_clocks_jump_times_prove_nothing() -> None:
    records = a_good_run()
    at("2026-01-01T00:00:09Z", "2026-01-01T00:00:08Z")(records)
    assert "I-19" in broken(records)
    records.insert(0, {"kind": "fault.begin", "proc": "nemesis", "node": "", "name": "clock step", "args": {}})
    assert "I-19" not in broken(records)


def test_a_container_whose_image_changed_is_made_anew() -> None:
    records = a_good_run()
    stopped_for_nothing(records)
    nth(records, "rt.create")["image"] = "one"
    nth(records, "rt.create", 2)["image"] = "one"
    assert "I-18" in broken(records)
    nth(records, "rt.create", 2)["image"] = "two"
    assert "I-18" not in broken(records)


def test_a_limit_counts_as_the_cgroup_will_hold_it() -> None:
    for extra, held in ((4095, True), (4096, False)):
        records = a_good_run()
        nth(records, "rt.update.begin", 1)["cfg"]["memory_limit_bytes"] += extra
        assert ("I-15" not in broken(records)) is held
