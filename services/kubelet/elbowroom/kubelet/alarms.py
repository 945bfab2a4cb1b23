"""When what is to be looked at: one timer of the kubelet for any number of times that somebody asks for."""

from elbowroom.cache import WorkQueue
from elbowroom.machine import Instant, SetTimer

TIMER = "kubelet/work"


class Alarms:
    """Each is of a kind (a worker's, a status patch's) and names somebody; of two for the same the earlier one counts."""

    def __init__(self) -> None:
        self._work = WorkQueue()
        self._armed: Instant | None = None

    def put(self, kind: str, name: str, at: Instant) -> None:
        """Look at ``name`` at that time, or earlier if that was asked for."""
        self._work.add_at(f"{kind}/{name}", at)

    def taken(self, now: Instant) -> list[tuple[str, str]]:
        """The timer fired: kind and name of all that are due, in the order in which they became so."""
        self._armed = None
        found = []
        for key in self._work.ready(now):
            kind, _, name = key.partition("/")
            found.append((kind, name))
        return found

    def timer(self, now: Instant) -> list[SetTimer]:
        """What makes the timer right, if it is not."""
        due = self._work.due()
        if due == self._armed:
            return []
        self._armed = due
        return [SetTimer(TIMER, None if due is None else max(due, now))]
