"""What the cache counts, and what a snapshot takes over."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cluster import INFEASIBLE, START, deferred, node, pod
from scheduler_worlds import info_of, node_of

from elbowroom.api.objects import Pod
from elbowroom.machine import Instant, seconds
from elbowroom.scheduler.cache import Cache, Snapshot

NODES, PODS = ("n1", "n2", "n3"), ("a", "b", "c", "d")


def pod_of(document: dict[str, Any]) -> Pod:
    return msgspec.convert(document, Pod)


changes = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(NODES), st.integers(1, 4)),
        st.tuples(st.just("remove node"), st.sampled_from(NODES)),
        st.tuples(st.just("pod"), st.sampled_from(PODS), st.sampled_from(NODES), st.integers(1, 5)),
        st.tuples(st.just("remove pod"), st.sampled_from(PODS)),
        st.tuples(st.just("assume"), st.sampled_from(PODS), st.sampled_from(NODES), st.integers(1, 5)),
        st.tuples(st.just("forget"), st.sampled_from(PODS)),
        st.tuples(st.just("refresh")),
    ),
    max_size=40,
)


def apply(cache: Cache, change: tuple[Any, ...]) -> None:
    match change:
        case ("node", name, cpu):
            cache.set_node(node_of(node(name, cpu=str(cpu))))
        case ("remove node", name):
            cache.remove_node(name)
        case ("pod", name, host, cpu):
            cache.set_pod(pod_of(pod(name, node=host, cpu=str(cpu))))
        case ("remove pod", name):
            cache.remove_pod(f"uid-{name}")
        case ("assume", name, host, cpu) if cache.pod(f"uid-{name}") is None:
            cache.assume(info_of(pod(name, cpu=str(cpu))).at(host))
        case ("forget", name):
            cache.forget(f"uid-{name}")


def seen(snapshot: Snapshot) -> dict[str, Any]:
    return {
        each.name: (each.allocatable, {n: v for n, v in each.requested.items() if v}, sorted(each.pods)) for each in snapshot.nodes
    }


@settings(max_examples=300, deadline=None)
@given(changes)
def test_a_refreshed_snapshot_is_that_of_a_fresh_start(history: list[tuple[Any, ...]]) -> None:
    cache, kept = Cache(), Snapshot()
    for change in history:
        if change == ("refresh",):
            kept.refresh(cache)
        else:
            apply(cache, change)
    kept.refresh(cache)
    fresh = Snapshot()
    fresh.refresh(cache)
    assert seen(kept) == seen(fresh)
    for each in kept.nodes:
        total: dict[str, int] = {}
        for info in each.pods.values():
            for name, amount in info.requests.items():
                total[name] = total.get(name, 0) + amount
        assert {n: v for n, v in each.requested.items() if v} == total


def test_a_refresh_copies_only_the_nodes_that_changed() -> None:
    cache, snapshot = Cache(), Snapshot()
    for name in NODES:
        cache.set_node(node_of(node(name)))
    snapshot.refresh(cache)
    before = list(snapshot.nodes)
    cache.set_pod(pod_of(pod("a", node="n2", cpu="1")))
    snapshot.refresh(cache)
    assert [old is new for old, new in zip(before, snapshot.nodes, strict=True)] == [True, False, True]


def test_an_assumption_is_confirmed_forgotten_or_expires() -> None:
    cache = Cache()
    for name in PODS[:3]:
        cache.assume(info_of(pod(name, cpu="1")).at("n1"))
        cache.expect_by(f"uid-{name}", Instant(START + seconds(5)))
    cache.set_pod(pod_of(pod("a", node="n2", cpu="1")))
    assert cache.forget("uid-b") and not cache.forget("uid-a")
    assert [info.key for info in cache.expired(Instant(START + seconds(5)))] == ["default/c"]
    assert len(cache) == 1 and cache.assumed_count == 0 and cache.expiry() is None


def test_pods_count_on_a_node_that_is_not_there_yet_or_no_longer() -> None:
    cache, snapshot = Cache(), Snapshot()
    cache.set_pod(pod_of(pod("early", node="n1", cpu="1")))
    snapshot.refresh(cache)
    assert snapshot.nodes == []
    cache.set_node(node_of(node("n1")))
    snapshot.refresh(cache)
    assert snapshot.nodes[0].requested["cpu"] == 1000
    cache.remove_node("n1")
    cache.set_node(node_of(node("n1")))
    snapshot.refresh(cache)
    assert snapshot.nodes[0].requested["cpu"] == 1000


def test_what_pods_count_with() -> None:
    table = [
        (pod("a", node="n", cpu="100m"), 100),
        (deferred("a", "n", "300m", "100m"), 300),
        (pod("a", node="n", cpu="100m", allocated="300m"), 300),
        (pod("a", node="n", cpu="500m", allocated="100m", conditions=[INFEASIBLE]), 100),
    ]
    for document, cpu in table:
        assert info_of(document).requests["cpu"] == cpu
    assert info_of(pod("a")).non_zero == {"cpu": 100, "memory": 200 * 1024 * 1024}
