"""Feature gates and profiles: which truth, where truths differ.

``lab`` is the whole design as its documents describe it; ``v1.37`` is what a real v1.37 cluster does. Each difference is a
switch of its own (docs/profiles.md, rows 1 to 14), so experiments can mix them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

RESIZE_PREEMPTION = "InPlacePodVerticalScalingSchedulerPreemption"
ALIASES = {"SchedulerPreemptionForPodResize": RESIZE_PREEMPTION}

DEFAULT_GATES: Mapping[str, bool] = {
    "InPlacePodVerticalScaling": True,
    "InPlacePodVerticalScalingInitContainers": True,
    "InPlacePodLevelResourcesVerticalScaling": True,
    "InPlacePodVerticalScalingExclusiveCPUs": False,
    "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay": False,
    "InPlacePodVerticalScalingExclusiveMemory": False,
    "InPlacePodVerticalScalingMemoryBackedVolumes": False,
    "DownwardAPIAssignedResources": False,
    "CPUManagerPolicyAlphaOptions": False,
    "PodLevelResources": True,
    "PodLevelResourceManagers": False,
    "PodLevelResourcesFixDefaulting": True,
    "PodLevelResourcesFixKubeletQOSClass": True,
    "PodObservedGenerationTracking": True,
    "NodeDeclaredFeatures": True,
    "PLEGOnDemandRelist": True,
    "SchedulerQueueingHints": True,
    "SchedulerPopFromBackoffQ": True,
    "SchedulerAsyncPreemption": True,
    "SchedulerAsyncAPICalls": False,
    "NominatedNodeNameForExpectation": True,
    "ClearingNominatedNodeNameAfterBinding": True,
    "OpportunisticBatching": True,
    "GenericWorkload": False,
    "GangScheduling": False,
    "NotEvictPodOnKubeletRestart": False,
    RESIZE_PREEMPTION: False,
}

_LAB_GATES = {
    RESIZE_PREEMPTION: True,
    "InPlacePodVerticalScalingExclusiveCPUs": True,
    "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay": True,
    "DownwardAPIAssignedResources": True,
    "CPUManagerPolicyAlphaOptions": True,
    "PodLevelResourceManagers": True,
}


_NEEDS: Mapping[str, str] = {
    "InPlacePodLevelResourcesVerticalScaling": "PodLevelResources",
    "PodLevelResourceManagers": "PodLevelResources",
    "PodLevelResourcesFixDefaulting": "PodLevelResources",
    "PodLevelResourcesFixKubeletQOSClass": "PodLevelResources",
    "InPlacePodVerticalScalingExclusiveCPUs": "InPlacePodVerticalScaling",
    "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay": "InPlacePodVerticalScalingExclusiveCPUs",
}
"""A gate, and the one without which it can't be on: a component that is told so does not start."""


class UnknownGateError(ValueError):
    """A feature gate by a name that upstream does not have."""


class GateDependencyError(ValueError):
    """A gate is on whose own requirement is off."""


def consistent(gates: Mapping[str, bool], asked: Mapping[str, bool]) -> dict[str, bool]:
    """``gates`` with those off that only the lab's previews had put on and that lack what they need.

    ``asked`` is what somebody wrote down. ``GateDependencyError`` for what upstream refuses to start with: its own defaults count.
    """
    made = dict(gates)
    for name, needed in _NEEDS.items():
        if not made.get(name) or made.get(needed, True):
            continue
        if asked.get(name) or DEFAULT_GATES[name]:
            raise GateDependencyError(f"{name} is enabled, but depends on features that are disabled: [{needed}]")
        made[name] = False
    return made


@dataclass(frozen=True, slots=True)
class Profile:
    """The switches of docs/profiles.md. Build one with ``profile_of``; it travels to services as ``as_config()``."""

    name: str
    gates: Mapping[str, bool] = field(default_factory=dict)
    refuses_above_allocatable: bool = False
    """Row 2: PodResizeValidator says 403 (True), or the kubelet says Infeasible (False)."""
    policy_by_condition: bool = True
    """Row 3: the kubelet publishes PodResizePreemptionDisabled and the scheduler acts on it (True), or reads the Node (False)."""
    sandbox_update_blocks: bool = False
    """Row 4: UpdatePodSandboxResources comes before the write and its failure aborts the resize."""
    resize_policy_mutable: bool = True
    """Row 5: resizePolicy may be changed through /resize."""
    pdb_policy: str = "bestEffort"
    nomination_tracking: str = "none"
    resize_fit: str = "maxDesired"
    publishes_resize_status: bool = True
    """Rows 13 and 14: containerStatuses[].resizeStatus and the extra metrics."""
    previews: bool = True
    """Row 11: designs that no release has are there: a node with static CPUs takes part unless its knob says otherwise."""
    pending_pass_at_start: bool = True
    """Appendix C 1 of resize-core: a starting kubelet judges pending resizes at once, not at the first timer."""

    def on(self, gate: str) -> bool:
        """Is the gate on?"""
        return self.gates.get(ALIASES.get(gate, gate), False)

    @property
    def resize_preemption(self) -> bool:
        """Row 1: may the scheduler preempt for a Deferred resize?"""
        return self.on(RESIZE_PREEMPTION)

    @property
    def knows_assigned_resources(self) -> bool:
        """Row 11: may volumes ask for ``assigned.cpuset``? A server that knows it lets it in whatever the gate says (SD-13)."""
        return self.previews or self.on("DownwardAPIAssignedResources")

    def as_config(self) -> dict[str, object]:
        """A JSON-shaped value from which ``Profile.from_config`` makes an equal one."""
        return {name: dict(self.gates) if name == "gates" else getattr(self, name) for name in Profile.__dataclass_fields__}

    @staticmethod
    def from_config(config: Mapping[str, object]) -> "Profile":
        """The inverse of ``as_config``."""
        return Profile(**config)  # type: ignore[arg-type]


def profile_of(name: str, gates: Mapping[str, bool] | None = None) -> Profile:
    """The profile of that name (``lab`` or ``v1.37``) with gates laid over its own; unknown names are refused."""
    if name not in ("lab", "v1.37"):
        raise ValueError(f"unknown profile {name!r}: lab or v1.37")
    wanted = {ALIASES.get(gate, gate): on for gate, on in (gates or {}).items()}
    unknown = sorted(set(wanted) - set(DEFAULT_GATES))
    if unknown:
        raise UnknownGateError(f"unknown feature gate {unknown[0]!r}")
    lab = Profile("lab", consistent({**DEFAULT_GATES, **_LAB_GATES, **wanted}, wanted))
    if name == "lab":
        return lab
    return replace(
        lab,
        name="v1.37",
        gates=consistent({**DEFAULT_GATES, **wanted}, wanted),
        refuses_above_allocatable=True,
        policy_by_condition=False,
        sandbox_update_blocks=True,
        resize_policy_mutable=False,
        publishes_resize_status=False,
        previews=False,
        pending_pass_at_start=False,
    )
