"""A kubelet that dies between any two of its effects, or loses what it had, goes on from what was durable."""

import copy
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from kubelet_world import KUBELET, NODE, RUNTIME, World, a_container, a_pod

from elbowroom.api.resources import of
from elbowroom.kubelet.checkpoint import CorruptCheckpoint
from elbowroom.kubelet.machine import Kubelet, build
from elbowroom.rpc import Finished
from elbowroom.wire import ApiRequest, Call, Code, Message, decode_value, encode_value
from elbowroom.wire.cri import RuntimeState

POLICY = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


def guaranteed(name: str, cpu: str, memory: str, **more: Any) -> dict[str, Any]:
    return a_container(name, cpu, memory, {"cpu": cpu, "memory": memory}, **more)


def start(world: World) -> None:
    world.api.create("pods", a_pod("a", guaranteed("x", "200m", "100Mi"), guaranteed("y", "300m", "200Mi")))


def resize(world: World) -> None:
    sizes = (("x", {"cpu": "600m", "memory": "64Mi"}), ("y", {"cpu": "100m", "memory": "300Mi"}))

    def apply(pod: dict[str, Any]) -> None:
        for container, (_, size) in zip(pod["spec"]["containers"], sizes, strict=True):
            container["resources"] = {"requests": dict(size), "limits": dict(size)}

    world.api.change("pods", "ns/a", apply, bump=True)


def preempt(world: World) -> None:
    world.api.resize("a", "x", requests={"cpu": "3"}, limits={"cpu": "3"})
    world.api.delete("b")


def remove(world: World) -> None:
    world.api.delete("a", grace=2)


def restart(world: World) -> None:
    world.api.resize("r", requests={"memory": "300Mi"}, limits={"memory": "300Mi"})


Scenario = tuple[Callable[[World], None], Callable[[World], None], Callable[[World], bool]]


def nothing(world: World) -> None:
    """An empty node."""


def is_sized(world: World, name: str, container: str, cpu: str, memory: str) -> bool:
    if not world.is_settled(name):
        return False
    found = world.container(name, container)
    wanted = of({"cpu": cpu, "memory": memory})
    resources = found.get("resources", {})
    return of(resources.get("limits")) == wanted and of(resources.get("requests")) == wanted and "running" in found["state"]


def setup_two(world: World) -> None:
    start(world)
    world.api.create("pods", a_pod("b", a_container(cpu="2")))
    world.run(2)


def setup_one(world: World) -> None:
    start(world)
    world.run(2)


def setup_restart(world: World) -> None:
    world.api.create("pods", a_pod("r", guaranteed("c", "200m", "100Mi", resizePolicy=POLICY)))
    world.run(2)


SCENARIOS: dict[str, Scenario] = {
    "a pod starts": (nothing, start, lambda w: w.status("a")["phase"] == "Running"),
    "containers move in opposite directions": (
        setup_one,
        resize,
        lambda w: is_sized(w, "a", "x", "600m", "64Mi") and is_sized(w, "a", "y", "100m", "300Mi"),
    ),
    "a waiting resize gets the room of another pod": (setup_two, preempt, lambda w: is_sized(w, "a", "x", "3", "100Mi")),
    "a container restarts for its size": (setup_restart, restart, lambda w: is_sized(w, "r", "c", "200m", "300Mi")),
    "a pod ends gracefully": (setup_one, remove, lambda w: w.api.pod("a") is None),
}


def limits_hold(world: World) -> None:
    """At no instant were the containers' limits above their pod's."""
    pods: dict[str, dict[str, int]] = {}
    limits: dict[str, dict[str, dict[str, int]]] = {}
    for kind, note in world.notes:
        if kind == "rt.exit":
            limits.get(note["uid"], {}).pop(note["container"], None)
        if kind != "rt.cgroup":
            continue
        if "container" in note:
            limits.setdefault(note["uid"], {})[note["container"]] = note["limit"]
        else:
            pods[note["uid"]] = note["limit"]
        for resource in ("cpu", "memory"):
            allowed, given = pods[note["uid"]][resource], limits.get(note["uid"], {}).values()
            if allowed is not None:
                assert sum(limit[resource] or 0 for limit in given) <= allowed, note


def actuated_was_allocated(world: World) -> None:
    """Every value that the runtime was handed was allocated before (I-05)."""
    allocated: dict[tuple[str, str], list[int]] = {}
    for kind, note in world.notes:
        if kind == "kl.alloc":
            for name, resources in note["containers"].items():
                allocated.setdefault((note["uid"], name), []).append(of(resources.get("limits")).get("memory", 0))
        elif kind in ("rt.create", "rt.update.begin"):
            assert note["cfg"].get("memory_limit_bytes", 0) in allocated[note["uid"], note["name"]]


