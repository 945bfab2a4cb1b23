"""Watches: the nine promises, credit, bookmarks, the index, the end."""

import random
from typing import Any

import msgspec
import pytest
from apiserver_world import Stream, World, a_node, a_pod
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.apiserver.store import Store
from elbowroom.cache import Reflector
from elbowroom.machine import PeerConnected, Received, Send, seconds
from elbowroom.wire import Call, Code, StreamBookmark, StreamCancel, StreamCredit, StreamEvent, encode_value

STATE = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


def config(world: World, name: str, value: int = 0, **labels: str) -> None:
    world.create("configmaps", {"metadata": {"name": name, "labels": labels}, "data": {"v": str(value)}}, "default")


def relabel(world: World, name: str, **labels: Any) -> None:
    world.patch("configmaps", name, {"metadata": {"labels": labels}}, namespace="default")


def grant(world: World, stream: Stream, amount: int) -> None:
    world.step(Received(stream.peer, StreamCredit(stream.id, amount)))


def test_a_watch_from_the_state_tells_all_that_stands_and_then_that_it_has() -> None:
    world = World()
    config(world, "b")
    config(world, "a")
    watch = world.watch("configmaps", **STATE)
    assert watch.told == [("ADDED", "a"), ("ADDED", "b")]
    mark = watch.messages[-1]
    assert isinstance(mark, StreamBookmark) and (mark.initial_end, mark.revision, mark.sequence) == (True, 8, 2)
    config(world, "c")
    assert (watch.events[-1].sequence, watch.events[-1].revision, watch.events[-1].previous) == (3, 9, 8)


def test_a_watch_from_a_revision_tells_each_later_change_once_and_in_order() -> None:
    world = World()
    config(world, "a")
    watch = world.watch("configmaps", resourceVersion="6")
    world.patch("configmaps", "a", {"data": {"v": "1"}}, namespace="default")
    world.create("namespaces", {"metadata": {"name": "other"}})
    world.delete("configmaps", "a", "default")
    assert watch.told == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [(event.revision, event.previous, event.sequence) for event in watch.events] == [(7, 6, 1), (8, 7, 2), (10, 8, 3)]
    last = msgspec.json.decode(watch.events[-1].object)
    assert last["metadata"]["resourceVersion"] == "10" and last["data"] == {"v": "1"}


@given(
    st.lists(st.sampled_from(["n1 pod", "n2 pod", "free pod", "n1 gone", "n1 touched", "n2 touched"]), max_size=12), st.booleans()
)
@settings(max_examples=60, deadline=None)
def test_a_kubelet_that_opens_its_streams_anew_hears_what_it_missed_and_only_that(happened: list[str], restarted: bool) -> None:
    world = World()
    for node in ("n1", "n2"):
        world.create("nodes", a_node(node))
    world.create("pods", a_pod("standing", node="n1", grace=0), "default")
    since = world.machine._store.revision  # type: ignore[attr-defined]
    if restarted:
        world = World(disk=world.disk)
        since = world.machine._store.revision  # type: ignore[attr-defined]
    readers = {"pods": "spec.nodeName=n1", "nodes": "metadata.name=n1"}
    there = {
        resource: world.watch(resource, fieldSelector=fields, resourceVersion=str(since)) for resource, fields in readers.items()
    }
    for number, what in enumerate(happened):
        match what.split():
            case ["n1", "gone"]:
                world.create("pods", a_pod(f"gone-{number}", node="n1", grace=0), "default")
                world.delete("pods", f"gone-{number}", "default")
            case [node, "touched"]:
                world.patch("nodes", node, {"metadata": {"labels": {"touched": str(number)}}})
            case [node, "pod"]:
                world.create("pods", a_pod(f"p{number}", node="" if node == "free" else node), "default")
    back = {
        resource: world.watch(resource, peer="kubelet/n1", fieldSelector=fields, resourceVersion=str(since))
        for resource, fields in readers.items()
    }
    world.create("pods", a_pod("later", node="n1"), "default")
    world.patch("nodes", "n1", {"metadata": {"labels": {"later": "yes"}}})
    for resource in readers:
        heard, missed = there[resource], back[resource]
        assert missed.told == heard.told and missed.told
        assert [event.revision for event in missed.events] == [event.revision for event in heard.events]


