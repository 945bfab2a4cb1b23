"""From a URL to what is asked for: Kubernetes' paths, verbs and refusals."""

from urllib.parse import parse_qsl, unquote

import msgspec

from elbowroom.apiserver import discovery, statuses
from elbowroom.apiserver.discovery import Catalog, Resource, Subresource
from elbowroom.apiserver.gotext import is_true

_METHODS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SEGMENTS_MAX = 64
_NAMESPACE_PARTS = ("status", "finalize")


class Target(msgspec.Struct, frozen=True):
    """A resource request: the verb on ``resource``, with the rest of the path after a ``proxy`` subresource."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: Subresource | None = None
    rest: str = ""
    query: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def is_collection(self) -> bool:
        return not self.name


class Document(msgspec.Struct, frozen=True):
    """Something outside of resources: ``path`` is normalised, without a slash at its end."""

    path: str
    query: dict[str, str] = msgspec.field(default_factory=dict)


def parse_query(query: str) -> dict[str, str]:
    """The parameters; of one that stands twice the first counts, as in Go."""
    found: dict[str, str] = {}
    if query:
        for key, value in parse_qsl(query, keep_blank_values=True, max_num_fields=256):
            found.setdefault(key, value)
    return found


def route(method: str, raw_path: str, query: str, catalog: Catalog = discovery.BUILT_IN) -> Target | Document:
    """What ``method`` on ``raw_path`` (still percent-encoded) means; ``ApiError`` 404 or 405 if it means nothing here."""
    try:
        parameters = parse_query(query)
    except ValueError as why:
        raise statuses.bad_request(f"the query has too many parameters: {why}") from why
    path = raw_path.strip("/")
    parts = path.split("/") if path else []
    if len(parts) > _SEGMENTS_MAX:
        raise statuses.no_such_resource()
    if "%" in path:
        parts = [unquote(part) for part in parts]
        if any("/" in part for part in parts):
            raise statuses.no_such_resource()
    if "" in parts or "." in parts or ".." in parts or any("\0" in part for part in parts):
        raise statuses.no_such_resource()
    if len(parts) > 2 and parts[0] == "api":
        return _target(catalog, method, "", parts[1], parts[2:], parameters)
    if len(parts) > 3 and parts[0] == "apis":
        return _target(catalog, method, parts[1], parts[2], parts[3:], parameters)
    return Document("/" + "/".join(parts), parameters)


def _target(catalog: Catalog, method: str, group: str, version: str, parts: list[str], query: dict[str, str]) -> Target:
    if parts[0] == "watch" and len(parts) > 1:  # the old way to ask for a watch
        parts = parts[1:]
        query = {**query, "watch": "true"}
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _NAMESPACE_PARTS:
        namespace, parts = parts[1], parts[2:]
    resource = catalog.find(group, version, parts[0])
    if resource is None or (namespace and not resource.namespaced):
        raise statuses.no_such_resource()
    name = parts[1] if len(parts) > 1 else ""
    subresource = None
    rest = ""
    if len(parts) > 2:
        subresource = resource.subresource(parts[2])
        rest = "/".join(parts[3:])
        if subresource is None or (rest and subresource.name != "proxy"):
            raise statuses.no_such_resource()
    verb = _verb(method, name, query)
    allowed = resource.verbs if subresource is None else subresource.verbs
    if verb not in allowed or not _fits(verb, resource, namespace, name, subresource):
        raise statuses.method_not_allowed()
    return Target(verb, resource, namespace, name, subresource, rest, query)


def _verb(method: str, name: str, query: dict[str, str]) -> str:
    verb = _METHODS.get(method, "")
    if not name:
        if verb == "get":
            return "watch" if "watch" in query and is_true(query["watch"]) else "list"
        if verb == "delete":
            return "deletecollection"
    return verb


def _fits(verb: str, resource: Resource, namespace: str, name: str, subresource: Subresource | None) -> bool:
    """Is the verb one for such a path: with a name or without, in a namespace or across all?"""
    if verb in ("list", "watch"):
        return True
    if resource.namespaced and not namespace:
        return False
    if verb == "create":
        return not name if subresource is None else bool(name)
    if verb == "deletecollection":
        return True
    return bool(name)
