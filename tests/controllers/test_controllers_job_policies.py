"""Jobs that say what a pod's end means: policies on failures and success, and indexes that may fail only so often."""

from typing import Any

import msgspec
import pytest
from controllers_cluster import Cluster, Document
from workload_tools import a_job, condition, end, indexes, names

from elbowroom.api.objects import Pod
from elbowroom.controllers import jobpolicies
from elbowroom.controllers.views import FailurePolicy, SuccessPolicy

COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def ended_with(code: int, container: str = "main", **status: Any) -> Document:
    return {
        "phase": "Failed",
        "containerStatuses": [{"name": container, "state": {"terminated": {"exitCode": code}}}],
        **status,
    }


def fails(cluster: Cluster, start: str, status: Document) -> None:
    """The pod whose name begins so ends in that way."""
    (name,) = [name for name in names(cluster) if name.startswith(start)]
    cluster.api.change("pods", f"ns/{name}", {"status": status})
    cluster.settle()


def the_job(cluster: Cluster) -> Document:
    return cluster.get("jobs.batch", "work")


# ---------------------------------------------------------------- what a failure means


def on_codes(action: str, operator: str, *values: int, container: str | None = None) -> Document:
    named = {"containerName": container} if container else {}
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **named}}


@pytest.mark.parametrize(
    ("rules", "status", "verdict"),
    [
        pytest.param([], ended_with(1), ("", True, ""), id="no rule: it counts"),
        pytest.param([on_codes("Ignore", "In", 3)], ended_with(3), ("Ignore", False, ""), id="an exit code that is ignored"),
        pytest.param([on_codes("Ignore", "In", 3)], ended_with(4), ("", True, ""), id="another exit code"),
        pytest.param([on_codes("Ignore", "NotIn", 3)], ended_with(4), ("Ignore", False, ""), id="not in"),
        pytest.param(
            [on_codes("Ignore", "NotIn", 3)], ended_with(0), ("", True, ""), id="a container that succeeded matches nothing"
        ),
        pytest.param([on_codes("Count", "In", 3, container="other")], ended_with(3), ("", True, ""), id="another container"),
        pytest.param(
            [on_codes("Count", "In", 3), on_codes("Ignore", "In", 3)],
            ended_with(3),
            ("Count", True, ""),
            id="the first rule that matches",
        ),
        pytest.param(
            [on_codes("Ignore", "In", 1), on_codes("FailJob", "In", 42)],
            ended_with(42),
            ("FailJob", True, "Container main for pod ns/p failed with exit code 42 matching FailJob rule at index 1"),
            id="a code that ends the job",
        ),
        pytest.param(
            [DISRUPTED],
            ended_with(137, conditions=[{"type": "DisruptionTarget", "status": "True"}]),
            ("Ignore", False, ""),
            id="a victim of preemption",
        ),
        pytest.param(
            [{**DISRUPTED, "action": "FailJob"}],
            ended_with(137, conditions=[{"type": "DisruptionTarget", "status": "True"}]),
            ("FailJob", True, "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0"),
            id="a condition that ends the job",
        ),
        pytest.param(
            [DISRUPTED],
            ended_with(1, conditions=[{"type": "DisruptionTarget", "status": "False"}]),
            ("", True, ""),
            id="a condition that does not hold",
        ),
    ],
)
def test_the_first_rule_that_matches_says_what_a_failure_means(rules: list[Document], status: Document, verdict: Any) -> None:
    policy = msgspec.convert({"rules": rules}, FailurePolicy)
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "ns"}, "status": status}, Pod)
    found = jobpolicies.judge(policy, pod)
    assert (found.action, found.counts, found.message) == verdict


