"""Which CPUs are taken: the packing order of the static policy, and its two ways to spread (XC-9 to XC-16, XC-49).

Packed, the default: whole sockets or NUMA nodes, then whole cores, then single CPUs, and of each kind first the group that has the
fewest left, so that large holes stay for large requests. A resize brings CPUs that it keeps: a group is then whole if what is kept
and what is free make it so, and groups that hold kept CPUs come before all others.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet, ids_of
from elbowroom.kubelet.managers.options import StaticOptions
from elbowroom.kubelet.managers.topology import Topology


@dataclass(frozen=True, slots=True)
class Shortage:
    """No such set can be taken; the text is upstream's."""

    message: str


def take_by_topology(
    topology: Topology, available: CPUSet, count: int, options: StaticOptions | None = None, keep: CPUSet = NOBODY
) -> CPUSet | Shortage:
    """``count`` CPUs: all of ``keep`` and the rest from ``available``, chosen as the options say.

    Deterministic in its arguments. ``keep`` is empty but for a resize; fewer CPUs than it holds cannot be asked for.
    """
    options = options or StaticOptions()
    if options.distribute_cpus_across_numa:
        group = topology.threads_per_core if options.full_pcpus_only else 1
        return _distributed(topology, available, count, group, options, keep)
    return _packed(topology, available, count, options, keep, options.prefer_align_cpus_by_uncorecache)


