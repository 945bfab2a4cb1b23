"""A record in words, for a reader who was not there."""

from collections.abc import Callable, Mapping
from typing import Any

from elbowroom.api import quantity
from elbowroom.history.records import Record

RESOURCES = ("cpu", "memory")


def amount(resource: str, value: int) -> str:
    """``250m`` of ``cpu``, ``1Gi`` of ``memory``."""
    return quantity.format_milli(value) if resource == "cpu" else quantity.format_bytes(value)


def vector(values: Mapping[str, int]) -> str:
    """``cpu 250m, memory 1Gi``; what is absent is left out."""
    return ", ".join(f"{resource} {amount(resource, values[resource])}" for resource in RESOURCES if resource in values)


def containers(resources: Mapping[str, Any]) -> str:
    """``main: requests cpu 250m, memory 1Gi; limits memory 1Gi``, of each container."""
    return " | ".join(f"{name}: {_requirements(said)}" for name, said in resources.items())


def _requirements(said: Mapping[str, Any]) -> str:
    parts = [
        f"{part} {', '.join(f'{resource} {value}' for resource, value in sorted(said[part].items()))}"
        for part in ("requests", "limits", "allocated", "actual")
        if said.get(part)
    ]
    return "; ".join(parts) or "nothing"


def _judged(r: Record) -> str:
    verdict = {
        "Granted": "granted: it fits",
        "Deferred": "deferred: it does not fit now",
        "Infeasible": "infeasible: it never fits this node",
        "Evict": "granted at the cost of others, which are evicted",
    }.get(r["verdict"], r["verdict"])
    room = (
        f"wants {vector(r.get('wanted') or {})}; others hold {vector(r.get('used') or {})} of {vector(r.get('allocatable') or {})}"
    )
    return f"the kubelet judges the resize of generation {r.get('gen')}: {verdict} ({room}; occasion: {r.get('cause')})"


def _planned(r: Record) -> str:
    purpose = "its resize" if r.get("resize") else "it"
    victims = ", ".join(f"{v['pod']} (priority {v['priority']})" for v in r.get("victims", ()))
    return f"the scheduler chooses on {r.get('node')}, to make room for {purpose}: {victims or 'nobody'}"


def _parked(r: Record) -> str:
    return f"the scheduler parks it ({r.get('cause') or 'nothing to do'}) in the queue {r.get('queue')!r}"


def fault(r: Record) -> str:
    """``kill of kubelet/node-1 at step K4``; what else is known of it in brackets."""
    args = dict(r.get("args") or {})
    said = str(r.get("name"))
    if "machine" in args:
        said += f" of {args.pop('machine')}"
    if "a" in args and "b" in args:
        said += f" between {args.pop('a')} and {args.pop('b')}"
    if "source" in args and "target" in args:
        said += f" from {args.pop('source')} to {args.pop('target')}"
    if args.get("label"):
        said += f" at step {args.pop('label')}"
    rest = ", ".join(f"{key} {value}" for key, value in args.items() if value)
    return f"{said} ({rest})" if rest else said


def _committed(r: Record) -> str:
    where = f"/{r['sub']}" if r.get("sub") else ""
    facts = r.get("obj") or {}
    said = [f"revision {r['rev']}: {r.get('user') or 'somebody'} {r.get('verb')}s {r.get('key')}{where}"]
    if "containers" in facts:
        said.append(f"generation {facts.get('generation')}, desired {containers(facts['containers'])}")
    for kind, reason in (facts.get("resize") or {}).items():
        said.append(f"{kind} {reason[0] if isinstance(reason, list | tuple) else reason}".strip())
    if r.get("gone"):
        said.append("it is gone")
    return "; ".join(said)


SENTENCES: Mapping[str, Callable[[Record], str]] = {
    "commit": _committed,
    "kl.judge": _judged,
    "kl.alloc": lambda r: f"the kubelet allocates {vector(r['vector'])} (generation {r.get('gen')}, occasion: {r.get('cause')})",
    "kl.actuated": lambda r: f"the kubelet writes down that the runtime has {containers(r['containers'])}",
    "kl.resized": lambda r: f"the resize of generation {r.get('gen')} is complete",
    "kl.resize.failed": lambda r: f"the resize fails, to be tried again: {r.get('why')}",
    "pod.end": lambda r: f"it holds nothing on {r.get('node')} any more",
    "rt.create": lambda r: f"the runtime starts container {r.get('name')}",
    "rt.update.begin": lambda r: f"the runtime is told to update container {r.get('name')} to {r.get('cfg')}",
    "rt.update.end": lambda r: f"the runtime {'has updated' if r.get('ok') else 'failed to update'} container {r.get('name')}",
    "rt.exit": lambda r: f"container {r.get('name')} ends: {r.get('reason')}, code {r.get('code')}",
    "sch.enqueue": lambda r: f"the scheduler takes it up ({r.get('cause')})",
    "sch.plan": _planned,
    "sch.park": _parked,
    "sch.wake": lambda r: f"the scheduler wakes it ({r.get('cause')}, at {r.get('at')})",
    "sch.gate": lambda r: f"the scheduler holds it back ({r.get('cause')})",
    "sch.bind": lambda r: f"the scheduler binds it to {r.get('node')}",
    "sch.dequeue": lambda r: f"the scheduler lets it go ({r.get('cause')})",
    "sch.delete": lambda r: f"the scheduler deletes {r.get('victim')} to make room for {r.get('preemptor')}",
    "fault.begin": lambda r: f"fault: {fault(r)}",
    "fault.end": lambda r: f"the fault is over: {fault(r)}",
}


def sentence(record: Record) -> str:
    """What the record says; of a kind that has no words of its own, its name and facts."""
    told = SENTENCES.get(record["kind"])
    try:
        return told(record) if told else _plainly(record)
    except (KeyError, TypeError, AttributeError):  # a history is somebody's file: tell what stands there
        return _plainly(record)


def _plainly(record: Record) -> str:
    hidden = {"run", "seed", "proc", "node", "inc", "seq", "mono_ns", "wall", "kind"}
    return f"{record['kind']} " + ", ".join(f"{key}={value}" for key, value in record.items() if key not in hidden)[:300]
