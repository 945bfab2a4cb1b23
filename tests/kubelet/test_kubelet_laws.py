"""Laws of a node: what holds whatever the order, the sizes and the losses."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubelet_world import HOP, RUNTIME, World, a_container, a_pod
from test_kubelet_crashes import actuated_was_allocated, limits_hold

from elbowroom.api.objects import Pod, ResourceRequirements
from elbowroom.api.resources import of
from elbowroom.kubelet import actuation
from elbowroom.kubelet.account import Account
from elbowroom.kubelet.actuation import PodConfig
from elbowroom.kubelet.checkpoint import Checkpoint, PodResources
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.machine import Instant, Received, seconds
from elbowroom.wire import Call, Message
from elbowroom.wire.cri import LinuxResources

CPUS, MEBIBYTES = st.integers(1, 20).map(lambda n: f"{100 * n}m"), st.integers(1, 20).map(lambda n: f"{32 * n}Mi")
sizes = st.fixed_dictionaries({"cpu": CPUS, "memory": MEBIBYTES})


# ---------------------------------------------------------------- the maximum rule (RC-72, RC-161)


class Neighbours:
    """As much of a kubelet as counting needs."""

    def __init__(self, layer: PodResources) -> None:
        self.config = KubeletConfig(gates={"InPlacePodVerticalScalingInitContainers": True})
        self.allocated = Checkpoint("allocated")
        self.allocated.put("u", layer)


def a_status(name: str, allocated: Mapping[str, str], actual: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "allocatedResources": allocated, "resources": {"requests": actual}}


@given(st.lists(st.tuples(sizes, sizes, sizes, sizes), min_size=1, max_size=4), st.sampled_from(["", "Deferred", "Infeasible"]))
@settings(max_examples=150, deadline=None)
def test_a_neighbour_counts_the_largest_of_its_sums_and_never_what_it_wishes(layers: list[Any], pending: str) -> None:
    wished, allocated, told, actual = ({f"c{at}": row[column] for at, row in enumerate(layers)} for column in range(4))
    conditions = [{"type": "PodResizePending", "status": "True", "reason": pending}] if pending else []
    pod = msgspec.convert(
        {
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
            "spec": {"containers": [a_container(name, size["cpu"], size["memory"]) for name, size in wished.items()]},
            "status": {
                "phase": "Running",
                "conditions": conditions,
                "containerStatuses": [a_status(name, told[name], actual[name]) for name in wished],
            },
        },
        Pod,
    )
    layer = PodResources(containers={name: ResourceRequirements(requests=size) for name, size in allocated.items()})
    counts = Account(Neighbours(layer), SimpleNamespace(pod=pod, uid="u")).counts  # type: ignore[arg-type]

    def total(part: Mapping[str, Mapping[str, str]], resource: str) -> int:
        return sum(of(size)[resource] for size in part.values())

    expected = {name: max(total(part, name) for part in (allocated, told, actual)) for name in ("cpu", "memory")}
    assert {name: counts[name] for name in expected} == expected


# ---------------------------------------------------------------- the last desire


wishes = st.lists(st.tuples(sizes, sizes, st.sampled_from([0.0, 0.0003, 0.002, 0.3])), min_size=1, max_size=5)
MiB = 1 << 20


def size_of(world: World, wish: tuple[Any, Any, float]) -> None:
    def apply(pod: dict[str, Any]) -> None:
        for container, size in zip(pod["spec"]["containers"], wish, strict=False):
            container["resources"] = {"requests": dict(size), "limits": dict(size)}

    world.api.change("pods", "ns/a", apply, bump=True)
    world.run(wish[2])


def a_world_with(version: int, profile: str, workload: Any = None) -> World:
    machine = {"cgroupVersion": version}
    world = World(profile=profile, cgroup_version=version, machine=machine, kubelet={"failCgroupV1": False})
    start = {"cpu": "500m", "memory": "256Mi"}
    containers = (a_container(name, start["cpu"], start["memory"], start) for name in "xy")
    world.api.create("pods", a_pod("a", *containers, workload=workload))
    return world.until(lambda: world.status("a")["phase"] == "Running").run(0.5)


def end_of(world: World) -> Any:
    """All that is left of a pod's sizes, wherever it can be seen."""
    world.until(lambda: world.is_settled("a"), within=60)
    world.run(30)
    assert world.is_settled("a")
    status, spec = world.status("a"), world.api.objects["pods"]["ns/a"]["spec"]
    shown = [
        {part: c.get(part) for part in ("name", "allocatedResources", "resources", "restartCount")}
        for c in status["containerStatuses"]
    ]
    for c, wish in zip(status["containerStatuses"], spec["containers"], strict=True):
        assert of(c["allocatedResources"]) == of(wish["resources"]["requests"])
        assert of(c["resources"]["limits"]) == of(wish["resources"]["limits"])
    uid = world.api.objects["pods"]["ns/a"]["metadata"]["uid"]
    actuated = world.disk("actuated_pods_state")[uid]["ContainerResources"]
    layers = {name: {part: of(amounts) for part, amounts in layer.items()} for name, layer in actuated.items()}
    return shown, layers, msgspec.json.decode(world.proxy("cgroups")["body"])


