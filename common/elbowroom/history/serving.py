"""What the API server promises of writes and reads: durable, whole or not at all, in one order that agrees with real time."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from elbowroom.history.linearizability import Operation, is_linearizable, windows
from elbowroom.history.reading import ENDED, RESOURCES, Invariant, amount_of, commits, commits_by_life, figure_of, forgets
from elbowroom.history.records import History, Record, Violation

ALREADY_EXISTS = 409


def acknowledged_writes_survive(history: History) -> Iterator[Violation]:
    """I-34: every acknowledged write is in the log, and every later incarnation recovers at least to it."""
    logged = {record["rev"] for record in commits(history)}
    highest: Record | None = None
    for record in history.kinds("api.ok", "wal.recovered"):
        if record["kind"] == "api.ok":
            rev = record.get("rev", 0)
            if not rev or not record.get("write", True):
                continue
            if rev not in logged:
                yield Violation("I-34", f"revision {rev} was acknowledged but never committed", (record,))
            if highest is None or rev > highest["rev"]:
                highest = record
        elif record.get("durable", True) and highest is not None and record["revision"] < highest["rev"]:
            yield Violation(
                "I-34",
                f"revision {highest['rev']} was acknowledged, the store came back at {record['revision']}",
                (highest, record),
            )


def conditional_writes_form_a_chain(history: History) -> Iterator[Violation]:
    """I-37: a write that named the revision it was based on replaced exactly that one."""
    current: dict[str, Record] = {}
    for record in commits(history):
        before = current.get(record["key"])
        base = record.get("base", 0)
        if base and before is not None and before["rev"] != base:
            yield Violation("I-37", f"{record['key']}: based on {base}, replaced {before['rev']}", (before, record))
        if record.get("gone"):
            current.pop(record["key"], None)
        else:
            current[record["key"]] = record


def revisions_rise(history: History) -> Iterator[Violation]:
    """I-38: revisions strictly increase and are never reused, over restarts too."""
    last: Record | None = None
    for record in history.kinds("commit", "wal.recovered"):
        if record["kind"] == "wal.recovered":
            if not record.get("durable", True):
                last = None  # a memory store begins anew, and says so
            continue
        if record["verb"] == "recovered":
            continue
        if last is not None and record["rev"] <= last["rev"]:
            yield Violation("I-38", f"revision {record['rev']} after {last['rev']}", (last, record))
        last = record


def writes_are_whole(history: History) -> Iterator[Violation]:
    """I-35: what certainly failed is not in the log, and a create that was asked for again never makes a second object."""
    current: dict[str, Record] = {}
    creates: dict[str, list[Record]] = defaultdict(list)
    of = 0
    for life, record in commits_by_life(history):
        if life != of:  # the store began anew, with nothing in it
            of = life
            current.clear()
        before = current.get(record["key"])
        if record["verb"] == "create" and not record["sub"] and not record.get("gone"):
            if before is not None and before["uid"] != record["uid"]:
                yield Violation("I-35", f"{record['key']} was made again though it was there", (before, record))
            creates[record["key"]].append(record)
        if record.get("gone"):
            current.pop(record["key"], None)
        else:
            current[record["key"]] = record
    asked: dict[tuple[str, int, str], Record] = {}
    askers: dict[str, list[Record]] = defaultdict(list)
    for record in history.kinds("api.invoke", "api.fail"):
        if record["verb"] != "create" or record.get("sub"):
            continue
        op = (record["proc"], record["inc"], record["op"])
        if record["kind"] == "api.invoke":
            asked[op] = record
            askers[_key(record)].append(record)
        elif op in asked and record.get("status") != ALREADY_EXISTS:
            begun, key = asked[op], _key(record)
            inside = [c for c in creates[key] if begun["mono_ns"] <= c["mono_ns"] <= record["mono_ns"]]
            if inside and len(askers[key]) == 1:
                yield Violation("I-35", f"the create of {key} certainly failed and is in the log", (begun, inside[0], record))


def _key(record: Record) -> str:
    """``nodes/n1`` of ``nodes//n1``: as commits name an object."""
    return str(record["key"]).replace("//", "/")


