"""Histories on disk: a directory with one JSONL file for each incarnation of each process."""

import time
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.history.records import History, Pool, Record

GROWING_SECONDS = 1.0
"""A file that was written to so shortly before it is read belongs to a run that may still go on."""


class UnreadableHistoryError(Exception):
    """There is no history at that path."""


def load(path: str | Path) -> History:
    """The history in a directory (``*.jsonl``, also in folders below) or in one file.

    A last line that a dying process left half written is counted as damage, not refused; a file of nothing else is no history.
    Of a run that goes on, what happened until now is read: its files are read one after the other, and what one tells of a later
    moment has its causes in another that was read before. (Every process writes a record down before anything shows to others, so
    until one moment none is missing.)
    """
    began, growing_since = time.monotonic_ns(), time.time_ns() - int(GROWING_SECONDS * 1e9)
    place = Path(path)
    if place.is_dir():
        files = sorted(place.rglob("*.jsonl"))
    elif place.is_file():
        files = [place]
    else:
        raise UnreadableHistoryError(f"no history at {place}")
    if not files:
        raise UnreadableHistoryError(f"no *.jsonl files in {place}")
    decoder, pool = msgspec.json.Decoder(dict[str, Any]), Pool()
    records: list[Record] = []
    damaged = 0
    for file in files:
        for line in file.read_bytes().splitlines():
            try:
                record = decoder.decode(line)
            except msgspec.MsgspecError:
                damaged += 1
                continue
            if isinstance(record.get("kind"), str):
                records.append(pool.record(record))
            else:
                damaged += 1
    if damaged and not records:
        raise UnreadableHistoryError(f"no history at {place}: none of its {damaged} lines is a record")
    if any(file.stat().st_mtime_ns >= growing_since for file in files):
        records = [record for record in records if record.get("mono_ns", 0) <= began]
    return History.of(records, damaged)
