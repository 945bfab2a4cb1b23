"""History files: one shape, whole lines, and no service ends for want of room."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from elbowroom.history.files import load
from elbowroom.host.clock import Clock
from elbowroom.host.history import History
from elbowroom.machine.records import Author

AUTHOR = Author("run-1", 42, "kubelet/node-1", 7)


def records(folder: Path) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in (folder / "kubelet_node-1.7.jsonl").read_bytes().splitlines()]


def test_a_record_has_the_envelope_first_and_the_node_that_the_note_names(tmp_path: Path) -> None:
    history = History(str(tmp_path), AUTHOR, Clock())
    history.note("kl.judge", {"pod": "d/p", "verdict": "Deferred"})
    history.note("odd", {"node": "other", "seq": 99, "kind": "mine"})
    history.close()
    first, second = records(tmp_path)
    assert list(first) == ["run", "seed", "proc", "node", "inc", "seq", "mono_ns", "wall", "kind", "pod", "verdict"]
    assert (first["run"], first["seed"], first["proc"], first["node"], first["inc"]) == ("run-1", 42, "kubelet/node-1", "node-1", 7)
    assert (second["node"], second["seq"], second["kind"]) == ("other", 2, "odd")


def test_nothing_reaches_the_file_before_a_flush_and_all_of_it_then(tmp_path: Path) -> None:
    history = History(str(tmp_path), AUTHOR, Clock())
    for number in range(100):
        history.note("n", {"number": number})
    assert history.waiting
    assert records(tmp_path) == []
    history.flush()
    assert not history.waiting
    assert [one["number"] for one in records(tmp_path)] == list(range(100))
    assert len(load(tmp_path).records) == 100


def test_without_a_directory_nothing_is_written_and_nothing_waits(tmp_path: Path) -> None:
    history = History("", AUTHOR, Clock())
    history.note("n", {})
    assert not history.waiting
    history.close()


def test_the_log_line_is_for_people_and_leaves_out_what_is_too_frequent(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        history = History("", AUTHOR, Clock(), log.fileno())
        history.note("kl.judge", {"pod": "d/p", "message": "two words\nand a line", "empty": "", "used": {"cpu": 5}})
        history.note("commit", {"rev": 1})
        history.note("watch.event", {"rev": 1})
        history.close()
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 1, "a value cannot forge a line"
    assert lines[0].partition(" ")[2] == (
        'kubelet/node-1 kl.judge pod=d/p message="two words\\nand a line" empty="" used={"cpu":5}'
    )


@contextmanager
def no_room() -> Iterator[None]:
    """Files may not grow beyond 4096 bytes: no file of this process, so nothing else may be written meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_costs_records_and_the_gap_is_told(tmp_path: Path) -> None:
    history = History(str(tmp_path), AUTHOR, Clock())
    for _ in range(40):
        history.note("n", {"padding": "x" * 50})
    with no_room():
        history.flush()
    os.truncate(tmp_path / "kubelet_node-1.7.jsonl", 0)
    history.note("after", {})
    history.close()
    kinds = [(one["kind"], one.get("records")) for one in records(tmp_path)]
    assert kinds == [("history.gap", 40), ("after", None)]