def test_a_kubelet_that_missed_little_is_served_without_a_look_at_what_happened_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.create("nodes", a_node("n1"))
    since = str(world.machine._store.revision)  # type: ignore[attr-defined]
    for number in range(5):
        config(world, f"c{number}")
    world.patch("nodes", "n1", {"metadata": {"labels": {"a": "b"}}})
    monkeypatch.setattr(Store, "changes", lambda *_: pytest.fail("the log was gone through"))
    for resource, fields in (("pods", "spec.nodeName=n1"), ("nodes", "metadata.name=n1")):
        watch = world.watch(resource, peer="kubelet/n1", fieldSelector=fields, resourceVersion=since, allowWatchBookmarks="true")
        assert watch.told == ([] if resource == "pods" else [("MODIFIED", "n1")])
        world.wait(5.3)
        assert isinstance(watch.messages[-1], StreamBookmark)


def test_without_a_revision_a_watch_begins_with_the_state_but_no_mark() -> None:
    world = World()
    config(world, "a")
    watch = world.watch("configmaps", peer="http/9")
    assert watch.told == [("ADDED", "a")] and len(watch.messages) == 1


def test_an_object_that_comes_into_sight_is_added_and_one_that_leaves_is_deleted() -> None:
    world = World()
    config(world, "a", colour="red")
    watch = world.watch("configmaps", labelSelector="colour=red", resourceVersion="7")
    relabel(world, "a", colour="blue")
    relabel(world, "a", other="x")
    relabel(world, "a", colour="red")
    relabel(world, "a", other="y")
    world.delete("configmaps", "a", "default")
    assert [change for change, _ in watch.told] == ["DELETED", "ADDED", "MODIFIED", "DELETED"]
    left = msgspec.json.decode(watch.events[0].object)
    assert left["metadata"]["labels"] == {"colour": "red"} and left["metadata"]["resourceVersion"] == "8"


def test_a_kubelet_hears_of_its_own_pods_alone() -> None:
    world = World()
    world.create("nodes", a_node())
    one = world.watch("pods", peer="kubelet/n1", fieldSelector="spec.nodeName=n1", **STATE)
    two = world.watch("pods", peer="kubelet/n2", fieldSelector="spec.nodeName=n2", **STATE)
    every = world.watch("pods", peer="scheduler", **STATE)
    world.create("pods", a_pod("a", node="n1"), "default")
    world.create("pods", a_pod("b"), "default")
    assert (one.told, two.told, every.told) == ([("ADDED", "a")], [], [("ADDED", "a"), ("ADDED", "b")])
    binding = {"metadata": {"name": "b"}, "target": {"name": "n2"}}
    from elbowroom.rpc import requests

    world.ask(requests.create("pods", binding, namespace="default", name="b", subresource="binding"))
    assert (two.told, every.told[-1]) == ([("ADDED", "b")], ("MODIFIED", "b"))


def test_a_change_looks_at_the_watches_it_concerns_and_no_other() -> None:
    world = World()
    for number in range(50):
        world.watch("nodes", peer=f"kubelet/n{number}", fieldSelector=f"metadata.name=n{number}", **STATE)
    world.create("nodes", a_node("n7"))
    watches = world.machine._watches  # type: ignore[attr-defined]
    change = next(iter(world.machine._store.changes(6)))  # type: ignore[attr-defined]
    assert [watch.source for watch in watches._concerned(watches._keys(change))] == ["kubelet/n7"]


# ---------------------------------------------------------------- credit


