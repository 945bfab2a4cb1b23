"""Stateful sets, daemon sets, jobs and cron jobs."""

from typing import Any

import pytest
from controllers_cluster import Cluster, Document, Refusal
from hypothesis import given
from hypothesis import strategies as st
from workload_tools import LABELS, a_job, a_template, condition, end, indexes, names

from elbowroom.api.clock import as_time
from elbowroom.controllers import jobindexes
from elbowroom.controllers.statefulsets import ordinal_of


def images(cluster: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in cluster.pods()}


# ---------------------------------------------------------------- stateful sets


def a_stateful_set(cluster: Cluster, replicas: int, image: str = "one", **spec: Any) -> Document:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": spec.pop("partition", 0)}}
    body = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "serviceName": "web",
            "selector": {"matchLabels": LABELS},
            "template": a_template(image),
            "updateStrategy": rolling,
            "podManagementPolicy": "OrderedReady",
            **spec,
        },
    }
    made = cluster.api.create("statefulsets.apps", body, "ns")
    cluster.settle()
    return made


def test_only_plain_numbers_are_ordinals() -> None:
    assert [ordinal_of(name, "web") for name in ("web-0", "web-10", "web-01", "web", "web-x", "other-1")] == [
        0,
        10,
        None,
        None,
        None,
        None,
    ]


def test_pods_of_a_stateful_set_come_one_after_the_other_and_go_from_the_last() -> None:
    cluster = Cluster("statefulsets")
    a_stateful_set(cluster, 3)
    for count in (1, 2, 3):
        assert names(cluster) == [f"web-{ordinal}" for ordinal in range(count)], "the next one waits until this one is ready"
        cluster.run_pods()
    status = cluster.get("statefulsets.apps", "web")["status"]
    assert (status["replicas"], status["readyReplicas"], status["currentReplicas"]) == (3, 3, 3)
    assert status["currentRevision"] == status["updateRevision"]
    pod = cluster.get("pods", "web-1")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "web")
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    assert "create Pod web-0 in StatefulSet web successful" in cluster.events("SuccessfulCreate")
    cluster.api.change("statefulsets.apps", "ns/web", {"spec": {"replicas": 1}})
    cluster.settle()
    assert names(cluster) == ["web-0", "web-1"]
    cluster.run_pods()
    cluster.run_pods()
    assert names(cluster) == ["web-0"]


def test_a_parallel_stateful_set_waits_for_nobody() -> None:
    cluster = Cluster("statefulsets")
    a_stateful_set(cluster, 3, podManagementPolicy="Parallel")
    assert names(cluster) == ["web-0", "web-1", "web-2"]
    cluster.api.change("statefulsets.apps", "ns/web", {"spec": {"replicas": 0}})
    cluster.settle()
    assert names(cluster) == []


def grown(cluster: Cluster, replicas: int, **spec: Any) -> None:
    a_stateful_set(cluster, replicas, **spec)
    for _ in range(replicas):
        cluster.run_pods()


