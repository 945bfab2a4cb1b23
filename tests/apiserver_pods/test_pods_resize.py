"""The resize subresource: what it keeps, and what it refuses in which words (RC-25 to RC-45)."""

from typing import Any

import pytest
from pods_bench import Bench, Document, Refused

from elbowroom.api.gates import profile_of

IMAGE = "registry.k8s.io/pause:3.10"
BURSTABLE = {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}


def a_bench(resources: Document | None = None, /, *, profile: str = "v1.37", **spec: Any) -> Bench:
    """A stored pod ``a`` with one container ``c``."""
    bench = Bench(profile_of(profile))
    container = {"name": "c", "image": IMAGE, "resources": BURSTABLE if resources is None else resources}
    bench.create({"metadata": {"name": "a"}, "spec": {"containers": [container], **spec}})
    return bench


def resources_of(pod: Document, index: int = 0, field: str = "containers") -> Any:
    return pod["spec"][field][index]["resources"]


def refused(bench: Bench, pod: Document) -> str:
    with pytest.raises(Refused) as caught:
        bench.resize(pod)
    assert caught.value.code == 422
    assert bench.pod()["metadata"]["generation"] == 1
    return caught.value.message.removeprefix('Pod "a" is invalid: ')


def test_a_resize_changes_the_resources_and_bumps_the_generation() -> None:
    bench = a_bench()
    pod = bench.pod()
    resources_of(pod)["requests"]["cpu"] = "800m"
    after = bench.resize(pod)
    assert resources_of(after)["requests"] == {"cpu": "800m", "memory": "256Mi"}
    assert after["metadata"]["generation"] == 2
    assert after["status"] == {"phase": "Pending", "qosClass": "Burstable"}


def test_the_same_amounts_in_other_words_are_no_change() -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "0.5", "memory": "268435456"},
        "limits": {"cpu": "01", "memory": "0.5Gi"},
    }
    assert bench.resize(pod)["metadata"]["generation"] == 1


def test_everything_else_in_the_request_is_silently_ignored() -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["metadata"] |= {"labels": {"x": "y"}, "annotations": {"x": "y"}, "finalizers": ["a.b/c"]}
    pod["spec"] |= {"nodeName": "elsewhere", "activeDeadlineSeconds": 5}
    pod["spec"]["containers"][0]["image"] = "other"
    pod["status"] = {"phase": "Failed", "qosClass": "Guaranteed"}
    after = bench.resize(pod)
    assert after["metadata"]["generation"] == 1
    assert {"labels", "annotations", "finalizers"}.isdisjoint(after["metadata"])
    assert "nodeName" not in after["spec"] and after["spec"]["containers"][0]["image"] == IMAGE
    assert after["status"]["phase"] == "Pending"


def test_a_removed_request_becomes_its_limit() -> None:
    bench = a_bench()
    pod = bench.pod()
    del resources_of(pod)["requests"]["cpu"]
    assert resources_of(bench.resize(pod))["requests"]["cpu"] == "1"


def test_a_request_or_limit_cannot_be_removed() -> None:
    bench = a_bench()
    pod = bench.pod()
    del resources_of(pod)["limits"]["cpu"]
    assert refused(bench, pod) == "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"
    pod = bench.pod()
    pod["spec"]["containers"][0]["resources"] = {}
    assert refused(bench, pod) == (
        '[spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing, '
        "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed, "
        "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed]"
    )


def test_setting_zero_is_no_removal() -> None:
    bench = a_bench({"requests": {"cpu": "100m", "memory": "64Mi"}})
    pod = bench.pod()
    resources_of(pod)["requests"]["cpu"] = "0"
    assert resources_of(bench.resize(pod))["requests"]["cpu"] == "0"


def test_requests_and_limits_may_be_added() -> None:
    bench = a_bench({"requests": {"cpu": "100m"}})
    pod = bench.pod()
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1"}}
    assert resources_of(bench.resize(pod)) == {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1"}}


@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", "Failed"])
def test_a_pod_in_any_phase_may_be_resized(phase: str) -> None:
    bench = a_bench()
    stored = bench.pod()
    stored["status"]["phase"] = phase
    bench.put("pods", stored)
    pod = bench.pod()
    resources_of(pod)["limits"]["memory"] = "300Mi"
    assert bench.resize(pod)["metadata"]["generation"] == 2


def test_the_quality_of_service_stays() -> None:
    bench = a_bench()
    pod = bench.pod()
    resources_of(pod)["requests"] = dict(resources_of(pod)["limits"])
    assert refused(bench, pod) == 'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing'
    bench = a_bench({})
    pod = bench.pod()
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "0"}}
    assert bench.resize(pod)["metadata"]["generation"] == 2


def test_only_cpu_and_memory_are_mutable() -> None:
    bench = a_bench()
    pod = bench.pod()
    resources_of(pod)["requests"]["ephemeral-storage"] = "1Gi"
    assert refused(bench, pod) == "spec: Forbidden: only cpu and memory resources are mutable"


def test_containers_keep_number_order_and_names() -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["spec"]["containers"].append({"name": "d", "image": "x"})
    assert refused(bench, pod) == "spec.containers: Forbidden: containers may not be added or removed on resize"
    pod = bench.pod()
    pod["spec"]["containers"][0]["name"] = "d"
    assert refused(bench, pod) == "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"
    pod = bench.pod()
    pod["spec"]["containers"] = []
    assert refused(bench, pod) == (
        "[spec.containers: Required value, "
        'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing, '
        "spec.containers: Forbidden: containers may not be added or removed on resize]"
    )


