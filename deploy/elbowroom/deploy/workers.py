"""Processes side by side for runs that need nothing of each other."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def workers(jobs: int, begin: Callable[[], None] | None = None) -> Iterator[ProcessPoolExecutor]:
    """So many of them, each of which begins with ``begin``. Where whoever asked is told to end, their work is not waited for."""
    with ProcessPoolExecutor(jobs, initializer=begin) as pool:
        try:
            yield pool
        except (KeyboardInterrupt, SystemExit):
            threading.excepthook = lambda _: None  # the pool's thread stumbles over work that was cancelled
            for child in multiprocessing.active_children():
                child.kill()
            raise
