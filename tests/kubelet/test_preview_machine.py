"""A kubelet with the previews: exclusive CPUs that are resized, at once or after a delay, through restarts and deaths."""

from typing import Any

import msgspec
import pytest
from kubelet_world import KUBELET, World, a_container, a_pod

T1 = {"sockets": 1, "numaNodesPerSocket": 1, "coresPerNuma": 4, "threadsPerCore": 2}
T2 = {"sockets": 2, "numaNodesPerSocket": 1, "coresPerNuma": 4, "threadsPerCore": 2}
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"


def a_world(
    preview: str, *, machine: Any = None, delay: str = "", gates: Any = None, profile: str = "lab", **kubelet: Any
) -> World:
    shape = machine or T1
    cpus = 16 if shape == T2 else 8
    config = {
        "cpuManagerPolicy": "static",
        "cpuManagerReconcilePeriod": "1s",
        "reservedSystemCPUs": f"0,{cpus // 2}",
        "featureGates": {"InPlacePodVerticalScalingExclusiveCPUs": True, **(gates or {})},
        "elbowroom": {"preview": preview},
        **({"cpuManagerPolicyOptions": {"scale-delay-time": delay}} if delay else {}),
        **kubelet,
    }
    return World(profile=profile, cpu=str(cpus - 2), memory="32Gi", machine=shape, kubelet=config)


def own(name: str, cpu: int | str, **spec: Any) -> dict[str, Any]:
    amounts = {"cpu": str(cpu), "memory": "128Mi"}
    return a_pod(name, a_container(cpu=str(cpu), memory="128Mi", limits=amounts), **spec)


def start(world: World, *pods: dict[str, Any]) -> World:
    for pod in pods:
        world.api.create("pods", pod)
        name = pod["metadata"]["name"]
        world.until(lambda name=name: world.status(name).get("phase") == "Running")
    return world.run(2)


def resize(world: World, name: str, cpu: int | str) -> None:
    world.api.resize(name, requests={"cpu": str(cpu)}, limits={"cpu": str(cpu)})


def to(world: World, name: str, cpu: int) -> World:
    """Resized, with all that follows."""
    resize(world, name, cpu)
    return world.run(2).until(lambda: world.is_settled(name)).run(2)


def cpus(world: World, pod: str) -> str:
    listed: list[dict[str, Any]] = msgspec.json.decode(world.proxy("cgroups")["body"])
    return str(next(g for g in listed if g["pod"] == pod and g.get("container") == "c")["cpusetCpus"])


def given(world: World, pod: str) -> list[int]:
    listed = msgspec.json.decode(world.proxy("podresources")["body"])["podResources"]
    found: list[int] = next(p for p in listed if p["name"] == pod)["containers"][0]["cpuIds"]
    return found


def file(world: World, pod: str, path: str = "etc/podinfo/cpus") -> Any:
    return world.proxy(f"files/ns/{pod}/c/{path}")


TOLD: dict[str, Any] = {
    "volumes": [
        {
            "name": "v",
            "downwardAPI": {
                "items": [
                    {"path": "cpus", "resourceFieldRef": {"containerName": "c", "resource": "assigned.cpuset"}},
                    {"path": "cpu", "resourceFieldRef": {"containerName": "c", "resource": "requests.cpu"}},
                ]
            },
        }
    ]
}


def told(name: str, cpu: int) -> dict[str, Any]:
    pod = own(name, cpu, **TOLD)
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/etc/podinfo"}]
    return pod


def actual(world: World, pod: str) -> tuple[str, str, str]:
    """What its status shows: the container's requests and limits, and the pod's requests."""
    resources = world.container(pod)["resources"]
    return resources["requests"]["cpu"], resources["limits"]["cpu"], world.status(pod)["resources"]["requests"]["cpu"]


# ---------------------------------------------------------------- KEP-5554


