"""What befalls a machine: it is shut down, or short of something."""

from typing import Any

import msgspec
import pytest
from kubelet_world import NODE, World, a_container, a_pod

from elbowroom.api.objects import Node, Pod
from elbowroom.kubelet.config import ConfigError
from elbowroom.kubelet.machinestate import MachineState, state_of
from elbowroom.kubelet.shutdown import Band, banded, bands_of

STATE = "elbowroom.dev/machine-state"
GRACE = {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"}
TERMINATED = "Pod was terminated in response to imminent node shutdown."
REFUSED = "Pod was rejected as the node is shutting down."
SLOW = {"c": {"stopSeconds": 3}}


def befall(world: World, **state: Any) -> None:
    text = msgspec.json.encode(state).decode()
    world.api.change("nodes", NODE, lambda node: node["metadata"]["annotations"].update({STATE: text}))


def ready(world: World) -> tuple[str, str, str]:
    conditions = world.api.objects["nodes"][NODE]["status"]["conditions"]
    found = next(c for c in conditions if c["type"] == "Ready")
    return found["status"], found["reason"], found["message"]


def running(world: World, *pods: dict[str, Any]) -> World:
    for pod in pods:
        world.api.create("pods", pod)
    names = [pod["metadata"]["name"] for pod in pods]
    return world.until(lambda: all(world.status(name)["phase"] == "Running" for name in names)).run(0.5)


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", MachineState()),
        ("{", MachineState()),
        ("[1]", MachineState()),
        ('{"shuttingDown": 1, "pressure": "DiskPressure"}', MachineState()),
        ('{"shuttingDown": true}', MachineState(True)),
        ('{"pressure": ["PIDPressure", "Ennui", "MemoryPressure"]}', MachineState(False, ("MemoryPressure", "PIDPressure"))),
    ],
)
def test_the_machines_state_is_read_and_nonsense_is_not_told(text: str, state: MachineState) -> None:
    assert state_of(msgspec.convert({"metadata": {"name": "n", "annotations": {STATE: text}}}, Node)) == state


def config(**fields: Any) -> dict[str, str]:
    return {"elbowroom.dev/kubelet-config": msgspec.json.encode(fields).decode()}


@pytest.mark.parametrize(
    ("fields", "bands"),
    [
        ({}, ()),
        ({"shutdownGracePeriod": "30s"}, (Band(0, 30), Band(2_000_000_000, 0))),
        (GRACE, (Band(0, 20), Band(2_000_000_000, 10))),
        (
            {
                "shutdownGracePeriodByPodPriority": [
                    {"priority": 100, "shutdownGracePeriodSeconds": 5},
                    {"priority": 0, "shutdownGracePeriodSeconds": 9},
                ]
            },
            (Band(0, 9), Band(100, 5)),
        ),
    ],
)
def test_the_bands_of_a_configuration(fields: dict[str, Any], bands: tuple[Band, ...]) -> None:
    assert bands_of(config(**fields)) == bands


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shutdownGracePeriod": "10s", "shutdownGracePeriodCriticalPods": "20s"}, "must be <= shutdownGracePeriod {10s}"),
        ({"shutdownGracePeriod": "100ms"}, "shutdownGracePeriod {100ms} must be either zero or otherwise >= 1 sec"),
        ({**GRACE, "shutdownGracePeriodByPodPriority": [{}]}, "Cannot specify both"),
        ({"shutdownGracePeriodByPodPriority": [{}]}, "needs priority"),
        ({"shutdownGracePeriodByPodPriority": 3}, "a list is expected"),
        ({"shutdownGracePeriod": "soon"}, "invalid duration"),
    ],
)
def test_what_upstream_refuses_of_it_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("{", r"\{").replace("}", r"\}")):
        bands_of(config(**fields))
    world = World(kubelet=fields).run(5)
    assert "conditions" not in world.api.objects["nodes"][NODE]["status"]


