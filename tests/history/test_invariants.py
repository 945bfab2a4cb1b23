"""Each invariant passes the good run and catches the history made to break it."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from elbowroom.history.invariants import INVARIANTS
from elbowroom.history.records import History
from elbowroom.history.report import judge

Change = Callable[[list[dict[str, Any]]], None]


def resources(cpu: str, memory: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}


def a_good_run() -> list[dict[str, Any]]:
    """A pod is made, bound, run and resized by preemption of another; the kubelet restarts; a second one watches."""
    small, large = {"c": resources("1", "1Gi")}, {"c": resources("1", "3Gi")}
    small_cfg = {"cpu_shares": 1024, "cpu_quota": 0, "memory_limit_bytes": 1 << 30}
    large_cfg = {"cpu_shares": 1024, "cpu_quota": 0, "memory_limit_bytes": 3 << 30}

    def pod(
        rev: int, verb: str, user: str, generation: int, containers: Any, base: int = 0, sub: str = "", **facts: Any
    ) -> dict[str, Any]:
        obj = {
            "generation": generation,
            "node": "n1",
            "phase": "Running",
            "nominated": "",
            "scheduled": "True",
            "containers": containers,
        } | facts
        return {
            "kind": "commit",
            "proc": "apiserver",
            "rev": rev,
            "key": "pods/ns/a",
            "resource": "pods",
            "uid": "u1",
            "verb": verb,
            "sub": sub,
            "user": user,
            "base": base,
            "obj": obj,
            "old_node": obj["node"],
        }

    def alloc(generation: int, memory: int, containers: Any, cause: str) -> dict[str, Any]:
        return {
            "kind": "kl.alloc",
            "proc": "kubelet/n1",
            "node": "n1",
            "pod": "ns/a",
            "uid": "u1",
            "gen": generation,
            "vector": {"cpu": 1000, "memory": memory},
            "containers": containers,
            "allocatable": {"cpu": 4000, "memory": 4 << 30},
            "cause": cause,
        }

    def runtime(kind: str, cfg: Any, **more: Any) -> dict[str, Any]:
        return {
            "kind": kind,
            "proc": "runtime/n1",
            "node": "n1",
            "container": "u1/c/0",
            "name": "c",
            "pod": "ns/a",
            "uid": "u1",
            "cfg": cfg,
        } | more

    def file(kind: str, sha: str) -> dict[str, Any]:
        return {"kind": kind, "proc": "kubelet/n1", "node": "n1", "key": "allocated_pods_state", "sha": sha}

    def actuated(containers: Any, cause: str) -> dict[str, Any]:
        return {
            "kind": "kl.actuated",
            "proc": "kubelet/n1",
            "node": "n1",
            "pod": "ns/a",
            "uid": "u1",
            "containers": containers,
            "cause": cause,
        }

    def watch(kind: str, **more: Any) -> dict[str, Any]:
        return {"kind": kind, "proc": "kubelet/n1", "id": 7} | more

    return [
        {"kind": "wal.recovered", "proc": "apiserver", "revision": 0, "floor": 0, "durable": True},
        pod(1, "create", "admin", 1, small, node="", scheduled=""),
        {"kind": "api.ok", "proc": "client/x", "op": 1, "verb": "create", "key": "pods/ns/a", "rev": 1, "write": True},
        watch("watch.open", watch="pods", resource="pods", namespace="", fields="spec.nodeName=n1", **{"from": 0}),
        watch("watch.initial", rev=1),
        pod(2, "create", "system:kube-scheduler", 1, small, sub="binding"),
        watch("watch.event", rev=2, type="ADDED", key="pods/ns/a"),
        {"kind": "sch.bind", "proc": "scheduler", "pod": "ns/a", "uid": "u1", "node": "n1"},
        file("ckpt.tmp", "s1"),
        file("ckpt.dirsync", "s1"),
        alloc(1, 1 << 30, small, "admitted"),
        runtime("rt.create", small_cfg, attempt=0),
        actuated(small, "create"),
        pod(3, "patch", "admin", 2, large, base=2),
        watch("watch.event", rev=3, type="MODIFIED", key="pods/ns/a"),
        {
            "kind": "sch.plan",
            "proc": "scheduler",
            "pod": "ns/a",
            "uid": "u1",
            "priority": 100,
            "preemption_policy": "PreemptLowerPriority",
            "resize": True,
            "node": "n1",
            "pod_node": "n1",
            "policy_disabled": False,
            "victims": [{"pod": "ns/b", "uid": "u2", "priority": 1, "node": "n1"}],
        },
        {"kind": "pod.end", "proc": "kubelet/n1", "node": "n1", "pod": "ns/b", "uid": "u2", "phase": "Failed"},
        file("ckpt.tmp", "s2"),
        file("ckpt.loaded", "s2"),
        file("ckpt.dirsync", "s2"),
        alloc(2, 3 << 30, large, "pods_removed"),
        runtime("rt.update.begin", large_cfg),
        runtime("rt.update.end", large_cfg, ok=True),
        actuated(large, "update"),
        pod(4, "patch", "system:node:n1", 2, large, sub="status"),
        watch("watch.event", rev=4, type="MODIFIED", key="pods/ns/a"),
        watch("watch.bookmark", rev=4),
        {"kind": "api.ok", "proc": "client/x", "op": 2, "verb": "patch", "key": "pods/ns/a", "rev": 4, "write": True},
        {"kind": "wal.recovered", "proc": "apiserver", "revision": 4, "floor": 0, "durable": True},
    ]


def history_of(records: list[dict[str, Any]]) -> History:
    ticks = count(1)
    return History.of({"run": "r", "seed": 1, "inc": 1, "seq": (t := next(ticks)), "mono_ns": t, "wall": t} | r for r in records)


def first(records: list[dict[str, Any]], kind: str, nth: int = 0) -> dict[str, Any]:
    return [r for r in records if r["kind"] == kind][nth]


def without(kind: str, nth: int = 0) -> Change:
    def change(records: list[dict[str, Any]]) -> None:
        records.remove(first(records, kind, nth))

    return change


def put(kind: str, nth: int = 0, **facts: Any) -> Change:
    def change(records: list[dict[str, Any]]) -> None:
        first(records, kind, nth).update(facts)

    return change


def put_object(nth: int, **facts: Any) -> Change:
    def change(records: list[dict[str, Any]]) -> None:
        first(records, "commit", nth)["obj"].update(facts)

    return change


def victim(**facts: Any) -> Change:
    def change(records: list[dict[str, Any]]) -> None:
        first(records, "sch.plan")["victims"][0].update(facts)

    return change


def update_told_late(records: list[dict[str, Any]]) -> None:
    moved = first(records, "rt.update.end")
    records.remove(moved)
    records.insert(records.index(first(records, "kl.actuated", 1)) + 1, moved)


def big_neighbour(records: list[dict[str, Any]]) -> None:
    other = dict(first(records, "kl.alloc"), uid="u9", pod="ns/z", vector={"cpu": 1000, "memory": 2 << 30})
    records.insert(records.index(first(records, "kl.alloc", 1)), other)


VIOLATIONS: list[tuple[str, str, Change]] = [
    ("I-01", "a neighbour's allocation leaves no room for the resize", big_neighbour),
    ("I-03", "the allocation is of a size nobody asked for", put("kl.alloc", 1, containers={"c": resources("1", "2Gi")})),
    ("I-03", "a value is actuated that was never allocated", put("kl.actuated", 1, containers={"c": resources("1", "2Gi")})),
    ("I-03", "a resize is recorded as actuated before the runtime applied it", update_told_late),
    ("I-03", "a failed update is recorded as actuated", put("rt.update.end", ok=False)),
    ("I-04", "the allocation was never desired as a whole", put("kl.alloc", 1, containers={"c": resources("2", "1Gi")})),
    ("I-05", "the pending desire reaches the runtime", without("kl.alloc", 1)),
    ("I-05", "a container is created with what was never allocated", put("rt.create", cfg={"memory_limit_bytes": 5 << 30})),
    ("I-05", "cpu shares nobody allocated", put("rt.update.begin", cfg={"cpu_shares": 4096, "memory_limit_bytes": 3 << 30})),
    ("I-07", "the kubelet comes back with an older checkpoint than it made durable", put("ckpt.loaded", sha="s0")),
    ("I-22", "a victim of equal priority", victim(priority=100)),
    ("I-22", "a victim though the pod never preempts", put("sch.plan", preemption_policy="Never")),
    ("I-22", "a victim though the node forbids it", put("sch.plan", policy_disabled=True)),
    ("I-23", "a victim on another node", victim(node="n2")),
    ("I-23", "a plan for another node", put("sch.plan", node="n2")),
    ("I-30", "a bound pod is bound elsewhere", put_object(3, node="n2")),
    ("I-34", "an acknowledged write was never committed", put("api.ok", 1, rev=99)),
    ("I-34", "the store came back without an acknowledged write", put("wal.recovered", 1, revision=3)),
    ("I-37", "a conditional write replaced something it had not seen", put("commit", 2, base=1)),
    ("I-38", "a revision is used twice", put("commit", 3, rev=3)),
    ("I-39", "a reader never hears of a write", without("watch.event", 1)),
    (
        "I-39",
        "a reader hears of it after a later one",
        lambda records: records.insert(9, dict(first(records, "watch.event"), rev=1)),
    ),
    ("I-39", "a reader hears of a write that never was", put("watch.event", 1, rev=77)),
]


def nominated_while_bound(records: list[dict[str, Any]]) -> None:
    record = first(records, "commit", 3)
    record["user"] = "system:kube-scheduler"
    record["obj"]["nominated"] = "n1"


def unscheduled_while_bound(records: list[dict[str, Any]]) -> None:
    record = first(records, "commit", 3)
    record["user"] = "system:kube-scheduler"
    record["obj"]["scheduled"] = "False"


VIOLATIONS += [
    ("I-30", "the scheduler nominates a bound pod", nominated_while_bound),
    ("I-30", "the scheduler calls a bound pod unscheduled", unscheduled_while_bound),
]


def test_a_good_run_holds() -> None:
    report = judge(history_of(a_good_run()))
    assert report.held, report.text()
    assert all(report.looked_at[invariant] for invariant, _, _ in VIOLATIONS), "every invariant had something to look at"


def test_a_container_may_have_the_limit_of_its_pod() -> None:
    """PL-26: one that has none of its own is told its pod's."""
    bare = {"c": {"requests": {"cpu": "1"}}}
    level = {"limits": {"memory": "2Gi"}}
    alloc = {"kind": "kl.alloc", "proc": "kubelet/n1", "node": "n1", "pod": "ns/p", "uid": "u5", "gen": 1, "cause": "admitted"}
    alloc |= {"vector": {"cpu": 1000, "memory": 0}, "containers": bare, "allocatable": {}, "level": level}
    made = {"kind": "rt.create", "proc": "runtime/n1", "node": "n1", "container": "p/c/0", "name": "c", "pod": "ns/p", "uid": "u5"}
    made |= {"attempt": 0}
    for memory, holds in ((2 << 30, True), (3 << 30, False)):
        cfg = {"cpu_shares": 1024, "memory_limit_bytes": memory}
        report = judge(history_of([alloc, made | {"cfg": cfg}]))
        assert ("I-05" not in {v.invariant for v in report.failures}) is holds


