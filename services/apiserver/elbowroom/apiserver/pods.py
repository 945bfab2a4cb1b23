"""Pods in the registry: what may be created, what a plain update, a status and a resize may change, and what is refused."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from elbowroom.api.fielderrors import FieldError, forbidden, invalid, invalid_struct, required
from elbowroom.api.gates import Profile
from elbowroom.api.resources import qos_class
from elbowroom.apiserver.internals import internal
from elbowroom.apiserver.pod_annotations import MIRROR, validate_annotation_updates
from elbowroom.apiserver.pod_defaults import default_pod, default_pod_level_limits, merge_match_label_keys, paired_addresses
from elbowroom.apiserver.pod_status_validation import validate_status_update
from elbowroom.apiserver.pod_validation import (
    INT32_MAX,
    validate_created_pod,
    validate_pod,
    validate_tolerations,
)
from elbowroom.apiserver.pod_warnings import warnings_of
from elbowroom.apiserver.podviews import read_pod
from elbowroom.apiserver.semantics import same
from elbowroom.apiserver.spec_diff import spec_diff
from elbowroom.apiserver.strategy import Context, Document, Strategy

POD_LEVEL, POD_LEVEL_RESIZE = "PodLevelResources", "InPlacePodLevelResourcesVerticalScaling"
GENERIC_WORKLOAD = "GenericWorkload"
INIT_RESIZE = "InPlacePodVerticalScalingInitContainers"
LIMIT_DEFAULTING = "PodLevelResourcesFixDefaulting"
SCALE_DOWN_DELAY = "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay"
SCALE_DOWN_SECONDS_MAX = 10

Errors = list[FieldError]
Node = Mapping[str, Any]

_UPDATABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_LEVEL_STATUS = ("resources", "allocatedResources")
_KEPT_METADATA = ("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers", "ownerReferences")


class PodStrategy(Strategy):
    """``pods``: creation and the few plain updates that upstream lets through (RC-58, RC-59)."""

    version = "v1"
    kind = "Pod"
    plural = "pods"
    singular = "pod"
    short_names = ("po",)
    categories = ("all",)
    has_generation = True

    def default(self, document: Document) -> None:
        default_pod(document)

    def prepare_create(self, context: Context, new: Document) -> None:
        _drop_disabled(context.profile, new["spec"], {})
        if context.profile.on(LIMIT_DEFAULTING):
            default_pod_level_limits(new)
        status: Document = {"phase": "Pending", "qosClass": _qos_of(new["spec"])}
        if new["spec"].get("schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": None,
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]
        new["status"] = status
        merge_match_label_keys(new)
        context.warnings.extend(warnings_of(new))

    def validate_create(self, context: Context, new: Document) -> Errors:
        assigned = context.profile.knows_assigned_resources
        return validate_created_pod(new, assigned=assigned) + _scale_down_grace(context.profile, new["spec"])

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["status"] = old.get("status", {})
        _drop_disabled(context.profile, new["spec"], old["spec"])
        _keep_defaulted_limits(new["spec"], old["spec"])

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> Errors:
        errors = validate_annotation_updates(new, old) + validate_pod(new, old)
        if not errors and new["spec"] == old["spec"]:
            return []  # nothing is updated that a plain update may not
        return errors + _plain_update(new["spec"], old["spec"])

    def spec_changed(self, new: Document, old: Mapping[str, Any]) -> bool:
        return not same(new["spec"], old["spec"])


class PodStatusStrategy(PodStrategy):
    """``pods/status``: the status, labels and annotations; the spec stays (I-02)."""

    spares_stored = True

    def default(self, document: Document) -> None:
        document["status"] = paired_addresses(document.get("status") or {})

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["spec"] = old["spec"]
        _put_back(new["metadata"], old["metadata"], ("deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"))
        status, before = dict(new.get("status") or {}), old.get("status") or {}
        if not context.profile.on(POD_LEVEL_RESIZE) and not any(before.get(field) for field in _LEVEL_STATUS):
            for field in _LEVEL_STATUS:
                status.pop(field, None)  # PL-51
        # Kubelets of old dropped these two; a client cannot clear them.
        for field in ("qosClass", "observedGeneration"):
            if not status.get(field) and before.get(field):
                status[field] = before[field]
        status["conditions"] = _with_generations(status.get("conditions") or [], before.get("conditions") or [])
        if not status["conditions"]:
            del status["conditions"]
        new["status"] = status

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> Errors:
        return validate_status_update(context.profile, new, old)

    def spec_changed(self, new: Document, old: Mapping[str, Any]) -> bool:
        return False


class PodResizeStrategy(PodStrategy):
    """``pods/resize``: the resources of containers and pod; RC-25 to RC-45."""

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        wanted, stored = new["spec"], old["spec"]
        if any(len(wanted.get(field) or []) != len(stored.get(field) or []) for field in ("containers", "initContainers")):
            return  # RC-27: nothing is reset, validation says why
        spec = dict(stored)
        for field in ("containers", "initContainers"):
            if field in wanted or field in stored:
                spec[field] = _with_resources(wanted.get(field) or [], stored.get(field) or [])
        if context.profile.on(POD_LEVEL_RESIZE):
            _put_back(spec, wanted, ("resources",))
        new["spec"] = spec
        _drop_disabled(context.profile, spec, stored)
        if context.profile.on(LIMIT_DEFAULTING):
            default_pod_level_limits(new)
        new["status"] = old.get("status", {})
        _put_back(new["metadata"], old["metadata"], _KEPT_METADATA)

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> Errors:
        return _resize(context.profile, new, old)


def _drop_disabled(profile: Profile, spec: Document, stored: Node) -> None:
    """Without their gates nobody begins to use pod-level resources or a scheduling group; who has them keeps them."""
    if not profile.on(POD_LEVEL) and not _has_level(stored):
        spec.pop("resources", None)
    if not profile.on(GENERIC_WORKLOAD) and not stored.get("schedulingGroup"):
        spec.pop("schedulingGroup", None)
    if not _uses_alpha(stored):
        _drop_alpha(spec)


_ALPHA_SOURCES = ("clusterTrustBundle", "podCertificate")


def _uses_alpha(spec: Node) -> bool:
    """Has it a stop signal or a kind of projection that upstream keeps off? (ContainerStopSignals and others)"""
    lifecycles = (one.get("lifecycle") or {} for field in _CONTAINERS for one in spec.get(field) or [])
    sources = (one for volume in spec.get("volumes") or [] for one in (volume.get("projected") or {}).get("sources") or [])
    return any("stopSignal" in one for one in lifecycles) or any(kind in one for one in sources for kind in _ALPHA_SOURCES)


def _drop_alpha(spec: Document) -> None:
    if not _uses_alpha(spec):
        return
    for field in _CONTAINERS:
        for container in spec.get(field) or []:
            (container.get("lifecycle") or {}).pop("stopSignal", None)
    for volume in spec.get("volumes") or []:
        for source in (volume.get("projected") or {}).get("sources") or []:
            for kind in _ALPHA_SOURCES:
                source.pop(kind, None)


def _put_back(document: Document, stored: Node, fields: Sequence[str]) -> None:
    """Give ``fields`` of ``document`` their stored values, or their absence."""
    for field in fields:
        if field in stored:
            document[field] = stored[field]
        else:
            document.pop(field, None)


# ---------------------------------------------------------------- creation


def _scale_down_grace(profile: Profile, spec: Node) -> Errors:
    """SD-20, SD-21: who may not use the field is told so; it is not dropped."""
    grace, path = spec.get("scaleDownGracePeriodSeconds"), "spec.scaleDownGracePeriodSeconds"
    if grace is None:
        return []
    if not profile.on(SCALE_DOWN_DELAY):
        return [forbidden(path, f"may not be set when the {SCALE_DOWN_DELAY} feature gate is disabled")]
    if not 0 <= grace <= SCALE_DOWN_SECONDS_MAX:
        return [invalid(path, grace, f"must be between 0 and {SCALE_DOWN_SECONDS_MAX}, inclusive")]
    return []


# ---------------------------------------------------------------- plain update


def _keep_defaulted_limits(new: Document, old: Node) -> None:
    """A client that sends what it once created does not take away the limits that the server added since (PL-6)."""
    level, stored = new.get("resources") or {}, (old.get("resources") or {}).get("limits") or {}
    missing = {name: text for name, text in stored.items() if name not in (level.get("limits") or {})}
    if missing and level.get("requests"):
        new["resources"] = {**level, "limits": {**(level.get("limits") or {}), **missing}}


def _plain_update(new: Node, old: Node) -> Errors:
    errors: Errors = []
    for field in ("containers", "initContainers"):
        after, before = new.get(field) or [], old.get(field) or []
        if len(after) != len(before):
            return [*errors, forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
        for index, container in enumerate(after):
            image = container.get("image", "")
            if not image:
                errors.append(required(f"spec.{field}[{index}].image"))
            elif image != image.strip():
                errors.append(invalid(f"spec.{field}[{index}].image", image, "must not have leading or trailing whitespace"))
    deadline, stored = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if deadline is not None:
        if not 0 <= deadline <= INT32_MAX:
            return [*errors, invalid(path, deadline, f"must be between 0 and {INT32_MAX}, inclusive")]
        if stored is not None and stored < deadline:
            return [*errors, invalid(path, deadline, "must be less than or equal to previous value")]
    elif stored is not None:
        errors.append(invalid(path, None, "must not update from a positive integer to nil value"))
    errors += _only_added_tolerations(new.get("tolerations") or [], old.get("tolerations") or [])
    errors += _only_deleted_gates(new.get("schedulingGates") or [], old.get("schedulingGates") or [])
    munged = _munged(new, old)
    if old.get("schedulingGates"):
        errors += _gated_update(munged, old)
    if not same(munged, old):
        errors.append(forbidden("spec", _UPDATABLE + spec_diff(old, munged)))
    return errors


def _munged(new: Node, old: Node) -> Document:
    """``new`` with the stored values of what may be changed, so that all other differences show."""
    munged = dict(new)
    for field in ("containers", "initContainers"):
        if new.get(field):
            munged[field] = [
                {**after, "image": before.get("image", "")}
                for after, before in zip(new.get(field) or [], old.get(field) or [], strict=False)
            ]
    _put_back(munged, old, ("activeDeadlineSeconds", "schedulingGates", "tolerations"))
    if old.get("terminationGracePeriodSeconds", 0) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        _put_back(munged, old, ("terminationGracePeriodSeconds",))
    return munged


def _only_added_tolerations(new: Sequence[Node], old: Sequence[Node]) -> Errors:
    def untimed(toleration: Node) -> Document:
        return {field: value for field, value in toleration.items() if field != "tolerationSeconds"}

    left = [untimed(toleration) for toleration in new]
    if any(untimed(toleration) not in left for toleration in old):
        return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]
    return validate_tolerations(new, "spec.tolerations")


def _only_deleted_gates(new: Sequence[Node], old: Sequence[Node]) -> Errors:
    stored = {gate.get("name") for gate in old}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name", f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
        )
        for index, gate in enumerate(new)
        if gate.get("name") not in stored
    ]


def _gated_update(munged: Document, old: Node) -> Errors:
    """A gated pod may still become choosier about its node. Puts back in ``munged`` what is judged here."""
    errors: Errors = []
    after, before = munged.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if any(after.get(key) != value for key, value in before.items()):
        errors.append(
            invalid("spec.nodeSelector", after, "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
        )
    _put_back(munged, old, ("nodeSelector",))
    node, stored = (munged.get("affinity") or {}).get("nodeAffinity"), (old.get("affinity") or {}).get("nodeAffinity")
    if not same(node, stored):
        errors += _node_affinity_additions(node or {}, stored or {})
        affinity = {**(munged.get("affinity") or {}), "nodeAffinity": stored}
        munged["affinity"] = {name: value for name, value in affinity.items() if value} or old.get("affinity")
    return errors


def _node_affinity_additions(new: Node, old: Node) -> Errors:
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    before = (old.get(field) or {}).get("nodeSelectorTerms") or []
    if not before:
        return []
    after = (new.get(field) or {}).get("nodeSelectorTerms") or []
    if len(after) != len(before):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        shown = [internal("NodeSelectorTerm", term) for term in after] or None
        return [invalid_struct(f"{path}.nodeSelectorTerms", shown, why)]
    errors: Errors = []
    for index, (wider, narrower) in enumerate(zip(before, after, strict=True)):
        if not _is_added_to(narrower, wider):
            why = "only additions are allowed (no mutations or deletions)"
            errors.append(invalid_struct(f"{path}.nodeSelectorTerms[{index}]", internal("NodeSelectorTerm", narrower), why))
    return errors


def _is_added_to(after: Node, before: Node) -> bool:
    """Has the term all that it had, in its place? One that had nothing, which matches nothing, stays so."""
    parts = ("matchExpressions", "matchFields")
    if not any(before.get(part) for part in parts):
        return not any(after.get(part) for part in parts)
    return all(same((after.get(part) or [])[: len(before.get(part) or [])], before.get(part) or []) for part in parts)


# ---------------------------------------------------------------- status


def _with_generations(conditions: Sequence[Document], before: Sequence[Node]) -> list[Document]:
    """Conditions that lack ``observedGeneration`` keep the stored one of their type."""
    if all(condition.get("observedGeneration") for condition in conditions):
        return list(conditions)
    known: dict[str, list[int]] = {}
    for condition in before:
        known.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    found = []
    for condition in conditions:
        held = known.get(condition.get("type", ""), [])
        generation = held.pop(0) if held else 0
        keeps = not condition.get("observedGeneration") and generation
        found.append({**condition, "observedGeneration": generation} if keeps else condition)
    return found


# ---------------------------------------------------------------- resize


def _with_resources(wanted: Sequence[Node], stored: Sequence[Node]) -> list[Any]:
    """The stored containers with the resources and policies asked for; as asked, if a name differs."""
    merged = []
    for after, before in zip(wanted, stored, strict=True):
        if after.get("name") != before.get("name"):
            return list(wanted)
        container = dict(before)
        _put_back(container, after, ("resources", "resizePolicy"))
        merged.append(container)
    return merged


def _resize(profile: Profile, new: Node, old: Node) -> Errors:
    errors = validate_pod(new, old)
    spec, stored = new["spec"], old["spec"]
    status = old.get("status") or {}
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("[]", "static pods cannot be resized")]
    if (stored.get("os") or {}).get("name") == "windows":
        return [forbidden("[]", "windows pods cannot be resized")]
    if (status.get("qosClass") or _qos_of(stored)) != _qos_of(spec):
        shown = (new.get("status") or {}).get("qosClass", "")
        errors.append(invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    if not _node_resizes(status):
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    munged = dict(spec)
    if _has_level(stored) or _has_level(spec):
        if not profile.on(POD_LEVEL_RESIZE):
            why = (
                "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled "
                "feature gate is disabled"
            )
            return [*errors, forbidden("[]", why)]
        errors += _resize_level(spec, stored, munged)
    if status.get("nodeAllocatableResourceClaimStatuses"):
        errors.append(forbidden("spec", "pods with node allocatable resource claims cannot be resized"))
    reordered = _reordered(spec, stored)
    if reordered:
        return errors + reordered
    errors += _removed(profile, spec, stored)
    errors += _resize_containers(profile, spec, stored, munged)
    errors += _resize_init_containers(profile, spec, stored, munged)
    if not errors and not same(munged, stored):
        errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    return errors


def _qos_of(spec: Node) -> str:
    """``qos_class`` of a pod with that spec, of which only the resources count."""
    bare: Document = {
        field: [{"name": one.get("name", ""), "resources": one.get("resources") or {}} for one in spec.get(field) or []]
        for field in ("containers", "initContainers")
    }
    raw = msgspec.json.encode({"spec": {**bare, "resources": spec.get("resources")}})
    return _known_qos(raw) if len(raw) <= _KNOWN_BYTES_MAX else _known_qos.__wrapped__(raw)


_KNOWN_BYTES_MAX = 2048
"""Of larger pods it is found out each time."""


@lru_cache(maxsize=1024)
def _known_qos(raw: bytes) -> str:
    return qos_class(read_pod(raw))


def _node_resizes(status: Node) -> bool:
    """RC-35: the first running container tells whether the kubelet reports resources at all."""
    running = (s for s in status.get("containerStatuses") or [] if (s.get("state") or {}).get("running") is not None)
    first = next(running, None)
    return first is None or first.get("resources") is not None


def _has_level(spec: Node) -> bool:
    level = spec.get("resources") or {}
    return bool(level.get("requests") or level.get("limits"))


def _resize_level(spec: Node, stored: Node, munged: Document) -> Errors:
    """RC-36. Gives ``munged`` the stored cpu and memory, so that only what may not change shows."""
    after, before = spec.get("resources"), stored.get("resources")
    if before is not None and after is None:
        return [forbidden("spec.resources", "pod-level resources cannot be removed")]
    errors: Errors = []
    if before is not None:
        for field, word in (("requests", "requests"), ("limits", "limits")):
            if _is_removed((after or {}).get(field), before.get(field)):
                errors.append(forbidden(f"spec.resources.{field}", f"pod-level resource {word} cannot be removed"))
    munged["resources"] = {
        **(after or {}),
        **{field: _other_resources((after or {}).get(field), (before or {}).get(field)) for field in ("requests", "limits")},
    }
    if not same(munged["resources"], before or {}):
        errors.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))
    elif before is None:
        del munged["resources"]
    return errors


def _other_resources(after: Node | None, before: Node | None) -> Document:
    """``after`` with cpu and memory as stored."""
    kept = {name: text for name, text in (after or {}).items() if name not in ("cpu", "memory")}
    return {**kept, **{name: before[name] for name in ("cpu", "memory") if before and name in before}}


def _reordered(spec: Node, stored: Node) -> Errors:
    """RC-37."""
    errors: Errors = []
    for field in ("containers", "initContainers"):
        after, before = spec.get(field) or [], stored.get(field) or []
        if len(after) != len(before):
            errors.append(forbidden(f"spec.{field}", f"{field} may not be added or removed on resize"))
            continue
        for index, (one, other) in enumerate(zip(after, before, strict=True)):
            if one.get("name") != other.get("name"):
                errors.append(forbidden(f"spec.{field}[{index}].name", f"{field} may not be renamed or reordered on resize"))
    return errors


def _is_removed(after: Node | None, before: Node | None) -> bool:
    return any(name not in (after or {}) for name in before or {})


def _removed(profile: Profile, spec: Node, stored: Node) -> Errors:
    """RC-38."""
    errors: Errors = []
    for field in ("initContainers", "containers"):
        for index, (after, before) in enumerate(zip(spec.get(field) or [], stored.get(field) or [], strict=True)):
            if field == "initContainers" and before.get("restartPolicy") != "Always" and not profile.on(INIT_RESIZE):
                continue
            for which in ("requests", "limits"):
                if _is_removed((after.get("resources") or {}).get(which), (before.get("resources") or {}).get(which)):
                    errors.append(forbidden(f"spec.{field}[{index}].resources.{which}", f"resource {which} cannot be removed"))
    return errors


def _without_cpu_and_memory(profile: Profile, after: Node, before: Node) -> Document:
    """``after`` with the stored cpu and memory, without claims (RC-42); with the stored policy, where that may change (row 5)."""
    own, stored = after.get("resources") or {}, before.get("resources") or {}
    munged = dict(after)
    munged["resources"] = {field: _other_resources(own.get(field), stored.get(field)) for field in ("requests", "limits")}
    if profile.resize_policy_mutable:
        _put_back(munged, before, ("resizePolicy",))
    return munged


def _resize_containers(profile: Profile, spec: Node, stored: Node, munged: Document) -> Errors:
    """RC-39, RC-41."""
    errors: Errors = []
    found = []
    for after, before in zip(spec.get("containers") or [], stored.get("containers") or [], strict=True):
        found.append(_without_cpu_and_memory(profile, after, before))
        if not same(found[-1], before):
            errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    munged["containers"] = found
    return errors


def _resize_init_containers(profile: Profile, spec: Node, stored: Node, munged: Document) -> Errors:
    """RC-40."""
    errors: Errors = []
    found: list[Node] = []
    for index, (after, before) in enumerate(zip(spec.get("initContainers") or [], stored.get("initContainers") or [], strict=True)):
        path = f"spec.initContainers[{index}]"
        sidecar, changed = after.get("restartPolicy") == "Always", not same(after, before)
        if not sidecar and not profile.on(INIT_RESIZE):
            if changed:
                errors.append(forbidden("spec", "resources for non-sidecar init containers are immutable"))
            found.append(after)
            continue
        found.append(_without_cpu_and_memory(profile, after, before))
        if not same(found[-1], before):
            errors.append(forbidden(path, "only cpu and memory resources for init or sidecar containers are mutable"))
        restarts = any(policy.get("restartPolicy") == "RestartContainer" for policy in after.get("resizePolicy") or [])
        if changed and not sidecar and restarts:
            why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            errors.append(forbidden(path, why))
    munged["initContainers"] = found
    return errors
