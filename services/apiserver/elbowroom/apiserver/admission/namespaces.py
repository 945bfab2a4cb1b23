"""NamespaceLifecycle: nothing new in a namespace that is missing or on its way out, and some namespaces stay."""

from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.strategy import Context

IMMORTAL = ("default", "kube-system", "kube-public")


class NamespaceLifecycle(Plugin):
    name = "NamespaceLifecycle"

    def admit(self, context: Context, attributes: Attributes) -> Refusal | None:
        if attributes.resource == "namespaces":
            immortal = attributes.operation == "DELETE" and not attributes.subresource and attributes.name in IMMORTAL
            return Refusal("this namespace may not be deleted") if immortal else None
        namespace = attributes.namespace
        if not namespace or attributes.operation == "DELETE":
            return None
        found = context.reader.get("namespaces", "", namespace)
        if found is None:
            details = {"name": namespace, "kind": "namespaces"}
            return Refusal(f'namespaces "{namespace}" not found', code=404, reason="NotFound", details=details)
        if attributes.operation == "CREATE" and found.get("status", {}).get("phase") == "Terminating":
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            return Refusal(why, causes=(cause,))
        return None
