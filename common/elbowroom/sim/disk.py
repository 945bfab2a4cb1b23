"""A simulated disk: what was not synced when the process died may be there or not."""

import random
from collections.abc import Callable, Sequence

from elbowroom.machine import Persist

_REPLACEMENT = 4
"""Labels of a file's replacement: temporary written, fsynced, renamed, directory fsynced."""
_RENAMED = 3


class SimDisk:
    """Keeps what was made durable over its machine's lives. One write is under way at a time.

    A crash during a write leaves the old or the new value, as chance decides; where the labels are those of a file's replacement,
    only what is possible then: before the rename the old value, after the last label the new one.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._durable: dict[str, bytes] = {}
        self._write: Persist | None = None
        self._reached = 0
        self.failing = 0
        """So many of the next writes fail with ``OSError`` (disk full), which ends the process."""

    def load(self) -> dict[str, bytes]:
        return dict(self._durable)

    def commit(self, writes: Sequence[Persist], step: Callable[[str], None]) -> None:
        for write in writes:
            self.begin(write)
            for label in write.labels:
                self.reached()
                step(label)
            self.finish()

    def close(self) -> None:
        """Its content stays."""

    def begin(self, write: Persist) -> None:
        """The write is under way until ``finish``."""
        if self.failing:
            self.failing -= 1
            raise OSError(28, "no space left on the simulated disk")
        self._write, self._reached = write, 0

    def reached(self) -> None:
        """One more of the write's labels is behind it."""
        self._reached += 1

    def finish(self) -> None:
        """The write is durable."""
        write, self._write = self._write, None
        if write is not None:
            self._apply(write)

    def crash(self) -> None:
        """The process died: decide what is left of the write under way."""
        write, self._write = self._write, None
        if write is None:
            return
        labels = len(write.labels)
        certainly = labels == _REPLACEMENT and self._reached >= labels
        perhaps = labels != _REPLACEMENT or self._reached >= _RENAMED
        if certainly or (perhaps and self._rng.random() < 0.5):
            self._apply(write)

    def damage(self, key: str) -> None:
        """Flip one bit of a value that is durable, if there is one."""
        value = bytearray(self._durable.get(key, b""))
        if value:
            value[self._rng.randrange(len(value))] ^= 1 << self._rng.randrange(8)
            self._durable[key] = bytes(value)

    def _apply(self, write: Persist) -> None:
        if write.value is None:
            self._durable.pop(write.key, None)
        else:
            self._durable[write.key] = write.value
