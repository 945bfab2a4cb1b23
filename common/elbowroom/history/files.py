"""Histories on disk: a directory with one JSONL file for each incarnation of each process."""

from pathlib import Path
from typing import Any

import msgspec

from elbowroom.history.records import History


class UnreadableHistoryError(Exception):
    """There is no history at that path."""


def load(path: str | Path) -> History:
    """The history in a directory (``*.jsonl``, also in folders below) or in one file.

    A last line that a dying process left half written is counted as damage, not refused.
    """
    place = Path(path)
    if place.is_dir():
        files = sorted(place.rglob("*.jsonl"))
    elif place.is_file():
        files = [place]
    else:
        raise UnreadableHistoryError(f"no history at {place}")
    if not files:
        raise UnreadableHistoryError(f"no *.jsonl files in {place}")
    decoder = msgspec.json.Decoder(dict[str, Any])
    records: list[dict[str, Any]] = []
    damaged = 0
    for file in files:
        for line in file.read_bytes().splitlines():
            try:
                record = decoder.decode(line)
            except msgspec.MsgspecError:
                damaged += 1
                continue
            if isinstance(record.get("kind"), str):
                records.append(record)
            else:
                damaged += 1
    return History.of(records, damaged)