def test_a_failure_that_is_ignored_is_no_failure_of_the_job_and_the_pod_is_made_anew() -> None:
    cluster = Cluster("jobs")
    a_job(cluster, backoffLimit=0, podReplacementPolicy="Failed", podFailurePolicy={"rules": [DISRUPTED]})
    fails(cluster, "work-", ended_with(137, conditions=[{"type": "DisruptionTarget", "status": "True"}]))
    assert the_job(cluster)["status"].get("failed", 0) == 0
    assert len(names(cluster)) == 1, "in its place, at once"
    assert not any("finalizers" in pod["metadata"] for pod in cluster.of("pods") if pod["status"].get("phase") == "Failed")
    fails(cluster, "work-", ended_with(1))
    assert condition(the_job(cluster), "Failed") == ("True", "BackoffLimitExceeded")


def test_a_failure_that_ends_the_job_takes_its_other_pods_along() -> None:
    cluster = Cluster("jobs")
    rules = [on_codes("FailJob", "In", 42)]
    a_job(cluster, completions=3, parallelism=2, podReplacementPolicy="Failed", podFailurePolicy={"rules": rules})
    victim = names(cluster)[0]
    fails(cluster, victim, ended_with(42))
    assert condition(the_job(cluster), "FailureTarget") == ("True", "PodFailurePolicy")
    cluster.run_pods()
    cluster.settle()
    job = the_job(cluster)
    assert condition(job, "Failed") == ("True", "PodFailurePolicy")
    said = next(one["message"] for one in job["status"]["conditions"] if one["type"] == "Failed")
    assert said == f"Container main for pod ns/{victim} failed with exit code 42 matching FailJob rule at index 0"
    assert names(cluster) == []


# ---------------------------------------------------------------- indexes that may fail only so often


def per_index(cluster: Cluster, limit: int = 1, **spec: Any) -> None:
    more = {"completionMode": "Indexed", "backoffLimit": 2_147_483_647, "backoffLimitPerIndex": limit}
    a_job(cluster, **{"completions": 2, "parallelism": 2, **more, **spec})


def annotations(cluster: Cluster, start: str) -> Document:
    (name,) = [name for name in names(cluster) if name.startswith(start)]
    found: Document = cluster.get("pods", name)["metadata"]["annotations"]
    return found


def test_an_index_is_tried_again_as_often_as_it_may_fail_and_the_others_go_on() -> None:
    cluster = Cluster("jobs")
    per_index(cluster)
    assert annotations(cluster, "work-0-")[COUNT] == "0"
    end(cluster, next(name for name in names(cluster) if name.startswith("work-0-")), "Failed")
    assert indexes(cluster) == ["1"], "ten seconds later, not at once"
    (kept,) = [pod for pod in cluster.of("pods") if pod["status"].get("phase") == "Failed"]
    assert kept["metadata"]["finalizers"], "it alone knows how often the index has failed"
    assert the_job(cluster)["status"].get("failed", 0) == 0
    cluster.wait(11)
    assert annotations(cluster, "work-0-")[COUNT] == "1"
    assert "finalizers" not in cluster.get("pods", kept["metadata"]["name"])["metadata"]
    assert the_job(cluster)["status"]["failed"] == 1
    end(cluster, next(name for name in names(cluster) if name.startswith("work-0-")), "Failed")
    assert (the_job(cluster)["status"]["failedIndexes"], the_job(cluster)["status"]["failed"]) == ("0", 2)
    cluster.wait(1000)
    assert indexes(cluster) == ["1"], "that index is given up, the other one is not"
    end(cluster, next(name for name in names(cluster) if name.startswith("work-1-")), "Succeeded")
    job = the_job(cluster)
    assert condition(job, "Failed") == ("True", "FailedIndexes")
    assert (job["status"]["completedIndexes"], job["status"]["failedIndexes"]) == ("1", "0")
    assert not any("finalizers" in pod["metadata"] for pod in cluster.of("pods"))


def test_without_a_failure_no_index_is_told_to_have_failed() -> None:
    cluster = Cluster("jobs")
    per_index(cluster)
    assert the_job(cluster)["status"]["failedIndexes"] == ""
    for name in names(cluster):
        end(cluster, name, "Succeeded")
    assert condition(the_job(cluster), "Complete") == ("True", "CompletionsReached")