def the_record_is_complete(world: World) -> None:
    """What has come to rest is on the disk as it was allocated, whoever of the kubelet's lives carried it out."""

    def amounts(key: str) -> dict[tuple[str, str, str, str], int]:
        entries = world.disk(key) or {}
        return {
            (uid, name, part, resource): amount
            for uid, pod in entries.items()
            for name, said in (pod.get("ContainerResources") or {}).items()
            for part in ("requests", "limits")
            for resource, amount in of(said.get(part)).items()
            if amount and resource in ("cpu", "memory")
        }

    pods = world.api.objects["pods"].values()
    alive = {pod["metadata"]["uid"] for pod in pods if pod.get("status", {}).get("phase") == "Running"}
    allocated, actuated = amounts("allocated_pods_state"), amounts("actuated_pods_state")
    assert {key: value for key, value in actuated.items() if key[0] in alive} == {
        key: value for key, value in allocated.items() if key[0] in alive
    }


@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_a_kubelet_may_die_before_each_of_its_effects(scenario: str) -> None:
    prepare, act, holds = SCENARIOS[scenario]
    base = World()
    prepare(base)
    before = base.effects
    act(base)
    base.until(lambda: holds(base), within=60)
    base.run(3)
    count = base.effects - before
    assert count > 10
    for die_at in range(count):
        world = World()
        prepare(world)
        world.die_at = world.effects + die_at
        act(world)
        world.until(lambda world=world: not world.kubelet_lives, within=60)  # type: ignore[misc]
        world.run(0.05)
        world.start_kubelet()
        world.until(lambda world=world: holds(world), within=60)  # type: ignore[misc]
        world.run(3)
        limits_hold(world)
        actuated_was_allocated(world)
        the_record_is_complete(world)
        for name in ("a", "r", "b"):
            if world.api.pod(name) is not None:
                restarts = [s["restartCount"] for s in world.status(name)["containerStatuses"]]
                assert restarts == ([1] if name == "r" else [0] * len(restarts)), die_at


def test_a_restart_restarts_no_container_and_changes_no_status() -> None:
    world = World()
    setup_two(world)
    patches = len(world.api.patches)
    world.calls.clear()
    world.restart_kubelet()
    world.run(30)
    assert len(world.api.patches) == patches
    assert world.metric("kubelet_running_pods") == 2
    assert {method for method, _ in world.calls} <= {"events", "ListAll", "UpdateWorkload", "PodState"}


def test_a_resize_asked_for_while_the_kubelet_was_away_is_judged_when_it_is_back() -> None:
    for profile, soon in (("lab", True), ("v1.37", False)):
        world = World(profile=profile, kubelet={"elbowroom": {"periodicResizeRetry": "3s"}})
        setup_two(world)
        world.kill_kubelet()
        world.api.resize("a", "x", requests={"cpu": "1"}, limits={"cpu": "1"})
        world.run(1)
        world.start_kubelet()
        world.run(1)
        assert world.is_settled("a") is soon or not soon
        judged = bool(world.noted("kl.judge"))
        assert judged is soon
        world.until(lambda world=world: is_sized(world, "a", "x", "1", "100Mi"), within=4)  # type: ignore[misc]


def test_a_waiting_resize_survives_a_restart_with_its_condition() -> None:
    world = World()
    setup_two(world)
    world.api.resize("a", "x", requests={"cpu": "3"}, limits={"cpu": "3"})
    world.run(1)
    before = world.condition("a", "PodResizePending")
    assert before is not None
    world.restart_kubelet()
    for _ in range(20):
        world.run(0.1)
        assert world.condition("a", "PodResizePending") == before
    world.api.delete("b")
    world.until(lambda: is_sized(world, "a", "x", "3", "100Mi"))


def test_a_pod_that_never_fitted_again_is_not_rejected_for_somebodys_wish() -> None:
    world = World()
    setup_two(world)
    world.kill_kubelet()
    world.api.resize("b", requests={"cpu": "4"})
    world.start_kubelet()
    world.run(2)
    assert world.status("a")["phase"] == world.status("b")["phase"] == "Running"
    pending = world.condition("b", "PodResizePending")
    assert pending is not None and pending["reason"] == "Deferred"


def test_without_the_allocation_file_a_wish_is_granted_silently_if_it_fits() -> None:
    world = World()
    setup_two(world)
    world.kill_kubelet()
    world.lose("allocated_pods_state")
    world.api.resize("a", "x", requests={"cpu": "1"}, limits={"cpu": "1"})
    world.start_kubelet()
    world.until(lambda: is_sized(world, "a", "x", "1", "100Mi"))
    assert not world.api.events("ResizeStarted")


