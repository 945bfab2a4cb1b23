"""A history as long as one likes, of one run that a cluster could have had.

A simulated cluster is recorded while clients read and resize its pods and a pod comes and is turned out again, from a moment in
which all is settled to a later one in which everything is as it was. That round is then repeated: with other times, revisions,
generations and numbers, and other names for what came into the world in it. What the checkers are told is what they would be told
by a cluster that ran so long; only recording it takes a thousandth of the time.
"""

import random
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from elbowroom.deploy.explore.cluster import SimulatedCluster
from elbowroom.history.records import Record
from elbowroom.machine import Instant
from elbowroom.rpc import create, get, patch
from elbowroom.sim.client import Client, Pending
from elbowroom.wire import ApiRequest

NODES = ("node-1", "node-2")
PODS = tuple(f"long-lived-{number}" for number in range(1, 13))
CLIENTS, ROUNDS, READS = 8, 8, 9
"""Of so many clients each resizes so often, and reads so often between two resizes."""
GUEST = "guest"
SIZES = (("250m", "256Mi"), ("300m", "300Mi"), ("500m", "200Mi"), ("750m", "512Mi"), ("1", "640Mi"))
QUIET = 70.0
"""Virtual seconds after the last wish, in which all is to settle (I-09)."""
CALM = 0.5
"""So long nothing is said between two rounds, or one would hear what belongs to the other."""
SECOND = 1_000_000_000
WITHIN = 60.0