def an_allocation(uid: str, gibibytes: int, allocatable: int = 4) -> dict[str, Any]:
    return {
        "kind": "kl.alloc",
        "proc": "kubelet/n1",
        "node": "n1",
        "pod": f"ns/{uid}",
        "uid": uid,
        "vector": {"cpu": 0, "memory": gibibytes << 30},
        "allocatable": {"cpu": 4000, "memory": allocatable << 30},
    }


def over_allocated(*records: dict[str, Any]) -> list[str]:
    return [violation.message for violation in INVARIANTS["I-01"](history_of(list(records)))]


def test_a_kubelet_that_starts_tells_of_all_that_it_holds() -> None:
    start = a_checkpoint("loaded", "s1")
    assert over_allocated(an_allocation("a", 3), start, an_allocation("b", 2)) == []
    assert over_allocated(an_allocation("a", 3), an_allocation("b", 2)) != []
    assert over_allocated(start, an_allocation("a", 3), an_allocation("b", 2)) != []


def test_what_no_longer_fits_a_smaller_node_may_be_taken_back_by_a_kubelet_that_starts_but_not_grow() -> None:
    before = (an_allocation("a", 2), an_allocation("b", 2), a_checkpoint("loaded", "s1"))
    back = (an_allocation("a", 2, allocatable=3), an_allocation("b", 2, allocatable=3))
    assert over_allocated(*before, *back) == []
    assert over_allocated(*before, *back, an_allocation("b", 3, allocatable=3)) != []


