"""The Table rows of workloads, volumes and the like: upstream's cells."""

from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.apiserver.tablekit import (
    NONE,
    UNKNOWN,
    Cells,
    Document,
    age,
    containers,
    format_selector,
    name_of,
    part,
    since,
    span,
)
from elbowroom.machine import Instant


def stateful_set(now: Instant, document: Document) -> Cells:
    ready = f"{part(document, 'status').get('readyReplicas', 0)}/{part(document, 'spec').get('replicas', 0)}"
    return [name_of(document), ready, age(now, document), *containers(document)]


def daemon_set(now: Instant, document: Document) -> Cells:
    spec, status = part(document, "spec"), part(document, "status")
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    nodes = part(part(spec, "template"), "spec").get("nodeSelector") or {}
    return [
        name_of(document),
        *(status.get(count, 0) for count in counts),
        ",".join(f"{key}={nodes[key]}" for key in sorted(nodes)) or NONE,
        age(now, document),
        *containers(document),
        format_selector(spec.get("selector")),
    ]


_JOB_STATES = (("Complete", "Complete"), ("Failed", "Failed"))
_JOB_LATER_STATES = (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget"), ("SuccessCriteriaMet", "SuccessCriteriaMet"))


def job(now: Instant, document: Document) -> Cells:
    spec, status = part(document, "spec"), part(document, "status")
    held = {one.get("type") for one in status.get("conditions") or () if one.get("status") == "True"}
    states: Sequence[str] = [word for kind, word in _JOB_STATES if kind in held]
    if not states and document.get("metadata", {}).get("deletionTimestamp"):
        states = ["Terminating"]
    states = states or [word for kind, word in _JOB_LATER_STATES if kind in held] or ["Running"]
    done, wanted, side = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism", 0)
    shown = f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {side}" if side > 1 else f"{done}/1"
    lasted = span(now, status.get("startTime"), status.get("completionTime"))
    return [
        name_of(document),
        states[0],
        shown,
        lasted,
        age(now, document),
        *containers(document),
        format_selector(spec.get("selector")),
    ]


def cron_job(now: Instant, document: Document) -> Cells:
    spec, status = part(document, "spec"), part(document, "status")
    last = status.get("lastScheduleTime")
    inner = part(spec, "jobTemplate")
    return [
        name_of(document),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "<unset>" if spec.get("suspend") is None else str(spec["suspend"]),
        len(status.get("active") or ()),
        since(now, last) if last else NONE,
        age(now, document),
        *containers(inner),
        format_selector(part(inner, "spec").get("selector")),
    ]


# ---------------------------------------------------------------- autoscalers

_METRICS_SHOWN = 2


def autoscaler(now: Instant, document: Document) -> Cells:
    spec, status = part(document, "spec"), part(document, "status")
    target = part(spec, "scaleTargetRef")
    least = spec.get("minReplicas")
    return [
        name_of(document),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(_specs(spec), status),
        "<unset>" if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(now, document),
    ]


def _specs(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The metrics; of ``autoscaling/v1``, the one that it has."""
    cpu = spec.get("targetCPUUtilizationPercentage")
    if cpu is None:
        return spec.get("metrics") or ()
    return [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": cpu}}}]


def _metrics(specs: Sequence[Mapping[str, Any]], status: Mapping[str, Any]) -> str:
    if not specs:
        return NONE
    current = status.get("currentMetrics") or ()
    shown = [_metric(one, current[place] if place < len(current) else {}) for place, one in enumerate(specs)]
    more = len(shown) - _METRICS_SHOWN
    text = ", ".join(shown[:_METRICS_SHOWN])
    return f"{text} + {more} more..." if more > 0 else text


def _metric(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    kind = spec.get("type", "")
    field = kind[:1].lower() + kind[1:]
    if field not in ("external", "pods", "object", "resource", "containerResource"):
        return "<unknown type>"
    source, now = part(spec, field), part(part(status, field), "current")
    target = part(source, "target")
    if field in ("resource", "containerResource"):
        if target.get("averageValue") is not None:
            return f"{source.get('name')}: {now.get('averageValue', UNKNOWN)}/{target['averageValue']}"
        is_at, wanted = now.get("averageUtilization"), target.get("averageUtilization")
        have = UNKNOWN if is_at is None else f"{is_at}%"
        return f"{source.get('name')}: {have}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if field == "pods":
        return f"{now.get('averageValue', UNKNOWN)}/{target.get('averageValue')}"
    if target.get("averageValue") is not None:
        return f"{now.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    return f"{now.get('value', UNKNOWN)}/{target.get('value')}"


# ---------------------------------------------------------------- volumes, slices, ingresses

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(modes: Sequence[str] | None) -> str:
    found = dict.fromkeys(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def claim(now: Instant, document: Document) -> Cells:
    spec, status = part(document, "spec"), part(document, "status")
    phase = "Terminating" if document.get("metadata", {}).get("deletionTimestamp") else status.get("phase", "")
    bound = bool(spec.get("volumeName"))
    return [
        name_of(document),
        phase,
        spec.get("volumeName", ""),
        part(status, "capacity").get("storage", "") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName", ""),
        status.get("currentVolumeAttributesClassName") or "<unset>",
        age(now, document),
        spec.get("volumeMode") or "<unset>",
    ]


def volume(now: Instant, document: Document) -> Cells:
    spec, status = part(document, "spec"), part(document, "status")
    reference = spec.get("claimRef")
    phase = "Terminating" if document.get("metadata", {}).get("deletionTimestamp") else status.get("phase", "")
    return [
        name_of(document),
        part(spec, "capacity").get("storage", ""),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        age(now, document),
        spec.get("volumeMode") or "<unset>",
    ]


def storage_class(now: Instant, document: Document) -> Cells:
    notes = document.get("metadata", {}).get("annotations") or {}
    shown = name_of(document)
    if notes.get("storageclass.kubernetes.io/is-default-class") == "true":
        shown += " (default)"
    fields = [document.get(field, "") for field in ("provisioner", "reclaimPolicy", "volumeBindingMode")]
    return [shown, *fields, "true" if document.get("allowVolumeExpansion") else "false", age(now, document)]


def secret(now: Instant, document: Document) -> Cells:
    return [name_of(document), document.get("type", ""), len(part(document, "data")), age(now, document)]


def endpoint_slice(now: Instant, document: Document) -> Cells:
    ports = [port.get("port") for port in document.get("ports") or ()]
    found = [address for one in document.get("endpoints") or () for address in one.get("addresses") or ()]
    return [
        name_of(document),
        document.get("addressType", ""),
        _few(["*" if p is None else str(p) for p in ports]),
        _few(found),
        age(now, document),
    ]


def endpoints(now: Instant, document: Document) -> Cells:
    found: list[str] = []
    for subset in document.get("subsets") or ():
        for port in subset.get("ports") or [{}]:
            suffix = f":{port['port']}" if port.get("port") else ""
            found += [f"{one.get('ip', '')}{suffix}" for one in subset.get("addresses") or ()]
    return [name_of(document), _few(found) if found else NONE, age(now, document)]


def _few(words: Sequence[str]) -> str:
    """Three of them, and how many more there are."""
    if not words:
        return "<unset>"
    text = ",".join(words[:3])
    return f"{text} + {len(words) - 3} more..." if len(words) > 3 else text


def ingress(now: Instant, document: Document) -> Cells:
    spec = part(document, "spec")
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    addresses = [
        one.get("ip") or one.get("hostname", "") for one in part(part(document, "status"), "loadBalancer").get("ingress") or ()
    ]
    shown = f"{','.join(hosts[:3])} + {len(hosts) - 3} more..." if len(hosts) > 3 else ",".join(hosts) or "*"
    return [
        name_of(document),
        spec.get("ingressClassName") or NONE,
        shown,
        ",".join(addresses),
        "80, 443" if spec.get("tls") else "80",
        age(now, document),
    ]


def ingress_class(now: Instant, document: Document) -> Cells:
    spec = part(document, "spec")
    parameters = spec.get("parameters")
    shown = NONE
    if parameters:
        group = parameters.get("apiGroup")
        shown = f"{parameters.get('kind', '')}{'.' + group if group else ''}/{parameters.get('name', '')}"
    return [name_of(document), spec.get("controller", ""), shown, age(now, document)]


def network_policy(now: Instant, document: Document) -> Cells:
    return [name_of(document), format_selector(part(document, "spec").get("podSelector")), age(now, document)]


def controller_revision(now: Instant, document: Document) -> Cells:
    owner = next((one for one in document.get("metadata", {}).get("ownerReferences") or () if one.get("controller")), None)
    shown = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        shown = f"{owner.get('kind', '').lower()}{'.' + group if group else ''}/{owner.get('name', '')}"
    return [name_of(document), shown, document.get("revision", 0), age(now, document)]


_SPREAD = ("Containers|w", "Images|w")
KINDS = {
    ("apps/v1", "StatefulSet"): (stateful_set, ("Name", "Ready", "Age", *_SPREAD)),
    ("apps/v1", "DaemonSet"): (
        daemon_set,
        (
            *("Name", "Desired|i", "Current|i", "Ready|i", "Up-to-date|i", "Available|i", "Node Selector", "Age"),
            *(*_SPREAD, "Selector|w"),
        ),
    ),
    ("apps/v1", "ControllerRevision"): (controller_revision, ("Name", "Controller", "Revision|i", "Age")),
    ("batch/v1", "Job"): (job, ("Name", "Status", "Completions", "Duration", "Age", *_SPREAD, "Selector|w")),
    ("batch/v1", "CronJob"): (
        cron_job,
        ("Name", "Schedule", "Timezone", "Suspend|b", "Active|i", "Last Schedule", "Age", *_SPREAD, "Selector|w"),
    ),
    **{
        (f"autoscaling/{version}", "HorizontalPodAutoscaler"): (
            autoscaler,
            ("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
        )
        for version in ("v1", "v2")
    },
    ("v1", "Secret"): (secret, ("Name", "Type", "Data", "Age")),
    ("v1", "Endpoints"): (endpoints, ("Name", "Endpoints", "Age")),
    ("v1", "PersistentVolumeClaim"): (
        claim,
        (
            *("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age"),
            "VolumeMode|w",
        ),
    ),
    ("v1", "PersistentVolume"): (
        volume,
        (
            *("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass", "VolumeAttributesClass"),
            *("Reason", "Age", "VolumeMode|w"),
        ),
    ),
    ("storage.k8s.io/v1", "StorageClass"): (
        storage_class,
        ("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
    ),
    ("discovery.k8s.io/v1", "EndpointSlice"): (endpoint_slice, ("Name", "AddressType", "Ports", "Endpoints", "Age")),
    ("networking.k8s.io/v1", "Ingress"): (ingress, ("Name", "Class", "Hosts", "Address", "Ports", "Age")),
    ("networking.k8s.io/v1", "IngressClass"): (ingress_class, ("Name", "Controller", "Parameters", "Age")),
    ("networking.k8s.io/v1", "NetworkPolicy"): (network_policy, ("Name", "Pod-Selector", "Age")),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): (
        lambda now, document: [name_of(document), document.get("metadata", {}).get("creationTimestamp") or UNKNOWN],
        ("Name", "Created At"),
    ),
}
"""(apiVersion, kind) -> how a row is made, and its columns."""
