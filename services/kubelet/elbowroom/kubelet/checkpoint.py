"""What the kubelet must not forget: ``allocated_pods_state`` and ``actuated_pods_state`` (RC-85 to RC-90).

Two JSON documents in upstream's format: an outer one with a checksum over the inner one, which is a string. An entry keeps
quantities as the API server wrote them, so a checkpoint survives any change of notation.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from elbowroom.api.objects import ResourceRequirements
from elbowroom.machine import Effect, Note, Persist

ALLOCATED = "allocated_pods_state"
ACTUATED = "actuated_pods_state"

_PRIME, _BASIS = 16777619, 2166136261


class PodResources(
    msgspec.Struct, frozen=True, kw_only=True, rename={"containers": "ContainerResources", "level": "PodLevelResources"}
):
    """One layer of a pod's resources: its containers', init containers included, and its own (pod level)."""

    containers: dict[str, ResourceRequirements] | None = {}
    level: ResourceRequirements | None = None

    def of(self, container: str) -> ResourceRequirements | None:
        """The container's resources; None if the layer does not know the container."""
        return (self.containers or {}).get(container)


class _Outer(msgspec.Struct, frozen=True):
    data: str
    checksum: int


class _Inner(msgspec.Struct, frozen=True, omit_defaults=True):
    entries: dict[str, PodResources] = {}


class CorruptCheckpoint(Exception):
    """The file cannot be trusted, so the kubelet must not start (RC-97). ``note`` tells the history why."""

    def __init__(self, key: str, why: str) -> None:
        self.note = Note("kl.checkpoint.corrupt", {"key": key, "why": why})
        advice = f'please drain this node and delete pod resource information checkpoint file "{key}" before restarting Kubelet'
        super().__init__(f"could not restore state from checkpoint: {why}, {advice}")


def checksum(data: bytes) -> int:
    """RC-87: 32-bit FNV-1a over ``(string)`` and the data."""
    return _hashed(_hashed(_BASIS, b"(string)"), data)


@functools.lru_cache(64)  # thousands of idle kubelets of a process keep the same
def fnv(data: bytes) -> int:
    """32-bit FNV-1a."""
    return _hashed(_BASIS, data)


def _hashed(state: int, data: bytes) -> int:
    prime, even = _PRIME, len(data) & ~1
    for one, two in zip(data[0:even:2], data[1:even:2], strict=True):  # two at a time are a quarter quicker
        state = ((((state ^ one) * prime) ^ two) * prime) & 0xFFFFFFFF
    for byte in data[even:]:
        state = ((state ^ byte) * prime) & 0xFFFFFFFF
    return state


_SEED = _hashed(_BASIS, b"(string)")
_EMPTY, _HEAD, _TAIL = b"{}", b'{"entries":{', b"}}"


def decode(key: str, raw: bytes) -> dict[str, PodResources]:
    """The entries of a file by pod uid; ``CorruptCheckpoint`` if it is not what was written."""
    try:
        outer = msgspec.json.decode(raw, type=_Outer)
        if checksum(outer.data.encode()) != outer.checksum:
            raise CorruptCheckpoint(key, "checkpoint is corrupted")
        return dict(msgspec.json.decode(outer.data, type=_Inner).entries)
    except (msgspec.MsgspecError, ValueError, RecursionError) as why:
        raise CorruptCheckpoint(key, str(why)) from why


@dataclass(slots=True)
class Checkpoint:
    """One file: its entries in memory, and the effects that make them durable.

    The checksum of a file of a hundred pods costs a millisecond, and most writes change one entry: the hash up to the first changed
    entry is kept from the write before.
    """

    key: str
    labels: tuple[str, ...] = ()
    entries: dict[str, PodResources] = field(default_factory=dict)
    _encoded: dict[str, bytes] = field(default_factory=dict)
    _states: list[tuple[bytes, int]] = field(default_factory=list)
    _durable: bytes | None = None

    @classmethod
    def loaded(cls, key: str, disk: Mapping[str, bytes], labels: tuple[str, ...] = ()) -> "Checkpoint":
        """As an earlier life left it; empty if there is no file (RC-94)."""
        raw = disk.get(key)
        made = cls(key, labels, {} if raw is None else decode(key, raw))
        made._durable = raw
        return made

    def get(self, uid: str) -> PodResources | None:
        return self.entries.get(uid)

    def put(self, uid: str, resources: PodResources) -> None:
        """Keep ``resources`` for the pod, replacing what was kept."""
        self.entries[uid] = resources
        self._encoded.pop(uid, None)

    def put_container(self, uid: str, container: str, resources: ResourceRequirements) -> None:
        """Keep one container's."""
        old = self.entries.get(uid, PodResources())
        self.put(uid, PodResources(containers={**(old.containers or {}), container: resources}, level=old.level))

    def put_level(self, uid: str, level: ResourceRequirements | None) -> None:
        """Keep the pod's own."""
        old = self.entries.get(uid, PodResources())
        self.put(uid, PodResources(containers=old.containers, level=level))

    def forget(self, uid: str) -> None:
        """Drop the pod; the file loses it with its next write (RC-90)."""
        self.entries.pop(uid, None)
        self._encoded.pop(uid, None)

    def save(self) -> list[Effect]:
        """Make the entries durable, if they differ from what is: durable before whatever follows. As upstream's, a file begins with
        the first entry."""
        if self._durable is None and not self.entries:
            return []
        raw, digest = self._rendered()
        if raw == self._durable:
            return []
        self._durable = raw
        facts = {"key": self.key, "sha": f"{digest:08x}"}
        return [Note("ckpt.tmp", facts), Persist(self.key, raw, self.labels), Note("ckpt.dirsync", facts)]

    def loaded_note(self) -> Note:
        """What this life begins with."""
        digest = self._rendered()[1] if self._durable is not None else None
        return Note("ckpt.loaded", {"key": self.key, "sha": "" if digest is None else f"{digest:08x}"})

    def _rendered(self) -> tuple[bytes, int]:
        if not self.entries:
            return _outer(_EMPTY, _hashed(_SEED, _EMPTY))
        pieces = [_HEAD]
        state, same = _hashed(_SEED, _HEAD), True
        states: list[tuple[bytes, int]] = []
        for at, uid in enumerate(sorted(self.entries)):
            piece = self._piece(uid)
            if at:
                piece = b"," + piece
            same = same and at < len(self._states) and self._states[at][0] == piece
            state = self._states[at][1] if same else _hashed(state, piece)
            states.append((piece, state))
            pieces.append(piece)
        self._states = states
        pieces.append(_TAIL)
        return _outer(b"".join(pieces), _hashed(state, _TAIL))

    def _piece(self, uid: str) -> bytes:
        piece = self._encoded.get(uid)
        if piece is None:
            entry = msgspec.json.encode(self.entries[uid], order="sorted")
            piece = self._encoded[uid] = msgspec.json.encode(uid) + b":" + entry
        return piece


def _outer(data: bytes, digest: int) -> tuple[bytes, int]:
    return msgspec.json.encode(_Outer(data.decode(), digest)), digest
