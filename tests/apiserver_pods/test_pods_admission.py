"""The admission chain: what it fills in, what it refuses, and what it charges."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pods_bench import Bench, Document, Refused

from elbowroom.api.gates import profile_of
from elbowroom.api.quantity import milli_of
from elbowroom.apiserver.admission import chain
from elbowroom.apiserver.admission_base import Attributes

IMAGE = "registry.k8s.io/pause:3.10"


def a_pod(name: str = "a", resources: Document | None = None, **spec: Any) -> Document:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": IMAGE, "resources": resources or {}}], **spec},
    }


def requests(cpu: str) -> Document:
    return {"requests": {"cpu": cpu}}


def refused(bench: Bench, pod: Document, subresource: str = "", *, create: bool = True) -> str:
    with pytest.raises(Refused) as caught:
        if create:
            bench.create(pod)
        else:
            bench.update(pod, subresource)
    assert caught.value.code == 403
    name = pod["metadata"]["name"]
    return caught.value.message.removeprefix(f'pods "{name}" is forbidden: ')


def resized(bench: Bench, name: str = "a", /, **amounts: str) -> Document:
    """The stored pod with other requests, to be sent to /resize."""
    pod = bench.pod(name)
    pod["spec"]["containers"][0]["resources"]["requests"] |= amounts
    return pod


def test_the_chain_stands_in_upstreams_order() -> None:
    assert [plugin.name for plugin in chain(profile_of("v1.37"))] == [
        "NamespaceLifecycle",
        "LimitRanger",
        "NodeRestriction",
        "TaintNodesByCondition",
        "Priority",
        "DefaultTolerationSeconds",
        "RuntimeClass",
        "NodeDeclaredFeatureValidator",
        "PodResizeValidator",
        "ResourceQuota",
    ]


# ---------------------------------------------------------------- namespaces, nodes, priorities


def test_nothing_is_created_in_a_namespace_that_is_missing_or_on_its_way_out() -> None:
    bench = Bench()
    pod = a_pod()
    pod["metadata"]["namespace"] = "nowhere"
    with pytest.raises(Refused) as caught:
        bench.create(pod)
    assert (caught.value.code, caught.value.message) == (404, 'namespaces "nowhere" not found')
    bench.put("namespaces", {"metadata": {"name": "ns"}, "status": {"phase": "Terminating"}})
    assert refused(bench, a_pod()) == "unable to create new content in namespace ns because it is being terminated"


def test_some_namespaces_are_for_ever() -> None:
    refusal = Bench().admit(Attributes("DELETE", "namespaces", "", "", "kube-system", None, None))
    assert refusal is not None and refusal.message == "this namespace may not be deleted"
    assert Bench().admit(Attributes("DELETE", "namespaces", "", "", "ns", None, None)) is None


def test_a_new_node_is_tainted_until_it_was_seen_ready() -> None:
    node: Document = {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "gc", "effect": "NoSchedule"}]}}
    for _ in range(2):
        assert Bench().admit(Attributes("CREATE", "nodes", "", "", "n", node, None)) is None
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["gc", "node.kubernetes.io/not-ready"]


def with_classes(*classes: Document) -> Bench:
    bench = Bench()
    for one in classes:
        bench.put("priorityclasses.scheduling.k8s.io", one)
    return bench


HIGH = {"metadata": {"name": "high"}, "value": 10000, "preemptionPolicy": "Never"}
NORMAL = {"metadata": {"name": "normal"}, "value": 5, "globalDefault": True}


def test_priority_and_policy_come_from_the_class() -> None:
    bench = with_classes(HIGH, NORMAL)
    spec = bench.create(a_pod(priorityClassName="high"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (10000, "Never")
    spec = bench.create(a_pod("b"))["spec"]
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == ("normal", 5, "PreemptLowerPriority")


def test_a_creator_cannot_state_another_priority() -> None:
    bench = with_classes(HIGH)
    assert refused(bench, a_pod(priorityClassName="none")) == "no PriorityClass with name none was found"
    assert refused(bench, a_pod(priorityClassName="high", priority=5)) == (
        "the integer value of priority (5) must not be provided in pod spec; "
        "priority admission controller computed 10000 from the given PriorityClass name"
    )
    assert refused(bench, a_pod(priorityClassName="high", preemptionPolicy="PreemptLowerPriority")) == (
        "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; "
        "priority admission controller computed Never from the given PriorityClass name"
    )


def test_there_is_one_default_class() -> None:
    bench = with_classes(NORMAL)
    other = {"metadata": {"name": "other"}, "globalDefault": True}
    refusal = bench.admit(Attributes("CREATE", "priorityclasses.scheduling.k8s.io", "", "", "other", other, None))
    assert refusal is not None
    assert refusal.message == "PriorityClass normal is already marked as default. Only one default can exist"
    again = Attributes("UPDATE", "priorityclasses.scheduling.k8s.io", "", "", "normal", dict(NORMAL), NORMAL)
    assert bench.admit(again) is None


def test_a_toleration_of_ones_own_is_left_alone() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    tolerations = Bench().create(a_pod(tolerations=[own]))["spec"]["tolerations"]
    assert [(one["key"], one["tolerationSeconds"]) for one in tolerations] == [
        ("node.kubernetes.io/not-ready", 5),
        ("node.kubernetes.io/unreachable", 300),
    ]
    everything = Bench().create(a_pod(tolerations=[{"operator": "Exists"}]))["spec"]["tolerations"]
    assert everything == [{"operator": "Exists"}]


def test_a_runtime_class_must_exist() -> None:
    assert refused(Bench(), a_pod(runtimeClassName="none")) == 'pod rejected: RuntimeClass "none" not found'


# ---------------------------------------------------------------- limit ranges


def with_limits(*limits: Document) -> Bench:
    bench = Bench()
    bench.put("limitranges", {"metadata": {"name": "lr", "namespace": "ns"}, "spec": {"limits": list(limits)}})
    return bench


def test_a_limit_range_fills_in_what_containers_leave_open() -> None:
    bench = with_limits({"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m", "memory": "64Mi"}})
    pod = bench.create(a_pod(resources=requests("50m")))
    assert pod["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m"},
        "requests": {"cpu": "50m", "memory": "64Mi"},
    }
    annotation = pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    assert annotation == "LimitRanger plugin set: memory request for container c; cpu limit for container c"


CONTAINER = {"type": "Container", "max": {"cpu": "500m", "memory": "256Mi"}, "min": {"cpu": "50m", "memory": "32Mi"}}
FILLED = CONTAINER | {"default": CONTAINER["max"], "defaultRequest": CONTAINER["max"]}
PER_POD = {"type": "Pod", "max": {"cpu": "450m"}}


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (
            {"limits": {"cpu": "600m", "memory": "64Mi"}, "requests": {"cpu": "100m"}},
            "[maximum cpu usage per Container is 500m, but limit is 600m, maximum cpu usage per Pod is 450m, but limit is 600m]",
        ),
        (
            {"limits": {"cpu": "400m", "memory": "64Mi"}, "requests": {"memory": "16Mi"}},
            "minimum memory usage per Container is 32Mi, but request is 16Mi",
        ),
        (
            {"limits": {"cpu": "400m", "memory": "512Mi"}, "requests": {"cpu": "10m", "memory": "64Mi"}},
            "[minimum cpu usage per Container is 50m, but request is 10m, "
            "maximum memory usage per Container is 256Mi, but limit is 512Mi]",
        ),
        (
            {"limits": {"cpu": "480m", "memory": "64Mi"}},
            "maximum cpu usage per Pod is 450m, but limit is 480m",
        ),
    ],
)
def test_a_limit_range_bounds_containers_and_pods(resources: Document, message: str) -> None:
    assert refused(with_limits(FILLED, PER_POD), a_pod(resources=resources)) == message


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({}, "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"),
        (requests("1"), "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"),
        (
            {"requests": {"cpu": "300m"}, "limits": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.333333",
        ),
    ],
)
def test_a_limit_range_bounds_the_ratio(resources: Document, message: str) -> None:
    assert refused(with_limits({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}), a_pod(resources=resources)) == message


@pytest.mark.parametrize(
    ("bound", "resources", "message"),
    [
        (
            {"maxLimitRequestRatio": {"cpu": "4"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "12E"}},
            "cpu max limit to request ratio per Container is 4, but no limit is specified or limit is 0",
        ),
        (
            {"min": {"cpu": "80m"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "12E"}},
            "minimum cpu usage per Container is 80m, but limit is 12E",
        ),
        (
            {"max": {"memory": "9E"}},
            {"requests": {"memory": "1"}, "limits": {"memory": "9000000000000000001"}},
            "maximum memory usage per Container is 9E, but limit is 9000000000000000001",
        ),
        (
            {"maxLimitRequestRatio": {"memory": "2"}},
            {"requests": {"memory": "3P"}, "limits": {"memory": "9P"}},
            "memory max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
    ],
)
def test_a_limit_range_reads_what_64_bits_cannot_hold_as_zero(bound: Document, resources: Document, message: str) -> None:
    assert refused(with_limits({"type": "Container", **bound}), a_pod(resources=resources)) == message


def test_a_limit_range_bounds_what_is_absent() -> None:
    bench = with_limits({"type": "Pod", "max": {"cpu": "1"}, "min": {"memory": "1Mi"}})
    assert refused(bench, a_pod()) == (
        "[minimum memory usage per Pod is 1Mi.  No request is specified, maximum cpu usage per Pod is 1.  No limit is specified]"
    )


def test_a_limit_range_holds_on_resize_but_not_on_plain_updates_or_the_dying() -> None:
    bench = Bench()
    bench.create(a_pod(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}))
    bench.put(
        "limitranges",
        {"metadata": {"name": "lr", "namespace": "ns"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": "500m"}}]}},
    )
    pod = bench.pod()
    pod["metadata"]["labels"] = {"x": "y"}
    bench.update(pod)
    assert refused(bench, resized(bench, cpu="200m"), "resize", create=False) == "maximum cpu usage per Pod is 500m, but limit is 1"
    dying = bench.pod()
    dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    bench.put("pods", dying)
    assert bench.resize(resized(bench, cpu="200m"))["metadata"]["generation"] == 2


# ---------------------------------------------------------------- resizes and the node


def with_node(profile: str = "v1.37", **node: Any) -> Bench:
    """A pod of 500m and 256Mi bound to ``n1`` (4 CPUs, 8Gi)."""
    bench = Bench(profile_of(profile))
    status = {"allocatable": {"cpu": "4", "memory": "8Gi"}, "declaredFeatures": node.pop("features", [])}
    bench.put("nodes", {"metadata": {"name": "n1", "labels": node.pop("labels", {})}, "status": status})
    inits = [{"name": "i", "image": IMAGE, "resources": requests("50m")}]
    resources = {"requests": {"cpu": "500m", "memory": "256Mi"}}
    bench.create(a_pod(resources=resources, nodeName="n1", initContainers=inits, **node))
    return bench


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({"cpu": "5"}, "cpu, requested: 5000, allocatable: 4000"),
        ({"memory": "10Gi"}, "memory, requested: 10737418240, allocatable: 8589934592"),
        (
            {"cpu": "5", "memory": "10Gi"},
            "cpu, requested: 5000, allocatable: 4000; memory, requested: 10737418240, allocatable: 8589934592",
        ),
        ({"memory": "100E"}, "memory, requested: 0, allocatable: 8589934592"),
        ({"cpu": "4.0001"}, "cpu, requested: 4001, allocatable: 4000"),
    ],
)
def test_a_resize_above_the_nodes_allocatable_is_refused_in_v137(amounts: dict[str, str], message: str) -> None:
    bench = with_node()
    assert (
        refused(bench, resized(bench, **amounts), "resize", create=False)
        == f"node didn't have enough allocatable resources: {message}"
    )


def test_a_resize_above_the_nodes_allocatable_is_the_kubelets_business_in_the_lab() -> None:
    bench = with_node("lab")
    assert bench.resize(resized(bench, cpu="5"))["metadata"]["generation"] == 2


def test_the_node_must_exist_and_run_linux_unless_nothing_changes() -> None:
    bench = with_node(labels={"kubernetes.io/os": "windows"})
    why = 'pod resize is only supported on linux nodes, node "n1" is "windows"'
    assert refused(bench, resized(bench, cpu="1"), "resize", create=False) == why
    del bench.stored[("nodes", "", "n1")]
    assert refused(bench, resized(bench, cpu="1"), "resize", create=False) == 'node "n1" not found'
    assert bench.resize(bench.pod())["metadata"]["generation"] == 1


def test_resizing_an_ordinary_init_container_or_the_pod_needs_a_feature_of_the_node() -> None:
    bench = with_node()
    pod = bench.pod()
    pod["spec"]["initContainers"][0]["resources"]["requests"]["cpu"] = "80m"
    pod["spec"]["resources"] = {"requests": {"cpu": "1"}}
    both = "InPlacePodLevelResourcesVerticalScaling, InPlacePodVerticalScalingInitContainers"
    why = f'pod update requires features {both} which are not available on node "n1"'
    assert refused(bench, pod, "resize", create=False) == why
    able = with_node(features=both.split(", "))
    pod["metadata"] = able.pod()["metadata"]
    assert able.resize(pod)["metadata"]["generation"] == 2


# ---------------------------------------------------------------- quotas


def with_quota(hard: Document, used: Document | None = None, **spec: Any) -> Bench:
    bench = Bench()
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
    bench.put("resourcequotas", {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": hard, **spec}, "status": status})
    return bench


def used(bench: Bench) -> Any:
    return bench.stored[("resourcequotas", "ns", "q")]["status"]["used"]


def test_a_create_is_charged_in_the_same_step() -> None:
    bench = with_quota({"requests.cpu": "300m", "pods": "3", "limits.memory": "200Mi"})
    bench.create(a_pod(resources={"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}))
    assert used(bench) == {"requests.cpu": "200m", "pods": "1", "limits.memory": "128Mi"}


def test_a_dry_run_is_judged_and_not_charged() -> None:
    bench = with_quota({"pods": "1"})
    bench.create(a_pod(), dry_run=True)
    assert used(bench) == {"pods": "0"}


def test_a_resize_is_charged_for_what_it_adds() -> None:
    bench = with_quota({"requests.cpu": "300m"})
    bench.create(a_pod(resources=requests("200m")))
    assert refused(bench, resized(bench, cpu="350m"), "resize", create=False) == (
        "exceeded quota: q, requested: requests.cpu=150m, used: requests.cpu=200m, limited: requests.cpu=300m"
    )
    bench.resize(resized(bench, cpu="300m"))
    assert used(bench) == {"requests.cpu": "300m"}
    bench.resize(resized(bench, cpu="100m"))
    assert used(bench) == {"requests.cpu": "300m"}, "it drops when the controller counts anew"


def test_all_exceeded_resources_are_told_in_order() -> None:
    bench = with_quota({"requests.cpu": "1", "limits.memory": "200Mi", "pods": "5"})
    pod = a_pod(resources={"requests": {"cpu": "2"}, "limits": {"memory": "300Mi"}})
    assert refused(bench, pod) == (
        "exceeded quota: q, requested: limits.memory=300Mi,requests.cpu=2, used: limits.memory=0,requests.cpu=0, "
        "limited: limits.memory=200Mi,requests.cpu=1"
    )


def test_a_quota_wants_containers_to_say_what_they_take() -> None:
    bench = with_quota({"requests.cpu": "1", "limits.memory": "1Gi"})
    assert refused(bench, a_pod(resources=requests("1"))) == "failed quota: q: must specify limits.memory for: c"


def test_a_quota_that_was_never_counted_lets_nothing_pass() -> None:
    assert refused(with_quota({"pods": "5"}, used={}), a_pod()) == "status unknown for quota: q, resources: pods"


def test_a_quota_without_status_binds_nobody_yet() -> None:
    bench = Bench()
    bench.put("resourcequotas", {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": {"pods": "0"}}})
    assert bench.create(a_pod())


def test_a_scoped_quota_binds_only_those_in_scope() -> None:
    bench = with_quota({"pods": "0"}, scopes=["BestEffort"])
    assert refused(bench, a_pod()) == "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
    assert bench.create(a_pod(resources=requests("1")))


def test_other_objects_are_counted() -> None:
    bench = with_quota({"configmaps": "1", "count/configmaps": "5"})
    config: Document = {"metadata": {"name": "m", "namespace": "ns"}}
    create = Attributes("CREATE", "configmaps", "", "ns", "m", config, None)
    assert bench.admit(create) is None
    assert used(bench) == {"configmaps": "1", "count/configmaps": "1"}
    refusal = bench.admit(create)
    assert refusal is not None
    assert refusal.message == "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1"


def test_an_infeasible_resize_is_not_charged_for_its_next_request() -> None:
    bench = with_quota({"requests.cpu": "1"})
    bench.create(a_pod(resources=requests("500m")))
    stored = bench.pod()
    stored["status"] |= {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "500m"}, "resources": requests("500m")}],
    }
    bench.put("pods", stored)
    assert bench.resize(resized(bench, cpu="5"))["metadata"]["generation"] == 2
    assert used(bench) == {"requests.cpu": "500m"}


def test_a_count_that_lags_behind_what_is_stored_is_not_believed() -> None:
    bench = with_quota({"pods": "2"})
    bench.create(a_pod("a"))
    bench.create(a_pod("b"))
    quota = bench.stored[("resourcequotas", "ns", "q")]
    bench.put("resourcequotas", {**quota, "status": {**quota["status"], "used": {"pods": "1"}}})
    assert refused(bench, a_pod("c")) == "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"


steps = st.lists(
    st.tuples(st.sampled_from(["create", "resize", "delete", "stale"]), st.integers(0, 3), st.integers(1, 6)),
    min_size=1,
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_what_was_accepted_never_passes_hard(plan: list[tuple[str, int, int]]) -> None:
    bench = with_quota({"requests.cpu": "10"})
    for kind, which, cpu in plan:
        name = f"p{which}"
        exists = ("pods", "ns", name) in bench.stored
        try:
            if kind == "create" and not exists:
                bench.create(a_pod(name, requests(str(cpu))))
            elif kind == "resize" and exists:
                bench.resize(resized(bench, name, cpu=str(cpu)))
            elif kind == "delete" and exists:
                del bench.stored[("pods", "ns", name)]
            elif kind == "stale":
                quota = bench.stored[("resourcequotas", "ns", "q")]
                bench.put("resourcequotas", {**quota, "status": {**quota["status"], "used": {"requests.cpu": str(cpu - 1)}}})
        except Refused as why:
            assert "exceeded quota: q" in why.message
        desired = [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in bench.list("pods", "ns")]
        assert sum(map(milli_of, desired)) <= 10_000
