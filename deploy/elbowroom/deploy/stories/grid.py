"""The CPUs of a node, drawn as the machine has them: a row for each thread of a NUMA node, a column for each of its cores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SHARED, RESERVED = ".", "r"
LEGEND = "below, . is shared, and r too, which is never given away"
STYLES = ("bold green", "bold magenta", "bold yellow", "bold cyan", "bold blue", "bold red")


@dataclass(frozen=True, slots=True)
class Grid:
    """``machine``: the fields of ``elbowroom.dev/machine``. ``owners``: who has a CPU of its own, by CPU; all others are shared.
    ``leaving``: CPUs that their owner is about to leave."""

    machine: Mapping[str, int]
    reserved: frozenset[int] = frozenset()
    owners: Mapping[int, str] = field(default_factory=dict)
    leaving: frozenset[int] = frozenset()

    def rows(self) -> list[list[str]]:
        """A table, its first row the heading; a cell is a CPU's number and its owner (``(owner)``: leaving it)."""
        per_numa = self.machine.get("coresPerNuma", 4)
        numas = self.machine.get("sockets", 1) * self.machine.get("numaNodesPerSocket", 1)
        threads = self.machine.get("threadsPerCore", 1)
        found = [["", "", *(f"core {core}" for core in range(per_numa))]]
        for numa in range(numas):
            for thread in range(threads):
                cpus = [numa * per_numa + core + thread * per_numa * numas for core in range(per_numa)]
                head = [f"NUMA {numa}" if not thread else "", f"thread {thread}"]
                found.append([*head, *(f"{cpu:>2} {self.owner(cpu)}" for cpu in cpus)])
        return found

    def owner(self, cpu: int) -> str:
        """Whose the CPU is, in a word."""
        owner = self.owners.get(cpu, RESERVED if cpu in self.reserved else SHARED)
        return f"({owner})" if cpu in self.leaving else owner

    def style(self, cell: str) -> str:
        """How to show a cell: each owner in a colour of its own, what is shared dim."""
        number, _, owner = cell.strip().partition(" ")
        if not number.isdigit():
            return ""
        names = list(dict.fromkeys(self.owners.values()))
        plain = owner.strip("()")
        if plain not in names:
            return "dim"
        style = STYLES[names.index(plain) % len(STYLES)]
        return f"{style} strike" if owner.startswith("(") else style


def cpus_of(text: str) -> frozenset[int]:
    """The CPUs of a Linux list (``0-3,8``)."""
    found: set[int] = set()
    for part in text.split(",") if text else []:
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def owners_of(pod_resources: Mapping[str, Any]) -> dict[int, str]:
    """Who has which CPUs of its own, from a kubelet's PodResources; in the order of their names, so that colours stay."""
    found: dict[int, str] = {}
    for pod in sorted(pod_resources.get("podResources", ()), key=lambda pod: str(pod["name"])):
        for container in pod["containers"]:
            found.update(dict.fromkeys(container.get("cpuIds") or (), pod["name"]))
    return found


def cpuset_of(cgroups: Sequence[Mapping[str, Any]], pod: str) -> str:
    """Where the kernel lets the pod's only container run; empty if it has none."""
    return next((str(c["cpusetCpus"]) for c in cgroups if c["pod"] == pod and c.get("container")), "")


def shown(cpus: Iterable[int]) -> str:
    """CPUs as a Linux list."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in parts)
