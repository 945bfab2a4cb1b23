"""What several checkers read out of records: the writes in order, vectors of resources, shares."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from elbowroom.api import quantity
from elbowroom.history.records import History, Record, Violation

Invariant = Callable[[History], Iterator[Violation]]
RESOURCES = ("cpu", "memory")
PARTS = ("requests", "limits")
SECOND = 1_000_000_000
ENDED = ("Succeeded", "Failed")
OWN_USERS = ("system:apiserver", "system:kube-controller-manager", "system:kube-scheduler")


def commits(history: History) -> Sequence[Record]:
    """The writes that became durable, in the order of their revisions.

    An API server that dies between a commit and its record leaves none; the next one tells the tail of its log again (verb
    ``recovered``), which counts where there is no record from the time. A store in memory begins anew with each life.
    """
    return history.remembered("commits", lambda: tuple(record for _, record in commits_by_life(history)))


def commits_by_life(history: History) -> Sequence[tuple[int, Record]]:
    """``commits``, each with the number of the store's life that it was made in."""
    return history.remembered("commits by life", lambda: _commits_by_life(history))


def _commits_by_life(history: History) -> Sequence[tuple[int, Record]]:
    known: dict[tuple[int, int], Record] = {}
    life = 0
    for record in history.kinds("commit", "wal.recovered"):
        if record["kind"] == "wal.recovered":
            life += forgets(record)
        elif record["verb"] == "recovered":
            known.setdefault((life, record["rev"]), record)
        else:
            known[life, record["rev"]] = record
    return tuple((place[0], known[place]) for place in sorted(known))


def is_of_the_cluster(commit: Record) -> bool:
    """Was it written by a component of the control plane or by a kubelet? Of what is read anew at a start nobody knows."""
    user = commit["user"]
    return commit["verb"] == "recovered" or user.startswith("system:node:") or user in OWN_USERS


def forgets(recovered: Record) -> bool:
    """Did the API server begin with a store in memory, which knows nothing of what was before?"""
    return not recovered.get("durable", True)


def vector_of(containers: Mapping[str, Any]) -> dict[str, dict[str, dict[str, int]]]:
    """Container name -> requests/limits -> resource -> exact amount; absent and zero are the same."""
    return {
        name: {
            part: {r: amount for r in RESOURCES if (amount := amount_of(r, (resources.get(part) or {}).get(r)))} for part in PARTS
        }
        for name, resources in containers.items()
    }


@lru_cache(maxsize=65_536)
def amount_of(resource: str, text: str | None) -> int:
    """cpu in milli, everything else in whole units. (A history says the same few texts again and again.)"""
    if text is None:
        return 0
    return quantity.milli_of(text) if resource == "cpu" else quantity.value_of(text)


def shares_of(milli: int) -> int:
    """RC-120."""
    return 2 if milli == 0 else min(262144, max(2, milli * 1024 // 1000))


def figure_of(commit: Record, resource: str, *, as_a_whole: bool = True) -> int | None:
    """max(desired unless Infeasible, allocated, actual), each a sum over containers, or what the kubelet says of the pod as a whole
    if it says both (SC-49) and ``as_a_whole``; None where more than containers counts."""
    obj = commit["obj"]
    if not obj.get("plain"):
        return None
    infeasible = obj.get("pending") == "Infeasible"
    desired = allocated = actual = 0
    for name, resources in obj["containers"].items():
        spec = resources.get("requests") or {}
        told = obj.get("figures", {}).get(name) or {}
        granted = told.get("allocated") or ({} if infeasible else spec)
        running = told.get("actual") or granted
        desired += amount_of(resource, spec.get(resource))
        allocated += amount_of(resource, granted.get(resource))
        actual += amount_of(resource, running.get(resource))
    if not obj["node"]:
        return desired
    level = (obj.get("level") or {}) if as_a_whole else {}
    if level.get("allocated") and level.get("actual"):
        allocated, actual = (amount_of(resource, level[what].get(resource)) for what in ("allocated", "actual"))
    return max(allocated, actual) if infeasible else max(desired, allocated, actual)
