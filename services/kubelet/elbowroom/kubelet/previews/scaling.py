"""The previews at work in a kubelet: they judge resizes of exclusive CPUs, carry them out, and keep the time of delays.

The CPU manager's state is ``managers.cpus``; what is decided here is put there and made durable before the allocation is (what a
life that dies between the two leaves is mended by ``recover``). Which cgroups follow, and when, is the matter of the CPU manager's
own loop (XC-6), whose ticks are also what ends a delay (SD-4).
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge

from elbowroom.api.objects import Container, Pod, ResourceRequirements
from elbowroom.api.resources import of, qos_class
from elbowroom.kubelet import features
from elbowroom.kubelet.actuation import latest
from elbowroom.kubelet.admission import Refusal
from elbowroom.kubelet.allocation import STATIC_CPU, Deferred, Infeasible
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet, CPUSetError
from elbowroom.kubelet.managers.manager import Managers, sum_of
from elbowroom.kubelet.managers.static import StaticPolicy, level_set
from elbowroom.kubelet.previews import delay
from elbowroom.kubelet.previews.delay import Scaled, Terms
from elbowroom.kubelet.previews.exclusive import Alignment, Ask, Barred, asks
from elbowroom.machine import Effect, Instant, Note, seconds
from elbowroom.wire.cri import SandboxState

EXCLUSIVE_CPUS = "InPlacePodVerticalScalingExclusiveCPUs"
NODE_WIDE, PER_POD = "6122A", "6122B"


class Services(Protocol):
    """What the previews need of their kubelet."""

    config: KubeletConfig
    managers: Managers

    def emit(self, *effects: Effect) -> None: ...
    def save_managers(self, cause: str) -> None: ...
    def sandboxes(self) -> Iterable[tuple[str, SandboxState | None]]: ...


class Scaling:
    """See the module. ``boot`` is the machine's, empty if nobody knows it."""

    def __init__(self, kubelet: Services, registry: CollectorRegistry, boot: str) -> None:
        self._kubelet, self._boot = kubelet, boot
        self._metrics: DelayMetrics | None = None
        self._registry = registry

    # ------------------------------------------------------------ what there is

    @property
    def preview(self) -> str:
        """The preview in force; ``none`` on a node without exclusive CPUs or with the gate off."""
        config = self._kubelet.config
        on = config.managers.cpu is not None and config.on(EXCLUSIVE_CPUS)
        return config.preview if on else "none"

    @property
    def _delays(self) -> bool:
        return self.preview in (NODE_WIDE, PER_POD)

    @property
    def waits(self) -> bool:
        """Is somebody about to leave CPUs?"""
        return bool(self._kubelet.managers.cpus.leaving)

    def _concerns(self, pod: Pod) -> bool:
        """XC-57: pods with pod-level resources are left out."""
        return self.preview != "none" and qos_class(pod) == "Guaranteed" and not level_set(pod)

    def _terms(self, pod: Pod) -> Terms:
        config = self._kubelet.config
        match self.preview:
            case "6122A":
                return Terms(config.scale_delay_ns)
            case "6122B":
                return Terms(seconds(pod.spec.scale_down_grace_period_seconds or 0), self._boot)
            case _:
                return Terms()

    @property
    def _policy(self) -> StaticPolicy:
        policy = self._kubelet.config.managers.cpu
        assert policy is not None, "a preview is in force on nodes with the static policy alone"
        return policy

    def _asks(self, wanted: Pod, allocated: Pod) -> tuple[Ask, ...]:
        return asks(wanted, allocated, pod_level_managers=self._kubelet.config.managers.pod_level)

    def _alignment(self, pod: Pod) -> Alignment:
        settings = self._kubelet.config.managers
        per_pod = settings.scope == "pod"
        return Alignment(settings.topology_policy, per_pod, self._kubelet.managers.memory_hints(pod))

    # ------------------------------------------------------------ admission

    def admit(self, pod: Pod) -> Refusal | None:
        """The managers' admission. One that still has CPUs that it is to leave is taken back with them (SD-11)."""
        return features.refusal(pod, self._kubelet.config) or self._kubelet.managers.admit(self._as_held(pod))

    def objection(self, pod: Pod) -> Refusal | None:
        """What the managers say to a resized pod. Where a preview decides that, it does so after the node's room (XC-47)."""
        return None if self._concerns(pod) else self._kubelet.managers.objection(pod)

    def _as_held(self, pod: Pod) -> Pod:
        held = self.held(pod.uid)
        if not held:
            return pod

        def given(containers: list[Container]) -> list[Container]:
            return [
                msgspec.structs.replace(c, resources=_with_cpus(c.resources, held[c.name])) if c.name in held else c
                for c in containers
            ]

        spec = msgspec.structs.replace(
            pod.spec, containers=given(pod.spec.containers), init_containers=given(pod.spec.init_containers)
        )
        return msgspec.structs.replace(pod, spec=spec)

    # ------------------------------------------------------------ resizes

    def verdict(self, now: Instant, wanted: Pod, allocated: Pod) -> Infeasible | Deferred | None:
        """What hinders a resize for which the node has room; None if nothing does."""
        cpus = self._kubelet.managers.cpus
        if self.preview != "none" and qos_class(wanted) == "Guaranteed" and level_set(wanted):
            has_own = wanted.uid in cpus.pods or wanted.uid in cpus.entries
            moved = any(ask.requested != ask.allocated and _differ(ask) for ask in self._asks(wanted, allocated))
            return Infeasible(STATIC_CPU, "guaranteed_pod_cpu_manager_static_policy") if has_own and moved else None
        if not self._concerns(wanted):
            return None
        found = self._scaled(now, wanted, allocated)
        if not isinstance(found, Barred):
            return None
        if found.error == "resizeAllocateCPUs" and self._delays and self.waits:
            return Deferred(found.error, found.message)  # SD-8: once they have left there may be enough
        return Infeasible(found.message, found.error)

    def carry_out(self, now: Instant, wanted: Pod, allocated: Pod) -> None:
        """The resize is granted: give and take the CPUs, at once or later, and make that durable."""
        if self._concerns(wanted):
            found = self._scaled(now, wanted, allocated)
            assert isinstance(found, Scaled), "it was judged in this step"
            self._put(wanted.uid, found, "resized")

    def _scaled(self, now: Instant, wanted: Pod, allocated: Pod) -> Scaled | Barred:
        cpus, alignment = self._kubelet.managers.cpus, self._alignment(wanted)
        return delay.scaled(self._policy, cpus, wanted.uid, self._asks(wanted, allocated), alignment, now, self._terms(wanted))

    def _put(self, uid: str, found: Scaled, cause: str) -> None:
        if found.state == self._kubelet.managers.cpus:
            return
        self._kubelet.managers.cpus = found.state
        self._kubelet.save_managers(cause)
        for change in found.delayed:
            facts = {"uid": uid, "container": change.container, "from": str(change.before), "to": str(change.after)}
            self._kubelet.emit(Note("kl.cpus.leaving", facts))
            if self.preview == PER_POD:
                self._delay_metrics.started.inc()

    # ------------------------------------------------------------ time

    def recover(self, now: Instant, pods: Iterable[Pod]) -> None:
        """A life begins: make what an earlier one left fit the pods' allocations. Before they are admitted again."""
        managers = self._kubelet.managers
        if self.preview != PER_POD and self.waits:
            for uid, containers in list(managers.cpus.leaving.items()):
                for container in containers:
                    managers.cpus = managers.cpus.without_leaving(uid, container)
        for pod in pods:
            if self._concerns(pod):
                terms, alignment = self._terms(pod), self._alignment(pod)
                found = delay.recovered(self._policy, managers.cpus, pod.uid, self._asks(pod, pod), alignment, now, terms)
                self._put(pod.uid, found, "recovered")

    def tick(self, now: Instant) -> tuple[str, ...]:
        """The CPU manager's loop comes round: the uids of pods of which somebody has left CPUs."""
        if not self.waits:
            return ()
        state, done = delay.completed(self._kubelet.managers.cpus, now)
        if not done:
            return ()
        self._kubelet.managers.cpus = state
        self._kubelet.save_managers("left")
        for uid, change in done:
            facts = {"uid": uid, "container": change.container, "from": str(change.before), "to": str(change.after)}
            self._kubelet.emit(Note("kl.cpus.left", facts))
            if self.preview == PER_POD:
                self._delay_metrics.completed.inc()
        return tuple(dict.fromkeys(uid for uid, _ in done))

    # ------------------------------------------------------------ what is told

    def assigned(self, uid: str, container: str) -> str:
        """``assigned.cpuset`` of the container: a Linux list, empty without CPUs of its own (SD-12)."""
        return str(delay.assigned(self._kubelet.managers.cpus, uid, container) or "")

    def held(self, uid: str) -> Mapping[str, int]:
        """The containers that are about to leave CPUs, and how many they have until then: what their status goes on to show, so
        that nobody counts on what is not free yet (SD-7)."""
        cpus = self._kubelet.managers.cpus
        return {name: len(cpus.of(uid, name) or ()) for name in cpus.leaving.get(uid, {})}

    def blockers(self, uid: str, container: str) -> dict[str, CPUSet]:
        """Who still runs on CPUs that the container was given: by pod uid, those CPUs. A smaller set is in force before its
        container is moved to it, and CPUs of one's own are shared with nobody, not even until the next round."""
        managers, found = self._kubelet.managers, dict[str, CPUSet]()
        own = managers.cpus.of(uid, container)
        if own is None or self.preview == "none":
            return found
        for other, sandbox in self._kubelet.sandboxes():
            entries = managers.cpus.entries.get(other, {})
            for name, state in latest(sandbox).items():
                if state.state == "running" and name in entries and (other, name) != (uid, container):
                    left_over = own & _parsed(state.resources.cpuset_cpus) - entries[name]
                    if left_over:
                        found[other] = found.get(other, NOBODY) | left_over
        return found

    def place(self, uid: str, container: str) -> str:
        """Where the container may run by now: what it was given, without what others have not left yet; empty: anywhere."""
        given = self._kubelet.managers.cpuset(uid, container)
        blocked = self.blockers(uid, container)
        own = self._kubelet.managers.cpus.of(uid, container)
        return given if own is None or not blocked else str(own - sum_of(blocked.values()))

    def holds_back(self, uid: str, sandbox: SandboxState | None, *, under_way: bool) -> bool:
        """Is a resize not complete for its CPUs' sake: somebody has not left yet, or (if it is ``under_way``) does not run where it
        should (SD-7)?"""
        if not self._delays:
            return False
        cpus = self._kubelet.managers.cpus
        if cpus.leaving.get(uid):
            return True
        entries = cpus.entries.get(uid, {})
        return under_way and any(
            state.state == "running" and name in entries and state.resources.cpuset_cpus != str(entries[name])
            for name, state in latest(sandbox).items()
        )

    @property
    def _delay_metrics(self) -> "DelayMetrics":
        if self._metrics is None:
            self._metrics = DelayMetrics(self._registry)
        return self._metrics

    def gauge(self) -> None:
        """Set the gauge of design B to what is so now (SD-26)."""
        if self.preview == PER_POD:
            cpus = self._kubelet.managers.cpus
            pending = [
                len(cpus.of(uid, name) or ()) - len(one.cpus) for uid, entry in cpus.leaving.items() for name, one in entry.items()
            ]
            self._delay_metrics.pending.set(sum(pending))


class DelayMetrics:
    """SD-26."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.started = Counter(
            "cpu_manager_scale_down_delay_started_total",
            "[ALPHA] Number of scale downs of exclusive CPUs that were delayed.",
            registry=registry,
        )
        self.completed = Counter(
            "cpu_manager_scale_down_delay_completed_total",
            "[ALPHA] Number of delayed scale downs of exclusive CPUs that were carried out.",
            registry=registry,
        )
        self.pending = Gauge(
            "cpu_manager_scale_down_pending_cpu_count",
            "[ALPHA] Number of exclusive CPUs that containers are about to leave.",
            registry=registry,
        )


def _parsed(text: str) -> CPUSet:
    try:
        return CPUSet.parse(text)
    except CPUSetError:
        return NOBODY


def _differ(ask: Ask) -> bool:
    return of({"cpu": ask.requested}) != of({"cpu": ask.allocated})


def _with_cpus(resources: ResourceRequirements, count: int) -> ResourceRequirements:
    cpu = {"cpu": str(count)}
    return ResourceRequirements(requests={**resources.requests, **cpu}, limits={**resources.limits, **cpu})
