"""Objects as rows: what ``kubectl get`` prints.

A server renders Tables because only it knows what matters of a kind; the cells here are upstream's, word for word, for the kinds
that people look at, and name and age for all others.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.apiserver import workload_tables
from elbowroom.apiserver.gotext import go_text
from elbowroom.apiserver.jsonpath import look
from elbowroom.apiserver.kinds.versions import core_event
from elbowroom.apiserver.tablekit import (
    NONE,
    UNKNOWN,
    Cells,
    Document,
    age,
    containers,
    format_selector,
    human_duration,
    instant,
    name_of,
    part,
    since,
)
from elbowroom.machine import Instant


def _pod(now: Instant, pod: Document) -> Cells:
    spec, status = part(pod, "spec"), part(pod, "status")
    reason, restarts, last_restart, ready, total = _pod_summary(pod, spec, status)
    shown = str(restarts)
    if restarts and last_restart is not None:
        shown = f"{restarts} ({human_duration(now - last_restart)} ago)"
    ips = status.get("podIPs") or ()
    gates = spec.get("readinessGates") or ()
    passed = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"}
    return [
        name_of(pod),
        f"{ready}/{total}",
        reason,
        shown,
        age(now, pod),
        (ips[0].get("ip") if ips else status.get("podIP")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{sum(g.get('conditionType') in passed for g in gates)}/{len(gates)}" if gates else NONE,
    ]


def _pod_summary(pod: Document, spec: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[str, int, int | None, int, int]:
    """(STATUS, restarts, the last restart's instant, ready containers, containers)."""
    conditions = status.get("conditions") or ()
    phase = status.get("phase", "")
    reason = status.get("reason") or phase
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in conditions):
        reason = "SchedulingGated"
    inits = {c.get("name"): c for c in spec.get("initContainers") or ()}
    sidecars = {name for name, c in inits.items() if c.get("restartPolicy") == "Always"}
    total = len(spec.get("containers") or ()) + len(sidecars)
    ready = restarts = sidecar_restarts = 0
    last: int | None = None
    sidecar_last: int | None = None
    initializing = False
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        count = container.get("restartCount", 0)
        restarts += count
        last = _later(last, container)
        is_sidecar = container.get("name") in sidecars
        if is_sidecar:
            sidecar_restarts += count
            sidecar_last = _later(sidecar_last, container)
        state = container.get("state") or {}
        ended = state.get("terminated")
        waiting = (state.get("waiting") or {}).get("reason", "")
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        if ended is not None:
            reason = f"Init:{_end(ended)}"
        elif waiting and waiting != "PodInitializing":
            reason = f"Init:{waiting}"
        else:
            reason = f"Init:{index}/{len(inits)}"
        initializing = True
        break
    if not initializing or _is_true(conditions, "Initialized"):
        restarts, last = sidecar_restarts, sidecar_last
        running = False
        for container in reversed(status.get("containerStatuses") or ()):
            restarts += container.get("restartCount", 0)
            last = _later(last, container)
            state = container.get("state") or {}
            ended = state.get("terminated")
            waiting = (state.get("waiting") or {}).get("reason", "")
            if waiting:
                reason = waiting
            elif ended is not None:
                reason = _end(ended)
            elif container.get("ready") and state.get("running") is not None:
                running = True
                ready += 1
        if reason == "Completed" and running:
            reason = "Running" if _is_true(conditions, "Ready") else "NotReady"
    if pod.get("metadata", {}).get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            reason = "Terminating"
    return reason, restarts, last, ready, total


