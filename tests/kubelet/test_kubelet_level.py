"""Resources of a pod as a whole in its kubelet: what cgroups get, what is granted together, what status says (PL-24 to PL-54)."""

from typing import Any

import msgspec
import pytest
from kubelet_world import World, a_container, a_pod

PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"


def level(requests: Any = None, limits: Any = None) -> dict[str, Any]:
    return {part: amounts for part, amounts in (("requests", requests), ("limits", limits)) if amounts}


def started(pod: dict[str, Any], **world: Any) -> World:
    made = World(**world)
    made.api.create("pods", pod)
    made.until(lambda: made.status(pod["metadata"]["name"]).get("phase") == "Running")
    return made.run(2)


def cgroup(world: World, container: str | None = None, pod: str = "p") -> dict[str, Any]:
    listed: list[dict[str, Any]] = msgspec.json.decode(world.proxy("cgroups")["body"])
    return next(g for g in listed if g["pod"] == pod and g.get("container") == container)


def figures(world: World, container: str | None = None) -> tuple[int, int | None, int | None]:
    found = cgroup(world, container)
    return found["cpuWeight"], found["cpuQuota"], found["memoryMax"]


MI, GI = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("whole", "containers", "expected"),
    [
        (level({"cpu": "1", "memory": "512Mi"}, {"cpu": "1", "memory": "512Mi"}), [a_container("a")], (39, 100_000, 512 * MI)),
        (level({"cpu": "500m"}, {"cpu": "2"}), [a_container("a", "300m")], (20, 200_000, None)),
        (level({"cpu": "1"}), [a_container("a", limits={"cpu": "500m"}), a_container("b")], (39, None, None)),
        (level({"cpu": "500m"}, {"cpu": "1"}), [a_container("a", "100m", limits={"cpu": "800m"})], (20, 100_000, None)),
        (level({"memory": "1Gi"}, {"memory": "2Gi"}), [a_container("a", "700m")], (28, None, 2 * GI)),
        ({}, [a_container("a", "500m", "256Mi", {"cpu": "500m", "memory": "256Mi"})], (20, 50_000, 256 * MI)),
    ],
)
def test_the_pods_cgroup_has_its_own_values_or_its_containers(
    whole: dict[str, Any], containers: list[dict[str, Any]], expected: tuple[int, int | None, int | None]
) -> None:
    assert figures(started(a_pod("p", *containers, resources=whole))) == expected


def test_a_container_without_a_limit_of_its_own_gets_the_pods() -> None:
    whole = level({"cpu": "1", "memory": "512Mi"}, {"cpu": "2", "memory": "1Gi"})
    world = started(a_pod("p", a_container("a"), a_container("b", "200m", limits={"cpu": "500m"}), resources=whole))
    assert figures(world, "a") == (1, 200_000, GI)
    assert figures(world, "b") == (8, 50_000, GI)