def test_a_set_grows_and_shrinks_and_the_shared_pool_follows() -> None:
    world = start(a_world("5554"), own("p", 2), a_pod("probe"))
    assert (cpus(world, "p"), cpus(world, "probe")) == ("1,5", "0,2-4,6-7")
    to(world, "p", 4)
    assert (cpus(world, "p"), cpus(world, "probe"), given(world, "p")) == ("1-2,5-6", "0,3-4,7", [1, 2, 5, 6])
    assert world.container("p")["allocatedResources"]["cpu"] == "4" and world.container("p")["restartCount"] == 0
    to(world, "p", 2)
    assert (cpus(world, "p"), cpus(world, "probe")) == ("1,5", "0,2-4,6-7")


def test_less_than_it_first_had_is_infeasible_and_nothing_moves() -> None:
    world = start(a_world("5554"), own("p", 4))
    resize(world, "p", 3)
    world.run(3)
    pending = world.condition("p", PENDING)
    assert pending is not None and pending["reason"] == "Infeasible"
    assert pending["message"].startswith("prohibitedCPUAllocation Error: Skip resize")
    assert cpus(world, "p") == "1-2,5-6" and world.container("p")["allocatedResources"]["cpu"] == "4"
    assert len(world.api.events("ResizeInfeasible")) == 1
    assert world.metric("kubelet_pod_infeasible_resizes_total", reason_detail="prohibitedCPUAllocation") == 1
    to(world, "p", 4)
    assert world.condition("p", PENDING) is None


@pytest.mark.parametrize(("first", "wanted"), [("2", "1500m"), ("1500m", "2"), ("4", "4500m")])
def test_nobody_changes_between_the_pools(first: str, wanted: str) -> None:
    world = start(a_world("5554"), own("p", first))
    before = cpus(world, "p")
    resize(world, "p", wanted)
    pending = world.run(2).condition("p", PENDING)
    assert pending is not None and pending["message"].startswith("inconsistentCPUAllocation Error: ")
    assert cpus(world, "p") == before


def test_a_shared_container_of_a_guaranteed_pod_takes_another_fraction() -> None:
    world = to(start(a_world("5554"), own("p", "1500m")), "p", "1700m")  # type: ignore[arg-type]
    assert world.container("p")["allocatedResources"]["cpu"] == "1700m" and cpus(world, "p") == "0-7"


def test_the_nodes_room_is_judged_before_its_cpus() -> None:
    world = start(a_world("5554"), own("p", 2), own("q", 4))
    resize(world, "p", 3)
    pending = world.run(2).condition("p", PENDING)
    assert pending is not None and pending["reason"] == "Deferred" and "OutOfcpu" in str(world.api.events("ResizeDeferred"))
    world.api.delete("q")
    world.until(lambda: world.is_settled("p")).run(2)
    assert cpus(world, "p") == "1-2,5"


def test_a_strict_topology_policy_makes_a_spill_infeasible() -> None:
    world = start(a_world("5554", machine=T2, topologyManagerPolicy="restricted"), own("a", 2), own("b", 4))
    resize(world, "a", 4)
    pending = world.run(2).condition("a", PENDING)
    assert pending is not None and pending["reason"] == "Infeasible"
    assert pending["message"] == "resizeAllocateCPUs Error: Resources cannot be allocated with Topology locality"
    assert cpus(world, "a") == "1,9"


def test_a_pod_with_pod_level_resources_is_left_out() -> None:
    amounts = {"cpu": "4", "memory": "1Gi"}
    own_amounts = {"cpu": "2", "memory": "128Mi"}
    pod = a_pod(
        "p",
        a_container(cpu="2", memory="128Mi", limits=own_amounts),
        a_container("other"),
        resources={"requests": amounts, "limits": amounts},
    )
    gates = {"PodLevelResourceManagers": True}
    world = start(a_world("5554", gates=gates, topologyManagerPolicy="restricted", topologyManagerScope="pod"), pod)
    before = cpus(world, "p")
    resize(world, "p", 1)
    pending = world.run(2).condition("p", PENDING)
    assert pending is not None and pending["message"].endswith('alongside CPU Manager policy "static"')
    assert cpus(world, "p") == before


