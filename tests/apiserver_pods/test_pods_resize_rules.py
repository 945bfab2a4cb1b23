"""The rules of a resize one by one, where a table says more than a story: RC-34 to RC-44, RC-52, RC-53."""

from typing import Any

import pytest
from pods_bench import Bench, Document, Refused

IMAGE = "registry.k8s.io/pause:3.10"
SMALL: Document = {"requests": {"cpu": "100m", "memory": "64Mi"}}
BOUNDED: Document = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}


def container(name: str, resources: Document | None = None, **more: Any) -> Document:
    return {"name": name, "image": IMAGE, "resources": resources or {}, **more}


def a_bench(*containers: Document, **spec: Any) -> Bench:
    bench = Bench()
    bench.create({"metadata": {"name": "a"}, "spec": {"containers": list(containers) or [container("c", SMALL)], **spec}})
    return bench


def errors(bench: Bench, pod: Document) -> list[str]:
    """The errors of a refused resize, none if it is let through."""
    try:
        bench.resize(pod)
    except Refused as refusal:
        assert refusal.code == 422
        return [f"{field}: {body}" for field, body in refusal.causes]
    return []


def refused(bench: Bench, pod: Document) -> str:
    with pytest.raises(Refused) as caught:
        bench.resize(pod)
    assert caught.value.code == 403
    return caught.value.message.removeprefix('pods "a" is forbidden: ')


def set_requests(pod: Document, field: str = "containers", index: int = 0, **amounts: str) -> Document:
    pod["spec"][field][index]["resources"].setdefault("requests", {}).update(amounts)
    return pod


# ---------------------------------------------------------------- containers

ADDED = "may not be added or removed on resize"
MOVED = "may not be renamed or reordered on resize"


def test_what_moved_is_told_for_each_place_of_both_lists() -> None:
    bench = a_bench(
        container("c", SMALL), container("d", SMALL), container("e", SMALL), initContainers=[container("i"), container("j")]
    )
    pod = bench.pod()
    pod["spec"]["containers"][:2] = reversed(pod["spec"]["containers"][:2])
    pod["spec"]["initContainers"][1]["name"] = "k"
    pod["spec"]["containers"][0]["image"] = "other"  # a list with another name is judged as it was sent
    assert errors(bench, pod) == [
        f"spec.containers[0].name: Forbidden: containers {MOVED}",
        f"spec.containers[1].name: Forbidden: containers {MOVED}",
        f"spec.initContainers[1].name: Forbidden: initContainers {MOVED}",
    ]


def test_another_number_of_containers_is_told_of_both_lists_and_ends_the_judging() -> None:
    bench = a_bench(container("c", BOUNDED), initContainers=[container("i", SMALL)])
    pod = bench.pod()
    pod["spec"]["containers"].append(container("d", terminationMessagePolicy="File", imagePullPolicy="Always"))
    pod["spec"]["initContainers"] = []
    del pod["spec"]["containers"][0]["resources"]["limits"]
    assert errors(bench, pod) == [
        f"spec.containers: Forbidden: containers {ADDED}",
        f"spec.initContainers: Forbidden: initContainers {ADDED}",
    ]


@pytest.mark.parametrize("more", [{}, {"restartPolicy": "Always"}])
@pytest.mark.parametrize(
    ("left", "told"),
    [
        ({"limits": {"cpu": "200m"}}, []),
        ({"requests": {"cpu": "100m"}}, ["limits"]),
        ({"requests": {"memory": "1Mi"}}, ["requests", "limits"]),
        ({"requests": {"cpu": "0"}, "limits": {"cpu": "0"}}, []),
    ],
)
def test_of_init_containers_and_sidecars_nothing_is_removed_either(more: Document, left: Document, told: list[str]) -> None:
    bench = a_bench(initContainers=[container("i", BOUNDED, **more)])
    pod = bench.pod()
    pod["spec"]["initContainers"][0]["resources"] = left
    assert errors(bench, pod) == [
        f"spec.initContainers[0].resources.{which}: Forbidden: resource {which} cannot be removed" for which in told
    ]


def test_several_things_are_told_at_once_in_upstreams_order() -> None:
    sidecar = container("s", BOUNDED, restartPolicy="Always")
    bench = a_bench(container("c", BOUNDED), container("d", BOUNDED), initContainers=[container("i", BOUNDED), sidecar])
    pod = bench.pod()
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "300m"}, "limits": {"cpu": "200m"}}
    pod["spec"]["containers"][1]["resources"] = {"requests": {"cpu": "100m"}}
    pod["spec"]["initContainers"][0]["resources"]["requests"]["ephemeral-storage"] = "1Gi"
    pod["spec"]["initContainers"][1]["resources"] = {"requests": {"cpu": "100m"}}
    assert errors(bench, pod) == [
        'spec.containers[0].resources.requests: Invalid value: "300m": must be less than or equal to cpu limit of 200m',
        "spec.initContainers[1].resources.limits: Forbidden: resource limits cannot be removed",
        "spec.containers[1].resources.limits: Forbidden: resource limits cannot be removed",
        "spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar containers are mutable",
    ]


