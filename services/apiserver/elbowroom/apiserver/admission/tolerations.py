"""DefaultTolerationSeconds: a pod outlives five minutes of an unready or unreachable node, unless it says otherwise."""

from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.strategy import Context

SECONDS = 300
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerationSeconds(Plugin):
    name = "DefaultTolerationSeconds"
    concerns = ("pods",)

    def admit(self, context: Context, attributes: Attributes) -> Refusal | None:
        if attributes.operation == "DELETE" or attributes.resource != "pods" or attributes.subresource or attributes.new is None:
            return None
        spec = attributes.new["spec"]
        own = spec.get("tolerations") or []
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}
            for key in _TAINTS
            if not any(one.get("key") in (None, "", key) and one.get("effect") in (None, "", "NoExecute") for one in own)
        ]
        if added:
            spec["tolerations"] = [*own, *added]
        return None
