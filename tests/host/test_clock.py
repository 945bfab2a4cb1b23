"""Emulated time: anchored once, scaled from a common origin, never going back; and the one heap of timers."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from elbowroom.host.clock import FIRED_MAX, Clock, Timers
from elbowroom.machine import Instant, seconds


def test_unscaled_time_is_the_wall_clocks() -> None:
    before = time.time_ns()
    now = Clock().now()
    assert before <= now + 1_000_000
    assert now <= time.time_ns() + 1_000_000


def test_two_clocks_of_one_origin_and_scale_agree_whenever_they_were_made() -> None:
    origin = time.time_ns() - seconds(3600)
    first = Clock(10.0, origin)
    spent = sum(Clock(10.0, origin).now() > 0 for _ in range(1000))
    assert spent == 1000
    second = Clock(10.0, origin)
    apart = second.now() - first.now()
    assert abs(apart) < seconds(0.5)
    assert first.now() - origin >= seconds(36_000)


def test_a_real_span_is_shorter_than_the_emulated_one_by_the_scale_and_never_negative() -> None:
    clock = Clock(20.0)
    assert clock.real_seconds(seconds(10)) == pytest.approx(0.5)
    assert clock.real_seconds(-5) == 0.0


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_time_must_go_forward(scale: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        Clock(scale)


def on_a_loop(test: Callable[[Timers, Clock, list[str]], Awaitable[None]]) -> Callable[[], None]:
    def wrapped() -> None:
        async def run() -> None:
            clock = Clock()
            await asyncio.wait_for(test(Timers(asyncio.get_running_loop(), clock), clock, []), 10)

        uvloop.run(run())

    wrapped.__name__ = test.__name__
    return wrapped


async def until(fired: list[str], name: str) -> None:
    while name not in fired:
        await asyncio.sleep(0)


@on_a_loop
async def test_timers_of_all_owners_fire_in_one_order(timers: Timers, clock: Clock, fired: list[str]) -> None:
    now = clock.now()
    for owner, name, span in (("a", "3", 0.03), ("b", "1", 0.01), ("a", "2", 0.02), ("b", "0", -5.0)):
        timers.set(owner, name, Instant(now + seconds(span)), fired.append)
    await until(fired, "3")
    assert fired == ["0", "1", "2", "3"]


@on_a_loop
async def test_a_dropped_owners_timers_do_not_fire_and_others_do(timers: Timers, clock: Clock, fired: list[str]) -> None:
    now = clock.now()
    timers.set("a", "gone", Instant(now + seconds(0.01)), fired.append)
    timers.set("b", "kept", Instant(now + seconds(0.02)), fired.append)
    timers.drop("a")
    await until(fired, "kept")
    assert fired == ["kept"]


@on_a_loop
async def test_a_timer_set_from_a_timer_fires_too_and_one_that_raises_harms_no_other(
    timers: Timers, clock: Clock, fired: list[str]
) -> None:
    def bad(name: str) -> None:
        timers.set("a", "next", clock.now(), fired.append)
        raise RuntimeError("a timer's owner is broken")

    asyncio.get_running_loop().set_exception_handler(lambda loop, context: fired.append(str(context["exception"])))
    timers.set("a", "bad", clock.now(), bad)
    timers.set("b", "other", Instant(clock.now() + seconds(0.01)), fired.append)
    await until(fired, "other")
    assert fired == ["a timer's owner is broken", "next", "other"]


@on_a_loop
async def test_a_timer_that_is_moved_again_and_again_leaves_no_litter(timers: Timers, clock: Clock, fired: list[str]) -> None:
    far = clock.now() + seconds(100)
    for number in range(20_000):
        timers.set("a", "moved", Instant(far + number), fired.append)
    assert len(timers._heap) < 2_000
    timers.set("a", "moved", clock.now(), fired.append)
    await until(fired, "moved")
    assert fired == ["moved"]


@on_a_loop
async def test_after_a_jump_forward_what_has_come_due_fires_at_once(timers: Timers, clock: Clock, fired: list[str]) -> None:
    timers.set("a", "in an hour", Instant(clock.now() + seconds(3600)), fired.append)
    timers.set("a", "in two", Instant(clock.now() + seconds(7200)), fired.append)
    clock.step(seconds(3601))
    timers.clock_stepped()
    await until(fired, "in an hour")
    assert fired == ["in an hour"]


@on_a_loop
async def test_after_a_jump_back_a_timer_waits_for_its_time(timers: Timers, clock: Clock, fired: list[str]) -> None:
    timers.set("a", "late", Instant(clock.now() + seconds(0.01)), fired.append)
    clock.step(-seconds(3600))
    timers.clock_stepped()
    timers.set("a", "soon", Instant(clock.now() + seconds(0.03)), fired.append)
    await until(fired, "soon")
    assert fired == ["soon"]


@on_a_loop
async def test_thousands_of_late_timers_leave_turns_of_the_loop_to_others(timers: Timers, clock: Clock, fired: list[str]) -> None:
    now = clock.now()
    for number in range(1000):
        timers.set("owner", f"t{number}", Instant(now + number), fired.append)
    turns = 0
    while len(fired) < 1000:
        before = len(fired)
        await asyncio.sleep(0)
        turns += 1
        assert len(fired) - before <= FIRED_MAX
    assert turns >= 1000 // FIRED_MAX
    assert fired == [f"t{number}" for number in range(1000)], "and in their order"
