"""Each invariant of readers, writers, pods and progress passes the good run and catches the history made to break it."""

import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.history import bounds, paging, pods, progress, serving, watching
from elbowroom.history.invariants import INVARIANTS as EVERY
from elbowroom.history.linearizability import Operation, agree_by_revision, is_linearizable, some_order_explains, windows
from elbowroom.history.records import History
from elbowroom.history.report import judge

SECOND = 1_000_000_000
KUBELET = "system:node:n1"
INVARIANTS = {
    **pods.INVARIANTS,
    **progress.INVARIANTS,
    **serving.INVARIANTS,
    **watching.INVARIANTS,
    **paging.INVARIANTS,
    **bounds.INVARIANTS,
}
ELSEWHERE = {"I-34", "I-37", "I-38", "I-39"}
"""Those that test_invariants.py breaks."""

Records = list[dict[str, Any]]
Change = Callable[[Records], None]


def a_pod(generation: int = 1, cpu: str = "1", phase: str = "Running", **facts: Any) -> dict[str, Any]:
    given = {"cpu": cpu, "memory": "1Gi"}
    obj = {"generation": generation, "node": "n1", "phase": phase, "nominated": "", "scheduled": "True", "deleting": False}
    obj |= {"qos": "Guaranteed", "plain": True, "resize": {}, "since": {}, "asked": None, "ending": [], "level": {}, "figures": {}}
    obj |= {"ids": {"c": (0, "one")}, "containers": {"c": {"requests": given, "limits": given}}}
    return obj | facts


def a_commit(key: str, user: str, obj: dict[str, Any], verb: str = "patch", sub: str = "", uid: str = "") -> dict[str, Any]:
    resource = key.partition("/")[0]
    facts = {"resource": resource, "uid": uid or key, "base": 0, "gone": False, "old_node": "n1"}
    return {"kind": "commit", "proc": "apiserver", "key": key, "user": user, "obj": obj, "verb": verb, "sub": sub, **facts}


def a_call(kind: str, op: int, verb: str, key: str, **facts: Any) -> dict[str, Any]:
    writes = {"sub": "", "write": verb != "get"}
    return {"kind": f"api.{kind}", "proc": "client/x", "op": f"x/{op}", "verb": verb, "key": key, **writes, **facts}


def watch(kind: str, **facts: Any) -> dict[str, Any]:
    return {"kind": f"watch.{kind}", "proc": "kubelet/n1", **facts}


def opened(number: int, start: int) -> dict[str, Any]:
    return watch("open", id=number, watch="pods", resource="pods", namespace="", fields="", **{"from": start})


def of_kubelet(kind: str, pod: str, generation: int, **facts: Any) -> dict[str, Any]:
    mine = {"pod": f"ns/{pod}", "uid": f"pods/ns/{pod}", "gen": generation}
    return {"kind": f"kl.{kind}", "proc": "kubelet/n1", "node": "n1", **mine, **facts}


def an_allocation(pod: str, generation: int, milli: int, cause: str = "admitted") -> dict[str, Any]:
    given = {"cpu": f"{milli}m", "memory": "1Gi"}
    facts = {"vector": {"cpu": milli, "memory": 1 << 30}, "containers": {"c": {"requests": given, "limits": given}}, "level": None}
    return of_kubelet("alloc", pod, generation, allocatable={"cpu": 4000, "memory": 4 << 30}, cause=cause, **facts)


def a_verdict(pod: str, generation: int, verdict: str, milli: int, number: int) -> dict[str, Any]:
    facts = {"wanted": {"cpu": milli, "memory": 1 << 30}, "allocatable": {"cpu": 4000, "memory": 4 << 30}}
    used = {"cpu": 4000} if verdict == "Deferred" else {}
    return of_kubelet(
        "judge", pod, generation, verdict=verdict, cause="pod_updated", rank=None, used=used, **facts, **{"pass": number}
    )


def of_runtime(kind: str, pod: str, container: str, node: str = "n1", **facts: Any) -> dict[str, Any]:
    mine = {"pod": f"ns/{pod}", "uid": f"pods/ns/{pod}", "container": container, "name": "c"}
    return {"kind": f"rt.{kind}", "proc": f"runtime/{node}", "node": node, **mine, **facts}


