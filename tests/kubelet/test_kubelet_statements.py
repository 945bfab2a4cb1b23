"""One statement of the resize core at a time (RC-59 to RC-186), where no other test shows it."""

from typing import Any

import msgspec
import pytest
from kubelet_world import NODE, RUNTIME, World, a_container, a_pod

from elbowroom.api.gates import RESIZE_PREEMPTION
from elbowroom.api.objects import Pod, ResourceRequirements
from elbowroom.kubelet.checkpoint import PodResources
from elbowroom.kubelet.status.document import document
from elbowroom.kubelet.status.shown import Shown
from elbowroom.machine import Instant, Received
from elbowroom.wire import Call, Code, Message, Reply, decode_value, encode_value
from elbowroom.wire.cri import (
    ContainerState,
    LinuxResources,
    SandboxState,
    SetPodCgroup,
    UpdateContainerResources,
    UpdatePodSandboxResources,
    UpdateWorkload,
)

RESTARTS = {name: [{"resourceName": name, "restartPolicy": "RestartContainer"}] for name in ("cpu", "memory")}
QUESTIONS = ("PodState", "ListAll", "PodStats", "events", "UpdateWorkload")


def guaranteed(name: str = "c", cpu: str = "100m", memory: str = "200Mi", **more: Any) -> dict[str, Any]:
    return a_container(name, cpu, memory, {"cpu": cpu, "memory": memory}, **more)


def running(world: World, *pods: dict[str, Any]) -> World:
    for pod in pods:
        world.api.create("pods", pod)
    names = [pod["metadata"]["name"] for pod in pods]
    return world.until(lambda: all(world.status(name)["phase"] == "Running" for name in names)).run(0.5)


def waits(world: World, name: str = "a") -> tuple[str, str, int]:
    found = world.condition(name, "PodResizePending")
    assert found is not None, "no resize is pending"
    return found["reason"], found["message"], found["observedGeneration"]


def messages(world: World, reason: str, name: str = "") -> list[str]:
    return [event["message"] for event in world.api.events(reason, name)]


def made(world: World) -> list[str]:
    """The calls that change something, in order."""
    return [method for method, _ in world.calls if method not in QUESTIONS]


def full(world: World) -> World:
    """Pod a may not grow beyond 1500m: b has the rest."""
    return running(world, a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="2500m")))


# ---------------------------------------------------------------- RC-59, RC-4: what restarts gets what was allocated


def test_a_changed_image_restarts_the_container_with_what_was_allocated_not_with_what_is_wished() -> None:
    world = full(World())
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    world.api.change("pods", "ns/a", lambda p: p["spec"]["containers"][0].update(image="pause:3.9"), bump=True)
    world.until(lambda: world.container("a")["image"] == "pause:3.9" and "running" in world.container("a")["state"])
    assert world.container("a")["resources"]["requests"]["cpu"] == "1" and waits(world)[0] == "Deferred"


# ---------------------------------------------------------------- RC-65 to RC-68: triggers


def granted_by(world: World) -> str:
    """The label under which the accepted resize was counted."""
    labels = ["pod_updated", "pods_added", "pods_removed", "pod_resized", "pod_terminated", "periodic_retry"]
    name = "kubelet_pod_deferred_accepted_resizes_total"
    counted = [label for label in labels if world.metric(name, retry_trigger=label)]
    assert len(counted) == 1 and world.metric(name) == 1
    return counted[0]


def smaller(world: World) -> None:
    world.api.resize("a", requests={"cpu": "1500m"})


def back(world: World) -> None:
    world.kill_kubelet()
    world.api.delete("b", grace=0)
    world.start_kubelet()


def gone(world: World) -> None:
    world.api.delete("b")


def shrunk(world: World) -> None:
    world.api.resize("b", requests={"cpu": "500m"})


@pytest.mark.parametrize(
    ("happens", "label"), [(smaller, "pod_updated"), (back, "pods_added"), (gone, "pods_removed"), (shrunk, "pod_resized")]
)
def test_a_deferred_resize_that_is_accepted_is_counted_by_what_let_it_in(happens: Any, label: str) -> None:
    world = full(World())
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    happens(world)
    world.until(lambda: world.is_settled("a"), within=2)
    assert granted_by(world) == label


def test_a_resize_that_is_accepted_at_once_is_not_counted_among_the_deferred() -> None:
    world = full(World())
    world.api.resize("a", requests={"cpu": "1200m"})
    world.until(lambda: world.is_settled("a"))
    assert world.metric("kubelet_pod_deferred_accepted_resizes_total") == 0


def test_an_update_that_touches_no_resources_and_a_going_back_make_no_pass() -> None:
    world = full(World())
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    judged = len(world.noted("kl.judge"))
    world.api.change("pods", "ns/b", lambda p: p["metadata"].update(labels={"x": "y"}))
    world.api.change("pods", "ns/b", lambda p: p["spec"].update(tolerations=[{"operator": "Exists"}]), bump=True)
    world.run(1)
    assert len(world.noted("kl.judge")) == judged
    world.api.resize("a", requests={"cpu": "1"})
    world.until(lambda: world.is_settled("a"))
    assert len(world.noted("kl.judge")) == judged


