"""The invariants that any run must keep, judged on its records alone.

Each is a function from a history to its violations; the ids and sentences are those of the catalogue in docs/histories.md.
An invariant that has nothing to look at in a run holds; ``report`` says how much there was to look at.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from elbowroom.api import quantity
from elbowroom.history import nodes, scheduling
from elbowroom.history.records import History, Record, Violation

Invariant = Callable[[History], Iterator[Violation]]
RESOURCES = ("cpu", "memory")


def commits(history: History) -> list[Record]:
    """The writes that became durable, in the order of their revisions.

    An API server that dies between a commit and its record leaves none; the next one tells the tail of its log again (verb
    ``recovered``), which counts where there is no record from the time. A store in memory begins anew with each life.
    """
    return [record for _, record in _commits_by_life(history)]


def _commits_by_life(history: History) -> list[tuple[int, Record]]:
    """``commits``, each with the number of the store's life that it was made in."""
    known: dict[tuple[int, int], Record] = {}
    life = 0
    for record in history.kinds("commit", "wal.recovered"):
        if record["kind"] == "wal.recovered":
            life += _forgets(record)
        elif record["verb"] == "recovered":
            known.setdefault((life, record["rev"]), record)
        else:
            known[life, record["rev"]] = record
    return [(place[0], known[place]) for place in sorted(known)]


def _forgets(recovered: Record) -> bool:
    """Did the API server begin with a store in memory, which knows nothing of what was before?"""
    return not recovered.get("durable", True)


# ---------------------------------------------------------------- node and resize


def allocations_fit(history: History) -> Iterator[Violation]:
    """I-01: what a node has allocated to its admitted, not ended pods never exceeds its allocatable.

    If allocatable was lowered afterwards, the sum may stay above it but must not grow. A kubelet that starts tells of all that it
    holds: an earlier life may have died between the write that dropped a pod and the word of its end.
    """
    held: dict[str, dict[str, Record]] = defaultdict(dict)
    inherited: dict[str, Mapping[str, int]] = {}

    def total(pods: Mapping[str, Record]) -> dict[str, int]:
        return {r: sum(record["vector"].get(r, 0) for record in pods.values()) for r in RESOURCES}

    for record in history.kinds("kl.alloc", "pod.end", "ckpt.loaded"):
        node, pods = record["node"], held[record["node"]]
        if record["kind"] == "pod.end":
            pods.pop(record["uid"], None)
            continue
        if record["kind"] == "ckpt.loaded":
            if record["key"] == "allocated_pods_state":
                inherited[node] = total(pods)
                pods.clear()
            continue
        before = total(pods)
        pods[record["uid"]] = record
        now = total(pods)
        for resource in RESOURCES:
            allocatable = record["allocatable"].get(resource)
            most = max(before[resource], inherited.get(node, {}).get(resource, 0))
            if allocatable is not None and now[resource] > allocatable and now[resource] > most:
                yield Violation(
                    "I-01",
                    f"{node} has {resource} {now[resource]} allocated of {allocatable} after {record['pod']}",
                    tuple(pods.values()),
                )


def _vector(containers: Mapping[str, Any]) -> dict[str, dict[str, dict[str, int]]]:
    """Container name -> requests/limits -> resource -> exact amount; absent and zero are the same."""
    return {
        name: {
            part: {r: amount for r in RESOURCES if (amount := _amount(r, (resources.get(part) or {}).get(r)))}
            for part in ("requests", "limits")
        }
        for name, resources in containers.items()
    }


def _amount(resource: str, text: str | None) -> int:
    if text is None:
        return 0
    return quantity.milli_of(text) if resource == "cpu" else quantity.value_of(text)