def a_sample(**facts: Any) -> dict[str, Any]:
    weighs = {"rss_bytes": 50 << 20, "files": 40, "files_max": 1024, "late_ms": 0.4, "inputs": 0, "effects": 2}
    return {"kind": "host.sample", "proc": "apiserver", **weighs, **facts}


def samples(count: int = 1, **facts: Any) -> Change:
    return lambda records: records.extend(a_sample(**facts) for _ in range(count))


def a_leak(records: Records) -> None:
    records.extend(a_sample(files=40 + number * number, files_max=65_536) for number in range(1, 20))


def an_event(reason: str, times: int) -> dict[str, Any]:
    return a_commit("events/ns/e", KUBELET, {"generation": 0, "about": "pods/ns/a", "reason": reason, "count": times}, "create")


def a_good_run() -> Records:
    """Two pods with processors of their own; one grows once the other has shrunk; a client reads, writes and lists in pages; a
    reader's stream breaks and is joined; the run is left alone for a while and ends."""
    small, large = {"cfg": {"cpuset_cpus": "0"}, "attempt": 0}, {"cfg": {"cpuset_cpus": "2-3"}, "attempt": 0}
    return [
        {"kind": "wal.recovered", "proc": "apiserver", "revision": 0, "floor": 0, "durable": True},
        opened(1, 0),
        watch("initial", id=1, rev=0, number=0),
        a_commit("resourcequotas/ns/q", "controllers", {"generation": 0, "hard": {"requests.cpu": "5"}}, "patch")
        | {"sub": "status"},
        a_call("invoke", 1, "create", "pods/ns/a"),
        a_commit("pods/ns/a", "admin", a_pod(cpu="1", phase="Pending", ids={}, node=""), "create"),
        a_call("ok", 1, "create", "pods/ns/a", rev=2),
        watch("event", id=1, rev=2, type="ADDED", key="pods/ns/a", number=1),
        watch("bookmark", id=1, rev=3, number=1),
        a_commit("pods/ns/b", "admin", a_pod(cpu="3", phase="Pending"), "create"),
        watch("broken", watch="pods", why="UNAVAILABLE: gone"),
        opened(2, 3),
        an_allocation("a", 1, 1000),
        an_allocation("b", 1, 3000),
        of_runtime("create", "a", "a/c/0", **small),
        of_runtime("create", "b", "b/c/0", **large),
        a_commit("pods/ns/a", KUBELET, a_pod(cpu="1"), sub="status"),
        watch("event", id=2, rev=4, type="MODIFIED", key="pods/ns/a", number=1),
        a_call("invoke", 2, "get", "pods/ns/a"),
        a_call("ok", 2, "get", "pods/ns/a", rev=4),
        a_commit("pods/ns/a", "admin", a_pod(2, cpu="2"), sub="resize"),
        watch("event", id=2, rev=5, type="MODIFIED", key="pods/ns/a", number=2),
        a_verdict("a", 2, "Deferred", 2000, 1),
        an_event("ResizeDeferred", 1),
        a_commit("pods/ns/b", "admin", a_pod(2, cpu="2"), sub="resize"),
        a_verdict("b", 2, "Granted", 2000, 2),
        an_allocation("b", 2, 2000, "pod_updated"),
        a_verdict("a", 2, "Granted", 2000, 3),
        an_allocation("a", 2, 2000, "pod_resized"),
        of_runtime("cpuset", "a", "a/c/0", cpus="0-1"),
        of_kubelet("resized", "a", 2),
        a_commit("pods/ns/b", KUBELET, a_pod(2, cpu="2", ids={"c": (1, "two")}), sub="status"),
        a_commit("pods/ns/a", KUBELET, a_pod(2, cpu="2"), sub="status"),
        a_call("invoke", 3, "list", "pods/ns/", write=False),
        a_call("ok", 3, "list", "pods/ns/", write=False, rev=9, after="", more="t", items=[["ns/a", 9]]),
        a_call("invoke", 4, "list", "pods/ns/", write=False),
        a_call("ok", 4, "list", "pods/ns/", write=False, rev=9, after="t", more="", items=[["ns/b", 8]]),
        a_sample(),
        a_commit("leases.coordination.k8s.io/kube-node-lease/n1", KUBELET, {"generation": 0}) | {"mono_ns": 100 * SECOND},
        {"kind": "end", "proc": "kubelet/n1", "mono_ns": 100 * SECOND},
        {"kind": "end", "proc": "apiserver", "mono_ns": 100 * SECOND},
    ]


