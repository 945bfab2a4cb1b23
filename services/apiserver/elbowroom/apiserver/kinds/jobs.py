"""Jobs in the registry: defaults and what is valid, with their policies on failures and on success."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.api.fielderrors import (
    FieldError,
    duplicate,
    invalid,
    invalid_as_a_whole,
    not_supported,
    required,
    too_long,
    too_many,
)
from elbowroom.api.names import dns1123_label, qualified_name
from elbowroom.apiserver.kinds.checks import nonnegative, same, selector_of
from elbowroom.apiserver.pod_defaults import default_pod_spec
from elbowroom.apiserver.pod_validation import INT32_MAX, validate_pod_spec
from elbowroom.apiserver.strategy import Context, Document, Strategy

Node = Mapping[str, Any]
Errors = list[FieldError]

JOB_NAME, CONTROLLER_UID = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"
MANY_INDEXES = 100_000
"""Beyond so many completions, fewer may run and fail; nobody may have more of either."""
OF_MANY_INDEXES = 10_000
MANAGER_MAX = 63
RULES_MAX = 20
EXIT_CODES_MAX = 255
INDEXES_TEXT_MAX = 64 * 1024
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_FIXED = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")


def default_job_spec(spec: Document) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else INT32_MAX)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed")


def default_template(spec: Document) -> None:
    """That of a Job, also within a CronJob; with its failure policy's conditions, which are sought with status True."""
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"


# ---------------------------------------------------------------- what is valid


