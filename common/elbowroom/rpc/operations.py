"""What a client's history says of its requests: invoked, and then ok, failed or unknown (``api.invoke/ok/fail/info``)."""

from typing import Any

import msgspec

from elbowroom.machine import Note
from elbowroom.rpc.calls import Finished
from elbowroom.wire import ApiRequest, ApiResponse, Code

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Listed(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    resourceVersion: str = "0"


class _Item(msgspec.Struct, frozen=True):
    metadata: _Listed = _Listed()


class _Rest(msgspec.Struct, frozen=True, rename={"token": "continue"}):
    token: str = ""


class _Page(msgspec.Struct, frozen=True):
    metadata: _Rest = _Rest()
    items: list[_Item] = []


def _facts(op: str, request: ApiRequest) -> dict[str, Any]:
    name = request.name
    if not name and request.verb == "create":
        try:
            name = msgspec.json.decode(request.body, type=_Named).metadata.name
        except msgspec.MsgspecError:
            name = ""
    resource = f"{request.resource}.{request.group}" if request.group else request.resource
    return {
        "op": op,
        "verb": request.verb,
        "key": f"{resource}/{request.namespace}/{name}",
        "sub": request.subresource,
        "write": request.verb in WRITES and not request.query.get("dryRun"),
        **({"exact": True} if request.query.get("resourceVersionMatch") == "Exact" else {}),
    }


def _page(request: ApiRequest, response: ApiResponse) -> dict[str, Any]:
    """Of a list of all there is, made in pages: ``after`` (the token that asked for this one), ``more`` (the one it gave), and what
    it told, each object's key and revision."""
    query = request.query
    if request.verb != "list" or not (query.get("limit") or query.get("continue")):
        return {}
    if query.get("labelSelector") or query.get("fieldSelector"):
        return {}
    try:
        page = msgspec.json.decode(response.body, type=_Page)
    except msgspec.MsgspecError:
        return {}
    told = [(item.metadata.namespace, item.metadata.name, item.metadata.resourceVersion) for item in page.items]
    items = [[f"{space}/{name}" if space else name, int(revision)] for space, name, revision in told]
    return {"after": query.get("continue", ""), "more": page.metadata.token, "items": items}


def invoked(op: str, request: ApiRequest) -> Note:
    """The request is about to be sent. ``op`` is unique in the client's history."""
    return Note("api.invoke", _facts(op, request))


def ended(op: str, request: ApiRequest, finished: Finished) -> Note:
    """How the request ended: ``api.ok`` with its revision, ``api.fail`` (it certainly did not happen), or ``api.info`` (nobody
    knows)."""
    response = finished.api()
    facts = {**_facts(op, request), "status": response.status}
    if 200 <= response.status < 300:
        return Note("api.ok", {**facts, "rev": response.revision, **_page(request, response)})
    # A server that gave up half-way (500, 504) does not say how far it came, nor does an answer that cannot be read.
    unknown = response.status in (500, 504) if response.status else finished.code is Code.OK or not finished.code.definite
    return Note("api.info" if unknown else "api.fail", {**facts, "code": finished.code.name})