def history_of(records: Records) -> History:
    for rev, commit in enumerate((r for r in records if r["kind"] == "commit"), 1):
        commit.setdefault("rev", rev)
    ticks = count(1)
    return History.of({"run": "r", "seed": 1, "inc": 1, "seq": (t := next(ticks)), "mono_ns": t, "wall": t} | r for r in records)


def nth(records: Records, kind: str, number: int = 0, /, **facts: Any) -> dict[str, Any]:
    return [r for r in records if r["kind"] == kind and facts.items() <= r.items()][number]


def put(kind: str, number: int = 0, /, **facts: Any) -> Change:
    return lambda records: nth(records, kind, number).update(facts)


def put_object(number: int, **facts: Any) -> Change:
    return lambda records: nth(records, "commit", number)["obj"].update(facts)


def after(kind: str, number: int, *more: dict[str, Any]) -> Change:
    def change(records: Records) -> None:
        history_of(records)  # the revisions stay those of the good run
        at = records.index(nth(records, kind, number)) + 1
        records[at:at] = more

    return change


def asked_and_failed(records: Records) -> None:
    nth(records, "api.ok").update(kind="api.fail", status=403)


def a_commit_twice(records: Records) -> None:
    records.insert(records.index(nth(records, "commit", 2)), dict(nth(records, "commit", 1), uid="another"))


def a_stale_read(records: Records) -> None:
    nth(records, "api.ok", 1)["rev"] = 2


def a_read_of_the_future(records: Records) -> None:
    nth(records, "api.ok", 1)["rev"] = 6


def answered_too_early(records: Records) -> None:
    early = nth(records, "api.ok")
    records.remove(early)
    records.insert(5, early)


def log_out_of_order(records: Records) -> None:
    history_of(records)
    first, second = nth(records, "commit", 4), nth(records, "commit", 6)
    first["rev"], second["rev"] = second["rev"], first["rev"]


def too_much_for_the_quota(records: Records) -> None:
    nth(records, "commit", 0)["obj"]["hard"] = {"requests.cpu": "4500m"}


def a_limit_range(**bounds: dict[str, str]) -> Change:
    """In the place of the quota."""

    def change(records: Records) -> None:
        ranges = [{"type": "Container", **bounds}]
        facts = {"resource": "limitranges", "key": "limitranges/ns/l", "obj": {"generation": 0, "ranges": ranges}}
        nth(records, "commit", 0).update(facts)

    return change


def events_of_another_message(records: Records) -> None:
    nth(records, "commit", 5)["obj"]["count"] = 2


def never_judged_again(records: Records) -> None:
    for kind in ("kl.judge", "kl.alloc"):
        records.remove(nth(records, kind, -1, uid="pods/ns/a"))
    gave_way = nth(records, "kl.alloc", -1)
    done = {key: value for key, value in gave_way.items() if key in ("proc", "node", "inc", "pod", "uid", "gen", "mono_ns", "wall")}
    records.insert(records.index(gave_way) + 1, {**done, "kind": "kl.resized"})
    records.insert(-2, an_allocation("b", 2, 2000, "admitted") | {"mono_ns": 90 * SECOND})


def a_lost_machine(records: Records) -> None:
    records.insert(5, {"kind": "fault.begin", "proc": "nemesis", "inc": 0, "name": "crash", "args": {"machine": "scheduler"}})
    records.insert(2, {"kind": "sch.start", "proc": "scheduler"})


