"""Telling victims to go, beside the scheduling of other pods (SC-116 to SC-122).

A round first takes back the nominations of less important pods on the node. Then every victim gets its condition and is
deleted: all but the least important side by side, the least important only after the others succeeded, so that its going, which
wakes the preemptor, means that all room is on its way. An error spares the last one and the preemptor is tried again.

A lost reply says nothing. Then the informer is looked at: a victim that is gone or ending was deleted; else the call, which may be
repeated without harm, is made again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from elbowroom.api.clock import as_time
from elbowroom.api.objects import Pod
from elbowroom.machine import Effect, Instant, Note, Step, seconds
from elbowroom.rpc import Calls, Finished, delete, patch
from elbowroom.scheduler.podinfo import PodInfo
from elbowroom.scheduler.podstatus import with_condition
from elbowroom.scheduler.recorder import Recorder

REASON = "PreemptionByScheduler"
RETRY_SECONDS = 0.2
TRIES_MAX = 8


@dataclass(frozen=True, slots=True)
class VictimCall:
    """The context of a call about one victim of a round."""

    round: int
    victim: str
    stage: str
    """``condition`` or ``delete``."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A round is over."""

    preemptor: PodInfo
    ok: bool
    started: Instant


@dataclass(slots=True)
class _Victim:
    info: PodInfo
    number: int
    stage: str = "condition"
    tries: int = 0
    is_told: bool = False
    """Was its deletion asked for, whatever became of the call?"""


@dataclass(slots=True)
class _Round:
    number: int
    preemptor: PodInfo
    node: str
    waiting: dict[str, _Victim]
    """Victims under way, by uid."""
    last: _Victim | None
    """The least important, until the others are done."""
    last_uid: str
    started: Instant
    failed: bool = False


