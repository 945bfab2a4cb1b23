"""What a resize makes of a container's exclusive CPUs (KEP-5554; XC-40 to XC-59).

A container that grows keeps all that it has, one that shrinks stays within that and keeps what it was first given, its *original*
CPUs. Containers are served in the order of the spec, on what is free at their turn; one that can't be served bars the whole pod's
resize, which is Infeasible then and tried again only when the spec changes (XC-45, XC-47).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from elbowroom.api.objects import Container, Pod
from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet
from elbowroom.kubelet.managers.hints import Hint, Hints, merge
from elbowroom.kubelet.managers.state import CPUState
from elbowroom.kubelet.managers.static import Refused, StaticPolicy, guaranteed_cpus

NO_LOCALITY = "Resources cannot be allocated with Topology locality"


@dataclass(frozen=True, slots=True)
class Ask:
    """What one container is to have. Counts are of exclusive CPUs; 0 is the shared pool."""

    container: str
    count: int
    had: int
    """By what was allocated so far."""
    requested: str = ""
    allocated: str = ""
    """The cpu requests as they are written, for messages."""
    passing: bool = False
    """An ordinary init container: once it has ended it has nothing that could be resized."""


@dataclass(frozen=True, slots=True)
class Change:
    """From ``before`` to ``after``, a container's own CPUs."""

    container: str
    before: CPUSet
    after: CPUSet

    @property
    def shrinks(self) -> bool:
        return len(self.after) < len(self.before)


@dataclass(frozen=True, slots=True)
class Resized:
    """It can be. ``state`` has the changes in force; ``changes`` are those that make a difference, in spec order."""

    state: CPUState
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Barred:
    """It can't be. ``error`` is the design's name for why (XC-45), with which the message begins."""

    error: str
    why: str

    @property
    def message(self) -> str:
        return f"{self.error} Error: {self.why}"


@dataclass(frozen=True, slots=True)
class Alignment:
    """The topology manager's part: its policy and scope, and what the other resources' managers say of each container."""

    policy: str = "none"
    per_pod: bool = False
    others: Mapping[str, Hints] | None = None
    """By container; for a decision of the whole pod, under ``""``."""


def asks(wanted: Pod, allocated: Pod, *, pod_level_managers: bool) -> tuple[Ask, ...]:
    """What the resize from ``allocated`` to ``wanted`` asks of each container, in spec order."""
    before = {c.name: c for c in [*allocated.spec.init_containers, *allocated.spec.containers]}

    def counted(pod: Pod, container: Container) -> int:
        return guaranteed_cpus(pod, container, pod_level_managers=pod_level_managers)

    return tuple(
        Ask(
            c.name,
            counted(wanted, c),
            counted(allocated, before[c.name]),
            c.resources.requests.get("cpu", "0"),
            before[c.name].resources.requests.get("cpu", "0"),
            passing=c in wanted.spec.init_containers and not c.is_sidecar,
        )
        for c in [*wanted.spec.init_containers, *wanted.spec.containers]
        if c.name in before
    )


def resized(
    policy: StaticPolicy, state: CPUState, uid: str, wanted: Iterable[Ask], alignment: Alignment, *, lingering: bool = False
) -> Resized | Barred:
    """Serve the containers of the pod ``uid`` one after the other.

    ``lingering``: those that shrink have not left yet what they give up; their changes are told and not in force.
    """
    wanted = tuple(wanted)
    barred = _barred(state, uid, wanted)
    if barred is not None:
        return barred
    served = [ask for ask in wanted if ask.count and state.of(uid, ask.container) is not None]
    whole: int | None = None
    if alignment.per_pod and alignment.policy != "none" and any(len(_own(state, uid, ask)) != ask.count for ask in served):
        found = _pod_affinity(policy, state, uid, served, alignment)
        if isinstance(found, Barred):
            return found
        whole = found
    after, changes = state, list[Change]()
    for ask in served:
        current = _own(after, uid, ask)
        if ask.count == len(current):
            continue
        affinity = whole
        if not alignment.per_pod and alignment.policy != "none":
            found = _affinity(policy, after, uid, ask, alignment)
            if isinstance(found, Barred):
                return found
            affinity = found
        original = state.original(uid, ask.container) or NOBODY
        made = policy.resized(after, uid, ask.container, ask.count, original, affinity)
        if isinstance(made, Refused):
            return _failed(made.message)
        changes.append(Change(ask.container, current, made.cpus))
        if not (lingering and changes[-1].shrinks):
            after = made.state
    return Resized(after, tuple(changes))


