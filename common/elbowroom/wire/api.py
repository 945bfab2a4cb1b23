"""The API server's one method: Kubernetes REST as a value, whoever carries it."""

import msgspec


class Impersonation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whom the user of a request wants to act as. Whether they may is decided where roles are known."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}


class ApiRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Kubernetes API request, parsed from a URL or built by a client on the bus.

    ``verb``: get, list, watch, create, update, patch, delete, deletecollection. ``group`` is empty for core; ``resource`` is
    the plural (``pods``). ``query`` holds the decoded query parameters (``fieldSelector``, ``resourceVersion``, ``dryRun``).
    ``content_type`` tells the kind of patch, ``body`` is the raw body. ``user`` and ``groups`` are filled by who
    authenticated the caller (the facade for HTTP, the API server itself from the peer's name on the bus); so are ``uid`` and
    ``extra``, which a service account's token has.
    """

    verb: str
    resource: str
    group: str = ""
    version: str = "v1"
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: dict[str, str] = {}
    content_type: str = "application/json"
    body: bytes = b""
    user: str = ""
    groups: tuple[str, ...] = ()
    user_agent: str = ""
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}
    impersonate: Impersonation | None = None


class ApiResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer: an HTTP status, the JSON body, and warnings for ``Warning: 299`` headers."""

    status: int
    body: bytes = b""
    warnings: tuple[str, ...] = ()
    revision: int = 0
    """The revision that the answer speaks of: of the object written or read, or of the list; 0 if none."""
    retry_after: int = 0
    """Seconds for a ``Retry-After`` header; 0: none."""
    content_type: str = "application/json"
    annotations: dict[str, str] = {}
    """What an audit log is told about it, where there is one: why it was allowed or refused."""
