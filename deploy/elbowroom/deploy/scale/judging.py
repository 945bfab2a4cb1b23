"""The recorded history held against the invariants: whole where it is of a size that can be, else a sample that says so.

A sample is cut by nodes: of the control plane's records those stay that are about pods on nodes of the sample, or about no pod.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elbowroom.history import files
from elbowroom.history.records import History, Record
from elbowroom.history.report import Report, judge

WHOLE_BYTES_MAX = 150 << 20
"""A record takes ten times its bytes once it is read; so much is judged in a few minutes and a few gigabytes."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """``nodes`` of ``all_nodes`` were looked at."""

    report: Report
    nodes: int
    all_nodes: int
    megabytes: float

    @property
    def is_whole(self) -> bool:
        return self.nodes == self.all_nodes

    @property
    def sentence(self) -> str:
        what = "the whole history" if self.is_whole else f"a sample, {self.nodes:,} of {self.all_nodes:,} nodes, of the history"
        return f"{what} ({self.megabytes:,.0f} MB in all): {self.report.verdict}, {self.report.records:,} records judged"


def judged(folder: Path, nodes: int, whole_bytes_max: int = WHOLE_BYTES_MAX) -> Judgement:
    """Judge the history in ``folder`` of a cluster whose nodes are ``node-1`` to ``node-NODES``."""
    sizes = {file: file.stat().st_size for file in sorted(folder.glob("*.jsonl"))}
    everything = sum(sizes.values())
    if everything <= whole_bytes_max:
        return Judgement(judge(files.load(folder)), nodes, nodes, everything / 1e6)
    count = max(1, nodes * whole_bytes_max // everything)
    chosen = {f"node-{1 + place * nodes // count}" for place in range(count)}
    return Judgement(judge(sampled(sizes, chosen)), len(chosen), nodes, everything / 1e6)


def sampled(found: Iterable[Path], nodes: set[str]) -> History:
    """What the files tell of these nodes and of what happened on them."""
    mine, common = [], []
    for file in found:
        service, _, rest = file.name.partition("_")
        if service not in ("kubelet", "runtime"):
            common.append(file)
        elif rest.split(".")[0] in nodes:
            mine.append(file)
    told = [record for file in common for record in files.load(file).records]
    elsewhere = set(_elsewhere(told, nodes))
    about_others = [not elsewhere.isdisjoint(_pods_of(record)) for record in told]
    unknown = {record["rev"] for record, other in zip(told, about_others, strict=True) if other and record["kind"] == "commit"}
    records = [record for file in mine for record in files.load(file).records]
    for record, other in zip(told, about_others, strict=True):
        heard = record["kind"] == "watch.event" and record["rev"] in unknown
        if not (other or heard):
            records.append(record)
    return History.of(records)


def _elsewhere(told: Iterable[Record], nodes: set[str]) -> Iterator[str]:
    """The pods that were bound to nodes outside the sample, by name and uid."""
    for record in told:
        if record["kind"] == "commit" and record["resource"] == "pods":
            node = record["obj"].get("node")
            if node and node not in nodes:
                yield record["key"].removeprefix("pods/")
                yield record["uid"]


def _pods_of(record: Record) -> Iterator[str]:
    """The pods that a record of the control plane is about, by name and uid, as it says it."""
    key = record.get("key")
    if isinstance(key, str) and key.startswith("pods/"):
        yield key.removeprefix("pods/")
    for field in ("pod", "uid", "victim", "preemptor"):
        if isinstance(record.get(field), str):
            yield record[field]
    about = (record.get("obj") or {}).get("about")
    if isinstance(about, str):
        yield about
