"""Garbage collection along ownerReferences.

An object whose owners are all gone is deleted. An owner that is deleted in the foreground waits (finalizer ``foregroundDeletion``)
until those of its dependents that block it are gone; one deleted with ``orphan`` first takes its name off its dependents. An owner
that the copy does not show may just not have come yet, so the API server is asked before anything is deleted. Objects of custom
kinds are not in the copy: of owners among them the API server is asked every half minute.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from elbowroom import rpc
from elbowroom.api.objects import ObjectMeta, OwnerReference
from elbowroom.cache import Change
from elbowroom.controllers.kit import CLUSTER_SCOPED, DEFINITIONS, KINDS, NOTHING, Ask, Controller, Outcome, Plan, Told
from elbowroom.controllers.views import Definition
from elbowroom.machine import Instant, seconds

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
ABSENT_FOR = seconds(30)
PRESENT_FOR = seconds(30)


class _Owner(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


class Garbage(Controller):
    """Keys: ``RESOURCE NAMESPACE/NAME``."""

    name = "garbage"
    reads = (*dict.fromkeys(KINDS.values()), DEFINITIONS)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._dependents: dict[str, dict[str, None]] = {}
        """Owner's uid -> keys of what names it."""
        self._absent: dict[str, Instant] = {}
        """Uids that the API server said are of nothing that exists, and until when we believe it."""
        self._present: dict[str, Instant] = {}
        """Uids of custom objects that it said are there, and until when we believe it."""

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource not in self.reads or resource == DEFINITIONS:
            return
        key = f"{resource} {change.key}"
        if change.old is not None:
            for owner in change.old.metadata.owner_references:
                held = self._dependents.get(owner.uid, {})
                held.pop(key, None)
                if not held:
                    self._dependents.pop(owner.uid, None)
                if change.new is None:
                    yield from self._owner_keys(change.old.metadata, owner)
            if change.new is None:
                yield from list(self._dependents.get(change.old.metadata.uid, ()))
        if change.new is None:
            return
        for owner in change.new.metadata.owner_references:
            self._dependents.setdefault(owner.uid, {})[key] = None
        if change.new.metadata.owner_references or change.new.metadata.finalizers:
            yield key
        if change.new.metadata.deletion_timestamp is not None:
            yield from list(self._dependents.get(change.new.metadata.uid, ()))

    def _owner_keys(self, metadata: ObjectMeta, owner: OwnerReference) -> Iterable[str]:
        resource = KINDS.get((owner.api_version, owner.kind))
        if resource in self.reads:
            yield f"{resource} {_place(resource, metadata, owner)}"

    def _metadata(self, key: str) -> ObjectMeta | None:
        resource, _, place = key.partition(" ")
        found = self.shared.reflectors[resource].store.get(place)
        return found.metadata if found is not None else None

    def reconcile(self, now: Instant, key: str) -> Plan:
        metadata = self._metadata(key)
        if metadata is None:
            return NOTHING
        if metadata.deletion_timestamp is not None:
            if ORPHAN in metadata.finalizers:
                return self._orphan(key, metadata)
            return self._foreground(key, metadata) if FOREGROUND in metadata.finalizers else NOTHING
        if not metadata.owner_references:
            return NOTHING
        return self._owned(now, key, metadata)

    def _owned(self, now: Instant, key: str, metadata: ObjectMeta) -> Plan:
        solid: list[OwnerReference] = []
        dangling: list[OwnerReference] = []
        waiting: list[OwnerReference] = []
        questions: list[Ask] = []
        again: Instant | None = None
        for owner in metadata.owner_references:
            resource = KINDS.get((owner.api_version, owner.kind))
            if resource is None:
                question = self._custom(metadata, owner)
                if question is None:
                    solid.append(owner)  # of a kind that is not served here: no business of ours
                elif self._absent.get(owner.uid, now) > now:
                    dangling.append(owner)
                elif (until := self._present.get(owner.uid, now)) > now:
                    solid.append(owner)
                    again = until if again is None else min(again, until)
                else:
                    questions.append(question)
                continue
            place = _place(resource, metadata, owner)
            known = self.shared.reflectors[resource].store.get(place)
            if known is not None and known.metadata.uid == owner.uid:
                is_waiting = known.metadata.deletion_timestamp is not None and FOREGROUND in known.metadata.finalizers
                (waiting if is_waiting else solid).append(owner)
            elif self._absent.get(owner.uid, now) > now:
                dangling.append(owner)
            else:
                namespace = "" if resource in CLUSTER_SCOPED else metadata.namespace
                questions.append(Ask(rpc.get(resource, owner.name, namespace=namespace), ("owner", owner.uid)))
        if questions:
            return Plan(tuple(questions))
        if solid:
            useless = [*dangling, *waiting]
            return Plan((_without(key, metadata, useless),) if useless else (), again_at=again)
        policy = "Background"
        if waiting and self._dependents.get(metadata.uid):
            policy = "Foreground"
        return Plan((_deletion(key, metadata, policy),))

    def _custom(self, metadata: ObjectMeta, owner: OwnerReference) -> Ask | None:
        """The question whether an owner of a custom kind is there; None if nobody defined its kind."""
        group, _, version = owner.api_version.rpartition("/")
        definitions: Mapping[str, Definition] = self.shared.reflectors[DEFINITIONS].store
        for name, definition in definitions.items():
            if (definition.spec.group, definition.spec.names.kind) == (group, owner.kind) and definition.version:
                namespace = metadata.namespace if definition.is_namespaced else ""
                request = msgspec.structs.replace(rpc.get(name, owner.name, namespace=namespace), version=version)
                return Ask(request, ("custom", owner.uid))
        return None

    def _foreground(self, key: str, metadata: ObjectMeta) -> Plan:
        asks: list[Ask] = []
        blocked = False
        for dependent in list(self._dependents.get(metadata.uid, ())):
            found = self._metadata(dependent)
            if found is None:
                continue
            reference = next((o for o in found.owner_references if o.uid == metadata.uid), None)
            blocked = blocked or (reference is not None and reference.block_owner_deletion)
            if found.deletion_timestamp is None:
                self.queue.add(dependent)
        if not blocked:
            asks.append(_finalized(key, metadata, FOREGROUND))
        return Plan(tuple(asks))

    def _orphan(self, key: str, metadata: ObjectMeta) -> Plan:
        asks: list[Ask] = []
        for dependent in list(self._dependents.get(metadata.uid, ())):
            found = self._metadata(dependent)
            mine = [o for o in found.owner_references if o.uid == metadata.uid] if found is not None else []
            if found is not None and mine:
                asks.append(_without(dependent, found, mine))
        return Plan(tuple(asks), again_at=None) if asks else Plan((_finalized(key, metadata, ORPHAN),))

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        if ask.tag is None:
            return ()
        kind, uid = ask.tag
        if outcome.ok:
            try:
                exists = msgspec.json.decode(outcome.response.body, type=_Owner).metadata.uid == uid
            except msgspec.MsgspecError:
                exists = True
        else:
            exists = outcome.status != 404
        if exists and kind == "custom":
            self._present = {known: until for known, until in self._present.items() if until > now}
            self._present[uid] = Instant(now + PRESENT_FOR)
            self.queue.add(key)
        elif exists:
            self.queue.add_at(key, Instant(now + seconds(1)))  # the copy will show it
        else:
            self._absent = {known: until for known, until in self._absent.items() if until > now}
            self._absent[uid] = Instant(now + ABSENT_FOR)
            self.queue.add(key)
        return ()