def test_a_reader_that_grants_no_room_is_sent_nothing_and_later_misses_nothing() -> None:
    world = World()
    watch = world.watch("configmaps", resourceVersion="6", credit=2)
    other = world.watch("configmaps", peer="client/other", resourceVersion="6")
    for number in range(6):
        config(world, f"c{number}")
    assert [name for _, name in watch.told] == ["c0", "c1"] and len(other.told) == 6
    grant(world, watch, 3)
    assert [name for _, name in watch.told] == ["c0", "c1", "c2", "c3", "c4"]
    grant(world, watch, 5)
    config(world, "c6")
    assert [name for _, name in watch.told] == [f"c{number}" for number in range(7)]
    assert [event.previous for event in watch.events] == [6, 7, 8, 9, 10, 11, 12]


def test_the_initial_state_waits_for_room_too() -> None:
    world = World()
    for number in range(5):
        config(world, f"c{number}")
    watch = world.watch("configmaps", credit=3, **STATE)
    config(world, "c9")
    world.delete("configmaps", "c4", "default")
    assert len(watch.messages) == 3
    grant(world, watch, 100)
    assert [(m.change, m.revision) if isinstance(m, StreamEvent) else "end" for m in watch.messages[3:]] == [
        ("ADDED", 10),
        ("ADDED", 11),
        "end",
        ("ADDED", 12),
        ("DELETED", 13),
    ]


def test_exactly_enough_room_for_the_state_is_enough_for_its_end() -> None:
    world = World()
    config(world, "a")
    watch = world.watch("configmaps", credit=1, **STATE)
    assert isinstance(watch.messages[-1], StreamBookmark)


def test_a_reader_that_compaction_overtakes_is_told_to_list_again() -> None:
    world = World(compaction_seconds=10)
    watch = world.watch("configmaps", resourceVersion="6", credit=1)
    for number in range(4):
        config(world, f"c{number}")
    world.wait(25)
    assert watch.end is not None and watch.end.code is Code.OUT_OF_RANGE
    assert msgspec.json.decode(watch.end.body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "too old resource version: 7 (10)",
        "reason": "Expired",
        "code": 410,
    }
    told = len(watch.messages)
    grant(world, watch, 10)
    config(world, "c9")
    assert len(watch.messages) == told


def test_a_revision_below_the_floor_is_410_and_one_above_it_is_resumed() -> None:
    world = World(compaction_seconds=10)
    for number in range(4):
        config(world, f"c{number}")
    world.wait(25)
    config(world, "c4")
    old = world.watch("configmaps", resourceVersion="9")
    assert old.end is not None and old.end.code is Code.OUT_OF_RANGE and "too old resource version: 9 (10)" in old.end.message
    assert world.watch("configmaps", resourceVersion="10").told == [("ADDED", "c4")]


def test_after_a_restart_a_watch_resumes_where_it_was() -> None:
    world = World()
    config(world, "a", colour="red")
    relabel(world, "a", colour="blue")
    world.delete("configmaps", "a", "default")
    again = World(disk=world.disk)
    assert [change for change, _ in again.watch("configmaps", resourceVersion="6").told] == ["ADDED", "MODIFIED", "DELETED"]
    selected = again.watch("configmaps", labelSelector="colour=red", resourceVersion="6")
    assert [change for change, _ in selected.told] == ["ADDED", "DELETED"]


def test_on_the_bus_a_revision_of_the_future_means_another_store() -> None:
    watch = World().watch("configmaps", resourceVersion="99")
    assert watch.end is not None and watch.end.code is Code.OUT_OF_RANGE
    assert watch.end.message == "Timeout: Too large resource version: 99, current: 6"


def test_over_http_a_revision_of_the_future_is_waited_for() -> None:
    world = World()
    watch = world.watch("configmaps", peer="http/1", resourceVersion="7")
    config(world, "a")
    config(world, "b")
    assert watch.told == [("ADDED", "b")]


# ---------------------------------------------------------------- bookmarks and ends


