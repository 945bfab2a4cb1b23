"""The Node object, as its kubelet keeps it: conditions, addresses, labels, and a Lease as its heartbeat.

Capacity and allocatable are written only where the Node has none: what an administrator set sticks. Nothing here is polled: the
status is written when it differs from what it should be, and every five minutes; the Lease every ten seconds.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.api.objects import Node
from elbowroom.api.resources import Resources, of, resource_list
from elbowroom.kubelet.config import KubeletConfig, allocatable_of
from elbowroom.machine import Instant, as_micro_time, as_time

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW_SECONDS, RENEW_BEAT_SECONDS = 10.0, 0.05
STATUS_SECONDS = 300.0
VERSION = "v1.37.0"
KUBELET_PORT = 10250

_FEATURES = (
    ("ExtendWebSocketsToKubelet", ""),
    ("InPlacePodLevelResourcesVerticalScaling", "InPlacePodLevelResourcesVerticalScaling"),
    ("InPlacePodVerticalScalingInitContainers", "InPlacePodVerticalScalingInitContainers"),
    ("RestartAllContainersOnContainerExits", ""),
)


def declared_features(config: KubeletConfig) -> list[str]:
    """What ``status.declaredFeatures`` lists (RC-55)."""
    found = [name for name, gate in _FEATURES if not gate or config.on(gate)]
    scale_down = "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay"
    if config.preview == "6122B" and config.on(scale_down):
        found.append(scale_down)
    return sorted(found)


def labels(name: str) -> dict[str, str]:
    """The labels that the Node of that name has at least."""
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }


def missing_labels(node: Node) -> dict[str, str]:
    """Those of them that the Node lacks."""
    return {name: value for name, value in labels(node.name).items() if name not in node.metadata.labels}


def status(
    now: Instant,
    node: Node,
    config: KubeletConfig,
    not_ready: str = "",
    *,
    heartbeat: bool = False,
    pressure: Sequence[str] = (),
) -> dict[str, Any]:
    """What of the Node's status has to be written; empty if it is as it should be and no ``heartbeat`` is due.

    ``not_ready`` says why the node is not ready, ``pressure`` which conditions of that kind hold.
    """
    found: dict[str, Any] = {}
    if not node.status.capacity:
        found["capacity"] = _capacity(config)
    if not node.status.allocatable:
        capacity = of(node.status.capacity or found["capacity"])
        found["allocatable"] = resource_list(allocatable_of(capacity, config.reserved))
    conditions = _conditions(now, node, not_ready, pressure)
    stale = any(_meaning(node, c["type"]) != (c["status"], c["reason"], c["message"]) for c in conditions)
    if list(node.status.declared_features) != declared_features(config):
        found["declaredFeatures"] = declared_features(config)
    if not (found or stale or heartbeat):
        return {}
    return {
        **found,
        "conditions": conditions,
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": node.name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
        "nodeInfo": {
            "machineID": f"{zlib.crc32(node.name.encode()):08x}",
            "systemUUID": node.metadata.uid,
            "bootID": "",
            "kernelVersion": "6.12.0-elbowroom",
            "osImage": "elbowroom emulated node",
            "containerRuntimeVersion": "elbowroom://0.1.0",
            "kubeletVersion": VERSION,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }


def capacity_of(node: Node, config: KubeletConfig) -> Resources:
    """What the node has, or will be said to have."""
    return of(node.status.capacity or _capacity(config))


def _capacity(config: KubeletConfig) -> dict[str, str]:
    return {
        "cpu": str(config.hardware.cpus),
        "ephemeral-storage": "100Gi",
        "memory": "16Gi",
        "pods": str(config.max_pods),
    }


_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


_PRESSED = {
    "MemoryPressure": ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    "DiskPressure": ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    "PIDPressure": ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
}


def _conditions(now: Instant, node: Node, not_ready: str, pressure: Sequence[str]) -> list[dict[str, Any]]:
    ready = ("Ready", "False", "KubeletNotReady", not_ready)
    if not not_ready:
        ready = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    found = []
    health = [(k, "True", *_PRESSED[k]) if k in pressure else (k, holds, reason, message) for k, holds, reason, message in _HEALTHY]
    for kind, holds, reason, message in (*health, ready):
        before = node.condition(kind)
        since = before.last_transition_time if before is not None and before.status == holds else None
        found.append(
            {
                "type": kind,
                "status": holds,
                "lastHeartbeatTime": as_time(now),
                "lastTransitionTime": since or as_time(now),
                "reason": reason,
                "message": message,
            }
        )
    return found


def _meaning(node: Node, kind: str) -> tuple[str, str, str] | None:
    found = node.condition(kind)
    return None if found is None else (found.status, found.reason, found.message)


def lease(now: Instant, node: Node) -> dict[str, Any]:
    """The whole Lease, for its creation."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node.name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.metadata.uid}],
        },
        "spec": {"holderIdentity": node.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": as_micro_time(now)},
    }


def renewal(now: Instant, node: str) -> Mapping[str, Any]:
    """The patch that renews it."""
    return {"spec": {"holderIdentity": node, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": as_micro_time(now)}}


def pod_ip(node: str, taken: set[str]) -> str:
    """A free address in the node's own range, which its name decides."""
    place = zlib.crc32(node.encode()) & 0xFFFF
    for low in range(1, 255):
        address = f"10.{place >> 8}.{place & 0xFF}.{low}"
        if address not in taken:
            return address
    high = next(n for n in range(len(taken) + 1) if f"100.{64 + (n >> 16 & 63)}.{n >> 8 & 255}.{n & 255}" not in taken)
    return f"100.{64 + (high >> 16 & 63)}.{high >> 8 & 255}.{high & 255}"