def test_a_pod_is_in_the_highest_band_that_it_reaches_and_else_in_the_lowest() -> None:
    bands = (Band(0, 1), Band(100, 2), Band(1000, 3))
    pods = [
        msgspec.convert({"metadata": {"name": str(n)}, "spec": {"priority": n}}, Pod) for n in (-5, 0, 99, 100, 999, 1000, 5000)
    ]
    found = [[pod.priority for pod in members] for _, members in banded(bands, pods)]
    assert found == [[-5, 0, 99], [100, 999], [1000, 5000]]


# ---------------------------------------------------------------- shutdown


def test_a_shutdown_ends_pods_by_bands_and_says_why() -> None:
    pods = (
        a_pod("low", a_container(cpu="1"), grace=60, workload=SLOW),
        a_pod("crit", a_container(cpu="1"), grace=60, priority=2_000_000_000, workload=SLOW),
    )
    world = running(World(kubelet=GRACE), *pods)
    begun = world.now
    befall(world, shuttingDown=True)
    world.until(lambda: ready(world) == ("False", "KubeletNotReady", "node is shutting down"))
    world.until(lambda: world.status("low")["phase"] == "Failed")
    assert 3 <= (world.now - begun) / 1e9 < 3.1 and world.status("crit")["phase"] == "Running"
    status, disrupted = world.status("low"), world.condition("low", "DisruptionTarget")
    assert (status["reason"], status["message"]) == ("Terminated", TERMINATED)
    assert disrupted is not None
    assert (disrupted["reason"], disrupted["message"]) == ("TerminationByKubelet", TERMINATED)
    world.until(lambda: world.status("crit")["phase"] == "Failed")
    assert 6 <= (world.now - begun) / 1e9 < 6.2
    told = [e for e in world.api.events("NodeShutdown")]
    assert [e["message"] for e in told] == ["Shutdown manager detected shutdown event"]
    assert told[0]["involvedObject"] == {"kind": "Node", "name": NODE, "uid": NODE}


def test_a_band_does_not_wait_longer_than_its_time_for_the_one_before() -> None:
    stubborn = {"c": {"stopSeconds": None}}
    pods = (
        a_pod("low", a_container(cpu="1"), grace=600, workload=stubborn),
        a_pod("crit", a_container(cpu="1"), grace=600, priority=2_000_000_000, workload=stubborn),
    )
    world = running(World(kubelet=GRACE), *pods)
    begun = world.now
    befall(world, shuttingDown=True)
    world.until(lambda: world.status("crit")["phase"] == world.status("low")["phase"] == "Failed", within=60)
    assert 30 <= (world.now - begun) / 1e9 < 31


def test_a_pods_own_grace_is_the_limit_where_it_is_shorter() -> None:
    world = running(World(kubelet=GRACE), a_pod("a", a_container(cpu="1"), grace=4, workload={"c": {"stopSeconds": None}}))
    begun = world.now
    befall(world, shuttingDown=True)
    world.until(lambda: world.status("a")["phase"] == "Failed")
    assert 4 <= (world.now - begun) / 1e9 < 5


def test_while_the_node_goes_down_pods_are_refused_and_resizes_wait_until_it_does_not() -> None:
    world = running(World(kubelet=GRACE), a_pod("a", a_container(cpu="1"), grace=25, priority=2_000_000_000, workload=SLOW))
    world.api.create("pods", a_pod("z", a_container(cpu="100m"), grace=25, workload={"c": {"stopSeconds": 15}}))
    world.until(lambda: world.status("z")["phase"] == "Running")
    befall(world, shuttingDown=True)
    world.run(0.1)
    world.api.create("pods", a_pod("late", a_container(cpu="100m")))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(0.5)
    late = world.status("late")
    assert (late["phase"], late["reason"], late["message"]) == ("Failed", "NodeShutdown", f"Pod was rejected: {REFUSED}")
    pending = world.condition("a", "PodResizePending")
    assert pending is not None and (pending["reason"], pending["message"]) == ("Deferred", REFUSED)
    assert world.api.events("ResizeDeferred")[0]["message"].startswith("Pod resize NodeShutdown: ")
    befall(world, shuttingDown=False)
    world.until(lambda: world.is_settled("a"), within=1)
    assert ready(world)[0] == "True" and world.container("a")["resources"]["requests"]["cpu"] == "2"
    assert world.api.events("NodeShutdown")[-1]["message"] == "Shutdown manager detected shutdown cancellation"
    world.run(60)
    assert world.status("a")["phase"] == "Running", "the critical pods' turn never came"


