"""Who asks: client certificates, bearer tokens, and what anybody may see.

Tokens are compared in constant time and never shown. Rights are the machine's to judge, which has the roles; here it is only
decided who somebody is. Impersonation is judged there too (``impersonation``), since roles decide about it.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elbowroom.apiserver.statuses import ApiError

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_DISCOVERY = ("/api", "/apis", "/openapi")


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and its groups; a service account's token gives a uid and more beside."""

    user: str
    groups: tuple[str, ...]
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_master(self) -> bool:
        return MASTERS in self.groups


ANONYMOUS = Identity("system:anonymous", (UNAUTHENTICATED,))


class BadTokenError(Exception):
    """A token proves nothing; ``str()`` says why, in upstream's words."""


def unauthorized() -> ApiError:
    """401, which says no more."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def of_subject(subject: Iterable[Iterable[tuple[str, str]]]) -> Identity | None:
    """Whom a client certificate's subject names: its common name is the user, its organisations are the groups. None for a subject
    without a common name. ``subject`` as ``ssl.SSLSocket.getpeercert`` gives it."""
    user = ""
    groups: list[str] = []
    for pair in subject:
        for name, value in pair:
            if name == "commonName":
                user = value
            elif name == "organizationName":
                groups.append(value)
    return Identity(user, (*groups, AUTHENTICATED)) if user else None


class Authenticator:
    """Knows the tokens: a sequence of ``{"token", "user", "groups"}``; others are judged by ``signed``, which gives the identity of
    a token that the cluster has signed, or raises ``BadTokenError``."""

    def __init__(self, tokens: Sequence[Mapping[str, Any]], signed: Callable[[str], Identity]) -> None:
        self._known = [
            (_digest(entry["token"]), Identity(entry["user"], (*entry.get("groups", ()), AUTHENTICATED))) for entry in tokens
        ]
        self._signed = signed

    def identify(self, authorization: str, certificate: Identity | None = None) -> Identity:
        """Who a request comes from, by the connection's certificate or its Authorization header.

        No credentials at all is the anonymous user; wrong ones are refused with 401.
        """
        if certificate is not None:
            return certificate
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return ANONYMOUS
        token = token.strip()
        try:
            return self.known(token) or self._signed(token)
        except BadTokenError as why:
            raise unauthorized() from why

    def is_lasting(self, who: Identity) -> bool:
        """Is it the identity of a token that was given at the start, which counts as long as the server runs?"""
        return any(who is identity for _, identity in self._known)

    def known(self, token: str) -> Identity | None:
        """The identity of one of the tokens that were given at the start."""
        digest = _digest(token)
        found: Identity | None = None
        for known, identity in self._known:
            if hmac.compare_digest(known, digest):
                found = identity
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def is_open(groups: Sequence[str], path: str) -> bool:
    """Does upstream's default policy open a path outside of resources to them? Others need a rule for it."""
    return MASTERS in groups or _within(path, _PUBLIC) or (AUTHENTICATED in groups and (path == "/" or _within(path, _DISCOVERY)))


def _within(path: str, roots: Iterable[str]) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in roots)
