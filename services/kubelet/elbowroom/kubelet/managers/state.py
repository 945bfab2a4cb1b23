"""What the CPU manager has given to whom, and the file that remembers it: ``cpu_manager_state`` (RM-30, XC-40).

The state is a value; each change makes a new one. The file is upstream's: the v2 fields with their checksum, which an older kubelet
can read, and beside them, only where there is something to say, ``data`` (a JSON string) with its own: the pods' sets, and the sets
that resized containers were first given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec

from elbowroom.kubelet.checkpoint import checksum, fnv
from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet, CPUSetError
from elbowroom.machine import Instant

CPU_STATE = "cpu_manager_state"

Sets = Mapping[str, CPUSet]
_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class Leaving:
    """A container keeps ``cpus`` of its entry and leaves the others at ``due`` or soon after (KEP-6122)."""

    cpus: CPUSet
    due: Instant
    boot: str = ""
    """The boot of the machine under which ``due`` means something; what has none is not written to the file."""


@dataclass(frozen=True, slots=True)
class CPUState:
    """Who has which CPUs. Keys are pod uids, then container names."""

    default: CPUSet = NOBODY
    """The node's shared pool, reserved CPUs included unless they are strictly reserved."""
    entries: Mapping[str, Sets] = field(default_factory=dict)
    """A container's own set, or its part of its pod's."""
    pods: Sets = field(default_factory=dict)
    """The set of a pod with pod-level resources, of which its containers have parts."""
    originals: Mapping[str, Sets] = field(default_factory=dict)
    """What a container was given when it was admitted, kept while resizes change its entry."""
    leaving: Mapping[str, Mapping[str, Leaving]] = field(default_factory=dict)
    """Who is to have fewer CPUs than its entry holds, once its time to leave them is over."""

    def of(self, uid: str, container: str) -> CPUSet | None:
        """The container's set; None if it has none of its own."""
        return self.entries.get(uid, {}).get(container)

    def original(self, uid: str, container: str) -> CPUSet | None:
        return self.originals.get(uid, {}).get(container)

    def effective(self, uid: str, container: str) -> CPUSet:
        """Where the container runs: its own set or the shared pool."""
        own = self.of(uid, container)
        return self.default if own is None else own

    def siblings(self, uid: str, container: str) -> CPUSet:
        """What the pod's other containers have."""
        bits = 0
        for name, cpus in self.entries.get(uid, {}).items():
            bits |= 0 if name == container else cpus.bits
        return CPUSet(bits)

    @property
    def assigned(self) -> CPUSet:
        """Everything that is in an entry."""
        bits = 0
        for entry in self.entries.values():
            for cpus in entry.values():
                bits |= cpus.bits
        return CPUSet(bits)

    def with_default(self, cpus: CPUSet) -> "CPUState":
        return replace(self, default=cpus)

    def with_entry(self, uid: str, container: str, cpus: CPUSet) -> "CPUState":
        return replace(self, entries=_put(self.entries, uid, container, cpus))

    def with_original(self, uid: str, container: str, cpus: CPUSet) -> "CPUState":
        return replace(self, originals=_put(self.originals, uid, container, cpus))

    def with_leaving(self, uid: str, container: str, leaving: Leaving) -> "CPUState":
        return replace(self, leaving=_put(self.leaving, uid, container, leaving))

    def without_leaving(self, uid: str, container: str) -> "CPUState":
        return replace(self, leaving=_drop(self.leaving, uid, container)) if uid in self.leaving else self

    def without_entry(self, uid: str, container: str) -> "CPUState":
        """Without the container's entry, its original set, and what it was to leave; the pools are as they were."""
        return replace(
            self,
            entries=_drop(self.entries, uid, container),
            originals=_drop(self.originals, uid, container),
            leaving=_drop(self.leaving, uid, container),
        )

    def with_pod(self, uid: str, cpus: CPUSet) -> "CPUState":
        return replace(self, pods={**self.pods, uid: cpus})

    def without_pod(self, uid: str) -> "CPUState":
        """Without the pod's set and all that its containers had; the pools are as they were."""
        return replace(
            self,
            pods={key: cpus for key, cpus in self.pods.items() if key != uid},
            entries={key: entry for key, entry in self.entries.items() if key != uid},
            originals={key: entry for key, entry in self.originals.items() if key != uid},
            leaving={key: entry for key, entry in self.leaving.items() if key != uid},
        )


def _put(entries: Mapping[str, Mapping[str, _Kept]], uid: str, container: str, kept: _Kept) -> Mapping[str, Mapping[str, _Kept]]:
    return {**entries, uid: {**entries.get(uid, {}), container: kept}}


def _drop(entries: Mapping[str, Mapping[str, _Kept]], uid: str, container: str) -> Mapping[str, Mapping[str, _Kept]]:
    left = {name: kept for name, kept in entries.get(uid, {}).items() if name != container}
    others = {key: entry for key, entry in entries.items() if key != uid}
    return {**others, uid: left} if left else others


# ---------------------------------------------------------------- the file


