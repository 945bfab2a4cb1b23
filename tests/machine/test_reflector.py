"""A reader's copy follows the server over gaps, doubles, silence, replaced connections and forgotten revisions."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.cache import Change, Reflector
from elbowroom.cache.reflector import CREDIT, SILENCE_SECONDS
from elbowroom.machine import Effect, Instant, Note, PeerConnected, Received, Send, SetTimer, TimerFired, seconds
from elbowroom.wire import (
    ApiRequest,
    Call,
    Code,
    Message,
    StreamBookmark,
    StreamCancel,
    StreamCredit,
    StreamEnd,
    StreamEvent,
    decode_value,
)

NOW = Instant(1_000_000_000_000)


class Thing(msgspec.Struct, frozen=True):
    """A view with one field."""

    metadata: dict[str, str]
    size: int = 0


def thing(name: str, size: int = 0, namespace: str = "d") -> bytes:
    return msgspec.json.encode({"metadata": {"name": name, "namespace": namespace}, "size": size})


class Server:
    """An honest API server with one collection: a log, and streams over it."""

    def __init__(self) -> None:
        self.revision = 10
        self.log: list[tuple[int, str, bytes, str]] = []
        self.objects: dict[str, tuple[int, bytes]] = {}
        self.floor = 0
        self.streams: dict[int, list[int]] = {}
        """id -> [sent events, revision of the last one]"""

    def write(self, name: str, size: int) -> None:
        self.revision += 1
        change = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = (self.revision, thing(name, size))
        self.log.append((self.revision, change, thing(name, size), name))

    def remove(self, name: str) -> None:
        if name in self.objects:
            self.revision += 1
            _, last = self.objects.pop(name)
            self.log.append((self.revision, "DELETED", last, name))

    def hear(self, message: Message) -> list[Message]:
        match message:
            case Call(id, "watch", body):
                query = decode_value(body, ApiRequest).query
                if "resourceVersion" in query:
                    start = int(query["resourceVersion"])
                    if start < self.floor:
                        return [StreamEnd(id, Code.OUT_OF_RANGE)]
                    self.streams[id] = [0, start]
                    return self.news(id)
                assert query["sendInitialEvents"] == "true"
                initial: list[Message] = [
                    StreamEvent(id, number, revision, 0, "ADDED", raw)
                    for number, (revision, raw) in enumerate(self.objects.values(), 1)
                ]
                self.streams[id] = [len(initial), self.revision]
                return [*initial, StreamBookmark(id, len(initial), self.revision, initial_end=True)]
            case StreamCancel(id):
                self.streams.pop(id, None)
        return []

    def news(self, id: int) -> list[Message]:
        """What a stream has not been sent yet, and a bookmark."""
        made: list[Message] = []
        stream = self.streams[id]
        for revision, change, raw, _ in self.log:
            if revision > stream[1]:
                made.append(StreamEvent(id, stream[0] + 1, revision, stream[1], change, raw))
                stream[:] = [stream[0] + 1, revision]
        stream[1] = self.revision
        return [*made, StreamBookmark(id, stream[0], self.revision)]


class Pair:
    """A reflector and its server, with a wire in between that a test may spoil."""

    def __init__(self) -> None:
        self.server = Server()
        self.reflector: Reflector[Thing] = Reflector("things", Thing)
        self.now = NOW
        self.changes: list[Change[Thing]] = []
        self.notes: list[Note] = []
        self.timers: dict[str, Instant] = {}
        self.inbound: list[Message] = []
        self.sent: list[Message] = []

    def carry(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send("apiserver", message):
                    self.sent.append(message)
                    self.inbound += self.server.hear(message)
                case SetTimer(name, at):
                    self.timers.pop(name, None)
                    if at is not None:
                        self.timers[name] = at
                case Note():
                    self.notes.append(effect)

    def tell(self, happened: Any) -> None:
        effects, changes = self.reflector.handle(self.now, happened)
        self.changes += changes
        self.carry(effects)

    def deliver(self) -> None:
        while self.inbound:
            self.tell(Received("apiserver", self.inbound.pop(0)))

    def open(self) -> None:
        self.carry(self.reflector.open(self.now))
        self.deliver()

    def publish(self) -> None:
        """The server tells its streams the news; nothing is delivered yet."""
        for stream in self.server.streams:
            self.inbound += self.server.news(stream)

    def pass_time(self, span: float) -> None:
        end = Instant(self.now + seconds(span))
        while self.timers and min(self.timers.values()) <= end:
            name = min(self.timers, key=lambda name: self.timers[name])
            self.now = Instant(max(self.now, self.timers.pop(name)))
            self.tell(TimerFired(name))
            self.deliver()
        self.now = end

    def copy(self) -> dict[str, int]:
        return {key.removeprefix("d/"): view.size for key, view in self.reflector.store.items()}

    def truth(self) -> dict[str, int]:
        return {name: msgspec.json.decode(raw)["size"] for name, (_, raw) in self.server.objects.items()}


@pytest.fixture
def pair() -> Pair:
    made = Pair()
    made.server.write("a", 1)
    made.server.write("b", 1)
    made.open()
    return made


def test_the_state_comes_first_and_then_the_copy_is_synced(pair: Pair) -> None:
    fresh = Pair()
    fresh.server.write("a", 1)
    fresh.carry(fresh.reflector.open(NOW))
    assert not fresh.reflector.synced
    fresh.deliver()
    assert fresh.reflector.synced
    assert fresh.copy() == {"a": 1}
    assert fresh.reflector.revision == fresh.server.revision
    assert [(change.key, change.old, change.new is not None) for change in fresh.changes] == [("d/a", None, True)]


def test_changes_are_told_with_old_and_new(pair: Pair) -> None:
    pair.changes.clear()
    pair.server.write("a", 2)
    pair.server.remove("b")
    pair.publish()
    pair.deliver()
    told = [(c.key, c.old and c.old.size, c.new and c.new.size) for c in pair.changes]
    assert told == [("d/a", 1, 2), ("d/b", 1, None)]
    assert pair.copy() == pair.truth() == {"a": 2}


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_lost_event_is_noticed_and_the_stream_resumed(pair: Pair, lost: int) -> None:
    for size in (2, 3, 4):
        pair.server.write("a", size)
    pair.publish()
    del pair.inbound[lost]
    pair.deliver()
    assert pair.notes[-1].name == "watch.broken"
    pair.pass_time(0.1)
    assert pair.copy() == pair.truth() == {"a": 4, "b": 1}
    resumed = decode_value([m for m in pair.sent if isinstance(m, Call)][-1].body, ApiRequest).query
    assert "resourceVersion" in resumed, "it goes on where it broke, not from the state"


def test_a_doubled_event_is_told_once(pair: Pair) -> None:
    pair.changes.clear()
    pair.server.write("a", 2)
    pair.publish()
    pair.inbound.insert(0, pair.inbound[0])
    pair.deliver()
    assert len(pair.changes) == 1
    assert not [note for note in pair.notes if note.name == "watch.broken"]


def test_late_frames_of_an_older_stream_are_ignored(pair: Pair) -> None:
    pair.server.write("a", 2)
    pair.publish()
    late = list(pair.inbound)
    pair.inbound.clear()
    pair.tell(PeerConnected("apiserver"))
    pair.deliver()
    assert pair.copy() == {"a": 2, "b": 1}
    changes = len(pair.changes)
    pair.inbound += late
    pair.deliver()
    assert len(pair.changes) == changes


def test_another_peer_cannot_speak_in_the_stream(pair: Pair) -> None:
    forged = StreamEvent(1, 3, 13, 12, "ADDED", thing("evil"))
    pair.tell(Received("client/evil", forged))
    assert "d/evil" not in pair.reflector.store


def test_silence_opens_the_stream_anew_and_a_word_puts_that_off(pair: Pair) -> None:
    calls = sum(isinstance(message, Call) for message in pair.sent)
    pair.pass_time(SILENCE_SECONDS - 1)
    pair.publish()
    pair.deliver()
    pair.pass_time(2)
    assert sum(isinstance(message, Call) for message in pair.sent) == calls
    pair.server.streams.clear()  # the server forgot us
    pair.pass_time(SILENCE_SECONDS)
    assert sum(isinstance(message, Call) for message in pair.sent) == calls + 1


def test_the_lost_end_of_the_state_is_missed_though_the_stream_goes_on() -> None:
    pair = Pair()
    pair.server.write("a", 1)
    pair.carry(pair.reflector.open(NOW))
    first = pair.inbound[-1]
    assert isinstance(first, StreamBookmark) and first.initial_end
    pair.inbound.pop()
    pair.deliver()
    for _ in range(100):
        pair.pass_time(0.2)
        if not pair.reflector.synced:
            pair.inbound.append(StreamBookmark(first.id, first.sequence, first.revision))
            pair.deliver()
    assert pair.reflector.synced and pair.copy() == {"a": 1}


def test_a_revision_too_old_means_the_state_again_and_what_went_meanwhile_is_told(pair: Pair) -> None:
    pair.server.streams.clear()
    pair.server.remove("b")
    pair.server.write("c", 1)
    pair.server.floor = pair.server.revision
    pair.changes.clear()
    pair.tell(PeerConnected("apiserver"))
    pair.deliver()
    pair.pass_time(1.0)
    assert pair.copy() == pair.truth() == {"a": 1, "c": 1}
    assert [(c.key, c.new is None) for c in pair.changes] == [("d/c", False), ("d/b", True)]
    assert pair.reflector.synced


def test_a_store_that_begins_anew_with_lower_revisions_is_followed(pair: Pair) -> None:
    pair.server = Server()
    pair.server.revision = 1
    pair.server.write("a", 9)
    pair.server.floor = 10**9  # it knows nothing of our revision
    pair.tell(PeerConnected("apiserver"))
    pair.deliver()
    pair.pass_time(1.0)
    assert pair.copy() == {"a": 9}


def test_a_broken_stream_is_tried_again_ever_more_slowly_and_at_once_when_connected(pair: Pair) -> None:
    pair.server.hear = lambda message: []  # type: ignore[method-assign]
    waits = []
    for _ in range(8):
        stream = next(m.id for m in reversed(pair.sent) if isinstance(m, Call))
        pair.tell(Received("apiserver", StreamEnd(stream, Code.UNAVAILABLE)))
        due = next(iter(pair.timers.values()))
        waits.append(due - pair.now)
        pair.pass_time((due - pair.now) / 1e9)
    assert waits[:3] == [seconds(0.05), seconds(0.1), seconds(0.2)]
    assert waits[-1] == seconds(2.0)
    stream = next(m.id for m in reversed(pair.sent) if isinstance(m, Call))
    pair.tell(Received("apiserver", StreamEnd(stream, Code.UNAVAILABLE)))
    calls = sum(isinstance(message, Call) for message in pair.sent)
    pair.tell(PeerConnected("apiserver"))
    assert sum(isinstance(message, Call) for message in pair.sent) == calls + 1


def test_credit_is_granted_as_it_is_spent(pair: Pair) -> None:
    for size in range(CREDIT * 3):
        pair.server.write("a", size)
    pair.publish()
    pair.deliver()
    granted = sum(message.amount for message in pair.sent if isinstance(message, StreamCredit))
    assert CREDIT * 2 < granted <= CREDIT * 3 + 2


def test_an_object_that_the_view_cannot_read_costs_only_itself(pair: Pair) -> None:
    revision = pair.server.revision
    odd = msgspec.json.encode({"metadata": {"name": "odd", "namespace": "d"}, "size": "huge"})
    pair.tell(Received("apiserver", StreamEvent(1, 3, revision + 1, revision, "ADDED", odd)))
    assert pair.notes[-1].name == "watch.unreadable"
    pair.tell(Received("apiserver", StreamEvent(1, 4, revision + 2, revision + 1, "ADDED", thing("c", 5))))
    assert pair.copy() == {"a": 1, "b": 1, "c": 5}


def test_bytes_that_are_no_object_break_the_stream_and_nothing_else(pair: Pair) -> None:
    revision = pair.server.revision
    pair.tell(Received("apiserver", StreamEvent(1, 3, revision + 1, revision, "ADDED", b"{]")))
    assert pair.notes[-1].name == "watch.broken"
    pair.pass_time(0.1)
    assert pair.copy() == pair.truth()


def test_a_closed_reflector_cancels_its_stream_and_says_nothing_more(pair: Pair) -> None:
    pair.carry(pair.reflector.close())
    assert isinstance(pair.sent[-1], StreamCancel)
    assert pair.notes[-1].name == "watch.closed"
    assert not pair.timers
    pair.tell(PeerConnected("apiserver"))
    assert isinstance(pair.sent[-1], StreamCancel)


def test_an_idle_stream_notes_nothing_new(pair: Pair) -> None:
    notes = len(pair.notes)
    for _ in range(5):
        pair.publish()
        pair.deliver()
    assert len(pair.notes) == notes


spoil = st.sampled_from(["write", "remove", "publish", "deliver", "drop", "double", "reconnect", "forget", "compact", "end"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(spoil, st.sampled_from("abc"), st.integers(0, 9)), max_size=40))
def test_whatever_happens_on_the_way_the_copy_ends_equal_and_never_goes_back(events: list[tuple[str, str, int]]) -> None:
    pair = Pair()
    pair.open()
    for what, name, number in events:
        match what:
            case "write":
                pair.server.write(name, number)
            case "remove":
                pair.server.remove(name)
            case "publish":
                pair.publish()
            case "deliver":
                pair.deliver()
            case "drop" if pair.inbound:
                del pair.inbound[number % len(pair.inbound)]
            case "double" if pair.inbound:
                place = number % len(pair.inbound)
                pair.inbound.insert(place, pair.inbound[place])
            case "reconnect":
                pair.server.streams.clear()
                pair.inbound.clear()
                pair.tell(PeerConnected("apiserver"))
            case "forget":
                pair.server.streams.clear()
            case "compact":
                pair.server.floor = pair.server.revision
            case "end":
                for stream in list(pair.server.streams):
                    pair.inbound.append(StreamEnd(stream, Code.UNAVAILABLE))
                    del pair.server.streams[stream]
        pair.pass_time(0.01)
    for _ in range(4):
        pair.deliver()
        pair.publish()
        pair.deliver()
        pair.pass_time(SILENCE_SECONDS + 2)
    assert pair.copy() == pair.truth()
    seen: dict[str, Thing | None] = {}
    for change in pair.changes:
        assert change.old == seen.get(change.key), "each change begins where the one before ended"
        seen[change.key] = change.new


# ---------------------------------------------------------------- what a history learns of bookmarks


def marks(pair: Pair) -> list[int]:
    return [note.fields["rev"] for note in pair.notes if note.name == "watch.bookmark"]


def idle(pair: Pair, times: int) -> None:
    """Others' objects change, so the revision rises, and a bookmark tells of it each time."""
    for _ in range(times):
        pair.server.revision += 1
        pair.publish()
        pair.deliver()


