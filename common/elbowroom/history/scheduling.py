"""The invariants of scheduling and preemption: what the scheduler believed, whom it chose, and what woke its pods.

The choice of victims is judged anew from the inputs that each ``sch.plan`` records, by brute force where there are few candidates:
of all sets of pods that could stay, the documented order wants the one that is first in it, pod by pod. The belief is judged
against the commits up to the revision that the scheduler had read.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from elbowroom.history.reading import ENDED, SECOND, Invariant, figure_of
from elbowroom.history.records import History, Record, Violation

FEW = 12
"""Up to so many candidates all sets of them are tried."""
PLAIN_FILTERS = frozenset(
    ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit", "DeferredPodScheduling")
)
"""Filters whose answer does not depend on the node's other pods, and the one that counts them."""

Vector = Mapping[str, int]


# ---------------------------------------------------------------- the choice of victims


class _Choice:
    """The question that a plan answered."""

    def __init__(self, plan: Record) -> None:
        inputs = plan["oracle_inputs"]
        self._allocatable: Vector = inputs["allocatable"]
        self._want: Vector = inputs["want"]
        self._have: Vector = inputs["have"] if plan["resize"] else {}
        self._pods: list[Any] = inputs["pods"]
        self._promised = [n for n in inputs["nominated"] if n["priority"] >= plan["priority"] and n["uid"] != plan["uid"]]
        self._budgets: list[Any] = inputs["budgets"]
        self.strict: bool = inputs.get("strict", False)
        # Python's sort is stable: equal pods stay in the order in which they were counted, as in the scheduler.
        lower = [pod for pod in self._pods if pod["priority"] < plan["priority"]]
        self.candidates = sorted(lower, key=lambda pod: (-pod["priority"], pod["start_time"]))
        self.protected = self._protected()

    def _protected(self) -> set[str]:
        left = [budget["disruptions_allowed"] for budget in self._budgets]
        broken = set()
        for pod in self.candidates:
            for index, budget in enumerate(self._budgets):
                exempt = pod["name"].rpartition("/")[2] in budget["disrupted_pods"]
                if pod["uid"] in budget["covers"] and not exempt:
                    left[index] -= 1
                    if left[index] < 0:
                        broken.add(pod["uid"])
        return broken

    @property
    def in_order(self) -> list[str]:
        """Who is put back first: those that a budget protects, then the others, each the most important first."""
        uids = [pod["uid"] for pod in self.candidates]
        guarded = [uid for uid in uids if uid in self.protected]
        free = [uid for uid in uids if uid not in self.protected]
        return free if self.strict else guarded + free

    def fits(self, without: set[str]) -> bool:
        """Does the preemptor fit once these are gone, beside the pods promised the node, and without them too?"""
        staying = [pod for pod in self._pods if pod["uid"] not in without]
        known = {pod["uid"] for pod in staying}
        promised = [pod for pod in self._promised if pod["uid"] not in known]
        return self._fits(staying, []) and (not promised or self._fits(staying, promised))

    def _fits(self, staying: Sequence[Any], promised: Sequence[Any]) -> bool:
        if len(staying) + len(promised) + 1 > self._allocatable.get("pods", 0):
            return False
        for resource, wanted in self._want.items():
            used = sum(pod["counted"].get(resource, 0) for pod in staying) + sum(p["requests"].get(resource, 0) for p in promised)
            more = max(0, wanted - self._have.get(resource, 0))
            if wanted > 0 and more > self._allocatable.get(resource, 0) - used:
                return False
        return True

    def victims(self) -> set[str]:
        """Whom the documented order lets go."""
        order = self.in_order
        return self._first_of_all(order) if len(order) <= FEW else self._replayed(order)

    def _first_of_all(self, order: list[str]) -> set[str]:
        """Of all sets that could stay the first; those that keep the first in order come before the others.

        Where it does not fit though all later ones go, no set with that beginning is looked at: who goes takes no room, unless the
        room is promised to the same pod.
        """
        whoever_goes_gives_room = {pod["uid"] for pod in self._promised}.isdisjoint(order)

        def search(gone: set[str], place: int) -> set[str] | None:
            if (whoever_goes_gives_room or place == len(order)) and not self.fits(gone | set(order[place:])):
                return None
            if place == len(order):
                return gone
            kept = search(gone, place + 1)
            return kept if kept is not None else search(gone | {order[place]}, place + 1)

        found = search(set(), 0)
        return set(order) if found is None else found

    def _replayed(self, order: list[str]) -> set[str]:
        gone = set(order)
        for uid in order:
            if self.fits(gone - {uid}):
                gone.discard(uid)
        return gone