VIOLATIONS: list[tuple[str, str, Change]] = [
    ("I-09", "a wish is forgotten", put_object(-2, generation=3, containers={"c": {"requests": {"cpu": "3"}}})),
    ("I-09", "a resize never ends", put_object(-2, resize={"PodResizeInProgress": ("", 2)})),
    ("I-09", "one waits though nobody said so", put_object(-2, resize={"PodResizePending": ("Deferred", 9)})),
    ("I-10", "the room that came is not given", never_judged_again),
    ("I-11", "only the timer helps", put("kl.alloc", -1, cause="periodic_retry")),
    ("I-20", "two containers share a processor", put("rt.create", 1, cfg={"cpuset_cpus": "0-3"})),
    ("I-20", "a container is moved to other processors", put("rt.cpuset", cpus="5")),
    ("I-21", "the containers request more than their pod", put_object(6, asked={"requests": {"cpu": "1500m"}})),
    ("I-21", "a container's limit is above its pod's", put_object(6, asked={"limits": {"memory": "512Mi"}})),
    ("I-21", "the status tells of no cpu", put_object(3, asked={"requests": {"cpu": "1"}}, level={"actual": {"memory": "1Gi"}})),
    ("I-35", "what certainly failed is in the log", asked_and_failed),
    ("I-35", "one create makes two objects", a_commit_twice),
    ("I-36", "a read is stale", a_stale_read),
    ("I-36", "a read tells of the future", a_read_of_the_future),
    ("I-36", "a write is answered before it happens", answered_too_early),
    ("I-36", "the log has another order than time", log_out_of_order),
    ("I-36", "a list is stale", put("api.ok", 2, rev=8)),
    (
        "I-40",
        "an event comes after its bookmark",
        after("watch.bookmark", 0, watch("event", id=1, rev=3, type="ADDED", key="pods/ns/b")),
    ),
    ("I-40", "the state ends twice", after("watch.initial", 0, watch("initial", id=1, rev=1))),
    ("I-40", "a change comes before the state", lambda records: records.remove(nth(records, "watch.initial"))),
    ("I-41", "a stream leaves out what came in between", put("watch.open", 1, **{"from": 2})),
    ("I-41", "a stream begins anew unasked", put("watch.open", 1, **{"from": 0})),
    ("I-42", "a list goes on in another state", put("api.ok", 3, rev=8)),
    ("I-42", "a page leaves an object out", put("api.ok", 3, items=[])),
    ("I-42", "a page tells an object again", put("api.ok", 3, items=[["ns/a", 9], ["ns/b", 8]])),
    ("I-42", "a page tells what was before", put("api.ok", 2, items=[["ns/a", 4]])),
    ("I-42", "a page tells what never was", put("api.ok", 3, items=[["ns/b", 8], ["ns/c", 5]])),
    ("I-43", "a copy goes back", after("watch.event", -1, watch("event", id=2, rev=4, type="MODIFIED", key="pods/ns/a"))),
    ("I-43", "what is deleted changes", put("watch.event", 1, type="DELETED")),
    ("I-44", "the same pod runs twice", after("rt.create", 0, of_runtime("create", "a", "a/c/9", "n2", cfg={}, uid="other"))),
    ("I-45", "a pod that ran is pending again", put_object(-2, phase="Pending")),
    ("I-45", "another container has the same restarts", put_object(-2, ids={"c": (0, "two")})),
    ("I-45", "restarts fall", put_object(3, ids={"c": (2, "one")})),
    ("I-46", "the quota is exceeded", too_much_for_the_quota),
    ("I-47", "a resize is above the most that is allowed", a_limit_range(max={"cpu": "3500m", "memory": "512Mi"})),
    ("I-47", "a pod is made below the least that is allowed", a_limit_range(min={"cpu": "1500m"})),
    ("I-48", "an event tells of a message only", events_of_another_message),
    ("I-49", "a kubelet writes a spec", put("commit", 3, sub="")),
    ("I-49", "a kubelet writes another's lease", put("commit", -1, key="leases.coordination.k8s.io/kube-node-lease/n2")),
    ("I-49", "a kubelet writes another's pod", put("commit", 3, user="system:node:n2")),
    ("I-50", "a process weighs too much", samples(rss_bytes=3 << 30)),
    ("I-50", "files run out", samples(files=1000)),
    ("I-50", "inputs pile up", samples(inputs=50_000)),
    ("I-50", "effects pile up", samples(effects=50_000)),
    ("I-50", "a loop keeps others waiting again and again", samples(2, late_ms=250.0)),
    ("I-50", "files are forgotten", a_leak),
    ("I-51", "a gap goes unnoticed", put("watch.event", 2, number=3)),
    ("I-51", "a bookmark tells of a lost frame", put("watch.bookmark", number=2)),
    (
        "I-51",
        "a stream that was given up is read on",
        after("watch.broken", 0, watch("event", id=1, rev=3, type="ADDED", key="pods/ns/b", number=2)),
    ),
    ("I-53", "a machine never comes back", a_lost_machine),
]


