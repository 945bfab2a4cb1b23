"""What the scheduler's /metrics tells: upstream's names, labels and buckets, and what each of them counts."""

import re
from typing import Any

import pytest
from scheduler_cluster import Cluster, deferred, node, pod
from scheduler_worlds import scores

from elbowroom.api.gates import profile_of
from elbowroom.scheduler.metrics import Metrics

FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "schedule_attempts_total": ("counter", ("result", "profile")),
    "scheduling_attempt_duration_seconds": ("histogram", ("result", "profile")),
    "scheduling_algorithm_duration_seconds": ("histogram", ()),
    "preemption_attempts_total": ("counter", ()),
    "preemption_victims": ("histogram", ()),
    "pending_pods": ("gauge", ("queue",)),
    "queue_incoming_pods_total": ("counter", ("queue", "event")),
    "unschedulable_pods": ("gauge", ("plugin", "profile")),
    "plugin_evaluation_total": ("counter", ("plugin", "extension_point", "profile")),
    "plugin_execution_duration_seconds": ("histogram", ("plugin", "extension_point", "status")),
    "framework_extension_point_duration_seconds": ("histogram", ("extension_point", "status", "profile")),
    "queueing_hint_execution_duration_seconds": ("histogram", ("plugin", "event", "hint")),
    "inflight_events": ("gauge", ("event",)),
    "event_handling_duration_seconds": ("histogram", ("event",)),
    "permit_wait_duration_seconds": ("histogram", ("result",)),
    "pod_scheduling_sli_duration_seconds": ("histogram", ("attempts",)),
    "pod_scheduling_attempts": ("histogram", ()),
    "pod_scheduled_after_flush_total": ("counter", ()),
    "cache_size": ("gauge", ("type",)),
    "goroutines": ("gauge", ("operation",)),
    "preemption_goroutines_duration_seconds": ("histogram", ("result",)),
    "preemption_goroutines_execution_total": ("counter", ("result",)),
}
BUCKETS = {
    "scheduling_attempt_duration_seconds": (0.001, 16.384, 15),
    "framework_extension_point_duration_seconds": (0.0001, 0.2048, 12),
    "event_handling_duration_seconds": (0.0001, 0.2048, 12),
    "plugin_execution_duration_seconds": (0.00001, 0.022168, 20),
    "queueing_hint_execution_duration_seconds": (0.00001, 0.022168, 20),
    "preemption_victims": (1, 64, 7),
    "pod_scheduling_attempts": (1, 16, 5),
    "pod_scheduling_sli_duration_seconds": (0.01, 5242.88, 20),
    "preemption_goroutines_duration_seconds": (0.01, 5242.88, 20),
}


def families(metrics: Metrics) -> dict[str, Any]:
    return {
        each.name.removeprefix("scheduler_") + ("_total" if each.type == "counter" else ""): each
        for each in metrics.registry.collect()
    }


def exposed(cluster: Cluster, name: str) -> dict[str, float]:
    """The samples of one series, by their labels as text."""
    prefix = f"scheduler_{name}"
    found = {key: value for key, value in cluster.metrics().items() if re.fullmatch(rf"{prefix}(\{{.*\}})?", key)}
    return {key.removeprefix(prefix): value for key, value in found.items()}


def test_the_families_are_upstreams() -> None:
    found = families(Metrics(publishes_preemptions=False))
    assert {name: each.type for name, each in found.items()} == {name: kind for name, (kind, _) in FAMILIES.items()}


def test_lab_has_one_more_and_a_gate_that_is_off_hides_its_series() -> None:
    assert set(families(Metrics(publishes_preemptions=True))) - set(FAMILIES) == {"preemptions_total"}
    hidden = set(FAMILIES) - set(families(Metrics(publishes_preemptions=False, queueing_hints=False, async_preemption=False)))
    assert hidden == {
        "queueing_hint_execution_duration_seconds",
        "inflight_events",
        "preemption_goroutines_duration_seconds",
        "preemption_goroutines_execution_total",
    }


@pytest.fixture(scope="module")
def busy() -> Cluster:
    """A pod that is bound, one that is refused, a resize that preempts, one that fits; and a round under way."""
    cluster = Cluster("v1.37").nodes(node("n1", cpu="300m"), node("n2"), node("n3", cpu="100m"))
    cluster.pods(pod("a", cpu="1"), pod("big", cpu="50")).settle()
    cluster.pods(deferred("fits", "n3", "100m", "50m", 5), pod("low", node="n1", cpu="200m"))
    cluster.pods(deferred("high", "n1", "300m", "100m", 10000)).settle()
    cluster.gone("low")
    cluster.later(3)
    return cluster