def test_both_sets_survive_a_restart_of_the_kubelet() -> None:
    world = to(start(a_world("5554"), own("p", 2)), "p", 4)
    world.restart_kubelet()
    world.run(3)
    assert cpus(world, "p") == "1-2,5-6" and world.container("p")["restartCount"] == 0
    resize(world, "p", 1)
    pending = world.run(2).condition("p", PENDING)
    assert pending is not None and "promised CPUs = 2" in pending["message"]
    to(world, "p", 2)
    assert cpus(world, "p") == "1,5"


@pytest.mark.parametrize(
    ("preview", "before", "then", "expected"),
    [("5554", 2, 4, "1-2,5-6"), ("5554", 4, 2, "1,5"), ("6122A", 4, 2, "1,5"), ("6122B", 4, 2, "1,5")],
)
def test_a_kubelet_that_dies_anywhere_in_a_resize_carries_it_out_all_the_same(
    preview: str, before: int, then: int, expected: str
) -> None:
    delay = {"6122A": "3s"}.get(preview, "")
    grace = {"scaleDownGracePeriodSeconds": 3} if preview == "6122B" else {}

    def story(die_at: int | None) -> World:
        world = start(a_world(preview, delay=delay), own("p", 2, **grace), a_pod("probe"))
        to(world, "p", before)
        begun = world.effects
        world.die_at = None if die_at is None else begun + die_at
        resize(world, "p", then)
        for _ in range(20):
            world.run(1)
            if not world.kubelet_lives:
                world.die_at = None
                world.start_kubelet()
        world.effects -= begun
        return world

    effects = story(None).effects
    for die_at in range(1, min(effects, 60)):
        world = story(die_at)
        assert world.is_settled("p"), die_at
        assert cpus(world, "p") == expected and len(given(world, "p")) == then, die_at


# ---------------------------------------------------------------- a released kubelet


def test_a_released_kubelet_grants_and_leaves_the_cpus_as_they_are() -> None:
    world = to(start(a_world("none"), own("p", 2)), "p", 4)
    assert cpus(world, "p") == "1,5" and world.container("p")["allocatedResources"]["cpu"] == "4"


def test_a_strict_topology_policy_lets_such_a_resize_wait() -> None:
    world = start(a_world("none", topologyManagerPolicy="restricted"), own("p", 2))
    resize(world, "p", 4)
    pending = world.run(2).condition("p", PENDING)
    assert pending is not None and pending["reason"] == "Deferred"
    assert pending["message"] == "Resources cannot be allocated with Topology locality"


def test_a_knob_turns_on_what_its_design_needs() -> None:
    world = to(start(a_world("5554", profile="v1.37", gates=None), own("p", 2)), "p", 4)
    assert cpus(world, "p") == "1-2,5-6"


# ---------------------------------------------------------------- KEP-6122, design A


def test_a_shrink_is_told_at_once_and_carried_out_after_its_delay() -> None:
    world = to(start(a_world("6122A", delay="6s"), told("p", 2), a_pod("probe")), "p", 4)
    resize(world, "p", 2)
    world.run(3)
    assert (file(world, "p")["body"], file(world, "p", "etc/podinfo/cpu")["body"]) == (b"1,5", b"2")
    assert (cpus(world, "p"), cpus(world, "probe")) == ("1-2,5-6", "0,3-4,7")
    assert world.container("p")["allocatedResources"]["cpu"] == "2" and actual(world, "p") == ("4", "4", "4")
    assert world.condition("p", IN_PROGRESS) is not None and world.condition("p", PENDING) is None
    assert not [e for e in world.api.events("ResizeCompleted") if '"generation":3' in e["message"]]
    world.run(5)
    assert (cpus(world, "p"), cpus(world, "probe")) == ("1,5", "0,2-4,6-7")
    assert world.is_settled("p") and actual(world, "p") == ("2", "2", "2")
    assert len([e for e in world.api.events("ResizeCompleted") if '"generation":3' in e["message"]]) == 1


