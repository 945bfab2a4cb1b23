"""How the facade learns of custom kinds."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from elbowroom.apiserver.drivers.customs import AGAIN_SECONDS, CREDIT, Customs
from elbowroom.machine import Received
from elbowroom.wire import ApiRequest, Call, Code, StreamBookmark, StreamCredit, StreamEnd, StreamEvent, decode_value

DEFINITION = yaml.safe_load((Path(__file__).parent / "crontabs.yaml").read_text())
NAMES = {"plural": "crontabs", "singular": "crontab", "shortNames": ["ct"], "kind": "CronTab", "listKind": "CronTabList"}


def established(**condition: str) -> bytes:
    status = {"acceptedNames": NAMES, "conditions": [{"type": "Established", "status": "True", **condition}]}
    return msgspec.json.encode({**DEFINITION, "status": status})


class Listener:
    """What a ``Customs`` posts, and how often it told of a change."""

    def __init__(self) -> None:
        self.posted: list[tuple[Any, float]] = []
        self.changes = 0
        self.customs = Customs(self.post, self.changed)
        self.customs.open()
        self.read()

    def read(self) -> None:
        """The state has been told."""
        self.customs.take(StreamBookmark(self.stream, 1, 4, initial_end=True))

    def post(self, happened: Received, seconds: float = 0.0) -> None:
        self.posted.append((happened.message, seconds))

    def changed(self) -> None:
        self.changes += 1

    def tell(self, change: str, body: bytes) -> None:
        self.customs.take(StreamEvent(self.stream, 1, 5, 4, change, body))

    @property
    def stream(self) -> int:
        return next(message.id for message, _ in reversed(self.posted) if isinstance(message, Call))

    def served(self) -> list[str]:
        return [resource.api_version for resource in self.customs.catalog.resources if resource.definition is not None]


def test_an_established_definition_is_served_and_a_deleted_one_is_not() -> None:
    listener = Listener()
    call, delay = listener.posted[0]
    assert (call.method, call.credit, delay) == ("watch", CREDIT, 0.0)
    assert decode_value(call.body, ApiRequest).resource == "customresourcedefinitions"
    listener.tell("ADDED", msgspec.json.encode(DEFINITION))
    assert listener.served() == [], "its names are not accepted yet"
    listener.tell("MODIFIED", established())
    assert listener.served() == ["stable.example.com/v1"]
    found = listener.customs.catalog.find("stable.example.com", "v1", "crontabs")
    assert found is not None and [sub.name for sub in found.subresources] == ["status", "scale"]
    assert listener.customs.definition_of({"apiVersion": "stable.example.com/v1", "kind": "CronTabList"}) == found.definition
    assert listener.customs.definition_of({"apiVersion": "v1", "kind": "Pod"}) is None
    listener.tell("DELETED", established())
    assert (listener.served(), listener.changes) == ([], 4)
    assert [message for message, _ in listener.posted if isinstance(message, StreamCredit)] == [StreamCredit(1, 1)] * 3


def test_a_stream_that_ends_is_read_anew_from_the_state() -> None:
    listener = Listener()
    listener.tell("ADDED", established())
    listener.customs.take(StreamEnd(1, Code.OUT_OF_RANGE))
    call, delay = listener.posted[-1]
    assert (call.id, delay) == (2, AGAIN_SECONDS)
    assert listener.served() == ["stable.example.com/v1"], "what was known is served meanwhile"
    listener.customs.take(StreamEvent(1, 2, 6, 5, "DELETED", established()))
    assert listener.served() == ["stable.example.com/v1"], "the old stream has no say any more"
    listener.read()
    assert listener.served() == [], "the state has it no more"


def test_versions_are_listed_with_the_most_mature_first() -> None:
    listener = Listener()
    one = DEFINITION["spec"]["versions"][0]
    names = ("v1alpha1", "v2beta1", "v1", "v10", "other", "v2")
    versions = [{**one, "name": name, "storage": name == "v1"} for name in names]
    document = msgspec.json.decode(established())
    document["spec"]["versions"] = versions
    listener.tell("ADDED", msgspec.json.encode(document))
    group = listener.customs.catalog.api_group("stable.example.com")
    assert group is not None
    assert [version["version"] for version in group["versions"]] == ["v10", "v2", "v1", "v2beta1", "v1alpha1", "other"]
    assert group["preferredVersion"]["version"] == "v10"
