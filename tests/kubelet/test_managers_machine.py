"""A kubelet whose CPU, memory and topology managers give pods processors and memory of their own."""

from functools import partial
from typing import Any

import msgspec
import pytest
from kubelet_world import KUBELET, NODE, World, a_container, a_pod

from elbowroom.wire import Code

GIB, MIB = 1 << 30, 1 << 20

T1 = {"sockets": 1, "numaNodesPerSocket": 1, "coresPerNuma": 4, "threadsPerCore": 2}
T2 = {"sockets": 2, "numaNodesPerSocket": 1, "coresPerNuma": 4, "threadsPerCore": 2}
T4 = {"sockets": 1, "numaNodesPerSocket": 1, "coresPerNuma": 16, "threadsPerCore": 1}
OFF = {"InPlacePodVerticalScalingExclusiveCPUs": False, "PodLevelResourceManagers": False}
LEVEL = {"InPlacePodVerticalScalingExclusiveCPUs": False, "PodLevelResourceManagers": True}


def static(reserved: str, gates: dict[str, bool] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "cpuManagerPolicy": "static",
        "cpuManagerReconcilePeriod": "1s",
        "reservedSystemCPUs": reserved,
        "featureGates": OFF if gates is None else gates,
        **more,
    }


def small(**more: Any) -> World:
    return World(cpu="8", memory="32Gi", machine=T1, kubelet=static("0,4", **more))


def large(gates: dict[str, bool] | None = None, **more: Any) -> World:
    return World(cpu="16", memory="32Gi", machine=T2, kubelet=static("0,8", gates, **more))


def own(name: str, cpu: str, memory: str = "128Mi", **more: Any) -> dict[str, Any]:
    return a_container(name, cpu, memory, {"cpu": cpu, "memory": memory}, **more)


def a_level(cpu: str, memory: str = "4Gi") -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}}


def _is_decided(world: World, name: str) -> bool:
    return world.status(name).get("phase") in ("Running", "Failed")


def admitted(world: World, *pods: dict[str, Any]) -> World:
    """Each pod came to its end or runs, one after the other."""
    for pod in pods:
        world.api.create("pods", pod)
        name = pod["metadata"]["name"]
        world.until(partial(_is_decided, world, name))
    return world.run(2)


def cgroup(world: World, pod: str, container: str | None = "c") -> dict[str, Any]:
    listed: list[dict[str, Any]] = msgspec.json.decode(world.proxy("cgroups")["body"])
    return next(g for g in listed if g["pod"] == pod and g.get("container") == container)


def cpus(world: World, pod: str, container: str = "c") -> str:
    return str(cgroup(world, pod, container)["cpusetCpus"])


def state(world: World) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(world._disks[KUBELET]["cpu_manager_state"])
    return found


def resources(world: World, pod: str) -> dict[str, Any]:
    listed: list[dict[str, Any]] = msgspec.json.decode(world.proxy("podresources")["body"])["podResources"]
    return next(p for p in listed if p["name"] == pod)


# ---------------------------------------------------------------- exclusive CPUs


def test_exclusive_cpus_leave_the_shared_pool_and_those_who_share_move_at_the_next_round() -> None:
    world = admitted(small(), a_pod("probe", a_container(memory="16Mi")))
    assert cpus(world, "probe") == "0-7"
    admitted(world, a_pod("p1", own("c", "2")), a_pod("p2", own("c", "1")), a_pod("p3", own("c", "2")))
    assert [cpus(world, name) for name in ("p1", "p2", "p3", "probe")] == ["1,5", "2", "3,7", "0,4,6"]
    assert [cgroup(world, name)["cpuQuota"] for name in ("p1", "p2", "p3")] == [None] * 3
    assert cgroup(world, "p1", None)["cpuQuota"] is None
    assert resources(world, "p1")["containers"] == [{"name": "c", "cpuIds": [1, 5], "memory": []}]
    assert resources(world, "probe")["containers"] == [{"name": "c", "cpuIds": [], "memory": []}]
    assert world.status("p1")["containerStatuses"][0]["resources"]["limits"]["cpu"] == "2"


