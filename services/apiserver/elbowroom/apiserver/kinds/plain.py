"""Kinds that are kept and shown, and that nothing here acts on: secrets, volumes, slices, ingresses and policies."""

import base64
from collections.abc import Mapping
from typing import Any

from elbowroom.api.fielderrors import FieldError, forbidden, invalid, not_supported, required, too_long
from elbowroom.api.names import data_key
from elbowroom.apiserver.kinds.base import Resource, StatusStrategy, field_at
from elbowroom.apiserver.kinds.checks import same
from elbowroom.apiserver.kinds.small import CONFIG_BYTES_MAX
from elbowroom.apiserver.strategy import Context, Document, Strategy

Node = Mapping[str, Any]
Errors = list[FieldError]
_NEEDS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}


class SecretStrategy(Strategy):
    kind, plural, singular = "Secret", "secrets", "secret"

    def default(self, document: Document) -> None:
        if not document.get("type"):
            document["type"] = "Opaque"
        texts = document.pop("stringData", None)
        for name, text in (texts or {}).items():
            document.setdefault("data", {})[name] = base64.b64encode(text.encode()).decode()

    def validate_create(self, context: Context, new: Document) -> Errors:
        data = new.get("data") or {}
        found = [invalid(f"data[{key}]", key, why) for key in data for why in data_key(key)]
        if sum(len(value) * 3 // 4 for value in data.values()) > CONFIG_BYTES_MAX:
            found.append(too_long("data", CONFIG_BYTES_MAX))
        found += [required(f"data[{name}]") for name in _NEEDS.get(new["type"], ()) if name not in data]
        if new["type"] == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
            found += [required("data[username]"), required("data[password]")]
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        found = same(new["type"], old["type"], "type")
        if old.get("immutable"):
            text = "field is immutable when `immutable` is set"
            if not new.get("immutable"):
                found.append(forbidden("immutable", text))
            if new.get("data") != old.get("data"):
                found.append(forbidden("data", text))
        return found + self.validate_create(context, new)

    def spec_changed(self, new: Document, old: Node) -> bool:
        return False


class _PendingStrategy(Strategy):
    """What is bound elsewhere: it begins pending, and its status is not its writers'."""

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {"phase": "Pending"}

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        new["status"] = old["status"]


class ClaimStrategy(_PendingStrategy):
    kind, plural, singular, short_names = "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim", ("pvc",)

    def default(self, document: Document) -> None:
        document.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")

    def validate_create(self, context: Context, new: Document) -> Errors:
        spec = new["spec"]
        found: Errors = []
        if not spec.get("accessModes"):
            found.append(required("spec.accessModes", "at least 1 access mode is required"))
        modes = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
        found += [not_supported("spec.accessModes", mode, modes) for mode in spec.get("accessModes") or () if mode not in modes]
        if "storage" not in (spec.get("resources", {}).get("requests") or {}):
            found.append(required("spec.resources[storage]"))
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        fixed = [{name: value for name, value in one["spec"].items() if name != "resources"} for one in (new, old)]
        for one, document in zip(fixed, (new, old), strict=True):
            if not old["spec"].get("volumeName"):
                one.pop("volumeName", None)  # a claim may still be bound
            one["limits"] = (document["spec"].get("resources") or {}).get("limits")
        text = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        return [forbidden("spec", text)] if fixed[0] != fixed[1] else self.validate_create(context, new)


class VolumeStrategy(_PendingStrategy):
    kind, plural, singular = "PersistentVolume", "persistentvolumes", "persistentvolume"
    short_names, namespaced = ("pv",), False

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        spec.setdefault("volumeMode", "Filesystem")

    def validate_create(self, context: Context, new: Document) -> Errors:
        spec = new["spec"]
        found: Errors = []
        if not spec.get("accessModes"):
            found.append(required("spec.accessModes"))
        if not spec.get("capacity"):
            found.append(required("spec.capacity"))
        policies = ("Delete", "Recycle", "Retain")
        if spec["persistentVolumeReclaimPolicy"] not in policies:
            found.append(not_supported("spec.persistentVolumeReclaimPolicy", spec["persistentVolumeReclaimPolicy"], policies))
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return self.validate_create(context, new)


class StorageClassStrategy(Strategy):
    group, kind, plural, singular = "storage.k8s.io", "StorageClass", "storageclasses", "storageclass"
    short_names, namespaced = ("sc",), False

    def default(self, document: Document) -> None:
        document.setdefault("reclaimPolicy", "Delete")
        document.setdefault("volumeBindingMode", "Immediate")

    def validate_create(self, context: Context, new: Document) -> Errors:
        found = [] if new.get("provisioner") else [required("provisioner")]
        if new["reclaimPolicy"] not in ("Delete", "Retain"):
            found.append(not_supported("reclaimPolicy", new["reclaimPolicy"], ("Delete", "Retain")))
        if new["volumeBindingMode"] not in ("Immediate", "WaitForFirstConsumer"):
            modes = ("Immediate", "WaitForFirstConsumer")
            found.append(not_supported("volumeBindingMode", new["volumeBindingMode"], modes))
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        found: Errors = []
        for name in ("parameters", "provisioner"):
            if new.get(name) != old.get(name):
                found.append(forbidden(name, "updates to provisioner are forbidden." if name == "provisioner" else _PARAMETERS))
        for name in ("reclaimPolicy", "volumeBindingMode"):
            found += same(new.get(name), old.get(name), name)
        return found + self.validate_create(context, new)

    def spec_changed(self, new: Document, old: Node) -> bool:
        return False


_PARAMETERS = "updates to parameters are forbidden."


class SliceStrategy(Strategy):
    group, kind, plural, singular = "discovery.k8s.io", "EndpointSlice", "endpointslices", "endpointslice"
    has_generation = True

    def default(self, document: Document) -> None:
        for port in document.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def validate_create(self, context: Context, new: Document) -> Errors:
        kind = new.get("addressType", "")
        known = ("FQDN", "IPv4", "IPv6")
        found: Errors = []
        if not kind:
            found.append(required("addressType"))
        elif kind not in known:
            found.append(not_supported("addressType", kind, known))
        for index, one in enumerate(new.get("endpoints") or ()):
            if not one.get("addresses"):
                found.append(required(f"endpoints[{index}].addresses", "must contain at least 1 address"))
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return self.validate_create(context, new) + same(new.get("addressType"), old.get("addressType"), "addressType")

    def spec_changed(self, new: Document, old: Node) -> bool:
        return any(new.get(name) != old.get(name) for name in ("endpoints", "ports", "addressType"))


class IngressStrategy(Strategy):
    group, kind, plural, singular = "networking.k8s.io", "Ingress", "ingresses", "ingress"
    short_names, has_generation = ("ing",), True

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {"loadBalancer": {}}

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        new["status"] = old["status"]

    def validate_create(self, context: Context, new: Document) -> Errors:
        spec = new.get("spec") or {}
        if not spec.get("rules") and spec.get("defaultBackend") is None:
            return [invalid("spec", spec, "either `defaultBackend` or `rules` must be specified")]
        kinds = ("Exact", "ImplementationSpecific", "Prefix")
        found: Errors = []
        for index, rule in enumerate(spec.get("rules") or ()):
            for number, path in enumerate((rule.get("http") or {}).get("paths") or ()):
                at = f"spec.rules[{index}].http.paths[{number}]"
                if path.get("pathType") is None:
                    found.append(required(f"{at}.pathType", "pathType must be specified"))
                elif path["pathType"] not in kinds:
                    found.append(not_supported(f"{at}.pathType", path["pathType"], kinds))
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return self.validate_create(context, new)


class IngressClassStrategy(Strategy):
    group, kind, plural, singular = "networking.k8s.io", "IngressClass", "ingressclasses", "ingressclass"
    namespaced, has_generation = False, True

    def validate_create(self, context: Context, new: Document) -> Errors:
        return [] if (new.get("spec") or {}).get("controller") else [required("spec.controller")]

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return same((new.get("spec") or {}).get("controller"), (old.get("spec") or {}).get("controller"), "spec.controller")


class NetworkPolicyStrategy(Strategy):
    group, kind, plural, singular = "networking.k8s.io", "NetworkPolicy", "networkpolicies", "networkpolicy"
    short_names, has_generation = ("netpol",), True

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]

    def validate_create(self, context: Context, new: Document) -> Errors:
        found: Errors = []
        for index, kind in enumerate(new["spec"]["policyTypes"]):
            if kind not in ("Egress", "Ingress"):
                found.append(not_supported(f"spec.policyTypes[{index}]", kind, ("Egress", "Ingress")))
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return self.validate_create(context, new)


class EndpointsStrategy(Strategy):
    kind, plural, singular, short_names = "Endpoints", "endpoints", "endpoints", ("ep",)


class PodTemplateStrategy(Strategy):
    kind, plural, singular, has_generation = "PodTemplate", "podtemplates", "podtemplate", True


def rows() -> list[Resource]:
    """The rows of these kinds."""
    claim, volume, ingress = ClaimStrategy(), VolumeStrategy(), IngressStrategy()
    return [
        Resource(SecretStrategy(), fields={"type": field_at("type")}),
        Resource(EndpointsStrategy()),
        Resource(PodTemplateStrategy(), returns_deleted=True),
        Resource(claim, {"status": StatusStrategy(claim)}, returns_deleted=True),
        Resource(volume, {"status": StatusStrategy(volume)}, returns_deleted=True),
        Resource(StorageClassStrategy(), returns_deleted=True),
        Resource(SliceStrategy()),
        Resource(ingress, {"status": StatusStrategy(ingress)}),
        Resource(IngressClassStrategy()),
        Resource(NetworkPolicyStrategy()),
    ]
