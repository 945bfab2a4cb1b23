"""Services, as far as an API can keep them: defaults, cluster addresses, a look at ports. Nothing serves what they promise."""

import ipaddress
from collections.abc import Mapping
from typing import Any

from elbowroom.api.fielderrors import FieldError, duplicate, invalid, not_supported, required
from elbowroom.api.names import dns1123_label
from elbowroom.apiserver.kinds.base import Resource, with_status
from elbowroom.apiserver.strategy import Context, Document, Strategy

NETWORK = ipaddress.ip_network("10.96.0.0/12")
RESERVED = 256
"""The lowest addresses are left to those who ask for one by name, as upstream's allocator prefers it."""
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_AFFINITIES = ("ClientIP", "None")


class ServiceStrategy(Strategy):
    kind, plural, singular, short_names, categories = "Service", "services", "service", ("svc",), ("all",)

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        spec["type"] = spec.get("type") or "ClusterIP"
        spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
        for port in spec.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port", 0)
        if spec["type"] != "ExternalName":
            spec["internalTrafficPolicy"] = spec.get("internalTrafficPolicy") or "Cluster"
            if spec["type"] in ("NodePort", "LoadBalancer"):
                spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {"loadBalancer": {}}
        _give_address(context, new["spec"])

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["status"] = old["status"]
        spec, before = new["spec"], old["spec"]
        if spec["type"] != "ExternalName" and before["type"] != "ExternalName":
            for name in ("clusterIP", "clusterIPs"):
                if not spec.get(name) and before.get(name):
                    spec[name] = before[name]
        _give_address(context, spec)

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return _errors(new["spec"])

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        found: list[FieldError] = []
        spec, before = new["spec"], old["spec"]
        if "ExternalName" not in (spec["type"], before["type"]) and spec.get("clusterIP") != before.get("clusterIP"):
            found.append(invalid("spec.clusterIPs[0]", spec.get("clusterIPs", []), "may not change once set"))
        return found + _errors(spec)


def _give_address(context: Context, spec: Document) -> None:
    """The lowest free address beyond the reserved ones, unless the service names one or wants none."""
    if spec["type"] == "ExternalName":
        return
    address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
    if not address:
        taken = {service["spec"].get("clusterIP") for service in context.reader.list("services")}
        places = range(RESERVED + 1, NETWORK.num_addresses - 1)
        address = next((text for place in places if (text := str(NETWORK[place])) not in taken), "")
    spec["clusterIP"], spec["clusterIPs"] = address, [address]
    spec["ipFamilies"] = spec.get("ipFamilies") or ["IPv4"]
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "SingleStack"


def _errors(spec: Mapping[str, Any]) -> list[FieldError]:
    found: list[FieldError] = []
    kind, address, ports = spec["type"], spec.get("clusterIP", ""), spec.get("ports") or ()
    if kind not in _TYPES:
        found.append(not_supported("spec.type", kind, _TYPES))
    if not ports and address != "None" and kind != "ExternalName":
        found.append(required("spec.ports"))
    if kind == "ExternalName" and not spec.get("externalName"):
        found.append(required("spec.externalName"))
    if address not in ("", "None"):
        found += _address_errors(address)
    if spec["sessionAffinity"] not in _AFFINITIES:
        found.append(not_supported("spec.sessionAffinity", spec["sessionAffinity"], _AFFINITIES))
    names: set[str] = set()
    for index, port in enumerate(ports):
        found += _port_errors(port, f"spec.ports[{index}]", names, needs_name=len(ports) > 1)
    return found


def _address_errors(address: str) -> list[FieldError]:
    where = "spec.clusterIPs[0]"
    try:
        inside = ipaddress.ip_address(address) in NETWORK
    except ValueError:
        return [invalid(where, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    text = f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. "
    return [] if inside else [invalid("spec.clusterIPs", [address], f"{text}The range of valid IPs is {NETWORK}")]


def _port_errors(port: Mapping[str, Any], at: str, names: set[str], *, needs_name: bool) -> list[FieldError]:
    found: list[FieldError] = []
    name = port.get("name", "")
    if not name and needs_name:
        found.append(required(f"{at}.name"))
    elif name:
        found += [invalid(f"{at}.name", name, why) for why in dns1123_label(name)]
        if name in names:
            found.append(duplicate(f"{at}.name", name))
        names.add(name)
    for field in ("port", "targetPort"):
        number = port.get(field, 0)
        if isinstance(number, int) and not 1 <= number <= 65535:
            found.append(invalid(f"{at}.{field}", number, "must be between 1 and 65535, inclusive"))
    if port["protocol"] not in _PROTOCOLS:
        found.append(not_supported(f"{at}.protocol", port["protocol"], _PROTOCOLS))
    return found


def row() -> Resource:
    """The row of services."""
    strategy = ServiceStrategy()
    return Resource(strategy, with_status(strategy), name_rule="label", returns_deleted=True)