CONDITIONS = ("PodResizePending", "PodResizeInProgress")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came before the round, the round, and what came after it. ``operations`` of clients were answered in the round, which
    took ``span`` ns: whole seconds, or times that are told in seconds would be others."""

    before: Sequence[Record]
    round: Sequence[Record]
    after: Sequence[Record]
    span: int
    operations: int


def recorded(seed: int = 1) -> Recorded:
    """A round, as it happens in the simulated world."""
    cluster = SimulatedCluster(seed)
    for name, value in (("low", 10), ("high", 1000)):
        cluster.add_priority(name, value)
    for node in NODES:
        cluster.add_node(node, cpu="16", memory="16Gi")
    for number, name in enumerate(PODS):
        cluster.ask(create("pods", _pod(name, "high", *SIZES[0], NODES[number % 2]), namespace="default"))
    cluster.until("all pods run", lambda: cluster.running(*PODS))
    clients = [Client(cluster.world, f"client/{number}") for number in range(2, CLIENTS + 2)]
    _round(cluster, clients, seed)  # the first is another one: caches are empty, events are new
    cluster.world.run_for(CALM)
    begun, at = len(cluster.world.history), cluster.world.now
    _round(cluster, clients, seed)
    whole = at + -(-(cluster.world.now + int(CALM * SECOND) - at) // SECOND) * SECOND
    is_whole: list[bool] = []
    cluster.world.at(Instant(whole), lambda: is_whole.append(True))
    cluster.world.run_until(lambda: bool(is_whole))
    ended, span = len(cluster.world.history), cluster.world.now - at
    assert span % SECOND == 0, "a round takes whole seconds"
    cluster.world.run_for(QUIET)
    cluster.world.close()
    # A process writes no record of a step that it passes; the world does.
    history = cluster.world.history
    before, made, after = (
        [record for record in part if record["kind"] != "step"] for part in (history[:begun], history[begun:ended], history[ended:])
    )
    return Recorded(before, made, after, span, operations=sum(record["kind"] == "api.ok" for record in made))


def _pod(name: str, priority: str, cpu: str, memory: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": _resources(cpu, memory)}],
        },
    }


def _resources(cpu: str, memory: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": "12", "memory": memory[:-2] + "0Mi"}}


def _resize(name: str, cpu: str, memory: str) -> ApiRequest:
    body = {"spec": {"containers": [{"name": "c", "resources": _resources(cpu, memory)}]}}
    return patch("pods", name, body, namespace="default", subresource="resize")


def _round(cluster: SimulatedCluster, clients: Sequence[Client], seed: int) -> None:
    """Reads and resizes at once; a guest that is turned out, since its neighbour grows; and all as it was."""
    rng = random.Random(f"{seed}/round")
    work: list[deque[ApiRequest]] = [deque() for _ in clients]
    for mine in work:
        for _ in range(ROUNDS):
            mine += [get("pods", rng.choice(PODS), namespace="default") for _ in range(READS)]
            mine.append(_resize(rng.choice(PODS), *rng.choice(SIZES)))
    under_way: dict[int, Pending] = {}

    def all_done() -> bool:
        for number, mine in enumerate(work):
            pending = under_way.get(number)
            if pending is not None and pending.response is None:
                continue
            if mine:
                under_way[number] = clients[number].begin(mine.popleft())
            else:
                under_way.pop(number, None)
        return not under_way

    cluster.until("all clients are answered", all_done, WITHIN)
    cluster.until("all resizes are settled", cluster.settled, WITHIN)
    cluster.ask(create("pods", _pod(GUEST, "low", "8", "256Mi", NODES[0]), namespace="default"))
    cluster.until("the guest runs", lambda: cluster.running(GUEST), WITHIN)
    cluster.ask(_resize(PODS[0], "9", SIZES[0][1]))
    cluster.until("the guest is gone", lambda: f"default/{GUEST}" not in cluster.pods.store, WITHIN)
    for name in PODS:
        cluster.ask(_resize(name, *SIZES[0]))
    cluster.until("all is as it was", cluster.settled, WITHIN)


# ------------------------------------------------------------ stretching


@dataclass(frozen=True, slots=True)
class _Advance:
    """How far a round brings each number: times in ns, revisions, and by process or pod what they count; and a pattern for the
    names of what came into the world in it. ``begun`` is the last revision before it, ``last`` each object's (by key and uid) in
    it."""

    time: int
    revisions: int
    begun: int
    last: Mapping[str, int]
    records: Mapping[str, int]
    passes: Mapping[str, int]
    numbers: Mapping[str, int]
    generations: Mapping[str, int]
    born: re.Pattern[str]


def stretched(made: Recorded, operations: int) -> Iterator[Record]:
    """The records of a run in which that many operations of clients are answered at least, in order."""
    times = -(-operations // made.operations)
    advance = _advance(made)
    yield from made.before
    yield from made.round
    templates = [(record, _what_changes(record, advance)) for record in made.round]
    for again in range(1, times):
        for record, changes in templates:
            yield _changed(record, changes, again, advance)
    for record in made.after:
        yield _changed(record, _what_changes(record, advance), times - 1, advance)


def _advance(made: Recorded) -> _Advance:
    commits = [[record for record in part if record["kind"] == "commit"] for part in (made.before, made.round)]
    known = {record["uid"] for record in commits[0]}
    born = {
        token for record in commits[1] if record["uid"] not in known for token in (record["uid"], record["key"].rsplit("/", 1)[-1])
    }
    of_pods = [[record for record in part if "generation" in (record.get("obj") or {})] for part in commits]
    return _Advance(
        made.span,
        _gained(commits, lambda record: "", lambda record: int(record["rev"]))[""],
        max(record["rev"] for record in commits[0]),
        {name: record["rev"] for record in commits[1] for name in (record["key"], record["uid"])},
        _gained((made.before, made.round), lambda record: str(record["proc"]), lambda record: int(record["seq"])),
        _gained(
            [[record for record in part if "pass" in record] for part in (made.before, made.round)],
            lambda record: str(record["proc"]),
            lambda record: int(record["pass"]),
        ),
        _gained(
            [[record for record in part if "number" in record] for part in (made.before, made.round)],
            _stream,
            lambda record: int(record["number"]),
        ),
        _gained(of_pods, lambda record: str(record["uid"]), lambda record: int(record["obj"]["generation"])),
        re.compile("|".join(sorted(map(re.escape, born), key=len, reverse=True))),
    )


def _stream(record: Record) -> str:
    return f"{record['proc']}/{record['id']}"


def _gained(parts: Sequence[Iterable[Record]], place: Callable[[Record], str], number: Callable[[Record], int]) -> dict[str, int]:
    """By how much the largest number of each place rose in the round, of those that there were before."""
    reached = [{place(record): 0 for record in part} for part in parts]
    for part, most in zip(parts, reached, strict=True):
        for record in part:
            most[place(record)] = max(most[place(record)], number(record))
    before, after = reached
    return {name: max(after.get(name, 0), most) - most for name, most in before.items()}


def _what_changes(record: Record, advance: _Advance) -> tuple[str, ...]:
    """The facts of the record, beside its times and number, that are others in another round."""
    return tuple(name for name, fact in record.items() if _other(name, fact, 1, advance, record) != fact)


def _changed(record: Record, changes: Sequence[str], again: int, advance: _Advance) -> Record:
    return {**record, **{name: _other(name, record[name], again, advance, record) for name in changes}}


def _other(name: str, fact: Any, again: int, advance: _Advance, of: Record) -> Any:
    """The fact, so many rounds later. ``of`` has the ``uid``, ``key`` or ``proc`` that it is a fact of."""
    match fact:
        case bool():
            return fact
        case int():
            return fact + _step(name, fact, again, advance, of) if fact else fact
        case str():
            return _other_text(name, fact, again, advance, of)
        case list() if name in CONDITIONS and len(fact) == 2:
            return [fact[0], _other("generation", fact[1], again, advance, of)]
        case list():
            return [_other(name, one, again, advance, of) for one in fact]
        case dict():
            own = fact if "uid" in fact else of
            return {_other_text("", key, again, advance, own): _other(key, one, again, advance, own) for key, one in fact.items()}
    return fact


def _step(name: str, fact: int, again: int, advance: _Advance, of: Record) -> int:
    match name:
        case "mono_ns" | "wall":
            return again * advance.time
        case "rev" | "from" | "base" | "revision":
            if fact <= advance.begun:  # what the object was when the round began is what the round before left
                last = advance.last.get(of.get("uid", ""), advance.last.get(of.get("key", ""), 0))
                return last - advance.revisions - fact + again * advance.revisions if last else 0
            return again * advance.revisions
        case "seq":
            return again * advance.records[of["proc"]]
        case "pass":
            return again * advance.passes[of["proc"]]
        case "number":
            return again * advance.numbers[_stream(of)]
        case "gen" | "generation":
            return again * advance.generations.get(of.get("uid", ""), 0)
    return 0


def _other_text(name: str, text: str, again: int, advance: _Advance, of: Record) -> str:
    if name == "op":
        return f"{text}/{again}"
    if name == "rev" and text.isdecimal():
        return str(int(text) + _step(name, int(text), again, advance, of))
    if name in CONDITIONS:
        return f"{datetime.fromisoformat(text) + timedelta(microseconds=again * advance.time // 1000):%Y-%m-%dT%H:%M:%SZ}"
    return advance.born.sub(lambda found: f"{found[0]}-{again}", text)
