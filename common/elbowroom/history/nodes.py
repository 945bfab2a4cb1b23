"""What a node must keep while its pods are resized: kubelet and runtime, judged on their records.

A runtime that dies between a change and its record leaves none, so what was known of a node's containers is forgotten when its
runtime starts again (``rt.started``).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from elbowroom.history.reading import Invariant, amount_of, commits
from elbowroom.history.records import History, Record, Violation

PLACES = {"cpuset_cpus", "cpuset_mems"}
"""An update of these alone moves a container, and says nothing of its size."""
PAGE_BYTES = 4096
"""A cgroup holds whole ones of these."""
LOOP = 3
"""So many successful updates of a container with the same values for one allocation are a loop. Two can be right: memory first,
then a cpu request that rounds to the same shares."""


def only_the_own_kubelet_reports(history: History) -> Iterator[Violation]:
    """I-02: of all kubelets only the node's own writes a pod's status, and nobody else changes what is said to be allocated or in
    force. (A Node that no kubelet serves is anybody's who may write.)"""
    told: dict[str, Record] = {}
    served = {record["node"] for record in history.kinds("ckpt.loaded")}
    for record in commits(history):
        facts = record.get("obj") or {}
        if record["resource"] == "pods" and facts.get("figures") is not None:
            before = told.get(record["uid"])
            told[record["uid"]] = record
            own = record["user"] == f"system:node:{facts.get('node', '')}" or record["verb"] == "recovered"
            own = own or facts.get("node", "") not in served
            if before is not None and not own and facts["figures"] != before["obj"]["figures"]:
                yield Violation("I-02", f"{record['user']} changed what {record['key']} is said to have", (before, record))
        node = facts.get("node", "")
        by_kubelet = record["user"].startswith("system:node:") and record["resource"] == "pods" and record["sub"] == "status"
        if by_kubelet and record["user"] != f"system:node:{node}":
            yield Violation("I-02", f"{record['user']} wrote the status of {record['key']} on {node or 'no node'}", (record,))


def nothing_runs_twice(history: History) -> Iterator[Violation]:
    """I-08: over a kubelet's restart no running container is made anew, and pods are taken back before any resize is judged."""
    alive: dict[str, dict[tuple[str, str], Record]] = defaultdict(dict)
    admitted: dict[str, Record] = {}
    judged: dict[tuple[str, int], Record] = {}
    for record in history.kinds("rt.started", "rt.create", "rt.exit", "kl.alloc", "kl.judge", "pod.end"):
        kind, here = record["kind"], alive[record["node"]]
        life = (record["proc"], record["inc"])
        if kind == "rt.started":
            here.clear()
        elif kind == "rt.create":
            before = here.get((record["uid"], record["name"]))
            if before is not None:
                yield Violation("I-08", f"{record['container']} was made while {before['container']} was there", (before, record))
            here[record["uid"], record["name"]] = record
        elif kind == "rt.exit":
            known = here.get((record["uid"], record["name"]))
            if known is not None and known["container"] == record["container"]:
                del here[record["uid"], record["name"]]
        elif kind == "kl.judge":
            judged.setdefault(life, record)
        elif kind == "pod.end":
            admitted.pop(record["uid"], None)
        else:
            before = admitted.get(record["uid"])
            again = record["cause"] == "admitted" and before is not None and before["inc"] != record["inc"]
            if again and life in judged:
                yield Violation("I-08", f"{record['pod']} was taken back after a resize was judged", (judged[life], record))
            admitted[record["uid"]] = record


def infeasible_is_final(history: History) -> Iterator[Violation]:
    """I-12: what was called infeasible is not judged again until something else is desired, the node is another or the kubelet
    starts anew."""
    last: dict[tuple[str, int, str], Record] = {}
    for record in history.kinds("kl.judge"):
        place = (record["proc"], record["inc"], record["uid"])
        before = last.get(place)
        same = before is not None and all(before.get(fact) == record.get(fact) for fact in ("gen", "allocatable"))
        if before is not None and same and before["verdict"] == "Infeasible":
            yield Violation("I-12", f"{record['pod']} was infeasible and was judged again", (before, record))
        last[place] = record


def retries_keep_the_order(history: History) -> Iterator[Violation]:
    """I-13: a pass over a queue that was just put in order judges by that order: shrinking first, then priority, class, age; and a
    pass leaves nobody out: one that waits before it and after it was judged in it."""
    last: dict[str, Record] = {}
    judged: dict[tuple[str, int, str], Record] = {}
    for record in history.kinds("kl.judge", "kl.alloc", "pod.end"):
        place = (record["proc"], record["inc"], record["uid"])
        if record["kind"] != "kl.judge":
            judged.pop(place, None)
            continue
        before, latest = judged.get(place), last.get(record["proc"])
        judged[place] = last[record["proc"]] = record
        waited = before is not None and before["verdict"] == record["verdict"] == "Deferred" and before["gen"] == record["gen"]
        if before is not None and waited and record["pass"] > before["pass"] + 1:
            yield Violation("I-13", f"{record['pod']} waited and was left out of a pass", (before, record))
        if latest is None or record.get("rank") is None or latest.get("rank") is None:
            continue
        if (latest["inc"], latest["pass"]) == (record["inc"], record["pass"]) and latest["rank"] > record["rank"]:
            yield Violation("I-13", f"{latest['pod']} was judged before {record['pod']}", (latest, record))


def no_limit_below_the_usage(history: History) -> Iterator[Violation]:
    """I-14: before a container's memory limit is lowered, its usage was looked at for that very allocation and was below the new
    limit; what it truly uses is above it only if it rose after the look.

    The look comes once for all containers of a pod (RC-112), and each update takes as long as it takes, so how old it may be has no
    other bound than the allocation. Of an update in which the runtime died only its next life knows what came of it.
    """
    limits: dict[str, int | None] = {}
    begun: dict[str, dict[str, int]] = defaultdict(dict)  # of each runtime
    samples: dict[str, Record] = {}
    wanted: dict[tuple[str, str], tuple[int, int]] = {}
    used: dict[str, int] = defaultdict(int)  # at most, since the sample
    kinds = ("kl.alloc", "rt.cgroup", "rt.usage", "rt.update.begin", "rt.update.end", "rt.started")
    for place, record in enumerate(history.kinds(*kinds)):
        container = record.get("container")
        if record["kind"] == "rt.started":
            for each, limit in begun.pop(record["proc"], {}).items():
                limits[each] = min(limit, limits.get(each) or limit)
        elif record["kind"] == "kl.alloc":
            for name, given in record["containers"].items():
                limit = amount_of("memory", (given.get("limits") or {}).get("memory"))
                if wanted.get((record["uid"], name), (-1, 0))[0] != limit:
                    wanted[record["uid"], name] = (limit, place)
        elif container is None:
            continue
        elif record["kind"] == "rt.update.end":
            begun[record["proc"]].pop(container, None)
        elif record["kind"] == "rt.cgroup":
            limits[container] = record["limit"]["memory"]
        elif record["kind"] == "rt.usage":
            if record["sampled"]:
                samples[container] = {**record, "place": place}
                used[container] = 0
            used[container] = max(used[container], record["bytes"])
        elif container in limits:
            old, new = limits[container], record["cfg"].get("memory_limit_bytes", 0)
            if new > 0:
                begun[record["proc"]][container] = new
            if new <= 0 or (old is not None and old <= new):
                continue
            sample, (limit, since) = samples.get(container), wanted.get((record["uid"], record["name"]), (-1, 0))
            if sample is None or (limit == new and sample["place"] < since):
                yield Violation("I-14", f"{container} was limited to {new} without a look at its usage", (record,))
            elif sample["bytes"] >= new:
                yield Violation("I-14", f"{container} uses {sample['bytes']} and was limited to {new}", (sample, record))
            elif record.get("usage", 0) > max(new, used[container]):
                yield Violation(
                    "I-14", f"{container} used {record['usage']} all the time, and was limited to {new}", (sample, record)
                )


def containers_stay_within_their_pod(history: History) -> Iterator[Violation]:
    """I-15: while containers are updated, their memory limits together never exceed their pod's, and the pod's is lowered last.

    Pods with limits of their own are left out (what inherits them counts with all of it), and so are pods of which a container was
    started again: such a one gets its new limits before the pod's cgroup does (RC-103).
    """
    pods: dict[str, int | None] = {}
    containers: dict[str, dict[str, int | None]] = defaultdict(dict)
    # A kubelet that dies may tell of an allocation only in its next life, so all that is ever told counts.
    excused = {record["uid"] for record in history.kinds("kl.alloc") if record.get("level")}
    for record in history.kinds("rt.started", "rt.create", "rt.exit", "rt.cgroup", "rt.update.begin"):
        kind, uid = record["kind"], record.get("uid", "")
        if kind == "rt.started":
            excused |= {known for known in pods if known}
        elif kind == "rt.create":
            if record.get("attempt"):
                excused.add(uid)
        elif kind == "rt.exit":
            containers[uid].pop(record["container"], None)
        elif kind == "rt.cgroup":
            if "container" in record:
                containers[uid][record["container"]] = record["limit"]["memory"]
            else:
                before, pods[uid] = pods.get(uid), record["limit"]["memory"]
                lowered, total = pods[uid], sum(each for each in containers[uid].values() if each is not None)
                down = lowered is not None and (before is None or lowered < before)
                if uid not in excused and lowered is not None and down and total > lowered:
                    yield Violation("I-15", f"{record['pod']} is left {lowered}, its containers have {total} together", (record,))
        elif record["container"] in containers[uid]:  # not one of whose end its kubelet has not heard yet
            limit, new = pods.get(uid), record["cfg"].get("memory_limit_bytes", 0)
            new -= new % PAGE_BYTES  # as its cgroup will hold it
            after = {**containers[uid], **({record["container"]: new} if new > 0 else {})}
            total = sum(each for each in after.values() if each is not None)
            if uid not in excused and limit is not None and total > limit:
                yield Violation("I-15", f"the containers of {record['pod']} have {total} together, their pod {limit}", (record,))


def updates_end(history: History) -> Iterator[Violation]:
    """I-16: where nothing fails, no container is given the same values again and again for one allocation."""
    if next(history.kinds("fault.begin"), None) is not None:
        return
    lives: dict[str, set[int]] = defaultdict(set)
    for proc, inc in history.lives():
        lives[proc].add(inc)
    told: dict[str, list[Record]] = defaultdict(list)
    for record in history.kinds("kl.alloc", "rt.update.end"):
        if record["kind"] == "kl.alloc":
            told[record["uid"]].clear()
        elif (
            record["ok"]
            and record["cfg"].keys() - PLACES
            and len(lives[record["proc"]]) == len(lives[f"kubelet/{record['node']}"]) == 1
        ):
            known = told[record["uid"]]
            known.append(record)
            same = [r for r in known if (r["container"], r["cfg"]) == (record["container"], record["cfg"])]
            if len(same) >= LOOP:
                yield Violation("I-16", f"{record['container']} was given the same values {len(same)} times", tuple(same[-2:]))


def class_is_for_life(history: History) -> Iterator[Violation]:
    """I-17: a pod's class of service never changes."""
    first: dict[str, Record] = {}
    for record in history.kinds("commit"):
        qos = (record.get("obj") or {}).get("qos")
        if not qos:
            continue
        before = first.setdefault(record["uid"], record)
        if before["obj"]["qos"] != qos:
            yield Violation("I-17", f"{record['key']} was {before['obj']['qos']} and is {qos}", (before, record))


def restarts_are_counted(history: History) -> Iterator[Violation]:
    """I-18: each instance of a container counts one more than the one before, which has ended: by itself, or because a new
    allocation of its pod asked for it.

    Whose container is stopped though its pod stays, had a resource resized that wants a restart, or was given another image.
    """
    last: dict[str, dict[tuple[str, str], Record]] = defaultdict(dict)
    ended: dict[str, Record] = {}
    resized: set[str] = set()
    given: dict[str, Record] = {}
    for record in history.kinds("rt.started", "rt.create", "rt.exit", "kl.alloc"):
        here = last[record["node"]]
        if record["kind"] == "rt.started":
            here.clear()
            continue
        if record["kind"] == "kl.alloc":
            # A kubelet that died in the write of an allocation may take its pod back with it.
            first = given.setdefault(record["uid"], record)
            if record["cause"] != "admitted" or record["containers"] != first["containers"]:
                resized.add(record["uid"])
            continue
        if record["kind"] == "rt.exit":
            ended[record["container"]] = record
            continue
        before = here.get((record["uid"], record["name"]))
        here[record["uid"], record["name"]] = record
        if before is None:
            continue
        if record.get("attempt", 0) != before.get("attempt", 0) + 1:
            yield Violation("I-18", f"{record['container']} follows {before['container']}", (before, record))
        end = ended.get(before["container"])
        if end is None:
            yield Violation("I-18", f"{record['container']} was made before {before['container']} ended", (before, record))
        elif (
            end.get("stopped")
            and end.get("ran", True)
            and record["uid"] not in resized
            and record.get("image") == before.get("image")
        ):
            yield Violation("I-18", f"{before['container']} was stopped and made anew, and nothing was resized", (end, record))


def conditions_tell_verdicts(history: History) -> Iterator[Violation]:
    """I-19: a kubelet publishes PodResizePending only with a verdict that it reached, PodResizeInProgress for no future one;
    a condition that is the same keeps its time, and none outlives by more than one write what it told of. (Of times nothing is said
    in a run in which clocks jump.)
    """
    verdicts: dict[str, set[tuple[str, int]]] = defaultdict(set)
    solved: dict[str, dict[str, Record]] = defaultdict(dict)
    stale: dict[tuple[str, str], Record] = {}
    last: dict[str, Record] = {}
    anew: set[str] = set()  # pods whose resize in progress is another one, since something was allocated to them
    clocks_are_true = all(fault["name"] != "clock step" for fault in history.kinds("fault.begin"))
    for record in history.kinds(
        "kl.judge",
        "kl.alloc",
        "kl.actuated",
        "kl.resized",
        "kl.resize.failed",
        "rt.exit",
        "rt.update.begin",
        "ckpt.loaded",
        "commit",
    ):
        uid, kind = record.get("uid", ""), record["kind"]
        if kind == "ckpt.loaded":
            for one in [one for one, told in last.items() if told["obj"]["node"] == record["node"]]:
                del last[one]
            for known in solved.values():  # what an earlier life granted and could not write down is not granted
                if "PodResizePending" in known and known["PodResizePending"]["node"] == record["node"]:
                    del known["PodResizePending"]
            continue
        if kind == "kl.judge":
            verdicts[uid].add((record["verdict"], record["gen"]))
            if record["verdict"] == "Granted":
                solved[uid]["PodResizePending"] = record
            else:
                solved[uid].pop("PodResizePending", None)
            continue
        if kind == "kl.alloc":
            anew.add(uid)
        if kind in ("kl.alloc", "kl.actuated", "kl.resize.failed", "rt.exit", "rt.update.begin"):  # something is to be done again
            solved[uid].pop("PodResizeInProgress", None)
            continue
        if kind == "kl.resized":
            solved[uid]["PodResizeInProgress"] = record
            continue
        facts = record.get("obj") or {}
        if record["sub"] != "status" or not record["user"].startswith("system:node:") or "resize" not in facts:
            continue
        before, last[uid] = last.get(uid), record
        pending = facts["resize"].get("PodResizePending")
        if pending is not None and tuple(pending) not in verdicts[uid]:
            yield Violation(
                "I-19", f"{record['key']} is called {pending[0]} for generation {pending[1]}, never judged so", (record,)
            )
        progress = facts["resize"].get("PodResizeInProgress")
        if progress is not None and progress[1] > facts["generation"]:
            yield Violation("I-19", f"{record['key']} resizes to generation {progress[1]}, which is to come", (record,))
        for condition in facts["resize"]:
            over = solved[uid].get(condition)
            once = stale.get((uid, condition))
            if over is None or over["gen"] < facts["resize"][condition][1]:
                stale.pop((uid, condition), None)
            elif once is not None and once["proc"] == over["proc"] and once["at"] == over["seq"]:
                yield Violation("I-19", f"{record['key']} still says {condition}, which is over", (over, once, record))
            else:
                stale[uid, condition] = {**record, "proc": over["proc"], "at": over["seq"]}
        if clocks_are_true:
            yield from _times_are_kept(before, record, anew)


def _times_are_kept(before: Record | None, record: Record, anew: set[str]) -> Iterator[Violation]:
    if before is None:
        return
    was, now = before["obj"].get("since") or {}, record["obj"].get("since") or {}
    for condition in now:
        same = before["obj"]["resize"].get(condition) == record["obj"]["resize"].get(condition)
        if condition in was and now[condition] < was[condition]:
            yield Violation(
                "I-19", f"{condition} of {record['key']} came at {now[condition]}, before it was there", (before, record)
            )
        elif condition in was and same and now[condition] != was[condition]:
            if condition == "PodResizeInProgress" and record["uid"] in anew:
                anew.discard(record["uid"])  # a new allocation replaces it, of the same generation too (RC-132)
                continue
            yield Violation("I-19", f"{condition} of {record['key']} has another time, though nothing changed", (before, record))


INVARIANTS: Mapping[str, Invariant] = {
    "I-02": only_the_own_kubelet_reports,
    "I-08": nothing_runs_twice,
    "I-12": infeasible_is_final,
    "I-13": retries_keep_the_order,
    "I-14": no_limit_below_the_usage,
    "I-15": containers_stay_within_their_pod,
    "I-16": updates_end,
    "I-17": class_is_for_life,
    "I-18": restarts_are_counted,
    "I-19": conditions_tell_verdicts,
}
LOOKED_AT: Mapping[str, tuple[str, ...]] = {
    "I-02": ("commit",),
    "I-08": ("rt.create",),
    "I-12": ("kl.judge",),
    "I-13": ("kl.judge",),
    "I-14": ("rt.update.begin",),
    "I-15": ("rt.update.begin",),
    "I-16": ("rt.update.end",),
    "I-17": ("commit",),
    "I-18": ("rt.create",),
    "I-19": ("commit",),
}
