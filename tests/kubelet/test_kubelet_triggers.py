"""What wakes a resize that waits, what does not, and what a grant sends in which order."""

from typing import Any

import pytest
from kubelet_world import API, KUBELET, NODE, RUNTIME, World, a_container, a_pod

from elbowroom.api.gates import RESIZE_PREEMPTION
from elbowroom.api.resources import Resources
from elbowroom.kubelet.pending import PendingQueue, Rank
from elbowroom.kubelet.resizes import shrinks
from elbowroom.machine import Instant
from elbowroom.wire import ApiRequest, Call, Message, decode_value


def running(world: World, *pods: dict[str, Any]) -> World:
    for pod in pods:
        world.api.create("pods", pod)
    names = [pod["metadata"]["name"] for pod in pods]
    return world.until(lambda: all(world.status(name)["phase"] == "Running" for name in names)).run(0.5)


def a_waiting_pod(**how: Any) -> World:
    """``a`` waits for a CPU that ``b`` has; nothing has been judged since."""
    world = running(World(**how), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="3")))
    world.api.resize("a", requests={"cpu": "2"})
    world.until(lambda: world.condition("a", "PodResizePending") is not None).run(0.5)
    world.notes.clear()
    return world


def judged(world: World) -> list[tuple[str, str, str]]:
    return [(facts["pod"].removeprefix("ns/"), facts["cause"], facts["verdict"]) for facts in world.noted("kl.judge")]


# ---------------------------------------------------------------- a grant


def test_a_grant_tells_its_event_before_the_runtime() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")))
    sent: list[str] = []
    deliver = world.post

    def post(source: str, target: str, message: Message) -> None:
        if source == KUBELET and isinstance(message, Call):
            if target == API and message.method == "api":
                request = decode_value(message.body, ApiRequest)
                sent.append(f"{request.verb} {request.resource}")
            elif target == RUNTIME:
                sent.append(message.method)
        deliver(source, target, message)

    world.post = post  # type: ignore[method-assign]
    world.api.resize("a", requests={"cpu": "2"})
    world.until(lambda: world.is_settled("a"))
    assert sent[:3] == ["create events", "patch pods", "SetPodCgroup"]


def test_a_grant_amid_a_runtime_call_is_told_before_the_call_has_ended() -> None:
    """The call belongs to the resize before; what was granted meanwhile is the API server's to know at once."""
    world = running(
        World(), a_pod("a", a_container(cpu="1"), workload={"c": {"resizeSeconds": 3}}), a_pod("b", a_container(cpu="2500m"))
    )
    world.api.resize("a", requests={"cpu": "1500m"})
    world.run(0.2)
    world.api.resize("a", requests={"cpu": "3"})
    world.until(lambda: world.condition("a", "PodResizePending") is not None).run(0.2)
    world.api.delete("b", grace=0)
    world.until(lambda: world.container("a").get("allocatedResources", {}).get("cpu") == "3", within=0.1)
    assert world.condition("a", "PodResizePending") is None
    told = world.condition("a", "PodResizeInProgress")
    assert told is not None and told["observedGeneration"] == 3
    assert world.container("a")["resources"]["requests"]["cpu"] == "1", "the runtime has not even done the first"


def test_a_resize_needs_no_place_beside_its_own_on_a_node_that_is_full_of_pods() -> None:
    world = World()
    world.api.change("nodes", NODE, lambda node: node["status"]["allocatable"].update(pods="2"))
    running(world, a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="1")))
    world.api.resize("a", requests={"cpu": "2"})
    world.run(1)
    assert judged(world) == [("a", "pod_updated", "Granted")]


def test_what_a_pod_as_a_whole_was_given_is_durable_when_the_resize_is_over() -> None:
    level = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    world = running(World(), a_pod("a", a_container(cpu="500m", memory="256Mi"), resources=level))
    world.api.resize("a", level={"requests": {"cpu": "1500m"}})
    world.until(lambda: world.is_settled("a"))
    (entry,) = world.disk("actuated_pods_state").values()
    assert entry["PodLevelResources"]["requests"]["cpu"] == "1500m"
    assert "K15" in world.steps()


# ---------------------------------------------------------------- who is not judged any more


def test_a_waiting_pod_that_somebody_else_calls_ended_is_judged_no_more() -> None:
    world = a_waiting_pod()
    world.api.change("pods", "ns/a", lambda pod: pod["status"].update(phase="Failed"))
    world.run(0.5)
    world.api.delete("b", grace=0)
    world.run(2)
    assert judged(world) == []


# ---------------------------------------------------------------- the node


def test_a_node_that_changes_for_the_worse_or_not_at_all_wakes_nobody() -> None:
    world = a_waiting_pod()
    world.api.change("nodes", NODE, lambda node: node["status"]["allocatable"].update(cpu="3500m"))
    world.run(0.5)
    world.api.change("nodes", NODE, lambda node: node["metadata"]["annotations"].update(note="x"))
    world.run(0.5)
    assert judged(world) == []