def test_a_mirror_or_windows_pod_is_never_resized_even_to_what_it_is() -> None:
    bench = Bench()
    mirror = {"name": "a", "annotations": {"kubernetes.io/config.mirror": "x"}}
    bench.create({"metadata": mirror, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": IMAGE}]}})
    assert refused(bench, bench.pod()) == "[]: Forbidden: static pods cannot be resized"
    windows = a_bench({}, os={"name": "windows"})
    assert refused(windows, windows.pod()) == "[]: Forbidden: windows pods cannot be resized"


def test_a_node_that_reports_no_resources_cannot_resize() -> None:
    bench = a_bench()
    stored = bench.pod()
    stored["status"]["containerStatuses"] = [{"name": "c", "state": {"running": {}}}]
    bench.put("pods", stored)
    pod = bench.pod()
    resources_of(pod)["requests"]["cpu"] = "600m"
    assert refused(bench, pod) == "spec: Forbidden: Pod running on node without support for resize"
    stored["status"]["containerStatuses"][0]["resources"] = {}
    bench.put("pods", stored)
    assert bench.resize(pod)["metadata"]["generation"] == 2


POLICY = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


def test_the_resize_policy_may_change_in_the_lab_and_not_in_v137() -> None:
    bench = a_bench(profile="v1.37")
    pod = bench.pod()
    pod["spec"]["containers"][0]["resizePolicy"] = POLICY
    assert refused(bench, pod) == "spec: Forbidden: only cpu and memory resources are mutable"
    lab = a_bench(profile="lab")
    pod = lab.pod()
    pod["spec"]["containers"][0]["resizePolicy"] = POLICY
    after = lab.resize(pod)
    assert (after["spec"]["containers"][0]["resizePolicy"], after["metadata"]["generation"]) == (POLICY, 2)


def with_init(**more: Any) -> Bench:
    init = {"name": "i", "image": IMAGE, "resources": {"requests": {"cpu": "50m"}}, **more}
    return a_bench({"requests": {"cpu": "100m"}}, initContainers=[init])


@pytest.mark.parametrize("more", [{}, {"restartPolicy": "Always"}])
def test_init_containers_and_sidecars_resize_too(more: Document) -> None:
    bench = with_init(**more)
    pod = bench.pod()
    resources_of(pod, field="initContainers")["requests"]["cpu"] = "80m"
    assert resources_of(bench.resize(pod), field="initContainers") == {"requests": {"cpu": "80m"}}


def test_other_resources_of_init_containers_are_immutable() -> None:
    bench = with_init()
    pod = bench.pod()
    resources_of(pod, field="initContainers")["requests"]["ephemeral-storage"] = "1Gi"
    why = "only cpu and memory resources for init or sidecar containers are mutable"
    assert refused(bench, pod) == f"spec.initContainers[0]: Forbidden: {why}"


def test_a_stored_ordinary_init_container_that_restarts_on_resize_cannot_be_resized() -> None:
    bench = with_init()
    stored = bench.pod()
    stored["spec"]["initContainers"][0]["resizePolicy"] = POLICY
    bench.put("pods", stored)
    pod = bench.pod()
    resources_of(pod, field="initContainers")["requests"]["cpu"] = "80m"
    why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    assert refused(bench, pod) == f"spec.initContainers[0]: Forbidden: {why}"
    pod = bench.pod()
    resources_of(pod)["requests"]["cpu"] = "200m"
    assert bench.resize(pod)["metadata"]["generation"] == 2


def test_claims_make_a_pod_unresizable() -> None:
    bench = a_bench(
        {"requests": {"cpu": "100m"}, "claims": [{"name": "x"}]}, resourceClaims=[{"name": "x", "resourceClaimName": "y"}]
    )
    pod = bench.pod()
    resources_of(pod)["requests"]["cpu"] = "200m"
    assert refused(bench, pod) == "spec: Forbidden: only cpu and memory resources are mutable"


def with_level(**gates: bool) -> Bench:
    bench = Bench(profile_of("v1.37", gates))
    level = {"requests": {"cpu": "300m", "memory": "128Mi"}, "limits": {"cpu": "600m", "memory": "256Mi"}}
    container = {"name": "c", "image": IMAGE, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    bench.create({"metadata": {"name": "a"}, "spec": {"containers": [container], "resources": level}})
    return bench


def test_pod_level_resources_resize() -> None:
    bench = with_level()
    pod = bench.pod()
    pod["spec"]["resources"]["limits"]["cpu"] = "800m"
    assert bench.resize(pod)["spec"]["resources"]["limits"] == {"cpu": "800m", "memory": "256Mi"}


def test_pod_level_resources_cannot_be_removed() -> None:
    bench = with_level()
    pod = bench.pod()
    del pod["spec"]["resources"]["limits"]["memory"]
    assert refused(bench, pod) == "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"
    del pod["spec"]["resources"]["limits"]
    del pod["spec"]["resources"]["requests"]["memory"]
    assert "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed" in refused(bench, pod)
    del pod["spec"]["resources"]
    assert refused(bench, pod) == "spec.resources: Forbidden: pod-level resources cannot be removed"


def test_pod_level_resources_may_be_added() -> None:
    bench = a_bench({"requests": {"cpu": "100m"}})
    pod = bench.pod()
    pod["spec"]["resources"] = {"requests": {"cpu": "1"}}
    assert bench.resize(pod)["spec"]["resources"] == {"requests": {"cpu": "1"}}


def test_without_its_gate_no_pod_with_pod_level_resources_resizes() -> None:
    bench = with_level(InPlacePodLevelResourcesVerticalScaling=False)
    assert refused(bench, bench.pod()) == (
        "[]: Forbidden: resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled "
        "feature gate is disabled"
    )