def job_spec_errors(context: Context, spec: Node, at: str) -> Errors:
    """What is wrong with the spec of a Job, also within a CronJob."""
    found = [error for name in _COUNTS for error in nonnegative(spec.get(name), f"{at}.{name}")]
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(required(f"{at}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    found += _manager_errors(spec.get("managedBy"), f"{at}.managedBy")
    found += _index_errors(spec, at)
    if spec.get("podFailurePolicy") is not None:
        found += _failure_policy_errors(spec, f"{at}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        found += _success_policy_errors(spec, f"{at}.successPolicy")
    replacement = spec.get("podReplacementPolicy")
    allowed = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    if replacement is not None and replacement not in allowed:
        found.append(not_supported(f"{at}.podReplacementPolicy", replacement, allowed))
    pod = spec["template"].get("spec", {})
    found += validate_pod_spec(pod, f"{at}.template.spec", assigned=context.profile.knows_assigned_resources)
    where, policy = f"{at}.template.spec.restartPolicy", pod.get("restartPolicy")
    if policy == "Always":
        found.append(required(where, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        found.append(not_supported(where, policy, ("OnFailure", "Never")))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        found.append(invalid(where, policy, 'only "Never" is supported when podFailurePolicy is specified'))
    return found


def _manager_errors(manager: str | None, at: str) -> Errors:
    if manager is not None and not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/\S+", manager):
        return [invalid(at, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return [too_long(at, MANAGER_MAX)] if manager is not None and len(manager) > MANAGER_MAX else []


def _index_errors(spec: Node, at: str) -> Errors:
    """What has to do with completions that have indexes."""
    mode, per_index = spec.get("completionMode", "NonIndexed"), spec.get("backoffLimitPerIndex")
    completions, parallelism, failed = spec.get("completions"), spec.get("parallelism", 0), spec.get("maxFailedIndexes")
    if mode not in ("NonIndexed", "Indexed"):
        return [not_supported(f"{at}.completionMode", mode, ("NonIndexed", "Indexed"))]
    found: Errors = []
    if mode == "NonIndexed":
        for name, value in (("backoffLimitPerIndex", per_index), ("maxFailedIndexes", failed)):
            if value is not None:
                found.append(invalid(f"{at}.{name}", value, "requires indexed completion mode"))
        return found
    at_most = "must be less than or equal to"
    if completions is None:
        found.append(required(f"{at}.completions", "when completion mode is Indexed"))
    if parallelism > MANY_INDEXES:
        found.append(invalid(f"{at}.parallelism", parallelism, f"{at_most} {MANY_INDEXES} when completion mode is Indexed"))
    if completions is not None and failed is not None and failed > completions:
        found.append(invalid(f"{at}.maxFailedIndexes", failed, f"{at_most} completions"))
    if failed is not None and failed > MANY_INDEXES:
        found.append(invalid(f"{at}.maxFailedIndexes", failed, f"{at_most} {MANY_INDEXES}"))
    if completions is not None and completions > MANY_INDEXES and per_index is not None:
        text = f"{at_most} {OF_MANY_INDEXES} when completions are above {MANY_INDEXES} and used with backoff limit per index"
        if failed is None:
            found.append(required(f"{at}.maxFailedIndexes", f"must be specified when completions is above {MANY_INDEXES}"))
        if parallelism > OF_MANY_INDEXES:
            found.append(invalid(f"{at}.parallelism", parallelism, text))
        if failed is not None and failed > OF_MANY_INDEXES:
            found.append(invalid(f"{at}.maxFailedIndexes", failed, text))
    return found


def _quoted(values: Sequence[str]) -> str:
    return "valid values: [" + " ".join(f'"{value}"' for value in values) + "]"


def _failure_policy_errors(spec: Node, at: str) -> Errors:
    rules = spec["podFailurePolicy"].get("rules") or ()
    found = [too_many(f"{at}.rules", len(rules), RULES_MAX)] if len(rules) > RULES_MAX else []
    pod = spec["template"].get("spec", {})
    containers = {one.get("name") for kind in ("containers", "initContainers") for one in pod.get(kind) or ()}
    for number, rule in enumerate(rules):
        where = f"{at}.rules[{number}]"
        action, codes, conditions = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if not action:
            found.append(required(f"{where}.action", _quoted(_ACTIONS)))
        elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            found.append(invalid(f"{where}.action", action, "requires the backoffLimitPerIndex to be set"))
        elif action not in _ACTIONS:
            found.append(not_supported(f"{where}.action", action, _ACTIONS))
        if codes is not None:
            found += _exit_codes_errors(codes, f"{where}.onExitCodes", containers)
        found += _conditions_errors(conditions, f"{where}.onPodConditions")
        if codes is not None and conditions:
            found.append(invalid_as_a_whole(where, "specifying both OnExitCodes and OnPodConditions is not supported"))
        elif codes is None and not conditions:
            found.append(invalid_as_a_whole(where, "specifying one of OnExitCodes and OnPodConditions is required"))
    return found


def _exit_codes_errors(codes: Node, at: str, containers: set[Any]) -> Errors:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    found: Errors = []
    if not operator:
        found.append(required(f"{at}.operator", _quoted(("In", "NotIn"))))
    elif operator not in ("In", "NotIn"):
        found.append(not_supported(f"{at}.operator", operator, ("In", "NotIn")))
    container = codes.get("containerName")
    if container is not None and container not in containers:
        text = "must be one of the container or initContainer names in the pod template"
        found.append(invalid(f"{at}.containerName", container, text))
    if not values:
        found.append(invalid(f"{at}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > EXIT_CODES_MAX:
        found.append(too_many(f"{at}.values", len(values), EXIT_CODES_MAX))
    for number, value in enumerate(values):
        if operator == "In" and value == 0:
            found.append(invalid(f"{at}.values[{number}]", value, "must not be 0 for the In operator"))
        if value in values[:number]:
            found.append(duplicate(f"{at}.values[{number}]", value))
    if values != sorted(values):
        found.append(invalid(f"{at}.values", values, "must be ordered"))
    return found


def _conditions_errors(conditions: Sequence[Node], at: str) -> Errors:
    found = [too_many(at, len(conditions), RULES_MAX)] if len(conditions) > RULES_MAX else []
    for number, pattern in enumerate(conditions):
        where, kind, status = f"{at}[{number}]", pattern.get("type", ""), pattern.get("status", "")
        found += [invalid(f"{where}.type", kind, finding) for finding in qualified_name(kind)]
        if not status:
            found.append(required(f"{where}.status", _quoted(_STATUSES)))
        elif status not in _STATUSES:
            found.append(not_supported(f"{where}.status", status, _STATUSES))
    return found


def _success_policy_errors(spec: Node, at: str) -> Errors:
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        return [invalid(at, policy, "requires indexed completion mode")]
    rules = policy.get("rules") or ()
    found: Errors = []
    if not rules:
        found.append(required(f"{at}.rules", "at least one rules must be specified when the successPolicy is specified"))
    if len(rules) > RULES_MAX:
        found.append(too_many(f"{at}.rules", len(rules), RULES_MAX))
    completions = spec.get("completions") or 0
    for number, rule in enumerate(rules):
        where, text, count = f"{at}.rules[{number}]", rule.get("succeededIndexes"), rule.get("succeededCount")
        named = 0
        if text is None and count is None:
            found.append(required(where, "at least one of succeededCount or succeededIndexes must be specified"))
        if text is not None:
            if len(text) > INDEXES_TEXT_MAX:
                found.append(too_long(f"{where}.succeededIndexes", INDEXES_TEXT_MAX))
            try:
                named = count_of_indexes(text, completions)
            except ValueError as why:
                found.append(invalid(f"{where}.succeededIndexes", text, f"error parsing succeededIndexes: {why}"))
        if count is not None:
            place, at_most = f"{where}.succeededCount", "must be less than or equal to"
            found += nonnegative(count, place)
            if count > completions:
                found.append(invalid(place, count, f"{at_most} {completions} (the number of specified completions)"))
            if text is not None and count > named:
                text = f"{at_most} {named} (the number of indexes in the specified succeededIndexes field)"
                found.append(invalid(place, count, text))
    return found


def count_of_indexes(text: str, completions: int) -> int:
    """How many indexes such as ``0,2-5`` names, all below ``completions`` and in rising order. Raises ValueError with why not."""
    count, last = 0, -1
    for part in text.split(",") if text else ():
        ends = part.split("-")
        if len(ends) > 2:
            rule = "the requirement that an index interval can have at most two parts separated by '-'"
            raise ValueError(f'the fragment "{part}" violates {rule}')
        numbers = []
        for end in ends:
            if not re.fullmatch("[+]?[0-9]+", end):
                raise ValueError(f'cannot convert string to integer for index: "{end}"')
            if int(end) >= completions:
                raise ValueError(f'too large index: "{end}"')
            numbers.append(int(end))
        if len(numbers) == 2 and numbers[0] >= numbers[1]:
            raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
        if last >= numbers[0]:
            raise ValueError(f"non-increasing order, previous: {last}, current: {numbers[0]}")
        count += numbers[-1] - numbers[0] + 1
        last = numbers[-1]
    return count


# ---------------------------------------------------------------- the kind


class JobStrategy(Strategy):
    group, kind, plural, singular, categories, has_generation = "batch", "Job", "jobs", "job", ("all",), True

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        default_job_spec(spec)
        default_template(spec)
        labels = spec["template"]["metadata"].get("labels")
        if labels and not document["metadata"].get("labels"):
            document["metadata"]["labels"] = dict(labels)

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {}
        spec, meta = new["spec"], new["metadata"]
        if not spec["manualSelector"]:
            labels = spec["template"]["metadata"].setdefault("labels", {})
            for key, value in _generated_labels(meta).items():
                labels.setdefault(key, value)
            spec.setdefault("selector", {}).setdefault("matchLabels", {}).setdefault(CONTROLLER_UID, meta["uid"])

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        new["status"] = old["status"]

    def validate_create(self, context: Context, new: Document) -> Errors:
        spec = new["spec"]
        found = _generated_errors(new) + job_spec_errors(context, spec, "spec")
        labels = spec["template"]["metadata"].get("labels") or {}
        if spec.get("selector") is None:
            found.append(required("spec.selector"))
        elif not selector_of(spec["selector"]).matches(labels):
            text = "`selector` does not match template `labels`"
            found.append(invalid("spec.template.metadata.labels", labels, text))
        if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
            name = new["metadata"].get("name", "")
            longest = f"{name}-{spec['completions'] - 1}"
            if dns1123_label(longest):
                found.append(invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {longest}"))
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        after, before = new["spec"], old["spec"]
        found = self.validate_create(context, new) + _completions_errors(after, before)
        found += same(after.get("selector"), before.get("selector"), "spec.selector") + _template_errors(
            after, before, old["status"]
        )
        return found + [error for name in _FIXED for error in same(after.get(name), before.get(name), f"spec.{name}")]


def _generated_labels(meta: Node) -> dict[str, str]:
    name, uid = meta.get("name", ""), meta["uid"]
    return {"controller-uid": uid, "job-name": name, CONTROLLER_UID: uid, JOB_NAME: name}


def _generated_errors(job: Node) -> Errors:
    """Where nobody asked to choose them, labels and selector are as they are generated."""
    spec = job["spec"]
    if spec["manualSelector"] or spec.get("selector") is None:
        return []
    labels = spec["template"]["metadata"].get("labels") or {}
    wanted = _generated_labels(job["metadata"])
    found: Errors = []
    for key, value in wanted.items():
        where, text = f"spec.template.metadata.labels[{key}]", f"must be '{value}'"
        if key not in labels:
            found.append(required(where, text))
        elif labels[key] != value:
            found.append(invalid(where, labels, text))
    if not selector_of(spec["selector"]).matches(wanted):
        found.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return found


def _completions_errors(after: Node, before: Node) -> Errors:
    """Completions stay, but for those with indexes as many of which run at once: both may grow and shrink together."""
    if after.get("completionMode") != "Indexed" or before.get("completions") is None or after.get("completions") is None:
        return same(after.get("completions"), before.get("completions"), "spec.completions")
    if after["completions"] == before["completions"] or after["completions"] == after.get("parallelism"):
        return []
    text = "can only be modified in tandem with parallelism"
    return [invalid("spec.completions", after["completions"], text)]


def _template_errors(after: Node, before: Node, status: Node) -> Errors:
    """A template stays. While a job is suspended and has no pods, though, it may say anew where its pods may go and what their
    containers ask for (MutableSchedulingDirectivesForSuspendedJobs and MutablePodResourcesForSuspendedJobs, on since 1.36)."""
    suspended = any(one.get("type") == "Suspended" and one.get("status") == "True" for one in status.get("conditions") or ())
    free = before.get("suspend") and (status.get("startTime") is None or suspended) and not status.get("active")
    if not free:
        return same(after["template"], before["template"], "spec.template")
    new, old = after["template"].get("spec", {}), dict(before["template"].get("spec", {}))
    for name in _SCHEDULING:
        _take(old, new, name)
    affinity = dict(old.get("affinity") or {})
    _take(affinity, new.get("affinity") or {}, "nodeAffinity")
    _take(old, {"affinity": affinity} if affinity or new.get("affinity") is not None else {}, "affinity")
    for kind in ("containers", "initContainers"):
        theirs, ours = new.get(kind) or [], old.get(kind) or []
        if len(theirs) == len(ours):
            old[kind] = [
                {**mine, **_resources(its)} if mine.get("name") == its.get("name") else mine
                for mine, its in zip(ours, theirs, strict=True)
            ] or old.get(kind)
    return same(
        {k: v for k, v in new.items() if v is not None}, {k: v for k, v in old.items() if v is not None}, "spec.template.spec"
    )


def _resources(container: Node) -> Document:
    return {"resources": container["resources"]} if "resources" in container else {}


def _take(into: Document, other: Node, name: str) -> None:
    """Let a field be as the other has it, also if that has none."""
    if name in other:
        into[name] = other[name]
    else:
        into.pop(name, None)
