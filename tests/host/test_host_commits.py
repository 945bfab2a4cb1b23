"""The order in which a life carries out its effects, and which writes it commits together, seen on a loop in slow motion."""

import asyncio
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from elbowroom.host import incarnation
from elbowroom.host.clock import Clock
from elbowroom.host.failpoints import Failpoints
from elbowroom.host.incarnation import GROUP_MAX, Incarnation, Store
from elbowroom.host.sockets import Sent
from elbowroom.host.spec import Arm, DiskSpec, DriverSpec, MachineSpec
from elbowroom.machine import Effect, Input, Instant, Note, Persist, Send, Step, Work, WorkDone
from elbowroom.wire import Message, Reply


class Later:
    """A future whose work is done when the test says so."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._callbacks: list[Callable[[Any], None]] = []
        self._failure: BaseException | None = None
        self.done = False

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)

    def exception(self) -> BaseException | None:
        return self._failure

    def cancelled(self) -> bool:
        return False

    def __await__(self) -> Generator[None, None, Any]:
        return self._work()
        yield

    def finish(self) -> None:
        try:
            self._work()
        except OSError as why:
            self._failure = why
        self.done = True
        for callback in self._callbacks:
            callback(self)


class SlowLoop:
    """Of an event loop what a life uses; nothing happens by itself."""

    def __init__(self) -> None:
        self.works: list[Later] = []
        self.alarms: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def run_in_executor(self, writer: object, work: Callable[..., Any], *arguments: Any) -> Later:
        later = Later(lambda: work(*arguments))
        if writer is not None:
            self.works.append(later)
        return later

    def call_later(self, delay: float, callback: Callable[..., None], *arguments: Any) -> Any:
        alarm = (delay, callback, arguments)
        self.alarms.append(alarm)
        return SimpleNamespace(cancel=lambda: self.alarms.remove(alarm))


def machine(config: Mapping[str, Any], rng: random.Random) -> "Puppet":
    return Puppet()


class Puppet:
    """Its effects are what it is told by the outcome of some work."""

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        return []

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        assert isinstance(happened, WorkDone)
        effects: Sequence[Effect] = happened.outcome
        return effects


class Worker:
    """A driver that is given work."""

    prefix = "driver/"

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.life: Life | None = None

    async def start(self, post: Callable[[Input], None]) -> Mapping[str, Any]:
        return {}

    def deliver(self, effect: Send) -> None:
        assert self.life is not None
        self.life.journal.append(f"delivering {effect.target}")
        self.life.told(Send("peer", Reply(9)))
        self.life.journal.append(f"delivered {effect.target}")

    def work(self, effect: Work) -> None:
        assert self.life is not None
        self.life.journal.append(f"work {effect.token}")

    async def stop(self) -> None: ...


class Life:
    """One life, and the journal of what the world sees of it: history lines, messages, commits."""

    def __init__(self, *, writer: bool = True, tidies: bool = False) -> None:
        self.journal: list[str] = []
        self.failure: BaseException | None = None
        self.loop = SlowLoop()
        self.broken = False
        self.is_open = True
        self.failpoints = Failpoints()
        self.store = Store(DiskSpec(), None)  # type: ignore[arg-type]
        self.store.disk = self  # type: ignore[assignment]
        spec = MachineSpec("m", f"{__name__}:machine", dial={"peer": "inproc:peer"}, drivers=[DriverSpec(f"{__name__}:Worker", {})])
        self.life = Incarnation(self, spec, 1, self.store, 1)  # type: ignore[arg-type]
        self._noted: list[str] = []
        asyncio.run(self._start())
        self.journal.clear()
        self.store.writer = object() if writer else None  # type: ignore[assignment]
        self.store.tidies = tidies

    async def _start(self) -> None:
        await self.life.start()
        for _, driver in self.life._drivers:
            driver.life = self  # type: ignore[attr-defined]

    # the process

    clock = Clock()
    keys = None

    samples = SimpleNamespace(begin=lambda span: None)

    @property
    def timers(self) -> Any:
        return SimpleNamespace(set=lambda *_: None, drop=lambda _: None)

    @property
    def neighbours(self) -> Any:
        return SimpleNamespace(dial=lambda *_: self)

    def history_of(self, machine: str, epoch: int) -> Any:
        return self

    def fire(self, order: Arm, life: Incarnation) -> float:
        self.journal.append(f"fired {order.label}")
        return 0.0

    def failed(self, life: Incarnation, why: BaseException) -> None:
        self.failure = why

    # its history

    @property
    def waiting(self) -> bool:
        return bool(self._noted)

    def note(self, kind: str, fields: Mapping[str, Any]) -> None:
        self._noted.append(kind)

    def flush(self) -> None:
        self.journal.append(f"told {' '.join(self._noted)}")
        self._noted = []

    # its connection

    @property
    def open(self) -> bool:
        return self.is_open

    def hold(self) -> None:
        self.is_open = False

    def resume(self) -> None:
        self.is_open = True

    def send(self, message: Message) -> Sent:
        assert isinstance(message, Reply)
        self.journal.append(f"sent {message.id}")
        return Sent.PASSED

    # its disk

    def load(self) -> dict[str, bytes]:
        return {}

    def commit(self, writes: Sequence[Persist], step: Callable[[str], None]) -> None:
        if self.broken:
            raise OSError(28, "no space left on device")
        self.journal.append(f"commit {' '.join(write.key for write in writes)}")
        for write in writes:
            for label in write.labels:
                step(label)

    def idle(self) -> None:
        self.journal.append("tidied")

    def close(self, linger_ms: int = 0) -> None: ...

    # the test

    def told(self, *effects: Effect) -> None:
        """It decides to do that."""
        self.life.feed(WorkDone("told", effects))

    def write(self) -> None:
        """The write under way ends."""
        (later,) = [work for work in self.loop.works if not work.done]
        later.finish()

    def taken(self) -> list[str]:
        """The journal since it was last taken."""
        found, self.journal[:] = list(self.journal), []
        return found


def put(key: str, *labels: str) -> Persist:
    return Persist(key, b"v", labels)


def say(number: int) -> Send:
    return Send("peer", Reply(number))


def note(kind: str) -> Note:
    return Note(kind, {})


@pytest.fixture
def life() -> Life:
    return Life()


def test_what_follows_a_write_is_not_seen_before_it_is_durable(life: Life) -> None:
    life.told(note("a"), say(1), note("b"), put("x"), note("c"), say(2), Work("w", "task"))
    assert life.taken() == ["told a", "sent 1", "told b"]
    life.told(say(3))
    assert life.taken() == []
    life.write()
    assert life.taken() == ["commit x", "told c", "sent 2", "work w", "sent 3"]


def test_writes_that_wait_behind_one_are_committed_with_it_and_then_all_is_told_before_anything_is_sent(life: Life) -> None:
    life.told(put("x"), say(1), put("y"), say(2), note("a"), say(3), put("z"), note("b"), say(4))
    life.write()
    assert life.taken() == ["commit x y z", "told a b", "sent 1", "sent 2", "sent 3", "sent 4"]


def test_a_note_right_before_a_write_is_told_before_the_write_and_no_other_is(life: Life) -> None:
    life.told(put("x"), note("after x"), say(1), note("begun y"), put("y"), note("after y"), note("begun z"), put("z"))
    assert life.taken() == ["told begun y begun z"]
    life.write()
    assert life.taken() == ["commit x y z", "told after x after y", "sent 1"]


def test_a_note_that_a_step_parts_from_the_next_write_does_not_announce_it(life: Life) -> None:
    life.told(put("x"), Step("A7"), note("x is there"), Step("C1"), put("y"), note("y is there"))
    assert life.taken() == []
    life.told(put("z"), note("z is there"))
    life.told(Step("A5"), put("last"), say(1))
    life.write()
    assert life.taken() == ["commit x y", "told x is there y is there"]
    life.write()
    assert life.taken() == ["commit z last", "told z is there", "sent 1"]


def test_no_more_than_so_many_writes_are_committed_together(life: Life) -> None:
    life.told(*(put(str(number)) for number in range(GROUP_MAX + 1)))
    life.write()
    assert [len(group.split()) - 1 for group in life.taken()] == [GROUP_MAX]
    life.write()
    assert life.taken() == [f"commit {GROUP_MAX}"]


def test_no_write_is_moved_ahead_of_work(life: Life) -> None:
    life.told(put("x"), say(1), Work("w", "task"), put("y"))
    life.write()
    assert life.taken() == ["commit x", "sent 1", "work w"]
    life.write()
    assert life.taken() == ["commit y"]


def test_while_a_failpoint_is_armed_no_write_is_moved_and_neighbours_are_still_one_group(life: Life) -> None:
    life.failpoints.arm(Arm("m", "K4", action="delay:0"))
    life.told(put("w"), put("x"), say(1), note("a"), say(3), put("y", "K4"), say(2))
    life.write()
    assert life.taken() == ["commit w x", "sent 1", "told a", "sent 3"]
    life.write()
    assert life.taken() == ["commit y", "fired K4", "sent 2"]


def test_a_failpoint_of_another_machine_holds_nothing_up(life: Life) -> None:
    life.failpoints.arm(Arm("another", "K4", action="delay:0"))
    life.told(put("x"), say(1), Step("K4"), put("y"))
    life.write()
    assert life.taken() == ["commit x y", "sent 1"]


def test_what_waited_for_a_write_that_failed_is_never_seen(life: Life) -> None:
    life.broken = True
    life.told(put("x"), note("a"), say(1), put("y"), note("b"))
    life.write()
    assert life.taken() == ["told failed"]
    assert isinstance(life.failure, OSError) and not life.life.alive
    life.told(say(2))
    assert life.taken() == []


def test_a_disk_that_writes_at_once_holds_nothing_up_and_its_writes_are_announced_too() -> None:
    life = Life(writer=False)
    life.told(say(1), note("begun x"), put("x", "K4"), say(2), put("y"), note("a"), say(3))
    assert life.taken() == ["sent 1", "told begun x", "commit x y", "told a", "sent 2", "sent 3"]
    life.broken = True
    life.told(put("z"), note("z is there"), say(4))
    assert life.taken() == ["told failed"] and isinstance(life.failure, OSError)


def test_an_effect_is_carried_out_before_what_follows_from_it(life: Life) -> None:
    life.told(Send("driver/1", Reply(1)), say(2))
    assert life.taken() == ["delivering driver/1", "delivered driver/1", "sent 2", "sent 9"]


def test_a_paused_life_carries_out_nothing_until_it_is_resumed(life: Life) -> None:
    life.told(put("x"), note("a"), say(1), put("y"), Work("w", "task"), put("z"))
    life.life.pause()
    life.write()
    assert life.taken() == ["commit x y"] and not life.waiting
    life.life.resume()
    assert life.taken() == ["told a", "sent 1", "work w"]


def test_who_has_much_waiting_for_its_disk_is_read_no_further_until_it_is_written(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incarnation, "PENDING_MAX", 2)
    life.told(put("x"), say(1), say(2))
    assert life.is_open, "as much as is allowed"
    life.told(say(3))
    assert not life.is_open
    life.write()
    assert life.is_open


def test_a_disk_is_tidied_once_it_has_been_idle_after_its_last_write() -> None:
    life = Life(tidies=True)
    for key in ("x", "y"):
        life.told(put(key))
        life.write()
    assert [alarm[0] for alarm in life.loop.alarms] == [incarnation.IDLE_SECONDS], "the later write counts"
    _, callback, arguments = life.loop.alarms.pop()
    callback(*arguments)
    life.write()
    assert life.taken() == ["commit x", "commit y", "tidied"]
    life.told(put("z"))
    assert len(life.loop.alarms) == 1


def test_a_disk_that_has_nothing_to_tidy_is_left_alone(life: Life) -> None:
    life.told(put("x"))
    assert life.loop.alarms == []


@pytest.mark.parametrize("how", ["full", "fsync"])
def test_a_broken_disk_fails_so_often_and_then_works_again(how: str) -> None:
    life = Life()
    life.store.break_next(how, 3)
    for _ in range(3):
        with pytest.raises(OSError, match=r"No space left|Input/output error"):
            life.store.commit([put("x")], lambda _: None)
    life.store.commit([put("y")], lambda _: None)
    assert life.taken() == (["commit y"] if how == "full" else ["commit x", "commit x", "commit x", "commit y"])
