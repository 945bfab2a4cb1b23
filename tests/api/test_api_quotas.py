"""What quotas count."""

from typing import Any

import msgspec
import pytest

from elbowroom.api import quotas
from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.api.quotas import ResourceQuota

NOW = 1_764_000_000_000_000_000


def a_pod(**parts: Any) -> Pod:
    resources = {"requests": {"cpu": "1", "memory": "64Mi", "x.io/gpu": "2"}, "limits": {"cpu": "2"}}
    spec = {"containers": [{"name": "c", "resources": resources}], **parts.get("spec", {})}
    metadata = {"name": "p", "namespace": "ns", **parts.get("metadata", {})}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": parts.get("status", {})}, Pod)


def a_quota(hard: dict[str, str], **spec: Any) -> ResourceQuota:
    return msgspec.convert({"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}, ResourceQuota)


HARD = {
    "requests.cpu": "9",
    "cpu": "9",
    "limits.cpu": "9",
    "memory": "1Gi",
    "requests.x.io/gpu": "9",
    "pods": "9",
    "count/pods": "9",
}


def test_a_pod_is_charged_for_all_names_that_speak_of_it() -> None:
    used = quotas.used(a_quota(HARD), [a_pod(), a_pod()], {}, NOW)
    assert used == {
        "requests.cpu": "2",
        "cpu": "2",
        "limits.cpu": "4",
        "memory": "128Mi",
        "requests.x.io/gpu": "4",
        "pods": "2",
        "count/pods": "2",
    }


@pytest.mark.parametrize(
    "parts",
    [
        {"status": {"phase": "Succeeded"}},
        {"metadata": {"deletionTimestamp": as_time(NOW - 10**10), "deletionGracePeriodSeconds": 5}},
    ],
)
def test_a_pod_that_is_over_counts_as_an_object_only(parts: dict[str, Any]) -> None:
    used = quotas.used(a_quota(HARD), [a_pod(**parts)], {}, NOW)
    assert used == {**dict.fromkeys(HARD, "0"), "count/pods": "1"}


def test_a_terminating_pod_is_charged_until_its_grace_period_is_over() -> None:
    pod = a_pod(metadata={"deletionTimestamp": as_time(NOW - 10**9), "deletionGracePeriodSeconds": 5})
    assert quotas.is_charged(pod, NOW) and not quotas.is_charged(pod, NOW + 5 * 10**9)


def test_a_resize_is_charged_with_the_largest_sum_unless_infeasible() -> None:
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}}]}
    assert str(quotas.usage(a_pod(status=status), NOW)["cpu"]) == "3"
    small = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "500m"}}]}
    assert str(quotas.usage(a_pod(status=small), NOW)["cpu"]) == "1"
    pending = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert str(quotas.usage(a_pod(status={**small, "conditions": pending}), NOW)["cpu"]) == "500m"


@pytest.mark.parametrize(
    ("spec", "pod", "selected"),
    [
        ({"scopes": ["NotBestEffort"]}, {}, True),
        ({"scopes": ["BestEffort"]}, {}, False),
        ({"scopes": ["Terminating"]}, {"spec": {"activeDeadlineSeconds": 5}}, True),
        ({"scopes": ["NotTerminating"]}, {"spec": {"activeDeadlineSeconds": 5}}, False),
        ({"scopes": ["PriorityClass"]}, {"spec": {"priorityClassName": "high"}}, True),
        ({"scopes": ["CrossNamespacePodAffinity"]}, {}, False),
        ({"scopes": ["Unheard"]}, {}, False),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
            {"spec": {"priorityClassName": "high"}},
            True,
        ),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}]}},
            {},
            True,
        ),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}}, {}, True),
    ],
)
def test_scopes(spec: dict[str, Any], pod: dict[str, Any], selected: bool) -> None:
    assert quotas.selects(a_quota({"pods": "1"}, **spec), a_pod(**pod)) is selected


def test_other_objects_count_by_resource_and_not_under_scopes() -> None:
    hard = {"count/deployments.apps": "5", "configmaps": "5", "count/configmaps": "5"}
    counts = {"deployments.apps": 2, "configmaps": 3}
    assert quotas.used(a_quota(hard), [], counts, NOW) == {
        "count/deployments.apps": "2",
        "configmaps": "3",
        "count/configmaps": "3",
    }
    assert quotas.used(a_quota(hard, scopes=["BestEffort"]), [], counts, NOW) == dict.fromkeys(hard, "0")
    assert quotas.count_names("configmaps") == ("count/configmaps", "configmaps")


def test_a_quota_on_cpu_or_memory_makes_every_container_say_what_it_takes() -> None:
    silent = {"containers": [{"name": "b"}, {"name": "a", "resources": {"requests": {"cpu": "1"}}}]}
    names = ["requests.cpu", "limits.memory", "pods", "ephemeral-storage"]
    assert quotas.unsaid(a_pod(spec=silent), names) == "must specify limits.memory for: a,b; requests.cpu for: b"
    assert quotas.unsaid(a_pod(spec={**silent, "resources": {"requests": {"cpu": "1"}}}), names) == ""
    assert quotas.unsaid(a_pod(), ["cpu", "pods"]) == ""