def test_a_larger_node_wakes_who_waits_and_who_would_fit_it_now_and_nobody_else() -> None:
    world = running(
        World(), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="2")), a_pod("c", a_container(cpu="100m"))
    )
    world.api.resize("a", requests={"cpu": "6"})
    world.api.resize("b", requests={"cpu": "5"})
    world.run(1)
    world.notes.clear()
    world.api.change("nodes", NODE, lambda node: node["status"]["allocatable"].update(cpu="5"))
    world.run(1)
    assert judged(world) == [("b", "node_updated", "Deferred")]
    world.api.change("nodes", NODE, lambda node: node["status"]["allocatable"].update(memory="9Gi"))
    world.run(1)
    assert judged(world)[1:] == [("b", "node_updated", "Deferred")]


@pytest.mark.parametrize(
    "better",
    [
        lambda node: node["metadata"]["labels"].update(zone="1"),
        lambda node: node["spec"].pop("taints"),
    ],
    ids=["a label", "a taint that is gone"],
)
def test_labels_and_taints_wake_who_waits(better: Any) -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")))

    def worse(node: dict[str, Any]) -> None:
        node["spec"]["taints"] = [{"key": "k", "effect": "NoExecute"}]

    world.api.change("nodes", NODE, worse)
    world.run(0.5)
    world.api.resize("a", requests={"cpu": "2"})
    world.run(0.5)
    assert (world.condition("a", "PodResizePending") or {}).get("reason") == "Deferred"
    world.notes.clear()
    world.api.change("nodes", NODE, better)
    world.run(0.5)
    found = judged(world)
    assert [(pod, cause) for pod, cause, _ in found] == [("a", "node_updated")]


def test_a_machine_that_recovers_wakes_who_waits() -> None:
    world = a_waiting_pod()

    def machine(state: str) -> Any:
        return lambda node: node["metadata"]["annotations"].update({"elbowroom.dev/machine-state": state})

    world.api.change("nodes", NODE, machine('{"pressure":["MemoryPressure"]}'))
    world.run(0.5)
    assert judged(world) == [], "it got worse"
    world.api.change("nodes", NODE, machine("{}"))
    world.run(0.5)
    assert judged(world) == [("a", "node_updated", "Deferred")]


# ---------------------------------------------------------------- whose end is waited for

CRITICAL = 2_000_001_000
STUBBORN = {"c": {"stopSeconds": None}}
EVICTS = {RESIZE_PREEMPTION: False}


def test_a_critical_resize_goes_on_when_its_victims_containers_end_though_nobody_can_be_told() -> None:
    """It has no condition to show while it waits; who has one waits until the API server knows of the end."""
    world = running(
        World(gates=EVICTS),
        a_pod("crit", a_container(cpu="1"), priority=CRITICAL),
        a_pod("a", a_container(cpu="100m", memory="1Gi")),
        a_pod("low", a_container(cpu="2900m", memory="5Gi"), grace=3, workload=STUBBORN),
    )
    world.api.resize("a", requests={"memory": "4Gi"})
    world.until(lambda: world.condition("a", "PodResizePending") is not None)
    world.api.resize("crit", requests={"cpu": "2"})
    world.run(1)
    assert judged(world)[-2:] == [("crit", "pod_updated", "Evict"), ("a", "pod_updated", "Deferred")]
    world.notes.clear()
    world.api.down = True
    world.run(5)
    assert judged(world)[0] == ("crit", "pod_terminated", "Granted")


def test_a_resize_that_shows_that_it_waits_goes_on_when_the_end_of_another_is_known() -> None:
    ends = a_pod("b", a_container(cpu="3"), restartPolicy="Never", workload={"c": {"exitAfterSeconds": 5}})
    world = running(World(), a_pod("a", a_container(cpu="1")), ends)
    world.api.resize("a", requests={"cpu": "2"})
    world.until(lambda: world.condition("a", "PodResizePending") is not None)
    world.notes.clear()
    world.api.down = True
    world.run(8)
    assert world.noted("rt.exit") and judged(world) == [], "it has ended, and that is not known yet"
    world.api.down = False
    world.reconnect(API)
    world.until(lambda: world.is_settled("a"), within=30)
    assert judged(world) == [("a", "pod_terminated", "Granted")]


def test_a_critical_pod_comes_in_when_its_victim_is_deleted_at_once() -> None:
    world = running(World(), a_pod("low", a_container(cpu="3"), grace=30, workload=STUBBORN))
    world.api.create("pods", a_pod("crit", a_container(cpu="2"), priority=CRITICAL))
    world.run(1)
    assert world.status("crit")["phase"] == "Pending"
    world.api.delete("low", grace=0)
    world.until(lambda: world.status("crit")["phase"] == "Running", within=5)


# ---------------------------------------------------------------- who is deleted


