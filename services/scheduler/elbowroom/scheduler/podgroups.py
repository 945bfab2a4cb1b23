"""Pods that belong to a PodGroup, where the gate GenericWorkload is on: some can only go together (SC-110, SC-125, SC-129).

A *unit* is what preemption takes or leaves: a pod by itself, or with DisruptionMode All every pod of its group, on whatever nodes
they are. A group whose PodGroup is not known, or that does not say All, is made of pods that go one by one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.objects import ObjectMeta, Pod
from elbowroom.scheduler.cache import Snapshot
from elbowroom.scheduler.podinfo import PodInfo


class DisruptionMode(msgspec.Struct, frozen=True):
    single: dict[str, Any] | None = None
    all: dict[str, Any] | None = None


class Gang(msgspec.Struct, frozen=True, rename="camel"):
    min_count: int = 0


class SchedulingPolicy(msgspec.Struct, frozen=True):
    gang: Gang | None = None


class PodGroupSpec(msgspec.Struct, frozen=True, rename="camel"):
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    disruption_mode: DisruptionMode | None = None
    priority: int | None = None


class PodGroup(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()

    @property
    def min_count(self) -> int:
        """How many pods must have nodes before any is bound; 0 if they are bound one by one."""
        gang = self.spec.scheduling_policy.gang
        return gang.min_count if gang is not None else 0

    @property
    def goes_together(self) -> bool:
        return self.spec.disruption_mode is not None and self.spec.disruption_mode.all is not None


@dataclass(frozen=True, slots=True)
class Unit:
    """``pods``: all that go. ``here``: those of them on the node in question."""

    pods: tuple[PodInfo, ...]
    here: tuple[PodInfo, ...]
    priority: int
    is_group: bool

    def importance(self, now: int) -> tuple[int, ...]:
        """Smaller is more important: priority, groups before single pods, larger groups, and then who started first."""
        return (
            -self.priority,
            not self.is_group,
            -len(self.pods) if self.is_group else 0,
            min(info.started(now) for info in self.pods),
        )


class PodGroups:
    """``groups``: the PodGroups as last seen, by ``namespace/name``."""

    def __init__(self, groups: Mapping[str, PodGroup]) -> None:
        self._groups = groups
        self._members: dict[str, dict[str, None]] = {}

    def get(self, key: str) -> PodGroup | None:
        return self._groups.get(key)

    def members(self, key: str) -> list[str]:
        """The uids of a group's pods that are there, with a node or without."""
        return list(self._members.get(key, ()))

    def seen(self, old: Pod | None, new: Pod | None) -> None:
        """A pod came, changed or went."""
        if old is not None and new is not None and old.uid == new.uid:
            return
        for pod, is_there in ((old, False), (new, True)):
            key = key_of(pod) if pod is not None else ""
            if pod is None or not key:
                continue
            if is_there:
                self._members.setdefault(key, {})[pod.uid] = None
            else:
                mine = self._members[key]
                mine.pop(pod.uid, None)
                if not mine:
                    del self._members[key]

    def _of(self, info: PodInfo) -> tuple[str, PodGroup] | None:
        """The group that takes the pod along, with its key."""
        key = group_key(info)
        group = self._groups.get(key) if key else None
        return (key, group) if group is not None and group.goes_together else None

    def units(self, snapshot: Snapshot, there: Iterable[PodInfo]) -> list[Unit]:
        """The units that pods of one node belong to. A unit is as important as the group says, and as its most important pod: who
        goes with it is less important than the preemptor, too (SC-127)."""
        found: list[Unit] = []
        here: dict[str, list[PodInfo]] = {}
        groups: dict[str, PodGroup] = {}
        for info in there:
            together = self._of(info)
            if together is None:
                found.append(Unit((info,), (info,), info.priority, bool(group_key(info))))
            else:
                here.setdefault(together[0], []).append(info)
                groups[together[0]] = together[1]
        for key, mine in here.items():
            members = [info for node in snapshot.nodes for info in node.pods.values() if group_key(info) == key]
            priority = max(groups[key].spec.priority or 0, *(info.priority for info in members))
            found.append(Unit(tuple(members), tuple(mine), priority, is_group=True))
        return found


def group_key(info: PodInfo) -> str:
    """``namespace/name`` of the PodGroup that the pod names; empty if it names none."""
    return key_of(info.pod)


def key_of(pod: Pod) -> str:
    """The same of a pod as it is seen."""
    group = pod.spec.scheduling_group
    return f"{pod.metadata.namespace}/{group.pod_group_name}" if group is not None and group.pod_group_name else ""


def violating_units(ordered: Sequence[Unit], violates: Callable[[Sequence[PodInfo]], frozenset[str]]) -> list[Unit]:
    """The units of which some pod's going would break a budget, if all of these went in this order."""
    broken = violates([info for unit in ordered for info in unit.pods])
    return [unit for unit in ordered if any(info.uid in broken for info in unit.pods)]