def test_a_delay_ends_with_a_round_of_the_cpu_manager() -> None:
    world = to(start(a_world("6122A", delay="2s", cpuManagerReconcilePeriod="8s"), own("p", 2)), "p", 4).run(8)
    assert cpus(world, "p") == "1-2,5-6"
    at = world.now
    resize(world, "p", 2)
    world.until(lambda: cpus(world, "p") == "1,5")
    assert 2 <= (world.now - at) / 1e9 <= 10.5
    world.until(lambda: world.is_settled("p"))


def test_growth_is_in_force_with_the_next_round() -> None:
    world = start(a_world("6122A", delay="10s"), own("p", 2))
    resize(world, "p", 4)
    world.run(0.5)
    assert given(world, "p") == [1, 2, 5, 6]
    world.run(1.5)
    assert cpus(world, "p") == "1-2,5-6" and world.is_settled("p")


def test_growing_back_calls_the_shrink_off() -> None:
    world = to(start(a_world("6122A", delay="6s"), own("p", 2)), "p", 4)
    resize(world, "p", 2)
    world.run(2)
    resize(world, "p", 4)
    world.run(2)
    assert world.is_settled("p") and actual(world, "p") == ("4", "4", "4")
    assert cpus(world.run(10), "p") == "1-2,5-6"


def test_growing_back_by_a_part_waits_anew() -> None:
    world = to(start(a_world("6122A", delay="6s"), own("p", 2)), "p", 6)
    resize(world, "p", 2)
    world.run(4)
    resize(world, "p", 4)
    assert cpus(world.run(5), "p") == "1-3,5-7" and actual(world, "p")[0] == "6"
    assert cpus(world.run(3), "p") == "1-2,5-6" and world.is_settled("p")


def test_what_is_refused_meanwhile_does_not_stop_it() -> None:
    world = to(start(a_world("6122A", delay="6s"), own("p", 2)), "p", 4)
    resize(world, "p", 2)
    world.run(1)
    resize(world, "p", 1)
    pending = world.run(1).condition("p", PENDING)
    assert pending is not None and pending["reason"] == "Infeasible" and world.condition("p", IN_PROGRESS) is not None
    assert cpus(world.run(7), "p") == "1,5" and world.condition("p", IN_PROGRESS) is None


def test_a_neighbour_that_wants_to_grow_waits_until_they_have_left() -> None:
    world = to(start(a_world("6122A", delay="6s"), own("p", 2), own("q", 2)), "p", 4)
    resize(world, "p", 2)
    world.run(1)
    resize(world, "q", 4)
    pending = world.run(1).condition("q", PENDING)
    assert pending is not None and pending["reason"] == "Deferred"
    world.notes.clear()
    world.run(2)
    assert not world.noted("kl.judge"), "a round in which nobody leaves wakes nobody"
    world.run(6)
    assert world.is_settled("q") and cpus(world.run(2), "q") == "2-3,6-7" and cpus(world, "p") == "1,5"


def test_where_nobody_is_to_be_moved_no_round_comes() -> None:
    world = a_world("6122A", delay="6s").run(3)
    rounds = (KUBELET, "kubelet/cpus")
    before = world._timers[rounds]
    assert before, "the first one looks at everybody"
    world.run(10)
    assert world._timers[rounds] == before
    start(world, own("p", 2)).run(3)
    moved = world._timers[rounds]
    assert moved > before
    world.run(10)
    assert world._timers[rounds] == moved


