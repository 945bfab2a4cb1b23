"""What the cluster's processes weigh and spend, by kind, and how long the scheduler's queues are."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from elbowroom.deploy.bench.limits import children, pss_mib

KINDS = ("API server", "scheduler", "controllers", "nodes", "supervisor")
_PENDING = "scheduler_pending_pods{"


@dataclass(frozen=True, slots=True)
class Weight:
    """Mebibytes (PSS) and CPU seconds since each process began, by kind."""

    memory: Mapping[str, float] = field(default_factory=dict)
    cpu: Mapping[str, float] = field(default_factory=dict)


def kind_of(process: str) -> str:
    """A process's kind by the name it goes by in ``ps``."""
    match process:
        case "apiserver":
            return "API server"
        case "scheduler" | "controllers":
            return process
        case _ if process.startswith(("nodes-", "kubelet/", "runtime/")):
            return "nodes"
        case _:
            return "supervisor"


class Gauge:
    """The processes below a supervisor."""

    def __init__(self, supervisor: int) -> None:
        self._supervisor = supervisor

    def weigh(self) -> Weight:
        """A process that is gone meanwhile weighs nothing."""
        memory: dict[str, float] = {kind: 0.0 for kind in KINDS}
        cpu = dict(memory)
        ticks = os.sysconf("SC_CLK_TCK")
        for pid in children(self._supervisor):
            try:
                head, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
                weight = pss_mib(pid)
            except OSError:
                continue
            kind, fields = kind_of(head.partition("(")[2]), rest.split()
            memory[kind] += weight
            cpu[kind] += (int(fields[11]) + int(fields[12])) / ticks
        return Weight(memory, cpu)


def queues(exposition: Iterable[str]) -> dict[str, int]:
    """The lengths of the scheduler's queues, from its metrics."""
    found: dict[str, int] = {}
    for line in exposition:
        if line.startswith(_PENDING):
            name = line.partition('queue="')[2].partition('"')[0]
            found[name] = int(float(line.rpartition(" ")[2]))
    return found
