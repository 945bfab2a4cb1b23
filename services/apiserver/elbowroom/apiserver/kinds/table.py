"""All rows of the registry, and the objects that a cluster has from the start."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from elbowroom.apiserver.definitions import naming
from elbowroom.apiserver.ephemeral import EphemeralContainersStrategy
from elbowroom.apiserver.kinds import (
    budgets,
    limits,
    namespaces,
    nodes,
    plain,
    priorities,
    replicas,
    roles,
    services,
    small,
    versions,
    workloads,
)
from elbowroom.apiserver.kinds.base import Resource, field_at
from elbowroom.apiserver.kinds.priorities import SYSTEM_CLASSES
from elbowroom.apiserver.pods import PodResizeStrategy, PodStatusStrategy, PodStrategy
from elbowroom.apiserver.strategy import Document


def _host_network(document: Mapping[str, Any]) -> str:
    return "true" if document.get("spec", {}).get("hostNetwork") else "false"


POD_FIELDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "spec.nodeName": field_at("spec", "nodeName"),
    "spec.restartPolicy": field_at("spec", "restartPolicy"),
    "spec.schedulerName": field_at("spec", "schedulerName"),
    "spec.serviceAccountName": field_at("spec", "serviceAccountName"),
    "spec.hostNetwork": _host_network,
    "status.phase": field_at("status", "phase"),
    "status.podIP": field_at("status", "podIP"),
    "status.podIPs": field_at("status", "podIP"),
    "status.nominatedNodeName": field_at("status", "nominatedNodeName"),
}


def pods() -> Resource:
    """The row of pods."""
    return Resource(
        PodStrategy(),
        {"status": PodStatusStrategy(), "resize": PodResizeStrategy(), "ephemeralcontainers": EphemeralContainersStrategy()},
        fields=POD_FIELDS,
        returns_deleted=True,
        graceful=True,
    )


def rows() -> Iterable[Resource]:
    """The rows of all kinds that are stored, each in the version that is."""
    return (
        pods(),
        namespaces.row(),
        nodes.row(),
        priorities.row(),
        budgets.row(),
        *limits.rows(),
        *small.rows(),
        services.row(),
        *replicas.rows(),
        *roles.rows(),
        naming.row(),
        *workloads.rows(),
        *plain.rows(),
        *(row for row in versions.rows() if row.face is None),
    )


# ---------------------------------------------------------------- what stands from the start

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


KUBERNETES: Document = {
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "type": "ClusterIP",
        "clusterIP": "10.96.0.1",
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
    },
}
"""The service by which pods of a real cluster reach the API server."""


def boot_objects() -> list[tuple[str, Document]]:
    """What a fresh cluster has: (resource, document) in the order of creation."""
    made: list[tuple[str, Document]] = [("namespaces", {"metadata": {"name": name}}) for name in NAMESPACES]
    for name, (value, description) in SYSTEM_CLASSES.items():
        document = {
            "metadata": {"name": name},
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        made.append(("priorityclasses.scheduling.k8s.io", document))
    return made
