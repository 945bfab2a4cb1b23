"""Kinds that are served in two forms: autoscalers (v1 and v2) and events (core and events.k8s.io).

One form is stored; the other is made of it, and back.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from elbowroom.api.fielderrors import FieldError, invalid, required
from elbowroom.apiserver import schema
from elbowroom.apiserver.faces import Face
from elbowroom.apiserver.kinds.base import Resource, StatusStrategy, field_at
from elbowroom.apiserver.kinds.small import EVENT_FIELDS, EventStrategy
from elbowroom.apiserver.store import Record
from elbowroom.apiserver.strategy import Context, Document, Strategy

Node = Mapping[str, Any]
Errors = list[FieldError]
DEFAULT_CPU_UTILIZATION = 80
_encode = msgspec.json.Encoder().encode


class _Made(Face):
    """A form that is made of the stored one."""

    def __init__(self, shown: Callable[[Document], Document], stored: Callable[[Document], Document]) -> None:
        self._shown, self._stored = shown, stored

    def document(self, record: Record) -> Document:
        return self._shown(record.copy())

    def data(self, record: Record) -> bytes:
        return _encode(self.document(record))

    def stored(self, document: Document) -> Document:
        return self._stored(document)


def _tree(group: str, version: str, kind: str) -> schema.Field:
    found = schema.find(group, version, kind)
    assert found is not None, f"{kind} has no field tree"
    return found


# ---------------------------------------------------------------- autoscalers


class AutoscalerStrategy(Strategy):
    """``autoscaling/v2``, which is stored. Nothing here measures, so nothing scales by it."""

    group, version, kind = "autoscaling", "v2", "HorizontalPodAutoscaler"
    plural, singular = "horizontalpodautoscalers", "horizontalpodautoscaler"
    short_names, categories = ("hpa",), ("all",)

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": DEFAULT_CPU_UTILIZATION}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        behavior = spec.get("behavior")
        if behavior is not None:
            percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
            up = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}
            up["policies"] = [{"type": "Pods", "value": 4, "periodSeconds": 15}, percent]
            down = {"selectPolicy": "Max", "policies": [dict(percent)]}
            for name, rules in (("scaleUp", up), ("scaleDown", down)):
                behavior[name] = {
                    **rules,
                    **{word: value for word, value in (behavior.get(name) or {}).items() if value is not None},
                }

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {"desiredReplicas": 0, "currentMetrics": None}

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        new["status"] = old["status"]

    def validate_create(self, context: Context, new: Document) -> Errors:
        return _autoscaler_errors(new["spec"])

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return _autoscaler_errors(new["spec"])


def _autoscaler_errors(spec: Node) -> Errors:
    found: Errors = []
    least, most, target = spec.get("minReplicas"), spec.get("maxReplicas", 0), spec.get("scaleTargetRef") or {}
    if least is not None and least < 1:
        found.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        found.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if least is not None and most < least:
        found.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    return found + [required(f"spec.scaleTargetRef.{name}") for name in ("kind", "name") if not target.get(name)]


class OldAutoscalerStrategy(AutoscalerStrategy):
    """``autoscaling/v1``: a target of CPU utilisation, and nothing else."""

    version = "v1"

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        spec.setdefault("minReplicas", 1)
        if METRICS not in (document["metadata"].get("annotations") or {}):
            spec.setdefault("targetCPUUtilizationPercentage", DEFAULT_CPU_UTILIZATION)

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {"currentReplicas": 0, "desiredReplicas": 0}


METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"


def _is_cpu(metric: Node) -> bool:
    resource = metric.get("resource") or {}
    return (
        metric.get("type") == "Resource"
        and resource.get("name") == "cpu"
        and (resource.get("target") or {}).get("averageUtilization") is not None
    )


def old_autoscaler(new: Document) -> Document:
    """v2 as v1: what v1 has no fields for goes into annotations."""
    spec = dict(new["spec"])
    meta = dict(new["metadata"])
    metrics, behavior = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    cpu = next((metric for metric in metrics if _is_cpu(metric)), None)
    if cpu is not None:
        spec["targetCPUUtilizationPercentage"] = cpu["resource"]["target"]["averageUtilization"]
    rest = [metric for metric in metrics if metric is not cpu]
    notes = dict(meta.get("annotations") or {})
    if rest:
        notes[METRICS] = _encode(rest).decode()
    if behavior is not None:
        notes[_BEHAVIOR] = _encode(behavior).decode()
    if notes:
        meta["annotations"] = notes
    had = new.get("status") or {}
    status = {name: had[name] for name in ("observedGeneration", "lastScaleTime") if had.get(name) is not None}
    status |= {"currentReplicas": had.get("currentReplicas", 0), "desiredReplicas": had.get("desiredReplicas", 0)}
    return {**new, "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


def new_autoscaler(old: Document) -> Document:
    """v1 as v2."""
    spec, meta, status = dict(old["spec"]), dict(old["metadata"]), dict(old.get("status") or {})
    notes = dict(meta.get("annotations") or {})
    metrics = _listed(notes.pop(METRICS, ""))
    behavior = _noted(notes.pop(_BEHAVIOR, ""))
    percentage = spec.pop("targetCPUUtilizationPercentage", None)
    if percentage is not None:
        target = {"type": "Utilization", "averageUtilization": percentage}
        metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}, *metrics]
    spec["metrics"] = metrics
    if isinstance(behavior, dict):
        spec["behavior"] = behavior
    meta.pop("annotations", None)
    if notes:
        meta["annotations"] = notes
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    status.setdefault("desiredReplicas", 0)
    status["currentMetrics"] = None
    return {**old, "apiVersion": "autoscaling/v2", "metadata": meta, "spec": spec, "status": status}


def _noted(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.MsgspecError:
        return None


def _listed(text: str) -> list[Any]:
    found = _noted(text)
    return found if isinstance(found, list) else []


# ---------------------------------------------------------------- events

_EVENT_NAMES = (
    ("reportingComponent", "reportingController"),
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)
_TO_NEW = dict(_EVENT_NAMES)
_TO_CORE = {new: core for core, new in _EVENT_NAMES}


def new_event(core: Document) -> Document:
    """A core event as one of events.k8s.io."""
    made = {_TO_NEW.get(name, name): value for name, value in core.items()}
    return {**made, "apiVersion": "events.k8s.io/v1"}


def core_event(new: Document) -> Document:
    """An event of events.k8s.io as a core one."""
    made = {_TO_CORE.get(name, name): value for name, value in new.items()}
    return {**made, "apiVersion": "v1"}


class NewEventStrategy(EventStrategy):
    """``events.k8s.io``: the events of core, which must say more when they are created here."""

    group = "events.k8s.io"

    @cached_property
    def resource(self) -> str:
        return "events"

    def validate_create(self, context: Context, new: Document) -> Errors:
        found = super().validate_create(context, {**new, "involvedObject": new.get("regarding") or {}})
        if new.get("eventTime") is None:
            found.append(required("eventTime"))
        for name in ("reportingController", "reportingInstance", "action", "reason"):
            if not new.get(name):
                found.append(required(name))
        if new.get("type") not in ("Normal", "Warning"):
            found.append(invalid("type", "", f"has invalid value: {new.get('type') or ''}"))
        return found


_NEW_FIELDS = {name.replace("involvedObject", "regarding"): read for name, read in EVENT_FIELDS.items()}


def _new_readers() -> dict[str, Callable[[Node], str]]:
    made = dict(_NEW_FIELDS)
    for name in made:
        if name.startswith("regarding."):
            made[name] = field_at("regarding", name.partition(".")[2])
    made["reportingController"] = field_at("reportingController")
    return made


def rows() -> list[Resource]:
    """The rows of these kinds: what is stored, and what is made of it."""
    autoscaler, old = AutoscalerStrategy(), OldAutoscalerStrategy()
    return [
        Resource(autoscaler, {"status": StatusStrategy(autoscaler)}),
        Resource(
            old,
            {"status": StatusStrategy(old)},
            field=_tree("autoscaling", "v1", "HorizontalPodAutoscaler"),
            face=_Made(old_autoscaler, new_autoscaler),
        ),
        Resource(
            NewEventStrategy(),
            fields=_new_readers(),
            name_rule="path",
            field=_tree("events.k8s.io", "v1", "Event"),
            face=_Made(new_event, core_event),
        ),
    ]
