"""Kubernetes REST over the store: the same verbs for every kind, with strategies for what differs.

``serve`` takes a request and gives the answer with the changes that it made; the caller makes them durable before it shows either
(``Served.writes`` first, then the answer and the events). The order inside a write is upstream's: decode and default, mutating
admission, what the (sub)resource may not change, validation with all errors at once, validating admission, store (RC-25).
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.clock import as_time
from elbowroom.api.fielderrors import invalid
from elbowroom.api.gates import Profile
from elbowroom.apiserver import (
    admission,
    apply,
    authorizer,
    discovery,
    intake,
    kinds,
    listing,
    managed,
    metadata,
    plain_kinds,
    podverbs,
    rbac,
    rbac_defaults,
    rbac_kinds,
    removal,
    schema,
    statuses,
    versions,
    workloads,
)
from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.definitions import customs, naming
from elbowroom.apiserver.definitions.customs import Custom
from elbowroom.apiserver.definitions.naming import DEFINITIONS
from elbowroom.apiserver.ephemeral import EphemeralContainersStrategy
from elbowroom.apiserver.gotext import go_text
from elbowroom.apiserver.intake import DeleteOptions, Options
from elbowroom.apiserver.kinds import Resource
from elbowroom.apiserver.patches import PatchError, json_patch, merge_patch, strategic_patch
from elbowroom.apiserver.pods import PodResizeStrategy, PodStatusStrategy, PodStrategy
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.store import Change, Record, Store, StoreReader
from elbowroom.apiserver.strategy import Context, Document, Strategy
from elbowroom.machine import Instant, Persist
from elbowroom.rpc import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from elbowroom.wire import ApiRequest, ApiResponse

OBJECT_BYTES_MAX = 1_572_864
"""What a stored object may have (etcd's limit)."""
NAME_ATTEMPTS = 8
_PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
_SCALE = schema.find("autoscaling", "v1", "Scale")


@dataclass(frozen=True, slots=True)
class Served:
    """An answer, the changes that the request made (in the order of their revisions), and how to make them durable."""

    response: ApiResponse
    changes: Sequence[Change] = ()
    writes: Sequence[Persist] = ()
    base: int = 0
    """The revision that an update named as the one it is based on; 0 if it named none."""


class _Write:
    """The changes of one request."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.changes: list[Change] = []
        self.writes: list[Persist] = []
        self.base = 0

    def put(self, resource: str, namespace: str, name: str, document: Document) -> Record:
        """The record that stands afterwards: the new one, or the old one if nothing differs."""
        done = self._store.put(resource, namespace, name, document)
        if done is None:
            record = self._store.get(resource, namespace, name)
            assert record is not None, "what equals the new document stands"
            return record
        return self._note(*done)

    def delete(self, resource: str, namespace: str, name: str) -> Record:
        return self._note(*self._store.delete(resource, namespace, name))

    def _note(self, change: Change, persist: Persist) -> Record:
        self.changes.append(change)
        self.writes.append(persist)
        return change.record


class Registry:
    """See the module. ``rng`` gives uids and generated names."""

    def __init__(self, store: Store, profile: Profile, rng: random.Random) -> None:
        self._store, self._profile, self._rng = store, profile, rng
        self._reader = StoreReader(store)
        self._chain: Sequence[Plugin] = admission.chain(profile)
        pods = Resource(
            PodStrategy(),
            {"status": PodStatusStrategy(), "resize": PodResizeStrategy(), "ephemeralcontainers": EphemeralContainersStrategy()},
            fields=kinds.POD_FIELDS,
            returns_deleted=True,
            graceful=True,
        )
        self.rows: dict[str, Resource] = {
            **kinds.resources(pods),
            **{row.strategy.resource: row for row in rbac_kinds.rows()},
            DEFINITIONS: naming.row(),
            **{row.strategy.resource: row for row in (*workloads.rows(), *plain_kinds.rows())},
        }
        more = versions.rows()
        self.rows |= {row.strategy.resource: row for row in more if row.face is None}
        self._others = {(row.strategy.group, row.strategy.version, row.strategy.plural): row for row in more}
        """The forms of kinds that are served in more than one."""
        previews = profile.publishes_resize_status or profile.on("InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay")
        self._customs: dict[str, tuple[int, dict[str, Custom]]] = {}
        """By definition, what follows from it, and the revision that it follows from."""
        self._fields: dict[str, schema.Field] = {}
        for name, row in self.rows.items():
            strategy = row.strategy
            field = schema.find(strategy.group, strategy.version, strategy.kind, previews=previews)
            assert field is not None, f"{name} has no field tree"
            self._fields[name] = field

    # ------------------------------------------------------------ routing

    def serve(self, now: Instant, request: ApiRequest) -> Served:
        """Carry out a request whose user may make it. Refusals are answers too."""
        context = Context(now, self._rng, self._profile, self._reader, request.user, request.groups)
        write = _Write(self._store)
        try:
            response = self._route(context, write, request)
        except ApiError as refusal:
            assert not write.changes, "a refused request changes nothing"
            return Served(refusal.response(context.warnings))
        self._settle(context, write)
        return Served(response, write.changes, write.writes, write.base)

    def row_of(self, request: ApiRequest) -> Resource:
        """The row that a request is about; 404 for a resource, 405 for a verb, that is not served."""
        known = discovery.find(request.group, request.version, request.resource)
        row = self._others.get((request.group, request.version, request.resource)) or self.rows.get(
            f"{request.resource}.{request.group}" if request.group else request.resource
        )
        if known is None or row is None:
            custom = self._customs_of(f"{request.resource}.{request.group}").get(request.version)
            if custom is None:
                raise statuses.no_such_resource()
            known, row = custom.resource, custom.row
        verbs = known.verbs
        if request.subresource:
            subresource = known.subresource(request.subresource)
            if subresource is None:
                raise statuses.no_such_resource()
            verbs = subresource.verbs
        if request.verb not in verbs:
            raise statuses.method_not_allowed()
        return row

    def _customs_of(self, name: str) -> dict[str, Custom]:
        """What is served of the definition of that name, by version. It follows from the store alone."""
        record = self._store.get(DEFINITIONS, "", name)
        if record is None:
            self._customs.pop(name, None)
            return {}
        known = self._customs.get(name)
        if known is None or known[0] != record.revision:
            known = self._customs[name] = (record.revision, customs.customs(record.document, record.revision))
        return known[1]

    def _field(self, row: Resource) -> schema.Field:
        return self._fields[row.strategy.resource] if row.field is None else row.field

    def _route(self, context: Context, write: _Write, request: ApiRequest) -> ApiResponse:
        if request.resource == "bindings" and not request.group:
            if request.verb != "create":
                raise statuses.method_not_allowed()
            return self._bind(context, write, request)
        row = self.row_of(request)
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
                        return self._delete(context, write, row, request)
                    case "deletecollection":
                        return self._delete_collection(context, write, row, request)
            case "binding":
                return self._bind(context, write, request)
            case "eviction":
                return self._evict(context, write, request)
            case "scale" if row.scales:
                return self._scale(context, write, row, request)
            case "log":
                query = request.query
                previous = query.get("previous") in ("true", "1")
                text = podverbs.log(self._stored(row, request).document, query.get("container", ""), previous=previous)
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

    def _stored(self, row: Resource, request: ApiRequest) -> Record:
        strategy = row.strategy
        record = self._store.get(strategy.resource, request.namespace if strategy.namespaced else "", request.name)
        if record is None:
            raise statuses.not_found(strategy.group, strategy.plural, request.name)
        return record

    def _get(self, row: Resource, request: ApiRequest) -> ApiResponse:
        wanted = request.query.get("resourceVersion")
        if wanted and (revision := intake.parse_revision(wanted)) > self._store.revision:
            raise statuses.too_large_revision(revision, self._store.revision)
        record = self._stored(row, request)
        return ApiResponse(200, listing.data_of(row, record), revision=record.revision)

    # ------------------------------------------------------------ creating

    def _create(self, context: Context, write: _Write, row: Resource, request: ApiRequest) -> ApiResponse:
        strategy = row.strategy
        options = intake.write_options(request, "CreateOptions")
        context = _for(context, options)
        field = self._field(row)
        decoded, warnings = intake.decoded_body(request, field, strategy.group, strategy.version, strategy.kind, options)
        context.warnings.extend(warnings)
        document = _ordered(strategy, decoded)
        said_entries = document["metadata"].get("managedFields", ())
        return self._insert(context, write, row, request, document, options, managed.held(said_entries, ()))

    def _insert(
        self,
        context: Context,
        write: _Write,
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
        self._admit(context, strategy, attributes)
        rbac_kinds.check_escalation(context, attributes, self._may)
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
        self._validate(context, strategy, attributes)
        if self._store.get(strategy.resource, namespace, name) is not None:
            raise statuses.already_exists(strategy.group, strategy.plural, name)
        if names_revision:
            raise statuses.internal("resourceVersion should not be set on objects to be created")
        if context.dry_run:
            return ApiResponse(201, msgspec.json.encode(document), tuple(context.warnings))
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
        write = _Write(self._store)
        context = Context(now, self._rng, self._profile, self._reader, "system:apiserver", ("system:masters",))
        for resource, given in (
            *kinds.boot_objects(),
            *((*rbac_defaults.objects(), ("services", kinds.KUBERNETES)) if policy else ()),
        ):
            strategy = self.rows[resource].strategy
            name, namespace = given["metadata"]["name"], given["metadata"].get("namespace", "")
            if self._store.get(resource, namespace, name) is not None:
                continue
            document = _ordered(strategy, msgspec.json.decode(msgspec.json.encode(given)))
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
        self._settle(context, write, always=True)
        return Served(ApiResponse(200), write.changes, write.writes)

    # ------------------------------------------------------------ updating

    def _update(self, context: Context, write: _Write, row: Resource, strategy: Strategy, request: ApiRequest) -> ApiResponse:
        kind = row.strategy
        options = intake.write_options(request, "UpdateOptions")
        context = _for(context, options)
        decoded, warnings = intake.decoded_body(request, self._field(row), kind.group, kind.version, kind.kind, options)
        context.warnings.extend(warnings)
        new = _ordered(kind, decoded)
        intake.check_names(new["metadata"], request.name, request.namespace if kind.namespaced else "")
        strategy.default(new)
        record = self._stored(row, request)
        old = listing.document_of(row, record)
        uid = new["metadata"].get("uid")
        if uid and uid != old["metadata"]["uid"]:
            raise precondition_failed(kind, record, f"UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}")
        return self._replace(context, write, row, strategy, request, record, new, options)

    def _replace(
        self,
        context: Context,
        write: _Write,
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
        self._admit(context, kind, attributes)
        rbac_kinds.check_escalation(context, attributes, self._may)
        strategy.prepare_update(context, new, old)
        if strategy.has_generation and strategy.spec_changed(new, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        errors = metadata.validate_update(new["metadata"], old["metadata"], rule=row.name_rule) + strategy.validate_update(
            context, new, old
        )
        if errors:
            raise statuses.invalid(kind.group, kind.kind, record.name, errors)
        self._validate(context, kind, attributes)
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

    def _patch(self, context: Context, write: _Write, row: Resource, strategy: Strategy, request: ApiRequest) -> ApiResponse:
        kind = row.strategy
        media = intake.media_type(request)
        if media == APPLY_PATCH:
            return self._apply(context, write, row, strategy, request)
        if row.is_custom and media not in (JSON_PATCH, MERGE_PATCH):
            raise statuses.unsupported_custom_patch_type()
        if media not in _PATCHES:
            raise statuses.unsupported_patch_type()
        options = intake.write_options(request, "PatchOptions")
        context = _for(context, options)
        record = self._stored(row, request)
        document = listing.copy_of(row, record)
        if media != JSON_PATCH and b"managedFields" not in request.body:
            document["metadata"].pop("managedFields", None)  # nothing to patch and to decode; they stay as they are
        new = self._patched(context, self._field(row), kind, media, request, document, options)
        strategy.default(new)
        return self._replace(context, write, row, strategy, request, record, new, options)

    def _apply(self, context: Context, write: _Write, row: Resource, strategy: Strategy, request: ApiRequest) -> ApiResponse:
        """Server-side apply; it creates what is not there, but no subresource of it."""
        kind = row.strategy
        options = intake.write_options(request, "PatchOptions", applies=True)
        context = _for(context, options)
        record = self._store.get(kind.resource, request.namespace if kind.namespaced else "", request.name)
        if record is None and request.subresource:
            raise statuses.not_found(kind.group, kind.plural, request.name)
        field = self._field(row)
        config = intake.configuration(request, kind.kind, kind.api_version)
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
        new = _ordered(kind, decoded.document)
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
        field = self._field(row)
        found = managed.compare(field, schema.zero(field) if old is None else old, new, _ignored(row, request.subresource))
        name = managed.manager_name(options.manager, request.user_agent or authorizer.program_of(request.user))
        manager = managed.Manager(name, managed.UPDATE, row.strategy.api_version, request.subresource)
        _manage(new, managed.updated(entries, found, manager, as_time(context.now)))

    def _patched(
        self,
        context: Context,
        field: schema.Field,
        kind: Strategy,
        media: str,
        request: ApiRequest,
        document: Document,
        options: Options,
    ) -> Document:
        """``document`` (the caller's own) after the request's patch, decoded anew."""
        try:
            parsed = schema.parse_json(request.body)
        except schema.MalformedBodyError as why:
            raise statuses.bad_request(str(why) if media == STRATEGIC_PATCH else f"error decoding patch: {why}") from why
        patch = parsed.value
        try:
            if media == STRATEGIC_PATCH:
                if patch is None:
                    patch = {}
                if not isinstance(patch, dict):
                    raise statuses.bad_request(
                        f"json: cannot unmarshal {_json_kind(patch)} into Go value of type map[string]interface {{}}"
                    )
                patched: Any = strategic_patch(document, patch, field)
            else:
                patched = json_patch(document, patch) if media == JSON_PATCH else merge_patch(document, patch)
        except PatchError as why:
            if why.code == 413:
                raise statuses.request_too_large(why.message) from why
            if why.code == 422:
                raise statuses.rejected() from why
            raise (statuses.bad_request(why.message) if why.code == 400 else statuses.internal(why.message)) from why
        trouble = ""
        if media != STRATEGIC_PATCH:
            trouble = _moved(patched, kind)
        known = document if media == STRATEGIC_PATCH else None  # the others work on the document itself
        decoded = schema.decode(field, patched, restored=media == STRATEGIC_PATCH, known=known) if not trouble else None
        if decoded is not None and media == MERGE_PATCH and (decoded.unknown or decoded.error is not None):
            decoded = schema.decode(field, _sorted(patched))  # upstream's library writes what it has merged with sorted keys
        if decoded is not None and decoded.error is not None:
            trouble = decoded.error
        elif decoded is not None and options.validation != "Ignore":
            if media == JSON_PATCH:
                decoded.unknown.sort()
            loose = intake.loose_ends(parsed, decoded)
            if loose and options.validation == "Strict":
                trouble = f"strict decoding error: {', '.join(loose)}"
            else:
                context.warnings.extend(loose)
        if trouble:
            strategic = media == STRATEGIC_PATCH
            shown = (
                go_text(schema.parse_json(request.body).value)
                if strategic
                else msgspec.json.encode(patched, enc_hook=float).decode()
            )
            raise statuses.invalid("", "", "", [invalid("patch", shown, trouble)])
        assert decoded is not None
        new = _ordered(kind, decoded.document)
        intake.check_names(new["metadata"], request.name, request.namespace if kind.namespaced else "")
        return new

    # ------------------------------------------------------------ deleting

    def _delete(self, context: Context, write: _Write, row: Resource, request: ApiRequest) -> ApiResponse:
        options = intake.delete_options(request)
        record = self._stored(row, request)
        ended = self.remove(context, write, row, record, options)
        kind = row.strategy
        if row.returns_deleted or ended.record is not None:
            shown = ended.record or record
            return ApiResponse(200, listing.data_of(row, shown), revision=shown.revision)
        details = {
            "name": record.name,
            **({"group": kind.group} if kind.group else {}),
            "kind": kind.plural,
            "uid": record.document["metadata"]["uid"],
        }
        return ApiResponse(200, statuses.success(details=details), revision=ended.revision)

    def remove(self, context: Context, write: _Write, row: Resource, record: Record, options: DeleteOptions) -> "_Ended":
        """Delete an object, or begin to."""
        kind = row.strategy
        _check_preconditions(kind, record, options)
        attributes = Attributes("DELETE", kind.resource, "", record.namespace, record.name, None, record.document)
        self._admit(context, kind, attributes)
        self._validate(context, kind, attributes)
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
            return _Ended(marked, marked.revision)
        if options.dry_run:
            return _Ended(marked if row.returns_deleted else None, record.revision)
        gone = write.delete(kind.resource, record.namespace, record.name)
        return _Ended(gone if row.returns_deleted else None, gone.revision)

    def _delete_collection(self, context: Context, write: _Write, row: Resource, request: ApiRequest) -> ApiResponse:
        options = intake.delete_options(request)
        found = listing.select(self._store, row, request)
        for record in found:
            _check_preconditions(row.strategy, record, options)
        shown = [self.remove(context, write, row, record, options).record or record for record in found]
        return ApiResponse(200, listing.encode(row, shown, str(self._store.revision)), revision=self._store.revision)

    # ------------------------------------------------------------ pods: binding, eviction

    def _bind(self, context: Context, write: _Write, request: ApiRequest) -> ApiResponse:
        options = intake.write_options(request, "CreateOptions")
        row = self.rows["pods"]
        field = schema.find("", "v1", "Binding")
        assert field is not None
        binding, warnings = intake.decoded_body(request, field, "", "v1", "Binding", options)
        context.warnings.extend(warnings)
        name = request.name or binding["metadata"].get("name", "")
        podverbs.check_binding(binding, name, request.namespace)
        record = self._store.get("pods", request.namespace, name)
        if record is None:
            raise statuses.not_found("", "pods", name)
        uid = binding["metadata"].get("uid")
        mine = record.document["metadata"]["uid"]
        if uid and uid != mine:
            raise precondition_failed(row.strategy, record, f"UID in precondition: {uid}, UID in object meta: {mine}")
        revision = binding["metadata"].get("resourceVersion")
        if revision and revision != str(record.revision):
            why = f"ResourceVersion in precondition: {revision}, ResourceVersion in object meta: {record.revision}"
            raise precondition_failed(row.strategy, record, why)
        pod = record.copy()
        podverbs.bind(pod, binding, context)
        if not options.dry_run:
            record = write.put("pods", record.namespace, record.name, pod)
        return ApiResponse(201, statuses.success(201, says_code=True), tuple(context.warnings), record.revision)

    def _evict(self, context: Context, write: _Write, request: ApiRequest) -> ApiResponse:
        options = intake.write_options(request, "CreateOptions")
        field = schema.find("policy", "v1", "Eviction")
        assert field is not None
        eviction, warnings = intake.decoded_body(request, field, "policy", "v1", "Eviction", options)
        context.warnings.extend(warnings)
        if eviction["metadata"].get("name", "") != request.name:
            raise statuses.bad_request("name in URL does not match name in Eviction object")
        row = self.rows["pods"]
        record = self._stored(row, request)
        verdict = podverbs.judge_eviction(
            record.document, self._store.objects("poddisruptionbudgets.policy", record.namespace), context.now
        )
        if verdict.refusal is not None:
            raise verdict.refusal
        # Before anything is written; upstream has marked the pod and charged the budget by then, refused or not.
        wanted = intake.delete_options_of(eviction.get("deleteOptions", {}))
        _check_preconditions(row.strategy, record, wanted)
        dry_run = options.dry_run or wanted.dry_run
        if not dry_run:
            if verdict.budget is not None:
                budget = verdict.budget
                write.put("poddisruptionbudgets.policy", record.namespace, budget["metadata"]["name"], budget)
            pod = record.copy()
            podverbs.tell_of_eviction(pod, context.now)
            record = write.put("pods", record.namespace, record.name, pod)
            told = DeleteOptions(wanted.grace_seconds, None, None, wanted.orphan, wanted.propagation)
            self.remove(context, write, row, record, told)
        return ApiResponse(201, statuses.success(201, says_code=True), tuple(context.warnings), self._store.revision)

    # ------------------------------------------------------------ scale

    def _scale(self, context: Context, write: _Write, row: Resource, request: ApiRequest) -> ApiResponse:
        media = intake.media_type(request)
        if request.verb == "patch" and media not in _PATCHES:
            raise statuses.unsupported_patch_type()
        record = self._stored(row, request)
        if request.verb == "get":
            return ApiResponse(200, msgspec.json.encode(_scale_of(row, record)), revision=record.revision)
        assert _SCALE is not None
        kind = _ScaleKind()
        if request.verb == "patch":
            options = intake.write_options(request, "PatchOptions")
            scale = self._patched(context, _SCALE, kind, media, request, _scale_of(row, record), options)
        else:
            options = intake.write_options(request, "UpdateOptions")
            scale, warnings = intake.decoded_body(request, _SCALE, kind.group, kind.version, kind.kind, options)
            context.warnings.extend(warnings)
            intake.check_names(scale["metadata"], request.name, request.namespace)
        context = _for(context, options)
        replicas = scale.get("spec", {}).get("replicas", 0)
        if replicas < 0:
            error = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise statuses.invalid(kind.group, kind.kind, record.name, [error])
        new = listing.copy_of(row, record)
        if row.scale_paths is None:
            new["spec"]["replicas"] = replicas
        else:
            podverbs.put_replicas(new, row.scale_paths, replicas)
        new["metadata"]["resourceVersion"] = scale["metadata"].get("resourceVersion", "")
        if not request.subresource or not new["metadata"]["resourceVersion"]:
            new["metadata"]["resourceVersion"] = str(record.revision)
        answer = self._replace(context, write, row, row.strategy, request, record, new, options)
        shown = _scale(row, msgspec.json.decode(answer.body))
        return ApiResponse(200, msgspec.json.encode(shown), answer.warnings, answer.revision)

    # ------------------------------------------------------------ custom kinds

    def _settle(self, context: Context, write: _Write, *, always: bool = False) -> None:
        """What follows from a write that concerns definitions: which names are accepted, and the end of those that are deleted."""
        concerns = always or any(
            change.record.resource == DEFINITIONS or (change.deleted and change.record.resource not in self.rows)
            for change in write.changes
        )
        while concerns:
            before = len(write.changes)
            for record in self._store.objects(DEFINITIONS):
                self._settle_one(context, write, record)
            concerns = len(write.changes) > before

    def _settle_one(self, context: Context, write: _Write, record: Record) -> None:
        document = record.copy()
        meta = document["metadata"]
        if naming.FINALIZER in (meta.get("finalizers") or ()) and meta.get("deletionTimestamp") is not None:
            left = self._store.objects(record.name)
            for one in left:
                served = self._customs_of(record.name)
                if not served:
                    write.delete(record.name, one.namespace, one.name)
                elif one.document["metadata"].get("deletionTimestamp") is None:
                    self.remove(context, write, next(iter(served.values())).row, one, DeleteOptions())
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

    # ------------------------------------------------------------ parts

    def _admit(self, context: Context, kind: Strategy, attributes: Attributes) -> None:
        for plugin in self._chain:
            refusal = plugin.admit(context, attributes)
            if refusal is not None:
                raise _refused(kind, attributes, refusal)

    def _validate(self, context: Context, kind: Strategy, attributes: Attributes) -> None:
        for plugin in self._chain:
            refusal = plugin.validate(context, attributes)
            if refusal is not None:
                raise _refused(kind, attributes, refusal)

    def _may(self, request: ApiRequest) -> bool:
        return authorizer.judge(request, self._store).allowed

    def _write_also(self, context: Context, write: _Write) -> None:
        for resource, namespace, name, document in context.also_write:
            write.put(resource, namespace, name, document)

    def _check_size(self, document: Document) -> None:
        if len(msgspec.json.encode(document)) > OBJECT_BYTES_MAX:
            raise statuses.request_too_large(f"Request entity too large: limit is {OBJECT_BYTES_MAX}")


@dataclass(frozen=True, slots=True)
class _Ended:
    """What a deletion left: the object to show (None: a Status is shown) and the revision."""

    record: Record | None
    revision: int


class _ScaleKind(Strategy):
    group, kind, plural = "autoscaling", "Scale", "scales"


def _for(context: Context, options: Options) -> Context:
    """The context of a dry run, if it is one."""
    if not options.dry_run:
        return context
    return Context(
        context.now, context.rng, context.profile, context.reader, context.user, context.groups, context.warnings, dry_run=True
    )


def _stored_form(row: Resource, document: Document) -> Document:
    return document if row.face is None else row.face.stored(document)


def _scale_of(row: Resource, record: Record) -> Document:
    return _scale(row, listing.document_of(row, record))


def _scale(row: Resource, document: Document) -> Document:
    return podverbs.scale_of(document) if row.scale_paths is None else podverbs.custom_scale_of(document, row.scale_paths)


def _ignored(row: Resource, subresource: str) -> tuple[str, ...]:
    """The top-level fields that a write of the (sub)resource cannot change, so that nobody manages them by it."""
    if subresource == "status" and row.is_custom and row.field is not None:
        return customs.unmanaged(row.field.fields)
    if subresource == "status":
        return ("spec",)
    return ("status",) if not subresource and "status" in row.subresources else ()


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


def _ordered(strategy: Strategy, document: Document) -> Document:
    """The document with its kind in front, as upstream writes it."""
    made: Document = {"kind": strategy.kind, "apiVersion": strategy.api_version, "metadata": document.setdefault("metadata", {})}
    for name, value in document.items():
        if name not in made:
            made[name] = value
    return made


def _moved(patched: Any, kind: Strategy) -> str:
    """Did the patch make another kind of it? Why that cannot be."""
    if not isinstance(patched, dict):
        return ""
    said_kind, said_version = patched.get("kind"), patched.get("apiVersion")
    if not isinstance(said_kind, str | None) or not isinstance(said_version, str | None):
        return ""
    return intake.misplaced(said_kind or kind.kind, said_version or kind.api_version, kind.kind, kind.api_version)


def _sorted(value: Any) -> Any:
    """The same value with the keys of all objects in order."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _json_kind(value: Any) -> str:
    return {str: "string", bool: "bool", list: "array"}.get(type(value), "number")


def _refused(kind: Strategy, attributes: Attributes, refusal: Refusal) -> ApiError:
    if refusal.code == 403:
        return statuses.forbidden(kind.group, kind.plural, attributes.name, refusal.message, refusal.causes)
    details = refusal.details
    if details is None:
        details = {"name": attributes.name, **({"group": kind.group} if kind.group else {}), "kind": kind.plural}
    return ApiError(
        refusal.code, refusal.reason, refusal.message, {**details, **({"causes": list(refusal.causes)} if refusal.causes else {})}
    )


def precondition_failed(kind: Strategy, record: Record, why: str) -> ApiError:
    """409 as upstream's storage layer words it."""
    key = f"/registry/{kind.plural}/{record.key}"
    text = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {why}"
    return statuses.conflict(kind.group, kind.plural, record.name, text)


def _check_preconditions(kind: Strategy, record: Record, options: DeleteOptions) -> None:
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
