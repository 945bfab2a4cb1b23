"""The contract: a service is a state machine that is told what happened and answers with what to do.

Effects are carried out in the order of the list, and the process may die between any two of them. So the order is a
promise: durable before visible, checkpoint before actuation. A host may batch (many ``Persist``, one fsync, then the
``Send``s), never reorder. A machine does no I/O, reads no clock and draws chance only from the ``random.Random`` that its
constructor was given; so the same code runs as a process, as an actor and in the seeded simulated world.
"""

from elbowroom.api.clock import as_micro_time, as_time, parse_time
from elbowroom.machine.contract import (
    Effect,
    FolderRead,
    Input,
    Instant,
    Machine,
    Note,
    PeerConnected,
    Persist,
    Received,
    Send,
    SetTimer,
    Step,
    TimerFired,
    WatchFolder,
    Work,
    WorkDone,
    on_beat,
    seconds,
)

__all__ = [
    "Effect",
    "FolderRead",
    "Input",
    "Instant",
    "Machine",
    "Note",
    "PeerConnected",
    "Persist",
    "Received",
    "Send",
    "SetTimer",
    "Step",
    "TimerFired",
    "WatchFolder",
    "Work",
    "WorkDone",
    "as_micro_time",
    "as_time",
    "on_beat",
    "parse_time",
    "seconds",
]