def test_the_labels_are_upstreams(busy: Cluster) -> None:
    unseen = {"permit_wait_duration_seconds", "inflight_events"}  # nobody waits for a permit; nobody is in flight
    told = {name for name in FAMILIES if FAMILIES[name][1]}
    for name in sorted(told - unseen):
        suffix = "_count" if FAMILIES[name][0] == "histogram" else ""
        labels = [tuple(re.findall(r"(\w+)=", key)) for key in exposed(busy, name + suffix)]
        assert labels and {tuple(sorted(each)) for each in labels} == {tuple(sorted(FAMILIES[name][1]))}, name


def test_the_buckets_are_upstreams(busy: Cluster) -> None:
    for name, (first, last, count) in BUCKETS.items():
        one = next(iter(exposed(busy, f"{name}_count")), "")
        edges = [
            float(found.group(1))
            for key in exposed(busy, f"{name}_bucket")
            if (found := re.search(r'le="([^"]+)"', key)) and found.group(1) != "+Inf" and _same(key, one)
        ]
        assert (len(edges), edges[0]) == (count, pytest.approx(first)), name
        assert edges[-1] == pytest.approx(last, rel=1e-3), name


def _same(key: str, one: str) -> bool:
    return set(re.findall(r'(\w+="[^"]*")', one)) <= set(re.findall(r'(\w+="[^"]*")', key))


def test_attempts_count_by_their_end_and_deferred_ones_too(busy: Cluster) -> None:
    attempts = exposed(busy, "schedule_attempts_total")
    assert attempts['{profile="default-scheduler",result="scheduled"}'] == 1
    assert attempts['{profile="default-scheduler",result="unschedulable"}'] >= 3, "big, fits, and high twice"
    assert exposed(busy, "preemption_attempts_total")[""] == 3, "high, and big again when a pod went"
    assert exposed(busy, "preemption_victims_count")[""] == 1
    assert exposed(busy, "pod_scheduling_attempts_sum")[""] == 1


def test_each_extension_point_that_an_attempt_went_through_is_told(busy: Cluster) -> None:
    found = exposed(busy, "framework_extension_point_duration_seconds_count")
    told = {tuple(re.findall(r'(?:extension_point|status)="([^"]*)"', key)) for key in found}
    assert told == {
        ("PreFilter", "Success"),
        ("Filter", "Success"),
        ("Reserve", "Success"),
        ("Permit", "Success"),
        ("Permit", "UnschedulableAndUnresolvable"),
        ("PostFilter", "Success"),
        ("PostFilter", "Unschedulable"),
        ("PreBind", "Success"),
        ("Bind", "Success"),
        ("PostBind", "Success"),
    }


def test_a_filter_is_counted_for_each_node_up_to_the_one_that_refuses_it() -> None:
    cluster = Cluster().nodes(node("n1", unschedulable=True), node("n2", cpu="1"), node("n3"), node("n4"))
    cluster.pods(pod("a", cpu="2")).settle()
    found = exposed(cluster, "plugin_evaluation_total")

    def of(plugin: str, point: str) -> float:
        return found.get(f'{{extension_point="{point}",plugin="{plugin}",profile="default-scheduler"}}', 0)

    assert of("NodeUnschedulable", "Filter") == 4
    assert of("NodeUnschedulable", "PreFilter") == 0
    assert of("TaintToleration", "Filter") == of("NodeResourcesFit", "Filter") == 3
    assert of("NodeResourcesFit", "PreFilter") == of("NodeResourcesFit", "PreScore") == 1
    assert of("NodeResourcesFit", "Score") == 2
    assert of("NodePorts", "Filter") == 0, "it skips the pod"


def test_one_attempt_in_ten_tells_how_long_its_plugins_took() -> None:
    cluster = Cluster().nodes(node("n1"), node("n2"))
    cluster.pods(*(pod(f"p{number}") for number in range(25))).settle()
    found = exposed(cluster, "plugin_execution_duration_seconds_count")
    assert found['{extension_point="Filter",plugin="NodeResourcesFit",status="Success"}'] == 3


def test_what_a_hint_answered_is_told(busy: Cluster) -> None:
    found = exposed(busy, "queueing_hint_execution_duration_seconds_count")
    assert found['{event="AssignedPodDelete",hint="Queue",plugin="NodeResourcesFit"}'] >= 1
    assert not [key for key in found if 'hint="Error"' in key]


def test_kept_events_are_told_while_a_pod_is_in_flight_and_then_as_none() -> None:
    cluster = Cluster().nodes(node("n1"))
    cluster.hold = lambda request: request.subresource == "binding"
    cluster.pods(pod("a", cpu="1")).settle().nodes(node("n2")).settle()
    held = exposed(cluster, "inflight_events")
    assert (held['{event="PodPopped"}'], held['{event="NodeAdd"}']) == (1, 1)
    assert exposed(cluster, "goroutines")['{operation="binding"}'] == 1
    cluster.release()
    cluster.settle()
    assert set(exposed(cluster, "inflight_events").values()) == {0}
    assert exposed(cluster, "goroutines")['{operation="binding"}'] == 0


