"""What the bus, the clock and the lives of machines promise, on a real host and in the simulated world alike."""

from collections.abc import Iterator

import pytest
from rigs import Counter, Real, Records, Rig, Simulated, Talker

from elbowroom.machine import seconds


@pytest.fixture(params=[Real, Simulated])
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    made: Rig = request.param()
    yield made
    made.close()


def of(records: Records, kind: str) -> Records:
    return [one for one in records if one["kind"] == kind]


def ids(records: Records, kind: str) -> list[int]:
    return [one["id"] for one in of(records, kind)]


def test_messages_arrive_once_and_in_order_and_so_do_the_answers(rig: Rig) -> None:
    rig.add("counter", Counter, {})
    rig.add("talker", Talker, {"peer": "counter", "count": 300}, dials=["counter"])
    records = rig.until(lambda records: len(of(records, "talker.answer")) == 300)
    assert ids(records, "counter.call") == ids(records, "talker.answer") == list(range(1, 301))
    assert {one["source"] for one in of(records, "talker.answer")} == {"counter"}


def test_what_is_sent_before_the_listener_is_there_waits_for_it(rig: Rig) -> None:
    rig.add("talker", Talker, {"peer": "counter", "count": 20}, dials=["counter"])
    rig.until(lambda records: bool(of(records, "talker.start")))
    rig.add("counter", Counter, {})
    records = rig.until(lambda records: len(of(records, "talker.answer")) == 20)
    assert ids(records, "counter.call") == list(range(1, 21))


def test_a_message_for_nobody_is_lost_and_recorded_and_the_rest_goes_on(rig: Rig) -> None:
    rig.add("counter", Counter, {"stray": "nobody"})
    rig.add("talker", Talker, {"peer": "counter", "count": 5}, dials=["counter"])
    records = rig.until(lambda records: len(of(records, "talker.answer")) == 5)
    assert of(records, "bus.drop")[0]["peer"] == "nobody"


def test_a_listener_is_told_once_that_a_peer_is_gone_when_it_has_something_for_it(rig: Rig) -> None:
    rig.add("counter", Counter, {"stray": "nobody"})
    rig.add("talker", Talker, {"peer": "counter", "count": 20, "every": 0.002}, dials=["counter"])
    records = rig.until(lambda records: len(of(records, "talker.answer")) == 20)
    assert [one["peer"] for one in of(records, "counter.gone")] == ["nobody"]


def test_a_dialer_is_told_of_a_second_connection_and_not_of_the_first(rig: Rig) -> None:
    rig.add("counter", Counter, {})
    rig.add("talker", Talker, {"peer": "counter", "count": 100_000, "every": 0.005}, dials=["counter"])
    records = rig.until(lambda records: len(of(records, "talker.answer")) >= 5)
    assert not of(records, "talker.connected")
    rig.restart("counter")
    records = rig.until(lambda records: bool(of(records, "talker.connected")))
    answered = len(of(records, "talker.answer"))
    records = rig.until(lambda records: len(of(records, "talker.answer")) > answered + 5)
    assert [one["peer"] for one in of(records, "talker.connected")] == ["counter"]
    calls = ids(records, "counter.call")
    assert calls == sorted(set(calls)), "nothing came twice or late over the new connection"


def test_what_was_answered_is_on_the_disk_of_the_next_life(rig: Rig) -> None:
    rig.add("counter", Counter, {})
    rig.add("talker", Talker, {"peer": "counter", "count": 100_000, "every": 0.002}, dials=["counter"])
    for life in range(2, 5):
        rig.until(lambda records, life=life: len(of(records, "talker.answer")) >= 10 * life)
        rig.restart("counter")
        records = rig.until(lambda records, life=life: len(of(records, "counter.start")) == life)
        before = [one for one in records if one["mono_ns"] <= of(records, "counter.start")[-1]["mono_ns"]]
        assert of(records, "counter.start")[-1]["count"] >= len(ids(before, "talker.answer"))
    lives = {one["inc"] for one in of(records, "counter.start")}
    assert len(lives) == 4, "each life has an epoch of its own"


def test_a_timer_fires_at_its_time_or_later_and_timers_in_their_order(rig: Rig) -> None:
    rig.add("talker", Talker, {"peer": "", "timers": {"c": 0.06, "a": 0.0, "b": 0.03}})
    records = rig.until(lambda records: len(of(records, "talker.timer")) == 3)
    began = of(records, "talker.start")[0]["at"]
    fired = [(one["name"], one["at"] - began) for one in of(records, "talker.timer")]
    assert [name for name, _ in fired] == ["a", "b", "c"]
    assert all(after >= seconds(due) for (_, after), due in zip(fired, (0.0, 0.03, 0.06), strict=True))
    assert fired[-1][1] < seconds(2)


def test_a_timer_that_was_cancelled_or_set_anew_does_not_fire_at_its_old_time(rig: Rig) -> None:
    timers = {"first": 0.01, "cancelled": 0.02, "moved": 0.02, "last": 0.09}
    rig.add("talker", Talker, {"peer": "", "timers": timers, "then": {"cancelled": None, "moved": 0.05}})
    records = rig.until(lambda records: any(one["name"] == "last" for one in of(records, "talker.timer")))
    assert [one["name"] for one in of(records, "talker.timer")] == ["first", "moved", "last"]


def test_a_new_life_knows_nothing_of_the_old_ones_timers(rig: Rig) -> None:
    rig.add("talker", Talker, {"peer": "", "timers": {"soon": 0.02, "late": 0.25}})
    rig.until(lambda records: len(of(records, "talker.timer")) == 1)
    rig.restart("talker")
    records = rig.until(lambda records: len(of(records, "talker.timer")) == 3)
    second = of(records, "talker.start")[1]
    assert [one["name"] for one in of(records, "talker.timer")] == ["soon", "soon", "late"]
    assert of(records, "talker.timer")[2]["at"] >= second["at"] + seconds(0.25)


def test_time_never_goes_back_in_a_life(rig: Rig) -> None:
    rig.add("counter", Counter, {})
    rig.add("talker", Talker, {"peer": "counter", "count": 200}, dials=["counter"])
    records = rig.until(lambda records: len(of(records, "talker.answer")) == 200)
    times = [one["at"] for one in of(records, "talker.input")]
    assert times == sorted(times)
    assert [one["wall"] for one in of(records, "talker.input")] == sorted(one["wall"] for one in of(records, "talker.input"))


def test_records_have_one_shape(rig: Rig) -> None:
    rig.add("kubelet_like", Counter, {})
    records = rig.until(lambda records: bool(of(records, "counter.start")))
    first = of(records, "counter.start")[0]
    assert list(first) == ["run", "seed", "proc", "node", "inc", "seq", "mono_ns", "wall", "kind", "count"]
    assert (first["proc"], first["node"], first["seq"]) == ("kubelet_like", "", 1)
