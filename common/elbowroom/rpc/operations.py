"""What a client's history says of its requests: invoked, and then ok, failed or unknown (``api.invoke/ok/fail/info``)."""

from typing import Any

import msgspec

from elbowroom.machine import Note
from elbowroom.rpc.calls import Finished
from elbowroom.wire import ApiRequest, Code

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


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
    }


def invoked(op: str, request: ApiRequest) -> Note:
    """The request is about to be sent. ``op`` is unique in the client's history."""
    return Note("api.invoke", _facts(op, request))


def ended(op: str, request: ApiRequest, finished: Finished) -> Note:
    """How the request ended: ``api.ok`` with its revision, ``api.fail`` (it certainly did not happen), or ``api.info`` (nobody
    knows)."""
    response = finished.api()
    facts = {**_facts(op, request), "status": response.status}
    if 200 <= response.status < 300:
        return Note("api.ok", {**facts, "rev": response.revision})
    # A server that gave up half-way (500, 504) does not say how far it came, nor does an answer that cannot be read.
    unknown = response.status in (500, 504) if response.status else finished.code is Code.OK or not finished.code.definite
    return Note("api.info" if unknown else "api.fail", {**facts, "code": finished.code.name})
