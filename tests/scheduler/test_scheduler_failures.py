"""What a pod is told whose attempt failed, and what becomes of a node that it was promised."""

from typing import Any

import pytest
from scheduler_cluster import Cluster, Verdict, node, pod

from elbowroom.wire import ApiRequest, ApiResponse


def on(*names: str) -> dict[str, Any]:
    """A term that names nodes, each by an expression of its own."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]}


def wanting(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def test_terms_that_name_no_node_in_common_are_refused_before_any_node_is_asked() -> None:
    cluster = Cluster().nodes(node("n1"), node("n2")).pods(pod("a", **wanting(on("n1", "n2")))).settle()
    assert cluster.told("a", "FailedScheduling") == [
        "0/2 nodes are available: pod affinity terms conflict. no new claims to deallocate, preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    ]
    metrics = cluster.metrics()
    labels = 'extension_point="PreFilter",profile="default-scheduler",status="UnschedulableAndUnresolvable"'
    assert metrics[f"scheduler_framework_extension_point_duration_seconds_count{{{labels}}}"] == 1
    assert metrics['scheduler_unschedulable_pods{plugin="NodeAffinity",profile="default-scheduler"}'] == 1
    assert not any('extension_point="Filter"' in name for name in metrics)


def test_one_term_that_agrees_with_itself_is_enough() -> None:
    cluster = Cluster().nodes(node("n1"), node("n2")).pods(pod("a", **wanting(on("n1", "n2"), on("n2")))).settle()
    assert cluster.node_of("a") == "n2"


def refuse_bindings(request: ApiRequest) -> Verdict:
    return ApiResponse(403, b'{"message": "no"}') if request.subresource == "binding" else None


@pytest.mark.parametrize("why", ["the binding is refused", "there is no node", "preemption is of no use"])
def test_a_node_that_was_promised_is_promised_no_more_when(why: str) -> None:
    promised = pod("a", cpu="1", status={"nominatedNodeName": "n1"})
    match why:
        case "the binding is refused":
            cluster = Cluster().nodes(node("n1"))
            cluster.judge = refuse_bindings
        case "there is no node":
            cluster = Cluster()
        case _:
            cluster = Cluster().nodes(node("n1", cpu="500m"))
    cluster.pods(promised).settle()
    assert cluster.told("a", "FailedScheduling")
    assert "nominatedNodeName" not in cluster.pod("a")["status"]
