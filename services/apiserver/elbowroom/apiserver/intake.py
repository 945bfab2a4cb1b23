"""From a request to what it means: its options, and the document in its body, in upstream's words where they are wrong."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.fielderrors import FieldError, invalid, not_supported, required, too_long
from elbowroom.apiserver import schema
from elbowroom.apiserver.definitions.structural import CustomStruct
from elbowroom.apiserver.gotext import is_true
from elbowroom.apiserver.statuses import bad_request, internal, unsupported_body_type
from elbowroom.apiserver.statuses import invalid as invalid_status
from elbowroom.apiserver.strategy import Document
from elbowroom.wire import ApiRequest

MANAGER_BYTES_MAX = 128
_SCHEME = "deps/github.com/openshift/kubernetes/pkg/api/legacyscheme/scheme.go:30"
_OPTIONS_SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_OLDER = {"Eviction": "policy/v1beta1"}
"""Versions that are taken for the current one."""
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


@dataclass(frozen=True, slots=True)
class Options:
    """CreateOptions, UpdateOptions and PatchOptions. ``validation``: Ignore, Warn or Strict."""

    dry_run: bool = False
    validation: str = "Warn"
    manager: str = ""
    """``fieldManager``, empty if the request names none."""
    force: bool = False
    """Does an apply take fields from other managers?"""


_DEFAULT_OPTIONS = Options()


def write_options(request: ApiRequest, kind: str, *, applies: bool = False) -> Options:
    """The query's options; ``kind`` is CreateOptions, UpdateOptions or PatchOptions, of an apply if it ``applies``."""
    query = request.query
    if not query and not applies:
        return _DEFAULT_OPTIONS
    found: list[FieldError] = []
    dry_run = query.get("dryRun")
    if kind == "PatchOptions" and "force" in query and not applies:
        found.append(FieldError("force", "FieldValueForbidden", "Forbidden: may not be specified for non-apply patch"))
    manager = query.get("fieldManager", "")
    if applies and not manager:
        found.append(required("fieldManager", "is required for apply patch"))
    if len(manager.encode()) > MANAGER_BYTES_MAX:
        found.append(too_long("fieldManager", MANAGER_BYTES_MAX))
    if any(not character.isprintable() for character in manager):
        found.append(invalid("fieldManager", manager, "should only contain printable characters"))
    if dry_run is not None and dry_run != "All":
        found.append(not_supported("dryRun", [dry_run], ("All",)))
    validation = query.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        found.append(not_supported("fieldValidation", validation, _VALIDATIONS))
    if found:
        raise invalid_status("meta.k8s.io", kind, "", found)
    return Options(dry_run == "All", validation or "Warn", manager, applies and "force" in query and is_true(query["force"]))


def media_type(request: ApiRequest) -> str:
    """The content type without its parameters."""
    return request.content_type.partition(";")[0].strip().lower() or "application/json"


def parsed_body(request: ApiRequest, kind: str) -> schema.Parsed:
    """The JSON or YAML body as a value, null as an empty object. ``kind`` is told in the refusal, unless it is empty."""
    body = request.body
    why = ""
    try:
        match media_type(request):
            case "application/json":
                parsed = schema.parse_json(body)
            case "application/yaml":
                parsed = schema.parse_yaml(body)
            case _:
                raise unsupported_body_type()
        if parsed.value is None:
            return schema.Parsed({}, [])
        if isinstance(parsed.value, dict):
            return parsed
        what = {str: "string", bool: "bool", list: "array"}.get(type(parsed.value), "number")
        why = f"couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type {_TYPE_META}"
    except schema.MalformedBodyError as error:
        why = str(error)
        if media_type(request) != "application/yaml":
            why = f"couldn't get version/kind; json parse error: {why}"
    raise bad_request(schema.unrecognised(kind, why, body) if kind else why)


