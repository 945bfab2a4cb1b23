"""What a host process runs, and what it and its supervisor say to each other.

A ``HostSpec`` travels to the process as msgpack. The control channel is a DEALER in the process (its identity is the process's
name) and a ROUTER at the supervisor, one frame of ``encode`` per message.
"""

from typing import Any

import msgspec

from elbowroom.host.keys import Keys


class DiskSpec(msgspec.Struct, frozen=True):
    """Where a machine's ``Persist`` effects go.

    ``kind``: ``memory`` (outlives the machine's incarnations, not the process), ``boot`` (a directory at ``path`` that outlives the
    process, not the computer's next boot), ``files`` (a directory that outlives both), or ``module:Class``, called with ``path``
    (``elbowroom.apiserver.drivers.sqlite:SqliteDisk``).
    """

    kind: str = "memory"
    path: str = ""


class DriverSpec(msgspec.Struct, frozen=True):
    """A driver: ``factory`` is ``module:function`` and is called with ``config``; it returns a ``seams.Driver``."""

    factory: str
    config: dict[str, Any] = {}


class MachineSpec(msgspec.Struct, frozen=True):
    """A machine in a process.

    ``name`` is its peer name; ``factory`` is ``module:function``, called as ``build(config, rng)``. The host adds ``name`` to
    ``config``, and ``epoch`` where it is absent or this is not the machine's first life in the process. ``bind`` is the address its
    ROUTER listens at, ``dial`` maps the names of the peers that it calls to their addresses. An ``inproc:`` address is one inside
    the process, without sockets; ``trunk+`` before a dialled address shares one socket among all machines of the process that do.
    Bound at ``tcp://*:*`` it listens at the process's ``interface``, where a port is free (``Ready`` tells which). A dialled
    address that is empty is not known yet: ``PeerMoved`` will tell.
    """

    name: str
    factory: str
    config: dict[str, Any] = {}
    bind: str = ""
    dial: dict[str, str] = {}
    disk: DiskSpec = DiskSpec()
    drivers: list[DriverSpec] = []


class HostSpec(msgspec.Struct, frozen=True):
    """A process and the machines it runs.

    ``control`` is the supervisor's address (none: nobody is told), ``history`` the directory of the history files (none: no
    history), ``run`` the run's id, ``log`` the file for standard output and error of a forked process. ``time_scale`` is how many
    emulated seconds pass in a real one since ``origin`` (ns since the epoch, the same for all processes of a cluster; 0: since
    this process started). ``nice`` is how far the process gives way to others where processors are short (0 to 19).

    ``line`` is the process's routing id, if it is not its name: where an earlier life may still be alive each has its own,
    ``NAME#NUMBER`` with a number that rises. ``keys`` are those of the cluster's members, needed for tcp addresses. ``interface``
    is where other machines reach this one. ``remote``: nobody is near who could thaw the process, so what would stop it pauses its
    machines instead. ``moved``: its life before was on another machine, so what that one kept is not here. ``armed`` are failpoints
    that stand before any machine starts.
    """

    process: str
    machines: list[MachineSpec]
    control: str = ""
    history: str = ""
    run: str = ""
    seed: int = 0
    time_scale: float = 1.0
    origin: int = 0
    log: str = ""
    nice: int = 0
    line: str = ""
    keys: Keys | None = None
    interface: str = "127.0.0.1"
    remote: bool = False
    moved: bool = False
    armed: "list[Arm]" = []


# ---------------------------------------------------------------- host -> supervisor


class Started(msgspec.Struct, frozen=True, tag="started"):
    """The process is up; its machines are about to start."""

    process: str
    pid: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """A machine has started: its sockets are open, its disk is read, its drivers run. ``facts`` are the drivers' (``port``),
    ``address`` is where it listens ("": nowhere)."""

    machine: str
    epoch: int
    facts: dict[str, Any] = {}
    address: str = ""


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A machine's incarnation ended: ``stopped``, ``removed``, ``restarted``, or ``failed: ...``."""

    machine: str
    why: str


class Armed(msgspec.Struct, frozen=True, tag="armed"):
    """The failpoint stands."""

    machine: str
    label: str


class Fired(msgspec.Struct, frozen=True, tag="fired"):
    """The failpoint's step was reached for the ``hits``-th time; the action follows at once.

    Before a kill or stop it comes over a connection of its own (identity ``PROCESS!``), so that it is not lost with the process.
    """

    machine: str
    label: str


Report = Started | Ready | Ended | Armed | Fired


# ---------------------------------------------------------------- supervisor -> host


class Arm(msgspec.Struct, frozen=True, tag="arm"):
    """At the ``hits``-th time (counted from now) that ``machine`` reaches step ``label``, do ``action``, once.

    ``label`` is a step's whole label or its first word: ``K4`` matches ``K4`` and ``K4 checkpoint temp written``, not ``K4.1``.
    ``action``: ``kill`` (SIGKILL of the process), ``stop`` (SIGSTOP), ``delay:SECONDS`` (the machine's effects wait so long). A
    machine that shares its process is restarted or paused instead.
    """

    machine: str
    label: str
    hits: int = 1
    action: str = "kill"


class AddMachine(msgspec.Struct, frozen=True, tag="add"):
    spec: MachineSpec


class RemoveMachine(msgspec.Struct, frozen=True, tag="remove"):
    name: str


class RestartMachine(msgspec.Struct, frozen=True, tag="restart"):
    """End the incarnation as if it were killed and begin a new one from the disk, with a new epoch."""

    name: str


class PauseMachine(msgspec.Struct, frozen=True, tag="pause"):
    """SIGSTOP for a machine that shares its process: it takes no input, fires no timer, carries out no effect."""

    name: str


class ResumeMachine(msgspec.Struct, frozen=True, tag="resume"):
    name: str


class BreakDisk(msgspec.Struct, frozen=True, tag="break-disk"):
    """The next ``commits`` commits of a machine fail. ``how``: ``full`` (ENOSPC, nothing is written) or ``fsync`` (EIO when the
    write was handed over already: nobody knows whether it is durable)."""

    name: str
    how: str
    commits: int = 1


class StepClock(msgspec.Struct, frozen=True, tag="step-clock"):
    """The process's clock jumps by so many emulated seconds, also back."""

    seconds: float


class PeerMoved(msgspec.Struct, frozen=True, tag="peer-moved"):
    """``peer`` listens at ``address`` now: the machines of the process that dial it connect there, also in later lives."""

    peer: str
    address: str


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    """End the process in order."""


Order = (
    Arm | AddMachine | RemoveMachine | RestartMachine | PauseMachine | ResumeMachine | BreakDisk | StepClock | PeerMoved | Shutdown
)

_encoder = msgspec.msgpack.Encoder()
_spec_decoder: msgspec.msgpack.Decoder[HostSpec] = msgspec.msgpack.Decoder(HostSpec)
_report_decoder: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)
_order_decoder: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)


def encode(value: HostSpec | Report | Order) -> bytes:
    """A spec or control message as one frame."""
    return _encoder.encode(value)


def decode_spec(frame: bytes) -> HostSpec:
    """``msgspec.MsgspecError`` if it is none; so for the two below."""
    return _spec_decoder.decode(frame)


def decode_report(frame: bytes) -> Report:
    return _report_decoder.decode(frame)


def decode_order(frame: bytes) -> Order:
    return _order_decoder.decode(frame)