def a_grant(used: int, wanted: int, allocatable: int = 4) -> dict[str, Any]:
    amounts = {"used": {"cpu": 0, "memory": used << 30}, "wanted": {"cpu": 0, "memory": wanted << 30}}
    bounds = {"allocatable": {"cpu": 4000, "memory": allocatable << 30}}
    return {"kind": "kl.judge", "proc": "kubelet/n1", "node": "n1", "uid": "b", "verdict": "Granted", **amounts, **bounds}


@pytest.mark.parametrize(
    ("judged", "holds"), [(a_grant(2, 2), True), (a_grant(2, 1), False), (a_grant(2, 2, allocatable=3), False)]
)
def test_a_kubelet_that_died_after_a_grant_tells_of_it_in_its_next_life(judged: dict[str, Any], holds: bool) -> None:
    """Storm 239121: the node was made smaller before the kubelet came back with what had fitted when it was granted."""
    back = (an_allocation("a", 2, allocatable=3), an_allocation("b", 2, allocatable=3))
    run = (an_allocation("a", 2), an_allocation("b", 1), judged, a_checkpoint("loaded", "s1"), *back)
    assert (over_allocated(*run) == []) is holds


def a_checkpoint(kind: str, sha: str) -> dict[str, Any]:
    return {"kind": f"ckpt.{kind}", "proc": "kubelet/n1", "node": "n1", "key": "allocated_pods_state", "sha": sha}