def test_without_the_actuation_file_everything_is_told_again_and_nothing_restarts() -> None:
    world = World()
    setup_one(world)
    world.kill_kubelet()
    world.lose("actuated_pods_state")
    world.calls.clear()
    world.start_kubelet()
    world.run(3)
    assert [m for m, _ in world.calls].count("UpdateContainerResources") == 4
    assert world.is_settled("a") and world.container("a", "x")["restartCount"] == 0


@pytest.mark.parametrize("key", ["allocated_pods_state", "actuated_pods_state"])
def test_a_corrupt_checkpoint_keeps_the_kubelet_from_starting(key: str) -> None:
    world = World()
    setup_one(world)
    disk = copy.deepcopy(world._disks[KUBELET])
    disk[key] = disk[key].replace(b"200m", b"900m")
    kubelet = build({"node": NODE, "name": KUBELET, "epoch": 9, "profile": world.profile.as_config()}, random.Random(1))
    with pytest.raises(CorruptCheckpoint) as failure:
        kubelet.start(world.now, disk)
    assert failure.value.note.name == "kl.checkpoint.corrupt"
    assert "could not restore state from checkpoint: checkpoint is corrupted" in str(failure.value)
    assert f'checkpoint file "{key}" before restarting Kubelet' in str(failure.value)


def test_a_running_pod_is_rejected_after_a_restart_only_if_the_node_shrank_and_its_containers_end() -> None:
    world = World()
    setup_two(world)
    world.kill_kubelet()
    world.api.change("nodes", NODE, lambda n: n["status"]["allocatable"].update(cpu="2"))
    world.start_kubelet()
    world.until(lambda: world.status("b")["phase"] == "Failed")
    assert world.status("b")["reason"] == "OutOfcpu" and world.status("a")["phase"] == "Running"
    world.run(5)
    assert {entry["pod"] for entry in msgspec.json.decode(world.proxy("cgroups")["body"])} == {"a"}
    assert world.noted("pod.end")[-1]["phase"] == "Failed"


def test_what_an_earlier_life_turned_away_is_not_started_again_when_the_runtime_comes_back() -> None:
    world = World()
    setup_two(world)
    world.kill_kubelet()
    world.api.change("nodes", NODE, lambda n: n["status"]["allocatable"].update(cpu="2"))
    world.start_kubelet()
    world.until(lambda: world.status("b")["phase"] == "Failed")
    world.run(5)
    world.restart_kubelet()
    world.run(1)
    world.calls.clear()
    world.reconnect(RUNTIME)
    world.run(30)
    assert {method for method, _ in world.calls} <= {"events", "ListAll", "PodState", "UpdateWorkload"}