def test_a_new_pod_does_not_come_in_meanwhile() -> None:
    world = to(start(a_world("6122A", delay="6s"), own("p", 2)), "p", 6)
    resize(world, "p", 2)
    world.run(1)
    world.api.create("pods", own("q", 2))
    assert world.run(2).status("q")["reason"] == "UnexpectedAdmissionError"


def test_a_restart_begins_the_delay_anew_and_the_pod_is_taken_back() -> None:
    world = to(start(a_world("6122A", delay="6s", topologyManagerPolicy="restricted"), told("p", 2)), "p", 4)
    resize(world, "p", 2)
    world.run(4)
    world.restart_kubelet()
    world.run(4)
    assert cpus(world, "p") == "1-2,5-6" and actual(world, "p")[0] == "4" and file(world, "p")["body"] == b"1,5"
    assert world.status("p")["phase"] == "Running" and world.condition("p", IN_PROGRESS) is not None
    world.run(5)
    assert cpus(world, "p") == "1,5" and world.is_settled("p")


def test_who_is_deleted_meanwhile_gives_all_back() -> None:
    world = to(start(a_world("6122A", delay="6s"), own("p", 2), a_pod("probe")), "p", 4)
    resize(world, "p", 2)
    world.run(1)
    world.api.delete("p")
    assert cpus(world.run(10), "probe") == "0-7"


# ---------------------------------------------------------------- KEP-6122, design B


def test_each_pod_has_its_own_delay() -> None:
    world = start(a_world("6122B"), own("a", 1), own("b", 1, scaleDownGracePeriodSeconds=6))
    to(to(world, "a", 2), "b", 2)
    before = cpus(world, "b")
    resize(world, "a", 1)
    resize(world, "b", 1)
    world.run(3)
    assert world.is_settled("a") and len(given(world, "a")) == 1
    assert cpus(world, "b") == before and not world.is_settled("b")
    assert world.metric("cpu_manager_scale_down_delay_started_total") == 1
    assert world.metric("cpu_manager_scale_down_pending_cpu_count") == 1
    world.run(5)
    assert world.is_settled("b") and len(given(world, "b")) == 1
    assert world.metric("cpu_manager_scale_down_delay_completed_total") == 1
    assert world.metric("cpu_manager_scale_down_pending_cpu_count") == 0


def test_a_restart_does_not_begin_it_anew() -> None:
    world = to(start(a_world("6122B"), own("p", 2, scaleDownGracePeriodSeconds=10)), "p", 4)
    resize(world, "p", 2)
    world.run(7)
    world.restart_kubelet()
    assert cpus(world.run(1), "p") == "1-2,5-6"
    world.run(4)
    assert cpus(world, "p") == "1,5" and world.is_settled("p")


def test_a_boot_of_the_machine_does() -> None:
    world = to(start(a_world("6122B"), own("p", 2, scaleDownGracePeriodSeconds=10)), "p", 4)
    resize(world, "p", 2)
    world.run(7)
    world.boot = "boot-2"
    world.restart_kubelet()
    assert cpus(world.run(7), "p") == "1-2,5-6"
    assert cpus(world.run(5), "p") == "1,5"


def test_a_node_without_the_feature_refuses_such_a_pod() -> None:
    world = a_world("6122A")
    world.api.create("pods", own("p", 2, scaleDownGracePeriodSeconds=5))
    status = world.run(1).status("p")
    assert (status["phase"], status["reason"]) == ("Failed", "PodFeatureUnsupported")
    assert "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay" in status["message"]


def reconfigured(world: World, change: Any) -> World:
    """The kubelet is restarted with another configuration."""

    def apply(node: dict[str, Any]) -> None:
        notes = node["metadata"]["annotations"]
        config = msgspec.json.decode(notes["elbowroom.dev/kubelet-config"])
        change(config)
        notes["elbowroom.dev/kubelet-config"] = msgspec.json.encode(config).decode()

    world.kill_kubelet()
    world.api.change("nodes", "n1", apply)
    world.start_kubelet()
    return world.run(3)


