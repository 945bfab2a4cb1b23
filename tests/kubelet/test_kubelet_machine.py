"""A kubelet with its API server and its runtime, stepped through a pod's life."""

from typing import Any

import msgspec
import pytest
from kubelet_world import KUBELET, NODE, World, a_container, a_pod

from elbowroom.api.gates import RESIZE_PREEMPTION
from elbowroom.kubelet.metrics import rejection
from elbowroom.machine import parse_time, seconds
from elbowroom.wire import Code, decode_value
from elbowroom.wire.cri import LinuxResources, SetPodCgroup, UpdateContainerResources

GIB = 1 << 30
MIB = 1 << 20


def burstable(name: str = "c", cpu: str = "500m", memory: str = "256Mi") -> dict[str, Any]:
    return a_container(name, cpu, memory, {"cpu": "1", "memory": "512Mi"})


def guaranteed(name: str = "c", cpu: str = "100m", memory: str = "200Mi", **more: Any) -> dict[str, Any]:
    return a_container(name, cpu, memory, {"cpu": cpu, "memory": memory}, **more)


def running(world: World, *pods: dict[str, Any]) -> World:
    for pod in pods:
        world.api.create("pods", pod)
    names = [pod["metadata"]["name"] for pod in pods]
    return world.until(lambda: all(world.status(name)["phase"] == "Running" for name in names)).run(0.5)


def messages(world: World, reason: str, name: str = "") -> list[str]:
    return [event["message"] for event in world.api.events(reason, name)]


# ---------------------------------------------------------------- the node


