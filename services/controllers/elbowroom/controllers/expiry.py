"""Events live for an hour."""

from collections.abc import Iterable
from typing import Any

from elbowroom import rpc
from elbowroom.cache import Change
from elbowroom.controllers.kit import NOTHING, Ask, Controller, Plan, instant
from elbowroom.controllers.views import Event
from elbowroom.machine import Instant, seconds

LIFETIME = seconds(3600)


def expires_at(event: Event) -> Instant:
    """An hour after it was last told."""
    times = (event.metadata.creation_timestamp, event.last_timestamp, event.event_time)
    return Instant(max(instant(text) for text in times) + LIFETIME)


class Expiry(Controller):
    """Keys: ``NAMESPACE/NAME`` of events."""

    name = "expiry"
    reads = ("events",)

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "events" and change.new is not None:
            self.queue.add_at(change.key, max(now, expires_at(change.new)))
        return ()

    def reconcile(self, now: Instant, key: str) -> Plan:
        event: Event | None = self.shared.reflectors["events"].store.get(key)
        if event is None:
            return NOTHING
        due = expires_at(event)
        if due > now:
            return Plan(again_at=due)
        options = {"preconditions": {"uid": event.metadata.uid}}
        return Plan((Ask(rpc.delete("events", event.metadata.name, namespace=event.metadata.namespace, options=options)),))
