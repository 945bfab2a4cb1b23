"""CPUs that are given up later: the delay of a scale down (KEP-6122; SD-2 to SD-16, SD-20 to SD-25).

A container that is to shrink is told of its new set at once (``assigned``), so that it can move its threads, and loses the others
at the first tick of the CPU manager's loop after its delay. Until then its entry, the shared pool and its cgroup stay as they are,
so nobody else is given what it has not left. A further shrink replaces the first and waits anew; growing back to what it still has
calls it off.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from elbowroom.kubelet.managers.cpuset import CPUSet
from elbowroom.kubelet.managers.state import CPUState, Leaving
from elbowroom.kubelet.managers.static import StaticPolicy
from elbowroom.kubelet.previews.exclusive import Alignment, Ask, Barred, Change, resized
from elbowroom.machine import Instant


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a container has to leave its CPUs, and whether that is remembered."""

    delay_ns: int = 0
    boot: str = ""
    """The boot of the machine under a promise that its file keeps (design B); empty: the kubelet's own memory keeps it (A)."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """What a resize comes to: the state, what changed in it at once, and what is to leave later."""

    state: CPUState
    changed: tuple[Change, ...] = ()
    delayed: tuple[Change, ...] = ()


def scaled(
    policy: StaticPolicy, state: CPUState, uid: str, wanted: Iterable[Ask], alignment: Alignment, now: Instant, terms: Terms
) -> Scaled | Barred:
    """The resize of a pod at ``now``: growth is in force at once, a shrink when ``terms`` say so (SD-3, SD-6, SD-9, SD-10)."""
    wanted = tuple(wanted)
    found = resized(policy, state, uid, wanted, alignment, lingering=terms.delay_ns > 0)
    if isinstance(found, Barred):
        return found
    shrinking = tuple(change for change in found.changes if change.shrinks and terms.delay_ns)
    after = found.state
    for ask in wanted:
        after = after.without_leaving(uid, ask.container)
    for change in shrinking:
        due = Instant(now + terms.delay_ns)
        after = after.with_leaving(uid, change.container, Leaving(change.after, due, terms.boot))
    return Scaled(after, tuple(change for change in found.changes if change not in shrinking), shrinking)


def completed(state: CPUState, now: Instant) -> tuple[CPUState, tuple[tuple[str, Change], ...]]:
    """What a tick at ``now`` makes of the state: those whose time is over have left (SD-4), each told with its pod's uid."""
    done: list[tuple[str, Change]] = []
    for uid, containers in state.leaving.items():
        for container, leaving in containers.items():
            current = state.of(uid, container)
            if now >= leaving.due and current is not None:
                done.append((uid, Change(container, current, leaving.cpus)))
    for uid, change in done:
        state = _left(state, uid, change)
    return state, tuple(done)


def _left(state: CPUState, uid: str, change: Change) -> CPUState:
    state = state.without_leaving(uid, change.container).with_entry(uid, change.container, change.after)
    return state.with_default(state.default | change.before - change.after)


def assigned(state: CPUState, uid: str, container: str) -> CPUSet | None:
    """What the container is told that it has: what it is about to keep, or what it has; None without CPUs of its own (SD-12)."""
    leaving = state.leaving.get(uid, {}).get(container)
    return leaving.cpus if leaving is not None else state.of(uid, container)


def is_leaving(state: CPUState, uid: str) -> bool:
    """Does a container of the pod wait?"""
    return bool(state.leaving.get(uid))


def recovered(
    policy: StaticPolicy, state: CPUState, uid: str, wanted: Iterable[Ask], alignment: Alignment, now: Instant, terms: Terms
) -> Scaled:
    """What a kubelet that starts makes of the pod, whose allocation ``wanted`` asks for.

    A promise of this boot that still fits is kept as it was (SD-24); all else that does not fit the allocation is decided anew,
    with the full delay (SD-11). That also mends what a life that died between the two files left half done. What can't be mended
    stays.
    """
    wanted = tuple(wanted)
    asked = {ask.container: ask.count for ask in wanted}
    for container, leaving in state.leaving.get(uid, {}).items():
        fits = leaving.boot == terms.boot and asked.get(container) == len(leaving.cpus)
        current = state.of(uid, container)
        if not fits or current is None or not leaving.cpus <= current:
            state = state.without_leaving(uid, container)
    open_asks = [ask for ask in wanted if ask.container not in state.leaving.get(uid, {})]
    found = scaled(policy, state, uid, open_asks, alignment, now, terms)
    return Scaled(state) if isinstance(found, Barred) else found
