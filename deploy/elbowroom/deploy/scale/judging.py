"""The recorded history held against the invariants: whole where it is of a size that can be, else a sample that says so.

A sample is cut by nodes: of the control plane's records those stay that are about pods on nodes of the sample, or about no pod.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

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
    """What the files tell of these nodes and of what happened on them.

    What is left out is never in memory: the control plane's part of a large run weighs gigabytes once it is read.
    """
    mine, common = [], []
    for file in found:
        service, _, rest = file.name.partition("_")
        if service not in ("kubelet", "runtime"):
            common.append(file)
        elif rest.split(".")[0] in nodes:
            mine.append(file)
    elsewhere = {name for file in common for record in _records(file) for name in _elsewhere(record, nodes)}
    unknown = {
        record["rev"]
        for file in common
        for record in _records(file)
        if record["kind"] == "commit" and not elsewhere.isdisjoint(_pods_of(record))
    }
    told = [record for file in common for record in _records(file) if not _is_left_out(record, elsewhere, unknown)]
    for record in told:
        record.pop("number", None)  # frames of these streams were left out, so that none is missing cannot be seen in the others
    return History.of([*(record for file in mine for record in _records(file)), *told])


def _records(file: Path) -> Iterator[dict[str, Any]]:
    """The file's records, one after the other; a last line that a dying process left half written is passed over."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    with file.open("rb") as lines:
        for line in lines:
            with suppress(msgspec.MsgspecError):
                yield decode(line)


def _is_left_out(record: Record, elsewhere: set[str], unknown: set[int]) -> bool:
    if record["kind"] == "watch.event" and record["rev"] in unknown:
        return True
    return not elsewhere.isdisjoint(_pods_of(record))


def _elsewhere(record: Record, nodes: set[str]) -> Iterator[str]:
    """The pod that this record bound to a node outside the sample, by name and uid."""
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