def test_every_pass_puts_the_timer_off() -> None:
    world = full(World(kubelet={"elbowroom": {"periodicResizeRetry": "10s"}}))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(6)
    world.api.resize("a", requests={"cpu": "2100m"})
    judged = world.run(8).noted("kl.judge")
    assert [note["cause"] for note in judged] == ["pod_updated", "pod_updated"]
    assert [note["cause"] for note in world.run(3).noted("kl.judge")][2:] == ["periodic_retry"]


def test_a_pod_that_is_ending_counts_until_its_containers_have_stopped() -> None:
    world = running(
        World(),
        a_pod("a", a_container(cpu="1")),
        a_pod("b", a_container(cpu="2500m"), grace=30, workload={"c": {"stopSeconds": 5}}),
    )
    world.api.delete("b")
    world.run(1)
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    assert waits(world)[0] == "Deferred"
    world.until(lambda: world.is_settled("a"), within=5)


# ---------------------------------------------------------------- RC-73, RC-74: refusals of other handlers


def test_a_resize_that_shrinks_goes_through_the_same_checks_and_may_wait() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")))
    world.api.change("pods", "ns/a", lambda p: p["spec"].update(nodeSelector={"zone": "a"}), bump=True)
    world.api.resize("a", requests={"cpu": "500m"})
    world.run(1)
    words = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    assert waits(world)[:2] == ("Deferred", words)
    assert messages(world, "ResizeDeferred")[0].startswith("Pod resize NodeAffinity: {")
    world.api.change("nodes", NODE, lambda n: n["metadata"]["labels"].update(zone="a"))
    world.until(lambda: world.is_settled("a"), within=1)


def test_a_taint_that_came_later_defers_a_resize_in_upstreams_words() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")))
    taint = {"key": "k", "value": "v", "effect": "NoExecute"}
    world.api.change("nodes", NODE, lambda n: n["spec"].update(taints=[taint]))
    world.api.resize("a", requests={"cpu": "500m"})
    world.run(1)
    assert waits(world)[1] == "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"


def test_nobody_to_push_out_defers_a_critical_pods_resize_in_upstreams_words() -> None:
    crit = {"priority": 2_000_000_000}
    world = World(gates={RESIZE_PREEMPTION: False})
    running(world, a_pod("a", a_container(cpu="1"), **crit), a_pod("b", a_container(cpu="3"), **crit))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    reason, message, _ = waits(world)
    assert reason == "Deferred" and message.startswith(
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: "
        "no set of running pods found to reclaim resources:"
    )
    assert world.status("b")["phase"] == "Running"


def test_a_node_whose_policy_forbids_it_evicts_nobody_for_a_critical_resize() -> None:
    policy = {"podPreemptionPolicy": {"disableResizePreemption": ["ops"]}}
    world = World(gates={RESIZE_PREEMPTION: False}, node_spec=policy)
    running(world, a_pod("a", a_container(cpu="1"), priority=2_000_000_000), a_pod("b", a_container(cpu="3")))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    assert waits(world)[0] == "Deferred" and world.status("b")["phase"] == "Running"


# ---------------------------------------------------------------- RC-85 to RC-97: checkpoints and recovery


def test_actuated_has_zeros_for_what_an_update_left_unset_and_the_removed_stay_until_the_next_write() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="1")))
    world.api.resize("a", requests={"cpu": "1500m"})
    world.until(lambda: world.is_settled("a"))
    uid = world.api.objects["pods"]["ns/a"]["metadata"]["uid"]
    found = world.disk("actuated_pods_state")[uid]["ContainerResources"]["c"]
    assert found == {"requests": {"cpu": "1500m", "memory": "0"}, "limits": {"cpu": "0", "memory": "0"}}
    world.api.delete("a")
    world.run(1)
    assert uid in world.disk("actuated_pods_state") and uid in world.disk("allocated_pods_state")
    world.api.resize("b", requests={"cpu": "2"})
    world.until(lambda: world.is_settled("b"))
    assert uid not in world.disk("actuated_pods_state") and uid not in world.disk("allocated_pods_state")


def test_without_the_allocation_file_a_wish_that_does_not_fit_costs_the_pod_its_place() -> None:
    world = full(World())
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    world.kill_kubelet()
    world.lose("allocated_pods_state")
    world.start_kubelet()
    world.until(lambda: "Failed" in (world.status("a")["phase"], world.status("b")["phase"]))
    world.run(1)
    failed = next(name for name in "ab" if world.status(name)["phase"] == "Failed")
    status = world.status(failed)
    assert status["reason"] == "OutOfcpu"
    assert status["message"].startswith("Pod was rejected: Node didn't have enough resource: cpu, requested: ")


def test_without_the_actuation_file_a_container_with_a_restart_policy_is_restarted_and_the_resize_completes() -> None:
    world = running(World(), a_pod("a", guaranteed("x", resizePolicy=RESTARTS["memory"]), guaranteed("y")))
    world.kill_kubelet()
    world.lose("actuated_pods_state")
    world.start_kubelet()
    world.until(lambda: world.container("a", "x")["restartCount"] == 1 and world.is_settled("a"))
    world.run(5)
    assert (world.container("a", "x")["restartCount"], world.container("a", "y")["restartCount"]) == (1, 0)
    assert len(messages(world, "ResizeCompleted")) == 1


