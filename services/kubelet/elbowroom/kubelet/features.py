"""Pods that ask for what this kubelet cannot do are refused, in upstream's words, whoever bound them here."""

from elbowroom.api.objects import Pod, PodSpec
from elbowroom.api.resources import has_pod_level_resources
from elbowroom.kubelet.admission import Refusal
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.node import declared_features

INIT_CONTAINERS = "InPlacePodVerticalScalingInitContainers"
POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"
SCALE_DOWN_DELAY = "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay"


def refusal(pod: Pod, config: KubeletConfig) -> Refusal | None:
    """Why the pod can't be here at all; None if nothing is amiss. Pods of an earlier life are asked too (SD-22)."""
    if has_pod_level_resources(pod) and not config.on("PodLevelResources"):
        return Refusal("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled")
    needed = [SCALE_DOWN_DELAY] if pod.spec.scale_down_grace_period_seconds is not None else []
    missing = [name for name in needed if name not in declared_features(config)]
    if missing:
        return Refusal("PodFeatureUnsupported", f"Pod requires node features that are not available: {', '.join(missing)}")
    return None


def missing_for(old: PodSpec, new: PodSpec, config: KubeletConfig) -> list[str]:
    """What the change of a pod's spec needs, and this kubelet does not do: only the API server could have kept it away."""
    before = {container.name: container.resources for container in old.init_containers if not container.is_sidecar}
    after = {container.name: container.resources for container in new.init_containers if not container.is_sidecar}
    needed = [POD_LEVEL] if old.resources != new.resources else []
    needed += [INIT_CONTAINERS] if before != after else []
    return [name for name in needed if name not in declared_features(config)] if needed else []