def test_who_shares_is_moved_at_the_period_and_not_at_once() -> None:
    world = admitted(small(cpuManagerReconcilePeriod="10s"), a_pod("probe", a_container(memory="16Mi")))
    world.api.create("pods", a_pod("p1", own("c", "2")))
    world.until(lambda: world.status("p1").get("phase") == "Running")
    assert cpus(world, "probe") == "0-7"
    world.run(10)
    assert cpus(world, "probe") == "0,2-4,6-7"


def test_what_a_pod_had_is_shared_again_when_it_is_gone() -> None:
    world = admitted(small(), a_pod("p1", own("c", "4")), a_pod("probe", a_container(memory="16Mi")))
    assert cpus(world, "probe") == "0,3-4,7"
    world.api.delete("p1")
    world.run(3)
    assert cpus(world, "probe") == "0-7"
    assert state(world) == {"policyName": "static", "defaultCpuSet": "0-7", "checksum": state(world)["checksum"]}


def test_a_fraction_of_a_cpu_is_shared_and_keeps_its_quota() -> None:
    world = admitted(small(), a_pod("p", own("c", "1500m")))
    assert (cpus(world, "p"), cgroup(world, "p")["cpuQuota"]) == ("0-7", 150000)


def test_a_sibling_that_shares_keeps_its_quota_and_their_pod_has_none() -> None:
    world = admitted(small(), a_pod("p", own("x", "2"), own("y", "500m")))
    assert cgroup(world, "p", "y")["cpuQuota"] == 50000
    assert cgroup(world, "p", "x")["cpuQuota"] is None
    assert cgroup(world, "p", None)["cpuQuota"] is None


def test_an_app_container_takes_over_the_cpus_of_an_init_container() -> None:
    pod = a_pod("p", own("c", "2"), initContainers=[own("i", "4")])
    world = admitted(small(), pod, a_pod("probe", a_container(memory="16Mi")))
    assert (cpus(world, "p"), cpus(world, "probe")) == ("1,5", "0,3-4,7")
    world.api.delete("p")
    world.run(3)
    assert cpus(world, "probe") == "0-7"