class StateError(Exception):
    """The file can't be used, so the kubelet must not start. ``why`` is upstream's text without the advice."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


class _PodEntry(msgspec.Struct, frozen=True, rename="camel"):
    cpu_set: str = msgspec.field(default="", name="cpuSet")


class _Leaving(msgspec.Struct, frozen=True, rename="camel"):
    cpu_set: str = msgspec.field(default="", name="cpuSet")
    apply_time: int = 0
    boot_id: str = msgspec.field(default="", name="bootID")


class _Data(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    pod_entries: dict[str, _PodEntry] = {}
    originals: dict[str, dict[str, str]] = msgspec.field(default={}, name="original")
    leaving: dict[str, dict[str, _Leaving]] = msgspec.field(default={}, name="preAssignments")


class _File(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    policy_name: str = ""
    default_cpu_set: str = msgspec.field(default="", name="defaultCpuSet")
    entries: dict[str, dict[str, str]] = {}
    checksum: int = 0
    data: str = ""
    data_checksum: int = 0


def encode(state: CPUState, policy: str) -> bytes:
    """The file for this state."""
    entries = {uid: {name: str(cpus) for name, cpus in sorted(entry.items())} for uid, entry in sorted(state.entries.items())}
    made = _File(policy_name=policy, default_cpu_set=str(state.default), entries=entries)
    pods = {uid: _PodEntry(cpu_set=str(cpus)) for uid, cpus in sorted(state.pods.items())}
    originals = {uid: {name: str(cpus) for name, cpus in sorted(kept.items())} for uid, kept in sorted(state.originals.items())}
    leaving = _told(state.leaving)
    told = _Data(pods, originals, leaving)
    data = msgspec.json.encode(told, order="sorted").decode() if pods or originals or leaving else ""
    body = msgspec.to_builtins(made)
    body |= {"policyName": policy, "defaultCpuSet": str(state.default), "checksum": _digest(made)}
    if data:
        body |= {"data": data, "dataChecksum": checksum(data.encode())}
    order = ("policyName", "defaultCpuSet", "entries", "checksum", "data", "dataChecksum")
    return msgspec.json.encode({name: body[name] for name in order if name in body})


def decode(raw: bytes, policy: str) -> CPUState:
    """The state in a file that a kubelet of ``policy`` wrote; ``StateError`` if it is another's or not what was written."""
    try:
        found = msgspec.json.decode(raw, type=_File)
    except (msgspec.MsgspecError, ValueError, RecursionError) as why:
        raise StateError(str(why)) from why
    if found.checksum and found.checksum != _digest(found):
        raise StateError("checkpoint is corrupted")
    if found.policy_name != policy:
        raise StateError(f'configured policy "{policy}" differs from state checkpoint policy "{found.policy_name}"')
    if found.data and checksum(found.data.encode()) != found.data_checksum:
        raise StateError("checkpoint is corrupted")
    try:
        data = msgspec.json.decode(found.data, type=_Data) if found.data else _Data()
    except (msgspec.MsgspecError, ValueError, RecursionError) as why:
        raise StateError(str(why)) from why
    return CPUState(
        default=_parsed(found.default_cpu_set, f'could not parse default cpu set "{found.default_cpu_set}"'),
        entries=_sets(found.entries),
        pods={
            uid: _parsed(entry.cpu_set, f'could not parse cpuset "{entry.cpu_set}" for pod "{uid}"')
            for uid, entry in data.pod_entries.items()
        },
        originals=_sets(data.originals),
        leaving={
            uid: {
                name: Leaving(
                    _parsed(told.cpu_set, f'could not parse cpuset "{told.cpu_set}"'), Instant(told.apply_time), told.boot_id
                )
                for name, told in entry.items()
            }
            for uid, entry in data.leaving.items()
        },
    )


def _told(leaving: Mapping[str, Mapping[str, Leaving]]) -> dict[str, dict[str, _Leaving]]:
    found = {
        uid: {name: _Leaving(str(one.cpus), one.due, one.boot) for name, one in sorted(entry.items()) if one.boot}
        for uid, entry in sorted(leaving.items())
    }
    return {uid: entry for uid, entry in found.items() if entry}


def _sets(entries: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, CPUSet]]:
    return {
        uid: {
            name: _parsed(text, f'could not parse cpuset "{text}" for container "{name}" in pod "{uid}"')
            for name, text in entry.items()
        }
        for uid, entry in entries.items()
    }


def _parsed(text: str, failed: str) -> CPUSet:
    try:
        return CPUSet.parse(text)
    except CPUSetError as why:
        raise StateError(f"{failed}: {why}") from why


def _digest(file: _File) -> int:
    """Upstream hashes Go's dump of the struct that it had before there was a v3."""
    entries = " ".join(
        f"{uid}:map[{' '.join(f'{name}:{text}' for name, text in sorted(entry.items()))}]"
        for uid, entry in sorted(file.entries.items())
    )
    return fnv(
        f"(*state.CPUManagerCheckpoint){{PolicyName:(string){file.policy_name} DefaultCPUSet:(string){file.default_cpu_set} "
        f"Entries:(map[string]map[string]string)map[{entries}] Checksum:(checksum.Checksum)0}}".encode()
    )