def _judged_plans(history: History) -> Iterator[tuple[Record, _Choice]]:
    """The plans whose inputs tell all: nothing but resources decided."""
    for plan in history.kinds("sch.plan"):
        inputs = plan.get("oracle_inputs")
        if inputs and PLAIN_FILTERS.issuperset(inputs.get("filters", ("?",))):
            yield plan, _Choice(plan)


def victims_are_needed(history: History) -> Iterator[Violation]:
    """I-24: no needless victim: with any one put back it does not fit; and they are those that the documented order picks."""
    for plan, choice in _judged_plans(history):
        gone = {victim["uid"] for victim in plan["victims"]}
        if not choice.fits(gone):
            yield Violation("I-24", f"{plan['pod']} does not fit though its victims go", (plan,))
            continue
        for victim in plan["victims"]:
            if choice.fits(gone - {victim["uid"]}):
                yield Violation("I-24", f"{victim['pod']} goes in vain: {plan['pod']} fits beside it", (plan,))
        if gone != choice.victims():
            wanted = sorted(pod["name"] for pod in choice.candidates if pod["uid"] in choice.victims())
            yield Violation("I-24", f"the victims for {plan['pod']} should be {', '.join(wanted)}", (plan,))


def rounds_are_not_doubled(history: History) -> Iterator[Violation]:
    """I-25: nobody is told to go who was in no plan; no second round while the first one's victims end, where the policy tracks it,
    and where it does not, the same question has the same answer.

    Without tracking another answer to another question is legal (SC-139). Start times that tie may be told apart either way.
    """
    tracking: dict[int, str] = {}
    plans: dict[tuple[int, str], list[Record]] = defaultdict(list)
    told: dict[tuple[int, str], list[Record]] = defaultdict(list)
    for record in history.kinds("sch.start", "sch.plan", "sch.delete"):
        inc = record["inc"]
        if record["kind"] == "sch.start":
            tracking[inc] = record.get("nominationTracking", "none")
        elif record["kind"] == "sch.plan":
            place = (inc, record["uid"])
            yield from _second_round(record, plans[place], told[place], tracking.get(inc, "none"))
            plans[place].append(record)
        elif "preemptorUid" in record:
            place = (inc, record["preemptorUid"])
            told[place].append(record)
            if not any(record["uid"] == victim["uid"] for plan in plans[place] for victim in plan["victims"]):
                yield Violation("I-25", f"{record['victim']} was told to go, but is in no plan", (*plans[place][-1:], record))


def _second_round(plan: Record, before: Sequence[Record], told: Sequence[Record], tracking: str) -> Iterator[Violation]:
    inputs = plan.get("oracle_inputs")
    if not plan["resize"] or not inputs or not before:
        return
    terminating = {pod["uid"] for pod in inputs["pods"] if pod["terminating"]}
    if tracking in ("memory", "specNodeName"):
        ending = [record for record in told if record["uid"] in terminating]
        if ending and any(victim["uid"] not in terminating for victim in plan["victims"]):
            yield Violation("I-25", f"a second round for {plan['pod']} while {ending[0]['victim']} ends", (ending[0], plan))
    last = before[-1]
    if all("counted" in pod for pod in inputs["pods"]) and _question(last) == _question(plan) and _has_no_ties(inputs):
        first, second = ({victim["uid"] for victim in each["victims"]} for each in (last, plan))
        if first != second:
            yield Violation("I-25", f"{plan['pod']} has other victims than before, though nothing changed", (last, plan))


def _question(plan: Record) -> Any:
    inputs = plan["oracle_inputs"]
    pods = sorted((p["uid"], p["priority"], p["start_time"], sorted(p["counted"].items())) for p in inputs["pods"])
    same = ("allocatable", "want", "have", "budgets", "nominated", "strict")
    return pods, [inputs.get(name) for name in same]


def _has_no_ties(inputs: Any) -> bool:
    return len({(pod["priority"], pod["start_time"]) for pod in inputs["pods"]}) == len(inputs["pods"])


