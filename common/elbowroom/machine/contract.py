"""Inputs, effects and the machine between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NewType, Protocol

from elbowroom.wire import Message

Instant = NewType("Instant", int)
"""A point in (emulated) time: nanoseconds since the Unix epoch. It never goes back while a process lives."""


def seconds(amount: float) -> int:
    """A span of time in nanoseconds: ``now + seconds(1.5)``."""
    return round(amount * 1_000_000_000)


# ---------------------------------------------------------------- what happened


@dataclass(frozen=True, slots=True)
class Received:
    """A peer's message arrived. ``source`` is the peer's name: ``apiserver``, ``kubelet/node-1``, ``http/17``."""

    source: str
    message: Message


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The timer of that name came due. A timer that was set again or cancelled meanwhile does not fire."""

    name: str


@dataclass(frozen=True, slots=True)
class WorkDone:
    """A ``Work`` effect ended with ``outcome``, whose type the task decides."""

    token: str
    outcome: Any


@dataclass(frozen=True, slots=True)
class PeerConnected:
    """The connection to ``peer`` broke, and for a peer that this machine dials it is up again (not told for the first time).

    For a peer that dials this machine: a message found it gone; told once, until it is heard of again.

    Only a hint that makes recovery quick: whatever was in flight may be lost, every stream of that peer is over and every
    open call's outcome unknown. Silence timers and deadlines give the same certainty later.
    """

    peer: str


@dataclass(frozen=True, slots=True)
class FolderRead:
    """What is in a folder that the machine watches: told once at first, and again whenever it has changed.

    ``files`` are the regular files by name, in the order of their names, without those whose name begins with a dot; None stands
    for one that could not be read or is too large. No folder is an empty one. If ``path`` is a file, that is the only one.
    """

    path: str
    files: Mapping[str, bytes | None]


Input = Received | TimerFired | WorkDone | PeerConnected | FolderRead


# ---------------------------------------------------------------- what to do


@dataclass(frozen=True, slots=True)
class Send:
    """Hand ``message`` to ``target``. At most once, in order on one connection; a target that is away loses it."""

    target: str
    message: Message


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Fire ``TimerFired(name)`` at ``at`` (replacing a timer of that name); ``None`` cancels."""

    name: str
    at: Instant | None


@dataclass(frozen=True, slots=True)
class Persist:
    """Make ``key`` hold ``value`` (``None`` removes it), durable before any later effect is carried out.

    ``labels`` names the chaos steps inside the write, for those who have any: of a file's replacement temp written, temp fsynced,
    renamed, directory fsynced; of a row of a log its bytes written, before they are durable.
    """

    key: str
    value: bytes | None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """Run ``task`` outside the machine (a driver knows how) and report ``WorkDone(token, outcome)``."""

    token: str
    task: Any


@dataclass(frozen=True, slots=True)
class WatchFolder:
    """A task for ``Work``: tell of the folder at ``path`` by ``FolderRead``, for as long as this life lasts.

    There is no ``WorkDone``. A relative path is taken from where the host was told that the machine's files are.
    """

    path: str


@dataclass(frozen=True, slots=True)
class Note:
    """A fact for the history and the log: a dotted name and plain fields (JSON-shaped)."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A labelled point (``K3``, ``S6.1``) at which chaos may crash, stop or delay the process."""

    label: str


Effect = Send | SetTimer | Persist | Work | Note | Step


class Machine(Protocol):
    """A service. One instance is one incarnation: it is started once and then stepped."""

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        """Begin a life from what earlier ones persisted."""
        ...

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        """What to do about ``happened``. It never raises on a peer's nonsense; a raised error is a bug and ends the process."""
        ...
