"""A container that gives up exclusive CPUs is told so in a file, and has three seconds to move its threads before it loses them.
Until then nobody else is given them. (KEP-6122, design A, which no release has.)"""

import time
from typing import Any

from elbowroom.deploy.stories.grid import LEGEND, Grid, cpus_of, cpuset_of, owners_of, shown
from elbowroom.deploy.stories.numa import NODE, await_cpus, await_pool, pod_resources, resize, start
from elbowroom.deploy.stories.stage import Document, Stage, condition, container_status
from elbowroom.deploy.stories.telling import Teller, UnmetError

MACHINE = {"sockets": 1, "numaNodesPerSocket": 1, "coresPerNuma": 4, "threadsPerCore": 2}
RESERVED = cpus_of("0,4")
DELAY_SECONDS, PERIOD_SECONDS = 3.0, 0.5
FILE = "/etc/podinfo/cpus"
_CPUS = {"containerName": "main", "resource": "assigned.cpuset"}
TOLD: dict[str, Any] = {
    "volumes": [{"name": "podinfo", "downwardAPI": {"items": [{"path": "cpus", "resourceFieldRef": _CPUS}]}}],
    "volumeMounts": [{"name": "podinfo", "mountPath": "/etc/podinfo"}],
}


def cluster() -> dict[str, Any]:
    kubelet = {
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"scale-delay-time": f"{DELAY_SECONDS:.0f}s"},
        "cpuManagerReconcilePeriod": f"{PERIOD_SECONDS * 1000:.0f}ms",
        "reservedSystemCPUs": shown(RESERVED),
        "featureGates": {"InPlacePodVerticalScalingExclusiveCPUs": True, "CPUManagerPolicyAlphaOptions": True},
        "elbowroom": {"preview": "6122A"},
    }
    gates = {"InPlacePodVerticalScalingSchedulerPreemption": True, "DownwardAPIAssignedResources": True}
    capacity = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    node = {"count": 1, "capacity": capacity, "allocatable": {"cpu": "6"}, "kubelet": kubelet, "machine": MACHINE}
    return {"featureGates": gates, "nodes": [node]}


def play(stage: Stage, teller: Teller) -> None:
    with teller.step("On node-1 (4 cores with 2 threads) run `web` with 2 CPUs, which reads them in a file, and `batch`.") as seen:
        start(stage, "web", cpus=2, **TOLD)
        start(stage, "batch")
        first = await_cpus(stage, "web", 2)
        seen.append(f"{FILE} says {read(stage)}; batch runs on {await_pool(stage, machine=MACHINE)}")

    with teller.step("`web` grows to 4. Growth is never delayed.") as seen:
        resize(stage, "web", 4)
        grown = await_cpus(stage, "web", 4)
        stage.await_pod("web", lambda pod: not condition(pod, "PodResizeInProgress") and _cpu(pod) == "4", "grown")
        seen.append(f"{FILE} says {read(stage)}; batch runs on {await_pool(stage, machine=MACHINE)}")
        seen.append(f"{LEGEND}; in brackets what is being left")
    draw(stage, teller)

    since = stage.revision()
    with teller.step("`web` is to have 2 again. It reads that at once, and still has all four.") as seen:
        began = time.monotonic()
        resize(stage, "web", 2)
        stage.until(lambda: read(stage), lambda told: told == shown(first), f"{FILE} says {shown(first)}")
        held = cpuset_of(stage.cgroups(NODE), "web")
        if cpus_of(held) != grown:
            raise UnmetError(f"web may run on {held} only")
        stage.await_pod(
            "web", lambda pod: condition(pod, "PodResizeInProgress") and _cpu(pod, "allocatedResources") == "2", "told", since=since
        )
        pod = stage.pod("web")
        if _cpu(pod) != "4":
            raise UnmetError(f"its status counts {_cpu(pod)} CPUs already")
        seen.append(f"{FILE} says {shown(first)}, the kernel {held}; PodResizeInProgress; its status still counts 4 CPUs")
    draw(stage, teller)

    with teller.step("`next` asks for 4 CPUs, more than are left: it waits, for nobody is given what `web` has not left.") as seen:
        start(stage, "next", cpus=4, wait=False)
        waits = stage.await_pod("next", lambda pod: condition(pod, "PodScheduled", reason="Unschedulable"), "waiting")
        seen.append(condition(waits, "PodScheduled")["message"])

    with teller.step("Its time is over: `web` loses the two CPUs, its resize is completed, and `next` comes in.") as seen:
        await_cpus(stage, "web", 2)
        waited = time.monotonic() - began
        if waited < DELAY_SECONDS:
            raise UnmetError(f"web had only {waited:.2f} s to leave")
        stage.await_pod("web", lambda pod: not condition(pod, "PodResizeInProgress") and _cpu(pod) == "2", "shrunk")
        event = stage.await_event("web", "ResizeCompleted")
        stage.await_pod("next", lambda pod: condition(pod, "Ready", status="True"), "Running and Ready")
        given = await_cpus(stage, "next", 4)
        seen.append(f"web left after {waited:.1f} s; Event {event['type']} {event['reason']}; next has {shown(given)}")
    draw(stage, teller)


def read(stage: Stage) -> str:
    """What the container reads."""
    return stage.read_file(NODE, "web", "main", FILE)


def _cpu(pod: Document, layer: str = "resources") -> str:
    """The CPUs that the container's status shows: actual, or allocated."""
    status = container_status(pod)
    amounts = (status.get(layer) or {}) if layer == "allocatedResources" else (status.get(layer) or {}).get("requests", {})
    return str(amounts.get("cpu", ""))


def draw(stage: Stage, teller: Teller) -> None:
    """Owners by the kernel; what the file does not say any more is being left."""
    owners = {cpu: name for name, cpus in _running(stage).items() for cpu in cpus}
    told = cpus_of(read(stage))
    leaving = frozenset(cpu for cpu, owner in owners.items() if owner == "web" and cpu not in told)
    grid = Grid(MACHINE, RESERVED, owners, leaving)
    teller.rows(grid.rows(), style=grid.style)


def _running(stage: Stage) -> dict[str, frozenset[int]]:
    """Where each pod with CPUs of its own may run."""
    cgroups = stage.cgroups(NODE)
    names = sorted(set(owners_of(pod_resources(stage)).values()))
    return {name: cpus_of(cpuset_of(cgroups, name)) for name in names}
