"""What one pod was allocated, what its containers were given of it, and what the pod counts for among its neighbours."""

from typing import Protocol

import msgspec

from elbowroom.api.objects import Container, Node, Pod, ResourceRequirements
from elbowroom.api.resources import Resources, effective_requests, maximum, spec_requests
from elbowroom.kubelet import actuation, tuning
from elbowroom.kubelet.actuation import latest
from elbowroom.kubelet.admission import Neighbour
from elbowroom.kubelet.allocation import with_allocation
from elbowroom.kubelet.checkpoint import Checkpoint, PodResources
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.machine import Effect, Note
from elbowroom.wire.cri import LinuxResources, SandboxState

NOTHING = PodResources()


class Services(Protocol):
    """What is needed of the kubelet."""

    config: KubeletConfig
    allocated: Checkpoint
    actuated: Checkpoint
    managers: Managers

    @property
    def node(self) -> Node: ...
    def emit(self, *effects: Effect) -> None: ...


class Owner(Protocol):
    """What is needed of the pod's worker."""

    pod: Pod

    @property
    def uid(self) -> str: ...
    @property
    def key(self) -> str: ...


class Account:
    """One pod's lines in the two checkpoints, and what follows from them."""

    __slots__ = (
        "_allocated",
        "_counted",
        "_kubelet",
        "_owner",
    )

    def __init__(self, kubelet: Services, owner: Owner) -> None:
        self._kubelet, self._owner = kubelet, owner
        self._counted: Neighbour | None = None
        self._allocated: tuple[Pod, PodResources | None, Pod] | None = None

    @property
    def layer(self) -> PodResources | None:
        """What it was allocated."""
        return self._kubelet.allocated.entries.get(self._owner.pod.metadata.uid)

    @property
    def actuated(self) -> PodResources:
        """What was handed to the runtime."""
        return self._kubelet.actuated.entries.get(self._owner.pod.metadata.uid) or NOTHING

    @property
    def allocated_pod(self) -> Pod:
        """The pod with its allocated resources."""
        pod, known = self._owner.pod, self._allocated
        layer = self._kubelet.allocated.entries.get(pod.metadata.uid)
        if known is None or known[0] is not pod or known[1] is not layer:
            made = pod if layer is None else with_allocation(pod, layer, self._kubelet.config)
            known = self._allocated = (pod, layer, made)
        return known[2]

    @property
    def counts(self) -> Resources:
        """What the pod counts for among its neighbours: the largest of its allocation and what its status shows."""
        return self.neighbour.counts

    @property
    def neighbour(self) -> Neighbour:
        """As its neighbours see it."""
        pod = self.allocated_pod
        known = self._counted
        if known is None or known.pod is not pod:
            level = self._kubelet.config.on("InPlacePodLevelResourcesVerticalScaling")
            # The status may still call the last resize infeasible, and so leave out the spec: here that is the allocation.
            counts = maximum(spec_requests(pod), effective_requests(pod, pod_level_status=level))
            known = self._counted = Neighbour(pod, counts)
        return known

    @property
    def pinned(self) -> frozenset[str]:
        """Its containers that have CPUs of their own, and so no CPU quota."""
        return self._kubelet.managers.unbound(self.allocated_pod)

    @property
    def unbound(self) -> frozenset[str]:
        """Its containers without a CPU quota: all, if the kubelet is not to enforce CPU limits."""
        if not self._kubelet.config.cpu_quota:
            return frozenset(container.name for container in actuation.containers_of(self.allocated_pod))
        return self.pinned

    def tuned(self, linux: LinuxResources, container: Container) -> LinuxResources:
        """``linux`` with what the runtime is told beside amounts. ``container`` has the resources that it is told of."""
        return tuning.tuned(linux, self.allocated_pod, container, tuning.ground(self._kubelet.node, self._kubelet.config))

    # ------------------------------------------------------------ what was handed to the runtime

    def record(self, name: str, resources: ResourceRequirements, cause: str) -> None:
        """Actuated is what was handed to the runtime."""
        owner = self._owner
        self._kubelet.actuated.put_container(owner.uid, name, resources)
        allocated = next((c.resources for c in actuation.containers_of(self.allocated_pod) if c.name == name), resources)
        own = msgspec.to_builtins(actuation.own_values(resources, allocated))
        facts = {"pod": owner.key, "uid": owner.uid, "containers": {name: own}, "cause": cause}
        self._kubelet.emit(Note("kl.actuated", facts))

    def correct(self, sandbox: SandboxState) -> None:
        """Actuated is what the runtime was last told, even where an answer was lost; that it was found is written down, too, for
        nothing may follow that would write it.

        But if that is what was allocated, the call whose success was not recorded is made again, as upstream does (RC-93).
        """
        if self.layer is None:
            return
        layer, pod, unbound = self.actuated, self.allocated_pod, self.unbound
        containers = {container.name: container for container in actuation.containers_of(pod)}
        for state in latest(sandbox).values():
            recorded, container = layer.of(state.name), containers.get(state.name)
            if state.state != "running" or recorded is None or container is None:
                continue
            is_unbound, level = state.name in unbound, pod.spec.resources
            known = actuation.amounts(recorded, layer.level or level, unbound=is_unbound)
            wanted = actuation.amounts(container.resources, level, unbound=is_unbound)
            found = actuation.told(state, known)
            if found is not None and found != known and actuation.told(state, wanted) is not None:
                self.record(state.name, found.record(), "found")
                self._kubelet.emit(*self._kubelet.actuated.save())
