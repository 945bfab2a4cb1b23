"""Topology hints and how the topology manager merges them (RM-6 to RM-9).

A hint is a set of NUMA nodes (bit n is node n) on which a request could be met; ``preferred`` says that it could not be met on
fewer. Each provider gives, for each of its resources, a list of hints, an empty list for "nowhere", or None for "anywhere".
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
SCOPES = ("container", "pod")


@dataclass(frozen=True, slots=True)
class Hint:
    """See the module; no affinity means that any node will do."""

    affinity: int | None = None
    preferred: bool = False


Hints = Mapping[str, Sequence[Hint] | None] | None
"""What a provider gives: hints by resource."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The best hint, and whether the policy lets the pod in with it."""

    hint: Hint
    admitted: bool


def merge(policy: str, nodes: Iterable[int], providers: Iterable[Hints]) -> Merged:
    """The best of what all providers can agree on, under a policy of ``POLICIES`` other than ``none``."""
    every = sum(1 << node for node in nodes)
    lists = _lists(providers)
    if policy == "single-numa-node":
        lists = [[h for h in hints if h.preferred and (h.affinity is None or h.affinity.bit_count() == 1)] for hints in lists]
    best = _best(every, lists)
    if policy == "single-numa-node" and best.affinity == every:
        best = Hint(None, best.preferred)
    return Merged(best, policy == "best-effort" or best.preferred)


def _lists(providers: Iterable[Hints]) -> list[list[Hint]]:
    found: list[list[Hint]] = []
    for provider in providers:
        if not provider:
            found.append([Hint(None, True)])
        for hints in (provider or {}).values():
            found.append([Hint(None, True)] if hints is None else list(hints) or [Hint(None, False)])
    return found


def _best(every: int, lists: Sequence[Sequence[Hint]]) -> Hint:
    """Preferred before others; then the narrowest mask, the lowest nodes of equally narrow ones. Of masks that nobody prefers, the
    one that comes nearest to what the most demanding provider needs at least."""
    least = max((_narrowest(hints) for hints in lists), default=0)
    best: Hint | None = None
    for permutation in itertools.product(*lists):
        candidate = _merged(every, permutation)
        if candidate.affinity:
            best = candidate if best is None else _better(best, candidate, least)
    return best or Hint(every, False)


def _narrowest(hints: Iterable[Hint]) -> int:
    return min((hint.affinity.bit_count() for hint in hints if hint.affinity is not None), default=0)


def _merged(every: int, permutation: Sequence[Hint]) -> Hint:
    affinities = [hint.affinity for hint in permutation if hint.affinity is not None]
    merged = every
    for affinity in affinities:
        merged &= affinity
    preferred = all(hint.preferred for hint in permutation) and len(set(affinities)) <= 1
    return Hint(merged, preferred)


def _width(hint: Hint) -> int:
    return (hint.affinity or 0).bit_count()


def _narrower(current: Hint, candidate: Hint) -> Hint:
    return candidate if (_width(candidate), candidate.affinity or 0) < (_width(current), current.affinity or 0) else current


def _better(current: Hint, candidate: Hint, least: int) -> Hint:
    if current.preferred != candidate.preferred:
        return candidate if candidate.preferred else current
    if current.preferred:
        return _narrower(current, candidate)
    had, has = _width(current), _width(candidate)
    if had > least or has == had:
        return _narrower(current, candidate)
    if had == least or has > least:
        return current
    return candidate if has > had else current
