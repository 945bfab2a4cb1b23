"""What a patch makes of an object."""

from typing import Any

import msgspec

from elbowroom.api.fielderrors import invalid
from elbowroom.apiserver import intake, schema, statuses
from elbowroom.apiserver.gotext import go_text
from elbowroom.apiserver.intake import Options
from elbowroom.apiserver.patches import PatchError, json_patch, merge_patch, strategic_patch
from elbowroom.apiserver.strategy import Context, Document, Strategy
from elbowroom.rpc import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from elbowroom.wire import ApiRequest

PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)


def patched(
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
    known = document if media != JSON_PATCH else None  # which works on the document itself
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
            go_text(schema.parse_json(request.body).value) if strategic else msgspec.json.encode(patched, enc_hook=float).decode()
        )
        raise statuses.invalid("", "", "", [invalid("patch", shown, trouble)])
    assert decoded is not None
    new = ordered(kind, decoded.document)
    intake.check_names(new["metadata"], request.name, request.namespace if kind.namespaced else "")
    return new


def ordered(strategy: Strategy, document: Document) -> Document:
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
