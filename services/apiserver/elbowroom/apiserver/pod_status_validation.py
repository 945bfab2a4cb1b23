"""What upstream refuses in a pod's status, in its words."""

from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.api import names
from elbowroom.api.fielderrors import FieldError, duplicate, each, forbidden, invalid, not_supported, required
from elbowroom.api.gates import Profile
from elbowroom.apiserver.pod_annotations import validate_annotation_updates
from elbowroom.apiserver.pod_security import validate_id

Errors = list[FieldError]
Node = Mapping[str, Any]

_GENERATION = "must be a non-negative integer"
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_STATUSES = (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers"))
_ALL_STATUSES = (*_STATUSES, ("ephemeralContainerStatuses", ""))


def validate_status_update(profile: Profile, new: Node, old: Node) -> Errors:
    """All errors of an update of ``pods/status``."""
    errors = validate_annotation_updates(new, old)
    status, before, spec = new["status"], old.get("status") or {}, old["spec"]
    for index, condition in enumerate(status.get("conditions") or ()):
        generation, kind = condition.get("observedGeneration", 0), condition.get("type", "")
        if generation < 0:
            errors.append(invalid(f"status.conditions[{index}].observedGeneration", generation, _GENERATION))
        if kind not in ("PodScheduled", "Ready", "Initialized"):
            errors += [invalid(f"status.conditions[{index}].Type", kind, why) for why in names.qualified_name(kind)]
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        errors += [invalid("status.nominatedNodeName", nominated, why) for why in names.dns1123_subdomain(nominated)]
        # The policy that keeps a resize's preemption there needs what upstream forbids.
        if spec.get("nodeName") and profile.nomination_tracking != "nominatedNodeName":
            errors.append(forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node"))
    if status.get("observedGeneration", 0) < 0:
        errors.append(invalid("status.observedGeneration", status["observedGeneration"], _GENERATION))
    if status.get("qosClass", "") != before.get("qosClass", ""):
        errors.append(invalid("status.qosClass", status.get("qosClass", ""), "field is immutable"))
    errors += _transitions(status, before, spec)
    errors += _claims(status.get("resourceClaimStatuses"), spec, "status.resourceClaimStatuses")
    errors += _addresses(status, before)
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for index, one in enumerate(status.get(field) or ()):
            if one.get("user"):
                errors += _user(one["user"], spec, f"status.{field}[{index}].user.linux")
    for field, which in _STATUSES:
        for index, one in enumerate(status.get(field) or ()):
            if one.get("allocatedResourcesStatus"):
                errors += _allocated(one, spec.get(which) or [], f"status.{field}[{index}].allocatedResourcesStatus")
    return errors + [
        forbidden(f"{at}.allocatedResourcesStatus", "must not be specified in container status")
        for at, one in each("status.ephemeralContainerStatuses", status.get("ephemeralContainerStatuses"))
        if one.get("allocatedResourcesStatus")
    ]


# ---------------------------------------------------------------- what ended stays ended


def _has_ended(status: Node) -> bool:
    return (status.get("state") or {}).get("terminated") is not None


def _transitions(status: Node, before: Node, spec: Node) -> Errors:
    if not any(_has_ended(one) for field, _ in _ALL_STATUSES for one in before.get(field) or ()):
        return []
    errors: Errors = []
    all_again = any(
        rule.get("action") == "RestartAllContainers"
        for _, field in _STATUSES
        for container in spec.get(field) or []
        for rule in container.get("restartPolicyRules") or []
    )
    for field, which in _ALL_STATUSES:
        if all_again and which:
            continue  # any of them may begin anew
        containers = {container.get("name"): container for container in spec.get(which) or []} if which else {}
        after = {one.get("name"): one for one in reversed(status.get(field) or [])}
        for at, one in each(f"status.{field}", before.get(field)):
            ended, name = (one.get("state") or {}).get("terminated"), one.get("name")
            if ended is None or name not in after or _has_ended(after[name]):
                continue
            container = containers.get(name)
            if container is None or not _begins_again(container, spec, ended.get("exitCode", 0)):
                errors.append(forbidden(f"{at}.state", "may not be transitioned to non-terminated state"))
    return errors


def _begins_again(container: Node, spec: Node, exit_code: int) -> bool:
    own = container.get("restartPolicy")
    if own is not None:
        for rule in container.get("restartPolicyRules") or []:
            codes = rule.get("exitCodes") or {}
            if (exit_code in (codes.get("values") or [])) == (codes.get("operator") == "In"):
                return True
    policy = own or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


# ---------------------------------------------------------------- parts


def _claims(claims: Sequence[Node] | None, spec: Node, path: str) -> Errors:
    errors: Errors = []
    known = [claim.get("name", "") for claim in spec.get("resourceClaims") or []]
    seen: set[str] = set()
    for at, claim in each(path, claims):
        name, made = claim.get("name", ""), claim.get("resourceClaimName")
        if name not in known:
            errors.append(invalid(f"{at}.name", name, "must match the name of an entry in `spec.resourceClaims`"))
        if name in seen:
            errors.append(duplicate(f"{at}.name", name))
        seen.add(name)
        if made is not None:
            errors += [invalid(f"{at}.resourceClaimName", made, why) for why in names.dns1123_subdomain(made)]
    return errors


def _addresses(status: Node, before: Node) -> Errors:
    errors: Errors = []
    for field in ("podIPs", "hostIPs"):
        said = [entry.get("ip", "") for entry in status.get(field) or ()]
        if not said:
            continue
        stored = [entry.get("ip") for entry in before.get(field) or ()]
        if field == "hostIPs" and status.get("hostIP", "") != said[0]:
            errors.append(invalid("status.hostIPs[0].ip", said[0], "must be equal to `hostIP`"))
        for index, address in enumerate(said):
            if address not in stored:
                errors += [invalid(f"status.{field}[{index}]", address, why) for why in names.ip_address(address)]
        if len(said) > 1 and all(map(names.is_ip, said)) and (len(said) > 2 or len({":" in one for one in said}) == 1):
            shown = [{"IP": one} for one in said]
            errors.append(invalid(f"status.{field}", shown, "may specify no more than one IP for each IP family"))
    return errors


def _user(user: Node, spec: Node, path: str) -> Errors:
    linux = user.get("linux")
    if linux is None:
        return []
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "cannot be set for a windows pod")]
    ids = [(f"{path}.uid", linux.get("uid", 0)), (f"{path}.gid", linux.get("gid", 0))]
    ids += each(f"{path}.supplementalGroups", linux.get("supplementalGroups"))
    return [error for at, number in ids for error in validate_id(number, at)]


