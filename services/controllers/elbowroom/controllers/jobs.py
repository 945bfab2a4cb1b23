"""Jobs: pods until enough of them have succeeded, or too many failed.

An ended pod is counted exactly once, though pods may vanish: each bears a finalizer, its uid is written to
``uncountedTerminatedPods`` first, then the finalizer goes, then the uid becomes a count. New pods wait 10 s after a failure, twice
as long after each further one. Where completions have indexes, a success is counted as that of its index, which is written down
before the finalizer goes; where an index may fail only so often, its last failed pod bears the finalizer until another one takes
its place and says how often the index has failed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom import rpc
from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.cache import Change
from elbowroom.controllers import jobindexes, jobpolicies
from elbowroom.controllers.kit import (
    NOTHING,
    Ask,
    Controller,
    Outcome,
    Plan,
    Told,
    built,
    controller_of,
    instant,
    is_active,
    is_ready,
    refer,
    with_suffix,
)
from elbowroom.controllers.views import Job, JobCondition, JobStatus, Uncounted
from elbowroom.controllers.workload import Owner, creation, deletion, ownership, pod_of, status_patch
from elbowroom.machine import Instant

COMPONENT = "job-controller"
MANAGER = "kubernetes.io/job-controller"
"""Who carries out a job that names nobody."""
TRACKED = "batch.kubernetes.io/job-tracking"
BURST = 500
UNCOUNTED_MAX = 500


# ---------------------------------------------------------------- decisions


def owner_of(job: Job) -> Owner:
    return Owner("batch/v1", "Job", job.metadata)


def has_failed(job: Job, pod: Pod) -> bool:
    """Does it count as a failure? One that is being deleted does too, unless the job waits for its end."""
    if pod.status.phase == "Failed":
        return True
    return pod.is_terminating and pod.status.phase != "Succeeded" and job.spec.pod_replacement_policy != "Failed"


@dataclass(frozen=True, slots=True)
class Count:
    """What of the pods is counted, to be counted, and to be let go now."""

    succeeded: int
    failed: int
    uncounted: Uncounted
    let_go: tuple[Pod, ...]
    """Pods whose uids, or whose indexes, are written down, so that their finalizer may go."""
    completed: tuple[int, ...] = ()
    """The indexes that are done."""
    gave_up: tuple[int, ...] = ()
    """The indexes that have failed, where each may only so often."""
    replaced: Mapping[int, Pod] = field(default_factory=dict)
    """By index, the failed pods that stay until others take their places; they are not counted before."""
    fail_job: str = ""
    """Why the job fails with one of its pods, by its policy."""

    @property
    def all_succeeded(self) -> int:
        return self.succeeded + len(self.uncounted.succeeded)

    @property
    def all_failed(self) -> int:
        return self.failed + len(self.uncounted.failed)


def count(job: Job, pods: Sequence[Pod]) -> Count:
    """One step further with counting."""
    had = job.status.uncounted_terminated_pods or Uncounted()
    held = {pod.uid: pod for pod in pods if TRACKED in pod.metadata.finalizers}
    waiting = {"succeeded": [uid for uid in had.succeeded if uid in held], "failed": [uid for uid in had.failed if uid in held]}
    counted = (len(had.succeeded) - len(waiting["succeeded"]), len(had.failed) - len(waiting["failed"]))
    let_go = tuple(held[uid] for uid in (*waiting["succeeded"], *waiting["failed"]))
    known = {*had.succeeded, *had.failed}
    indexes, policy = job.spec.indexes, job.spec.pod_failure_policy
    before = jobindexes.parsed(job.status.completed_indexes, indexes or 0)
    completed = set(before)
    failed = [pod for pod in held.values() if pod.uid not in known and has_failed(job, pod)]
    gave_up, replaced = _given_up(job, pods, failed)
    staying = {pod.uid for pod in replaced.values()}
    failing, met = job.status.condition("FailureTarget"), job.status.condition("SuccessCriteriaMet")
    for pod in held.values():
        if pod.uid in known or len(waiting["succeeded"]) + len(waiting["failed"]) >= UNCOUNTED_MAX:
            continue
        if pod.status.phase == "Succeeded" and indexes is not None:
            index = jobindexes.index_of(pod, indexes)
            if index is None or index in before:
                let_go += (pod,)
            else:
                completed.add(index)
        elif pod.status.phase == "Succeeded":
            waiting["succeeded"].append(pod.uid)
        elif has_failed(job, pod) or ((job.ended or failing) is not None and pod.is_terminating):
            if pod.uid in staying and (job.ended or failing or met) is None and job.metadata.deletion_timestamp is None:
                continue
            if jobpolicies.judge(policy, pod).counts:
                waiting["failed"].append(pod.uid)
            else:
                let_go += (pod,)
        elif met is not None and pod.is_terminating:
            let_go += (pod,)  # nobody waits for its end
    return Count(
        job.status.succeeded + counted[0] if indexes is None else len(completed),
        job.status.failed + counted[1],
        Uncounted(succeeded=waiting["succeeded"], failed=waiting["failed"]),
        let_go,
        tuple(sorted(completed)),
        gave_up,
        replaced,
        next((why for pod in pods if has_failed(job, pod) and (why := jobpolicies.judge(policy, pod).message)), ""),
    )


def _given_up(job: Job, pods: Iterable[Pod], failed: Sequence[Pod]) -> tuple[tuple[int, ...], dict[int, Pod]]:
    """The indexes that have failed, and the pods of others that wait to be replaced; of pods that have ``failed`` and were not
    counted. None where indexes may fail as often as they like."""
    indexes = job.spec.indexes
    if indexes is None or job.spec.backoff_limit_per_index is None:
        return (), {}
    gave_up = set(jobindexes.parsed(job.status.failed_indexes or "", indexes))
    gave_up |= jobindexes.indexes_of((pod for pod in failed if jobpolicies.fails_its_index(job, pod)), indexes)
    others = [pod for pod in pods if is_active(pod) or pod.status.phase == "Succeeded"]
    settled = jobindexes.indexes_of(others, indexes)
    settled |= {*jobindexes.parsed(job.status.completed_indexes, indexes), *gave_up}
    return tuple(sorted(gave_up)), jobpolicies.last_of_each(job, failed, settled)


def _restarts(pods: Iterable[Pod]) -> int:
    return sum(
        one.restart_count
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for one in (*pod.status.container_statuses, *pod.status.init_container_statuses)
    )


def end_of(job: Job, counted: Count, active: Sequence[Pod], now: Instant) -> tuple[str, str, str] | None:
    """(SuccessCriteriaMet or FailureTarget, reason, message) if the job is to end now. Failures come before success."""
    spec = job.spec
    if counted.fail_job:
        return "FailureTarget", "PodFailurePolicy", counted.fail_job
    if counted.all_failed + _not_counted_yet(job, counted) > spec.backoff_limit or _past_restarts(job, active):
        return "FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    started = instant(job.status.start_time)
    deadline = spec.active_deadline_seconds
    if deadline is not None and started and not spec.suspend and now >= started + deadline * 1_000_000_000:
        return "FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline"
    if spec.indexes is not None:
        gave_up = len(counted.gave_up)
        if spec.max_failed_indexes is not None and gave_up > spec.max_failed_indexes:
            text = "Job has exceeded the specified maximal number of failed indexes"
            return "FailureTarget", "MaxFailedIndexesExceeded", text
        if gave_up and gave_up + len(counted.completed) >= spec.indexes:
            return "FailureTarget", "FailedIndexes", "Job has failed indexes"
        enough = jobpolicies.success(spec.success_policy, counted.completed, spec.indexes)
        if enough:
            return "SuccessCriteriaMet", "SuccessPolicy", enough
    if spec.completions is None:
        done = counted.all_succeeded > 0 and not active
    else:
        done = counted.all_succeeded >= spec.completions
    return ("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods") if done else None


def _not_counted_yet(job: Job, counted: Count) -> int:
    """Failures of pods that stay until others take their places."""
    return sum(jobpolicies.judge(job.spec.pod_failure_policy, pod).counts for pod in counted.replaced.values())


def _past_restarts(job: Job, active: Sequence[Pod]) -> bool:
    if (job.spec.template.get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts, limit = _restarts(active), job.spec.backoff_limit
    return restarts > 0 if limit == 0 else restarts >= limit


def missing(job: Job, counted: Count, active: int, terminating: int) -> int:
    """How many pods are to be made (negative: that many are to go)."""
    spec = job.spec
    if spec.completions is None:
        wanted = active if counted.all_succeeded else spec.parallelism
    else:
        wanted = min(spec.parallelism, max(0, spec.completions - counted.all_succeeded))
    if wanted < active:
        return wanted - active
    return max(0, wanted - active - (terminating if spec.pod_replacement_policy == "Failed" else 0))


def backoff_until(job: Job, pods: Sequence[Pod], counted: Count) -> Instant:
    """When a new pod may be made, after the failures so far."""
    failures = [pod for pod in pods if pod.status.phase == "Failed"]
    if not counted.all_failed or not failures:
        return Instant(0)
    ends = [
        instant(s.state.terminated.finished_at) for pod in failures for s in pod.status.container_statuses if s.state.terminated
    ]
    last = max(ends, default=0) or max(instant(pod.metadata.creation_timestamp) for pod in failures)
    return Instant(last + jobpolicies.pause_after(counted.all_failed))


def with_condition(
    conditions: Sequence[JobCondition], now: Instant, kind: str, reason: str, message: str, status: str = "True"
) -> list[JobCondition]:
    """The conditions with this one."""
    time = as_time(now)
    made = JobCondition(type=kind, status=status, last_probe_time=time, last_transition_time=time, reason=reason, message=message)
    old = next((one for one in conditions if one.type == kind), None)
    if old is not None and (old.status, old.reason) == (status, reason):
        return list(conditions)
    return [*(one for one in conditions if one.type != kind), made]


def pod_document(job: Job, name: str) -> dict[str, Any]:
    """A pod of the job, which bears the finalizer."""
    document = pod_of(owner_of(job), job.spec.template, name, {})
    metadata = document["metadata"]
    metadata["generateName"] = f"{job.metadata.name}-"
    metadata["finalizers"] = [*metadata.get("finalizers", ()), TRACKED]
    return document


# ---------------------------------------------------------------- the loop


class Jobs(Controller):
    """Keys: ``NAMESPACE/NAME``."""

    name = "jobs"
    reads = ("jobs.batch", "pods")

    @property
    def _jobs(self) -> Mapping[str, Job]:
        return self.shared.reflectors["jobs.batch"].store

    def begin(self, now: Instant) -> None:
        for pod in self.shared.pods.values():
            if TRACKED in pod.metadata.finalizers:
                for key in self.shared.owners(pod.metadata, "Job", "jobs.batch"):
                    self.queue.add(key)

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "jobs.batch":
            yield change.key
        elif resource == "pods":
            for pod in (change.old, change.new):
                if pod is not None:
                    yield from self.shared.owners(pod.metadata, "Job", "jobs.batch")

    def reconcile(self, now: Instant, key: str) -> Plan:
        job = self._jobs.get(key)
        if job is None:
            return self._orphans(key)
        if job.spec.managed_by not in (None, MANAGER):
            return NOTHING
        pods, asks = ownership(owner_of(job), job.spec.selector, self.shared.pods_in(job.metadata.namespace))
        if asks:
            return Plan(tuple(asks))
        counted = count(job, pods)
        asks += [_let_go(pod) for pod in counted.let_go]
        if job.ended is not None:
            return self._ended(now, job, counted, asks)
        active = [pod for pod in pods if is_active(pod)]
        if job.spec.indexes is not None:
            active, surplus = jobindexes.sorted_out(active, counted.completed, job.spec.indexes)
            asks += [deletion(pod) for pod in surplus[:BURST]]
        terminating = [pod for pod in pods if pod.is_terminating and not pod.is_terminal]
        again: list[Instant] = []
        conditions = list(job.status.conditions)
        events: list[Told] = []
        start = job.status.start_time
        ending = job.status.condition("FailureTarget") or job.status.condition("SuccessCriteriaMet")
        if ending is None and (end := end_of(job, counted, active, now)) is not None:
            conditions = with_condition(conditions, now, *end)
            ending = next(one for one in conditions if one.type == end[0])
        if job.metadata.deletion_timestamp is not None:
            pass  # its pods are the garbage collector's; they are only counted
        elif ending is not None:
            asks += [deletion(pod) for pod in active[:BURST]]
        elif job.spec.suspend:
            asks += [deletion(pod) for pod in active[:BURST]]
            conditions = with_condition(conditions, now, "Suspended", "JobSuspended", "Job suspended")
            start = None
            if conditions != job.status.conditions:
                events.append(_told(job, "Normal", "Suspended", "Job suspended"))
        else:
            if any(one.type == "Suspended" and one.status == "True" for one in conditions):
                conditions = with_condition(conditions, now, "Suspended", "JobResumed", "Job resumed", "False")
                events.append(_told(job, "Normal", "Resumed", "Job resumed"))
            start = start or as_time(now)
            asks += self._scaled(now, job, counted, active, len(terminating), pods, again)
            if job.spec.active_deadline_seconds is not None:
                again.append(Instant(instant(start) + job.spec.active_deadline_seconds * 1_000_000_000))
        over = ending is not None and not active and not terminating and not any(_pending(counted)) and not _held(pods)
        end_time = None
        if over and ending is not None:
            kind = "Complete" if ending.type == "SuccessCriteriaMet" else "Failed"
            conditions = with_condition(conditions, now, kind, ending.reason, ending.message)
            end_time = as_time(now) if kind == "Complete" else None
            told = ("Normal", "Completed", "Job completed") if end_time else ("Warning", ending.reason, ending.message)
            events.append(_told(job, *told))
        status = JobStatus(
            conditions=conditions,
            start_time=start,
            completion_time=end_time,
            active=len(active),
            terminating=len(terminating),
            succeeded=counted.succeeded,
            failed=counted.failed,
            ready=sum(is_ready(pod) for pod in active),
            uncounted_terminated_pods=counted.uncounted,
            completed_indexes=jobindexes.text_of(counted.completed),
            failed_indexes=_failed_indexes(job, counted),
        )
        if status != job.status:
            asks.append(_status(job, status))
        return Plan(tuple(asks), tuple(events) if status != job.status else (), min(again, default=None))

    def _scaled(
        self,
        now: Instant,
        job: Job,
        counted: Count,
        active: Sequence[Pod],
        terminating: int,
        pods: Sequence[Pod],
        again: list[Instant],
    ) -> list[Ask]:
        lacks = missing(job, counted, len(active), terminating)
        if lacks < 0:
            doomed = sorted(active, key=lambda p: (is_ready(p), bool(p.spec.node_name), p.metadata.name))
            return [deletion(pod) for pod in doomed[:-lacks]]
        if not lacks:
            return []
        if job.spec.backoff_limit_per_index is None:
            until = backoff_until(job, pods, counted)
            if until > now:
                again.append(until)
                return []
        name, indexes = job.metadata.name, job.spec.indexes
        if indexes is None:
            return [creation(pod_document(job, with_suffix(f"{name}-", self.rng))) for _ in range(min(lacks, BURST))]
        busy = [pod for pod in pods if is_active(pod) or (pod.is_terminating and job.spec.pod_replacement_policy == "Failed")]
        taken = jobindexes.indexes_of((pod for pod in busy if not pod.is_terminal), indexes)
        free = jobindexes.free(min(lacks, BURST), indexes, (*counted.completed, *counted.gave_up, *taken))
        if job.spec.backoff_limit_per_index is not None:
            times = {index: jobpolicies.may_be_replaced_at(counted.replaced.get(index)) for index in free}
            free = [index for index in free if times[index] <= now]
            again += [min(times.values())] if times and not free else []
        return [self._of_index(job, index, counted) for index in free]

    def _of_index(self, job: Job, index: int, counted: Count) -> Ask:
        name = job.metadata.name
        document = jobindexes.marked(pod_document(job, with_suffix(f"{name}-{index}-", self.rng)), name, index)
        if job.spec.backoff_limit_per_index is not None:
            document["metadata"]["annotations"] |= jobpolicies.counts_after(job, counted.replaced.get(index))
        return creation(document)

    def _ended(self, now: Instant, job: Job, counted: Count, asks: list[Ask]) -> Plan:
        """What is left of a job that is over: pods to let go, and its own end."""
        status = msgspec.structs.replace(
            job.status,
            succeeded=counted.succeeded,
            failed=counted.failed,
            uncounted_terminated_pods=counted.uncounted,
            completed_indexes=jobindexes.text_of(counted.completed),
            failed_indexes=_failed_indexes(job, counted),
        )
        if status != job.status:
            asks.append(_status(job, status))
        ended, ttl = job.ended, job.spec.ttl_seconds_after_finished
        if ttl is None or ended is None or job.metadata.deletion_timestamp is not None:
            return Plan(tuple(asks))
        due = Instant(instant(ended.last_transition_time) + ttl * 1_000_000_000)
        if due > now:
            return Plan(tuple(asks), again_at=due)
        options = {"propagationPolicy": "Foreground", "preconditions": {"uid": job.metadata.uid}}
        gone = rpc.delete("jobs.batch", job.metadata.name, namespace=job.metadata.namespace, options=options)
        return Plan((*asks, Ask(gone)))

    def _orphans(self, key: str) -> Plan:
        """The job is gone: nobody counts its pods any more."""
        namespace, _, name = key.partition("/")
        found = []
        for pod in self.shared.pods_in(namespace):
            above = controller_of(pod.metadata)
            if TRACKED in pod.metadata.finalizers and above is not None and (above.kind, above.name) == ("Job", name):
                found.append(_let_go(pod))
        return Plan(tuple(found)) if found else NOTHING

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        job = self._jobs.get(key)
        if ask.tag is None or job is None:
            return
        verb, pod = ask.tag
        done, doing = {"create": ("Created", "creating"), "delete": ("Deleted", "deleting")}[verb]
        if outcome.ok:
            yield _told(job, "Normal", f"Successful{verb.capitalize()}", f"{done} pod: {pod}")
        elif outcome.status not in (404, 409):
            yield _told(job, "Warning", f"Failed{verb.capitalize()}", f"Error {doing}: {outcome.message}")


def _failed_indexes(job: Job, counted: Count) -> str | None:
    """As a status tells them: only where an index may fail only so often."""
    return jobindexes.text_of(counted.gave_up) if job.spec.backoff_limit_per_index is not None else None


def _pending(counted: Count) -> tuple[list[str], list[str]]:
    return counted.uncounted.succeeded, counted.uncounted.failed


def _held(pods: Iterable[Pod]) -> bool:
    return any(TRACKED in pod.metadata.finalizers for pod in pods)


def _told(job: Job, kind: str, reason: str, message: str) -> Told:
    return Told({**refer("Job", job.metadata), "apiVersion": "batch/v1"}, kind, reason, message, COMPONENT)


def _let_go(pod: Pod) -> Ask:
    left = [name for name in pod.metadata.finalizers if name != TRACKED]
    metadata = {"uid": pod.uid, "resourceVersion": pod.metadata.resource_version, "finalizers": left or None}
    request = rpc.patch("pods", pod.metadata.name, {"metadata": metadata}, namespace=pod.metadata.namespace, kind=rpc.MERGE_PATCH)
    return Ask(request)


def _status(job: Job, status: JobStatus) -> Ask:
    names = (
        "active",
        "succeeded",
        "failed",
        "ready",
        "terminating",
        "startTime",
        "completionTime",
        "conditions",
        "completedIndexes",
        "failedIndexes",
    )
    gone: dict[str, Any] = dict.fromkeys(names)
    uncounted = built(status.uncounted_terminated_pods or Uncounted())
    lists = {name: uncounted.get(name) for name in ("succeeded", "failed")}
    return status_patch("jobs.batch", job.metadata, {**gone, **built(status), "uncountedTerminatedPods": lists})
