"""The invariants that any run must keep, judged on its records alone.

Each is a function from a history to its violations; the ids and sentences are those of the catalogue in docs/histories.md.
An invariant that has nothing to look at in a run holds; ``report`` says how much there was to look at.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from elbowroom.history import bounds, nodes, paging, pods, progress, scheduling, serving, watching
from elbowroom.history.reading import PARTS, RESOURCES, Invariant, commits, forgets, shares_of, vector_of
from elbowroom.history.records import History, Record, Violation

# ---------------------------------------------------------------- node and resize


def allocations_fit(history: History) -> Iterator[Violation]:
    """I-01: what a node has allocated to its admitted, not ended pods never exceeds its allocatable.

    If allocatable was lowered afterwards, the sum may stay above it but must not grow. A kubelet that starts tells of all that it
    holds: an earlier life may have died between the write that dropped a pod and the word of its end, or between a grant that
    fitted then and the word of it.
    """
    held: dict[str, dict[str, Record]] = defaultdict(dict)
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    inherited: dict[str, Mapping[str, int]] = {}
    granted: dict[str, dict[str, int]] = {}
    for record in history.kinds("kl.judge", "kl.alloc", "pod.end", "ckpt.loaded"):
        node, pods, now = record["node"], held[record["node"]], totals[record["node"]]
        if record["kind"] == "kl.judge":
            if record["verdict"] == "Granted" and record.get("wanted"):
                granted[node] = _grant(record)
            continue
        if record["kind"] == "ckpt.loaded":
            if record["key"] == "allocated_pods_state":
                untold = granted.pop(node, {})
                inherited[node] = {each: max(now.get(each, 0), untold.get(each, 0)) for each in RESOURCES}
                pods.clear()
                now.clear()
            continue
        before = dict(now)
        last = pods.pop(record["uid"], None)
        if last is not None:
            now.subtract(last["vector"])
        if record["kind"] == "pod.end":
            continue
        granted.pop(node, None)
        pods[record["uid"]] = record
        now.update(record["vector"])
        for resource in RESOURCES:
            allocatable = record["allocatable"].get(resource)
            most = max(before.get(resource, 0), inherited.get(node, {}).get(resource, 0))
            if allocatable is not None and now[resource] > allocatable and now[resource] > most:
                yield Violation(
                    "I-01",
                    f"{node} has {resource} {now[resource]} allocated of {allocatable} after {record['pod']}",
                    tuple(pods.values()),
                )


def _grant(judged: Record) -> dict[str, int]:
    """What the node has allocated after that grant, of what fitted when it was judged."""
    sums = {each: judged["used"].get(each, 0) + judged["wanted"].get(each, 0) for each in RESOURCES}
    return {each: total for each, total in sums.items() if total <= judged["allocatable"].get(each, total)}


def layers_in_order(history: History) -> Iterator[Violation]:
    """I-03: desired, allocated, actuated: each allocated vector is a whole desired one of the same generation, each actuated
    value was allocated before, and it is recorded as actuated only after the runtime said so.

    A kubelet that comes back admits a pod with what it had allocated to it, which may be of an older generation (RC-91).
    """
    desired: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for record in commits(history):
        facts = record.get("obj") or {}
        if "containers" in facts:
            wanted = vector_of(facts["containers"])
            known = desired[record["uid"], facts.get("generation", 0)]
            if wanted not in known:
                known.append(wanted)
    allocated: dict[str, set[tuple[str, str, str, int]]] = defaultdict(set)
    for record in history.kinds("kl.alloc", "kl.actuated"):
        vector, uid = vector_of(record["containers"]), record["uid"]
        parts = {(name, part, r, got[part].get(r, 0)) for name, got in vector.items() for part in PARTS for r in RESOURCES}
        if record["kind"] == "kl.alloc":
            # Newest first: it is nearly always the one.
            first = 1 if record["cause"] == "admitted" else record["gen"]
            choices = [desired[uid, gen] for gen in range(record["gen"], first - 1, -1) if (uid, gen) in desired]
            if choices and not any(vector in vectors for vectors in choices):
                yield Violation(
                    "I-03", f"{record['pod']} was allocated what no write of generation {record['gen']} asked", (record,)
                )
            allocated[uid] |= parts
        elif allocated[uid]:
            for name, part, resource, amount in sorted(parts - allocated[uid]):
                if amount:
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
            for name, got in vector_of(record["containers"]).items():
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
    allocated: dict[tuple[str, str], Record] = {}
    limits: dict[tuple[str, str], set[int]] = defaultdict(set)
    weights: dict[tuple[str, str], set[int]] = defaultdict(set)
    for record in history.kinds("kl.alloc", "rt.create", "rt.update.begin"):
        if record["kind"] == "kl.alloc":
            for name in record["containers"]:
                place, vector = (record["uid"], name), _with_inherited(record, name)
                allocated[place] = record
                limits[place].add(vector["limits"].get("memory", 0))
                weights[place].add(shares_of(vector["requests"].get("cpu", 0)))
            continue
        place = (record["uid"], record["name"])
        last = allocated.get(place)
        if last is None:
            continue
        given = record["cfg"].get("memory_limit_bytes", 0)
        if given > 0 and given not in limits[place]:
            yield Violation("I-05", f"{record['container']} was handed a memory limit of {given}, never allocated", (last, record))
        shares = record["cfg"].get("cpu_shares", 0)
        if shares > 0 and shares not in weights[place]:
            yield Violation("I-05", f"{record['container']} was handed {shares} cpu shares, never allocated", (last, record))


def _with_inherited(allocation: Record, name: str) -> dict[str, dict[str, int]]:
    """A container's vector in an allocation, with the limits that it inherits from its pod where it has none (PL-26)."""
    own = vector_of({name: allocation["containers"][name]})[name]
    level = vector_of({"": allocation.get("level") or {}})[""]
    return {"requests": own["requests"], "limits": {**level["limits"], **own["limits"]}}


