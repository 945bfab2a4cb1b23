"""What a node's proxy shows of its kubelet: metrics, cgroups and pod resources, as interface bodies."""

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from elbowroom.api.objects import Node
from elbowroom.kubelet import files
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.metrics import CONTENT_TYPE, Metrics, complete, priority_bucket
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.roster import Roster
from elbowroom.kubelet.worker import PodWorker
from elbowroom.machine import Effect, Instant, Send
from elbowroom.rpc import Calls, Finished
from elbowroom.wire import Call, Code, MalformedError, Reply, decode_value, encode_value
from elbowroom.wire.cri import LinuxResources, RuntimeState, SandboxState

TEXT, JSON = "text/plain; charset=utf-8", "application/json"


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


# ---------------------------------------------------------------- questions


class Services(Protocol):
    """What the proxy needs of its kubelet."""

    config: KubeletConfig
    metrics: Metrics
    managers: Managers
    scaling: Scaling
    roster: Roster
    known_node: Node | None

    def emit(self, *effects: Effect) -> None: ...


class Proxy:
    """Answers what is asked of the kubelet through its node's proxy. Contexts of its calls: ``("cgroups", source, number)``."""

    def __init__(self, kubelet: Services, calls: Calls, runtime: str) -> None:
        self._kubelet, self._calls, self._runtime = kubelet, calls, runtime

    def asked(self, now: Instant, source: str, call: Call) -> None:
        """Somebody calls the kubelet; of its methods there is only ``proxy``."""
        if call.method != "proxy":
            self._refuse(source, call, Code.UNIMPLEMENTED, f"unknown method {call.method}")
            return
        try:
            asked = decode_value(call.body, dict)
        except MalformedError as why:
            self._refuse(source, call, Code.INVALID_ARGUMENT, str(why))
            return
        kubelet, node = self._kubelet, self._kubelet.known_node
        match str(asked.get("path", "")).strip("/"):
            case "metrics":
                self._answer(source, call.id, 200, CONTENT_TYPE, self._exposition())
            case "podresources":
                listed = pod_resources(kubelet.roster.workers.values(), kubelet.managers)
                self._answer(source, call.id, 200, JSON, msgspec.json.encode(listed))
            case "cgroups":
                context = ("cgroups", source, call.id)
                kubelet.emit(*self._calls.begin(now, self._runtime, "ListAll", context=context))
            case path if path.startswith(files.PREFIX) and node is not None:
                found = files.answer(path.removeprefix(files.PREFIX), kubelet.roster.by_key, node, kubelet.scaling.assigned)
                self._answer(source, call.id, found.status, TEXT, found.text.encode())
            case "healthz" | "livez" | "readyz":
                self._answer(source, call.id, 200, TEXT, b"ok")
            case path:
                self._answer(source, call.id, 404, TEXT, f"404 page not found: {path[:100]}\n".encode())

    def listed(self, source: str, number: int, end: Finished) -> None:
        """The runtime's answer, for who asked for the cgroups."""
        if end.code is not Code.OK:
            self._answer(source, number, 503, TEXT, f"the runtime did not answer: {end.message or end.code.name}\n".encode())
            return
        try:
            sandboxes = decode_value(end.body, RuntimeState).sandboxes
        except MalformedError as why:
            self._answer(source, number, 502, TEXT, str(why).encode())
            return
        self._answer(source, number, 200, JSON, msgspec.json.encode(cgroups(sandboxes, self._kubelet.config)))

    def _exposition(self) -> bytes:
        kubelet = self._kubelet
        if kubelet.managers.metrics is not None:
            complete(kubelet.managers.metrics)
        kubelet.managers.gauge()
        kubelet.scaling.gauge()
        return exposition(kubelet.metrics, kubelet.roster.workers.values())

    def _answer(self, source: str, number: int, status: int, kind: str, body: bytes) -> None:
        answer = {"status": status, "contentType": kind, "body": body}
        self._kubelet.emit(Send(source, Reply(number, Code.OK, encode_value(answer))))

    def _refuse(self, source: str, call: Call, code: Code, message: str) -> None:
        self._kubelet.emit(Send(source, Reply(call.id, code, message=message)))
