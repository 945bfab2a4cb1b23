"""Which figures there are, and how they are shown."""

import json
import os
import platform
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import uvloop

from elbowroom.deploy.bench import aims, dense, endtoend, judging, measures, preempting, rates, scheduling, serving, simulating
from elbowroom.deploy.bench.clusters import Other, Running
from elbowroom.deploy.bench.figures import PEER, Figure, shown
from elbowroom.deploy.bench.profiles import SUMMARY, Profiles
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.show import table


@dataclass(frozen=True, slots=True)
class Measure:
    """A way to take some figures: alone, or on a cluster of ten nodes that measures share."""

    name: str
    suite: str
    alone: Callable[[], list[Figure]] | None = None
    on_ten: Callable[[Running], Awaitable[list[Figure]]] | None = None
    on_any: Callable[[Running | Other], Awaitable[list[Figure]]] | None = None
    """Like ``on_ten``, but it needs nothing but the API."""


MEASURES = (
    Measure("nodes-3", "scheduling", alone=lambda: measures.nodes_ready(3)),
    Measure("nodes-10", "scheduling", alone=lambda: measures.nodes_ready(10)),
    Measure("nodes-50", "scheduling", alone=lambda: measures.nodes_ready(50)),
    Measure("in-process", "scheduling", alone=scheduling.in_process),
    Measure("bound-100", "scheduling", alone=lambda: endtoend.of_size(100)),
    Measure("bound-1000", "scheduling", alone=lambda: endtoend.of_size(1_000)),
    Measure("bound-5000", "scheduling", alone=lambda: endtoend.of_size(5_000)),
    Measure("dense", "scheduling", alone=dense.growth),
    Measure("cache-memory", "scheduling", alone=scheduling.memory),
    Measure("pod-rate", "scheduling", on_any=measures.pod_rate),
    Measure("resize-rate", "api", on_any=measures.resize_rate),
    Measure("patch-rate", "api", on_any=rates.resizes),
    Measure("get-rate", "api", on_any=rates.gets),
    Measure("get-pod", "api", on_any=serving.get_pod),
    Measure("list-5000", "api", on_any=serving.list_pods),
    Measure("write-to-watch", "api", on_any=serving.write_to_watch),
    Measure("fan-out-100", "api", on_any=serving.fan_out),
    Measure("watchers-500", "api", on_any=serving.many_watchers),
    Measure("bus", "api", on_ten=serving.on_the_bus),
    Measure("codec", "api", alone=serving.decoding),
    Measure("resize-latency", "resize-preemption", on_any=measures.resize_latency),
    Measure("preemption-latency", "resize-preemption", on_ten=measures.preemption_latency),
    Measure("preemption-storm-100", "resize-preemption", alone=lambda: preempting.of_size(100)),
    Measure("preemption-storm-1000", "resize-preemption", alone=lambda: preempting.of_size(1_000)),
    Measure("preemption-storm-5000", "resize-preemption", alone=lambda: preempting.of_size(5_000)),
    Measure("decision", "resize-preemption", alone=measures.decision_time),
    Measure("cpu-decisions", "resize-preemption", alone=measures.cpu_decisions),
    Measure("judge-a-million", "histories", alone=judging.judge_a_million),
    Measure("simulated-world", "histories", alone=simulating.simulated_world),
    Measure("aim-pods", "aims", alone=aims.pods),
    Measure("aim-resizes", "aims", alone=aims.resizes),
    Measure("aim-growth", "aims", alone=aims.growth),
    Measure("aim-api", "aims", on_ten=aims.api),
)