def test_a_node_becomes_ready_with_upstreams_words_and_a_lease() -> None:
    world = World()
    node = world.api.objects["nodes"][NODE]
    ready = next(c for c in node["status"]["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("True", "KubeletReady", "kubelet is posting ready status")
    assert node["metadata"]["labels"]["kubernetes.io/os"] == "linux"
    assert "InPlacePodVerticalScalingInitContainers" in node["status"]["declaredFeatures"]
    lease = world.api.objects["leases"][f"kube-node-lease/{NODE}"]
    assert lease["spec"]["holderIdentity"] == NODE and lease["spec"]["leaseDurationSeconds"] == 40
    renewed = lease["spec"]["renewTime"]
    world.run(11)
    assert world.api.objects["leases"][f"kube-node-lease/{NODE}"]["spec"]["renewTime"] > renewed


def test_a_new_nodes_lease_is_made_and_then_renewed_on_the_beat() -> None:
    world = World()
    lease = f"kube-node-lease/{NODE}"

    def renewed() -> int:
        return parse_time(world.api.objects["leases"][lease]["spec"]["renewTime"])

    for _ in range(5):
        before = renewed()
        world.until(lambda before=before: renewed() != before)  # type: ignore[misc]
        assert renewed() % seconds(0.05) == 0 and seconds(9.9) <= renewed() - before <= seconds(10.45)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_kubelet_that_is_not_known_to_have_a_lease_renews_or_makes_it(is_there: bool) -> None:
    world = World(start=False)
    world.start_runtime()
    if is_there:
        world.api.create("leases", {"metadata": {"name": NODE, "namespace": "kube-node-lease"}, "spec": {"renewTime": ""}})
    world.start_kubelet()
    world.run(1)
    (lease,) = world.api.objects["leases"].values()
    assert lease["spec"]["holderIdentity"] == NODE
    world.api.objects["leases"].clear()
    world.run(11)
    assert len(world.api.objects["leases"]) == 1, "one that somebody deleted is made again"


def test_a_capacity_that_somebody_set_sticks() -> None:
    world = World(cpu="4")
    world.api.change("nodes", NODE, lambda n: n["status"]["allocatable"].update(cpu="3"))
    world.run(700)
    assert world.api.objects["nodes"][NODE]["status"]["allocatable"]["cpu"] == "3"


def test_a_ready_condition_that_somebody_else_changed_is_set_right() -> None:
    world = World().run(30)

    def unready(node: dict[str, Any]) -> None:
        next(c for c in node["status"]["conditions"] if c["type"] == "Ready").update(status="Unknown", reason="NodeStatusUnknown")

    world.api.change("nodes", NODE, unready)
    world.run(1)
    conditions = world.api.objects["nodes"][NODE]["status"]["conditions"]
    assert next(c for c in conditions if c["type"] == "Ready")["status"] == "True"


@pytest.mark.parametrize(
    ("kubelet", "machine"),
    [
        ({"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "cpuManagerPolicyOptions": {"foo": "bar"}}, None),
        ({"cpuManagerPolicy": "static"}, None),
        ({"nonsense": 1}, None),
        ({"featureGates": {"NoSuchGate": True}}, None),
        (None, {"cgroupVersion": 1}),
        (None, {"swap": "4Gi"}),
        ({"elbowroom": {"periodicResizeRetry": "soon"}}, None),
    ],
)
def test_a_refused_configuration_keeps_the_node_from_ever_becoming_ready(kubelet: Any, machine: Any) -> None:
    world = World(kubelet=kubelet, machine=machine).run(60)
    assert "conditions" not in world.api.objects["nodes"][NODE]["status"]
    assert len(world.noted("kl.config.refused")) == 1


def test_an_idle_node_writes_its_lease_and_nothing_else() -> None:
    world = running(World(), a_pod("a"))
    before = len(world.api.writes)
    world.run(120)
    written = {resource for resource, _, _ in world.api.writes[before:]}
    assert written == {"leases"}
    assert len(world.api.writes) - before <= 13


# ---------------------------------------------------------------- start and end of pods


def test_a_pod_starts_in_two_status_patches_with_upstreams_events() -> None:
    world = running(World(), a_pod("a", burstable()))
    assert [status.get("phase") for _, status in world.api.patches] == [None, "Running"]
    container = world.container("a")
    assert container["allocatedResources"] == {"cpu": "500m", "memory": "256Mi"}
    assert container["resources"] == {
        "limits": {"cpu": "1", "memory": "512Mi"},
        "requests": {"cpu": "500m", "memory": "256Mi"},
    }
    assert container["ready"] is True and container["started"] is True and container["restartCount"] == 0
    assert [c["type"] for c in world.status("a")["conditions"]] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert [e["reason"] for e in world.api.events()] == ["Pulling", "Pulled", "Created", "Started"]
    assert all(e["involvedObject"]["fieldPath"] == "spec.containers{c}" for e in world.api.events())


def test_a_best_effort_pod_shows_empty_resources() -> None:
    world = running(World(), a_pod("a", a_container()))
    assert world.container("a")["resources"] == {} and "allocatedResources" not in world.container("a")
    assert world.status("a")["resources"] == {} and "allocatedResources" not in world.status("a")


def test_init_containers_run_in_order_and_sidecars_go_on_beside() -> None:
    pod = a_pod(
        "a",
        a_container("x", "100m"),
        initContainers=[a_container("i1"), a_container("s", restartPolicy="Always"), a_container("i2")],
        workload={"i1": {"exitAfterSeconds": 1}, "i2": {"exitAfterSeconds": 1}},
    )
    world = World()
    world.api.create("pods", pod)
    world.run(0.5)
    assert world.container("a", "x")["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert "running" in world.container("a", "i1")["state"] and world.status("a")["phase"] == "Pending"
    initialized = world.condition("a", "Initialized")
    assert initialized is not None and initialized["message"] == "containers with incomplete status: [i1 s i2]"
    world.until(lambda: "running" in world.container("a", "x")["state"])
    assert "running" in world.container("a", "s")["state"]
    assert world.container("a", "i2")["state"]["terminated"]["reason"] == "Completed"
    started = [e["involvedObject"]["fieldPath"] for e in world.api.events("Started")]
    assert started == ["spec.initContainers{i1}", "spec.initContainers{s}", "spec.initContainers{i2}", "spec.containers{x}"]


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_that_never_restarts_ends_by_its_exit_code(code: int, phase: str) -> None:
    pod = a_pod("a", restartPolicy="Never", workload={"c": {"exitAfterSeconds": 1, "exitCode": code}})
    world = World()
    world.api.create("pods", pod)
    world.until(lambda: world.status("a")["phase"] == phase)
    ready = world.condition("a", "Ready")
    assert ready is not None and ready["status"] == "False" and ready["reason"] == f"Pod{'Completed' if code == 0 else 'Failed'}"
    assert world.noted("pod.end")[0]["uid"] == world.api.objects["pods"]["ns/a"]["metadata"]["uid"]
    patches = len(world.api.patches)
    world.run(400)
    assert len(world.api.patches) == patches


def test_sidecars_end_after_the_regular_containers_do() -> None:
    pod = a_pod(
        "a",
        a_container("x"),
        restartPolicy="Never",
        initContainers=[a_container("s", restartPolicy="Always")],
        workload={"x": {"exitAfterSeconds": 1}},
    )
    world = World()
    world.api.create("pods", pod)
    world.until(lambda: world.status("a")["phase"] == "Succeeded")
    assert "terminated" in world.container("a", "s")["state"]


def test_a_container_that_crashes_is_restarted_at_once_and_then_backs_off() -> None:
    world = World()
    world.api.create("pods", a_pod("a", a_container(cpu="100m"), workload={"c": {"exitAfterSeconds": 1, "exitCode": 1}}))
    world.until(lambda: "waiting" in world.container("a")["state"] and world.container("a")["restartCount"] == 1)
    waiting = world.container("a")["state"]["waiting"]
    uid = world.api.objects["pods"]["ns/a"]["metadata"]["uid"]
    assert waiting["reason"] == "CrashLoopBackOff"
    assert waiting["message"] == f"back-off 10s restarting failed container=c pod=a_ns({uid})"
    assert world.status("a")["phase"] == "Running"
    stopped = world.now
    world.until(lambda: world.container("a")["restartCount"] == 2)
    assert 8 <= (world.now - stopped) / 1e9 <= 12
    world.until(lambda: world.container("a")["restartCount"] == 3)
    assert messages(world, "BackOff") == [f"Back-off restarting failed container c in pod a_ns({uid})"]
    assert world.api.events("BackOff")[0]["count"] == 2


def test_a_changed_image_restarts_that_container_alone() -> None:
    world = running(World(), a_pod("a", a_container("x"), a_container("y")))
    world.api.change("pods", "ns/a", lambda p: p["spec"]["containers"][0].update(image="pause:3.9"), bump=True)
    world.until(lambda: world.container("a", "x")["image"] == "pause:3.9" and "running" in world.container("a", "x")["state"])
    assert (world.container("a", "x")["restartCount"], world.container("a", "y")["restartCount"]) == (1, 0)
    assert messages(world, "Killing") == ["Container x definition changed, will be restarted"]


def test_a_graceful_deletion_waits_for_the_container_then_tells_the_end_then_removes() -> None:
    world = running(World(), a_pod("a", grace=30, workload={"c": {"stopSeconds": 2}}))
    uid, begun = world.api.objects["pods"]["ns/a"]["metadata"]["uid"], world.now
    world.api.delete("a")
    world.until(lambda: world.api.pod("a") is None)
    assert 2 <= (world.now - begun) / 1e9 < 2.1
    assert world.api.patches[-1][1]["phase"] == "Succeeded"
    assert messages(world, "Killing") == ["Stopping container c"]
    world.run(1)
    assert world.proxy("cgroups")["body"] == b"[]"
    assert [note["uid"] for note in world.noted("pod.end")] == [uid]


def test_a_container_that_ignores_sigterm_is_killed_when_its_grace_is_over() -> None:
    world = running(World(), a_pod("a", grace=5, workload={"c": {"stopSeconds": None}}))
    begun = world.now
    world.api.delete("a")
    world.until(lambda: world.api.pod("a") is None)
    assert 5 <= (world.now - begun) / 1e9 < 6.1
    assert world.api.patches[-1][1]["phase"] == "Failed"


def test_a_second_deletion_with_less_grace_shortens_the_wait() -> None:
    world = running(World(), a_pod("a", grace=60, workload={"c": {"stopSeconds": None}}))
    world.api.delete("a")
    world.run(2)
    begun = world.now
    world.api.delete("a", grace=3)
    world.until(lambda: world.api.pod("a") is None)
    assert (world.now - begun) / 1e9 < 4.1
    assert len(messages(world, "Killing")) == 1


def test_a_pod_without_grace_is_gone_from_the_runtime_within_milliseconds() -> None:
    world = running(World(), a_pod("a"))
    begun = world.now
    world.api.delete("a")
    world.until(lambda: world.calls[-1][0] == "RemovePodSandbox")
    assert (world.now - begun) / 1e6 < 2
    world.run(0.1)
    assert world.proxy("cgroups")["body"] == b"[]"


def test_a_namesake_starts_only_when_its_predecessor_has_ended() -> None:
    world = running(World(), a_pod("a", grace=10, workload={"c": {"stopSeconds": 3}}))
    old = world.api.objects["pods"]["ns/a"]["metadata"]["uid"]
    world.api.delete("a", grace=0)
    world.api.create("pods", a_pod("a"))
    world.until(lambda: world.status("a")["phase"] == "Running")
    exits = [i for i, (kind, note) in enumerate(world.notes) if kind == "rt.exit" and note["uid"] == old]
    creates = [i for i, (kind, note) in enumerate(world.notes) if kind == "rt.create" and note["uid"] != old]
    assert exits and exits[0] < creates[0]


def test_a_pod_older_than_its_deadline_fails() -> None:
    world = running(World(), a_pod("a", activeDeadlineSeconds=20))
    world.until(lambda: world.status("a")["phase"] != "Running")
    status, words = world.status("a"), "Pod was active on the node longer than the specified deadline"
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "DeadlineExceeded", words)
    assert messages(world, "DeadlineExceeded") == [words]


def test_a_pod_deleted_before_it_ran_is_removed() -> None:
    world = World()
    world.refuse["RunPodSandbox"] = (Code.UNKNOWN, "no network")
    world.api.create("pods", a_pod("a", grace=30))
    world.run(2)
    assert messages(world, "FailedCreatePodSandBox")[0].endswith("rpc error: code = Unknown desc = no network")
    world.api.delete("a")
    world.until(lambda: world.api.pod("a") is None, within=5)


def test_deletion_does_not_wait_for_a_slow_start() -> None:
    world = World()
    world.api.create("pods", a_pod("a", grace=1, workload={"c": {"startSeconds": 60}}))
    world.run(1)
    world.api.delete("a")
    world.until(lambda: world.api.pod("a") is None, within=5)


# ---------------------------------------------------------------- admission


def test_a_pod_that_does_not_fit_is_rejected_with_upstreams_words() -> None:
    world = running(World(), a_pod("a", a_container(cpu="3")))
    world.api.create("pods", a_pod("b", a_container(cpu="2")))
    world.until(lambda: world.status("b")["phase"] == "Failed")
    status = world.status("b")
    assert status["reason"] == "OutOfcpu"
    words = "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
    assert status["message"] == f"Pod was rejected: {words}"
    assert messages(world, "OutOfcpu", "b") == [words]
    world.api.delete("b", grace=0)
    world.run(1)
    assert "OutOfcpu" in {note["reason"] for note in world.noted("kl.reject")}
    assert world.metric("kubelet_admission_rejections_total", reason="OutOfcpu") == 1


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        ("OutOfpods", "OutOfpods"),
        ("OutOfexample.com/x", "OutOfExtendedResources"),
        ("NodeAffinity", "Other"),
        ("Evicted", "Evicted"),
    ],
)
def test_rejections_are_counted_by_few_names(reason: str, label: str) -> None:
    assert rejection(reason) == label


@pytest.mark.parametrize(
    ("gates", "words"),
    [({}, ""), ({"InPlacePodVerticalScalingInitContainers": False}, "InPlacePodVerticalScalingInitContainers")],
)
def test_a_change_that_needs_what_the_kubelet_does_not_do_is_told(gates: dict[str, bool], words: str) -> None:
    world = World(gates=gates)
    world.api.create("pods", a_pod("a", initContainers=[a_container("i", cpu="1")]))
    world.run(3)

    def grow(pod: dict[str, Any]) -> None:
        pod["spec"]["initContainers"][0]["resources"]["requests"]["cpu"] = "1500m"

    world.api.change("pods", "ns/a", grow, bump=True)
    world.run(3)
    told = [f"Pod requires node features that are not available: {words}"] if words else []
    assert messages(world, "FailedNodeDeclaredFeaturesCheck", "a") == told


def test_a_rejected_pod_that_is_deleted_with_grace_is_removed_at_once() -> None:
    world = running(World(), a_pod("a", a_container(cpu="3")))
    world.api.create("pods", a_pod("b", a_container(cpu="2"), grace=30))
    world.until(lambda: world.status("b")["phase"] == "Failed")
    world.api.delete("b")
    world.until(lambda: world.api.pod("b") is None, within=1)


def test_a_critical_pod_pushes_a_lesser_one_out_and_is_then_admitted() -> None:
    world = running(World(), a_pod("low", a_container(cpu="3"), workload={"c": {"stopSeconds": None}}))
    world.api.create("pods", a_pod("crit", a_container(cpu="2"), priority=2_000_001_000))
    world.until(lambda: world.status("crit")["phase"] == "Running")
    low = world.status("low")
    assert (low["phase"], low["reason"], low["message"]) == ("Failed", "Preempting", "Preempted in order to admit critical pod")
    disrupted = world.condition("low", "DisruptionTarget")
    assert disrupted is not None and disrupted["reason"] == "TerminationByKubelet"
    assert messages(world, "Preempting", "low") == ["Preempted in order to admit critical pod"]


# ---------------------------------------------------------------- resizes that fit


def test_a_resize_that_fits_is_two_patches_and_a_few_milliseconds() -> None:
    world = running(World(), a_pod("a", burstable()))
    patches, begun = len(world.api.patches), world.now
    world.api.resize("a", requests={"cpu": "800m"})
    world.until(lambda: world.is_settled("a") and world.container("a")["resources"]["requests"]["cpu"] == "800m")
    assert (world.now - begun) / 1e6 < 5
    world.run(30)
    first, second = (status for _, status in world.api.patches[patches:])
    assert first["containerStatuses"][0]["allocatedResources"]["cpu"] == "800m"
    assert first["containerStatuses"][0]["resources"]["requests"]["cpu"] == "500m"
    assert first["conditions"][0]["type"] == "PodResizeInProgress"
    assert {"$patch": "delete", "type": "PodResizeInProgress"} in second["conditions"]
    shown = '{"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"800m",'
    assert messages(world, "ResizeStarted") == [f'Pod resize started: {shown}"memory":"256Mi"}}}}}}],"generation":2}}']
    assert messages(world, "ResizeCompleted") == [f'Pod resize completed: {shown}"memory":"256Mi"}}}}}}],"generation":2}}']
    assert world.disk("allocated_pods_state") == world.disk("actuated_pods_state")


def test_the_allocation_is_durable_before_anything_shows_it() -> None:
    world = running(World(), a_pod("a", burstable()))
    world.notes.clear()
    world.api.resize("a", requests={"cpu": "800m"})
    world.until(lambda: world.is_settled("a"))
    steps = [s for s in world.steps() if s[0] == "K"]
    assert steps[: steps.index("K9")] == ["K1", "K2", "K3", "K8", "K16"]
    order = ["K9", "K13.1", "K14.1", "K15"]
    assert [s for s in steps if s in order] == order


def test_memory_and_cpu_of_two_containers_move_without_ever_passing_the_pods_limit() -> None:
    world = running(World(cgroup_version=1, kubelet={"failCgroupV1": False}, machine={"cgroupVersion": 1}))
    running(world, a_pod("a", guaranteed("x", "200m", "100Mi"), guaranteed("y", "200m", "300Mi")))
    world.api.resize("a", "x", requests={"cpu": "600m", "memory": "300Mi"}, limits={"cpu": "600m", "memory": "300Mi"})
    world.api.resize("a", "y", requests={"cpu": "100m", "memory": "100Mi"}, limits={"cpu": "100m", "memory": "100Mi"})
    world.until(lambda: world.is_settled("a"))
    assert world.container("a", "x")["resources"]["limits"] == {"cpu": "600m", "memory": "300Mi"}
    pod_limit: dict[str, int] = {}
    limits: dict[str, dict[str, int]] = {}
    for note in world.noted("rt.cgroup"):
        if "container" in note:
            limits[note["container"]] = note["limit"]
        else:
            pod_limit = note["limit"]
        for resource in ("cpu", "memory"):
            assert sum(limit[resource] for limit in limits.values()) <= pod_limit[resource]


def test_a_restart_policy_restarts_the_container_once_with_its_new_size() -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    world = running(World(), a_pod("a", guaranteed(resizePolicy=policy)))
    patches = len(world.api.patches)
    world.api.resize("a", requests={"memory": "300Mi"}, limits={"memory": "300Mi"})
    world.until(lambda: world.is_settled("a") and world.container("a")["restartCount"] == 1)
    world.run(20)
    container = world.container("a")
    assert container["restartCount"] == 1 and container["resources"]["limits"]["memory"] == "300Mi"
    assert container["lastState"]["terminated"]["exitCode"] == 0
    assert messages(world, "Killing") == ["Container c resize requires restart"]
    assert len(world.api.patches) == patches + 2
    assert "UpdateContainerResources" not in [method for method, _ in world.calls]


def test_only_the_container_that_asks_for_it_is_restarted() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    world = running(World(), a_pod("a", a_container("x", "100m", resizePolicy=policy), a_container("y", "100m")))
    for name in ("x", "y"):
        world.api.resize("a", name, requests={"cpu": "200m"})
    world.until(lambda: world.is_settled("a") and world.container("a", "x")["restartCount"] == 1)
    assert world.container("a", "y")["restartCount"] == 0
    assert world.container("a", "y")["resources"]["requests"]["cpu"] == "200m"


def test_a_change_of_the_memory_request_alone_costs_one_runtime_call() -> None:
    world = running(World(), a_pod("a", burstable()))
    world.calls.clear()
    world.api.resize("a", requests={"memory": "300Mi"})
    world.until(lambda: world.is_settled("a"))
    assert [m for m, _ in world.calls if m not in ("PodState", "ListAll")] == ["UpdateContainerResources"]
    assert world.metric("kubelet_runtime_operations_total", operation_type="update_container") == 1
    assert world.container("a")["resources"]["requests"]["memory"] == "300Mi"


def test_a_sidecar_is_resized_in_place() -> None:
    pod = a_pod("a", guaranteed("x"), initContainers=[guaranteed("s", restartPolicy="Always")])
    world = running(World(), pod)
    world.api.resize("a", "s", requests={"cpu": "150m", "memory": "250Mi"}, limits={"cpu": "150m", "memory": "250Mi"})
    world.until(lambda: world.is_settled("a"))
    assert world.container("a", "s")["resources"]["limits"] == {"cpu": "150m", "memory": "250Mi"}
    assert world.container("a", "s")["restartCount"] == 0


def test_an_ordinary_init_container_is_resized_while_it_runs() -> None:
    pod = a_pod("a", guaranteed("x"), initContainers=[guaranteed("i")], workload={"i": {"exitAfterSeconds": 3600}})
    world = World()
    world.api.create("pods", pod)
    world.run(1)
    world.api.resize("a", "i", requests={"cpu": "150m"}, limits={"cpu": "150m"})
    world.run(1)
    assert world.container("a", "i")["resources"]["limits"]["cpu"] == "150m"
    assert world.container("a", "i")["allocatedResources"]["cpu"] == "150m" and world.is_settled("a")


def test_a_resize_before_the_container_has_started_is_there_when_it_runs() -> None:
    world = World()
    world.api.create("pods", a_pod("a", a_container(cpu="500m"), workload={"c": {"startSeconds": 5}}))
    world.run(1)
    world.api.resize("a", requests={"cpu": "1"})
    world.until(lambda: world.is_settled("a") and "running" in world.container("a")["state"])
    container = world.container("a")
    assert container["resources"]["requests"]["cpu"] == "1" and container["restartCount"] == 0


def test_a_resize_ends_the_back_off_of_a_container_that_crashes() -> None:
    world = World()
    world.api.create("pods", a_pod("a", a_container(cpu="500m"), workload={"c": {"exitAfterSeconds": 1, "exitCode": 1}}))
    world.until(lambda: world.container("a")["restartCount"] == 1 and "running" not in world.container("a")["state"])
    begun = world.now
    world.api.resize("a", requests={"cpu": "1"})
    world.until(lambda: world.container("a")["restartCount"] == 2 and world.is_settled("a"))
    assert (world.now - begun) / 1e9 < 1
    assert world.container("a")["resources"]["requests"]["cpu"] == "1"
    assert messages(world, "ResizeCompleted")[0].endswith('"generation":2}')


def test_quick_reversals_settle_at_the_last_desire() -> None:
    world = running(World(cpu="8"), a_pod("a", guaranteed(cpu="1"), workload={"c": {"resizeSeconds": 0.2}}))
    for _ in range(10):
        for cpu in ("2", "1"):
            world.api.resize("a", requests={"cpu": cpu}, limits={"cpu": cpu})
            world.run(0.1)
    world.until(lambda: world.is_settled("a"), within=10)
    world.run(5)
    assert world.container("a")["resources"]["limits"]["cpu"] == "1" and world.is_settled("a")
    assert world.status("a")["observedGeneration"] == 21


def test_below_the_kernels_minimum_the_status_says_what_was_allocated() -> None:
    world = World(cgroup_version=1, kubelet={"failCgroupV1": False}, machine={"cgroupVersion": 1})
    running(world, a_pod("a", a_container(cpu="2m", limits={"cpu": "10m"})))
    world.api.resize("a", requests={"cpu": "1m"}, limits={"cpu": "5m"})
    world.until(lambda: world.is_settled("a"))
    assert world.container("a")["resources"] == {"limits": {"cpu": "5m"}, "requests": {"cpu": "1m"}}
    world.calls.clear()
    world.run(60)
    assert "UpdateContainerResources" not in [method for method, _ in world.calls]


def test_shares_end_at_262144() -> None:
    world = running(World(cpu="512"), a_pod("a", a_container(cpu="1")))
    world.api.resize("a", requests={"cpu": "300"})
    world.until(lambda: world.is_settled("a"))
    assert world.container("a")["resources"]["requests"]["cpu"] == "256"
    assert world.container("a")["allocatedResources"]["cpu"] == "300"


def test_a_limit_added_to_one_of_two_containers_leaves_the_pod_unlimited() -> None:
    world = running(World(), a_pod("a", a_container("x", "20m"), a_container("y", memory="35Mi")))
    world.api.resize("a", "x", requests={"cpu": "25m"}, limits={"cpu": "35m"})
    world.until(lambda: world.is_settled("a"))
    assert world.container("a", "x")["resources"] == {"limits": {"cpu": "35m"}, "requests": {"cpu": "25m"}}
    listed = msgspec.json.decode(world.proxy("cgroups")["body"])
    pod = next(entry for entry in listed if "container" not in entry)
    assert pod["cpuQuota"] is None and pod["cpuWeight"] == 1
    assert next(entry for entry in listed if entry.get("container") == "x")["cpuQuota"] == 3500


def test_a_pod_level_grow_reaches_the_cgroup_and_the_container_that_inherits() -> None:
    level = {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}
    world = running(World(cpu="8"), a_pod("a", a_container("c1"), guaranteed("c2"), resources=level))
    assert world.status("a")["resources"] == level
    grown = {"requests": {"cpu": "1", "memory": "512Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    world.api.resize("a", level=grown)
    world.until(lambda: world.is_settled("a"))
    world.run(1)
    assert world.status("a")["resources"] == grown
    assert world.status("a")["allocatedResources"] == grown["requests"]
    listed = msgspec.json.decode(world.proxy("cgroups")["body"])
    by_name = {entry.get("container", ""): entry for entry in listed}
    assert (by_name[""]["cpuWeight"], by_name[""]["cpuQuota"], by_name[""]["memoryMax"]) == (39, 200000, GIB)
    assert (by_name["c1"]["cpuQuota"], by_name["c1"]["memoryMax"]) == (200000, GIB)
    assert (by_name["c2"]["cpuQuota"], by_name["c2"]["memoryMax"]) == (10000, 200 * MIB)
    assert world.container("a", "c1")["restartCount"] == 0


def test_a_pod_level_request_of_50m_is_still_reported_as_50m() -> None:
    level = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
    world = running(World(), a_pod("a", a_container("c1"), resources=level))
    assert world.status("a")["resources"]["requests"]["cpu"] == "50m"


# ---------------------------------------------------------------- resizes that wait


def test_a_resize_without_room_is_deferred_and_granted_when_another_pod_goes() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="2500m")))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    pending = world.condition("a", "PodResizePending")
    words = "Node didn't have enough resource: cpu, requested: 2000, used: 2500, capacity: 4000"
    assert pending is not None
    assert (pending["reason"], pending["message"], pending["observedGeneration"]) == ("Deferred", words, 2)
    assert world.status("a")["conditions"][0]["type"] == "PodResizePending"
    assert messages(world, "ResizeDeferred")[0].startswith("Pod resize OutOfcpu: ")
    begun = world.now
    world.api.delete("b")
    world.until(lambda: world.is_settled("a"))
    assert (world.now - begun) / 1e6 < 5
    assert world.metric("kubelet_pod_deferred_accepted_resizes_total", retry_trigger="pods_removed") == 1
    assert world.metric("kubelet_pod_deferred_resize_duration_seconds_count", resolution="accepted") == 1


def test_a_resize_is_granted_when_another_pod_completes() -> None:
    done = a_pod("b", a_container(cpu="2500m"), restartPolicy="Never", workload={"c": {"exitAfterSeconds": 10}})
    world = running(World(), a_pod("a", a_container(cpu="1")), done)
    world.api.resize("a", requests={"cpu": "2"})
    world.until(lambda: world.condition("a", "PodResizePending") is not None)
    world.until(lambda: world.status("b")["phase"] == "Succeeded")
    world.until(lambda: world.is_settled("a"), within=1)
    assert world.metric("kubelet_pod_deferred_accepted_resizes_total", retry_trigger="pod_terminated") == 1


def test_a_resize_is_granted_once_the_status_of_a_shrunk_pod_has_come_back() -> None:
    world = running(World(), a_pod("a", a_container(cpu="2"), priority=1000), a_pod("b", a_container(cpu="2")))
    world.api.resize("a", requests={"cpu": "3"})
    world.run(1)
    world.api.resize("b", requests={"cpu": "500m"})
    world.until(lambda: world.is_settled("a") and world.is_settled("b"), within=1)
    assert world.metric("kubelet_pod_deferred_accepted_resizes_total", retry_trigger="pod_resized") == 1
    judged = [(n["pod"], n["cause"], n["verdict"]) for n in world.noted("kl.judge")]
    assert judged == [
        ("ns/a", "pod_updated", "Deferred"),
        ("ns/b", "pod_updated", "Granted"),
        ("ns/a", "pod_updated", "Deferred"),
        ("ns/a", "pod_resized", "Granted"),
    ]


def test_the_timer_tries_again_when_nothing_else_does() -> None:
    world = running(
        World(profile="v1.37", kubelet={"elbowroom": {"periodicResizeRetry": "3s"}}),
        a_pod("a", a_container(cpu="1")),
        a_pod("b", a_container(cpu="3")),
    )
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    world.kill_kubelet()
    world.api.delete("b", grace=0)
    world.restart_kubelet()
    world.until(lambda: world.is_settled("a"), within=3.5)
    assert world.metric("kubelet_pod_deferred_accepted_resizes_total", retry_trigger="periodic_retry") == 1


def test_a_larger_node_is_given_away_at_once() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="3")))
    world.api.resize("a", requests={"cpu": "2"})
    world.api.resize("b", requests={"cpu": "6"})
    world.run(1)
    reasons = [(world.condition(name, "PodResizePending") or {}).get("reason") for name in "ab"]
    assert reasons == ["Deferred", "Infeasible"]
    world.api.change("nodes", NODE, lambda n: n["status"]["allocatable"].update(cpu="8"))
    world.until(lambda: world.is_settled("a") and world.is_settled("b"), within=1)
    assert world.metric("kubelet_pod_deferred_accepted_resizes_total", retry_trigger="periodic_retry") == 1


