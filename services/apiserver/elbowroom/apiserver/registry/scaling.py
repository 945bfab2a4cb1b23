"""The subresource ``scale``: read, and what a write of it asks for."""

from elbowroom.api.fielderrors import invalid
from elbowroom.apiserver import intake, listing, podverbs, schema, statuses
from elbowroom.apiserver.intake import Options
from elbowroom.apiserver.kinds.base import Resource
from elbowroom.apiserver.registry.patching import patched
from elbowroom.apiserver.store import Record
from elbowroom.apiserver.strategy import Context, Document, Strategy
from elbowroom.wire import ApiRequest

_FIELD = schema.find("autoscaling", "v1", "Scale")


class ScaleKind(Strategy):
    group, kind, plural = "autoscaling", "Scale", "scales"


def scaled(context: Context, row: Resource, record: Record, request: ApiRequest) -> tuple[Document, Options]:
    """The object that a write of its scale asks for, and the write's options."""
    assert _FIELD is not None
    kind = ScaleKind()
    if request.verb == "patch":
        options = intake.write_options(request, "PatchOptions")
        scale = patched(context, _FIELD, kind, intake.media_type(request), request, scale_of(row, record), options)
    else:
        options = intake.write_options(request, "UpdateOptions")
        scale, warnings = intake.decoded_body(request, _FIELD, kind.group, kind.version, kind.kind, options)
        context.warnings.extend(warnings)
        intake.check_names(scale["metadata"], request.name, request.namespace)
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
    return new, options


def scale_of(row: Resource, record: Record) -> Document:
    """The scale of a stored object."""
    return shown_scale(row, listing.document_of(row, record))


def shown_scale(row: Resource, document: Document) -> Document:
    """The scale of an object as it is shown."""
    return podverbs.scale_of(document) if row.scale_paths is None else podverbs.custom_scale_of(document, row.scale_paths)
