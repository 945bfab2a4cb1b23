"""Refusals as the Status documents that upstream answers, to the word."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.api.fielderrors import FieldError
from elbowroom.wire import ApiResponse

JSON = "application/json"


class ApiError(Exception):
    """A request is refused. ``status`` is the document that says so; ``code`` its HTTP status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        *,
        retry_after: int = 0,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details
        self.retry_after, self.metadata = retry_after, metadata

    @property
    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.metadata or {}),
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            document["reason"] = self.reason
        if self.details is not None:
            document["details"] = dict(self.details)
        document["code"] = self.code
        return document

    def body(self) -> bytes:
        """The Status as JSON."""
        return msgspec.json.encode(self.status)

    def response(self, warnings: Sequence[str] = ()) -> ApiResponse:
        """The refusal as an answer."""
        return ApiResponse(self.code, self.body(), tuple(warnings), retry_after=self.retry_after)


def success(code: int = 200, details: Mapping[str, Any] | None = None, *, says_code: bool = False) -> bytes:
    """A Status of success; creations (bindings, evictions) say their code."""
    document: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        document["details"] = dict(details)
    if says_code:
        document["code"] = code
    return msgspec.json.encode(document)


def _of(group: str, kind: str, name: str) -> dict[str, Any]:
    return {"name": name, **({"group": group} if group else {}), "kind": kind}


def _qualified(group: str, kind: str) -> str:
    return f"{kind}.{group}" if group else kind


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def not_found(group: str, plural: str, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{_qualified(group, plural)} "{name}" not found', _of(group, plural, name))


def no_such_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def already_exists(group: str, plural: str, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{_qualified(group, plural)} "{name}" already exists', _of(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    """``plural`` may be a kind (preconditions of deletions name those) or ``pods/binding``."""
    message = f'Operation cannot be fulfilled on {_qualified(group, plural)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _of(group, plural, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 with one cause for each error; a text that repeats stands once in the message."""
    texts = list(dict.fromkeys(map(str, errors)))
    shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details["causes"] = [{"reason": error.kind, "message": error.body, "field": error.field} for error in errors]
    return ApiError(422, "Invalid", f'{_qualified(group, kind)} "{name}" is invalid: {shown}', details)


def forbidden(group: str, plural: str, name: str, why: str, causes: Sequence[Mapping[str, str]] = ()) -> ApiError:
    shown = (
        f'{_qualified(group, plural)} "{name}" is forbidden: {why}' if name else f"{_qualified(group, plural)} is forbidden: {why}"
    )
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = plural
    if causes:
        details["causes"] = [dict(cause) for cause in causes]
    return ApiError(403, "Forbidden", shown, details)


def unsupported_patch_type() -> ApiError:
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def unsupported_custom_patch_type() -> ApiError:
    """A strategic merge patch of a custom kind, whose lists nobody has said how to merge."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    return ApiError(415, "UnsupportedMediaType", message, {})


def unsupported_body_type() -> ApiError:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )
    return ApiError(415, "UnsupportedMediaType", message, {})


def request_too_large(message: str) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", message, {})


def rejected() -> ApiError:
    """A JSON patch that does not apply: upstream says no more than this."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def internal(message: str) -> ApiError:
    """An error that upstream has no better answer for."""
    return ApiError(500, "", message)


def watch_too_old(revision: int, floor: int) -> ApiError:
    return ApiError(410, "Expired", f"too old resource version: {revision} ({floor})")


def list_too_old() -> ApiError:
    return ApiError(410, "Expired", "The resourceVersion for the provided list is too old.")


def continue_too_old(token: str) -> ApiError:
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
        "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with "
        "the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the "
        "first chunk was returned and now may show up in the list."
    )
    return ApiError(410, "Expired", message, metadata={"continue": token})


def too_large_revision(revision: int, current: int) -> ApiError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    return ApiError(504, "Timeout", message, details, retry_after=1)


def too_many_requests(message: str, causes: Sequence[Mapping[str, str]] = (), retry_after: int = 0) -> ApiError:
    details: dict[str, Any] = {"causes": [dict(cause) for cause in causes]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return ApiError(429, "TooManyRequests", message, details, retry_after=retry_after)


def too_often(retry_after: int) -> ApiError:
    """429 in the words of upstream's priority and fairness."""
    details = {"retryAfterSeconds": retry_after}
    return ApiError(429, "TooManyRequests", "Too many requests, please try again later.", details, retry_after=max(1, retry_after))