def budgets_are_broken_last(history: History) -> Iterator[Violation]:
    """I-26: a pod that a budget protects goes only if all others together do not make the room; under ``strict`` never."""
    for plan, choice in _judged_plans(history):
        guarded = [victim for victim in plan["victims"] if victim["uid"] in choice.protected]
        if guarded and choice.strict:
            yield Violation("I-26", f"{guarded[0]['pod']} goes against its budget", (plan,))
        elif guarded and choice.fits({pod["uid"] for pod in choice.candidates} - choice.protected):
            yield Violation("I-26", f"{guarded[0]['pod']} goes against its budget, though others would do", (plan,))


# ---------------------------------------------------------------- what the scheduler believed


def _pod_commits(history: History) -> Sequence[Record]:
    """The writes of pods by revision; none of a store that began anew in between, whose revisions say nothing."""
    return history.remembered("commits of pods", lambda: _made_pod_commits(history))


def _made_pod_commits(history: History) -> Sequence[Record]:
    if history.count("wal.recovered", lambda record: not record.get("durable", True)) > 1:
        return []
    known: dict[int, Record] = {}
    for record in history.kinds("commit"):
        if record["resource"] == "pods" and (record["verb"] != "recovered" or record["rev"] not in known):
            known[record["rev"]] = record
    return [known[rev] for rev in sorted(known)]


def _at_their_revision(history: History, kind: str) -> Iterator[tuple[Record, dict[str, Record]]]:
    """Records of the scheduler, each with the pods (by uid) as they were at the revision that it had read."""
    commits, place = _pod_commits(history), 0
    pods: dict[str, Record] = {}
    if not commits:
        return
    for record in sorted((r for r in history.kinds(kind) if "revision" in r), key=lambda r: r["revision"]):
        while place < len(commits) and commits[place]["rev"] <= record["revision"]:
            commit = commits[place]
            if commit.get("gone"):
                pods.pop(commit["uid"], None)
            else:
                pods[commit["uid"]] = commit
            place += 1
        yield record, pods


def _counts(commit: Record) -> bool:
    return commit["obj"]["phase"] not in ENDED


def figures_are_the_maximum(history: History) -> Iterator[Violation]:
    """I-06: the scheduler's figure of a pod is max(desired unless Infeasible, allocated, actual), and no pod is counted twice."""
    versions = {(commit["uid"], str(commit["rev"])): commit for commit in _pod_commits(history)}
    for plan in history.kinds("sch.plan"):
        pods = (plan.get("oracle_inputs") or {}).get("pods", ())
        if len({pod["uid"] for pod in pods}) != len(pods):
            yield Violation("I-06", f"a pod on {plan['node']} is counted twice", (plan,))
        for pod in pods:
            commit = versions.get((pod["uid"], str(pod.get("rev"))))
            for resource in ("cpu", "memory") if commit is not None else ():
                assert commit is not None
                figure = figure_of(commit, resource)
                if figure is not None and figure != pod["requests"].get(resource, 0):
                    said = f"{pod['name']} counts {pod['requests'].get(resource, 0)} of {resource}, not {figure}"
                    yield Violation("I-06", said, (commit, plan))


def asked_room_is_kept(history: History) -> Iterator[Violation]:
    """I-31: no new pod is bound into the room that a deferred resize asks for."""
    for bind, pods in _at_their_revision(history, "sch.bind"):
        here = [c for c in pods.values() if c["obj"]["node"] == bind["node"] and _counts(c) and c["uid"] != bind["uid"]]
        for resource in ("cpu", "memory"):
            if "allocatable" not in bind or not bind["want"].get(resource):
                continue
            figures = [(figure_of(commit, resource), commit) for commit in here]
            used = sum(figure for figure, _ in figures if figure is not None)
            if used + bind["want"][resource] > bind["allocatable"].get(resource, 0):
                waiting = tuple(commit for _, commit in figures if commit["obj"].get("pending") == "Deferred")
                yield Violation("I-31", f"{bind['pod']} takes {resource} that is asked for on {bind['node']}", (*waiting[:2], bind))


def belief_is_the_truth(history: History) -> Iterator[Violation]:
    """I-33: the scheduler counts exactly the pods that are on the node, and those it is binding; nominations are of waiting pods;
    what it assumed is confirmed or given up.
    """
    bound: dict[int, set[str]] = defaultdict(set)
    for record in history.kinds("sch.bind"):
        bound[record["inc"]].add(record["uid"])
    for plan, pods in _at_their_revision(history, "sch.plan"):
        inputs = plan.get("oracle_inputs")
        if not inputs:
            continue
        counted = {pod["uid"] for pod in inputs["pods"]}
        there = {uid for uid, commit in pods.items() if commit["obj"]["node"] == plan["node"] and _counts(commit)}
        for uid in sorted(there - counted):
            yield Violation("I-33", f"{pods[uid]['key']} is on {plan['node']} and not counted", (pods[uid], plan))
        for uid in sorted(counted - there - bound[plan["inc"]]):
            yield Violation("I-33", f"{uid} is counted on {plan['node']} and not there", (plan,))
        for promised in inputs["nominated"]:
            commit = pods.get(promised["uid"])
            if commit is None or commit["obj"]["node"]:
                yield Violation("I-33", f"{promised['uid']} is nominated to {plan['node']} and does not wait", (plan,))
    yield from _assumed_for_ever(history, bound)