def decoded_body(
    request: ApiRequest, field: schema.Field, group: str, version: str, kind: str, options: Options
) -> tuple[Document, list[str]]:
    """The object in the body, through its type, and warnings about fields that nobody knows or that stand twice."""
    parsed = parsed_body(request, kind)
    value = parsed.value
    said_kind, said_version = _said(value, "kind", request, kind), _said(value, "apiVersion", request, kind)
    expected = f"{group}/{version}" if group else version
    if isinstance(field.struct, CustomStruct):
        _check_custom(said_kind, said_version, kind, expected, value)
    elif said_kind or said_version:
        trouble = misplaced(said_kind or kind, said_version or expected, kind, expected)
        if trouble:
            short = (said_version or expected).rpartition("/")[2]
            raise bad_request(f'{said_kind or kind} in version "{short}" cannot be handled as a {kind}: {trouble}')
    decoded = schema.decode(field, value)
    if decoded.error is not None:
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {decoded.error}')
    warnings = [] if options.validation == "Ignore" else loose_ends(parsed, decoded)
    if warnings and options.validation == "Strict":
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {", ".join(warnings)}'
        )
    return decoded.document, [warning for warning in warnings if "\n" not in warning]  # no header holds it


def _check_custom(said_kind: str, said_version: str, kind: str, expected: str, value: Document) -> None:
    """An object of a custom kind says what it is, since no Go type does."""
    if not said_kind:
        shown = msgspec.json.encode(value, enc_hook=float).decode()
        raise bad_request(f"Object 'Kind' is missing in '{shown}'")
    if (said_version or expected) != expected:
        why = f"the API version in the data ({said_version}) does not match the expected API version ({expected})"
        raise bad_request(why)
    if said_kind != kind:
        meta = value.get("metadata")
        name = str(meta.get("name", "")) if isinstance(meta, dict) else ""
        raise invalid_status(expected.rpartition("/")[0], kind, name, [invalid("kind", said_kind, f"must be {kind}")])


def configuration(request: ApiRequest, kind: str, api_version: str) -> tuple[Document, str]:
    """What an apply says, JSON or YAML, of the kind that the URL is about, and what strict decoding has against it."""
    try:
        parsed = _json_or_yaml(request.body)
    except schema.MalformedBodyError as why:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {why}") from why
    value = parsed.value
    if value is None:
        value = {}
    if not isinstance(value, dict):
        what = {str: "string", bool: "bool", list: "array"}.get(type(value), "number")
        text = f"json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {text}")
    said_kind, said_version = (said if isinstance(said, str) else "" for said in (value.get("kind"), value.get("apiVersion")))
    if (said_kind, said_version) != (kind, api_version):
        shown = said_version if "/" in said_version else f"/{said_version}"
        raise bad_request(f"invalid object type: {shown}, Kind={said_kind}")
    meta = value.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return value, f"error converting YAML to JSON: {parsed.repeated}" if parsed.repeated else ""


def _json_or_yaml(body: bytes) -> schema.Parsed:
    """All is YAML to upstream; JSON is read as such as long as nothing is to be said of it, since that takes less time."""
    if body.lstrip()[:1] == b"{":
        try:
            parsed = schema.parse_json(body)
        except schema.MalformedBodyError:
            return schema.parse_yaml(body)
        if not parsed.duplicates:
            return parsed
    return schema.parse_yaml(body)


def loose_ends(parsed: schema.Parsed | None, decoded: schema.Decoded) -> list[str]:
    """``duplicate field "a"``, ``unknown field "b"``: what strict decoding refuses and the default warns of."""
    found = [] if parsed is None else parsed.warnings
    return found + [f'unknown field "{path}"' for path in decoded.unknown]


def _said(value: Mapping[str, Any], name: str, request: ApiRequest, expected: str) -> str:
    said = value.get(name) or ""
    if isinstance(said, str):
        return said
    what = {bool: "bool", list: "array", dict: "object"}.get(type(said), "number")
    member = {"kind": "kind", "apiVersion": "apiVersion"}[name]
    why = (
        f"couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go struct field .{member} of type string"
    )
    raise bad_request(schema.unrecognised(expected, why, request.body) if expected else why)


def misplaced(kind: str, api_version: str, expected_kind: str, expected_version: str) -> str:
    """Why an object of that kind and version is not what is expected here; empty if it is."""
    if kind == expected_kind and api_version in (expected_version, _OLDER.get(kind)):
        return ""
    group, _, version = api_version.rpartition("/")
    if schema.find(group, version, kind) is None:
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
    hub = expected_version.rpartition("/")[0].partition(".")[0] or "core"
    return f"converting ({version}.{kind}) to ({hub}.{expected_kind}): unknown conversion"


# ---------------------------------------------------------------- deletions


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    orphan: bool | None = None
    propagation: str | None = None
    dry_run: bool = False


