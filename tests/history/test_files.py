"""Histories are read back from what processes left behind, half-written last lines included."""

import json
import os
import time
from pathlib import Path

import pytest

from elbowroom.history.files import UnreadableHistoryError, load


def test_files_of_several_processes_make_one_history(tmp_path: Path) -> None:
    for proc, times in (("a", (1, 4)), ("b", (2, 3))):
        lines = [json.dumps({"kind": "step", "proc": proc, "inc": 1, "seq": i, "mono_ns": t}) for i, t in enumerate(times)]
        (tmp_path / f"{proc}.jsonl").write_text("\n".join(lines) + "\n")
    assert [r["proc"] for r in load(tmp_path).records] == ["a", "b", "b", "a"]


def test_a_line_cut_off_by_a_kill_is_counted_as_damage(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"kind":"end","mono_ns":1}\n{"kind":"st')
    history = load(tmp_path)
    assert (len(history.records), history.damaged) == (1, 1)


def test_of_a_run_that_goes_on_what_happened_until_now_is_read(tmp_path: Path) -> None:
    now = time.monotonic_ns()
    lines = [json.dumps({"kind": "step", "proc": "a", "inc": 1, "mono_ns": at}) for at in (now, now + int(3600e9))]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    assert [r["mono_ns"] for r in load(tmp_path).records] == [now]


def test_an_old_run_is_read_whole_whatever_the_machine_s_clock_says_since(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"kind": "step", "proc": "a", "inc": 1, "mono_ns": time.monotonic_ns() + int(3600e9)}) + "\n")
    os.utime(file, (1, 1))
    assert len(load(tmp_path).records) == 1


def test_a_file_of_something_else_is_no_history(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('root:x:0:0\n[1]\n{"kind": 3}\n')
    with pytest.raises(UnreadableHistoryError, match="none of its 3 lines is a record"):
        load(tmp_path)


def test_no_history_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(UnreadableHistoryError):
        load(tmp_path)
    with pytest.raises(UnreadableHistoryError):
        load(tmp_path / "nowhere")