CONFIRMED_SECONDS = 120


def _assumed_for_ever(history: History, bound: Mapping[int, set[str]]) -> Iterator[Violation]:
    settled = {commit["uid"] for commit in _pod_commits(history) if commit.get("gone") or commit["obj"]["node"]}
    retried = {(record["inc"], record["uid"]) for record in history.kinds("sch.expire", "sch.park", "sch.dequeue")}
    ends = {record["inc"]: record["wall"] for record in history.kinds("end") if record["proc"] == "scheduler"}
    for record in history.kinds("sch.bind"):
        end = ends.get(record["inc"])
        long_ago = end is not None and end - record["wall"] > CONFIRMED_SECONDS * SECOND
        if settled and long_ago and record["uid"] not in settled and (record["inc"], record["uid"]) not in retried:
            yield Violation("I-33", f"{record['pod']} is assumed on {record['node']} for ever", (record,))


# ---------------------------------------------------------------- grace


def grace_is_given(history: History) -> Iterator[Violation]:
    """I-27: a container that was killed had its pod's whole grace period; a kubelet lets no object go before its containers."""
    asked: dict[str, Record] = {}
    grace: dict[str, int] = {}
    running: dict[str, dict[str, Record]] = defaultdict(dict)
    lives: dict[str, set[int]] = defaultdict(set)
    forced: set[str] = set()
    for record in history.kinds("commit", "rt.started", "rt.create", "rt.exit"):
        if record["kind"] == "rt.started":
            lives[record["node"]].add(record["inc"])
            continue
        uid = record["uid"]
        if record["kind"] == "rt.create":
            running[uid][record["container"]] = record
            lives[record["node"]].add(record["inc"])
        elif record["kind"] == "rt.exit":
            running[uid].pop(record["container"], None)
            waited = record["wall"] - asked[uid]["wall"] if uid in asked else None
            if waited is not None and record.get("told"):  # it may have been told to end before, to begin anew with other resources
                waited = max(waited, record["wall"] - record["told"])
            was_killed = record["code"] == 137 and record.get("reason") == "Error" and record.get("ran", True)
            # deletionTimestamp has whole seconds, rounded down.
            if was_killed and waited is not None and waited < (grace[uid] - 1) * SECOND:
                yield Violation(
                    "I-27", f"{record['container']} was killed {waited / SECOND:.1f} s into {grace[uid]} s", (asked[uid], record)
                )
        elif record["resource"] == "pods" and not record.get("gone"):
            given = record["obj"].get("grace")
            if given == 0 and not record["user"].startswith("system:node:"):
                forced.add(uid)  # any later write may be the one that removes the object
            if record["obj"].get("deleting") and given is not None and record["verb"] != "recovered":
                asked.setdefault(uid, record)
                grace[uid] = min(grace.get(uid, given), given)
        elif record["resource"] == "pods" and record["user"].startswith("system:node:") and running[uid]:
            left = next(iter(running[uid].values()))
            if uid not in forced and len(lives[left["node"]]) == 1:  # a runtime that died may have left an end untold
                yield Violation("I-27", f"{record['key']} went before its container {left['container']}", (left, record))


# ---------------------------------------------------------------- the queue


class _Life:
    """What one incarnation of the scheduler did with one pod."""

    def __init__(self) -> None:
        self.where = ""
        self.rejected_by: tuple[str, ...] = ()
        self.last: Record | None = None


_MAY_FOLLOW = {
    "sch.enqueue": ("", "inflight"),
    "sch.pop": ("active", "backoff", "unschedulable", "gated"),
    "sch.park": ("inflight",),
    "sch.wake": ("active", "backoff", "unschedulable", "gated"),
}
"""In which places a pod may be before each note. ``inflight`` stands for a pod that was bound or dropped, too."""
_QUEUE_NOTES = ("sch.enqueue", "sch.pop", "sch.park", "sch.wake", "sch.gate", "sch.dequeue")


