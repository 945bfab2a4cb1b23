"""The shape of a history record (docs/histories.md), whoever writes it: a host's file or the simulated world."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

ENVELOPE = ("run", "seed", "proc", "inc", "seq", "mono_ns", "wall", "kind")
"""Fields that a ``Note`` must not bring itself. ``node`` is not among them: a note that names a node means that one."""

_TAKEN = frozenset((*ENVELOPE, "node"))
_encode = msgspec.json.Encoder().encode


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


class Lines:
    """One author's records as JSON; what they all begin with is encoded once, which halves the cost of a line."""

    def __init__(self, author: Author) -> None:
        first = {"run": author.run, "seed": author.seed, "proc": author.proc}
        self._head = _encode(first)[:-1] + b',"node":'
        self._node = _encode(author.node)
        self._inc = b',"inc":%d,"seq":' % author.inc

    def line(self, seq: int, mono_ns: int, wall: int, kind: str, fields: Mapping[str, Any]) -> bytes:
        """``record`` of the same, encoded."""
        node = self._node
        if not _TAKEN.isdisjoint(fields):
            node = _encode(fields["node"]) if "node" in fields else node
            fields = {name: value for name, value in fields.items() if name not in _TAKEN}
        times = b'%d,"mono_ns":%d,"wall":%d,"kind":' % (seq, mono_ns, wall)
        line = self._head + node + self._inc + times + _encode(kind)
        return line + b"," + _encode(fields)[1:] if fields else line + b"}"
