"""Each invariant of scheduling passes what the services really recorded, and catches the same history once it is bent."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import pytest

from elbowroom.deploy.experiment.preemption import Case, played
from elbowroom.history.records import History
from elbowroom.history.report import judge
from elbowroom.history.scheduling import INVARIANTS

Record = dict[str, Any]
Change = Callable[[list[Record]], None]

DOUBLE = Case("double", "none")
"""Two of five neighbours go and take their time; a third shrinks meanwhile, and another one goes in vain (seed 1)."""
BUDGET = Case("budget")


@cache
def _recorded(case: Case) -> list[Record]:
    _, world = played(case, 1)
    return world.history


def recorded(case: Case) -> list[Record]:
    return deepcopy(_recorded(case))


def first(records: list[Record], kind: str, nth: int = 0, **facts: Any) -> Record:
    return [r for r in records if r["kind"] == kind and facts.items() <= r.items()][nth]


def plan(nth: int = 0, **facts: Any) -> Change:
    return lambda records: first(records, "sch.plan", nth)["oracle_inputs"].update(facts)


def more_room(records: list[Record]) -> None:
    for resource in ("cpu", "memory"):
        first(records, "sch.plan")["oracle_inputs"]["allocatable"][resource] += 1 << 30


def less_room(records: list[Record]) -> None:
    first(records, "sch.plan")["oracle_inputs"]["allocatable"]["memory"] -= 1 << 30


def others_are_less_important(records: list[Record]) -> None:
    going = {victim["uid"] for victim in first(records, "sch.plan")["victims"]}
    for pod in first(records, "sch.plan")["oracle_inputs"]["pods"]:
        if pod["priority"] < 1000:
            pod["start_time"] = 1 if pod["uid"] in going else 2


def a_wrong_figure(records: list[Record]) -> None:
    first(records, "sch.plan")["oracle_inputs"]["pods"][0]["requests"]["memory"] += 1


def counted_twice(records: list[Record]) -> None:
    pods = first(records, "sch.plan")["oracle_inputs"]["pods"]
    pods.append(pods[0])


def forgotten(records: list[Record]) -> None:
    first(records, "sch.plan")["oracle_inputs"]["pods"].pop(0)


def invented(records: list[Record]) -> None:
    pods = first(records, "sch.plan")["oracle_inputs"]["pods"]
    pods.append(dict(pods[0], uid="nobody"))


def a_promise_to_a_bound_pod(records: list[Record]) -> None:
    inputs = first(records, "sch.plan")["oracle_inputs"]
    inputs["nominated"].append({"uid": inputs["pods"][0]["uid"], "priority": 0, "requests": {}})


def tracked(records: list[Record]) -> None:
    first(records, "sch.start")["nominationTracking"] = "memory"


def another_answer(records: list[Record]) -> None:
    made = first(records, "sch.plan")
    for number, pod in enumerate(made["oracle_inputs"]["pods"]):
        pod["start_time"] = number
    again = deepcopy(made)
    again["victims"] = again["victims"][:1]
    again["seq"] += 1
    records.insert(records.index(made) + 1, again)


def a_budget_spared_nobody(records: list[Record]) -> None:
    inputs = first(records, "sch.plan")["oracle_inputs"]
    inputs["allocatable"]["memory"] += 1 << 30


def killed_at_once(records: list[Record]) -> None:
    gone = first(records, "rt.exit", code=137)
    asked = next(r for r in records if r["kind"] == "commit" and r["uid"] == gone["uid"] and r["obj"].get("deleting"))
    gone["wall"] = asked["wall"] + 1_000_000_000


def gone_before_its_container(records: list[Record]) -> None:
    records.remove(first(records, "rt.exit", code=137))


def web(records: list[Record]) -> str:
    return str(first(records, "sch.plan")["uid"])


def not_woken(records: list[Record]) -> None:
    """Once the round has been told of, nothing wakes the resize."""
    uid = web(records)
    after = records.index(first(records, "sch.park", uid=uid, cause="NodeResourcesFit,NodeName"))
    for record in [r for r in records[after + 1 :] if r["kind"].startswith("sch.") and r.get("uid") == uid]:
        records.remove(record)


def left_the_queue(records: list[Record]) -> None:
    """The scheduler ends in order while the resize is Deferred, and had let it go."""
    uid = web(records)
    parked = first(records, "sch.park", uid=uid, cause="NodeResourcesFit,NodeName")
    granted = first(records, "kl.judge", verdict="Granted", uid=first(records, "kl.judge", verdict="Granted", nth=0)["uid"])
    at = max(records.index(parked), records.index(granted)) + 1
    del records[at:]
    records.append(dict(parked, kind="sch.dequeue", queue="", cause="no reason", seq=10**9, mono_ns=records[-1]["mono_ns"]))
    records.append(dict(parked, kind="end", seq=10**9 + 1, mono_ns=records[-1]["mono_ns"]))


def rescued_by_the_timer(records: list[Record]) -> None:
    first(records, "sch.wake", 1, uid=web(records))["cause"] = "UnschedulableTimeout"


def woken_from_elsewhere(records: list[Record]) -> None:
    first(records, "sch.wake", uid=web(records), pod_node="node-1")["at"] = "node-2"


def a_greedy_newcomer(records: list[Record]) -> None:
    last = [r for r in records if r["kind"] == "sch.bind"][-1]
    last["revision"] = first(records, "sch.plan")["revision"]
    last["uid"] = "new"


def never_confirmed(records: list[Record]) -> None:
    first(records, "sch.bind")["uid"] = "ghost"
    for record in records:
        if record["kind"] == "end":
            record["wall"] += 10**12


VIOLATIONS: list[tuple[str, str, Case, Change]] = [
    ("I-06", "a figure is not the maximum", DOUBLE, a_wrong_figure),
    ("I-06", "a pod is counted twice", DOUBLE, counted_twice),
    ("I-24", "there was room without them", DOUBLE, more_room),
    ("I-24", "the victims do not make the room", DOUBLE, less_room),
    ("I-24", "more important pods go", DOUBLE, others_are_less_important),
    ("I-25", "somebody goes who was in no plan", DOUBLE, lambda records: first(records, "sch.delete").update(uid="u")),
    ("I-25", "a second round though the first is tracked", DOUBLE, tracked),
    ("I-25", "the same question has another answer", DOUBLE, another_answer),
    ("I-26", "a budget is broken though others would do", BUDGET, a_budget_spared_nobody),
    ("I-26", "a strict budget is broken", BUDGET, plan(strict=True)),
    ("I-27", "a container is killed before its time", DOUBLE, killed_at_once),
    ("I-27", "the object goes before the container", DOUBLE, gone_before_its_container),
    ("I-28", "a pod is tried that was not queued", DOUBLE, lambda records: records.remove(first(records, "sch.enqueue"))),
    ("I-28", "nobody wakes the resize when its victim goes", DOUBLE, not_woken),
    ("I-28", "a deferred pod leaves the queue", DOUBLE, left_the_queue),
    ("I-28", "only the timer helps", DOUBLE, rescued_by_the_timer),
    ("I-29", "another node wakes the resize", DOUBLE, woken_from_elsewhere),
    ("I-31", "a new pod takes the room", DOUBLE, a_greedy_newcomer),
    ("I-32", "an overtaken resize leaves the queue", DOUBLE, left_the_queue),
    ("I-33", "a pod is forgotten", DOUBLE, forgotten),
    ("I-33", "a pod is counted that is not there", DOUBLE, invented),
    ("I-33", "a bound pod is nominated", DOUBLE, a_promise_to_a_bound_pod),
    ("I-33", "a pod is assumed for ever", DOUBLE, never_confirmed),
]


@pytest.mark.parametrize("case", [DOUBLE, BUDGET], ids=["double", "budget"])
def test_what_was_really_recorded_holds(case: Case) -> None:
    report = judge(History.of(recorded(case)))
    assert report.held, report.text()
    assert all(report.looked_at[invariant] for invariant in INVARIANTS), "every invariant had something to look at"


@pytest.mark.parametrize(("invariant", "why", "case", "change"), VIOLATIONS, ids=[f"{i}: {why}" for i, why, _, _ in VIOLATIONS])
def test_a_bent_history_is_caught(invariant: str, why: str, case: Case, change: Change) -> None:
    records = recorded(case)
    change(records)
    found = list(INVARIANTS[invariant](History.of(records)))
    assert found, f"nobody noticed that {why}"
    assert found[0].invariant == invariant and found[0].evidence


def test_every_invariant_has_a_violating_history() -> None:
    assert {invariant for invariant, _, _, _ in VIOLATIONS} == set(INVARIANTS)


def test_a_scheduler_that_stood_still_is_given_its_time_anew() -> None:
    records = recorded(DOUBLE)
    not_woken(records)
    assert list(INVARIANTS["I-28"](History.of(records)))
    pause = {"proc": "nemesis", "node": "", "inc": 0, "seq": 0, "name": "pause", "args": {"machine": "scheduler"}}
    began, ended = records[0]["mono_ns"], records[-1]["mono_ns"] + 1
    records.insert(0, {**pause, "kind": "fault.begin", "mono_ns": began, "wall": began})
    records.append({**pause, "kind": "fault.end", "mono_ns": ended, "wall": ended})
    assert not list(INVARIANTS["I-28"](History.of(records)))
