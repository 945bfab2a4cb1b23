"""How a cluster grows on one machine: time until its nodes are Ready, and what a node and a pod weigh, where nodes share processes.

A weight is a slope: what all processes weigh with so many nodes, less what they weigh with ten, so what a cluster of any size costs
does not count. The documents that the API server keeps are counted, and their size is told beside.
"""

import uvloop

from elbowroom.client import context_of
from elbowroom.deploy.bench.clusters import Running
from elbowroom.deploy.bench.figures import Figure
from elbowroom.deploy.bench.http import Connection
from elbowroom.deploy.bench.limits import children, pss_mib
from elbowroom.deploy.bench.preempting import CONNECTIONS, filled
from elbowroom.deploy.bench.watching import watching
from elbowroom.deploy.errors import UserError

SIZES = (10, 100, 1_000, 5_000)
PODS_AT = 1_000
"""With so many nodes a pod is weighed, one on each."""
PER_PROCESS = 1_000
READY_SECONDS = {5_000: 10.0}


def growth(sizes: tuple[int, ...] = SIZES, pods_at: int = PODS_AT) -> list[Figure]:
    """All of it, size by size."""
    figures: list[Figure] = []
    smallest: float | None = None
    for nodes in sizes:
        with Running(nodes, "--kubelets-per-process", str(PER_PROCESS), "--node-memory", "4Gi") as cluster:
            weight, cpu = _weight(cluster), cluster.cpu_seconds()
            figures.append(
                Figure(
                    f"dense-ready-{nodes}",
                    f"{nodes:,} nodes Ready, {PER_PROCESS:,} to a process",
                    cluster.seconds_to_ready,
                    "s",
                    limit=READY_SECONDS.get(nodes),
                    limit_is="aim" if nodes in READY_SECONDS else "",
                    details={"CPU s": sum(cpu.values()), **{f"{kind}, CPU s": spent for kind, spent in cpu.items()}},
                )
            )
            if smallest is None:
                smallest = weight
            else:
                what = f"memory per node, {nodes:,} nodes, API server and all"
                each = 1024 * (weight - smallest) / (nodes - sizes[0])
                figures.append(Figure(f"memory-per-node-{nodes}", what, each, "KiB", details={"all processes MiB": weight}))
            if nodes == pods_at:
                figures.append(uvloop.run(_pod_weight(cluster, nodes, weight)))
    return figures


async def _pod_weight(cluster: Running, nodes: int, before: float) -> Figure:
    context = context_of(cluster.kubeconfig)
    lanes = [await Connection.open(context) for _ in range(CONNECTIONS)]
    async with watching(context) as pods:
        await filled(lanes, nodes, pods)
        after = _weight(cluster)
    status, raw = await lanes[0].request("GET", "/api/v1/pods")
    if status != 200:
        raise UserError(f"the bench failed: the pods cannot be listed: {status}")
    for lane in lanes:
        lane.close()
    details = {"its JSON KiB": len(raw) / nodes / 1024, "all processes MiB": after}
    return Figure(
        "memory-per-pod",
        f"memory per pod, one on each of {nodes:,} nodes, in all processes",
        1024 * (after - before) / nodes,
        "KiB",
        details=details,
    )


def _weight(cluster: Running) -> float:
    return sum(map(pss_mib, children(cluster.supervisor_pid)))
