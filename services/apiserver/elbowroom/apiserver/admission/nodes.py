"""TaintNodesByCondition: a new node takes no pods until the node lifecycle controller has seen it Ready."""

from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.strategy import Context

NOT_READY = "node.kubernetes.io/not-ready"


class TaintNodesByCondition(Plugin):
    name = "TaintNodesByCondition"
    concerns = ("nodes",)

    def admit(self, context: Context, attributes: Attributes) -> Refusal | None:
        if attributes.operation != "CREATE" or attributes.resource != "nodes" or attributes.subresource or attributes.new is None:
            return None
        spec = attributes.new.setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
        return None