def allocation_survives(history: History) -> Iterator[Violation]:
    """I-07: what a kubelet reads at its start is what it had last made durable on that machine, or the write it died in."""
    durable: dict[tuple[str, str], Record] = {}
    begun: dict[tuple[str, str], list[Record]] = defaultdict(list)
    since: dict[str, int] = {}
    """Node -> the life that began on a machine where it had kept nothing; an earlier one may go on elsewhere."""
    gone: dict[str, None] = {}
    """Nodes that were deleted, or whose store forgot them: their disks go with them, sooner or later."""
    for record in history.kinds("ckpt.tmp", "ckpt.dirsync", "ckpt.loaded", "disk.new", "commit", "wal.recovered"):
        if record["kind"] == "commit":
            if record.get("gone") and record["resource"] == "nodes":
                gone[record["key"].partition("/")[2]] = None
            continue
        if record["kind"] == "wal.recovered":
            gone.update(dict.fromkeys(node for node, _ in (*durable, *begun) if forgets(record)))
            continue
        if not record["proc"].startswith("kubelet/"):
            continue  # a runtime's disk
        is_first = record["kind"] == "ckpt.loaded" and not record["sha"] and record["node"] in gone
        if record["kind"] == "disk.new" or is_first:
            gone.pop(record["node"], None)
            since[record["node"]] = record["inc"]
            for known in [known for known in (*durable, *begun) if known[0] == record["node"]]:
                durable.pop(known, None)
                begun.pop(known, None)
            continue
        if record["inc"] < since.get(record["node"], 0):
            continue
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
    """I-23: the victims of a resize are on the pod's own node only, but for those whose group goes with a pod that is (SC-96)."""
    for plan in history.kinds("sch.plan"):
        if plan.get("resize"):
            taken_along = {victim.get("group") for victim in plan["victims"] if victim["node"] == plan["pod_node"]} - {None}
            for victim in plan["victims"]:
                is_near = victim["node"] == plan["pod_node"] or victim.get("group") in taken_along
                if not is_near or plan["node"] != plan["pod_node"]:
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


def no_mixture(history: History) -> Iterator[Violation]:
    """I-04: an allocation is of one piece: what all containers of the pod were desired to have at one time."""
    since: dict[str, dict[Any, int]] = defaultdict(dict)  # of each whole the first generation that desired it
    earliest: dict[str, int] = {}
    for record in commits(history):
        facts = record.get("obj") or {}
        if "containers" in facts:
            first, whole, generation = since[record["uid"]], _whole(facts["containers"]), int(facts.get("generation", 0))
            first[whole] = min(first.get(whole, generation), generation)
            earliest[record["uid"]] = min(earliest.get(record["uid"], generation), generation)
    for record in history.kinds("kl.alloc"):
        known = since.get(record["uid"], {})
        if earliest.get(record["uid"], record["gen"] + 1) > record["gen"]:
            continue
        if known.get(_whole(record["containers"]), record["gen"] + 1) > record["gen"]:
            yield Violation("I-04", f"{record['pod']} was allocated what it never was to have as a whole", (record,))


def _whole(containers: Mapping[str, Any]) -> Any:
    """A vector as one value."""
    vectors = vector_of(containers)
    return tuple((name, tuple(sorted(got[part].items()))) for name, got in sorted(vectors.items()) for part in PARTS)


INVARIANTS: Mapping[str, Invariant] = {
    "I-01": allocations_fit,
    "I-03": layers_in_order,
    "I-04": no_mixture,
    "I-05": only_allocations_reach_the_runtime,
    "I-07": allocation_survives,
    "I-22": victims_are_less_important,
    "I-23": victims_of_a_resize_are_neighbours,
    "I-30": resize_cycles_write_nothing,
    **nodes.INVARIANTS,
    **progress.INVARIANTS,
    **pods.INVARIANTS,
    **scheduling.INVARIANTS,
    **serving.INVARIANTS,
    **watching.INVARIANTS,
    **paging.INVARIANTS,
    **bounds.INVARIANTS,
}
