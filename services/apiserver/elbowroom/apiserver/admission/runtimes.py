"""RuntimeClass: the class that a pod names must exist.

RuntimeClasses are not served, so none does. Unlike upstream, which wants a class behind every overhead, ours lets a pod state its
``spec.overhead`` itself: else nobody could see what overhead does to a resize.
"""

from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.strategy import Context


class RuntimeClass(Plugin):
    name = "RuntimeClass"
    concerns = ("pods",)

    def admit(self, context: Context, attributes: Attributes) -> Refusal | None:
        if attributes.operation != "CREATE" or attributes.resource != "pods" or attributes.subresource or attributes.new is None:
            return None
        name = attributes.new["spec"].get("runtimeClassName")
        if name is None or context.reader.get("runtimeclasses.node.k8s.io", "", name) is not None:
            return None
        return Refusal(f'pod rejected: RuntimeClass "{name}" not found')
