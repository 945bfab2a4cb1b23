"""What custom kinds the facade knows: it reads the definitions as any client does, by a watch.

The API server tells its watches of a write before it answers the writer, so whoever has made a definition finds its kind served.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from elbowroom.apiserver import discovery
from elbowroom.apiserver.definitions.customs import catalog
from elbowroom.apiserver.identity import MASTERS
from elbowroom.machine import Received
from elbowroom.wire import ApiRequest, Call, Reply, StreamBookmark, StreamCredit, StreamEnd, StreamEvent, encode_value

CREDIT = 256
AGAIN_SECONDS = 0.5


class Customs:
    """The definitions of custom kinds. ``post`` says something to the machine, soon; ``changed`` hears of each change."""

    peer = "http/0"

    def __init__(self, post: Callable[..., None], changed: Callable[[], None], gates: Collection[str] = ()) -> None:
        self._post, self._changed = post, changed
        self._built_in = discovery.built_in(gates)
        self._definitions: dict[str, dict[str, Any]] = {}
        self._number = 0
        self._reading = True
        self.catalog = discovery.Catalog(self._built_in)
        """All that is served."""

    def open(self, seconds: float = 0.0) -> None:
        """Begin to read, from the state, in a while."""
        self._number += 1
        self._definitions = {}
        self._reading = True
        asked = ApiRequest(
            "watch",
            "customresourcedefinitions",
            "apiextensions.k8s.io",
            query={"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"},
            user="system:apiserver",
            groups=(MASTERS,),
            user_agent="apiserver",
        )
        self._post(Received(self.peer, Call(self._number, "watch", encode_value(asked), credit=CREDIT)), seconds)

    def take(self, message: Any) -> None:
        """A message of the stream."""
        if isinstance(message, StreamEvent) and message.id == self._number:
            document: dict[str, Any] = msgspec.json.decode(message.object)
            name = document["metadata"]["name"]
            if message.change == "DELETED":
                self._definitions.pop(name, None)
            else:
                self._definitions[name] = document
            if not self._reading:
                self._tell()
            self._post(Received(self.peer, StreamCredit(self._number, 1)))
        elif isinstance(message, StreamBookmark) and message.id == self._number and message.initial_end:
            self._reading = False
            self._tell()
        elif isinstance(message, StreamEnd | Reply) and message.id == self._number:
            self.open(AGAIN_SECONDS)

    def _tell(self) -> None:
        self.catalog = catalog(self._definitions.values(), self._built_in)
        self._changed()

    def definition_of(self, whole: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What a definition says of the version of an object or a list; None for built-in kinds."""
        group, _, version = str(whole.get("apiVersion", "")).rpartition("/")
        for resource in self.catalog.of(group, version):
            if resource.definition is not None and whole.get("kind") in (resource.kind, resource.list_kind):
                return resource.definition
        return None
