"""The short way: what comes whole in one read, and asks for one object or list as JSON, is answered without a task or ASGI.

It is the way of nearly all requests, and half as dear. Whatever is out of the ordinary (watches, other forms, bodies that are still
coming, requests that do not wait for the answer before) goes the long way instead, decided before anything is charged or asked.
Both ways admit, ask and answer by the same functions.
"""

import traceback
from collections.abc import Callable
from functools import partial

from elbowroom.apiserver.discovery import Catalog
from elbowroom.apiserver.drivers.answers import Answers, Message, as_bytes, is_pretty
from elbowroom.apiserver.drivers.exchange import Exchange
from elbowroom.apiserver.drivers.request import Request
from elbowroom.apiserver.negotiation import PLAIN, negotiate
from elbowroom.apiserver.routing import Target, route
from elbowroom.apiserver.statuses import ApiError
from elbowroom.wire import ApiRequest, ApiResponse

_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE"))
_LONG = ("proxy", "log")
"""Subresources that answer in other forms than JSON."""
_FAILED: Message = (500, [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"21")], b"Internal Server Error")


class ShortWay:
    """``admit``, ``asked`` and ``charge`` are the facade's, as on the long way."""

    def __init__(
        self,
        exchange: Exchange,
        answers: Answers,
        admit: Callable[[Request], None],
        asked: Callable[[Request, Target, str, bytes], ApiRequest],
        charge: Callable[[Request, ApiResponse], None],
    ) -> None:
        self._exchange, self._answers = exchange, answers
        self._admit, self._asked, self._charge = admit, asked, charge

    def take(self, request: Request, body: bytes, catalog: Catalog) -> bool:
        """Answer the request, now or when the machine has; False, and nothing has happened, if that is for the long way."""
        target = _ordinary(request, catalog)
        if target is None:
            return False
        try:
            self._admit(request)
            body = body if request.method != "GET" else b""
            asked = self._asked(request, target, content_type_of(request), body)
        except ApiError as refusal:
            self._answer(request, self._answers.refusal(request, refusal))
            return True
        self._exchange.ask_promptly(asked, partial(self._told, request, target))
        return True

    def _told(self, request: Request, target: Target, found: ApiResponse | ApiError) -> None:
        try:
            message = self._message(request, target, found)
        except Exception:
            traceback.print_exc()
            self._answer(request, _FAILED, close=True)
            return
        self._answer(request, message)

    def _message(self, request: Request, target: Target, found: ApiResponse | ApiError) -> Message:
        if isinstance(found, ApiError):
            return self._answers.refusal(request, found)
        self._charge(request, found)
        return self._answers.response(request, found, PLAIN, target.query)

    def _answer(self, request: Request, message: Message, *, close: bool = False) -> None:
        close = close or (b"connection", b"close") in message[1]
        request.connection.answer(as_bytes(*message), close=close)


def content_type_of(request: Request) -> str:
    """The media type of the body, without parameters."""
    return request.headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()


def _ordinary(request: Request, catalog: Catalog) -> Target | None:
    """What the request is about, if it is an ordinary one."""
    if request.method not in _METHODS or negotiate(request.accept) is not PLAIN or b"content-encoding" in request.headers:
        return None
    try:
        found = route(request.method, request.path, request.query, catalog)
    except ApiError:
        return None
    if not isinstance(found, Target) or found.verb == "watch" or is_pretty(found.query, request.user_agent):
        return None
    return None if found.subresource is not None and found.subresource.name in _LONG else found
