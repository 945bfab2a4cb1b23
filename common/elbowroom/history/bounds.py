"""What a process may weigh, and how long it may keep others waiting, whatever is done to it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from elbowroom.history.reading import Invariant
from elbowroom.history.records import History, Record, Violation

MEMORY_BYTES_MAX, A_WRITE_BYTES_MAX = 2 << 30, 4 << 10
"""And so much more for each write that the store has seen: there may be millions of objects."""
FILES_SHARE_MAX = 0.9
"""Of the files that the process was allowed when it began; who allows it fewer later finds it full."""
INPUTS_MAX = 20_000
"""Of one machine."""
EFFECTS_MAX = 40_000
"""Of one machine. A host reads no further beyond half of them, which is where one stands whose disk is slow; what it had read by
then, and timers, may add to it."""
LATE_MS_MAX = 100.0
LATE_SHARE_MAX = 0.001
SETTLED = 10
"""Samples of one life that are to be compared for growth at least, of the second half with the first."""
GROWTH_MAX = 2.0


def processes_stay_within_bounds(history: History) -> Iterator[Violation]:
    """I-50: a process's memory, open files and queues stay under their limits, and hardly ever does it keep others waiting for
    more than a tenth of a second."""
    of_life: dict[tuple[str, int], list[Record]] = defaultdict(list)
    late: list[Record] = []
    samples = revision = 0
    for record in history.kinds("host.sample", "commit"):
        if record["kind"] == "commit":
            revision = max(revision, record["rev"])
            continue
        samples += 1
        of_life[record["proc"], record["inc"]].append(record)
        for what, found, limit in (
            ("bytes of memory", record["rss_bytes"], MEMORY_BYTES_MAX + revision * A_WRITE_BYTES_MAX),
            ("open files", record["files"], int(FILES_SHARE_MAX * record["files_max"])),
            ("inputs that wait", record["inputs"], INPUTS_MAX),
            ("effects that wait", record["effects"], EFFECTS_MAX),
        ):
            if found > limit:
                yield Violation("I-50", f"{record['proc']} has {found} {what}; {limit} are allowed", (record,))
        if record["late_ms"] > LATE_MS_MAX:
            late.append(record)
    if len(late) > max(1.0, LATE_SHARE_MAX * samples):
        worst = max(late, key=lambda record: float(record["late_ms"]))
        yield Violation(
            "I-50",
            f"{len(late)} of {samples} looks found a loop late, {worst['proc']} by {worst['late_ms']:.0f} ms",
            tuple(late[:4]),
        )
    for life in of_life.values():
        yield from _files_leak(life)


def _files_leak(life: list[Record]) -> Iterator[Violation]:
    """Open files that only ever become more, until there are several times as many, are forgotten ones."""
    if len(life) < SETTLED:
        return
    half = life[len(life) // 2 :]
    before = max(record["files"] for record in life[: len(life) // 2])
    rises = all(a["files"] < b["files"] for a, b in pairwise(half))
    if rises and half[-1]["files"] > GROWTH_MAX * before:
        yield Violation("I-50", f"{half[-1]['proc']} opens files and closes none", (half[0], half[-1]))


INVARIANTS: Mapping[str, Invariant] = {"I-50": processes_stay_within_bounds}
LOOKED_AT: Mapping[str, tuple[str, ...]] = {"I-50": ("host.sample",)}