def _later(last: int | None, container: Mapping[str, Any]) -> int | None:
    at = instant(((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt"))
    return last if at is None else at if last is None else max(last, at)


def _end(ended: Mapping[str, Any]) -> str:
    reason: str = ended.get("reason", "")
    if reason:
        return reason
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _is_true(conditions: Sequence[Mapping[str, Any]], kind: str) -> bool:
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)


_ROLE = "node-role.kubernetes.io/"


def _node(now: Instant, node: Document) -> Cells:
    spec, status = part(node, "spec"), part(node, "status")
    info = status.get("nodeInfo") or {}
    ready = next((c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"), None)
    states = ["Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"]
    if spec.get("unschedulable"):
        states.append("SchedulingDisabled")
    labels = node.get("metadata", {}).get("labels") or {}
    roles = {label[len(_ROLE) :] for label in labels if label.startswith(_ROLE)} - {""}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    addresses = status.get("addresses") or ()
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel = f"{kernel} ({info['architecture']})"
    return [
        name_of(node),
        ",".join(states),
        ",".join(sorted(roles)) or NONE,
        age(now, node),
        info.get("kubeletVersion", ""),
        next((a["address"] for a in addresses if a.get("type") == "InternalIP"), NONE),
        next((a["address"] for a in addresses if a.get("type") == "ExternalIP"), NONE),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _namespace(now: Instant, namespace: Document) -> Cells:
    return [name_of(namespace), part(namespace, "status").get("phase", ""), age(now, namespace)]


def _event(now: Instant, event: Document) -> Cells:
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = event.get("lastTimestamp") or first
    count = event.get("count") or 1
    series = event.get("series")
    if series:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    about = part(event, "involvedObject")
    target = about.get("kind", "").lower()
    if about.get("name"):
        target = f"{target}/{about['name']}"
    source = part(event, "source")
    component = source.get("component") or event.get("reportingComponent", "")
    host = source.get("host") or ("" if source.get("component") else event.get("reportingInstance", ""))
    return [
        since(now, last),
        event.get("type", ""),
        event.get("reason", ""),
        target,
        about.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        event.get("message", "").strip(),
        since(now, first),
        count,
        name_of(event),
    ]


def _deployment(now: Instant, deployment: Document) -> Cells:
    spec, status = part(deployment, "spec"), part(deployment, "status")
    return [
        name_of(deployment),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(now, deployment),
        *containers(deployment),
        format_selector(spec.get("selector")),
    ]


def _replica_set(now: Instant, replica_set: Document) -> Cells:
    spec, status = part(replica_set, "spec"), part(replica_set, "status")
    return [
        name_of(replica_set),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(now, replica_set),
        *containers(replica_set),
        format_selector(spec.get("selector")),
    ]


def _budget(now: Instant, budget: Document) -> Cells:
    spec = part(budget, "spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        name_of(budget),
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        part(budget, "status").get("disruptionsAllowed", 0),
        age(now, budget),
    ]


def _priority_class(now: Instant, priority_class: Document) -> Cells:
    return [
        name_of(priority_class),
        priority_class.get("value", 0),
        bool(priority_class.get("globalDefault")),
        age(now, priority_class),
        priority_class.get("preemptionPolicy", ""),
    ]


def _quota(now: Instant, quota: Document) -> Cells:
    status = part(quota, "status")
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        (limits if resource.startswith("limits.") else requests).append(f"{resource}: {used.get(resource, '0')}/{hard[resource]}")
    return [name_of(quota), ", ".join(requests), ", ".join(limits), age(now, quota)]


def _limit_range(now: Instant, limit_range: Document) -> Cells:
    return [name_of(limit_range), limit_range.get("metadata", {}).get("creationTimestamp") or UNKNOWN]


def _role(now: Instant, role: Document) -> Cells:
    return [name_of(role), role.get("metadata", {}).get("creationTimestamp") or UNKNOWN]


def _role_binding(now: Instant, binding: Document) -> Cells:
    role, told = part(binding, "roleRef"), dict[str, list[str]]()
    for subject in binding.get("subjects") or ():
        name = subject.get("name", "")
        account = f"{subject.get('namespace', '')}/{name}"
        told.setdefault(subject.get("kind", ""), []).append(account if subject.get("kind") == "ServiceAccount" else name)
    subjects = [", ".join(told.get(kind, ())) for kind in ("User", "Group", "ServiceAccount")]
    return [name_of(binding), f"{role.get('kind', '')}/{role.get('name', '')}", age(now, binding), *subjects]


def _lease(now: Instant, lease: Document) -> Cells:
    return [name_of(lease), part(lease, "spec").get("holderIdentity", ""), age(now, lease)]


def _config_map(now: Instant, config_map: Document) -> Cells:
    return [name_of(config_map), len(part(config_map, "data")) + len(part(config_map, "binaryData")), age(now, config_map)]


def _service_account(now: Instant, account: Document) -> Cells:
    return [name_of(account), len(account.get("secrets") or ()), age(now, account)]


def _service(now: Instant, service: Document) -> Cells:
    spec = part(service, "spec")
    ports = ",".join(
        f"{port.get('port')}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol')}"
        for port in spec.get("ports") or ()
    )
    outside = spec.get("externalName") if spec.get("type") == "ExternalName" else ",".join(spec.get("externalIPs") or ())
    pending = "<pending>" if spec.get("type") == "LoadBalancer" else NONE
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    shown = (spec.get("type", ""), spec.get("clusterIP") or NONE, outside or pending, ports or NONE)
    return [name_of(service), *shown, age(now, service), selector or NONE]


def _scale(now: Instant, scale: Document) -> Cells:
    spec, status = part(scale, "spec"), part(scale, "status")
    return [name_of(scale), spec.get("replicas", 0), status.get("replicas", 0), age(now, scale)]


def _any(now: Instant, document: Document) -> Cells:
    return [name_of(document), age(now, document)]


def _status(now: Instant, status: Document) -> Cells:
    return [status.get("status", ""), status.get("reason", ""), status.get("message", "")]


# ---------------------------------------------------------------- columns


def _column(text: str) -> dict[str, Any]:
    name, _, flags = text.partition("|")
    wide = "w" in flags
    kind = "integer" if "i" in flags else "boolean" if "b" in flags else "string"
    return {
        "name": name,
        "type": kind,
        "format": "name" if name == "Name" and not wide else "",
        "description": _COLUMN_MEANINGS.get(name, name),
        "priority": int(wide),
    }


_COLUMN_MEANINGS = {
    "Name": "The object's name, unique in its namespace.",
    "Age": "How long ago the object was created.",
    "Status": "The state in a word.",
    "Ready": "How many are ready, of how many.",
    "Restarts": "How often containers were restarted, and when last.",
    "Node": "The node that the pod is bound to.",
    "Nominated Node": "The node where room is being made for the pod.",
    "Version": "Kubelet Version reported by the node.",
}
_BINDING = ("Name", "Role", "Age", "Users|w", "Groups|w", "ServiceAccounts|w")
_WORKLOAD = ("Age", "Containers|w", "Images|w", "Selector|w")

_KINDS: dict[tuple[str, str], tuple[Callable[[Instant, Document], Cells], tuple[str, ...]]] = {
    ("v1", "Pod"): (
        _pod,
        ("Name", "Ready", "Status", "Restarts", "Age", "IP|w", "Node|w", "Nominated Node|w", "Readiness Gates|w"),
    ),
    ("v1", "Node"): (
        _node,
        (
            *("Name", "Status", "Roles", "Age", "Version"),
            *("Internal-IP|w", "External-IP|w", "OS-Image|w", "Kernel-Version|w", "Container-Runtime|w"),
        ),
    ),
    ("v1", "Namespace"): (_namespace, ("Name", "Status", "Age")),
    ("v1", "Event"): (
        _event,
        (
            *("Last Seen", "Type", "Reason", "Object", "Subobject|w", "Source|w"),
            *("Message", "First Seen|w", "Count|wi", "Name|w"),
        ),
    ),
    ("v1", "ResourceQuota"): (_quota, ("Name", "Request", "Limit", "Age")),
    ("v1", "LimitRange"): (_limit_range, ("Name", "Created At")),
    ("v1", "ConfigMap"): (_config_map, ("Name", "Data", "Age")),
    ("v1", "Service"): (_service, ("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector|w")),
    ("v1", "ServiceAccount"): (_service_account, ("Name", "Secrets", "Age")),
    ("v1", "Status"): (_status, ("Status", "Reason", "Message")),
    ("apps/v1", "Deployment"): (_deployment, ("Name", "Ready", "Up-to-date", "Available", *_WORKLOAD)),
    ("apps/v1", "ReplicaSet"): (_replica_set, ("Name", "Desired|i", "Current|i", "Ready|i", *_WORKLOAD)),
    ("policy/v1", "PodDisruptionBudget"): (
        _budget,
        ("Name", "Min Available", "Max Unavailable", "Allowed Disruptions|i", "Age"),
    ),
    ("scheduling.k8s.io/v1", "PriorityClass"): (
        _priority_class,
        ("Name", "Value|i", "Global-Default|b", "Age", "PreemptionPolicy"),
    ),
    ("coordination.k8s.io/v1", "Lease"): (_lease, ("Name", "Holder", "Age")),
    ("rbac.authorization.k8s.io/v1", "Role"): (_role, ("Name", "Created At")),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): (_role, ("Name", "Created At")),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): (_role_binding, _BINDING),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): (_role_binding, _BINDING),
    ("autoscaling/v1", "Scale"): (_scale, ("Name", "Desired|i", "Available|i", "Age")),
}
_KINDS |= workload_tables.KINDS
_EVENT_COLUMNS = _KINDS["v1", "Event"][1]
_KINDS["events.k8s.io/v1", "Event"] = (lambda now, event: _event(now, core_event(dict(event))), _EVENT_COLUMNS)
_OTHERS = (_any, ("Name", "Age"))


def custom_columns(definition: Document) -> list[dict[str, Any]]:
    """The columnDefinitions that a version of a custom kind asks for; its age, if it asks for none."""
    found = [_column("Name")]
    for column in definition.get("additionalPrinterColumns") or _AGE:
        found.append(
            {
                "name": column["name"],
                "type": column["type"],
                "format": column.get("format", ""),
                "description": column.get("description")
                or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
                "priority": column.get("priority", 0),
            }
        )
    return found


_AGE: Sequence[Document] = (
    {
        "name": "Age",
        "type": "date",
        "description": _COLUMN_MEANINGS["Age"],
        "jsonPath": ".metadata.creationTimestamp",
    },
)


def _custom(definition: Document) -> Callable[[Instant, Document], Cells]:
    wanted = definition.get("additionalPrinterColumns") or _AGE

    def render(now: Instant, document: Document) -> Cells:
        return [name_of(document), *(_custom_cell(now, column, document) for column in wanted)]

    return render


def _custom_cell(now: Instant, column: Document, document: Document) -> Any:
    """The first value at the column's path, as a cell of its type; nothing for a value of another type."""
    found = look(document, column["jsonPath"])
    if not found or found[0] is None:
        return None
    value = found[0]
    match column["type"]:
        case "string":
            return value if isinstance(value, str) else _text(value)
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date" if isinstance(value, str):
            at = instant(value)
            return "<invalid>" if at is None else human_duration(now - at)
    return None


def _text(value: Any) -> str:
    """A value as upstream's JSONPath prints it."""
    return msgspec.json.encode(value, order="sorted").decode() if isinstance(value, dict | list) else go_text(value)


def columns(api_version: str, kind: str) -> list[dict[str, Any]]:
    """The columnDefinitions of a kind's Table."""
    return [_column(text) for text in _KINDS.get((api_version, kind), _OTHERS)[1]]


def partial(document: Document) -> dict[str, Any]:
    """An object's metadata alone (``PartialObjectMetadata``)."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": document.get("metadata") or {},
    }


def partial_list(whole: Document) -> dict[str, Any]:
    """A list as ``PartialObjectMetadataList``."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": whole.get("metadata") or {},
        "items": [partial(item) for item in whole.get("items") or ()],
    }


def table(
    now: Instant,
    whole: Document,
    *,
    include_object: str = "Metadata",
    with_columns: bool = True,
    definition: Document | None = None,
) -> dict[str, Any]:
    """The Table of an object or of a list; of a custom kind, by its version's ``definition``.

    ``include_object`` is ``Metadata``, ``Object`` or ``None``: what of each object goes along. A watch gives the columns with its
    first event only.
    """
    api_version, kind = whole.get("apiVersion", ""), whole.get("kind", "")
    meta = whole.get("metadata") or {}
    items: Sequence[Document]
    if kind.endswith("List") and "items" in whole:
        kind, items = kind[:-4], whole["items"] or ()
        about = {key: meta[key] for key in ("resourceVersion", "continue", "remainingItemCount") if key in meta}
    else:
        items = [whole]
        about = {"resourceVersion": meta["resourceVersion"]} if "resourceVersion" in meta else {}
    render = _KINDS.get((api_version, kind), _OTHERS)[0] if definition is None else _custom(definition)
    described = [] if not with_columns else columns(api_version, kind) if definition is None else custom_columns(definition)
    rows = []
    for item in items:
        row: dict[str, Any] = {"cells": render(now, item)}
        if include_object == "Object":
            row["object"] = {"kind": kind, "apiVersion": api_version, **item}
        elif include_object != "None":
            row["object"] = partial(item)
        else:
            row["object"] = None
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": about,
        "columnDefinitions": described,
        "rows": rows,
    }


def bookmark(document: Document) -> dict[str, Any]:
    """A watch bookmark as a Table: no columns, one row that carries the metadata."""
    meta = document.get("metadata") or {}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": meta.get("resourceVersion", "")},
        "columnDefinitions": [],
        "rows": [{"cells": [], "object": partial(document)}],
    }
