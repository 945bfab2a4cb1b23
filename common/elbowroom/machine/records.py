"""The shape of a history record (spec/reliability.md 3.0), whoever writes it: a host's file or the simulated world."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ENVELOPE = ("run", "seed", "proc", "inc", "seq", "mono_ns", "wall", "kind")
"""Fields that a ``Note`` must not bring itself. ``node`` is not among them: a note that names a node means that one."""


@dataclass(frozen=True, slots=True)
class Author:
    """One incarnation of a machine: who wrote the records of one file. ``inc`` is its epoch."""

    run: str
    seed: int
    proc: str
    inc: int

    @property
    def node(self) -> str:
        """The node that the machine serves: ``node-1`` of ``kubelet/node-1``; empty for the control plane."""
        kind, _, node = self.proc.partition("/")
        return node if kind in ("kubelet", "runtime") else ""


def record(author: Author, seq: int, mono_ns: int, wall: int, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """One record: the envelope, then the note's fields. ``wall`` is emulated time and ``mono_ns`` real monotonic time, both in
    ns (equal in a simulated world); ``seq`` counts the file's records from 1."""
    made = {
        "run": author.run,
        "seed": author.seed,
        "proc": author.proc,
        "node": author.node,
        "inc": author.inc,
        "seq": seq,
        "mono_ns": mono_ns,
        "wall": wall,
        "kind": kind,
    }
    for name, value in fields.items():
        if name not in ENVELOPE:
            made[name] = value
    return made
