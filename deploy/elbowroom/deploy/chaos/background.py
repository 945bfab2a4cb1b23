"""Work beside a run that goes on until it is told to end."""

import threading
from collections.abc import Callable


class Background:
    """``work(over)`` in a thread of its own, which is to return soon after ``over`` is set."""

    def __init__(self, work: Callable[[threading.Event], None]) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=work, args=(self._over,))
        self._thread.start()

    def end(self) -> None:
        """Tell it, and wait until it has returned."""
        self._over.set()
        self._thread.join()