class _Accumulator:
    """CPUs being taken: what is still free, what was taken, how many are lacking."""

    def __init__(self, topology: Topology, available: CPUSet, count: int, keep: CPUSet) -> None:
        self.topology = topology
        self.kept = keep.bits
        self.free = available.bits & topology.all.bits & ~keep.bits
        self.taken = keep.bits
        self.needed = count - len(keep)

    @property
    def satisfied(self) -> bool:
        return self.needed < 1

    def take(self, bits: int) -> None:
        self.taken |= bits
        self.free &= ~bits
        self.needed -= bits.bit_count()

    # ------------------------------------------------------------ orders

    def order(self, ids: Iterable[int], groups: Mapping[int, int]) -> list[int]:
        """The ids of groups that have free CPUs: those with kept CPUs first, then by how few are free, then by id (XC-10)."""
        free, kept = self.free, self.kept
        found = [(not groups[i] & kept, (groups[i] & free).bit_count(), i) for i in ids if groups[i] & free]
        found.sort()
        return [i for _, _, i in found]

    def numas(self) -> list[int]:
        t = self.topology
        if t.numa_first:
            return self.order(t.numas, t.numas)
        return _unique(numa for socket in self.sockets() for numa in self.order(t.numas_in_socket[socket], t.numas))

    def sockets(self) -> list[int]:
        t = self.topology
        if not t.numa_first:
            return self.order(t.sockets, t.sockets)
        return _unique(socket for numa in self.numas() for socket in self.order(t.sockets_in_numa[numa], t.sockets))

    def cores(self) -> list[int]:
        t = self.topology
        if t.numa_first:
            return _unique(core for socket in self.sockets() for core in self.order(t.cores_in_socket[socket], t.cores))
        return _unique(core for numa in self.numas() for core in self.order(t.cores_in_numa[numa], t.cores))

    def uncores(self) -> list[int]:
        t = self.topology
        return _unique(uncore for numa in self.numas() for uncore in self.order(t.uncores_in_numa[numa], t.uncores))

    # ------------------------------------------------------------ steps

    def take_whole(self, ids: Callable[[], list[int]], groups: Mapping[int, int]) -> None:
        """Take each group of which nobody else has a CPU, while that many are needed."""
        mine = self.free | self.kept
        for group in ids():
            bits = groups[group]
            lacking = bits & self.free
            if bits & ~mine == 0 and self.needed >= lacking.bit_count():
                self.take(lacking)

    def take_levels(self) -> None:
        t = self.topology
        levels = ((self.numas, t.numas), (self.sockets, t.sockets))
        for ids, groups in levels if t.numa_first else reversed(levels):
            self.take_whole(ids, groups)
            if self.satisfied:
                return

    def take_uncores(self) -> None:
        t = self.topology
        for uncore in self.uncores():
            if self.needed >= t.cpus_per_uncore:
                self.take_whole(self.uncores, t.uncores)
            if self.satisfied:
                return
            self._take_partial_uncore(uncore)
            if self.satisfied:
                return

    def _take_partial_uncore(self, uncore: int) -> None:
        """Take what is needed out of this one cache, if it has that much."""
        t = self.topology
        threads = t.threads_per_core
        within = t.uncores[uncore] & self.free
        cores = [core for core, bits in t.cores.items() if bits & within]
        cores = sorted(cores, key=lambda core: (not t.cores[core] & self.kept, core))[: -(-self.needed // threads)]
        found = [cpu for cpu in ids_of(self.free) if t.places[cpu].core in cores]
        if self.needed % 2 and threads > 1 and len(found) > self.needed:
            found = found[:-1]
        if len(found) == self.needed:
            self.take(CPUSet.from_iterable(found).bits)

    def take_singles(self, *, spread: bool) -> None:
        t = self.topology
        groups, order = (t.sockets, self.sockets()) if spread else (t.cores, self.cores())
        for cpu in (cpu for group in order for cpu in ids_of(groups[group] & self.free)):
            if self.satisfied:
                return
            self.take(1 << cpu)


def _packed(
    topology: Topology, available: CPUSet, count: int, options: StaticOptions, keep: CPUSet, by_uncore: bool
) -> CPUSet | Shortage:
    acc = _Accumulator(topology, available, count, keep)
    short = _shortage(acc, available, count, keep)
    if short is not None:
        return short
    spread = options.distribute_cpus_across_cores
    if not acc.satisfied:
        acc.take_levels()
    if by_uncore and not acc.satisfied:
        acc.take_uncores()
    if not spread and not acc.satisfied:
        acc.take_whole(acc.cores, topology.cores)
    if not acc.satisfied:
        acc.take_singles(spread=spread)
    return CPUSet(acc.taken)


def _shortage(acc: _Accumulator, available: CPUSet, count: int, keep: CPUSet) -> Shortage | None:
    if count < len(keep):
        return Shortage(f"requested CPUs to be retained {keep} are more than the {count} requested")
    if acc.needed > acc.free.bit_count():
        return Shortage(f"not enough cpus available to satisfy request: requested={count}, available={len(available | keep)}")
    return None


# ---------------------------------------------------------------- distributed


@dataclass(frozen=True, slots=True)
class _Split:
    """NUMA nodes that share a request evenly, and those that get a unit more."""

    combo: tuple[int, ...]
    remainder: tuple[int, ...]
    balance: float


def _distributed(
    topology: Topology, available: CPUSet, count: int, group: int, options: StaticOptions, keep: CPUSet
) -> CPUSet | Shortage:
    """KEP-2902: over as few NUMA nodes as can share the request evenly; packed if none can."""
    if count % group:
        return _packed(topology, available, count, options, keep, False)
    acc = _Accumulator(topology, available, count, keep)
    short = _shortage(acc, available, count, keep)
    if short is not None or acc.satisfied:
        return short or CPUSet(acc.taken)
    held = [numa for numa, bits in topology.numas.items() if bits & keep.bits]
    numas = acc.numas()
    numas += [numa for numa in held if numa not in numas]
    groups = (len(topology.all) - 1) // group + 1
    per_numa = (groups - 1) // len(topology.numas) + 1
    wanted = (count - 1) // group + 1
    fewest, most = max((wanted - 1) // per_numa + 1, len(held)), min(wanted, len(numas))
    for size in range(fewest, most + 1):
        split = _best_split(acc, numas, [c for c in itertools.combinations(numas, size) if set(held) <= set(c)], count, group)
        if split is not None:
            return _take_split(acc, split, count, group, options)
    return _packed(topology, available, count, options, keep, False)


def _share(count: int, combo: Sequence[int], group: int) -> int:
    return count // len(combo) // group * group


def _best_split(
    acc: _Accumulator, numas: Sequence[int], combos: Iterable[tuple[int, ...]], count: int, group: int
) -> _Split | None:
    t = acc.topology
    free = {numa: (t.numas[numa] & acc.free).bit_count() for numa in numas}
    kept = {numa: (t.numas[numa] & acc.kept).bit_count() for numa in numas}
    best: _Split | None = None
    for combo in combos:
        if best is not None and best.balance == 0:
            return best
        owned = {numa: free[numa] + kept[numa] for numa in combo}
        share = _share(count, combo, group)
        enough = sum(owned.values()) >= count and sum(n // group for n in owned.values()) * group >= count
        if not enough or any(n < share for n in owned.values()) or any(kept[numa] > share for numa in combo):
            continue
        left = dict(free)
        for numa in combo:
            left[numa] -= share - kept[numa]
        local = _best_remainder(combo, left, count - share * len(combo), group)
        if local is not None and (best is None or local.balance < best.balance):
            best = local
    return best


def _best_remainder(combo: tuple[int, ...], left: Mapping[int, int], remainder: int, group: int) -> _Split | None:
    """The subset of ``combo`` that, given the remainder, leaves the machine most even."""
    if remainder == 0:
        return _Split(combo, (), _deviation(list(left.values())))
    able = [numa for numa in combo if left[numa] >= group]
    best: _Split | None = None
    for size in range(len(able), 0, -1):
        for subset in itertools.combinations(able, size):
            if sum(left[numa] // group for numa in subset) * group < remainder:
                continue
            after, rest = dict(left), remainder
            for numa in itertools.cycle(subset):
                if rest <= 0:
                    break
                if after[numa] >= group:
                    after[numa] -= group
                    rest -= group
            balance = _deviation(list(after.values()))
            if best is None or balance < best.balance:
                best = _Split(combo, subset, balance)
    return best


def _take_split(acc: _Accumulator, split: _Split, count: int, group: int, options: StaticOptions) -> CPUSet | Shortage:
    t = acc.topology
    share = _share(count, split.combo, group)

    def take(numa: int, wanted: int, keep: int) -> int:
        found = _packed(t, CPUSet(t.numas[numa] & acc.free), wanted, options, CPUSet(keep), False)
        assert isinstance(found, CPUSet), "the split counted the CPUs of each node"
        fresh = found.bits & ~keep
        acc.take(fresh)
        return fresh.bit_count()

    for numa in split.combo:
        take(numa, share, t.numas[numa] & acc.kept)
    for numa in itertools.cycle(split.remainder):
        if acc.satisfied:
            break
        if (t.numas[numa] & acc.free).bit_count() >= group:
            take(numa, group, 0)
    return CPUSet(acc.taken)


def _deviation(values: Sequence[int]) -> float:
    """The standard deviation, with upstream's rounding to thousandths, mean included."""
    mean = _thousandths(sum(values) / len(values))
    return _thousandths(math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)))


def _thousandths(value: float) -> float:
    return math.floor(value * 1000 + 0.5) / 1000


def _unique(ids: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(ids))
