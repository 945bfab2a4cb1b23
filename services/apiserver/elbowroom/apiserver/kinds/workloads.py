"""StatefulSets, DaemonSets, CronJobs and revisions in the registry: defaults and what is valid."""

from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.api import cron
from elbowroom.api.fielderrors import FieldError, forbidden, invalid, not_supported, required
from elbowroom.apiserver.kinds.base import Resource, StatusStrategy
from elbowroom.apiserver.kinds.checks import count_or_percent_errors, nonnegative, same
from elbowroom.apiserver.kinds.jobs import JobStrategy, default_template, job_spec_errors
from elbowroom.apiserver.kinds.replicas import Templated, template_errors
from elbowroom.apiserver.strategy import Context, Document, Strategy

Node = Mapping[str, Any]
Errors = list[FieldError]
CRON_NAME_MAX = 52
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
                away, surge = (str(strategy["rollingUpdate"][name]).rstrip("%") != "0" for name in ("maxUnavailable", "maxSurge"))
                where = "spec.updateStrategy.rollingUpdate"
                if away and surge:
                    text = "may not be set when maxUnavailable is non-zero"
                    found.append(invalid(f"{where}.maxSurge", strategy["rollingUpdate"]["maxSurge"], text))
                elif not away and not surge:
                    found.append(required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
            case other:
                found.append(not_supported("spec.updateStrategy.type", other, ("OnDelete", "RollingUpdate")))
        return found + template_errors(context.profile, spec, "daemonset")

    def validate_update(self, context: Context, new: Document, old: Node) -> Errors:
        return self.validate_create(context, new) + same(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")


DAEMON_COUNTS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


# ---------------------------------------------------------------- cron jobs


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
        default_template(template.setdefault("spec", {}))

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
        return found + job_spec_errors(context, spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")

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