def test_such_a_pod_fails_when_its_node_loses_the_feature() -> None:
    world = start(a_world("6122B"), own("p", 2, scaleDownGracePeriodSeconds=5))
    gate = {"InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay": False}
    reconfigured(world, lambda config: config["featureGates"].update(gate))
    assert (world.status("p")["phase"], world.status("p")["reason"]) == ("Failed", "PodFeatureUnsupported")


def test_a_gate_that_is_turned_off_keeps_the_sets_and_refuses_further_resizes() -> None:
    world = to(start(a_world("5554"), own("p", 2)), "p", 4)
    gate = {"InPlacePodVerticalScalingExclusiveCPUs": False}
    reconfigured(world, lambda config: config["featureGates"].update(gate))
    assert cpus(world, "p") == "1-2,5-6" and world.status("p")["phase"] == "Running"
    resize(world, "p", 2)
    pending = world.run(2).condition("p", PENDING)
    assert pending is not None and pending["message"].endswith('alongside CPU Manager policy "static"')
    resize(world, "p", 4)
    reconfigured(world, lambda config: config["featureGates"].update(dict.fromkeys(gate, True)))
    assert cpus(to(world, "p", 2), "p") == "1,5"


def test_a_kubelet_without_pod_level_resources_refuses_pods_that_have_some() -> None:
    gates = {
        "PodLevelResourcesFixDefaulting": False,
        "PodLevelResourcesFixKubeletQOSClass": False,
        "PodLevelResourceManagers": False,
    }
    gates |= {"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False}
    world = World(kubelet={"featureGates": gates})
    world.api.create("pods", a_pod("p", resources={"requests": {"cpu": "1"}}))
    status = world.run(1).status("p")
    assert (status["phase"], status["reason"]) == ("Failed", "PodLevelResourcesNotSupported")


# ---------------------------------------------------------------- files


def test_a_file_is_there_while_its_container_runs() -> None:
    world = start(a_world("6122A"), told("p", 2), a_pod("shared", **TOLD))
    assert (file(world, "p")["status"], file(world, "p")["body"]) == (200, b"1,5")
    assert file(world, "p", "etc/podinfo/none")["status"] == 404
    assert world.proxy("files/ns/none/c/etc")["status"] == 404
    assert world.proxy("files/ns/p/none/etc")["status"] == 404
    assert world.proxy("files/ns/p")["status"] == 400
    world.api.delete("p")
    assert file(world.run(3), "p")["status"] == 404


# ---------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    ("delay", "gates", "ready"),
    [
        ("11s", {}, False),
        ("-1s", {}, False),
        ("abc", {}, False),
        ("5s", {"InPlacePodVerticalScalingExclusiveCPUs": False}, False),
        ("5s", {"CPUManagerPolicyAlphaOptions": False}, False),
        ("0s", {"InPlacePodVerticalScalingExclusiveCPUs": False}, True),
        ("500ms", {}, True),
        ("10s", {}, True),
    ],
)
def test_a_delay_out_of_range_or_without_its_gates_keeps_the_kubelet_from_coming_up(delay: str, gates: Any, ready: bool) -> None:
    world = a_world("6122A", delay=delay, gates=gates)
    assert bool(world.noted("kl.config.refused")) is not ready


def test_the_cpu_managers_file_has_what_a_container_first_had() -> None:
    world = to(start(a_world("5554"), own("p", 2)), "p", 4)
    raw = msgspec.json.decode(world._disks[KUBELET]["cpu_manager_state"])
    uid = world.api.objects["pods"]["ns/p"]["metadata"]["uid"]
    assert raw["entries"] == {uid: {"c": "1-2,5-6"}}
    assert msgspec.json.decode(raw["data"])["original"] == {uid: {"c": "1,5"}}
