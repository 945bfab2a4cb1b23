"""The machine under a node: which CPUs share a core, an uncore cache, a NUMA node, a socket (XC-1)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from elbowroom.kubelet.managers.cpuset import CPUSet, ids_of


class Place(NamedTuple):
    """Where a CPU is. Ids of each kind are unique over the machine."""

    core: int
    uncore: int
    numa: int
    socket: int


@dataclass(frozen=True)
class Topology:
    """The CPUs of a machine, each with its place. Groups are bit sets by id; see ``CPUSet.bits``."""

    places: Mapping[int, Place]

    @classmethod
    def regular(
        cls,
        *,
        sockets: int = 1,
        numa_nodes_per_socket: int = 1,
        cores_per_numa: int = 1,
        threads_per_core: int = 1,
        cores_per_uncore: int = 0,
    ) -> "Topology":
        """The machine that these numbers describe: thread t of core c is CPU c + t x cores. Without ``cores_per_uncore`` a NUMA
        node has one uncore cache."""
        cores = sockets * numa_nodes_per_socket * cores_per_numa
        per_cache = cores_per_uncore or cores_per_numa
        caches_per_numa = -(-cores_per_numa // per_cache)
        places: dict[int, Place] = {}
        for thread in range(threads_per_core):
            for core in range(cores):
                numa, within = divmod(core, cores_per_numa)
                cache = numa * caches_per_numa + within // per_cache
                places[core + thread * cores] = Place(core, cache, numa, numa // numa_nodes_per_socket)
        return cls(places)

    @cached_property
    def all(self) -> CPUSet:
        """Every CPU."""
        return CPUSet.from_iterable(self.places)

    @cached_property
    def cores(self) -> Mapping[int, int]:
        return _groups((cpu, place.core) for cpu, place in self.places.items())

    @cached_property
    def uncores(self) -> Mapping[int, int]:
        return _groups((cpu, place.uncore) for cpu, place in self.places.items())

    @cached_property
    def numas(self) -> Mapping[int, int]:
        return _groups((cpu, place.numa) for cpu, place in self.places.items())

    @cached_property
    def sockets(self) -> Mapping[int, int]:
        return _groups((cpu, place.socket) for cpu, place in self.places.items())

    @cached_property
    def threads_per_core(self) -> int:
        return len(self.places) // max(1, len(self.cores))

    @cached_property
    def cpus_per_uncore(self) -> int:
        return len(self.places) // max(1, len(self.uncores))

    @cached_property
    def numa_first(self) -> bool:
        """Is the NUMA node the outermost group, or the socket (XC-11)?"""
        return len(self.sockets) >= len(self.numas)

    @cached_property
    def sockets_in_numa(self) -> Mapping[int, tuple[int, ...]]:
        return _within((place.numa, place.socket) for place in self.places.values())

    @cached_property
    def numas_in_socket(self) -> Mapping[int, tuple[int, ...]]:
        return _within((place.socket, place.numa) for place in self.places.values())

    @cached_property
    def cores_in_numa(self) -> Mapping[int, tuple[int, ...]]:
        return _within((place.numa, place.core) for place in self.places.values())

    @cached_property
    def cores_in_socket(self) -> Mapping[int, tuple[int, ...]]:
        return _within((place.socket, place.core) for place in self.places.values())

    @cached_property
    def uncores_in_numa(self) -> Mapping[int, tuple[int, ...]]:
        return _within((place.numa, place.uncore) for place in self.places.values())

    def in_numas(self, mask: int) -> CPUSet:
        """The CPUs of the NUMA nodes of ``mask`` (bit n is node n)."""
        return CPUSet(_union(self.numas, ids_of(mask)))

    def numas_of(self, cpus: CPUSet) -> int:
        """The mask of the NUMA nodes that the CPUs are on."""
        return sum(1 << numa for numa, bits in self.numas.items() if bits & cpus.bits)

    def sockets_of_numas(self, mask: int) -> tuple[int, ...]:
        """The sockets that the NUMA nodes of ``mask`` are on, ascending."""
        found = {socket for numa in ids_of(mask) for socket in self.sockets_in_numa.get(numa, ())}
        return tuple(sorted(found))

    def in_sockets_of(self, mask: int) -> CPUSet:
        """The CPUs of every socket on which one of the NUMA nodes of ``mask`` is."""
        return CPUSet(_union(self.sockets, self.sockets_of_numas(mask)))

    def whole_cores(self, cpus: CPUSet) -> CPUSet:
        """``cpus`` and every CPU that shares a core with one of them."""
        found = 0
        for bits in self.cores.values():
            if bits & cpus.bits:
                found |= bits
        return CPUSet(found)

    def aligned_to_uncore(self, cpus: CPUSet) -> bool:
        """Do all the CPUs share one uncore cache?"""
        return sum(1 for bits in self.uncores.values() if bits & cpus.bits) <= 1


def _groups(pairs: Iterable[tuple[int, int]]) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for cpu, group in pairs:
        found[group] = found.get(group, 0) | 1 << cpu
    return dict(sorted(found.items()))


def _within(pairs: Iterable[tuple[int, int]]) -> Mapping[int, tuple[int, ...]]:
    found: dict[int, set[int]] = {}
    for outer, inner in pairs:
        found.setdefault(outer, set()).add(inner)
    return {outer: tuple(sorted(inner)) for outer, inner in sorted(found.items())}


def _union(groups: Mapping[int, int], ids: Iterable[int]) -> int:
    bits = 0
    for group in ids:
        bits |= groups.get(group, 0)
    return bits