def test_a_failure_that_is_ignored_is_not_counted_for_its_index_but_kept_in_mind() -> None:
    cluster = Cluster("jobs")
    rules = [on_codes("Ignore", "In", 3), on_codes("FailIndex", "In", 4)]
    per_index(cluster, 0, podReplacementPolicy="Failed", podFailurePolicy={"rules": rules})
    fails(cluster, "work-0-", ended_with(3))
    cluster.wait(11)
    assert (annotations(cluster, "work-0-")[COUNT], annotations(cluster, "work-0-")[IGNORED]) == ("0", "1")
    fails(cluster, "work-1-", ended_with(4))
    assert the_job(cluster)["status"]["failedIndexes"] == "1"


def test_more_failed_indexes_than_there_may_be_end_the_job() -> None:
    cluster = Cluster("jobs")
    per_index(cluster, 0, completions=4, parallelism=4, maxFailedIndexes=1)
    fails(cluster, "work-0-", ended_with(1))
    assert condition(the_job(cluster), "FailureTarget") == ("", "")
    fails(cluster, "work-2-", ended_with(1))
    assert condition(the_job(cluster), "FailureTarget") == ("True", "MaxFailedIndexesExceeded")
    cluster.run_pods()
    cluster.settle()
    assert condition(the_job(cluster), "Failed") == ("True", "MaxFailedIndexesExceeded")


def test_failures_of_indexes_are_counted_right_whatever_answers_are_lost() -> None:
    for lost in range(1, 12):
        cluster = Cluster("jobs", seed=lost)
        per_index(cluster, 1, completions=3, parallelism=3)
        cluster.lost_replies = lost
        for _ in range(10):
            for name in names(cluster):
                end(cluster, name, "Failed" if name.startswith("work-1-") else "Succeeded")
            cluster.reconnect()
            cluster.wait(25)
        status = the_job(cluster)["status"]
        assert (status["completedIndexes"], status["failedIndexes"], status["failed"]) == ("0,2", "1", 2)
        assert condition(the_job(cluster), "Failed") == ("True", "FailedIndexes")
        assert not any("finalizers" in pod["metadata"] for pod in cluster.of("pods"))


# ---------------------------------------------------------------- success


@pytest.mark.parametrize(
    ("rules", "completed", "text"),
    [
        ([{"succeededIndexes": "0"}], [], ""),
        ([{"succeededIndexes": "0"}], [0], "Matched rules at index 0"),
        ([{"succeededIndexes": "0-2"}], [0, 2], ""),
        ([{"succeededIndexes": "0-2", "succeededCount": 2}], [0, 2], "Matched rules at index 0"),
        ([{"succeededIndexes": "0-2", "succeededCount": 2}], [0, 3, 4], ""),
        ([{"succeededCount": 2}], [3, 4], "Matched rules at index 0"),
        ([{"succeededIndexes": "1"}, {"succeededCount": 1}], [4], "Matched rules at index 1"),
        ([{"succeededIndexes": "9"}], [0], ""),
    ],
)
def test_a_rule_of_success_wants_these_indexes_or_so_many(rules: list[Document], completed: list[int], text: str) -> None:
    assert jobpolicies.success(msgspec.convert({"rules": rules}, SuccessPolicy), completed, 5) == text


def test_a_job_whose_leader_succeeded_is_complete_and_its_other_pods_go() -> None:
    cluster = Cluster("jobs")
    policy = {"rules": [{"succeededIndexes": "0"}]}
    a_job(cluster, completionMode="Indexed", completions=3, parallelism=3, successPolicy=policy)
    end(cluster, next(name for name in names(cluster) if name.startswith("work-0-")), "Succeeded")
    assert condition(the_job(cluster), "SuccessCriteriaMet") == ("True", "SuccessPolicy")
    cluster.run_pods()
    cluster.settle()
    job = the_job(cluster)
    assert condition(job, "Complete") == ("True", "SuccessPolicy")
    assert (job["status"]["succeeded"], job["status"]["completedIndexes"], names(cluster)) == (1, "0", [])