def test_without_a_grace_period_nobody_takes_notice() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")))
    befall(world, shuttingDown=True)
    world.api.create("pods", a_pod("b", a_container(cpu="1")))
    world.run(5)
    assert ready(world)[0] == "True" and world.status("a")["phase"] == world.status("b")["phase"] == "Running"


def test_a_pod_that_has_ended_keeps_how_it_ended_and_one_that_ends_keeps_ending() -> None:
    world = World(kubelet=GRACE)
    world.api.create("pods", a_pod("done", a_container(cpu="1"), restartPolicy="Never", workload={"c": {"exitAfterSeconds": 1}}))
    running(world, a_pod("going", a_container(cpu="1"), grace=60, workload={"c": {"stopSeconds": 4}}))
    world.until(lambda: world.status("done")["phase"] == "Succeeded")
    world.api.delete("going")
    world.run(1)
    befall(world, shuttingDown=True)
    world.until(lambda: world.api.pod("going") is None, within=10)
    assert world.status("done")["phase"] == "Succeeded"


def test_a_kubelet_that_comes_back_while_the_node_goes_down_takes_its_pods_back_and_goes_on() -> None:
    world = running(World(kubelet=GRACE), a_pod("a", a_container(cpu="1"), grace=25, workload={"c": {"stopSeconds": 5}}))
    befall(world, shuttingDown=True)
    world.run(1)
    world.restart_kubelet()
    world.until(lambda: world.status("a")["phase"] == "Failed")
    assert world.status("a")["reason"] == "Terminated"


# ---------------------------------------------------------------- pressure


def test_under_pressure_a_resize_waits_and_a_pod_is_refused_in_upstreams_words() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")))
    befall(world, pressure=["DiskPressure"])
    world.run(0.5)
    conditions = {c["type"]: c for c in world.api.objects["nodes"][NODE]["status"]["conditions"]}
    assert (conditions["DiskPressure"]["status"], conditions["DiskPressure"]["reason"]) == ("True", "KubeletHasDiskPressure")
    world.api.create("pods", a_pod("b", a_container(cpu="1")))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(0.5)
    assert (world.status("b")["reason"], world.status("b")["message"]) == (
        "Evicted",
        "Pod was rejected: The node had condition: [DiskPressure]. ",
    )
    pending = world.condition("a", "PodResizePending")
    assert pending is not None and (pending["reason"], pending["message"]) == (
        "Deferred",
        "The node had condition: [DiskPressure]. ",
    )
    befall(world)
    world.until(lambda: world.is_settled("a"), within=1)


@pytest.mark.parametrize(
    ("pressure", "pod", "phase"),
    [
        (["MemoryPressure"], a_pod("b", a_container()), "Failed"),
        (["MemoryPressure"], a_pod("b", a_container(cpu="1")), "Running"),
        (
            ["MemoryPressure"],
            a_pod("b", a_container(), tolerations=[{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]),
            "Running",
        ),
        (["MemoryPressure", "PIDPressure"], a_pod("b", a_container(cpu="1")), "Failed"),
        (["DiskPressure"], a_pod("b", a_container(), priority=2_000_000_000), "Running"),
    ],
)
def test_who_comes_in_under_which_pressure(pressure: list[str], pod: dict[str, Any], phase: str) -> None:
    world = World()
    befall(world, pressure=pressure)
    world.run(0.5)
    world.api.create("pods", pod)
    world.run(1)
    assert world.status("b")["phase"] == phase
