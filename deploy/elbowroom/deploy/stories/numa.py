"""A node of two NUMA nodes whose CPUs can be had exclusively. A container grows and keeps what it has; where its own NUMA node is
full it spills to the other; it shrinks to what it was first given, and never below. (KEP-5554, which no release has.)"""

from typing import Any

from elbowroom.deploy.stories.grid import LEGEND, Grid, cpus_of, cpuset_of, owners_of, shown
from elbowroom.deploy.stories.stage import Document, Stage, condition
from elbowroom.deploy.stories.telling import Teller, UnmetError

NODE = "node-1"
MACHINE = {"sockets": 2, "numaNodesPerSocket": 1, "coresPerNuma": 4, "threadsPerCore": 2}
RESERVED = cpus_of("0,8")


def cluster() -> dict[str, Any]:
    kubelet = {
        "cpuManagerPolicy": "static",
        "cpuManagerReconcilePeriod": "500ms",
        "reservedSystemCPUs": shown(RESERVED),
        "topologyManagerPolicy": "best-effort",
        "featureGates": {"InPlacePodVerticalScalingExclusiveCPUs": True},
        "elbowroom": {"preview": "5554"},
    }
    capacity = {"cpu": "16", "memory": "8Gi", "pods": "110"}
    node = {"count": 1, "capacity": capacity, "allocatable": {"cpu": "14"}, "kubelet": kubelet, "machine": MACHINE}
    return {"nodes": [node]}


def play(stage: Stage, teller: Teller) -> None:
    with teller.step("On node-1 (2 NUMA nodes of 4 cores with 2 threads) run `web` with 2 CPUs, `db` with 4, and `batch`.") as seen:
        start(stage, "web", cpus=2)
        start(stage, "db", cpus=4)
        start(stage, "batch")
        first = await_cpus(stage, "web", 2)
        await_cpus(stage, "db", 4)
        pool = await_pool(stage)
        seen += [f"web has {shown(first)}, both threads of one core; batch runs on all that nobody has: {pool}", LEGEND]
    draw(stage, teller)

    with teller.step("`web` grows to 4. Its NUMA node is full, so it keeps its core and gets another one next door.") as seen:
        resize(stage, "web", 4)
        grown = await_cpus(stage, "web", 4)
        if not first < grown:
            raise UnmetError(f"web had {shown(first)} and now has {shown(grown)}")
        added = grown - first
        if numas(added) == numas(first):
            raise UnmetError(f"{shown(added)} are on the NUMA node that was full")
        seen.append(f"kept {shown(first)}, gained {shown(added)}; batch is left with {await_pool(stage)}")
    draw(stage, teller)

    with teller.step("`web` shrinks to 2 again: what it gives up is what it gained.") as seen:
        resize(stage, "web", 2)
        shrunk = await_cpus(stage, "web", 2)
        if shrunk != first:
            raise UnmetError(f"web has {shown(shrunk)}, not its first CPUs {shown(first)}")
        seen.append(f"web has {shown(shrunk)} again; batch may run on {await_pool(stage)}")
    draw(stage, teller)

    since = stage.revision()
    with teller.step("`web` is to have 1 CPU, less than it was first given. That is never possible.") as seen:
        resize(stage, "web", 1)
        refused = stage.await_pod(
            "web", lambda pod: condition(pod, "PodResizePending", reason="Infeasible"), "Infeasible", since=since
        )
        message = condition(refused, "PodResizePending")["message"]
        if "prohibitedCPUAllocation" not in message:
            raise UnmetError(f"it is infeasible for another reason: {message}")
        seen.append(message)
        if own_cpus(stage, "web") != first:
            raise UnmetError("its CPUs have changed all the same")


# ---------------------------------------------------------------- props, for other stories too


def start(stage: Stage, name: str, *, cpus: int = 0, wait: bool = True, **spec: Any) -> Document:
    """A pod of one container ``main``, with CPUs of its own or shared ones; returned once it is Ready, or (not ``wait``) made."""
    resources: Document = {"requests": {"memory": "64Mi"}}
    if cpus:
        amounts = {"cpu": str(cpus), "memory": "64Mi"}
        resources = {"requests": amounts, "limits": amounts}
    mounts = spec.pop("volumeMounts", [])
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources, "volumeMounts": mounts}
    whole = {"terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    made = stage.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole})
    return stage.await_pod(name, lambda pod: condition(pod, "Ready", status="True"), "Running and Ready") if wait else made


def resize(stage: Stage, name: str, cpus: int) -> None:
    amounts = {"cpu": str(cpus)}
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    stage.patch("pods", name, {"spec": {"containers": [container]}}, subresource="resize")


def pod_resources(stage: Stage) -> Document:
    return stage.ask("GET", f"/api/v1/nodes/{NODE}/proxy/podresources")


def own_cpus(stage: Stage, name: str) -> frozenset[int]:
    """What the kubelet has given to the pod alone."""
    return frozenset(cpu for cpu, owner in owners_of(pod_resources(stage)).items() if owner == name)


def await_cpus(stage: Stage, name: str, count: int) -> frozenset[int]:
    """The pod's CPUs, once it has so many and the kernel lets it run on just these."""

    def look() -> tuple[frozenset[int], frozenset[int]]:
        return own_cpus(stage, name), cpus_of(cpuset_of(stage.cgroups(NODE), name))

    given, _ = stage.until(look, lambda found: len(found[0]) == count and found[0] == found[1], f"{name} runs on {count} CPUs")
    return given


def await_pool(stage: Stage, name: str = "batch", machine: Any = None) -> str:
    """Where the pod that shares may run, once that is all that nobody has to itself."""
    shape = machine or MACHINE
    total = shape["sockets"] * shape["numaNodesPerSocket"] * shape["coresPerNuma"] * shape["threadsPerCore"]

    def look() -> tuple[frozenset[int], frozenset[int]]:
        return cpus_of(cpuset_of(stage.cgroups(NODE), name)), frozenset(range(total)) - owners_of(pod_resources(stage)).keys()

    found, _ = stage.until(look, lambda pair: pair[0] == pair[1], f"{name} runs on the shared CPUs")
    return shown(found)


def numas(cpus: frozenset[int]) -> set[int]:
    """The NUMA nodes that the CPUs are on."""
    per_numa, count = MACHINE["coresPerNuma"], MACHINE["sockets"] * MACHINE["numaNodesPerSocket"]
    return {cpu % (per_numa * count) // per_numa for cpu in cpus}


def draw(stage: Stage, teller: Teller) -> None:
    grid = Grid(MACHINE, RESERVED, owners_of(pod_resources(stage)))
    teller.rows(grid.rows(), style=grid.style)