class _Answered(NamedTuple):
    """A request of a client and its answer."""

    begun: Record
    ended: Record
    key: str
    commit: Record | None
    """What it wrote; None if it read, or changed nothing. (Of two that overlap, one of which changed nothing, either may be it.)"""


def _answered(history: History) -> Iterator[_Answered]:
    written = {record["rev"]: record for record in commits(history)}
    asked: dict[tuple[str, int, str], Record] = {}
    claimed: set[int] = set()
    for record in history.kinds("api.invoke", "api.ok"):
        op = (record["proc"], record["inc"], record["op"])
        if record["kind"] == "api.invoke":
            asked[op] = record
        elif op in asked and record.get("rev"):
            key, commit = _key(record), written.get(record["rev"])
            its = record["write"] and commit is not None and commit["key"] == key and commit["mono_ns"] >= asked[op]["mono_ns"]
            its = its and record["rev"] not in claimed
            if its:
                claimed.add(record["rev"])
            yield _Answered(asked[op], record, key, commit if its else None)


def answers_agree_with_time(history: History) -> Iterator[Violation]:
    """I-36: writes take effect between their request and their answer, in the order of their revisions, and no answer is older than
    what was there when it was asked for, or newer than the log.

    Two judges: sweeps over all of it, and a search for an order in short windows of each object whose writes all have their time.
    """
    if history.count("wal.recovered", forgets) > 1:
        return
    everything = commits(history)
    log = [record for record in everything if record["verb"] != "recovered"]
    for before, after in pairwise(log):
        if after["mono_ns"] < before["mono_ns"]:
            yield Violation("I-36", f"revision {after['rev']} was there before {before['rev']}", (before, after))
    by_key: dict[str, list[Record]] = defaultdict(list)
    by_resource: dict[str, list[Record]] = defaultdict(list)
    for record in log:
        by_key[record["key"]].append(record)
        by_resource[record["resource"]].append(record)
    written = {record["rev"]: record for record in log}
    answered = list(_answered(history))
    for one in answered:
        if one.commit is not None:
            if one.commit["verb"] != "recovered" and one.commit["mono_ns"] > one.ended["mono_ns"]:
                yield Violation("I-36", f"the write of {one.key} was answered before it happened", (one.ended, one.commit))
            continue
        mine: Sequence[Record] = by_key.get(one.key, ())
        if one.begun["verb"] == "list":
            # One that asks for a certain state, or goes on with one, is not to be as new as it can.
            newest = not (one.begun.get("exact") or one.ended.get("after"))
            mine = by_resource.get(one.key.partition("/")[0], ()) if newest else ()
        place = bisect_right(mine, one.ended["rev"], key=_revision)
        if place < len(mine) and mine[place]["mono_ns"] < one.begun["mono_ns"]:
            yield Violation(
                "I-36", f"{one.key} was read at {one.ended['rev']}, which is stale", (mine[place], one.begun, one.ended)
            )
        future = written.get(one.ended["rev"])
        if future is not None and future["mono_ns"] > one.ended["mono_ns"]:
            yield Violation("I-36", f"{one.key} was read at a revision to come", (one.ended, future))
    timeless = {record["key"] for record in everything if record["verb"] == "recovered"}
    yield from _searched([one for one in answered if one.key not in timeless], by_key)


def _revision(record: Record) -> int:
    return int(record["rev"])


def _searched(answered: list[_Answered], by_key: Mapping[str, list[Record]]) -> Iterator[Violation]:
    """The second judge: the answers about one object beside what others wrote to it."""
    of_key: dict[str, list[_Answered]] = defaultdict(list)
    for one in answered:
        if one.key in by_key:
            of_key[one.key].append(one)
    for key, mine in of_key.items():
        own = {one.commit["rev"] for one in mine if one.commit is not None}
        operations = [
            Operation(one.begun["mono_ns"], one.ended["mono_ns"], one.ended["rev"], writes=one.commit is not None) for one in mine
        ]
        others = [c for c in by_key[key] if c["rev"] not in own]
        operations += [Operation(c["mono_ns"], c["mono_ns"], c["rev"], writes=True) for c in others]
        for window in windows(operations):
            if not is_linearizable(window):
                first = next(one for one in mine if one.begun["mono_ns"] >= window[0].begun)
                yield Violation("I-36", f"no order explains the answers about {key}", (first.begun, first.ended))