@pytest.mark.parametrize(
    ("kubelet", "cpu", "reason", "message"),
    [
        (
            {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
            "3",
            "SMTAlignmentError",
            "Pod was rejected: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
        ),
        (
            {},
            "7",
            "UnexpectedAdmissionError",
            "Pod was rejected: Allocate failed due to not enough cpus available to satisfy request: requested=7, available=6, "
            "which is unexpected",
        ),
        (
            {"topologyManagerPolicy": "restricted"},
            "7",
            "TopologyAffinityError",
            "Pod was rejected: Resources cannot be allocated with Topology locality",
        ),
    ],
)
def test_what_cannot_be_given_fails_the_pod_and_leaves_nothing_behind(
    kubelet: dict[str, Any], cpu: str, reason: str, message: str
) -> None:
    world = admitted(small(**kubelet), a_pod("p", own("c", cpu)))
    assert (world.status("p")["phase"], world.status("p")["reason"], world.status("p")["message"]) == ("Failed", reason, message)
    assert state(world)["defaultCpuSet"] == "0-7"


def test_restricted_rejects_what_best_effort_spreads() -> None:
    pods = [a_pod("p1", own("c", "4")), a_pod("p2", own("c", "6")), a_pod("p3", own("c", "4"))]
    strict = admitted(large(topologyManagerPolicy="restricted"), *pods)
    assert strict.status("p3")["reason"] == "TopologyAffinityError"
    assert [cpus(strict, name) for name in ("p1", "p2")] == ["1-2,9-10", "4-6,12-14"]
    loose = admitted(large(topologyManagerPolicy="best-effort"), *pods)
    assert [cpus(loose, name) for name in ("p1", "p2", "p3")] == ["1-2,9-10", "4-6,12-14", "3,7,11,15"]


# ---------------------------------------------------------------- pods as a whole


def test_a_pod_has_cpus_as_a_whole_and_its_containers_share_what_none_has_alone() -> None:
    pod = a_pod("p", own("c1", "2", "2Gi"), a_container("c2"), a_container("c3"), resources=a_level("4"))
    world = large(LEVEL, topologyManagerPolicy="restricted", topologyManagerScope="pod")
    admitted(world, pod, a_pod("probe", a_container(memory="16Mi")))
    assert [cpus(world, "p", name) for name in ("c1", "c2", "c3")] == ["1,9", "2,10", "2,10"]
    assert [cgroup(world, "p", name)["cpuQuota"] for name in ("c1", "c2", "c3")] == [None, 400000, 400000]
    assert cpus(world, "probe") == "0,3-8,11-15"
    shown = resources(world, "p")
    assert shown["cpuIds"] == [1, 2, 9, 10]
    assert [c["cpuIds"] for c in shown["containers"]] == [[1, 9], [], []]
    assert world.metric("resource_manager_allocations_total", resource_name="cpu", source="pod") == 3
    assert world.metric("resource_manager_container_assignments", resource_name="cpu", assignment_type="pod_exclusive") == 1
    assert world.metric("resource_manager_container_assignments", resource_name="cpu", assignment_type="pod_shared") == 2
    [entry] = msgspec.json.decode(state(world)["data"])["podEntries"].values()
    assert entry == {"cpuSet": "1-2,9-10"}


def test_a_pod_whose_containers_all_share_keeps_its_quota() -> None:
    pod = a_pod("p", a_container("c1"), a_container("c2"), resources=a_level("4"))
    world = admitted(large(LEVEL, topologyManagerPolicy="restricted", topologyManagerScope="pod"), pod)
    assert [cpus(world, "p", name) for name in ("c1", "c2")] == ["1-2,9-10"] * 2
    assert cgroup(world, "p", None)["cpuQuota"] == 400000


@pytest.mark.parametrize(
    ("policy", "reason", "message"),
    [
        ("restricted", "TopologyAffinityError", "pod with pod-level resources failed admission under pod-scope topology manager"),
        ("best-effort", "EmptyPodSharedPoolError", "leaving no cpus for shared containers"),
    ],
)
def test_nothing_left_for_who_shares_rejects_the_pod(policy: str, reason: str, message: str) -> None:
    pod = a_pod("p", own("c1", "3"), own("c2", "2"), a_container("c3"), resources=a_level("5"))
    world = admitted(large(LEVEL, topologyManagerPolicy=policy, topologyManagerScope="pod"), pod)
    assert world.status("p")["reason"] == reason
    assert message in world.status("p")["message"]
    assert state(world)["defaultCpuSet"] == "0-15"


@pytest.mark.parametrize(
    ("gates", "scope", "expected"),
    [(LEVEL, "container", ["1,9", "0,2-8,10-15"]), (OFF, "pod", ["0-15", "0-15"]), (OFF, "container", ["0-15", "0-15"])],
)
def test_outside_the_pod_scope_pod_level_resources_give_nothing_away(
    gates: dict[str, bool], scope: str, expected: list[str]
) -> None:
    pod = a_pod("p", own("c1", "2", "2Gi"), a_container("c2"), resources=a_level("4"))
    world = admitted(large(gates, topologyManagerPolicy="restricted", topologyManagerScope=scope), pod)
    assert [cpus(world, "p", name) for name in ("c1", "c2")] == expected


def test_init_containers_come_before_and_sidecars_beside_the_others() -> None:
    pod = a_pod(
        "p",
        own("a", "2"),
        a_container("b"),
        initContainers=[own("sc", "1", restartPolicy="Always"), a_container("i")],
        resources=a_level("4"),
        workload={"i": {"exitAfterSeconds": 5, "exitCode": 0}},
    )
    world = World(
        cpu="16",
        machine=T4,
        memory="32Gi",
        kubelet=static("0", LEVEL, topologyManagerPolicy="best-effort", topologyManagerScope="pod"),
    )
    world.api.create("pods", pod)
    world.run(3)
    assert (cpus(world, "p", "sc"), cpus(world, "p", "i")) == ("1", "2-4")
    world.run(6)
    assert [cpus(world, "p", name) for name in ("sc", "a", "b")] == ["1", "2-3", "4"]


def test_a_pods_cpus_are_shared_again_only_when_its_last_container_has_ended() -> None:
    ends = {"c1": {"exitAfterSeconds": 3, "exitCode": 0}, "c2": {"exitAfterSeconds": 10, "exitCode": 0}}
    pod = a_pod("p", own("c1", "2"), a_container("c2"), resources=a_level("4"), workload=ends, restartPolicy="Never")
    world = large(LEVEL, topologyManagerPolicy="restricted", topologyManagerScope="pod")
    admitted(world, pod, a_pod("probe", a_container(memory="16Mi"))).run(2)
    assert (cpus(world, "p", "c2"), cpus(world, "probe")) == ("2,10", "0,3-8,11-15")
    world.run(8)
    assert world.status("p")["phase"] == "Succeeded"
    assert cpus(world, "probe") == "0-15"


def test_the_pods_total_must_be_whole_cores_its_parts_need_not() -> None:
    kubelet: dict[str, Any] = {
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        "topologyManagerPolicy": "restricted",
        "topologyManagerScope": "pod",
    }
    world = admitted(
        large(LEVEL, **kubelet),
        a_pod("p1", own("c1", "3"), own("c2", "1"), resources=a_level("4")),
        a_pod("p2", a_container("c1"), resources=a_level("3")),
    )
    assert [cpus(world, "p1", name) for name in ("c1", "c2")] == ["1-2,9", "10"]
    assert world.status("p2")["reason"] == "SMTAlignmentError"


# ---------------------------------------------------------------- memory

STATIC_MEMORY: dict[str, Any] = {
    "memoryManagerPolicy": "Static",
    "evictionHard": {"memory.available": "100Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
}


def memory_state(world: World) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(world._disks[KUBELET]["memory_manager_state"])
    return found


def test_cpus_and_memory_of_a_pod_come_from_one_node() -> None:
    kubelet = {**STATIC_MEMORY, "topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "pod"}
    pod = a_pod("p", own("c1", "2", "2Gi"), a_container("c2"), resources=a_level("4"))
    world = admitted(large(LEVEL, **kubelet), pod)
    assert [cpus(world, "p", name) for name in ("c1", "c2")] == ["1,9", "2,10"]
    shown = resources(world, "p")
    assert shown["memory"] == [{"memoryType": "memory", "size": 4 * GIB, "topology": {"nodes": [{"ID": 0}]}}]
    assert [[block["size"] for block in c["memory"]] for c in shown["containers"]] == [[2 * GIB], []]
    table = memory_state(world)["machineState"]["0"]["memoryMap"]["memory"]
    assert table == {
        "total": 16 * GIB,
        "systemReserved": 100 * MIB,
        "allocatable": 16 * GIB - 100 * MIB,
        "reserved": 4 * GIB,
        "free": 12 * GIB - 100 * MIB,
    }
    world.api.delete("p")
    world.run(2)
    assert memory_state(world)["machineState"]["0"]["memoryMap"]["memory"]["reserved"] == 0


def test_a_node_used_alone_is_not_used_in_a_group() -> None:
    world = large(**STATIC_MEMORY, topologyManagerPolicy="best-effort")
    admitted(world, a_pod("p1", own("c", "1", "10Gi")), a_pod("p2", own("c", "1", "12Gi")), a_pod("p3", own("c", "1", "9Gi")))
    assert [world.status(name)["phase"] for name in ("p1", "p2", "p3")] == ["Running", "Running", "Failed"]
    assert world.status("p3")["reason"] == "UnexpectedAdmissionError"
    assert "[memorymanager]" in world.status("p3")["message"]


def test_an_init_containers_memory_is_taken_over_and_the_rest_free_once_another_starts() -> None:
    world = large(**STATIC_MEMORY)
    pod = a_pod("p", own("c", "1", "1Gi"), initContainers=[own("i", "1", "3Gi")])
    admitted(world, pod)
    assert memory_state(world)["machineState"]["0"]["memoryMap"]["memory"]["reserved"] == GIB
    assert list(next(iter(memory_state(world)["entries"].values()))) == ["c"]


# ---------------------------------------------------------------- lives


@pytest.mark.parametrize("gates", [OFF, LEVEL])
def test_a_new_life_finds_everybody_where_they_were(gates: dict[str, bool]) -> None:
    kubelet = {**STATIC_MEMORY, "topologyManagerPolicy": "restricted", "topologyManagerScope": "pod"}
    pods = [a_pod("p1", own("c", "2")), a_pod("probe", a_container(memory="16Mi"))]
    if gates is LEVEL:
        pods.append(a_pod("p", own("c1", "2", "2Gi"), a_container("c2"), resources=a_level("4")))
    world = admitted(large(gates, **kubelet), *pods)
    before, memory, groups = state(world), memory_state(world), world.proxy("cgroups")["body"]
    calls = len(world.calls)
    world.restart_kubelet()
    world.run(5)
    assert (state(world), memory_state(world), world.proxy("cgroups")["body"]) == (before, memory, groups)
    assert all(world.status(pod["metadata"]["name"])["phase"] == "Running" for pod in pods)
    assert not [method for method, _ in world.calls[calls:] if method == "UpdateContainerResources"]


@pytest.mark.parametrize(("count", "phase"), [("2", "Running"), ("4", "Failed")])
def test_whole_cores_are_looked_for_anew_when_the_kubelet_comes_back_as_upstream_does(count: str, phase: str) -> None:
    world = admitted(small(cpuManagerPolicyOptions={"full-pcpus-only": "true"}), a_pod("p", own("c", count)))
    assert world.status("p")["phase"] == "Running"
    world.restart_kubelet()
    world.run(5)
    assert world.status("p")["phase"] == phase
    assert world.status("p").get("reason") == (None if phase == "Running" else "SMTAlignmentError")


def test_what_left_while_the_kubelet_was_away_is_given_back() -> None:
    world = admitted(small(), a_pod("p1", own("c", "4")), a_pod("probe", a_container(memory="16Mi")))
    world.kill_kubelet()
    world.api.delete("p1")
    world.start_kubelet()
    world.run(5)
    assert cpus(world, "probe") == "0-7"


@pytest.mark.parametrize("at", range(60))
def test_a_death_at_any_point_of_an_admission_loses_no_cpu(at: int) -> None:
    world = admitted(small(), a_pod("p1", own("c", "2")))
    world.die_at = world.effects + at
    world.api.create("pods", a_pod("p2", own("c", "2")))
    world.run(3)
    world.die_at = None
    if not world.kubelet_lives:
        world.start_kubelet()
    world.until(lambda: world.status("p2").get("phase") == "Running").run(2)
    assert (cpus(world, "p1"), cpus(world, "p2"), state(world)["defaultCpuSet"]) == ("1,5", "2,6", "0,3-4,7")


OTHERS = (
    'could not restore state from checkpoint: configured policy "{}" differs from state checkpoint policy "{}", please drain this '
    'node and delete the CPU manager checkpoint file "/var/lib/kubelet/cpu_manager_state" before restarting Kubelet'
)


def _config(world: World, kubelet: dict[str, Any]) -> None:
    def change(node: dict[str, Any]) -> None:
        node["metadata"]["annotations"]["elbowroom.dev/kubelet-config"] = msgspec.json.encode(kubelet).decode()

    world.api.change("nodes", NODE, change)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (
            {},
            static("0,4"),
            OTHERS.format("static", "none"),
        ),
        (
            static("0,4"),
            {},
            OTHERS.format("none", "static"),
        ),
        (static("0,4"), static("0,4,5"), ""),
        (
            static("0,4", strict=True),
            static("0,4"),
            'not all reserved cpus: "0,4" are present in defaultCpuSet: "1-3,5-7"',
        ),
    ],
)
def test_another_lifes_state_is_not_taken_for_what_it_is_not(before: Any, after: Any, why: str) -> None:
    for kubelet in (before, after):
        if kubelet.pop("strict", False):
            kubelet["cpuManagerPolicyOptions"] = {"strict-cpu-reservation": "true"}
    world = World(cpu="8", memory="32Gi", machine=T1, kubelet=before)
    _config(world, after)
    world.restart_kubelet()
    world.run(5)
    assert [note["why"] for note in world.noted("kl.config.refused")] == ([why] if why else [])


@pytest.mark.parametrize("raw", [b"{", b'{"policyName":"static","defaultCpuSet":"0-7","checksum":1}'])
def test_a_damaged_file_keeps_the_kubelet_from_starting(raw: bytes) -> None:
    world = small()
    world.kill_kubelet()
    world._disks[KUBELET]["cpu_manager_state"] = raw
    world.start_kubelet()
    world.run(5)
    [note] = world.noted("kl.config.refused")
    assert note["why"].startswith("could not restore state from checkpoint: ")
    assert "please drain this node and delete the CPU manager checkpoint file" in note["why"]


def test_a_lost_file_begins_anew() -> None:
    world = admitted(small(), a_pod("p1", own("c", "2")))
    world.kill_kubelet()
    world.lose("cpu_manager_state")
    world.start_kubelet()
    world.run(3)
    assert state(world)["defaultCpuSet"] == "0,2-4,6-7"
    assert cpus(world, "p1") == "1,5"


# ---------------------------------------------------------------- resizes


def test_exclusive_cpus_are_not_resized_and_going_back_clears_that() -> None:
    world = admitted(small(), a_pod("p", own("c", "2")))
    world.api.resize("p", requests={"cpu": "4"}, limits={"cpu": "4"})
    world.run(2)
    condition = world.condition("p", "PodResizePending")
    assert condition is not None
    assert (condition["reason"], condition["message"]) == (
        "Infeasible",
        'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
    )
    assert world.metric("kubelet_pod_infeasible_resizes_total", reason_detail="guaranteed_pod_cpu_manager_static_policy") == 1
    world.api.resize("p", requests={"cpu": "2"}, limits={"cpu": "2"})
    world.run(2)
    assert world.is_settled("p")
    assert cpus(world, "p") == "1,5"


GATE = {**OFF, "InPlacePodVerticalScalingExclusiveCPUs": True}


def test_with_the_gate_and_no_preview_a_resize_is_granted_and_the_set_stays() -> None:
    world = admitted(
        small(gates=GATE, elbowroom={"preview": "none"}), a_pod("p", own("c", "2")), a_pod("probe", a_container(memory="16Mi"))
    )
    world.api.resize("p", requests={"cpu": "4"}, limits={"cpu": "4"})
    world.run(4)
    assert world.is_settled("p")
    assert world.container("p")["allocatedResources"]["cpu"] == "4"
    assert (cpus(world, "p"), cpus(world, "probe")) == ("1,5", "0,2-4,6-7")
    assert (cgroup(world, "p", None)["cpuWeight"], cgroup(world, "p")["cpuQuota"]) == (157, None)


def test_with_the_gate_and_a_strict_topology_a_resize_of_another_size_waits() -> None:
    world = admitted(
        small(gates=GATE, elbowroom={"preview": "none"}, topologyManagerPolicy="restricted"), a_pod("p", own("c", "2"))
    )
    world.api.resize("p", requests={"cpu": "4"}, limits={"cpu": "4"})
    world.run(2)
    condition = world.condition("p", "PodResizePending")
    assert condition is not None
    assert (condition["reason"], condition["message"]) == ("Deferred", "Resources cannot be allocated with Topology locality")


def test_memory_alone_is_resized_and_the_quota_stays_off() -> None:
    world = admitted(small(), a_pod("p", own("c", "2")))
    world.api.resize("p", requests={"memory": "256Mi"}, limits={"memory": "256Mi"})
    world.run(2)
    assert world.is_settled("p")
    assert (cgroup(world, "p")["memoryMax"], cgroup(world, "p")["cpuQuota"], cpus(world, "p")) == (256 * MIB, None, "1,5")


def test_moving_somebody_is_no_resize_that_a_workload_refuses() -> None:
    workload = {"c": {"resizeError": "always", "resizeSeconds": 5}}
    world = admitted(small(), a_pod("probe", a_container(memory="16Mi"), workload=workload), a_pod("p", own("c", "2")))
    assert cpus(world, "probe") == "0,2-4,6-7"
    assert not world.noted("kl.cpus.failed")


def test_a_runtime_that_refuses_to_move_somebody_is_asked_again_at_the_next_round() -> None:
    world = admitted(small(), a_pod("probe", a_container(memory="16Mi")))
    world.refuse["UpdateContainerResources"] = (Code.UNKNOWN, "busy")
    admitted(world, a_pod("p", own("c", "2")))
    assert cpus(world, "probe") == "0-7"
    assert world.noted("kl.cpus.failed")
    world.refuse.clear()
    world.run(2)
    assert cpus(world, "probe") == "0,2-4,6-7"


# ---------------------------------------------------------------- what is counted, and what is refused at start


def test_the_managers_count_by_upstreams_names() -> None:
    world = large(topologyManagerPolicy="single-numa-node", cpuManagerPolicyOptions={"full-pcpus-only": "true"})
    admitted(world, a_pod("a", own("c", "2")), a_pod("b", own("c", "4")), a_pod("x", own("c", "9")), a_pod("y", own("c", "3")))
    numbers = {
        "kubelet_cpu_manager_pinning_requests_total": 3,
        "kubelet_cpu_manager_pinning_errors_total": 1,
        "kubelet_cpu_manager_exclusive_cpu_allocation_count": 6,
        "kubelet_cpu_manager_shared_pool_size_millicores": 8000,
        "kubelet_topology_manager_admission_requests_total": 4,
        "kubelet_topology_manager_admission_errors_total": 2,
        "kubelet_topology_manager_admission_duration_ms_count": 4,
    }
    assert {name: world.metric(name) for name in numbers} == numbers
    assert [world.metric("kubelet_cpu_manager_allocation_per_numa", numa_node=node) for node in "01"] == [6, 0]
    aligned, failed = (
        "kubelet_container_aligned_compute_resources_count",
        "kubelet_container_aligned_compute_resources_failure_count",
    )
    assert world.metric(aligned, scope="container", boundary="physical_cpu") == 2
    assert world.metric(aligned, scope="container", boundary="uncore_cache") == 2
    assert world.metric(failed, scope="container", boundary="numa_node") == 1
    assert world.metric(failed, scope="container", boundary="physical_cpu") == 1


def test_nobody_is_pushed_out_for_a_critical_pod_that_the_managers_refuse() -> None:
    world = admitted(small(), a_pod("a", own("c", "4")))
    admitted(world, a_pod("critical", own("c", "4"), priority=2_000_000_000))
    assert world.status("critical")["reason"] == "UnexpectedAdmissionError"
    assert world.status("a")["phase"] == "Running"
    assert not world.noted("kl.preempt")


@pytest.mark.parametrize(
    ("kubelet", "machine", "why"),
    [
        ({"topologyManagerPolicy": "restricted"}, {"sockets": 9, "coresPerNuma": 1}, "more than 8 NUMA Nodes"),
        (
            {"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "9"}},
            {"sockets": 9, "coresPerNuma": 1},
            "",
        ),
        ({"topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "7"}}, {}, "should not be less than 8"),
        ({"topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"}}, {}, ""),
        ({"topologyManagerPolicyOptions": {"foo": "true"}}, {}, 'unknown Topology Manager Policy option: "foo"'),
        (static("9"), T1, "[cpumanager] unable to build the reserved physical CPUs from the reserved set"),
        (
            {"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 2, "limits": {"memory": "1Gi"}}]},
            T2,
            "the reserved memory configuration references a NUMA node 2 that does not exist on this machine",
        ),
        (
            {
                "memoryManagerPolicy": "Static",
                "evictionHard": {"memory.available": "100Mi"},
                "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
            },
            T2,
            'the total amount "1Gi" of type "memory" is not equal to the value "100Mi" determined by Node Allocatable feature',
        ),
        (
            static("0,8", topologyManagerPolicy="single-numa-node", cpuManagerPolicyOptions={"align-by-socket": "true"}),
            T2,
            "CPU Manager Policy Alpha-level Options not enabled",
        ),
        (
            static(
                "0,8",
                {**OFF, "CPUManagerPolicyAlphaOptions": True},
                topologyManagerPolicy="single-numa-node",
                cpuManagerPolicyOptions={"align-by-socket": "true"},
            ),
            T2,
            "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option",
        ),
    ],
)
def test_what_upstream_refuses_at_start_keeps_the_node_from_being_ready(kubelet: Any, machine: Any, why: str) -> None:
    world = World(profile="v1.37", cpu="16", memory="32Gi", kubelet=kubelet, machine=machine)
    refused = [note["why"] for note in world.noted("kl.config.refused")]
    assert bool(refused) == bool(why)
    assert all(why in words for words in refused)


def test_a_machine_that_nobody_described_has_the_nodes_cpus() -> None:
    world = admitted(World(cpu="6", memory="8Gi", kubelet=static("0")), a_pod("p", own("c", "5")))
    assert cpus(world, "p") == "1-5"
