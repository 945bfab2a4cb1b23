"""The static memory policy: whose memory comes from which NUMA nodes (RM-24 to RM-27).

Nodes are used alone or in fixed groups: one that is part of a group in use is not used alone, and the other way round. Pure like
the CPU policy: decisions take a ``MemoryState`` and give the next one. Sizes in bytes; a mask has bit n for node n.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from elbowroom.kubelet.checkpoint import fnv
from elbowroom.kubelet.managers.cpuset import ids_of
from elbowroom.kubelet.managers.hints import Hint, Hints
from elbowroom.kubelet.managers.state import StateError

MEMORY_STATE = "memory_manager_state"

Sizes = Mapping[str, int]
"""Bytes by resource: ``memory``, ``hugepages-...``."""
Reusable = Mapping[int, Sizes]
"""What a pod's ordinary init containers leave behind, by mask."""


class Block(msgspec.Struct, frozen=True, rename="camel"):
    """So much of one kind of memory on one node, or spread over a group of them."""

    numa_affinity: tuple[int, ...] = msgspec.field(name="numaAffinity")
    type: str
    size: int

    @property
    def mask(self) -> int:
        return _mask(self.numa_affinity)


Blocks = tuple[Block, ...]


class Table(msgspec.Struct, frozen=True, rename="camel"):
    """One kind of memory of one node."""

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int


class NodeMemory(msgspec.Struct, frozen=True, rename="camel"):
    """A node's memory; ``cells`` are the nodes that it is used together with, itself among them."""

    number_of_assignments: int
    memory_map: dict[str, Table]
    cells: tuple[int, ...]


Machine = Mapping[int, NodeMemory]


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Who has memory where. Keys are pod uids, then container names."""

    machine: Machine = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, Blocks]] = field(default_factory=dict)
    pods: Mapping[str, Blocks] = field(default_factory=dict)

    def of(self, uid: str, container: str) -> Blocks | None:
        return self.entries.get(uid, {}).get(container)

    def with_entry(self, uid: str, container: str, blocks: Blocks) -> "MemoryState":
        return replace(self, entries={**self.entries, uid: {**self.entries.get(uid, {}), container: blocks}})

    def without_entry(self, uid: str, container: str) -> "MemoryState":
        left = {name: blocks for name, blocks in self.entries.get(uid, {}).items() if name != container}
        others = {key: entry for key, entry in self.entries.items() if key != uid}
        return replace(self, entries={**others, uid: left} if left else others)


@dataclass(frozen=True, slots=True)
class Placed:
    """The state with the memory given, and what the pod's later containers may still take over."""

    state: MemoryState
    reusable: Reusable = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoMemory:
    """Not possible; the text is upstream's."""

    message: str