class Actuator:
    """The rounds under way. ``seen`` gives a pod by its key as the informer shows it; ``called_off`` takes back the placement of a
    pod that only waits to be bound, and says whether there was one to take back.
    """

    def __init__(
        self,
        calls: Calls,
        recorder: Recorder,
        seen: Callable[[str], Pod | None],
        called_off: Callable[[Instant, str], bool] = lambda now, uid: False,
    ) -> None:
        self._calls = calls
        self._recorder = recorder
        self._seen = seen
        self._called_off = called_off
        self._rounds: dict[int, _Round] = {}
        self._by_preemptor: dict[str, int] = {}
        self._by_last: dict[str, dict[int, None]] = {}
        """The rounds that a victim is the last of."""
        self._again: dict[tuple[int, str], Instant] = {}
        """When the lost calls are looked into, by round and victim."""
        self._count = 0

    def __len__(self) -> int:
        return len(self._rounds)

    def is_preempting(self, uid: str) -> bool:
        """Must the preemptor still wait (SC-118)? No longer once its last victim is seen gone or ending."""
        number = self._by_preemptor.get(uid)
        if number is None:
            return False
        round_ = self._rounds[number]
        if round_.last is not None or list(round_.waiting) != [round_.last_uid]:
            return True
        return not self._is_going(round_.waiting[round_.last_uid].info)

    def awaiting(self, victim: str) -> list[str]:
        """The preemptors that wait for no more than that one's going, now that it is seen gone."""
        return [self._rounds[number].preemptor.uid for number in self._by_last.get(victim, {})]

    def begin(
        self, now: Instant, preemptor: PodInfo, node: str, victims: Sequence[PodInfo], nominated: Sequence[PodInfo]
    ) -> tuple[list[Effect], list[Ended]]:
        """Start a round. ``victims``: the most important first; those that are ending already get no call, and where nobody else
        is left nothing happens at all (SC-117).
        """
        effects: list[Effect] = []
        living = [info for info in victims if not info.pod.is_terminating]
        if not living or preemptor.uid in self._by_preemptor:
            return effects, []
        for other in nominated:
            if other.pod.status.nominated_node_name:
                effects += self._withdraw(now, other)
        self._count += 1
        ordered = [_Victim(info, index + 1) for index, info in enumerate(living)]
        *others, last = ordered
        round_ = _Round(self._count, preemptor, node, {}, last, last.info.uid, now)
        self._rounds[self._count] = round_
        self._by_preemptor[preemptor.uid] = self._count
        self._by_last.setdefault(last.info.uid, {})[self._count] = None
        for victim in others:
            round_.waiting[victim.info.uid] = victim
            effects += self._mark(now, round_, victim)
        if not others:
            effects += self._last(now, round_)
        return effects, self._end(round_)

    def due(self) -> Instant | None:
        """When a lost call is to be looked into."""
        return min(self._again.values()) if self._again else None

    def on_time(self, now: Instant) -> tuple[list[Effect], list[Ended]]:
        """Look into the calls whose outcome is not known."""
        effects: list[Effect] = []
        ended: list[Ended] = []
        for number, uid in [place for place, at in self._again.items() if at <= now]:
            del self._again[number, uid]
            round_ = self._rounds[number]
            victim = round_.waiting[uid]
            if self._is_going(victim.info):
                effects += self._gone(now, round_, victim, was_ours=victim.is_told)
            elif victim.tries >= TRIES_MAX:
                effects += self._settle(now, round_, victim, ok=False)
            elif victim.stage == "condition":
                effects += self._mark(now, round_, victim)
            else:
                effects += self._delete(now, round_, victim)
            ended += self._end(round_)
        return effects, ended

    def on_reply(self, now: Instant, call: VictimCall, finished: Finished) -> tuple[list[Effect], list[Ended]]:
        """A call about a victim ended."""
        round_ = self._rounds.get(call.round)
        victim = round_.waiting.get(call.victim) if round_ is not None else None
        if round_ is None or victim is None or victim.stage != call.stage:
            return [], []
        status = finished.api().status
        effects: list[Effect] = []
        if status == 404:
            # It went by itself, unless an earlier deletion of ours, whose reply was lost, did it.
            was_ours = call.stage == "delete" and victim.tries > 0
            effects += [Step(f"S8.{victim.number}")] if call.stage == "delete" else []
            effects += self._gone(now, round_, victim, was_ours=was_ours)
        elif 200 <= status < 300:
            if call.stage == "condition":
                effects += self._delete(now, round_, victim)
            else:
                effects += [Step(f"S8.{victim.number}"), *self._gone(now, round_, victim, was_ours=True)]
        elif (status == 0 and not finished.code.definite) or status >= 500 or status in (409, 429):
            victim.tries += 1
            self._again[call.round, call.victim] = Instant(now + seconds(RETRY_SECONDS * 2 ** min(victim.tries - 1, 4)))
        elif self._is_going(victim.info):
            effects += self._gone(now, round_, victim, was_ours=False)
        else:
            reason = {"victim": victim.info.key, "stage": call.stage, "status": status, "message": finished.message}
            effects.append(Note("sch.preempt.failed", reason))
            effects += self._settle(now, round_, victim, ok=False)
        return effects, self._end(round_)

    # ---- inside

    def _is_going(self, info: PodInfo) -> bool:
        pod = self._seen(info.key)
        return pod is None or pod.uid != info.uid or pod.is_terminating

    def _withdraw(self, now: Instant, info: PodInfo) -> list[Effect]:
        pod = info.pod
        request = patch(
            "pods",
            pod.metadata.name,
            {"status": {"nominatedNodeName": None}},
            namespace=pod.metadata.namespace,
            subresource="status",
        )
        return self._calls.api(now, request, context=None)

    def _mark(self, now: Instant, round_: _Round, victim: _Victim) -> list[Effect]:
        """PATCH the condition, unless it says so already. Who only waits to be bound loses its place, and nothing else (SC-122)."""
        pod = victim.info.pod
        if victim.stage == "condition" and not victim.tries and self._called_off(now, pod.uid):
            return self._gone(now, round_, victim, was_ours=True, suffix=" (in kube-scheduler memory).")
        message = f"{round_.preemptor.pod.spec.scheduler_name}: preempting to accommodate a higher priority pod"
        known = pod.condition("DisruptionTarget")
        if known is not None and (known.status, known.reason, known.message) == ("True", REASON, message):
            return self._delete(now, round_, victim)
        changed = known is None or known.status != "True"
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": REASON,
            "message": message,
            "observedGeneration": pod.metadata.generation,
            "lastProbeTime": None,
            "lastTransitionTime": as_time(now) if changed or known is None else known.last_transition_time,
        }
        request = patch(
            "pods",
            pod.metadata.name,
            {"metadata": {"uid": pod.uid}, "status": with_condition(pod, condition)},
            namespace=pod.metadata.namespace,
            subresource="status",
        )
        victim.stage = "condition"
        call = VictimCall(round_.number, pod.uid, "condition")
        return [*self._calls.api(now, request, context=call), Step(f"S6.{victim.number}")]

    def _delete(self, now: Instant, round_: _Round, victim: _Victim) -> list[Effect]:
        """DELETE with empty options: the pod's own grace period applies."""
        pod = victim.info.pod
        victim.stage = "delete"
        call = VictimCall(round_.number, pod.uid, "delete")
        facts = {
            "victim": pod.key,
            "uid": pod.uid,
            "node": round_.node,
            "preemptor": round_.preemptor.key,
            "preemptorUid": round_.preemptor.uid,
            "generation": round_.preemptor.pod.metadata.generation,
        }
        request = delete("pods", pod.metadata.name, namespace=pod.metadata.namespace)
        said = [] if victim.is_told else [Note("sch.delete", facts)]
        victim.is_told = True
        return [*said, *self._calls.api(now, request, context=call), Step(f"S7.{victim.number}")]

    def _gone(self, now: Instant, round_: _Round, victim: _Victim, was_ours: bool, suffix: str = "") -> list[Effect]:
        """The victim is gone or ending. Only where we did it (or may have) it is told so (SC-120)."""
        effects: list[Effect] = []
        if was_ours:
            text = f"Preempted by pod {round_.preemptor.uid} on node {round_.node}{suffix}"
            effects += self._recorder.tell(
                now, victim.info.pod, "Normal", "Preempted", "Preempting", text, related=round_.preemptor.pod
            )
        return effects + self._settle(now, round_, victim, ok=True)

    def _settle(self, now: Instant, round_: _Round, victim: _Victim, ok: bool) -> list[Effect]:
        del round_.waiting[victim.info.uid]
        round_.failed = round_.failed or not ok
        if round_.waiting or round_.last is None:
            return []
        if round_.failed:
            round_.last = None  # spared
            return []
        return self._last(now, round_)

    def _last(self, now: Instant, round_: _Round) -> list[Effect]:
        last, round_.last = round_.last, None
        assert last is not None, "the last victim is told once"
        if self._is_going(last.info):
            return []
        round_.waiting[last.info.uid] = last
        return self._mark(now, round_, last)

    def _end(self, round_: _Round) -> list[Ended]:
        if round_.waiting or round_.last is not None or round_.number not in self._rounds:
            return []
        del self._rounds[round_.number]
        del self._by_preemptor[round_.preemptor.uid]
        rounds = self._by_last[round_.last_uid]
        del rounds[round_.number]
        if not rounds:
            del self._by_last[round_.last_uid]
        return [Ended(round_.preemptor, not round_.failed, round_.started)]
