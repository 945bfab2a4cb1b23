"""What a container is told beside its amounts: its OOM score (PL-23), its swap (RC-115), and no CPU quota where none is set."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubelet_world import World, a_container, a_pod

from elbowroom.api.objects import Pod
from elbowroom.kubelet.tuning import BEST_EFFORT_SCORE, GUARANTEED_SCORE, Ground, oom_score_adj, swap_max, tuned
from elbowroom.wire import decode_value
from elbowroom.wire.cri import CreateContainer, LinuxResources, SetPodCgroup, UpdateContainerResources

MiB, GiB = 1 << 20, 1 << 30
CAPACITY = 10 * GiB
LIMITED = Ground(CAPACITY, swap=5 * GiB, limited_swap=True)


def view(*containers: dict[str, Any], **spec: Any) -> Pod:
    pod = a_pod("p", *containers)
    return msgspec.convert({**pod, "spec": {**pod["spec"], **spec}}, Pod)


def full(name: str, memory: str) -> dict[str, Any]:
    return a_container(name, "1", memory, {"cpu": "1", "memory": memory})


SIDECAR = {**a_container("s", memory="1Gi"), "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("pod", "container", "request_bytes", "score"),
    [
        (view(full("c", "1Gi")), "c", GiB, -997),
        (view(a_container("c")), "c", 0, 1000),
        (view(a_container("c"), priorityClassName="system-node-critical", priority=2_000_001_000), "c", 0, -997),
        (view(a_container("c"), priorityClassName="system-cluster-critical", priority=2_000_000_000), "c", 0, 1000),
        (view(a_container("c", memory="1Gi")), "c", GiB, 900),
        (view(a_container("c", cpu="1")), "c", 0, 999),
        (view(a_container("c", memory="10Gi")), "c", CAPACITY, 3),
        (view(a_container("c", memory="20Gi")), "c", 2 * CAPACITY, 3),
        # A sidecar goes no sooner than the regular container that asks for the least.
        (view(a_container("c", memory="3Gi"), a_container("d", memory="2Gi"), initContainers=[SIDECAR]), "s", GiB, 800),
        (view(a_container("c", cpu="1"), initContainers=[SIDECAR]), "s", GiB, 900),
        # Of what the pod asks for as a whole each container has an equal share of the rest.
        (view(a_container("c", memory="1Gi"), a_container("d"), resources={"requests": {"memory": "3Gi"}}), "d", 0, 900),
        (view(a_container("c", memory="1Gi"), a_container("d"), resources={"requests": {"memory": "3Gi"}}), "c", GiB, 800),
        (view(a_container("c", memory="1Gi"), resources={"requests": {"cpu": "1"}}), "c", GiB, 900),
    ],
)
def test_the_kernel_is_to_kill_first_who_uses_more_than_it_asks_for(
    pod: Pod, container: str, request_bytes: int, score: int
) -> None:
    assert oom_score_adj(pod, container, request_bytes, CAPACITY) == score


@given(st.integers(0, 4 * CAPACITY), st.integers(1, 4 * CAPACITY))
@settings(max_examples=200, deadline=None)
def test_a_burstable_container_is_between_the_other_classes_and_the_safer_the_more_it_asks_for(request: int, capacity: int) -> None:
    pod = view(a_container("c", cpu="1"))
    score, more = (oom_score_adj(pod, "c", asked, capacity) for asked in (request, request + capacity // 50))
    assert GUARANTEED_SCORE < 3 <= more <= score < BEST_EFFORT_SCORE


@pytest.mark.parametrize(
    ("container", "ground", "swap"),
    [
        (a_container("c", memory="1Gi"), LIMITED, GiB // 2),
        (a_container("c", memory="1Gi"), Ground(CAPACITY, swap=5 * GiB), 0),
        (a_container("c", memory="1Gi", limits={"memory": "1Gi"}), LIMITED, 0),
        (a_container("c", cpu="1"), LIMITED, 0),
        (full("c", "1Gi"), LIMITED, 0),
        (a_container("c", memory="20Gi"), LIMITED, 0),
    ],
)
def test_a_burstable_container_may_swap_as_large_a_share_as_it_asks_for_of_the_memory(
    container: dict[str, Any], ground: Ground, swap: int
) -> None:
    pod = view(container)
    told = tuned(LinuxResources(2), pod, pod.spec.containers[0], ground)
    assert told.memory_swap_max == str(swap) and told.memory_swap_limit_bytes == 0


def test_on_cgroup_v1_memory_and_swap_together_are_no_more_than_memory() -> None:
    pod = view(full("c", "1Gi"))
    linux = LinuxResources(2, memory_limit_bytes=GiB)
    for swap, together in ((GiB, GiB), (0, 0)):
        told = tuned(linux, pod, pod.spec.containers[0], Ground(CAPACITY, swap=swap, cgroup_version=1))
        assert (told.memory_swap_limit_bytes, told.memory_swap_max) == (together, "")


def test_of_huge_pages_it_may_have_what_it_or_its_pod_asks_for() -> None:
    level = {"requests": {"cpu": "1"}, "limits": {"hugepages-2Mi": "8Mi", "hugepages-1Gi": "1Gi"}}
    pod = view(a_container("c", limits={"hugepages-2Mi": "4Mi"}), a_container("d"), resources=level)
    told = [tuned(LinuxResources(2), pod, container, LIMITED) for container in pod.spec.containers]
    assert [(r.hugepages_1gb_bytes, r.hugepages_2mb_bytes) for r in told] == [(GiB, 4 * MiB), (GiB, 8 * MiB)]
    alone = view(a_container("c"))
    none = tuned(LinuxResources(2), alone, alone.spec.containers[0], LIMITED)
    assert (none.hugepages_1gb_bytes, none.hugepages_2mb_bytes) == (0, 0)


def test_there_is_no_share_of_no_memory() -> None:
    assert swap_max(GiB, Ground(0, swap=GiB, limited_swap=True)) == 0


# ---------------------------------------------------------------- a node


def sent(world: World, method: str, kind: Any) -> list[Any]:
    return [decode_value(body, kind) for name, body in world.calls if name == method]


def running(world: World, pod: dict[str, Any]) -> World:
    world.api.create("pods", pod)
    return world.until(lambda: world.status("a")["phase"] == "Running").run(0.5)


def test_creation_and_each_update_tell_it() -> None:
    swap = {"failSwapOn": False, "memorySwap": {"swapBehavior": "LimitedSwap"}}
    policy = [{"resourceName": "memory", "restartPolicy": "NotRequired"}]
    world = World(memory="4Gi", kubelet=swap, machine={"swap": "4Gi"})
    running(world, a_pod("a", a_container(cpu="1", memory="1Gi", limits={"memory": "2Gi"}, resizePolicy=policy)))
    made = sent(world, "CreateContainer", CreateContainer)[0].resources
    assert (made.oom_score_adj, made.memory_swap_max) == (750, str(GiB))
    world.api.resize("a", requests={"cpu": "2"}, limits={"memory": "3Gi"})
    world.until(lambda: world.is_settled("a"))
    told = [update.resources for update in sent(world, "UpdateContainerResources", UpdateContainerResources)]
    assert [(r.memory_limit_bytes >> 30, r.cpu_shares) for r in told] == [(3, 1024), (3, 2048)]
    assert {(r.oom_score_adj, r.memory_swap_max) for r in told} == {(750, str(GiB))}


def test_in_the_memory_step_the_new_request_counts() -> None:
    world = running(World(memory="4Gi"), a_pod("a", a_container(memory="1Gi", limits={"memory": "3Gi"})))
    world.api.resize("a", requests={"memory": "2Gi"})
    world.until(lambda: world.is_settled("a"))
    told = sent(world, "UpdateContainerResources", UpdateContainerResources)
    assert [update.resources.oom_score_adj for update in told] == [500]
    assert {update.resources.memory_swap_max for update in told} == {"0"}


@pytest.mark.parametrize("profile", ["lab", "v1.37"])
def test_where_cpu_limits_are_not_enforced_no_container_and_no_pod_has_a_quota(profile: str) -> None:
    world = running(World(profile=profile, kubelet={"cpuCFSQuota": False}), a_pod("a", full("c", "1Gi")))
    world.api.resize("a", requests={"cpu": "2"}, limits={"cpu": "2"})
    world.until(lambda: world.is_settled("a"))
    world.run(30)
    made = [call.resources for call in sent(world, "CreateContainer", CreateContainer)]
    told = [call.resources for call in sent(world, "UpdateContainerResources", UpdateContainerResources)]
    assert [(r.cpu_shares, r.cpu_quota, r.cpu_period) for r in [*made, *told]] == [(1024, 0, 0), (2048, 0, 0)]
    assert [call.resources.cpu_shares for call in sent(world, "SetPodCgroup", SetPodCgroup)] == [2048]
    groups = msgspec.json.decode(world.proxy("cgroups")["body"])
    assert {group["cpuQuota"] for group in groups} == {None} and len(groups) == 2
    shown = world.container("a")
    assert shown["resources"]["requests"]["cpu"] == "2"
    assert shown["resources"]["limits"]["cpu"] == "1", "what the runtime does not tell stays as it was told before (RC-145)"