def test_what_ran_before_is_not_pushed_out_by_a_pod_that_came_while_the_kubelet_was_away() -> None:
    world = World()
    setup_two(world)
    world.kill_kubelet()
    older = a_pod("0-older", a_container(cpu="3"))
    older["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    world.api.create("pods", older)
    world.start_kubelet()
    world.until(lambda: world.status("0-older")["phase"] == "Failed")
    assert world.status("a")["phase"] == world.status("b")["phase"] == "Running"


def test_what_an_ended_pod_had_may_be_anothers_before_the_api_server_hears_of_its_end() -> None:
    world = World()
    start(world)
    for name in ("0", "b"):
        world.api.create("pods", a_pod(name, a_container(cpu="1"), grace=1))
    world.run(2)
    hear = world.api.received

    def without_the_end_of_0(source: str, message: Message) -> None:
        if not (isinstance(message, Call) and message.method == "api" and decode_value(message.body, ApiRequest).name == "0"):
            hear(source, message)

    world.api.received = without_the_end_of_0  # type: ignore[method-assign]
    world.api.resize("a", "x", requests={"cpu": "3"}, limits={"cpu": "3"})
    world.api.delete("0")
    world.until(lambda: any(note["pod"] == "ns/0" for note in world.noted("pod.end")))
    world.api.delete("b", grace=0)
    world.until(lambda: world.noted("kl.judge")[-1]["verdict"] == "Granted")
    world.kill_kubelet()
    world.api.received = hear  # type: ignore[method-assign]
    world.start_kubelet()
    world.until(lambda: is_sized(world, "a", "x", "3", "100Mi") and world.api.pod("0") is None)
    assert world.container("a", "x")["restartCount"] == 0


def test_a_finished_pod_holds_nothing_after_a_restart() -> None:
    world = World()
    world.api.create("pods", a_pod("done", a_container(cpu="3"), restartPolicy="Never", workload={"c": {"exitAfterSeconds": 1}}))
    world.until(lambda: world.status("done")["phase"] == "Succeeded")
    world.api.create("pods", a_pod("a", a_container(cpu="3")))
    world.run(1)
    world.restart_kubelet()
    world.run(2)
    assert world.status("a")["phase"] == "Running" and world.status("done")["phase"] == "Succeeded"
    world.api.resize("a", requests={"cpu": "4"})
    world.until(lambda: world.is_settled("a"))


def test_what_the_api_server_forgot_while_the_kubelet_was_away_is_removed_from_the_runtime() -> None:
    world = World()
    setup_two(world)
    world.kill_kubelet()
    world.api.delete("b")
    world.start_kubelet()
    world.run(1)
    listed = msgspec.json.decode(world.proxy("cgroups")["body"])
    assert {entry["pod"] for entry in listed} == {"a"}


def test_a_namesake_that_took_a_pods_place_while_the_kubelet_was_away_is_another_pod() -> None:
    world = World()
    setup_two(world)
    world.kill_kubelet()
    world.api.delete("b")
    world.api.create("pods", a_pod("b", a_container(cpu="1")))
    world.start_kubelet()
    world.until(lambda: world.status("b")["phase"] == "Running")
    assert world.container("b")["resources"]["requests"]["cpu"] == "1"


def test_a_runtime_whose_connection_was_replaced_in_a_resize_is_asked_again() -> None:
    world = World()
    world.api.create("pods", a_pod("a", a_container(cpu="500m"), workload={"c": {"resizeSeconds": 3}}))
    world.run(2)
    world.api.resize("a", requests={"cpu": "1"})
    world.run(1)
    world.reconnect("runtime/n1")
    world.until(lambda: world.is_settled("a") and world.container("a")["resources"]["requests"]["cpu"] == "1", within=15)
    assert world.container("a")["restartCount"] == 0


@pytest.mark.parametrize("profile", ["lab", "v1.37"])
def test_a_call_whose_success_was_not_recorded_is_made_again(profile: str) -> None:
    """RC-93: the runtime applied it, and the kubelet died before it could write that down."""
    world = World(profile=profile)
    world.api.create("pods", a_pod("a", guaranteed("x", "200m", "100Mi")))
    world.run(2)
    world.api.resize("a", "x", requests={"cpu": "400m"}, limits={"cpu": "400m"})
    world.until(lambda: any(note["ok"] for note in world.noted("rt.update.end")))
    world.kill_kubelet()
    uid = world.api.objects["pods"]["ns/a"]["metadata"]["uid"]
    assert world.disk("actuated_pods_state")[uid]["ContainerResources"]["x"]["limits"]["cpu"] == "200m"
    world.calls.clear()
    world.start_kubelet()
    world.until(lambda: is_sized(world, "a", "x", "400m", "100Mi"))
    world.run(60)
    assert [method for method, _ in world.calls].count("UpdateContainerResources") == 1
    assert world.disk("actuated_pods_state")[uid]["ContainerResources"]["x"]["limits"]["cpu"] == "400m"


@pytest.mark.parametrize("ending", ["reconnect", "kubelet"])
def test_an_update_that_nobody_waits_for_any_more_never_comes_into_force(ending: str) -> None:
    """What the kubelet sees when it looks is final: its pod's cgroup comes down for a newer allocation, and no update of an older
    one lands above it."""
    world = World()
    pod = a_pod("a", guaranteed("x", "200m", "100Mi"), guaranteed("y", "300m", "200Mi"), workload={"x": {"resizeSeconds": 1}})
    world.api.create("pods", pod)
    world.run(2)
    world.api.resize("a", "x", requests={"memory": "900Mi"}, limits={"memory": "900Mi"})
    world.run(0.97)
    assert len(world.noted("rt.update.begin")) == 1 and not world.noted("rt.update.end")
    world.api.resize("a", "x", requests={"memory": "100Mi"}, limits={"memory": "100Mi"})
    world.reconnect("runtime/n1") if ending == "reconnect" else world.restart_kubelet()
    world.run(10)
    assert is_sized(world, "a", "x", "200m", "100Mi")
    assert [note["ok"] for note in world.noted("rt.update.end")] == [False]
    limits_hold(world)


def test_a_list_of_before_does_not_settle_what_became_uncertain_since() -> None:
    """The list was asked for after a gap in the events; a call that failed meanwhile is looked at all the same."""
    world = World()
    start(world)
    world.run(2)
    kubelet, uid = world._machines[KUBELET], world.api.objects["pods"]["ns/a"]["metadata"]["uid"]
    assert isinstance(kubelet, Kubelet)
    worker = kubelet.workers[uid]
    assert worker.sandbox is not None
    world.calls.clear()
    worker.doubt()
    older = msgspec.structs.replace(worker.sandbox, created_at=worker.sandbox.created_at + 1)
    listed = Finished(("list",), Code.OK, encode_value(RuntimeState((older,))), "")
    kubelet.inventory.listed(world.now, listed)
    assert worker.in_doubt and worker.sandbox != older
    world.api.resize("a", "x", requests={"cpu": "300m"}, limits={"cpu": "300m"})
    world.until(lambda: bool(world.calls))
    assert world.calls[0][0] == "PodState"
