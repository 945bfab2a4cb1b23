"""Who asks: bearer tokens, impersonation, and what anybody may see.

Tokens are compared in constant time and never shown. Rights to resources and to metrics are the machine's to judge, which has the
roles; here it is only decided who somebody is, and to whom the other paths outside of resources are open.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elbowroom.apiserver.statuses import ApiError

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_DISCOVERY = ("/api", "/apis", "/openapi")
_JUDGED_LATER = re.compile(r"(/elbowroom/[^/]+)?/metrics")


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and its groups."""

    user: str
    groups: tuple[str, ...]

    @property
    def is_master(self) -> bool:
        return MASTERS in self.groups


ANONYMOUS = Identity("system:anonymous", (UNAUTHENTICATED,))


class Authenticator:
    """Knows the tokens: a sequence of ``{"token", "user", "groups"}``."""

    def __init__(self, tokens: Sequence[Mapping[str, Any]]) -> None:
        self._known = [
            (_digest(entry["token"]), Identity(entry["user"], (*entry.get("groups", ()), AUTHENTICATED))) for entry in tokens
        ]

    def identify(self, authorization: str, impersonation: Sequence[tuple[str, str]] = ()) -> Identity:
        """Who a request comes from, by its Authorization header and the ``Impersonate-*`` headers (names in lower case).

        No credentials at all is the anonymous user; wrong ones are refused with 401.
        """
        found = ANONYMOUS
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            found = self._by_token(token.strip())
        return self._impersonated(found, impersonation) if impersonation else found

    def _by_token(self, token: str) -> Identity:
        digest = _digest(token)
        found: Identity | None = None
        for known, identity in self._known:
            if hmac.compare_digest(known, digest):
                found = identity
        if found is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return found

    def _impersonated(self, who: Identity, headers: Sequence[tuple[str, str]]) -> Identity:
        user = next((value for name, value in headers if name == "impersonate-user"), "")
        groups = [value for name, value in headers if name == "impersonate-group"]
        if not user:
            raise ApiError(400, "BadRequest", "requested to impersonate groups, a uid or extra fields without impersonating a user")
        if not who.is_master:
            raise ApiError(
                403,
                "Forbidden",
                f'users "{user}" is forbidden: User "{who.user}" cannot impersonate resource "users" in API group "" '
                "at the cluster scope",
                {"name": user, "kind": "users"},
            )
        if user == ANONYMOUS.user:
            return Identity(user, tuple(groups) or ANONYMOUS.groups)
        if not groups and user.startswith("system:serviceaccount:"):
            groups = ["system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}"]
        return Identity(user, tuple(dict.fromkeys((*groups, AUTHENTICATED))))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def check_path(who: Identity, verb: str, path: str) -> None:
    """Refuse, with 403, a path outside of resources that ``who`` may not see."""
    if (
        who.is_master
        or _JUDGED_LATER.fullmatch(path)
        or _within(path, _PUBLIC)
        or (AUTHENTICATED in who.groups and (path == "/" or _within(path, _DISCOVERY)))
    ):
        return
    raise ApiError(403, "Forbidden", f'forbidden: User "{who.user}" cannot {verb} path "{path}"', {})


def _within(path: str, roots: Iterable[str]) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in roots)