def test_a_smaller_node_wakes_nobody() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")))
    world.api.resize("a", requests={"cpu": "6"})
    world.run(1)
    judged = len(world.noted("kl.judge"))
    world.api.change("nodes", NODE, lambda n: n["status"]["allocatable"].update(cpu="3"))
    world.run(1)
    assert len(world.noted("kl.judge")) == judged


def test_of_two_waiting_pods_the_one_of_higher_priority_is_served_first() -> None:
    world = running(
        World(),
        a_pod("big", a_container(cpu="3")),
        a_pod("low", a_container(cpu="200m")),
        a_pod("high", a_container(cpu="200m"), priority=1000),
    )
    for name in ("low", "high"):
        world.api.resize(name, requests={"cpu": "3"})
        world.run(2)
    world.api.delete("big")
    world.until(lambda: world.is_settled("high"))
    world.run(5)
    pending = world.condition("low", "PodResizePending")
    assert pending is not None
    assert pending["message"] == "Node didn't have enough resource: cpu, requested: 3000, used: 3000, capacity: 4000"


def test_a_new_request_that_waits_again_keeps_the_time_since_when_the_pod_waits() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="2500m")))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(3)
    before = world.condition("a", "PodResizePending")
    world.api.resize("a", requests={"cpu": "3"})
    world.run(1)
    after = world.condition("a", "PodResizePending")
    assert before is not None and after is not None
    assert after["lastTransitionTime"] == before["lastTransitionTime"] and after["observedGeneration"] == 3
    assert after["message"].startswith("Node didn't have enough resource: cpu, requested: 3000")
    assert len(messages(world, "ResizeDeferred")) == 2