def test_a_bookmark_follows_the_last_event_and_then_idleness() -> None:
    world = World()
    watch = world.watch("configmaps", resourceVersion="6")
    config(world, "a")
    world.create("namespaces", {"metadata": {"name": "n"}})
    world.wait(0.19)
    assert len(watch.messages) == 1
    world.wait(0.02)
    mark = watch.messages[-1]
    assert isinstance(mark, StreamBookmark) and (mark.revision, mark.sequence, mark.initial_end) == (8, 1, False)
    world.wait(4.9)
    assert len(watch.messages) == 2
    world.wait(10)
    assert len(watch.messages) == 4
    config(world, "b")
    assert watch.events[-1].previous == 8


def test_idle_watches_are_told_so_together() -> None:
    world = World()
    watches = []
    for number in range(10):
        world.wait(0.007)
        watches.append(world.watch("configmaps", peer=f"client/{number}", resourceVersion="6"))
    world.wait(4.87)
    told = set()
    for _ in range(300):
        world.wait(0.001)
        told.add(sum(len(watch.messages) for watch in watches))
    assert told == {0, 10}, "the loop and its peers wake once for all"


def test_http_clients_get_bookmarks_only_if_they_asked() -> None:
    world = World()
    asked = world.watch("configmaps", peer="http/1", resourceVersion="6", allowWatchBookmarks="true")
    silent = world.watch("configmaps", peer="http/2", resourceVersion="6")
    world.wait(6)
    assert (len(asked.messages), len(silent.messages)) == (1, 0)


def test_a_reader_that_is_owed_events_gets_no_bookmark() -> None:
    world = World()
    watch = world.watch("configmaps", resourceVersion="6", credit=0)
    config(world, "a")
    world.wait(20)
    assert watch.messages == []


def test_all_watches_share_one_timer_that_sleeps_while_nothing_is_due() -> None:
    world = World()
    for number in range(20):
        world.watch("configmaps", peer=f"client/{number}", resourceVersion="6")
    assert sorted(world.timers) == ["compaction", "watch/bookmarks"]
    world.effects.clear()
    world.wait(4.9)
    assert world.effects == []


def test_a_watch_with_a_time_limit_ends_after_a_last_bookmark() -> None:
    world = World()
    watch = world.watch("configmaps", peer="http/1", resourceVersion="6", timeoutSeconds="3", allowWatchBookmarks="true")
    world.wait(2.9)
    assert watch.messages == []
    world.wait(0.2)
    assert isinstance(watch.messages[-2], StreamBookmark) and watch.end is not None and watch.end.code is Code.OK
    config(world, "a")
    assert watch.told == []


def test_a_cancelled_watch_is_silent() -> None:
    world = World()
    watch = world.watch("configmaps", resourceVersion="6")
    world.step(Received(watch.peer, StreamCancel(watch.id)))
    config(world, "a")
    world.wait(20)
    assert watch.messages == []


def test_a_peer_that_comes_again_has_lost_its_streams() -> None:
    world = World()
    watch = world.watch("configmaps", peer="client/2", resourceVersion="6")
    world.step(PeerConnected("client/2"))
    config(world, "a")
    assert watch.messages == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"sendInitialEvents": "true"}, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        (
            {"resourceVersionMatch": "NotOlderThan"},
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        ({"fieldSelector": "spec.nope=1"}, "not a known field selector"),
        ({"resourceVersion": "x"}, "invalid resource version"),
    ],
)
def test_a_watch_that_cannot_be_ends_with_the_reason(query: dict[str, str], words: str) -> None:
    watch = World().watch("configmaps", **query)
    assert watch.end is not None and watch.end.code is Code.INVALID_ARGUMENT and words in watch.end.message


