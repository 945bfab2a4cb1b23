"""What is done to pods and their owners beside reading and writing them: binding, eviction, scaling."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elbowroom.api.clock import as_time
from elbowroom.apiserver import statuses
from elbowroom.apiserver.jsonpath import look
from elbowroom.apiserver.kinds.base import ScalePaths
from elbowroom.apiserver.kinds.checks import selector_of
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.store import Record
from elbowroom.apiserver.strategy import Context, Document
from elbowroom.machine import Instant

DISRUPTED_PODS_MAX = 2000

# ---------------------------------------------------------------- conditions


def set_condition(status: Document, condition: Document, now: Instant) -> None:
    """Set the condition of that type in a status; its time of transition moves only if its value does."""
    conditions = [dict(held) for held in status.get("conditions", ())]
    for index, held in enumerate(conditions):
        if held.get("type") == condition["type"]:
            since = held.get("lastTransitionTime") if held.get("status") == condition["status"] else as_time(now)
            conditions[index] = {**condition, "lastTransitionTime": since}
            break
    else:
        conditions.append({**condition, "lastTransitionTime": as_time(now)})
    status["conditions"] = conditions


def _condition(pod: Mapping[str, Any], kind: str, value: str, **words: str) -> Document:
    made: Document = {"type": kind}
    if pod["metadata"].get("generation"):
        made["observedGeneration"] = pod["metadata"]["generation"]
    return {**made, "status": value, "lastProbeTime": None, **words}


# ---------------------------------------------------------------- logs

_STATUS_FIELDS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_PULLS = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}


def log(pod: Mapping[str, Any], container: str, *, previous: bool) -> bytes:
    """What a container wrote: nothing, for emulated ones write nothing; 400 if there is no such container, or it has not run."""
    name, spec, status = pod["metadata"]["name"], pod["spec"], pod.get("status", {})
    names = {
        field: [one["name"] for one in spec.get(field, ())] for field in ("containers", "initContainers", "ephemeralContainers")
    }
    if not container:
        if len(names["containers"]) != 1 or names["initContainers"] or names["ephemeralContainers"]:
            raise statuses.bad_request(f"a container name must be specified for pod {name}, {_choices(names)}")
        container = names["containers"][0]
    if all(container not in known for known in names.values()):
        raise statuses.bad_request(f"container {container} is not valid for pod {name}")
    if not spec.get("nodeName"):
        return b""
    held = next((one for field in _STATUS_FIELDS for one in status.get(field, ()) if one.get("name") == container), None)
    if held is None:
        raise statuses.bad_request(f'container "{container}" in pod "{name}" is not available')
    state, last = held.get("state", {}), held.get("lastState", {})
    if previous:
        if "terminated" not in last:
            raise statuses.bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
    elif not ("running" in state or "terminated" in state or "terminated" in last):
        reason = state.get("waiting", {}).get("reason", "")
        shown = f"is waiting to start: {_PULLS.get(reason, reason)}" if "waiting" in state else "is waiting to start - no logs yet"
        raise statuses.bad_request(f'container "{container}" in pod "{name}" {shown}')
    return b""


def _choices(names: Mapping[str, Sequence[str]]) -> str:
    text = f"choose one of: [{' '.join(names['containers'])}]"
    if names["initContainers"]:
        text += f" or one of the init containers: [{' '.join(names['initContainers'])}]"
    if names["ephemeralContainers"]:
        text += f" or one of the ephemeral containers: [{' '.join(names['ephemeralContainers'])}]"
    return text


# ---------------------------------------------------------------- binding


def check_binding(binding: Mapping[str, Any], name: str, namespace: str) -> None:
    """Is it about this pod, and does it name a node? Upstream answers the latter with a 500."""
    meta, target = binding["metadata"], binding.get("target", {})
    if meta.get("namespace") and meta["namespace"] != namespace:
        raise statuses.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if meta.get("name", "") != name:
        raise statuses.bad_request("name in URL does not match name in Binding object")
    kind = target.get("kind", "")
    found = []
    if kind not in ("", "Node"):
        found.append(f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        found.append("target.name: Required value")
    if found:
        raise statuses.internal(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def bound(pod: Mapping[str, Any], binding: Mapping[str, Any], context: Context) -> Document:
    """The pod as it is assigned to the binding's node, or 409 (SC-60); it shares with ``pod`` what stays."""
    meta, spec, status = dict(pod["metadata"]), dict(pod["spec"]), dict(pod["status"])
    name = meta["name"]
    why = ""
    if meta.get("deletionTimestamp") is not None:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise statuses.conflict("", "pods/binding", name, why)
    spec["nodeName"] = binding["target"]["name"]
    annotations = binding["metadata"].get("annotations")
    if annotations:
        meta["annotations"] = {**meta.get("annotations", {}), **annotations}
    set_condition(status, _condition(pod, "PodScheduled", "True"), context.now)
    if context.profile.on("ClearingNominatedNodeNameAfterBinding"):
        status.pop("nominatedNodeName", None)
    return {**pod, "metadata": meta, "spec": spec, "status": status}


# ---------------------------------------------------------------- eviction


@dataclass(frozen=True, slots=True)
class Verdict:
    """May the pod be evicted? ``budget``: the whole new document of the budget that pays for it."""

    refusal: ApiError | None = None
    budget: Document | None = None