def test_one_resize_of_pod_and_containers_ends_with_every_value_in_its_cgroup() -> None:
    whole = level({"cpu": "2", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"})
    own = {"cpu": "500m", "memory": "256Mi"}
    pod = a_pod("p", a_container("a", limits=own, **own), a_container("b", limits=own, **own), resources=whole)
    world = started(pod)
    amounts = {"cpu": "3", "memory": "768Mi"}

    def change(made: dict[str, Any]) -> None:
        made["spec"]["resources"] = level(amounts, amounts)
        made["spec"]["containers"][0]["resources"] = level({"cpu": "1", "memory": "128Mi"}, {"cpu": "1", "memory": "128Mi"})
        made["spec"]["containers"][1]["resources"] = level({"cpu": "300m", "memory": "256Mi"}, {"cpu": "300m", "memory": "256Mi"})

    world.api.change("pods", "ns/p", change, bump=True)
    world.run(2)
    assert world.is_settled("p")
    assert figures(world) == (118, 300_000, 768 * MI)
    assert figures(world, "a")[1:] == (100_000, 128 * MI) and figures(world, "b")[1:] == (30_000, 256 * MI)
    assert world.status("p")["allocatedResources"] == {"cpu": "3", "memory": "768Mi"}
    assert world.status("p")["resources"] == {"requests": amounts, "limits": amounts}


def test_pod_and_containers_are_granted_together_or_not_at_all() -> None:
    whole = level({"cpu": "1", "memory": "512Mi"}, {"cpu": "1", "memory": "512Mi"})
    own = {"cpu": "200m", "memory": "64Mi"}
    world = started(a_pod("p", a_container("a", limits=own, **own), resources=whole))
    world.api.create("pods", a_pod("q", a_container("a"), resources=level({"cpu": "2"}, {"cpu": "2"})))
    world.run(2)

    def change(made: dict[str, Any]) -> None:
        made["spec"]["resources"] = level({"cpu": "3", "memory": "512Mi"}, {"cpu": "3", "memory": "512Mi"})
        made["spec"]["containers"][0]["resources"] = level({"cpu": "100m", "memory": "64Mi"}, {"cpu": "100m", "memory": "64Mi"})

    world.api.change("pods", "ns/p", change, bump=True)
    pending = world.run(2).condition("p", PENDING)
    assert pending is not None and pending["reason"] == "Deferred"
    assert pending["message"] == "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    assert world.container("p", "a")["allocatedResources"]["cpu"] == "200m" and figures(world, "a")[1] == 20_000
    world.restart_kubelet()
    world.run(2)
    assert world.condition("p", PENDING) is not None and world.status("p")["allocatedResources"]["cpu"] == "1"
    world.api.delete("q")
    world.until(lambda: world.is_settled("p"))
    assert world.container("p", "a")["allocatedResources"]["cpu"] == "100m" and figures(world)[1] == 300_000


@pytest.mark.parametrize(("policy", "restarts"), [("NotRequired", 0), ("RestartContainer", 1)])
def test_who_inherits_the_limit_restarts_if_its_policy_says_so_and_nobody_else(policy: str, restarts: int) -> None:
    own = [{"resourceName": "memory", "restartPolicy": policy}]
    pod = a_pod(
        "p",
        a_container("heir", resizePolicy=own),
        a_container("own", limits={"memory": "128Mi"}, resizePolicy=own),
        resources=level({"memory": "256Mi"}, {"memory": "512Mi"}),
    )
    world = started(pod)
    world.api.resize("p", level=level(limits={"memory": "1Gi"}))
    world.until(lambda: world.is_settled("p")).run(2)
    assert (world.container("p", "heir")["restartCount"], world.container("p", "own")["restartCount"]) == (restarts, 0)
    assert figures(world, "heir")[2] == GI and figures(world, "own")[2] == 128 * MI


def test_a_limit_below_the_usage_is_not_written_and_going_back_clears_the_error() -> None:
    pod = a_pod(
        "p", a_container("a"), workload={"a": {"memoryUsage": "200Mi"}}, resources=level({"memory": "64Mi"}, {"memory": "512Mi"})
    )
    world = started(pod)
    world.api.resize("p", level=level(limits={"memory": "100Mi"}))
    error = world.run(2).condition("p", IN_PROGRESS)
    assert error is not None and error["reason"] == "Error"
    assert "attempting to set pod memory limit (104857600) below current usage" in error["message"]
    assert world.condition("p", PENDING) is None and figures(world)[2] == 512 * MI
    assert world.status("p")["resources"]["limits"]["memory"] == "512Mi"
    world.api.resize("p", level=level(limits={"memory": "512Mi"}))
    world.until(lambda: world.is_settled("p"))


def test_every_pods_status_tells_of_it_as_a_whole() -> None:
    plain = started(a_pod("p", a_container("a", "100m", "64Mi"), a_container("b", "200m"), overhead={"cpu": "50m"}))
    assert plain.status("p")["allocatedResources"] == {"cpu": "350m", "memory": "64Mi"}
    assert plain.status("p")["resources"]["requests"] == {"cpu": "350m", "memory": "64Mi"}


def test_a_kubelet_without_the_gate_tells_nothing_of_the_pod_as_a_whole_and_resizes_none() -> None:
    gates = {"InPlacePodLevelResourcesVerticalScaling": False}
    world = started(a_pod("p", a_container("a"), resources=level({"cpu": "1"}, {"cpu": "1"})), kubelet={"featureGates": gates})
    assert "resources" not in world.status("p") and "allocatedResources" not in world.status("p")
    assert figures(world) == (39, 100_000, None)


@pytest.mark.parametrize(("wanted", "reason"), [("9", "Infeasible"), ("3", "")])
def test_what_is_asked_for_as_a_whole_is_measured_against_the_node(wanted: str, reason: str) -> None:
    world = started(a_pod("p", a_container("a", "100m"), resources=level({"cpu": "1"}, {"cpu": "1"})))
    world.api.resize("p", level=level({"cpu": wanted}, {"cpu": wanted}))
    pending = world.run(2).condition("p", PENDING)
    assert (pending or {}).get("reason", "") == reason
    if pending is not None:
        assert pending["message"] == "Node didn't have enough capacity: cpu, requested: 9000, capacity: 4000"
