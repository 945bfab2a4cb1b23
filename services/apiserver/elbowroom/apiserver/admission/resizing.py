"""NodeDeclaredFeatureValidator and PodResizeValidator: can that node ever do what this resize asks for?

Both look at bound pods whose spec changes (RC-53, RC-55). Whether a request above the node's allocatable is refused here, or by
the kubelet as Infeasible, is the profile's choice (row 2).
"""

from collections.abc import Mapping
from typing import Any

from elbowroom.api import quotas, resources
from elbowroom.api.objects import Pod
from elbowroom.api.quantity import ZERO
from elbowroom.api.resources import Amounts
from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.podviews import pod_view
from elbowroom.apiserver.semantics import same
from elbowroom.apiserver.strategy import Context

INIT_CONTAINERS = "InPlacePodVerticalScalingInitContainers"
POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"


class NodeDeclaredFeatureValidator(Plugin):
    name = "NodeDeclaredFeatureValidator"
    concerns = ("pods",)

    def validate(self, context: Context, attributes: Attributes) -> Refusal | None:
        change = _changed_bound_pod(attributes, ("", "resize"))
        if change is None:
            return None
        new, old = change
        required = _features(new["spec"], old["spec"])
        if not required:
            return None
        name = new["spec"]["nodeName"]
        node = context.reader.get("nodes", "", name)
        if node is None:
            return Refusal(f'node "{name}" not found')
        declared = node.get("status", {}).get("declaredFeatures") or []
        missing = [feature for feature in required if feature not in declared]
        if not missing:
            return None
        return Refusal(f'pod update requires features {", ".join(missing)} which are not available on node "{name}"')


class PodResizeValidator(Plugin):
    name = "PodResizeValidator"
    concerns = ("pods",)

    def validate(self, context: Context, attributes: Attributes) -> Refusal | None:
        change = _changed_bound_pod(attributes, ("resize",))
        if change is None:
            return None
        new, _ = change
        name = new["spec"]["nodeName"]
        node = context.reader.get("nodes", "", name)
        if node is None:
            return Refusal(f'node "{name}" not found')
        system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
        if system != "linux":
            why = f'pod resize is only supported on linux nodes, node "{name}" is "{system}"'
            return Refusal(why, causes=({"reason": "UnsupportedPlatform"},))
        if not context.profile.refuses_above_allocatable:
            return None
        short = _short(pod_view({"spec": new["spec"]}), resources.amounts(node.get("status", {}).get("allocatable")))
        if not short:
            return None
        why = f"node didn't have enough allocatable resources: {'; '.join(short)}"
        return Refusal(why, causes=({"reason": "NodeCapacity"},))


def _short(pod: Pod, allocatable: Amounts) -> list[str]:
    """What the pod's spec asks for above ``allocatable``. Compared exactly, told as 64-bit numbers: a huge request reads 0."""
    wanted = quotas.total((resources.spec_request_amounts(pod), resources.amounts(pod.spec.overhead)))
    found = []
    for resource in ("cpu", "memory"):
        request, there = wanted.get(resource, ZERO), allocatable.get(resource, ZERO)
        if request > there:
            told = [quantity.milli_or_zero if resource == "cpu" else quantity.value_or_zero for quantity in (request, there)]
            found.append(f"{resource}, requested: {told[0]}, allocatable: {told[1]}")
    return found


def _changed_bound_pod(attributes: Attributes, subresources: tuple[str, ...]) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    new, old = attributes.new, attributes.old
    if attributes.operation != "UPDATE" or attributes.resource != "pods" or attributes.subresource not in subresources:
        return None
    if new is None or old is None or not new["spec"].get("nodeName") or same(new["spec"], old["spec"]):
        return None
    return new, old


def _features(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    changed = []
    if not same(new.get("resources"), old.get("resources")):
        changed.append(POD_LEVEL)
    for after, before in zip(new.get("initContainers") or [], old.get("initContainers") or [], strict=False):
        if before.get("restartPolicy") != "Always" and not same(after.get("resources"), before.get("resources")):
            changed.append(INIT_CONTAINERS)
            break
    return changed
