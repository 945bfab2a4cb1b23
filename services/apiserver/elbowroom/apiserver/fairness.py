"""How many requests somebody may make: a token bucket for each user, by what kind of user it is.

It is upstream's API priority and fairness in small: administrators are exempt, as are probes of health; nodes, the scheduler and
the controllers have more than a person needs; strangers share one bucket. Who has used up theirs is refused with 429, and nobody
else notices. On the bus nothing is counted: its peers are the cluster's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from elbowroom.apiserver import authorizer
from elbowroom.apiserver.identity import ANONYMOUS, MASTERS, UNAUTHENTICATED, Identity

FLOWS_MAX = 4096
BYTES_A_REQUEST = {"answer": 128 * 1024, "json": 8 * 1024, "yaml": 512}
"""So many bytes count as one more request: lists of everything are dearer than looks at one object, and three megabytes of
JSON, or a quarter of one of YAML, may keep the server busy for most of a second."""


@dataclass(frozen=True, slots=True)
class Level:
    """Requests a second in the long run, and how many at once."""

    rate: float
    burst: float


SYSTEM = Level(1000.0, 2000.0)
WORKLOAD = Level(200.0, 400.0)
STRANGERS = Level(50.0, 100.0)


def level_of(user: str, groups: Sequence[str]) -> Level | None:
    """The level of a user; None for those who are exempt."""
    if MASTERS in groups:
        return None
    if authorizer.NODES in groups or user in (authorizer.SCHEDULER, authorizer.CONTROLLERS):
        return SYSTEM
    if UNAUTHENTICATED in groups:
        return STRANGERS
    return WORKLOAD


class _Bucket:
    __slots__ = ("at", "level", "tokens")

    def __init__(self, level: Level, at: float) -> None:
        self.level, self.at, self.tokens = level, at, level.burst

    def fill(self, now: float) -> None:
        self.tokens = min(self.level.burst, self.tokens + max(0.0, now - self.at) * self.level.rate)
        self.at = now


class Buckets:
    """The buckets of all users; times are seconds of a clock that does not jump."""

    def __init__(self) -> None:
        self._flows: dict[str, _Bucket] = {}

    def wait(self, now: float, who: Identity = ANONYMOUS) -> float:
        """0 if the request may pass, which it is then charged for; else the seconds after which one may."""
        level = level_of(who.user, who.groups)
        if level is None:
            return 0.0
        bucket = self._of(now, who.user if level is not STRANGERS else "", level)
        bucket.fill(now)
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) / level.rate
        bucket.tokens -= 1.0
        return 0.0

    def charge(self, now: float, who: Identity, size: int, what: str = "answer") -> None:
        """``size`` bytes of such a kind went to or fro. What they cost may be owed, and is waited for."""
        if size < BYTES_A_REQUEST[what]:
            return
        level = level_of(who.user, who.groups)
        if level is not None:
            bucket = self._of(now, who.user if level is not STRANGERS else "", level)
            bucket.fill(now)
            bucket.tokens = max(-level.burst, bucket.tokens - size / BYTES_A_REQUEST[what])

    def _of(self, now: float, flow: str, level: Level) -> _Bucket:
        found = self._flows.pop(flow, None)
        if found is None or found.level is not level:
            found = _Bucket(level, now)
            if len(self._flows) >= FLOWS_MAX:
                # The one that was quiet longest: its bucket is the fullest, so forgetting it gives nobody anything.
                del self._flows[next(iter(self._flows))]
        self._flows[flow] = found
        return found
