"""v1's defaults for pods and for the pod specs of templates; in place, on decoded documents, harmless when repeated."""

import re
from collections.abc import Mapping
from typing import Any

from elbowroom.api import resources
from elbowroom.api.quantity import Quantity
from elbowroom.apiserver.podviews import pod_view
from elbowroom.apiserver.strategy import Document

_PATH = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::[0-9]+)?/)?{_PATH}(?:/{_PATH})*"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,})?"
)
_IMAGE_MAX = 4096
_FILE_MODE = 0o644
_CONTAINER_FIELDS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def default_pod(pod: Document) -> None:
    """All defaults of a Pod. What only pods have, and templates not: requests from limits (RC-29), service links, host ports."""
    spec = pod.setdefault("spec", {})
    pod.setdefault("metadata", {})
    for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
        own = container.get("resources") or {}
        limits = own.get("limits")
        if limits:
            container["resources"] = {**own, "requests": {**limits, **(own.get("requests") or {})}}
    if spec.get("resources"):
        _default_pod_level(pod)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
            for port in container.get("ports") or []:
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)
    default_pod_spec(spec)
    if pod.get("status"):
        pod["status"] = paired_addresses(pod["status"])


def paired_addresses(status: Document) -> Document:
    """The status, in which ``podIP`` is the first of ``podIPs``; where they differ, the old field counts."""
    address, addresses = status.get("podIP"), status.get("podIPs") or []
    if address and (not addresses or addresses[0].get("ip") != address):
        return {**status, "podIPs": [{"ip": address}]}
    if addresses and not address:
        return {**status, "podIP": addresses[0].get("ip", "")}
    return status


def _default_pod_level(pod: Document) -> None:
    """Pod-level hugepage limits from the containers' sum, then pod-level requests from the containers' sum or the limits."""
    spec = pod["spec"]
    level = dict(spec["resources"])
    limits, requests = dict(level.get("limits") or {}), dict(level.get("requests") or {})
    view = pod_view(pod)
    if limits or requests:
        for name, value in resources.container_limit_amounts(view).items():
            if name.startswith("hugepages-") and name not in requests:
                limits.setdefault(name, value.canonical())
    if limits:
        for name, value in resources.container_request_amounts(view).items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, value.canonical())
        for name, text in limits.items():
            if resources.is_pod_level_resource(name):
                requests.setdefault(name, text)
    for field, values in (("limits", limits), ("requests", requests)):
        if values:
            level[field] = values
    spec["resources"] = level


def default_pod_level_limits(pod: Document) -> None:
    """PL-6, after admission: a pod-level request of which every container says a limit gets the containers' sum as its limit."""
    spec = pod["spec"]
    level = spec.get("resources") or {}
    requests, limits = level.get("requests") or {}, level.get("limits") or {}
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    bounded = [(container.get("resources") or {}).get("limits") or {} for container in containers]
    missing = [
        name
        for name in requests
        if name not in limits and resources.is_pod_level_resource(name) and all(name in each for each in bounded)
    ]
    if missing:
        together = resources.container_limit_amounts(pod_view(pod))
        spec["resources"] = {**level, "limits": {**limits, **{name: together[name].canonical() for name in missing}}}


def default_pod_spec(spec: Document) -> None:
    """The defaults of a PodSpec, wherever it stands."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        # Two names of one field: the old one mirrors the new one.
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes") or []:
        _default_volume(volume)
    for field in _CONTAINER_FIELDS:
        for container in spec.get(field) or []:
            _default_container(container)


def _default_container(container: Document) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    for port in container.get("ports") or []:
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or []:
        source = variable.get("valueFrom") or {}
        if source.get("fieldRef") and not source["fieldRef"].get("apiVersion"):
            source["fieldRef"]["apiVersion"] = "v1"
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            for field, value in _PROBE_DEFAULTS.items():
                probe[field] = probe.get(field) or value
            _default_handler(probe)
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _default_handler(handler)


def _default_handler(handler: Document) -> None:
    get = handler.get("httpGet")
    if get is not None:
        get["path"] = get.get("path") or "/"
        get["scheme"] = get.get("scheme") or "HTTP"
    if handler.get("grpc") is not None:
        handler["grpc"].setdefault("service", "")


def _pull_policy(image: str) -> str:
    """Always for ``latest``, said or implied; a name that is none counts as pinned."""
    found = _REFERENCE.fullmatch(image) if len(image) <= _IMAGE_MAX else None
    if found is None:
        return "IfNotPresent"
    tag = found["tag"] or ("" if found["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _default_volume(volume: Document) -> None:
    if len(volume) <= 1:
        volume["emptyDir"] = {}
    for kind in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(kind) is not None:
            volume[kind].setdefault("defaultMode", _FILE_MODE)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = _pull_policy(image.get("reference", ""))
    if volume.get("iscsi") is not None:
        volume["iscsi"].setdefault("iscsiInterface", "default")
    for source in [volume, *((volume.get("projected") or {}).get("sources") or [])]:
        token = source.get("serviceAccountToken")
        if token is not None:
            token.setdefault("expirationSeconds", 3600)
        for item in (source.get("downwardAPI") or {}).get("items") or []:
            if item.get("fieldRef") is not None and not item["fieldRef"].get("apiVersion"):
                item["fieldRef"]["apiVersion"] = "v1"


def merge_match_label_keys(pod: Document) -> None:
    """Selectors of (anti-)affinity and spread constraints take in the pod's own values of ``matchLabelKeys``, once, at creation."""
    labels = pod["metadata"].get("labels") or {}
    spec = pod["spec"]
    terms: list[Document] = list(spec.get("topologySpreadConstraints") or [])
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(kind) or {}
        terms += affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        terms += [weighted.get("podAffinityTerm") or {} for weighted in preferred]
    for term in terms:
        _merge_keys(term, labels)


def _merge_keys(term: Document, labels: Mapping[str, Any]) -> None:
    selector = term.get("labelSelector")
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or []
        if key in labels
    ]
    if selector is not None and added:
        term["labelSelector"] = {**selector, "matchExpressions": [*(selector.get("matchExpressions") or []), *added]}


def is_fractional(quantity: Quantity) -> bool:
    """Is it no whole number of units?"""
    return quantity.nanos % 10**9 != 0
