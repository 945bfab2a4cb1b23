"""What follows from a write that concerns definitions, in revisions right after it: which names are accepted, and the end of those
that are deleted."""

from elbowroom.apiserver.definitions import naming
from elbowroom.apiserver.definitions.naming import DEFINITIONS
from elbowroom.apiserver.intake import DeleteOptions
from elbowroom.apiserver.registry.deleting import Deleting
from elbowroom.apiserver.registry.rows import Rows
from elbowroom.apiserver.registry.writes import Write
from elbowroom.apiserver.store import Record, Store
from elbowroom.apiserver.strategy import Context


class Settling:
    """Follows writes up."""

    def __init__(self, store: Store, rows: Rows, deleting: Deleting) -> None:
        self._store, self._rows, self._deleting = store, rows, deleting

    def settle(self, context: Context, write: Write, *, always: bool = False) -> None:
        """Do what follows from ``write``; ``always``: look even if it concerns no definition."""
        concerns = always or any(
            change.record.resource == DEFINITIONS or (change.deleted and change.record.resource not in self._rows.built_in)
            for change in write.changes
        )
        while concerns:
            before = len(write.changes)
            for record in self._store.objects(DEFINITIONS):
                self._settle_one(context, write, record)
            concerns = len(write.changes) > before

    def _settle_one(self, context: Context, write: Write, record: Record) -> None:
        document = record.copy()
        meta = document["metadata"]
        if naming.FINALIZER in (meta.get("finalizers") or ()) and meta.get("deletionTimestamp") is not None:
            left = self._store.objects(record.name)
            for one in left:
                served = self._rows.customs_of(record.name)
                if not served:
                    write.delete(record.name, one.namespace, one.name)
                elif one.document["metadata"].get("deletionTimestamp") is None:
                    self._deleting.remove(context, write, next(iter(served.values())).row, one, DeleteOptions())
            if not self._store.objects(record.name):
                naming.emptied(document, context.now)
                write.put(DEFINITIONS, "", record.name, document)
                if not document["metadata"].get("finalizers"):
                    write.delete(DEFINITIONS, "", record.name)
            return
        group = document["spec"]["group"]
        others = [
            one.document
            for one in self._store.objects(DEFINITIONS)
            if one.name != record.name and one.document["spec"]["group"] == group
        ]
        status = naming.settled(document, others, context.now)
        if status is not None:
            write.put(DEFINITIONS, "", record.name, {**document, "status": status})