_PROPAGATIONS = ("Foreground", "Background", "Orphan", "nil")


def delete_options(request: ApiRequest) -> DeleteOptions:
    """Those of the body, or without one those of the query."""
    if request.body:
        if media_type(request) not in ("application/json", "application/yaml"):
            raise unsupported_body_type()
        parsed = parsed_body(request, "").value
        kind = _said(parsed, "kind", request, "") or "DeleteOptions"
        version = _said(parsed, "apiVersion", request, "") or "v1"
        if kind != "DeleteOptions":
            raise bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme "{_OPTIONS_SCHEME}"')
        return delete_options_of(parsed)
    query = request.query
    document: Document = {}
    for name, convert in (("gracePeriodSeconds", _number), ("orphanDependents", is_true)):
        if query.get(name):
            document[name] = convert(query[name])
    if "propagationPolicy" in query:
        document["propagationPolicy"] = query["propagationPolicy"]
    if "dryRun" in query:
        document["dryRun"] = [query["dryRun"]]
    return delete_options_of(document)


def delete_options_of(document: Document) -> DeleteOptions:
    """DeleteOptions as a document (a body's, an Eviction's)."""
    field = schema.find("meta.k8s.io", "v1", "DeleteOptions")
    assert field is not None
    decoded = schema.decode(field, document)
    if decoded.error is not None:
        raise bad_request(decoded.error)
    options = decoded.document
    preconditions = options.get("preconditions", {})
    found: list[FieldError] = []
    orphan, propagation = options.get("orphanDependents"), options.get("propagationPolicy")
    if propagation is not None and orphan is not None:
        found.append(invalid("propagationPolicy", propagation, "orphanDependents and deletionPropagation cannot be both set"))
    if propagation is not None and propagation not in _PROPAGATIONS[:3]:
        found.append(not_supported("propagationPolicy", propagation, _PROPAGATIONS))
    dry_run = options.get("dryRun", [])
    if any(one != "All" for one in dry_run):
        found.append(not_supported("dryRun", dry_run, ("All",)))
    if found:
        raise invalid_status("meta.k8s.io", "DeleteOptions", "", found)
    return DeleteOptions(
        options.get("gracePeriodSeconds"),
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        orphan,
        propagation,
        bool(dry_run),
    )


def _number(text: str) -> int:
    return parse_int(text)


# ---------------------------------------------------------------- numbers

DIGITS_MAX = 64
_DIGITS, _INTEGER = re.compile(r"[0-9]+"), re.compile(r"[+-]?[0-9]+")


def parse_int(text: str) -> int:
    """A number of a query, or 400 in Go's words."""
    if not _INTEGER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > DIGITS_MAX or not -(1 << 63) <= int(text) < 1 << 63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def parse_revision(text: str) -> int:
    """The resourceVersion in a query, or 400."""
    why = _unsigned_fault(text)
    if not why:
        return int(text)
    raise bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}": {why}')


def object_revision(document: Mapping[str, Any]) -> int:
    """The resourceVersion of a document that someone sent; 0 for none. Upstream answers nonsense with a 500."""
    text = document["metadata"].get("resourceVersion")
    if not text:
        return 0
    why = _unsigned_fault(text)
    if not why:
        return int(text)
    raise internal(why)


def names_revision(document: Mapping[str, Any]) -> bool:
    """Does an object that is to be created say that it is of a revision? Upstream's store reads nonsense as none here."""
    text = document["metadata"].get("resourceVersion")
    return bool(text) and not _unsigned_fault(text) and int(text) != 0


def _unsigned_fault(text: str) -> str:
    """What Go's ParseUint says of a text that is no unsigned number of 64 bits. Of thousands of digits nothing is computed."""
    if not _DIGITS.fullmatch(text):
        return f'strconv.ParseUint: parsing "{text}": invalid syntax'
    if len(text) > DIGITS_MAX or int(text) >= 1 << 64:
        return f'strconv.ParseUint: parsing "{text}": value out of range'
    return ""


def check_names(metadata: Mapping[str, Any], name: str, namespace: str) -> None:
    """The object that replaces another must be called as the URL says."""
    said_namespace = metadata.get("namespace", "")
    if said_namespace and namespace and said_namespace != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    said = metadata.get("name", "")
    if not said:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if said != name:
        raise bad_request(f"the name of the object ({said}) does not match the name on the URL ({name})")
