"""A disk that keeps nothing: ``store: memory``."""

from collections.abc import Callable, Sequence

from elbowroom.machine import Persist


class MemoryDisk:
    """Satisfies ``Disk``; what is committed is forgotten, so every life starts empty."""

    def load(self) -> dict[str, bytes]:
        """Nothing."""
        return {}

    def commit(self, writes: Sequence[Persist], step: Callable[[str], None]) -> None:
        """Tell the steps, keep nothing."""
        for write in writes:
            for label in write.labels:
                step(label)

    def idle(self) -> None:
        """Nothing to tidy."""

    def close(self) -> None:
        """Nothing to close."""
