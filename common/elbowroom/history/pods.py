"""What a pod may rely on: one of each container, phases that only go on, sets of processors of its own, events that tell each thing
once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from elbowroom.history.limits import changes_keep_to_limit_ranges
from elbowroom.history.processors import processors, processors_are_accounted_for
from elbowroom.history.reading import ENDED, RESOURCES, Invariant, amount_of, commits, is_of_the_cluster, vector_of
from elbowroom.history.records import History, Record, Violation

PHASES = ("", "Pending", "Running", *ENDED)


def processors_are_exclusive(history: History) -> Iterator[Violation]:
    """I-20: no two running containers that have processors of their own share one, and a container keeps those that it began with;
    only containers of Guaranteed pods that ask for whole processors have any. The kubelet's account of them is right.
    """
    yield from processors_are_accounted_for(history)
    shared = {record["default"] for record in history.kinds("kl.cpus")}
    classes = {r["uid"]: r["obj"]["qos"] for r in history.kinds("commit") if (r.get("obj") or {}).get("qos")}
    whole: dict[tuple[str, str], bool] = {}
    own: dict[str, dict[str, tuple[frozenset[int], Record]]] = defaultdict(dict)
    began: dict[str, frozenset[int]] = {}
    promised: dict[tuple[str, str], frozenset[int]] = {}
    for record in history.kinds("kl.alloc", "kl.cpus", "rt.create", "rt.cpuset", "rt.exit", "rt.started"):
        here = own[record["node"]]
        if record["kind"] == "kl.cpus":
            # A container may be resized before it is made: then it begins with more than it was first given.
            for uid, originals in record["originals"].items():
                promised.update({(uid, name): processors(text) for name, text in originals.items()})
        elif record["kind"] == "rt.started":
            here.clear()
        elif record["kind"] == "rt.exit":
            here.pop(record["container"], None)
        elif record["kind"] == "kl.alloc":
            for name, given in vector_of(record["containers"]).items():
                milli = given["requests"].get("cpu", 0)
                whole[record["uid"], name] = milli > 0 and milli % 1000 == 0
        else:
            text = record["cpus"] if record["kind"] == "rt.cpuset" else record["cfg"].get("cpuset_cpus", "")
            asks = whole.get((record["uid"], record["name"]), False) and classes.get(record["uid"]) == "Guaranteed"
            if not text or not asks or text in shared:
                here.pop(record["container"], None)
                continue
            cpus, container = processors(text), record["container"]
            for other, (taken, shown) in here.items():
                if other != container and cpus & taken:
                    yield Violation("I-20", f"{container} and {other} share processors {sorted(cpus & taken)}", (shown, record))
            first = began.setdefault(container, promised.get((record["uid"], record["name"]), cpus))
            if not first <= cpus:
                yield Violation("I-20", f"{container} began with {sorted(began[container])} and has {text}", (record,))
            here[container] = (cpus, record)


def a_pod_covers_its_containers(history: History) -> Iterator[Violation]:
    """I-21: where a pod has resources of its own, its containers together request no more, none has a higher limit, and once it
    runs its status tells of cpu and memory, as far as anybody requests any (PL-45); unless it tells nothing of the pod as a whole,
    as a kubelet without that gate.
    """
    for record in commits(history):
        facts = record.get("obj") or {}
        if not facts.get("asked"):
            continue
        level = vector_of({"": facts["asked"]})[""]
        containers = {name: given for name, given in vector_of(facts["containers"]).items() if name not in facts["ending"]}
        for resource in RESOURCES:
            requested = sum(given["requests"].get(resource, 0) for given in containers.values())
            most = max((given["limits"].get(resource, 0) for given in containers.values()), default=0)
            if resource in level["requests"] and requested > level["requests"][resource]:
                yield Violation(
                    "I-21", f"{record['key']} has {level['requests']} and its containers {requested} {resource}", (record,)
                )
            if resource in level["limits"] and most > level["limits"][resource]:
                yield Violation(
                    "I-21", f"{record['key']} is limited to {level['limits']}, a container to {most} {resource}", (record,)
                )
        level_told = facts.get("level") or {}
        told = level_told.get("actual") or {}
        by_kubelet = record["user"].startswith("system:node:") and record["sub"] == "status" and any(level_told.values())
        asked = [level, *vector_of(facts["containers"]).values()]
        wanted = [resource for resource in RESOURCES if any(one["requests"].get(resource) for one in asked)]
        if by_kubelet and facts["phase"] == "Running" and not all(amount_of(name, told.get(name)) for name in wanted):
            yield Violation("I-21", f"{record['key']} runs and its status tells of {sorted(told)} only", (record,))


def one_of_each_container(history: History) -> Iterator[Violation]:
    """I-44: at no instant do two containers of one namespace, pod name and container name run, on any node.

    Whose pod was deleted without grace, though, is not waited for.
    """
    running: dict[tuple[str, str], dict[str, Record]] = defaultdict(dict)
    forced: set[str] = set()
    for record in history.kinds("commit", "rt.started", "rt.create", "rt.exit"):
        if record["kind"] == "commit":
            if record["resource"] == "pods" and (record.get("obj") or {}).get("grace") == 0:
                forced.add(record["uid"])
        elif record["kind"] == "rt.started":
            for there in running.values():
                for container in [name for name, made in there.items() if made["node"] == record["node"]]:
                    del there[container]
        elif record["kind"] == "rt.exit":
            running[record["pod"], record["name"]].pop(record["container"], None)
        else:
            there = running[record["pod"], record["name"]]
            others = [made for made in there.values() if made["uid"] not in forced]
            if others:
                yield Violation("I-44", f"{record['container']} runs beside {others[0]['container']}", (others[0], record))
            there[record["container"]] = record


def phases_go_on(history: History) -> Iterator[Violation]:
    """I-45: a pod's phase never goes back, and a container's id changes only with its count of restarts, which never falls.

    What a client itself writes into a status is the client's; from there on it is judged again.
    """
    last: dict[str, Record] = {}
    for record in commits(history):
        facts = record.get("obj") or {}
        if record["resource"] != "pods" or "phase" not in facts:
            continue
        before = last.get(record["uid"])
        last[record["uid"]] = record
        if before is None or (record["sub"] == "status" and not is_of_the_cluster(record)):
            continue
        was, now = before["obj"]["phase"], facts["phase"]
        if was in PHASES and now in PHASES and (PHASES.index(now) < PHASES.index(was) or (was in ENDED and now != was)):
            yield Violation("I-45", f"{record['key']} was {was} and is {now or 'nothing'}", (before, record))
        old_ids, ids = before["obj"].get("ids") or {}, facts.get("ids") or {}
        for name, (restarts, made) in ids.items():
            old_restarts, old_made = old_ids.get(name, (restarts, ""))
            if restarts < old_restarts:
                yield Violation("I-45", f"{record['key']}/{name} restarted {old_restarts} times, then {restarts}", (before, record))
            elif old_made and made and old_made != made and restarts == old_restarts:
                yield Violation("I-45", f"{record['key']}/{name} is another container, its restarts are the same", (before, record))


_CAUSES = {
    "ResizeStarted": ("kl.alloc", ""),
    "ResizeCompleted": ("kl.resized", ""),
    "ResizeDeferred": ("kl.judge", "Deferred"),
    "ResizeInfeasible": ("kl.judge", "Infeasible"),
}


def events_tell_once(history: History) -> Iterator[Violation]:
    """I-48: of each resize that is granted, ends, or is put off for a reason, at most one event tells; none of a message that only
    reads otherwise.
    """
    told: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    shown: dict[tuple[str, str], Record] = {}
    for record in history.kinds("commit"):
        facts = record.get("obj") or {}
        if record["resource"] == "events" and facts.get("reason") in _CAUSES and not record.get("gone"):
            place = (facts["about"], facts["reason"])
            told[place][record["key"]] = max(told[place].get(record["key"], 0), facts["count"])
            shown[place] = record
    happened: dict[tuple[str, str], int] = defaultdict(int)
    verdict: dict[str, tuple[int, str, int]] = {}
    for record in history.kinds("kl.alloc", "kl.resized", "kl.judge"):
        uid = record["uid"]
        if record["kind"] == "kl.judge":
            this = (record["inc"], record["verdict"], record["gen"])
            if verdict.get(uid) != this:
                happened[uid, f"Resize{record['verdict']}"] += 1
            verdict[uid] = this
        elif record["kind"] == "kl.resized":
            happened[uid, "ResizeCompleted"] += 1
        else:
            verdict.pop(uid, None)
            happened[uid, "ResizeStarted"] += record["cause"] != "admitted"
    for place, counts in told.items():
        if sum(counts.values()) > happened[place]:
            what = f"{sum(counts.values())} events {place[1]} about {place[0]}, which happened {happened[place]} times"
            yield Violation("I-48", what, (shown[place],))


INVARIANTS: Mapping[str, Invariant] = {
    "I-20": processors_are_exclusive,
    "I-21": a_pod_covers_its_containers,
    "I-44": one_of_each_container,
    "I-45": phases_go_on,
    "I-47": changes_keep_to_limit_ranges,
    "I-48": events_tell_once,
}
LOOKED_AT: Mapping[str, tuple[str, ...]] = {
    "I-20": ("rt.cpuset",),
    "I-21": ("commit",),
    "I-44": ("rt.create",),
    "I-45": ("commit",),
    "I-47": ("commit",),
    "I-48": ("kl.judge",),
}
