"""A whole cluster in the simulated world.

The machines are the very ones that run as processes; the supervisor's part (a kubelet and a runtime for each Node) is played by
``SimulatedCluster.add_node``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.api import resources
from elbowroom.api.gates import Profile, profile_of
from elbowroom.api.objects import Pod
from elbowroom.apiserver import machine as apiserver
from elbowroom.controllers import machine as controllers
from elbowroom.history.invariants import INVARIANTS
from elbowroom.history.records import History
from elbowroom.history.report import Report, judge
from elbowroom.kubelet import machine as kubelet
from elbowroom.rpc import create, get, patch
from elbowroom.runtime import machine as runtime
from elbowroom.scheduler import machine as scheduler
from elbowroom.sim.world import World
from elbowroom.wire import ApiRequest

SAFETY = ("I-01", "I-22", "I-23", "I-38", "I-44")
"""What may be broken for a moment only and is cheap to judge: looked at whenever a fault has ended."""


def peers(nodes: Sequence[str]) -> list[str]:
    """The processes of a cluster with these nodes that a nemesis may kill and freeze."""
    return ["apiserver", "scheduler", "controllers", *(f"{kind}/{node}" for node in nodes for kind in ("runtime", "kubelet"))]


def links(nodes: Sequence[str]) -> list[tuple[str, str]]:
    """Who dials whom there, the clients of a story apart: what a nemesis may cut."""
    own = [(f"kubelet/{node}", listener) for node in nodes for listener in ("apiserver", f"runtime/{node}")]
    return [("scheduler", "apiserver"), ("controllers", "apiserver"), *own]


class SimulatedCluster:
    """API server, scheduler and controllers in a world of their own; nodes are added.

    ``prepare`` is shown the world before anything happens in it; ``configs`` is what a machine is told beside the profile, by name.
    """

    def __init__(
        self,
        seed: int,
        profile: Profile | None = None,
        prepare: Callable[[World], None] | None = None,
        configs: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.world = World(seed)
        if prepare is not None:
            prepare(self.world)
        self._config = {"profile": (profile or profile_of("lab")).as_config()}
        more = configs or {}
        self.world.add("apiserver", apiserver.build, {**self._config, **more.get("apiserver", {})})
        self.world.add("scheduler", scheduler.build, {**self._config, **more.get("scheduler", {})}, dials=("apiserver",))
        self.world.add("controllers", controllers.build, self._config, dials=("apiserver",))
        self.client = self.world.client
        self.pods = self.client.mirror("pods", Pod, namespace="default")

    def ask(self, request: ApiRequest, within: float = 60.0, allowed: Sequence[int] = ()) -> dict[str, Any]:
        """Ask until it certainly happened: an answer that was lost is asked for again, a doubled create counts as done, and so does
        a refusal with a code that is ``allowed``."""
        end = self.world.now + int(within * 1e9)
        while True:
            answer = self.client.api(request, timeout=3.0)
            if 200 <= answer.status < 300:
                return dict(msgspec.json.decode(answer.body)) if answer.body else {}
            if answer.status in allowed or (answer.status == 409 and request.verb == "create"):
                return {}
            assert answer.status in (0, 409, 429, 500, 503), f"{request.verb} {request.name}: {answer.status} {answer.body!r}"
            assert self.world.now < end, f"{request.verb} {request.resource} {request.name}: no answer within {within} s"
            self.world.run_for(0.05)

    def add_node(self, name: str, cpu: str = "4", memory: str = "4Gi", annotations: Mapping[str, str] | None = None) -> None:
        """Create the Node and start its runtime and kubelet."""
        capacity = {"cpu": cpu, "memory": memory, "pods": "110"}
        notes = {"elbowroom.dev/node": "emulated", **(annotations or {})}
        self.add_node_of(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "annotations": notes, "labels": {"kubernetes.io/hostname": name}},
                "status": {"capacity": capacity, "allocatable": capacity},
            }
        )

    def add_node_of(self, manifest: Mapping[str, Any]) -> None:
        """Create that Node and start its runtime and kubelet."""
        name = str(manifest["metadata"]["name"])
        self.ask(create("nodes", manifest))
        self.world.add(f"runtime/{name}", runtime.build, {**self._config, "node": name})
        self.world.add(f"kubelet/{name}", kubelet.build, {**self._config, "node": name}, dials=("apiserver", f"runtime/{name}"))

    def add_priority(self, name: str, value: int) -> None:
        document = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        self.ask(create("priorityclasses.scheduling.k8s.io", document))

    def add_pod(self, name: str, priority: str, memory: str, cpu: str = "500m", grace: int = 0) -> None:
        container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"priorityClassName": priority, "terminationGracePeriodSeconds": grace, "containers": [container]},
        }
        self.ask(create("pods", document, namespace="default"))

    def resize(self, name: str, **requests: str) -> None:
        body = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
        self.ask(patch("pods", name, body, namespace="default", subresource="resize"))

    def pod(self, name: str) -> Pod:
        """The pod as the API server has it now."""
        return msgspec.convert(self.ask(get("pods", name, namespace="default")), Pod)

    def until(self, what: str, holds: Any, within: float = 60.0) -> None:
        """Let time pass until ``holds()``; AssertionError with ``what`` if it does not come to that."""
        assert self.world.run_until(holds, within), f"not within {within} virtual seconds: {what}\n{self.state()}"

    def running(self, *names: str) -> bool:
        mine = [self.pods.store.get(f"default/{name}") for name in names]
        return all(pod is not None and pod.status.phase == "Running" for pod in mine)

    def settled(self) -> bool:
        """Nobody is down, and every pod that still counts has desired = allocated = actual, or says truly why not."""
        if not all(self.world.alive(name) for name in self.world.names()):
            return False
        return all(is_settled(pod) for pod in self.pods.store.values() if not pod.is_terminal)

    def state(self) -> str:
        lines = []
        for pod in self.pods.store.values():
            conditions = [f"{c.type}={c.status}/{c.reason}" for c in pod.status.conditions if c.type.startswith("PodResize")]
            lines.append(
                f"{pod.key} {pod.status.phase} on {pod.spec.node_name or '-'} desired {resources.spec_requests(pod)} "
                f"allocated {resources.allocated_requests(pod)} actual {resources.actual_requests(pod)} {conditions} "
                f"{'terminating' if pod.is_terminating else ''}"
            )
        return "\n".join(lines)

    def stays_safe(self) -> None:
        """Judge what cannot be undone whenever a fault has ended, not only at the end."""
        self.world.at_heal(self._look)

    def _look(self) -> None:
        so_far = History(tuple(self.world.history))
        for invariant in SAFETY:
            broken = next(INVARIANTS[invariant](so_far), None)
            assert broken is None, f"{invariant}: {broken.message}"

    def verdict(self) -> Report:
        """End the run and judge its history."""
        self.world.close()
        return judge(History.of(self.world.history))


def is_settled(pod: Pod) -> bool:
    """desired = allocated = actual and no condition about it, or Pending with a reason; an unbound pod waits for the scheduler."""
    if pod.is_terminating:
        return False
    if not pod.spec.node_name:
        return True
    pending, progress = pod.condition("PodResizePending"), pod.condition("PodResizeInProgress")
    if pod.status.phase != "Running" or progress is not None:
        return False
    desired, allocated, actual = resources.spec_requests(pod), resources.allocated_requests(pod), resources.actual_requests(pod)
    if pending is not None:
        return pending.reason in ("Deferred", "Infeasible") and desired != allocated and allocated == actual
    return desired == allocated == actual
