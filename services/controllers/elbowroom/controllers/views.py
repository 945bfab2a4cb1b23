"""Views that only controllers need: with the statuses that they write, and pod templates kept whole."""

from typing import Any

from elbowroom.api.objects import LabelSelector, ObjectMeta, Struct


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


class BudgetSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class BudgetStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    observed_generation: int = 0
    disrupted_pods: dict[str, str] = {}
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: list[Condition] = []


class Budget(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A PodDisruptionBudget."""

    metadata: ObjectMeta = ObjectMeta()
    spec: BudgetSpec = BudgetSpec()
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
