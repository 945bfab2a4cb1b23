"""What a pod counts for, where the pod as a whole has a say: max(desired unless infeasible, allocated, actual), name by name."""

from typing import Any

import msgspec
import pytest

from elbowroom.api.objects import Pod
from elbowroom.api.resources import Resources, effective_requests, maximum

Document = dict[str, Any]


def a_pod(level: Document | None, status: Document, reason: str = "", containers: Document | None = None) -> Pod:
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    return msgspec.convert(
        {
            "metadata": {"name": "a"},
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": containers or {}}}],
                **({"resources": {"requests": level}} if level else {}),
            },
            "status": {"conditions": conditions, **status},
        },
        Pod,
    )


def test_the_maximum_is_that_of_each_name() -> None:
    assert maximum({"cpu": 1, "memory": 7}, {"cpu": 2}, {"memory": 3, "pods": 1}) == {"cpu": 2, "memory": 7, "pods": 1}
    assert maximum({"cpu": 2}, {"cpu": 1}) == maximum({"cpu": 1}, {"cpu": 2}) == {"cpu": 2}
    assert maximum() == {}


@pytest.mark.parametrize(
    ("pod", "counts"),
    [
        (a_pod({"cpu": "500m"}, {}), {"cpu": 500}),
        (a_pod({"cpu": "500m"}, {"resources": {"requests": {"cpu": "700m"}}}), {"cpu": 700}),
        (a_pod({"cpu": "500m"}, {"allocatedResources": {"cpu": "600m"}}), {"cpu": 600}),
        (a_pod({"cpu": "900m"}, {"resources": {"requests": {"cpu": "700m"}}}), {"cpu": 900}),
        (a_pod({"cpu": "900m"}, {"resources": {"requests": {"cpu": "700m"}}}, "Deferred"), {"cpu": 900}),
        (a_pod({"cpu": "900m"}, {"resources": {"requests": {"cpu": "700m"}}}, "Infeasible"), {"cpu": 700}),
        (a_pod({"cpu": "900m"}, {}, "Infeasible"), {"cpu": 900}),  # nobody says what it has
        (a_pod({"cpu": "500m"}, {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}), {"cpu": 500}),
        (
            a_pod(
                None,
                {
                    "allocatedResources": {"cpu": "300m"},
                    "resources": {"requests": {"cpu": "200m"}},
                    "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "900m"}}],
                },
                containers={"cpu": "100m"},
            ),
            {"cpu": 300},
        ),
    ],
    ids=[
        "only desired",
        "more is actual",
        "more is allocated",
        "more is desired",
        "deferred",
        "infeasible",
        "infeasible and untold",
        "what the pod does not ask for as a whole",
        "the pod's own figures before its containers'",
    ],
)
def test_what_a_pod_counts_for(pod: Pod, counts: Resources) -> None:
    assert effective_requests(pod) == counts