def broken(records: Records) -> set[str]:
    history = history_of(records)
    return {violation.invariant for check in INVARIANTS.values() for violation in check(history)}


def test_a_good_run_holds() -> None:
    report = judge(history_of(a_good_run()))
    assert report.verdict == "valid", report.text()
    assert all(report.looked_at[invariant] for invariant in INVARIANTS), "every invariant had something to look at"


@pytest.mark.parametrize(("invariant", "why", "change"), VIOLATIONS, ids=[f"{i}: {why}" for i, why, _ in VIOLATIONS])
def test_a_broken_run_is_caught(invariant: str, why: str, change: Change) -> None:
    records = a_good_run()
    change(records)
    assert invariant in broken(records), f"nobody noticed that {why}"


def test_every_invariant_has_a_violating_history() -> None:
    assert {invariant for invariant, _, _ in VIOLATIONS} == set(INVARIANTS) - ELSEWHERE


def test_the_catalogue_has_a_sentence_for_every_invariant_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "histories.md").read_text()
    assert re.findall(r"^\| (I-\d\d) \| .{20,} \|$", page, re.MULTILINE) == sorted(EVERY)
    assert [f"I-{number:02}" for number in range(1, 54) if f"I-{number:02}" not in EVERY] == ["I-52"]


def test_a_stream_may_begin_anew_if_its_revision_is_too_old() -> None:
    records = a_good_run()
    nth(records, "watch.broken")["why"] = "OUT_OF_RANGE: too old resource version"
    nth(records, "watch.open", 1)["from"] = 0
    records.insert(records.index(nth(records, "watch.open", 1)) + 1, watch("initial", id=2, rev=3))
    assert "I-41" not in broken(records)


def test_a_stream_may_begin_anew_once_its_copy_was_given_up() -> None:
    records = a_good_run()
    again = nth(records, "watch.open", 1)
    again["from"] = 0
    place = records.index(again)
    records[place + 1 : place + 1] = [watch("initial", id=2, rev=3)]
    assert "I-41" in broken(records)
    records[place:place] = [watch("closed", watch=again["watch"])]
    assert "I-41" not in broken(records)


def test_a_list_that_names_its_state_or_goes_on_with_one_need_not_be_the_newest() -> None:
    for change in (put("api.invoke", 2, exact=True), put("api.ok", 2, after="u")):
        records = a_good_run()
        put("api.ok", 2, rev=8)(records)
        assert "I-36" in broken(records)
        change(records)
        assert "I-36" not in broken(records)


def test_a_list_that_goes_on_after_its_state_was_forgotten_begins_another() -> None:
    records = a_good_run()
    put("api.ok", 3, after="of a 410", items=[["ns/b", 3]], rev=4)(records)
    assert "I-42" not in broken(records), "where it was to go on is not known"


def test_the_more_was_written_the_more_a_process_may_weigh() -> None:
    records = a_good_run()
    for written, held in ((0, False), (300_000, True)):
        heavy = a_sample(rss_bytes=3 << 30, mono_ns=10**12, wall=10**12)
        last = next(record for record in reversed(records) if record["kind"] == "commit") | {"rev": written}
        assert ("I-50" not in broken([*records, last, heavy])) is held


def test_one_look_of_many_may_find_a_loop_late_and_files_may_come_and_go() -> None:
    records = a_good_run()
    records += [a_sample(files=40 + 10 * (number % 7), late_ms=250.0 if not number else 0.0) for number in range(40)]
    assert "I-50" not in broken(records)