@dataclass(frozen=True, slots=True)
class StaticMemory:
    """The policy of a machine: of each node, by resource, its total and what is reserved for the system."""

    nodes: Mapping[int, Mapping[str, tuple[int, int]]]

    @property
    def initial(self) -> MemoryState:
        return MemoryState(
            {
                node: NodeMemory(
                    0,
                    {name: Table(total, kept, total - kept, 0, total - kept) for name, (total, kept) in sorted(tables.items())},
                    (node,),
                )
                for node, tables in sorted(self.nodes.items())
            }
        )

    def checked(self, state: MemoryState) -> MemoryState:
        """A state read from a file, if this machine can have it; ``StateError`` otherwise."""
        if not state.machine:
            if state.entries:
                raise StateError("[memorymanager] machine state can not be empty when it has memory assignments")
            return self.initial
        expected = self.initial.machine
        for uid, entry in sorted(state.entries.items()):
            named = {"": state.pods[uid]} if uid in state.pods else entry
            for container, blocks in sorted(named.items()):
                for block in blocks:
                    where = f"[memorymanager] (pod: {uid}, container: {container}) the memory assignment uses"
                    if any(node not in expected for node in block.numa_affinity):
                        raise StateError(f"{where} the NUMA that does not exist")
                    if any(block.type not in expected[node].memory_map for node in block.numa_affinity):
                        raise StateError(f"{where} memory resource that does not exist")
                    expected = _taken(expected, block)
        if not _equal(state.machine, expected):
            raise StateError("[memorymanager] the expected machine state is different from the real one")
        return state

    # ------------------------------------------------------------ hints

    def hints(self, state: MemoryState, wanted: Sizes, reusable: Reusable | None = None) -> Hints:
        """The masks on which all of ``wanted`` fits. Nowhere is, as upstream has it, no preference: giving it then fails."""
        found = self._hints(state, wanted, reusable or {})
        return dict.fromkeys(sorted(wanted), found) if found else None

    def _hints(self, state: MemoryState, wanted: Sizes, reusable: Reusable) -> list[Hint]:
        machine, nodes = state.machine, sorted(state.machine)
        narrowest, found = len(nodes), []
        for size in range(1, len(nodes) + 1):
            for combo in itertools.combinations(nodes, size):
                if any(_sum(machine, combo, name, "allocatable") < amount for name, amount in wanted.items()):
                    continue
                narrowest = min(narrowest, size)
                mask = _mask(combo)
                left = reusable.get(mask, {})
                fits = all(_sum(machine, combo, name, "free") + left.get(name, 0) >= amount for name, amount in wanted.items())
                if fits and not _grouped_otherwise(machine, combo):
                    found.append(mask)
        return [Hint(mask, mask.bit_count() == narrowest) for mask in found]

    def regenerated(self, blocks: Blocks, wanted: Sizes) -> Hints:
        """The hints for what is there already; no preference if it is of another size (RM-27)."""
        if len(blocks) != len(wanted) or any(wanted.get(block.type) != block.size for block in blocks):
            return None
        return {block.type: [Hint(block.mask, True)] for block in blocks}

    # ------------------------------------------------------------ giving

    def place(self, state: MemoryState, wanted: Sizes, hint: Hint, reusable: Reusable | None = None) -> int | NoMemory:
        """RM-25: the mask that the memory comes from, given what the topology manager advised."""
        left = reusable or {}
        best = hint
        if hint.affinity is None:
            options = self._hints(state, wanted, left)
            if not options:
                return NoMemory(
                    "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"
                )
            best = _best(options)
            if hint.preferred and not best.preferred:
                return NoMemory("[memorymanager] failed to find the default preferred hint")
        assert best.affinity is not None, "the default hint names nodes"
        mask = best.affinity
        if any(_sum(state.machine, ids_of(mask), name, "free") < amount for name, amount in wanted.items()):
            options = [h for h in self._hints(state, wanted, left) if h.affinity is not None and not mask & ~h.affinity]
            if not options:
                return NoMemory("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
            extended = _best(options)
            if best.preferred and not extended.preferred:
                return NoMemory("[memorymanager] failed to find the extended preferred hint")
            assert extended.affinity is not None, "hints of this policy name nodes"
            mask = extended.affinity
        if mask.bit_count() > 1 and _grouped_otherwise(state.machine, tuple(ids_of(mask))):
            return NoMemory("[memorymanager] preferred hint violates NUMA node allocation")
        return mask

    def allocate(
        self,
        state: MemoryState,
        uid: str,
        container: str,
        wanted: Sizes,
        hint: Hint,
        reusable: Reusable,
        *,
        init: Sequence[str] | None,
    ) -> Placed | NoMemory:
        """Memory for one container. ``init``: None if it is itself an ordinary init container, else those before it: what they
        leave is taken over first, and counted for this container from then on."""
        known = state.of(uid, container)
        if known is not None:
            return Placed(state, _after(reusable, known, leaves=init is None))
        found = self.place(state, wanted, hint, reusable)
        if isinstance(found, NoMemory):
            return found
        blocks = _blocks(found, wanted)
        machine = state.machine
        for block in blocks:
            fresh = max(0, block.size - reusable.get(found, {}).get(block.type, 0))
            machine = _taken(machine, Block(block.numa_affinity, block.type, fresh))
        state = replace(state, machine=machine)
        for earlier in init or ():
            state = _taken_over(state, uid, earlier, blocks)
        return Placed(state.with_entry(uid, container, blocks), _after(reusable, blocks, leaves=init is None))

    def released(self, state: MemoryState, uid: str, container: str) -> MemoryState:
        """Without the container; a pod's own memory is kept until its last container is gone."""
        own = state.of(uid, container)
        if own is None:
            return state
        after = state.without_entry(uid, container)
        whole = state.pods.get(uid)
        if whole is None:
            return replace(after, machine=_given_back(state.machine, own))
        if after.entries.get(uid):
            return after
        pods = {key: blocks for key, blocks in state.pods.items() if key != uid}
        return replace(after, machine=_given_back(state.machine, whole), pods=pods)

    def with_pod(self, state: MemoryState, uid: str, mask: int, wanted: Sizes, parts: Mapping[str, Sizes]) -> MemoryState:
        """RM-26: one allocation for the pod, and the parts of it that its containers have."""
        machine = state.machine
        for block in _blocks(mask, wanted):
            machine = _taken(machine, block)
        state = replace(state, machine=machine, pods={**state.pods, uid: _blocks(mask, wanted)})
        for container, sizes in parts.items():
            state = state.with_entry(uid, container, _blocks(mask, {n: size for n, size in sizes.items() if size > 0}))
        return state


def _mask(nodes: Iterable[int]) -> int:
    return sum(1 << node for node in nodes)


def _blocks(mask: int, sizes: Sizes) -> Blocks:
    return tuple(Block(tuple(ids_of(mask)), name, size) for name, size in sorted(sizes.items()))


def _sum(machine: Machine, nodes: Iterable[int], resource: str, what: str) -> int:
    tables = [machine[node].memory_map.get(resource) for node in nodes if node in machine]
    return sum(getattr(table, what) for table in tables if table is not None)


def _grouped_otherwise(machine: Machine, nodes: Sequence[int]) -> bool:
    """Is one of the nodes in use with others than these?"""
    if len(nodes) == 1:
        return len(machine[nodes[0]].cells) > 1
    return any(machine[node].number_of_assignments and set(machine[node].cells) != set(nodes) for node in nodes)


def _best(hints: Sequence[Hint]) -> Hint:
    return min(hints, key=lambda hint: (not hint.preferred, (hint.affinity or 0).bit_count(), hint.affinity or 0))


def _taken(machine: Machine, block: Block) -> Machine:
    """With the block: each of its nodes in order gives what it has until there is enough."""
    after, rest = dict(machine), block.size
    for node in block.numa_affinity:
        here = after[node]
        tables = dict(here.memory_map)
        table = tables.get(block.type)
        if table is not None and rest:
            part = min(rest, table.free)
            tables[block.type] = msgspec.structs.replace(table, reserved=table.reserved + part, free=table.free - part)
            rest -= part
        after[node] = NodeMemory(here.number_of_assignments + 1, tables, block.numa_affinity)
    return after


def _given_back(machine: Machine, blocks: Blocks) -> Machine:
    after = dict(machine)
    for block in blocks:
        rest = block.size
        for node in block.numa_affinity:
            here = after[node]
            tables, count = dict(here.memory_map), here.number_of_assignments - 1
            table = tables.get(block.type)
            if table is not None and rest:
                part = min(rest, table.reserved)
                tables[block.type] = msgspec.structs.replace(table, reserved=table.reserved - part, free=table.free + part)
                rest -= part
            after[node] = NodeMemory(count, tables, here.cells if count else (node,))
    return after


def _after(reusable: Reusable, blocks: Blocks, *, leaves: bool) -> Reusable:
    """What may be taken over after a container got ``blocks``: an ordinary init container leaves them, any other uses them up."""
    found = {mask: dict(sizes) for mask, sizes in reusable.items()}
    for block in blocks:
        sizes = found.setdefault(block.mask, {})
        before = sizes.get(block.type, 0)
        sizes[block.type] = max(before, block.size) if leaves else max(0, before - block.size)
    return found


def _taken_over(state: MemoryState, uid: str, container: str, blocks: Blocks) -> MemoryState:
    """The init container's blocks less what ``blocks`` count now."""
    own = state.of(uid, container)
    if own is None:
        return state
    made = {(block.mask, block.type): block.size for block in blocks}
    kept = tuple(msgspec.structs.replace(block, size=max(0, block.size - made.get((block.mask, block.type), 0))) for block in own)
    return state.with_entry(uid, container, kept)


def _equal(found: Machine, expected: Machine) -> bool:
    """The same sizes, groups and numbers; within a group it does not matter which node gives what."""

    def within(machine: Machine, node: int, name: str) -> tuple[int, int]:
        cells = machine[node].cells
        return _sum(machine, cells, name, "free"), _sum(machine, cells, name, "reserved")

    def same(node: int) -> bool:
        one, other = found[node], expected[node]
        if (one.number_of_assignments, set(one.cells)) != (other.number_of_assignments, set(other.cells)):
            return False
        if one.memory_map.keys() != other.memory_map.keys():
            return False
        fixed = all(
            (a.total, a.system_reserved, a.allocatable) == (b.total, b.system_reserved, b.allocatable)
            for a, b in ((one.memory_map[name], other.memory_map[name]) for name in one.memory_map)
        )
        return fixed and all(within(found, node, name) == within(expected, node, name) for name in one.memory_map)

    return found.keys() == expected.keys() and all(same(node) for node in found)


# ---------------------------------------------------------------- the file


class _Pod(msgspec.Struct, frozen=True, rename="camel"):
    memory_blocks: Blocks = msgspec.field(default=(), name="memoryBlocks")


class _File(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    policy_name: str = ""
    machine_state: dict[int, NodeMemory] = {}
    entries: dict[str, dict[str, Blocks]] = {}
    pod_entries: dict[str, _Pod] = {}
    checksum: int = 0


def encode(state: MemoryState, policy: str) -> bytes:
    """The file for this state."""
    pods = {uid: _Pod(blocks) for uid, blocks in sorted(state.pods.items())}
    entries = {uid: dict(sorted(entry.items())) for uid, entry in sorted(state.entries.items())}
    made = _File(policy, dict(state.machine), entries, pods)
    body = {"policyName": policy, "machineState": made.machine_state, "entries": entries, "podEntries": pods}
    kept = {name: value for name, value in body.items() if value or name in ("policyName", "machineState")}
    return msgspec.json.encode({**kept, "checksum": _digest(made)})


def decode(raw: bytes, policy: str) -> MemoryState:
    """The state in a file that a kubelet of ``policy`` wrote; ``StateError`` if it is another's or not what was written."""
    try:
        found = msgspec.json.decode(raw, type=_File)
    except (msgspec.MsgspecError, ValueError, RecursionError) as why:
        raise StateError(str(why)) from why
    if found.checksum and found.checksum != _digest(found):
        raise StateError("checkpoint is corrupted")
    if found.policy_name != policy:
        raise StateError(f'configured policy "{policy}" differs from state checkpoint policy "{found.policy_name}"')
    pods = {uid: pod.memory_blocks for uid, pod in found.pod_entries.items()}
    return MemoryState(found.machine_state, found.entries, pods)


def _digest(file: _File) -> int:
    """Upstream hashes Go's dump of the struct."""
    nodes = " ".join(f"{number}:{_dumped_node(node)}" for number, node in sorted(file.machine_state.items()))
    entries = " ".join(
        f"{uid}:map[{' '.join(f'{name}:{_dumped(blocks)}' for name, blocks in sorted(entry.items()))}]"
        for uid, entry in sorted(file.entries.items())
    )
    pods = " ".join(
        f"{uid}:{{MemoryBlocks:([]state.Block){_dumped(pod.memory_blocks)}}}" for uid, pod in sorted(file.pod_entries.items())
    )
    level = f" PodEntries:(state.PodMemoryAssignments)map[{pods}]" if pods else ""
    return fnv(
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){file.policy_name} MachineState:(state.NUMANodeMap)map[{nodes}] "
        f"Entries:(state.ContainerMemoryAssignments)map[{entries}]{level} Checksum:(checksum.Checksum)0}}".encode()
    )


def _dumped_node(node: NodeMemory) -> str:
    tables = " ".join(
        f"{name}:<*>{{TotalMemSize:(uint64){t.total} SystemReserved:(uint64){t.system_reserved} "
        f"Allocatable:(uint64){t.allocatable} Reserved:(uint64){t.reserved} Free:(uint64){t.free}}}"
        for name, t in sorted(node.memory_map.items())
    )
    return (
        f"<*>{{NumberOfAssignments:(int){node.number_of_assignments} "
        f"MemoryMap:(map[v1.ResourceName]*state.MemoryTable)map[{tables}] Cells:([]int)[{' '.join(map(str, node.cells))}]}}"
    )


def _dumped(blocks: Blocks) -> str:
    found = (
        f"{{NUMAAffinity:([]int)[{' '.join(map(str, b.numa_affinity))}] Type:(v1.ResourceName){b.type} Size:(uint64){b.size}}}"
        for b in blocks
    )
    return f"[{' '.join(found)}]"
