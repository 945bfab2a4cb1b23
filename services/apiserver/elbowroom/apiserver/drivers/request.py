"""One HTTP request, and what came of it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from elbowroom.apiserver import statuses
from elbowroom.apiserver.identity import ANONYMOUS
from elbowroom.wire import ApiRequest, Impersonation

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
SendMessage = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class Request:
    """One HTTP request and the way to answer it."""

    __slots__ = (
        "accept",
        "asked",
        "audit_id",
        "encoding",
        "headers",
        "impersonate",
        "method",
        "notes",
        "path",
        "query",
        "receive",
        "scope",
        "send",
        "status",
        "told",
        "user_agent",
        "who",
    )

    def __init__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("ascii")
        self.query: str = scope["query_string"].decode("ascii", "replace")
        self.headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
        self.scope, self.receive, self.send = scope, receive, send
        self.who = ANONYMOUS
        self.impersonate: Impersonation | None = None
        # What an audit log is told.
        self.asked: ApiRequest | None = None
        self.status, self.told = 0, b""
        self.notes: Mapping[str, str] = {}
        self.audit_id = ""
        self.accept = ",".join(v.decode("latin-1") for k, v in scope["headers"] if k == b"accept")
        self.encoding = self.headers.get(b"accept-encoding", b"")
        self.user_agent = self.headers.get(b"user-agent", b"").decode("latin-1")[:512]


def own(request: Request, verb: str, what: str, *, name: str = "", query: dict[str, str] | None = None) -> ApiRequest:
    """A question to the machine about something outside of resources."""
    who = request.who
    return ApiRequest(
        verb,
        what,
        "elbowroom",
        name=name,
        query=query or {},
        user=who.user,
        groups=who.groups,
        uid=who.uid,
        extra=dict(who.extra),
        impersonate=request.impersonate,
    )


def check_is_get(request: Request) -> None:
    if request.method != "GET":
        raise statuses.method_not_allowed()