def test_a_mere_change_of_the_message_makes_no_event() -> None:
    world = running(World(), a_pod("a", a_container(cpu="2")), a_pod("b", a_container(cpu="1500m")))
    world.api.resize("a", requests={"cpu": "3"})
    world.run(1)
    world.api.resize("b", requests={"cpu": "1200m"})
    world.run(1)
    pending = world.condition("a", "PodResizePending")
    assert pending is not None and "used: 1200" in pending["message"]
    assert len(messages(world, "ResizeDeferred")) == 1


def test_going_back_clears_the_condition_without_an_event() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="2500m")))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    world.api.resize("a", requests={"cpu": "1"})
    world.until(lambda: world.is_settled("a"))
    assert not messages(world, "ResizeStarted") and not messages(world, "ResizeCompleted")


def test_above_the_nodes_allocatable_the_lab_says_infeasible_and_upstream_deferred() -> None:
    lab, upstream = (
        running(World(), a_pod("a", a_container(cpu="1"))),
        running(World(profile="v1.37"), a_pod("a", a_container(cpu="1"))),
    )
    for world in (lab, upstream):
        world.api.resize("a", requests={"cpu": "5"})
        world.run(1)
    pending = lab.condition("a", "PodResizePending")
    assert pending is not None and pending["reason"] == "Infeasible"
    assert pending["message"] == "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"
    assert lab.metric("kubelet_pod_infeasible_resizes_total", reason_detail="insufficient_node_allocatable") == 1
    assert lab.metric("kubelet_pod_pending_resizes", reason="infeasible") == 1
    assert lab.container("a")["resizeStatus"] == "Infeasible"
    assert lab.metric("kube_pod_container_status_resize_status", pod="a", resize_status="Infeasible") == 1
    pending = upstream.condition("a", "PodResizePending")
    assert pending is not None and pending["reason"] == "Deferred" and "resizeStatus" not in upstream.container("a")


