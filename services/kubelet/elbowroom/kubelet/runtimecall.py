"""A pod's one runtime call in flight: asked again while its answer may just be lost, given up when nobody can be waited for."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from elbowroom.kubelet.metrics import Metrics, operation_type
from elbowroom.kubelet.resizer import Done, Failed
from elbowroom.machine import Instant, seconds
from elbowroom.rpc import Finished
from elbowroom.wire import Code

LONG_CALLS = ("StartContainer", "UpdateContainerResources")
SUSPECT_SECONDS = 1.0
"""So long after the event that tells of its success an answer is believed lost."""
ASK_AGAIN_SECONDS = 5.0


class _Call(Struct, frozen=True):
    """What it is, and what its answer means."""

    method: str
    body: Any
    container: str
    done: Done
    failed: Failed
    until: Instant
    """When the kubelet gives up; until then an unanswered call is asked again."""


class RuntimeCall:
    """``send`` makes a call (now, method, body, timeout in seconds); ``doubt`` hears that what the runtime has is uncertain.

    ``token`` is that of the call in flight; an answer to an earlier one interests nobody.
    """

    __slots__ = (
        "_call",
        "_doubt",
        "_metrics",
        "_send",
        "_suspect_at",
        "_updates",
        "token",
    )

    def __init__(self, metrics: Metrics, send: Callable[[Instant, str, Any, float], None], doubt: Callable[[], None]) -> None:
        self._metrics, self._send, self._doubt = metrics, send, doubt
        self._call: _Call | None = None
        self.token = 0
        self._suspect_at: Instant | None = None
        self._updates: dict[str, int] = {}
        """Updates of containers that were answered and whose events are to come."""

    @property
    def in_flight(self) -> bool:
        """Is there one?"""
        return self._call is not None

    @property
    def is_long(self) -> bool:
        """Is it one that takes as long as a workload says?"""
        return self._call is not None and self._call.method in LONG_CALLS

    def make(self, now: Instant, method: str, body: Any, done: Done, failed: Failed, timeout: float) -> None:
        """Make the call that is then in flight; ``done`` and ``failed`` take its answer."""
        self.token += 1
        container = getattr(body, "container", "")
        until = Instant(now + seconds(timeout))
        self._call = _Call(method, body, container if isinstance(container, str) else "", done, failed, until)
        self._metrics.operations.inc(operation_type(method))
        self._send(now, method, body, min(timeout, ASK_AGAIN_SECONDS))

    def finished(self, now: Instant, end: Finished) -> bool:
        """It ended; False if it is asked again instead."""
        call, self._call = self._call, None
        self._suspect_at = None
        assert call is not None, "an answer belongs to the call in flight"
        if end.code is Code.DEADLINE_EXCEEDED and now < call.until:
            # Lost on the way, or the runtime takes its time: it joins a call to the one under way.
            self._call = call
            self._send(now, call.method, call.body, ASK_AGAIN_SECONDS)
            return False
        if end.code is Code.OK:
            call.done(now, end.body)
            if call.method == "UpdateContainerResources":
                self._updates[call.container] = self._updates.get(call.container, 0) + 1
        else:
            if not end.code.definite:
                self._doubt()
            self._metrics.operation_errors.inc(operation_type(call.method))
            call.failed(now, end.code, end.message)
        return True

    def abandon(self) -> None:
        """Wait for it no longer."""
        self._call = None
        self._suspect_at = None

    # ------------------------------------------------------------ hints that its answer is lost

    def has_told(self, container: str) -> bool:
        """An update's event came: was that update answered before? Each is told once."""
        if not self._updates.get(container):
            return False
        self._updates[container] -= 1
        return True

    def hinted(self, now: Instant, container: str) -> Instant | None:
        """An event tells of its success, if it is about that container: when its answer is overdue."""
        assert self._call is not None, "only what is in flight can be overdue"
        if self._call.container == container and self.is_long:
            self._suspect_at = Instant(now + seconds(SUSPECT_SECONDS))
            return self._suspect_at
        return None

    def is_overdue(self, now: Instant) -> bool:
        """Must its answer have been lost?"""
        return self._suspect_at is not None and now >= self._suspect_at
