"""Resources of the pod as a whole: what is defaulted from what (PL-4 to PL-8), and what is refused (PL-9 to PL-11)."""

from typing import Any

import pytest
from pods_bench import Bench, Document, Refused

from elbowroom.api.gates import profile_of

IMAGE = "registry.k8s.io/pause:3.10"
DELAY = "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay"


def a_pod(*containers: Document, level: Any = None, **spec: Any) -> Document:
    made = [{"name": f"c{index}", "image": IMAGE, "resources": own} for index, own in enumerate(containers or ({},))]
    whole = {} if level is None else {"resources": level}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": made, **whole, **spec}}


def level_of(pod: Document, bench: Bench | None = None) -> Any:
    return (bench or Bench()).create(pod)["spec"].get("resources")


def causes(pod: Document, bench: Bench | None = None) -> list[tuple[str, str]]:
    with pytest.raises(Refused) as caught:
        (bench or Bench()).create(pod)
    assert caught.value.code == 422
    return caught.value.causes


LIMIT, REQUEST = {"limits": {"cpu": "2"}}, {"requests": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("level", "containers", "expected"),
    [
        (None, [{"limits": {"cpu": "1"}}], None),
        (LIMIT, [{}], {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}),
        (LIMIT, [{"limits": {"cpu": "500m"}}, {}], {"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}}),
        (
            LIMIT,
            [{"requests": {"cpu": "300m"}}, {"requests": {"cpu": "200m"}}],
            {"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}},
        ),
        (REQUEST, [{}], {"requests": {"cpu": "2"}}),
        (REQUEST, [{"requests": {"cpu": "1"}}], {"requests": {"cpu": "2"}}),
        (
            {"requests": {"cpu": "1"}},
            [{"requests": {"cpu": "0"}, "limits": {"cpu": "500m"}}, {"limits": {"cpu": "1"}}],
            {"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}},
        ),
        (REQUEST, [{"limits": {"cpu": "500m"}}, {}], {"requests": {"cpu": "2"}}),
        (REQUEST, [{"limits": {"cpu": "500m"}}, {"limits": {"memory": "1Gi"}}], {"requests": {"cpu": "2"}}),
        ({**LIMIT, **REQUEST}, [{"limits": {"cpu": "1"}}], {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}),
        ({}, [{"limits": {"cpu": "1"}}], {}),
    ],
)
def test_what_the_pod_says_not_is_defaulted_from_its_containers(level: Any, containers: list[Document], expected: Any) -> None:
    assert level_of(a_pod(*containers, level=level)) == expected


def test_without_its_gate_no_limit_is_defaulted() -> None:
    bench = Bench(profile_of("v1.37", {"PodLevelResourcesFixDefaulting": False}))
    assert level_of(a_pod({"limits": {"cpu": "1"}}, level={"requests": {"cpu": "1"}}), bench) == {"requests": {"cpu": "1"}}


def test_an_init_container_without_a_limit_keeps_the_pod_unlimited() -> None:
    pod = a_pod({"limits": {"cpu": "1"}}, level={"requests": {"cpu": "1"}}, initContainers=[{"name": "i", "image": IMAGE}])
    assert level_of(pod) == {"requests": {"cpu": "1"}}


def test_limits_that_a_limit_range_gives_the_containers_count() -> None:
    bench = Bench()
    bench.put(
        "limitranges",
        {"metadata": {"name": "l", "namespace": "ns"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    )
    made = bench.create(a_pod({}, {}, level={"requests": {"cpu": "2"}}))["spec"]
    assert made["resources"] == {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}


def test_a_manifest_sent_again_keeps_the_limits_that_were_defaulted() -> None:
    bench = Bench()
    manifest = a_pod({"limits": {"cpu": "1"}}, level={"requests": {"cpu": "1"}})
    made = bench.create(manifest)
    again = bench.update({**manifest, "spec": {**made["spec"], "resources": {"requests": {"cpu": "1"}}}})
    assert again["spec"]["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}


def test_a_resize_that_adds_a_pod_level_request_gets_its_limit_too() -> None:
    bench = Bench()
    bench.create(a_pod({"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}))
    pod = bench.pod()
    pod["spec"]["resources"] = {"requests": {"cpu": "1"}}
    assert bench.resize(pod)["spec"]["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("level", "containers", "field", "message"),
    [
        (
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            [{"requests": {"cpu": "1"}}, {"requests": {"cpu": "500m"}}],
            "spec.resources.requests[cpu]",
            "must be greater than or equal to aggregate container requests of 1500m",
        ),
        (
            {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}},
            [{}],
            "spec.resources.requests",
            "must be less than or equal to cpu limit of 2",
        ),
        (
            {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
            [{"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}],
            "spec.resources.containers[0][cpu].limits",
            "must be less than or equal to pod limits of 1",
        ),
        (
            {"limits": {"memory": "100Gi"}},
            [{"limits": {"memory": "60Gi"}}, {"limits": {"memory": "60Gi"}}],
            "spec.resources.requests",
            "must be less than or equal to memory limit of 100Gi",
        ),
        (
            {"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}, "limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}},
            [{"requests": {"cpu": "1"}, "limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}}],
            "spec.resources.limits[hugepages-2Mi]",
            "must be greater than or equal to aggregate container limits of 4Mi",
        ),
        (
            {"requests": {"ephemeral-storage": "1Gi"}},
            [{}],
            "spec.resources.requests[ephemeral-storage]",
            'Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"',
        ),
    ],
)
def test_what_pod_level_resources_may_not_say(level: Any, containers: list[Document], field: str, message: str) -> None:
    found = dict(causes(a_pod(*containers, level=level)))
    assert message in found[field]


def test_the_sum_of_the_containers_limits_may_exceed_the_pods() -> None:
    own = {"requests": {"cpu": "100m"}, "limits": {"cpu": "800m"}}
    assert level_of(a_pod(own, own, level={"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}))


def test_windows_pods_and_claims_have_no_pod_level_resources() -> None:
    windows = a_pod(level={"requests": {"cpu": "1"}}, os={"name": "windows"})
    assert ("spec.resources", "Forbidden: may not be set for a windows pod") in causes(windows)
    claims = a_pod(level={"claims": [{"name": "x"}]}, resourceClaims=[{"name": "x", "resourceClaimName": "y"}])
    assert ("spec.resources.claims", "Forbidden: claims may not be set for Resources at pod-level") in causes(claims)


LEVEL_GATES = (
    *("PodLevelResources", "PodLevelResourcesFixDefaulting", "PodLevelResourcesFixKubeletQOSClass"),
    "InPlacePodLevelResourcesVerticalScaling",
)


def test_without_the_gate_pod_level_resources_are_dropped_and_kept_where_they_are() -> None:
    bench = Bench()
    bench.create(a_pod({"requests": {"cpu": "1"}}, level={"requests": {"cpu": "2"}}))
    off = Bench(profile_of("v1.37", dict.fromkeys(LEVEL_GATES, False)), stored=bench.stored)
    made = off.create({**a_pod({"requests": {"cpu": "1"}}, level={"requests": {"cpu": "2"}}), "metadata": {"name": "b"}})
    assert "resources" not in made["spec"] and made["status"]["qosClass"] == "Burstable"
    pod = off.pod()
    pod["metadata"]["labels"] = {"a": "b"}
    assert off.update(pod)["spec"]["resources"] == {"requests": {"cpu": "2"}}
    added = off.pod("b")
    added["spec"]["resources"] = {"requests": {"cpu": "2"}}
    assert "resources" not in off.resize(added)["spec"]


def test_without_the_resize_gate_nobody_begins_to_tell_of_the_pod_as_a_whole() -> None:
    bench = Bench()
    bench.create(a_pod(level={"requests": {"cpu": "2"}}))
    off = Bench(profile_of("v1.37", {"InPlacePodLevelResourcesVerticalScaling": False}), stored=bench.stored)
    told = {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}
    status = off.update({**off.pod(), "status": {**off.pod()["status"], **told}}, "status")["status"]
    assert "resources" not in status and "allocatedResources" not in status
    bench.update({**bench.pod(), "status": {**bench.pod()["status"], **told}}, "status")
    assert off.update({**off.pod(), "status": {**off.pod()["status"], **told}}, "status")["status"]["allocatedResources"]


# ---------------------------------------------------------------- the delay of a scale down


@pytest.mark.parametrize("seconds", [0, 5, 10])
def test_a_pod_may_ask_for_ten_seconds_at_most_to_leave_its_cpus(seconds: int) -> None:
    made = Bench(profile_of("lab")).create(a_pod(scaleDownGracePeriodSeconds=seconds))
    assert made["spec"]["scaleDownGracePeriodSeconds"] == seconds


@pytest.mark.parametrize("seconds", [-1, 11])
def test_a_longer_or_a_negative_one_is_refused(seconds: int) -> None:
    assert causes(a_pod(scaleDownGracePeriodSeconds=seconds), Bench(profile_of("lab"))) == [
        ("spec.scaleDownGracePeriodSeconds", f"Invalid value: {seconds}: must be between 0 and 10, inclusive")
    ]


def test_without_the_gate_it_is_refused_and_a_pod_that_has_it_goes_on() -> None:
    bench = Bench(profile_of("lab"))
    bench.create(a_pod(scaleDownGracePeriodSeconds=5))
    off = Bench(profile_of("lab", {DELAY: False}), stored=bench.stored)
    assert causes({**a_pod(scaleDownGracePeriodSeconds=5), "metadata": {"name": "b"}}, off) == [
        ("spec.scaleDownGracePeriodSeconds", f"Forbidden: may not be set when the {DELAY} feature gate is disabled")
    ]
    pod = off.pod()
    pod["metadata"]["labels"] = {"a": "b"}
    assert off.update(pod)["spec"]["scaleDownGracePeriodSeconds"] == 5


def test_it_cannot_be_changed_not_even_by_a_resize() -> None:
    bench = Bench(profile_of("lab"))
    bench.create(a_pod({"requests": {"cpu": "1"}}, scaleDownGracePeriodSeconds=5))
    pod = bench.pod()
    pod["spec"]["scaleDownGracePeriodSeconds"] = 6
    with pytest.raises(Refused, match="pod updates may not change fields"):
        bench.update(pod)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert bench.resize(pod)["spec"]["scaleDownGracePeriodSeconds"] == 5