def test_an_infeasible_resize_is_judged_once_more_after_a_restart() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")))
    world.api.resize("a", requests={"cpu": "5"})
    world.run(1)
    world.restart_kubelet()
    world.run(400)
    assert world.metric("kubelet_pod_infeasible_resizes_total") == 1
    assert [note["verdict"] for note in world.noted("kl.judge")] == ["Infeasible", "Infeasible"]
    assert len(messages(world, "ResizeInfeasible")) == 1, "the condition was back-filled, so it is nothing new"


def test_after_a_restart_a_wait_counts_from_then() -> None:
    world = full(World())
    world.api.resize("a", requests={"cpu": "2"})
    world.run(10)
    before = world.condition("a", "PodResizePending")
    world.restart_kubelet()
    world.run(1)
    world.api.resize("a", requests={"cpu": "2100m"})
    world.run(1)
    after = world.condition("a", "PodResizePending")
    assert before is not None and after is not None
    assert after["lastTransitionTime"] > before["lastTransitionTime"]


@pytest.mark.parametrize(("gate", "phase"), [(True, "Running"), (False, "Failed")])
def test_where_a_pod_that_runs_may_be_is_asked_again_after_a_restart_if_the_gate_is_off(gate: bool, phase: str) -> None:
    world = World(kubelet={"featureGates": {"NotEvictPodOnKubeletRestart": gate}}, start=False)
    world.api.change("nodes", NODE, lambda n: n["metadata"]["labels"].update(zone="a"))
    world.start_runtime()
    world.start_kubelet()
    running(world, a_pod("a", a_container(cpu="1"), nodeSelector={"zone": "a"}))
    world.kill_kubelet()
    world.api.change("nodes", NODE, lambda n: n["metadata"]["labels"].pop("zone"))
    world.start_kubelet()
    world.run(2)
    assert world.status("a")["phase"] == phase


# ---------------------------------------------------------------- RC-100 to RC-111: actuation


def test_a_memory_request_alone_restarts_a_container_whose_memory_policy_says_so() -> None:
    container = a_container(memory="100Mi", limits={"memory": "200Mi"}, resizePolicy=RESTARTS["memory"])
    world = running(World(), a_pod("a", container))
    world.api.resize("a", requests={"memory": "150Mi"})
    world.until(lambda: world.container("a")["restartCount"] == 1 and world.is_settled("a"))
    assert world.container("a")["resources"]["requests"]["memory"] == "150Mi"


def test_the_policy_of_a_resource_that_does_not_change_restarts_nothing() -> None:
    world = running(World(), a_pod("a", guaranteed(resizePolicy=RESTARTS["memory"])))
    world.api.resize("a", requests={"cpu": "150m"}, limits={"cpu": "150m"})
    world.until(lambda: world.is_settled("a"))
    assert world.container("a")["restartCount"] == 0


def test_where_the_resize_of_one_container_fails_one_that_restarts_is_started_all_the_same() -> None:
    pod = a_pod("a", guaranteed("x", resizePolicy=RESTARTS["cpu"]), guaranteed("y"), workload={"y": {"resizeError": "always"}})
    world = running(World(), pod)
    for name in ("x", "y"):
        world.api.resize("a", name, requests={"cpu": "200m"}, limits={"cpu": "200m"})
    world.until(
        lambda: world.container("a", "x")["restartCount"] == 1 and "running" in world.container("a", "x")["state"], within=3
    )
    world.run(2)
    assert world.container("a", "x")["resources"]["limits"]["cpu"] == "200m"
    assert world.container("a", "y")["resources"]["limits"]["cpu"] == "100m"
    failing = world.condition("a", "PodResizeInProgress")
    assert failing is not None and failing["reason"] == "Error"


def test_where_memory_fails_cpu_is_not_touched() -> None:
    world = running(World(), a_pod("a", guaranteed(), workload={"c": {"resizeError": 1}}))
    world.calls.clear()
    world.api.resize("a", requests={"cpu": "200m", "memory": "300Mi"}, limits={"cpu": "200m", "memory": "300Mi"})
    world.run(0.5)
    asked = [decode_value(body, UpdateContainerResources).resources for m, body in world.calls if m == "UpdateContainerResources"]
    assert [(r.memory_limit_bytes >> 20, r.cpu_quota) for r in asked] == [(300, 10_000)]
    world.until(lambda: world.is_settled("a"), within=2)


def test_a_resize_that_begins_to_fail_is_another_condition_and_one_that_fails_otherwise_the_same() -> None:
    """Its time is that of the reason; the message may change (RC-132)."""
    world = running(World(), a_pod("a", guaranteed(), workload={"c": {"resizeSeconds": 2, "resizeError": "always"}}))
    world.api.resize("a", requests={"cpu": "200m"}, limits={"cpu": "200m"})
    world.run(1)
    begun = world.condition("a", "PodResizeInProgress")
    world.until(lambda: (world.condition("a", "PodResizeInProgress") or {}).get("reason") == "Error")
    failing = world.condition("a", "PodResizeInProgress")
    world.refuse["SetPodCgroup"] = world.refuse["UpdateContainerResources"] = (Code.UNKNOWN, "otherwise")
    world.until(lambda: "otherwise" in (world.condition("a", "PodResizeInProgress") or {})["message"], within=20)
    later = world.condition("a", "PodResizeInProgress")
    assert begun is not None and failing is not None and later is not None
    assert "reason" not in begun and failing["lastTransitionTime"] > begun["lastTransitionTime"]
    assert later["lastTransitionTime"] == failing["lastTransitionTime"] < later["lastProbeTime"]


