"""The passes over a kubelet's pending resizes: when there is one, in what order it goes, and what a grant leaves behind."""

from typing import Any

from kubelet_world import World, a_container, a_pod

RETRY = {"elbowroom": {"periodicResizeRetry": "3s"}}


def a_full_node(**how: Any) -> World:
    """One pod of 1 CPU, one of 3, on a node of 4; and nobody waits."""
    world = World(**how)
    for name, cpu in (("a", "1"), ("b", "3")):
        world.api.create("pods", a_pod(name, a_container(cpu=cpu)))
    world.until(lambda: all(world.status(name)["phase"] == "Running" for name in "ab")).run(0.5)
    world.notes.clear()
    return world


def judged(world: World) -> list[Any]:
    return [facts for kind, facts in world.notes if kind == "kl.judge"]


def test_a_grant_is_durable_before_it_is_told_and_tells_its_cause() -> None:
    world = a_full_node()
    world.api.resize("a", requests={"cpu": "500m"})
    world.run(1)
    told = [kind if kind != "step" else facts["label"] for kind, facts in world.notes]
    (granted,) = [facts for kind, facts in world.notes if kind == "kl.alloc"]
    assert granted["cause"] == "pod_updated" and granted["vector"]["cpu"] == 500
    assert told.index("K3 judged") < told.index("ckpt.dirsync") < told.index("K8 memory state") < told.index("kl.alloc")


def test_each_pass_has_the_next_number_and_is_in_order_only_after_it_was_put_so() -> None:
    world = a_full_node(kubelet=RETRY)
    world.api.resize("a", requests={"cpu": "2"})
    world.run(0.5)
    world.api.resize("a", requests={"cpu": "2500m"})
    world.run(4)
    first, again, by_timer = judged(world)
    assert [each["cause"] for each in (first, again, by_timer)] == ["pod_updated", "pod_updated", "periodic_retry"]
    assert [each["pass"] - first["pass"] for each in (first, again, by_timer)] == [0, 1, 2]
    assert first["rank"] is not None, "it came new, and the queue was put in order"
    assert again["rank"] is None and by_timer["rank"] is None, "it was there already, and keeps its place"


def test_the_timer_counts_from_the_last_pass() -> None:
    world = a_full_node(kubelet=RETRY)
    world.run(2)
    world.api.resize("a", requests={"cpu": "2"})
    world.run(2.5)
    assert [each["cause"] for each in judged(world)] == ["pod_updated"]
    world.run(1)
    assert [each["cause"] for each in judged(world)] == ["pod_updated", "periodic_retry"]
    assert [each["rank"] is not None for each in judged(world)] == [True, False], "nobody put the queue in order for the timer"


def test_a_wish_that_was_taken_back_is_not_queued_again() -> None:
    world = a_full_node()
    world.api.resize("a", requests={"cpu": "2"})
    world.run(0.5)
    world.notes.clear()
    world.api.resize("a", requests={"cpu": "1"})
    world.run(1)
    labels = [facts["label"] for kind, facts in world.notes if kind == "step"]
    assert any(label.startswith("K1 ") for label in labels), "it was seen"
    assert not any(label.startswith(("K2 ", "K3 ")) for label in labels)
    assert world.condition("a", "PodResizePending") is None
