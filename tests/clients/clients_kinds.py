"""A small object of each kind that clients create."""

from collections.abc import Mapping
from typing import Any

POD = {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}], "terminationGracePeriodSeconds": 0}
TEMPLATE = {"metadata": {"labels": {"app": "sample"}}, "spec": POD}
SELECTED = {"selector": {"matchLabels": {"app": "sample"}}}
ROLE = {"apiGroup": "rbac.authorization.k8s.io"}
ONCE = {**POD, "restartPolicy": "Never"}
KEEPS = {"x-kubernetes-preserve-unknown-fields": True}
BACKEND = {"service": {"name": "sample", "port": {"number": 80}}}

SAMPLES: Mapping[str, Mapping[str, Any]] = {
    "ClusterRole": {"rules": [{"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]}]},
    "ClusterRoleBinding": {
        "roleRef": {**ROLE, "kind": "ClusterRole", "name": "view"},
        "subjects": [{**ROLE, "kind": "User", "name": "ann"}],
    },
    "ConfigMap": {"data": {"a": "1"}, "binaryData": {"b": "AAE="}},
    "Deployment": {"spec": {"replicas": 0, **SELECTED, "template": TEMPLATE}},
    "Event": {
        "involvedObject": {"kind": "Pod", "name": "sample", "namespace": "@"},
        "reason": "Sampled",
        "message": "m",
        "type": "Normal",
    },
    "Lease": {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z"}},
    "LimitRange": {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"memory": "1Gi"}}]}},
    "Namespace": {},
    "Node": {"spec": {"taints": [{"key": "sample", "effect": "NoSchedule"}]}},
    "Pod": {"spec": POD},
    "PodDisruptionBudget": {"spec": {**SELECTED, "maxUnavailable": "50%"}},
    "PriorityClass": {"value": 5, "preemptionPolicy": "Never"},
    "ReplicaSet": {"spec": {"replicas": 0, **SELECTED, "template": TEMPLATE}},
    "ResourceQuota": {"spec": {"hard": {"pods": "50", "count/leases.coordination.k8s.io": "7"}}},
    "Role": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "RoleBinding": {
        "roleRef": {**ROLE, "kind": "Role", "name": "sample"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "@"}],
    },
    "Service": {"spec": {"selector": {"app": "sample"}, "ports": [{"port": 80, "targetPort": "http"}]}},
    "ServiceAccount": {"automountServiceAccountToken": False},
    "ControllerRevision": {"revision": 1, "data": {"spec": {"a": 1}}},
    "CronJob": {"spec": {"schedule": "0 0 29 2 *", "suspend": True, "jobTemplate": {"spec": {"template": {"spec": ONCE}}}}},
    "CustomResourceDefinition": {
        "spec": {
            "group": "@.example.com",
            "scope": "Namespaced",
            "names": {"plural": "tabs", "kind": "Tab", "shortNames": ["@"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", **KEEPS}}}},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                }
            ],
        }
    },
    "DaemonSet": {"spec": {**SELECTED, "template": {**TEMPLATE, "spec": {**POD, "nodeSelector": {"nowhere": "yes"}}}}},
    "EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "nodeName": "node-1"}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    },
    "Endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"name": "http", "port": 80}]}]},
    "HorizontalPodAutoscaler": {
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "minReplicas": 1, "maxReplicas": 3}
    },
    "Ingress": {
        "spec": {
            "ingressClassName": "sample",
            "rules": [{"host": "a.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}],
        }
    },
    "IngressClass": {"spec": {"controller": "example.com/ingress"}},
    "Job": {"spec": {"suspend": True, "template": {"spec": ONCE}}},
    "NetworkPolicy": {
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}
    },
    "PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "sample",
            "hostPath": {"path": "/tmp/sample"},
        }
    },
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "sample", "resources": {"requests": {"storage": "1Gi"}}}
    },
    "PodTemplate": {"template": TEMPLATE},
    "Secret": {"type": "Opaque", "data": {"a": "MQ=="}},
    "StatefulSet": {"spec": {"replicas": 0, "serviceName": "sample", **SELECTED, "template": TEMPLATE}},
    "StorageClass": {"provisioner": "example.com/disk", "parameters": {"kind": "fast"}, "allowVolumeExpansion": True},
}
"""Kind -> what goes beside ``metadata``; ``@`` stands for the namespace."""

BEHIND_GATES = ("PodGroup", "Workload")
"""Kinds that are served only where their gate is on, and have tests of their own."""


NEW_EVENT = {
    "eventTime": "2026-01-02T03:04:05.000006Z",
    "regarding": {"kind": "Pod", "name": "sample", "namespace": "@"},
    "reason": "Sampled",
    "action": "Sampling",
    "type": "Normal",
    "note": "m",
    "reportingController": "example.com/tests",
    "reportingInstance": "tests-1",
}
"""An Event as the group events.k8s.io has it."""


def sample(kind: str, name: str, namespace: str, api_version: str = "") -> dict[str, Any] | None:
    """A manifest's content, without apiVersion and kind; None for a kind that has no sample."""
    body = NEW_EVENT if (kind, api_version) == ("Event", "events.k8s.io/v1") else SAMPLES.get(kind)
    if body is None:
        return None
    if kind == "CustomResourceDefinition":
        name = f"tabs.{namespace}.example.com"  # which is no free choice
    return {**_placed(body, namespace), "metadata": {"name": name, "labels": {"sample": namespace}}}


def _placed(value: Any, namespace: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _placed(inner, namespace) for key, inner in value.items()}
    if isinstance(value, list):
        return [_placed(inner, namespace) for inner in value]
    return value.replace("@", namespace) if isinstance(value, str) else value