def test_a_pod_cgroup_that_cannot_be_written_takes_back_what_the_runtime_was_told() -> None:
    world = running(World(profile="v1.37"), a_pod("a", guaranteed()))
    world.calls.clear()
    world.refuse["SetPodCgroup"] = (Code.UNKNOWN, "device or resource busy")
    world.api.resize("a", requests={"cpu": "200m"}, limits={"cpu": "200m"})
    world.run(0.5)
    told = [decode_value(body, UpdatePodSandboxResources).resources for m, body in world.calls if m == "UpdatePodSandboxResources"]
    assert [r.cpu_quota for r in told] == [20_000, 10_000]
    failing = world.condition("a", "PodResizeInProgress")
    assert failing is not None and "device or resource busy" in failing["message"]
    del world.refuse["SetPodCgroup"]
    world.until(lambda: world.is_settled("a"), within=3)


@pytest.mark.parametrize("profile", ["lab", "v1.37"])
@pytest.mark.parametrize(
    ("requests", "calls"),
    [
        # The pod's cpu limit and request are written apart (RC-107), and the runtime is told of each.
        ({"cpu": "200m"}, {"UpdateContainerResources": 1, "SetPodCgroup": 2, "UpdatePodSandboxResources": 2}),
        ({"memory": "300Mi"}, {"UpdateContainerResources": 1, "SetPodCgroup": 1, "UpdatePodSandboxResources": 1}),
        ({"cpu": "200m", "memory": "300Mi"}, {"UpdateContainerResources": 2, "SetPodCgroup": 3, "UpdatePodSandboxResources": 3}),
        ({"cpu": "50m", "memory": "300Mi"}, {"UpdateContainerResources": 2, "SetPodCgroup": 3, "UpdatePodSandboxResources": 3}),
        ({"cpu": "50m", "memory": "100Mi"}, {"UpdateContainerResources": 2, "SetPodCgroup": 3, "UpdatePodSandboxResources": 3}),
    ],
)
def test_a_resize_is_exactly_so_many_calls_and_two_status_patches(
    profile: str, requests: dict[str, str], calls: dict[str, int]
) -> None:
    world = running(World(profile=profile), a_pod("a", guaranteed()))
    world.calls.clear()
    patches = len(world.api.patches)
    world.api.resize("a", requests=requests, limits=requests)
    world.until(lambda: world.is_settled("a"))
    world.run(400)
    found = made(world)
    assert {method: found.count(method) for method in found} == calls
    assert len(world.api.patches) - patches == 2
    assert world.metric("kubelet_pod_resize_duration_milliseconds_count", success="true") == 1


def test_of_two_containers_each_is_updated_once_a_resource_and_each_value_of_the_pod_is_written_once() -> None:
    world = running(World(), a_pod("a", guaranteed("x"), guaranteed("y"), guaranteed("z")))
    world.calls.clear()
    patches = len(world.api.patches)

    def apply(pod: dict[str, Any]) -> None:
        for container, cpu in zip(pod["spec"]["containers"], ("200m", "50m", "100m"), strict=True):
            size = {"cpu": cpu, "memory": "300Mi" if container["name"] == "x" else "200Mi"}
            container["resources"] = {"requests": dict(size), "limits": dict(size)}

    world.api.change("pods", "ns/a", apply, bump=True)
    world.until(lambda: world.is_settled("a"))
    world.run(60)
    updates = [decode_value(body, UpdateContainerResources) for m, body in world.calls if m == "UpdateContainerResources"]
    assert [(u.container.rpartition("_")[0][-1], u.resources.cpu_quota) for u in updates] == [
        ("x", 10_000),
        ("y", 5_000),
        ("x", 20_000),
    ]
    written = [decode_value(body, SetPodCgroup).resources for m, body in world.calls if m == "SetPodCgroup"]
    assert [(r.memory_limit_bytes >> 20, r.cpu_quota, r.cpu_shares) for r in written] == [
        (700, 0, 0),
        (0, 35_000, 0),
        (0, 0, 358),
    ]
    assert len(world.api.patches) - patches == 2


def test_a_limits_only_resize_and_one_that_changes_only_the_notation() -> None:
    world = running(World(), a_pod("a", a_container(cpu="100m", limits={"cpu": "500m"})))
    world.calls.clear()
    world.api.resize("a", limits={"cpu": "700m"})
    world.until(lambda: world.is_settled("a"))
    assert made(world).count("UpdateContainerResources") == 1
    events = len(world.api.events())
    world.api.resize("a", requests={"cpu": "0.1"}, limits={"cpu": "0.7"})
    world.run(5)
    assert made(world).count("UpdateContainerResources") == 1 and len(world.api.events()) == events


def test_nothing_new_is_no_patch() -> None:
    world = full(World())
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    patches = len(world.api.patches)
    world.run(800)
    assert len(world.noted("kl.judge")) > 3 and len(world.api.patches) == patches


