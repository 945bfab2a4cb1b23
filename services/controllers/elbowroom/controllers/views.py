"""Views that only controllers need: with the statuses that they write, and pod templates kept whole."""

from typing import Any

from elbowroom.api.objects import LabelSelector, ObjectMeta, PodDisruptionBudget, PodDisruptionBudgetStatus, Struct


class Condition(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A condition of a ReplicaSet, Deployment, Namespace or budget; each uses some of the fields."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_update_time: str | None = None
    last_transition_time: str | None = None


class ReplicaSetSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    min_ready_seconds: int = 0


class ReplicaSetStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: list[Condition] = []


class ReplicaSet(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class RollingUpdate(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class DeploymentStrategy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: int = 0
    paused: bool = False
    progress_deadline_seconds: int | None = None
    revision_history_limit: int | None = None


class DeploymentStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    collision_count: int | None = None
    conditions: list[Condition] = []

    def condition(self, kind: str) -> Condition | None:
        return next((c for c in self.conditions if c.type == kind), None)


class Deployment(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class BudgetStatus(PodDisruptionBudgetStatus, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    conditions: list[Condition] = []


class Budget(PodDisruptionBudget, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A PodDisruptionBudget."""

    status: BudgetStatus = BudgetStatus()


class NamespaceSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    finalizers: list[str] = []


class NamespaceStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    phase: str = ""
    conditions: list[Condition] = []


class Namespace(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class Event(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An Event, by what tells its age."""

    metadata: ObjectMeta = ObjectMeta()
    last_timestamp: str | None = None
    event_time: str | None = None


class Metadata(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Any object of which only the metadata matters."""

    metadata: ObjectMeta = ObjectMeta()


class RollingStatefulSet(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    partition: int = 0


class StatefulSetStrategy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    type: str = "RollingUpdate"
    rolling_update: RollingStatefulSet | None = None


class Ordinals(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    start: int = 0


class StatefulSetSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    volume_claim_templates: list[dict[str, Any]] = []
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: StatefulSetStrategy = StatefulSetStrategy()
    revision_history_limit: int = 10
    min_ready_seconds: int = 0
    ordinals: Ordinals = Ordinals()


class StatefulSetStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None
    conditions: list[Condition] = []


class StatefulSet(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    update_strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int = 10


class DaemonSetStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None


class DaemonSet(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, Any] = {}
    revision: int = 0


class ExitCodes(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which ends of containers a rule is about: of the named one, or of any."""

    container_name: str | None = None
    operator: str = ""
    values: list[int] = []


class ConditionPattern(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    type: str = ""
    status: str = "True"


class FailureRule(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: list[ConditionPattern] = []


class FailurePolicy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    rules: list[FailureRule] = []


class SuccessRule(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    rules: list[SuccessRule] = []


class JobSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    parallelism: int = 1
    completions: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int = 6
    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    pod_replacement_policy: str = ""
    completion_mode: str = "NonIndexed"
    managed_by: str | None = None
    pod_failure_policy: FailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None

    @property
    def indexes(self) -> int | None:
        """How many indexes there are to be done; None if the completions have none."""
        return self.completions if self.completion_mode == "Indexed" else None


class Uncounted(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    succeeded: list[str] = []
    failed: list[str] = []


class JobCondition(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    type: str = ""
    status: str = ""
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class JobStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    conditions: list[JobCondition] = []
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    terminating: int | None = None
    succeeded: int = 0
    failed: int = 0
    ready: int | None = None
    uncounted_terminated_pods: Uncounted | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None

    def condition(self, kind: str) -> JobCondition | None:
        """The condition of that type, if it holds."""
        return next((c for c in self.conditions if c.type == kind and c.status == "True"), None)


class Job(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def ended(self) -> JobCondition | None:
        """The condition by which it is over."""
        return self.status.condition("Complete") or self.status.condition("Failed")


class CronJobSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    schedule: str = ""
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: dict[str, Any] = {}
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    active: list[dict[str, str]] = []
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class DefinitionNames(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    plural: str = ""
    kind: str = ""


class DefinitionVersion(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str = ""
    served: bool = False


class DefinitionSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    group: str = ""
    scope: str = ""
    names: DefinitionNames = DefinitionNames()
    versions: list[DefinitionVersion] = []


class DefinitionStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    conditions: list[Condition] = []


class Definition(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A CustomResourceDefinition, as far as it tells what can be asked for."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()

    @property
    def version(self) -> str:
        """A version that is served; empty if there is none."""
        if not any(c.type == "Established" and c.status == "True" for c in self.status.conditions):
            return ""
        return next((one.name for one in self.spec.versions if one.served), "")

    @property
    def is_namespaced(self) -> bool:
        return self.spec.scope == "Namespaced"
