"""What a node's proxy shows of its kubelet: metrics, cgroups and pod resources, as interface bodies."""

from collections.abc import Iterable
from typing import Any

from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.metrics import Metrics, priority_bucket
from elbowroom.kubelet.worker import PodWorker
from elbowroom.wire.cri import LinuxResources, SandboxState


def exposition(metrics: Metrics, workers: Iterable[PodWorker]) -> bytes:
    """The metrics, with the gauges that count pods as they are now."""
    pending: dict[tuple[str, str], int] = {}
    containers: dict[str, int] = {}
    words: list[tuple[str, str, str, str]] = []
    in_progress = running = 0
    for worker in workers:
        if worker.pending is not None:
            labels = (worker.pending.reason.lower(), priority_bucket(worker.pod.priority))
            pending[labels] = pending.get(labels, 0) + 1
        in_progress += worker.in_progress is not None
        sandbox = worker.sandbox
        running += sandbox is not None and sandbox.ready
        for state in sandbox.containers if sandbox is not None else ():
            containers[state.state] = containers.get(state.state, 0) + 1
        if worker.resize_word:
            meta = worker.pod.metadata
            words += [(meta.namespace, meta.name, c.name, worker.resize_word) for c in worker.pod.spec.containers]
    return metrics.exposition(pending, in_progress, running, containers, words)


def pod_resources(workers: Iterable[PodWorker], managers: Managers) -> dict[str, Any]:
    """The PodResources list: the CPUs and the memory that are set apart, for containers and for pods as a whole (RM-33)."""
    listed = []
    for worker in workers:
        pod = worker.pod
        if worker.active:
            long_lived = [*(c for c in pod.spec.init_containers if c.is_sidecar), *pod.spec.containers]
            allocated = worker.allocated_pod
            containers = [{"name": c.name, **_own(*managers.exposed(allocated, c.name))} for c in long_lived]
            place = {"name": pod.metadata.name, "namespace": pod.metadata.namespace}
            cpus, memory = managers.exposed_pod(worker.uid)
            whole = _own(cpus, memory) if cpus or memory else {}
            listed.append({**place, **whole, "containers": containers})
    return {"podResources": listed}


def _own(cpus: list[int], memory: list[dict[str, object]]) -> dict[str, Any]:
    return {"cpuIds": cpus, "memory": memory}


def cgroups(sandboxes: Iterable[SandboxState], config: KubeletConfig) -> list[dict[str, Any]]:
    """The cgroups of pods and of their containers; null is no limit."""
    listed = []
    for sandbox in sandboxes:
        if not sandbox.ready:
            continue
        place = {"pod": sandbox.name, "namespace": sandbox.namespace}
        listed.append({**place, **_cgroup(sandbox.pod_cgroup, config)})
        for container in sandbox.containers:
            if container.state != "exited":
                listed.append({**place, "container": container.name, **_cgroup(container.cgroup, config)})
    return listed


def _cgroup(resources: LinuxResources, config: KubeletConfig) -> dict[str, Any]:
    shares = resources.cpu_shares or 2
    hardware = config.hardware
    cpu = {"cpuWeight": 1 + (shares - 2) * 9999 // 262142} if hardware.cgroup_version == 2 else {"cpuShares": shares}
    return {
        **cpu,
        "cpuQuota": resources.cpu_quota if resources.cpu_quota > 0 else None,
        "cpuPeriod": resources.cpu_period or 100_000,
        "memoryMax": resources.memory_limit_bytes if resources.memory_limit_bytes > 0 else None,
        "cpusetCpus": resources.cpuset_cpus or f"0-{hardware.cpus - 1}",
    }