def test_an_infeasible_resize_is_not_tried_again_until_it_changes() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="1")))
    world.api.resize("a", requests={"cpu": "5"})
    world.run(1)
    world.api.delete("b")
    world.run(400)
    assert world.metric("kubelet_pod_infeasible_resizes_total") == 1
    world.api.resize("a", requests={"cpu": "3"})
    world.until(lambda: world.is_settled("a"))


def test_a_waiting_pod_says_that_its_node_disables_resize_preemption_as_long_as_it_does() -> None:
    spec = {"podPreemptionPolicy": {"disableResizePreemption": ["ops"]}}
    world = running(World(node_spec=spec), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="3")))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    told = world.condition("a", "PodResizePreemptionDisabled")
    assert told is not None and told["status"] == "True" and told["reason"] == "PreemptionDisabledByNodePolicy"
    assert told["message"] == f"Preemption for in-place pod resize is disabled on node '{NODE}' by preemption policy."
    world.api.change("nodes", NODE, lambda n: n["spec"].clear())
    world.run(1)
    assert world.condition("a", "PodResizePreemptionDisabled") is None and world.condition("a", "PodResizePending") is not None


def test_the_resize_of_a_critical_pod_waits_while_the_scheduler_may_preempt_and_evicts_otherwise() -> None:
    pods = (
        a_pod("crit", a_container(cpu="1"), priority=2_000_001_000),
        a_pod("low", a_container(cpu="3"), workload={"c": {"stopSeconds": None}}),
    )
    waits, evicts = running(World(), *pods), running(World(gates={RESIZE_PREEMPTION: False}), *pods)
    for world in (waits, evicts):
        world.api.resize("crit", requests={"cpu": "2"})
        world.run(5)
    assert waits.condition("crit", "PodResizePending") is not None and waits.status("low")["phase"] == "Running"
    assert evicts.is_settled("crit") and evicts.container("crit")["resources"]["requests"]["cpu"] == "2"
    assert evicts.status("low")["reason"] == "Preempting"
    assert not messages(evicts, "ResizeDeferred")