# ---------------------------------------------------------------- quality of service

G = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
QOS = "Pod QOS Class may not change as a result of resizing"


@pytest.mark.parametrize(
    ("stored", "init", "wanted", "refusal"),
    [
        (G, None, {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}, ""),
        (G, None, {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        (G, SMALL, G, ""),
        ({}, None, {"requests": {"cpu": "1"}}, "BestEffort"),
        ({}, None, {"requests": {"memory": "0"}, "limits": {"cpu": "0"}}, ""),
        (SMALL, None, {"requests": {"cpu": "0", "memory": "0"}}, "Burstable"),
        (SMALL, BOUNDED, {"requests": {"cpu": "0", "memory": "0"}}, ""),
    ],
)
def test_the_class_is_that_of_all_containers_without_what_is_zero(
    stored: Document, init: Document | None, wanted: Document, refusal: str
) -> None:
    more = {"initContainers": [container("i", init)]} if init is not None else {}
    bench = a_bench(container("c", stored), **more)
    pod = bench.pod()
    pod["spec"]["containers"][0]["resources"] = wanted
    assert errors(bench, pod) == ([f'spec: Invalid value: "{refusal}": {QOS}'] if refusal else [])


# ---------------------------------------------------------------- the node's support, claims, the pod's state

RUNNING: Document = {"state": {"running": {}}}
OLD = "spec: Forbidden: Pod running on node without support for resize"


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        ([], []),
        ([{"name": "c", "state": {"waiting": {}}}], []),
        ([{"name": "c", **RUNNING}], [OLD]),
        ([{"name": "c", **RUNNING, "resources": {}}], []),
        ([{"name": "c", "state": {"terminated": {"exitCode": 0}}}, {"name": "d", **RUNNING}], [OLD]),
        ([{"name": "c", **RUNNING, "resources": {}}, {"name": "d", **RUNNING}], []),
    ],
)
def test_the_first_running_container_tells_whether_the_node_resizes(statuses: list[Document], told: list[str]) -> None:
    bench = a_bench(container("c", SMALL), container("d", SMALL))
    stored = bench.pod()
    stored["status"]["containerStatuses"] = statuses
    bench.put("pods", stored)
    assert errors(bench, set_requests(bench.pod(), cpu="150m")) == told


def test_claims_on_the_nodes_own_resources_make_a_pod_unresizable() -> None:
    bench = a_bench()
    stored = bench.pod()
    stored["status"]["nodeAllocatableResourceClaimStatuses"] = [{"resourceClaimName": "x"}]
    bench.put("pods", stored)
    assert errors(bench, set_requests(bench.pod(), cpu="150m")) == [
        "spec: Forbidden: pods with node allocatable resource claims cannot be resized"
    ]


def test_a_pod_that_ends_may_be_resized() -> None:
    bench = a_bench()
    stored = bench.pod()
    stored["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    bench.put("pods", stored)
    after = bench.resize(set_requests(bench.pod(), cpu="150m"))
    assert (after["metadata"]["generation"], after["metadata"]["deletionGracePeriodSeconds"]) == (2, 30)


@pytest.mark.parametrize("policy", ["NotRequired", "RestartContainer"])
def test_a_memory_limit_may_shrink_whatever_the_policy(policy: str) -> None:
    policies = [{"resourceName": "memory", "restartPolicy": policy}]
    bench = a_bench(container("c", {"limits": {"memory": "128Mi"}}, resizePolicy=policies))
    pod = bench.pod()
    pod["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}, "requests": {"memory": "64Mi"}}
    assert errors(bench, pod) == []


# ---------------------------------------------------------------- the pod as a whole

LEVEL: Document = {"requests": {"cpu": "300m"}, "limits": {"cpu": "600m"}}


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ({"requests": {"cpu": "400m"}, "limits": {"cpu": "700m"}}, []),
        ({**LEVEL, "requests": {"cpu": "300m", "memory": "64Mi"}}, []),
        (
            {"requests": {"cpu": "50m"}, "limits": {"cpu": "600m"}},
            [
                'spec.resources.requests[cpu]: Invalid value: "50m": '
                "must be greater than or equal to aggregate container requests of 100m"
            ],
        ),
        (
            {"requests": {"cpu": "300m", "hugepages-2Mi": "2Mi"}, "limits": {"cpu": "600m", "hugepages-2Mi": "2Mi"}},
            ["spec: Forbidden: only cpu and memory resources are mutable at pod-level"],
        ),
        ({"requests": {"cpu": "300m"}}, ["spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"]),
        (None, ["spec.resources: Forbidden: pod-level resources cannot be removed"]),
    ],
)
def test_what_is_asked_for_the_pod_as_a_whole(level: Document | None, told: list[str]) -> None:
    bench = a_bench(container("c", {"requests": {"cpu": "100m"}}), resources=LEVEL)
    pod = bench.pod()
    if level is None:
        del pod["spec"]["resources"]
    else:
        pod["spec"]["resources"] = level
    assert errors(bench, pod) == told