def _place(resource: str, metadata: ObjectMeta, owner: OwnerReference) -> str:
    return owner.name if resource in CLUSTER_SCOPED else f"{metadata.namespace}/{owner.name}"


def _deletion(key: str, metadata: ObjectMeta, policy: str) -> Ask:
    resource = key.partition(" ")[0]
    options = {"propagationPolicy": policy, "preconditions": {"uid": metadata.uid}}
    return Ask(rpc.delete(resource, metadata.name, namespace=metadata.namespace, options=options))


def _without(key: str, metadata: ObjectMeta, owners: Iterable[OwnerReference]) -> Ask:
    entries = [{"$patch": "delete", "uid": owner.uid} for owner in owners]
    body = {"metadata": {"uid": metadata.uid, "ownerReferences": entries}}
    return Ask(rpc.patch(key.partition(" ")[0], metadata.name, body, namespace=metadata.namespace))


def _finalized(key: str, metadata: ObjectMeta, finalizer: str) -> Ask:
    left = [f for f in metadata.finalizers if f != finalizer]
    body = {
        "metadata": {"resourceVersion": metadata.resource_version, "uid": metadata.uid, "finalizers": left or None},
    }
    return Ask(rpc.patch(key.partition(" ")[0], metadata.name, body, namespace=metadata.namespace, kind=rpc.MERGE_PATCH))