def test_a_pod_that_is_deleted_while_it_waits_is_waited_for_no_longer() -> None:
    world = a_waiting_pod()
    world.api.delete("a", grace=0)
    world.run(1)
    assert [facts["phase"] for facts in world.noted("pod.end")] == ["Running"]
    world.api.delete("b", grace=0)
    world.run(1)
    assert judged(world) == []
    assert world.metric("kubelet_pod_deferred_resize_duration_seconds_count", resolution="terminated") == 1


def test_a_critical_pod_that_is_deleted_before_its_victims_have_ended_is_not_let_in() -> None:
    world = running(World(), a_pod("low", a_container(cpu="3"), grace=3, workload=STUBBORN))
    world.notes.clear()
    world.api.create("pods", a_pod("crit", a_container(cpu="2"), priority=CRITICAL))
    world.run(1)
    world.api.delete("crit", grace=0)
    world.run(10)
    assert world.status("low")["reason"] == "Preempting", "its victim had been told"
    assert world.noted("kl.alloc") == []


def test_nothing_is_known_of_the_status_of_a_pod_that_is_deleted() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="1")))
    known: dict[str, Any] = world._machines[KUBELET].statuses._publisher._known  # type: ignore[attr-defined]
    uids = {pod["metadata"]["uid"] for pod in world.api.objects["pods"].values()}
    assert known.keys() == uids and len(uids) == 2
    world.api.delete("a", grace=0)
    world.run(1)
    assert len(known) == 1, "nobody else lets go of it, and uids do not come again"


def test_the_files_forget_a_pod_that_is_deleted() -> None:
    world = running(World(), a_pod("a", a_container(cpu="1")), a_pod("b", a_container(cpu="1")))
    files = ("allocated_pods_state", "actuated_pods_state")
    assert [len(world.disk(file)) for file in files] == [2, 2]
    world.api.delete("a", grace=0)
    world.run(1)
    world.api.resize("b", requests={"cpu": "2"})
    world.until(lambda: world.is_settled("b"))
    assert [len(world.disk(file)) for file in files] == [1, 1]


# ---------------------------------------------------------------- shrinking


@pytest.mark.parametrize(
    ("old", "new", "less"),
    [
        ({"cpu": 1}, {}, True),
        ({}, {"cpu": 1}, False),
        ({"memory": 2}, {"memory": 1}, True),
        ({"cpu": 1, "memory": 1}, {"cpu": 2, "memory": 0}, True),
        ({"cpu": 1, "memory": 1}, {"cpu": 1, "memory": 1}, False),
        ({"example.com/x": 2}, {"example.com/x": 1}, False),
        ({}, {}, False),
    ],
)
def test_a_pod_shrinks_if_it_counts_for_less_cpu_or_memory(old: Resources, new: Resources, less: bool) -> None:
    assert shrinks(old, new) is less


# ---------------------------------------------------------------- the queue


def rank(increases: bool = True, priority: int = 0, guaranteed: bool = False, since: int | None = None) -> Rank:
    return Rank(increases, priority, guaranteed, None if since is None else Instant(since))


IN_ORDER = [
    rank(increases=False),
    rank(priority=9, since=5),
    rank(priority=1, guaranteed=True),
    rank(priority=1, since=0),
    rank(priority=1, since=3),
    rank(priority=1, since=4),
    rank(priority=1),
    rank(priority=-1, guaranteed=True, since=1),
]


def test_who_does_not_grow_comes_first_then_priority_then_class_then_the_longest_wait() -> None:
    keys = [each.key for each in IN_ORDER]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    assert rank(increases=False, priority=5, since=1).key == rank(increases=False).key == (False,), "nothing hinders them"
    assert rank(priority=1).key == (True, -1, True, True, 0)


def test_the_queue_is_put_in_order_for_who_is_new_and_equals_stay_as_they_came() -> None:
    queue, ranks = PendingQueue(), {"a": rank(priority=1), "b": rank(priority=2), "c": rank(priority=2), "d": rank(priority=3)}
    for uid in ("a", "c", "b"):
        queue.push(uid, ranks.get)
    assert list(queue) == ["c", "b", "a"]
    ranks["a"] = rank(priority=9)
    queue.push("a", ranks.get)
    assert list(queue) == ["c", "b", "a"], "it waits already, and stays where it is"
    queue.push("d", ranks.get)
    assert list(queue) == ["a", "d", "c", "b"]
    del ranks["d"]
    queue.push_all(["e", "f"], lambda uid: ranks.get(uid, rank() if uid == "e" else None))
    assert list(queue) == ["a", "c", "b", "e"], "who has vanished is not in it any more"
    queue.remove("c")
    queue.remove("nobody")
    assert list(queue) == ["a", "b", "e"] and len(queue) == 3 and "b" in queue and "c" not in queue
    queue.keep(["e", "a", "nobody"])
    assert list(queue) == ["a", "e"], "in its order"