def test_who_was_found_only_by_the_flush_is_told() -> None:
    cluster = Cluster().nodes(node("n1", cpu="1")).pods(pod("a", cpu="2")).settle()
    cluster.scheduler._cache.set_node(_bigger())  # a change that no event tells of
    cluster.later(331)
    assert cluster.node_of("a") == "n1"
    assert exposed(cluster, "pod_scheduled_after_flush_total")[""] == 1
    assert exposed(cluster, "queue_incoming_pods_total")['{event="UnschedulableTimeout",queue="active"}'] == 1


def _bigger() -> Any:
    from scheduler_worlds import node_of

    return node_of(node("n1", cpu="4"))


@pytest.mark.parametrize(("profile", "there"), [("lab", True), ("v1.37", False)])
def test_preemptions_by_purpose_are_labs(profile: str, there: bool) -> None:
    cluster = Cluster(profile).nodes(node("n1", cpu="300m"))
    cluster.pods(pod("low", node="n1", cpu="200m"), deferred("high", "n1", "300m", "100m", 10000)).settle()
    assert exposed(cluster, "preemptions_total") == ({'{operation="in_place_resize"}': 1} if there else {})


def test_what_comes_with_beta_does_not_exist() -> None:
    names = " ".join(families(Metrics(publishes_preemptions=True)))
    assert not re.search(r"pending_resize_pods|resize_preemption|resize_scheduling", names)


def test_a_profile_without_preemption_attempts_none() -> None:
    config = {"profiles": [{"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}]}
    cluster = Cluster(profile_of("lab"), config=config).nodes(node("n1", cpu="1"))
    cluster.pods(pod("low", node="n1", cpu="1"), pod("high", cpu="1", priority=9)).settle()
    assert exposed(cluster, "preemption_attempts_total")[""] == 0 and cluster.deleted() == []


# ---------------------------------------------------------------- default constraints, told by their scores


def test_pods_that_belong_together_are_spread_over_hosts_and_zones() -> None:
    nodes = [node(f"n{number}", labels={"topology.kubernetes.io/zone": zone}) for number, zone in enumerate("aab")]
    there = [pod("o", node="n0", labels={"app": "x"})]
    wanted = {"app": "x"}
    assert scores("PodTopologySpread", pod("a", labels=wanted), nodes, there) is None
    found = scores("PodTopologySpread", pod("a", labels=wanted), nodes, there, together=wanted)
    # n0: its host and its zone have one; n1: its zone; n2: neither. ln(3+2) and ln(2+2) weigh them; maxSkew 3 and 5 add 2 and 4.
    # round(1.609 + 2 + 1.386 + 4) = 9; round(2 + 1.386 + 4) = 7; 6. Normalised: 100 * (9 + 6 - s) / 9.
    assert found == [66, 88, 100]


def test_where_there_are_no_zones_hosts_alone_count() -> None:
    there = [pod("o", node="n0", labels={"app": "x"}), pod("p", node="n0", labels={"app": "x"})]
    found = scores("PodTopologySpread", pod("a", labels={"app": "x"}), [node("n0"), node("n1")], there, together={"app": "x"})
    # round(2 * ln(2+2) + 2) = 5 and 2
    assert found == [40, 100]


def test_constraints_of_its_own_leave_no_room_for_defaults() -> None:
    own = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    incoming = pod("a", labels={"app": "x"}, topologySpreadConstraints=[own])
    assert scores("PodTopologySpread", incoming, [node("n0"), node("n1")], together={"app": "x"}) is None


def test_a_service_and_a_replica_set_say_who_belongs_together() -> None:
    cluster = Cluster().nodes(node("n1"), node("n2"), node("n3"))
    cluster.put("services", {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "x"}}})
    cluster.put("services", {"metadata": {"name": "headless", "namespace": "default"}, "spec": {}})
    selector = {"matchLabels": {"hash": "1"}}
    cluster.put("replicasets", {"metadata": {"name": "web-1", "namespace": "default"}, "spec": {"selector": selector}})
    cluster.settle()
    document = pod("a", labels={"app": "x", "hash": "1"})
    document["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}]
    cluster.pods(document).settle()
    from scheduler_worlds import info_of

    belonging = cluster.scheduler.belonging
    assert belonging(info_of(document).pod).matches({"app": "x", "hash": "1"})
    assert not belonging(info_of(document).pod).matches({"app": "x", "hash": "2"})
    assert belonging(info_of(pod("b", labels={"app": "x"})).pod).matches({"app": "x", "hash": "2"})
    assert belonging(info_of(pod("c", labels={"app": "x"}, namespace="far")).pod).is_empty
    cluster.remove("services", "default/web")
    cluster.settle()
    assert belonging(info_of(pod("b", labels={"app": "x"})).pod).is_empty
