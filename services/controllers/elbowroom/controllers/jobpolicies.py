"""What a job makes of its pods' ends: its policies on failures and on success, and how often an index may fail."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from elbowroom.api.objects import ContainerStatus, Pod, PodCondition
from elbowroom.controllers import jobindexes
from elbowroom.controllers.kit import instant
from elbowroom.controllers.views import ConditionPattern, ExitCodes, FailurePolicy, Job, SuccessPolicy
from elbowroom.machine import Instant, seconds

BACKOFF, BACKOFF_MAX = seconds(10), seconds(600)
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
INT32_MAX = 2_147_483_647


# ---------------------------------------------------------------- failures


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a failed pod means to its job."""

    counts: bool = True
    """Among the job's failures, and those of its index."""
    action: str = ""
    """Of the rule that matched, if one did: Ignore, FailJob, FailIndex or Count."""
    message: str = ""
    """Why the job fails with it."""


COUNTED = Verdict()


def judge(policy: FailurePolicy | None, pod: Pod) -> Verdict:
    """By the first rule that matches a pod that has failed."""
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        about = ""
        if rule.on_exit_codes is not None:
            container = _ended_so(pod, rule.on_exit_codes)
            if container is not None and container.state.terminated is not None:
                code = container.state.terminated.exit_code
                about = f"Container {container.name} for pod {pod.key} failed with exit code {code}"
        else:
            condition = _in_condition(pod, rule.on_pod_conditions)
            if condition is not None:
                about = f"Pod {pod.key} has condition {condition.type}"
        if about:
            message = f"{about} matching {rule.action} rule at index {number}" if rule.action == "FailJob" else ""
            return Verdict(rule.action != "Ignore", rule.action, message)
    return COUNTED


def _ended_so(pod: Pod, wanted: ExitCodes) -> ContainerStatus | None:
    for one in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        end = one.state.terminated
        if end is None or end.exit_code == 0 or wanted.container_name not in (None, one.name):
            continue
        if (end.exit_code in wanted.values) == (wanted.operator == "In"):
            return one
    return None


def _in_condition(pod: Pod, patterns: Iterable[ConditionPattern]) -> PodCondition | None:
    wanted = {(one.type, one.status) for one in patterns}
    return next((one for one in pod.status.conditions if (one.type, one.status) in wanted), None)


# ---------------------------------------------------------------- indexes that fail


def failures_of(pod: Pod) -> int:
    """How often the pods of its index before it had failed, as it says itself."""
    return _number(pod, FAILURES)


def _number(pod: Pod, name: str) -> int:
    said = pod.metadata.annotations.get(name, "")
    return int(said) if said.isdigit() and len(said) < 11 and int(said) <= INT32_MAX else 0


def fails_its_index(job: Job, pod: Pod) -> bool:
    """A pod that has failed was the last that its index may have."""
    verdict = judge(job.spec.pod_failure_policy, pod)
    if verdict.action == "FailIndex":
        return True
    return verdict.counts and failures_of(pod) >= (job.spec.backoff_limit_per_index or 0)


def counts_after(job: Job, replaced: Pod | None) -> dict[str, str]:
    """The annotations of the pod that takes the place of one that has failed (None: it is the first of its index)."""
    if replaced is None:
        return {FAILURES: "0"}
    counted, ignored = failures_of(replaced), _number(replaced, IGNORED)
    if judge(job.spec.pod_failure_policy, replaced).counts:
        counted += 1
    else:
        ignored += 1
    return {FAILURES: str(counted), **({IGNORED: str(ignored)} if ignored else {})}


def last_of_each(job: Job, failed: Iterable[Pod], settled: Iterable[int]) -> dict[int, Pod]:
    """Of each index that waits for another pod the one to be replaced: it stays until then, since it knows how often the index had
    failed. ``settled`` are the indexes that are done, have failed, or have a pod."""
    found: dict[int, Pod] = {}
    others = set(settled)
    for pod in sorted(failed, key=lambda one: one.metadata.name):
        index = jobindexes.index_of(pod, job.spec.indexes or 0)
        if index is None or index in others:
            continue
        known = found.get(index)
        if known is None or (_all_failures(known) <= _all_failures(pod) and ended_at(known) <= ended_at(pod)):
            found[index] = pod
    return found


def _all_failures(pod: Pod) -> int:
    return failures_of(pod) + _number(pod, IGNORED)


def may_be_replaced_at(pod: Pod | None) -> Instant:
    """When the next pod of its index may come: ten seconds after the first failure, twice as long after each further one."""
    if pod is None:
        return Instant(0)
    return Instant(ended_at(pod) + pause_after(_all_failures(pod) + 1))


def pause_after(failures: int) -> int:
    """How long the next pod is waited for after so many failures, of which there is one at least."""
    return min(BACKOFF << min(failures - 1, 10), BACKOFF_MAX)


def ended_at(pod: Pod) -> Instant:
    """When its last container ended, else when it was no longer ready, else when it was made."""
    ends = [one.state.terminated.finished_at if one.state.terminated else None for one in pod.status.container_statuses]
    if ends and all(ends):
        return Instant(max(instant(end) for end in ends))
    ready = pod.condition("Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time:
        return Instant(instant(ready.last_transition_time))
    return Instant(instant(pod.metadata.creation_timestamp))


# ---------------------------------------------------------------- success


def success(policy: SuccessPolicy | None, completed: Sequence[int], completions: int) -> str:
    """Which rule says that what is completed is enough, in a condition's words; empty if none does."""
    done = set(completed)
    for number, rule in enumerate(policy.rules if policy is not None and done else ()):
        count = rule.succeeded_count
        if rule.succeeded_indexes is not None:
            wanted = jobindexes.parsed(rule.succeeded_indexes, completions)
            reached = len(done.intersection(wanted))
            met = bool(wanted) and (reached == len(wanted) or (count is not None and reached >= count))
        else:
            met = count is not None and len(done) >= count
        if met:
            return f"Matched rules at index {number}"
    return ""