# ---------------------------------------------------------------- resizes that fail


def test_a_memory_limit_below_the_usage_is_allocated_and_not_actuated_until_the_usage_falls() -> None:
    world = running(World(), a_pod("a", guaranteed(), workload={"c": {"memoryUsage": "150Mi"}}))
    world.api.resize("a", requests={"memory": "100Mi"}, limits={"memory": "100Mi"})
    world.run(40)
    failing = world.condition("a", "PodResizeInProgress")
    assert failing is not None and (failing["reason"], failing["observedGeneration"]) == ("Error", 2)
    words = (
        "cannot decrease memory limits: [attempting to set pod memory limit (104857600) below current usage (157286400), "
        'attempting to set container "c" memory limit (104857600) below current usage (157286400)]'
    )
    assert failing["message"] == words
    assert world.container("a")["allocatedResources"]["memory"] == "100Mi"
    assert world.container("a")["resources"]["limits"]["memory"] == "200Mi"
    assert len(messages(world, "ResizeError")) == 1
    assert "UpdateContainerResources" not in [method for method, _ in world.calls]
    notes = {"elbowroom.dev/workload": '{"c": {"memoryUsage": "50Mi"}}'}
    world.api.change("pods", "ns/a", lambda p: p["metadata"]["annotations"].update(notes))
    world.until(lambda: world.is_settled("a"), within=1)
    assert world.container("a")["resources"]["limits"]["memory"] == "100Mi"


