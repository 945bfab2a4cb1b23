"""What a node must keep while its pods are resized: kubelet and runtime, judged on their records.

A runtime that dies between a change and its record leaves none, so what was known of a node's containers is forgotten when its
runtime starts again (``rt.started``).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from elbowroom.history.records import History, Record, Violation

Invariant = Callable[[History], Iterator[Violation]]
LOOP = 3
"""So many successful updates of a container with the same values for one allocation are a loop. Two can be right: memory first,
then a cpu request that rounds to the same shares."""


def only_the_own_kubelet_reports(history: History) -> Iterator[Violation]:
    """I-02: of all kubelets only the node's own writes a pod's status."""
    for record in history.kinds("commit"):
        node = (record.get("obj") or {}).get("node", "")
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
    """I-13: a pass over a queue that was just put in order judges by that order: shrinking first, then priority, class, age."""
    last: dict[str, Record] = {}
    for record in history.kinds("kl.judge"):
        before = last.get(record["proc"])
        last[record["proc"]] = record
        if before is None or record.get("rank") is None or before.get("rank") is None:
            continue
        if (before["inc"], before["pass"]) == (record["inc"], record["pass"]) and before["rank"] > record["rank"]:
            yield Violation("I-13", f"{before['pod']} was judged before {record['pod']}", (before, record))


def no_limit_below_the_usage(history: History) -> Iterator[Violation]:
    """I-14: before a container's memory limit is lowered, its usage was looked at and was below the new limit."""
    limits: dict[str, int | None] = {}
    samples: dict[str, Record] = {}
    for record in history.kinds("rt.cgroup", "rt.usage", "rt.update.begin"):
        container = record.get("container")
        if container is None:
            continue
        if record["kind"] == "rt.cgroup":
            limits[container] = record["limit"]["memory"]
        elif record["kind"] == "rt.usage":
            if record["sampled"]:
                samples[container] = record
        elif container in limits:
            old, new = limits[container], record["cfg"].get("memory_limit_bytes", 0)
            if new <= 0 or (old is not None and old <= new):
                continue
            sample = samples.get(container)
            if sample is None:
                yield Violation("I-14", f"{container} was limited to {new} without a look at its usage", (record,))
            elif sample["bytes"] >= new:
                yield Violation("I-14", f"{container} uses {sample['bytes']} and was limited to {new}", (sample, record))


def containers_stay_within_their_pod(history: History) -> Iterator[Violation]:
    """I-15: while containers are updated, their memory limits together never exceed their pod's.

    Pods with limits of their own are left out (what inherits them counts with all of it), and so are pods of which a container was
    started again: such a one gets its new limits before the pod's cgroup does (RC-103).
    """
    pods: dict[str, int | None] = {}
    containers: dict[str, dict[str, int | None]] = defaultdict(dict)
    excused: set[str] = set()
    for record in history.kinds("kl.alloc", "rt.started", "rt.create", "rt.exit", "rt.cgroup", "rt.update.begin"):
        kind, uid = record["kind"], record.get("uid", "")
        if kind == "rt.started":
            excused |= {known for known in pods if known}
        elif kind == "kl.alloc":
            if record.get("level"):
                excused.add(uid)
        elif kind == "rt.create":
            if record.get("attempt"):
                excused.add(uid)
        elif kind == "rt.exit":
            containers[uid].pop(record["container"], None)
        elif kind == "rt.cgroup":
            if "container" in record:
                containers[uid][record["container"]] = record["limit"]["memory"]
            else:
                pods[uid] = record["limit"]["memory"]
        else:
            limit, new = pods.get(uid), record["cfg"].get("memory_limit_bytes", 0)
            after = {**containers[uid], **({record["container"]: new} if new > 0 else {})}
            total = sum(each for each in after.values() if each is not None)
            if uid not in excused and limit is not None and total > limit:
                yield Violation("I-15", f"the containers of {record['pod']} have {total} together, their pod {limit}", (record,))


def updates_end(history: History) -> Iterator[Violation]:
    """I-16: where nothing fails, no container is given the same values again and again for one allocation."""
    if next(history.kinds("fault.begin"), None) is not None:
        return
    lives: dict[str, set[int]] = defaultdict(set)
    for record in history.records:
        lives[record.get("proc", "")].add(record.get("inc", 0))
    told: dict[str, list[Record]] = defaultdict(list)
    for record in history.kinds("kl.alloc", "rt.update.end"):
        if record["kind"] == "kl.alloc":
            told[record["uid"]].clear()
        elif record["ok"] and len(lives[record["proc"]]) == len(lives[f"kubelet/{record['node']}"]) == 1:
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
    """I-18: each instance of a container counts one more than the one before, which has ended."""
    last: dict[str, dict[tuple[str, str], Record]] = defaultdict(dict)
    for record in history.kinds("rt.started", "rt.create"):
        here = last[record["node"]]
        if record["kind"] == "rt.started":
            here.clear()
            continue
        before = here.get((record["uid"], record["name"]))
        if before is not None and record.get("attempt", 0) != before.get("attempt", 0) + 1:
            yield Violation("I-18", f"{record['container']} follows {before['container']}", (before, record))
        here[record["uid"], record["name"]] = record


def conditions_tell_verdicts(history: History) -> Iterator[Violation]:
    """I-19: a kubelet publishes PodResizePending only with a verdict that it reached, and PodResizeInProgress for no generation
    that is to come."""
    verdicts: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for record in history.kinds("kl.judge", "commit"):
        uid = record.get("uid", "")
        if record["kind"] == "kl.judge":
            verdicts[uid].add((record["verdict"], record["gen"]))
            continue
        facts = record.get("obj") or {}
        if record["sub"] != "status" or not record["user"].startswith("system:node:") or "resize" not in facts:
            continue
        pending = facts["resize"].get("PodResizePending")
        if pending is not None and tuple(pending) not in verdicts[uid]:
            yield Violation(
                "I-19", f"{record['key']} is called {pending[0]} for generation {pending[1]}, never judged so", (record,)
            )
        progress = facts["resize"].get("PodResizeInProgress")
        if progress is not None and progress[1] > facts["generation"]:
            yield Violation("I-19", f"{record['key']} resizes to generation {progress[1]}, which is to come", (record,))


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
