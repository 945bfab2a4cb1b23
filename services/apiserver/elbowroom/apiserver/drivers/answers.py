"""Answers: the headers, the form that the client asked for, and the bytes."""

import gzip
import http
import random
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate
from functools import cache
from typing import Any

import msgspec
import yaml

from elbowroom.apiserver import statuses, tables, warningtexts
from elbowroom.apiserver.drivers.request import Headers, Request
from elbowroom.apiserver.metadata import new_uid
from elbowroom.apiserver.negotiation import JSON, YAML, Form
from elbowroom.apiserver.statuses import ApiError
from elbowroom.machine import Instant
from elbowroom.wire import ApiResponse

GZIP_BYTES_MIN = 128 * 1024

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Answers:
    """Gives them. ``now`` is for ages; ``definition_of`` says what defines the kind of an object, if it is a custom one."""

    def __init__(self, now: Callable[[], Instant], definition_of: Callable[[Mapping[str, Any]], Mapping[str, Any] | None]) -> None:
        self._now, self._definition_of = now, definition_of
        self._date = (0, b"")

    async def refuse(self, request: Request, refusal: ApiError) -> None:
        await _send(request, *self.refusal(request, refusal))

    def refusal(self, request: Request, refusal: ApiError) -> "Message":
        return self._message(
            request, refusal.code, refusal.body() + b"\n", retry_after=refusal.retry_after, close=refusal.code in (408, 413)
        )

    async def answer(self, request: Request, response: ApiResponse, form: Form, query: Mapping[str, str]) -> None:
        await _send(request, *self.response(request, response, form, query))

    def response(self, request: Request, response: ApiResponse, form: Form, query: Mapping[str, str]) -> "Message":
        body, content_type = response.body, response.content_type
        if content_type == JSON:
            if form.shape and response.status < 300:
                body = self._shaped(body, form, query.get("includeObject", "Metadata"))
            if form.media_type == YAML:
                body, content_type = _as_yaml(body), YAML
            elif is_pretty(query, request.user_agent):
                body = msgspec.json.format(body, indent=2) + b"\n"
            else:
                body += b"\n"
        return self._message(
            request, response.status, body, content_type, warnings=response.warnings, retry_after=response.retry_after
        )

    def _shaped(self, body: bytes, form: Form, include_object: str) -> bytes:
        whole = _decode(body)
        if not isinstance(whole, dict) or whole.get("kind") == "Status":
            return body
        if form.shape == "Table":
            if include_object not in ("", "None", "Metadata", "Object"):
                raise bad_include_object(include_object)
            shaped = tables.table(
                self._now(), whole, include_object=include_object or "Metadata", definition=self._definition_of(whole)
            )
        elif "items" in whole and str(whole.get("kind")).endswith("List"):
            shaped = tables.partial_list(whole)
        else:
            shaped = tables.partial(whole)
        shaped["apiVersion"] = f"meta.k8s.io/{form.version}"
        return _encode(shaped)

    async def respond(self, request: Request, status: int, body: bytes, content_type: str = JSON) -> None:
        await _send(request, *self._message(request, status, body, content_type))

    def _message(
        self,
        request: Request,
        status: int,
        body: bytes,
        content_type: str = JSON,
        *,
        warnings: Sequence[str] = (),
        retry_after: int = 0,
        close: bool = False,
    ) -> "Message":
        headers = self.headers(request, content_type)
        request.status, request.told = status, body
        if len(body) >= GZIP_BYTES_MIN and b"gzip" in request.encoding:
            body = gzip.compress(body, 1)
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        headers.append((b"content-length", str(len(body)).encode()))
        if warnings:
            headers += [(b"warning", _warning(text)) for text in warningtexts.told(warnings)]
        if retry_after:
            headers.append((b"retry-after", str(retry_after).encode()))
        if close:
            headers.append((b"connection", b"close"))
        return status, headers, b"" if request.method == "HEAD" else body

    def headers(self, request: Request, content_type: str) -> Headers:
        request.audit_id = number()
        second = int(time.time())
        if self._date[0] != second:
            self._date = (second, formatdate(second, usegmt=True).encode())
        return [
            (b"audit-id", request.audit_id.encode()),
            (b"cache-control", b"no-cache, private"),
            (b"content-type", content_type.encode("latin-1")),
            (b"date", self._date[1]),
        ]


Message = tuple[int, Headers, bytes]
"""Status, headers and body of an answer."""


async def _send(request: Request, status: int, headers: Headers, body: bytes) -> None:
    await request.send({"type": "http.response.start", "status": status, "headers": headers})
    await request.send({"type": "http.response.body", "body": body})


def as_bytes(status: int, headers: Headers, body: bytes) -> bytes:
    """An answer as it goes over the wire, in one piece."""
    return b"".join((_first_line(status), *[b"%b: %b\r\n" % header for header in headers], b"\r\n", body))


@cache
def _first_line(status: int) -> bytes:
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


_chance = random.Random()


def number() -> str:
    """An id for a request, as upstream's audit ids are."""
    return new_uid(_chance)


def bad_include_object(value: str) -> ApiError:
    return statuses.bad_request(f'unrecognized includeObject value: "{value}"')


def _warning(text: str) -> bytes:
    plain = "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{plain}"'.encode()


def is_pretty(query: Mapping[str, str], user_agent: str) -> bool:
    asked = query.get("pretty")
    if asked is not None:
        return asked not in ("0", "false")
    return user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _as_yaml(body: bytes) -> bytes:
    text: str = yaml.dump(_decode(body), Dumper=_Dumper, allow_unicode=True, default_flow_style=False)
    return text.encode()