# ---------------------------------------------------------------- laws


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 20))
def test_any_watch_at_any_pace_is_the_logs_slice(seed: int) -> None:
    """Readers with random credit and selectors hear exactly what a reader with all the room in the world hears."""
    rng = random.Random(seed)
    world = World(seed=seed)
    selector = rng.choice(
        ({}, {"labelSelector": "colour=red"}, {"fieldSelector": "metadata.name=a"}, {"labelSelector": "colour!=red"})
    )
    swift = world.watch("configmaps", peer="client/swift", resourceVersion="6", credit=1 << 20, **selector)
    slow = world.watch("configmaps", peer="client/slow", resourceVersion="6", credit=rng.randint(0, 3), **selector)
    for step in range(rng.randint(5, 40)):
        name = rng.choice("abc")
        match rng.randint(0, 5):
            case 0:
                config(world, name, step, colour=rng.choice(("red", "blue")))
            case 1:
                world.delete("configmaps", name, "default")
            case 2:
                relabel(world, name, colour=rng.choice(("red", "blue", None)))
            case 3:
                world.patch("configmaps", name, {"data": {"v": str(step)}}, namespace="default")
            case 4:
                grant(world, slow, rng.randint(1, 4))
            case _:
                world.wait(rng.random())
    grant(world, slow, 1 << 20)
    late = world.watch("configmaps", peer="client/late", resourceVersion="6", credit=1 << 20, **selector)

    def told(stream: Stream) -> list[tuple[str, int, bytes]]:
        return [(event.change, event.revision, event.object) for event in stream.events]

    assert told(slow) == told(swift) == told(late)
    assert [event.sequence for event in slow.events] == list(range(1, len(slow.events) + 1))
    last = 6
    for message in slow.messages:
        if isinstance(message, StreamEvent):
            assert message.previous == last
        last = message.revision  # type: ignore[union-attr]


class _Named(msgspec.Struct):
    data: dict[str, str] = {}


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 20))
def test_a_reflector_ends_up_with_what_stands(seed: int) -> None:
    """The client that services use, over a connection that loses messages and an API server that restarts."""
    rng = random.Random(seed)
    world = World(seed=seed, compaction_seconds=30)
    reader: Reflector[_Named] = Reflector("configmaps", _Named)
    inbox: list[Any] = []

    def carry_out(effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, Send) and rng.random() > loss:
                world.step(Received("client/reader", effect.message))
            elif hasattr(effect, "at"):
                timers[effect.name] = effect.at

    def deliver() -> None:
        for send in [s for s in world.sent if s.target == "client/reader"]:
            if rng.random() > loss:
                inbox.append(Received("apiserver", send.message))
        world.sent.clear()
        while inbox:
            carry_out(reader.handle(world.now, inbox.pop(0))[0])
            for send in [s for s in world.sent if s.target == "client/reader"]:
                inbox.append(Received("apiserver", send.message))
            world.sent.clear()

    loss, timers = 0.2, dict[str, Any]()
    carry_out(reader.open(world.now))
    for step in range(30):
        deliver()
        name = rng.choice("abc")
        if rng.random() < 0.3:
            world.delete("configmaps", name, "default")
        elif rng.random() < 0.5:
            config(world, name, step)
        else:
            world.patch("configmaps", name, {"data": {"v": str(step)}}, namespace="default")
        world.wait(rng.random() * 5)
        for timer, at in list(timers.items()):
            if at is not None and at <= world.now:
                del timers[timer]
                from elbowroom.machine import TimerFired

                carry_out(reader.handle(world.now, TimerFired(timer))[0])
    loss = 0.0
    for _ in range(60):
        deliver()
        world.wait(1)
        for timer, at in list(timers.items()):
            if at is not None and at <= world.now:
                del timers[timer]
                carry_out(reader.handle(world.now, TimerFired(timer))[0])
    stands = {
        f"default/{item['metadata']['name']}": item.get("data", {}) for item in world.list("configmaps", "default").body["items"]
    }
    assert reader.synced and {key: view.data for key, view in reader.store.items()} == stands
    assert world.now - seconds(60) > 0


def test_too_many_watches_of_one_peer_are_refused() -> None:
    world = World()
    from elbowroom.wire import ApiRequest

    body = encode_value(ApiRequest("watch", "configmaps", query={"resourceVersion": "6"}))
    for number in range(1024):
        world.step(Received("client/greedy", Call(number, "watch", body, credit=1)))
    last = world.watch("configmaps", peer="client/greedy", resourceVersion="6")
    assert last.end is not None and "too many watches" in last.end.message
