"""The simulated world keeps what hosts promise, and its faults do what they say."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from elbowroom.machine import (
    Effect,
    Input,
    Instant,
    Note,
    PeerConnected,
    Persist,
    Received,
    Send,
    SetTimer,
    Step,
    TimerFired,
    seconds,
)
from elbowroom.sim import Disturbance, World
from elbowroom.sim.nemesis import KINDS, plan, unleash
from elbowroom.wire import Call, Code, Reply


class Server:
    """Counts, durably, and answers after the count is durable."""

    def __init__(self, config: Mapping[str, Any], rng: random.Random) -> None:
        self.count = 0
        self.skewed: list[Instant] = []

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        self.count = int(disk.get("count", b"0"))
        return [Note("server.start", {"count": self.count})]

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        match happened:
            case Received(source, Call(id)):
                self.count += 1
                labels = ("T1 written", "T2 synced", "T3 renamed", "T4 durable")
                return [
                    Step("A1 received"),
                    Persist("count", str(self.count).encode(), labels),
                    Note("server.counted", {"count": self.count}),
                    Send(source, Reply(id, body=str(self.count).encode())),
                ]
        return []


class Asker:
    """Asks every 10 ms, one question at a time, and notes what it hears."""

    def __init__(self, config: Mapping[str, Any], rng: random.Random) -> None:
        self.asked = 0
        self.heard: list[int] = []
        self.connected = 0

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        return [SetTimer("ask", now)]

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        match happened:
            case TimerFired("ask"):
                self.asked += 1
                return [Send("server", Call(self.asked, "count")), SetTimer("ask", Instant(now + seconds(0.01)))]
            case Received("server", Reply(id, Code.OK, body)):
                self.heard.append(int(body))
                return [Note("asker.heard", {"id": id, "count": int(body)})]
            case PeerConnected("server"):
                self.connected += 1
                return [Note("asker.connected")]
        return []


def a_world(seed: int = 1, die_before: int = 0) -> World:
    world = World(seed)
    world.die_before(die_before, restart_after=0.02)
    world.add("server", Server)
    world.add("asker", Asker, dials=["server"])
    return world


def test_two_runs_of_one_seed_have_the_same_history_and_another_seed_has_another() -> None:
    def digest(seed: int) -> str:
        world = a_world(seed)
        unleash(world, plan(seed, ["server", "asker"], [("asker", "server")], duration=5.0, count=20))
        world.run_for(6.0)
        world.close()
        return world.history_hash()

    assert digest(7) == digest(7)
    assert digest(7) != digest(8)


def test_the_hash_leaves_out_the_name_of_the_run() -> None:
    worlds = [World(1, run="one"), World(1, run="two")]
    for world in worlds:
        world.add("server", Server)
    assert worlds[0].history != worlds[1].history
    assert worlds[0].history_hash() == worlds[1].history_hash()


def test_frames_arrive_in_order_and_once() -> None:
    world = a_world()
    world.run_for(1.0)
    asker = world.machine("asker")
    assert asker.heard == list(range(1, len(asker.heard) + 1))
    assert len(asker.heard) > 90


def test_what_was_answered_survives_every_single_death() -> None:
    world = a_world()
    world.run_for(0.2)
    total = world.effects
    assert total > 60
    restarts = 0
    for number in range(1, total + 1):
        world = a_world(die_before=number)
        world.run_for(0.5)
        counts = [one["count"] for one in world.notes("asker.heard")]
        assert counts == sorted(set(counts)), f"death before effect {number} lost an answered count"
        assert counts, "somebody was answered"
        assert len(world.notes("fault.begin")) == 1, "the planned death happened"
        restarts += len(world.notes("server.start")) - 1
    assert restarts > 20


@pytest.mark.parametrize(("label", "possible"), [("T1", {0}), ("T2", {0}), ("T3", {0, 1}), ("T4", {1})])
def test_a_write_is_as_durable_as_the_labels_that_it_passed(label: str, possible: set[int]) -> None:
    found = set()
    for seed in range(20):
        world = a_world(seed)
        world.kill_at("server", label)
        assert world.run_until(lambda world=world: len(world.notes("server.start")) == 2)
        found.add(world.notes("server.start")[1]["count"])
    assert found == possible


def test_a_write_without_labels_may_be_lost_or_kept_when_its_process_dies() -> None:
    class Plain(Server):
        def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
            return [Persist("count", b"1")]

    found = set()
    for seed in range(20):
        world = World(seed)
        world.add("server", Plain, sync_seconds=(1.0, 1.0))
        world.add("asker", Asker, dials=["server"])
        world.run_for(0.5)
        world.crash("server")
        world.run_for(0.2)
        found.add(world.machine("server").count)
    assert found == {0, 1}


def test_a_machine_is_stepped_while_its_write_is_under_way_but_nothing_overtakes_the_write() -> None:
    world = World(1)
    world.add("server", Server, sync_seconds=(0.5, 0.5))
    world.add("asker", Asker, dials=["server"])
    world.run_for(0.4)
    assert world.machine("server").count > 10
    assert not world.notes("asker.heard")
    assert world.run_until(lambda: bool(world.notes("asker.heard")))
    assert world.disk("server").load() == {"count": b"1"}


def test_a_dialer_hears_of_a_new_connection_but_not_of_the_first() -> None:
    world = a_world()
    world.run_for(0.5)
    assert world.machine("asker").connected == 0
    world.crash("server")
    world.run_for(0.5)
    assert world.machine("asker").connected == 1
    world.crash("asker")
    world.run_for(0.5)
    assert world.machine("asker").connected == 0, "a new life has a first connection of its own"


def test_messages_for_a_listener_that_starts_later_wait_and_those_into_a_broken_link_are_lost() -> None:
    world = World(1)
    world.add("server", Server, start=False)
    world.add("asker", Asker, dials=["server"])
    world.run_for(0.1)
    world.restart("server")
    world.run_for(0.1)
    waited = world.machine("asker").heard
    assert len(waited) == world.machine("server").count >= 15
    world.cut("asker", "server", 0.2)
    asked, counted = world.machine("asker").asked, world.machine("server").count
    world.run_for(0.15)
    assert world.machine("asker").asked > asked + 10
    assert world.machine("server").count == counted
    world.run_for(0.2)
    assert world.machine("asker").connected == 1
    assert world.machine("server").count > counted


def test_a_partition_swallows_frames_without_a_sign_and_ends_with_a_new_connection() -> None:
    world = a_world()
    world.run_for(0.1)
    world.partition("server", "asker", 0.3, one_way=True)
    heard, counted = len(world.machine("asker").heard), world.machine("server").count
    world.run_for(0.25)
    assert world.machine("server").count > counted + 10, "the other way is open"
    assert len(world.machine("asker").heard) <= heard + 1
    assert world.machine("asker").connected == 0
    world.run_for(0.2)
    assert world.machine("asker").connected == 1


def test_a_paused_process_does_nothing_and_then_everything() -> None:
    world = a_world()
    world.run_for(0.1)
    world.pause("server", 0.5)
    counted = world.machine("server").count
    world.run_for(0.4)
    assert world.machine("server").count == counted
    world.run_for(0.2)
    assert world.machine("server").count > counted + 40
    assert world.machine("asker").connected == 0, "its connection outlived the pause"


def test_a_timer_that_comes_due_in_a_pause_fires_once_afterwards() -> None:
    world = a_world()
    world.run_for(0.1)
    asked = world.machine("asker").asked
    world.pause("asker", 0.5)
    world.run_for(0.505)
    assert asked + 1 <= world.machine("asker").asked <= asked + 2


@pytest.mark.parametrize("fault", ["drop", "duplicate", "delay", "reorder", "corrupt"])
def test_a_disturbance_disturbs_and_ends(fault: str) -> None:
    world = a_world()
    world.disturb(Disturbance("asker", "server", **{fault: 0.5}), 1.0)
    world.run_for(1.0)
    ids = [one["id"] for one in world.notes("asker.heard")]
    word = {"duplicate": "dup"}.get(fault, fault)
    assert len(world.notes(f"bus.{word}")) > 20
    match fault:
        case "drop" | "corrupt":
            assert len(ids) < 80
        case "duplicate":
            assert len(ids) > len(set(ids)) + 20
        case "reorder":
            assert ids != sorted(ids)
        case "delay":
            assert ids == sorted(ids)
    before = len(world.notes("bus.*"))
    world.run_for(2.0)
    assert len(world.notes("bus.*")) == before


def test_a_full_disk_ends_the_process_and_nothing_is_acknowledged() -> None:
    world = a_world()
    world.run_for(0.1)
    durable = int(world.disk("server").load()["count"])
    world.disk("server").failing = 1
    assert world.run_until(lambda: len(world.notes("server.start")) == 2)
    assert world.notes("server.start")[1]["count"] >= durable
    assert max(one["count"] for one in world.notes("asker.heard")) <= world.notes("server.start")[1]["count"]


def test_the_nth_passing_of_a_step_kills_there_and_not_before() -> None:
    world = a_world()
    world.kill_at("server", "A1", hits=3)
    assert world.run_until(lambda: len(world.notes("server.start")) == 2)
    assert [one["count"] for one in world.notes("server.counted")][:2] == [1, 2]
    assert world.notes("server.start")[1]["count"] == 2
    assert world.notes("fault.begin")[0]["args"] == {"machine": "server", "label": "A1"}


def test_a_delay_at_a_step_holds_up_what_comes_after_it() -> None:
    world = a_world()
    world.kill_at("server", "A1", action="delay:0.3")
    world.run_for(0.25)
    assert not world.notes("server.counted")
    world.run_for(0.3)
    assert world.notes("server.counted")


def test_a_stop_at_a_step_lasts_as_long_as_asked() -> None:
    world = a_world()
    world.kill_at("server", "T2", action="stop", restart_after=0.3)
    world.run_for(0.25)
    assert not world.notes("server.counted")
    assert world.run_until(lambda: bool(world.notes("asker.heard")), 0.3)


def test_a_machine_with_a_skewed_clock_sees_its_own_time_and_its_timers_still_ring() -> None:
    seen: list[Instant] = []

    class Late(Asker):
        def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
            seen.append(now)
            return super().step(now, happened)

    world = World(1)
    world.add("server", Server)
    world.add("asker", Late, dials=["server"], skew=3600.0)
    world.run_for(1.0)
    assert len(world.notes("asker.heard")) > 90
    assert all(now > world.now + seconds(3598) for now in seen)


def test_a_note_must_not_bring_a_field_of_the_record_itself() -> None:
    class Bad(Server):
        def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
            return [Note("bad", {"kind": "x"})]

    with pytest.raises(AssertionError, match="belongs to the record itself"):
        World(1).add("server", Bad)


def test_a_note_is_recorded_as_it_was_when_it_was_made() -> None:
    class Mutable(Server):
        def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
            self.seen = [1]
            return [Note("seen", {"values": self.seen}), SetTimer("x", now)]

        def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
            self.seen.append(2)
            return []

    world = World(1)
    world.add("server", Mutable)
    world.run_for(1.0)
    assert world.machine("server").seen == [1, 2]
    assert world.notes("seen")[0]["values"] == [1]


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_nemesis_does_the_answers_rise_and_calm_brings_progress(kind: str) -> None:
    for seed in range(5):
        world = a_world(seed)
        world.add("bystander", Asker, dials=["server"])
        links = [("asker", "server"), ("bystander", "server")]
        faults = plan(seed, ["server", "asker"], links, duration=4.0, count=6, kinds=[kind])
        unleash(world, faults)
        world.run_for(4.0)
        assert world.notes("fault.begin")
        world.calm()
        heard = len(world.machine("bystander").heard)
        assert world.run_until(lambda world=world, heard=heard: len(world.machine("bystander").heard) > heard + 20, 10.0)
        answered = [one["count"] for one in world.history if one["kind"] == "asker.heard"]
        if kind != "disturb":
            assert len(answered) == len(set(answered)), "no count was given to two questions"
        world.close()
        ends = [one["proc"] for one in world.notes("end")]
        assert sorted(ends) == ["asker", "bystander", "server"]


def test_an_isolated_peer_hears_nobody_until_it_is_over() -> None:
    world = a_world()
    world.add("bystander", Asker, dials=["server"])
    world.run_for(0.1)
    world.isolate("asker", 0.3)
    heard = len(world.machine("asker").heard)
    others = len(world.machine("bystander").heard)
    world.run_for(0.25)
    assert len(world.machine("asker").heard) == heard
    assert len(world.machine("bystander").heard) > others + 10
    world.run_for(0.2)
    assert len(world.machine("asker").heard) > heard
