"""NodeRestriction: what a kubelet may say of itself and its pods. Whose objects it may touch is judged before (``authorizer``)."""

from collections.abc import Mapping
from typing import Any

from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.authorizer import NODE_PREFIX, NODES
from elbowroom.apiserver.strategy import Context

_RESERVED = "node-restriction.kubernetes.io"
_OWN_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_OWN_LABELS = frozenset(
    (
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.kubernetes.io/region",
        "failure-domain.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    )
)

Node = Mapping[str, Any]


class NodeRestriction(Plugin):
    name = "NodeRestriction"
    concerns = ("nodes", "leases.coordination.k8s.io", "pods")

    def admit(self, context: Context, attributes: Attributes) -> Refusal | None:
        """Changes nothing, but upstream asks it together with those that do."""
        if NODES not in context.groups or not context.user.startswith(NODE_PREFIX):
            return None
        node = context.user.removeprefix(NODE_PREFIX)
        new, old = attributes.new, attributes.old
        why = ""
        match attributes.resource:
            case "nodes":
                why = _node_refusal(node, attributes)
            case "leases.coordination.k8s.io" if attributes.name != node:
                why = "can only access node lease with the same name as the requesting node"
            case "pods" if attributes.subresource == "status" and new is not None and old is not None:
                if _labels(new) != _labels(old):
                    why = f'node "{node}" cannot update labels through pod status'
        return Refusal(why) if why else None


def _node_refusal(node: str, attributes: Attributes) -> str:
    if attributes.name != node:
        return f'node "{node}" is not allowed to modify node "{attributes.name}"'
    new, old = attributes.new, attributes.old
    if new is None:
        return ""
    if old is None:
        wrong = _forbidden(_labels(new), {})
        return f'node "{node}" is not allowed to set the following labels: {", ".join(wrong)}' if wrong else ""
    if (_spec(new).get("taints") or []) != (_spec(old).get("taints") or []):
        return f'node "{node}" is not allowed to modify taints'
    if (new["metadata"].get("ownerReferences") or []) != (old["metadata"].get("ownerReferences") or []):
        return f'node "{node}" is not allowed to modify ownerReferences'
    wrong = _forbidden(_labels(new), _labels(old))
    return f"is not allowed to modify labels: {', '.join(wrong)}" if wrong else ""


def _spec(document: Node) -> Node:
    return document.get("spec") or {}


def _labels(document: Node) -> Mapping[str, str]:
    return document["metadata"].get("labels") or {}


def _forbidden(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """The labels that differ and are not a kubelet's to set."""
    return sorted(key for key in {**old, **new} if new.get(key) != old.get(key) and _is_forbidden(key))


def _is_forbidden(key: str) -> bool:
    namespace = key.rpartition("/")[0]
    if _within(namespace, _RESERVED):
        return True
    if not _within(namespace, "kubernetes.io") and not _within(namespace, "k8s.io"):
        return False
    return key not in _OWN_LABELS and not any(_within(namespace, own) for own in _OWN_NAMESPACES)


def _within(namespace: str, domain: str) -> bool:
    return namespace == domain or namespace.endswith(f".{domain}")