def _note_queue(life: _Life, record: Record) -> Violation | None:
    kind, before = record["kind"], life.where
    life.last, wrong = record, None
    if kind in _MAY_FOLLOW and before not in _MAY_FOLLOW[kind]:
        wrong = Violation("I-28", f"{record['pod']} is in {before or 'no queue'} at {kind}", (record,))
    if kind == "sch.park":
        life.rejected_by = tuple(record["cause"].split(","))
    life.where = record["queue"]
    return wrong


def waiting_resizes_are_queued(history: History) -> Iterator[Violation]:
    """I-28: a deferred pod is in exactly one place of the queue for as long as it is deferred; what makes room on its node, or
    another desire of its own, wakes it within a second; and no resize in a run without faults waited for the timer.
    """
    faults = history.count("fault.begin")
    lives: dict[tuple[int, str], _Life] = defaultdict(_Life)
    timed: set[tuple[int, str]] = set()
    for record in history.kinds(*_QUEUE_NOTES, "sch.plan"):
        place = (record["inc"], record["uid"])
        if record["kind"] == "sch.plan":
            if place in timed and record["resize"] and not faults:
                yield Violation("I-28", f"only the timer found room for {record['pod']}", (record,))
            continue
        wrong = _note_queue(lives[place], record)
        if wrong is not None:
            yield wrong
        if record["kind"] == "sch.wake" and record.get("pod_node"):
            (timed.add if record["cause"] == "UnschedulableTimeout" else timed.discard)(place)
        elif record["kind"] == "sch.park" and "DeferredPodScheduling" in record["cause"] and place in timed and not faults:
            yield Violation("I-28", f"only the timer saw that {record['pod']} fits", (record,))
    yield from _left_out(history, "I-28", lambda uid: True)
    yield from _unheard(history)


def overtaken_resizes_stay_queued(history: History) -> Iterator[Violation]:
    """I-32: a resize whose freed room went to another one stays queued until it succeeds or is taken back."""
    overtaken: set[str] = set()
    planned: dict[str, str] = {}
    for record in history.kinds("sch.plan", "kl.judge"):
        if record["kind"] == "sch.plan":
            if record["resize"]:
                planned[record["uid"]] = record["node"]
        elif record["verdict"] == "Granted":
            overtaken.update(uid for uid, node in planned.items() if node == record["node"] and uid != record["uid"])
    yield from _left_out(history, "I-32", overtaken.__contains__)


def _heard(history: History) -> Sequence[tuple[Record, Record, Record | None]]:
    """Each change of a pod that an incarnation of the scheduler heard of: the event, the commit, and the one heard of before."""
    return history.remembered("heard by schedulers", lambda: tuple(_all_heard(history)))


def _all_heard(history: History) -> Iterator[tuple[Record, Record, Record | None]]:
    commits = {commit["rev"]: commit for commit in _pod_commits(history)}
    known: dict[tuple[int, str], Record] = {}
    for event in history.kinds("watch.event"):
        if event["proc"] != "scheduler":
            continue
        commit = commits.get(event["rev"])
        if commit is not None and commit["key"] == f"pods/{event['key'].removeprefix('pods/')}":
            yield event, commit, known.get((event["inc"], commit["uid"]))
            known[event["inc"], commit["uid"]] = commit


def _belongs(commit: Record) -> bool:
    obj = commit["obj"]
    waits = obj.get("pending") == "Deferred" and obj["node"] and not obj.get("deleting") and obj["phase"] not in ENDED
    return bool(waits and not obj.get("held_back") and not commit.get("gone"))


def _left_out(history: History, invariant: str, concerns: Callable[[str], bool]) -> Iterator[Violation]:
    """At the end of a scheduler that ended in order, what it had heard of is queued."""
    preempting = {r["inc"] for r in history.kinds("sch.start") if r.get("resizePreemption")}
    ends = {r["inc"]: r for r in history.kinds("end") if r["proc"] == "scheduler" and r["inc"] in preempting}
    where: dict[tuple[int, str], str] = {}
    for record in history.kinds(*_QUEUE_NOTES):
        where[record["inc"], record["uid"]] = record["queue"]
    last = {(event["inc"], commit["uid"]): (event, commit) for event, commit, _ in _heard(history)}
    for (inc, uid), (event, commit) in last.items():
        if inc in ends and concerns(uid) and _belongs(commit) and not where.get((inc, uid)):
            yield Violation(invariant, f"{commit['key']} is Deferred and in no queue", (commit, event, ends[inc]))


