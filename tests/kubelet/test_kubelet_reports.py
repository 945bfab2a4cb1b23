"""What public bug reports about kubelets say must not happen, each as a fact about ours."""

from typing import Any

from kubelet_world import API, KUBELET, World, a_container, a_pod

from elbowroom.kubelet.checkpoint import ALLOCATED, Checkpoint, PodResources
from elbowroom.wire import Code, StreamEnd, decode_value
from elbowroom.wire.cri import CreateContainer, UpdateContainerResources

MIB = 1 << 20


def guaranteed(name: str = "c", cpu: str = "1", memory: str = "200Mi") -> dict[str, Any]:
    return a_container(name, cpu, memory, {"cpu": cpu, "memory": memory})


def running(world: World, *pods: dict[str, Any]) -> World:
    for pod in pods:
        world.api.create("pods", pod)
    names = [pod["metadata"]["name"] for pod in pods]
    return world.until(lambda: all(world.status(name)["phase"] == "Running" for name in names)).run(0.5)


def reason(world: World, name: str) -> str:
    condition = world.condition(name, "PodResizePending")
    return condition["reason"] if condition is not None else ""


def updates(world: World) -> list[UpdateContainerResources]:
    return [decode_value(body, UpdateContainerResources) for method, body in world.calls if method == "UpdateContainerResources"]


# ---------------------------------------------------------------- allocation


def test_a_container_that_dies_while_its_resize_waits_comes_back_as_it_was() -> None:
    crashing = a_pod("a", guaranteed(cpu="1"), workload={"c": {"exitAfterSeconds": 6, "exitCode": 1}})
    for cpu, verdict in (("3", "Deferred"), ("100", "Infeasible")):
        world = running(World(), a_pod("b", a_container(cpu="2")), crashing)
        world.api.resize("a", requests={"cpu": cpu}, limits={"cpu": cpu})
        world.until(lambda world=world: reason(world, "a") != "", within=1)  # type: ignore[misc]
        world.until(lambda world=world: world.container("a")["restartCount"] == 1 and "running" in world.container("a")["state"])  # type: ignore[misc]
        assert reason(world, "a") == verdict
        found = world.container("a")
        assert found["allocatedResources"]["cpu"] == "1" and found["resources"]["limits"]["cpu"] == "1"
        created = [decode_value(body, CreateContainer) for method, body in world.calls if method == "CreateContainer"]
        assert [c.resources.cpu_quota for c in created if c.resources.cpu_quota] == [100_000, 100_000]


def test_what_a_pod_waits_for_is_not_taken_from_its_neighbours() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="2")))
    world.api.resize("a", requests={"cpu": "3"})
    world.until(lambda: reason(world, "a") == "Deferred")
    world.api.resize("b", requests={"cpu": "3"})
    world.until(lambda: world.is_settled("b"), within=1)
    assert world.container("b")["allocatedResources"]["cpu"] == "3" and reason(world, "a") == "Deferred"


def test_containers_that_are_resized_together_are_allocated_together_wherever_the_kubelet_dies() -> None:
    def begun() -> World:
        return running(World(), a_pod("p", a_container("x", cpu="500m"), a_container("y", cpu="500m")))

    def both(pod: dict[str, Any]) -> None:
        for container in pod["spec"]["containers"]:
            container["resources"] = {"requests": {"cpu": "1"}}

    def act(world: World) -> None:
        world.api.change("pods", "ns/p", both, bump=True)

    base = begun()
    before = base.effects
    act(base)
    base.until(lambda: base.is_settled("p"))
    count, seen = base.effects - before, set()
    for die_at in range(count):
        world = begun()
        world.die_at = world.effects + die_at
        act(world)
        world.until(lambda world=world: not world.kubelet_lives)  # type: ignore[misc]
        (entry,) = world.disk("allocated_pods_state").values()
        sizes = {c["requests"]["cpu"] for c in entry["ContainerResources"].values()}
        assert len(sizes) == 1, f"died before effect {die_at} with {entry}"
        seen |= sizes
    assert seen == {"500m", "1"}


