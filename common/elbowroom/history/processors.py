"""What a kubelet's CPU manager gives away, judged on its own records (``kl.cpus``) and on where the runtime puts containers."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from elbowroom.history.records import History, Record, Violation


def processors(text: str) -> frozenset[int]:
    """The numbers of ``0-3,7``; of an empty text none."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def processors_are_accounted_for(history: History) -> Iterator[Violation]:
    """I-20: of a machine's processors each is shared, reserved, or one pod's; none is lost; parts of a pod's own set lie within it;
    a resized set holds the original one; only Guaranteed pods have any. And no container is put anywhere that it was not given."""
    classes = {r["uid"]: r["obj"]["qos"] for r in history.kinds("commit") if (r.get("obj") or {}).get("qos")}
    given: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    shared: dict[str, set[str]] = defaultdict(set)
    latest: dict[str, Record] = {}
    for record in history.kinds("kl.cpus", "rt.create", "rt.cpuset"):
        node = record["node"]
        if record["kind"] == "kl.cpus":
            latest[node] = record
            shared[node].add(record["default"])
            for uid, entry in record["entries"].items():
                for name, text in entry.items():
                    given[node, uid, name].add(text)
            yield from _sums(record, classes)
            continue
        text = record["cpus"] if record["kind"] == "rt.cpuset" else record["cfg"].get("cpuset_cpus", "")
        known = latest.get(node)
        if not text or known is None:
            continue
        own = given.get((node, record["uid"], record["name"]), set())
        held = record["name"] in known["entries"].get(record["uid"], {})
        # A grown container may have a part of its set until others have left the rest.
        part = held and processors(text) <= processors(known["entries"][record["uid"]][record["name"]])
        if not part and text not in (own if held else own | shared[node]):
            yield Violation("I-20", f"{record['container']} is put on {text}, which it was not given", (known, record))


def _sums(record: Record, classes: Mapping[str, str]) -> Iterator[Violation]:
    default, reserved = processors(record["default"]), processors(record["reserved"])
    held: dict[str, frozenset[int]] = {}
    for uid, entry in record["entries"].items():
        parts = {name: processors(text) for name, text in entry.items()}
        together = frozenset[int]().union(*parts.values())
        whole = processors(record["pods"][uid]) if uid in record["pods"] else together
        if not together <= whole:
            yield Violation("I-20", f"containers of {uid} have {sorted(together - whole)} beside their pod's set", (record,))
        if classes.get(uid, "Guaranteed") != "Guaranteed":
            yield Violation("I-20", f"{uid} is {classes[uid]} and has processors of its own", (record,))
        for name, text in record["originals"].get(uid, {}).items():
            if not processors(text) <= parts.get(name, frozenset()):
                yield Violation("I-20", f"{name} of {uid} began with {text} and has {entry.get(name)}", (record,))
        for other, taken in held.items():
            if whole & taken:
                yield Violation("I-20", f"{uid} and {other} share processors {sorted(whole & taken)}", (record,))
        held[uid] = whole
    used = frozenset[int]().union(*held.values())
    if used & (default | reserved):
        yield Violation("I-20", f"{sorted(used & (default | reserved))} are a pod's own and shared or reserved as well", (record,))
    if record["strict"] and reserved & default:
        yield Violation("I-20", f"{sorted(reserved & default)} are strictly reserved and shared", (record,))
    everything = used | default | (reserved if record["strict"] else frozenset())
    if everything != processors(record["all"]):
        lost = sorted(processors(record["all"]) ^ everything)
        yield Violation("I-20", f"{lost} are lost, or not there at all", (record,))
