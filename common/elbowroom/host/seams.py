"""The seams: what a host needs of the world, each with a real and a simulated side that pass one conformance suite."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from elbowroom.machine import Input, Persist, Send, Work


class Disk(Protocol):
    """Where a machine's ``Persist`` effects go. Used by one thread at a time."""

    def load(self) -> dict[str, bytes]:
        """All that earlier lives made durable."""
        ...

    def commit(self, writes: Sequence[Persist], step: Callable[[str], None]) -> None:
        """Carry out ``writes`` in order, durable on return (one fsync for all where the store allows).

        ``step`` is told each label of ``Persist.labels`` when the file's replacement reaches that point; that of
        ``machine.steps.unheard`` need not be. Raises ``OSError`` if it cannot be done; then nothing of the group may be believed
        durable, and the host ends the process.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class IdleDisk(Disk, Protocol):
    """A disk that has something to tidy up."""

    def idle(self) -> None:
        """Nothing was written for a while. ``OSError`` if it cannot be done now, which does no harm."""
        ...


class Driver(Protocol):
    """What must touch the world on behalf of a machine: an HTTP facade, a watched folder. Loaded by the host.

    ``Send`` effects to a target that begins with ``prefix`` go to ``deliver`` instead of the bus, ``Work`` effects to ``work``;
    ``post`` feeds an input to the machine, on the loop's thread.
    """

    prefix: str

    async def start(self, post: Callable[[Input], None]) -> Mapping[str, Any]:
        """Begin; returns facts for the supervisor (``{"port": 6443}``)."""
        ...

    def deliver(self, effect: Send) -> None: ...

    def work(self, effect: Work) -> None: ...

    async def stop(self) -> None: ...