def test_a_pod_whose_requests_add_up_past_64_bits_is_refused() -> None:
    world = World()
    world.api.create("pods", a_pod("huge", *(a_container(name, memory="4Ei") for name in "xyz")))
    world.until(lambda: world.status("huge")["phase"] == "Failed", within=1)
    assert world.status("huge")["reason"] == "OutOfmemory"


def test_a_pod_made_anew_under_its_name_while_nobody_looked_is_another_pod() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")))
    old = world.api.pod("a")
    assert old is not None
    (number,) = [number for number, watch in world.api.watches.items() if watch["resource"] == "pods"]
    del world.api.watches[number]
    world.api.delete("a")
    new = world.api.create("pods", a_pod("a", a_container(cpu="2")))
    world.post(API, KUBELET, StreamEnd(number, Code.OUT_OF_RANGE))
    world.until(lambda: world.container("a").get("allocatedResources") == {"cpu": "2"}, within=10)
    world.run(1)
    assert list(world.disk("allocated_pods_state")) == [new["metadata"]["uid"]] != [old["metadata"]["uid"]]
    assert world.container("a")["restartCount"] == 0


# ---------------------------------------------------------------- actuation


def test_a_plan_is_thrown_away_when_another_allocation_has_come() -> None:
    pod = a_pod("p", guaranteed("x"), guaranteed("y"), workload={name: {"resizeSeconds": 1} for name in "xy"})
    world = running(World(cpu="8"), pod)

    def wish(cpu: str) -> None:
        def both(pod: dict[str, Any]) -> None:
            for container in pod["spec"]["containers"]:
                container["resources"] = guaranteed(cpu=cpu)["resources"]

        world.api.change("pods", "ns/p", both, bump=True)

    wish("2")
    world.run(0.5)  # the first container is being told
    wish("1")
    world.calls.clear()
    world.until(lambda: world.is_settled("p"))
    assert [update.resources.cpu_quota for update in updates(world)] == [100_000], "of the two, one had grown, and none grows after"


def test_a_resize_of_a_container_that_has_ended_leaves_nothing_in_progress() -> None:
    pod = a_pod("a", guaranteed("c"), guaranteed("once"), restartPolicy="OnFailure", workload={"once": {"exitAfterSeconds": 1}})
    world = running(World(cpu="8"), pod)
    world.until(lambda: "terminated" in world.container("a", "once")["state"])
    world.api.resize("a", "once", requests={"cpu": "2"}, limits={"cpu": "2"})
    world.until(lambda: world.is_settled("a"), within=1)
    world.run(10)
    assert world.is_settled("a") and not updates(world)


def test_memory_is_checked_container_by_container() -> None:
    uneven = a_pod(
        "a",
        a_container("x", "100m", "256Mi", {"memory": "1Gi"}),
        a_container("y", "100m", "64Mi", {"memory": "1Gi"}),
        workload={"x": {"memoryUsage": "800Mi"}, "y": {"memoryUsage": "100Mi"}},
    )
    world = running(World(), uneven)
    world.api.resize("a", "x", limits={"memory": "512Mi"})  # the pod as a whole uses 900Mi of 1536Mi
    world.run(5)
    failing = world.condition("a", "PodResizeInProgress")
    assert failing is not None and failing["reason"] == "Error"
    assert failing["message"] == (
        f'cannot decrease memory limits: attempting to set container "x" memory limit ({512 * MIB}) '
        f"below current usage ({900 * MIB})"
    )
    assert world.container("a", "x")["resources"]["limits"]["memory"] == "1Gi" and not updates(world)


