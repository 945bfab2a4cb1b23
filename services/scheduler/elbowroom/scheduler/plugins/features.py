"""NodeDeclaredFeatures: a pod goes only to nodes that say they can do what it needs (KEP-5328).

What a pod needs is inferred from its spec. Of the features that nodes declare only one is asked for at scheduling: the delay of a
scale down (SD-22). All others matter to updates, which admission judges.
"""

from collections.abc import Hashable, Sequence

from elbowroom.api.objects import Node, PodSpec
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.clusterevents import NODE, Action
from elbowroom.scheduler.framework import Code, Interest, NodeFilter, Plugin, Prepared, Status
from elbowroom.scheduler.nodeinfo import NodeInfo
from elbowroom.scheduler.podinfo import PodInfo

SCALE_DOWN_DELAY = "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay"


def required_features(spec: PodSpec) -> tuple[str, ...]:
    """What a node must declare to be given the pod."""
    return (SCALE_DOWN_DELAY,) if spec.scale_down_grace_period_seconds is not None else ()


class NodeDeclaredFeatures(Plugin):
    name = "NodeDeclaredFeatures"

    def pre_filter(self, info: PodInfo, snapshot: Snapshot) -> Prepared | None:
        wanted = required_features(info.pod.spec)
        return Prepared(_Declares(wanted)) if wanted else None

    def waits_for(self, info: PodInfo) -> Hashable | None:
        return True

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODE, Action.ADD, _declares_more),
            Interest(NODE, Action.UPDATE_NODE_DECLARED_FEATURE, _declares_more),
        )


def _declares_more(waiting: PodInfo, old: Node | None, new: Node | None) -> bool:
    return new is not None and (old is None or old.status.declared_features != new.status.declared_features)


class _Declares(NodeFilter):
    REFUSED = Status(Code.UNRESOLVABLE, ("node(s) didn't match Pod's required features",), NodeDeclaredFeatures.name)

    def __init__(self, wanted: tuple[str, ...]) -> None:
        self._wanted = wanted
        self.key = (NodeDeclaredFeatures.name, *wanted)

    def check(self, node: NodeInfo) -> Status | None:
        declared = node.node.status.declared_features if node.node is not None else []
        return None if all(name in declared for name in self._wanted) else self.REFUSED
