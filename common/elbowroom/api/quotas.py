"""What a ResourceQuota counts: shared by its admission plugin, which charges, and its controller, which counts anew.

A pod is charged for its effective requests and limits (RC-160, RC-165, RC-166): the largest of desired, allocated and actual sums,
without the desired one while its resize is Infeasible. Whatever a pod is, it is one object (``count/pods``); once it is terminal,
or its grace period is over, that is all it is. Amounts are exact quantities, since replies quote them.
"""

from collections.abc import Iterable, Mapping

from elbowroom.api.clock import parse_time
from elbowroom.api.objects import ObjectMeta, Pod, PodAffinityTerm, ResourceList, Struct
from elbowroom.api.quantity import Quantity
from elbowroom.api.resources import Amounts, effective_limit_amounts, effective_request_amounts, has_pod_level_resources, qos_class

ONE = Quantity(10**9)
OBJECT: Amounts = {"count/pods": ONE}
"""What a pod counts for when all else is over."""
_ZERO = Quantity(0)

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES = frozenset(
    ["pods", "count/pods", *_COMPUTE, *(f"requests.{name}" for name in _COMPUTE), *(f"limits.{name}" for name in _COMPUTE)]
)
_EACH_CONTAINER_MUST_SAY = frozenset(["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"])
_PLAIN_COUNTS = ("services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims")


class ScopeRequirement(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    scope_name: str = ""
    operator: str = ""
    values: list[str] = []


class ScopeSelector(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    match_expressions: list[ScopeRequirement] = []


class ResourceQuotaSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    hard: ResourceList = {}
    scopes: list[str] = []
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


# ---------------------------------------------------------------- pods


def is_charged(pod: Pod, now: int) -> bool:
    """Does it count for more than its object? Not once it is terminal or its deletion is overdue."""
    if pod.is_terminal:
        return False
    deleted, grace = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    return deleted is None or grace is None or now <= parse_time(deleted) + grace * 1_000_000_000


def usage(pod: Pod, now: int) -> Amounts:
    """What the pod is charged, by the names that quotas use."""
    return charge(pod) if is_charged(pod, now) else OBJECT


def charge(pod: Pod) -> Amounts:
    """What the pod is charged as long as it counts."""
    # Upstream's quota evaluator does not look at the status of the pod as a whole, unlike its scheduler.
    requests = effective_request_amounts(pod, pod_level_status=False)
    limits = effective_limit_amounts(pod, pod_level_status=False)
    return {**OBJECT, **_charged(requests, limits)}


def _charged(requests: Amounts, limits: Amounts) -> Amounts:
    charged = {"pods": ONE}
    for name in _COMPUTE:
        if name in requests:
            charged[name] = charged[f"requests.{name}"] = requests[name]
        if name in limits:
            charged[f"limits.{name}"] = limits[name]
    for name, value in requests.items():
        if name.startswith("hugepages-"):
            charged[name] = charged[f"requests.{name}"] = value
        elif "/" in name and "kubernetes.io/" not in name:
            charged[f"requests.{name}"] = value
    return charged


def pod_names(hard: Iterable[str]) -> list[str]:
    """Those of the quota's names that pods are charged for."""
    return [name for name in hard if name in _POD_NAMES or _is_prefixed(name)]


def _is_prefixed(name: str) -> bool:
    plain = name.removeprefix("requests.")
    return plain.startswith("hugepages-") or (plain != name and "/" in plain and "kubernetes.io/" not in plain)


def unsaid(pod: Pod, names: Iterable[str]) -> str:
    """What containers must specify under such a quota and do not: ``must specify cpu for: a,b; memory for: a``; else empty.

    A quota on cpu or memory wants each container to say what it takes, unless the pod says it as a whole.
    """
    required = sorted(_EACH_CONTAINER_MUST_SAY.intersection(names))
    if not required or has_pod_level_resources(pod):
        return ""
    silent: dict[str, list[str]] = {}
    for container in [*pod.spec.containers, *pod.spec.init_containers]:
        said = _charged(dict.fromkeys(container.resources.requests, _ZERO), dict.fromkeys(container.resources.limits, _ZERO))
        for name in required:
            if name not in said:
                silent.setdefault(name, []).append(container.name)
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(silent[name]))}" for name in sorted(silent)) if silent else ""


