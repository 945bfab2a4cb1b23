"""Inputs, effects and the machine between them.

They are Structs, not dataclasses: hundreds are made for a single resize, and a frozen dataclass takes five times as long to make.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NewType, Protocol

import msgspec

from elbowroom.wire import Message

Instant = NewType("Instant", int)
"""A point in (emulated) time: nanoseconds since the Unix epoch. It never goes back while a process lives."""


def seconds(amount: float) -> int:
    """A span of time in nanoseconds: ``now + seconds(1.5)``."""
    return round(amount * 1_000_000_000)


def on_beat(at: int, beat: int) -> Instant:
    """The first beat (a whole number of ``beat`` ns) that is no earlier than ``at``: who need not act to the millisecond acts on
    beats, so that thousands of machines wake their process once, and those that they speak to, instead of one by one."""
    return Instant(at + -at % beat)


# ---------------------------------------------------------------- what happened


class Received(msgspec.Struct, frozen=True):
    """A peer's message arrived. ``source`` is the peer's name: ``apiserver``, ``kubelet/node-1``, ``http/17``."""

    source: str
    message: Message


class TimerFired(msgspec.Struct, frozen=True):
    """The timer of that name came due. A timer that was set again or cancelled meanwhile does not fire."""

    name: str


class WorkDone(msgspec.Struct, frozen=True):
    """A ``Work`` effect ended with ``outcome``, whose type the task decides."""

    token: str
    outcome: Any


class PeerConnected(msgspec.Struct, frozen=True):
    """The connection to ``peer`` broke, and for a peer that this machine dials it is up again (not told for the first time).

    For a peer that dials this machine: a message found it gone; told once, until it is heard of again.

    Only a hint that makes recovery quick: whatever was in flight may be lost, every stream of that peer is over and every
    open call's outcome unknown. Silence timers and deadlines give the same certainty later.
    """

    peer: str


class FolderRead(msgspec.Struct, frozen=True):
    """What is in a folder that the machine watches: told once at first, and again whenever it has changed.

    ``files`` are the regular files by name, in the order of their names, without those whose name begins with a dot; None stands
    for one that could not be read or is too large. No folder is an empty one. If ``path`` is a file, that is the only one.
    """

    path: str
    files: Mapping[str, bytes | None]


Input = Received | TimerFired | WorkDone | PeerConnected | FolderRead


# ---------------------------------------------------------------- what to do


class Send(msgspec.Struct, frozen=True):
    """Hand ``message`` to ``target``. At most once, in order on one connection; a target that is away loses it."""

    target: str
    message: Message


class SetTimer(msgspec.Struct, frozen=True):
    """Fire ``TimerFired(name)`` at ``at`` (replacing a timer of that name); ``None`` cancels."""

    name: str
    at: Instant | None


class Persist(msgspec.Struct, frozen=True):
    """Make ``key`` hold ``value`` (``None`` removes it), durable before any later effect is carried out.

    ``labels`` names the chaos steps inside the write, for those who have any: of a file's replacement temp written, temp fsynced,
    renamed, directory fsynced; of a row of a log its bytes written, before they are durable.
    """

    key: str
    value: bytes | None
    labels: tuple[str, ...] = ()


class Work(msgspec.Struct, frozen=True):
    """Run ``task`` outside the machine (a driver knows how) and report ``WorkDone(token, outcome)``."""

    token: str
    task: Any


class WatchFolder(msgspec.Struct, frozen=True):
    """A task for ``Work``: tell of the folder at ``path`` by ``FolderRead``, for as long as this life lasts.

    There is no ``WorkDone``. A relative path is taken from where the host was told that the machine's files are.
    """

    path: str


class Note(msgspec.Struct, frozen=True):
    """A fact for the history and the log: a dotted name and plain fields (JSON-shaped)."""

    name: str
    fields: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Step(msgspec.Struct, frozen=True):
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
