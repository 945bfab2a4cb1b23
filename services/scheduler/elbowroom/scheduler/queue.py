"""Which pod is tried next, and what wakes those that did not fit (SC-1 to SC-35).

Pods ready to be tried are in the *active* heap; those that failed a moment ago wait in one of two *back-off* heaps; those that
nothing would help are *unschedulable* until an event that a plugin which rejected them waits for. A deferred resize is queued
like any pod; nothing here treats it differently.
"""

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from elbowroom.machine import Effect, Instant, Note, Step, seconds
from elbowroom.scheduler.clusterevents import (
    FORCE_ACTIVATE,
    TARGET_POD,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    node_of,
    pod_events,
)
from elbowroom.scheduler.framework import Interest, Plugin, Status
from elbowroom.scheduler.heap import KeyedHeap
from elbowroom.scheduler.parked import Parked, Place
from elbowroom.scheduler.podinfo import PodInfo

INITIAL_BACKOFF_SECONDS = 1
MAX_BACKOFF_SECONDS = 10
WINDOW = seconds(1)
"""Back-off ends are truncated to whole seconds, so that pods of one second are ordered by priority (SC-4)."""
UNSCHEDULABLE_MAX = seconds(5 * 60)
FLUSH_UNSCHEDULABLE = seconds(30)

ACTIVE, BACKOFF, UNSCHEDULABLE, GATED, IN_FLIGHT = "active", "backoff", "unschedulable", "gated", "inflight"
POD_ADD = "UnscheduledPodAdd"
ATTEMPT_FAILED = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"


class QueuedPod:
    """A pod in the queue, with what became of it so far."""

    __slots__ = (
        "attempts",
        "consecutive_errors",
        "first_tried",
        "flushed",
        "gated_by",
        "info",
        "number",
        "rejected_by",
        "timestamp",
        "unschedulable_count",
    )

    def __init__(self, info: PodInfo, now: Instant, number: int) -> None:
        self.info = info
        self.timestamp = now
        self.number = number
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.first_tried: Instant | None = None
        self.rejected_by: tuple[str, ...] = ()
        """The plugins whose events can wake it; none: any event."""
        self.gated_by = ""
        self.flushed = False
        """Did only the clock bring it back?"""

    @property
    def uid(self) -> str:
        return self.info.uid

    def backoff(self, initial_seconds: int = INITIAL_BACKOFF_SECONDS, seconds_max: int = MAX_BACKOFF_SECONDS) -> int:
        """How long it waits after its last failure (SC-3)."""
        count = self.consecutive_errors or self.unschedulable_count
        if count == 0:
            return 0
        return seconds(min(seconds_max, initial_seconds * 2 ** min(count - 1, 16)))


Counted = Callable[[str, str], None]
"""Told of each pod that comes into a queue: the queue's name and the event's label."""
Hinted = Callable[[str, str, str], None]
"""Told of each hint that was asked for: the plugin, the event's label, and ``Queue`` or ``QueueSkip``."""
ANY_PROFILE = ""
POD_POPPED = "PodPopped"
"""What stands for a pod in flight among the events that are kept for it."""


