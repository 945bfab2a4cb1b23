"""StatefulSets, DaemonSets, Jobs, CronJobs and their revisions in the registry: defaults and what is valid."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.api import cron
from elbowroom.api.fielderrors import FieldError, forbidden, invalid, not_supported, required, too_long
from elbowroom.apiserver.kinds.base import Resource, StatusStrategy
from elbowroom.apiserver.kinds.checks import count_or_percent_errors, nonnegative, same, selector_of
from elbowroom.apiserver.kinds.replicas import Templated, template_errors
from elbowroom.apiserver.pod_defaults import default_pod_spec
from elbowroom.apiserver.pod_validation import validate_pod_spec
from elbowroom.apiserver.strategy import Context, Document, Strategy

Node = Mapping[str, Any]
Errors = list[FieldError]
INT32_MAX = 2_147_483_647
CRON_NAME_MAX = 52
INDEXED_MAX = 100_000
MANAGER_MAX = 63
_RETENTIONS = ("Retain", "Delete")


def _counts(spec: Node, names: Sequence[str], at: str = "spec") -> Errors:
    return [error for name in names for error in nonnegative(spec.get(name), f"{at}.{name}")]


# ---------------------------------------------------------------- stateful sets

_STATEFUL_FIELDS = ("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds")
_STATEFUL_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetStrategy(Templated):
    kind, plural, singular, short_names = "StatefulSet", "statefulsets", "statefulset", ("sts",)

    def default(self, document: Document) -> None:
        super().default(document)
        spec = document["spec"]
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
            strategy["rollingUpdate"].setdefault("partition", 0)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for name in ("whenDeleted", "whenScaled"):
            if not retention.get(name):
                retention[name] = "Retain"
        spec.setdefault("revisionHistoryLimit", 10)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.setdefault("kind", "PersistentVolumeClaim")
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
            claim["status"] = {"phase": "Pending"}

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {"replicas": 0, "availableReplicas": 0}

    def validate_create(self, context: Context, new: Document) -> Errors:
        spec = new["spec"]
        found: Errors = []
        if spec["podManagementPolicy"] not in ("OrderedReady", "Parallel"):
            text = "must be 'OrderedReady' or 'Parallel'"
            found.append(invalid("spec.podManagementPolicy", spec["podManagementPolicy"], text))
        strategy = spec["updateStrategy"]
        rolling = strategy.get("rollingUpdate")
        match strategy["type"]:
            case "OnDelete" if rolling is not None:
                text = "only allowed for updateStrategy 'RollingUpdate'"
                found.append(invalid("spec.updateStrategy.rollingUpdate", rolling, text))
            case "OnDelete":
                pass
            case "RollingUpdate":
                found += nonnegative((rolling or {}).get("partition"), "spec.updateStrategy.rollingUpdate.partition")
            case other:
                found.append(invalid("spec.updateStrategy", other, "must be 'RollingUpdate' or 'OnDelete'"))
        retention = spec["persistentVolumeClaimRetentionPolicy"]
        for name in ("whenDeleted", "whenScaled"):
            if retention[name] not in _RETENTIONS:
                where = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
                found.append(not_supported(where, retention[name], tuple(sorted(_RETENTIONS))))
        found += _counts(spec, ("replicas", "minReadySeconds", "revisionHistoryLimit"))
        found += nonnegative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
        return found + template_errors(context.profile, spec, "statefulset")

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        found = self.validate_create(context, new)
        free = (*_STATEFUL_FIELDS, "persistentVolumeClaimRetentionPolicy")
        fixed = [{name: value for name, value in one["spec"].items() if name not in free} for one in (new, old)]
        return [*found, forbidden("spec", _STATEFUL_FIXED)] if fixed[0] != fixed[1] else found


# ---------------------------------------------------------------- daemon sets


class DaemonSetStrategy(Templated):
    kind, plural, singular, short_names = "DaemonSet", "daemonsets", "daemonset", ("ds",)

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        had = "replicas" in spec
        super().default(document)
        if not had:
            del spec["replicas"]
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = dict.fromkeys(DAEMON_COUNTS, 0)

    def validate_create(self, context: Context, new: Document) -> Errors:
        spec = new["spec"]
        strategy = spec["updateStrategy"]
        found = _counts(spec, ("minReadySeconds", "revisionHistoryLimit"))
        match strategy["type"]:
            case "OnDelete":
                pass
            case "RollingUpdate":
                for name in ("maxUnavailable", "maxSurge"):
                    found += count_or_percent_errors(strategy["rollingUpdate"][name], f"spec.updateStrategy.rollingUpdate.{name}")
                if str(strategy["rollingUpdate"]["maxSurge"]).rstrip("%") != "0":
                    where = "spec.updateStrategy.rollingUpdate.maxSurge"
                    found.append(forbidden(where, "is not carried out by the daemon set controller of this cluster"))
                elif str(strategy["rollingUpdate"]["maxUnavailable"]).rstrip("%") == "0":
                    where = "spec.updateStrategy.rollingUpdate.maxUnavailable"
                    found.append(required(where, "cannot be 0 when maxSurge is 0"))
            case other:
                found.append(not_supported("spec.updateStrategy.type", other, ("OnDelete", "RollingUpdate")))
        return found + template_errors(context.profile, spec, "daemonset")

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return self.validate_create(context, new) + same(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")


DAEMON_COUNTS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


# ---------------------------------------------------------------- jobs

JOB_NAME, CONTROLLER_UID = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"
_JOB_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")


def _default_job_spec(spec: Document) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else INT32_MAX)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed")


def _default_template(spec: Document) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))


def _job_spec_errors(context: Context, spec: Node, at: str) -> Errors:
    found = _counts(spec, _JOB_COUNTS, at)
    if spec.get("completionMode", "NonIndexed") not in ("NonIndexed", "Indexed"):
        found.append(not_supported(f"{at}.completionMode", spec["completionMode"], ("Indexed", "NonIndexed")))
    if spec.get("completionMode") == "Indexed":
        if spec.get("completions") is None:
            found.append(required(f"{at}.completions", "when completion mode is Indexed"))
        if spec.get("parallelism", 0) > INDEXED_MAX:
            text = f"must be less than or equal to {INDEXED_MAX} when completion mode is Indexed"
            found.append(invalid(f"{at}.parallelism", spec["parallelism"], text))
    manager = spec.get("managedBy")
    if manager is not None and not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/\S+", manager):
        found.append(invalid(f"{at}.managedBy", manager, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    elif manager is not None and len(manager) > MANAGER_MAX:
        found.append(too_long(f"{at}.managedBy", MANAGER_MAX))
    for name in ("podFailurePolicy", "successPolicy", "backoffLimitPerIndex"):
        if spec.get(name) is not None:
            found.append(forbidden(f"{at}.{name}", "is not carried out by the job controller of this cluster"))
    pod = spec["template"].get("spec", {})
    found += validate_pod_spec(pod, f"{at}.template.spec", assigned=context.profile.knows_assigned_resources)
    if pod.get("restartPolicy") not in ("OnFailure", "Never"):
        where = f"{at}.template.spec.restartPolicy"
        if pod.get("restartPolicy") == "Always":
            found.append(required(where, 'valid values: "OnFailure", "Never"'))
        else:
            found.append(not_supported(where, pod.get("restartPolicy"), ("OnFailure", "Never")))
    return found


class JobStrategy(Strategy):
    group, kind, plural, singular, categories, has_generation = "batch", "Job", "jobs", "job", ("all",), True

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        _default_job_spec(spec)
        _default_template(spec)
        labels = spec["template"]["metadata"].get("labels")
        if labels and not document["metadata"].get("labels"):
            document["metadata"]["labels"] = dict(labels)

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {}
        spec, meta = new["spec"], new["metadata"]
        if not spec["manualSelector"]:
            labels = spec["template"]["metadata"].setdefault("labels", {})
            name, uid = meta.get("name", ""), meta["uid"]
            labels |= {CONTROLLER_UID: uid, JOB_NAME: name, "controller-uid": uid, "job-name": name}
            spec.setdefault("selector", {}).setdefault("matchLabels", {})[CONTROLLER_UID] = uid

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        new["status"] = old["status"]

    def validate_create(self, context: Context, new: Document) -> Errors:
        spec = new["spec"]
        found = _job_spec_errors(context, spec, "spec")
        labels = spec["template"]["metadata"].get("labels") or {}
        if spec.get("selector") is None:
            found.append(required("spec.selector"))
        elif not selector_of(spec["selector"]).matches(labels):
            text = "`selector` does not match template `labels`"
            found.append(invalid("spec.template.metadata.labels", labels, text))
        return found

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        after, before = new["spec"], old["spec"]
        found = self.validate_create(context, new)
        suspended = before.get("suspend") and old["status"].get("startTime") is None
        for name in ("selector", "completionMode", "managedBy", *([] if suspended else ["template"])):
            found += same(after.get(name), before.get(name), f"spec.{name}")
        return found + _completions_errors(after, before)


def _completions_errors(after: Node, before: Node) -> Errors:
    """Completions stay, but for those with indexes as many of which run at once: both may grow and shrink together."""
    if after.get("completionMode") != "Indexed" or before.get("completions") is None or after.get("completions") is None:
        return same(after.get("completions"), before.get("completions"), "spec.completions")
    if after["completions"] == before["completions"] or after["completions"] == after.get("parallelism"):
        return []
    text = "can only be modified in tandem with parallelism"
    return [invalid("spec.completions", after["completions"], text)]


class CronJobStrategy(Strategy):
    group, kind, plural, singular = "batch", "CronJob", "cronjobs", "cronjob"
    short_names, categories, has_generation = ("cj",), ("all",), True

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        if not spec.get("concurrencyPolicy"):
            spec["concurrencyPolicy"] = "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        template = spec.setdefault("jobTemplate", {})
        template.setdefault("metadata", {})
        _default_template(template.setdefault("spec", {}))

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {}

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        new["status"] = old["status"]

    def validate_create(self, context: Context, new: Document) -> Errors:
        spec = new["spec"]
        found: Errors = []
        name, schedule, zone = new["metadata"].get("name", ""), spec.get("schedule", ""), spec.get("timeZone")
        if len(name) > CRON_NAME_MAX:
            found.append(invalid("metadata.name", name, f"must be no more than {CRON_NAME_MAX} characters"))
        if not schedule:
            found.append(required("spec.schedule"))
        else:
            try:
                cron.parse(schedule)
            except cron.CronError as why:
                found.append(invalid("spec.schedule", schedule, str(why)))
        if zone is not None and zone not in ("UTC", "Etc/UTC"):
            # This cluster knows no other: time zones are data of the machine.
            found.append(invalid("spec.timeZone", zone, f"unknown time zone {zone}"))
        if spec["concurrencyPolicy"] not in ("Allow", "Forbid", "Replace"):
            found.append(not_supported("spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace")))
        found += _counts(spec, ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"))
        return found + _job_spec_errors(context, spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return self.validate_create(context, new)


# ---------------------------------------------------------------- revisions


class ControllerRevisionStrategy(Strategy):
    group, kind, plural, singular = "apps", "ControllerRevision", "controllerrevisions", "controllerrevision"

    def validate_create(self, context: Context, new: Document) -> Errors:
        found = nonnegative(new.get("revision"), "revision")
        return found if new.get("data") is not None else [required("data", "data is mandatory"), *found]

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return self.validate_create(context, new) + same(new.get("data"), old.get("data"), "data")

    def spec_changed(self, new: Document, old: Node) -> bool:
        return False


def rows() -> list[Resource]:
    """The rows of these kinds."""
    stateful, daemon, job, cron_job = StatefulSetStrategy(), DaemonSetStrategy(), JobStrategy(), CronJobStrategy()
    return [
        Resource(stateful, {"status": StatusStrategy(stateful)}, scales=True),
        Resource(daemon, {"status": StatusStrategy(daemon)}),
        Resource(
            job,
            {"status": StatusStrategy(job)},
            fields={"status.successful": lambda document: str(document.get("status", {}).get("succeeded", 0))},
            orphans=True,
        ),
        Resource(cron_job, {"status": StatusStrategy(cron_job)}),
        Resource(ControllerRevisionStrategy()),
    ]