def test_going_back_ends_a_failing_resize() -> None:
    world = running(World(), a_pod("a", guaranteed(), workload={"c": {"memoryUsage": "150Mi"}}))
    world.api.resize("a", requests={"memory": "100Mi"}, limits={"memory": "100Mi"})
    world.run(1)
    world.api.resize("a", requests={"memory": "200Mi"}, limits={"memory": "200Mi"})
    world.until(lambda: world.is_settled("a"), within=1)
    assert world.container("a")["resources"]["limits"]["memory"] == "200Mi"


def test_a_failing_resize_and_a_newer_deferred_one_show_side_by_side() -> None:
    pod = a_pod("a", a_container(cpu="500m", memory="200Mi", limits={"cpu": "4", "memory": "200Mi"}))
    pod["metadata"]["annotations"]["elbowroom.dev/workload"] = '{"c": {"memoryUsage": "150Mi"}}'
    world = running(World(), pod, a_pod("b", a_container(cpu="2")))
    world.api.resize("a", requests={"memory": "100Mi"}, limits={"memory": "100Mi"})
    world.run(1)
    world.api.resize("a", requests={"cpu": "3"})
    world.run(1)
    pending, progress = world.condition("a", "PodResizePending"), world.condition("a", "PodResizeInProgress")
    assert pending is not None and progress is not None
    assert (pending["observedGeneration"], progress["observedGeneration"], progress["reason"]) == (3, 2, "Error")
    assert [c["type"] for c in world.status("a")["conditions"][:2]] == ["PodResizePending", "PodResizeInProgress"]


def test_a_refusal_of_the_runtime_is_retried_every_second() -> None:
    world = running(World(), a_pod("a", a_container(cpu="500m"), workload={"c": {"resizeError": 3}}))
    world.api.resize("a", requests={"cpu": "1"})
    world.run(0.5)
    failing = world.condition("a", "PodResizeInProgress")
    assert failing is not None and failing["reason"] == "Error"
    assert failing["message"].startswith("rpc error: code = Unknown desc = the runtime refuses to update container ")
    assert world.container("a")["allocatedResources"]["cpu"] == "1"
    assert world.container("a")["resources"]["requests"]["cpu"] == "500m"
    world.until(lambda: world.is_settled("a"), within=4)
    assert world.metric("kubelet_pod_resize_duration_milliseconds_count", success="false") == 3
    assert world.metric("kubelet_pod_resize_duration_milliseconds_count", success="true") == 1


