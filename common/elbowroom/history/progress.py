"""What must come about: a resize that fits is granted at once, by the event that made room, and what is left alone settles."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from elbowroom.history.reading import RESOURCES, SECOND, Invariant, vector_of
from elbowroom.history.records import History, Record, Violation

QUIET = 60 * SECOND
"""So long after the last wish and the last fault everything is as wished, or says why not."""
LIVELY, LIVELY_UNDER_FAULTS = 1 * SECOND, 5 * SECOND
TIMER = "periodic_retry"


def what_is_left_alone_settles(history: History) -> Iterator[Violation]:
    """I-09: a while after the last wish and the last fault, what each running pod is wished to have is what it was allocated and
    has, or its resize is pending with the verdict that was reached.

    (That the end depends on the last wish alone, ``explore resize-storm`` shows by a second run.)
    """
    ends = [record for record in history.kinds("end") if record["proc"] == "apiserver"]
    if not ends:
        return
    end, last = ends[-1], 0
    pods: dict[str, Record] = {}
    for record in history.kinds("commit", "fault.begin", "fault.end", "rt.exit", "kl.resize.failed"):
        moves = record["kind"] != "commit" or record["resource"] == "nodes" or not record["user"].startswith("system:")
        if moves or record["verb"] in ("create", "delete"):
            last = record["mono_ns"]
        if record["kind"] == "commit" and record["resource"] == "pods":
            pods.pop(record["uid"], None)
            if not record.get("gone"):
                pods[record["uid"]] = record
    if not pods or end["mono_ns"] - last < QUIET:
        return
    verdicts = {(r["uid"], r["verdict"], r["gen"]) for r in history.kinds("kl.judge")}
    allocated = {r["uid"]: r for r in history.kinds("kl.alloc")}
    for uid, record in pods.items():
        facts = record["obj"]
        if not facts["node"] or facts["phase"] != "Running" or facts.get("deleting") or uid not in allocated:
            continue
        pending = facts["resize"].get("PodResizePending")
        if "PodResizeInProgress" in facts["resize"]:
            yield Violation("I-09", f"{record['key']} is still being resized", (record,))
        elif pending is not None:
            if (uid, pending[0], pending[1]) not in verdicts:
                yield Violation("I-09", f"{record['key']} waits, and nobody said so", (record,))
        elif vector_of(facts["containers"]) != vector_of(allocated[uid]["containers"]):
            yield Violation("I-09", f"{record['key']} has not what it was last wished to have", (allocated[uid], record))


def room_is_given(history: History) -> Iterator[Violation]:
    """I-10: a deferred resize that fits, once another one has given room back, is judged within a second, under faults within five,
    not counting the time in which its kubelet stood still. Room is given back when the runtime has carried it out, which may take.
    """
    within = LIVELY_UNDER_FAULTS if history.count("fault.begin") else LIVELY
    held: dict[str, dict[str, Mapping[str, int]]] = defaultdict(dict)
    waiting: dict[tuple[str, int], dict[str, Record]] = defaultdict(dict)
    where: dict[str, set[tuple[str, int]]] = defaultdict(set)
    due: dict[tuple[str, int, str], tuple[int, Record]] = {}
    allocated: dict[str, Mapping[str, int]] = {}
    faults = 0
    for record in history.kinds(
        "kl.judge", "kl.alloc", "kl.resized", "pod.end", "ckpt.loaded", "commit", "fault.begin", "fault.end", "end"
    ):
        kind = record["kind"]
        if kind in ("fault.begin", "fault.end", "end"):
            for place, (until, cause) in due.items():
                if not faults and record["mono_ns"] > until:
                    yield Violation("I-10", f"{waiting[place[:2]][place[2]]['pod']} fits and was not judged", (cause, record))
            due.clear()  # who stood still, or was cut off, is given its time anew
            faults += {"fault.begin": 1, "fault.end": -1}.get(kind, 0)
            continue
        if kind == "commit":
            if record["resource"] == "pods":  # another desire, a deletion, or the end
                facts = record.get("obj") or {}
                for life in sorted(where[record["uid"]]):
                    pod = waiting[life].get(record["uid"])
                    if pod is not None and (facts.get("deleting") or record.get("gone") or facts.get("generation") != pod["gen"]):
                        del waiting[life][record["uid"]]
                        where[record["uid"]].discard(life)
                        due.pop((*life, record["uid"]), None)
            continue
        life = (record["proc"], record["inc"])
        for place in [place for place, (until, _) in due.items() if place[:2] == life and record["mono_ns"] > until]:
            _, cause = due.pop(place)
            yield Violation("I-10", f"{waiting[life][place[2]]['pod']} fits and was not judged", (cause, record))
        if kind == "ckpt.loaded":
            held[record["node"]].clear()
            continue
        uid, here = record["uid"], held[record["node"]]
        if kind == "kl.judge":
            due.pop((*life, uid), None)
            waiting[life].pop(uid, None)
            where[uid].discard(life)
            if record["verdict"] == "Deferred" and _lacks_room(record):
                waiting[life][uid] = record
                where[uid].add(life)
            continue
        if kind == "pod.end":
            here.pop(uid, None)
        elif kind == "kl.alloc":
            allocated[uid], before = record["vector"], here.get(uid, {})
            here[uid] = {r: max(amount, before.get(r, 0)) for r, amount in record["vector"].items()}
        elif uid in allocated and uid in here:
            here[uid] = allocated[uid]
        for other, pod in waiting[life].items():
            if other != uid and other in here and _fits(pod, other, here):
                due.setdefault((*life, other), (record["mono_ns"] + within, record))


def _lacks_room(judged: Record) -> bool:
    """Or does it wait for something else, processors of its own, say?"""
    used, allocatable = judged.get("used") or {}, judged["allocatable"]
    return any(used.get(r, 0) + judged["wanted"].get(r, 0) > allocatable.get(r, 0) for r in RESOURCES)


def _fits(pod: Record, uid: str, held: Mapping[str, Mapping[str, int]]) -> bool:
    others = {r: sum(vector.get(r, 0) for other, vector in held.items() if other != uid) for r in RESOURCES}
    return all(others[r] + pod["wanted"].get(r, 0) <= pod["allocatable"].get(r, 0) for r in RESOURCES)


def nobody_needs_the_timer(history: History) -> Iterator[Violation]:
    """I-11: in a run without faults no resize is granted only because the timer came round."""
    if history.count("fault.begin"):
        return
    lives = {(record["proc"], record["inc"]) for record in history.kinds("kl.judge", "kl.alloc")}
    restarted = len({proc for proc, _ in lives}) < len(lives)
    for record in history.kinds("kl.alloc"):
        if record["cause"] == TIMER and not restarted:
            yield Violation("I-11", f"only the timer found that {record['pod']} fits", (record,))


def what_was_cut_off_comes_back(history: History) -> Iterator[Violation]:
    """I-53: every machine that was killed and is to live began again, none stands still for ever, and all ended in order."""
    ends = {(record["proc"], record["inc"]) for record in history.kinds("end")}
    if not ends:
        return  # a run that goes on, or of which all died
    last_life: dict[str, Record] = {}
    for (proc, inc), record in history.lives().items():
        if "inc" in record and proc not in ("", "nemesis") and (proc not in last_life or inc > last_life[proc]["inc"]):
            last_life[proc] = record
    open_faults: dict[str, Record] = {}
    for record in history.kinds("fault.begin", "fault.end"):
        machine = record["args"].get("machine")
        if machine and record["name"] in ("crash", "pause"):
            if record["kind"] == "fault.begin":
                open_faults[machine] = record
            else:
                open_faults.pop(machine, None)
    for machine, record in open_faults.items():
        life = last_life.get(machine)
        if life is not None and life["mono_ns"] < record["mono_ns"] and (machine, life["inc"]) not in ends:
            yield Violation("I-53", f"{machine} never came back from a {record['name']}", (record,))


INVARIANTS: Mapping[str, Invariant] = {
    "I-09": what_is_left_alone_settles,
    "I-10": room_is_given,
    "I-11": nobody_needs_the_timer,
    "I-53": what_was_cut_off_comes_back,
}
LOOKED_AT: Mapping[str, tuple[str, ...]] = {
    "I-09": ("commit",),
    "I-10": ("kl.judge",),
    "I-11": ("kl.alloc",),
    "I-53": ("end",),
}