def test_a_sidecar_whose_startup_probe_has_not_succeeded_is_left_alone_until_it_has() -> None:
    probe = {"exec": {"command": ["true"]}, "initialDelaySeconds": 10}
    sidecars = [guaranteed("s", restartPolicy="Always", startupProbe=probe)]
    world = World()
    world.api.create("pods", a_pod("a", guaranteed("x"), initContainers=sidecars))
    world.run(2)
    found = world.container("a", "s")
    assert "running" in found["state"] and found["started"] is False and found["ready"] is False
    assert "waiting" in world.container("a", "x")["state"] and world.status("a")["phase"] == "Pending"
    world.api.resize("a", "s", requests={"cpu": "150m"}, limits={"cpu": "150m"})
    world.run(5)
    assert "UpdateContainerResources" not in made(world)
    assert world.condition("a", "PodResizeInProgress") is not None
    world.until(lambda: world.is_settled("a") and "running" in world.container("a", "x")["state"], within=5)
    found = world.container("a", "s")
    assert found["started"] is True and found["resources"]["limits"]["cpu"] == "150m" and found["restartCount"] == 0


def test_a_sidecar_that_is_to_restart_for_its_size_starts_first() -> None:
    probe = {"exec": {"command": ["true"]}, "initialDelaySeconds": 10}
    sidecars = [guaranteed("s", restartPolicy="Always", startupProbe=probe, resizePolicy=RESTARTS["cpu"])]
    world = World()
    world.api.create("pods", a_pod("a", guaranteed("x"), initContainers=sidecars))
    world.run(2)
    world.api.resize("a", "s", requests={"cpu": "150m"}, limits={"cpu": "150m"})
    world.run(7)
    assert world.container("a", "s")["restartCount"] == 0
    world.until(lambda: world.container("a", "s")["restartCount"] == 1, within=5)
    world.until(lambda: world.is_settled("a") and "running" in world.container("a", "x")["state"], within=30)


def test_a_regular_container_whose_startup_probe_has_not_succeeded_is_resized_and_not_ready() -> None:
    probe = {"exec": {"command": ["true"]}, "initialDelaySeconds": 10}
    world = World()
    world.api.create("pods", a_pod("a", guaranteed(startupProbe=probe)))
    world.until(lambda: "running" in world.container("a")["state"])
    world.api.resize("a", requests={"cpu": "150m"}, limits={"cpu": "150m"})
    world.until(lambda: world.is_settled("a"), within=2)
    assert world.container("a")["resources"]["limits"]["cpu"] == "150m" and world.container("a")["ready"] is False
    world.until(lambda: world.container("a")["ready"] is True, within=10)
    assert world.container("a")["started"] is True


# ---------------------------------------------------------------- RC-112, RC-113: the usage check


def test_usage_that_cannot_be_read_is_told_with_the_pods_whole_name_and_tried_again_later() -> None:
    world = running(World(), a_pod("a", guaranteed()))
    uid = world.api.objects["pods"]["ns/a"]["metadata"]["uid"]
    world.refuse["PodStats"] = (Code.UNKNOWN, "no stats")
    world.api.resize("a", requests={"memory": "100Mi"}, limits={"memory": "100Mi"})
    world.run(1)
    failing = world.condition("a", "PodResizeInProgress")
    assert failing is not None and failing["message"] == f'unable to read memory usage for pod "a_ns({uid})"'
    asked = [m for m, _ in world.calls].count("PodStats")
    del world.refuse["PodStats"]
    world.run(8)
    assert [m for m, _ in world.calls].count("PodStats") == asked, "not before ten seconds have passed"
    world.until(lambda: world.is_settled("a"), within=8)
    assert len(messages(world, "ResizeError")) == 1


def test_a_limit_that_is_new_is_checked_and_one_container_over_its_limit_blocks_the_whole_pod() -> None:
    pod = a_pod("a", a_container("x", memory="10Mi"), a_container("y", cpu="100m"), workload={"x": {"memoryUsage": "50Mi"}})
    world = running(World(), pod)
    world.calls.clear()
    world.api.change(
        "pods",
        "ns/a",
        lambda p: [
            p["spec"]["containers"][0]["resources"].update(limits={"memory": "20Mi"}),
            p["spec"]["containers"][1]["resources"]["requests"].update(cpu="200m"),
        ],
        bump=True,
    )
    world.run(1)
    failing = world.condition("a", "PodResizeInProgress")
    assert failing is not None
    assert failing["message"] == (
        'cannot decrease memory limits: attempting to set container "x" memory limit (20971520) below current usage (53477376)'
    )
    assert made(world) == []


# ---------------------------------------------------------------- RC-130 to RC-138: conditions


def test_a_condition_that_somebody_took_away_or_changed_comes_back() -> None:
    world = full(World())
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    before = waits(world)
    world.api.change("pods", "ns/a", lambda p: p["status"].update(conditions=p["status"]["conditions"][1:]))
    world.run(1)
    assert waits(world) == before
    world.api.change("pods", "ns/a", lambda p: p["status"]["conditions"][0].update(reason="Infeasible"))
    world.run(1)
    assert waits(world) == before


def test_the_time_of_a_wait_begins_anew_with_its_reason() -> None:
    world = full(World())
    world.api.resize("a", requests={"cpu": "2"})
    world.run(3)
    deferred = world.condition("a", "PodResizePending")
    world.api.resize("a", requests={"cpu": "5"})
    world.run(1)
    infeasible = world.condition("a", "PodResizePending")
    assert deferred is not None and infeasible is not None
    assert infeasible["lastTransitionTime"] > deferred["lastTransitionTime"]


