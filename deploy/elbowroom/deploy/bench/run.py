"""Which figures there are, and how they are shown."""

import json
import os
import platform
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from elbowroom.deploy.bench import measures
from elbowroom.deploy.bench.clusters import Running
from elbowroom.deploy.bench.figures import PEER, Figure, shown
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.show import table


@dataclass(frozen=True, slots=True)
class Measure:
    """A way to take some figures: alone, or on a cluster of ten nodes that measures share."""

    name: str
    suite: str
    alone: Callable[[], list[Figure]] | None = None
    on_ten: Callable[[Running], Awaitable[list[Figure]]] | None = None


MEASURES = (
    Measure("nodes-3", "scheduling", alone=lambda: measures.nodes_ready(3)),
    Measure("nodes-10", "scheduling", alone=lambda: measures.nodes_ready(10)),
    Measure("nodes-50", "scheduling", alone=lambda: measures.nodes_ready(50)),
    Measure("pod-rate", "scheduling", on_ten=measures.pod_rate),
    Measure("resize-rate", "api", on_ten=measures.resize_rate),
    Measure("resize-latency", "resize-preemption", on_ten=measures.resize_latency),
    Measure("preemption-latency", "resize-preemption", on_ten=measures.preemption_latency),
    Measure("decision", "resize-preemption", on_ten=measures.decision_time),
)


def run(suite: str, only: list[str], json_file: Path | None) -> None:
    """Take the figures and print them as a table (and as JSON into ``json_file``; ``-``: JSON alone to standard output)."""
    chosen = _chosen(suite, only)
    quiet = json_file == Path("-")
    figures: list[Figure] = []
    for measure in (m for m in chosen if m.alone is not None):
        _say(quiet, measure.name)
        assert measure.alone is not None
        figures += measure.alone()
    shared = [m for m in chosen if m.on_ten is not None]
    if shared:
        _say(quiet, "a cluster of ten nodes")
        with Running(nodes=10) as cluster:
            for measure in shared:
                _say(quiet, measure.name)
                assert measure.on_ten is not None
                figures += uvloop.run(measure.on_ten(cluster))  # type: ignore[arg-type]
    document = {
        "machine": f"{os.cpu_count()} CPUs, Python {platform.python_version()}, {platform.system()} {platform.release()}",
        "peer": PEER,
        "figures": [{**asdict(figure), "ratio": figure.ratio} for figure in figures],
    }
    if quiet:
        print(json.dumps(document, indent=2))
        return
    print(as_table(figures))
    print(f"\npeer: {PEER}; times better: above 1 we are better")
    print(f"here: {document['machine']}")
    if json_file is not None:
        try:
            json_file.write_text(json.dumps(document, indent=2) + "\n")
        except OSError as why:
            raise UserError(f"{json_file}: {why.strerror}") from why


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
    return [m for m in MEASURES if (m.suite == suite or suite == "all") and (not only or m.name in only)]


def _say(quiet: bool, what: str) -> None:
    if not quiet:
        print(f"measuring {what} ...", file=sys.stderr, flush=True)