def test_a_check_that_failed_is_made_again_by_itself() -> None:
    """10 to 15 s after it failed, though nothing has told the kubelet that it would now pass."""
    world = running(World(), a_pod("a", guaranteed(memory="200Mi")))
    world.refuse["PodStats"] = (Code.UNAVAILABLE, "not now")
    world.api.resize("a", requests={"memory": "100Mi"}, limits={"memory": "100Mi"})
    world.run(12)
    failing = world.condition("a", "PodResizeInProgress")
    assert failing is not None and failing["message"].startswith("unable to read memory usage for pod")
    world.refuse.clear()
    world.until(lambda: world.is_settled("a"), within=15)
    assert world.container("a")["resources"]["limits"]["memory"] == "100Mi"


def test_a_failed_resize_does_not_hold_up_the_next_one() -> None:
    world = running(World(), a_pod("a", guaranteed(memory="200Mi"), workload={"c": {"memoryUsage": "150Mi"}}))
    world.api.resize("a", requests={"memory": "100Mi"}, limits={"memory": "100Mi"})
    world.until(lambda: (world.condition("a", "PodResizeInProgress") or {}).get("reason") == "Error", within=1)
    world.api.resize("a", requests={"memory": "300Mi"}, limits={"memory": "300Mi"})
    world.until(lambda: world.is_settled("a"), within=1)
    assert world.container("a")["resources"]["limits"]["memory"] == "300Mi"


def test_a_resize_taken_back_amid_its_actuation_leaves_no_condition() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1"), workload={"c": {"resizeSeconds": 0.5}}))
    for _ in range(3):
        world.api.resize("a", requests={"cpu": "2"})
        world.run(0.3)
        world.api.resize("a", requests={"cpu": "1"})
        world.until(lambda: world.is_settled("a"), within=2)
    world.run(3)
    assert world.is_settled("a") and world.container("a")["resources"]["requests"]["cpu"] == "1"


def test_what_the_runtime_was_told_in_an_earlier_life_is_set_right() -> None:
    """The kubelet died before it could record it, and the resize was taken back before there was another one."""
    world = running(World(), a_pod("a", guaranteed(cpu="1"), workload={"c": {"resizeSeconds": 0.5}}))
    world.api.resize("a", requests={"cpu": "2"}, limits={"cpu": "2"})
    world.run(0.3)
    world.kill_kubelet()
    world.run(1)
    world.api.resize("a", requests={"cpu": "1"}, limits={"cpu": "1"})
    world.start_kubelet()
    world.until(lambda: world.is_settled("a") and bool(updates(world)))
    world.run(2)
    assert [update.resources.cpu_quota for update in updates(world)] == [200_000, 100_000]
    assert world.container("a")["resources"]["limits"]["cpu"] == "1"


# ---------------------------------------------------------------- the static policy


def test_under_the_static_policy_a_pod_without_exclusive_cpus_is_resized() -> None:
    static = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
    world = World(profile="v1.37", cpu="8", kubelet=static)
    running(world, a_pod("b", a_container(cpu="1", memory="1Gi", limits={"cpu": "2", "memory": "2Gi"})))
    world.api.resize("b", requests={"cpu": "1500m"})
    world.until(lambda: world.is_settled("b"), within=1)
    assert world.container("b")["resources"]["requests"]["cpu"] == "1500m"


def test_what_is_durable_already_is_not_written_again() -> None:
    checkpoint = Checkpoint(ALLOCATED)
    checkpoint.put("uid", PodResources())
    assert [type(effect).__name__ for effect in checkpoint.save()] == ["Note", "Persist", "Note"]
    assert checkpoint.save() == []
    checkpoint.put("uid", PodResources(containers=None))
    assert len(checkpoint.save()) == 3


def test_a_pod_that_was_forgotten_leaves_nothing_behind() -> None:
    checkpoint, never = Checkpoint(ALLOCATED), Checkpoint(ALLOCATED)
    for kept in (checkpoint, never):
        kept.put("stays", PodResources())
    checkpoint.put("goes", PodResources())
    checkpoint.save()
    checkpoint.forget("goes")
    checkpoint.forget("unknown")
    assert checkpoint.save() == never.save()
    assert checkpoint == never, "not even in memory: uids do not come again"