def test_a_newer_grant_replaces_the_one_under_way_and_only_it_completes() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1"), workload={"c": {"resizeSeconds": 3}}))
    for cpu in ("2", "3"):
        world.api.resize("a", requests={"cpu": cpu})
        world.run(1)
    progress = world.condition("a", "PodResizeInProgress")
    assert progress is not None and progress["observedGeneration"] == 3
    world.until(lambda: world.is_settled("a"), within=20)
    world.run(5)
    assert [message.rpartition(":")[2] for message in messages(world, "ResizeStarted")] == ["2}", "3}"]
    assert len(messages(world, "ResizeCompleted")) == 1 and messages(world, "ResizeCompleted")[0].endswith('"generation":3}')


def test_going_back_to_what_was_allocated_leaves_a_failing_resize_as_it_is() -> None:
    pod = a_pod("a", a_container(cpu="500m", limits={"cpu": "4"}), workload={"c": {"resizeError": "always"}})
    world = running(World(), pod, a_pod("b", a_container(cpu="2")))
    world.api.resize("a", requests={"cpu": "1"})
    world.run(1)
    world.api.resize("a", requests={"cpu": "3"})
    world.run(1)
    assert waits(world)[0] == "Deferred"
    world.api.resize("a", requests={"cpu": "1"})
    world.run(1)
    failing = world.condition("a", "PodResizeInProgress")
    assert world.condition("a", "PodResizePending") is None
    assert failing is not None and (failing["reason"], failing["observedGeneration"]) == ("Error", 2)


def test_the_error_and_generation_of_a_failing_resize_stay_until_a_new_grant() -> None:
    world = running(World(), a_pod("a", a_container(cpu="500m"), workload={"c": {"resizeError": "always"}}))
    world.api.resize("a", requests={"cpu": "1"})
    world.run(5)
    before = world.condition("a", "PodResizeInProgress")
    world.api.change("pods", "ns/a", lambda p: p["metadata"].update(labels={"x": "y"}))
    world.run(5)
    after = world.condition("a", "PodResizeInProgress")
    assert before is not None and before == after and before["observedGeneration"] == 2
    assert len(messages(world, "ResizeError")) == 1
    world.api.resize("a", requests={"cpu": "2"})
    world.run(0.001)
    world.until(lambda: (world.condition("a", "PodResizeInProgress") or {}).get("observedGeneration") == 3)


@pytest.mark.parametrize("wish", [{"cpu": "2"}, {"cpu": "3500m"}])
def test_a_pod_that_ends_drops_its_resize_conditions(wish: dict[str, str]) -> None:
    workload = {"c": {"exitAfterSeconds": 10, "resizeError": "always"}}
    world = running(World(), a_pod("a", a_container(cpu="1"), restartPolicy="Never", workload=workload))
    world.api.create("pods", a_pod("b", a_container(cpu="1")))
    world.run(1)
    world.api.resize("a", requests=wish)
    world.run(1)
    kinds = {"PodResizePending", "PodResizeInProgress"}
    assert kinds & {c["type"] for c in world.status("a")["conditions"]}
    world.until(lambda: world.status("a")["phase"] == "Succeeded", within=15)
    assert not kinds & {c["type"] for c in world.status("a")["conditions"]}


def test_a_resize_of_a_pod_that_has_ended_changes_nothing() -> None:
    world = World()
    world.api.create("pods", a_pod("a", a_container(cpu="1"), restartPolicy="Never", workload={"c": {"exitAfterSeconds": 1}}))
    world.until(lambda: world.status("a")["phase"] == "Succeeded")
    world.run(1)
    before = world.status("a")
    world.api.resize("a", requests={"cpu": "2"})
    world.run(60)
    assert world.status("a") == before and not world.noted("kl.judge")


def test_a_container_that_dies_in_the_middle_of_a_resize_comes_back_with_its_allocation() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1"), workload={"c": {"resizeSeconds": 4}}))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    notes = {"elbowroom.dev/workload": '{"c": {"exitAfterSeconds": 0, "exitCode": 1}}'}
    world.api.change("pods", "ns/a", lambda p: p["metadata"]["annotations"].update(notes))
    world.run(6)
    world.api.change("pods", "ns/a", lambda p: p["metadata"]["annotations"].clear())
    world.until(lambda: world.is_settled("a") and "running" in world.container("a")["state"], within=60)
    assert world.container("a")["resources"]["requests"]["cpu"] == "2" and world.container("a")["restartCount"] >= 1


# ---------------------------------------------------------------- runtimes that answer late, wrongly or never


def silenced(world: World, method: str, answers: bytes | None = None) -> None:
    """From now on the runtime answers that call with nonsense, or not at all."""
    original, asked = world.post, dict[int, str]()

    def post(source: str, target: str, message: Message) -> None:
        if isinstance(message, Call) and target == RUNTIME:
            asked[message.id] = message.method
        if isinstance(message, Reply) and source == RUNTIME and asked.get(message.id) == method:
            if answers is None:
                return
            message = msgspec.structs.replace(message, body=answers)
        original(source, target, message)

    world.post = post  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "method", ["UpdateContainerResources", "SetPodCgroup", "UpdatePodSandboxResources", "PodState", "PodStats"]
)
def test_a_runtime_that_never_answers_one_call_does_not_hold_up_others_and_is_asked_until_it_does(method: str) -> None:
    world = running(World(), a_pod("a", guaranteed()), a_pod("b", a_container(cpu="1")))
    original = world.post
    silenced(world, method)
    world.api.resize("a", requests={"cpu": "200m", "memory": "100Mi"}, limits={"cpu": "200m", "memory": "100Mi"})
    world.run(130)
    world.post = original  # type: ignore[method-assign]
    world.api.resize("b", requests={"cpu": "2"})
    world.until(lambda: world.is_settled("a") and world.is_settled("b"), within=140)
    assert world.container("a")["resources"]["limits"] == {"cpu": "200m", "memory": "100Mi"}