def _pauses(history: History, machine: str) -> Iterator[tuple[int, float]]:
    """From when until when the machine stood still."""
    began: int | None = None
    for record in history.kinds("fault.begin", "fault.end"):
        if record["name"] != "pause" or record["args"].get("machine") != machine:
            continue
        if record["kind"] == "fault.begin":
            began = record["mono_ns"]
        elif began is not None:
            yield began, record["mono_ns"]
            began = None
    if began is not None:
        yield began, float("inf")


def _unheard(history: History) -> Iterator[Violation]:
    """A resize that lacks room is woken when a neighbour goes or when it asks for something else."""
    heard = {(event["inc"], event["seq"]): (commit, before) for event, commit, before in _heard(history)}
    pauses = list(_pauses(history, "scheduler"))
    lives: dict[int, dict[str, _Life]] = defaultdict(lambda: defaultdict(_Life))
    lacking: dict[int, dict[str, Record]] = defaultdict(dict)
    due: dict[tuple[int, str], tuple[int, Record]] = {}
    for record in history.kinds(*_QUEUE_NOTES, "watch.event", "watch.bookmark", "end"):
        if record["proc"] != "scheduler":
            continue
        inc = record["inc"]
        for place in [place for place, (until, _) in due.items() if place[0] == inc and record["mono_ns"] > until]:
            until, cause = due.pop(place)
            if any(began < record["mono_ns"] and ended > until - SECOND for began, ended in pauses):
                due[place] = (record["mono_ns"] + SECOND, cause)  # who stood still is given its time anew
                continue
            yield Violation("I-28", f"{place[1]} was not woken by {cause['key']}", (cause, record))
        if record["kind"] in _QUEUE_NOTES:
            life = lives[inc][record["uid"]]
            _note_queue(life, record)
            due.pop((inc, record["uid"]), None)
            lacking[inc].pop(record["uid"], None)
            if life.where == "unschedulable" and "NodeResourcesFit" in life.rejected_by and record.get("pod_node"):
                lacking[inc][record["uid"]] = record
        elif record["kind"] == "watch.event" and (inc, record["seq"]) in heard:
            commit, before = heard[inc, record["seq"]]
            for uid, last in lacking[inc].items():
                if _matters(last, uid, commit, before):
                    due.setdefault((inc, uid), (record["mono_ns"] + SECOND, commit))


def _matters(waiting: Record, uid: str, commit: Record, before: Record | None) -> bool:
    if before is None:
        return False
    if commit["uid"] == uid:
        grew = any((figure_of(commit, r) or 0) > (figure_of(before, r) or 0) for r in ("cpu", "memory"))
        return grew and commit["obj"]["generation"] != before["obj"]["generation"]
    was_there = before["obj"]["node"] == waiting["pod_node"] and _counts(before)
    return was_there and (bool(commit.get("gone")) or not _counts(commit))


def nothing_elsewhere_wakes(history: History) -> Iterator[Violation]:
    """I-29: what happens on another node wakes no resize. (Any new node wakes it: SC-33.)"""
    for record in history.kinds("sch.wake"):
        at, own = record.get("at", ""), record.get("pod_node", "")
        if at and own and at != own and record["cause"] != "NodeAdd":
            yield Violation("I-29", f"{record['pod']} on {own} was woken by {record['cause']} on {at}", (record,))


INVARIANTS: Mapping[str, Invariant] = {
    "I-06": figures_are_the_maximum,
    "I-24": victims_are_needed,
    "I-25": rounds_are_not_doubled,
    "I-26": budgets_are_broken_last,
    "I-27": grace_is_given,
    "I-28": waiting_resizes_are_queued,
    "I-29": nothing_elsewhere_wakes,
    "I-31": asked_room_is_kept,
    "I-32": overtaken_resizes_stay_queued,
    "I-33": belief_is_the_truth,
}
LOOKED_AT = {
    "I-06": ("sch.plan",),
    "I-24": ("sch.plan",),
    "I-25": ("sch.plan", "sch.delete"),
    "I-26": ("sch.plan",),
    "I-27": ("rt.exit",),
    "I-28": _QUEUE_NOTES,
    "I-29": ("sch.wake",),
    "I-31": ("sch.bind",),
    "I-32": ("sch.plan",),
    "I-33": ("sch.plan", "sch.bind"),
}