@pytest.mark.parametrize(
    ("profile", "code", "blocks"),
    [
        ("lab", Code.UNKNOWN, False),
        ("v1.37", Code.UNIMPLEMENTED, False),
        ("v1.37", Code.UNKNOWN, True),
    ],
)
def test_a_runtime_that_refuses_the_pods_resources_blocks_in_v137_alone(profile: str, code: Code, blocks: bool) -> None:
    world = running(World(profile=profile), a_pod("a", a_container(cpu="500m")))
    world.refuse["UpdatePodSandboxResources"] = (code, "no")
    world.api.resize("a", requests={"cpu": "1"})
    world.run(3)
    assert world.is_settled("a") is not blocks
    if blocks:
        failing = world.condition("a", "PodResizeInProgress")
        assert failing is not None
        assert failing["message"].startswith(
            "failed to notify runtime for UpdatePodSandboxResources (resource=cpu); resize rejected: "
            'updatePodSandboxResources failed for sanboxID "'
        )
        assert "SetPodCgroup" not in [method for method, _ in world.calls]


def test_in_the_lab_the_pods_cgroup_is_written_before_the_runtime_is_told() -> None:
    orders = {}
    for profile in ("lab", "v1.37"):
        world = running(World(profile=profile), a_pod("a", a_container(cpu="500m")))
        world.api.resize("a", requests={"cpu": "1"})
        world.until(lambda world=world: world.is_settled("a"))  # type: ignore[misc]
        orders[profile] = [m for m, _ in world.calls if m in ("SetPodCgroup", "UpdatePodSandboxResources")]
    assert orders == {
        "lab": ["SetPodCgroup", "UpdatePodSandboxResources"],
        "v1.37": ["UpdatePodSandboxResources", "SetPodCgroup"],
    }


# ---------------------------------------------------------------- others' writes


def test_a_condition_that_somebody_else_changed_is_set_right() -> None:
    world = running(World(), a_pod("a"))

    def unready(pod: dict[str, Any]) -> None:
        next(c for c in pod["status"]["conditions"] if c["type"] == "Ready").update(status="False", reason="NodeNotReady")

    world.api.change("pods", "ns/a", unready)
    world.run(1)
    ready = world.condition("a", "Ready")
    assert ready is not None and ready["status"] == "True" and "reason" not in ready


def test_others_conditions_are_kept() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")))
    mark = {"type": "example.com/mark", "status": "True", "reason": "Marked"}
    world.api.change("pods", "ns/a", lambda p: p["status"]["conditions"].append(mark))
    world.api.resize("a", requests={"cpu": "2"})
    world.until(lambda: world.is_settled("a"))
    assert world.condition("a", "example.com/mark") is not None


def test_an_api_server_that_drops_empty_fields_is_not_written_to_for_ever() -> None:
    world = running(World(), a_pod("a"))
    world.api.change("pods", "ns/a", lambda p: p["status"]["containerStatuses"][0].pop("lastState"))
    world.run(1)
    assert "lastState" in world.container("a")
    patches = len(world.api.patches)
    world.run(60)
    assert len(world.api.patches) == patches


def test_an_api_server_that_was_away_learns_the_outcome() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1"), workload={"c": {"resizeSeconds": 4}}))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    world.api.down = True
    world.run(10)
    world.api.down = False
    world.reconnect("apiserver")
    world.until(lambda: world.is_settled("a"), within=5)
    assert world.container("a")["resources"]["requests"]["cpu"] == "2"


# ---------------------------------------------------------------- the proxy


def test_the_proxy_answers_pod_resources_and_refuses_what_it_does_not_know() -> None:
    world = running(World(), a_pod("a"))
    listed = msgspec.json.decode(world.proxy("podresources")["body"])
    assert listed["podResources"][0]["containers"] == [{"name": "c", "cpuIds": [], "memory": []}]
    assert world.proxy("nonsense")["status"] == 404


def test_requested_resizes_are_counted_by_what_they_ask() -> None:
    world = running(World(), a_pod("a", a_container(cpu="500m")))
    world.api.resize("a", requests={"cpu": "1"}, limits={"cpu": "2"})
    world.run(1)
    name = "kubelet_container_requested_resizes_total"
    assert world.metric(name, operation="increase", requirement="requests", resource="cpu") == 1
    assert world.metric(name, operation="add", requirement="limits", resource="cpu") == 1


def test_no_container_is_told_the_same_twice() -> None:
    world = running(World(), a_pod("a", guaranteed("x"), guaranteed("y")))
    world.calls.clear()
    for name in ("x", "y"):
        world.api.resize("a", name, requests={"cpu": "300m"}, limits={"cpu": "300m"})
    world.until(lambda: world.is_settled("a"))
    world.run(30)
    updates = [decode_value(body, UpdateContainerResources) for method, body in world.calls if method == "UpdateContainerResources"]
    assert len(updates) == len({u.container for u in updates}) == 2
    written = [decode_value(body, SetPodCgroup).resources for method, body in world.calls if method == "SetPodCgroup"]
    assert all(isinstance(resources, LinuxResources) for resources in written)


def test_a_pod_that_is_resized_all_the_time_tells_so_25_times_at_most() -> None:
    world = World()
    world.api.create("pods", a_pod("p", a_container(cpu="100m")))
    world.run(2)
    for milli in range(101, 141):
        world.api.resize("p", requests={"cpu": f"{milli}m"})
        world.run(2)
    started, completed = world.api.events("ResizeStarted"), world.api.events("ResizeCompleted")
    assert [event["message"].startswith("(combined from similar events): ") for event in started] == [False] * 9 + [True]
    others = [
        event for event in world.api.events() if event["source"]["component"] == "kubelet" and event not in started + completed
    ]
    assert sum(event["count"] for event in [*others, *started, *completed]) == 25
    world.run(600)
    world.api.resize("p", requests={"cpu": "200m"})
    world.run(2)
    assert "200m" in world.api.events("ResizeStarted")[-1]["message"], "ten minutes bring two more"


def test_an_idle_node_keeps_no_file_of_allocations_and_the_last_pod_leaves_an_empty_one() -> None:
    world = World()
    files = world._disks[KUBELET]
    assert sorted(files) == ["cpu_manager_state", "memory_manager_state"]
    running(world, a_pod("a"))
    world.api.delete("a", 0)
    world.run(5)
    world.restart_kubelet()
    world.run(5)
    assert world.disk("allocated_pods_state") == {}
