"""How long the containers of a pod that is to end have for it."""

from dataclasses import dataclass

from elbowroom.api.objects import Pod
from elbowroom.machine import Instant, parse_time, seconds


@dataclass(frozen=True, slots=True)
class Ending:
    """The pod is to end. ``by`` is when its deletion says so; None: so many seconds after each container is told."""

    grace_seconds: float
    by: Instant | None = None

    def left(self, now: Instant) -> float:
        """Seconds that a container told now has."""
        if self.by is None:
            return self.grace_seconds
        return max(0.0, min(self.grace_seconds, (self.by - now) / 1e9))


def by_deletion(pod: Pod) -> Ending:
    """As the deletion of the pod in the API server says."""
    meta = pod.metadata
    grace = meta.deletion_grace_period_seconds
    if grace is None:
        grace = pod.spec.termination_grace_period_seconds
    # deletionTimestamp has whole seconds, rounded down.
    by = Instant(parse_time(meta.deletion_timestamp) + seconds(1)) if meta.deletion_timestamp and grace else None
    return Ending(float(max(0, grace)), by)
