"""The report of a run: figures, pictures, and the verdict on its history; as text, and as a page without network or script."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from elbowroom.deploy.bench.figures import percentile, shown
from elbowroom.deploy.bench.gauge import KINDS
from elbowroom.deploy.scale.drive import GROWS, RESIZES, Run
from elbowroom.deploy.scale.judging import Judgement
from elbowroom.deploy.scale.plot import Plot, percentiles, plot, rates

WINDOWS = 20
"""Percentiles over time are of so many windows of the storm."""


@dataclass(frozen=True, slots=True)
class Latency:
    what: str
    episodes: int
    acknowledged_p50_ms: float
    p50_ms: float
    p99_ms: float


def latencies(run: Run) -> list[Latency]:
    """Of each kind of resize that there was, from the PATCH sent until in force."""
    found = []
    for what in (GROWS, RESIZES):
        episodes = [episode for episode in run.episodes if episode.what == what]
        if episodes:
            acknowledged, took = [1000 * e.acknowledged for e in episodes], [1000 * e.in_force for e in episodes]
            found.append(Latency(what, len(episodes), percentile(acknowledged, 0.5), percentile(took, 0.5), percentile(took, 0.99)))
    return found


def figures(run: Run) -> list[tuple[str, str]]:
    """What was measured, in lines of name and value."""
    plan, last = run.plan, len(run.episodes)
    idle, full = sum(run.idle.memory.values()), sum(run.full.memory.values())
    return [
        ("nodes Ready", f"{plan.nodes:,} after {run.ready:.1f} s"),
        ("pods made, bound and running", f"{plan.pods:,} in {run.running:.1f} s: {shown(plan.pods / run.running)} a second"),
        ("resizes in force", f"{last:,} in {run.storm:.1f} s: {shown(last / run.storm)} a second"),
        ("victims that made room", f"{run.victims:,}, for {plan.growing:,} that grew"),
        (
            "memory with idle nodes",
            f"{shown(idle)} MiB, {shown(1024 * _of_nodes(run) / plan.nodes)} KiB a node in the nodes' processes",
        ),
        ("memory with all pods", f"{shown(full)} MiB, {shown(1024 * (full - idle) / plan.pods)} KiB a pod in all processes"),
        ("memory at the end", f"{shown(sum(run.after.memory.values()))} MiB"),
    ]


def _of_nodes(run: Run) -> float:
    return run.idle.memory.get("nodes", 0.0)


def time_spent(run: Run) -> list[tuple[str, float, float, float]]:
    """Where the CPU time went: a kind of process; seconds until nodes were Ready, for the pods, for the storm."""
    return [
        (
            kind,
            run.idle.cpu.get(kind, 0.0),
            run.full.cpu.get(kind, 0.0) - run.idle.cpu.get(kind, 0.0),
            run.after.cpu.get(kind, 0.0) - run.full.cpu.get(kind, 0.0),
        )
        for kind in KINDS
    ]


def plots(run: Run) -> list[Plot]:
    """The pictures; the storm's beginning is marked in each."""
    samples, begun = run.samples, run.storm_began
    drawn = [
        plot("Pods", "pods", {"made": [(s.at, s.made) for s in samples], "running": [(s.at, s.running) for s in samples]}, begun),
        plot(
            "Throughput",
            "a second",
            {
                "pods running": rates([(s.at, s.running) for s in samples]),
                "resizes in force": rates([(s.at, s.in_force) for s in samples]),
                "events of the watch": rates([(s.at, s.changes) for s in samples]),
            },
            begun,
        ),
        *(_latency(run, what) for what in (GROWS, RESIZES)),
        plot("Memory", "MiB", {kind: [(s.at, s.weight.memory.get(kind, 0.0)) for s in samples] for kind in KINDS}, begun),
        plot(
            "CPU",
            "processors",
            {kind: rates([(s.at, s.weight.cpu.get(kind, 0.0)) for s in samples]) for kind in KINDS},
            begun,
        ),
        plot(
            "Queues",
            "pods",
            {
                "resizes that wait for room": [(s.at, s.deferred) for s in samples],
                **{f"scheduler: {name}": [(s.at, s.queues.get(name, 0)) for s in samples] for name in _queues(run)},
            },
            begun,
        ),
    ]
    return [picture for picture in drawn if picture is not None]


def _latency(run: Run, what: str) -> Plot | None:
    points = [(e.at + e.in_force, 1000 * e.in_force) for e in run.episodes if e.what == what]
    window = max(run.storm / WINDOWS, 0.05)
    series = {f"p{share:.0f}": percentiles(points, share / 100, window) for share in (50, 90, 99)}
    return plot(f"PATCH to in force: {what}", "ms", series)


def _queues(run: Run) -> list[str]:
    return sorted({name for sample in run.samples for name in sample.queues})


def text(run: Run, judgement: Judgement) -> str:
    """The report for a terminal."""
    lines = [f"{name:32} {value}" for name, value in figures(run)]
    for one in latencies(run):
        lines.append(
            f"{'PATCH to in force, ms':32} p50 {shown(one.p50_ms)}, p99 {shown(one.p99_ms)}"
            f" (acknowledged {shown(one.acknowledged_p50_ms)}), {one.episodes:,}: {one.what}"
        )
    lines.append(f"{'CPU seconds':32} nodes Ready, pods, storm")
    lines += [f"  {kind:30} {shown(ready)}, {shown(pods)}, {shown(storm)}" for kind, ready, pods, storm in time_spent(run)]
    lines.append(f"{'invariants':32} {judgement.sentence}")
    return "\n".join(lines)


def html(run: Run, judgement: Judgement, load: Sequence[float]) -> str:
    """The page. ``load`` is how many processes wanted a processor before the run, as the system tells."""
    environment = Environment(
        loader=PackageLoader("elbowroom.deploy", "scale"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    machine = f"{os.cpu_count()} CPUs, Python {platform.python_version()}, {platform.system()} {platform.release()}"
    return environment.get_template("scale.html.j2").render(
        run=run,
        judgement=judgement,
        figures=figures(run),
        latencies=latencies(run),
        spent=time_spent(run),
        plots=plots(run),
        machine=machine,
        load=load,
        shown=shown,
    )


def write(run: Run, judgement: Judgement, load: Sequence[float], file: Path) -> None:
    """Write the page to ``file``. ``OSError`` if that cannot be."""
    file.write_text(html(run, judgement, load), encoding="utf-8")