@pytest.mark.parametrize(("version", "profile"), [(1, "lab"), (2, "lab"), (2, "v1.37")])
@given(wishes, st.booleans())
@settings(max_examples=12, deadline=None)
def test_how_a_pod_ends_up_depends_on_its_last_wish_alone(version: int, profile: str, wanted: Any, slow: bool) -> None:
    workload = {"x": {"resizeSeconds": 0.4}} if slow else None
    hasty, patient = (a_world_with(version, profile, workload) for _ in range(2))
    for wish in wanted:
        size_of(hasty, wish)
    size_of(patient, wanted[-1])
    assert end_of(hasty) == end_of(patient)
    for world in (hasty, patient):
        limits_hold(world)
        actuated_was_allocated(world)


# ---------------------------------------------------------------- actuation may be repeated


@given(wishes, st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_calls_that_come_twice_change_nothing_more(wanted: Any, later: int) -> None:
    once, twice = a_world_with(2, "lab"), a_world_with(2, "lab")
    original = twice.post

    def post(source: str, target: str, message: Message) -> None:
        original(source, target, message)
        if target == RUNTIME and isinstance(message, Call):
            twice._at(Instant(twice.now + HOP + later * HOP // 2), lambda: twice._feed(RUNTIME, Received(source, message)))

    twice.post = post  # type: ignore[method-assign]
    for wish in wanted:
        patient = (wish[0], wish[1], 0.3)
        size_of(once, patient)
        size_of(twice, patient)
    twice.post = original  # type: ignore[method-assign]
    assert end_of(once) == end_of(twice)


# ---------------------------------------------------------------- what the runtime is told of the pod (RC-116)


@given(st.integers(1, 64_000), st.integers(1, 1 << 20), st.integers(0, 2_000), st.integers(0, 1 << 10))
@settings(max_examples=150, deadline=None)
def test_resources_and_overhead_make_up_the_pods_cgroup(cpu: int, kib: int, over_cpu: int, over_kib: int) -> None:
    pod = msgspec.convert(
        {
            "metadata": {"name": "p", "uid": "u"},
            "spec": {
                "containers": [a_container("c", f"{cpu}m", f"{kib}Ki", {"cpu": f"{cpu}m", "memory": f"{kib}Ki"})],
                "overhead": {"cpu": f"{over_cpu}m", "memory": f"{over_kib}Ki"},
            },
        },
        Pod,
    )
    whole = actuation.pod_config(pod)
    own, overhead = actuation.less_overhead(whole, of(pod.spec.overhead)), actuation.overhead_of(pod)
    assert whole.memory == own.memory_limit_bytes + overhead.memory_limit_bytes
    assert whole.quota is not None and own.cpu_quota + over_cpu * 100 == max(whole.quota, 1000 + over_cpu * 100)
    assert own.cpu_shares == actuation.shares_of(max(0, actuation.request_of(whole.shares) - over_cpu)) or not over_cpu


def test_a_pod_without_overhead_or_limits_is_told_as_it_is() -> None:
    assert actuation.overhead_of(msgspec.convert({"spec": {"containers": [a_container()]}}, Pod)) == LinuxResources()
    assert actuation.less_overhead(PodConfig(2, -1, -1), {"cpu": 100, "memory": MiB}) == LinuxResources(2, -1, 100_000, -1)


# ---------------------------------------------------------------- bounded time


@pytest.mark.parametrize("wish", [{"cpu": "1e100"}, {"memory": "9" * 60}, {"cpu": "0." + "0" * 60 + "1"}, {"memory": "1Ei"}])
def test_a_wish_of_any_size_is_judged_at_once(wish: dict[str, str]) -> None:
    world = a_world_with(2, "lab")
    world.api.create("pods", a_pod("b", a_container(cpu="1", memory="64Mi")))
    world.run(1)
    before = world.now
    world.api.resize("b", requests=wish)
    world.until(lambda: bool(world.noted("kl.judge")))
    assert world.now - before < seconds(0.01)
    world.run(1)
    assert world.noted("kl.judge")[0]["verdict"] in ("Infeasible", "Granted")
