"""Carries requests out: reading, creating, updating, applying.

``serve`` takes a request and gives the answer with the changes that it made; the caller makes them durable before it shows either
(``Served.writes`` first, then the answer and the events). The order inside a write is upstream's: decode and default, mutating
admission, what the (sub)resource may not change, validation with all errors at once, validating admission, store (RC-25).
"""

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from elbowroom.api.clock import as_time
from elbowroom.api.fielderrors import invalid
from elbowroom.api.gates import Profile
from elbowroom.apiserver import (
    apply,
    authorizer,
    intake,
    listing,
    managed,
    metadata,
    podverbs,
    rbac,
    rbac_defaults,
    removal,
    schema,
    statuses,
)
from elbowroom.apiserver.admission_base import Attributes
from elbowroom.apiserver.definitions import customs
from elbowroom.apiserver.intake import Options
from elbowroom.apiserver.kinds import roles, table
from elbowroom.apiserver.kinds.base import Resource
from elbowroom.apiserver.registry import scaling
from elbowroom.apiserver.registry.admitting import Chain
from elbowroom.apiserver.registry.deleting import Deleting, precondition_failed
from elbowroom.apiserver.registry.patching import PATCHES, ordered, patched
from elbowroom.apiserver.registry.podcalls import PodCalls
from elbowroom.apiserver.registry.rows import Rows, stored
from elbowroom.apiserver.registry.settling import Settling
from elbowroom.apiserver.registry.writes import Served, Write
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.store import Record, Store, StoreReader
from elbowroom.apiserver.strategy import Context, Document, Strategy
from elbowroom.machine import Instant
from elbowroom.rpc import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from elbowroom.wire import ApiRequest, ApiResponse

OBJECT_BYTES_MAX = 1_572_864
"""What a stored object may have (etcd's limit)."""
GROWTH_MAX = 64
"""An object is not so many times as long as what was sent of it, with all defaults and managed fields."""
NAME_ATTEMPTS = 8