def _allocated(status: Node, containers: Sequence[Node], path: str) -> Errors:
    """The health of what a container was given: only of what it asks for."""
    errors: Errors = []
    container = next((one for one in containers if one.get("name") == status.get("name")), None)
    own: Node = (container or {}).get("resources") or {}
    claims = [
        f"claim:{one.get('name', '')}" + (f"/{one['request']}" if one.get("request") else "") for one in own.get("claims") or []
    ]
    for at, resource in each(path, status.get("allocatedResourcesStatus")):
        name = resource.get("name", "")
        if container is not None and name.startswith("claim:") and name not in claims:
            form = "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
            errors.append(invalid(f"{at}.name", name, f"must match one of the container's resource claims in a format {form}"))
        elif container is not None and not name.startswith("claim:") and name not in (own.get("requests") or {}):
            errors.append(invalid(f"{at}.name", name, "must match one of the container's resource requests"))
        seen: set[str] = set()
        for where, part in each(f"{at}.resources", resource.get("resources")):
            health, identity = part.get("health", ""), part.get("resourceID", "")
            if health not in _HEALTH:
                errors.append(not_supported(f"{where}.health", health, _HEALTH))
            if part.get("message") == "":
                errors.append(required(f"{where}.message", "must be non-empty if specified"))
            if identity in seen:
                errors.append(duplicate(f"{where}.resourceID", identity))
            seen.add(identity)
    return errors