def run(
    suite: str, only: list[str], json_file: Path | None, against: Path | None = None, profiled_into: Path | None = None
) -> None:
    """Take the figures and print them as a table (and as JSON into ``json_file``; ``-``: JSON alone to standard output).

    ``against`` is the kubeconfig of a cluster whose figures, taken now in the same way, take the place of the known peer's.
    ``profiled_into`` is a folder for profiles of our clusters' processes.
    """
    chosen = _chosen(suite, only)
    if against is not None:
        chosen = [measure for measure in chosen if measure.on_any is not None]
        if not chosen:
            raise UserError("--against: none of these figures can be taken on a cluster of which nothing is known but its API")
    quiet = json_file == Path("-")
    profiles = Profiles.into(profiled_into) if profiled_into is not None else None
    figures = _taken(chosen, quiet, profiles)
    peer = PEER
    if against is not None:
        peer = f"the cluster of {against}"
        figures = _beside(figures, _taken_on(Other(against), chosen, quiet))
    document = {
        "machine": f"{os.cpu_count()} CPUs, Python {platform.python_version()}, {platform.system()} {platform.release()}",
        "peer": peer,
        "figures": [{**asdict(figure), "ratio": figure.ratio} for figure in figures],
    }
    if quiet:
        print(json.dumps(document, indent=2))
        return
    print(as_table(figures))
    print(f"\npeer: {peer}; times better: above 1 we are better")
    print(f"here: {document['machine']}")
    if profiles is not None:
        print(
            f"profiles: {profiles.folder / SUMMARY}, and the stacks beside it; these figures are of processes that were looked at"
        )
    if json_file is not None:
        try:
            json_file.write_text(json.dumps(document, indent=2) + "\n")
        except OSError as why:
            raise UserError(f"{json_file}: {why.strerror}") from why


def _taken(chosen: list[Measure], quiet: bool, profiles: Profiles | None) -> list[Figure]:
    figures: list[Figure] = []
    for measure in chosen:
        if measure.alone is not None:
            _say(quiet, measure.name)
            with profiles.of(measure.name) if profiles is not None else nullcontext():
                figures += measure.alone()
    shared = [measure for measure in chosen if measure.alone is None]
    if shared:
        _say(quiet, "a cluster of ten nodes")
        with Running(nodes=10) as cluster:
            figures += _taken_on(cluster, shared, quiet, profiles)
    return figures


def _taken_on(cluster: Running | Other, chosen: list[Measure], quiet: bool, profiles: Profiles | None = None) -> list[Figure]:
    figures: list[Figure] = []
    for measure in chosen:
        _say(quiet, measure.name if isinstance(cluster, Running) else f"{measure.name} on {cluster.kubeconfig}")
        with ExitStack() as looking:
            if profiles is not None and isinstance(cluster, Running):
                looking.enter_context(profiles.of(measure.name))
                looking.enter_context(cluster.looked_at())
            if measure.on_any is not None:
                figures += _completed(measure.on_any(cluster))
            elif measure.on_ten is not None and isinstance(cluster, Running):
                figures += _completed(measure.on_ten(cluster))
    return figures


def _completed(taking: Awaitable[list[Figure]]) -> list[Figure]:
    async def take() -> list[Figure]:
        return await taking

    try:
        return uvloop.run(take())
    except OSError as why:
        raise UserError(f"the bench failed: {why}") from why


def _beside(ours: list[Figure], theirs: list[Figure]) -> list[Figure]:
    """Our figures, with what the other cluster did as the peer's."""
    values = {figure.name: figure.value for figure in theirs}
    return [replace(figure, peer=values.get(figure.name)) for figure in ours]


def as_table(figures: list[Figure]) -> str:
    """The figures for people."""
    rows = [("FIGURE", "HERE", "PEER", "TIMES BETTER", "LIMIT", "MORE")]
    for figure in figures:
        more = ", ".join(f"{what} {shown(amount)}" for what, amount in figure.details.items())
        limit = f"{shown(figure.limit, figure.unit)} ({figure.limit_is})" if figure.limit is not None else "-"
        rows.append(
            (figure.what, shown(figure.value, figure.unit), shown(figure.peer, figure.unit), shown(figure.ratio), limit, more)
            if figure.peer is not None
            else (figure.what, shown(figure.value, figure.unit), "-", "-", limit, more)
        )
    return table(rows)


def _chosen(suite: str, only: list[str]) -> list[Measure]:
    known = [m.name for m in MEASURES]
    unknown = [name for name in only if name not in known]
    if unknown:
        raise UserError(f"--only {unknown[0]}: no such figure; there is: {', '.join(known)}")
    # What is aimed at is much of the rest once more, on clusters of its own.
    return [m for m in MEASURES if (m.name in only if only else m.suite == suite or (suite == "all" and m.suite != "aims"))]


def _say(quiet: bool, what: str) -> None:
    if not quiet:
        print(f"measuring {what} ...", file=sys.stderr, flush=True)