def test_a_new_template_replaces_pods_from_the_last_to_the_partition() -> None:
    cluster = Cluster("statefulsets")
    grown(cluster, 3, partition=1)
    before = cluster.get("statefulsets.apps", "web")["status"]["currentRevision"]
    cluster.api.change("statefulsets.apps", "ns/web", {"spec": {"template": a_template("two")}})
    cluster.settle()
    assert images(cluster) == {"web-0": "one", "web-1": "one"}, "the last one goes first"
    for _ in range(6):
        cluster.run_pods()
    assert images(cluster) == {"web-0": "one", "web-1": "two", "web-2": "two"}
    status = cluster.get("statefulsets.apps", "web")["status"]
    assert (status["currentRevision"], status["updatedReplicas"]) == (before, 2)
    cluster.api.delete("pods", "ns/web-0", {"gracePeriodSeconds": 0})
    cluster.settle()
    assert images(cluster)["web-0"] == "one", "below the partition the old template holds"
    cluster.api.change("statefulsets.apps", "ns/web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    for _ in range(6):
        cluster.run_pods()
    assert set(images(cluster).values()) == {"two"}
    status = cluster.get("statefulsets.apps", "web")["status"]
    assert status["currentRevision"] == status["updateRevision"] != before


def test_an_old_template_that_comes_back_is_the_newest_revision_again() -> None:
    cluster = Cluster("statefulsets")
    grown(cluster, 1)
    for image in ("two", "one"):
        cluster.api.change("statefulsets.apps", "ns/web", {"spec": {"template": a_template(image)}})
        for _ in range(3):
            cluster.run_pods()
    revisions = {
        r["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: r["revision"]
        for r in cluster.of("controllerrevisions.apps")
    }
    assert revisions == {"two": 2, "one": 3}


def test_a_pod_waits_for_its_volume_claims_which_outlive_it() -> None:
    cluster = Cluster("statefulsets")
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    grown(cluster, 1, volumeClaimTemplates=[claim])
    assert [one["metadata"]["name"] for one in cluster.of("persistentvolumeclaims")] == ["data-web-0"]
    volumes = cluster.get("pods", "web-0")["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]
    cluster.api.change("statefulsets.apps", "ns/web", {"spec": {"replicas": 0}})
    cluster.settle()
    cluster.run_pods()
    assert len(cluster.of("persistentvolumeclaims")) == 1


def test_a_pod_that_failed_is_made_again() -> None:
    cluster = Cluster("statefulsets")
    grown(cluster, 1)
    uid = cluster.get("pods", "web-0")["metadata"]["uid"]
    end(cluster, "web-0", "Failed")
    assert cluster.get("pods", "web-0")["metadata"]["uid"] != uid


# ---------------------------------------------------------------- daemon sets


def a_daemon_set(cluster: Cluster, template: Document | None = None, most: int | str = 1, surge: int | str = 0) -> Document:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most, "maxSurge": surge}}
    spec = {"selector": {"matchLabels": LABELS}, "template": template or a_template(), "updateStrategy": rolling}
    made = cluster.api.create("daemonsets.apps", {"metadata": {"name": "agent"}, "spec": spec}, "ns")
    cluster.settle()
    return made


def places(cluster: Cluster) -> list[str]:
    """The nodes that pods are meant for."""
    found = []
    for pod in cluster.pods():
        terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        found.append(terms[0]["matchFields"][0]["values"][0])
    return sorted(found)


def run_daemons(cluster: Cluster) -> None:
    for key, pod in list(cluster.api.of("pods").items()):
        if "deletionTimestamp" in pod["metadata"]:
            cluster.api.delete("pods", key, {"gracePeriodSeconds": 0})
        elif pod["status"]["phase"] == "Pending":
            terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": as_time(cluster.now)}
            patch = {
                "spec": {"nodeName": terms[0]["matchFields"][0]["values"][0]},
                "status": {"phase": "Running", "conditions": [ready]},
            }
            cluster.api.change("pods", key, patch)
    cluster.settle()


def test_a_daemon_set_has_a_pod_for_each_node_that_it_tolerates() -> None:
    cluster = Cluster("daemonsets")
    cluster.node("n1")
    cluster.node("n2", taints=[{"key": "k", "effect": "NoSchedule"}])
    cluster.node("n3", unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])
    a_daemon_set(cluster)
    assert places(cluster) == ["n1", "n3"]
    run_daemons(cluster)
    cluster.node("n4")
    cluster.settle()
    assert places(cluster) == ["n1", "n3", "n4"]
    run_daemons(cluster)
    status = cluster.get("daemonsets.apps", "agent")["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"], status["numberAvailable"]) == (3, 3, 3)
    cluster.api.change("nodes", "n1", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
    cluster.settle()
    assert places(cluster) == ["n3", "n4"]


def test_a_daemon_set_keeps_to_the_nodes_that_it_selects() -> None:
    cluster = Cluster("daemonsets")
    for name in ("n1", "n2"):
        cluster.node(name)
    cluster.api.change("nodes", "n2", {"metadata": {"labels": {"disk": "ssd"}}})
    a_daemon_set(cluster, a_template(nodeSelector={"disk": "ssd"}))
    assert places(cluster) == ["n2"]


@pytest.mark.parametrize(("surge", "beside"), [(1, 1), ("50%", 2), ("100%", 4)])
def test_with_a_surge_new_daemons_come_before_old_ones_go(surge: int | str, beside: int) -> None:
    cluster = Cluster("daemonsets")
    for number in range(4):
        cluster.node(f"n{number}")
    a_daemon_set(cluster, most=0, surge=surge)
    run_daemons(cluster)
    cluster.api.change("daemonsets.apps", "ns/agent", {"spec": {"template": a_template("two")}})
    cluster.settle()
    for done in range(0, 4, beside):
        assert len(places(cluster)) == 4 + beside, "so many new ones beside the old ones, which all are there"
        run_daemons(cluster)
        if done + beside < 4:
            assert len(places(cluster)) == 4 + beside, "those go whose new ones work, and the next new ones come"
    assert places(cluster) == [f"n{number}" for number in range(4)]
    assert set(images(cluster).values()) == {"two"}
    status = cluster.get("daemonsets.apps", "agent")["status"]
    assert (status["updatedNumberScheduled"], status["numberAvailable"]) == (4, 4)


def test_a_daemon_that_does_not_work_is_replaced_at_once_whatever_the_surge() -> None:
    cluster = Cluster("daemonsets")
    for number in range(3):
        cluster.node(f"n{number}")
    a_daemon_set(cluster, most=0, surge=1)
    cluster.api.change("daemonsets.apps", "ns/agent", {"spec": {"template": a_template("two")}})
    cluster.settle()
    assert places(cluster) == ["n0", "n1", "n2"], "old ones that never were ready have gone when new ones are there"
    assert set(images(cluster).values()) == {"two"}


@pytest.mark.parametrize(("most", "away"), [(1, 1), ("50%", 2)])
def test_a_new_template_replaces_daemons_as_far_as_may_be_away(most: int | str, away: int) -> None:
    cluster = Cluster("daemonsets")
    for number in range(4):
        cluster.node(f"n{number}")
    a_daemon_set(cluster, most=most)
    run_daemons(cluster)
    cluster.api.change("daemonsets.apps", "ns/agent", {"spec": {"template": a_template("two")}})
    cluster.settle()
    assert list(images(cluster).values()).count("one") == 4 - away
    for _ in range(8):
        run_daemons(cluster)
    assert set(images(cluster).values()) == {"two"}
    assert cluster.get("daemonsets.apps", "agent")["status"]["updatedNumberScheduled"] == 4


def test_a_daemon_that_failed_is_made_again() -> None:
    cluster = Cluster("daemonsets")
    cluster.node("n1")
    a_daemon_set(cluster)
    run_daemons(cluster)
    (name,) = names(cluster)
    end(cluster, name, "Failed")
    cluster.run_pods()
    assert places(cluster) == ["n1"]
    assert cluster.events("FailedDaemonPod") == [f"Found failed daemon pod ns/{name} on node n1, will try to kill it"]


# ---------------------------------------------------------------- jobs


def finish(cluster: Cluster, phase: str = "Succeeded") -> None:
    """All that runs ends."""
    for name in names(cluster):
        end(cluster, name, phase)


def test_a_job_runs_so_many_pods_at_once_and_ends_when_enough_succeeded() -> None:
    cluster = Cluster("jobs")
    a_job(cluster, completions=3, parallelism=2)
    assert len(names(cluster)) == 2
    finish(cluster)
    assert len(names(cluster)) == 1, "the third is all that is missing"
    finish(cluster)
    job = cluster.get("jobs.batch", "work")
    assert (job["status"]["succeeded"], condition(job, "Complete")) == (3, ("True", "CompletionsReached"))
    assert job["status"]["completionTime"] and condition(job, "SuccessCriteriaMet") == ("True", "CompletionsReached")
    assert not any("finalizers" in pod["metadata"] for pod in cluster.of("pods"))
    assert cluster.events("Completed") == ["Job completed"]
    assert job["status"].get("uncountedTerminatedPods") == {}


def test_a_pod_that_vanishes_is_still_counted_once() -> None:
    cluster = Cluster("jobs")
    a_job(cluster, completions=2)
    (name,) = names(cluster)
    cluster.api.change("pods", f"ns/{name}", {"status": {"phase": "Succeeded"}})
    cluster.api.delete("pods", f"ns/{name}")
    cluster.settle()
    assert "finalizers" not in cluster.get("pods", name)["metadata"]
    cluster.run_pods()
    assert f"ns/{name}" not in cluster.api.of("pods")
    assert cluster.get("jobs.batch", "work")["status"]["succeeded"] == 1
    finish(cluster)
    assert cluster.get("jobs.batch", "work")["status"]["succeeded"] == 2


def test_a_job_that_fails_too_often_is_given_up_after_growing_pauses() -> None:
    cluster = Cluster("jobs")
    a_job(cluster, backoffLimit=2)
    for pause in (10, 20):
        finish(cluster, "Failed")
        assert names(cluster) == []
        cluster.wait(pause - 2)
        assert names(cluster) == []
        cluster.wait(3)
        assert len(names(cluster)) == 1
    finish(cluster, "Failed")
    job = cluster.get("jobs.batch", "work")
    assert (job["status"]["failed"], condition(job, "Failed")) == (3, ("True", "BackoffLimitExceeded"))
    cluster.wait(1000)
    assert names(cluster) == []


def test_a_job_ends_at_its_deadline_and_its_pods_with_it() -> None:
    cluster = Cluster("jobs")
    a_job(cluster, activeDeadlineSeconds=60)
    cluster.run_pods()
    cluster.wait(61)
    assert names(cluster) == []
    assert condition(cluster.get("jobs.batch", "work"), "FailureTarget") == ("True", "DeadlineExceeded")
    cluster.run_pods()
    cluster.run_pods()
    assert condition(cluster.get("jobs.batch", "work"), "Failed") == ("True", "DeadlineExceeded")


def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    cluster = Cluster("jobs")
    a_job(cluster, suspend=True)
    assert names(cluster) == []
    assert condition(cluster.get("jobs.batch", "work"), "Suspended") == ("True", "JobSuspended")
    cluster.api.change("jobs.batch", "ns/work", {"spec": {"suspend": False}})
    cluster.settle()
    assert len(names(cluster)) == 1
    assert condition(cluster.get("jobs.batch", "work"), "Suspended") == ("False", "JobResumed")


def test_a_job_goes_when_its_time_to_live_is_over() -> None:
    cluster = Cluster("jobs", "garbage")
    a_job(cluster, ttlSecondsAfterFinished=30)
    finish(cluster)
    cluster.wait(29)
    assert cluster.of("jobs.batch")
    cluster.wait(5)
    assert cluster.of("jobs.batch") == [] and cluster.of("pods") == []


def test_pods_of_a_job_that_is_gone_are_let_go() -> None:
    cluster = Cluster("jobs", "garbage")
    a_job(cluster)
    cluster.api.delete("jobs.batch", "ns/work")
    cluster.settle()
    cluster.wait(2)
    cluster.run_pods()
    assert cluster.of("pods") == []


def test_a_job_counts_right_whatever_answers_are_lost() -> None:
    for lost in range(1, 12):
        cluster = Cluster("jobs", seed=lost)
        a_job(cluster, completions=2, parallelism=2)
        cluster.lost_replies = lost
        for _ in range(8):
            finish(cluster)
            cluster.reconnect()
            cluster.wait(20)
        job = cluster.get("jobs.batch", "work")
        assert (job["status"]["succeeded"], condition(job, "Complete")[0]) == (2, "True")
        assert len(cluster.of("pods")) == 2


# ---------------------------------------------------------------- completions with indexes


def test_each_index_is_done_once_and_pods_know_theirs() -> None:
    cluster = Cluster("jobs")
    a_job(cluster, completionMode="Indexed", completions=5, parallelism=3)
    assert indexes(cluster) == ["0", "1", "2"]
    pod = next(pod for pod in cluster.of("pods") if pod["metadata"]["name"].startswith("work-1-"))
    assert pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert pod["spec"]["hostname"] == "work-1"
    source = {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}
    assert pod["spec"]["containers"][0]["env"] == [{"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]
    end(cluster, pod["metadata"]["name"], "Succeeded")
    assert indexes(cluster) == ["0", "2", "3"]
    status = cluster.get("jobs.batch", "work")["status"]
    assert (status["completedIndexes"], status["succeeded"], status["uncountedTerminatedPods"]) == ("1", 1, {})
    finish(cluster)
    assert cluster.get("jobs.batch", "work")["status"]["completedIndexes"] == "0-3"
    assert indexes(cluster) == ["4"]
    finish(cluster)
    job = cluster.get("jobs.batch", "work")
    assert (job["status"]["completedIndexes"], job["status"]["succeeded"]) == ("0-4", 5)
    assert condition(job, "Complete") == ("True", "CompletionsReached")
    assert not any("finalizers" in pod["metadata"] for pod in cluster.of("pods"))


def test_a_failed_index_is_tried_again() -> None:
    cluster = Cluster("jobs")
    a_job(cluster, completionMode="Indexed", completions=2, parallelism=2)
    (first,) = [name for name in names(cluster) if name.startswith("work-0-")]
    end(cluster, first, "Failed")
    assert indexes(cluster) == ["1"]
    cluster.wait(11)
    assert indexes(cluster) == ["0", "1"]
    finish(cluster)
    assert cluster.get("jobs.batch", "work")["status"]["failed"] == 1
    assert condition(cluster.get("jobs.batch", "work"), "Complete")[0] == "True"


def test_a_second_pod_for_an_index_and_one_for_none_are_too_many() -> None:
    cluster = Cluster("jobs")
    a_job(cluster, completionMode="Indexed", completions=2, parallelism=2)
    (first,) = [pod for pod in cluster.of("pods") if pod["metadata"]["name"].startswith("work-0-")]
    for name, index in (("double", "0"), ("beyond", "7")):
        metadata = {**first["metadata"], "name": name, "annotations": {"batch.kubernetes.io/job-completion-index": index}}
        for unwanted in ("uid", "resourceVersion", "creationTimestamp"):
            metadata.pop(unwanted)
        cluster.wait(1)
        cluster.api.create("pods", {"metadata": metadata, "spec": first["spec"]}, "ns")
    cluster.settle()
    cluster.run_pods()
    assert indexes(cluster) == ["0", "1"] and first["metadata"]["name"] in names(cluster)


def test_an_indexed_job_counts_right_whatever_answers_are_lost() -> None:
    for lost in range(1, 12):
        cluster = Cluster("jobs", seed=lost)
        a_job(cluster, completionMode="Indexed", completions=3, parallelism=2)
        cluster.lost_replies = lost
        for _ in range(8):
            finish(cluster)
            cluster.reconnect()
            cluster.wait(20)
        job = cluster.get("jobs.batch", "work")
        assert (job["status"]["succeeded"], job["status"]["completedIndexes"]) == (3, "0-2")
        assert len(cluster.of("pods")) == 3 and not any("finalizers" in pod["metadata"] for pod in cluster.of("pods"))


@given(st.sets(st.integers(0, 60)))
def test_indexes_are_read_as_they_were_written(indexes: set[int]) -> None:
    text = jobindexes.text_of(indexes)
    assert jobindexes.parsed(text, 61) == sorted(indexes)
    assert jobindexes.parsed(text, 30) == sorted(index for index in indexes if index < 30)


@pytest.mark.parametrize(("done", "text"), [([], ""), ([3], "3"), ([1, 2], "1,2"), ([0, 1, 2, 5, 7, 8, 9], "0-2,5,7-9")])
def test_runs_of_indexes_are_written_short(done: list[int], text: str) -> None:
    assert jobindexes.text_of(done) == text


def test_texts_that_are_no_indexes_name_none() -> None:
    assert jobindexes.parsed("x,1-y,-3,2", 10) == [2]


def test_a_job_that_somebody_else_manages_is_left_alone() -> None:
    cluster = Cluster("jobs")
    a_job(cluster, managedBy="example.com/mine")
    assert names(cluster) == [] and "conditions" not in cluster.get("jobs.batch", "work").get("status", {})
    a_job(cluster, name="own", managedBy="kubernetes.io/job-controller")
    assert len(names(cluster)) == 1


# ---------------------------------------------------------------- cron jobs


def a_cron_job(cluster: Cluster, schedule: str = "*/5 * * * *", **spec: Any) -> Document:
    job = {"spec": {"template": a_template(restartPolicy="Never")}}
    body = {"metadata": {"name": "tick"}, "spec": {"schedule": schedule, "jobTemplate": job, "concurrencyPolicy": "Allow", **spec}}
    made = cluster.api.create("cronjobs.batch", body, "ns")
    cluster.settle()
    return made


def complete(cluster: Cluster, kind: str = "Complete") -> None:
    for key, job in list(cluster.api.of("jobs.batch").items()):
        if not job.get("status", {}).get("conditions"):
            time = as_time(cluster.now)
            done = [{"type": kind, "status": "True", "lastTransitionTime": time}]
            cluster.api.change("jobs.batch", key, {"status": {"conditions": done, "completionTime": time, "startTime": time}})
    cluster.settle()


def test_a_cron_job_makes_a_job_named_after_each_time() -> None:
    cluster = Cluster("cronjobs")
    a_cron_job(cluster)
    cluster.wait(301)
    (job,) = cluster.of("jobs.batch")
    at = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    tick = cluster.get("cronjobs.batch", "tick")
    assert tick["status"]["lastScheduleTime"] == at
    assert [one["name"] for one in tick["status"]["active"]] == [job["metadata"]["name"]]
    complete(cluster)
    tick = cluster.get("cronjobs.batch", "tick")
    assert "active" not in tick["status"] and tick["status"]["lastSuccessfulTime"]
    assert cluster.events("SawCompletedJob") == [f"Saw completed job: {job['metadata']['name']}, condition: Complete"]
    cluster.wait(300)
    assert len(cluster.of("jobs.batch")) == 2


@pytest.mark.parametrize(("policy", "jobs"), [("Allow", 2), ("Forbid", 1), ("Replace", 1)])
def test_what_happens_when_the_last_job_still_runs(policy: str, jobs: int) -> None:
    cluster = Cluster("cronjobs")
    a_cron_job(cluster, concurrencyPolicy=policy)
    cluster.wait(301)
    (first,) = cluster.of("jobs.batch")
    cluster.wait(300)
    left = [job["metadata"]["name"] for job in cluster.of("jobs.batch")]
    assert len(left) == jobs
    assert (first["metadata"]["name"] in left) is (policy != "Replace")


def test_a_suspended_cron_job_makes_nothing_and_later_the_last_time_it_missed() -> None:
    cluster = Cluster("cronjobs")
    a_cron_job(cluster, suspend=True)
    cluster.wait(1000)
    assert cluster.of("jobs.batch") == []
    cluster.api.change("cronjobs.batch", "ns/tick", {"spec": {"suspend": False}})
    cluster.settle()
    assert len(cluster.of("jobs.batch")) == 1


def test_a_time_that_was_missed_by_more_than_the_deadline_is_left_out() -> None:
    cluster = Cluster("cronjobs")
    a_cron_job(cluster, "0 * * * *", suspend=True, startingDeadlineSeconds=60)
    cluster.wait(4_000)
    cluster.api.change("cronjobs.batch", "ns/tick", {"spec": {"suspend": False}})
    cluster.settle()
    assert cluster.of("jobs.batch") == []


def test_old_jobs_go_beyond_the_limits() -> None:
    cluster = Cluster("cronjobs")
    a_cron_job(cluster, successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for kind in ("Complete", "Failed", "Complete", "Failed", "Complete"):
        cluster.wait(301)
        complete(cluster, kind)
    cluster.wait(1)
    kinds = [job["status"]["conditions"][0]["type"] for job in cluster.of("jobs.batch") if job.get("status")]
    assert sorted(kinds) == ["Complete", "Complete", "Failed"]


def test_a_creation_that_is_refused_is_told_and_tried_again() -> None:
    cluster = Cluster("cronjobs")

    def refuse(request: Any) -> None:
        if request.verb == "create" and request.resource == "jobs":
            raise Refusal(403, "Forbidden", "no")

    cluster.api.refuse = refuse
    a_cron_job(cluster)
    cluster.wait(301)
    assert cluster.events("FailedCreate") == ["Error creating job: no"]
    cluster.api.refuse = lambda request: None
    cluster.wait(60)
    assert len(cluster.of("jobs.batch")) == 1