def test_who_was_deleted_without_grace_is_not_waited_for() -> None:
    records = a_good_run()
    after("rt.create", 0, of_runtime("create", "a", "a/c/9", "n2", cfg={}, uid="other"))(records)
    after("commit", 1, a_commit("pods/ns/a", "admin", a_pod(grace=0), "delete") | {"rev": 99})(records)
    assert "I-44" not in broken(records)


def test_a_quota_that_was_never_counted_binds_nobody() -> None:
    records = a_good_run()
    too_much_for_the_quota(records)
    assert "I-46" in broken(records)
    next(record for record in records if record.get("resource") == "resourcequotas")["sub"] = ""
    assert "I-46" not in broken(records)


def test_a_quota_is_not_charged_for_what_a_pod_as_a_whole_still_has() -> None:
    """Storm 236145: the pod's cgroup comes down last, and until then the kubelet says that the pod has more than its containers."""
    records = a_good_run()
    nth(records, "commit", 0)["obj"]["hard"] = {"requests.cpu": "5500m"}
    assert "I-46" not in broken(records)
    for record in records:
        if record["kind"] == "commit" and record["resource"] == "pods":
            record["obj"]["level"] = {"allocated": {"cpu": "1"}, "actual": {"cpu": "6"}}
    assert "I-46" not in broken(records)
    too_much_for_the_quota(records)
    assert "I-46" in broken(records)


def test_one_that_waits_for_something_else_than_room_is_not_owed_a_look() -> None:
    records = a_good_run()
    never_judged_again(records)
    assert "I-10" in broken(records)
    for judged in [record for record in records if record["kind"] == "kl.judge"]:
        judged["used"] = {}
    assert "I-10" not in broken(records)


def test_a_kubelet_that_stood_still_is_given_its_time_anew() -> None:
    records = a_good_run()
    never_judged_again(records)
    assert "I-10" in broken(records)
    fault = {"proc": "nemesis", "inc": 0, "name": "pause", "args": {"machine": "kubelet/n1"}}
    after("kl.alloc", 2, {"kind": "fault.begin", **fault}, {"kind": "fault.end", "mono_ns": 89 * SECOND, **fault})(records)
    for late in [record for record in records if record.get("mono_ns", 0) > 89 * SECOND]:
        late["mono_ns"] = 89 * SECOND + 1
    assert "I-10" not in broken(records)


# ---------------------------------------------------------------- the search for an order


def write(begun: int, ended: int, revision: int) -> Operation:
    return Operation(begun, ended, revision, writes=True)


def read(begun: int, ended: int, revision: int) -> Operation:
    return Operation(begun, ended, revision, writes=False)


@pytest.mark.parametrize(
    ("why", "operations", "holds"),
    [
        ("one after the other", [write(0, 1, 1), read(2, 3, 1), write(4, 5, 2), read(6, 7, 2)], True),
        ("a read may see a write under way", [write(0, 1, 1), write(2, 9, 2), read(3, 4, 2), read(5, 6, 2)], True),
        ("or not see it", [write(0, 1, 1), write(2, 9, 2), read(3, 4, 1)], True),
        ("but not forget it again", [write(0, 1, 1), write(2, 9, 2), read(3, 4, 2), read(5, 6, 1)], False),
        ("a stale read", [write(0, 1, 1), write(2, 3, 2), read(4, 5, 1)], False),
        ("a read before its write", [write(0, 1, 1), read(2, 3, 2), write(4, 5, 2)], False),
        ("revisions against real time", [write(0, 1, 2), write(2, 3, 1)], False),
        ("overlapping writes in either order", [write(0, 5, 2), write(1, 4, 1), read(6, 7, 2)], True),
        ("nothing is known of before", [read(0, 1, 7), write(2, 3, 9)], True),
    ],
)
def test_an_order_is_found_where_there_is_one(why: str, operations: list[Operation], holds: bool) -> None:
    assert is_linearizable(operations) is some_order_explains(operations) is holds, why