def test_of_the_bookmarks_of_an_idle_stream_the_first_and_the_last_are_told(pair: Pair) -> None:
    began = pair.reflector.revision
    pair.server.write("a", 2)
    pair.publish()
    pair.deliver()
    idle(pair, 5)
    assert (marks(pair), pair.reflector.revision) == ([began + 2], began + 6)
    pair.server.write("a", 3)
    pair.publish()
    pair.deliver()
    assert marks(pair) == [began + 2, began + 6]
    assert [note.name for note in pair.notes][-2:] == ["watch.bookmark", "watch.event"]


@pytest.mark.parametrize("what", ["replaced", "ended", "closed"])
def test_a_stream_that_is_opened_anew_goes_on_from_a_bookmark_that_was_told(pair: Pair, what: str) -> None:
    idle(pair, 5)
    last = pair.reflector.revision
    pair.notes.clear()
    match what:
        case "replaced":
            pair.tell(PeerConnected("apiserver"))
        case "ended":
            pair.tell(Received("apiserver", StreamEnd(pair.reflector.stream, Code.OK)))
            pair.pass_time(1)
        case _:
            pair.carry(pair.reflector.close())
    assert marks(pair) == [last]
    assert pair.notes[0].name == "watch.bookmark", "it is told before anything else"
    if what != "closed":
        assert next(note for note in pair.notes if note.name == "watch.open").fields["from"] == last
