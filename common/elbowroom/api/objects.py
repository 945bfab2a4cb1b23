"""Views: the parts of Kubernetes objects that services read, as frozen Structs.

The API server keeps *documents* (JSON-shaped dicts, so that fields nobody here interprets survive); a service parses the
views it needs, once per revision. Field names are the API's in snake case. Quantities stay strings as the API server
canonicalised them; ``elbowroom.api.quantity`` reads them. Absent lists and maps read as empty ones; where the API tells absent
from empty (``resources`` of a container status, RC-12), the view has ``None``.
"""

from typing import Any

import msgspec

ResourceList = dict[str, str]


class Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """What all views share: frozen, by keyword, camelCase on the wire. What is parsed from a document has no cycles, so the garbage
    collector need not look at it."""


# ---------------------------------------------------------------- metadata


class OwnerReference(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Object(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Any object, by its metadata alone."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()


# ---------------------------------------------------------------- selectors, affinity, tolerations


class SelectorRequirement(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[SelectorRequirement] = []


class NodeSelectorTerm(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    match_expressions: list[SelectorRequirement] = []
    match_fields: list[SelectorRequirement] = []


class NodeSelector(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class PodAffinityTerm(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    label_selector: LabelSelector | None = None
    topology_key: str = ""
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Pod affinity and pod anti-affinity have this same shape."""

    required: list[PodAffinityTerm] = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default_factory=list)
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class Affinity(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Taint(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class TopologySpreadConstraint(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


# ---------------------------------------------------------------- pods


class ResourceRequirements(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    requests: ResourceList = {}
    limits: ResourceList = {}


class ResizePolicy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    resource_name: str = ""
    restart_policy: str = "NotRequired"


class ContainerPort(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = "TCP"


class Container(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    command: list[str] = []
    args: list[str] = []
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: list[ResizePolicy] = []
    restart_policy: str | None = None
    startup_probe: dict[str, Any] | None = None
    volume_mounts: list[dict[str, Any]] = []

    @property
    def is_sidecar(self) -> bool:
        """For an init container: does it go on beside the regular ones?"""
        return self.restart_policy == "Always"


class PodSchedulingGate(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str = ""


class PodSchedulingGroup(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pod_group_name: str = ""


class PodOS(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str = ""


class Sysctl(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str = ""


class PodSecurityContext(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    sysctls: list[Sysctl] = []


class PodSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, dict=True, gc=True):
    node_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduler_name: str = "default-scheduler"
    scheduling_gates: list[PodSchedulingGate] = []
    scheduling_group: PodSchedulingGroup | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    host_network: bool = False
    host_ipc: bool = msgspec.field(name="hostIPC", default=False)
    os: PodOS | None = None
    security_context: PodSecurityContext | None = None
    scale_down_grace_period_seconds: int | None = None
    volumes: list[dict[str, Any]] = []


class PodCondition(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_probe_time: str | None = None
    last_transition_time: str | None = None


class ContainerStateRunning(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    started_at: str | None = None


class ContainerStateWaiting(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    reason: str = ""
    message: str = ""


class ContainerStateTerminated(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = msgspec.field(name="containerID", default="")


class ContainerState(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    running: ContainerStateRunning | None = None
    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    image_id: str = msgspec.field(name="imageID", default="")
    container_id: str = msgspec.field(name="containerID", default="")
    started: bool | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    conditions: list[PodCondition] = []
    qos_class: str = ""
    start_time: str | None = None
    nominated_node_name: str = ""
    host_ip: str = msgspec.field(name="hostIP", default="")
    pod_ip: str = msgspec.field(name="podIP", default="")
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class Pod(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        return self.metadata.key

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def priority(self) -> int:
        """``spec.priority``; none counts as 0."""
        return self.spec.priority or 0

    @property
    def is_terminal(self) -> bool:
        """Its phase is Succeeded or Failed: it holds no resources any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        """Deletion was asked for; until its containers have stopped it still holds what it has."""
        return self.metadata.deletion_timestamp is not None

    def condition(self, kind: str) -> PodCondition | None:
        """The first condition of that type (SC-18: the first one decides)."""
        return next((c for c in self.status.conditions if c.type == kind), None)


# ---------------------------------------------------------------- nodes


class NodeCondition(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class PodPreemptionPolicy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    disable_resize_preemption: list[str] = []


class NodeSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    unschedulable: bool = False
    taints: list[Taint] = []
    pod_preemption_policy: PodPreemptionPolicy | None = None


class ContainerImage(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    names: list[str] = []
    size_bytes: int = 0


class NodeStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: list[NodeCondition] = []
    images: list[ContainerImage] = []
    declared_features: list[str] = []


class Node(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def resize_preemption_disabled(self) -> bool:
        """Somebody's entry stands in ``spec.podPreemptionPolicy.disableResizePreemption`` (SC-131)."""
        return self.spec.pod_preemption_policy is not None and bool(self.spec.pod_preemption_policy.disable_resize_preemption)

    def condition(self, kind: str) -> NodeCondition | None:
        return next((c for c in self.status.conditions if c.type == kind), None)


class LeaseSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str | None = None
    renew_time: str | None = None


class Lease(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


# ---------------------------------------------------------------- budgets, namespaces


class PodDisruptionBudgetSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    observed_generation: int = 0
    disrupted_pods: dict[str, str] = {}
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class PodDisruptionBudget(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class Namespace(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """By its metadata: the scheduler asks for its labels."""

    metadata: ObjectMeta = ObjectMeta()