@pytest.mark.parametrize(("found", "holds"), [("s1", True), ("s2", True), ("s0", False), ("s3", False)])
def test_of_writes_that_were_announced_together_each_may_be_what_is_found(found: str, holds: bool) -> None:
    run = [a_checkpoint("dirsync", "s0"), a_checkpoint("tmp", "s1"), a_checkpoint("tmp", "s2"), a_checkpoint("dirsync", "s1")]
    assert judge(history_of([*run, a_checkpoint("loaded", found)])).held is holds


def a_new_disk(proc: str = "kubelet/n1", inc: int = 2) -> dict[str, Any]:
    return {"kind": "disk.new", "proc": proc, "node": proc.partition("/")[2], "inc": inc, "why": "elsewhere"}


@pytest.mark.parametrize(
    ("between", "holds"),
    [
        ([], False),
        ([a_new_disk()], True),
        ([a_new_disk("runtime/n1")], False),
        ([a_new_disk("kubelet/n2")], False),
    ],
    ids=["the same machine", "another machine", "only its runtime", "another node"],
)
def test_a_kubelet_that_begins_on_another_machine_finds_nothing(between: list[dict[str, Any]], holds: bool) -> None:
    loaded = a_checkpoint("loaded", "") | {"inc": 2}
    assert judge(history_of([a_checkpoint("tmp", "s1"), a_checkpoint("dirsync", "s1"), *between, loaded])).held is holds


def a_node_s_end(name: str = "n1", **facts: Any) -> dict[str, Any]:
    written = {
        "rev": 9,
        "key": f"nodes/{name}",
        "resource": "nodes",
        "uid": "u",
        "verb": "delete",
        "sub": "",
        "user": "x",
        "base": 0,
    }
    return {"kind": "commit", "proc": "apiserver", **written, "gone": True, **facts}


def a_store(*, durable: bool) -> dict[str, Any]:
    return {"kind": "wal.recovered", "proc": "apiserver", "revision": 0, "floor": 0, "durable": durable}


@pytest.mark.parametrize(
    ("between", "found", "holds"),
    [
        ([], "", False),
        ([a_node_s_end()], "", True),
        ([a_node_s_end()], "s1", True),
        ([a_node_s_end()], "s0", False),
        ([a_node_s_end(), a_checkpoint("dirsync", "s2")], "", True),
        ([a_node_s_end("n2")], "", False),
        ([a_node_s_end(gone=False)], "", False),
        ([a_store(durable=False)], "", True),
        ([a_store(durable=True)], "", False),
    ],
)
def test_a_node_that_goes_takes_its_disk_with_it(between: list[dict[str, Any]], found: str, holds: bool) -> None:
    run = [a_checkpoint("dirsync", "s0"), a_checkpoint("tmp", "s1"), a_checkpoint("dirsync", "s1"), *between]
    found_broken = list(INVARIANTS["I-07"](history_of([*run, a_checkpoint("loaded", found) | {"inc": 2}])))
    assert (found_broken == []) is holds


