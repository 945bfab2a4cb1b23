"""A reader's copy of a collection: one watch stream, checked for gaps, resumed where it broke.

The stream opens with the state (``sendInitialEvents``: ADDED for each object, then the bookmark that ends them) and goes on
with the changes. It is opened again from the last revision when an event's ``previous`` or ``sequence`` is not the one
expected, when a bookmark tells of events that never came, when the connection was replaced, or after ``SILENCE_SECONDS``
without a word; and from the state when the revision is too old (410, OUT_OF_RANGE). Each stream has a fresh id, so late frames of
an older one are ignored. Delivery is at least once; ``Change``s are only told when an object's revision really rose.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from elbowroom.api.objects import ObjectMeta
from elbowroom.api.sharing import shared
from elbowroom.cache.backoff import Backoff
from elbowroom.machine import Effect, Input, Instant, Note, PeerConnected, Received, Send, SetTimer, TimerFired, on_beat, seconds
from elbowroom.wire import (
    ApiRequest,
    Call,
    Code,
    Reply,
    StreamBookmark,
    StreamCancel,
    StreamCredit,
    StreamEnd,
    StreamEvent,
    encode_value,
)

View = TypeVar("View")

CREDIT = 512
SILENCE_SECONDS = 15.0
SILENCE_BEAT = seconds(0.5)
STATE_NEVER_ENDED = "the end of the state was lost"


@dataclass(frozen=True, slots=True)
class Change(Generic[View]):
    """An object came (old is None), changed, or went (new is None). ``key`` is ``namespace/name`` or ``name``."""

    key: str
    old: View | None
    new: View | None


class _Meta(msgspec.Struct):
    name: str
    namespace: str = ""
    resourceVersion: str = "0"


class _Key(msgspec.Struct):
    metadata: _Meta


class Reflector(Generic[View]):
    """The copy of ``resource`` (``pods``, ``leases.coordination.k8s.io``), each object parsed to ``view`` once per revision.

    ``store`` maps keys to views; ``synced`` turns true when the initial state is whole, and stays so. Show every input to
    ``handle``; call ``open`` from the machine's ``start``.
    """

    def __init__(
        self,
        resource: str,
        view: type[View],
        *,
        version: str = "v1",
        namespace: str = "",
        query: dict[str, str] | None = None,
        target: str = "apiserver",
        epoch: int = 0,
        ids: Iterator[int] | None = None,
        name: str = "",
    ) -> None:
        self._resource = resource
        plural, _, group = resource.partition(".")
        self._plural, self._group, self._version, self._namespace = plural, group, version, namespace
        self._query = dict(query or {})
        self._target, self._epoch = target, epoch
        self._ids = ids or itertools.count(1)
        self._decoder = msgspec.json.Decoder(view)
        self._key_decoder = msgspec.json.Decoder(_Key)
        self._timer = f"watch/{name or resource}"
        self._name = name or resource
        self._id = 0
        self._sequence = 0
        self._revision = 0
        self._initial: dict[str, None] | None = None
        self._spent = 0
        self._backoff = Backoff(0.05, 2.0)
        self._waiting = False
        self._heard: Instant = Instant(0)
        self._settled = False
        """Since the last event a bookmark was told, so of further ones only the last is: before whatever comes next."""
        self._mark: Note | None = None
        self._revisions: dict[str, int] = {}
        self.store: dict[str, View] = {}
        self.synced = False

    @property
    def revision(self) -> int:
        """The last revision that this copy includes."""
        return self._revision

    @property
    def stream(self) -> int:
        """The id of the stream that is open; 0 while there is none. A frame of any other does not concern this copy."""
        return self._id

    def open(self, now: Instant) -> list[Effect]:
        """Open the stream: from the last revision seen, or from the state."""
        effects: list[Effect] = [*self._marks()]
        if self._id:
            effects.append(Send(self._target, StreamCancel(self._id)))
        self._id = next(self._ids)
        self._settled = False
        self._sequence, self._spent = 0, 0
        self._heard = now
        self._waiting = False
        query = dict(self._query, allowWatchBookmarks="true")
        if self._revision and self.synced:
            query["resourceVersion"] = str(self._revision)
            self._initial = None
        else:
            query["sendInitialEvents"] = "true"
            query["resourceVersionMatch"] = "NotOlderThan"
            self._revision = 0
            self._initial = {}
        request = ApiRequest("watch", self._plural, self._group, self._version, namespace=self._namespace, query=query)
        effects.append(Send(self._target, Call(self._id, "watch", encode_value(request), epoch=self._epoch, credit=CREDIT)))
        effects.append(SetTimer(self._timer, self._silence_ends()))
        effects.append(
            Note(
                "watch.open",
                {
                    "id": self._id,
                    "watch": self._name,
                    "resource": self._resource,
                    "namespace": self._namespace,
                    "fields": self._query.get("fieldSelector", ""),
                    "from": self._revision,
                },
            )
        )
        return effects

    def close(self) -> list[Effect]:
        """End the stream and give the copy up: who reads the resource later begins with the state."""
        cancel: list[Effect] = [Send(self._target, StreamCancel(self._id))] if self._id else []
        self._id = self._revision = 0
        self._waiting = False
        return [*self._marks(), *cancel, Note("watch.closed", {"watch": self._name}), SetTimer(self._timer, None)]

    def handle(self, now: Instant, happened: Input) -> tuple[Sequence[Effect], Sequence[Change[View]]]:
        """Effects of the stream, and what changed in the copy, in the order of the revisions."""
        if type(happened) is Received and getattr(happened.message, "id", 0) != self._id:
            return (), ()  # of another stream, or a call's: nearly always so, where there are many copies
        match happened:
            case Received(self._target, StreamEvent(id=self._id) as event):
                return self._on_event(now, event)
            case Received(self._target, StreamBookmark(id=self._id) as mark):
                return self._on_bookmark(now, mark)
            case Received(self._target, StreamEnd(id=self._id) as end):
                return self._on_end(now, end.code, end.message), ()
            case Received(self._target, Reply(id=self._id) as reply):
                return self._on_end(now, reply.code, reply.message), ()
            case TimerFired(self._timer):
                return self._on_timer(now), ()
            case PeerConnected(self._target) if self._id or self._waiting:
                return self.open(now), ()
            case _:
                return (), ()

    def _on_timer(self, now: Instant) -> list[Effect]:
        silence_ends = self._silence_ends()
        if not self._waiting and now < silence_ends:
            return [SetTimer(self._timer, silence_ends)]
        return self.open(now)

    def _silence_ends(self) -> Instant:
        return on_beat(self._heard + seconds(SILENCE_SECONDS), SILENCE_BEAT)

    def _on_event(self, now: Instant, event: StreamEvent) -> tuple[Sequence[Effect], Sequence[Change[View]]]:
        if event.sequence <= self._sequence:
            return (), ()  # doubled on the way
        if event.sequence != self._sequence + 1 or (self._initial is None and event.previous != self._revision):
            return self._broken(now, f"event {event.sequence} after {self._sequence}"), ()
        if self._initial is not None and event.change != "ADDED":
            return self._broken(now, STATE_NEVER_ENDED), ()
        self._heard = now
        self._sequence = event.sequence
        effects: list[Effect] = []
        self._spent += 1
        if self._spent >= CREDIT // 2:
            effects.append(Send(self._target, StreamCredit(self._id, self._spent)))
            self._spent = 0
        new, unreadable = None, ""
        try:
            new = self._decoder.decode(event.object)
        except msgspec.MsgspecError as why:
            unreadable = str(why)
        meta = getattr(new, "metadata", None)
        if not (isinstance(meta, ObjectMeta) and meta.name):
            try:
                meta = self._key_decoder.decode(event.object).metadata
            except msgspec.MsgspecError as why:
                return self._broken(now, f"event {event.sequence} names no object: {why}"), ()
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        if self._initial is not None:
            self._initial[key] = None
        else:
            self._revision = event.revision
            facts = {"id": self._id, "rev": event.revision, "type": event.change, "key": f"{self._resource}/{key}"}
            effects += [*self._marks(), Note("watch.event", {**facts, "number": event.sequence})]
            self._settled = False
        change = self._apply(key, event, new)
        if change is None:
            return effects, ()
        if change.new is None and event.change != "DELETED":
            # The copy keeps what it had: one odd object must not cost the rest of the collection.
            return [*effects, Note("watch.unreadable", {"watch": self._name, "key": key, "why": unreadable})], ()
        return effects, (change,)

    def _apply(self, key: str, event: StreamEvent, new: View | None) -> Change[View] | None:
        """What the event changes; nothing is changed by one that tells of an object (``new``) that cannot be read."""
        old = self.store.get(key)
        if event.change == "DELETED":
            self._revisions.pop(key, None)
            return Change(key, self.store.pop(key), None) if old is not None else None
        known = self._revisions.get(key, 0)
        if old is not None and (known == event.revision or (self._initial is None and known > event.revision)):
            return None  # told already; while the state is listed anew a lower revision may be the truth (another store)
        if new is not None:
            new = self.store[key] = shared(new)
            self._revisions[key] = event.revision
        return Change(key, old, new)

    def _on_bookmark(self, now: Instant, mark: StreamBookmark) -> tuple[Sequence[Effect], Sequence[Change[View]]]:
        if mark.sequence != self._sequence:
            if mark.sequence < self._sequence:
                return (), ()
            return self._broken(now, f"a bookmark tells of {mark.sequence} events, {self._sequence} came"), ()
        if self._initial is not None and not mark.initial_end:
            return self._broken(now, STATE_NEVER_ENDED), ()  # idle bookmarks come after it only
        self._heard = now
        self._backoff.reset("open")
        gone: list[Change[View]] = []
        kind = "watch.bookmark"
        if self._initial is not None:
            for key in [key for key in self.store if key not in self._initial]:
                gone.append(Change(key, self.store.pop(key), None))
                self._revisions.pop(key, None)
            self._initial = None
            self.synced = True
            kind = "watch.initial"
        if mark.revision <= self._revision and kind == "watch.bookmark":
            return (), gone  # nothing that the history does not know; an idle stream has five of them a second
        self._revision = max(self._revision, mark.revision)
        told = Note(kind, {"id": self._id, "rev": mark.revision, "number": mark.sequence})
        if self._settled:
            self._mark = told
            return (), gone
        self._settled = True
        return (told,), gone

    def _marks(self) -> list[Note]:
        """The bookmark that was not told yet."""
        mark, self._mark = self._mark, None
        return [] if mark is None else [mark]

    def _on_end(self, now: Instant, code: Code, message: str) -> list[Effect]:
        if code is Code.OUT_OF_RANGE:
            self._revision = 0
        return self._broken(now, f"{code.name}: {message}")

    def _broken(self, now: Instant, why: str) -> list[Effect]:
        if self._id:
            wait = self._backoff.next("open")
            cancel = Send(self._target, StreamCancel(self._id))
            self._id = 0
            self._waiting = True
            again = Instant(now + wait)
            return [*self._marks(), cancel, Note("watch.broken", {"watch": self._name, "why": why}), SetTimer(self._timer, again)]
        return []