@given(
    st.lists(
        st.builds(
            lambda at, span, rev, writes: Operation(at, at + span, rev, writes),
            st.integers(0, 9),
            st.integers(0, 9),
            st.integers(1, 9),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_where_the_order_of_revisions_will_do_there_is_one(operations: list[Operation]) -> None:
    if agree_by_revision(operations):
        assert some_order_explains(operations)


def test_windows_are_cut_where_nothing_is_under_way_and_hand_on_the_last_write() -> None:
    operations = [one for at in range(0, 120, 4) for one in (write(at, at + 1, at + 1), read(at + 2, at + 3, at + 1))]
    cut = list(windows(operations))
    assert len(cut) > 3 and all(len(window) <= 21 for window in cut)
    assert all(is_linearizable(window) for window in cut)
    cut[2][1] = read(cut[2][1].begun, cut[2][1].ended, 1)
    assert not is_linearizable(cut[2])


def test_a_window_hands_on_the_highest_write_and_not_the_one_asked_for_last() -> None:
    early = [one for at in range(0, 60, 4) for one in (write(at, at + 1, at + 1), read(at + 2, at + 3, at + 1))]
    overlapping = [write(60, 69, 99), write(62, 63, 98)]
    windowed = list(windows([*early, *overlapping, read(80, 81, 99)]))
    assert len(windowed) > 1 and all(is_linearizable(window) for window in windowed)
    stale = list(windows([*early, *overlapping, read(80, 81, 98)]))
    assert not all(is_linearizable(window) for window in stale)


def test_of_two_answers_with_one_revision_the_other_changed_nothing() -> None:
    def answered(records: list[dict[str, Any]], *, again: str) -> None:
        ok = next(record for record in records if record["kind"] == "api.ok" and record.get("write"))
        invoke = next(record for record in records if record["kind"] == "api.invoke" and record["op"] == ok["op"])
        at = records.index(ok)
        records.insert(at, {**ok, "op": again})
        records.insert(records.index(invoke), {**invoke, "op": again})

    records = a_good_run()
    answered(records, again="twin")
    assert "I-36" not in broken(records)


# ---------------------------------------------------------------- the verdict on a run


def test_the_worst_verdict_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    def crashes(history: History) -> Any:
        """I-11: a checker that falls over."""
        raise KeyError("what")

    import elbowroom.history.report as report

    monkeypatch.setattr(report, "INVARIANTS", {**report.INVARIANTS, "I-11": crashes})
    unsure = judge(history_of(a_good_run()))
    assert (unsure.verdict, unsure.held) == ("unknown", False)
    assert "I-11  unknown" in unsure.text() and "KeyError" in unsure.text()
    records = a_good_run()
    a_stale_read(records)
    assert judge(history_of(records)).verdict == "broken"


def test_a_run_in_which_too_little_happened_is_not_valid() -> None:
    without = [record for record in a_good_run() if record["kind"] != "kl.alloc"]
    report = judge(history_of([record for record in without if not record["kind"].startswith("kl.")][:3]))
    assert report.verdict == "unknown" and report.held
    assert "no pod was allocated anything" in report.text()


def test_a_fault_that_was_planned_and_never_fired_makes_a_run_unknown() -> None:
    planned = {
        "kind": "fault.planned",
        "proc": "nemesis",
        "inc": 0,
        "name": "crash",
        "args": {"machine": "kubelet/n1", "label": "K4"},
    }
    records = [*a_good_run(), planned]
    assert judge(history_of(records)).verdict == "unknown"
    fired = {"kind": "fault.begin", "proc": "nemesis", "inc": 0, "name": "crash", "args": {"machine": "kubelet/n1", "label": "K4"}}
    over = fired | {"kind": "fault.end", "args": {"machine": "kubelet/n1"}}
    assert judge(history_of([planned, fired, over, *a_good_run()])).verdict == "valid"


def test_what_a_client_writes_into_a_status_is_the_clients() -> None:
    records = a_good_run()
    put_object(-2, phase="Pending")(records)
    assert "I-45" in broken(records)
    nth(records, "commit", -2).update(user="admin", sub="status")
    assert "I-45" not in broken(records)