def layers_in_order(history: History) -> Iterator[Violation]:
    """I-03: desired, allocated, actuated: each allocated vector is a whole desired one of the same generation, each actuated
    value was allocated before, and it is recorded as actuated only after the runtime said so.

    A kubelet that comes back admits a pod with what it had allocated to it, which may be of an older generation (RC-91).
    """
    desired: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for record in commits(history):
        facts = record.get("obj") or {}
        if "containers" in facts:
            wanted = _vector(facts["containers"])
            known = desired[record["uid"], facts.get("generation", 0)]
            if wanted not in known:
                known.append(wanted)
    allocated: dict[str, list[Any]] = defaultdict(list)
    for record in history.kinds("kl.alloc", "kl.actuated"):
        vector = _vector(record["containers"])
        if record["kind"] == "kl.alloc":
            first = 1 if record["cause"] == "admitted" else record["gen"]
            choices = [v for gen in range(first, record["gen"] + 1) for v in desired.get((record["uid"], gen), ())]
            if choices and vector not in choices:
                yield Violation(
                    "I-03", f"{record['pod']} was allocated what no write of generation {record['gen']} asked", (record,)
                )
            allocated[record["uid"]].append(vector)
            continue
        for name, got in vector.items():
            for part in ("requests", "limits"):
                for resource, amount in got[part].items():
                    if allocated[record["uid"]] and not any(
                        amount == a.get(name, {}).get(part, {}).get(resource, 0) for a in allocated[record["uid"]]
                    ):
                        yield Violation(
                            "I-03", f"{record['pod']}/{name} actuated {part} {resource} {amount}, never allocated", (record,)
                        )
    yield from _actuated_after_update(history)


def _actuated_after_update(history: History) -> Iterator[Violation]:
    """The runtime's word first: an actuated limit differs from the container's last applied one only before any update."""
    applied: dict[tuple[str, str], set[int]] = defaultdict(set)
    for record in history.kinds("rt.create", "rt.update.end", "kl.actuated"):
        if record["kind"] == "kl.actuated":
            if record.get("cause") != "update":
                continue
            for name, got in _vector(record["containers"]).items():
                memory = got["limits"].get("memory")
                known = applied.get((record["uid"], name))
                if memory and known and memory not in known:
                    yield Violation(
                        "I-03", f"{record['pod']}/{name} actuated memory {memory} before the runtime applied it", (record,)
                    )
        elif record["kind"] == "rt.create" or record.get("ok"):
            applied[record["uid"], record["name"]].add(record["cfg"].get("memory_limit_bytes", 0))


def only_allocations_reach_the_runtime(history: History) -> Iterator[Violation]:
    """I-05: a refused or pending desire never reaches the runtime: every limit it is handed was allocated before."""
    allocated: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in history.kinds("kl.alloc", "rt.create", "rt.update.begin"):
        if record["kind"] == "kl.alloc":
            for name in record["containers"]:
                allocated[record["uid"], name].append(record)
            continue
        known = allocated.get((record["uid"], record["name"]))
        if not known:
            continue
        vectors = [_with_inherited(a, record["name"]) for a in known]
        given = record["cfg"].get("memory_limit_bytes", 0)
        if given > 0 and given not in {v["limits"].get("memory", 0) for v in vectors}:
            yield Violation(
                "I-05", f"{record['container']} was handed a memory limit of {given}, never allocated", (*known[-1:], record)
            )
        shares = record["cfg"].get("cpu_shares", 0)
        if shares > 0 and shares not in {shares_of(v["requests"].get("cpu", 0)) for v in vectors}:
            yield Violation("I-05", f"{record['container']} was handed {shares} cpu shares, never allocated", (*known[-1:], record))


def _with_inherited(allocation: Record, name: str) -> dict[str, dict[str, int]]:
    """A container's vector in an allocation, with the limits that it inherits from its pod where it has none (PL-26)."""
    own = _vector({name: allocation["containers"][name]})[name]
    level = _vector({"": allocation.get("level") or {}})[""]
    return {"requests": own["requests"], "limits": {**level["limits"], **own["limits"]}}