def quotas_are_kept(history: History) -> Iterator[Violation]:
    """I-46: no accepted write of a user brings a namespace's pods above a quota that is there; a kubelet's status may. (A quota is
    there once its controller has counted: before, upstream's admission knows no hard limit of it. Its charge does not look at what
    a kubelet says of a pod as a whole, which is more for a moment where the pod's cgroup comes down last.)"""
    pods: dict[str, Record] = {}
    quotas: dict[str, Record] = {}
    counted_once: set[str] = set()
    for record in commits(history):
        space = record["key"].split("/")[1] if record["key"].count("/") == 2 else ""
        if record["resource"] == "resourcequotas":
            _keep(quotas, record["key"], record)
            if record["sub"] == "status":
                counted_once.add(record["uid"])
        if record["resource"] != "pods":
            continue
        before = pods.get(record["uid"])
        _keep(pods, record["uid"], record)
        grew = record["sub"] == "resize" or (record["verb"] == "create" and not record["sub"])
        if record.get("gone") or not grew or record["user"].startswith("system:"):
            continue
        bounds = [quota for key, quota in quotas.items() if key.split("/")[1] == space and quota["obj"].get("hard")]
        bounds = [quota for quota in bounds if quota["uid"] in counted_once]
        if not bounds:
            continue
        counted = [pod for pod in pods.values() if pod["key"].split("/")[1] == space and pod["obj"]["phase"] not in ENDED]
        for quota in bounds:
            for resource in RESOURCES:
                hard, more = quota["obj"]["hard"].get(f"requests.{resource}"), _charged(record, resource)
                figures = [_charged(pod, resource) for pod in counted]
                if hard is None or more is None or None in figures:
                    continue
                used, less = sum(f for f in figures if f is not None), _charged(before, resource) if before is not None else 0
                if used > amount_of(resource, hard) and more > (less or 0):
                    yield Violation("I-46", f"{record['key']} brings {space} to {used} {resource} of {hard}", (quota, record))


def _charged(commit: Record, resource: str) -> int | None:
    return figure_of(commit, resource, as_a_whole=False)


def _keep(known: dict[str, Record], place: str, record: Record) -> None:
    if record.get("gone"):
        known.pop(place, None)
    else:
        known[place] = record


def kubelets_write_their_own(history: History) -> Iterator[Violation]:
    """I-49: a kubelet's writes touch only its own node: its Node, its Lease, its pods and events; never a pod's spec. It creates no
    pod but the mirrors of its own, which are named after the node."""
    node_of: dict[str, str] = {}
    for record in commits(history):
        if record["resource"] == "pods":
            node_of[record["uid"]] = record["obj"].get("node") or node_of.get(record["uid"], "")
        if not record["user"].startswith("system:node:"):
            continue
        node, name = record["user"].removeprefix("system:node:"), record["key"].rsplit("/", 1)[-1]
        match record["resource"]:
            case "pods":
                mirrored = record["verb"] == "create" and not record["sub"] and name.endswith(f"-{node.lower()}")
                fine = node_of[record["uid"]] == node and (record["sub"] == "status" or record["verb"] == "delete" or mirrored)
            case "nodes" | "leases.coordination.k8s.io":
                fine = name == node
            case resource:
                fine = resource in ("events", "events.events.k8s.io")
        if not fine:
            sub = f"/{record['sub']}" if record["sub"] else ""
            yield Violation("I-49", f"{record['user']} did {record['verb']}{sub} on {record['key']}", (record,))


INVARIANTS: Mapping[str, Invariant] = {
    "I-34": acknowledged_writes_survive,
    "I-35": writes_are_whole,
    "I-36": answers_agree_with_time,
    "I-37": conditional_writes_form_a_chain,
    "I-38": revisions_rise,
    "I-46": quotas_are_kept,
    "I-49": kubelets_write_their_own,
}
LOOKED_AT: Mapping[str, tuple[str, ...]] = {
    "I-34": ("api.ok",),
    "I-35": ("api.invoke", "commit"),
    "I-36": ("api.ok",),
    "I-37": ("commit",),
    "I-38": ("commit",),
    "I-46": ("commit",),
    "I-49": ("commit",),
}