# ---------------------------------------------------------------- scopes


def selects(quota: ResourceQuota, pod: Pod) -> bool:
    """Do all scopes of the quota fit the pod?"""
    expressions = quota.spec.scope_selector.match_expressions if quota.spec.scope_selector is not None else []
    wanted = [ScopeRequirement(scope_name=scope, operator="Exists") for scope in quota.spec.scopes]
    return all(_in_scope(requirement, pod) for requirement in [*wanted, *expressions])


def _in_scope(requirement: ScopeRequirement, pod: Pod) -> bool:
    match requirement.scope_name:
        case "Terminating":
            return is_terminating_scope(pod)
        case "NotTerminating":
            return not is_terminating_scope(pod)
        case "BestEffort":
            return _quality(pod) == "BestEffort"
        case "NotBestEffort":
            return _quality(pod) != "BestEffort"
        case "PriorityClass":
            return _has_class(requirement, pod.spec.priority_class_name)
        case "CrossNamespacePodAffinity":
            return _looks_elsewhere(pod)
        case _:
            return False


def is_terminating_scope(pod: Pod) -> bool:
    """Scope Terminating: it has a deadline. (Deletion has nothing to do with it.)"""
    return pod.spec.active_deadline_seconds is not None and pod.spec.active_deadline_seconds >= 0


def _quality(pod: Pod) -> str:
    return pod.status.qos_class or qos_class(pod)


def _has_class(requirement: ScopeRequirement, name: str) -> bool:
    match requirement.operator:
        case "In":
            return bool(name) and name in requirement.values
        case "NotIn":
            return not name or name not in requirement.values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _looks_elsewhere(pod: Pod) -> bool:
    if pod.spec.affinity is None:
        return False
    terms: list[PodAffinityTerm] = []
    for affinity in (pod.spec.affinity.pod_affinity, pod.spec.affinity.pod_anti_affinity):
        if affinity is not None:
            terms += affinity.required
            terms += [weighted.pod_affinity_term for weighted in affinity.preferred]
    return any(term.namespaces or term.namespace_selector is not None for term in terms)


# ---------------------------------------------------------------- other objects


def count_names(resource: str) -> tuple[str, ...]:
    """The names under which an object of ``resource`` (``configmaps``, ``deployments.apps``) counts as one."""
    plain = (resource,) if resource in _PLAIN_COUNTS else ()
    return (f"count/{resource}", *plain)


def counted_resource(name: str) -> str | None:
    """The resource whose objects a quota's name counts; None for what pods are charged otherwise."""
    if name.startswith("count/"):
        return name.removeprefix("count/")
    return name if name in _PLAIN_COUNTS else None


# ---------------------------------------------------------------- sums


def total(amounts: Iterable[Mapping[str, Quantity]]) -> Amounts:
    """The sum, name by name."""
    found: Amounts = {}
    for one in amounts:
        for name, value in one.items():
            found[name] = found[name] + value if name in found else value
    return found


def used(quota: ResourceQuota, pods: Iterable[Pod], counts: Mapping[str, int], now: int) -> ResourceList:
    """What ``status.used`` should say: the pods of its namespace, and for other resources how many objects there are.

    ``counts`` maps resources (``configmaps``, ``deployments.apps``) to numbers; those that ``hard`` does not name may be left out.
    """
    sums = total(usage(pod, now) for pod in pods if selects(quota, pod)) if pod_names(quota.spec.hard) else {}
    for name in quota.spec.hard:
        resource = counted_resource(name)
        if resource is not None and resource != "pods" and not quota.spec.scopes and quota.spec.scope_selector is None:
            sums[name] = Quantity(counts.get(resource, 0) * 10**9)
    return {name: sums.get(name, _ZERO).canonical() for name in quota.spec.hard}
