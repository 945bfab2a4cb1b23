"""Garbage collection along ownerReferences.

An object whose owners are all gone is deleted. An owner that is deleted in the foreground waits (finalizer ``foregroundDeletion``)
until those of its dependents that block it are gone; one deleted with ``orphan`` first takes its name off its dependents. An owner
that the copy does not show may just not have come yet, so the API server is asked before anything is deleted. Objects of custom
kinds are owners and owned like all others, as soon as the kind is served.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from elbowroom import rpc
from elbowroom.api.objects import ObjectMeta, OwnerReference
from elbowroom.cache import Change
from elbowroom.controllers.kit import KINDS, NOTHING, Ask, Controller, Outcome, Plan, Told, built
from elbowroom.machine import Instant, seconds

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
ABSENT_FOR = seconds(30)
LOOKED_AT_AFTER = seconds(0.1)
"""A change is looked at so much later: upstream's is behind its queue and its client's rate limit, and who writes twice in a row
sees what became of the first write before anything is collected."""


class _Owner(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


def _says_the_same(old: ObjectMeta, new: ObjectMeta) -> bool:
    """Is it the same object with the same owners, of which nobody wants an end?"""
    wanted = new.finalizers or new.deletion_timestamp is not None or old.finalizers
    return not wanted and old.uid == new.uid and old.owner_references == new.owner_references


class Garbage(Controller):
    """Keys: ``RESOURCE NAMESPACE/NAME``."""

    name = "garbage"
    reads = tuple(dict.fromkeys(KINDS.values()))

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._dependents: dict[str, dict[str, None]] = {}
        """Owner's uid -> keys of what names it."""
        self._absent: dict[str, Instant] = {}
        """Uids that the API server said are of nothing that exists, and until when we believe it."""

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        for key in self._concerned(resource, change):
            self.queue.add_at(key, Instant(now + LOOKED_AT_AFTER))
        return ()

    def _concerned(self, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource not in self.reads and resource not in self.shared.customs:
            return
        key = f"{resource} {change.key}"
        if change.old is not None and change.new is not None and _says_the_same(change.old.metadata, change.new.metadata):
            metadata = change.new.metadata
            if all(self._stands(metadata, owner) for owner in metadata.owner_references):
                return  # a Lease was renewed, say
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
        resource = self.shared.resource_of(owner.api_version, owner.kind)
        if resource is not None:
            yield f"{resource} {self._place(resource, metadata, owner)}"

    def _place(self, resource: str, metadata: ObjectMeta, owner: OwnerReference) -> str:
        return f"{metadata.namespace}/{owner.name}" if self.shared.is_namespaced(resource) else owner.name

    def _stands(self, metadata: ObjectMeta, owner: OwnerReference) -> bool:
        """Is the owner there, as the copy shows it, with no end in sight?"""
        resource = self.shared.resource_of(owner.api_version, owner.kind)
        copy = self.shared.reflectors.get(resource) if resource is not None else None
        known = copy.store.get(self._place(resource, metadata, owner)) if resource is not None and copy is not None else None
        return known is not None and known.metadata.uid == owner.uid and known.metadata.deletion_timestamp is None

    def _metadata(self, key: str) -> ObjectMeta | None:
        resource, _, place = key.partition(" ")
        copy = self.shared.reflectors.get(resource)
        found = None if copy is None else copy.store.get(place)
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
        for owner in metadata.owner_references:
            resource = self.shared.resource_of(owner.api_version, owner.kind)
            if resource is None or (not metadata.namespace and self.shared.is_namespaced(resource)):
                solid.append(owner)  # of a kind that is not served here, or nowhere to be found: no business of ours
                continue
            place = self._place(resource, metadata, owner)
            known = self.shared.reflectors[resource].store.get(place)
            if known is not None and known.metadata.uid == owner.uid:
                is_waiting = known.metadata.deletion_timestamp is not None and FOREGROUND in known.metadata.finalizers
                (waiting if is_waiting else solid).append(owner)
            elif self._absent.get(owner.uid, now) > now:
                dangling.append(owner)
            else:
                namespace = metadata.namespace if self.shared.is_namespaced(resource) else ""
                question = self.shared.versioned(rpc.get(resource, owner.name, namespace=namespace))
                questions.append(Ask(question, owner.uid))
        if questions:
            return Plan(tuple(questions))
        if solid:
            useless = [*dangling, *waiting]
            return Plan((self._without(key, metadata, useless),)) if useless else NOTHING
        policy = "Background"
        if waiting and self._dependents.get(metadata.uid):
            policy = "Foreground"
        return Plan((self._deletion(key, metadata, policy),))

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
            asks.append(self._finalized(key, metadata, FOREGROUND))
        return Plan(tuple(asks))

    def _orphan(self, key: str, metadata: ObjectMeta) -> Plan:
        asks: list[Ask] = []
        for dependent in list(self._dependents.get(metadata.uid, ())):
            found = self._metadata(dependent)
            mine = [o for o in found.owner_references if o.uid == metadata.uid] if found is not None else []
            if found is not None and mine:
                asks.append(self._without(dependent, found, mine))
        return Plan(tuple(asks)) if asks else Plan((self._finalized(key, metadata, ORPHAN),))

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        if ask.tag is None:
            return ()
        uid: str = ask.tag
        if outcome.ok:
            try:
                exists = msgspec.json.decode(outcome.response.body, type=_Owner).metadata.uid == uid
            except msgspec.MsgspecError:
                exists = True
        else:
            exists = outcome.status != 404
        if exists:
            self.queue.add_at(key, Instant(now + seconds(1)))  # the copy will show it
        else:
            self._absent = {known: until for known, until in self._absent.items() if until > now}
            self._absent[uid] = Instant(now + ABSENT_FOR)
            self.queue.add(key)
        return ()

    # ------------------------------------------------------------ requests

    def _deletion(self, key: str, metadata: ObjectMeta, policy: str) -> Ask:
        resource = key.partition(" ")[0]
        options = {"propagationPolicy": policy, "preconditions": {"uid": metadata.uid}}
        request = rpc.delete(resource, metadata.name, namespace=metadata.namespace, options=options)
        return Ask(self.shared.versioned(request))

    def _without(self, key: str, metadata: ObjectMeta, owners: Iterable[OwnerReference]) -> Ask:
        """Take owners off an object. Custom kinds know no strategic patches, so those get the whole list that stays."""
        resource, gone = key.partition(" ")[0], [owner.uid for owner in owners]
        if resource not in self.shared.customs:
            entries = [{"$patch": "delete", "uid": uid} for uid in gone]
            body = {"metadata": {"uid": metadata.uid, "ownerReferences": entries}}
            return Ask(rpc.patch(resource, metadata.name, body, namespace=metadata.namespace))
        left = [built(owner) for owner in metadata.owner_references if owner.uid not in gone]
        return self._merged(key, metadata, {"ownerReferences": left or None})

    def _finalized(self, key: str, metadata: ObjectMeta, finalizer: str) -> Ask:
        left = [f for f in metadata.finalizers if f != finalizer]
        return self._merged(key, metadata, {"finalizers": left or None})

    def _merged(self, key: str, metadata: ObjectMeta, changes: dict[str, Any]) -> Ask:
        """A merge patch of the metadata, of this revision only."""
        body = {"metadata": {"resourceVersion": metadata.resource_version, "uid": metadata.uid, **changes}}
        resource = key.partition(" ")[0]
        request = rpc.patch(resource, metadata.name, body, namespace=metadata.namespace, kind=rpc.MERGE_PATCH)
        return Ask(self.shared.versioned(request))