@pytest.mark.parametrize("nonsense", [b"", b"\xc1", b"\x93\x01\x02\x03", msgspec.msgpack.encode({"sandboxes": 3})])
@pytest.mark.parametrize(
    "method", ["PodState", "PodStats", "ListAll", "RunPodSandbox", "CreateContainer", "UpdateContainerResources"]
)
def test_a_runtime_that_answers_nonsense_breaks_nothing(method: str, nonsense: bytes) -> None:
    world = World()
    original = world.post
    silenced(world, method, nonsense)
    world.api.create("pods", a_pod("a", guaranteed()))
    world.run(5)
    if world.container("a").get("state"):
        world.api.resize("a", requests={"memory": "100Mi"}, limits={"memory": "100Mi"})
    world.run(20)
    world.post = original  # type: ignore[method-assign]
    world.until(lambda: world.is_settled("a") and "running" in world.container("a")["state"], within=40)


# ---------------------------------------------------------------- kernels

V1 = {"failCgroupV1": False}


def behave(world: World, workload: str) -> None:
    """The container behaves otherwise from now on, whatever the kubelet is about to ask."""
    container = world.container("a")["containerID"].partition("//")[2]
    sandbox = container.rpartition("_c_")[0]
    call = Call(-1, "UpdateWorkload", encode_value(UpdateWorkload(sandbox, workload)))
    world._feed(RUNTIME, Received("program", call))


def test_on_v1_a_limit_that_usage_has_overtaken_is_busy_and_is_tried_again_until_it_is_not() -> None:
    world = World(cgroup_version=1, kubelet=V1, machine={"cgroupVersion": 1})
    running(world, a_pod("a", guaranteed(), workload={"c": {"memoryUsage": "50Mi", "resizeSeconds": 2}}))
    world.api.resize("a", requests={"memory": "100Mi"}, limits={"memory": "100Mi"})
    world.run(1)
    behave(world, '{"c": {"memoryUsage": "150Mi", "resizeSeconds": 2}}')
    world.until(lambda: (world.condition("a", "PodResizeInProgress") or {}).get("reason") == "Error", within=4)
    failing = world.condition("a", "PodResizeInProgress")
    assert failing is not None and failing["message"].endswith("memory.limit_in_bytes: device or resource busy")
    assert world.container("a")["restartCount"] == 0 and world.container("a")["resources"]["limits"]["memory"] == "200Mi"
    world.run(5)
    failing = world.condition("a", "PodResizeInProgress")
    assert failing is not None and failing["message"].startswith("cannot decrease memory limits: "), "next time it is seen before"
    behave(world, "")
    world.until(lambda: world.is_settled("a"), within=20)
    assert world.container("a")["resources"]["limits"]["memory"] == "100Mi"


def test_on_v2_a_limit_that_usage_has_overtaken_kills_the_container_which_comes_back_with_it() -> None:
    world = running(World(), a_pod("a", guaranteed(), workload={"c": {"memoryUsage": "50Mi", "resizeSeconds": 2}}))
    world.api.resize("a", requests={"memory": "100Mi"}, limits={"memory": "100Mi"})
    world.run(1)
    behave(world, '{"c": {"memoryUsage": "150Mi", "resizeSeconds": 2}}')
    world.until(lambda: any(note["reason"] == "OOMKilled" for note in world.noted("rt.exit")), within=3)
    behave(world, "")
    world.until(lambda: world.is_settled("a") and "running" in world.container("a")["state"], within=30)
    assert world.container("a")["resources"]["limits"]["memory"] == "100Mi"
    assert world.container("a")["lastState"]["terminated"]["reason"] == "OOMKilled"


@pytest.mark.parametrize("profile", ["lab", "v1.37"])
def test_systemds_rounding_neither_keeps_a_resize_from_ending_nor_is_written_against(profile: str) -> None:
    world = running(World(profile=profile, cgroup_driver="systemd"), a_pod("a", guaranteed(cpu="100m")))
    world.api.resize("a", requests={"cpu": "155m"}, limits={"cpu": "155m"})
    world.until(lambda: world.is_settled("a"))
    world.run(1)
    assert world.container("a")["resources"]["limits"]["cpu"] == "155m"
    listed = msgspec.json.decode(world.proxy("cgroups")["body"])
    assert {entry["cpuQuota"] for entry in listed} == {16_000}
    calls, patches = made(world), len(world.api.patches)
    world.run(120)
    assert made(world) == calls and len(world.api.patches) == patches
    world.restart_kubelet()
    world.run(60)
    assert len(made(world)) - len(calls) <= 2 and world.is_settled("a"), "the pod's cgroup may be written once more"


