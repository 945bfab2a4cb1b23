"""CronJobs: a Job whenever the schedule comes.

The job of a time is named after it, so a time that was answered and forgotten makes no second job. Of times that were
missed only the last is made up for, and not after ``startingDeadlineSeconds``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elbowroom import rpc
from elbowroom.api import cron
from elbowroom.api.clock import as_time
from elbowroom.cache import Change
from elbowroom.controllers.kit import NOTHING, Ask, Controller, Outcome, Plan, Told, controller_of, instant, owner_reference, refer
from elbowroom.controllers.views import CronJob, Job
from elbowroom.controllers.workload import status_patch
from elbowroom.machine import Instant

COMPONENT = "cronjob-controller"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MINUTE = 60_000_000_000
MISSED_MAX = 100_000


# ---------------------------------------------------------------- decisions


@dataclass(frozen=True, slots=True)
class Times:
    """The last time that has come and was not met (None: none), and the next one."""

    due: Instant | None
    upcoming: Instant | None


def times(cron_job: CronJob, now: Instant) -> Times:
    """When the schedule came last, and comes next. ``CronError`` if it is none."""
    schedule = cron.parse(cron_job.spec.schedule)
    since = instant(cron_job.status.last_schedule_time) or instant(cron_job.metadata.creation_timestamp)
    deadline = cron_job.spec.starting_deadline_seconds
    if deadline is not None:
        since = max(since, now - deadline * 1_000_000_000)
    due: int | None = None
    at = schedule.after(since)
    for _ in range(MISSED_MAX):
        if at is None or at > now:
            break
        due, at = at, schedule.after(at)
    return Times(None if due is None else Instant(due), None if at is None else Instant(at))


def job_name(cron_job: CronJob, at: Instant) -> str:
    return f"{cron_job.metadata.name}-{at // MINUTE}"


def job_document(cron_job: CronJob, at: Instant) -> dict[str, Any]:
    """The job of that time."""
    template = cron_job.spec.job_template
    said = template.get("metadata") or {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(cron_job, at),
            "namespace": cron_job.metadata.namespace,
            "labels": dict(said.get("labels") or {}),
            "annotations": {**(said.get("annotations") or {}), SCHEDULED: as_time(at)},
            "ownerReferences": [owner_reference("batch/v1", "CronJob", cron_job.metadata)],
        },
        "spec": template.get("spec") or {},
    }


def surplus(jobs: Sequence[Job], kind: str, limit: int | None) -> list[Job]:
    """The oldest jobs that ended with that condition, beyond the limit."""
    if limit is None:
        return []
    ended = [job for job in jobs if job.status.condition(kind) is not None]
    ended.sort(key=lambda job: (job.status.start_time or "", job.metadata.name))
    return ended[: max(0, len(ended) - limit)]


# ---------------------------------------------------------------- the loop


class CronJobs(Controller):
    """Keys: ``NAMESPACE/NAME``."""

    name = "cronjobs"
    reads = ("cronjobs.batch", "jobs.batch")

    @property
    def _cron_jobs(self) -> Mapping[str, CronJob]:
        return self.shared.reflectors["cronjobs.batch"].store

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "cronjobs.batch":
            yield change.key
        elif resource == "jobs.batch":
            for job in (change.old, change.new):
                if job is not None and (above := controller_of(job.metadata)) is not None and above.kind == "CronJob":
                    yield f"{job.metadata.namespace}/{above.name}"

    def reconcile(self, now: Instant, key: str) -> Plan:
        cron_job = self._cron_jobs.get(key)
        if cron_job is None or cron_job.metadata.deletion_timestamp is not None:
            return NOTHING
        mine: list[Job] = []
        for job in self.shared.in_namespace("jobs.batch", cron_job.metadata.namespace):
            above = controller_of(job.metadata)
            if above is not None and above.uid == cron_job.metadata.uid:
                mine.append(job)
        mine.sort(key=lambda job: job.metadata.name)
        active = [job for job in mine if job.ended is None]
        asks = _cleaned(cron_job, mine)
        status, events = _status(cron_job, mine, active)
        again: Instant | None = None
        try:
            when = times(cron_job, now)
        except cron.CronError as why:
            events.append(_told(cron_job, "Warning", "UnparseableSchedule", f"unparseable schedule: {why}"))
            when = Times(None, None)
        if not cron_job.spec.suspend:
            again = when.upcoming
            if when.due is not None and job_name(cron_job, when.due) not in [job.metadata.name for job in mine]:
                asks += self._started(cron_job, active, when.due, events)
        if status:
            asks.append(status_patch("cronjobs.batch", cron_job.metadata, status))
        return Plan(tuple(asks), tuple(events), again)

    def _started(self, cron_job: CronJob, active: Sequence[Job], due: Instant, events: list[Told]) -> list[Ask]:
        policy = cron_job.spec.concurrency_policy
        if active and policy == "Forbid":
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            events.append(_told(cron_job, "Normal", "JobAlreadyActive", text))
            return []
        if active and policy == "Replace":
            return [_deletion(job) for job in active if job.metadata.deletion_timestamp is None]  # the new one when they are gone
        document = job_document(cron_job, due)
        request = rpc.create("jobs.batch", document, namespace=cron_job.metadata.namespace)
        return [Ask(request, ("create", document["metadata"]["name"]))]

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        cron_job = self._cron_jobs.get(key)
        if ask.tag is None or cron_job is None:
            return
        verb, name = ask.tag
        if outcome.ok:
            done = "Created" if verb == "create" else "Deleted"
            yield _told(cron_job, "Normal", f"Successful{verb.capitalize()}", f"{done} job {name}")
        elif outcome.status not in (404, 409):
            yield _told(cron_job, "Warning", f"Failed{verb.capitalize()}", f"Error {verb[:-1]}ing job: {outcome.message}")


def _cleaned(cron_job: CronJob, mine: Sequence[Job]) -> list[Ask]:
    """Old jobs that nobody keeps."""
    spec = cron_job.spec
    done, failed = (
        surplus(mine, "Complete", spec.successful_jobs_history_limit),
        surplus(mine, "Failed", spec.failed_jobs_history_limit),
    )
    return [_deletion(job) for job in (*done, *failed) if job.metadata.deletion_timestamp is None]


def _status(cron_job: CronJob, mine: Sequence[Job], active: Sequence[Job]) -> tuple[dict[str, Any], list[Told]]:
    """What of the status is to change, and who was seen to end."""
    had = cron_job.status
    scheduled = [job.metadata.annotations.get(SCHEDULED, "") for job in mine]
    last = max([had.last_schedule_time or "", *scheduled])
    finished = [job.status.completion_time or "" for job in mine if job.status.condition("Complete") is not None]
    success = max([had.last_successful_time or "", *finished])
    listed = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": job.metadata.name,
            "namespace": job.metadata.namespace,
            "uid": job.metadata.uid,
        }
        for job in active
    ]
    events = []
    for one in had.active:
        job = next((job for job in mine if job.metadata.uid == one.get("uid")), None)
        if job is not None and job.ended is not None:
            text = f"Saw completed job: {job.metadata.name}, condition: {job.ended.type}"
            events.append(_told(cron_job, "Normal", "SawCompletedJob", text))
        elif job is None:
            events.append(_told(cron_job, "Normal", "MissingJob", f"Active job went missing: {one.get('name', '')}"))
    wanted: dict[str, Any] = {}
    if [one.get("uid") for one in had.active] != [one["uid"] for one in listed]:
        wanted["active"] = listed or None
    if last and last != had.last_schedule_time:
        wanted["lastScheduleTime"] = last
    if success and success != had.last_successful_time:
        wanted["lastSuccessfulTime"] = success
    return wanted, events


def _deletion(job: Job) -> Ask:
    options = {"propagationPolicy": "Background", "preconditions": {"uid": job.metadata.uid}}
    request = rpc.delete("jobs.batch", job.metadata.name, namespace=job.metadata.namespace, options=options)
    return Ask(request, ("delete", job.metadata.name))


def _told(cron_job: CronJob, kind: str, reason: str, message: str) -> Told:
    return Told({**refer("CronJob", cron_job.metadata), "apiVersion": "batch/v1"}, kind, reason, message, COMPONENT)
