"""One HTTP request, and what came of it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from elbowroom.apiserver import statuses
from elbowroom.apiserver.identity import ANONYMOUS, Identity
from elbowroom.wire import ApiRequest, Impersonation

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
SendMessage = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class Client(Protocol):
    """The connection that a request came by."""

    certificate: Identity | None
    is_proven: bool
    said: bytes | None
    """The Authorization header that last proved somebody for good, and whom."""
    told_by: Identity

    def prove(self) -> None: ...

    def answer(self, raw: bytes, *, close: bool) -> None: ...

    @property
    def takes_more(self) -> bool:
        """Does its reader keep up?"""
        ...

    def write_chunk(self, data: bytes) -> None:
        """More of a response without end whose beginning was sent through ASGI; ``data`` is not empty."""
        ...


class Request:
    """One HTTP request and the way to answer it; ``given`` are its headers, names in lower case."""

    __slots__ = (
        "accept",
        "asked",
        "audit_id",
        "connection",
        "encoding",
        "given",
        "headers",
        "impersonate",
        "method",
        "notes",
        "path",
        "peer",
        "query",
        "receive",
        "send",
        "status",
        "told",
        "user_agent",
        "who",
    )

    def __init__(self, method: str, path: bytes, query: bytes, given: Headers, connection: Client) -> None:
        self.method = method
        self.path = path.decode("ascii")
        self.query = query.decode("ascii", "replace")
        self.given, self.connection = given, connection
        self.headers: dict[bytes, bytes] = dict(reversed(given))
        # Only where it goes the long way, through ASGI.
        self.receive: Receive = _nothing_comes
        self.send: SendMessage = _nobody_hears
        self.peer: tuple[str, int] | None = None
        self.who = ANONYMOUS
        self.impersonate: Impersonation | None = None
        # What an audit log is told.
        self.asked: ApiRequest | None = None
        self.status, self.told = 0, b""
        self.notes: Mapping[str, str] = {}
        self.audit_id = ""
        self.accept = ",".join([v.decode("latin-1") for k, v in given if k == b"accept"])
        self.encoding = self.headers.get(b"accept-encoding", b"")
        self.user_agent = self.headers.get(b"user-agent", b"").decode("latin-1")[:512]


def of_scope(scope: Scope, receive: Receive, send: SendMessage) -> Request:
    """The request of an ASGI server."""
    request = Request(scope["method"], scope["raw_path"], scope["query_string"], scope["headers"], scope["state"]["connection"])
    request.receive, request.send, request.peer = receive, send, scope.get("client")
    return request


async def _nothing_comes() -> dict[str, Any]:
    raise AssertionError("the body came with the request")


async def _nobody_hears(message: dict[str, Any]) -> None:
    raise AssertionError(f"{message['type']} is for ASGI")


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