def test_where_containers_may_swap_a_memory_request_is_not_resized_in_place() -> None:
    swap = {"failSwapOn": False, "memorySwap": {"swapBehavior": "LimitedSwap"}}
    world = running(World(kubelet=swap, machine={"swap": "4Gi"}), a_pod("a", a_container(cpu="100m", memory="100Mi")))
    world.api.resize("a", requests={"memory": "200Mi"})
    world.run(1)
    assert waits(world)[:2] == ("Infeasible", "In-place resize of containers with swap is not supported.")
    assert world.metric("kubelet_pod_infeasible_resizes_total", reason_detail="swap_limitation") == 1
    assert messages(world, "ResizeInfeasible")[0].startswith("Pod resize Infeasible: {")
    world.api.resize("a", requests={"memory": "100Mi", "cpu": "200m"})
    world.until(lambda: world.is_settled("a"))


def test_a_runtime_that_tells_nothing_is_believed_to_have_what_it_was_given() -> None:
    resources = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "4", "memory": "4Gi"}}
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": resources}]}}, Pod)
    given = ResourceRequirements(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "3", "memory": "3Gi"})
    state = ContainerState("s_c_0", "s", "c", 0, "i", "running", LinuxResources())
    sandbox = SandboxState("s", "u", "p", "ns", True, 0, LinuxResources(), (state,))
    layer = PodResources(containers={"c": given})
    doc = document(Shown(Instant(1), pod, pod, layer, sandbox, {}, Instant(0)))
    assert doc["containerStatuses"][0]["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"},
        "limits": {"cpu": "3", "memory": "3Gi"},
    }


# ---------------------------------------------------------------- section 7: metrics

BUCKETS = ["10.0", "50.0", "100.0", "500.0", "1000.0", "2000.0", "5000.0", "10000.0", "20000.0", "30000.0", "60000.0", "120000.0"]
BUCKETS += ["300000.0", "600000.0", "+Inf"]


def test_the_metrics_bear_upstreams_names_types_labels_and_buckets() -> None:
    world = full(World())
    world.api.resize("a", requests={"cpu": "1200m"}, limits={"memory": "1Gi"})
    world.run(1)
    for cpu in ("2", "6"):
        world.api.resize("a", requests={"cpu": cpu})
        world.run(1)
    lines = world.proxy("metrics")["body"].decode().splitlines()
    kinds = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
    for name, kind in {
        "kubelet_container_requested_resizes_total": "counter",
        "kubelet_pod_resize_duration_milliseconds": "histogram",
        "kubelet_pod_pending_resizes": "gauge",
        "kubelet_pod_infeasible_resizes_total": "counter",
        "kubelet_pod_in_progress_resizes": "gauge",
        "kubelet_pod_deferred_accepted_resizes_total": "counter",
        "kubelet_runtime_operations_total": "counter",
    }.items():
        assert kinds[name] == kind
    assert not [line for line in lines if "_created" in line]
    found = [line.split('le="')[1].split('"')[0] for line in lines if "milliseconds_bucket" in line]
    assert found == BUCKETS
    shown = {line.split("{")[0]: line.split("{")[1].split("}")[0] for line in lines if "{" in line}
    assert 'requirement="' in shown["kubelet_container_requested_resizes_total"]
    assert shown["kubelet_pod_infeasible_resizes_total"] == 'reason_detail="insufficient_node_allocatable"'
    assert shown["kubelet_pod_pending_resizes"].startswith(('priority_bucket="', 'reason="'))
    assert world.metric("kubelet_pod_pending_resizes", reason="infeasible") == 1
    assert world.metric("kubelet_pod_in_progress_resizes") == 0
    name = "kubelet_container_requested_resizes_total"
    counted = {
        (operation, requirement, resource): world.metric(name, operation=operation, requirement=requirement, resource=resource)
        for operation in ("add", "remove", "increase", "decrease")
        for requirement in ("requests", "limits")
        for resource in ("cpu", "memory")
    }
    assert {key: value for key, value in counted.items() if value} == {
        ("increase", "requests", "cpu"): 3,
        ("add", "limits", "memory"): 1,
    }
    for operation in ("update_container", "update_podsandbox_resources"):
        assert world.metric("kubelet_runtime_operations_total", operation_type=operation) > 0


@pytest.mark.parametrize("profile", ["lab", "v1.37"])
def test_the_labs_resize_status_is_there_in_the_lab_alone_and_tells_each_stage(profile: str) -> None:
    world = running(World(profile=profile), a_pod("a", a_container(cpu="1"), workload={"c": {"resizeSeconds": 1}}))
    lab = profile == "lab"
    running(world, a_pod("b", a_container(cpu="2")))
    seen = [world.container("a").get("resizeStatus")]
    for cpu, wait in (("5", 1), ("3", 1), ("2", 0.5), ("2", 2)):
        if world.api.objects["pods"]["ns/a"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] != cpu:
            world.api.resize("a", requests={"cpu": cpu})
        world.run(wait)
        word = world.container("a").get("resizeStatus")
        seen.append(word)
        series = "kube_pod_container_status_resize_status"
        assert world.metric(series, namespace="ns", pod="a", container="c", resize_status=str(word)) == (1 if lab else 0)
    first = "Infeasible" if lab else None
    assert seen == ([None, first, "Deferred", "InProgress", "Succeeded"] if lab else [None] * 5)