def _own(state: CPUState, uid: str, ask: Ask) -> CPUSet:
    return state.of(uid, ask.container) or NOBODY


def _failed(why: str) -> Barred:
    return Barred("resizeAllocateCPUs", why)


def _barred(state: CPUState, uid: str, wanted: Iterable[Ask]) -> Barred | None:
    """XC-42, XC-44: what no choice of CPUs could change."""
    for ask in wanted:
        quoted = f"(requested CPUs = {ask.requested}, allocated CPUs = {ask.allocated}"
        if bool(ask.count) != bool(ask.had):
            pools = ("shared pool", "exclusively allocated pool")
            source, target = pools if ask.count else reversed(pools)
            return Barred("inconsistentCPUAllocation", f"Not allowed to move a container from {source} to {target}, {quoted})")
        current = state.of(uid, ask.container)
        if not ask.count or (current is None and ask.passing) or (current is not None and len(current) == ask.count):
            continue
        original = state.original(uid, ask.container)
        if current is None or original is None:
            return Barred("getOriginalCPUSet", f"Cannot get original CPUs of container {ask.container}, {quoted})")
        if ask.count < len(original):
            return Barred(
                "prohibitedCPUAllocation",
                "Skip resize, Not allowed to reduce container exclusively allocated pool below promised, "
                f"{quoted}, promised CPUs = {len(original)}, guaranteed CPUs = {ask.count})",
            )
    return None


# ---------------------------------------------------------------- where


def _affinity(policy: StaticPolicy, state: CPUState, uid: str, ask: Ask, alignment: Alignment) -> int | Barred | None:
    """XC-51, XC-52: a grown set's nodes include all that it has, a shrunk one's those of the original set."""
    current = _own(state, uid, ask)
    original = state.original(uid, ask.container) or NOBODY
    grows = ask.count > len(current)
    found = policy.hints(policy.available(state), current, ask.count) if grows else policy.hints(current, original, ask.count)
    return _merged(policy, found, (alignment.others or {}).get(ask.container), alignment.policy)


def _pod_affinity(
    policy: StaticPolicy, state: CPUState, uid: str, served: Iterable[Ask], alignment: Alignment
) -> int | Barred | None:
    served = list(served)
    total = sum(ask.count for ask in served)
    current, original = 0, 0
    for ask in served:
        current |= _own(state, uid, ask).bits
        original |= (state.original(uid, ask.container) or NOBODY).bits
    if total >= current.bit_count():
        found = policy.hints(policy.available(state), CPUSet(current), total)
    else:
        found = policy.hints(CPUSet(current), CPUSet(original), total)
    return _merged(policy, found, (alignment.others or {}).get(""), alignment.policy)


def _merged(policy: StaticPolicy, found: list[Hint], others: Hints, topology_policy: str) -> int | Barred | None:
    merged = merge(topology_policy, policy.topology.numas, ({"cpu": found}, *((others,) if others else ())))
    return merged.hint.affinity if merged.admitted else _failed(NO_LOCALITY)


# ---------------------------------------------------------------- a released kubelet


@dataclass(frozen=True, slots=True)
class HeldBack:
    """XC-31: its managers refuse a resize that they don't know how to carry out."""

    reason: str
    message: str


def held_back(policy: StaticPolicy, state: CPUState, uid: str, wanted: Iterable[Ask], topology_policy: str) -> HeldBack | None:
    """XC-30: with the gate on, a released kubelet grants the resize and leaves the CPUs as they are; unless whole cores are asked
    for, or a topology policy is strict, which finds no hint for a set of another size."""
    for ask in wanted:
        current = state.of(uid, ask.container)
        if current is None or not ask.count:
            continue
        misaligned = policy.misaligned(state, ask.count, current)
        if misaligned is not None:
            return HeldBack(misaligned.reason, misaligned.message)
        if len(current) != ask.count and topology_policy in ("restricted", "single-numa-node"):
            return HeldBack("TopologyAffinityError", NO_LOCALITY)
    return None