def test_a_new_node_s_disk_is_held_to_what_is_written_to_it() -> None:
    new = [a_node_s_end(), a_checkpoint("loaded", "") | {"inc": 2}, a_checkpoint("dirsync", "s2") | {"inc": 2}]
    again = a_checkpoint("loaded", "") | {"inc": 3}
    assert [v.message for v in INVARIANTS["I-07"](history_of([a_checkpoint("dirsync", "s1"), *new, again]))]


def test_what_a_store_in_memory_forgot_may_be_made_again() -> None:
    again = [a_node_s_end(gone=False, verb="create", uid=uid) for uid in ("a", "b")]
    assert [v.message for v in INVARIANTS["I-35"](history_of([a_store(durable=True), again[0], again[1] | {"rev": 10}]))]
    assert not list(INVARIANTS["I-35"](history_of([a_store(durable=False), again[0], a_store(durable=False), again[1]])))


def test_a_copy_that_lives_on_where_the_disk_was_says_nothing_about_the_new_one() -> None:
    new = [a_new_disk(), a_checkpoint("loaded", "") | {"inc": 2}, a_checkpoint("dirsync", "s2") | {"inc": 2}]
    old, again = a_checkpoint("dirsync", "s1"), a_checkpoint("loaded", "s2") | {"inc": 3}
    assert judge(history_of([a_checkpoint("dirsync", "s0"), *new, old, again])).held
    assert not judge(history_of([a_checkpoint("dirsync", "s0"), *new, old, again | {"sha": "s1"}])).held


@pytest.mark.parametrize(("invariant", "why", "change"), VIOLATIONS, ids=[f"{i}: {why}" for i, why, _ in VIOLATIONS])
def test_a_broken_run_is_caught(invariant: str, why: str, change: Change) -> None:
    records = a_good_run()
    change(records)
    report = judge(history_of(records))
    assert invariant in {v.invariant for v in report.failures}, f"nobody noticed that {why}:\n{report.text()}"
    assert next(v for v in report.failures if v.invariant == invariant).evidence


def test_every_invariant_has_a_violating_history() -> None:
    mine = {"I-01", "I-03", "I-04", "I-05", "I-07", "I-22", "I-23", "I-30", "I-34", "I-37", "I-38", "I-39"}
    assert {invariant for invariant, _, _ in VIOLATIONS} == mine, "the others are broken beside their modules"


def test_the_report_names_what_broke() -> None:
    records = a_good_run()
    first(records, "sch.plan")["victims"][0]["priority"] = 100
    text = judge(history_of(records)).text()
    assert "I-22  BROKEN 1 times" in text
    assert "ns/b (100) is no victim for ns/a (100)" in text


def a_run_with_a_forgetful_store() -> list[dict[str, Any]]:
    """A store in memory ends with 5 revisions; the next life begins at 1 and is watched from there."""

    def commit(rev: int) -> dict[str, Any]:
        facts = {"uid": f"u{rev}", "verb": "create", "sub": "", "user": "x", "base": 0}
        return {"kind": "commit", "proc": "apiserver", "rev": rev, "key": f"events/ns/e{rev}", "resource": "events", **facts}

    def watch(kind: str, **more: Any) -> dict[str, Any]:
        return {"kind": kind, "proc": "controllers", "id": 7, **more}

    begun = {"kind": "wal.recovered", "proc": "apiserver", "revision": 0, "floor": 0, "durable": False}
    return [
        begun,
        *(commit(rev) for rev in range(1, 6)),
        watch("watch.open", watch="events", resource="events", namespace="", fields="", **{"from": 0}),
        begun,
        *(commit(rev) for rev in (1, 2)),
        watch("watch.initial", rev=2),
        commit(3),
        watch("watch.event", rev=3, type="ADDED", key="events/ns/e3"),
        watch("watch.bookmark", rev=4),
    ]


def test_a_stream_is_held_against_the_life_of_the_store_that_answers_it() -> None:
    assert not list(INVARIANTS["I-39"](history_of(a_run_with_a_forgetful_store())))
    records = a_run_with_a_forgetful_store()
    records.remove(first(records, "watch.event"))
    assert [found.message for found in INVARIANTS["I-39"](history_of(records))] == ["events never heard of revision 3"]