_GRANTED = Verdict()
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def judge_eviction(pod: Mapping[str, Any], budgets: Sequence[Record], now: Instant) -> Verdict:
    """Ask the budgets that select the pod; ended, pending and deleted pods disrupt nobody."""
    if pod["metadata"].get("deletionTimestamp") is not None or pod["status"].get("phase") in ("Succeeded", "Failed", "Pending"):
        return _GRANTED
    labels = pod["metadata"].get("labels", {})
    mine = [record for record in budgets if _selects(record.document, labels)]
    if not mine:
        return _GRANTED
    if len(mine) > 1:
        return Verdict(
            statuses.internal("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
        )
    budget = mine[0].copy()
    spec, status = budget["spec"], budget.setdefault("status", {})
    if not _is_ready(pod):
        if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            return _GRANTED
        if status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0:
            return _GRANTED
    return _spend(budget, pod["metadata"]["name"], now)


def _selects(budget: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    selector = budget["spec"].get("selector")
    return selector is not None and bool(selector_of(selector).matches(labels))


def _is_ready(pod: Mapping[str, Any]) -> bool:
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in pod["status"].get("conditions", ()))


def _spend(budget: Document, pod: str, now: Instant) -> Verdict:
    name, status = budget["metadata"]["name"], budget["status"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        return Verdict(statuses.too_many_requests(_REFUSED, [{"reason": "DisruptionBudget", "message": text}], 10))
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        return Verdict(statuses.forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative"))
    if len(status.get("disruptedPods", {})) > DISRUPTED_PODS_MAX:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        return Verdict(statuses.forbidden("policy", "poddisruptionbudget", name, text))
    if allowed == 0:
        return Verdict(statuses.too_many_requests(_REFUSED, [{"reason": "DisruptionBudget", "message": _why_none(name, status)}]))
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        condition = {
            "type": "DisruptionAllowed",
            "status": "False",
            "observedGeneration": status.get("observedGeneration", 0),
            "reason": "InsufficientPods",
            "message": "",
        }
        set_condition(status, condition, now)
    status["disruptedPods"] = {**status.get("disruptedPods", {}), pod: as_time(now)}
    return Verdict(None, budget)


def _why_none(name: str, status: Mapping[str, Any]) -> str:
    """Why a budget that is up to date allows nothing."""
    for condition in status.get("conditions", ()):
        if (condition.get("type"), condition.get("status"), condition.get("reason")) == (
            "DisruptionAllowed",
            "False",
            "SyncFailed",
        ):
            why = f"it failed sync: {condition.get('message', '')}"
            return f"The disruption budget {name} does not allow evicting pods currently because {why}"
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if healthy > desired:
        return f"The disruption budget {name} does not allow evicting pods currently"
    return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"


def tell_of_eviction(pod: Document, now: Instant) -> None:
    """The condition that says why the pod goes."""
    words = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    set_condition(pod["status"], _condition(pod, "DisruptionTarget", "True", **words), now)


# ---------------------------------------------------------------- scale


def scale_of(document: Mapping[str, Any]) -> Document:
    """The Scale of a replica set or deployment."""
    meta, spec, status = document["metadata"], document["spec"], document.get("status", {})
    shown = {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if name in meta}
    scaled: Document = {"replicas": status.get("replicas", 0)}
    text = _selector_text(spec.get("selector", {}))
    if text:
        scaled["selector"] = text
    replicas = spec.get("replicas", 0)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": shown,
        "spec": {"replicas": replicas} if replicas else {},
        "status": scaled,
    }


def custom_scale_of(document: Mapping[str, Any], paths: ScalePaths) -> Document:
    """The Scale of an object of a custom kind; ``ApiError`` if it says nothing of replicas."""
    meta = document["metadata"]
    wanted = look(document, paths.spec_replicas)
    if not wanted:
        raise statuses.internal(f'the spec replicas field "{paths.spec_replicas}" does not exist')
    there, selector = look(document, paths.status_replicas), look(document, paths.selector) if paths.selector else []
    status: Document = {"replicas": there[0] if there else 0}
    if selector and selector[0]:
        status["selector"] = selector[0]
    shown = {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if name in meta}
    spec = {"replicas": wanted[0]} if wanted[0] else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec, "status": status}


def put_replicas(document: Document, paths: ScalePaths, replicas: int) -> None:
    """Write, in place, how many replicas are wanted of an object of a custom kind."""
    *parents, last = paths.spec_replicas.removeprefix(".").split(".")
    at = document
    for name in parents:
        at = at.setdefault(name, {})
    at[last] = replicas


def _selector_text(selector: Mapping[str, Any]) -> str:
    """A LabelSelector in the query's syntax, ordered by key."""
    parts = [(key, f"{key}={value}") for key, value in selector.get("matchLabels", {}).items()]
    for expression in selector.get("matchExpressions", ()):
        key, values = expression.get("key", ""), ",".join(sorted(expression.get("values", ())))
        match expression.get("operator"):
            case "In":
                parts.append((key, f"{key} in ({values})"))
            case "NotIn":
                parts.append((key, f"{key} notin ({values})"))
            case "Exists":
                parts.append((key, key))
            case _:
                parts.append((key, f"!{key}"))
    return ",".join(text for _, text in sorted(parts))
