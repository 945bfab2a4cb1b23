"""A client whose requests are part of the cluster's history."""

import itertools
import time
from pathlib import Path
from urllib.parse import urlencode

from elbowroom.client.http import HttpClient
from elbowroom.host.clock import Clock
from elbowroom.host.history import History
from elbowroom.machine import Effect, Note
from elbowroom.machine.records import Author
from elbowroom.rpc import Finished
from elbowroom.rpc.operations import ended, invoked
from elbowroom.wire import ApiRequest, ApiResponse, Code, encode_value

_METHODS = {"get": "GET", "list": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


class Witness:
    """Records each of its requests as invoked and ok, failed or unknown, in a file of its own in the folder ``history``, beside
    those of the cluster's processes. Used by one thread at a time."""

    def __init__(self, kubeconfig: Path, history: Path, name: str, seed: int = 0) -> None:
        self._http = HttpClient(kubeconfig)
        self._ids = itertools.count(1)
        self._history = History(str(history), Author(history.name, seed, f"client/{name}", time.time_ns()), Clock())

    def send(self, request: ApiRequest) -> ApiResponse:
        """One request and its answer; status 0 if none came."""
        op = str(next(self._ids))
        self._note(invoked(op, request))
        try:
            answer = self._http.request(_METHODS[request.verb], path_of(request), request.body, content_type=request.content_type)
            meta = answer.document.get("metadata") or {}
            made = ApiResponse(answer.status, answer.body, revision=int(meta.get("resourceVersion") or 0))
            finished = Finished(None, Code.OK, encode_value(made), "")
        except OSError as why:
            finished = Finished(None, Code.UNAVAILABLE, b"", str(why))
        self._note(ended(op, request, finished))
        return finished.api()

    def close(self) -> None:
        self._note(Note("end", {}))
        self._history.close()
        self._http.close()

    def _note(self, note: Effect) -> None:
        assert isinstance(note, Note)
        self._history.note(note.name, note.fields)
        self._history.flush()


def path_of(request: ApiRequest) -> str:
    """The URL path and query of a request to a named object or a collection."""
    parts = ["apis", request.group, request.version] if request.group else ["api", request.version]
    parts += ["namespaces", request.namespace] if request.namespace else []
    parts += [part for part in (request.resource, request.name, request.subresource) if part]
    return f"/{'/'.join(parts)}" + (f"?{urlencode(request.query)}" if request.query else "")
