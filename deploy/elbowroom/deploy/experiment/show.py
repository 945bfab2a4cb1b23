"""What ``elbowroom experiment`` prints."""

import json
import os
from pathlib import Path

from elbowroom.deploy.errors import UserError
from elbowroom.deploy.experiment.preemption import Row, rows
from elbowroom.deploy.show import table

HEAD = (
    "STORY",
    "POLICY",
    "SCHEDULER DIES AT",
    "RUNS",
    "VICTIMS",
    "MAX",
    "NEEDLESS",
    "RUNS WITH",
    "PROTECTED",
    "P50 S",
    "MAX S",
    "NEVER",
)


def preemption(first: int, count: int, jobs: int, json_file: Path | None) -> None:
    """Tell every story under every policy, ``count`` times, and print the table (with ``-``: JSON alone)."""
    if json_file is not None and json_file != Path("-"):
        _write(json_file, "")  # what cannot be written is told before an hour's work, not after it
    found = list(rows(first, count, jobs or os.cpu_count() or 1))
    document = {"firstSeed": first, "seeds": count, "rows": [row.as_document() for row in found]}
    if json_file == Path("-"):
        print(json.dumps(document, indent=2))
        return
    print(table([HEAD, *(_cells(row) for row in found)]))
    if json_file is not None:
        _write(json_file, json.dumps(document, indent=2) + "\n")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as why:
        raise UserError(f"{file}: {why.strerror}") from why


def _cells(row: Row) -> tuple[str, ...]:
    case = row.case
    return (
        case.story,
        case.policy,
        case.crash or "-",
        str(row.runs),
        str(row.victims),
        str(row.victims_max),
        str(row.needless),
        str(row.runs_with_needless),
        str(row.protected),
        "-" if row.seconds_p50 is None else f"{row.seconds_p50:.2f}",
        "-" if row.seconds_max is None else f"{row.seconds_max:.2f}",
        str(row.unresized),
    )