class SchedulingQueue:
    """The three stores and the table of pods in flight. ``drain`` hands out the notes of what happened."""

    def __init__(
        self,
        plugins: Sequence[Plugin] | Mapping[str, Sequence[Plugin]],
        *,
        pops_from_backoff: bool = True,
        counted: Counted | None = None,
        hinted: Hinted | None = None,
        pre_enqueues: Callable[[PodInfo], Sequence[Plugin]] | None = None,
        backoff_seconds: tuple[int, int] = (INITIAL_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS),
    ) -> None:
        """``plugins``: whoever may reject a pod, by scheduler name where profiles configure them differently; ``pre_enqueues``: who
        holds that one back (by default all that do at all); ``backoff_seconds``: after the first failure, and at most.
        """
        by_profile = plugins if isinstance(plugins, Mapping) else {ANY_PROFILE: plugins}
        holding_back = [
            plugin for plugins in by_profile.values() for plugin in plugins if type(plugin).pre_enqueue is not Plugin.pre_enqueue
        ]
        self._pre_enqueues = pre_enqueues or (lambda info: holding_back)
        self._backoff_seconds = backoff_seconds
        self._interests: dict[tuple[str, Action], dict[str, dict[str, Interest]]] = {}
        """By event, the plugins that wait for it, and the hint that each profile's has."""
        for profile, those in by_profile.items():
            for plugin in those:
                for interest in plugin.interests():
                    of_event = self._interests.setdefault((interest.resource, interest.action), {})
                    of_event.setdefault(plugin.name, {})[profile] = interest
        self._pops_from_backoff = pops_from_backoff
        self._counted = counted or (lambda queue, label: None)
        self._hinted = hinted or (lambda plugin, label, answer: None)
        self._active: KeyedHeap[QueuedPod] = KeyedHeap()
        self._backoff: KeyedHeap[QueuedPod] = KeyedHeap()
        self._error_backoff: KeyedHeap[QueuedPod] = KeyedHeap()
        self._unschedulable: dict[str, QueuedPod] = {}
        self._parked = Parked()
        """Unschedulable pods by each plugin that rejected or gated them; under the empty name those that any event wakes."""
        self._by_name: dict[tuple[str, str], Plugin] = {
            (profile, each.name): each for profile, those in by_profile.items() for each in those
        }
        self._in_flight: dict[str, tuple[QueuedPod, int]] = {}
        self._events: deque[tuple[ClusterEvent, object, object]] = deque()
        self._events_before = 0
        """How many in-flight events have been dropped from the front."""
        self._numbers = 0
        self._last_flush: Instant | None = None
        self._effects: list[Effect] = []

    # ---- looking

    def where(self, uid: str) -> str:
        """The store that the pod is in: active, backoff, unschedulable, inflight; empty if in none."""
        if uid in self._active:
            return ACTIVE
        if uid in self._backoff or uid in self._error_backoff:
            return BACKOFF
        if uid in self._unschedulable:
            return UNSCHEDULABLE
        return IN_FLIGHT if uid in self._in_flight else ""

    def counts(self) -> dict[str, int]:
        """``pending_pods`` by queue (SC-147)."""
        gated = sum(1 for entry in self._unschedulable.values() if entry.gated_by)
        return {
            ACTIVE: len(self._active),
            BACKOFF: len(self._backoff) + len(self._error_backoff),
            UNSCHEDULABLE: len(self._unschedulable) - gated,
            GATED: gated,
        }

    def rejections(self) -> dict[tuple[str, str], int]:
        """``unschedulable_pods``: how many pods each plugin holds back, by plugin and profile."""
        found: Counter[tuple[str, str]] = Counter()
        for name in self._parked.plugins:
            if name:
                pods = self._parked.with_plugin(name)
                found.update((name, self._unschedulable[uid].info.pod.spec.scheduler_name) for uid in pods)
        return found

    def events_in_flight(self) -> dict[str, int]:
        """``inflight_events`` by event: what is kept for the pods that are being tried, and these pods."""
        found = Counter(event.label for event, _, _ in self._events)
        if self._in_flight:
            found[POD_POPPED] = len(self._in_flight)
        return dict(found)

    def has_active(self) -> bool:
        """Is there a pod that need not wait?"""
        return bool(self._active)

    def has_ready(self) -> bool:
        """Would ``pop`` give a pod?"""
        return bool(self._active) or (self._pops_from_backoff and bool(self._backoff))

    def due(self, now: Instant) -> Instant | None:
        """When ``flush`` has something to do next."""
        moments = []
        if self._error_backoff or self._backoff:
            moments.append(Instant((now // WINDOW + 1) * WINDOW))
        if self._unschedulable:
            if self._last_flush is None:
                self._last_flush = now
            moments.append(Instant(self._last_flush + FLUSH_UNSCHEDULABLE))
        return max(Instant(now + 1), min(moments)) if moments else None

    def drain(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    # ---- coming, changing, going

    def add(self, now: Instant, info: PodInfo, label: str = POD_ADD) -> None:
        """A pod to be tried; if it is queued already it is only brought up to date."""
        if self.where(info.uid):
            self.update(now, info)
            return
        self._numbers += 1
        entry = QueuedPod(info, now, self._numbers)
        self._into_active(now, entry, label)
        self._note("sch.enqueue", entry, self.where(entry.uid), label)
        self._effects.append(Step("S2"))

    def update(self, now: Instant, info: PodInfo) -> None:
        """A new revision of the pod (SC-14). It wakes the pod only if a plugin that rejected it waits for such a change."""
        uid = info.uid
        entry = self._active.get(uid) or self._backoff.get(uid) or self._error_backoff.get(uid)
        if entry is not None:
            entry.info = info
            return
        parked = self._unschedulable.get(uid)
        if parked is not None:
            old, parked.info = parked.info, info
            self._parked.remove(uid)
            self._parked.add(uid, self._places(parked))
            for event in pod_events(TARGET_POD, old, info):
                if self._wakes(parked, event, old, info):
                    self._requeue(now, parked, event.label, node_of(info))
                    return
            return
        flying = self._in_flight.get(uid)
        if flying is None:
            self.add(now, info)
            return
        old = flying[0].info
        flying[0].info = info
        for event in pod_events(TARGET_POD, old, info):
            self._events.append((event, old, info))

    def remove(self, uid: str, cause: str) -> None:
        """The pod leaves: from whichever store it is in; one in flight will not come back (SC-23, SC-24)."""
        entry = self._active.remove(uid) or self._backoff.remove(uid) or self._error_backoff.remove(uid)
        if entry is None and uid in self._unschedulable:
            entry = self._unpark(uid)
        if entry is None and uid in self._in_flight:
            entry = self._in_flight[uid][0]
            self.done(uid)
        if entry is not None:
            self._note("sch.dequeue", entry, "", cause)

    # ---- trying

    def pop(self, now: Instant) -> QueuedPod:
        """The pod to try now. It is in flight until ``done`` or ``park``."""
        if self._active:
            entry = self._active.pop()
        else:
            entry = self._backoff.pop()
            self._counted(ACTIVE, POP_FROM_BACKOFF)
        entry.attempts += 1
        if entry.first_tried is None:
            entry.first_tried = now
        entry.rejected_by = ()
        self._in_flight[entry.uid] = (entry, self._events_before + len(self._events))
        self._note("sch.pop", entry, IN_FLIGHT, "")
        self._effects.append(Step("S3"))
        return entry

    def done(self, uid: str) -> None:
        """The attempt is over and the pod needs no other."""
        if self._in_flight.pop(uid, None) is None:
            return
        oldest = next(iter(self._in_flight.values()), None)
        floor = oldest[1] if oldest is not None else self._events_before + len(self._events)
        while self._events_before < floor:
            self._events.popleft()
            self._events_before += 1

    def park(self, now: Instant, entry: QueuedPod, rejected_by: Iterable[str]) -> None:
        """The attempt failed. ``rejected_by``: the plugins that said no; none means an error, which is tried again by the clock."""
        flying = self._in_flight.get(entry.uid)
        if flying is None or flying[0] is not entry:
            return  # it left while it was being tried
        entry.rejected_by = tuple(dict.fromkeys(rejected_by))
        entry.timestamp = now
        if entry.rejected_by:
            entry.unschedulable_count += 1
            entry.consecutive_errors = 0
        else:
            entry.consecutive_errors += 1
        count = self._events_before + len(self._events) - flying[1]
        missed = list(itertools.islice(reversed(self._events), count))[::-1]
        self.done(entry.uid)
        is_woken = bool(entry.rejected_by) and any(self._wakes(entry, event, old, new) for event, old, new in missed)
        if not entry.rejected_by:
            self._into_backoff(entry, ATTEMPT_FAILED, error=True)
        else:
            # One that is woken on its way there never came to rest: it is counted where it goes.
            self._into_unschedulable(entry, "" if is_woken else ATTEMPT_FAILED)
        self._note("sch.park", entry, self.where(entry.uid), ",".join(entry.rejected_by) or "error")
        self._effects.append(Step("S9"))
        if is_woken:
            self._requeue(now, entry, ATTEMPT_FAILED)

    # ---- waking

    def move(self, now: Instant, event: ClusterEvent, old: object = None, new: object = None) -> None:
        """Something happened in the cluster: wake those whom it may help (SC-11)."""
        node = node_of(new if new is not None else old)
        names = ("", *self._interests.get((event.resource, event.action), {}))
        waiting = [(name, group) for name in names for group in self._parked.groups(name, node)]
        for name, group in waiting:
            if group and self._wakes(self._unschedulable[next(iter(group))], event, old, new, (name,)):
                for uid in list(group):
                    self._requeue(now, self._unschedulable[uid], event.label, node)
        if self._in_flight:
            self._events.append((event, old, new))

    def activate(self, now: Instant, uid: str) -> None:
        """Try the pod at once, whatever it waits for."""
        entry = self._backoff.remove(uid) or self._error_backoff.remove(uid)
        if entry is None and uid in self._unschedulable:
            entry = self._unpark(uid)
        if entry is not None:
            self._into_active(now, entry, FORCE_ACTIVATE.label)
            self._note("sch.wake", entry, self.where(uid), FORCE_ACTIVATE.label)
            self._effects.append(Step("S10"))
        elif uid in self._in_flight:
            self._events.append((FORCE_ACTIVATE, None, None))

    def reopen(self, now: Instant, uid: str) -> None:
        """A gate of the pod opened: if an event knocked in vain meanwhile, let the pod in."""
        entry = self._unschedulable.get(uid)
        if entry is not None and entry.gated_by:
            self._requeue(now, entry, FORCE_ACTIVATE.label)

    def flush(self, now: Instant) -> None:
        """Back-offs that ended become active; who has waited five minutes in vain is tried anyway (SC-6)."""
        for heap in (self._backoff, self._error_backoff):
            while (rank := heap.first_rank()) is not None and rank[0] < now // WINDOW:
                entry = heap.pop()
                self._into_active(now, entry, BACKOFF_COMPLETE)
        if self._last_flush is None:
            self._last_flush = now
        if now - self._last_flush < FLUSH_UNSCHEDULABLE:
            return
        self._last_flush = now
        for entry in list(self._unschedulable.values()):
            if now - entry.timestamp > UNSCHEDULABLE_MAX and not entry.gated_by:
                entry.flushed = True
                self._requeue(now, entry, UNSCHEDULABLE_TIMEOUT.label)

    # ---- inside

    def _wakes(self, entry: QueuedPod, event: ClusterEvent, old: object, new: object, asked: Sequence[str] = ()) -> bool:
        """Does somebody who rejected the pod (of those ``asked``, if any are named) believe that this helps? A pod behind a gate
        hears only of what its gate waits for, and then asks all.
        """
        if event.action is Action.WILDCARD or (not entry.rejected_by and not entry.gated_by):
            return True
        interested = self._interests.get((event.resource, event.action), {})
        if entry.gated_by and entry.gated_by not in interested:
            return False
        for name in asked if asked and not entry.gated_by else dict.fromkeys((*entry.rejected_by, entry.gated_by)):
            hints = interested.get(name, {})
            interest = hints.get(entry.info.pod.spec.scheduler_name) or hints.get(ANY_PROFILE)
            if interest is None:
                continue
            wakes = interest.hint is None or interest.hint(entry.info, old, new)
            self._hinted(name, event.label, "Queue" if wakes else "QueueSkip")
            if wakes:
                return True
        return False

    def _requeue(self, now: Instant, entry: QueuedPod, label: str, node: str = "") -> None:
        """Out of the unschedulable ones: after the rest of its back-off, or at once. ``node``: where something happened."""
        if entry.uid in self._unschedulable:
            self._unpark(entry.uid)
        if self._is_backing_off(entry, now):
            self._into_backoff(entry, label, error=False)
        else:
            self._into_active(now, entry, label)
        if entry.gated_by:
            self._note("sch.gate", entry, GATED, label)
            return
        self._note("sch.wake", entry, self.where(entry.uid), label, node)
        self._effects.append(Step("S10"))

    def _gate(self, entry: QueuedPod) -> Status | None:
        for plugin in self._pre_enqueues(entry.info):
            status = plugin.pre_enqueue(entry.info)
            if status is not None:
                return status
        return None

    def _is_held_back(self, entry: QueuedPod, label: str) -> bool:
        """Is a gate closed? Then the pod waits behind it."""
        status = self._gate(entry)
        entry.gated_by = status.plugin if status is not None else ""
        if status is not None:
            self._into_unschedulable(entry, label)
        return status is not None

    def _into_active(self, now: Instant, entry: QueuedPod, label: str) -> None:
        if self._is_held_back(entry, label):
            return
        self._active.push(entry.uid, (-entry.info.priority, entry.timestamp, entry.number), entry)
        self._counted(ACTIVE, label)

    def _into_backoff(self, entry: QueuedPod, label: str, error: bool) -> None:
        # Where a pod may be taken from here before its time, it has to pass the gates before it comes here (SC-8).
        if self._pops_from_backoff and self._is_held_back(entry, label):
            return
        entry.gated_by = ""
        rank = (self._backoff_ends(entry) // WINDOW, -entry.info.priority, entry.timestamp, entry.number)
        (self._error_backoff if error else self._backoff).push(entry.uid, rank, entry)
        self._counted(BACKOFF, label)

    def _into_unschedulable(self, entry: QueuedPod, label: str) -> None:
        self._unschedulable[entry.uid] = entry
        self._parked.add(entry.uid, self._places(entry))
        if label:
            self._counted(GATED if entry.gated_by else UNSCHEDULABLE, label)

    def _unpark(self, uid: str) -> QueuedPod:
        self._parked.remove(uid)
        return self._unschedulable.pop(uid)

    def _places(self, entry: QueuedPod) -> list[Place]:
        """Where it waits. One behind a gate asks for itself, since it asks more than its gate's plugin."""
        info = entry.info
        node = info.pod.spec.node_name
        if entry.gated_by:
            return [(entry.gated_by, node, entry.uid)]
        profile = info.pod.spec.scheduler_name
        places: list[Place] = []
        for name in entry.rejected_by or ("",):
            plugin = self._by_name.get((profile, name)) or self._by_name.get((ANY_PROFILE, name))
            alike = plugin.waits_for(info) if plugin is not None else None
            places.append((name, node, (profile, alike) if alike is not None else entry.uid))
        return places

    def _backoff_ends(self, entry: QueuedPod) -> int:
        return entry.timestamp + entry.backoff(*self._backoff_seconds)

    def _is_backing_off(self, entry: QueuedPod, now: Instant) -> bool:
        return entry.backoff() > 0 and self._backoff_ends(entry) // WINDOW >= now // WINDOW

    def _note(self, name: str, entry: QueuedPod, queue: str, cause: str, node: str = "") -> None:
        fields = {"pod": entry.info.key, "uid": entry.uid, "queue": queue, "cause": cause}
        fields["pod_node"] = entry.info.pod.spec.node_name
        if name == "sch.wake":
            fields["at"] = node
        self._effects.append(Note(name, fields))