def shares_of(milli: int) -> int:
    """RC-120."""
    return 2 if milli == 0 else min(262144, max(2, milli * 1024 // 1000))


def allocation_survives(history: History) -> Iterator[Violation]:
    """I-07: what a kubelet reads at its start is what it had last made durable, or the write it died in."""
    durable: dict[tuple[str, str], Record] = {}
    begun: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in history.kinds("ckpt.tmp", "ckpt.dirsync", "ckpt.loaded"):
        place = (record["node"], record["key"])
        if record["kind"] == "ckpt.tmp":
            begun[place].append(record)
        elif record["kind"] == "ckpt.dirsync":
            durable[place] = record
            # A group of writes is announced before the first of them is durable.
            shas = [r["sha"] for r in begun[place]]
            begun[place] = begun[place][shas.index(record["sha"]) + 1 :] if record["sha"] in shas else []
        elif place in durable or begun[place]:
            allowed = {r["sha"] for r in begun[place]} | ({durable[place]["sha"]} if place in durable else {""})
            if record["sha"] not in allowed:
                last = (durable[place],) if place in durable else ()
                yield Violation("I-07", f"{record['node']} lost its {record['key']}", (*last, record))


# ---------------------------------------------------------------- scheduler and preemption


def victims_are_less_important(history: History) -> Iterator[Violation]:
    """I-22: no victim of equal or higher priority; none for ``preemptionPolicy: Never``; none against the node's policy."""
    for plan in history.kinds("sch.plan"):
        for victim in plan["victims"]:
            if victim["priority"] >= plan["priority"]:
                yield Violation(
                    "I-22", f"{victim['pod']} ({victim['priority']}) is no victim for {plan['pod']} ({plan['priority']})", (plan,)
                )
        if plan["victims"] and plan.get("preemption_policy") == "Never":
            yield Violation("I-22", f"{plan['pod']} never preempts", (plan,))
        if plan["victims"] and plan.get("resize") and plan.get("policy_disabled"):
            yield Violation("I-22", f"resize preemption is disabled on {plan['node']}", (plan,))


def victims_of_a_resize_are_neighbours(history: History) -> Iterator[Violation]:
    """I-23: the victims of a resize are on the pod's own node only."""
    for plan in history.kinds("sch.plan"):
        if plan.get("resize"):
            for victim in plan["victims"]:
                if victim["node"] != plan["pod_node"] or plan["node"] != plan["pod_node"]:
                    yield Violation("I-23", f"{victim['pod']} on {victim['node']} is no neighbour of {plan['pod']}", (plan,))


def resize_cycles_write_nothing(history: History) -> Iterator[Violation]:
    """I-30: the scheduler never binds a pod twice, and never writes nominatedNodeName or PodScheduled=False on a bound one;
    ``spec.nodeName`` does not change once it is set.

    Under the policy ``nominationTracking: nominatedNodeName`` a resize that preempts is nominated to its own node on purpose.
    """
    nominates = any(r.get("nominationTracking") == "nominatedNodeName" for r in history.kinds("sch.start"))
    last: dict[str, Record] = {}
    for record in commits(history):
        facts = record.get("obj") or {}
        if "node" not in facts:
            continue
        before = last.get(record["uid"])
        last[record["uid"]] = record
        if before is None:
            continue
        was = before["obj"]
        if was["node"] and facts["node"] != was["node"]:
            yield Violation("I-30", f"{record['key']} moved from {was['node']} to {facts['node']}", (before, record))
        if record["user"] == "system:kube-scheduler" and was["node"]:
            allowed = (was.get("nominated"), was["node"]) if nominates else (was.get("nominated"),)
            if facts.get("nominated") and facts["nominated"] not in allowed:
                yield Violation("I-30", f"{record['key']} is bound and was nominated to {facts['nominated']}", (before, record))
            if facts.get("scheduled") == "False" and was.get("scheduled") != "False":
                yield Violation("I-30", f"{record['key']} is bound and was called unscheduled", (before, record))


# ---------------------------------------------------------------- API, storage, watch


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


def watches_miss_nothing(history: History) -> Iterator[Violation]:
    """I-39: between the revision a stream began at and the last one it told, it told exactly the log's matching writes, in
    order and once."""
    writes: dict[tuple[int, str], list[Record]] = defaultdict(list)
    for life, record in _commits_by_life(history):
        writes[life, record["resource"]].append(record)
    streams: dict[tuple[str, int, int], list[Record]] = {}
    lives: dict[tuple[str, int, int], int] = {}
    life = 0
    for record in history.kinds("watch.open", "watch.initial", "watch.event", "watch.bookmark", "wal.recovered"):
        if record["kind"] == "wal.recovered":
            life += _forgets(record)
            continue
        stream = (record["proc"], record["inc"], record["id"])
        if record["kind"] == "watch.open":
            streams[stream] = [record]
        elif stream in streams:
            streams[stream].append(record)
            lives[stream] = life  # of the store that answers: a stream may be opened before that is there
    for stream, told in streams.items():
        yield from _stream(told, writes[lives.get(stream, 0), told[0]["resource"]])


def _stream(told: list[Record], writes: list[Record]) -> Iterator[Violation]:
    opened = told[0]
    start, last = opened["from"], opened["from"]
    events: list[Record] = []
    for record in told[1:]:
        if record["kind"] == "watch.initial":
            start = last = record["rev"]
        elif record["kind"] == "watch.event":
            if record["rev"] <= last:
                yield Violation("I-39", f"{opened['watch']}: revision {record['rev']} after {last}", (opened, record))
            last = max(last, record["rev"])
            events.append(record)
        else:
            last = max(last, record["rev"])
    if not start:
        return
    seen = {record["rev"] for record in events}
    wanted = [c for c in writes if start < c["rev"] <= last and _matches(opened, c)]
    missing = [c for c in wanted if c["rev"] not in seen]
    if missing:
        yield Violation("I-39", f"{opened['watch']} never heard of revision {missing[0]['rev']}", (opened, missing[0]))
    logged = {c["rev"] for c in wanted}
    invented = [e for e in events if e["rev"] not in logged]
    if invented and writes:
        yield Violation(
            "I-39", f"{opened['watch']} heard of revision {invented[0]['rev']}, which is no matching write", (invented[0],)
        )


def _matches(opened: Record, commit: Record) -> bool:
    namespace = opened.get("namespace")
    if namespace and not commit["key"].split("/", 1)[-1].startswith(f"{namespace}/"):
        return False
    for term in (opened.get("fields") or "").split(","):
        name, _, value = term.partition("=")
        if name == "spec.nodeName" and value not in ((commit.get("obj") or {}).get("node"), commit.get("old_node")):
            return False
        if name == "metadata.name" and commit["key"].rsplit("/", 1)[-1] != value:
            return False
    return True


def no_mixture(history: History) -> Iterator[Violation]:
    """I-04: an allocation is of one piece: what all containers of the pod were desired to have at one time."""
    desired: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    for record in commits(history):
        facts = record.get("obj") or {}
        if "containers" in facts:
            wanted = (facts.get("generation", 0), _vector(facts["containers"]))
            if wanted not in desired[record["uid"]]:
                desired[record["uid"]].append(wanted)
    for record in history.kinds("kl.alloc"):
        known = [vector for gen, vector in desired.get(record["uid"], ()) if gen <= record["gen"]]
        if known and _vector(record["containers"]) not in known:
            yield Violation("I-04", f"{record['pod']} was allocated what it never was to have as a whole", (record,))


INVARIANTS: Mapping[str, Invariant] = {
    "I-01": allocations_fit,
    "I-03": layers_in_order,
    "I-04": no_mixture,
    "I-05": only_allocations_reach_the_runtime,
    "I-07": allocation_survives,
    "I-22": victims_are_less_important,
    "I-23": victims_of_a_resize_are_neighbours,
    "I-30": resize_cycles_write_nothing,
    "I-34": acknowledged_writes_survive,
    "I-37": conditional_writes_form_a_chain,
    "I-38": revisions_rise,
    "I-39": watches_miss_nothing,
    **nodes.INVARIANTS,
    **scheduling.INVARIANTS,
}