# ---------------------------------------------------------------- node and quota


def bound(*containers: Document, **spec: Any) -> Bench:
    """A pod on ``n1``, which has 4 CPUs and 8Gi, in profile v1.37."""
    bench = Bench()
    features = ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"]
    status = {"allocatable": {"cpu": "4", "memory": "8Gi"}, "declaredFeatures": features}
    bench.put("nodes", {"metadata": {"name": "n1"}, "status": status})
    whole = {"containers": list(containers) or [container("c", SMALL)], "nodeName": "n1", **spec}
    bench.create({"metadata": {"name": "a"}, "spec": whole})
    return bench


@pytest.mark.parametrize(
    ("spec", "cpu", "total"),
    [
        ({}, "4", ""),
        ({}, "4001m", "4001"),
        ({"overhead": {"cpu": "100m"}}, "4", "4100"),
        ({"initContainers": [container("i", {"requests": {"cpu": "1"}})]}, "4", ""),
        ({"initContainers": [container("i", {"requests": {"cpu": "1"}}, restartPolicy="Always")]}, "3500m", "4500"),
        ({"resources": {"requests": {"cpu": "3"}}}, "3", ""),
    ],
)
def test_the_node_must_have_what_the_pods_whole_spec_asks_for(spec: Document, cpu: str, total: str) -> None:
    bench = bound(**spec)
    pod = set_requests(bench.pod(), cpu=cpu)
    if not total:
        assert bench.resize(pod)["metadata"]["generation"] == 2
    else:
        words = f"node didn't have enough allocatable resources: cpu, requested: {total}, allocatable: 4000"
        assert refused(bench, pod) == words


def test_an_init_container_alone_can_be_too_large_for_the_node() -> None:
    bench = bound(initContainers=[container("i", {"requests": {"cpu": "1"}})])
    assert "requested: 5000" in refused(bench, set_requests(bench.pod(), "initContainers", cpu="5"))


def test_nobody_asks_the_node_of_a_pod_that_has_none() -> None:
    bench = a_bench()
    assert bench.resize(set_requests(bench.pod(), cpu="400"))["metadata"]["generation"] == 2


def test_a_quota_that_came_later_wants_a_resized_pod_to_say_what_it_takes() -> None:
    bench = a_bench(container("c", SMALL), container("d"))
    hard = {"requests.cpu": "4", "limits.memory": "1Gi"}
    used = {"requests.cpu": "100m", "limits.memory": "0"}
    quota = {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}}
    bench.put("resourcequotas", quota)
    assert refused(bench, set_requests(bench.pod(), cpu="150m")) == (
        "failed quota: q: must specify limits.memory for: c,d; requests.cpu for: d"
    )


@pytest.mark.parametrize(
    ("cpu", "words"),
    [
        ("50m", ""),
        ("100m", ""),
        ("101m", "exceeded quota: q, requested: requests.cpu=1m, used: requests.cpu=100m, limited: requests.cpu=80m"),
    ],
)
def test_a_quota_that_is_overdrawn_lets_a_pod_shrink_and_nothing_else(cpu: str, words: str) -> None:
    bench = a_bench()
    hard, used = {"requests.cpu": "80m"}, {"requests.cpu": "100m"}
    quota = {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}}
    bench.put("resourcequotas", quota)
    pod = set_requests(bench.pod(), cpu=cpu)
    if words:
        assert refused(bench, pod) == words
    else:
        bench.resize(pod)
    assert bench.stored[("resourcequotas", "ns", "q")]["status"]["used"] == used


def test_a_resize_is_charged_above_what_its_pod_still_has() -> None:
    """A pod that shrank is charged for what its status shows, so growing again up to that costs nothing."""
    bench = a_bench(container("c", {"requests": {"cpu": "100m"}}))
    stored = bench.pod()
    had = {"requests": {"cpu": "400m"}}
    stored["status"]["containerStatuses"] = [{"name": "c", "allocatedResources": {"cpu": "400m"}, "resources": had}]
    bench.put("pods", stored)
    hard, used = {"requests.cpu": "500m"}, {"requests.cpu": "400m"}
    quota = {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}}
    bench.put("resourcequotas", quota)
    bench.resize(set_requests(bench.pod(), cpu="400m"))
    assert bench.stored[("resourcequotas", "ns", "q")]["status"]["used"] == used
    bench.resize(set_requests(bench.pod(), cpu="450m"))
    assert bench.stored[("resourcequotas", "ns", "q")]["status"]["used"] == {"requests.cpu": "450m"}
    told = "exceeded quota: q, requested: requests.cpu=100m, used: requests.cpu=450m, limited: requests.cpu=500m"
    assert refused(bench, set_requests(bench.pod(), cpu="550m")) == told