class Registry:
    """See the module. ``rng`` gives uids and generated names."""

    def __init__(self, store: Store, profile: Profile, rng: random.Random) -> None:
        self._store, self._profile, self._rng = store, profile, rng
        self._reader = StoreReader(store)
        self._chain = Chain(profile)
        self._rows = Rows(store, profile)
        self._deleting = Deleting(store, self._chain)
        self._pods = PodCalls(store, self._rows.built_in["pods"], self._deleting)
        self._settling = Settling(store, self._rows, self._deleting)

    # ------------------------------------------------------------ routing

    def serve(self, now: Instant, request: ApiRequest) -> Served:
        """Carry out a request whose user may make it. Refusals are answers too."""
        context = Context(now, self._rng, self._profile, self._reader, request.user, request.groups)
        write = Write(self._store)
        try:
            response = self._route(context, write, request)
        except ApiError as refusal:
            assert not write.changes, "a refused request changes nothing"
            return Served(refusal.response(context.warnings))
        self._settling.settle(context, write)
        return Served(response, write.changes, write.writes, write.base)

    def row_of(self, request: ApiRequest) -> Resource:
        """The row that a request is about; 404 for a resource, 405 for a verb, that is not served."""
        return self._rows.of(request)

    def _route(self, context: Context, write: Write, request: ApiRequest) -> ApiResponse:
        if request.resource == "bindings" and not request.group:
            if request.verb != "create":
                raise statuses.method_not_allowed()
            return self._pods.bind(context, write, request)
        row = self._rows.of(request)
        match request.subresource:
            case "":
                match request.verb:
                    case "get":
                        return self._get(row, request)
                    case "list":
                        return listing.answer(self._store, row, request)
                    case "create":
                        return self._create(context, write, row, request)
                    case "update":
                        return self._update(context, write, row, row.strategy, request)
                    case "patch":
                        return self._patch(context, write, row, row.strategy, request)
                    case "delete":
                        return self._deleting.one(context, write, row, request)
                    case "deletecollection":
                        return self._deleting.collection(context, write, row, request)
            case "binding":
                return self._pods.bind(context, write, request)
            case "eviction":
                return self._pods.evict(context, write, request)
            case "scale" if row.scales:
                return self._scale(context, write, row, request)
            case "log":
                query = request.query
                previous = query.get("previous") in ("true", "1")
                text = podverbs.log(stored(self._store, row, request).document, query.get("container", ""), previous=previous)
                return ApiResponse(200, text, content_type="text/plain")
            case name if name in row.subresources:
                strategy = row.subresources[name]
                match request.verb:
                    case "get":
                        return self._get(row, request)
                    case "update":
                        return self._update(context, write, row, strategy, request)
                    case "patch":
                        return self._patch(context, write, row, strategy, request)
        raise statuses.method_not_allowed()

    # ------------------------------------------------------------ reading

    def _get(self, row: Resource, request: ApiRequest) -> ApiResponse:
        wanted = request.query.get("resourceVersion")
        if wanted and (revision := intake.parse_revision(wanted)) > self._store.revision:
            raise statuses.too_large_revision(revision, self._store.revision)
        record = stored(self._store, row, request)
        return ApiResponse(200, listing.data_of(row, record), revision=record.revision)

    # ------------------------------------------------------------ creating

    def _create(self, context: Context, write: Write, row: Resource, request: ApiRequest) -> ApiResponse:
        strategy = row.strategy
        options = intake.write_options(request, "CreateOptions")
        context = _for(context, options)
        field = self._rows.field(row)
        decoded, warnings = intake.decoded_body(request, field, strategy.group, strategy.version, strategy.kind, options)
        context.warnings.extend(warnings)
        document = ordered(strategy, decoded)
        said_entries = document["metadata"].get("managedFields", ())
        return self._insert(context, write, row, request, document, options, managed.held(said_entries, ()))

    def _insert(
        self,
        context: Context,
        write: Write,
        row: Resource,
        request: ApiRequest,
        document: Document,
        options: Options,
        entries: Sequence[managed.Entry] | None,
    ) -> ApiResponse:
        """Create ``document``. ``entries`` say who managed fields of it before; None: the request's manager is not to be added."""
        strategy = row.strategy
        meta = document["metadata"]
        namespace = request.namespace if strategy.namespaced else ""
        if row.is_terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise statuses.forbidden(strategy.group, strategy.plural, meta.get("name", ""), why)
        if namespace and meta.get("namespace") and meta["namespace"] != namespace:
            raise statuses.bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if namespace:
            meta["namespace"] = namespace
        elif not strategy.namespaced:
            meta.pop("namespace", None)
        names_revision = intake.names_revision(document)
        for name in (
            "resourceVersion",
            "selfLink",
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ):
            meta.pop(name, None)
        meta["uid"] = metadata.new_uid(self._rng)
        meta["creationTimestamp"] = as_time(context.now)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._free_name(strategy.resource, namespace, meta["generateName"])
        name = meta.get("name", "")
        strategy.default(document)
        self._track(context, row, strategy, request, options, None, document, entries)
        attributes = Attributes("CREATE", strategy.resource, "", namespace, name, document, None)
        self._chain.admit(context, strategy, attributes)
        roles.check_escalation(context, attributes, self._may)
        told = len(context.warnings)
        strategy.prepare_create(context, document)
        if strategy.has_generation:
            meta["generation"] = 1
        errors = metadata.validate(meta, namespaced=strategy.namespaced, rule=row.name_rule) + strategy.validate_create(
            context, document
        )
        if errors:
            del context.warnings[told:]  # what is invalid is not warned of
            raise statuses.invalid(strategy.group, strategy.kind, name, errors)
        self._chain.validate(context, strategy, attributes)
        if self._store.get(strategy.resource, namespace, name) is not None:
            raise statuses.already_exists(strategy.group, strategy.plural, name)
        if names_revision:
            raise statuses.internal("resourceVersion should not be set on objects to be created")
        if context.dry_run:
            return ApiResponse(201, msgspec.json.encode(document), tuple(context.warnings))
        if len(request.body) > OBJECT_BYTES_MAX // GROWTH_MAX:
            self._check_size(document)
        self._write_also(context, write)
        record = write.put(strategy.resource, namespace, name, _stored_form(row, document))
        return ApiResponse(201, listing.data_of(row, record), tuple(context.warnings), record.revision)

    def _free_name(self, resource: str, namespace: str, base: str) -> str:
        name = metadata.generated_name(self._rng, base)
        for _ in range(NAME_ATTEMPTS - 1):
            if self._store.get(resource, namespace, name) is None:
                break
            name = metadata.generated_name(self._rng, base)
        return name

    def establish(self, now: Instant, *, policy: bool = True) -> Served:
        """Create what a cluster has from the start and this one lacks; the default roles, and the API server's own service, with
        ``policy`` only."""
        write = Write(self._store)
        context = Context(now, self._rng, self._profile, self._reader, "system:apiserver", ("system:masters",))
        for resource, given in (
            *table.boot_objects(),
            *((*rbac_defaults.objects(), ("services", table.KUBERNETES)) if policy else ()),
        ):
            strategy = self._rows.built_in[resource].strategy
            name, namespace = given["metadata"]["name"], given["metadata"].get("namespace", "")
            if self._store.get(resource, namespace, name) is not None:
                continue
            document = ordered(strategy, msgspec.json.decode(msgspec.json.encode(given)))
            meta = document["metadata"]
            # The default policy draws apart, so that what else a seed decides doesn't depend on its length.
            apart = strategy.group == rbac.GROUP or resource == "services"
            rng = random.Random(f"{resource}/{name}") if apart else self._rng
            meta["uid"], meta["creationTimestamp"] = metadata.new_uid(rng), as_time(now)
            strategy.default(document)
            strategy.prepare_create(context, document)
            if strategy.has_generation:
                meta["generation"] = 1
            write.put(resource, namespace, name, document)
        self._settling.settle(context, write, always=True)
        return Served(ApiResponse(200), write.changes, write.writes)

    # ------------------------------------------------------------ updating

    def _update(self, context: Context, write: Write, row: Resource, strategy: Strategy, request: ApiRequest) -> ApiResponse:
        kind = row.strategy
        options = intake.write_options(request, "UpdateOptions")
        context = _for(context, options)
        decoded, warnings = intake.decoded_body(request, self._rows.field(row), kind.group, kind.version, kind.kind, options)
        context.warnings.extend(warnings)
        new = ordered(kind, decoded)
        intake.check_names(new["metadata"], request.name, request.namespace if kind.namespaced else "")
        strategy.default(new)
        record = stored(self._store, row, request)
        old = listing.document_of(row, record)
        uid = new["metadata"].get("uid")
        if uid and uid != old["metadata"]["uid"]:
            raise precondition_failed(kind, record, f"UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}")
        return self._replace(context, write, row, strategy, request, record, new, options)

    def _replace(
        self,
        context: Context,
        write: Write,
        row: Resource,
        strategy: Strategy,
        request: ApiRequest,
        record: Record,
        new: Document,
        options: Options,
        entries: Sequence[managed.Entry] | None = None,
    ) -> ApiResponse:
        """Let ``new`` take the place of ``record``, as far as ``strategy`` allows.

        ``entries`` say who manages which field then; without them the request's manager gets what it changes.
        """
        kind, old = row.strategy, listing.document_of(row, record)
        revision = intake.object_revision(new)
        if not revision and not strategy.unconditional_update:
            error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise statuses.invalid(kind.group, kind.kind, record.name, [error])
        if revision and revision != record.revision:
            raise statuses.conflict(kind.group, kind.plural, record.name, statuses.MODIFIED)
        if request.verb == "update":
            write.base = revision
        if not strategy.namespaced:
            new["metadata"].pop("namespace", None)
        said_entries = new["metadata"].get("managedFields")
        metadata.keep(new["metadata"], old["metadata"])
        if entries is not None:
            _manage(new, entries)
        else:
            stored = old["metadata"].get("managedFields", ())
            before = stored if request.subresource else managed.held(said_entries, stored)
            self._track(context, row, strategy, request, options, old, new, before)
        attributes = Attributes("UPDATE", kind.resource, request.subresource, record.namespace, record.name, new, old)
        self._chain.admit(context, kind, attributes)
        roles.check_escalation(context, attributes, self._may)
        strategy.prepare_update(context, new, old)
        if strategy.has_generation and strategy.spec_changed(new, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        errors = metadata.validate_update(new["metadata"], old["metadata"], rule=row.name_rule) + strategy.validate_update(
            context, new, old
        )
        if errors:
            raise statuses.invalid(kind.group, kind.kind, record.name, errors)
        self._chain.validate(context, kind, attributes)
        warnings = tuple(context.warnings)
        if context.dry_run:
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            return ApiResponse(200, msgspec.json.encode(new), warnings, record.revision)
        if removal.ends_by_update(new, old):
            gone = write.delete(kind.resource, record.namespace, record.name)
            new["metadata"]["resourceVersion"] = str(gone.revision)
            return ApiResponse(200, msgspec.json.encode(new), warnings, gone.revision)
        if len(record.data) + len(request.body) > OBJECT_BYTES_MAX:
            self._check_size(new)
        self._write_also(context, write)
        done = write.put(kind.resource, record.namespace, record.name, _stored_form(row, new))
        return ApiResponse(200, listing.data_of(row, done), warnings, done.revision)

    # ------------------------------------------------------------ patching

    def _patch(self, context: Context, write: Write, row: Resource, strategy: Strategy, request: ApiRequest) -> ApiResponse:
        kind = row.strategy
        media = intake.media_type(request)
        if media == APPLY_PATCH:
            return self._apply(context, write, row, strategy, request)
        if row.is_custom and media not in (JSON_PATCH, MERGE_PATCH):
            raise statuses.unsupported_custom_patch_type()
        if media not in PATCHES:
            raise statuses.unsupported_patch_type()
        options = intake.write_options(request, "PatchOptions")
        context = _for(context, options)
        record = stored(self._store, row, request)
        if strategy.spares_stored and media != JSON_PATCH:
            kept = listing.document_of(row, record)
            document = {**kept, "metadata": dict(kept["metadata"])}
        else:
            document = listing.copy_of(row, record)
        if media != JSON_PATCH and b"managedFields" not in request.body:
            document["metadata"].pop("managedFields", None)  # nothing to patch and to decode; they stay as they are
        new = patched(context, self._rows.field(row), kind, media, request, document, options)
        strategy.default(new)
        return self._replace(context, write, row, strategy, request, record, new, options)

    def _apply(self, context: Context, write: Write, row: Resource, strategy: Strategy, request: ApiRequest) -> ApiResponse:
        """Server-side apply; it creates what is not there, but no subresource of it."""
        kind = row.strategy
        options = intake.write_options(request, "PatchOptions", applies=True)
        context = _for(context, options)
        record = self._store.get(kind.resource, request.namespace if kind.namespaced else "", request.name)
        if record is None and request.subresource:
            raise statuses.not_found(kind.group, kind.plural, request.name)
        field = self._rows.field(row)
        config, repeated = intake.configuration(request, kind.kind, kind.api_version)
        what = _described(config)
        trouble = apply.errors(field, config)
        if trouble:
            raise statuses.internal(f"failed to create typed patch object ({what}): {trouble}")
        live = schema.zero(field) if record is None else listing.document_of(row, record)
        done = apply.applied(
            field,
            live,
            config,
            live["metadata"].get("managedFields", ()),
            managed.Manager(options.manager, managed.APPLY, kind.api_version, request.subresource),
            ignored=_ignored(row, request.subresource),
            force=options.force,
            time=as_time(context.now),
        )
        decoded = schema.decode(field, done.document, restored=True)
        if decoded.error is not None:
            known = f"{kind.group}/{kind.version}, Kind={kind.kind}"
            why = f"unable to convert unstructured object to {known}: {decoded.error}"
            raise statuses.internal(f"failed to convert new object ({what}) to proper version: {why}")
        if repeated and options.validation == "Strict":
            raise statuses.bad_request(f"error strict decoding YAML: {repeated}")
        new = ordered(kind, decoded.document)
        intake.check_names(new["metadata"], request.name, request.namespace if kind.namespaced else "")
        if record is None:
            _manage(new, done.entries)
            return self._insert(context, write, row, request, new, options, None)
        strategy.default(new)
        return self._replace(context, write, row, strategy, request, record, new, options, done.entries)

    def _track(
        self,
        context: Context,
        row: Resource,
        strategy: Strategy,
        request: ApiRequest,
        options: Options,
        old: Document | None,
        new: Document,
        entries: Sequence[managed.Entry] | None,
    ) -> None:
        """Write into ``new`` who manages which of its fields, now that the request's manager makes it of ``old``."""
        if entries is None:
            return
        field = self._rows.field(row)
        found = managed.compare(field, _nothing(field) if old is None else old, new, _ignored(row, request.subresource))
        name = managed.manager_name(options.manager, request.user_agent or authorizer.program_of(request.user))
        manager = managed.Manager(name, managed.UPDATE, row.strategy.api_version, request.subresource)
        _manage(new, managed.updated(entries, found, manager, as_time(context.now)))

    # ------------------------------------------------------------ deleting

    # ------------------------------------------------------------ pods: binding, eviction

    # ------------------------------------------------------------ scale

    def _scale(self, context: Context, write: Write, row: Resource, request: ApiRequest) -> ApiResponse:
        if request.verb == "patch" and intake.media_type(request) not in PATCHES:
            raise statuses.unsupported_patch_type()
        record = stored(self._store, row, request)
        if request.verb == "get":
            return ApiResponse(200, msgspec.json.encode(scaling.scale_of(row, record)), revision=record.revision)
        new, options = scaling.scaled(context, row, record, request)
        answer = self._replace(_for(context, options), write, row, row.strategy, request, record, new, options)
        shown = scaling.shown_scale(row, msgspec.json.decode(answer.body))
        return ApiResponse(200, msgspec.json.encode(shown), answer.warnings, answer.revision)

    # ------------------------------------------------------------ custom kinds

    # ------------------------------------------------------------ parts

    def _may(self, request: ApiRequest) -> bool:
        return authorizer.judge(request, self._store).allowed

    def _write_also(self, context: Context, write: Write) -> None:
        for resource, namespace, name, document in context.also_write:
            write.put(resource, namespace, name, document)

    def _check_size(self, document: Document) -> None:
        if len(msgspec.json.encode(document)) > OBJECT_BYTES_MAX:
            raise statuses.request_too_large(f"Request entity too large: limit is {OBJECT_BYTES_MAX}")


def _for(context: Context, options: Options) -> Context:
    """The context of a dry run, if it is one."""
    if not options.dry_run:
        return context
    return Context(
        context.now, context.rng, context.profile, context.reader, context.user, context.groups, context.warnings, dry_run=True
    )


def _stored_form(row: Resource, document: Document) -> Document:
    return document if row.face is None else row.face.stored(document)


def _ignored(row: Resource, subresource: str) -> tuple[str, ...]:
    """The top-level fields that a write of the (sub)resource cannot change, so that nobody manages them by it."""
    if subresource == "status" and row.is_custom and row.field is not None:
        return customs.unmanaged(row.field.fields)
    if subresource == "status":
        return ("spec",)
    return ("status",) if not subresource and "status" in row.subresources else ()


@lru_cache(maxsize=1024)
def _nothing(field: schema.Field) -> Document:
    """What an object is compared with that is new: it must not be changed."""
    made: Document = schema.zero(field)
    return made


def _manage(document: Document, entries: Sequence[managed.Entry]) -> None:
    document["metadata"].pop("managedFields", None)
    if entries:
        document["metadata"]["managedFields"] = entries


def _described(config: Mapping[str, Any]) -> str:
    """An object as upstream's errors about applies name it."""
    meta = config.get("metadata")
    names = [meta.get(name) if isinstance(meta, dict) else "" for name in ("namespace", "name")]
    version = config["apiVersion"] if "/" in config["apiVersion"] else f"/{config['apiVersion']}"
    return f"{names[0] or ''}/{names[1] or ''}; {version}, Kind={config['kind']}"
