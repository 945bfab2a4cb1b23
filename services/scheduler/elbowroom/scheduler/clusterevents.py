"""What changed in the cluster, in the words that plugins wait for (SC-15, SC-16)."""

from dataclasses import dataclass
from enum import Enum

from elbowroom.api.objects import Node
from elbowroom.api.resources import Resources
from elbowroom.scheduler.podinfo import PodInfo

NODE = "Node"
ASSIGNED_POD = "AssignedPod"
UNSCHEDULED_POD = "UnscheduledPod"
POD_GROUP = "PodGroup"
TARGET_POD = "TargetPod"
"""The waiting pod itself."""


class Action(Enum):
    ADD = "Add"
    DELETE = "Delete"
    UPDATE = "Update"
    UPDATE_NODE_ALLOCATABLE = "UpdateNodeAllocatable"
    UPDATE_NODE_LABEL = "UpdateNodeLabel"
    UPDATE_NODE_TAINT = "UpdateNodeTaint"
    UPDATE_NODE_CONDITION = "UpdateNodeCondition"
    UPDATE_NODE_ANNOTATION = "UpdateNodeAnnotation"
    UPDATE_NODE_DECLARED_FEATURE = "UpdateNodeDeclaredFeature"
    UPDATE_NODE_PREEMPTION_POLICY = "UpdateNodePreemptionPolicy"
    UPDATE_POD_LABEL = "UpdatePodLabel"
    UPDATE_POD_SCALE_DOWN = "UpdatePodScaleDown"
    UPDATE_POD_SCALE_UP = "UpdatePodScaleUp"
    UPDATE_POD_TOLERATION = "UpdatePodToleration"
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = "UpdatePodSchedulingGatesEliminated"
    WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something happened to some object of a kind. ``label`` is what metrics and notes call it."""

    resource: str
    action: Action
    label: str


def event(resource: str, action: Action) -> ClusterEvent:
    """The event under its usual label: ``AssignedPodDelete``, ``NodeUpdateNodeTaint``."""
    return ClusterEvent(resource, action, f"{resource}{action.value}")


UNSCHEDULABLE_TIMEOUT = ClusterEvent("*", Action.WILDCARD, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent("*", Action.WILDCARD, "ForceActivate")
NODE_ADD = event(NODE, Action.ADD)
NODE_DELETE = event(NODE, Action.DELETE)
ASSIGNED_POD_ADD = event(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = event(ASSIGNED_POD, Action.DELETE)
UNSCHEDULED_POD_ADD = event(UNSCHEDULED_POD, Action.ADD)
POD_GROUP_ADD = event(POD_GROUP, Action.ADD)
POD_GROUP_UPDATE = event(POD_GROUP, Action.UPDATE)


def node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """What the update of a node may mean to waiting pods."""
    actions: list[Action] = []
    if old.status.allocatable != new.status.allocatable:
        actions.append(Action.UPDATE_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        actions.append(Action.UPDATE_NODE_LABEL)
    if old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        actions.append(Action.UPDATE_NODE_TAINT)
    if [(c.type, c.status) for c in old.status.conditions] != [(c.type, c.status) for c in new.status.conditions]:
        actions.append(Action.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        actions.append(Action.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        actions.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    if old.spec.pod_preemption_policy != new.spec.pod_preemption_policy:
        actions.append(Action.UPDATE_NODE_PREEMPTION_POLICY)
    return [event(NODE, action) for action in actions]


def pod_events(resource: str, old: PodInfo, new: PodInfo) -> list[ClusterEvent]:
    """What the update of a pod may mean to waiting pods; ``resource`` says whose pod it is.

    Scaling down is told by effective requests, so it comes once the kubelet has let go as well; scaling up by the desire (SC-16).
    """
    actions: list[Action] = []
    before, after = old.pod, new.pod
    if before.metadata.labels != after.metadata.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if before.spec.tolerations != after.spec.tolerations:
        actions.append(Action.UPDATE_POD_TOLERATION)
    if before.spec.scheduling_gates and not after.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if shrank(old.requests, new.requests):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if shrank(new.want, old.want):
        actions.append(Action.UPDATE_POD_SCALE_UP)
    return [event(resource, action) for action in actions]


def node_of(changed: object) -> str:
    """The node of what changed: itself, or the one that the pod is on."""
    if isinstance(changed, Node):
        return changed.name
    return changed.pod.spec.node_name if isinstance(changed, PodInfo) else ""


def shrank(old: Resources, new: Resources) -> bool:
    """Is there less of any resource, or has one disappeared?"""
    return any(new.get(name, 0) < amount for name, amount in old.items())


def shrank_of(wanted: Resources, old: Resources, new: Resources) -> bool:
    """Is there less of any resource that is wanted?"""
    return any(new.get(name, 0) < old.get(name, 0) for name, amount in wanted.items() if amount > 0)
