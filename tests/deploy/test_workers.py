"""Work that nobody waits for any more keeps nobody."""

import signal
import threading
from collections.abc import Iterator

import pytest

from elbowroom.deploy.workers import workers


def pause(_: int) -> None:
    signal.pause()


def test_whoever_is_told_to_end_waits_for_no_work_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)  # it is changed for good

    def told_to_end() -> Iterator[None]:
        with workers(2) as pool:
            begun = [pool.submit(pause, number) for number in range(4)]
            assert not any(one.done() for one in begun)
            yield
            raise SystemExit(143)

    running = told_to_end()
    next(running)
    with pytest.raises(SystemExit):
        next(running)


def test_work_is_done_side_by_side() -> None:
    with workers(2) as pool:
        assert list(pool.map(abs, [-1, 2, -3])) == [1, 2, 3]
