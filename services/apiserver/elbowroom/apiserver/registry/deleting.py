"""Deletions: what ends at once, what is marked first, and what is not deleted at all."""

from dataclasses import dataclass, replace

import msgspec

from elbowroom.api.clock import as_time
from elbowroom.apiserver import intake, listing, removal, statuses
from elbowroom.apiserver.admission_base import Attributes
from elbowroom.apiserver.definitions import naming
from elbowroom.apiserver.definitions.naming import DEFINITIONS
from elbowroom.apiserver.intake import DeleteOptions
from elbowroom.apiserver.kinds.base import Resource
from elbowroom.apiserver.registry.admitting import Chain
from elbowroom.apiserver.registry.rows import stored
from elbowroom.apiserver.registry.writes import Write
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.store import Record, Store
from elbowroom.apiserver.strategy import Context, Document, Strategy
from elbowroom.machine import Instant
from elbowroom.wire import ApiRequest, ApiResponse

PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


@dataclass(frozen=True, slots=True)
class Ended:
    """What a deletion left: the object to show (None: a Status is shown) and the revision."""

    record: Record | None
    revision: int
    is_gone: bool = True
    """Or is it only marked?"""


class Deleting:
    """Carries them out."""

    def __init__(self, store: Store, chain: Chain) -> None:
        self._store, self._chain = store, chain

    def one(self, context: Context, write: Write, row: Resource, request: ApiRequest) -> ApiResponse:
        """Answer a request to delete one object."""
        options = _of_kind(row, intake.delete_options(request), context)
        record = stored(self._store, row, request)
        ended = self.remove(context, write, row, record, options)
        kind, warnings = row.strategy, tuple(context.warnings)
        if row.returns_deleted or ended.record is not None:
            shown = ended.record or record
            code = 202 if options.orphan is False and not ended.is_gone else 200
            return ApiResponse(code, listing.data_of(row, shown), warnings, shown.revision)
        details = {
            "name": record.name,
            **({"group": kind.group} if kind.group else {}),
            "kind": kind.plural,
            "uid": record.document["metadata"]["uid"],
        }
        return ApiResponse(200, statuses.success(details=details), warnings, ended.revision)

    def collection(self, context: Context, write: Write, row: Resource, request: ApiRequest) -> ApiResponse:
        """Answer a request to delete what its selectors find, or a page of it; shown as it was."""
        page = listing.page_of(self._store, row, request)
        options = _of_kind(row, intake.delete_options(request), context)
        for listed in page.records:
            check_preconditions(row.strategy, listed, options)
        shown = listing.encode(row, page.records, page.meta["resourceVersion"], page.meta)
        for listed in page.records:
            current = self._store.get(row.strategy.resource, listed.namespace, listed.name)
            if current is not None:
                self.remove(context, write, row, current, options)
        return ApiResponse(200, shown, revision=self._store.revision)

    def remove(self, context: Context, write: Write, row: Resource, record: Record, options: DeleteOptions) -> Ended:
        """Delete an object, or begin to."""
        kind = row.strategy
        check_preconditions(kind, record, options)
        attributes = Attributes("DELETE", kind.resource, "", record.namespace, record.name, None, record.document)
        self._chain.admit(context, kind, attributes)
        self._chain.validate(context, kind, attributes)
        document = record.copy()
        if kind.resource == "namespaces":
            decided = _decide_namespace(document, options, context.now)
        elif kind.resource == DEFINITIONS:
            marked_now = naming.mark_terminating(document, context.now)
            decided = removal.Removal(document, False) if marked_now else removal.ALREADY
        else:
            decided = removal.decide(document, options, context.now, graceful=row.graceful)
        marked = record
        if decided.marked is not None:
            if options.dry_run:
                marked = Record(
                    kind.resource, record.namespace, record.name, record.revision, msgspec.json.encode(document), document
                )
            else:
                marked = write.put(kind.resource, record.namespace, record.name, document)
        if not decided.ends:
            return Ended(marked, marked.revision, is_gone=False)
        if options.dry_run:
            return Ended(marked if row.returns_deleted else None, record.revision)
        gone = write.delete(kind.resource, record.namespace, record.name)
        return Ended(gone if row.returns_deleted else None, gone.revision)


def _of_kind(row: Resource, options: DeleteOptions, context: Context) -> DeleteOptions:
    """The options, with what the kind does where they say nothing of what an object owns."""
    if not row.orphans or options.propagation is not None or options.orphan is not None:
        return options
    context.warnings.append(PRESERVED)
    return replace(options, propagation="Orphan")


def precondition_failed(kind: Strategy, record: Record, why: str) -> ApiError:
    """409 as upstream's storage layer words it."""
    key = f"/registry/{kind.plural}/{record.key}"
    text = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {why}"
    return statuses.conflict(kind.group, kind.plural, record.name, text)


def check_preconditions(kind: Strategy, record: Record, options: DeleteOptions) -> None:
    """409 unless the object is the one that the options mean."""
    meta = record.document["metadata"]
    if options.uid is not None and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise statuses.conflict(kind.group, kind.kind, record.name, why)
    if options.resource_version is not None and options.resource_version != str(record.revision):
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion in record "
            f"({record.revision}). The object might have been modified"
        )
        raise statuses.conflict(kind.group, kind.kind, record.name, why)


def _decide_namespace(namespace: Document, options: DeleteOptions, now: Instant) -> removal.Removal:
    """A namespace is marked Terminating; its controller empties it and takes the finalizer away."""
    meta = namespace["metadata"]
    if meta.get("deletionTimestamp") is None:
        meta["deletionTimestamp"] = as_time(now)
        namespace["status"] = {**namespace.get("status", {}), "phase": "Terminating"}
        return removal.Removal(namespace, not namespace.get("spec", {}).get("finalizers") and not meta.get("finalizers"))
    if namespace.get("spec", {}).get("finalizers") or meta.get("finalizers"):
        return removal.ALREADY
    return removal.Removal(None, True)
